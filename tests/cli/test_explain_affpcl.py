"""The program against docs/explain/affpcl.md and guard.md: every iterate of short runs on finite systems, to 1e-12.

What the pages claim about expectations is computed here, over all joint samples.
"""
import csv
import functools
import itertools
import json
from typing import NamedTuple

import pytest

np = pytest.importorskip("numpy")

from _oracle import (STEPS, Bag, as_page_has_it, constant, guard_page, make_system, oracle, page, relative,
                     relative_centre, steps_of)

TOLERANCE = 1e-12


# --- what is run -----------------------------------------------------------------------------------------------------

def affpcl_method(**keys):
    return dict(kind="affpcl", **keys)


def independent(**keys):
    return dict(kind="independent", **keys)


def fedavg(**keys):
    return dict(kind="fedavg", **keys)


class Run(NamedTuple):
    """Methods that one run of the program compares."""
    system: dict
    coe: str
    steps: tuple
    methods: list
    iterate: str = "last"

    def gradient(self):
        """Whether the central objective is estimated by the gradient form."""
        square = "Phi" not in self.system or len(set(self.system["Phi"].shape[1:])) == 1
        return self.coe == "gradient" or (self.coe == "auto" and not square)


SQUARE, TALL, WIDE, FREE = make_system(1), make_system(2, k=2), make_system(3, k=5), make_system(4, free_b=True)
MANY = make_system(5, n=300)  # more than one block of agents, more than one leaf of the sum
PLAIN = constant(0.1)
LOG = relative('schedule = "log-constant"', lambda t: np.log(STEPS) / STEPS, "agent")
DIMINISHING = 'schedule = "diminishing", t0 = 20', lambda t: 4 / (t + 21)
PERIODS = [affpcl_method(central=central, period=period, batch=batch)
           for central in ("own", "estimated") for period, batch in ((3, 1), (4, 1), (1, 2), (4, 2))]
BASELINES = [make(period=period, batch=batch) for make in (independent, fedavg)
             for period, batch in ((1, 1), (3, 1), (4, 1), (3, 2))]
OPTIONS = (
    [affpcl_method(central=central, ratio=ratio) for central in ("own", "estimated", "average")
     for ratio in ("exact", "none")]
    + [affpcl_method(central=central, objective=objective) for central in ("own", "estimated")
       for objective in ("known", "tabular")]
    + [affpcl_method(correction="client", **more) for more in
       (dict(), dict(central="estimated"), dict(ratio="none"), dict(period=4, batch=2))]
    + [affpcl_method(guard=guard, ratio=ratio, period=period) for guard in ("weight", "full")
       for ratio in ("exact", "none") for period in (1, 4)]
    + [affpcl_method(objective="tabular", central="estimated", period=4, batch=2),
       affpcl_method(objective="known", period=3),
       affpcl_method(central="average", batch=2),
       affpcl_method(ratio="none", period=4, batch=2)])

