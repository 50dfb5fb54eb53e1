"""What `ofslib papers` says: each function gives its lines, and the same as data."""

import os
from typing import Any

import numpy as np

from ofslib._printing import text_table
from ofslib.reproduction import archive, comparison, plan, provenance, records
from ofslib.reproduction.project import Project

Said = tuple[list[str], dict[str, Any]]


def listed(work: Project) -> Said:
    """Every table and figure: what makes it, and whether it is made, and at which scale."""
    data, known = [], provenance.read(work.root / work.provenance)
    for name, entry in work.entries.items():
        made = all((work.root / file).is_file() for file in work.figures(name))
        runs = [(work.root / file).is_file() for file in work.inputs(name)]
        row = {"source": entry.spec["source"], "target": f"figure_{name}"}
        scale = known.get(name, {}).get("scale", work.scale) if made else None
        status = "not made" if scale is None else "made" + f" ({scale})" * (scale != work.scale)
        row |= {"notebook": work.notebook(name), "status": status, "scale": scale}
        data.append(row | {"runs": len(runs), "runs_made": sum(runs)})
    first = ("source", "target", "notebook", "status")
    cells = [[*map(row.get, first), f"{row['runs_made']} of {row['runs']}"] for row in data]
    head = ["table or figure", "snakemake target", "notebook", work.scale, "runs here"]
    return text_table(head, cells), {"scale": work.scale, "papers": data}


def planned(work: Project) -> Said:
    """What each entry will cost at a scale, what of it is here, and how well that is known."""
    rows, known, times = plan.plan(work)
    factor, ratio = plan.errors(known, times)
    keys = ("runs", "here", "shipped", "core_hours", "left_hours", "without_data", "unknown")
    total = {"entry": "all"} | {key: sum(row[key] for row in rows) for key in keys}
    total |= {"replicates": "", "memory_mb": max(row["memory_mb"] for row in rows)}
    total["missing"] = sorted({name for row in rows for name in row["missing"]})
    cells = [
        [
            row["entry"],
            str(row["runs"]),
            str(row["here"]),
            " to ".join(map(str, dict.fromkeys(row["replicates"]))),
            f"{row['core_hours']:.2f}" + " and more" * (row["unknown"] > 0),
            f"{row['left_hours']:.2f}",
            f"{row['memory_mb']:,.0f}",
        ]
        for row in [*sorted(rows, key=lambda row: -row["core_hours"]), total]
    ]
    head = ["entry", "runs", "here", "replicates", "core hours", "still to run", "memory, MB"]
    told = f"Told from {len(known)} runs that were measured, and {len(times)} learning times of "
    told += "single methods. Each half of the runs predicted from the other, and from these times: "
    told += f"half within a factor of {factor:.2f}, the sum {ratio:.2f} of what it was."
    if total["unknown"]:
        told += f" Of {total['unknown']} runs nothing alike was measured: 'and more'."
    notes = []
    if total["shipped"]:
        notes.append(
            f"Nor still to run: {total['shipped']} results that come with the checkout, which "
            "ofslib papers --unpack takes."
        )
    if total["missing"]:
        notes.append(
            f"Not counted: {total['without_data']:.2f} core hours that need data which cannot be "
            f"had here: {', '.join(total['missing'])}."
        )
    changed = records.changed(work.datasets)
    if changed:
        notes.append(f"Changed since it came: {', '.join(changed)}; {records.WHAT_CHANGES}.")
    data = {
        "scale": work.scale,
        "entries": rows,
        "total": total,
        "measured": len(known),
        "times": len(times),
        "changed": changed,
    }
    lines = [f"Scale {work.scale}", *text_table(head, cells), *notes, told]
    return lines, data | {"factor": factor, "sum_ratio": ratio}


def pack(work: Project, file: str) -> Said:
    """The results of a scale packed into an archive, by default results-<scale>.zip."""
    file = file or f"results-{work.scale}.zip"
    found = archive.pack(work, file)
    size = f"{os.path.getsize(file) / 1e6:.1f} MB"
    return _moved(work, found, f"packed into {file} ({size})", file)


def unpack(work: Project, file: str) -> Said:
    """The results of an archive that fit this checkout, taken from it.

    By default of the archive that comes with the checkout.
    """
    file = file or archive.shipped(work)
    return _moved(*archive.unpack(file), f"of {file} are here", file)


def compare(work: Project, file: str) -> Said:
    """Whether the values that were made here are those of an archive; by default as `unpack`."""
    file = file or archive.shipped(work)
    found, left_out = comparison.compare(work, file)
    lines = [f"Scale {work.scale}, made here, beside {file}"]
    lines += text_table(["entry", *comparison.COUNTS, "largest", "where"], comparison.lines(found))
    lines += [f"{number} results left out: {why}" for why, number in left_out.items()]
    lines += [
        "compared: of the same setting, data and replicate there, without times",
        f"equal: to the last bit; rounding: up to {comparison.ROUNDING:g} of the larger value",
        "largest: of the relative differences, and where it is (inf: one has no value)",
    ]
    entries = found.to_dict("records")
    for row in entries:  # JSON has no infinity
        row["largest"] = row["largest"] if np.isfinite(row["largest"]) else None
    return lines, {"scale": work.scale, "file": file, "entries": entries, "left_out": left_out}


def _moved(work: Project, found: dict[str, str], done: str, file: str) -> Said:
    reasons = list(found.values())
    lines = [f"{reasons.count('')} of {len(found)} results of scale {work.scale} {done}"]
    lines += [f"{reasons.count(why)} not: {why}" for why in sorted({*reasons} - {""})]
    return lines, {"file": file, "scale": work.scale, "results": found}
