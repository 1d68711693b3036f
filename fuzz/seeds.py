#!/usr/bin/env python3
"""Writes small valid files of every kind that affpcl reads, for fuzzers to start from.

usage: seeds.py PROGRAM FOLDER    one folder below FOLDER for each target of fuzz/targets.h

Models, saved tasks and summaries come from the program itself, so that they have the formats of today.
"""
import gzip
import io
import json
import lzma
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

SPEC = """[problem]
kind = "gaussian"
agents = 3
dim = 2
delta_env = 0.3
delta_obj = 0.3
[run]
steps = 6
replicates = 2
seed = 1
step_size = {schedule = "log-constant", per = "agent"}
[[method]]
kind = "affpcl"
guard = "full"
[[method]]
kind = "independent"
[sweep]
"problem.delta_env+problem.delta_obj" = [0.0, 0.3]
"""
SYSTEM = {"A": [[[1.0, 0.2], [0.0, 1.5]], [[2.0, 0.0], [0.1, 1.0]]], "b": [[[1.0, 0.0], [0.5, 1.0]], [[0.0, 1.0], [1.0, 1.0]]],
          "mu": [[0.5, 0.5], [0.25, 0.75]]}
WHOLE_SYSTEM = {"A": SYSTEM["A"], "mu": SYSTEM["mu"], "Phi": [[[1.0], [0.5]], [[0.0], [1.0]]], "theta": [[1.0], [0.5]],
                "psi": [[1.0, 0.0], [1.0, 1.0]], "x0": [[0.0, 0.0], [1.0, 0.0]], "xc0": [0.5, 0.5], "thetac0": [0.1],
                "states": [[0, 1, 0, 1], [1, 1, 0, 0]]}
CHECKPOINT = '''[problem]
kind = 'gaussian'
agents = 3
dim = 2
[run]
steps = 6
replicates = 2
[[method]]
kind = 'affpcl'
guard = 'full'
[[method]]
kind = 'scaffold'
period = 2
'''  # the study of the target checkpoint (study_targets.cc)
TABLE = "agent,x,kind,y\n" + "".join(
    f"{'abc'[r % 3]},{r % 7 - 3},{'uvw'[r % 3] if r % 5 else 'u'},{(r * 37 % 11) / 4 + r % 7}\n" for r in range(36))
COUNTS = "agent,x,n\n" + "".join(f"{'abc'[r % 3]},{r % 7 - 3},{r * 37 % 11 % 5}\n" for r in range(36))
JOB = """[job]
name = "trial"
sites = ["north", "south", "west"]
min_sites = 3
secure = true
timeout = 60
[fit]
target = "y"
features = ["x", "kind"]
repeats = 1
seed = 2
score = true
[site.north]
data = "table.csv"
agent = "agent"
[site.south]
data = ["table.csv"]
may_leave = true
[site.west]
data = "table.csv"
with = "table.csv"
na = ["-", "none"]
"""


def tables():
    numbers = np.arange(12.0).reshape(4, 3)
    npy, npz = io.BytesIO(), io.BytesIO()
    np.save(npy, numbers)
    np.savez(npz, x=numbers, y=np.arange(4))
    records = io.BytesIO()
    np.save(records, np.array([(1.5, "ab", b"xyz", 7)], dtype=[("a", "<f8"), ("b", "<U2"), ("c", "S3"), ("d", ">i4")]))
    images = struct.pack(">IIII", 0x00000803, 2, 2, 2) + bytes(range(8))
    leaf = {"users": ["u1", "u2"], "num_samples": [1, 2],
            "user_data": {"u1": {"x": [[0.5, 1]], "y": [3]}, "u2": {"x": [[0, 1], [1, 0]], "y": [1, 2]}}}
    packed = TABLE.encode()
    return {
        "csv": [packed, b"sep=;\n# ours\na;b\n1,5;2026-11-30\n-;3+\n", "a,b\n1,é\n".encode("utf-16"), b"a|b\n\"x\"\"y\"|NA\n"],
        "npy": [npy.getvalue(), records.getvalue()],
        "npz": [npz.getvalue()],
        "svmlight": [b"1 1:0.5 7:2e1\n-1 2:1\n", b"1 qid:3 1:0.5 7:2e1 # c\n-1 2:1\n"],
        "idx": [images],
        "leaf": [json.dumps(leaf).encode()],
        "packed": [gzip.compress(packed, mtime=0), lzma.compress(packed)],
        "fit": [packed, COUNTS.replace(",n\n", ",y\n").encode(), TABLE.replace(",y\n", ",z\n").replace("kind", "y").encode()],
        "rows": [TABLE.replace("kind", "w").encode(), b"agent,y,a\n0,1,2\n0,2,2\n1,2.5,1e9\n1,-1,0\n"],
        "log": [b"agent,state,next_state,reward,done\na,s,t,1,0\na,t,s,.5,1\nb,s,s,2,0\nb,t,s,-1,0\na,s,t,1,0\nb,s,t,0,1\n"],
        "schedule": [b"round,agent\n1,0\n1,2\n2,1\n3,0\n3,1\n3,2\n4,0\n"],
        "job": [JOB.encode()],
        "json": [json.dumps({"a": [1, -2.5e3, None, True, "\u00e9\\"], "b": {}}).encode()],
    }


