"""`affpcl affinity DATA` from end to end: what it prints and writes, and what it refuses."""
import csv
import pathlib
import random

import pytest

SHOPS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "shops.csv"
SITES = [f"s{k:02}" for k in range(14)]
AFFINITY = ("affinity", "t.csv", "--target", "y")


def rows_of(seed):
    """14 sites of 60 rows, with two features, a string column and a constant."""
    rng = random.Random(seed)
    rows = []
    for site in SITES:
        slope = 1 + 0.2 * rng.gauss(0, 1)
        for k in range(60):
            u, v = rng.gauss(0, 1), rng.gauss(0, 1)
            rows.append(f"{site},{u:.4f},{v:.4f},{'xyz'[k % 3]},7,{slope * u - v + rng.gauss(0, 1):.4f}")
    return "site,u,v,kind,same,y\n" + "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def table(shared_affpcl):
    """The program beside t.csv."""
    shared_affpcl.write("t.csv", rows_of(1))
    return shared_affpcl


@pytest.fixture(scope="module")
def printed(table):
    """What `affinity t.csv --out a` prints."""
    return table.succeed(*AFFINITY, "--out", "a").stdout


@pytest.fixture(scope="module")
def summary(table, printed):
    """The summary.json it writes."""
    return table.read_json("a/summary.json")


@pytest.fixture(scope="module")
def all_rows(table):
    """The summary where all rows are the pilot, of two features."""
    return table.json(*AFFINITY, "--pilot", 1, "--features", "u,v")


@pytest.mark.parametrize("words", ["should gain", "lower bound", "most alike", "left out, since constant: same"])
def test_a_table_is_printed(printed, words):
    assert words in printed


def test_the_summary_has_a_manifest(summary):
    manifest = summary["manifest"]
    assert {"version", "spec", "seed", "command", "host", "threads", "seconds"} <= set(manifest)
    assert manifest["spec"]["pilot"] == 0.2


@pytest.mark.parametrize("score", ["delta_env", "delta_obj", "noise_share"])
def test_scores_have_intervals(summary, score):
    assert summary[score]["lo"] <= summary[score]["value"] <= summary[score]["hi"]
    assert score in summary["intervals"]


def test_every_agent_has_its_scores(summary):
    assert len(summary["agents"]) == 14
    for agent in summary["agents"]:
        loss = agent["predicted_loss"]
        assert agent["pilot_rows"] == 12
        assert loss["lo"] <= loss["value"] <= loss["hi"]
        assert agent["prospect"] in ("should gain", "about even", "should learn alone")


def test_prospects_are_counted(summary):
    assert sum(summary["prospects"].values()) == 14


def test_affinity_csv_agrees_with_the_summary(table, summary):
    rows = list(csv.DictReader(table.read("a/affinity.csv").splitlines()))
    assert [float(row["predicted_loss"]) for row in rows] == [a["predicted_loss"]["value"] for a in summary["agents"]]


def test_matrix_csv_is_square_ordered_and_symmetric(table, summary):
    header, *rows = csv.reader(table.read("a/matrix.csv").splitlines())
    values = [row[1:] for row in rows]
    assert header[1:] == summary["alike"]["order"] == [row[0] for row in rows]
    assert len(values) == 14
    assert values == [list(column) for column in zip(*values)]
    assert values[0][0] == "0"


def test_two_threads_give_the_same_numbers(table):
    one, two = (table.json(*AFFINITY, "--threads", threads) for threads in (1, 2))
    del one["manifest"], two["manifest"]
    assert one == two


def test_another_seed_takes_another_pilot(table, summary):
    assert table.json(*AFFINITY, "--seed", 5)["delta_obj"] != summary["delta_obj"]


def test_pilot_and_features(all_rows):
    assert all_rows["pilot_rows"] == 840
    assert all_rows["columns"] == 2


def test_more_rows_give_a_shorter_interval(affpcl):
    """On average over tables: in a single one a pilot may find no difference between sites, and be sure of it."""
    widths = {0.2: 0, 1: 0}
    for seed in range(1, 7):
        affpcl.write("t.csv", rows_of(seed))
        for pilot in widths:
            score = affpcl.json(*AFFINITY, "--pilot", pilot, "--features", "u,v")["delta_obj"]
            widths[pilot] += score["hi"] - score["lo"]
    assert widths[1] < widths[0.2]


