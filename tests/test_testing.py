"""`ofslib.testing`: our contract on any class. That our classes keep it: test_contract.py."""

import pytest
from sklearn.linear_model import SGDRegressor

from ofslib import OLSthRegressor, OnlineSubstitution, SOFSClassifier
from ofslib.testing import check_method, method_checks

ONE_OF_EACH = [
    (SOFSClassifier, "rows", {"fit equals fit_averages"}),
    (OLSthRegressor, "averages", set()),
    (OnlineSubstitution, "columns", {"fit equals fit_averages", "weight 0 is not shown"}),
]


@pytest.mark.parametrize(("cls", "stream", "skipped"), ONE_OF_EACH)
def test_a_class_of_each_stream_keeps_the_contract(cls, stream, skipped):
    report = check_method(cls, stream)
    assert set(report["check"][report["status"] != "passed"]) == skipped, report["reason"].tolist()


class Forgets(OLSthRegressor):
    """Each block begins anew."""

    def partial_fit(self, X, y, sample_weight=None):
        return self.fit(X, y, sample_weight)


class Greedy(OLSthRegressor):
    """Keeps one feature more than it is told."""

    def _coefs(self, standard, ks):
        return super()._coefs(standard, [k + 1 for k in ks])


class Careless(SOFSClassifier):
    """Learns what comes before it looks at it."""

    def partial_fit(self, X, y, classes=None, sample_weight=None):
        super().partial_fit(X[:2], y[:2], classes)
        return super().partial_fit(X[2:], y[2:], classes)


@pytest.mark.parametrize(
    ("cls", "stream", "check"),
    [
        (Forgets, "averages", "pieces equal one block"),
        (Greedy, "averages", "at most k features"),
        (Careless, "rows", "bad input is refused and changes nothing"),
    ],
)
def test_a_broken_class_is_caught(cls, stream, check):
    with pytest.raises(AssertionError):
        dict(method_checks(cls, stream))[check]()


def test_a_class_of_scikit_learn_gets_a_report():
    report = check_method(SGDRegressor, shuffle=False).set_index("check")["status"]
    assert report["pieces equal one block"] == "passed" == report["saved, it goes on to the bit"]
    assert report["at most k features"] == "skipped"
    with pytest.raises(ValueError, match="stream='row' is none of rows, averages, columns"):
        next(method_checks(SGDRegressor, "row"))
