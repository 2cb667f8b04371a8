r"""Display in notebooks: frames and facts as HTML.

Text from the chain may contain dollar signs, but must not be typeset as mathematics. JupyterLab passes HTML outputs to
MathJax, which typesets ``$...$``, ``\(...\)`` and ``\begin{...}``, even if they are written as character references.
MathJax skips elements of the class ``mathjax_ignore``; MathJax 2, which exported notebooks use, skips elements of the
class ``tex2jax_ignore``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

_CELL = "text-align:left;padding:2px 12px 2px 0;vertical-align:top"

_as_tables = True  # set by `set_display`

# Characters of a value and of a title in a table of facts.
_MAX_VALUE = 300
_MAX_TITLE = 120


def literal(html: str) -> str:
    """Return HTML in an element that MathJax leaves unchanged."""
    return f'<div class="mathjax_ignore tex2jax_ignore">{html}</div>'


def facts_html(title: str, facts: Sequence[tuple[str, Any]]) -> str:
    """Return a titled table of facts as HTML that does not set colours.

    Parameters
    ----------
    title : str
    facts : sequence of (str, object)
        Names and values. A value is shown by ``str``, with short addresses and truncated to 300 characters, an int with
        thousands separators; None is omitted.

    Returns
    -------
    str
        Text is escaped, invisible characters are shown as escapes, and MathJax leaves the text unchanged.
    """
    # Imported on use: `import toolkit` imports this module, and these take a third of its time.
    from html import escape

    from toolkit._present.text import short_addresses, visible

    known = ((name, f"{value:,}" if type(value) is int else value) for name, value in facts if value is not None)
    rows = "".join(
        f'<tr><th style="{_CELL};font-weight:normal;opacity:.7">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(visible(short_addresses(str(value)), _MAX_VALUE))}</td></tr>'
        for name, value in known
    )
    head = escape(visible(short_addresses(title), _MAX_TITLE))
    return literal(f'<strong>{head}</strong><table style="border-collapse:collapse;margin:4px 0">{rows}</table>')


def running_marimo() -> Any:
    """Return the module marimo if this process runs one of its notebooks, else None."""
    marimo = sys.modules.get("marimo")
    return marimo if marimo is not None and marimo.running_in_notebook() else None


def show_frames_as_tables(shown: Callable[[Any, int], Any]) -> None:
    """Make IPython show the toolkit's frames like `shown`: as HTML, or as text in a terminal, which has no HTML.

    This has no effect outside IPython.

    Only frames with ``attrs["toolkit"]``, which every function of the toolkit sets, or with wide integers are affected.
    A formatter that the user registered for DataFrame takes precedence.

    Parameters
    ----------
    shown : callable
        Returns a frame with a maximum number of rows as an object that IPython can show.
    """
    module = sys.modules.get("IPython")
    shell = module.get_ipython() if module is not None else None
    display_formatter = getattr(shell, "display_formatter", None)  # a host such as Solara has a shell without one
    if display_formatter is not None:
        has_html = "text/html" in display_formatter.active_types
        formatter = display_formatter.formatters["text/html" if has_html else "text/plain"]
        form = partial(_frame_html if has_html else _print_frame, shown=shown)
        for name in ("pandas", "pandas.core.frame"):  # where the class says it is defined, in pandas 3 and before
            formatter.for_type_by_name(name, "DataFrame", form)


def set_display(enabled: bool) -> None:  # noqa: FBT001 - set_display(False) is the way to say it
    """Choose whether notebooks and IPython format the toolkit's frames like `toolkit.show` or like pandas.

    By default, frames are formatted for reading: shortened addresses that stay distinct, thousands separators, units
    below the column names, the meaning of a column on hover, and no empty columns. The data is exact either way. Other
    frames always look as in pandas.

    Parameters
    ----------
    enabled : bool
        Whether to format frames like `toolkit.show`. If False, they are formatted by pandas.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.set_display(False)
    >>> toolkit.set_display(True)
    """
    global _as_tables  # noqa: PLW0603 - one switch for the process, like an option of pandas
    _as_tables = bool(enabled)


def _frame_html(frame: Any, shown: Callable[[Any, int], Any]) -> str | None:
    """Return the HTML of a frame, or None if pandas is set to show text."""
    import pandas as pd

    if not _is_own(frame) or not pd.get_option("display.notebook_repr_html"):
        return frame._repr_html_()  # type: ignore[no-any-return]
    if not _as_tables:
        with pd.option_context("display.html.use_mathjax", False):  # noqa: FBT003 - pandas' signature
            return frame._repr_html_()  # type: ignore[no-any-return]
    return shown(frame, _max_rows(frame))._repr_html_()  # type: ignore[no-any-return]


def _print_frame(frame: Any, printer: Any, cycle: Any, shown: Callable[[Any, int], Any]) -> None:  # noqa: ARG001 - IPython's signature
    """Print a frame with a printer of IPython."""
    own = _as_tables and _is_own(frame)
    with printer.group():  # as IPython prints other objects: in a list, each line is indented
        for number, line in enumerate(repr(shown(frame, _max_rows(frame)) if own else frame).splitlines()):
            if number:
                printer.break_()
            printer.text(line)


def _is_own(frame: Any) -> bool:
    """Return whether a frame comes from the toolkit or has wide integers."""
    return "toolkit" in frame.attrs or any(hasattr(dtype, "wide") for dtype in frame.dtypes)


def _max_rows(frame: Any) -> int:
    """Return the number of rows to show, as in pandas: all up to `max_rows`, and `min_rows` of longer frames."""
    import pandas as pd

    max_rows = pd.get_option("display.max_rows")
    if not max_rows or len(frame) <= max_rows:  # None and 0 set no limit
        return len(frame)
    return pd.get_option("display.min_rows") or max_rows  # type: ignore[no-any-return]
