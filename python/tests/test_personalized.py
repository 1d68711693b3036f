"""Personalized(base): group effects on top of any scikit-learn model."""
import numpy as np
import pandas
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import estimator_checks_generator

from affpcl import Personalized, PersonalizedRegressor

TREE = DecisionTreeRegressor(min_samples_leaf=25, random_state=0)
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": "the folds of the base are dealt by row: copies of a row fall into several"}


@pytest.mark.parametrize("estimator, check", [
    pytest.param(e, c, id=f"{type(e.base).__name__}-{getattr(c, 'func', c).__name__}")
    for one in (Personalized(TREE), Personalized(DecisionTreeClassifier(min_samples_leaf=5, random_state=0)))
    for e, c in estimator_checks_generator(one, expected_failed_checks=WEIGHTS, mark="skip")])
def test_scikit_learn(estimator, check):
    check(estimator)


class World:
    """Rows whose common part is a wave that no line fits, and whose groups have slopes of their own."""

    def __init__(self, seed=1, agents=30, rows=40, spread=1.0):
        rng = np.random.default_rng(seed)
        self.groups = np.tile(np.arange(agents), rows)
        self.X = rng.uniform(-3, 3, size=(agents * rows, 2))
        self.eta = 2 * np.sin(2 * self.X[:, 0]) + spread * rng.normal(size=agents)[self.groups] * self.X[:, 1]
        self.y = self.eta + rng.normal(size=len(self.eta))
        self.bit = np.where(rng.random(len(self.eta)) < 1 / (1 + np.exp(-self.eta)), "yes", "no")
        self.learn = np.arange(len(self.eta)) < 0.7 * len(self.eta)

    def halves(self, y):
        for rows in (self.learn, ~self.learn):
            yield self.X[rows], y[rows], self.groups[rows]


def test_numbers_better_than_base_and_linear_models():
    world = World()
    (X, y, g), (X_new, y_new, g_new) = world.halves(world.y)
    both = Personalized(TREE).fit(X, y, groups=g)
    base = clone(TREE).fit(X, y)
    linear = PersonalizedRegressor(score_gains=False).fit(X, y, groups=g)
    errors = [np.mean((y_new - p) ** 2) for p in (both.predict(X_new, g_new), base.predict(X_new), linear.predict(X_new, g_new))]
    assert errors[0] < 0.6 * min(errors[1:]) and errors[0] < 1.7  # the noise is 1
    lo, hi = both.predict_interval(X_new, g_new)[:, 1:].T
    assert 0.84 < np.mean((lo < y_new) & (y_new < hi)) < 0.97  # the mean of five trees has less noise than the one that was judged
    assert np.isfinite(both.predict(X_new, np.full(len(X_new), "new"))).all()


def test_gains_are_of_rows_that_neither_base_nor_effects_saw():
    """The losses are those of a split that is held out, and the base's own is beside them."""
    world = World(rows=60)
    (X, y, g), (X_new, y_new, g_new) = world.halves(world.y)
    both = Personalized(TREE).fit(X, y, groups=g)
    gains = both.gains_
    assert gains["agent"].tolist() == [str(k) for k in range(30)]
    held_out = np.mean((y_new - both.predict(X_new, g_new)) ** 2)
    assert 0.8 < np.average(gains["loss_given"], weights=gains["rows"]) / held_out < 1.3
    base = np.mean((y_new - clone(TREE).fit(X, y).predict(X_new)) ** 2)
    assert 0.8 < np.average(gains["loss_base"], weights=gains["rows"]) / base < 1.3
    assert gains["loss_base"].mean() > 1.5 * gains["loss_given"].mean()


def test_a_base_that_remembers_its_rows_is_no_leak():
    """One neighbour predicts its own rows without error; no gain is seen where there is nothing to learn."""
    rng = np.random.default_rng(3)
    X, y, g = rng.normal(size=(600, 2)), rng.normal(size=600), np.arange(600) % 20
    both = Personalized(KNeighborsRegressor(1)).fit(X, y, groups=g)
    gains = both.gains_
    assert 1.7 < np.average(gains["loss_base"], weights=gains["rows"]) < 2.3  # two draws of variance 1
    assert np.average(gains["loss_given"], weights=gains["rows"]) > 0.95


