"""Agents on variants of Gymnasium environments: FrozenLake, CartPole, MountainCar (`pip install affpcl[gym]`).

`gym_control` is SARSA with linear action values, every agent acting by softmax(Q / temperature) of its own iterate.
`gym_evaluation` is TD(0): state values of one fixed policy. Agents differ in physics (`variation`) and in what they
are rewarded for (`reward_variation`). Gymnasium makes every transition; its random numbers come from the streams, so
runs repeat to the bit and can be saved.

    import affpcl, affpcl.gym
    affpcl.run({"problem": {"kind": "gym_control", "environment": "frozen_lake", "agents": 8},
                "run": {"steps": 4000, "step_size": 0.2}, "method": [{"kind": "affpcl", "ratio": "linear"}]})
"""
from __future__ import annotations

import math
from typing import Any, Callable, ClassVar

import numpy

try:
    import gymnasium
except ImportError as error:  # pragma: no cover
    raise ImportError("affpcl.gym needs Gymnasium: pip install 'affpcl[gym]' or pip install gymnasium") from error

from affpcl import _core
from affpcl.extend import Problem, problem
from affpcl.tables import Array, Table

__all__ = ["fourier", "grid", "tabular", "take_returns", "tiles"]

_returns: list[tuple[int, int, int, float]] = []


def take_returns() -> Table:
    """The undiscounted returns of all episodes that ended since the last call, for one method at a time.

    Columns: replicate, step (at which it ended), agent, value.

    >>> import affpcl, affpcl.gym
    >>> result = affpcl.run({"problem": {"kind": "gym_control", "environment": "frozen_lake", "agents": 2},
    ...                      "run": {"steps": 200, "step_size": 0.2}, "method": [{"kind": "independent"}]})
    >>> affpcl.gym.take_returns().rows > 0
    True
    """
    columns = [numpy.array(c) for c in zip(*_returns)] if _returns else [numpy.empty(0)] * 4
    _returns.clear()
    return Table(dict(zip(("replicate", "step", "agent", "value"), columns)))


UNIFORMS = 8  # that a step may use: next action, transition, first action of an episode, one spare, four of a reset


class Uniforms:
    """Stands in for an environment's random generator: the next of the numbers it was given."""

    def __init__(self) -> None:
        self.numbers: list[float] = []

    def random(self) -> float:
        return self.numbers.pop(0)

    def uniform(self, low: Any, high: Any, size: tuple[int, ...] | None = None) -> Any:
        if size is None:
            return low + (high - low) * self.random()
        return numpy.array([low + (high - low) * self.random() for _ in range(math.prod(size))]).reshape(size)


class World:
    """One agent's variant of an environment. Its whole state is a few numbers, so that it can be put anywhere."""

    name: ClassVar[str]
    size: ClassVar[int]  # numbers in a state
    low: ClassVar[list[float]]  # what features are scaled to
    high: ClassVar[list[float]]
    ratio_bins: ClassVar[int]  # per number, of the cells in which learnt ratios are counted
    limit: ClassVar[int]  # steps of an episode
    channels: ClassVar[int]  # what agents weigh: rewards are weights' channels

    def __init__(self, variation: Array, rewards: Array, **options: Any) -> None:
        env: Any = gymnasium.make(self.name, **options)
        self.env: Any = env.unwrapped
        self.actions = int(self.env.action_space.n)
        self.uniforms = Uniforms()
        self.env._np_random = self.uniforms
        self.weights = self.weigh(rewards)

    def weigh(self, rewards: Array) -> Array:
        """The agent's weights of the channels, from its variation."""
        raise NotImplementedError

    def channel(self, found: Array, ended: bool) -> Array:
        """What rewards are made of: numbers that every agent sees of a transition."""
        raise NotImplementedError

    def put(self, state: Array) -> None:
        self.env.state = numpy.array(state, dtype=float)

    def state(self) -> Array:
        return numpy.asarray(self.env.state, dtype=float)

    def reset(self, uniforms: Array) -> Array:
        self.uniforms.numbers = list(uniforms)
        self.env.reset()
        return self.state()

    def step(self, state: Array, action: int, uniform: float) -> tuple[Array, Array, bool]:
        """The next state, the reward's channels, and whether the episode ends there."""
        self.put(state)
        self.uniforms.numbers = [uniform]
        _, _, ended, _, _ = self.env.step(action)
        found = self.state()
        return found, self.channel(found, bool(ended)), bool(ended)

    def policy(self, state: Array) -> Array:
        """Probabilities of the actions of a policy worth evaluating."""
        return numpy.full(self.actions, 1 / self.actions)


