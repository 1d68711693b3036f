"""Jobs under mpirun, for tests that are skipped without MPI; ranks talk through shared memory and loopback."""
import os, re, shutil, signal, subprocess, sys, time
from _harness import affpcl, run, tmp

mpirun = shutil.which('mpirun')
if mpirun is None or 'without MPI' in run('reproduce', 'fig-specific', '--set', 'run.steps=1', '--mpi').stderr:
    print('skipped: no MPI; tools/setup mpi installs it')
    sys.exit(77)

ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT='1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM='1', OMPI_MCA_btl='self,vader',
           OMPI_MCA_btl_vader_single_copy_mechanism='none', OMPI_MCA_rmaps_base_oversubscribe='1', OMPI_MCA_mpi_yield_when_idle='1')

def start(ranks, *words, more=()):
    return subprocess.Popen([mpirun, '-np', str(ranks), *more, affpcl, *map(str, words)], cwd=tmp, env=ENV, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

def ended(p, seconds=90):
    """(exit code, output, our own lines of standard error, seconds); a job that hangs is killed and its code is None."""
    began = time.time()
    try: out, err = p.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(p.pid, signal.SIGKILL)
        out, err = p.communicate()
        return None, out, err.splitlines(), seconds
    return p.returncode, out, [line for line in err.splitlines() if line.startswith('affpcl: ')], time.time() - began

def mpi(ranks, *words, **more): return ended(start(ranks, *words, **more))
def pids(p): return [int(w) for w in subprocess.run(['pgrep', '-s', str(p.pid), '-f', '^' + re.escape(affpcl)], capture_output=True, text=True).stdout.split()]
def wait_for(condition, seconds=60):
    deadline = time.time() + seconds
    while not condition() and time.time() < deadline: time.sleep(.005)
