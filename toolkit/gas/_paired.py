"""Committed transactions under code or prices that are not deployed: each as it was, and with the change, in pairs.

Both sides of a pair are executed on the same state, so their difference is exact, and is due to the change alone. What
cannot be replayed to what the ledger says is not judged.
"""

from __future__ import annotations

import html
import os
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.tables import html_table, text_table
from toolkit._present.text import listed, number, plural, visible
from toolkit.client._fetch import checked_node, resolved_plan
from toolkit.client._node import Node, connect
from toolkit.errors import InputError, SchemaError
from toolkit.fork._embedded import check_bytecode
from toolkit.fork._recent import Recent, recent_calls
from toolkit.fork._sweep import change_of, replay_all
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import PAIRED_CALLS, PAIRS
from toolkit.gas._gate import Gate, gate_lines, gate_of, rules_of
from toolkit.gas._observations import Source
from toolkit.gas._rules import NotJudged, Regression
from toolkit.gas._sentences import MAX_NOTE, Renderer, label_text
from toolkit.gas._study import Run, Study
from toolkit.move import FunctionId, parse_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from toolkit.client._progress import ProgressHook
    from toolkit.client._versions import Versions
    from toolkit.gas._rules import Rules, Threshold
    from toolkit.wire import GasSchedule, UserTransaction

DEFAULT_LAST = 100  # transactions of each function; 100 take about 10 s of processor time
DEFAULT_VERSIONS = "-100000:"  # that are searched for them
# A verdict on less than half of the transactions would be about the others by luck.
_MIN_JUDGED = 0.5
_MAX_NAMED = 3  # reasons and calls in one line


class Pair(StrEnum):
    """What the change makes of a transaction."""

    CHEAPER = "cheaper"
    SAME = "same"
    DEARER = "dearer"
    FAILS = "fails now"
    SUCCEEDS = "succeeds now"
    NOT_JUDGED = "not judged"


_COMPARABLE = (Pair.CHEAPER, Pair.SAME, Pair.DEARER)


@dataclass(frozen=True, eq=False, repr=False)
class PairedComparison:
    """The last transactions of some functions, as they were and under other code or another gas schedule.

    Returned by `compare` with ``code=`` or ``gas_schedule=``.

    Attributes
    ----------
    calls : DataFrame
        One row per call: how many transactions become cheaper, dearer, fail or succeed, and the least, median and
        largest change.
    transactions : DataFrame
        One row per transaction: gas and fee on both sides, what became of it (``pair``), and why it is not judged.
    names : tuple of str
        What the two sides are.
    warnings : tuple of str
        Such as versions that could not be read.
    study : Study or None
        The study whose calls were compared; its rules are those of `gate`.

    Examples
    --------
    >>> import toolkit
    >>> node, place = toolkit.connect("mainnet"), "0xb00c::order_book::place"  # doctest: +SKIP
    >>> found = toolkit.compare(node, gas_schedule={"instr.*": "x10"}, functions=place)  # doctest: +SKIP
    >>> found.calls[["judged", "dearer", "change_median"]].to_numpy().tolist()  # doctest: +SKIP
    [[100, 100, 6]]
    """

    calls: pd.DataFrame
    transactions: pd.DataFrame
    names: tuple[str, str]
    warnings: tuple[str, ...] = ()
    study: Study | None = None
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Number of transactions by what became of them."""
        found = Counter(self.transactions["pair"])
        return {pair.value: found[pair.value] for pair in Pair}

    def gate(
        self,
        threshold: Any = None,
        *,
        study: Study | None = None,
        waivers: Sequence[Any] | None = None,
        today: date | None = None,
    ) -> Gate:
        """Judge whether the change may be deployed.

        A call regresses if a transaction that succeeded fails under the change, or if the fee of a transaction rises
        above the limit. Both are exact, so one such transaction is enough; the reason says how many there are. A call
        cannot be judged if it has no transactions, if none of them loads changed code, or if less than half of them
        could be replayed to what the ledger says.

        Parameters
        ----------
        threshold, study, waivers, today
            As for `Comparison.gate`; by default, the rules of the compared study. Gas units are counted at the price
            that the transaction pays.

        Returns
        -------
        Gate

        Raises
        ------
        InputError
            If the threshold is not valid.
        StudyError
            If a waiver is not valid.
        """
        rules = rules_of(threshold, study or self.study, waivers)
        # Calls of other sources are not compared, which `warnings` says.
        named = {label: source for label, source in rules.named.items() if source is Source.COMMITTED}
        rules = replace(rules, named=named)
        regressions: list[Regression] = []
        silent: list[NotJudged] = []
        notes: list[str] = []
        judged = 0
        rows = plain_rows(self.transactions)
        for call in plain_rows(self.calls):
            mine = [row for row in rows if row["label"] == call["label"]]
            if why := _why_not(call, mine):
                silent.append(NotJudged(call["label"], call["source"], call["node"], why))
                continue
            judged += 1
            if (found := _regression(call, mine, rules)) is not None:
                regressions.append(found)
            if call["reasons"]:
                notes.append(f"{call['label']}: {call['not_judged']} of {call['transactions']} {call['reasons']}")
        labels, day = {*self.calls["label"]}, today or datetime.now(UTC).date()
        return gate_of(rules, regressions, silent, judged=judged, labels=labels, notes=notes, day=day)

    def __repr__(self) -> str:
        return paired_text(self)

    def _repr_html_(self) -> str:
        rows = [tuple(map(html.escape, row)) for row in _table(self.calls, label_text)]
        notes = "".join(f"<p>{html.escape(line)}</p>" for line in _lines(self))
        return literal(f"<p>{html.escape(_title(self))}</p>{html_table(rows, head=_HEAD, numbers_from=1)}{notes}")


# reading --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A call whose committed transactions are compared."""

    label: str
    function: str
    belongs: Callable[[UserTransaction], bool]


