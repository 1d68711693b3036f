"""Folds, test files and blocks in time; scores of classes, beside scikit-learn's."""
import numpy as np
import pytest
from sklearn.metrics import brier_score_loss, roc_auc_score
from sklearn.model_selection import TimeSeriesSplit

import affpcl
from affpcl import PersonalizedClassifier, PersonalizedRegressor


def world(rows: int = 240, groups: int = 6) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X, group = rng.normal(size=(rows, 2)), np.arange(rows) % groups
    return X, X[:, 0] + 0.3 * group * X[:, 1] + rng.normal(size=rows), group


def pooled_error(y: np.ndarray, parts: list[tuple[np.ndarray, np.ndarray]]) -> float:
    """Of the mean of the rows learnt from, which is the pooled model where no column varies."""
    return float(np.mean(np.concatenate([(y[held_out] - y[train].mean()) ** 2 for train, held_out in parts])))


def test_folds_of_an_array() -> None:
    X, y, group = world()
    fold = np.arange(len(y)) // 80
    model = PersonalizedRegressor().fit(np.ones_like(X), y, groups=group, folds=fold)
    want = pooled_error(y, [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(3)])
    assert model.scores_["mse"][list(model.scores_["model"]).index("pooled")] == pytest.approx(want, rel=1e-9)


def test_names_of_folds_may_be_texts_and_rows_of_weight_0_have_none() -> None:
    X, y, group = world()
    fold = np.array(["x", "y", "z"])[np.arange(len(y)) % 3]
    keep = np.arange(len(y)) >= 12
    some = PersonalizedRegressor().fit(X, y, groups=group, sample_weight=keep.astype(float), folds=fold)
    rest = PersonalizedRegressor().fit(X[keep], y[keep], groups=group[keep], sample_weight=np.ones(keep.sum()), folds=fold[keep])
    assert some.scores_["mse"].tolist() == rest.scores_["mse"].tolist()


@pytest.mark.parametrize("folds, says", [
    (np.zeros(240), "1 fold;"), (np.arange(240), "240 folds"), (np.arange(7), "folds has"),
    ([None] + [1] * 239, r"folds\[0\]"),
])
def test_bad_folds_are_refused(folds: object, says: str) -> None:
    X, y, group = world()
    with pytest.raises(ValueError, match=says):
        PersonalizedRegressor().fit(X, y, groups=group, folds=folds)


def test_a_stream_has_no_folds() -> None:
    X, y, group = world()
    with pytest.raises(ValueError, match="folds"):
        PersonalizedRegressor(solver="stream").fit(X, y, groups=group, folds=group)


def test_blocks_in_time_are_those_of_scikit_learn() -> None:
    _, y, group = world(66, 3)
    day = np.arange(66) // 3
    found = affpcl.fit({"agent": group, "day": day, "y": y}, target="y", time="day")
    parts = [tuple(np.flatnonzero(np.isin(day, days)) for days in part) for part in TimeSeriesSplit(4).split(np.arange(22))]
    assert found.to_dict()["score"]["mse"]["pooled"] == pytest.approx(pooled_error(y, parts), rel=1e-9)
    assert "4 later blocks by 'day'" in found.headline


def test_rows_of_a_test_file_have_the_scores_of_scikit_learn(tmp_path) -> None:
    X, y, group = world(600)
    yes = y > 0
    test = np.arange(600) % 5 == 0
    lines = [f"{g},{a!r},{b!r},{int(t)}\n" for g, (a, b), t in zip(group[test].tolist(), X[test].tolist(), yes[test].tolist())]
    (tmp_path / "test.csv").write_text("agent,a,b,y\n" + "".join(lines))
    rows = {"agent": group[~test], "a": X[~test, 0], "b": X[~test, 1], "y": yes[~test].astype(float)}
    found = affpcl.fit(rows, target="y", test=tmp_path / "test.csv")
    predicted = affpcl.predict(found.model, {"agent": group[test], "a": X[test, 0], "b": X[test, 1]})
    p = predicted["probability_1"]
    scores = {name: values[0] for name, values in found.scores.items()}
    assert scores["model"] == "given"
    assert scores["auc"] == pytest.approx(roc_auc_score(yes[test], p), abs=2e-3)
    assert scores["brier"] == pytest.approx(brier_score_loss(yes[test], p), rel=1e-9)
    assert found.gains["brier_given"].shape == (6,)


def test_a_classifier_has_scores_of_every_model() -> None:
    X, y, group = world()
    model = PersonalizedClassifier().fit(X, y > 0, groups=group)
    assert {"model", "log_loss", "accuracy", "auc", "brier", "calibration_error"} == set(model.scores_)
    assert model.scores_.rows == 4
    assert PersonalizedClassifier(score_gains=False).fit(X, y > 0, groups=group).scores_.rows == 0
