"""The same rows in every format that fit and predict read give the same model; damaged files are refused."""
import csv
import functools
import io
import json
import struct
from typing import NamedTuple

import pytest

np = pytest.importorskip("numpy")

N, D = 120, 4
FEATURES = [f"x{j}" for j in range(D)]
AGENT = np.arange(N) % 3
rng = np.random.default_rng(1)
X = rng.integers(0, 200, (N, D)).astype(float)  # whole numbers: every format holds them exactly
Y = np.round((X * (1 + .1 * AGENT[:, None])).sum(1) + rng.normal(0, 5, N))


# --- the files -------------------------------------------------------------------------------------------------------

def csv_text(**columns):
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values()))
    return text.getvalue()


def ints(values):
    return [int(value) for value in values]


def features():
    return dict(zip(FEATURES, map(ints, X.T)))


def svm_text():
    rows = (" ".join(f"{j}:{int(v)}" for j, v in enumerate(row) if v) for row in X)
    return "".join(f"{int(y)} {row}\n" for y, row in zip(Y, rows))


def idx_bytes(array, code):
    sizes = b"".join(struct.pack(">I", size) for size in array.shape)
    return struct.pack(">HBB", 0, code, array.ndim) + sizes + array.tobytes()


def leaf_text(agents):
    data = {str(a): {"x": X[AGENT == a].tolist(), "y": Y[AGENT == a].tolist()} for a in agents}
    return json.dumps({"users": list(data), "num_samples": [len(v["y"]) for v in data.values()], "user_data": data})


def write_texts(affpcl):
    affpcl.write("all.csv", csv_text(agent=ints(AGENT), y=ints(Y), **features()))
    affpcl.write("who.csv", csv_text(agent=ints(AGENT), y=ints(Y)))
    affpcl.write("agents.csv", csv_text(agent=ints(AGENT)))
    affpcl.write("only_x.csv", csv_text(**features()))
    affpcl.write("short.csv", csv_text(agent=ints(AGENT[:100]), y=ints(Y[:100])))
    affpcl.write("x.svm", svm_text())
    affpcl.write("leaf.json", leaf_text([0, 1, 2]))
    affpcl.write("leaf/0.json", leaf_text([0]))
    affpcl.write("leaf/1.json", leaf_text([2, 1]))


def write_arrays(affpcl):
    folder = affpcl.folder
    np.save(folder / "x.npy", X)
    np.save(folder / "fortran.npy", np.asfortranarray(X.astype(">i4")))
    np.save(folder / "record.npy", np.rec.fromarrays([AGENT.astype("U3"), Y.astype("f4"), *X.T.astype("u1")],
                                                     names=["agent", "y", *FEATURES]))
    np.savez(folder / "stored.npz", agent=AGENT, y=Y, x=X)
    np.savez_compressed(folder / "packed.npz", agent=AGENT.astype("S1"), y=Y.astype("i2"), x=X.astype("f4"))
    affpcl.write("train-images-idx3-ubyte", idx_bytes(X.astype("u1").reshape(N, 2, 2), 0x08))
    affpcl.write("labels.idx", idx_bytes(Y.astype(">i4"), 0x0C))
    (folder / "sites").mkdir()
    for a in range(3):
        np.savez(folder / f"sites/{a}.npz", y=Y[AGENT == a], x=X[AGENT == a])


@pytest.fixture(scope="module")
def files(shared_affpcl):
    """The program beside the same rows in every format."""
    write_texts(shared_affpcl)
    write_arrays(shared_affpcl)
    return shared_affpcl


# --- models ----------------------------------------------------------------------------------------------------------

class Fitted(NamedTuple):
    """A model's folder, the names of its agents and their coefficients."""
    folder: str
    agents: list
    coefficients: list


@pytest.fixture(scope="module")
def fit(files):
    """Fits a model to the files that a command line names; each is fitted once."""
    @functools.cache
    def call(arguments):
        folder = "m-" + arguments.replace("/", "-").replace(" ", "_")
        files.succeed("fit", *arguments.split(), "--out", folder, "--quiet")
        agents = files.read_json(f"{folder}/model.json")["agents"]
        return Fitted(folder, [a["name"] for a in agents], [[c["x"] for c in a["channels"]] for a in agents])

    return call


CSV = "all.csv --target y"


@pytest.mark.parametrize("arguments", [
    "x.npy --with who.csv --target y",
    "fortran.npy --with who.csv --target y",
    "record.npy --target y",
    "stored.npz --target y",
    "packed.npz --target y",
    "x.svm --with agents.csv --target y",
    "train-images-idx3-ubyte --with who.csv --target y",
    "train-images-idx3-ubyte --with labels.idx --with agents.csv --target label",
    "leaf.json --target y",
    "leaf --target y",
    "sites --target y",
])
def test_the_same_model(fit, arguments):
    found, expected = fit(arguments), fit(CSV)
    assert found.agents == expected.agents
    assert np.allclose(found.coefficients, expected.coefficients, rtol=1e-9)


def test_features_of_a_table_with_another_beside(fit):
    assert fit("x.npy --with who.csv --target y --features x1").agents == fit(CSV).agents


# --- predictions -----------------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def predict(files):
    """The rows that predict writes."""
    def call(*words):
        files.succeed("predict", *words, "--out", "p.csv", "--force")
        return list(csv.DictReader(files.read("p.csv").splitlines()))

    return call


def values(rows):
    return [float(row["prediction"]) for row in rows]


@pytest.fixture(scope="module")
def from_csv(fit, predict):
    """The predictions of the CSV file's model."""
    return predict(fit(CSV).folder, "all.csv")


