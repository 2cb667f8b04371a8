"""Draw the lesson diagrams: convert ``notebooks/figures/NN.txt`` to ``notebooks/course/figures/NN.svg``.

Each line of a source file describes a box, an arrow or text. Coordinates are in grid cells, with x to the right and y
down. ``|`` starts a new line of text.

    title "A question and its answer"
    box 0 0 3 1 accent "your notebook|node.view(...)"
    arrow 3 0.5 5 0.5 "a question"
    text 4 1.6 "nothing changes"

The tone of a box is plain, accent, good, bad or faint. A drawing has its own background, which follows the reader's
light or dark mode, so that it is readable on any page.
"""

from __future__ import annotations

import shlex
from html import escape
from pathlib import Path

SOURCES = Path(__file__).parent / "figures"
TARGETS = Path(__file__).parent / "course" / "figures"
_X, _Y, _MARGIN, _LINE = 76, 58, 20, 17
_STYLE = """
  svg { --paper: #ffffff; --ink: #1f2328; --line: #59636e; --plain: #f1f3f5; --accent: #d8ebfa; --good: #d5f2df;
    --bad: #ffe1d6; --faint: #ffffff; color-scheme: light dark; }
  @media (prefers-color-scheme: dark) { svg { --paper: #161b22; --ink: #e6edf3; --line: #9aa5b1; --plain: #262c36;
    --accent: #173a57; --good: #14432a; --bad: #5a2a1a; --faint: #161b22; } }
  text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: var(--ink); }
  .small { font-size: 13px; } .box { stroke: var(--line); stroke-width: 1.3; } .faint { stroke-dasharray: 4 4; }
  .arrow { stroke: var(--line); stroke-width: 1.6; fill: none; marker-end: url(#head); } .head { fill: var(--line); }
"""


def _lines(x: float, y: float, text: str, kind: str, anchor: str = "middle") -> str:
    """Return SVG text of one or more lines, vertically centred on a point."""
    lines = text.split("|")
    top = y - (len(lines) - 1) * _LINE / 2 + 5
    return "".join(
        f'<text x="{x:g}" y="{top + number * _LINE:g}" text-anchor="{anchor}" class="{kind}">{escape(line)}</text>'
        for number, line in enumerate(lines)
    )


def drawn(source: str) -> str:
    """Return the SVG for the text of a source file."""
    title, parts, right, bottom = "", [], 0.0, 0.0
    for line in filter(None, map(str.strip, source.splitlines())):
        what, *rest = shlex.split(line)
        if what == "title":
            title = rest[0]
            continue
        numbers = [float(one) for one in rest if one.replace(".", "", 1).isdigit()][: 2 if what == "text" else 4]
        x, y = numbers[0] * _X, numbers[1] * _Y
        right, bottom = max(right, x), max(bottom, y)
        if what == "box":
            width, height = numbers[2] * _X, numbers[3] * _Y
            tone, text = rest[4], rest[5]
            parts.append(
                f'<rect class="box {tone}" fill="var(--{tone})" x="{x:g}" y="{y:g}" '
                f'width="{width:g}" height="{height:g}" rx="7"/>'
            )
            parts.append(_lines(x + width / 2, y + height / 2, text, ""))
            right, bottom = max(right, x + width), max(bottom, y + height)
        elif what == "arrow":
            end, low = numbers[2] * _X, numbers[3] * _Y
            parts.append(f'<path class="arrow" d="M{x:g} {y:g} L{end:g} {low:g}"/>')
            right, bottom = max(right, end), max(bottom, low)
            if len(rest) > len(numbers):
                is_level = abs(end - x) > abs(low - y)
                above = 11 + (rest[4].count("|")) * _LINE / 2
                place = ((x + end) / 2, (y + low) / 2 - above) if is_level else ((x + end) / 2 + 8, (y + low) / 2)
                parts.append(_lines(*place, rest[4], "small", "middle" if is_level else "start"))
        else:
            parts.append(_lines(x, y, rest[2], "small"))
    width, height = right + 2 * _MARGIN, bottom + 2 * _MARGIN
    head = (
        '<marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="head" d="M0 0 L10 5 L0 10 z"/></marker>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}"'
        f' width="{width:g}" height="{height:g}"'
        f' role="img" aria-label="{escape(title)}">\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n'
        f'<defs>{head}</defs>\n<rect width="{width:g}" height="{height:g}" fill="var(--paper)"/>\n'
        f'<g transform="translate({_MARGIN} {_MARGIN})">\n' + "\n".join(parts) + "\n</g>\n</svg>\n"
    )


def diagrams() -> dict[Path, str]:
    """Return the SVG of each diagram, by path."""
    return {TARGETS / f"{path.stem}.svg": drawn(path.read_text("utf-8")) for path in sorted(SOURCES.glob("*.txt"))}
