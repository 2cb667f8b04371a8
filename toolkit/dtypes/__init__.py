"""Wide integers (u128 u256 i128 i256) for Arrow and pandas, exact sums, and frames to Arrow and Parquet and back.

Knows nothing of Move. Importing it imports neither pandas nor pyarrow; names load when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolkit.dtypes import register as _register

if TYPE_CHECKING:
    from toolkit.dtypes.arrow_types import (
        WideIntType,
        i128,
        i256,
        u128,
        u256,
        wide_from_ints,
        wide_to_ints,
        wide_type,
    )
    from toolkit.dtypes.extension import WideIntArray, WideIntDtype
    from toolkit.dtypes.frames import describe, to_arrow, to_pandas
    from toolkit.dtypes.kinds import KINDS, WideKind
    from toolkit.dtypes.parquet import read_parquet, write_parquet
    from toolkit.dtypes.sums import exact_sum, scaled
    from toolkit.dtypes.text import int_from_text, uint_from_text, wide_from_text, wide_to_text

__all__ = [
    "KINDS",
    "WideIntArray",
    "WideIntDtype",
    "WideIntType",
    "WideKind",
    "describe",
    "exact_sum",
    "i128",
    "i256",
    "int_from_text",
    "read_parquet",
    "scaled",
    "to_arrow",
    "to_pandas",
    "u128",
    "u256",
    "uint_from_text",
    "wide_from_ints",
    "wide_from_text",
    "wide_to_ints",
    "wide_to_text",
    "wide_type",
    "write_parquet",
]

_HOMES = {
    "arrow_types": ("WideIntType", "i128", "i256", "u128", "u256", "wide_from_ints", "wide_to_ints", "wide_type"),
    "extension": ("WideIntArray", "WideIntDtype"),
    "frames": ("describe", "to_arrow", "to_pandas"),
    "kinds": ("KINDS", "WideKind"),
    "parquet": ("read_parquet", "write_parquet"),
    "sums": ("exact_sum", "scaled"),
    "text": ("int_from_text", "uint_from_text", "wide_from_text", "wide_to_text"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


_register.install()
