"""Text from users and from the chain, made harmless to show in a figure: no mathtext, no missing glyphs."""

from __future__ import annotations

from functools import lru_cache

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, get_font

from toolkit._present.text import visible

__all__ = ["figure_text"]


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
