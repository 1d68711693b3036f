"""`affpcl fit --estimate`: maximum likelihood and restricted maximum likelihood, beside lme4, and what is refused."""
import math
import re

import pytest

# lme4's table sleepstudy (Belenky et al. 2003): a subject, and its reaction times on days 0 to 9.
SLEEP = """\
308 249.5600 258.7047 250.8006 321.4398 356.8519 414.6901 382.2038 290.1486 430.5853 466.3535
309 222.7339 205.2658 202.9778 204.7070 207.7161 215.9618 213.6303 217.7272 224.2957 237.3142
310 199.0539 194.3322 234.3200 232.8416 229.3074 220.4579 235.4208 255.7511 261.0125 247.5153
330 321.5426 300.4002 283.8565 285.1330 285.7973 297.5855 280.2396 318.2613 305.3495 354.0487
331 287.6079 285.0000 301.8206 320.1153 316.2773 293.3187 290.0750 334.8177 293.7469 371.5811
332 234.8606 242.8118 272.9613 309.7688 317.4629 309.9976 454.1619 346.8311 330.3003 253.8644
333 283.8424 289.5550 276.7693 299.8097 297.1710 338.1665 332.0265 348.8399 333.3600 362.0428
334 265.4731 276.2012 243.3647 254.6723 279.0244 284.1912 305.5248 331.5229 335.7469 377.2990
335 241.6083 273.9472 254.4907 270.8021 251.4519 254.6362 245.4523 235.3110 235.7541 237.2466
337 312.3666 313.8058 291.6112 346.1222 365.7324 391.8385 404.2601 416.6923 455.8643 458.9167
349 236.1032 230.3167 238.9256 254.9220 250.7103 269.7744 281.5648 308.1020 336.2806 351.6451
350 256.2968 243.4543 256.2046 255.5271 268.9165 329.7247 379.4445 362.9184 394.4872 389.0527
351 250.5265 300.0576 269.8939 280.5891 271.8274 304.6336 287.7466 266.5955 321.5418 347.5655
352 221.6771 298.1939 326.8785 346.8555 348.7402 352.8287 354.4266 360.4326 375.6406 388.5417
369 271.9235 268.4369 257.2424 277.6566 314.8222 317.2135 298.1353 348.1229 340.2800 366.5131
370 225.2640 234.5235 238.9008 240.4730 267.5373 344.1937 281.1481 347.5855 365.1630 372.2288
371 269.8804 272.4428 277.8989 281.7895 279.1705 284.5120 259.2658 304.6306 350.7807 369.4692
372 269.4117 273.4740 297.5968 310.6316 287.1726 329.6076 334.4818 343.2199 369.1417 364.1236
"""
# lme4 1.1-31, lmer(Reaction ~ z + (z || Subject)) with the standardised days z: log-likelihood, variances of intercepts,
# slopes and noise, AIC, BIC.
LME4 = {"reml": (-875.7193, [1408.729, 289.340], 654.941, 1761.44, 1777.40),
        "ml": (-881.2217, [1326.829, 269.628], 654.941, 1772.44, 1788.41)}


def sleep_table():
    lines = ["subject,day,reaction"]
    for line in SLEEP.splitlines():
        subject, *times = line.split()
        lines += [f"s{subject},{day},{time}" for day, time in enumerate(times)]
    return "\n".join(lines) + "\n"


