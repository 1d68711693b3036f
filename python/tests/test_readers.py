"""Every reader against pandas, NumPy, scikit-learn and pyarrow: the same file read by either gives the same bits.

Files are drawn at random among those that are valid: numbers in every notation, quotes, blanks, line ends, byte orders.
"""
import gzip
import json
import lzma
import struct

import numpy as np
import pandas as pd
import pytest

import affpcl

SEEDS = range(8)
pytestmark = pytest.mark.filterwarnings("ignore:.*float_precision")
ROWS = 40


def model_of(data, **options):
    model = affpcl.fit(data, score=False, seed=1, threads=1, **{"target": "y", "agent": "agent", "family": "gaussian", **options}).model
    return model.agents, model.coefficients, np.asarray(model.x).tobytes(), np.asarray(model.centre).tobytes()


def random_number(rng):
    value = rng.normal() * 10.0 ** rng.integers(-6, 7)
    return rng.choice([f"{value:.17g}", f"{value:.3e}", f"{value:+.6f}", str(int(value)), f"{value:.25f}"[:30], f"{value:E}",
                       f" {value:.5g} ", f"{int(value)}.", "-0", "0.0"])


def random_columns(rng, names=("a", "b", "c", "y")):
    return {name: np.array([float(random_number(rng)) for _ in range(ROWS)]) for name in names}


def agents(rng):
    return rng.permutation([f"site {i % 4}" for i in range(ROWS)])


# --- texts -----------------------------------------------------------------------------------------------------------

def csv_text(rng, sep, decimal, end):
    quote = ("{}", '"{}"')
    lines = [sep.join(["agent", "a", "b", "c", "kind", "y"])]
    for agent in agents(rng):
        cells = [random_number(rng).replace(".", decimal) for _ in range(4)]
        kind = rng.choice(["red", "blue", "green, dark", "é\"“ü", "two\nlines"])
        if rng.random() < .1:
            cells[int(rng.integers(3))] = rng.choice(["", "NA"])
        quoted = '"' + kind.replace('"', '""') + '"'
        lines.append(sep.join([quote[rng.integers(2)].format(agent), *(quote[rng.integers(2)].format(c) for c in cells[:3]), quoted, cells[3]]))
    return end.join(lines) + (end if rng.random() < .7 else "")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sep, decimal, end", [(",", ".", "\n"), (";", ",", "\r\n"), ("\t", ".", "\n"), ("|", ".", "\r\n")])
def test_csv_and_pandas(tmp_path, seed, sep, decimal, end):
    rng = np.random.default_rng(seed)
    path = tmp_path / "t.csv"
    path.write_bytes(csv_text(rng, sep, decimal, end).encode(("utf-8", "utf-8-sig", "utf-16")[seed % 3]))
    frame = pd.read_csv(path, sep=sep, decimal=decimal, float_precision="round_trip", skipinitialspace=False, na_values=["NA", ""],
                        keep_default_na=False, encoding=("utf-8", "utf-8-sig", "utf-16")[seed % 3])
    for name in ("a", "b", "c", "y"):  # pandas leaves numbers with blanks around them, and with a comma in quotes, as texts
        frame[name] = [float(str(v).strip().replace(",", ".")) for v in frame[name]]
    assert model_of(path, missing="mean", numeric="a,b,c") == model_of(frame, missing="mean", numeric="a,b,c")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_files_and_pandas(tmp_path, seed, pack):
    rng = np.random.default_rng(seed)
    path = tmp_path / ("t.csv.gz" if pack is gzip.compress else "t.csv.xz")
    frame = pd.DataFrame({"agent": agents(rng), **random_columns(rng)})
    path.write_bytes(pack(frame.to_csv(index=False).encode()))
    assert model_of(path) == model_of(pd.read_csv(path, float_precision="round_trip"))


@pytest.mark.parametrize("seed", SEEDS)
def test_svmlight_and_scikit_learn(tmp_path, seed):
    from sklearn.datasets import dump_svmlight_file, load_svmlight_file
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, 5)) * (rng.random((ROWS, 5)) < .5)
    X[0] = 1  # so that every column occurs
    path, who = tmp_path / "t.svm", tmp_path / "who.csv"
    dump_svmlight_file(X, rng.normal(size=ROWS), str(path), zero_based=False, comment="ours\n1:2" if seed % 2 else None)
    pd.DataFrame({"agent": agents(rng)}).to_csv(who, index=False)
    read, y = load_svmlight_file(str(path), zero_based=False)
    names = [f"x{j}" for j in range(5)]
    frame = pd.DataFrame(read.toarray(), columns=names).assign(y=y, agent=pd.read_csv(who)["agent"])
    found, wanted = model_of(path, beside=[str(who)]), model_of(frame)
    assert found[0] == wanted[0] and found[2:] == wanted[2:]


