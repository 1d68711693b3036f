"""The form of D, the level of intervals, and what an agent that was never seen is predicted by."""
import csv
import io
import json

import pytest


def table(agents=12, rows=6):
    """Slopes differ between agents; sums of digits stand in for noise."""
    lines = ["agent,x,y"]
    for i in range(agents):
        for r in range(rows):
            x = (7 * i + 3 * r) % 11 / 5 - 1
            lines.append(f"a{i:02},{x},{2 + (1 + i % 4 / 2) * x + ((5 * i + 7 * r) % 13 - 6) / 10}")
    return "\n".join(lines) + "\n"


@pytest.fixture
def fitted(affpcl):
    affpcl.write("t.csv", table())
    affpcl.succeed("fit", "t.csv", "--target", "y", "--out", "m", "--quiet", "--no-score")
    return affpcl


def predictions(affpcl, *options):
    done = affpcl.succeed("predict", "m", "t.csv", "--quiet", *options)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_forms_of_the_covariance_are_averaged_by_default(fitted):
    tried = fitted.read_json("m/model.json")["channels"][0]["tried"]
    assert [t["spread"] for t in tried] == ["scalar", "diagonal", "full"]
    assert abs(sum(t["weight"] for t in tried) - 1) < 1e-12


@pytest.mark.parametrize("form", ["scalar", "diagonal", "full"])
def test_one_form_is_used_where_it_is_named(fitted, form):
    fitted.succeed("fit", "t.csv", "--target", "y", "--out", "one", "--quiet", "--no-score", "--covariance", form)
    tried = fitted.read_json("one/model.json")["channels"][0]["tried"]
    assert [(t["spread"], t["weight"]) for t in tried] == [(form, 1)]


def test_a_form_that_does_not_exist_is_refused(fitted):
    fitted.refuse("fit", "t.csv", "--target", "y", "--covariance", "round", says=("--covariance", "diagonal"))


def test_a_stream_has_no_form(fitted):
    fitted.refuse("fit", "t.csv", "--target", "y", "--solver", "stream", "--covariance", "full", says=("--solver exact",))


def test_a_level_widens_intervals(fitted):
    def halves(*options):
        return [float(r["prediction_hi"]) - float(r["prediction"]) for r in predictions(fitted, *options)]
    for wide, usual in zip(halves("--level", ".95"), halves()):
        assert abs(wide / usual - 1.959964 / 1.644854) < 1e-5


def test_a_level_of_one_is_refused(fitted):
    fitted.refuse("predict", "m", "t.csv", "--level", "1", says=("--level",))


def test_the_centre_has_confidence_intervals(fitted):
    def channel(*options):
        return json.loads(fitted.succeed("inspect", "m", "--json", *options).stdout)["channels"][0]
    usual, wide = channel(), channel("--level", ".99")
    assert usual["centre_df"] == [11, 11]
    for j in range(2):
        half = usual["centre_hi"][j] - usual["centre"][j]
        assert abs(half / usual["centre_se"][j] - 1.795885) < 1e-5  # Student's t, 11 degrees of freedom
        assert wide["centre_lo"][j] < usual["centre_lo"][j]


def test_an_agent_never_seen_has_the_mean_of_centre_and_pooled(affpcl):
    """The target follows the column within agents, and not between them."""
    lines = ["agent,x,y"]
    for i in range(20):
        for r in range(5):
            lines.append(f"a{i:02},{(i - 10) / 5 + r - 2},{r - 2 + ((i * 7 + r * 5) % 11 - 5) / 10}")
    affpcl.write("t.csv", "\n".join(lines) + "\n")
    affpcl.succeed("fit", "t.csv", "--target", "y", "--out", "m", "--quiet", "--no-score")
    model = affpcl.read_json("m/model.json")
    channel, column = model["channels"][0], model["columns"][0]
    w = channel["pooled_weight"]
    assert w > 0.5
    affpcl.write("new.csv", "agent,x\nnobody,3\n")
    found = list(csv.DictReader(io.StringIO(affpcl.succeed("predict", "m", "new.csv", "--quiet").stdout)))
    z = (1, (3 - column["mean"][0]) / column["sd"][0])
    x = [(1 - w) * a + w * b for a, b in zip(channel["centre"]["x"], channel["pooled"])]
    assert abs(float(found[0]["prediction"]) - sum(a * b for a, b in zip(z, x))) < 1e-9
