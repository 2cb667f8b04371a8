"""Text from users and from the chain, made harmless to show: no control characters, no mathtext, no tofu.

On-chain text is hostile. `visible` is for any place; `figure_text` is for matplotlib.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font

__all__ = ["figure_text", "visible"]

ELLIPSIS = "…"
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
MAX_MARKS = 2
"""Combining marks kept on one letter; a tower of them would run over the neighbouring lines."""


def visible(text: object, limit: int = 200) -> str:
    r"""Return `text` on one line, with what a reader cannot see written as an escape.

    Control, bidirectional-override, zero-width, private-use and surrogate characters become
    ``\n``, ``\u202e`` and the like, so text can neither hide nor reorder what stands around it.

    Parameters
    ----------
    text : object
        Shown by ``str``.
    limit : int, default 200
        Most characters returned; what is cut off is marked by an ellipsis.

    Returns
    -------
    str
    """
    shown: list[str] = []
    size = marks = 0
    for char in unicodedata.normalize("NFC", str(text)[: 4 * limit]):
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks > MAX_MARKS:
            continue
        shown.append(_escaped(char))
        size += len(shown[-1])
        if size > limit:
            break
    if size <= limit:
        return "".join(shown)
    while shown and size > limit - 1:
        size -= len(shown.pop())
    return "".join(shown) + ELLIPSIS


def _escaped(char: str) -> str:
    if unicodedata.category(char) not in HIDDEN:
        return char
    return char.encode("unicode_escape").decode("ascii")


def figure_text(text: object, limit: int = 36) -> str:
    """Return `text` as matplotlib shows it literally, with the fonts set now.

    Dollar signs are escaped, so nothing is read as mathtext; characters no set font has are shown
    as a box, so drawing never warns about missing glyphs.

    Parameters
    ----------
    text : object
        Shown by ``str``.
    limit : int, default 36
        Most characters returned, escapes of dollar signs not counted.

    Returns
    -------
    str
    """
    known = _characters(tuple(mpl.rcParams["font.family"]))
    box = "□" if ord("□") in known else "?"
    shown = "".join(char if ord(char) in known else box for char in visible(text, limit))
    return shown.replace("$", r"\$")


@lru_cache(maxsize=8)
def _characters(families: tuple[str, ...]) -> frozenset[int]:
    """Code points the fonts of `families` can draw; matplotlib falls back from one to the next."""
    paths = {findfont(FontProperties(family=[family])) for family in families}
    return frozenset().union(*(get_font(path).get_charmap() for path in paths))
