"""Observations of one function's committed transactions, and the strata that are compared separately."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Part
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.committed._levels import ABSENT, MIN_SURE_CALLS, POSSIBLE, WINDOW, Calls, chance_of_shares, split
from toolkit.wire._aborts import error_category

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._findings import Change

Key = tuple[tuple[str, object], ...]
# Slots that a change to the code may add to what a call writes; with more, or with others deleted, too, it is another
# kind of call that became frequent there.
MAX_SLOTS_MORE = 3


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


def _slots_text(count: object, what: str) -> str:
    if isinstance(count, tuple):
        return " or ".join(_slots_text(one, what) for one in count)
    number = int(str(count))
    return f"{number or 'no'} {what} slot{'' if number == 1 else 's'}"


def _type_arguments_text(value: object) -> str:
    text = str(value)
    return f"of {text if len(text) <= 60 else text[:57] + '...'}" if text else "without types"  # noqa: PLR2004  # a longer one does not fit a line


def _abort_text(value: Any) -> str:
    """Return an abort code in words, as nodes show it if it has a category."""
    code = int(value)
    category = error_category(code)
    return f"abort code {code}" if category is None else f"abort code {code:#x} ({category})"


# The columns of the key in the order in which names have them, and their values in words.
WORDS: Mapping[str, Callable[[object], str]] = {
    "success": lambda value: "succeeding" if value else "failing",
    "abort_code": _abort_text,
    "slots_created": lambda value: _slots_text(value, "new"),
    "pays_storage": lambda value: f"{'with' if value else 'no'} storage fee",
    "slots_deleted": lambda value: _slots_text(value, "deleted"),
    "authenticator": lambda value: str(value).removesuffix("_signature").replace("_", " "),
    "orderless": lambda value: "orderless" if value else "by sequence number",
    "type_arguments": _type_arguments_text,
}


@dataclass(frozen=True, slots=True)
class Stratum:
    """Transactions that do the same kind of work, as far as the columns of the key say.

    Attributes
    ----------
    key : tuple of (str, object)
        All columns of the key with their values. If a change to the code alters the slots that a call writes,
        ``slots_created`` and ``slots_deleted`` are the values before and after it, as tuples.
    rows : ndarray of int64
        Positions in the observations, ascending.
    name : str
        In words, what distinguishes it from the others, such as ``succeeding, 1 new slot``; ``all transactions`` if
        there is one stratum of at least 8 transactions.
    """

    key: Key
    rows: NDArray[np.int64]
    name: str = ALL_TRANSACTIONS

    def value(self, column: str) -> Any:
        """Return the value of a column of the key; None if the key does not have the column."""
        return dict(self.key).get(column)

    def named(self, strata: Sequence[Stratum]) -> Stratum:
        """Return the stratum with its name among all strata."""
        # A rare kind does not make the names of the others longer.
        others = strata if len(self.rows) < MIN_SURE_CALLS else [s for s in strata if len(s.rows) >= MIN_SURE_CALLS]
        differing = {name for name, _ in self.key if len({other.value(name) for other in others}) > 1}
        said = [WORDS[name](value) for name, value in self.key if name in differing and value is not None]
        return replace(self, name=", ".join(said) or ALL_TRANSACTIONS)


class Observations:
    """The committed transactions of one function, in order of their ledger version.

    Parameters
    ----------
    frame : DataFrame
        One row per transaction. Required columns: ``ledger_version``, ``execution_gas_units``, ``io_gas_units`` and
        ``storage_fee_octas``. Used if present: ``gas_used``, ``storage_fee_refund_octas``, ``gas_unit_price``,
        ``payload_bytes`` and the columns of the key: ``success``, ``abort_code``, ``slots_created``, ``slots_deleted``,
        ``authenticator``, ``orderless``, ``type_arguments``. In the key, null is a separate value.

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
        parts = {part: self._number(part.column) for part in Part}
        self.parts = {part: values for part, values in parts.items() if values.any()}
        self.paid = self._number("gas_used")
        self._sizes = self._number("payload_bytes")
        self._octas_per_unit = octas_per_unit(frame)

    def __len__(self) -> int:
        return len(self.versions)

    def _number(self, column: str) -> NDArray[np.float64]:
        if column not in self.frame:
            return np.zeros(len(self))
        return np.asarray(self.frame[column].astype("Float64").fillna(0), np.float64)

    def calls(self, rows: NDArray[np.int64], part: Part) -> Calls:
        """Return one part of the gas of some transactions."""
        unit, width = (self._octas_per_unit, 0.0) if part.in_octas else (1.0, 1.0)
        return Calls(self.parts[part][rows], rows.astype(np.float64), self._sizes[rows], self.paid[rows], unit, width)

    def strata(self, timeline: Sequence[Change] = ()) -> list[Stratum]:
        """Return the strata, the largest first; those that a change makes of each other are one stratum."""
        columns = [name for name in WORDS if name in self.frame.columns]
        codes: NDArray[np.int64] = np.zeros(len(self), np.int64)
        if columns:
            groups = self.frame.groupby(columns, dropna=False, observed=True, sort=False)
            codes = np.asarray(groups.ngroup(), np.int64)
        first = np.unique(codes, return_index=True)[1]
        keys = [
            tuple((name, None if pd.isna(one) else one) for name, one in zip(columns, row, strict=True))
            for row in self.frame.loc[first, columns].itertuples(index=False)
        ]
        links = _linked(codes, keys, self.versions, timeline)
        strata = [Stratum(_joined([keys[one] for one in link]), np.flatnonzero(np.isin(codes, link))) for link in links]
        named = [stratum.named(strata) for stratum in strata]
        return sorted(named, key=lambda stratum: (-len(stratum.rows), stratum.name))


