"""The oracle of test_explain_affpcl.py: short runs on finite systems by the Python of docs/explain.

The Python is executed from the pages, so code and pages cannot drift apart.
"""
import pathlib
from types import SimpleNamespace as Bag

import numpy as np

import _markdown

PAGES = pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain"
STEPS = 6

page = Bag(**_markdown.run_python(PAGES / "affpcl.md"))
guard_page = Bag(**_markdown.run_python(PAGES / "guard.md"))


# --- systems ---------------------------------------------------------------------------------------------------------

def make_system(seed, n=5, d=3, k=3, states=4, free_b=False, steps=STEPS):
    """system.json's content: agents with environments and objectives of their own, nothing that starts at zero."""
    rng = np.random.default_rng(seed)
    noise = lambda *shape: rng.normal(size=shape)
    A = 1.5 * np.eye(d) + 0.4 * noise(states, d, d)
    Phi = 0.6 * np.eye(d, k) + 0.2 * noise(states, d, k)
    mu = rng.dirichlet(np.ones(states), size=n)
    system = dict(A=A, mu=mu, x0=noise(n, d), xc0=noise(d), states=rng.integers(states, size=(n, 2 * steps)))
    if free_b:
        return system | dict(b=noise(n, states, d))
    return system | dict(Phi=Phi, theta=noise(n, k), thetac0=noise(k))


def steps_of(system):
    """The steps of a run: half of the states, for batches of two."""
    return system["states"].shape[1] // 2


def as_page_has_it(system):
    """The page's finite system, and the iterates to start from."""
    n, states = system["mu"].shape
    d = len(system["xc0"])
    Phi = system.get("Phi", np.zeros((states, d, 0)))
    b = system["b"] if "b" in system else np.einsum("sdk,ik->isd", Phi, system["theta"])
    centre = Bag(xc=system["xc0"], thetac=system.get("thetac0", np.zeros(0)), total=np.zeros((states, d)),
                 count=np.zeros(states))
    return page.finite_system(system["A"], Phi, system["mu"], b), system["x0"], centre


# --- step sizes ------------------------------------------------------------------------------------------------------

def least_eigenvalue(M):
    return np.linalg.eigvalsh((M + M.T) / 2)[0]


def lambdas(P, gradient):
    """lambda^i, lambda^c, lambda^b."""
    Abar = np.einsum("is,sde->ide", P.mu, P.A)
    F = np.einsum("sdk,sdl->skl", P.Phi, P.Phi) if gradient else P.Phi
    return (np.array([least_eigenvalue(M) for M in Abar]), least_eigenvalue(Abar.mean(0)),
            least_eigenvalue(np.einsum("s,skl->kl", P.mu.mean(0), F)))


def constant(agent, central=None, objective=None):
    def rule(P, gradient):
        return lambda t: (agent, central or agent, objective or agent)
    lines = [f"step_size = {agent}"]
    lines += [f"step_size_central = {central}"] if central else []
    lines += [f"step_size_objective = {objective}"] if objective else []
    return lines, rule


def relative(text, alpha, per):
    """alpha_t / lambda of every module, or of the smallest."""
    def rule(P, gradient):
        li, lc, lb = lambdas(P, gradient)
        if per == "min":
            li = np.full_like(li, min(*li, lc, lb))
            lc = lb = li[0]
        return lambda t: (alpha(t) / li[:, None], alpha(t) / lc, alpha(t) / lb)
    return [f"step_size = {{{text}, per = \"{per}\"}}"], rule


def relative_centre(agent):
    """The centre alone follows ln T / T over its lambda."""
    def rule(P, gradient):
        return lambda t: (agent, np.log(STEPS) / STEPS / lambdas(P, gradient)[1], agent)
    return [f"step_size = {agent}", 'step_size_central = {schedule = "log-constant"}'], rule


# --- the oracle's run ------------------------------------------------------------------------------------------------

def oracle(system, gradient, steps, method, averaged=False):
    """{(step, what, agent, index): value}, the trace the page's Python gives."""
    P, x, c = as_page_has_it(system)
    how = Bag(central=method.get("central", "own"), objective=method.get("objective", "learnt"),
              ratio=method.get("ratio", "exact"), correction=method.get("correction", "server"),
              coe="gradient" if gradient else "residual")
    kind, period, batch = method["kind"], method.get("period", 1), method.get("batch", 1)
    alpha = steps(P, gradient)
    if kind == "fedavg":
        how = Bag(central="own", objective="known")
        x = np.tile(c.xc, (len(x), 1))
    elif how.central == "average":
        c.xc = x.mean(0)
    guard = method.get("guard") and guard_page.Guard(method["guard"], *x.shape)
    combination = guard_page.Combination(x, averaged)
    trace = {}

    def write(step):
        for i, xi in enumerate(combination.z if guard else x):
            trace.update({(step, "x", str(i), r): v for r, v in enumerate(xi)})
        if kind != "independent":
            trace.update({(step, "xc", "", r): v for r, v in enumerate(c.xc)})
        if kind == "affpcl" and how.objective == "learnt":
            trace.update({(step, "thetac", "", r): v for r, v in enumerate(c.thetac)})

    write(0)
    steps_of_run = steps_of(system)
    for first in range(0, steps_of_run, period):
        last = min(first + period, steps_of_run)
        s = system["states"][:, first * batch:last * batch].T.reshape(last - first, batch, -1)
        a = Bag(**dict(zip("icb", zip(*map(alpha, range(first, last))))))
        if guard:
            h, pool, new, alone = page.correction(P, how, s, c), guard.pool(), x, combination.y
            own, correction = np.zeros(x.shape), np.zeros(x.shape)
            for k in range(last - first):
                g = page.g(P, s[k], new).mean(0)
                moved = a.i[k] * guard.step(g, h[k], pool)
                new, correction = new - a.i[k] * g - moved, correction + moved
                g = page.g(P, s[k], alone).mean(0)
                alone, own = alone - a.i[k] * g, own + a.i[k] * g
            x, c = new, page.affpcl_round(P, how, s, x, c, a)[1]
            combination.round(x, alone, own, correction, sum(a.i[:last - first]))
        elif kind == "affpcl":
            x, c = page.affpcl_round(P, how, s, x, c, a)
        elif kind == "independent":
            x = page.update(P, s, x, np.zeros(last - first), a.i)
        else:
            c.xc, _ = page.central_steps(P, how, s, c, a)
            x = np.tile(c.xc, (len(x), 1))
        write(last)
    return trace
