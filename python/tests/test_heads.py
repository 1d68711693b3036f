"""examples/heads: personal heads on features and labels from files."""
import pathlib
import subprocess
import sys

import numpy as np

HEADS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "heads" / "heads.py"


def run(*words):
    return subprocess.run([sys.executable, str(HEADS), *map(str, words)], check=True, capture_output=True, text=True,
                          timeout=120).stdout


def scores(text):
    lines = [line.split() for line in text.splitlines()]
    return {line[0]: float(line[line.index("loss") + 1]) for line in lines if "loss" in line}


def test_heads_of_named_users_with_opposite_answers(tmp_path):
    """Two kinds of users give opposite answers to the same features: a pooled head knows nothing, personal ones do."""
    draw = np.random.default_rng(2)
    X = draw.normal(size=(800, 3))
    user = np.repeat([f"user {k}" for k in range(20)], 40)
    sign = np.repeat([1 if k % 2 else -1 for k in range(20)], 40)
    y = np.where(sign * 2 * X[:, 0] + draw.logistic(size=800) > 0, "yes", "no")
    np.save(tmp_path / "X.npy", X)
    (tmp_path / "labels.csv").write_text("agent,label\n" + "".join(f"{u},{v}\n" for u, v in zip(user, y)))
    found = scores(run(tmp_path / "X.npy", tmp_path / "labels.csv"))
    assert found["personal"] < 0.9 * found["pooled"] and found["personal"] <= 1.05 * found["own"]


def test_simulated_heads_stand_beside_fedrep():
    text = run("--simulate", 40)
    assert {line.split()[0] for line in text.splitlines()} >= {"personal", "pooled", "own", "fedrep"}
