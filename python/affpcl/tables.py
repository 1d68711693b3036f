"""Columns by name: what results are made of."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas
    import polars

Array = npt.NDArray[Any]


class Table(dict[str, Array]):
    """A dict of columns, arrays of one length."""

    def __init__(self, columns: Mapping[str, Any] = {}) -> None:
        super().__init__((name, np.asarray(values)) for name, values in columns.items())

    @property
    def rows(self) -> int:
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
        import pandas

        return pandas.DataFrame(dict(self))

    def to_polars(self) -> polars.DataFrame:
        import polars

        return polars.DataFrame(dict(self))

    def __repr__(self) -> str:
        return f"Table({self.rows} rows: {', '.join(self)})"