RUNS = {
    "square, a hundred steps": Run(
        make_system(6, steps=100), "residual", PLAIN,
        [affpcl_method(guard=guard, ratio=ratio) for guard in ("weight", "full") for ratio in ("exact", "none")]),
    "square": Run(SQUARE, "residual", PLAIN, OPTIONS + PERIODS + BASELINES),
    "square, averages scored": Run(
        SQUARE, "residual", PLAIN, [affpcl_method(guard=guard, period=period) for guard in ("weight", "full")
                                    for period in (1, 4)], "polyak"),
    "square, three steps": Run(
        SQUARE, "residual", constant(0.1, 0.15, 0.07),
        [affpcl_method(central=central) for central in ("own", "estimated", "average")] + PERIODS + BASELINES),
    "square, gradient": Run(
        SQUARE, "gradient", PLAIN,
        [affpcl_method(central=central) for central in ("own", "estimated")] + [affpcl_method(period=4, batch=2)]),
    "k < d": Run(
        TALL, "auto", PLAIN,
        [affpcl_method(central=central) for central in ("own", "estimated", "average")] + PERIODS),
    "k > d": Run(
        WIDE, "auto", PLAIN,
        [affpcl_method(central=central) for central in ("own", "estimated")] + [affpcl_method(period=3)]),
    "no Phi": Run(
        FREE, "auto", PLAIN,
        [affpcl_method(central=central, objective=objective, period=period) for central in ("own", "estimated")
         for objective in ("known", "tabular") for period in (1, 4)]
        + [affpcl_method(central="average", objective="tabular"), independent(), fedavg()]),
    "300 agents": Run(
        MANY, "residual", PLAIN,
        [affpcl_method(central=central, **more) for central in ("own", "estimated")
         for more in (dict(), dict(period=4, batch=2), dict(objective="tabular"))]
        + [affpcl_method(central="average"), affpcl_method(ratio="none"), affpcl_method(correction="client"),
           affpcl_method(guard="full"), affpcl_method(guard="full", ratio="none", period=2),
           independent(period=4), fedavg(period=4)]),
    "ln T / T per agent": Run(
        SQUARE, "residual", LOG,
        [affpcl_method(), affpcl_method(central="estimated", period=4), independent(period=4), fedavg(period=4)]),
    "4/(t + t0 + 1) per agent": Run(
        SQUARE, "residual", relative(*DIMINISHING, "agent"),
        [affpcl_method(), affpcl_method(central="estimated", period=4), independent(period=4), fedavg(period=4)]),
    "4/(t + t0 + 1), one for all": Run(
        TALL, "gradient", relative(*DIMINISHING, "min"),
        [affpcl_method(), affpcl_method(central="average"), independent(period=4), fedavg(period=4)]),
    "ln T / T at the centre": Run(
        SQUARE, "residual", relative_centre(0.1),
        [affpcl_method(), affpcl_method(central="estimated", period=4), fedavg(period=4)]),
}


def title(method):
    """Unique among methods that differ: it is the method's name in the spec, too."""
    return " ".join([method["kind"]] + [f"{k}={v}" for k, v in method.items()
                                        if k != "kind" and v != {"period": 1, "batch": 1}.get(k)])


# --- the program's iterates ------------------------------------------------------------------------------------------

def write_spec(affpcl, run):
    """The spec of a run, and its finite system."""
    affpcl.write("system.json", json.dumps({k: v.tolist() for k, v in run.system.items()}))
    step_lines, _ = run.steps
    lines = ["[problem]", 'kind = "tabular"', 'file = "system.json"', f'coe = "{run.coe}"',
             "[run]", f"steps = {steps_of(run.system)}", "replicates = 1", f'iterate = "{run.iterate}"', *step_lines]
    for method in run.methods:
        lines += ["[[method]]", f"name = {json.dumps(title(method))}"]
        lines += [f"{k} = {json.dumps(v)}" for k, v in method.items()]
    affpcl.write("spec.toml", "\n".join(lines) + "\n")


def trace(affpcl, run):
    """The program's exit code, and of each method {(step, what, agent, index): value}, as --trace has it."""
    write_spec(affpcl, run)
    done = affpcl.run("run", "spec.toml", "--trace", "trace.csv", "--quiet")
    traces = {title(method): {} for method in run.methods}
    if done.returncode == 0:
        for row in csv.DictReader(affpcl.read("trace.csv").splitlines()):
            key = int(row["step"]), row["what"], row["agent"], int(row["index"])
            traces[row["method"]][key] = float(row["value"])
    return done, traces


def assert_same(found, expected):
    """The same iterates, to a tolerance relative to max(1, |value|)."""
    assert found.keys() == expected.keys()
    off = {key: abs(found[key] - value) / max(1, abs(value)) for key, value in expected.items()}
    wrong = {key: (found[key], expected[key]) for key, o in off.items() if not o <= TOLERANCE}
    assert not wrong


