"""The memory that learning takes, compared with what is free, before any of it is taken."""

import math
import pickle
from contextlib import suppress
from pathlib import Path

import psutil
from sklearn.base import clone, is_classifier
from tqdm import tqdm

_SMALL = (64, 128, 256)  # numbers of features at which a state is measured, each twice the last
_CGROUP = "/sys/fs/cgroup/memory.max"  # the limit of a container


def state_bytes(model, n_features: int, n_classes: int = 2) -> float:
    """Memory of what a model learns: twice, for a block that is refused must leave no trace."""
    fresh = clone(model)
    models = n_classes if is_classifier(model) and n_classes > 2 else 1
    if hasattr(type(model), "averages_"):  # several models share the averages
        n_features, models = n_features + models - 1, 1
    sizes = []
    for p in _SMALL:
        fresh._start(p)
        sizes.append(len(pickle.dumps(fresh._state)))
    small, middle, large = sizes
    # States grow by the features, those of averages by their square.
    power = round(math.log2((large - middle) / (middle - small)))
    return 2.0 * models * large * max(1.0, n_features / _SMALL[-1]) ** power


def free_bytes() -> int:
    """Memory that this process can still take on this machine, or in this container."""
    free = [psutil.virtual_memory().available]
    with suppress(OSError, ValueError):
        limit = int(Path(_CGROUP).read_text())
        free.append(limit - psutil.Process().memory_info().rss)
    with suppress(ImportError, OSError):  # Windows
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            free.append(limit - psutil.Process().memory_info().vms)
    return min(free)


def refuse_memory(model, stream, n_classes: int) -> None:
    """MemoryError, before any is taken, if learning needs more memory than is free."""
    p, free = stream.n_features, free_bytes()
    needed = state_bytes(model, p, n_classes)
    if needed <= free:
        return
    needs, has = (tqdm.format_sizeof(n, "B") for n in (needed, free))
    ways = [
        "if one index is a slip, correct it, or give n_features (--n-features)",
        "hashed with n_features=2**20 (--hashed --n-features 1048576) takes names of any number",
    ]
    many = ""
    if hasattr(type(model), "averages_"):
        ways = ["averages need the square of the features: SFSA (--method sfsa) does not"]
    if n_classes > 2:
        many = f" and {n_classes:,} labels"
        ways.insert(0, "if the labels are amounts, take a regressor (--task regression)")
    raise MemoryError(
        f"{stream.name}: {type(model).__name__} needs about {needs} for {p:,} features{many}, and "
        f"{has} are free: {'; '.join(ways)}"
    )
