"""The estimators keep scikit-learn's habits, and say what they learnt."""
import copy
import pickle

import numpy as np
import pandas
import polars
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

import affpcl
from affpcl import PersonalizedClassifier, PersonalizedRegressor

ESTIMATORS = [PersonalizedRegressor(), PersonalizedClassifier(), PersonalizedRegressor(solver="stream"),
              PersonalizedClassifier(solver="stream")]


WEIGHTS = "check_sample_weight_equivalence_on_dense_data"  # 15 rows, 30 columns; test_weights.py has the property
EXCUSED = {
    "exact": {WEIGHTS: "interpolation: the noise is at its floor of 1e-10, where rounding moves predictions by 1e-2"},
    "stream": {WEIGHTS: "a stream learns in the order of the rows, which the check changes"},
}


@pytest.mark.parametrize("estimator, check", [
    pytest.param(e, c, id=f"{type(e).__name__}-{e.solver}-{getattr(c, 'func', c).__name__}")
    for one in ESTIMATORS
    for e, c in estimator_checks_generator(one, expected_failed_checks=EXCUSED[one.solver], mark="skip")])
def test_scikit_learn(estimator, check):
    """All of scikit-learn's own checks but the one in EXCUSED."""
    check(estimator)


@pytest.fixture(scope="module")
def fitted(rows):
    return PersonalizedRegressor().fit(rows.X, rows.y, groups=rows.groups)


def test_attributes(rows, fitted):
    n, d = 12, 4
    assert fitted.groups_.tolist() == sorted(set(rows.groups))
    assert fitted.coef_.shape == fitted.coef_se_.shape == (n, d)
    assert fitted.intercept_.shape == fitted.affinity_.shape == (n,)
    assert fitted.central_coef_.shape == fitted.central_coef_se_.shape == (d,)
    assert (fitted.coef_[:, 3] == 0).all(), "a column that does not vary has no slope"
    assert (fitted.coef_se_[:, :3] > 0).all()
    assert ((fitted.affinity_ >= 0) & (fitted.affinity_ <= 1)).all()
    assert np.allclose(fitted.central_coef_[:2], [2, -1], atol=0.4)
    at = np.searchsorted(fitted.groups_, rows.groups)
    by_hand = (fitted.coef_[at] * rows.X).sum(axis=1) + fitted.intercept_[at]
    assert np.allclose(fitted.predict(rows.X, rows.groups), by_hand, rtol=1e-10)


def test_affinity_is_least_of_the_stranger(rows):
    y = rows.y.copy()
    stranger = rows.groups == "site3"
    y[stranger] = 8 * rows.X[stranger, 0]
    fitted = PersonalizedRegressor().fit(rows.X, y, groups=rows.groups)
    assert fitted.groups_[fitted.affinity_.argmin()] == "site3"


def test_gains(rows, fitted):
    gains = fitted.gains_
    assert gains["agent"].tolist() == fitted.groups_.tolist()
    assert gains["gain"].mean() > 0, "agents that are alike gain by learning together"
    assert set(gains["verdict"].tolist()) <= {"gained", "even", "lost"}
    frame = gains.to_pandas()
    assert list(frame.columns) == list(gains) and len(frame) == 12
    assert gains.to_polars().shape == frame.shape
    unscored = PersonalizedRegressor(score_gains=False).fit(rows.X, rows.y, groups=rows.groups)
    assert "gain" not in unscored.gains_
    assert np.array_equal(unscored.coef_, fitted.coef_)


def test_unseen_groups_get_the_centre(rows, fitted):
    centre = rows.X @ fitted.central_coef_ + fitted.central_intercept_
    assert np.allclose(fitted.predict(rows.X, np.full(len(rows.X), "nowhere")), centre, rtol=1e-10)
    wide, narrow = (fitted.predict_interval(rows.X, g) for g in (np.full(len(rows.X), "nowhere"), rows.groups))
    assert (wide[:, 2] - wide[:, 1]).mean() > (narrow[:, 2] - narrow[:, 1]).mean()


def test_kinds_of_input(rows, fitted):
    want = fitted.predict(rows.X, rows.groups)
    frame = pandas.DataFrame(rows.X, columns=rows.columns)
    for X in (frame, polars.DataFrame(frame.to_dict("list")), np.asfortranarray(rows.X)):
        for groups in (rows.groups, list(rows.groups), pandas.Series(rows.groups), pandas.Categorical(rows.groups),
                       polars.Series(rows.groups)):
            model = PersonalizedRegressor().fit(X, rows.y, groups=groups)
            assert np.array_equal(model.predict(X, groups), want)
            if X is frame:
                assert model.feature_names_in_.tolist() == rows.columns
    every_other = np.repeat(rows.X, 2, axis=1)[:, ::2]  # not contiguous
    every_other.setflags(write=False)
    assert np.array_equal(PersonalizedRegressor().fit(every_other, rows.y, groups=rows.groups).coef_, fitted.coef_)


