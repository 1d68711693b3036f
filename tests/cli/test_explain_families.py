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
