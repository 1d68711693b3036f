"""`affpcl fit` on CSV files: what it prints and writes, the files it reads, and what it refuses."""
import json

import pytest

from _table import GOOD, HEAD, ROWS, with_classes

FIT = ("fit", "good.csv", "--target", "y")


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.read_json("m/model.json")


@pytest.fixture(scope="module")
def summary(fitted):
    return fitted.read_json("m/summary.json")


# --- what is printed and written -------------------------------------------------------------------------------------

def test_it_finds_the_agent_column_and_prints_a_table(affpcl):
    affpcl.write("good.csv", GOOD)
    printed = affpcl.succeed(*FIT, "--out", "m").stdout
    assert "gained" in printed
    assert "model in m" in printed


def test_the_model_has_a_format_and_a_provenance(model):
    assert (model["format"], model["version"]) == ("affpcl-model", 1)
    provenance = model["provenance"]
    assert provenance["rows"] == 120
    assert provenance["files"] == ["good.csv"]
    assert "fit good.csv" in provenance["command"]


def test_the_model_has_coefficients_of_every_agent(model):
    assert model["coefficients"] == ["intercept", "u", "v", "kind=y", "kind=z"]
    assert [agent["name"] for agent in model["agents"]] == list("abcd")


def test_the_summary_has_a_manifest(summary):
    assert {"version", "spec", "seed", "command", "host", "instruction_set", "compiler", "threads", "seconds",
            "complete"} <= set(summary["manifest"])
    assert summary["manifest"]["complete"]


def test_the_summary_has_scores_a_gain_and_a_verdict_of_every_agent(summary):
    assert len(summary["agents"]) == 4
    for agent in summary["agents"]:
        assert {"given", "personalised", "alone", "pooled"} <= set(agent["score"])
        assert agent["gain"]["lo"] <= agent["gain"]["mean"] <= agent["gain"]["hi"]
        assert agent["verdict"] in ("gained", "even", "lost")
        assert agent["given"] in ("personalised", "alone", "pooled")


def test_the_summary_counts_verdicts(summary):
    assert sum(summary["verdicts"].values()) == 4


def test_two_threads_give_the_same_numbers(fitted, summary):
    again = fitted.json(*FIT, "--threads", 2)
    assert again["agents"] == summary["agents"]
    assert again["score"] == summary["score"]


def test_another_seed_gives_other_folds(fitted, summary):
    assert fitted.json(*FIT, "--seed", 5)["score"] != summary["score"]


