"""`affpcl fit --family`: what the program does with yes/no, classes, counts and the options of their models."""
import math
import random

import pytest


def table(seed=1, agents=100, rows=20):
    """Columns x, z, a weight, an exposure, and targets of several families."""
    rng = random.Random(seed)
    lines = ["agent,x,z,weight,exposure,answer,bit,count,size,hits,level,kind,time,number"]
    for i in range(agents):
        u = [0.9 * rng.gauss(0, 1), 0.5 * rng.gauss(0, 1)]
        for _ in range(rows):
            x, z, exposure = rng.gauss(0, 1), rng.gauss(0, 1), rng.uniform(1, 3)
            eta = -0.4 + u[0] + (0.7 + u[1]) * x - 0.3 * z
            p = 1 / (1 + math.exp(-eta))
            bit, size = int(rng.random() < p), rng.randint(1, 5)
            hits = sum(rng.random() < p for _ in range(size))
            mean, count, sum_, draw = math.exp(eta) * exposure, 0, math.exp(-math.exp(eta) * exposure), rng.random()
            term = sum_
            while draw > sum_ and count < 500:
                count += 1
                term *= mean / count
                sum_ += term
            noisy = eta + math.log(1 / max(rng.random(), 1e-12) - 1)
            level = ["1", "2", "3"][(noisy > -0.5) + (noisy > 0.8)]
            lines.append(f"{i},{x!r},{z!r},{rng.randint(1, 2)},{exposure!r},{'yes' if bit else 'no'},{bit},{count},{size},"
                         f"{hits},{level},{'abc'[int(level) - 1]},{math.exp(eta) * rng.gammavariate(3, 1 / 3)!r},"
                         f"{eta + rng.gauss(0, 1)!r}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def tables(shared_affpcl):
    shared_affpcl.write("family.csv", table())
    return shared_affpcl


def fitted(tables, name, *options):
    """model.json and summary.json of a fit on x and z."""
    tables.succeed("fit", "family.csv", "--features", "x,z", *options, "--out", name, "--quiet")
    return tables.read_json(f"{name}/model.json"), tables.read_json(f"{name}/summary.json")


RUNS = {
    "binomial": ("--target", "answer"),
    "multinomial": ("--target", "kind", "--family", "multinomial"),
    "ordinal": ("--target", "level", "--family", "ordinal"),
    "poisson": ("--target", "count", "--family", "poisson", "--offset", "exposure", "--offset-scale", "response"),
    "negative-binomial": ("--target", "count", "--family", "negative-binomial"),
    "gamma": ("--target", "time", "--family", "gamma"),
    "t": ("--target", "number", "--family", "t"),
}


@pytest.fixture(scope="module", params=RUNS)
def run(request, tables):
    model, summary = fitted(tables, request.param, *RUNS[request.param])
    return request.param, model, summary


def test_the_family_is_in_the_model(run):
    family, model, _ = run
    assert model["family"]["name"] == family
    assert math.isfinite(model["family"]["log_likelihood"])
    assert all(channel["converged"] for channel in model["channels"])


def test_learning_together_gains(run):
    """Agents differ, and have 20 rows for 3 coefficients: random effects pay against both baselines. Of ten tables of 24
    agents with a binomial target two showed no gain (mean .015, standard deviation .014), so this one has 100 agents. The
    seed is fixed."""
    _, _, summary = run
    score = summary["score"][summary["score"]["measure"]]
    assert score["personalised"] < score["alone"]
    assert score["personalised"] < score["pooled"]


def test_predictions_are_those_of_the_family(run, tables):
    family, model, _ = run
    tables.succeed("predict", family, "family.csv", "--out", f"{family}.csv", "--force")
    header, *rows = [line.split(",") for line in tables.read(f"{family}.csv").splitlines()]
    if model["classes"]:
        columns = [header.index(f"probability_{c}") for c in model["classes"]]
        for row in rows:
            p = [float(row[c]) for c in columns]
            assert sum(p) == pytest.approx(1, abs=1e-12)
            assert row[header.index("prediction")] == model["classes"][p.index(max(p))]
    else:
        for row in rows:
            y, lo, hi = (float(row[header.index(c)]) for c in ("prediction", "prediction_lo", "prediction_hi"))
            assert lo <= y <= hi
            assert family == "t" or (y > 0 and lo >= 0)


def test_inspect_shows_the_fit(run, tables):
    family, model, _ = run
    text = tables.succeed("inspect", family).stdout
    assert f"family {family}: log-likelihood {model['family']['log_likelihood']:.4f}, AIC" in text


def test_inspect_shows_correlations(tables):
    """The agents' slopes are nearly their intercepts: a full covariance with a correlation near 1."""
    rng = random.Random(3)
    lines = ["agent,x,y"]
    for i in range(60):
        u = rng.gauss(0, 1)
        for _ in range(12):
            x = rng.gauss(0, 1)
            lines.append(f"{i},{x!r},{2 + u + (1 + u + 0.1 * rng.gauss(0, 1)) * x + 0.3 * rng.gauss(0, 1)!r}")
    tables.write("correlated.csv", "\n".join(lines) + "\n")
    tables.succeed("fit", "correlated.csv", "--target", "y", "--no-score", "--out", "correlated", "--quiet")
    channel, = tables.json("inspect", "correlated")["channels"]
    found, = channel["correlations"]
    r = found["value"]
    assert found["between"] == ["intercept", "x"] and 0.9 < r <= 1
    assert f"correlations of random effects: intercept with x {r:.2f}\n" in tables.succeed("inspect", "correlated").stdout


def test_inspect_names_effects_that_do_not_vary(tables):
    """Only the intercepts differ, and by so much that BIC selects one variance for each column; that of z is 0. A variance
    is estimated as 0 for about half of such tables (5 of 8 seeds), so the seed is one of those."""
    rng = random.Random(1)
    lines = ["agent,z,y"]
    for i in range(80):
        u = 2 * rng.gauss(0, 1)
        for _ in range(15):
            z = rng.gauss(0, 1)
            lines.append(f"{i},{z!r},{int(rng.random() < 1 / (1 + math.exp(-u - z)))}")
    tables.write("constant.csv", "\n".join(lines) + "\n")
    tables.succeed("fit", "constant.csv", "--target", "y", "--no-score", "--out", "constant", "--quiet")
    shown = tables.json("inspect", "constant")["channels"][0]
    assert shown["singular"] and shown["spread_sd"][1] == 0
    assert "\nno variation between agents in z\n" in tables.succeed("inspect", "constant").stdout


def test_zeros_and_ones_are_binomial(tables):
    model, summary = fitted(tables, "bit", "--target", "bit")
    assert model["family"]["name"] == "binomial"
    assert model["classes"] == ["0", "1"]
    assert any("family = gaussian keeps least squares" in note for note in summary["notes"])
    text, _ = fitted(tables, "answer", "--target", "answer")
    assert text["channels"] == model["channels"]


def test_gaussian_keeps_least_squares(tables):
    model, _ = fitted(tables, "squares", "--target", "bit", "--family", "gaussian")
    assert "family" not in model and model["classes"] == []


def test_counts_get_a_hint(tables):
    _, summary = fitted(tables, "hint", "--target", "count")
    assert any("family = poisson" in note for note in summary["notes"])


def test_a_row_weight_is_a_repeated_row(tables):
    """Weights 1 and 2 are the table with its rows once or twice; standardised columns are those of rows, so both have the
    same log-likelihood only on columns that are scaled alike: x is compared after unscaling."""
    lines = table().splitlines()
    weight = lines[0].split(",").index("weight")
    doubled = [lines[0]] + [line for line in lines[1:] for _ in range(int(line.split(",")[weight]))]
    tables.write("doubled.csv", "\n".join(doubled) + "\n")
    tables.succeed("fit", "doubled.csv", "--features", "x,z", "--common", "x,z", "--target", "answer", "--no-score",
                    "--out", "doubled", "--quiet")
    tables.succeed("fit", "family.csv", "--features", "x,z", "--common", "x,z", "--target", "answer", "--no-score",
                    "--row-weight", "weight", "--out", "weighted", "--quiet")
    a, b = tables.read_json("doubled/model.json"), tables.read_json("weighted/model.json")

    def slope(model, j):
        return model["channels"][0]["centre"]["x"][j + 1] / model["columns"][j]["sd"][0]

    assert a["family"]["log_likelihood"] == pytest.approx(b["family"]["log_likelihood"], abs=1e-3)
    for j in range(2):
        assert slope(a, j) == pytest.approx(slope(b, j), abs=1e-3)
    assert a["channels"][0]["D"][0] == pytest.approx(b["channels"][0]["D"][0], abs=1e-3)


def test_trials_count_successes(tables):
    model, summary = fitted(tables, "trials", "--target", "hits", "--trials", "size")
    assert model["family"]["trials"] == "size" and model["classes"] == []
    assert summary["score"]["measure"] == "log_loss"


def test_common_columns_have_no_random_effect(tables):
    model, summary = fitted(tables, "common", "--target", "answer", "--common", "x,z", "--no-score")
    assert model["channels"][0]["D"][1:] == [0, 0] and model["channels"][0]["D"][0] > 0
    assert any("Gauss-Hermite" in note for note in summary["notes"])
    centre = model["channels"][0]["centre"]["x"]
    for agent in model["agents"]:
        if agent["model"] == "personalised":
            assert agent["channels"][0]["x"][1:] == pytest.approx(centre[1:])


def test_an_unseen_agent_is_less_sure(tables):
    """Its probabilities are integrated over D: nearer to one half than those of the centre."""
    model, _ = fitted(tables, "unseen", "--target", "answer")
    tables.write("new.csv", "agent,x,z\nnobody,3,0\n")
    tables.succeed("predict", "unseen", "new.csv", "--out", "new_predicted.csv", "--force")
    row = tables.read("new_predicted.csv").splitlines()[1].split(",")
    columns = model["columns"]
    z = [1, *((v - c["mean"][0]) / c["sd"][0] for v, c in zip((3, 0), columns))]
    eta = sum(a * b for a, b in zip(z, model["channels"][0]["centre"]["x"]))
    centre, found = 1 / (1 + math.exp(-eta)), float(row[-1])
    assert 0.5 < found < centre - 0.005


def test_agents_of_one_class_keep_the_personalised_model(tables):
    """Eight agents without a yes: none takes over the centre, none is independent, and probabilities stay off 0 and 1."""
    rng = random.Random(3)
    lines = ["agent,x,y"]
    for i in range(40):
        for _ in range(30):
            x = rng.gauss(0, 1)
            p = 1 / (1 + math.exp(3 - 0.8 * x))
            lines.append(f"{i},{x!r},{int(i >= 8 and rng.random() < p)}")
    tables.write("rare.csv", "\n".join(lines) + "\n")
    tables.succeed("fit", "rare.csv", "--target", "y", "--out", "rare", "--quiet")
    model, summary = tables.read_json("rare/model.json"), tables.read_json("rare/summary.json")
    assert {a["model"] for a in model["agents"] if int(a["name"]) < 8} == {"personalised"}
    losses = summary["score"]["log_loss"]
    rate = sum(line.endswith(",1") for line in lines) / (len(lines) - 1)
    base = -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))
    assert losses["given"] < base
    tables.succeed("predict", "rare", "rare.csv", "--out", "rare_p.csv", "--force")
    p = [float(line.split(",")[-1]) for line in tables.read("rare_p.csv").splitlines()[1:]]
    assert sum(p) / len(p) == pytest.approx(rate, abs=0.01)
    assert max(p) > 3 * rate


