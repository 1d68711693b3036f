"""Forty tables as people have them: what fit must make of each, or say about it."""
import bz2
import contextlib
import errno
import fcntl
import gzip
import lzma
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import termios
import threading

import pytest

from _wait import wait_until

AGENTS, ROWS = "abcd", 12


def cells(seed=3):
    """Rows of agent, u, v and y = u - 2 v + noise, as numbers."""
    rng = random.Random(seed)
    rows = []
    for agent in AGENTS:
        for _ in range(ROWS):
            u, v = rng.gauss(0, 1), rng.gauss(0, 1)
            rows.append([agent, round(u, 3) + .0005, round(v, 3) + .0005, round(u - 2 * v + rng.gauss(0, .1), 3) + .0005])
    return rows


CELLS = cells()


def table(separator=",", head="agent,u,v,y", decimal=".", end="\n", rows=CELLS, **more):
    """The rows as text; `more` are further columns, each a function of the row's number."""
    names = head.split(",") + list(more)
    lines = [separator.join(names)]
    for r, row in enumerate(rows):
        texts = [x if isinstance(x, str) else f"{x:.4f}".replace(".", decimal) for x in row]
        lines.append(separator.join(texts + [str(f(r)) for f in more.values()]))
    return end.join(lines) + end


PLAIN = table()
# What every reading of the same rows must find.
COLUMNS = ["intercept", "u", "v"]


def lines_with(changes, text=PLAIN):
    """The table with other lines: {3: "a,1,,2"}; the names are line 1."""
    lines = text.splitlines()
    for number, line in changes.items():
        lines[number - 1] = line
    return "\n".join(lines) + "\n"


GOOD = [  # name, content, options
    ("plain.csv", PLAIN, ""),
    ("semicolons.csv", table(";"), ""),
    ("tabs.txt", table("\t"), ""),
    ("bars.psv", table("|"), ""),
    ("german.csv", table(";", decimal=","), ""),
    ("german_tabs.csv", table("\t", decimal=","), ""),
    ("quoted_commas.csv", table(";", decimal=",").replace(",", "\x00").replace(";", '","').replace("\n", '"\n"')
     .replace("\x00", ",").join(['"', ""]).rstrip('"'), ""),
    ("excel.csv", "sep=;\r\n" + table(";", decimal=",", end="\r\n"), ""),
    ("commented.csv", "# from the lab\n# 2026\n" + PLAIN, ""),
    ("numpy.csv", "# " + table(rows=[["1234".__getitem__(AGENTS.index(r[0])), *r[1:]] for r in CELLS]), ""),
    ("inner_comments.csv", PLAIN.replace("\nb,", "\n% checked\nb,", 1), "--comment %"),
    ("preamble.csv", "Report of May\nall sites\n" + PLAIN, "--skip 2"),
    ("colons.csv", table(":"), "--sep :"),
    ("spaces.csv", table(" "), "--sep space"),
    ("bom.csv", b"\xef\xbb\xbf" + PLAIN.encode(), ""),
    ("utf16.csv", PLAIN.encode("utf-16"), ""),
    ("utf16be.csv", PLAIN.encode("utf-16-be"), ""),
    ("old_mac.csv", table(end="\r"), ""),
    ("blank_lines.csv", PLAIN.replace("\n", "\n\n"), ""),
    ("index.csv", "".join(f"{'' if k == 0 else k - 1},{line}\n" for k, line in enumerate(PLAIN.splitlines())), ""),
    ("pandas.csv", "".join(f"{'Unnamed: 0' if k == 0 else k - 1},{line}\n"
                           for k, line in enumerate(PLAIN.splitlines())), ""),
    ("ids.csv", table(order_id=lambda r: 1000 + r), ""),
    ("counted.csv", table(n=lambda r: 1 + r), ""),
    ("counted_down_by_ten.csv", table(n=lambda r: 5000 - 10 * r), ""),
    ("counted_with_gaps.csv", table(n=lambda r: "" if r % 7 == 3 else 1 + r), ""),
    ("long_ids.csv", table(key=lambda r: 9007199254740993 + r), ""),
    ("names.csv", table(person=lambda r: f"person {r}"), ""),
    ("constant.csv", table(country=lambda r: "NL"), ""),
    ("empty_column.csv", table(note=lambda r: ""), ""),
    ("packed.csv.gz", gzip.compress(PLAIN.encode()), ""),
    ("two_members.csv.gz", gzip.compress(PLAIN[:300].encode()) + gzip.compress(PLAIN[300:].encode()), ""),
    ("packed.csv.xz", lzma.compress(PLAIN.encode()), ""),
    ("no_target.csv", PLAIN + "a,1,2,\nb,1,2,NA\n", ""),
    ("spaced_thousands.csv", lines_with({2: "a,1 000 000.5,1,1"}), ""),
    ("swiss.csv", lines_with({2: "a,1'000'000.5,1,1"}), ""),
    ("thousands.csv", lines_with({2: 'a,"1,000,000.5",1,1'}), ""),
]