def _linked(
    codes: NDArray[np.int64], keys: Sequence[Key], versions: NDArray[np.int64], timeline: Sequence[Change]
) -> Iterator[list[int]]:
    """Yield the strata that are one, as lists of their numbers.

    If a call writes a slot more than before, it would be in another stratum from there on. So where strata of a kind
    end and others with a few slots more or less begin, the slots do not distinguish what the kind does.
    """
    code_changes = [change.ledger_version for change in timeline if change.kind is not Cause.SCHEDULE]
    written = ("slots_created", "slots_deleted")
    slots = np.array([[int(str(dict(key).get(name) or 0)) for name in written] for key in keys])
    kinds: dict[Key, list[int]] = {}
    for code, key in enumerate(keys):
        kinds.setdefault(tuple(item for item in key if item[0] not in written), []).append(code)
    for mine in kinds.values():
        mine.sort(key=lambda code: tuple(slots[code]))
        rows = np.flatnonzero(np.isin(codes, mine))
        order = np.argsort(mine)
        member = order[np.searchsorted(np.sort(mine), codes[rows])]
        known = sorted({0, *np.searchsorted(versions[rows], code_changes).tolist(), len(rows)})
        searched = [first + at for first, last in pairwise(known) if (at := split(member[first:last])) is not None]
        joined = [{place} for place in range(len(mine))]
        edges = sorted({*known, *searched})
        for first, at, last in zip(edges, edges[1:], edges[2:], strict=False):
            sides = member[max(first, at - WINDOW) : at], member[at : min(last, at + WINDOW)]
            for one, two in _turned(np.array([np.bincount(side, minlength=len(mine)) for side in sides])):
                more = np.abs(slots[mine[one]] - slots[mine[two]])
                if np.count_nonzero(more) == 1 and more.max() <= MAX_SLOTS_MORE:
                    met = [link for link in joined if link & {one, two}]
                    joined = [link for link in joined if link not in met] + [set().union(*met)]
        yield from (sorted(mine[place] for place in link) for link in joined)


def _turned(counts: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield pairs of strata of a kind of which one ends at a place and the other begins, in the order of their slots.

    With a slot more for all, the first becomes the second, and that the third.
    """
    totals = counts.sum(axis=1)
    moved = np.array([chance_of_shares(one, other, totals) <= POSSIBLE for one, other in counts.T])
    absent = counts <= ABSENT * totals[:, None]
    # A kind that few call may only have no call there; if that leaves different numbers, it has ended or begun.
    for gone in (absent & moved, absent):
        one, two = (np.flatnonzero(~side & (counts.sum(axis=0) > 0)) for side in gone)
        if len(one) == len(two):
            break
    if len(one) == len(two) and moved[np.setxor1d(one, two)].any():
        yield from zip(one.tolist(), two.tolist(), strict=True)


def _joined(keys: Sequence[Key]) -> Key:
    """Return the key of strata that are one: the slots that differ as tuples, in the order of the changes."""
    values = {name: tuple(dict.fromkeys(dict(key)[name] for key in keys)) for name, _ in keys[0]}
    return tuple((name, several[0] if len(several) == 1 else several) for name, several in values.items())
