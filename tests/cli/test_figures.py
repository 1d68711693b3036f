"""`affpcl reproduce --figures`: drawn by the package for Python, refused before the work where there is none."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = ("reproduce", "fig-specific", "--set", "run.replicates=2", "--set", "run.steps=12")


@pytest.fixture
def drawing(affpcl):
    """The environment of a Python with the package and matplotlib."""
    pytest.importorskip("matplotlib")
    package = pathlib.Path(affpcl.path).resolve().parent / "python"
    if not list(package.glob("affpcl/_core*.so")):
        pytest.skip("the package for Python was not built beside the program")
    return {**os.environ, "AFFPCL_PYTHON": sys.executable, "PYTHONPATH": str(package)}


@pytest.mark.parametrize("ending, magic", [("pdf", b"%PDF"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_figure_is_in_the_folder(affpcl, drawing, ending, magic):
    out = affpcl.succeed(*SMALL, "--out", "r", "--figures", ending, env=drawing).stdout
    assert f"figure in r/fig-specific.{ending}" in out
    assert (affpcl.folder / f"r/fig-specific.{ending}").read_bytes().startswith(magic)


def test_without_matplotlib_it_is_refused_before_the_work(affpcl, monkeypatch):
    affpcl.write("none/matplotlib.py", "raise ImportError\n")
    for name in ("AFFPCL_PYTHON", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", str(affpcl.folder / "none"))
    affpcl.refuse(*SMALL, "--out", "r", "--figures", "pdf", says=["--figures", "pip install 'affpcl[plot]'"])


def test_a_figure_needs_a_folder(affpcl):
    affpcl.refuse(*SMALL, "--figures", "pdf", says=["--figures", "--out"])


def test_the_benchmark_has_no_figure(affpcl):
    affpcl.refuse("reproduce", "benchmark", "--figures", "pdf", says=["benchmark", "no figure"])
