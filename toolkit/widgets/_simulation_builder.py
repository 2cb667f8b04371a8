"""A form that simulates a transaction: an entry function, a script, or a payload of a multisig account."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from traitlets import Bool, Instance, Unicode

from toolkit._present.text import plural
from toolkit.client._failures import failure_reason
from toolkit.client._resimulation import simulated_again
from toolkit.client._simulation import Simulation
from toolkit.errors import ToolkitError
from toolkit.widgets._function_form import FunctionForm
from toolkit.widgets._html import has_model_gas, origin
from toolkit.widgets._messages import About, Group, Message, Starter, Words
from toolkit.widgets._programs import programs, request_as_python
from toolkit.widgets._results import decoded_before, simulation_pages
from toolkit.widgets._simulation_draft import (
    ESTIMATES,
    SimulationDraft,
    by_account,
    form_fields,
    read_request,
    write_request,
)
from toolkit.wire import EntryFunction, Multisig, NoAccountSignature, Script, SimulationRequest
from toolkit.wire._requests import with_estimates

if TYPE_CHECKING:
    from toolkit.client._contracts import ContractFunction
    from toolkit.client._node import Node
    from toolkit.widgets._fields import Findings
    from toolkit.wire import TransactionSignature


_MAX_VERSION = 20  # digits of the largest ledger version

# the field that caused a failure, by what the status contains; the second if the first is not shown
_CAUSES = {
    "SEQUENCE_NUMBER": ("sequence_number", "replay"),
    "NONCE": ("replay_protection_nonce", "replay"),
    "TRANSACTION_EXP": ("expiration_timestamp_secs",),
    "MAX_GAS_UNITS": ("max_gas_amount", "estimate_max_gas_amount"),
    "Out of gas": ("max_gas_amount", "estimate_max_gas_amount"),
    "GAS_UNIT_PRICE": ("gas_unit_price", "estimate_gas_unit_price"),
    "SENDING_ACCOUNT": ("sender",),
    "INVALID_AUTH_KEY": ("sender_key.shape",),
    "NUMBER_OF_SIGNER": ("secondary",),
    "SIGNERS_CONTAIN": ("secondary",),
    "NOT_MULTISIG": ("multisig_address",),
    "LINKER_ERROR": ("function",),
    "Move abort": ("function",),
}


class SimulationBuilder(FunctionForm):
    """Build, check and simulate a transaction: an entry function, a script, or a payload of a multisig account.

    Neither constructing the form nor setting its traits makes a request. In a browser, the ABI of the function is read
    when it has been typed, so that each argument has a field of its own; from Python, `check` and `simulate` read it.

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
        Estimates that the node is asked for.
    request : SimulationRequest or None
        The request made from the last valid entries. Set it to fill the form; any request can be shown.
    errors : dict of str to str
        Error messages by field, such as ``sender`` or ``arguments.1``; ``node`` holds the error that the node returned.
        Read only.
    error : str
        All error messages as one text; empty if there is none. Read only.
    python : str
        A Python program that sends `request`; empty without a request, or if the entries do not make it. Read only.
    simulation : Simulation or None
        The last result, with its frames ``transactions``, ``changes`` and ``events``. It stays if a later simulation
        is refused, which `errors` then says, or cancelled. Read only.
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
            name="simulation",
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
            with self._state():
                self._show_simulation(found, request)

    def _show_simulation(self, found: Simulation, request: SimulationRequest) -> None:
        before = self.simulation
        same = before is not None and _called(before.request.payload) == _called(request.payload)
        self._before = before if same else None
        self._show_result(dataclasses.replace(found, _node=self.node), request)
        self._after(found)

    def _checked_words(self) -> str:
        function, call = self._known(self._draft)
        if call is not None:
            return f"Matches {call.signature} at version {call.ledger_version:,}"
        if self._draft.calls_function and function is None:
            return "The node returns no ABI of this module: the arguments were not checked."
        return "The entries make a request; only the node can check its payload."

    def _after(self, simulation: Simulation) -> None:
        """Show the outcome of a simulation, and a failure at the field that caused it."""
        words = f"{simulation.gas_used:,} gas units at version {simulation.ledger_version:,}"
        if simulation.success:
            self._say("good", f"Success: {words}")
        else:
            why = failure_reason(simulation.request, simulation.transaction) or simulation.vm_status
            cause = next((paths for words, paths in _CAUSES.items() if words in simulation.vm_status), ())
            shown = [path for path in cause if self._draft.shows(path)]
            if shown:
                self._blame(shown[0], f"{why[:1].upper()}{why[1:]}.")
            self._say("bad", f"Would fail: {why}")
        self._remember()

    def start_from(self, transaction: int | str) -> None:
        """Fill the form with a committed transaction and simulate it again, as `Node.resimulate` does.

        Signatures become zeros. Public keys that the accounts do not have at the head are left out, which the form
        says.

        Parameters
        ----------
        transaction : int or str
            Ledger version, or hash.

        Raises
        ------
        InputError
            If it is not a user transaction, or its payload cannot be simulated.
        NotFound, NodeError, NodeUnreachable
            If the node does not have it, refuses, or does not answer.
        """
        committed = self._asked.transaction(transaction)
        simulation, _ = simulated_again(self._asked, committed)
        request = by_account(simulation.request)
        with self._state():
            self.request = request
        if self._draft.calls_function:
            self._look()
        with self._state():
            self._show_simulation(dataclasses.replace(simulation, request=request), request)
            how = "succeeded" if committed.success else "failed"
            words = f"It {how} at version {committed.version:,} with {plural(committed.gas_used, 'gas unit')}."
            if _has_keys(committed.signature) and not _has_keys(request.signature_to_send()):
                words += " Simulated without public keys: the accounts do not have those of the transaction now."
            self._say(self._status.kind, f"{self._status.text}. {words}")

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
        model = has_model_gas(self.node)
        return dict(simulation_pages(result, name=name, model=model, before=self._before, **about))

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

    def _handed_words(self, name: str) -> str:
        return f"The notebook has it as {name}: {name}.changes is a frame."

    # messages of the browser ----------------------------------------------------------------------------

    def _do_simulate(self, _message: Message) -> None:
        self._start("simulate", self.simulate)

    def _do_load(self, _message: Message) -> None:
        typed = self._draft.committed
        self._start("load", lambda: self._load(typed))

    def _do_page(self, _message: Message) -> None:
        self._start("page", self._complete_changes, again=True)

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
                diff = decoded_before(asked, asked.diff(), self._asked)
            except ToolkitError as error:
                with self._state():
                    self._say("error", f"The state before cannot be read: {error}")
                return
            with self._state():
                if simulation is self.simulation:
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
