"""The paper's comparison as a whole: affpcl's program and tuned NumPy."""
import json
import pathlib
import resource
import subprocess
import tempfile
import time

import numpy as np
from paper_system import EPS_A, EPS_B, System
from rounds_numpy import Tuned
from timing import NumpyDraw


def study_seconds(build, repeats):
    """The paper's comparison: 10 replicates x 60 steps of AffPCL, independent learning, FedAvg (n = 20, d = 5).

    Processor seconds; affpcl's are of the whole program, its start and its report among them. NumPy's are without Python's
    start, so the study alone is given too, by the clock on the wall (the only one it has).
    """
    spec = ('[problem]\nkind = "gaussian"\n[run]\nsteps = 60\nreplicates = 10\n'
            '[[method]]\nkind = "affpcl"\n[[method]]\nkind = "independent"\n[[method]]\nkind = "fedavg"\n')
    def numpy_study():
        for replicate in range(10):
            P = System(20, 5, seed=1 + replicate)
            step, draw = Tuned(P), NumpyDraw(P)
            x, xc, thetac, alone, fed = (np.zeros(shape) for shape in ((20, 5), 5, 5, (20, 5), 5))
            target = np.linalg.solve(P.A, P.Phi_theta.T).T
            for _ in range(60):
                s = draw.normal()
                x, xc, thetac = step(s, x, xc, thetac, 0.01)
                b = step.noisy(s, step.Phi_theta, EPS_B)
                alone = alone - 0.01 * (step.noisy(s, alone @ P.A.T, EPS_A) - b)
                fed = fed - 0.01 * (step.noisy(s, P.A @ fed, EPS_A) - b).mean(axis=0)
                for iterate in (x, alone, fed):
                    ((iterate - target) ** 2).sum(axis=1).mean()
    times = {"affpcl": [], "alone": [], "NumPy tuned": []}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "spec.toml")
        path.write_text(spec)
        for _ in range(repeats):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            summary = subprocess.run([build / "affpcl", "run", path, "--json", "--threads", "1"], check=True, capture_output=True).stdout
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            times["affpcl"].append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            times["alone"].append(json.loads(summary)["manifest"]["seconds"])
            start = time.thread_time()
            numpy_study()
            times["NumPy tuned"].append(time.thread_time() - start)
    return times
