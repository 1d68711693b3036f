#!/usr/bin/env python3
"""The exact solver on the rows of fig-real: `affpcl fit` on each fold's training rows, scored on the rows held out.

usage: exact.py PATH_TO_AFFPCL FEATURES        FEATURES holds features.npy and labels.csv (make features)

Prints, for every delta_obj of the figure, the test error of the models given, of learning alone and of one model for all
(all from model.json), averaged over agents, with 90 % intervals over networks and folds. Needs numpy.
"""
import csv, itertools, json, math, pathlib, statistics, subprocess, sys, tempfile

import numpy as np

T90 = {4: 2.132, 9: 1.833, 14: 1.761}  # Student's t, 95 %, by degrees of freedom


def main(program, folder):
    folder = pathlib.Path(folder)
    X = np.load(folder / 'features.npy')
    labels = list(csv.DictReader(open(folder / 'labels.csv')))
    channels = [k for k in labels[0] if k not in ('agent', 'fold', 'network')]
    agents = list(dict.fromkeys(r['agent'] for r in labels))
    fold, network = (np.array([int(r[k]) for r in labels]) for k in ('fold', 'network'))
    own = np.array([agents.index(r['agent']) for r in labels])
    C = np.array([[float(r[k]) for k in channels] for r in labels])
    for delta in (0, .2, .6, 1):
        weight = [.5 + delta * (i / (len(agents) - 1) - .5) for i in range(len(agents))]
        errors = {'given': [], 'alone': [], 'pooled': []}
        for net, f in itertools.product(range(network.max() + 1), range(fold.max() + 1)):
            with tempfile.TemporaryDirectory() as tmp:
                tmp = pathlib.Path(tmp)
                (tmp / 'prefs.csv').write_text(f'agent,{channels[0]},{channels[1]}\n' + ''.join(
                    f'{a},{w!r},{1 - w!r}\n' for a, w in zip(agents, weight)))
                with open(tmp / 'train.csv', 'w') as out:
                    out.write(','.join(['agent', *channels, *(f'x{j}' for j in range(X.shape[1]))]) + '\n')
                    for r in np.flatnonzero((network == net) & (fold != f)):
                        out.write(','.join([agents[own[r]], *map(str, C[r]), *map(str, X[r])]) + '\n')
                subprocess.run([program, 'fit', tmp / 'train.csv', '--channels', ','.join(channels), '--weights', tmp / 'prefs.csv',
                                '--no-score', '--quiet', '--out', tmp / 'm'], check=True)
                model = json.loads((tmp / 'm' / 'model.json').read_text())
            names = [c['name'] for c in model['columns']]
            at = [int(n[1:]) for n in names]
            mean, sd = (np.array([c[k][0] for c in model['columns']]) for k in ('mean', 'sd'))
            Z = np.hstack([np.ones((len(X), 1)), (X[:, at] - mean) / sd])
            place = {a['name']: a for a in model['agents']}
            each = {k: [] for k in errors}
            for i, a in enumerate(agents):
                rows = (own == i) & (network == net) & (fold == f)
                w = np.array([weight[i], 1 - weight[i]])
                y = C[rows] @ w
                said = {'given': [c['x'] for c in place[a]['channels']], 'alone': place[a]['alone'],
                        'pooled': [c['pooled'] for c in model['channels']]}
                for k, x in said.items():
                    each[k].append(((Z[rows] @ (w @ np.array(x)) - y)**2).mean())
            for k in errors:
                errors[k].append(statistics.mean(each[k]))
        n = len(errors['given'])
        print(f'delta_obj {delta}: ' + ', '.join(
            f'{k} {statistics.mean(v):.4f} +- {T90[n - 1] * statistics.stdev(v) / math.sqrt(n):.4f}' for k, v in errors.items()), flush=True)


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
