"""Private fits in Python, and their noise beside the accountant of dp-accounting (by privacy loss distributions)."""
import json
import math
import random
import subprocess

import pytest

import affpcl
from affpcl.federation import program


def test_rows_in_memory():
    draw = random.Random(1)
    rows = {"agent": [f"a{k % 4}" for k in range(2000)], "x": [draw.uniform(-1, 1) for _ in range(2000)]}
    rows["y"] = [0.5 * x + draw.gauss(0, 0.2) for x in rows["x"]]
    found = affpcl.fit(rows, target="y", privacy="epsilon=4,delta=1e-5", bounds="y=-1:1,x=-1:1")
    assert found.model.agents == ["a0", "a1", "a2", "a3"]
    with pytest.raises(ValueError, match="bounds"):
        affpcl.fit(rows, target="y", privacy="epsilon=4,delta=1e-5")


@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-6), (1, 1e-5), (4, 1e-5), (8, 1e-9)])
def test_noise_is_what_the_accountant_asks_for(tmp_path, epsilon, delta):
    accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting: pip install 'affpcl[privacy]'")
    from dp_accounting.pld import PLDAccountant

    (tmp_path / "t.csv").write_text("agent,x,y\n" + "".join(f"a{k % 2},{k % 7 / 7},{k % 5 / 5}\n" for k in range(4000)))
    command = [program(), "fit", "t.csv", "--target", "y", "--privacy", f"epsilon={epsilon},delta={delta}", "--bounds", "y=0:1,x=0:1", "--json"]
    spent = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=60).stdout)["privacy"]
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    accountant.compose(accounting.GaussianDpEvent(spent["noise_multiplier"]))
    assert accountant.get_delta(epsilon) == pytest.approx(delta, rel=0.02)
    least = accounting.calibrate_dp_mechanism(lambda: PLDAccountant(value_discretization_interval=1e-4), accounting.GaussianDpEvent,
                                              epsilon, delta)
    assert spent["noise_multiplier"] == pytest.approx(least, rel=2e-3)
    assert spent["noise"] >= spent["noise_multiplier"] * spent["sensitivity"]
    assert math.isclose(spent["noise"], spent["noise_multiplier"] * spent["sensitivity"], rel_tol=1e-6)
