"""The paper's synthetic system and its samples as affpcl makes them (problem/gaussian.cc), by the meaning of its streams."""
import numpy as np

FEATURES = 32
EPS_A, EPS_B = 1.0, 0.5
SAMPLE, SYSTEM_A, SYSTEM_PHI, THETA, ENVIRONMENT, OBJECTIVE = range(6)


def uniforms(seed, replicate, agent, step, purpose, count):
    """[agents][count] numbers: Philox4x32-10, 52 bits each."""
    blocks = np.arange((count + 1) // 2, dtype=np.uint64)
    low = np.uint64(0xFFFFFFFF)
    agent, block = np.broadcast_arrays(np.atleast_1d(np.asarray(agent, np.uint64))[:, None], blocks)
    c = [agent & low, np.full_like(agent, step), np.full_like(agent, replicate),
         np.uint64(purpose << 24) | block]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & low, (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    to_unit = lambda hi, lo: ((((hi << np.uint64(32)) | lo) >> np.uint64(12)).astype(float) + 0.5) * 2.0 ** -52
    pairs = np.stack([to_unit(c[1], c[0]), to_unit(c[3], c[2])], axis=-1)
    return pairs.reshape(len(agent), -1)[:, :count]


def normals(seed, replicate, agent, step, purpose, count):
    u = uniforms(seed, replicate, agent, step, purpose, count + count % 2)
    r, angle = np.sqrt(-2 * np.log(u[:, 0::2])), 2 * np.pi * u[:, 1::2]
    return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1).reshape(len(u), -1)[:, :count]


class System:
    """The paper's synthetic system as affpcl generates it (problem/gaussian.cc)."""

    def __init__(self, n, d, seed=1, delta=0.3):
        agents = np.arange(n)
        R = uniforms(seed, 0, np.arange(d), 0, SYSTEM_A, d)
        G = normals(seed, 0, np.arange(d), 0, SYSTEM_PHI, d)
        self.n, self.d, self.seed = n, d, seed
        self.A, self.Phi = R.T @ R + d * np.eye(d), G.T @ G + d * np.eye(d)
        unit = lambda v: v / np.linalg.norm(v, axis=1, keepdims=True)
        self.m = 4 * delta * unit(normals(seed, 0, agents, 0, ENVIRONMENT, d))
        theta = unit(normals(seed, 0, [0], 0, THETA, d)) + delta * unit(normals(seed, 0, agents, 0, OBJECTIVE, d))
        self.m[0] = 0
        theta[0] -= delta * unit(normals(seed, 0, [0], 0, OBJECTIVE, d))[0]
        self.Phi_theta = theta @ self.Phi

    def sample(self, step):
        return self.m + normals(self.seed, 0, np.arange(self.n), step, SAMPLE, self.d)
