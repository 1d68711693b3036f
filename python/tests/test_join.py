"""Agents that join a centre later, from files and from tables in memory."""
import numpy as np
import pytest

import affpcl


def rows(seed, agents, count, first=0):
    rng = np.random.default_rng(seed)
    columns = {"shop": [], "u": [], "kind": [], "y": []}
    for i in range(agents):
        w = 1 + .5 * rng.normal(size=2)
        u = rng.normal(size=count)
        columns["shop"] += [f"shop{first + i}"] * count
        columns["u"] += u.tolist()
        columns["kind"] += [k % 3 for k in range(count)]  # numbers that are categories
        columns["y"] += (w[0] + w[1] * u + .5 * rng.normal(size=count)).tolist()
    return columns


@pytest.fixture(scope="module")
def centre():
    return affpcl.fit(rows(1, 10, 30), target="y", agent="shop", categorical="kind")


def test_a_table_in_memory_joins_as_a_file_does(centre, tmp_path):
    new = rows(2, 2, 15, first=10)
    lines = ["shop,u,kind,y"] + [",".join(map(str, row)) for row in zip(*new.values())]
    (tmp_path / "new.csv").write_text("\n".join(lines) + "\n")
    centre.save(tmp_path / "old")
    in_memory = affpcl.fit(new, centre=centre)
    from_file = affpcl.fit(tmp_path / "new.csv", centre=tmp_path / "old" / "centre.json")
    assert in_memory.model.agents == ["shop10", "shop11"]
    assert np.array_equal(in_memory.model.x, from_file.model.x)
    assert in_memory.gains["gain"].tolist() == from_file.gains["gain"].tolist()
    assert np.array_equal(in_memory.model.centre, centre.model.centre)


def test_rows_without_names_are_one_agent(centre):
    new = rows(3, 1, 15)
    del new["shop"]
    joined = affpcl.fit(new, centre=centre.model)
    assert len(joined.model.agents) == 1
    assert joined.predict(new)["prediction"].shape == (15,)


def test_a_centre_of_its_own_file_predicts_unseen_agents(centre, tmp_path):
    centre.save(tmp_path / "old")
    alone = affpcl.load_model(tmp_path / "old" / "centre.json")
    new = rows(3, 1, 15, first=20)
    assert alone.agents == []
    assert affpcl.predict(alone, new)["prediction"].tolist() == centre.predict(new)["prediction"].tolist()
    del new["shop"]
    assert affpcl.predict(alone, new)["prediction"].shape == (15,)


def test_what_joining_is_worth_before_and_after(centre):
    new = rows(4, 20, 12, first=10)
    expected = affpcl.affinity(new, centre=centre, pilot=1.0).agents
    assert (expected["predicted_gain_lo"] <= expected["predicted_gain"]).all()
    assert (expected["predicted_gain"] <= expected["predicted_gain_hi"]).all()
    found = affpcl.fit(new, centre=centre).gains
    assert found["gain"].mean() > 0 and expected["predicted_gain"].mean() > 0


@pytest.mark.parametrize("options", [{"features": ["u"]}, {"covariance": "full"}, {"categorical": "kind"}])
def test_what_the_centre_has_settled_is_refused(centre, options):
    with pytest.raises(ValueError, match="centre"):
        affpcl.fit(rows(3, 1, 15), centre=centre, **options)


def test_texts_in_a_column_of_numbers_are_refused(centre):
    new = rows(3, 1, 15) | {"u": ["much"] * 15}
    with pytest.raises(ValueError, match="'u' holds texts such as 'much'"):
        affpcl.fit(new, centre=centre)
