"""Text from users and from the chain, made safe to show on a terminal, in a page, in a figure or in a spreadsheet."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["cleaned", "csv_text", "listed", "short_addresses", "visible"]

ELLIPSIS = "…"
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_UNSEEN = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters and marks that are drawn as nothing
_UNSEEN_AT_ALL = re.compile(f"[{_UNSEEN}]")
_FORMULA = frozenset("=+-@|%")
_ADDRESS = re.compile(r"\b0x([0-9a-f]{1,64})\b")
_MAX_WHOLE_DIGITS = 16
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


def cleaned(text: str) -> str:
    r"""Return `text` with what a reader cannot see written as an escape; lines stay lines, nothing is cut.

    Parameters
    ----------
    text : str
        A message that may quote text from a node.

    Returns
    -------
    str
        Without control characters (but newlines), bidirectional or zero-width characters and surrogates. Cleaning it
        again changes nothing.
    """
    if text.isprintable() and not _UNSEEN_AT_ALL.search(text):
        return text
    return "".join(char if char == "\n" else _escaped(char) for char in text)


def csv_text(text: str) -> str:
    r"""Return the text of a CSV cell so that no spreadsheet runs it as a formula.

    Parameters
    ----------
    text : str
        Any text; numbers are not text and need no guard.

    Returns
    -------
    str
        With an apostrophe in front if the text starts with ``= + - @ | %``, also in their full-width or small forms
        and behind white space or invisible characters, or with a tab or a line break.
    """
    if text.startswith(("\t", "\r", "\n")):
        return f"'{text}"
    first = next((char for char in text if not (char.isspace() or _hidden(char))), "")
    if unicodedata.normalize("NFKC", first) in _FORMULA:
        return f"'{text}"
    return text


def listed(names: Iterable[str], limit: int) -> str:
    """Return names separated by commas, at most `limit` of them, and the number of those left out.

    Examples
    --------
    >>> listed("abc", 2)
    'a, b and 1 more'
    """
    found = list(names)
    more = f" and {len(found) - limit:,} more" if len(found) > limit else ""
    return ", ".join(found[:limit]) + more


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in HIDDEN or char in _UNSEEN


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if _hidden(char) else char


def short_addresses(text: str) -> str:
    """Shorten the addresses in a text: without leading zeros, long ones to their first and last digits.

    Parameters
    ----------
    text : str
        Text with any number of addresses, handles and hashes in lower case.

    Returns
    -------
    str
        For display only: two long addresses with the same first and last digits look the same.
    """
    return _ADDRESS.sub(lambda found: _short(found[1].lstrip("0") or "0"), text)


def _short(digits: str) -> str:
    return f"0x{digits}" if len(digits) <= _MAX_WHOLE_DIGITS else f"0x{digits[:6]}{ELLIPSIS}{digits[-4:]}"
