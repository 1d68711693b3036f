"""Python and the command line find the same numbers, to the bit, and read each other's models."""
import csv
import io
import json

import numpy as np
import pandas
import pytest
from conftest import Rows, school

import affpcl

SPEC = {
    "problem": {"kind": "gaussian", "agents": 6, "dim": 3},
    "run": {"steps": 20, "replicates": 4, "step_size": 0.01, "curve_agents": [0]},
    "method": [{"kind": "affpcl"}, {"kind": "independent"}, {"kind": "affpcl", "name": "guarded", "guard": "full"}],
    "sweep": {"problem.delta_env+problem.delta_obj": [0.0, 0.3]},
}


def without_circumstances(of):
    if isinstance(of, dict):
        return {k: without_circumstances(v) for k, v in of.items()
                if k not in ("seconds", "host", "threads", "command", "files", "study", "spec_toml")}
    return [without_circumstances(v) for v in of] if isinstance(of, list) else of


def test_studies(cli, tmp_path):
    result = affpcl.run(SPEC)
    spec = tmp_path / "spec.toml"
    spec.write_text(result.spec, encoding="utf-8")
    found = json.loads(cli("run", spec, "--json"))
    assert without_circumstances(result.to_dict()) == without_circumstances(found)
    assert result.summary["mse_mean"].tolist() == [m["mse"]["mean"] for s in found["settings"] for m in s["methods"]]


def test_result_folders(cli, tmp_path):
    result = affpcl.run(SPEC)
    result.save(tmp_path / "python")
    (tmp_path / "spec.toml").write_text(result.spec, encoding="utf-8")
    cli("run", tmp_path / "spec.toml", "--out", tmp_path / "cli", "--quiet")
    for name in ("curves.csv", "agents.csv"):
        text = (tmp_path / "python" / name).read_text()
        assert text == (tmp_path / "cli" / name).read_text()
        table = result.curves if name == "curves.csv" else result.agents
        lines = list(csv.DictReader(io.StringIO(text)))
        assert table["mse_mean"].tolist() == [float(line["mse_mean"]) for line in lines]
        assert table["method"].tolist() == [line["method"] for line in lines]
    with pytest.raises(ValueError, match="exists"):
        result.save(tmp_path / "python")


