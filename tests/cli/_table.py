"""A table for fit and predict: four agents of 30 rows, two numbers and a string column."""
import random

HEAD = "site,u,v,kind,y\n"


def rows():
    rng = random.Random(1)
    lines = []
    for site in "abcd":
        w = 1 + .3 * rng.gauss(0, 1)
        for k in range(30):
            u, v = rng.gauss(0, 1), rng.gauss(0, 1)
            y = w * u - v + .3 * (k % 3) + .3 * rng.gauss(0, 1)
            lines.append(f"{site},{u:.4f},{v:.4f},{'xyz'[k % 3]},{y:.4f}\n")
    return lines


ROWS = rows()
GOOD = HEAD + "".join(ROWS)


def with_classes():
    """The same table; its target says whether y is positive."""
    cells = [row.strip().split(",") for row in ROWS]
    return HEAD + "".join(",".join([*row[:4], "up" if float(row[4]) > 0 else "down"]) + "\n" for row in cells)
