"""What tests of the command line share: the program, a folder of their own, checks and refusals.

Importing it is enough: the program's path is the first argument, and at the end the folder is removed (AFFPCL_KEEP=1
keeps it), the counts are printed, and a failed check makes the exit code 1.
"""
import atexit, os, pathlib, shutil, subprocess, sys, tempfile, time

affpcl = str(pathlib.Path(sys.argv[1]).resolve())
root = pathlib.Path(__file__).resolve().parents[2]
tmp = pathlib.Path(tempfile.mkdtemp(prefix=f'affpcl-{pathlib.Path(sys.argv[0]).stem}-'))
counts = {True: 0, False: 0}

def check(name, good, why=''):
    counts[bool(good)] += 1
    print('ok    ' if good else 'FAILED', name, '' if good else f': {why}', flush=True)

def run(*words, cwd=tmp, timeout=120, **more):
    return subprocess.run([affpcl, *map(str, words)], capture_output=True, text=True, cwd=cwd, timeout=timeout, **more)

def everything():
    """All files and folders of the test, with the times of the files."""
    return {str(p.relative_to(tmp)): p.stat().st_mtime_ns if p.is_file() else 0 for p in tmp.rglob('*')}

def refused(name, *words, says=()):
    """Refused at once: exit 2, one line that says all of `says`, nothing on standard output, nothing written."""
    before, start = everything(), time.time()
    try: p = run(*words, timeout=20)
    except subprocess.TimeoutExpired: return check(name, False, 'no answer after 20 s')
    seconds, after = time.time() - start, everything()
    for good, why in (
            (p.returncode == 2, f'exit {p.returncode}'),
            (len(p.stderr.splitlines()) == 1, f'{len(p.stderr.splitlines())} lines on standard error'),
            (p.stderr.startswith('affpcl: '), 'does not start with "affpcl: "'),
            (p.stdout == '', f'standard output has {p.stdout[:80]!r}'),
            (after == before, f'wrote {sorted(set(after) ^ set(before)) or "over a file"}'),
            (seconds < 10, f'took {seconds:.1f} s'),
            *((word in p.stderr, f'does not say {word!r}') for word in says)):
        if not good: return check(name, False, f'{why}: {p.stderr.strip()[:300]}')
    check(name, True)

@atexit.register
def finish():
    if os.environ.get('AFFPCL_KEEP'): print('kept', tmp)
    else: shutil.rmtree(tmp)
    print(f'{counts[True]} passed, {counts[False]} failed')
    sys.stdout.flush()
    if counts[False]: os._exit(1)  # the only way to change the code so late
