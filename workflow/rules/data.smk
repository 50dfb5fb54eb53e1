# Real data sets: fetched, checked, and recorded. A record may say 'not fetched (reason)'.


rule fetch:
    input:
        script="workflow/scripts/fetch.py",
    output:
        "resources/{dataset}.json",
    log:
        "logs/fetch/{dataset}.txt",
    params:
        row=lambda wildcards: work.row(wildcards.dataset),
        attempt=lambda wildcards: attempt(f"resources/{wildcards.dataset}.json"),
        mode=work.real_data,
    conda:
        "../../environment.yml"
    resources:
        mem_mb=300,
        slots=1,
    message:
        "Data set {wildcards.dataset}: fetch and check"
    script:
        "../scripts/fetch.py"
