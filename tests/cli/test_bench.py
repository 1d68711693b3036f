"""`affpcl bench`: what it prints, not how fast it is."""
import pytest

CASES = ("--case", "20,5", "--case", "70,3,linear", "--seconds", 0.01)


@pytest.fixture(scope="module")
def bench(shared_affpcl):
    return shared_affpcl.json("bench", *CASES)


def test_every_case_is_timed(bench):
    assert [(r["agents"], r["ratio"]) for r in bench["rounds"]] == [(20, "exact"), (70, "linear")]


def test_the_fastest_round_takes_no_longer_than_the_median(bench):
    assert all(0 < r["least_seconds"] <= r["seconds"] for r in bench["rounds"])


def test_the_share_is_of_the_cost_model_where_there_is_one(bench):
    exact, linear = bench["rounds"]
    limits, n, d = bench["limits"], 20, 5
    ratios = n**2 * (4 * d / limits["fma_f64"] + 1 / limits["exp_f64"])
    samples = n * (2 * d**2 / limits["fma_f64"] + d / limits["normals"])
    assert abs(exact["share_of_limit"] * exact["least_seconds"] / (ratios + samples) - 1) < 1e-9
    assert linear["share_of_limit"] is None


def test_a_table_and_the_limits_are_printed(affpcl):
    lines = affpcl.succeed("bench", *CASES).stdout.splitlines()
    assert len(lines) == 4
    assert lines[-1].startswith("limits of one core")
