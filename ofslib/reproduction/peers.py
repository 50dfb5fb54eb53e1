"""What users would try first, in the form of our estimators: for comparison in the tables."""

import gc
import math
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.model_selection import cross_val_score
from sklearn.svm import l1_min_c


class _TopK:
    """A linear model, of which only the k largest coefficients are used; k=None: all."""

    def _linear(self) -> tuple[np.ndarray, float]:
        """All coefficients and the intercept of the model."""
        raise NotImplementedError

    @property
    def intercept_(self) -> float:
        """The constant."""
        return self._linear()[1]

    @property
    def coef_(self) -> np.ndarray:
        """The k largest coefficients; the others are zero."""
        coef = self._linear()[0].copy()
        if self.k is not None:
            coef[np.argsort(-np.abs(coef), kind="stable")[self.k :]] = 0.0
        return coef

    def _margins(self, X) -> np.ndarray:
        return X @ self.coef_ + self.intercept_


class _Regressor(_TopK):
    predict = _TopK._margins


class _Classifier(_TopK):
    _estimator_type = "classifier"
    decision_function = _TopK._margins


class _SGD(_TopK):
    # random_state stands by itself: what is hidden in **parameters is not filled in.
    def __init__(self, k: int | None = 10, random_state: int | None = None, **parameters: Any):
        self.k = k
        self.inner = self.cls(random_state=random_state, **parameters)

    def partial_fit(self, X, y, **known):
        """As that of the model."""
        self.inner.partial_fit(X, y, **known)
        return self

    def _linear(self):
        return np.ravel(self.inner.coef_), float(np.ravel(self.inner.intercept_)[0])


class TopKSGDRegressor(_SGD, _Regressor):
    """scikit-learn's SGDRegressor, of which only the k largest coefficients are used."""

    cls = SGDRegressor


class TopKSGDClassifier(_SGD, _Classifier):
    """scikit-learn's SGDClassifier, of which only the k largest coefficients are used."""

    cls = SGDClassifier

    def fit(self, X, y):
        """Learn from all rows once, in random order."""
        return self.partial_fit(X, y, classes=np.unique(y))


class TrueModel(_Classifier):
    """What the labels of a stand-in are drawn by: no model predicts better, and none learns it."""

    k = None

    def __init__(self, design: Any):
        self.design = design

    def partial_fit(self, X, y, **known):
        """Nothing is learned."""
        return self

    def _linear(self):
        return self.design.coef, self.design.intercept

    def predict(self, X):
        """-1 or +1, whichever is likelier."""
        return np.where(self.decision_function(X) > 0, 1.0, -1.0)


# Since scikit-learn 1.8 a ratio says what the name of the penalty said.
_L1 = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}


class LiblinearClassifier(_Classifier):
    """liblinear's logistic regression with an l1 penalty, in as many passes as it takes.

    C is that of the largest AUC in five folds, among those that leave at most k features (None:
    any number), on a grid that begins where the first feature enters.
    """

    def __init__(self, k: int | None = None):
        self.k = k

    def fit(self, X, y):
        """Try all C on the rows, and keep the model of the best."""
        best = -np.inf
        for C in l1_min_c(X, y, loss="log") * np.geomspace(1.5, 1500.0, 7):
            model = LogisticRegression(solver="liblinear", C=C, random_state=0, **_L1)
            whole = clone(model).fit(X, y)
            if self.k is not None and best > -np.inf and np.count_nonzero(whole.coef_) > self.k:
                break
            score = cross_val_score(model, X, y, scoring="roc_auc", cv=5).mean()
            if score > best:
                best, self.inner = score, whole
        return self

    def _linear(self):
        return np.ravel(self.inner.coef_), float(np.ravel(self.inner.intercept_)[0])


def _entries(X, i: int) -> list[tuple[int, float]]:
    """The columns and values of a row."""
    if sp.issparse(X):
        part = slice(X.indptr[i], X.indptr[i + 1])
        return list(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True))
    return list(zip(range(X.shape[1]), X[i].tolist(), strict=True))


