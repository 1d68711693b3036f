"""How `affpcl fit` holds rows out: folds of the user's own, test files, blocks in time; and the scores of classes."""
import csv
import gzip
import io
import math
import pathlib
import random

import pytest

import _markdown
from _table import GOOD, with_classes

np = pytest.importorskip("numpy")
page = _markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "fit.md")

# Without features the pooled model is the mean of the rows it learnt from.
DOZEN = [("a", 1, "f1", 3.0), ("a", 2, "f1", 4.0), ("a", 3, "f2", 8.0), ("a", 4, "f2", 5.0), ("a", 5, "f3", 6.5),
         ("a", 6, "f3", 2.0), ("b", 1, "f1", 9.0), ("b", 2, "f3", 7.0), ("b", 3, "f2", 1.0), ("b", 4, "f2", 5.5),
         ("b", 5, "f1", 6.0), ("b", 6, "f3", 4.5)]


def table(rows, header="agent,day,fold,y"):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def errors(parts):
    """The mean squared error of means: parts are pairs of the rows learnt from and those predicted."""
    squares = [(y - np.mean(train)) ** 2 for train, held_out in parts for y in held_out]
    return np.mean(squares)


@pytest.fixture
def dozen(affpcl):
    affpcl.write("dozen.csv", table(DOZEN))
    return affpcl


def targets(rows):
    return [row[3] for row in rows]


def test_folds_of_the_users_own(dozen):
    found = dozen.json("fit", "dozen.csv", "--target", "y", "--features", "fold", "--folds", "fold")["score"]
    assert found["how"] == "3-fold cross-validation, folds by 'fold'"
    assert found["repeats"] == 1
    want = errors((targets(r for r in DOZEN if r[2] != fold), targets(r for r in DOZEN if r[2] == fold))
                  for fold in ("f1", "f2", "f3"))
    assert found["mse"]["pooled"] == pytest.approx(want, rel=1e-9)


def test_blocks_in_time_are_predicted_from_those_before(dozen):
    found = dozen.json("fit", "dozen.csv", "--target", "y", "--features", "day", "--time", "day")
    parts = []
    for day in (3, 4, 5, 6):  # TimeSeriesSplit(4) of six rows: two, then one at a time
        parts.append((targets(r for r in DOZEN if r[1] < day), targets(r for r in DOZEN if r[1] == day)))
    assert found["score"]["mse"]["pooled"] == pytest.approx(errors(parts), rel=1e-9)
    assert "on held-out rows (4 later blocks by 'day')" in found["headline"]


def test_dates_order_rows_too(dozen):
    dated = [(a, f"2026-{9 + day // 4:02}-{1 + day:02}", fold, y) for a, day, fold, y in DOZEN]
    dozen.write("dated.csv", table(dated))
    words = ("--target", "y", "--exclude", "fold", "--time", "day")
    scores = [dozen.json("fit", name, *words)["score"] for name in ("dozen.csv", "dated.csv")]
    assert scores[0] == scores[1]


def test_a_later_row_moves_no_earlier_score(dozen):
    """Only the loss of the last block may change with the last rows."""
    other = [(*row[:3], 100.0 if row[1] == 6 else row[3]) for row in DOZEN]
    dozen.write("other.csv", table(other))
    words = ("--target", "y", "--features", "day", "--time", "day", "--plain")
    loss = [dozen.json("fit", name, *words)["score"]["mse"]["pooled"] * 8 for name in ("dozen.csv", "other.csv")]
    before = np.mean(targets(r for r in DOZEN if r[1] < 6))
    last = [sum((y - before) ** 2 for y in targets(r for r in rows if r[1] == 6)) for rows in (DOZEN, other)]
    assert loss[0] - last[0] == pytest.approx(loss[1] - last[1], rel=1e-9)


def split(text, every=4):
    """The table without every fourth row, and these rows."""
    header, *rows = text.splitlines()
    parts = [[r for k, r in enumerate(rows) if (k % every == 1) == test] for test in (False, True)]
    return ["\n".join([header, *part]) + "\n" for part in parts]


@pytest.fixture
def tested(affpcl):
    for name, text in zip(("data.csv", "test.csv"), split(GOOD)):
        affpcl.write(name, text)
    return affpcl


FIT = ("fit", "data.csv", "--target", "y")


