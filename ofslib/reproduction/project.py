"""The reproduction as configured: its entries, and where their files are.

The Snakefile and the notebooks both read the project through this module, which imports no numba.
"""

import difflib
import hashlib
import json
import math
import os
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ofslib._files import CorruptFile
from ofslib.datasets.registry import read_rows
from ofslib.reproduction import configuration, identity
from ofslib.reproduction.configuration import ConfigurationError, PlainError, read
from ofslib.reproduction.entries import Entry, Setting, width

if TYPE_CHECKING:
    from ofslib.reproduction import store

__all__ = ["ConfigurationError", "Entry", "NotMade", "Project", "Setting", "find_root", "load"]
__all__ += ["Unknown", "made", "scales"]


class NotMade(PlainError):
    """An entry has no results here: the message says what makes them."""


class Unknown(PlainError):
    """There is no entry or setting of this name: the message names those that there are."""


@dataclass(frozen=True)
class Project:
    """Everything that the configuration in `root` names, at one scale."""

    root: Path
    scale: str
    real_data: str
    seed: int
    committed: str  # the scale that writes to figures/ and report.html
    entries: dict[str, Entry] = field(repr=False)
    # where each entry, and each "entry.method" that is added to one, stands in config/
    files: dict[str, str] = field(repr=False)
    time_limit: int = 2880  # minutes

    def result(self, entry: str, setting: str, kind: str = "") -> Path:
        """File of results of a setting; `kind` is "" or "time"."""
        return Path("results", self.scale, entry, setting + (f".{kind}" if kind else "") + ".csv")

    def setting(self, entry: str, name: str, kind: str = "") -> Setting:
        """What is run under a name; kind "time" for what measures learning times.

        A run of several settings has a name of its own; each of these can be run alone, too.

        Raises
        ------
        Unknown
            If the entry has no such setting; names those that it has.
        """
        source = self.source(self.find_entry(entry))
        settings = source.timed if kind else [*source.to_run, *source.settings]
        known = {setting.name: setting for setting in reversed(settings)}
        if name in known:
            return known[name]
        if not known:
            raise Unknown(f"{entry} has no settings to run; {self.notebook(source.name)} draws it")
        names = "\n".join(f"  {s.name}" for s in (settings if kind else source.settings))
        raise Unknown(f"{entry} has no setting {name!r}. Its settings:\n{names}")

    @property
    def shown_elsewhere(self) -> dict[str, str]:
        """Tables that the entry of another one shows: their names as entries, and that entry."""
        return {also: e.name for e in self.entries.values() for also in e.spec["shows_also"]}

    def find_entry(self, name: str) -> str:
        """The entry of this name, or the one that shows the table of this name.

        Raises
        ------
        Unknown
            If there is none; names those with a similar name.
        """
        names = {entry: entry for entry in self.entries} | self.shown_elsewhere
        if name in names:
            return names[name]
        near = " or ".join(difflib.get_close_matches(str(name), names))
        ask = f" Did you mean {near}?" if near else ""
        raise Unknown(f"There is no entry {name!r}.{ask} notebooks/index.ipynb lists all.")

    def mem_mb(self, setting: Setting) -> int:
        """Memory to reserve for the run of a setting."""
        data, MB = setting.spec["data"], 2**20
        p = self.row(setting.dataset)["n_features"] if setting.dataset else data.get("p", 0)
        if setting.dataset and setting.spec["run_values"] is None:
            least = 4500  # ofs Figure 1 on all rows of MNIST took 4.0 GB
        elif "split" in data or (p or 0) >= 10**6:
            least = 4000  # News20 twice, averages of 4185 columns, or models of a million features
        elif setting.dataset:
            least = 2500  # five copies of the rows of MNIST that a limited scale reads
        else:
            paths = 3 * 200 * 8 * p / MB  # methods that learn 200 penalties at once
            squares = 4 * 8 * p**2 / MB if "averages" in data else 0
            # Small runs took 350 MB or more, and the study of worker processes 1.4 GB.
            start = 1500 if setting.spec["study"] else 900
            least = start + 5 * 8 * 1000 * width(data) / MB + paths + squares
        if any(map(_takes_all_rows, setting.spec["methods"].values())):
            rows = max(part["data"].get("n", 0) for part in setting.parts)
            least += 2 * 8 * rows * width(data) / MB  # with a copy
        # On webspam's stand-in, of 16.6 million features, models and rows took 15.0 GB.
        return math.ceil(max(least, 1000 * (p or 0) / 10**6))

    def shown(self, entry: str, kind: str = "") -> list[Setting]:
        """Settings that an entry shows: those of its source, at the axes that `only` names.

        `kind` "time": as they measure times.
        """
        source, only = self.source(entry), self.entries[entry].spec["only"]
        settings = source.times if kind else source.settings
        return [
            s
            for s in settings
            if all(s.spec["axes"][axis] in values for axis, values in only.items())
        ]

    def inputs(self, entry: str, kind: str = "") -> list[str]:
        """Files of results that the notebook of an entry reads, perhaps with more than it shows."""
        source, shown = self.source(entry), {s.name for s in self.shown(entry, kind)}
        return [
            str(self.result(source.name, run.name, kind))
            for run in (source.timed if kind else source.to_run)
            if any(part["name"] in shown for part in run.parts)
        ]

    def runs(self, *entries: str) -> Iterator[tuple[str, Setting]]:
        """All files of results of this scale, or of some entries, and what is run for each."""
        for name in entries or self.entries:
            entry = self.entries[name]
            for kind, settings in {"": entry.to_run, "time": entry.timed}.items():
                for setting in settings:
                    yield self.result(name, setting.name, kind).as_posix(), setting

    def shipped(self, setting: Setting) -> bool:
        """Whether the archive that comes with the checkout has all results of a run."""
        there = self.archive if self.scale == self.committed else None
        return bool(there) and all(map(there.has, identity.results(setting.spec)))

    @cached_property
    def archive(self) -> "store.Archive | None":
        """The archive that comes with the checkout; None, with a warning, if it is damaged."""
        from ofslib.reproduction import store  # pandas takes a while to import

        try:
            return store.archive(self.root / self.archive_file)
        except FileNotFoundError:
            return None
        except CorruptFile as error:
            warnings.warn(f"{error}; its results are not counted", stacklevel=2)
            return None

    @property
    def archive_file(self) -> str:
        """The archive that comes with the checkout, of the results that `figures/` shows."""
        return f"figures/results-{self.committed}.zip"

    def lacks(self, entry: str) -> list[str]:
        """The results that the notebook of an entry reads which are neither here nor shipped."""
        runs = dict(self.runs(self.source(entry).name))
        wanted = [*self.inputs(entry), *self.inputs(entry, "time")]
        absent = [file for file in wanted if not (self.root / file).is_file()]
        return [file for file in absent if not self.shipped(runs[file])]

    def command(self, entry: str) -> str:
        """What makes an entry at this scale."""
        usual = read(self.root, "config/config.yaml", configuration.Config)["scale"]
        scale = f" --config scale={self.scale}" if self.scale != usual else ""
        return f"snakemake --cores 8 figure_{entry}{scale}"

    def heading(self, entry: str, scale: str) -> str:
        """What a notebook shows that was asked for `scale`, in Markdown."""
        spec = self.entries[entry].spec
        instead = f", since scale {scale} has not been made" if scale != self.scale else ""
        told = f"**{spec['source']}. {spec['title']}.** Scale {self.scale}{instead}."
        return "\n\n".join(filter(None, (told, spec["explanation"])))

    def time_limit_of(self, entry: str) -> int:
        """Minutes that a notebook of an entry may run."""
        return self.entries[entry].spec["time_limit"] or self.time_limit

    def source(self, entry: str) -> Entry:
        """The entry whose runs an entry shows: itself, or the one that it names in `results`."""
        return self.entries[self.entries[entry].spec["results"] or entry]

    def fitted(self, entry: str) -> dict[str, dict[str, int]]:
        """Reading -> method -> how many values were chosen to match the printed cells.

        An entry that shows the runs of another one may have counts of its own: its text may print
        what the other leaves open.
        """
        readings = self.source(entry).spec["readings"] | self.entries[entry].spec["readings"]
        return {name: reading.get("fitted", {}) for name, reading in readings.items()}

    def published(self, entry: str) -> str | None:
        """File of the numbers that the paper prints, if any."""
        name = self.entries[entry].spec["published"]
        return f"config/published/{name}.csv" if name else None

    def notebook(self, entry: str) -> str:
        """The notebook that draws an entry."""
        return f"notebooks/{self.entries[entry].spec['notebook']}.ipynb"

    def figures(self, entry: str) -> list[str]:
        """Files that the notebook of an entry makes."""
        spec, endings = self.entries[entry].spec, [".csv", ".svg", ".pdf"]
        if spec["form"] == "table":
            timed = ["_time.csv", "_time.tex"] * bool(self.source(entry).times)
            endings = [".csv", ".tex", *timed, *["_claims.csv"] * bool(spec["time_claims"])]
        return [f"{self.folder}/{entry}{end}" for end in endings]

    @property
    def folder(self) -> str:
        """Where the figures of this scale are: only the committed scale replaces what is there."""
        return "figures" if self.scale == self.committed else f"figures/{self.scale}"

    @property
    def provenance(self) -> str:
        """The file that says from what the figures of each entry were made."""
        return f"{self.folder}/PROVENANCE.json"

    @property
    def report(self) -> str:
        """The page that shows all figures."""
        return "report.html" if self.scale == self.committed else f"{self.folder}/report.html"

    def row(self, dataset: str) -> dict[str, Any]:
        """What the table of data sets says of one."""
        if dataset not in self.registry:
            known = sorted(self.registry)
            raise ConfigurationError(f"config/datasets.csv has no {dataset!r}, only {known}")
        return self.registry[dataset]

    @cached_property
    def registry(self) -> dict[str, dict[str, Any]]:
        """The table of data sets: name -> its row."""
        try:
            rows = read_rows(self.root / "config/datasets.csv")
        except (FileNotFoundError, ValueError) as error:
            raise ConfigurationError(str(error)) from error
        return {name: {c: row[c] for c in row if c != "name"} for name, row in rows.items()}

    @property
    def datasets(self) -> list[str]:
        """Real data sets that any entry reads."""
        used = {s.dataset for e in self.entries.values() for s in e.to_run if s.dataset}
        return sorted(used)


