"""Held-out rows by prediction in summary.json: predicted against found, residuals, and the confusion matrix of classes."""
import math
import pathlib

import pytest

from _table import with_classes

SHOPS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "shops.csv"
ROWS = 552


def shops(affpcl, *more):
    return affpcl.json("fit", SHOPS, "--target", "sales", "--agent", "shop", *more)["score"]


def test_every_row_counts_once_a_repeat(affpcl):
    score = shops(affpcl, "--repeats", 3)
    assert sum(score["predicted"]["rows"]) == sum(score["residuals"]["rows"]) == 3 * ROWS
    assert len(score["predicted"]["rows"]) == score["predicted"]["cells"] ** 2


def test_residuals_have_the_mean_square_of_the_score(affpcl):
    score = shops(affpcl)
    bins = score["residuals"]
    middles = [bins["from"] + (k + 0.5) * bins["width"] for k in range(len(bins["rows"]))]
    rows = sum(bins["rows"])
    squares = sum(n * (m * m + bins["width"] ** 2 / 12) for n, m in zip(bins["rows"], middles)) / rows
    assert squares == pytest.approx(score["mse"]["given"], rel=0.05)  # the outermost bins hold what is beyond them
    assert bins["rows"][0] <= rows / 100 and bins["rows"][-1] <= rows / 100
    assert 20 <= len(bins["rows"]) <= 80


def test_predictions_follow_what_was_found(affpcl):
    grid = shops(affpcl)["predicted"]
    cells = grid["cells"]
    step = (grid["hi"] - grid["lo"]) / cells
    middle = [grid["lo"] + (k + 0.5) * step for k in range(cells)]
    rows = [(n, middle[k // cells], middle[k % cells]) for k, n in enumerate(grid["rows"]) if n]
    total = sum(n for n, _, _ in rows)
    mean = [sum(n * (p, f)[k] for n, p, f in rows) / total for k in (0, 1)]
    assert mean[0] == pytest.approx(mean[1], abs=step)
    moment = {(a, b): sum(n * ((p, f)[a] - mean[a]) * ((p, f)[b] - mean[b]) for n, p, f in rows) / total
              for a, b in ((0, 0), (1, 1), (0, 1))}
    # R^2 is .72, so the correlation is about .85, and predictions vary less than what is found.
    assert 0.8 < moment[0, 1] / math.sqrt(moment[0, 0] * moment[1, 1]) < 0.9
    assert moment[0, 0] < moment[1, 1]


def test_counts_do_not_depend_on_threads(affpcl):
    one, two = (shops(affpcl, "--threads", n) for n in (1, 2))
    assert one["predicted"] == two["predicted"] and one["residuals"] == two["residuals"]


def test_counts_of_a_family_are_of_its_means(affpcl):
    rows = [(site, x, (7 * x + 3 * k) % 5 + x) for k, site in enumerate("abcde") for x in range(1, 9)]
    affpcl.write("counts.csv", "site,x,y\n" + "".join(f"{s},{x},{y}\n" for s, x, y in rows))
    score = affpcl.json("fit", "counts.csv", "--target", "y", "--agent", "site", "--family", "poisson")["score"]
    assert sum(score["residuals"]["rows"]) == len(rows) * score["repeats"]
    assert score["measure"] == "deviance"


def test_the_confusion_matrix_has_the_accuracy(affpcl):
    affpcl.write("classes.csv", with_classes())
    score = affpcl.json("fit", "classes.csv", "--target", "y")["score"]
    table = score["confusion"]
    rows = sum(map(sum, table))
    assert sum(table[k][k] for k in range(len(table))) / rows == pytest.approx(score["accuracy"]["given"], rel=1e-12)
    assert "predicted" not in score
