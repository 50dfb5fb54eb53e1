# Every table and figure of the five papers: snakemake --cores 8
# What is made stands in config/; how the pieces fit together is told in docs/workflow.md.

import sys

from snakemake.utils import min_version

from ofslib.reproduction import project

min_version("9.0")
# A user's own classes may stand beside this file.
sys.path.insert(0, workflow.basedir)


configfile: "config/config.yaml"


work = project.load(".", **config)


include: "workflow/rules/common.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/run.smk"
include: "workflow/rules/figure.smk"
include: "workflow/rules/report.smk"


# On a cluster these stay where snakemake is called, where there is a network.
localrules:
    all,
    fetch,
    provenance,
    report,


onstart:
    if shown and (to_do := list(steps())):
        # What is only taken as made, by --touch, says nothing of how long it takes.
        shown.measures = not workflow.touch
        print(shown.begin(to_do), flush=True)


onsuccess:
    note_drawn()
    print_summary()


onerror:
    note_drawn()


wildcard_constraints:
    entry="[a-z][a-z0-9_]*",
    setting="[A-Za-z0-9_-]+",


rule all:
    default_target: True
    input:
        all_files,
