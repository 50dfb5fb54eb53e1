"""Bring a data set and record what came of it."""

import sys
import warnings
from pathlib import Path

from ofslib.reproduction import records

call = globals()["snakemake"]
# For the screen, without the line of code
warnings.formatwarning = lambda message, *_, **__: f"{message}\n"
try:
    found = records.obtain(call.wildcards.dataset, call.params.mode)
except Exception as error:
    Path(call.log[0]).write_text(f"{error}\n", encoding="utf-8")
    sys.exit(f"{call.wildcards.dataset}: {error}")
Path(call.log[0]).write_text(f"{found['status']}\n", encoding="utf-8")
records.write(found)
