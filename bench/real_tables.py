#!/usr/bin/env python3
"""Test R^2 of `affpcl fit` on real tables: 60/40 splits within agents, several seeds.

usage: real_tables.py PATH_TO_AFFPCL DATA_FOLDER [SEEDS]

DATA_FOLDER holds school/school.csv, beijing_air/beijing_air.csv, wisdm/wisdm.csv; a table that is missing is skipped.
"""
import collections, csv, json, pathlib, random, statistics, subprocess, sys, tempfile, time


def school(row):
    return row


def beijing_air(row):
    return {k: v for k, v in row.items() if k not in ('year', 'month', 'day', 'hour')}


def wisdm(row):
    row = dict(row)
    row['moves'] = int(row.pop('label') in ('Walking', 'Jogging'))
    return row


TABLES = [(school, 'y'), (beijing_air, 'PM2.5'), (wisdm, 'moves')]


def write(path, rows):
    with open(path, 'w', newline='') as file:
        out = csv.DictWriter(file, rows[0].keys())
        out.writeheader()
        out.writerows(rows)


def main(affpcl, data, seeds=3):
    for change, target in TABLES:
        name = change.__name__
        source = pathlib.Path(data, name, name + '.csv')
        if not source.exists():
            print(f'{name}: skipped, {source} is not there')
            continue
        with open(source, newline='') as file:
            rows = [change(row) for row in csv.DictReader(file)]
        scores, seconds = [], []
        for seed in range(int(seeds)):
            agents = collections.defaultdict(list)
            for row in rows:
                agents[row['agent']].append(row)
            train, test, rng = [], [], random.Random(seed)
            for own in agents.values():
                rng.shuffle(own)
                cut = max(1, round(.6 * len(own)))
                train += own[:cut]
                test += own[cut:]
            with tempfile.TemporaryDirectory() as folder:
                folder = pathlib.Path(folder)
                write(folder / 'train.csv', train)
                write(folder / 'test.csv', test)
                start = time.time()
                subprocess.run([affpcl, 'fit', folder / 'train.csv', '--target', target, '--missing', 'mean', '--no-score',
                                '--out', folder / 'model', '--quiet'], check=True)
                seconds.append(time.time() - start)
                told = subprocess.run([affpcl, 'predict', folder / 'model', folder / 'test.csv', '--json',
                                       '--out', folder / 'p.csv'], check=True, capture_output=True, text=True)
                with open(folder / 'p.csv', newline='') as file:
                    inside = [float(r['prediction_lo']) <= float(r[target]) <= float(r['prediction_hi'])
                              for r in csv.DictReader(file)]
            scores.append((json.loads(told.stdout)['score']['r2'], statistics.mean(inside)))
        r2 = [s[0] for s in scores]
        print(f'{name}: R^2 {statistics.mean(r2):.3f} ({" ".join(f"{v:.3f}" for v in r2)}), 90 % intervals hold '
              f'{100 * statistics.mean(s[1] for s in scores):.1f} % of the rows, {statistics.mean(seconds):.2f} s a fit', flush=True)


if __name__ == '__main__':
    if not 3 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
