#!/usr/bin/env python3
"""affpcl run from end to end: result folder, --json, --quiet, --trace, Ctrl-C, threads, help.

usage: run.py PATH_TO_AFFPCL        (standard library only; writes to a temporary folder)
"""
import csv, json, math, os, pathlib, pty, signal, subprocess, time

from _harness import affpcl, check, run, tmp

def rows(path):
    with open(path, newline='') as f: return list(csv.DictReader(f))

def summary(folder): return json.loads((tmp / folder / 'summary.json').read_text())

def core(folder):
    """What two runs of one spec must agree on, to the letter."""
    s = summary(folder)
    del s['manifest']
    for setting in s['settings']:
        for method in setting['methods']: del method['seconds']
    return json.dumps(s), (tmp / folder / 'curves.csv').read_text(), (tmp / folder / 'agents.csv').read_text()

def names(): return sorted(p.name for p in tmp.iterdir())

SPEC = '''[problem]
kind = "gaussian"
agents = 6
dim = 3
[run]
steps = 20
replicates = 3
seed = 7
tail = 5
[[method]]
kind = "affpcl"
[[method]]
kind = "affpcl"
name = "affpcl, \\"no\\" correction"
ratio = "none"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
period = 4
[sweep]
"problem.delta_env+problem.delta_obj" = [0.0, 0.3]
'''
(tmp / 'spec.toml').write_text(SPEC)
ONE = SPEC.split('[sweep]')[0]
(tmp / 'one.toml').write_text(ONE)

# ---- a folder ----
p = run('run', 'spec.toml', '--out', 'a', '--threads', 1)
check('run exits 0', p.returncode == 0, p.stderr)
check('the folder holds the three files and nothing is left beside it',
      sorted(f.name for f in (tmp / 'a').iterdir()) == ['agents.csv', 'curves.csv', 'summary.json']
      and names() == ['a', 'one.toml', 'spec.toml'], names())
check('the table names every method and setting', all(w in p.stdout for w in
      ('affpcl', 'independent', 'fedavg', 'problem.delta_env', '0.3')), p.stdout)
check('standard error stays empty where it is no terminal', p.stderr == '', p.stderr)
s = summary('a')
check('the manifest says how to do it again', s['manifest']['spec']['problem']['agents'] == 6 and s['manifest']['seed'] == 7
      and 'spec.toml' in s['manifest']['command'] and s['manifest']['complete'] is True, s['manifest'])
methods = ['affpcl', 'affpcl, "no" correction', 'independent', 'fedavg']
check('methods in order', [[m['name'] for m in x['methods']] for x in s['settings']] == [methods] * 2)
curves, agents = rows(tmp / 'a' / 'curves.csv'), rows(tmp / 'a' / 'agents.csv')
check('a name with a comma and quotes survives CSV', {r['method'] for r in curves} == set(methods) == {r['method'] for r in agents})
def curve(method, agent, delta):
    return [float(r['mse_mean']) for r in curves if r['method'] == method and r['agent'] == agent
            and float(r['problem.delta_env']) == delta]
for i, x in enumerate(s['settings']):
    tail = curve('affpcl', 'all', [0, .3][i])[-5:]
    check(f'setting {i}: the curve\'s tail is the summary', math.isclose(sum(tail) / 5, x['methods'][0]['mse']['mean'], rel_tol=1e-9), tail)
check('curves have a point per round', [len(curve(m, 'all', .3)) for m in methods] == [20, 20, 20, 5],
      [len(curve(m, 'all', .3)) for m in methods])
check('agents.csv has a row per setting, method and agent', len(agents) == 2 * 4 * 6, len(agents))
check('independent against itself is 1', all(float(r['vs_independent']) == 1 for r in agents if r['method'] == 'independent'))

# ---- the same numbers ----
check('two threads, the same files', run('run', 'spec.toml', '--out', 'b', '--threads', 2, '--quiet').returncode == 0
      and core('a') == core('b'))
