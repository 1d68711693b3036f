"""Studies from Python: specs of every shape, results as tables, Ctrl-C."""
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import affpcl
from conftest import computes_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
SPEC = {
    "problem": {"kind": "gaussian", "agents": 6, "dim": 3},
    "run": {"steps": 20, "replicates": 4, "step_size": {"schedule": "constant", "value": 0.01}, "curve_agents": [0]},
    "method": [{"kind": "affpcl"}, {"kind": "independent"}],
    "sweep": {"problem.delta_env+problem.delta_obj": np.array([0.0, 0.3])},
}


@pytest.fixture(scope="module")
def result():
    return affpcl.run(SPEC)


def test_a_spec_is_a_dict_a_text_or_a_path(result, tmp_path):
    path = tmp_path / "spec.toml"
    path.write_text(result.spec, encoding="utf-8")
    for spec in (result.spec, path, str(path)):
        assert affpcl.run(spec).summary["mse_mean"].tolist() == result.summary["mse_mean"].tolist()
    more = affpcl.run(SPEC, set={"run.replicates": 5})
    assert set(more.summary["replicates"].tolist()) == {5}
    demo = affpcl.run(ROOT / "examples" / "demo.toml", set={"run.replicates": 2})
    assert demo.methods == ["affpcl", "guarded", "independent", "fedavg"]


def test_tables(result):
    assert result.methods == ["affpcl", "independent"]
    assert result.swept == ["problem.delta_env", "problem.delta_obj"]
    assert result.summary.rows == 4 and result.agents.rows == 4 * 6 and result.curves.rows == 4 * 2 * 20
    assert set(result.curves["agent"].tolist()) == {-1, 0}
    curve = result.curves.at({"problem.delta_env": 0.3, "method": "affpcl", "agent": -1})
    assert curve["step"].tolist() == list(range(1, 21))
    assert (curve["mse_lo"] <= curve["mse_mean"]).all() and (curve["mse_mean"] <= curve["mse_hi"]).all()
    alone = result.summary.where(method="independent")
    assert alone["vs_independent_mean"].tolist() == [1, 1]
    assert np.isnan(result.agents.where(method="independent")["drift_z"]).all()
    frame = result.curves.to_pandas()
    assert frame.groupby("method")["step"].max().tolist() == [20, 20]
    assert result.curves.to_polars().shape == frame.shape


def test_a_result_folder_is_the_result(result, tmp_path):
    result.save(tmp_path / "r")
    again = affpcl.load_result(tmp_path / "r")
    assert again.methods == result.methods and again.swept == result.swept and again.kinds == result.kinds
    for ours, theirs in ((again.summary, result.summary), (again.curves, result.curves), (again.agents, result.agents)):
        for name, values in theirs.items():
            if name == "sent":  # the width of a message, which the folder does not hold
                assert name not in ours
                continue
            if values.dtype.kind == "f":
                assert np.array_equal(np.asarray(ours[name], float), values, equal_nan=True), name
            else:
                assert ours[name].tolist() == values.tolist(), name
    assert again.seconds == result.seconds and again.to_dict()["headline"] == result.to_dict()["headline"]
    with pytest.raises(ValueError, match="is not a result folder"):
        affpcl.load_result(tmp_path)
    affpcl.fit({"agent": ["a", "b"] * 10, "y": list(range(20))}, target="y").save(tmp_path / "fit")
    with pytest.raises(ValueError, match="load_model"):
        affpcl.load_result(tmp_path / "fit")


def test_claims_come_with_the_folder(tmp_path):
    paper = affpcl.reproduce("fig-specific", set={"run.replicates": 2, "run.steps": 20})
    paper.save(tmp_path / "paper")
    assert affpcl.load_result(tmp_path / "paper").name == "fig-specific"


def test_a_notebook_shows_headline_chart_and_table(result):
    shown = result._repr_html_()
    assert result.to_dict()["headline"] in shown and "<table>" in shown
    assert shown.count("<circle") == 2 and "delta_env = 0" in shown


def test_threads_change_nothing(result):
    for threads in (1, 2):
        again = affpcl.run(SPEC, threads=threads)
        assert again.threads == threads
        assert again.curves["mse_mean"].tolist() == result.curves["mse_mean"].tolist()


def test_reproduce_says_what_was_expected():
    result = affpcl.reproduce("fig-specific")
    assert result.claims and all(c["holds"] for c in result.claims)
    assert result.name == "fig-specific" and "fig:specific" in result.title
    assert affpcl.run(SPEC).claims == []


