# What type checkers see of __init__.py, which imports nothing before it is asked for.
from ofslib import averages as averages
from ofslib import bounds as bounds
from ofslib import datasets as datasets
from ofslib import metrics as metrics
from ofslib import simulate as simulate
from ofslib import testing as testing
from ofslib import wishart as wishart
from ofslib._citation import citation as citation
from ofslib.algorithms.ada_fobos import AdaFobosClassifier as AdaFobosClassifier
from ofslib.algorithms.alpha_investing import AlphaInvesting as AlphaInvesting
from ofslib.algorithms.arda import ARDAClassifier as ARDAClassifier
from ofslib.algorithms.async_substitution import AsyncOnlineSubstitution as AsyncOnlineSubstitution
from ofslib.algorithms.bamd import BAMDClassifier as BAMDClassifier
from ofslib.algorithms.barda import BARDAClassifier as BARDAClassifier
from ofslib.algorithms.fofs import FOFSClassifier as FOFSClassifier
from ofslib.algorithms.grafting import Grafting as Grafting
from ofslib.algorithms.laplacian_score import LaplacianScoreSelector as LaplacianScoreSelector
from ofslib.algorithms.ofsa import OFSAClassifier as OFSAClassifier
from ofslib.algorithms.ofsa import OFSARegressor as OFSARegressor
from ofslib.algorithms.ols import OLSClassifier as OLSClassifier
from ofslib.algorithms.ols import OLSRegressor as OLSRegressor
from ofslib.algorithms.olsth import OLSthClassifier as OLSthClassifier
from ofslib.algorithms.olsth import OLSthRegressor as OLSthRegressor
from ofslib.algorithms.online_coordinate_descent import (
    OnlineCoordinateDescent as OnlineCoordinateDescent,
)
from ofslib.algorithms.online_leverage import OnlineLeverageSelector as OnlineLeverageSelector
from ofslib.algorithms.online_proximal import OnlineProximal as OnlineProximal
from ofslib.algorithms.online_substitution import OnlineSubstitution as OnlineSubstitution
from ofslib.algorithms.opg import OPGClassifier as OPGClassifier
from ofslib.algorithms.opg import OPGRegressor as OPGRegressor
from ofslib.algorithms.penalised import OnlineElasticNetClassifier as OnlineElasticNetClassifier
from ofslib.algorithms.penalised import OnlineElasticNetRegressor as OnlineElasticNetRegressor
from ofslib.algorithms.penalised import OnlineLassoClassifier as OnlineLassoClassifier
from ofslib.algorithms.penalised import OnlineLassoRegressor as OnlineLassoRegressor
from ofslib.algorithms.penalised import OnlineMCPClassifier as OnlineMCPClassifier
from ofslib.algorithms.penalised import OnlineMCPRegressor as OnlineMCPRegressor
from ofslib.algorithms.penalised import OnlineSCADClassifier as OnlineSCADClassifier
from ofslib.algorithms.penalised import OnlineSCADRegressor as OnlineSCADRegressor
from ofslib.algorithms.projected_gradient import (
    ProjectedGradientSelector as ProjectedGradientSelector,
)
from ofslib.algorithms.radar import RADARRegressor as RADARRegressor
from ofslib.algorithms.rda import RDAClassifier as RDAClassifier
from ofslib.algorithms.rda import RDARegressor as RDARegressor
from ofslib.algorithms.ridge_leverage import RidgeLeverageSelector as RidgeLeverageSelector
from ofslib.algorithms.sadmm import SADMMRegressor as SADMMRegressor
from ofslib.algorithms.sfsa import AnytimeSFSAClassifier as AnytimeSFSAClassifier
from ofslib.algorithms.sfsa import AnytimeSFSARegressor as AnytimeSFSARegressor
from ofslib.algorithms.sfsa import SFSAClassifier as SFSAClassifier
from ofslib.algorithms.sfsa import SFSARegressor as SFSARegressor
from ofslib.algorithms.sgdt import SGDTClassifier as SGDTClassifier
from ofslib.algorithms.sgdt import SGDTRegressor as SGDTRegressor
from ofslib.algorithms.siht import SIHTClassifier as SIHTClassifier
from ofslib.algorithms.siht import SIHTRegressor as SIHTRegressor
from ofslib.algorithms.sofs import SOFSClassifier as SOFSClassifier
from ofslib.algorithms.sparse_embedding import SparseEmbedding as SparseEmbedding
from ofslib.algorithms.truncated_gradient import (
    TruncatedGradientClassifier as TruncatedGradientClassifier,
)
from ofslib.algorithms.truncated_gradient import (
    TruncatedGradientRegressor as TruncatedGradientRegressor,
)
from ofslib.algorithms.uniform import UniformSelector as UniformSelector
from ofslib.averages import RunningAverages as RunningAverages
from ofslib.beyond.knockoffs import KnockoffsClassifier as KnockoffsClassifier
from ofslib.beyond.knockoffs import KnockoffsRegressor as KnockoffsRegressor
from ofslib.beyond.knockoffs import select_by_knockoffs as select_by_knockoffs
from ofslib.beyond.parts import fit_dask as fit_dask
from ofslib.beyond.parts import fit_parts as fit_parts
from ofslib.beyond.renewable_fsa import RenewableFSAClassifier as RenewableFSAClassifier
from ofslib.streams.checkpoint import fit_stream as fit_stream

__version__: str
__all__: list[str]
ESTIMATORS: dict[str, tuple[str, ...]]
MODULES: tuple[str, ...]

def home_of(name: str) -> str | None: ...
