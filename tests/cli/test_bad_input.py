"""Bad commands, specs and files are refused at once, in one sentence that names what is wrong."""
import json

import pytest

PROBLEM = '[problem]\nkind = "gaussian"\nagents = 4\n'
RUN = "[run]\nsteps = 20\nreplicates = 2\n"
METHOD = '[[method]]\nkind = "affpcl"\n'
DEEP = "[" * 200_000 + "]" * 200_000


@pytest.fixture
def affpcl(affpcl):
    """The program beside a good spec."""
    affpcl.write("good.toml", PROBLEM + RUN + METHOD)
    return affpcl


def test_the_good_spec_runs(affpcl):
    affpcl.succeed("run", "good.toml", "--quiet")


# --- the command line ------------------------------------------------------------------------------------------------

def test_no_verb(affpcl):
    affpcl.refuse(says=["--help"])


@pytest.mark.parametrize("command, says", [
    ("rnu good.toml", ["'rnu'", "'run'"]),
    ("xyzzy", ["xyzzy"]),
    ("run good.toml --frobnicate", ["--frobnicate"]),
    ("--frobnicate run good.toml", ["--frobnicate"]),
    ("fit x.csv --xyzzy", ["'--xyzzy'", "affpcl fit --help"]),
    ("run", ["spec"]),
    ("run good.toml other.toml", ["other.toml"]),
    ("run good.toml --out", ["--out"]),
    ("run good.toml --threads 0", ["--threads", "0"]),
    ("run good.toml --threads two", ["--threads", "two"]),
    ("run good.toml --seed -1", ["--seed", "-1"]),
    ("run good.toml --seed x", ["--seed", "x"]),
    ("run good.toml --set run.seed --out out", ["run.seed", "key=value"]),
    ("run good.toml --out out --set", ["--set"]),
])
def test_command_line(affpcl, command, says):
    affpcl.refuse(*command.split(), says=says)


@pytest.mark.parametrize("command, wrong, near", [
    ("run good.toml --threds=2", "--threds", "--threads"),
    ("run good.toml --forse --ot x", "--forse", "--force"),
    ("reproduce --foce", "--foce", "--force"),
    ("affinity x.csv --pilt 1", "--pilt", "--pilot"),
    ("fit x.csv --taget y", "--taget", "--target"),
    ("predict m x.csv --ouy p.csv", "--ouy", "--out"),
    ("inspect m --agnet a", "--agnet", "--agent"),
    ("report --forse", "--forse", "--force"),
    ("list --jsn", "--jsn", "--json"),
    ("bench --secnds 1", "--secnds", "--seconds"),
    ("--verison", "--verison", "--version"),
])
def test_a_misspelt_option_gets_a_suggestion(affpcl, command, wrong, near):
    affpcl.refuse(*command.split(), says=[f"there is no option '{wrong}'; did you mean '{near}'?"])


# --- keys and values of a spec ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("setting, says", [
    ("run.sedd=1", ["run.sedd", "'seed'"]),
    ("rnu.seed=1", ["rnu.seed", "'run'"]),
    ("seed=1", ["seed"]),
    ("method.nobody.batch=2", ["method.nobody.batch"]),
    ("problem.agents=many", ["problem.agents", "many", "whole number"]),
    ("problem.agents=2.5", ["problem.agents", "2.5"]),
    ("run.curve_agents=3", ["run.curve_agents", "3"]),
    ("method.affpcl.ratio=3", ["method.ratio", "3"]),
    ("problem.agents=0", ["problem.agents", "0", "at least 1"]),
    ("problem.agents=-1", ["problem.agents", "-1"]),
    ("problem.agents=1000000000000", ["problem.agents", "1000000000000"]),
    ("problem.agents=3000000000", ["problem.agents", "3000000000"]),  # more than the memory holds
    ("problem.dim=0", ["problem.dim", "0"]),
    ("problem.dim=1000000000", ["problem.dim", "1000000000"]),
    ("run.step_size=-0.1", ["run.step_size", "-0.1"]),
    ("run.step_size=0", ["run.step_size", "0"]),
    ("run.step_size=nan", ["run.step_size", "nan"]),
    ("run.step_size=inf", ["run.step_size", "inf"]),
    ("run.step_size=-inf", ["run.step_size", "-inf"]),
    ('run.step_size="fast"', ["run.step_size", "fast"]),
    ("run.step_size_central=-1", ["run.step_size_central", "-1"]),
    ("method.affpcl.step_size=-1", ["method.step_size", "-1"]),
    ("run.steps=0", ["run.steps", "0"]),
    ("run.replicates=0", ["run.replicates", "0"]),
    ("run.tail=21", ["run.tail", "21", "20"]),
    ("run.seed=-1", ["run.seed", "-1"]),
    ("run.curve_agents=[4]", ["run.curve_agents", "4"]),
    ("method.affpcl.period=0", ["method.period", "0"]),
    ("method.affpcl.objective=tabular", ["tabular"]),
])
def test_a_value(affpcl, setting, says):
    affpcl.refuse("run", "good.toml", "--out", "out", "--set", setting, says=says)