def test_float32(rows):
    X = rows.X.astype(np.float32)
    narrow = PersonalizedRegressor().fit(X, rows.y, groups=rows.groups)
    wide = PersonalizedRegressor().fit(X.astype(np.float64), rows.y, groups=rows.groups)
    assert np.array_equal(narrow.coef_, wide.coef_)
    assert np.array_equal(narrow.predict(X, rows.groups), wide.predict(X.astype(np.float64), rows.groups))


def test_groups_of_numbers(rows, fitted):
    numbers = np.array([int(g[4:]) for g in rows.groups])
    by_number = PersonalizedRegressor().fit(rows.X, rows.y, groups=numbers)
    assert by_number.groups_.tolist() == list(range(12))
    assert by_number.predict(rows.X, numbers).shape == (360,)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("solver", ["exact", "stream"])
def test_copies(rows, copied, solver):
    fitted = PersonalizedRegressor(solver=solver).fit(rows.X, rows.y, groups=rows.groups)
    again = copied(fitted)
    assert np.array_equal(again.predict_interval(rows.X, rows.groups), fitted.predict_interval(rows.X, rows.groups),
                          equal_nan=True)
    assert again.model_.json() == fitted.model_.json()
    assert again.gains_["gain"].tolist() == fitted.gains_["gain"].tolist()


def test_partial_fit_is_fit_of_all_rows_so_far(rows):
    order = np.random.default_rng(1).permutation(len(rows.X))
    X, y, groups = rows.X[order], rows.y[order], rows.groups[order]
    whole = PersonalizedRegressor(solver="stream").fit(X, y, groups=groups)
    parts = PersonalizedRegressor()
    for at in range(0, 360, 90):
        parts.partial_fit(X[at:at + 90], y[at:at + 90], groups=groups[at:at + 90])
    assert np.array_equal(parts.coef_, whole.coef_)
    with pytest.raises(ValueError, match="every partial_fit"):
        parts.partial_fit(X, y)


def test_the_stream_takes_any_method(rows):
    found = {m: PersonalizedRegressor(solver="stream", method=m).fit(rows.X, rows.y, groups=rows.groups).coef_
             for m in ("residual", "ditto")}
    assert not np.array_equal(found["residual"], found["ditto"])
    weak, strong = (PersonalizedRegressor(solver="stream", method="ditto", method_values={"lambda": v})
                    .fit(rows.X, rows.y, groups=rows.groups) for v in (0.1, 10.0))
    assert not np.array_equal(weak.coef_, strong.coef_)


