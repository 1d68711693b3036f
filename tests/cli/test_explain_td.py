"""docs/explain/td.md: its claims computed, and the program against its last function, every iterate to 1e-12."""
import csv
import pathlib
from types import SimpleNamespace as Bag

import pytest

np = pytest.importorskip("numpy")

import _markdown

page = Bag(**_markdown.run_python(pathlib.Path(__file__).resolve().parents[2] / "docs" / "explain" / "td.md"))


# --- the ratio is of pairs -------------------------------------------------------------------------------------------

@pytest.fixture(params=[.1, .9], ids=lambda gamma: f"gamma {gamma}")
def chains(request):
    """Three agents on four states, with rewards of pairs and a discount."""
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(4, 3))
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    return Bag(phi=phi, P=rng.dirichlet(np.ones(4), size=(3, 4)), rewards=rng.normal(size=(4, 4)),
               xc=rng.normal(size=3), gamma=request.param)


def mean_correction(chains, ratio, rewards=None, gamma=None):
    """The largest entry of the mean of the correction."""
    rewards = chains.rewards if rewards is None else rewards
    return np.abs(page.correction_mean(chains.phi, chains.P, rewards, chains.xc, gamma or chains.gamma, ratio)).max()


def test_with_ratios_of_pairs_the_correction_has_mean_zero(chains):
    assert mean_correction(chains, page.pair_ratio(chains.P)) < 1e-14


def test_with_ratios_of_states_it_does_not(chains):
    assert mean_correction(chains, page.state_ratio(chains.P)) > .01


def test_where_rewards_are_of_states_that_bias_is_in_proportion_to_gamma(chains):
    ratio, rewards = page.state_ratio(chains.P), np.repeat(chains.rewards[:, :1], 4, axis=1)
    assert np.isclose(mean_correction(chains, ratio, rewards) / chains.gamma,
                      mean_correction(chains, ratio, rewards, gamma=.5) / .5)


def test_the_bound_on_lambda(chains):
    Abar, _ = page.mean_system(chains.phi, chains.P[0], chains.rewards, chains.gamma)
    covariance = np.einsum("o,oa,ob->ab", page.stationary(chains.P[0]), chains.phi, chains.phi)
    least = np.linalg.eigvalsh((Abar + Abar.T) / 2)[0]
    assert least >= (1 - chains.gamma) * np.linalg.eigvalsh(covariance)[0] - 1e-14


# --- the program on a log --------------------------------------------------------------------------------------------

STATES = ["home", "road", "work"]
STEPS, GAMMA, ALPHA = 60, .7, .25
SPEC = f'''[problem]
kind = "td"
file = "log.csv"
gamma = {GAMMA}
[run]
steps = {STEPS}
replicates = 1
step_size = {ALPHA}
[[method]]
kind = "affpcl"
ratio = "counts"
shrink = "none"
'''


def draw_log():
    """Of four agents, (state, next state or None, reward) row by row.

    They differ in length: an agent's rows begin again when they are used up.
    """
    rng = np.random.default_rng(2)
    log = []
    for i in range(4):
        P, state, rows = rng.dirichlet(np.ones(3), size=3), 0, []
        for _ in range(25 + i):
            following = None if rng.random() < .1 else int(rng.choice(3, p=P[state]))
            name = None if following is None else STATES[following]
            rows.append((STATES[state], name, round(float(rng.normal()), 3)))
            state = following or 0
        log.append(rows)
    return log


def write_log(affpcl, log):
    """Writes log.csv, agents in turn; the states in order of appearance."""
    order, lines = [], ["agent,state,next_state,reward,done"]
    for t in range(max(map(len, log))):
        for i, rows in enumerate(log):
            if t < len(rows):
                state, following, reward = rows[t]
                lines.append(f"a{i},{state},{following or ''},{reward},{int(following is None)}")
                order += [s for s in (state, following) if s is not None and s not in order]
    affpcl.write("log.csv", "\n".join(lines) + "\n")
    return order


def test_every_iterate_of_a_run_on_a_log(affpcl):
    log = draw_log()
    order = write_log(affpcl, log)
    affpcl.write("spec.toml", SPEC)
    affpcl.succeed("run", "spec.toml", "--quiet", "--trace", "trace.csv")
    rows = [row for row in csv.DictReader(affpcl.read("trace.csv").splitlines())
            if row["step"] != "0" and row["what"] in ("x", "xc")]
    assert len(rows) == STEPS * (4 + 1) * 3
    expected = page.affpcl_on_a_log(log, order, GAMMA, ALPHA, STEPS)
    for row in rows:
        x, xc = expected[int(row["step"]) - 1]
        iterate = x[int(row["agent"])] if row["what"] == "x" else xc
        assert abs(float(row["value"]) - iterate[int(row["index"])]) < 1e-12, row
