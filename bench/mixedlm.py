"""`fit` beside statsmodels' MixedLM on the same tables: likelihoods, variances, held-out error and time.

    pip install statsmodels
    python bench/mixedlm.py build/release/affpcl [SCHOOL.csv]

The first table is sleepstudy, which the tests hold. SCHOOL.csv has an agent, a target y and numeric columns; 40 % of each
agent's rows, drawn at random, are held out, three times.
"""
import csv
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
import statsmodels
import statsmodels.formula.api as smf

ROOT = pathlib.Path(__file__).resolve().parents[1]


def sleep():
    sys.path.insert(0, str(ROOT / "tests" / "cli"))
    spec = importlib.util.spec_from_file_location("sleep", ROOT / "tests" / "cli" / "test_fit_estimate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.sleep_table()


def timed(work, repeats=3):
    best, found = float("inf"), None
    for _ in range(repeats):
        start = time.process_time()
        found = work()
        best = min(best, time.process_time() - start)
    return best, found


def estimates(program, folder):
    path = folder / "sleep.csv"
    path.write_text(sleep())
    frame = pd.read_csv(path)
    frame["z"] = (frame["day"] - frame["day"].mean()) / frame["day"].std(ddof=0)
    for reml in (True, False):
        model = smf.mixedlm("reaction ~ z", frame, groups="subject", re_formula="1", vc_formula={"z": "0 + z"})
        seconds, fit = timed(lambda: model.fit(reml=reml))
        print(f"statsmodels {statsmodels.__version__} {'REML' if reml else 'ML':4} log-likelihood {fit.llf:.3f}  "
              f"variances {fit.cov_re.iloc[0, 0]:.2f}, {fit.vcomp[0]:.2f} / {fit.scale:.2f}  {seconds:.2f} s")
        start = time.perf_counter()
        subprocess.run([program, "fit", path, "--target", "reaction", "--agent", "subject", "--plain", "--covariance",
                        "diagonal", "--estimate", "reml" if reml else "ml", "--no-score", "--threads", "1", "--out",
                        folder / f"m{reml}", "--quiet"], check=True)
        seconds = time.perf_counter() - start
        found = json.loads(subprocess.run([program, "inspect", folder / f"m{reml}", "--json"], check=True,
                                          capture_output=True, text=True).stdout)["channels"][0]
        sd = [s**2 for s in found["spread_sd"]]
        print(f"affpcl            {'REML' if reml else 'ML':4} log-likelihood {found['log_likelihood']:.3f}  "
              f"variances {sd[0]:.2f}, {sd[1]:.2f} / {found['noise']**2:.2f}  {seconds:.2f} s with start-up and files")


def independent(frame, columns):
    """Those that are no combination of the ones before: statsmodels cannot solve with others."""
    kept, matrix = [], np.ones((len(frame), 1))
    for name in columns:
        wider = np.column_stack([matrix, frame[name]])
        if np.linalg.matrix_rank(wider) > matrix.shape[1]:
            kept, matrix = [*kept, name], wider
    return kept


def held_out(program, table, folder):
    frame = pd.read_csv(table, dtype={"agent": str})
    columns = independent(frame, [c for c in frame.columns[2:] if frame[c].nunique() > 1])
    for seed in range(3):
        share = frame.groupby("agent")["y"].transform(lambda y: np.random.default_rng([seed, len(y)]).random(len(y)))
        learnt, test = frame[share < 0.6], frame[share >= 0.6]
        test = test[test["agent"].isin(set(learnt["agent"]))]
        learnt.to_csv(folder / "learnt.csv", index=False, quoting=csv.QUOTE_MINIMAL)
        test.to_csv(folder / "test.csv", index=False)
        model = smf.mixedlm("y ~ " + " + ".join(columns), learnt, groups="agent")
        seconds, fit = timed(lambda: model.fit(), 1)
        effects = test["agent"].map(lambda a: float(fit.random_effects[a].iloc[0])).to_numpy()
        r2 = 1 - ((test["y"] - fit.predict(test) - effects) ** 2).mean() / test["y"].var(ddof=0)
        start = time.perf_counter()
        subprocess.run([program, "fit", folder / "learnt.csv", "--target", "y", "--no-score", "--threads", "1", "--out",
                        folder / f"s{seed}", "--quiet"], check=True)
        took = time.perf_counter() - start
        subprocess.run([program, "predict", folder / f"s{seed}", folder / "test.csv", "--out", folder / f"p{seed}.csv", "--quiet"],
                       check=True)
        predicted = pd.read_csv(folder / f"p{seed}.csv")["prediction"].to_numpy()
        ours = 1 - ((test["y"].to_numpy() - predicted) ** 2).mean() / test["y"].var(ddof=0)
        print(f"split {seed}: held-out R^2 statsmodels, random intercepts {r2:.4f} in {seconds:.2f} s; affpcl {ours:.4f} in {took:.2f} s")


def main():
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        estimates(sys.argv[1], pathlib.Path(name))
        if len(sys.argv) > 2:
            held_out(sys.argv[1], sys.argv[2], pathlib.Path(name))


if __name__ == "__main__":
    main()
