"""Problems and methods of one's own, written against blocks of agents.

Parameters are class attributes with a type and a default; a spec gives them other values. Arrays have one column per
agent of the block. Those of a block or a sample are for the call they were given to: what is written into them is taken
over when it ends.
"""
from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any, Callable, TypeVar

from affpcl import _core
from affpcl.tables import Array

Parameter = bool | int | float | str


class Problem:
    """What agents face: samples s, and from them A(s) x and b(s). `agents` and `dim` are among its parameters.

    `apply` may be any function of s and x. Only `mean_apply`, which gives the true solution, needs a linear system.

    >>> import affpcl
    >>> @affpcl.problem
    ... class Shifted(affpcl.Problem):
    ...     'every agent estimates its own mean'
    ...     agents: int = 3
    ...     dim: int = 2
    ...     def draw(self, sample):
    ...         return sample.normals(self.dim)
    ...     def apply(self, agents, s, x):
    ...         return x
    ...     def objective(self, agents, s):
    ...         return s
    ...     def mean_apply(self, agents, x):
    ...         return x
    ...     def mean_objective(self, agents):
    ...         import numpy as np
    ...         return np.zeros((self.dim, agents.stop - agents.start))
    >>> "shifted" in affpcl.catalogue()["problems"]
    True
    """

    agents: int
    dim: int
    k = 0  # weights theta of the objective b = Phi theta; 0: there is no Phi
    p = 0  # features psi for learnt density ratios
    memory = 0  # rows an agent remembers between samples
    acts = False  # what is drawn depends on the iterate
    G_A = 0.0  # a bound of |A(s)|, for step-size rules; 0: not known
    start = 0.0  # where all coordinates start

    @property
    def rows(self) -> int:
        """Numbers in a sample."""
        return self.dim

    @property
    def has_means(self) -> bool:
        """Whether the truth is known: then errors can be told."""
        return type(self).mean_apply is not Problem.mean_apply

    @property
    def has_coe(self) -> bool:
        """Whether the central objective has a direction of its own."""
        return type(self).coe is not Problem.coe

    @property
    def has_error(self) -> bool:
        """Whether errors are the problem's own."""
        return type(self).error is not Problem.error

    def setup(self, key: _core.Key) -> None:
        """Makes one replicate's instance, with random numbers of the key."""

    def draw(self, sample: _core.Sample) -> Array:
        """[rows, agents]: a sample of every agent of the block."""
        raise NotImplementedError(f"{type(self).__name__} needs draw(sample)")

    def apply(self, agents: slice, s: Array, x: Array) -> Array:
        """A(s) x, or any G(s, x); x may be one column for all agents."""
        raise NotImplementedError(f"{type(self).__name__} needs apply(agents, s, x)")

    def objective(self, agents: slice, s: Array) -> Array:
        """b(s)."""
        raise NotImplementedError(f"{type(self).__name__} needs objective(agents, s)")

    def Phi(self, agents: slice, s: Array, theta: Array) -> Array:
        """Phi(s) theta, where k > 0."""
        raise NotImplementedError(f"{type(self).__name__} has k > 0 and needs Phi(agents, s, theta)")

    def coe(self, agents: slice, s: Array, b: Array, theta: Array) -> Array:
        """[k, agents]: the direction in which theta^c is learnt, if it is not Phi(s) theta - b; needed unless k = dim.

        Outcome channels c with rewards r = c' theta: c (c' theta - r). It is linear in theta; where there is one, theta^c
        is solved from sums unless a spec says objective = "learnt".
        """
        raise NotImplementedError

    def error(self, agents: slice, x: Array) -> Array:
        """[1, agents]: the error of x where it is not the squared distance to the solution."""
        raise NotImplementedError

    def psi(self, agents: slice, s: Array) -> Array:
        """[p, agents]: features for learnt density ratios."""
        raise NotImplementedError(f"{type(self).__name__} has p > 0 and needs psi(agents, s)")

    def mean_apply(self, agents: slice, x: Array) -> Array:
        """The expectation of A(s) x, if it is known; then mean_objective is needed too."""
        raise NotImplementedError

    def mean_objective(self, agents: slice) -> Array:
        """The expectation of b(s)."""
        raise NotImplementedError(f"{type(self).__name__} has mean_apply and needs mean_objective(agents)")

    def mean_Phi(self, agents: slice, theta: Array) -> Array:
        """The expectation of Phi(s) theta, where k > 0."""
        raise NotImplementedError(f"{type(self).__name__} has k > 0 and needs mean_Phi(agents, theta)")

    def mean_coe(self, agents: slice, theta: Array) -> Array:
        """The expectation of coe, where there is one."""
        raise NotImplementedError(f"{type(self).__name__} has coe and mean_apply and needs mean_coe(agents, theta)")