@pytest.mark.parametrize("name, content, options", [pytest.param(*case, id=case[0]) for case in GOOD])
def test_the_same_columns(affpcl, name, content, options):
    affpcl.write(name, content)
    affpcl.succeed("fit", name, "--target", "y", "--agent", "agent", "--out", "m", "--no-score", *options.split())
    model = affpcl.read_json("m/model.json")
    assert model["coefficients"] == COLUMNS
    assert len(model["agents"]) == len(AGENTS)
    assert sum(agent["rows"] for agent in model["agents"]) == len(CELLS)
    affpcl.succeed("predict", "m", name, "--out", "p.csv")  # by the same rules


COLUMNS_OF = [  # name, content, options, coefficients, in the notes
    ("latin1.csv", table(stadt=lambda r: ["Köln", "Bonn"][r % 2]).encode("latin-1"), "", ["stadt=Köln"], "latin-1"),
    ("children.csv", table(children=lambda r: ["0", "1", "2", "3+"][r % 4]), "",
     ["children=1", "children=2", "children=3+"], "categories"),
    ("codes.csv", table(code=lambda r: r % 3), "--categorical code", ["code=1", "code=2"], "categories"),
    ("dates.csv", table(day=lambda r: f"2026-{1 + r % 12:02}-{1 + r % 28:02}"), "", ["day"], "dates"),
    ("german_dates.csv", table(day=lambda r: f"{1 + r % 28:02}.{1 + r % 12:02}.2026"), "", ["day"], "dates"),
    ("blanks.csv", table(w=lambda r: ["", r % 5][r % 3 > 0]), "--missing w=indicator", ["w", "w=missing"], "marked"),
    ("filled.csv", table(w=lambda r: ["N/A", r % 5][r % 3 > 0]), "--missing mean", ["w"], "mean"),
    ("cities.csv", table(city=lambda r: f"city {r % 24}"), "--levels 30",
     [f"city=city {k}" for k in sorted(range(24), key=lambda k: f"city {k}")][1:], "categories"),
    ("minus99.csv", table(w=lambda r: -99 if r % 5 == 0 else r % 4), "--na -99 --missing mean", ["w"], "mean"),
    ("spaced.csv", table(income=lambda r: f"{1 + r % 9}\u202f{100 + r}"), "", ["income"], "numbers"),
    ("few_values.csv", table(region=lambda r: 1 + r % 5), "", ["region"], "if they are codes"),
    ("said_numbers.csv", table(region=lambda r: 1 + r % 5), "--numeric region", ["region"], "numbers"),
    ("counted_but_wanted.csv", table(n=lambda r: 1 + r), "--numeric n", ["n"], "numbers"),
    ("counted_by_agent.csv", table(n=lambda r: 1 + r % ROWS), "", ["n"], "numbers"),
    ("almost_counted.csv", table(n=lambda r: 1 + r + (r == 30)), "", ["n"], "numbers"),
    ("one_agent.csv", table(n=lambda r: 1 + r, rows=[["a", *row[1:]] for row in CELLS]), "", ["n"], "numbers"),
    ("comma_name.csv", table().replace("agent,u", 'agent,"u, in m"').replace("u, in m", "u, in m"),
     '--exclude "u,_in_m"', None, "numbers"),
]


