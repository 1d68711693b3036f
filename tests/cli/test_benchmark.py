"""`affpcl reproduce benchmark`: rows, files and refusals, on a part of its plan."""
import json

PART = ["reproduce", "benchmark", "--problem", "tabular", "--method", "fedavg", "--method", "ditto"]


def test_every_method_has_a_row_in_every_cell(affpcl):
    result = affpcl.json(*PART)
    cells = {(row["level"], row["method"]) for row in result["rows"] if not row["tuned"]}
    assert cells == {(level, method) for level in (0, 0.3, 0.8) for method in ("fedavg", "ditto")}
    for row in result["rows"]:
        assert row["vs_independent"]["lo"] <= row["vs_independent"]["mean"] <= row["vs_independent"]["hi"]
        assert 0 <= row["harmed"] <= 1
    by_cell = {(row["level"], row["method"]): row["vs_independent"]["mean"] for row in result["rows"] if not row["tuned"]}
    assert by_cell[0, "fedavg"] < 1 < by_cell[0.8, "fedavg"]


def test_the_folder_has_the_numbers_and_the_page(affpcl):
    affpcl.succeed(*PART, "--out", "result", "--report", "--quiet")
    folder = affpcl.folder / "result"
    rows = json.loads((folder / "benchmark.json").read_text())["rows"]
    page = (folder / "report.html").read_text()
    assert len(rows) % 6 == 0 and "benchmark" in page and '"ditto"' in page


def test_a_search_writes_its_choice_and_its_command(affpcl):
    affpcl.succeed(*PART, "--tune", "tuned.json", "--quiet")
    tuned = json.loads((affpcl.folder / "tuned.json").read_text())
    assert "--tune" in tuned["command"]
    assert set(tuned["parameters"]) <= {"tabular"}


def test_what_it_refuses(affpcl):
    affpcl.refuse("reproduce", "benchmark", "--method", "fedavgg", says=["fedavgg", "fedavg"])
    affpcl.refuse("reproduce", "benchmark", "--problem", "tabuler", says=["problem"])
    affpcl.refuse("reproduce", "benchmark", "fig-specific", says=["benchmark"])
    affpcl.refuse("reproduce", "benchmark", "--set", "run.steps=3", says=["--set"])
    affpcl.refuse("reproduce", "benchmark", "--full", says=["--data"])
    affpcl.refuse("reproduce", "fig-specific", "--method", "fedavg", says=["--method", "benchmark"])