def test_threads_change_nothing(rows, fitted):
    for threads in (1, 2):
        again = PersonalizedRegressor(threads=threads).fit(rows.X, rows.y, groups=rows.groups)
        assert np.array_equal(again.coef_, fitted.coef_)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_missing(rows, tmp_path):
    X = rows.X.copy()
    X[::7, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        PersonalizedRegressor().fit(X, rows.y, groups=rows.groups)
    filled = PersonalizedRegressor(missing="mean").fit(X, rows.y, groups=rows.groups)
    assert np.isfinite(filled.predict(X, rows.groups)).all()
    filled.save(tmp_path / "model.json")
    loaded = PersonalizedRegressor.load(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(X[:, :3], rows.groups), filled.predict(X, rows.groups))
    dropped = PersonalizedRegressor(missing="drop").fit(X, rows.y, groups=rows.groups)
    whole = ~np.isnan(X[:, 0])
    clean = PersonalizedRegressor().fit(X[whole], rows.y[whole], groups=rows.groups[whole])
    assert np.array_equal(dropped.coef_, clean.coef_)
    assert np.isnan(dropped.predict(X, rows.groups)).tolist() == np.isnan(X[:, 0]).tolist()


def test_inside_scikit_learn(rows):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(StandardScaler(), PersonalizedRegressor())
        search = GridSearchCV(pipeline, {"personalizedregressor__solver": ["exact", "stream"]}, cv=3)
        search.fit(rows.X, rows.y, groups=rows.groups)
        assert search.best_params_ == {"personalizedregressor__solver": "exact"}
        assert search.best_estimator_.predict(rows.X, groups=rows.groups).shape == (360,)
        scores = cross_validate(pipeline, rows.X, rows.y, params={"groups": rows.groups}, cv=GroupKFold(4))
        assert (scores["test_score"] > 0.5).all(), "groups left out are predicted by the centre"
        labels = np.where(rows.y > 0, "up", "down")
        search = GridSearchCV(PersonalizedClassifier(), {"seed": [1, 2]}, cv=3)
        assert search.fit(rows.X, labels, groups=rows.groups).best_score_ > 0.75
    assert clone(PersonalizedRegressor(solver="stream")).get_params()["solver"] == "stream"


def test_classifier(rows):
    labels = np.where(rows.y > 1, "high", np.where(rows.y < -1, "low", "middle"))
    fitted = PersonalizedClassifier().fit(rows.X, labels, groups=rows.groups)
    assert fitted.classes_.tolist() == ["high", "low", "middle"]
    assert fitted.coef_.shape == (12, 3, 4)
    p = fitted.predict_proba(rows.X, rows.groups)
    assert np.allclose(p.sum(axis=1), 1) and (p > 0).all()
    assert fitted.score(rows.X, labels, rows.groups) > 0.6
    two = PersonalizedClassifier().fit(rows.X, rows.y > 0, groups=rows.groups)
    assert two.classes_.tolist() == [False, True] and two.coef_.shape == (12, 4)
    numbers = PersonalizedClassifier().fit(rows.X, np.where(rows.y > 0, 10, 9), groups=rows.groups)
    assert np.array_equal(numbers.predict_proba(rows.X, rows.groups), two.predict_proba(rows.X, rows.groups))


def test_defaults_are_the_engines():
    engine = affpcl._core.FitOptions()
    given = PersonalizedRegressor().get_params()
    assert {k: given[k] for k in ("solver", "method", "missing", "seed", "threads")} == {
        k: getattr(engine, k) for k in ("solver", "method", "missing", "seed", "threads")}


def test_estimate_chooses_the_likelihood(rows, tmp_path):
    from affpcl import PersonalizedGLM

    def fitted(**options):
        return PersonalizedRegressor(score_gains=False, **options).fit(rows.X, rows.y, groups=rows.groups)

    ml, reml, usual = fitted(estimate="ml"), fitted(estimate="reml"), fitted()
    assert [model.model_.estimate for model in (ml, reml, usual)] == ["ml", "reml", "reml"]
    assert np.array_equal(usual.coef_, reml.coef_) and not np.array_equal(ml.coef_, reml.coef_)
    assert fitted(solver="stream").model_.estimate == ""
    ml.save(tmp_path / "ml.json")
    assert PersonalizedRegressor.load(tmp_path / "ml.json").estimate == "ml"
    assert fitted(common=[0]).model_.estimate == "ml"
    with pytest.raises(ValueError, match="not available for family poisson; allowed: ml"):
        PersonalizedGLM(estimate="reml").fit(rows.X, np.round(np.abs(rows.y)), groups=rows.groups)
    with pytest.raises(ValueError, match="estimate belongs to solver='exact'"):
        fitted(estimate="ml", solver="stream")
    with pytest.raises(ValueError, match="map"):
        fitted(estimate="map")


def test_glm_predicts_means_of_counts():
    from affpcl import PersonalizedGLM
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(30), 20)
    X = rng.normal(size=(600, 2))
    eta = 0.3 + rng.normal(size=30)[groups] * 0.8 + 0.5 * X[:, 0]
    y = rng.poisson(np.exp(eta))
    model = PersonalizedGLM(family="poisson", score_gains=False).fit(X, y, groups=groups)
    mean = model.predict(X, groups=groups)
    assert (mean > 0).all()
    assert abs(mean.mean() - y.mean()) < 0.1 * y.mean()
    assert model.model_.family == "poisson"
    assert abs(model.central_coef_[0] - 0.5) < 0.15
    with pytest.raises(ValueError, match="counts successes and needs trials="):
        PersonalizedGLM(family="binomial").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="family='ordinal' is not one of"):
        PersonalizedGLM(family="ordinal").fit(X, y, groups=groups)


def test_two_classes_are_binomial():
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(20), 15)
    X = rng.normal(size=(300, 1))
    y = (rng.random(300) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    model = PersonalizedClassifier(score_gains=False).fit(X, y, groups=groups)
    assert model.model_.family == "binomial"
    assert PersonalizedClassifier(family="gaussian", score_gains=False).fit(X, y, groups=groups).model_.family == "gaussian"


def test_the_level_of_predicted_intervals(fitted, rows):
    narrow, usual, wide = (fitted.predict_interval(rows.X, rows.groups, level=level) for level in (.5, .9, .99))
    assert np.array_equal(usual, fitted.predict_interval(rows.X, rows.groups))
    assert np.all(wide[:, 1] < usual[:, 1]) and np.all(usual[:, 1] < narrow[:, 1])
    widths = [(i[:, 2] - i[:, 1]).mean() for i in (narrow, usual, wide)]
    assert np.allclose(np.array(widths) / widths[0], [1, 1.6449 / .67449, 2.5758 / .67449], rtol=1e-4)
