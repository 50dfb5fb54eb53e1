"""The reproduction from the command line: `python -m ofslib.reproduction --help`."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence

from ofslib._files import CorruptFile
from ofslib._options import text_table
from ofslib.reproduction import (
    comparison,
    configuration,
    identity,
    layout,
    machine,
    project,
    provenance,
    records,
    store,
)
from ofslib.reproduction import scoreboard as board
from ofslib.reproduction.project import Project


def results(work: Project) -> Iterator[identity.Result]:
    """All results of a scale."""
    for _, setting in work.runs():
        yield from identity.results(setting.spec)


def listed(work: Project, args) -> Iterator[str]:
    """Every table and figure: what makes it, whether it is drawn, and its results."""
    known, rows, here = provenance.read(work.provenance), [], store.folder()
    for name, entry in work.entries.items():
        made = all(os.path.isfile(file) for file in work.figures(name))
        scale = known.get(name, {}).get("scale", work.scale)
        own = [r for _, s in work.runs(work.source(name).name) for r in identity.results(s.spec)]
        shipped = sum(bool(work.archive and work.archive.has(r)) and not here.has(r) for r in own)
        counts = [sum(map(here.has, own)), shipped, len(own)]
        drawn = f"drawn ({scale})" if made else "not drawn"
        rows.append([entry.spec["source"], f"figure_{name}", work.notebook(name), drawn, *counts])
    head = ["table or figure", "snakemake target", "notebook", "figures", "here", "shipped", "of"]
    yield from text_table(head, rows)


def plan(work: Project, args) -> Iterator[str]:
    """What each entry will cost at a scale, and what of it is here."""
    from ofslib.reproduction import plan

    rows = plan.plan(work)
    total = rows.sum(numeric_only=True)
    cells = []
    for row in rows.sort_values("core_hours", ascending=False).itertuples():
        replicates = " to ".join(map(str, dict.fromkeys([row.fewest, row.most])))
        hours = f"{row.core_hours:.2f}" + " and more" * (row.unknown > 0)
        own = [row.entry, row.results, row.here, row.shipped, replicates, hours]
        cells.append([*own, f"{row.left_hours:.2f}", f"{row.memory_mb:,.0f}"])
    own = ["all", *(f"{total[key]:.0f}" for key in ("results", "here", "shipped")), ""]
    hours = f"{total['core_hours']:.2f}" + " and more" * bool(total["unknown"])
    cells.append([*own, hours, f"{total['left_hours']:.2f}", f"{rows['memory_mb'].max():,.0f}"])
    head = ["entry", "results", "here", "shipped", "replicates"]
    yield f"Scale {work.scale}: hours of one core, from the records of stored results"
    yield from text_table([*head, "core hours", "still to run", "memory, MB"], cells)
    if total["unknown"]:
        yield f"'and more': nothing alike was ever run of {total['unknown']:.0f} results."
    if lacking := sorted({name for names in rows["missing"] for name in names.split(", ") if name}):
        yield f"Not counted: {total['without_data']:.2f} core hours that need data sets which could"
        yield f"not be obtained here: {', '.join(lacking)}."
    if changed := records.changed(work.datasets):
        yield f"Changed since it came: {', '.join(changed)}; {records.WHAT_CHANGES}."


def pack(work: Project, args) -> Iterator[str]:
    """The results of a scale, packed into an archive."""
    file = args.file or f"results-{work.scale}.zip"
    wanted = list(results(work))
    store.pack(wanted, work.scale, file)
    here = store.folder()
    size = os.path.getsize(file) / 1e6
    yield f"{sum(map(here.has, wanted))} of {len(wanted)} results of scale {work.scale} packed"
    yield f"into {file} ({size:.1f} MB)"


def unpack(work: Project, args) -> Iterator[str]:
    """The results of an archive that are those of this checkout, taken from it."""
    there = store.archive(args.file or work.archive_file)
    if there.scale not in project.scales():
        raise CorruptFile(f"{there.file} is of scale {there.scale!r}, which is not known here")
    work = project.load(scale=there.scale)
    with machine.claim():
        found = store.unpack(results(work), there)
        made = store.put_all_together(work)
    reasons = list(found.values())
    yield f"{reasons.count('')} of {len(found)} results of {there.file} are here;"
    yield f"{len(made)} files of results in results/{work.scale}/ are put together from them."
    yield "Their numbers are the sender's: nothing was computed (check makes some of them again)."
    yield from (f"{reasons.count(why)} not: {why}" for why in sorted({*reasons} - {""}))


def compare(work: Project, args) -> Iterator[str]:
    """Whether the values that were made here are those of an archive."""
    file = args.file or work.archive_file
    found, left_out = comparison.compare(work, store.folder(), store.archive(file))
    yield f"Scale {work.scale}, made here, beside {file}"
    yield from (f"{number} results left out: {why}" for why, number in left_out.items())
    if not len(found):
        raise ValueError(f"no results of scale {work.scale} to compare: snakemake makes them")
    rows = [[*row[:-2], f"{row[-2]:.1e}" if row[-2] else "", row[-1]] for row in found.to_numpy()]
    rows.append(["all", *found[[*comparison.COUNTS]].sum(), "", ""])
    yield from text_table(["entry", *comparison.COUNTS, "largest", "where"], rows)
    yield "compared: of the same result and replicate there, without times"
    yield f"equal: to the last bit; rounding: up to {comparison.ROUNDING:g} of the larger value"
    args.failed = bool(found["differ"].sum())


def check(work: Project, args) -> Iterator[str]:
    """Shipped results made again, drawn at random by a seed of yours."""
    from ofslib.reproduction import recheck

    told = recheck.check(project.committed(), args.minutes, args.seed)
    head = ["entry", "setting", "method", "replicate", "verdict", "values", "largest"]
    by = {word: [r for r in told["found"] if r["verdict"] == word] for word in recheck.VERDICTS}
    rows = [row | {"largest": f"{row['largest']:.1e}"} for row in told["found"]]
    yield from text_table(head, [[str(row[key] or "") for key in head] for row in rows])
    yield f"{len(rows)} replicates of results made again (seed {args.seed}):"
    yield ", ".join(f"{len(own)} {word}" for word, own in by.items())
    yield from (f"differs most: {row['entry']}, {row['where']}" for row in by["differ"])
    if told["unready"]:
        yield f"{told['unready']} that were drawn were not ready in time."
    yield f"Drawn from {told['drawn_from']}. Were some of these wrong, the chance to see one was:"
    yield from (f"  {share:4.0%} wrong: {chance:.0%}" for share, chance in told["chances"].items())
    yield f"Out of reach: {told['unreached']:.0%} of all replicates of results:"
    yield from (f"  {number}: {why}" for why, number in told["out_of_reach"].items())
    args.failed = bool(by["differ"])


def scoreboard(work: Project, args) -> Iterator[str]:
    """Every number that the papers print, by table and verdict, from the committed files alone."""
    yield from board.report(project.committed(), args.judge)


def show(work: Project, args) -> Iterator[str]:
    """A drawn table: our numbers above the paper's, with the marks of the verdicts."""
    work = project.committed()
    titles = {name: row["title"] for name, row in work.registry.items()}
    entry = work.find_entry(args.entry)
    drawn = work.entries[entry].spec["form"] == "table" and len(table := board.judged(work, entry))
    if not drawn:
        raise ValueError(f"{entry} is no table of a paper, or not drawn: see {work.report}")
    for block in layout.blocks(table, args.entry, titles):
        yield ". ".join([block.caption, *block.said, *layout.legend(block)])
        yield from (layout.wide(block).to_string(), "")


