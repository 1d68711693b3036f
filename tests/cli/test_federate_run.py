"""`affpcl federate` with task = "run": a study over sites is the study of all rows, and what it refuses."""
import csv
import json
import os
import random
import signal

import pytest

from test_federate import started

SITES = {"north": 3, "south": 60, "east": 70, "west": 4}  # agents: sites begin and end inside blocks of 64
STUDY = """
[problem]
kind = "rows"
agent = "clinic"
channels = "cost,days"
delta_obj = 0.5
fold = "fold"
ridge = 0.05
[run]
steps = {steps}
replicates = 3
step_size = 0.05
"""
METHODS = {"affpcl": 'ratio = "linear"\nperiod = 4', "residual": "", "ditto": "period = 3", "fedavg": "period = 5",
           "independent": ""}
LISTED = "".join(f'[[method]]\nkind = "{kind}"\n{more}\n' for kind, more in METHODS.items())


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([["clinic", "fold", "x", "z", "cost", "days"], *rows])


def job_of(steps=12, own="", study=None, **job):
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {"task": "run", "sites": list(SITES), **job}.items())
    sites = "".join(f'[site.{s}]\ndata = "{s}.csv"\n{own}\n' for s in SITES)
    return f"[job]\n{lines}{STUDY.format(steps=steps) + LISTED if study is None else study}\n{sites}"


@pytest.fixture
def federation(affpcl):
    rows = {}
    for site, agents in SITES.items():
        draw = random.Random(site)
        rows[site] = []
        for k in range(agents):
            a, b = draw.gauss(1, 0.5), draw.gauss(0, 0.5)
            for i in range(draw.randint(6, 12)):
                x, z = draw.gauss(0, 1), draw.gauss(0, 1)
                values = x, z, a * x + b * z + draw.gauss(0, 0.3), b * x - a * z + draw.gauss(0, 0.3)
                rows[site].append([f"{site}{k}", i % 3, *(f"{v:.6f}" for v in values)])
        write(affpcl.folder / f"{site}.csv", rows[site])
    write(affpcl.folder / "all.csv", [row for own in rows.values() for row in own])
    affpcl.write("job.toml", job_of())
    return affpcl


def table(path, *keys):
    with open(path, newline="") as file:
        return [tuple(row[k] for k in keys) for row in csv.DictReader(file)]


def solutions(folder):
    return table(folder / "solutions.csv", "method", "name", "unknown", "value")


def curves(folder):
    return table(folder / "curves.csv", "method", "step", "mse_mean", "mse_lo", "mse_hi", "mse_median")


def pooled(affpcl, steps=12):
    study = STUDY.format(steps=steps).replace("[run]", 'file = "all.csv"\n[run]\ncurve_agents = []') + LISTED
    affpcl.write("study.toml", study)
    affpcl.succeed("run", "study.toml", "--sum", "fixed", "--out", "pooled", "--quiet", "--force")
    return affpcl.folder / "pooled"


def expect_same(affpcl, folder, all_rows):
    result = affpcl.folder / folder
    assert sorted(s for site in SITES for s in solutions(result / site)) == sorted(solutions(all_rows))
    for site in SITES:
        assert curves(result / site) == curves(all_rows)


@pytest.mark.parametrize("secure", [True, False])
def test_equals_the_study_of_all_rows_to_the_bit(federation, secure):
    federation.write("job.toml", job_of(secure=secure))
    done = federation.succeed("federate", "job.toml", "--out", "result")
    assert "4 sites" in done.stdout and ("masked: the centre" in done.stdout) == secure
    assert all(f"  {kind} " in done.stdout for kind in METHODS)
    expect_same(federation, "result", pooled(federation))


def test_folders_hold_what_belongs_to_each_party(federation):
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    result = federation.folder / "result"
    assert sorted(p.name for p in result.iterdir()) == sorted(["centre", *SITES])
    assert sorted(p.name for p in (result / "centre").iterdir()) == ["centre.json", "ledger.json"]
    text = (result / "centre" / "centre.json").read_text()
    assert not any(f"{site}0" in text for site in SITES)
    centre = json.loads(text)
    methods = centre["settings"][0]["methods"]
    assert centre["agents"] == sum(SITES.values()) and [m["name"] for m in methods] == list(METHODS)
    assert len(methods[0]["x"]) == 2 and len(methods[0]["curve"]) == 3 and methods[-1]["x"] == []
    for site, agents in SITES.items():
        assert {name for _, name, _, _ in solutions(result / site)} == {f"{site}{k}" for k in range(agents)}
        sent = federation.read_json(f"result/{site}/ledger.json")["sent"]
        assert {"rounds of affpcl", "errors of independent", "number of agents of every site"} <= {e["purpose"] for e in sent}
        assert all(e["masked"] for e in sent if e["what"] == "sum")
        assert [e["purpose"] for e in sent if e["what"] != "sum"] == ["names of columns, numbers of folds and repeats"]
        assert federation.read(f"result/{site}/centre.json") == text


