"""`--privacy`: what it promises, what it writes, and what it refuses; in one file and over sites."""
import csv
import json
import random

import pytest

BOUNDS = "y=-2:2,x=-1:1,kind=a|b|c"
TERMS = ["--privacy", "epsilon=4,delta=1e-5", "--bounds", BOUNDS]
SITES = ["north", "south", "east", "west"]


def rows_of(name, agents=6, rows=400):
    draw = random.Random(name)
    out = []
    for k in range(agents):
        slope = draw.gauss(0.5, 0.2)
        for _ in range(rows):
            x, kind = draw.uniform(-1, 1), draw.choice("abc")
            out.append([f"{name}{k}", f"{x:.5f}", kind, f"{slope * x + 0.3 * (kind == 'b') + draw.gauss(0, 0.3):.5f}"])
    return out


def write_rows(affpcl, path, rows):
    with open(affpcl.folder / path, "w", newline="") as file:
        csv.writer(file).writerows([["agent", "x", "kind", "y"], *rows])


@pytest.fixture
def table(affpcl):
    write_rows(affpcl, "t.csv", rows_of("n", agents=12))
    return affpcl


def test_a_private_fit_says_what_was_spent_and_is_near_the_fit(table):
    done = table.succeed("fit", "t.csv", "--target", "y", *TERMS, "--out", "p")
    assert "epsilon 4, delta 1e-05 for every row" in done.stdout and "not scored" in done.stdout
    table.succeed("fit", "t.csv", "--target", "y", "--no-score", "--out", "plain", "--quiet")
    for name in ("summary", "model", "centre"):
        spent = table.read_json(f"p/{name}.json")["privacy"]
        assert (spent["epsilon"], spent["delta"], spent["releases"]) == (4, 1e-5, 1)
        assert spent["noise_multiplier"] == pytest.approx(1.0812, abs=1e-4)
        assert spent["sensitivity"] == pytest.approx((4 * 5 / 2) ** 0.5)  # 1, x, one level, y
    private, plain = table.read_json("p/model.json"), table.read_json("plain/model.json")
    assert [a["name"] for a in private["agents"]] == [a["name"] for a in plain["agents"]]
    assert all(abs(a["rows"] - 400) < 30 for a in private["agents"])  # they have noise too

    def slopes(model):
        at, sd = model["coefficients"].index("x"), model["columns"][[c["name"] for c in model["columns"]].index("x")]["sd"][0]
        return [a["channels"][0]["x"][at] / sd for a in model["agents"]]

    assert all(abs(a - b) < 0.2 for a, b in zip(slopes(private), slopes(plain)))
    table.succeed("predict", "p", "t.csv", "--out", "predicted.csv")
    table.succeed("fit", "t.csv", "--centre", "p/centre.json", "--out", "home", "--no-score", "--quiet")


def test_noise_is_drawn_anew_by_every_fit(table):
    for name in "ab":
        table.succeed("fit", "t.csv", "--target", "y", *TERMS, "--out", name, "--quiet", "--seed", 1)
    assert table.read_json("a/model.json")["agents"] != table.read_json("b/model.json")["agents"]


def test_nothing_that_is_written_counts_rows(table):
    """Rows that are blank, of unknown levels or out of bounds change numbers only as far as the noise does."""
    rows = rows_of("n", agents=12)
    rows[7][1], rows[9][2], rows[11][3] = "", "zebra", "1e9"
    write_rows(table, "t.csv", rows)
    table.succeed("fit", "t.csv", "--target", "y", *TERMS, "--missing", "mean", "--out", "p")
    texts = [table.read(f"p/{name}") for name in ("model.json", "summary.json", "centre.json")]
    assert not any("zebra" in text or "1e+09" in text for text in texts)
    assert len(table.read_json("p/summary.json")["notes"]) == 1


@pytest.mark.parametrize("words, says", [
    (["--privacy", "epsilon=4,delta=1e-5"], "needs --bounds"),
    (["--bounds", BOUNDS], "--bounds belongs to --privacy"),
    (["--privacy", "epsilon=4", "--bounds", BOUNDS], "lacks delta"),
    (["--privacy", "epsilon=0,delta=1e-5", "--bounds", BOUNDS], "epsilon = '0'"),
    (["--privacy", "epsilon=4,delta=1e-5", "--bounds", "y=-2:2,x=-1:1"], "lacks the column 'kind'"),
    (["--privacy", "epsilon=4,delta=1e-5", "--bounds", "x=-1:1,kind=a|b"], "lacks the target 'y'"),
    (["--privacy", "epsilon=4,delta=1e-5", "--bounds", "y=-2:2,x=1:-1,kind=a|b"], "'x=1:-1'"),
    (["--privacy", "epsilon=4,delta=1e-5", "--bounds", BOUNDS + ",z=0:1"], "no column 'z'"),
    (["--privacy", "epsilon=4,delta=1e-5", "--bounds", "y=-2:2,x=-1:1,kind=0:1"], "column 'kind'"),
    ([*TERMS, "--family", "poisson"], "gaussian family"),
    ([*TERMS, "--family", "binomial"], "gaussian family"),
    ([*TERMS, "--solver", "stream"], "--solver exact"),
    ([*TERMS, "--within", "kind"], "--within does not go with --privacy"),
    ([*TERMS, "--repeats", 3], "--repeats"),
    ([*TERMS, "--missing", "indicator"], "--missing indicator"),
    ([*TERMS, "--exclude", "x"], "'x', which is left out"),
    (["--privacy", "epsilon=.01,delta=1e-15", "--bounds", BOUNDS], "too few rows"),
])
def test_what_one_release_cannot_give_is_refused(table, words, says):
    table.refuse("fit", "t.csv", "--target", "y", *words, says=[says])


