#!/usr/bin/env python3
"""Cases in which verdicts or models of `fit` once failed, simulated: one line of numbers each.

usage: cases.py PATH_TO_AFFPCL [--tables N] [--seed K] [--jobs J] [--cases a,b] [--check]

thousand    1,000 agents x 5 rows, 3 coefficients, standard deviation .3 between agents, noise 1.25: how many gain, and are called so
equal       40 agents x 8 rows with the same 4 coefficients: power
counts      30 agents x 15 rows of Poisson counts, some rates large, fitted by least squares: no table may be made worse
sites       60 sites x 20 rows with the same logistic model, an outcome of 14 %: gains and verdicts must agree
few rows    one agent with 5 rows and 9 coefficients beside 30 with 40 rows: its predictions must not fly off
six agents  6 agents x 9 rows, 6 coefficients: too few agents for a full random-effects covariance
new agents  48 agents x 17 rows whose columns have means of their own (like states and years): agents never seen
agent means 60 agents x 6 rows, where an agent's mean of a column matters beside the column

Losses are means over new rows drawn from the truth. `gained` and `lost` are the shares of agents with these verdicts; `false` of them
have the other sign in truth. --check exits 1 where a limit of docs does not hold. Needs numpy (exit 77 without it).
"""
import argparse
import concurrent.futures
import csv
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

NEW_ROWS = 500  # per agent, for expectations


class Case:
    """Agents with rows [rows][columns], coefficients x (the intercept first) and a link; `means` are the agents' means of columns."""
    binary = counts = False
    new = False  # agents that the fit never sees are predicted
    options = ()

    def __init__(self, rng, agents, columns, rows, x, noise=1.0, means=None):
        self.rng, self.columns, self.noise = rng, columns, noise
        self.rows = np.full(agents, rows) if np.isscalar(rows) else np.asarray(rows)
        self.x = x
        self.means = np.zeros((agents, columns)) if means is None else means

    def expect(self, z, agent):
        eta = self.x[agent, 0] + z @ self.x[agent, 1:]
        return 1 / (1 + np.exp(-eta)) if self.binary else np.exp(np.minimum(eta, 4.5)) if self.counts else eta

    def draw(self, agent, rows):
        z = self.means[agent] + self.rng.normal(size=(rows, self.columns))
        f = self.expect(z, agent)
        y = self.rng.random(rows) < f if self.binary else self.rng.poisson(f) if self.counts else f + self.noise * self.rng.normal(size=rows)
        return z, y.astype(float)


def thousand(rng):
    return Case(rng, 1000, 2, 5, rng.normal([1, 1, -1], .3, size=(1000, 3)), 1.25)


def equal(rng):
    return Case(rng, 40, 3, 8, np.ones((40, 4)))


def counts(rng):
    case = Case(rng, 30, 3, 15, np.hstack([rng.normal(1.2, .5, size=(30, 1)), rng.normal(.4, .2, size=(30, 3))]))
    case.counts, case.options = True, ("--family", "gaussian")
    return case


def sites(rng):
    case = Case(rng, 60, 3, 20, np.tile([-2.1, .5, -.5, .3], (60, 1)))
    case.binary = True
    return case


def few_rows(rng):
    return Case(rng, 31, 8, [5] + [40] * 30, np.hstack([rng.normal(30, 4, size=(31, 1)), rng.normal(1, .5, size=(31, 8))]), 6.)


def six_agents(rng):
    return Case(rng, 6, 5, 9, np.hstack([rng.normal(50, 6, size=(6, 1)), rng.normal([8, 13, 1, 0, 0], [3, 3, 0, 0, 0], size=(6, 5))]), 2.)


def new_agents(rng):
    means = 1.5 * rng.normal(size=(64, 3))  # of which 16 are new
    case = Case(rng, 64, 3, 17, np.hstack([rng.normal(2, .25, size=(64, 1)), rng.normal([.3, .6, .1], .08, size=(64, 3))]), .1, means)
    case.new = True
    return case


def agent_means(rng):
    means = rng.normal(size=(80, 2))
    intercept = 1 + 1.5 * means[:, :1] - means[:, 1:] + .5 * rng.normal(size=(80, 1))
    case = Case(rng, 80, 2, 6, np.hstack([intercept, rng.normal(.5, .1, size=(80, 2))]), 1., means)
    case.new = True
    return case


CASES = {"thousand": thousand, "equal": equal, "counts": counts, "sites": sites, "few rows": few_rows, "six agents": six_agents,
         "new agents": new_agents, "agent means": agent_means}


def log_odds(p):
    return np.log(p / (1 - p))


