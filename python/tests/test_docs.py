"""The pages of the documentation: their code runs, the site builds, its links hold and it loads nothing from elsewhere."""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["AFFPCL_PROGRAM"])


def load_tool():
    loader = importlib.machinery.SourceFileLoader("site_tool", str(ROOT / "tools" / "site"))
    loader_spec = importlib.util.spec_from_loader("site_tool", loader)
    module = importlib.util.module_from_spec(loader_spec)
    loader.exec_module(module)
    return module


TOOL = load_tool()


@pytest.mark.parametrize("page", TOOL.pages_to_run(), ids=lambda page: str(page.relative_to(ROOT / "docs")))
def test_the_code_of_a_page_runs(page):
    text = TOOL.executed(page, PROGRAM)
    assert text.count("```text") + text.count('class="output"') > 0


def test_a_page_that_fails_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(TOOL, "ROOT", ROOT)
    page = ROOT / "docs" / "start" / "table.md"
    monkeypatch.setattr(TOOL, "text_of", lambda _: "```sh\naffpcl fit nowhere.csv --target y\n```\n")
    with pytest.raises(RuntimeError, match="nowhere.csv"):
        TOOL.executed(page, PROGRAM)
    monkeypatch.setattr(TOOL, "text_of", lambda _: "```python\nassert False\n```\n")
    with pytest.raises(AssertionError):
        TOOL.executed(page, PROGRAM)


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<h1 id="top">x</h1><a href="b.html">b</a><a href="#top">t</a><a href="#gone">g</a>'
                                     '<script src="https://elsewhere/x.js"></script><img src="none.png">')
    found = TOOL.broken_links(tmp_path)
    assert len(found) == 4 and not any("#top" in line for line in found)


def test_the_site_builds(tmp_path):
    pytest.importorskip("mkdocs", reason="no MkDocs: tools/setup docs")
    done = subprocess.run([sys.executable, ROOT / "tools" / "site", PROGRAM, "--out", tmp_path / "site"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    reference = tmp_path / "site" / "reference"
    listed = json.loads(subprocess.run([PROGRAM, "list", "--json"], capture_output=True, text=True, check=True).stdout)
    methods = (reference / "methods.html").read_text()
    for method in listed["methods"]:
        assert all(f"<code>{name}</code>" in methods for name in [p["name"] for p in method["params"]])
        assert f">{method['name']}<" in methods
    python = (reference / "python.html").read_text()
    assert all(f"affpcl.{name}" in python for name in ("PersonalizedRegressor", "fit", "plot.gains"))
