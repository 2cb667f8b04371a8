"""Reports the progress of many calls: with a bar in notebooks and terminals, or to a function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from io import StringIO
from typing import Any

from tqdm import tqdm

from toolkit._present.notebook import running_marimo

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
        bar.total = (bar.total or 0) + more + found
        bar.initial += found
        bar.n += found
        bar.refresh()

    def advance(self, done: int, *, failed: int = 0) -> None:
        """Advance the bar; the number of calls without a result is shown next to the rate."""
        if failed:
            self._failed += failed
            self._bar.set_postfix_str(self._without(), refresh=False)
        self._bar.update(done)

    def _without(self) -> str:
        """Return what is said of calls that failed: while they run, a function may just not exist at early versions."""
        return f"{self._failed:,} without a result"


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
    if show and (marimo := running_marimo()) is not None:
        with marimo.status.progress_bar(total=total, title=what, remove_on_exit=True) as bar:
            yield _InMarimo(bar)
        return
    in_notebook = _in_notebook()
    options: dict[str, Any] = {"total": total, "desc": what, "leave": False}
    options["disable"] = not show or not (in_notebook or _on_terminal())
    with (_InNotebook if in_notebook and show else tqdm)(**options) as bar:
        yield Progress(bar)


class _InNotebook(tqdm):  # type: ignore[misc]
    """A bar in one output of the cell, which is replaced, and emptied at the end.

    It is not a widget: the model of a finished bar is missing in a saved notebook, which then shows an error.
    """

    def __init__(self, **options: Any) -> None:
        from IPython.display import DisplayHandle

        self._output = DisplayHandle()  # type: ignore[no-untyped-call]
        self._output.display({"text/plain": ""}, raw=True)  # type: ignore[no-untyped-call]
        counts = "{desc}: {n_fmt} of {total_fmt} [{elapsed}<{remaining}, {rate_fmt}{postfix}]"
        super().__init__(**options, file=StringIO(), bar_format=counts)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Draw the bar; an empty text removes it. tqdm calls this, at most ten times a second."""
        del pos
        text = str(self) if msg is None else msg
        share = f'max="{self.total}" value="{self.n}"' if self.total else ""
        html = f'<progress {share} style="vertical-align: middle"></progress> {escape(text)}'
        data = {"text/html": html, "text/plain": text} if text else {"text/plain": ""}
        self._output.update(data, raw=True)  # type: ignore[no-untyped-call]


class _InMarimo(Progress):
    """A progress bar of marimo."""

    def expect(self, more: int, *, found: int = 0) -> None:
        self._bar.total += more + found
        self.advance(found)

    def advance(self, done: int, *, failed: int = 0) -> None:
        self._failed += failed
        self._bar.update(done, subtitle=self._without() if self._failed else None)


def _in_notebook() -> bool:
    """Return whether this process is a notebook kernel, rather than one that has merely imported IPython."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _on_terminal() -> bool:
    return sys.stderr.isatty()
