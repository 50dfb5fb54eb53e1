"""What nobody should give: each is refused by its name, and nothing has changed then.

One table. A row is a call of a fresh subject, a part of what the error says, and its class if this
is not ValueError. The subject is what the call might spoil: an estimator that has learned, a
generator, a folder of files.
"""

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import NotFittedError

import ofslib
from ofslib import bounds, datasets, metrics, wishart
from ofslib.simulate import Drifting, Equicorrelated, SparseRows

nan, inf = np.nan, np.inf
X = np.random.default_rng(0).standard_normal((40, 6))
y = X[:, 0] - X[:, 1] + 0.1
LABELS = (y > 0).astype(int)
HOLED = np.where(X > 2, nan, X)
DAYS = np.arange(40).astype("datetime64[D]")
FRAME = pd.DataFrame(X, columns=list("abcdef"))
GIVEN = pickle.dumps([X, y, LABELS])


def spoilt(array, value):
    """The same numbers, but for the last one."""
    changed = np.array(array, dtype=float)
    changed.flat[-1] = value
    return changed


# -------------------------------------------------- subjects, and what is known of them


def facts(subject):
    """All that is known of a subject: what it holds, or the files of a folder."""
    if isinstance(subject, Path):
        return {file: file.read_bytes() for file in subject.rglob("*") if file.is_file()}
    if isinstance(subject, ofslib.RunningAverages):
        read = subject.copy()  # for reading folds in what waits
        return read.n, read.weight, *(np.asarray(m).tobytes() for m in read.standardized())
    if isinstance(subject, BaseEstimator):
        subject = vars(subject)
    return pickle.dumps(subject)


# -------------------------------------------------- rows


def set_to(**values):
    """Learn with other parameters; they are set back, so that nothing else may have changed."""

    def call(model):
        before = {name: getattr(model, name) for name in values}
        model.set_params(**values)
        try:
            model.fit(X, LABELS if is_classifier(model) else y)
        finally:
            model.set_params(**before)

    return call


ROWS = [
    (set_to(k=2**63), "'k' parameter .* Got 9223372036854775808"),
    (set_to(learning_rate=inf), "'learning_rate' parameter .* Got inf"),
    (set_to(learning_rate=10**400), "learning_rate=1000"),
    (lambda m: m.set_params(learning_rte=1), "learning_rte"),
    (lambda m: m.fit(None, y), "Expected 2D array"),
    (lambda m: m.fit(X[None], y), "dim 3"),
    (lambda m: m.fit(np.where(X > 2, None, X), y), "X contains NaN"),
    (lambda m: m.fit(FRAME.assign(a="x"), y), "column 'a' of X .*convert string to float: 'x'"),
    (lambda m: m.partial_fit(sp.csc_array(HOLED), y), "X contains NaN"),
    (lambda m: m.partial_fit(X, y[1:]), r"\[40, 39\]"),
    (lambda m: m.partial_fit(X, spoilt(y, nan)), "y contains NaN"),
    (lambda m: m.fit(X, spoilt(y, inf)), "y contains infinity"),
    (lambda m: m.partial_fit(sp.csr_array(X[:, :5]), y), "5 features"),
    (lambda m: clone(m).fit(FRAME, y).partial_fit(FRAME[list("bacdef")], y), "feature names"),
    (
        lambda m: clone(m).fit(FRAME, y).predict(FRAME.assign(a="x").rename(columns={"b": "z"})),
        "^The feature names",
    ),
    (lambda m: m.partial_fit(X, ["a"] * 40), "y must be numbers .*convert string to float"),
    (lambda m: m.fit(X, [None] * 40), "y contains no number in row 0"),
    (lambda m: m.partial_fit(X, DAYS), "y holds dates"),
    (lambda m: m.partial_fit(X, y, list(DAYS - DAYS[0])), "sample_weight holds dates or durations"),
    (lambda m: m.partial_fit(FRAME.assign(a=DAYS - DAYS[0]), y), "X holds dates or durations"),
    (lambda m: m.fit(X, y, np.ones(39)), r"sample_weight must have the shape \(40,\), got \(39,\)"),
    (lambda m: m.partial_fit(X, y, spoilt(np.ones(40), -1)), "sample_weight must be 0 or more"),
    (lambda m: m.fit(X, y, np.zeros(40)), "sample_weight, .* is zero for all rows"),
    (lambda m: m.fit(X, y, ["heavy"] * 40), "convert string to float: .*heavy"),
    (lambda m: m.get_feature_names_out(["a"]), "input_features"),
]
TWO_CLASSES = [
    (set_to(class_weight="even"), "'class_weight' parameter"),
    (set_to(class_weight={}), r"class_weight=\{\} must give weights to labels of \[0, 1\]"),
    (set_to(class_weight={0: -1.0}), "class_weight=.* must give weights of 0 or more"),
    (
        lambda m: clone(m).set_params(class_weight="balanced").partial_fit(X, LABELS),
        "class_weight='balanced' is not for partial_fit",
    ),
    (lambda m: m.partial_fit(X, np.arange(40) % 3), "y holds labels"),
    (lambda m: m.partial_fit(X, np.where(LABELS > 0, "1", "0")), "y holds labels"),
    (lambda m: m.partial_fit(X, LABELS, classes=[0, 1, 2]), r"classes=\[0, 1, 2\]"),
    (lambda m: m.fit(X, y), "continuous"),
    (lambda m: m.fit(X, [None, 1] * 20), "Unknown label type"),
    (lambda m: m.partial_fit(X, LABELS, classes=["a", "b"]), "classes=.*'a', 'b'"),
    (lambda m: m.partial_fit(X, LABELS, classes=[0]), "needs 2 classes, classes has 1"),
    (lambda m: m.partial_fit(X, LABELS, classes=[0, nan]), "classes contains NaN"),
    (lambda m: m.fit(X, np.array(["a", 1] * 20, dtype=object)), "y holds labels of several kinds"),
]
PENALTIES = [
    (set_to(n_penalties=10**7), "'n_penalties' parameter"),
    (set_to(l1_range=("a", "b")), "l1_range="),
    (set_to(l1_range=(nan, 1)), "l1_range=.*nan"),
    (set_to(l1_range=(1e-42, 1.0), dtype="float32"), "l1_range=.*float32 can hold"),
    (lambda m: clone(m).set_params(k=None).fit(X, y).path_, "only if k is given", AttributeError),
]
BEFORE = [
    (lambda m: m.predict(X), "not fitted", NotFittedError),
    (lambda m: m.online_loss_, "not fitted", NotFittedError),
    (lambda m: m.partial_fit(X, np.ones(40)), r"y has 1 class.*classes=\[...\]"),
    (lambda m: m.partial_fit(X, LABELS, classes=["a", "b"]), r"labels \[0, 1\]; allowed .*'a'"),
]