@dataclasses.dataclass(frozen=True)
class Memory:
    """What a method keeps per agent, at the centre, and adds up: names and rows.

    >>> from affpcl import Memory
    >>> Memory(agent={"x": 3}, sum={"x": 3}).centre
    {}
    """

    agent: dict[str, int] = dataclasses.field(default_factory=dict)
    centre: dict[str, int] = dataclasses.field(default_factory=dict)
    sum: dict[str, int] = dataclasses.field(default_factory=dict)


class Method:
    """A method of learning together: declare, update, and where something is shared, contribute and centre.

    The field "x" of d rows, an agent's or else the centre's, is what is scored. Fields start at 0, "x" where the
    problem starts. A method with a sum also defines

        contribute(self, block) -> dict of arrays, one per field of the sum
        centre(self, mean, centre)    both by name, [rows, 1] arrays; centre's are to be changed

    >>> import affpcl
    >>> @affpcl.method
    ... class Alone(affpcl.Method):
    ...     'each agent on its own'
    ...     def declare(self, shape):
    ...         return affpcl.Memory(agent={"x": shape.d})
    ...     def update(self, block):
    ...         for k in range(block.steps):
    ...             block.agent["x"] -= block.step_size(k) * block.residual(k, block.agent["x"])
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 20, "replicates": 2},
    ...                      "method": [{"kind": "alone"}]})
    >>> result.methods
    ['alone']
    """

    def declare(self, shape: _core.Shape) -> Memory:
        """What it remembers, by name and width: of each agent, of the centre, and of the sum."""
        raise NotImplementedError(f"{type(self).__name__} needs declare(shape)")

    def update(self, block: _core.Block) -> None:
        """Every agent's step: writes into block.agent["x"] (x -= ..., x[:] = ...) or assigns to it.

        x = x - ... only names another array, and changes nothing.
        """


P = TypeVar("P", bound=type[Problem])
M = TypeVar("M", bound=type[Method])


def parameters(cls: type) -> dict[str, Parameter]:
    """The annotated class attributes that have a value."""
    found: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        for name in inspect.get_annotations(base):
            if base not in (Problem, Method) and hasattr(cls, name):
                value = getattr(cls, name)
                if not isinstance(value, (bool, int, float, str)):
                    raise TypeError(f"{cls.__name__}.{name} = {value!r} is no parameter: bool, int, float or str")
                found[name] = value
    return found


def spec_name(cls: type) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()


def with_values(thing: Any, values: dict[str, Parameter]) -> Any:
    for name, value in values.items():
        setattr(thing, name, value)
    return thing


def make_problem(cls: type[Problem]) -> Callable[[dict[str, Parameter], _core.Key], Problem]:
    def make(values: dict[str, Parameter], key: _core.Key) -> Problem:
        made: Problem = with_values(cls(), values)
        made.setup(key)
        return made

    return make


def doc_line(cls: type) -> str:
    return (cls.__doc__ or "").strip().partition("\n")[0]


def problem(cls: P) -> P:
    """Makes a class known as a problem: MeanEstimation is kind = "mean_estimation" in specs from then on.

    >>> import affpcl
    >>> affpcl.problem(type("TwoPoints", (affpcl.Problem,), {"__doc__": "two points"})).__name__
    'TwoPoints'
    >>> affpcl.catalogue()["problems"]["two_points"]["doc"]
    'two points'
    """
    _core.add_problem(spec_name(cls), doc_line(cls), parameters(cls), make_problem(cls))
    return cls


def method(cls: M) -> M:
    """Makes a class known as a method: PullToMean is kind = "pull_to_mean" in specs from then on.

    >>> import affpcl
    >>> affpcl.method(type("StandStill", (affpcl.Method,), {"__doc__": "no step at all"})).__name__
    'StandStill'
    >>> affpcl.catalogue()["methods"]["stand_still"]["doc"]
    'no step at all'
    """
    _core.add_method(spec_name(cls), doc_line(cls), parameters(cls), lambda values: with_values(cls(), values))
    return cls
