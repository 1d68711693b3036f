"""Each of the paper's figures from a result, as PDF and SVG."""
import json

import numpy as np
import pytest

import affpcl

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("agg")
from affpcl import plot  # noqa: E402
from affpcl.studies import colours_of, method_colours  # noqa: E402

SMALL = {"run.replicates": 2, "run.steps": 12, "run.tail": 4}


@pytest.mark.parametrize("study, panels", [("fig-comparison", 6), ("fig-rl", 4), ("fig-specific", 1), ("fig-heatmap", 4),
                                           ("fig-pareto", 1)])
def test_figures(study, panels, tmp_path):
    result = affpcl.reproduce(study, set=SMALL)
    figure = plot.figure(result)
    assert len([a for a in figure.axes if a.get_visible()]) == panels
    for ending, magic in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        path = tmp_path / f"figure.{ending}"
        plot.save(figure, path)
        assert path.read_bytes().startswith(magic) and path.stat().st_size > 5000
    assert "</text>" in path.read_text(encoding="utf-8"), "texts of an SVG are texts"
    plt.close(figure)


def test_curves_are_the_results():
    result = affpcl.reproduce("fig-specific", set=SMALL)
    axes = plot.specific(result).axes[0]
    lines = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert set(lines) == {f"{m}{a}" for m in ("affpcl", "independent") for a in ("", ", agent 0", ", agent 19")}
    curve = result.curves.where(method="affpcl", agent=19)
    assert np.array_equal(lines["affpcl, agent 19"], curve["mse_mean"])
    lowest, highest = axes.get_ylim()
    errors = result.curves["mse_mean"]
    assert errors.min() / 100 < lowest < errors.min() and highest < 100 * errors.max(), "an interval that reaches 0"
    plt.close("all")


def test_methods_have_the_colours_of_the_page(cli):
    kinds = {"independent": "independent", "affpcl": "affpcl", "guarded": "affpcl", "fedavg": "fedavg", "mine": "a_new_one"}
    colours = colours_of(kinds)
    known = method_colours()
    assert colours["independent"] == known["alone"][0]
    assert colours["affpcl"] == known["palette"][known["kinds"]["affpcl"]][0]
    assert colours["fedavg"] == known["palette"][known["kinds"]["fedavg"]][0]
    assert len(set(colours.values())) == 5
    many = colours_of({f"m{k}": "a_new_one" for k in range(40)})
    assert set(many.values()) == {light for light, _ in known["palette"]}
    every = {m["name"] for m in json.loads(cli("list", "--json"))["methods"]} - {"independent"}
    assert every <= set(known["kinds"]), "each kind of method has a colour of its own choice"


def test_a_folder_is_drawn(tmp_path):
    affpcl.reproduce("fig-heatmap", set=SMALL).save(tmp_path / "r")
    for ending in ("svg", "png"):
        plot.main([str(tmp_path / "r"), str(tmp_path / f"figure.{ending}")])
        assert (tmp_path / f"figure.{ending}").stat().st_size > 5000
    with pytest.raises(SystemExit, match="is not a result folder"):
        plot.main([str(tmp_path), str(tmp_path / "figure.pdf")])


def test_heatmap_holds_the_ratios():
    result = affpcl.reproduce("fig-heatmap", set=SMALL)
    ratio = plot.over(result, "affpcl", "independent")
    across, up, Z = plot.grid(ratio, "problem.delta_env", "problem.delta_obj", "ratio")
    assert Z.shape == (10, 10)
    at = result.summary.at({"problem.delta_env": across[3], "problem.delta_obj": up[5]})
    expected = at.where(method="affpcl")["mse_mean"] / at.where(method="independent")["mse_mean"]
    assert Z[5, 3] == expected[0]


def test_gains(rows):
    fitted = affpcl.PersonalizedRegressor().fit(rows.X, rows.y, groups=rows.groups)
    axes = plot.gains(fitted.gains_).axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()][-1] == fitted.groups_[fitted.gains_["gain"].argmax()]
    plt.close("all")