@pytest.fixture(scope="module")
def traces_of(shared_affpcl):
    """Of a run in RUNS, by name, what `trace` gives; each run is made once."""
    return functools.cache(lambda name: trace(shared_affpcl, RUNS[name]))


@pytest.mark.parametrize("name, method", [
    pytest.param(name, method, id=f"{name}: {title(method)}") for name, run in RUNS.items() for method in run.methods])
def test_every_iterate(traces_of, name, method):
    run = RUNS[name]
    done, traces = traces_of(name)
    assert done.returncode == 0, done.stderr
    assert_same(traces[title(method)], oracle(run.system, run.gradient(), run.steps[1], method, run.iterate != "last"))


# One sum does not carry the average of the x^i here. To refuse is right, and so is the right answer.
@pytest.mark.parametrize("steps, method", [
    pytest.param(PLAIN, affpcl_method(central="average", period=3), id="period"),
    pytest.param(LOG, affpcl_method(central="average"), id="schedule"),
    pytest.param(PLAIN, affpcl_method(central="average", correction="client"), id="client"),
])
def test_an_average_that_one_sum_does_not_carry(affpcl, steps, method):
    done, traces = trace(affpcl, Run(SQUARE, "residual", steps, [method]))
    if done.returncode != 2:
        assert done.returncode == 0, done.stderr
        assert_same(traces[title(method)], oracle(SQUARE, False, steps[1], method))


@pytest.mark.parametrize("batch", [1, 2])
def test_a_single_agent_is_independent_to_the_bit(affpcl, batch):
    run = Run(make_system(8, n=1), "residual", PLAIN, [affpcl_method(batch=batch), independent(batch=batch)])
    done, traces = trace(affpcl, run)
    assert done.returncode == 0, done.stderr
    personalised, alone = traces.values()
    assert alone
    assert {key: personalised[key] for key in alone} == alone


# --- what the pages say about expectations ---------------------------------------------------------------------------

def how_of(**keys):
    return Bag(**(dict(central="own", objective="learnt", ratio="exact", correction="server", coe="residual") | keys))


def largest(difference):
    return np.abs(difference).max()


@pytest.fixture
def four():
    """Four agents: the system, where they are, the centre, and the mean direction of each."""
    P, x, c = as_page_has_it(make_system(5, n=4))
    c.total, c.count = np.random.default_rng(6).normal(size=c.total.shape), np.array([1.0, 2, 0, 5])
    truth = np.einsum("is,sde,ie->id", P.mu, P.A, x) - np.einsum("is,isd->id", P.mu, P.b)
    return Bag(P=P, x=x, c=c, truth=truth)


@pytest.fixture
def samples():
    """Three steps of two samples of four agents."""
    return np.random.default_rng(7).integers(4, size=(3, 2, 4))


@pytest.mark.parametrize("correction", ["server", "client"])
@pytest.mark.parametrize("objective", ["learnt", "known", "tabular"])
def test_the_direction_is_unbiased(four, objective, correction):
    how = how_of(objective=objective, correction=correction)
    assert largest(page.mean_direction(four.P, how, four.x, four.c) - four.truth) <= TOLERANCE


def test_without_a_ratio_it_is_biased_as_eq_correction_says(four):
    """With rhohat = 1 the bias is E_mu0 [(1 - rho^i) f]."""
    P, c = four.P, four.c
    f = page.times(P.A, c.xc) - page.bhat(P, how_of(), np.arange(len(P.A)), c, c.thetac)
    bias = np.einsum("s,is,sd->id", P.mu.mean(0), 1 - P.rho, f)
    assert largest(bias) > 0.1
    assert largest(page.mean_direction(P, how_of(ratio="none"), four.x, c) - four.truth - bias) <= TOLERANCE


def test_the_mean_ratio_over_agents_is_one(four):
    assert largest(four.P.rho.mean(0) - 1) <= TOLERANCE