class _VowpalWabbit(_TopK):
    # Whoever runs this looks first whether it is there.
    requires: ClassVar[str] = "vowpalwabbit"
    loss: ClassVar[str]

    def __init__(self, k: int = 10, options: str = "--coin"):
        self.k = k
        self.options = options
        self.workspace = None

    def partial_fit(self, X, y, classes=None):
        """Learn from the rows in their order; labels are -1 and +1."""
        return self.learn(self.examples(X, y))

    def examples(self, X, y) -> Iterator[Any]:
        """The rows in the form that it learns from."""
        if self.workspace is None:
            self._start(X.shape[1])
        X = X if sp.issparse(X) else np.asarray(X)
        for i, label in enumerate(np.asarray(y).tolist()):
            example = self.workspace.example()
            example.push_features(" ", _entries(X, i))
            example.set_label_string(repr(label))
            example.setup_example()
            yield example

    def learn(self, examples: Iterable[Any]):
        """Learn from each once; then it is used up."""
        gc.disable()  # to look for cycles among so many objects takes half of the time
        try:
            for example in examples:
                self.workspace.learn(example)
                self.workspace.finish_example(example)
        finally:
            gc.enable()
        return self

    def _start(self, p: int) -> None:
        from vowpalwabbit import Workspace

        bits = max(18, math.ceil(math.log2(p + 1)))
        fixed = f"--quiet --noconstant -b {bits} --loss_function {self.loss}"
        self.workspace, self.p = Workspace(f"{fixed} {self.options}"), p

    def _linear(self):
        return np.array([self.workspace.get_weight(j) for j in range(self.p)]), 0.0


class VowpalWabbitRegressor(_VowpalWabbit, _Regressor):
    """Vowpal Wabbit with squared error, of which only the k largest coefficients are used."""

    loss = "squared"


class VowpalWabbitClassifier(_VowpalWabbit, _Classifier):
    """Vowpal Wabbit with logistic loss, of which only the k largest coefficients are used."""

    loss = "logistic"


class _River(_TopK):
    requires: ClassVar[str] = "river"

    def __init__(
        self,
        k: int = 10,
        model: str = "PARegressor",
        learning_rate: float | None = None,
        adwin: bool = False,
        **parameters: Any,
    ):
        self.k, self.model, self.learning_rate, self.adwin = k, model, learning_rate, adwin
        self.parameters = parameters
        self.inner = None

    def partial_fit(self, X, y, classes=None):
        """Learn from the rows in their order; labels are -1 and +1.

        With `adwin` the model begins anew where ADWIN (Bifet and Gavalda 2007) sees a change of its
        absolute errors, or of its wrong labels.
        """
        if self.inner is None:
            self._start()
        self.p = X.shape[1]
        if self.model == "BayesianLinearRegression":
            # Row by row it inverts a matrix each time; the result is the same.
            self.inner.learn_many(pd.DataFrame(X), pd.Series(y))
            return self
        return self.learn(self.examples(X, y, classes))

    def examples(self, X, y, classes=None) -> Iterator[tuple[dict, Any]]:
        """The rows in the form that it learns from."""
        X = X if sp.issparse(X) else np.asarray(X)
        targets = np.asarray(y) if classes is None else np.asarray(y) > 0
        return ((dict(_entries(X, i)), target) for i, target in enumerate(targets.tolist()))

    def learn(self, examples: Iterable[tuple[dict, Any]]):
        """Learn from each once."""
        if self.inner is None:
            self._start()
        for x, target in examples:
            if self.adwin:
                self.detector.update(abs(self.inner.predict_one(x) - target))
                if self.detector.drift_detected:
                    self._start()
            self.inner.learn_one(x, target)
        return self

    def _start(self) -> None:
        from river.drift import ADWIN

        self.inner = _river_model(self.model, self.learning_rate, self.parameters)
        self.detector = ADWIN()

    def _linear(self):
        if self.model == "BayesianLinearRegression":
            weights = {j: self.inner.predict_one({j: 1.0}) for j in range(self.p)}
        else:
            weights = self.inner.w if self.model == "ALMAClassifier" else self.inner.weights
        coef = np.array([weights.get(j, 0.0) for j in range(self.p)])
        return coef, float(getattr(self.inner, "intercept", 0.0))


def _river_model(name: str, learning_rate: float | None, parameters: dict[str, Any]):
    from river import linear_model, optim

    own = {} if learning_rate is None else {"optimizer": optim.SGD(learning_rate)}
    return getattr(linear_model, name)(**own, **parameters)


class RiverRegressor(_River, _Regressor):
    """A linear model of river, of which only the k largest coefficients are used."""


class RiverClassifier(_River, _Classifier):
    """A linear model of river for two classes; only its k largest coefficients are used."""
