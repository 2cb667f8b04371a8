"""Sentences about causes: the evidence for steps, and the changes in timelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit._present.text import short_addresses, visible
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import STEPS
from toolkit.gas import _findings as findings
from toolkit.gas._observations import Cause
from toolkit.gas._schedules import schedule_words
from toolkit.gas.causes._facts import facts_text, schedule_change

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.gas._steps import Step


# Changes that a sentence names; more make it longer than anybody reads.
_MAX_LISTED = 6


def explanation_text(why: findings.Explanation) -> str:
    """Return the evidence for a step's cause as text."""
    if why.note:
        return why.note
    clauses = [facts_text(some) for some in why.found.values()]
    if why.transaction is not None:
        what = "; and it ".join(clauses) or "wrote nothing that explains the step"
        return f"{transaction_text(why.transaction)} {what}"
    unread = "; ".join(f"{what}: {error}" for what, error in why.unread.items())
    if clauses:
        more = f" (could not be read: {unread})" if unread else ""
        return f"in between, the ledger {' and '.join(clauses)}{more}"
    if unread:
        return f"everything that could be read is the same at both versions; could not be read: {unread}"
    schedule = "the gas schedule"
    if why.schedule is not None:
        schedule = f"the prices of the gas schedule ({schedule_words(why.schedule.before, why.schedule.after)})"
    return f"{schedule}, the feature flags, {why.called} and the packages it needs are the same at both versions"


def transaction_text(by: findings.ChangingTransaction) -> str:
    """Return the version, called function and sender of a transaction as text."""
    payload = str(by.payload_type or "").removesuffix("_payload").replace("_", " ")
    what = by.function or (f"a {payload}" if payload else by.type)
    who = f" by {by.sender}" if by.sender else ""
    return visible(short_addresses(f"transaction {by.version:,} ({what}{who})"), 300)


# timelines ------------------------------------------------------------------------------------------------------------


def causes_text(changes: Sequence[findings.Change]) -> str:
    """Describe changes in the timeline as the explanation of a step of committed transactions."""
    if not changes:
        return "the gas schedule, the code and the configuration are the same before and after"
    texts = [_change_text(change) for change in changes[:_MAX_LISTED]]
    if len(changes) == 1:
        return texts[0]
    texts += [f"{len(changes) - _MAX_LISTED:,} more"] if len(changes) > _MAX_LISTED else []
    return f"one of {len(changes)} changes that these transactions cannot distinguish: {'; or '.join(texts)}"


def _change_text(change: findings.Change) -> str:
    what = change.what
    if not change.exact:
        return f"a transaction between versions {change.start:,} and {change.ledger_version:,} {what}"
    if change.transaction is None:
        return f"transaction {change.ledger_version:,} {what}"
    return f"{transaction_text(change.transaction)} {what}"


def unread_text(unread: findings.Unread) -> str:
    """Describe something that could not be read while searching for a timeline."""
    return f"{unread.name}{' ' if unread.versions else ''}{unread.versions}: {unread.why}"


def not_seen_text(initial: int) -> str:
    """Describe the changes that the search for a timeline cannot find."""
    return f"a change reverted between two of the {initial} sampled versions is not listed"


# rows of the steps frame ----------------------------------------------------------------------------------------------


def step_row(step: Step, explanation: findings.Explanation | None) -> dict[str, Any]:
    """Return a step as a row of the steps frame."""
    why = explanation or findings.NOT_LOOKED_FOR
    row = {name: getattr(step, name) for name in STEPS.names if hasattr(step, name)}
    gas = ("gas_before", "gas_after", "change")  # floats, as committed calls have means
    row |= {name: float(row[name]) for name in gas if row[name] is not None}
    row |= {"cause": why.cause, "cause_parts": list(why.found), "explanation": explanation_text(why)}
    if schedule := schedule_change(why.found.get(Cause.SCHEDULE, ())):
        row |= {"price_ratio": schedule.price_ratio, "rounded": schedule.rounded}
    return row | (why.transaction.columns() if why.transaction else {})


def steps_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a steps frame from rows; missing fields are null."""
    return frame_of_rows(STEPS, rows)
