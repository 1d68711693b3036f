"""scikit-learn estimators: one linear model per group, learnt together.

The rows' groups (agents) go beside X: fit(X, y, groups=...), predict(X, groups=...); or they are a column of X
(group_column). A group never seen is predicted by the central model; without groups all rows belong to one.
"""
from __future__ import annotations

import os
import warnings
from typing import Any, ClassVar, Sequence

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_array, check_is_fitted, validate_data

from affpcl import _core
from affpcl.fits import gains_table, scores_table
from affpcl.groups import NO_GROUPS, WITHOUT_GROUPS, group_codes, name_of, split_groups
from affpcl.tables import Array

DEFAULT = _core.FitOptions()  # the engine's; nothing here repeats them


class RowValues:
    """What rows have beside X, y and their group: weights, numbers of trials, offsets, folds."""

    def __init__(self, X: Array, sample_weight: Any, trials: Any, offset: Any, folds: Any = None) -> None:
        self.weight = None if sample_weight is None else _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        self.trials = None if trials is None else self._numbers(trials, "trials", X)
        self.offset = None if offset is None else self._numbers(offset, "offset", X)
        self.folds = None if folds is None else np.asarray(folds)
        if self.folds is not None and len(self.folds) != len(X):
            raise ValueError(f"X has {len(X)} rows, but folds has the shape {self.folds.shape}")
        self.names = {"folds": name_of(folds, "folds"), "row_weight": name_of(sample_weight, "sample_weight"), "trials": name_of(trials, "trials"),
                      "offset": name_of(offset, "offset")}

    @staticmethod
    def _numbers(values: Any, name: str, X: Array) -> Array:
        numbers: Array = check_array(values, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name=name)
        if numbers.ndim > 2 or len(numbers) != len(X):
            raise ValueError(f"X has {len(X)} rows, but {name} has the shape {numbers.shape}")
        return numbers

    def take(self, rows: Array) -> None:
        for name in ("weight", "trials", "offset", "folds"):
            values = getattr(self, name)
            if values is not None:
                setattr(self, name, values[rows])


