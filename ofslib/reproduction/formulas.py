"""Formulas as tables have them in words, `O(n p^2)`, as LaTeX sets them."""

import re

_COMMANDS = {"eps": r"\epsilon", "delta": r"\delta", "alpha": r"\alpha", "log": r"\log"}
_COMMANDS |= {"min": r"\min", "max": r"\max", "nnz": r"\mathrm{nnz}", "||": r"\|", "±": r"\pm "}
_COMMAND = re.compile("|".join(map(re.escape, _COMMANDS)))
_POWER = re.compile(r"\^(?:\(([a-z\d./+ -]*)\)|(-?[\d.]+(?:±[\d.]+)?))")
# Nothing in it is unknown, and something is found in no name: an order, a power, an eps beside 1.
_FORMULA = re.compile(
    r"(?=.*(?:\bO\(|[a-z]\^\(?-?\d|\d[+-]eps))"
    rf"(?:(?:(?:{_COMMAND.pattern})(?:_\d)?|\b[A-Za-z]\b|[\d.+/(), -])(?:{_POWER.pattern})?)+"
)
_NORM = re.compile(r"log\((\|\|[^|]*\|\|(?:_\d)?)\)")


def is_formula(text: str) -> bool:
    """Whether a text is a formula, or a line of one, and no name."""
    return _FORMULA.fullmatch(text) is not None


def typeset(text: str) -> str:
    """A formula as LaTeX, with its dollars: O(n^(-1/2)) is $O(n^{-1/2})$."""
    text = _NORM.sub(r"log\1", text)  # bars are parentheses enough
    text = _POWER.sub(lambda power: f"^{{{power[1] or power[2]}}}", text)
    return f"${_COMMAND.sub(lambda name: _COMMANDS[name[0]], text)}$"


def outline(text: str) -> tuple[str, str]:
    """Of a formula the letters that stand on the line, and those that are raised."""
    raised = "".join(power[1] or power[2] for power in _POWER.finditer(text))
    line = re.sub("eps|delta|alpha", "a", _NORM.sub(r"log\1", _POWER.sub("", text)))
    return line.replace("||", "|").replace("_", ""), raised
