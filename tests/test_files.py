"""Files that are whole or not there."""

import errno
import os
import signal
import stat
import sys

import pytest

from ofslib import _files

posix = pytest.mark.skipif(os.name != "posix", reason="modes, links, locks, signals and forks")


def only(folder):
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("content", ["new ä", b"\x00new"])
def test_write_whole(tmp_path, content, monkeypatch):
    """Flushed, then renamed: else a file could be empty after a crash."""
    target, done = tmp_path / "a" / "b" / "file.csv", []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        note = lambda *args, name=name, real=real: (done.append(name), real(*args))  # noqa: E731
        monkeypatch.setattr(os, name, note)
    _files.write_whole(target, content)
    expected = content if isinstance(content, bytes) else content.encode("utf-8")
    assert target.read_bytes() == expected and done == ["fsync", "replace"]
    assert only(target.parent) == ["file.csv"]


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["replace", "fsync", "open", "write"])
@pytest.mark.parametrize("error", [FULL, KeyboardInterrupt()])
@pytest.mark.parametrize("before", [[], ["file.csv"]])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call, error, before):
    target = tmp_path / "file.csv"
    for name in before:
        (tmp_path / name).write_text("old")

    def fail(*args, **kwargs):
        raise error

    if call != "write":
        monkeypatch.setattr(_files if call == "open" else os, call, fail, raising=False)
    with pytest.raises(type(error)), _files.whole_file(target) as file:
        file.write(b"new")
        if call == "write":
            fail()
    monkeypatch.undo()
    assert only(tmp_path) == before
    assert [(tmp_path / name).read_text() for name in before] == ["old"] * len(before)


def test_a_place_where_no_file_can_be_is_refused_before_anything_is_written(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match="folder is a folder"):
        _files.write_whole(tmp_path / "folder", "new")
    for place in ("folder", "file/below"):
        given = {"a": None, "b": tmp_path / "new" / "one", "c": tmp_path / place}
        with pytest.raises(OSError, match=f"{place.partition('/')[0]} is (a|no) folder"):
            _files.refuse_places(given, {})
    assert only(tmp_path) == ["file", "folder"]


def before_line(number, sources, act, call):
    """Call, and act before this line that runs of these sources."""

    def trace(frame, event, _):
        nonlocal number
        if frame.f_code.co_filename not in sources:
            return None
        if event == "line":
            number -= 1
            if number == -1:
                act()
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(None)


def killed_at_line(number, path):
    """Whether a process that writes a file was killed: it has so many lines."""
    process = os.fork()
    if process == 0:
        before_line(
            number,
            {_files.__file__},
            lambda: os.kill(os.getpid(), signal.SIGKILL),
            lambda: _files.write_whole(path, "new" * 1000),
        )
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@posix
def test_a_kill_before_any_line_leaves_the_old_file_or_the_new_one(tmp_path):
    path, found = tmp_path / "file.csv", []
    path.write_text("old")
    while killed_at_line(len(found), path):
        found.append(path.read_text())
    new = "new" * 1000
    assert found == ["old"] * found.count("old") + [new] * found.count(new)
    assert found.count("old") >= 10 and path.read_text() == new
    assert list(tmp_path.iterdir()) == [path]  # the last one removed what the killed ones left


@posix
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
@pytest.mark.parametrize("old_mode", [None, 0o604])
def test_a_link_stays_one_and_a_file_has_its_mode_or_that_of_the_umask(
    tmp_path, mask, mode, old_mode
):
    (tmp_path / "folder").mkdir()
    file, link = tmp_path / "folder" / "file.csv", tmp_path / "link.csv"
    link.symlink_to("folder/file.csv")
    if old_mode:
        file.write_text("old")
        file.chmod(old_mode)
    before = os.umask(mask)
    try:
        _files.write_whole(link, "new")
        assert os.umask(mask) == mask, "the mask was changed"
    finally:
        os.umask(before)
    assert link.is_symlink() and file.read_text() == "new"
    assert only(tmp_path) == ["folder", "link.csv"] and only(file.parent) == ["file.csv"]
    assert stat.S_IMODE(file.stat().st_mode) == (old_mode or mode)


@posix
def test_a_file_system_without_locks(tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr(_files.fcntl, "flock", refuse)
    (tmp_path / ".file.csv.01234567.part").write_text("of another writer, perhaps alive")
    _files.write_whole(tmp_path / "file.csv", "new")
    assert only(tmp_path) == [".file.csv.01234567.part", "file.csv"]


@posix
def test_what_dead_writers_left_is_removed_and_what_a_living_one_writes_is_kept(tmp_path):
    for name in (".a.csv.01234567.part", ".b.csv.89abcdef.part", ".c.part", "d.01234567.part"):
        (tmp_path / name).touch()
    with _files.whole_file(tmp_path / "slow.csv") as file:
        part = next(tmp_path.glob(".slow.csv.*.part"))
        _files.write_whole(tmp_path / "a.csv", "new")
        assert only(tmp_path) == sorted([".c.part", part.name, "a.csv", "d.01234567.part"])
        file.write(b"done")
    assert (tmp_path / "slow.csv").read_bytes() == b"done"
