"""A small project with results as if they had been run."""

import json
import shutil
from pathlib import Path

import shipped
import yaml

from ofslib.reproduction import archive, project, provenance, records

CONTENT = "experiment,value\none,1\n"


def build(folder):
    """A table and a figure of a real data set in an empty folder."""
    for part in ("config", "notebooks", "workflow/schemas"):
        shutil.copytree(shipped.ROOT / part, folder / part)
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
    other |= {"grid": {"dataset": ["ecml18_dexter"]}, "methods": entry["methods"]}
    write(folder, {"one": entry, "two": other | {"metrics": ["accuracy"]}})
    (folder / "config/methods.yaml").write_text("")


def write(folder, entries):
    text = yaml.safe_dump(entries, sort_keys=False)
    (folder / "config/experiments/tiny.yaml").write_text(text)


def make_all(scale="smoke"):
    """Results of all settings, in the working folder."""
    sums = {"a": "1" * 64, records.ROW: records.row_digest("ecml18_dexter")}
    records.write({"name": "ecml18_dexter", "status": "fetched", "sha256": sums})
    for result, setting in archive.results(project.load(scale=scale)):
        make(result, setting)


def make(result, setting, cpu_s=1.0):
    Path(result).parent.mkdir(parents=True, exist_ok=True)
    Path(result).write_text(CONTENT)
    files = [*archive.sources_of(setting), provenance.NOTEBOOK]
    record = records.path(setting.dataset) if setting.dataset else None
    took = {"cpu_s": cpu_s, "memory_mb": 200}
    sources = provenance.digests(files)
    facts = provenance.of_result(result, setting.spec, sources, record, **took)
    Path(provenance.record_of(result)).write_text(json.dumps(facts))
