"""What `affpcl run` and `affpcl fit` show on a terminal: bars and colours, within its width, aligned."""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import termios

import pytest

from _studies import SMALL

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMANDS = {"run": f"run {ROOT}/examples/demo.toml --set run.replicates=4",
            "fit": f"fit {ROOT}/examples/shops.csv --target sales --agent shop"}


def read_all(terminal):
    """What is written to a terminal until its last writer ends."""
    text = b""
    while True:
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            return text
        if not piece:
            return text
        text += piece


@pytest.fixture
def show(affpcl):
    """What the program prints to a terminal of some width, with changes to the environment."""
    def call(width, command, **environment):
        lead, follow = pty.openpty()
        fcntl.ioctl(follow, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        kept = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
        process = affpcl.start(*command.split(), stdout=follow, stderr=subprocess.DEVNULL,
                               env={**kept, "TERM": "xterm", **environment})
        os.close(follow)
        text = read_all(lead)
        process.wait()
        os.close(lead)
        return text.decode().replace("\r\n", "\n")

    return call


def plain(text):
    """A text without colours."""
    return re.sub("\x1b\\[[0-9;]*m", "", text)


def test_a_pipe_gets_neither_colours_nor_bars(affpcl):
    affpcl.write("spec.toml", SMALL)
    printed = affpcl.succeed("run", "spec.toml").stdout
    assert "independent" in printed
    assert not re.search("[\x1b▉-▏█▶│]", printed)


@pytest.mark.parametrize("width", [72, 80, 100, 130])
@pytest.mark.parametrize("verb", COMMANDS)
def test_rows_fit_the_terminal(show, verb, width):
    text = plain(show(width, COMMANDS[verb]))
    rows = [line for line in text.splitlines() if re.match(r"  [* ] \w+ +[\d.e-]+ |  [A-Z]\w+ +\d+ ", line)]
    assert rows
    assert max(map(len, rows)) <= width


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_wide_terminal_has_bars_and_colours(show, verb):
    text = show(130, COMMANDS[verb])
    assert "█" in text
    assert "\x1b[1m" in text


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=["NO_COLOR", "TERM=dumb"])
@pytest.mark.parametrize("verb", COMMANDS)
def test_colours_can_be_turned_off(show, verb, environment):
    text = show(130, COMMANDS[verb], **environment)
    assert text
    assert "\x1b[1m" not in text


def test_a_bar_ends_where_independent_is(show):
    """It is full at 1, with an arrow beyond."""
    lines = plain(show(130, COMMANDS["run"])).splitlines()[-40:]
    rows = [line.split() for line in lines if re.match(r"    (independent|fedavg) ", line)]
    bars = {row[0]: row[-1] for row in rows}
    assert re.fullmatch("█+│", bars["independent"])
    assert bars["fedavg"].endswith("▶")


def test_a_long_name_is_cut_between_letters_and_stays_aligned(affpcl, show):
    name = "ährenfeld, größer als dreißig Zeichen, ganz bestimmt"
    affpcl.write("wide.toml", SMALL.replace('kind = "affpcl"', f'kind = "affpcl"\nname = "{name}"'))
    text = plain(show(100, "run wide.toml"))
    assert "…" in text
    assert "\ufffd" not in text
    assert len({line.index("[") for line in text.splitlines() if re.match(r"  [* ] \S.*\[", line)}) == 1
