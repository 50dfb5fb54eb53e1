"""What ofslib relies on numba for: compiled code is never stale, is kept, and says the same.

Anything that needs a fresh interpreter, an empty cache or edited sources runs in a process of its
own, on a copy of the package in the test's folder.
"""

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from test_contract import DENSE, ESTIMATORS, SPARSE, labelled, show, variants

import ofslib
from ofslib import _jit
from ofslib.algorithms import sfsa
from ofslib.kernels.rows import dot, new_active
from ofslib.streams.penalised import Penalised

pytestmark = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="NUMBA_DISABLE_JIT leaves nothing to look at"
)

accelerated = pytest.mark.skipif(_jit._FAST is None, reason="what _fast_compile adds")
_fast_compile = _jit._FAST

PACKAGE = Path(ofslib.__file__).parent


def kernel_of(cls, own):
    """The kernel that rows of either format are shown to."""
    return getattr(cls, "learn", None) or sfsa.learn


def python(code, path, seconds=300, **environment):
    """Run `code` in a new interpreter that imports from `path` first; returns what it printed.

    It shares this process's cache of compiled code, unless `environment` says otherwise.
    """
    folders = os.pathsep.join([str(path), str(Path(__file__).parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        cwd=path,
        env=os.environ | {"PYTHONPATH": folders, **{n: str(v) for n, v in environment.items()}},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def edit(file, old, new):
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in {file.name}"
    file.write_text(text.replace(old, new), encoding="utf-8")


# Compiled code is never stale

# `importance` in selection.py calls `variance` in rows.py: a callee in another file. `step` stands
# in a file of its own, as in an algorithm, and calls it, too.
STEP = """
from ofslib._jit import kernel
from ofslib.kernels.rows import variance

@kernel
def step(moments):
    return variance(moments, 0) + 1.0
"""
CALL = """
    import numpy as np
    from ofslib import _jit
    from ofslib.kernels import rows, selection
    from ofslib.algorithms.mine import step
    moments = rows.Moments(np.array([4]), np.zeros(1), np.full(1, 36.0))
    scaled = int(selection.Importance.scaled_coef)
    print(step(moments), selection.importance(scaled, 2.0, moments, 0), _jit.source_key())
    for one in (step, selection.importance):
        print(*(sum(counts.values()) for counts in one.compiled.stats[1:]))
"""
SHOW_WARNINGS = """
    import warnings
    warnings.showwarning = lambda message, *where: print(message)
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package, to be edited."""
    ignore = shutil.ignore_patterns("__pycache__")
    copy = Path(shutil.copytree(PACKAGE, tmp_path / "site" / "ofslib", ignore=ignore))
    (copy / "algorithms" / "mine.py").write_text(STEP, encoding="utf-8")
    return copy


def test_after_an_edit_the_new_code_runs(package, tmp_path):
    """Of what kernels share under another key; of an algorithm under the same."""

    def call():
        """What the two return; the key; how often each was loaded from the cache and compiled."""
        out = python(CALL, package.parent, NUMBA_CACHE_DIR=tmp_path / "cache").split()
        return (*map(float, out[:2]), out[2], *map(int, out[3:]))

    step, value, key, *compiled = call()
    assert (step, value, compiled) == (10.0, 6.0, [0, 1, 0, 1])
    assert call() == (10.0, 6.0, key, 1, 0, 1, 0)
    edit(package / "algorithms" / "mine.py", "+ 1.0", "+ 2.0")
    assert call() == (11.0, 6.0, key, 0, 1, 1, 0)
    shared = "max(moments.square[j] / n"
    edit(package / "kernels" / "rows.py", shared, f"25.0 * {shared}")
    step, value, other, *compiled = call()
    assert (step, value, compiled) == (227.0, 30.0, [0, 1, 0, 1])
    assert {p.name for p in (tmp_path / "cache").iterdir()} == {key, other}


def test_the_key_changes_with_what_kernels_call_and_with_nothing_else(package):
    key = _jit.source_key(package)
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        file.write_bytes(source + b"\n")
        shared = file.parent.name == "kernels" or file.name in ("_jit.py", "_fast_compile.py")
        assert (_jit.source_key(package) != key) == shared, file.name
        file.write_bytes(source)


NO_NAME = """
    import os, pwd
    os.environ.pop("HOME", None), os.environ.pop("XDG_CACHE_HOME", None)

    def unknown(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    pwd.getpwuid = unknown  # as in a container whose user has a number only
"""


@pytest.mark.parametrize("plain", ["0", "1"])
@pytest.mark.parametrize(
    ("folder", "before", "why"),
    [
        pytest.param("/dev/null/cache", "", "Not a directory", id="not writable"),
        pytest.param("", NO_NAME, "determine home directory", id="no home and no name"),
    ],
)
def test_without_a_folder_for_it_code_is_compiled_in_memory(package, folder, before, why, plain):
    """Compiled code must not go anywhere else, where the key would not guard it."""
    settings = {"NUMBA_CACHE_DIR": folder, "OFSLIB_PLAIN_NUMBA": plain}
    out = python(SHOW_WARNINGS + before + CALL, package.parent, **settings)
    told, answer, *_ = out.splitlines()
    assert answer.startswith("10.0 6.0 ") and told.startswith("compiled code is not kept")
    assert why in told
    left = [p.name for p in package.rglob("*") if p.suffix in (".nbi", ".nbc")]
    assert left == []


# Faster compilation, and plain numba


FAULTS = {
    "a private part of numba is gone": ("import caching, ", "import no_such, ", "cannot import"),
    "it computes something else": ("return 2.0 * x", "return 3.0 * x", "computes something else"),
}


@accelerated
@pytest.mark.parametrize("fault", FAULTS)
def test_where_faster_compilation_fails_its_test_plain_numba_takes_over(package, tmp_path, fault):
    old, new, why = FAULTS[fault]
    edit(package / "_fast_compile.py", old, new)
    code = SHOW_WARNINGS + CALL + "    print(_jit._FAST)"
    told, result, *_, module = python(code, package.parent, NUMBA_CACHE_DIR=tmp_path).splitlines()
    assert told.startswith("first fits take two to three times as long: ") and why in told
    assert result.startswith("10.0 6.0 ") and module == "None"


def tripled(x):
    return 3 * x


@pytest.fixture
def kept(monkeypatch, tmp_path):
    """An empty folder of compiled code; `_jit.kernel` is a new process as far as that goes."""
    monkeypatch.setattr(_jit, "_FOLDER", tmp_path)
    if _fast_compile:
        _fast_compile._warn_once.cache_clear()
    return tmp_path


def outcome(x=2.0):
    """(result, times loaded from the cache, times compiled)"""
    kernel = _jit.kernel(tripled)
    stats = kernel.compiled.stats
    return kernel(x), sum(stats.cache_hits.values()), sum(stats.cache_misses.values())


class Foreign:
    """What would be run if it were unpickled."""

    def __reduce__(self):
        return os.mkdir, ("foreign",)


DAMAGES = {
    "one bit": lambda content: content[:-200] + bytes([content[-200] ^ 1]) + content[-199:],
    "another pickle": lambda content: pickle.dumps(Foreign()),
}


@accelerated
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_again_and_never_run(kept, monkeypatch, damage):
    monkeypatch.chdir(kept)
    assert (outcome(), outcome()) == ((6.0, 0, 1), (6.0, 1, 0))
    (file,) = kept.rglob("*.nbc")
    file.write_bytes(DAMAGES[damage](file.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged: it is compiled again") as told:
        assert outcome() == (6.0, 0, 1)
    assert len(told) == 1 and str(kept) in str(told[0].message)
    assert outcome() == (6.0, 1, 0)
    assert not (kept / "foreign").exists()


@accelerated
@pytest.mark.skipif(os.name != "posix", reason="a limit on the size of files")
def test_a_full_disk_costs_compilations_only(kept):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        with pytest.warns(UserWarning, match="cannot be written .*: it is compiled again") as told:
            assert (outcome(), outcome()) == ((6.0, 0, 1), (6.0, 0, 1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert len(told) == 1 and str(kept) in str(told[0].message)
    assert (outcome(), outcome()) == ((6.0, 0, 1), (6.0, 1, 0))


def test_where_compiled_code_is_kept(monkeypatch, tmp_path):
    key = _jit.source_key()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert _jit.cache_folder() == tmp_path / "numba" / key
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert _jit.cache_folder() == tmp_path / "xdg" / "ofslib" / "numba" / key
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert _jit.cache_folder() == tmp_path / ".cache" / "ofslib" / "numba" / key


# Compiled code is kept

NEW = """
    import sys
    import numpy as np
    from test_jit import first_fits

    list(first_fits())
    print(*{
        kernel.__name__
        for name, module in list(sys.modules.items()) if name.startswith("ofslib.")
        for kernel in vars(module).values()
        if hasattr(kernel, "compiled") and sum(kernel.compiled.stats.cache_misses.values())
    })
"""


def first_fits(variants_of=lambda cls: variants(cls)[:1]):
    """What all estimators learn."""
    for cls in ESTIMATORS.values():
        X, y = labelled(cls, n=40, p=8)
        for own in variants_of(cls):
            for form in (np.asarray, sp.csr_matrix):
                model = cls(**own).fit(form(X), y)
                yield [*model.coef_, model.intercept_, model.online_loss_]


def test_a_second_process_compiles_nothing(tmp_path):
    list(first_fits())
    assert not python(NEW, tmp_path).strip()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_there_are_four_compilations_of_each_algorithm(name):
    """For dense and sparse rows of float64 and float32, whatever data and parameters look like."""
    cls = ESTIMATORS[name]
    (X, y), own = labelled(cls, n=40, p=8), variants(cls)[0]

    def compiled(X, y, parameters=own):
        """Rows with weights are compiled on their own, and so are penalties in float32."""
        _ = show(cls(**parameters), X, y).coef_
        return sum(
            "Record" not in re.findall(r"\w+", str(found))
            and not (issubclass(cls, Penalised) and "float32" in str(found[0]))
            for found in kernel_of(cls, parameters).compiled.signatures
        )

    for form in (*DENSE.values(), *SPARSE.values()):
        model = cls(**own).fit(form(X), y)
        _ = pickle.loads(pickle.dumps(model)).partial_fit(form(X), y).coef_
    assert compiled(X, y) == compiled(X[:1], y[:1]) == compiled(X[:, :1], y, own | {"k": 1}) == 4
    for parameter, value in (cls().get_params() | own).items():
        kinds = {int: np.int32, float: np.float32}.get(type(value))
        if kinds:
            assert compiled(X, y, own | {parameter: kinds(max(value, 1))}) == 4, parameter


@pytest.mark.parametrize("terminal", [True, False])
def test_that_it_compiles_is_said_once_to_a_terminal(terminal, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    _jit._say_compiling.cache_clear()
    same = _jit.generic(lambda x: lambda x: x)
    compiled = _jit.kernel(lambda x: same(x))
    assert compiled(1.5) == 1.5 and compiled(1) == 1
    assert len(capsys.readouterr().err.splitlines()) == terminal


# Compiled or not, the same

WITHOUT_JIT = """
    import json, numba, warnings
    from test_jit import first_fits, variants

    warnings.simplefilter("ignore")
    assert numba.config.DISABLE_JIT
    print(json.dumps(list(first_fits(variants))))
"""


def test_python_computes_what_the_compiled_kernels_compute(tmp_path):
    plain = json.loads(python(WITHOUT_JIT, tmp_path, NUMBA_DISABLE_JIT=1))
    own = [own for cls in ESTIMATORS.values() for own in variants(cls) for _ in range(2)]
    for ours, found, compiled in zip(own, plain, first_fits(variants), strict=True):
        rounding = 1e-6 if ours.get("dtype") == "float32" else 1e-12
        assert_allclose(found, compiled, rtol=rounding, atol=rounding / 10)


@_jit.kernel
def divide(x, y):
    return x / y


def test_the_options_are_those_of_the_one_decorator():
    assert divide(1.0, 0.0) == np.inf and np.isnan(divide(0.0, 0.0))
    for cls in ESTIMATORS.values():
        options = kernel_of(cls, cls().get_params()).compiled.targetoptions
        assert options["nogil"] and options["error_model"] == "numpy"
        assert not options.get("fastmath") and not options.get("parallel")
    assert _jit.REORDERED_SUMS == {"fastmath": {"reassoc", "contract"}}


@numba.njit
def is_finite_sum(x, w, active):
    return np.isfinite(dot(x, w, active))


@pytest.mark.parametrize("members", [[5, 30], range(40)])
def test_a_dense_sum_shows_what_is_not_finite_outside_the_model(members):
    """In a sum that may be reordered nan and inf keep their meaning."""
    active, w = new_active(40), np.zeros(40)
    w[members] = 1.0
    active.index[:] = [*members, *(j for j in range(40) if j not in members)]
    active.size[0] = len(members)
    for j in range(40):
        for number in (np.nan, np.inf, -np.inf):
            x = np.ones(40)
            assert is_finite_sum(x, w, active)
            x[j] = number
            assert not is_finite_sum(x, w, active)
