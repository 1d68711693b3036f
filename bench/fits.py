#!/usr/bin/env python3
"""`affpcl fit` beside GPBoost, statsmodels and LightGBM: the same model's likelihood and time, and predictions.

usage: build/bench-venv/bin/python fits.py PATH_TO_AFFPCL [--repeats 3] [--json FILE]         (tools/setup bench)

All use one thread, and CPU-seconds count, affpcl's with start, reading and writing. Every program fits a random intercept
and random slopes with a diagonal covariance, the linear model by maximum likelihood, the logistic one by Laplace's
approximation; its likelihood is compared with affpcl's. A ratio is taken within a repetition. The last two tables are for
prediction: one where agents' slopes differ, one where all agents share a curved function, which a linear model cannot
have. 40 % of the rows are held out.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import tempfile
import time
import warnings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"
import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from measure import Measure  # noqa: E402
from timing import interval  # noqa: E402


def has(name):
    return importlib.util.find_spec(name) is not None


def linear_table(agents, rows, columns, binary=False, curved=False, seed=1):
    draw = np.random.default_rng(seed)
    agent = np.repeat(np.arange(agents), rows)
    x = draw.normal(size=(agents * rows, columns))
    if curved:
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.3 * draw.normal(size=agents)[agent]
    else:
        y = (x * (0.5 + 0.5 * draw.normal(size=(agents, columns)))[agent]).sum(1) + 0.5 * draw.normal(size=agents)[agent]
    y = (draw.random(len(y)) < 1 / (1 + np.exp(-y))).astype(int) if binary else y + draw.normal(size=len(y))
    table = pd.DataFrame(x, columns=[f"x{k}" for k in range(columns)])
    table = (table - table.mean()) / table.std(ddof=0)  # as affpcl does: the same random effects
    table.insert(0, "y", y)
    table.insert(0, "agent", agent)
    return table


class Affpcl:
    def __init__(self, program, folder):
        self.program, self.folder, self.measure = program, folder, Measure()

    def fit(self, table, *options):
        path = self.folder / "rows.csv"
        table.to_csv(path, index=False)
        seconds, memory = self.measure(self.program, ["fit", path, "--target", "y", "--agent", "agent", "--threads", "1", "--quiet",
                                                      "--force", "--out", self.folder / "model", *options])
        return seconds, memory

    def likelihood(self):
        model = json.loads((self.folder / "model" / "model.json").read_text())
        found = model["channels"][0].get("log_likelihood")
        return model["family"]["log_likelihood"] if found is None else found  # of a generalised model

    def predict(self, test):
        test.to_csv(self.folder / "test.csv", index=False)
        subprocess.run([self.program, "predict", self.folder / "model", self.folder / "test.csv", "--out", self.folder / "p.csv",
                        "--quiet", "--force"], check=True)
        return pd.read_csv(self.folder / "p.csv")["prediction"].to_numpy()


def gpboost(table, binary):
    import gpboost as gpb
    columns = [c for c in table if c.startswith("x")]
    Z = table[columns].to_numpy()
    start = time.process_time()
    model = gpb.GPModel(group_data=table["agent"].to_numpy(), group_rand_coef_data=Z, ind_effect_group_rand_coef=[1] * len(columns),
                        likelihood="bernoulli_logit" if binary else "gaussian")
    model.fit(y=table["y"].to_numpy(float), X=np.column_stack([np.ones(len(Z)), Z]))
    return time.process_time() - start, -model.get_current_neg_log_likelihood()


def statsmodels(table, binary):
    import statsmodels.formula.api as smf
    columns = [c for c in table if c.startswith("x")]
    start = time.process_time()
    model = smf.mixedlm("y ~ " + " + ".join(columns), table, groups="agent", re_formula="1",
                        vc_formula={c: f"0 + {c}" for c in columns})
    return time.process_time() - start, model.fit(reml=False).llf, time.process_time() - start


def likelihoods(ours, name, table, binary, rivals, repeats):
    seconds, value = {}, {}
    options = ["--family", "binomial", "--approximation", "laplace"] if binary else ["--plain", "--estimate", "ml"]
    for _ in range(repeats):
        seconds.setdefault("affpcl", []).append(ours.fit(table, "--no-score", "--covariance", "diagonal", *options)[0])
        value["affpcl"] = ours.likelihood()
        for rival, run in rivals.items():
            found = run(table, binary)
            seconds.setdefault(rival, []).append(found[-1] if len(found) == 3 else found[0])
            value[rival] = float(found[1])
    result = {"name": name, "rows": len(table), "programs": {}}
    for who, times in seconds.items():
        result["programs"][who] = {"seconds": interval(times), "ratio": interval(np.divide(times, seconds["affpcl"])),
                                   "log_likelihood": value[who], "above_affpcl": value[who] - value["affpcl"]}
    return result


def predictions(ours, name, table, repeats):
    def lightgbm(learnt, test):
        import lightgbm as lgb
        columns = [c for c in table if c != "y"]
        start = time.process_time()
        as_category = lambda t: t[columns].assign(agent=t["agent"].astype("category"))
        model = lgb.LGBMRegressor(n_estimators=300, learning_rate=0.05, num_leaves=31, n_jobs=1, verbose=-1).fit(
            as_category(learnt), learnt["y"])
        return model.predict(as_category(test)), time.process_time() - start

    found = {}
    for seed in range(repeats):
        held = np.random.default_rng(seed).random(len(table)) < 0.4
        learnt, test = table[~held], table[held]
        left = ((test["y"] - test["y"].mean()) ** 2).sum()
        r2 = lambda p: float(1 - ((test["y"] - p) ** 2).sum() / left)
        seconds, _ = ours.fit(learnt)
        found.setdefault("affpcl", []).append((r2(ours.predict(test)), seconds))
        if has("lightgbm"):
            p, seconds = lightgbm(learnt, test)
            found.setdefault("LightGBM", []).append((r2(p), seconds))
    return {"name": name, "rows": len(table), "programs": {
        who: {"r2": interval([r for r, _ in runs]), "seconds": interval([s for _, s in runs])} for who, runs in found.items()}}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("affpcl", type=pathlib.Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path)
    o = parser.parse_args()
    warnings.simplefilter("ignore")
    load, fits, predicted = os.getloadavg()[0], [], []
    with tempfile.TemporaryDirectory() as folder:
        ours = Affpcl(o.affpcl.resolve(), pathlib.Path(folder))
        both = {"GPBoost": gpboost} if has("gpboost") else {}
        linear = both | ({"statsmodels": statsmodels} if has("statsmodels") else {})
        for name, shape, binary, rivals in (("linear, 40 agents x 25 rows x 2", (40, 25, 2), False, linear),
                                            ("linear, 1,000 agents x 50 rows x 5", (1000, 50, 5), False, both),
                                            ("logistic, 200 agents x 50 rows x 2", (200, 50, 2), True, both)):
            fits.append(likelihoods(ours, name, linear_table(*shape, binary=binary), binary, rivals, o.repeats))
            for who, r in fits[-1]["programs"].items():
                print(f"{name:38} {who:12} {r['seconds'][0]:8.3f} s, {r['ratio'][0]:7.2f} [{r['ratio'][1]:.2f}, {r['ratio'][2]:.2f}] times "
                      f"affpcl's; log-likelihood {r['log_likelihood']:.3f} ({r['above_affpcl']:+.4f})", flush=True)
        for name, curved in (("slopes of each agent's own", False), ("one curved function of all", True)):
            predicted.append(predictions(ours, name, linear_table(100, 100, 3, curved=curved), o.repeats))
            for who, r in predicted[-1]["programs"].items():
                print(f"{name:38} {who:12} R^2 {r['r2'][0]:.3f} [{r['r2'][1]:.3f}, {r['r2'][2]:.3f}], {r['seconds'][0]:.2f} s", flush=True)
    missing = [name for name in ("gpboost", "statsmodels", "lightgbm") if not has(name)]
    if missing:
        print("not installed, so left out: " + ", ".join(missing))
    if o.json:
        o.json.parent.mkdir(parents=True, exist_ok=True)
        o.json.write_text(json.dumps({"machine": platform.platform(), "processors": os.cpu_count(), "load": [load, os.getloadavg()[0]],
                                      "repeats": o.repeats, "fits": fits, "predictions": predicted}, indent=1) + "\n")


if __name__ == "__main__":
    main()
