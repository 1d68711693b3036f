#!/usr/bin/env python3
"""Predictions of `fit` beside lme4's and GPBoost's on real tables, and its excess risk on simulated ones.

usage: peers.py PATH_TO_AFFPCL [--cases] [--tables a,b] [--splits 20] [--replicates 100] [--jobs 2] [--no-peers] [--out FILE.json]

--cases: six simulated tables whose truth is known, and the excess risk of `fit` over that of the plain BLUP (REML by the Python of
docs/explain/fit.md, the true form of D given). Otherwise: regression tables of R packages, split within agents (60/40, 80/20) and by
agents ("new", 60/40). Columns are dummied, and standardised on the training rows; all programs read the same files.
Needs numpy; for real tables R with lme4, nlme and mlmRev; GPBoost where Python has it. Exit 77 where something is missing.
"""
import argparse
import concurrent.futures
import csv
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDENT_90 = {3: 2.92, 5: 2.132, 10: 1.833, 20: 1.729}  # 95 % quantile for n splits


# --- simulated cases -------------------------------------------------------------------------------------------------

# agents, rows, coefficients, their standard deviation between agents
CASES = {
    "unequal noise 40 x 8": (40, 8, 3, 0.5), "unequal noise 12 x 24": (12, 24, 3, 0.5), "outliers 40 x 8": (40, 8, 3, 0.5),
    "normal 40 x 8": (40, 8, 3, 0.5), "normal 8 x 20": (8, 20, 3, 0.5), "one stranger 12 x 24": (12, 24, 7, 0.2),
}


