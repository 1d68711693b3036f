"""What every method and every problem must satisfy, whoever wrote it. Point these at your own:

    affpcl.testing.check_method("pull_to_mean")
    affpcl.testing.check_problem("mean_estimation")

They run it in the engine, with the properties of tests/conformance.h, and raise AssertionError with what is wrong. Equal
means equal to the bit, except where the order of a sum changes.
"""
from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from affpcl import _core
from affpcl.extend import Problem, problem
from affpcl.studies import Replicate
from affpcl.tables import Array

STEPS = 11  # of period 3 the last round is cut short
SETTINGS = ((1, 1), (1, 2), (3, 1), (3, 2))  # period, batch
PROBLEMS = ("gaussian", "tabular", "least_squares")
SEED = 3

Values = Mapping[str, Any]


__all__ = ["check_method", "check_problem"]


@problem
class ShuffledMeans(Problem):
    """means to estimate, with the agents in another order (for tests)"""

    agents: int = 150
    dim: int = 3
    shuffled: bool = False
    centre: float = 0.0
    spread: float = 1.0

    def setup(self, key: _core.Key) -> None:
        self.order = np.arange(self.agents)
        if self.shuffled:
            self.order = (self.order * 77 + 31) % self.agents  # a permutation of 150
        apart = _core.normals(key, self.agents, self.dim, "environment")[:, self.order]
        self.mean = self.centre + self.spread * apart

    def draw(self, sample: _core.Sample) -> Array:
        noise = _core.normals(sample.key, self.agents, self.dim, "sample")[:, self.order]
        drawn: Array = (noise + self.mean)[:, sample.agents]
        return drawn

    def apply(self, agents: slice, s: Array, x: Array) -> Array:
        return x

    def objective(self, agents: slice, s: Array) -> Array:
        return s

    def mean_apply(self, agents: slice, x: Array) -> Array:
        return x

    def mean_objective(self, agents: slice) -> Array:
        mean: Array = self.mean[:, agents]
        return mean


def fail(about: str, what: str) -> None:
    raise AssertionError(f"{about}: {what}")


class Trial:
    """A method on a problem: what the checks run again and again."""

    def __init__(self, problem: Values, method: Values, period: int = 1, batch: int = 1, *, step_size: float,
                 seed: int = SEED) -> None:
        self.about = f"{method['kind']} on {problem['kind']}, period {period}, batch {batch}"
        self.method = {"name": "it", "period": period, "batch": batch, **method}
        self.spec: dict[str, Any] = {
            "problem": dict(problem),
            "run": {"steps": STEPS, "seed": seed, "step_size": step_size, "tail": 4},
            "method": [self.method],
        }

    def start(self, threads: int = 1) -> Replicate:
        return Replicate(self.spec, threads=threads)

    def picture(self, replicate: Replicate) -> Array:
        """All that a run shows once it has gone to its end."""
        replicate.advance(STEPS)
        return np.concatenate([replicate.solution("it").ravel(), replicate.curve("it")])

    def must_equal(self, replicate: Replicate, want: Array, what: str) -> None:
        found = self.picture(replicate)
        if not np.array_equal(found, want, equal_nan=True):
            fail(self.about, f"{what}; numbers are apart by up to {np.nanmax(np.abs(found - want)):.3g}")


def check_trial(trial: Trial) -> None:
    want = trial.picture(trial.start())
    if not np.isfinite(want).all():
        fail(trial.about, "a number is not finite")
    trial.must_equal(trial.start(), want, "a second run differs from the first")
    for threads in (2, 3):
        trial.must_equal(trial.start(threads), want, f"{threads} threads give other numbers")
    survives_saving(trial, want)
    keeps_nothing_to_itself(trial, want)
    does_not_mind_company(trial, want)


def survives_saving(trial: Trial, want: Array) -> None:
    """Saved after any step and loaded into a fresh run it goes on as if nothing had happened."""
    for at in (1, 4, 9):
        first, second = trial.start(), trial.start()
        first.advance(at)
        second.load(first.save())
        trial.must_equal(second, want, f"saved after step {at} and loaded it goes another way")


