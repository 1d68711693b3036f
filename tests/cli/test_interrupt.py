"""`affpcl run` while it runs: Ctrl-C keeps what is done, and a terminal shows progress."""
import csv
import json
import os
import pathlib
import pty
import signal
import subprocess
import time
from typing import NamedTuple

import pytest

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


def cpu_seconds(process):
    """What a process has computed so far."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


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
    deadline = time.monotonic() + 60
    while process.poll() is None and cpu_seconds(process) < 1 and time.monotonic() < deadline:
        time.sleep(.05)
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
    shown, deadline = b"", time.monotonic() + 30
    while time.monotonic() < deadline and b" left" not in shown:
        try:
            shown += os.read(lead, 4096)
        except OSError:  # the program has ended
            break
    process.send_signal(signal.SIGINT)
    affpcl.end(process)
    os.close(lead)
    assert b"%" in shown
    assert b" left" in shown
