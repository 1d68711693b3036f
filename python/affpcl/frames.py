"""Tables in memory: pandas, polars and Arrow frames, or dicts of columns, as the engine reads them."""
from __future__ import annotations

from typing import Any, Mapping

import numpy as np

from affpcl import _core
from affpcl.tables import Array

LARGEST_EXACT = 2**53  # whole numbers beyond it are names, not quantities


def is_frame(data: Any) -> bool:
    """Whether data is a table in memory, not a path."""
    return isinstance(data, Mapping) or hasattr(data, "column_names") or hasattr(data, "columns")


def columns_of(data: Any) -> dict[str, Any]:
    """The columns by name."""
    if isinstance(data, Mapping):
        return {str(name): column for name, column in data.items()}
    names = list(data.column_names if hasattr(data, "column_names") else data.columns)
    return {str(name): data[name] for name in names}


def values_of(column: Any) -> Array:
    """A column's values; missing ones are NaN or None."""
    if hasattr(column, "to_pylist"):  # Arrow
        numbers = str(column.type).startswith(("int", "uint", "float", "double", "timestamp", "date"))
        return np.asarray(column.to_numpy(zero_copy_only=False) if _is_array(column) else column.to_numpy()) if numbers else (
            np.array(column.to_pylist(), dtype=object))
    if hasattr(column, "to_numpy"):
        return np.asarray(column.to_numpy())
    return np.asarray(column)


def _is_array(column: Any) -> bool:
    return not hasattr(column, "chunks")


def texts_of(values: Any) -> _core.Groups:
    """Codes of texts in the order they appear; -1 where there is none."""
    codes = np.empty(len(values), dtype=np.int32)
    code_of: dict[str, int] = {}
    for row, value in enumerate(values):
        codes[row] = -1 if is_blank(value) else code_of.setdefault(str(value), len(code_of))
    return _core.Groups(codes, list(code_of))


def is_blank(value: Any) -> bool:
    """None, NaN, pandas.NA, NaT, or an empty text."""
    return value is None or str(value) in ("<NA>", "NaT", "nan", "")


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))


def add_column(table: _core.DataTable, name: str, column: Any) -> None:
    """Numbers stay numbers; truth values, dates and all else are texts, as a CSV file has them."""
    values = values_of(column)
    if values.ndim != 1:
        raise ValueError(f"column '{name}' has {values.ndim} axes, not 1")
    kind = values.dtype.kind
    if kind == "M":
        day = values.astype("datetime64[D]")
        whole = bool((np.isnat(values) | (day == values)).all())
        table.add_texts(name, texts_of(np.datetime_as_string(day if whole else values, unit="D" if whole else "s")))
        return
    if kind == "O":
        known = [v for v in values.tolist() if not is_blank(v)]
        if known and all(map(is_number, known)):
            values = np.array([float(v) if is_number(v) else np.nan for v in values.tolist()])
            kind = "f"
    if kind in "iu" and len(values) > 0 and max(abs(int(values.min())), abs(int(values.max()))) > LARGEST_EXACT:
        kind = "O"
    if kind in "fiu":
        table.add_numbers(name, values.astype(np.float64))
    else:
        table.add_texts(name, texts_of(values.tolist()))


def data_table(data: Any) -> _core.DataTable:
    """The engine's copy of a table in memory."""
    table = _core.DataTable()
    for name, column in columns_of(data).items():
        add_column(table, name, column)
    return table
