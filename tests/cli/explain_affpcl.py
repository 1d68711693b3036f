#!/usr/bin/env python3
"""The program against docs/explain/affpcl.md: every iterate of short runs on finite systems, to 1e-12.

usage: explain_affpcl.py PATH_TO_AFFPCL

The page's Python is the oracle; it is executed from the page, so the two cannot drift apart. What the page claims about
expectations is counted here, over all joint samples.
"""
import csv
import itertools
import json
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

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "affpcl.md"
TOLERANCE = 1e-12
STEPS = 6

page = Bag(**_markdown.run_python(PAGE))
guard_page = Bag(**_markdown.run_python(PAGE.with_name("guard.md")))


# --- systems ---------------------------------------------------------------------------------------------------------

def make_system(seed, n=5, d=3, k=3, states=4, free_b=False):
    """system.json's content: agents with environments and objectives of their own, nothing that starts at zero."""
    rng = np.random.default_rng(seed)
    noise = lambda *shape: rng.normal(size=shape)
    A = 1.5 * np.eye(d) + 0.4 * noise(states, d, d)
    Phi = 0.6 * np.eye(d, k) + 0.2 * noise(states, d, k)
    mu = rng.dirichlet(np.ones(states), size=n)
    system = dict(A=A, mu=mu, x0=noise(n, d), xc0=noise(d), states=rng.integers(states, size=(n, 2 * STEPS)))
    if free_b:
        return system | dict(b=noise(n, states, d))
    return system | dict(Phi=Phi, theta=noise(n, k), thetac0=noise(k))


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

def oracle(system, gradient, steps, method):
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
    trace = {}

    def write(step):
        for i, xi in enumerate(x):
            trace.update({(step, "x", str(i), r): v for r, v in enumerate(xi)})
        if kind != "independent":
            trace.update({(step, "xc", "", r): v for r, v in enumerate(c.xc)})
        if kind == "affpcl" and how.objective == "learnt":
            trace.update({(step, "thetac", "", r): v for r, v in enumerate(c.thetac)})

    write(0)
    for first in range(0, STEPS, period):
        last = min(first + period, STEPS)
        s = system["states"][:, first * batch:last * batch].T.reshape(last - first, batch, -1)
        a = Bag(**dict(zip("icb", zip(*map(alpha, range(first, last))))))
        if guard:
            h, pool, y = page.correction(P, how, s, c), guard.pool(), x
            for k in range(last - first):
                g = page.g(P, s[k], y).mean(0)
                y = y - a.i[k] * (g + guard.step(g, h[k], pool))
            x, c = y, page.affpcl_round(P, how, s, x, c, a)[1]
        elif kind == "affpcl":
            x, c = page.affpcl_round(P, how, s, x, c, a)
        elif kind == "independent":
            x = page.update(P, s, x, np.zeros(last - first), a.i)
        else:
            c.xc, _ = page.central_steps(P, how, s, c, a)
            x = np.tile(c.xc, (len(x), 1))
        write(last)
    return trace


# --- the program's run -----------------------------------------------------------------------------------------------

class Refused(RuntimeError):
    pass