def test_catalogue_has_the_defaults():
    found = affpcl.catalogue()
    assert {"gaussian", "td", "sarsa"} <= set(found["problems"])
    assert {"affpcl", "fedavg", "ditto"} <= set(found["methods"])
    assert "fig-comparison" in found["studies"]
    assert {p["name"]: p["default"] for p in found["run"]}["steps"] == 60


def test_replicates_step_by_step(result):
    spec = {**SPEC, "sweep": {}, "problem": {**SPEC["problem"], "delta_env": 0.3}}
    whole, parts = affpcl.Replicate(spec), affpcl.Replicate(spec)
    whole.advance(20)
    parts.advance(7)
    assert parts.step == 7 and parts.methods == ["affpcl", "independent"]
    resumed = affpcl.Replicate(spec)
    resumed.load(parts.save())
    resumed.advance(20)
    assert np.array_equal(resumed.solution("affpcl"), whole.solution("affpcl"))
    assert whole.solution("affpcl").shape == (6, 3) and whole.curve("affpcl").shape == (20,)
    with pytest.raises(ValueError, match="did you mean 'affpcl'"):
        whole.solution("afpcl")
    with pytest.raises(ValueError, match="one setting"):
        affpcl.Replicate(SPEC)


def test_a_replicate_is_the_studys():
    """All that a spec says of a run holds for one replicate: 70 samples in steps of 32 are 32, 32 and 6."""
    spec = {"problem": {"kind": "gaussian", "agents": 6, "dim": 3, "redraw": "samples"},
            "run": {"steps": 9, "replicates": 1, "first": 2, "step_size": 0.01, "curve_agents": [0, -1]},
            "method": [{"kind": "fedavg", "samples": 70, "batch": 32, "step_size": 0.02}, {"kind": "independent"}]}
    curves = affpcl.run(spec).curves
    replicate = affpcl.Replicate(spec, number=2)
    replicate.advance(9)
    for method in ("fedavg", "independent"):
        want = curves.at({"method": method, "agent": -1})["mse_mean"]
        assert replicate.curve(method).tolist() == want.tolist()
    with pytest.raises(ValueError, match="spec: problem.agents = 3000000000 would need about"):
        affpcl.Replicate({**spec, "problem": {"kind": "gaussian", "agents": 3_000_000_000}})


def test_other_threads_run_meanwhile():
    """The GIL is free while the engine computes."""
    ticks = []
    done = threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.monotonic()
    affpcl.run({**SPEC, "run": {"steps": 20_000, "replicates": 4}}, threads=1)
    end = time.monotonic()
    done.set()
    thread.join()
    gaps = np.diff([start, *(t for t in ticks if start < t < end), end])
    assert end - start < 0.1 or gaps.max() < 0.5 * (end - start)


WORK = {
    "a study": "affpcl.run({'problem': {'kind': 'gaussian'}, 'run': {'steps': 10_000_000}, 'method': [{'kind': 'affpcl'}]})",
    "a method in Python": """
affpcl.method(type("Alone", (affpcl.Method,), {
    "declare": lambda self, shape: affpcl.Memory(agent={"x": shape.d}),
    "update": lambda self, block: block.local_steps("x")}))
affpcl.run({'problem': {'kind': 'gaussian'}, 'run': {'steps': 10_000_000}, 'method': [{'kind': 'alone'}]})
""",
    "a fit": """
import numpy as np
X = np.random.default_rng(1).normal(size=(8000, 10))
while True:
    affpcl.PersonalizedRegressor(threads=1).fit(X, X @ np.ones(10) + X[:, 0] ** 2, groups=np.arange(8000) % 200)
""",
    "a fit that takes minutes": """
import numpy as np
random = np.random.default_rng(1)
X = random.normal(size=(20000, 20))
affpcl.PersonalizedClassifier(threads=1).fit(X, random.integers(0, 8, 20000), groups=np.arange(20000) % 400)
""",
}


@pytest.mark.parametrize("work", WORK)
def test_interruption(work):
    script = ("import affpcl\nprint('ready', flush=True)\ntry:\n" + textwrap.indent(WORK[work], "    ") +
              "\nexcept KeyboardInterrupt:\n    print('stopped', flush=True)\n")
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert child.stdout.readline() == "ready\n"
    computes_for(child, 0.5)
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=30)[0] == "stopped\n"
    assert child.returncode == 0