# -------------------------------------------------- averages and columns

AVERAGES = [
    (lambda a: ofslib.RunningAverages(0), "n_features"),
    (lambda a: ofslib.RunningAverages(2**62), "n_features=4611686018427387904", MemoryError),
    (lambda a: ofslib.RunningAverages(2, memory_map=5), "memory_map=5: "),
    (lambda a: a.update(X, y, np.full(40, 1e308)), "sample_weight"),
    (lambda a: ofslib.OLSthRegressor().path(a, 3), "ks=3", TypeError),
    (lambda a: ofslib.RunningAverages.from_dask(3, 4), "X must be a dask array", TypeError),
    (lambda a: ofslib.RunningAverages(2, np.int64), "dtype .*int64"),
    (lambda a: a.update(X, y, np.ones(3)), "sample_weight must have the shape"),
    (lambda a: a.update(HOLED, y), "X contains NaN"),
    (lambda a: a.update(X, spoilt(y, inf)), "infinity"),
    (lambda a: a.adapt("fast"), "rate .*'fast'", TypeError),
    (lambda a: a.adapt(0.1, per="row"), "per .*'row'"),
    (lambda a: a.merge(3), "other .*int", TypeError),
    (lambda a: a.merge(ofslib.RunningAverages(2)), "n_features=6, got n_features=2"),
    (lambda a: ofslib.RunningAverages(6).mean_x, "no rows"),
    (lambda a: ofslib.RunningAverages(1).update([[1]], [1]).standardized(), "2 rows, got n=1"),
    (lambda a: a.from_moments(0, np.zeros(3), np.eye(3)), "n must be .*got 0"),
    (lambda a: a.from_moments(4, [0, nan, 0], np.eye(3)), "mean must be finite"),
    (lambda a: a.from_moments(4, np.zeros(3), np.eye(2)), r"comoments .*\(3, 3\)"),
    (lambda a: a.from_moments(4, np.zeros(3), -np.eye(3)), "comoments .*diagonal"),
    (lambda a: a.load("/no/such"), "/no/such", FileNotFoundError),
    (lambda a: a.load(__file__), "test_bad_input.py is damaged, cut short, or not written by save"),
    (lambda a: ofslib.OLSRegressor().fit_averages(np.eye(3)), "averages .*ndarray", TypeError),
    (lambda a: ofslib.OLSClassifier().fit_averages(a), "S_yy"),
    (lambda a: ofslib.OLSthRegressor().path(a, [7]), r"ks=\[7\]"),
]
FROM_AVERAGES = [
    (set_to(k="cv"), "'k' parameter .*'cv'"),
    (set_to(dtype="float16"), "'dtype' parameter .*float64"),
    (set_to(ridge=0), "'ridge' parameter"),
]
COLUMN_STREAMS = [
    (set_to(k=0), "'k' parameter"),
    (set_to(loss="hinge"), "'loss' parameter"),
    (set_to(refit="yes"), "'refit' parameter"),
    (lambda m: m.partial_fit_columns(X[:-1], names=list("ghijkl")), "39 rows.* 40"),
    (lambda m: m.partial_fit_columns(X, y + 1, names=list("ghijkl")), "y differs"),
    (lambda m: m.partial_fit_columns(HOLED, names=list("ghijkl")), "NaN"),
    (lambda m: m.partial_fit_columns(DAYS[:, None], names=["g"]), "X holds dates or durations"),
    (lambda m: m.partial_fit_columns(X * 1e-300, names=list("ghijkl")), "X: column 0, 'g'"),
    (lambda m: m.partial_fit_columns(X), "names"),
    (lambda m: m.partial_fit_columns(X, names="ghijkl"), "names='ghijkl'", TypeError),
    (lambda m: m.partial_fit_columns(X, names=["g"]), r"names=\['g'\] must be 6 strings"),
    (lambda m: m.partial_fit_columns(X, names=list("ghijkk")), "names: .*one column only"),
    (lambda m: ofslib.OnlineSubstitution().partial_fit_columns(X), "y=None"),
    (lambda m: ofslib.OnlineSubstitution(k=2**62).fit(X, y), f"k={2**62}"),
    (lambda m: ofslib.AsyncOnlineSubstitution(tau=-1).fit(X, y), "'tau' parameter"),
    (lambda m: ofslib.AsyncOnlineSubstitution(backend="spark").fit(X, y), "'backend' parameter"),
    (lambda m: ofslib.Grafting(l1=0).fit(X, y), "'l1' parameter"),
    (lambda m: ofslib.AlphaInvesting().fit(X, None), "requires y"),
]
SELECTORS = [
    (lambda m: m.partial_fit_columns(X * 1e200), "X: column 0 has the largest"),
    (lambda m: ofslib.OnlineLeverageSelector().transform(X), "not fitted", NotFittedError),
    (lambda m: ofslib.OnlineLeverageSelector(variant="x").fit(X), "'variant' parameter"),
    (lambda m: ofslib.LaplacianScoreSelector(n_neighbors=0).fit(X), "'n_neighbors' parameter"),
    (lambda m: ofslib.UniformSelector(k=0).fit(X), "'k' parameter"),
]

