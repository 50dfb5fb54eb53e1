# All tables and figures on one page.


rule report:
    input:
        figures=[work.figures(entry) for entry in work.entries],
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
        ram_mb=400,
        slots=1,
    message:
        f"Write {work.report}"
    script:
        "../scripts/report.py"
