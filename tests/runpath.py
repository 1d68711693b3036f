#!/usr/bin/env python3
"""Checks where built programs and libraries look for shared libraries.

usage: runpath.py PATH…         one line per bad entry, exit 1 if there is any; folders are searched
       runpath.py --self-test   builds a program with a bad RUNPATH and sees that it is reported

An empty entry of RPATH or RUNPATH means the working directory, and a relative one starts there: a library lying in a
data folder would run as the user. Every entry must be absolute or begin with $ORIGIN. Needs readelf (binutils).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ENTRY = re.compile(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]")


def elf_files(path):
    """The ELF programs and shared libraries at or below path; object files have no dynamic section."""
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file() and not p.is_symlink())
    for file in files:
        if file.suffix in (".o", ".a", ".gch"):
            continue
        with open(file, "rb") as f:
            if f.read(4) == b"\x7fELF":
                yield file


def bad_entries(file):
    done = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        found = ENTRY.search(line)
        if found:
            for entry in found[1].split(":"):
                if not entry.startswith(("/", "$ORIGIN", "${ORIGIN}")):
                    yield entry, found[1]


def check(paths):
    bad = files = 0
    for path in paths:
        for file in elf_files(pathlib.Path(path)):
            files += 1
            for entry, whole in bad_entries(file):
                print(f"{file}: RUNPATH '{whole}' has the entry '{entry}', which is neither absolute nor $ORIGIN")
                bad += 1
    if files == 0:
        print(f"no program or library in {' '.join(map(str, paths))}")
        return 1
    return 1 if bad else 0


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        for number, (runpath, wanted) in enumerate(
                [("/usr/lib", 0), ("$ORIGIN/../lib", 0), ("$ORIGIN::", 1), ("::::", 1), ("lib", 1), (".", 1)]):
            program = pathlib.Path(folder) / f"p{number}"
            subprocess.run([os.environ.get("CXX", "c++"), "-x", "c++", "-", "-o", program, f"-Wl,-rpath,{runpath}"],
                           input="int main() {}", text=True, check=True)
            assert check([program]) == wanted, runpath
        assert check([pathlib.Path(folder) / "none"]) == 1
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else check(sys.argv[1:]))
