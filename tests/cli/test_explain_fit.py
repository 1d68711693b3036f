"""`affpcl fit` against docs/explain/fit.md: the page's EM finds the same centre, spread, noise, models and errors."""
import pathlib
from types import SimpleNamespace as Bag

import pytest

np = pytest.importorskip("numpy")

import _markdown

page = Bag(**_markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "fit.md"))
# The steps of a full D end sooner, on the same hill; where agents differ in noise the climb is ended at a gain of .001.
TOLERANCE = dict(scalar=1e-8, diagonal=1e-8, full=1e-6)
LEARNT_TOLERANCE = 2e-3


# --- tables ----------------------------------------------------------------------------------------------------------

def table(seed, n, columns, root, noise, rows, at=0.0, scale=1.0):
    """Agents with x_i = x_c + root z_i; their sizes differ."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=columns + 1)
    X, y = [], []
    for i in range(n):
        N = rows + 3 * (i % 7)
        x = np.hstack([np.ones((N, 1)), at + scale * rng.normal(size=(N, columns))])
        w = centre + root @ rng.normal(size=columns + 1)
        X.append(x)
        y.append(x @ w + noise * rng.normal(size=N))
    return X, y


def scalar():
    return table(1, 30, 3, 0.5 * np.eye(4), 1.0, 12)


def diagonal():
    return table(2, 40, 4, np.diag([5, 0.3, 1.0, 2.0, 0.2]), 1.0, 15, at=2.0, scale=1.5)


def full():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    return table(3, 120, 3, turn @ np.diag([3.0, 1.0, 0.3, 0.3]) @ turn.T, 1.0, 15)


def outlier():
    """The last agent is outlying."""
    X, y = table(4, 25, 2, 0.4 * np.eye(3), 1.0, 12)
    y[-1] = y[-1] + X[-1] @ np.array([4.0, -4.0, 4.0])
    return X, y


def noise_of_their_own():
    """Agents whose noise differs by up to e^2."""
    X, y = table(5, 30, 3, 0.5 * np.eye(4), 0.0, 20)
    rng = np.random.default_rng(6)
    return X, [v + np.exp(rng.normal(0, 0.7)) * rng.normal(size=len(v)) for v in y]


# --- what the program and the page find ------------------------------------------------------------------------------

def model_of(affpcl, name, X, y, *options):
    """The model.json that the program fits."""
    lines = ["agent," + ",".join(f"x{j}" for j in range(X[0].shape[1] - 1)) + ",y"]
    for i, (x, v) in enumerate(zip(X, y)):
        lines += [",".join([str(i), *(repr(float(q)) for q in (*row[1:], target))]) for row, target in zip(x, v)]
    affpcl.write(f"{name}.csv", "\n".join(lines) + "\n")
    affpcl.succeed("fit", f"{name}.csv", "--target", "y", "--out", name, "--quiet", "--no-score", *options)
    return affpcl.read_json(f"{name}/model.json")


def standardised(X, y):
    """The page's moments of the standardised table, and the mean and standard deviation of the target."""
    every, target = np.vstack(X), np.concatenate(y)
    mean, sd = every.mean(0), every.std(0)
    mean[0], sd[0] = 0, 1
    shift, scale = target.mean(), target.std()
    return page.moments([(x - mean) / sd for x in X], [(v - shift) / scale for v in y]), shift, scale


def agents_of(model):
    """The agents' parts of a model, in the table's order."""
    return sorted(model["agents"], key=lambda agent: int(agent["name"]))


@pytest.fixture(scope="module",
                params=[(make, estimate) for estimate in ("reml", "ml") for make in (scalar, diagonal, full)],
                ids=lambda param: param[0].__name__ + "-ml" * (param[1] == "ml"))
def both(request, shared_affpcl):
    """A table, the program's plain mixed model of it, and the page's, in the target's units."""
    make, estimate = request.param
    kind, restricted = make.__name__, estimate == "reml"
    X, y = make()
    options = () if restricted else ("--estimate", "ml")
    model = model_of(shared_affpcl, f"{kind}_{estimate}", X, y, "--plain", "--covariance", kind, *options)
    m, shift, scale = standardised(X, y)
    D, s2 = page.em(m, kind, restricted=restricted)
    x, cov = page.agents(m, D, s2, kind)
    channel = model["channels"][0]
    return Bag(kind=kind, estimate=estimate, rows=m.N.sum(), model=model, channel=channel, agents=[a["channels"][0] for a in agents_of(model)],
               tried={t["spread"]: t for t in channel["tried"]}, posterior=page.posterior(m, D, s2),
               shift=shift * np.eye(len(D))[0], scale=scale, D=D, s2=s2, x=x, cov=cov,
               lower=np.tril_indices(len(D)), log_evidence=page.log_evidence(m, D, s2, restricted=restricted))


def deviation(found, expected):
    """The largest, relative to the largest expected value."""
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


def test_the_evidence_chooses_the_kind_of_spread(both):
    assert both.channel["spread"] == both.kind


