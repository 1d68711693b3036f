"""Rounds of AffPCL with exact ratios in JAX (jit, scan) and Numba, each in a process of its own, in build/bench-venv.

As a program: compiled.py jax|numba THREADS; every line of its input is a request in JSON, every line of output an answer.
"""
import json
import os
import pathlib
import subprocess
import sys
import time

PYTHON = pathlib.Path(__file__).resolve().parents[1] / "build" / "bench-venv" / "bin" / "python"
LIBRARIES = {"JAX": "jax", "JAX f32": "jax", "Numba": "numba"}
EPS_A, EPS_B, ALPHA = 1.0, 0.5, 1e-5


class Compiled:
    """The contestants that are installed; `missing` says which are not."""

    def __init__(self, threads):
        self.threads, self.children, self.names, self.missing = threads, {}, [], []
        for name, library in LIBRARIES.items():
            found = PYTHON.exists() and subprocess.run([PYTHON, "-c", f"import {library}"], capture_output=True).returncode == 0
            if found:
                self.names.append(name)
            else:
                self.missing.append(f"{name} is missing here (`tools/setup bench` installs it).")

    def ask(self, name, **request):
        if name not in self.children:
            flags = f"--xla_cpu_multi_thread_eigen={'false' if self.threads == 1 else 'true'}"
            environment = {**os.environ, "XLA_FLAGS": flags, "NUMBA_NUM_THREADS": str(self.threads), "JAX_PLATFORMS": "cpu",
                           "JAX_ENABLE_X64": "0" if name.endswith("f32") else "1"}
            self.children[name] = subprocess.Popen([PYTHON, __file__, LIBRARIES[name], str(self.threads)], env=environment,
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        child = self.children[name]
        child.stdin.write(json.dumps(request) + "\n")
        child.stdin.flush()
        return json.loads(child.stdout.readline())

    def seconds(self, name, n, d, seconds):
        return self.ask(name, n=n, d=d, seconds=seconds)

    def check(self, name):
        """The largest relative distance of five rounds from NumPy's on the same samples."""
        import numpy as np
        from paper_system import System
        from rounds_numpy import Tuned
        P = System(30, 4)
        step, x, xc, thetac = Tuned(P), np.zeros((30, 4)), np.zeros(4), np.zeros(4)
        for t in range(5):
            x, xc, thetac = step(P.sample(t), x, xc, thetac, 0.01)
        got = np.array(self.ask(name, n=30, d=4, check=[P.sample(t).tolist() for t in range(5)]))
        far = float(np.abs(got - x).max() / np.abs(x).max())
        if far > (1e-3 if name.endswith("f32") else 1e-9):
            sys.exit(f"compiled.py: {name}'s iterates differ from NumPy's by {far:.1e}")
        return far


def jax_rounds(P):
    import jax
    import jax.numpy as jnp
    A, Phi, m, Phi_theta = (jnp.asarray(v) for v in (P.A, P.Phi, P.m, P.Phi_theta))
    half = 0.5 * (m ** 2).sum(1)

    def step(state, s, alpha):
        x, xc, thetac = state
        noisy = lambda y, eps: y + eps * s * (s * y).sum(1, keepdims=True)
        b, Axc, bhat = noisy(Phi_theta, EPS_B), noisy(A @ xc, EPS_A), noisy(Phi @ thetac, EPS_B)
        gc = Axc - bhat
        w = jnp.exp(s @ m.T - half - ((s * m).sum(1) - half)[:, None])
        rg = w.T @ (gc / w.sum(1, keepdims=True))
        x = x - alpha * (noisy(x @ A.T, EPS_A) - b + rg - gc)
        return x, xc - alpha * (Axc - b).mean(0), thetac - alpha * (bhat - b).mean(0)

    @jax.jit
    def run(state, keys):
        def one(carry, key):
            return step(carry, m + jax.random.normal(key, m.shape, m.dtype), ALPHA), None
        return jax.lax.scan(one, state, keys)[0]

    @jax.jit
    def over(state, samples):
        return jax.lax.scan(lambda carry, s: (step(carry, s, 0.01), None), state, samples)[0]

    start = (jnp.zeros_like(m), jnp.zeros(P.d), jnp.zeros(P.d))

    def timed(count):
        keys = jax.random.split(jax.random.key(count), count)
        return lambda: jax.block_until_ready(run(start, keys))
    return timed, lambda samples: over(start, jnp.asarray(samples))[0].tolist()


def numba_rounds(P):
    import numba
    import numpy as np
    A, Phi, m, Phi_theta, n, d = P.A, P.Phi, P.m, P.Phi_theta, P.n, P.d
    half, parallel = 0.5 * (m ** 2).sum(1), int(sys.argv[2]) > 1

    @numba.njit(fastmath=True, parallel=parallel)
    def step(s, x, xc, thetac, alpha, gc, w, totals, rg):
        Axc, Phic = A @ xc, Phi @ thetac
        up_A, up_Phi = np.zeros((n, d)), np.zeros((n, d))
        for i in numba.prange(n):
            sb = sA = sPhi = own = 0.0
            for k in range(d):
                sb += s[i, k] * Phi_theta[i, k]
                sA += s[i, k] * Axc[k]
                sPhi += s[i, k] * Phic[k]
                own += s[i, k] * m[i, k]
            own -= half[i]
            total = 0.0
            for j in range(n):
                logit = -half[j] - own
                for k in range(d):
                    logit += s[i, k] * m[j, k]
                w[i, j] = np.exp(logit)
                total += w[i, j]
            for k in range(d):
                b = Phi_theta[i, k] + EPS_B * s[i, k] * sb
                a, p = Axc[k] + EPS_A * s[i, k] * sA, Phic[k] + EPS_B * s[i, k] * sPhi
                up_A[i, k], up_Phi[i, k], gc[i, k] = a - b, p - b, (a - p) / total
            totals[i] = total
        rg[:] = w.T @ gc
        xA = x @ A.T
        for i in numba.prange(n):
            sx = sb = 0.0
            for k in range(d):
                sx += s[i, k] * xA[i, k]
                sb += s[i, k] * Phi_theta[i, k]
            for k in range(d):
                g = xA[i, k] + EPS_A * s[i, k] * sx - Phi_theta[i, k] - EPS_B * s[i, k] * sb
                x[i, k] -= alpha * (g + rg[i, k] - gc[i, k] * totals[i])
        xc -= alpha * up_A.sum(0) / n
        thetac -= alpha * up_Phi.sum(0) / n

    @numba.njit(fastmath=True)
    def run(count, x, xc, thetac, gc, w, totals, rg):
        for _ in range(count):
            step(m + np.random.standard_normal((n, d)), x, xc, thetac, ALPHA, gc, w, totals, rg)

    memory = lambda: (np.zeros((n, d)), np.zeros(d), np.zeros(d))
    space = np.zeros((n, d)), np.zeros((n, n)), np.zeros(n), np.zeros((n, d))

    def check(samples):
        x, xc, thetac = memory()
        for s in np.array(samples):
            step(s, x, xc, thetac, 0.01, *space)
        return x.tolist()
    return lambda count: lambda: run(count, *memory(), *space), check


def serve(make, threads):
    from paper_system import System
    if threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    now, ready = time.process_time if threads == 1 else time.perf_counter, {}
    for line in sys.stdin:
        q = json.loads(line)
        size = q["n"], q["d"]
        if size not in ready:
            timed, check = make(System(*size))
            ready = {size: [timed, check, None, 0]}
        case = ready[size]
        if "check" in q:
            print(json.dumps(case[1](q["check"])), flush=True)
            continue
        if case[2] is None:  # compiled, and so many rounds as take a twentieth of a second
            case[3] = 2
            while True:
                case[2] = case[0](case[3])
                case[2]()
                start = now()
                case[2]()
                if now() - start > 0.05 or case[3] > 100_000:
                    break
                case[3] *= 4
        times, begin = [], time.perf_counter()
        while time.perf_counter() - begin < q["seconds"] or len(times) < 3:
            start = now()
            case[2]()
            times.append((now() - start) / case[3])
        print(json.dumps(sorted(times)[len(times) // 2]), flush=True)


if __name__ == "__main__":
    serve({"jax": jax_rounds, "numba": numba_rounds}[sys.argv[1]], int(sys.argv[2]))
