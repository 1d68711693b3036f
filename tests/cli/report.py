#!/usr/bin/env python3
"""affpcl report and --report: where the page goes, what is refused and how; and what a terminal shows.

usage: report.py PATH_TO_AFFPCL        (standard library only; the page itself is tested by report/test)
"""
import fcntl, json, os, pty, re, struct, subprocess, termios

from _harness import affpcl, check, refused, root, run, tmp

SPEC = '''[problem]
kind = "gaussian"
agents = 4
[run]
steps = 20
replicates = 3
[[method]]
kind = "affpcl"
[[method]]
kind = "independent"
[[method]]
kind = "fedavg"
'''
(tmp / 'spec.toml').write_text(SPEC)
(tmp / 'rows.csv').write_text('site,u,y\n' + ''.join(f'{s},{i % 7},{i % 7 + i % 3}\n' for s in 'ab' for i in range(30)))
for folder, words in {'a': ['run', 'spec.toml'], 'b': ['run', 'spec.toml', '--seed', '4'],
                      'm': ['fit', 'rows.csv', '--target', 'y']}.items():
    out = run(*words, '--out', folder, '--quiet')
    check(f'{words[0]} makes {folder}', out.returncode == 0, out.stderr)

built = run('report', 'a').returncode == 0
if not built:
    refused('without the page the verb says how to get it', 'report', 'a', says=['tools/setup report', 'AFFPCL_REPORT'])
    refused('so does --report, before the work', 'run', 'spec.toml', '--out', 'c', '--report', says=['tools/setup report'])
    check('and nothing was made', not (tmp / 'c').exists())
else:
    # Where it goes.
    check('the page is in the folder', (tmp / 'a/report.html').exists())
    refused('a page is not replaced', 'report', 'a', says=['a/report.html', '--force'])
    check('unless asked to', run('report', 'a', '--force').stdout == 'page in a/report.html\n')
    check('two results, a page of its own', run('report', 'a', 'b', '--out', 'ab.html').stdout == 'page in ab.html\n')
    check('--quiet prints nothing', run('report', 'm', '--quiet').stdout == '')
    for words in (['run', 'spec.toml'], ['reproduce', 'fig-specific', '--set', 'run.replicates=2'], ['fit', 'rows.csv', '--target', 'y']):
        out = run(*words, '--out', f'with-{words[0]}', '--report')
        check(f'{words[0]} --report', out.returncode == 0 and f'page in with-{words[0]}/report.html' in out.stdout
              and (tmp / f'with-{words[0]}/report.html').exists(), out.stderr)
    out = run('reproduce', 'fig-specific', 'td-agents', '--set', 'run.replicates=2', '--out', 'two', '--report', '--quiet')
    check('several studies, a page each', out.returncode == 0 and (tmp / 'two/td-agents/report.html').exists(), out.stderr)
    out = run('run', 'spec.toml', '--out', 'json', '--report', '--json')
    check('--json is still JSON alone', json.loads(out.stdout)['headline'] and (tmp / 'json/report.html').exists())
    refused('--report needs --out', 'run', 'spec.toml', '--report', says=['--report needs --out'])

    # What is refused. (Each kind of damage: affpcl/study/page_test.cc.)
    refused('no such folder', 'report', 'nowhere', says=['nowhere'])
    refused('a file', 'report', 'spec.toml', says=['spec.toml', 'not a folder'])
    (tmp / 'other').mkdir()
    refused('a folder without a result', 'report', 'other', says=['other', 'summary.json'])
    (tmp / 'other/summary.json').write_text('{"manifest": {')
    refused('half a summary', 'report', 'other', says=['other/summary.json', 'damaged'])
    (tmp / 'other/summary.json').write_text((tmp / 'a/summary.json').read_text())
    refused('half a folder', 'report', 'other', says=['other', 'curves.csv'])
    (tmp / 'other/summary.json').write_text((tmp / 'm/summary.json').read_text())
    refused('half a fit', 'report', 'other', says=['other', 'model.json'])
    refused('a run and a fit', 'report', 'a', 'm', '--out', 'x.html', says=['do not compare'])
    refused('three results', 'report', 'a', 'b', 'm', says=[''])
    refused('a place that cannot be written to', 'report', 'a', '--out', 'nowhere/x.html', says=['nowhere/x.html'])
    refused('a folder as the page', 'report', 'a', '--out', 'b', says=['b'])
    check('nothing half-made is left', not list(tmp.glob('*.part')) and not (tmp / 'x.html').exists())

