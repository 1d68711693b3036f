"""Agents on Gymnasium environments: transitions, features, solutions, runs that repeat, and every method."""
import json
import pathlib

import numpy
import pytest

import affpcl

pytest.importorskip("gymnasium", reason="Gymnasium is not installed: pip install 'affpcl[gym]'")
import gymnasium  # noqa: E402

import affpcl.gym as gym  # noqa: E402

NONE = numpy.zeros(4)
SMALL = {"kind": "gym_control", "agents": 3, "environment": "frozen_lake"}


def made(kind, **values):
    cls = {"control": gym.GymControl, "evaluation": gym.GymEvaluation}[kind]
    problem = cls()
    for name, value in values.items():
        setattr(problem, name, value)
    problem.setup(affpcl.Key(3))
    return problem


@pytest.mark.parametrize("name", gym.WORLDS)
def test_without_variation_a_world_is_gymnasiums_own(name):
    """The same states and ends as the environment itself, from the same start with the same actions."""
    world = gym.WORLDS[name](NONE, NONE)
    options = {"success_rate": 0.7} if name == "frozen_lake" else {}
    env = gymnasium.make(gym.WORLDS[name].name, **options).unwrapped
    numbers = numpy.random.default_rng(5)
    state = world.reset(numbers.random(4))
    env.reset(seed=1)
    if name == "frozen_lake":
        env.s = int(state[0])
    else:
        env.state = numpy.array(state)
    for _ in range(60):
        action, u = int(numbers.integers(world.actions)), float(numbers.random())
        if name == "frozen_lake":  # what a transition with this uniform is, from the environment's own table
            chances = env.P[env.s][action]
            place = int((numpy.cumsum([c[0] for c in chances]) > u).argmax())
            env.s, want, ended = int(chances[place][1]), [float(chances[place][1])], bool(chances[place][3])
        else:
            _, _, ended, _, _ = env.step(action)
            want = numpy.array(env.state)
        state, _, found = world.step(state, action, u)
        assert numpy.allclose(state, want, rtol=0, atol=0)
        assert found == ended
        if ended:
            break


def test_tiles_are_one_in_every_tiling_and_fourier_is_a_cosine():
    low, high = numpy.array([-1.0, 0.0]), numpy.array([1.0, 2.0])
    width, phi = gym.tiles(low, high, 4, 3)
    points = numpy.array([[-1.0, 0.0, 0.3, 5.0], [0.0, 1.0, 1.9, -5.0]])
    f = phi(points)
    assert f.shape == (width, 4) == (4 * 16, 4)
    assert numpy.allclose((f**2).sum(0), 1) and ((f > 0).sum(0) == 4).all()
    assert ((f.reshape(4, 16, 4) > 0).sum(1) == 1).all()
    width, phi = gym.fourier(low, high, 2)
    assert width == 9
    assert numpy.allclose(phi(points)[:, 1] * 3, [numpy.cos(numpy.pi * (i * 0.5 + j * 0.5)) for i in range(3) for j in range(3)])


def test_frozen_lake_values_are_those_of_its_table():
    """The reference solution against the values of the uniform policy, solved from Gymnasium's own table."""
    problem = made("evaluation", agents=1, environment="frozen_lake", reference=30000, gamma=0.9)
    env = problem.worlds[0].env
    P, r, ends = numpy.zeros((16, 16)), numpy.zeros(16), numpy.zeros((16, 16))
    for s in range(16):
        for a in range(4):
            for p, found, _, ended in env.P[s][a]:
                r[s] += p * problem.worlds[0].weights @ problem.worlds[0].channel([found], ended) / 4
                P[s, found] += p * (not ended) / 4
    values = numpy.linalg.solve(numpy.eye(16) - 0.9 * P, r)
    x = numpy.linalg.solve(problem.A[0], problem.b[0])
    visits = problem.reference * numpy.diag(problem.G[0])
    often = visits > 100
    assert often.sum() >= 8
    # What follows a visit has an sd of at most .5: beyond 4.5 sd with probability 7e-6 a state.
    assert (numpy.abs(x - values)[often] < 4.5 * 0.5 / numpy.sqrt(visits[often])).all()


