"""`affpcl fit --within` and `--crossed`: models, predictions and refusals of a second factor."""
import csv
import json
import math
import random

import pytest

PUPILS, SCHOOLS, STUDENTS = 60, 12, 15


def table(seed=1, tau=1.0, rows=8):
    """Pupils within schools, whose rows also meet students at random; `school` and `student` have effects."""
    rng = random.Random(seed)
    school = [tau * rng.gauss(0, 1) for _ in range(SCHOOLS)]
    student = [rng.gauss(0, 1) for _ in range(STUDENTS)]
    lines = ["pupil,school,student,x,z,score,rated,class"]
    for i in range(PUPILS):
        a, b = 0.7 * rng.gauss(0, 1), 1 + 0.4 * rng.gauss(0, 1)
        for _ in range(rows):
            s, x, z = rng.randrange(STUDENTS), rng.gauss(0, 1), rng.gauss(0, 1)
            base = a + b * x + 0.3 * z + 0.5 * rng.gauss(0, 1)
            y = base + school[i % SCHOOLS]
            lines.append(f"{i},school {i % SCHOOLS},s{s},{x!r},{z!r},{y!r},{base + student[s]!r},{'ab'[y > 0]}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def tables(shared_affpcl):
    shared_affpcl.write("pupils.csv", table())
    return shared_affpcl


WITHIN = ("pupils.csv", "--target", "score", "--agent", "pupil", "--features", "x,z", "--within", "school")
CROSSED = ("pupils.csv", "--target", "rated", "--agent", "pupil", "--features", "x,z", "--crossed", "student")


def fitted(tables, name, *words):
    tables.succeed("fit", *words, "--out", name, "--force", "--quiet")
    return tables.read_json(f"{name}/model.json"), tables.read_json(f"{name}/summary.json")


@pytest.fixture(scope="module", params=[WITHIN, CROSSED], ids=["within", "crossed"])
def both(request, tables):
    """The model and the summary of a nested or a crossed factor, and the words of the fit."""
    name = request.param[-2][2:]
    return (*fitted(tables, name, *request.param), name, request.param)


# --- models ----------------------------------------------------------------------------------------------------------

def test_the_model_holds_every_level_with_its_effect(both):
    model, summary, name, words = both
    levels = model["levels"]
    assert (levels["column"], levels["how"]) == (words[-1], name)
    assert len(levels["names"]) == len(levels["effects"]) == len(levels["se"]) == summary["levels"]["count"]
    assert 0.4 < math.sqrt(levels["variance"]) < 2
    assert summary["levels"]["sd"] == pytest.approx(math.sqrt(levels["variance"]), rel=1e-12)


def test_the_second_factor_lowers_the_loss_on_held_out_rows(both, tables):
    _, summary, name, words = both
    _, without = fitted(tables, "plain", *words[:-2])
    # A nested level is part of every agent's intercept already; a crossed one is new information.
    factor = 1.02 if name == "within" else 0.6
    assert summary["score"]["mse"]["personalised"] < factor * without["score"]["mse"]["personalised"]


def test_inspect_prints_the_standard_deviation_and_the_largest_effects(both, tables):
    model, _, name, words = both
    said = tables.succeed("inspect", name).stdout
    levels = model["levels"]
    assert f"'{words[-1]}': {len(levels['names'])} levels, standard deviation {levels['variance']**.5:.4g}" in said
    largest = max(zip(levels["effects"], levels["names"]), key=lambda pair: abs(pair[0]))
    assert f"{largest[0]:+.4g}" in said and largest[1] in said
    found = tables.json("inspect", name)["levels"]
    assert found["effects"] == levels["effects"] and found["how"] == name


def test_a_factor_without_an_effect_is_singular(tables):
    # Every pupil's mean is 0, so no school can be above another one.
    lines = table(tau=0).splitlines()
    rows = [line.split(",") for line in lines[1:]]
    mean = {}
    for i in range(PUPILS):
        own = [float(row[5]) for row in rows if row[0] == str(i)]
        mean[str(i)] = sum(own) / len(own)
    for row in rows:
        row[5] = repr(float(row[5]) - mean[row[0]])
    tables.write("even.csv", "\n".join([lines[0], *map(",".join, rows)]) + "\n")
    said = tables.succeed("fit", "even.csv", *WITHIN[1:], "--out", "even", "--force", "--no-score").stdout
    model = tables.read_json("even/model.json")
    assert model["levels"]["variance"] == 0 and set(model["levels"]["effects"]) == {0}
    assert model["channels"][0]["singular"]
    assert "the levels of 'school' have no effect of their own" in said
    assert "singular" in tables.succeed("inspect", "even").stdout


def test_threads_do_not_change_a_bit(both, tables):
    _, _, _, words = both
    files = []
    for threads in (1, 3):
        tables.succeed("fit", *words, "--out", "threads", "--force", "--quiet", "--threads", threads)
        files.append([line for line in tables.read("threads/model.json").splitlines() if '"command"' not in line])
    assert files[0] == files[1]


# --- predictions -----------------------------------------------------------------------------------------------------

def predictions(tables, name, lines):
    """(prediction, half width of the interval) of rows."""
    tables.write("new.csv", "pupil,school,student,x,z\n" + "\n".join(lines) + "\n")
    done = tables.succeed("predict", name, "new.csv", "--out", "predicted.csv", "--force")
    rows = list(csv.DictReader(tables.read("predicted.csv").splitlines()))
    return [(float(r["prediction"]), (float(r["prediction_hi"]) - float(r["prediction_lo"])) / 2) for r in rows], done


def test_a_prediction_adds_the_effect_of_its_level(both, tables):
    model, _, name, _ = both
    names, effects = model["levels"]["names"], model["levels"]["effects"]
    known = [f"0,{names[k]},{names[k]},0.2,-0.4" for k in (0, 3)]
    (first, half), (second, _), (new, wide) = predictions(tables, name, [*known, "0,new,new,0.2,-0.4"])[0]
    assert all(a["stacked"]["personalised"] == 1 for a in model["agents"])
    assert first - second == pytest.approx(effects[0] - effects[3], abs=1e-12)
    assert first - new == pytest.approx(effects[0], abs=1e-12)
    assert wide > half


def test_an_unseen_agent_has_the_centre_and_the_effect_of_its_level(both, tables):
    model, _, name, _ = both
    at = model["levels"]["names"].index("school 3" if name == "within" else "s3")
    (y, half), (plain, wide) = predictions(tables, name, ["new,school 3,s3,0,0", "new,none,none,0,0"])[0]
    centre, z = model["channels"][0]["centre"], 1.6448536269514722
    x = [1] + [-column["mean"][0] / column["sd"][0] for column in model["columns"]]
    assert y == pytest.approx(sum(a * b for a, b in zip(centre["x"], x)) + model["levels"]["effects"][at], abs=1e-10)
    cov = iter(centre["cov"])
    variance = sum(next(cov) * x[r] * x[c] * (1 if r == c else 2) for r in range(len(x)) for c in range(r + 1))
    variance += model["channels"][0]["s2"]
    assert half == pytest.approx(z * math.sqrt(variance + model["levels"]["se"][at]**2), rel=1e-8)
    assert wide == pytest.approx(z * math.sqrt(variance + model["levels"]["variance"]), rel=1e-8)
    assert y - plain == pytest.approx(model["levels"]["effects"][at], abs=1e-10)


def test_unseen_levels_are_counted(both, tables):
    _, _, name, _ = both
    done = predictions(tables, name, ["0,school 0,s0,0,0", "0,new,new,0,0", "1,new,new,0,0"])[1]
    assert "2 of 3 rows are of a level of the second factor that the model does not know (new)" in done.stdout


def test_predictions_need_the_column(both, tables):
    _, _, name, words = both
    tables.write("bare.csv", "pupil,x,z\n0,1,1\n")
    tables.refuse("predict", name, "bare.csv", says=[f"'{words[-1]}'"])


# --- refusals --------------------------------------------------------------------------------------------------------

def test_an_agent_in_two_levels_is_not_nested(tables):
    tables.refuse("fit", *CROSSED[:-2], "--within", "student", says=["agent '0'", "--within student", "--crossed student"])


@pytest.mark.parametrize("more, says", [
    (["--within", "school", "--crossed", "student"], ["--within and --crossed exclude each other"]),
    (["--within", "nothing"], ["nothing"]),
    (["--within", "score"], ["'score' is the target"]),
    (["--within", "pupil"], ["'pupil' is the agent"]),
    (["--within", "school", "--row-weight", "x"], ["--within does not go with"]),
    (["--crossed", "student", "--family", "poisson"], ["--crossed needs a number as the target and --family gaussian"]),
    (["--within", "school", "--solver", "stream"], ["--solver exact"]),
    (["--within", "school", "--common", "school"], ["--common names 'school'"]),
])
def test_what_does_not_go_together(tables, more, says):
    tables.refuse("fit", "pupils.csv", "--target", "score", "--agent", "pupil", "--exclude", "class,rated", *more, says=says)


def test_classes_have_no_second_factor(tables):
    tables.refuse("fit", "pupils.csv", "--target", "class", "--agent", "pupil", "--within", "school",
                  says=["--within needs a number as the target"])


def test_a_missing_level_is_refused_or_dropped(tables):
    lines = table().splitlines()
    row = lines[5].split(",")
    lines[5] = ",".join([row[0], "", *row[2:]])
    tables.write("gap.csv", "\n".join(lines) + "\n")
    tables.refuse("fit", "gap.csv", *WITHIN[1:], says=["gap.csv", "line 6", "school", "--missing drop"])
    said = tables.succeed("fit", "gap.csv", *WITHIN[1:], "--missing", "drop", "--no-score").stdout
    assert "1 row has no school and was left out" in said


# --- ranks -----------------------------------------------------------------------------------------------------------

def test_a_nested_factor_has_the_same_bits_on_ranks(tables, mpi):
    def result(folder):
        model = [line for line in tables.read(f"{folder}/model.json").splitlines() if '"command":' not in line]
        summary = tables.read_json(f"{folder}/summary.json")
        return model, json.dumps([summary["score"], summary["agents"], summary["levels"]])

    tables.succeed("fit", *WITHIN, "--out", "alone", "--force", "--quiet", "--threads", 1)
    ended = mpi.run(3, "fit", *WITHIN, "--out", "ranks", "--force", "--quiet", "--threads", 1)
    assert ended.code == 0, ended.said
    assert result("ranks") == result("alone")


def test_a_crossed_factor_is_refused_on_ranks(tables, mpi):
    ended = mpi.run(2, "fit", *CROSSED, "--quiet")
    assert ended.code == 2 and "--crossed student runs in one process" in " ".join(ended.said)