def test_results_are_json_and_pages(federation):
    result = federation.json("federate", "job.toml", "--out", "result", "--report")
    assert [s["site"] for s in result["sites"]] == list(SITES) and [s["agents"] for s in result["sites"]] == list(SITES.values())
    assert result["settings"] == federation.read_json("result/centre/centre.json")["settings"]
    assert all((federation.folder / "result" / site / "report.html").exists() for site in SITES)


def test_the_study_may_be_a_file_and_sites_have_settings_of_their_own(federation):
    study = STUDY.format(steps=12) + LISTED
    federation.write("methods.toml", study)
    federation.write("west.csv", federation.read("west.csv").replace("clinic", "ward"))
    job = job_of(study="", spec="methods.toml").replace('data = "west.csv"', 'data = "west.csv"\nagent = "ward"\nthreads = 2')
    federation.write("job.toml", job)
    federation.succeed("federate", "job.toml", "--out", "result", "--quiet")
    expect_same(federation, "result", pooled(federation))


@pytest.mark.parametrize("text, says", [
    (job_of(task="runs"), ['job.task = "runs"', "allowed: fit, run"]),
    (job_of() + "[fit]\ntarget = 'y'\n", ["fit is not a known key"]),
    (job_of().replace("steps = 12", "stepz = 12"), ["job.toml line 13", "run.stepz", "did you mean 'steps'"]),
    (job_of().replace('"residual"', '"residuol"'), ["residuol", "did you mean 'residual'"]),
    (job_of().replace('agent = "clinic"', 'file = "all.csv"'), ["problem.file belongs to the sites", "data"]),
    (job_of().replace('agent = "clinic"', 'weights = "w.csv"'), ["problem.weights belongs to the sites", "[site.NAME] weights"]),
    (job_of(study='[problem]\nkind = "gaussian"\n' + LISTED), ['problem.kind = "gaussian"', "allowed: rows"]),
    (job_of(spec="methods.toml"), ["is in the study already", "methods.toml"]),
    (job_of(study="", spec="methods.toml"), ["there is no file", "methods.toml"]),
    (job_of(own='sep = ";"'), ["site.north.sep is not a known key"]),
    (job_of().replace('"west.csv"', '["west.csv", "east.csv"]'), ["site.west.data: a study has one file"]),
])
def test_a_bad_job_file_is_refused_in_one_sentence(federation, text, says):
    federation.write("job.toml", text)
    federation.refuse("federate", "job.toml", "--out", "result", says=says)


def test_sites_that_disagree_are_named(federation):
    federation.write("east.csv", federation.read("east.csv").replace(",z,", ",w,"))
    done = federation.run("federate", "job.toml")
    assert done.returncode == 2 and "site 'east': features: 'x, w' here, and 'x, z' at another site" in done.stderr


def test_a_site_runs_no_file_of_the_job_and_needs_a_folder(federation):
    federation.write("study.toml", STUDY.format(steps=12).replace("[run]", 'file = "all.csv"\n[run]') + LISTED)
    federation.refuse("run", "study.toml", "--site", "north", "--job", "x", "--out", "o",
                      says=["problem.file is not for the job to say"])
    federation.refuse("run", "study.toml", "--site", "north", "--job", "x", says=["--site needs --out"])


def test_a_killed_site_comes_back_and_a_stopped_job_resumes(federation):
    federation.write("job.toml", job_of(steps=600))
    process = federation.start("federate", "job.toml", "--out", "result")
    os.kill(started(federation, process)["south"], signal.SIGKILL)
    # Sums go on only once the site is back.
    started(federation, process, size=5000 + (federation.folder / "result" / "journal").stat().st_size)
    process.send_signal(signal.SIGINT)
    _, errors = federation.end(process)
    assert process.returncode == 130 and "site 'south' was killed (signal 9); started again" in errors
    federation.succeed("federate", "job.toml", "--out", "result", "--resume", "--quiet")
    expect_same(federation, "result", pooled(federation, steps=600))
