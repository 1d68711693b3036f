"""`affpcl predict` and `affpcl inspect`: what they print and write, and what they refuse."""
import csv
import json
import random

import pytest

from _table import GOOD, with_classes


def rows_of(affpcl, name):
    return list(csv.DictReader(affpcl.read(name).splitlines()))


# --- predict ---------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def noted(fitted):
    """What predict prints of p.csv: an agent and a level it knows, an unseen agent, and an unseen level.

    The columns are in another order than in the table that was fitted, and the target is blank.
    """
    fitted.write("more.csv", 'y,kind,v,u,site\n,x,0.5,1,a\n,y,0.5,1,"new, one"\n,new,0,0,b\n')
    return fitted.succeed("predict", "m", "more.csv", "--out", "p.csv").stdout


@pytest.fixture(scope="module")
def predictions(fitted, noted):
    return rows_of(fitted, "p.csv")


def test_every_row_and_column_is_kept(predictions):
    assert len(predictions) == 3
    assert list(predictions[0]) == ["y", "kind", "v", "u", "site", "prediction", "prediction_lo", "prediction_hi"]


def test_an_unseen_agent_has_a_wider_interval_and_a_note(predictions, noted):
    width = [float(row["prediction_hi"]) - float(row["prediction_lo"]) for row in predictions]
    assert width[1] > width[0]
    assert "new, one" in noted


def test_an_unseen_level_has_a_note(noted):
    assert "texts" in noted


@pytest.fixture(scope="module")
def score(fitted):
    """What predict prints with --json; q.csv is written."""
    return fitted.json("predict", "m/model.json", "good.csv", "--out", "q.csv")["score"]


def test_it_is_scored_where_the_target_is_known(score):
    assert score["r2"] > .8


def test_without_out_it_prints_rows(fitted):
    done = fitted.succeed("predict", "m", "good.csv")
    assert done.stdout.count("\n") == 121
    assert "R^2" in done.stderr


@pytest.fixture(scope="module")
def classes(shared_affpcl):
    """The program beside classes.csv."""
    shared_affpcl.write("classes.csv", with_classes())
    return shared_affpcl


@pytest.fixture(scope="module")
def class_score(classes):
    """The score of the model c of two classes."""
    return classes.json("fit", "classes.csv", "--target", "y", "--out", "c")["score"]


def test_two_classes_have_an_accuracy(class_score):
    assert class_score["accuracy"]["given"] > .8


def test_classes_are_predicted_with_their_probability(classes, class_score):
    classes.succeed("predict", "c", "classes.csv", "--out", "pc.csv")
    rows = rows_of(classes, "pc.csv")
    assert {row["prediction"] for row in rows} == {"up", "down"}
    assert all(.5 <= float(row["probability"]) <= 1 for row in rows)


# --- inspect ---------------------------------------------------------------------------------------------------------

def test_inspect(fitted):
    printed = fitted.succeed("inspect", "m").stdout
    assert "spread" in printed
    assert "kind=z" in printed
    assert "(BIC above the smallest: " in printed


def test_inspect_json(fitted):
    assert [agent["name"] for agent in fitted.json("inspect", "m")["agents"]] == list("abcd")


def test_inspect_of_one_agent(fitted):
    assert "std. error" in fitted.succeed("inspect", "m", "--agent", "b").stdout


# --- bad models ------------------------------------------------------------------------------------------------------

@pytest.fixture(params=["predict bad.json good.csv --out x.csv", "inspect bad.json"], ids=["predict", "inspect"])
def refuse_model(request, affpcl):
    """Expects that a model.json with some content is refused, by predict and by inspect."""
    def refuse(content, says):
        affpcl.write("good.csv", GOOD)
        affpcl.write("bad.json", content)
        affpcl.refuse(*request.param.split(), says=["bad.json", *says])

    return refuse


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.read_json("m/model.json")


@pytest.mark.parametrize("content", ["site,u\n1,2\n", '{"a": 1}', "[1]"])
def test_what_is_no_model(refuse_model, content):
    refuse_model(content, ["not a model"])


def test_half_a_model(refuse_model, model):
    refuse_model(json.dumps(model)[:2000], ["damaged"])


@pytest.mark.parametrize("version, says", [(2, ["version 2", "newer"]), (0, ["version 0", "fit it again"])])
def test_a_model_of_another_version(refuse_model, model, version, says):
    refuse_model(json.dumps({**model, "version": version}), says)


def test_a_model_without_agents(refuse_model, model):
    refuse_model(json.dumps({k: v for k, v in model.items() if k != "agents"}), ["damaged", "'agents'"])


KEYS = ["provenance", "solver", "method", "target", "classes", "outcomes", "noise", "agent_column", "missing", "reading",
        "columns", "coefficients", "channels", "agents", "estimate", "within"]


