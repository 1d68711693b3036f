#!/usr/bin/env python3
"""fit, predict and inspect from end to end: what they write, and how they refuse bad input.

usage: fit.py PATH_TO_AFFPCL        (standard library only; writes to a temporary folder)
"""
import csv, json, random

from _harness import check, refused, run, tmp

def json_of(path): return json.loads((tmp / path).read_text())

rng = random.Random(1)
HEAD = 'site,u,v,kind,y\n'
def rows(sites='abcd', n=30):
    out = []
    for site in sites:
        w = 1 + .3 * rng.gauss(0, 1)
        for k in range(n):
            u, v = rng.gauss(0, 1), rng.gauss(0, 1)
            out.append(f'{site},{u:.4f},{v:.4f},{"xyz"[k % 3]},{w * u - v + .3 * (k % 3) + .3 * rng.gauss(0, 1):.4f}\n')
    return out
ROWS = rows()
GOOD = HEAD + ''.join(ROWS)
(tmp / 'good.csv').write_text(GOOD)

# ---- what works ----
p = run('fit', 'good.csv', '--target', 'y', '--out', 'm')
check('fit: the column site is found, a table is printed', p.returncode == 0 and 'gained' in p.stdout and 'model in m' in p.stdout, p.stderr)
model, summary = json_of('m/model.json'), json_of('m/summary.json')
check('model.json: format, version, provenance', model['format'] == 'affpcl-model' and model['version'] == 1 and model['provenance']['rows'] == 120
      and model['provenance']['files'] == ['good.csv'] and 'fit good.csv' in model['provenance']['command'], model['provenance'])
check('model.json: coefficients', model['coefficients'] == ['intercept', 'u', 'v', 'kind=y', 'kind=z'] and [a['name'] for a in model['agents']] == list('abcd'))
manifest = {'version', 'spec', 'seed', 'command', 'host', 'instruction_set', 'compiler', 'threads', 'seconds', 'complete'}
check('summary.json: manifest', manifest <= set(summary['manifest']) and summary['manifest']['complete'])
check('summary.json: every agent has scores, a gain and a verdict', len(summary['agents']) == 4 and all(
    {'given', 'personalised', 'alone', 'pooled'} <= set(a['score']) and a['gain']['lo'] <= a['gain']['mean'] <= a['gain']['hi']
    and a['verdict'] in ('gained', 'even', 'lost') and a['given'] in ('personalised', 'alone', 'pooled') for a in summary['agents']))
check('summary.json: verdicts are counted', sum(summary['verdicts'].values()) == 4)
p = run('fit', 'good.csv', '--target', 'y', '--json', '--threads', 2)
again = json.loads(p.stdout)
check('--json prints the summary; two threads, same numbers', again['agents'] == summary['agents'] and again['score'] == summary['score'])
p = run('fit', 'good.csv', '--target', 'y', '--seed', 5, '--json')
check('another seed, other folds', json.loads(p.stdout)['score'] != summary['score'])
p = run('fit', 'good.csv', '--target', 'y', '--out', 'm', '--force', '--quiet')
check('--force replaces, --quiet is quiet', p.returncode == 0 and p.stdout == '' and p.stderr == '')

