"""A form that simulates a transaction: an entry function, a script, or a payload of a multisig account."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec.structs import replace
from traitlets import Bool, Instance, Unicode

from toolkit._present.text import plural
from toolkit.client._resimulation import simulated_again
from toolkit.client._simulation import Simulation
from toolkit.errors import ToolkitError
from toolkit.move import decode_bcs, parse_type_tag
from toolkit.widgets._failing import Failure, failure_of
from toolkit.widgets._function_form import FunctionForm
from toolkit.widgets._html import has_model_gas, origin
from toolkit.widgets._known import Known, read_known, records, with_layouts
from toolkit.widgets._messages import About, Group, Message, Starter, Words
from toolkit.widgets._programs import programs, request_as_python
from toolkit.widgets._results import simulation_pages
from toolkit.widgets._simulation_draft import (
    ESTIMATES,
    SimulationDraft,
    by_account,
    form_fields,
    read_request,
    write_request,
)
from toolkit.wire import EntryFunction, Multisig, NoAccountSignature, Script, SimulationRequest, TableItemRequest
from toolkit.wire._requests import with_estimates

if TYPE_CHECKING:
    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node
    from toolkit.widgets._fields import Findings
    from toolkit.wire import TransactionSignature


_MAX_VERSION = 20  # digits of the largest ledger version


@runtime_checkable
class ItemOpener(Protocol):
    """What shows table items in another form: a workbench."""

    def open_item(self, handle: str, request: TableItemRequest) -> None:
        """Show the form of an item."""


class SimulationBuilder(FunctionForm):
    """Build, check and simulate a transaction: an entry function, a script, or a payload of a multisig account.

    Neither constructing the form nor setting its traits makes a request. In a browser, the ABI of the function is read
    once it has been typed, so that each argument has its own field; from Python, `check` and `simulate` read it.

    Parameters
    ----------
    node : Node
        Runs the simulations; available as ``node``.
    function : str or function of a Contract, optional
        The entry function chosen at the start: ``"0x1::coin::transfer"``, or ``node.contract("0x1::coin").transfer``.
    request : SimulationRequest, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` is a contract's function but not an entry function.

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
        Estimates to request from the node.
    request : SimulationRequest or None
        The request made from the last valid entries. Set it to fill the form; any request can be shown.
    errors : dict of str to str
        Error messages by field, such as ``sender`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that sends `request`; empty if the form is not a valid request. Read only.
    simulation : Simulation or None
        The last result, with its frames ``transactions``, ``changes`` and ``events``. It stays if a later simulation is
        rejected, which `errors` then says, or cancelled. Read only.
    busy : bool
        True while a request is in progress. Read only.

    Examples
    --------
    >>> import toolkit
    >>> builder = toolkit.widgets.SimulationBuilder(toolkit.connect())
    >>> builder.sender, builder.function = "0xa11ce", "0x1::aptos_account::transfer"
    >>> builder.arguments = '["0xb0b", 100]'
    >>> builder.simulate()
    >>> builder.simulation.success
    True

    A function of a contract opens in a form:

    >>> transfer = builder.node.contract("0x1::aptos_account").transfer
    >>> toolkit.widgets.SimulationBuilder(builder.node, transfer).function
    '0x1::aptos_account::transfer'
    """

    _form = About(
        "Simulate a transaction",
        actions=(("simulate", "Simulate"), ("check", "Check")),
        starter=Starter(
            key="committed",
            do="load",
            summary="Start from a committed transaction",
            label="Version or hash",
            placeholder="version or hash",
            text="Load",
        ),
        words=Words(
            form="The transaction",
            none="No entry function fits.",
            copy={"Study": "Copy the study's call"},
        ),
        late=("Changes",),
    )
    _blank = SimulationDraft()
    _mirrored = ("sender", "function", "type_arguments", "arguments", *ESTIMATES)
    _result_name = "simulation"
    _pictured = frozenset({"Outcome", "Gas"})

    sender = Unicode()
    estimate_max_gas_amount = Bool(default_value=True)
    estimate_gas_unit_price = Bool(default_value=True)
    estimate_prioritized_gas_unit_price = Bool(default_value=False)
    request = Instance(SimulationRequest, allow_none=True)
    simulation = Instance(Simulation, allow_none=True, read_only=True)

    def __init__(
        self,
        node: Node,
        function: str | ContractFunction | None = None,
        *,
        request: SimulationRequest | None = None,
    ) -> None:
        self._before: Simulation | None = None
        self._known_values = Known()
        self._failure: Failure | None = None
        self._filled = self._blank
        super().__init__(node, function, request=request)

    # actions -------------------------------------------------------------------------------------------

    def simulate(self) -> None:
        """Check the entries, simulate the request and show the result; sets `errors` and `simulation`."""
        with self._busy_while("Simulating"):
            request = self.request if self._check() else None
            if request is None:
                return
            self._await_result()
            try:
                found = self._asked.simulate(request)
            except ToolkitError as error:
                self._blame("node", str(error))
                return
            self._show_simulation(found, request)

    def _show_simulation(self, found: Simulation, request: SimulationRequest, more: str = "") -> None:
        """Read what is to be known about a simulation, and show it; `more` is said after its outcome."""
        known = read_known(self._asked, found, self._names, self._together)
        failure = failure_of(found, self._draft, self._call, known, self._asked)
        with self._state():
            before = self.simulation
            same = before is not None and _called(before.request.payload) == _called(request.payload)
            self._before, self._known_values, self._failure = before if same else None, known, failure
            self._show_result(dataclasses.replace(found, _node=self.node), request)
            if failure is not None and failure.path:
                self._blame(failure.path, f"{failure.words}.")
            words = f"Would fail: {failure.words}" if failure else f"Success: {plural(found.gas_used, 'gas unit')}"
            at = "" if failure else f" at version {found.ledger_version:,}"
            self._say("bad" if failure else "good", f"{words}{at}. {more}".rstrip(". ") + "." * bool(more or failure))
            self._remember()

    def _checked_words(self) -> str:
        function, call = self._known(self._draft)
        if call is not None:
            return f"Matches {call.signature} at version {call.ledger_version:,}"
        if self._draft.calls_function and function is None:
            return "The node returns no ABI of this module: the arguments were not checked."
        return "The entries make a request; only the node can check its payload."

    def start_from(self, transaction: int | str) -> None:
        """Fill the form with a committed transaction and simulate it again, as `Node.resimulate` does.

        Signatures become zeros. Public keys that the accounts do not have at the head are left out, with a note in the
        form.

        Parameters
        ----------
        transaction : int or str
            Ledger version, or hash.

        Raises
        ------
        InputError
            If it is not a user transaction, or its payload cannot be simulated.
        NotFound, NodeError, NodeUnreachable
            If the node does not have it, returns an error, or does not answer.
        """
        committed = self._asked.transaction(transaction)
        simulation, _ = simulated_again(self._asked, committed)
        request = by_account(simulation.request)
        with self._state():
            self.request = request
        if self._draft.calls_function:
            self._look()
        how = "succeeded" if committed.success else "failed"
        words = f"It {how} at version {committed.version:,} with {plural(committed.gas_used, 'gas unit')}"
        if _has_keys(committed.signature) and not _has_keys(request.signature_to_send()):
            words += ". Simulated without public keys: the accounts do not have those of the transaction now"
        self._show_simulation(dataclasses.replace(simulation, request=request), request, words)

    # what the form is about ------------------------------------------------------------------------------

    def _calls_function(self, draft: SimulationDraft) -> bool:
        return draft.calls_function

    def _read_draft(
        self, draft: SimulationDraft, found: Findings, *, typed: bool
    ) -> tuple[SimulationDraft, SimulationRequest | None]:
        draft = self._read_function(draft, found, typed=typed)
        request = read_request(draft, self.request, self._leading(draft), found)
        if request is not None:
            asked = with_estimates(request)
            draft = replace(draft, **{name: getattr(asked, name) for name in ESTIMATES})
        return draft, request

    def _write_draft(self, request: SimulationRequest | None) -> SimulationDraft:
        self._filled = write_request(request)
        return self._filled

    def _fields(self, draft: SimulationDraft) -> Group:
        del draft
        return form_fields(self._function, self._call, self._filled)

    def _python_of(self, request: SimulationRequest) -> str:
        return request_as_python(request, self.node)

    def _programs_of(self, request: SimulationRequest) -> dict[str, str]:
        payload: Any = request.payload
        payload = payload.transaction_payload if isinstance(payload, Multisig) else payload
        same = (
            isinstance(payload, EntryFunction)
            and self._call is not None
            and payload.function == self._call.function.name
        )
        return programs(request, self.node, self._encoded(payload.arguments) if same else None)

    def _result_pages(self, result: Simulation, name: str, **about: Any) -> dict[str, str]:
        shown = {"before": self._before, "known": self._known_values, "links": self._holder is not None} | about
        failure = "" if self._failure is None else self._failure.to_html()
        return dict(simulation_pages(result, name=name, model=has_model_gas(self.node), failure=failure, **shown))

    def _origin_of(self, result: Simulation) -> str:
        time = None if result.ledger is None else result.ledger.timestamp
        return origin(self.node, f"version {result.ledger_version:,}", time)

    def _facts(self) -> list[tuple[str, Any]]:
        return [("Sender", self.sender), ("Function", self.function), ("Arguments", self.arguments)]

    def _subject(self) -> str | None:
        payload = None if self.request is None else self.request.payload
        if isinstance(payload, Multisig):
            payload = payload.transaction_payload or payload
        if isinstance(payload, EntryFunction):
            return payload.function
        return None if payload is None else f"a {type(payload).__name__} payload"

    # messages of the browser ----------------------------------------------------------------------------

    def _do_simulate(self, _message: Message) -> None:
        self._start("simulate", self.simulate)

    def _do_load(self, _message: Message) -> None:
        typed = self._draft.committed
        self._start("load", lambda: self._load(typed))

    def _do_page(self, _message: Message) -> None:
        self._start("page", self._complete_changes, again=True)

    def _do_item(self, message: Message) -> None:
        """Open a table item that the simulation writes in the workbench's form of items."""
        self._start("item", lambda: self._open_item(message.place))

    def _open_item(self, place: int) -> None:
        simulation, workbench = self.simulation, None if self._holder is None else self._holder[0]
        if simulation is None or not isinstance(workbench, ItemOpener):
            return
        row = records(simulation.changes)[place]
        try:
            key_type, value_type = simulation.item_types(row["handle"])
            abis = self._asked.abis.at(simulation.ledger_version, lenient=True)
            key = decode_bcs(abis.layout(parse_type_tag(key_type)), row["key"])
        except ToolkitError as error:
            self._say("error", str(error))
            return
        workbench.open_item(row["handle"], TableItemRequest(key, key_type=key_type, value_type=value_type))

    def _do_remedy(self, message: Message) -> None:
        """Change the entries so that the account can pay, or another one does."""
        most = message.name.removeprefix("most")
        if message.name == "payer":
            self._edit(replace(self._draft, has_fee_payer=True))
        elif most.isdecimal():
            self._edit(replace(self._draft, estimate_max_gas_amount=False, max_gas_amount=most))

    def _load(self, typed: str) -> None:
        text = typed.strip().replace(",", "").replace("_", "")
        with self._busy_while("Loading"):
            try:
                self.start_from(int(text) if text.isdecimal() and len(text) <= _MAX_VERSION else text)
            except ToolkitError as error:
                self._blame("committed", str(error))
                self._say("error", str(error))

    def _complete_changes(self) -> None:
        """Read the state before the changes."""
        simulation = self.simulation
        if simulation is None:
            return
        with self._busy_while(""):
            try:
                asked = dataclasses.replace(simulation, _node=self._asked)
                diff = asked.diff()
                known = with_layouts(self._known_values, self._asked, asked, self._together)
            except ToolkitError as error:
                with self._state():
                    self._say("error", f"The state before cannot be read: {error}")
                return
            with self._state():
                if simulation is self.simulation:
                    self._known_values = known
                    self._show_pages(diff=diff)


def _has_keys(signature: TransactionSignature | None) -> bool:
    parts = [] if signature is None else list(signature.parts()) or [signature]
    return any(not isinstance(part, NoAccountSignature) for part in parts)


def _called(payload: EntryFunction | Script | Multisig | None) -> object:
    """Return what a payload runs; simulations that run the same are compared."""
    match payload:
        case Multisig():
            return payload.multisig_address, _called(payload.transaction_payload)
        case Script():
            return payload.bytecode
        case EntryFunction():
            return payload.function
    return None
