"""Make some shipped results again, drawn at random, and compare: a check for a coffee break."""

import os
import time
import warnings
from collections import Counter
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

from ofslib.reproduction import experiment, identity, machine, records, splits, store
from ofslib.reproduction.comparison import compared
from ofslib.reproduction.identity import Result
from ofslib.reproduction.plan import START, Seconds
from ofslib.reproduction.project import ConfigurationError, Project, committed

LONGEST = 300.0  # predicted seconds of a replicate that may be drawn
# What all that is drawn is predicted to take, as a share of the time given: predictions are rough,
# and what is not ready in time would be the slow ones more often than others.
FILLED = 0.6
VERDICTS = ("equal", "rounding", "differ")
SHARES = (0.01, 0.05, 0.2)  # of wrong results, for which the chance to see one is told


class Pair(NamedTuple):
    """One replicate of a result, and what it is predicted to take."""

    part: dict[str, Any]  # the setting that it is of
    result: Result
    replicate: int
    seconds: float


def pairs(work: Project) -> tuple[list[Pair], Counter[str]]:
    """The replicates of shipped results that can be made again, and why others cannot -> how many.

    Results that several entries show count once.
    """
    known, found, seen, out_of_reach = Seconds(work), [], set(), Counter()
    runs = [setting for _, setting in work.runs() if work.shipped(setting)]
    # Only of what is shipped: other sets may be gigabytes.
    names = sorted({setting.dataset for setting in runs if setting.dataset})
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        data = {name: records.obtain(name, "auto")["status"] == "fetched" for name in names}
    for setting, result in ((s, r) for s in runs for r in identity.results(s.spec)):
        if result.key in seen:
            continue
        seen.add(result.key)
        part, count = identity.canonical(setting.parts[result.part]), result.end - result.first
        # A study makes all replicates of its methods, and tuning is done for all at once.
        whole = bool(setting.dataset) and "split" not in part["data"]
        each = known.of(result, store.place_of(setting.spec, result), count if whole else 1)
        cls = part["methods"].get(result.label)
        reason = (
            "a time" if part["metrics"] == ["time_s"]
            else "alone on the machine" if work.entries[part["experiment"]].spec["alone"]
            else "no data set" if setting.dataset and not data[setting.dataset]
            else "not installed" if cls and experiment.installed({"methods": {"": cls}})[1]
            else "takes too long" if each is None or each + START > LONGEST
            else ""
        )  # fmt: skip
        out_of_reach[reason] += count
        replicates = () if reason else range(result.first, result.end)
        found += [Pair(part, result, r, each + START) for r in replicates]
    del out_of_reach[""]
    return found, out_of_reach


def draw(found: list[Pair], seed: int, seconds: float) -> list[Pair]:
    """As many pairs, uniformly at random, as are predicted to fit into the time: one at least."""
    order = np.random.default_rng(seed).permutation(len(found))
    number = np.searchsorted(np.cumsum([found[i].seconds for i in order]), seconds, side="right")
    return [found[i] for i in order[: max(1, number)]]


def make(pair: Pair) -> dict[str, Any]:
    """Make a pair again and compare it with what is shipped: as `comparison.compared`."""
    part = {**pair.part, "replicates": pair.replicate + 1, "first": pair.replicate}
    data = splits.read(part["data"]) if "dataset" in part["data"] else None
    first = {(0, pair.result.label): pair.replicate}
    with warnings.catch_warnings(action="ignore"):  # a warning of a fit says nothing of its value
        [rows] = experiment.rows(part, data, progress=False, first=first)
    own = [row for row in rows if pair.result.label in (None, row["method"])]
    one = pair.result._replace(first=pair.replicate, end=pair.replicate + 1)
    return compared(store.as_text(own, pair.result.label), committed().archive.rows(one))


def check(work: Project, minutes: float, seed: int) -> dict[str, Any]:
    """Make shipped results again for so many minutes.

    Parameters
    ----------
    work : Project
        At the scale of the archive.
    minutes : float
    seed : int
        The reader's own: it decides which results are made.

    Returns
    -------
    dict
        unready (how many replicates of results were drawn and not made in time), drawn_from (how
        many can be drawn), out_of_reach (why others cannot -> how many), unreached (their share of
        all), chances (share of wrong results -> the chance to have seen one) and found (a list with
        entry, setting, method, replicate, verdict, values, largest and where).
    """
    if work.archive is None:
        raise ConfigurationError(f"there is no {work.archive_file} to check")
    end, workers = time.monotonic() + 60 * minutes, machine.cores()
    able, out_of_reach = pairs(work)
    drawn = draw(able, seed, FILLED * 60 * minutes * workers)
    # Each process learns with one thread, as the runs of the workflow do.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    with get_context("spawn").Pool(workers) as pool:  # what still runs in the end is stopped
        asked = [pool.apply_async(make, [pair]) for pair in drawn]
        for one in asked:
            one.wait(max(end - time.monotonic(), 0))
        ready = [(pair, one.get()) for pair, one in zip(drawn, asked, strict=True) if one.ready()]
    pool.join()
    found = [_told(pair, counts) for pair, counts in ready]
    known = len(able) + out_of_reach.total()
    return {
        "unready": len(drawn) - len(found),
        "drawn_from": len(able),
        "out_of_reach": out_of_reach,
        "unreached": 1 - len(able) / known,
        "chances": {share: 1 - (1 - share) ** len(found) for share in SHARES},
        "found": found,
    }


def _told(pair: Pair, counts: dict[str, Any]) -> dict[str, Any]:
    """A line of the result of a check."""
    # A value that is on one side only differs too.
    differ = counts["differ"] or counts["compared"] < counts["values"]
    verdict = "differ" if differ else "rounding" if counts["rounding"] else "equal"
    entry, setting, label = store.place_of(pair.part, pair.result._replace(part=0))
    place = {"entry": entry, "setting": setting, "method": label, "replicate": pair.replicate}
    told = {name: counts[name] for name in ("values", "largest", "where")}
    return {**place, "verdict": verdict, **told}
