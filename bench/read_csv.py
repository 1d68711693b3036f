#!/usr/bin/env python3
"""Reads one CSV file with affpcl, with pandas' C reader and with pyarrow, in turn, and compares medians and memory.

usage: read_csv.py PATH_TO_AFFPCL_BENCH [ROWS [COLUMNS [TIMES]]]      (default 1000000 50 5; needs pandas; pyarrow where it is installed: tools/setup bench)

Every reading is a process of its own, and only the reading is timed. Times are of the processor, system calls included: both
read on one thread, and what else the machine does then matters little. Memory is the peak of the whole process (of pandas'
with some 80 MB of interpreter), beside the bytes of the numbers as doubles.
"""
import importlib.util, io, json, os, pathlib, statistics, subprocess, sys, tempfile
import numpy, pandas

bench = str(pathlib.Path(sys.argv[1]).resolve())
rows, columns, times = (int(a) for a in (sys.argv[2:] + ['1000000', '50', '5'][len(sys.argv) - 2:]))
PANDAS = 'import sys, time, pandas as p; t = time.process_time(); p.read_csv(sys.argv[1], engine="c"); print(time.process_time() - t)'

ARROW = 'import sys, time, pyarrow.csv as p; t = time.process_time(); p.read_csv(sys.argv[1], read_options=p.ReadOptions(use_threads=False)); print(time.process_time() - t)'

def child(args, **env):
    """What it prints, and its peak memory in bytes."""
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**os.environ, **env})
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = status
    if status: sys.exit(f'{args[0]} failed')
    return out, usage.ru_maxrss * 1024

def ours(path):
    out, memory = child([bench, '--benchmark_filter=^ReadTable$', '--benchmark_format=json', '--benchmark_min_time=0.001'], AFFPCL_READ=path)
    return json.loads(out)['benchmarks'][0]['cpu_time'] / 1000, memory

def theirs(script, path):
    out, memory = child([sys.executable, '-c', script, path])
    return float(out), memory

def write(path, rows):
    """A block of normal draws with six digits, again and again: what a reader has to do is the same, and writing is quick."""
    count = min(rows, 10_000)
    block = numpy.column_stack([numpy.arange(count) % 1000, numpy.random.default_rng(1).normal(size=(count, columns))])
    text = io.StringIO()
    numpy.savetxt(text, block, fmt=['%d'] + ['%.6g'] * columns, delimiter=',')
    with open(path, 'w') as f:
        f.write('agent,' + ','.join(f'x{j}' for j in range(columns)) + '\n')
        for _ in range(rows // count): f.write(text.getvalue())

with tempfile.TemporaryDirectory() as folder:
    path = f'{folder}/rows.csv'
    write(path, rows)
    scripts = {'pandas': PANDAS} | ({'pyarrow': ARROW} if importlib.util.find_spec('pyarrow') else {})
    runs = {'affpcl': [], **{name: [] for name in scripts}}
    for _ in range(times):
        runs['affpcl'].append(ours(path))
        for name, script in scripts.items(): runs[name].append(theirs(script, path))
    size = os.path.getsize(path)
print(f'{rows} rows, {columns + 1} columns, {size / 1e6:.0f} MB; medians of {times}, in turn; pandas {pandas.__version__}')
median = {name: statistics.median(t for t, _ in r) for name, r in runs.items()}
for name, r in runs.items():
    memory = statistics.median(m for _, m in r)
    print(f'  {name}  {median[name]:7.3f} s  {size / 1e6 / median[name]:6.0f} MB/s  memory {memory / 1e6:5.0f} MB, {memory / (8 * rows * (columns + 1)):.2f} of the doubles')
for name in scripts: print(f'  {name} takes {median[name] / median["affpcl"]:.2f} times as long')
