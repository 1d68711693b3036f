"""The paper's figures from results (matplotlib). Every function gives a Figure; save(fig, "x.pdf") writes it."""
from __future__ import annotations

import functools
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, ParamSpec, Sequence

import numpy as np

from affpcl.studies import Result, colours_of, load_result
from affpcl.tables import Array, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["comparison", "figure", "gains", "heatmap", "pareto", "save", "specific"]

STYLE: dict[Any, Any] = {
    "font.size": 8, "axes.titlesize": 8, "axes.labelsize": 8, "legend.fontsize": 7,
    "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
    "lines.linewidth": 1.2, "pdf.fonttype": 42, "svg.fonttype": "none", "figure.dpi": 150,
}
PANEL = (2.2, 1.9)  # inches
P = ParamSpec("P")


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draws with the style above, whatever the user's is."""

    @functools.wraps(draw)
    def with_style(*args: P.args, **kwargs: P.kwargs) -> Figure:
        import matplotlib.pyplot as plt

        with plt.rc_context(STYLE):
            return draw(*args, **kwargs)

    return with_style


def panels(rows: int, columns: int, size: tuple[float, float] = PANEL, **more: Any) -> tuple[Figure, Any]:
    import matplotlib.pyplot as plt

    return plt.subplots(rows, columns, figsize=(size[0] * columns, size[1] * rows), squeeze=False,
                        layout="constrained", **more)


def settings(result: Result, table: Table) -> list[tuple[dict[str, Any], Table]]:
    """The rows of every setting of the sweep, in order."""
    keys = result.swept
    places = dict.fromkeys(zip(*(table[k].tolist() for k in keys))) if keys else {(): None}
    return [(at, table.at(at)) for at in (dict(zip(keys, place)) for place in places)]


def label_of(at: dict[str, Any]) -> str:
    """The keys that moved together have one value: delta_env = delta_obj = 0.3."""
    by_value: dict[Any, list[str]] = {}
    for key, value in at.items():
        by_value.setdefault(value, []).append(key.rpartition(".")[2])
    return ", ".join(" = ".join([*keys, f"{value:g}"]) for value, keys in by_value.items())


def draw_curves(axes: Axes, curves: Table, colours: dict[str, str], agents: Sequence[int]) -> None:
    for name, colour in colours.items():
        for agent, dash in zip(agents, ("-", "--", ":", "-.")):
            curve = curves.where(method=name, agent=agent)
            if curve.rows == 0:
                continue
            label = name if agent == -1 else f"{name}, agent {agent}"
            axes.plot(curve["step"], curve["mse_mean"], dash, color=colour, label=label)
            # On a logarithmic axis an interval that reaches 0 has no end: it is drawn down to a tenth of the mean.
            low = np.maximum(curve["mse_lo"], curve["mse_mean"] / 10)
            axes.fill_between(curve["step"], low, curve["mse_hi"], color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="step", yscale="log")


