"""A small fig-real on real handwriting: `affpcl reproduce fig-real` on chars74k (../shared/data).

Principal components of the pixels take the place of a network's features, which need libtorch. Tested: the pipeline
from features.npy and labels.csv, and the signs of the figure.
"""
import csv
import pathlib

import pytest

np = pytest.importorskip("numpy")

HANDWRITING = pathlib.Path(__file__).resolve().parents[3] / "shared" / "data" / "chars74k_hnd"
AGENTS, FOLDS, DIM = 10, 5, 84
LEVELS = [0, .2, .6, 1]

if not HANDWRITING.exists():
    pytest.skip(f"there is no handwriting in {HANDWRITING}", allow_module_level=True)


def components(pixels, own):
    """A constant and principal components of the other writers' pixels."""
    mean = pixels[~own].mean(0)
    _, _, V = np.linalg.svd(pixels[~own] - mean, full_matrices=False)
    features = np.hstack([np.ones((own.sum(), 1)), (pixels[own] - mean) @ V[:DIM - 1].T])
    return features / np.sqrt((features**2).mean())


def write_features(affpcl):
    """features.npy and labels.csv of the first writers."""
    pixels = np.frombuffer((HANDWRITING / "images-idx3-ubyte").read_bytes()[16:], np.uint8).reshape(-1, 784) / 255
    labels = list(csv.DictReader((HANDWRITING / "labels.csv").read_text().splitlines()))
    writer = np.array([int(row["agent"]) for row in labels])
    own = writer < AGENTS
    np.save(affpcl.folder / "features.npy", components(pixels, own).astype(np.float32))
    rng = np.random.default_rng(1)
    folds = np.concatenate([rng.permutation(np.arange((writer == i).sum()) % FOLDS) for i in range(AGENTS)])
    lines = ["agent,digit,curved_letter,fold,network"]
    lines += [f"{row['agent']},{row['is_digit']},{row['is_curved_letter']},{fold},0"
              for row, fold in zip((row for row in labels if int(row["agent"]) < AGENTS), folds)]
    affpcl.write("labels.csv", "\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def settings(shared_affpcl):
    """By level of heterogeneity, the methods' results by name."""
    write_features(shared_affpcl)
    sets = ["run.steps=300", "run.replicates=5", "run.curve_points=10", "run.tail=30"]
    result = shared_affpcl.json("reproduce", "fig-real", "--data", shared_affpcl.folder,
                                *(word for s in sets for word in ("--set", s)))
    return {s["at"]["problem.delta_obj"]: {m["name"]: m for m in s["methods"]} for s in result["settings"]}


def test_every_level_is_there(settings):
    assert list(settings) == LEVELS


@pytest.mark.parametrize("level", LEVELS)
def test_affpcl_is_below_independent(settings, level):
    assert settings[level]["affpcl"]["vs_independent"]["hi"] < 1


@pytest.mark.parametrize("level", LEVELS)
def test_solved_weights_are_as_good_as_stated_ones(settings, level):
    known, moments = (settings[level][name]["mse"]["mean"] for name in ("affpcl", "moments"))
    assert abs(moments / known - 1) < .01


def test_without_heterogeneity_affpcl_is_fedavg(settings):
    affpcl, fedavg = (settings[0][name]["mse"]["mean"] for name in ("affpcl", "fedavg"))
    assert abs(affpcl / fedavg - 1) < .02


def test_without_heterogeneity_the_gradient_form_is_far_behind(settings):
    gradient, affpcl = (settings[0][name]["vs_independent"]["mean"] for name in ("gradient", "affpcl"))
    assert gradient > affpcl + .1


def test_a_missing_folder_is_refused_with_the_path(affpcl):
    nowhere = affpcl.folder / "nowhere"
    affpcl.refuse("reproduce", "fig-real", "--data", nowhere, says=[str(nowhere / "features.npy")])
