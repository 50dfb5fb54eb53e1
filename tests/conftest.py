"""The order in which test files begin."""

# With one of them last, other processes would wait for it.
LONG = ("test_workflow.py", "test_workflow_small.py", "test_contract.py")


def pytest_collection_modifyitems(items):
    """What takes longest first."""
    names = {name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: names.get(item.path.name, len(LONG)))
