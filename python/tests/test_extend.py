"""Problems and methods written in Python run in the engine's own loop, and the conformance checks can be pointed at them."""
import os
import pathlib
import runpy
import subprocess
import sys

import numpy as np
import pytest

import affpcl
from affpcl import testing

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


@pytest.fixture(scope="module", autouse=True)
def examples():
    for name in ("pull_to_mean", "mean_estimation"):
        source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
        assert len(source.splitlines()) < 30
        runpy.run_path(str(EXAMPLES / f"{name}.py"))


SPEC = {
    "problem": {"kind": "mean_estimation", "spread": 0.01, "agents": 70},
    "run": {"steps": 200, "step_size": 0.05, "replicates": 4},
    "method": [{"kind": "pull_to_mean"}, {"kind": "pull_to_mean", "name": "no pull", "share": 0.0}, {"kind": "independent"},
               {"kind": "affpcl", "ratio": "none", "objective": "known"}],
}


def test_they_run_from_a_spec():
    result = affpcl.run({**SPEC, "method": SPEC["method"][:3]})
    found = dict(zip(result.summary["method"], result.summary["mse_mean"]))
    assert found["pull_to_mean"] < 0.5 * found["independent"]
    assert found["no pull"] == pytest.approx(found["independent"], rel=1e-9)
    assert result.threads == 1
    assert affpcl.catalogue()["methods"]["pull_to_mean"]["doc"].startswith("each agent alone")
    params = affpcl.catalogue()["problems"]["mean_estimation"]["params"]
    assert {p["name"]: p["default"] for p in params} == {"agents": 10, "dim": 3, "spread": 1.0}


def test_the_method_conforms():
    testing.check_method("pull_to_mean", step_size=1e-4)


def test_the_problem_conforms():
    testing.check_problem("mean_estimation")


def test_the_engines_own_conform_too():
    for kind in ("fedavg", "ditto"):
        testing.check_method(kind, {"kind": "shuffled_means", "agents": 150})


def test_streams_are_the_engines():
    key = affpcl.Key(7, 2, 5)
    numbers = affpcl.normals(key, 130, 4, "sample")
    assert numbers.shape == (4, 130)
    assert np.array_equal(affpcl.normals(key, 65, 2, "sample", 2), numbers[2:, :65])
    assert not np.array_equal(affpcl.normals(affpcl.Key(7, 2, 6), 130, 4, "sample"), numbers)
    assert ((affpcl.uniforms(key, 130, 4, "theta") > 0) & (affpcl.uniforms(key, 130, 4, "theta") < 1)).all()
    with pytest.raises(ValueError, match="did you mean 'sample'"):
        affpcl.normals(key, 1, 1, "sampel")


def simple_method(name, update, **members):
    members = {"declare": lambda self, shape: affpcl.Memory(agent={"x": shape.d}), "update": update, **members}
    return affpcl.method(type(name, (affpcl.Method,), members))


def run_method(kind, **more):
    return affpcl.run({"problem": {"kind": "gaussian", "agents": 70}, "run": {"steps": 6, "replicates": 2, **more},
                       "method": [{"kind": kind}, {"kind": "independent"}]})


def test_local_steps_are_learning_alone():
    simple_method("Alone", lambda self, block: block.local_steps("x"))
    found = run_method("alone").summary["mse_mean"]
    assert found[0] == found[1]


def test_the_checks_can_fail():
    """A method that counts in secret, or looks at who comes first, is caught."""

    def counts(self, block):
        self.calls = getattr(self, "calls", 0) + 1
        block.agent["x"][:] += 1e-3 * self.calls

    def by_place(self, block):
        block.agent["x"][:] += 1e-3 * block.agents.start

    simple_method("CountsInSecret", counts)
    simple_method("LooksAtThePlace", by_place)
    means = {"kind": "shuffled_means"}
    with pytest.raises(AssertionError, match="another way"):
        testing.check_method("counts_in_secret", means)
    with pytest.raises(AssertionError, match="agents in another order end elsewhere"):
        testing.check_method("looks_at_the_place", means)


