"""The packaging files agree with each other: pyproject, environment, lock, citation, README."""

import ast
import datetime
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")

LOCKED = ("reproduction", "dev", "mpi", "dask", "peers", "arrow")

# The conda packages that are not called what the PyPI project is called.
CONDA_NAMES = {
    "backports-zstd": "backports.zstd",
    "dask": "dask-core",
    "jupyter-client": "jupyter_client",
    "matplotlib": "matplotlib-base",
    "seaborn": "seaborn-base",
    "snakemake": "snakemake-minimal",
}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def declared(*extras, environment=None):
    """The requirements of pyproject: {name: specifiers}, with those of some extras.

    With an environment, only those that hold in it.
    """
    optional = [PROJECT["optional-dependencies"][extra] for extra in extras]
    lines = sum(optional, PROJECT["dependencies"])
    requirements = [Requirement(line) for line in lines]
    if environment is not None:
        requirements = [r for r in requirements if not r.marker or r.marker.evaluate(environment)]
    names = [canonicalize_name(r.name) for r in requirements]
    assert len(set(names)) == len(names), "a dependency is named twice"
    return {name: r.specifier for name, r in zip(names, requirements, strict=True)}


def locked():
    """The lock's entries: (requirement, hashes, names of those that asked for it)."""
    joined = read("requirements.lock").replace("\\\n", " ")
    entries = []
    for line in joined.splitlines():
        if line.startswith("#"):
            continue
        if line.lstrip().startswith("#"):
            entries[-1][2].append(re.sub(r"^\s*#\s*(via\b)?", "", line).strip())
            continue
        requirement, *hashes = line.split("--hash=")
        entries.append((Requirement(requirement.strip()), [h.strip() for h in hashes], []))
    return entries


def conda_environment():
    """environment.yml's own packages: {name: specifiers}."""
    found = {}
    for spec in yaml.safe_load(read("environment.yml"))["dependencies"]:
        name, _, bounds = spec.partition(" ")
        assert re.fullmatch(r"[a-z0-9]+([-_.][a-z0-9]+)*", name), spec
        assert name not in found, f"{name} is named twice"
        found[name] = SpecifierSet(bounds)
    return found


def test_supported_pythons_are_the_declared_ones():
    bounds = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(30) if f"3.{minor}" in bounds] == list(PYTHONS)
    classifier = "Programming Language :: Python :: 3."
    assert [
        c.rsplit(" ", 1)[-1] for c in PROJECT["classifiers"] if c.startswith(classifier)
    ] == list(PYTHONS)


def test_the_bounds_of_numba_are_those_that_the_faster_compilation_is_tested_with():
    fast = ast.parse(read("ofslib/_fast_compile.py")).body
    (tested,) = (n.value for n in fast if ast.unparse(n).startswith("TESTED ="))
    first, beyond = (".".join(map(str, version)) for version in ast.literal_eval(tested))
    assert declared()["numba"] == SpecifierSet(f">={first},<{beyond}")


def test_conda_environment_is_pyproject_under_conda_names():
    names = declared("reproduction", "arrow", "dask", "dev")
    expected = {CONDA_NAMES.get(name, name): spec for name, spec in names.items()}
    expected |= {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}
    assert conda_environment() == expected
    environment = yaml.safe_load(read("environment.yml"))
    assert environment["name"] == PROJECT["name"]
    assert environment["channels"] == ["conda-forge", "bioconda", "nodefaults"]


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", PYTHONS)
def test_lock_pins_every_dependency_once_and_within_its_bounds(python, platform):
    environment = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.0",
        "sys_platform": platform,
        "platform_system": {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}[platform],
        "os_name": "nt" if platform == "win32" else "posix",
    }
    pins = {}
    for requirement, _, _ in locked():
        if requirement.marker is None or requirement.marker.evaluate(environment):
            name = canonicalize_name(requirement.name)
            assert name not in pins, f"{name} is pinned twice"
            (pin,) = requirement.specifier
            assert pin.operator == "==" and "*" not in pin.version, str(requirement)
            pins[name] = Version(pin.version)
    wrong = {
        name: (str(spec), str(pins.get(name)))
        for name, spec in declared(*LOCKED, environment=environment).items()
        if name not in pins or pins[name] not in spec
    }
    assert not wrong


def test_lock_was_made_from_this_pyproject():
    asked = {
        canonicalize_name(requirement.name)
        for requirement, _, via in locked()
        if f"{PROJECT['name']} (pyproject.toml)" in via
    }
    assert set(LOCKED) == set(PROJECT["optional-dependencies"])
    assert asked == set(declared(*LOCKED)), "make requirements.lock anew (docs/dependencies.md)"


def test_lock_hashes_each_requirement():
    bare = [
        str(requirement)
        for requirement, hashes, _ in locked()
        if not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes)
    ]
    assert not bare


def test_lock_names_no_host_and_no_path():
    text = read("requirements.lock")
    assert not re.findall(r"://|\w\.(?:org|com|net|io)\b|[ =]/\w|[ =]@ ", text)
    options = {line.split()[0] for line in text.splitlines() if line.lstrip().startswith("-")}
    assert all(option.startswith("--hash=") for option in options), options


