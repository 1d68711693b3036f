"""Studies: methods on a problem, with intervals; the paper's figures and theorems."""
from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import Any, Mapping, Sequence, Union

from affpcl import _core
from affpcl.tables import Array, Table

Spec = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def to_toml(value: Any) -> str:
    """A value as TOML writes it, tables inline."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{to_toml(str(k))} = {to_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return to_toml(value.tolist())
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    raise TypeError(f"a spec holds texts, numbers, lists and dicts, not {value!r}")


def read_spec(spec: Spec) -> tuple[str, str]:
    """The TOML of a spec, and its name: a dict, TOML text, or the path of a file."""
    if isinstance(spec, Mapping):
        return "".join(f"{to_toml(str(k))} = {to_toml(v)}\n" for k, v in spec.items()), "spec"
    if isinstance(spec, str) and "\n" in spec:
        return spec, "spec"
    try:
        return pathlib.Path(spec).read_text(encoding="utf-8"), str(spec)
    except OSError as error:
        raise ValueError(f"cannot read {spec}: {error.strerror}") from error


class Result:
    """What a study found. The tables are dicts of NumPy columns; to_pandas() and to_polars() make frames of them.

    >>> import affpcl
    >>> result = affpcl.run({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10, "replicates": 2},
    ...                      "method": [{"kind": "affpcl"}, {"kind": "independent"}]})
    >>> result.summary["method"].tolist()
    ['affpcl', 'independent']
    """

    def __init__(self, outcome: _core.Outcome, study: str = "") -> None:
        self._outcome = outcome
        self._study = study
        self._command = f"affpcl.reproduce({study!r})" if study else "affpcl.run(spec)"

    @property
    def name(self) -> str:
        """The study's name, or that of the spec's file."""
        return self._outcome.name

    @property
    def title(self) -> str:
        """Its title, from the spec."""
        return self._outcome.title

    @property
    def spec(self) -> str:
        """The spec as TOML, with all overrides."""
        return self._outcome.toml

    @property
    def seconds(self) -> float:
        """How long it ran."""
        return self._outcome.seconds

    @property
    def threads(self) -> int:
        """On how many threads."""
        return self._outcome.threads

    @functools.cached_property
    def summary(self) -> Table:
        """A row per setting and method: errors over the last steps, and against learning alone."""
        return Table(self._outcome.summary())

    @functools.cached_property
    def curves(self) -> Table:
        """A row per setting, method, agent (-1: the average) and step."""
        return Table(self._outcome.curves())

    @functools.cached_property
    def agents(self) -> Table:
        """A row per setting, method and agent."""
        return Table(self._outcome.agents())

    @functools.cached_property
    def claims(self) -> list[dict[str, Any]]:
        """What a study of the paper's was expected to show, and what was measured; empty for others."""
        return self._outcome.claims(self._study) if self._study else []

    @property
    def swept(self) -> list[str]:
        """The keys that the settings differ in."""
        return list(self.summary)[: list(self.summary).index("method")]

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in their order."""
        return list(dict.fromkeys(self.summary["method"].tolist()))

    def to_dict(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(self._outcome.json(self._command))
        return found

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The result folder that the command line writes with --out."""
        self._outcome.save(os.fspath(path), force, self._command)

    def _repr_html_(self) -> str:
        return self.summary._repr_html_()

    def __repr__(self) -> str:
        settings = self.summary.rows // max(1, len(self.methods))
        return f"<Result of {self.name}: {settings} settings, methods {', '.join(self.methods)}>"


def overrides_of(values: Mapping[str, Any] | None) -> list[str]:
    return [f"{key}={to_toml(value)}" for key, value in (values or {}).items()]


def run(spec: Spec, *, set: Mapping[str, Any] | None = None, threads: int = 0, trace: str = "") -> Result:
    """Runs a study: the path of a spec, its TOML text, or a dict of the same shape.

    set: keys to change, such as {"run.replicates": 40}. threads: 0 is all cores; the numbers do not depend on it.
    A problem or method written in Python runs on one thread.

    >>> import affpcl
    >>> spec = {"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10}, "method": [{"kind": "fedavg"}]}
    >>> affpcl.run(spec, set={"run.replicates": 2})
    <Result of spec: 1 settings, methods fedavg>
    """
    text, name = read_spec(spec)
    return Result(_core.run(text, name, overrides_of(set), threads, trace))


def reproduce(study: str, *, set: Mapping[str, Any] | None = None, threads: int = 0) -> Result:
    """One of the paper's figures or theorems (affpcl.catalogue()["studies"] lists them).

    >>> import affpcl
    >>> paper = affpcl.reproduce("fig-specific", set={"run.replicates": 2, "run.steps": 20})
    >>> "affpcl" in paper.methods
    True
    """
    return Result(_core.run(_core.embedded_spec(study), study, overrides_of(set), threads, ""), study)


def benchmark(
    *methods: str, problems: Sequence[str] = (), tuned: bool = False, seed: int = 1
) -> dict[str, Table]:
    """Methods on the benchmark's problems, each against independent learning on the same samples.

    methods: kinds, among them those of @affpcl.method; none: all that affpcl has.
    problems: names of the benchmark's problems; none: all that need no data.

    "methods" has a row per method over all cells, "rows" one per method and cell.

    >>> import affpcl
    >>> sorted(affpcl.benchmark("fedavg", problems=["gaussian"]))
    ['methods', 'rows']
    """
    result = json.loads(_core.benchmark(list(methods), list(problems), tuned, seed))

    def table(rows: list[dict[str, Any]]) -> Table:
        flat = [{**row, **{f"{key}_{part}": value for key in ("rank", "vs_independent")
                           for part, value in (row.get(key) or {}).items()}} for row in rows]
        names = [name for name in dict.fromkeys(name for row in flat for name in row)
                 if name not in ("rank", "vs_independent", "by_system")]
        return Table({name: [row.get(name) for row in flat] for name in names})

    return {"methods": table(result["methods"]), "rows": table(result["rows"])}


class Replicate:
    """One replicate of a setting, step by step: to look inside, or to save it and go on later.

    number: as results number replicates; a study's first one is run.first.

    >>> import affpcl
    >>> one = affpcl.Replicate({"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10},
    ...                         "method": [{"kind": "fedavg"}]})
    >>> one.advance(5)
    >>> one.step
    5
    """

    def __init__(self, spec: Spec, *, number: int = 0, threads: int = 1) -> None:
        self._replicate = _core.Replicate(*read_spec(spec), number, threads)

    @property
    def step(self) -> int:
        """Steps done so far."""
        return self._replicate.step

    @property
    def methods(self) -> list[str]:
        """Names of the methods, in their order."""
        return self._replicate.methods

    def advance(self, until: int) -> None:
        """Goes on until so many steps are done; ends where a round does."""
        self._replicate.advance(until)

    def solution(self, method: str) -> Array:
        """[agents, unknowns]: where the method is now."""
        return self._replicate.solution(method)

    def curve(self, method: str) -> Array:
        """The mean squared error after every round so far."""
        return self._replicate.curve(method)

    def save(self) -> tuple[int, list[tuple[str, list[float]]]]:
        """All that it takes to go on from here."""
        return self._replicate.save()

    def load(self, state: tuple[int, list[tuple[str, list[float]]]]) -> None:
        """Goes back, or on, to what save returned."""
        self._replicate.load(state)
