"""scikit-learn estimators: one linear model per group, learnt together.

The rows' groups (agents) go beside X: fit(X, y, groups=...), predict(X, groups=...). A group never seen is predicted by
the central model; without groups all rows belong to one.
"""
from __future__ import annotations

import os
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from affpcl import _core
from affpcl.files import gains_table
from affpcl.tables import Array, Table

DEFAULT = _core.FitOptions()  # the engine's; nothing here repeats them
NO_GROUPS = "all"


def name_of(column: Any, otherwise: str) -> str:
    """The name of a pandas or polars column."""
    name = getattr(column, "name", None)
    return name if isinstance(name, str) and name else otherwise


def group_codes(groups: Any, rows: int) -> tuple[_core.Groups, dict[str, Any]]:
    """Each row's group as a number, and what each name stands for."""
    if groups is None:
        return _core.Groups(np.zeros(rows, dtype=np.int32), [NO_GROUPS]), {NO_GROUPS: None}
    labels = np.asarray(groups)
    if labels.ndim != 1:
        raise ValueError(f"groups has {labels.ndim} axes, not 1")
    if len(labels) != rows:
        raise ValueError(f"X has {rows} rows, but groups has {len(labels)}")
    code_of: dict[str, int] = {}
    label_of: dict[str, Any] = {}
    if labels.dtype.kind in "iubUS":
        unique, inverse = np.unique(labels, return_inverse=True)
        names = [str(u) for u in unique.tolist()]
        return _core.Groups(inverse.astype(np.int32), names), dict(zip(names, unique.tolist()))
    codes = np.empty(rows, dtype=np.int32)
    for row, label in enumerate(labels.tolist()):
        if label is None or label != label or label == "":
            raise ValueError(f"groups[{row}] = {label!r} names no group")
        name = str(label)
        codes[row] = code_of.setdefault(name, len(code_of))
        label_of.setdefault(name, label)
    return _core.Groups(codes, list(code_of)), label_of


