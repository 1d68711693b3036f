#!/usr/bin/env python3
"""The README tells the truth: its table is what the demo prints, its verbs exist, its links lead somewhere."""
import re

import _harness
from _harness import check, root

readme = (root / 'README.md').read_text()

def run(*words):
    return _harness.run(*words, cwd=root)

# Tables: the same words, and numbers within 1 % (the last bits depend on the instruction set).
number = re.compile(r'-?\d+(?:\.\d+)?(?:e-?\d+)?')
def same_table(name, mark, *words):
    block = next(b for b in re.findall(r'```\n(.*?)```', readme, re.S) if mark in b)
    shown = [line for line in block.splitlines() if not line.startswith(('results in', 'page in'))]
    out = run(*words)
    check(f'{name} runs', out.returncode == 0, out.stderr)
    fresh = out.stdout.splitlines()
    check(f'{name}: the table has as many lines', len(shown) == len(fresh), (len(shown), len(fresh)))
    for a, b in zip(shown, fresh):
        same_words = number.sub('', a).split() == number.sub('', b).split()
        x, y = [float(v) for v in number.findall(a)], [float(v) for v in number.findall(b)]
        close = len(x) == len(y) and all(abs(p - q) <= .01 * max(abs(p), abs(q)) for p, q in zip(x, y))
        check(a.strip()[:60], same_words and close, b)

same_table('the demo', '* affpcl', 'run', 'examples/demo.toml')
fit = re.search(r'^build/release/affpcl (fit .*)$', readme, re.M).group(1)
same_table('the fit', 'on rows left out', *fit.split())

verbs = run('--help').stdout
for verb in sorted(set(re.findall(r'`affpcl ([a-z]+)', readme))):
    check(f'affpcl {verb} is in --help', any(line.split()[:1] == [verb] for line in verbs.splitlines()), verbs)
    check(f'affpcl {verb} --help has an example', 'xample' in run(verb, '--help').stdout)
for page in ('README.md', 'HACKING.md', 'CONTRIBUTING.md', 'docs/decisions/README.md'):
    for link in re.findall(r'\]\(([^)#:]+)\)', (root / page).read_text()):
        check(f'{page} links to {link}', ((root / page).parent / link).exists())
for command in re.findall(r'^make (\w+)', readme, re.M):
    check(f'make {command} exists', re.search(rf'^{command}:', (root / 'Makefile').read_text(), re.M))
