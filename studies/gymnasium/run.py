"""Every method of the catalogue on variants of Gymnasium environments: error of values, return of control.

    python run.py measure OUT.json [frozen_lake cart_pole mountain_car] [--seeds 4]
    python run.py table OUT.json               # the tables of the README
    python run.py draw OUT.json gymnasium.png  # the figure

Needs `pip install affpcl[gym]`, and matplotlib to draw. `measure` adds to OUT.json what is not there yet.
"""
import argparse
import json
import math
import pathlib
import warnings

import numpy

import affpcl
import affpcl.gym

AGENTS, PARTS = 8, 10
LEVEL, OTHERS = 0.2, (0.0, 0.5)  # how far agents differ: with every method, and with four of them
STEPS = {"control": 3000, "evaluation": 1500}
SETTINGS = {  # control: step size, temperature, discount
    "frozen_lake": {"step_size": 0.2, "temperature": 0.05, "gamma": 0.95},
    "cart_pole": {"step_size": 0.5, "temperature": 0.05, "gamma": 0.95},
    "mountain_car": {"step_size": 0.5, "temperature": 0.05, "gamma": 0.99},
}
METHODS = {
    "affpcl, no ratio": {"kind": "affpcl", "ratio": "none"},
    "affpcl, learnt ratio": {"kind": "affpcl", "ratio": "linear"},
    "affpcl, guarded": {"kind": "affpcl", "ratio": "linear", "guard": "full"},
    "ifca": {"kind": "ifca", "form": "published"},
    **{kind: {"kind": kind} for kind in (
        "independent", "fedavg", "fine_tune", "pfedme", "ditto", "scaffold", "residual", "fedprox", "apfl",
        "l2gd", "per_fedavg", "fedrep", "fedem", "all_for_one", "all_for_all", "wga")},
}
MAIN = ("affpcl, no ratio", "affpcl, learnt ratio", "independent", "fedavg")
# Student's t at 95 %, by degrees of freedom: 90 % intervals.
T95 = [math.nan, 6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812, 1.796, 1.782, 1.771, 1.761, 1.753]


def problem(kind, environment, level, **more):
    return {"kind": kind, "environment": environment, "agents": AGENTS, "variation": level, "reward_variation": level, **more}


