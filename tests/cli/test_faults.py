"""Every write, rename, fsync, open and mkdir of a command fails once: what was there is intact, what is new is whole or absent."""
import errno
import os
import pathlib
import shutil
import subprocess

import pytest

SHIM = pathlib.Path(__file__).resolve().parents[1] / "faults" / "shim.c"
SPEC = """[problem]
kind = "gaussian"
agents = 3
[run]
steps = 40
replicates = 2
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
"""
TABLE = "agent,x,y\n" + "".join(f"{'abc'[r % 3]},{r % 7 - 3},{r * 37 % 11}\n" for r in range(36))

@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, SHIM, "-ldl"], check=True)
    return library

def contents(folder):
    """Every file below a folder, by its relative name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

class Faulty:
    """The program in a folder, with one call that fails."""

    def __init__(self, program, shim, folder):
        self.program, self.shim, self.folder = program, shim, folder

    def run(self, words, at=0, kind="fail", error=errno.ENOSPC):
        count = self.folder.parent / "count"
        done = subprocess.run(
            [self.program.path, *words], cwd=self.folder, capture_output=True, text=True, timeout=60,
            env={**os.environ, "LD_PRELOAD": str(self.shim), "FAULT_UNDER": str(self.folder), "FAULT_AT": str(at),
                 "FAULT_KIND": kind, "FAULT_ERROR": str(error), "FAULT_COUNT": str(count)})
        return done, int(count.read_text())

def same(now, before, name):
    """Equal, but for what a manifest says of the run itself."""
    if name.endswith("summary.json"):
        return b'"settings"' in now or b'"agents"' in now
    return now == before

COMMANDS = {
    "run": ["run", "spec.toml", "--out", "out", "--force", "--quiet"],
    "fit": ["fit", "table.csv", "--target", "y", "--out", "out", "--force", "--quiet"],
    "predict": ["predict", "model", "table.csv", "--out", "predicted.csv", "--force", "--quiet"],
    "report": ["report", "model", "--out", "page.html", "--force"],
    "checkpoint": ["run", "spec.toml", "--checkpoint", "saved", "--every", "10", "--resume", "--quiet"],
}

@pytest.mark.parametrize("kind", ["fail", "short"])
@pytest.mark.parametrize("name", COMMANDS)
def test_each_call_that_writes_may_fail(affpcl, shim, tmp_path, name, kind):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "spec.toml").write_text(SPEC)
    (folder / "table.csv").write_text(TABLE)
    affpcl.folder = folder
    affpcl.succeed("fit", "table.csv", "--target", "y", "--out", "model", "--quiet")
    if name == "report" and affpcl.run("report", "model", "--out", "page.html").returncode != 0:
        pytest.skip("the page was not built")
    words = COMMANDS[name]
    affpcl.succeed(*words)
    faulty = Faulty(affpcl, shim, folder)
    done, calls = faulty.run(words)
    assert done.returncode == 0 and calls > 0, done.stderr
    before = contents(folder)
    failures = 0
    for at in range(1, calls + 1):
        if name == "checkpoint":  # a whole study each time, not one that is done
            shutil.rmtree(folder / "saved", ignore_errors=True)
            before = contents(folder)
        done, _ = faulty.run(words, at, kind)
        now = contents(folder)
        assert done.returncode in (0, 1, 2), f"call {at}: {done.returncode} {done.stderr}"
        if kind == "short":
            assert done.returncode == 0, f"call {at}: {done.stderr}"
        if done.returncode != 0:
            failures += 1
            lines = done.stderr.splitlines()
            assert len(lines) == 1 and "No space left" in lines[0], f"call {at}: {done.stderr}"
        for path, content in before.items():
            assert path in now and same(now[path], content, path), f"call {at}: {path} was lost or damaged"
        left = [path for path in now if ".part" in path]
        assert not left, f"call {at} left {left}"
    assert failures > 0 or kind == "short"
