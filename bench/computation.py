"""Time of a round of AffPCL over one of FedAvg: the paper remarks 6 (Theta(6 d) against Theta(d)).

    python bench/computation.py build/release/affpcl [--agents 1000] [--seconds 0.2]

Each method runs alone and draws its own samples. Medians of five alternating runs.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

METHODS = {
    "fedavg": 'kind = "fedavg"',
    "independent": 'kind = "independent"',
    "scaffold": 'kind = "scaffold"',
    "ditto": 'kind = "ditto"',
    "affpcl, no ratio": 'kind = "affpcl"\nratio = "none"',
    "affpcl, no ratio, CDL-2": 'kind = "affpcl"\nratio = "none"\ncentral = "estimated"',
    "affpcl, linear ratio, p = 32": 'kind = "affpcl"\nratio = "linear"',
    "affpcl, exact ratio, 8 designs": 'kind = "affpcl"',
}
PROBLEMS = {
    "gaussian": 'kind = "gaussian"\nenvironments = 8',
    "estimation": 'kind = "estimation"\nfunctionals = "moments"\nenvironments = 8',
}


def seconds(program, folder, problem, names, agents, dim, steps):
    """Of a round of each of these methods, which share their samples."""
    spec = pathlib.Path(folder, "spec.toml")
    methods = "".join(f'[[method]]\nname = "{name}"\n{METHODS[name]}\n' for name in names)
    spec.write_text(f"[problem]\n{PROBLEMS[problem]}\nagents = {agents}\ndim = {dim}\n[run]\nsteps = {steps}\n"
                    f"replicates = 1\ntail = 1\nstep_size = 1e-6\ncurve_points = 1\n{methods}")
    out = pathlib.Path(folder, "out")
    subprocess.run([program, "run", spec, "--out", out, "--force", "--threads", "1", "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    found = json.loads((out / "summary.json").read_text())["settings"][0]["methods"]
    return {m["name"]: m["seconds"] / steps for m in found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--agents", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=0.2, help="of one run of FedAvg")
    a = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for problem, dims in (("gaussian", (5, 20)), ("estimation", (5,))):
            for dim in dims:
                def run(name, steps):
                    return seconds(a.program, folder, problem, [name], a.agents, dim, steps)[name]

                steps = max(50, int(a.seconds / run("fedavg", 50)))
                times = [{name: run(name, steps) for name in METHODS} for _ in range(5)]
                took = {name: statistics.median(t[name] for t in times) for name in METHODS}
                print(f"{problem}, n = {a.agents}, dim = {dim}: a round of FedAvg takes {took['fedavg'] * 1e6:.0f} us")
                for name in METHODS:
                    print(f"    {name:32} {took[name] / took['fedavg']:6.2f}")


if __name__ == "__main__":
    main()
