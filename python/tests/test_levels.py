"""A second factor, `within=` and `crossed=`, of files in Python."""
import json

import numpy as np
import pytest

import affpcl


@pytest.fixture(scope="module")
def pupils(tmp_path_factory):
    """A file of 30 pupils within 6 schools."""
    rng = np.random.default_rng(1)
    pupil = np.repeat(np.arange(30), 8)
    school = rng.normal(size=6)
    x = rng.normal(size=len(pupil))
    y = x + rng.normal(size=30)[pupil] + school[pupil % 6] + 0.5 * rng.normal(size=len(pupil))
    path = tmp_path_factory.mktemp("levels") / "pupils.csv"
    path.write_text("pupil,school,x,y\n" + "".join(f"{p},s{p % 6},{a},{b}\n" for p, a, b in zip(pupil, x, y)))
    return path


@pytest.mark.parametrize("how", ["within", "crossed"])
def test_the_model_has_the_effects_of_levels(pupils, how):
    found = affpcl.fit(pupils, target="y", agent="pupil", score=False, **{how: "school"})
    levels = json.loads(found.model.json())["levels"]
    assert (levels["how"], levels["column"]) == (how, "school")
    assert levels["names"] == [f"s{g}" for g in range(6)]
    assert found.to_dict()["levels"]["count"] == 6
    again = type(found.model).parse(found.model.json())
    assert again.predict_files([str(pupils)]) == found.model.predict_files([str(pupils)])


def test_options_are_refused_by_their_names(pupils):
    with pytest.raises(ValueError, match="within= and crossed= exclude each other"):
        affpcl.fit(pupils, target="y", agent="pupil", within="school", crossed="school")
