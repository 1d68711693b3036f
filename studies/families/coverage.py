#!/usr/bin/env python3
"""How often 90 % intervals of `affpcl fit --family` hold the true coefficients, on simulated tables.

usage: coverage.py PATH_TO_AFFPCL [--tables 200] [--agents 40] [--rows 30]

Each table has agents with random effects of standard deviations .8, .5, .3 and 0 around a centre. An interval is the coefficient
+- 1.645 standard errors. Prints the share of intervals that hold the truth: of the centre, of the agents, by family.
"""
import argparse, json, pathlib, subprocess, tempfile

import numpy as np

CENTRE = np.array([-.5, .7, -.4, .2])
DEVIATIONS = np.array([.8, .5, .3, 0])


def simulate(family, seed, agents, rows):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(agents * rows, 3))
    X = (X - X.mean(0)) / X.std(0)  # coefficients are of standardised columns
    Z = np.hstack([np.ones((len(X), 1)), X])
    truth = CENTRE + DEVIATIONS * rng.normal(size=(agents, 4))
    agent = np.repeat(np.arange(agents), rows)
    eta = (Z * truth[agent]).sum(1)
    y = rng.poisson(np.exp(eta)) if family == "poisson" else (rng.random(len(X)) < 1 / (1 + np.exp(-eta))).astype(int)
    return X, y, agent, truth


def fitted(program, folder, family, X, y, agent):
    lines = ["agent,a,b,c,y"] + [f"g{i},{x[0]!r},{x[1]!r},{x[2]!r},{int(t)}" for i, x, t in zip(agent, X.tolist(), y)]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    subprocess.run([program, "fit", folder / "table.csv", "--target", "y", "--family", family, "--out", folder / "model", "--force",
                    "--quiet", "--no-score", "--threads", "1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return json.loads((folder / "model" / "model.json").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument("--rows", type=int, default=30)
    o = parser.parse_args()
    for family in ("binomial", "poisson"):
        centre, own = [], []
        with tempfile.TemporaryDirectory() as folder:
            for seed in range(o.tables):
                X, y, agent, truth = simulate(family, seed, o.agents, o.rows)
                model = fitted(o.program, pathlib.Path(folder), family, X, y, agent)
                found = model["channels"][0]["centre"]
                centre.append(np.abs(np.array(found["x"]) - CENTRE) < 1.645 * np.array(found["se"]))
                for a in model["agents"]:
                    one = a["channels"][0]
                    own.append(np.abs(np.array(one["x"]) - truth[int(a["name"][1:])]) < 1.645 * np.array(one["se"]))
        print(family, "centre", np.mean(centre, 0).round(3), "mean", np.mean(centre).round(3), "agents", np.mean(own, 0).round(3),
              "mean", np.mean(own).round(3), flush=True)


if __name__ == "__main__":
    main()