@styled
def comparison(result: Result, methods: Sequence[str] | None = None, agents: Sequence[int] = (-1,)) -> Figure:
    """Errors over steps, a panel per setting, bands of 90 % (fig:exp, fig:exp_rl; with agents: fig:specific).

    >>> import affpcl
    >>> from affpcl import plot
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}]})
    >>> len(plot.comparison(result).axes)
    1
    """
    parts = settings(result, result.curves)
    columns = min(4, len(parts))
    fig, axes = panels(-(-len(parts) // columns), columns, PANEL if columns > 1 else (2 * PANEL[0], 1.5 * PANEL[1]),
                       sharey=True)
    colours = {name: colour for name, colour in colours_of(result.kinds).items() if not methods or name in methods}
    for place, (at, curves) in zip(axes.flat, parts):
        draw_curves(place, curves, colours, agents)
        place.set_title(label_of(at))
    for unused in axes.flat[len(parts):]:
        unused.set_visible(False)
    for row in axes:
        row[0].set_ylabel("mean squared error")
    fig.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside right upper")
    return fig


def specific(result: Result) -> Figure:
    """The average beside single agents whose curves were kept (fig:specific).

    >>> import affpcl
    >>> from affpcl import plot
    >>> paper = affpcl.reproduce("fig-specific", set={"run.replicates": 2, "run.steps": 20})
    >>> len(plot.specific(paper).axes) > 0
    True
    """
    return comparison(result, agents=sorted(set(result.curves["agent"].tolist())))


def grid(table: Table, x: str, y: str, value: str) -> tuple[Array, Array, Array]:
    across, up = np.unique(table[x]), np.unique(table[y])
    Z = np.full((len(up), len(across)), np.nan)
    Z[np.searchsorted(up, table[y]), np.searchsorted(across, table[x])] = table[value]
    return across, up, Z


def over(result: Result, method: str, other: str) -> Table:
    """The ratio of two methods' errors, as a column `ratio` beside the setting's."""
    above, below = (result.summary.where(method=name) for name in (method, other))
    return Table({**{k: above[k] for k in result.swept}, "ratio": above["mse_mean"] / below["mse_mean"]})


@styled
def heatmap(result: Result, method: str = "affpcl", others: Sequence[str] = ("independent", "fedavg")) -> Figure:
    """How many times smaller the method's error is, over both kinds of heterogeneity (fig:all).

    >>> import affpcl
    >>> from affpcl import plot
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}, {"kind": "fedavg"}],
    ...                      "sweep": {"problem.delta_env": [0.0, 0.3], "problem.delta_obj": [0.0, 0.3]}})
    >>> len(plot.heatmap(result).axes) > 1
    True
    """
    x, y = result.swept[:2]
    fig, axes = panels(1, len(others), (1.3 * PANEL[0], 1.3 * PANEL[1]))
    for place, other in zip(axes.flat, others):
        across, up, Z = grid(over(result, method, other), x, y, "ratio")
        largest = np.nanmax(np.abs(np.log10(Z)))
        image = place.pcolormesh(across, up, np.log10(Z), cmap="RdBu_r", vmin=-largest, vmax=largest, shading="nearest")
        fig.colorbar(image, ax=place, label=f"log10 {method} / {other}")
        place.set_xlabel(x.rpartition(".")[2])
        place.set_ylabel(y.rpartition(".")[2])
    return fig


def smooth(Z: Array) -> Array:
    """Each value with a quarter of each neighbour, edges repeated."""
    for axis in (0, 1):
        P = np.pad(Z, [(1, 1) if a == axis else (0, 0) for a in (0, 1)], mode="edge")
        n = Z.shape[axis]
        parts = [np.take(P, range(s, s + n), axis=axis) for s in range(3)]
        Z = 0.25 * parts[0] + 0.5 * parts[1] + 0.25 * parts[2]
    return Z


@styled
def pareto(result: Result, method: str = "affpcl") -> Figure:
    """Contours of the error over 1/n and delta, lightly smoothed; on the diagonal both limit (fig:pareto).

    >>> import affpcl
    >>> from affpcl import plot
    >>> result = affpcl.run({"problem": {"kind": "gaussian"}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}],
    ...                      "sweep": {"problem.agents": [4, 8, 16], "problem.delta_env": [0.1, 0.2, 0.4]}})
    >>> len(plot.pareto(result).axes) > 0
    True
    """
    delta = next(key for key in result.swept if key.endswith("delta_env"))
    table = result.summary.where(method=method)
    table["inverse"] = 1 / table["problem.agents"]
    across, up, Z = grid(table, "inverse", delta, "mse_mean")
    fig, axes = panels(1, 1, (1.5 * PANEL[0], 1.5 * PANEL[1]))
    place = axes[0, 0]
    lines = place.contour(across, up, smooth(np.log10(Z)), levels=8, cmap="viridis")
    place.clabel(lines, fontsize=6, fmt=lambda v: f"{10**v:.2g}")
    low, high = max(across[0], up[0]), min(across[-1], up[-1])
    place.plot([low, high], [low, high], ":", color="grey")
    place.set(xscale="log", yscale="log", xlabel="1 / number of agents", ylabel="delta",
              title=f"error of {method}")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5]
    for axis in (place.xaxis, place.yaxis):
        axis.set_ticks(ticks, [f"{v:g}" for v in ticks])
        axis.set_ticks([], minor=True)
    return fig


def save(fig: Figure, path: str | os.PathLike[str]) -> None:
    """For print: PDF with fonts that can be edited, SVG with texts that are texts, or any other ending.

    >>> import affpcl, os, tempfile
    >>> from affpcl import plot
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plot.save(plot.figure(result), folder + "/curves.svg")
    ...     os.listdir(folder)
    ['curves.svg']
    """
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        fig.savefig(path)


FIGURES = {"fig-comparison": comparison, "fig-rl": comparison, "fig-specific": specific, "fig-heatmap": heatmap,
           "fig-pareto": pareto}


def figure(result: Result) -> Figure:
    """The figure of a study of the paper's, and of any other study its curves.

    >>> import affpcl
    >>> from affpcl import plot
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}]})
    >>> len(plot.figure(result).axes)
    1
    """
    return FIGURES.get(result.name, comparison)(result)


@styled
def gains(table: Table) -> Figure:
    """What learning together gained each group, with 90 % intervals: an estimator's gains_.

    >>> import affpcl
    >>> from affpcl import plot
    >>> rows = {"shop": ["a", "b", "c"] * 20, "size": [r % 11 for r in range(60)], "sales": [r % 7 + r % 3 for r in range(60)]}
    >>> len(plot.gains(affpcl.fit(rows, target="sales", agent="shop").gains).axes)
    1
    """
    order = np.argsort(table["gain"])
    fig, axes = panels(1, 1, (2 * PANEL[0], max(PANEL[1], 0.14 * len(order) + 0.6)))
    place = axes[0, 0]
    colours = {"gained": "#1769aa", "even": "#8b9098", "lost": "#b8480a"}  # those of the report page
    for at, row in enumerate(order):
        colour = colours[str(table["verdict"][row])]
        place.plot([table["gain_lo"][row], table["gain_hi"][row]], [at, at], color=colour)
        place.plot(table["gain"][row], at, "o", color=colour, markersize=3)
    place.axvline(0, color="grey", linestyle=":")
    place.set_yticks(range(len(order)), [str(a) for a in table["agent"][order]])
    place.set_xlabel("loss alone - loss given")
    return fig


def main(words: Sequence[str]) -> None:
    """python -m affpcl.plot FOLDER FILE: the figure of a result folder; the file's ending is its format."""
    if len(words) != 2:
        sys.exit("usage: python -m affpcl.plot FOLDER FILE.pdf|svg|png")
    import matplotlib

    matplotlib.use("agg")
    try:
        save(figure(load_result(words[0])), words[1])
    except (OSError, ValueError) as error:
        sys.exit(f"affpcl.plot: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
