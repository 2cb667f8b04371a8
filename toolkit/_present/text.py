"""Text for display: escaped text from users and the chain, shortened addresses, and numbers.

Numbers have thousands separators, also ledger versions; codes and chain ids have none. Factors and percentages are set
as in print: a multiplication sign, a minus sign, and a narrow space before the percent sign, which keeps a line from
breaking there.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from decimal import Decimal

ELLIPSIS = "…"
MINUS = "\u2212"
PERCENT = "\u202f%"
# Unicode categories without a glyph: controls, formats, surrogates, private use, unassigned, and line separators.
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS = "\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters and marks without a visible glyph
_HAS_BLANK_LETTER = re.compile(f"[{_BLANK_LETTERS}]").search
_FORMULA_STARTS = frozenset("=+-@|%")
_MODULE_ID = re.compile(r'(?:Module )?ModuleId \{ address: (?:0x)?([0-9a-f]{1,64}), name: Identifier\("(\w+)"\) \}')
# Addresses in full, and those of nodes that omit leading zeros; other hex digits are data, such as the bytes of a key.
_ADDRESS = re.compile(r"\b0x([0-9a-f]{60,64})\b")
# Addresses in full that have at most 16 digits without leading zeros; people choose such addresses.
_PADDED = re.compile(r"\b0x(?=[0-9a-f]{64}\b)0{48,63}([0-9a-f]{1,16})\b")
# Digits that are shown of a long address, at its beginning and at its end.
_HEAD = 6
_TAIL = 4
_WHOLE = 999.5  # percent from which on they are whole numbers
MAX_MARKS = 2  # maximum number of combining marks per letter; more of them would overlap neighbouring lines


def _without_debug(text: str) -> str:
    """Return a node's text with the ids of modules as in Move, not as Rust prints them."""
    if "ModuleId {" not in text:
        return text
    return _MODULE_ID.sub(lambda found: f"{short_addresses(f'0x{found[1]}')}::{found[2]}", text)


def visible(text: object, limit: int = 200) -> str:
    r"""Return `text` on one line, with invisible characters escaped.

    Control, bidirectional-override, zero-width, private-use and surrogate characters become
    ``\n``, ``\u202e`` and the like, so that text cannot hide or reorder the text around it.

    Parameters
    ----------
    text : object
        Any object, converted by ``str``.
    limit : int, default 200
        Maximum number of characters returned; longer text is truncated and ends with an ellipsis.

    Returns
    -------
    str
    """
    text = str(text)
    if len(text) <= limit and text.isascii() and text.isprintable() and "ModuleId {" not in text:
        return text  # as nearly all texts, most of which are in figures of a report
    shown: list[str] = []
    size = marks = 0
    # Only the beginning of a long text is looked at; four characters for each one shown leave room for combining marks.
    for char in unicodedata.normalize("NFC", _without_debug(text)[: 4 * limit]):
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
    r"""Return `text` with invisible characters escaped; line breaks are preserved and nothing is truncated.

    Parameters
    ----------
    text : str
        A message that may quote text from a node.

    Returns
    -------
    str
        The text without control characters (except newlines), bidirectional and zero-width characters, and
        surrogates. The function is idempotent.
    """
    text = _without_debug(text)
    if text.isprintable() and not _HAS_BLANK_LETTER(text):
        return text
    return "".join(char if char == "\n" else _escaped(char) for char in text)


def csv_text(text: str) -> str:
    r"""Return the text of a CSV cell, escaped so that spreadsheets do not run it as a formula.

    Parameters
    ----------
    text : str
        Any text. Numbers do not need to be escaped.

    Returns
    -------
    str
        The text, with a leading apostrophe if it starts with a tab, a line break or one of ``= + - @ | %``. Full-width
        and small forms count too, as do these characters after white space or invisible characters.
    """
    first = next((char for char in text if not (char.isspace() or _hidden(char))), "")
    formula = text.startswith(("\t", "\r", "\n")) or unicodedata.normalize("NFKC", first) in _FORMULA_STARTS
    return f"'{text}" if formula else text


