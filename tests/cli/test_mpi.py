"""Studies under mpirun: the same result on any number of ranks and threads, resumed or not; and no failure hangs."""
import json
import os
import random
import signal

import pytest

from _mpi import end_of
from _studies import EVERY_METHOD, checkpoints, result_of
from _wait import wait_until


@pytest.fixture(scope="module")
def study(shared_affpcl, mpi):
    """The program beside all.toml and `whole`, its result in one process."""
    shared_affpcl.write("all.toml", EVERY_METHOD)
    shared_affpcl.succeed("run", "all.toml", "--out", "whole", "--threads", 1)
    return shared_affpcl


@pytest.fixture(scope="module")
def result(study):
    """What every job must give."""
    return result_of(study.folder / "whole")


# --- one result ------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module", params=[(1, 1, "auto"), (2, 1, "agents"), (2, 2, "replicates"), (3, 1, "agents"),
                                        (3, 2, "agents"), (8, 1, "agents"), (8, 1, "replicates"),
                                        (16, 1, "agents")],
                ids=lambda param: "{} ranks, {} threads, split {}".format(*param))
def job(request, study, mpi):
    """A job that ended, its result's folder, its ranks and its threads."""
    ranks, threads, split = request.param
    folder = f"r-{ranks}-{threads}-{split}"
    ended = mpi.run(ranks, "run", "all.toml", "--out", folder, "--threads", threads, "--split", split)
    assert ended.code == 0, ended.said
    return ended, folder, ranks, threads


def test_the_result_is_the_same_to_the_letter(job, study, result):
    _, folder, _, _ = job
    assert result_of(study.folder / folder) == result


def test_rank_0_alone_prints(job):
    ended, folder, _, _ = job
    assert ended.output.count(f"results in {folder}") == 1
    assert not ended.said


def test_the_manifest_has_ranks_and_communication(job, study):
    _, folder, ranks, threads = job
    manifest = study.read_json(f"{folder}/summary.json")["manifest"]
    assert (manifest["ranks"], manifest["threads"]) == (ranks, threads)
    assert ("communication" in manifest) == (ranks > 1)
    assert ranks == 1 or manifest["communication"]["bytes_sent"] > 0


def test_reproduce_prints_one_json(mpi):
    ended = mpi.run(3, "reproduce", "fig-specific", "--set", "run.replicates=4", "--json")
    assert ended.code == 0, ended.said
    assert len(json.loads(ended.output)["settings"]) == 1


def test_other_verbs_print_once(mpi, study):
    ended = mpi.run(2, "list")
    assert ended.code == 0
    assert ended.output == study.run("list").stdout


def test_ranks_agree_on_one_instruction_set(mpi, study):
    words = ["run", "all.toml", "--json", "--threads", "1"]
    first = ["-x", "AFFPCL_INSTRUCTION_SET=AVX2", study.path, *words, ":", "-np", "1"]
    ended = mpi.run(1, *words, before=first)
    assert ended.code == 0, ended.said
    assert json.loads(ended.output)["manifest"]["instruction_set"] == "AVX2"


# --- problems that every rank makes its share of ---------------------------------------------------------------------

# What asks for agents of other ranks, too: pilot samples of features, all environments, all solutions, all lambdas.
AFFPCL = '''[[method]]
kind = "affpcl"
[[method]]
kind = "affpcl"
name = "learnt"
ratio = "linear"
features = "bumps"
[[method]]
kind = "affpcl"
name = "known"
objective = "known"
ratio = "none"
[[method]]
kind = "all_for_all"
'''
BASELINES = '''[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
'''


@pytest.mark.parametrize("problem, run, methods", [
    ('kind = "gaussian"', "step_size = 0.003", AFFPCL),
    ('kind = "gaussian"\nenvironments = 7', "step_size = 0.003\nparticipation = 0.3", AFFPCL),
    ('kind = "gaussian"', 'step_size = {schedule = "diminishing", per = "agent"}', AFFPCL),
    ('kind = "estimation"', "step_size = 0.003", AFFPCL),
    ('kind = "least_squares"', "step_size = 0.003", AFFPCL),
    ('kind = "network"', "step_size = 0.003", ""),
], ids=["gaussian", "environments", "rule", "estimation", "least_squares", "network"])
def test_a_problem_made_by_share_gives_the_same_result(mpi, study, problem, run, methods):
    study.write("share.toml", f"[problem]\n{problem}\nagents = 600\ndim = 3\n[run]\nsteps = 12\nreplicates = 1\n"
                              f"curve_agents = [0, -1]\n{run}\n{methods}{BASELINES}")
    words = ["run", "share.toml", "--force"]
    study.succeed(*words, "--out", "share", "--threads", 2)
    expected = result_of(study.folder / "share")
    for ranks in (3, 16):
        ended = mpi.run(ranks, *words, "--out", "shared", "--threads", 1, "--split", "agents")
        assert ended.code == 0, ended.said
        assert result_of(study.folder / "shared") == expected, ranks


# --- affinity: ranks divide the settings -----------------------------------------------------------------------------

