"""Warnings of the client, with the location of the caller's code, or collected for a widget that shows them."""

from __future__ import annotations

import inspect
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Warn with the location of the first caller outside this package, or add to `collected_warnings`."""
    if (collected := _COLLECTED.get()) is not None:
        collected.append((category, text))
        return
    level, frame = 1, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__", "")).startswith("toolkit."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
