#!/usr/bin/env python3
"""Every claim of every embedded study holds at the committed seed, and every study has its README.

The ranges and their false-alarm rates: docs/decisions/008-claims.md."""
import json, pathlib, subprocess, sys

affpcl = sys.argv[1]
root = pathlib.Path(__file__).resolve().parents[2]

def run(*words):
    return json.loads(subprocess.run([affpcl, *words, '--json'], check=True, capture_output=True, text=True).stdout)

passed = failed = 0
def check(name, good, why=''):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print('ok    ' if good else 'FAILED', name, '' if good else why, flush=True)

names = [s['name'] for s in run('list')['studies']]
folders = sorted(p for p in (root / 'studies').iterdir() if p.is_dir())
specs = [p.name for p in folders if (p / 'spec.toml').exists()]
check('every spec of studies/ is embedded', sorted(names) == specs, (names, specs))
for p in folders:
    if p.name not in specs: check(f'{p.name} is a script with a README', list(p.glob('*.py')) and (p / 'README.md').exists())
for name in names:
    check(f'{name} has a README', (root / 'studies' / name / 'README.md').exists())
    if name == 'fig-real':  # its data are made with libtorch: make features
        p = subprocess.run([affpcl, 'reproduce', name], capture_output=True, text=True)
        check('fig-real says what it needs', p.returncode == 2 and '--data' in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr)
        continue
    result = run('reproduce', name)
    check(f'{name} is complete', result['manifest']['complete'])
    check(f'{name} makes claims', len(result['claims']) >= 2, len(result['claims']))
    for c in result['claims']:
        check(f"{name}: {c['says']}", c['holds'] and c['hi'] - c['lo'] < 1e3, f"measured {c['measured']}, expected {c['lo']} to {c['hi']}")
print(f'{passed} passed, {failed} failed')
sys.exit(failed > 0)
