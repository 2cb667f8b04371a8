"""Observations of one function's committed transactions, and the strata of them that are compared apart."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd

from toolkit.errors import InputError
from toolkit.gas._observations import Cause, Change, Part
from toolkit.gas.committed._levels import MIN_SIDE, chi_square_tail

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

__all__ = [
    "MixShift",
    "Observations",
    "Stratum",
    "Writes",
    "chance_of_counts",
    "changed_writes",
    "mix_shifts",
    "slots_created",
]

MIN_STRATUM_BY_BYTES = 20
"""Fewest observations of a stratum that is split off by its new bytes."""
MAX_STRATA_BY_BYTES = 8
BYTES_PER_LEVEL = 32
MIN_SIDE_OF_MIX = 20
MAX_STRATA_OF_MIX = 12
MAX_MIX_CHANCE = 1e-3
WRITES_WINDOWS = (60, 120, 240, 480)
"""Observations on each side that are tried, so that a mix that drifts does not hide a change of writes."""
WRITES_GAIN = 30.0
MAX_WRITES_CHANCE = 1e-5
MISFIT = 1e-3
SLOTS_MORE = (1, -1, 2, -2, 3, -3)
MAX_MOVABLE = 6
SAME_WORK = 0.3
MAX_ABSENT = 7.0
"""Observations expected between a change and the stratum that ends or begins there, none of which is found."""


def slots_created(storage_fee_octas: NDArray[Any], octas_per_slot: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of state slots that storage fees paid for.

    Parameters
    ----------
    storage_fee_octas, octas_per_slot : ndarray of int
        Storage fee of each transaction, and ``txn.storage_fee_per_state_slot`` in force at it.

    Returns
    -------
    ndarray of int64
        The whole slots in each fee; too high if bytes pay for a slot: from 1,000 new bytes at the usual prices.
    """
    return np.asarray(storage_fee_octas, np.int64) // np.maximum(np.asarray(octas_per_slot, np.int64), 1)


_Key = tuple[tuple[str, object], ...]
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
    key: _Key
    rows: NDArray[np.int64]

    def value(self, column: str) -> Any:
        """Return the value of a key column, None if it is not one."""
        return dict(self.key).get(column)


KEY_COLUMNS = (
    "success",
    "abort_code",
    "slots_created",
    "slots_deleted",
    "authenticator",
    "orderless",
    "type_arguments",
)


