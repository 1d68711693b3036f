"""`affpcl run` from end to end: the result folder, what is printed, threads and seeds, logs of transitions, --trace."""
import csv
import json
import math

import pytest

from _studies import result_of

METHODS = ["affpcl", 'affpcl, "no" correction', "independent", "fedavg"]
ONE = '''[problem]
kind = "gaussian"
agents = 6
dim = 3
[run]
steps = 20
replicates = 3
seed = 7
tail = 5
[[method]]
kind = "affpcl"
[[method]]
kind = "affpcl"
name = "affpcl, \\"no\\" correction"
ratio = "none"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
period = 4
'''
SWEEP = ONE + '[sweep]\n"problem.delta_env+problem.delta_obj" = [0.0, 0.3]\n'


def rows_of(affpcl, name):
    return list(csv.DictReader(affpcl.read(name).splitlines()))


@pytest.fixture
def affpcl(affpcl):
    """The program beside one.toml, a study of one setting."""
    affpcl.write("one.toml", ONE)
    return affpcl


# --- a folder --------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def sweep(shared_affpcl):
    """The program beside spec.toml, a study of two settings."""
    shared_affpcl.write("spec.toml", SWEEP)
    return shared_affpcl


@pytest.fixture(scope="module")
def done(sweep):
    """`run spec.toml --out a`."""
    return sweep.succeed("run", "spec.toml", "--out", "a", "--threads", 1)


@pytest.fixture(scope="module")
def summary(sweep, done):
    return sweep.read_json("a/summary.json")


@pytest.fixture(scope="module")
def curves(sweep, done):
    return rows_of(sweep, "a/curves.csv")


@pytest.fixture(scope="module")
def agents(sweep, done):
    return rows_of(sweep, "a/agents.csv")


def curve(curves, method, delta):
    """The mean squared error of all agents, point by point."""
    return [float(row["mse_mean"]) for row in curves
            if row["method"] == method and row["agent"] == "all" and float(row["problem.delta_env"]) == delta]


def test_the_folder_has_three_files_and_nothing_is_left_beside_it(affpcl):
    affpcl.succeed("run", "one.toml", "--out", "a")
    assert set(affpcl.files()) == {"one.toml", "a", "a/agents.csv", "a/curves.csv", "a/summary.json"}


@pytest.mark.parametrize("words", ["affpcl", "independent", "fedavg", "problem.delta_env", "0.3"])
def test_the_table_names_methods_and_settings(done, words):
    assert words in done.stdout


def test_standard_error_stays_empty_where_it_is_no_terminal(done):
    assert done.stdout
    assert done.stderr == ""


def test_the_manifest_says_how_to_do_it_again(summary):
    manifest = summary["manifest"]
    assert manifest["spec"]["problem"]["agents"] == 6
    assert manifest["seed"] == 7
    assert "spec.toml" in manifest["command"]
    assert manifest["complete"] is True


def test_methods_are_in_order(summary):
    assert [[method["name"] for method in setting["methods"]] for setting in summary["settings"]] == [METHODS] * 2


def test_a_name_with_a_comma_and_quotes_survives_csv(curves, agents):
    assert {row["method"] for row in curves} == set(METHODS) == {row["method"] for row in agents}


@pytest.mark.parametrize("setting, delta", [(0, 0), (1, .3)])
def test_the_tail_of_the_curve_is_the_summary(summary, curves, setting, delta):
    tail = curve(curves, "affpcl", delta)[-5:]
    assert math.isclose(sum(tail) / 5, summary["settings"][setting]["methods"][0]["mse"]["mean"], rel_tol=1e-9)


def test_curves_have_a_point_per_round(curves):
    assert [len(curve(curves, method, .3)) for method in METHODS] == [20, 20, 20, 5]


def test_agents_csv_has_a_row_per_setting_method_and_agent(agents):
    assert len(agents) == 2 * 4 * 6


def test_independent_against_itself_is_one(agents):
    assert {float(row["vs_independent"]) for row in agents if row["method"] == "independent"} == {1}


# --- the same numbers ------------------------------------------------------------------------------------------------

def test_two_threads_give_the_same_files(sweep, done):
    sweep.succeed("run", "spec.toml", "--out", "b", "--threads", 2, "--quiet")
    assert result_of(sweep.folder / "b") == result_of(sweep.folder / "a")


def test_three_threads_share_the_agents_of_one_replicate(affpcl):
    many = ["--set", "problem.agents=1500", "--set", "problem.environments=5", "--set", "run.replicates=1", "--quiet"]
    for threads in (1, 3):
        affpcl.succeed("run", "one.toml", "--out", f"many{threads}", "--threads", threads, *many)
    assert result_of(affpcl.folder / "many1") == result_of(affpcl.folder / "many3")


