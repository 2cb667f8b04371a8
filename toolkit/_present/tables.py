"""Tables as text, Markdown and HTML. Cells are text that the caller has already made safe for the output."""

from __future__ import annotations

from dataclasses import fields
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

__all__ = ["Listing", "html_table", "markdown_table", "text_table"]

_Entry = TypeVar("_Entry")


class Listing(tuple[_Entry, ...]):
    """A tuple of dataclass instances of one class that is shown as a table, in a notebook and as text.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Pet:
    ...     name: str
    ...     legs: int
    >>> Listing([Pet("rex", 4)])
    name  legs
    rex      4
    """

    __slots__ = ()

    def _cells(self) -> tuple[list[str], list[list[str]], set[int]]:
        """Return the head, the rows and the positions of numbers."""
        from toolkit._present.text import visible

        entry: Any = self[0]
        names = [one.name for one in fields(entry)]
        values = [[getattr(entry, name) for name in names] for entry in self]
        rows = [[visible(_cell(name, one), 120) for name, one in zip(names, row, strict=True)] for row in values]
        right = {place for place, value in enumerate(values[0]) if isinstance(value, int)}
        return [name.replace("_", " ") for name in names], rows, right

    def __repr__(self) -> str:
        if not self:
            return "()"
        head, rows, right = self._cells()
        return "\n".join(text_table(rows, head=head, right=right))

    def _repr_html_(self) -> str:
        from html import escape

        from toolkit._present.notebook import literal

        if not self:
            return literal("none")
        head, rows, right = self._cells()
        return literal(html_table([[escape(cell) for cell in row] for row in rows], head=head, right=right))


def _cell(name: str, value: Any) -> str:
    """Return a value as text; quantities have separators, ledger versions and other identifiers do not."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and name not in {"version", "sequence_number"} else str(value)


def text_table(
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str] = (),
    numbers_from: int | None = None,
    right: Collection[int] = (),
    indent: str = "",
) -> list[str]:
    r"""Return a table as lines for a terminal, in columns two spaces apart.

    Parameters
    ----------
    rows : iterable of sequence of str
        Rows of equal length.
    head : sequence of str, optional
        Column names, as the first line.
    numbers_from : int, optional
        Position of the first column that is aligned to the right. By default all columns are aligned to the left.
    right : collection of int, optional
        Positions of other columns that are aligned to the right.
    indent : str, optional
        Text in front of each line.

    Returns
    -------
    list of str
        Without trailing spaces.

    Examples
    --------
    >>> print("\n".join(text_table([["coin::supply", "7"], ["x", "1,200"]], head=["call", "gas"], numbers_from=1)))
    call            gas
    coin::supply      7
    x             1,200
    """
    lines = [*([head] if head else []), *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    start = len(widths) if numbers_from is None else numbers_from
    return [
        indent
        + "  ".join(
            cell.ljust(width) if place < start and place not in right else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def markdown_table(rows: Iterable[Sequence[str]], *, head: Sequence[str], numbers_from: int | None = None) -> str:
    """Return a table in the Markdown of GitHub.

    Parameters
    ----------
    rows : iterable of sequence of str
        Rows as long as `head`; a pipe in a cell would start the next cell.
    head : sequence of str
        Column names.
    numbers_from : int, optional
        Position of the first column that is aligned to the right. By default all columns are aligned to the left.

    Returns
    -------
    str

    Examples
    --------
    >>> print(markdown_table([["x", "7"]], head=["call", "gas"], numbers_from=1))
    | call | gas |
    | --- | ---: |
    | x | 7 |
    """
    start = len(head) if numbers_from is None else numbers_from
    rule = ["---" if place < start else "---:" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in chain((head, rule), rows))


def html_table(
    rows: Iterable[Sequence[str]],
    *,
    head: Sequence[str],
    numbers_from: int | None = None,
    right: Collection[int] = (),
) -> str:
    """Return a table as an HTML element.

    Parameters
    ----------
    rows : iterable of sequence of str
        Rows of escaped text.
    head : sequence of str
        Column names, escaped.
    numbers_from : int, optional
        Position of the first column that is aligned to the right. By default all columns are aligned to the left.
    right : collection of int, optional
        Positions of other columns that are aligned to the right.

    Returns
    -------
    str
    """
    start = len(head) if numbers_from is None else numbers_from

    def line(cells: Sequence[str], tag: str) -> str:
        sides = ("left" if place < start and place not in right else "right" for place in range(len(cells)))
        texts = (f'<{tag} style="text-align:{side}">{cell}</{tag}>' for side, cell in zip(sides, cells, strict=True))
        return f"<tr>{''.join(texts)}</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"
