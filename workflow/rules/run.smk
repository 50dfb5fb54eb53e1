# One setting of an entry, or those with the same rows: one file of results, put together from those
# that are stored, in results/store. Those that are not are made by one run of notebooks/run.ipynb.


rule run:
    input:
        unpack(run_inputs("")),
    output:
        f"results/{work.scale}/{{entry}}/{{setting}}.csv",
    log:
        notebook=f"logs/{work.scale}/{{entry}}/{{setting}}.ipynb",
        text=f"logs/{work.scale}/{{entry}}/{{setting}}.txt",
    params:
        parameters=run_parameters(""),
        versions=run_versions(""),
        notebook="notebooks/run.ipynb",
    conda:
        "../../environment.yml"
    threads: 1
    priority: run_priority("")
    resources:
        mem_mb=run_memory(""),
        runtime=run_minutes,
        slots=run_slots,
        slurm_extra=run_exclusive,
    message:
        "{wildcards.entry}: run {wildcards.setting}"
    script:
        "../scripts/run_notebook.py"


# Learning times are of the processor: other jobs may run beside.
rule time:
    input:
        unpack(run_inputs("time")),
    output:
        f"results/{work.scale}/{{entry}}/{{setting}}.time.csv",
    log:
        notebook=f"logs/{work.scale}/{{entry}}/{{setting}}.time.ipynb",
        text=f"logs/{work.scale}/{{entry}}/{{setting}}.time.txt",
    params:
        parameters=run_parameters("time"),
        versions=run_versions("time"),
        notebook="notebooks/run.ipynb",
    conda:
        "../../environment.yml"
    threads: 1
    priority: run_priority("time")
    resources:
        mem_mb=run_memory("time"),
        runtime=run_minutes,
        slots=1,
    message:
        "{wildcards.entry}: measure times of {wildcards.setting}"
    script:
        "../scripts/run_notebook.py"