# -------------------------------------------------- designs, metrics, laws, bounds

DRIFT = {"p": 60, "k": 3, "a": 1.0, "b": 0.0, "period": 100, "step_rows": 10}
THIN = {"p": 50, "k": 3, "nonzeros": 5}
DESIGNS = [
    (lambda rng: Equicorrelated(20, 0), "k=0"),
    (lambda rng: Equicorrelated(19, 2), "p=19"),
    (lambda rng: Equicorrelated(20, 2, beta=(1, 2, 3)), "beta="),
    (lambda rng: Equicorrelated(20, 2, task="ranking"), "task='ranking'"),
    (lambda rng: Equicorrelated(20, 2).sample(0, rng), "n=0"),
    (lambda rng: list(Equicorrelated(20, 2).stream(5, rng, 0)), "block_rows=0"),
    (lambda rng: Equicorrelated(20, 2).sample(3, 0), "rng=0"),
    (lambda rng: Equicorrelated(20, 2).rmse(np.ones(3)), r"coef has shape \(3,\)"),
    (lambda rng: Equicorrelated(20, 2).auc(np.ones(20)), "task='regression'"),
    (lambda rng: SparseRows(**THIN | {"nonzeros": 51}), "nonzeros=51"),
    (lambda rng: Drifting(**DRIFT | {"period": 0}), "period=0"),
    (lambda rng: Drifting(**DRIFT, price=(2, 1)), r"price=\(2, 1\)"),
]


WRONG_MODEL = metrics.NotFinite
Model = SimpleNamespace
METRICS = [
    (lambda _: metrics.detection_rate([1], []), "support holds no feature"),
    (lambda _: metrics.detection_rate(np.array([True, False]), [1]), "selected must be indices"),
    (lambda _: metrics.clustering_accuracy([1, 2], [1]), "labels and clusters"),
    (lambda _: metrics.selected_features(Model()), "coef_", AttributeError),
    (
        lambda _: metrics.selected_features(Model(coef_=[nan])),
        "coef_ of ",
        WRONG_MODEL,
    ),
    (
        lambda _: metrics.check_finite(Model(intercept_=inf)),
        "intercept_ of ",
        WRONG_MODEL,
    ),
    (
        lambda _: metrics.METRICS["RMSE"](Model(predict=lambda X: X[:, 0] * nan), X, y, None),
        "predict of ",
        WRONG_MODEL,
    ),
]