class FrozenLake(World):
    """The lake is more or less slippery; the goal is worth more or less, and falling in costs something."""

    name = "FrozenLake-v1"
    size, low, high, limit, channels = 1, [0.0], [15.0], 100, 2

    def __init__(self, variation: Array, rewards: Array) -> None:
        super().__init__(variation, rewards, success_rate=float(0.7 + 0.25 * variation[0]))

    def weigh(self, rewards: Array) -> Array:
        return numpy.array([1 + 0.5 * rewards[0], -0.2 * (1 + rewards[1])])

    def channel(self, found: Array, ended: bool) -> Array:
        """Reached the goal, fell in."""
        goal = ended and found[0] == 15
        return numpy.array([float(goal), float(ended and not goal)])

    def put(self, state: Array) -> None:
        self.env.s = int(state[0])

    def state(self) -> Array:
        return numpy.array([float(self.env.s)])


class CartPole(World):
    """Gravity, pole and push differ; agents weigh an upright pole and a centred cart differently."""

    name = "CartPole-v1"
    ratio_bins = 2
    size, low, high, limit, channels = 4, [-2.4, -3.0, -0.21, -3.0], [2.4, 3.0, 0.21, 3.0], 500, 4

    def __init__(self, variation: Array, rewards: Array) -> None:
        super().__init__(variation, rewards)
        env, factor = self.env, 1 + 0.4 * variation
        env.gravity *= factor[0]
        env.length *= factor[1]
        env.masspole *= factor[2]
        env.force_mag *= factor[3]
        env.total_mass = env.masspole + env.masscart
        env.polemass_length = env.masspole * env.length

    def put(self, state: Array) -> None:
        super().put(state)
        self.env.steps_beyond_terminated = None

    def weigh(self, rewards: Array) -> Array:
        return numpy.array([1.0, -1.0, -0.3 * (1 + rewards[0]), -0.3 * (1 + rewards[1])])

    def channel(self, found: Array, ended: bool) -> Array:
        """Still up, fallen, how far the pole leans, how far the cart is from the middle."""
        if ended:
            return numpy.array([0.0, 1.0, 0.0, 0.0])
        return numpy.array([1.0, 0.0, abs(found[2]) / 0.21, abs(found[0]) / 2.4])

    def policy(self, state: Array) -> Array:
        right = 1 / (1 + math.exp(-10 * (state[2] + 0.3 * state[3])))
        return numpy.array([1 - right, right])


class MountainCar(World):
    """Gravity and engine differ; agents weigh time and speed differently."""

    name = "MountainCar-v0"
    ratio_bins = 4
    size, low, high, limit, channels = 2, [-1.2, -0.07], [0.6, 0.07], 200, 2

    def __init__(self, variation: Array, rewards: Array) -> None:
        super().__init__(variation, rewards)
        self.env.gravity *= 1 + 0.2 * variation[0]
        self.env.force *= 1 + 0.2 * variation[1]

    def weigh(self, rewards: Array) -> Array:
        return numpy.array([-(1 + 0.3 * rewards[0]), 0.35 * (1 + rewards[1])])

    def channel(self, found: Array, ended: bool) -> Array:
        """On the way, and its speed over the greatest."""
        return numpy.zeros(2) if ended else numpy.array([1.0, abs(found[1]) / 0.07])

    def policy(self, state: Array) -> Array:
        forward = 0.9 if state[1] >= 0 else 0.05
        return numpy.array([0.95 - forward, 0.05, forward])


WORLDS: dict[str, type[World]] = {"frozen_lake": FrozenLake, "cart_pole": CartPole, "mountain_car": MountainCar}
Features = Callable[[Array], Array]  # [size, agents] -> [features, agents]


def tabular(states: int) -> tuple[int, Features]:
    """One feature a state.

    >>> import numpy
    >>> from affpcl.gym import tabular
    >>> width, features = tabular(3)
    >>> features(numpy.array([[2]])).ravel().tolist()
    [0.0, 0.0, 1.0]
    """
    return states, lambda o: (numpy.arange(states)[:, None] == o[0][None, :]).astype(float)