class Personalized(BaseEstimator):  # type: ignore[misc]
    """What regressor and classifier share."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__partial_fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"groups": True}
    _task: ClassVar[str]
    _families: ClassVar[tuple[str, ...]]
    _rows: tuple[Array, Array, Array | None]  # of partial_fit so far

    def __init__(
        self,
        *,
        solver: str = DEFAULT.solver,
        method: str = DEFAULT.method,
        method_values: dict[str, Any] | None = None,
        family: str = DEFAULT.family,
        missing: str = DEFAULT.missing,
        score_gains: bool = DEFAULT.score,
        seed: int = DEFAULT.seed,
        threads: int = DEFAULT.threads,
    ) -> None:
        self.solver = solver
        self.family = family
        self.method = method
        self.method_values = method_values
        self.missing = missing
        self.score_gains = score_gains
        self.seed = seed
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.missing != DEFAULT.missing
        return tags

    # ---- fitting ----

    def _options(self, y: Any, groups: Any) -> _core.FitOptions:
        options = _core.FitOptions()
        options.solver = self.solver
        options.method = self.method
        options.method_values = self.method_values or {}
        if self.family not in (DEFAULT.family, *self._families):
            raise ValueError(f"family={self.family!r} is not one of {', '.join((DEFAULT.family, *self._families))}")
        options.family = self.family
        options.missing = self.missing
        options.score = self.score_gains
        options.seed = self.seed
        options.threads = self.threads
        options.task = self._task
        options.target = name_of(y, "y")
        options.agent = name_of(groups, "agent")
        return options

    def _check_rows(self, X: Any, **more: Any) -> Any:
        return validate_data(
            self, X, dtype=[np.float64, np.float32], ensure_all_finite=self._finite(), **more)

    def _finite(self) -> bool | str:
        return True if self.missing == DEFAULT.missing else "allow-nan"

    def _encode_target(self, y: Array) -> tuple[Array, list[str]]:
        """What the engine learns, and the names of classes that are texts."""
        return np.asarray(y, dtype=np.float64), []

    def _fit(self, X: Array, y: Array, groups: Any, options: _core.FitOptions) -> None:
        codes, label_of = group_codes(groups, len(X))
        numbers, labels = self._encode_target(y)
        names = getattr(self, "feature_names_in_", None)
        columns = [f"x{c}" for c in range(X.shape[1])] if names is None else list(map(str, names))
        if options.solver != "stream" and (options.method or options.method_values):
            raise ValueError("method and method_values belong to solver='stream'")
        self._learnt(_core.fit_arrays(X, columns, numbers, labels, codes, options), columns, label_of)

    def _learnt(self, result: _core.FitResult, columns: list[str], label_of: dict[str, Any]) -> None:
        self.gains_ = gains_table(result)
        self.notes_ = result.notes
        self._take(result.model, columns)
        self.groups_ = np.array([label_of[name] for name in self.model_.agents])

    def _take(self, model: _core.Model, columns: list[str]) -> None:
        """The model's coefficients, in units of the columns as they came."""
        self.model_ = model
        self._used = [columns.index(name) for name in model.sources]
        self.n_features_in_ = len(columns)
        self.coef_, self.intercept_ = self._in_units(model.x, len(columns))
        self.coef_se_ = self._slopes(model.se, len(columns))
        self.central_coef_, self.central_intercept_ = self._in_units(model.centre, len(columns))
        self.central_coef_se_ = self._slopes(model.centre_se, len(columns))
        self.affinity_ = affinity(model)

    def _slopes(self, x: Array, width: int) -> Array:
        """Of all columns; one that does not vary has none, and gets 0."""
        slopes = np.zeros((*x.shape[:-1], width))
        slopes[..., self._used] = x[..., 1:] / self.model_.deviations
        return slopes[..., 0, :] if x.shape[-2] == 1 else slopes

    def _in_units(self, x: Array, width: int) -> tuple[Array, Array]:
        intercept = x[..., 0] - (x[..., 1:] * (self.model_.means / self.model_.deviations)).sum(axis=-1)
        return self._slopes(x, width), intercept[..., 0] if x.shape[-2] == 1 else intercept

    def _accumulate(self, X: Array, y: Array, groups: Any, options: _core.FitOptions) -> None:
        """Fits all rows of partial_fit so far, in their order, in one pass."""
        options.solver = "stream"
        groups = None if groups is None else np.asarray(groups)
        if hasattr(self, "_rows"):
            X_before, y_before, groups_before = self._rows
            if (groups is None) != (groups_before is None):
                raise ValueError("groups must be given to every partial_fit or to none")
            X, y = np.concatenate([X_before, X]), np.concatenate([y_before, y])
            if groups_before is not None:
                groups = np.concatenate([groups_before, groups])
        self._fit(X, y, groups, options)
        self._rows = (X, y, groups)

    # ---- predicting ----

    def _rows_to_predict(self, X: Any, groups: Any) -> tuple[Array, _core.Groups]:
        check_is_fitted(self)
        X = self._check_rows(X, reset=False)
        codes, _ = group_codes(groups, len(X))
        return X if len(self._used) == X.shape[1] else X[:, self._used], codes

    # ---- files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """model.json, which `affpcl predict` and `affpcl inspect` read."""
        check_is_fitted(self)
        self.model_.write(os.fspath(path))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """An estimator of a model that the command line or save wrote; it has no gains_."""
        model = _core.Model.read(os.fspath(path))
        made = cls(missing=model.missing)
        made.solver, made.method = model.solver, model.method
        if model.family != "gaussian":
            made.family = model.family
        if any(model.texts):
            raise ValueError(f"{path}: its column '{model.sources[model.texts.index(True)]}' holds strings; "
                             "use affpcl.load_model and predict_files")
        if bool(model.classes) != (cls._task == "classify"):
            raise ValueError(f"{path} is a model of {'classes' if model.classes else 'numbers'}, "
                             f"which {cls.__name__} does not predict")
        made.feature_names_in_ = np.array(model.sources, dtype=object)
        made._take(model, model.sources)
        made.groups_ = np.array(model.agents)
        made._take_classes(model.classes)
        return made

    def _take_classes(self, names: list[str]) -> None:
        """Classes of a model that was read."""


def affinity(model: _core.Model) -> Array:
    """1 - |x_i - x_c| / (2 G), G the longest of all: the paper's objective part of 1 - delta_cen, with coefficients in
    the place of theta; intercepts count from that of the pooled model."""
    x, centre = model.x.copy(), model.centre.copy()
    x[..., 0] -= model.pooled[:, 0]
    centre[..., 0] -= model.pooled[:, 0]
    apart = np.sqrt(((x - centre) ** 2).sum(axis=(1, 2)))
    longest = max(np.sqrt((x**2).sum(axis=(1, 2))).max(), np.sqrt((centre**2).sum()))
    found: Array = 1 - apart / (2 * longest) if longest > 0 else np.ones(len(x))
    return found


