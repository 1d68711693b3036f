"""Eight agents on variants of a Gymnasium environment: SARSA control, each agent's return, and TD's error.

    python gymnasium_agents.py frozen_lake curves.svg     # or cart_pole, mountain_car
"""
import sys

import numpy

import affpcl
import affpcl.gym

METHODS = {
    "affpcl": {"kind": "affpcl", "ratio": "none"},
    "affpcl, learnt ratio": {"kind": "affpcl", "ratio": "linear"},
    "independent": {"kind": "independent"},
    "fedavg": {"kind": "fedavg"},
}
CONTROL = {  # step size, temperature, discount
    "frozen_lake": (0.2, 0.05, 0.95),
    "cart_pole": (0.5, 0.05, 0.95),
    "mountain_car": (0.5, 0.05, 0.99),
}


def control(environment, method, steps, agents=8, seed=1):
    """The returns of all episodes of one method's agents: columns replicate, step, agent, value."""
    step_size, temperature, gamma = CONTROL[environment]
    affpcl.gym.take_returns()  # of earlier runs
    affpcl.run({
        "problem": {"kind": "gym_control", "environment": environment, "agents": agents, "temperature": temperature,
                    "gamma": gamma},
        "run": {"steps": steps, "step_size": step_size, "replicates": 1, "seed": seed},
        "method": [method],
    })
    return affpcl.gym.take_returns()


def evaluation(environment, methods, steps, agents=8, reference=4000, replicates=1, seed=1):
    """The error of every agent's values of one fixed policy, against a long trajectory's."""
    return affpcl.run({
        "problem": {"kind": "gym_evaluation", "environment": environment, "agents": agents, "reference": reference,
                    "gamma": 0.9},
        "run": {"steps": steps, "step_size": 0.1, "replicates": replicates, "tail": max(1, steps // 10), "seed": seed,
                "curve_agents": list(range(agents))},
        "method": [{"name": name, **method} for name, method in methods.items()],
    })


def by_part(returns, steps, parts=10):
    """Mean returns of the episodes that end in each part of the run; NaN where none does."""
    part = numpy.minimum(returns["step"] * parts // steps, parts - 1)
    return numpy.array([returns["value"][part == k].mean() if (part == k).any() else numpy.nan for k in range(parts)])


def main(environment="frozen_lake", picture="", steps=3000):
    steps = int(steps)
    result = evaluation(environment, METHODS, steps)
    curves = {name: control(environment, method, steps) for name, method in METHODS.items()}
    print(f"{'method':18} error of values, against independent    return in the last tenth")
    for name in METHODS:
        row = result.summary.where(method=name)
        print(f"{name:18} {row['mse_mean'][0]:15.4g} {row['vs_independent_mean'][0]:20.3f} "
              f"{by_part(curves[name], steps)[-1]:26.3f}")
    if picture:
        draw(environment, result, curves, steps, picture)


def draw(environment, result, curves, steps, picture):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for k, name in enumerate(curves):
        colour = f"C{k}"
        mean = result.curves.where(method=name, agent=-1)
        left.plot(mean["step"], mean["mse_mean"], colour, label=name)
        right.plot((numpy.arange(10) + 0.5) * steps / 10, by_part(curves[name], steps), colour)
        for agent in numpy.unique(curves[name]["agent"]):
            own = by_part(curves[name].where(agent=agent), steps)
            right.plot((numpy.arange(10) + 0.5) * steps / 10, own, colour, alpha=0.15, linewidth=0.8)
    left.set(yscale="log", xlabel="step", ylabel="squared error of values", title=f"{environment}: evaluation")
    right.set(xlabel="step", ylabel="return of an episode", title="control (thin: one agent)")
    left.legend()
    figure.savefig(picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
