#!/usr/bin/env python3
"""fit in one pass, outcomes that agents weigh, values of states from a log: from end to end, and bad input.

usage: fit_stream.py PATH_TO_AFFPCL        (standard library only; writes to a temporary folder)
"""
import csv, json, random, signal, subprocess, time

from _harness import affpcl, check, refused, run, tmp

rng = random.Random(4)
def table(path, agents, rows, day=lambda r: r):
    with open(tmp / path, 'w') as f:
        f.write('site,day,u,v,y,speed,comfort\n')
        for i in range(agents):
            slope = 1 + .3 * rng.gauss(0, 1)
            for r in range(rows * (i % 3 + 1)):
                u, v, e = rng.gauss(0, 1), rng.gauss(0, 1), rng.gauss(0, 1)
                f.write(f'site{i},{day(r)},{u:.4f},{v:.4f},{slope * u - v + .5 * e:.4f},{u + .3 * e:.4f},{2 - v + .3 * rng.gauss(0, 1):.4f}\n')
table('t.csv', 9, 60)
(tmp / 'prefs.csv').write_text('site,speed,comfort\n' + ''.join(f'site{i},{i / 8},{1 - i / 8}\n' for i in range(9)))
OWN = ('--target', 'y', '--exclude', 'day,speed,comfort')
WEIGH = ('--channels', 'speed,comfort', '--weights', 'prefs.csv', '--exclude', 'day,y')

# ---- what works ----
p = run('fit', 't.csv', *OWN, '--solver', 'stream', '--out', 'm')
check('a stream says how it learnt, and who gained', p.returncode == 0 and 'in one pass by residual' in p.stdout and 'predicted, then learnt' in p.stdout, p.stderr)
s = json.loads((tmp / 'm/summary.json').read_text())
check('summary.json: solver, method, how it was scored', s['manifest']['spec']['solver'] == 'stream' and s['manifest']['spec']['method'] == 'residual'
      and 'before it is learnt' in s['score']['how'] and s['manifest']['complete'])
