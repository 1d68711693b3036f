#!/usr/bin/env python3
"""Checks that files compiled once per instruction set do not take the precompiled header.

usage: kernels_unrolled.py BUILD_FOLDER        one line per violation, exit 1 if there is any

GCC restores the header's optimisation level with the pragmas of Highway, so that -O3 has no effect: loops over registers
stay loops, and their accumulators stay in memory.
"""
import json
import pathlib
import sys


def main():
    commands = json.loads((pathlib.Path(sys.argv[1]) / "compile_commands.json").read_text())
    kernels = [c for c in commands if not c["file"].endswith("_test.cc")
               and "foreach_target.h" in pathlib.Path(c["file"]).read_text(errors="replace")]
    wrong = sorted({c["file"] for c in kernels if "cmake_pch" in c["command"]})
    for file in wrong:
        print(f"{file}: compiled with the precompiled header")
    if not kernels:
        print("no file is compiled once per instruction set")
    return 1 if wrong or not kernels else 0


if __name__ == "__main__":
    sys.exit(main())
