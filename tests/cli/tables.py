#!/usr/bin/env python3
"""A small form of studies/tables: intervals, verdicts and predictions on simulated tables with a known truth.

usage: tables.py PATH_TO_AFFPCL
"""
import pathlib
import subprocess
import sys

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "tables" / "simulate.py"

if __name__ == "__main__":
    sys.exit(subprocess.run([sys.executable, str(STUDY), sys.argv[1], "--tables", "12", "--redraws", "4", "--seed", "2",
                             "--check"]).returncode)
