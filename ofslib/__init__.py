"""Online feature selection: the algorithms and the bounds of five papers.

Estimators are found by their names, ``from ofslib import SFSAClassifier``, and imported when they
are first asked for. `ofslib.datasets` reads files of any size, `ofslib.fit_stream` learns from one
and goes on where it was killed, `ofslib.fit_parts` and `ofslib.fit_dask` learn one model on many
workers, `ofslib.RunningAverages` sums rows up, `ofslib.wishart` and `ofslib.simulate` draw what the
papers draw, `ofslib.metrics` measures what they measure, and `ofslib.bounds` computes what they
promise. `ofslib.citation` returns the BibTeX of a method, and `ofslib.testing` checks a method of
your own. `ofslib.cli` is the command ``ofslib``.
"""

from importlib import import_module
from textwrap import fill

__version__ = "0.2.0"

# File of algorithms/ or beyond/ -> its estimators. Type checkers read __init__.pyi instead.
ESTIMATORS = {
    "ada_fobos": ("AdaFobosClassifier",),
    "alpha_investing": ("AlphaInvesting",),
    "arda": ("ARDAClassifier",),
    "async_substitution": ("AsyncOnlineSubstitution",),
    "bamd": ("BAMDClassifier",),
    "barda": ("BARDAClassifier",),
    "fofs": ("FOFSClassifier",),
    "grafting": ("Grafting",),
    "knockoffs": ("KnockoffsClassifier", "KnockoffsRegressor"),
    "laplacian_score": ("LaplacianScoreSelector",),
    "ofsa": ("OFSAClassifier", "OFSARegressor"),
    "ols": ("OLSClassifier", "OLSRegressor"),
    "olsth": ("OLSthClassifier", "OLSthRegressor"),
    "online_coordinate_descent": ("OnlineCoordinateDescent",),
    "online_leverage": ("OnlineLeverageSelector",),
    "online_proximal": ("OnlineProximal",),
    "online_substitution": ("OnlineSubstitution",),
    "opg": ("OPGClassifier", "OPGRegressor"),
    "penalised": (
        "OnlineElasticNetClassifier",
        "OnlineElasticNetRegressor",
        "OnlineLassoClassifier",
        "OnlineLassoRegressor",
        "OnlineMCPClassifier",
        "OnlineMCPRegressor",
        "OnlineSCADClassifier",
        "OnlineSCADRegressor",
    ),
    "projected_gradient": ("ProjectedGradientSelector",),
    "radar": ("RADARRegressor",),
    "rda": ("RDAClassifier", "RDARegressor"),
    "renewable_fsa": ("RenewableFSAClassifier",),
    "ridge_leverage": ("RidgeLeverageSelector",),
    "sadmm": ("SADMMRegressor",),
    "sfsa": ("AnytimeSFSAClassifier", "AnytimeSFSARegressor", "SFSAClassifier", "SFSARegressor"),
    "sgdt": ("SGDTClassifier", "SGDTRegressor"),
    "siht": ("SIHTClassifier", "SIHTRegressor"),
    "sofs": ("SOFSClassifier",),
    "sparse_embedding": ("SparseEmbedding",),
    "truncated_gradient": ("TruncatedGradientClassifier", "TruncatedGradientRegressor"),
    "uniform": ("UniformSelector",),
}
MODULES = ("averages", "bounds", "datasets", "metrics", "simulate", "testing", "wishart")

_BEYOND = {"knockoffs", "renewable_fsa"}
_HOMES = {
    name: f"ofslib.{'beyond' if file in _BEYOND else 'algorithms'}.{file}"
    for file, names in ESTIMATORS.items()
    for name in names
}
_HOMES["RunningAverages"] = "ofslib.averages"
_HOMES["citation"] = "ofslib._citation"
_HOMES |= dict.fromkeys(("fit_dask", "fit_parts"), "ofslib.beyond.parts")
_HOMES["fit_stream"] = "ofslib.streams.checkpoint"
_HOMES["select_by_knockoffs"] = "ofslib.beyond.knockoffs"

__all__ = [*sorted(_HOMES), *MODULES]
__doc__ += "\nThe estimators:\n" + fill(
    ", ".join(sorted(name for names in ESTIMATORS.values() for name in names)), 96
)


def home_of(name: str) -> str | None:
    """Name of the module that a name of ofslib stands in; None if there is no such name."""
    return _HOMES.get(name)


def __getattr__(name: str):
    if name in MODULES:
        return import_module(f"ofslib.{name}")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    # Python itself adds the name that was probably meant, by __dir__.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__})
