#!/usr/bin/env python3
"""Bad input is refused in one sentence: exit 2, one line on standard error that starts with 'affpcl: ', nothing on
standard output, nothing written, at once.

usage: bad_input.py PATH_TO_AFFPCL        (standard library only; writes to a temporary folder)
"""
import json

from _harness import check, refused, run, tmp

PROBLEM = '[problem]\nkind = "gaussian"\nagents = 4\n'
RUN = '[run]\nsteps = 20\nreplicates = 2\n'
METHOD = '[[method]]\nkind = "affpcl"\n'
(tmp / 'good.toml').write_text(PROBLEM + RUN + METHOD)

def spec(name, text, says=()):
    """A spec of its own with this text is refused, by file."""
    path = tmp / 'bad.toml'
    path.write_text(text)
    refused(name, 'run', 'bad.toml', '--out', 'out', says=('bad.toml', *says))
    path.unlink()

def value(name, *sets, says=()):
    """The good spec with these values is refused."""
    refused(name, 'run', 'good.toml', '--out', 'out', *(w for s in sets for w in ('--set', s)), says=says)

p = run('run', 'good.toml', '--quiet')
check('the good spec runs', p.returncode == 0, p.stderr)

# ---- the command line ----
refused('no verb', says=('--help',))
refused('an unknown verb', 'rnu', 'good.toml', says=("'rnu'", "'run'"))
refused('a verb that is nothing like any', 'xyzzy', says=('xyzzy',))
refused('an unknown option', 'run', 'good.toml', '--frobnicate', says=('--frobnicate',))
for words, near in ((('run', 'good.toml', '--threds=2'), '--threads'), (('run', 'good.toml', '--forse', '--ot', 'x'), '--force'),
                    (('reproduce', '--foce'), '--force'), (('affinity', 'x.csv', '--pilt', '1'), '--pilot'),
                    (('fit', 'x.csv', '--taget', 'y'), '--target'), (('predict', 'm', 'x.csv', '--ouy', 'p.csv'), '--out'),
                    (('inspect', 'm', '--agnet', 'a'), '--agent'), (('report', '--forse'), '--force'),
                    (('list', '--jsn'), '--json'), (('bench', '--secnds', '1'), '--seconds'), (('--verison',), '--version')):
    wrong = next(w for w in words if w.startswith('--')).split('=')[0]
    refused(f'a slip of the finger: {" ".join(words)}', *words, says=(f"there is no option '{wrong}'; did you mean '{near}'?",))
refused('nothing like any option', 'fit', 'x.csv', '--xyzzy', says=("'--xyzzy'", 'affpcl fit --help'))
refused('an unknown option before the verb', '--frobnicate', 'run', 'good.toml', says=('--frobnicate',))
refused('no spec', 'run', says=('spec',))
refused('two specs', 'run', 'good.toml', 'other.toml', says=('other.toml',))
refused('--out without a folder', 'run', 'good.toml', '--out', says=('--out',))
refused('--threads 0', 'run', 'good.toml', '--threads', 0, says=('--threads', '0'))
refused('--threads two', 'run', 'good.toml', '--threads', 'two', says=('--threads', 'two'))
refused('--seed -1', 'run', 'good.toml', '--seed', -1, says=('--seed', '-1'))
refused('--seed x', 'run', 'good.toml', '--seed', 'x', says=('--seed', 'x'))
refused('--set without =', 'run', 'good.toml', '--set', 'run.seed', '--out', 'out', says=('run.seed', 'key=value'))
refused('--set without a value', 'run', 'good.toml', '--out', 'out', '--set', says=('--set',))
value('--set of an unknown key', 'run.sedd=1', says=('run.sedd', "'seed'"))
value('--set of an unknown section', 'rnu.seed=1', says=('rnu.seed', "'run'"))
value('--set of no section', 'seed=1', says=('seed',))
value('--set of a method that is not there', 'method.nobody.batch=2', says=('method.nobody.batch',))

