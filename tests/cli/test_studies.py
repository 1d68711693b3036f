"""Every claim of every embedded study holds at the committed seed, and every study has its README.

The ranges and their false-alarm rates: docs/decisions/008-claims.md.
"""
import pathlib

import pytest

STUDIES = pathlib.Path(__file__).resolve().parents[2] / "studies"
FOLDERS = sorted(path.name for path in STUDIES.iterdir() if path.is_dir())
SPECS = [name for name in FOLDERS if (STUDIES / name / "spec.toml").exists()]
# The data of fig-real are made with libtorch (make features); test_fig_real.py has others.
WITH_DATA = [name for name in SPECS if name.startswith("fig-real")]


def test_every_spec_is_embedded(affpcl_at_root):
    assert sorted(study["name"] for study in affpcl_at_root.json("list")["studies"]) == SPECS


@pytest.mark.parametrize("name", FOLDERS)
def test_a_study_has_a_readme(name):
    assert (STUDIES / name / "README.md").exists()


@pytest.mark.parametrize("name", [name for name in FOLDERS if name not in SPECS])
def test_a_study_without_a_spec_is_a_script(name):
    assert list((STUDIES / name).glob("*.py"))


@pytest.mark.parametrize("name", WITH_DATA)
def test_a_study_says_that_it_needs_data(affpcl, name):
    affpcl.refuse("reproduce", name, says=["--data"])


@pytest.fixture(scope="module", params=[name for name in SPECS if name not in WITH_DATA])
def result(request, affpcl_at_root):
    return affpcl_at_root.json("reproduce", request.param, timeout=600)


def test_a_study_is_complete(result):
    assert result["manifest"]["complete"]


def test_a_study_makes_claims(result):
    assert len(result["claims"]) >= 2


def test_every_claim_holds(result):
    assert [claim for claim in result["claims"] if not claim["holds"]] == []


def test_every_claim_can_fail(result):
    """Its range is bounded."""
    assert [claim for claim in result["claims"] if not claim["hi"] - claim["lo"] < 1e3] == []