def keeps_nothing_to_itself(trial: Trial, want: Array) -> None:
    """All it remembers is in the memory it declared: taken back, the same object does the same again."""
    replicate = trial.start()
    states = [replicate.save()]
    replicate.advance(4)
    states.append(replicate.save())
    replicate.advance(STEPS)
    for state in (states[1], states[0], states[1]):
        replicate.load(state)
        trial.must_equal(replicate, want, f"taken back to step {state[0]} it goes another way: it keeps something to itself")


def does_not_mind_company(trial: Trial, want: Array) -> None:
    """Other methods in the same run change nothing."""
    other = {"kind": "independent", "name": "other", "period": 2}
    trial.must_equal(Replicate({**trial.spec, "method": [other, trial.method]}), want, "another method beside it changes it")


def does_not_mind_the_order(method: Values, period: int, batch: int, step_size: float) -> None:
    """Agents in another order end where they ended before, up to the rounding of sums."""
    found = []
    for shuffled in (False, True):
        trial = Trial({"kind": "shuffled_means", "shuffled": shuffled}, method, period, batch, step_size=step_size)
        replicate = trial.start()
        replicate.advance(STEPS)
        found.append(replicate.solution("it"))
    order = (np.arange(len(found[0])) * 77 + 31) % len(found[0])
    if not np.allclose(found[1], found[0][order], rtol=1e-9, atol=1e-12):
        fail(trial.about, "agents in another order end elsewhere")


def learns(method: Values, step_size: float) -> None:
    """Where agents all want the same, it ends nearer to it than it started."""
    trial = Trial({"kind": "shuffled_means", "agents": 20, "centre": 3.0, "spread": 0.0}, method, step_size=step_size)
    trial.spec["run"]["steps"] = 500
    replicate = trial.start()
    start = replicate.solution("it")
    replicate.advance(500)
    if np.array_equal(replicate.solution("it"), start):
        fail(trial.about, "its x stays where it started: update has to write into it (x -= ..., x[:] = ... or "
                          "block.agent[\"x\"] = ...); x = x - ... only names another array")
    curve = replicate.curve("it")
    if not curve[-1] < curve[0]:
        fail(trial.about, f"it learns nothing: in 500 steps of {step_size:g} its error goes from {curve[0]:.3g} to "
                          f"{curve[-1]:.3g}")


def check_method(kind: str, problem: Values | None = None, *, agents: int = 300, step_size: float = 1e-3,
                 **values: Any) -> None:
    """A method on a problem (a dict as in a spec), or on several of the engine's; values are its parameters.

    >>> import affpcl.testing
    >>> affpcl.testing.check_method("fedavg", {"kind": "gaussian", "agents": 70}, step_size=1e-4)
    """
    method = {"kind": kind, **values}
    chosen = [{"kind": name, "agents": agents} for name in PROBLEMS] if problem is None else [dict(problem)]
    for period, batch in SETTINGS:
        for one in chosen:
            check_trial(Trial(one, method, period, batch, step_size=step_size))
        does_not_mind_the_order(method, period, batch, step_size)
    if problem is None:
        for name in PROBLEMS:
            check_trial(Trial({"kind": name, "agents": 1}, method, step_size=step_size))
    learns(method, step_size)


def check_problem(kind: str, *, step_size: float = 1e-3, **values: Any) -> None:
    """A problem whose parameters may be given: determined by spec and seed, whoever runs it.

    >>> import affpcl.testing
    >>> affpcl.testing.check_problem("gaussian", step_size=1e-4)
    """
    for agents in (1, 2, 150):
        of = {"kind": kind, **values, "agents": agents}
        for method in ("independent", "fedavg"):
            check_trial(Trial(of, {"kind": method}, step_size=step_size))
    alone = {"kind": "independent"}
    first, other = (Trial(of, alone, step_size=step_size, seed=seed) for seed in (SEED, SEED + 1))
    if np.array_equal(first.picture(first.start()), other.picture(other.start())):
        fail(kind, "another seed gives the same numbers")
