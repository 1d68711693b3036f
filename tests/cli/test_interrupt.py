"""Signals while a verb works: `run` keeps what is done, every verb ends soon. A terminal shows progress."""
import csv
import json
import os
import pathlib
import pty
import random
import signal
import subprocess
from typing import NamedTuple

import pytest

from _wait import computes, cpu_seconds

SPEC = '''[problem]
kind = "gaussian"
agents = 6
dim = 3
[run]
steps = 20
replicates = 3
seed = 7
tail = 5
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
period = 4
'''
LONG = ("--set", "run.replicates=1", "--set", "run.steps=100000000", "--set", "run.curve_points=100000")


class Interrupted(NamedTuple):
    code: int
    output: str
    folder: pathlib.Path
    files: dict


@pytest.fixture(scope="module", params=[
    pytest.param(["--set", "run.replicates=100000", "--set", "run.steps=2000"], id="many replicates"),
    pytest.param(LONG, id="one long replicate"),
    pytest.param([*LONG, "--threads", "2", "--set", "problem.agents=1000", "--set", "problem.environments=2"],
                 id="two threads"),
])
def interrupted(request, shared_affpcl):
    """A run that got Ctrl-C after a second of computing, however busy the machine is."""
    shared_affpcl.write("spec.toml", SPEC)
    folder = f"out{request.param_index}"
    process = shared_affpcl.start("run", "spec.toml", "--out", folder, *request.param)
    assert computes(process, 1)
    process.send_signal(signal.SIGINT)
    output, _ = shared_affpcl.end(process)
    return Interrupted(process.returncode, output, shared_affpcl.folder / folder, shared_affpcl.files())


@pytest.fixture
def summary(interrupted):
    return json.loads((interrupted.folder / "summary.json").read_text())


def test_the_exit_code_is_130(interrupted):
    assert interrupted.code == 130


def test_the_result_is_not_complete(summary):
    assert summary["manifest"]["complete"] is False


def test_what_is_done_is_kept(summary):
    setting = summary["settings"][0]
    assert setting["replicates"] >= 1
    assert setting["methods"][0]["mse"]["mean"] > 0


def test_the_curve_is_kept(interrupted):
    rows = csv.DictReader((interrupted.folder / "curves.csv").read_text().splitlines())
    assert any(row["agent"] == "all" for row in rows)


def test_the_table_says_that_it_was_interrupted(interrupted):
    assert "interrupted" in interrupted.output


def test_nothing_half_written_is_left(interrupted):
    assert f"{interrupted.folder.name}/summary.json" in interrupted.files
    assert not [name for name in interrupted.files if ".part" in name or name.endswith(".old")]


def test_a_terminal_shows_progress_and_the_time_left(affpcl):
    affpcl.write("spec.toml", SPEC)
    lead, follow = pty.openpty()
    process = affpcl.start("run", "spec.toml", "--set", "run.replicates=20000", "--set", "run.steps=400",
                           stdout=subprocess.DEVNULL, stderr=follow)
    os.close(follow)
    shown = b""
    while b" left" not in shown:
        try:
            shown += os.read(lead, 4096)
        except OSError:  # the program has ended
            break
    process.send_signal(signal.SIGINT)
    affpcl.end(process)
    os.close(lead)
    assert b"%" in shown
    assert b" left" in shown


# --- a first signal is enough ----------------------------------------------------------------------------------------

def table(rows, agents, features, target, level=""):
    """Rows of agents with random features; the target is a class or a number, and may depend on a second factor."""
    rng, lines = random.Random(rows), []
    for r in range(rows):
        x = [round(rng.gauss(0, 1), 2) for _ in range(features)]
        y = f"c{rng.randrange(8)}" if target == "class" else round(sum(x) + rng.gauss(0, 1), 2)
        lines.append(",".join(map(str, [r % agents, *x, rng.randrange(agents), y])))
    names = ["agent", *(f"x{j}" for j in range(features)), level or "spare", "y"]
    return "\n".join([",".join(names), *lines]) + "\n"


WORK = {  # what takes more than 10 s in one piece
    "a multinomial fit": "fit classes.csv --target y --out m",
    "a crossed fit": "fit levels.csv --target y --crossed level --out m",
    "affinity of a spec": "affinity spec.toml --set problem.agents=3000 --out a.json",
    "affinity, measured": "affinity spec.toml --set run.steps=100000000 --measure",
    "speed": "bench --seconds 100",
}


@pytest.fixture(scope="module")
def work(shared_affpcl):
    shared_affpcl.write("spec.toml", SPEC)
    shared_affpcl.write("classes.csv", table(20000, 400, 20, "class"))
    shared_affpcl.write("levels.csv", table(30000, 1500, 6, "number", "level"))
    return shared_affpcl


@pytest.mark.parametrize("seconds, sent", [(.2, signal.SIGINT), (1.5, signal.SIGTERM)])
@pytest.mark.parametrize("verb", WORK)
def test_a_first_signal_ends_every_verb(work, verb, seconds, sent):
    """What it still computes then is counted, which is the same on a busy machine."""
    words = WORK[verb].split()
    threads = [] if verb == "speed" else ["--threads", "1"]
    process = work.start(*words, *threads, "--quiet" if verb != "speed" else "--json")
    assert computes(process, seconds)
    before = cpu_seconds(process.pid)
    process.send_signal(sent)
    _, status, usage = os.wait4(process.pid, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    assert usage.ru_utime + usage.ru_stime - before < 2
    assert not [name for name in work.files() if name in ("m", "a.json", "b")]
