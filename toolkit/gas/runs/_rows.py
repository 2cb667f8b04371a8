"""The rows of a run: what identifies a row, the order of rows, and which rows are read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.frames._calls import NO_ANSWER
from toolkit.gas._observations import Source, is_no_answer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray


# What identifies an observation of a run; the fingerprint depends on the source too.
KEY = ("node", "fingerprint", "ledger_version")


@dataclass(frozen=True, slots=True)
class Order:
    """The order of nodes and calls in a study, which sorts rows by node, call, then version.

    Attributes
    ----------
    nodes : tuple of str
    fingerprints : tuple of str
    """

    nodes: tuple[str, ...] = ()
    fingerprints: tuple[str, ...] = ()

    def keys(self, table: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the positions of node and call and the version of each row; unknown nodes and calls are last."""
        nodes, calls = _places(table["node"], self.nodes), _places(table["fingerprint"], self.fingerprints)
        return nodes, calls, table["ledger_version"].to_numpy()

    def sorted(self, table: pa.Table) -> pa.Table:
        """Return the sorted rows; a table that is already sorted is returned unchanged."""
        nodes, calls, versions = self.keys(table)
        places = np.lexsort((versions, calls, nodes))
        return table if bool((places[1:] > places[:-1]).all()) else table.take(pa.array(places))


def _places(column: pa.ChunkedArray, names: Sequence[str]) -> NDArray[Any]:
    """Return the position of each text in `names`; ``len(names)`` for a text that is not in it."""
    coded = (column if pa.types.is_dictionary(column.type) else column.dictionary_encode()).unify_dictionaries()
    named = pa.array(names, pa.string())
    found = []
    for chunk in coded.chunks:
        places = pc.index_in(chunk.dictionary, named).fill_null(len(names)).to_numpy(zero_copy_only=False)
        found.append(places[chunk.indices.to_numpy(zero_copy_only=False)])
    return np.concatenate(found) if found else np.empty(0, np.int32)


Outcome = tuple[Any, ...]

# The columns that `read_again` needs.
AGAIN = ("error_code", "source")


def outcome_of(values: Iterable[Any]) -> Outcome | None:
    """Return the values by which two observations are compared; None if the call got no response."""
    outcome = tuple(values)
    return None if is_no_answer(outcome[-1]) else outcome


def read_again(table: pa.Table) -> pa.ChunkedArray:
    """Return which rows the next attempt must read again: calls without a response, and missing committed transactions.

    Parameters
    ----------
    table : pyarrow.Table
        Table with the columns `AGAIN`.
    """
    errors = table["error_code"]
    return pc.or_(unanswered(errors), pc.and_(pc.equal(table["source"], Source.COMMITTED), errors.is_valid()))


def unanswered(error_codes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which calls got no response, from their error codes."""
    return pc.is_in(error_codes, pa.array(sorted(NO_ANSWER)))
