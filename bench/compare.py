#!/usr/bin/env python3
"""affpcl against NumPy, PyTorch, Eigen and the limits of this machine; `make bench` runs it.

usage: compare.py BUILD_DIR [--out DIR] [--repeats N] [--seconds S] [--threads N]

Everything is timed in turn, N times over, each for S seconds; a ratio is taken within a repetition, and its median over
the repetitions is shown with a 90 % interval (bootstrap). On one thread the processor's clock counts. First the NumPy
rounds are checked to be the same computation: on affpcl's own samples, drawn again here by Philox and Box-Muller, they
must give the same iterates to 1e-9.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import platform
import resource
import subprocess
import sys
import tempfile
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):  # before numpy is loaded
    os.environ.setdefault(name, os.environ.get("BENCH_THREADS", "1"))
import numpy as np  # noqa: E402

try:
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
except ImportError:
    torch = None

EXACT = [(20, 5), (100, 20), (1000, 20), (1000, 84), (4000, 20)]
LINEAR = [(1000, 20), (10_000, 20), (100_000, 20)]
FEATURES = 32
EPS_A, EPS_B = 1.0, 0.5


# --- affpcl's samples, by the meaning of its streams -------------------------------------------------------------------

SAMPLE, SYSTEM_A, SYSTEM_PHI, THETA, ENVIRONMENT, OBJECTIVE = range(6)


def uniforms(seed, replicate, agent, step, purpose, count):
    """[agents][count] numbers: Philox4x32-10, 52 bits each."""
    blocks = np.arange((count + 1) // 2, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    agent, block = np.broadcast_arrays(np.atleast_1d(np.asarray(agent, np.uint64))[:, None], blocks)
    c = [agent & low, np.full_like(agent, step), np.full_like(agent, replicate),
         np.uint64(purpose << 24) | block]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    to_unit = lambda hi, lo: ((((hi << np.uint64(32)) | lo) >> np.uint64(12)).astype(float) + 0.5) * 2.0 ** -52
    pairs = np.stack([to_unit(c[1], c[0]), to_unit(c[3], c[2])], axis=-1)
    return pairs.reshape(len(agent), -1)[:, :count]


def normals(seed, replicate, agent, step, purpose, count):
    u = uniforms(seed, replicate, agent, step, purpose, count + count % 2)
    r, angle = np.sqrt(-2 * np.log(u[:, 0::2])), 2 * np.pi * u[:, 1::2]
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(len(u), -1)[:, :count]


# --- the system and its rounds -----------------------------------------------------------------------------------------

class System:
    """The paper's synthetic system as affpcl generates it (problem/gaussian.cc)."""

    def __init__(self, n, d, seed=1, delta=0.3):
        agents = np.arange(n)
        R = uniforms(seed, 0, np.arange(d), 0, SYSTEM_A, d)
        G = normals(seed, 0, np.arange(d), 0, SYSTEM_PHI, d)
        self.n, self.d, self.seed = n, d, seed
        self.A, self.Phi = R.T @ R + d * np.eye(d), G.T @ G + d * np.eye(d)
        unit = lambda v: v / np.linalg.norm(v, axis=1, keepdims=True)
        self.m = 4 * delta * unit(normals(seed, 0, agents, 0, ENVIRONMENT, d))
        theta = unit(normals(seed, 0, [0], 0, THETA, d)) + delta * unit(normals(seed, 0, agents, 0, OBJECTIVE, d))
        self.m[0] = 0
        theta[0] -= delta * unit(normals(seed, 0, [0], 0, OBJECTIVE, d))[0]
        self.Phi_theta = theta @ self.Phi

    def sample(self, step):
        return self.m + normals(self.seed, 0, np.arange(self.n), step, SAMPLE, self.d)


def vectorised(P, s, x, xc, thetac, alpha):
    """A round as one writes it at first: whole arrays, every quantity by its formula."""
    noisy = lambda y, eps: y + eps * s * np.sum(s * y, axis=1, keepdims=True)
    b = noisy(P.Phi_theta, EPS_B)
    Axc = noisy(np.broadcast_to(P.A @ xc, s.shape), EPS_A)
    bhat = noisy(np.broadcast_to(P.Phi @ thetac, s.shape), EPS_B)
    gc = Axc - bhat
    density = np.exp(-0.5 * np.sum((s[:, None, :] - P.m[None, :, :]) ** 2, axis=2)) if P.n <= 100 else \
        np.exp(s @ P.m.T - 0.5 * np.sum(P.m ** 2, axis=1) - 0.5 * np.sum(s ** 2, axis=1, keepdims=True))
    rho = density / density.mean(axis=1, keepdims=True)      # [sample][agent]
    rg = rho.T @ gc / P.n
    x = x - alpha * (noisy(x @ P.A.T, EPS_A) - b + rg - gc)
    return x, xc - alpha * (Axc - b).mean(axis=0), thetac - alpha * (bhat - b).mean(axis=0)