@pytest.mark.parametrize("text, says", [
    pytest.param(PROBLEM + "agnets = 3\n" + METHOD, ["line 4", "agnets", "'agents'"], id="unknown key in [problem]"),
    pytest.param(PROBLEM + "[run]\nstpes = 3\n" + METHOD, ["line 5", "stpes", "'steps'"], id="unknown key in [run]"),
    pytest.param(PROBLEM + METHOD + 'raito = "none"\n', ["line 6", "raito", "'ratio'"], id="unknown key in [[method]]"),
    pytest.param("[prblem]\n" + PROBLEM + METHOD, ["line 1", "prblem", "'problem'"], id="unknown section"),
    pytest.param('[problem]\nkind = "gausian"\n' + METHOD, ["gausian", "'gaussian'"], id="unknown problem"),
    pytest.param(PROBLEM + '[[method]]\nkind = "afpcl"\n', ["afpcl", "'affpcl'"], id="unknown method"),
    pytest.param(PROBLEM + METHOD + 'ratio = "exakt"\n', ["method.ratio", "exakt", "'exact'"], id="unknown ratio"),
    pytest.param(PROBLEM + RUN, ["[[method]]"], id="no method"),
    pytest.param(PROBLEM + '[method]\nkind = "affpcl"\n', ["[[method]]"], id="[method] with one bracket"),
    pytest.param(METHOD, ["[problem]"], id="no problem"),
    pytest.param(PROBLEM + METHOD + METHOD, ["'affpcl'"], id="two methods of one name"),
    pytest.param(PROBLEM + METHOD + '[sweep]\n"problem.agnets" = [1]\n', ["agnets"], id="sweep over an unknown key"),
    pytest.param(PROBLEM + METHOD + '[sweep]\n"problem.agents" = [1, 0]\n', ["problem.agents", "0"],
                 id="sweep with a bad value"),
    pytest.param(PROBLEM + METHOD + '[sweep]\n"problem.agents" = 1\n', ["problem.agents", "line 7"],
                 id="sweep that is no list"),
    pytest.param(PROBLEM + "dim = = 3\n", ["line 4"], id="not TOML"),
    pytest.param(PROBLEM + "agents = 5\n" + METHOD, ["line 4"], id="a key twice"),
    pytest.param("", [], id="empty"),
])
def test_a_spec(affpcl, text, says):
    affpcl.write("bad.toml", text)
    affpcl.refuse("run", "bad.toml", "--out", "out", says=["bad.toml", *says])


@pytest.mark.parametrize("path, says", [("nowhere.toml", "nowhere.toml"), (".", " .")])
def test_a_spec_that_is_no_file(affpcl, path, says):
    affpcl.refuse("run", path, "--out", "out", says=[says])


# --- JSON files ------------------------------------------------------------------------------------------------------

SYSTEM = {"A": [[[1]], [[2]]], "Phi": [[[1]], [[1]]], "mu": [[.5, .5], [.1, .9]], "theta": [[1], [2]]}
TABULAR = '[problem]\nkind = "tabular"\nfile = "system.json"\n'


def system(**changed):
    return json.dumps({**SYSTEM, **changed})