def committed(root: str | os.PathLike = ".") -> "Project":
    """The configuration at the scale whose figures stand in figures/; as `load`."""
    return load(root, scale=load(root).committed)


def load(root: str | os.PathLike = ".", **changes: Any) -> Project:
    """Read and check the configuration below `root`; `changes` override config.yaml.

    Raises
    ------
    ConfigurationError
        If something is not allowed; names the file, the entry and the key.
    """
    root = Path(root)
    usual = read(root, "config/config.yaml", configuration.Config)
    config = {"figures": usual["scale"]} | usual | changes
    configuration.check(config, configuration.Config, "config/config.yaml with its changes")
    scales = read(root, "config/scales.yaml", dict[str, configuration.Scale])
    for key in ("scale", "figures"):
        if config[key] not in scales:
            raise ConfigurationError(
                f"config/config.yaml: {key}={config[key]!r} is none of {sorted(scales)}"
            )
    config["committed"] = config.pop("figures")
    specs, files = {}, {}
    for path in sorted((root / "config/experiments").glob("*.yaml")):
        file = f"config/experiments/{path.name}"
        for name, spec in read(root, file, configuration.Entries).items():
            if name in specs:
                raise ConfigurationError(f"{file}: entry {name} stands in {files[name]}, too")
            specs[name], files[name] = configuration.defaults() | spec, file
            for scale in specs[name]["at_scale"].keys() - scales.keys():
                why = f"at_scale: {scale!r} is none of {sorted(scales)}"
                raise ConfigurationError(f"{file}, {name}: {why}")
    _add_methods(root, specs, files)
    for spec in specs.values():
        spec["at_scale"] = spec["at_scale"].get(config["scale"], {})
    common = scales[config["scale"]], config["seed"]
    entries = {name: Entry(name, spec, *common) for name, spec in specs.items()}
    project = Project(root, **config, entries=entries, files=files)
    _ = project.registry  # read, and checked, also if no entry uses it
    return project


