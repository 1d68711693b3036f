"""Row weights, offsets, trials and common columns of arrays."""
import csv
import json

import numpy as np
import pandas
import pytest

from affpcl import PersonalizedClassifier, PersonalizedGLM, PersonalizedRegressor

RNG = np.random.default_rng(0)
AGENTS, ROWS = 16, 20
GROUPS = np.repeat(np.arange(AGENTS), ROWS)
X = RNG.normal(size=(len(GROUPS), 3))
ETA = X @ [0.5, -0.3, 0] + 0.5 * RNG.normal(size=AGENTS)[GROUPS]
WEIGHT = RNG.integers(0, 4, size=len(GROUPS))
REPEATED = np.repeat(np.arange(len(GROUPS)), WEIGHT)
TARGETS = {
    "gaussian": ETA + RNG.normal(size=len(GROUPS)),
    "t": ETA + RNG.standard_t(4, size=len(GROUPS)),
    "poisson": RNG.poisson(np.exp(ETA)),
    "negative-binomial": RNG.poisson(np.exp(ETA) * RNG.gamma(2, 0.5, size=len(GROUPS))),
    "gamma": np.exp(ETA) * RNG.gamma(3, 1 / 3, size=len(GROUPS)),
    "binomial": (RNG.random(len(GROUPS)) < 1 / (1 + np.exp(-ETA))).astype(int),
    "multinomial": np.digitize(ETA + RNG.logistic(size=len(GROUPS)), [-1, 1]),
    "ordinal": np.digitize(ETA + RNG.logistic(size=len(GROUPS)), [-1, 1]),
}


def estimator(family, **more):
    kind = PersonalizedClassifier if family in ("binomial", "multinomial", "ordinal") else PersonalizedRegressor
    return kind(family=family, score_gains=False, **more)


@pytest.mark.parametrize("family", TARGETS)
def test_a_row_of_weight_w_is_w_rows(family):
    y = TARGETS[family]
    weighted = estimator(family).fit(X, y, groups=GROUPS, sample_weight=WEIGHT)
    repeated = estimator(family).fit(X[REPEATED], y[REPEATED], groups=GROUPS[REPEATED])
    # The search for variances ends where a step promises 1e-12 of log-likelihood: about 1e-5 of a flat coefficient.
    assert np.allclose(weighted.central_coef_, repeated.central_coef_, rtol=1e-4, atol=1e-5)
    assert np.allclose(weighted.central_coef_se_, repeated.central_coef_se_, rtol=1e-4)
    same = np.array(weighted.model_.given) == np.array(repeated.model_.given)
    assert same.mean() > 0.7  # another baseline may be chosen: copies of a row are not held out together
    assert np.allclose(weighted.coef_[same], repeated.coef_[same], rtol=1e-3, atol=1e-4)
    unweighted = estimator(family).fit(X, y, groups=GROUPS)
    assert not np.allclose(weighted.central_coef_, unweighted.central_coef_, rtol=1e-3)
    ones = estimator(family).fit(X, y, groups=GROUPS, sample_weight=np.ones(len(y)))
    assert np.allclose(ones.coef_, unweighted.coef_, rtol=1e-6, atol=1e-8)


def test_a_stream_learns_a_row_of_weight_w_w_times():
    y = TARGETS["gaussian"]
    weighted = PersonalizedRegressor(solver="stream").fit(X, y, groups=GROUPS, sample_weight=WEIGHT)
    repeated = PersonalizedRegressor(solver="stream").fit(X[REPEATED], y[REPEATED], groups=GROUPS[REPEATED])
    assert np.array_equal(weighted.coef_, repeated.coef_)
    with pytest.raises(ValueError, match="whole numbers in sample_weight"):
        PersonalizedRegressor(solver="stream").fit(X, y, groups=GROUPS, sample_weight=WEIGHT + 0.5)


