#!/usr/bin/env python3
"""Checkpoints: whatever ends a study, --resume goes on to the same result, on any number of threads.

usage: checkpoint.py PATH_TO_AFFPCL        (standard library only)
"""
import json, os, random, resource, signal, subprocess, time
from _harness import affpcl, check, everything, refused, run, tmp
from _studies import EVERY_METHOD, core

(tmp / 'all.toml').write_text(EVERY_METHOD)
rng = random.Random(5)

def numbers(folder): return sorted(int(p.stem.split('-')[1]) for p in (tmp / folder).glob('checkpoint-*.affpcl'))

p = run('run', 'all.toml', '--out', 'whole', '--threads', 1)
check('without checkpoints', p.returncode == 0, p.stderr)
want = core(tmp / 'whole')

def killed(folder, threads, how, after):
    """Runs the study until it has written so many checkpoints, then ends it; its exit code and what it said."""
    words = ['run', 'all.toml', '--out', f'{folder}-out', '--force', '--threads', threads, '--checkpoint', folder, '--every', 15, '--resume']
    p = subprocess.Popen([affpcl, *map(str, words)], cwd=tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while p.poll() is None and time.time() < deadline:
        if (numbers(folder) or [0])[-1] >= after: p.send_signal(how); break
        time.sleep(.001)
    out, err = p.communicate(timeout=60)
    return p.returncode, err

for threads, again in ((1, 2), (2, 1)):
    folder, last = f'k{threads}{again}', 0
    for attempt in range(2):
        code, said = killed(folder, threads, signal.SIGKILL, last + rng.randint(1, 4))
        if attempt == 0: check(f'{folder}: it was killed on the way', code == -signal.SIGKILL, (code, said))
        last = (numbers(folder) or [0])[-1]
        check(f'{folder}: there is one', numbers(folder), everything())
    p = run('run', 'all.toml', '--out', folder + '-out', '--force', '--threads', again, '--checkpoint', folder, '--resume')
    check(f'{folder}: two are kept', len(numbers(folder)) == 2, numbers(folder))
    check(f'{folder}: {threads} threads, killed twice, {again} threads: the same result', p.returncode == 0 and core(tmp / (folder + '-out')) == want, p.stderr)

for how in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    folder = f's{int(how)}'
    code, said = killed(folder, 2, how, 2)
    check(f'{how.name}: leaves with 130 and says how to go on', code == 130 and '--resume' in said and len(said.splitlines()) == 1, (code, said))
    summary = json.loads((tmp / f'{folder}-out/summary.json').read_text())
    check(f'{how.name}: the result says that it is not complete', summary['manifest']['complete'] is False)
    p = run('run', 'all.toml', '--out', folder + '-out', '--force', '--checkpoint', folder, '--resume')
    check(f'{how.name}: resumed to the same result', p.returncode == 0 and core(tmp / (folder + '-out')) == want, p.stderr)
p = run('run', 'all.toml', '--json', '--checkpoint', 'k12', '--resume')
check('a finished study is not run again', p.returncode == 0 and json.loads(p.stdout)['settings'] == json.loads((tmp / 'k12-out/summary.json').read_text())['settings'], p.stderr)

# ---- bad input ----
refused('a folder with checkpoints is not begun anew', 'run', 'all.toml', '--checkpoint', 'k12', says=['k12', '--resume'])
refused('another study', 'run', 'all.toml', '--checkpoint', 'k12', '--resume', '--set', 'run.steps=61', says=['run.steps is 60 there and 61 here'])
refused('another seed', 'run', 'all.toml', '--checkpoint', 'k12', '--resume', '--seed', 9, says=['run.seed'])
refused('--resume alone', 'run', 'all.toml', '--resume', says=['--resume', '--checkpoint'])
refused('--every alone', 'run', 'all.toml', '--every', 5, says=['--every', '--checkpoint'])
refused('--every 0', 'run', 'all.toml', '--checkpoint', 'x', '--every', 0, says=['--every'])
refused('a folder of other things', 'run', 'all.toml', '--checkpoint', 'whole', says=['whole'])
refused('a file', 'run', 'all.toml', '--checkpoint', 'all.toml', says=['all.toml'])
newest = max(numbers('k21'))
path = tmp / 'k21' / f'checkpoint-{newest}.affpcl'
path.write_bytes(path.read_bytes()[:-9])
p = run('run', 'all.toml', '--out', 'damaged', '--checkpoint', 'k21', '--resume')
check('a damaged one is passed over with a word', p.returncode == 0 and str(newest) in p.stderr and 'going on from' in p.stderr and core(tmp / 'damaged') == want, p.stderr)
if os.path.exists('/dev/full'):
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)) or signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    p = subprocess.run([affpcl, 'run', 'all.toml', '--checkpoint', 'full', '--every', '5'], cwd=tmp, capture_output=True, text=True, preexec_fn=small, timeout=60)
    check('a disk that is full: one sentence', p.returncode == 1 and p.stderr.startswith('affpcl: cannot write full/') and len(p.stderr.splitlines()) == 1, p.stderr)
    check('and nothing half-written', not [f for f in everything() if f.startswith('full/')], everything())
p = run('reproduce', 'fig-specific', 'td-agents', '--set', 'run.replicates=2', '--out', 'two', '--quiet', '--checkpoint', 'both')
check('reproduce: a folder for each study', p.returncode == 0 and numbers('both/fig-specific') and numbers('both/td-agents'), p.stderr)