@pytest.fixture
def seeded(affpcl):
    """The program beside s11, a result with --seed 11."""
    affpcl.succeed("run", "one.toml", "--out", "s11", "--seed", 11, "--quiet")
    return affpcl


def test_seed_is_set_run_seed(seeded):
    seeded.succeed("run", "one.toml", "--out", "set", "--set", "run.seed=11", "--quiet")
    assert result_of(seeded.folder / "s11") == result_of(seeded.folder / "set")
    assert seeded.read_json("s11/summary.json")["manifest"]["seed"] == 11


def test_another_seed_gives_other_numbers(seeded):
    seeded.succeed("run", "one.toml", "--out", "s12", "--seed", 12, "--quiet")
    assert result_of(seeded.folder / "s12") != result_of(seeded.folder / "s11")


def test_the_spec_in_the_manifest_gives_the_same_numbers(sweep, summary):
    sweep.write("again.toml", summary["manifest"]["spec_toml"])
    sweep.succeed("run", "again.toml", "--out", "again", "--quiet")
    assert result_of(sweep.folder / "again") == result_of(sweep.folder / "a")


# --- what is printed -------------------------------------------------------------------------------------------------

def test_json_prints_the_summary_and_nothing_else(affpcl):
    done = affpcl.succeed("run", "one.toml", "--json")
    assert done.stderr == ""
    assert json.loads(done.stdout)["settings"][0]["replicates"] == 3


