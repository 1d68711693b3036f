"""`affpcl federate` on one machine: equal to the fit of all rows, what it refuses, and what it survives."""
import csv
import json
import os
import pathlib
import random
import signal
import sys

import pytest

SITES = ["north", "south", "east", "west"]
HEADER = ["clinic", "x", "kind", "y"]


def rows_of(target, site, agents=3, rows=25):
    draw = random.Random(f"{target} {site}")
    out = []
    for k in range(agents):
        slope = draw.gauss(1, 0.5)
        for _ in range(rows):
            x, kind = draw.gauss(0, 1), draw.choice(["a", "b"])
            y = slope * x + (kind == "a") + draw.gauss(0, 1)
            out.append([f"{site}{k}", f"{x:.6f}", kind, f"{y:.6f}" if target == "number" else "yes" if y > 0.5 else "no"])
    return out


def write_csv(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows])


def job_of(sites=SITES, fit="repeats = 1", own="", **job):
    """A job file with its data beside it."""
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {"sites": sites, **job}.items())
    own_lines = "".join(f'[site.{s}]\ndata = "{s}.csv"\n{own}\n' for s in sites)
    return f'[job]\n{lines}[fit]\ntarget = "y"\nagent = "clinic"\n{fit}\n{own_lines}'


@pytest.fixture
def federation(affpcl):
    for site in SITES:
        write_csv(affpcl.folder / f"{site}.csv", rows_of("number", site))
    affpcl.write("job.toml", job_of())
    return affpcl


def agents_of(folder, sites=SITES):
    return {a["name"]: a for s in sites for a in json.loads((folder / s / "model.json").read_text())["agents"]}


def pooled(affpcl, target, sites=SITES, rows=25, repeats="1"):
    """The agents of the fit of all rows in one file."""
    write_csv(affpcl.folder / "all" / "all.csv", [row for s in sites for row in rows_of(target, s, rows=rows)])
    affpcl.succeed("fit", "all/all.csv", "--target", "y", "--agent", "clinic", "--sum", "fixed", "--repeats", repeats,
                   "--level-rows", 10, "--out", "pooled", "--quiet", "--force")
    return {a["name"]: a for a in affpcl.read_json("pooled/model.json")["agents"]}


@pytest.mark.parametrize("target", ["number", "yes/no"])
@pytest.mark.parametrize("secure", [True, False])
def test_equals_the_fit_of_all_rows_to_the_bit(affpcl, target, secure):
    for site in SITES:
        write_csv(affpcl.folder / f"{site}.csv", rows_of(target, site))
    affpcl.write("job.toml", job_of(secure=secure))
    done = affpcl.succeed("federate", "job.toml", "--out", "result")
    assert "4 sites" in done.stdout and ("masked: the centre" in done.stdout) == secure
    assert agents_of(affpcl.folder / "result") == pooled(affpcl, target)


def test_folders_hold_what_belongs_to_each_party(federation):
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    assert sorted(p.name for p in (federation.folder / "result").iterdir()) == ["centre", *sorted(SITES)]
    assert sorted(p.name for p in (federation.folder / "result" / "centre").iterdir()) == ["centre.json", "ledger.json"]
    assert federation.read_json("result/centre/centre.json")["agents"] == []
    for site in SITES:
        assert {a["agent"] for a in federation.read_json(f"result/{site}/summary.json")["agents"]} == {f"{site}{k}" for k in range(3)}
        sent = federation.read_json(f"result/{site}/ledger.json")["sent"]
        assert all(e["masked"] for e in sent if e["what"] == "sum")
    assert "y" in federation.succeed("inspect", "result/north").stdout


def test_results_are_shown_without_a_folder_and_as_json(federation):
    before = federation.files()
    result = federation.json("federate", "job.toml")
    assert [s["site"] for s in result["sites"]] == SITES and result["score"]["measure"] == "mse"
    assert all(s["agents"] == 3 and s["rows"] == 75 and s["bytes_sent"] > 0 for s in result["sites"])
    assert federation.files() == before


def test_results_are_not_overwritten(federation):
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    federation.refuse("federate", "job.toml", "--out", "result", says=["exists already", "--force"])
    federation.refuse("federate", "job.toml", "--out", "result", "--resume", says=["no interrupted job"])
    federation.succeed("federate", "job.toml", "--out", "result", "--force", "--quiet")


def test_a_site_has_options_of_its_own(federation):
    text = federation.read("west.csv").replace("clinic", "ward").replace(",", ";")
    federation.write("west.csv", text)
    federation.write("job.toml", job_of().replace('data = "west.csv"', 'data = "west.csv"\nagent = "ward"\nsep = ";"'))
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    assert agents_of(federation.folder / "result") == pooled(federation, "number")


