"""Reports the progress of many calls: with a bar in notebooks and terminals, or to a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm.auto import tqdm

# Called with what is done, such as "observing", the number of calls done, and the number expected so far.
ProgressHook = Callable[[str, int, int], object]


class Progress:
    """A progress bar whose total may change while it runs."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._failed = 0

    def expect(self, more: int, *, found: int = 0) -> None:
        """Increase the total; the `found` calls count as done, but not towards the rate."""
        bar = self._bar
        if bar.disable:  # it has no end to move
            return
        done, began = bar.n, bar.start_t
        # In a notebook only `reset` moves the end that is drawn; it also sets the bar to 0, which is undone here.
        bar.reset(total=(bar.total or 0) + more + found)
        bar.initial += found
        bar.n, bar.start_t = done + found, began
        bar.refresh()

    def advance(self, done: int, *, failed: int = 0) -> None:
        """Advance the bar; the number of failed calls is shown next to the rate."""
        if failed:
            self._failed += failed
            self._bar.set_postfix_str(f"{self._failed:,} failed", refresh=False)
        self._bar.update(done)


class _Reported(Progress):
    """Reports progress to a function instead of showing a bar."""

    def __init__(self, hook: ProgressHook, what: str, total: int) -> None:
        super().__init__(None)
        self._hook, self._what = hook, what
        self._done, self._total = 0, total
        hook(what, 0, total)

    def expect(self, more: int, *, found: int = 0) -> None:
        self._total += more + found
        self.advance(found)

    def advance(self, done: int, *, failed: int = 0) -> None:
        self._failed += failed
        self._done += done
        self._hook(self._what, self._done, self._total)


@contextmanager
def progress_bar(total: int, what: str, *, show: bool | ProgressHook) -> Iterator[Progress]:
    """Show a progress bar while the block runs, in notebooks and terminals, but not in a log file.

    If `show` is a function, it is called instead, the first time with 0 calls done. Errors that it raises propagate.
    """
    if callable(show):
        yield _Reported(show, what, total)
        return
    hidden = not show or not (_in_notebook() or sys.stderr.isatty())
    options: dict[str, Any] = {"total": total, "desc": what, "unit": "call", "disable": hidden, "leave": False}
    if hidden or "tqdm.notebook" not in {one.__module__ for one in getattr(tqdm, "__mro__", ())}:
        with tqdm(**options) as bar:
            yield Progress(bar)
        return
    from IPython.display import display

    # tqdm closes a finished bar, but its output, a text with 0 %, would stay in the file of the notebook.
    with tqdm(**options, display=False) as bar:
        shown: Any = display(bar.container, display_id=True)  # type: ignore[no-untyped-call]
        try:
            yield Progress(bar)
        finally:
            shown.update({"text/plain": ""}, raw=True)


def _in_notebook() -> bool:
    """Return whether this process is a notebook kernel, rather than one that has merely imported IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")