(tmp / 'more.csv').write_text('y,kind,v,u,site\n,x,0.5,1,a\n,y,0.5,1,"new, one"\n,new,0,0,b\n')
p = run('predict', 'm', 'more.csv', '--out', 'p.csv')
out = list(csv.DictReader(open(tmp / 'p.csv')))
check('predict: columns in any order, target blank', p.returncode == 0 and len(out) == 3, p.stderr)
check('predict: all columns are kept', list(out[0]) == ['y', 'kind', 'v', 'u', 'site', 'prediction', 'prediction_lo', 'prediction_hi'])
width = [float(r['prediction_hi']) - float(r['prediction_lo']) for r in out]
check('predict: an agent never seen has a wider interval, and a note', width[1] > width[0] and 'new, one' in p.stdout, p.stdout)
check('predict: a text never seen has a note', 'texts' in p.stdout, p.stdout)
p = run('predict', 'm/model.json', 'good.csv', '--out', 'q.csv', '--json')
check('predict --json scores where the target is known', json.loads(p.stdout)['score']['r2'] > .8, p.stdout)
p = run('predict', 'm', 'good.csv')
check('predict without --out prints rows', p.stdout.count('\n') == 121 and 'R^2' in p.stderr)
p = run('inspect', 'm')
check('inspect', p.returncode == 0 and 'spread' in p.stdout and 'kind=z' in p.stdout, p.stderr)
check('inspect --json', [a['name'] for a in json.loads(run('inspect', 'm', '--json').stdout)['agents']] == list('abcd'))
check('inspect --agent', 'std. error' in run('inspect', 'm', '--agent', 'b').stdout)

def numbers(text, *more):
    (tmp / 'same.csv').write_bytes(text if isinstance(text, bytes) else text.encode())
    p = run('fit', 'same.csv', '--target', 'y', '--json', *more)
    if p.returncode != 0: return p.stderr
    return json.loads(p.stdout)['agents']
want = numbers(GOOD)
check('a byte order mark', numbers('\ufeff' + GOOD) == want)
check('CRLF', numbers(GOOD.replace('\n', '\r\n')) == want)
check('semicolons', numbers(GOOD.replace(',', ';')) == want)
check('the order of columns does not matter to scores', [round(a['score']['given'], 9) for a in numbers(
    'y,kind,v,u,site\n' + ''.join(','.join(reversed(r.strip().split(','))) + '\n' for r in ROWS))] == [round(a['score']['given'], 9) for a in want])
check('a constant column is left out', numbers(GOOD.replace('\n', ',7\n').replace('y,7\n', 'y,c\n', 1)) == want)
check('--exclude', numbers(''.join(f'{i},{line}\n' for i, line in enumerate(GOOD.splitlines())).replace('0,site', 'id,site', 1), '--exclude', 'id') == want)
check('--features', isinstance(numbers(GOOD, '--features', 'u,v'), list))
check('an agent with one row', isinstance(numbers(GOOD + 'lone,1,1,x,2\n'), list))
blanks = GOOD + 'a,,1,x,2\na,1,1,x,\n'
check('--missing mean', isinstance(numbers(blanks, '--missing', 'mean'), list), numbers(blanks, '--missing', 'mean'))
check('--missing drop', numbers(blanks, '--missing', 'drop') == want)
check('one agent', isinstance(numbers(HEAD + ''.join(ROWS[:30])), list))

folder = tmp / 'sites'
folder.mkdir()
for i, site in enumerate('abcd'): (folder / f'{site}.csv').write_text('u,v,kind,y\n' + ''.join(r[2:] for r in ROWS[30 * i:30 * i + 30]))
for name, args in (('a folder', ['sites']), ('a pattern', ['sites/*.csv']), ('files', ['sites/a.csv', 'sites/b.csv', 'sites/c.csv', 'sites/d.csv'])):
    p = run('fit', *args, '--target', 'y', '--json')
    check(f'one file per agent: {name}', p.returncode == 0 and json.loads(p.stdout)['agents'] == want, p.stderr)
run('fit', 'sites', '--target', 'y', '--out', 'mf', '--quiet')
check('predict by file', 'R^2' in run('predict', 'mf', 'sites/a.csv').stderr)