@pytest.mark.parametrize("text, says", [
    (job_of().replace("[fit]", "[fitt]"), ["job.toml line", "fitt is not a known key", "did you mean 'fit'"]),
    (job_of(fit="repeets = 1"), ["fit.repeets is not a known key", "did you mean 'repeats'"]),
    (job_of().replace("[job]", "[job]\nmin_sites = nan"), ["job.min_sites must be a whole number from 3 to 4"]),
    (job_of().replace("[job]", "[job]\nmin_sites = 3.5"), ["job.min_sites must be a whole number from 3 to 4"]),
    (job_of().replace("[job]", "[job]\ntimeout = nan"), ["job.timeout must be a number from 1 to 86400"]),
    (job_of(fit="repeats = 5000"), ["job.toml [fit]", "--repeats"]),
    (job_of(fit='family = "gausian"'), ["gausian"]),
    (job_of(fit='out = "x"'), ["fit.out is not a known key"]),
    (job_of(engine="locl"), ["locl", "did you mean 'local'"]),
    (job_of(task="runs"), ["\"runs\" is not available in a federation", "allowed: fit, run"]),
    (job_of(spec="study.toml"), ["job.spec belongs to task"]),
    (job_of(sites=SITES[:2]), ["job.sites has 2 names", "needs 3 sites"]),
    (job_of().replace('"west"]', '"west", "north"]'), ["names 'north' twice"]),
    (job_of().replace('"west"]', '"../x"]'), ["'../x' must be of letters"]),
    (job_of(min_sites=5), ["job.min_sites", "3 to 4"]),
    (job_of(min_sites=2), ["job.min_sites", "3 to 4"]),
    (job_of().replace("[site.east]", "[site.eats]"), ["[site.eats]", "did you mean 'east'"]),
    (job_of().replace("west.csv", "wset.csv"), ["site.west.data", "there is no file", "wset.csv"]),
    (job_of(own="may_leave = 1"), ["may_leave must be true or false"]),
    (job_of(own='target = "z"'), ["target is not a known key"]),
    (job_of(engine="production"), ["[site.…]", "file of its own"]),
    (job_of(startup_kit="kit"), ["startup_kit", "production"]),
    ("[job\n", ["job.toml line 1"]),
    ("", ["there is no [job] section"]),
])
def test_a_bad_job_file_is_refused_in_one_sentence(federation, text, says):
    federation.write("job.toml", text)
    federation.refuse("federate", "job.toml", "--out", "result", says=says)


def test_sites_that_disagree_are_named(federation):
    federation.write("east.csv", federation.read("east.csv").replace("kind", "sort"))
    done = federation.run("federate", "job.toml")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "the columns of sites 'north' and 'east' differ: 'north' has 'kind' where 'east' has 'sort'" in done.stderr
    federation.write("job.toml", job_of().replace('target = "y"', 'target = "yy"'))
    done = federation.run("federate", "job.toml")
    assert done.returncode == 2 and "sites 'north', 'south', 'east', 'west': has no column 'yy'" in done.stderr


# ---- faults: a job that takes some seconds

LONG = {"rows": 100, "repeats": "10"}


@pytest.fixture
def long_job(affpcl):
    for site in SITES:
        write_csv(affpcl.folder / f"{site}.csv", rows_of("yes/no", site, rows=LONG["rows"]))
    affpcl.write("job.toml", job_of(fit=f"repeats = {LONG['repeats']}"))
    return affpcl


