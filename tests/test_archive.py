"""Results in an archive: what fits is taken, what does not is left, what is damaged is refused."""

import csv
import hashlib
import json
import shutil
import warnings
import zipfile
from pathlib import Path

import pytest
import shipped
import small_project
import yaml
from shipped import ROOT
from small_project import CONTENT

from ofslib._files import CorruptFile
from ofslib.reproduction import archive, machine, project, provenance, records


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A small project with two results; Snakemake hears of nothing."""
    small_project.build(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(archive, "_let_know", lambda work, made: None)
    archive._digest.cache_clear()
    archive._edits.cache_clear()
    small_project.make_all()
    return tmp_path


def there():
    """All files of results and records of data sets."""
    files = [*Path("results").rglob("*"), *Path("resources").rglob("*")]
    return {str(file): file.read_bytes() for file in files if file.is_file()}


def test_the_results_that_come_along_fit_the_checkout(monkeypatch):
    """What changes a source has its results made again, or says in config/edits.csv why not."""
    monkeypatch.chdir(ROOT)
    archive._digest.cache_clear()
    archive._edits.cache_clear()
    monkeypatch.setattr(archive, "_pinned", lambda dataset: {})  # of this machine
    work = shipped.load(scale=shipped.load().committed)
    index, _ = archive.opened(archive.shipped(work))
    reasons = archive._reasons(work, index)
    assert len(reasons) > 150
    assert {result: why for result, why in reasons.items() if why} == {}


ONE, TWO = "results/smoke/one/100.csv", "results/smoke/two/ecml18-dexter.csv"


def test_what_is_packed_is_there_again(place):
    before = there()
    work = project.load(scale="smoke")
    found = archive.pack(work, "a.zip")
    assert set(found.values()) == {""} and {ONE, TWO} <= found.keys()
    archive.pack(work, "b.zip")
    assert Path("a.zip").read_bytes() == Path("b.zip").read_bytes(), "equal results, equal archives"
    shutil.rmtree("results")
    shutil.rmtree("resources")
    work, found = archive.unpack("a.zip")
    assert work.scale == "smoke" and set(found.values()) == {""}
    for file, content in there().items():
        if file.endswith(".csv"):
            assert content == before[file]
        else:
            assert json.loads(content) == json.loads(before[file]), file


def test_only_what_fits_is_packed_and_unpacked(place):
    """By content: another source, another setting, another file of data, a result that was edited.

    What is here and fits is not written again.
    """
    work = project.load(scale="smoke")
    archive.pack(work, "all.zip")
    Path(ONE).write_text(CONTENT + "one,2\n")
    found = archive.pack(work, "some.zip")
    assert found.pop(ONE) == "changed after it was made" and set(found.values()) == {""}
    Path(TWO).unlink()
    kept = Path("results/smoke/one").stat().st_mtime_ns
    _, found = archive.unpack("some.zip")
    assert TWO in found and ONE not in found and Path(TWO).is_file()
    assert Path("results/smoke/one").stat().st_mtime_ns == kept
    entries = yaml.safe_load(Path("config/experiments/tiny.yaml").read_text())
    entries["one"]["metrics"] = ["DR", "RMSE"]
    entries["two"]["grid"] = {"dataset": ["ecml18_gisette"]}
    small_project.write(place, entries)
    before = there()
    _, found = archive.unpack("all.zip")
    assert found[ONE] == "of another setting" and found[TWO] == "no setting of this scale"
    assert there() == before, "nothing fits"
    with pytest.raises(
        ValueError, match=r"no results of scale smoke to pack: 1 changed after .*; 1 not made"
    ):
        archive.pack(project.load(scale="smoke"), "none.zip")
    assert not Path("none.zip").exists()


def test_sources_are_named_alike_on_every_machine(place):
    """Those of ofslib, of other packages wherever they are installed, and of the user."""
    Path("own.py").write_text("x = 1\n")
    others = project.sources("SFSAClassifier", "sklearn.linear_model:Lasso")
    names = [*provenance.digests([*others, "own.py", provenance.NOTEBOOK])]
    assert {"ofslib/algorithms/sfsa.py", "own.py", provenance.NOTEBOOK} < {*names}
    assert "sklearn/linear_model/__init__.py" in names and not any(".." in n for n in names)


def test_a_source_that_changed_is_named(place):
    work = project.load(scale="smoke")
    archive.pack(work, "a.zip")
    shutil.rmtree("results")
    with Path(provenance.NOTEBOOK).open("a") as file:
        file.write("\n")
    archive._digest.cache_clear()
    before = there()
    _, found = archive.unpack("a.zip")
    assert set(found.values()) == {f"made by another {provenance.NOTEBOOK}"}
    assert there() == before


def test_an_edit_that_is_declared_to_change_no_result_is_passed_over(place):
    """One after the other; also a source that another one imports since."""
    archive.pack(project.load(scale="smoke"), "a.zip")
    shutil.rmtree("results")
    edits, notebook = ["source,before,after,why"], Path(provenance.NOTEBOOK)
    for _ in range(2):
        before = hashlib.sha256(notebook.read_bytes()).hexdigest()
        notebook.write_text(notebook.read_text() + "\n")
        after = hashlib.sha256(notebook.read_bytes()).hexdigest()
        edits.append(f"{provenance.NOTEBOOK},{before},{after},an empty line")
    for known, fits in ((edits[:2], False), (edits, True)):
        Path(archive.EDITS).write_text("\n".join(known) + "\n")
        archive._digest.cache_clear()
        archive._edits.cache_clear()
        _, found = archive.unpack("a.zip")
        assert set(found.values()) == ({""} if fits else {f"made by another {provenance.NOTEBOOK}"})
    assert archive._alike("new.py", "") == [""]
    Path(archive.EDITS).write_text("source,before,after,why\nnew.py,,1,a part\nnew.py,1,2,words\n")
    archive._edits.cache_clear()
    assert archive._alike("new.py", "") == ["", "1", "2"]


def test_every_declared_edit_leads_to_the_source_as_it_is():
    """One that leads elsewhere trusts nothing any more, and is to be removed."""
    with (ROOT / archive.EDITS).open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    for row in rows:
        assert row["why"] and row["before"] != row["after"], row
    after = {(row["source"], row["before"]): row["after"] for row in rows}
    assert len(after) == len(rows)
    for name, _ in after:
        file = ROOT / name
        now = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        assert all(now in chain(after, name, start) for known, start in after if known == name)


def chain(after, name, digest):
    """The digests that the edits of a source lead to, one after the other."""
    found = [digest]
    while (name, digest) in after and after[name, digest] not in found:
        digest = after[name, digest]
        found.append(digest)
    return found


def test_what_the_table_says_of_a_data_set_is_a_part_of_its_results(place):
    archive.pack(project.load(scale="smoke"), "a.zip")
    for column, fits in (("citation", True), ("notes", True), ("label", False), ("task", False)):
        row = records._row("ecml18_dexter")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(records, "_row", lambda name, row=row | {column: "2"}: row)
            why = archive.pack(project.load(scale="smoke"), "b.zip")[TWO]
        assert why == "" if fits else "another row of ecml18_dexter" in why, column


def test_numbers_that_are_equal_but_drawn_from_otherwise_are_two_settings(place):
    work = project.load(scale="smoke")
    (setting,) = [s for result, s in archive.results(work) if result == ONE]
    record, _ = archive.recorded(ONE)
    assert archive.differs(setting, record) == ""
    record["spec"]["data"]["p"] = float(record["spec"]["data"]["p"])
    assert archive.differs(setting, record) == "of another setting"


@pytest.mark.parametrize(
    ("here", "taken"),
    [
        ({"status": "not fetched", "reason": "offline", "detail": ""}, True),
        ({"status": "fetched", "sha256": {"a": "2" * 64}}, False),
    ],
)
def test_results_of_a_data_set_come_with_its_record(place, here, taken):
    archive.pack(project.load(scale="smoke"), "a.zip")
    shutil.rmtree("results")
    records.write({"name": "ecml18_dexter"} | here)
    _, found = archive.unpack("a.zip")
    why = found.pop(TWO)
    assert set(found.values()) == {""}
    assert why == ("" if taken else "made from another file of ecml18_dexter")
    assert Path(TWO).exists() == taken
    assert records.read(records.path("ecml18_dexter"))["sha256"]["a"][0] == ("1" if taken else "2")


def test_what_was_made_without_its_data_set_is_not_packed(place):
    absent = {"name": "ecml18_dexter", "status": "not fetched", "reason": "offline", "detail": ""}
    records.write(absent)
    work = project.load(scale="smoke")
    for result, setting in archive.results(work):
        small_project.make(result, setting)
    assert archive.pack(work, "a.zip")[TWO] == "made without its data set"


def again(change):
    """The archive with another index or other members."""
    with zipfile.ZipFile("a.zip") as file:
        members = {name: file.read(name) for name in file.namelist()}
    index = json.loads(members["index.json"])
    change(index, members)
    if "index.json" in members:
        members["index.json"] = json.dumps(index)
    with warnings.catch_warnings(), zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)


def outside(index, members):
    index["results"]["../../outside.csv"] = index["results"].pop("one/100.csv")
    members["../../outside.csv"] = members.pop("one/100.csv")


def replaced(index, members):
    members["one/100.csv"] = b"experiment,value\none,2\n"


DAMAGES = {
    "leads out": (outside, CorruptFile, r"'\.\./\.\./outside\.csv' is no place of a result"),
    "from the root": (lambda i, m: m.update({"/etc/x": b""}), CorruptFile, "'/etc/x' is no place"),
    "not in the index": (lambda i, m: m.update({"one/7.csv": b""}), CorruptFile, "other results"),
    "lacking": (lambda i, m: m.pop("one/100.csv"), CorruptFile, "other results than it holds"),
    "replaced": (replaced, CorruptFile, r"one/100\.csv is not what its record says"),
    "no index": (lambda i, m: m.pop("index.json"), CorruptFile, "no whole archive"),
    "no record": (lambda i, m: i["results"].update({"one/100.csv": 3}), CorruptFile, "no record"),
    "no list": (lambda i, m: i.update(results=3), CorruptFile, "no archive of results"),
    "later format": (
        lambda i, m: i.update(format=2),
        ValueError,
        "of format 2, by ofslib .* reads",
    ),
    "unknown scale": (lambda i, m: i.update(scale="huge"), ValueError, "scale 'huge'; here are"),
    "scale that leads out": (lambda i, m: i.update(scale="../x"), ValueError, r"scale '\.\./x'"),
    "no scale": (lambda i, m: i.update(scale=["smoke"]), CorruptFile, "no archive of results"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_wrong_archive_is_refused_and_nothing_is_changed(place, name):
    change, error, said = DAMAGES[name]
    archive.pack(project.load(scale="smoke"), "a.zip")
    shutil.rmtree("results")
    before = there()
    again(change)
    with pytest.raises(error, match=said):
        archive.unpack("a.zip")
    assert there() == before and not (place.parent / "outside.csv").exists()


def test_an_archive_cut_anywhere_is_refused(place):
    archive.pack(project.load(scale="smoke"), "a.zip")
    whole = Path("a.zip").read_bytes()
    shutil.rmtree("results")
    before = there()
    end = len(whole) - 22  # where the record begins that says where the list of members is
    assert whole[end:].startswith(b"PK\5\6")
    for length in [0, 1, 30, len(whole) // 3, len(whole) // 2, end, end + 4, len(whole) - 1]:
        Path("a.zip").write_bytes(whole[:length])
        with pytest.raises(CorruptFile, match=r"a\.zip is no whole archive of results"):
            archive.unpack("a.zip")
    for place_ in range(0, len(whole), len(whole) // 40):
        flipped = whole[:place_] + bytes([whole[place_] ^ 1]) + whole[place_ + 1 :]
        Path("a.zip").write_bytes(flipped)
        try:
            archive.unpack("a.zip")  # of what no one reads, as an attribute of a file
        except (CorruptFile, ValueError):
            assert there() == before
        for file, content in there().items():
            assert not file.endswith(".csv") or content == CONTENT.encode()
        shutil.rmtree("results", ignore_errors=True)


def test_beside_a_living_run_nothing_is_unpacked(place, monkeypatch):
    archive.pack(project.load(scale="smoke"), "a.zip")
    shutil.rmtree("results")

    def held(owner):
        raise machine.FolderInUse(f"another run works in this folder ({owner})")

    monkeypatch.setattr(machine, "claim", held)
    with pytest.raises(machine.FolderInUse):
        archive.unpack("a.zip")
    assert not Path("results").exists()


def test_the_archive_of_the_checkout_is_whole_and_of_the_scale_of_its_figures():
    work, file = (
        project.committed(ROOT),
        ROOT / f"figures/results-{project.load(ROOT).committed}.zip",
    )
    assert file.stat().st_size < 5e6
    index, content = archive.opened(file)
    assert index["scale"] == work.scale
    known = {result.removeprefix(f"results/{work.scale}/") for result, _ in archive.results(work)}
    assert content.keys() <= known
    assert content
