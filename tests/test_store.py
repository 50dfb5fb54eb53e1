"""Results: what their keys depend on, how they are stored and put together, hostile archives."""

import json
import lzma
import random
import shutil
import zipfile
from pathlib import Path

import pytest
import small_project
import yaml

from ofslib._files import CorruptFile
from ofslib.reproduction import experiment, identity, project, store

ENTRY = {"source": "Doe, Table 1", "title": "A table", "form": "table", "replicates": 3}
ENTRY |= {"notebook": "recovery_table", "metrics": ["DR", "RMSE"], "grid": {"n": [1000, 2000]}}
ENTRY["data"] = {"simulate": "equicorrelated", "p": 30, "k": 3, "alpha": 0.5, "task": "regression"}
OLSTH = {"class": "OLSthRegressor"}
ENTRY["methods"] = {
    "SFSA": {"class": "SFSARegressor", "learning_rate": 0.01, "mu": 5},
    "averages": {"class": "ofslib.averages:RunningAverages"},
    "OLSth": OLSTH,
}
DRIFT = {"form": "figure", "notebook": "drift", "metrics": ["RMSE"], "replicates": 2, "grid": {}}
DRIFT |= {"track": {"every": 2, "last": 1}, "methods": {"a": OLSTH | {"adaptation": 0.1}}}
DRIFT["data"] = {"simulate": "drifting", "p": 20, "k": 2, "a": 0.4, "b": 0.6, "n": 3000}
DRIFT["data"] |= {"period": 1000, "step_rows": 500}
# What is tuned is run by itself: no rows are shared with other settings.
TUNED = {"tune": {"grid": {"mu": [2, 20]}, "at": {}, "score": "final", "rows": 500}}
TUNED["grid"] = {"n": [1000]}


