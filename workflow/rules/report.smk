# Where the figures come from, and all of them on one page.


rule provenance:
    input:
        [work.figures(entry) for entry in work.entries],
        records=all_records,
        script="workflow/scripts/provenance.py",
    output:
        # Not removed before the job runs: it says in which folder this scale's figures are.
        update(work.provenance),
    log:
        f"logs/{work.scale}/provenance.txt",
    params:
        facts=CHANGES,
    conda:
        "../../environment.yml"
    resources:
        mem_mb=200,
        slots=1,
    message:
        "Write down where the figures come from"
    script:
        "../scripts/provenance.py"


rule report:
    input:
        figures=[work.figures(entry) for entry in work.entries],
        provenance=work.provenance,
        library=project.sources("reproduction.overview", "reproduction.scoreboard"),
        errata="docs/errata.md",
        published="config/published.csv",
        script="workflow/scripts/report.py",
        template="workflow/scripts/report.html.jinja",
    output:
        work.report,
    log:
        f"logs/{work.scale}/report.txt",
    params:
        changes=CHANGES,
    conda:
        "../../environment.yml"
    resources:
        mem_mb=400,
        slots=1,
    message:
        f"Write {work.report}"
    script:
        "../scripts/report.py"
