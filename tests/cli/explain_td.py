#!/usr/bin/env python3
"""docs/explain/td.md: its claims counted, and the program against its last function, every iterate to 1e-12.

usage: explain_td.py PATH_TO_AFFPCL
"""
import csv
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

page = Bag(**_markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "td.md"))
failed = 0


def check(name, good, why=""):
    global failed
    failed += not good
    print("ok    " if good else "FAILED", name, "" if good else why, flush=True)


# --- the ratio is of pairs -------------------------------------------------------------------------------------------
rng = np.random.default_rng(1)
for gamma in (.1, .9):
    S, d, n = 4, 3, 3
    phi = rng.normal(size=(S, d))
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    Ps = rng.dirichlet(np.ones(S), size=(n, S))
    rc, xc = rng.normal(size=(S, S)), rng.normal(size=d)
    exact = page.correction_mean(phi, Ps, rc, xc, gamma, page.pair_ratio(Ps))
    states = page.correction_mean(phi, Ps, rc, xc, gamma, page.state_ratio(Ps))
    check(f"gamma {gamma}: pairs leave no mean", np.abs(exact).max() < 1e-14, exact)
    check(f"gamma {gamma}: states do", np.abs(states).max() > .01, states)
    only_states = np.repeat(rc[:, :1], S, axis=1)      # rewards that do not depend on where one goes
    bias = np.abs(page.correction_mean(phi, Ps, only_states, xc, gamma, page.state_ratio(Ps))).max()
    check(f"gamma {gamma}: then the bias is in proportion to gamma",
          np.isclose(bias / gamma, np.abs(page.correction_mean(phi, Ps, only_states, xc, .5, page.state_ratio(Ps))).max() / .5))
    Abar, bbar = page.mean_system(phi, Ps[0], rc, gamma)
    least = np.linalg.eigvalsh((Abar + Abar.T) / 2)[0]
    cov = np.einsum("o,oa,ob->ab", page.stationary(Ps[0]), phi, phi)
    check(f"gamma {gamma}: lambda's bound", least >= (1 - gamma) * np.linalg.eigvalsh(cov)[0] - 1e-14)

# --- the program on a log --------------------------------------------------------------------------------------------
STEPS, GAMMA, ALPHA = 60, .7, .25
names = ["home", "road", "work"]
rows = []
for i in range(4):
    P, o, mine = rng.dirichlet(np.ones(3), size=3), 0, []
    for t in range(25 + i):       # of different length: each agent's rows begin again when they are used up
        end = rng.random() < .1
        next = None if end else int(rng.choice(3, p=P[o]))
        mine.append((names[o], None if end else names[next], round(float(rng.normal()), 3)))
        o = 0 if end else next
    rows.append(mine)
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    order = []                    # states by appearance
    with open(folder / "log.csv", "w", newline="") as f:
        out = csv.writer(f)
        out.writerow(["agent", "state", "next_state", "reward", "done"])
        for t in range(max(map(len, rows))):
            for i, mine in enumerate(rows):
                if t < len(mine):
                    o, next, r = mine[t]
                    out.writerow([f"a{i}", o, next or "", r, int(next is None)])
                    order += [s for s in (o, next) if s is not None and s not in order]
    (folder / "spec.toml").write_text(f'''[problem]
kind = "td"
file = "log.csv"
gamma = {GAMMA}
[run]
steps = {STEPS}
replicates = 1
step_size = {ALPHA}
[[method]]
kind = "affpcl"
ratio = "counts"
shrink = "none"
''')
    subprocess.run([pathlib.Path(sys.argv[1]).resolve(), "run", "spec.toml", "--quiet", "--trace", "trace.csv"], cwd=folder,
                   check=True)
    want = page.affpcl_on_a_log(rows, order, GAMMA, ALPHA, STEPS)
    worst, seen = 0, 0
    with open(folder / "trace.csv", newline="") as f:
        for r in csv.DictReader(f):
            t = int(r["step"])
            if t == 0 or r["what"] not in ("x", "xc"):
                continue
            x, xc = want[t - 1]
            value = x[int(r["agent"])][int(r["index"])] if r["what"] == "x" else xc[int(r["index"])]
            worst, seen = max(worst, abs(float(r["value"]) - value)), seen + 1
check("every iterate of a run on a log", seen == STEPS * (4 + 1) * 3 and worst < 1e-12, (seen, worst))
sys.exit(failed > 0)