@pytest.mark.parametrize("which", ["rows", "school"])
@pytest.mark.parametrize("solver", ["exact", "stream"])
def test_fit(cli, tmp_path, rows, which, solver):
    if which == "school":
        rows = Rows(school(), "y", "agent")
    fitted = affpcl.PersonalizedRegressor(solver=solver)
    fitted.fit(pandas.DataFrame(rows.X, columns=rows.columns), pandas.Series(rows.y, name=rows.target),
               groups=pandas.Series(rows.groups, name=rows.agent))
    cli("fit", rows.path, "--target", rows.target, "--agent", rows.agent, "--task", "regress", "--solver", solver,
        "--out", tmp_path / "model", "--quiet")
    found = json.loads((tmp_path / "model" / "model.json").read_text())
    mine = json.loads(fitted.model_.json())
    for model in (found, mine):
        del model["provenance"]
    assert mine == found
    summary = json.loads((tmp_path / "model" / "summary.json").read_text())
    assert fitted.gains_["gain"].tolist() == [a["gain"]["mean"] for a in summary["agents"]]
    assert fitted.gains_["verdict"].tolist() == [a["verdict"] for a in summary["agents"]]

    # The program predicts with Python's model, and Python with the program's.
    fitted.save(tmp_path / "mine.json")
    cli("predict", tmp_path / "mine.json", rows.path, "--out", tmp_path / "predictions.csv")
    with open(tmp_path / "predictions.csv", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    predicted = fitted.predict_interval(pandas.DataFrame(rows.X, columns=rows.columns), rows.groups)
    for column, name in enumerate(("prediction", "prediction_lo", "prediction_hi")):
        assert predicted[:, column].tolist() == [float(line[name]) for line in lines]
    loaded = affpcl.PersonalizedRegressor.load(tmp_path / "model")
    X = pandas.DataFrame(rows.X, columns=rows.columns)[list(loaded.feature_names_in_)]
    assert loaded.predict(X, rows.groups).tolist() == predicted[:, 0].tolist()


def test_classes(cli, tmp_path, rows):
    labels = np.digitize(rows.y, [-1, 1])
    path = tmp_path / "classes.csv"
    with open(rows.path, encoding="utf-8") as file, open(path, "w", encoding="utf-8") as out:
        header, *lines = file.read().splitlines()
        out.write("\n".join([header + ",label", *(f"{a},{b}" for a, b in zip(lines, labels))]) + "\n")
    cli("fit", path, "--target", "label", "--agent", "agent", "--task", "classify", "--exclude", "y", "--out",
        tmp_path / "model", "--quiet")
    cli("predict", tmp_path / "model", path, "--out", tmp_path / "predictions.csv")
    with open(tmp_path / "predictions.csv", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    fitted = affpcl.PersonalizedClassifier().fit(rows.X, labels, groups=rows.groups)
    probabilities = fitted.predict_proba(rows.X, rows.groups)
    assert probabilities.max(axis=1).tolist() == [float(line["probability"]) for line in found]
    assert fitted.predict(rows.X, rows.groups).tolist() == [int(line["prediction"]) for line in found]
    loaded = affpcl.PersonalizedClassifier.load(tmp_path / "model")
    used = rows.X[:, [rows.columns.index(c) for c in loaded.feature_names_in_]]
    assert np.array_equal(loaded.predict_proba(used, rows.groups), probabilities)


def predicted_by_program(cli, model, X, rows, tmp_path):
    """The rows of X, with blanks for NaN, as the program predicts them; a blank is NaN again."""
    path, out = tmp_path / "gaps.csv", tmp_path / "gaps_predicted.csv"
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join([*rows.columns, "agent"]) + "\n")
        for x, group in zip(X.tolist(), rows.groups):
            file.write(",".join("" if np.isnan(v) else repr(v) for v in x) + f",{group}\n")
    cli("predict", model, path, "--out", out, "--force")
    with open(out, encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("missing", ["mean", "drop"])
def test_rows_that_lack_values(cli, tmp_path, rows, missing):
    gaps = rows.X.copy()
    gaps[::7, 0] = np.nan
    gaps[5, :3] = np.nan
    regressor = affpcl.PersonalizedRegressor(missing=missing).fit(gaps, rows.y, groups=rows.groups)
    regressor.save(tmp_path / "numbers.json")
    lines = predicted_by_program(cli, tmp_path / "numbers.json", gaps, rows, tmp_path)
    found = regressor.predict_interval(gaps, rows.groups)
    for column, name in enumerate(("prediction", "prediction_lo", "prediction_hi")):
        assert np.array_equal(found[:, column], [float(line[name] or "nan") for line in lines], equal_nan=True)
    lacks = np.isnan(gaps).any(axis=1)
    assert np.isnan(found[:, 0]).tolist() == (lacks & (missing == "drop")).tolist()

    labels = np.array(["low", "middle", "high"])[np.digitize(rows.y, [-1, 1])]
    classifier = affpcl.PersonalizedClassifier(missing=missing).fit(gaps, labels, groups=rows.groups)
    classifier.save(tmp_path / "classes.json")
    lines = predicted_by_program(cli, tmp_path / "classes.json", gaps, rows, tmp_path)
    probability = classifier.predict_proba(gaps, rows.groups).max(axis=1)
    assert np.array_equal(probability, [float(line["probability"] or "nan") for line in lines], equal_nan=True)
    known = ~lacks if missing == "drop" else np.ones(len(gaps), bool)
    assert classifier.predict(gaps[known], rows.groups[known]).tolist() == [
        line["prediction"] for line, whole in zip(lines, known) if whole]
    if missing == "drop":
        with pytest.raises(ValueError, match="row 0 of X lacks a value and has no class"):
            classifier.predict(gaps, rows.groups)


def test_a_model_that_refuses_gaps(cli, tmp_path, rows):
    model = affpcl.fit(rows.path, target="y", agent="agent").model
    gaps = rows.X[:, :3].copy()
    gaps[4, 1] = np.nan
    codes = affpcl._core.Groups(np.zeros(len(gaps), np.int32), ["site0"])
    with pytest.raises(ValueError, match="row 4 of X lacks column 'x1', and the model was fitted with missing='error'"):
        model.predict(gaps, codes)


def test_files(cli, tmp_path, rows):
    fitted = affpcl.fit(rows.path, target="y", agent="agent", threads=1)
    found = json.loads(cli("fit", rows.path, "--target", "y", "--agent", "agent", "--json"))
    assert without_circumstances(fitted.to_dict()) == without_circumstances(found)
    assert fitted.gains["agent"].tolist() == [a["agent"] for a in found["agents"]]
    fitted.model.write(str(tmp_path / "model.json"))
    cli("predict", tmp_path / "model.json", rows.path, "--out", tmp_path / "p.csv")
    assert affpcl.load_model(tmp_path).predict_files([str(rows.path)]) == (tmp_path / "p.csv").read_text()


def test_reproduce(cli):
    changes = {"run.replicates": 2, "run.steps": 20}
    result = affpcl.reproduce("fig-specific", set=changes)
    found = json.loads(cli("reproduce", "fig-specific", "--json", *(a for k, v in changes.items()
                                                                    for a in ("--set", f"{k}={v}"))))
    assert without_circumstances(result.to_dict()["settings"]) == without_circumstances(found["settings"])
    assert [c["measured"] for c in result.claims] == [c["measured"] for c in found["claims"]]