class PersonalizedRegressor(RegressorMixin, Personalized):  # type: ignore[misc]
    """One linear regression per group: each group's coefficients lean on a common centre as far as the rows say.

    Parameters (defaults are the engine's):
      solver         "exact": all rows at once; "stream": one pass over the rows as they come
      method, method_values   of a stream: any of affpcl.catalogue()["methods"], and values of its parameters
      family         the target's distribution: "gaussian" (the default), "t", "poisson", "negative-binomial" or "gamma"
      missing        blanks (NaN) in X: "error", "mean" or "drop"
      score_gains    whether cross-validation says what learning together gained
      seed           of the split into folds
      threads        0: all cores; the numbers do not depend on it

    After fit: groups_, coef_ (groups x columns), intercept_, coef_se_, central_coef_, central_intercept_, gains_ (a table,
    a row per group), affinity_ (how near each group is to the centre, 0 to 1), notes_, model_.
    """

    _task = "regress"
    _families = ("gaussian", "t", "poisson", "negative-binomial", "gamma")

    def fit(self, X: Any, y: Any, groups: Any = None) -> PersonalizedRegressor:
        options = self._options(y, groups)
        X, y = self._check_rows(X, y=y, y_numeric=True, ensure_min_samples=2)
        self.__dict__.pop("_rows", None)
        self._fit(X, y, groups, options)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> PersonalizedRegressor:
        """More rows for the stream solver. The same, to the bit, as fit of all rows so far with solver="stream", and as
        much work: the rows are kept. After fit it begins anew."""
        options = self._options(y, groups)
        first = not hasattr(self, "_rows")
        X, y = self._check_rows(X, y=y, y_numeric=True, reset=first, ensure_min_samples=2 if first else 1)
        self._accumulate(X, y, groups, options)
        return self

    def predict(self, X: Any, groups: Any = None) -> Array:
        rows, codes = self._rows_to_predict(X, groups)
        return self.model_.predict(rows, codes)

    def predict_interval(self, X: Any, groups: Any = None) -> Array:
        """Columns: the prediction, and the ends of its 90 % interval."""
        rows, codes = self._rows_to_predict(X, groups)
        return self.model_.predict_interval(rows, codes)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """R^2."""
        return float(r2_score(y, self.predict(X, groups), sample_weight=sample_weight))


class PersonalizedGLM(PersonalizedRegressor):
    """One generalised linear model per group: counts ("poisson", "negative-binomial"), durations ("gamma"), or numbers with
    outliers ("t"). Parameters and attributes are PersonalizedRegressor's; coefficients are on the scale of the linear
    predictor, predictions are means."""

    def __init__(
        self,
        *,
        family: str = "poisson",
        missing: str = DEFAULT.missing,
        score_gains: bool = DEFAULT.score,
        seed: int = DEFAULT.seed,
        threads: int = DEFAULT.threads,
    ) -> None:
        super().__init__(family=family, missing=missing, score_gains=score_gains, seed=seed, threads=threads)


class PersonalizedClassifier(ClassifierMixin, Personalized):  # type: ignore[misc]
    """One classification per group: a binomial mixed model of two classes; of more, the classes' indicators are regressed,
    and probabilities made of them, unless family="multinomial" (or "ordinal").

    Parameters and attributes are PersonalizedRegressor's; with more than two classes coef_ is groups x classes x columns.
    """

    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"groups": True}
    _task = "classify"
    _families = ("gaussian", "binomial", "multinomial", "ordinal")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = False
        return tags

    def _encode_target(self, y: Array) -> tuple[Array, list[str]]:
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class, {self.classes_[0]!r}; there is nothing to learn")
        if self.classes_.dtype.kind in "iuf":
            return np.asarray(y, dtype=np.float64), []
        return codes.astype(np.float64), [str(c) for c in self.classes_.tolist()]

    def _learnt(self, result: _core.FitResult, columns: list[str], label_of: dict[str, Any]) -> None:
        super()._learnt(result, columns, label_of)
        names = result.model.classes  # in the engine's order, which may be another
        if self.classes_.dtype.kind in "iuf":
            self._class_order = np.argsort([float(n) for n in names])
        else:
            self._class_order = np.array([names.index(str(c)) for c in self.classes_.tolist()])

    def _take_classes(self, names: list[str]) -> None:
        try:
            self.classes_ = np.array([float(n) for n in names])
        except ValueError:
            self.classes_ = np.array(names)
        self._class_order = np.argsort(self.classes_)
        self.classes_ = self.classes_[self._class_order]

    def fit(self, X: Any, y: Any, groups: Any = None) -> PersonalizedClassifier:
        options = self._options(y, groups)
        X, y = self._check_rows(X, y=y, ensure_min_samples=2)
        check_classification_targets(y)
        self.__dict__.pop("_rows", None)
        self._fit(X, y, groups, options)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None, classes: Any = None) -> PersonalizedClassifier:
        """More rows for the stream solver, as the regressor's. `classes` is what scikit-learn passes; the classes are
        those of the rows."""
        options = self._options(y, groups)
        first = not hasattr(self, "_rows")
        X, y = self._check_rows(X, y=y, reset=first, ensure_min_samples=2 if first else 1)
        check_classification_targets(y)
        self._accumulate(X, y, groups, options)
        return self

    def predict_proba(self, X: Any, groups: Any = None) -> Array:
        """A column per class, in the order of classes_."""
        rows, codes = self._rows_to_predict(X, groups)
        found: Array = self.model_.predict_proba(rows, codes)[:, self._class_order]
        return found

    def predict(self, X: Any, groups: Any = None) -> Array:
        probabilities = self.predict_proba(X, groups)
        unknown = np.isnan(probabilities[:, 0])
        if unknown.any():
            raise ValueError(f"row {unknown.argmax()} of X lacks a value and has no class, for the model was fitted with "
                             "missing='drop'; predict_proba gives it NaN")
        found: Array = self.classes_[probabilities.argmax(axis=1)]
        return found

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X, groups), sample_weight=sample_weight))
