#!/usr/bin/env python3
"""`affpcl fit` against docs/explain/fit.md: the page's EM finds the same centre, spread, noise, models and standard errors.

usage: explain_fit.py PATH_TO_AFFPCL
"""
import json
import pathlib
import subprocess
import sys
import tempfile
from types import SimpleNamespace as Bag

try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

import _markdown

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "fit.md"
# The steps of a full D end sooner, on the same hill; with noises of their own the climb is ended at a gain of .001.
TOLERANCE = dict(scalar=1e-8, diagonal=1e-8, full=1e-6, noise=1e-3)
page = Bag(**_markdown.run_python(PAGE))


def table(seed, n, columns, root, noise, rows, at=0.0, scale=1.0):
    """Agents with x_i = x_c + root z_i; their sizes differ."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=columns + 1)
    X, y = [], []
    for i in range(n):
        N = rows + 3 * (i % 7)
        x = np.hstack([np.ones((N, 1)), at + scale * rng.normal(size=(N, columns))])
        w = centre + root @ rng.normal(size=columns + 1)
        X.append(x)
        y.append(x @ w + noise * rng.normal(size=N))
    return X, y


def stranger(rows):
    """The last agent goes its own way: its spread has to be widened."""
    X, y = rows
    y[-1] = y[-1] + X[-1] @ np.array([4.0, -4.0, 4.0])
    return X, y


def program(affpcl, X, y):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with open(folder / "t.csv", "w") as file:
            file.write("agent," + ",".join(f"x{j}" for j in range(X[0].shape[1] - 1)) + ",y\n")
            for i, (x, v) in enumerate(zip(X, y)):
                for row, target in zip(x, v):
                    file.write(f"{i}," + ",".join(repr(float(q)) for q in row[1:]) + f",{float(target)!r}\n")
        done = subprocess.run([affpcl, "fit", "t.csv", "--target", "y", "--out", "m", "--quiet", "--no-score"], cwd=folder,
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise RuntimeError(done.stderr)
        return json.loads((folder / "m" / "model.json").read_text())


def off(found, expected, scale=None):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / (scale or np.abs(expected).max())


def compare(affpcl, kind, X, y):
    model = program(affpcl, X, y)
    channel = model["channels"][0]
    kind = kind or channel["spread"]
    yield f"{kind}: the evidence chooses it", 0 if channel["spread"] == kind else np.inf
    every, target = np.vstack(X), np.concatenate(y)
    mean, sd = every.mean(0), every.std(0)
    mean[0], sd[0] = 0, 1
    my, sy = target.mean(), target.std()
    m = page.moments([(x - mean) / sd for x in X], [(v - my) / sy for v in y])
    D, s2 = page.em(m, kind)
    p = page.posterior(m, D, s2)
    shift = my * np.eye(len(D))[0]
    found_D = np.array(channel["D"]) if kind == "full" else np.diag(channel["D"])
    yield f"{kind}: D", off(found_D, D * sy**2)
    yield f"{kind}: s^2", off(channel["s2"], s2 * sy**2)
    yield f"{kind}: centre", off(channel["centre"]["x"], p.xc * sy + shift)
    yield f"{kind}: the centre's standard errors", off(channel["centre"]["se"], np.sqrt(np.diag(p.Hinv)) * sy)
    lower = np.tril_indices(len(D))
    yield f"{kind}: an agent never seen", off(channel["centre"]["cov"], (D + p.Hinv)[lower] * sy**2)
    x, cov = page.agents(m, D, s2, kind)
    found = sorted(model["agents"], key=lambda a: int(a["name"]))
    mine = [a["model"] == "personalised" for a in found]
    yield f"{kind}: personalised models", 0 if all(mine) else np.inf
    yield f"{kind}: agents", off([a["channels"][0]["x"] for a in found], x * sy + shift)
    se = np.sqrt(np.diagonal(cov, axis1=1, axis2=2)) * sy
    yield f"{kind}: standard errors", off([a["channels"][0]["se"] for a in found], se)
    yield f"{kind}: covariances", off([a["channels"][0]["cov"] for a in found],
                                      np.array([c[lower] for c in cov]) * sy**2)
    tried = {t["spread"]: t for t in channel["tried"]}
    yield f"{kind}: log evidence", off(tried[kind]["log_evidence"], page.log_evidence(m, D, s2))
    d, n = len(D), len(X)
    numbers = dict(scalar=1, diagonal=d, full=d * (d + 1) // 2)[kind]
    yield f"{kind}: BIC", off(tried[kind]["bic"], -2 * page.log_evidence(m, D, s2) + numbers * np.log(n))


def compare_noise(affpcl, X, y):
    """Agents whose noise differs by up to e^2: the variances that program and page find for each."""
    model = program(affpcl, X, y)
    channel = model["channels"][0]
    every, target = np.vstack(X), np.concatenate(y)
    mean, sd = every.mean(0), every.std(0)
    mean[0], sd[0] = 0, 1
    m = page.moments([(x - mean) / sd for x in X], [(v - target.mean()) / target.std() for v in y])
    divided, D, s2, factors = page.with_noise(m, channel["spread"])
    found = sorted(model["agents"], key=lambda a: int(a["name"]))
    yield "noise: agents differ", 0 if max(factors) > 4 * min(factors) else np.inf
    yield "noise: s_i^2", np.abs(np.log([a["channels"][0]["s2"] for a in found] / (factors * s2 * target.var()))).max()
    x, _ = page.agents(divided, D, s2, channel["spread"])
    yield "noise: agents", off([a["channels"][0]["x"] for a in found], x * target.std() + target.mean() * np.eye(len(D))[0])


def main(args):
    if len(args) != 1:
        print(__doc__)
        return 2
    affpcl = str(pathlib.Path(args[0]).resolve())
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    strange = np.diag([0.4, 0.4, 0.4])
    tables = [(None, stranger(table(4, 25, 2, strange, 1.0, 12))), ("scalar", table(1, 30, 3, np.diag([0.5, 0.5, 0.5, 0.5]), 1.0, 12)),
              ("diagonal", table(2, 40, 4, np.diag([5, 0.3, 1.0, 2.0, 0.2]), 1.0, 15, at=2.0, scale=1.5)),
              ("full", table(3, 120, 3, turn @ np.diag([3.0, 1.0, 0.3, 0.3]) @ turn.T, 1.0, 15))]
    passed = failed = 0
    X, y = table(5, 30, 3, np.diag([0.5, 0.5, 0.5, 0.5]), 0.0, 20)
    rng = np.random.default_rng(6)
    loud = (X, [v + np.exp(rng.normal(0, 0.7)) * rng.normal(size=len(v)) for v in y])
    checks = [(compare, kind, *rows) for kind, rows in tables] + [(compare_noise, *loud)]
    for compared, *arguments in checks:
        for name, worst in compared(affpcl, *arguments):
            good = worst <= TOLERANCE[name.split(":")[0]]
            print(f"{'ok  ' if good else 'FAIL'} {worst:8.1e}  {name}")
            passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
