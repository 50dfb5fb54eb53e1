"""The order in which test files begin."""


def pytest_collection_modifyitems(items):
    """What takes longest first: with it last, other processes would wait for it."""
    items.sort(key=lambda item: item.path.name != "test_workflow.py")
