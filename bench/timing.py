"""Clocks, medians and intervals of bench/."""
import time

import numpy as np


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
    def __init__(self, torch, P, dtype):
        self.torch, self.dtype = torch, dtype
        self.m = torch.tensor(P.m, dtype=dtype)
        self.zeros = lambda shape: torch.zeros(shape, dtype=dtype)

    def normal(self):
        return self.m + self.torch.randn(self.m.shape, dtype=self.dtype)


def interval(values):
    """Median and 90 % interval (bootstrap)."""
    values = np.asarray(values)
    medians = np.median(np.random.default_rng(0).choice(values, (2000, len(values))), axis=1)
    return [float(np.median(values)), *map(float, np.quantile(medians, [0.05, 0.95]))]
