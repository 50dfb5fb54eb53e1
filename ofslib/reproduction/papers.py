"""What `ofslib papers` says: each function gives its lines, and the same as data."""

import os
from typing import Any

from ofslib._printing import text_table
from ofslib.reproduction import archive
from ofslib.reproduction.project import Project

Said = tuple[list[str], dict[str, Any]]


def listed(work: Project) -> Said:
    """Every table and figure: what makes it, and whether it is made."""
    data = []
    for name, entry in work.entries.items():
        made = all((work.root / file).is_file() for file in work.figures(name))
        runs = [(work.root / file).is_file() for file in work.inputs(name)]
        row = {"source": entry.spec["source"], "target": f"figure_{name}"}
        row |= {"notebook": work.notebook(name), "status": "made" if made else "not made"}
        data.append(row | {"runs": len(runs), "runs_made": sum(runs)})
    cells = [[*list(row.values())[:4], f"{row['runs_made']} of {row['runs']}"] for row in data]
    head = ["table or figure", "snakemake target", "notebook", work.scale, "runs here"]
    return text_table(head, cells), {"scale": work.scale, "papers": data}


def pack(work: Project, file: str) -> Said:
    """The results of a scale packed into an archive, by default results-<scale>.zip."""
    file = file or f"results-{work.scale}.zip"
    found = archive.pack(work, file)
    size = f"{os.path.getsize(file) / 1e6:.1f} MB"
    return _moved(work, found, f"packed into {file} ({size})", file)


def unpack(file: str) -> Said:
    """The results of an archive that fit this checkout, taken from it."""
    return _moved(*archive.unpack(file), f"of {file} are here", file)


def _moved(work: Project, found: dict[str, str], done: str, file: str) -> Said:
    reasons = list(found.values())
    lines = [f"{reasons.count('')} of {len(found)} results of scale {work.scale} {done}"]
    lines += [f"{reasons.count(why)} not: {why}" for why in sorted({*reasons} - {""})]
    return lines, {"file": file, "scale": work.scale, "results": found}
