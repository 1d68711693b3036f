"""What `affpcl fit`, `predict`, `affinity` and `report` do, in Python: files, or tables in memory."""
from __future__ import annotations

import contextlib
import csv
import functools
import html
import io
import json
import os
import pathlib
import sys
import tempfile
from typing import Any, Callable, Iterator, Sequence, Union

import numpy as np

from affpcl import _core
from affpcl.frames import columns_of, data_table, is_blank, is_frame, values_of
from affpcl.tables import Table

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]
Progress = Union[bool, Callable[[float], None], None]
MODELS = ("given", "personalised", "alone", "pooled")
TD_OPTIONS = ("gamma", "state", "next_state", "reward", "done")


def gains_table(result: _core.FitResult) -> Table:
    """A row per agent: rows, losses on held-out rows, the gain over the independent model, verdict and chosen model."""
    agents = json.loads(result.json())["agents"]
    columns: dict[str, Any] = {name: [a[name] for a in agents] for name in ("agent", "rows", "given")}
    if result.scored:
        nan = float("nan")
        for model in MODELS:
            columns[f"loss_{model}"] = [nan if a["score"][model] is None else a["score"][model] for a in agents]
        for model in MODELS if agents and "brier" in agents[0] else ():
            columns[f"brier_{model}"] = [nan if a["brier"][model] is None else a["brier"][model] for a in agents]
        for part, name in (("mean", "gain"), ("lo", "gain_lo"), ("hi", "gain_hi")):
            columns[name] = [nan if a["gain"][part] is None else a["gain"][part] for a in agents]
        for name in ("p", "verdict", "why"):
            columns[name] = [a[name] for a in agents]
    return Table(columns)


def scores_table(result: _core.FitResult) -> Table:
    """A row per model: its scores over all held-out rows (mse, log_loss, accuracy, auc, brier, ...); empty without them."""
    score = json.loads(result.json())["score"]
    if score is None:
        return Table()
    nan = float("nan")
    measures = [name for name, of in score.items() if isinstance(of, dict) and set(of) == set(MODELS)]
    return Table({"model": list(MODELS), **{
        name: [nan if score[name][model] is None else score[name][model] for model in MODELS] for name in measures}})


class Fit:
    """What `affpcl.fit` returns: the model, and what learning together gained each agent.

    >>> import affpcl
    >>> rows = {"shop": ["a", "b"] * 20, "size": list(range(40)), "sales": [3.0 * r % 7 for r in range(40)]}
    >>> fitted = affpcl.fit(rows, target="sales", agent="shop")
    >>> fitted.gains["agent"].tolist()
    ['a', 'b']
    >>> fitted.predict({"shop": ["b"], "size": [3]})["prediction"].shape
    (1,)
    """

    def __init__(self, result: _core.FitResult) -> None:
        self._result = result
        self.model = result.model

    @property
    def notes(self) -> list[str]:
        """What one should know of the fit, a sentence each."""
        return self._result.notes

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        return self._result.headline

    @functools.cached_property
    def gains(self) -> Table:
        """A row per agent: losses on held-out rows, the gain over the independent model with its interval, the verdict."""
        return gains_table(self._result)

    @functools.cached_property
    def scores(self) -> Table:
        """A row per model: its scores over all held-out rows; "given" is the chosen one, "alone" the independent one."""
        return scores_table(self._result)

    def predict(self, data: Any) -> Table:
        """As affpcl.predict."""
        return predict(self.model, data)

    def to_dict(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(self._result.json())
        return found

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The folder that `affpcl fit --out` writes: model.json, summary.json and centre.json."""
        self._result.save(os.fspath(path), force)

    def report(self, path: str | os.PathLike[str]) -> None:
        """The page that `affpcl report` makes, as one HTML file."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(pathlib.Path(folder) / "fit")
            report(pathlib.Path(folder) / "fit", out=path)

    def __repr__(self) -> str:
        return f"<Fit of '{self.model.target}': {len(self.model.agents)} agents, {self.model.rows} rows>"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.headline)}</p>{gains_chart(self.gains)}{self.gains._repr_html_()}"


