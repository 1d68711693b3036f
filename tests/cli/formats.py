#!/usr/bin/env python3
"""The same rows in every format that fit and predict read give the same model; damaged files get one sentence.

usage: formats.py PATH_TO_AFFPCL        (needs numpy, which writes its own files; exit 77 without it)
"""
import csv, json, struct, sys
try:
    import numpy as np
except ImportError:
    print('no numpy'); sys.exit(77)

from _harness import check, refused, run, tmp

rng = np.random.default_rng(1)
n, d = 120, 4
agent = np.arange(n) % 3
X = rng.integers(0, 200, (n, d)).astype(float)          # whole numbers: every format holds them exactly
y = np.round((X * (1 + .1 * agent[:, None])).sum(1) + rng.normal(0, 5, n))

def write_csv(path, names, columns):
    with open(tmp / path, 'w', newline='') as f:
        w = csv.writer(f); w.writerow(names); w.writerows(zip(*columns))
ints = lambda v: [int(i) for i in v]
write_csv('all.csv', ['agent', 'y', *(f'x{j}' for j in range(d))], [ints(agent), ints(y), *(ints(c) for c in X.T)])
write_csv('who.csv', ['agent', 'y'], [ints(agent), ints(y)])
write_csv('agents.csv', ['agent'], [ints(agent)])
np.save(tmp / 'x.npy', X)
np.save(tmp / 'fortran.npy', np.asfortranarray(X.astype('>i4')))
np.save(tmp / 'record.npy', np.rec.fromarrays([agent.astype('U3'), y.astype('f4'), *X.T.astype('u1')], names=['agent', 'y', *(f'x{j}' for j in range(d))]))
np.savez(tmp / 'stored.npz', agent=agent, y=y, x=X)
np.savez_compressed(tmp / 'packed.npz', agent=agent.astype('S1'), y=y.astype('i2'), x=X.astype('f4'))
(tmp / 'x.svm').write_text(''.join(f'{int(t)} ' + ' '.join(f'{j}:{int(v)}' for j, v in enumerate(r) if v) + '\n' for t, r in zip(y, X)))
def idx(path, array, code=0x08): (tmp / path).write_bytes(struct.pack('>HBB', 0, code, array.ndim) + b''.join(struct.pack('>I', s) for s in array.shape) + array.tobytes())
idx('train-images-idx3-ubyte', X.astype('u1').reshape(n, 2, 2))
idx('labels.idx', y.astype('>i4'), 0x0C)
def leaf(path, who):
    data = {str(a): {'x': X[agent == a].tolist(), 'y': y[agent == a].tolist()} for a in who}
    (tmp / path).write_text(json.dumps({'users': list(data), 'num_samples': [len(v['y']) for v in data.values()], 'user_data': data}))
leaf('leaf.json', [0, 1, 2])
(tmp / 'leaf').mkdir(); leaf('leaf/0.json', [0]); leaf('leaf/1.json', [2, 1])

def coefficients(name, *args):
    p = run('fit', *args, '--out', f'm-{name}', '--quiet')
    if p.returncode: return p.stderr
    m = json.loads((tmp / f'm-{name}' / 'model.json').read_text())
    return [(a['name'], [c['x'] for c in a['channels']]) for a in m['agents']]
want = coefficients('csv', 'all.csv', '--target', 'y')
check('CSV is fitted', isinstance(want, list), want)
def same(got): return isinstance(got, list) and [a for a, _ in got] == [a for a, _ in want] and np.allclose([c for _, c in got], [c for _, c in want], rtol=1e-9)
for name, *args in (('npy and csv', 'x.npy', '--with', 'who.csv'), ('fortran npy', 'fortran.npy', '--with', 'who.csv'), ('record', 'record.npy'),
                    ('npz', 'stored.npz'), ('packed', 'packed.npz'), ('svm', 'x.svm', '--with', 'agents.csv'), ('idx', 'train-images-idx3-ubyte', '--with', 'who.csv'),
                    ('leaf', 'leaf.json'), ('leaf folder', 'leaf')):
    got = coefficients(name.replace(' ', '-'), *args, '--target', 'y')
    check(f'{name}: the same model', same(got), got)
got = coefficients('twice', 'train-images-idx3-ubyte', '--with', 'labels.idx', '--with', 'agents.csv', '--target', 'label')
check('two files beside: the same model', same(got), got)
sites = tmp / 'sites'
sites.mkdir()
for a in range(3): np.savez(sites / f'{a}.npz', y=y[agent == a], x=X[agent == a])
check('one .npz per agent', same(coefficients('sites', 'sites', '--target', 'y')))
got = coefficients('features', 'x.npy', '--with', 'who.csv', '--target', 'y', '--features', 'x1')
check('--features of a table with another beside', isinstance(got, list), got)

# ---- predictions ----
def predicted(*args):
    p = run('predict', *args, '--out', 'p.csv', '--force')
    if p.returncode: return p.stderr
    return list(csv.DictReader(open(tmp / 'p.csv', newline='')))
