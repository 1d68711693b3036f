"""Personalized(LightGBM) beside LightGBM with the agent as a category (tuned) and PersonalizedRegressor, on held-out rows.

    python bench/personalized.py co2 7            # Rscript writes co2 (datasets) and milk (nlme)
    python bench/personalized.py wisdm 5 --data ../shared/data/wisdm/wisdm.csv
    python bench/personalized.py beijing 5 --data ../shared/data/beijing_air/beijing_air.csv

Splits are 60/40 within agents. LightGBM is tuned by 3-fold cross-validation on the training rows; the base has the same
parameters. R^2, of wisdm log loss. Needs lightgbm, pandas and the affpcl package.
"""
import argparse
import pathlib
import subprocess
import tempfile

import lightgbm
import numpy as np
import pandas
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import GridSearchCV, KFold

from affpcl import Personalized, PersonalizedRegressor

FROM_R = {"co2": ("CO2[,c('Plant','Type','Treatment','conc','uptake')]", "uptake", "Plant"),
          "milk": ("as.data.frame(nlme::Milk)[,c('Cow','Time','Diet','protein')]", "protein", "Cow")}
FROM_FILE = {"wisdm": ("label", "agent"), "beijing": ("PM2.5", "agent")}
SAMPLE = 12_000  # rows of beijing


def read(name, path):
    """Columns of numbers, targets and agents."""
    if name in FROM_R:
        expression, target, agent = FROM_R[name]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "rows.csv"
            subprocess.run(["Rscript", "-e", f"write.csv({expression}, '{path}', row.names=FALSE)"], check=True)
            rows = pandas.read_csv(path)
    else:
        target, agent = FROM_FILE[name]
        rows = pandas.read_csv(path)
        if name == "beijing":
            rows = rows.dropna().sample(SAMPLE, random_state=0).reset_index(drop=True)
    X = rows.drop(columns=[target, agent])
    X = X.apply(pandas.to_numeric, errors="coerce").fillna(0) if name == "wisdm" else (
        pandas.get_dummies(X, drop_first=True, dtype=float))
    return X, rows[target].to_numpy(), rows[agent].astype(str).to_numpy()


def tuned(name, X, y):
    """LightGBM's best parameters on these rows, fitted."""
    if name == "wisdm":
        model = lightgbm.LGBMClassifier(verbose=-1, n_jobs=1, learning_rate=0.06, num_leaves=15, colsample_bytree=0.5,
                                        min_child_samples=10)
        grid = {"n_estimators": [80, 120, 180]}
    elif name == "beijing":
        model = lightgbm.LGBMRegressor(verbose=-1, n_jobs=1, learning_rate=0.05)
        grid = {"num_leaves": [31, 63], "n_estimators": [200, 400]}
    else:
        model = lightgbm.LGBMRegressor(verbose=-1, n_jobs=1)
        grid = {"num_leaves": [4, 8, 16], "n_estimators": [50, 100, 200], "min_child_samples": [5, 10, 20]}
    scoring = "neg_log_loss" if name == "wisdm" else "r2"
    return GridSearchCV(model, grid, cv=KFold(3, shuffle=True, random_state=0), scoring=scoring).fit(X, y).best_estimator_


def split(agents, seed):
    rng = np.random.default_rng(seed)
    learn = np.zeros(len(agents), bool)
    for agent in np.unique(agents):
        rows = np.flatnonzero(agents == agent)
        learn[rng.permutation(rows)[: round(0.6 * len(rows))]] = True
    return learn


def scores(name, X, y, agents, seed):
    """LightGBM, PersonalizedRegressor, Personalized(LightGBM)."""
    learn = split(agents, seed)
    with_agent = X.assign(agent=pandas.Categorical(agents))
    boosted = tuned(name, with_agent[learn], y[learn])
    columns = [] if name == "wisdm" else None
    both = Personalized(boosted, group_column="agent", group_in_base=True, columns=columns, score_gains=False)
    both.fit(with_agent[learn], y[learn])
    held_out = with_agent[~learn]
    if name == "wisdm":
        return [log_loss(y[~learn], boosted.predict_proba(held_out)), np.nan, log_loss(y[~learn], both.predict_proba(held_out))]
    linear = PersonalizedRegressor(group_column="agent", score_gains=False).fit(with_agent[learn], y[learn])
    return [r2_score(y[~learn], model.predict(held_out)) for model in (boosted, linear, both)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*FROM_R, *FROM_FILE])
    parser.add_argument("splits", type=int)
    parser.add_argument("--data", help="the file of wisdm or beijing")
    options = parser.parse_args()
    found = np.array([scores(options.table, *read(options.table, options.data), seed) for seed in range(options.splits)])
    difference = found[:, 2] - found[:, 0]
    half = 1.96 * difference.std(ddof=1) / np.sqrt(options.splits)
    print("LightGBM {:.4f}  PersonalizedRegressor {:.4f}  Personalized(LightGBM) {:.4f}".format(*found.mean(axis=0)))
    print(f"Personalized(LightGBM) - LightGBM: {difference.mean():.4f} +- {half:.4f} over {options.splits} splits")


if __name__ == "__main__":
    main()
