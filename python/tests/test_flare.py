"""Federations over NVIDIA FLARE, simulated and as in production on loopback: equal to the fit of all rows, to the bit."""
import contextlib
import csv
import json
import os
import pathlib
import random
import subprocess
import sys
import uuid

import pytest
from conftest import wait_until

from affpcl import _core
from affpcl.federation import FederationCentre, FederationSite, arguments, program, study_options

psutil = pytest.importorskip("psutil", reason="needs NVIDIA FLARE: pip install 'affpcl[flare]'")
flare = pytest.importorskip("affpcl.flare", reason="needs NVIDIA FLARE: pip install 'affpcl[flare]'", exc_type=ImportError)

SITES = ["north", "south", "east", "west"]
FIT = {"target": "y", "agent": "clinic", "repeats": 1}
SECONDS = 240


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flare")
    draw = random.Random(11)
    rows = {site: [] for site in SITES}
    for k in range(12):
        slope = draw.gauss(1, 0.5)
        for _ in range(20):
            x = draw.gauss(0, 1)
            y = slope * x + draw.gauss(0, 1)
            rows[SITES[k % 4]].append([f"c{k}", f"{x:.6f}", draw.choice(["a", "b"]), f"{y:.6f}", "yes" if y > 0 else "no"])
    for name, some in [*rows.items(), ("all", [row for of in rows.values() for row in of])]:
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([["clinic", "x", "kind", "number", "class"], *some])
    return folder


def fit_of(target):
    other = "class" if target == "number" else "number"
    return {**FIT, "target": target, "exclude": [other]}


def pooled(folder, target):
    out = folder / f"pooled {target}"
    command = [program(), "fit", str(folder / "all.csv"), *arguments({**fit_of(target), "level_rows": 10}), "--sum", "fixed",
               "--out", str(out), "--force", "--quiet"]
    subprocess.run(command, check=True, timeout=60)
    return agents(out)


def agents(*folders):
    return {a["name"]: a for f in folders for a in json.loads((f / "model.json").read_text())["agents"]}


def job_text(engine, target, own=True, **more):
    job = {"engine": engine, "sites": SITES, **more}
    text = "[job]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in job.items())
    text += "[fit]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in fit_of(target).items())
    return text + "".join(f'[site.{site}]\ndata = "{site}.csv"\n' for site in SITES) * own


def federate(folder, name, text, *words):
    (folder / f"{name}.toml").write_text(text)
    env = {**os.environ, "AFFPCL_PYTHON": sys.executable, "AFFPCL_PROGRAM": program()}
    return subprocess.run([program(), "federate", f"{name}.toml", "--out", str(folder / name), *words], cwd=folder, env=env,
                          capture_output=True, text=True, timeout=SECONDS)


def test_simulated(folder):
    done = federate(folder, "sim", job_text("sim", "class"))
    assert done.returncode == 0, done.stderr + (folder / "sim" / "flare.log").read_text()[-4000:]
    assert "engine sim" in done.stdout
    assert agents(*(folder / "sim" / site for site in SITES)) == pooled(folder, "class")
    assert sorted(p.name for p in (folder / "sim" / "centre").iterdir()) == ["centre.json", "ledger.json"]


STUDY = """
[problem]
kind = "rows"
agent = "clinic"
target = "number"
features = "x"
[run]
steps = 8
replicates = 2
step_size = 0.05
""" + "".join(f'[[method]]\nkind = "{kind}"\nperiod = {period}\nsum = "fixed"\n' for kind, period in (("residual", 1), ("ditto", 3)))


def solutions(*folders):
    return sorted(row for f in folders for row in (tuple(r[k] for k in ("method", "name", "value"))
                                                   for r in csv.DictReader((f / "solutions.csv").open(newline=""))))


def test_simulated_study(folder):
    job = "[job]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in {"task": "run", "engine": "sim", "sites": SITES}.items())
    done = federate(folder, "study", job + STUDY + "".join(f'[site.{s}]\ndata = "{s}.csv"\n' for s in SITES))
    assert done.returncode == 0, done.stderr + (folder / "study" / "flare.log").read_text()[-4000:]
    (folder / "all.toml").write_text(STUDY)
    subprocess.run([program(), "run", "all.toml", "--set", f"problem.file={folder / 'all.csv'}", "--set", "run.curve_agents=[]",
                    "--out", "all", "--quiet"], cwd=folder, check=True, timeout=60)
    assert solutions(*(folder / "study" / site for site in SITES)) == solutions(folder / "all")


