"""`affpcl fit` under mpirun: the same model on any number of ranks, each reading its part; and no failure hangs."""
import json
import os
import pathlib
import random
import shutil
import signal

import pytest

from _mpi import end_of
from _wait import cpu_seconds, wait_until

HEADER = "x0,x1,x2,x3,kind,y"
FIT_Y = ("--target", "y", "--agent", "site")


def rows_of(agents, rows, columns=4):
    """(agent, row) of agents in turn, with a string column that needs quotes."""
    rng = random.Random(1)
    slopes = [[1 + .3 * rng.gauss(0, 1) for _ in range(columns)] for _ in range(agents)]
    for _ in range(rows):
        for i, slope in enumerate(slopes):
            x = [rng.gauss(0, 1) for _ in slope]
            kind = rng.choice(("plain", '"two\nlines"', '"a, ""quoted"" b"'))
            y = sum(a * b for a, b in zip(slope, x)) + rng.gauss(0, 1) + len(kind) / 9
            yield f"site {i}", ",".join([*(f"{v:.6f}" for v in x), kind, f"{y:.6f}"])


ROWS = list(rows_of(60, 12))
ONE_FILE = f"site,{HEADER}\n" + "".join(f"{agent},{row}\n" for agent, row in ROWS)


@pytest.fixture(scope="module")
def files(shared_affpcl, mpi):
    """The program beside the rows in one file, in a file per agent, in two files side by side, and with classes."""
    first, last = ([row.split(",")[at] for _, row in ROWS] for at in (0, -1))
    agents = [agent for agent, _ in ROWS]
    shared_affpcl.write("one.csv", ONE_FILE)
    for name in set(agents):
        shared_affpcl.write(f"files/{name}.csv", "\r\n".join([HEADER, *(row for agent, row in ROWS if agent == name)]))
    shared_affpcl.write("left.csv", "site,x0\n" + "".join(f"{agent},{x}\n" for agent, x in zip(agents, first)))
    shared_affpcl.write("right.csv", "y\n" + "".join(f"{y}\n" for y in last))
    shared_affpcl.write("classes.csv", "site,x,class\n" + "".join(
        f"{agent},{x},{'lo' if float(y) < 1 else 'hi'}\n" for agent, x, y in zip(agents, first, last)))
    return shared_affpcl


# --- one model -------------------------------------------------------------------------------------------------------

def result_of(affpcl, folder):
    """model.json without its command, and the summary without what belongs to the machine."""
    model = [line for line in affpcl.read(f"{folder}/model.json").splitlines() if '"command":' not in line]
    summary = affpcl.read_json(f"{folder}/summary.json")
    for key in ("command", "host", "threads", "ranks", "seconds", "communication"):
        summary["manifest"].pop(key, None)
    return model, json.dumps(summary)


@pytest.fixture(scope="module", params=[
    pytest.param(["one.csv", *FIT_Y], id="one file"),
    pytest.param(["files", "--target", "y"], id="a file per agent"),
    pytest.param(["left.csv", "--with", "right.csv", *FIT_Y], id="columns beside, which rank 0 reads"),
    pytest.param(["classes.csv", "--target", "class", "--agent", "site"], id="classes"),
    pytest.param(["one.csv", *FIT_Y, "--sum", "fixed", "--level-rows", "300"], id="sums in fixed point, rare levels"),
])
def one_process(request, files):
    """The words of a fit, and its result in one process."""
    files.succeed("fit", *request.param, "--out", "alone", "--force", "--threads", 1)
    return request.param, result_of(files, "alone")


@pytest.fixture(scope="module", params=[(1, 1), (2, 1), (2, 2), (3, 1), (8, 1)],
                ids=lambda param: "{} ranks, {} threads".format(*param))
def job(request, files, mpi, one_process):
    """The same fit as a job that ended, and its ranks; the result is in the folder r."""
    ranks, threads = request.param
    words, _ = one_process
    ended = mpi.run(ranks, "fit", *words, "--out", "r", "--force", "--threads", threads)
    assert ended.code == 0, ended.said
    return ended, ranks


def test_the_model_is_the_same_to_the_letter(files, one_process, job):
    _, expected = one_process
    assert result_of(files, "r") == expected


def test_rank_0_alone_prints(job):
    ended, _ = job
    assert ended.output.count("model in r") == 1
    assert not ended.said


