"""The engine of affpcl."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import numpy
import numpy.typing
from numpy.typing import NDArray


def catalogue() -> dict:
    """
    Problems, methods, density ratios, studies and the keys of a spec, with their defaults.

    >>> import affpcl
    >>> 'affpcl' in affpcl.catalogue()['methods']
    True
    """

def embedded_spec(name: str) -> str:
    """The spec.toml of a study that comes with affpcl."""

def version() -> str: ...

def instruction_set() -> str:
    """
    The instruction set that kernels use on this machine.

    >>> import affpcl
    >>> isinstance(affpcl.instruction_set(), str)
    True
    """

class Outcome:
    """A study and what came of it."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def toml(self) -> str: ...

    @property
    def complete(self) -> bool: ...

    @property
    def seconds(self) -> float: ...

    @property
    def threads(self) -> int: ...

    def summary(self) -> dict: ...

    def curves(self) -> dict: ...

    def agents(self) -> dict: ...

    def claims(self, study: str) -> list: ...

    def json(self, command: str) -> str:
        """summary.json, as the command line writes it."""

    def save(self, path: str, force: bool, command: str) -> None:
        """The result folder, as the command line writes it."""

def run(toml: str, name: str, overrides: Sequence[str], threads: int, trace: str) -> Outcome:
    """Runs a study; threads 0: as many as the machine has."""

def benchmark(methods: Sequence[str], problems: Sequence[str], tuned: bool, seed: int) -> str:
    """benchmark.json of the benchmark, on one thread."""

def message_kind(message: bytes) -> str:
    """
    What a message of a federation is: open, begin, shares, total, end, ...
    """

def message_progress(message: bytes) -> float:
    """How much of its work the site that sent a message has done."""

def message_numbers(message: bytes) -> bytes:
    """
    The part or the total of a sum that a message carries, 16 bytes a number; nothing of texts.
    """