check('three threads, one replicate, many agents', all(
      run('run', 'one.toml', '--out', f'many{t}', '--threads', t, '--quiet', '--set', 'problem.agents=1500',
          '--set', 'problem.environments=5', '--set', 'run.replicates=1').returncode == 0 for t in (1, 3))
      and core('many1') == core('many3'))
check('--seed is --set run.seed', run('run', 'one.toml', '--out', 's1', '--seed', 11, '--quiet').returncode == 0
      and run('run', 'one.toml', '--out', 's2', '--set', 'run.seed=11', '--quiet').returncode == 0
      and core('s1') == core('s2') and summary('s1')['manifest']['seed'] == 11)
check('another seed, other numbers', run('run', 'one.toml', '--out', 's3', '--seed', 12, '--quiet').returncode == 0
      and core('s3') != core('s1'))
(tmp / 'again.toml').write_text(s['manifest'].get('spec_toml', ''))
check('the kept spec runs again to the same numbers', run('run', 'again.toml', '--out', 'again', '--quiet').returncode == 0
      and core('again') == core('a'))

# ---- what is printed ----
p = run('run', 'one.toml', '--json')
check('--json prints the summary and nothing else', p.returncode == 0 and p.stderr == ''
      and json.loads(p.stdout)['settings'][0]['replicates'] == 3, p.stderr)
p = run('run', 'one.toml', '--quiet')
check('--quiet prints nothing', (p.returncode, p.stdout, p.stderr) == (0, '', ''), (p.stdout, p.stderr))
p = run('run', 'one.toml', '--quiet', '--out', 'q')
check('--quiet with --out prints nothing either', (p.returncode, p.stdout, p.stderr) == (0, '', ''), (p.stdout, p.stderr))
p = run('run', '--set', 'run.replicates=2', 'one.toml', '--json')
check('--set before the spec', p.returncode == 0 and json.loads(p.stdout)['settings'][0]['replicates'] == 2, p.stderr)
p = run('run', 'one.toml', '--json', '--set', 'run.replicates=1', '--set', 'method.affpcl.ratio=none')
check('--set several times', p.returncode == 0 and json.loads(p.stdout)['settings'][0]['methods'][0]['mse']['lo'] is None, p.stderr)
p = run('run', 'one.toml', '--set', 'method.independent.step_size=9')
check('diverged runs are counted and said', p.returncode == 0 and 'diverged' in p.stdout and '3 of 3' in p.stdout, p.stdout)
p = run('run', 'one.toml', '--json', '--set', 'method.independent.step_size=9')
check('and null in JSON', p.returncode == 0 and 'NaN' not in p.stdout and 'Infinity' not in p.stdout
      and json.loads(p.stdout)['settings'][0]['methods'][0]['mse']['mean'] is None
      and json.loads(p.stdout)['settings'][0]['diverged'] == dict(zip(methods, (0, 0, 3, 0))), p.stdout[-300:])

# ---- a log of transitions: no truth, so solutions instead of errors ----
(tmp / 'log.csv').write_text('site,state,next_state,reward,done\n' + ''.join(
    f'{site},low,{"high" if t % 3 else "low"},{t % 2},0\n{site},high,,{2 + (site == "north")},1\n'
    for t in range(20) for site in ('north', 'south')))
(tmp / 'log.toml').write_text('[problem]\nkind = "td"\nfile = "log.csv"\nagent = "site"\n[run]\nsteps = 400\nreplicates = 1\n'
                              'step_size = 0.1\n[[method]]\nkind = "affpcl"\nratio = "counts"\n[[method]]\nkind = "independent"\n')
p = run('run', 'log.toml', '--out', 'log')
check('a log: the table shows values and says that errors are not known', p.returncode == 0
      and all(w in p.stdout for w in ('V(low)', 'V(high)', '2 agents', 'truth is not known', 'solutions.csv'))
      and 'smallest error' not in p.stdout, p.stdout + p.stderr)