def levels_table():
    """Agents within schools, who also meet rooms; sums of digits stand in for effects and noise."""
    lines = ["agent,school,room,x,y,count"]
    for i in range(24):
        for r in range(6):
            x = (7 * i + 3 * r) % 11 / 5 - 1
            effects = i * i % 7 / 3 + 2 * (i % 6 * 5 % 7) / 3 + (i + r) % 5 / 2
            y = effects + (1 + i % 4 / 2) * x + ((5 * i + 7 * r) % 13 - 6) / 10
            lines.append(f"a{i},school {i % 6},room {(i + r) % 5},{x},{y},{abs(int(3 * y))}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def tables(shared_affpcl):
    shared_affpcl.write("sleep.csv", sleep_table())
    shared_affpcl.write("levels.csv", levels_table())
    return shared_affpcl


def fitted(tables, name, *words):
    tables.succeed("fit", *words, "--out", name, "--force", "--quiet", "--no-score")
    return tables.read_json(f"{name}/model.json")


def without_command(tables, name):
    return [line for line in tables.read(f"{name}/model.json").splitlines() if '"command"' not in line]


SLEEP_FIT = ("sleep.csv", "--target", "reaction", "--agent", "subject", "--plain", "--covariance", "diagonal")


@pytest.mark.parametrize("estimate", LME4)
def test_lme4_finds_the_same_variances_and_likelihood(tables, estimate):
    model = fitted(tables, estimate, *SLEEP_FIT, "--estimate", estimate)
    log_likelihood, variances, noise, aic, bic = LME4[estimate]
    channel, = model["channels"]
    assert model["estimate"] == estimate
    assert channel["log_likelihood"] == pytest.approx(log_likelihood, abs=0.01)
    assert channel["D"] == pytest.approx(variances, rel=0.01)
    assert channel["s2"] == pytest.approx(noise, rel=0.01)
    said = re.search(r": (\D*)log-likelihood (\S+), AIC (\S+), BIC (\S+) \(5 parameters\)",
                     tables.succeed("inspect", estimate).stdout)
    assert said[1] == {"reml": "restricted ", "ml": ""}[estimate]
    assert [float(v) for v in said.groups()[1:]] == pytest.approx([log_likelihood, aic, bic], abs=0.02)
    shown = tables.json("inspect", estimate)
    assert (shown["estimate"], shown["channels"][0]["log_likelihood"]) == (estimate, channel["log_likelihood"])


def test_the_default_is_reml(tables):
    fitted(tables, "default", *SLEEP_FIT)
    fitted(tables, "named", *SLEEP_FIT, "--estimate", "reml")
    assert without_command(tables, "default") == without_command(tables, "named")


def test_likelihoods_are_maximised_without_plain(tables):
    """Of the averaged model too, and by the folds of a fit that is scored."""
    words = [word for word in SLEEP_FIT if word not in ("--plain", "--covariance", "diagonal")]
    variances = []
    for estimate in ("ml", "reml"):
        tables.succeed("fit", *words, "--estimate", estimate, "--out", "averaged", "--force", "--quiet")
        D = tables.read_json("averaged/model.json")["channels"][0]["D"]
        variances.append(D[0][0] if isinstance(D[0], list) else D[0])
    assert variances[0] < variances[1]


@pytest.mark.parametrize("factor", [("--within", "school"), ("--crossed", "room")], ids=lambda factor: factor[0][2:])
def test_a_second_factor_has_smaller_variances_by_ml(tables, factor):
    found = []
    for estimate, name in (("ml", "log-likelihood"), ("reml", "restricted log-likelihood")):
        model = fitted(tables, "levels", "levels.csv", "--target", "y", "--features", "x", *factor, "--estimate", estimate)
        assert model["estimate"] == estimate
        levels = model["levels"]
        assert f"; {name} {levels['log_likelihood']:.4f}, AIC " in tables.succeed("inspect", "levels").stdout
        found.append(levels["variance"])
    assert found[0] < found[1]


@pytest.mark.parametrize("words", [("--target", "count", "--family", "poisson"), ("--target", "y", "--common", "x")],
                         ids=["poisson", "common"])
def test_other_models_are_fitted_by_ml(tables, words):
    words = ("levels.csv", "--features", "x", *words)
    assert fitted(tables, "default", *words)["estimate"] == "ml"
    fitted(tables, "named", *words, "--estimate", "ml")
    assert without_command(tables, "default") == without_command(tables, "named")


@pytest.mark.parametrize("words, says", [
    (("--target", "count", "--family", "poisson"), "is not available for family poisson; allowed: ml"),
    (("--target", "y", "--family", "t"), "is not available for family t; allowed: ml"),
    (("--target", "y", "--common", "x"), "is not available with --common columns and one factor; allowed: ml"),
])
def test_other_models_have_no_restricted_likelihood(tables, words, says):
    tables.refuse("fit", "levels.csv", "--features", "x", *words, "--estimate", "reml", says=("--estimate reml", says))


def test_an_estimate_that_does_not_exist_is_refused(tables):
    tables.refuse("fit", *SLEEP_FIT, "--estimate", "map", says=("--estimate", "reml"))


def test_a_stream_has_no_estimate(tables):
    tables.refuse("fit", *SLEEP_FIT[:5], "--solver", "stream", "--estimate", "ml", says=("--solver exact",))


def test_models_of_earlier_versions_are_reml(tables):
    model = fitted(tables, "old", *SLEEP_FIT)
    text = tables.read("old/model.json")
    tables.write("old.json", text.replace(',\n "estimate": "reml"', ""))
    assert "estimate" not in tables.read_json("old.json") and math.isfinite(model["channels"][0]["log_likelihood"])
    assert tables.json("inspect", "old.json")["estimate"] == "reml"
    tables.write("bad.json", text.replace('"estimate": "reml"', '"estimate": "map"'))
    tables.refuse("inspect", "bad.json", says=("bad.json", "estimate"))
