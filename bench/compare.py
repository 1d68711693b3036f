#!/usr/bin/env python3
"""affpcl against NumPy, PyTorch, JAX, Numba, Eigen and the limits of this machine; `make bench` runs it.

usage: compare.py BUILD_DIR [--out DIR] [--repeats N] [--seconds S] [--only N,D,RATIO]     BENCH_THREADS=2: on two threads

Everything is timed in turn, N times over, each for S seconds; a ratio is taken within a repetition, and its median over
the repetitions is shown with a 90 % interval (bootstrap). On one thread the processor's clock counts. First the NumPy
rounds are checked to be the same computation: on affpcl's own samples, drawn again here by Philox and Box-Muller, they
must give the same iterates to 1e-9; those of JAX and Numba are checked against NumPy's.
"""
import argparse
import json
import math
import os
import pathlib
import platform
import subprocess

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is loaded
    os.environ.setdefault(name, os.environ.get("BENCH_THREADS", "1"))
import numpy as np  # noqa: E402
from compiled import Compiled  # noqa: E402
from paper_comparison import study_seconds  # noqa: E402
from paper_system import System  # noqa: E402
from report import markdown, us  # noqa: E402
from rounds_numpy import LinearRatio, Torch, Tuned, check_same, torch, vectorised  # noqa: E402
from timing import NumpyDraw, TorchDraw, interval, time_python  # noqa: E402

EXACT = [(20, 5), (100, 20), (1000, 20), (1000, 84), (4000, 20)]
LINEAR = [(1000, 20), (10_000, 20), (100_000, 20)]


def ours(program, n, d, seconds, ratio="exact", precision="f64", threads=1):
    text = subprocess.run([program, "bench", "--json", "--case", f"{n},{d},{ratio},{precision}", "--seconds", str(seconds),
                           "--threads", str(threads)], check=True, capture_output=True, text=True).stdout
    result = json.loads(text)
    return result["rounds"][0] | {"limits": result["limits"]}


def contestants(build, compiled, n, d, ratio, seconds, threads, told):
    """name -> a function that gives seconds of a round; what affpcl says of its own is added to `told`."""
    program, P = str(build / "affpcl"), System(n, d)

    def affpcl(name, precision="f64"):
        def run():
            told.setdefault(name, []).append(ours(program, n, d, seconds, ratio, precision, threads))
            return told[name][-1]["seconds"]
        return {name: run}

    python = lambda step, dtype, draw: lambda: time_python(step, n, d, dtype, seconds, threads, draw)
    if ratio == "linear":
        return affpcl("affpcl") | {"NumPy": python(LinearRatio(P), None, NumpyDraw(P))}
    all = {**affpcl("affpcl"), **affpcl("affpcl f32", "f32"),
           "NumPy vectorised": python(lambda *a: vectorised(P, *a), None, NumpyDraw(P)),
           "NumPy tuned": python(Tuned(P), None, NumpyDraw(P)),
           "NumPy tuned f32": python(Tuned(P, np.float32), np.float32, NumpyDraw(P, np.float32))}
    if threads == 1:
        all["Eigen"] = lambda: float(subprocess.run([build / "eigen_round", str(n), str(d), str(seconds)], check=True,
                                                    capture_output=True, text=True).stdout)
    if torch:
        all["PyTorch"] = python(Torch(P, torch.float64), None, TorchDraw(torch, P, torch.float64))
        all["PyTorch f32"] = python(Torch(P, torch.float32), None, TorchDraw(torch, P, torch.float32))
    for name in compiled.names:
        all[name] = lambda name=name: compiled.seconds(name, n, d, seconds)
    return all


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--only", help="one case, such as 1000,20,exact")
    args = parser.parse_args()
    threads = int(os.environ["OMP_NUM_THREADS"])
    program = str(args.build / "affpcl")
    compiled = Compiled(threads)
    for name in compiled.names:
        print(f"{name}: iterates agree to {compiled.check(name):.1e}", flush=True)
    print(f"the same computation: iterates agree to {check_same(program):.1e}", flush=True)

    load = [os.getloadavg()[0]]
    results = {"machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, {platform.platform()}",
               "instruction_set": "", "repeats": args.repeats, "threads": threads, "limits": {}, "rounds": [], "exponents": {}, "missing": compiled.missing}
    if not torch:
        results["missing"].append("PyTorch is missing here (Debian: python3-torch).")
    for cpu in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else []:
        if cpu.startswith("model name"):
            results["machine"] = f"{cpu.split(':')[1].strip()}, {os.cpu_count()} processors"
    grown = {"exact": [], "linear": []}
    for n, d, ratio in [(*c, "exact") for c in EXACT] + [(*c, "linear") for c in LINEAR]:
        if args.only and args.only != f"{n},{d},{ratio}":
            continue
        told = {}
        who = contestants(args.build, compiled, n, d, ratio, args.seconds, threads, told)
        times = {name: [] for name in who}
        for _ in range(args.repeats):
            for name, run in who.items():
                times[name].append(run())
        table = {}
        for name, values in times.items():
            table[name] = {"seconds": interval(values), "ratio": interval(np.divide(values, times["affpcl"]))}
            if "affpcl f32" in times:
                table[name]["ratio_f32"] = interval(np.divide(values, times["affpcl f32"]))
        for name, rounds in told.items():
            table[name]["least"] = min(r["least_seconds"] for r in rounds)
            if rounds[0]["share_of_limit"] is not None:
                table[name]["share"] = interval([r["share_of_limit"] for r in rounds])
            for r in rounds:
                results["limits"] = {k: max(v, results["limits"].get(k, 0)) for k, v in r["limits"].items()}
        results["rounds"].append({"n": n, "d": d, "ratio": ratio, "contestants": table})
        if d == 20 and (ratio == "linear" or n >= 100):
            grown[ratio].append((math.log(n), math.log(table["affpcl"]["seconds"][0])))
        print(f"n = {n}, d = {d}, {ratio}: " + ", ".join(f"{k} {us(v['seconds'][0])}" for k, v in table.items()), flush=True)
    for ratio, points in ((r, p) for r, p in grown.items() if len(p) > 1):
        results["exponents"][ratio] = float(np.polyfit(*np.array(points).T, 1)[0])
    if threads == 1 and not args.only:
        study = study_seconds(args.build, args.repeats)
        results["study"] = {name: interval(values) for name, values in study.items()}
        results["study"]["ratio"] = interval(np.divide(study["NumPy tuned"], study["affpcl"]))
        results["study"]["ratio_alone"] = interval(np.divide(study["NumPy tuned"], study["alone"]))
    results["instruction_set"] = json.loads(subprocess.run([program, "bench", "--json", "--case", "2,2", "--seconds", "0.01"],
                                                           capture_output=True, text=True).stdout)["instruction_set"]
    results["load"] = load + [os.getloadavg()[0]]
    args.out.mkdir(parents=True, exist_ok=True)
    (args.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (args.out / "results.md").write_text(markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