solutions = rows(tmp / 'log' / 'solutions.csv')
value = {(r['method'], r['name'], r['unknown']): float(r['value']) for r in solutions}
check('a log: solutions.csv has every agent and unknown', len(value) == len(solutions) == 2 * 2 * 2, solutions)
check('a log: each agent has its own value', abs(value['affpcl', 'north', 'V(high)'] - 3) < .05
      and abs(value['independent', 'south', 'V(high)'] - 2) < .05, value)
method = summary('log')['settings'][0]['methods'][0]
check('a log: errors are null, not 0', method['mse']['mean'] is None and method['agents'][0]['mse']['mean'] is None, method['agents'])
p = run('run', 'log.toml', '--set', 'run.step_size=3.0', '--set', 'run.steps=5000')
check('a log: what is not finite has diverged', p.returncode == 0 and 'diverged' in p.stdout, p.stdout)

# ---- replacing ----
before = core('q')
p = run('run', 'one.toml', '--out', 'q', '--seed', 99, '--quiet')
check('an existing folder is left alone', p.returncode == 2 and core('q') == before, p.stderr)
p = run('run', 'one.toml', '--out', 'q/', '--seed', 99, '--quiet', '--force')
check('--force replaces it', p.returncode == 0 and core('q') != before, p.stderr)
p = run('run', 'one.toml', '--out', 'deep/er/out', '--quiet')
check('folders on the way are made', p.returncode == 0 and (tmp / 'deep/er/out/summary.json').exists(), p.stderr)

# ---- trace ----
p = run('run', 'one.toml', '--trace', 't.csv', '--quiet')
t = rows(tmp / 't.csv') if p.returncode == 0 else []
check('--trace writes the contract\'s columns', t and list(t[0]) == ['method', 'replicate', 'step', 'what', 'agent', 'index', 'value'], p.stderr)
check('every iterate is there, the start too', sum(r['method'] == 'affpcl' and r['what'] == 'x' for r in t) == 3 * 21 * 6 * 3)
check('xc and thetac without an agent', {r['agent'] for r in t if r['what'] != 'x'} == {''}
      and {r['what'] for r in t} == {'x', 'xc', 'thetac'})
check('the start is zero', all(float(r['value']) == 0 for r in t if r['step'] == '0'))
check('full precision', any(len(r['value'].lstrip('-0.')) >= 16 for r in t))

# ---- Ctrl-C ----
def interrupted(name, *words):
    p = subprocess.Popen([affpcl, 'run', 'one.toml', '--out', name, *words], cwd=tmp, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True)
    used = lambda: sum(map(int, pathlib.Path(f'/proc/{p.pid}/stat').read_text().rsplit(')', 1)[1].split()[11:13]))
    deadline = time.time() + 60  # a second of computing, however busy the machine is
    while p.poll() is None and used() < os.sysconf('SC_CLK_TCK') and time.time() < deadline: time.sleep(.05)
    p.send_signal(signal.SIGINT)
    try: out, err = p.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        p.kill(); p.communicate()
        return None, '', 'no end 60 s after the signal'
    return p.returncode, out, err

for name, words in (('many-replicates', ('--set', 'run.replicates=100000', '--set', 'run.steps=2000')),
                    ('one-long-replicate', ('--set', 'run.replicates=1', '--set', 'run.steps=100000000', '--set', 'run.curve_points=100000')),
                    ('two-threads', ('--set', 'run.replicates=1', '--set', 'run.steps=100000000', '--set', 'run.curve_points=100000',
                                     '--threads', '2', '--set', 'problem.agents=1000', '--set', 'problem.environments=2'))):
    code, out, err = interrupted(name, *words)
    check(f'Ctrl-C, {name}: exit 130', code == 130, (code, err))
    if code != 130: continue
    s = summary(name)
    check(f'Ctrl-C, {name}: complete is false', s['manifest']['complete'] is False)
    check(f'Ctrl-C, {name}: what is done is kept', s['settings'] and s['settings'][0]['replicates'] >= 1
          and s['settings'][0]['methods'][0]['mse']['mean'] > 0, s['settings'][:1])
    check(f'Ctrl-C, {name}: the curve is there', any(r['agent'] == 'all' for r in rows(tmp / name / 'curves.csv')))
    check(f'Ctrl-C, {name}: the table says so', 'interrupted' in out, out[-200:])