classes = GOOD.splitlines()
text = 'site,u,v,kind,y\n' + ''.join(','.join(r.split(',')[:4] + ['up' if float(r.split(',')[4]) > 0 else 'down']) + '\n' for r in classes[1:])
(tmp / 'classes.csv').write_text(text)
p = run('fit', 'classes.csv', '--target', 'y', '--out', 'c', '--json')
check('two classes: accuracy and log loss', p.returncode == 0 and json.loads(p.stdout)['score']['accuracy']['given'] > .8, p.stderr)
p = run('predict', 'c', 'classes.csv', '--out', 'pc.csv')
out = list(csv.DictReader(open(tmp / 'pc.csv')))
check('classes are predicted, with their probability', {r['prediction'] for r in out} == {'up', 'down'} and all(.5 <= float(r['probability']) <= 1 for r in out))
p = run('fit', 'classes.csv', '--target', 'kind', '--json')
check('three classes', p.returncode == 0 and len(json.loads(p.stdout)['spread']) == 3, p.stderr)

# ---- what is refused ----
def bad(name, text, *args, says=()):
    (tmp / 'bad.csv').write_bytes(text if isinstance(text, bytes) else text.encode())
    refused(name, 'fit', 'bad.csv', '--out', 'out', *(args or ('--target', 'y')), says=says)

bad('no agent column', GOOD.replace('site', 'agnet', 1), says=('bad.csv', "'agent'", "'agnet'", '--agent'))
bad('an agent column that is not there', GOOD, '--target', 'y', '--agent', 'stie', says=('stie', "'site'"))
bad('no target column', GOOD, '--target', 'yy', says=('bad.csv', "'yy'", "'y'"))
bad('agent and target in one', GOOD, '--target', 'y', '--agent', 'y', says=("'y'", '--agent', '--target'))
bad('a constant target', 'site,u,y\na,1,2\na,2,2\nb,3,2\n', says=("'y'", '2', 'nothing to learn'))
bad('a constant class', 'site,u,y\na,1,k\na,2,k\nb,3,k\n', says=("'y'", 'k', 'nothing to learn'))
bad('text in a number column', HEAD + ''.join(ROWS[:5]) + 'a,oops,1,x,1\n', says=('line 7', "'u'", 'oops', 'number'))
bad('text in a number target', HEAD + ''.join(ROWS[:5]) + 'a,1,1,x,oops\n', says=('line 7', "'y'", 'oops', 'number'))
bad('a row too short', HEAD + ROWS[0] + 'a,1,1\n', says=('line 3', '3 fields', '5'))
bad('a row too long', HEAD + ROWS[0] + 'a,1,1,x,1,1\n', says=('line 3', '6 fields', '5'))
bad('a binary file', b'\x7fELF\x00\x01\x02' * 100, says=('bad.csv',))
bad('an empty file', '', says=('bad.csv', 'empty'))
bad('a header only', HEAD, says=('bad.csv', 'no rows'))
bad('a column twice', 'site,u,u,y\na,1,1,1\n', says=("'u'",))
bad('a blank', HEAD + ROWS[0] + 'a,,1,x,1\n', says=('line 3', "'u'", '--missing mean'))
bad('a blank target', HEAD + ROWS[0] + 'a,1,1,x,\n', says=('line 3', "'y'", '--missing drop'))
bad('a row of nobody', HEAD + ROWS[0] + ',1,1,x,1\n', says=('line 3', "'site'", 'agent'))
bad('too many texts', 'site,name,y\n' + ''.join(f'a,n{i}n,{i}\n' for i in range(30)), says=("'name'", '30', '20', '--exclude name'))
bad('no feature left', 'site,y\na,1\nb,2\n', says=('bad.csv', 'no feature'))
bad('only constants', 'site,u,y\na,1,1\nb,1,2\n', says=('no feature', 'u'))
bad('an unknown feature', GOOD, '--target', 'y', '--features', 'u,w', says=("'w'",))
bad('an unknown exclusion', GOOD, '--target', 'y', '--exclude', 'kynd', says=("'kynd'", "'kind'"))
bad('the target as a feature', GOOD, '--target', 'y', '--features', 'u,y', says=("'y'", 'target'))
bad('regression of texts', text, '--target', 'y', '--task', 'regress', says=('line 2', '--task regress'))
bad('an unknown policy', GOOD, '--target', 'y', '--missing', 'men', says=('--missing', 'men'))
refused('no target', 'fit', 'good.csv', says=('--target',))
refused('no data', 'fit', '--target', 'y', says=('data',))
refused('a file that is not there', 'fit', 'nowhere.csv', '--target', 'y', '--out', 'out', says=('nowhere.csv',))
refused('a file given twice', 'fit', 'good.csv', 'good.csv', '--target', 'y', says=('good.csv', 'twice'))
refused('a pattern without files', 'fit', 'no*.csv', '--target', 'y', says=('no*.csv',))
(tmp / 'hollow').mkdir()
refused('a folder without files', 'fit', 'hollow', '--target', 'y', says=('hollow', '.csv'))
(tmp / 'vanishing.csv').symlink_to(tmp / 'gone.csv')
refused('a file that has vanished', 'fit', 'vanishing.csv', '--target', 'y', says=('vanishing.csv',))
refused('an existing folder without --force', 'fit', 'good.csv', '--target', 'y', '--out', 'm', says=('m', '--force'))
refused('files that differ', 'fit', 'sites/a.csv', 'good.csv', '--target', 'y', says=('good.csv', "'site'"))

