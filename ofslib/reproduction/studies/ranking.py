"""What a ranking of features is worth on rare 0/1 features, by the number of passes."""

import numpy as np

from ofslib.metrics import detection_rate
from ofslib.reproduction.methods import build, points, stacked
from ofslib.reproduction.studies import tidy
from ofslib.simulate import PowerLawRows


def by_passes(setting, seeds, data):
    """AUC on new rows and detection rate of each method, at each point of the sweep.

    The rows are those of `PowerLawRows`; all methods see the same ones in the same order. Results
    have columns method, the swept parameters, metric and value. Method "true coefficients" has the
    largest AUC that is possible.
    """
    own = {name: value for name, value in setting["data"].items() if name not in ("simulate", "n")}
    law, (draw, order) = PowerLawRows(**own), seeds.spawn(2)
    X, y = stacked([*law.stream(setting["data"]["n"], np.random.default_rng(draw))])
    known = {"k": law.k, "random_state": int(order.generate_state(1)[0])}
    best = law.auc(law.coef)
    for point in points(setting["sweep"]):
        yield from tidy({"AUC": best}, method="true coefficients", **point)
        for label, spec in setting["methods"].items():
            model = build({**spec, **point}, **known).fit(X, y)
            scores = {"AUC": law.auc(model.coef_)}
            scores["DR"] = detection_rate(model.support_, law.support)
            yield from tidy(scores, method=label, **point)
