"""Wide integers (u128, u256, i128, i256) for Arrow and pandas, exact sums, and frames in Arrow and Parquet.

Importing the package imports neither pandas nor pyarrow. The dtypes and Arrow types are registered as soon as pandas is
imported, or a name of the package is used.
"""

from __future__ import annotations

from lazy_loader import attach_stub as _attach_stub

from toolkit.dtypes._registration import register as _register

__getattr__, __dir__, __all__ = _attach_stub(__name__, __file__)
_register()
