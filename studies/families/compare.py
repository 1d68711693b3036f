#!/usr/bin/env python3
"""`affpcl fit --family` beside GPBoost, scikit-learn and lme4 on real tables: the same splits for all, paired differences.

usage: compare.py PATH_TO_AFFPCL DATA_FOLDER [--tables a,b] [--splits 20] [--new] [--json FILE]

Yes/no targets: a pooled logistic regression (scikit-learn, C = 1) and GPBoost with a random intercept and random slopes of all columns.
Counts: lme4's glmer with independent random slopes. Splits hold out 40 % of each agent's rows, or with --new 30 % of the agents. String
columns are one-hot encoded and all columns standardised on the training rows. Needs gpboost, pandas, scikit-learn, and R with lme4,
mlmRev and MASS. DATA_FOLDER holds school/school.csv; without it that table is left out.
"""
import argparse, json, pathlib, subprocess, sys, tempfile, time

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

HERE = pathlib.Path(__file__).resolve().parent
YES_NO = ["cbpp", "verbagg", "contraception", "grouseticks", "epil", "school"]
COUNTS = ["grouseticks-count", "epil-count", "mmmec-count"]


def make_tables(folder, data):
    subprocess.run(["Rscript", HERE / "tables.R", folder], check=True)
    school = pathlib.Path(data) / "school" / "school.csv"
    if school.exists():
        rows = pd.read_csv(school)
        top = (rows["y"] >= rows["y"].quantile(.95)).astype(int)  # the top 5 %: a rare event
        pd.concat([top.rename("y"), rows.drop(columns="y")], axis=1).to_csv(folder / "school.csv", index=False)


def split(table, seed, new):
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(table), bool)
    if new:
        agents = np.array(sorted(table["agent"].unique()))
        held_out[:] = table["agent"].isin(rng.permutation(agents)[:max(1, round(.3 * len(agents)))])
    else:
        for rows in table.groupby("agent").indices.values():
            held_out[rng.permutation(rows)[max(1, round(.6 * len(rows))):]] = True
    columns = pd.get_dummies(table.drop(columns=["y", "agent", "offset"], errors="ignore"), drop_first=True).astype(float)
    mean, deviation = columns[~held_out].mean(), columns[~held_out].std(ddof=0)
    kept = deviation > 1e-9
    columns = ((columns - mean) / deviation.where(kept, 1)).loc[:, kept]
    columns.columns = [f"c{j}" for j in range(columns.shape[1])]
    beside = ["y", "agent"] + (["offset"] if "offset" in table else [])
    whole = pd.concat([table[beside], columns], axis=1)
    return whole[~held_out], whole[held_out], list(columns)


