# One table or figure: one run of its notebook over the results of its settings. The files that a
# notebook makes depend on the entry, so that each entry has its own rule, all from this template.

for entry in work.entries:

    rule:
        name:
            f"figure_{entry}"
        input:
            unpack(figure_inputs(entry)),
        output:
            work.figures(entry),
            drawn=touch(drawn(entry)),
        log:
            notebook=f"logs/{work.scale}/{entry}.ipynb",
            text=f"logs/{work.scale}/{entry}.txt",
        params:
            parameters=figure_parameters(entry),
            notebook=work.notebook(entry),
            code=project.code_of(work.notebook(entry)),
            spec=work.entries[entry].spec,
        conda:
            "../../environment.yml"
        threads: 1
        # As soon as its results are there: what is longest is begun first of the runs alone.
        priority: 100_000
        resources:
            mem_mb=700,
            ram_mb=700,
            runtime=work.time_limit_of(entry),
            slots=1,
        message:
            f"{entry}: draw"
        script:
            "../scripts/run_notebook.py"


# A table that is shown with another one: its name is a target, too.
for alias, entry in work.shown_elsewhere.items():

    rule:
        name:
            f"figure_{alias}"
        input:
            work.figures(entry),
