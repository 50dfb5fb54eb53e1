"""The classes of scikit-learn that estimators inherit from; bases.pyi has the types they lack."""

from sklearn.base import BaseEstimator as BaseEstimator
from sklearn.base import ClassifierMixin as ClassifierMixin
from sklearn.base import ClassNamePrefixFeaturesOutMixin as ClassNamePrefixFeaturesOutMixin
from sklearn.base import RegressorMixin as RegressorMixin
from sklearn.base import TransformerMixin as TransformerMixin


class SelectorMixin(TransformerMixin):
    """What scikit-learn makes of a support, imported when it is asked for.

    With its base class would come all of its selectors, and neighbours, decompositions and metrics
    with them, which learning needs none of.
    """

    def get_support(self, indices=False):
        """The selected features: a mask, or their numbers."""
        return _theirs().get_support(self, indices)

    def transform(self, X):
        """The selected columns of X."""
        return _theirs().transform(self, X)

    def _transform(self, X):
        return _theirs()._transform(self, X)

    def inverse_transform(self, X):
        """X with columns of zeros where features were left out."""
        return _theirs().inverse_transform(self, X)

    def get_feature_names_out(self, input_features=None):
        """The names of the selected features."""
        return _theirs().get_feature_names_out(self, input_features)


def _theirs():
    from sklearn.feature_selection import SelectorMixin

    return SelectorMixin
