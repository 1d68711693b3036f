"""Personalized(base): group effects on top of any scikit-learn model."""
from __future__ import annotations

from typing import Any, ClassVar, Sequence

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from affpcl.estimators import DEFAULT, PersonalizedClassifier, PersonalizedRegressor
from affpcl.groups import number_groups, split_groups
from affpcl.tables import Array, Table

FOLDS = 5
SMALLEST = 1e-6  # probability, or share of the mean of positive numbers, that a base may predict
LOG_FAMILIES = ("poisson", "negative-binomial", "gamma")


def rows_of(X: Any, rows: Array) -> Any:
    """Rows of an array, or of a pandas or polars frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def deal(codes: Array, seed: int) -> Array:
    """A fold for each row: at random, each group's rows spread evenly over the folds."""
    draw = np.random.default_rng(seed).random(len(codes))
    order = np.lexsort((draw, codes))
    starts = np.searchsorted(codes[order], codes[order])  # where each row's group begins
    folds = np.empty(len(codes), dtype=np.int64)
    folds[order] = (np.arange(len(codes)) - starts + codes[order]) % FOLDS
    return folds


class Personalized(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Personalises a model you already have: linear effects of every group on top of any scikit-learn regressor or
    classifier (gradient boosting, a pipeline, a network).

    Five copies of the base learn from the rows of all groups, each without one fold. A row's prediction by the copy that has
    not seen it becomes the offset of a mixed model, on the scale of the linear predictor: identity for numbers, logit for two
    classes, log-probabilities for more. The mixed model adds effects that differ between groups, as far as the rows support
    them. A new row has the mean of the five copies as its offset.

    Parameters
    ----------
    base : a scikit-learn regressor or classifier; of a classifier predict_proba is used.
    columns : columns of X with linear group effects, by name or number. Default: all columns of numbers. ``[]``: intercepts.
    scale_base : whether a group may trust the base more or less: its prediction is one of the columns too. Default: for
        classes, whose probabilities are often over-confident.
    group_column : column of X that holds the groups. Default: they come beside X, as groups=.
    group_in_base : whether the base sees the column of groups.
    without_groups, missing, family, score_gains, seed, threads : as PersonalizedRegressor's.

    Attributes
    ----------
    bases_ (the five copies), effects_ (the PersonalizedRegressor or PersonalizedClassifier on top), gains_ (a table, a row per
    group; loss_base is the base's own loss on held-out rows), groups_, notes_, classes_.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from affpcl import Personalized
    >>> rng = np.random.default_rng(1)
    >>> site = np.repeat(np.arange(20), 30)
    >>> X = rng.uniform(-2, 2, size=(600, 2))
    >>> y = X[:, 0] ** 2 + rng.normal(size=20)[site] * X[:, 1] + 0.3 * rng.normal(size=600)
    >>> model = Personalized(DecisionTreeRegressor(min_samples_leaf=20)).fit(X, y, groups=site)
    >>> alone = DecisionTreeRegressor(min_samples_leaf=20).fit(X, y)
    >>> bool(model.score(X, y, groups=site) > alone.score(X, y) + 0.1)
    True
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"groups": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"groups": True}

    def __init__(
        self,
        base: Any,
        *,
        columns: Sequence[str | int] | None = None,
        scale_base: bool | None = None,
        group_column: str | int | None = None,
        group_in_base: bool = False,
        without_groups: str = "raise",
        family: str = DEFAULT.family,
        missing: str = DEFAULT.missing,
        score_gains: bool = DEFAULT.score,
        seed: int = DEFAULT.seed,
        threads: int = DEFAULT.threads,
    ) -> None:
        self.base = base
        self.columns = columns
        self.scale_base = scale_base
        self.group_column = group_column
        self.group_in_base = group_in_base
        self.without_groups = without_groups
        self.family = family
        self.missing = missing
        self.score_gains = score_gains
        self.seed = seed
        self.threads = threads

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        base = get_tags(self.base)
        tags.estimator_type = base.estimator_type
        tags.classifier_tags = base.classifier_tags
        tags.regressor_tags = base.regressor_tags
        tags.target_tags.required = True
        tags.input_tags.allow_nan = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.poor_score = False
            tags.classifier_tags.multi_label = False
        if tags.regressor_tags is not None:
            tags.regressor_tags.poor_score = False
        return tags

    # ---- the base ----

    def _rows(self, X: Any, groups: Any, **more: Any) -> tuple[Any, Any, Any, Any]:
        """X as the base sees it, X without the column of groups, the groups, and y."""
        if hasattr(X, "columns"):  # the base encodes what is no number
            y = more.pop("y", None)
            validate_data(self, X, skip_check_array=True, reset=more.get("reset", True))
        else:
            checked = validate_data(self, X, **more)
            X, y = checked if "y" in more else (checked, None)
        rest, groups = split_groups(X, self.group_column, groups)
        return X if self.group_in_base else rest, rest, groups, y

    def _fitted_base(self, X: Any, y: Array, weight: Array | None) -> Any:
        more = {} if weight is None else {"sample_weight": weight}
        return clone(self.base).fit(X, y, **more)

    def _predictor(self, base: Any, X: Any) -> Array:
        """The base's predictions on the scale of the linear predictor: [rows], or [rows, classes]."""
        if not is_classifier(self.base):
            mean = np.asarray(base.predict(X), dtype=np.float64)
            return np.log(np.maximum(mean, self._smallest)) if self.family in LOG_FAMILIES else mean
        p = np.zeros((len(X), len(self.classes_)))  # a fold may lack a class
        p[:, np.searchsorted(self.classes_, base.classes_)] = base.predict_proba(X)
        log_p: Array = np.log(np.clip(p, SMALLEST, 1 - SMALLEST))
        return log_p if len(self.classes_) > 2 else log_p[:, 1] - log_p[:, 0]

    def _out_of_fold(self, X: Any, y: Array, weight: Array | None, folds: Array) -> Array:
        """The base's predictors of every row, each by a base that has not seen the row's fold."""
        found: Array | None = None
        self.bases_ = []
        for fold in range(FOLDS):
            inside, outside = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
            if len(inside) == 0:
                continue
            base = self._fitted_base(rows_of(X, outside), y[outside], None if weight is None else weight[outside])
            self.bases_.append(base)
            eta = self._predictor(base, rows_of(X, inside))
            if found is None:
                found = np.empty((len(y), *eta.shape[1:]))
            found[inside] = eta
        assert found is not None
        return found

    # ---- the effects ----

    def _effect_columns(self, X: Any) -> list[Any]:
        if self.columns is not None:
            return list(self.columns)
        if not hasattr(X, "columns"):
            return list(range(X.shape[1]))
        return [c for c in X.columns if np.asarray(X[c][:1]).dtype.kind in "iuf"]

    def _linear(self, X: Any, eta: Array) -> Array:
        """The columns with group effects."""
        if hasattr(X, "columns"):
            parts = [np.asarray(X[c], dtype=np.float64)[:, None] for c in self.effect_columns_]
        else:
            parts = [np.asarray(X[:, self.effect_columns_], dtype=np.float64)]
        if is_classifier(self.base) if self.scale_base is None else self.scale_base:
            parts.append(eta.reshape(len(eta), -1))
        parts = [part for part in parts if part.shape[1] > 0]
        return np.hstack(parts) if parts else np.zeros((len(eta), 1))  # a constant column is left out

    def _make_effects(self) -> PersonalizedRegressor | PersonalizedClassifier:
        options: dict[str, Any] = {"without_groups": self.without_groups, "family": self.family, "missing": self.missing,
                   "score_gains": self.score_gains, "seed": self.seed, "threads": self.threads}
        if not is_classifier(self.base):
            return PersonalizedRegressor(**options)
        if self.family == DEFAULT.family:
            options["family"] = "multinomial" if len(self.classes_) > 2 else "binomial"
        return PersonalizedClassifier(**options)

    def fit(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Personalized:
        """Fits the base five times, each time without one fold, and the group effects on top."""
        classify = is_classifier(self.base)
        seen, rest, groups, y = self._rows(X, groups, y=y, ensure_min_samples=FOLDS, y_numeric=not classify)
        y = np.asarray(y)
        if classify:
            check_classification_targets(y)
            self.classes_ = np.unique(y)
            if len(self.classes_) < 2:
                raise ValueError(f"y holds one class, {self.classes_[0]!r}; there is nothing to learn")
        elif self.family in LOG_FAMILIES:
            self._smallest = max(SMALLEST * float(np.mean(y)), np.finfo(float).tiny)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None and not has_fit_parameter(self.base, "sample_weight"):
            raise ValueError(f"sample_weight needs a base that takes it; {type(self.base).__name__} does not")
        codes, names = number_groups(groups, len(y))
        eta = self._out_of_fold(seen, y, weight, deal(codes, self.seed))
        self.effect_columns_ = self._effect_columns(rest)
        self.effects_ = self._make_effects().fit(self._linear(rest, eta), y, groups, sample_weight=weight, offset=eta)
        self.groups_, self.notes_ = self.effects_.groups_, self.effects_.notes_
        self.gains_ = self._gains(y, eta, codes, list(names))
        return self

    def _gains(self, y: Array, eta: Array, codes: Array, names: list[str]) -> Table:
        """The gains of the effects, with the base's own loss."""
        gains = self.effects_.gains_
        if "gain" not in gains:
            return gains
        loss = self._base_loss(y, eta)
        mean = {name: loss[codes == k].mean() for k, name in enumerate(names)}
        return Table({**gains, "loss_base": [mean[name] for name in gains["agent"].tolist()]})

    def _base_loss(self, y: Array, eta: Array) -> Array:
        if not is_classifier(self.base):
            mean = np.exp(eta) if self.family in LOG_FAMILIES else eta
            return np.asarray((y - mean) ** 2)
        two = eta.ndim == 1
        log_p = np.column_stack([-np.logaddexp(0, eta), -np.logaddexp(0, -eta)]) if two else (
            eta - np.log(np.exp(eta).sum(axis=1, keepdims=True)))
        return np.asarray(-log_p[np.arange(len(y)), np.searchsorted(self.classes_, y)])

    # ---- predicting ----

    def _to_effects(self, X: Any, groups: Any) -> tuple[Array, Any, Array]:
        check_is_fitted(self)
        seen, rest, groups, _ = self._rows(X, groups, reset=False)
        eta: Array = np.mean([self._predictor(base, seen) for base in self.bases_], axis=0)
        return self._linear(rest, eta), groups, eta

    def predict(self, X: Any, groups: Any = None) -> Array:
        """The base's prediction moved by the group's effects; a group never seen has the centre's."""
        rows = self._to_effects(X, groups)
        return self.effects_.predict(*rows)

    @available_if(lambda self: is_classifier(self.base))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, groups: Any = None) -> Array:
        """A column per class, in the order of classes_."""
        rows = self._to_effects(X, groups)
        return self.effects_.predict_proba(*rows)

    @available_if(lambda self: not is_classifier(self.base))  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, groups: Any = None, level: float = 0.9) -> Array:
        """Columns: the prediction, and the ends of its interval, of coverage `level`."""
        rows = self._to_effects(X, groups)
        return self.effects_.predict_interval(*rows, level=level)

    def score(self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> float:
        """R^2 of numbers, accuracy of classes."""
        measure = accuracy_score if is_classifier(self.base) else r2_score
        return float(measure(y, self.predict(X, groups), sample_weight=sample_weight))
