"""The notebooks: short, and right for entries of one's own."""

import re
import shutil
import subprocess
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import papermill
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell
from shipped import copy

from ofslib import _files, datasets
from ofslib.reproduction import experiment, project, store

ROOT = Path(__file__).parents[1]
matplotlib.use("agg")


NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


# -------------------------------------------------- in this process


@pytest.fixture
def own_project(tmp_path, monkeypatch):
    """Return a function that runs these entries and then the notebook of the first of them."""
    copy(tmp_path, "notebooks", "config")
    shutil.rmtree(tmp_path / "config/experiments")
    (tmp_path / "config/experiments").mkdir()
    scale = {"replicates": 2, "values": 1e6, "run_values": None, "tune_values": None}
    scales = {"tiny": scale | {"timing_repeats": 1, "timing_values": 0}}
    (tmp_path / "config/scales.yaml").write_text(yaml.safe_dump(scales))
    (tmp_path / "config/config.yaml").write_text("{scale: tiny, real_data: none, seed: 1}")
    monkeypatch.chdir(tmp_path)

    def make(**entries):
        (tmp_path / "config/experiments/own.yaml").write_text(yaml.safe_dump(entries))
        work, (name, spec) = project.load(), next(iter(entries.items()))
        for entry in entries:
            for setting in work.entries[entry].to_run:
                lacking = "not fetched (offline)" if setting.dataset else ""
                table = experiment.run_stored(setting.spec, None, lacking)
                _files.write_whole(work.result(entry, setting.name), store.as_csv(table))
        show(spec["notebook"], entry=name, scale="tiny", output=f"figures/{name}")
        assert sorted(file.name for file in (tmp_path / "figures").iterdir()) == sorted(
            Path(f).name for f in work.figures(name)
        )
        return tmp_path / "figures" / name

    return make


def show(notebook, **parameters):
    """Execute the cells, as papermill does with these parameters; returns the names defined."""
    known, width = {}, pd.get_option("display.max_colwidth")
    with plt.rc_context():
        for cell in nbformat.read(f"notebooks/{notebook}.ipynb", as_version=4).cells:
            if cell.cell_type == "code":
                exec(compile(cell.source, notebook, "exec"), known)
                if "parameters" in cell.metadata.get("tags", []):
                    assert set(parameters) <= set(known)
                    known |= parameters
    plt.close("all")
    pd.set_option("display.max_colwidth", width)
    return known


OWN = {
    "source": "Doe (2027), Table 1",
    "title": "One's own",
    "form": "table",
    "notebook": "recovery_table",
    "published": "own",
    "data": {"simulate": "equicorrelated", "p": 100, "k": 5},
    "grid": {"n": [100, 300]},
    "methods": {"mine": {"class": "sklearn.linear_model:Lasso"}},
    "readings": {"plain": {"note": "As it is."}},
    "metrics": ["DR", "RMSE"],
    "replicates": 20,
}
OWN_PAPER = "n,method,metric,value,note\n100,mine,DR,77.25,\n300,mine,DR,99.5,\n"


@pytest.mark.parametrize(
    ("changes", "column", "values"),
    [
        ({"published": None}, "verdict", {"not comparable"}),
        ({"readings": {}}, "paper", {77.25, 99.5}),  # howto/add_table_or_figure.md
        ({"metrics": ["DR", "selected"]}, "metric", {"DR", "selected"}),
        ({"grid": {"n": [100_000, 300_000]}}, "why", {"not run at this scale"}),
    ],
)
def test_a_table_may_lack_a_part(own_project, changes, column, values):
    (first, *_), text = (changes.get("grid") or OWN["grid"])["n"], OWN_PAPER
    if first != 100:
        text = text.replace("\n100,", "\n100000,").replace("\n300,", "\n300000,")
    Path("config/published/own.csv").write_text(text)
    own = {key: value for key, value in (OWN | changes).items() if value}
    table = pd.read_csv(f"{own_project(own=own)}.csv")
    assert set(table[column].dropna()) == values and len(table) == 4


def test_figure_of_data_sets_that_cannot_be_had(own_project):
    names = datasets.registry("config/datasets.csv").index.tolist()[:7]
    entry = {key: OWN[key] for key in ("source", "title", "replicates")}
    entry |= {"form": "figure", "notebook": "accuracy_by_budget", "metrics": ["accuracy"]}
    entry |= {"grid": {"dataset": names}, "sweep": {"k": [10, 20]}}
    entry["data"] = {"split": {"train": 50}}
    entry |= {"parameters": {"budgets": [10, 20]}, "methods": {"OFS": {"class": "FOFSClassifier"}}}
    svg = Path(f"{own_project(own=entry)}.svg").read_text(encoding="utf-8")
    assert 'id="axes_' not in svg and svg.count("<!-- Not shown: ") == 1


