"""Tables as the benchmark's problem `rows` reads them: numbers with mean 0 and variance 1, a constant, and five folds.

usage: tables.py SCHOOL.csv WISDM.csv DIR      writes DIR/school/rows.csv and DIR/wisdm/rows.csv

`agent` stays, the target becomes `y` (wisdm: 1 for walking or jogging), empty cells become the column's mean, and columns
that do not vary are left out. Every agent's rows are dealt to the folds at random (seed 1).
"""
import pathlib
import sys

import numpy as np
import pandas as pd


def prepare(table, target, path):
    table = table.loc[table["agent"].map(table["agent"].value_counts()) >= 10].reset_index(drop=True)
    columns = table.drop(columns=["agent", target]).apply(pd.to_numeric, errors="coerce")
    columns = columns.fillna(columns.mean())
    columns = columns.loc[:, columns.std() > 1e-9]
    out = (columns - columns.mean()) / columns.std()
    out.insert(0, "agent", table["agent"])
    out.insert(1, "y", (table[target] - table[target].mean()) / table[target].std())
    out["one"] = 1.0
    draw = np.random.default_rng(1)
    out["fold"] = table.groupby("agent")["agent"].transform(lambda rows: draw.permutation(len(rows)) % 5)
    path.parent.mkdir(parents=True, exist_ok=True)
    out.to_csv(path, index=False, float_format="%.8g")


def main(school, wisdm, folder):
    folder = pathlib.Path(folder)
    prepare(pd.read_csv(school), "y", folder / "school" / "rows.csv")
    phones = pd.read_csv(wisdm)
    phones["y"] = phones.pop("label").isin(["Walking", "Jogging"]).astype(float)
    prepare(phones, "y", folder / "wisdm" / "rows.csv")


if __name__ == "__main__":
    main(*sys.argv[1:])