def test_the_manifest_has_ranks_and_communication(files, job):
    _, ranks = job
    manifest = files.read_json("r/summary.json")["manifest"]
    assert manifest["ranks"] == ranks
    assert ("communication" in manifest) == (ranks > 1)
    assert ranks == 1 or manifest["communication"]["bytes_sent"] > 0


# --- what goes wrong is printed once, as one process prints it -------------------------------------------------------

def replace_last(old, new):
    """The one file with the last `old` replaced."""
    before, after = ONE_FILE.rsplit(old, 1)
    return before + new + after


BROKEN = {
    "short.csv": replace_last("site 58,", "site 58;"),
    "text.csv": replace_last("site 57,", "site 57,oops"),
    "quote.csv": replace_last('"two', '"two"'),
    "blank.csv": replace_last("site 55,", ","),
    "header.csv": "site,x,y\n",
}


@pytest.fixture(scope="module")
def broken(files):
    """The program beside broken files, too."""
    for name, text in BROKEN.items():
        files.write(name, text)
    return files


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("words", [*BROKEN, "nowhere.csv", "one.csv --exclude x9"])
def test_an_error_is_the_sentence_of_one_process(broken, mpi, words, ranks):
    words = ["fit", *words.split(), *FIT_Y]
    alone = broken.run(*words)
    assert alone.returncode == 2
    ended = mpi.run(ranks, *words)
    assert ended.code == 2
    assert ended.said == alone.stderr.splitlines()
    assert ended.seconds < 15


def test_the_sentence_has_the_line(broken):
    assert "line " in broken.run("fit", "short.csv", *FIT_Y).stderr


def test_one_bad_file_of_many_is_named(broken, mpi):
    shutil.copytree(broken.folder / "files", broken.folder / "many")
    broken.write("many/site 41.csv", "x0,x1\n1,2\n")
    words = ["fit", "many", "--target", "y"]
    ended = mpi.run(3, *words)
    assert ended.code == 2
    assert ended.said == broken.run(*words).stderr.splitlines()
    assert "site 41" in ended.said[0]


def test_a_file_that_one_rank_cannot_read_names_the_rank(files, mpi):
    files.write("here/only.csv", ONE_FILE)
    words = ["fit", "only.csv", *FIT_Y]
    rank_0 = ["-wdir", files.folder / "here", files.path, *words]
    ended = mpi.run(1, *words, before=[*rank_0, ":", "-np", "1", "-wdir", "/"])
    assert ended.code == 2
    assert len(ended.said) == 1
    assert "rank 1: cannot read only.csv" in ended.said[0]
    assert ended.seconds < 15


def test_a_folder_that_exists_is_refused(files, mpi):
    files.write("taken/summary.json", "{}")
    ended = mpi.run(2, "fit", "one.csv", *FIT_Y, "--out", "taken")
    assert ended.code == 2
    assert len(ended.said) == 1
    assert "taken exists already" in ended.said[0]
    assert ended.seconds < 15


# --- streams: ranks divide leaves of 256 agents ----------------------------------------------------------------------

@pytest.fixture(scope="module")
def streams(files):
    """Rows, classes, weighted outcomes and transitions of 600 agents, some with fewer rows than others."""
    rng = random.Random(3)
    header = "site,x0,x1,c0,c1,y,class\n"
    with open(files.folder / "stream.csv", "w") as rows, open(files.folder / "log.csv", "w") as log:
        rows.write(header)
        log.write("agent,state,reward,next_state\n")
        for i in range(600):
            state = rng.randrange(3)
            for _ in range(4 + i % 3):
                x, c = ([rng.gauss(0, 1) for _ in range(2)] for _ in range(2))
                y = sum(x) + .3 * i / 600 + rng.gauss(0, 1)
                rows.write(f"s{i}," + ",".join(f"{v:.5f}" for v in (*x, *c, y)) + f",{'hi' if y > 0 else 'lo'}\n")
            for _ in range(12 + i % 5):
                after = rng.randrange(3)
                log.write(f"s{i},q{state},{state + rng.random():.4f},q{after}\n")
                state = after
    files.write("weights.csv", "site,c0,c1\n" + "".join(f"s{i},1,{i % 7 / 7}\n" for i in range(600)))
    return files


