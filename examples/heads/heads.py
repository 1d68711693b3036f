"""Personal heads on shared features: one linear or softmax head per user on the features of any network.

    python heads.py FEATURES.npy LABELS.csv --target label --user agent          # a class for each row
    python heads.py FEATURES.npy LABELS.csv --target score --user agent --regression
    python heads.py --simulate 100000                                              # time and memory

The features are what a network gives before its last layer, one row per example; the labels file has one line per row
with the target and the user. A part of each user's rows (--test) is held out. The personal heads of up to 5,000 users are
combined with the pooled and the own one by what folds of the training rows support (--quick: not). Beside them stand

    pooled   one head for all users
    own      a head of each user's rows alone (ridge or logistic regression; FedPer with its body frozen)
    fedrep   a shared linear map to --rank features below the users' own heads, by alternating least squares
             (FedRep with a linear representation, solved exactly; regression only)
"""
from __future__ import annotations

import argparse
import csv
import resource
import time

import numpy as np

from affpcl import PersonalizedClassifier, PersonalizedRegressor


def read(features: str, labels: str, target: str, user: str, regression: bool):
    X = np.load(features).astype(float)
    X = X.reshape(len(X), -1)
    with open(labels, newline="") as file:
        rows = list(csv.DictReader(file))
    if len(rows) != len(X):
        raise SystemExit(f"{features} has {len(X)} rows and {labels} {len(rows)}: they must have the same")
    y = np.array([row[target] for row in rows])
    return X, y.astype(float) if regression else y, np.array([row[user] for row in rows])


def reduce(X: np.ndarray, train: np.ndarray, most: int) -> np.ndarray:
    """Standardised principal components of the training rows, at most `most` of them."""
    centred = X - X[train].mean(0)
    if X.shape[1] > most:
        _, _, V = np.linalg.svd(centred[train], full_matrices=False)
        centred = centred @ V[:most].T
    return centred / np.maximum(centred[train].std(0), 1e-12)


def simulate(users: int, rows: int, dim: int, rank: int, seed: int):
    """Heads w_i = w + B z_i + 0.2 e_i: close to a common one, mostly along `rank` directions."""
    rng = np.random.default_rng(seed)
    centre, basis = rng.normal(size=dim), rng.normal(size=(rank, dim)) / np.sqrt(dim)
    heads = centre + rng.normal(size=(users, rank)) @ basis + 0.2 * rng.normal(size=(users, dim))
    X = rng.normal(size=(users * rows, dim))
    user = np.repeat(np.arange(users), rows)
    y = np.einsum("ij,ij->i", X, heads[user]) + rng.normal(size=len(X))
    return X, y, user


def each_user(user: np.ndarray):
    user = np.unique(user, return_inverse=True)[1]  # names too
    order = np.argsort(user, kind="stable")
    edges = np.flatnonzero(np.diff(user[order])) + 1
    return np.split(order, edges)


def own_regression(X, y, user, train, ridge):
    """Ridge regression of each user's rows alone."""
    out = np.empty(len(X))
    for rows in each_user(user):
        fit = rows[train[rows]]
        A = X[fit].T @ X[fit] + ridge * np.eye(X.shape[1])
        mean = y[fit].mean() if len(fit) else 0.0
        out[rows] = X[rows] @ np.linalg.solve(A, X[fit].T @ (y[fit] - mean)) + mean
    return out


def fedrep_regression(X, y, user, train, rank, ridge, rounds):
    """x_i = B w_i by alternating least squares: each user's head given B, then B given all heads."""
    dim = X.shape[1]
    users = each_user(user)
    B = np.linalg.qr(np.random.default_rng(0).normal(size=(dim, rank)))[0]
    mean = y[train].mean()
    moments = [(X[r[train[r]]].T @ X[r[train[r]]], X[r[train[r]]].T @ (y[r[train[r]]] - mean)) for r in users]
    heads = np.zeros((len(users), rank))
    for _ in range(rounds):
        for i, (A, b) in enumerate(moments):
            heads[i] = np.linalg.solve(B.T @ A @ B + ridge * np.eye(rank), B.T @ b)
        left = sum(np.kron(A, np.outer(w, w)) for (A, _), w in zip(moments, heads))
        right = sum(np.outer(b, w) for (_, b), w in zip(moments, heads)).ravel()
        B = np.linalg.qr(np.linalg.solve(left + 1e-9 * np.eye(dim * rank), right).reshape(dim, rank))[0]
    out = np.empty(len(X))
    for rows, (A, b) in zip(users, moments):
        out[rows] = X[rows] @ B @ np.linalg.solve(B.T @ A @ B + ridge * np.eye(rank), B.T @ b) + mean
    return out


FEW = 5000  # users, for what takes long


def few(user: np.ndarray) -> bool:
    return len(np.unique(user)) <= FEW


