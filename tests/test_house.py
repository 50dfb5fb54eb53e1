"""docs/architecture.md tells the truth: its floors, and the walk of a row of data."""

import ast
import re

import pytest
from test_architecture import MAY_IMPORT, MODULES, PACKAGE, ROOT, own_parts, part_of

TEXT = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\d+\. (.*)$", TEXT, re.M)
# `file`: `name`
PLACES = re.findall(r"`([\w./-]+\.\w+)`: `([\w.]+)`", TEXT)


def floors():
    """{part: its floor}, as the picture shows it."""
    picture = re.search(r"```\n(6 .*?)```", TEXT, re.S).group(1)
    lines = [line.split() for line in picture.splitlines()]
    return {part: int(floor) for floor, *parts in lines for part in parts}


def test_the_picture_shows_each_part_of_the_package():
    parts = {part_of(file) for file in MODULES}
    assert set(floors()) == parts == set(MAY_IMPORT)


def test_imports_go_to_lower_floors():
    at = floors()
    for file, source in MODULES.items():
        for below in own_parts(source) - {part_of(file)}:
            assert at[below] < at[part_of(file)], f"{file.name} imports {below}"


def test_each_part_is_explained_once():
    assert sorted(re.findall(r"^\| `(\w+)` \|", TEXT, re.M)) == sorted(floors())


def test_the_walk_has_ten_steps_and_names_a_place_in_each():
    assert len(STEPS) == 10
    assert all(re.search(r"`[\w./<>-]+`: `[\w.]+`", step) for step in STEPS)


def named_in(file):
    """What a source, a notebook, a rule, a table or a configuration defines or calls."""
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".py"):
        tree = ast.parse(text)
        defined = {getattr(node, "name", None) for node in tree.body}
        targets = [t for n in tree.body if isinstance(n, ast.Assign) for t in n.targets]
        return defined | {t.id for t in targets if isinstance(t, ast.Name)}
    first = {"smk": r"^rule (\w+):", "yaml": r"^(\w+):", "csv": r"^(\w+),"}
    pattern = first.get(file.rpartition(".")[2], r"(\w+\.\w+)\(")
    return set(re.findall(pattern, text, re.M))


@pytest.mark.parametrize("file, name", PLACES)
def test_what_the_walk_names_is_there(file, name):
    assert name in named_in(file)


def test_every_file_that_the_text_names_is_there():
    for file in re.findall(r"`((?:ofslib|workflow|notebooks|config)/[\w./-]+)`", TEXT):
        assert (ROOT / file).exists(), file
    for link in re.findall(r"\]\((\w+\.md)\)", TEXT):
        assert (ROOT / "docs" / link).is_file(), link
    assert PACKAGE.is_dir()
