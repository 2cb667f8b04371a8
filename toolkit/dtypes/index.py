"""The pandas index of wide integers: lists of labels reach it as the integers they are.

numpy turns a list such as ``[2**64 - 1, 1]`` into floats, and pandas turns lists of labels into numpy arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_list_like

from toolkit.dtypes.kinds import shown
from toolkit.errors import InexactError

__all__ = ["WideIntIndex"]

_EXACT_FLOATS = 2.0**53


class WideIntIndex(pd.Index):
    """Index of u128, u256, i128 or i256; pandas builds it for those dtypes.

    Raises
    ------
    InexactError
        If labels are floats of 2**53 and more: they stand for several integers.
    """

    # pandas decides both of these by `type(self) is Index`; an index of another extension dtype has the same answers.

    def _get_engine_target(self) -> Any:
        """Return what labels are looked up in: Python ints."""
        return self._values.astype(object)  # type: ignore[attr-defined]

    @property
    def _can_use_libjoin(self) -> bool:
        """Whether joins may use pandas' routines for numpy data."""
        return False

    def _get_indexer_strict(self, key: Any, axis_name: str) -> Any:
        """Find a list of labels, as ``.loc`` asks for it."""
        return super()._get_indexer_strict(_exact(key), axis_name)  # type: ignore[misc]

    def _maybe_cast_listlike_indexer(self, target: Any) -> Any:
        """Take the labels that are looked for."""
        index = super()._maybe_cast_listlike_indexer(_exact(target))  # type: ignore[misc]
        if index.dtype.kind == "f":
            labels = index.to_numpy(dtype=np.float64, na_value=0)
            large = labels[np.isfinite(labels) & (np.abs(labels) >= _EXACT_FLOATS)]
            if len(large):
                raise InexactError(
                    f"labels of an index of {self.dtype} must be integers, got the float {shown(float(large[0]))}; "
                    "numpy turns lists that mix sizes of integers into floats: pass pd.array(labels, "
                    f"dtype={str(self.dtype)!r}) or an object array"
                )
        return index

    def drop(self, labels: Any, errors: Any = "raise") -> Any:
        """Return the index without some labels, as ``Index.drop`` does."""
        return super().drop(_exact(labels), errors=errors)


def _exact(labels: Any) -> Any:
    """Return labels without a dtype as Python objects, untouched by numpy; anything else as it is."""
    if hasattr(labels, "dtype") or not is_list_like(labels):
        return labels
    return pd.Index(list(labels), dtype=object)