class FederationCentre:
    """
    Adds what the sites of a federation send; message() is what all are sent next.
    """

    def __init__(self, job: str, sites: Sequence[str], *, min_sites: int = 0, secure: bool = True, journal: str = '') -> None: ...

    def message(self) -> bytes: ...

    def expected(self) -> list[str]:
        """Sites whose answer to this message is still missing."""

    def take(self, site: str, answer: bytes) -> None: ...

    def lost(self, site: str) -> None: ...

    def back(self, site: str) -> None: ...

    def drop_lost(self) -> None: ...

    def may_drop(self) -> bool: ...

    def fail(self, why: str) -> None: ...

    @property
    def state(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def progress(self) -> float: ...

    @property
    def rounds(self) -> int: ...

    @property
    def sites(self) -> list[str]: ...

    @property
    def model(self) -> str:
        """The model that all sites have in common: centre.json."""

    @property
    def ledger(self) -> str:
        """What was added, as JSON."""

class FitOptions:
    """How to fit; new ones hold the engine's defaults."""

    def __init__(self) -> None: ...

    @property
    def solver(self) -> str:
        """
        exact: all rows at once, a mixed model; stream: one pass, each row predicted, then learnt
        """

    @solver.setter
    def solver(self, arg: str, /) -> None: ...

    @property
    def score(self) -> bool:
        """
        score the models on held-out rows and stack them; without, all models are personalised
        """

    @score.setter
    def score(self, arg: bool, /) -> None: ...

    @property
    def repeats(self) -> int:
        """
        exact solver: times the rows are dealt into folds; losses are means over them; 0: 5 up to 20,000 rows, else 1 (also for more than two classes with more than 60 coefficients)
        """

    @repeats.setter
    def repeats(self, arg: int, /) -> None: ...

    @property
    def sum(self) -> str:
        """
        sums over agents: float, in a fixed order; fixed: in fixed point, to the same bits for any partition of the agents, as in a federation
        """

    @sum.setter
    def sum(self, arg: str, /) -> None: ...

    @property
    def level(self) -> float:
        """
        coverage of the intervals of gains, such as .95: an agent gained or lost where its interval excludes 0
        """

    @level.setter
    def level(self, arg: float, /) -> None: ...

    @property
    def privacy(self) -> str:
        """
        epsilon=4,delta=1e-5: differential privacy of every row, by noise on one release of the agents' moments; gaussian family, exact solver, no scores
        """

    @privacy.setter
    def privacy(self, arg: str, /) -> None: ...

    @property
    def bounds(self) -> str:
        """
        `privacy`: what the target and every column are known to lie in, y=0:100,x=-3:3,kind=a|b, or a file of such entries, one a line; values outside are clipped
        """

    @bounds.setter
    def bounds(self, arg: str, /) -> None: ...

    @property
    def threads(self) -> int:
        """threads to use, 0 for all cores; the numbers do not depend on it"""

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def target(self) -> str:
        """the column to predict"""

    @target.setter
    def target(self, arg: str, /) -> None: ...

    @property
    def agent(self) -> str:
        """the column of the rows' agents; by default agent, else site"""

    @agent.setter
    def agent(self, arg: str, /) -> None: ...

    @property
    def weights(self) -> str:
        """
        a CSV file with the agents' weights: a column with the agent's name and one per channel
        """

    @weights.setter
    def weights(self, arg: str, /) -> None: ...

    @property
    def task(self) -> str:
        """auto: a string target is a class"""

    @task.setter
    def task(self, arg: str, /) -> None: ...

    @property
    def family(self) -> str:
        """
        the target's distribution: gaussian, t, binomial, multinomial, poisson, negative-binomial, gamma or ordinal; auto: binomial for two classes and for 0/1, else gaussian
        """

    @family.setter
    def family(self, arg: str, /) -> None: ...

    @property
    def row_weight(self) -> str:
        """a column of weights of the rows: a row of weight 2 counts as two rows"""

    @row_weight.setter
    def row_weight(self, arg: str, /) -> None: ...

    @property
    def trials(self) -> str:
        """binomial: a column of numbers of trials; the target counts successes"""

    @trials.setter
    def trials(self, arg: str, /) -> None: ...

    @property
    def offset(self) -> str:
        """
        a column that is added to the linear predictor; multinomial: one for each class, in their order
        """

    @offset.setter
    def offset(self, arg: str, /) -> None: ...

    @property
    def offset_scale(self) -> str:
        """
        the offset's scale: that of the linear predictor (link), or means and probabilities (response)
        """

    @offset_scale.setter
    def offset_scale(self, arg: str, /) -> None: ...

    @property
    def within(self) -> str:
        """
        the column of a second factor within whose levels agents lie, such as the schools of pupils: its levels get random intercepts
        """

    @within.setter
    def within(self, arg: str, /) -> None: ...

    @property
    def crossed(self) -> str:
        """
        the same for a factor whose levels agents share, such as the students of lecturers
        """

    @crossed.setter
    def crossed(self, arg: str, /) -> None: ...

    @property
    def seed(self) -> int:
        """seed of the split into folds"""

    @seed.setter
    def seed(self, arg: int, /) -> None: ...

    @property
    def time(self) -> str:
        """
        the column, of numbers or dates, that orders an agent's rows: later rows are then scored by models of earlier ones; stream solver: by default the order in the table
        """

    @time.setter
    def time(self, arg: str, /) -> None: ...

    @property
    def folds(self) -> str:
        """
        exact solver: a column that names each row's fold of the cross-validation, 2 to 50 of them; by default 5, at random within agents
        """

    @folds.setter
    def folds(self, arg: str, /) -> None: ...

    @property
    def missing(self) -> str:
        """
        missing values: error, mean (filled with the column's mean), drop (the row is left out) or indicator (mean, and a column that says so); age=drop is for one column
        """

    @missing.setter
    def missing(self, arg: str, /) -> None: ...

    @property
    def categorical(self) -> str:
        """columns that are categories, whatever they hold"""

    @categorical.setter
    def categorical(self, arg: str, /) -> None: ...

    @property
    def numeric(self) -> str:
        """columns that must be numbers, and are no ids"""

    @numeric.setter
    def numeric(self, arg: str, /) -> None: ...

    @property
    def levels(self) -> int:
        """most levels of a column of texts"""

    @levels.setter
    def levels(self, arg: int, /) -> None: ...

    @property
    def level_rows(self) -> int:
        """levels of a column of texts with fewer rows become one, called other"""

    @level_rows.setter
    def level_rows(self, arg: int, /) -> None: ...

    @property
    def sep(self) -> str:
        """
        separator of a text table: one character, tab or space; auto: comma, semicolon, tab or |, found together with the decimal mark
        """

    @sep.setter
    def sep(self, arg: str, /) -> None: ...

    @property
    def decimal(self) -> str:
        """decimal mark of a text table"""

    @decimal.setter
    def decimal(self, arg: str, /) -> None: ...

    @property
    def encoding(self) -> str:
        """encoding of a text table; latin-1 is Windows-1252, its superset"""

    @encoding.setter
    def encoding(self, arg: str, /) -> None: ...

    @property
    def na(self) -> str:
        """words for a missing value, in any case; a blank always is one"""

    @na.setter
    def na(self, arg: str, /) -> None: ...

    @property
    def skip(self) -> int:
        """lines of a text table before the names of its columns"""

    @skip.setter
    def skip(self, arg: int, /) -> None: ...

    @property
    def comment(self) -> str:
        """
        character that begins a line to ignore (lines with # before the names are ignored anyway)
        """

    @comment.setter
    def comment(self, arg: str, /) -> None: ...

    @property
    def covariance(self) -> str:
        """
        form of the random-effects covariance; average: all three, weighted by their evidence
        """

    @covariance.setter
    def covariance(self, arg: str, /) -> None: ...

    @property
    def estimate(self) -> str:
        """
        the variances maximise the likelihood (ml) or the restricted likelihood (reml); auto: reml for the gaussian family without common columns, else ml
        """

    @estimate.setter
    def estimate(self, arg: str, /) -> None: ...

    @property
    def plain(self) -> bool:
        """
        the same noise variance for all agents and none outlying, instead of an average over both
        """

    @plain.setter
    def plain(self, arg: bool, /) -> None: ...

    @property
    def approximation(self) -> str:
        """
        binomial and multinomial: laplace, as lme4 and GPBoost have it; variational: a lower bound of the likelihood; auto: laplace for two classes unless the bound shows it to be far off
        """

    @approximation.setter
    def approximation(self, arg: str, /) -> None: ...

    @property
    def method(self) -> str:
        """
        stream solver: any method of `affpcl list`; by default guarded AffPCL where outcomes are weighted, else residual
        """

    @method.setter
    def method(self, arg: str, /) -> None: ...

    @property
    def method_values(self) -> dict[str, bool | int | float | str | list[float]]: ...

    @method_values.setter
    def method_values(self, arg: Mapping[str, bool | int | float | str | Sequence[float]], /) -> None: ...

    def set_td(self, values: Mapping[str, bool | int | float | str | Sequence[float]]) -> None:
        """Values of states from a log of transitions instead of a table."""

    def set_centre(self, centre: Model) -> None:
        """A centre that these agents took no part in, which they join."""

    @property
    def paths(self) -> list[str]: ...

    @paths.setter
    def paths(self, arg: Sequence[str], /) -> None: ...

    @property
    def features(self) -> list[str]: ...

    @features.setter
    def features(self, arg: Sequence[str], /) -> None: ...

    @property
    def exclude(self) -> list[str]: ...

    @exclude.setter
    def exclude(self, arg: Sequence[str], /) -> None: ...

    @property
    def channels(self) -> list[str]: ...

    @channels.setter
    def channels(self, arg: Sequence[str], /) -> None: ...

    @property
    def common(self) -> list[str]: ...

    @common.setter
    def common(self, arg: Sequence[str], /) -> None: ...

    @property
    def beside(self) -> list[str]: ...

    @beside.setter
    def beside(self, arg: Sequence[str], /) -> None: ...

    @property
    def test(self) -> list[str]: ...

    @test.setter
    def test(self, arg: Sequence[str], /) -> None: ...

class Groups:
    """Whose row each is: codes into names."""

    def __init__(self, codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], names: Sequence[str]) -> None: ...