def predicted(affpcl, model, data):
    affpcl.succeed("predict", model, data, "--out", "predicted.csv", "--force", "--quiet")
    return list(csv.DictReader(io.StringIO(affpcl.read("predicted.csv"))))


def test_test_rows_are_scored_by_the_models_of_the_data(tested):
    tested.succeed(*FIT, "--out", "alone", "--quiet")
    tested.succeed(*FIT, "--test", "test.csv", "--out", "tested", "--quiet")
    alone, model = (tested.read_json(f"{name}/model.json") for name in ("alone", "tested"))
    for one in alone, model:
        del one["provenance"]["command"]
    assert model == alone
    summary = tested.read_json("tested/summary.json")
    rows = predicted(tested, "tested", "test.csv")
    want = np.mean([(float(r["y"]) - float(r["prediction"])) ** 2 for r in rows])
    assert summary["score"]["mse"]["given"] == pytest.approx(want, rel=1e-9)
    assert sum(agent["test_rows"] for agent in summary["agents"]) == len(rows) == 30
    assert "on held-out rows (30 test rows)" in summary["headline"]


def test_unseen_agents_are_scored_apart(tested):
    tested.write("more.csv", tested.read("test.csv") + "z,1,1,x,2\nz,0,1,q,1\n")
    plain, more = (tested.json(*FIT, "--test", name) for name in ("test.csv", "more.csv"))
    assert more["agents"] == plain["agents"]
    assert (more["score"]["unseen"]["agents"], more["score"]["unseen"]["rows"]) == (1, 2)
    tested.succeed(*FIT, "--out", "m", "--quiet")
    rows = predicted(tested, "m", "more.csv")[-2:]
    want = np.mean([(float(r["y"]) - float(r["prediction"])) ** 2 for r in rows])
    assert more["score"]["unseen"]["mse"] == pytest.approx(want, rel=1e-9)


def test_an_agent_without_test_rows_has_no_loss(tested):
    header, *rows = tested.read("test.csv").splitlines()
    tested.write("some.csv", "\n".join([header, *(r for r in rows if not r.startswith("a"))]) + "\n")
    found = tested.json(*FIT, "--test", "some.csv")["agents"][0]
    assert (found["score"]["given"], found["test_rows"], found["verdict"]) == (None, 0, "even")
    assert "no held-out row" in found["why"]
    assert math.isfinite(found["gain"]["mean"])


def test_scores_of_two_classes(affpcl):
    rng = random.Random(3)
    rows = [(a, x := round(rng.gauss(0, 1), 4), "yes" if rng.gauss(x + k / 4, 1) > 0 else "no")
            for k, a in enumerate("abcdef") for _ in range(40)]
    for name, text in zip(("data.csv", "test.csv"), split(table(rows, "agent,x,y"))):
        affpcl.write(name, text)
    affpcl.succeed(*FIT, "--test", "test.csv", "--out", "m", "--quiet")
    score = affpcl.read_json("m/summary.json")["score"]
    found = predicted(affpcl, "m", "test.csv")
    truth = np.array([r["y"] == "yes" for r in found])
    p = np.array([float(r["probability_yes"]) for r in found])
    assert score["auc"]["given"] == pytest.approx(page["auc"](p, truth), abs=2e-3)
    assert score["brier"]["given"] == pytest.approx(np.mean((p - truth) ** 2), rel=1e-9)
    assert score["log_loss"]["given"] == pytest.approx(-np.mean(np.log(np.where(truth, p, 1 - p))), rel=1e-9)
    assert score["calibration_error"]["given"] == pytest.approx(page["calibration_error"](p, truth), rel=1e-9)
    assert sum(b["share"] for b in score["calibration"]) == pytest.approx(1)