def program(affpcl, system, coe, step_lines, methods):
    """The same by method, as --trace has it."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "system.json").write_text(json.dumps({k: v.tolist() for k, v in system.items()}))
        lines = ["[problem]", 'kind = "tabular"', 'file = "system.json"', f'coe = "{coe}"',
                 "[run]", f"steps = {STEPS}", "replicates = 1", *step_lines]
        for method in methods:
            lines += ["[[method]]"] + [f"{k} = {json.dumps(v)}" for k, v in method.items()]
        (folder / "spec.toml").write_text("\n".join(lines) + "\n")
        done = subprocess.run([affpcl, "run", "spec.toml", "--trace", "trace.csv", "--quiet"], cwd=folder,
                              capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            raise (Refused if done.returncode == 2 else RuntimeError)(f"affpcl run ended with {done.returncode}: {done.stderr.strip()}")
        traces = {method["name"]: {} for method in methods}
        with open(folder / "trace.csv", newline="") as file:
            for row in csv.DictReader(file):
                key = int(row["step"]), row["what"], row["agent"], int(row["index"])
                traces[row["method"]][key] = float(row["value"])
        return traces


def affpcl_method(**keys):
    return dict(kind="affpcl", **keys)


def independent(**keys):
    return dict(kind="independent", **keys)


def fedavg(**keys):
    return dict(kind="fedavg", **keys)


SQUARE, TALL, WIDE, FREE = make_system(1), make_system(2, k=2), make_system(3, k=5), make_system(4, free_b=True)
MANY = make_system(5, n=300)  # more than one block of agents, more than one leaf of the sum
PLAIN = constant(0.1)
LOG = relative('schedule = "log-constant"', lambda t: np.log(STEPS) / STEPS, "agent")
PERIODS = [affpcl_method(central=central, period=period, batch=batch)
           for central in ("own", "estimated") for period, batch in ((3, 1), (4, 1), (1, 2), (4, 2))]
BASELINES = [make(period=period, batch=batch) for make in (independent, fedavg)
             for period, batch in ((1, 1), (3, 1), (4, 1), (3, 2))]

# What is run together: a name, a system, problem.coe, step sizes, methods.
RUNS = [
    ("square", SQUARE, "residual", PLAIN,
     [affpcl_method(central=central, ratio=ratio) for central in ("own", "estimated", "average")
      for ratio in ("exact", "none")]
     + [affpcl_method(central=central, objective=objective) for central in ("own", "estimated")
        for objective in ("known", "tabular")]
     + [affpcl_method(correction="client", **more) for more in
        (dict(), dict(central="estimated"), dict(ratio="none"), dict(period=4, batch=2))]
     + [affpcl_method(guard=guard, ratio=ratio, period=period) for guard in ("weight", "full")
        for ratio in ("exact", "none") for period in (1, 4)]
     + [affpcl_method(objective="tabular", central="estimated", period=4, batch=2),
        affpcl_method(objective="known", period=3),
        affpcl_method(central="average", batch=2),
        affpcl_method(ratio="none", period=4, batch=2)]
     + PERIODS + BASELINES),
    ("square, three steps", SQUARE, "residual", constant(0.1, 0.15, 0.07),
     [affpcl_method(central=central) for central in ("own", "estimated", "average")] + PERIODS + BASELINES),
    ("square, gradient", SQUARE, "gradient", PLAIN,
     [affpcl_method(central=central) for central in ("own", "estimated")] + [affpcl_method(period=4, batch=2)]),
    ("k < d", TALL, "auto", PLAIN,
     [affpcl_method(central=central) for central in ("own", "estimated", "average")] + PERIODS),
    ("k > d", WIDE, "auto", PLAIN,
     [affpcl_method(central=central) for central in ("own", "estimated")] + [affpcl_method(period=3)]),
    ("no Phi", FREE, "auto", PLAIN,
     [affpcl_method(central=central, objective=objective, period=period) for central in ("own", "estimated")
      for objective in ("known", "tabular") for period in (1, 4)]
     + [affpcl_method(central="average", objective="tabular"), independent(), fedavg()]),
    ("300 agents", MANY, "residual", PLAIN,
     [affpcl_method(central=central, **more) for central in ("own", "estimated")
      for more in (dict(), dict(period=4, batch=2), dict(objective="tabular"))]
     + [affpcl_method(central="average"), affpcl_method(ratio="none"), affpcl_method(correction="client"),
        affpcl_method(guard="full"), affpcl_method(guard="full", ratio="none", period=2),
        independent(period=4), fedavg(period=4)]),
    ("ln T / T per agent", SQUARE, "residual", LOG,
     [affpcl_method(), affpcl_method(central="estimated", period=4), independent(period=4), fedavg(period=4)]),
    ("4/(t + t0 + 1) per agent", SQUARE, "residual",
     relative('schedule = "diminishing", t0 = 20', lambda t: 4 / (t + 21), "agent"),
     [affpcl_method(), affpcl_method(central="estimated", period=4), independent(period=4), fedavg(period=4)]),
    ("4/(t + t0 + 1), one for all", TALL, "gradient",
     relative('schedule = "diminishing", t0 = 20', lambda t: 4 / (t + 21), "min"),
     [affpcl_method(), affpcl_method(central="average"), independent(period=4), fedavg(period=4)]),
    ("ln T / T at the centre", SQUARE, "residual", relative_centre(0.1),
     [affpcl_method(), affpcl_method(central="estimated", period=4), fedavg(period=4)]),
]

# One sum does not carry the average of the x^i here. To refuse is right, and so is the right answer.
REFUSABLE = [(PLAIN, affpcl_method(central="average", period=3)),
             (LOG, affpcl_method(central="average")),
             (PLAIN, affpcl_method(central="average", correction="client"))]


def title(method):
    """Unique among methods that differ: it is the method's name in the spec, too."""
    return " ".join([method["kind"]] + [f"{k}={v}" for k, v in method.items()
                                        if k != "kind" and v != {"period": 1, "batch": 1}.get(k)])


