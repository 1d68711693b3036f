#!/usr/bin/env python3
"""`affpcl affinity DATA` from end to end: what it prints and writes, and what it refuses.

usage: affinity.py PATH_TO_AFFPCL        (standard library only; writes to a temporary folder)
"""
import csv
import json
import random

from _harness import check, refused, run, tmp

rng = random.Random(1)
rows = []
for site in [f"s{k:02}" for k in range(14)]:
    slope = 1 + 0.2 * rng.gauss(0, 1)
    for k in range(60):
        u, v = rng.gauss(0, 1), rng.gauss(0, 1)
        rows.append(f"{site},{u:.4f},{v:.4f},{'xyz'[k % 3]},7,{slope * u - v + rng.gauss(0, 1):.4f}")
(tmp / "t.csv").write_text("site,u,v,kind,same,y\n" + "\n".join(rows) + "\n")

done = run("affinity", "t.csv", "--target", "y", "--out", "a")
check("a table is printed", done.returncode == 0 and "should gain" in done.stdout and "lower bound" in done.stdout
      and "most alike" in done.stdout and "left out, since constant: same" in done.stdout, done.stderr)
summary = json.loads((tmp / "a" / "summary.json").read_text())
check("a manifest", {"version", "spec", "seed", "command", "host", "threads", "seconds"} <= set(summary["manifest"])
      and summary["manifest"]["spec"]["pilot"] == 0.2)
check("scores with intervals", all(summary[k]["lo"] <= summary[k]["value"] <= summary[k]["hi"] and k in summary["intervals"]
                                   for k in ("delta_env", "delta_obj", "noise_share")))
agents = summary["agents"]
check("every agent has its scores", len(agents) == 14 and all(
    a["pilot_rows"] == 12 and a["predicted_loss"]["lo"] <= a["predicted_loss"]["value"] <= a["predicted_loss"]["hi"]
    and a["prospect"] in ("should gain", "about even", "should learn alone") for a in agents))
check("prospects are counted", sum(summary["prospects"].values()) == 14)
with open(tmp / "a" / "affinity.csv") as file:
    lines = list(csv.DictReader(file))
check("affinity.csv agrees", [float(r["predicted_loss"]) for r in lines] == [a["predicted_loss"]["value"] for a in agents])
with open(tmp / "a" / "matrix.csv") as file:
    matrix = list(csv.reader(file))
check("matrix.csv is square, ordered and symmetric", matrix[0][1:] == summary["alike"]["order"] == [r[0] for r in matrix[1:]]
      and all(matrix[i][j] == matrix[j][i] for i in range(1, 15) for j in range(1, 15)) and matrix[1][1] == "0")
same = [json.loads(run("affinity", "t.csv", "--target", "y", "--json", "--threads", k).stdout) for k in (1, 2)]
for s in same:
    del s["manifest"]
check("--json; two threads, same numbers", same[0] == same[1])
other = json.loads(run("affinity", "t.csv", "--target", "y", "--json", "--seed", 5).stdout)
check("another seed, another pilot", other["delta_obj"] != summary["delta_obj"])
more = json.loads(run("affinity", "t.csv", "--target", "y", "--json", "--pilot", 1, "--features", "u,v").stdout)
check("--pilot, --features", more["pilot_rows"] == 840 and more["columns"] == 2)
wide = more["delta_obj"]["hi"] - more["delta_obj"]["lo"]
check("more rows, a shorter interval", wide < summary["delta_obj"]["hi"] - summary["delta_obj"]["lo"])
classes = json.loads(run("affinity", "t.csv", "--target", "kind", "--exclude", "y", "--json").stdout)
check("classes", classes["manifest"]["spec"]["task"] == "classification" and len(classes["spread"]) == 3)

refused("no target", "affinity", "t.csv", says=("--target",))
refused("a share of 0", "affinity", "t.csv", "--target", "y", "--pilot", 0, says=("--pilot 0",))
refused("no such column", "affinity", "t.csv", "--target", "z", says=("'z'",))
refused("a spec among data", "affinity", "t.csv", "s.toml", "--target", "y", says=(".toml",))
refused("an option of specs", "affinity", "t.csv", "--target", "y", "--measure", says=("--measure is of no use",))
refused("--set with data", "affinity", "t.csv", "--target", "y", "--set", "a=1", says=("--set is of no use",))
refused("an option of data", "affinity", "s.toml", "--target", "y", says=("--target is of no use",))
refused("a folder that exists", "affinity", "t.csv", "--target", "y", "--out", "a", says=("exists already",))
