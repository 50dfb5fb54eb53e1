"""What the five papers do not have, and no base class needs.

Knockoffs, a renewable OFSA for classification, rows in parts (dask), the laws of SGDT, SFSA and
OFSA, and bounds by pairs for any covariance. `ofslib` and `ofslib.bounds` find their public names.
"""