class GroupedEstimator(BaseEstimator):  # type: ignore[misc]
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
        group_column: str | int | None = None,
        without_groups: str = "raise",
        common: Sequence[str | int] = (),
        offset_scale: str = DEFAULT.offset_scale,
        solver: str = DEFAULT.solver,
        method: str = DEFAULT.method,
        method_values: dict[str, Any] | None = None,
        family: str = DEFAULT.family,
        estimate: str = DEFAULT.estimate,
        missing: str = DEFAULT.missing,
        score_gains: bool = DEFAULT.score,
        seed: int = DEFAULT.seed,
        threads: int = DEFAULT.threads,
    ) -> None:
        self.group_column = group_column
        self.without_groups = without_groups
        self.common = common
        self.offset_scale = offset_scale
        self.solver = solver
        self.family = family
        self.estimate = estimate
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
        if self.without_groups not in ("raise", "warn", "centre"):
            raise ValueError(f"without_groups={self.without_groups!r} is not one of raise, warn, centre")
        if self.solver != "stream" and (self.method or self.method_values):
            raise ValueError("method and method_values belong to solver='stream'")
        if self.solver == "stream" and self.estimate != DEFAULT.estimate:
            raise ValueError("estimate belongs to solver='exact'")
        if self.missing == "indicator":
            raise ValueError("missing='indicator' adds columns that coef_ has no place for; affpcl.fit has it, and so has "
                             "sklearn's SimpleImputer(add_indicator=True)")
        options.family = self.family
        options.estimate = self.estimate
        options.offset_scale = self.offset_scale
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

    def _fit_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any, trials: Any, offset: Any, folds: Any,
                  **checks: Any) -> None:
        """All of fit: X as it came, its groups, and what rows have beside them."""
        X, groups = split_groups(X, self.group_column, groups)
        options = self._options(y, groups)
        X, y = self._check_rows(X, y=y, ensure_min_samples=2, **checks)
        if self._task == "classify":
            check_classification_targets(y)
        values = RowValues(X, sample_weight, trials, offset, folds)
        self.__dict__.pop("_rows", None)
        groups = None if groups is None else np.asarray(groups)
        if values.weight is not None:
            X, y, groups = self._weighed(X, y, groups, values)
        self._fit(X, y, groups, options, values)

    def _weighed(self, X: Array, y: Array, groups: Any, values: RowValues) -> tuple[Array, Array, Any]:
        """Rows of weight 0 are left out. A stream, which learns row after row, takes a row of weight w w times."""
        weight: Array = values.weight  # type: ignore[assignment]
        if self.solver == "stream":
            if (weight != np.floor(weight)).any():
                raise ValueError("solver='stream' needs whole numbers in sample_weight: a row of weight w is learnt w times")
            rows = np.repeat(np.arange(len(X)), weight.astype(np.int64))
        elif (weight == 0).any():
            rows = np.flatnonzero(weight)
        else:
            return X, y, groups
        values.take(rows)
        if self.solver == "stream":
            values.weight = None
        if groups is not None and len(groups) == len(X):  # another length is refused later
            groups = groups[rows]
        return X[rows], y[rows], groups

    def _fit(self, X: Array, y: Array, groups: Any, options: _core.FitOptions, values: RowValues | None = None) -> None:
        codes, label_of = group_codes(groups, len(X))
        numbers, labels = self._encode_target(y)
        names = getattr(self, "feature_names_in_", None)
        columns = [f"x{c}" for c in range(X.shape[1])] if names is None else list(map(str, names))
        options.common = [self._common_name(c, columns) for c in self.common]
        beside: dict[str, Any] = {}
        if values is not None:
            beside = {key: found for key, found in (
                ("row_weight", values.weight), ("trials", values.trials), ("offset", values.offset)) if found is not None}
            for key in beside:
                setattr(options, key, values.names[key])
            if values.offset is not None:
                beside["offset"] = self._engine_offset(values.offset)
                if values.offset.ndim == 2:
                    options.offset = ",".join(f"offset_{k}" for k in range(values.offset.shape[1]))
            if values.folds is not None:
                options.folds = values.names["folds"]
                beside["folds"], _ = group_codes(values.folds, len(X), "folds")
        self.grouped_ = groups is not None
        self._learnt(_core.fit_arrays(X, columns, numbers, labels, codes, options, **beside), columns, label_of)

    def _engine_offset(self, offset: Array) -> Array:
        """Offsets of classes in the engine's order."""
        return offset

    @staticmethod
    def _common_name(column: str | int, columns: list[str]) -> str:
        if isinstance(column, (int, np.integer)) and -len(columns) <= column < len(columns):
            return columns[column]
        if column not in columns:
            raise ValueError(f"common names {column!r}, which is no column of X; it has {', '.join(columns)}")
        return str(column)

    def _learnt(self, result: _core.FitResult, columns: list[str], label_of: dict[str, Any]) -> None:
        self.gains_ = gains_table(result)
        self.scores_ = scores_table(result)
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

    def _accumulate(self, X: Any, y: Any, groups: Any, **checks: Any) -> None:
        """Fits all rows of partial_fit so far, in their order, in one pass."""
        X, groups = split_groups(X, self.group_column, groups)
        options = self._options(y, groups)
        options.solver = "stream"
        first = not hasattr(self, "_rows")
        X, y = self._check_rows(X, y=y, reset=first, ensure_min_samples=2 if first else 1, **checks)
        if self._task == "classify":
            check_classification_targets(y)
        groups = None if groups is None else np.asarray(groups)
        if not first:
            X_before, y_before, groups_before = self._rows
            if (groups is None) != (groups_before is None):
                raise ValueError("groups must be given to every partial_fit or to none")
            X, y = np.concatenate([X_before, X]), np.concatenate([y_before, y])
            if groups_before is not None:
                groups = np.concatenate([groups_before, groups])
        self._fit(X, y, groups, options)
        self._rows = (X, y, groups)

    # ---- predicting ----

    def _rows_to_predict(self, X: Any, groups: Any, offset: Any) -> tuple[Array, _core.Groups, Array | None]:
        check_is_fitted(self)
        X, groups = split_groups(X, self.group_column, groups)
        X = self._check_rows(X, reset=False)
        if groups is None and self.grouped_ and self.without_groups != "centre":
            if self.without_groups == "raise":
                raise ValueError(WITHOUT_GROUPS)
            warnings.warn(WITHOUT_GROUPS, UserWarning, stacklevel=3)
        codes, _ = group_codes(groups, len(X))
        if offset is not None:
            offset = self._engine_offset(RowValues(X, None, None, offset).offset)  # type: ignore[arg-type]
        return X if len(self._used) == X.shape[1] else X[:, self._used], codes, offset

    # ---- files ----

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes model.json, which `affpcl predict` and `affpcl inspect` read."""
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
        elif model.estimate == "ml":
            made.estimate = model.estimate
        if any(model.texts):
            raise ValueError(f"{path}: its column '{model.sources[model.texts.index(True)]}' holds strings; "
                             "use affpcl.load_model and predict")
        if bool(model.classes) != (cls._task == "classify"):
            raise ValueError(f"{path} is a model of {'classes' if model.classes else 'numbers'}, "
                             f"which {cls.__name__} does not predict")
        made.feature_names_in_ = np.array(model.sources, dtype=object)
        made._take(model, model.sources)
        made.groups_ = np.array(model.agents)
        made.grouped_ = model.agents != [NO_GROUPS]
        made._take_classes(model.classes)
        return made

    def _take_classes(self, names: list[str]) -> None:
        """Classes of a model that was read."""


def by_number(name: str) -> tuple[int, float, str]:
    """The engine's order of classes: numbers by value, then texts by letters."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name


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


