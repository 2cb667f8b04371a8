"""Wide integers (u128, u256, i128, i256) for Arrow and pandas, exact sums, and frames in Arrow and Parquet.

Importing the package imports neither pandas nor pyarrow. Names are imported on first use, and the dtypes and Arrow
types are registered as soon as pandas and pyarrow are imported.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from toolkit.dtypes import _registration as _registration

if TYPE_CHECKING:
    from toolkit.dtypes._arithmetic import exact_diff, exact_sum, scaled
    from toolkit.dtypes._arrow import (
        WideIntType,
        i128,
        i256,
        int_from_text,
        u128,
        u256,
        uint_from_text,
        wide_from_ints,
        wide_from_text,
        wide_to_ints,
        wide_to_text,
        wide_type,
    )
    from toolkit.dtypes._extension import WideIntArray, WideIntDtype
    from toolkit.dtypes._storage import KINDS, WideKind
    from toolkit.dtypes._tables import describe, read_parquet, to_arrow, to_pandas, write_parquet

__all__ = [
    "KINDS",
    "WideIntArray",
    "WideIntDtype",
    "WideIntType",
    "WideKind",
    "describe",
    "exact_diff",
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
    "_arithmetic": "exact_diff exact_sum scaled",
    "_arrow": (
        "WideIntType i128 i256 int_from_text u128 u256 uint_from_text wide_from_ints wide_from_text wide_to_ints "
        "wide_to_text wide_type"
    ),
    "_extension": "WideIntArray WideIntDtype",
    "_storage": "KINDS WideKind",
    "_tables": "describe read_parquet to_arrow to_pandas write_parquet",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


_registration.install()
