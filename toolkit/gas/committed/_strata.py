"""Observations of one function's committed transactions, the strata that are compared separately, and their mix."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from toolkit.errors import InputError
from toolkit.gas._observations import Part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

# Fewest observations on a side of a place at which the shares are looked for: fewer show no share to 20 %.
MIN_SIDE_OF_MIX = 20
# Strata whose shares are compared; the smaller ones are one more together: each has too few observations for itself.
MAX_STRATA_OF_MIX = 12
# Shifts beside those at changes. A mix that drifts would be cut into ever smaller pieces, and four show that it does.
MAX_SHIFTS_OF_MIX = 4
# Places tried in one search; of a longer series every so many, since a mix is not placed to a single transaction.
MAX_PLACES_OF_MIX = 2_000
# Chance of a shift of the mix at a place that was searched for, corrected for the places tried, as of a false step.
MAX_MIX_CHANCE = 1e-3
# The same at the changes of the timeline, all together: they were not searched for, so weaker evidence is enough,
# and the reader of a change wants to know whether it came with other use.
MAX_MIX_CHANCE_AT_CHANGE = 0.02


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


Key = tuple[tuple[str, object], ...]
_Number = TypeVar("_Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Stratum:
    """Transactions that do the same kind of work.

    Attributes
    ----------
    name : str
        The values of the key columns that differ between strata.
    key : tuple of (str, object)
        All columns of the key with their values.
    rows : ndarray of int64
        Positions in the observations, ascending.
    """

    name: str
    key: Key
    rows: NDArray[np.int64]

    @property
    def is_other(self) -> bool:
        """Whether the stratum consists of outliers, which are not compared."""
        return bool(self.value("way") == OTHER)

    @property
    def kind(self) -> Key:
        """The key without the slots and the path."""
        return tuple(item for item in self.key if item[0] not in {*SLOTS, "way"})

    def value(self, column: str) -> Any:
        """Return the value of a column of the key; None if the key does not have the column."""
        return dict(self.key).get(column)


SLOTS = ("slots_created", "slots_deleted")
# Columns of the key in the order in which names have them; ways are not columns, but are found by their level of gas.
KEY_COLUMNS = ("success", "abort_code", *SLOTS, "authenticator", "orderless", "type_arguments", "way")
OTHER = "other"


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
        # Parts that no transaction pays are left out; that of execution is compared to recognise equal work.
        self.parts: dict[Part, NDArray[np.float64]] = {
            part: values for part, values in parts.items() if part is Part.EXECUTION or values.any()
        }
        self.payload_bytes = self._number("payload_bytes") if "payload_bytes" in frame.columns else None
        self.octas_per_unit = octas_per_unit(frame)

    def __len__(self) -> int:
        return len(self.versions)

    def of(self, values: NDArray[_Number], rows: NDArray[np.int64]) -> NDArray[_Number]:
        """Return the values at ascending positions, without a copy if these are all positions."""
        return values if len(rows) == len(self) else values[rows]

    def clock(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the versions of observations in thousands, counted from the first version."""
        return np.asarray((self.of(self.versions, rows) - self.versions[0]) / 1000)

    def members(self, strata: Sequence[Stratum]) -> NDArray[np.int64]:
        """Return the number of the stratum of each observation."""
        member = np.zeros(len(self), np.int64)
        for number, stratum in enumerate(strata):
            member[stratum.rows] = number
        return member

    def _number(self, column: str) -> NDArray[np.float64]:
        return np.asarray(self.frame[column].astype("Float64").fillna(0), np.float64)

    def strata(self, columns: Sequence[str] = KEY_COLUMNS) -> list[Stratum]:
        """Return the strata by the columns of the key, or by some of them, the largest first."""
        columns = [name for name in columns if name in self.frame.columns]
        groups_of = self.frame.groupby(columns, dropna=False, observed=True, sort=False) if columns else None
        codes = np.zeros(len(self), np.int64) if groups_of is None else groups_of.ngroup().to_numpy()
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        groups = np.split(order, starts[1:]) if len(order) else []
        keyed = []
        for rows in groups:
            first = self.frame.loc[rows[0], columns]
            keyed.append((tuple((name, None if pd.isna(first[name]) else first[name]) for name in columns), rows))
        return named(keyed)


def named(keyed: Sequence[tuple[Key, NDArray[np.int64]]]) -> list[Stratum]:
    """Return strata, the largest first, named by the values of the key that differ between them."""
    differing = [name for name in KEY_COLUMNS if len({dict(key).get(name) for key, _ in keyed}) > 1]
    strata = []
    for key, rows in keyed:
        values = {name: " -> ".join(map(str, one)) if isinstance(one, tuple) else one for name, one in key}
        words = [f"{name}={values[name]}" for name in differing if values.get(name) is not None]
        strata.append(Stratum(", ".join(words) or "all", key, rows))
    return sorted(strata, key=lambda stratum: (-len(stratum.rows), stratum.name))


