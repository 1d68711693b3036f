"""AffPCL with absent agents against the Python of docs/explain/participation.md, iterate by iterate."""
import csv
import json
import pathlib

import pytest

np = pytest.importorskip("numpy")

import _markdown

page = _markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "participation.md")

N, D, S, STEPS, STEP = 5, 3, 4, 25, 0.05
SCHEDULES = {
    "all": [range(N)],
    "one": [[3], [0], [1], [4], [2]],
    "some": [[0, 1], [2, 3, 4], [0, 2], [1, 3], [4, 0, 1, 2], [3, 4]],
}


def system():
    rng = np.random.default_rng(7)
    noise = lambda *shape: rng.normal(size=shape)
    return dict(A=1.5 * np.eye(D) + 0.4 * noise(S, D, D), Phi=0.6 * np.eye(D) + 0.2 * noise(S, D, D),
                mu=rng.dirichlet(np.ones(S), size=N), theta=noise(N, D), x0=noise(N, D), xc0=noise(D),
                thetac0=noise(D), states=rng.integers(S, size=(N, STEPS)))


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("ratio", ["exact", "counts"])
def test_the_program_agrees_with_the_page(affpcl, name, ratio):
    world = system()
    affpcl.write("system.json", json.dumps({k: v.tolist() for k, v in world.items()}))
    rows = [f"{r + 1},{i}" for r, agents in enumerate(SCHEDULES[name]) for i in agents]
    affpcl.write("who.csv", "\n".join(["round,agent", *rows]) + "\n")
    more = 'shrink = "none"' if ratio == "counts" else ""
    affpcl.write("s.toml", f"""[problem]
kind = "tabular"
file = "system.json"
[run]
steps = {STEPS}
replicates = 1
step_size = {STEP}
schedule = "who.csv"
[[method]]
kind = "affpcl"
ratio = "{ratio}"
{more}
""")
    affpcl.succeed("run", "s.toml", "--quiet", "--trace", "t.csv")
    found = np.zeros((STEPS + 1, N, D))
    for row in csv.DictReader(affpcl.read("t.csv").splitlines()):
        if row["what"] == "x":
            found[int(row["step"]), int(row["agent"]), int(row["index"])] = float(row["value"])

    P = dict(A=world["A"], Phi=world["Phi"], mu=world["mu"],
             b=np.einsum("sdk,ik->isd", world["Phi"], world["theta"]))
    rounds = [list(SCHEDULES[name][t % len(SCHEDULES[name])]) for t in range(STEPS)]
    path = page["affpcl"](P, world["x0"], world["xc0"], world["thetac0"], world["states"], rounds, STEP, ratio)
    np.testing.assert_allclose(found[1:], path, rtol=0, atol=1e-12)