@pytest.mark.parametrize("family", ["gaussian", "multinomial"])
def test_scores_of_three_classes(affpcl, family):
    rng = random.Random(4)
    rows = []
    for k, a in enumerate("abcdef"):
        for _ in range(40):
            x = [round(rng.gauss(0, 1), 4) for _ in range(2)]
            rows.append((a, *x, "uvw"[max(range(3), key=lambda c: rng.gauss(0, 1) + [*x, k / 6][c])]))
    for name, text in zip(("data.csv", "test.csv"), split(table(rows, "agent,x,z,y"))):
        affpcl.write(name, text)
    affpcl.succeed(*FIT, "--test", "test.csv", "--family", family, "--out", "m", "--quiet")
    score = affpcl.read_json("m/summary.json")["score"]
    assert 0.5 < score["auc"]["given"] < 1
    if family == "gaussian":
        return  # predict writes the probability of the most probable class alone
    found = predicted(affpcl, "m", "test.csv")
    p = np.array([[float(r[f"probability_{c}"]) for c in "uvw"] for r in found])
    truth = np.array([["uvw".index(r["y"]) == c for c in range(3)] for r in found])
    auc = np.mean([page["auc"](p[:, c], truth[:, c]) for c in range(3)])
    assert score["auc"]["given"] == pytest.approx(auc, abs=2e-3)
    assert score["brier"]["given"] == pytest.approx(((p - truth) ** 2).sum(axis=1).mean(), rel=1e-9)
    right = truth[range(len(p)), p.argmax(axis=1)]
    assert score["calibration_error"]["given"] == pytest.approx(page["calibration_error"](p.max(axis=1), right), rel=1e-9)


def test_brier_scores_of_agents_make_that_of_all(affpcl):
    affpcl.write("classes.csv", with_classes())
    found = affpcl.json("fit", "classes.csv", "--target", "y")
    for model in ("given", "personalised", "alone", "pooled"):
        mean = np.average([a["brier"][model] for a in found["agents"]], weights=[a["rows"] for a in found["agents"]])
        assert found["score"]["brier"][model] == pytest.approx(mean, rel=1e-9)
    printed = affpcl.succeed("fit", "classes.csv", "--target", "y").stdout
    for name in ("AUC", "Brier score", "calibration error"):
        assert f"\n  {name} " in printed


def test_a_weight_counts_as_rows(affpcl):
    """Rows of weight 2 score as if they stood there twice."""
    header, *rows = with_classes().splitlines()
    data, test = rows[::2], rows[1::2]
    affpcl.write("data.csv", "\n".join([header + ",w", *(r + ",1" for r in data)]) + "\n")
    affpcl.write("weighted.csv", "\n".join([header + ",w", *(r + f",{1 + k % 2}" for k, r in enumerate(test))]) + "\n")
    twice = [r + ",1" for k, r in enumerate(test) for _ in range(1 + k % 2)]
    affpcl.write("twice.csv", "\n".join([header + ",w", *twice]) + "\n")
    scores = [affpcl.json("fit", "data.csv", "--target", "y", "--row-weight", "w", "--test", name)["score"]
              for name in ("weighted.csv", "twice.csv")]
    for key in ("auc", "brier", "calibration_error"):
        assert scores[0][key] == pytest.approx(scores[1][key], rel=1e-9)


def test_a_stream_has_the_scores_too(affpcl):
    affpcl.write("classes.csv", with_classes())
    score = affpcl.json("fit", "classes.csv", "--target", "y", "--solver", "stream")["score"]
    assert 0.5 < score["auc"]["given"] <= 1
    assert 0 < score["brier"]["given"] < 0.5


HELD_OUT = {
    "folds": ("--folds", "fold", "--exclude", "day"),
    "time": ("--time", "day", "--exclude", "fold"),
    "test": ("--test", "test.csv", "--exclude", "day,fold"),
}


@pytest.fixture(scope="module")
def classes(shared_affpcl):
    """A table with a fold and a day in each row, a class as its target; a quarter of the rows is the test's."""
    header, *rows = with_classes().splitlines()
    rng = random.Random(5)
    more = [f"{r.split(',')[0]}{k % 5},{r.split(',', 1)[1]},{'pqrs'[k % 4]},{rng.randrange(40)}" for k, r in enumerate(rows)]
    text = "\n".join([header + ",fold,day", *more]) + "\n"
    for name, part in zip(("data.csv", "test.csv"), split(text)):
        shared_affpcl.write(name, part)
    return shared_affpcl


@pytest.mark.parametrize("how", HELD_OUT)
def test_bits_do_not_depend_on_threads(classes, how):
    one, two = (classes.json(*FIT, *HELD_OUT[how], "--threads", n) for n in (1, 2))
    for summary in one, two:
        del summary["manifest"]
    assert one == two


