"""Steps of the committed transactions of a run: its rows as observations, the analysis as rows, notes and levels."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.frames._schema import STRATUM
from toolkit.gas._cause_sentences import unread_text
from toolkit.gas._observations import Cause, Part, Source
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.committed._analysis import Analysis, Doubt, Growth, MixShift, SeriesStep, analyse
from toolkit.gas.committed._levels import GAP, MIN_SURE_CALLS, WINDOW, level_numbers
from toolkit.gas.committed._strata import Observations, Stratum, octas_per_unit, slots_created

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._findings import Change, Timeline

SLOT_PRICE = "txn.storage_fee_per_state_slot"
# Columns of the observations by which the transactions of a call are chosen, and those with their gas.
_CHOSEN_BY = ("node", "fingerprint", "source", "error_code")
_OF_GAS = ("ledger_version", "gas_used", *(part.column for part in Part), "gas_unit_price", "success")
# Columns of the observations that the analysis reads, and the text columns among them, which are read as codes.
COLUMNS_READ = (*_CHOSEN_BY, *_OF_GAS, *(column.name for column in STRATUM))
COLUMNS_CODED = (*_CHOSEN_BY, "authenticator", "type_arguments")
_MAX_WORDS = 60  # of type arguments in the name of a kind: a longer name does not fit a line


@dataclass(frozen=True, slots=True)
class StoragePrices:
    """The price of a state slot in octas, by the version from which it applies.

    Attributes
    ----------
    since : tuple of int
        Ledger versions, ascending. The first price also applies before the first version.
    slot : tuple of int
        One price for each version of `since`.
    """

    since: tuple[int, ...]
    slot: tuple[int, ...]

    @classmethod
    def of(cls, parameters: Mapping[int, Mapping[str, int]]) -> StoragePrices | None:
        """Return the slot prices from gas schedules, by version; None if a schedule has no price for a state slot."""
        versions = sorted(parameters)
        prices = [parameters[version].get(SLOT_PRICE, 0) for version in versions]
        return cls(tuple(versions), tuple(map(int, prices))) if prices and all(prices) else None

    def at(self, versions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the price of a slot at each version."""
        places = np.maximum(np.searchsorted(np.asarray(self.since, np.int64), versions, side="right") - 1, 0)
        return np.asarray(self.slot, np.int64)[places]


@dataclass(frozen=True, slots=True)
class FewCalls:
    """Transactions that are too few to be judged: next to a change, or between changes.

    Attributes
    ----------
    changes : tuple of int
        Ledger versions of the changes, ascending.
    stratum : str
    count : int
        Number of transactions; 0 if nobody called the function since the change.
    mean : float or None
        Their mean gas in gas units.
    between : bool
        Whether they lie between the changes, and are like those of neither side.
    """

    changes: tuple[int, ...]
    stratum: str
    count: int
    mean: float | None
    between: bool


@dataclass(frozen=True, slots=True)
class WeakShift:
    """A shift of one gas unit, which is not a step because rounding of gradual growth looks the same."""

    part: str
    stratum: str
    version_before: int
    version_after: int


@dataclass(frozen=True, slots=True)
class Level:
    """Gas of one stratum, or of one of its ways, from a step to the next: a mean, or a line if it grows."""

    stratum: str
    version_first: int
    version_last: int
    count: int
    gas_first: float
    gas_last: float


@dataclass(frozen=True, slots=True)
class Slope:
    """Gradual growth of one part of one stratum, in gas units per 1,000 versions, with its 99.9 % bounds."""

    stratum: str
    part: str
    version_first: int
    version_last: int
    per_1000_versions: float
    low: float
    high: float
    level: float
    count: int


@dataclass(frozen=True, slots=True)
class ShareChange:
    """The share of a stratum, or of one of its ways, before and after a place at which shares change."""

    version_before: int
    version_after: int
    stratum: str
    share_before: float
    share_after: float


