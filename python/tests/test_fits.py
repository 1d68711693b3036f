"""Tables in memory are fitted, predicted and compared as files are; results leave as frames, files and pages."""
import json

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest

import affpcl


@pytest.fixture(scope="module")
def frame():
    """Numbers, texts, categories, truth values, dates, and agents that are numbers."""
    rng = np.random.default_rng(4)
    n = 240
    frame = pandas.DataFrame({
        "shop": np.arange(n) % 8,
        "size": rng.normal(size=n),
        "colour": np.array(["red", "green", "blue"])[rng.integers(0, 3, n)],
        "kind": pandas.Categorical(np.array(["b", "a"])[rng.integers(0, 2, n)]),
        "open": rng.random(n) < 0.5,
        "day": pandas.Timestamp("2026-01-01") + pandas.to_timedelta(rng.integers(0, 60, n), unit="D"),
    })
    frame["sales"] = frame["size"] * (1 + frame["shop"] / 8) + (frame["colour"] == "red") + rng.normal(size=n)
    frame["answer"] = np.where(frame["sales"] > 0, "yes", "no")
    frame["visits"] = rng.poisson(np.exp(0.3 * frame["size"]))
    return frame


@pytest.fixture(scope="module")
def path(frame, tmp_path_factory):
    path = tmp_path_factory.mktemp("frame") / "rows.csv"
    frame.to_csv(path, index=False)
    return path


def bare(fitted):
    model = json.loads(fitted.model.json())
    del model["provenance"], model["reading"]
    return model


RUNS = {
    "numbers": dict(target="sales", exclude=["answer", "visits"]),
    "classes": dict(target="answer", exclude=["sales", "visits"]),
    "counts": dict(target="visits", family="poisson", exclude=["sales", "answer"]),
    "stream": dict(target="sales", exclude=["answer", "visits"], solver="stream"),
}


@pytest.mark.parametrize("run", RUNS)
def test_a_frame_is_a_file(frame, path, run):
    """pandas, polars, Arrow and a dict give the model of the CSV file, and the same predictions."""
    options = dict(agent="shop", threads=1, score=False, **RUNS[run]) if run != "stream" else dict(agent="shop", **RUNS[run])
    want = affpcl.fit(path, **options)
    predicted = affpcl.predict(want.model, path)
    assert len(predicted["prediction"]) == len(frame)
    arrow = pyarrow.Table.from_pandas(frame, preserve_index=False)
    for data in (frame, polars.from_arrow(arrow), arrow, {name: frame[name] for name in frame}):
        fitted = affpcl.fit(data, **options)
        assert bare(fitted) == bare(want)
        found = fitted.predict(data)
        assert list(found) == list(predicted)
        for name in found:
            assert found[name].tolist() == predicted[name].tolist(), name


