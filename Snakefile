# Every table and figure of the five papers: snakemake --cores 8
# What is made stands in config/; how the pieces fit together is told in docs/architecture.md.

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
    report,


# These bound what runs at once on this machine (profiles/default), not what is sent to a cluster.
resource_scopes:
    slots="local",
    ram_mb="local",


onsuccess:
    print_summary()


wildcard_constraints:
    entry="[a-z][a-z0-9_]*",
    setting="[A-Za-z0-9_-]+",
    kind=r"(\.time)?",


rule all:
    default_target: True
    input:
        all_files,