def with_affpcl(program, folder, family, offset):
    options = ["--target", "y", "--family", family] + (["--offset", "offset"] if offset else [])
    subprocess.run([program, "fit", folder / "train.csv", *options, "--out", folder / "model", "--force", "--quiet", "--no-score",
                    "--threads", "1"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([program, "predict", folder / "model", folder / "test.csv", "--out", folder / "affpcl.csv", "--force", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    found = pd.read_csv(folder / "affpcl.csv")
    return found["probability_1" if family == "binomial" else "prediction"].to_numpy()


def with_gpboost(train, test, columns):
    import gpboost
    X, Xt = train[columns].to_numpy(), test[columns].to_numpy()
    model = gpboost.GPModel(group_data=train["agent"].to_numpy(object).astype(str), group_rand_coef_data=X,
                            ind_effect_group_rand_coef=[1] * len(columns), likelihood="bernoulli_logit", num_parallel_threads=1)
    model.fit(y=train["y"].to_numpy(float), X=np.column_stack([np.ones(len(X)), X]))
    return model.predict(group_data_pred=test["agent"].to_numpy(object).astype(str), group_rand_coef_data_pred=Xt,
                         X_pred=np.column_stack([np.ones(len(Xt)), Xt]), predict_response=True)["mu"]


def with_pooled(train, test, columns):
    model = LogisticRegression(C=1, max_iter=1000).fit(train[columns], train["y"])
    return model.predict_proba(test[columns])[:, 1]


def log_loss(y, p):
    p = np.clip(p, 1e-12, 1 - 1e-12)
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean()


def deviance(y, mean):
    mean = np.maximum(mean, 1e-12)
    return 2 * (np.where(y > 0, y * np.log(np.where(y > 0, y, 1) / mean), 0) - (y - mean)).mean()


def calibration_slope(y, p):
    """Of the logistic regression of y on logit p, all splits together."""
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return LogisticRegression(C=1e6).fit(np.log(p / (1 - p))[:, None], y).coef_[0, 0]


def calibration_error(y, p, bins=10):
    """Mean |observed - predicted| over bins of equal counts."""
    order = np.array_split(np.argsort(p, kind="stable"), bins)
    return sum(len(rows) * abs(y[rows].mean() - p[rows].mean()) for rows in order) / len(y)


def interval(differences):
    n = len(differences)
    half = student.ppf(.95, n - 1) * np.std(differences, ddof=1) / n ** .5
    return [float(np.mean(differences) - half), float(np.mean(differences)), float(np.mean(differences) + half)]


def compare_yes_no(program, table, folder, splits, new):
    every, losses, seconds = {}, {}, {}
    for seed in range(1, splits + 1):
        train, test, columns = split(table, seed, new)
        (folder / str(seed)).mkdir(parents=True)
        train.to_csv(folder / str(seed) / "train.csv", index=False)
        test.to_csv(folder / str(seed) / "test.csv", index=False)
        y = test["y"].to_numpy(float)
        methods = {"affpcl": lambda: with_affpcl(program, folder / str(seed), "binomial", False),
                   "gpboost": lambda: with_gpboost(train, test, columns), "pooled": lambda: with_pooled(train, test, columns)}
        for name, method in methods.items():
            start = time.perf_counter()
            p = np.asarray(method())
            seconds[name] = seconds.get(name, 0) + (time.perf_counter() - start) / splits
            losses.setdefault(name, []).append(log_loss(y, p))
            every.setdefault(name, []).append((y, p))
    result = {"rows": len(table), "agents": table["agent"].nunique(), "rate": float(table["y"].mean()), "splits": splits}
    for name, found in every.items():
        y, p = (np.concatenate(part) for part in zip(*found))
        result[name] = {"log_loss": float(np.mean(losses[name])), "slope": calibration_slope(y, p),
                        "ece": calibration_error(y, p), "auc": roc_auc_score(y, p), "seconds": seconds[name]}
    for other in ("gpboost", "pooled"):
        result[f"minus_{other}"] = interval(np.array(losses["affpcl"]) - np.array(losses[other]))
    return result


def compare_counts(program, table, folder, splits, new):
    found = {"affpcl": [], "glmer": []}
    for seed in range(1, splits + 1):
        train, test, _ = split(table, seed, new)
        (folder / str(seed)).mkdir(parents=True)
        train.to_csv(folder / str(seed) / "train.csv", index=False)
        test.to_csv(folder / str(seed) / "test.csv", index=False)
        found["affpcl"].append(deviance(test["y"], with_affpcl(program, folder / str(seed), "poisson", "offset" in table)))
    subprocess.run(["Rscript", HERE / "glmer.R", folder, str(splits)], check=True)
    for seed in range(1, splits + 1):
        test = pd.read_csv(folder / str(seed) / "test.csv")
        found["glmer"].append(deviance(test["y"], pd.read_csv(folder / str(seed) / "glmer.csv")["mean"].to_numpy()))
    ratio = np.mean(found["affpcl"]) / np.mean(found["glmer"])
    return {"rows": len(table), "agents": table["agent"].nunique(), "splits": splits, "ratio": float(ratio),
            **{name: float(np.mean(values)) for name, values in found.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data")
    parser.add_argument("--tables", default=",".join(YES_NO + COUNTS))
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--new", action="store_true")
    parser.add_argument("--json")
    o = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_tables(folder, o.data)
        for name in o.tables.split(","):
            if not (folder / f"{name}.csv").exists():
                print(f"{name}: no such table", file=sys.stderr)
                continue
            table = pd.read_csv(folder / f"{name}.csv")
            compare = compare_counts if name in COUNTS else compare_yes_no
            results[name] = compare(pathlib.Path(o.program).resolve(), table, folder / name, o.splits, o.new)
            print(name, json.dumps(results[name]), flush=True)
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
