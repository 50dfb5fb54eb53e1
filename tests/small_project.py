"""A small project with results as if they had been run."""

import shutil

import shipped
import yaml

from ofslib.reproduction import identity, project, records, store

DATA = "ecml18_dexter"


def build(folder):
    """A table and a figure of a real data set in an empty folder."""
    shipped.copy(folder, "config", "notebooks")
    shutil.rmtree(folder / "config/experiments")
    (folder / "config/experiments").mkdir()
    entry = {"source": "Doe, Table 1", "title": "A table", "form": "table"}
    entry |= {"notebook": "recovery_table", "metrics": ["DR"], "replicates": 2}
    entry |= {
        "data": {
            "simulate": "equicorrelated",
            "p": 20,
            "k": 2,
            "alpha": 0.5,
            "task": "classification",
        }
    }
    entry |= {"grid": {"n": [100, 200]}, "methods": {"SFSA": {"class": "SFSAClassifier"}}}
    other = {"source": "Doe, Figure 1", "title": "A figure", "form": "figure", "notebook": "regret"}
    other |= {"grid": {"dataset": [DATA]}, "methods": entry["methods"]}
    write(folder, {"one": entry, "two": other | {"metrics": ["accuracy"]}})
    (folder / "config/methods.yaml").write_text("")


def write(folder, entries):
    text = yaml.safe_dump(entries, sort_keys=False)
    (folder / "config/experiments/tiny.yaml").write_text(text)


def make_all(scale="smoke", **facts):
    """Stored results of all settings, in the working folder, and the files made of them."""
    work = project.load(scale=scale)
    records.write({"name": DATA, "status": "fetched", "sha256": {}})
    for file, setting in work.runs():
        for result in identity.results(setting.spec):
            make(setting, result, **facts)
        assert store.put_together(setting.spec, file, store.folder())
    return work


def make(setting, result, values=None, **facts):
    """Store a result: a value for each replicate and metric, by its label and replicate."""
    metrics = setting.parts[result.part]["metrics"]
    given = values or (lambda label, replicate: len(label or "") + replicate / 8)
    rows = [
        {"replicate": replicate, "metric": metric, "value": given(result.label, replicate)}
        for replicate in range(result.first, result.end)
        for metric in metrics
    ]
    known = {
        "seconds": 1.0,
        "memory_mb": 200,
        "commit": "c",
        "machine": "x, 2 cores, y",
        "date": "d",
    } | facts
    store.write(result, rows, store.place_of(setting.spec, result), known)
