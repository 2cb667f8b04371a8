"""What a simulation builder looks like: its parts, and how they show a state. No decisions, no node calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import ipywidgets as w

from toolkit.widgets.entries import FIELDS
from toolkit.widgets.fields import INDENT, LABEL_WIDTH, TextField, close_all
from toolkit.widgets.markup import Html, code, message, safe
from toolkit.widgets.panels import panels
from toolkit.widgets.snippets import request_as_json
from toolkit.widgets.style import CSS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from toolkit.client.node import Node
    from toolkit.client.results import Simulation
    from toolkit.widgets.known_call import KnownCall
    from toolkit.wire.requests import SimulationRequest

__all__ = ["ESTIMATES", "SimulationView"]

ESTIMATES = {
    "estimate_max_gas_amount": "Estimate max gas amount",
    "estimate_gas_unit_price": "Estimate gas unit price",
    "estimate_prioritized_gas_unit_price": "Use the prioritized gas unit price",
}
"""The estimate options, with their labels."""

_EMPTY = "Fill in sender and function to see the request."
_LAST_GOOD = "Of the last good entries:"
_STALE = "The entries have changed since. These are the results of the request on the last page."


class SimulationView:
    """The widgets of a simulation builder.

    Parameters
    ----------
    node : Node
        Named in the title and in the request as Python.

    Attributes
    ----------
    controls : dict of str to ipywidgets widget
        What is typed and ticked, by the name of the builder's trait.
    simulate_button, check_button : ipywidgets.Button
    children : tuple of ipywidgets widget
        Everything, from top to bottom.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fields = _text_fields()
        boxes = {name: w.Checkbox(description=label, indent=False) for name, label in ESTIMATES.items()}
        self.controls: dict[str, w.Widget] = {name: field.control for name, field in self._fields.items()} | boxes
        self.simulate_button = w.Button(
            description="Simulate", button_style="primary", tooltip="Check the arguments, then run the transaction"
        )
        self.check_button = w.Button(description="Check", tooltip="Check the entries by the module's ABI, no more")
        self._said = w.HTML()
        self._python, self._json = w.HTML(), w.HTML()
        self._stale = w.HTML()
        self._pages = w.Tab()
        self._results = w.VBox([self._stale, self._pages], layout={"display": "none"})
        self.children = self._arranged(list(boxes.values()))

    def _arranged(self, boxes: list[w.Widget]) -> tuple[w.Widget, ...]:
        title = Html(f'<div class="ltk-title">Simulate a transaction<span>Node: {safe(self._node.name)}</span></div>')
        actions = _with_class(
            w.HBox([self.simulate_button, self.check_button, self._said], layout={"padding": f"0 0 0 {INDENT}"}),
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
            In the node's forms, where they are known.
        current : bool, default True
            Whether it is made of the entries as they stand.
        """
        if request is None:
            self._python.value = self._json.value = message(_EMPTY, "hint")
            return
        note = "" if current else message(_LAST_GOOD, "last")
        self._python.value = note + code(python, "The request as Python")
        self._json.value = note + code(request_as_json(request, arguments), "The request as JSON")

    def show_problems(self, errors: Mapping[str, str]) -> None:
        """Show what is wrong at each entry."""
        for name, field in self._fields.items():
            field.say(errors.get(name, ""), "error" if name in errors else "hint")

    def show_known(self, known: KnownCall) -> None:
        """Say that the arguments fit, and by which ABI."""
        text = f"Fits {known.signature} of version {known.ledger_version:,}"
        self._fields["arguments"].say(text, "ok")

    def say(self, text: str, kind: Literal["error", "hint"] = "hint") -> None:
        """Write a line beside the buttons."""
        self._said.value = message(text, kind) if text else ""

    def show_busy(self, *, busy: bool) -> None:
        """Keep the buttons from being pressed while the node is asked."""
        self.simulate_button.disabled = self.check_button.disabled = busy

    def show_simulation(self, simulation: Simulation | None) -> None:
        """Show the pages of a simulation, none where there is none."""
        pages = {} if simulation is None else panels(simulation, self._node)
        old = self._pages.children
        selected = self._pages.selected_index or 0
        self._pages.children = tuple(w.HTML(html) for html in pages.values())
        self._pages.titles = tuple(pages)
        self._pages.selected_index = selected if pages else None
        self._results.layout.display = None if pages else "none"
        for page in old:
            close_all(page)
            page.close()

    def show_stale(self, *, stale: bool) -> None:
        """Say that the results are not those of the entries."""
        self._stale.value = message(_STALE, "hint") if stale else ""


def _text_fields() -> dict[str, TextField]:
    about: dict[str, tuple[str, str, int]] = {
        "sender": ("Whose transaction is tried. No key is needed; nothing is signed or submitted.", "0xa11ce", 1),
        "function": (
            "An entry function: address::module::function",
            "0x1::aptos_account::transfer",
            1,
        ),
        "type_arguments": (
            "Move types, one a line; empty where the function has none.",
            "0x1::aptos_coin::AptosCoin",
            2,
        ),
        "arguments": ("A JSON array, signers left out.", '["0xb0b", 100]', 3),
    }
    return {
        name: TextField(label, hint=about[name][0], example=about[name][1], rows=about[name][2])
        for name, label in FIELDS.items()
    }


def _with_class(box: w.Box, name: str) -> w.Box:
    box.add_class(name)
    return box
