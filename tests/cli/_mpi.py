"""Jobs of mpirun; their ranks talk through shared memory and loopback."""
import os
import re
import shutil
import signal
import subprocess
from typing import NamedTuple

from _wait import cpu_seconds, cpu_seconds_of_ended

MPIRUN = shutil.which("mpirun")
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_btl="self,vader", OMPI_MCA_btl_vader_single_copy_mechanism="none",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_mpi_yield_when_idle="1")


class Ended(NamedTuple):
    """How a job ended."""
    code: int | None  # None: it hung and was killed
    output: str
    said: list  # the program's own lines of standard error
    seconds: float  # that it computed meanwhile, mpirun and all ranks, however busy the machine is


class Jobs:
    """Starts the program on ranks, in the folder of `affpcl`."""

    def __init__(self, affpcl):
        self.affpcl = affpcl

    def start(self, ranks, *words, before=()):
        """Starts a job; `before` comes before the program on mpirun's command line."""
        command = [MPIRUN, "-np", ranks, *before, self.affpcl.path, *words]
        return subprocess.Popen(list(map(str, command)), cwd=self.affpcl.folder, env=ENVIRONMENT, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)

    def run(self, ranks, *words, before=()):
        return end_of(self.start(ranks, *words, before=before))

    def rank_pids(self, job):
        """The processes of a job's ranks."""
        found = subprocess.run(["pgrep", "-s", str(job.pid), "-f", "^" + re.escape(self.affpcl.path)],
                               capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]


def computed(job):
    """What the processes of a job that runs have computed so far."""
    found = subprocess.run(["pgrep", "-s", str(job.pid)], capture_output=True, text=True)
    seconds = [cpu_seconds(pid) for pid in found.stdout.split()]
    return sum(s for s in seconds if s != float("inf"))


def end_of(job, seconds=90):
    """Waits for a job's end; one that hangs is killed."""
    before = computed(job)
    began = cpu_seconds_of_ended()
    try:
        output, errors = job.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        output, errors = job.communicate()
        return Ended(None, output, errors.splitlines(), seconds)
    said = []
    for line in errors.splitlines():
        if line.startswith("affpcl: ") or (line.startswith("  ") and said and said[0].endswith("problems")):
            said.append(line)
    return Ended(job.returncode, output, said, cpu_seconds_of_ended() - began - before)
