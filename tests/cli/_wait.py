"""Waiting for something to happen. No test waits for time to pass: a busy machine is late (tests/layers.py looks)."""
import os
import pathlib
import resource
import time


def wait_until(condition, seconds=60):
    """Waits until a condition holds; whether it did in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(.002)
    return True


def cpu_seconds(pid):
    """What a process has computed so far, however busy the machine is; without end for one that is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except FileNotFoundError:
        return float("inf")
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds_of_ended():
    """What all processes have computed that were waited for, with their own children."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def computes(process, seconds):
    """Waits until a started process has computed for so long; whether it still runs then."""
    wait_until(lambda: process.poll() is not None or cpu_seconds(process.pid) >= seconds)
    return process.poll() is None
