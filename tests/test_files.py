"""Files that are whole or not there."""

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ofslib import _files

ROOT = Path(__file__).parents[1]


def only(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("content", ["new ä", b"\x00new"])
def test_write_whole(tmp_path, content):
    target = tmp_path / "a" / "b" / "file.csv"
    _files.write_whole(target, content)
    expected = content if isinstance(content, bytes) else content.encode("utf-8")
    assert target.read_bytes() == expected
    _files.write_whole(str(target), "x")
    assert target.read_text() == "x"
    assert only(target.parent) == ["file.csv"]


@pytest.mark.parametrize("call", ["replace", "fsync"])
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
)
@pytest.mark.parametrize("before", [None, "old"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, error, before):
    target = tmp_path / "file.csv"
    if before:
        target.write_text(before)

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(type(error)):
        _files.write_whole(target, "new")
    monkeypatch.undo()
    assert only(tmp_path) == (["file.csv"] if before else [])
    assert not before or target.read_text() == before


def test_a_place_where_no_file_can_be_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder is a folder: give a file"):
        _files.write_whole(tmp_path / "folder", "new")
    for place in ("folder", "file/below"):
        with pytest.raises(OSError, match=f"{place.partition('/')[0]} is (a|no) folder"):
            _files.refuse_places(
                {"a": None, "b": tmp_path / "new" / "one", "c": tmp_path / place}, {}
            )
    assert only(tmp_path) == ["file", "folder"]


IN_TROUBLE = """
import os, resource, signal, sys
from ofslib import _files
if sys.argv[2] == "full":
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
else:
    os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)
_files.write_whole(sys.argv[1], "new" * 100_000)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits and signals")
@pytest.mark.parametrize("trouble", ["full", "kill"])
def test_a_full_disk_or_a_kill_leaves_the_old_file(tmp_path, trouble):
    target = tmp_path / "file.csv"
    target.write_text("old")
    words = [sys.executable, "-c", IN_TROUBLE, str(target), trouble]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == (-signal.SIGKILL if trouble == "kill" else 1)
    assert target.read_text() == "old"
    if trouble == "full":
        assert "OSError" in done.stderr
        assert only(tmp_path) == ["file.csv"]


def test_order_is_write_flush_rename(tmp_path, monkeypatch):
    """Renamed before it is on the disk, a file could be empty after a crash."""
    done = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        note = lambda *args, name=name, real=real: (done.append(name), real(*args))  # noqa: E731
        monkeypatch.setattr(os, name, note)
    _files.write_whole(tmp_path / "file.csv", "new")
    assert done == ["fsync", "replace"]


@pytest.mark.skipif(os.name != "posix", reason="modes")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_mode_honours_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        _files.write_whole(tmp_path / "file.csv", "new")
        assert os.umask(mask) == mask, "the mask was changed"
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file.csv").stat().st_mode) == mode


@pytest.mark.skipif(os.name != "posix", reason="modes and links")
@pytest.mark.parametrize("target", ["there", "not there"])
def test_a_link_stays_one_and_an_existing_file_keeps_its_mode(tmp_path, target):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file.csv", tmp_path / "link.csv"
    link.symlink_to("folder/file.csv")
    if target == "there":
        file.write_text("old")
        file.chmod(0o604)
    _files.write_whole(link, "new")
    assert link.is_symlink() and file.read_text() == "new"
    assert only(tmp_path) == ["folder", "link.csv"] and only(file.parent) == ["file.csv"]
    assert target == "not there" or stat.S_IMODE(file.stat().st_mode) == 0o604


@pytest.mark.skipif(os.name != "posix", reason="locks")
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(_files.fcntl, "flock", refuse)
    (tmp_path / ".file.csv.01234567.part").write_text("of another writer, perhaps alive")
    _files.write_whole(tmp_path / "file.csv", "new")
    assert only(tmp_path) == [".file.csv.01234567.part", "file.csv"]


def test_a_folder_is_listed_once_and_only_what_is_ours_is_removed(tmp_path, monkeypatch):
    names = [".a.csv.01234567.part", ".b.csv.89abcdef.part", ".c.part", "d.01234567.part"]
    for name in names:
        (tmp_path / name).touch()
    listed, glob = [], Path.glob
    monkeypatch.setattr(Path, "glob", lambda *own: (listed.append(own), glob(*own))[1])
    for name in ("a.csv", "b.csv", "c.csv"):
        _files.write_whole(tmp_path / name, "new")
    assert len(listed) == 1
    assert only(tmp_path) == [".c.part", "a.csv", "b.csv", "c.csv", "d.01234567.part"]
