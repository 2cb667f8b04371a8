"""What a builder shows: a simulation as HTML pages, and the elements of all pages.

All text in pages is escaped; nothing is fetched.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.text import cleaned, short_addresses
from toolkit.client._http import served_ledger
from toolkit.errors import ToolkitError
from toolkit.gas._series import MODEL_NOTICE
from toolkit.move import decode_bcs, encode_json, parse_type_tag
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._simulation import Simulation
    from toolkit.wire import GasBreakdown


MAX_ROWS = 100  # of a frame that a page shows; more make the page slow, and the frame has them
_MAX_DATA = 40  # characters of JSON in a cell before it is folded
_MAX_COMPARED = 20  # written values that differ from those of the simulation before
_MAX_SECONDS = 253_402_300_799  # end of the year 9999, the last that `datetime` can hold


def pages(
    simulation: Simulation,
    node: Node,
    *,
    name: str,
    before: Simulation | None = None,
    diff: pd.DataFrame | None = None,
) -> dict[str, Html]:
    """Return the pages of a simulation by title, in the order of the tabs.

    Parameters
    ----------
    simulation : Simulation
    node : Node
        The node that ran it.
    name : str
        What the reader calls the simulation, for hints: ``builder.simulation``.
    before : Simulation, optional
        The previous simulation of the same form, to compare with.
    diff : DataFrame, optional
        As `Simulation.diff`: adds the state before each change.

    Returns
    -------
    dict of str to Html
    """
    balances = simulation.balance_changes
    return {
        "Outcome": outcome_page(simulation, name, before),
        "Gas": gas_page(simulation, model=has_model_gas(node)),
        f"Balances ({len(balances)})": balances_page(balances, name),
        f"Changes ({len(simulation.changes)})": changes_page(simulation, name, diff),
        f"Events ({len(simulation.events)})": events_page(simulation, name),
        "Raw": raw_page(simulation),
    }


def outcome_page(simulation: Simulation, name: str, before: Simulation | None = None) -> Html:
    """Return the outcome in words, what differs from the previous simulation, and the values the node filled in."""
    row = _records(simulation.transactions)[0]
    title, *lines = simulation.explain().splitlines()
    words = "".join(f"<li>{_mono_words(line)}</li>" for line in lines)
    filled = (
        ("Ran on version", number(simulation.ledger_version)),
        ("Sequence number", number(row["sequence_number"])),
        ("Max gas amount", number(row["max_gas_amount"], "gas units")),
        ("Gas unit price", number(row["gas_unit_price"], "octas per gas unit")),
        ("Expires", _utc(row["expiration_timestamp_secs"])),
    )
    return _joined(
        Html(f'<p>{badge(simulation)} <strong class="ltk-title">{_mono_words(title)}</strong></p><ul>{words}</ul>'),
        Html("") if before is None else _comparison(before, simulation),
        folded("Values the node used", pairs(filled, "Values the node used")),
        _frame_note(name, "transactions"),
    )


def badge(simulation: Simulation) -> Html:
    """Return the outcome as a word."""
    word, kind = ("Success", "good") if simulation.success else ("Would fail", "bad")
    return Html(f'<span class="ltk-badge ltk-{kind}">{word}</span>')


def _mono_words(line: str) -> Html:
    """Return a sentence with break opportunities in its types and addresses."""
    return Html(safe(line).replace("::", "::<wbr>"))


def _comparison(before: Simulation, after: Simulation) -> Html:
    """Return what differs from the previous simulation: outcome, gas by part, number of changes and events."""
    rows: list[tuple[Any, ...]] = []
    if before.success != after.success:
        words = {True: "success", False: "would fail"}
        rows.append(("Outcome", words[before.success], words[after.success], ""))
    numbers = [("Gas used", before.gas_used, after.gas_used)]
    if before.gas is not None and after.gas is not None:
        numbers += [
            ("Execution", before.gas.execution_gas_units, after.gas.execution_gas_units),
            ("Reads and writes", before.gas.io_gas_units, after.gas.io_gas_units),
            ("Storage fee, octas", before.gas.storage_fee_octas, after.gas.storage_fee_octas),
        ]
    numbers += [
        ("State changes", len(before.changes), len(after.changes)),
        ("Events", len(before.events), len(after.events)),
    ]
    rows += [(what, number(one), number(two), f"{two - one:+,}") for what, one, two in numbers if one != two]
    state = _state_comparison(before, after)
    if not rows and not state:
        return paragraph("The same gas, state changes and number of events as in the simulation before.")
    columns = {"Compared with before": "brief", "before": "number", "now": "number", "difference": "number"}
    same = paragraph("The same gas, and as many changes and events, as in the simulation before.")
    return _joined(table(columns, rows, "Compared with the simulation before") if rows else same, state)


def _state_comparison(before: Simulation, after: Simulation) -> Html:
    """Return what is written differently than by the previous simulation; empty if nothing is."""
    old, new = ({_identity(row): row for row in _records(one.changes)} for one in (before, after))
    rows: list[tuple[Any, ...]] = []
    for slot in dict.fromkeys([*old, *new]):
        if slot not in old or slot not in new:
            one, two = ("written" if slot in known else "not written" for known in (old, new))
            rows.append((_place(old.get(slot) or new[slot]), "", one, two))
            continue
        one, two = _written(old[slot]), _written(new[slot])
        if isinstance(one, dict) and isinstance(two, dict):
            where, names = _place(new[slot]), _differing(one, two)
            rows += [(where, _mono(name), _field(one.get(name)), _field(two.get(name))) for name in names]
        elif one != two:
            rows.append((_place(new[slot]), "", _field(one), _field(two)))
    if not rows:
        return Html("")
    cut = f" The first {_MAX_COMPARED} of {len(rows):,} are shown." if len(rows) > _MAX_COMPARED else ""
    columns = {"Written state that differs": "", "field": "", "before": "wide", "now": "wide"}
    shown = table(columns, rows[:_MAX_COMPARED], "State compared with the simulation before")
    return _joined(shown, paragraph(cut.strip())) if cut else shown


def _written(row: dict[str, Any]) -> Any:
    """Return what a change writes: the JSON of a resource or of a decoded item, hex bytes, or None for a deletion."""
    item = _table_item(row)
    if item is not None:
        return item.get("value")
    return parse_json(row["data"], "change") if row["data"] else _hex(row["value"])


def _differing(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]


def _place(row: dict[str, Any]) -> Html:
    """Return where a change is written: address and type, or table and key."""
    where = short_id(row["handle"] if row["handle"] is not None else row["address"])
    return Html(f"{where} {_changed(row, _table_item(row))}")


def balances_page(frame: pd.DataFrame, name: str) -> Html:
    """Return the changes of balances, the fee included."""
    rows = [
        (
            short_id(row["owner"]),
            _type(row["asset"]),
            "unknown" if row["change"] is None else f"{row['change']:+,}",
            number(row["fee_octas"]),
            number(row["balance_after"]),
        )
        for row in _records(frame)
    ]
    columns = {"Owner": "brief", "Asset": "", "Change": "number", "of it fee": "number", "Balance after": "number"}
    note = paragraph("In base units; 100,000,000 octas are 1 APT. The fee is part of the change.")
    return _joined(table(columns, rows, "Balance changes"), note, _frame_note(name, "balance_changes", len(frame)))


def raw_page(simulation: Simulation) -> Html:
    """Return the node's answer."""
    text = json.dumps(json.loads(msgspec.json.encode(simulation.transaction)), indent=1, ensure_ascii=False)
    return _joined(code(text, "The node's answer as JSON"))