@dataclass(frozen=True, slots=True)
class CommittedCall:
    """What the analysis of one call's committed transactions found besides its steps.

    Attributes
    ----------
    node, label, fingerprint : str
    transactions : int
        Number of transactions that were analysed.
    strata : int
        Number of strata.
    changes : int
        Number of changes in the timeline that can affect the call.
    not_judged : str
        Why the steps of the call are not known; empty if it was judged.
    read_failed : bool
        Whether a failed read is the reason that the call was not judged; another attempt may succeed.
    versions, versions_read : int
        Number of ledger versions of the call's range, and how many of them were read.
    missing : int
        Number of ranges of versions that could not be read.
    changed : tuple of (int, int)
        For each change that can affect the call, ascending: the last version that is known to precede it, and the first
        that is known to follow it.
    timeline_read : bool
        Whether all changes in the range of the call are known.
    small : int
        Number of transactions in strata with fewer than 16 transactions, which are not compared.
    few : tuple of FewCalls
    weak : tuple of WeakShift
    levels : tuple of Level
    growth : tuple of Slope
    mix : tuple of ShareChange
    """

    node: str
    label: str
    fingerprint: str
    transactions: int = 0
    strata: int = 0
    changes: int = 0
    not_judged: str = ""
    read_failed: bool = False
    versions: int = 0
    versions_read: int = 0
    missing: int = 0
    changed: tuple[tuple[int, int], ...] = ()
    timeline_read: bool = False
    small: int = 0
    few: tuple[FewCalls, ...] = ()
    weak: tuple[WeakShift, ...] = ()
    levels: tuple[Level, ...] = ()
    growth: tuple[Slope, ...] = ()
    mix: tuple[ShareChange, ...] = ()

    @property
    def judged(self) -> bool:
        """Whether the analysis looked for steps of the call."""
        return not self.not_judged

    @property
    def all_compared(self) -> bool:
        """Whether every stratum was compared at every change, and no version is missing."""
        return self.judged and not self.few and not self.small and not self.missing

    def rows(self, found: Iterable[Level | Slope | ShareChange]) -> list[dict[str, Any]]:
        """Return records of the call as rows of a frame."""
        about = {"node": self.node, "label": self.label, "fingerprint": self.fingerprint}
        return [about | asdict(one) for one in found]


