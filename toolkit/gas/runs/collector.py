"""Observations between reading and writing: they wait for an answer of the node and for the check of its ledger."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.client.retry import resume_time
from toolkit.errors import (
    ClosedError,
    Forbidden,
    LedgerChanged,
    NodeError,
    NodeUnreachable,
    RateLimited,
    RunStopped,
    SchemaError,
    StudyError,
)
from toolkit.frames.calls import Failure
from toolkit.frames.schema import OBSERVATIONS
from toolkit.gas.observations import is_no_answer, row_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from toolkit.client.batch import Progress
    from toolkit.client.node import Node
    from toolkit.client.same_ledger import LedgerGuard
    from toolkit.gas.runs.store import RunStore

__all__ = ["Collector", "check_there", "heard", "raise_unconfirmed"]

_MAX_UNANSWERED = 20
"""Calls in a row without an answer after which the node is asked whether it is there."""

Row = dict[str, Any]


def heard(rows: Iterable[Row], node: Node) -> Iterator[Row]:
    """Pass observations on; those that got no answer wait for one that did, or for the node's own word.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the observation frame, as they come.
    node : Node

    Yields
    ------
    dict
        The same rows. An outage of single calls is a row like any other.

    Raises
    ------
    NodeUnreachable
        If many in a row, or the last, got no answer and the node is not there: what waits is dropped, to be read again.
    RunStopped
        If the node asks for a longer wait than calls have patience for; what waits is dropped likewise.
    """
    waiting: list[Row] = []
    for row in _until_refused(rows, node):
        waiting.append(row)
        if is_no_answer(row["error_code"]):
            if len(waiting) < _MAX_UNANSWERED:
                continue
            check_there(node, f"{len(waiting)} calls in a row got no answer")
        yield from waiting
        waiting = []
    if waiting:
        check_there(node, f"the last {len(waiting):,} calls got no answer")
        yield from waiting


def _until_refused(rows: Iterable[Row], node: Node) -> Iterator[Row]:
    """Pass observations on until a read that is not a row of its own is refused by the node's wish for a long wait."""
    try:
        yield from rows
    except RateLimited as error:
        _stop_if_told_to_wait(error, node)
        raise


def check_there(node: Node, why: str, *, admitted: bool = False) -> None:
    """Ask a node for what every node answers, its own description.

    Raises
    ------
    NodeUnreachable
        If it does not answer that either.
    Forbidden
        If the node asks for an API key or a login, as of a worker process; with `admitted` only.
    RunStopped
        If it asks for a longer wait than calls have patience for.
    """
    try:
        node.info()
    except Forbidden:
        if admitted:
            raise
    except (NodeError, NodeUnreachable) as error:
        _stop_if_told_to_wait(error, node)
        if is_no_answer(Failure.of(error).error_code):
            raise NodeUnreachable(
                f"{node.name} is gone: {why}, nor does it say what it is ({error}). What was answered is kept; once "
                "it is back, run the same study into the same folder and it goes on from there"
            ) from error


def raise_unconfirmed(node: Node, error: Exception) -> NoReturn:
    """Raise what to do after a node did not say which ledger it serves.

    Parameters
    ----------
    node : Node
    error : Exception
        What it said instead.

    Raises
    ------
    RunStopped
        If it asks for a longer wait than calls have patience for.
    NodeUnreachable
        In any other case.
    """
    _stop_if_told_to_wait(error, node)
    raise NodeUnreachable(
        f"{node.name} is gone: it does not say which ledger it serves ({error}). What was answered is kept; once it is "
        "back, run the same study into the same folder and it goes on from there"
    ) from error


def _stop_if_told_to_wait(error: Exception, node: Node) -> None:
    """Raise RunStopped if the node said when to go on."""
    if isinstance(error, RateLimited) and error.retry_after_s:
        raise RunStopped(
            f"{node.name} asks to be sent nothing until {resume_time(error.retry_after_s)} (Retry-After). What was "
            "answered is kept; after that, run the same study into the same folder and it goes on from there"
        ) from error


_MAX_ROWS = 1_000
_MAX_SECONDS = 2.0
"""What a run that is killed has to read again at most: so many rows, or those that came in so long."""
_FIRST_ROWS = 10
"""Rows after which the ledger is confirmed for the first time; doubled each time, up to `_MAX_ROWS`.

A node that asks for a long wait after a few hundred calls confirms nothing any more. What it confirmed before need not
be read again, so that runs get on however few calls it allows.
"""
_MAX_UNCONFIRMED = 10_000
"""Most rows that wait while the node does not say which ledger it serves."""
_TICK_S = 0.25
"""How often the age of waiting rows is looked at while no new ones come."""
_LAST_LOOK_S = 1.5
"""Longest wait for the node's word on its ledger when reading was stopped."""


class _Batch(NamedTuple):
    """The first rows and tables of those that wait, and how many observations they are."""

    rows: int
    tables: int
    observations: int


