"""Holds observations between reading and writing, until the node responds and its ledger has been checked."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from toolkit.client._http import resume_time
from toolkit.errors import Forbidden, NodeError, NodeUnreachable, RateLimited, RunStopped, SchemaError
from toolkit.frames._calls import Failure
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import is_no_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from toolkit.client._node import Node
    from toolkit.client._progress import Progress
    from toolkit.client._reads import LedgerGuard, Reads
    from toolkit.gas.runs._store import RunStore


# Number of consecutive calls without a response after which the node is asked for its description.
_MAX_UNANSWERED = 20

# Rows that are written together: each write waits for a check of the ledger, and rewrites the last part.
_MAX_ROWS = 1_000
# A killed run rereads at most this many rows, or the rows of this many seconds.
_MAX_SECONDS = 2.0
# Number of rows after which the ledger is checked for the first time; doubled each time, up to `_MAX_ROWS`.
# A node that asks for a long wait after a few hundred calls does not answer checks either. Rows that were checked
# before need not be read again, so runs make progress however few calls are allowed.
_FIRST_ROWS = 10
# Maximum number of rows that wait while the check of the ledger gets no answer.
_MAX_UNCONFIRMED = 10_000
Row = dict[str, Any]


def heard(rows: Iterable[Row], node: Node) -> Iterator[Row]:
    """Yield observations. Those without a response are held back until the node responds to a later request.

    Parameters
    ----------
    rows : iterable of dict
        Rows of the observation frame.
    node : Node

    Yields
    ------
    dict
        The same rows. Isolated calls without a response are rows with an error.

    Raises
    ------
    NodeUnreachable
        If many consecutive calls, or the last calls, got no response and the node itself does not respond either. The
        waiting rows are dropped, and read again by the next attempt.
    RunStopped
        If the node asks for a longer wait than a call allows; the waiting rows are dropped likewise.
    """
    waiting: list[Row] = []
    try:
        for row in rows:
            waiting.append(row)
            if is_no_answer(row["error_code"]):
                if len(waiting) < _MAX_UNANSWERED:
                    continue
                check_there(node, f"{len(waiting)} consecutive calls got no response")
            yield from waiting
            waiting = []
    except RateLimited as error:  # a read that has no row was refused, such as the read of an ABI
        _stop_if_told_to_wait(error, node)
        raise
    if waiting:
        check_there(node, f"the last {len(waiting):,} calls got no response")
        yield from waiting


def check_there(node: Node, why: str, *, admitted: bool = False) -> None:
    """Check that a node responds to a request for its description, which every node offers.

    Parameters
    ----------
    node : Node
    why : str
        Why the node is checked, for the message.
    admitted : bool, default False
        Whether to also raise an error if the node refuses access.

    Raises
    ------
    NodeUnreachable
        If the node does not respond.
    Forbidden
        If `admitted` and the node requires an API key or a login, such as from a worker process.
    RunStopped
        If the node asks for a longer wait than a call allows.
    """
    try:
        node.info()
    except Forbidden:
        if admitted:
            raise
    except (NodeError, NodeUnreachable) as error:
        _stop_if_told_to_wait(error, node)
        if is_no_answer(Failure.of(error).error_code):
            raise _silent(node, why, error) from error


def check_ledger(guard: LedgerGuard) -> None:
    """Check that a node still serves the ledger of a run.

    Parameters
    ----------
    guard : LedgerGuard

    Raises
    ------
    LedgerChanged
        If the node serves another ledger.
    RunStopped
        If the node asks for a longer wait than a call allows.
    NodeUnreachable
        If the node does not respond for another reason.
    """
    try:
        guard.check()
    except (NodeError, NodeUnreachable, SchemaError) as error:
        _stop_if_told_to_wait(error, guard.node)
        raise _silent(guard.node, "when its ledger was checked", error) from error


def _silent(node: Reads, why: str, error: Exception) -> NodeUnreachable:
    return NodeUnreachable(
        f"{node.name} no longer responds ({why}): {error}. Its results up to the last check are stored. To continue, "
        "run the same study into the same folder once the node is back"
    )


def _stop_if_told_to_wait(error: Exception, node: Reads) -> None:
    """Raise RunStopped if the node said when requests are accepted again."""
    if isinstance(error, RateLimited) and error.retry_after_s:
        raise RunStopped(
            f"{node.name} accepts no requests until {resume_time(error.retry_after_s)} (Retry-After). Its "
            "results up to the last check are stored. To continue, run the same study into the same folder after that "
            "time"
        ) from error


class Collector:
    """Collects observations and writes them to a run: 1,000 at a time, or after 2 seconds.

    Before each write, the node's ledger is compared with the run's, so that no row of another ledger is written; while
    the node does not respond, rows wait. When the ``with`` block ends, the remaining rows are written. If it ends with
    an error, the waiting rows are dropped, and the next attempt reads them again.

    Parameters
    ----------
    store : RunStore
    bar : Progress
        Advances with every observation.
    guard : LedgerGuard, optional
        Compares the ledgers; by default nothing is compared.
    clock : callable, optional
        Returns seconds; replaced in tests.
    """

    def __init__(
        self,
        store: RunStore,
        bar: Progress,
        *,
        guard: LedgerGuard | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self.bar, self._guard, self._clock = store, bar, guard, clock
        self._items: list[Row | pa.Table] = []
        self._waiting = 0
        self._step = self._due_rows = _MAX_ROWS if guard is None else _FIRST_ROWS
        self._due_from = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.flush()

    def take(self, row: Row) -> None:
        """Add one observation."""
        self._take(row, 1, failed=row["error_code"] is not None)

    def take_table(self, table: pa.Table) -> None:
        """Add the observations of a range that was read by a worker."""
        self._take(table, len(table), failed=len(table) - table["error_code"].null_count)

    def _take(self, item: Row | pa.Table, rows: int, *, failed: int) -> None:
        if not self._waiting:
            self._due_from = self._clock()
        self._items.append(item)
        self._waiting += rows
        self.bar.advance(rows, failed=failed)
        if self._waiting >= _MAX_UNCONFIRMED:
            self.flush()
        elif self._waiting >= self._due_rows or self._clock() - self._due_from >= _MAX_SECONDS:
            if self._guard is None or self._guard.confirms():
                self._write()
            else:
                self._due_rows, self._due_from = self._waiting + self._step, self._clock()

    def flush(self) -> None:
        """Write the waiting rows.

        Raises
        ------
        LedgerChanged
            If the node serves another ledger; nothing is written.
        NodeUnreachable
            If the node does not respond when its ledger is checked; nothing is written.
        RunStopped
            If the node asks for a long wait when its ledger is checked, or if the rows cannot be written.
        """
        if self._guard is not None:
            check_ledger(self._guard)
        self._write()

    def _write(self) -> None:
        items, self._items, self._waiting = self._items, [], 0
        if items:
            rows = [one for one in items if not isinstance(one, pa.Table)]
            tables = [one for one in items if isinstance(one, pa.Table)]
            self._store.add(pa.concat_tables([OBSERVATIONS.table_of_rows(rows), *tables]))
            self._step = self._due_rows = min(_MAX_ROWS, 2 * self._step)