def model_of(name, content, says):
    (tmp / 'bad.json').write_text(content if isinstance(content, str) else json.dumps(content))
    refused(name + ' (predict)', 'predict', 'bad.json', 'good.csv', '--out', 'x.csv', says=('bad.json', *says))
    refused(name + ' (inspect)', 'inspect', 'bad.json', says=('bad.json', *says))
model = json_of('m/model.json')
model_of('a model that is no JSON', 'site,u\n1,2\n', ('not a model',))
model_of('JSON that is no model', {'a': 1}, ('not a model',))
model_of('a list that is no model', [1], ('not a model',))
model_of('half a model', json.dumps(model)[:2000], ('damaged',))
model_of('a newer model', {**model, 'version': 2}, ('version 2', 'newer'))
model_of('an older model', {**model, 'version': 0}, ('version 0', 'fit it again'))
model_of('a model without agents', {k: v for k, v in model.items() if k != 'agents'}, ('damaged', "'agents'"))
for key in model:
    if key in ('about', 'task', 'format', 'version'): continue
    model_of(f'a model whose {key} is wrong', {**model, key: 3}, ('damaged',))
model_of('a model with a coefficient too few', json.dumps(model).replace('"se": [', '"se": [1.0, ', 1), ('damaged', "'se'"))
refused('a model that is not there', 'inspect', 'nowhere', says=('nowhere',))
refused('a folder without a model', 'inspect', 'hollow', says=('hollow',))
refused('an agent that is not there', 'inspect', 'm', '--agent', 'e', says=("'e'", 'a'))
(tmp / 'lacks.csv').write_text('site,u,kind\na,1,x\n')
refused('predict: a column is missing', 'predict', 'm', 'lacks.csv', '--out', 'x.csv', says=('lacks.csv', "'v'"))
(tmp / 'lacks.csv').write_text('site,u,v,kind\na,1,1,x\na,one,1,x\n')
refused('predict: text in a number column', 'predict', 'm', 'lacks.csv', '--out', 'x.csv', says=('line 3', "'u'", 'one'))
(tmp / 'lacks.csv').write_text('site,u,v,kind\na,,1,x\n')
refused('predict: a blank', 'predict', 'm', 'lacks.csv', '--out', 'x.csv', says=('line 2', "'u'", '--missing'))
refused('predict: predictions again', 'predict', 'm', 'p.csv', '--out', 'x.csv', says=('p.csv', "'prediction'"))
refused('predict: an existing file without --force', 'predict', 'm', 'good.csv', '--out', 'q.csv', says=('q.csv', '--force'))
refused('predict: into nowhere', 'predict', 'm', 'good.csv', '--out', 'nowhere/q.csv', says=('nowhere/q.csv',))
refused('predict: --json without --out', 'predict', 'm', 'good.csv', '--json', says=('--out',))