@pytest.mark.parametrize("name, content, options, more, note", [pytest.param(*case, id=case[0]) for case in COLUMNS_OF])
def test_what_a_column_becomes(affpcl, name, content, options, more, note):
    affpcl.write(name, content)
    words = [word.replace("_", " ") for word in options.split()]
    words = ['"u, in m"' if word == '"u, in m"' else word for word in words]
    affpcl.succeed("fit", name, "--target", "y", "--out", "m", "--no-score", *words)
    found = affpcl.read_json("m/model.json")["coefficients"]
    assert found == (["intercept", "v"] if more is None else COLUMNS + more)
    assert any(note in text for text in affpcl.read_json("m/summary.json")["notes"])
    affpcl.succeed("predict", "m", name, "--out", "p.csv")


REFUSED = [  # name, content, phrases
    ("nul.csv", lines_with({4: "a,1,\0,2"}).encode(), ["line 4", "'v'", "zero byte"]),
    ("mixed.csv", (table(t=lambda r: "é") + "d,1,2,3,").encode() + b"caf\xe9\n", ["'t'", "no UTF-8"]),
    ("unclear.txt", table("\t", w=lambda r: f"{1 + r % 9},{100 + r}").replace(".", "."), ["'w'", "--decimal"]),
    ("american.csv", table(day=lambda r: f"{1 + r % 12}/{1 + r % 12}/2026"), ["'day'", "day or the month"]),
    ("many_texts.csv", table(city=lambda r: f"city {r % 24}"), ["'city'", "24", "--levels"]),
    ("slip.csv", lines_with({5: "a,one,2,3"}), ["line 5", "'u'", "one"]),
    ("percent.csv", table(rate=lambda r: f"{r}%"), ["'rate'", "'%'", "'0%'", "--categorical rate"]),
    ("dollars.csv", table(price=lambda r: f"${r}.50"), ["'price'", "'$'"]),
    ("euros.csv", table(";", decimal=",", price=lambda r: f"{r % 7},50 €"), ["'price'", "'€'"]),
    ("weights.csv", table(weight=lambda r: f"{50 + r} kg"), ["'weight'", "'kg'"]),
    ("slips.csv", lines_with({5: "a,one,2,3", 8: "a,two,2,3"}), ["line 5", "'u'", "one", "with 1 more"]),
    ("slipped_date.csv", table(day=lambda r: "14.O1.2026" if r == 5 else f"{1 + r % 28:02}.{1 + r // 28:02}.2026"),
     ["line 7", "'day'", "14.O1.2026", "no date", "47 dates", "--exclude day"]),
    ("titled.csv", "Report of May,,,\nall sites,,,\n" + PLAIN, ["no column 'agent'", "--skip 2"]),
    ("too_large.csv", lines_with({5: "a,1e999,2,3"}), ["line 5", "'1e999'", "64 bits"]),
    ("nameless.csv", "\n".join(PLAIN.splitlines()[1:]), ["no column 'agent'", "first line holds values"]),
    ("book.xlsx", b"PK\x03\x04" + bytes(40), ["CSV or Parquet"]),
    ("book.xls", b"\xd0\xcf\x11\xe0" + bytes(40), ["CSV or Parquet"]),
    ("packed.csv.bz2", bz2.compress(PLAIN.encode()), ["bunzip2"]),
    ("half.csv.gz", gzip.compress(PLAIN.encode())[:200], ["cut off"]),
    ("damaged.csv.gz", gzip.compress(PLAIN.encode())[:60] + b"!!!!" + gzip.compress(PLAIN.encode())[64:], ["damaged"]),
    ("page.csv", "<!DOCTYPE html><p>404\n", ["web page"]),
    ("no_agent.csv", lines_with({3: ",1,2,3"}), ["line 3", "'agent'", "--missing drop"]),
]