class Tuned:
    """The same with nothing allocated, logits shifted by the sample's own, and Z divided out of the small matrix."""

    def __init__(self, P, dtype=np.float64):
        as_type = lambda v: np.ascontiguousarray(v, dtype)
        self.n, self.A, self.Phi = P.n, as_type(P.A), as_type(P.Phi)
        self.m, self.mT, self.Phi_theta = as_type(P.m), as_type(P.m.T), as_type(P.Phi_theta)
        self.half = as_type(0.5 * np.sum(P.m ** 2, axis=1))
        self.w = np.empty((P.n, P.n), dtype)
        self.y = np.empty_like(self.m)

    def noisy(self, s, y, eps):
        dot = np.einsum("id,id->i", s, np.broadcast_to(y, s.shape))
        np.multiply(s, (eps * dot)[:, None], out=self.y)
        return self.y + y

    def __call__(self, s, x, xc, thetac, alpha):
        b = self.noisy(s, self.Phi_theta, EPS_B)
        Axc = self.noisy(s, self.A @ xc, EPS_A)
        bhat = self.noisy(s, self.Phi @ thetac, EPS_B)
        gc = Axc - bhat
        np.dot(s, self.mT, out=self.w)
        shift = np.einsum("id,id->i", s, self.m) - self.half
        self.w -= self.half
        self.w -= shift[:, None]
        np.exp(self.w, out=self.w)
        rg = self.w.T @ (gc / self.w.sum(axis=1)[:, None])
        g = self.noisy(s, x @ self.A.T, EPS_A)
        g -= b
        g += rg
        g -= gc
        g *= alpha
        return x - g, xc - alpha * (Axc - b).mean(axis=0), thetac - alpha * (bhat - b).mean(axis=0)


class Torch:
    """Tuned, in PyTorch."""

    def __init__(self, P, dtype):
        t = lambda v: torch.tensor(np.ascontiguousarray(v), dtype=dtype)
        self.A, self.Phi, self.m, self.Phi_theta = t(P.A), t(P.Phi), t(P.m), t(P.Phi_theta)
        self.half = t(0.5 * np.sum(P.m ** 2, axis=1))

    def __call__(self, s, x, xc, thetac, alpha):
        noisy = lambda y, eps: y + eps * s * (s * y).sum(1, keepdim=True)
        b, Axc, bhat = noisy(self.Phi_theta, EPS_B), noisy(self.A @ xc, EPS_A), noisy(self.Phi @ thetac, EPS_B)
        gc = Axc - bhat
        w = torch.exp(torch.addmm(-self.half, s, self.m.T) - ((s * self.m).sum(1) - self.half)[:, None])
        rg = w.T @ (gc / w.sum(1, keepdim=True))
        x = x - alpha * (noisy(x @ self.A.T, EPS_A) - b + rg - gc)
        return x, xc - alpha * (Axc - b).mean(0), thetac - alpha * (bhat - b).mean(0)


class LinearRatio:
    """A round with a learnt linear ratio (density/linear.h): bumps, sums, one p x p inverse, James-Stein."""

    def __init__(self, P):
        rng = np.random.default_rng(1)
        self.P, self.n = P, P.n
        self.c = P.m[rng.integers(P.n, size=FEATURES)] + rng.standard_normal((FEATURES, P.d))
        self.width2 = 2.0 * P.d
        self.bias = -0.5 * np.sum(self.c ** 2, axis=1) / self.width2
        self.own, self.fresh = np.zeros((P.n, FEATURES)), np.zeros((P.n, FEATURES))
        self.G, self.psi0 = np.eye(FEATURES), np.zeros(FEATURES)

    def __call__(self, s, x, xc, thetac, alpha):
        P = self.P
        noisy = lambda y, eps: y + eps * s * np.einsum("id,id->i", s, np.broadcast_to(y, s.shape))[:, None]
        b, Axc, bhat = noisy(P.Phi_theta, EPS_B), noisy(P.A @ xc, EPS_A), noisy(P.Phi @ thetac, EPS_B)
        gc = Axc - bhat
        psi = s @ (self.c.T / self.width2)
        psi += self.bias
        psi -= psi.max(axis=1, keepdims=True)
        np.exp(psi, out=psi)
        psi /= psi.sum(axis=1, keepdims=True)
        self.own += self.fresh
        M, G, psi0 = psi.T @ gc / self.n, psi.T @ psi / self.n, psi.mean(axis=0)
        W = np.linalg.pinv(self.G)
        V = self.own - self.psi0
        eta = V @ W
        X2 = np.einsum("ip,ip->i", V, eta)
        weight = np.maximum(0, 1 - (FEATURES - 3) / np.maximum(X2, 1e-300))
        rg = gc.mean(axis=0) + weight[:, None] * (eta @ M)
        self.fresh, self.G, self.psi0 = psi, self.G + G, self.psi0 + psi0
        x = x - alpha * (noisy(x @ P.A.T, EPS_A) - b + rg - gc)
        return x, xc - alpha * (Axc - b).mean(axis=0), thetac - alpha * (bhat - b).mean(axis=0)


