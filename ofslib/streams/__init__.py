"""The streams that feature selectors learn from, as scikit-learn estimators."""
