#!/usr/bin/env python3
"""Rounds against agents and ranks: seconds a round, memory an agent, and a model of both (docs/scale.md).

usage: scale.py PATH_TO_AFFPCL [--agents 10000,31623,100000,316228,1000000] [--repeats 3]

AffPCL with a learnt linear ratio (p = 32 bumps, d = 20) on one thread, two threads and two ranks, taken in turn. Seconds a round are
differences of runs of many and of few steps, so that making the problem does not count; medians over the repeats. Needs mpirun.
"""
import argparse, json, math, os, pathlib, statistics, subprocess, sys, tempfile

SPEC = '''[problem]
kind = "gaussian"
agents = {n}
dim = 20
[run]
steps = {steps}
replicates = 1
step_size = 0.0001
[[method]]
kind = "affpcl"
ratio = "linear"
features = "bumps"
p = 32
'''
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1')
WAYS = {'1 thread': ([], ['--threads', '1']), '2 threads': ([], ['--threads', '2']),
        '1 rank': (['mpirun', '-np', '1'], ['--threads', '1']),
        '2 ranks': (['mpirun', '-np', '2', '--oversubscribe'], ['--threads', '1', '--split', 'agents'])}


def run(program, folder, n, steps, way):
    (folder / 'spec.toml').write_text(SPEC.format(n=n, steps=steps))
    before, after = WAYS[way]
    out = folder / 'out'
    subprocess.run([*before, program, 'run', folder / 'spec.toml', '--out', out, '--force', '--quiet', *after], check=True, env=ENV)
    with open(out / 'summary.json') as file:  # the manifest comes first, and of a million agents the rest is large
        head = ''
        for line in file:
            if line.startswith(' "headline"'): break
            head += line
    return json.loads(head.rstrip().rstrip(',') + '}')['manifest']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('affpcl')
    parser.add_argument('--agents', default='10000,31623,100000,316228,1000000')
    parser.add_argument('--repeats', type=int, default=3)
    o = parser.parse_args()
    program, agents = str(pathlib.Path(o.affpcl).resolve()), [int(n) for n in o.agents.split(',')]
    rows = {}
    print(f'{"agents":>9} {"way":10} {"ms a round":>11} {"ns an agent":>12} {"in messages":>12} {"bytes an agent":>15}', flush=True)
    for n in agents:
        few, many = 5, 5 + max(10, min(400, 2_000_000 // n))
        took = {way: [] for way in WAYS}
        for _ in range(o.repeats):
            for way in WAYS:
                with tempfile.TemporaryDirectory() as folder:
                    a, b = (run(program, pathlib.Path(folder), n, steps, way) for steps in (few, many))
                comm = [m.get('communication', {}).get('seconds', 0) for m in (a, b)]
                took[way].append(((b['seconds'] - a['seconds']) / (many - few), (comm[1] - comm[0]) / (many - few), b['peak_bytes'] / n))
        for way, list_ in took.items():
            seconds, comm, memory = (statistics.median(v[k] for v in list_) for k in range(3))
            rows[n, way] = seconds
            print(f'{n:9} {way:10} {1e3 * seconds:11.3f} {1e9 * seconds / n:12.1f} {1e3 * comm:9.3f} ms {memory:15.0f}', flush=True)
    for way in WAYS:
        x, y = [math.log(n) for n in agents], [math.log(rows[n, way]) for n in agents]
        mx, my = statistics.mean(x), statistics.mean(y)
        print(f'{way}: grows as n^{sum((a - mx) * (b - my) for a, b in zip(x, y)) / sum((a - mx)**2 for a in x):.3f}')
    for n in agents:
        print(f'{n} agents: two ranks take {rows[n, "2 ranks"] / rows[n, "2 threads"]:.3f} of two threads\' time, one rank {rows[n, "1 rank"] / rows[n, "1 thread"]:.3f} of one thread\'s')


if __name__ == '__main__':
    main()