def test_the_corrected_sum_is_a_product(four, samples):
    """rg^i is M' eta^i."""
    central = page.g_central(four.P, how_of(), samples, four.c)
    product = page.rg_as_sum(four.P, samples, central)
    correction = page.correction(four.P, how_of(), samples, four.c)
    assert largest(product - central.mean(1) - correction) <= TOLERANCE


def test_the_correction_of_a_single_agent_is_zero(samples):
    P, _, c = as_page_has_it(make_system(8, n=1))
    assert largest(page.correction(P, how_of(), samples[:1, :, :1], c)) <= TOLERANCE


@pytest.fixture(scope="module")
def two_steps():
    """A period of two steps, over all joint samples: the mean correction, and the bias of the second step."""
    P, x, c = as_page_has_it(make_system(9, n=2, states=3))
    n, K, alpha = 2, 2, 0.1
    correction = bias = 0
    Abar = np.einsum("is,sde->ide", P.mu, P.A)
    for states in itertools.product(range(3), repeat=n * K):
        s = np.array(states).reshape(K, 1, n)
        weight = page.own(P.mu, s).prod()
        h = page.correction(P, how_of(), s, c)
        x1 = page.update(P, s[:1], x, h, [alpha])
        correction = correction + weight * h
        bias = bias + weight * page.times(P.A[s[1, 0]] - Abar, x1)
    return Bag(P=P, c=c, Abar=Abar, correction=correction, bias=bias, share=alpha / (n * K))


def test_in_a_period_the_correction_has_mean_zero(two_steps):
    assert largest(two_steps.correction) <= TOLERANCE


def test_in_a_period_the_second_step_is_biased_as_the_page_says(two_steps):
    """Only s_1's own share of rg^i, 1/(nK), depends on s_1: the bias is -alpha/(nK) Cov(A, rho^i f) under mu^i."""
    P, c = two_steps.P, two_steps.c
    f = page.times(P.A, c.xc) - page.bhat(P, how_of(), np.arange(3), c, c.thetac)
    covariance = np.einsum("is,isde,is,se->id", P.mu, P.A[None] - two_steps.Abar[:, None], P.rho, f)
    assert largest(two_steps.bias + two_steps.share * covariance) <= TOLERANCE


@pytest.mark.parametrize("kind, plain, guarded", [("right", .090, .084), ("biased", 35, .43), ("useless", 9.9, 1.000)])
def test_the_numbers_that_guard_md_prints(kind, plain, guarded):
    independent_error = guard_page.alone()
    assert guard_page.error(kind, False) / independent_error == pytest.approx(plain, rel=0.01, abs=0)
    assert guard_page.error(kind, True) / independent_error == pytest.approx(guarded, rel=0.01, abs=0)


@pytest.mark.parametrize("d, excess", [(1, .49), (2, .19), (3, .06), (4, 0), (6, 0)])
def test_the_largest_excess_that_guard_md_states(d, excess):
    assert max(0, guard_page.largest_excess(d)) == pytest.approx(excess, abs=0.006)


@np.errstate(over="ignore", invalid="ignore")
def test_the_combination_never_leaves_the_ball_that_guard_md_proves():
    """Whatever h is: here it explodes, is constant, and is in other units, for one agent each."""
    rng, y = np.random.default_rng(1), np.ones((3, 4))
    x, combination, farthest = y, guard_page.Combination(y), 0
    own_noise = np.zeros(3)
    for t in range(300):
        noise = rng.normal(size=(3, 4))
        h = np.stack([2.0 ** min(t, 400) * noise[0], np.full(4, 5.0), 1e6 * rng.normal(size=4)])
        g = combination.y + noise
        x = 0.9 * x - 0.1 * (noise + h)
        combination.round(x, combination.y - 0.1 * g, 0.1 * g, 0.1 * h, 0.1)
        moved = ((combination.z - combination.y) ** 2).sum(1)
        assert np.all(moved <= 4 * combination.own_noise * (1 + 1e-9) + 1e-300)
        farthest = max(farthest, moved.max())
    assert 0 < farthest < 10
