"""The command ofslib: from a file to features, a model and predictions."""

import json
import os
import sys

FAILED, INTERRUPTED = 1, 130

try:
    from ofslib._options import (
        MISUSED,
        Misused,
        known_methods,
        one_line,
        parser,
        text_table,
        visible,
    )  # fmt: skip
    from ofslib.cli.inspecting import inspect
    from ofslib.cli.predicting import predict
    from ofslib.cli.printing import Report, say, warnings_told
    from ofslib.cli.selecting import select
except KeyboardInterrupt:  # which a traceback of numpy's modules would not explain
    raise SystemExit(INTERRUPTED) from None


# -------------------------------------------------- methods


def methods(args) -> Report:
    """The methods: which stream each reads, for which task, and what it costs."""
    found = known_methods()
    rows = [[name, m.stream, ", ".join(m.classes), m.cost] for name, m in found.items()]
    order = ["rows", "averages", "columns", "all at once"]
    rows.sort(key=lambda row: order.index(row[1]))
    data = {name: m._asdict() for name, m in found.items()}
    return text_table(["method", "stream", "task", "cost"], rows), {"methods": data}


# -------------------------------------------------- data sets and papers


def datasets(args) -> Report:
    """The data sets of the papers and of one's own table: list, fetch, verify."""
    from ofslib.datasets.download import fetch, pins, verify
    from ofslib.datasets.registry import read_rows

    rows = read_rows(args.registry_path)
    if unknown := [name for name in args.names if name not in rows]:
        raise Misused(f"no data set {unknown[0]!r}; the registry knows {', '.join(rows)}")
    if args.action == "fetch":
        if not args.names:
            raise Misused(f"datasets fetch: say which; the registry knows {', '.join(rows)}")
        came = {n: list(map(str, fetch(n, args.folder, args.registry_path))) for n in args.names}
        return [path for paths in came.values() for path in paths], {"fetched": came}
    found = {name: verify(name, args.folder, args.registry_path) for name in args.names or rows}
    if args.action == "list":
        sets = [
            rows[name] | {"here": " and ".join(sorted({*files.values()}))}
            for name, files in found.items()
        ]
        keys = ("name", "task", "n_train", "n_test", "n_features", "here")
        cells = [[format(row[k], "," * (k[:2] == "n_")) for k in keys] for row in sets]
        return text_table(keys, cells), {"datasets": sets}
    if not args.names:  # those of which something is here
        found = {name: files for name, files in found.items() if {*files.values()} != {"missing"}}
    files = [
        (str(path), state, pins(name, args.folder, args.registry_path)[path])
        for name, states in found.items()
        for path, state in states.items()
    ]
    lines = [f"{state:8} {path}  {pin}".rstrip() for path, state, pin in files]
    args.code = FAILED * any(state != "whole" for _, state, _ in files)
    data = {"files": {p: state for p, state, _ in files}, "pinned": {p: pin for p, _, pin in files}}
    return lines or [f"{args.folder}: no data set"], data


# -------------------------------------------------- the command line


def main(argv: list[str] | None = None) -> int:
    """Run a command; returns 0, 1 if it failed, 2 if it was misused, 130 after Ctrl-C."""
    closed = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    for name in closed:  # or the next file that is opened would get its number
        setattr(sys, name, open(os.devnull, "w"))
    args = None
    try:
        args = parser(select, predict, inspect, datasets, methods).parse_args(argv)
        if "stdout" in closed and args.command is predict and not args.out:
            raise Misused("stdout is closed: give --out")
        with warnings_told() as told:
            lines, data = args.command(args)
        text = "\n".join(map(visible, lines))
        if "stdout" in closed:
            files = ", ".join(data[f] for f in ("out", "model", "checkpoint") if data.get(f))
            say(f"stdout is closed; written: {files or 'no file'}")
        if args.json:
            text = json.dumps(data | {"warnings": told}, default=lambda value: value.item())
        sys.stdout.write(text + "\n" * bool(text))
        sys.stdout.flush()
    except KeyboardInterrupt:
        path = args and getattr(args, "checkpoint", None)
        say("stopped" + (f"; the same command goes on from {path}" if path else ""))
        return INTERRUPTED
    except BrokenPipeError:  # as `head` does it; Python itself must not find it at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if args is None or args.debug:
            raise
        message = one_line(error) or type(error).__name__
        bug = LookupError, AttributeError, TypeError, AssertionError
        if isinstance(error, bug) and not isinstance(error, ValueError):
            message = f"{type(error).__name__}: {message} (--debug shows where)"
        say(message)
        return MISUSED if isinstance(error, Misused) else FAILED
    return args.code
