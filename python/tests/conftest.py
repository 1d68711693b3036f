"""What the tests share: rows to fit, and the command line program, whose path is in AFFPCL_PROGRAM."""
import csv
import os
import pathlib
import subprocess
import time

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def wait_until(condition, seconds):
    """Waits until a condition holds; whether it did in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(.05)
    return True


def computes_for(child, seconds):
    """Waits until a child process has computed for so long from now on, however busy the machine is."""
    def computed():
        fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    start, deadline = computed(), time.monotonic() + 60
    while child.poll() is None and computed() < start + seconds and time.monotonic() < deadline:
        time.sleep(.005)


class Rows:
    """A CSV file as arrays: every column but target and agent is a feature."""

    def __init__(self, path, target, agent, exclude=()):
        with open(path, encoding="utf-8") as file:
            header, *lines = csv.reader(file)
        self.path, self.target, self.agent = path, target, agent
        self.columns = [c for c in header if c not in (target, agent, *exclude)]
        at = [header.index(c) for c in self.columns]
        self.X = np.array([[float(line[c]) for c in at] for line in lines])
        self.y = np.array([float(line[header.index(target)]) for line in lines])
        self.groups = np.array([line[header.index(agent)] for line in lines])


def school():
    path = ROOT.parent / "shared" / "data" / "school" / "school.csv"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def rows(tmp_path_factory):
    """12 agents that are alike, 30 rows each, two columns that matter and one that does not vary."""
    rng = np.random.default_rng(5)
    groups = np.repeat([f"site{i}" for i in range(12)], 30)
    X = rng.normal(size=(360, 4))
    X[:, 3] = 7
    slopes = np.repeat(rng.normal([2, -1, 0], 0.3, size=(12, 3)), 30, axis=0)
    y = (slopes * X[:, :3]).sum(axis=1) + rng.normal(size=360)
    path = tmp_path_factory.mktemp("rows") / "rows.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write("x0,x1,x2,x3,y,agent\n")
        for x, target, group in zip(X.tolist(), y.tolist(), groups):
            file.write(",".join(map(repr, [*x, target])) + f",{group}\n")
    return Rows(path, "y", "agent")


@pytest.fixture(scope="session")
def cli():
    """Runs the program; its standard output."""
    program = os.environ.get("AFFPCL_PROGRAM")
    if not program:
        pytest.skip("AFFPCL_PROGRAM does not name the command line program")

    def call(*arguments):
        return subprocess.run([program, *map(str, arguments)], check=True, capture_output=True, text=True).stdout

    return call