again = json.loads(run('fit', 't.csv', *OWN, '--solver', 'stream', '--json', '--threads', 2).stdout)
check('two threads, same numbers', again['score'] == s['score'] and again['agents'] == s['agents'])
p = run('predict', 'm', 't.csv', '--json', '--out', 'p.csv')
check('predict by a stream\'s model', json.loads(p.stdout)['score']['r2'] > .7, p.stdout + p.stderr)
p = run('inspect', 'm', '--agent', 'site1')
check('inspect shows no errors it does not have', p.returncode == 0 and 'learnt in one pass by residual' in p.stdout and ' -\n' in p.stdout, p.stdout)
p = run('fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'affpcl', '--json')
check('without channels AffPCL is learning alone, and it says so', p.returncode == 0
      and abs(json.loads(p.stdout)['score']['mse']['personalised'] / json.loads(p.stdout)['score']['mse']['alone'] - 1) < 1e-12
      and any('learning alone' in n for n in json.loads(p.stdout)['notes']), p.stderr)
for method in ('ditto', 'pfedme', 'fine_tune', 'ifca', 'scaffold', 'independent', 'fedavg'):
    p = run('fit', 't.csv', *OWN, '--solver', 'stream', '--method', method, '--json')
    check(f'any method: {method}', p.returncode == 0 and json.loads(p.stdout)['score']['mse']['given'] > 0, p.stderr)
mild = json.loads(run('fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'ditto', '--set', 'lambda=0.1', '--json').stdout)
none = json.loads(run('fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'ditto', '--set', 'lambda=0', '--json').stdout)
check('--set reaches the method', mild['score']['mse']['personalised'] != none['score']['mse']['personalised']
      and abs(none['score']['mse']['personalised'] - none['score']['mse']['alone']) < 1e-9)
p = run('fit', 't.csv', '--target', 'y', '--exclude', 'speed,comfort', '--solver', 'stream', '--time', 'day', '--json')
check('--time orders rows and is no feature', json.loads(p.stdout)['columns'] == 2 and json.loads(p.stdout)['score'] == s['score'], p.stderr)
table('back.csv', 9, 60, day=lambda r: f'2026-{12 - r % 12:02}')
p = run('fit', 'back.csv', '--target', 'y', '--exclude', 'speed,comfort', '--solver', 'stream', '--time', 'day', '--json')
check('dates are times', p.returncode == 0 and json.loads(p.stdout)['columns'] == 2, p.stderr)

for solver in ('exact', 'stream'):
    p = run('fit', 't.csv', *WEIGH, '--solver', solver, '--out', solver, '--json')
    check(f'outcomes that agents weigh: {solver}', p.returncode == 0 and json.loads(p.stdout)['score']['r2']['given'] > .4, p.stderr)
    p = run('predict', solver, 't.csv', '--out', f'{solver}.csv', '--json')
    check(f'their predictions are of the weighted sum: {solver}', json.loads(p.stdout)['score']['r2'] > .7, p.stdout + p.stderr)
inside = total = 0
for r in csv.DictReader(open(tmp / 'exact.csv')):
    w = int(r['site'][4:]) / 8
    y = w * float(r['speed']) + (1 - w) * float(r['comfort'])
    inside, total = inside + (float(r['prediction_lo']) <= y <= float(r['prediction_hi'])), total + 1
check('90 % intervals of the weighted sum hold about 90 % of the rows', .87 < inside / total < .93, inside / total)

log = ['agent,state,next_state,reward,done\n']
for i in range(4):
    state = 'home'
    for t in range(150 * (i + 1)):
        done, nxt = rng.random() < .1, rng.choice(['home', 'road', 'shop'])
        log.append(f'r{i},{state},{"" if done else nxt},{dict(home=0, road=-1, shop=2)[state] + rng.gauss(0, .2):.3f},{int(done)}\n')
        state = 'home' if done else nxt
(tmp / 'log.csv').write_text(''.join(log))
p = run('fit', 'log.csv', '--task', 'td', '--gamma', .8, '--out', 'td')
check('values from a log', p.returncode == 0 and 'squared TD error' in p.stdout, p.stderr)
(tmp / 'states.csv').write_text('agent,state\nr0,shop\nr0,road\nnew,shop\n')
p = run('predict', 'td', 'states.csv', '--out', 'v.csv')
v = list(csv.DictReader(open(tmp / 'v.csv')))
check('values are predicted, without an interval', p.returncode == 0 and float(v[0]['prediction']) > float(v[1]['prediction']) + 1 and v[0]['prediction_lo'] == '', p.stderr)

# ---- Ctrl-C keeps what is done ----
table('big.csv', 3, 6000)
child = subprocess.Popen([affpcl, 'fit', 'big.csv', *OWN, '--solver', 'stream', '--out', 'stopped', '--quiet'], cwd=tmp, stderr=subprocess.PIPE, text=True)
deadline = time.time() + 60
time.sleep(.05)
while child.poll() is None and time.time() < deadline:
    child.send_signal(signal.SIGINT)
    time.sleep(.02)
code = child.wait()
if code == 130 and (tmp / 'stopped/summary.json').exists():  # without it the signal came before the first row
    made = json.loads((tmp / 'stopped/summary.json').read_text())
    check('Ctrl-C in a stream: 130, and the model so far', not made['manifest']['complete'] and any('stopped after' in n for n in made['notes']), made['notes'])
else:
    check('Ctrl-C in a stream came too late or too early to tell, and broke nothing', code in (0, 130, -2), code)

# ---- what is refused ----
refused('a method of a stream for exact', 'fit', 't.csv', *OWN, '--method', 'ditto', says=('--solver stream',))
refused('an unknown method', 'fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'dito', says=('dito', "'ditto'"))
refused('an unknown parameter', 'fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'ditto', '--set', 'lamda=1', says=('lamda', "'lambda'"))
refused('a parameter without a value', 'fit', 't.csv', *OWN, '--solver', 'stream', '--method', 'ditto', '--set', 'lambda', says=('lambda', 'KEY=VALUE'))
refused('no scores of a stream', 'fit', 't.csv', *OWN, '--solver', 'stream', '--no-score', says=('--no-score',))
refused('an unknown time', 'fit', 't.csv', *OWN, '--solver', 'stream', '--time', 'dya', says=("'dya'", "'day'"))
refused('channels without weights', 'fit', 't.csv', '--channels', 'speed,comfort', says=('--weights',))
refused('weights without channels', 'fit', 't.csv', *OWN, '--weights', 'prefs.csv', says=('--channels',))
refused('one channel', 'fit', 't.csv', '--channels', 'speed', '--weights', 'prefs.csv', says=('speed', 'two'))
refused('target and channels', 'fit', 't.csv', '--target', 'y', '--channels', 'speed,comfort', '--weights', 'prefs.csv', says=('--target', '--channels'))
(tmp / 'few.csv').write_text('site,speed,comfort\nsite0,1,0\n')
refused('weights that lack an agent', 'fit', 't.csv', *WEIGH[:2], '--weights', 'few.csv', *WEIGH[4:], says=('few.csv', "'site1'"))
(tmp / 'text.csv').write_text('site,speed,comfort\nsite0,much,0\n')
refused('weights that are no numbers', 'fit', 't.csv', *WEIGH[:2], '--weights', 'text.csv', *WEIGH[4:], says=('text.csv', 'line 2', "'speed'", 'much'))
refused('a log with a target', 'fit', 'log.csv', '--task', 'td', '--target', 'reward', says=('--task td', '--reward'))
refused('a table as a log', 'fit', 't.csv', '--task', 'td', '--agent', 'site', says=('t.csv', "'state'"))
for words in (('--gamma', '.3'), ('--state', 'u'), ('--next-state', 'u'), ('--reward', 'u'), ('--done', 'u')):
    for solver in ('exact', 'stream'):
        refused(f'{words[0]} without --task td, {solver}', 'fit', 't.csv', *OWN, '--solver', solver, *words, says=(words[0], '--task td'))
for words in (('--exclude', 'done'), ('--time', 'reward'), ('--with', 't.csv'), ('--missing', 'mean')):
    refused(f'a log with {words[0]}', 'fit', 'log.csv', '--task', 'td', *words, says=('--task td', words[0]))
refused('a log with weights and no channels', 'fit', 'log.csv', '--task', 'td', '--weights', 'prefs.csv', says=('--weights', '--channels'))
refused('a log by the exact solver', 'fit', 'log.csv', '--task', 'td', '--solver', 'exact', says=('--task td', '--solver stream'))
refused('two logs', 'fit', 'log.csv', 't.csv', '--task', 'td', says=('one file',))