def test_the_random_effects_covariance(both):
    found = np.array(both.channel["D"]) if both.kind == "full" else np.diag(both.channel["D"])
    assert deviation(found, both.D * both.scale**2) <= TOLERANCE[both.kind]


def test_the_noise_variance(both):
    assert deviation(both.channel["s2"], both.s2 * both.scale**2) <= TOLERANCE[both.kind]


def test_the_centre(both):
    expected = both.posterior.xc * both.scale + both.shift
    assert deviation(both.channel["centre"]["x"], expected) <= TOLERANCE[both.kind]


def test_the_standard_errors_of_the_centre(both):
    expected = np.sqrt(np.diag(both.posterior.Hinv)) * both.scale
    assert deviation(both.channel["centre"]["se"], expected) <= TOLERANCE[both.kind]


def test_the_covariance_of_an_unseen_agent(both):
    expected = (both.D + both.posterior.Hinv)[both.lower] * both.scale**2
    assert deviation(both.channel["centre"]["cov"], expected) <= TOLERANCE[both.kind]


def test_every_model_is_personalised(both):
    assert {agent["model"] for agent in both.model["agents"]} == {"personalised"}


def test_the_models_of_agents(both):
    assert deviation([a["x"] for a in both.agents], both.x * both.scale + both.shift) <= TOLERANCE[both.kind]


def test_the_standard_errors_of_agents(both):
    expected = np.sqrt(np.diagonal(both.cov, axis1=1, axis2=2)) * both.scale
    assert deviation([a["se"] for a in both.agents], expected) <= TOLERANCE[both.kind]


def test_the_covariances_of_agents(both):
    expected = np.array([c[both.lower] for c in both.cov]) * both.scale**2
    assert deviation([a["cov"] for a in both.agents], expected) <= TOLERANCE[both.kind]


def test_the_log_evidence(both):
    assert deviation(both.tried[both.kind]["log_evidence"], both.log_evidence) <= TOLERANCE[both.kind]


def test_the_log_likelihood(both):
    """In units of the target and without the prior of the centre."""
    d, xc, log_sd = len(both.D), both.posterior.xc, np.log(both.scale)
    if both.estimate == "reml":
        expected = both.log_evidence + d / 2 * np.log(2 * np.pi / 0.01) - (both.rows - d) * log_sd
    else:
        expected = both.log_evidence + 0.01 * xc @ xc / 2 - both.rows * log_sd
    assert deviation(both.channel["log_likelihood"], expected) <= TOLERANCE[both.kind]
    assert both.model["estimate"] == both.estimate


def test_the_bic(both):
    d, n = len(both.D), len(both.agents)
    numbers = dict(scalar=1, diagonal=d, full=d * (d + 1) // 2)[both.kind]
    expected = -2 * both.log_evidence + numbers * np.log(n)
    assert deviation(both.tried[both.kind]["bic"], expected) <= TOLERANCE[both.kind]


@pytest.fixture(scope="module", params=[scalar, outlier, noise_of_their_own], ids=lambda make: make.__name__)
def learnt(request, shared_affpcl):
    """A table, averaged over noise, outlying agents and two forms of D by the program and by the page."""
    X, y = request.param()
    model = model_of(shared_affpcl, "averaged_" + request.param.__name__, X, y)
    m, shift, scale = standardised(X, y)
    found = page.learn(m, [t["spread"] for t in model["channels"][0]["tried"]])
    own = [k for k, a in enumerate(agents_of(model)) if a["model"] == "personalised"]
    assert len(own) > len(X) / 2
    return Bag(agents=[agents_of(model)[k]["channels"][0] for k in own], f=found.f, t=found.t, s2=found.s2[own] * scale**2,
               x=found.x[own] * scale + shift * np.eye(m.b.shape[1])[0], cov=found.cov[own] * scale**2, make=request.param)


def test_agents_that_differ_are_found(learnt):
    assert (max(learnt.f) > 4 * min(learnt.f)) == (learnt.make is noise_of_their_own)
    assert (learnt.t.argmax() == len(learnt.t) - 1 and max(learnt.t) > 10) == (learnt.make is outlier)


def test_the_noise_variances_of_averaged_agents(learnt):
    found = np.array([a["s2"] for a in learnt.agents])
    assert np.abs(np.log(found / learnt.s2)).max() <= LEARNT_TOLERANCE


def test_the_models_of_averaged_agents(learnt):
    assert deviation([a["x"] for a in learnt.agents], learnt.x) <= LEARNT_TOLERANCE


def test_the_standard_errors_of_averaged_agents(learnt):
    expected = np.sqrt(np.diagonal(learnt.cov, axis1=1, axis2=2))
    assert deviation([a["se"] for a in learnt.agents], expected) <= LEARNT_TOLERANCE


def test_stacking_leaves_its_prior_where_losses_are_equal():
    """Two agents' worth of the personalised model, one spread over the grid: as affpcl/table/stack_test.cc has it."""
    for log_losses in (False, True):
        weights = page.stack(np.full((5, 15), 10.), np.full(5, 10.), log_losses, 2000)
        assert weights[0] == pytest.approx([7 / 9, 1 / 9, 1 / 9], abs=1e-4)
