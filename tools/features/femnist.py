#!/usr/bin/env python3
"""FEMNIST as Parquet files to what `make features` reads: images-idx3-ubyte and labels.csv (agent, class).

usage: femnist.py FILE.parquet… --out DIR [--writers N]

The columns are those of the files people download: image (PNG bytes, or a struct with `bytes`), writer_id, character (0 to
61, or the character itself: digits, capitals, small letters). --writers keeps the N writers with most images (default 60:
ten become agents, the others train the network). Needs pyarrow and Pillow (pip install pyarrow pillow).
"""
import argparse
import collections
import io
import pathlib
import string
import struct
import sys

SIDE = 28
CLASSES = string.digits + string.ascii_uppercase + string.ascii_lowercase
COLUMNS = ("image", "writer_id", "character")


def fail(sentence):
    sys.exit(f"femnist.py: {sentence}")


def class_of(character):
    """0 to 61, in LEAF's order."""
    if isinstance(character, str) and len(character) == 1 and character in CLASSES:
        return CLASSES.index(character)
    if isinstance(character, int) and 0 <= character < len(CLASSES):
        return character
    fail(f"character {character!r} is neither one of {CLASSES} nor a number from 0 to {len(CLASSES) - 1}")


def read(path):
    """(writer, class, PNG bytes) of every row."""
    import pyarrow.parquet as parquet
    try:
        file = parquet.ParquetFile(path)
    except Exception as error:  # pyarrow has many
        fail(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}")
    missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
    if missing:
        fail(f"{path} has no column {missing[0]}; it has {', '.join(file.schema_arrow.names)}")
    for batch in file.iter_batches(columns=list(COLUMNS)):
        for row in batch.to_pylist():
            image = row["image"]
            yield str(row["writer_id"]), class_of(row["character"]), image["bytes"] if isinstance(image, dict) else image


def pixels(png):
    from PIL import Image
    image = Image.open(io.BytesIO(png)).convert("L")
    return (image if image.size == (SIDE, SIDE) else image.resize((SIDE, SIDE))).tobytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--out", required=True)
    parser.add_argument("--writers", type=int, default=60)
    options = parser.parse_args()
    try:
        import PIL.Image  # noqa: F401
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        fail(f"{error.name} is missing: pip install pyarrow pillow")
    by_writer = collections.defaultdict(list)
    for path in options.files:
        for writer, label, png in read(path):
            by_writer[writer].append((label, png))
    most = sorted(by_writer, key=lambda w: (-len(by_writer[w]), w))[:options.writers]
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = sum(len(by_writer[w]) for w in most)
    with open(out / "images-idx3-ubyte", "wb") as images, open(out / "labels.csv", "w") as labels:
        images.write(struct.pack(">IIII", 0x803, rows, SIDE, SIDE))
        labels.write("agent,class\n")
        for writer in most:
            for label, png in by_writer[writer]:
                images.write(pixels(png))
                labels.write(f"{writer},{label}\n")
    print(f"{rows} images of {len(most)} writers in {out}; next:\n"
          f"  make features IMAGES={out}/images-idx3-ubyte FEATURES='--with {out}/labels.csv'")


if __name__ == "__main__":
    main()
