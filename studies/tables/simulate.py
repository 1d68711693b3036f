#!/usr/bin/env python3
"""Do `fit` and `affinity` tell the truth? Simulated tables whose truth is known: coverage, false gains, predictions, never worse.

usage: simulate.py PATH_TO_AFFPCL [--tables N] [--redraws R] [--seed K] [--jobs J] [--out DIR] [--check]

A world has agents with coefficients of their own, and can draw their rows as often as it likes. One table is shown to `affinity` and
`fit`; R more, of the same agents, say what was true: the expected error on new rows of the model an agent is given, and of the
one it learns alone. The errors themselves need no rows: the worlds' second moments are known. --check exits 1 where a target of
README.md is missed by more than chance. Needs numpy (exit 77 without it).
"""
import argparse
import concurrent.futures
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small matrices; tables run side by side
try:
    import numpy as np
except ImportError:
    print("numpy is missing")
    sys.exit(77)

SPREADS = (0, 0.1, 0.3, 1, 3, 30)  # sd of the agents' coefficients, in units of the noise
NORMAL_90 = 1.6448536269514722
EVEN = 0.01  # of the error alone: a smaller gain is none, as in fit's verdicts


class World:
    """Agents with known coefficients and known laws of their rows. Columns: numbers, and in some worlds a text column."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number])
        self.n = int(round(math.exp(rng.uniform(math.log(2), math.log(60)))))
        self.columns = int(rng.integers(1, 13))
        typical = math.exp(rng.uniform(math.log(5), math.log(300)))
        uneven = rng.random() < 0.5
        self.rows = np.clip(np.round(typical * np.exp(uneven * rng.normal(0, 0.6, self.n))), 5, 300).astype(int)
        self.levels = int(rng.integers(2, 5)) if rng.random() < 0.3 and self.rows.sum() >= 60 else 0
        self.spread = float(rng.choice(SPREADS))
        self.kind = str(rng.choice(("scalar", "diagonal", "full")))
        self.noise_kind = str(rng.choice(("normal", "normal", "heavy", "unequal")))
        self.strangers = self.n >= 5 and rng.random() < 0.25
        self.draw_laws(rng)
        self.draw_coefficients(rng)

    def draw_laws(self, rng):
        p = self.columns
        self.correlation = float(rng.choice((0, 0, 0.5, 0.9)))
        self.root = np.linalg.cholesky((1 - self.correlation) * np.eye(p) + self.correlation)
        self.mean = float(rng.choice((0, 0, 1))) * rng.normal(size=(self.n, p))  # agents may live elsewhere
        self.level_share = np.full(self.levels, 1 / self.levels) if self.levels else np.zeros(0)
        self.noise = np.exp(rng.normal(0, 0.7, self.n)) if self.noise_kind == "unequal" else np.ones(self.n)

    def draw_coefficients(self, rng):
        """Intercept, numbers, then one per level of the text, the first 0."""
        free = 1 + self.columns + max(0, self.levels - 1)
        scale = np.full(free, self.spread)
        if self.kind != "scalar":
            scale = scale * np.where(rng.random(free) < 0.4, 0, rng.uniform(0.3, 1.5, free))
        turn = np.linalg.qr(rng.normal(size=(free, free)))[0] if self.kind == "full" else np.eye(free)
        x = rng.normal(size=free) * rng.choice((0.3, 1, 3)) + rng.normal(size=(self.n, free)) * scale @ turn.T
        if self.strangers:
            odd = rng.choice(self.n, max(1, self.n // 10), replace=False)
            x[odd] += rng.choice((1, 3, 10)) * rng.normal(size=(len(odd), free))
        at = 1 + self.columns
        self.x = np.hstack([x[:, :at], np.zeros((self.n, 1 if self.levels else 0)), x[:, at:]])

    def second_moment(self, i):
        """E z z', z = (1, numbers, one 0/1 per level)."""
        mean = np.concatenate([[1], self.mean[i], self.level_share])
        cov = np.zeros((len(mean), len(mean)))
        a = 1 + self.columns
        cov[1:a, 1:a] = self.root @ self.root.T
        cov[a:, a:] = np.diag(self.level_share) - np.outer(self.level_share, self.level_share)
        return cov + np.outer(mean, mean)

    def draw(self, rng):
        """A table: per agent z and y."""
        table = []
        for i in range(self.n):
            N = self.rows[i]
            numbers = self.mean[i] + rng.normal(size=(N, self.columns)) @ self.root.T
            text = np.eye(self.levels)[rng.integers(0, self.levels, N)] if self.levels else np.zeros((N, 0))
            z = np.hstack([np.ones((N, 1)), numbers, text])
            e = rng.standard_t(5, N) / math.sqrt(5 / 3) if self.noise_kind == "heavy" else rng.normal(size=N)
            table.append((z, z @ self.x[i] + self.noise[i] * e))
        return table


