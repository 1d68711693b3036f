"""`affpcl --help`, `--version` and `list`: what they print."""
import pytest

VERBS = ["affinity", "bench", "federate", "fit", "inspect", "list", "predict", "report", "reproduce", "run"]


def test_help_names_every_verb(affpcl):
    done = affpcl.succeed("--help")
    assert done.stderr == ""
    shown = [line.split()[0] for line in done.stdout.split("Subcommands:")[-1].splitlines()
             if line.startswith("  ") and line.split()]
    assert sorted(word for word in shown if word.isalpha() and word.islower()) == VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_a_verb_has_an_example(affpcl, verb):
    printed = affpcl.succeed(verb, "--help").stdout
    assert "Example" in printed
    assert f"affpcl {verb}" in printed


def test_version(affpcl):
    assert affpcl.succeed("--version").stdout[:1].isdigit()


@pytest.fixture(scope="module")
def keys(shared_affpcl):
    """What `list --keys` prints."""
    return shared_affpcl.succeed("list", "--keys").stdout


@pytest.mark.parametrize("key", ["gaussian", "tabular", "affpcl", "independent", "fedavg", "exact", "delta_env",
                                 "step_size", "curve_agents", "period"])
def test_list_names_keys_of_the_spec(keys, key):
    assert key in keys


def test_list_json_has_defaults(affpcl):
    assert {key["name"]: key["default"] for key in affpcl.json("list")["run"]}["steps"] == 60
