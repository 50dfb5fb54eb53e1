# One setting of an entry, or those with the same rows: one file of results, put together from those
# that are stored, in results/store. Those that are not are made by one run of notebooks/run.ipynb.
# The kind ".time" measures learning times, which are of the processor: other jobs may run beside.


rule run:
    input:
        run_record,
    output:
        f"results/{work.scale}/{{entry}}/{{setting}}{{kind}}.csv",
    log:
        notebook=f"logs/{work.scale}/{{entry}}/{{setting}}{{kind}}.ipynb",
        text=f"logs/{work.scale}/{{entry}}/{{setting}}{{kind}}.txt",
    params:
        parameters=run_parameters,
        versions=run_versions,
        notebook="notebooks/run.ipynb",
    conda:
        "../../environment.yml"
    threads: 1
    priority: run_priority
    resources:
        mem_mb=run_memory,
        ram_mb=run_memory,
        # A resource, not a parameter: another limit makes nothing again.
        runtime=lambda wildcards: work.time_limit_of(wildcards.entry),
        slots=lambda wildcards: WHOLE_MACHINE if is_alone(wildcards) else 1,
        # Under Slurm the whole node, as all slots of a single machine.
        slurm_extra=lambda wildcards: "--exclusive" if is_alone(wildcards) else "",
    message:
        "{wildcards.entry}: run {wildcards.setting}{wildcards.kind}"
    script:
        "../scripts/run_notebook.py"
