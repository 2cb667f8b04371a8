"""The page of a replay: outcome, gas by part and by function, state changes and events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

from toolkit._present.text import distinct_addresses, short_addresses, visible
from toolkit.errors import InputError
from toolkit.fork._replay import key_text, status_words
from toolkit.plots import _style as style
from toolkit.plots import flame
from toolkit.reports._templates import environment, put

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.fork._replay import Replay

_MAX_ROWS = 200  # of a table; a page is read by people
_LEVEL = 0.34  # inches of a level of the flame graph
_GAS = ("part", "unit", "committed", "replayed", "difference")
_FUNCTIONS = ("function", "calls", "own_gas", "total_gas", "instructions")


def write_replay(replay: Replay, path: str | Path) -> Path:
    """Write the page of a replay as a single HTML file that loads nothing.

    Parameters
    ----------
    replay : Replay
    path : str or Path
        File name ending in ``.html``. Missing folders are created.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InputError
        If the suffix is another one, or the file cannot be written.
    """
    target = Path(path)
    if target.suffix.lower() != ".html":
        raise InputError(f"replay: expected a path ending in .html, got {visible(target.name, 80)!r}")
    put(target, render(replay), "replay")
    return target


def render(replay: Replay) -> str:
    """Return the page of a replay as HTML."""
    profile, execution = replay.profile, replay.execution
    functions = profile.to_frame().to_dict("records")
    levels = 1 + max(len(above) for above, _ in profile.tree.walk())
    alt = f"Gas by function of version {replay.ledger_version:,}"
    svg = style.inline_svg("flame", (9, 1.2 + _LEVEL * levels), alt, lambda ax: flame(profile, ax=ax, title=""))
    changes = [
        {"operation": write.op, "what": key_text(key), "bytes": None if write.value is None else len(write.value)}
        for key, write in execution.writes.items()
    ]
    events = [{"type": one.type, "number": one.sequence_number, "data": one.data.hex()} for one in execution.events]
    differences = replay.differences.to_dict("records")
    sender = short_addresses(replay.committed.signed.raw.sender)
    verdict = "Status, gas by part, events and writes of the replay are those of the ledger."
    if differences:
        verdict = "The replay differs from the ledger in what is listed below."
    if not replay.has_metadata:
        verdict += " The node does not serve the metadata of slots, so it was not compared."
    return (
        environment()
        .get_template("replay.html.j2")
        .render(
            page_colours=style.page_colours,
            title=f"Version {replay.ledger_version:,}: {short_addresses(replay.function or 'a script')}",
            outcome=f"Sent by {sender}; it {status_words(replay.committed.status)}.",
            verified=not differences,
            verdict=verdict,
            gas=_table(replay.gas_rows(), _GAS, _GAS[2:]),
            differences=_table(differences, ("what", "place", "committed", "replayed")),
            flame=Markup(svg),  # noqa: S704 - matplotlib escapes text
            functions=_table(functions, _FUNCTIONS, _FUNCTIONS[1:]),
            changes=_table(changes, ("operation", "what", "bytes"), ("bytes",)),
            events=_table(events, ("type", "number", "data"), ("number",)),
        )
    )


def _table(rows: Sequence[Mapping[Any, Any]], columns: Sequence[str], numbers: Sequence[str] = ()) -> dict[str, Any]:
    values = [[_known(row[name]) for name in columns] for row in rows[:_MAX_ROWS]]
    short = distinct_addresses(value for row in values for value in row if isinstance(value, str))
    kept = [
        [(name, short(value) if isinstance(value, str) else value) for name, value in zip(columns, row, strict=True)]
        for row in values
    ]
    return {"columns": columns, "numbers": numbers, "rows": kept}


def _known(value: Any) -> Any:
    return None if value is pd.NA or isinstance(value, float) else value
