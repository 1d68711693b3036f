"""Studies: methods on a problem, with intervals; the paper's figures and theorems."""
from __future__ import annotations

import csv
import functools
import html
import json
import math
import os
import pathlib
import shutil
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

    def __init__(self, outcome: _core.Outcome | Folder, study: str = "") -> None:
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

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each method."""
        return dict(zip(self.summary["method"].tolist(), self.summary["kind"].tolist()))

    def to_dict(self) -> dict[str, Any]:
        """summary.json."""
        found: dict[str, Any] = json.loads(self._outcome.json(self._command))
        return found

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """The result folder that the command line writes with --out."""
        self._outcome.save(os.fspath(path), force, self._command)

    def _repr_html_(self) -> str:
        text: str = self.to_dict()["headline"]
        return f"<p>{html.escape(text)}</p>{errors_chart(self)}{self.summary._repr_html_()}"

    def __str__(self) -> str:
        """The headline and the table: print(result)."""
        return f"{self.to_dict()['headline']}\n{self.summary}"

    def __repr__(self) -> str:
        settings = self.summary.rows // max(1, len(self.methods))
        return f"<Result of {self.name}: {settings} settings, methods {', '.join(self.methods)}>"


def method_places(kinds: Mapping[str, str]) -> dict[str, int]:
    """A place in the palette for each method: that of its kind, else the first spare one; -1 for independent learning."""
    known = method_colours()
    found: dict[str, int] = {}
    for name, kind in kinds.items():
        own = -1 if kind == "independent" else known["kinds"].get(kind)
        if own is not None and own not in found.values():
            found[name] = own
    more = 0
    for name in kinds:
        if name not in found:
            free = [place for place in known["spare"] if place not in found.values()]
            found[name] = free[0] if free else known["spare"][more % len(known["spare"])]
            more += not free
    return {name: found[name] for name in kinds}


@functools.cache
def method_colours() -> dict[str, Any]:
    """One colour for each method, which the report page shares."""
    found: dict[str, Any] = json.loads(pathlib.Path(__file__).with_name("method_colours.json").read_text(encoding="utf-8"))
    return found


def colours_of(kinds: Mapping[str, str]) -> dict[str, str]:
    """Each method's colour on a light ground."""
    known = method_colours()
    return {name: known["alone"][0] if place < 0 else known["palette"][place][0] for name, place in method_places(kinds).items()}


def errors_chart(result: Result, width: int = 480) -> str:
    """The error of each method at the first setting, with its interval, on a logarithmic axis, as SVG."""
    first = result.summary.where(method=result.methods[0])
    place = result.summary.at({key: first[key][0] for key in result.swept})
    rows = [(str(n), float(m), float(lo), float(hi)) for n, m, lo, hi in
            zip(place["method"], place["mse_mean"], place["mse_lo"], place["mse_hi"]) if m > 0]
    if not rows:
        return ""
    ends = [math.log(v) for _, m, lo, hi in rows for v in (m, max(lo, m / 10), hi) if v > 0]
    left, right = min(ends), max(ends)
    colours = colours_of(result.kinds)

    def x(value: float) -> float:
        return 120 + (math.log(value) - left) / ((right - left) or 1) * (width - 140)

    lines = []
    for row, (name, mean, lo, hi) in enumerate(rows):
        y = 16 * row + 8
        lines += [
            f'<text x="112" y="{y + 4}" text-anchor="end" font-size="11" fill="currentColor">{html.escape(name[:16])}</text>',
            f'<circle cx="{x(mean):.1f}" cy="{y}" r="3.5" fill="{colours[name]}"/>']
        if hi > 0:
            lines.append(f'<line x1="{x(max(lo, mean / 10)):.1f}" x2="{x(hi):.1f}" y1="{y}" y2="{y}" stroke="{colours[name]}"/>')
    where = ", ".join(f"{key} = {first[key][0]}" for key in result.swept)
    words = f"mean squared error of each method{' at ' + where if where else ''}, 90 % intervals, logarithmic"
    return (f'<svg role="img" aria-label="{html.escape(words)}" width="{width}" height="{16 * len(rows)}">{"".join(lines)}</svg>'
            f"<p><small>{html.escape(words)}</small></p>")


