"""Steps of the committed transactions of a run: its rows as observations, the analysis as rows, notes and levels."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.frames._schema import STRATUM
from toolkit.gas._cause_sentences import unread_text
from toolkit.gas._observations import Cause, Part, Source
from toolkit.gas._steps import ALL_TRANSACTIONS
from toolkit.gas.committed._analysis import FewCalls, SeriesStep, ShareChange, Slope, analyse
from toolkit.gas.committed._levels import MIN_SURE_CALLS, level_numbers
from toolkit.gas.committed._strata import Observations, octas_per_unit, slots_created

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._findings import Change, Timeline
    from toolkit.gas.committed._analysis import Analysis

SLOT_PRICE = "txn.storage_fee_per_state_slot"
# Columns of the observations by which the transactions of a call are chosen, and those with their gas.
_CHOSEN_BY = ("node", "fingerprint", "source", "error_code")
_OF_GAS = ("ledger_version", "gas_used", *(part.column for part in Part), "gas_unit_price", "success")
# Columns of the observations that the analysis reads, and the text columns among them, which are read as codes.
COLUMNS_READ = (*_CHOSEN_BY, *_OF_GAS, *(column.name for column in STRATUM))
COLUMNS_CODED = (*_CHOSEN_BY, "authenticator", "type_arguments")


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
class WeakShift:
    """A shift of one gas unit, which is not a step because rounding of gradual growth looks the same."""

    part: str
    stratum: str
    version_before: int
    version_after: int


@dataclass(frozen=True, slots=True)
class Level:
    """Gas of one stratum, or of one of its ways, from a step or shift to the next: a mean, or a line if it grows.

    The line ends at the least and the most that was paid. `way_gas` is the mean gas of the way; None if there is one.
    """

    stratum: str
    version_first: int
    version_last: int
    count: int
    gas_first: float
    gas_last: float
    way_gas: float | None = None


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


def kinds_of(frame: pd.DataFrame, changes: Sequence[Change] = ()) -> list[tuple[str, pd.DataFrame]]:
    """Return the committed transactions of one call by stratum, the most frequent first.

    Parameters
    ----------
    frame : DataFrame
        Observations of transactions whose gas is split into parts.
    changes : sequence of Change
        Changes that may make transactions of one stratum those of another, which are then one.

    Returns
    -------
    list of (str, DataFrame)
        The stratum in words (empty if there is only one) and its transactions, sorted by version.
    """
    observations = Observations(frame)
    strata = observations.strata(changes)
    named = [("" if one.name == ALL_TRANSACTIONS else one.name, one.rows) for one in strata]
    return [(name, observations.frame.iloc[rows]) for name, rows in named]


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
    steps = (*analysis.steps, *(shift for shift in analysis.unexplained if not shift.weak))
    about: dict[str, Any] = {"node": call.node, "label": call.label, "fingerprint": call.fingerprint}
    unit = octas_per_unit(frame)
    rows = [(one.causes, about | {"source": Source.COMMITTED.value} | _row(one, unit) | _place(one)) for one in steps]
    first, last = (int(frame["ledger_version"].iloc[place]) for place in (0, -1))
    notes = replace(
        call,
        changes=sum(first < change.ledger_version <= last for change in changes),
        small=sum(len(stratum.rows) for stratum in analysis.strata if len(stratum.rows) < 2 * MIN_SURE_CALLS),
        few=analysis.few,
        weak=tuple(
            WeakShift(one.part.value, one.stratum, one.version_before, one.version_after)
            for one in analysis.unexplained
            if one.weak
        ),
        levels=tuple(_levels(frame, analysis, steps)),
        growth=analysis.growth,
        mix=analysis.mix,
    )
    return notes, rows


def _row(step: SeriesStep, unit: float) -> dict[str, Any]:
    """Return the row of a step, in gas units, without its place and the fields that all steps of the call share."""
    scale = unit if step.part.in_octas else 1.0
    before, after = (None if one is None else max(0.0, one / scale) for one in (step.before, step.after))
    change = None if before is None or after is None else after - before
    low = high = None
    if change is not None:  # the bounds include the rounding of octas to whole units
        low, high = step.low / scale, step.high / scale
        ends = (math.floor(low), math.ceil(high)) if step.part.in_octas else (low, high)
        low, high = min(change, *ends), max(change, *ends)
    kinds = list(dict.fromkeys(change.kind for change in step.causes))
    return {
        "gas_before": before,
        "gas_after": after,
        "change": change,
        "change_percent": 100 * step.change / step.before if change is not None and step.before else None,
        "part": step.part.value,
        "stratum": step.stratum,
        "way_gas": step.way_gas,
        "change_low": low,
        "change_high": high,
        "total_before": step.total_before,
        "total_after": step.total_after,
        "count_before": step.count_before,
        "count_after": step.count_after,
        "share": step.share,
        "uncertain": [doubt.value for doubt in step.doubts],
        "cause": Cause.UNEXPLAINED if not kinds else kinds[0] if len(step.causes) == 1 else Cause.MIXED,
        "cause_parts": kinds,
        "price_ratio": step.causes[0].price_ratio if len(step.causes) == 1 else None,
    }


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


def _levels(frame: pd.DataFrame, analysis: Analysis, steps: Iterable[SeriesStep]) -> Iterator[Level]:
    """Yield the level of each kind of transaction, and of its ways, between its steps and shifts."""
    gas, versions = (frame[name].to_numpy(np.float64) for name in ("gas_used", "ledger_version"))
    for stratum in (one for one in analysis.strata if len(one.rows) >= MIN_SURE_CALLS):
        places = [_place(step) for step in steps if step.stratum == stratum.name]
        slopes = [one for one in analysis.growth if one.stratum == stratum.name]
        # Calls between two changes that cannot be distinguished are a stretch of their own.
        cuts = {cut for place in places for cut in (place["version_before"] + 1, place["version_after"])}
        cuts |= {version for name, version in analysis.shifts if name == stratum.name}
        cuts |= {cut for one in slopes for cut in (one.version_first, one.version_last + 1)}
        for rows in np.split(stratum.rows, np.searchsorted(versions[stratum.rows], sorted(cuts))):
            ways = level_numbers(gas[rows], 1.0)
            for way in np.unique(ways):
                mine = rows[ways == way]
                first, last = versions[mine[[0, -1]]]
                grows = first < last and any(one.version_first < last and first < one.version_last for one in slopes)
                middle, mean = versions[mine].mean(), float(gas[mine].mean())
                if grows:
                    line = np.polyfit(versions[mine] - middle, gas[mine], 1)
                    ends = np.polyval(line, [first - middle, last - middle])
                    low, high = ends.clip(gas[mine].min(), gas[mine].max()).tolist()  # what nobody paid is not stated
                else:
                    low = high = mean
                way_gas = mean if ways.any() else None
                yield Level(stratum.name, int(first), int(last), len(mine), low, high, way_gas)