@pytest.mark.parametrize("threads", [(), ("--threads", 2)], ids=["default threads", "two threads"])
@pytest.mark.parametrize("content, says", [
    pytest.param(None, [], id="not there"),
    pytest.param('{"A":\n [1,\n ,2]}', ["line 3"], id="not JSON"),
    pytest.param(system(mu=[[.5, .5], [.1, .8]]), ["mu[1]", "0.9"], id="mu does not sum to one"),
    pytest.param(system(mu=[[.5, .5], [1.5, -.5]]), ["mu[1][1]", "-0.5"], id="mu with a negative entry"),
    pytest.param(system(tehta=1), ["'tehta'", "'theta'"], id="unknown key"),
    pytest.param(json.dumps({k: v for k, v in SYSTEM.items() if k != "mu"}), ["'mu'"], id="missing key"),
    pytest.param(system(theta=[[1]]), ["theta"], id="wrong shape"),
    pytest.param(system(theta=[[1], ["x"]]), ["theta[1][0]", "x"], id="text among numbers"),
    pytest.param(system().replace("[[1], [2]]", "[[1], [1e999]]"), ["1e999"], id="number too large"),
    pytest.param(system()[:-1] + ', "mu": [[1, 0], [1, 0]]}', ['"mu"', "twice"], id="a key twice"),
    pytest.param(b'{"A": "\xff"}', ["line 1", "UTF-8"], id="not UTF-8"),
    pytest.param('{"A": ' + DEEP + "}", ["line 1", "nested"], id="deep lists"),
    pytest.param('{"A": ' + '{"a": ' * 200_000 + "1" + "}" * 200_000 + "}", ["line 1", "nested"], id="deep objects"),
    pytest.param('{"A": ' + "[" * 200_000 + "}", ["line 1", "nested"], id="deep lists without an end"),
])
def test_a_finite_system(affpcl, content, says, threads):
    if content is not None:
        affpcl.write("system.json", content)
    affpcl.write("tabular.toml", TABULAR + METHOD)
    affpcl.refuse("run", "tabular.toml", "--out", "out", *threads, says=["system.json", *says])


def test_more_steps_than_recorded_states(affpcl):
    affpcl.write("system.json", system(states=[[0, 1], [1, 0]]))
    affpcl.write("tabular.toml", TABULAR + "[run]\nsteps = 3\n" + METHOD)
    affpcl.refuse("run", "tabular.toml", "--out", "out", says=["3", "2"])


MODEL = '{"format": "affpcl-model", "version": 1,\n"provenance": '


@pytest.mark.parametrize("command", ["inspect model.json", "predict model.json rows.csv"])
@pytest.mark.parametrize("text, says", [
    pytest.param(MODEL + DEEP + "}", ["line 2", "nested"], id="nested deeply"),
    pytest.param(MODEL + DEEP[:100_000], ["line 2", "nested"], id="nested deeply and cut"),
    pytest.param(DEEP, ["line 1", "nested"], id="only brackets"),
    pytest.param('{"format": 1}', ["format"], id="format is a number"),
    pytest.param('{"format": "affpcl-model",\n"format": "affpcl-model"}', ["line 2", "twice"], id="a key twice"),
])
def test_a_model(affpcl, text, says, command):
    affpcl.write("model.json", text)
    affpcl.write("rows.csv", "agent,x\na,1\n")
    affpcl.refuse(*command.split(), says=["model.json", *says])


def test_a_leaf_file_nested_deeply(affpcl):
    affpcl.write("leaf.json", '{"hierarchies": ' + DEEP + ', "user_data": {"u": {"x": [[1]], "y": [1]}}}')
    affpcl.refuse("fit", "leaf.json", "--target", "y", says=["leaf.json", "nested"])


# --- logs of transitions and temporal differences --------------------------------------------------------------------

HEAD = "agent,state,next_state,reward\n"
ROWS = "a,1,2,0\na,2,1,0\nb,1,2,0\nb,2,1,1\n"
LOG = '[problem]\nkind = "td"\nfile = "log.csv"\n'


