"""The tutorial on extending the project, followed word by word in a temporary copy."""

import re
import shutil
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import shipped
import yaml
from test_notebooks import show

from ofslib import _files
from ofslib.reproduction import experiment, project, records, splits, store, strict

LEARN = shipped.ROOT / "notebooks/learn"


def sections():
    """Heading -> the code cells below it."""
    found, heading = {}, ""
    for cell in nbformat.read(LEARN / "08_extend.ipynb", as_version=4).cells:
        if cell.cell_type == "code":
            found.setdefault(heading, []).append(cell.source)
        for title in re.findall(r"^## (.*)", cell.source, re.M) * (cell.cell_type == "markdown"):
            heading = title
    return found


def follow(heading):
    """Write what the section writes: new files, and lines added to files that were there."""
    new, added = [], {}
    for source in sections()[heading]:
        magic, _, text = source.partition("\n")
        if magic.startswith("%%writefile"):
            file = Path(magic.split()[-1])
            before = file.read_text() if "-a" in magic.split() else ""
            assert "-a" in magic.split() or not file.exists()
            new += [] if before or file.exists() else [str(file)]
            file.write_text(before + text + "\n")
            if before or str(file) not in new:
                added[str(file)] = len(text.strip().splitlines())
        elif ".csv" in source:  # the rows of the data set
            exec(source, {"Path": Path, "pd": pd})
    return new, added


@pytest.fixture
def copy(tmp_path, monkeypatch):
    shipped.copy(tmp_path, "config", "notebooks", "benchmarks")
    shipped.at_smoke(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    sys.modules.pop("my_method", None)


def make(entry):
    """Run and draw, as `snakemake figure_<entry>` does; returns the stem of the files."""
    work = project.load()
    strict.check(work)
    for setting in work.entries[entry].to_run:
        if setting.dataset:
            records.write(records.obtain(setting.dataset, work.real_data))
        data = splits.read(setting.spec["data"]) if setting.dataset else None
        table = experiment.run_stored(setting.spec, data)
        _files.write_whole(work.result(entry, setting.name), store.as_csv(table))
    stem = f"figures/smoke/{entry}"
    show(work.entries[entry].spec["notebook"], entry=entry, scale="smoke", output=stem)
    assert all(Path(file).is_file() for file in work.figures(entry))
    return stem


def test_a_table_a_method_a_data_set_and_a_figure_take_as_few_lines_as_the_tutorial_says(copy):
    mine = "config/experiments/mine.yaml"
    assert follow("A table") == ([mine], {})
    assert [*yaml.safe_load(Path(mine).read_text())] == ["my_table"]
    before = pd.read_csv(make("my_table") + ".csv")

    assert follow("A method") == (["my_method.py"], {"config/methods.yaml": 1})
    after = pd.read_csv(make("my_table") + ".csv")
    own = after["method"] == "screening"
    run = own & (after["n"] == 300)  # the setting that the smallest scale runs
    assert run.any() and after.loc[run, "ours"].notna().all()
    pd.testing.assert_frame_equal(after[~own].reset_index(drop=True), before)

    assert follow("A data set") == ([], {"config/datasets.csv": 1})
    new, added = follow("A figure")
    assert not new and [*added] == [mine]
    assert [*yaml.safe_load(Path(mine).read_text())] == ["my_table", "my_figure"]
    drawn = pd.read_csv(make("my_figure") + ".csv")
    assert set(drawn["dataset"].dropna()) == {"sales"} and drawn["ours"].notna().any()


def test_the_template_draws_a_copy_of_it_for_an_entry_of_ones_own(copy):
    follow("A table")
    shutil.copy(LEARN / "template.ipynb", "notebooks/my_drawing.ipynb")
    file = Path("config/experiments/mine.yaml")
    entry = yaml.safe_load(file.read_text())["my_table"]
    entry |= {"notebook": "my_drawing", "form": "figure"}
    file.write_text(yaml.safe_dump({"my_drawing": entry}))
    assert (copy / f"{make('my_drawing')}.svg").stat().st_size > 1000
