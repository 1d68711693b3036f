"""`affpcl fit --within` and `--crossed` against docs/explain/levels.md: dense algebra finds the same model."""
import pathlib
from types import SimpleNamespace as Bag

import pytest

np = pytest.importorskip("numpy")

import _markdown

page = Bag(**_markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "levels.md"))
TOLERANCE = 1e-8


# --- tables ----------------------------------------------------------------------------------------------------------

def table(seed, n, rows, levels, nested, sd, columns=2):
    """Agents with x_i = x_c + sd z_i, and levels whose effects have standard deviation 1."""
    rng = np.random.default_rng(seed)
    agent = np.repeat(np.arange(n), rows)
    level = agent % levels if nested else rng.integers(levels, size=n * rows)
    X = np.hstack([np.ones((n * rows, 1)), 0.7 + 1.3 * rng.normal(size=(n * rows, columns))])
    x = rng.normal(size=columns + 1) + np.asarray(sd) * rng.normal(size=(n, columns + 1))
    y = (X * x[agent]).sum(1) + rng.normal(size=levels)[level] + rng.normal(size=n * rows)
    return Bag(agent=agent, level=level, X=X, y=y)


CASES = {
    "nested": Bag(option="--within", kind="diagonal", common=[],
                  make=lambda: table(1, 40, 8, 8, True, [1.0, 0.3, 1.5])),
    "crossed": Bag(option="--crossed", kind="scalar", common=[],
                   make=lambda: table(2, 30, 10, 12, False, 0.7)),
    "intercepts": Bag(option="--crossed", kind="diagonal", common=["x0", "x1"],
                      make=lambda: table(3, 12, 25, 40, False, [1.0, 0.0, 0.0])),
}
CASES |= {f"{name}-ml": Bag(**{**vars(case), "estimate": "ml"}) for name, case in CASES.items()}


# --- what the program and the page find ------------------------------------------------------------------------------

def write(affpcl, name, t):
    lines = ["agent,level," + ",".join(f"x{j}" for j in range(t.X.shape[1] - 1)) + ",y"]
    lines += [",".join([str(a), f"L{g}", *(repr(float(v)) for v in (*x[1:], y))])
              for a, g, x, y in zip(t.agent, t.level, t.X, t.y)]
    affpcl.write(name, "\n".join(lines) + "\n")


@pytest.fixture(scope="module", params=CASES, ids=str)
def both(request, shared_affpcl):
    """A table, the program's model of it, and the page's, in the target's units."""
    case = CASES[request.param]
    t = case.make()
    write(shared_affpcl, f"{request.param}.csv", t)
    more = ["--common", ",".join(case.common)] if case.common else []
    restricted = not hasattr(case, "estimate")
    more += [] if restricted else ["--estimate", case.estimate]
    shared_affpcl.succeed("fit", f"{request.param}.csv", "--target", "y", case.option, "level", *more,
                          "--out", request.param, "--quiet", "--no-score")
    model = shared_affpcl.read_json(f"{request.param}/model.json")
    mean, sd = t.X.mean(0), t.X.std(0)
    mean[0], sd[0] = 0, 1
    X, shift, scale = (t.X - mean) / sd, t.y.mean(), t.y.std()
    y = (t.y - shift) / scale
    random = [0] if case.common else list(range(X.shape[1]))
    *D, tau2, s2 = page.variances(X, y, page.directions(X, t.agent, t.level, case.kind, random),
                                   restricted=restricted)
    if case.kind == "scalar":
        D = D * len(random)
    found = page.effects(X, y, t.agent, t.level, D, tau2, s2, random, case.kind, restricted=restricted)
    full = np.zeros(X.shape[1])
    full[random] = D
    agents = sorted(model["agents"], key=lambda a: int(a["name"]))
    return Bag(case=case, restricted=restricted, model=model, channel=model["channels"][0], levels=model["levels"], agents=agents, table=t,
               D=full, tau2=tau2, s2=s2, page=found, shift=shift * np.eye(X.shape[1])[0], scale=scale,
               lower=np.tril_indices(X.shape[1]), rows=len(y),
               order=[int(name[1:]) for name in model["levels"]["names"]])


def deviation(found, expected):
    """The largest, relative to the largest expected value."""
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


def test_the_form_of_the_random_effects_covariance(both):
    assert both.channel["spread"] == both.case.kind
    assert not both.channel["singular"]


def test_the_variances(both):
    assert deviation(both.channel["D"], both.D * both.scale**2) <= TOLERANCE
    assert deviation(both.levels["variance"], both.tau2 * both.scale**2) <= TOLERANCE
    assert deviation(both.channel["s2"], both.s2 * both.scale**2) <= TOLERANCE


def test_the_centre(both):
    assert deviation(both.channel["centre"]["x"], both.page.xc * both.scale + both.shift) <= TOLERANCE
    assert deviation(both.channel["centre"]["se"], np.sqrt(np.diag(both.page.Hinv)) * both.scale) <= TOLERANCE


def test_the_covariance_of_an_unseen_agent(both):
    expected = (np.diag(both.D) + both.page.Hinv)[both.lower] * both.scale**2
    assert deviation(both.channel["centre"]["cov"], expected) <= TOLERANCE


def test_the_models_of_agents(both):
    found = [a["channels"][0]["x"] for a in both.agents]
    assert deviation(found, both.page.x * both.scale + both.shift) <= TOLERANCE


def test_the_covariances_of_agents(both):
    expected = np.array([c[both.lower] for c in both.page.cov]) * both.scale**2
    assert deviation([a["channels"][0]["cov"] for a in both.agents], expected) <= TOLERANCE


def test_the_effects_of_levels(both):
    assert deviation(both.levels["effects"], both.page.w[both.order] * both.scale) <= TOLERANCE
    assert deviation(both.levels["se"], both.page.w_se[both.order] * both.scale) <= TOLERANCE


def test_the_covariances_of_agents_with_the_level_they_lie_within(both):
    if both.case.option == "--crossed":
        assert all("level_cov" not in a for a in both.agents)
        return
    of = {i: g for i, g in zip(both.table.agent, both.table.level)}
    assert [a["level"] for a in both.agents] == [f"L{of[i]}" for i in range(len(both.agents))]
    expected = [both.page.cross[i][:, of[i]] * both.scale**2 for i in range(len(both.agents))]
    assert deviation([a["level_cov"] for a in both.agents], expected) <= TOLERANCE


def test_the_log_likelihood(both):
    tried = {t["spread"]: t["log_evidence"] for t in both.channel["tried"]}
    assert deviation(tried[both.case.kind], both.page.log_evidence) <= TOLERANCE
    d = len(both.D)
    if both.restricted:
        expected = both.page.log_evidence + d / 2 * np.log(2 * np.pi / 0.01) - (both.rows - d) * np.log(both.scale)
    else:
        expected = both.page.log_evidence + 0.01 * both.page.xc @ both.page.xc / 2 - both.rows * np.log(both.scale)
    assert deviation(both.levels["log_likelihood"], expected) <= TOLERANCE
    assert both.model["estimate"] == ("reml" if both.restricted else "ml")