# ---- keys and values ----
spec('an unknown key in [problem]', PROBLEM + 'agnets = 3\n' + METHOD, ('line 4', 'agnets', "'agents'"))
spec('an unknown key in [run]', PROBLEM + '[run]\nstpes = 3\n' + METHOD, ('line 5', 'stpes', "'steps'"))
spec('an unknown key in [[method]]', PROBLEM + METHOD + 'raito = "none"\n', ('line 6', 'raito', "'ratio'"))
spec('an unknown section', '[prblem]\n' + PROBLEM + METHOD, ('line 1', 'prblem', "'problem'"))
spec('an unknown problem', '[problem]\nkind = "gausian"\n' + METHOD, ('gausian', "'gaussian'"))
spec('an unknown method', PROBLEM + '[[method]]\nkind = "afpcl"\n', ('afpcl', "'affpcl'"))
spec('an unknown ratio', PROBLEM + METHOD + 'ratio = "exakt"\n', ('method.ratio', 'exakt', "'exact'"))
value('a text for a number', 'problem.agents=many', says=('problem.agents', 'many', 'whole number'))
value('a fraction for a whole number', 'problem.agents=2.5', says=('problem.agents', '2.5'))
value('a number for a list', 'run.curve_agents=3', says=('run.curve_agents', '3'))
value('a number for a text', 'method.affpcl.ratio=3', says=('method.ratio', '3'))
value('agents = 0', 'problem.agents=0', says=('problem.agents', '0', 'at least 1'))
value('agents = -1', 'problem.agents=-1', says=('problem.agents', '-1'))
value('agents = 10^12', 'problem.agents=1000000000000', says=('problem.agents', '1000000000000'))
value('agents = 3 * 10^9: too many for the memory', 'problem.agents=3000000000', says=('problem.agents', '3000000000'))
value('dim = 0', 'problem.dim=0', says=('problem.dim', '0'))
value('dim = 10^9', 'problem.dim=1000000000', says=('problem.dim', '1000000000'))
for bad in ('-0.1', '0', 'nan', 'inf', '-inf', '"fast"'):
    value(f'step_size = {bad}', f'run.step_size={bad}', says=('run.step_size', bad.strip('"')))
value('a negative step of one module', 'run.step_size_central=-1', says=('run.step_size_central', '-1'))
value('a negative step of one method', 'method.affpcl.step_size=-1', says=('method.step_size', '-1'))
value('steps = 0', 'run.steps=0', says=('run.steps', '0'))
value('replicates = 0', 'run.replicates=0', says=('run.replicates', '0'))
value('tail > steps', 'run.tail=21', says=('run.tail', '21', '20'))
value('seed = -1', 'run.seed=-1', says=('run.seed', '-1'))
value('a curve agent that is not there', 'run.curve_agents=[4]', says=('run.curve_agents', '4'))
value('period = 0', 'method.affpcl.period=0', says=('method.period', '0'))
value('an option the problem cannot serve', 'method.affpcl.objective=tabular', says=('tabular',))
spec('no method', PROBLEM + RUN, ('[[method]]',))
spec('[method] with one bracket', PROBLEM + '[method]\nkind = "affpcl"\n', ('[[method]]',))
spec('no problem', METHOD, ('[problem]',))
spec('two methods of one name', PROBLEM + METHOD + METHOD, ("'affpcl'",))
spec('a sweep over an unknown key', PROBLEM + METHOD + '[sweep]\n"problem.agnets" = [1]\n', ('agnets',))
spec('a sweep with a bad value', PROBLEM + METHOD + '[sweep]\n"problem.agents" = [1, 0]\n', ('problem.agents', '0'))
spec('a sweep that is no list', PROBLEM + METHOD + '[sweep]\n"problem.agents" = 1\n', ('problem.agents', 'line 7'))

# ---- files that are read ----
refused('a spec that is not there', 'run', 'nowhere.toml', '--out', 'out', says=('nowhere.toml',))
refused('a spec that is a folder', 'run', '.', '--out', 'out', says=(' .',))
spec('a spec that is not TOML', PROBLEM + 'dim = = 3\n', ('line 4',))
spec('a key twice', PROBLEM + 'agents = 5\n' + METHOD, ('line 4',))
spec('an empty spec', '', ())

def system(name, content, says=()):
    path = tmp / 'system.json'
    if isinstance(content, bytes): path.write_bytes(content)
    elif content is not None: path.write_text(content if isinstance(content, str) else json.dumps(content))
    (tmp / 'tabular.toml').write_text('[problem]\nkind = "tabular"\nfile = "system.json"\n' + METHOD)
    refused(name, 'run', 'tabular.toml', '--out', 'out', says=('system.json', *says))
    refused(name + ' (two threads)', 'run', 'tabular.toml', '--out', 'out', '--threads', 2, says=('system.json', *says))
    if content is not None: path.unlink()
    (tmp / 'tabular.toml').unlink()

