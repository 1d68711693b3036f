"""Rounds of AffPCL in NumPy and PyTorch, and that they are affpcl's: the same iterates on the same samples."""
import csv
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from paper_system import EPS_A, EPS_B, FEATURES, System

try:
    import torch
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
except ImportError:
    torch = None


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
