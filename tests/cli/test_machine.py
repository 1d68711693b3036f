"""Machines that are short of something: a disk that is full, little memory, closed streams, folders that cannot be written or vanish."""
import os
import pathlib
import resource
import shutil
import subprocess
import sys

import pytest

import _table
from _studies import SMALL

KILLS = pathlib.Path(__file__).resolve().parents[1] / "faults" / "kills.py"
PRINTS = {
    "list": "list",
    "a table": "fit good.csv --target y",
    "JSON": "fit good.csv --target y --json",
    "rows": "predict m good.csv",
    "a study": "run small.toml",
    "a model": "inspect m",
    "help": "fit --help",
}


@pytest.fixture(scope="module")
def files(fitted):
    fitted.write("small.toml", SMALL)
    return fitted


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("what", PRINTS)
def test_output_that_is_lost_is_a_failure(files, what):
    with open("/dev/full", "w") as full:
        done = subprocess.run([files.path, *PRINTS[what].split()], cwd=files.folder, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("affpcl: cannot write to standard output")
    assert "internal error" not in done.stderr


@pytest.mark.parametrize("what", PRINTS)
def test_a_reader_that_has_enough_ends_the_program_quietly(files, what):
    process = files.start(*PRINTS[what].split())
    process.stdout.close()
    assert "error" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, -13)  # it may have printed before


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- 2>&-", "<&- >&- 2>&-"])
def test_no_file_takes_the_place_of_a_closed_stream(files, closed):
    command = f'exec "$0" fit good.csv --target y --out closed --force {closed}'
    done = subprocess.run(["/bin/sh", "-c", command, files.path], cwd=files.folder, capture_output=True, text=True)
    assert done.returncode == (1 if ">&-" in closed.replace("2>&-", "") else 0)
    assert files.read_json("closed/model.json")["coefficients"] == files.read_json("m/model.json")["coefficients"]
    assert not [name for name in files.files() if ".part" in name]


@pytest.mark.parametrize("megabytes", [40, 60, 80, 100, 150])
def test_little_memory_is_said(files, megabytes):
    files.write("long.csv", _table.HEAD + "".join(_table.ROWS * 1500))
    limit = megabytes << 20

    def little():
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    done = files.run("fit", "long.csv", "--target", "y", "--out", "little", "--force", "--quiet", "--threads", 1, preexec_fn=little)
    if "shared librar" in done.stderr:
        pytest.skip("too little to start")
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or done.stderr.splitlines() == ["affpcl: there is not enough memory for this run"]
    assert not [name for name in files.files() if ".part" in name]


def test_without_a_home_or_a_path(files):
    files.succeed("fit", "good.csv", "--target", "y", "--quiet", env={})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused(affpcl):
    affpcl.write("good.csv", _table.GOOD)
    os.chmod(affpcl.folder, 0o500)
    try:
        affpcl.refuse("fit", "good.csv", "--target", "y", "--out", "m", says=["cannot write to m"])
    finally:
        os.chmod(affpcl.folder, 0o700)


def test_a_place_that_can_have_no_files_is_refused(files):
    files.refuse("fit", "good.csv", "--target", "y", "--out", "/proc/m", says=["/proc/m"])
    files.refuse("predict", "m", "good.csv", "--out", "/proc/rows.csv", says=["/proc/rows.csv"])
    files.refuse("run", "small.toml", "--checkpoint", "/proc/saved", says=["/proc/saved"])


@pytest.mark.parametrize("words", ["fit pipe --target y --out gone/m", "predict m pipe --out gone/rows.csv --quiet"])
def test_a_folder_that_vanishes_meanwhile_is_said(files, words):
    gone, pipe = files.folder / "gone", files.folder / "pipe"
    gone.mkdir()
    os.mkfifo(pipe)
    process = files.start(*words.split())
    with open(pipe, "w") as rows:  # which begins once the program reads
        shutil.rmtree(gone)
        rows.write(_table.GOOD)
    _, errors = files.end(process)
    pipe.unlink()
    assert process.returncode == 1
    assert len(errors.splitlines()) == 1 and "gone" in errors, errors


def test_kills_at_random_times_lose_nothing(program):
    done = subprocess.run([sys.executable, KILLS, program, "24"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
