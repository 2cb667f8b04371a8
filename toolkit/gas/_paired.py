"""Committed transactions under code or prices that are not deployed: each as it was, and with the change, in pairs.

Both sides of a pair are executed on the same state, so their difference is exact, and is due to the change alone. What
cannot be replayed to what the ledger says is not judged.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit._present.tables import terminal_width
from toolkit._present.text import listed, plural
from toolkit.client._fetch import checked_node, resolved_plan
from toolkit.client._node import Node, connect
from toolkit.errors import InputError, SchemaError
from toolkit.fork._fork import check_bytecode
from toolkit.fork._recent import Recent, recent_calls
from toolkit.fork._sweep import change_of, replay_all
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import PAIRED_CALLS, PAIRS
from toolkit.gas import _verdict_sentences as sentences
from toolkit.gas._calls import Call
from toolkit.gas._gate import Finding, Gate, judge, rules_of
from toolkit.gas._observations import Source
from toolkit.gas._study import Run, Study
from toolkit.gas._verdict_sentences import Why
from toolkit.gas.committed._fees import Verdict
from toolkit.move import FunctionId, parse_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from concurrent.futures import Executor
    from datetime import date

    import pandas as pd

    from toolkit.client._progress import ProgressHook
    from toolkit.client._versions import Versions
    from toolkit.gas._rules import Rules, Threshold
    from toolkit.gas._sentences import Renderer
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


_COSTS = ("gas_before", "gas_after", "fee_before", "fee_after")
_COMPARABLE = (Pair.CHEAPER, Pair.SAME, Pair.DEARER)


@dataclass(frozen=True, eq=False, repr=False)
class PairedComparison:
    """Replays of the last transactions of some functions: unchanged, and under other code or another gas schedule.

    Returned by `compare` with ``code=`` or ``gas_schedule=``.

    Attributes
    ----------
    calls : DataFrame
        One row per call: how many transactions become cheaper, dearer, fail or succeed, and the least, median and
        largest change.
    transactions : DataFrame
        One row per transaction: gas and fee on both sides, the outcome (``pair``), and why it is not judged.
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
        cannot be judged if it has no transactions, if all of them fail with and without the change, if none of them
        loads changed code, or if less than half of them could be replayed to what the ledger says.

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
        pairs: dict[str, list[dict[str, Any]]] = {}
        for row in plain_rows(self.transactions):
            pairs.setdefault(row["label"], []).append(row)
        return judge(
            [_found(call, pairs.get(call["label"], []), rules) for call in plain_rows(self.calls)], rules, today=today
        )

    def shown(self, name: Renderer, _: Gate | None = None) -> sentences.Shown:
        """Return what is shown of the comparison; `name` makes text from users and the chain safe for the format."""
        return sentences.shown_pairs(self, name)

    def __repr__(self) -> str:
        return sentences.comparison_text(self, width=terminal_width())

    def _repr_html_(self) -> str:
        return sentences.comparison_html(self)


# reading --------------------------------------------------------------------------------------------------------------


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
    with ExitStack() as stack:
        node, study = _opened(source, stack)
        check_bytecode(node)
        wanted = _wanted(study, functions)
        plan, _ = resolved_plan(node, versions, state=False)
        span = min(plan.versions), max(plan.versions)
        change = change_of(node, code, gas_schedule, span[1])
        assert change is not None  # noqa: S101 - checked by the caller
        rules = {call.name: partial(_belongs, call) for call in wanted}
        recent = recent_calls(node, rules, first=span[0], last=span[1], count=last, watched=change.replaced)
        chosen = sorted({version for found in recent.versions.values() for version in found})
        replayed = replay_all(node, chosen, None, change, executor=executor, progress=progress)
    rows = {row["ledger_version"]: row for row in replayed}
    pairs, calls = [], []
    for call in wanted:
        mine = [_pair(call, rows[version]) for version in recent.versions[call.name] if version in rows]
        pairs += mine
        calls.append(_call_row(call, mine, recent, node.name))
    notes = (*plan.notes, *_notes(recent, calls, study))
    names = node.name, _changed_name(code, gas_schedule)
    return PairedComparison(frame_of_rows(PAIRED_CALLS, calls), frame_of_rows(PAIRS, pairs), names, notes, study)


def _opened(source: Any, stack: ExitStack) -> tuple[Node, Study | None]:
    """Return the node to read, and the study if there is one; the stack closes the node if it was opened here."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix != ".toml" and not path.is_dir():
            return stack.enter_context(connect(str(source))), None
        source = Run.load(path) if path.is_dir() else Study.load(path)
    study = source.study if isinstance(source, Run) else source
    if not isinstance(study, Study):
        return checked_node(source), None
    if len(study.nodes) != 1:
        raise InputError(
            f"transactions are replayed on one node, but the study has {len(study.nodes)}; name one in `nodes`"
        )
    return study.connect(stack)[0], study


def _wanted(study: Study | None, functions: str | Iterable[str] | None) -> list[Call]:
    """Return the calls whose committed transactions are compared."""
    if functions is not None:
        named = [functions] if isinstance(functions, str) else functions
        names = [FunctionId.parse(one).wire for one in dict.fromkeys(named)]
        return [Call(label=name, committed=name) for name in names]
    found = [call for call in study.calls if call.source is Source.COMMITTED] if study else []
    if not found:
        raise InputError(
            "name the functions whose transactions are replayed, functions=[...], or pass a study with committed calls"
        )
    return found


def _belongs(call: Call, transaction: UserTransaction) -> bool:
    try:
        called = transaction.call().function
    except SchemaError:
        return False
    if called is None or FunctionId.parse(called) != FunctionId.parse(call.function):
        return False
    return call.selects(parse_address(transaction.sender), transaction)


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


def _pair(call: Call, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a transaction, with what the change makes of it."""
    columns = ("ledger_version", "sender", "success", "outcome", "gas_unit_price", "verified")
    known = {name: row.get(name) for name in columns}
    known |= {"label": call.name, "function": call.function, "gas_before": row.get("gas_used"), "pair": Pair.NOT_JUDGED}
    if row.get("error_code") is not None:
        return known | {"reason": f"{row['error_code']}: {row['error_message']}"}
    known |= {"changed_outcome": row["changed_outcome"], "gas_after": row["changed_gas_used"]}
    known |= {"loaded": row["changed_loaded"]}
    if not row["verified"]:
        return known | {"reason": "replayed as it was, it differs from the ledger"}
    before, after = _cost(row, ""), _cost(row, "changed_")
    known |= {"fee_before": before, "fee_after": after, "change": row["changed_gas_used"] - row["gas_used"]}
    if row["outcome"] == row["changed_outcome"]:  # a failure that costs less is as comparable as a success
        moved = Pair.DEARER if after > before else Pair.CHEAPER
        return known | {"pair": Pair.SAME if before == after else moved}
    if row["success"]:
        return known | {"pair": Pair.FAILS}
    if row["changed_success"]:
        return known | {"pair": Pair.SUCCEEDS}
    return known | {"reason": f"it failed before, and fails otherwise now: {row['changed_outcome']}"}