class PersonalizedRegressor(RegressorMixin, GroupedEstimator):  # type: ignore[misc]
    """One linear regression per group: each group's coefficients are shrunk to a common centre as far as the rows say.

    Parameters
    ----------
    group_column : column of X that holds the groups, by name or, of an array, by number. Default: groups come beside X.
    without_groups : what predict does after a fit with groups when it gets none: "raise", "warn", or use the "centre".
    common : columns whose effect is the same for all groups (no random effect), by name or number.
    offset_scale : scale of offset: the linear predictor's ("link"), or means ("response").
    solver : "exact", all rows at once; "stream", one pass over the rows as they come.
    method, method_values : of a stream: any of ``affpcl.catalogue()["methods"]``, and values of its parameters.
    family : distribution of the target: "gaussian" (the default), "t", "poisson", "negative-binomial" or "gamma".
    estimate : whether the variances maximise the likelihood ("ml") or the restricted likelihood ("reml"). "auto": "reml"
        for the gaussian family without common columns, else "ml".
    missing : blanks (NaN) in X: "error", "mean" or "drop".
    score_gains : whether cross-validation says what learning together gained.
    seed : of the split into folds.
    threads : 0 is all cores; the numbers do not depend on it.

    Attributes
    ----------
    groups_, coef_ (groups x columns), intercept_, coef_se_, central_coef_, central_intercept_, central_coef_se_, gains_
    (a table, a row per group), scores_ (a table, a row per model, over all held-out rows), affinity_ (how near each group is to the centre, 0 to 1), notes_, model_.

    Examples
    --------
    >>> import numpy as np
    >>> from affpcl import PersonalizedRegressor
    >>> rng = np.random.default_rng(1)
    >>> shop = np.repeat(["north", "south", "west"], 40)
    >>> X = rng.normal(size=(120, 2))
    >>> y = X @ [1.0, -0.5] + (shop == "west") * X[:, 0] + rng.normal(size=120)
    >>> model = PersonalizedRegressor().fit(X, y, groups=shop)
    >>> model.coef_.shape
    (3, 2)
    >>> model.predict(X[:2], groups=["north", "west"]).shape
    (2,)
    """

    _task = "regress"
    _families: ClassVar[tuple[str, ...]] = ("gaussian", "t", "poisson", "negative-binomial", "gamma")

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, offset: Any = None, *,
            folds: Any = None) -> PersonalizedRegressor:
        """Fits a model per group. A row of weight w counts as w rows. An offset is a number per row that is added to the
        linear predictor, such as the prediction of another model. folds: the fold of each row in the cross-validation,
        2 to 50 of them; by default five, at random within groups."""
        self._fit_rows(X, y, groups, sample_weight, None, offset, folds, y_numeric=True)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None) -> PersonalizedRegressor:
        """More rows for the stream solver. The same, to the bit, as fit of all rows so far with solver="stream", and as
        much work: the rows are kept. After fit it begins anew."""
        self._accumulate(X, y, groups, y_numeric=True)
        return self

    def predict(self, X: Any, groups: Any = None, offset: Any = None) -> Array:
        """One number per row, by its group's model; by the centre for a group never seen."""
        rows = self._rows_to_predict(X, groups, offset)
        return self.model_.predict(*rows)

    def predict_interval(self, X: Any, groups: Any = None, offset: Any = None, level: float = 0.9) -> Array:
        """Columns: the prediction, and the ends of its interval, of coverage `level`."""
        rows = self._rows_to_predict(X, groups, offset)
        return self.model_.predict_interval(*rows, level=level)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """R^2."""
        return float(r2_score(y, self.predict(X, groups, offset), sample_weight=sample_weight))