def deviation(expected, found):
    """The largest, relative to max(1, |value|), and the first entry that is too far off."""
    if expected.keys() != found.keys():
        lacks, has = expected.keys() - found.keys(), found.keys() - expected.keys()
        return np.inf, f"the trace lacks {len(lacks)} entries and has {len(has)} too many, {min(lacks or has)}"
    off = {key: abs(found[key] - v) / max(1, abs(v)) for key, v in expected.items()}
    first = next((key for key, o in off.items() if not o <= TOLERANCE), None)
    return max(off.values()), first and f"first at {first}: {found[first]!r}, not {expected[first]!r}"


def compare_runs(affpcl):
    for name, system, coe, (step_lines, steps), methods in RUNS:
        methods = [dict(name=title(m), **m) for m in methods]
        gradient = coe == "gradient" or (coe == "auto" and "Phi" in system and len(set(system["Phi"].shape[1:])) > 1)
        try:
            traces = program(affpcl, system, coe, step_lines, methods)
        except (OSError, RuntimeError) as problem:
            yield name, np.inf, str(problem)
            continue
        for method in methods:
            expected = oracle(system, gradient, steps, method)
            yield f"{name}: {method['name']}", *deviation(expected, traces[method["name"]])


def compare_special(affpcl):
    for (step_lines, steps), method in REFUSABLE:
        method = dict(name=title(method), **method)
        try:
            found = program(affpcl, SQUARE, "residual", step_lines, [method])[method["name"]]
        except Refused:
            yield f"refused: {method['name']}", 0, None
        else:
            yield f"refusable: {method['name']}", *deviation(oracle(SQUARE, False, steps, method), found)

    for batch in 1, 2:
        methods = [affpcl_method(name="affpcl", batch=batch), independent(name="independent", batch=batch)]
        together, alone = program(affpcl, make_system(8, n=1), "residual", PLAIN[0], methods).values()
        bits = all(together[key] == v for key, v in alone.items())
        yield f"n = 1, batch {batch}: AffPCL is independent to the bit", 0 if bits else np.inf, None


# --- what the page says about expectations ---------------------------------------------------------------------------

def how_of(**keys):
    return Bag(**(dict(central="own", objective="learnt", ratio="exact", correction="server", coe="residual") | keys))


def largest(difference):
    return np.abs(difference).max()