def _call_row(call: Call, pairs: Sequence[Mapping[str, Any]], recent: Recent, node: str) -> dict[str, Any]:
    counts = Counter(pair["pair"] for pair in pairs)
    changes = sorted(pair["change"] for pair in pairs if pair["pair"] in _COMPARABLE)
    reasons = Counter(pair["reason"] for pair in pairs if pair.get("reason"))
    texts = [f"{count}: {why}" for why, count in reasons.most_common()]
    row: dict[str, Any] = {"label": call.name, "function": call.function, "source": call.source.value, "node": node}
    row |= {"first_version": recent.first, "last_version": recent.last, "published_at": recent.published_at}
    row |= {"transactions": len(pairs), "judged": len(pairs) - counts[Pair.NOT_JUDGED]}
    row |= {pair.replace(" ", "_"): counts[pair] for pair in Pair}
    if changes:  # the lower median, a change that some transaction has
        middle = changes[(len(changes) - 1) // 2]
        row |= {"change_least": changes[0], "change_median": middle, "change_most": changes[-1]}
    return row | {"reasons": listed(texts, _MAX_NAMED) if texts else None}


def _notes(recent: Recent, calls: Sequence[Mapping[str, Any]], study: Study | None) -> Iterable[str]:
    for call in calls:
        if call["reasons"]:
            count = plural(call["transactions"], "transaction")
            yield f"{call['label']}: {call['not_judged']} of {count} not judged ({call['reasons']})"
    if recent.unread:
        yield f"{plural(recent.unread, 'version')} could not be read; transactions there are not compared"
    if recent.published_at is not None:
        yield (
            f"what the change replaces was last written at version {recent.published_at:,}; transactions before ran "
            "under something else, and are not compared"
        )
    others = [call.name for call in study.calls if call.source is not Source.COMMITTED] if study else []
    if others:
        yield f"not compared: {listed(others, _MAX_NAMED)}: only committed transactions are replayed"


# judging --------------------------------------------------------------------------------------------------------------


def _found(call: Mapping[str, Any], pairs: Sequence[Mapping[str, Any]], rules: Rules) -> Finding:
    """Return the finding on a call, from its transactions."""
    total, judged = call["transactions"], call["judged"]
    if not total:
        ends = {"first": call["first_version"], "last": call["last_version"]}
        return Finding.of(call, Verdict.NOT_JUDGED, Why.NOT_CALLED, **ends)
    if not call["fails_now"] and judged < _MIN_JUDGED * total:
        count, reasons = call["not_judged"], call["reasons"]
        return Finding.of(call, Verdict.NOT_JUDGED, Why.NOT_REPLAYED, count=count, total=total, reasons=reasons)
    compared = [pair for pair in pairs if pair["pair"] != Pair.NOT_JUDGED]
    if not any(pair["loaded"] for pair in compared):
        return Finding.of(call, Verdict.NOT_JUDGED, Why.NOT_RUN, total=total)
    if failing := [pair for pair in pairs if pair["pair"] == Pair.FAILS]:
        return Finding.of(call, Verdict.FAILED, Why.PAIRS_FAIL, judged=judged, failing=failing)
    limits = rules.limits_of(call)
    over = [pair for pair in pairs if pair["pair"] == Pair.DEARER and limits and _exceeds(pair, limits)]
    if not over:
        # What nobody ran successfully does not pass.
        succeeds = any(pair["success"] or pair["pair"] == Pair.SUCCEEDS for pair in compared)
        alike = Finding.of(call, Verdict.NO_BASELINE, Why.PAIRS_FAIL_ALIKE, judged=judged)
        return Finding.of(call, Verdict.PASSED) if succeeds else alike
    worst = max(over, key=lambda pair: pair["fee_after"] - pair["fee_before"])
    row = {**call, "limit": limits} | {name: worst[name] for name in _COSTS}
    figures = {"judged": judged, "over": len(over), "worst": worst, "limit": limits}
    return Finding.of(row, Verdict.FAILED, Why.PAIRS_RISE, **figures)


def _exceeds(pair: Mapping[str, Any], limits: Threshold) -> bool:
    unit = max(pair["gas_unit_price"], 1)
    return limits.exceeded(pair["fee_before"], pair["fee_after"], unit=unit) is not None