class DataTable:
    """Columns of numbers and texts in memory."""

    def __init__(self, name: str = 'the table') -> None: ...

    def add_numbers(self, name: str, numbers: Annotated[NDArray, dict(device='cpu', writable=False)]) -> None: ...

    def add_texts(self, name: str, texts: Groups) -> None:
        """Codes into texts; -1: missing."""

class Model:
    """
    One linear model per agent, as model.json holds it.

    >>> import affpcl
    >>> rows = {'agent': ['a', 'b'] * 10, 'size': list(range(20)), 'y': list(range(20))}
    >>> affpcl.fit(rows, target='y').model.sources
    ['size']
    """

    @property
    def solver(self) -> str: ...

    @property
    def method(self) -> str: ...

    @property
    def family(self) -> str: ...

    @property
    def estimate(self) -> str:
        """
        whether the variances maximise the likelihood (ml) or the restricted one (reml); of a stream: empty
        """

    @property
    def rows(self) -> int: ...

    @property
    def missing(self) -> str: ...

    @property
    def target(self) -> str: ...

    @property
    def agent_column(self) -> str: ...

    @property
    def classes(self) -> list[str]: ...

    @property
    def coefficients(self) -> list[str]: ...

    @property
    def sources(self) -> list[str]: ...

    @property
    def texts(self) -> list[bool]:
        """Which of the sources are string columns."""

    @property
    def agents(self) -> list[str]: ...

    @property
    def given(self) -> list[str]:
        """Each agent's chosen model."""

    @property
    def means(self) -> NDArray[numpy.float64]: ...

    @property
    def deviations(self) -> NDArray[numpy.float64]: ...

    @property
    def x(self) -> NDArray[numpy.float64]:
        """[agents][channels][coefficients], of standardised columns."""

    @property
    def se(self) -> NDArray[numpy.float64]: ...

    @property
    def alone(self) -> NDArray[numpy.float64]: ...

    @property
    def centre(self) -> NDArray[numpy.float64]: ...

    @property
    def centre_se(self) -> NDArray[numpy.float64]: ...

    @property
    def pooled(self) -> NDArray[numpy.float64]: ...

    @staticmethod
    def read(path: str) -> Model:
        """From model.json, or the folder of one."""

    @staticmethod
    def parse(text: str) -> Model: ...

    def json(self) -> str: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def write(self, path: str) -> None: ...

    def predict(self, X: Annotated[NDArray, dict(device='cpu', writable=False)], groups: Groups, offset: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]: ...

    def predict_interval(self, X: Annotated[NDArray, dict(device='cpu', writable=False)], groups: Groups, offset: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None, level: float = 0.9) -> NDArray[numpy.float64]:
        """Columns: prediction, and the ends of its interval."""

    def predict_proba(self, X: Annotated[NDArray, dict(device='cpu', writable=False)], groups: Groups, offset: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]: ...

    def predict_table(self, table: DataTable, level: float = 0.9) -> NDArray[numpy.float64]:
        """
        Columns: prediction and the ends of its interval, or the probabilities of classes.
        """

    def predict_files(self, files: Sequence[str], level: float = 0.9) -> str:
        """The files' rows with their predictions, as CSV."""

