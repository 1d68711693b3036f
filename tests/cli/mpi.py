#!/usr/bin/env python3
"""Under mpirun: the same result on any number of ranks and threads, resumed or not; and no failure hangs.

usage: mpi.py PATH_TO_AFFPCL        (exit 77 without MPI)
"""
import json, os, random, signal
from _harness import affpcl, check, run, tmp
from _mpi import ended, mpi, pids, start, wait_for
from _studies import EVERY_METHOD, core

def newest(folder): return max([int(f.stem.split('-')[1]) for f in (tmp / folder).glob('checkpoint-*.affpcl')], default=0)

(tmp / 'all.toml').write_text(EVERY_METHOD)
p = run('run', 'all.toml', '--out', 'whole', '--threads', 1)
check('one process', p.returncode == 0, p.stderr)
want = core(tmp / 'whole')

# ---- one result ----
for ranks, threads, split in ((1, 1, 'auto'), (2, 1, 'agents'), (2, 2, 'replicates'), (3, 1, 'agents'), (3, 2, 'agents'), (8, 1, 'agents'), (8, 1, 'replicates')):
    name = f'{ranks} ranks, {threads} threads, split {split}'
    code, out, said, _ = mpi(ranks, 'run', 'all.toml', '--out', 'r', '--force', '--threads', threads, '--split', split)
    check(f'{name}: the same to the letter', code == 0 and core(tmp / 'r') == want, (code, said))
    check(f'{name}: the first alone talks', out.count('results in r') == 1 and not said, (out[-200:], said))
    manifest = json.loads((tmp / 'r/summary.json').read_text())['manifest']
    check(f'{name}: the manifest says so', manifest['ranks'] == ranks and manifest['threads'] == threads
          and (ranks == 1) == ('communication' not in manifest) and (ranks == 1 or manifest['communication']['bytes_sent'] > 0), manifest)
code, out, said, _ = mpi(3, 'reproduce', 'fig-specific', '--set', 'run.replicates=4', '--json')
check('reproduce prints one JSON', code == 0 and len(json.loads(out)['settings']) == 1, (code, said))
code, out, said, _ = mpi(2, 'list')
check('other verbs speak once', code == 0 and out == run('list').stdout, code)
code, out, said, _ = mpi(1, 'run', 'all.toml', '--json', '--threads', 1, more=['-x', 'AFFPCL_INSTRUCTION_SET=AVX2', affpcl, 'run', 'all.toml', '--json', '--threads', '1', ':', '-np', '1'])
check('ranks agree on one instruction set', code == 0 and json.loads(out)['manifest']['instruction_set'] == 'AVX2', (code, said, out[:300]))

# ---- ended on the way, and resumed on another number of ranks ----
rng = random.Random(3)
for first, then, split, how in ((3, 2, 'agents', 'kill -9 of one rank'), (2, 8, 'replicates', 'kill -9 of one rank'), (8, 1, 'agents', 'kill -9 of one rank'),
                                (3, 2, 'agents', 'SIGTERM to mpirun'), (2, 3, 'agents', 'USR1 to mpirun'), (2, 1, 'replicates', 'TERM to each rank')):
    name, folder = f'{first} ranks, split {split}, {how}', f'c{first}{then}{how[0]}'
    p = start(first, 'run', 'all.toml', '--out', folder + '-out', '--checkpoint', folder, '--every', 5, '--threads', 1, '--split', split)
    wait_for(lambda: newest(folder) >= rng.randint(2, 5) or p.poll() is not None)
    if how == 'SIGTERM to mpirun': p.send_signal(signal.SIGTERM)  # which kills the ranks a second later
    elif how == 'USR1 to mpirun': p.send_signal(signal.SIGUSR1)  # which passes it on
    else:
        victims = pids(p)
        if how == 'TERM to each rank':  # as srun does
            for pid in victims: os.kill(pid, signal.SIGTERM)
        elif victims: os.kill(rng.choice(victims), signal.SIGKILL)
    code, out, said, seconds = ended(p, 30)
    check(f'{name}: the job ends within seconds', code not in (None, 0) and seconds < 15, (code, seconds, said))
    if how in ('USR1 to mpirun', 'TERM to each rank'): check(f'{name}: it says how to go on', len(said) == 1 and '--resume' in said[0], said)
    code, out, said, _ = mpi(then, 'run', 'all.toml', '--out', folder + '-out', '--force', '--checkpoint', folder, '--resume', '--threads', 1)
    check(f'{name}: resumed on {then} to the same result', code == 0 and core(tmp / (folder + '-out')) == want, (code, said))

# ---- what goes wrong is said once, by whom it concerns ----
for name, words, exit_code, text in (
        ('a spec that is not there', ['run', 'nowhere.toml'], 2, 'nowhere.toml'),
        ('a misspelt key', ['run', 'all.toml', '--set', 'run.stps=3'], 2, 'run.stps'),
        ('a folder that exists', ['run', 'all.toml', '--out', 'whole'], 2, 'whole exists already'),
        ('--trace', ['run', 'all.toml', '--set', 'problem.delta_obj=0.1', '--trace', 't.csv'], 2, '--trace')):
    code, out, said, seconds = mpi(2, *words)
    check(f'{name}: one sentence, exit {exit_code}, at once', code == exit_code and len(said) == 1 and text in said[0] and seconds < 15, (code, said, seconds))
(tmp / 'only-here.toml').write_text(EVERY_METHOD)
code, out, said, seconds = mpi(1, 'run', 'only-here.toml', more=[affpcl, 'run', 'all.toml', ':', '-np', '1', '-wdir', '/'])
check('what only one rank cannot read is said by it', code == 2 and len(said) == 1 and said[0].startswith('affpcl: rank 1: ') and seconds < 15, (code, said, seconds))
limit = "ulimit -f 20000; trap '' XFSZ; exec \"$@\""  # 20 MB: room for what MPI keeps in files, not for the state of 40,000 agents
code, out, said, seconds = mpi(2, 'run', 'all.toml', '--set', 'problem.agents=40000', '--set', 'problem.environments=2', '--checkpoint', 'full', '--every', 1, more=['bash', '-c', limit, '-'])
check('a full disk ends the job with one sentence', code == 1 and len(said) == 1 and 'cannot write full/' in said[0] and seconds < 30, (code, said, seconds))
