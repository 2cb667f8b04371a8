"""The order of a run's rows: by node and call as in the study, then by version, however they were read. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

__all__ = ["KEY", "Order"]

KEY = ("node", "fingerprint", "ledger_version")
"""What tells two observations of a run apart; the fingerprint tells the source too."""


@dataclass(frozen=True, slots=True)
class Order:
    """Nodes and calls in the order of a study.

    Attributes
    ----------
    nodes : tuple of str
    fingerprints : tuple of str
    """

    nodes: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    @classmethod
    def of_run(cls, manifest: Mapping[str, Any]) -> Order:
        """Return the order of the run of a manifest."""
        nodes = tuple(str(plan["node"]) for plan in manifest.get("nodes", ()))
        return cls(nodes, tuple(map(str, manifest.get("fingerprints", ()))))

    def keys(self, table: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return node place, call place and version of each row; what the study does not name comes last."""
        return (
            _places(table["node"], self.nodes),
            _places(table["fingerprint"], self.fingerprints),
            table["ledger_version"].to_numpy(),
        )

    def sorted(self, table: pa.Table) -> pa.Table:
        """Return the rows in order; a table that is in order already comes back as it is."""
        nodes, calls, versions = self.keys(table)
        places = np.lexsort((versions, calls, nodes))
        if bool((places[1:] > places[:-1]).all()):
            return table
        return table.take(pa.array(places))


def _places(column: pa.ChunkedArray, names: Sequence[str]) -> NDArray[Any]:
    """Return the place of each text among `names`, their number where it is not among them."""
    coded = (column if pa.types.is_dictionary(column.type) else column.dictionary_encode()).unify_dictionaries()
    named = pa.array(names, pa.string())
    found = []
    for chunk in coded.chunks:
        places = pc.index_in(chunk.dictionary, named).fill_null(len(names)).to_numpy(zero_copy_only=False)
        found.append(places[chunk.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(found) if found else np.empty(0, np.int32)