@pytest.mark.parametrize("classes", [2, 3])
def test_classes(classes):
    world = World(agents=20, rows=30)
    label = world.bit if classes == 2 else np.where(world.eta < -1.5, "low", world.bit)
    (X, y, g), (X_new, y_new, g_new) = world.halves(label)
    base = DecisionTreeClassifier(min_samples_leaf=20, random_state=0)
    both = Personalized(base, columns=[1]).fit(X, y, groups=g)
    p = both.predict_proba(X_new, g_new)
    assert p.shape == (len(X_new), classes) and np.allclose(p.sum(axis=1), 1)

    def log_loss(p, of):
        return -np.log(np.clip(p[np.arange(len(y_new)), np.searchsorted(of.classes_, y_new)], 1e-6, 1)).mean()

    alone = clone(base).fit(X, y)
    assert log_loss(p, both) < 0.8 * log_loss(alone.predict_proba(X_new), alone)
    assert (both.predict(X_new, g_new) == both.classes_[p.argmax(axis=1)]).all()
    assert is_classifier(both) and not hasattr(both, "predict_interval")
    assert both.effects_.model_.family == ("binomial" if classes == 2 else "multinomial")
    assert both.gains_["loss_base"].mean() > both.gains_["loss_given"].mean()


def test_counts():
    rng = np.random.default_rng(5)
    g = np.arange(900) % 30
    X = rng.normal(size=(900, 1))
    mean = np.exp(0.5 * X[:, 0] + 0.8 * rng.normal(size=30)[g])
    y = rng.poisson(mean)
    both = Personalized(PoissonRegressor(), family="poisson", scale_base=False, score_gains=False).fit(X[:600], y[:600], groups=g[:600])
    found = both.predict(X[600:], g[600:])
    assert (found > 0).all()
    assert np.mean((found - mean[600:]) ** 2) < 0.3 * np.mean((PoissonRegressor().fit(X, y).predict(X[600:]) - mean[600:]) ** 2)


def test_a_linear_base_changes_little():
    """Where the common part is linear, the base has nothing to add to the mixed model's own centre."""
    rng = np.random.default_rng(6)
    g = np.arange(600) % 20
    X = rng.normal(size=(600, 2))
    y = X @ [1, -1] + rng.normal(size=20)[g] * X[:, 0] + rng.normal(size=600)
    both = Personalized(LinearRegression(), score_gains=False).fit(X, y, groups=g)
    linear = PersonalizedRegressor(score_gains=False).fit(X, y, groups=g)
    assert np.abs(both.predict(X, g) - linear.predict(X, g)).max() < 0.25
    assert is_regressor(both) and not hasattr(both, "predict_proba")


def test_frames_and_group_column():
    world = World()
    frame = pandas.DataFrame(world.X, columns=["a", "b"]).assign(site=world.groups, kind=np.where(world.X[:, 0] > 0, "u", "v"))
    base = make_pipeline(StandardScaler(), DecisionTreeRegressor(min_samples_leaf=10, random_state=0))
    numbers = Personalized(base, group_column="site", columns=["b"], score_gains=False)
    assert (cross_val_score(numbers, frame[["a", "b", "site"]], world.y, cv=3) > 0.6).all()
    seen = clone(numbers).set_params(group_in_base=True).fit(frame[["a", "b", "site"]], world.y)
    assert seen.bases_[0].n_features_in_ == 3
    fitted = clone(numbers).set_params(columns=None, base=DummyRegressor()).fit(frame, world.y)
    assert fitted.effect_columns_ == ["a", "b"], "texts have no linear effects"


def test_bad_input():
    world = World(agents=4, rows=10)
    with pytest.raises(ValueError, match="sample_weight needs a base that takes it; KNeighborsRegressor does not"):
        Personalized(KNeighborsRegressor(1)).fit(world.X, world.y, groups=world.groups, sample_weight=np.ones(40))
    with pytest.raises(ValueError, match="fitted with groups"):
        Personalized(TREE).fit(world.X, world.y, groups=world.groups).predict(world.X)
    weighted = Personalized(LogisticRegression()).fit(world.X, world.bit, groups=world.groups, sample_weight=np.ones(40))
    assert weighted.classes_.tolist() == ["no", "yes"]