def tiles(low: Array, high: Array, tilings: int, bins: int) -> tuple[int, Features]:
    """Tile coding: `tilings` grids of `bins` per number, each shifted; of every grid one feature is 1/sqrt(tilings).

    >>> import numpy
    >>> from affpcl.gym import tiles
    >>> width, features = tiles(numpy.zeros(1), numpy.ones(1), tilings=4, bins=3)
    >>> width, int((features(numpy.array([[0.4]])) > 0).sum())
    (16, 4)
    """
    size = len(low)
    per_tiling = (bins + 1) ** size
    shift = numpy.array([[(2 * k + 1) * t / tilings % 1 for k in range(size)] for t in range(tilings)])
    powers = (bins + 1) ** numpy.arange(size)

    def features(o: Array) -> Array:
        scaled = numpy.clip((o - low[:, None]) / (high - low)[:, None], 0, 1 - 1e-9) * bins  # [size, agents]
        cells = numpy.floor(scaled[None] + shift[:, :, None]).astype(int)  # [tilings, size, agents]
        index = (cells * powers[None, :, None]).sum(1) + per_tiling * numpy.arange(tilings)[:, None]
        phi = numpy.zeros((tilings * per_tiling, o.shape[1]))
        phi[index, numpy.arange(o.shape[1])[None, :]] = 1 / math.sqrt(tilings)
        return phi

    return tilings * per_tiling, features


def fourier(low: Array, high: Array, order: int) -> tuple[int, Features]:
    """The Fourier basis cos(pi c' o), all c from 0 to `order` (Konidaris et al. 2011), scaled to length at most 1.

    >>> import numpy
    >>> from affpcl.gym import fourier
    >>> width, features = fourier(numpy.zeros(2), numpy.ones(2), order=2)
    >>> width
    9
    """
    grids = numpy.meshgrid(*[numpy.arange(order + 1)] * len(low), indexing="ij")
    c = numpy.stack([g.ravel() for g in grids], 1)

    def features(o: Array) -> Array:
        scaled = numpy.clip((o - low[:, None]) / (high - low)[:, None], 0, 1)
        return numpy.asarray(numpy.cos(math.pi * c @ scaled) / math.sqrt(len(c)))

    return len(c), features


def grid(low: Array, high: Array, bins: int) -> tuple[int, Features]:
    """One feature a cell of a grid of `bins` per number.

    >>> import numpy
    >>> from affpcl.gym import grid
    >>> width, features = grid(numpy.zeros(2), numpy.ones(2), bins=3)
    >>> width, int(features(numpy.array([[0.9], [0.0]])).argmax())
    (9, 2)
    """
    powers = bins ** numpy.arange(len(low))

    def features(o: Array) -> Array:
        scaled = numpy.clip((o - low[:, None]) / (high - low)[:, None], 0, 1 - 1e-9) * bins
        cell = (numpy.floor(scaled) * powers[:, None]).sum(0)
        return numpy.asarray((numpy.arange(bins ** len(low))[:, None] == cell[None, :]).astype(float))

    return bins ** len(low), features


