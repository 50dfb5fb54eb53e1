"""Bring the records of all drawn entries together in PROVENANCE.json."""

from ofslib.reproduction import provenance

call = globals()["snakemake"]
provenance.update(call.output[0], dict(zip(call.params.entries, call.input.stamps, strict=True)))
