#!/usr/bin/env python3
"""Who lost on real tables? Verdicts of `fit`, and what became of them on rows that it never saw.

usage: lost.py PATH_TO_AFFPCL TABLE.csv[:TARGET[:EXCLUDE,...]] ... [--splits 3] [--agent agent]

Each table (columns of numbers, blanks filled with the mean) is split within agents, 60/40. `fit` scores the first part. On the second, the
losses of an agent's chosen and independent models are paired: it is worse off where a one-sided t-test says so at 5 %, which would be 5 % of
the agents if both models were equally good. Needs numpy (exit 77 without it).
"""
import argparse
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

# 95 % quantiles of Student's t by degrees of freedom: the next smaller entry is used.
STUDENT_95 = {1: 6.314, 2: 2.920, 3: 2.353, 4: 2.132, 5: 2.015, 7: 1.895, 10: 1.812, 15: 1.753, 20: 1.725, 30: 1.697, 60: 1.671}


def read(path, agent, target, exclude):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    names = [n for n in rows[0] if n not in (agent, target, *exclude)]

    def numbers(name):
        try:
            column = np.array([float(r[name] or "nan") for r in rows])
        except ValueError:
            return None  # texts
        column[np.isnan(column)] = np.nanmean(column)
        return column

    columns = [c for c in map(numbers, names) if c is not None and c.std() > 0]
    y = np.array([float(r[target] or "nan") for r in rows])
    known = ~np.isnan(y)
    return np.array([r[agent] for r in rows])[known], np.array(columns).T[known], y[known]


def write(path, agents, X, y):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["agent", *(f"x{j}" for j in range(X.shape[1])), "y"])
        for a, x, v in zip(agents, X, y):
            out.writerow([a, *map(repr, map(float, x)), repr(float(v))])


def study_split(affpcl, agents, X, y, seed):
    rng = np.random.default_rng(seed)
    train = np.zeros(len(y), bool)
    for name in np.unique(agents):
        own = rng.permutation(np.flatnonzero(agents == name))
        train[own[: max(1, round(.6 * len(own)))]] = True
    with tempfile.TemporaryDirectory() as place:
        write(pathlib.Path(place, "train.csv"), agents[train], X[train], y[train])
        done = subprocess.run([affpcl, "fit", "train.csv", "--target", "y", "--family", "gaussian", "--numeric",
                               ",".join(f"x{j}" for j in range(X.shape[1])), "--threads", "1", "--json", "--out", "m"],
                              cwd=place, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr)
        summary, model = json.loads(done.stdout), json.loads(pathlib.Path(place, "m", "model.json").read_text())
    kept = [int(c["name"][1:]) for c in model["columns"]]
    Z = np.hstack([np.ones((len(y), 1)), (X[:, kept] - [c["mean"][0] for c in model["columns"]]) / [c["sd"][0] for c in model["columns"]]])
    records = []
    for s, m in zip(summary["agents"], model["agents"]):
        rows = np.flatnonzero(~train & (agents == m["name"]))
        if len(rows) < 2:
            continue
        alone, chosen = ((y[rows] - Z[rows] @ np.array(x)) ** 2 for x in (m["alone"][0], m["channels"][0]["x"]))
        d = chosen - alone
        limit = next(t for f, t in sorted(STUDENT_95.items(), reverse=True) if f <= len(d) - 1)
        records.append((s["verdict"], alone.sum(), chosen.sum(), d.mean() > limit * d.std(ddof=1) / np.sqrt(len(d)), s["probability"]))
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl", type=os.path.abspath)
    parser.add_argument("tables", nargs="+")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--agent", default="agent")
    o = parser.parse_args()
    for table in o.tables:
        path, target, exclude = (table.split(":") + ["", ""])[:3]
        agents, X, y = read(path, o.agent, target or "y", exclude.split(","))
        records = [r for seed in range(o.splits) for r in study_split(o.affpcl, agents, X, y, seed)]
        if not records:
            print(f"{pathlib.Path(path).stem:12} has no agent with two test rows")
            continue
        verdict = np.array([r[0] for r in records])
        alone, chosen = np.array([r[1] for r in records]), np.array([r[2] for r in records])
        worse, gained = np.array([r[3] for r in records]), verdict == "gained"
        wrong = (chosen > alone)[gained].mean() if gained.any() else float("nan")
        print(f"{pathlib.Path(path).stem:12} {len(np.unique(agents)):5} agents, {X.shape[1]:3} columns: lost {np.mean(verdict == 'lost'):.3f}, gained {gained.mean():.3f} "
              f"(of these with a larger test loss {wrong:.3f}); expected to gain {np.mean([r[4] for r in records]):.3f}, smaller test loss {np.mean(chosen < alone):.3f}; "
              f"worse off {worse.mean():.3f}; test loss {chosen.sum() / alone.sum():.3f} of independent", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
