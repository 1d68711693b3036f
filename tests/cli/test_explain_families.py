"""`affpcl fit --family` against docs/explain/families.md: value, gradient, modes and covariances at the program's estimates."""
import pathlib
from types import SimpleNamespace as Bag

import pytest

np = pytest.importorskip("numpy")

import _markdown

page = Bag(**_markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "families.md"))


def table(family, seed, sd, n=30, rows=15):
    """Agents with random effects of these standard deviations."""
    rng = np.random.default_rng(seed)
    centre = np.array([-0.4, 0.7, -0.3])
    Z, y = [], []
    for i in range(n):
        z = np.hstack([np.ones((rows + i % 4, 1)), rng.normal(size=(rows + i % 4, 2))])
        eta = z @ (centre + sd * rng.normal(size=3))
        Z.append(z)
        y.append(rng.poisson(np.exp(eta)) if family == "poisson" else (rng.random(len(z)) < page.logistic(eta)).astype(int))
    return Z, y


CASES = {
    "binomial-scalar": ("binomial", 1, np.array([0.6, 0.6, 0.6])),
    "binomial-diagonal": ("binomial", 2, np.array([1.5, 0.6, 0.0])),
    "poisson-diagonal": ("poisson", 3, np.array([1.0, 0.2, 0.4])),
}


@pytest.fixture(scope="module", params=CASES)
def both(request, shared_affpcl):
    """The program's model, and the page's evidence at its estimates."""
    family, seed, sd = CASES[request.param]
    Z, y = table(family, seed, sd)
    lines = ["agent,a,b,y"]
    for i, (z, v) in enumerate(zip(Z, y)):
        lines += [f"{i},{float(r[1])!r},{float(r[2])!r},{int(t)}" for r, t in zip(z, v)]
    shared_affpcl.write(f"{request.param}.csv", "\n".join(lines) + "\n")
    shared_affpcl.succeed("fit", f"{request.param}.csv", "--target", "y", "--family", family, "--out", request.param,
                          "--quiet", "--no-score")
    model = shared_affpcl.read_json(f"{request.param}/model.json")
    every = np.vstack(Z)
    mean, deviation = every.mean(0), every.std(0)
    mean[0], deviation[0] = 0, 1
    channel = model["channels"][0]
    if channel["spread"] == "full":
        pytest.fail("the table was made for a scalar or diagonal D")
    D = np.array(channel["D"])
    xc = np.array(channel["centre"]["x"])
    found = page.evidence(getattr(page, family), [(z - mean) / deviation for z in Z], y, xc, np.diag(np.sqrt(D)))
    agents = sorted(model["agents"], key=lambda agent: int(agent["name"]))
    return Bag(model=model, channel=channel, D=D, xc=xc, evidence=found, agents=agents)


def test_the_fit_converged(both):
    assert both.channel["converged"]


def test_the_log_likelihood(both):
    assert both.model["family"]["log_likelihood"] == pytest.approx(both.evidence.value, rel=1e-10)


def test_the_centre_is_stationary(both):
    assert np.abs(both.evidence.dxc - 0.01 * both.xc).max() < 1e-4


def test_the_variances_are_stationary_or_zero(both):
    slope = np.diag(both.evidence.dD)
    if both.channel["spread"] == "scalar":
        assert abs(slope.sum() * both.D[0]) < 1e-4
    else:
        assert np.abs(slope * both.D).max() < 1e-4
        assert (slope[both.D == 0] <= 1e-6).all()


def test_a_variance_of_zero_is_reported(both):
    assert both.channel["singular"] == bool((both.D == 0).any())


def personalised(both):
    return [(a["channels"][0], own) for a, own in zip(both.agents, range(len(both.agents))) if a["model"] == "personalised"]


def test_most_agents_are_personalised(both):
    assert len(personalised(both)) > len(both.agents) / 2


def test_the_coefficients_of_agents(both):
    for channel, i in personalised(both):
        assert np.abs(np.array(channel["x"]) - both.xc - both.evidence.agents[i].u).max() < 1e-8