def test_a_site_of_a_study_has_files_of_its_own():
    options = {"spec": STUDY, "file": ["n.csv"], "agent": "ward", "threads": 2, "secure": True}
    assert study_options(options) == {"threads": 2, "secure": True, "set": ["problem.file=n.csv", "problem.agent=ward"]}
    with pytest.raises(ValueError, match="one file"):
        study_options({**options, "file": ["a.csv", "b.csv"]})


def of_job(out, *words):
    """Processes of the job in this folder whose command line has these words."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            line = process.cmdline()
            if str(out) in " ".join(line) and set(words) <= set(line):
                found.append(process)
    return found


def test_a_killed_site_comes_back_over_mutual_tls(folder):
    """kill -9 of one of four sites' processes, engine poc. (The server's takes minutes: by hand.)"""
    out = folder / "killed"
    (folder / "killed.toml").write_text(job_text("poc", "class"))
    env = {**os.environ, "AFFPCL_PYTHON": sys.executable, "AFFPCL_PROGRAM": program()}
    journal = out / "journal"
    process = subprocess.Popen([program(), "federate", "killed.toml", "--out", str(out)], cwd=folder, env=env, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    try:
        assert wait_until(lambda: process.poll() is not None or (journal.exists() and journal.stat().st_size > 10_000), SECONDS)
        site, = of_job(out, "--site", "south")
        site.kill()
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "waiting for south" in errors
    assert agents(*(out / s for s in SITES)) == pooled(folder, "class")


@pytest.fixture(scope="module")
def parties(folder):
    """A server and four sites as in production, on loopback; the administrator's startup kit."""
    mark = uuid.uuid4().hex
    os.environ[flare.MARK] = mark
    try:
        (folder / "parties").mkdir()
        kit = flare.start_parties({"sites": SITES}, folder / "parties")
        for site in SITES:
            (kit.parent / site / "local" / "affpcl.toml").write_text(f'[site.{site}]\ndata = "{folder / site}.csv"\n')
        yield kit
    finally:
        flare.end_all(mark)
        del os.environ[flare.MARK]


def test_production(folder, parties):
    done = federate(folder, "trial", job_text("production", "number", own=False, startup_kit=str(parties)))
    assert done.returncode == 0, done.stderr + (folder / "trial" / "flare.log").read_text()[-4000:]
    own = [next((parties.parent / site / "affpcl").glob("trial-*")) for site in SITES]
    assert agents(*own) == pooled(folder, "number")
    assert sorted(p.name for p in (folder / "trial" / "centre").iterdir()) == ["centre.json", "ledger.json"]
    assert not any((parties.parent / "localhost" / "affpcl").glob("*.journal"))


def test_production_sites_refuse_what_their_own_settings_do_not_allow(folder, parties):
    text = job_text("production", "number", own=False, startup_kit=str(parties), secure=False)
    done = federate(folder, "open", text)
    assert done.returncode == 2
    assert "sites 'east', 'north', 'south', 'west': it cannot go on; its own log says why" in done.stderr
    assert any("secure = false" in log.read_text() for log in (parties.parent / "north").rglob("log.txt"))


def numbers_in(messages):
    """Numbers of sums, 128 bits each; texts, and small whole numbers, which might stand anywhere by chance, are left out."""
    bodies = (_core.message_numbers(message) for message in messages)
    all_numbers = {body[k:k + 16] for body in bodies for k in range(0, len(body) - 15, 16)}
    return {number for number in all_numbers if len(set(number)) > 6 and not number.isascii()}


def test_captured_messages_hold_masked_numbers_only(folder, monkeypatch):
    from nvflare.recipe import SimEnv

    import flare_capture

    out, work = folder / "captured", folder / "simulated"
    out.mkdir()
    own = {site: {"data": [str(folder / f"{site}.csv")]} for site in SITES}
    job = {"name": "captured", "engine": "sim", "sites": SITES, "fit": fit_of("number"), "site": own, "out": str(out),
           "journal": str(out / "journal"), "status": str(out / "status.json")}
    flare.allow(work / "captured")
    policy = work / "captured" / "local" / "resources.json"
    policy.write_text(policy.read_text().replace('"affpcl.flare"', '"affpcl.flare", "flare_capture."'))
    here = str(pathlib.Path(__file__).parent)
    monkeypatch.setenv(flare.MARK, uuid.uuid4().hex)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]))
    flare.recipe(job, flare_capture.Capturing).execute(SimEnv(clients=SITES, workspace_root=str(work)))
    assert "done" in json.loads((out / "status.json").read_text())
    captured, data = [], (out / "captured").read_bytes()
    while data:
        size = int.from_bytes(data[:8], "little")
        captured.append(data[8:8 + size])
        data = data[8 + size:]

    sites = {s: FederationSite(s, "fit", {**fit_of("number"), **own[s], "secure": False}, str(out / "plain" / s), job="plain")
             for s in SITES}
    centre, plain = FederationCentre(SITES, {"key": "plain", "secure": False}), []
    while centre.state == "running":
        message = centre.message()
        for name in centre.expected():
            plain.append(sites[name].reply(message))
            centre.take(name, plain[-1])
    single = numbers_in(plain)
    assert len(single) > 1000 and len(captured) > len(plain)
    assert not single & numbers_in(captured)
    assert agents(*(out / s for s in SITES)) == agents(*(out / "plain" / s for s in SITES))