class PersonalizedGLM(PersonalizedRegressor):
    """One generalised linear model per group: counts ("poisson", "negative-binomial"), durations ("gamma"), numbers with
    outliers ("t"), successes of several trials ("binomial").

    Parameters and attributes are PersonalizedRegressor's; coefficients are on the scale of the linear predictor,
    predictions are means.

    Examples
    --------
    >>> import numpy as np
    >>> from affpcl import PersonalizedGLM
    >>> rng = np.random.default_rng(0)
    >>> ward = np.repeat(np.arange(20), 15)
    >>> X = rng.normal(size=(300, 1))
    >>> days = rng.integers(1, 30, size=300)
    >>> falls = rng.poisson(days * np.exp(-2 + 0.3 * X[:, 0]))
    >>> model = PersonalizedGLM(family="poisson", offset_scale="response").fit(X, falls, groups=ward, offset=days)
    >>> bool(abs(model.central_coef_[0] - 0.3) < 0.1)
    True
    """

    _families = (*PersonalizedRegressor._families, "binomial")

    def __init__(
        self,
        *,
        family: str = "poisson",
        estimate: str = DEFAULT.estimate,
        group_column: str | int | None = None,
        without_groups: str = "raise",
        common: Sequence[str | int] = (),
        offset_scale: str = DEFAULT.offset_scale,
        missing: str = DEFAULT.missing,
        score_gains: bool = DEFAULT.score,
        seed: int = DEFAULT.seed,
        threads: int = DEFAULT.threads,
    ) -> None:
        super().__init__(family=family, estimate=estimate, group_column=group_column, without_groups=without_groups,
                         common=common, offset_scale=offset_scale, missing=missing, score_gains=score_gains, seed=seed, threads=threads)

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, offset: Any = None,
            trials: Any = None, *, folds: Any = None) -> PersonalizedGLM:
        """Fits a model per group; trials: of family="binomial", whose y counts successes."""
        if (self.family == "binomial") != (trials is not None):
            raise ValueError("family='binomial' of PersonalizedGLM counts successes and needs trials=; "
                             "PersonalizedClassifier is for a yes or no" if trials is None else
                             f"trials= needs family='binomial', and family={self.family!r}")
        self._fit_rows(X, y, groups, sample_weight, trials, offset, folds, y_numeric=True)
        return self


class PersonalizedClassifier(ClassifierMixin, GroupedEstimator):  # type: ignore[misc]
    """One classification per group: a binomial mixed model of two classes, a multinomial one of more (above 300 coefficients
    least squares on class indicators, unless family="multinomial").

    Parameters and attributes are PersonalizedRegressor's; with more than two classes coef_ is groups x classes x columns, of
    logits that sum to 0.

    Examples
    --------
    >>> import numpy as np
    >>> from affpcl import PersonalizedClassifier
    >>> rng = np.random.default_rng(1)
    >>> clinic = np.repeat(np.arange(10), 40)
    >>> X = rng.normal(size=(400, 2))
    >>> ill = rng.random(400) < 1 / (1 + np.exp(-X[:, 0]))
    >>> model = PersonalizedClassifier().fit(X, ill, groups=clinic)
    >>> model.predict_proba(X, groups=clinic).shape
    (400, 2)
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
            self._class_order = np.arange(len(self.classes_))
            return np.asarray(y, dtype=np.float64), []
        names = [str(c) for c in self.classes_.tolist()]
        self._class_order = np.argsort(sorted(range(len(names)), key=lambda k: by_number(names[k])))
        return codes.astype(np.float64), names

    def _engine_offset(self, offset: Array) -> Array:
        return offset if offset.ndim == 1 else offset[:, np.argsort(self._class_order)]

    def _take_classes(self, names: list[str]) -> None:
        try:
            self.classes_ = np.array([float(n) for n in names])
        except ValueError:
            self.classes_ = np.array(names)
        self._class_order = np.argsort(self.classes_)  # the engine's order may be another
        self.classes_ = self.classes_[self._class_order]

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, offset: Any = None, *,
            folds: Any = None) -> PersonalizedClassifier:
        """Fits a model per group. A row of weight w counts as w rows. Offsets are on the scale of the linear predictor:
        one per row for two classes or family="ordinal"; a column per class, in their order, for family="multinomial".
        folds: as the regressor's."""
        self._fit_rows(X, y, groups, sample_weight, None, offset, folds)
        return self

    def partial_fit(self, X: Any, y: Any, groups: Any = None, classes: Any = None) -> PersonalizedClassifier:
        """More rows for the stream solver, as the regressor's. `classes` is what scikit-learn passes; the classes are
        those of the rows."""
        self._accumulate(X, y, groups)
        return self

    def predict_proba(self, X: Any, groups: Any = None, offset: Any = None) -> Array:
        """A column per class, in the order of classes_."""
        rows = self._rows_to_predict(X, groups, offset)
        found: Array = self.model_.predict_proba(*rows)[:, self._class_order]
        return found

    def predict(self, X: Any, groups: Any = None, offset: Any = None) -> Array:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X, groups, offset)
        unknown = np.isnan(probabilities[:, 0])
        if unknown.any():
            raise ValueError(f"row {unknown.argmax()} of X lacks a value and has no class, for the model was fitted with "
                             "missing='drop'; predict_proba gives it NaN")
        found: Array = self.classes_[probabilities.argmax(axis=1)]
        return found

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, offset: Any = None) -> float:
        """Accuracy."""
        return float(accuracy_score(y, self.predict(X, groups, offset), sample_weight=sample_weight))