good = {'A': [[[1]], [[2]]], 'Phi': [[[1]], [[1]]], 'mu': [[.5, .5], [.1, .9]], 'theta': [[1], [2]]}
system('a system that is not there', None)
system('a system that is not JSON', '{"A":\n [1,\n ,2]}', ('line 3',))
system('mu that does not sum to one', {**good, 'mu': [[.5, .5], [.1, .8]]}, ('mu[1]', '0.9'))
system('mu with a negative entry', {**good, 'mu': [[.5, .5], [1.5, -.5]]}, ('mu[1][1]', '-0.5'))
system('an unknown key', {**good, 'tehta': 1}, ("'tehta'", "'theta'"))
system('a missing key', {k: v for k, v in good.items() if k != 'mu'}, ("'mu'",))
system('a wrong shape', {**good, 'theta': [[1]]}, ('theta',))
system('a text among numbers', {**good, 'theta': [[1], ['x']]}, ('theta[1][0]', 'x'))
system('a number too large', json.dumps(good).replace('[[1], [2]]', '[[1], [1e999]]'), ('1e999',))
system('a key twice', json.dumps(good)[:-1] + ', "mu": [[1, 0], [1, 0]]}', ('"mu"', 'twice'))
system('a text that is not UTF-8', b'{"A": "\xff"}', ('line 1', 'UTF-8'))
DEEP = '[' * 200000 + ']' * 200000
for nested in (DEEP, '{"a": ' * 200000 + '1' + '}' * 200000, '[' * 200000):
    system('a system nested deeply', '{"A": ' + nested + '}', ('line 1', 'nested'))
(tmp / 'rows.csv').write_text('agent,x\na,1\n')
MODEL = '{"format": "affpcl-model", "version": 1,\n"provenance": '
for name, text, says in (('nested deeply', MODEL + DEEP + '}', ('line 2', 'nested')),
                         ('nested deeply and cut', MODEL + DEEP[:100000], ('line 2', 'nested')),
                         ('that is only brackets', DEEP, ('line 1', 'nested')),
                         ('whose format is a number', '{"format": 1}', ('format',)),
                         ('with a key twice', '{"format": "affpcl-model",\n"format": "affpcl-model"}', ('line 2', 'twice'))):
    (tmp / 'model.json').write_text(text)
    for words in (('inspect', 'model.json'), ('predict', 'model.json', 'rows.csv')):
        refused(f'{words[0]} of a model {name}', *words, says=('model.json', *says))
(tmp / 'leaf.json').write_text('{"hierarchies": ' + DEEP + ', "user_data": {"u": {"x": [[1]], "y": [1]}}}')
refused('a LEAF file nested deeply', 'fit', 'leaf.json', '--target', 'y', says=('leaf.json', 'nested'))
(tmp / 'system.json').write_text(json.dumps({**good, 'states': [[0, 1], [1, 0]]}))
(tmp / 'tabular.toml').write_text('[problem]\nkind = "tabular"\nfile = "system.json"\n[run]\nsteps = 3\n' + METHOD)
refused('more steps than recorded states', 'run', 'tabular.toml', '--out', 'out', says=('3', '2'))

def log(name, content, says=(), keys=''):
    """A log of transitions with this content is refused."""
    path = tmp / 'log.csv'
    if content is not None: path.write_text(content)
    (tmp / 'td.toml').write_text('[problem]\nkind = "td"\nfile = "log.csv"\n' + keys + METHOD + 'ratio = "counts"\n')
    refused(name, 'run', 'td.toml', '--out', 'out', says=says)
    if content is not None: path.unlink()
    (tmp / 'td.toml').unlink()