def compare_under(
    source: Any,
    *,
    code: Any = None,
    gas_schedule: GasSchedule | Mapping[str, int | str] | None = None,
    functions: str | Iterable[str] | None = None,
    last: int = DEFAULT_LAST,
    versions: Versions = DEFAULT_VERSIONS,
    executor: Executor | str | None = None,
    progress: bool | ProgressHook = True,
) -> PairedComparison:
    """Compare transactions as they were with the same transactions under a change; see `toolkit.compare`."""
    if code is None and gas_schedule is None:
        raise InputError("give `code` or `gas_schedule`, or a second side to compare")
    if type(last) is not int or last < 1:
        raise InputError(f"last: expected a number of transactions, got {last!r:.60}")
    node, study, opened = _opened(source)
    try:
        check_bytecode(node)
        wanted = _wanted(study, functions)
        plan, _ = resolved_plan(node, versions, state=False)
        span = min(plan.versions), max(plan.versions)
        change = change_of(node, code, gas_schedule, span[1])
        assert change is not None  # noqa: S101 - checked by the caller
        rules = {one.label: one.belongs for one in wanted}
        recent = recent_calls(node, rules, first=span[0], last=span[1], count=last, watched=change.replaced)
        chosen = sorted({version for found in recent.versions.values() for version in found})
        rows = {
            row["ledger_version"]: row
            for row in replay_all(node, chosen, None, change, executor=executor, progress=progress)
        }
        pairs = {
            one.label: [_pair(one, rows[version]) for version in recent.versions[one.label] if version in rows]
            for one in wanted
        }
        calls = [_call_row(one, pairs[one.label], recent, node.name) for one in wanted]
        notes = (*plan.notes, *_notes(recent, study))
        names = node.name, _changed_name(code, gas_schedule)
    finally:
        if opened:
            node.close()
    every = [pair for found in pairs.values() for pair in found]
    return PairedComparison(frame_of_rows(PAIRED_CALLS, calls), frame_of_rows(PAIRS, every), names, notes, study)


def _opened(source: Any) -> tuple[Node, Study | None, bool]:
    """Return the node to read, the study if there is one, and whether the node must be closed."""
    study = None
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix == ".toml":
            study = Study.load(path)
        elif path.is_dir():
            study = Run.load(path).study
        else:
            return connect(str(source)), None, True
    elif isinstance(source, Run):
        study = source.study
    elif isinstance(source, Study):
        study = source
    if study is None:
        return checked_node(source), None, False
    settings = study.connections()
    if len(settings) != 1:
        raise InputError("transactions are replayed on one node; the study has several")
    own = study.specification().node
    return (own, study, False) if own is not None else (connect(**settings[0]), study, True)