def draw_case(name, replicate):
    """X [n][rows][d], y, and the true coefficients. Columns are standard normal, so the risk is a squared distance."""
    n, rows, d, sd = CASES[name]
    rng = np.random.default_rng([replicate, list(CASES).index(name)])
    x, noise = 1 + sd * rng.normal(size=(n, d)), np.ones(n)
    if name.startswith("unequal"):
        noise = np.exp(rng.normal(0, 0.7, n))
    if name.startswith("outliers"):
        x[rng.choice(n, n // 10, replace=False)] += 3 * rng.normal(size=(n // 10, d))
    if name.startswith("one stranger"):
        x[0] += 2
    X = np.concatenate([np.ones((n, rows, 1)), rng.normal(size=(n, rows, d - 1))], 2)
    return X, np.einsum("ijk,ik->ij", X, x) + noise[:, None] * rng.normal(size=(n, rows)), x


def write_csv(path, header, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(header)
        out.writerows(rows)


def fit(affpcl, folder, *options):
    subprocess.run([affpcl, "fit", "train.csv", "--target", "y", "--agent", "agent", "--no-score", "--quiet", "--threads", "1", "--out", "m",
                    "--force", *options], cwd=folder, check=True, capture_output=True)


def coefficients(folder):
    """Coefficients of the columns as they are, and whether x -+ 1.645 se are known for them."""
    model = json.loads((folder / "m" / "model.json").read_text())
    mean = np.array([0] + [c["mean"][0] for c in model["columns"]])
    sd = np.array([1] + [c["sd"][0] for c in model["columns"]])
    to_raw = np.diag(1 / sd)
    to_raw[0] -= mean / sd
    agents = sorted(model["agents"], key=lambda a: a["name"])
    return np.array([to_raw @ a["channels"][0]["x"] for a in agents])


def study_case(job):
    affpcl, name, replicate, options = job
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    import _markdown
    page = _markdown.run_python(ROOT / "docs" / "explain" / "fit.md")
    X, y, truth = draw_case(name, replicate)
    n, rows, d = X.shape
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        write_csv(folder / "train.csv", ["agent", *(f"x{j}" for j in range(1, d)), "y"],
                  ([f"a{i:03}", *X[i, r, 1:], y[i, r]] for i in range(n) for r in range(rows)))
        fit(affpcl, folder, *options)
        own = coefficients(folder)
    m = page["moments"](list(X), list(y))
    D, s2 = page["em"](m, "scalar", steps=200)
    risk = lambda x: float(((x - truth) ** 2).sum(1).mean())
    return risk(own), risk(page["posterior"](m, D + 1e-12 * np.eye(d), s2).x)


def cases(o):
    out = {}
    for name in CASES:
        jobs = [(o.affpcl, name, r, o.options.split()) for r in range(o.replicates)]
        with concurrent.futures.ProcessPoolExecutor(o.jobs) as pool:
            own, plain = np.array(list(pool.map(study_case, jobs))).T
        ratio = own.mean() / plain.mean()
        se = (own - ratio * plain).std(ddof=1) / math.sqrt(len(own)) / plain.mean()
        out[name] = dict(fit=own.mean(), plain=plain.mean(), ratio=ratio, se=se)
        print(f"{name:24} fit {own.mean():.3f}  plain BLUP {plain.mean():.3f}  ratio {ratio:.3f} +- {se:.3f}", flush=True)
    return out


# --- real tables -----------------------------------------------------------------------------------------------------

EXPORT = '''
suppressMessages({library(lme4); library(nlme); library(mlmRev)})
folder <- commandArgs(TRUE)[1]
put <- function(name, data, target, agent, columns) {
  data <- as.data.frame(data)[c(target, agent, columns)]
  data <- data[complete.cases(data), ]
  for (k in columns) if (is.factor(data[[k]])) data[[k]] <- factor(as.character(data[[k]]))
  X <- model.matrix(reformulate(columns), data)[, -1, drop = FALSE]
  colnames(X) <- paste0("x", seq_len(ncol(X)))
  write.csv(data.frame(agent = as.character(data[[agent]]), X, y = as.numeric(data[[target]])), file.path(folder, paste0(name, ".csv")), row.names = FALSE)
}
put("sleepstudy", sleepstudy, "Reaction", "Subject", "Days")
put("Orthodont", Orthodont, "distance", "Subject", c("age", "Sex"))
put("Oxboys", nlme::Oxboys, "height", "Subject", "age")
put("Machines", nlme::Machines, "score", "Worker", "Machine")
put("BodyWeight", BodyWeight, "weight", "Rat", c("Time", "Diet"))
put("Milk", Milk, "protein", "Cow", c("Time", "Diet"))
put("CO2", CO2, "uptake", "Plant", c("Type", "Treatment", "conc"))
put("Early", Early, "cog", "id", c("age", "trt"))
put("Gcsemv", Gcsemv, "course", "school", c("written", "gender"))
put("ScotsSec", ScotsSec, "attain", "second", c("verbal", "sex", "social"))
egsingle$year <- as.numeric(as.character(egsingle$year)); egsingle$grade <- as.numeric(as.character(egsingle$grade))
put("egchild", egsingle, "math", "childid", c("year", "grade", "retained", "female", "black", "hispanic"))
put("egschool", egsingle, "math", "schoolid", c("year", "grade", "retained", "female", "black", "hispanic", "size", "lowinc", "mobility"))
put("bdf", bdf, "langPOST", "schoolNR", c("IQ.verb", "IQ.perf", "sex", "Minority", "repeatgr", "ses", "aritPRET", "schoolSES"))
'''

LME4 = '''
suppressMessages(library(lme4))
for (folder in commandArgs(TRUE)) {
  train <- read.csv(file.path(folder, "train.csv")); test <- read.csv(file.path(folder, "test.csv"))
  train$agent <- as.character(train$agent); test$agent <- as.character(test$agent)
  x <- setdiff(names(train), c("agent", "y"))
  f <- as.formula(paste("y ~", paste(x, collapse = "+"), "+ (", paste(x, collapse = "+"), "|| agent)"))
  fit <- tryCatch(suppressWarnings(suppressMessages(lmer(f, train, control = lmerControl(calc.derivs = FALSE,
    check.nobs.vs.nlev = "ignore", check.nobs.vs.nRE = "ignore", check.nobs.vs.rankZ = "ignore")))), error = function(e) NULL)
  p <- if (is.null(fit)) rep(NA, nrow(test)) else predict(fit, test, allow.new.levels = TRUE)
  write.csv(data.frame(p = p), file.path(folder, "lme4.csv"), row.names = FALSE)
}
'''

KINDS = ("60/40", "80/20", "new")


def run_r(script, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".R") as file:
        file.write(script)
        file.flush()
        subprocess.run(["Rscript", file.name, *map(str, arguments)], check=True, capture_output=True)


def split(agents, kind, seed):
    """Which rows are for training."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    names = np.unique(agents)
    train = np.zeros(len(agents), bool)
    if kind == "new":
        return np.isin(agents, rng.permutation(names)[: max(2, round(0.6 * len(names)))])
    share = 0.6 if kind == "60/40" else 0.8
    for name in names:
        own = rng.permutation(np.flatnonzero(agents == name))
        train[own[: max(1, round(share * len(own)))]] = True
    return train


def write_split(folder, agents, X, y, train):
    """train.csv and test.csv with columns standardised on the training rows; constant ones are left out."""
    folder.mkdir()
    mean, sd = X[train].mean(0), X[train].std(0)
    Z = ((X - mean) / np.where(sd > 1e-9, sd, 1))[:, sd > 1e-9]
    header = ["agent", *(f"x{j}" for j in range(Z.shape[1])), "y"]
    for name, rows in (("train", train), ("test", ~train)):
        write_csv(folder / f"{name}.csv", header, ([a, *map(repr, map(float, z)), repr(float(v))] for a, z, v in zip(agents[rows], Z[rows], y[rows])))


def read(path):
    rows = list(csv.reader(open(path, newline="")))[1:]
    return np.array([r[0] for r in rows]), np.array([r[1:-1] for r in rows], float), np.array([r[-1] for r in rows], float)


def by_affpcl(affpcl, folder, options):
    fit(affpcl, folder, *options)
    subprocess.run([affpcl, "predict", "m", "test.csv", "--out", "affpcl.csv", "--force", "--quiet"], cwd=folder, check=True, capture_output=True)
    rows = list(csv.DictReader(open(folder / "affpcl.csv", newline="")))
    inside = [float(r["prediction_lo"]) <= float(r["y"]) <= float(r["prediction_hi"]) for r in rows]
    return np.array([float(r["prediction"]) for r in rows]), float(np.mean(inside))


def by_gpboost(folder):
    import gpboost
    (a, X, y), (at, Xt, _) = read(folder / "train.csv"), read(folder / "test.csv")
    one = lambda Z: np.hstack([np.ones((len(Z), 1)), Z])
    model = gpboost.GPModel(group_data=a, group_rand_coef_data=X, ind_effect_group_rand_coef=[1] * X.shape[1], likelihood="gaussian", num_parallel_threads=1)
    model.fit(y=y, X=one(X))
    return model.predict(group_data_pred=at, group_rand_coef_data_pred=Xt, X_pred=one(Xt))["mu"]


def study_split(job):
    affpcl, folder, options, gpboost = job
    y = read(folder / "test.csv")[2]
    r2 = lambda p: float(1 - ((y - p) ** 2).mean() / y.var())
    own, inside = by_affpcl(affpcl, folder, options)
    out = dict(affpcl=r2(own), held=inside)
    if (folder / "lme4.csv").exists():
        out["lme4"] = r2(np.genfromtxt(folder / "lme4.csv", skip_header=1))
    if gpboost:
        try:
            out["gpboost"] = r2(by_gpboost(folder))
        except Exception:  # a fit that does not converge has no score
            out["gpboost"] = math.nan
    return out


def study_cell(o, source, kind, splits, gpboost):
    agents, X, y = read(source)
    with tempfile.TemporaryDirectory() as name:
        folders = []
        for seed in range(splits):
            train = split(agents, kind, seed)
            folders.append(pathlib.Path(name, str(seed)))
            write_split(folders[-1], agents, X, y, train)
        if not o.no_peers:
            run_r(LME4, *folders)
        with concurrent.futures.ProcessPoolExecutor(o.jobs) as pool:
            found = list(pool.map(study_split, [(o.affpcl, f, o.options.split(), gpboost) for f in folders]))
    return {key: [f[key] for f in found] for key in found[0]}


def summary(values):
    """Mean and 90 % interval of paired differences."""
    values = np.array([v for v in values if math.isfinite(v)])
    if len(values) < 2:
        return math.nan, math.nan
    return values.mean(), STUDENT_90.get(len(values), 1.75) * values.std(ddof=1) / math.sqrt(len(values))


def real(o):
    has_gpboost = not o.no_peers and importlib.util.find_spec("gpboost") is not None
    out = {}
    with tempfile.TemporaryDirectory() as data:
        run_r(EXPORT, data)
        for source in sorted(pathlib.Path(data).glob("*.csv")):
            if o.tables and source.stem not in o.tables.split(","):
                continue
            large = sum(1 for _ in open(source)) > 1000
            for kind in KINDS:
                cell = study_cell(o, source, kind, min(o.splits, 5) if large else o.splits, has_gpboost)
                out[f"{source.stem} {kind}"] = cell
                line = f"{source.stem:11} {kind:6} affpcl {np.mean(cell['affpcl']):.4f} (holds {np.mean(cell['held']):.2f})"
                for peer in ("lme4", "gpboost"):
                    if peer in cell:
                        mean, half = summary(np.array(cell["affpcl"]) - np.array(cell[peer]))
                        line += f"  {peer} {np.nanmean(cell[peer]):.4f}, ahead by {mean:+.4f} +- {half:.4f}"
                print(line, flush=True)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl", type=lambda p: str(pathlib.Path(p).resolve()))
    parser.add_argument("--cases", action="store_true")
    parser.add_argument("--tables", default="")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--replicates", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--options", default="", help="further options of fit")
    parser.add_argument("--no-peers", action="store_true", help="fit alone, to compare two builds on the same splits")
    parser.add_argument("--out")
    o = parser.parse_args()
    found = cases(o) if o.cases else real(o)
    if o.out:
        pathlib.Path(o.out).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
