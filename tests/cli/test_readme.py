"""The README is true: its tables are what the program prints; its verbs, make targets and links exist."""
import math
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGES = ["README.md", "HACKING.md", "CONTRIBUTING.md", "docs/decisions/README.md", *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md") if page.parent.name != "decisions")]
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
COMMANDS = re.findall(r"^```\naffpcl (.*)\n```$", README, re.M)
FIT = next(command for command in COMMANDS if command.startswith("fit"))
VERBS = sorted(set(re.findall(r"`affpcl ([a-z]+)", README)))


def shown_table(mark):
    """The lines of the code block that has these words."""
    block = next(block for block in re.findall(r"```\n(.*?)```", README, re.S) if mark in block)
    return [line for line in block.splitlines() if not line.startswith(("results in", "page in"))]


def words_of(line):
    return NUMBER.sub("", line).split()


def numbers_of(line):
    return [float(number) for number in NUMBER.findall(line)]


@pytest.mark.parametrize("mark, command", [("* affpcl", "run examples/demo.toml"), ("on held-out rows", FIT)],
                         ids=["demo", "fit"])
def test_a_table_is_what_the_program_prints(affpcl_at_root, mark, command):
    """The same words, and numbers within 1 %: the last bits depend on the instruction set."""
    shown, printed = shown_table(mark), affpcl_at_root.succeed(*command.split()).stdout.splitlines()
    assert [words_of(line) for line in shown] == [words_of(line) for line in printed]
    for a, b in zip(shown, printed):
        assert len(numbers_of(a)) == len(numbers_of(b))
        assert all(math.isclose(x, y, rel_tol=.01) for x, y in zip(numbers_of(a), numbers_of(b))), (a, b)


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_a_command_runs(affpcl_at_root, command):
    assert affpcl_at_root.succeed(*command.split()).stdout


def test_verbs_are_found():
    assert "run" in VERBS


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_is_in_help(affpcl_at_root, verb):
    assert verb in [line.split()[0] for line in affpcl_at_root.succeed("--help").stdout.splitlines() if line.split()]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_has_an_example(affpcl_at_root, verb):
    assert "xample" in affpcl_at_root.succeed(verb, "--help").stdout


@pytest.mark.parametrize("page, link", [(page, link) for page in PAGES
                                        for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text())])
def test_a_link_leads_somewhere(page, link):
    assert ((ROOT / page).parent / link).exists()


@pytest.mark.parametrize("target", re.findall(r"^make (\w+)", README, re.M))
def test_a_make_target_exists(target):
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
