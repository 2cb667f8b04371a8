"""Renewal of locks, threads and sockets in forked child processes, which cannot use those of the parent."""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["Renewable", "lock", "register"]


class Renewable(Protocol):
    """An object that must be renewed before a forked child can use it."""

    def renew_after_fork(self) -> None:
        """Replace what belongs to the parent; called in the child before other code runs."""
        ...


_renewables: WeakSet[Renewable] = WeakSet()
_locks: WeakSet[threading.RLock] = WeakSet()


def register(renewable: Renewable) -> None:
    """Call `renew_after_fork` of an object in every forked child while the object lives."""
    _renewables.add(renewable)


def lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked child even if a thread of the parent held it at the fork."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _renew() -> None:
    for held in list(_locks):
        held._at_fork_reinit()  # type: ignore[attr-defined] # noqa: SLF001 - as the standard library does with its own locks
    for renewable in list(_renewables):
        renewable.renew_after_fork()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_renew)
