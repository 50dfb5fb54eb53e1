"""Files of config/: YAML without its traps, held against the schemas of workflow/schemas."""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from ofslib.reproduction.entries import ConfigurationError

# In JSON 1000.0 is an integer; here it is a slip, as 1e3 for a seed.
_VALIDATOR = jsonschema.validators.extend(
    jsonschema.Draft202012Validator,
    type_checker=jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


# That of C takes a fifth to an eighth of the time, which every notebook spends once.
_PLAIN_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_PLAIN_LOADER):
    """YAML in which no key may be there twice."""

    def construct_mapping(self, node, deep=False):
        # The keys that << brings stand elsewhere in the file, and may be overridden.
        start, end = node.start_mark.index, node.end_mark.index
        own = [key for key, _ in node.value if start <= key.start_mark.index < end]
        here = [(key.tag, key.value) for key in own]
        for key in here:
            if here.count(key) > 1:
                raise yaml.YAMLError(f"{key[1]!r} is there twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def read(root: Path, file: str, schema: str) -> dict[str, Any]:
    """A file of config/, checked; ConfigurationError, naming the place, if something is wrong."""
    try:
        content = yaml.load((root / file).read_text(encoding="utf-8"), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file}: {error}") from error
    # A file of comments only holds nothing.
    content = {} if content is None else content
    _check_plain(content, file, "")
    check(root, content, schema, file)
    return content


def _check_plain(value: Any, file: str, place: str) -> None:
    """Raise ConfigurationError at what YAML makes of a word that was meant as one.

    The keys beside `by`, and those of `unavailable`, are values of an axis, and may be numbers.
    """
    if isinstance(value, dict):
        of_axis = "by" in value or re.search(r"^\w+\.unavailable\.\w+$", place)
        for key, inner in value.items():
            if not (isinstance(key, str) or of_axis):
                raise ConfigurationError(
                    f"{file}, {place or 'top level'}: the name {key!r} is no text: YAML reads "
                    "numbers, dates, null, yes, no, on and off as something else; put it in quotes"
                )
            _check_plain(inner, file, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            _check_plain(inner, file, f"{place}.{number}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ConfigurationError(f"{file}, {place}: {value} is not allowed, only finite numbers")
    elif not isinstance(value, str | int | float | None):
        kind = type(value).__name__
        raise ConfigurationError(
            f"{file}, {place}: {str(value)!r} is read as a {kind}; a text, put it in quotes, or a "
            "number is allowed"
        )


def check(root: Path, content: Any, schema: str, file: str) -> None:
    """Raise ConfigurationError if a schema, "name" or "name/definition", refuses the content."""
    name, _, part = schema.partition("/")
    rules = _rules((root / f"workflow/schemas/{name}.schema.yaml").read_text("utf-8"))
    if part:
        rules = {"$defs": rules["$defs"], "$ref": f"#/$defs/{part}"}
    error = jsonschema.exceptions.best_match(_VALIDATOR(rules).iter_errors(content))
    if error:
        place = ".".join(map(str, error.absolute_path)) or "top level"
        raise ConfigurationError(f"{file}, {place}: {error.message}")


@cache
def _rules(text: str) -> dict[str, Any]:
    """What a schema says, which holds for many files."""
    return yaml.load(text, _PLAIN_LOADER)