class GymProblem(Problem):
    """What control and evaluation share: the agents' worlds, features, and trajectories."""

    environment: str = "frozen_lake"
    agents: int = 8
    dim: int = 0  # set by the features
    variation: float = 0.5
    reward_variation: float = 0.5
    gamma: float = 0.95
    features: str = "auto"
    tilings: int = 4
    bins: int = 4
    order: int = 2

    def setup(self, key: _core.Key) -> None:
        if self.environment not in WORLDS:
            raise ValueError(f"environment = '{self.environment}' is not known; allowed: {', '.join(WORLDS)}")
        kind = WORLDS[self.environment]
        spread = 2 * _core.uniforms(key, self.agents, 8, "environment") - 1
        self.worlds = [kind(self.variation * spread[:4, i], self.reward_variation * spread[4:, i])
                       for i in range(self.agents)]
        self.size, self.actions = kind.size, self.worlds[0].actions
        self.weights = numpy.array([w.weights for w in self.worlds]).T  # [channels, agents]
        self.width, self.phi = self.make_features(kind)
        self.ratio_width, self.ratio_phi = self.width, self.phi
        if kind is not FrozenLake:
            self.ratio_width, self.ratio_phi = grid(numpy.array(kind.low), numpy.array(kind.high), kind.ratio_bins)
        self.dim, self.k = self.unknowns(), kind.channels
        self.p = self.ratio_width * self.actions
        self.memory = self.size + 3  # state, action, steps of the episode (0: not begun), its return
        self.replicate = key.replicate

    def make_features(self, kind: type[World]) -> tuple[int, Features]:
        low, high = numpy.array(kind.low), numpy.array(kind.high)
        choice = self.features
        if choice == "auto":
            choice = {FrozenLake: "tabular", CartPole: "fourier", MountainCar: "tiles"}[kind]
        if choice == "tabular" and kind is FrozenLake:
            return tabular(16)
        if choice == "tiles" and kind is not FrozenLake:
            return tiles(low, high, self.tilings, self.bins)
        if choice == "fourier" and kind is not FrozenLake:
            return fourier(low, high, self.order)
        raise ValueError(f"features = '{self.features}' do not go with {self.environment}; allowed: "
                         + ("tabular" if kind is FrozenLake else "tiles, fourier"))

    def unknowns(self) -> int:
        raise NotImplementedError

    @property
    def rows(self) -> int:  # state, action, next state, uniform of the next action, whether it goes on, channels
        return 2 * self.size + 3 + self.k

    def act(self, agent: int, state: Array, x: Array | None, u: float) -> int:
        raise NotImplementedError

    def draw(self, sample: _core.Sample) -> Array:
        u = sample.uniforms(UNIFORMS)
        out = numpy.empty((self.rows, u.shape[1]))
        for j, i in enumerate(range(sample.agents.start, sample.agents.stop)):
            x = sample.acting[:, j if sample.acting.shape[1] > 1 else 0] if self.acts else None
            out[:, j] = self.draw_one(i, sample.memory[:, j], x, u[:, j], sample.key.step)
        return out

    def draw_one(self, agent: int, memory: Array, x: Array | None, u: Array, step: int) -> Array:
        world, size = self.worlds[agent], self.size
        if memory[size + 1] == 0:
            memory[:size] = world.reset(u[4:])
            memory[size] = self.act(agent, memory[:size], x, u[2])
            memory[size + 2] = 0
        state, action = memory[:size].copy(), int(memory[size])
        found, channels, ended = world.step(state, action, u[1])
        memory[size + 1] += 1
        memory[size + 2] += world.weights @ channels
        if ended or memory[size + 1] >= world.limit:
            memory[size + 1] = 0
            _returns.append((self.replicate, step, agent, float(memory[size + 2])))
        else:
            memory[:size] = found
            memory[size] = self.act(agent, found, x, u[0])
        return numpy.concatenate([state, [action], found, [u[0], 0.0 if ended else 1.0], channels])

    def parts(self, s: Array) -> tuple[Array, Array, Array, Array, Array, Array]:
        n = self.size
        return s[:n], s[n].astype(int), s[n + 1 : 2 * n + 1], s[2 * n + 1], s[2 * n + 2], s[2 * n + 3 :]

    def pairs(self, s: Array) -> Array:
        """The features of what a sample is about."""
        raise NotImplementedError

    def rewards(self, agents: slice, s: Array) -> Array:
        return numpy.asarray((self.weights[:, agents] * self.parts(s)[5]).sum(0))

    def objective(self, agents: slice, s: Array) -> Array:
        return numpy.asarray(self.pairs(s) * self.rewards(agents, s))

    def Phi(self, agents: slice, s: Array, theta: Array) -> Array:
        """Rewards are weighted channels."""
        return numpy.asarray(self.pairs(s) * (self.parts(s)[5] * theta).sum(0))

    def coe(self, agents: slice, s: Array, b: Array, theta: Array) -> Array:
        """Weights are learnt from rewards."""
        c = self.parts(s)[5]
        return numpy.asarray(c * ((c * theta).sum(0) - self.rewards(agents, s)))

    def psi(self, agents: slice, s: Array) -> Array:
        """Features of learnt density ratios: one a cell of states and an action, so that ratios lie between 0 and n.

        Smooth features have negative ratios where an agent's trajectory has not been yet, and runs diverged.
        """
        state, action, *_ = self.parts(s)
        return self.by_action(self.ratio_phi(state), action)

    def by_action(self, f: Array, action: Array) -> Array:
        """f at the place of each agent's action, 0 elsewhere."""
        out = numpy.zeros((self.actions, f.shape[0], f.shape[1]))
        out[action, :, numpy.arange(f.shape[1])] = f.T
        return out.reshape(-1, f.shape[1])


