#!/usr/bin/env python3
"""Agents that join a centre later: are the intervals of `fit --centre`, `affinity --centre` and `predict` true?

usage: join.py PATH_TO_AFFPCL [--data FOLDER] [--worlds N] [--groups G] [--seed K] [--jobs J] [--check]

Worlds (studies/tables/simulate.py) keep some of their agents out; a centre comes from the others, and each of those kept out joins it
alone. What is true is known: the expected error of a model on new rows. In the real
tables of FOLDER groups of agents are left out in turn. Each joins with some of its rows, and the rest of them say what was true; they
are rows with noise, whose share is taken off (README.md). --check exits 1 where a coverage misses 90 % by more than 3 points and two
standard errors. Needs numpy (exit 77 without it).
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

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "studies" / "tables"))
import simulate
from simulate import NORMAL_90, Coding, World, ridge, write_csv

np = simulate.np
MOST_KEPT_OUT = 3  # agents of a world
ROWS_OF_A_JOINER = (10, 40)


def call(affpcl, folder, *words, read=True):
    done = subprocess.run([affpcl, *map(str, words), *(["--json"] if read else ["--quiet"])], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"affpcl {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout) if read else None


# --- worlds ----------------------------------------------------------------------------------------------------------

class Part:
    """Some agents of a world, as write_csv() wants them."""

    def __init__(self, world):
        self.columns, self.levels = world.columns, world.levels


def joined(affpcl, folder, world, i, rows, *options):
    """What fit gives agent i with these rows, as coefficients of z, and what it learns alone."""
    write_csv(folder / "my.csv", Part(world), [rows])
    summary = call(affpcl, folder, "fit", "my.csv", "--centre", "old/centre.json", "--out", "my", "--force", "--threads", 1, *options)
    model = json.loads((folder / "my" / "model.json").read_text())
    to_raw = Coding(model, world.x.shape[1]).matrix
    agent, = model["agents"]
    return summary, model, to_raw @ agent["channels"][0]["x"], to_raw @ ridge(rows[0] @ to_raw, rows[1])


def study_world(affpcl, seed, number):
    world = World(seed, number)
    rng = np.random.default_rng([seed, number, 2])
    kept_out = rng.permutation(world.n)[:min(MOST_KEPT_OUT, world.n - 3)] if world.n > 3 else []
    if not len(kept_out):
        return []
    records = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        table = world.draw(rng)
        write_csv(folder / "old.csv", Part(world), [rows for i, rows in enumerate(table) if i not in kept_out])
        try:
            call(affpcl, folder, "fit", "old.csv", "--target", "y", "--out", "old", "--no-score", "--threads", 1, read=False)
        except RuntimeError as error:  # a level that only those kept out have
            print(error, file=sys.stderr)
            return []
        for i in kept_out:
            M, noise = world.second_moment(i), world.noise[i] ** 2
            error = lambda x: (x - world.x[i]) @ M @ (x - world.x[i])
            summary, model, given, alone = joined(affpcl, folder, world, i, table[i])
            _, _, personalised, _ = joined(affpcl, folder, world, i, table[i], "--no-score")
            forecasts = {}
            for share in (.2, 1):
                f = call(affpcl, folder, "affinity", "my.csv", "--centre", "old/centre.json", "--threads", 1, "--pilot", share)
                f = f["agents"][0]["predicted_gain"]
                gained = error(alone) - error(personalised)
                close = 1e-5 * (error(alone) + noise)
                forecasts[f"forecast {share}"] = f["lo"] - close <= gained <= f["hi"] + close
            fit = model["agents"][0]["channels"][0]
            coding = Coding(model, world.x.shape[1])
            inside = np.abs(coding.from_raw(world.x[i]) - fit["x"]) <= NORMAL_90 * np.array(fit["se"])
            z, y = world.draw(rng)[i]
            s = z @ coding.matrix
            cov = np.zeros((len(fit["x"]),) * 2)
            cov[np.tril_indices(len(cov))] = fit["cov"]
            cov = cov + np.tril(cov, -1).T
            half = NORMAL_90 * np.sqrt(fit["s2"] + ((s @ cov) * s).sum(1))
            gain = summary["agents"][0]["gain"]
            true_gain, close = error(alone) - error(given), 1e-5 * (error(alone) + noise)
            records.append(dict(
                world=number, rows=len(table[i][1]), agents=world.n - len(kept_out), strangers=bool(world.strangers), spread=world.spread,
                noise_kind=world.noise_kind, verdict=summary["agents"][0]["verdict"], true_gain=true_gain, noise=noise,
                alone=error(alone), given=error(given),
                gain=gain["mean"], gain_covered=gain["lo"] is not None and gain["lo"] - close <= true_gain <= gain["hi"] + close,
                coefficients=len(inside), inside=int(inside.sum()),
                predictions=len(y), predicted=int((np.abs(s @ np.array(fit["x"]) - y) <= half).sum()),
                **forecasts))
    return records


# --- real tables -----------------------------------------------------------------------------------------------------

def images(path, size):
    """Images as the means of size x size blocks."""
    data = np.frombuffer(path.read_bytes(), np.uint8, offset=16).reshape(-1, 28, 28) / 255
    n = 28 // size
    return data.reshape(-1, n, size, n, size).mean((2, 4)).reshape(len(data), -1)


def image_rows(pixels, agents, targets):
    names = [f"p{j}" for j in range(pixels.shape[1])]
    return [{"agent": a, **dict(zip(names, map(repr, map(float, x)))), "y": y} for a, x, y in zip(agents, pixels, targets)]


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def real_tables(data):
    """Name, rows and options of every table that is there; the target is y."""
    def there(*names):
        return (data / names[0]).exists() or print(f"skipped: no {data / names[0]}", file=sys.stderr)
    if there("school/school.csv"):
        yield "school", read(data / "school/school.csv"), []
    if there("beijing_air/beijing_air.csv"):
        rows = [{"y": r.pop("PM2.5"), **{k: v for k, v in r.items() if k not in ("year", "month", "day", "hour")}}
                for r in read(data / "beijing_air/beijing_air.csv")]
        rng = np.random.default_rng(1)
        yield "beijing_air", [rows[i] for i in rng.permutation(len(rows))[:12000]], []
    if there("wisdm/wisdm.csv"):
        rows = read(data / "wisdm/wisdm.csv")
        yield "wisdm, YSTANDDEV", [{"y": r["YSTANDDEV"], **{k: v for k, v in r.items() if k not in ("YSTANDDEV", "label")}} for r in rows], []
        yield "wisdm, moves", [{"y": "yes" if r["label"] in ("Walking", "Jogging") else "no", **{k: v for k, v in r.items() if k != "label" and not k[1:].isdigit()}}
                               for r in rows], []  # without the histograms: 13 columns
    for name, image, label, agent, target in (
            ("qmnist, ink", "qmnist_writers/top60-images-idx3-ubyte", "qmnist_writers/top60-labels.csv", "writer", "ink"),
            ("qmnist, odd", "qmnist_writers/top60-images-idx3-ubyte", "qmnist_writers/top60-labels.csv", "writer", "odd"),
            ("chars, curved", "chars74k_hnd/images-idx3-ubyte", "chars74k_hnd/labels.csv", "agent", "curved")):
        if not there(image):
            continue
        pixels, labels = images(data / image, 7), read(data / label)
        y = {"ink": lambda: [repr(float(v)) for v in images(data / image, 4)[:, 24]],  # the middle, from coarse blocks
             "odd": lambda: ["odd" if int(l["digit"]) % 2 else "even" for l in labels],
             "curved": lambda: ["yes" if l["is_curved_letter"] == "1" else "no" for l in labels]}[target]()
        yield name, image_rows(pixels, [l[agent] for l in labels], y), []


def write(path, rows):
    with open(path, "w", newline="") as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerows(rows)


def losses(affpcl, folder, model, rows, classes):
    """The loss of every row by a model, and of numbers whether the interval holds the target."""
    (folder / "by.json").write_text(json.dumps(model))
    call(affpcl, folder, "predict", "by.json", "test.csv", "--out", "p.csv", "--force", read=False)
    predicted = read(folder / "p.csv")
    if classes:
        return -np.log([float(p[f"probability_{p['y']}"]) for p in predicted]), None
    y, p, lo, hi = (np.array([float(r[k]) for r in predicted]) for k in ("y", "prediction", "prediction_lo", "prediction_hi"))
    return (y - p) ** 2, (lo <= y) & (y <= hi)


def with_coefficients(model, agent, x):
    """The same model whose agent has these coefficients, without uncertainty."""
    changed = json.loads(json.dumps(model))
    for channel, own in zip(changed["agents"][agent]["channels"], x):
        channel["x"] = own
        channel.pop("near_cov", None)
        channel["cov"] = [0.0] * (len(own) * (len(own) + 1) // 2)
    return changed


def study_group(affpcl, name, rows, options, seed, group, groups):
    """The agents of one group join the centre of all others."""
    agents = sorted({r["agent"] for r in rows})
    rng = np.random.default_rng([seed, group])
    order = np.random.default_rng(seed).permutation(len(agents))
    out = {agents[i] for i in order[group::groups]}
    records = []
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        write(folder / "old.csv", [r for r in rows if r["agent"] not in out])
        call(affpcl, folder, "fit", "old.csv", "--target", "y", "--missing", "mean", "--out", "old", "--no-score", "--threads", 1, *options,
             read=False)
        classes = json.loads((folder / "old" / "centre.json").read_text())["classes"]
        for agent in sorted(out):
            own = [r for r in rows if r["agent"] == agent and r["y"] != ""]
            own = [own[i] for i in rng.permutation(len(own))]
            count = min(len(own) // 2, int(rng.integers(*ROWS_OF_A_JOINER, endpoint=True)))
            if count < 8 or len(own) - count < 20:
                continue
            if classes and len({r["y"] for r in own[:count]}) < 2:
                continue  # nothing to learn alone
            write(folder / "my.csv", own[:count])
            write(folder / "test.csv", own[count:])
            summary = call(affpcl, folder, "fit", "my.csv", "--centre", "old/centre.json", "--missing", "mean", "--out", "my", "--force",
                           "--threads", 1)
            model = json.loads((folder / "my" / "model.json").read_text())
            chosen, inside = losses(affpcl, folder, model, own[count:], classes)
            bare = model if not classes else with_coefficients(model, 0, [c["x"] for c in model["agents"][0]["channels"]])
            plain = chosen if not classes else losses(affpcl, folder, bare, own[count:], classes)[0]
            alone, _ = losses(affpcl, folder, with_coefficients(model, 0, model["agents"][0]["alone"]), own[count:], classes)
            by_centre, unseen = losses(affpcl, folder, json.loads((folder / "old" / "centre.json").read_text()), own[count:], classes)
            record = dict(table=name, agent=agent, rows=count, tests=len(chosen), chosen=chosen.mean(), alone=alone.mean(),
                          centre=by_centre.mean(), predicted=None if inside is None else inside.mean(),
                          unseen=None if unseen is None else unseen.mean(), verdict=summary["agents"][0]["verdict"])
            # Of classes what is true integrates the coefficients' uncertainty out, as the fit does.
            score = call(affpcl, folder, "fit", "my.csv", "--centre", "old/centre.json", "--missing", "mean", "--test", "test.csv",
                         "--threads", 1)["agents"][0]["score"]
            gain, difference = summary["agents"][0]["gain"], alone - plain
            difference = difference - difference.mean() + score["alone"] - score["given"]
            record |= dict(chosen=score["given"], alone=score["alone"], centre=score["pooled"])
            record |= noisy(gain["mean"], gain["lo"], gain["hi"], difference, "gain")
            if not classes:
                forecast = call(affpcl, folder, "affinity", "my.csv", "--centre", "old/centre.json", "--missing", "mean", "--pilot", 1,
                                "--threads", 1)["agents"][0]["predicted_gain"]
                record |= noisy(forecast["value"], forecast["lo"], forecast["hi"], difference, "forecast")
            records.append(record)
    return records


def noisy(mean, lo, hi, differences, name):
    """Whether an interval holds a mean that is known from rows with noise: the noise makes it wider."""
    realised, se = differences.mean(), differences.std(ddof=1) / math.sqrt(len(differences))
    if lo is None:
        return {name: mean, f"{name}_covered": None, "realised": realised}
    side = (hi - mean) if realised > mean else (mean - lo)
    return {name: mean, f"{name}_covered": bool(abs(realised - mean) <= math.hypot(side, NORMAL_90 * se) + 1e-12), "realised": realised}


# --- report ----------------------------------------------------------------------------------------------------------

def share(records, top, bottom=lambda r: 1, cluster="world"):
    """sum top / sum bottom, and its standard error with clusters."""
    sums = {}
    for r in records:
        t, b = top(r), bottom(r)
        at = sums.setdefault(r[cluster], [0.0, 0.0])
        at[0] += t
        at[1] += b
    sums = np.array(list(sums.values()))
    value = sums[:, 0].sum() / sums[:, 1].sum()
    return value, math.sqrt(((sums[:, 0] - value * sums[:, 1]) ** 2).sum()) / sums[:, 1].sum()


def text(found):
    return "       -      " if found is None else f"{found[0]:.3f} ±{found[1]:.3f}"


def report_worlds(records):
    complaints = []
    print(f"{'worlds':28}{'joiners':>8}{'predictions':>15}{'coefficients':>15}{'gain':>15}{'forecast, .2':>15}{'forecast, all':>15}{'loss, of alone':>16}")
    classes = [("all", lambda r: True), ("rows 5-9", lambda r: r["rows"] < 10), ("rows 10-39", lambda r: 10 <= r["rows"] < 40),
               ("rows 40-300", lambda r: r["rows"] >= 40), ("centre of at most 5", lambda r: r["agents"] <= 5),
               ("centre of 6-20", lambda r: 5 < r["agents"] <= 20), ("centre of 21-57", lambda r: r["agents"] > 20),
               ("no strangers", lambda r: not r["strangers"]), ("strangers", lambda r: r["strangers"]),
               *((f"noise: {k}", lambda r, k=k: r["noise_kind"] == k) for k in ("normal", "heavy", "unequal"))]
    for name, wanted in classes:
        some = [r for r in records if wanted(r)]
        if not some:
            continue
        found = dict(predictions=share(some, lambda r: r["predicted"], lambda r: r["predictions"]),
                     coefficients=share(some, lambda r: r["inside"], lambda r: r["coefficients"]),
                     gain=share(some, lambda r: r["gain_covered"]), **{k: share(some, lambda r, k=k: r[k]) for k in ("forecast 0.2", "forecast 1")})
        loss = share(some, lambda r: (r["given"] + r["noise"]) / (r["alone"] + r["noise"]))
        print(f"{name:28}{len(some):>8}" + "".join(f"{text(f):>15}" for f in found.values()) + f"{text(loss):>16}")
        if name == "all":
            complaints += [f"worlds: 90 % intervals of {what} cover {p:.3f}" for what, (p, se) in found.items() if abs(p - .9) > .03 + 2 * se]
    none = [r for r in records if r["true_gain"] <= .01 * (r["alone"] + r["noise"])]
    if none:
        print(f"of {len(none)} joiners without a gain {sum(r['verdict'] == 'gained' for r in none)} are called gained; "
              f"of {len(records) - len(none)} with one {sum(r['verdict'] == 'gained' for r in records if r not in none)}")
    return complaints


def report_tables(records):
    complaints = []
    print(f"{'tables':20}{'joiners':>8}{'rows':>6}{'chosen':>10}{'alone':>10}{'centre':>10}{'predictions':>15}{'unseen':>15}{'gain':>15}"
          f"{'forecast':>15}")
    for name in dict.fromkeys(r["table"] for r in records):
        some = [r for r in records if r["table"] == name]
        def covered(key):
            known = [r for r in some if r.get(key) is not None]
            return share(known, lambda r: r[key], cluster="agent") if known else None
        found = {k: covered(key) for k, key in (("predictions", "predicted"), ("unseen", "unseen"), ("gain", "gain_covered"),
                                                ("forecast", "forecast_covered"))}
        mean = {k: np.mean([r[k] for r in some]) for k in ("rows", "chosen", "alone", "centre")}
        print(f"{name:20}{len(some):>8}{mean['rows']:>6.0f}" + "".join(f"{mean[k]:>10.4g}" for k in ("chosen", "alone", "centre")) +
              "".join(f"{text(f):>15}" for f in found.values()))
        complaints += [f"{name}: 90 % intervals of {what} cover {f[0]:.3f}" for what, f in found.items()
                       if f and abs(f[0] - .9) > .03 + 2 * f[1]]
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl")
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--groups", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, help="file for all records, JSON")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    affpcl, start, complaints, records = os.path.abspath(args.affpcl), time.time(), [], []
    with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
        if args.worlds:
            jobs = [pool.submit(study_world, affpcl, args.seed, k) for k in range(args.worlds)]
            records = [r for job in jobs for r in job.result()]
            complaints += report_worlds(records)
        if args.data:
            jobs = [pool.submit(study_group, affpcl, name, rows, options, args.seed, g, args.groups)
                    for name, rows, options in real_tables(args.data) for g in range(args.groups)]
            found = [r for job in jobs for r in job.result()]
            complaints += report_tables(found)
            records += found
    print(f"{args.worlds} worlds, {args.groups} groups, seed {args.seed}, {time.time() - start:.0f} s")
    if args.out:
        args.out.write_text(json.dumps(records, default=float))
    for complaint in complaints:
        print("FALLS SHORT:", complaint)
    return 1 if args.check and complaints else 0


if __name__ == "__main__":
    sys.exit(main())