check('nothing half-written is left', not [n for n in names() if '.part' in n or n.endswith('.old')], names())

# ---- a terminal ----
lead, follow = pty.openpty()
p = subprocess.Popen([affpcl, 'run', 'one.toml', '--set', 'run.replicates=20000', '--set', 'run.steps=400'], cwd=tmp,
                     stdout=subprocess.DEVNULL, stderr=follow)
os.close(follow)
shown = b''
deadline = time.time() + 30
while time.time() < deadline and b' left' not in shown:
    try: shown += os.read(lead, 4096)
    except OSError: break
p.send_signal(signal.SIGINT)
try: p.wait(timeout=60)
except subprocess.TimeoutExpired: p.kill()
os.close(lead)
check('on a terminal there is progress with time left', b'%' in shown and b' left' in shown, shown[-80:])

# ---- help and lists ----
p = run('--help')
check('--help exits 0', p.returncode == 0 and p.stderr == '', p.stderr)
verbs = [line.split()[0] for line in p.stdout.split('Subcommands:')[-1].splitlines() if line.startswith('  ') and line.split()]
verbs = [v for v in verbs if v.isalpha() and v.islower()]
check('it names run and list', {'run', 'list'} <= set(verbs), verbs)
for verb in verbs:
    p = run(verb, '--help')
    check(f'{verb} --help exits 0 with an example', p.returncode == 0 and 'Example' in p.stdout and f'affpcl {verb}' in p.stdout, p.stdout[-200:])
p = run('--version')
check('--version', p.returncode == 0 and p.stdout[:1].isdigit(), p.stdout)
p = run('list', '--keys')
check('list --keys names every key of the spec', p.returncode == 0 and all(w in p.stdout for w in (
      'gaussian', 'tabular', 'affpcl', 'independent', 'fedavg', 'exact', 'delta_env', 'step_size', 'curve_agents', 'period')), p.stdout[-200:])
p = run('list', '--json')
check('list --json is JSON with every default', p.returncode == 0
      and {k['name']: k['default'] for k in json.loads(p.stdout)['run']}['steps'] == 60, p.stdout[:200])

# ---- bench: what it prints, not how fast it is ----
cases = ('--case', '20,5', '--case', '70,3,linear', '--seconds', 0.01)
p = run('bench', '--json', *cases)
bench = json.loads(p.stdout) if p.returncode == 0 else {'limits': {}, 'rounds': []}
check('bench --json times every case', [(r['agents'], r['ratio']) for r in bench['rounds']] == [(20, 'exact'), (70, 'linear')], p.stderr)
check('bench: a round at best takes no longer than the median', all(0 < r['least_seconds'] <= r['seconds'] for r in bench['rounds']), p.stdout)
exact, linear = bench['rounds']
limit = bench['limits']
model = 20 ** 2 * (4 * 5 / limit['fma_f64'] + 1 / limit['exp_f64']) + 20 * (2 * 5 ** 2 / limit['fma_f64'] + 5 / limit['normals'])
check('bench: the share is of the cost model, where there is one', linear['share_of_limit'] is None
      and abs(exact['share_of_limit'] * exact['least_seconds'] / model - 1) < 1e-9, p.stdout)
p = run('bench', *cases)
check('bench: a table and the limits', p.returncode == 0 and len(p.stdout.splitlines()) == 4
      and p.stdout.splitlines()[-1].startswith('limits of one core'), p.stdout)