def study_table(job):
    affpcl, name, seed, number, options = job
    case = CASES[name](np.random.default_rng([seed, list(CASES).index(name), number]))
    agents = len(case.rows)
    seen = agents - (16 if agents == 64 else 20 if agents == 80 else 0)
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        header = ["agent", *(f"x{j}" for j in range(case.columns)), "y"]
        with open(folder / "t.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(header)
            for i in range(seen):
                for z, y in zip(*case.draw(i, case.rows[i])):
                    out.writerow([f"a{i:04}", *map(float, z), ("no", "yes")[int(y)] if case.binary else y])
        new = [case.draw(i, NEW_ROWS if seen < 1000 else 50)[0] for i in range(agents)]
        with open(folder / "new.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(header[:-1])
            for i in range(agents):
                out.writerows([f"a{i:04}", *map(float, z)] for z in new[i])
        done = subprocess.run([affpcl, "fit", "t.csv", "--target", "y", "--threads", "1", "--json", "--out", "m", *case.options, *options],
                              cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        summary = json.loads(done.stdout)
        model = json.loads((folder / "m" / "model.json").read_text())
        subprocess.run([affpcl, "predict", "m", "new.csv", "--out", "p.csv", "--quiet"], cwd=folder, check=True, capture_output=True)
        with open(folder / "p.csv", newline="") as file:
            key = "probability_yes" if case.binary else "prediction"
            predicted = np.array([float(row[key]) for row in csv.DictReader(file)])
    # Losses of the three models on new rows, without the noise that all share where it is additive.
    mean = np.concatenate([[0], *[c["mean"] for c in model["columns"]]])
    sd = np.concatenate([[1], *[c["sd"] for c in model["columns"]]])
    spots = np.cumsum([0] + [len(z) for z in new])
    alone, own, pooled = [], [], []
    for i in range(agents):
        truth, p = case.expect(new[i], i), predicted[spots[i]:spots[i + 1]]
        Z = (np.hstack([np.ones((len(new[i]), 1)), new[i]]) - mean) / sd
        of = {"pooled": Z @ np.array(model["channels"][0]["pooled"])}
        if i < seen:
            of["alone"] = Z @ np.array(model["agents"][i]["alone"][0])

        def loss(f):
            if case.binary:
                return -(truth * np.log(np.clip(f, .01, .99)) + (1 - truth) * np.log(np.clip(1 - f, .01, .99))).mean()
            return ((f - truth) ** 2).mean()
        link = (lambda e: 1 / (1 + np.exp(-e))) if case.binary else (lambda e: e)
        own.append(loss(p))
        pooled.append(loss(link(of["pooled"])))
        alone.append(loss(link(of["alone"])) if i < seen else np.nan)
    verdict = np.array([a["verdict"] for a in summary["agents"]])
    return dict(own=np.array(own), pooled=np.array(pooled), alone=np.array(alone[:seen]), seen=seen, noise=0 if case.binary or case.counts else
                case.noise ** 2, verdict=verdict, expected=np.array([a["probability"] for a in summary["agents"]]),
                lo=np.array([a["gain"]["lo"] for a in summary["agents"]]), hi=np.array([a["gain"]["hi"] for a in summary["agents"]]))


def describe(name, tables):
    seen = np.concatenate([t["alone"] - t["own"][:t["seen"]] for t in tables])
    verdict = np.concatenate([t["verdict"] for t in tables])
    gained, lost = verdict == "gained", verdict == "lost"
    false = (seen[gained] <= 0).sum() + (seen[lost] >= 0).sum()
    lo, hi = (np.concatenate([t[k] for t in tables]) for k in ("lo", "hi"))
    mean = lambda key, part=slice(None): np.mean([t[key][part].mean() for t in tables])
    sure = gained.sum() + lost.sum()
    numbers = dict(alone=mean("alone"), chosen=np.mean([t["own"][:t["seen"]].mean() for t in tables]),
                   pooled=np.mean([t["pooled"][:t["seen"]].mean() for t in tables]), noise=tables[0]["noise"],
                   worse=np.mean([t["own"][:t["seen"]].mean() > 1.01 * t["alone"].mean() for t in tables]),
                   gain=(seen > 0).mean(), expected=mean("expected"), gained=gained.mean(), lost=lost.mean(),
                   false=false / sure if sure else 0., held=((lo <= seen) & (seen <= hi)).mean())
    line = (f"{name:12}{len(tables):>4}  alone {numbers['alone']:.4g}, chosen {numbers['chosen']:.4g}, pooled {numbers['pooled']:.4g} (noise {numbers['noise']:.3g}); tables "
            f"made worse {numbers['worse']:.2f}; gain > 0 {numbers['gain']:.3f}, expected {numbers['expected']:.3f}, gained {numbers['gained']:.3f}, lost "
            f"{numbers['lost']:.3f}, false {numbers['false']:.3f}; intervals hold {numbers['held']:.3f}")
    if tables[0]["seen"] < len(tables[0]["own"]):
        new, new_pooled = (np.mean([t[k][t["seen"]:].mean() for t in tables]) for k in ("own", "pooled"))
        numbers |= dict(new=new, new_pooled=new_pooled)
        line += f"; new agents {new:.4g} (pooled {new_pooled:.4g})"
    if name == "few rows":
        first = np.array([[t["own"][0], t["pooled"][0], t["alone"][0]] for t in tables])
        numbers |= dict(first=first[:, 0].mean(), first_worst=(first[:, 0] / first[:, 1]).max())
        line += f"; its agent {first[:, 0].mean():.4g} (pooled {first[:, 1].mean():.4g}, alone {first[:, 2].mean():.4g}), worst {numbers['first_worst']:.2f} of pooled"
    print(line, flush=True)
    return numbers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl", type=os.path.abspath)
    parser.add_argument("--tables", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--options", default="", help="further options of fit, separated by spaces")
    o = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(o.jobs) as pool:
        for name in o.cases.split(","):
            tables = max(1, o.tables // 10) if name == "thousand" else o.tables
            describe(name, list(pool.map(study_table, [(o.affpcl, name, o.seed, k, o.options.split()) for k in range(tables)])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