def regression(X, y, user, train, rank, stack) -> None:
    held = ~train
    r2 = lambda p: 1 - ((y - p)[held] ** 2).mean() / ((y - y[train].mean())[held] ** 2).mean()
    start = time.process_time()
    model = PersonalizedRegressor(score_gains=stack).fit(X[train], y[train], groups=user[train])
    spent = time.process_time() - start
    _, low, high = model.predict_interval(X[held], groups=user[held]).T
    inside = ((y[held] >= low) & (y[held] <= high)).mean()
    print(f"personal  R2 {r2(model.predict(X, groups=user)):.4f}   {spent:.1f} CPU-s, "
          f"90 % intervals hold {100 * inside:.1f} %")
    pooled = np.linalg.lstsq(np.c_[X[train], np.ones(train.sum())], y[train], rcond=None)[0]
    print(f"pooled    R2 {r2(X @ pooled[:-1] + pooled[-1]):.4f}")
    best = max((r2(own_regression(X, y, user, train, ridge)), ridge) for ridge in (0.3, 3.0, 30.0))
    print(f"own       R2 {best[0]:.4f}   best ridge on the held-out rows: {best[1]}")
    if few(user):
        found = max((r2(fedrep_regression(X, y, user, train, rank, ridge, 20)), ridge) for ridge in (0.3, 3.0))
        print(f"fedrep    R2 {found[0]:.4f}   best ridge on the held-out rows: {found[1]}")


def logistic(X, y, fit, rows, C, names):
    """Probabilities of the classes `names` for `rows`, from the rows `fit`, each class with one more row in all."""
    from sklearn.linear_model import LogisticRegression

    out = np.zeros((len(rows), len(names)))
    found = np.unique(y[fit])
    columns = np.searchsorted(names, found)
    out[:, columns] = 1.0 if len(found) == 1 else LogisticRegression(C=C, max_iter=500).fit(X[fit], y[fit]).predict_proba(X[rows])
    share = len(fit) / (len(fit) + 1)  # a class that a user has not shown yet is not impossible
    return share * out + (1 - share) / len(names)


def classes(X, y, user, train, stack) -> None:
    held, names = np.flatnonzero(~train), np.unique(y)
    truth = np.searchsorted(names, y[held])

    def scores(p):
        return -np.log(np.maximum(p[np.arange(len(held)), truth], 1e-12)).mean(), (p.argmax(1) == truth).mean()

    def show(name, found, note):
        print(f"{name:9} log loss {found[0]:.4f}   accuracy {found[1]:.4f}   {note}")

    start = time.process_time()
    model = PersonalizedClassifier(score_gains=stack).fit(X[train], y[train], groups=user[train])
    spent = time.process_time() - start
    show("personal", scores(model.predict_proba(X[held], groups=user[held])), f"{spent:.1f} CPU-s")
    grid = (0.03, 0.3, 3)
    learn = np.flatnonzero(train)
    show("pooled", min(scores(logistic(X, y, learn, held, C, names)) for C in grid), "best C on the held-out rows")
    own = []
    for C in grid:
        out = np.empty((len(y), len(names)))
        for rows in each_user(user):
            out[rows] = logistic(X, y, rows[train[rows]], rows, C, names)
        own.append(scores(out[held]))
    show("own", min(own), "best C on the held-out rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", nargs="?")
    parser.add_argument("labels", nargs="?")
    parser.add_argument("--target", default="label")
    parser.add_argument("--user", default="agent")
    parser.add_argument("--regression", action="store_true")
    parser.add_argument("--most", type=int, default=32, help="features kept: principal components")
    parser.add_argument("--rank", type=int, default=4, help="of the shared map of fedrep")
    parser.add_argument("--test", type=float, default=0.4, help="share of each user's rows held out")
    parser.add_argument("--quick", action="store_true", help="one fit: personal heads are not combined with pooled and own ones")
    parser.add_argument("--simulate", type=int, metavar="USERS")
    parser.add_argument("--rows", type=int, default=20, help="rows of a simulated user")
    parser.add_argument("--seed", type=int, default=1)
    o = parser.parse_args()
    if o.simulate:
        X, y, user = simulate(o.simulate, o.rows, 16, 4, o.seed)
        o.regression = True
    elif o.features and o.labels:
        X, y, user = read(o.features, o.labels, o.target, o.user, o.regression)
    else:
        parser.error("give FEATURES.npy and LABELS.csv, or --simulate USERS")
    rng = np.random.default_rng(o.seed)
    train = np.ones(len(y), dtype=bool)
    for rows in each_user(user):
        train[rng.permutation(rows)[: int(o.test * len(rows))]] = False
    X = X if o.simulate else reduce(X, train, o.most)
    print(f"{len(np.unique(user))} users, {len(y)} rows, {X.shape[1]} features, {train.sum()} rows to learn from")
    stack = few(user) and not o.quick
    regression(X, y, user, train, o.rank, stack) if o.regression else classes(X, y, user, train, stack)
    print(f"memory at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
