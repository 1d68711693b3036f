"""What cannot be used is refused: the right type of exception, and one sentence that says what and where."""
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import affpcl
from affpcl import PersonalizedClassifier, PersonalizedRegressor

SPEC = {"problem": {"kind": "gaussian"}, "run": {"steps": 5, "replicates": 2}, "method": [{"kind": "affpcl"}]}


def put(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


@pytest.mark.parametrize("change, error, says", [
    (dict(y=lambda r: r.y[:-1]), ValueError, "inconsistent numbers of samples"),
    (dict(groups=lambda r: r.groups[:-1]), ValueError, "X has 360 rows, but groups has 359"),
    (dict(groups=lambda r: r.groups.reshape(12, 30)), ValueError, "groups has 2 axes, not 1"),
    (dict(groups=lambda r: put(r.groups.astype(object), 7, None)), ValueError, r"groups\[7\] = None names no group"),
    (dict(groups=lambda r: put(np.arange(360.0), 2, np.nan)), ValueError, r"groups\[2\] = nan names no group"),
    (dict(X=lambda r: r.X[0]), ValueError, "2D array"),
    (dict(X=lambda r: r.X[None]), ValueError, "dim 3"),
    (dict(X=lambda r: put(r.X, (3, 0), np.nan)), ValueError, "NaN"),
    (dict(X=lambda r: put(r.X, (3, 0), np.inf)), ValueError, "infinity"),
    (dict(X=lambda r: put(r.X.astype(object), (3, 0), "red")), ValueError, "could not convert string to float"),
    (dict(X=lambda r: put(r.X.astype(object), (3, 0), {})), (TypeError, ValueError), "dict"),
    (dict(X=lambda r: r.X + 0j), ValueError, "[Cc]omplex"),
    (dict(X=lambda r: np.ones_like(r.X)), ValueError, "no feature is left"),
    (dict(y=lambda r: put(r.y, 5, np.nan)), ValueError, "NaN"),
    (dict(y=lambda r: np.full(360, 3.0)), ValueError, "the target 'y' is 3 in every row"),
])
def test_fit(rows, change, error, says):
    given = dict(X=rows.X, y=rows.y, groups=rows.groups) | {k: f(rows) for k, f in change.items()}
    with pytest.raises(error, match=says):
        PersonalizedRegressor().fit(given["X"], given["y"], groups=given["groups"])


@pytest.mark.parametrize("options, says", [
    (dict(solver="exakt"), "solver = 'exakt' is not known; did you mean 'exact'"),
    (dict(missing="ignore"), "missing = 'ignore' is not known; allowed: error, mean, drop"),
    (dict(method="ditto"), "belong to solver='stream'"),
    (dict(solver="stream", method="dito"), "did you mean 'ditto'"),
    (dict(solver="stream", method="ditto", method_values={"lamda": 1.0}), "did you mean 'lambda'"),
])
def test_options(rows, options, says):
    with pytest.raises(ValueError, match=says):
        PersonalizedRegressor(**options).fit(rows.X, rows.y, groups=rows.groups)


def test_predict(rows, tmp_path):
    with pytest.raises(NotFittedError):
        PersonalizedRegressor().predict(rows.X)
    fitted = PersonalizedRegressor().fit(rows.X, rows.y, groups=rows.groups)
    with pytest.raises(ValueError, match="X has 2 features, but PersonalizedRegressor is expecting 4"):
        fitted.predict(rows.X[:, :2])
    with pytest.raises(ValueError, match="groups has 3"):
        fitted.predict(rows.X, rows.groups[:3])
    fitted.save(tmp_path / "model.json")
    with pytest.raises(ValueError, match="model of numbers, which PersonalizedClassifier does not predict"):
        PersonalizedClassifier.load(tmp_path / "model.json")
    (tmp_path / "cut.json").write_text(fitted.model_.json()[:1000])
    with pytest.raises(ValueError, match="cut.json is damaged"):
        affpcl.load_model(tmp_path / "cut.json")
    with pytest.raises(ValueError, match="cannot read"):
        affpcl.load_model(tmp_path / "none.json")


def test_huge_group_counts():
    rng = np.random.default_rng(0)
    n = 20_000
    X = rng.normal(size=(n, 2))
    y = X[:, 0] + 0.1 * rng.normal(size=n)
    fitted = PersonalizedRegressor(score_gains=False).fit(X, y, groups=np.arange(n))
    assert fitted.coef_.shape == (n, 2)
    assert np.allclose(fitted.central_coef_, [1, 0], atol=0.05)
    assert any("single row" in note for note in fitted.notes_)


def test_texts_in_files_need_files(tmp_path):
    path = tmp_path / "texts.csv"
    path.write_text("agent,colour,y\n" + "".join(f"{i % 3},{'red' if i % 2 else 'blue'},{i % 5}\n" for i in range(30)))
    model = affpcl.fit(path, target="y").model
    model.write(str(tmp_path / "model.json"))
    with pytest.raises(ValueError, match="'colour' holds strings"):
        PersonalizedRegressor.load(tmp_path / "model.json")
    with pytest.raises(ValueError, match="'colour' holds strings"):
        model.predict(np.zeros((2, 1)), affpcl._core.Groups(np.zeros(2, np.int32), ["0"]))
    with pytest.raises(TypeError, match="no option 'targt'"):
        affpcl.fit(path, targt="y")
    with pytest.raises(ValueError, match="did you mean 'colour'"):
        affpcl.fit(path, target="colur")


@pytest.mark.parametrize("change, error, says", [
    ({"problem": {"kind": "gausian"}}, ValueError, "did you mean 'gaussian'"),
    ({"run": {"stepps": 5}}, ValueError, "did you mean 'steps'"),
    ({"run": {"steps": "many"}}, ValueError, "run.steps"),
    ({"method": []}, ValueError, "method"),
    ({"run": {"steps": object()}}, TypeError, "a spec holds texts, numbers, lists and dicts"),
])
def test_specs(change, error, says):
    with pytest.raises(error, match=says):
        affpcl.run({**SPEC, **change})


def test_spec_sources(tmp_path):
    with pytest.raises(ValueError, match="cannot read .*none.toml: No such file"):
        affpcl.run(tmp_path / "none.toml")
    with pytest.raises(ValueError, match="fig-comparison"):
        affpcl.reproduce("fig-comparisn")
    with pytest.raises(ValueError, match="run.stepps"):
        affpcl.run(SPEC, set={"run.stepps": 3})


def test_the_core_checks_for_itself(rows):
    core = affpcl._core
    groups = core.Groups(np.zeros(360, np.int32), ["a"])
    options = core.FitOptions()
    options.target, options.agent = "y", "agent"
    names = ["a", "b", "c", "d"]
    with pytest.raises(TypeError, match="float64 or float32"):
        core.fit_arrays(rows.X.astype(int), names, rows.y, [], groups, options)
    with pytest.raises(ValueError, match="X has 4 columns, but 3"):
        core.fit_arrays(rows.X, names[:3], rows.y, [], groups, options)
    with pytest.raises(ValueError, match="called 'a'"):
        core.fit_arrays(rows.X, ["a", "a", "c", "d"], rows.y, [], groups, options)
    with pytest.raises(ValueError, match="the code 3 of 1 names"):
        core.fit_arrays(rows.X, names, rows.y, [], core.Groups(np.full(360, 3, np.int32), ["a"]), options)