def test_like_agents_share_their_noise():
    """Rewards are weighted channels that the centre learns, so AffPCL is near FedAvg where agents are alike."""
    result = affpcl.run({"problem": {"kind": "gym_evaluation", "environment": "frozen_lake", "agents": 8, "reference": 3000,
                                     "gamma": 0.9, "variation": 0.0, "reward_variation": 0.0},
                         "run": {"steps": 1000, "step_size": 0.3, "replicates": 1},
                         "method": [{"kind": "affpcl", "ratio": "none"}, {"kind": "independent"}, {"kind": "fedavg"}]})
    error = dict(zip(result.summary["method"], result.summary["mse_mean"]))
    assert error["affpcl"] < 0.6 * error["independent"]
    assert error["affpcl"] < 1.2 * error["fedavg"]


@pytest.mark.parametrize("environment", gym.WORLDS)
@pytest.mark.parametrize("method", [m for m in affpcl.catalogue()["methods"] if m in (
    "affpcl", "independent", "fedavg", "fine_tune", "pfedme", "ditto", "ifca", "scaffold", "residual")])
def test_every_method_acts(environment, method):
    chosen = {"affpcl": {"ratio": "linear"}, "ifca": {"form": "published", "clusters": 2}}.get(method, {})
    run = affpcl.Replicate({"problem": {"kind": "gym_control", "environment": environment, "agents": 3, "order": 1,
                                        "tilings": 2, "bins": 2},
                            "run": {"steps": 40, "step_size": 0.1}, "method": [{"kind": method, **chosen}]})
    run.advance(40)
    x = run.solution(method)
    assert numpy.isfinite(x).all() and numpy.abs(x).max() > 0


def test_a_run_repeats_and_can_be_saved():
    spec = {"problem": SMALL, "run": {"steps": 60, "step_size": 0.2}, "method": [{"kind": "affpcl", "ratio": "linear"}]}
    first, second = affpcl.Replicate(spec), affpcl.Replicate(spec)
    first.advance(25)
    state = first.save()
    first.advance(60)
    second.load(state)
    second.advance(60)
    assert (first.solution("affpcl") == second.solution("affpcl")).all()


def test_returns_are_those_of_finished_episodes():
    gym.take_returns()
    affpcl.run({"problem": SMALL, "run": {"steps": 200, "replicates": 1}, "method": [{"kind": "independent"}]})
    returns = gym.take_returns()
    assert returns.rows > 10 and set(returns["agent"]) == {0, 1, 2}
    assert (numpy.abs(returns["value"]) < 2).all()
    assert gym.take_returns().rows == 0


@pytest.mark.parametrize("values, says", [
    ({"environment": "pong"}, "frozen_lake, cart_pole, mountain_car"),
    ({"features": "tiles"}, "allowed: tabular"),
    ({"environment": "cart_pole", "features": "tabular"}, "allowed: tiles, fourier"),
])
def test_refusals(values, says):
    with pytest.raises(ValueError, match=says):
        made("control", **values)


EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"


def test_the_example_runs(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import gymnasium_agents

    monkeypatch.setattr(gymnasium_agents, "METHODS", {k: gymnasium_agents.METHODS[k] for k in ("affpcl", "independent")})
    gymnasium_agents.main("frozen_lake", str(tmp_path / "curves.svg"), 200)
    assert "affpcl" in capsys.readouterr().out
    assert (tmp_path / "curves.svg").stat().st_size > 10000


def test_the_notebook_runs(capsys):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    book = json.loads((EXAMPLES / "gymnasium_frozen_lake.ipynb").read_text())
    space = {}
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("STEPS = 2000", "STEPS = 200"), space)
    assert len(capsys.readouterr().out.splitlines()) == 4
