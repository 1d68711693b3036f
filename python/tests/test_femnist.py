"""tools/features/femnist.py: the Parquet files of FEMNIST to images and labels."""
import io
import pathlib
import struct
import subprocess
import sys

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")
Image = pytest.importorskip("PIL.Image")

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tools" / "features" / "femnist.py"


def png(value, size=28):
    out = io.BytesIO()
    Image.fromarray(np.full((size, size), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


def convert(*words):
    return subprocess.run([sys.executable, SCRIPT, *map(str, words)], capture_output=True, text=True)


def write(path, **columns):
    parquet.write_table(pa.table(columns), path)


def test_images_and_labels(tmp_path):
    """Two files, images as structs and as bytes, classes as numbers and as characters, the writers with most images."""
    write(tmp_path / "a.parquet", image=[{"bytes": png(10), "path": None}, {"bytes": png(20), "path": None}],
          writer_id=["w1", "w2"], character=[0, 61])
    write(tmp_path / "b.parquet", image=[png(30, 14), png(40), png(50)], writer_id=["w1", "w3", "w1"], character=["A", "a", "9"])
    done = convert(tmp_path / "a.parquet", tmp_path / "b.parquet", "--out", tmp_path / "out", "--writers", 2)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "labels.csv").read_text() == "agent,class\nw1,0\nw1,10\nw1,9\nw2,61\n"
    data = (tmp_path / "out" / "images-idx3-ubyte").read_bytes()
    assert struct.unpack(">IIII", data[:16]) == (0x803, 4, 28, 28)
    assert [data[16 + 784 * k] for k in range(4)] == [10, 30, 50, 20]
    assert len(data) == 16 + 4 * 784


@pytest.mark.parametrize("columns, words", [
    (dict(image=[png(1)], writer_id=["w"]), ("no column character", "image, writer_id")),
    (dict(image=[png(1)], writer_id=["w"], character=[62]), ("62", "from 0 to 61")),
    (dict(image=[png(1)], writer_id=["w"], character=["?"]), ("'?'",)),
])
def test_bad_files_get_one_sentence(tmp_path, columns, words):
    write(tmp_path / "x.parquet", **columns)
    done = convert(tmp_path / "x.parquet", "--out", tmp_path / "out")
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    for word in words:
        assert word in done.stderr


def test_a_file_that_is_not_parquet(tmp_path):
    (tmp_path / "x.parquet").write_text("no")
    done = convert(tmp_path / "x.parquet", "--out", tmp_path / "out")
    assert done.returncode == 1 and "cannot be read as Parquet" in done.stderr