def listed(names: Iterable[str], limit: int) -> str:
    """Return at most `limit` names separated by commas, and the number of names omitted.

    Examples
    --------
    >>> listed("abc", 2)
    'a, b and 1 more'
    """
    found = list(names)
    more = f" and {len(found) - limit:,} more" if len(found) > limit else ""
    return ", ".join(found[:limit]) + more


def both(names: Iterable[str]) -> str:
    """Return a few names as in a sentence, and of more than four the first ones and the last.

    >>> both(["1", "2"]), both("abcde")
    ('1 and 2', 'a, b, c, … and e')
    """
    *some, last = names
    shown = some if len(some) <= 3 else [*some[:3], ELLIPSIS]  # noqa: PLR2004 - a line
    return f"{', '.join(shown)} and {last}" if shown else last


def utc(time: datetime) -> str:
    """Return a time as a sentence has it, to the second: ``2026-06-01 00:28:48 UTC``."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _hidden(char: str) -> bool:
    return unicodedata.category(char) in HIDDEN or char in _BLANK_LETTERS


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii") if _hidden(char) else char


def without_padding(text: str) -> str:
    """Return a text in which padded addresses are without their leading zeros, such as ``0xb0b``.

    Longer addresses, handles and hashes keep a zero at their beginning.
    """
    return _PADDED.sub(r"0x\1", text)


def short_addresses(text: str) -> str:
    """Shorten the addresses in a text: remove zeros as `without_padding` does, and cut long ones in the middle.

    Parameters
    ----------
    text : str
        Text with any number of addresses, handles and hashes in lower case. Other hex digits are not changed.

    Returns
    -------
    str
        For display only: two long addresses with the same first and last digits look the same.
    """
    return _ADDRESS.sub(lambda match: _short(match[1]), without_padding(text))


def _short(digits: str, extra: int = 0) -> str:
    """Return a long address, given its digits, with `extra` more digits at each end."""
    head, tail = _HEAD + extra, _TAIL + extra
    return f"0x{digits}" if len(digits) <= head + tail else f"0x{digits[:head]}{ELLIPSIS}{digits[-tail:]}"


def distinct_addresses(texts: Iterable[str]) -> Callable[..., str]:
    """Return a function that shortens the addresses in texts but keeps different addresses distinct.

    Parameters
    ----------
    texts : iterable of str
        All texts that are shown together.

    Returns
    -------
    callable
        Like `short_addresses`, with more digits for addresses that would look the same. With ``padded=True``, leading
        zeros count, as those of other 32 bytes than addresses do.

    Examples
    --------
    >>> texts = ["0x" + "ab" * 32, "0x" + "ab" * 15 + "00" + "ab" * 16]
    >>> short = distinct_addresses(texts)
    >>> [short(text) for text in texts] == texts, short("0x" + "cd" * 32)
    (False, '0xcdcdcd…cdcd')
    """
    found = {match[1] for text in texts for match in _ADDRESS.finditer(text)}
    forms = {digits: _short(digits) for digits in found}
    extra = 0
    counts = Counter(forms.values())
    while alike := [digits for digits, form in forms.items() if counts[form] > 1]:
        extra += 2
        for digits in alike:
            forms[digits] = _short(digits, extra)
        counts = Counter(forms.values())

    def short(text: str, *, padded: bool = False) -> str:
        shown = text if padded else without_padding(text)
        return _ADDRESS.sub(lambda match: forms.get(match[1]) or _short(match[1]), shown)

    return short


def number(value: float | None) -> str:
    """Return a quantity with thousands separators, a minus sign and at most two decimals; a dash for None.

    Examples
    --------
    >>> number(1234), number(2.5), number(0.126), number(-43_160)
    ('1,234', '2.5', '0.13', '−43,160')
    """
    if value is None:
        return "\u2013"
    text = f"{round(value):,}" if value == round(value) else f"{value:,.2f}".rstrip("0").rstrip(".")
    return text.replace("-", MINUS)


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> plural(1, "gas unit"), plural(1200, "call")
    ('1 gas unit', '1,200 calls')
    """
    return counted(number(count), noun)


