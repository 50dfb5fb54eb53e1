"""The packaging files agree with each other: pyproject, environment, lock, citation, README."""

import ast
import datetime
import importlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = tuple(PROJECT["optional-dependencies"])
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
    """The requirements of pyproject, with those of some extras: {name: specifiers}."""
    optional = [PROJECT["optional-dependencies"][extra] for extra in extras]
    requirements = [Requirement(line) for line in sum(optional, PROJECT["dependencies"])]
    if environment is not None:
        requirements = [r for r in requirements if not r.marker or r.marker.evaluate(environment)]
    return {canonicalize_name(r.name): r.specifier for r in requirements}


def locked():
    """The lock's entries: (requirement, hashes, text of who asked for it)."""
    entries = []
    for line in read("requirements.lock").replace("\\\n", " ").splitlines():
        if line.startswith(" "):
            entries[-1][2].append(line)
        elif not line.startswith("#"):
            requirement, *hashes = line.split("--hash=")
            entries.append((Requirement(requirement.strip()), [h.strip() for h in hashes], []))
    return entries


def test_the_bounds_of_python_and_numba_are_the_same_wherever_they_stand():
    bounds = SpecifierSet(PROJECT["requires-python"])
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
    assert [f"3.{minor}" for minor in range(30) if f"3.{minor}" in bounds] == named
    fast = ast.parse(read("ofslib/_fast_compile.py")).body
    [tested] = (node.value for node in fast if ast.unparse(node).startswith("TESTED ="))
    first, beyond = (".".join(map(str, version)) for version in ast.literal_eval(tested))
    assert declared()["numba"] == SpecifierSet(f">={first},<{beyond}")


def test_conda_environment_is_pyproject_under_conda_names():
    names = declared("reproduction", "arrow", "dask", "dev")
    expected = {CONDA_NAMES.get(name, name): spec for name, spec in names.items()}
    expected |= {"python": SpecifierSet(PROJECT["requires-python"]), "pip": SpecifierSet()}
    lines = yaml.safe_load(read("environment.yml"))["dependencies"]
    found = {name: SpecifierSet(bounds) for name, _, bounds in (x.partition(" ") for x in lines)}
    assert found == expected and len(found) == len(lines)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
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
            name, [pin] = canonicalize_name(requirement.name), requirement.specifier
            assert name not in pins and pin.operator == "==" and "*" not in pin.version
            pins[name] = pin.version
    for name, bounds in declared(*EXTRAS, environment=environment).items():
        assert name in pins and pins[name] in bounds, name


def test_lock_was_made_from_this_pyproject_with_hashes_and_names_no_host():
    asked = {canonicalize_name(r.name) for r, _, via in locked() if "ofslib (py" in "".join(via)}
    assert asked == set(declared(*EXTRAS)), "make requirements.lock anew (docs/dependencies.md)"
    for requirement, hashes, _ in locked():
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", h) for h in hashes), requirement
    assert not re.findall(r"://|\w\.(?:org|com|net|io)\b|[ =]/\w|[ =]@ ", read("requirements.lock"))


def test_version_licence_and_date_are_the_same_in_all_files():
    citation, version = yaml.safe_load(read("CITATION.cff")), PROJECT["version"]
    assert importlib.import_module("ofslib").__version__ == version == citation["version"]
    assert citation["license"] == PROJECT["license"] and "BSD 3-Clause" in read("LICENSE")
    first, date = re.search(r"^## \[(.+?)\] - (\S+)$", read("CHANGELOG.md"), re.M).groups()
    assert first == version and citation.get("date-released", "Unreleased") == date
    assert date == "Unreleased" or datetime.date.fromisoformat(date)


def test_readme_has_the_two_commands_and_make_has_the_same():
    readme, recipes = read("README.md"), read("Makefile").replace("$(PYTHON)", "python3")
    blocks = dict(re.findall(r"<!-- command: (\w+) -->\n```bash\n(.*?)```", readme, re.S))
    assert "snakemake" in blocks["run"] and "pytest" in blocks["test"] and len(blocks) == 2
    made = {line.strip() for line in recipes.splitlines()}
    assert {line for block in blocks.values() for line in block.splitlines()} <= made


def test_ruff_finds_nothing():
    # Not in what a user has put beside them.
    folders = [ROOT / name for name in ("ofslib", "tests", "workflow", "notebooks")]
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
