"""Widgets in saved notebooks: a picture of each, with its last result, for places without the kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anywidget
from traitlets import Unicode

from toolkit.widgets._html import code, pairs, paragraph, safe

if TYPE_CHECKING:
    from collections.abc import Iterable


_NOTE = "This is a picture of the form with its last result. Run the cell to use the form."
# Of the output with the widget itself, which places without the kernel skip: the output after it has the picture.
_LIVE = "<!-- the form -->"


class Pictured(anywidget.AnyWidget):
    """A widget that notebooks store as a picture, too, which changes with the last result.

    JupyterLab draws a widget or says that its model is not found; it does not fall back to another form of the same
    output. So the picture is an output of its own, which the style sheet hides while the widget is there.
    """

    _key = Unicode().tag(sync=True)  # of the picture: the browser hides it
    _displayed = False

    def _write_link(self) -> None:
        """Note that what is typed has changed."""

    def _picture(self) -> str:
        """Return the widget as HTML that needs neither the kernel nor a script."""
        raise NotImplementedError

    def _bundle(self) -> dict[str, str]:
        page = f'<style>{self._css}</style><div data-ltk-of="{self._key}">{self._picture()}</div>'
        return {"text/html": page, "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        self._key, self._displayed = self.model_id or "", True
        bundle = self._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        display(dict(data or {}) | {"text/html": _LIVE}, raw=True)  # type: ignore[no-untyped-call]
        display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]

    def _paint(self) -> None:
        """Store the picture as it is now, in all cells that show the widget."""
        if self._displayed:
            from IPython.display import update_display

            update_display(self._bundle(), raw=True, display_id=self._key)  # type: ignore[no-untyped-call]


def picture(
    title: str, facts: Iterable[tuple[str, Any]], program: str, parts: Iterable[str], *, caption: str = "Entries"
) -> str:
    """Return a form as HTML that does not need the kernel, for saved notebooks.

    Parameters
    ----------
    title : str
    facts : iterable of (str, object)
        Labels and what was entered.
    program : str
        The request as Python.
    parts : iterable of str
        Pages of results, or pictures of forms, whose note is said once.
    caption : str, default "Entries"
        Of the facts: sites that remove style sheets show it.
    """
    shown, note = "".join(parts), paragraph(_NOTE)
    text = code(program, "The request as Python") if program else ""
    body = f"<strong>{safe(title)}</strong>{pairs(facts, caption)}{shown.replace(note, '')}{text}{note}"
    return f'<div class="ltk ltk-picture">{body}</div>'
