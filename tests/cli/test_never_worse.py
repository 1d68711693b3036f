"""A small form of the battery in studies/never-worse: no agent is worse off guarded than independent."""
import pathlib
import subprocess
import sys

BATTERY = pathlib.Path(__file__).resolve().parents[2] / "studies" / "never-worse" / "battery.py"


def test_the_guarded_method_meets_its_bounds(program):
    done = subprocess.run([sys.executable, BATTERY, program, "--settings", "24", "--systems", "2", "--replicates", "8",
                           "--seed", "1", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
