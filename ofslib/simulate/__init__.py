"""Rows of known laws: the papers' data generators, and stand-ins for large public sets.

A design knows its true coefficients and yields rows in blocks. The rows depend on the generator
only, not on the size of the blocks. A parameter of the wrong kind or out of its range, among them k
if there is no place for so many true features, is a ValueError that names it.
"""

from ofslib.simulate.papers import Changing, Drifting, Equicorrelated, SparseRows, check_kinds
from ofslib.simulate.shapes import AvazuShaped, PowerLawRows, URLShaped, WebspamShaped

__all__ = [
    "DESIGNS",
    "AvazuShaped",
    "Changing",
    "Drifting",
    "Equicorrelated",
    "PowerLawRows",
    "SparseRows",
    "URLShaped",
    "WebspamShaped",
    "check_kinds",
]

# What `simulate` of an entry of config/experiments names.
DESIGNS = {
    "equicorrelated": Equicorrelated,
    "sparse_rows": SparseRows,
    "drifting": Drifting,
    "changing": Changing,
    "power_law_rows": PowerLawRows,
    "url_shaped": URLShaped,
    "avazu_shaped": AvazuShaped,
    "webspam_shaped": WebspamShaped,
}