# --- arrays ----------------------------------------------------------------------------------------------------------

TYPES = ("<f8", ">f8", "<f4", ">f4", "<i8", ">i4", "<i2", "u1", "<u2", ">u8", "?")


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", TYPES)
def test_npy_and_numpy(tmp_path, seed, kind):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(ROWS, 3)) * 50).astype(kind) if kind not in ("u1", "<u2", ">u8", "?") else rng.integers(0, 2 if kind == "?" else 200, (ROWS, 3)).astype(kind)
    path, who = tmp_path / "x.npy", tmp_path / "who.csv"
    np.save(path, np.asfortranarray(X) if seed % 2 else X)
    beside = pd.DataFrame({"agent": agents(rng), "y": rng.normal(size=ROWS)})
    beside.to_csv(who, index=False)
    frame = pd.DataFrame(np.load(path).astype(float), columns=["x0", "x1", "x2"]).assign(**{c: pd.read_csv(who, float_precision="round_trip")[c] for c in beside})
    found, wanted = model_of(path, beside=[str(who)]), model_of(frame)
    assert found[0] == wanted[0] and found[2:] == wanted[2:]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_and_numpy(tmp_path, seed, save):
    rng = np.random.default_rng(seed)
    path = tmp_path / "t.npz"
    save(path, agent=agents(rng), **random_columns(rng))
    assert model_of(path) == model_of({name: values for name, values in np.load(path).items()})


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("code, kind", [(0x08, "u1"), (0x09, "i1"), (0x0B, ">i2"), (0x0C, ">i4"), (0x0D, ">f4"), (0x0E, ">f8")])
def test_idx_and_numpy(tmp_path, seed, code, kind):
    rng = np.random.default_rng(seed)
    X = (rng.random((ROWS, 2, 2)) * 120).astype(kind)
    path, who = tmp_path / "a-idx3-ubyte", tmp_path / "who.csv"
    path.write_bytes(struct.pack(">HBB3I", 0, code, 3, *X.shape) + X.tobytes())
    beside = pd.DataFrame({"agent": agents(rng), "y": rng.normal(size=ROWS).round(3)})
    beside.to_csv(who, index=False)
    read = np.frombuffer(path.read_bytes(), dtype=kind, offset=16).reshape(ROWS, 4).astype(float)
    frame = pd.DataFrame(read, columns=["x0", "x1", "x2", "x3"]).assign(**beside)
    found, wanted = model_of(path, beside=[str(who)]), model_of(frame)
    assert found[0] == wanted[0] and found[2:] == wanted[2:]


@pytest.mark.parametrize("seed", SEEDS)
def test_leaf_and_json(tmp_path, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "leaf.json"
    users = {f"u{k}": {"x": rng.normal(size=(5 + k, 3)).tolist(), "y": rng.normal(size=5 + k).tolist()} for k in range(4)}
    path.write_text(json.dumps({"users": list(users), "num_samples": [5 + k for k in range(4)], "user_data": users}))
    read = json.loads(path.read_text())["user_data"]
    frame = pd.concat([pd.DataFrame(u["x"], columns=["x0", "x1", "x2"]).assign(y=u["y"], agent=name) for name, u in read.items()])
    found, wanted = model_of(path), model_of(frame.reset_index(drop=True))
    assert found[0] == wanted[0] and found[2:] == wanted[2:]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_parquet_and_pyarrow(tmp_path, seed, ending):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(seed)
    path = tmp_path / f"t.{ending}"
    frame = pd.DataFrame({"agent": agents(rng), **random_columns(rng)})
    frame["a"] = frame["a"].astype("float32")
    frame.loc[rng.random(ROWS) < .1, "b"] = np.nan
    frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    read = pd.read_parquet(path) if ending == "parquet" else pd.read_feather(path)
    assert model_of(path, missing="mean") == model_of(read, missing="mean")
