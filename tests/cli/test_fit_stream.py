"""`affpcl fit` in one pass, with outcomes that agents weigh, and for values of states from a log."""
import csv
import functools
import random
import signal

import pytest

from _wait import computes

OWN = ("--target", "y", "--exclude", "day,speed,comfort")
STREAM = ("fit", "t.csv", *OWN, "--solver", "stream")
BY_DAY = ("--target", "y", "--exclude", "speed,comfort", "--solver", "stream", "--time", "day")
WEIGH = ("--channels", "speed,comfort", "--weights", "prefs.csv", "--exclude", "day,y")


def table(seed, agents, rows, day=lambda r: r):
    """Agents whose slopes differ, with one, two or three times as many rows."""
    rng = random.Random(seed)
    lines = ["site,day,u,v,y,speed,comfort"]
    for i in range(agents):
        slope = 1 + .3 * rng.gauss(0, 1)
        for r in range(rows * (i % 3 + 1)):
            u, v, e = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
            y, speed, comfort = slope * u - v + .5 * e, u + .3 * e, 2 - v + .3 * rng.gauss(0, 1)
            lines.append(f"site{i},{day(r)},{u:.4f},{v:.4f},{y:.4f},{speed:.4f},{comfort:.4f}")
    return "\n".join(lines) + "\n"


def log():
    """Transitions of four agents between three places."""
    rng, reward = random.Random(5), dict(home=0, road=-1, shop=2)
    lines = ["agent,state,next_state,reward,done"]
    for i in range(4):
        state = "home"
        for _ in range(150 * (i + 1)):
            done, following = rng.random() < .1, rng.choice(list(reward))
            gained = reward[state] + rng.gauss(0, .2)
            lines.append(f"r{i},{state},{'' if done else following},{gained:.3f},{int(done)}")
            state = "home" if done else following
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def files(shared_affpcl):
    """The program beside t.csv, the agents' weights prefs.csv, and log.csv."""
    shared_affpcl.write("t.csv", table(4, 9, 60))
    weights = "".join(f"site{i},{i / 8},{1 - i / 8}\n" for i in range(9))
    shared_affpcl.write("prefs.csv", "site,speed,comfort\n" + weights)
    shared_affpcl.write("log.csv", log())
    return shared_affpcl


# --- one pass --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def printed(files):
    """What the fit of the model m in one pass prints."""
    return files.succeed(*STREAM, "--out", "m").stdout


@pytest.fixture(scope="module")
def summary(files, printed):
    return files.read_json("m/summary.json")


def test_it_prints_how_it_learnt(printed):
    assert "in one pass by residual" in printed
    assert "predicted, then learnt" in printed


def test_the_summary_has_the_solver_and_how_it_was_scored(summary):
    assert summary["manifest"]["spec"]["solver"] == "stream"
    assert summary["manifest"]["spec"]["method"] == "residual"
    assert summary["manifest"]["complete"]
    assert "before it is learnt" in summary["score"]["how"]


def test_two_threads_give_the_same_numbers(files, summary):
    again = files.json(*STREAM, "--threads", 2)
    assert again["score"] == summary["score"]
    assert again["agents"] == summary["agents"]


def test_its_model_predicts(files, printed):
    assert files.json("predict", "m", "t.csv", "--out", "p.csv")["score"]["r2"] > .7


def test_inspect_shows_no_standard_errors(files, printed):
    shown = files.succeed("inspect", "m", "--agent", "site1").stdout
    assert "learnt in one pass by residual" in shown
    assert " -\n" in shown


def test_without_channels_affpcl_is_independent_with_a_note(files):
    result = files.json(*STREAM, "--method", "affpcl")
    mse = result["score"]["mse"]
    assert abs(mse["personalised"] / mse["alone"] - 1) < 1e-12
    assert any("learning alone" in note for note in result["notes"])


@pytest.mark.parametrize("method", ["ditto", "pfedme", "fine_tune", "ifca", "scaffold", "independent", "fedavg"])
def test_any_method(files, method):
    assert files.json(*STREAM, "--method", method)["score"]["mse"]["given"] > 0


def test_set_reaches_the_method(files):
    mild, none = (files.json(*STREAM, "--method", "ditto", "--set", setting)["score"]["mse"]
                  for setting in ("lambda=0.1", "lambda=0"))
    assert mild["personalised"] != none["personalised"]
    assert abs(none["personalised"] - none["alone"]) < 1e-9


def test_time_orders_rows_and_is_no_feature(files, summary):
    result = files.json("fit", "t.csv", *BY_DAY)
    assert result["columns"] == 2
    assert result["score"] == summary["score"]


def test_dates_are_times(affpcl):
    affpcl.write("back.csv", table(6, 9, 60, day=lambda r: f"2026-{12 - r % 12:02}"))
    assert affpcl.json("fit", "back.csv", *BY_DAY)["columns"] == 2


def test_ctrl_c_keeps_the_model_so_far(affpcl):
    affpcl.write("big.csv", table(7, 3, 6000))
    process = affpcl.start("fit", "big.csv", *OWN, "--solver", "stream", "--out", "stopped", "--quiet")
    if computes(process, .05):
        process.send_signal(signal.SIGINT)
    affpcl.end(process)
    code = process.returncode
    assert code in (0, 130, -signal.SIGINT)
    if code != 130 or not (affpcl.folder / "stopped/summary.json").exists():
        pytest.skip("the signal came before the first row or after the last, and broke nothing")
    summary = affpcl.read_json("stopped/summary.json")
    assert not summary["manifest"]["complete"]
    assert any("stopped after" in note for note in summary["notes"])


