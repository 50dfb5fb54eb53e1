"""The project as it is shipped: tests read it without what a user has added to it."""

import atexit
import re
import shutil
import tempfile
from pathlib import Path

from ofslib.reproduction import project

ROOT = Path(__file__).parents[1]
EXPERIMENTS = ("barda", "bounds", "dissertation", "drift", "growth", "ofs", "os", "sfsa", "untuned")
EXPERIMENTS += ("boundary", "knockoffs", "limits", "performance", "ranking", "workers")


def copy(folder: Path, *parts: str, without: tuple[str, ...] = ()) -> Path:
    """Copy these folders of the project; config/ without what a user has added."""
    for part in parts:
        ignored = shutil.ignore_patterns(*without)
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    leave_out_what_is_added(folder)
    return folder


def leave_out_what_is_added(folder: Path) -> None:
    """Remove a user's methods, entries and data sets from the configuration of a copy."""
    (folder / "config/methods.yaml").write_text("", encoding="utf-8")
    columns, *_ = (ROOT / "ofslib/datasets/datasets.csv").read_text(encoding="utf-8").splitlines()
    (folder / "config/datasets.csv").write_text(columns + "\n", encoding="utf-8")
    for file in (folder / "config/experiments").glob("*.yaml"):
        if file.stem not in EXPERIMENTS:
            file.unlink()


def at_smoke(folder: Path) -> project.Project:
    """Make smoke the usual scale of a copy of the project: its `figures/` are of another."""
    file = folder / "config/config.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"(?m)^scale: \w+$", "scale: smoke", text), encoding="utf-8")
    work = project.load(folder)
    assert (work.scale, work.folder) == ("smoke", "figures/smoke")
    return work


def load(**changes) -> project.Project:
    """The shipped project; `changes` as those of `project.load`."""
    return project.load(_FOLDER, **changes)


_FOLDER = Path(tempfile.mkdtemp())
atexit.register(shutil.rmtree, _FOLDER, ignore_errors=True)
copy(_FOLDER, "config", "notebooks", "benchmarks")
