"""A small form of studies/tables: intervals, verdicts and predictions on simulated tables with a known truth."""
import pathlib
import subprocess
import sys

STUDY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "tables" / "simulate.py"


def test_fit_meets_its_targets(program):
    done = subprocess.run([sys.executable, STUDY, program, "--tables", "12", "--redraws", "4", "--seed", "2",
                           "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