def field(name, kind, value):
    """A field of an Archive (affpcl/base/archive.cc)."""
    return struct.pack("<IIQ", len(name), kind, len(value)) + name.encode() + value


def message(kind, names=(), content=b""):
    """What sites and the centre of a federation send, without its checksum (affpcl/federation/message.cc)."""
    def flag(name, value=False):
        return field(name, 0, bytes([value]))

    def integer(name, value):
        return field(name, 1, struct.pack("<q", value))

    def text(name, value=b""):
        return field(name, 3, value)

    def texts(name, values=()):
        return field(name, 5, struct.pack("<q", len(values))) + b"".join(text("", v) for v in values)

    return (text("kind", b"affpcl federation message") + integer("version", 1) + integer("kind", kind) + text("job", b"job") +
            integer("attempt", 1) + integer("round", 2) + flag("secure", True) + flag("restart") + flag("leave") +
            field("progress", 2, struct.pack("<d", 0.5)) + text("purpose", b"rows") + integer("collective", 0) +
            text("bytes", content) + text("text") + texts("names", names) + texts("keys") + texts("totals", [content]) +
            texts("sealed", [b"shares"]))


def federation():
    messages = [message(0, [b"a", b"b"]), message(3, content=bytes(range(16))), message(6, content=bytes(32))]
    return {"message": messages,
            "journal": [b"".join(struct.pack("<H", len(m)) + m for m in messages[:2])]}


def from_program(program):
    """What the program writes, by target."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def run(*words):
            subprocess.run([program, *words, "--quiet"], cwd=folder, check=True, capture_output=True)

        (folder / "spec.toml").write_text(SPEC)
        (folder / "table.csv").write_text(TABLE)
        (folder / "counts.csv").write_text(COUNTS)
        run("run", "spec.toml", "--out", "study", "--checkpoint", "saved")
        run("fit", "table.csv", "--target", "y", "--agent", "agent", "--out", "numbers")
        run("fit", "table.csv", "--target", "kind", "--agent", "agent", "--features", "x,y", "--out", "classes")
        run("fit", "counts.csv", "--target", "n", "--agent", "agent", "--family", "poisson", "--out", "counts")
        models = [(folder / d / "model.json").read_bytes() for d in ("numbers", "classes", "counts")]
        run("affinity", "table.csv", "--target", "y", "--agent", "agent", "--out", "pilot")
        run("reproduce", "fig-specific", "--set", "run.steps=12", "--set", "run.replicates=2", "--out", "figure")
        (folder / "checkpoint.toml").write_text(CHECKPOINT)
        run("run", "checkpoint.toml", "--checkpoint", "kept", "--every", "2")

        def saves(name):  # without the checksum behind them
            return [p.read_bytes()[:-8] for p in sorted((folder / name).iterdir(), key=lambda p: p.stat().st_mtime)]

        saved = saves("saved")[-1]
        return {
            "spec": [SPEC.encode()],
            "system": [json.dumps(s).encode() for s in (SYSTEM, WHOLE_SYSTEM)],
            "model": models,
            "predict": models,
            "centre": [(folder / d / "centre.json").read_bytes() for d in ("numbers", "counts", "classes")],
            "folder": [b"\x1e".join((folder / d / n).read_bytes() if (folder / d / n).exists() else b""
                                   for n in ("summary.json", "curves.csv", "agents.csv", "model.json", "claims.json"))
                       for d in ("study", "figure", "numbers", "classes", "pilot")],
            "tasks": [saved[saved.index(b"\n") + 1:]],  # without the line before them
            "checkpoint": saves("kept"),
        }


def write(program, folder):
    for target, files in {**tables(), **federation(), **from_program(program)}.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for number, content in enumerate(files):
            (folder / target / f"seed-{number}").write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]))
