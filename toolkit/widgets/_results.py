"""A simulation as HTML pages, and a request as Python and JSON. All text is escaped; nothing is fetched."""

from __future__ import annotations

import ast
import json
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from toolkit._present.text import cleaned
from toolkit.client._http import redacted_url
from toolkit.gas._series import MODEL_NOTICE
from toolkit.widgets._entries import estimates_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._results import Simulation
    from toolkit.wire import GasBreakdown, SimulationRequest

__all__ = ["MAX_ROWS", "Html", "code", "message", "pages", "request_as_json", "request_as_python", "safe"]

MAX_ROWS = 100
"""Rows of a frame that a page shows."""

_MAX_DATA = 40
_MAX_SECONDS = 253_402_300_799
"""End of the year 9999, the last that `datetime` can hold."""


def pages(simulation: Simulation, node: Node) -> dict[str, Html]:
    """Return the pages of a simulation by title, in the order of the tabs.

    Parameters
    ----------
    simulation : Simulation
    node : Node
        The node that ran it.

    Returns
    -------
    dict of str to Html
    """
    model = node.name == "embedded"
    return {
        "Summary": summary_page(simulation),
        "Gas": gas_page(simulation, model=model),
        f"State changes ({len(simulation.changes)})": changes_page(simulation),
        f"Events ({len(simulation.events)})": events_page(simulation),
        "Request": request_page(simulation, node),
    }


def summary_page(simulation: Simulation) -> Html:
    """Return outcome and cost."""
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
    return _joined(pairs(rows, "Summary"), _frame_note("transactions"))


def gas_page(simulation: Simulation, *, model: bool) -> Html:
    """Return the gas split and the fee."""
    split = simulation.gas
    if split is None:
        text = "No gas was charged: the transaction was discarded before it ran, so there is no FeeStatement."
        return _joined(paragraph(text))
    notes = [paragraph(f"Model gas. {MODEL_NOTICE}")] if model else []
    if split.reconciles:
        notes.append(paragraph("Each part is rounded up, so the parts may exceed the total by up to 2 gas units."))
    else:
        notes.append(paragraph("The parts do not add up to the total charged.", "error"))
    return _joined(_gas_table(split), _fee_table(split), *notes)


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


def changes_page(simulation: Simulation) -> Html:
    """Return the state changes."""
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
    return _joined(table(columns, rows, "State changes"), _frame_note("changes", len(frame)))


def _changed(row: dict[str, Any]) -> Html:
    name = row["resource_type"] or row["module"]
    return _mono(name) if name is not None else Html(f"key {_mono(_hex(row['key']))}")


def _hex(value: bytes | None) -> str | None:
    return None if value is None else "0x" + value.hex()


def events_page(simulation: Simulation) -> Html:
    """Return the events."""
    frame = simulation.events
    rows = [
        (number(row["event_index"]), _mono(row["type"]), _handle(row), _data(row["data"])) for row in _records(frame)
    ]
    columns = {"#": "number", "Type": "", "Handle": "brief", "Data": "wide"}
    return _joined(table(columns, rows, "Events"), _frame_note("events", len(frame)))


def _handle(row: dict[str, Any]) -> Html:
    if row["creation_number"] == 0 and set(row["account_address"] or "") <= set("0x"):
        return safe("module event")
    return Html(f"{short_id(row['account_address'])} number {safe(row['creation_number'])}")


def request_page(simulation: Simulation, node: Node) -> Html:
    """Return the request and the values that the node filled in."""
    row = _records(simulation.transactions)[0]
    filled = (
        ("Sequence number", number(row["sequence_number"])),
        ("Max gas amount", number(row["max_gas_amount"], "gas units")),
        ("Gas unit price", number(row["gas_unit_price"], "octas per gas unit")),
        ("Expires", _utc(row["expiration_timestamp_secs"])),
    )
    return _joined(
        code(request_as_python(simulation.request, node), "The request as Python"),
        folded("The request as JSON", code(request_as_json(simulation.request), "The request as JSON")),
        paragraph("Values the node used:"),
        pairs(filled, "Values the node used"),
    )