def test_predict_keeps_the_columns_of_csv(from_csv):
    assert list(from_csv[0])[:3] == ["agent", "y", "x0"]
    assert len(from_csv) == N


@pytest.mark.parametrize("arguments", ["stored.npz", "packed.npz", "record.npy", "x.npy --with who.csv",
                                       "x.svm --with agents.csv"])
def test_predict_writes_agent_and_prediction_of_arrays(fit, predict, from_csv, arguments):
    rows = predict(fit(f"{arguments} --target y").folder, *arguments.split())
    assert list(rows[0]) == ["agent", "prediction", "prediction_lo", "prediction_hi"]
    assert [row["agent"] for row in rows] == [str(a) for a in AGENT]
    assert np.allclose(values(rows), values(from_csv))


def test_predict_takes_the_agent_from_the_name_of_the_file(fit, predict):
    rows = predict(fit("sites --target y").folder, "sites/1.npz")
    assert {row["agent"] for row in rows} == {"1"}


def test_predict_names_an_agent_from_beside(fit, predict, from_csv):
    rows = predict(fit(CSV).folder, "only_x.csv", "--with", "agents.csv")
    assert list(rows[0]) == [*FEATURES, "agent", "prediction", "prediction_lo", "prediction_hi"]
    assert np.allclose(values(rows), values(from_csv))


# --- what is refused -------------------------------------------------------------------------------------------------

def refuse_fit(files, *words, says):
    files.refuse("fit", *words, "--target", "y", "--out", "out", says=says)


@pytest.mark.parametrize("arguments, says", [
    ("x.npy --with short.csv", ["short.csv", "100 rows", "120"]),
    ("all.csv --with who.csv", ["who.csv", "'agent'"]),
    ("x.npy --with gone.csv", ["gone.csv"]),
])
def test_a_file_beside_is_refused(files, arguments, says):
    refuse_fit(files, *arguments.split(), says=says)


def test_predict_with_another_number_of_rows_is_refused(files, fit):
    files.refuse("predict", fit(CSV).folder, "only_x.csv", "--with", "short.csv", says=["short.csv", "100", "120"])


def test_a_nan_is_refused_with_its_row(files):
    blank = X.copy()
    blank[7, 2] = np.nan
    np.save(files.folder / "blank.npy", blank)
    refuse_fit(files, "blank.npy", "--with", "who.csv", says=["blank.npy", "row 8", "'x2'", "--missing mean"])


def test_a_blank_beside_is_refused_with_its_line(files):
    files.write("who2.csv", csv_text(agent=["" if i == 3 else int(a) for i, a in enumerate(AGENT)], y=ints(Y)))
    refuse_fit(files, "x.npy", "--with", "who2.csv", says=["who2.csv", "line 5", "'agent'"])


def test_python_objects_are_refused(files):
    np.save(files.folder / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    refuse_fit(files, "objects.npy", says=["objects.npy", "objects"])


def test_arrays_of_two_lengths_are_refused(files):
    np.savez(files.folder / "lengths.npz", a=X, b=Y[:5])
    refuse_fit(files, "lengths.npz", says=["array 'b'", "5", "120"])


@pytest.mark.parametrize("name, text, says", [
    ("r.svm", "1 1:2\n1 2:1 1:3\n", ["line 2", "'1:3'"]),
    ("r.json", '{"user_data": {"a": {"x": [[1, 2], [3]], "y": [1, 2]}}}', ["user 'a'", "sample 2"]),
])
def test_a_file_out_of_order_or_ragged_is_refused(files, name, text, says):
    files.write(name, text)
    refuse_fit(files, name, says=[name, *says])


def cut(content, name):
    """The first half; of CSV half a row too, since half the rows would be a good file."""
    half = len(content) // 2
    return content[:content.rindex(b",", 0, half) if name == "a.csv" else half]


@pytest.fixture(params=[("a.npy", "x.npy"), ("a.npz", "packed.npz"), ("a.svm", "x.svm"),
                        ("a-idx3-ubyte", "train-images-idx3-ubyte"), ("a.json", "leaf.json"), ("a.csv", "all.csv")],
                ids=lambda param: param[0])
def good(request, files):
    """The name of a file to damage, and the content of a good one of its format."""
    name, good_name = request.param
    return name, (files.folder / good_name).read_bytes()


def refuse_content(affpcl, name, content, says=()):
    affpcl.write(name, content)
    refuse_fit(affpcl, name, says=[name, *says])


def test_an_empty_file_is_refused(affpcl, good):
    refuse_content(affpcl, good[0], b"")


def test_a_cut_file_is_refused(affpcl, good):
    name, content = good
    refuse_content(affpcl, name, cut(content, name))


def test_a_file_of_another_format_is_refused(affpcl, files, good):
    name, _ = good
    refuse_content(affpcl, name, (files.folder / ("packed.npz" if name == "a.csv" else "all.csv")).read_bytes())


def test_a_line_of_ten_million_characters_is_refused(affpcl, good):
    refuse_content(affpcl, good[0], b"1" * 10_000_001)


def test_what_is_not_gzip_but_begins_so_is_refused(affpcl, good):
    name, content = good
    refuse_content(affpcl, name, b"\x1f\x8b\x08\x00" + content, says=["gzip"])


def test_a_vanished_file_is_refused(affpcl, good):
    name, _ = good
    (affpcl.folder / name).symlink_to(affpcl.folder / "gone")
    refuse_fit(affpcl, name, says=[name])
