"""A method of one's own: every agent learns alone and then moves a share of the way towards the mean of all."""
import affpcl


@affpcl.method
class PullToMean(affpcl.Method):
    """each agent alone, then a share of the way towards the mean"""

    share: float = 0.1

    def declare(self, shape):
        return affpcl.Memory(agent={"x": shape.d}, centre={"mean": shape.d}, sum={"x": shape.d})

    def contribute(self, block):
        return {"x": block.agent["x"]}

    def centre(self, mean, centre):
        centre["mean"][:] = mean["x"]

    def update(self, block):
        x = block.agent["x"]
        for k in range(block.steps):
            x -= block.step_size(k) * block.residual(k, x)
        x += self.share * (block.centre["mean"] - x)