@pytest.mark.parametrize("name, content, says", [pytest.param(*case, id=case[0]) for case in REFUSED])
def test_what_is_refused(affpcl, name, content, says):
    affpcl.write(name, content)
    affpcl.refuse("fit", name, "--target", "y", "--agent", "agent", "--out", "m", says=[name, *says])


def test_all_problems_at_once(affpcl):
    affpcl.write("bad.csv", lines_with({3: "a,one,2,3", 4: "a,1,,3"}))
    done = affpcl.run("fit", "bad.csv", "--target", "y")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0] == "affpcl: 2 problems"
    assert "line 3, column 'u': 'one' is not a number" in lines[1]
    assert "line 4, column 'v': the value is missing" in lines[2]


def test_a_slip_does_not_hide_a_blank_of_its_column(affpcl):
    affpcl.write("bad.csv", lines_with({3: "a,one,2,3", 4: "a,,2,3"}))
    said = affpcl.run("fit", "bad.csv", "--target", "y").stderr
    assert "line 3, column 'u': 'one' is not a number" in said
    assert "line 4, column 'u': the value is missing" in said


def test_ragged_rows_are_listed(affpcl):
    affpcl.write("ragged.csv", lines_with({3: "a,1", 7: "a,1,2,3,4"}))
    said = affpcl.run("fit", "ragged.csv", "--target", "y").stderr
    assert "line 3" in said
    assert "line 7" in said


def test_rows_without_an_agent_are_dropped(affpcl):
    affpcl.write("no_agent.csv", PLAIN + ",1,2,3\n")
    notes = affpcl.json("fit", "no_agent.csv", "--target", "y", "--missing", "drop")["notes"]
    assert "1 row names no agent and was left out" in notes


def test_rows_without_a_target_are_counted(affpcl):
    affpcl.write("t.csv", PLAIN + "a,1,2,\nb,1,2,null\n")
    assert "2 rows have no target and were left out" in affpcl.json("fit", "t.csv", "--target", "y")["notes"]


def test_a_target_and_an_agent_alone(affpcl):
    affpcl.write("two.csv", "agent,y\n" + "".join(f"{r[0]},{r[3]}\n" for r in CELLS))
    affpcl.succeed("fit", "two.csv", "--target", "y", "--out", "m")
    assert affpcl.read_json("m/model.json")["coefficients"] == ["intercept"]
    affpcl.succeed("predict", "m", "two.csv", "--out", "p.csv")


def test_one_agent_learns_with_nobody(affpcl):
    affpcl.write("one.csv", table(rows=[r for r in CELLS if r[0] == "a"]))
    headline = affpcl.json("fit", "one.csv", "--target", "y")["headline"]
    assert "together" not in headline
    assert "one agent" in headline


def test_new_rows_lack_columns(affpcl):
    affpcl.write("plain.csv", PLAIN)
    affpcl.write("new.csv", "agent,w\na,1\n")
    affpcl.succeed("fit", "plain.csv", "--target", "y", "--out", "m", "--no-score")
    affpcl.refuse("predict", "m", "new.csv", says=["2 columns", "'u', 'v'"])


def test_a_new_level_is_named(affpcl):
    affpcl.write("t.csv", table(kind=lambda r: "xyz"[r % 3]))
    affpcl.write("new.csv", "agent,u,v,kind\na,1,1,x\na,1,1,w\n")
    affpcl.succeed("fit", "t.csv", "--target", "y", "--out", "m", "--no-score")
    said = affpcl.succeed("predict", "m", "new.csv").stderr
    assert "line 3, column 'kind': 'w' was not in the fitted rows" in said


def test_predictions_have_the_decimal_mark_of_the_rows(affpcl):
    affpcl.write("de.csv", table(";", decimal=","))
    affpcl.succeed("fit", "de.csv", "--target", "y", "--out", "m", "--no-score")
    assert "." not in affpcl.succeed("predict", "m", "de.csv").stdout