def _wanted(study: Study | None, functions: str | Iterable[str] | None) -> list[_Wanted]:
    if functions is not None:
        named = [functions] if isinstance(functions, str) else list(functions)
        return [_of_function(FunctionId.parse(one).wire) for one in dict.fromkeys(named)]
    found = []
    for call in study.calls if study else ():
        if call.source is Source.COMMITTED:
            inner = _of_function(call.function)

            def belongs(transaction: UserTransaction, call: Any = call, inner: _Wanted = inner) -> bool:
                return inner.belongs(transaction) and call.selects(parse_address(transaction.sender), transaction)

            found.append(_Wanted(call.name, call.function, belongs))
    if not found:
        raise InputError(
            "name the functions whose transactions are replayed, functions=[...], or pass a study with committed calls"
        )
    return found


def _of_function(function: str) -> _Wanted:
    name = FunctionId.parse(function).wire

    def belongs(transaction: UserTransaction) -> bool:
        try:
            called = transaction.call().function
        except SchemaError:
            return False
        return called is not None and FunctionId.parse(called).wire == name

    return _Wanted(function, function, belongs)


def _changed_name(code: Any, gas_schedule: Any) -> str:
    parts = []
    if code is not None:
        parts.append(f"the code of {code}" if isinstance(code, str | os.PathLike) else "other code")
    if gas_schedule is not None:
        parts.append("another gas schedule")
    return " and ".join(parts)


def _cost(row: Mapping[str, Any], prefix: str) -> int:
    """Return what a side pays in octas, net of the refund; at a price of 0, gas units count as octas."""
    price = max(row["gas_unit_price"], 1)
    return int(row[f"{prefix}gas_used"] * price - (row[f"{prefix}storage_fee_refund_octas"] or 0))


