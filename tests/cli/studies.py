#!/usr/bin/env python3
"""Every claim of every embedded study holds at the committed seed, and every study has its README.

The ranges and their false-alarm rates: docs/decisions/008-claims.md."""
import json

import _harness
from _harness import check, refused, root

def run(*words):
    return json.loads(_harness.run(*words, '--json', cwd=root, timeout=600, check=True).stdout)

names = [s['name'] for s in run('list')['studies']]
folders = sorted(p for p in (root / 'studies').iterdir() if p.is_dir())
specs = [p.name for p in folders if (p / 'spec.toml').exists()]
check('every spec of studies/ is embedded', sorted(names) == specs, (names, specs))
for p in folders:
    if p.name not in specs: check(f'{p.name} is a script with a README', list(p.glob('*.py')) and (p / 'README.md').exists())
for name in names:
    check(f'{name} has a README', (root / 'studies' / name / 'README.md').exists())
    if name.startswith('fig-real'):  # their data are made with libtorch (make features); cli_fig_real has others
        refused(f'{name} says what it needs', 'reproduce', name, says=('--data',))
        continue
    result = run('reproduce', name)
    check(f'{name} is complete', result['manifest']['complete'])
    check(f'{name} makes claims', len(result['claims']) >= 2, len(result['claims']))
    for c in result['claims']:
        check(f"{name}: {c['says']}", c['holds'] and c['hi'] - c['lo'] < 1e3, f"measured {c['measured']}, expected {c['lo']} to {c['hi']}")
