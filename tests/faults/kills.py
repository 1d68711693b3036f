#!/usr/bin/env python3
"""Kills run (with checkpoints), fit and predict at random times by SIGKILL, and sees that nothing is lost or different.

usage: kills.py PROGRAM COUNT [SEED]    exit 1 where a kill lost or changed anything

What was under a name is whole before and after a kill: the old result or the new one, which are equal here but for the
manifest. A study goes on from its checkpoints, kill after kill, to the bits of a run without kills. What killed processes
leave beside their results is gone once the same command ends.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import time

STUDY = """[problem]
kind = "gaussian"
agents = 300
[run]
steps = 400
replicates = 4
curve_agents = [0]
[[method]]
kind = "affpcl"
guard = "full"
[[method]]
kind = "independent"
[[method]]
kind = "scaffold"
"""


def table(rows=6000, agents=40):
    rng = random.Random(2)
    lines = ["agent,a,b,c,y"]
    for r in range(rows):
        x = [rng.gauss(0, 1) for _ in range(3)]
        lines.append(f"g{r % agents}," + ",".join(f"{v:.4f}" for v in x) + f",{sum(x) * (1 + r % agents / 40) + rng.gauss(0, 1):.4f}")
    return "\n".join(lines) + "\n"


def result_of(path):
    """A file or folder as text; of summary.json without the times and the command."""
    if path.is_file():
        return path.read_text()
    files = {}
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        text = file.read_text()
        if file.name == "summary.json":
            summary = json.loads(text)
            summary.pop("manifest")
            for setting in summary.get("settings", []):
                for method in setting["methods"]:
                    method.pop("seconds")
            text = json.dumps(summary)
        files[file.name] = text
    return files


class Job:
    """A command whose result appears under one name in the folder."""

    def __init__(self, program, folder, name, words, saved=None):
        self.words, self.folder, self.path, self.saved = [program, *words], folder, folder / name, saved
        self.kills = self.ends = 0
        start = time.monotonic()
        subprocess.run(self.words, cwd=folder, check=True, capture_output=True)
        self.seconds = time.monotonic() - start
        self.wanted = result_of(self.path)
        self.forget()

    def forget(self):
        if self.saved:
            shutil.rmtree(self.folder / self.saved, ignore_errors=True)

    def numbers(self):
        return [int(p.stem.split("-")[1]) for p in (self.folder / self.saved).glob("checkpoint-*.affpcl")] if self.saved else []

    def kill(self, after):
        """What is wrong after a kill; None where nothing is."""
        before = max(self.numbers(), default=0)
        process = subprocess.Popen(self.words, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate(timeout=after)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            self.kills += 1
            if not self.path.exists():
                return "the result is gone"
            if max(self.numbers(), default=0) < before:
                return "a checkpoint is lost"
            return None if result_of(self.path) == self.wanted else "the result is different"
        self.ends += 1
        if process.returncode != 0:
            return f"exit code {process.returncode}: {errors}"
        if result_of(self.path) != self.wanted:
            return "the result is different"
        left = [p.name for p in self.folder.iterdir() if ".part" in p.name and p.name.startswith(self.path.name + ".")]
        self.forget()
        return f"left behind: {left}" if left else None


def main(program, count, seed):
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "study.toml").write_text(STUDY)
        (folder / "table.csv").write_text(table())
        out = ["--force", "--quiet"]
        study = ["run", "study.toml", "--threads", "1", *out, "--out"]
        jobs = {
            "run": Job(program, folder, "result", [*study, "result", "--checkpoint", "saved", "--every", "40", "--resume"], "saved"),
            "fit": Job(program, folder, "model", ["fit", "table.csv", "--target", "y", "--threads", "1", *out, "--out", "model"]),
            "predict": Job(program, folder, "rows.csv", ["predict", "model", "table.csv", *out, "--out", "rows.csv"]),
        }
        # The checkpointed run is the whole study each time: the reference is one without checkpoints.
        subprocess.run([program, *study, "reference"], cwd=folder, check=True, capture_output=True)
        if result_of(folder / "reference") != jobs["run"].wanted:
            print("run: checkpoints change the result")
            return 1
        wrong = 0
        while sum(job.kills for job in jobs.values()) < count:
            for what, job in jobs.items():
                why = job.kill(rng.uniform(0.001, 1.1 * job.seconds))
                if why:
                    wrong += 1
                    print(f"{what}, kill {job.kills}: {why}", flush=True)
        for what, job in jobs.items():  # the last ones end, and nothing is left behind
            if why := job.kill(100):
                wrong += 1
                print(f"{what}, at the end: {why}")
        left = [p.name for p in folder.iterdir() if ".part" in p.name]
        print("; ".join(f"{what}: {job.kills} kills, {job.ends} ends" for what, job in jobs.items()) +
              f"; lost or different: {wrong}" + (f"; left behind: {left}" if left else ""))
        return 1 if wrong or left else 0


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    sys.exit(main(str(pathlib.Path(sys.argv[1]).resolve()), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) == 4 else 1))
