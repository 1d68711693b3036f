#!/usr/bin/env python3
"""What Python costs: a study against the command line, and a problem written in Python against NumPy alone.

usage: python_overhead.py PATH_TO_AFFPCL [ROUNDS]     both built with the same flags: `pip install .` and the preset release

Runs alternate, so that a busy machine is busy for both; the ratio is that of medians. Importing is not counted, starting
the program is.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import affpcl
from affpcl.studies import read_spec

SPEC = {
    "problem": {"kind": "gaussian", "agents": 200, "dim": 10},
    "run": {"steps": 400, "replicates": 20, "step_size": 0.002},
    "method": [{"kind": "affpcl"}, {"kind": "independent"}, {"kind": "fedavg"}],
    "sweep": {"problem.delta_env+problem.delta_obj": [0.0, 0.1, 0.3]},
}
AGENTS, DIM, STEPS = 1000, 20, 200


@affpcl.problem
class Regression(affpcl.Problem):
    """least squares: A(s) = phi phi', b = phi (phi' x_i + noise)"""

    agents: int = AGENTS
    dim: int = DIM

    @property
    def rows(self):
        return self.dim + 1

    def setup(self, key):
        self.x = affpcl.normals(key, self.agents, self.dim, "objective")

    def draw(self, sample):
        return sample.normals(self.dim + 1)

    def apply(self, agents, s, x):
        phi = s[:-1]
        return phi * (phi * x).sum(axis=0)

    def objective(self, agents, s):
        phi = s[:-1]
        return phi * ((phi * self.x[:, agents]).sum(axis=0) + s[-1])

    def mean_apply(self, agents, x):
        return x

    def mean_objective(self, agents):
        return self.x[:, agents]


def by_engine():
    affpcl.run({"problem": {"kind": "regression"}, "run": {"steps": STEPS, "replicates": 1, "step_size": 0.005},
                "method": [{"kind": "independent"}]}, threads=1)


def by_numpy():
    """The same arithmetic on all agents at once."""
    rng = np.random.default_rng(1)
    truth = rng.standard_normal((DIM, AGENTS))
    x = np.zeros((DIM, AGENTS))
    errors = []
    for _ in range(STEPS):
        s = rng.standard_normal((DIM + 1, AGENTS))
        phi = s[:-1]
        b = phi * ((phi * truth).sum(axis=0) + s[-1])
        x -= 0.005 * (phi * (phi * x).sum(axis=0) - b)
        errors.append(((x - truth) ** 2).sum(axis=0).mean())
    return errors


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def compare(what, first, second, rounds):
    first(), second()
    times = [(seconds(first), seconds(second)) for _ in range(rounds)]
    a, b = (statistics.median(t) for t in zip(*times))
    print(f"{what}: {a:.3f} s against {b:.3f} s, ratio {a / b:.3f}; smallest {min(t[0] for t in times):.3f} s against "
          f"{min(t[1] for t in times):.3f} s")


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 9
    with tempfile.TemporaryDirectory() as folder:
        spec = pathlib.Path(folder, "spec.toml")
        spec.write_text(read_spec(SPEC)[0], encoding="utf-8")
        compare("a study, affpcl.run against the command line", lambda: affpcl.run(spec, threads=1),
                lambda: subprocess.run([program, "run", str(spec), "--quiet", "--threads", "1"], check=True), rounds)
    compare(f"a problem in Python (n = {AGENTS}, d = {DIM}, {STEPS} steps) against NumPy alone", by_engine, by_numpy, rounds)


if __name__ == "__main__":
    main()
