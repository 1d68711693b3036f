#!/usr/bin/env python3
"""Do the intervals of `fit` hold when the errors of an agent's successive rows are correlated? Simulated tables with AR(1) errors.

usage: serial.py PATH_TO_AFFPCL [--tables N] [--seed K] [--jobs J] [--check]

A table has agents with coefficients of their own (standard deviation .5, noise 1), two columns (white, or AR(1) with .8 like a
season) and a column `day`. `fit --time day` learns from the first rows of each agent; the rows after them are predicted. Where a
table has no time, `fit` sees the same rows in their order. Shares are over tables, +- a standard error. --check exits 1 where
intervals with --time hold less than .87, or more than 3 % of the tables without correlation are called correlated (beyond
chance). Needs numpy (exit 77 without it).
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import subprocess
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

CORRELATIONS = (0, .3, .6, .8)
SIZES = ((10, 12), (40, 12), (12, 40))  # agents, rows each
LATER = 20  # rows of each agent that are predicted


def ar1(rng, correlation, rows, columns):
    """Stationary, with variance 1."""
    x = rng.normal(size=(rows, columns))
    for t in range(1, rows):
        x[t] = correlation * x[t - 1] + math.sqrt(1 - correlation ** 2) * x[t]
    return x


def draw(rng, agents, rows, correlation, smooth):
    """Lines of the rows to learn from and of those to predict."""
    old, new = [], []
    for i in range(agents):
        x = ar1(rng, .8 if smooth else 0, rows + LATER, 2)
        y = np.column_stack([np.ones(len(x)), x]) @ (1 + .5 * rng.normal(size=3))
        y += ar1(rng, correlation, rows + LATER, 1)[:, 0]
        for t, ((a, b), v) in enumerate(zip(x, y)):
            (old if t < rows else new).append(f"a{i:03},{t},{a:.6g},{b:.6g},{v:.6g}")
    return old, new


def call(affpcl, folder, *words):
    done = subprocess.run([affpcl, *words], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"affpcl {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def one_table(affpcl, seed, number, agents, rows, correlation, smooth):
    rng = np.random.default_rng([seed, number, agents, rows, int(100 * correlation), smooth])
    old, new = draw(rng, agents, rows, correlation, smooth)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("old.csv", old), ("new.csv", new)):
            with open(f"{folder}/{name}", "w") as file:
                file.write("\n".join(["agent,day,u,v,y", *lines]) + "\n")
        for way, words in (("order", ["--exclude", "day", "--no-score"]), ("time", ["--time", "day"])):
            summary = json.loads(call(affpcl, folder, "fit", "old.csv", "--target", "y", "--agent", "agent", "--threads", "1",
                                      "--json", "--out", way, *words))
            call(affpcl, folder, "predict", way, "new.csv", "--out", f"{way}.csv", "--quiet")
            with open(f"{folder}/{way}.csv") as file:
                held = [float(r["prediction_lo"]) <= float(r["y"]) <= float(r["prediction_hi"]) for r in csv.DictReader(file)]
            found[way] = np.mean(held), any("successive rows" in note for note in summary["notes"])
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("affpcl", type=os.path.abspath)
    parser.add_argument("--tables", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true")
    o = parser.parse_args()
    failed, noted, even = [], 0, 0
    print("| agents x rows, columns | correlation | 90 % intervals hold, rows in their order | with `--time` | noted |")
    print("|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        for agents, rows in SIZES:
            for smooth in (False, True):
                for correlation in CORRELATIONS:
                    tables = list(pool.map(lambda k: one_table(o.affpcl, o.seed, k, agents, rows, correlation, smooth),
                                           range(o.tables)))
                    cells = []
                    for way in ("order", "time"):
                        shares = np.array([t[way][0] for t in tables])
                        mean, se = shares.mean(), shares.std(ddof=1) / math.sqrt(len(shares))
                        cells.append(f"{mean:.3f} +-{se:.3f}")
                        if way == "time" and mean + 2 * se < .87:
                            failed.append((agents, rows, smooth, correlation))
                    count = sum(t["order"][1] for t in tables)
                    if correlation == 0:
                        noted, even = noted + count, even + len(tables)
                    print(f"| {agents} x {rows}, {'smooth' if smooth else 'white'} | {correlation} | {cells[0]} | {cells[1]} | "
                          f"{count / len(tables):.2f} |", flush=True)
    print(f"\nnoted without correlation: {noted} of {even}")
    if noted > .03 * even + 2 * math.sqrt(.03 * even):
        failed.append("noted")
    if o.check and failed:
        sys.exit(f"missed: {failed}")


if __name__ == "__main__":
    main()
