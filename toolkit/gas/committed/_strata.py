"""Observations of one function's committed transactions, and the strata that are compared separately."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Part
from toolkit.gas.committed._levels import ABSENT, POSSIBLE, WINDOW, Calls, chance_of_shares, split_of_kinds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._findings import Change

Key = tuple[tuple[str, object], ...]
SLOTS = ("slots_created", "slots_deleted")
# Slots that a change to the code may add to what a call writes; with more, or with others deleted, too, it is another
# kind of call that became frequent there.
MAX_SLOTS_MORE = 3
# Columns of the key in the order in which names have them.
KEY_COLUMNS = ("success", "abort_code", *SLOTS, "authenticator", "orderless", "type_arguments")


def slots_created(storage_fee_octas: NDArray[Any], octas_per_slot: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of state slots that storage fees paid for.

    Parameters
    ----------
    storage_fee_octas, octas_per_slot : ndarray of int
        Storage fee of each transaction, and ``txn.storage_fee_per_state_slot`` in force at it.

    Returns
    -------
    ndarray of int64
        The whole number of slots that each fee pays for. It is too high if the fee for bytes reaches the price of a
        slot, as it does from 1,000 new bytes at the usual prices.
    """
    return np.asarray(storage_fee_octas, np.int64) // np.maximum(np.asarray(octas_per_slot, np.int64), 1)


def octas_per_unit(frame: pd.DataFrame) -> float:
    """Return the median gas unit price of transactions, at least 1; the usual 100 if it is not known."""
    known = "gas_unit_price" in frame.columns and len(frame)
    return max(1.0, float(np.median(frame["gas_unit_price"]))) if known else 100.0


@dataclass(frozen=True, slots=True)
class Stratum:
    """Transactions that do the same kind of work, as far as the columns of the key say.

    Attributes
    ----------
    name : str
        The values of the key columns that differ between strata.
    key : tuple of (str, object)
        All columns of the key with their values. If a change to the code alters the slots that a call writes,
        ``slots_created`` and ``slots_deleted`` are the values before and after it, as tuples.
    rows : ndarray of int64
        Positions in the observations, ascending.
    """

    name: str
    key: Key
    rows: NDArray[np.int64]

    def value(self, column: str) -> Any:
        """Return the value of a column of the key; None if the key does not have the column."""
        return dict(self.key).get(column)