def test_parquet_in_and_out(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    options = dict(target="sales", agent="shop", exclude=["answer", "visits", "open"], score=False)  # pyarrow writes true, not True
    fitted = affpcl.fit(tmp_path / "rows.parquet", **options)
    assert bare(fitted) == bare(affpcl.fit(frame, **options))
    predicted = fitted.predict(frame)
    predicted.write_parquet(tmp_path / "predicted.parquet")
    back = pyarrow.parquet.read_table(tmp_path / "predicted.parquet")
    assert back.equals(predicted.to_arrow())
    assert back["prediction"].to_pylist() == predicted["prediction"].tolist()


def test_missing_values_of_every_kind(frame):
    gaps = frame[["shop", "size", "colour", "sales"]].copy()
    gaps.loc[[3, 50], "size"] = np.nan
    gaps.loc[[7, 9], "colour"] = None
    options = dict(target="sales", agent="shop", missing="drop", score=False)
    want = affpcl.fit(gaps.dropna(), target="sales", agent="shop", score=False)
    arrow = pyarrow.Table.from_pandas(gaps, preserve_index=False)
    for data in (gaps, arrow, polars.from_arrow(arrow), gaps.convert_dtypes()):
        fitted = affpcl.fit(data, **options)
        assert fitted.model.rows == len(frame) - 4
        assert np.array_equal(fitted.model.x, want.model.x)
        assert np.isnan(fitted.predict(data)["prediction"]).sum() == 4


def test_the_folder_and_the_page(frame, path, tmp_path, cli):
    fitted = affpcl.fit(frame, target="sales", agent="shop", exclude=["answer", "visits"])
    fitted.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "summary.json").read_text())["agents"] == fitted.to_dict()["agents"]
    with pytest.raises(ValueError, match="exists"):
        fitted.save(tmp_path / "model")
    fitted.save(tmp_path / "model", force=True)
    cli("predict", tmp_path / "model", path, "--out", tmp_path / "p.csv")
    page = affpcl.report(tmp_path / "model", out=tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page and "</html>" in page
    fitted.report(tmp_path / "own.html")
    assert (tmp_path / "own.html").stat().st_size > 10_000
    assert fitted.headline in json.dumps(fitted.to_dict(), ensure_ascii=False)


def test_affinity_is_that_of_the_command_line(frame, path, cli):
    options = dict(target="sales", agent="shop", exclude=["answer", "visits"])
    found = json.loads(cli("affinity", path, "--target", "sales", "--agent", "shop", "--exclude", "answer,visits", "--json"))
    for data in (path, frame):
        result = affpcl.affinity(data, **options)
        assert result.to_dict()["agents"] == found["agents"]
        assert result.agents["agent"].tolist() == [str(k) for k in range(8)]
        assert len(result.matrix) > 0
    with pytest.raises(TypeError, match="affinity has no option 'targt'"):
        affpcl.affinity(path, targt="sales")


def test_values_of_states(cli, tmp_path):
    rng = np.random.default_rng(0)
    lines = ["agent,state,next_state,reward"]
    for agent in range(6):
        state = 0
        for _ in range(200):
            following = int(rng.integers(0, 3))
            lines.append(f"{agent},s{state},s{following},{state + rng.normal():.3f}")
            state = following
    (tmp_path / "log.csv").write_text("\n".join(lines) + "\n")
    fitted = affpcl.fit(tmp_path / "log.csv", task="td", gamma=0.8)
    found = json.loads(cli("fit", tmp_path / "log.csv", "--task", "td", "--gamma", "0.8", "--json"))
    assert [a["agent"] for a in fitted.to_dict()["agents"]] == [a["agent"] for a in found["agents"]]
    assert fitted.to_dict()["agents"] == found["agents"]
    in_memory = affpcl.fit(pandas.read_csv(tmp_path / "log.csv"), task="td", gamma=0.8)
    assert in_memory.to_dict()["agents"] == found["agents"]
    with pytest.raises(TypeError, match="fit has no option 'gama'"):
        affpcl.fit(tmp_path / "log.csv", task="td", gama=0.8)


def test_outcomes_that_agents_weigh(frame, tmp_path):
    (tmp_path / "weights.csv").write_text("shop,sales,visits\n" + "".join(f"{k},1,{k}\n" for k in range(8)))
    options = dict(agent="shop", channels=["sales", "visits"], exclude=["answer"], weights=str(tmp_path / "weights.csv"))
    frame.to_csv(tmp_path / "rows.csv", index=False)
    want = bare(affpcl.fit(tmp_path / "rows.csv", **options))
    assert bare(affpcl.fit(frame, **options)) == want
    options["weights"] = {"shop": range(8), "sales": [1] * 8, "visits": range(8)}
    assert bare(affpcl.fit(frame, **options)) == want


def test_test_rows_are_files_or_tables(frame, tmp_path):
    learnt, held = frame.iloc[:200], frame.iloc[200:]
    held.to_csv(tmp_path / "test.csv", index=False)
    options = dict(target="sales", agent="shop", exclude=["answer", "visits"])
    want = affpcl.fit(learnt, test=tmp_path / "test.csv", **options).scores
    for test in (held, polars.from_pandas(held)):
        found = affpcl.fit(learnt, test=test, **options).scores
        assert found["mse"].tolist() == want["mse"].tolist()


def test_notebooks(frame):
    fitted = affpcl.fit(frame, target="sales", agent="shop", exclude=["answer", "visits"])
    page = fitted._repr_html_()
    assert fitted.headline.split("&")[0][:20] in page and page.count("<circle") == 8 and "<table>" in page
    assert fitted.gains._repr_html_().count("<tr>") == 9
    many = affpcl.Table({"x": np.arange(1000), "name": ["<b>"] * 1000})
    assert many._repr_html_().count("<tr>") == 12 and "<b>" not in many._repr_html_()
    assert "1000 rows" in many._repr_html_()


def test_progress(frame, capsys):
    shares = []
    affpcl.fit(frame, target="sales", agent="shop", exclude=["answer", "visits"], progress=shares.append)
    assert shares == sorted(shares) and all(0 <= s <= 1 for s in shares)

    def stop(share):
        raise RuntimeError("enough")

    big = pandas.concat([frame] * 40, ignore_index=True)
    big["size"] += np.random.default_rng(0).normal(size=len(big))
    with pytest.raises(RuntimeError, match="enough"):
        affpcl.fit(big, target="sales", agent="shop", exclude=["answer", "visits"], features=["size", "colour"], family="t", progress=stop)


@pytest.mark.parametrize("data, options, says", [
    ({"agent": ["a"] * 4, "y": [1, 2, 3]}, dict(target="y"), "column 'y' has 3 rows, and the others have 4"),
    ({"agent": ["a"] * 4, "y": [1, 2, 3, 4]}, dict(target="z"), "the table has no column 'z'"),
    ({"agent": ["a", None, "b", "b"], "y": [1, 2, 3, 4]}, dict(target="y"), "names no agent"),
    ({"agent": ["a"] * 4, "y": np.zeros((4, 2))}, dict(target="y"), "column 'y' has 2 axes, not 1"),
    ({"agent": ["a"] * 4, "y": [1, 2, 3, 4]}, dict(task="td", gamma=0.5), "'state'"),
])
def test_bad_input(data, options, says):
    with pytest.raises(ValueError, match=says):
        affpcl.fit(data, **options)


def test_predicts_files_with_semicolons_and_decimal_commas(tmp_path):
    for name, number in (("plain.csv", "{}"), ("comma.csv", "{},5")):
        lines = [f"a{k % 2};{number.format(k)};{number.format(2 * k)}" for k in [*range(10, 40), *range(10)]]
        (tmp_path / name).write_text("agent;x;y\n" + "\n".join(lines) + "\n")
        model = affpcl.fit(tmp_path / name, target="y").model
        found = affpcl.predict(model, tmp_path / name)["prediction"]
        assert len(found) == 40 and abs(found[0] - 20) < 1


def test_ids_beyond_the_exact_are_texts():
    ids = np.array([2**60 + k for k in range(40)])
    rows = {"agent": ["a", "b"] * 20, "id": ids, "x": np.arange(40.0) % 7, "y": np.arange(40.0) % 5}
    assert affpcl.fit(rows, target="y").model.sources == ["x"]