@pytest.mark.parametrize("family", ["gaussian", "t"])
def test_an_offset_of_numbers_is_subtracted(family):
    """And predictions have it again; the losses do not change."""
    y, offset = TARGETS[family], RNG.normal(size=len(GROUPS))
    plain = PersonalizedRegressor(family=family).fit(X, y, groups=GROUPS)
    moved = PersonalizedRegressor(family=family).fit(X, y + offset, groups=GROUPS, offset=offset)
    assert np.allclose(moved.coef_, plain.coef_, rtol=1e-6, atol=1e-8)
    assert np.allclose(moved.gains_["gain"], plain.gains_["gain"], rtol=1e-5, atol=1e-8)
    want = plain.predict_interval(X, GROUPS) + offset[:, None]
    assert np.allclose(moved.predict_interval(X, GROUPS, offset), want, rtol=1e-5, atol=1e-7)
    with pytest.raises(ValueError, match="fitted with an offset, 'offset', and needs offset= of the rows"):
        moved.predict(X, GROUPS)


@pytest.mark.parametrize("family", ["poisson", "binomial", "multinomial"])
def test_a_constant_offset_moves_the_intercept_only(family):
    y = TARGETS[family]
    offset = np.tile([0.0, 0.7, -0.4], (len(y), 1)) if family == "multinomial" else np.full(len(y), 0.7)
    plain = estimator(family).fit(X, y, groups=GROUPS)
    moved = estimator(family).fit(X, y, groups=GROUPS, offset=offset)
    by = np.array([0.0, 0.7, -0.4]) - 0.1 if family == "multinomial" else 0.7  # logits sum to 0
    assert np.allclose(moved.central_intercept_ + by, plain.central_intercept_, atol=1e-3)
    assert np.allclose(moved.central_coef_, plain.central_coef_, atol=1e-3)
    predict = "predict_proba" if hasattr(moved, "predict_proba") else "predict"
    assert np.allclose(getattr(moved, predict)(X, GROUPS, offset), getattr(plain, predict)(X, GROUPS), rtol=2e-2)


def test_offsets_of_classes_follow_their_names():
    """Classes whose order as texts is not that of the engine: 9 before 10."""
    y = np.array(["10", "9", "x"])[TARGETS["multinomial"]]
    true = np.column_stack([1.5 * ETA, np.zeros(len(y)), np.full(len(y), -0.3)])  # of 10, 9, x
    fitted = PersonalizedClassifier(family="multinomial", score_gains=False).fit(X, y, groups=GROUPS, offset=true)
    assert fitted.classes_.tolist() == ["10", "9", "x"]
    towards = np.zeros((1, 3))
    for k in range(3):
        pushed = towards.copy()
        pushed[0, k] = 50
        assert fitted.predict(X[:1], GROUPS[:1], offset=pushed).tolist() == [fitted.classes_[k]]
    with pytest.raises(ValueError, match="offset= names 1 column, and family='multinomial' needs 3, one for each class in the "
                                         "order 9, 10, x"):
        PersonalizedClassifier(family="multinomial").fit(X, y, groups=GROUPS, offset=ETA)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "multinomial"])
def test_weights_and_offsets_stay_with_their_rows(family):
    """Rows are reordered for folds: held-out losses are small only where each row has its own offset."""
    y = TARGETS[family]
    known = {"gaussian": y, "binomial": 6.0 * (2 * y - 1), "multinomial": 6.0 * (y[:, None] == [0, 1, 2])}[family]
    fitted = estimator(family).set_params(score_gains=True).fit(X, y, groups=GROUPS, offset=known + 1e-3 * X[:, 0][
        (slice(None), None) if known.ndim == 2 else slice(None)])
    assert np.average(fitted.gains_["loss_pooled"], weights=fitted.gains_["rows"]) < 0.05