def test_lock_header_is_the_command_of_the_docs():
    (command,) = re.findall(r"^#\s+(uv pip compile .*)$", read("requirements.lock"), re.M)
    (block,) = re.findall(r"^uv pip compile (?:.*\\\n)*.*$", read("docs/dependencies.md"), re.M)
    assert block.replace("\\\n", " ").split() == command.split()


def test_every_dependency_is_explained_once():
    table_row = r"^\| ([a-z0-9-]+) \| [^|]{5,} \| [^|]{5,} \|$"
    explained = re.findall(table_row, read("docs/dependencies.md"), re.M)
    named = sorted(name for name in explained if name != "package")
    assert named == sorted(declared(*PROJECT["optional-dependencies"]))


def statements(tree, inner):
    """All nodes of a module; without `inner`, only those that run when it is imported."""
    todo = [tree]
    while todo:
        node = todo.pop()
        yield node
        for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        if inner or not (for_types or isinstance(node, ast.FunctionDef)):
            todo += ast.iter_child_nodes(node)


def imported(files, inner=True):
    """Top-level packages that Python files import: {name: a file that does}."""
    found = {}
    for path in files:
        for node in statements(ast.parse(path.read_text(encoding="utf-8")), inner):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                modules = [node.module]
            else:
                continue
            for module in modules:
                found.setdefault(module.partition(".")[0], str(path.relative_to(ROOT)))
    return found


def undeclared(files, *extras, inner=True):
    """What Python files import and neither the dependencies nor these extras bring."""
    distributions = packages_distributions()
    allowed = set(declared(*extras))
    ours = {PROJECT["name"], "benchmarks", *(path.stem for path in files)}
    return {
        name: path
        for name, path in imported(files, inner).items()
        if name not in sys.stdlib_module_names
        and name not in ours
        and not allowed.intersection(
            map(canonicalize_name, [BROUGHT_BY.get(name, ""), *distributions.get(name, [])])
        )
    }


# Interfaces of a declared package that live in a package of their own, which it always brings.
BROUGHT_BY = {
    "nbclient": "papermill",
    "nbformat": "papermill",
    "traitlets": "jupyter-client",
    "zmq": "jupyter-client",
}


def python_files(folder):
    return sorted((ROOT / folder).rglob("*.py"))


def test_the_library_needs_no_extra_to_be_imported():
    library = set(python_files("ofslib")) - set(python_files("ofslib/reproduction"))
    assert not undeclared(library, inner=False)
    assert not undeclared(library, "dask", "mpi")


@pytest.mark.parametrize(
    ("folder", "extras"),
    [
        ("ofslib/reproduction", ["reproduction", "mpi", "peers", "dask"]),
        ("workflow", ["reproduction"]),
        ("tests", LOCKED),
    ],
)
def test_what_is_imported_is_declared(folder, extras):
    assert not undeclared(python_files(folder), *extras)


def test_what_the_benchmarks_import_is_declared_or_pinned():
    names = re.findall(r"^([\w-]+)==", read("benchmarks/requirements.txt"), re.M)
    pinned = {name.removeprefix("python-") for name in names}
    files = python_files("benchmarks")
    assert undeclared(files, "reproduction").keys() <= pinned


def test_version_is_the_same_in_the_package():
    assert importlib.import_module(PROJECT["name"]).__version__ == PROJECT["version"]


def test_citation():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "abstract", "keywords"} <= citation.keys()
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"] == "BSD-3-Clause"
    # The date of the release stands in both files or in none.
    (stated,) = re.findall(rf"^## \[{citation['version']}\] - (.+)$", read("CHANGELOG.md"), re.M)
    assert citation.get("date-released", "Unreleased") == stated
    assert len(citation["references"]) == 5
    for reference in citation["references"]:
        assert {"type", "title", "authors"} <= reference.keys()
        assert {"year", "notes"} & reference.keys(), "neither a year nor why there is none"
        assert all({"family-names", "given-names"} <= a.keys() for a in reference["authors"])
        assert re.fullmatch(r"10\.\d{4,}/\S+", reference.get("doi", "10.0000/none"))


def test_licence_is_the_declared_one():
    assert "BSD 3-Clause" in read("LICENSE") and "the ofslib developers" in read("LICENSE")
    assert PROJECT["license-files"] == ["LICENSE"]


def test_changelog_begins_with_this_version():
    headings = re.findall(r"^## \[(.+?)\] - (\S+)$", read("CHANGELOG.md"), re.M)
    assert headings, "no '## [version] - date' in CHANGELOG.md"
    version, date = headings[0]
    assert version == PROJECT["version"]
    assert date == "Unreleased" or datetime.date.fromisoformat(date)


def test_readme_has_the_two_commands():
    readme = read("README.md")
    marks = re.findall(r"<!--\s*command:\s*(\w+)\s*-->", readme)
    blocks = dict(re.findall(r"<!--\s*command:\s*(\w+)\s*-->\s*```[a-z]*\n(.*?)```", readme, re.S))
    assert sorted(marks) == ["run", "test"]
    assert sorted(blocks) == ["run", "test"], "a mark has no fenced block right after it"
    assert "snakemake" in blocks["run"] and "pytest" in blocks["test"]
    for block in blocks.values():
        assert subprocess.run(["bash", "-n"], input=block, text=True).returncode == 0


def test_ruff_finds_nothing():
    # Not in what a user has put beside them.
    folders = [ROOT / name for name in ("ofslib", "tests", "workflow", "notebooks")]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
