"""Warnings of the client, shown to the user or collected for a widget that shows them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit import frames
from toolkit._present.text import listed, short_addresses, visible, without_padding

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

_SIMILAR = 0.8  # difflib's ratio: a letter or two of a struct's name differ
_MAX_SUGGESTIONS = 3  # more are noise
_MAX_COLUMNS = 8  # that a warning about types lists
_PACKAGE = f"{Path(__file__).parents[1]}{os.sep}"
_COLLECTED: ContextVar[list[tuple[type[UserWarning], str]] | None] = ContextVar("_COLLECTED", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[tuple[type[UserWarning], str]]]:
    """While the block runs, collect the warnings of `warn_caller` as (category, text) pairs instead of showing them.

    Only this thread is affected. `warnings.catch_warnings` replaces the filters of the whole process: two threads that
    leave its block in a different order than they entered it change the filters permanently.
    """
    collected: list[tuple[type[UserWarning], str]] = []
    token = _COLLECTED.set(collected)
    try:
        yield collected
    finally:
        _COLLECTED.reset(token)


def warn_caller(text: str, category: type[UserWarning] = UserWarning) -> None:
    """Warn, or add to `collected_warnings`.

    From Python 3.12 on, a warning has the location of the first caller outside of this package. Before, it has none,
    and is shown each time: with a location in this package, Python would show each text once.
    """
    if (collected := _COLLECTED.get()) is not None:
        collected.append((category, text))
        return
    if sys.version_info >= (3, 12):
        warnings.warn(text, category, skip_file_prefixes=(_PACKAGE,))
    else:
        warnings.warn_explicit(text, category, "ledger-toolkit", 1)


def warn_of_types(frame: pd.DataFrame, what: str) -> None:
    """Warn if values have several columns because their type changes within a frame, and name the version."""
    firsts = {
        name: int(frame["ledger_version"][frame[name].notna()].min())
        for name, about in frame.attrs.get("toolkit", {}).items()
        if frames.OF in about and frame[name].notna().any()
    }
    if firsts:
        columns = listed((f"{name} (first at version {at:,})" for name, at in firsts.items()), _MAX_COLUMNS)
        shown = visible(short_addresses(what), 120)
        warn_caller(f"{shown} changes type in this range; there is one column per type: {columns}")


def warn_of_similar(tag: str, types: Iterable[str], statement: str) -> None:
    """Warn if only similar types were found: with other type arguments, in another module, or misspelt."""
    names: dict[str, list[str]] = {}
    for text in types:
        names.setdefault(_struct_name(text), []).append(text)
    close = get_close_matches(_struct_name(tag), names, cutoff=_SIMILAR)
    if similar := [text for name in close for text in names[name]][:_MAX_SUGGESTIONS]:
        warn_caller(
            f"{statement}; did you mean {' or '.join(visible(without_padding(text), 120) for text in similar)}?"
        )


def _struct_name(tag: str) -> str:
    return tag.partition("<")[0].rpartition("::")[2]
