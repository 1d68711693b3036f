#!/usr/bin/env python3
"""What does privacy cost? `fit --privacy` over epsilon and rows per agent, beside learning alone at home, on two real tables.

usage: privacy.py PATH_TO_AFFPCL [--data FOLDER] [--rows N,N] [--epsilon E,E] [--seeds K] [--jobs J]

Every agent has N rows to learn from; up to 100 others say how good a model is. Four models of each agent are compared: alone at home
(ridge regression on its own rows, no noise), private (`fit --privacy`: everything from one release), at home (`fit --centre` on its own
rows and the private centre: it stays at home) and `fit` without privacy. Bounds are written down below and not taken from the data.
Prints mean squared errors over that of alone at home. Needs numpy (exit 77 without it).
"""
import argparse
import concurrent.futures
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: no numpy")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
DELTA = 1e-5
TESTS = 100  # rows of an agent at most, to compare on

# What is known without the rows: marks go from 0 to 70, weather has its limits, and so on.
SCHOOL = {"y": (0, 70), "x3": (0, 100), "x4": (0, 50), **{f"x{j}": (0, 1) for j in (5, 6, 7, 21, 24, 25, 26)}}
AIR = {"PM2.5": (0, 400), "PM10": (0, 500), "NO2": (0, 200), "CO": (0, 6000), "O3": (0, 250), "TEMP": (-20, 40), "DEWP": (-40, 30),
       "WSPM": (0, 8)}


def tables(data):
    for name, path, target, bounds in (("school", "school/school.csv", "y", SCHOOL), ("beijing_air", "beijing_air/beijing_air.csv", "PM2.5", AIR)):
        if not (data / path).exists():
            print(f"skipped: no {data / path}", file=sys.stderr)
            continue
        with open(data / path, newline="") as file:
            rows = list(csv.DictReader(file))
        agents = {}
        for r in rows:
            agents.setdefault(r["agent"], []).append([float(r[c]) for c in bounds])
        yield name, target, bounds, {a: np.array(v) for a, v in agents.items()}


def call(affpcl, folder, *words):
    done = subprocess.run([affpcl, *map(str, words), "--quiet"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"affpcl {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()}")


def error(model, agent, rows, columns, target, of="x"):
    """Mean squared error of an agent's model, or of its independent one (of="alone")."""
    z = [np.ones(len(rows))]
    for c in model["columns"]:
        z.append((rows[:, columns.index(c["name"])] - c["mean"][0]) / c["sd"][0])
    x = agent["alone"][0] if of == "alone" else agent["channels"][0]["x"]
    return float(np.mean((np.stack(z, 1) @ np.array(x) - rows[:, columns.index(target)]) ** 2))


def one(affpcl, name, target, bounds, agents, count, epsilons, seed):
    rng = np.random.default_rng([seed, count])
    columns = list(bounds)
    train, test = {}, {}
    for a, rows in agents.items():
        order = rng.permutation(len(rows))
        if len(rows) >= count + 20:
            train[a], test[a] = rows[order[:count]], rows[order[count:count + TESTS]]
    if len(train) < 4:
        return []
    text = ",".join(f"{c}={lo}:{hi}" for c, (lo, hi) in bounds.items())
    records = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        with open(folder / "t.csv", "w", newline="") as file:
            out = csv.writer(file)
            out.writerow(["agent", *columns])
            out.writerows([a, *map(repr, map(float, r))] for a, rows in train.items() for r in rows)

        def fit(*words):
            call(affpcl, folder, "fit", "t.csv", "--threads", 1, "--force", *words)
            return json.loads((folder / "m" / "model.json").read_text())

        def mean(model, of="x"):
            return np.mean([error(model, a, test[a["name"]], columns, target, of) for a in model["agents"]])

        plain = fit("--target", target, "--no-score", "--out", "m")
        alone, together = mean(plain, "alone"), mean(plain)
        for epsilon in epsilons:
            record = dict(table=name, agents=len(train), rows=count, epsilon=epsilon, seed=seed, alone=alone, together=together / alone)
            try:
                private = fit("--target", target, "--privacy", f"epsilon={epsilon},delta={DELTA}", "--bounds", text, "--out", "m")
            except RuntimeError as failure:
                if "too few rows" not in str(failure):
                    raise
                records.append(record | dict(private=np.nan, home=np.nan))
                continue
            record |= dict(private=mean(private) / alone)
            (folder / "centre.json").write_text((folder / "m" / "centre.json").read_text())
            record |= dict(home=mean(fit("--centre", "centre.json", "--no-score", "--out", "m")) / alone)
            records.append(record)
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", default="20,50,100,200,1000,5000")
    parser.add_argument("--epsilon", default="1,2,4,8")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    o = parser.parse_args()
    o.affpcl = str(pathlib.Path(o.affpcl).resolve())
    epsilons = [float(e) for e in o.epsilon.split(",")]
    tasks = [(o.affpcl, *table, count, epsilons, seed) for table in tables(o.data) for count in map(int, o.rows.split(","))
             for seed in range(1, o.seeds + 1)]
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        records = [r for some in pool.map(lambda t: one(*t), tasks) for r in some]
    print(f"{'table':12} {'agents':>6} {'rows':>6} {'epsilon':>8} {'private':>15} {'at home':>15} {'no privacy':>11}")
    for key in dict.fromkeys((r["table"], r["rows"], r["epsilon"]) for r in records):
        some = [r for r in records if (r["table"], r["rows"], r["epsilon"]) == key]
        show = lambda k: f"{np.mean([r[k] for r in some]):.3f} ±{np.std([r[k] for r in some], ddof=1) / len(some) ** .5 if len(some) > 1 else np.nan:.3f}"
        print(f"{key[0]:12} {some[0]['agents']:>6} {key[1]:>6} {key[2]:>8g} {show('private'):>15} {show('home'):>15} "
              f"{np.mean([r['together'] for r in some]):>11.3f}")


if __name__ == "__main__":
    main()