@pytest.mark.parametrize("content, says", [
    pytest.param(None, ["log.csv"], id="not there"),
    pytest.param("", ["log.csv", "empty"], id="empty"),
    pytest.param(HEAD, ["log.csv", "no rows"], id="no rows"),
    pytest.param("agent,state,nextstate,reward\n" + ROWS, ["next_state", "'nextstate'"], id="no next_state"),
    pytest.param(HEAD + ROWS + "a,1,2,much\n", ["line 6", "'reward'", "much"], id="reward is no number"),
    pytest.param(HEAD + ROWS + "a,1,,0\n", ["line 6", "'next_state'"], id="missing next state"),
    pytest.param(HEAD + ROWS + "c,1,2,0\n", ["'c'", "single row", '"drop"'], id="agent with one row"),
    pytest.param("agent,state,next_state,reward,done\na,1,2,0,ja\n", ["line 2", "'done'", "ja"],
                 id="done is neither yes nor no"),
])
def test_a_log(affpcl, content, says):
    if content is not None:
        affpcl.write("log.csv", content)
    affpcl.write("td.toml", LOG + METHOD + 'ratio = "counts"\n')
    affpcl.refuse("run", "td.toml", "--out", "out", says=says)


@pytest.mark.parametrize("line, says", [
    ("gamma = 1.0", ["gamma", "1"]),
    ("gamma = 1.5", ["problem.gamma", "1.5"]),
    ("states = 3", ["problem.states", "3"]),
    ('weights = "w.csv"', ["problem.weights", "problem.channels"]),
    ('features = "speed"', ["'speed'"]),
])
def test_a_key_of_a_log(affpcl, line, says):
    affpcl.write("log.csv", HEAD + ROWS)
    affpcl.write("td.toml", LOG + line + "\n" + METHOD + 'ratio = "counts"\n')
    affpcl.refuse("run", "td.toml", "--out", "out", says=says)


@pytest.mark.parametrize("options, says", [
    ("--out out", ['"exact"', '"counts"']),
    ("--out out --set method.affpcl.ratio=counts --set method.affpcl.objective=known", ['"known"', "problem.weights"]),
    ("--set problem.file= --set problem.order=random", ["problem.order"]),
])
def test_a_method_that_a_log_cannot_serve(affpcl, options, says):
    affpcl.write("log.csv", HEAD + ROWS)
    affpcl.write("td.toml", LOG + METHOD)
    affpcl.refuse("run", "td.toml", *options.split(), says=says)


def test_own_objectives_in_the_mean_need_one_environment(affpcl):
    affpcl.refuse("run", "good.toml", "--set", "method.affpcl.aggregate=own", says=['ratio = "none"', "biased"])


@pytest.mark.parametrize("kind, setting, says", [
    ("td", "problem.gamma=1.0", ["gamma = 1"]),
    ("td", "problem.states=3", ["no unique solution"]),
    ("td", "method.affpcl.ratio=policy", ['"policy"', "act"]),
    ("sarsa", "problem.gamma=1.0", ["gamma"]),
    ("sarsa", "problem.temperature=0.0", ["problem.temperature", "0"]),
    ("sarsa", "problem.features=tabular problem.dim=7", ["dim = 7", "have 50"]),
    ("sarsa", "method.affpcl.correction=client", ["client"]),
])
def test_temporal_differences(affpcl, kind, setting, says):
    affpcl.write("td.toml", f'[problem]\nkind = "{kind}"\n' + METHOD)
    settings = [word for one in setting.split() for word in ("--set", one)]
    affpcl.refuse("run", "td.toml", "--out", "out", *settings, says=says)


# --- places to write to ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("options, says", [
    ("--out old", ["old", "--force"]),
    ("--out file", ["file"]),
    ("--out file --force", ["file"]),
    ("--out folder --force", ["folder"]),
    ("--out file/out", ["file/out"]),
    ("--out /proc/affpcl/out", ["/proc/affpcl/out"]),
    ("--out out --trace file/t.csv", ["file/t.csv"]),
    ("--out out --trace nowhere/t.csv", ["nowhere/t.csv"]),
    ("--out out --trace /proc/t.csv", ["/proc/t.csv"]),
    ("--out out --trace folder", ["folder"]),
    ("--trace t.csv --set run.steps=100000000", ["rows"]),
    # Found out only when the run begins; the folders on the way are not left behind.
    ("--out new/deep/out --set problem.agents=3000000000", ["problem.agents"]),
])
def test_a_place_to_write_to(affpcl, options, says):
    affpcl.write("file", "precious")
    affpcl.write("folder/thesis.tex", "years")
    affpcl.write("old/summary.json", "{}")
    affpcl.refuse("run", "good.toml", *options.split(), says=says)