def test_what_goes_wrong_is_said():
    def fails(self, block):
        raise KeyError("mine")

    def keeps(self, block):
        self.kept = block.agent["x"][0]

    def keeps_block(self, block):
        if hasattr(self, "block"):
            self.block.agent
        self.block = block

    simple_method("Fails", fails)
    with pytest.raises(KeyError, match="mine"):
        run_method("fails")
    simple_method("Keeps", keeps)
    with pytest.raises(ValueError, match="method 'keeps': update kept an array of its call; keep a copy"):
        run_method("keeps")
    simple_method("KeepsBlock", keeps_block)
    with pytest.raises(ValueError, match="blocks and fields are for the call they were given to"):
        run_method("keeps_block")
    simple_method("NoX", lambda self, block: None, declare=lambda self, shape: affpcl.Memory(agent={"z": 1}))
    with pytest.raises(ValueError, match="method 'no_x' declares no field 'x'"):
        run_method("no_x")
    simple_method("NoSum", lambda self, block: None, contribute=lambda self, block: {})
    with pytest.raises(ValueError, match="method 'no_sum': what contribute adds up has to be declared"):
        run_method("no_sum")
    with pytest.raises(ValueError, match="the engine has a method 'ditto' of its own"):
        simple_method("Ditto", lambda self, block: None)
    with pytest.raises(TypeError, match="is no parameter"):
        affpcl.method(type("Odd", (affpcl.Method,), {"__annotations__": {"a": list}, "a": []}))


OUTLIVES = """
import gc

import numpy as np

import affpcl

kept = []


class Keeps(affpcl.Method):
    fails: bool = False

    def declare(self, shape):
        return affpcl.Memory(agent={"x": shape.d}, centre={"c": 2})

    def centre(self, mean, centre):
        pass

    def update(self, block):
        x, step, shared, row = block.agent["x"], block.step_size(), block.centre["c"], block.agent["x"][1]
        s, b = block.sample()
        kept.append([(array, array.copy()) for array in (x, step, shared, row, s, b)] + [block, block.agent])
        if self.fails:
            raise KeyError("mine")


affpcl.method(Keeps)
for fails in (False, True):
    kept.clear()
    try:
        affpcl.run({"problem": {"kind": "gaussian", "agents": 70}, "run": {"steps": 3, "replicates": 1},
                    "method": [{"kind": "keeps", "fails": fails}]})
    except (ValueError, KeyError) as error:
        gc.collect()
        *arrays, block, fields = kept[0]
        for array, copy in arrays:
            assert np.array_equal(array, copy), (array, copy)
        for use in (lambda: block.agent, lambda: block.centre, lambda: block.sample(), lambda: block.steps,
                    lambda: block.local_steps("x"), lambda: block.step_size(), lambda: fields["x"], lambda: list(fields)):
            try:
                use()
            except ValueError as refused:
                assert "blocks and fields are for the call they were given to" in str(refused), refused
            else:
                raise AssertionError("a block is used after its call")
    else:
        raise AssertionError("arrays may be kept")
"""


