"""Between reading and writing: observations wait here until they are worth a write, and are counted."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolkit.errors import StudyError
from toolkit.frames.schema import OBSERVATIONS
from toolkit.gas.observing import row_columns

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

    from toolkit.client.bulk import Progress
    from toolkit.gas.runs.store import RunStore

__all__ = ["Collector"]

_MAX_ROWS = 1_000
_MAX_SECONDS = 2.0
"""What a run that is killed has to read again at most: so many rows, or those that came in so long."""
_TICK_S = 0.25
"""How often the age of waiting rows is looked at while no new ones come."""


class Collector:
    """Takes observations and writes them to a run: 1,000 at a time, and none later than 2 seconds after it came.

    While the block runs, a thread writes what waits if no further rows come. The rest is written when the block ends,
    however it ends.

    Parameters
    ----------
    store : RunStore
    bar : Progress
        Moves with every observation.
    clock : callable, optional
        Seconds; replaced in tests.
    """

    def __init__(self, store: RunStore, bar: Progress, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self.bar = bar
        self._clock = clock
        self._rows: list[dict[str, Any]] = []
        self._tables: list[pa.Table] = []
        self._waiting = 0
        self._oldest_at = 0.0
        self._writing: tuple[int, int] | None = None
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
        self._thread.join()
        if error is None:
            self.flush()
            return
        with suppress(StudyError):  # the disk may be what failed; the first error is the one to report
            self.flush()

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
            self._oldest_at = self._clock()
        self._waiting += rows
        self.bar.advance(rows, failed=failed)
        if self._waiting >= _MAX_ROWS or self._failure is not None:
            self.flush()
        else:
            self.flush_if_due()

    def flush_if_due(self) -> None:
        """Write what waits if the oldest row of it is about 2 seconds old."""
        with self._lock:
            if self._waiting and self._clock() - self._oldest_at >= _MAX_SECONDS - _TICK_S:
                self.flush()

    def flush(self) -> None:
        """Write what waits.

        Raises
        ------
        RunStopped
            If it cannot be written, now or in an earlier attempt of the thread that writes while no rows come.
        """
        import pyarrow as pa

        with self._lock:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            self._forget_written()
            if not self._waiting:
                return
            waiting = [OBSERVATIONS.table(row_columns(self._rows)), *self._tables]
            self._writing = self._store.added, self._waiting
            self._store.add(pa.concat_tables(waiting))
            self._forget_written()

    def _forget_written(self) -> None:
        """Drop the rows that are in the store: an interrupt may come after their writing and before this is known."""
        if self._writing is not None and self._store.added == sum(self._writing):
            self._rows, self._tables, self._waiting = [], [], 0
        self._writing = None

    def _watch(self) -> None:
        while not self._ended.wait(_TICK_S):
            try:
                self.flush_if_due()
            except Exception as error:  # noqa: BLE001 - raised again where rows are taken
                self._failure = error
                return
