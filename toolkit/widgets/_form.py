"""The layout of a simulation builder: its controls, and how they show a state. Makes no decisions and no requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as w

from toolkit.widgets._entries import FIELDS
from toolkit.widgets._results import Html, code, message, pages, request_as_json, safe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from toolkit.client._node import Node
    from toolkit.client._results import Simulation
    from toolkit.widgets._entries import ResolvedCall
    from toolkit.wire import SimulationRequest

__all__ = ["ESTIMATES", "SimulationForm", "close_all"]

ESTIMATES = {
    "estimate_max_gas_amount": "Estimate max gas amount",
    "estimate_gas_unit_price": "Estimate gas unit price",
    "estimate_prioritized_gas_unit_price": "Use the prioritized gas unit price",
}
"""Labels of the estimate options, by trait."""

_EMPTY = "Enter a sender and a function to see the request."
_LAST_GOOD = "From the last valid entries:"
_STALE = "The entries have changed. These results belong to the request on the last page."


class SimulationForm:
    """The widgets of a simulation builder.

    Parameters
    ----------
    node : Node
        Its name is shown in the title.

    Attributes
    ----------
    controls : dict of str to ipywidgets widget
        Input controls by the name of the builder's trait.
    simulate_button, check_button : ipywidgets.Button
    children : tuple of ipywidgets widget
        All parts, from top to bottom.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fields = _text_fields()
        boxes = {name: w.Checkbox(description=label, indent=False) for name, label in ESTIMATES.items()}
        self.controls: dict[str, w.Widget] = {name: field.control for name, field in self._fields.items()} | boxes
        self.simulate_button = w.Button(
            description="Simulate", button_style="primary", tooltip="Check the arguments, then run the transaction"
        )
        self.check_button = w.Button(description="Check", tooltip="Check the entries against the module's ABI")
        self._message = w.HTML()
        self._python, self._json = w.HTML(), w.HTML()
        self._stale = w.HTML()
        self._pages = w.Tab()
        self._results = w.VBox([self._stale, self._pages], layout={"display": "none"})
        self.children = self._arranged(list(boxes.values()))

    def _arranged(self, boxes: list[w.Widget]) -> tuple[w.Widget, ...]:
        title = Html(f'<div class="ltk-title">Simulate a transaction<span>Node: {safe(self._node.name)}</span></div>')
        actions = _with_class(
            w.HBox([self.simulate_button, self.check_button, self._message], layout={"padding": f"0 0 0 {INDENT}"}),
            "ltk-actions",
        )
        heading = w.Label("Gas", layout={"width": LABEL_WIDTH})
        estimates = _with_class(w.HBox([heading, w.VBox(boxes)]), "ltk-estimates")
        form = w.VBox([*(field.widget for field in self._fields.values()), estimates, actions])
        preview = w.Tab([self._python, self._json], titles=["Python", "JSON"])
        columns = w.HBox([_with_class(form, "ltk-form"), _with_class(preview, "ltk-preview")])
        return (
            w.HTML(f"<style>{CSS}</style>{title}"),
            _with_class(columns, "ltk-columns"),
            self._results,
        )

    def show_request(
        self,
        request: SimulationRequest | None,
        python: str,
        arguments: Sequence[Any] | None = None,
        *,
        current: bool = True,
    ) -> None:
        """Show a request as Python and as JSON.

        Parameters
        ----------
        request : SimulationRequest or None
        python : str
        arguments : sequence, optional
            Arguments as the node reads them from JSON, if the ABI is known.
        current : bool, default True
            False if an entry has an error, so that the request is older than the entries.
        """
        if request is None:
            self._python.value = self._json.value = message(_EMPTY, "hint")
            return
        note = "" if current else message(_LAST_GOOD, "last")
        self._python.value = note + code(python, "The request as Python")
        self._json.value = note + code(request_as_json(request, arguments), "The request as JSON")

    def show_problems(self, errors: Mapping[str, str]) -> None:
        """Show the error of each entry, or its hint."""
        for name, field in self._fields.items():
            field.show_message(errors.get(name, ""), "error" if name in errors else "hint")

    def show_known(self, known: ResolvedCall) -> None:
        """Show that the arguments fit, and the signature they were checked against."""
        text = f"Matches {known.signature} at version {known.ledger_version:,}"
        self._fields["arguments"].show_message(text, "ok")

    def show_message(self, text: str, kind: Literal["error", "hint"] = "hint") -> None:
        """Show a message beside the buttons."""
        self._message.value = message(text, kind) if text else ""

    def show_busy(self, *, busy: bool) -> None:
        """Disable the buttons while a request is in progress."""
        self.simulate_button.disabled = self.check_button.disabled = busy

    def show_simulation(self, simulation: Simulation | None) -> None:
        """Show the pages of a simulation, or hide them if there is none."""
        shown = {} if simulation is None else pages(simulation, self._node)
        old = self._pages.children
        selected = self._pages.selected_index or 0
        self._pages.children = tuple(w.HTML(html) for html in shown.values())
        self._pages.titles = tuple(shown)
        self._pages.selected_index = selected if shown else None
        self._results.layout.display = None if shown else "none"
        for page in old:
            close_all(page)
            page.close()

    def show_stale(self, *, stale: bool) -> None:
        """Show a note if the results belong to earlier entries."""
        self._stale.value = message(_STALE, "hint") if stale else ""