def claims():
    P, x, c = as_page_has_it(make_system(5, n=4))
    c.total, c.count = np.random.default_rng(6).normal(size=c.total.shape), np.array([1.0, 2, 0, 5])
    truth = np.einsum("is,sde,ie->id", P.mu, P.A, x) - np.einsum("is,isd->id", P.mu, P.b)
    every_state = np.arange(len(P.A))
    for objective, correction in itertools.product(("learnt", "known", "tabular"), ("server", "client")):
        how = how_of(objective=objective, correction=correction)
        yield f"unbiased: objective={objective} correction={correction}", \
            largest(page.mean_direction(P, how, x, c) - truth)

    # eq:correction with rhohat = 1: the bias is E_mu0 [(1 - rho^i) f].
    f = page.times(P.A, c.xc) - page.bhat(P, how_of(), every_state, c, c.thetac)
    bias = np.einsum("s,is,sd->id", P.mu.mean(0), 1 - P.rho, f)
    yield "ratio=none is biased as eq:correction says", \
        largest(page.mean_direction(P, how_of(ratio="none"), x, c) - truth - bias) if largest(bias) > 0.1 else np.inf

    yield "the mean of rho^i over agents is 1", largest(P.rho.mean(0) - 1)
    s = np.random.default_rng(7).integers(4, size=(3, 2, 4))
    gc = page.g_central(P, how_of(), s, c)
    yield "rg^i is M' eta^i", largest(page.rg_as_sum(P, s, gc) - gc.mean(1) - page.correction(P, how_of(), s, c))

    P1, x1, c1 = as_page_has_it(make_system(8, n=1))
    yield "n = 1, one local step: the correction is zero", largest(page.correction(P1, how_of(), s[:1, :, :1], c1))

    yield from period_claims()

    # The numbers guard.md prints, as it prints them.
    alone = guard_page.alone()
    for kind, plain, guarded in (("right", .090, .083), ("biased", 35, .43), ("useless", 9.9, 1.003)):
        found = [guard_page.error(kind, on) / alone for on in (False, True)]
        yield f"guard.md, {kind}: {found[0]:.3g} and {found[1]:.3g}", \
            0 if all(abs(f / said - 1) < 0.01 for f, said in zip(found, (plain, guarded))) else np.inf


def period_claims():
    """K = 2: the correction has mean zero in both steps; the second step's bias is the one the page names."""
    P, x, c = as_page_has_it(make_system(9, n=2, states=3))
    n, K, alpha = 2, 2, 0.1
    mean_h, bias = 0, 0
    Abar = np.einsum("is,sde->ide", P.mu, P.A)
    for states in itertools.product(range(3), repeat=n * K):
        s = np.array(states).reshape(K, 1, n)
        weight = page.own(P.mu, s).prod()
        h = page.correction(P, how_of(), s, c)
        x1 = page.update(P, s[:1], x, h, [alpha])
        mean_h = mean_h + weight * h
        bias = bias + weight * page.times(P.A[s[1, 0]] - Abar, x1)
    yield "period 2: the correction has mean zero", largest(mean_h)
    # Only s_1's own share of rg^i, 1/(nK), depends on s_1: the bias is -alpha/(nK) Cov(A, rho^i f) under mu^i.
    f = page.times(P.A, c.xc) - page.bhat(P, how_of(), np.arange(3), c, c.thetac)
    covariance = np.einsum("is,isde,is,se->id", P.mu, P.A[None] - Abar[:, None], P.rho, f)
    yield "period 2: the second step's bias is -alpha/(nK) Cov(A, rho^i f)", \
        largest(bias + alpha / (n * K) * covariance)


def main(args):
    if len(args) != 1:
        print(__doc__)
        return 2
    affpcl = str(pathlib.Path(args[0]).resolve())
    passed = failed = 0
    for case, worst, *where in itertools.chain(claims(), compare_runs(affpcl), compare_special(affpcl)):
        good = worst <= TOLERANCE
        print(f"{'ok  ' if good else 'FAIL'} {worst:8.1e}  {case}")
        if not good and any(where):
            print(f"                {where[0]}")
        passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