class Observations:
    """The committed transactions of one function, in order of their ledger version.

    Parameters
    ----------
    frame : DataFrame
        One row per transaction. Required columns: ``ledger_version``, ``execution_gas_units``, ``io_gas_units`` and
        ``storage_fee_octas``. Used if present: ``storage_fee_refund_octas``, ``gas_unit_price``, ``payload_bytes``,
        ``new_bytes`` and the columns of the key: ``success``, ``abort_code``, ``slots_created``, ``slots_deleted``,
        ``authenticator``, ``orderless``, ``type_arguments``. A null is a value of its own in the key.

    Raises
    ------
    InputError
        If a required column is missing, or a required value is null.
    """

    def __init__(self, frame: pd.DataFrame) -> None:
        required = ["ledger_version", *(part.column for part in Part if part is not Part.REFUND)]
        if missing := [name for name in required if name not in frame.columns]:
            raise InputError(f"observations of committed transactions must have the column {missing[0]}")
        for name in required:
            if frame[name].isna().any():
                row = int(np.flatnonzero(frame[name].isna())[0])
                raise InputError(f"observations: {name} must not be null, got null in row {row}")
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
        price = self._number("gas_unit_price") if "gas_unit_price" in frame.columns and len(frame) else np.array([100])
        self.octas_per_unit = max(1.0, float(np.median(price)))

    def __len__(self) -> int:
        return len(self.versions)

    def of(self, values: NDArray[_Number], rows: NDArray[np.int64]) -> NDArray[_Number]:
        """Return the values of observations, given by their positions, ascending; those of all are not copied."""
        return values if len(rows) == len(self) else values[rows]

    def clock(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the versions of observations in thousands, from the first version on."""
        return np.asarray((self.of(self.versions, rows) - self.versions[0]) / 1000)

    def members(self, strata: Sequence[Stratum]) -> NDArray[np.int64]:
        """Return the number of the stratum of each observation."""
        member = np.zeros(len(self), np.int64)
        for number, stratum in enumerate(strata):
            member[stratum.rows] = number
        return member

    def _number(self, column: str) -> NDArray[np.float64]:
        return np.asarray(self.frame[column].astype("Float64").fillna(0), np.float64)

    def strata(self, boundaries: Sequence[int] = ()) -> list[Stratum]:
        """Return the strata, the largest first.

        Parameters
        ----------
        boundaries : sequence of int
            Ledger versions of the changes. A stratum is divided by its new bytes only if the pieces are found on
            both sides of each change; otherwise the change itself could be what changed the bytes.

        Returns
        -------
        list of Stratum
        """
        columns = [name for name in KEY_COLUMNS if name in self.frame.columns]
        codes = np.zeros(len(self), np.int64)
        for name in columns:
            found, values = pd.factorize(self.frame[name], use_na_sentinel=False)
            if len(values) > 1:
                codes = np.unique(codes * len(values) + found, return_inverse=True)[1]
        order = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        groups = np.split(order, starts[1:]) if len(order) else []
        keyed = []
        for rows in groups:
            first = self.frame.loc[rows[0], columns]
            key = tuple((name, None if pd.isna(first[name]) else first[name]) for name in columns)
            keyed += [(key + extra, piece) for extra, piece in self._by_bytes(rows, boundaries)]
        differing = [name for name in [*columns, "new_bytes"] if len({dict(key).get(name) for key, _ in keyed}) > 1]
        strata = [Stratum(_name(key, differing), key, rows) for key, rows in keyed]
        return sorted(strata, key=lambda stratum: (-len(stratum.rows), stratum.name))

    def _by_bytes(self, rows: NDArray[np.int64], boundaries: Sequence[int]) -> list[tuple[_Key, NDArray[np.int64]]]:
        """Divide a stratum by its new bytes, if that leaves few pieces that are large and last over every change."""
        whole: list[tuple[_Key, NDArray[np.int64]]] = [((), rows)]
        if "new_bytes" not in self.frame.columns:
            return whole
        levels = self.of(self._number("new_bytes"), rows) // BYTES_PER_LEVEL
        if np.ptp(levels) == 0:
            return whole
        values, codes, counts = np.unique(levels, return_inverse=True, return_counts=True)
        if not 1 < len(values) <= MAX_STRATA_BY_BYTES or counts.min() < MIN_STRATUM_BY_BYTES:
            return whole
        between = np.searchsorted(np.unique(np.asarray(boundaries, np.int64)), self.versions[rows], side="right")
        table = np.zeros((len(values), int(between.max()) + 1), np.int64)
        np.add.at(table, (codes, between), 1)
        if (table[:, table.sum(axis=0) >= MIN_STRATUM_BY_BYTES] == 0).any():
            return whole
        return [((("new_bytes", int(value * BYTES_PER_LEVEL)),), rows[codes == n]) for n, value in enumerate(values)]


def _name(key: _Key, differing: list[str]) -> str:
    words = [f"{name}={value}" for name, value in key if name in differing and value is not None]
    return ", ".join(words) or "all"


@dataclass(frozen=True, slots=True)
class MixShift:
    """A place at which the shares of the strata change; no step, though every pooled mean moves.

    Attributes
    ----------
    version_before, version_after : int
        The observations next to the place.
    shares : tuple of (str, float, float)
        Stratum, its share before and after, up to the next shift of the mix. All but the largest 12 are "others".
    chance : float
        Chance of a difference as large if the mix is constant, corrected for the places tried.
    """

    version_before: int
    version_after: int
    shares: tuple[tuple[str, float, float], ...]
    chance: float


def mix_shifts(observations: Observations, strata: Sequence[Stratum], *, most: int = 4) -> list[MixShift]:
    """Return the places at which the shares of the strata change.

    Parameters
    ----------
    observations : Observations
    strata : sequence of Stratum
    most : int, default 4

    Returns
    -------
    list of MixShift
        At most `most`, by version. A mix that drifts appears as one or more places.
    """
    count = min(len(strata), MAX_STRATA_OF_MIX + 1)
    versions, member = observations.versions, np.minimum(observations.members(strata), count - 1)
    names = [stratum.name for stratum in strata[:count]]
    if len(strata) > count:
        names[-1] = "others"
    found: list[tuple[int, float]] = []
    pieces = [(0, len(versions))]
    while pieces and count > 1 and len(found) < most:
        first, last = pieces.pop(0)
        place, chance = _best_mix_split(member[first:last])
        if chance < MAX_MIX_CHANCE:
            found.append((first + place, chance))
            pieces += [(first, first + place), (first + place, last)]
    cuts = sorted(found)
    edges = [0, *(place for place, _ in cuts), len(versions)]
    shares = [np.bincount(member[a:b], minlength=count) / max(1, b - a) for a, b in itertools.pairwise(edges)]
    return [
        MixShift(
            int(versions[place - 1]),
            int(versions[place]),
            tuple(zip(names, shares[i].tolist(), shares[i + 1].tolist(), strict=True)),
            chance,
        )
        for i, (place, chance) in enumerate(cuts)
    ]


def _best_mix_split(member: NDArray[np.int64]) -> tuple[int, float]:
    """Return the split of a sequence of strata with the largest likelihood ratio, and its corrected chance."""
    size = len(member)
    if size < 2 * MIN_SIDE_OF_MIX:
        return 0, 1.0
    step = max(1, size // 2000)
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
    chance = chi_square_tail(float(gain[best]), len(kinds) - 1) * len(places)
    return int(places[best]), min(1.0, chance)


@dataclass(frozen=True, slots=True)
class Writes:
    """Strata that create or delete another number of slots from a place on.

    `pairs` are numbers of strata, before and after; a pair is `pure` if its second stratum holds nothing else after the
    place. `touched` are the names of all strata that end, begin or are mixed; `part` is what pays for the slots. The
    observations from `first` to `last` may be compared.
    """

    changes: tuple[Change, ...]
    first: int
    place: int
    last: int
    pairs: tuple[tuple[int, int], ...]
    pure: frozenset[tuple[int, int]]
    touched: frozenset[str]
    part: Part


_SLOTS = {"slots_created": Part.STORAGE, "slots_deleted": Part.REFUND}


@dataclass(frozen=True, slots=True)
class _Turn:
    """Strata of one window that turn into others, and how many observations are on the wrong side."""

    misfit: float
    pairs: tuple[tuple[int, int], ...]
    misplaced: int
    column: str


def changed_writes(
    observations: Observations,
    strata: Sequence[Stratum],
    timeline: Sequence[Change],
    suspected: Sequence[Change] = (),
) -> list[Writes]:
    """Return where strata turn into others that create or delete more or fewer slots.

    Parameters
    ----------
    observations : Observations
    strata : sequence of Stratum
    timeline, suspected : sequence of Change
        Of the timeline, changes of code and configuration are looked at; of the others those that are more than 8
        observations away from all of the timeline.

    Returns
    -------
    list of Writes
        By version. The counts of all strata on both sides must fit, what ends must not come back, what begins must
        not be there before, and both must execute about as much.
    """
    if len(strata) < 2:  # noqa: PLR2004  # one cannot turn into another
        return []
    member, count = observations.members(strata), len(strata)
    places = np.searchsorted(observations.versions, [change.ledger_version for change in timeline]).tolist()
    placed = list(zip(places, timeline, strict=True))
    for change in suspected:
        place = int(np.searchsorted(observations.versions, change.ledger_version))
        if all(abs(place - other) > MIN_SIDE for other in places):
            placed.append((place, change))
    able = [(p, change) for p, change in placed if change.kind is not Cause.SCHEDULE]
    able.sort(key=lambda pair: pair[0])

    def around(place: int, others: list[int]) -> tuple[int, int]:
        first = max([0, *(p for p in others if p <= place - MIN_SIDE)])
        return first, min([len(member), *(p for p in others if p >= place + MIN_SIDE)])

    found: list[tuple[int, Writes]] = []
    for place, change in able:
        first, last = around(place, places)
        if min(place - first, last - place) < MIN_SIDE:
            continue
        start, end = around(place, [p for p, _ in able])
        early = np.bincount(member[start : max(start, place - MIN_SIDE)], minlength=count)
        late = np.bincount(member[min(end, place + MIN_SIDE) : end], minlength=count)
        for window in WRITES_WINDOWS:
            a, b = max(first, place - window), min(last, place + window)
            turn = _best_turn(observations, strata, member, (a, place, b), (early, late))
            if turn is None:
                continue
            left = np.bincount(member[a:place], minlength=count)
            targets = [after for _, after in turn.pairs]
            sources = {before for before, _ in turn.pairs}
            writes = Writes(
                changes=(change,),
                first=first,
                place=place,
                last=last,
                pairs=turn.pairs,
                pure=frozenset(
                    (before, after)
                    for before, after in turn.pairs
                    if targets.count(after) == 1 and (after in sources or left[after] == 0)
                ),
                touched=frozenset(strata[n].name for pair in turn.pairs for n in pair),
                part=_SLOTS[turn.column],
            )
            found.append((turn.misplaced, writes))
            break
    return _unite(found)


def _unite(found: list[tuple[int, Writes]]) -> list[Writes]:
    """Unite what neighbouring changes show alike: those with the fewest observations on the wrong side remain."""
    groups: list[list[tuple[int, Writes]]] = []
    for misplaced, writes in found:
        if groups and writes.place - groups[-1][-1][1].place < MIN_SIDE:
            groups[-1].append((misplaced, writes))
        else:
            groups.append([(misplaced, writes)])
    result = []
    for group in groups:
        fewest = min(misplaced for misplaced, _ in group)
        best = [writes for misplaced, writes in group if misplaced == fewest]
        changes = tuple(change for writes in best for change in writes.changes)
        touched: frozenset[str] = frozenset().union(*(writes.touched for _, writes in group))
        result.append(replace(best[0], changes=changes, touched=touched))
    return result


def _best_turn(
    observations: Observations,
    strata: Sequence[Stratum],
    member: NDArray[np.int64],
    window: tuple[int, int, int],
    beyond: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> _Turn | None:
    """Return which strata turn into which at the middle of a window, if that explains the counts on both sides.

    `beyond` has the counts of each stratum long before and long after, up to the next change of code.
    """
    a, place, b = window
    count = len(strata)
    left, right = (np.bincount(side, minlength=count) for side in (member[a:place], member[place:b]))
    unmoved, freedom = _ratio_of_counts(left, right)
    if chi_square_tail(unmoved, freedom) > MAX_WRITES_CHANCE:
        return None
    best: _Turn | None = None
    for column, chosen, pairs, more in _possible_turns(strata, left):
        moved = left.copy()
        moved[chosen] = 0
        for before, after in pairs:
            moved[after] += left[before]
        targets = [after for _, after in pairs]
        ended = [n for n in chosen if n not in targets]
        begun = [n for n in targets if n not in chosen and left[n] <= right[n] // 10]
        misplaced = int(right[ended].sum() + left[begun].sum())
        ratio, left_freedom = _ratio_of_counts(moved, right)
        misfit = ratio + 4 * len(chosen)
        if (best is not None and misfit >= best.misfit) or unmoved - ratio <= WRITES_GAIN:
            continue
        if not ended or misplaced > MIN_SIDE or beyond[1][ended].any() or beyond[0][begun].any():
            continue
        if _absent(member[a:place][::-1], ended) > MAX_ABSENT or _absent(member[place:b], begun) > MAX_ABSENT:
            continue
        fits = chi_square_tail(ratio, left_freedom) > MISFIT
        # The mix may jump at the same change: then all that ends and begins must do so exactly there.
        sure = len(begun) == len(ended) and not misplaced and min(*left[ended], *right[begun]) >= 2 * MIN_SIDE
        alike = SAME_WORK if abs(more) == 1 and fits else SAME_WORK / 3
        if (fits or sure) and _same_work(observations.parts[Part.EXECUTION], member, window, pairs, alike):
            best = _Turn(misfit, pairs, misplaced, column)
    return best


def _absent(member: NDArray[np.int64], strata: list[int]) -> float:
    """Return how many observations of the strata are missing at the start of a side, by their share of the rest."""
    there = np.flatnonzero(np.isin(member, strata))
    return float(there[0]) * len(there) / (len(member) - there[0]) if len(there) else 0.0


def _possible_turns(
    strata: Sequence[Stratum], left: NDArray[np.int64]
) -> Iterator[tuple[str, list[int], tuple[tuple[int, int], ...], int]]:
    """Yield the column of slots, the strata that turn, what each turns into, and by how many slots."""
    for column in _SLOTS:
        slots = [stratum.value(column) for stratum in strata]
        if any(value is None for value in slots):
            continue
        keys = [tuple(item for item in s.key if item[0] not in {column, "new_bytes"}) for s in strata]
        numbered = {(key, int(value)): n for n, (key, value) in enumerate(zip(keys, slots, strict=True))}
        for more in SLOTS_MORE:
            to = {n: numbered.get((keys[n], int(slots[n]) + more)) for n in range(len(strata)) if left[n]}
            movable = [n for n, target in to.items() if target is not None][:MAX_MOVABLE]
            for size in range(1, len(movable) + 1):
                for chosen in itertools.combinations(movable, size):
                    pairs = tuple((n, target) for n in chosen if (target := to[n]) is not None)
                    yield column, list(chosen), pairs, more


def _same_work(
    execution: NDArray[np.float64],
    member: NDArray[np.int64],
    window: tuple[int, int, int],
    pairs: tuple[tuple[int, int], ...],
    alike: float,
) -> bool:
    """Return whether each stratum executes about as much as the one that it is said to turn into."""
    a, place, b = window
    merged = len({after for _, after in pairs}) < len(pairs)
    for before, after in () if merged else pairs:
        one = execution[a:place][member[a:place] == before]
        two = execution[place:b][member[place:b] == after]
        if not len(one) or not len(two) or abs(two.mean() - one.mean()) > 1 + alike * one.mean():
            return False
    return True


def _ratio_of_counts(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[float, int]:
    """Return the likelihood ratio of two rows of counts, and its degrees of freedom."""
    total = left + right
    gain = 0.0
    for side in (left, right):
        expected = total * side.sum() / max(1, total.sum())
        seen = side > 0
        gain += float(2 * (side[seen] * np.log(side[seen] / expected[seen])).sum())
    return gain, int((total > 0).sum()) - 1


def chance_of_counts(left: NDArray[np.int64], right: NDArray[np.int64]) -> float:
    """Return the chance that two rows of counts of strata come from the same mix."""
    return chi_square_tail(*_ratio_of_counts(left, right))
