"""What a forked child has to replace: locks that another thread held, threads and sockets that stay with the parent."""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["Renewable", "lock", "register"]


class Renewable(Protocol):
    """Something that cannot be used in a forked child as it is."""

    def renew_after_fork(self) -> None:
        """Start again; called in the child before anything else runs there."""
        ...


_renewable: WeakSet[Renewable] = WeakSet()
_locks: WeakSet[threading.RLock] = WeakSet()


def register(one: Renewable) -> None:
    """Have `renew_after_fork` of an object called in every forked child, as long as the object lives."""
    _renewable.add(one)


def lock() -> threading.RLock:
    """Return a reentrant lock that is free in a forked child, even if a thread of the parent held it at the fork."""
    made = threading.RLock()
    _locks.add(made)
    return made


def _renew() -> None:
    for held in list(_locks):
        held._at_fork_reinit()  # type: ignore[attr-defined] # noqa: SLF001 - what the standard library does with its own
    for one in list(_renewable):
        one.renew_after_fork()


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_renew)