class Observations:
    """The committed transactions of one function, in order of their ledger version.

    Parameters
    ----------
    frame : DataFrame
        One row per transaction. Required columns: ``ledger_version``, ``execution_gas_units``, ``io_gas_units`` and
        ``storage_fee_octas``. Used if present: ``storage_fee_refund_octas``, ``gas_unit_price``, ``payload_bytes`` and
        the columns of the key: ``success``, ``abort_code``, ``slots_created``, ``slots_deleted``, ``authenticator``,
        ``orderless``, ``type_arguments``. In the key, null is a separate value.

    Raises
    ------
    InputError
        If a required column is missing.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        required = ["ledger_version", *(part.column for part in Part if part is not Part.REFUND)]
        if missing := [name for name in required if name not in frame.columns]:
            raise InputError(f"observations of committed transactions must have the column {missing[0]}")
        versions = frame["ledger_version"].to_numpy(np.int64)
        order = np.argsort(versions, kind="stable")
        if (order[1:] < order[:-1]).any():
            frame = frame.iloc[order]
        self.frame = frame.reset_index(drop=True)
        self.versions: NDArray[np.int64] = versions[order]
        parts = {part: self._number(part.column) for part in Part if part.column in frame.columns}
        self.parts: dict[Part, NDArray[np.float64]] = {part: values for part, values in parts.items() if values.any()}
        self.octas_per_unit = octas_per_unit(frame)
        self._sizes = self._number("payload_bytes") if "payload_bytes" in frame.columns else None

    def __len__(self) -> int:
        return len(self.versions)

    def _number(self, column: str) -> NDArray[np.float64]:
        return np.asarray(self.frame[column].astype("Float64").fillna(0), np.float64)

    def calls(self, rows: NDArray[np.int64], part: Part) -> Calls:
        """Return one part of the gas of some transactions."""
        sizes = None if self._sizes is None else self._sizes[rows]
        unit = self.octas_per_unit if part.in_octas else 1.0
        places = rows.astype(np.float64)
        sizes = None if sizes is None or np.ptp(sizes) == 0 else sizes
        return Calls(self.parts[part][rows], places, sizes, unit, 0.0 if part.in_octas else 1.0)

    def strata(self, timeline: Sequence[Change] = ()) -> list[Stratum]:
        """Return the strata, the largest first; those that a change makes of each other are one stratum."""
        columns = [name for name in KEY_COLUMNS if name in self.frame.columns]
        groups_of = self.frame.groupby(columns, dropna=False, observed=True, sort=False) if columns else None
        codes: NDArray[np.int64] = np.zeros(len(self), np.int64)
        if groups_of is not None:
            codes = np.asarray(groups_of.ngroup(), np.int64)
        first = np.unique(codes, return_index=True)[1]
        values = self.frame.loc[first, columns]
        keys = [
            tuple((name, None if pd.isna(one) else one) for name, one in zip(columns, row, strict=True))
            for row in values.itertuples(index=False)
        ]
        links = _linked(codes, keys, self.versions, timeline)
        joined = [(_joined([keys[one] for one in link]), np.flatnonzero(np.isin(codes, link))) for link in links]
        return _named(joined)


def _linked(
    codes: NDArray[np.int64], keys: Sequence[Key], versions: NDArray[np.int64], timeline: Sequence[Change]
) -> list[list[int]]:
    """Return the strata that are one, as lists of their numbers.

    If a call writes a slot more than before, it would be in another stratum from there on. So where strata of a kind
    end and others with a few slots more or less begin, the slots do not distinguish what the kind does.
    """
    code_changes = [change.ledger_version for change in timeline if change.kind is not Cause.SCHEDULE]
    kinds: dict[Key, list[int]] = {}
    for code, key in enumerate(keys):
        kinds.setdefault(tuple(item for item in key if item[0] not in SLOTS), []).append(code)
    slots = {code: [int(str(dict(key).get(name) or 0)) for name in SLOTS] for code, key in enumerate(keys)}
    links: list[list[int]] = []
    for mine in kinds.values():
        mine.sort(key=slots.__getitem__)
        rows = np.flatnonzero(np.isin(codes, mine))
        member = codes[rows]
        kind = np.unique(member, return_inverse=True)[1]
        known = sorted({0, *np.searchsorted(versions[rows], code_changes).tolist(), len(rows)})
        found = {first + at for first, last in pairwise(known) if (at := split_of_kinds(kind[first:last]))}
        joined = [{code} for code in mine]
        # Up to the next place, since the mix may jump there, and up to the next change, since it may do so beside one.
        for edges, at in product((sorted({*known, *found}), known), sorted({*known[1:-1], *found})):
            first, last = max(one for one in edges if one < at), min(one for one in edges if one > at)
            sides = member[max(first, at - WINDOW) : at], member[at : min(last, at + WINDOW)]
            for pair in _turned(*sides, mine, slots):
                met = [link for link in joined if link & pair]
                joined = [link for link in joined if not link & pair] + [set().union(*met)]
        links += [sorted(link) for link in joined]
    return links


def _turned(
    before: NDArray[np.int64], after: NDArray[np.int64], codes: list[int], slots: Mapping[int, list[int]]
) -> Iterator[set[int]]:
    """Yield pairs of strata of a kind: one ends at a place, and the other, with a few slots more or less, begins.

    They are paired in the order of their slots: with a slot more for all, the first becomes the second, and that the
    third.
    """
    counts = np.array([[np.count_nonzero(side == code) for code in codes] for side in (before, after)])
    totals = counts.sum(axis=1)
    moved = np.array([chance_of_shares(one, other, totals) <= POSSIBLE for one, other in counts.T])
    absent = counts <= ABSENT * totals[:, None]
    # A kind that few call may only have no call there; if that leaves different numbers, it has ended or begun.
    for gone in (absent & moved, absent):
        one, two = (np.flatnonzero(~side & (counts.sum(axis=0) > 0)) for side in gone)
        if len(one) == len(two):
            break
    if len(one) != len(two) or not moved[np.setxor1d(one, two)].any():
        return
    for first, second in zip(one, two, strict=True):
        more = np.abs(np.subtract(slots[codes[first]], slots[codes[second]]))
        if np.count_nonzero(more) == 1 and more.max() <= MAX_SLOTS_MORE:
            yield {codes[first], codes[second]}


def _joined(keys: Sequence[Key]) -> Key:
    """Return the key of strata that are one: the slots that differ as tuples, in the order of the changes."""
    values = {name: tuple(dict.fromkeys(dict(key)[name] for key in keys)) for name, _ in keys[0]}
    return tuple((name, several[0] if len(several) == 1 else several) for name, several in values.items())


def _named(keyed: Sequence[tuple[Key, NDArray[np.int64]]]) -> list[Stratum]:
    """Return strata, the largest first, named by the values of the key that differ between them."""
    differing = [name for name in KEY_COLUMNS if len({dict(key).get(name) for key, _ in keyed}) > 1]
    strata = []
    for key, rows in keyed:
        values = {name: " -> ".join(map(str, one)) if isinstance(one, tuple) else one for name, one in key}
        words = [f"{name}={values[name]}" for name in differing if values.get(name) is not None]
        strata.append(Stratum(", ".join(words) or "all", key, rows))
    return sorted(strata, key=lambda stratum: (-len(stratum.rows), stratum.name))