def test_classes(table):
    classes = table.json("affinity", "t.csv", "--target", "kind", "--exclude", "y")
    assert classes["manifest"]["spec"]["task"] == "classification"
    assert len(classes["spread"]) == 3


@pytest.mark.parametrize("command, says", [
    ("affinity t.csv", "--target"),
    ("affinity t.csv --target y --pilot 0", "--pilot 0"),
    ("affinity t.csv --target z", "'z'"),
    ("affinity t.csv s.toml --target y", ".toml"),
    ("affinity t.csv --target y --measure", "--measure is of no use"),
    ("affinity t.csv --target y --set a=1", "--set is of no use"),
    ("affinity s.toml --target y", "--target is of no use"),
])
def test_refused(table, command, says):
    table.refuse(*command.split(), says=[says])


def test_a_folder_that_exists_is_refused(table, summary):
    table.refuse(*AFFINITY, "--out", "a", says=["exists already"])


def test_the_matrix_has_names_on_both_sides(table):
    shops = table.succeed("affinity", SHOPS, "--target", "sales", "--agent", "shop").stdout.splitlines()
    at = next(i for i, line in enumerate(shops) if line.startswith("who looks alike"))
    names = [line.split()[0] for line in shops[at + 2:at + 14]]
    assert shops[at + 1].split() == [name[:5] for name in names] and len(names) == 12


def test_the_page_is_written_with_it(table):
    done = table.run(*AFFINITY, "--out", "paged", "--report", "--quiet")
    if done.returncode != 0 and "tools/setup report" in done.stderr:
        pytest.skip("the program was built without the report page")
    assert done.returncode == 0, done.stderr
    assert (table.folder / "paged/report.html").read_text().startswith("<!doctype html>")


def test_a_page_needs_a_folder(table):
    table.refuse(*AFFINITY, "--report", says=["--report", "--out"])


def test_two_of_them_do_not_compare(table, printed):
    table.refuse("report", "a", "a", "--out", "two.html", says=["affinity"])


def test_the_table_explains_its_columns(printed):
    lines = printed.splitlines()
    head = next(line for line in lines if line.split()[:1] == ["agent"])
    columns = head.split()[3:-1]
    assert columns[:2] == ["loss", "excess"]
    for column in columns:
        assert any(line.startswith(f"  {column} ") for line in lines[lines.index(head) + 1:]), column


def test_a_column_without_numbers_is_not_printed(table):
    table.write("single.csv", "agent,u,y\n" + "".join(f"a{k},{k % 5},{k % 3}\n" for k in range(30)))
    printed = table.succeed("affinity", "single.csv", "--target", "y").stdout
    head = next(line for line in printed.splitlines() if line.split()[:1] == ["agent"])
    assert "TV" not in head.split()
    assert "lambda" not in head.split()


def test_fit_says_how_the_forecast_came_out(table, summary):
    note = next(note for note in table.json("fit", "t.csv", "--target", "y", "--forecast", "a")["notes"] if "forecast" in note)
    assert f"{summary['prospects']['gain']} of 14 agents should gain" in note
    assert "rank correlation" in note


def test_a_forecast_of_other_agents_is_refused(table, printed):
    table.write("other.csv", rows_of(2).replace("\ns", "\nt"))
    table.refuse("fit", "other.csv", "--target", "y", "--forecast", "a", says=["forecast in a", "other agents"])
    table.refuse("fit", "t.csv", "--target", "y", "--forecast", "missing", says=["missing/summary.json"])
    table.refuse("fit", "t.csv", "--target", "y", "--forecast", "a", "--no-score", says=["--forecast", "--no-score"])


def test_measuring_where_every_replicate_diverges_ends_and_has_no_numbers(affpcl):
    affpcl.write("far.toml", """[problem]
kind = "gaussian"
agents = 3
[run]
steps = 100
replicates = 2
step_size = 5.0
[[method]]
kind = "independent"
[[method]]
kind = "affpcl"
""")
    done = affpcl.run("affinity", "far.toml", "--measure")
    assert "nan" not in done.stdout
    assert "every replicate diverged" in done.stdout
    scores = affpcl.json("affinity", "far.toml", "--measure")["settings"][0]
    assert scores["rank_correlation"] is None
    assert all(a["measured"]["mean"] is None for a in scores["agents"])