@pytest.mark.parametrize("place", ["-", "/dev/stdin"])
def test_standard_input(affpcl, place):
    affpcl.succeed("fit", place, "--target", "y", "--out", "m", "--no-score", input=PLAIN)
    assert affpcl.read_json("m/model.json")["coefficients"] == COLUMNS


def test_a_pipe_with_a_packed_table(affpcl):
    os.mkfifo(affpcl.folder / "pipe")
    writer = threading.Thread(target=(affpcl.folder / "pipe").write_bytes, args=[gzip.compress(PLAIN.encode())])
    writer.start()
    affpcl.succeed("fit", "pipe", "--target", "y", "--out", "m", "--no-score")
    writer.join()
    assert affpcl.read_json("m/model.json")["coefficients"] == COLUMNS


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("place", ["pipe", "-"])
def test_a_pipe_without_an_end_is_interrupted(affpcl, place, sent):
    os.mkfifo(affpcl.folder / "pipe")
    process = affpcl.start("fit", place, "--target", "y", "--out", "m", stdin=subprocess.PIPE)
    with begun_to_read(process, affpcl.folder / "pipe" if place == "pipe" else None):
        interrupt(process, sent)
    assert not (affpcl.folder / "m").exists()


@contextlib.contextmanager
def begun_to_read(process, pipe):
    """Inside, the process reads the pipe (None: its standard input), whose writing end stays open."""
    end = process.stdin.fileno() if pipe is None else opened_for_writing(pipe)
    try:
        os.write(end, b"agent,y\n")
        assert wait_until(lambda: struct.unpack("i", fcntl.ioctl(end, termios.FIONREAD, b"\0" * 4))[0] == 0)
        yield
    finally:
        process.stdin.close()
        if pipe is not None:
            os.close(end)


def opened_for_writing(pipe):
    """The pipe's writing end, once something reads it."""
    found = []

    def opened():
        try:
            found.append(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as e:
            assert e.errno == errno.ENXIO  # no reader yet
        return found

    assert wait_until(opened), "the pipe was never opened for reading"
    return found[0]


def interrupt(process, sent):
    process.send_signal(sent)
    process.wait(timeout=60)  # 2 s on a machine that is not busy; without the signal it waits for ever
    assert process.returncode == 130


@pytest.mark.skipif(not shutil.which("zstd"), reason="there is no zstd to pack with")
def test_zstd(affpcl):
    affpcl.write("t.csv", PLAIN)
    subprocess.run(["zstd", "-q", affpcl.folder / "t.csv"], check=True)
    affpcl.succeed("fit", "t.csv.zst", "--target", "y", "--out", "m", "--no-score")
    assert affpcl.read_json("m/model.json")["coefficients"] == COLUMNS


@pytest.mark.parametrize("ending", ["parquet", "feather"])
def test_parquet_and_feather(affpcl, ending):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet
    names = ["agent", "u", "v", "y"]
    rows = pa.table({name: [row[k] for row in CELLS] for k, name in enumerate(names)})
    path = str(affpcl.folder / f"t.{ending}")
    pyarrow.parquet.write_table(rows, path) if ending == "parquet" else pyarrow.feather.write_feather(rows, path)
    affpcl.succeed("fit", f"t.{ending}", "--target", "y", "--out", "m", "--no-score",
                   env={**os.environ, "AFFPCL_PYTHON": sys.executable})
    assert affpcl.read_json("m/model.json")["coefficients"] == COLUMNS


def test_parquet_without_pyarrow_says_what_to_install(affpcl):
    affpcl.write("t.parquet", b"PAR1\x15\x00" + bytes(40))
    done = affpcl.run("fit", "t.parquet", "--target", "y", env={"PATH": "/nowhere"})
    assert done.returncode == 2
    assert "pip install pyarrow" in done.stderr or "pyarrow" in done.stderr