def test_force_replaces_and_quiet_is_quiet(affpcl):
    affpcl.write("good.csv", GOOD)
    affpcl.write("m/model.json", json.dumps({"old": True}))
    affpcl.write("m/summary.json", "{}")
    done = affpcl.succeed(*FIT, "--out", "m", "--force", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    assert affpcl.read_json("m/model.json")["format"] == "affpcl-model"


# --- files it reads --------------------------------------------------------------------------------------------------

def agents_of(affpcl, text, *options):
    """The agents' part of the summary of a table with this text."""
    affpcl.write("same.csv", text)
    return affpcl.json("fit", "same.csv", "--target", "y", *options)["agents"]


def numbered(text):
    """The table with a column `id` before the others."""
    header, *rows = text.splitlines()
    return "\n".join([f"id,{header}", *(f"{i},{row}" for i, row in enumerate(rows, 1))]) + "\n"


@pytest.mark.parametrize("text, options", [
    pytest.param("\ufeff" + GOOD, "", id="byte order mark"),
    pytest.param(GOOD.replace("\n", "\r\n"), "", id="CRLF"),
    pytest.param(GOOD.replace(",", ";"), "", id="semicolons"),
    pytest.param(GOOD.replace("\n", ",7\n").replace("y,7\n", "y,c\n", 1), "", id="a constant column"),
    pytest.param(numbered(GOOD), "--exclude id", id="--exclude"),
    pytest.param(GOOD + "a,,1,x,2\na,1,1,x,\n", "--missing drop", id="--missing drop"),
])
def test_the_same_table_gives_the_same_agents(affpcl, summary, text, options):
    assert agents_of(affpcl, text, *options.split()) == summary["agents"]


def test_the_order_of_columns_does_not_matter_to_scores(affpcl, summary):
    reverse = "".join(",".join(reversed(line.split(","))) + "\n" for line in GOOD.splitlines())
    found, expected = ([round(agent["score"]["given"], 9) for agent in agents]
                       for agents in (agents_of(affpcl, reverse), summary["agents"]))
    assert found == expected


@pytest.mark.parametrize("text, options, agents", [
    pytest.param(GOOD, "--features u,v", 4, id="--features"),
    pytest.param(GOOD + "lone,1,1,x,2\n", "", 5, id="an agent with one row"),
    pytest.param(GOOD + "a,,1,x,2\na,1,1,x,\n", "--missing mean", 4, id="--missing mean"),
    pytest.param(HEAD + "".join(ROWS[:30]), "", 1, id="one agent"),
])
def test_a_table_is_fitted(affpcl, text, options, agents):
    assert len(agents_of(affpcl, text, *options.split())) == agents


@pytest.fixture
def sites(affpcl):
    """The program beside the folder `sites`, with a file per agent."""
    for i, site in enumerate("abcd"):
        affpcl.write(f"sites/{site}.csv", "u,v,kind,y\n" + "".join(row[2:] for row in ROWS[30 * i:30 * i + 30]))
    return affpcl


@pytest.mark.parametrize("files", ["sites", "sites/*.csv", "sites/a.csv sites/b.csv sites/c.csv sites/d.csv"])
def test_a_file_per_agent_gives_the_same_agents(sites, summary, files):
    assert sites.json("fit", *files.split(), "--target", "y")["agents"] == summary["agents"]


def test_a_file_per_agent_is_predicted_by_file(sites):
    sites.succeed("fit", "sites", "--target", "y", "--out", "m", "--quiet")
    assert "R^2" in sites.succeed("predict", "m", "sites/a.csv").stderr


def test_three_classes(affpcl):
    affpcl.write("classes.csv", with_classes())
    assert len(affpcl.json("fit", "classes.csv", "--target", "kind")["spread"]) == 3


# --- what it refuses -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, says", [
    pytest.param(GOOD.replace("site", "agnet", 1), ["bad.csv", "'agent'", "'agnet'", "--agent"], id="no agent column"),
    pytest.param("site,u,y\na,1,2\na,2,2\nb,3,2\n", ["'y'", "2", "nothing to learn"], id="constant target"),
    pytest.param("site,u,y\na,1,k\na,2,k\nb,3,k\n", ["'y'", "k", "nothing to learn"], id="constant class"),
    pytest.param(HEAD + "".join(ROWS[:5]) + "a,oops,1,x,1\n", ["line 7", "'u'", "oops", "number"],
                 id="text in a number column"),
    pytest.param(HEAD + "".join(ROWS[:5]) + "a,1,1,x,oops\n", ["line 7", "'y'", "oops", "number"],
                 id="text in a number target"),
    pytest.param(HEAD + ROWS[0] + "a,1,1\n", ["line 3", "3 fields", "5"], id="row too short"),
    pytest.param(HEAD + ROWS[0] + "a,1,1,x,1,1\n", ["line 3", "6 fields", "5"], id="row too long"),
    pytest.param(b"\x7fELF\x00\x01\x02" * 100, ["bad.csv"], id="binary file"),
    pytest.param("", ["bad.csv", "empty"], id="empty file"),
    pytest.param(HEAD, ["bad.csv", "no rows"], id="header only"),
    pytest.param("site,u,u,y\na,1,1,1\n", ["'u'"], id="a column twice"),
    pytest.param(HEAD + ROWS[0] + "a,,1,x,1\n", ["line 3", "'u'", "--missing mean"], id="blank"),
    pytest.param(HEAD + ROWS[0] + ",1,1,x,1\n", ["line 3", "'site'", "agent"], id="row without an agent"),
    pytest.param("site,name,y\n" + "".join(f"a,n{i % 30}n,{i}\n" for i in range(60)),
                 ["'name'", "30", "20", "--exclude name"], id="too many levels"),
])
def test_a_bad_table_is_refused(affpcl, text, says):
    affpcl.write("bad.csv", text)
    affpcl.refuse("fit", "bad.csv", "--out", "out", "--target", "y", says=says)