def write_csv(path, world, table):
    names = [f"x{j}" for j in range(world.columns)] + (["c"] if world.levels else [])
    with open(path, "w") as file:
        file.write("agent," + ",".join(names) + ",y\n")
        for i, (z, y) in enumerate(table):
            levels = z[:, 1 + world.columns:].argmax(1) if world.levels else None
            for k in range(len(y)):
                cells = [repr(float(v)) for v in z[k, 1:1 + world.columns]]
                if world.levels:
                    cells.append("abcd"[levels[k]])
                file.write(f"a{i:03}," + ",".join(cells) + f",{float(y[k])!r}\n")


def call(affpcl, folder, *arguments):
    done = subprocess.run([affpcl, *arguments, "--target", "y", "--threads", "1", "--json"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"affpcl {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


class Coding:
    """The model's standardised columns: z @ matrix, for z = (1, numbers, one per level)."""

    def __init__(self, model, width):
        names = {"intercept": 0, **{f"x{j}": 1 + j for j in range(width)}}
        names.update({f"c={'abcd'[l]}": 1 + l for l in range(4)})
        numbers = sum(1 for c in model["columns"] if "levels" not in c)
        at = [names[c] + (numbers if c.startswith("c=") else 0) for c in model["coefficients"]]
        mean = np.concatenate([[0]] + [c["mean"] for c in model["columns"]])
        sd = np.concatenate([[1]] + [c["sd"] for c in model["columns"]])
        self.matrix = np.zeros((width, len(at)))
        self.matrix[at, range(len(at))] = 1 / sd
        self.matrix[0] -= mean / sd

    def from_raw(self, x):
        """Coefficients of the standardised columns of z -> z @ x; x is 0 for the first level."""
        return np.linalg.lstsq(self.matrix, x, rcond=None)[0]


def ridge(X, y):
    """affpcl/mixed/ridge.cc: slopes shrunk to 0, strength by generalised cross-validation."""
    n, d = X.shape
    mean, mean_y = X[:, 1:].mean(0), y.mean()
    Z, v = X[:, 1:] - mean, y - mean_y
    e, Q = np.linalg.eigh(Z.T @ Z)
    e, c = np.maximum(e, 0), Q.T @ (Z.T @ v)
    strength = n * 10.0 ** (np.arange(-24, 17) / 4)
    shrunk = 1 / (e + strength[:, None])
    freedom = 1 + shrunk @ e
    z = c * shrunk
    rss = np.maximum(1e-14 * (v @ v), v @ v - 2 * z @ c + (z * z) @ e)
    allowed = freedom <= 0.95 * n
    allowed[-1] = True
    gcv = np.where(allowed, rss / np.maximum(n - freedom, 1e-300) ** 2, np.inf)
    slope = Q @ z[gcv.argmin()]
    return np.concatenate([[mean_y - mean @ slope], slope])


class Fitted:
    """What `fit` gives each agent of a table, and what each learns alone, as coefficients of z."""

    def __init__(self, affpcl, folder, world, table, *options):
        write_csv(folder / "t.csv", world, table)
        self.summary = call(affpcl, folder, "fit", "t.csv", "--out", "m", "--force", *options)
        self.model = json.loads((folder / "m" / "model.json").read_text())
        self.coding = Coding(self.model, world.x.shape[1])
        to_raw = self.coding.matrix
        own = [a["channels"][0]["x"] for a in self.model["agents"]]
        alone = [ridge(z @ to_raw, y) for z, y in table]
        for a, x, y in zip(self.model["agents"], own, alone):
            if a["stacked"]["alone"] == 1 and np.abs(np.array(x) - y).max() > 1e-6 * max(1, np.abs(y).max()):
                raise RuntimeError(f"agent {a['name']}: this script's ridge is not fit's")
        self.given, self.alone = np.array(own) @ to_raw.T, np.array(alone) @ to_raw.T


def errors(world, moments, fitted):
    """Expected squared errors on new rows, beyond the noise: given, alone."""
    return [np.array([(x - t) @ M @ (x - t) for x, t, M in zip(xs, world.x, moments)]) for xs in (fitted.given, fitted.alone)]


def study_table(affpcl, seed, number, redraws):
    """One world: a record per agent, and the table's own."""
    world = World(seed, number)
    rng = np.random.default_rng([seed, number, 1])
    moments = [world.second_moment(i) for i in range(world.n)]
    noise = world.noise ** 2
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shown = Fitted(affpcl, folder, world, world.draw(rng))
        pilot = call(affpcl, folder, "affinity", "t.csv")
        whole = np.zeros((2, world.n))
        for _ in range(redraws):
            whole += np.array(errors(world, moments, Fitted(affpcl, folder, world, world.draw(rng), "--repeats", "1"))) / redraws
    in_hand = errors(world, moments, shown)  # a gain is that of the two models in hand
    gain = in_hand[1] - in_hand[0]
    close = 1e-5 * (in_hand[1] + noise)  # the script's ridge agrees with fit's to 1e-6
    agents = []
    for i, (a, m, q) in enumerate(zip(shown.summary["agents"], shown.model["agents"], pilot["agents"])):
        truth = shown.coding.from_raw(world.x[i])
        fit = m["channels"][0]
        inside = np.abs(truth - fit["x"]) <= NORMAL_90 * np.array(fit["se"])
        agents.append(dict(
            table=number, agent=i, rows=int(world.rows[i]), quiet=bool((noise < noise[i]).mean() < 1 / 3), given=a["given"],
            verdict=a["verdict"],
            gain=a["gain"]["mean"], gain_lo=a["gain"]["lo"], gain_hi=a["gain"]["hi"], p=a["p"], true_gain=gain[i],
            gain_covered=a["gain"]["lo"] is not None and a["gain"]["lo"] - close[i] <= gain[i] <= a["gain"]["hi"] + close[i],
            coefficients=len(inside), inside=int(inside.sum()),
            error_given=whole[0, i], error_alone=whole[1, i], noise=noise[i],
            alone_in_hand=in_hand[1][i], predicted=q["predicted_excess"]["value"], predicted_lo=q["predicted_excess"]["lo"],
            predicted_hi=q["predicted_excess"]["hi"], predicted_loss=q["predicted_loss"]["value"], predicted_loss_lo=q["predicted_loss"]["lo"],
            predicted_loss_hi=q["predicted_loss"]["hi"], prospect=q["prospect"], tv=q["environment"]["value"]))
    about = dict(table=number, n=world.n, columns=world.columns, levels=world.levels, rows=float(world.rows.mean()), spread=world.spread,
                 kind=world.kind, noise_kind=world.noise_kind, strangers=bool(world.strangers), correlation=world.correlation,
                 chosen=shown.summary["spread"][0])
    return about, agents


def ranks(values):
    order = np.argsort(values, kind="stable")
    out = np.empty(len(order))
    out[order] = np.arange(len(order))
    return out


def rank_correlation(a, b):
    return float(np.corrcoef(ranks(a), ranks(b))[0, 1])


def clustered(tables, top, bottom):
    """sum top / sum bottom over the agents of all tables, and its standard error with tables as clusters; None without any."""
    sums = np.array([(sum(map(top, agents)), sum(map(bottom, agents))) for _, agents in tables], float)
    total = sums[:, 1].sum()
    if total == 0:
        return None
    share = sums[:, 0].sum() / total
    residual = sums[:, 0] - share * sums[:, 1]
    return share, math.sqrt((residual**2).sum()) / total


def loss_ratio(a):
    return (a["error_given"] + a["noise"]) / (a["error_alone"] + a["noise"])


def no_gain(a):
    return a["true_gain"] <= EVEN * (a["alone_in_hand"] + a["noise"])


# What is measured of a set of agents: name, sum on top, sum below.
MEASURES = {
    "gain": (lambda a: a["gain_covered"], lambda a: a["gain_lo"] is not None),
    "coefficients": (lambda a: a["inside"], lambda a: a["coefficients"]),
    "false gains": (lambda a: no_gain(a) and a["verdict"] == "gained", no_gain),
    "false, truth <= 0": (lambda a: a["true_gain"] <= 0 and a["verdict"] == "gained", lambda a: a["true_gain"] <= 0),
    "error of alone": (loss_ratio, lambda a: 1),
    "above 1.02": (lambda a: loss_ratio(a) > 1.02, lambda a: 1)}

# Classes of worlds and of agents.
CLASSES = {"noise": lambda t, a: t["noise_kind"], "strangers": lambda t, a: "yes" if t["strangers"] else "no",
           "spread": lambda t, a: f"{t['spread']:g}", "columns correlated": lambda t, a: f"{t['correlation']:g}",
           "text column": lambda t, a: "yes" if t["levels"] else "no", "true kind": lambda t, a: t["kind"],
           "chosen kind": lambda t, a: t["chosen"],
           "agents": lambda t, a: "2-5" if t["n"] <= 5 else "6-20" if t["n"] <= 20 else "21-60",
           "rows": lambda t, a: "5-9" if a["rows"] < 10 else "10-39" if a["rows"] < 40 else "40-300",
           "given": lambda t, a: a["given"], "quietest third": lambda t, a: "noise is equal" if t["noise_kind"] != "unequal" else "yes" if a["quiet"] else "no"}


def report(done):
    """Lines of the table, and complaints: targets missed by more than two standard errors."""
    header = f"{'':28}{'agents':>7}" + "".join(f"{name:>19}" for name in MEASURES)
    lines, complaints = [header], []

    def line(name, tables):
        found = [clustered(tables, top, bottom) for top, bottom in MEASURES.values()]
        lines.append(f"{name:28}{sum(len(agents) for _, agents in tables):>7}" +
                     "".join(f"{'-' if f is None else f'{f[0]:.3f} ±{f[1]:.3f}':>19}" for f in found))
        return dict(zip(MEASURES, found))

    everybody = line("all", done)
    flat = [t for t in done if all(map(no_gain, t[1]))]
    worlds = line("no-gain worlds", flat) if flat else None
    for name, key in CLASSES.items():
        for value in sorted({key(t, a) for t, agents in done for a in agents}):
            line(f"{name}: {value}", [(t, [a for a in agents if key(t, a) == value]) for t, agents in done])
    for what in ("gain", "coefficients"):
        share, se = everybody[what]
        if not 0.85 - 2 * se <= share <= 0.95 + 2 * se:
            complaints.append(f"90 % intervals of {what} cover {share:.3f}")
    for group in (everybody, worlds):
        if group and group["false gains"] and group["false gains"][0] - 2 * group["false gains"][1] > 0.05:
            complaints.append(f"{group['false gains'][0]:.3f} of the agents without a gain are called gained")
    share, se = everybody["error of alone"]
    if share - 2 * se > 1.02:
        complaints.append(f"the expected error is {share:.3f} of learning alone")
    agents = [a for _, list_ in done for a in list_ if a["predicted"] is not None]
    excess = rank_correlation([a["predicted"] for a in agents], [a["error_given"] / a["error_alone"] for a in agents])
    loss = rank_correlation([a["predicted_loss"] for a in agents], list(map(loss_ratio, agents)))
    within = [rank_correlation([a["predicted_loss"] for a in list_], list(map(loss_ratio, list_)))
              for _, list_ in done if len(list_) >= 8]
    lines.append(f"predicted against realised, rank correlation over agents: excess {excess:.3f}, loss {loss:.3f}; "
                 f"within a table (8 agents or more), median {np.median(within):.2f}")
    for prospect in ("should gain", "about even", "should learn alone"):
        ratios = np.array([loss_ratio(a) for a in agents if a["prospect"] == prospect])
        if len(ratios):
            lines.append(f"  '{prospect}': {len(ratios)} agents; error of alone {np.median(ratios):.3f} in the median, "
                         f"below .99 in {np.mean(ratios < 0.99):.0%}, above 1.01 in {np.mean(ratios > 1.01):.0%}")
    inside = [a["predicted_loss_lo"] <= loss_ratio(a) <= a["predicted_loss_hi"] for a in agents]
    lines.append(f"  intervals of the predicted loss hold {np.mean(inside):.0%} (the truth here is itself a mean over few tables)")
    if math.atanh(excess) + 2 / math.sqrt(max(1, len(done) - 3)) < math.atanh(0.8):
        complaints.append(f"rank correlation of predicted and realised gain: {excess:.2f}")
    return lines, complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("--tables", type=int, default=200)
    parser.add_argument("--redraws", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, help="folder for agents.csv")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    affpcl, start, done = os.path.abspath(args.affpcl), time.time(), []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(study_table, affpcl, args.seed, k, args.redraws) for k in range(args.tables)]
        for count, job in enumerate(jobs, 1):
            done.append(job.result())
            if sys.stderr.isatty():
                left = (time.time() - start) / count * (len(jobs) - count)
                print(f"\r{count} of {len(jobs)} tables, {left / 60:.0f} min left ", end="", file=sys.stderr)
    lines, complaints = report(done)
    print("\n".join(lines))
    print(f"{len(done)} tables, {args.redraws} redraws, seed {args.seed}, {time.time() - start:.0f} s")
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
        with open(args.out / "agents.csv", "w", newline="") as file:
            rows = [{**table, **agent} for table, agents in done for agent in agents]
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    for complaint in complaints:
        print("FALLS SHORT:", complaint)
    return 1 if args.check and complaints else 0


if __name__ == "__main__":
    sys.exit(main())