HEAD, ROWS = 'agent,state,next_state,reward\n', 'a,1,2,0\na,2,1,0\nb,1,2,0\nb,2,1,1\n'
log('a log that is not there', None, ('log.csv',))
log('an empty log', '', ('log.csv', 'empty'))
log('a log without rows', HEAD, ('log.csv', 'no rows'))
log('a log without a column', 'agent,state,nextstate,reward\n' + ROWS, ('next_state', "'nextstate'"))
log('a reward that is no number', HEAD + ROWS + 'a,1,2,much\n', ('line 6', "'reward'", 'much'))
log('a missing next state', HEAD + ROWS + 'a,1,,0\n', ('line 6', "'next_state'"))
log('an agent that appears once', HEAD + ROWS + 'c,1,2,0\n', ("'c'", 'single row', '"drop"'))
log('an end that is neither yes nor no', 'agent,state,next_state,reward,done\na,1,2,0,ja\n', ('line 2', "'done'", 'ja'))
log('gamma = 1', HEAD + ROWS, ('gamma', '1'), 'gamma = 1.0\n')
log('gamma above 1', HEAD + ROWS, ('problem.gamma', '1.5'), 'gamma = 1.5\n')
log('a model\'s key beside a log', HEAD + ROWS, ('problem.states', '3'), 'states = 3\n')
log('weights without channels', HEAD + ROWS, ('problem.weights', 'problem.channels'), 'weights = "w.csv"\n')
log('features that are no columns', HEAD + ROWS, ("'speed'",), 'features = "speed"\n')
(tmp / 'log.csv').write_text(HEAD + ROWS)
(tmp / 'td.toml').write_text('[problem]\nkind = "td"\nfile = "log.csv"\n' + METHOD)
refused('the exact ratio of a log', 'run', 'td.toml', '--out', 'out', says=('"exact"', '"counts"'))
refused('a known objective of a log', 'run', 'td.toml', '--out', 'out', '--set', 'method.affpcl.ratio=counts',
        '--set', 'method.affpcl.objective=known', says=('"known"', 'problem.weights'))
refused('a key of logs without a log', 'run', 'td.toml', '--set', 'problem.file=', '--set', 'problem.order=random', says=('problem.order',))
(tmp / 'log.csv').unlink()
(tmp / 'td.toml').write_text('[problem]\nkind = "td"\n' + METHOD)
refused('a discount of one', 'run', 'td.toml', '--out', 'out', '--set', 'problem.gamma=1.0', says=('gamma = 1',))
refused('more features than states', 'run', 'td.toml', '--out', 'out', '--set', 'problem.states=3', says=('no unique solution',))
refused('the policy ratio where nobody acts', 'run', 'td.toml', '--out', 'out', '--set', 'method.affpcl.ratio=policy', says=('"policy"', 'act'))
(tmp / 'td.toml').write_text('[problem]\nkind = "sarsa"\n' + METHOD)
refused('a discount of one in control', 'run', 'td.toml', '--out', 'out', '--set', 'problem.gamma=1.0', says=('gamma',))
refused('temperature 0', 'run', 'td.toml', '--out', 'out', '--set', 'problem.temperature=0.0', says=('problem.temperature', '0'))
refused('a client that would need the mixture', 'run', 'td.toml', '--out', 'out', '--set', 'method.affpcl.correction=client', says=('client',))

# ---- places that are written to ----
(tmp / 'file').write_text('precious')
(tmp / 'folder').mkdir()
(tmp / 'folder' / 'thesis.tex').write_text('years')
(tmp / 'old').mkdir()
(tmp / 'old' / 'summary.json').write_text('{}')
refused('an existing folder without --force', 'run', 'good.toml', '--out', 'old', says=('old', '--force'))
refused('an existing file', 'run', 'good.toml', '--out', 'file', says=('file',))
refused('an existing file with --force', 'run', 'good.toml', '--out', 'file', '--force', says=('file',))
refused('a folder that is no result, with --force', 'run', 'good.toml', '--out', 'folder', '--force', says=('folder',))
refused('a folder below a file', 'run', 'good.toml', '--out', 'file/out', says=('file/out',))
refused('a folder nobody can write', 'run', 'good.toml', '--out', '/proc/affpcl/out', says=('/proc/affpcl/out',))
refused('a trace below a file', 'run', 'good.toml', '--out', 'out', '--trace', 'file/t.csv', says=('file/t.csv',))
refused('a trace in no folder', 'run', 'good.toml', '--out', 'out', '--trace', 'nowhere/t.csv', says=('nowhere/t.csv',))
refused('a trace nobody can write', 'run', 'good.toml', '--out', 'out', '--trace', '/proc/t.csv', says=('/proc/t.csv',))
refused('a trace that is a folder', 'run', 'good.toml', '--out', 'out', '--trace', 'folder', says=('folder',))
refused('a trace of too much', 'run', 'good.toml', '--trace', 't.csv', '--set', 'run.steps=100000000', says=('rows',))
# What is found out only when the run begins leaves no folders on the way either.
refused('deep folders for a run that is refused', 'run', 'good.toml', '--out', 'new/deep/out', '--set', 'problem.agents=3000000000',
        says=('problem.agents',))