def _add_methods(root: Path, specs: dict[str, dict], files: dict[str, str]) -> None:
    """Give entries the methods of config/methods.yaml."""
    file = "config/methods.yaml"
    able = sorted(name for name, spec in specs.items() if spec["methods"])
    for label, method in read(root, file, dict[str, configuration.AddedMethod]).items():
        for name in method.pop("entries"):
            if name not in able:
                raise ConfigurationError(f"{file}, {label}: entry {name!r} is none of {able}")
            methods = specs[name]["methods"]
            if label in methods:
                raise ConfigurationError(f"{file}, {label}: {name} has such a method already")
            specs[name]["methods"] = methods | {label: method}
            files[f"{name}.{label}"] = file


def scales(root: str | os.PathLike = ".") -> list[str]:
    """The scales that config/scales.yaml names, the largest last."""
    return list(read(Path(root), "config/scales.yaml", dict[str, configuration.Scale]))


def made(entry: str, scale: str, output: str | None = None, **changes: Any) -> Project:
    """The project at a scale, or at the largest other one at which `entry` has its results.

    Where it lacks those of some data sets only: without these.

    Parameters
    ----------
    entry : str
        As `Project.find_entry` takes it. The project that is returned knows it by this name.
    scale : str
    output : str, optional
        Where the notebook writes its figures. What is written is of `scale` or of none.
    **changes
        As those of `load`.

    Raises
    ------
    NotMade
        If there are no results; names the command that makes them.
    Unknown
        If there is no such entry.
    """
    wanted = load(scale=scale, **changes)
    shows = wanted.find_entry(entry)
    if shows != entry:
        work = made(shows, scale, output, **changes)
        return replace(work, entries=work.entries | {entry: work.entries[shows]})
    if not wanted.lacks(entry):
        return wanted
    works = [load(scale=other, **changes) for other in reversed(scales()) if other != scale]
    # Most of a large scale tells more than all of a small one.
    most = [work for work in works if 2 * len(work.lacks(entry)) < len(work.inputs(entry))]
    for work in [] if output else [*most, wanted, *works]:
        if rest := _without_data(work, entry):
            return rest
    drawn = f"; {wanted.report} shows what is drawn" if os.path.exists(wanted.report) else ""
    raise NotMade(f"{entry} has not been made at scale {scale}: {wanted.command(entry)}{drawn}")


