"""Agents that are absent from rounds, and compressed messages, from the spec to the result folder."""
import csv
import json

import pytest

from _studies import result_of

SPEC = """[problem]
kind = "gaussian"
agents = 10
dim = 3
[run]
steps = 30
replicates = 2
[[method]]
kind = "affpcl"
[[method]]
kind = "fedavg"
[[method]]
kind = "independent"
"""


@pytest.fixture
def spec(affpcl):
    affpcl.write("s.toml", SPEC)
    return affpcl


def methods(affpcl, *options):
    out = json.loads(affpcl.succeed("run", "s.toml", "--json", "--quiet", *options).stdout)
    return {m["name"]: m for s in out["settings"] for m in s["methods"]}


def solutions(affpcl, *options):
    """x by method, step and agent, of replicate 0."""
    affpcl.succeed("run", "s.toml", "--quiet", "--trace", "t.csv", "--set", "run.replicates=1", *options)
    found = {}
    for row in csv.DictReader(affpcl.read("t.csv").splitlines()):
        if row["what"] == "x":
            found.setdefault((row["method"], int(row["step"])), {}).setdefault(int(row["agent"]), []).append(row["value"])
    return found


def movers(found, method, steps):
    return [{i for i, x in found[method, t].items() if x != found[method, t - 1][i]} for t in range(1, steps + 1)]


def test_the_same_agents_are_absent_for_every_method(spec):
    found = solutions(spec, "--set", "run.participation=0.3")
    moved = movers(found, "independent", 30)
    assert {len(m) for m in moved} == {3}
    assert movers(found, "affpcl", 30) == moved
    assert len({frozenset(m) for m in moved}) > 10


def test_traffic_is_a_mean_over_agents(spec):
    whole = methods(spec)
    some = methods(spec, "--set", "run.participation=0.34")
    for name, m in whole.items():
        assert some[name]["comm"]["up"] == pytest.approx(.3 * m["comm"]["up"], rel=1e-15)
        assert some[name]["comm"]["down"] == pytest.approx(.3 * m["comm"]["down"], rel=1e-15)
    assert whole["fedavg"]["comm"] == {"up": 3, "down": 3}


def test_full_participation_is_no_participation(spec):
    spec.succeed("run", "s.toml", "--out", "a")
    spec.succeed("run", "s.toml", "--out", "b", "--set", "run.participation=1.0", "--set", 'method.compress="none"')
    assert result_of(spec.folder / "a") == result_of(spec.folder / "b")


def test_a_schedule_is_read_beside_the_spec(spec):
    (spec.folder / "below").mkdir()
    spec.write("below/who.csv", "agent,round\n3,1\n0,1\n7,2\n")
    spec.write("below/s.toml", SPEC.replace("[run]", '[run]\nschedule = "who.csv"'))
    spec.succeed("run", "below/s.toml", "--quiet", "--trace", "t.csv", "--set", "run.replicates=1")
    found = {}
    for row in csv.DictReader(spec.read("t.csv").splitlines()):
        if row["what"] == "x" and row["method"] == "independent":
            found.setdefault(("independent", int(row["step"])), {}).setdefault(int(row["agent"]), []).append(row["value"])
    assert movers(found, "independent", 4) == [{0, 3}, {7}, {0, 3}, {7}]
    comm = json.loads(spec.succeed("run", "below/s.toml", "--json", "--quiet").stdout)
    fedavg = [m for m in comm["settings"][0]["methods"] if m["name"] == "fedavg"][0]
    assert fedavg["comm"]["up"] == pytest.approx(3 * .15)


@pytest.mark.parametrize("who, says", [
    ("round,agent\n1,10\n", "line 2, column 'agent': '10' is not an agent: 0 to 9"),
    ("round,agent\n0,1\n", "line 2, column 'round': '0' is not the number of a round"),
    ("round,agent\n1,1\n3,1\n", "has no agent in round 2"),
    ("round,agent\n", "has no rounds"),
    ("round,who\n1,1\n", "agent"),
])
def test_a_schedule_that_cannot_be_is_refused(spec, who, says):
    spec.write("who.csv", who)
    done = spec.run("run", "s.toml", "--set", "run.schedule=who.csv")
    assert done.returncode == 2
    assert says in done.stderr and "who.csv" in done.stderr


@pytest.mark.parametrize("options, says", [
    (["run.participation=0"], "participation = 0 is not allowed: it must be above 0 and at most 1"),
    (["run.participation=1.5"], "at most 1"),
    (["run.participation=0.5", "method.affpcl.central=average"], "all agents in every round"),
    (["run.participation=0.5", "run.schedule=x.csv"], "participation and schedule both say"),
    (["method.compress=zip"], "method.compress"),
    (["method.compress={kind = 'top-k', k = 3}"], "method.compress.k is not a known key"),
    (["method.compress={kind = 'quantise', share = 0.5}"], "share goes with top-k and rand-k only"),
    (["method.compress={kind = 'rand-k', bits = 4}"], "bits goes with quantise only"),
    (["method.compress={kind = 'quantise', bits = 1}"], "at least 2"),
    (["method.compress=3"], "must be a table"),
])
def test_what_makes_no_sense_is_refused(spec, options, says):
    done = spec.run("run", "s.toml", *[o for option in options for o in ("--set", option)])
    assert done.returncode == 2
    assert says in done.stderr, done.stderr


def test_compression_can_be_swept(spec):
    spec.write("s.toml", SPEC + """[sweep]
"method.compress" = ["none", {kind = "top-k", share = 0.4}, {kind = "rand-k", share = 0.4, feedback = "error"},
                     {kind = "quantise", bits = 4}]
""")
    out = json.loads(spec.succeed("run", "s.toml", "--json", "--quiet").stdout)
    up = {s["at"]["method.compress"]: s["methods"][1]["comm"]["up"] for s in out["settings"]}
    assert up == {"none": 3, "top-k 0.4": pytest.approx(1 + 2 / 64), "rand-k 0.4 feedback error": 1,
                  "quantise 4": pytest.approx(3 * 4 / 64 + 1)}
    errors = [s["methods"][1]["mse"]["mean"] for s in out["settings"]]
    assert len(set(errors)) == 4


def test_listed_with_its_keys(affpcl):
    printed = affpcl.succeed("list", "--keys").stdout
    for word in ("participation", "schedule", "top-k", "rand-k", "quantise", "feedback"):
        assert word in printed


@pytest.mark.parametrize("ranks", [2, 3])
def test_ranks_give_the_same(shared_affpcl, mpi, ranks):
    shared_affpcl.write("some.toml", SPEC.replace("agents = 10", "agents = 600") + """[sweep]
"run.participation" = [1.0, 0.3]
"method.compress" = [{kind = "top-k", share = 0.3}, {kind = "rand-k", share = 0.3}, {kind = "quantise", bits = 6}]
""")
    shared_affpcl.succeed("run", "some.toml", "--out", "some-1", "--threads", 1, "--set", "run.steps=10", "--force")
    ended = mpi.run(ranks, "run", "some.toml", "--out", f"some-{ranks}", "--threads", 1, "--split", "agents",
                    "--set", "run.steps=10")
    assert ended.code == 0, ended.said
    assert result_of(shared_affpcl.folder / f"some-{ranks}") == result_of(shared_affpcl.folder / "some-1")
