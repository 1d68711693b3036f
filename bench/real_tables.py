#!/usr/bin/env python3
"""`affpcl fit` on real tables beside what one would use otherwise: 60/40 splits within agents, the same for all, several seeds.

usage: real_tables.py PATH_TO_AFFPCL DATA_FOLDER [--seeds 5] [--lme4]

DATA_FOLDER holds school/school.csv, beijing_air/beijing_air.csv, wisdm/wisdm.csv; a table that is missing is skipped. Beside
`fit`: pooled and per-agent ridge of scikit-learn (strength by its own cross-validation), the diagonal EM of docs/explain/fit.md, and
with --lme4 the mixed model `y ~ x + (x || agent)` of R's lme4 on the school table's first split (half a minute). Seconds are of
fitting and reading, medians over the seeds, all taken in turn. Needs numpy and scikit-learn (tools/setup bench), R and r-cran-lme4.
"""
import argparse, collections, csv, json, pathlib, random, statistics, subprocess, sys, tempfile, time

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'tests' / 'cli'))
import _markdown

EM = _markdown.run_python(ROOT / 'docs' / 'explain' / 'fit.md')
STRENGTHS = np.logspace(-3, 5, 25)


def school(row):
    return row


def beijing_air(row):
    return {k: v for k, v in row.items() if k not in ('year', 'month', 'day', 'hour')}


def wisdm(row):
    row = dict(row)
    row['moves'] = int(row.pop('label') in ('Walking', 'Jogging'))
    return row


TABLES = [(school, 'y'), (beijing_air, 'PM2.5'), (wisdm, 'moves')]


def split(rows, seed):
    agents = collections.defaultdict(list)
    for row in rows:
        agents[row['agent']].append(row)
    train, test, rng = [], [], random.Random(seed)
    for own in agents.values():
        rng.shuffle(own)
        cut = max(1, round(.6 * len(own)))
        train += own[:cut]
        test += own[cut:]
    return train, test


def write(path, rows):
    with open(path, 'w', newline='') as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerows(rows)


def number(text):
    try:
        return float(text)
    except ValueError:
        return np.nan


def arrays(train, test, target):
    """Blanks at the mean of the training rows, constant columns left out."""
    names = [k for k in train[0] if k not in ('agent', target)]
    def of(rows):
        return (np.array([[number(r[k]) for k in names] for r in rows]), np.array([float(r[target]) for r in rows]),
                np.array([r['agent'] for r in rows]))
    (X, y, a), (Xt, yt, at) = of(train), of(test)
    mean = np.nanmean(X, axis=0)
    X, Xt = np.where(np.isnan(X), mean, X), np.where(np.isnan(Xt), mean, Xt)
    varies = X.std(axis=0) > 1e-12
    return X[:, varies], y, a, Xt[:, varies], yt, at


def r2(y, p):
    return 1 - ((y - p)**2).mean() / y.var()


def ridge():
    return make_pipeline(StandardScaler(), RidgeCV(STRENGTHS))


def pooled(X, y, a, Xt, at):
    return ridge().fit(X, y).predict(Xt)


def alone(X, y, a, Xt, at):
    p = np.zeros(len(Xt))
    for agent in np.unique(a):
        p[at == agent] = ridge().fit(X[a == agent], y[a == agent]).predict(Xt[at == agent]) if (at == agent).any() else 0
    return p


def diagonal_em(X, y, a, Xt, at):
    mean, sd, ym, ys = X.mean(0), X.std(0), y.mean(), y.std()
    def rows(Z): return np.hstack([np.ones((len(Z), 1)), (Z - mean) / sd])
    names = np.unique(a)
    m = EM['moments']([rows(X[a == i]) for i in names], [(y[a == i] - ym) / ys for i in names])
    D, s2 = EM['em'](m, 'diagonal', steps=400)
    x = EM['posterior'](m, D + 1e-12 * np.eye(len(D)), s2).x
    place = {name: k for k, name in enumerate(names)}
    return ym + ys * (rows(Xt) * x[[place[i] for i in at]]).sum(1)


