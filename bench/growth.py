#!/usr/bin/env python3
"""Time and memory against agents, rows, columns, features and ranks, as exponents: time ~ size^a.

usage: growth.py PATH_TO_AFFPCL [--repeats 3] [--only NAME] [--json FILE]

Each case runs one command at four sizes over two decades. CPU-seconds are the least of the repeats, less those of a run
that does nothing. The exponent of time is the slope of the logarithms with a 90 % t interval, and a case fails where the
whole interval lies above its limit. That of memory is the slope between the last two sizes, of the peak less that of a
run that does nothing. Limits are what the work grows with, and a tenth.
"""
import argparse, json, math, pathlib, shutil, sys, tempfile

import numpy as np
from measure import Measure

T90 = {1: 6.314, 2: 2.920}
ROUND = '''[problem]
kind = "gaussian"
agents = {agents}
dim = {dim}
[run]
steps = {steps}
replicates = {replicates}
step_size = 1e-6
[[method]]
kind = "affpcl"
{method}
'''


def table(path, agents, rows, columns, binary=False):
    """`rows` rows of each agent, with slopes that differ."""
    draw = np.random.default_rng(1)
    centre = draw.normal(size=columns)
    parts = []
    for agent in range(agents):
        x = draw.normal(size=(rows, columns))
        y = x @ (centre + 0.5 * draw.normal(size=columns)) + draw.normal(size=rows)
        y = (y > 0).astype(float) if binary else y
        parts.append(np.column_stack([np.full(rows, agent), y, x]))
    header = ",".join(["agent", "y", *(f"x{k}" for k in range(columns))])
    np.savetxt(path, np.concatenate(parts), delimiter=",", header=header, comments="", fmt=["%d", "%.6g"] + ["%.6g"] * columns)


def rounds(folder, agents=100, dim=5, steps=100, replicates=1, method='ratio = "none"'):
    (folder / "spec.toml").write_text(ROUND.format(agents=agents, dim=dim, steps=steps, replicates=replicates, method=method))
    return ["run", str(folder / "spec.toml"), "--quiet", "--threads", "1"]


def fit(folder, agents, rows, columns, *options, binary=False):
    table(folder / "rows.csv", agents, rows, columns, binary)
    return ["fit", str(folder / "rows.csv"), "--target", "y", "--agent", "agent", "--threads", "1", "--quiet",
            *options]


