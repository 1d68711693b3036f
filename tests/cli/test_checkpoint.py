"""Checkpoints: whatever ends a study, --resume goes on to the same result, on any number of threads."""
import os
import random
import resource
import shutil
import signal

import pytest

from _studies import EVERY_METHOD, checkpoints, result_of
from _wait import wait_until


@pytest.fixture(scope="module")
def study(shared_affpcl):
    """The program beside all.toml and `whole`, its result without checkpoints."""
    shared_affpcl.write("all.toml", EVERY_METHOD)
    shared_affpcl.succeed("run", "all.toml", "--out", "whole", "--threads", 1)
    return shared_affpcl


@pytest.fixture(scope="module")
def result(study):
    """What every interrupted and resumed run must give."""
    return result_of(study.folder / "whole")


@pytest.fixture(scope="module")
def finished(study):
    """The checkpoints of a study that ran to its end, in the folder `done`."""
    study.succeed("run", "all.toml", "--out", "done-out", "--checkpoint", "done", "--every", 15)
    return study.folder / "done"


def run_until(affpcl, folder, threads, sent, after):
    """Runs or resumes the study, and sends a signal after so many checkpoints; the exit code and standard error."""
    process = affpcl.start("run", "all.toml", "--out", f"{folder}-out", "--force", "--threads", threads,
                           "--checkpoint", folder, "--every", 15, "--resume")
    wait_until(lambda: process.poll() is not None or max(checkpoints(affpcl.folder / folder), default=0) >= after)
    process.send_signal(sent)
    _, errors = affpcl.end(process)
    return process.returncode, errors


@pytest.mark.parametrize("threads, then", [(1, 2), (2, 1)])
def test_killed_twice_and_resumed_on_other_threads(study, result, threads, then):
    name, rng = f"killed-{threads}", random.Random(threads)
    folder = study.folder / name
    code, errors = run_until(study, name, threads, signal.SIGKILL, rng.randint(1, 4))
    assert code == -signal.SIGKILL, errors
    assert checkpoints(folder)
    run_until(study, name, threads, signal.SIGKILL, checkpoints(folder)[-1] + rng.randint(1, 4))
    assert checkpoints(folder)
    study.succeed("run", "all.toml", "--out", f"{name}-out", "--force", "--threads", then, "--checkpoint", name,
                  "--resume")
    assert len(checkpoints(folder)) == 2
    assert result_of(study.folder / f"{name}-out") == result


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1], ids=lambda s: s.name)
def test_a_signal_ends_a_study_that_can_be_resumed(study, result, sent):
    name = sent.name
    code, errors = run_until(study, name, 2, sent, 2)
    assert code == 130
    assert "--resume" in errors
    assert len(errors.splitlines()) == 1
    assert study.read_json(f"{name}-out/summary.json")["manifest"]["complete"] is False
    study.succeed("run", "all.toml", "--out", f"{name}-out", "--force", "--checkpoint", name, "--resume")
    assert result_of(study.folder / f"{name}-out") == result


def test_a_finished_study_is_not_run_again(study, finished):
    again = study.json("run", "all.toml", "--checkpoint", "done", "--resume")
    assert again["settings"] == study.read_json("done-out/summary.json")["settings"]  # its seconds too


@pytest.mark.parametrize("options, says", [
    ("--checkpoint done", ["done", "--resume"]),
    ("--checkpoint done --resume --set run.steps=61", ["run.steps is 60 there and 61 here"]),
    ("--checkpoint done --resume --seed 9", ["run.seed"]),
    ("--resume", ["--resume", "--checkpoint"]),
    ("--every 5", ["--every", "--checkpoint"]),
    ("--checkpoint x --every 0", ["--every"]),
    ("--checkpoint whole", ["whole"]),
    ("--checkpoint all.toml", ["all.toml"]),
])
def test_refused(study, finished, options, says):
    study.refuse("run", "all.toml", *options.split(), says=says)


@pytest.mark.parametrize("more", [(), ("--resume",)])
def test_a_kill_within_the_first_checkpoint_is_no_obstacle(study, more):
    folder = study.folder / f"begun{len(more)}"
    folder.mkdir()
    (folder / "checkpoint-1.affpcl.part").write_bytes(b"half")
    study.succeed("run", "all.toml", "--checkpoint", folder, *more)
    assert checkpoints(folder)
    assert not [path for path in folder.iterdir() if path.suffix == ".part"]


def test_a_damaged_checkpoint_is_passed_over_with_a_note(study, result, finished):
    folder = shutil.copytree(finished, study.folder / "cut")
    newest = checkpoints(folder)[-1]
    path = folder / f"checkpoint-{newest}.affpcl"
    path.write_bytes(path.read_bytes()[:-9])
    done = study.succeed("run", "all.toml", "--out", "cut-out", "--checkpoint", "cut", "--resume")
    assert str(newest) in done.stderr
    assert "going on from" in done.stderr
    assert result_of(study.folder / "cut-out") == result


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full: limits of files may not work here")
def test_a_full_disk_leaves_nothing_half_written(study):
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    done = study.run("run", "all.toml", "--checkpoint", "full", "--every", 5, preexec_fn=small_files, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("affpcl: cannot write full/")
    assert len(done.stderr.splitlines()) == 1
    assert not [name for name in study.files() if name.startswith("full/")]


def test_reproduce_has_a_folder_of_checkpoints_for_each_study(affpcl):
    affpcl.succeed("reproduce", "fig-specific", "td-agents", "--set", "run.replicates=2", "--out", "two", "--quiet",
                   "--checkpoint", "both")
    assert checkpoints(affpcl.folder / "both/fig-specific")
    assert checkpoints(affpcl.folder / "both/td-agents")


def test_resume_of_a_whole_result_says_so(study, result):
    words = ("run", "all.toml", "--out", "again-out", "--checkpoint", "again", "--every", 15, "--resume")
    study.succeed(*words)
    before = study.files()
    done = study.succeed(*words)
    assert "again-out holds the complete result of this study" in done.stderr
    assert done.stdout == "" and study.files() == before
    # Another study is not that result.
    assert study.run(*words, "--set", "run.seed=12345").returncode == 2


def test_resume_replaces_an_interrupted_result(study, result):
    code, errors = run_until(study, "stopped", 1, signal.SIGINT, 2)
    assert code == 130, errors
    assert not study.read_json("stopped-out/summary.json")["manifest"]["complete"]
    study.succeed("run", "all.toml", "--out", "stopped-out", "--checkpoint", "stopped", "--resume")
    assert result_of(study.folder / "stopped-out") == result
