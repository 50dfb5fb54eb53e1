"""What may stand in the files of config/, and the error that says where one of them is wrong.

`python -m ofslib.reproduction schema` prints a JSON schema of an experiment file, for editors.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    TypeAdapter,
    ValidationError,
    WrapValidator,
    model_validator,
)

from ofslib.simulate import DESIGNS


class PlainError(Exception):
    """An error whose message says all that helps: a notebook shows it without a traceback."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class ConfigurationError(PlainError):
    """A configuration file says something that is not allowed."""


# -------------------------------------------------- kinds of values


def is_by(value: Any) -> bool:
    """Whether a value is {by: axis, value of the axis: what holds there}."""
    return isinstance(value, dict) and isinstance(value.get("by"), str)


def is_axis(value: Any) -> bool:
    """Whether a value is {axis: name}, which stands for the value of this axis."""
    return isinstance(value, dict) and value.keys() == {"axis"} and type(value["axis"]) is str


def _at_each(value: Any, check: Callable) -> Any:
    if is_by(value):
        return {k: v if k == "by" else _at_each(v, check) for k, v in value.items()}
    return value if is_axis(value) else check(value)


# The value itself, or an axis of the grid, or one value for each of an axis.
AtEach = WrapValidator(_at_each, json_schema_input_type=Any)
Values = Annotated[list[Any], Field(min_length=1)]
Sweep = Annotated[dict[str, list[Any]], AtEach]
Scalar = str | int | float | bool
Grid = dict[str, Values | Scalar]


