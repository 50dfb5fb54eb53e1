# Real data sets: fetched, checked, and recorded. A record may say 'not fetched (reason)'.


rule fetch:
    input:
        script=fetch_script,
    output:
        records.path("{dataset}"),
    log:
        "logs/fetch/{dataset}.txt",
    params:
        row=lambda wildcards: work.row(wildcards.dataset),
        mode=work.real_data,
    conda:
        "../../environment.yml"
    # Before all runs, as the longest of them may wait for it.
    priority: 1_000_000
    resources:
        mem_mb=300,
        ram_mb=300,
        slots=1,
    message:
        "Data set {wildcards.dataset}: fetch and check"
    script:
        "../scripts/fetch.py"