LINEAR = 'ratio = "linear"\nfeatures = "bumps"\np = {p}'
# name: sizes, command of a size, limits of the exponents of time and memory
CASES = {
    "round, agents, no ratio": ([1000, 4642, 21544, 100000], lambda f, n: rounds(f, agents=n, steps=1000), 1.1, 1.1),
    "round, agents, exact ratios": ([300, 900, 2700, 8100], lambda f, n: rounds(f, agents=n, steps=20, method='ratio = "exact"'), 2.1, 1.1),
    "round, agents, learnt ratio": ([1000, 4642, 21544, 100000], lambda f, n: rounds(f, agents=n, steps=200, method=LINEAR.format(p=16)), 1.1, 1.1),
    "round, features of a learnt ratio": ([4, 16, 64, 256], lambda f, p: rounds(f, agents=400, steps=400, method=LINEAR.format(p=p)), 2.1, 2.1),
    "round, dimension": ([5, 20, 80, 320], lambda f, d: rounds(f, agents=200, dim=d, steps=1000), 2.1, 2.1),
    "study, replicates": ([500, 2321, 10772, 50000], lambda f, r: rounds(f, agents=20, steps=60, replicates=r), 1.1, 1.1),
    "fit, rows": ([100, 464, 2154, 10000], lambda f, r: fit(f, 100, r, 10, "--no-score"), 1.1, 1.1),
    "fit, agents": ([100, 464, 2154, 10000], lambda f, n: fit(f, n, 20, 10, "--no-score"), 1.1, 1.1),
    "fit with scores, agents": ([50, 232, 1077, 5000], lambda f, n: fit(f, n, 20, 10), 1.1, 1.1),
    "fit, columns": ([4, 12, 36, 108], lambda f, d: fit(f, 100, 200, d, "--no-score", "--covariance", "diagonal"), 3.1, 2.1),
    "fit, rows of one agent": ([1000, 4642, 21544, 100000], lambda f, r: fit(f, 2, r // 2, 10, "--no-score"), 1.1, 1.1),
    "fit, agents, memory of scores": ([100, 464, 2154, 10000], lambda f, n: fit(f, n, 10, 5), 1.1, 1.1),
    "round, ranks": ([1, 2, 4, 8], lambda f, _: rounds(f, agents=20000, dim=20, steps=400, method=LINEAR.format(p=16)), 0.5, 0.1),
    "fit, ranks": ([1, 2, 4, 8], lambda f, _: fit(f, 2000, 40, 10, "--no-score"), 0.5, 0.1),
    "fit binomial, rows": ([20, 93, 431, 2000], lambda f, r: fit(f, 100, r, 5, "--no-score", "--family", "binomial", binary=True), 1.1, 1.1),
    "fit binomial, agents": ([50, 232, 1077, 5000], lambda f, n: fit(f, n, 20, 5, "--no-score", "--family", "binomial", binary=True), 1.1, 1.1),
}
MPI = ["--allow-run-as-root", "--oversubscribe"]


def start(program, words, size, ranks):
    """What is run: under mpirun, CPU-seconds are those of all ranks, and memory is that of the largest."""
    return (ranks[0], [*ranks[1:], str(size), program, *words]) if ranks else (program, words)


def exponent(sizes, values):
    """The slope of the logarithms, with a 90 % t interval."""
    x, y = np.log(sizes), np.log(values)
    centred = x - x.mean()
    slope = (centred @ y) / (centred @ centred)
    residual = y - y.mean() - slope * centred
    half = T90[len(x) - 2] * math.sqrt(residual @ residual / (len(x) - 2) / (centred @ centred))
    return {"slope": slope, "lo": slope - half, "hi": slope + half}


def case(program, name, repeats, measure):
    sizes, command, time_limit, memory_limit = CASES[name]
    ranks = ["mpirun", *MPI, "-np"] if name.endswith("ranks") else None
    seconds, memory = [], []
    idle = [measure(program, ["--version"]) for _ in range(repeats)]
    none_seconds, none_bytes = min(s for s, _ in idle), min(m for _, m in idle)
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            words = command(pathlib.Path(folder), size)
            runs = [measure(*start(program, words, size, ranks)) for _ in range(repeats)]
        seconds.append(max(1e-3, min(s for s, _ in runs) - none_seconds))
        memory.append(max(1, min(m for _, m in runs) - none_bytes))
    time, grown = exponent(sizes, seconds), math.log(memory[-1] / memory[-2]) / math.log(sizes[-1] / sizes[-2])
    return {"name": name, "sizes": sizes, "seconds": seconds, "bytes": memory, "limits": [time_limit, memory_limit],
            "time": time, "memory": grown, "ok": time["lo"] <= time_limit and grown <= memory_limit}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=CASES)
    parser.add_argument("--json")
    o = parser.parse_args()
    program = str(pathlib.Path(o.affpcl).resolve())
    results, measure = [], Measure()
    print(f"{'':34} {'time ~ size^':30} {'memory ~ size^':22} {'largest':>9} {'memory':>10}", flush=True)
    for name in [o.only] if o.only else CASES:
        if name.endswith("ranks") and not shutil.which("mpirun"):
            print(f"{name:34} mpirun is missing")
            continue
        r = case(program, name, o.repeats, measure)
        results.append(r)
        t, (most, most_memory) = r["time"], r["limits"]
        print(f"{name:34} {t['slope']:4.2f} [{t['lo']:.2f}, {t['hi']:.2f}] (at most {most:g}) "
              f"   {r['memory']:4.2f} (at most {most_memory:g}) {r['seconds'][-1]:9.2f} s {r['bytes'][-1] / 2**20:7.0f} MB"
              f"{'' if r['ok'] else '   ABOVE ITS LIMIT'}", flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0 if all(r["ok"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
