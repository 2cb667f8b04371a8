"""Default labels of calls: module and function, and what differs between calls of the same function."""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from toolkit._present.text import distinct_addresses, visible

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_FUNCTION = re.compile(r"(0x[0-9a-f]{1,64})::(\w+::\w+)\b(?!::)(.*)", re.DOTALL)
_TYPE = re.compile(r"0x[0-9a-f]{1,64}::\w+::(?=\w)")
# Characters of a label and of an argument in it that a legend beside a figure, or a column of a terminal, has room for.
_MAX_LABEL = 44
_MAX_ARGUMENT = 16
# Characters of a number that makes a label unique, such as " #12".
_MAX_NUMBER = 5


class Called(NamedTuple):
    """The properties that identify a call; equal calls have the same label.

    Attributes
    ----------
    function : str
        Id of the function, or another name for the code that runs, which is used unchanged.
    type_arguments, arguments : tuple of str
    sender : str
    kind : str
        How the call is observed, in one word; shown if nothing else differs.
    mark : str
        Distinguishes calls that are otherwise alike; such calls are numbered.
    """

    function: str
    type_arguments: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    sender: str = ""
    kind: str = ""
    mark: str = ""


def default_labels(calls: Sequence[Called], taken: Collection[str] = ()) -> list[str]:
    """Return a short label for each call: ``vault::share_price``, plus what distinguishes calls of the same function.

    Parameters
    ----------
    calls : sequence of Called
        All calls that are shown together.
    taken : collection of str
        Labels of other calls.

    Returns
    -------
    list of str
        Equal calls have the same label, and other calls never do.

    Examples
    --------
    >>> default_labels([Called("0x1::coin::supply"), Called("0xfa17::vault::share_price")])
    ['coin::supply', 'vault::share_price']
    >>> coin = "0x1::aptos_coin::AptosCoin"
    >>> default_labels([Called("0x1::coin::balance", (coin,), (owner,)) for owner in ("0xa11ce", "0xb0b")])
    ['coin::balance(0xa11ce)', 'coin::balance(0xb0b)']
    """
    unique = list(dict.fromkeys(calls))
    names = function_names([call.function for call in unique])
    short = distinct_addresses(text for call in unique for text in (*call.type_arguments, *call.arguments, call.sender))
    # Types are without addresses and modules, unless two of them would look the same.
    bare = {tag: _TYPE.sub("", tag) for call in unique for tag in call.type_arguments}
    often = Counter(bare.values())
    types = {tag: name if often[name] == 1 else short(tag) for tag, name in bare.items()}
    groups: dict[str, list[Called]] = {}
    for call, name in zip(unique, names, strict=True):
        groups.setdefault(name, []).append(call)
    labels: dict[Called, str] = {}
    for name, group in groups.items():
        shown = (
            _differing([[types[tag] for tag in call.type_arguments] for call in group], "<", ">"),
            _differing([[short(text) for text in call.arguments] for call in group], "(", ")"),
            _differing([[short(call.sender)] if call.sender else [] for call in group], " by ", ""),
        )
        labels |= {call: visible(name + "".join(parts), _MAX_LABEL) for call, *parts in zip(group, *shown, strict=True)}
    kinds = Counter(text for text, _ in {(text, call.kind) for call, text in labels.items()})
    labels = {call: f"{text} [{call.kind}]" if kinds[text] > 1 else text for call, text in labels.items()}
    often, used = Counter(labels.values()), set(taken)
    for call, label in labels.items():
        if often[label] > 1 or label in used:
            stem = visible(label, _MAX_LABEL - _MAX_NUMBER)
            labels[call] = next(text for n in count(1) if (text := f"{stem} #{n}") not in used)
        used.add(labels[call])
    return [labels[call] for call in calls]


def function_names(functions: Sequence[str]) -> list[str]:
    """Return function ids as module and name, with the address if two of them would look the same.

    Parameters
    ----------
    functions : sequence of str
        All ids that are shown together. What follows an id, such as ``<0x1::coin::Coin>(0xb0b)``, is shortened; texts
        that do not begin with the id of a function are not changed.

    Examples
    --------
    >>> function_names(["0x1::coin::supply", "0xcafe::shop::sell", "0xb0b::shop::sell", "my call"])
    ['coin::supply', '0xcafe::shop::sell', '0xb0b::shop::sell', 'my call']
    """
    found = [_FUNCTION.fullmatch(text) for text in functions]
    ids = {match.group(1, 2) for match in found if match is not None}
    often = Counter(name for _, name in ids)
    often.update(text for text, match in zip(functions, found, strict=True) if match is None)
    short = distinct_addresses(functions)

    def named(text: str, match: re.Match[str] | None) -> str:
        if match is None:
            return text
        address, name, rest = match.groups()
        return (name if often[name] == 1 else f"{short(address)}::{name}") + short(_TYPE.sub("", rest))

    return [named(text, match) for text, match in zip(functions, found, strict=True)]


def _differing(rows: Sequence[Sequence[str]], before: str, after: str) -> list[str]:
    """Return the texts of each row at the positions where the rows differ, in brackets; empty if they are equal."""
    width = max(map(len, rows))
    places = [n for n in range(width) if len({tuple(row[n : n + 1]) for row in rows}) > 1]
    shown = [[visible(row[n], _MAX_ARGUMENT) for n in places if n < len(row)] for row in rows]
    return [f"{before}{', '.join(texts)}{after}" if texts else "" for texts in shown]
