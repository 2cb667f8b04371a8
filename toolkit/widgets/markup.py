"""Small pieces of HTML. Every text passes `safe` on its way in, so nothing a node says can become markup."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Html", "code", "folded", "message", "number", "pairs", "paragraph", "safe", "short_id", "table"]

_NOTHING = "\N{EN DASH}"
_LONGEST = 20_000
_SHOWN_ID = 22


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def safe(value: Any) -> Html:
    """Return a value as markup: text escaped, invisible and direction-changing characters written out."""
    if isinstance(value, Html):
        return value
    text = _NOTHING if value is None else str(value)
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}... ({len(text):,} characters)"
    if not text.isprintable():
        text = "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
    return Html(escape(text))


def number(value: int | None, unit: str = "") -> str | None:
    """Write a whole number with thousands separators and its unit."""
    return None if value is None else f"{value:,} {unit}".rstrip()


def code(text: str, label: str) -> Html:
    """Return a block of code that can be reached and scrolled by keyboard."""
    return Html(f'<pre class="ltk-code" tabindex="0" role="region" aria-label="{safe(label)}">{safe(text)}</pre>')


def paragraph(text: Any, kind: str = "note") -> Html:
    """Return a line of text; `kind` is the end of its CSS class."""
    return Html(f'<p class="ltk-{kind}">{safe(text)}</p>')


def message(text: Any, kind: str = "note") -> Html:
    """Return a line whose changes screen readers tell; `kind` is the end of its CSS class."""
    return Html(f'<div class="ltk-{kind}" role="status">{safe(text)}</div>')


def folded(title: Any, inside: Any) -> Html:
    """Return something that opens when asked."""
    return Html(f'<details class="ltk-fold"><summary>{safe(title)}</summary>{safe(inside)}</details>')


def short_id(text: str | None) -> Html:
    """Return an address, handle or hash cut in the middle, whole in its tooltip."""
    if text is None:
        return safe(None)
    stripped = "0x" + (text.removeprefix("0x").lstrip("0") or "0")
    if len(stripped) <= _SHOWN_ID:
        return Html(f'<code title="{safe(text)}">{safe(stripped)}</code>')
    return Html(f'<code title="{safe(text)}">{safe(stripped[:12])}\N{HORIZONTAL ELLIPSIS}{safe(stripped[-6:])}</code>')


def pairs(rows: Iterable[tuple[Any, Any]], caption: str) -> Html:
    """Return a table of names and values."""
    body = "".join(f'<tr><th scope="row">{safe(name)}</th><td>{safe(value)}</td></tr>' for name, value in rows)
    return Html(f'<table class="ltk-table ltk-pairs"><caption>{safe(caption)}</caption><tbody>{body}</tbody></table>')


def table(columns: Mapping[str, str], rows: Iterable[Sequence[Any]], caption: str) -> Html:
    """Return a table; each heading comes with the end of its column's CSS class: number, brief, wide or none."""
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