@pytest.mark.parametrize("key", KEYS)
def test_a_model_with_a_number_in_the_place_of_a_part(refuse_model, model, key):
    refuse_model(json.dumps({**model, key: 3}), ["damaged"])


def test_every_part_of_a_model_is_tried(model):
    assert set(KEYS) | {"about", "task", "format", "version"} == set(model)


def test_a_model_with_a_standard_error_too_many(refuse_model, model):
    refuse_model(json.dumps(model).replace('"se": [', '"se": [1.0, ', 1), ["damaged", "'se'"])


@pytest.mark.parametrize("command, says", [
    ("inspect nowhere", ["nowhere"]),
    ("inspect hollow", ["hollow"]),
    ("inspect m --agent e", ["'e'", "a"]),
])
def test_inspect_refuses(fitted, command, says):
    (fitted.folder / "hollow").mkdir(exist_ok=True)
    fitted.refuse(*command.split(), says=says)


# --- bad rows and places ---------------------------------------------------------------------------------------------

@pytest.mark.parametrize("text, says", [
    pytest.param("site,u,kind\na,1,x\n", ["lacks.csv", "'v'"], id="a column is missing"),
    pytest.param("site,u,v,kind\na,1,1,x\na,one,1,x\n", ["line 3", "'u'", "one"], id="text in a number column"),
    pytest.param("site,u,v,kind\na,,1,x\n", ["line 2", "'u'", "--missing"], id="blank"),
])
def test_predict_refuses_rows(fitted, text, says):
    fitted.write("lacks.csv", text)
    fitted.refuse("predict", "m", "lacks.csv", "--out", "x.csv", says=says)


@pytest.mark.parametrize("command, says", [
    ("predict m p.csv --out x.csv", ["p.csv", "'prediction'"]),
    ("predict m good.csv --out q.csv", ["q.csv", "--force"]),
    ("predict m good.csv --out nowhere/q.csv", ["nowhere/q.csv"]),
    ("predict m good.csv --json", ["--out"]),
])
def test_predict_refuses(fitted, predictions, score, command, says):
    fitted.refuse(*command.split(), says=says)


# --- more covariances than are kept whole ------------------------------------------------------------------------------

def test_intervals_of_many_agents_hold_the_share_they_state(affpcl):
    """The columns are correlated, so that standard errors alone would make intervals 1.4 times as wide (97 %)."""
    agents, columns, rows = 8400, 10, 4
    rng = random.Random(3)
    gauss = rng.gauss
    head = ",".join(["agent", *(f"x{j}" for j in range(columns)), "y"]) + "\n"
    old, new = [head], [head]
    for i in range(agents):
        effects = [gauss(1, .5) for _ in range(columns)]
        for r in range(rows + 1):
            common = 3 * gauss(0, 1)
            x = [common + gauss(0, 1) for _ in range(columns)]
            y = sum(b * v for b, v in zip(effects, x)) + gauss(0, 1)
            (old if r < rows else new).append(f"a{i}," + ",".join(f"{v:.4g}" for v in x) + f",{y:.5g}\n")
    affpcl.write("many.csv", "".join(old))
    affpcl.write("many_new.csv", "".join(new))
    affpcl.succeed("fit", "many.csv", "--target", "y", "--agent", "agent", "--no-score", "--out", "many", "--quiet")
    affpcl.succeed("predict", "many", "many_new.csv", "--out", "many_p.csv", "--quiet")
    held = [float(row["prediction_lo"]) <= float(row["y"]) <= float(row["prediction_hi"])
            for row in rows_of(affpcl, "many_p.csv")]
    assert .88 < sum(held) / agents < .92  # the standard error is .003



def test_inspect_names_collinear_columns(affpcl):
    """Three 0/1 columns that sum to 1: single effects are not known, and no standard error is made up."""
    rows = ["site,y,a,b,c,x"]
    for i in range(120):
        kind, x = i % 3, i * 37 % 50 / 50
        rows.append(f"s{i // 3 % 6},{2 * kind + x + i * 31 % 17 / 17:.4f},{kind == 0:d},{kind == 1:d},{kind == 2:d},{x}")
    affpcl.write("t.csv", "\n".join(rows) + "\n")
    printed = affpcl.succeed("fit", "t.csv", "--target", "y", "--agent", "site", "--out", "collinear", "--no-score").stdout
    assert "columns are collinear, so that the rows settle sums of the effects of a, b, c only" in printed
    channel = affpcl.json("inspect", "collinear")["channels"][0]
    assert [se is None for se in channel["centre_se"]] == [False, True, True, True, False]  # of standardised columns
    printed = affpcl.succeed("inspect", "collinear").stdout  # where columns are 0 the intercept needs their effects
    assert "settle sums of the effects of intercept, a, b, c only" in printed
    assert next(line.split() for line in printed.splitlines() if line.split()[:1] == ["a"])[2:5] == ["-"] * 3