def check_same(program):
    """The rounds above against `affpcl run --trace`, on the same samples."""
    worst = 0
    for n, d in ((20, 5), (70, 7)):
        spec = f"""
[problem]
kind = "gaussian"
agents = {n}
dim = {d}
[run]
steps = 5
replicates = 1
seed = 1
step_size = 0.01
[[method]]
kind = "affpcl"
"""
        with tempfile.TemporaryDirectory() as folder:
            path, trace = pathlib.Path(folder, "spec.toml"), pathlib.Path(folder, "trace.csv")
            path.write_text(spec)
            subprocess.run([program, "run", path, "--quiet", "--trace", trace], check=True, stdout=subprocess.DEVNULL)
            rows = list(csv.DictReader(trace.open()))
        want = np.zeros((n, d))
        for row in rows:
            if row["what"] == "x" and row["step"] == "5":
                want[int(row["agent"]), int(row["index"])] = float(row["value"])
        P = System(n, d)
        for step in (lambda *a: vectorised(P, *a), Tuned(P)):
            x, xc, thetac = np.zeros((n, d)), np.zeros(d), np.zeros(d)
            for t in range(5):
                x, xc, thetac = step(P.sample(t), x, xc, thetac, 0.01)
            worst = max(worst, np.abs(x - want).max() / np.abs(want).max())
    if not worst < 1e-9:
        sys.exit(f"compare.py: NumPy's iterates differ from affpcl's by {worst:.1e}: not the same computation")
    return worst


# --- timing --------------------------------------------------------------------------------------------------------------

def clock(threads):
    return time.thread_time if threads == 1 else time.perf_counter


