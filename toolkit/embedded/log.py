"""A list that forgets its beginning: what is kept of transactions and blocks inside the pruning window."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Log"]

_T = TypeVar("_T")
_SLACK = 1024


class Log(Generic[_T]):
    """Items in order; appended at the end, dropped at the beginning, read anywhere at equal cost."""

    __slots__ = ("_items", "_start")

    def __init__(self) -> None:
        self._items: list[_T] = []
        self._start = 0

    def __len__(self) -> int:
        return len(self._items) - self._start

    def __getitem__(self, index: int) -> _T:
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._items[index if index < 0 else self._start + index]

    def append(self, item: _T) -> None:
        """Add an item at the end."""
        self._items.append(item)

    def replace_last(self, item: _T) -> None:
        """Put another item in the last one's place."""
        self._items[-1] = item

    def drop_first(self) -> _T:
        """Take the first item out and return it; memory is given back from time to time."""
        item = self[0]
        self._start += 1
        if self._start > _SLACK and self._start > len(self._items) // 2:
            del self._items[: self._start]
            self._start = 0
        return item
