#!/usr/bin/env python3
"""Breaks the code in known ways, one at a time, and sees that the tests notice.

usage: run.py [-j JOBS] [NAME...]      all mutants, or those named

A mutant is a file NAME.mutant beside this one:

    file: affpcl/density/exact.cc
    about: the ratio of agent j where agent i's belongs
    tests: Theory*:Identity*           (optional; a GoogleTest filter, this one by default)
    --- find
    text that occurs exactly once in the file
    --- replace
    what stands there in the mutant

The tree is copied to build/mutants/N and built there with the flags of the preset dev, so that ccache already has most of
it; with ccache, several copies work side by side. The unmutated code must pass the chosen tests. A mutant is killed if they
fail (or crash). Everything else counts as failed: it survives, does not compile, does not end in time, matches no test,
or no longer fits the source.
"""
import argparse
import concurrent.futures
import os
import pathlib
import queue
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIP = {"build", ".git", ".ci", ".venv", "node_modules", "__pycache__"}
FILTER = "Theory*:Identity*"
SECONDS = 120  # for the tests of one mutant
COPIES = 4     # at most

# A mutant may leave something unused; that is no reason not to compile.
TOLERATE = "".join(f'#pragma GCC diagnostic ignored "-Wunused-{what}"\n'
                   for what in ("variable", "parameter", "but-set-variable", "but-set-parameter", "function"))


class Problem(Exception):
    """Why a mutant can be called neither killed nor survived."""


class Mutant:
    def __init__(self, path):
        self.name = path.stem
        text = path.read_text(encoding="utf-8")
        match = re.fullmatch(r"(.*?)^--- find\n(.*?)^--- replace\n(.*)", text, re.S | re.M)
        if not match:
            raise Problem(f"{path.name}: needs header lines, '--- find' and '--- replace'")
        header, find, replace = match.groups()
        fields = {}
        for line in filter(None, map(str.strip, header.splitlines())):
            key, colon, value = line.partition(":")
            if not colon or key not in ("file", "about", "tests") or key in fields or not value.strip():
                raise Problem(f"{path.name}: cannot read the header line '{line}'")
            fields[key] = value.strip()
        for key in ("file", "about"):
            if key not in fields:
                raise Problem(f"{path.name}: has no line '{key}:'")
        self.file, self.about = fields["file"], fields["about"]
        self.filter = fields.get("tests", FILTER)
        self.find, self.replace = find.removesuffix("\n"), replace.removesuffix("\n")
        if not self.find.strip() or self.find == self.replace:
            raise Problem(f"{path.name}: finds nothing, or changes nothing")

    def apply(self, source):
        count = source.count(self.find)
        if count != 1:
            raise Problem(f"stale: its text occurs {count} times in {self.file}, not once")
        return TOLERATE + "#line 1\n" + source.replace(self.find, self.replace)


