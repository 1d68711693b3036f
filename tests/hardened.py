#!/usr/bin/env python3
"""Checks that built programs and libraries are hardened.

usage: hardened.py PATH…         one line per fault, exit 1 if there is any; folders are searched
       hardened.py --self-test   builds programs without hardening and sees that it is reported

A program must be position independent. Programs and libraries must resolve symbols before they start (now), make their
tables read-only afterwards (RELRO), have no executable stack, and check their stack and their buffers (they call
__stack_chk_fail and functions that end in _chk). They load the libraries that are meant to be loaded, and no other
(docs/decisions/028-shared-libraries.md). Of a static library (.a) every object must be marked for control-flow enforcement
(IBT, SHSTK). A program has the mark only where the C library's own objects have it: Debian 12's do not. Needs readelf
(binutils).
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import runpath


LIBRARIES = {"libaffpcl", "libaffpcl_mpi", "libfmt", "libhwy", "libzip", "libsodium", "libz", "liblzma", "libzstd", "libmpi", "libstdc++",
             "libgcc_s", "libc", "libm", "ld-linux-x86-64", "ld-linux-aarch64"}


def shown(file, *options):
    return subprocess.run(["readelf", "-W", *options, file], capture_output=True, text=True, check=True).stdout


def faults(file):
    segments, dynamic, symbols = shown(file, "-l"), shown(file, "-d"), shown(file, "--dyn-syms")
    if "DYN" not in re.search(r"Type:\s*(.*)", shown(file, "-h"))[1]:
        yield "is not position independent"
    if "GNU_RELRO" not in segments:
        yield "has no RELRO"
    if not re.search(r"\(FLAGS(_1)?\).*NOW", dynamic) and "BIND_NOW" not in dynamic:
        yield "resolves symbols late"
    stack = re.search(r"GNU_STACK.*", segments)
    if not stack or re.search(r"\bRWE\b", stack[0]):
        yield "has an executable stack"
    if "__stack_chk_fail" not in symbols:
        yield "does not check its stack"
    if not re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")):
        yield "does not check its buffers"
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if name.split(".so")[0] not in LIBRARIES:
            yield f"loads {name}, which is not meant to be loaded"


def archive_faults(file):
    for member in shown(file, "-n").split("\nFile: ")[1:]:
        if not ("IBT" in member and "SHSTK" in member):
            yield f"{member.splitlines()[0]} is not marked for control-flow enforcement"


def check(paths):
    bad = files = 0
    for path in paths:
        archive = path.endswith(".a")
        for file in [path] if archive else runpath.elf_files(pathlib.Path(path)):
            files += 1
            for fault in archive_faults(file) if archive else faults(file):
                print(f"{file}: {fault}")
                bad += 1
    if files == 0:
        print(f"no program or library in {' '.join(map(str, paths))}")
    return 1 if bad or files == 0 else 0


def self_test():
    text = "#include <cstdio>\n#include <cstring>\nint main(int n, char** v) { char a[9]; std::strcpy(a, v[n - 1]); std::puts(a); }"
    strong = ["-O2", "-fPIE", "-pie", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2", "-Wl,-z,relro,-z,now"]
    weak = {"is not position independent": ["-no-pie", "-fno-pie"], "has no RELRO": ["-Wl,-z,norelro"],
            "resolves symbols late": ["-Wl,-z,lazy"], "has an executable stack": ["-Wl,-z,execstack"],
            "does not check its stack": ["-fno-stack-protector"], "does not check its buffers": ["-U_FORTIFY_SOURCE"],
            "loads libdl.so.2, which is not meant to be loaded": ["-Wl,--no-as-needed,-l:libdl.so.2"]}
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "p"
        for fault, flags in {"": [], **weak}.items():
            subprocess.run([os.environ.get("CXX", "c++"), "-x", "c++", "-", "-o", program, *strong, *flags], input=text,
                           text=True, check=True, capture_output=True)
            assert list(faults(program)) == ([fault] if fault else []), (fault, list(faults(program)))
        for marked in (True, False):
            folder = pathlib.Path(folder)
            compiled = subprocess.run([os.environ.get("CXX", "c++"), "-x", "c++", "-", "-c", "-o", folder / "o.o",
                                       "-fcf-protection" + ("" if marked else "=none")], input=text, text=True, capture_output=True)
            if compiled.returncode != 0:  # the machine has no such marks
                break
            subprocess.run(["ar", "rc", folder / f"{marked}.a", folder / "o.o"], check=True)
            assert (not list(archive_faults(folder / f"{marked}.a"))) == marked
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else check(sys.argv[1:]))
