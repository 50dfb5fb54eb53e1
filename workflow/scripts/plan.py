"""Say what the scale will cost, before it is run."""

from pathlib import Path

from ofslib.reproduction import papers, project

call = globals()["snakemake"]
lines, _ = papers.planned(project.load(".", **call.params.changes))
Path(call.log[0]).write_text("\n".join(lines) + "\n", encoding="utf-8")
print(*lines, sep="\n")