def entry(**changes):
    return ENTRY | changes


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project with one small table, in the working folder."""
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    small_project.write(tmp_path, {"one": ENTRY})
    return tmp_path


def run_of(place, spec, scale="paper"):
    """The specification of the one run of an entry."""
    small_project.write(place, {"one": spec})
    [run] = project.load(scale=scale).entries["one"].to_run
    return json.loads(json.dumps(run.spec, sort_keys=True))


def keys(spec):
    return {(r.part, r.label): r.key for r in identity.results(spec)}


# -------------------------------------------------- keys


def test_a_key_depends_on_what_values_depend_on(place):
    """Another design, seed, parameter or metric does; the number of replicates does not."""
    spec = run_of(place, ENTRY)
    before = keys(spec)
    assert len(set(before.values())) == len(before) == 6
    more = ENTRY["methods"] | {"more": {"class": "OLSRegressor"}}
    for changes in ({"replicates": 50, "title": "Another", "source": "Roe"}, {"methods": more}):
        now = keys(run_of(place, entry(**changes)))
        assert {k: now[k] for k in before} == before, changes
    data = ({"data": ENTRY["data"] | own} for own in ({"alpha": 1}, {"p": 31}))
    for changes in (*data, {"metrics": ["DR"]}, TUNED):
        now = keys(run_of(place, entry(**changes)))
        assert not set(now.values()) & set(before.values()), changes
    other = keys({**spec, "parts": [{**part, "seed": 7} for part in spec["parts"]]})
    assert not set(other.values()) & set(before.values())
    mu = ENTRY["methods"] | {"SFSA": ENTRY["methods"]["SFSA"] | {"mu": 6}}
    now = keys(run_of(place, entry(methods=mu)))
    assert {label for (_, label), key in now.items() if key not in before.values()} == {"SFSA"}


def raised(section, name):
    """Raise a version in config/versions.yaml of the working folder."""
    table = yaml.safe_load(identity.VERSIONS.read_text())
    table[section][name] += 1
    identity.VERSIONS.write_text(yaml.safe_dump(table))


@pytest.mark.parametrize(
    ("section", "name", "changed"),
    [
        ("methods", "SFSARegressor", {"SFSA"}),
        ("methods", "OLSthRegressor", {"OLSth"}),
        ("rows", "equicorrelated", {"SFSA", "averages", "OLSth"}),
        ("metrics", "RMSE", {"SFSA", "averages", "OLSth"}),
        ("methods", "RDAClassifier", set()),
    ],
)
def test_a_raised_version_changes_the_keys_of_what_it_takes_part_in(place, section, name, changed):
    spec = run_of(place, ENTRY)
    before = keys(spec)
    raised(section, name)
    assert {label for (at, label), key in keys(spec).items() if key != before[at, label]} == changed


def test_a_users_module_is_keyed_by_its_code(place, monkeypatch):
    """Its own code and that of the modules beside it that it imports; comments say nothing."""
    monkeypatch.syspath_prepend(str(place))
    Path("mine_helper.py").write_text("FACTOR = 2\n")
    code = "from mine_helper import FACTOR\n\ndef fit(X, y):\n    pass\n"
    Path("mine_method.py").write_text(code)
    first = identity.code_of("mine_method")
    Path("mine_method.py").write_text("# more words\n" + code)
    assert identity.code_of("mine_method") == first
    Path("mine_helper.py").write_text("FACTOR = 3\n")
    second = identity.code_of("mine_method")
    Path("mine_method.py").write_text(code.replace("pass", "return self"))
    assert len({first, second, identity.code_of("mine_method")}) == 3
    assert identity.code_of("sklearn.linear_model").startswith("scikit-learn ")


# -------------------------------------------------- runs


def stored(spec, **options):
    """The file of results of a run, what is new being stored."""
    return store.as_csv(experiment.run_stored(spec, **options))


def whole(spec):
    """The same without a store."""
    return experiment.run(spec, progress=False).to_csv(index=False, float_format="%.17g").encode()


def files():
    return {file.name: file.read_bytes() for file in store.FOLDER.glob("*")}


@pytest.mark.parametrize("changes", [{}, TUNED, DRIFT])
def test_what_is_put_together_is_what_a_run_gives_at_once(place, changes):
    spec = run_of(place, entry(**changes))
    assert stored(spec) == whole(spec)
    before = files()
    assert stored(spec) == whole(spec) and files() == before, "nothing is run or stored twice"


def test_more_replicates_extend_a_result(place):
    spec = run_of(place, ENTRY)
    few = {**spec, "replicates": 2, "parts": [{**part, "replicates": 2} for part in spec["parts"]]}
    stored(few)
    before = files()
    assert stored(spec) == whole(spec)
    assert {name: files()[name] for name in before} == before
    assert {name.rpartition(".csv")[0].partition(".")[2] for name in files()} == {"0-1", "2-2"}


@pytest.mark.parametrize("added", ENTRY["methods"])
def test_a_method_that_is_added_sees_the_same_rows_and_the_others_stay(place, added):
    """It gives the bits that it gives beside them."""
    others = {name: spec for name, spec in ENTRY["methods"].items() if name != added}
    stored(run_of(place, entry(methods=others)))
    before, spec = files(), run_of(place, ENTRY)
    assert stored(spec) == whole(spec)
    assert {name: files()[name] for name in before} == before


def test_a_stored_file_that_was_edited_is_refused(place):
    spec = run_of(place, ENTRY)
    stored(spec)
    file = next(store.FOLDER.glob("*.csv"))
    file.write_bytes(file.read_bytes() + b"0,DR,100\n")
    with pytest.raises(CorruptFile, match=r"changed after it was made.*: remove it"):
        stored(spec)


# -------------------------------------------------- archives


@pytest.fixture
def packed(place):
    """An archive of a small project whose results are gone, and its results."""
    results = []
    for run in project.load(scale="paper").entries["one"].to_run:
        experiment.run_stored(run.spec)
        results += identity.results(run.spec)
    store.pack(results, "paper", "a.zip")
    store.pack(results, "paper", "b.zip")
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes(), "equal results, equal archives"
    before = files()
    shutil.rmtree("results")
    return results, before


def test_what_is_packed_is_there_again(packed):
    results, before = packed
    found = store.unpack(results, store.Archive("a.zip"))
    assert files() == before and found.keys() == before.keys() and set(found.values()) == {""}


def changed(change):
    """Write the archive anew with another index or other members."""
    with zipfile.ZipFile("a.zip") as file:
        members = {name: file.read(name) for name in file.namelist()}
    index = json.loads(lzma.decompress(members[store.INDEX]))
    change(index, members)
    if store.INDEX in members:
        members[store.INDEX] = lzma.compress(json.dumps(index).encode())
    with zipfile.ZipFile("a.zip", "w") as file:
        for name, content in members.items():
            file.writestr(name, content)


def first(index):
    return sorted(index["results"])[0]


def renamed(index, members):
    name = first(index)
    index["results"]["../../outside.csv"] = index["results"].pop(name)
    members["../../outside.csv.xz"] = members.pop(f"{name}.xz")


def other(content, **options):
    packed = lzma.compress(content, **options)
    return lambda index, members: members.update({f"{first(index)}.xz": packed})


DAMAGES = {
    "leads out": renamed,
    "more members": lambda index, members: members.update({"/etc/x": b""}),
    "fewer members": lambda index, members: members.pop(f"{first(index)}.xz"),
    "other values": other(b"replicate,metric,value\n0,DR,100\n"),
    "other key": lambda index, _: index["results"][first(index)]["made_of"].update(seed=7),
    "no index": lambda index, members: members.pop(store.INDEX),
    "no record": lambda index, members: index["results"].update({first(index): 3}),
    "no list": lambda index, members: index.update(results=3),
    "later format": lambda index, members: index.update(format=3),
    "bomb": other(bytes(store.LARGEST + 1), preset=0),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_archive_is_refused_and_nothing_is_written(packed, name):
    results, _ = packed
    changed(DAMAGES[name])
    with pytest.raises(CorruptFile, match=r"^a\.zip"):
        store.unpack(results, store.Archive("a.zip"))
    assert not Path("results").exists() and not Path("../../outside.csv").exists()


def test_no_mutation_of_an_archive_does_harm(packed):
    """It is refused, or what is taken is what was packed; with little memory in all cases."""
    results, before = packed
    sound, rng = Path("a.zip").read_bytes(), random.Random(0)
    for _ in range(60):
        wrong = bytearray(sound)
        for _ in range(rng.choice([1, 1, 4])):
            kind, at = rng.randrange(3), rng.randrange(len(wrong))
            if kind == 0:
                wrong[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                del wrong[at : at + rng.choice([1, 20, 10_000])]
            else:
                wrong[at:at] = rng.randbytes(rng.choice([1, 20]))
        Path("a.zip").write_bytes(wrong)
        try:
            store.unpack(results, store.Archive("a.zip"))
        except CorruptFile:
            assert not Path("results").exists()
        else:
            now = files()
            assert {name: before[name] for name in now} == now
            shutil.rmtree("results", ignore_errors=True)
