"""Results as short HTML for notebooks: escaped, not typeset as mathematics, without colours of its own."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import literal
from toolkit._present.text import short_addresses, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["facts_html"]

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"


def facts_html(title: str, facts: Sequence[tuple[str, Any]]) -> str:
    """Return a titled table of facts.

    Parameters
    ----------
    title : str
    facts : sequence of (str, object)
        Names and values; values are shown by ``str``, at most 300 characters each; None is left out.

    Returns
    -------
    str
        HTML; text from a node is escaped, invisible characters in it are written as escapes, and MathJax ignores it.
    """
    rows = "".join(
        f'<tr><th style="{_CELL};font-weight:normal;opacity:.7">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(visible(value, 300))}</td></tr>'
        for name, value in facts
        if value is not None
    )
    head = escape(visible(short_addresses(title), 120))
    return literal(f'<strong>{head}</strong><table style="border-collapse:collapse;margin:4px 0">{rows}</table>')