class Keys(BaseModel):
    """The keys of one place. Another key is refused, and 1.0 is no whole number."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _no_other_key(cls, given: Any) -> Any:
        known = {field.alias or name for name, field in cls.model_fields.items()}
        if isinstance(given, dict) and cls.model_config["extra"] == "forbid":
            if unknown := [f"no key {key!r}{alike(key, known)}" for key in given.keys() - known]:
                raise ValueError(f"there is {', and '.join(sorted(unknown))}")
        return given


# -------------------------------------------------- config.yaml, scales.yaml


class Config(Keys):
    """What `snakemake` makes: config/config.yaml.

    Attributes
    ----------
    scale, figures : str
        The scale that is made, and the one that writes to figures/ and report.html.
    real_data : str
        auto: mark what cannot be obtained; require: stop there; none: do without.
    seed : int
    time_limit : int
        Minutes that a notebook may run.
    """

    scale: str
    real_data: Literal["auto", "require", "none"]
    seed: NonNegativeInt
    figures: str = ""
    time_limit: PositiveInt = 2880


class Scale(Keys):
    """How much a scale computes; config/scales.yaml says what each key limits."""

    replicates: PositiveInt
    least_replicates: PositiveInt = 2
    study_replicates: PositiveInt = 0
    settings: PositiveInt | None = None
    values: PositiveFloat | None
    run_values: PositiveFloat | None
    tune_values: PositiveFloat | None
    tune_points: PositiveInt = 0
    timing_repeats: PositiveInt
    timing_values: NonNegativeFloat


# -------------------------------------------------- experiments/*.yaml, methods.yaml


class Simulated(Keys, extra="allow"):
    """The data of a setting that draws its rows.

    Attributes
    ----------
    simulate : str
        A design of ofslib.simulate, of which all other keys are parameters.
    n : int
        The number of rows.
    averages : str
        sampled: methods that learn from running averages get them from their exact law, and only
        others see rows.
    """

    simulate: Literal[tuple(DESIGNS)]
    n: PositiveInt = 0
    averages: Literal["sampled"] = "sampled"


class Split(Keys):
    """The first `train` rows are learned, and the `test` after them, or all, are predicted.

    `order: random`: the rows are permuted by the seed of the replicate before.
    """

    train: PositiveInt
    test: PositiveInt = 0
    order: Literal["file", "random"] = "file"


class RealData(Keys):
    """The data of a setting that reads a data set.

    Attributes
    ----------
    dataset : str
        A row of a table of data sets.
    k : int
        The number of features that a method keeps.
    split : Split
        Without it the training and test rows of the table of data sets.
    products : bool
        Whether the products of all pairs of columns follow the columns; needs `split`.
    standardized : bool
        Whether columns, and the target of a regression, have mean 0 and standard deviation 1 over
        the training rows; needs `split`.
    """

    dataset: str | None = None
    k: PositiveInt = 0
    split: Split | None = None
    products: bool = False
    standardized: bool = False

    @model_validator(mode="after")
    def _split(self) -> "RealData":
        if (self.products or self.standardized) and not self.split:
            raise ValueError("products and standardized need split")
        return self


class Change(Keys, extra="allow"):
    """A method, or what changes of it in a reading or at a scale.

    Attributes
    ----------
    class : str
        Of ofslib, or package.module:Class. All keys but these here are its parameters.
    replicates : int
        Fewer than those of the entry, if the method is slow.
    timed : bool or str
        false: its learning time is not shown; only: nothing else is.
    sweep, at : dict
        Its own swept parameters, and its own point where it is tuned.
    """

    cls: str = Field("", alias="class")
    replicates: Annotated[NonNegativeInt, AtEach] = 0
    timed: Literal[True, False, "only"] = True
    sweep: Sweep = {}
    at: dict[str, Any] = {}


class Method(Change):
    """A column of a table, or a curve of a figure; its keys are those of `Change`."""

    cls: str = Field(alias="class")


class AddedMethod(Method):
    """A method of config/methods.yaml, which joins the `entries` that it names."""

    entries: Annotated[list[str], Field(min_length=1)]


Changes = dict[str, Change | None]  # None leaves the method out


class Study(Keys, extra="allow"):
    """A function that does the runs: function(setting, seeds, data, **all other keys)."""

    function: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")


class Tune(Keys):
    """How parameters are chosen on the training rows.

    Attributes
    ----------
    score : str
        online: the largest online_score_; final: the largest score(X, y).
    at : dict
        Other parameters while tuning.
    grid : dict
        Parameter -> values that are tried.
    rows : int
        Of a stream: as many first rows.
    """

    score: Literal["online", "final"] = "online"
    at: dict[str, Any] = {}
    grid: dict[str, Values] = {}
    rows: PositiveInt = 10_000


class Track(Keys):
    """Models are watched while they learn.

    Attributes
    ----------
    first, per_decade : int
        Their regret from so many rows on, so many times whenever the rows become tenfold.
    every, last : int
        How they follow coefficients that drift, at every such time step, and the RMSE of the last.
    level : float
        With `every`, of true features that change: the rows until this share is found again.
    """

    first: PositiveInt = 0
    per_decade: PositiveInt = 0
    every: PositiveInt = 0
    last: PositiveInt = 0
    level: float = Field(100, gt=0, le=100)

    @model_validator(mode="after")
    def _belong_together(self) -> "Track":
        known = [{"first", "per_decade"}, {"every", "last"}, {"every", "level"}]
        if self.model_fields_set not in known:
            raise ValueError("give first and per_decade, every and last, or every and level")
        return self


class Reading(Keys):
    """A named change of an entry's settings: one way to read what the paper leaves open.

    Attributes
    ----------
    note : str
        What it takes from the text, and what not.
    fitted : dict
        Method -> how many of its values were chosen to match the printed cells.
    data, methods, study, tune : dict
        What it changes of them.
    """

    note: str = ""
    fitted: dict[str, PositiveInt] = {}
    data: dict[str, Any] = {}
    methods: Changes = {}
    study: dict[str, Any] = {}
    tune: Tune = {}


class AtScale(Keys, extra="allow"):
    """What a scale runs of an entry: axis or swept parameter -> values.

    Attributes
    ----------
    methods : list or dict
        Those that are run, or what is changed of some; null leaves a method out.
    replicates : int
        At most so many.
    data, study : dict
        What it changes of them.
    """

    __pydantic_extra__: dict[str, Values]
    methods: Annotated[list[str], Field(min_length=1)] | Changes = {}
    replicates: PositiveInt = 0
    data: dict[str, Any] = {}
    study: dict[str, Any] = {}


class Discussed(Keys, extra="allow"):
    """Why cells do not agree, and which: axis, method or metric -> value or values."""

    __pydantic_extra__: Grid
    why: str = Field(pattern=r"\S")


class TimeClaim(Keys):
    """What a paper says of times, or its numbers show.

    Attributes
    ----------
    says, note : str
    fast, than : str, list of str
        A method that is faster than each of these.
    grows, constant : list of str
        Methods whose time grows with n, or does not.
    """

    says: str
    note: str = ""
    fast: str = ""
    than: Annotated[list[str], Field(min_length=1)] = []
    grows: Annotated[list[str], Field(min_length=1)] = []
    constant: Annotated[list[str], Field(min_length=1)] = []

    @model_validator(mode="after")
    def _claim_one_thing(self) -> "TimeClaim":
        known = [{"fast", "than"}, {"grows"}, {"constant"}]
        if self.model_fields_set - {"says", "note"} not in known:
            raise ValueError("give fast and than, or grows, or constant")
        return self


class EntryKeys(Keys):
    """A table or figure: what is run for it, and what is shown.

    A grid is axes with their values, which are multiplied; each point of it is a setting. Where a
    value may depend on an axis, {axis: name} stands for the axis's own value, and {by: name,
    value: ..., other value: ...} for what holds at each.

    Attributes
    ----------
    source, title, explanation : str
        Paper and number; what it shows; what who has not read the papers needs to read it.
    form : str
        table or figure.
    notebook, published : str
        The notebook in notebooks/ that draws it, and the file in config/published/ of the numbers
        that the paper prints, both without ending.
    shows_also : list of str
        Names of other tables that it shows, which the paper prints by themselves.
    results, only : str, dict
        The entry whose runs are shown, so that nothing is run; of these the values of some axes.
    data, grid, methods, readings : dict
        The settings: see `Simulated` or `RealData`, `Method`, `Reading`; a list of grids is joined.
    study : dict
        A function that does the runs instead: see `Study`.
    sweep : dict
        Parameter of the methods -> values, each of which is a model of its own.
    tune, track : dict
        See `Tune`, `Track`.
    passes : int or str
        Over the training rows of a data set; 2d/n: for d features and n rows.
    metrics : list
        What is shown. time_s is of a study only; other entries measure times by `time`.
    replicates, test_rows : int
        As many as the paper's; number of new rows, null for what is expected of infinitely many.
    time : str or true
        The reading whose learning times are measured; true in an entry without readings.
    alone : bool
        Whether a run has the machine to itself.
    time_limit : int
        Minutes for each of its notebooks, else that of config.yaml.
    unavailable : dict
        Axis -> value -> why its cells cannot be had; nothing is run for them.
    at_scale : dict
        Scale -> `AtScale`.
    weak_baselines : dict
        Method -> why its published numbers are weaker than a correct one's; ours is then better
        for that reason.
    discussed, time_claims : list
        See `Discussed`, of which the first that fits a cell is shown, and `TimeClaim`.
    parameters : dict
        Passed on to the notebook.
    """

    source: str
    title: str
    form: Literal["table", "figure"]
    notebook: str
    published: str | None = None
    results: str | None = None
    shows_also: list[str] = []
    time_limit: PositiveInt | None = None
    explanation: str = ""
    data: dict[str, Any] = {}
    grid: Grid | list[Grid] = {}
    methods: dict[str, Method] = {}
    readings: dict[str, Reading] = {}
    sweep: dict[str, Values] = {}
    passes: PositiveInt | Literal["2d/n"] = 1
    tune: Tune = {}
    track: Track = {}
    study: Study = {}
    metrics: list[
        Literal["DR", "RMSE", "R2", "AUC", "accuracy", "selected", "regret", "time_s"]
    ] = []
    replicates: Annotated[PositiveInt, AtEach] = 1
    test_rows: PositiveInt | None = 1000
    time: str | Literal[True] | None = None
    alone: bool = False
    only: dict[str, Values] = {}
    unavailable: dict[str, dict[Scalar, Annotated[str, Field(min_length=1)]]] = {}
    at_scale: dict[str, AtScale] = {}
    weak_baselines: dict[str, Annotated[str, Field(min_length=1)]] = {}
    discussed: list[Discussed] = []
    time_claims: list[TimeClaim] = []
    parameters: dict[str, Any] = {}


Entries = dict[Annotated[str, Field(pattern="^[a-z][a-z0-9_]*$")], EntryKeys]


def defaults() -> dict[str, Any]:
    """The keys that an entry need not give."""
    fields = EntryKeys.model_fields.items()
    return {name: field.get_default() for name, field in fields if not field.is_required()}


def schema() -> str:
    """The JSON schema of a file of config/experiments, for editors."""
    return json.dumps(_adapter(Entries).json_schema(), indent=2)


# -------------------------------------------------- reading and checking


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """YAML without two of its traps: no key is there twice, and a date is a text."""

    def construct_mapping(self, node, deep=False):
        # The keys that << brings stand elsewhere in the file, and may be overridden.
        start, end = node.start_mark.index, node.end_mark.index
        own = [key.value for key, _ in node.value if start <= key.start_mark.index < end]
        if twice := [name for name in own if own.count(name) > 1]:
            raise yaml.YAMLError(f"{twice[0]!r} is there twice{node.start_mark}")
        return super().construct_mapping(node, deep)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_yaml_str)


def read(root: Path, file: str, kind: Any) -> dict[str, Any]:
    """A file of config/ as it is written, once it is known to be of a kind.

    Raises
    ------
    ConfigurationError
        All faults, one a line: the file, the place in it, and what is wrong.
    """
    try:
        content = yaml.load((root / file).read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    content = {} if content is None else content  # of comments only
    check(content, kind, file)
    return content


def check(content: Any, kind: Any, name: str, separator: str = ", ") -> None:
    """Raise ConfigurationError, with a line for each fault, if a content is not of a kind."""
    try:
        _adapter(kind).validate_python(content)
    except ValidationError as error:
        told: dict[str, list[str]] = {}  # alternatives: what each of them asks for
        for fault in error.errors(include_url=False):
            place = separator.join(filter(None, (name, _place(content, fault))))
            told.setdefault(place, []).append(_what(fault))
        lines = [f"{place}: {', or '.join(what)}" for place, what in told.items()]
        raise ConfigurationError("\n".join(lines)) from None


_adapter = cache(TypeAdapter)


def _place(content: Any, fault: Mapping[str, Any]) -> str:
    """Where a fault is, without the names that pydantic has for alternatives."""
    place = []
    for key in fault["loc"]:
        if isinstance(content, list):
            content = dict(enumerate(content))
        if isinstance(content, dict) and key in content:
            content = content[key]
            place.append(str(key))
    missing = [fault["loc"][-1]] if fault["type"] == "missing" else []
    return ".".join(place + missing)


def _what(fault: Mapping[str, Any]) -> str:
    """What is wrong, and with which value."""
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    if fault["loc"][-1:] == ("[key]",):
        return f"the name {fault['input']!r}: {fault['msg']}; put a number in quotes"
    return f"{fault['msg']}, not {fault['input']!r}"


def alike(name: str, known: Iterable[str]) -> str:
    """What may have been meant by an unknown name, or what is known."""
    near = difflib.get_close_matches(str(name), known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {sorted(known)}"