def gas_page(simulation: Simulation, *, model: bool) -> Html:
    """Return the gas split and the fee."""
    split = simulation.gas
    if split is None:
        text = "No gas was charged: the transaction was discarded before it ran, so there is no FeeStatement."
        return _joined(paragraph(text))
    notes = [model_note()] if model else []
    if split.reconciles:
        notes.append(paragraph("Each part is rounded up, so the parts may exceed the total by up to 2 gas units."))
    else:
        notes.append(paragraph("The parts do not add up to the total charged.", "error"))
    return _joined(_gas_figure(split), _gas_table(split), _fee_table(split), *notes)


def has_model_gas(node: Node) -> bool:
    """Return whether the gas of a node is that of the embedded node's model."""
    return node.name == "embedded" or served_ledger(node.url) is not None


def model_note() -> Html:
    """Return one line on the gas of the embedded node, which opens to how far it is from that of a real node."""
    return folded("Model gas: the embedded node is not a Move VM", paragraph(MODEL_NOTICE))


def _gas_parts(split: GasBreakdown) -> dict[str, float]:
    """Return gas units by part; storage is paid in octas."""
    price = split.gas_unit_price
    return {
        "Execution": float(split.execution_gas_units),
        "Reads and writes": float(split.io_gas_units),
        "Storage": split.storage_fee_octas / price if price else 0.0,
    }


