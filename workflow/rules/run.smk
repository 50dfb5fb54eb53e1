# One setting of an entry, or those with the same rows: one run of notebooks/run.ipynb, one file of
# results.


rule run:
    input:
        unpack(run_inputs("")),
        notebook="notebooks/run.ipynb",
    output:
        f"results/{work.scale}/{{entry}}/{{setting}}.csv",
        made=f"results/{work.scale}/{{entry}}/{{setting}}.json",
    log:
        notebook=f"logs/{work.scale}/{{entry}}/{{setting}}.ipynb",
        text=f"logs/{work.scale}/{{entry}}/{{setting}}.txt",
    params:
        parameters=run_parameters(""),
    conda:
        "../../environment.yml"
    threads: 1
    retries: 1
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
        notebook="notebooks/run.ipynb",
    output:
        f"results/{work.scale}/{{entry}}/{{setting}}.time.csv",
        made=f"results/{work.scale}/{{entry}}/{{setting}}.time.json",
    log:
        notebook=f"logs/{work.scale}/{{entry}}/{{setting}}.time.ipynb",
        text=f"logs/{work.scale}/{{entry}}/{{setting}}.time.txt",
    params:
        parameters=run_parameters("time"),
    conda:
        "../../environment.yml"
    threads: 1
    retries: 1
    priority: run_priority("time")
    resources:
        mem_mb=run_memory("time"),
        runtime=run_minutes,
        slots=1,
    message:
        "{wildcards.entry}: measure times of {wildcards.setting}"
    script:
        "../scripts/run_notebook.py"
