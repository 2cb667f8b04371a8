"""A form that simulates an entry function.

The state consists of traits: the entries and the request made from them. Each keystroke parses the entries without
asking the node. **Check** and **Simulate** request the ABI; after that, each keystroke also checks the arguments.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import ipywidgets as w
from traitlets import Bool, Dict, Instance, Unicode, link, observe, validate

from toolkit.client._results import Simulation
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.widgets._entries import FIELDS, ResolvedCall, estimates_of, find_function, read_entries, write_entries
from toolkit.widgets._form import ESTIMATES, SimulationForm, close_all
from toolkit.widgets._results import request_as_python
from toolkit.wire import EntryFunction, SimulationRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.client._node import Node
    from toolkit.widgets._entries import Entries

__all__ = ["SimulationBuilder"]

_ENTRIES = (*FIELDS, *ESTIMATES)


class SimulationBuilder(w.VBox):  # type: ignore[misc]  # ipywidgets ships no types
    """Build, check and simulate a call of an entry function.

    Makes no request until **Check** or **Simulate** is pressed, or `check` or `simulate` is called.

    Parameters
    ----------
    node : Node
        Runs the simulations; available as ``node``.
    request : SimulationRequest, optional
        Initial content of the form.

    Attributes
    ----------
    sender : str
        As typed.
    function : str
        As typed: ``address::module::function``.
    type_arguments : str
        As typed: Move types, one per line or separated by commas.
    arguments : str
        As typed: a JSON array without the signers.
    estimate_max_gas_amount, estimate_gas_unit_price, estimate_prioritized_gas_unit_price : bool
        Estimates that the node is asked for.
    request : SimulationRequest or None
        The request made from the last valid entries. Set it to fill the form; fields that the form does not show
        keep their values.
    errors : dict of str to str
        Error messages by entry; ``node`` holds the error that the node returned. Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that sends `request`; empty without a request. Read only.
    simulation : Simulation or None
        The last result, with its frames ``transactions``, ``changes`` and ``events``. Read only.
    busy : bool
        True while a request is in progress. Read only.

    Raises
    ------
    InputError
        If the payload of `request`, given or set later, is not an `EntryFunction`.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.SimulationBuilder(toolkit.connect())
    >>> builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
    >>> builder.arguments = '["0xb0b", 100]'
    >>> builder.simulate()
    >>> builder.simulation.success
    True
    """

    sender = Unicode()
    function = Unicode()
    type_arguments = Unicode()
    arguments = Unicode()
    estimate_max_gas_amount = Bool(default_value=True)
    estimate_gas_unit_price = Bool(default_value=True)
    estimate_prioritized_gas_unit_price = Bool(default_value=False)
    request = Instance(SimulationRequest, allow_none=True)
    errors = Dict(read_only=True)
    error = Unicode(read_only=True)
    python = Unicode(read_only=True)
    simulation = Instance(Simulation, allow_none=True, read_only=True)
    busy = Bool(default_value=False, read_only=True)
    _known = Instance(ResolvedCall, allow_none=True)

    def __init__(self, node: Node, *, request: SimulationRequest | None = None) -> None:
        self.node = node
        self._filling = False
        self._form = SimulationForm(node)
        super().__init__(self._form.children)
        self.add_class("ltk")
        self._links = [link((self, name), (control, "value")) for name, control in self._form.controls.items()]
        self._form.simulate_button.on_click(self._on_simulate)
        self._form.check_button.on_click(self._on_check)
        self.request = request
        self._show()

    def __repr__(self) -> str:
        payload = None if self.request is None else self.request.payload
        return f"SimulationBuilder(Node({self.node.name!r}), {getattr(payload, 'function', 'no request yet')})"

    # actions -------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Check the entries against the ABI at the node's head, and set `errors`.

        Returns
        -------
        bool
            True if the entries can be simulated. If the node returns no ABI of the module, arguments are not
            checked.

        Notes
        -----
        Source: ``GET /v1`` and ``GET /v1/accounts/{address}/module/{name}``; ABIs are cached.
        """
        with self._busy_while("Checking\N{HORIZONTAL ELLIPSIS}"):
            return self._check()

    def simulate(self) -> None:
        """Check the entries, simulate the request and show the result; sets `errors` and `simulation`."""
        with self._busy_while("Simulating\N{HORIZONTAL ELLIPSIS}"):
            if not self._check() or self.request is None:
                return
            self.set_trait("simulation", None)
            try:
                self.set_trait("simulation", self.node.simulate(self.request))
            except ToolkitError as error:
                self._show_errors({"node": str(error)})

    def close(self) -> None:
        """Remove the widget and its parts from the page, and all observers."""
        for tie in self._links:
            tie.unlink()
        self._links = []
        self._form.simulate_button.on_click(self._on_simulate, remove=True)
        self._form.check_button.on_click(self._on_check, remove=True)
        close_all(self)
        super().close()

    # entries and request --------------------------------------------------------------------------------------

    @validate("request")
    def _request_can_be_shown(self, proposal: dict[str, Any]) -> SimulationRequest | None:
        request: SimulationRequest | None = proposal["value"]
        if request is not None:
            write_entries(request)
        return request

    @observe(*_ENTRIES)
    def _on_entry(self, _change: object) -> None:
        if not self._filling:
            self._take(self._read(self._known), needed=self.request is not None)

    @observe("request")
    def _on_request(self, _change: object) -> None:
        self.set_trait("python", "" if self.request is None else request_as_python(self.request, self.node))
        if not self._filling:
            self._fill_form()

    def _read(self, known: ResolvedCall | None) -> Entries:
        return read_entries({name: getattr(self, name) for name in FIELDS}, known)

    def _take(self, entries: Entries, *, needed: bool) -> None:
        """Set the request from valid entries, and show the errors of the others."""
        if entries.payload is not None and entries.sender is not None:
            with self._without_feedback():
                self.request = self._request_of(entries.sender, entries.payload)
        self._show_errors(entries.errors | (entries.missing if needed else {}))

    def _request_of(self, sender: str, payload: EntryFunction) -> SimulationRequest:
        """Return the request with the entries' values; an estimate option stays None until its box is clicked."""
        shown = estimates_of(self.request)._asdict()
        options = {name: getattr(self, name) for name in ESTIMATES}
        touched = {name: asked for name, asked in options.items() if asked != shown[name.removeprefix("estimate_")]}
        if self.request is None:
            return SimulationRequest(payload, sender=sender, **touched)
        return self.request.replace(payload=payload, sender=sender, **touched)

    def _fill_form(self) -> None:
        """Fill the entries from the request."""
        texts = dict.fromkeys(FIELDS, "") if self.request is None else write_entries(self.request)
        estimates = {f"estimate_{name}": asked for name, asked in estimates_of(self.request)._asdict().items()}
        with self._without_feedback():
            for name, value in (texts | estimates).items():
                setattr(self, name, value)
        self._show_errors(self._read(self._known).errors)

    @contextmanager
    def _without_feedback(self) -> Iterator[None]:
        """Set entries or the request without triggering the update of the other."""
        self._filling = True
        try:
            yield
        finally:
            self._filling = False

    # requests ------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        entries = self._read(None)
        self._show_errors(entries.errors | entries.missing)
        if self.errors or entries.payload is None:
            return False
        self._known = None
        field = "function"
        try:
            found = find_function(self.node, entries.payload.function)
            field = "type_arguments"
            self._known = None if found is None else found.with_types(entries.payload.type_arguments)
        except (InputError, SchemaError) as error:
            self._show_errors({field: str(error)})
        except ToolkitError as error:
            self._show_errors({"node": str(error)})
        else:
            self._take(self._read(self._known), needed=True)
        return not self.errors

    @contextmanager
    def _busy_while(self, words: str) -> Iterator[None]:
        """Set `busy` and show a message while the block runs."""
        self.set_trait("busy", value=True)
        self._form.show_message(words)
        try:
            yield
        finally:
            self.set_trait("busy", value=False)
            self._show_refusal()

    def _on_simulate(self, _button: object) -> None:
        self.simulate()

    def _on_check(self, _button: object) -> None:
        self.check()

    # display --------------------------------------------------------------------------------------------

    def _show_errors(self, errors: dict[str, str]) -> None:
        self.set_trait("errors", errors)
        self.set_trait("error", "; ".join(f"{FIELDS.get(name, 'Node')}: {text}" for name, text in errors.items()))
        self._show()

    def _show_refusal(self) -> None:
        self._form.show_message(self.errors.get("node", ""), "error")

    def _show(self) -> None:
        """Update the display, except for the pages of results."""
        arguments = self._encoded_arguments()
        self._form.show_problems(self.errors)
        if not self.busy:
            self._show_refusal()
        if self._known is not None and arguments is not None and not self.errors:
            self._form.show_known(self._known)
        self._form.show_request(self.request, self.python, arguments, current=not self.errors.keys() - {"node"})
        self._show_stale()

    def _encoded_arguments(self) -> list[Any] | None:
        """Return the arguments as the node reads them from JSON; None if the ABI is unknown or they do not fit."""
        payload = None if self.request is None else self.request.payload
        if self._known is None or not isinstance(payload, EntryFunction) or not self._known.is_about(payload):
            return None
        with suppress(InputError, SchemaError):  # a request set by the user may not fit; the entry shows the error
            return self._known.encode(payload.arguments)
        return None

    @observe("simulation")
    def _on_simulation(self, _change: object) -> None:
        self._form.show_simulation(self.simulation)
        self._show_stale()

    @observe("busy")
    def _on_busy(self, _change: object) -> None:
        self._form.show_busy(busy=self.busy)

    def _show_stale(self) -> None:
        stale = self.simulation is not None and self.simulation.request != self.request
        self._form.show_stale(stale=stale)
