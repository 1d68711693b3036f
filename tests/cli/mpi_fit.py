#!/usr/bin/env python3
"""fit under mpirun: the same model on any number of ranks, each reading its share; one sentence for what is wrong; no hang.

usage: mpi_fit.py PATH_TO_AFFPCL        (exit 77 without MPI)
"""
import json, os, random, signal, time
from _harness import affpcl, check, run, tmp
from _mpi import ended, mpi, pids, start, wait_for

def lines_of(agents, rows, columns=4, seed=1):
    """Rows of agents in turn, with a text column that needs quotes, and blanks."""
    rng = random.Random(seed)
    slopes = [[1 + .3 * rng.gauss(0, 1) for _ in range(columns)] for _ in range(agents)]
    for _ in range(rows):
        for i, slope in enumerate(slopes):
            x = [rng.gauss(0, 1) for _ in slope]
            kind = rng.choice(('plain', '"two\nlines"', '"a, ""quoted"" b"'))
            y = sum(a * b for a, b in zip(slope, x)) + rng.gauss(0, 1) + len(kind) / 9
            yield f'site {i}', ','.join([*(f'{v:.6f}' for v in x), kind, f'{y:.6f}'])

HEADER = 'x0,x1,x2,x3,kind,y'
rows = list(lines_of(60, 12))
(tmp / 'one.csv').write_text(f'site,{HEADER}\n' + ''.join(f'{agent},{row}\n' for agent, row in rows))
(tmp / 'files').mkdir()
for name in dict(rows): (tmp / f'files/{name}.csv').write_text(HEADER + '\r\n' + '\r\n'.join(row for agent, row in rows if agent == name))
(tmp / 'left.csv').write_text('site,x0\n' + ''.join(f'{agent},{row.split(",")[0]}\n' for agent, row in rows))
(tmp / 'right.csv').write_text('y\n' + ''.join(row.split(',')[-1] + '\n' for _, row in rows))
(tmp / 'classes.csv').write_text('site,x,class\n' + ''.join(f'{agent},{row.split(",")[0]},{"lo" if float(row.split(",")[-1]) < 1 else "hi"}\n' for agent, row in rows))

def core(folder):
    """model.json without its command, and the summary without what belongs to the machine."""
    model, summary = ((tmp / folder / name).read_text() for name in ('model.json', 'summary.json'))
    s = json.loads(summary)
    for key in ('command', 'host', 'threads', 'ranks', 'seconds', 'communication'): s['manifest'].pop(key, None)
    return [line for line in model.splitlines() if '"command":' not in line], json.dumps(s)

# ---- one model ----
for name, words in (('one file', ['one.csv', '--target', 'y', '--agent', 'site']),
                    ('a file per agent', ['files', '--target', 'y']),
                    ('columns beside, which the first reads', ['left.csv', '--with', 'right.csv', '--target', 'y', '--agent', 'site']),
                    ('classes', ['classes.csv', '--target', 'class', '--agent', 'site'])):
    p = run('fit', *words, '--out', 'alone', '--force', '--threads', 1)
    check(f'{name}: one process', p.returncode == 0, p.stderr)
    want = core('alone')
    for ranks, threads in ((1, 1), (2, 1), (2, 2), (3, 1), (8, 1)):
        code, out, said, _ = mpi(ranks, 'fit', *words, '--out', 'r', '--force', '--threads', threads)
        check(f'{name}, {ranks} ranks, {threads} threads: the same to the letter', code == 0 and core('r') == want, (code, said))
        check(f'{name}, {ranks} ranks, {threads} threads: the first alone talks', out.count('model in r') == 1 and not said, (out[-200:], said))
        manifest = json.loads((tmp / 'r/summary.json').read_text())['manifest']
        check(f'{name}, {ranks} ranks, {threads} threads: the manifest says so', manifest['ranks'] == ranks
              and (ranks == 1) == ('communication' not in manifest) and (ranks == 1 or manifest['communication']['bytes_sent'] > 0), manifest)

# ---- what goes wrong is said once, as one process says it ----
good = (tmp / 'one.csv').read_text()
def broken(name, old, new):
    at = good.rindex(old)
    (tmp / name).write_text(good[:at] + new + good[at + len(old):])
