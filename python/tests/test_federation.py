"""Sites as processes of the program, the centre in this one: a federated fit equals the fit of all rows, to the bit."""
import csv
import json
import random
import subprocess

import pytest

from affpcl import _core
from affpcl.federation import FederationCentre, FederationSite, arguments, program

SITES = ["north", "south", "east", "west"]
OPTIONS = {"target": "y", "agent": "clinic", "sum": "fixed", "repeats": 1, "threads": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("federation")
    draw = random.Random(5)
    of = {site: [] for site in SITES}
    for k in range(12):
        slope = draw.gauss(1, 0.5)
        for _ in range(25):
            x, kind = draw.gauss(0, 1), draw.choice(["a", "b"])
            y = "yes" if slope * x + (kind == "a") + draw.gauss(0, 1) > 0.5 else "no"
            of[SITES[k % 4]].append([f"c{k}", f"{x:.6f}", kind, y])
    for name, rows in [*of.items(), ("all", [row for rows in of.values() for row in rows])]:
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([["clinic", "x", "kind", "y"], *rows])
    return folder


def open_sites(files, out, job="trial", **options):
    return {name: FederationSite(name, "fit", {"data": str(files / f"{name}.csv"), **OPTIONS, **options},
                                 str(out / name), job=job) for name in SITES}


def centre_of(**more):
    return FederationCentre(SITES, {"key": "trial", **more}, more.pop("journal", None))


def run(centre, sites, until=lambda centre: False, seen=None):
    while centre.state == "running" and not until(centre):
        message = centre.message()
        for name in centre.expected():
            answer = sites[name].reply(message)
            if seen is not None:
                seen.append(answer)
            centre.take(name, answer)


def models(out):
    return {a["name"]: a for site in SITES for a in json.loads((out / site / "model.json").read_text())["agents"]}


def fit_of(data, out):
    """The agents of the fit of one file, by name."""
    command = [program(), "fit", str(data), *arguments({**OPTIONS, "level_rows": 10}), "--out", str(out), "--quiet"]
    subprocess.run(command, check=True, timeout=60)
    return {a["name"]: a for a in json.loads((out / "model.json").read_text())["agents"]}


@pytest.fixture(scope="module")
def pooled(files):
    return fit_of(files / "all.csv", files / "pooled")


@pytest.mark.parametrize("secure", [True, False])
def test_equals_the_fit_of_all_rows(files, tmp_path, pooled, secure):
    sites, centre = open_sites(files, tmp_path, secure=secure), centre_of(secure=secure)
    run(centre, sites)
    assert centre.state == "done" and all(s.done for s in sites.values())
    assert models(tmp_path) == pooled
    centre.save(tmp_path / "centre")
    assert json.loads((tmp_path / "centre" / "centre.json").read_text())["agents"] == []
    ledger = json.loads((tmp_path / "north" / "ledger.json").read_text())
    assert all(e["masked"] == secure for e in ledger["sent"] if e["what"] == "sum")


def test_a_site_without_an_agent_column_is_one_agent(tmp_path):
    for k, site in enumerate(SITES):
        draw = random.Random(k)
        rows = [(draw.gauss(0, 1), draw.gauss(0, 1)) for _ in range(30)]
        text = "x,y\n" + "".join(f"{x:.6f},{(1 + k / 4) * x + 0.1 * e:.6f}\n" for x, e in rows)
        (tmp_path / f"{site}.csv").write_text(text)
    options = {"target": "y", "sum": "fixed", "repeats": 1}
    sites = {s: FederationSite(s, "fit", {"data": str(tmp_path / f"{s}.csv"), **options}, str(tmp_path / s), job="trial")
             for s in SITES}
    centre = centre_of()
    run(centre, sites)
    assert [a["name"] for a in json.loads((tmp_path / "east" / "model.json").read_text())["agents"]] == ["east"]
    (tmp_path / "new.csv").write_text("x\n1\n")
    out = subprocess.run([program(), "predict", str(tmp_path / "east"), str(tmp_path / "new.csv")], check=True, timeout=60,
                         capture_output=True, text=True).stdout.splitlines()
    assert abs(float(out[1].split(",")[1]) - 1.5) < 0.1


def test_a_killed_site_comes_back_and_nothing_is_lost(files, tmp_path, pooled):
    sites, centre = open_sites(files, tmp_path), centre_of()
    run(centre, sites, until=lambda c: c.rounds == 40)
    sites["south"]._process.kill()
    message = centre.message()
    for name in centre.expected():
        if name == "south":
            with pytest.raises(ValueError):
                sites[name].reply(message)
            centre.lost(name)
        else:
            centre.take(name, sites[name].reply(message))
    assert centre.state == "waiting" and "south" in centre.status
    sites["south"].close()
    sites["south"] = open_sites_one(files, tmp_path, "south")
    centre.back("south")
    run(centre, sites)
    assert centre.state == "done"
    assert models(tmp_path) == pooled


def open_sites_one(files, out, name):
    return FederationSite(name, "fit", {"data": str(files / f"{name}.csv"), **OPTIONS}, str(out / name), job="trial")


@pytest.mark.parametrize("content", [b"rows,of,mine\n1,2,3\n", b"\0", b"\xff" * 40, bytes(8) + b"more"])
def test_a_file_that_is_no_journal_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "journal"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="journal"):
        FederationCentre(SITES, {"key": "trial"}, str(path))
    assert path.read_bytes() == content