def _text_fields() -> dict[str, TextField]:
    about: dict[str, tuple[str, str, int]] = {
        "sender": (
            "The account that sends the transaction. No key is needed; nothing is signed or submitted.",
            "0xa11ce",
            1,
        ),
        "function": (
            "An entry function: address::module::function",
            "0x1::aptos_account::transfer",
            1,
        ),
        "type_arguments": (
            "Move types, one per line; empty if the function has none.",
            "0x1::aptos_coin::AptosCoin",
            2,
        ),
        "arguments": ("A JSON array without the signers.", '["0xb0b", 100]', 3),
    }
    return {
        name: TextField(label, hint=about[name][0], example=about[name][1], rows=about[name][2])
        for name, label in FIELDS.items()
    }


def _with_class(box: w.Box, name: str) -> w.Box:
    box.add_class(name)
    return box


LABEL_WIDTH = "118px"
INDENT = "126px"
"""Left edge of the entries: the label and the gap that ipywidgets puts after it."""


class TextField:
    """A labelled text entry with one line of text below it: a hint, an error or a confirmation.

    Parameters
    ----------
    label : str
        Label, which the browser ties to the entry.
    hint : str
        Shown below the entry unless an error or a confirmation is shown.
    example : str
        Placeholder of the empty entry.
    rows : int, default 1
        Lines of text; 2 or more allow line breaks.
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
        self._line = w.HTML(layout={"padding": f"0 0 0 {INDENT}"})
        self.widget = w.VBox([self.control, self._line])
        self.widget.add_class("ltk-field")
        self.show_message("")

    def show_message(self, text: str, kind: Literal["error", "ok", "hint"] = "hint") -> None:
        """Show a message below the entry; an empty text shows the hint."""
        self._line.value = message(text or self._hint, kind)
        mark = self.widget.add_class if kind == "error" else self.widget.remove_class
        mark("ltk-wrong")


def close_all(widget: w.Widget) -> None:
    """Close the children of a widget with their layouts and styles, and remove all observers. The widget stays open."""
    for child in getattr(widget, "children", ()):
        close_all(child)
        child.close()
    for name in ("layout", "style"):
        if widget.has_trait(name):
            getattr(widget, name).close()
    widget.unobserve_all()


# Colours come from JupyterLab's theme, so light and dark themes both work.
CSS = """
.ltk {
  --ltk-ink: var(--jp-ui-font-color1, #1f2328);
  --ltk-muted: var(--jp-ui-font-color2, #57606a);
  --ltk-line: var(--jp-border-color2, #d8dee4);
  --ltk-soft: var(--jp-layout-color2, #f2f4f6);
  --ltk-paper: var(--jp-layout-color1, #ffffff);
  --ltk-good: var(--jp-success-color0, #1b6e33);
  --ltk-bad: var(--jp-error-color0, #b3261e);
  --ltk-brand: var(--jp-brand-color1, #1976d2);
  --ltk-mono: var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace);
  max-width: 76rem; color: var(--ltk-ink); padding: 4px 2px 10px; overflow: visible;
}
.ltk .widget-html-content { line-height: 1.45; }
.ltk-title { font-size: 1.15em; font-weight: 600; color: var(--ltk-ink); }
.ltk-title span { font-weight: 400; font-size: 0.87em; color: var(--ltk-muted); margin-left: 0.6em; }
.ltk-columns { flex-flow: row wrap; gap: 10px 28px; align-items: flex-start; overflow: visible; }
.ltk-form { flex: 1 1 28rem; min-width: 0; gap: 2px; overflow: visible; }
.ltk-preview { flex: 1 1 25rem; min-width: 0; overflow: visible; }
.ltk-field { overflow: visible; }
.ltk-field > .widget-text, .ltk-field > .widget-textarea { width: 100%; margin: 2px 0; }
.ltk > .widget-html { margin: 0 0 6px; }
.ltk-field .widget-label { text-align: left; color: var(--ltk-ink); overflow: visible; }
.ltk-field input[type="text"], .ltk-field textarea {
  font-family: var(--ltk-mono); font-size: 0.95em; border-radius: 3px;
}
.ltk-field textarea { min-height: 3.6em; resize: vertical; line-height: 1.4; padding: 5px 8px; }
.ltk-field.ltk-wrong input[type="text"], .ltk-field.ltk-wrong textarea {
  border-color: var(--ltk-bad); box-shadow: inset 3px 0 0 var(--ltk-bad);
}
.ltk-field > .widget-html, .ltk-estimates > .widget-html { margin: 0 0 5px; height: auto; min-height: 1.5em; }
.ltk-field > .widget-html > .widget-html-content { overflow-wrap: anywhere; }
.ltk-estimates { overflow: visible; margin: 0 0 4px; }
.ltk-estimates > .widget-label { margin: 0 8px 0 0; color: var(--ltk-ink); flex: none; }
.ltk-estimates > .widget-vbox { overflow: visible; }
.ltk-estimates .widget-checkbox { width: auto; margin: 0; }
.ltk-estimates .widget-checkbox .widget-label-basic, .ltk-estimates .widget-checkbox span { color: var(--ltk-ink); }
.ltk-hint, .ltk p.ltk-note { font-size: 0.92em; color: var(--ltk-muted); }
.ltk-error { font-size: 0.92em; color: var(--ltk-bad); overflow-wrap: anywhere; }
.ltk-error::before { content: "\\26A0\\FE0E\\00A0"; }
.ltk-ok { font-size: 0.92em; color: var(--ltk-good); }
.ltk-ok::before { content: "\\2713\\00A0"; }
.ltk-last { font-size: 0.92em; color: var(--ltk-muted); margin-bottom: 6px; }
.ltk-actions { align-items: center; gap: 6px; flex-wrap: wrap; padding: 4px 0 8px; overflow: visible; }
.ltk-actions > .widget-html { flex: 1 1 100%; height: auto; min-height: 1.5em; margin: 0; }
.ltk-actions .widget-button { width: auto; min-width: 7rem; margin: 0; padding: 0 16px; }
.ltk .jupyter-button:focus-visible, .ltk .ltk-code:focus-visible, .ltk .ltk-scroll:focus-visible,
.ltk summary:focus-visible, .ltk .lm-TabBar-tab:focus-visible {
  outline: 2px solid var(--ltk-brand); outline-offset: 1px;
}
.ltk .widget-tab > .lm-TabBar .lm-TabBar-tab { flex: 0 1 auto; min-width: 4.5em; padding: 0 14px; }
.ltk .widget-tab > .lm-TabBar .lm-TabBar-tabLabel { overflow: visible; }
.ltk .widget-tab > .widget-tab-contents { padding: 10px 12px; overflow: visible; border-radius: 0 0 3px 3px; }
.ltk .widget-tab .widget-html { height: auto; margin: 0; }
.ltk .widget-tab .widget-html > .widget-html-content { min-width: 0; width: 100%; }
.ltk .ltk-code {
  margin: 0 0 8px; padding: 10px 12px; max-height: 30rem; overflow: auto; border: 1px solid var(--ltk-line);
  border-radius: 3px; background: var(--ltk-soft); color: var(--ltk-ink); font-family: var(--ltk-mono);
  font-size: 0.92em; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
}
.ltk .ltk-scroll { overflow-x: auto; margin-bottom: 8px; }
.ltk table.ltk-table {
  border-collapse: collapse; border: 0; margin: 0 0 8px; color: var(--ltk-ink); font-size: 0.95em; width: 100%;
  table-layout: auto;
}
.ltk table.ltk-pairs { width: auto; min-width: 24rem; }
.ltk .ltk-table caption {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
.ltk .ltk-table th, .ltk .ltk-table td {
  text-align: left; vertical-align: top; padding: 5px 20px 5px 0; border: 0;
  border-bottom: 1px solid var(--ltk-line); background: none; max-width: none; white-space: normal;
  overflow-wrap: anywhere;
}
.ltk .ltk-table th { font-weight: 600; color: var(--ltk-muted); overflow-wrap: normal; white-space: nowrap; }
.ltk .ltk-table tr, .ltk .ltk-table tr:hover { background: none; }
.ltk .ltk-table .ltk-number { text-align: right; white-space: nowrap; }
.ltk .ltk-table .ltk-brief { white-space: nowrap; }
.ltk .ltk-table .ltk-wide { width: 45%; }
.ltk .ltk-table details code { word-break: break-all; }
.ltk .ltk-table code, .ltk p code {
  font-family: var(--ltk-mono); font-size: 0.95em; background: none; padding: 0; color: inherit;
}
.ltk-badge {
  display: inline-block; padding: 0 9px; margin-right: 6px; border: 1px solid currentColor; border-radius: 10px;
  font-weight: 600; font-size: 0.92em;
}
.ltk-badge.ltk-good { color: var(--ltk-good); }
.ltk-badge.ltk-bad { color: var(--ltk-bad); }
.ltk-bar { display: inline-block; width: 12rem; height: 0.6em; background: var(--ltk-soft); border-radius: 2px; }
.ltk-bar > span { display: block; height: 100%; background: var(--ltk-brand); border-radius: 2px; }
.ltk p.ltk-note, .ltk p.ltk-error { margin: 2px 0 6px; }
.ltk-fold > summary { cursor: pointer; overflow-wrap: anywhere; }
.ltk-fold[open] > summary { margin-bottom: 4px; color: var(--ltk-muted); }
[data-jp-theme-light="false"] .ltk {
  --ltk-good: #7ee29b;
  --ltk-bad: #ff9b93;
}
"""
