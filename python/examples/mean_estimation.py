"""A problem of one's own: each agent wants the mean of its own normal distribution. A(s) = I, b(s) = s."""
import affpcl


@affpcl.problem
class MeanEstimation(affpcl.Problem):
    """each agent's own mean, from noisy samples"""

    agents: int = 10
    dim: int = 3
    spread: float = 1.0

    def setup(self, key):
        self.mean = self.spread * affpcl.normals(key, self.agents, self.dim, "environment")

    def draw(self, sample):
        return sample.normals(self.dim) + self.mean[:, sample.agents]

    def apply(self, agents, s, x):
        return x

    def objective(self, agents, s):
        return s

    def mean_apply(self, agents, x):
        return x

    def mean_objective(self, agents):
        return self.mean[:, agents]
