"""Every write, rename, fsync, open and mkdir of a command fails once: what was there is intact, what is new is whole or absent.
Clocks jump back and forth: nothing waits, and no result changes."""
import errno
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys

import pytest

FAULTS = pathlib.Path(__file__).resolve().parents[1] / "faults"
sys.path.insert(0, str(FAULTS))
import kills  # noqa: E402

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

def library(name, folder):
    """tests/faults/NAME.c, to be loaded before the C library."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = folder / f"{name}.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, FAULTS / f"{name}.c", "-ldl"], check=True)
    return path

@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    return library("shim", tmp_path_factory.mktemp("shim"))

def contents(folder):
    """Every file below a folder, by its relative name."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

class Faulty:
    """The program in a folder, with one call that fails."""

    def __init__(self, program, shim, folder):
        self.program, self.shim, self.folder = program, shim, folder

    def run(self, words, at=0, kind="fail", error=errno.ENOSPC):
        count = self.folder.parent / "count"
        count.unlink(missing_ok=True)
        done = subprocess.run(
            [self.program.path, *words], cwd=self.folder, capture_output=True, text=True, timeout=60,
            env={**os.environ, "LD_PRELOAD": str(self.shim), "FAULT_UNDER": str(self.folder), "FAULT_AT": str(at),
                 "FAULT_KIND": kind, "FAULT_ERROR": str(error), "FAULT_COUNT": str(count)})
        return done, max(map(int, count.read_text().split()))  # of the process with most calls

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

JOB = """[job]
sites = ["north", "south", "west"]
[fit]
target = "y"
agent = "agent"
repeats = 1
[site.north]
data = "north.csv"
[site.south]
data = "south.csv"
[site.west]
data = "west.csv"
"""

def test_each_call_that_writes_may_fail_in_a_federation(affpcl, shim, tmp_path):
    """The k-th call of the centre and of every site fails: the job says so, and --resume, or the command again, ends it."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "job.toml").write_text(JOB)
    for site, agents in {"north": "abc", "south": "def", "west": "ghi"}.items():
        (folder / f"{site}.csv").write_text("agent,x,y\n" + "".join(
            f"{agents[r % 3]},{r % 7 - 3},{r * 37 % 11 + ord(agents[r % 3]) % 5}\n" for r in range(36)))
    affpcl.folder = folder
    words = ["federate", "job.toml", "--out", "out", "--quiet"]
    affpcl.succeed(*words)
    models = [f"out/{name}" for name in ("north/model.json", "south/model.json", "west/model.json", "centre/centre.json")]
    before = contents(folder)
    faulty = Faulty(affpcl, shim, folder)
    _, calls = faulty.run([*words, "--force"])
    failures = resumed = 0
    # The calls of a round are alike: all of the beginning and of the end, and some between.
    for at in sorted({*range(1, 13), *range(13, calls, max(1, calls // 12)), *range(calls - 10, calls + 1)}):
        done, _ = faulty.run([*words, "--force"], at)
        assert done.returncode in (0, 1, 2), f"call {at}: {done.returncode} {done.stderr}"
        now = contents(folder)
        for path, content in before.items():  # old or new, which are equal here
            assert path in now and (path not in models or now[path] == content), f"call {at}: {path}"
        if done.returncode != 0:
            failures += 1
            assert "No space left" in done.stderr, f"call {at}: {done.stderr}"
            resumed += "out/journal" in now
            affpcl.succeed(*words, "--resume" if "out/journal" in now else "--force")
            now = contents(folder)
        assert all(now[path] == before[path] for path in models), f"call {at}"
        assert not [path for path in now if ".part" in path or path.endswith("journal")], f"call {at}"
    assert failures > 20 and resumed > 10

CLOCKED = {
    "run": ["run", "spec.toml", "--out", "out"],
    "checkpoint": ["run", "spec.toml", "--out", "out", "--checkpoint", "saved", "--resume"],
    "fit": ["fit", "table.csv", "--target", "y", "--out", "out"],
    "federate": ["federate", "job.toml", "--out", "out"],
}

@pytest.mark.parametrize("name", CLOCKED)
def test_clocks_may_jump(affpcl, tmp_path, name):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "spec.toml").write_text(SPEC.replace("steps = 40", "steps = 40000"))
    (folder / "table.csv").write_text(kills.table())
    (folder / "job.toml").write_text(JOB)
    for site in ("north", "south", "west"):
        (folder / f"{site}.csv").write_text(TABLE.replace("a,", f"a{site},"))
    affpcl.folder = folder
    affpcl.succeed(*CLOCKED[name], "--force")
    result = folder / "out" / ("west" if name == "federate" else "")
    wanted = kills.result_of(result)
    wanted.pop("ledger.json", None)
    shutil.rmtree(folder / "saved", ignore_errors=True)
    count = tmp_path / "count"
    lead, follow = pty.openpty()
    process = affpcl.start(*CLOCKED[name], "--force", stdout=subprocess.DEVNULL, stderr=follow,
                           env={**os.environ, "LD_PRELOAD": str(library("clock", tmp_path)), "CLOCK_COUNT": str(count)})
    os.close(follow)
    shown = b""
    while True:
        try:
            shown += os.read(lead, 4096)
        except OSError:  # the program has ended
            break
    os.close(lead)
    affpcl.end(process)
    assert process.returncode == 0, shown
    assert max(map(int, count.read_text().split())) > 2
    found = kills.result_of(result)
    found.pop("ledger.json", None)
    assert found == wanted
    assert not re.search(rb"-\d", shown), shown
    assert b" 0 %   0 s left" not in shown  # nothing is known yet
    if name == "run":
        assert b" left" in shown