broken('short.csv', 'site 58,', 'site 58;')
broken('text.csv', 'site 57,', 'site 57,oops')
broken('quote.csv', '"two', '"two"')
broken('blank.csv', 'site 55,', ',')
(tmp / 'header.csv').write_text('site,x,y\n')
for name, words in (('a row too short', ['short.csv']), ('a text among numbers', ['text.csv']), ('letters behind a quote', ['quote.csv']),
                    ('a row of nobody', ['blank.csv']), ('no rows', ['header.csv']), ('a file that is not there', ['nowhere.csv']),
                    ('a column that is not there', ['one.csv', '--exclude', 'x9'])):
    words = ['fit', *words, '--target', 'y', '--agent', 'site']
    p = run(*words)
    for ranks in (2, 3):
        code, out, said, seconds = mpi(ranks, *words)
        check(f'{name}, {ranks} ranks: the sentence of one process', p.returncode == 2 and code == 2 and said == p.stderr.splitlines() and seconds < 15, (code, said, p.stderr, seconds))
check('it has the line', 'line ' in run('fit', 'short.csv', '--target', 'y', '--agent', 'site').stderr)
(tmp / 'files/site 41.csv').write_text('x0,x1\n1,2\n')
p = run('fit', 'files', '--target', 'y')
code, out, said, seconds = mpi(3, 'fit', 'files', '--target', 'y')
check('one bad file of many', code == 2 and said == p.stderr.splitlines() and 'site 41' in said[0], (code, said, p.stderr))
(tmp / 'here').mkdir()
(tmp / 'here/only.csv').write_text(good)
code, out, said, seconds = mpi(1, 'fit', 'only.csv', '--target', 'y', '--agent', 'site',
                               more=['-wdir', str(tmp / 'here'), affpcl, 'fit', 'only.csv', '--target', 'y', '--agent', 'site', ':', '-np', '1', '-wdir', '/'])
check('what only one rank cannot read', code == 2 and len(said) == 1 and 'rank 1: cannot read only.csv' in said[0] and seconds < 15, (code, said, seconds))
code, out, said, seconds = mpi(2, 'fit', 'one.csv', '--target', 'y', '--agent', 'site', '--out', 'alone')
check('a folder that exists', code == 2 and len(said) == 1 and 'alone exists already' in said[0] and seconds < 15, (code, said, seconds))

# ---- what is not shared ----
code, out, said, _ = mpi(3, 'fit', 'one.csv', '--target', 'y', '--agent', 'site', '--solver', 'stream', '--out', 'stream')
check('a stream runs in the first process, which says so', code == 0 and out.count('model in stream') == 1 and len(said) == 1 and said[0].startswith('affpcl: note: '), (code, said))
code, out, said, _ = mpi(2, 'affinity', 'classes.csv', '--target', 'class', '--agent', 'site', '--quiet')
check('and so does affinity', code == 0 and len(said) == 1 and said[0].startswith('affpcl: note: '), (code, said))

# ---- a rank that is killed ----
rng = random.Random(2)
with open(tmp / 'big.csv', 'w') as f:  # seconds of work
    f.write('site,' + ','.join(f'x{j}' for j in range(30)) + ',y\n')
    for _ in range(40):
        for i in range(400):
            x = [rng.random() for _ in range(30)]
            f.write(f'{i},' + ','.join(f'{v:.3f}' for v in x) + f',{sum(x) + x[i % 30] + rng.random():.3f}\n')
for moment, wait in (('while it reads', .05), ('while it learns', 1)):
    p = start(3, 'fit', 'big.csv', '--target', 'y', '--agent', 'site', '--threads', 1, '--quiet')
    wait_for(lambda: len(pids(p)) == 3 or p.poll() is not None)
    time.sleep(wait)
    victims = pids(p)
    if victims: os.kill(victims[-1], signal.SIGKILL)
    code, out, said, seconds = ended(p, 30)
    check(f'a rank killed {moment}: the job ends within seconds', victims and code not in (None, 0) and seconds < 15, (victims, code, seconds, said))
