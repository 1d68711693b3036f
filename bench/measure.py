"""CPU-seconds and peak memory of commands: Measure()(program, words) runs one and waits.

A process starts with the peak memory of the one that starts it, and NumPy makes that large. So this file is also a small
program that starts the commands: a request in JSON a line, an answer a line.
"""
import json
import os
import subprocess
import sys


class Measure:
    def __init__(self):
        self.child = subprocess.Popen([sys.executable, "-S", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, program, words):
        self.child.stdin.write(json.dumps([str(program), *map(str, words)]) + "\n")
        self.child.stdin.flush()
        status, seconds, memory = json.loads(self.child.stdout.readline())
        if status:
            sys.exit(f"measure.py: {' '.join(map(str, [program, *words]))} failed")
        return seconds, memory


def serve():
    out = os.open(os.devnull, os.O_WRONLY)
    for line in sys.stdin:
        words = json.loads(line)
        child = os.posix_spawnp(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out, 1)])
        _, status, used = os.wait4(child, 0)
        print(json.dumps([status, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]), flush=True)


if __name__ == "__main__":
    serve()