def prove(work: Project, args) -> Iterator[str]:
    """Whether config/versions.yaml was raised wherever a number changed."""
    from ofslib.reproduction import proof

    found = proof.prove(args.names or None, accept=args.accept)
    head = ["name", "verdict", "line"]
    yield from text_table(head, found[head].to_numpy())
    args.failed = bool((found["verdict"] == "different").any())


def schema(work: Project, args) -> Iterator[str]:
    """What may stand in a file of config/experiments, as a JSON schema for editors."""
    yield configuration.schema()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 1 if what it looked at is wrong, 2 if it could not."""
    parser = argparse.ArgumentParser(prog="python -m ofslib.reproduction", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for act in (listed, show, plan, pack, unpack, compare, check, prove, scoreboard, schema):
        name = "list" if act is listed else act.__name__
        sub = commands.add_parser(name, help=act.__doc__, description=act.__doc__)
        sub.set_defaults(act=act, failed=False)
        if act in (listed, plan, pack, compare):
            text = "of config/scales.yaml, else that of config/config.yaml"
            sub.add_argument("--scale", help=text)
        if act in (pack, unpack, compare):
            text = "the archive" + "; else the one in figures/" * (act is not pack)
            sub.add_argument("file", nargs="?", metavar="ZIP", help=text)
        if act is show:
            sub.add_argument("entry", metavar="TABLE", help="such as dissertation_table_5_1")
        if act is check:
            sub.add_argument("--minutes", type=float, default=15, help="how long it may take: 15")
            sub.add_argument("--seed", type=int, required=True, help="any whole number of yours")
        if act is scoreboard:
            sub.add_argument("--judge", action="store_true", help=board.JUDGE)
        if act is prove:
            sub.add_argument("names", nargs="*", metavar="NAME", help="as in config/versions.yaml")
            text = "store the values of what has a raised version, or is new"
            sub.add_argument("--accept", action="store_true", help=text)
    args = parser.parse_args(arguments)
    if getattr(args, "file", None):
        args.file = os.path.abspath(args.file)  # the folder changes
    try:
        os.chdir(project.find_root())
        sys.path.append(os.getcwd())  # as Snakemake does, for methods of a user's own
        scale = getattr(args, "scale", None)
        work = project.load(**{"scale": scale} if scale else {})
        if args.act is listed and not scale:  # what there is to read
            work = project.committed()
        for line in args.act(work, args):
            print(line, flush=True)
    except (
        project.ConfigurationError,
        project.Unknown,
        CorruptFile,
        OSError,
        ValueError,
        LookupError,
    ) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return int(args.failed)


if __name__ == "__main__":
    sys.exit(main())