def _utc(seconds: int | None) -> str | None:
    """Format Unix seconds as a date if `datetime` can hold it."""
    if seconds is None or seconds > _MAX_SECONDS:
        return number(seconds, "seconds since 1970")
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the first `MAX_ROWS` rows as Python values."""
    from toolkit.dtypes import to_arrow

    rows: list[dict[str, Any]] = to_arrow(frame.head(MAX_ROWS)).to_pylist()
    return rows


def _mono(text: str | None) -> Html:
    """Return inline code with optional line breaks after separators: types and JSON are long words."""
    markup = safe(text)
    for mark in ("::", "&lt;", ","):
        markup = Html(markup.replace(mark, f"{mark}<wbr>"))
    return Html(f"<code>{markup}</code>")


def _data(text: str | None) -> Html:
    if text is None or len(text) <= _MAX_DATA:
        return _mono(text)
    return folded(_mono(text[:_MAX_DATA] + "\N{HORIZONTAL ELLIPSIS}"), _mono(text))


def _frame_note(name: str, rows: int = 1) -> Html:
    shown = f"First {MAX_ROWS} of {rows:,} rows. " if rows > MAX_ROWS else ""
    return paragraph(Html(f"{shown}The whole frame: <code>builder.simulation.{name}</code>"))


def _joined(*parts: Html) -> Html:
    return Html(f'<div class="ltk-page">{"".join(parts)}</div>')


_WIDTH = 60
_ESTIMATED = "estimated by the node"
_DEFAULT = "default of the toolkit"


def request_as_python(request: SimulationRequest, node: Node) -> str:
    """Return a Python program that sends the request to the node.

    Parameters
    ----------
    request : SimulationRequest
    node : Node
        The program names its URL without credentials.

    Returns
    -------
    str
    """
    target = "" if node.name == "embedded" else repr(redacted_url(node.url))
    return (
        f"import toolkit\n\nnode = toolkit.connect({target})\n"
        f"request = {format_expression(request.to_python())}\nsimulation = node.simulate(request)"
    )


def format_expression(expression: str, *, width: int = _WIDTH) -> str:
    """Break a Python expression of more than `width` characters into lines."""
    return _lines(expression, ast.parse(expression, mode="eval").body, "", width)


def _lines(source: str, node: ast.expr, indent: str, width: int) -> str:
    text = ast.get_source_segment(source, node) or ""
    if len(indent) + len(text) <= width:
        return text
    inner = indent + "    "
    parts: list[str]
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            brackets = (ast.unparse(function) + "(", ")")
            parts = [_lines(source, argument, inner, width) for argument in arguments]
            parts += [f"{word.arg}={_lines(source, word.value, inner, width)}" for word in keywords]
        case ast.List(elts=items):
            brackets = ("[", "]")
            parts = [_lines(source, item, inner, width) for item in items]
        case ast.Dict(keys=keys, values=values):
            brackets = ("{", "}")
            names = [ast.get_source_segment(source, key) for key in keys if key is not None]
            pairs = zip(names, values, strict=True)
            parts = [f"{name}: {_lines(source, value, inner, width)}" for name, value in pairs]
        case _:
            return text
    return brackets[0] + "".join(f"\n{inner}{part}," for part in parts) + f"\n{indent}{brackets[1]}"


def request_as_json(request: SimulationRequest, arguments: Sequence[Any] | None = None) -> str:
    """Return the request line and the JSON body of a simulation.

    Parameters
    ----------
    request : SimulationRequest
    arguments : sequence, optional
        Arguments as the ABI encodes them; by default as the request holds them.

    Returns
    -------
    str
        Values that the request leaves open are replaced by a note such as ``<estimated by the node>``.
    """
    estimates = estimates_of(request)
    query = urlencode(
        request.replace(**{f"estimate_{name}": asked for name, asked in estimates._asdict().items()}).query()
    )
    body = request.body(sequence_number=0, max_gas_amount=0, gas_unit_price=0, expiration_timestamp_secs=0)
    sources = {
        "sequence_number": "the sender's, read before sending",
        "max_gas_amount": _ESTIMATED if estimates.max_gas_amount else _DEFAULT,
        "gas_unit_price": _ESTIMATED if estimates.gas_unit_price else _DEFAULT,
        "expiration_timestamp_secs": f"ledger time + {50 if request.replay_protection_nonce is not None else 600} s",
    }
    body |= {name: f"<{words}>" for name, words in sources.items() if getattr(request, name) is None}
    if arguments is not None:
        body["payload"] = body["payload"] | {"arguments": list(arguments)}
    line = "POST /v1/transactions/simulate" + (f"?{query}" if query else "")
    return f"{line}\n\n{json.dumps(body, indent=2, ensure_ascii=False)}"


_NOTHING = "\N{EN DASH}"
_MAX_TEXT = 20_000
_MAX_ID = 22


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


def message(text: Any, kind: str = "note") -> Html:
    """Return a line that screen readers announce when it changes, with the CSS class ``ltk-{kind}``."""
    return Html(f'<div class="ltk-{kind}" role="status">{safe(text)}</div>')


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