@problem
class GymControl(GymProblem):
    """SARSA on variants of a Gymnasium environment; each agent acts by softmax(Q / temperature) of its own iterate"""

    temperature: float = 0.05
    acts = True

    def unknowns(self) -> int:
        return self.width * self.actions

    def values(self, f: Array, x: Array) -> Array:
        """[actions, agents]: Q of all actions."""
        weights = x.reshape(self.actions, self.width, -1) * numpy.ones(f.shape[1])
        return numpy.asarray(numpy.einsum("afn,fn->an", weights, f))

    def choose(self, q: Array, u: Array) -> Array:
        w = numpy.exp((q - q.max(0)) / self.temperature)
        return numpy.asarray((u * w.sum(0) >= numpy.cumsum(w, 0)[:-1]).sum(0))

    def act(self, agent: int, state: Array, x: Array | None, u: float) -> int:
        assert x is not None
        return int(self.choose(self.values(self.phi(state[:, None]), x[:, None]), numpy.array([u]))[0])

    def pairs(self, s: Array) -> Array:
        state, action, *_ = self.parts(s)
        return self.by_action(self.phi(state), action)

    def apply(self, agents: slice, s: Array, x: Array) -> Array:
        _, _, found, u, goes_on, _ = self.parts(s)
        f, q = self.pairs(s), self.values(self.phi(found), x)
        later = q[self.choose(q, u), numpy.arange(s.shape[1])]
        return numpy.asarray(f * ((f * x).sum(0) - self.gamma * goes_on * later))


@problem
class GymEvaluation(GymProblem):
    """TD(0) on variants of a Gymnasium environment: state values of one fixed policy"""

    reference: int = 20000  # transitions of an agent from which its solution is known

    def unknowns(self) -> int:
        return self.width

    def setup(self, key: _core.Key) -> None:
        super().setup(key)
        self.solve(key)

    def act(self, agent: int, state: Array, x: Array | None, u: float) -> int:
        cumulative = numpy.cumsum(self.worlds[agent].policy(state))
        return int((u >= cumulative[:-1]).sum())

    def pairs(self, s: Array) -> Array:
        return self.phi(self.parts(s)[0])

    def apply(self, agents: slice, s: Array, x: Array) -> Array:
        _, _, found, _, goes_on, _ = self.parts(s)
        f = self.pairs(s)
        return numpy.asarray(f * ((f - self.gamma * goes_on * self.phi(found)) * x).sum(0))

    def solve(self, key: _core.Key) -> None:
        """Means over a long trajectory of its own; a small ridge decides about features that are never met."""
        n, d, k = self.agents, self.dim, self.k
        self.A, self.G, self.b = numpy.empty((n, d, d)), numpy.empty((n, d, d)), numpy.empty((n, d))
        self.Phibar, self.C = numpy.empty((n, d, k)), numpy.empty((n, k, k))
        self.x = numpy.empty((d, n))
        for i in range(n):
            memory, rows = numpy.zeros(self.memory), []
            u = _core.uniforms(_core.Key(key.seed, key.replicate, i), self.reference, UNIFORMS, "pair")
            for t in range(self.reference):
                rows.append(self.draw_one(i, memory, None, u[:, t], t))
            s = numpy.array(rows).T
            f, (_, _, found, _, goes_on, c) = self.pairs(s), self.parts(s)
            ridge = 1e-6 * numpy.eye(d)
            self.A[i] = f @ (f - self.gamma * goes_on * self.phi(found)).T / self.reference + ridge
            self.G[i] = f @ f.T / self.reference
            self.Phibar[i] = f @ c.T / self.reference
            self.C[i] = c @ c.T / self.reference
            self.b[i] = self.Phibar[i] @ self.weights[:, i]
            self.x[:, i] = numpy.linalg.solve(self.A[i], self.b[i])
        _returns.clear()

    def mean_apply(self, agents: slice, x: Array) -> Array:
        return numpy.asarray(numpy.einsum("nij,jn->in", self.A[agents], x * numpy.ones(agents.stop - agents.start)))

    def mean_objective(self, agents: slice) -> Array:
        return self.b[agents].T

    def mean_Phi(self, agents: slice, theta: Array) -> Array:
        return numpy.asarray(numpy.einsum("nij,jn->in", self.Phibar[agents], theta * numpy.ones(agents.stop - agents.start)))

    def mean_coe(self, agents: slice, theta: Array) -> Array:
        return numpy.asarray(numpy.einsum("nij,jn->in", self.C[agents], theta - self.weights[:, agents]))

    def error(self, agents: slice, x: Array) -> Array:
        """The mean squared error of the values, over the states that the agent's policy visits."""
        off = x - self.x[:, agents]
        return numpy.asarray(numpy.einsum("in,nij,jn->n", off, self.G[agents], off)[None])
