"""What `fit` prints of its agents, and what `inspect` prints and exports in units of the columns."""
import csv
import random
import re

import pytest

NAMES = [f"site{i:02}" for i in range(20)]


@pytest.fixture(scope="module")
def fitted(shared_affpcl):
    """20 agents with slopes of their own; site00 has the most rows, site19 the fewest."""
    rng = random.Random(4)
    lines = ["site,dose,y"]
    for i, name in enumerate(NAMES):
        slope = 3 + rng.gauss(0, 1)
        for _ in range(40 - i):
            dose = rng.gauss(100, 25)
            lines.append(f"{name},{dose},{5 + slope * dose + rng.gauss(0, 10)}")
    shared_affpcl.write("t.csv", "\n".join(lines) + "\n")
    shared_affpcl.succeed("fit", "t.csv", "--target", "y", "--agent", "site", "--out", "m")
    return shared_affpcl


def agents_of(text):
    return re.findall(r"^  (site\d\d) ", text, re.M)


def shown(fitted, *options):
    return fitted.succeed("fit", "t.csv", "--target", "y", "--agent", "site", *options).stdout


def gains_of(fitted):
    return {a["agent"]: a["gain"]["mean"] for a in fitted.json("fit", "t.csv", "--target", "y", "--agent", "site")["agents"]}


def test_six_agents_of_each_end(fitted):
    text, gains = shown(fitted), gains_of(fitted)
    order = sorted(NAMES, key=lambda name: -gains[name])
    assert agents_of(text) == order[:6] + order[-6:]
    assert "… 8 more" in text


@pytest.mark.parametrize("sort, key", [("gain", lambda gains, name: -gains[name]), ("least-gain", lambda gains, name: gains[name]),
                                       ("rows", lambda gains, name: name), ("name", lambda gains, name: name)])
def test_order(fitted, sort, key):
    gains = gains_of(fitted)
    assert agents_of(shown(fitted, "--all", "--sort", sort)) == sorted(NAMES, key=lambda name: key(gains, name))
    assert agents_of(shown(fitted, "--top", "3", "--sort", sort)) == sorted(NAMES, key=lambda name: key(gains, name))[:3]


def test_top_of_all_has_no_more(fitted):
    assert "more" not in shown(fitted, "--top", "20").split("gain:")[0]


def test_scores_with_rmse_and_per_cent(fitted):
    text = shown(fitted)
    mse = [float(v) for v in re.search(r"mean squared error +(\S+) +(\S+) +(\S+)", text).groups()]
    rmse = [float(v) for v in re.search(r"RMSE +(\S+) +(\S+) +(\S+)", text).groups()]
    assert rmse == pytest.approx([v ** 0.5 for v in mse], rel=1e-3)
    less, more = re.search(r"beside independent +(\S+) % +(\S+) %", text).groups()
    assert [float(less), float(more)] == pytest.approx([100 * (mse[0] / mse[1] - 1), 100 * (mse[2] / mse[1] - 1)], abs=0.1, rel=1e-3)


def test_all_and_top_exclude_each_other(fitted):
    fitted.refuse("fit", "t.csv", "--target", "y", "--agent", "site", "--all", "--top", "3", says=("--all", "--top"))
    fitted.refuse("fit", "t.csv", "--target", "y", "--agent", "site", "--sort", "age", says=("--sort", "least-gain"))


# --- inspect ---------------------------------------------------------------------------------------------------------

def rows_of(fitted, *options):
    fitted.succeed("inspect", "m", "--csv", "c.csv", "--force", *options)
    with open(fitted.folder / "c.csv", newline="") as file:
        return list(csv.DictReader(file))


def test_units_and_standardised(fitted):
    """value per unit = standardised value / standard deviation; the intercept is the prediction where columns are 0."""
    units, plain = rows_of(fitted), rows_of(fitted, "--standardised")
    assert len(units) == len(plain) == 2 * 21
    assert [row["agent"] for row in units[:3]] == ["", "", NAMES[0]]
    dose = [float(line.split(",")[1]) for line in (fitted.folder / "t.csv").read_text().splitlines()[1:]]
    mean = sum(dose) / len(dose)
    sd = (sum((v - mean) ** 2 for v in dose) / len(dose)) ** 0.5
    for intercept, slope, i0, s0 in zip(units[::2], units[1::2], plain[::2], plain[1::2]):
        for part in ("value", "std_error"):
            assert float(slope[part]) == pytest.approx(float(s0[part]) / sd, rel=1e-9)
        assert float(intercept["value"]) == pytest.approx(float(i0["value"]) - float(s0["value"]) * mean / sd, rel=1e-9)
        assert float(intercept["lo"]) < float(intercept["value"]) < float(intercept["hi"])
    assert 2 < float(units[1]["value"]) < 4 and 0.5 < float(units[1]["spread"]) < 2


def test_the_intercept_is_a_prediction_and_so_is_its_error(fitted):
    """At dose = 0 the coefficients predict what `predict` predicts; the standard error comes from their covariance."""
    fitted.write("zero.csv", "site,dose\nsite03,0\n")
    fitted.succeed("predict", "m", "zero.csv", "--out", "p.csv", "--force")
    with open(fitted.folder / "p.csv", newline="") as file:
        predicted = float(next(csv.DictReader(file))["prediction"])
    row = next(row for row in rows_of(fitted, "--agent", "site03") if row["coefficient"] == "intercept")
    assert float(row["value"]) == pytest.approx(predicted, rel=1e-9)
    standardised = next(row for row in rows_of(fitted, "--agent", "site03", "--standardised") if row["coefficient"] == "intercept")
    assert float(row["std_error"]) > 2 * float(standardised["std_error"])  # 0 is four standard deviations from the rows


def test_inspect_shows_units_unless_asked(fitted):
    per_unit = fitted.succeed("inspect", "m").stdout
    slope = rows_of(fitted)[1]["value"]
    assert f"{float(slope):.4g}" in per_unit and "--standardised" in per_unit
    assert f"{float(slope):.4g}" not in fitted.succeed("inspect", "m", "--standardised").stdout


def test_csv_is_not_replaced(fitted):
    fitted.succeed("inspect", "m", "--csv", "once.csv")
    fitted.refuse("inspect", "m", "--csv", "once.csv", says=("once.csv", "--force"))


def test_what_does_not_vary_is_said_once(shared_affpcl):
    """Three classes, each with a model: the sentence names the classes, or none where all say the same."""
    rng = random.Random(1)
    lines = ["agent,z,kind"]
    for i in range(40):
        u = rng.gauss(0, 1.5)
        for _ in range(20):
            z = rng.gauss(0, 1)
            lines.append(f"a{i},{z},{max('abc', key=lambda c: rng.gauss(0, 1) + (u + z if c == 'a' else 0))}")
    shared_affpcl.write("classes.csv", "\n".join(lines) + "\n")
    shared_affpcl.succeed("fit", "classes.csv", "--target", "kind", "--agent", "agent", "--out", "classes", "--no-score")
    said = re.findall(r"^no variation between agents in .*", shared_affpcl.succeed("inspect", "classes").stdout, re.M)
    sentences = [line.split(" (")[0] for line in said]
    assert len(sentences) == len(set(sentences))
    channels = shared_affpcl.json("inspect", "classes")["channels"]
    assert bool(said) == any(c["singular"] and 0 in c["spread_sd"] for c in channels)


def test_benchmrk_means_benchmark(shared_affpcl):
    shared_affpcl.refuse("reproduce", "benchmrk", says=("did you mean 'benchmark'",))
    shared_affpcl.refuse("reproduce", "fig-comparisn", says=("fig-comparison",))
