"""Every file that Highway compiles per instruction set compiles for ARM too (NEON).

    neon.py [COMPILER]     exit 77 where there is no compiler for it (Debian: g++-aarch64-linux-gnu)
"""
import pathlib
import shutil
import subprocess
import sys

compiler = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "aarch64-linux-gnu-g++")
if compiler is None:
    print("skipped: no compiler for aarch64 here (Debian: g++-aarch64-linux-gnu)")
    sys.exit(77)

root = pathlib.Path(__file__).resolve().parent.parent
files = [path for folder in ("affpcl", "bench") for path in sorted((root / folder).rglob("*.cc"))
         if "<hwy/foreach_target.h>" in path.read_text() and not path.name.endswith("_test.cc")]
if len(files) < 5:
    sys.exit(f"neon.py: only {len(files)} files found that Highway compiles: this test looks in the wrong places")
broken = 0  # all of the way to code: what cannot be inlined is an error only then
for path in files:
    run = subprocess.run([compiler, "-std=c++20", "-O1", f"-I{root}", "-c", path, "-o", "/dev/null"], capture_output=True, text=True)
    if run.returncode != 0:
        broken += 1
        print(f"{path.relative_to(root)} does not compile for ARM:\n{run.stderr[:2000]}")
print(f"{len(files) - broken} of {len(files)} files compile")
sys.exit(broken > 0)
