"""What the tests of the command line share: the program, whose path is in AFFPCL_PROGRAM, and a model to read."""
import json
import os
import pathlib
import subprocess

import pytest

import _mpi
import _table
from _wait import cpu_seconds_of_ended

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Program:
    """The command line program, run in one folder."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def run(self, *words, timeout=120, **more):
        """Runs it to its end, whatever its exit code."""
        return subprocess.run([self.path, *map(str, words)], cwd=self.folder, capture_output=True, text=True,
                              timeout=timeout, **more)

    def start(self, *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
        """Starts it and returns the process."""
        return subprocess.Popen([self.path, *map(str, words)], cwd=self.folder, stdout=stdout, stderr=stderr, text=True,
                                **more)

    @staticmethod
    def end(process, seconds=60):
        """Waits for a started process; its output and errors. One that hangs is killed, and the test fails."""
        try:
            return process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"the program did not end within {seconds} s")

    def succeed(self, *words, **more):
        """Runs it and expects exit code 0."""
        done = self.run(*words, **more)
        assert done.returncode == 0, done.stderr
        return done

    def json(self, *words, **more):
        """The JSON a command prints with --json."""
        return json.loads(self.succeed(*words, "--json", **more).stdout)

    def refuse(self, *words, says=()):
        """Expects a refusal at once: exit code 2, one line that has all of `says`, no output, no file written."""
        before, start = self.files(), cpu_seconds_of_ended()
        done = self.run(*words)
        seconds = cpu_seconds_of_ended() - start
        assert done.returncode == 2, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert done.stderr.startswith("affpcl: ")
        assert done.stdout == ""
        assert self.files() == before, "it wrote a file"
        assert seconds < 5
        for phrase in says:
            assert phrase in done.stderr

    def files(self):
        """All files and folders below its folder, with the times of the files."""
        return {str(p.relative_to(self.folder)): p.stat().st_mtime_ns if p.is_file() else 0
                for p in self.folder.rglob("*")}

    def write(self, name, content):
        """Writes a file into its folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read(self, name):
        """A text file of its folder."""
        return (self.folder / name).read_text()

    def read_json(self, name):
        """A JSON file of its folder."""
        return json.loads(self.read(name))


@pytest.fixture(scope="session")
def program():
    """The path of the program."""
    named = os.environ.get("AFFPCL_PROGRAM")
    path = pathlib.Path(named or ROOT / "build" / "dev" / "affpcl").resolve()
    if named and not path.exists():
        pytest.fail(f"AFFPCL_PROGRAM names {path}, which does not exist")
    if not path.exists():
        pytest.skip(f"there is no program {path}; build it, or name one in AFFPCL_PROGRAM")
    return str(path)


@pytest.fixture
def affpcl(program, tmp_path):
    """The program in a folder of the test's own."""
    return Program(program, tmp_path)


@pytest.fixture(scope="module")
def shared_affpcl(program, tmp_path_factory):
    """The program in a folder that all tests of a file share, for what is made once and then only read."""
    return Program(program, tmp_path_factory.mktemp("shared"))


@pytest.fixture(scope="session")
def affpcl_at_root(program):
    """The program in the root of the source tree, for what only reads."""
    return Program(program, ROOT)


@pytest.fixture(scope="module")
def fitted(shared_affpcl):
    """The program beside the table good.csv and the model m that was fitted to it."""
    shared_affpcl.write("good.csv", _table.GOOD)
    shared_affpcl.succeed("fit", "good.csv", "--target", "y", "--out", "m")
    return shared_affpcl


@pytest.fixture(scope="module")
def mpi(shared_affpcl):
    """Jobs of mpirun in the folder of `shared_affpcl`."""
    if not _mpi.MPIRUN:
        pytest.skip("there is no mpirun; tools/setup mpi installs it")
    if "without MPI" in shared_affpcl.run("reproduce", "fig-specific", "--set", "run.steps=1", "--mpi").stderr:
        pytest.skip("the program was built without MPI; tools/setup mpi installs it")
    return _mpi.Jobs(shared_affpcl)