# The same sentence everywhere.
out = run('run', 'spec.toml')
said = json.loads((tmp / 'a/summary.json').read_text())['headline']
check('the last line of a run is its headline', out.stdout.splitlines()[-1] == said, out.stdout)
out = run('fit', 'rows.csv', '--target', 'y')
check('the last line of a fit too', out.stdout.splitlines()[-1] == json.loads((tmp / 'm/summary.json').read_text())['headline'], out.stdout)
check('a pipe gets neither colours nor bars', not re.search('[\x1b▉-▏█▶│]', run('run', 'spec.toml').stdout))

def on_terminal(width, *words, **environment):
    """What the program prints to a terminal of that width."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack('HHHH', 50, width, 0, 0))
    env = {**os.environ, 'TERM': 'xterm', **environment}
    env = {key: value for key, value in env.items() if value is not None}
    process = subprocess.Popen([affpcl, *map(str, words)], stdout=side, stderr=subprocess.DEVNULL, cwd=root, env=env)
    os.close(side)
    text = b''
    while True:
        try: piece = os.read(main, 4096)
        except OSError: break
        if not piece: break
        text += piece
    process.wait()
    os.close(main)
    return text.decode().replace('\r\n', '\n')

def plain(text): return re.sub('\x1b\\[[0-9;]*m', '', text)

os.environ.pop('NO_COLOR', None)
DEMO = ['run', 'examples/demo.toml', '--set', 'run.replicates=4']
FIT = ['fit', 'examples/shops.csv', '--target', 'sales', '--agent', 'shop']
for words in (DEMO, FIT):
    for width in (72, 80, 100, 130):
        text = plain(on_terminal(width, *words))
        rows = [line for line in text.splitlines() if re.match(r'  [* ] \w+ +[\d.e-]+ |  [A-Z]\w+ +\d+ ', line)]
        check(f'{words[0]}: rows fit {width} characters', rows and max(map(len, rows)) <= width, max(rows, key=len, default=text))
    check(f'{words[0]}: a wide terminal has bars', '█' in on_terminal(130, *words))
    check(f'{words[0]}: and colours', '\x1b[1m' in on_terminal(130, *words))
    check(f'{words[0]}: NO_COLOR has none', '\x1b[1m' not in on_terminal(130, *words, NO_COLOR='1'))
    check(f'{words[0]}: a dumb terminal has none', '\x1b[1m' not in on_terminal(130, *words, TERM='dumb'))

# A bar ends where learning alone is: full at 1, an arrow beyond.
bars = {line.split()[0].strip('*'): line.split()[-1] for line in plain(on_terminal(130, *DEMO)).splitlines()[-40:]
        if re.match(r'    (independent|fedavg) ', line)}
check('learning alone fills its bar', re.fullmatch('█+│', bars['independent']), bars)
check('more than alone has an arrow', bars['fedavg'].endswith('▶'), bars)

# Names of any script stay aligned, and are cut between letters, not inside them.
wide = SPEC.replace('kind = "affpcl"', 'kind = "affpcl"\nname = "ährenfeld, größer als dreißig Zeichen, ganz bestimmt"')
(tmp / 'wide.toml').write_text(wide)
text = plain(on_terminal(100, 'run', tmp / 'wide.toml'))
check('a long name is cut', '…' in text and '\ufffd' not in text, text)
ends = {line.index('[') for line in text.splitlines() if re.match(r'  [* ] \S.*\[', line)}
check('columns are aligned', len(ends) == 1, text)