base = predicted('m-csv', 'all.csv')
check('predict: CSV keeps its rows', list(base[0])[:3] == ['agent', 'y', 'x0'] and len(base) == n, base[0])
values = [float(r['prediction']) for r in base]
for model, *args in (('npz', 'stored.npz'), ('packed', 'packed.npz'), ('record', 'record.npy'), ('npy-and-csv', 'x.npy', '--with', 'who.csv'), ('svm', 'x.svm', '--with', 'agents.csv')):
    got = predicted(f'm-{model}', *args)
    check(f'predict {args[0]}: agent and prediction', isinstance(got, list) and list(got[0]) == ['agent', 'prediction', 'prediction_lo', 'prediction_hi']
          and [r['agent'] for r in got] == [str(a) for a in agent] and np.allclose([float(r['prediction']) for r in got], values), got if isinstance(got, str) else got[0])
got = predicted('m-sites', 'sites/1.npz')
check('predict by file: the agent is the file', isinstance(got, list) and {r['agent'] for r in got} == {'1'}, got)
write_csv('only_x.csv', [f'x{j}' for j in range(d)], [ints(c) for c in X.T])
got = predicted('m-csv', 'only_x.csv', '--with', 'agents.csv')
check('predict: an agent from beside is named', isinstance(got, list) and list(got[0]) == ['x0', 'x1', 'x2', 'x3', 'agent', 'prediction', 'prediction_lo', 'prediction_hi']
      and np.allclose([float(r['prediction']) for r in got], values), got if isinstance(got, str) else got[0])

# ---- what is refused ----
fit = lambda *args: ('fit', *args, '--target', 'y', '--out', 'out')
write_csv('short.csv', ['agent', 'y'], [ints(agent[:100]), ints(y[:100])])
refused('--with another number of rows', *fit('x.npy', '--with', 'short.csv'), says=('short.csv', '100 rows', '120'))
refused('--with a column that is there already', *fit('all.csv', '--with', 'who.csv'), says=('who.csv', "'agent'"))
refused('--with a file that is not there', *fit('x.npy', '--with', 'gone.csv'), says=('gone.csv',))
refused('predict --with another number of rows', 'predict', 'm-csv', 'only_x.csv', '--with', 'short.csv', says=('short.csv', '100', '120'))
blank = np.array(X); blank[7, 2] = np.nan
np.save(tmp / 'blank.npy', blank)
refused('a NaN in .npy has its row', *fit('blank.npy', '--with', 'who.csv'), says=('blank.npy', 'row 8', "'x2'", '--missing mean'))
write_csv('who2.csv', ['agent', 'y'], [ints(agent), ['' if i == 3 else int(v) for i, v in enumerate(y)]])
refused('a blank beside has its line', *fit('x.npy', '--with', 'who2.csv'), says=('who2.csv', 'line 5', "'y'"))
np.save(tmp / 'objects.npy', np.array([{}, 1], dtype=object), allow_pickle=True)
refused('Python objects', *fit('objects.npy'), says=('objects.npy', 'objects'))
np.savez(tmp / 'lengths.npz', a=X, b=y[:5])
refused('arrays of two lengths', *fit('lengths.npz'), says=("array 'b'", '5', '120'))
for name, good in (('a.npy', 'x.npy'), ('a.npz', 'packed.npz'), ('a.svm', 'x.svm'), ('a-idx3-ubyte', 'train-images-idx3-ubyte'), ('a.json', 'leaf.json'), ('a.csv', 'all.csv')):
    bytes_ = (tmp / good).read_bytes()
    bad = tmp / name
    def bad_file(what, content, says=()):
        bad.write_bytes(content)
        refused(f'{name}: {what}', *fit(name), says=(name, *says))
    bad_file('empty', b'')
    half = len(bytes_) // 2
    bad_file('cut', bytes_[:bytes_.rindex(b',', 0, half) if name == 'a.csv' else half])  # half a row of CSV, not just half the rows
    bad_file('another format', (tmp / ('all.csv' if name != 'a.csv' else 'packed.npz')).read_bytes())
    bad_file('a line of 10^7 characters', b'1' * 10_000_001)
    bad_file('gzip', b'\x1f\x8b\x08\x00' + bytes_, ('gunzip',))
    bad.unlink()
    bad.symlink_to(tmp / 'gone')
    refused(f'{name}: vanished', *fit(name), says=(name,))
    bad.unlink()
(tmp / 'r.svm').write_text('1 1:2\n1 2:1 1:3\n')
refused('svmlight: out of order', *fit('r.svm'), says=('r.svm', 'line 2', "'1:3'"))
(tmp / 'r.json').write_text('{"user_data": {"a": {"x": [[1, 2], [3]], "y": [1, 2]}}}')
refused('LEAF: ragged', *fit('r.json'), says=('r.json', "user 'a'", 'sample 2'))
