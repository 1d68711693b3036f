"""Models of files: what `affpcl fit` does, in Python."""
from __future__ import annotations

import functools
import json
import os
import sys
from typing import Any, Sequence, Union

from affpcl import _core
from affpcl.tables import Table

Paths = Union[str, "os.PathLike[str]", Sequence[Union[str, "os.PathLike[str]"]]]


def gains_table(result: _core.FitResult) -> Table:
    """A row per agent: rows, losses on rows not learnt from, the gain against learning alone, verdict and model given."""
    agents = json.loads(result.json())["agents"]
    columns: dict[str, Any] = {name: [a[name] for a in agents] for name in ("agent", "rows", "given")}
    if result.scored:
        nan = float("nan")
        for loss in ("given", "personalised", "alone", "pooled"):
            columns[f"loss_{loss}"] = [a["score"][loss] for a in agents]
        for part, name in (("mean", "gain"), ("lo", "gain_lo"), ("hi", "gain_hi")):
            columns[name] = [nan if a["gain"][part] is None else a["gain"][part] for a in agents]
        for name in ("p", "verdict", "why"):
            columns[name] = [a[name] for a in agents]
    return Table(columns)


class FileFit:
    """A fit of files: the model, and what learning together gained each agent."""

    def __init__(self, result: _core.FitResult) -> None:
        self._result = result
        self.model = result.model

    @property
    def notes(self) -> list[str]:
        return self._result.notes

    @functools.cached_property
    def gains(self) -> Table:
        return gains_table(self._result)

    def to_dict(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(self._result.json())
        return found


def path_list(paths: Paths) -> list[str]:
    return [os.fspath(paths)] if isinstance(paths, (str, os.PathLike)) else [os.fspath(p) for p in paths]


def fit(paths: Paths, **options: Any) -> FileFit:
    """One model per agent from files, as `affpcl fit` makes them.

    Options are those of the command line, by the same names: target, agent, features, exclude, missing, task, seed,
    threads, score, solver, method, method_values (instead of --set), channels, weights (a file), time, within or
    crossed (the column of a second factor); of reading: sep, decimal, encoding, na, skip, comment, categorical, numeric,
    levels. Parquet and Arrow files need pyarrow.
    """
    os.environ.setdefault("AFFPCL_PYTHON", sys.executable)
    chosen = _core.FitOptions()
    chosen.paths = path_list(paths)
    for name, value in options.items():
        if not hasattr(chosen, name):
            raise TypeError(f"fit has no option {name!r}")
        setattr(chosen, name, value)
    return FileFit(_core.fit_files(chosen))


def load_model(path: str | os.PathLike[str]) -> _core.Model:
    """A model that the command line or an estimator wrote: its file, or the folder."""
    return _core.Model.read(os.fspath(path))