@pytest.mark.parametrize("entry", ["ofs_figure_1", "ofs_table_2", "barda_figure_3"])
def test_without_any_data_set_nothing_is_claimed(own_project, entry):
    file = ROOT / f"config/experiments/{entry.partition('_')[0]}.yaml"
    given = yaml.safe_load(file.read_text(encoding="utf-8"))
    source = given[entry].get("results", entry)
    own = {name: given[name] for name in (entry, source)}
    for spec in own.values():
        spec.pop("at_scale", None)
    stem = own_project(**own)
    table = pd.read_csv(f"{stem}.csv")
    assert "verdict" not in table or table["verdict"].isna().all()
    assert "ours" not in table or table["ours"].isna().all()


@pytest.mark.parametrize("entry", ["os_figure_4", "barda_figure_1"])
def test_a_data_set_that_a_scale_leaves_out_is_named(own_project, entry):
    file = ROOT / f"config/experiments/{entry.partition('_')[0]}.yaml"
    given = yaml.safe_load(file.read_text(encoding="utf-8"))[entry]
    first, *others = given["grid"]["dataset"]
    stem = own_project(**{entry: given | {"at_scale": {"tiny": {"dataset": [first]}}}})
    why = pd.read_csv(f"{stem}.csv").groupby("dataset")["note"].first()
    assert why.to_dict() == {first: "not fetched (offline)"} | dict.fromkeys(
        others, "not run at this scale"
    )


# -------------------------------------------------- opened by hand


@pytest.mark.parametrize("notebook", ["recovery_table", "drift"])
def test_a_notebook_without_results_says_in_one_line_what_makes_them(notebook, bare, capsys):
    """Of the second the scale smoke runs nothing, which is not to say that it is made."""
    with pytest.raises(project.NotMade) as raised:
        show(notebook)
    (line,) = str(raised.value).splitlines()
    entry = line.partition(" has not been made")[0]
    assert f": snakemake --cores 8 figure_{entry}" in line
    assert bare.notebook(entry) == f"notebooks/{notebook}.ipynb"
    shell = InteractiveShell.instance()
    shell.user_ns["problem"] = raised.value
    shell.run_cell("raise problem")
    assert capsys.readouterr().out.splitlines() == [line]


@pytest.fixture
def shipped(bare):
    """The same with the archive of results that comes with the checkout."""
    Path("figures").mkdir()
    shutil.copy(ROOT / bare.archive_file, "figures")
    return bare


FIGURES = [file.stem for file in NOTEBOOKS if "tables.results(" in file.read_text("utf-8")]


@pytest.mark.parametrize("notebook", FIGURES)
def test_in_a_fresh_clone_each_notebook_shows_shipped_results(notebook, shipped):
    """Nothing is run, fetched or written."""
    known = show(notebook)
    assert known["work"].scale == "paper"
    assert not Path("results").exists() and not Path("resources").exists()
    assert len(list(Path("figures").iterdir())) == 1


@pytest.mark.parametrize(
    ("notebook", "entry", "said"),
    [
        ("recovery_table", "sfsa_table_4", r"figure_sfsa_table_4$"),  # of data that nobody had
        ("recovery_table", "sfsa_tabel_4", r"no entry 'sfsa_tabel_4'.*mean.*sfsa_table_4"),
        ("run", "zzz", r"no entry 'zzz'\. notebooks/index.* lists all"),
        ("run", "sfsa_figure_1", r"notebooks/annealing_schedules\.ipynb draws it"),
    ],
)
def test_a_notebook_of_what_is_not_here_says_what_to_do(shipped, notebook, entry, said):
    with pytest.raises((project.NotMade, project.Unknown), match=said):
        show(notebook, entry=entry)


def test_a_setting_that_an_entry_does_not_have_names_those_it_has(bare):
    with pytest.raises(project.Unknown, match="no setting 'strong_5000'") as raised:
        show("run", setting="strong_5000")
    names = [line.strip() for line in str(raised.value).splitlines()[1:]]
    assert names == [setting.name for setting in bare.entries["sfsa_table_1"].settings]


