# Where the figures come from, and all of them on one page.


rule provenance:
    input:
        stamps=[drawn(entry) for entry in work.entries],
        script="workflow/scripts/provenance.py",
    output:
        # Not removed before the job runs: it says what was drawn before at another scale.
        update(work.provenance),
    log:
        f"logs/{work.scale}/provenance.txt",
    params:
        entries=list(work.entries),
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
        library=project.drawing_sources(),
        errata="config/errata.yaml",
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