def gains_chart(gains: Table, width: int = 480, most: int = 20) -> str:
    """The largest and the smallest gains with their intervals, as SVG; empty where nothing was scored."""
    if "gain" not in gains:
        return ""
    order = np.argsort(-gains["gain"], kind="stable")
    if len(order) > most:
        order = np.concatenate([order[: most // 2], order[-(most // 2):]])
    lo, hi = (np.where(np.isnan(gains[k]), gains["gain"], gains[k])[order] for k in ("gain_lo", "gain_hi"))
    left, right = min(0.0, float(lo.min())), max(0.0, float(hi.max()))
    scale = (width - 130) / ((right - left) or 1)

    def x(value: float) -> float:
        return 120 + (value - left) * scale

    lines = [f'<line x1="{x(0):.1f}" x2="{x(0):.1f}" y1="0" y2="{16 * len(order)}" stroke="currentColor" opacity=".4"/>']
    for row, at in enumerate(order):
        y = 16 * row + 8
        lines += [
            f'<text x="112" y="{y + 4}" text-anchor="end" font-size="11" fill="currentColor">'
            f'{html.escape(str(gains["agent"][at])[:16])}</text>',
            f'<line x1="{x(lo[row]):.1f}" x2="{x(hi[row]):.1f}" y1="{y}" y2="{y}" stroke="currentColor"/>',
            f'<circle cx="{x(gains["gain"][at]):.1f}" cy="{y}" r="3" fill="currentColor"/>']
    return (f'<svg role="img" aria-label="gain of each agent with its interval" width="{width}" '
            f'height="{16 * len(order)}">{"".join(lines)}</svg>')


def path_list(paths: Paths) -> list[str]:
    return [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(p) for p in paths]


def chosen_options(options: dict[str, Any], caller: str) -> _core.FitOptions:
    """The engine's options with these values."""
    os.environ.setdefault("AFFPCL_PYTHON", sys.executable)  # reads Parquet for the engine
    chosen = _core.FitOptions()
    for name, value in options.items():
        if not hasattr(chosen, name):
            raise TypeError(f"{caller} has no option {name!r}")
        if name == "test":
            value = path_list(value)
        setattr(chosen, name, value)
    return chosen


def with_centre(chosen: _core.FitOptions, centre: Any) -> _core.FitOptions:
    """The same options for agents that join this centre; None: they join none."""
    if centre is not None:
        chosen.set_centre(centre_model(centre))
    return chosen


def take_log(options: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """What task="td" needs, out of the options."""
    if len(paths) != 1:
        raise ValueError("task='td' needs one file, the log of all agents")
    log = {name: options.pop(name) for name in (*TD_OPTIONS, "agent", "weights") if name in options}
    for name in ("features", "channels"):
        if name in options:
            log[name] = ",".join(options.pop(name))
    return {"file": paths[0], **log}


def progress_of(progress: Progress) -> Callable[[float], None] | None:
    if progress is not True:
        return progress or None

    def show(share: float) -> None:
        print(f"\r{share:4.0%}", end="\n" if share >= 1 else "", file=sys.stderr, flush=True)

    return show


@contextlib.contextmanager
def as_file(data: Any) -> Iterator[str]:
    """A table in memory as a CSV file, for as long as it is needed."""
    columns = columns_of(data)
    values = [["" if is_blank(v) else str(v) for v in values_of(column).tolist()] for column in columns.values()]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "table.csv"
        with open(path, "w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out)
            writer.writerow(columns)
            writer.writerows(zip(*values))
        yield str(path)


def centre_model(centre: Any) -> _core.Model:
    """The model of a centre: a path, a Model, or a Fit."""
    if isinstance(centre, Fit):
        return centre.model
    return centre if isinstance(centre, _core.Model) else load_model(centre)


def fit(data: Any, *, centre: Any = None, progress: Progress = None, **options: Any) -> Fit:
    """One model per agent, as `affpcl fit` makes them, from files or from a table in memory.

    data: a path, several, a pandas or polars frame, an Arrow table, or a dict of columns. Parquet files need pyarrow.
    centre: a centre.json (its path, a Model or a Fit) of a fit that these agents took no part in. Each then gets its own model
    from that centre and its own rows; the columns and the target are the centre's, and options that it has settled are refused.
    In gains and scores "pooled" is then the centre alone.
    progress: True shows the share of the work that is done; a function is called with it.
    Options are those of the command line, by the same names: target, agent, features, exclude, missing, task, family,
    row_weight, trials, offset, offset_scale, common, seed, threads, score, solver, estimate, method, method_values (instead of --set),
    repeats, level (coverage of the gains' intervals), privacy ("epsilon=4,delta=1e-5") with bounds ("y=0:100,x=-1:1"), folds (a column), test (rows to score models on: files or a table), channels, weights (a file or a table), time, within or crossed (the column of a second factor); of task="td" (a log of transitions): gamma, state, next_state, reward, done; of reading
    files: sep, decimal, encoding, na, skip, comment, categorical, numeric, levels.

    >>> import affpcl
    >>> rows = {"shop": ["a", "b", "c"] * 20, "colour": ["red", "blue"] * 30, "sales": [r % 7 + r % 3 for r in range(60)]}
    >>> affpcl.fit(rows, target="sales", agent="shop", family="gaussian")
    <Fit of 'sales': 3 agents, 60 rows>

    >>> shops = affpcl.fit(rows, target="sales", agent="shop", family="gaussian")
    >>> new = {"shop": ["d"] * 12, "colour": ["red", "blue"] * 6, "sales": [r % 7 for r in range(12)]}
    >>> affpcl.fit(new, centre=shops).model.agents
    ['d']
    """
    show = progress_of(progress)
    with contextlib.ExitStack() as files:
        for name in ("weights", "test"):  # the engine reads them from files
            if is_frame(options.get(name)):
                options[name] = files.enter_context(as_file(options[name]))
        if is_frame(data) and (options.get("task") == "td" or options.get("privacy")):
            data = files.enter_context(as_file(data))
        return fitted(data, centre, options, show)


def fitted(data: Any, centre: Any, options: dict[str, Any], show: Callable[[float], None] | None) -> Fit:
    if is_frame(data):
        return Fit(_core.fit_table(data_table(data), with_centre(chosen_options(options, "fit"), centre), show))
    paths = path_list(data)
    log = take_log(options, paths) if options.get("task") == "td" else None
    if log is not None:
        del options["task"]
    chosen = with_centre(chosen_options(options, "fit"), centre)
    chosen.paths = paths
    if log is not None:
        chosen.set_td(log)
    return Fit(_core.fit_files(chosen, show))


def predict(model: _core.Model, data: Any, level: float = 0.9) -> Table:
    """Predictions of new rows, from files or a table in memory, by a model of fit or load_model.

    Numbers: prediction, prediction_lo, prediction_hi (an interval of coverage `level`). Classes: prediction, probability and
    probability_<class>.

    >>> import affpcl
    >>> rows = {"site": ["a", "b"] * 10, "dose": list(range(20)), "y": [2.0 * r for r in range(20)]}
    >>> model = affpcl.fit(rows, target="y", agent="site").model
    >>> list(affpcl.predict(model, {"site": ["a"], "dose": [4]}))
    ['prediction', 'prediction_lo', 'prediction_hi']
    """
    if not is_frame(data):
        text = model.predict_files(path_list(data), level)
        at = text.find("prediction")  # behind the columns of the file, with the file's own separator
        lines = list(csv.DictReader(io.StringIO(text), delimiter=text[at - 1] if at > 0 else ","))
        names = [name for name in (lines[0] if lines else {}) if name.startswith(("prediction", "probability"))]
        return Table({name: [_number(line[name]) for line in lines] for name in names})
    found = model.predict_table(data_table(data), level)
    if not model.classes:
        return Table(dict(zip(("prediction", "prediction_lo", "prediction_hi"), found.T)))
    return Table({"prediction": np.array(model.classes)[found.argmax(axis=1)], "probability": found.max(axis=1),
                  **{f"probability_{name}": found[:, k] for k, name in enumerate(model.classes)}})


def _number(text: str) -> Any:
    try:
        return float(text.replace(",", ".") or "nan")  # a decimal comma
    except ValueError:
        return text


def load_model(path: str | os.PathLike[str]) -> _core.Model:
    """A model that the command line or an estimator wrote: its file, or the folder.

    >>> import affpcl, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"agent": ["a", "b"] * 10, "y": list(range(20))}
    ...     affpcl.fit(rows, target="y").save(folder + "/model")
    ...     affpcl.load_model(folder + "/model").agents
    ['a', 'b']
    """
    return _core.Model.read(os.fspath(path))


class Affinity:
    """What `affpcl.affinity` returns: how similar the agents of a table are.

    >>> import affpcl
    >>> rows = {"shop": ["a", "b", "c"] * 20, "size": [r % 11 for r in range(60)], "sales": [r % 7 + r % 3 for r in range(60)]}
    >>> found = affpcl.affinity(rows, target="sales", agent="shop")
    >>> found.agents.rows, len(found.to_dict()["agents"])
    (3, 3)
    """

    def __init__(self, files: list[tuple[str, str]]) -> None:
        self._files = dict(files)

    def to_dict(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(self._files["summary.json"])
        return found

    @functools.cached_property
    def agents(self) -> Table:
        """A row per agent: its distance from the centre, and the loss it should have learning together, of that alone."""
        lines = list(csv.DictReader(io.StringIO(self._files["affinity.csv"])))
        return Table({name: [_number(line[name]) if name != "agent" else line[name] for line in lines] for name in lines[0]})

    @functools.cached_property
    def matrix(self) -> Table:
        """Distances of agents in units of their standard error, neighbours side by side; empty with too many agents."""
        lines = list(csv.DictReader(io.StringIO(self._files.get("matrix.csv", ""))))
        return Table({name: [_number(line[name]) for line in lines] for name in (lines[0] if lines else {})})

    def _repr_html_(self) -> str:
        return self.agents._repr_html_()


def affinity(data: Any, *, centre: Any = None, pilot: float | None = None, **options: Any) -> Affinity:
    """Before training, from a share of every agent's rows: how similar the agents are and what each should gain.

    data and options are those of fit; pilot is the share of rows, at least 10 of each agent (default .2). With a centre (as of
    fit) it is what each agent should gain from joining that centre, by default from all rows, and nothing is sent for it.

    >>> import affpcl
    >>> rows = {"shop": ["a", "b", "c"] * 20, "size": [r % 11 for r in range(60)], "sales": [r % 7 + r % 3 for r in range(60)]}
    >>> affpcl.affinity(rows, target="sales", agent="shop").agents["agent"].tolist()
    ['a', 'b', 'c']

    >>> shops = affpcl.fit(rows, target="sales", agent="shop", family="gaussian")
    >>> new = {"shop": ["d"] * 12, "size": list(range(12)), "sales": [r % 7 for r in range(12)]}
    >>> expected = affpcl.affinity(new, centre=shops).agents
    >>> bool(expected["predicted_gain_lo"][0] <= expected["predicted_gain"][0] <= expected["predicted_gain_hi"][0])
    True
    """
    chosen = with_centre(chosen_options(options, "affinity"), centre)
    if pilot is None:
        pilot = 0.2 if centre is None else 1.0
    if is_frame(data):
        return Affinity(_core.affinity_table(data_table(data), chosen, pilot))
    chosen.paths = path_list(data)
    return Affinity(_core.affinity_files(chosen, pilot))


def report(folders: Paths, *, out: str | os.PathLike[str] | None = None) -> str:
    """The page of a result folder, or of two compared, as `affpcl report` makes it; out: a file for it.

    >>> import affpcl, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     affpcl.fit({"agent": ["a", "b"] * 10, "y": list(range(20))}, target="y").save(folder + "/model")
    ...     affpcl.report(folder + "/model").startswith("<!")
    True
    """
    page = _core.report_page(path_list(folders))
    if out is not None:
        pathlib.Path(out).write_text(page, encoding="utf-8")
    return page
