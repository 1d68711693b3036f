#!/usr/bin/env python3
"""A small form of the battery in studies/never-worse: no agent is worse off guarded than alone.

usage: never_worse.py PATH_TO_AFFPCL
"""
import pathlib
import subprocess
import sys

BATTERY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "never-worse" / "battery.py"

if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, str(BATTERY), sys.argv[1], "--settings", "24", "--systems", "2",
                             "--replicates", "8", "--seed", "1", "--check"]).returncode)