@pytest.mark.parametrize("how", HELD_OUT)
def test_bits_do_not_depend_on_ranks(classes, mpi, how):
    alone = classes.json(*FIT, *HELD_OUT[how])
    job = mpi.run(3, *FIT, *HELD_OUT[how], "--threads", 1, "--out", f"ranks-{how}", "--quiet")
    assert job.code == 0, job.said
    together = classes.read_json(f"ranks-{how}/summary.json")
    for key in ("score", "agents", "headline", "notes"):
        assert together[key] == alone[key]


@pytest.mark.parametrize("how", HELD_OUT)
def test_ranks_that_read_no_row_wait_for_none(classes, mpi, how):
    """One rank alone reads a packed file."""
    classes.write("packed.csv.gz", gzip.compress(classes.read("data.csv").encode()))
    words = ("fit", "packed.csv.gz", "--target", "y", *HELD_OUT[how])
    alone = classes.json(*words)
    job = mpi.run(3, *words, "--threads", 1, "--out", f"packed-{how}", "--quiet")
    assert job.code == 0, job.said
    assert classes.read_json(f"packed-{how}/summary.json")["score"] == alone["score"]


@pytest.mark.parametrize("options, says", [
    ("--folds flod", ["'flod'", "'fold'"]),
    ("--folds y", ["'y'", "target"]),
    ("--folds agent", ["'agent'", "agent"]),
    ("--folds one", ["'one'", "1 fold;", "2 to 50"]),
    ("--folds fold --repeats 3", ["--repeats 3", "--folds"]),
    ("--time day --repeats 2", ["--repeats 2", "--time"]),
    ("--folds fold --time day", ["--folds", "--test", "--time", "exclude"]),
    ("--test test.csv --time day", ["exclude"]),
    ("--folds fold --no-score", ["--folds", "score"]),
    ("--folds fold --solver stream", ["--folds", "--solver exact"]),
    ("--time dya", ["'dya'", "'day'"]),
    ("--time y", ["--time", "'y'"]),
    ("--time fold", ["line 2", "'fold'", "neither a number nor a date"]),
    ("--time one", ["'one'", "two times"]),
    ("--folds gaps", ["line 3", "'gaps'", "missing"]),
    ("--time gaps", ["line 3", "'gaps'", "no time"]),
    ("--test nowhere.csv", ["nowhere.csv"]),
    ("--test data.csv", ["data.csv", "both"]),
    ("--test bare.csv", ["bare.csv", "'y'"]),
    ("--test odd.csv", ["odd.csv", "line 2", "'day'", "soon"]),
    ("--test strangers.csv", ["strangers.csv", "no row"]),
])
def test_a_bad_hold_out_is_refused(affpcl, options, says):
    affpcl.write("data.csv", table([(*r, 1, "" if k == 1 else k) for k, r in enumerate(DOZEN)], "agent,day,fold,y,one,gaps"))
    affpcl.write("test.csv", table(DOZEN))
    affpcl.write("bare.csv", "agent,day,fold,one,gaps\na,1,f1,1,2\n")
    affpcl.write("odd.csv", "agent,day,fold,one,gaps,y\na,soon,f1,1,2,3\n")
    affpcl.write("strangers.csv", "agent,day,fold,one,gaps,y\nz,1,f1,1,2,3\n")
    words = options.split()
    more = () if "gaps" in options else ("--exclude", "gaps")
    affpcl.refuse(*FIT, *words, *more, "--out", "out", says=says)


@pytest.mark.parametrize("options, row, says", [
    ("--target n --family poisson", "a,1,1,-2", ["line 2", "'n'", "-2", "--family poisson"]),
    ("--target n --trials t", "a,1,1,3", ["line 2", "'n'", "--family binomial"]),
    ("--target n --family poisson", "a,,1,2", ["line 2", "'u'", "missing"]),
    ("--target n --row-weight t", "a,1,-1,2", ["line 2", "'t'", "weight"]),
    ("--target u --task classify", "a,7,1,1", ["line 2", "'u'", "'7'", "lacks"]),
])
def test_a_bad_test_row_is_refused(affpcl, options, row, says):
    rng = random.Random(6)
    rows = [(a, rng.randrange(2), t := rng.randrange(1, 9), rng.randrange(t + 1)) for a in "abc" for _ in range(12)]
    affpcl.write("data.csv", table(rows, "agent,u,t,n"))
    affpcl.write("test.csv", f"agent,u,t,n\n{row}\n")
    affpcl.refuse("fit", "data.csv", *options.split(), "--test", "test.csv", "--out", "out", says=says)


