"""Between reading and writing: observations wait here until they are worth a write, and are counted."""

from __future__ import annotations

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

_MOST_ROWS = 1_000
_MOST_SECONDS = 10.0
"""What a run that is killed has to read again at most: so many rows, or as many as came in so long."""


class Collector:
    """Takes observations and writes them to a run by the thousand; the rest when its block ends, however it ends.

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
        self._written_at = clock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.flush()
            return
        with suppress(StudyError):  # the disk may be what failed; the first error is the one to tell
            self.flush()

    def take(self, row: dict[str, Any]) -> None:
        """Take one observation."""
        self._rows.append(row)
        self._took(1, failed=row["error_code"] is not None)

    def take_table(self, table: pa.Table) -> None:
        """Take the observations of a range that was read elsewhere."""
        self._tables.append(table)
        self._took(len(table), failed=len(table) - table["error_code"].null_count)

    def _took(self, rows: int, *, failed: int) -> None:
        self._waiting += rows
        self.bar.advance(rows, failed=failed)
        if self._waiting >= _MOST_ROWS or self._clock() - self._written_at >= _MOST_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        import pyarrow as pa

        waiting = [OBSERVATIONS.table(row_columns(self._rows)), *self._tables]
        self._store.add(pa.concat_tables(waiting))
        self._rows, self._tables, self._waiting = [], [], 0
        self._written_at = self._clock()
