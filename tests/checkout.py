"""A copy of the checkout, and Snakemake in it.

Nothing here may use the network: all https connections are sent to a port where nobody listens.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import compiled
import pytest
import shipped

ROOT = Path(__file__).parents[1]
MIRROR = "OFSLIB_DATA_MIRROR"
CLOSED = "http://127.0.0.1:9"  # the discard port: nobody listens
PROXIES = {"http_proxy", "https_proxy", "all_proxy", "no_proxy"}
OLD = b"what an earlier run made\n"
MARKS = [
    pytest.mark.workflow,
    pytest.mark.skipif(os.name != "posix", reason="signals"),
    pytest.mark.skipif(not shutil.which("git"), reason="git tells which files are the project's"),
]


class Copy:
    """The files of the working tree that git does not ignore, in a folder of their own.

    What a user has added to the configuration is left out.
    """

    def __init__(self, folder):
        self.folder = folder
        words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
        names = sorted(filter(None, listed.decode().split("\0")))
        there = [name for name in names if (ROOT / name).is_file()]
        for name in there:  # in this order, as git writes them
            # The shipped archive stays: it tells how long runs take.
            is_old = is_product(name) and not name.endswith(".zip")
            content = OLD if is_old else (ROOT / name).read_bytes()
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
        shipped.leave_out_what_is_added(folder)
        self.tracked = [name for name in there if self.path(name).is_file()]

    def path(self, name):
        return self.folder / name

    def environment(self, mirror):
        kept = {
            name: value
            for name, value in os.environ.items()
            if name.lower() not in PROXIES and name != MIRROR and not name.startswith("PYTEST")
        }
        # The user's code first; what finds compiled code lies beside this file.
        kept["PYTHONPATH"] = os.pathsep.join([str(self.folder), str(Path(__file__).parent)])
        kept["NUMBA_CACHE_LOCATOR_CLASSES"] = ",".join(compiled.LOCATORS)
        kept |= {"https_proxy": CLOSED, "HTTPS_PROXY": CLOSED}
        return kept | ({MIRROR: mirror} if mirror else {})

    def start(self, *words, mirror=None, **config):
        changes = [f"{name}={value}" for name, value in config.items()]
        command = [sys.executable, "-m", "snakemake", *words]
        return subprocess.Popen(
            [*command, *(["--config", *changes] if config else [])],
            cwd=self.folder,
            env=self.environment(mirror),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def run(self, *words, seconds=600, **options):
        process = self.start(*words, **options)
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.terminate()
            said, _ = process.communicate()
            pytest.fail(f"more than {seconds} s: {words}\n{said[-3000:]}")
        return SimpleNamespace(code=process.returncode, said=said)

    def planned(self, *targets, **options):
        """Files that Snakemake would make now."""
        done = self.run("--summary", *targets, **options)
        assert done.code == 0, done.said[-3000:]
        lines = done.said[done.said.index("output_file\t") :].splitlines()
        rows = csv.DictReader([line for line in lines if "\t" in line], delimiter="\t")
        files = {row["output_file"] for row in rows if row["plan"] != "no update"}
        return {file for file in files if not is_record(file)}

    @contextmanager
    def edited(self, name, more="\n"):
        before, stamp = self.path(name).read_bytes(), self.path(name).stat()
        self.path(name).write_bytes(before + more.encode())
        try:
            yield
        finally:
            self.path(name).write_bytes(before)
            os.utime(self.path(name), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def is_product(name):
    made = name.startswith("figures/") or name == "report.html"
    return made and name != "figures/PROVENANCE.json"


def whole_log(copy):
    """All that Snakemake said in its last run; the screen shows less."""
    newest = max(copy.path(".snakemake/log").glob("*.log"))
    return newest.read_text(encoding="utf-8")


def record(copy, dataset):
    return json.loads(copy.path(f"resources/{dataset}.json").read_text(encoding="utf-8"))


def is_record(name):
    """Whether a file says when something was made, and what it took."""
    return name.endswith(".drawn")