# --- outcomes that agents weigh --------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def weigh(files):
    """Fits two channels with a solver and predicts t.csv into SOLVER.csv, once; the scores of both."""
    @functools.cache
    def call(solver):
        fit = files.json("fit", "t.csv", *WEIGH, "--solver", solver, "--out", solver)
        predict = files.json("predict", solver, "t.csv", "--out", f"{solver}.csv")
        return fit["score"], predict["score"]

    return call


@pytest.mark.parametrize("solver", ["exact", "stream"])
def test_channels_are_fitted(weigh, solver):
    score, _ = weigh(solver)
    assert score["r2"]["given"] > .4


@pytest.mark.parametrize("solver", ["exact", "stream"])
def test_predictions_are_of_the_weighted_sum(weigh, solver):
    _, score = weigh(solver)
    assert score["r2"] > .7


def test_intervals_of_the_weighted_sum_hold_nine_rows_in_ten(files, weigh):
    weigh("exact")
    inside = []
    for row in csv.DictReader(files.read("exact.csv").splitlines()):
        weight = int(row["site"][4:]) / 8
        y = weight * float(row["speed"]) + (1 - weight) * float(row["comfort"])
        inside.append(float(row["prediction_lo"]) <= y <= float(row["prediction_hi"]))
    assert .87 < sum(inside) / len(inside) < .93


# --- values of states from a log -------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def values_printed(files):
    """What the fit of the model td prints."""
    return files.succeed("fit", "log.csv", "--task", "td", "--gamma", .8, "--out", "td").stdout


def test_values_are_learnt_from_a_log(values_printed):
    assert "squared TD error" in values_printed


def test_values_are_predicted_without_an_interval(files, values_printed):
    files.write("states.csv", "agent,state\nr0,shop\nr0,road\nnew,shop\n")
    files.succeed("predict", "td", "states.csv", "--out", "v.csv")
    shop, road, _ = csv.DictReader(files.read("v.csv").splitlines())
    assert float(shop["prediction"]) > float(road["prediction"]) + 1
    assert shop["prediction_lo"] == ""


# --- what is refused -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, says", [
    ("--method ditto", ["--solver stream"]),
    ("--solver stream --method dito", ["dito", "'ditto'"]),
    ("--solver stream --method ditto --set lamda=1", ["lamda", "'lambda'"]),
    ("--solver stream --method ditto --set lambda", ["lambda", "KEY=VALUE"]),
    ("--solver stream --no-score", ["--no-score"]),
    ("--solver stream --time dya", ["'dya'", "'day'"]),
    ("--weights prefs.csv", ["--channels"]),
])
def test_an_option_of_the_solver_is_refused(files, options, says):
    files.refuse("fit", "t.csv", *OWN, *options.split(), says=says)


@pytest.mark.parametrize("options, says", [
    ("--channels speed,comfort", ["--weights"]),
    ("--channels speed --weights prefs.csv", ["speed", "two"]),
    ("--target y --channels speed,comfort --weights prefs.csv", ["--target", "--channels"]),
])
def test_channels_are_refused(files, options, says):
    files.refuse("fit", "t.csv", *options.split(), says=says)


@pytest.mark.parametrize("row, says", [
    ("site0,1,0", ["bad.csv", "'site1'"]),
    ("site0,much,0", ["bad.csv", "line 2", "'speed'", "much"]),
])
def test_weights_are_refused(files, row, says):
    files.write("bad.csv", f"site,speed,comfort\n{row}\n")
    files.refuse("fit", "t.csv", "--channels", "speed,comfort", "--weights", "bad.csv", "--exclude", "day,y", says=says)


@pytest.mark.parametrize("solver", ["exact", "stream"])
@pytest.mark.parametrize("option, value", [("--gamma", ".3"), ("--state", "u"), ("--next-state", "u"),
                                           ("--reward", "u"), ("--done", "u")])
def test_an_option_of_logs_without_a_log_is_refused(files, option, value, solver):
    files.refuse("fit", "t.csv", *OWN, "--solver", solver, option, value, says=[option, "--task td"])


@pytest.mark.parametrize("command, says", [
    ("fit log.csv --task td --target reward", ["--task td", "--reward"]),
    ("fit t.csv --task td --agent site", ["t.csv", "'state'"]),
    ("fit log.csv --task td --exclude done", ["--task td", "--exclude"]),
    ("fit log.csv --task td --time reward", ["--task td", "--time"]),
    ("fit log.csv --task td --with t.csv", ["--task td", "--with"]),
    ("fit log.csv --task td --missing mean", ["--task td", "--missing"]),
    ("fit log.csv --task td --weights prefs.csv", ["--weights", "--channels"]),
    ("fit log.csv --task td --solver exact", ["--task td", "--solver stream"]),
    ("fit log.csv t.csv --task td", ["one file"]),
])
def test_a_log_is_refused(files, command, says):
    files.refuse(*command.split(), says=says)