def test_trials():
    """Five rows of yes or no with the same columns are one row of five trials."""
    n = np.full(len(GROUPS), 5)
    hits = RNG.binomial(5, 1 / (1 + np.exp(-ETA)))
    counted = PersonalizedGLM(family="binomial", score_gains=False).fit(X, hits, groups=GROUPS, trials=n)
    rows = np.repeat(np.arange(len(GROUPS)), 5)
    bits = (np.tile(np.arange(5), len(GROUPS)) < hits[rows]).astype(int)
    single = PersonalizedClassifier(score_gains=False).fit(X[rows], bits, groups=GROUPS[rows])
    assert np.allclose(counted.central_coef_, single.central_coef_, rtol=1e-6, atol=1e-7)
    p = counted.predict(X, GROUPS)
    assert (p > 0).all() and (p < 1).all()
    with pytest.raises(ValueError, match="trials= needs family='binomial'"):
        PersonalizedGLM(family="poisson").fit(X, hits, groups=GROUPS, trials=n)
    with pytest.raises(ValueError, match="is no number of successes"):
        PersonalizedGLM(family="binomial").fit(X, hits + 5, groups=GROUPS, trials=n)


def test_common_columns_have_one_coefficient():
    y = TARGETS["gaussian"]
    for common in ([1, 2], ["x1", "x2"]):
        fitted = PersonalizedRegressor(common=common, score_gains=False).fit(X, y, groups=GROUPS)
        personalised = np.array(fitted.model_.given) == "personalised"
        assert np.ptp(fitted.coef_[personalised][:, 1:], axis=0).max() < 1e-12
        assert np.ptp(fitted.coef_[personalised][:, 0]) > 0 or np.ptp(fitted.intercept_[personalised]) > 0
    with pytest.raises(ValueError, match="common names 'x9', which is no column of X; it has x0, x1, x2"):
        PersonalizedRegressor(common=["x9"]).fit(X, y, groups=GROUPS)


@pytest.mark.parametrize("more, says", [
    (dict(sample_weight=np.ones(3)), "sample_weight.shape"),
    (dict(sample_weight=-np.ones(len(GROUPS))), "[Nn]egative values"),
    (dict(sample_weight=np.zeros(len(GROUPS))), "at least one non-zero"),
    (dict(offset=np.ones(3)), r"X has 320 rows, but offset has the shape \(3,\)"),
    (dict(offset=np.full(len(GROUPS), np.inf)), "is no offset"),
])
def test_bad_input(more, says):
    with pytest.raises(ValueError, match=says):
        PersonalizedRegressor().fit(X, TARGETS["gaussian"], groups=GROUPS, **more)


def test_the_command_line_reads_a_model_with_weights_and_offset(cli, tmp_path):
    """The same model from the file of the same columns, to the bit."""
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    frame["w"], frame["o"], frame["y"], frame["agent"] = WEIGHT, ETA / 2, TARGETS["poisson"], GROUPS
    frame.to_csv(tmp_path / "rows.csv", index=False)
    cli("fit", tmp_path / "rows.csv", "--target", "y", "--family", "poisson", "--row-weight", "w", "--offset", "o", "--out",
        tmp_path / "model", "--quiet")
    fitted = PersonalizedGLM().fit(frame[["a", "b", "c"]], frame["y"], groups=frame["agent"], sample_weight=frame["w"],
                                   offset=frame["o"])
    mine, theirs = json.loads(fitted.model_.json()), json.loads((tmp_path / "model" / "model.json").read_text())
    del mine["provenance"], theirs["provenance"]
    assert mine == theirs
    fitted.save(tmp_path / "mine.json")
    cli("predict", tmp_path / "mine.json", tmp_path / "rows.csv", "--out", tmp_path / "p.csv")
    with open(tmp_path / "p.csv", encoding="utf-8") as file:
        found = [float(line["prediction"]) for line in csv.DictReader(file)]
    assert found == fitted.predict(frame[["a", "b", "c"]], frame["agent"], frame["o"]).tolist()
