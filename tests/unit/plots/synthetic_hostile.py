"""Labels nobody should trust, in place of the calls of the made-up run, and the texts that a figure draws."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import matplotlib as mpl

from toolkit.plots._labels import figure_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HOSTILE = {
    "chain id": "=cmd|'/c calc'!A1",
    "ledger time": "very long " * 40,
    "APT supply": "<script>alert(1)</script>",
    "balance of 0xb0b": "$x^2$ $\\frac{ \\$ $",
    "names registered": "\u202eevil\u202c \u0000\x1b[31m \u2066rtl שלום\u2069\r\n# next line",
    "vault total": "🚀 供应 \u200d\ufeff moon",
    "order book depth": "_a | b ` ``c`` [x](javascript:alert(1)) ]]> &amp;",
    "transfer 100": "z" + "\u0301" * 60,
    "register a taken name": '--></text><img src=x onerror=alert(1)> " style="fill: #0072b2"',
    "registrations": "",
}


def drawn_texts(ax: Axes) -> list[str]:
    """Return the texts of a figure as they are drawn: those of its SVG, in which mathtext would be taken apart."""
    svg = io.BytesIO()
    with mpl.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(svg, format="svg")
    root = ET.fromstring(svg.getvalue())
    return ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]


def texts(ax: Axes, gid: str) -> list[str]:
    """Return the texts of one kind."""
    return [artist.get_text() for artist in ax.findobj(lambda artist: artist.get_gid() == gid)]


def literal(label: str, limit: int) -> str:
    """Return a label as a figure shows it: cut, and with its dollar signs."""
    return figure_text(label, limit).replace(r"\$", "$")