class FitResult:
    """A model, and what learning together gained each agent."""

    @property
    def model(self) -> Model: ...

    @property
    def notes(self) -> list[str]: ...

    @property
    def scored(self) -> bool: ...

    @property
    def seconds(self) -> float: ...

    @property
    def threads(self) -> int: ...

    @property
    def headline(self) -> str: ...

    def save(self, path: str, force: bool) -> None:
        """The folder that the command line writes."""

    def json(self) -> str:
        """summary.json, as the command line writes it."""

def fit_arrays(X: Annotated[NDArray, dict(device='cpu', writable=False)], columns: Sequence[str], y: Annotated[NDArray, dict(device='cpu', writable=False)], labels: Sequence[str], groups: Groups, options: FitOptions, row_weight: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None, trials: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None, offset: Annotated[NDArray, dict(device='cpu', writable=False)] | None = None, folds: Groups | None = None, progress: object | None = None) -> FitResult:
    """
    Fits arrays; with labels y holds codes into them. The options name target and agent.
    """

def fit_files(options: FitOptions, progress: object | None = None) -> FitResult:
    """
    Fits the files that the options name; progress(share) is called as the work goes on.
    """

def fit_table(table: DataTable, options: FitOptions, progress: object | None = None) -> FitResult:
    """Fits a table in memory."""

def report_page(folders: Sequence[str]) -> str:
    """The page of a result folder, or of two compared."""

def affinity_files(options: FitOptions, share: float) -> list[tuple[str, str]]: ...

def affinity_table(table: DataTable, options: FitOptions, share: float) -> list[tuple[str, str]]: ...

class Key:
    """
    Which random numbers: a pure function of this, agent and purpose.

    >>> import affpcl
    >>> affpcl.Key(seed=1, replicate=2).replicate
    2
    """

    def __init__(self, seed: int, replicate: int = 0, step: int = 0) -> None: ...

    @property
    def seed(self) -> int: ...

    @property
    def replicate(self) -> int: ...

    @property
    def step(self) -> int: ...