@pytest.mark.parametrize("options, says", [
    ("--target y --agent stie", ["stie", "'site'"]),
    ("--target yy", ["good.csv", "'yy'", "'y'"]),
    ("--target y --agent y", ["'y'", "--agent", "--target"]),
    ("--target y --features u,w", ["'w'"]),
    ("--target y --exclude kynd", ["'kynd'", "'kind'"]),
    ("--target y --features u,y", ["'y'", "target"]),
    ("--target y --missing men", ["missing", "men", "'mean'"]),
])
def test_a_bad_option_is_refused(affpcl, options, says):
    affpcl.write("good.csv", GOOD)
    affpcl.refuse("fit", "good.csv", "--out", "out", *options.split(), says=says)


def test_regression_of_texts_is_refused(affpcl):
    affpcl.write("bad.csv", with_classes())
    affpcl.refuse("fit", "bad.csv", "--out", "out", "--target", "y", "--task", "regress",
                  says=["line 2", "--task regress"])


@pytest.mark.parametrize("command, says", [
    ("fit good.csv", ["--target"]),
    ("fit --target y", ["data"]),
    ("fit nowhere.csv --target y --out out", ["nowhere.csv"]),
    ("fit good.csv good.csv --target y", ["good.csv", "twice"]),
    ("fit no*.csv --target y", ["no*.csv"]),
    ("fit hollow --target y", ["hollow", ".csv"]),
    ("fit vanishing.csv --target y", ["vanishing.csv"]),
    ("fit sites/a.csv good.csv --target y", ["good.csv", "'site'"]),
])
def test_bad_files_are_refused(sites, command, says):
    sites.write("good.csv", GOOD)
    (sites.folder / "hollow").mkdir()
    (sites.folder / "vanishing.csv").symlink_to(sites.folder / "gone.csv")
    sites.refuse(*command.split(), says=says)


def test_an_existing_folder_without_force_is_refused(fitted):
    fitted.refuse(*FIT, "--out", "m", says=["m", "--force"])


# --- the level of intervals ------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def levels(fitted):
    return [fitted.json(*FIT, "--level", level) for level in ("0.5", "0.9", "0.99")]


def test_a_higher_level_widens_the_intervals_of_all_gains(levels):
    gains = [[summary["score"]["gain"], *(agent["gain"] for agent in summary["agents"])] for summary in levels]
    for narrow, usual, wide in zip(*gains):
        assert wide["lo"] < usual["lo"] < narrow["lo"] <= narrow["mean"] <= narrow["hi"] < usual["hi"] < wide["hi"]
        assert narrow["mean"] == wide["mean"]


def test_the_level_is_90_percent_unless_it_is_given(fitted, levels):
    assert fitted.json(*FIT)["agents"] == levels[1]["agents"]
    assert [summary["score"]["level"] for summary in levels] == [.5, .9, .99]


def test_verdicts_follow_the_level(levels):
    for summary in levels:
        for agent in summary["agents"]:
            if agent["verdict"] == "gained":
                assert agent["gain"]["lo"] > 0
            elif agent["verdict"] == "lost":
                assert agent["gain"]["hi"] < 0
    sure = [sum(agent["verdict"] != "even" for agent in summary["agents"]) for summary in levels]
    assert sure == sorted(sure, reverse=True) and sure[0] > sure[2]


def test_the_table_and_its_legend_name_the_level(affpcl):
    affpcl.write("good.csv", GOOD)
    printed = " ".join(affpcl.succeed(*FIT, "--level", ".95").stdout.split())
    assert "95 % interval" in printed and "the 95 % interval excludes 0" in printed and "90 %" not in printed


@pytest.mark.parametrize("level", ["0", "1", "95"])
def test_a_level_that_is_no_coverage_is_refused(affpcl, level):
    affpcl.write("good.csv", GOOD)
    affpcl.refuse(*FIT, "--level", level, says=["--level"])
