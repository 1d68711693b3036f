"""A tour of the package, to be read from top to bottom. It runs in a few seconds: python python/examples/tour.py"""
import numpy as np
import sklearn
from sklearn.model_selection import GroupKFold, cross_validate

import affpcl
from affpcl import PersonalizedRegressor, plot

# ---- one model per shop ----
# 12 shops whose sales react to price and weather in much the same way, but not quite; a few rows of each.
rng = np.random.default_rng(1)
shops = np.repeat([f"shop {c}" for c in "ABCDEFGHIJKL"], 24)
X = rng.normal(size=(len(shops), 3))
reaction = np.repeat(rng.normal([-2.0, 1.0, 0.0], 0.4, size=(12, 3)), 24, axis=0)
sales = 10 + (reaction * X).sum(axis=1) + 2 * rng.normal(size=len(shops))

model = PersonalizedRegressor().fit(X, sales, groups=shops)
print("shop A reacts", model.coef_[0].round(2), "give or take", model.coef_se_[0].round(2))
print("all shops together", model.central_coef_.round(2))

# What did learning together gain each shop, on rows that were left out?
gains = model.gains_
for verdict in ("gained", "even", "lost"):
    print(f"{(gains['verdict'] == verdict).sum():3d} {verdict} against learning alone")
plot.save(plot.gains(gains), "gains.pdf")

# A shop that was never seen is predicted by the centre, with a wider interval.
for name in ("shop A", "a new shop"):
    y, low, high = model.predict_interval([[1.0, 0.0, 0.0]], groups=[name])[0]
    print(f"{name}: {y:.1f}, between {low:.1f} and {high:.1f}")

# scikit-learn's tools pass the groups on. Here whole shops are left out: the centre has to do.
with sklearn.config_context(enable_metadata_routing=True):
    scores = cross_validate(PersonalizedRegressor(), X, sales, params={"groups": shops}, cv=GroupKFold(4))
print("R^2 of shops left out:", scores["test_score"].mean().round(2))

# `affpcl predict` and `affpcl inspect` read the model.
model.save("model.json")
assert np.array_equal(PersonalizedRegressor.load("model.json").coef_, model.coef_)

# ---- a study: methods against each other ----
result = affpcl.run({
    "problem": {"kind": "gaussian", "agents": 20},
    "run": {"steps": 60, "replicates": 10},
    "method": [{"kind": "affpcl"}, {"kind": "independent"}, {"kind": "fedavg"}],
    "sweep": {"problem.delta_env+problem.delta_obj": [0.0, 0.3]},
})
for method, error, ratio in zip(*(result.summary[c] for c in ("method", "mse_mean", "vs_independent_mean"))):
    print(f"{method:12} {error:.4f}  {ratio:.2f} of learning alone")
plot.save(plot.figure(result), "study.svg")


# ---- a method of one's own, in the same loop ----
@affpcl.method
class Halfway(affpcl.Method):
    """each agent's step, then halfway to the mean"""

    def declare(self, shape):
        return affpcl.Memory(agent={"x": shape.d}, sum={"x": shape.d})

    def contribute(self, block):
        return {"x": block.agent["x"]}

    def update(self, block):
        x = block.agent["x"]
        x += 0.5 * (block.mean["x"] - x)
        block.local_steps("x")


result = affpcl.run({
    "problem": {"kind": "gaussian", "agents": 20, "delta_env": 0.1, "delta_obj": 0.1},
    "run": {"steps": 60, "replicates": 5},
    "method": [{"kind": "halfway"}, {"kind": "affpcl"}, {"kind": "independent"}],
})
print(result.summary.to_pandas()[["method", "mse_mean", "vs_independent_mean"]])
