"""`affpcl report` and --report: where the page goes, and what is refused. The page itself is tested by report/test."""
import json
import shutil

import pytest

from _studies import SMALL

ROWS = "site,u,y\n" + "".join(f"{site},{i % 7},{i % 7 + i % 3}\n" for site in "ab" for i in range(30))


@pytest.fixture(scope="module")
def results(shared_affpcl):
    """The program beside the results a and b of runs, and m of a fit."""
    shared_affpcl.write("spec.toml", SMALL)
    shared_affpcl.write("rows.csv", ROWS)
    shared_affpcl.succeed("run", "spec.toml", "--out", "a", "--quiet")
    shared_affpcl.succeed("run", "spec.toml", "--seed", 4, "--out", "b", "--quiet")
    shared_affpcl.succeed("fit", "rows.csv", "--target", "y", "--out", "m", "--quiet")
    return shared_affpcl


@pytest.fixture(scope="module")
def built(results):
    """Whether the program was built with the page; a/report.html is made then."""
    return results.run("report", "a").returncode == 0


@pytest.fixture
def report(results, built):
    """The program, where it was built with the page."""
    if not built:
        pytest.skip("the program was built without the report page; tools/setup report gets what it needs")
    return results


# --- without the page ------------------------------------------------------------------------------------------------

@pytest.fixture
def no_report(results, built):
    """The program, where it was built without the page."""
    if built:
        pytest.skip("the program was built with the report page")
    return results


def test_without_the_page_report_says_how_to_get_it(no_report):
    no_report.refuse("report", "a", says=["tools/setup report", "AFFPCL_REPORT"])


def test_without_the_page_run_says_so_before_the_work(no_report):
    no_report.refuse("run", "spec.toml", "--out", "c", "--report", says=["tools/setup report"])


# --- where the page goes ---------------------------------------------------------------------------------------------

def test_the_page_is_in_the_folder(report):
    assert (report.folder / "a/report.html").exists()


def test_a_page_is_not_replaced(report):
    report.refuse("report", "a", says=["a/report.html", "--force"])


def test_force_replaces_a_page(report):
    assert report.run("report", "a", "--force").stdout == "page in a/report.html\n"


def test_two_results_have_a_page_of_their_own(report):
    assert report.run("report", "a", "b", "--out", "ab.html").stdout == "page in ab.html\n"


def test_the_page_is_all_that_is_written(report):
    before = set(report.files())
    report.succeed("report", "b", "--out", "b.html")
    assert set(report.files()) - before == {"b.html"}


def test_quiet_prints_nothing(report):
    assert report.succeed("report", "m", "--quiet").stdout == ""
    assert (report.folder / "m/report.html").exists()


@pytest.mark.parametrize("command", ["run spec.toml", "reproduce fig-specific --set run.replicates=2",
                                     "fit rows.csv --target y"])
def test_a_verb_makes_the_page(report, command):
    folder = "with-" + command.split()[0]
    assert f"page in {folder}/report.html" in report.succeed(*command.split(), "--out", folder, "--report").stdout
    assert (report.folder / folder / "report.html").exists()


def test_several_studies_have_a_page_each(report):
    report.succeed("reproduce", "fig-specific", "td-agents", "--set", "run.replicates=2", "--out", "two", "--report",
                   "--quiet")
    assert (report.folder / "two/fig-specific/report.html").exists()
    assert (report.folder / "two/td-agents/report.html").exists()


def test_json_is_still_json_alone(report):
    assert report.json("run", "spec.toml", "--out", "json", "--report")["headline"]
    assert (report.folder / "json/report.html").exists()


def test_numbers_too_small_for_their_digits(report):
    shutil.copytree(report.folder / "a", report.folder / "small")
    summary = report.read_json("small/summary.json")
    summary["settings"][0]["methods"][0]["mse"]["mean"] = 1e-310
    report.write("small/summary.json", json.dumps(summary))
    report.succeed("report", "small", "--out", "small.html")


# --- what is refused; each kind of damage: affpcl/output/page_test.cc -------------------------------------------------

@pytest.mark.parametrize("command, says", [
    ("run spec.toml --report", ["--report needs --out"]),
    ("report nowhere", ["nowhere"]),
    ("report spec.toml", ["spec.toml", "not a folder"]),
    ("report a m --out x.html", ["do not compare"]),
    ("report a b m", []),
    ("report a --out nowhere/x.html", ["nowhere/x.html"]),
    ("report a --out b", ["b"]),
])
def test_refused(report, command, says):
    report.refuse(*command.split(), says=says)


@pytest.fixture
def other(report):
    """The program beside an empty folder `other`."""
    (report.folder / "other").mkdir(exist_ok=True)
    (report.folder / "other/summary.json").unlink(missing_ok=True)
    return report


def test_a_folder_without_a_result_is_refused(other):
    other.refuse("report", "other", says=["other", "summary.json"])


def test_half_a_summary_is_refused(other):
    other.write("other/summary.json", '{"manifest": {')
    other.refuse("report", "other", says=["other/summary.json", "damaged"])


@pytest.mark.parametrize("result, lacks", [("a", "curves.csv"), ("m", "model.json")])
def test_half_a_result_is_refused(other, result, lacks):
    other.write("other/summary.json", other.read(f"{result}/summary.json"))
    other.refuse("report", "other", says=["other", lacks])


# --- the headline ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("command, result", [("run spec.toml", "a"), ("fit rows.csv --target y", "m")])
def test_the_last_line_printed_is_the_headline(results, command, result):
    printed = results.succeed(*command.split()).stdout
    assert printed.splitlines()[-1] == results.read_json(f"{result}/summary.json")["headline"]
