#!/usr/bin/env python3
"""Are the gains that `fit` states true? Coverage of their intervals and signs of verdicts, by world and by rows per agent.

usage: verdicts.py PATH_TO_AFFPCL [--tables N] [--agents A] [--columns P] [--seed K] [--jobs J] [--worlds W,...] [--rows R,...]

Every table has A agents with R rows each. Worlds without a dash have a linear model, the others (generalised.py) yes/no outcomes or three
classes, which fit's default family fits, or counts, fitted by --family poisson. The truth is the expected loss of the independent model in
model.json minus that of the chosen one, on new rows of the agent: both models are at hand, and so is the mean of the target, so that no
noise enters. Needs numpy (exit 77 without it).
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)
from generalised import GeneralisedWorld

NEW_ROWS = 2000  # per agent, for expectations
LINEAR = ("equal", "unequal", "outliers", "count")
WORLDS = LINEAR + tuple(f"{name}-{spread}" for name in ("yesno", "classes", "counts") for spread in ("equal", "unequal", "outliers"))


class LinearWorld:
    """equal: all agents have the same coefficients. unequal: sd .5 around a common mean, noise 1. outliers: sd .2, one agent of ten at
    distance 2 in every coefficient. count: Poisson counts with agents' own log-linear rates (sd .5), fitted by least squares."""

    def __init__(self, kind, agents, columns, rows, rng):
        self.kind, self.rows, self.rng = kind, rows, rng
        spread = dict(equal=0, unequal=0.5, outliers=0.2, count=0.3)[kind]
        mean = np.full(columns + 1, 0.5 if kind == "count" else 1.0)
        self.x = mean + spread * rng.normal(size=(agents, columns + 1))
        if kind == "outliers":
            odd = rng.choice(agents, max(1, agents // 10), replace=False)
            self.x[odd] += 2 * rng.choice((-1, 1), size=(len(odd), columns + 1))

    def columns(self, rows):
        return self.rng.normal(size=(len(self.x), rows, self.x.shape[1] - 1))

    def means(self, z):
        eta = self.x[:, None, 0] + np.einsum("irj,ij->ir", z, self.x[:, 1:])
        return np.exp(np.minimum(eta, 5)) if self.kind == "count" else eta

    def draw(self):
        z = self.columns(self.rows)
        f = self.means(z)
        return z, self.rng.poisson(f) if self.kind == "count" else f + self.rng.normal(size=f.shape)

    def targets(self, y):
        return y.astype(float)

    def losses(self, model, z, y, new, f):
        mean, sd = (np.array([c[k][0] for c in model["columns"]]) for k in ("mean", "sd"))
        for i, m in enumerate(model["agents"]):
            X = np.hstack([np.ones((len(new[i]), 1)), (new[i] - mean) / sd])
            yield tuple(((X @ np.array(x) - f[i]) ** 2).mean()
                        for x in (m["channels"][0]["x"], m["alone"][0], model["channels"][0]["pooled"]))


def write_csv(path, z, y):
    with open(path, "w") as file:
        file.write("agent," + ",".join(f"x{j}" for j in range(z.shape[2])) + ",y\n")
        for i in range(len(z)):
            for row, target in zip(z[i], y[i]):
                file.write(f"a{i:03}," + ",".join(repr(float(v)) for v in row) + f",{target}\n")


def study_table(affpcl, kind, agents, columns, rows, seed, number, options):
    rng = np.random.default_rng([seed, WORLDS.index(kind), rows, number])
    linear = kind in LINEAR
    world = (LinearWorld if linear else GeneralisedWorld)(kind, agents, columns, rows, rng)
    z, y = world.draw()
    family = ["--family", "poisson"] if kind.startswith("counts") else ["--family", "gaussian", "--numeric", "y"] if linear else []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_csv(folder / "t.csv", z, world.targets(y))
        done = subprocess.run([affpcl, "fit", "t.csv", "--target", "y", *family, "--threads", "1", "--json", "--out", "m", *options], cwd=folder,
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        summary, model = json.loads(done.stdout), json.loads((folder / "m" / "model.json").read_text())
    new = world.columns(NEW_ROWS)
    records = []
    for s, (chosen, alone, pooled) in zip(summary["agents"], world.losses(model, z, y, new, world.means(new))):
        gain = s["gain"]
        records.append(dict(table=number, truth=alone - chosen, alone=alone, chosen=chosen, pooled=pooled, verdict=s["verdict"], gain=gain["mean"],
                            lo=gain["lo"], hi=gain["hi"], independent=s["score"]["alone"], expected=s.get("probability", np.nan)))
    return records


def share(values):
    return f"{np.mean(values):.3f}" if len(values) else "-"


def line(kind, rows, agents):
    truth = np.array([a["truth"] for a in agents])
    real = truth > 0
    verdict = np.array([a["verdict"] for a in agents])
    held = [a["lo"] <= a["truth"] <= a["hi"] for a in agents if a["lo"] is not None]
    gained, lost = verdict == "gained", verdict == "lost"
    false = np.concatenate([~real[gained], real[lost]])
    gain = np.array([a["gain"] for a in agents])
    total = sum(a["chosen"] for a in agents) / sum(a["alone"] for a in agents)
    pooled = sum(a["chosen"] for a in agents) / sum(a["pooled"] for a in agents)
    expected = np.array([a["expected"] for a in agents])
    return (f"{kind:9}{rows:>5}{len(agents):>7}{share(held):>10}{share(real):>10}{share(expected):>10}{share(gained):>9}{share(lost):>7}{share(false):>12}"
            f"{gain.mean() / truth.mean():>10.2f}{total:>10.3f}{pooled:>10.3f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--columns", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--worlds", default=",".join(WORLDS))
    parser.add_argument("--rows", default="2,3,5,10,30,100")
    parser.add_argument("--options", default="", help="further options of fit, separated by spaces")
    args = parser.parse_args()
    affpcl = os.path.abspath(args.affpcl)
    print(f"{'world':9}{'rows':>5}{'agents':>7}{'coverage':>10}{'gain > 0':>10}{'expected':>10}{'gained':>9}{'lost':>7}{'false sign':>12}{'gain/true':>10}"
          f"{'of alone':>10}{'of pooled':>10}")
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        for kind in args.worlds.split(","):
            for rows in map(int, args.rows.split(",")):
                jobs = [pool.submit(study_table, affpcl, kind, args.agents, args.columns, rows, args.seed, k, args.options.split())
                        for k in range(args.tables)]
                print(line(kind, rows, [a for job in jobs for a in job.result()]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
