"""The time limit of executions, which ends contract code that uses no gas.

Contract code may contain a Python loop that is not charged, so gas cannot end every loop. Instead, one thread watches
all executions, and raises an exception in the thread of an execution that takes too long.

A trace function would see every line too, but would make contracts several times slower and displace debuggers and
coverage tools. A deadline that is checked at each charge would miss a loop without charges. Starting a process for each
execution would take longer than the execution, and the classes of a notebook cannot be sent to another process.

Python raises such an exception between two bytecodes of the thread. The exception cannot end a call of a built-in
function that never returns, such as ``sum(itertools.count())``. In a callback, such as the callback of a weak reference
that garbage collection clears, Python drops the exception with a message on stderr. Such callbacks come from the
standard library and from installed packages. The watching thread therefore looks at the code that the thread runs. It
does not raise in callbacks, and raises in library code only if that code runs for long. No other thread runs between
the look and the exception.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolkit.embedded._vm_status import VmError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_T = TypeVar("_T")

DEFAULT_TIMEOUT_S = 5.0
"""Default time limit in seconds; the slowest recorded contracts take a hundredth of it."""

_POLL_S = 0.02
# Contract code can swallow the exception with a bare except, so it is raised again after this time; by then, the first
# exception has been handled. Code that still runs has swallowed it and can be ended in few places only: from then on,
# the exception is raised at every check.
_AGAIN_S = 1.0
# Long enough to look at a thread and raise in it on a busy machine, where this thread may have to wait for a processor
# in between: 10 ms were not enough beside eight busy processes on two cores. Longer delays every other thread.
_ALONE_S = 0.03
# Code that was in an installed package at every check for this long calls the package in a loop.
_INSTALLED_S = 1.0

# Their functions run as callbacks of weak references.
_CALLBACKS = {one.__code__.co_filename for one in (weakref.WeakSet.add, weakref.finalize.__call__)}
_OWN = str(Path(__file__).parent)
_INSTALLED = (*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")), "<frozen ")
_INSTALLED += (str(Path(__file__).parents[1]),)  # the rest of the toolkit, also in an editable install


class TimeLimitReached(VmError):  # noqa: N818 - an outcome, as `MoveAbort`
    """An execution reached its time limit; the status is that of a transaction above the limit of execution gas.

    Parameters
    ----------
    seconds : float
        The limit.
    """

    def __init__(self, seconds: float) -> None:
        super().__init__(
            "EXECUTION_LIMIT_REACHED",
            f"the embedded ledger stopped the execution at its time limit of {seconds:g} s: check for an endless loop, "
            "or raise Ledger.execution_timeout_s",
        )


class _Expired(BaseException):
    """Raised in the thread of an execution; it is not an Exception, because contract code may catch those."""


class _Execution:
    """An execution with a deadline, which the watching thread checks.

    The two threads share flags instead of a lock. The exception may still arrive while `end` runs: since Python 3.14,
    also after ``with`` has acquired a lock and before its block begins. Nobody would release that lock.

    Attributes
    ----------
    looking : bool
        Whether the watching thread may raise the exception at this moment.
    """

    __slots__ = ("_deadline", "_ended", "_raised", "_thread", "looking")

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._deadline = time.monotonic() + seconds
        self._ended = self._raised = self.looking = False

    def check(self, now: float) -> None:
        """Raise the exception in the execution's thread if the time is up; called by the watching thread."""
        if now < self._deadline:
            return
        installed = now >= self._deadline + _INSTALLED_S
        raise_in_thread = _raising(self._thread, _Expired)
        self.looking = True  # before `_ended` is read: the thread sets `_ended`, then waits while this is set
        try:
            with _alone():  # the thread must not leave the execution between the look and the exception
                if not self._ended and _can_end(self._thread, installed=installed):
                    raise_in_thread()
                    self._raised, self._deadline = True, now if self._raised else now + _AGAIN_S
        finally:
            self.looking = False

    def end(self) -> None:
        """Stop watching; called by the execution's thread, and again if the exception arrives meanwhile.

        After this returns, no exception is raised or pending.
        """
        _RUNNING.discard(self)
        self._ended = True
        while self.looking:
            time.sleep(_ALONE_S / 10)
        if self._raised:
            _raising(self._thread, None)()


_RUNNING: set[_Execution] = set()
_BUSY = threading.Event()
_WATCHING: list[threading.Thread] = []


def run_within(seconds: float | None, run: Callable[[], _T], error: Callable[[float], Exception]) -> _T:
    """Return the result of `run`, or raise an error if `run` takes longer than a number of seconds.

    The exception can end `run` between any two bytecodes, so `run` must not change anything that is used afterwards.

    Parameters
    ----------
    seconds : float or None
        Time limit; None sets no limit.
    run : callable
        Function to run in this thread.
    error : callable
        Takes `seconds` and returns the error to raise.
    """
    if seconds is None:
        return run()
    execution = _Execution(seconds)
    try:
        try:
            # Watched from here on, inside the blocks: an exception that arrived before them would leave this function,
            # and would come again every second in whatever the thread does next.
            _RUNNING.add(execution)
            _start_watching()
            return run()
        finally:
            while True:  # the exception can also arrive while the execution ends
                try:
                    execution.end()
                    break
                except _Expired:
                    continue
    except _Expired:
        raise error(seconds) from None  # after the end, so that nothing arrives while the error is made


def _start_watching() -> None:
    if not _BUSY.is_set():
        _BUSY.set()
    if not _WATCHING:
        _WATCHING.append(threading.Thread(target=_watch, name="embedded-time-limit", daemon=True))
        _WATCHING[-1].start()


def _watch() -> None:
    while True:
        _BUSY.wait()
        time.sleep(_POLL_S)
        now = time.monotonic()
        for execution in tuple(_RUNNING):
            execution.check(now)
        if not _RUNNING:
            _BUSY.clear()
            if _RUNNING:  # one began between the check and the line above
                _BUSY.set()


def _forget() -> None:
    """Reset the state in a forked process, which has no watching thread and may hold a lock that nobody releases."""
    global _BUSY  # noqa: PLW0603 - see above
    _BUSY = threading.Event()
    for execution in _RUNNING:
        execution.looking = False
    _RUNNING.clear()
    _WATCHING.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def _can_end(thread: int, *, installed: bool) -> bool:
    """Return True if an exception may be raised in a thread: in contract code, or also in `installed` packages."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - documented, for CPython as all of this
    if frame is None:
        return True
    file = frame.f_code.co_filename
    if frame.f_code.co_name == "__del__" or file in _CALLBACKS:
        return False
    return installed or file.startswith(_OWN) or not file.startswith(_INSTALLED)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Run a few lines without another thread in between.

    A thread that has just acquired the interpreter lock keeps it for a switch interval, so other threads stay where
    they were seen. The default interval of 5 ms is not enough on a busy machine.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_ALONE_S)
    try:
        time.sleep(0.001)  # releases the interpreter, and receives it again for a whole interval
        yield
    finally:
        sys.setswitchinterval(before)


def _raising(thread: int, exception: type[BaseException] | None) -> Callable[[], object]:
    """Return a function that raises an exception at a thread's next bytecode; None withdraws a pending exception."""
    import ctypes  # imported on use: almost no execution reaches its limit

    value = None if exception is None else ctypes.py_object(exception)
    return functools.partial(ctypes.pythonapi.PyThreadState_SetAsyncExc, ctypes.c_ulong(thread), value)
