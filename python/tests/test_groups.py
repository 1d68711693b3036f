"""scikit-learn's tools judge the personalised model: by a column of groups, or by metadata routing."""
import numpy as np
import pandas
import polars
import pytest
import sklearn
from sklearn.compose import make_column_transformer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from affpcl import PersonalizedClassifier, PersonalizedRegressor

RNG = np.random.default_rng(2)
SHOPS = np.array([f"shop{i}" for i in range(10)])[np.arange(400) % 10]
SLOPES = RNG.normal(size=(10, 2))[np.arange(400) % 10] * 3
FRAME = pandas.DataFrame(RNG.normal(size=(400, 2)), columns=["price", "size"])
Y = (SLOPES * FRAME.to_numpy()).sum(axis=1) + RNG.normal(size=400)
FRAME["shop"] = SHOPS
MODEL = PersonalizedRegressor(group_column="shop", score_gains=False)
PERSONALISED = 1.5  # mean squared error; the central model has 17


def central_error():
    fitted = PersonalizedRegressor(score_gains=False, without_groups="centre").fit(FRAME[["price", "size"]], Y, groups=SHOPS)
    return np.mean((Y - fitted.predict(FRAME[["price", "size"]])) ** 2)


def test_every_tool_scores_the_personalised_model():
    assert central_error() > 10
    scores = cross_val_score(MODEL, FRAME, Y, scoring="neg_mean_squared_error", cv=4)
    assert (-scores < PERSONALISED).all()
    assert (cross_validate(MODEL, FRAME, Y, scoring="r2", cv=4)["test_score"] > 0.85).all()
    assert np.mean((Y - cross_val_predict(MODEL, FRAME, Y, cv=4)) ** 2) < PERSONALISED
    search = GridSearchCV(MODEL, {"seed": [1, 2]}, scoring="neg_mean_squared_error", cv=4).fit(FRAME, Y)
    assert -search.best_score_ < PERSONALISED
    fitted = MODEL.fit(FRAME, Y)
    importance = permutation_importance(fitted, FRAME, Y, scoring="r2", n_repeats=2, random_state=1)
    assert importance.importances_mean[2] > 0.5, "the column of groups matters, so the tool used it"


def test_pipelines():
    scaled = make_column_transformer((StandardScaler(), ["price", "size"]), remainder="passthrough",
                                     verbose_feature_names_out=False).set_output(transform="pandas")
    pipeline = make_pipeline(scaled, MODEL)
    assert (-cross_val_score(pipeline, FRAME, Y, scoring="neg_mean_squared_error", cv=4) < PERSONALISED).all()
    pipeline.fit(FRAME, Y)
    assert np.mean((Y - pipeline.predict(FRAME)) ** 2) < PERSONALISED
    labels = np.where(Y > 0, "up", "down")
    classes = make_pipeline(scaled, PersonalizedClassifier(group_column="shop", score_gains=False))
    assert (cross_val_score(classes, FRAME, labels, scoring="neg_log_loss", cv=4) > -0.35).all()


def test_a_column_is_the_same_as_groups_beside():
    beside = PersonalizedRegressor(score_gains=False).fit(FRAME[["price", "size"]], Y, groups=SHOPS)
    want = beside.predict(FRAME[["price", "size"]], SHOPS)
    assert np.array_equal(MODEL.fit(FRAME, Y).predict(FRAME), want)
    in_polars = polars.DataFrame(FRAME.to_dict("list"))
    assert np.array_equal(MODEL.fit(in_polars, Y).predict(in_polars), want)
    numbers = FRAME.assign(shop=np.arange(400) % 10).to_numpy(dtype=float)
    by_place = PersonalizedRegressor(group_column=2, score_gains=False).fit(numbers, Y)
    assert by_place.groups_.tolist() == list(range(10))
    assert np.allclose(by_place.predict(numbers), want, rtol=1e-9, atol=1e-9)


def test_predict_without_groups_is_refused_unless_wanted():
    X = FRAME[["price", "size"]]
    fitted = PersonalizedRegressor(score_gains=False).fit(X, Y, groups=SHOPS)
    with pytest.raises(ValueError, match="pass groups=.*metadata routing.*group_column="):
        fitted.predict(X)
    with pytest.raises(ValueError, match="fitted with groups"):
        fitted.score(X, Y)
    fitted.set_params(without_groups="warn")
    with pytest.warns(UserWarning, match="fitted with groups"):
        centre = fitted.predict(X)
    fitted.set_params(without_groups="centre")
    assert np.array_equal(fitted.predict(X), centre)
    assert np.allclose(centre, X.to_numpy() @ fitted.central_coef_ + fitted.central_intercept_)
    pooled = PersonalizedRegressor(score_gains=False).fit(X, Y)
    assert pooled.predict(X).shape == (400,), "a fit without groups predicts without them"
    with pytest.raises(ValueError, match="without_groups='silent' is not one of raise, warn, centre"):
        PersonalizedRegressor(without_groups="silent").fit(X, Y)


def test_routing_scores_the_personalised_model():
    X = FRAME[["price", "size"]]
    with sklearn.config_context(enable_metadata_routing=True):
        scores = cross_validate(PersonalizedRegressor(score_gains=False), X, Y, params={"groups": SHOPS}, cv=4)
        assert (scores["test_score"] > 0.85).all()
        with pytest.raises(ValueError, match="fitted with groups"):  # a scorer by name does not pass groups on
            cross_validate(PersonalizedRegressor(score_gains=False), X, Y, params={"groups": SHOPS}, cv=4,
                           scoring="r2", error_score="raise")


@pytest.mark.parametrize("X, column, says", [
    (FRAME, "shops", "X has no column 'shops', which group_column names; it has price, size, shop"),
    (FRAME[["price", "size"]].to_numpy(), "shop", "give the column's number"),
    (FRAME[["price", "size"]].to_numpy(), 5, r"has no column 5"),
])
def test_bad_columns(X, column, says):
    with pytest.raises(ValueError, match=says):
        PersonalizedRegressor(group_column=column).fit(X, Y)


def test_groups_said_twice():
    with pytest.raises(ValueError, match="groups= says them twice"):
        MODEL.fit(FRAME, Y, groups=SHOPS)