class Shape:
    """How large a problem is."""

    @property
    def agents(self) -> int: ...

    @property
    def d(self) -> int: ...

    @property
    def k(self) -> int: ...

    @property
    def p(self) -> int: ...

class Sample:
    """What draw is given: whose samples, and their random numbers."""

    @property
    def key(self) -> Key: ...

    @property
    def agents(self) -> slice: ...

    @property
    def memory(self) -> numpy.typing.NDArray[numpy.float64]:
        """What agents remember between samples, to be changed."""

    @property
    def acting(self) -> numpy.typing.NDArray[numpy.float64]:
        """The iterate that acts."""

    def normals(self, rows: int, purpose: str = 'sample', first: int = 0) -> NDArray[numpy.float64]: ...

    def uniforms(self, rows: int, purpose: str = 'sample', first: int = 0) -> NDArray[numpy.float64]: ...

class Fields:
    """Arrays by name; to assign to one is to write into it."""

    def __getitem__(self, name: str) -> numpy.typing.NDArray[numpy.float64]: ...

    def __setitem__(self, name: str, value: numpy.typing.ArrayLike) -> None: ...

    def __len__(self) -> int: ...

    def __contains__(self, name: str) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def keys(self) -> list[str]: ...

    def values(self) -> list[numpy.typing.NDArray[numpy.float64]]: ...

    def items(self) -> list[tuple[str, numpy.typing.NDArray[numpy.float64]]]: ...

class Block:
    """What contribute and update are given: one block of agents."""

    @property
    def agents(self) -> slice: ...

    @property
    def steps(self) -> int:
        """Local steps of this round."""

    @property
    def batch(self) -> int:
        """Samples of a local step."""

    @property
    def agent(self) -> Fields:
        """The agents' fields, to be changed."""

    @property
    def centre(self) -> Fields:
        """What all agents share."""

    @property
    def mean(self) -> Fields:
        """The mean of what was contributed."""

    def step_size(self, k: int = 0) -> numpy.typing.NDArray[numpy.float64]: ...

    def central_step_size(self, k: int = 0) -> float: ...

    def residual(self, k: int, x: numpy.typing.NDArray[numpy.float64]) -> numpy.typing.NDArray[numpy.float64]:
        """The direction A(s) x - b(s) of each agent's samples of local step k."""

    def sample(self, k: int = 0, m: int = 0) -> tuple[numpy.typing.NDArray[numpy.float64], numpy.typing.NDArray[numpy.float64]]:
        """s, and b(s)."""

    def local_steps(self, field: str) -> None:
        """All local steps x -= step_size * residual of a field."""

def normals(key: Key, agents: int, rows: int, purpose: str, first: int = 0) -> NDArray[numpy.float64]:
    """
    [rows][agents] standard normal numbers of a stream.

    >>> import affpcl
    >>> affpcl.normals(affpcl.Key(1), 4, 2, 'sample').shape
    (2, 4)
    """

def uniforms(key: Key, agents: int, rows: int, purpose: str, first: int = 0) -> NDArray[numpy.float64]:
    """
    [rows][agents] numbers in (0, 1) of a stream.

    >>> import affpcl
    >>> affpcl.uniforms(affpcl.Key(1), 4, 2, 'sample').shape
    (2, 4)
    """

def add_problem(name: str, doc: str, defaults: Mapping[str, bool | int | float | str | Sequence[float]], make: object) -> None: ...

def add_method(name: str, doc: str, defaults: Mapping[str, bool | int | float | str | Sequence[float]], make: object) -> None: ...

class Replicate:
    """One replicate of a setting, run step by step."""

    def __init__(self, toml: str, name: str, number: int, threads: int) -> None: ...

    def advance(self, until: int) -> None: ...

    @property
    def step(self) -> int: ...

    @property
    def methods(self) -> list[str]: ...

    def solution(self, method: str) -> NDArray[numpy.float64]: ...

    def curve(self, method: str) -> NDArray[numpy.float64]: ...

    def save(self) -> tuple[int, list[tuple[str, list[float]]]]: ...

    def load(self, state: tuple[int, Sequence[tuple[str, Sequence[float]]]]) -> None: ...