def test_every_kind_of_target_has_test_rows(affpcl):
    """The mean loss of each agent's test rows is that of predict."""
    rng = random.Random(7)
    rows = [(a, f"s{k // 2}", round(rng.gauss(0, 1), 4), t := rng.randrange(1, 9), rng.randrange(t + 1), rng.randrange(5),
             round(k + rng.gauss(0, 1), 4)) for k, a in enumerate("abcdef") for _ in range(20)]
    for name, text in zip(("data.csv", "test.csv"), split(table(rows, "agent,school,x,t,n,count,y"))):
        affpcl.write(name, text)
    for options in ("--target n --trials t", "--target count --family poisson --offset t --offset-scale response",
                    "--target y --within school", "--target y --crossed school", "--target y --family t",
                    "--target y --row-weight t"):
        words = ("--features", "x", *options.split())
        affpcl.succeed("fit", "data.csv", *words, "--test", "test.csv", "--out", "m", "--force", "--quiet")
        score = affpcl.read_json("m/summary.json")["score"]
        said = affpcl.json("predict", "m", "test.csv", "--out", "p.csv", "--force")["score"]
        assert score[score["measure"]]["given"] == pytest.approx(said[score["measure"]], rel=1e-9), options


# --- correlated errors -----------------------------------------------------------------------------------------------

def serial_rows(correlation, seed, agents=80, rows=12, later=20):
    """Lines of the rows to learn from, and of those after them. Errors are an AR(1) process of variance 1."""
    rng = random.Random(seed)
    old, new = ["agent,day,x,y\n"], ["agent,day,x,y\n"]
    for i in range(agents):
        at_0, slope, e = rng.gauss(1, .5), rng.gauss(1, .5), rng.gauss(0, 1)
        for t in range(rows + later):
            x = rng.gauss(0, 1)
            (old if t < rows else new).append(f"a{i},{t},{x:.5g},{at_0 + slope * x + e:.5g}\n")
            e = correlation * e + (1 - correlation ** 2) ** .5 * rng.gauss(0, 1)
    return "".join(old), "".join(new)


@pytest.fixture(scope="module")
def serial(shared_affpcl):
    """Notes of fits by the order of the file and with --time, and how many later rows their intervals hold."""
    found = {}
    for name, correlation in (("correlated", .7), ("independent", 0)):
        old, new = serial_rows(correlation, 4)
        shared_affpcl.write("old.csv", old)
        shared_affpcl.write("new.csv", new)
        for way, words in (("order", ("--exclude", "day", "--no-score")), ("time", ("--time", "day"))):
            summary = shared_affpcl.json("fit", "old.csv", "--target", "y", "--agent", "agent", *words, "--out", "s", "--force")
            shared_affpcl.succeed("predict", "s", "new.csv", "--out", "s.csv", "--force", "--quiet")
            rows = list(csv.DictReader(shared_affpcl.read("s.csv").splitlines()))
            held = [float(r["prediction_lo"]) <= float(r["y"]) <= float(r["prediction_hi"]) for r in rows]
            notes = [note for note in summary["notes"] if "successive rows" in note]
            found[name, way] = notes, sum(held) / len(held), shared_affpcl.succeed("inspect", "s").stdout
    return found


def test_rows_in_their_order_have_a_note_and_intervals_that_are_too_narrow(serial):
    notes, held, printed = serial["correlated", "order"]
    assert len(notes) == 1 and "intervals are too narrow" in notes[0]
    assert held < .83 and "AR(1)" not in printed


def test_with_time_the_model_allows_for_the_correlation(serial):
    notes, held, printed = serial["correlated", "time"]
    assert len(notes) == 1 and "allows for it" in notes[0] and "'day'" in notes[0]
    assert held > .85 and "AR(1)" in printed


@pytest.mark.parametrize("way", ["order", "time"])
def test_independent_errors_have_no_note(serial, way):
    notes, held, printed = serial["independent", way]
    assert notes == [] and .87 < held < .93 and "AR(1)" not in printed