class Tree:
    """A copy of the source tree, its build, and the tests in it."""

    def __init__(self, number, jobs):
        self.copy = ROOT / "build" / "mutants" / str(number)
        self.build_dir = self.copy / "build" / "dev"  # as deep as in ROOT: relative paths agree, so ccache sees the same
        self.jobs = jobs

    def sync(self):
        """Makes the copy the same as ROOT; files that agree are not touched, so an earlier build stays good."""
        wanted = {path.relative_to(ROOT): path for path in files_below(ROOT)}
        note = pathlib.Path("build", ".python")  # which Python the tests may call
        if (ROOT / note).exists():
            wanted[note] = ROOT / note
        for relative, path in wanted.items():
            target, data = self.copy / relative, path.read_bytes()
            if not target.exists() or target.read_bytes() != data:
                write(target, data)
                target.chmod(path.stat().st_mode)
        for path in files_below(self.copy):
            if path.relative_to(self.copy) not in wanted:
                path.unlink()

    def prepare(self):
        """Configures and builds the unmutated code."""
        self.sync()
        done = run(self.copy, "cmake", "--preset", "dev")
        if done.returncode:
            raise Problem("does not configure:\n" + done.stdout)
        self.build()

    def build(self):
        done = run(self.copy, "cmake", "--build", self.build_dir, "-j", str(self.jobs), "--target", "affpcl_tests")
        if done.returncode:
            errors = [line for line in done.stdout.splitlines() if re.search(r"\berror:|undefined reference", line)]
            raise Problem("does not build: " + (errors[0] if errors else done.stdout))

    def run_tests(self, chosen):
        """None if the chosen tests pass, else what failed first."""
        try:
            done = run(self.copy, self.build_dir / "affpcl_tests", f"--gtest_filter={chosen}", "--gtest_fail_fast",
                       timeout=SECONDS)
        except subprocess.TimeoutExpired:
            raise Problem(f"tests do not end in {SECONDS} s") from None
        if done.returncode == 0:
            if not re.search(r"\[  PASSED  \] [1-9]", done.stdout):
                raise Problem(f"no test matches {chosen}")
            return None
        failed = re.search(r"\[  FAILED  \] ([^\s,]+)", done.stdout)
        if failed:
            return failed.group(1)
        running = re.findall(r"\[ RUN      \] (\S+)", done.stdout)
        return f"crash in {running[-1] if running else 'start-up'}"

    def judge(self, mutant):
        """What kills the mutant, or None if it lives."""
        path = self.copy / mutant.file
        if not path.is_file():
            raise Problem(f"stale: there is no {mutant.file}")
        original = path.read_bytes()
        mutated = mutant.apply(original.decode("utf-8")).encode("utf-8")
        try:
            write(path, mutated)
            self.build()
            return self.run_tests(mutant.filter)
        finally:
            write(path, original)


def write(path, data):
    """Writes so that ninja sees it: not in the same clock tick as what was built a moment ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    time.sleep(0.02)
    path.write_bytes(data)


def files_below(root):
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if n not in SKIP]
        yield from (pathlib.Path(folder, name) for name in files)


def run(folder, *command, timeout=None):
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=timeout)


def plant(mutants, jobs):
    """Trees to work in, built; the unmutated code passes."""
    first = Tree(0, jobs)
    try:
        first.prepare()
        for chosen in sorted({m.filter for m in mutants}):
            failed = first.run_tests(chosen)
            if failed:
                raise Problem(f"fails {failed}")
        # Without ccache a second copy would cost a full build.
        count = min(jobs, len(mutants), COPIES) if shutil.which("ccache") else 1
        trees = [first] + [Tree(n, jobs) for n in range(1, count)]
        for tree in trees[1:]:
            tree.prepare()
    except Problem as problem:
        raise Problem(f"the unmutated code: {problem}") from None
    for tree in trees:
        tree.jobs = max(1, jobs // count)
    return trees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-j", "--jobs", type=int, default=os.cpu_count())
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    paths = {p.stem: p for p in sorted(HERE.glob("*.mutant"))}
    unknown = [n for n in args.names if n not in paths]
    if unknown:
        print(f"no mutant {unknown[0]}; there are: {', '.join(paths) or 'none'}")
        return 2

    trees = queue.SimpleQueue()
    try:
        mutants = [Mutant(paths[n]) for n in args.names or paths]
        for tree in plant(mutants, args.jobs) if mutants else []:
            trees.put(tree)
    except Problem as problem:
        print(f"mutants: {problem}")
        return 1

    def judge(mutant):
        """One line of the table; whether the mutant was killed."""
        tree, start = trees.get(), time.monotonic()
        try:
            by = tree.judge(mutant)
            verdict, detail = ("killed", f"by {by}") if by else ("SURVIVED", mutant.about)
        except Problem as problem:
            verdict, detail = "ERROR", str(problem)
        finally:
            trees.put(tree)
        print(f"{mutant.name:{width}}  {verdict:8}  {time.monotonic() - start:5.1f} s  {detail}", flush=True)
        return verdict == "killed"

    width = max((len(m.name) for m in mutants), default=0)
    print(f"mutants: {len(mutants)}", flush=True)
    with concurrent.futures.ThreadPoolExecutor(max(1, trees.qsize())) as pool:
        killed = sum(pool.map(judge, mutants))
    print(f"{killed} passed, {len(mutants) - killed} failed")
    return killed < len(mutants)


if __name__ == "__main__":
    sys.exit(main())
