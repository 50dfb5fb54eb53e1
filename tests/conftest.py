"""The order in which test files begin."""

# With one of them last, other processes would wait for it. What the first compiles, all methods for
# all rows, those after it find, among them the many notebooks of test_workflow.py.
LONG = ("test_contract.py", "test_workflow_small.py", "test_workflow.py")


def pytest_collection_modifyitems(config, items):
    """What takes longest first, if several processes share them."""
    if not config.getoption("numprocesses", None):
        return
    names = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: names.get(item.path.name, len(LONG)))