class Folder:
    """A result folder, read as if its study had just been run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)
        try:
            self.text = (self.path / "summary.json").read_text(encoding="utf-8")
            self.found: dict[str, Any] = json.loads(self.text)
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.path} is not a result folder: {error}") from error
        if "settings" not in self.found:
            raise ValueError(f"{self.path} is not the result of a study; load_model reads those of fit")
        manifest = self.found["manifest"]
        self.name: str = manifest.get("study", "")
        self.title: str = manifest["spec"].get("title", "")
        self.toml: str = manifest.get("spec_toml", "")
        self.complete: bool = manifest["complete"]
        self.seconds: float = manifest["seconds"]
        self.threads: int = manifest["threads"]
        self.keys = list(self.found["settings"][0]["at"]) if self.found["settings"] else []

    def summary(self) -> dict[str, Any]:
        rows = []
        for s in self.found["settings"]:
            for m in s["methods"]:
                vs = m["vs_independent"] or {}
                rows.append({**s["at"], "method": m["name"], "kind": m["kind"],
                             **{f"mse_{part}": m["mse"][part] for part in ("mean", "lo", "hi", "median")},
                             **{f"vs_independent_{part}": vs.get(part) for part in ("mean", "lo", "hi")},
                             "central_x": m["central"]["x"], "central_theta": m["central"]["theta"],
                             "replicates": s["replicates"], "used": s["used"], "up": float(m["comm"]["up"]),
                             "down": float(m["comm"]["down"]), "seconds": m["seconds"]})
        whole = {*self.keys, "method", "kind", "replicates", "used"}
        nan = float("nan")
        return {name: [r[name] if name in whole or r[name] is not None else nan for r in rows] for name in (rows[0] if rows else {})}

    def table(self, file: str, renamed: Mapping[str, str]) -> dict[str, Any]:
        """A CSV file of the folder: numbers where all of a column are, agents as -1 for "all"."""
        with open(self.path / file, encoding="utf-8", newline="") as lines:
            reader = csv.reader(lines)
            names = next(reader)
            columns = list(zip(*reader)) or [()] * len(names)
        return {renamed.get(name, name): values_of(name, column) for name, column in zip(names, columns)}

    def curves(self) -> dict[str, Any]:
        return self.table("curves.csv", {})

    def agents(self) -> dict[str, Any]:
        return self.table("agents.csv", {"vs_independent": "vs_independent_mean", "vs_lo": "vs_independent_lo", "vs_hi": "vs_independent_hi"})

    def claims(self, study: str) -> list[dict[str, Any]]:
        path = self.path / "claims.json"
        found: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        return found

    def json(self, command: str) -> str:
        return self.text

    def save(self, path: str, force: bool, command: str) -> None:
        shutil.copytree(self.path, path, dirs_exist_ok=force)


def values_of(name: str, column: Sequence[str]) -> list[Any]:
    """The cells of a CSV column as numbers, if all of them are; blank ones are NaN."""
    if name == "agent":
        return [-1 if cell == "all" else int(cell) for cell in column]
    if name == "method":
        return list(column)
    try:
        return [float(cell) if cell else float("nan") for cell in column]
    except ValueError:
        return list(column)


def load_result(path: str | os.PathLike[str]) -> Result:
    """A result folder that `affpcl run` or `reproduce` wrote with --out, or Result.save; its summary lacks `sent`.

    >>> import affpcl, tempfile
    >>> spec = {"problem": {"kind": "gaussian", "agents": 4}, "run": {"steps": 10}, "method": [{"kind": "fedavg"}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     affpcl.run(spec, set={"run.replicates": 2}).save(folder + "/result")
    ...     affpcl.load_result(folder + "/result").methods
    ['fedavg']
    """
    folder = Folder(path)
    return Result(folder, folder.name)


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

    methods: kinds, among them those of @affpcl.method; none: all of them. Ranks are among the methods that run.
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