class Collector:
    """Takes observations and writes them to a run: 1,000 at a time, and none later than 2 seconds after it came.

    While the block runs, a thread writes what waits if no further rows come. The rest is written when the block ends,
    however it ends. Before each write the node is compared with the ledger of the run, so that what is written is of
    that ledger; as long as the node does not answer, rows wait.

    Parameters
    ----------
    store : RunStore
    bar : Progress
        Moves with every observation.
    guard : LedgerGuard, optional
        Compares the node; without one nothing is compared.
    unconfirmed : callable (datetime), optional
        Called with the time of the first of the rows that are written although the node could not be asked, because
        reading stopped: the next attempt has to read them again.
    clock : callable, optional
        Seconds; replaced in tests.
    """

    def __init__(
        self,
        store: RunStore,
        bar: Progress,
        *,
        guard: LedgerGuard | None = None,
        unconfirmed: Callable[[datetime], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self.bar = bar
        self._guard = guard
        self._unconfirmed = unconfirmed
        self._clock = clock
        self._rows: list[dict[str, Any]] = []
        self._tables: list[pa.Table] = []
        self._waiting = 0
        self._step = self._due_rows = _MAX_ROWS if guard is None else _FIRST_ROWS
        self._due_from = 0.0
        self._writing: tuple[int, _Batch] | None = None
        self._writes = 0
        self._failure: Exception | None = None
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="toolkit-run-flush", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join(None if error is None else _LAST_LOOK_S)
        if error is None:
            self.flush()
        elif not isinstance(error, LedgerChanged) and not isinstance(self._failure, LedgerChanged):
            # The disk may be what failed, or the node what changed: the first error is the one to report.
            with suppress(StudyError, LedgerChanged):
                self._flush_stopped()

    def take(self, row: dict[str, Any]) -> None:
        """Take one observation."""
        with self._lock:
            self._rows.append(row)
            self._took(1, failed=row["error_code"] is not None)

    def take_table(self, table: pa.Table) -> None:
        """Take the observations of a range that was read elsewhere."""
        with self._lock:
            self._tables.append(table)
            self._took(len(table), failed=len(table) - table["error_code"].null_count)

    def _took(self, rows: int, *, failed: int) -> None:
        if not self._waiting:
            self._due_from = self._clock()
        self._waiting += rows
        self.bar.advance(rows, failed=failed)
        self._raise_failure()
        if self._waiting >= _MAX_UNCONFIRMED:
            self.flush()
        elif self._waiting >= self._due_rows or self._is_due():
            self._write_if_confirmed(self._batch())

    def _is_due(self) -> bool:
        return bool(self._waiting) and self._clock() - self._due_from >= _MAX_SECONDS - _TICK_S

    def _batch(self) -> _Batch:
        return _Batch(len(self._rows), len(self._tables), self._waiting)

    def _write_if_confirmed(self, batch: _Batch) -> None:
        """Write what came before the node is asked, if it confirms its ledger; else try again later."""
        writes = self._writes
        confirmed = self._guard is None or self._guard.confirms()
        with self._lock:
            if writes != self._writes or self._ended.is_set():
                return  # written meanwhile, or about to be
            if confirmed:
                self._write(batch)
            else:
                self._due_rows, self._due_from = self._waiting + self._step, self._clock()

    def flush(self) -> None:
        """Write what waits.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger now; nothing is written.
        NodeUnreachable
            If the node does not say which ledger it serves; what waits is written, marked as unconfirmed.
        RunStopped
            If the node asks for a long wait instead, likewise; if rows cannot be written, now or in an earlier attempt
            of the thread that writes while no rows come.
        """
        with self._lock:
            self._raise_failure()
            self._forget_written()
            if self._guard is not None:
                try:
                    self._guard.check()
                except (NodeError, NodeUnreachable, SchemaError) as error:
                    self._write_unconfirmed()
                    raise_unconfirmed(self._guard.node, error)
            self._write(self._batch())

    def _flush_stopped(self) -> None:
        """Write what waits when reading has stopped: confirmed by one look at the node, or marked as unconfirmed."""
        with self._lock:
            self._forget_written()
            if not self._waiting:
                return
            if self._confirmed_in_time():
                self._write(self._batch())
            else:
                self._write_unconfirmed()

    def _confirmed_in_time(self) -> bool:
        """Look once at the node, for a moment at most: whoever pressed Ctrl-C does not wait for one that hangs."""
        if self._guard is None:
            return True
        guard = self._guard
        outcome: list[bool | LedgerChanged] = []

        def look() -> None:
            try:
                outcome.append(guard.confirms())
            except LedgerChanged as error:
                outcome.append(error)
            except ClosedError:  # the wait is over, and so is the node's use
                pass

        thread = threading.Thread(target=look, name="toolkit-last-look", daemon=True)
        thread.start()
        with suppress(KeyboardInterrupt):  # pressed again
            thread.join(_LAST_LOOK_S)
        found = outcome[0] if outcome else False
        if isinstance(found, LedgerChanged):
            raise found
        return found

    def _write_unconfirmed(self) -> None:
        times = [row["observed_at"] for row in self._rows]
        times += [pc.min(table["observed_at"]).as_py() for table in self._tables if len(table)]
        if times:
            self._unconfirmed(min(times))  # before the rows: a kill in between marks too much, never too little
            self._write(self._batch())

    def _write(self, batch: _Batch) -> None:
        self._forget_written()
        if not batch.observations:
            return
        waiting = [OBSERVATIONS.table(row_columns(self._rows[: batch.rows])), *self._tables[: batch.tables]]
        self._writing = self._store.added, batch
        self._store.add(pa.concat_tables(waiting))
        self._forget_written()

    def _forget_written(self) -> None:
        """Drop the rows that are in the store: an interrupt may come after their writing and before this is known."""
        if self._writing is not None:
            before, (rows, tables, count) = self._writing
            if self._store.added == before + count:
                left = self._waiting - count
                self._rows, self._tables, self._waiting = self._rows[rows:], self._tables[tables:], left
                self._step = self._due_rows = min(_MAX_ROWS, 2 * self._step)
                self._writes, self._due_from = self._writes + 1, self._clock()
        self._writing = None

    def _raise_failure(self) -> None:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def _watch(self) -> None:
        while not self._ended.wait(_TICK_S):
            try:
                with self._lock:
                    batch = self._batch() if self._is_due() else None
                if batch is not None:
                    self._write_if_confirmed(batch)  # asks the node without the lock, so that rows go on coming
            except Exception as error:  # noqa: BLE001 - raised again where rows are taken
                self._failure = error
                return
