"""Tables of what was found: steps and timelines as the rows of their frames, data with the words that say it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.frames._columns import plain_rows, rows_frame
from toolkit.frames._schema import STEPS, TIMELINE
from toolkit.gas._cause_sentences import evidence_text, facts_text, not_seen_text, unread_text
from toolkit.gas._findings import NOT_LOOKED_FOR, Change, Timeline, Transaction
from toolkit.gas._observations import Cause, Part

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.gas._findings import Explanation
    from toolkit.gas._steps import Step


def step_row(step: Step, explanation: Explanation | None) -> dict[str, Any]:
    """Return a step as a row of the steps frame."""
    why = explanation or NOT_LOOKED_FOR
    row = {name: getattr(step, name) for name in STEPS.names if hasattr(step, name)}
    row |= {"cause": why.cause, "cause_parts": list(why.parts), "explanation": evidence_text(why.evidence)}
    return row | (why.transaction.columns() if why.transaction else {})


def steps_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return rows as the steps frame; what a row does not have is null."""
    return rows_frame(STEPS, {name: [row.get(name) for row in rows] for name in STEPS.names})


_ABOUT = ("first", "last", "requests", "initial")


def timeline_frame(timeline: Timeline) -> pd.DataFrame:
    """Return the changes of a timeline as a frame; what else it says is in the ``attrs``."""
    rows = [_change_row(change) for change in timeline.changes]
    frame = rows_frame(TIMELINE, {name: [row.get(name) for row in rows] for name in TIMELINE.names})
    times = {"first_time": timeline.first_time, "last_time": timeline.last_time}
    frame.attrs |= {name: getattr(timeline, name) for name in _ABOUT} | {
        "modules": list(timeline.modules),
        "unread": [unread_text(one) for one in timeline.unread],
        "not_seen": not_seen_text(timeline.initial),
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
    }
    return frame


def timeline_of(frame: pd.DataFrame) -> Timeline:
    """Return the timeline of a frame that `timeline_frame` returned; raise `SchemaError` if it is not such a frame."""
    about = frame.attrs
    missing = [name for name in TIMELINE.names if name not in frame.columns]
    missing += [name for name in ("first", "last", "modules") if name not in about]
    if missing:
        raise SchemaError(f"not a timeline: columns or attrs {missing} are missing")
    first, last = (about.get(name) for name in ("first_time", "last_time"))
    return Timeline(
        **{name: about[name] for name in _ABOUT if name in about},
        changes=tuple(map(_change, plain_rows(frame, TIMELINE.names))),
        modules=tuple(about["modules"]),
        unread=tuple(about.get("unread", ())),
        first_time=None if first is None else datetime.fromisoformat(first),
        last_time=None if last is None else datetime.fromisoformat(last),
    )


def _change_row(change: Change) -> dict[str, Any]:
    return {
        "ledger_version": change.ledger_version,
        "version_before": change.start,
        "exact": change.exact,
        "kind": change.kind.value,
        "what": facts_text(change.what),
        "modules": sorted(change.modules),
        "affects": sorted(change.affects),
        "parts": [part.value for part in Part if part in change.parts],
    } | (change.transaction.columns() if change.transaction else {})


def _change(row: Mapping[str, Any]) -> Change:
    facts = {name: row[f"transaction_{name}"] for name in ("hash", "type", "sender", "function")}
    return Change(
        ledger_version=row["ledger_version"],
        kind=Cause(row["kind"]),
        what=row["what"],
        parts=frozenset(map(Part, row["parts"])),
        modules=frozenset(row["modules"]),
        affects=frozenset(row["affects"]),
        version_before=None if row["exact"] else row["version_before"],
        transaction=Transaction(row["ledger_version"], **facts, time=row["time"]) if facts["type"] else None,
    )
