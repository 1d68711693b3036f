"""A study with every method of the catalogue, and what two runs of one study must agree on, to the letter."""
import json

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
''' + ''.join(f'[[method]]\nkind = "{kind}"\n' for kind in
              ('independent', 'fedavg', 'fine_tune', 'pfedme', 'ditto', 'ifca', 'scaffold', 'residual')) + '''[sweep]
"problem.delta_obj" = [0.1, 0.3]
'''

def core(folder):
    s = json.loads((folder / 'summary.json').read_text())
    del s['manifest']
    for setting in s['settings']:
        for method in setting['methods']: del method['seconds']
    return json.dumps(s), (folder / 'curves.csv').read_text(), (folder / 'agents.csv').read_text()
