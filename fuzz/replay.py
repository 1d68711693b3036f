#!/usr/bin/env python3
"""Replays fuzz/corpus and fresh seeds through the readers.

usage: replay.py PROGRAM REPLAY…    REPLAY: affpcl_replay, affpcl_replay_asan
"""
import pathlib
import subprocess
import sys
import tempfile

import seeds

CORPUS = pathlib.Path(__file__).parent / "corpus"


def damaged(folder):
    """Every seed cut short, and with a byte changed at every place of its beginning and end."""
    for seed in list(folder.glob("*/seed-*")):
        content = seed.read_bytes()
        for at in sorted({*range(0, len(content), max(1, len(content) // 12))}):
            seed.with_name(f"{seed.name}-cut-{at}").write_bytes(content[:at])
            seed.with_name(f"{seed.name}-byte-{at}").write_bytes(content[:at] + bytes([content[at] ^ 0x81]) + content[at + 1:])


def main(program, programs):
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        fresh = pathlib.Path(name)
        seeds.write(program, fresh)
        damaged(fresh)
        for replay in programs:
            for folder in (CORPUS, fresh):
                done = subprocess.run([replay, folder], capture_output=True, text=True, errors="replace")
                lines = done.stdout.splitlines() or [""]
                print(f"{pathlib.Path(replay).name} {folder.name}: {lines[-1]}")
                if done.returncode != 0:
                    print(done.stderr[-4000:])
                    failed = 1
    return failed


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]))
