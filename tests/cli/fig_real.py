#!/usr/bin/env python3
"""A small fig-real on real handwriting: `affpcl reproduce fig-real` on chars74k (../shared/data), with principal components
of the pixels in the place of a network's features, which need libtorch.

Checked: the pipeline from features.npy and labels.csv, and the signs of the figure. Without shared data it is skipped."""
import csv, json, pathlib, sys

import numpy as np

folder = pathlib.Path(__file__).resolve().parents[3] / 'shared' / 'data' / 'chars74k_hnd'
if not folder.exists():
    print('skipped: no shared data')
    sys.exit(77)

from _harness import check, run, tmp

AGENTS, FOLDS, DIM = 10, 5, 84
pixels = np.frombuffer((folder / 'images-idx3-ubyte').read_bytes()[16:], np.uint8).reshape(-1, 784) / 255
labels = list(csv.DictReader(open(folder / 'labels.csv')))
writer = np.array([int(r['agent']) for r in labels])
own = writer < AGENTS
mean = pixels[~own].mean(0)
_, _, V = np.linalg.svd(pixels[~own] - mean, full_matrices=False)
features = np.hstack([np.ones((own.sum(), 1)), (pixels[own] - mean) @ V[:DIM - 1].T])
features /= np.sqrt((features**2).mean())
rng = np.random.default_rng(1)
fold = np.concatenate([rng.permutation(np.arange((writer == i).sum()) % FOLDS) for i in range(AGENTS)])
np.save(tmp / 'features.npy', features.astype(np.float32))
with open(tmp / 'labels.csv', 'w') as out:
    out.write('agent,digit,curved_letter,fold,network\n')
    for r, f in zip((r for r in labels if int(r['agent']) < AGENTS), fold):
        out.write(f"{r['agent']},{r['is_digit']},{r['is_curved_letter']},{f},0\n")

p = run('reproduce', 'fig-real', '--data', tmp, '--json', '--set', 'run.steps=300', '--set', 'run.replicates=5', '--set',
        'run.curve_points=10', '--set', 'run.tail=30')
check('it runs', p.returncode == 0, p.stderr)
settings = json.loads(p.stdout)['settings']
for s in settings:
    level, errors = s['at']['problem.delta_obj'], {m['name']: m for m in s['methods']}
    ratio = {name: m['vs_independent'] for name, m in errors.items()}
    check(f'level {level}: AffPCL is below learning alone', ratio['affpcl']['hi'] < 1, ratio['affpcl'])
    known, moments = (errors[name]['mse']['mean'] for name in ('affpcl', 'moments'))
    check(f'level {level}: solved weights are as good as stated ones', abs(moments / known - 1) < .01, moments / known)
    if level == 0:
        same = errors['affpcl']['mse']['mean'] / errors['fedavg']['mse']['mean']
        check('level 0: AffPCL is FedAvg', abs(same - 1) < .02, same)
        check('level 0: the gradient form of COE is far behind', ratio['gradient']['mean'] > ratio['affpcl']['mean'] + .1, ratio)
p = run('reproduce', 'fig-real', '--data', tmp / 'nowhere')
check('a missing folder: one sentence that says where it looked',
      p.returncode == 2 and str(tmp / 'nowhere' / 'features.npy') in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr)
