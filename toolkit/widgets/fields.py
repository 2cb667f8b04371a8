"""A labelled entry with one line of words under it: a hint, what is wrong, or what was found in order."""

from __future__ import annotations

from typing import Literal

import ipywidgets as w

from toolkit.widgets.markup import message

__all__ = ["INDENT", "LABEL_WIDTH", "TextField", "close_all"]

LABEL_WIDTH = "118px"
INDENT = "126px"
"""Where entries begin: the label, and the gap that ipywidgets leaves after it."""


class TextField:
    """A text entry. The browser ties its label to it.

    Parameters
    ----------
    label : str
        What is entered.
    hint : str
        Shown under the entry while there is nothing better to say.
    example : str
        Shown inside the empty entry.
    rows : int, default 1
        Lines of text; from 2 on, line ends can be entered.
    """

    def __init__(self, label: str, *, hint: str, example: str, rows: int = 1) -> None:
        self._hint = hint
        options = {
            "description": label,
            "placeholder": example,
            "continuous_update": True,
            "style": {"description_width": LABEL_WIDTH},
        }
        self.control = w.Text(**options) if rows == 1 else w.Textarea(rows=rows, **options)
        self._words = w.HTML(layout={"padding": f"0 0 0 {INDENT}"})
        self.widget = w.VBox([self.control, self._words])
        self.widget.add_class("ltk-field")
        self.say("")

    def say(self, text: str, kind: Literal["error", "ok", "hint"] = "hint") -> None:
        """Write a line under the entry; an empty text brings the hint back."""
        self._words.value = message(text or self._hint, kind)
        mark = self.widget.add_class if kind == "error" else self.widget.remove_class
        mark("ltk-wrong")


def close_all(widget: w.Widget) -> None:
    """Close a widget's children, their layouts and styles, and take all observers off; the widget itself stays."""
    for child in getattr(widget, "children", ()):
        close_all(child)
        child.close()
    for name in ("layout", "style"):
        if widget.has_trait(name):
            getattr(widget, name).close()
    widget.unobserve_all()