def time_python(step, n, d, dtype, seconds, threads, draw):
    x, xc, thetac = draw.zeros((n, d)), draw.zeros(d), draw.zeros(d)
    now, times = clock(threads), []
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds or len(times) < 3:
        start = now()
        x, xc, thetac = step(draw.normal(), x, xc, thetac, dtype(1e-5) if dtype else 1e-5)
        times.append(now() - start)
    return sorted(times)[len(times) // 2]


class NumpyDraw:
    def __init__(self, P, dtype=np.float64):
        self.rng, self.m, self.dtype = np.random.default_rng(1), P.m.astype(dtype), dtype
        self.zeros = lambda shape: np.zeros(shape, dtype)

    def normal(self):
        s = self.rng.standard_normal(self.m.shape, dtype=self.dtype)
        s += self.m
        return s


class TorchDraw:
    def __init__(self, P, dtype):
        self.m, self.dtype = torch.tensor(P.m, dtype=dtype), dtype
        self.zeros = lambda shape: torch.zeros(shape, dtype=dtype)

    def normal(self):
        return self.m + torch.randn(self.m.shape, dtype=self.dtype)


def ours(program, n, d, seconds, ratio="exact", precision="f64", threads=1):
    text = subprocess.run([program, "bench", "--json", "--case", f"{n},{d},{ratio},{precision}", "--seconds", str(seconds),
                           "--threads", str(threads)], check=True, capture_output=True, text=True).stdout
    result = json.loads(text)
    return result["rounds"][0] | {"limits": result["limits"]}


def contestants(build, n, d, ratio, seconds, threads, told):
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
        all["PyTorch"] = python(Torch(P, torch.float64), None, TorchDraw(P, torch.float64))
        all["PyTorch f32"] = python(Torch(P, torch.float32), None, TorchDraw(P, torch.float32))
    return all


def interval(values):
    """Median and 90 % interval (bootstrap)."""
    values = np.asarray(values)
    medians = np.median(np.random.default_rng(0).choice(values, (2000, len(values))), axis=1)
    return [float(np.median(values)), *map(float, np.quantile(medians, [0.05, 0.95]))]


def study_seconds(build, repeats):
    """The paper's comparison: 10 replicates x 60 steps of AffPCL, independent learning, FedAvg (n = 20, d = 5).

    Processor seconds; affpcl's are of the whole program, its start and its report among them. NumPy's are without Python's
    start, so the study alone is given too, by the clock on the wall (the only one it has).
    """
    spec = ('[problem]\nkind = "gaussian"\n[run]\nsteps = 60\nreplicates = 10\n'
            '[[method]]\nkind = "affpcl"\n[[method]]\nkind = "independent"\n[[method]]\nkind = "fedavg"\n')
    def numpy_study():
        for replicate in range(10):
            P = System(20, 5, seed=1 + replicate)
            step, draw = Tuned(P), NumpyDraw(P)
            x, xc, thetac, alone, fed = (np.zeros(shape) for shape in ((20, 5), 5, 5, (20, 5), 5))
            target = np.linalg.solve(P.A, P.Phi_theta.T).T
            for _ in range(60):
                s = draw.normal()
                x, xc, thetac = step(s, x, xc, thetac, 0.01)
                b = step.noisy(s, step.Phi_theta, EPS_B)
                alone = alone - 0.01 * (step.noisy(s, alone @ P.A.T, EPS_A) - b)
                fed = fed - 0.01 * (step.noisy(s, P.A @ fed, EPS_A) - b).mean(axis=0)
                for iterate in (x, alone, fed):
                    ((iterate - target) ** 2).sum(axis=1).mean()
    times = {"affpcl": [], "alone": [], "NumPy tuned": []}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "spec.toml")
        path.write_text(spec)
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            summary = subprocess.run([build / "affpcl", "run", path, "--json", "--threads", "1"], check=True, capture_output=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times["affpcl"].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            times["alone"].append(json.loads(summary)["manifest"]["seconds"])
            start = time.thread_time()
            numpy_study()
            times["NumPy tuned"].append(time.thread_time() - start)
    return times


# --- the report ------------------------------------------------------------------------------------------------------------

def us(seconds):
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def markdown(results):
    show = lambda r: f"{r[0]:.2f} [{r[1]:.2f}, {r[2]:.2f}]"
    lines = [f"Machine: {results['machine']}; {results['instruction_set']}; load when it began {results['load'][0]:.1f}, "
             f"when it ended {results['load'][1]:.1f}; {results['repeats']} repetitions, {results['threads']} thread(s).", ""]
    L = results["limits"]
    lines += [f"Limits of one core: {L['fma_f64'] / 1e9:.1f} Gflop/s (f32 {L['fma_f32'] / 1e9:.1f}), {L['exp_f64'] / 1e9:.2f} Gexp/s "
              f"(f32 {L['exp_f32'] / 1e9:.2f}), {L['normals'] / 1e6:.0f} M normals/s, copying {L['bandwidth'] / 1e9:.1f} GB/s.", "",
              "| n, d, ratio | contestant | a round | at best | times as long as affpcl | as affpcl f32 | share of the limit |",
              "|---|---|---|---|---|---|---|"]
    for case in results["rounds"]:
        for name, entry in case["contestants"].items():
            percent = [f"{100 * value:.0f}" for value in entry.get("share", ())]
            share = f"{percent[0]} % [{percent[1]}, {percent[2]}]" if percent else ""
            single = show(entry["ratio_f32"]) if "ratio_f32" in entry else ""
            least = us(entry["least"]) if "least" in entry else ""
            lines.append(f"| {case['n']}, {case['d']}, {case['ratio']} | {name} | {us(entry['seconds'][0])} | {least} | "
                         f"{show(entry['ratio'])} | {single} | {share} |")
    lines += ["", *(f"Growth of the time with n, {name}: n^{value:.2f}." for name, value in results["exponents"].items())]
    if "study" in results:
        s = results["study"]
        lines += ["", f"The paper's comparison (10 replicates x 60 steps x 3 methods): affpcl {us(s['affpcl'][0])}, tuned NumPy "
                  f"{us(s['NumPy tuned'][0])}, ratio {show(s['ratio'])}; without the program's start and report "
                  f"{us(s['alone'][0])}, ratio {show(s['ratio_alone'])}."]
    if not torch:
        lines += ["", "PyTorch is missing here (Debian: python3-torch), so there is no column for it."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/bench"))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.2)
    args = parser.parse_args()
    threads = int(os.environ["OMP_NUM_THREADS"])
    program = str(args.build / "affpcl")
    print(f"the same computation: iterates agree to {check_same(program):.1e}", flush=True)

    load = [os.getloadavg()[0]]
    results = {"machine": f"{platform.processor() or platform.machine()}, {os.cpu_count()} processors, {platform.platform()}",
               "instruction_set": "", "repeats": args.repeats, "threads": threads, "limits": {}, "rounds": [], "exponents": {}}
    for cpu in pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else []:
        if cpu.startswith("model name"):
            results["machine"] = f"{cpu.split(':')[1].strip()}, {os.cpu_count()} processors"
    grown = {"exact": [], "linear": []}
    for n, d, ratio in [(*c, "exact") for c in EXACT] + [(*c, "linear") for c in LINEAR]:
        told = {}
        who = contestants(args.build, n, d, ratio, args.seconds, threads, told)
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
    for ratio, points in grown.items():
        results["exponents"][ratio] = float(np.polyfit(*np.array(points).T, 1)[0])
    if threads == 1:
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