def test_the_standard_errors(both):
    H, covariances = page.covariances(both.evidence, both.channel["spread"])
    assert np.abs(np.array(both.channel["centre"]["se"]) - np.sqrt(np.diag(H))).max() < 1e-8
    for channel, i in personalised(both):
        assert np.abs(np.array(channel["se"]) - np.sqrt(np.diag(covariances[i]))).max() < 1e-8


def test_the_gradient_of_the_page_is_that_of_its_value():
    Z, y = table("binomial", 5, np.array([0.7, 0.4, 0.3]), n=5)
    xc, L, step = np.array([0.1, -0.2, 0.3]), np.array([[0.7, 0, 0], [0.2, 0.5, 0], [-0.1, 0.1, 0.4]]), 1e-5
    value = lambda x, root: page.evidence(page.binomial, Z, y, x, root).value
    found = page.evidence(page.binomial, Z, y, xc, L)
    for j in range(3):
        e = step * np.eye(3)[j]
        assert (value(xc + e, L) - value(xc - e, L)) / (2 * step) == pytest.approx(found.dxc[j], abs=1e-6)
        for k in range(j + 1):
            E = np.zeros((3, 3))
            E[j, k] = step
            slope = (value(xc, L + E) - value(xc, L - E)) / (2 * step)
            assert slope == pytest.approx(2 * (found.dD @ L)[j, k], abs=1e-6)


def test_the_bound_of_a_multinomial_model(affpcl):
    """The program's value is the page's bound at its estimates, but for the last 1e-4 of each of 10 agents."""
    rng = np.random.default_rng(4)
    B, Z, y, lines = page.class_basis(3), [], [], ["agent,a,y"]
    for i in range(10):
        z = np.column_stack([np.ones(12), rng.normal(size=12)])
        x = np.array([0.3, -0.5, 0.8, 0.4]).reshape(2, 2) + rng.normal(size=(2, 2)) * [0.9, 0.5]
        p = np.exp(z @ (B @ x).T)
        Z.append(z)
        y.append([rng.choice(3, p=row / row.sum()) for row in p])
        lines += [f"{i},{float(r[1])!r},{'abc'[k]}" for r, k in zip(z, y[-1])]
    affpcl.write("three.csv", "\n".join(lines) + "\n")
    affpcl.succeed("fit", "three.csv", "--target", "y", "--out", "three", "--quiet", "--no-score")
    model = affpcl.read_json("three/model.json")
    order = [model["classes"].index(c) for c in "abc"]
    assert order == [0, 1, 2]
    assert {c["spread"] for c in model["channels"]} <= {"scalar", "diagonal"}
    every = np.vstack(Z)[:, 1]
    Z = [np.column_stack([z[:, 0], (z[:, 1] - every.mean()) / every.std()]) for z in Z]
    logits = np.array([c["centre"]["x"] for c in model["channels"]])     # [class][coefficient]
    assert np.abs(logits.sum(0)).max() < 1e-9
    D = np.array(model["channels"][0]["D"]) / (1 - 1 / 3)                # a class's row of B has this squared length
    L = np.diag(np.sqrt(np.tile(D, 2)))
    value = sum(page.bound(B, z, k, (B.T @ logits).ravel(), L) for z, k in zip(Z, y))
    assert value - 10 * 1e-3 < model["family"]["log_likelihood"] < value + 1e-6


def test_the_bound_of_the_page_is_below_the_integral():
    """Two classes, one random effect: against a fine grid."""
    rng = np.random.default_rng(2)
    B, z, y, sd = page.class_basis(2), np.ones((9, 1)), rng.integers(0, 2, 9), 1.5
    at = np.linspace(-9, 9, 4001)
    log = np.array([sum((B[k] * sd * v).sum() - np.log(np.exp(B @ [sd * v]).sum()) for k in y) - v * v / 2 for v in at])
    truth = np.log(np.exp(log).sum() * (at[1] - at[0]) / np.sqrt(2 * np.pi))
    found = page.bound(B, z, y, np.zeros(1), np.array([[sd]]))
    assert truth - 0.05 < found < truth