@dataclass(frozen=True, slots=True)
class MixShift:
    """A place at which the shares of the strata change: not a step, although every pooled mean moves.

    Attributes
    ----------
    version_before, version_after : int
        The observations next to the place.
    shares : tuple of (str, float, float)
        Stratum, its share before and after, up to the next shift of the mix. All but the largest 12 are "others".
    chance : float
        Probability of so large a difference if the mix is constant, corrected for the places tried.
    """

    version_before: int
    version_after: int
    shares: tuple[tuple[str, float, float], ...]
    chance: float


def mix_shifts(observations: Observations, strata: Sequence[Stratum], changes: Sequence[int] = ()) -> list[MixShift]:
    """Return the places at which the shares of the strata change.

    Parameters
    ----------
    observations : Observations
    strata : sequence of Stratum
    changes : sequence of int
        Ledger versions of the timeline's changes, which are tried first.

    Returns
    -------
    list of MixShift
        Sorted by version; at most 4 besides those at changes. A drifting mix appears as one or more places.
    """
    known_ways = [stratum for stratum in strata if not stratum.is_other]
    count = min(len(known_ways), MAX_STRATA_OF_MIX + 1)
    counted = np.ones(len(observations), bool)
    for stratum in strata:
        counted[stratum.rows] = not stratum.is_other
    versions = observations.versions[counted]
    member = np.minimum(observations.members(known_ways), count - 1)[counted]
    names = [stratum.name for stratum in known_ways[:count]]
    if len(known_ways) > count:
        names[-1] = "others"
    found: list[tuple[int, float]] = []
    pieces = [(0, len(versions))]
    while pieces and count > 1 and len(found) < MAX_SHIFTS_OF_MIX:
        first, last = pieces.pop(0)
        place, chance = _best_mix_split(member[first:last])
        if chance < MAX_MIX_CHANCE:
            found.append((first + place, chance))
            pieces += [(first, first + place), (first + place, last)]
    # A shift elsewhere must not be taken for one at the next change, so the counts are those between all places.
    known = {int(place) for place in np.searchsorted(versions, changes)} - {0, len(versions)}
    # A mix cannot be placed to a single transaction: what is found next to a change is at the change.
    near = [(min(known, key=lambda at: abs(at - place), default=place), place, chance) for place, chance in found]
    placed = {at if abs(at - place) < MIN_SIDE_OF_MIX else place: chance for at, place, chance in near}
    known -= placed.keys()
    edges = sorted({0, *known, *placed, len(versions)})
    for first, place, last in zip(edges, edges[1:], edges[2:], strict=False):
        if place in known:
            sides = (np.bincount(side, minlength=count) for side in (member[first:place], member[place:last]))
            if (chance := len(known) * chance_of_counts(*sides)) < MAX_MIX_CHANCE_AT_CHANGE:
                placed[place] = chance
    cuts = sorted(placed.items())
    edges = [0, *(place for place, _ in cuts), len(versions)]
    shares = [np.bincount(member[a:b], minlength=count) / max(1, b - a) for a, b in pairwise(edges)]
    moved = (tuple(zip(names, one.tolist(), two.tolist(), strict=True)) for one, two in pairwise(shares))
    ends = [(*versions[place - 1 : place + 1].tolist(), chance) for place, chance in cuts]
    return [MixShift(before, after, each, chance) for (before, after, chance), each in zip(ends, moved, strict=True)]


def _best_mix_split(member: NDArray[np.int64]) -> tuple[int, float]:
    """Return the split of a sequence of strata with the largest likelihood ratio, and its corrected chance."""
    from scipy import special  # as in `student_tail`

    size = len(member)
    if size < 2 * MIN_SIDE_OF_MIX:
        return 0, 1.0
    step = max(1, size // MAX_PLACES_OF_MIX)
    places = np.arange(MIN_SIDE_OF_MIX, size - MIN_SIDE_OF_MIX + 1, step)
    gain = np.zeros(len(places))
    kinds = np.unique(member)
    for number in kinds:
        running = np.concatenate([[0], np.cumsum(member == number)])
        total = running[-1]
        left = running[places]
        for part, base in ((left, places), (total - left, size - places)):
            gain += 2 * part * np.log(np.maximum(part, 1) / (base * total / size))
    best = int(np.argmax(gain))
    chance = float(special.chdtrc(len(kinds) - 1, gain[best])) * len(places) if len(kinds) > 1 else 1.0
    return int(places[best]), min(1.0, chance)


def chance_of_counts(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return the probability that two rows of stratum counts come from the same mix, by a G-test."""
    from scipy import special  # as in `student_tail`

    table = np.array([left, right])
    table = table[:, table.sum(axis=0) > 0]
    if min(table.shape) < 2 or not table.sum(axis=1).all():  # noqa: PLR2004  # one stratum, or one side
        return 1.0
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    gain = 2 * special.xlogy(table, table / expected).sum()
    return float(special.chdtrc(table.shape[1] - 1, gain))
