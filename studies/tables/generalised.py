"""Worlds of yes/no outcomes, classes and counts, and the predictions of the two models in model.json. Used by verdicts.py.

The independent model of `fit` is a ridge-penalised generalised linear model whose predictions average over a share of its covariance.
model.json has its coefficients; strength and share are found here as docs/explain/families.md has them.
"""
import numpy as np

STRENGTHS, INTERCEPT, SHARES = (100, 10, 1, 0.1), 0.04, (0, 0.1, 0.3, 1)
NODES, WEIGHTS = np.polynomial.hermite.hermgauss(15)


def class_basis(classes):  # Helmert's contrasts
    B = np.zeros((classes, classes - 1))
    for a in range(classes - 1):
        B[:a + 1, a], B[a + 1, a] = 1, -(a + 1)
    return B / np.linalg.norm(B, axis=0)


def softmax(logits):
    e = np.exp(logits - logits.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


class Outcomes:
    """What a family needs: means of rows from linear predictors [row][m], slope and weight of a row, and the loss of a mean."""

    def __init__(self, family, classes=2):
        self.family, self.classes = family, classes
        self.basis = class_basis(classes) if family == "multinomial" else np.ones((1, 1))
        self.m = self.basis.shape[1]

    def mean(self, eta):
        if self.family == "poisson":
            return np.exp(np.minimum(eta, 30))
        if self.family == "binomial":
            return softmax(np.hstack([np.zeros_like(eta), eta]))
        return softmax(eta @ self.basis.T)

    def slopes(self, y, eta):
        p = self.mean(eta)
        if self.family == "poisson":
            return y[:, None] - p, p[:, :, None]
        B = np.array([[0.0], [1.0]]) if self.family == "binomial" else self.basis
        centred = p @ B
        return B[y] - centred, np.einsum("rk,ka,kb->rab", p, B, B) - centred[:, :, None] * centred[:, None, :]

    def expected_mean(self, channels, variances):
        """channels, variances [row][channel]: as the program integrates over the uncertainty of a prediction."""
        if self.family != "multinomial":
            points = channels[:, :, None] + np.sqrt(2 * np.maximum(variances, 0))[:, :, None] * NODES
            return sum(w * self.mean(points[:, :, k]) for k, w in enumerate(WEIGHTS)) / np.sqrt(np.pi)
        n, total = self.classes, 0
        own = np.maximum(0, (variances - variances.mean(1, keepdims=True) / (n - 1)) / (1 - 2 / n))
        for k in range(n):
            for side in (-1, 1):
                moved = channels.copy()
                moved[:, k] += side * np.sqrt(n * own[:, k])
                total = total + self.mean(moved @ self.basis) / (2 * n)
        return total

    def loss(self, truth, mean):
        """Expected: log losses, and of counts deviances without those of the rates. truth are class probabilities, rates, or what was found."""
        if self.family == "poisson":
            return 2 * (np.where(truth > 0, truth * np.log(np.maximum(truth, 1e-300) / mean), 0) - truth + mean)[:, 0]
        return -(truth * np.log(np.maximum(mean, 1e-300))).sum(1)


def leave_one_out(outcomes, Z, y, x, inverse, shares):
    d, m, B = Z.shape[1], outcomes.m, outcomes.basis
    eta = Z @ x.T
    g, w = outcomes.slopes(y, eta)
    H = np.einsum("rj,ajbk,rk->rab", Z, inverse.reshape(m, d, m, d), Z)
    wH = w @ H
    if m == 1:
        wH = np.minimum(wH, 1 - 1e-3)
    own = H @ np.linalg.inv(np.eye(m) - wH)
    left = eta - np.einsum("rab,rb->ra", own, g)
    variances = np.maximum(0, np.einsum("ka,rab,kb->rk", B, own, B))
    for share in shares:
        mean = outcomes.expected_mean(left @ B.T, share * variances)
        yield outcomes.loss(y[:, None] if outcomes.family == "poisson" else np.eye(outcomes.classes)[y], mean).sum()


def independent_model(outcomes, Z, y, x):
    """x [m][d], as model.json has it. The covariance that its predictions average over."""
    g, w = outcomes.slopes(y, Z @ x.T)
    slope = np.einsum("ra,rj->aj", g, Z)
    A = np.einsum("rj,rab,rk->ajbk", Z, w, Z).reshape(x.size, x.size)
    penalties = [np.append(INTERCEPT, np.full(Z.shape[1] - 1, s)) for s in STRENGTHS]
    off = [np.abs(slope - p * x).max() / np.sqrt(1 + p.max()) for p in penalties]
    assert min(off) < 0.02, f"no strength explains the independent model: {off}"
    inverse = np.linalg.inv(A + np.diag(np.tile(penalties[int(np.argmin(off))], outcomes.m)))
    losses = list(leave_one_out(outcomes, Z, y, x, inverse, SHARES))
    best = len(SHARES) - 1
    for k in range(best - 1, -1, -1):
        if losses[k] < losses[best] - 1e-6 * abs(losses[best]):
            best = k
    return SHARES[best] * inverse


def symmetric(triangle, d):  # of the lower triangle's rows
    A = np.zeros((d, d))
    A[np.tril_indices(d)] = triangle
    return A + np.tril(A, -1).T


def channel_variances(outcomes, Z, cov):
    """cov of all coefficients [m d][m d]; of every channel."""
    m, d = outcomes.m, Z.shape[1]
    return np.einsum("rj,ka,ajbl,kb,rl->rk", Z, outcomes.basis, cov.reshape(m, d, m, d), outcomes.basis, Z, optimize=True)


class GeneralisedWorld:
    """equal: agents have the same coefficients. unequal: sd .7 around them. outliers: sd .2, and one agent of ten at distance 2 in every
    coefficient."""

    def __init__(self, kind, agents, columns, rows, rng):
        name, spread = kind.split("-")
        self.family = dict(yesno="binomial", classes="multinomial", counts="poisson")[name]
        self.outcomes = Outcomes(self.family, 3 if name == "classes" else 2)
        self.rows, self.rng, m = rows, rng, self.outcomes.m
        self.names = ["no", "perhaps", "yes"] if m > 1 else ["no", "yes"]
        sd = dict(equal=0, unequal=0.4 if name == "counts" else 0.7, outliers=0.2)[spread]
        mean = np.full((m, columns + 1), 0.3 if name == "counts" else 0.7)
        mean[:, 0] = 0.5 if name == "counts" else -0.5
        self.x = mean + sd * rng.normal(size=(agents, m, columns + 1))
        if spread == "outliers":
            odd = rng.choice(agents, max(1, agents // 10), replace=False)
            self.x[odd] += (0.7 if name == "counts" else 2) * rng.choice((-1, 1), size=self.x[odd].shape)

    def columns(self, rows):
        return self.rng.normal(size=(len(self.x), rows, self.x.shape[2] - 1))

    def means(self, z):
        Z = np.concatenate([np.ones((*z.shape[:2], 1)), z], 2)
        return np.array([self.outcomes.mean(np.minimum(a @ x.T, 5)) for a, x in zip(Z, self.x)])

    def draw(self):
        z = self.columns(self.rows)
        f = self.means(z)
        if self.family == "poisson":
            return z, self.rng.poisson(f[:, :, 0])
        return z, (self.rng.random(f.shape[:2])[:, :, None] > f.cumsum(2)[:, :, :-1]).sum(2)

    def targets(self, y):
        return y if self.family == "poisson" else np.array(self.names)[y]

    def losses(self, model, z, y, new, f):
        """By agent: of the chosen, the independent and the pooled model on the rows `new`."""
        out = self.outcomes
        mean, sd = (np.array([c[k][0] for c in model["columns"]]) for k in ("mean", "sd"))
        standard = lambda v: np.hstack([np.ones((len(v), 1)), (v - mean) / sd])
        place = [model["classes"].index(name) for name in self.names] if model["classes"] else None  # of our classes among the model's
        for i, m in enumerate(model["agents"]):
            Z, own = standard(new[i]), standard(z[i])
            x = np.array([c["x"] for c in m["channels"]])
            cov = np.array([symmetric(c["cov"], Z.shape[1]) for c in m["channels"]])
            chosen = out.expected_mean(Z @ x.T, np.einsum("rj,kjl,rl->rk", Z, cov, Z))
            alone = np.array(m["alone"])
            labels, truth = y[i], f[i]
            if place:
                labels, truth = np.array(place)[y[i]], f[i][:, np.argsort(place)]
            share = independent_model(out, own, labels, out.basis.T @ alone)
            independent = out.expected_mean(Z @ alone.T, channel_variances(out, Z, share))
            pooled = out.expected_mean(Z @ np.array([c["pooled"] for c in model["channels"]]).T, 0 * (Z @ alone.T))
            yield tuple(out.loss(truth, p).mean() for p in (chosen, independent, pooled))
