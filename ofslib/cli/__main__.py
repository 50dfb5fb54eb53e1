"""python -m ofslib.cli: the command ofslib."""

import sys

from ofslib.cli import main

sys.exit(main())
