"""Numbers in text: quantities, factors, percentages, ledger versions.

Quantities have thousands separators. Ledger versions are identifiers and have none, so that they can be copied into
a call.
"""

from __future__ import annotations

from decimal import Decimal

__all__ = [
    "NO_NUMBER",
    "change_place",
    "number",
    "octas_as_apt",
    "plural",
    "relative_change",
    "times",
    "version_range",
]

NO_NUMBER = "\u2013"
"""Shown in place of a missing number."""

_FACTOR_FROM = 2
_OCTAS_PER_APT = 10**8


def number(value: float | None) -> str:
    """Return a quantity with thousands separators and at most two decimals; a dash for None.

    Examples
    --------
    >>> number(1234), number(2.5), number(0.126)
    ('1,234', '2.5', '0.13')
    """
    if value is None:
        return NO_NUMBER
    if value == round(value):
        return f"{round(value):,}"
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def plural(count: int, noun: str) -> str:
    """Return a count with its noun.

    Examples
    --------
    >>> plural(1, "gas unit"), plural(1200, "call")
    ('1 gas unit', '1,200 calls')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def times(factor: float) -> str:
    """Return a factor as text.

    Examples
    --------
    >>> times(10), times(2.5), times(0.125), times(1e-6)
    ('x10', 'x2.5', 'x0.125', 'x0.000001')
    """
    if factor >= 1 or factor == 0:
        return f"x{number(round(float(factor), 2))}"
    return f"x{Decimal(f'{float(factor):.3g}'):f}"


def relative_change(before: int | None, after: int | None) -> str:
    """Return a change as a factor from the double on, else as a percentage of `before`.

    A difference if `before` is 0; an empty text if a side is None.

    Examples
    --------
    >>> relative_change(3, 30), relative_change(100, 103), relative_change(6, 3), relative_change(0, 7)
    ('x10', '+3 %', '-50 %', '+7')
    """
    if before is None or after is None:
        return ""
    if before == 0:
        return f"{after - before:+,}"
    if after >= _FACTOR_FROM * before:
        return times(round(after / before, 1))
    return f"{100 * (after - before) / before:+.3g} %"


def version_range(first: int, last: int) -> str:
    """Return ledger versions, both ends included.

    Examples
    --------
    >>> version_range(5, 5), version_range(0, 4999)
    ('5', '0 to 4999')
    """
    return f"{first}" if first == last else f"{first} to {last}"


def change_place(before: int, after: int) -> str:
    """Return the ledger version of a change, or the interval that contains it.

    Parameters
    ----------
    before, after : int
        Last version before the change and first version after it, of those that were read.

    Examples
    --------
    >>> change_place(3501, 3502), change_place(1170, 2421)
    ('3502', '1170 to 2421')
    """
    return version_range(after if after - before == 1 else before, after)


def octas_as_apt(octas: int) -> str:
    """Return an amount of octas in APT (10^8 octas), exactly.

    Examples
    --------
    >>> octas_as_apt(4100), octas_as_apt(-50)
    ('0.000041', '-0.0000005')
    """
    whole, rest = divmod(abs(octas), _OCTAS_PER_APT)
    digits = f"{rest:08d}".rstrip("0")
    return f"{'-' if octas < 0 else ''}{whole:,}{f'.{digits}' if digits else ''}"
