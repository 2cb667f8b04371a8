"""Steps of the committed transactions of a run: its rows as observations, the analysis as rows, notes and levels."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.frames._schema import STRATUM
from toolkit.gas._observations import Cause, Part, Source
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.committed._analysis import Analysis, Growth, SeriesStep, analyse
from toolkit.gas.committed._levels import MIN_SIDE
from toolkit.gas.committed._strata import OTHER, MixShift, Observations, Stratum, octas_per_unit, slots_created

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
_READ_EARLIER = (
    "an earlier version of the toolkit read the transactions, without the columns of their strata; run the study "
    "into another folder"
)
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
class NotCompared:
    """Strata that have too few transactions next to a change to be compared."""

    version: int
    strata: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeakShift:
    """A shift of one gas unit, which is not a step because rounding of gradual growth looks the same."""

    part: str
    stratum: str
    version_before: int
    version_after: int


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
    changed_at : tuple of int
        Ledger versions of the changes that can affect the call, ascending.
    small : int
        Number of transactions in strata with fewer than 8 transactions, which are not compared.
    not_compared : tuple of NotCompared
    weak : tuple of WeakShift
    levels, growth, mix : tuple of dict
        Rows of `LEVELS`, `GROWTH` and `MIX`.
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
    changed_at: tuple[int, ...] = ()
    small: int = 0
    not_compared: tuple[NotCompared, ...] = ()
    weak: tuple[WeakShift, ...] = ()
    levels: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    growth: tuple[dict[str, Any], ...] = field(default=(), hash=False)
    mix: tuple[dict[str, Any], ...] = field(default=(), hash=False)

    @property
    def judged(self) -> bool:
        """Whether the analysis looked for steps of the call."""
        return not self.not_judged

    @property
    def all_compared(self) -> bool:
        """Whether every stratum was compared at every change, and no version is missing."""
        return self.judged and not self.not_compared and not self.small and not self.missing


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
    large = [one for one in strata if len(one.rows) >= MIN_SIDE]
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
        return ", then ".join(_slots_text(one, what) for one in count)
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
    "way": lambda value: "other ways" if value == OTHER else f"way {value}",
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
        why = f"the timeline is not complete: {'; '.join(map(str, timeline.unread))}"
        return replace(call, not_judged=why, read_failed=True), []
    if frame.empty:
        return replace(call, not_judged="no transaction of the function was read"), []
    if "authenticator" not in frame.columns:
        return replace(call, not_judged=_READ_EARLIER), []
    changes = timeline.for_function(function)
    analysis = analyse(frame, changes)
    call = replace(call, strata=len(analysis.strata))
    if not any(len(stratum.rows) >= 2 * MIN_SIDE for stratum in analysis.strata):
        return replace(call, not_judged=f"there are fewer than {2 * MIN_SIDE} transactions of each kind"), []
    found = _Found(frame, analysis)
    about: dict[str, Any] = {"node": call.node, "label": call.label, "fingerprint": call.fingerprint}
    rows = [(step.causes, about | {"source": Source.COMMITTED.value} | found.row(step)) for step in found.steps]
    first, last = (int(frame["ledger_version"].iloc[place]) for place in (0, -1))
    notes = replace(
        call,
        changes=sum(first < change.ledger_version <= last for change in changes),
        changed_at=tuple(sorted(change.ledger_version for change in changes)),
        small=sum(len(stratum.rows) for stratum in analysis.strata if len(stratum.rows) < MIN_SIDE),
        not_compared=found.not_compared(changes),
        weak=tuple(
            WeakShift(shift.part.value, found.words[shift.stratum], shift.version_before, shift.version_after)
            for shift in analysis.unexplained
            if shift.weak
        ),
        levels=tuple(about | row for row in found.levels()),
        growth=tuple(about | found.growth(one) for one in analysis.growth),
        mix=tuple(about | row for shift in analysis.mix for row in found.mix(shift)),
    )
    return notes, rows


class _Found:
    """Converts the analysis of a call to rows, with strata in words and gas in whole units."""

    def __init__(self, frame: pd.DataFrame, analysis: Analysis) -> None:
        self.steps = (*analysis.steps, *(shift for shift in analysis.unexplained if not shift.weak))
        self.words = {one.name: stratum_words(one, analysis.strata) for one in analysis.strata} | {"others": "others"}
        self._strata = {one.name: one for one in analysis.strata}
        self._analysis, self._frame, self._unit = analysis, frame, octas_per_unit(frame)
        self._versions = frame["ledger_version"].to_numpy(np.int64)

    def _scale(self, part: Part) -> float:
        return self._unit if part.in_octas else 1.0

    def row(self, step: SeriesStep) -> dict[str, Any]:
        """Return the row of a step, without the fields that all steps of the call share."""
        scale = self._scale(step.part)
        before, after = (max(0, round(level / scale)) for level in (step.before, step.after))
        total_before, total_after = self._totals(step)
        kinds = list(dict.fromkeys(change.kind for change in step.causes))
        return {
            "gas_before": before,
            "gas_after": after,
            "change": after - before,
            "change_percent": 100 * step.change / step.before if step.before > 0 else None,
            "part": step.part.value,
            "stratum": self.words[step.stratum],
            "change_low": step.low / scale,
            "change_high": step.high / scale,
            "total_before": total_before,
            "total_after": total_after,
            "count_before": step.count_before,
            "count_after": step.count_after,
            "uncertain": list(step.uncertain),
            "cause": Cause.UNEXPLAINED if not kinds else kinds[0] if len(step.causes) == 1 else Cause.MIXED,
            "cause_parts": kinds,
        } | _place(step)

    def _totals(self, step: SeriesStep) -> tuple[float, float]:
        """Return the mean gas before and after a step, moved to the place of the step."""
        together = [step]
        if step.causes:
            together = [one for one in self.steps if (one.stratum, one.causes) == (step.stratum, step.causes)]
        together = [one for one in together if one.part is not Part.REFUND]  # a refund is not part of the gas
        rows = self._strata[step.stratum].rows
        before = rows[self._versions[rows] <= step.version_before][-step.count_before :]
        after = rows[self._versions[rows] >= step.version_after][: step.count_after]

        def total(there: NDArray[np.int64], levels: list[float]) -> float | None:
            if not len(there):
                return None
            pairs = zip(together, levels, strict=True)
            moved = ((level - self._mean(one.part.column, there)) / self._scale(one.part) for one, level in pairs)
            return self._mean("gas_used", there) + sum(moved)

        first, last = total(before, [one.before for one in together]), total(after, [one.after for one in together])
        # A way that costs what another does on one side has no transactions of its own there.
        change = sum(one.change / self._scale(one.part) for one in together)
        if first is None:
            first = (last or 0.0) - change
        return first, first + change if last is None else last

    def _mean(self, column: str, rows: NDArray[np.int64]) -> float:
        return float(self._frame[column].to_numpy()[rows].mean())

    def not_compared(self, changes: Sequence[Change]) -> tuple[NotCompared, ...]:
        """Return the strata with too few transactions on a side of a change to know whether it affected them."""
        strata = self._analysis.strata
        found: dict[int, dict[str, None]] = {}
        for missed, _, change in self._analysis.not_compared:
            found.setdefault(change.ledger_version, {})[self.words[missed]] = None
        moved = {(step.stratum, change.ledger_version) for step in self._analysis.steps for change in step.causes}
        for stratum in strata:
            # What looks like outliers may be the first transactions of a new level.
            others = [one.rows for one in strata if one.is_other and one.key[:-1] == stratum.kind]
            versions = self._versions[np.sort(np.concatenate([stratum.rows, *others]))]
            for change in () if stratum.is_other else changes:
                before = int(np.searchsorted(versions, change.ledger_version))
                few = 0 < min(before, len(versions) - before) < MIN_SIDE <= len(stratum.rows)
                if few and (stratum.name, change.ledger_version) not in moved:
                    found.setdefault(change.ledger_version, {})[self.words[stratum.name]] = None
        return tuple(NotCompared(version, tuple(names)) for version, names in sorted(found.items()))

    def levels(self) -> Iterator[dict[str, Any]]:
        """Yield the level of each kind of transaction between its steps: a mean, or a line where it grows."""
        gas, versions = self._frame["gas_used"].to_numpy(np.float64), self._versions
        for stratum in (one for one in self._analysis.strata if len(one.rows) >= MIN_SIDE):
            places = [_place(step) for step in self.steps if step.stratum == stratum.name]
            cuts = dict(sorted((place["version_after"], place["version_before"]) for place in places))
            pieces = np.split(stratum.rows, np.searchsorted(versions[stratum.rows], list(cuts)))
            grown = [one for one in self._analysis.growth if one.stratum == stratum.name]
            for rows, start, end in zip(pieces, [None, *cuts], [*cuts.values(), None], strict=True):
                if not len(rows):
                    continue
                # From step to step; the first and the last stretch begin and end with a transaction.
                first = int(versions[rows[0]]) if start is None or rows[0] == stratum.rows[0] else start
                last = int(versions[rows[-1]]) if end is None or rows[-1] == stratum.rows[-1] else end
                line = np.array([0.0, gas[rows].mean()])
                middle = float(versions[rows].mean())
                if any(one.version_first < last and first < one.version_last for one in grown):
                    line = np.polyfit(versions[rows] - middle, gas[rows], 1)
                heights = np.polyval(line, [first - middle, last - middle]).tolist()
                yield {
                    "stratum": self.words[stratum.name],
                    "version_first": first,
                    "version_last": last,
                    "count": len(rows),
                    "gas_first": heights[0],
                    "gas_last": heights[1],
                }

    def growth(self, growth: Growth) -> dict[str, Any]:
        """Return the row of a slope."""
        scale = self._scale(growth.part)
        slopes = {name: getattr(growth, name) / scale for name in ("per_1000_versions", "low", "high", "level")}
        rest = {name: getattr(growth, name) for name in ("version_first", "version_last", "count", "with_state")}
        return {"stratum": self.words[growth.stratum], "part": growth.part.value} | slopes | rest

    def mix(self, shift: MixShift) -> list[dict[str, Any]]:
        """Return the rows of a shift in the mix."""
        place = {"version_before": shift.version_before, "version_after": shift.version_after}
        return [
            place | {"stratum": self.words[name], "share_before": before, "share_after": after}
            for name, before, after in shift.shares
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
