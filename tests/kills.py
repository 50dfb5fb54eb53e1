"""Kill `ofslib select` on a large file at random moments, and compare with an undisturbed run.

    python tests/kills.py [--rows N] [--kills N]

Two million sparse rows of 60 values, 100,000 features, one pass, a checkpoint every two seconds;
five times the command is killed at a moment drawn at random and called again. It ends with an error
if the features, the model or the checkpoint then differ in a byte, or if it was ever done before it
was killed.
"""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

P, NONZEROS, DIFFERENT = 100_000, 60, 20_000
FILES = {"--out": "features.csv", "--model": "model.npz", "--checkpoint": "run.ckpt"}


def write(path: Path, rows: int) -> None:
    """Rows at random, of which so many are different; 20,000 features decide the label."""
    rng, lines = np.random.default_rng(0), []
    effects = rng.standard_normal(P) * (np.arange(P) < 20_000)
    for _ in range(DIFFERENT):
        places = np.sort(rng.choice(P, NONZEROS, replace=False))
        values = rng.standard_normal(NONZEROS).round(4)
        pairs = " ".join(f"{j + 1}:{v}" for j, v in zip(places, values, strict=True))
        lines.append(f"{1 if effects[places] @ values > 0 else -1} {pairs}\n")
    with open(path, "w") as file:
        for start in range(0, rows, DIFFERENT):
            file.writelines(lines[: rows - start])


def call(text: Path, place: Path, seconds: float | None = None) -> float:
    """Run the command, for so many seconds at most; how long it ran, negative if it was killed."""
    place.mkdir(exist_ok=True)
    files = [word for option, name in FILES.items() for word in (option, str(place / name))]
    line = ["select", str(text), "-k", "1000", "--every", "2", "--quiet", *files]
    began = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "ofslib.cli", *line])
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        code = process.wait()
    if code not in (0, -signal.SIGKILL):
        raise SystemExit(f"the command failed with {code}")
    passed = time.monotonic() - began
    return passed if code == 0 else -passed


def main(rows: int, kills: int) -> None:
    """Compare what a killed run and an undisturbed one leave."""
    with tempfile.TemporaryDirectory() as folder:
        text, rng = Path(folder, "rows.svm"), random.Random()
        write(text, rows)
        whole, killed = Path(folder, "whole"), Path(folder, "killed")
        seconds = call(text, whole)
        print(
            f"{rows:,} rows, {text.stat().st_size:,} bytes: {seconds:.1f} s undisturbed", flush=True
        )
        for number in range(kills):
            passed = call(text, killed, rng.uniform(0, 2 * seconds / (kills + 1)))
            if passed > 0:
                raise SystemExit(f"it was done after {number} kills: take more rows")
            print(f"killed after {-passed:.1f} s", flush=True)
        print(f"the same command again: {call(text, killed):.1f} s", flush=True)
        for name in FILES.values():
            if (whole / name).read_bytes() != (killed / name).read_bytes():
                raise SystemExit(f"{name} differs")
        print("features, model and checkpoint: the same bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--kills", type=int, default=5)
    main(**vars(parser.parse_args()))
