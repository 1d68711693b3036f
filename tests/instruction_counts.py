#!/usr/bin/env python3
"""Instructions of fixed rounds against tests/instruction_counts.json: a slow-down shows, however busy the machine is.

usage: instruction_counts.py PATH_TO_COUNTS COMPILER [--update]

Counted by valgrind on the portable path and on AVX2 (it does not know AVX-512). More than 5 % above the recorded number
fails; so does more than 5 % below it: then record the new one with --update. Skipped (exit 77) without valgrind, or when
the compiler or the flags are not those the numbers were recorded with.
"""
import json
import pathlib
import re
import shutil
import subprocess
import sys

RECORD = pathlib.Path(__file__).with_suffix(".json")
SETS, CASES = ("portable", "AVX2"), ("small", "exact", "single", "linear")
TOLERANCE = 0.05


def count(program, instruction_set, case):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--toggle-collect=affpcl::Run::advance*", "--callgrind-out-file=/dev/null", program,
                          instruction_set, case], capture_output=True, text=True)
    if run.returncode == 77:
        return None
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found:
        sys.exit(f"valgrind failed:\n{run.stdout}{run.stderr}")
    return int(found.group(1))


def main():
    program, compiler = sys.argv[1:3]
    update = "--update" in sys.argv
    if not shutil.which("valgrind"):
        print("valgrind is missing (tools/setup bench installs it)")
        return 77
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    if not update and record.get("compiler") != compiler:
        print(f"the numbers were recorded with {record.get('compiler')}, this is {compiler}")
        return 77
    counts = {f"{s} {c}": n for s in SETS for c in CASES if (n := count(program, s, c)) is not None}
    if update:
        RECORD.write_text(json.dumps({"compiler": compiler, "counts": counts}, indent=1) + "\n")
        return 0
    failed = False
    for name, now in counts.items():
        before = record["counts"][name]
        change = now / before - 1
        verdict = "" if abs(change) <= TOLERANCE else "  slower" if change > 0 else "  faster: record it with --update"
        failed = failed or verdict != ""
        print(f"{name:16} {now:>12}  recorded {before:>12}  {100 * change:+.1f} %{verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
