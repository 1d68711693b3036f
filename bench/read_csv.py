#!/usr/bin/env python3
"""Reads one CSV file with affpcl and with pandas' C reader, in turn, and compares medians and memory.

usage: read_csv.py PATH_TO_AFFPCL_BENCH [ROWS [COLUMNS [TIMES]]]      (default 1000000 50 5; needs pandas: tools/setup bench)

Every reading is a process of its own; only the reading is timed, and the file is in the page cache. Memory is the peak of
the process beyond that of one that reads a single row, beside the bytes of the numbers as doubles.
"""
import json, os, pathlib, statistics, subprocess, sys, tempfile
import numpy, pandas

bench = str(pathlib.Path(sys.argv[1]).resolve())
rows, columns, times = (int(a) for a in (sys.argv[2:] + ['1000000', '50', '5'][len(sys.argv) - 2:]))
PANDAS = 'import sys, time, pandas as p; t = time.perf_counter(); p.read_csv(sys.argv[1], engine="c"); print(time.perf_counter() - t)'

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
    return json.loads(out)['benchmarks'][0]['real_time'] / 1000, memory

def theirs(path):
    out, memory = child([sys.executable, '-c', PANDAS, path])
    return float(out), memory

def write(path, rows):
    draw = numpy.random.default_rng(1)
    with open(path, 'w') as f:
        f.write('agent,' + ','.join(f'x{j}' for j in range(columns)) + '\n')
        for first in range(0, rows, 10_000):
            count = min(10_000, rows - first)
            block = numpy.column_stack([numpy.arange(first, first + count) % 1000, draw.normal(size=(count, columns))])
            numpy.savetxt(f, block, fmt=['%d'] + ['%.6g'] * columns, delimiter=',')

with tempfile.TemporaryDirectory() as folder:
    path, one = f'{folder}/rows.csv', f'{folder}/one.csv'
    write(path, rows)
    write(one, 1)
    floor = {'affpcl': ours(one)[1], 'pandas': theirs(one)[1]}
    runs = {'affpcl': [], 'pandas': []}
    for _ in range(times):
        runs['affpcl'].append(ours(path))
        runs['pandas'].append(theirs(path))
    size = os.path.getsize(path)
print(f'{rows} rows, {columns + 1} columns, {size / 1e6:.0f} MB; medians of {times}, in turn; pandas {pandas.__version__}')
median = {name: statistics.median(t for t, _ in r) for name, r in runs.items()}
for name, r in runs.items():
    memory = statistics.median(m for _, m in r) - floor[name]
    print(f'  {name}  {median[name]:7.3f} s  {size / 1e6 / median[name]:6.0f} MB/s  memory {memory / 1e6:5.0f} MB, {memory / (8 * rows * (columns + 1)):.2f} of the doubles')
print(f'  pandas takes {median["pandas"] / median["affpcl"]:.2f} times as long')