def test_a_kit_is_allowed_once_and_keeps_its_own_classes(tmp_path):
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "resources.json.default").write_text('{"format_version": 2, "class_allow_list": ["own."]}')
    for _ in range(2):
        subprocess.run([sys.executable, "-m", "affpcl.flare", "--allow", tmp_path], check=True, timeout=60)
    kept = json.loads((tmp_path / "local" / "resources.json").read_text())
    assert kept == {"format_version": 2, "class_allow_list": ["own.", *flare.CLASSES]}


JOB = {"name": "trial", "task": "fit", "engine": "production", "sites": SITES, "secure": True, "fit": {"target": "y"}}


@pytest.mark.parametrize("own, more, says", [
    ("", {}, "no section .site.north."),
    ("[site.north]", {}, "site.north.data is missing"),
    ("[site.north]\ndata = 'n.csv'\nfile = 'x'", {}, "site.north.file is not a known key"),
    ("[site.north]\ndata = 'n.csv'", {"secure": False}, "unmasked = true would"),
    ("[site.north]\ndata = 'n.csv'", {"task": "run"}, "tasks does not have 'run'"),
    ("[site.north]\ndata = 'n.csv'", {"name": "../x"}, "not of letters"),
    ("[site.north]\ndata = 'n.csv'", {"fit": {"with": "/srv/other.csv"}}, "the option 'with'"),
    ("[site.north]\ndata = 'n.csv'", {"fit": {"unmasked": True}}, "the option 'unmasked'"),
    ("[site.north]\ndata = 'n.csv'", {"fit": {"level_rows": 1}}, "names no level with fewer than 10 rows"),
    ("[site.north]\ndata = 'n.csv'\naccepts = {target = 'days'}", {}, "has target = 'y', and this site accepts 'days'"),
    ("[site.north]\ndata = 'n.csv'\naccepts = {target = ['days', 'z']}", {}, "accepts 'days' or 'z'"),
    ("[site.north]\ndata = 'n.csv'\naccepts = {target = 'y', agent = 'ward'}", {}, "lacks the option 'agent'"),
    ("[site.north]\ndata = 'n.csv'\naccepts = {agent = 'ward'}", {}, "the option 'target', which is not among"),
    ("[site.north]\ndata = 'n.csv'\naccepts = {target = 'y', privacy = 'epsilon=1,delta=1e-05'}",
     {"fit": {"target": "y", "privacy": "epsilon=4,delta=1e-05"}}, "accepts 'epsilon=1,delta=1e-05'"),
    ("[site.north]\ndata = 'n.csv'", {"engine": "poc", "site": {"north": {"data": ["/srv/other.csv"]}}, "secure": False}, "unmasked"),
])
def test_a_site_decides_by_its_own_settings(tmp_path, monkeypatch, own, more, says):
    monkeypatch.delenv("AFFPCL_SITE", raising=False)
    monkeypatch.delenv(flare.MARK, raising=False)
    (tmp_path / "affpcl.toml").write_text(own)
    with pytest.raises(flare.SiteRefused, match=says):
        flare.own_settings("north", {**JOB, **more}, str(tmp_path))


def test_files_of_a_site_are_relative_to_its_settings(tmp_path):
    (tmp_path / "affpcl.toml").write_text("[site.north]\ndata = 'n.csv'\nlevel_rows = 5\n")
    job = {**JOB, "fit": {"target": "y", "level_rows": 5}}
    assert flare.own_settings("north", job, str(tmp_path))["data"] == [str(tmp_path / "n.csv")]


def test_no_value_is_taken_for_an_option():
    assert arguments({"target": "--unmasked", "exclude": ["a", "b,c"], "plain": True, "score": False, "within": None}) == [
        "--target=--unmasked", '--exclude=a,"b,c"', "--plain", "--no-score"]