@pytest.mark.parametrize("words", [
    pytest.param(["stream.csv", "--target", "y", "--exclude", "class", "--solver", "stream"], id="numbers"),
    pytest.param(["stream.csv", "--target", "class", "--exclude", "y", "--solver", "stream"], id="classes"),
    pytest.param(["stream.csv", "--channels", "c0,c1", "--weights", "weights.csv", "--features", "x0,x1",
                  "--solver", "stream"], id="channels"),
    pytest.param(["log.csv", "--task", "td", "--agent", "agent"], id="transitions"),
])
def test_a_stream_is_the_same_on_any_ranks(streams, mpi, words):
    words = [*words, *(() if "--agent" in words else ("--agent", "site")), "--force"]
    streams.succeed("fit", *words, "--out", "alone", "--threads", 1)
    expected = result_of(streams, "alone")
    for ranks, threads in ((2, 2), (3, 1), (16, 1)):
        ended = mpi.run(ranks, "fit", *words, "--out", "r", "--threads", threads)
        assert ended.code == 0, ended.said
        assert not ended.said
        assert ended.output.count("model in r") == 1
        assert result_of(streams, "r") == expected, ranks
        assert streams.read_json("r/summary.json")["manifest"]["communication"]["bytes_sent"] > 0


# --- what runs on rank 0 alone ---------------------------------------------------------------------------------------

def test_affinity_of_data_runs_on_rank_0_with_a_note(files, mpi):
    ended = mpi.run(2, "affinity", "classes.csv", "--target", "class", "--agent", "site", "--quiet")
    assert ended.code == 0, ended.said
    assert len(ended.said) == 1
    assert ended.said[0].startswith("affpcl: note: affinity of data runs on one rank")


# --- a rank that is killed -------------------------------------------------------------------------------------------

LONG = ("--threads", 1, "--repeats", 50)  # learning takes a minute or more: it never ends before the signal


def big_table():
    """160,000 rows: reading takes a tenth of a second."""
    rng = random.Random(2)
    lines = []
    for _ in range(40):
        for i in range(400):
            x = [rng.random() for _ in range(30)]
            lines.append(f"{i}," + ",".join(f"{v:.3f}" for v in x) + f",{sum(x) + x[i % 30] + rng.random():.3f}\n")
    return "site," + ",".join(f"x{j}" for j in range(30)) + ",y\n" + 10 * "".join(lines)


def has_open(pid, name):
    """Whether a process has a file of this name open."""
    try:
        return any(os.readlink(path).endswith(name) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # the process or the descriptor is gone
        return False


@pytest.mark.parametrize("seconds_of_learning", [0, 1], ids=["while it reads", "while it learns"])
def test_a_killed_rank_ends_the_job_within_seconds(shared_affpcl, mpi, seconds_of_learning):
    shared_affpcl.write("big.csv", big_table())
    job = mpi.start(3, "fit", "big.csv", *FIT_Y, *LONG, "--quiet")
    assert wait_until(lambda: len(mpi.rank_pids(job)) == 3)
    ranks = mpi.rank_pids(job)
    assert wait_until(lambda: any(has_open(pid, "big.csv") for pid in ranks))
    assert wait_until(lambda: cpu_seconds(ranks[-1]) >= seconds_of_learning)
    assert job.poll() is None
    os.kill(ranks[-1], signal.SIGKILL)
    ended = end_of(job)
    assert ended.code not in (None, 0)
    assert ended.seconds < 15


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda s: s.name)
@pytest.mark.parametrize("to", ["mpirun", "ranks"])
def test_a_first_signal_ends_a_fit_on_all_ranks(shared_affpcl, mpi, sent, to):
    shared_affpcl.write("big.csv", big_table())
    job = mpi.start(2, "fit", "big.csv", *FIT_Y, *LONG, "--quiet", "--out", "ended", "--force")
    assert wait_until(lambda: len(mpi.rank_pids(job)) == 2)
    ranks = mpi.rank_pids(job)
    assert wait_until(lambda: cpu_seconds(ranks[-1]) >= 1)
    for pid in ranks if to == "ranks" else [job.pid]:
        os.kill(pid, sent)
    ended = end_of(job)
    assert ended.code not in (None, 0)
    assert ended.seconds < 15
    if (shared_affpcl.folder / "ended").exists():  # it looked in time: a model without scores
        assert shared_affpcl.read_json("ended/summary.json")["manifest"]["complete"] is False
