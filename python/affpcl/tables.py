"""Columns by name: what results are made of."""
from __future__ import annotations

import html
import os
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas
    import polars

Array = npt.NDArray[Any]


def text(value: Any) -> str:
    """A cell as people read it."""
    value = value.item() if hasattr(value, "item") else value
    return f"{value:.4g}" if isinstance(value, float) else str(value)


class Table(dict[str, Array]):
    """A dict of columns, arrays of one length.

    >>> from affpcl import Table
    >>> table = Table({"method": ["affpcl", "ditto"], "mse": [0.1, 0.2]})
    >>> table.where(method="ditto")["mse"].tolist()
    [0.2]
    """

    def __init__(self, columns: Mapping[str, Any] = {}) -> None:
        super().__init__((name, np.asarray(values)) for name, values in columns.items())

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(next(iter(self.values()))) if self else 0

    def where(self, **equal: Any) -> Table:
        """The rows whose columns have these values: table.where(method="affpcl", agent=-1)."""
        return self.at(equal)

    def at(self, equal: Mapping[str, Any]) -> Table:
        """The same, for names that are no Python words: table.at({"problem.delta_env": 0.3})."""
        keep = np.ones(self.rows, dtype=bool)
        for name, value in equal.items():
            keep &= self[name] == value
        return Table({name: values[keep] for name, values in self.items()})

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas frame."""
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> polars.DataFrame:
        """A polars frame."""
        import polars

        return polars.DataFrame(dict(self))

    def to_arrow(self) -> Any:
        """A pyarrow.Table."""
        import pyarrow

        return pyarrow.table(dict(self))

    def write_parquet(self, path: str | os.PathLike[str]) -> None:
        """A Parquet file, by pyarrow."""
        import pyarrow.parquet

        pyarrow.parquet.write_table(self.to_arrow(), os.fspath(path))

    def __str__(self) -> str:
        """The first rows as text: print(table)."""
        most = 20
        cells = [[name, *(text(value) for value in values[:most])] for name, values in self.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = ["  ".join(column[r].rjust(width) for column, width in zip(cells, widths))
                 for r in range(1 + min(self.rows, most))]
        return "\n".join(lines + ([f"... {self.rows - most} more rows"] if self.rows > most else []))

    def _repr_html_(self, most: int = 10) -> str:
        """The first rows, for notebooks."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self)
        rows = [[html.escape(text(values[r])) for values in self.values()]
                for r in range(min(self.rows, most))]
        body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
        more = f"<tr><td colspan={len(self)}>… {self.rows} rows</td></tr>" if self.rows > most else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}{more}</tbody></table>"

    def __repr__(self) -> str:
        return f"Table({self.rows} rows: {', '.join(self)})"