def test_a_killed_centre_goes_on_from_its_journal(files, tmp_path, pooled):
    journal = str(tmp_path / "journal")
    sites, centre = open_sites(files, tmp_path), FederationCentre(SITES, {"key": "trial"}, journal)
    run(centre, sites, until=lambda c: c.rounds == 30)
    del centre
    centre = FederationCentre(SITES, {"key": "trial"}, journal)
    assert centre.rounds == 30
    run(centre, sites)
    assert centre.state == "done"
    assert models(tmp_path) == pooled


def test_three_go_on_without_a_site_that_agreed_to_be_left_behind(files, tmp_path):
    sites = open_sites(files, tmp_path, may_leave=True)
    centre = centre_of(min_sites=3)
    run(centre, sites, until=lambda c: c.rounds == 40)
    sites["west"].close()
    centre.lost("west")
    assert centre.state == "running"
    run(centre, sites)
    assert centre.state == "done" and centre.sites == SITES[:3]
    with open(files / "three.csv", "w", newline="") as file:
        rows = [line for s in SITES[:3] for line in (files / f"{s}.csv").read_text().splitlines(True)[1:]]
        file.writelines(["clinic,x,kind,y\r\n", *rows])
    wanted = fit_of(files / "three.csv", tmp_path / "pooled")
    assert {a["name"]: a for s in SITES[:3] for a in json.loads((tmp_path / s / "model.json").read_text())["agents"]} == wanted


def test_a_site_that_refuses_its_rows_ends_the_job(files, tmp_path):
    (files / "bad.csv").write_text("clinic,x,kind,y\nc1,1,a,yes\nc1,oops,a,no\n" + "c1,2,b,yes\n" * 10)
    sites, centre = open_sites(files, tmp_path), centre_of()
    sites["east"].close()
    sites["east"] = FederationSite("east", "fit", {"data": str(files / "bad.csv"), **OPTIONS}, str(tmp_path / "east"), job="trial")
    with pytest.raises(ValueError, match="'oops' is not a number"):
        run(centre, sites)


def test_messages_of_another_job_or_with_damage_are_refused(files, tmp_path):
    sites, centre = open_sites(files, tmp_path, job="another"), centre_of()
    with pytest.raises(ValueError, match="belongs to another job"):
        sites["north"].reply(centre.message())
    with pytest.raises(ValueError, match="checksum"):
        centre.take("north", centre.message()[:-1] + b"x")
    for site in sites.values():
        site.close()


def test_secure_sums_show_no_number_of_a_single_site(files, tmp_path):
    """Numbers that sites send without masks, 128 bits each, stand nowhere in their masked messages."""
    seen = {}
    for secure in (True, False):
        sites, centre, seen[secure] = open_sites(files, tmp_path / str(secure), secure=secure), centre_of(secure=secure), []
        run(centre, sites, seen=seen[secure])
    numbers = {n for message in seen[False] for n in numbers_in(message)}
    assert len(numbers) > 1000
    everything = b"".join(seen[True])
    assert not any(n in everything for n in numbers)
    assert any(n in b"".join(seen[False]) for n in numbers)


def numbers_in(message):
    """Small whole numbers, which might stand anywhere by chance, are left out."""
    body = _core.message_numbers(message)
    return [body[k:k + 16] for k in range(0, len(body) - 15, 16) if len(set(body[k:k + 16])) > 6]


def test_a_site_refuses_sums_without_masks_unless_it_allows_them(files, tmp_path):
    sites, centre = open_sites(files, tmp_path), centre_of(secure=False)
    with pytest.raises(ValueError, match="sums without masks"):
        run(centre, sites)
    for site in sites.values():
        site.close()


def test_a_lost_site_is_not_left_behind_after_a_resume_before_it_has_agreed(files, tmp_path):
    """Sums with its numbers have been opened; the sums of the others would tell them apart."""
    journal, job = str(tmp_path / "journal"), {"key": "trial", "min_sites": 3}
    sites, centre = open_sites(files, tmp_path), FederationCentre(SITES, job, journal)
    centre.lost("west")
    assert centre.state == "running" and centre.sites == SITES[:3]  # it has sent nothing yet
    centre = FederationCentre(SITES, job, journal)
    assert centre.sites == SITES  # all start again
    run(centre, sites, until=lambda c: c.rounds == 30)
    centre = FederationCentre(SITES, job, journal)
    assert centre.rounds == 30
    centre.lost("west")
    assert centre.state == "waiting"
    for site in sites.values():
        site.close()
