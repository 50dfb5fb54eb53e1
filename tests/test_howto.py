"""The how-tos do what they say: their shell and Python blocks run, their entries are valid."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import shipped
from sklearn.datasets import dump_svmlight_file

from ofslib.cli import main
from ofslib.reproduction import project, strict
from ofslib.simulate import Equicorrelated

PAGES = sorted((shipped.ROOT / "docs/howto").glob("*.md"))
# The default step size is too large or too small for some of the tiny files here.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The files that the pages name."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    for name in ("customers", "tomorrow"):
        table = pd.DataFrame(rng.standard_normal((600, 8)), columns=[*"abcdefgh"])
        table["bought"] = np.where(table["a"] + table["b"] > 1, "yes", "no")
        table.iloc[:, : 9 - (name == "tomorrow")].to_csv(f"{name}.csv", index=False)
    X, y = Equicorrelated(p=100, k=10, beta=0.5).sample(3000, rng)
    dump_svmlight_file(X, y, "songs.svm", zero_based=False)
    dump_svmlight_file(X, np.where(y > 1, 1, -1), "clicks.svm", zero_based=False)
    np.save("X.npy", X)
    np.save("y.npy", y)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_from_top_to_bottom(page, files):
    lines = "".join(blocks(page, "bash")).splitlines()
    for words in (shlex.split(line) for line in lines if line.startswith("ofslib ")):
        assert main(words[1:]) == 0, words
    for code in blocks(page, "python"):
        if "mpi4py" not in code:
            for package in re.findall(r"^import (dask)", code, re.M):
                pytest.importorskip(package)
            exec(compile(code, page.name, "exec"), {})


@pytest.mark.parametrize("name", ["add_table_or_figure", "add_data_set"])
def test_the_entry_of_a_page_is_valid(name, tmp_path, monkeypatch):
    page = shipped.ROOT / f"docs/howto/{name}.md"
    shipped.copy(tmp_path, "config", "notebooks", "benchmarks")
    monkeypatch.chdir(tmp_path)
    [entry] = blocks(page, "yaml")
    Path("config/experiments/mine.yaml").write_text(entry)
    for rows in blocks(page, "csv"):
        Path("data").mkdir()
        Path("data/sales.csv").write_text("x,sold\n1,1\n")
        header, row = rows.split()
        table = pd.read_csv("config/datasets.csv", dtype=str)
        table.loc[len(table)] = pd.Series(dict(zip(header.split(","), row.split(","), strict=True)))
        table.to_csv("config/datasets.csv", index=False)
    work = project.load()
    assert entry.partition(":")[0] in work.entries
    strict.check(work)