@pytest.mark.parametrize("options,sentence", [
    (("--target", "count", "--family", "guess"), "--family guess is not one of auto, gaussian"),
    (("--target", "number", "--family", "poisson"), "is no count"),
    (("--target", "number", "--family", "gamma"), "is not above 0"),
    (("--target", "kind", "--family", "binomial"), "--family multinomial takes more than two"),
    (("--target", "answer", "--family", "ordinal"), "which is --family binomial"),
    (("--target", "count", "--trials", "size", "--family", "poisson"), "--trials needs --family binomial"),
    (("--target", "count", "--family", "poisson", "--offset", "number", "--offset-scale", "response"), "is no offset"),
    (("--target", "answer", "--row-weight", "number"), "is no weight"),
    (("--target", "answer", "--common", "nothing"), "nothing"),
    (("--target", "kind", "--family", "multinomial", "--offset", "x"), "needs 3, one for each class in the order a, b, c"),
    (("--target", "count", "--family", "poisson", "--offset", "x,z"), "--offset names 2 columns, and --family poisson needs one"),
    (("--target", "answer", "--solver", "stream", "--family", "binomial"), "belong to --solver exact"),
    (("--target", "answer", "--solver", "stream", "--approximation", "laplace"), "belong to --solver exact"),
    (("--target", "count", "--family", "poisson", "--approximation", "variational"), "and the family is poisson"),
])
def test_what_cannot_be_is_refused(tables, options, sentence):
    tables.refuse("fit", "family.csv", *options, says=[sentence])


