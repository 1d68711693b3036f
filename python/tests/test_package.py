"""The package as a whole: types, stubs, the tour, pages, and a wheel that needs nothing of this tree."""
import doctest
import functools
import inspect
import os
import pathlib
import re
import runpy
import subprocess
import sys

import pytest

import affpcl
import affpcl.gym
import affpcl.plot
import affpcl.testing

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "affpcl"


def call(*command, **more):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_stubs_are_those_of_the_module(tmp_path):
    """python -m nanobind.stubgen -m affpcl._core -o python/affpcl/_core.pyi makes them anew."""
    made = tmp_path / "_core.pyi"
    call(sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "affpcl._core", "-o", made)
    assert made.read_text() == (PACKAGE / "_core.pyi").read_text()


def test_types():
    call(sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir",
         ROOT / "build" / ".mypy", "-p", "affpcl", cwd=ROOT)


def test_py_typed_and_version():
    assert (PACKAGE / "py.typed").exists()
    version = re.search(r"project\(affpcl VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert affpcl.__version__ == version


def test_tour(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    runpy.run_path(str(ROOT / "python" / "examples" / "tour.py"))
    assert (tmp_path / "gains.pdf").stat().st_size > 1000
    assert "against learning alone" in capsys.readouterr().out


def test_the_guide_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    names: dict = {"ROOT": ROOT}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)


GIVEN = {"Block", "Sample", "Shape", "__version__"}  # given to methods and problems; Method and Problem show them
MODULES = [affpcl, affpcl.gym, affpcl.plot, affpcl.testing]
PUBLIC = [(module, name) for module in MODULES for name in sorted(set(module.__all__) - GIVEN)]


@pytest.mark.parametrize("module, name", PUBLIC, ids=lambda of: getattr(of, "__name__", of))
def test_the_examples_of_docstrings_run(module, name, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    text = inspect.getdoc(getattr(module, name))
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    assert example.examples, f"{name} has no example"
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(example).failed == 0


@pytest.mark.parametrize("name", sorted(name for name in affpcl.__all__ if inspect.isclass(getattr(affpcl, name))))
def test_public_members_have_docstrings(name):
    of = getattr(affpcl, name)
    members = [(key, member) for key, member in vars(of).items()
               if not key.startswith("_") and (inspect.isroutine(member) or isinstance(member, (property, functools.cached_property)))]
    assert [key for key, _ in members if not inspect.getdoc(getattr(of, key))] == []


def test_what_notebooks_show():
    """A fit shows a chart of its gains and its table; estimators are shown by scikit-learn."""
    fitted = affpcl.fit(ROOT / "examples" / "shops.csv", target="sales", agent="shop")
    page = fitted._repr_html_()
    assert "<svg" in page and page.count("<circle") == 12 and "<table" in page and "http" not in page
    assert "sk-estimator" in affpcl.PersonalizedRegressor()._repr_html_()


@pytest.mark.skipif(not pathlib.Path("/proc/self/statm").exists(), reason="no /proc/self/statm")
def test_no_leak_over_ten_thousand_fits():
    import numpy as np

    def memory():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(12, 2)), np.repeat([0, 1, 2], 4)
    y = X[:, 0] + rng.normal(size=12)
    core = affpcl._core
    codes = core.Groups(groups.astype(np.int32), ["a", "b", "c"])
    options = core.FitOptions()
    options.target, options.agent, options.threads, options.score = "y", "agent", 1, False

    def fit(times):
        for _ in range(times):
            core.fit_arrays(X, ["u", "v"], y, [], codes, options).model.predict(X, codes)

    fit(1000)  # what is allocated once
    before = memory()
    fit(10_000)
    assert memory() - before < 2e6, "200 bytes a fit would be seen"
    estimator = affpcl.PersonalizedRegressor(threads=1)
    for _ in range(50):
        estimator.fit(X, y, groups=groups).predict(X, groups)
    before = memory()
    for _ in range(500):
        estimator.fit(X, y, groups=groups).predict(X, groups)
    assert memory() - before < 2e6