def test_a_table_that_is_shown_with_another_opens_that_one(bare):
    assert bare.find_entry("dissertation_table_5_2") == "dissertation_table_5_1"
    assert not bare.shown_elsewhere.keys() & bare.entries.keys()
    for file in bare.lacks("dissertation_table_5_1"):
        Path(file).parent.mkdir(parents=True, exist_ok=True)
        Path(file).touch()
    work = project.made("dissertation_table_5_2", bare.scale)
    assert "Tables 5.1 and 5.2" in work.heading("dissertation_table_5_2", bare.scale)
    assert work.inputs("dissertation_table_5_2") == bare.inputs("dissertation_table_5_1")


def test_a_notebook_shows_what_came_along_without_the_data_that_nobody_had(shipped):
    known = show("images", entry="os_figure_4", scale="standard")
    assert known["work"].scale == "paper" and len(known["fig"].axes) >= 3
    assert "snakemake --cores 8 figure_os_figure_4" in known["missing"]["ecml18_gisette"]
    assert set(known["summary"]["dataset"]) == {"mnist_idx"}
    with pytest.raises(project.NotMade):
        show("images", entry="os_figure_4", scale="paper", output="figures/os_figure_4")


def test_most_of_a_large_scale_is_shown_before_all_of_a_small_one(bare):
    def scale_shown(wanted, **made):
        shutil.rmtree("results", ignore_errors=True)
        for scale, number in made.items():
            for file in project.load(scale=scale).inputs("barda_table_2")[:number]:
                Path(file).parent.mkdir(parents=True, exist_ok=True)
                Path(file).touch()
        return project.made("barda_table_2", wanted).scale

    assert len(bare.inputs("barda_table_2")) == 6
    assert scale_shown("smoke", standard=6, paper=5) == "paper"
    assert scale_shown("smoke", standard=6, paper=1) == "standard"
    assert scale_shown("standard", standard=5, paper=1) == "standard"
    assert scale_shown("standard", standard=6, paper=6) == "standard"


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A checkout in which nothing was run."""
    copy(tmp_path, "notebooks", "config", "benchmarks")
    monkeypatch.chdir(tmp_path)
    return project.load()


def test_a_notebook_shows_another_scale_that_is_made_and_says_so(own_project):
    own = {key: value for key, value in OWN.items() if key != "published"}
    own_project(own=own | {"explanation": "Lower is better."})
    scales = yaml.safe_load(Path("config/scales.yaml").read_text())
    Path("config/scales.yaml").write_text(yaml.safe_dump(scales | {"huge": scales["tiny"]}))
    known = show("recovery_table", entry="own", scale="huge")
    assert known["work"].scale == "tiny" and known["compared"]["ours"].notna().all()
    said = known["work"].heading("own", "huge")
    assert said.endswith("Scale tiny, since scale huge has not been made.\n\nLower is better.")
    with pytest.raises(project.NotMade, match="figure_own --config scale=huge"):
        show("recovery_table", entry="own", scale="huge", output="figures/huge/own")
    assert not Path("figures/huge").exists()


def test_the_list_of_all_tables_and_figures_runs_with_nothing_made(bare):
    """Each has a link to a notebook that opens this one; a copy in use is not written again."""
    known = show("index")
    opened = dict(re.findall(r"\[(\w+)\]\((opened/\w+\.ipynb)\)", "\n".join(known["lines"])))
    assert set(opened) == set(bare.entries)
    for entry, file in opened.items():
        cells = nbformat.read(Path("notebooks", file), as_version=4).cells
        lines = [line for cell in cells for line in cell.source.splitlines()]
        assert [line for line in lines if line.startswith("entry = ")] == [f'entry = "{entry}"']
    Path("notebooks", file).write_text("changed by the reader")
    show("index")
    assert Path("notebooks", file).read_text() == "changed by the reader"
    assert known["board"]["cells"].sum() == pd.read_csv("config/published.csv")["cells"].sum()


@pytest.mark.slow
def test_run_all_in_a_clone_shows_results_and_changes_nothing_else(tmp_path, monkeypatch):
    """As JupyterLab does: in a kernel that starts in the folder of the notebook."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(tmp_path)], check=True)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    files = [f"notebooks/{name}.ipynb" for name in ("accuracy_by_budget", "recovery_table", "run")]
    for file in files:
        path = str(tmp_path / file)
        papermill.execute_notebook(path, path, cwd=tmp_path / "notebooks", progress_bar=False)
        cells = nbformat.read(path, as_version=4).cells
        assert any(cell.get("outputs") for cell in cells) and "IProgress" not in str(cells)
    words = ["git", "status", "--porcelain"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f" M {file}" for file in files]