ROW_COLUMNS = {
    "weight": ("--target", "answer", "--row-weight", "weight"),
    "size": ("--target", "hits", "--trials", "size"),
    "exposure": ("--target", "count", "--family", "poisson", "--offset", "exposure", "--offset-scale", "response"),
}


def blanked(column, rows, drop=False):
    """The table with blanks in these rows of a column, or without the rows."""
    lines = table().splitlines()
    at = lines[0].split(",").index(column)
    for r in sorted(rows, reverse=True):
        fields = lines[r].split(",")
        fields[at] = ""
        lines[r:r + 1] = [] if drop else [",".join(fields)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("column", ROW_COLUMNS)
def test_rows_without_a_weight_trials_or_offset(tables, column):
    """They are refused, also where features are filled; --missing drop fits the other rows."""
    options = ("--features", "x,z", *ROW_COLUMNS[column])
    tables.write("gaps.csv", blanked(column, (3, 700)))
    tables.write("rest.csv", blanked(column, (3, 700), drop=True))
    for rule in "error", "mean", f"drop,{column}=error":
        tables.refuse("fit", "gaps.csv", *options, "--missing", rule,
                      says=["line 4", f"'{column}'", "is missing", "--missing drop leaves such rows out"])
    models = []
    for name, rule in ("gaps", f"{column}=drop"), ("gaps", "drop"), ("rest", "error"):
        tables.succeed("fit", f"{name}.csv", *options, "--missing", rule, "--out", "gaps", "--force", "--quiet")
        models.append(tables.read_json("gaps/model.json"))
        notes = tables.read_json("gaps/summary.json")["notes"]
        assert any("2 rows lack a weight, trials or offset and were left out" in n for n in notes) == (name == "gaps")
    assert [sum(a["rows"] for a in m["agents"]) for m in models] == [1998] * 3
    assert models[0]["channels"] == models[1]["channels"] == models[2]["channels"]


def test_texts_in_the_columns_of_rows_are_refused(tables):
    tables.write("texts.csv", table().replace("weight", "w", 1).replace("\n", ",much\n").replace(",much\n", ",weight\n", 1))
    tables.refuse("fit", "texts.csv", "--target", "answer", "--row-weight", "weight", says=["'much'", "a row weight has to be"])
    tables.refuse("fit", "texts.csv", "--target", "hits", "--trials", "weight", says=["'much'", "a number of trials has to be"])
    tables.refuse("fit", "family.csv", "--target", "answer", "--row-weight", "weight", "--categorical", "weight",
                  says=["--categorical names 'weight', which is no feature"])


def test_a_new_row_without_an_offset(tables):
    """It has no prediction where the fit dropped such rows, and is refused otherwise."""
    tables.write("new.csv", "agent,x,z,exposure\n1,0,0,2\n1,0,0,\n")
    for rule in "drop", "error":
        fitted(tables, f"offset_{rule}", *ROW_COLUMNS["exposure"], "--missing", rule)
    tables.succeed("predict", "offset_drop", "new.csv", "--out", "new_offset.csv")
    assert [line.count(",") for line in tables.read("new_offset.csv").splitlines()] == [6] * 3
    assert tables.read("new_offset.csv").splitlines()[2] == "1,0,0,,,,"
    tables.refuse("predict", "offset_error", "new.csv", says=["line 3", "'exposure'", "is missing"])


def test_families_read_decimal_commas(tables):
    """The same model, and probabilities with the mark of the rows beside them."""
    tables.write("commas.csv", table().replace(",", ";").replace(".", ","))
    options = ("--features", "x,z", "--target", "answer", "--row-weight", "weight")
    models = []
    for name in "family", "commas":
        tables.succeed("fit", f"{name}.csv", *options, "--out", "marks", "--force", "--quiet")
        models.append(tables.read_json("marks/model.json"))
    assert models[0]["channels"] == models[1]["channels"]
    tables.succeed("predict", "marks", "commas.csv", "--out", "marks.csv")
    head, *rows = (line.split(";") for line in tables.read("marks.csv").splitlines())
    assert head[-4:] == ["prediction", "probability", "probability_no", "probability_yes"]
    for row in rows:
        assert "." not in "".join(row[-3:])
        assert sum(float(p.replace(",", ".")) for p in row[-2:]) == pytest.approx(1)


def separable(classes, seed=5, agents=15, rows=60, width=25):
    """Agents whose columns nearly separate their classes: fewer rows than three times the columns, and a strong signal that
    agents share."""
    rng = random.Random(seed)
    centre = [[rng.gauss(0, 1) for _ in range(width)] for _ in range(classes)]
    lines = ["agent,kind," + ",".join(f"x{j}" for j in range(width))]
    for i in range(agents):
        own = [[v + rng.gauss(0, .3) for v in row] for row in centre]
        for _ in range(rows):
            x = [rng.gauss(0, 1) for _ in range(width)]
            score = [sum(w * v for w, v in zip(row, x)) for row in own]
            lines.append(f"{i},{'abc'[score.index(max(score))]}," + ",".join(map(repr, x)))
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("classes", [2, 3])
def test_separated_classes_keep_honest_probabilities(affpcl, classes):
    """Laplace's evidence grows with the random effects here, and probabilities are too sure: with it the log loss on new rows
    was .257 for two classes and .403 for three; the variational bound has .187 and .356."""
    lines = separable(classes).splitlines()
    affpcl.write("train.csv", "\n".join(line for k, line in enumerate(lines) if k == 0 or k % 2) + "\n")
    affpcl.write("test.csv", "\n".join(line for k, line in enumerate(lines) if k % 2 == 0) + "\n")
    result = affpcl.succeed("fit", "train.csv", "--target", "kind", "--out", "model", "--no-score")
    if classes == 2:
        assert "Laplace's approximation of the log-likelihood is" in result.stdout
    affpcl.succeed("predict", "model", "test.csv", "--out", "p.csv")
    rows = [line.split(",") for line in affpcl.read("p.csv").splitlines()]
    at = {name.removeprefix("probability_"): k for k, name in enumerate(rows[0]) if name.startswith("probability_")}
    losses = [-math.log(max(float(row[at[row[1]]]), 1e-300)) for row in rows[1:]]
    assert sum(losses) / len(losses) < {2: .22, 3: .38}[classes]


def test_baselines_where_columns_separate_the_classes(affpcl):
    """Nothing but x decides the class, for all agents alike. The curvature of a separated likelihood says far too much
    uncertainty: an independent model that averaged over it was underconfident (calibration error .093), and its distance to
    the chosen one was no convex gap, so that every gain was 0."""
    rng = random.Random(3)
    centre = [rng.gauss(0, 1) for _ in range(12)]
    lines = ["agent," + ",".join(f"x{k}" for k in range(12)) + ",y"]
    for agent in range(8):
        for _ in range(80):
            x = [rng.gauss(0, 1) for _ in centre]
            y = "yes" if sum(a * b for a, b in zip(x, centre)) > 0 else "no"
            lines.append(f"a{agent}," + ",".join(f"{v:.5f}" for v in x) + "," + y)
    affpcl.write("separated.csv", "\n".join(lines) + "\n")
    result = affpcl.json("fit", "separated.csv", "--target", "y", "--agent", "agent", "--repeats", "1", "--threads", "1")
    score = result["score"]
    assert score["calibration_error"]["alone"] < 0.06
    assert score["log_loss"]["given"] < score["log_loss"]["alone"] / 3
    assert sum(a["verdict"] == "gained" for a in result["agents"]) >= 6