def _without_data(work: Project, entry: str) -> Project | None:
    """The project without the data sets of which an entry has no result, if it has those of others.

    The notebook then marks them as what cannot be had.
    """
    source, lacking = work.source(entry), {*work.lacks(entry)}
    gaps = {axis: dict(values) for axis, values in source.spec["unavailable"].items()}
    for kind, runs in {"": source.to_run, "time": source.timed}.items():
        for run in runs:
            if str(work.result(source.name, run.name, kind)) in lacking:
                axes = {axis: at for axis, at in run.spec["axes"].items() if axis != "reading"}
                if not run.dataset or len(axes) != 1:
                    return None
                [(axis, value)] = axes.items()
                why = f"no result of it is here: {work.command(entry)}"
                gaps.setdefault(axis, {})[value] = why
    spec = source.spec | {"unavailable": gaps}
    rest = replace(work, entries=work.entries | {source.name: replace(source, spec=spec)})
    return rest if rest.inputs(entry) and not rest.lacks(entry) else None


def _takes_all_rows(method: dict[str, Any]) -> bool:
    """Whether a method is a class of the user that cannot learn in parts."""
    if ":" not in method["class"]:
        return False  # without the import of ofslib, which would cost each job a second
    from ofslib.reproduction import methods  # slow to import

    return methods.takes_all_rows(methods.find_class(method["class"]))


def drawing_sources() -> list[str]:
    """The files of ofslib that draw tables and figures: all of this package itself."""
    return sorted(os.path.relpath(file) for file in Path(__file__).parent.glob("*.py"))


def code_of(notebook: str | os.PathLike) -> str:
    """The digest of the code cells of a notebook: neither outputs nor words count."""
    cells = json.loads(Path(notebook).read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def find_root(start: str | os.PathLike = ".") -> Path:
    """The project folder at or above `start`: the one that holds config/config.yaml."""
    start = Path(start).resolve()
    for folder in (start, *start.parents):
        if (folder / "config/config.yaml").is_file():
            return folder
    raise ConfigurationError(f"no config/config.yaml in {start} or above: open the project folder")