def children(pid):
    """The processes that a process has started, by the site that each is."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (folder / "cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if parent == pid and "--site" in words:
            found[words[words.index("--site") + 1]] = int(folder.name)
    return found


def started(affpcl, process, journal="result/journal", size=20_000):
    """Waits until sums have been added."""
    path = affpcl.folder / journal
    while process.poll() is None:
        if path.exists() and path.stat().st_size > size:
            return children(process.pid)
    pytest.fail(f"it ended before it was stopped: {process.communicate()}")


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_a_killed_site_comes_back_and_nothing_is_lost(long_job):
    process = long_job.start("federate", "job.toml", "--out", "result")
    sites = started(long_job, process)
    assert set(sites) == set(SITES)
    os.kill(sites["south"], signal.SIGKILL)
    _, errors = long_job.end(process)
    assert process.returncode == 0, errors
    assert "note: the process of site 'south' was killed (signal 9); started again" in errors
    assert agents_of(long_job.folder / "result") == pooled(long_job, "yes/no", **LONG)


def test_three_go_on_where_settings_allow(long_job):
    long_job.write("job.toml", job_of(fit=f"repeats = {LONG['repeats']}", min_sites=3, own="may_leave = true"))
    process = long_job.start("federate", "job.toml", "--out", "result")
    os.kill(started(long_job, process)["west"], signal.SIGKILL)
    out, errors = long_job.end(process)
    assert process.returncode == 0, errors
    assert "the others start again without it" in errors and "3 sites" in out
    assert agents_of(long_job.folder / "result", SITES[:3]) == pooled(long_job, "yes/no", SITES[:3], **LONG)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_job_leaves_no_process_and_resumes(long_job, how):
    process = long_job.start("federate", "job.toml", "--out", "result")
    sites = started(long_job, process)
    process.send_signal(how)
    _, errors = long_job.end(process)
    if how == signal.SIGINT:
        assert process.returncode == 130 and "--resume goes on from" in errors
        assert all(gone(pid) for pid in sites.values())
    while not all(gone(pid) for pid in sites.values()):  # sites of a killed centre end by themselves
        pass
    done = long_job.run("federate", "job.toml", "--out", "result")
    assert done.returncode == 2 and "--resume goes on with the interrupted job" in done.stderr
    sent = [path.read_text().count("\n") for path in (long_job.folder / "result").glob("*.sent")]
    assert len(sent) == 4 and min(sent) > 10
    long_job.succeed("federate", "job.toml", "--out", "result", "--resume", "--quiet")
    # The ledger has what was sent before: all that a job sends that nothing stops, and perhaps the sum under way twice.
    long_job.succeed("federate", "job.toml", "--out", "whole", "--quiet")
    messages = [{s: sum(e["messages"] for e in long_job.read_json(f"{out}/{s}/ledger.json")["sent"]) for s in SITES}
                for out in ("result", "whole")]
    assert all(messages[1][s] <= messages[0][s] <= messages[1][s] + 2 for s in SITES)
    assert not list((long_job.folder / "result").glob("*.sent"))
    assert agents_of(long_job.folder / "result") == pooled(long_job, "yes/no", **LONG)
    assert not (long_job.folder / "result" / "journal").exists()


def test_a_line_of_what_was_sent_that_is_none_is_passed_over(long_job):
    process = long_job.start("federate", "job.toml", "--out", "result")
    started(long_job, process)
    process.send_signal(signal.SIGINT)
    long_job.end(process)
    for path in (long_job.folder / "result").glob("*.sent"):
        path.write_text(path.read_text() + "rows\t99 1 5 5\nrows\t0 1")
    long_job.succeed("federate", "job.toml", "--out", "result", "--resume", "--quiet")
    for site in SITES:
        sent = long_job.read_json(f"result/{site}/ledger.json")["sent"]
        assert {entry["what"] for entry in sent} <= {"sum", "texts"}


def test_another_job_does_not_resume(long_job):
    process = long_job.start("federate", "job.toml", "--out", "result")
    started(long_job, process)
    process.send_signal(signal.SIGINT)
    long_job.end(process)
    journal = (long_job.folder / "result" / "journal").read_bytes()
    long_job.write("other.toml", job_of(fit="repeats = 2"))
    done = long_job.run("federate", "other.toml", "--out", "result", "--resume")
    assert done.returncode == 2 and "the journal of another job" in done.stderr
    # Rows that have changed since would be mixed with sums of the old ones.
    rows = (long_job.folder / "north.csv").read_text()
    (long_job.folder / "north.csv").write_text(rows[:rows.rstrip().rindex("\n") + 1])
    done = long_job.run("federate", "job.toml", "--out", "result", "--resume")
    assert done.returncode == 2 and "its data have changed" in done.stderr
    assert (long_job.folder / "result" / "journal").read_bytes() == journal


def test_classes_written_otherwise_at_a_site_are_refused(affpcl):
    """yes and no at three sites, 1 and 0 at the fourth: a model of four classes would look whole."""
    for site in SITES:
        write_csv(affpcl.folder / f"{site}.csv", rows_of("yes/no", site))
    rows = (affpcl.folder / "west.csv").read_text()
    (affpcl.folder / "west.csv").write_text(rows.replace(",yes", ",1").replace(",no", ",0"))
    affpcl.write("job.toml", job_of())
    affpcl.refuse("federate", "job.toml", says=["the target 'y' has 4 classes", "at no site more than two"])


def test_a_folder_with_a_centre_alone_is_a_model(federation):
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    assert "centre alone" in federation.succeed("inspect", "result/centre").stdout


def test_notes_of_the_sites_fits_are_printed(federation):
    printed = federation.succeed("federate", "job.toml").stdout
    assert "  note: read as numbers:" in printed


def test_force_replaces_only_results_of_a_federation(federation):
    federation.write("result/mine.txt", "mine")
    federation.refuse("federate", "job.toml", "--out", "result", "--force", says=["not the result of a federation"])


def test_a_missing_package_is_said_in_one_line(federation):
    federation.write("job.toml", job_of(engine="sim"))
    federation.write("bare", f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    (federation.folder / "bare").chmod(0o755)
    done = federation.run("federate", "job.toml", env={**os.environ, "AFFPCL_PYTHON": str(federation.folder / "bare")})
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
    assert "pip install 'affpcl[flare]'" in done.stderr and 'engine = "local" needs neither' in done.stderr
