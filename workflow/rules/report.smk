# Where the figures come from, and all of them on one page.


rule provenance:
    input:
        [work.figures(entry) for entry in work.entries],
        script="workflow/scripts/provenance.py",
    output:
        "figures/PROVENANCE.json",
    log:
        "logs/provenance.txt",
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
        provenance="figures/PROVENANCE.json",
        records=[f"resources/{name}.json" for name in work.datasets],
        library=project.sources("reproduction.tables", "reproduction.project"),
        script="workflow/scripts/report.py",
        template="workflow/scripts/report.html.jinja",
    output:
        "report.html",
    log:
        "logs/report.txt",
    params:
        changes=CHANGES,
    conda:
        "../../environment.yml"
    resources:
        mem_mb=400,
        slots=1,
    message:
        "Write report.html"
    script:
        "../scripts/report.py"
