"""Warnings of the client, shown to the user or collected for a widget that shows them."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

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
