"""A small study, one with every method of the catalogue, and what two runs of a study must agree on, to the letter."""
import json

SMALL = '''[problem]
kind = "gaussian"
agents = 4
[run]
steps = 20
replicates = 3
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
'''

EVERY_METHOD = '''[problem]
kind = "gaussian"
agents = 600
dim = 3
delta_env = 0.2
[run]
steps = 60
replicates = 3
seed = 7
tail = 5
step_size = 0.003
curve_agents = [0, -1]
[[method]]
kind = "affpcl"
[[method]]
kind = "affpcl"
name = "learnt"
ratio = "linear"
guard = "full"
[[method]]
kind = "affpcl"
name = "periods"
ratio = "none"
period = 4
batch = 2
''' + "".join(f'[[method]]\nkind = "{kind}"\n' for kind in
              ("independent", "fedavg", "fine_tune", "pfedme", "ditto", "ifca", "scaffold", "residual")) + '''[sweep]
"problem.delta_obj" = [0.1, 0.3]
'''


def result_of(folder):
    """The files of a result, without the manifest and the times."""
    summary = json.loads((folder / "summary.json").read_text())
    del summary["manifest"]
    for setting in summary["settings"]:
        for method in setting["methods"]:
            del method["seconds"]
    return json.dumps(summary), (folder / "curves.csv").read_text(), (folder / "agents.csv").read_text()


def checkpoints(folder):
    """The numbers of a folder's checkpoints, in order."""
    return sorted(int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*.affpcl"))