def drawn(sample=wishart.sample_moments, **wrong):
    own = {"n": 30, "covariance": np.eye(4), "beta": np.ones(4), "noise": 1.0}
    return lambda rng: sample(**own | {"random_state": rng} | wrong)


LAWS = [
    (drawn(n=0), "n == 0"),
    (drawn(covariance=np.eye(3)), r"beta has shape \(4,\)"),
    (drawn(covariance=-np.eye(4)), "covariance must be positive definite"),
    (drawn(covariance=wishart.LowRank(np.zeros(4), np.ones((4, 1)))), "covariance.diagonal"),
    (drawn(noise=-1.0), "noise == -1"),
    (drawn(random_state=-1), "random_state=-1"),
    (drawn(wishart.sample_ols, n=4), "n == 4"),
    (lambda rng: wishart.sample_extreme_eigenvalues(10, 0, random_state=rng), "p == 0"),
    (lambda rng: wishart.sample_extreme_eigenvalues(10, 3, -0.5, rng), "spike == -0.5"),
]
BOUNDS = [
    (lambda _: bounds.dissertation_proposition_3(1.5, 9, 1.0, 1.0), "n=1.5", TypeError),
    (lambda _: bounds.dissertation_proposition_3(10, 9, 1.0, 1.0, variant="x"), "variant='x'"),
    (lambda _: bounds.olsth_beta_min(100, 10, 10), "k=10"),
    (
        lambda _: bounds.dissertation_lemma_2(2, 3, 5),
        r"does not apply: k\* = 3",
        bounds.DoesNotApply,
    ),
]

# -------------------------------------------------- files


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n-1 2:3\n")
    return tmp_path


def opened(*given, **options):
    return lambda folder: list(datasets.open_stream(folder / "rows.svm", *given, **options))


READERS = [
    (opened(0), "block_rows: .*got 0"),
    (lambda folder: datasets.open_stream(folder), "is a folder", IsADirectoryError),
    (lambda folder: datasets.open_stream(None), "source .*None", TypeError),
    (opened(start_row=-1), "start_row: .*got -1"),
    (opened(dtype=int), "dtype: .*int"),
    (opened(n_features=1, cache=False), "n_features"),
    (lambda f: datasets.open_stream(f / "none.svm"), "none.svm", FileNotFoundError),
    (lambda f: datasets.load("nothing"), "'nothing'.*ecml18_dexter"),
    (lambda f: datasets.load("ecml18_dexter", f, split="valid"), "'valid'"),
    (lambda f: datasets.registry(f / "none.csv"), r"none\.csv: no table", FileNotFoundError),
]

TABLE = {
    lambda: ofslib.SFSARegressor(k=2, random_state=0).fit(X, y): ROWS,
    lambda: ofslib.BARDAClassifier(k=2).partial_fit(X, LABELS): TWO_CLASSES,
    lambda: ofslib.OPGRegressor(k=2, n_penalties=5).partial_fit(X, y): PENALTIES,
    lambda: ofslib.SFSAClassifier(k=2): BEFORE,
    lambda: ofslib.RunningAverages(6).update(X, y): AVERAGES,
    lambda: ofslib.OLSthRegressor(k=2).fit(X, y): FROM_AVERAGES,
    lambda: ofslib.OnlineSubstitution(k=2, random_state=0).partial_fit_columns(
        X, y, names=list("abcdef")
    ): COLUMN_STREAMS,
    lambda: ofslib.OnlineLeverageSelector(k=2, random_state=0).fit(X): SELECTORS,
    lambda: np.random.default_rng(0): DESIGNS + LAWS,
    lambda: None: METRICS + BOUNDS,
}


def refused(subject, call, said, error=ValueError):
    before = facts(subject)
    with pytest.raises(error, match=f"(?s){said}"):
        call(subject)
    assert facts(subject) == before
    assert pickle.dumps([X, y, LABELS]) == GIVEN


@pytest.mark.parametrize(
    ("make", "row"),
    [pytest.param(make, row, id=row[1]) for make, rows in TABLE.items() for row in rows],
)
def test_bad_input_is_refused_by_its_name_and_changes_nothing(make, row):
    refused(make(), *row)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[1]) for row in READERS])
def test_bad_files_are_refused_by_their_name_and_change_no_file(folder, row):
    refused(folder, *row)