def _pair(call: _Wanted, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a transaction, with what the change makes of it."""
    known = {name: row.get(name) for name in ("ledger_version", "sender", "outcome", "gas_unit_price", "verified")}
    known |= {
        "label": call.label,
        "function": call.function,
        "gas_before": row.get("gas_used"),
        "pair": Pair.NOT_JUDGED,
    }
    if row.get("error_code") is not None:
        return known | {"reason": f"{row['error_code']}: {row['error_message']}"}
    known |= {"changed_outcome": row["changed_outcome"], "gas_after": row["changed_gas_used"]}
    known |= {"loaded": row["changed_loaded"]}
    if not row["verified"]:
        return known | {"reason": "replayed as it was, it differs from the ledger"}
    before, after = _cost(row, ""), _cost(row, "changed_")
    known |= {"fee_before": before, "fee_after": after, "change": row["changed_gas_used"] - row["gas_used"]}
    if row["outcome"] == row["changed_outcome"]:  # a failure that costs less is as comparable as a success
        pair = Pair.SAME if before == after else Pair.DEARER if after > before else Pair.CHEAPER
        return known | {"pair": pair}
    if row["success"]:
        return known | {"pair": Pair.FAILS}
    if row["changed_success"]:
        return known | {"pair": Pair.SUCCEEDS}
    return known | {"reason": f"it failed before, and fails otherwise now: {row['changed_outcome']}"}


def _call_row(call: _Wanted, pairs: Sequence[Mapping[str, Any]], recent: Recent, node: str) -> dict[str, Any]:
    counts = Counter(pair["pair"] for pair in pairs)
    changes = sorted(pair["change"] for pair in pairs if pair["pair"] in _COMPARABLE)
    reasons = Counter(pair["reason"] for pair in pairs if pair.get("reason"))
    texts = [f"{count}: {why}" for why, count in reasons.most_common()]
    row: dict[str, Any] = {
        "label": call.label,
        "function": call.function,
        "source": Source.COMMITTED.value,
        "node": node,
    }
    row |= {"first_version": recent.first, "last_version": recent.last, "published_at": recent.published_at}
    row |= {"transactions": len(pairs), "judged": len(pairs) - counts[Pair.NOT_JUDGED]}
    row |= {pair.replace(" ", "_"): counts[pair] for pair in Pair}
    if changes:  # the lower median, a change that some transaction has
        row |= {"change_least": changes[0], "change_median": changes[(len(changes) - 1) // 2]}
        row |= {"change_most": changes[-1]}
    return row | {"reasons": listed(texts, _MAX_NAMED) if texts else None}


def _notes(recent: Recent, study: Study | None) -> Iterable[str]:
    if recent.unread:
        yield f"{plural(recent.unread, 'version')} could not be read; transactions there are not compared"
    if recent.published_at is not None:
        yield (
            f"what the change replaces was last written at version {recent.published_at}; transactions before ran "
            "under something else, and are not compared"
        )
    others = [call.name for call in study.calls if call.source is not Source.COMMITTED] if study else []
    if others:
        yield f"not compared: {listed(others, _MAX_NAMED)}: only committed transactions are replayed"


# judging --------------------------------------------------------------------------------------------------------------


def _why_not(call: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]]) -> str | None:
    """Return why a call cannot be judged."""
    total, span = call["transactions"], f"in versions {call['first_version']} to {call['last_version']}"
    if not total:
        return f"nobody called it {span}"
    if call["fails_now"] or call["judged"] >= _MIN_JUDGED * total:
        if not any(pair["loaded"] for pair in pairs if pair["pair"] != Pair.NOT_JUDGED):
            return f"none of its {plural(total, 'transaction')} runs the changed code"
        return None
    return f"{call['not_judged']} of {plural(total, 'transaction')} cannot be judged: {call['reasons']}"


def _regression(call: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]], rules: Rules) -> Regression | None:
    known = {name: call[name] for name in ("label", "source", "node")}
    failing = [pair for pair in pairs if pair["pair"] == Pair.FAILS]
    if failing:
        outcomes = Counter(pair["changed_outcome"] for pair in failing)
        how = listed((f"{count}: {outcome}" for outcome, count in outcomes.most_common()), _MAX_NAMED)
        first = f"the first at version {failing[0]['ledger_version']}"
        reason = f"{len(failing)} of {plural(call['judged'], 'transaction')} succeeded and fail now ({how}; {first})"
        return Regression(**known, reason=reason)
    limits = rules.limits_of(call)
    if limits is None:
        return None
    over = [pair for pair in pairs if pair["pair"] == Pair.DEARER and _limit(pair, limits)]
    if not over:
        return None
    worst = max(over, key=lambda pair: pair["fee_after"] - pair["fee_before"])
    reason = (
        f"{len(over)} of {plural(call['judged'], 'transaction')} rise over {limits}: the most at version "
        f"{worst['ledger_version']}, from {worst['fee_before']:,} to {worst['fee_after']:,} octas"
    )
    gas = {"gas_before": worst["gas_before"], "gas_after": worst["gas_after"]}
    return Regression(**known, reason=reason, limit=str(limits), **gas)


def _limit(pair: Mapping[str, Any], limits: Threshold) -> str | None:
    return limits.exceeded(pair["fee_before"], pair["fee_after"], unit=max(pair["gas_unit_price"], 1))


# words ----------------------------------------------------------------------------------------------------------------

_COLUMNS = ("transactions", "judged", "cheaper", "same", "dearer", "fails_now", "change_least", "change_median")
_HEAD = ("call", "transactions", "judged", "cheaper", "same", "dearer", "fail now", "least", "median", "most")


def paired_text(comparison: PairedComparison, gate: Gate | None = None) -> str:
    """Return a comparison, and the verdict of its gate, for a terminal."""
    lines = [_title(comparison), *(gate_lines(gate, label_text) if gate else [])]
    table = text_table(_table(comparison.calls, label_text), head=_HEAD, numbers_from=1, indent="  ")
    return "\n".join([*lines, "", *table, *_lines(comparison)])


def _title(comparison: PairedComparison) -> str:
    before, after = map(visible, comparison.names)
    return f"committed transactions of {before}, replayed as they were and under {after}"


def _table(calls: pd.DataFrame, name: Renderer) -> list[tuple[str, ...]]:
    rows = []
    for row in plain_rows(calls):
        changes = [f"{number(row[one])}" for one in ("change_least", "change_median", "change_most")]
        counts = [number(row[one]) for one in _COLUMNS[:6]]
        rows.append((name(row["label"]), *counts, *changes))
    return rows


def _lines(comparison: PairedComparison) -> list[str]:
    lines = [
        f"not judged: {label_text(row['label'])}: {row['not_judged']} of {row['transactions']} ({row['reasons']})"
        for row in plain_rows(comparison.calls)
        if row["reasons"]
    ]
    return [visible(line, MAX_NOTE) for line in [*lines, *(f"note: {note}" for note in comparison.warnings)]]