SWEEP = '''[problem]
kind = "gaussian"
agents = 5
[run]
steps = 20
replicates = 3
step_size = 0.003
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[sweep]
"problem.delta_obj" = [0.1, 0.3, 0.5]
'''


@pytest.mark.parametrize("words", [["--json"], ["--json", "--measure"]], ids=["scores", "measured"])
def test_ranks_share_the_settings_whose_affinity_is_asked_for(mpi, study, words):
    study.write("sweep.toml", SWEEP)
    words = ["affinity", "sweep.toml", "--rounds", 40, *words]
    alone = json.loads(study.succeed(*words).stdout)
    for ranks in (2, 5):
        ended = mpi.run(ranks, *words)
        assert ended.code == 0, ended.said
        assert json.loads(ended.output) == alone
        assert not ended.said


def test_a_setting_without_affinity_is_refused_once(mpi, study):
    study.write("no-sweep.toml", SWEEP.replace('"problem.delta_obj" = [0.1, 0.3, 0.5]',
                                               '"problem.kind" = ["gaussian", "logistic", "network"]'))
    alone = study.run("affinity", "no-sweep.toml", "--rounds", 40, "--json")
    ended = mpi.run(3, "affinity", "no-sweep.toml", "--rounds", 40, "--json")
    assert ended.code == alone.returncode == 2
    assert ended.said == alone.stderr.splitlines()
    assert ended.seconds < 15


# --- ended on the way, and resumed on another number of ranks --------------------------------------------------------

def kill_one_rank(mpi, job, rng):
    ranks = mpi.rank_pids(job)
    if ranks:
        os.kill(rng.choice(ranks), signal.SIGKILL)


def end_every_rank(mpi, job, _):
    """As srun does."""
    for pid in mpi.rank_pids(job):
        os.kill(pid, signal.SIGTERM)


def end_mpirun(_, job, __):
    """mpirun kills the ranks a second later."""
    job.send_signal(signal.SIGTERM)


def signal_mpirun(_, job, __):
    """mpirun passes it on."""
    job.send_signal(signal.SIGUSR1)


@pytest.mark.parametrize("ranks, then, split, interrupt", [
    (3, 2, "agents", kill_one_rank),
    (2, 8, "replicates", kill_one_rank),
    (8, 1, "agents", kill_one_rank),
    (3, 2, "agents", end_mpirun),
    (2, 3, "agents", signal_mpirun),
    (2, 1, "replicates", end_every_rank),
])
def test_an_interrupted_job_is_resumed_on_other_ranks(mpi, study, result, ranks, then, split, interrupt):
    rng, name = random.Random(ranks), f"{interrupt.__name__}-{ranks}"
    words = ["run", "all.toml", "--out", f"{name}-out", "--force", "--checkpoint", name, "--threads", 1]
    job, enough = mpi.start(ranks, *words, "--every", 5, "--split", split), rng.randint(2, 5)
    wait_until(lambda: max(checkpoints(study.folder / name), default=0) >= enough or job.poll() is not None)
    interrupt(mpi, job, rng)
    ended = end_of(job)
    assert ended.code not in (None, 0)
    assert ended.seconds < 15
    if interrupt in (signal_mpirun, end_every_rank):
        assert len(ended.said) == 1
        assert "--resume" in ended.said[0]
    resumed = mpi.run(then, *words, "--resume")
    assert resumed.code == 0, resumed.said
    assert result_of(study.folder / f"{name}-out") == result


# --- what goes wrong is printed once ---------------------------------------------------------------------------------

@pytest.mark.parametrize("command, says", [
    ("run nowhere.toml", "nowhere.toml"),
    ("run all.toml --set run.stps=3", "run.stps"),
    ("run all.toml --out whole", "whole exists already"),
    ("run all.toml --set problem.delta_obj=0.1 --trace t.csv", "--trace"),
])
def test_an_error_of_all_ranks_is_one_sentence(mpi, study, command, says):
    ended = mpi.run(2, *command.split())
    assert ended.code == 2
    assert len(ended.said) == 1
    assert says in ended.said[0]
    assert ended.seconds < 15


def test_an_error_of_one_rank_names_the_rank(mpi, study):
    study.write("only-here.toml", EVERY_METHOD)
    ended = mpi.run(1, "run", "only-here.toml", before=[study.path, "run", "all.toml", ":", "-np", "1", "-wdir", "/"])
    assert ended.code == 2
    assert len(ended.said) == 1
    assert ended.said[0].startswith("affpcl: rank 1: ")
    assert ended.seconds < 15


def test_a_full_disk_ends_the_job_with_one_sentence(mpi, study):
    # 20 MB: room for what MPI keeps in files, not for the state of 40,000 agents.
    limit = ["bash", "-c", "ulimit -f 20000; trap '' XFSZ; exec \"$@\"", "-"]
    ended = mpi.run(2, "run", "all.toml", "--set", "problem.agents=40000", "--set", "problem.environments=2",
                    "--checkpoint", "full", "--every", 1, before=limit)
    assert ended.code == 1
    assert len(ended.said) == 1
    assert "cannot write full/" in ended.said[0]
    assert ended.seconds < 30