def test_quiet_prints_nothing(affpcl):
    done = affpcl.succeed("run", "one.toml", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")


def test_quiet_writes_a_folder_and_prints_nothing(affpcl):
    done = affpcl.succeed("run", "one.toml", "--quiet", "--out", "q")
    assert (done.stdout, done.stderr) == ("", "")
    assert (affpcl.folder / "q/summary.json").exists()


def test_set_comes_before_the_spec(affpcl):
    assert affpcl.json("run", "--set", "run.replicates=2", "one.toml")["settings"][0]["replicates"] == 2


def test_set_comes_several_times(affpcl):
    result = affpcl.json("run", "one.toml", "--set", "run.replicates=1", "--set", "method.affpcl.ratio=none")
    assert result["settings"][0]["methods"][0]["mse"]["lo"] is None


def test_diverged_runs_are_counted_and_printed(affpcl):
    printed = affpcl.succeed("run", "one.toml", "--set", "method.independent.step_size=9").stdout
    assert "diverged" in printed
    assert "3 of 3" in printed


def test_diverged_runs_are_null_in_json(affpcl):
    printed = affpcl.succeed("run", "one.toml", "--json", "--set", "method.independent.step_size=9").stdout
    assert "NaN" not in printed
    assert "Infinity" not in printed
    setting = json.loads(printed)["settings"][0]
    assert setting["methods"][2]["mse"]["mean"] is None
    assert all(setting["methods"][m]["mse"]["mean"] > 0 for m in (0, 1, 3))
    assert all(m["vs_independent"] is None for m in setting["methods"])
    assert setting["diverged"] == dict(zip(METHODS, (0, 0, 3, 0)))


def test_a_run_in_which_all_diverged_fails_and_says_so(affpcl):
    done = affpcl.run("run", "one.toml", "--quiet", "--set", "run.step_size=9")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "all 3 replicates diverged" in done.stderr


@pytest.mark.parametrize("key, part", [("step_size_central", "x^c"), ("step_size_objective", "theta^c")])
def test_a_centre_that_diverges_is_dropped_and_named(affpcl, key, part):
    affpcl.write("centre.toml", f'''[problem]
kind = "gaussian"
agents = 4
[run]
steps = 120
replicates = 2
step_size = 0.01
{key} = 5.0
[[method]]
kind = "independent"
[[method]]
kind = "affpcl"
name = "plain"
[[method]]
kind = "affpcl"
name = "guarded"
guard = "full"
''')
    printed = affpcl.succeed("run", "centre.toml").stdout
    assert "plain in 2 of 2" in printed
    assert f"guarded: the centre's {part} diverged; the guard dropped it and all agents learnt alone" in printed
    methods = json.loads(affpcl.succeed("run", "centre.toml", "--json").stdout)["settings"][0]["methods"]
    assert methods[2]["vs_independent"]["mean"] == 1
    assert methods[2]["central"][{"x^c": "x", "theta^c": "theta"}[part]] is None


# --- a log of transitions: the truth is not known, so solutions take the place of errors -----------------------------

LOG = "site,state,next_state,reward,done\n" + "".join(
    f"{site},low,{'high' if t % 3 else 'low'},{t % 2},0\n{site},high,,{2 + (site == 'north')},1\n"
    for t in range(20) for site in ("north", "south"))
LOG_SPEC = '''[problem]
kind = "td"
file = "log.csv"
agent = "site"
[run]
steps = 400
replicates = 1
step_size = 0.1
[[method]]
kind = "affpcl"
ratio = "counts"
[[method]]
kind = "independent"
'''


@pytest.fixture(scope="module")
def log(shared_affpcl):
    """The program beside log.toml and the log of two agents."""
    shared_affpcl.write("log.csv", LOG)
    shared_affpcl.write("log.toml", LOG_SPEC)
    return shared_affpcl


@pytest.fixture(scope="module")
def log_printed(log):
    """What `run log.toml --out log` prints."""
    return log.succeed("run", "log.toml", "--out", "log").stdout


@pytest.fixture(scope="module")
def solutions(log, log_printed):
    return rows_of(log, "log/solutions.csv")


def test_a_log_gives_a_table_of_values(log_printed):
    for words in ("V(low)", "V(high)", "2 agents", "truth is not known", "solutions.csv"):
        assert words in log_printed
    assert "smallest error" not in log_printed


def test_solutions_csv_has_every_agent_and_unknown(solutions):
    assert len(solutions) == 2 * 2 * 2
    assert len({(row["method"], row["name"], row["unknown"]) for row in solutions}) == 2 * 2 * 2


@pytest.mark.parametrize("method, agent, expected", [("affpcl", "north", 3), ("independent", "south", 2)])
def test_each_agent_has_its_own_value(solutions, method, agent, expected):
    value = {(row["method"], row["name"], row["unknown"]): float(row["value"]) for row in solutions}
    assert abs(value[method, agent, "V(high)"] - expected) < .05


def test_errors_of_a_log_are_null(log, log_printed):
    method = log.read_json("log/summary.json")["settings"][0]["methods"][0]
    assert method["mse"]["mean"] is None
    assert method["agents"][0]["mse"]["mean"] is None


def test_a_log_whose_values_are_not_finite_has_diverged(log):
    done = log.run("run", "log.toml", "--set", "run.step_size=3.0", "--set", "run.steps=5000")
    assert done.returncode == 1
    assert "diverged" in done.stdout
    assert "all 1 replicates diverged" in done.stderr


# --- replacing -------------------------------------------------------------------------------------------------------

@pytest.fixture
def existing(seeded):
    """The result s11 as it was before anything else is tried."""
    return result_of(seeded.folder / "s11")


def test_an_existing_folder_is_left_alone(seeded, existing):
    assert seeded.run("run", "one.toml", "--out", "s11", "--seed", 99, "--quiet").returncode == 2
    assert result_of(seeded.folder / "s11") == existing


def test_force_replaces_an_existing_folder(seeded, existing):
    seeded.succeed("run", "one.toml", "--out", "s11/", "--seed", 99, "--quiet", "--force")
    assert result_of(seeded.folder / "s11") != existing


def test_folders_on_the_way_are_made(affpcl):
    affpcl.succeed("run", "one.toml", "--out", "deep/er/out", "--quiet")
    assert (affpcl.folder / "deep/er/out/summary.json").exists()


# --- trace -----------------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def trace(shared_affpcl):
    """The rows that --trace writes."""
    shared_affpcl.write("one.toml", ONE)
    shared_affpcl.succeed("run", "one.toml", "--trace", "t.csv", "--quiet")
    return rows_of(shared_affpcl, "t.csv")


def test_the_trace_has_the_columns_of_the_contract(trace):
    assert list(trace[0]) == ["method", "replicate", "step", "what", "agent", "index", "value"]


def test_the_trace_has_every_iterate_and_the_start(trace):
    assert sum(row["method"] == "affpcl" and row["what"] == "x" for row in trace) == 3 * 21 * 6 * 3


def test_xc_and_thetac_are_of_no_agent(trace):
    assert {row["agent"] for row in trace if row["what"] != "x"} == {""}
    assert {row["what"] for row in trace} == {"x", "xc", "thetac"}


def test_the_trace_starts_at_zero(trace):
    assert {float(row["value"]) for row in trace if row["step"] == "0"} == {0}


def test_the_trace_has_full_precision(trace):
    assert any(len(row["value"].lstrip("-0.")) >= 16 for row in trace)