def test_bounds_may_be_in_a_file(table):
    table.write("bounds.txt", "# known\ny=-2:2\n\nx=-1:1\nkind=a|b|c\n")
    table.succeed("fit", "t.csv", "--target", "y", "--privacy", "epsilon=4,delta=1e-5", "--bounds", "bounds.txt", "--out", "p", "--quiet")
    assert [b["column"] for b in table.read_json("p/summary.json")["privacy"]["bounds"]] == ["y", "x", "kind"]


JOB = ("[job]\nsites = [\"north\", \"south\", \"east\", \"west\"]\n[fit]\ntarget = \"y\"\n[privacy]\nepsilon = 4\ndelta = 1e-5\n"
       "[privacy.bounds]\ny = [-2, 2]\nx = [-1, 1]\nkind = [\"a\", \"b\", \"c\"]\n")


@pytest.fixture
def job(affpcl):
    for site in SITES:
        write_rows(affpcl, f"{site}.csv", rows_of(site))
    affpcl.write("job.toml", JOB + "".join(f'[site.{s}]\ndata = "{s}.csv"\n' for s in SITES))
    return affpcl


def models(affpcl, out):
    return {a["name"]: a for s in SITES for a in affpcl.read_json(f"{out}/{s}/model.json")["agents"]}


def test_sites_release_once_in_a_job(job):
    result = job.json("federate", "job.toml", "--out", "result")
    assert result["privacy"]["epsilon"] == 4 and result["score"] is None
    assert job.read_json("result/centre/centre.json")["privacy"]["delta"] == 1e-5
    first = models(job, "result")
    assert len(first) == 24
    ledger = job.read_json("result/north/ledger.json")
    assert ledger["privacy"]["epsilon"] == 4
    assert not any("missing" in e["purpose"] or "folds" in e["purpose"] or "levels" in e["purpose"] for e in ledger["sent"])
    # The same job once more: the same release, to the bit.
    job.succeed("federate", "job.toml", "--out", "result", "--force", "--quiet")
    assert models(job, "result") == first
    kept = sorted((job.folder / "result").glob("*.release"))
    assert [p.name.split(".")[0] for p in kept] == sorted(SITES)
    # A release that is not of these rows is neither used nor replaced.
    content = json.loads(kept[0].read_text())
    kept[0].write_text(json.dumps({**content, "of": "0" * 32}))
    done = job.run("federate", "job.toml", "--out", "result", "--force")
    assert done.returncode == 2 and "another release would cost privacy again" in done.stderr


def test_a_federation_is_the_fit_of_its_releases(job):
    """Near the fit without privacy of all rows; the centre sees masked sums only."""
    job.succeed("federate", "job.toml", "--out", "result", "--quiet")
    write_rows(job, "all.csv", [row for s in SITES for row in rows_of(s)])
    job.succeed("fit", "all.csv", "--target", "y", "--no-score", "--out", "plain", "--quiet")
    plain, private = job.read_json("plain/centre.json"), job.read_json("result/centre/centre.json")
    at = [[c["name"] for c in m["columns"]].index("x") for m in (plain, private)]
    slope = [m["channels"][0]["centre"]["x"][m["coefficients"].index("x")] / m["columns"][k]["sd"][0] for m, k in zip((plain, private), at)]
    assert slope[1] == pytest.approx(slope[0], abs=0.05)
    assert all(e["masked"] for e in job.read_json("result/north/ledger.json")["sent"] if e["what"] == "sum")


@pytest.mark.parametrize("text, says", [
    (JOB.replace("epsilon = 4\n", ""), "privacy.epsilon must be a number"),
    (JOB.replace("delta = 1e-5", "delta = 1"), "has delta = '1'"),
    (JOB.replace("x = [-1, 1]\n", ""), "lacks the column 'x'"),
    (JOB.replace("kind = [\"a\", \"b\", \"c\"]", "kind = [\"a\"]"), "'kind=a'"),
    (JOB.replace("[privacy.bounds]", "[privacy.limits]"), "limits is not a known key"),
    (JOB.replace("[privacy]", "privacy = \"epsilon=4\"\n[privacy]"), "privacy is not a known key"),
])
def test_a_job_is_refused_in_one_sentence(job, text, says):
    job.write("job.toml", text + "".join(f'[site.{s}]\ndata = "{s}.csv"\n' for s in SITES))
    done = job.run("federate", "job.toml")
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1 and says in done.stderr, done.stderr