def affpcl_fit(program, folder, train, test, target):
    write(folder / 'train.csv', train)
    write(folder / 'test.csv', test)
    start = time.perf_counter()
    subprocess.run([program, 'fit', folder / 'train.csv', '--target', target, '--missing', 'mean', '--no-score', '--out',
                    folder / 'model', '--force', '--quiet'], check=True)
    seconds = time.perf_counter() - start
    told = subprocess.run([program, 'predict', folder / 'model', folder / 'test.csv', '--json', '--out', folder / 'p.csv', '--force'],
                          check=True, capture_output=True, text=True)
    with open(folder / 'p.csv', newline='') as file:
        inside = [float(r['prediction_lo']) <= float(r[target]) <= float(r['prediction_hi']) for r in csv.DictReader(file)]
    return json.loads(told.stdout)['score']['r2'], seconds, statistics.mean(inside)


LME4 = '''
suppressMessages(library(lme4))
a <- commandArgs(TRUE)
train <- read.csv(a[1]); test <- read.csv(a[2])
x <- setdiff(names(train), c("agent", "y"))
x <- x[sapply(train[x], function(v) sd(v) > 0)]
m <- sapply(train[x], mean); s <- sapply(train[x], sd)
train[x] <- scale(train[x], m, s); test[x] <- scale(test[x], m, s)
f <- as.formula(paste("y ~", paste(x, collapse = "+"), "+ (", paste(x, collapse = "+"), "|| agent)"))
time <- system.time(fit <- suppressWarnings(suppressMessages(lmer(f, train))))["elapsed"]
p <- predict(fit, test, allow.new.levels = TRUE)
cat(1 - mean((test$y - p)^2) / mean((test$y - mean(test$y))^2), time, "\\n")
'''


def lme4(folder):
    (folder / 'fit.R').write_text(LME4)
    out = subprocess.run(['Rscript', folder / 'fit.R', folder / 'train.csv', folder / 'test.csv'], check=True,
                         capture_output=True, text=True).stdout.split()
    return float(out[-2]), float(out[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('affpcl'), parser.add_argument('data')
    parser.add_argument('--seeds', type=int, default=5), parser.add_argument('--lme4', action='store_true')
    o = parser.parse_args()
    for change, target in TABLES:
        name = change.__name__
        source = pathlib.Path(o.data, name, name + '.csv')
        if not source.exists():
            print(f'{name}: skipped, {source} is not there')
            continue
        with open(source, newline='') as file:
            rows = [change(row) for row in csv.DictReader(file)]
        score, seconds, held = collections.defaultdict(list), collections.defaultdict(list), []
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            for seed in range(o.seeds):
                train, test = split(rows, seed)
                value, took, inside = affpcl_fit(o.affpcl, folder, train, test, target)
                score['affpcl'].append(value), seconds['affpcl'].append(took), held.append(inside)
                X, y, a, Xt, yt, at = arrays(train, test, target)
                for rival in (pooled, alone, diagonal_em):
                    start = time.perf_counter()
                    p = rival(X, y, a, Xt, at)
                    seconds[rival.__name__].append(time.perf_counter() - start)
                    score[rival.__name__].append(r2(yt, p))
                if o.lme4 and name == 'school' and seed == 0:
                    value, took = lme4(folder)
                    score['lme4'].append(value), seconds['lme4'].append(took)
        print(f'{name} ({o.seeds} splits; 90 % intervals hold {100 * statistics.mean(held):.1f} % of the rows)')
        for rival, values in score.items():
            gap = [mine - other for mine, other in zip(score['affpcl'], values)]
            print(f'  {rival:12} R^2 {statistics.mean(values):.4f}  affpcl ahead by {statistics.mean(gap):+.4f} '
                  f'(least {min(gap):+.4f})  {statistics.median(seconds[rival]):8.3f} s', flush=True)


if __name__ == '__main__':
    main()
