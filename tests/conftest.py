"""The order in which test files begin, and the command `ofslib`."""

import json

import pytest

from ofslib import cli

# With one of them last, other processes would wait for it. What the first compiles, all methods for
# all rows, those after it find, among them the many notebooks of test_workflow.py.
LONG = ("test_contract.py", "test_workflow_small.py", "test_workflow.py")


def pytest_collection_modifyitems(config, items):
    """What takes longest first, if several processes share them."""
    if not config.getoption("numprocesses", None):
        return
    names = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: names.get(item.path.name, len(LONG)))


@pytest.fixture
def ofs(capsys):
    """Run a command; gives its exit code, its stdout (read, if it is JSON), and its stderr."""

    def run(line):
        words = line.split() if isinstance(line, str) else line
        code = cli.main(words)
        out, err = capsys.readouterr()
        return code, (json.loads(out) if out and "--json" in words else out), err

    return run