def test_what_outlives_its_call_is_no_memory_of_the_engine():
    """Kept, or met again in a traceback: arrays hold what they held, and the block refuses. Freed memory is overwritten here."""
    done = subprocess.run([sys.executable, "-c", OUTLIVES], env={**os.environ, "MALLOC_PERTURB_": "165"},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_centre_that_nothing_changes_is_refused():
    memory = {"agent": {"x": 4}, "centre": {"m": 4}}
    simple_method("Forgets", lambda self, block: None, declare=lambda self, shape: affpcl.Memory(**memory))
    with pytest.raises(ValueError, match=r"has no function centre\(self, mean, centre\)"):
        affpcl.run({"problem": {"kind": "gaussian", "agents": 3, "dim": 4}, "run": {"steps": 1, "replicates": 1},
                    "method": [{"kind": "forgets"}]})


def test_fields_are_assigned():
    """block.agent["x"] = value is the same as block.agent["x"][:] = value."""
    memory = dict(declare=lambda self, shape: affpcl.Memory(agent={"x": shape.d}, centre={"m": shape.d}, sum={"x": shape.d}),
                  contribute=lambda self, block: block.agent)

    def writes(self, block):
        x = block.agent["x"]
        x -= block.step_size() * block.residual(0, x)
        x += 0.1 * (block.centre["m"] - x)

    def assigns(self, block):
        block.agent["x"] = block.agent["x"] - block.step_size() * block.residual(0, block.agent["x"])
        block.agent["x"] += 0.1 * (block.centre["m"] - block.agent["x"])

    simple_method("Writes", writes, centre=lambda self, mean, centre: centre["m"].__setitem__(..., mean["x"]), **memory)
    simple_method("Assigns", assigns, centre=lambda self, mean, centre: centre.__setitem__("m", mean["x"]), **memory)
    replicate = affpcl.Replicate({"problem": {"kind": "gaussian", "agents": 70}, "run": {"steps": 6},
                                  "method": [{"kind": "writes"}, {"kind": "assigns"}]})
    start = replicate.solution("assigns")
    replicate.advance(6)
    assert not np.array_equal(replicate.solution("assigns"), start)
    assert np.array_equal(replicate.solution("assigns"), replicate.solution("writes"))


def test_fields_are_a_mapping_that_refuses():
    seen = {}

    def looks(self, block):
        fields = block.agent
        seen.update(keys=fields.keys(), names=list(fields), count=len(fields), has=("x" in fields, "y" in fields),
                    values=[v.shape for v in fields.values()], items=[(name, v.shape) for name, v in fields.items()])
        for what, use in {"unknown": lambda: fields["xx"], "centre": lambda: block.centre.__setitem__("c", 1.0),
                          "mean": lambda: block.mean.__setitem__("x", 1.0), "shape": lambda: fields.__setitem__("x", [1, 2])}.items():
            try:
                use()
            except (KeyError, TypeError, ValueError) as error:
                seen[what] = f"{type(error).__name__}: {error}"

    simple_method("Looks", looks, contribute=lambda self, block: {"x": block.agent["x"]}, centre=lambda self, mean, centre: None,
                  declare=lambda self, shape: affpcl.Memory(agent={"x": shape.d, "old": 2}, centre={"c": 1}, sum={"x": shape.d}))
    affpcl.run({"problem": {"kind": "gaussian", "agents": 3, "dim": 4}, "run": {"steps": 1, "replicates": 1},
                "method": [{"kind": "looks"}]})
    assert seen["keys"] == seen["names"] == ["x", "old"] and seen["count"] == 2 and seen["has"] == (True, False)
    assert seen["values"] == [(4, 3), (2, 3)] and seen["items"] == [("x", (4, 3)), ("old", (2, 3))]
    assert "no field 'xx' was declared; did you mean 'x'" in seen["unknown"]
    assert seen["centre"] == "TypeError: block.centre can be read only: centre() changes it"
    assert seen["mean"] == "TypeError: the mean of what was contributed can be read only"
    assert seen["shape"].startswith("ValueError: could not broadcast")


def test_methods_that_learn_nothing_are_caught():
    def rebinds(self, block):
        x = block.agent["x"]
        x = x - block.step_size() * block.residual(0, x)

    def climbs(self, block):
        x = block.agent["x"]
        x += block.step_size() * block.residual(0, x)

    simple_method("Rebinds", rebinds)
    simple_method("Climbs", climbs)
    with pytest.raises(AssertionError, match="its x stays where it started: .* x = x - ... only names another array"):
        testing.check_method("rebinds")
    with pytest.raises(AssertionError, match="it learns nothing: .* from 27.* to "):
        testing.check_method("climbs")


@pytest.mark.parametrize("step_size", [1e-2, 1e-5])
def test_the_engines_methods_learn(step_size):
    for kind in ("independent", "fedavg", "fine_tune", "ditto", "pfedme", "ifca", "scaffold", "residual"):
        testing.learns({"kind": kind}, step_size)


def test_local_steps_and_arrays_agree():
    """local_steps works on what was written before, and arrays show what it did."""

    def by_engine(self, block):
        x = block.agent["x"]
        x += 1
        before = x.copy()
        block.local_steps("x")
        assert not np.array_equal(x, before)
        x *= 2

    def by_hand(self, block):
        x = block.agent["x"]
        x += 1
        for k in range(block.steps):
            x -= block.step_size(k) * block.residual(k, x)
        x *= 2

    simple_method("ByEngine", by_engine)
    simple_method("ByHand", by_hand)
    replicate = affpcl.Replicate({"problem": {"kind": "gaussian", "agents": 70}, "run": {"steps": 6},
                                  "method": [{"kind": "by_engine", "period": 2}, {"kind": "by_hand", "period": 2}]})
    replicate.advance(6)
    assert np.allclose(replicate.solution("by_engine"), replicate.solution("by_hand"), rtol=1e-12, atol=0)


def test_problems_that_answer_wrongly():
    base = dict(dim=2, apply=lambda self, agents, s, x: x, objective=lambda self, agents, s: s)

    def run(name, **members):
        cls = type(name, (affpcl.Problem,), {"__annotations__": {"agents": int}, "agents": 3, **base, **members})
        affpcl.problem(cls)
        return affpcl.run({"problem": {"kind": name.lower()}, "run": {"steps": 3, "replicates": 1},
                           "method": [{"kind": "independent"}]})

    with pytest.raises(NotImplementedError, match="Lazy needs draw"):
        run("Lazy")
    with pytest.raises(ValueError, match="problem 'wide': draw gave something else than 2 rows of 3 agents"):
        run("Wide", draw=lambda self, sample: np.zeros((2, 4)))
    with pytest.raises(ValueError, match="problem 'none' has 3 agents, dim 0 .* at least 1"):
        run("None", draw=lambda self, sample: sample.normals(2), dim=0)


def test_a_problem_with_memory():
    """A counter that every agent keeps: its sample is how often it was drawn."""

    @affpcl.problem
    class Counter(affpcl.Problem):
        """counts"""
        agents: int = 70
        dim: int = 1
        memory = 1

        def draw(self, sample):
            sample.memory[:] += 1
            return sample.memory

        def apply(self, agents, s, x):
            return x

        def objective(self, agents, s):
            return s

    replicate = affpcl.Replicate({"problem": {"kind": "counter"}, "run": {"steps": 3, "step_size": 1.0},
                                  "method": [{"kind": "independent"}]})
    replicate.advance(3)
    assert (replicate.solution("independent") == 3).all()


def test_a_problem_whose_objective_is_learnt():
    """b = Phi(s) theta_i with Phi(s) = diag(1 + s): AffPCL learns the mean theta, and each agent its own solution."""

    @affpcl.problem
    class Weighted(affpcl.Problem):
        """weights"""
        agents: int = 70
        dim: int = 2
        k = 2
        p = 1

        def setup(self, key):
            self.theta = 1 + 0.1 * affpcl.normals(key, self.agents, self.dim, "theta")

        def draw(self, sample):
            return 0.3 * sample.normals(self.dim)

        def apply(self, agents, s, x):
            return (1 + s) * x

        def objective(self, agents, s):
            return (1 + s) * self.theta[:, agents]

        def Phi(self, agents, s, theta):
            return (1 + s) * theta

        def psi(self, agents, s):
            return np.ones((1, s.shape[1]))

        def mean_apply(self, agents, x):
            return x

        def mean_objective(self, agents):
            return self.theta[:, agents]

        def mean_Phi(self, agents, theta):
            return theta

    result = affpcl.run({"problem": {"kind": "weighted"}, "run": {"steps": 200, "step_size": 0.05, "replicates": 2},
                         "method": [{"kind": "affpcl", "ratio": "none"}, {"kind": "affpcl", "name": "linear", "ratio": "linear"},
                                    {"kind": "fedavg"}]})
    own = result.summary.where(method="affpcl")
    assert own["central_theta"][0] < 1e-3 and own["central_x"][0] < 1e-3
    assert own["mse_mean"][0] < result.summary.where(method="fedavg")["mse_mean"][0]


def test_registered_again():
    """As when a notebook's cell is run twice: the later class counts."""
    for factor in (1.0, 2.0):
        simple_method("Again", lambda self, block, factor=factor: block.agent["x"].fill(factor))
        replicate = affpcl.Replicate({"problem": {"kind": "gaussian"}, "run": {"steps": 1}, "method": [{"kind": "again"}]})
        replicate.advance(1)
        assert (replicate.solution("again") == factor).all()


def test_a_method_written_in_python_has_its_row_in_the_benchmark():
    tables = affpcl.benchmark("pull_to_mean", "fedavg", problems=["tabular"])
    rows = tables["rows"].where(method="pull_to_mean")
    assert list(rows["level"]) == [0, 0.3, 0.8]
    assert rows["vs_independent_mean"][0] < 1
    assert sorted(tables["methods"]["method"]) == ["fedavg", "pull_to_mean"]


@affpcl.problem
class ChannelMeans(affpcl.Problem):
    """the mean of weighted channels that all agents see, with an error of its own"""

    agents: int = 70
    dim: int = 1
    k = 2
    rows = 2

    def setup(self, key):
        self.weights = 1 + 0.1 * affpcl.normals(key, self.agents, 2, "objective")

    def draw(self, sample):
        return sample.normals(2) + 1

    def apply(self, agents, s, x):
        return x * np.ones(s.shape[1])

    def objective(self, agents, s):
        return (self.weights[:, agents] * s).sum(0)[None]

    def Phi(self, agents, s, theta):
        return (theta * s).sum(0)[None]

    def coe(self, agents, s, b, theta):
        return s * ((theta * s).sum(0) - b[0])

    def mean_apply(self, agents, x):
        return x * np.ones(agents.stop - agents.start)

    def mean_objective(self, agents):
        return self.weights[:, agents].sum(0)[None]

    def mean_Phi(self, agents, theta):
        return (theta * np.ones(agents.stop - agents.start)).sum(0)[None]

    def mean_coe(self, agents, theta):
        return np.array([[2.0, 1.0], [1.0, 2.0]]) @ (theta - self.weights[:, agents])

    def error(self, agents, x):
        return 4 * (x - self.mean_objective(agents)) ** 2


def test_channels_and_an_error_of_ones_own():
    """Phi is 1 x 2: theta^c is learnt along coe, or solved; errors are four times the squared distance."""
    study = affpcl.run({"problem": {"kind": "channel_means"}, "run": {"steps": 300, "step_size": 0.05, "replicates": 1},
                        "method": [{"kind": "affpcl", "ratio": "none"}, {"kind": "independent"},
                                   {"kind": "affpcl", "name": "learnt", "ratio": "none", "objective": "learnt"}]})
    error = dict(zip(study.summary["method"], study.summary["mse_mean"]))
    assert error["affpcl"] < 0.1 * error["independent"]
    assert error["learnt"] < 0.1 * error["independent"]
    # Independent learning at a constant step a: variance of b times a / (2 - a), b of weights near (1, 1): 2. Times 4.
    assert error["independent"] == pytest.approx(4 * 2 * 0.05 / 1.95, rel=0.2)


def test_phi_that_is_not_square_needs_coe():
    @affpcl.problem
    class NoDirection(affpcl.Problem):
        """two weights of one unknown"""

        agents: int = 2
        dim: int = 1
        k = 2

    with pytest.raises(ValueError, match="coe"):
        affpcl.run({"problem": {"kind": "no_direction"}, "run": {"steps": 2}, "method": [{"kind": "independent"}]})
