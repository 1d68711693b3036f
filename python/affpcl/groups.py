"""The groups (agents) of rows: beside X, or in one of its columns."""
from __future__ import annotations

from typing import Any

import numpy as np

from affpcl import _core
from affpcl.tables import Array

NO_GROUPS = "all"

WITHOUT_GROUPS = (
    "the model was fitted with groups, and predict got none: pass groups=... (in scikit-learn's tools by metadata routing, "
    "sklearn.set_config(enable_metadata_routing=True)), or fit with group_column=..., the column of X that holds them; "
    "without_groups='centre' predicts all rows by the central model")


def name_of(column: Any, otherwise: str) -> str:
    """The name of a pandas or polars column."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else otherwise


def group_codes(groups: Any, rows: int, what: str = "groups") -> tuple[_core.Groups, dict[str, Any]]:
    """The groups as the engine takes them, and what each name stands for."""
    codes, label_of = number_groups(groups, rows, what)
    return _core.Groups(codes, list(label_of)), label_of


def number_groups(groups: Any, rows: int, what: str = "groups") -> tuple[Array, dict[str, Any]]:
    """Each row's group as a number: the place of its name among the names, which stand for labels."""
    if groups is None:
        return np.zeros(rows, dtype=np.int32), {NO_GROUPS: None}
    labels = np.asarray(groups)
    if labels.ndim != 1:
        raise ValueError(f"{what} has {labels.ndim} axes, not 1")
    if len(labels) != rows:
        raise ValueError(f"X has {rows} rows, but {what} has {len(labels)}")
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and (labels == np.floor(labels)).all():
        labels = labels.astype(np.int64)  # codes that came in an array of numbers
    if labels.dtype.kind in "iubUS":
        unique, inverse = np.unique(labels, return_inverse=True)
        names = [str(u) for u in unique.tolist()]
        return inverse.astype(np.int32), dict(zip(names, unique.tolist()))
    code_of: dict[str, int] = {}
    label_of: dict[str, Any] = {}
    codes = np.empty(rows, dtype=np.int32)
    for row, label in enumerate(labels.tolist()):
        if label is None or label != label or label == "":
            raise ValueError(f"{what}[{row}] = {label!r} names no {what[:-1]}")
        name = str(label)
        codes[row] = code_of.setdefault(name, len(code_of))
        label_of.setdefault(name, label)
    return codes, label_of


def split_groups(X: Any, column: str | int | None, groups: Any) -> tuple[Any, Any]:
    """X without the column of groups, and the groups: those given, or that column."""
    if column is None:
        return X, groups
    if groups is not None:
        raise ValueError(f"the groups are in column {column!r} of X (group_column); groups= says them twice")
    if hasattr(X, "columns"):  # pandas, polars
        names = list(X.columns)
        if column not in names:
            raise ValueError(f"X has no column {column!r}, which group_column names; it has {', '.join(map(str, names))}")
        return X.drop(columns=[column]) if hasattr(X, "iloc") else X.drop(column), X[column]
    array = np.asarray(X)
    if not isinstance(column, (int, np.integer)):
        raise ValueError(f"group_column={column!r} names a column, and X is an array: give the column's number")
    if array.ndim != 2 or not -array.shape[1] <= column < array.shape[1]:
        raise ValueError(f"X of shape {array.shape} has no column {column}, which group_column names")
    return np.delete(array, column, axis=1), array[:, column]
