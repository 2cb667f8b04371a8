"""A form for simulating an entry function.

Every entry is a trait and so is the request made of them; the browser only mirrors traits. An entry is read at
each keystroke, without asking anybody. The ABI is asked for when **Check** or **Simulate** is pressed; from then on
arguments of that call are checked by it at each keystroke too.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import ipywidgets as w
from traitlets import Bool, Dict, Instance, Unicode, link, observe, validate

from toolkit.client.results import Simulation
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.widgets.entries import FIELDS, estimates_of, read_entries, write_entries
from toolkit.widgets.fields import close_all
from toolkit.widgets.known_call import KnownCall, find_function
from toolkit.widgets.simulation_view import ESTIMATES, SimulationView
from toolkit.widgets.snippets import request_as_python
from toolkit.wire.payloads import EntryFunction
from toolkit.wire.requests import SimulationRequest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.client.node import Node
    from toolkit.widgets.entries import Reading

__all__ = ["SimulationBuilder"]

_ENTRIES = (*FIELDS, *ESTIMATES)


class SimulationBuilder(w.VBox):  # type: ignore[misc]  # ipywidgets ships no types
    """Build, check and simulate a call of an entry function.

    Nothing is fetched before **Check** or **Simulate** is pressed, or `check` or `simulate` called.

    Parameters
    ----------
    node : Node
        Where simulations run; kept as ``node``.
    request : SimulationRequest, optional
        What the form shows first.

    Attributes
    ----------
    sender : str
        As typed.
    function : str
        As typed: ``address::module::function``.
    type_arguments : str
        As typed: Move types, one a line or separated by commas.
    arguments : str
        As typed: a JSON array, signers left out.
    estimate_max_gas_amount, estimate_gas_unit_price, estimate_prioritized_gas_unit_price : bool
        What the node is asked to estimate.
    request : SimulationRequest or None
        The last good entries; set it to fill the form. Fields of a request that the form does not show are kept.
    errors : dict of str to str
        What is wrong now, by entry; ``node`` for what the node refused. Read only.
    error : str
        The same as one text, empty where nothing is wrong. Read only.
    python : str
        A program that sends `request`; empty where there is none. Read only.
    simulation : Simulation or None
        The last outcome, with its frames ``transactions``, ``changes`` and ``events``. Read only.
    busy : bool
        Whether the node is being asked. Read only.

    Raises
    ------
    InputError
        If `request` is, or is set to, one whose payload is no entry function.

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
    _known = Instance(KnownCall, allow_none=True)

    def __init__(self, node: Node, *, request: SimulationRequest | None = None) -> None:
        self.node = node
        self._filling = False
        self._view = SimulationView(node)
        super().__init__(self._view.children)
        self.add_class("ltk")
        self._links = [link((self, name), (control, "value")) for name, control in self._view.controls.items()]
        self._view.simulate_button.on_click(self._on_simulate)
        self._view.check_button.on_click(self._on_check)
        self.request = request
        self._show()

    def __repr__(self) -> str:
        payload = None if self.request is None else self.request.payload
        return f"SimulationBuilder({self.node!r}, {getattr(payload, 'function', 'no request yet')})"

    # what people do -------------------------------------------------------------------------------------------

    def check(self) -> bool:
        """Check the entries by the ABI of the node's head; what is wrong stands in `errors`.

        Returns
        -------
        bool
            Whether the entries can be simulated. A module whose ABI the node does not give cannot be checked,
            which is said, and is no reason not to try.

        Notes
        -----
        Source: ``GET /v1`` and ``GET /v1/accounts/{address}/module/{name}``; modules already seen are not asked
        for again.
        """
        with self._asking("Checking\N{HORIZONTAL ELLIPSIS}"):
            return self._check()

    def simulate(self) -> None:
        """Check the entries, simulate the request, and show the outcome; what is wrong stands in `errors`."""
        with self._asking("Simulating\N{HORIZONTAL ELLIPSIS}"):
            if not self._check() or self.request is None:
                return
            self.set_trait("simulation", None)
            try:
                self.set_trait("simulation", self.node.simulate(self.request))
            except ToolkitError as error:
                self._show_errors({"node": str(error)})

    def close(self) -> None:
        """Take the widget and its parts off the page and release all observers."""
        for tie in self._links:
            tie.unlink()
        self._links = []
        self._view.simulate_button.on_click(self._on_simulate, remove=True)
        self._view.check_button.on_click(self._on_check, remove=True)
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
            self._take(self._reading(self._known), needed=self.request is not None)

    @observe("request")
    def _on_request(self, _change: object) -> None:
        self.set_trait("python", "" if self.request is None else request_as_python(self.request, self.node))
        if not self._filling:
            self._fill_form()

    def _reading(self, known: KnownCall | None) -> Reading:
        return read_entries({name: getattr(self, name) for name in FIELDS}, known)

    def _take(self, reading: Reading, *, needed: bool) -> None:
        """Make the request of good entries; of bad ones only say what is wrong."""
        if reading.payload is not None and reading.sender is not None:
            with self._held():
                self.request = self._request_of(reading.sender, reading.payload)
        self._show_errors(reading.errors | (reading.missing if needed else {}))

    def _request_of(self, sender: str, payload: EntryFunction) -> SimulationRequest:
        """Change the request where entries differ from it; an estimate left open stays open while it is not touched."""
        shown = estimates_of(self.request)._asdict()
        options = {name: getattr(self, name) for name in ESTIMATES}
        touched = {name: asked for name, asked in options.items() if asked != shown[name.removeprefix("estimate_")]}
        if self.request is None:
            return SimulationRequest(payload, sender=sender, **touched)
        return self.request.replace(payload=payload, sender=sender, **touched)

    def _fill_form(self) -> None:
        """Write the request into the entries."""
        texts = dict.fromkeys(FIELDS, "") if self.request is None else write_entries(self.request)
        estimates = {f"estimate_{name}": asked for name, asked in estimates_of(self.request)._asdict().items()}
        with self._held():
            for name, value in (texts | estimates).items():
                setattr(self, name, value)
        self._show_errors(self._reading(self._known).errors)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Set entries or the request without one of them changing the other in turn."""
        self._filling = True
        try:
            yield
        finally:
            self._filling = False

    # asking the node ------------------------------------------------------------------------------------------

    def _check(self) -> bool:
        reading = self._reading(None)
        self._show_errors(reading.errors | reading.missing)
        if self.errors or reading.payload is None:
            return False
        self._known = None
        field = "function"
        try:
            found = find_function(self.node, reading.payload.function)
            field = "type_arguments"
            self._known = None if found is None else found.with_types(reading.payload.type_arguments)
        except (InputError, SchemaError) as error:
            self._show_errors({field: str(error)})
        except ToolkitError as error:
            self._show_errors({"node": str(error)})
        else:
            self._take(self._reading(self._known), needed=True)
        return not self.errors

    @contextmanager
    def _asking(self, words: str) -> Iterator[None]:
        """Keep the buttons still, and say why, while the node is asked."""
        self.set_trait("busy", value=True)
        self._view.say(words)
        try:
            yield
        finally:
            self.set_trait("busy", value=False)
            self._say_refusal()

    def _on_simulate(self, _button: object) -> None:
        self.simulate()

    def _on_check(self, _button: object) -> None:
        self.check()

    # what is shown --------------------------------------------------------------------------------------------

    def _show_errors(self, errors: dict[str, str]) -> None:
        self.set_trait("errors", errors)
        self.set_trait("error", "; ".join(f"{FIELDS.get(name, 'Node')}: {text}" for name, text in errors.items()))
        self._show()

    def _say_refusal(self) -> None:
        self._view.say(self.errors.get("node", ""), "error")

    def _show(self) -> None:
        """Bring what is seen in line with the traits, but for the pages of results."""
        arguments = self._encoded_arguments()
        self._view.show_problems(self.errors)
        if not self.busy:
            self._say_refusal()
        if self._known is not None and arguments is not None and not self.errors:
            self._view.show_known(self._known)
        self._view.show_request(self.request, self.python, arguments, current=not self.errors.keys() - {"node"})
        self._show_staleness()

    def _encoded_arguments(self) -> list[Any] | None:
        """Return the request's arguments in the node's forms where its ABI is known and they fit."""
        payload = None if self.request is None else self.request.payload
        if self._known is None or not isinstance(payload, EntryFunction) or not self._known.is_about(payload):
            return None
        with suppress(InputError, SchemaError):  # a request that was set may not fit; its entry says so
            return self._known.encode(payload.arguments)
        return None

    @observe("simulation")
    def _on_simulation(self, _change: object) -> None:
        self._view.show_simulation(self.simulation)
        self._show_staleness()

    @observe("busy")
    def _on_busy(self, _change: object) -> None:
        self._view.show_busy(busy=self.busy)

    def _show_staleness(self) -> None:
        stale = self.simulation is not None and self.simulation.request != self.request
        self._view.show_stale(stale=stale)