def _gas_figure(split: GasBreakdown) -> Html:
    """Return the parts as one stacked bar with a legend, drawn by the page, so that it follows the theme."""
    parts = _gas_parts(split)
    whole = max(sum(parts.values()), 1.0)
    words = ", ".join(f"{name.lower()} {units / whole:.0%}" for name, units in parts.items())
    bar = "".join(
        f'<span class="ltk-part{place}" style="width:{units / whole:.2%}"></span>'
        for place, units in enumerate(parts.values())
    )
    return Html(f'<div class="ltk-stack" role="img" aria-label="Gas: {safe(words)}">{bar}</div>')


def _gas_table(split: GasBreakdown) -> Html:
    parts = _gas_parts(split)
    whole = max(sum(parts.values()), 1.0)
    rows: list[tuple[Any, ...]] = [
        (
            Html(f'<span class="ltk-dot ltk-part{place}" aria-hidden="true"></span>{safe(name)}'),
            f"{units:,.2f}".rstrip("0").rstrip("."),
            f"{units / whole:.0%}",
        )
        for place, (name, units) in enumerate(parts.items())
    ]
    rows.append((Html("<b>Charged</b>"), Html(f"<b>{safe(number(split.total_charge_gas_units))}</b>"), ""))
    return table({"Part": "brief", "Gas units": "number", "Share": "number"}, rows, "Gas by part")


def _fee_table(split: GasBreakdown) -> Html:
    price = number(split.gas_unit_price, "octas per gas unit")
    return pairs(
        (
            ("Gas unit price", price),
            ("Fee", number(split.fee_octas, "octas")),
            ("Storage fee, part of it", number(split.storage_fee_octas, "octas")),
            ("Storage refund", number(split.storage_fee_refund_octas, "octas")),
            ("Net", number(split.net_octas, "octas")),
        ),
        "Fee",
    )


def changes_page(simulation: Simulation, name: str, diff: pd.DataFrame | None = None) -> Html:
    """Return the state changes; with `diff` also the state before, field by field."""
    frame = simulation.changes
    before = {} if diff is None else {_identity(row): row for row in _records(diff)}
    blocks = [_change(row, before.get(_identity(row))) for row in _records(frame)]
    return _joined(*blocks, _frame_note(name, "changes", len(frame)))


def _change(row: dict[str, Any], known: dict[str, Any] | None) -> Html:
    """Return one change: what is written where, then before and after."""
    kind = (row["type"] or "").replace("_", " ")
    head = f'<p class="ltk-change"><span class="ltk-note">{safe(kind)}</span> {_place(row)}</p>'
    written = _written(row)
    if known is None:
        return Html(head if written is None else head + _value(written))
    raw = (known["before"] or "").startswith("0x")  # JSON texts start with a quote
    old = known["before"] if raw or known["before"] is None else parse_json(known["before"], "state before")
    if isinstance(old, dict) and isinstance(written, dict) and (fields := _differing(old, written)):
        rows = [(_mono(name), _field(old.get(name)), _field(written.get(name))) for name in fields]
        return Html(head + table({"Field": "brief", "Before": "wide", "After": "wide"}, rows, "Fields that differ"))
    words = "{} (BCS; the type is not known)"
    sides = [
        (words.format("before") if raw else "before", "new" if old is None else _value(old)),
        (
            words.format("after") if written is not None and not row["data"] else "after",
            "deleted" if written is None else _value(written),
        ),
    ]
    return Html(head + pairs(sides, "Before and after"))


