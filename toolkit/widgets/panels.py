"""A simulation as the pages of a tab: summary, gas, state changes, events, request. Pure: simulation in, HTML out."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from toolkit.widgets.markup import Html, code, folded, number, pairs, paragraph, safe, short_id, table
from toolkit.widgets.snippets import request_as_json, request_as_python

if TYPE_CHECKING:
    import pandas as pd

    from toolkit.client.node import Node
    from toolkit.client.results import Simulation
    from toolkit.wire.gas import GasBreakdown

__all__ = ["MOST_ROWS", "panels"]

MOST_ROWS = 100
"""Rows of a frame that a page shows; the frame itself has them all."""

_SHOWN_DATA = 40
_LAST_SECOND = 253_402_300_799
"""The end of year 9999, where dates end."""
_MODEL = "Model gas: the embedded node imitates a Move VM. Compare its numbers with each other only."


def panels(simulation: Simulation, node: Node) -> dict[str, Html]:
    """Return the pages by their titles.

    Parameters
    ----------
    simulation : Simulation
    node : Node
        Where it ran.

    Returns
    -------
    dict of str to Html
        In the order of the tab.
    """
    model = node.name == "embedded"
    return {
        "Summary": summary(simulation),
        "Gas": gas(simulation, model=model),
        f"State changes ({len(simulation.changes)})": changes(simulation),
        f"Events ({len(simulation.events)})": events(simulation),
        "Request": request(simulation, node),
    }


def summary(simulation: Simulation) -> Html:
    """Return how the transaction would end, and what it would cost."""
    row = _records(simulation.transactions)[0]
    word, kind = ("Success", "good") if simulation.success else ("Would fail", "bad")
    split = simulation.gas
    badge = Html(f'<span class="ltk-badge ltk-{kind}">{word}</span> {safe(simulation.vm_status)}')
    rows: list[tuple[str, Any]] = [
        ("Outcome", badge),
        ("Gas used", number(simulation.gas_used, "gas units")),
        ("Fee", None if split is None else number(split.fee_octas, "octas")),
        ("Net fee, after storage refund", None if split is None else number(split.net_octas, "octas")),
        ("Function", _mono(row["function"])),
        ("Sender", short_id(row["sender"])),
        ("Ran on version", number(simulation.ledger_version)),
        ("State changes", number(row["changes"])),
        ("Events", number(row["events"])),
    ]
    return _page(pairs(rows, "Summary"), _frame_note("transactions"))


def gas(simulation: Simulation, *, model: bool) -> Html:
    """Return where the gas went."""
    split = simulation.gas
    if split is None:
        text = "No gas was charged: the transaction was discarded before it ran, so there is no FeeStatement."
        return _page(paragraph(text))
    notes = [paragraph(_MODEL)] if model else []
    if split.reconciles:
        notes.append(paragraph("Parts are rounded up one by one, so they may exceed the total by up to 2 gas units."))
    else:
        notes.append(paragraph("The parts do not add up to the total charged.", "error"))
    return _page(_gas_table(split), _fee_table(split), *notes)


def _gas_table(split: GasBreakdown) -> Html:
    price = split.gas_unit_price
    storage = split.storage_fee_octas / price if price else 0.0
    parts = {
        "Execution": float(split.execution_gas_units),
        "Reads and writes (io)": float(split.io_gas_units),
        "Storage": storage,
    }
    whole = max(sum(parts.values()), 1.0)
    rows: list[tuple[Any, ...]] = [
        (name, f"{units:,.2f}".rstrip("0").rstrip("."), f"{units / whole:.0%}", _bar(units / whole))
        for name, units in parts.items()
    ]
    rows.append((Html("<b>Charged</b>"), Html(f"<b>{safe(number(split.total_charge_gas_units))}</b>"), "", ""))
    return table({"Part": "brief", "Gas units": "number", "Share": "number", "": "wide"}, rows, "Gas by part")


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


def _bar(share: float) -> Html:
    return Html(f'<span class="ltk-bar" aria-hidden="true"><span style="width:{share:.1%}"></span></span>')


def changes(simulation: Simulation) -> Html:
    """Return what would be written."""
    frame = simulation.changes
    rows = [
        (
            number(row["change_index"]),
            (row["type"] or "").replace("_", " "),
            short_id(row["handle"] if row["handle"] is not None else row["address"]),
            _changed(row),
            _data(row["data"] if row["data"] is not None else _hex(row["value"])),
        )
        for row in _records(frame)
    ]
    columns = {"#": "number", "Change": "brief", "Address or table": "brief", "What": "", "Written": "wide"}
    return _page(table(columns, rows, "State changes"), _frame_note("changes", len(frame)))


def _changed(row: dict[str, Any]) -> Html:
    name = row["resource_type"] or row["module"]
    return _mono(name) if name is not None else Html(f"key {_mono(_hex(row['key']))}")


def _hex(value: bytes | None) -> str | None:
    return None if value is None else "0x" + value.hex()


def events(simulation: Simulation) -> Html:
    """Return what would be emitted."""
    frame = simulation.events
    rows = [
        (number(row["event_index"]), _mono(row["type"]), _handle(row), _data(row["data"])) for row in _records(frame)
    ]
    columns = {"#": "number", "Type": "", "Handle": "brief", "Data": "wide"}
    return _page(table(columns, rows, "Events"), _frame_note("events", len(frame)))


def _handle(row: dict[str, Any]) -> Html:
    if row["creation_number"] == 0 and set(row["account_address"] or "") <= set("0x"):
        return safe("module event")
    return Html(f"{short_id(row['account_address'])} number {safe(row['creation_number'])}")


def request(simulation: Simulation, node: Node) -> Html:
    """Return what was asked, and what the node filled in."""
    row = _records(simulation.transactions)[0]
    filled = (
        ("Sequence number", number(row["sequence_number"])),
        ("Max gas amount", number(row["max_gas_amount"], "gas units")),
        ("Gas unit price", number(row["gas_unit_price"], "octas per gas unit")),
        ("Expires", _utc(row["expiration_timestamp_secs"])),
    )
    return _page(
        code(request_as_python(simulation.request, node), "The request as Python"),
        folded("The request as JSON", code(request_as_json(simulation.request), "The request as JSON")),
        paragraph("As the node ran it:"),
        pairs(filled, "As the node ran it"),
    )


def _utc(seconds: int | None) -> str | None:
    """Write seconds since 1970 as a date, where a date can be that late."""
    if seconds is None or seconds > _LAST_SECOND:
        return number(seconds, "seconds since 1970")
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the first rows as Python values, None where null."""
    from toolkit.dtypes import to_arrow

    rows: list[dict[str, Any]] = to_arrow(frame.head(MOST_ROWS)).to_pylist()
    return rows


def _mono(text: str | None) -> Html:
    """Return code that may break after its separators, as types and JSON are long words."""
    markup = safe(text)
    for mark in ("::", "&lt;", ","):
        markup = Html(markup.replace(mark, f"{mark}<wbr>"))
    return Html(f"<code>{markup}</code>")


def _data(text: str | None) -> Html:
    if text is None or len(text) <= _SHOWN_DATA:
        return _mono(text)
    return folded(_mono(text[:_SHOWN_DATA] + "\N{HORIZONTAL ELLIPSIS}"), _mono(text))


def _frame_note(name: str, rows: int = 1) -> Html:
    shown = f"First {MOST_ROWS} of {rows:,} rows. " if rows > MOST_ROWS else ""
    return paragraph(Html(f"{shown}The whole frame: <code>builder.simulation.{name}</code>"))


def _page(*parts: Html) -> Html:
    return Html(f'<div class="ltk-page">{"".join(parts)}</div>')
