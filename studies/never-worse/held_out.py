#!/usr/bin/env python3
"""Recorded rows: does the guard keep the gain on held-out rows?

usage: held_out.py PATH_TO_AFFPCL DATA [--tables chars74k,qmnist,school,wisdm] [--steps 300,1500] [--levels 0,0.6]

DATA has the folders chars74k_hnd, qmnist_writers, school and wisdm. Two outcome channels with stated weights, no ratio,
steps of .005, a ridge of .001, five folds. Prints the held-out error of plain and guarded AffPCL relative to independent learning. Needs
NumPy.
"""
import argparse
import csv
import json
import pathlib
import subprocess
import tempfile

import numpy as np

FOLDS, COMPONENTS, LENGTH = 5, 24, 4


def columns(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def numbers(values):
    """A column as numbers; blanks become its mean."""
    x = np.array([float(v) if v not in ("", "?") else np.nan for v in values])
    return np.where(np.isnan(x), np.nanmean(x), x)


def handwriting(images, agent, channels, writers=10):
    """The first writers, and principal components of the images of the others."""
    pixels = np.frombuffer(pathlib.Path(images).read_bytes()[16:], np.uint8).reshape(-1, 784) / 255
    own, mean = agent < writers, pixels[agent >= writers].mean(0)
    _, _, V = np.linalg.svd(pixels[~own] - mean, full_matrices=False)
    return agent[own], (pixels[own] - mean) @ V[:COMPONENTS].T, [c[own] for c in channels]


def read(data, table):
    """Agents, features and the two outcome channels."""
    if table == "chars74k":
        at = columns(data / "chars74k_hnd" / "labels.csv")
        return handwriting(data / "chars74k_hnd" / "images-idx3-ubyte", numbers(at["agent"]).astype(int),
                           [numbers(at["is_digit"]), numbers(at["is_curved_letter"])])
    if table == "qmnist":
        at = columns(data / "qmnist_writers" / "top60-labels.csv")
        digit = numbers(at["digit"])
        return handwriting(data / "qmnist_writers" / "top60-images-idx3-ubyte", numbers(at["agent"]).astype(int),
                           [1.0 * (digit % 2 == 0), 1.0 * np.isin(digit, (0, 6, 8, 9))])
    at = columns(data / table / f"{table}.csv")
    agent = numbers(at["agent"]).astype(int)
    features = np.stack([numbers(v) for k, v in at.items() if k not in ("agent", "y", "label")], 1)
    if table == "school":
        y = numbers(at["y"])
        channels = [(y - y.mean()) / y.std(), 1.0 * (y >= np.quantile(y, 0.75))]
    else:
        channels = [np.array([1.0 * (v == what) for v in at["label"]]) for what in ("Walking", "Jogging")]
    names, count = np.unique(agent, return_counts=True)
    own = np.isin(agent, names[count >= 25])
    return agent[own], features[own], [c[own] for c in channels]


def write(folder, agent, features, channels, seed=1):
    """The rows, by agent, with features of length 4 on average, a constant and folds within agents."""
    order = np.argsort(agent, kind="stable")
    agent, features, channels = agent[order], features[order], [c[order] for c in channels]
    varies = features.std(0) > 0
    features = (features[:, varies] - features[:, varies].mean(0)) / features[:, varies].std(0)
    features *= LENGTH / np.sqrt((features ** 2).sum(1).mean())
    rng = np.random.default_rng(seed)
    fold = np.concatenate([rng.permutation(np.arange((agent == a).sum()) % FOLDS) for a in np.unique(agent)])
    head = ["agent", "first", "second", "fold"] + [f"f{k}" for k in range(features.shape[1])] + ["one"]
    with open(folder / "rows.csv", "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(head)
        for i, row in enumerate(features):
            out.writerow([agent[i], channels[0][i], channels[1][i], fold[i], *np.round(row, 6), 1])
    return head[4:]


def measure(program, folder, features, level, steps, replicates, ridge):
    methods = [("independent", 'kind = "independent"')] + [
        (name, f'kind = "affpcl"\nratio = "none"\nguard = "{guard}"') for name, guard in (("plain", "none"), ("guarded", "full"))]
    spec = f"""[problem]
kind = "rows"
file = "rows.csv"
channels = "first,second"
features = "{','.join(features)}"
fold = "fold"
delta_obj = {level}
ridge = {ridge}
[run]
steps = {steps}
replicates = {replicates}
step_size = 0.005
tail = 30
curve_points = 2
curve_agents = []
""" + "".join(f'[[method]]\nname = "{name}"\n{keys}\n' for name, keys in methods)
    (folder / "spec.toml").write_text(spec)
    done = subprocess.run([program, "run", folder / "spec.toml", "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return {m["name"]: m for m in json.loads(done.stdout)["settings"][0]["methods"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--tables", default="chars74k,qmnist,school,wisdm")
    parser.add_argument("--steps", default="300,1500")
    parser.add_argument("--levels", default="0,0.6")
    args = parser.parse_args()
    program = str(pathlib.Path(args.affpcl).resolve())
    print(f"{'':10}{'steps':>6}{'level':>6}{'plain':>8}{'guarded':>9}{'+-':>7}{'gain kept':>11}{'agents > 1.05, plain, guarded':>31}")
    for table in args.tables.split(","):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            features = write(folder, *read(args.data, table))
            for steps in args.steps.split(","):
                for level in args.levels.split(","):
                    m = measure(program, folder, features, level, steps, 10 if table == "chars74k" else 5, 0.001)
                    plain, guarded = (m[k]["vs_independent"] for k in ("plain", "guarded"))
                    kept = (1 - guarded["mean"]) / (1 - plain["mean"]) if plain["mean"] < 1 else float("nan")
                    harmed = ["{} of {}".format(sum(a["vs_independent"]["lo"] > 1.05 for a in m[k]["agents"]), len(m[k]["agents"]))
                              for k in ("plain", "guarded")]
                    print(f"{table:10}{steps:>6}{level:>6}{plain['mean']:>8.3f}{guarded['mean']:>9.3f}"
                          f"{guarded['hi'] - guarded['mean']:>7.3f}{kept:>11.2f}{', '.join(harmed):>31}", flush=True)


if __name__ == "__main__":
    main()