def counted(shown: str, noun: str) -> str:
    """Return a number that is text already with its noun, which is singular if the number reads as one.

    Examples
    --------
    >>> counted(f"{1.2:,.0f}", "octa"), counted("2 to 3", "gas unit")
    ('1 octa', '2 to 3 gas units')
    """
    return f"{shown} {noun}{'' if shown.lstrip(f'+-{MINUS}') == '1' else 's'}"


def times(factor: float) -> str:
    """Format a factor.

    Examples
    --------
    >>> times(10), times(2.5), times(0.125), times(1e-6)
    ('×10', '×2.5', '×0.125', '×0.000001')
    """
    if factor >= 1 or factor == 0:
        return f"×{number(round(float(factor), 2))}"
    return f"×{Decimal(f'{float(factor):.3g}'):f}"


def signed(value: float, form: str = ",") -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(1200), signed(-7), signed(-0.25, ".1f")
    ('+1,200', '−7', '−0.2')
    """
    return f"{value:+{form}}".replace("-", MINUS)


def percent(value: float, form: str = ".3g") -> str:
    """Format a percentage; a plus in the format shows the sign.

    Examples
    --------
    >>> [percent(one, "+.3g").replace("\u202f", "_") for one in (2, 0.125, -66.666, -0.0, 7472.8, 0.00001)]
    ['+2_%', '+0.125_%', '−66.7_%', '0_%', '+7,473_%', '+0.00001_%']
    """
    sign = "+" * form.startswith("+")
    text = f"{value:{sign},.0f}" if abs(value) >= _WHOLE else f"{value:{form}}"
    if "e" in text:
        text = f"{Decimal(text):{sign}f}"
    return (text if text.strip("+-0.") else text.lstrip("+-")).replace("-", MINUS) + PERCENT  # a zero has no sign


def relative_change(before: float | None, after: float | None) -> str:
    """Return a change as a factor if it is at least a doubling, else as a percentage of `before`.

    The result is a difference if `before` is 0, and an empty string if either value is None.

    Examples
    --------
    >>> relative_change(3, 30), relative_change(4, 33), relative_change(0, 7)
    ('×10', '×8.3', '+7')
    >>> relative_change(100, 103) == percent(3, "+.3g"), relative_change(-100, -300) == percent(-200)
    (True, True)
    """
    if before is None or after is None:
        return ""
    if before == 0:
        return signed(round(after - before, 1)).removesuffix(".0")
    if before > 0 and after >= 2 * before:
        return times((20 * after + before) // (2 * before) / 10)  # halves are rounded up
    return percent(100 * (after - before) / abs(before), "+.3g")  # of a refund, below 0 if it is larger


def version_range(first: int, last: int) -> str:
    """Format a range of ledger versions, both ends included.

    Examples
    --------
    >>> version_range(5, 5), version_range(0, 4999)
    ('5', '0 to 4,999')
    """
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def version_span(first: int, last: int) -> str:
    """Format a range of ledger versions with its noun.

    Examples
    --------
    >>> version_span(5, 5), version_span(0, 4999)
    ('version 5', 'versions 0 to 4,999')
    """
    return f"version{'s' * (first != last)} {version_range(first, last)}"


def change_place(before: int, after: int, *, several: bool = False) -> str:
    """Return the ledger version of a change, or the interval that contains it; of several, the first to the last.

    Parameters
    ----------
    before, after : int
        Last version read before the change, and first version read after it.
    several : bool, default False
        Whether there are several changes, of which the first may be right after `before`.

    Examples
    --------
    >>> change_place(3501, 3502), change_place(1170, 2421), change_place(577, 3463, several=True)
    ('3,502', '1,170 to 2,421', '578 to 3,463')
    """
    if several:
        return version_range(before + 1, after)
    return version_range(after if after - before == 1 else before, after)


def in_whole_coins(units: int, decimals: int) -> str:
    """Return an amount of base units of an asset in whole coins, exactly.

    Examples
    --------
    >>> in_whole_coins(1_234_500, 3), in_whole_coins(-7, 0)
    ('1,234.5', '−7')
    """
    whole, rest = divmod(abs(units), 10**decimals)
    digits = f"{rest:0{decimals}d}".rstrip("0")
    return f"{MINUS if units < 0 else ''}{whole:,}{f'.{digits}' if digits else ''}"
