"""HTML elements of a form's pages. Text is escaped, and pages fetch nothing."""

from __future__ import annotations

import base64
import io
import json
import re
from html import escape
from typing import TYPE_CHECKING, Any

from toolkit._present.text import cleaned, short_addresses, utc, visible
from toolkit.client import _http as http
from toolkit.wire import EntryFunction
from toolkit.wire._models import wire_argument
from toolkit.wire._requests import called_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from matplotlib.figure import Figure

    from toolkit.client._node import Node
    from toolkit.wire import SimulationRequest


MAX_ROWS = 100  # rows of a frame that a page shows; more make the page slow
_NOTHING = "\N{EN DASH}"
_MAX_ARGUMENTS = 60  # characters of the arguments of a call: two lines of a column
_MAX_TEXT = 20_000  # characters of a value; more make the page slow


class Html(str):
    """Text that is already HTML."""

    __slots__ = ()


def safe(value: Any) -> Html:
    """Return a value as escaped HTML, with invisible and bidirectional characters shown as escape sequences."""
    if isinstance(value, Html):
        return value
    text = _NOTHING if value is None else str(value)
    if len(text) > _MAX_TEXT:
        text = f"{text[:_MAX_TEXT]}... ({len(text):,} characters)"
    return Html(escape(cleaned(text)))


def breakable(value: Any) -> Html:
    """Return escaped text in which a name may continue on the next line after ``::``."""
    return Html(safe(value).replace("::", "::<wbr>"))


def number(value: int | None, unit: str = "") -> str | None:
    """Format an integer with thousands separators and a unit."""
    return None if value is None else f"{value:,} {unit}".rstrip()


def called_words(request: SimulationRequest, names: Mapping[str, str]) -> str:
    """Describe a request by what it calls and its sender, who may have one of the `names`."""
    payload = called_by(request.payload)
    what = f"a {type(payload).__name__} payload"
    if isinstance(payload, EntryFunction):
        given = (one if isinstance(one, str) else json.dumps(one) for one in map(wire_argument, payload.arguments))
        what = f"{payload.function}({visible(short_addresses(', '.join(given)), _MAX_ARGUMENTS)})"
    return f"{short_addresses(what)} from {names.get(request.sender) or short_addresses(request.sender)}"


def code(text: str, label: str) -> Html:
    """Return a code block that can receive the keyboard focus, so that it can be scrolled."""
    return Html(f'<pre class="ltk-code" tabindex="0" role="group" aria-label="{safe(label)}">{safe(text)}</pre>')


def paragraph(text: Any, kind: str = "note") -> Html:
    """Return a paragraph with the CSS class ``ltk-{kind}``."""
    return Html(f'<p class="ltk-{kind}">{safe(text)}</p>')


def folded(title: Any, inside: Any) -> Html:
    """Return a section that is initially collapsed."""
    return Html(f'<details class="ltk-fold"><summary>{safe(title)}</summary>{safe(inside)}</details>')


def response(text: str) -> Html:
    """Return a collapsed section with what the node answered, as JSON."""
    return folded("The response as JSON", code(text, "The response as JSON"))


def short_id(text: str | None) -> Html:
    """Return a shortened address, handle or hash, with a tooltip that shows it in full."""
    if text is None:
        return safe(None)
    return Html(f'<code class="ltk-id" title="{safe(text)}">{safe(short_addresses(text))}</code>')


def pairs(rows: Iterable[tuple[Any, Any]], caption: str) -> Html:
    """Return a table with two columns: names and values."""
    body = "".join(f'<tr><th scope="row">{safe(name)}</th><td>{safe(value)}</td></tr>' for name, value in rows)
    return Html(f'<table class="ltk-table ltk-pairs"><caption>{safe(caption)}</caption><tbody>{body}</tbody></table>')


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], caption: str) -> Html:
    """Return a table; `columns` maps headings to a CSS class (number, brief or wide) or an empty string."""
    marks = [f' class="ltk-{kind}"' if kind else "" for kind in columns.values()]
    # The name of a column may continue on the next line.
    names = [re.sub("([_.])", "\\1<wbr>", safe(name)) for name in columns]
    head = "".join(f'<th scope="col"{mark}>{name}</th>' for name, mark in zip(names, marks, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{mark}>{safe(cell)}</td>" for cell, mark in zip(row, marks, strict=True)) + "</tr>"
        for row in rows
    )
    return Html(
        f'<div class="ltk-scroll" tabindex="0" role="group" aria-label="{safe(caption)}">'
        f'<table class="ltk-table"><caption>{safe(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def origin(versions: str, time: datetime | None, *, of: str = "ledger time") -> str:
    """Return the origin of a result as text: ledger versions, and a time with what it is the time `of`."""
    return versions + ("" if time is None else f", {of} {utc(time)}")


def page(*parts: str) -> Html:
    """Return a page that contains these parts, which are HTML."""
    return Html(f'<div class="ltk-page">{"".join(parts)}</div>')


def has_model_gas(node: Node) -> bool:
    """Return whether a node's gas comes from the gas model of the embedded node."""
    return node.name == "embedded" or http.has_model_gas(node)


def model_note() -> Html:
    """Return one line about the embedded node's gas; it expands to show how much a real node's gas may differ."""
    from toolkit.gas._series import MODEL_NOTICE

    return folded("Model gas: the embedded node is not a Move VM", paragraph(MODEL_NOTICE))


def figure_html(figure: Figure, words: str) -> Html:
    """Return a figure as an image without a background, which the style sheet inverts or makes white on dark pages."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=150, transparent=True)
    encoded = base64.b64encode(data.getvalue()).decode()
    width = round(100 * figure.get_figwidth())  # for sites that remove style sheets
    return Html(f'<img class="ltk-plot" width="{width}" alt="{safe(words)}" src="data:image/png;base64,{encoded}">')