def decoded_before(simulation: Simulation, diff: pd.DataFrame, node: Node) -> pd.DataFrame:
    """Return a diff with the values of table items before as JSON if their type is known, else as hex of their BCS.

    Parameters
    ----------
    simulation : Simulation
    diff : DataFrame
        As `Simulation.diff` returns it.
    node : Node
        Has the modules of the types.

    Returns
    -------
    DataFrame
        A type is known if the node reports it, or if the simulation writes the resource that declares the table.
    """
    abis = node.abis.at(simulation.ledger_version, lenient=True)
    before = []
    for row in _records(diff, None):
        value = row["before"]
        if row["handle"] is not None and value is not None:
            with suppress(ToolkitError):
                layout = abis.layout(parse_type_tag(simulation.item_types(row["handle"])[1]))
                value = _compact(encode_json(layout, decode_bcs(layout, parse_hex(value))))
        before.append(value)
    return diff.assign(before=before)


def _value(value: Any) -> Html:
    """Return a value that was written, as JSON; bytes are hex already."""
    return _data(value if isinstance(value, str) and value.startswith("0x") else _compact(value))


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in ("address", "resource_type", "handle", "key"))


def _table_item(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return key and value of a table item that the node decoded."""
    if row["handle"] is None or not row["data"]:
        return None
    item = parse_json(row["data"], "table item")
    return item if isinstance(item, dict) and "key" in item else None


def _compact(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _changed(row: dict[str, Any], item: dict[str, Any] | None) -> Html:
    name = row["resource_type"] or row["module"]
    if name is not None:
        return _type(name)
    return Html(f"key {_mono(_hex(row['key'])) if item is None else _field(item['key'])}")


def _hex(value: bytes | None) -> str | None:
    return None if value is None else "0x" + value.hex()


def events_page(simulation: Simulation, name: str) -> Html:
    """Return the events."""
    frame = simulation.events
    rows = [
        (number(row["event_index"]), _type(row["type"]), _handle(row), _data(row["data"])) for row in _records(frame)
    ]
    columns = {"#": "number", "Type": "", "Handle": "brief", "Data": "wide"}
    return _joined(table(columns, rows, "Events"), _frame_note(name, "events", len(frame)))


def _handle(row: dict[str, Any]) -> Html:
    if row["creation_number"] == 0 and set(row["account_address"] or "") <= set("0x"):
        return safe("module event")
    return Html(f"{short_id(row['account_address'])} number {safe(row['creation_number'])}")


def _utc(seconds: int | None) -> str | None:
    """Format Unix seconds as a date if `datetime` can hold it."""
    if seconds is None or seconds > _MAX_SECONDS:
        return number(seconds, "seconds since 1970")
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _records(frame: pd.DataFrame, most: int | None = MAX_ROWS) -> list[dict[str, Any]]:
    """Return the first rows as Python values."""
    from toolkit.dtypes import to_arrow

    rows: list[dict[str, Any]] = to_arrow(frame if most is None else frame.head(most)).to_pylist()
    return rows


def _mono(text: str | None) -> Html:
    """Return inline code with optional line breaks after separators: types and JSON are long words."""
    markup = safe(text)
    for mark in ("::", "&lt;", ","):
        markup = Html(markup.replace(mark, f"{mark}<wbr>"))
    return Html(f"<code>{markup}</code>")


def _type(text: str | None) -> Html:
    """Return a type with its long addresses shortened; the tooltip has all of it."""
    short = short_addresses(text or "")
    return _mono(text) if text is None or short == text else Html(f'<span title="{safe(text)}">{_mono(short)}</span>')


def _data(text: str | None) -> Html:
    if text is None or len(text) <= _MAX_DATA:
        return _mono(text)
    return folded(_mono(text[:_MAX_DATA] + "\N{HORIZONTAL ELLIPSIS}"), _mono(text))


def _field(value: Any) -> Html:
    """Return a value of a field; coins and counters are structs of one field, whose value is enough."""
    while isinstance(value, dict) and len(value) == 1:
        value = next(iter(value.values()))
    return _data(value if isinstance(value, str) else _compact(value))


def _frame_note(name: str, frame: str, rows: int = 1) -> Html:
    shown = f"First {MAX_ROWS} of {rows:,} rows. " if rows > MAX_ROWS else ""
    return paragraph(Html(f"{shown}As a frame: <code>{safe(name)}.{safe(frame)}</code>"))


def _joined(*parts: Html) -> Html:
    return Html(f'<div class="ltk-page">{"".join(parts)}</div>')


_NOTHING = "\N{EN DASH}"
_MAX_TEXT = 20_000  # characters of a value; the browser stays quick
_MAX_ID = 22  # characters of an address that is not shortened


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def safe(value: Any) -> Html:
    """Return a value as HTML: escaped, with invisible and bidirectional characters shown as escapes."""
    if isinstance(value, Html):
        return value
    text = _NOTHING if value is None else str(value)
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}... ({len(text):,} characters)"
    return Html(escape(cleaned(text)))


def number(value: int | None, unit: str = "") -> str | None:
    """Format an integer with thousands separators and a unit."""
    return None if value is None else f"{value:,} {unit}".rstrip()


def code(text: str, label: str) -> Html:
    """Return a block of code that takes the keyboard focus, so that it can be scrolled."""
    return Html(f'<pre class="ltk-code" tabindex="0" role="region" aria-label="{safe(label)}">{safe(text)}</pre>')


def paragraph(text: Any, kind: str = "note") -> Html:
    """Return a paragraph with the CSS class ``ltk-{kind}``."""
    return Html(f'<p class="ltk-{kind}">{safe(text)}</p>')


def folded(title: Any, inside: Any) -> Html:
    """Return a section that is closed until it is clicked."""
    return Html(f'<details class="ltk-fold"><summary>{safe(title)}</summary>{safe(inside)}</details>')


def short_id(text: str | None) -> Html:
    """Return an address, handle or hash shortened in the middle; the tooltip has all of it."""
    if text is None:
        return safe(None)
    stripped = "0x" + (text.removeprefix("0x").lstrip("0") or "0")
    if len(stripped) <= _MAX_ID:
        return Html(f'<code title="{safe(text)}">{safe(stripped)}</code>')
    return Html(f'<code title="{safe(text)}">{safe(stripped[:12])}\N{HORIZONTAL ELLIPSIS}{safe(stripped[-6:])}</code>')


def pairs(rows: Iterable[tuple[Any, Any]], caption: str) -> Html:
    """Return a table of two columns, names and values."""
    body = "".join(f'<tr><th scope="row">{safe(name)}</th><td>{safe(value)}</td></tr>' for name, value in rows)
    return Html(f'<table class="ltk-table ltk-pairs"><caption>{safe(caption)}</caption><tbody>{body}</tbody></table>')


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], caption: str) -> Html:
    """Return a table; `columns` maps headings to CSS classes: number, brief, wide or an empty string."""
    marks = [f' class="ltk-{kind}"' if kind else "" for kind in columns.values()]
    head = "".join(f'<th scope="col"{mark}>{safe(name)}</th>' for name, mark in zip(columns, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{safe(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="ltk-scroll" tabindex="0" role="region" aria-label="{safe(caption)}">'
        f'<table class="ltk-table"><caption>{safe(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


_PICTURE_NOTE = (
    "This is a picture of the form from when the cell ran. Run the cell to use it. To store a later state, show the "
    "form again in a new cell, then save."
)


def picture(
    title: str, facts: Iterable[tuple[str, Any]], program: str, parts: Iterable[str], *, caption: str = "Entries"
) -> str:
    """Return a form as HTML that does not need the kernel, for saved notebooks.

    Parameters
    ----------
    title : str
    facts : iterable of (str, object)
        Labels and what was entered.
    program : str
        The request as Python.
    parts : iterable of str
        Pages of results, or pictures of forms, whose note is said once.
    caption : str, default "Entries"
        Of the facts: sites that remove style sheets show it.
    """
    shown, note = "".join(parts), paragraph(_PICTURE_NOTE)
    text = code(program, "The request as Python") if program else ""
    body = f"<strong>{safe(title)}</strong>{pairs(facts, caption)}{text}{shown.replace(note, '')}{note}"
    return f'<div class="ltk ltk-picture">{body}</div>'