def control(environment, level, method, seeds):
    """Mean returns of the episodes that end in each tenth of the run: [seed][agent][tenth], None where none does."""
    of, steps = SETTINGS[environment], STEPS["control"]
    affpcl.gym.take_returns()  # of earlier runs
    affpcl.run({
        "problem": problem("gym_control", environment, level, temperature=of["temperature"], gamma=of["gamma"]),
        "run": {"steps": steps, "step_size": of["step_size"], "replicates": seeds, "seed": 1},
        "method": [method],
    })
    returns = affpcl.gym.take_returns()
    part = numpy.minimum(returns["step"] * PARTS // steps, PARTS - 1)
    sums, counts = numpy.zeros((2, seeds, AGENTS, PARTS))
    place = (returns["replicate"], returns["agent"], part)
    numpy.add.at(sums, place, returns["value"])
    numpy.add.at(counts, place, 1)
    with numpy.errstate(invalid="ignore"):
        means = sums / counts
    return [[[None if math.isnan(v) else round(float(v), 5) for v in agent] for agent in seed] for seed in means]


def evaluation(environment, level, names, seeds):
    """Errors of every agent's values of a fixed policy over the last tenth of the run: {method: [seed][agent]}.

    All methods of a seed see the same transitions. Those that refuse the problem are left out.
    """
    def run(methods, seed, steps, reference):
        return affpcl.run({
            "problem": problem("gym_evaluation", environment, level, reference=reference, gamma=0.9),
            "run": {"steps": steps, "step_size": 0.1, "replicates": 1, "seed": seed, "tail": max(1, steps // 10)},
            "method": [{"name": name, **METHODS[name]} for name in methods],
        })

    found = {}
    for name in names:
        try:
            run([name], 1, 2, 100)
            found[name] = {"values": []}
        except (ValueError, RuntimeError) as refused:
            found[name] = {"refused": str(refused)}
    methods = [name for name, entry in found.items() if "values" in entry]
    for seed in range(1, seeds + 1):
        agents = run(methods, seed, STEPS["evaluation"], 4000).agents
        for name in methods:
            found[name]["values"].append([float(v) for v in agents.where(method=name)["mse_mean"]])
    return found


def measure(out, environments, seeds):
    file = pathlib.Path(out)
    found = json.loads(file.read_text()) if file.exists() else {}

    def keep(key, entry):
        found[key] = entry
        file.write_text(json.dumps(found))
        print(key, entry.get("refused", "measured"), flush=True)

    for level in (LEVEL, *OTHERS):
        names = METHODS if level == LEVEL else MAIN
        for environment in environments:
            at = f"{environment}/{level}"
            if f"{at}/evaluation/independent" not in found:
                for name, entry in evaluation(environment, level, names, seeds).items():
                    keep(f"{at}/evaluation/{name}", entry)
            for name in names:
                if (key := f"{at}/control/{name}") in found:
                    continue
                try:
                    keep(key, {"values": control(environment, level, METHODS[name], seeds)})
                except (ValueError, RuntimeError) as refused:
                    keep(key, {"refused": str(refused)})


def interval(values):
    """Mean and half width of its 90 % interval over seeds."""
    values = numpy.asarray(values, float)
    values = values[~numpy.isnan(values)]
    if len(values) < 2:
        return math.nan, math.nan
    return values.mean(), T95[min(len(values) - 1, 15)] * values.std(ddof=1) / math.sqrt(len(values))


def last_returns(entry, parts=3):
    """The mean return of each seed's and agent's episodes in the last parts of the run: [seed][agent]."""
    values = numpy.array(entry["values"], float)[:, :, -parts:]
    with numpy.errstate(invalid="ignore"):
        return numpy.nansum(values, 2) / numpy.where(numpy.isnan(values), 0, 1).sum(2)


def rows(found, environment, level):
    """Per method: error against independent, return, return minus independent's, share of agents that gain."""
    at = f"{environment}/{level}"
    own = numpy.array(found[f"{at}/evaluation/independent"]["values"])
    alone = last_returns(found[f"{at}/control/independent"])
    for name in METHODS if level == LEVEL else MAIN:
        error, value = (found.get(f"{at}/{what}/{name}") for what in ("evaluation", "control"))
        row = {"method": name}
        if error and "values" in error:
            ratios = numpy.array(error["values"]).mean(1) / own.mean(1)
            row["error"] = interval(ratios)
            row["agents"] = float((numpy.array(error["values"]).mean(0) < own.mean(0)).mean())
        if value and "values" in value:
            returns = last_returns(value)
            row["return"] = interval(numpy.nanmean(returns, 1))
            row["more"] = interval(numpy.nanmean(returns, 1) - numpy.nanmean(alone, 1))
            row["returning"] = float((numpy.nanmean(returns, 0) > numpy.nanmean(alone, 0)).mean())
        yield row


def table(out):
    found = json.loads(pathlib.Path(out).read_text())
    show = lambda v, digits: "–" if v is None else f"{v[0]:.{digits}f} ± {v[1]:.{digits}f}"  # noqa: E731
    share = lambda v: "–" if v is None else f"{v * AGENTS:.0f} of {AGENTS}"  # noqa: E731
    for level in (LEVEL, *OTHERS):
        for environment in SETTINGS:
            if f"{environment}/{level}/control/independent" not in found:
                continue
            digits = 3 if environment == "frozen_lake" else 1
            print(f"\n| {environment}, {level} | error vs independent | agents | return | minus independent | agents |")
            print("|---|---|---|---|---|---|")
            for r in rows(found, environment, level):
                print(f"| {r['method']} | {show(r.get('error'), 2)} | {share(r.get('agents'))} "
                      f"| {show(r.get('return'), digits)} | {show(r.get('more'), digits)} | {share(r.get('returning'))} |")
    for key, entry in found.items():
        if "refused" in entry:
            print(f"{key}: {entry['refused']}")


SHOWN = ("affpcl, no ratio", "affpcl, learnt ratio", "independent", "fedavg", "fine_tune", "residual")


def draw(out, picture):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = json.loads(pathlib.Path(out).read_text())
    shown = [e for e in SETTINGS if f"{e}/{LEVEL}/control/independent" in found]
    figure, axes = pyplot.subplots(2, len(shown), figsize=(4 * len(shown), 6.4), layout="constrained", squeeze=False)
    x = (numpy.arange(PARTS) + 0.5) / PARTS
    for column, environment in enumerate(shown):
        top, bottom = axes[:, column]
        for k, name in enumerate(SHOWN):
            entry = found.get(f"{environment}/{LEVEL}/control/{name}", {})
            if "values" not in entry:
                continue
            values = numpy.array(entry["values"], float)
            by_seed = numpy.nanmean(values, 1)
            mean, half = numpy.array([interval(by_seed[:, p]) for p in range(PARTS)]).T
            top.plot(x, mean, f"C{k}", label=name)
            top.fill_between(x, mean - half, mean + half, color=f"C{k}", alpha=0.15, linewidth=0)
        top.set(title=environment, xlabel="share of the run", ylabel="return of an episode")
        measured = [r for r in rows(found, environment, LEVEL) if "error" in r and not math.isnan(r["error"][0])]
        measured.sort(key=lambda r: -r["error"][0])
        y = numpy.arange(len(measured))
        bottom.errorbar([r["error"][0] for r in measured], y, xerr=[r["error"][1] for r in measured], fmt="o",
                        markersize=4, color="C0")
        bottom.axvline(1, color="grey", linewidth=0.8)
        bottom.set(xscale="log", xlabel="error of values, against independent")
        ends = bottom.get_xlim()
        bottom.set_xticks([t for t in (0.3, 0.5, 1, 2, 4, 10, 40) if ends[0] <= t <= ends[1]], minor=False)
        bottom.set_xticks([], minor=True)
        bottom.xaxis.set_major_formatter("{x:g}")
        bottom.set_yticks(y, [r["method"] for r in measured], fontsize=8)
    axes[0, 0].legend(fontsize=8)
    figure.savefig(picture, dpi=80)


def main():
    warnings.filterwarnings("ignore", "Mean of empty slice")  # a tenth in which no episode ends
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["measure", "table", "draw"])
    parser.add_argument("out")
    parser.add_argument("more", nargs="*")
    parser.add_argument("--seeds", type=int, default=4)
    a = parser.parse_args()
    if a.what == "measure":
        measure(a.out, a.more or list(SETTINGS), a.seeds)
    elif a.what == "table":
        table(a.out)
    else:
        draw(a.out, *a.more)


if __name__ == "__main__":
    main()