def _small(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return unsigned integers with 0 for null, in the smallest type that holds them."""
    values = column.fill_null(0).to_numpy()
    return np.asarray(values.astype(np.min_scalar_type(int(values.max(initial=0)))))


def series_frame(tables: Iterable[pa.Table], node: str, fingerprint: str, prices: StoragePrices | None) -> pd.DataFrame:
    """Return the committed transactions of one call as the frame that `analyse` reads, with the column ``gas_used``.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Parts of a run with the columns `COLUMNS_READ`.
    node, fingerprint : str
    prices : StoragePrices or None
        If None, the slots that each transaction created are not known.

    Returns
    -------
    DataFrame
        Sorted by version. Transactions whose gas is not split into parts are ignored.
    """
    # Each part is converted as it is read: Arrow does not give back the memory of a million rows at once.
    pieces: dict[str, list[Any]] = {}
    valid: Counter[str] = Counter()
    for table in tables:
        mine = pc.and_(pc.equal(table["node"], node), pc.equal(table["fingerprint"], fingerprint))
        good = pc.and_(table["error_code"].is_null(), table["execution_gas_units"].is_valid())
        chosen = table.filter(pc.and_(pc.and_(mine, good), pc.equal(table["source"], Source.COMMITTED)))
        for name in (one for one in chosen.column_names if one not in _CHOSEN_BY):
            column = chosen[name]
            valid[name] += len(column) - column.null_count
            plain = pa.types.is_integer(column.type) and name != "abort_code"
            pieces.setdefault(name, []).append(_small(column) if plain else column.combine_chunks())
    if not pieces:
        return pd.DataFrame({"ledger_version": np.empty(0, np.int64)})
    versions = np.concatenate(pieces.pop("ledger_version")).astype(np.int64)
    order = np.argsort(versions, kind="stable")
    versions = versions[order]
    frame = pd.DataFrame({"ledger_version": versions})
    for name in list(pieces):
        parts = pieces.pop(name)
        if not valid[name] and len(versions):
            continue  # a run of an earlier version, or nothing to state
        if isinstance(parts[0], np.ndarray):
            frame[name] = np.concatenate(parts).astype(np.int64)[order]
            continue
        column = pa.chunked_array(parts).take(pa.array(order))
        if name == "abort_code":
            frame[name] = pd.arrays.IntegerArray(column.fill_null(0).to_numpy(), column.is_null().to_numpy())
        else:
            frame[name] = column.unify_dictionaries().to_pandas()
    pa.default_memory_pool().release_unused()
    if prices is not None:
        frame["slots_created"] = slots_created(frame["storage_fee_octas"].to_numpy(np.int64), prices.at(versions))
    return frame


def stratum_words(stratum: Stratum, strata: Sequence[Stratum]) -> str:
    """Return a stratum in words: what distinguishes it from the others.

    Parameters
    ----------
    stratum : Stratum
    strata : sequence of Stratum
        All strata of the call.

    Returns
    -------
    str
        Such as ``succeeding, 1 new slot``; ``all transactions`` if there is one stratum of at least 8 transactions.
    """
    # A rare kind does not make the names of the others longer.
    large = [one for one in strata if len(one.rows) >= MIN_SURE_CALLS]
    others = large if any(one is stratum for one in large) else strata
    differing = {name for one in others for name, _ in one.key if len({other.value(name) for other in others}) > 1}
    words = [_WORDS[name](value) for name, value in stratum.key if name in differing and value is not None]
    return ", ".join(words) or ALL_TRANSACTIONS


def kinds_of(frame: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return the committed transactions of one call by stratum, the most frequent first.

    Parameters
    ----------
    frame : DataFrame
        Observations of transactions whose gas is split into parts.

    Returns
    -------
    list of (str, DataFrame)
        The stratum in words (empty if there is only one) and its transactions, sorted by version.
    """
    observations = Observations(frame)
    strata, rows = observations.strata(), observations.frame
    kinds = [(stratum_words(stratum, strata), rows.iloc[stratum.rows]) for stratum in strata]
    kinds.sort(key=lambda kind: -len(kind[1]))
    return [("" if words == ALL_TRANSACTIONS else words, those) for words, those in kinds]


def _slots_text(count: object, what: str) -> str:
    if isinstance(count, tuple):
        return " or ".join(_slots_text(one, what) for one in count)
    number = int(str(count))
    return f"{number or 'no'} {what} slot{'' if number == 1 else 's'}"


def _type_arguments_text(value: object) -> str:
    text = str(value)
    return f"of {text if len(text) <= _MAX_WORDS else text[: _MAX_WORDS - 3] + '...'}" if text else "without types"


_WORDS: Mapping[str, Callable[[object], str]] = {
    "success": lambda value: "succeeding" if value else "failing",
    "abort_code": lambda value: f"abort code {value}",
    "slots_created": lambda value: _slots_text(value, "new"),
    "slots_deleted": lambda value: _slots_text(value, "deleted"),
    "authenticator": lambda value: str(value).removesuffix("_signature").replace("_", " "),
    "orderless": lambda value: "orderless" if value else "by sequence number",
    "type_arguments": _type_arguments_text,
}


def judge_call(
    frame: pd.DataFrame, call: CommittedCall, timeline: Timeline | None, function: str
) -> tuple[CommittedCall, list[tuple[tuple[Change, ...], dict[str, Any]]]]:
    """Analyse the committed transactions of one call.

    Parameters
    ----------
    frame : DataFrame
        Frame from `series_frame`.
    call : CommittedCall
        The call with its node, label and fingerprint, and with `not_judged` if necessary data is missing.
    timeline : Timeline or None
        None if no timeline could be found.
    function : str

    Returns
    -------
    tuple of (CommittedCall, list of (tuple of Change, dict))
        The call with the results of the analysis; and for each step, its causes and its row of `STEPS`, without an
        explanation.
    """
    call = replace(call, transactions=len(frame))
    if call.not_judged or timeline is None:
        return call, []
    if timeline.unread:
        why = f"the timeline is not complete: {'; '.join(map(unread_text, timeline.unread))}"
        return replace(call, not_judged=why, read_failed=True), []
    changes = timeline.for_function(function)
    changed = tuple(sorted((change.start, change.ledger_version) for change in changes))
    call = replace(call, changed=changed, timeline_read=True)
    if frame.empty:
        return replace(call, not_judged="no transaction of the function was read"), []
    analysis = analyse(frame, changes)
    call = replace(call, strata=len(analysis.strata))
    if not any(len(stratum.rows) >= 2 * MIN_SURE_CALLS for stratum in analysis.strata):
        return replace(call, not_judged=f"there are fewer than {2 * MIN_SURE_CALLS} transactions of each kind"), []
    found = _Found(frame, analysis)
    about: dict[str, Any] = {"node": call.node, "label": call.label, "fingerprint": call.fingerprint}
    rows = [(step.causes, about | {"source": Source.COMMITTED.value} | found.row(step)) for step in found.steps]
    first, last = (int(frame["ledger_version"].iloc[place]) for place in (0, -1))
    notes = replace(
        call,
        changes=sum(first < change.ledger_version <= last for change in changes),
        small=sum(len(stratum.rows) for stratum in analysis.strata if len(stratum.rows) < 2 * MIN_SURE_CALLS),
        few=found.few(),
        weak=tuple(
            WeakShift(shift.part.value, found.name(shift), shift.version_before, shift.version_after)
            for shift in analysis.unexplained
            if shift.weak
        ),
        levels=tuple(found.levels()),
        growth=tuple(map(found.growth, analysis.growth)),
        mix=tuple(change for shift in analysis.mix for change in found.mix(shift)),
    )
    return notes, rows


def way_words(way: int | None) -> str:
    """Return the name of a way: a letter, in the order of the levels."""
    return "" if way is None else f"way {ascii_uppercase[way]}"


def _words(stratum: str, way: int | None) -> str:
    """Return the words of a stratum and one of its ways."""
    words = ["" if stratum == ALL_TRANSACTIONS else stratum, way_words(way)]
    return ", ".join(filter(None, words)) or ALL_TRANSACTIONS


class _Found:
    """Converts the analysis of a call to rows and records, with strata in words and gas in gas units."""

    def __init__(self, frame: pd.DataFrame, analysis: Analysis) -> None:
        self.steps = (*analysis.steps, *(shift for shift in analysis.unexplained if not shift.weak))
        self._words = {one.name: stratum_words(one, analysis.strata) for one in analysis.strata}
        self._strata = {one.name: one for one in analysis.strata}
        self._analysis, self._frame, self._unit = analysis, frame, octas_per_unit(frame)
        self._versions = frame["ledger_version"].to_numpy(np.int64)

    def name(self, step: SeriesStep) -> str:
        """Return the stratum and way of a step in words."""
        return _words(self._words[step.stratum], step.way)

    def _scale(self, part: Part) -> float:
        return self._unit if part.in_octas else 1.0

    def row(self, step: SeriesStep) -> dict[str, Any]:
        """Return the row of a step, without the fields that all steps of the call share."""
        scale = self._scale(step.part)
        before, after = (None if one is None else max(0, round(one / scale)) for one in (step.before, step.after))
        both = before is not None and after is not None
        kinds = list(dict.fromkeys(change.kind for change in step.causes))
        return {
            "gas_before": before,
            "gas_after": after,
            "change": after - before if before is not None and after is not None else None,
            "change_percent": 100 * step.change / step.before if both and step.before else None,
            "part": step.part.value,
            "stratum": self.name(step),
            "change_low": step.low / scale if both else None,
            "change_high": step.high / scale if both else None,
            "total_before": self._total(step, before=True),
            "total_after": self._total(step, before=False),
            "count_before": step.count_before,
            "count_after": step.count_after,
            "share": step.share,
            "uncertain": [doubt.value for doubt in step.doubts],
            "cause": Cause.UNEXPLAINED if not kinds else kinds[0] if len(step.causes) == 1 else Cause.MIXED,
            "cause_parts": kinds,
            "price_ratio": step.causes[0].price_ratio if len(step.causes) == 1 else None,
        } | _place(step)

    def _total(self, step: SeriesStep, *, before: bool) -> float | None:
        """Return the mean gas of the calls on one side of a step, moved to the level at the step."""
        level = step.before if before else step.after
        if level is None:
            return None
        rows = self._strata[step.stratum].rows
        versions = self._versions[rows]
        if before:
            rows = rows[versions <= step.version_before][-WINDOW:]
        elif Doubt.BETWEEN in step.doubts:  # what differs there lies between the changes
            rows = rows[(versions > step.version_before) & (versions < step.version_after)]
        else:
            rows = rows[versions >= step.version_after][:WINDOW]
        own = self._frame[step.part.column].to_numpy(np.float64)[rows]
        near = np.abs(own - level) <= max(GAP * level, self._scale(step.part))
        rows, own = (rows[near], own[near]) if near.any() else (rows, own)
        if not len(rows):
            return None
        paid = float(self._frame["gas_used"].to_numpy()[rows].mean())
        moved = 0.0 if step.part is Part.REFUND else level - float(own.mean())  # a refund is not part of the gas
        return paid + moved / self._scale(step.part)

    def few(self) -> tuple[FewCalls, ...]:
        """Return the calls that are too few to be judged, once for all parts of the gas."""
        found: dict[tuple[Any, ...], FewCalls] = {}
        for one in self._analysis.few:
            changes = tuple(change.ledger_version for change in one.changes)
            name, gas = self._words[one.stratum], None
            if one.count:
                rows = self._strata[one.stratum].rows
                there = rows[(self._versions[rows] >= one.version_first) & (self._versions[rows] <= one.version_last)]
                gas = float(self._frame["gas_used"].to_numpy()[there].mean())
            found.setdefault((changes, name, one.between), FewCalls(changes, name, one.count, gas, one.between))
        return tuple(found.values())

    def levels(self) -> Iterator[Level]:
        """Yield the level of each kind of transaction, and of its ways, between its steps."""
        gas, versions = self._frame["gas_used"].to_numpy(np.float64), self._versions
        for stratum in (one for one in self._analysis.strata if len(one.rows) >= MIN_SURE_CALLS):
            places = [_place(step) for step in self.steps if step.stratum == stratum.name]
            # Calls between two changes that cannot be distinguished are a stretch of their own.
            cuts = sorted({cut for place in places for cut in (place["version_before"] + 1, place["version_after"])})
            for rows in np.split(stratum.rows, np.searchsorted(versions[stratum.rows], cuts)):
                ways = level_numbers(gas[rows], 1.0) if len(rows) else np.zeros(0, np.int64)
                several = len(ways) and ways.max() > 0
                for way in np.unique(ways):
                    mine = rows[ways == way]
                    first, last = (int(versions[mine[place]]) for place in (0, -1))
                    line = np.array([0.0, gas[mine].mean()])
                    middle = float(versions[mine].mean())
                    if any(
                        one.stratum == stratum.name and one.version_first < last and first < one.version_last
                        for one in self._analysis.growth
                    ):
                        line = np.polyfit(versions[mine] - middle, gas[mine], 1)
                    heights = np.polyval(line, [first - middle, last - middle]).tolist()
                    name = _words(self._words[stratum.name], int(way) if several else None)
                    yield Level(name, first, last, len(mine), *heights)

    def growth(self, growth: Growth) -> Slope:
        """Return the slope of gradual growth by ledger versions."""
        scale = self._scale(growth.part)
        versions = growth.version_last - growth.version_first
        factor = 1_000 * growth.level / scale * growth.places / max(versions, 1)
        ends = growth.version_first, growth.version_last
        bounds = (growth.per_call * factor, growth.low * factor, growth.high * factor)
        return Slope(self._words[growth.stratum], growth.part.value, *ends, *bounds, growth.level / scale, growth.count)

    def mix(self, shift: MixShift) -> list[ShareChange]:
        """Return the shares of a shift in the mix."""
        return [
            ShareChange(shift.version_before, shift.version_after, _words(self._words[name], way), before, after)
            for name, way, before, after in shift.shares
        ]


def _place(step: SeriesStep) -> dict[str, Any]:
    """Return the versions between which a step is, and the transaction that caused it, if known."""
    if not step.causes:
        before, after = step.version_before, step.version_after
        return {"version_before": before, "version_after": after, "exact": after == before + 1}
    last = max(step.causes, key=lambda change: change.ledger_version)
    alone = len(step.causes) == 1 and last.exact
    by = last.transaction.columns() if last.transaction else {}
    place = {"version_before": min(change.start for change in step.causes), "version_after": last.ledger_version}
    return place | {"exact": alone} | (by if alone else {"time": by.get("time")})
