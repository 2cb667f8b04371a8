"""Results of single calls: values with their types, gas, ledger versions; of a simulation all that it would do."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.files import read_file, replacing
from toolkit._present.notebook import facts_html
from toolkit._present.text import plural, short_addresses, visible
from toolkit.client._transaction_data import TransactionData
from toolkit.errors import InputError, ToolkitError
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._json_text import decode_with, parse_json
from toolkit.move._layouts import layout_from_json, layout_to_json
from toolkit.wire import EntryFunction, SimulationRequest, decode_node_info
from toolkit.wire._requests import model_from_json, model_to_json
from toolkit.wire._responses import encode_node_info
from toolkit.wire._rows import check_transaction
from toolkit.wire._transaction_decoding import decode_simulation
from toolkit.wire._transactions import GenericChange

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import pandas as pd

    from toolkit.client._node import Node  # for typing only: a Node returns these results
    from toolkit.frames._calls import TableItemRecord, ViewRecord
    from toolkit.move import Layout
    from toolkit.wire import GasBreakdown, LedgerState, UserTransaction, ViewFunction


OCTAS_PER_APT = 10**8
_SIMILAR = 0.8
_MAX_SUGGESTIONS = 3
_MAX_BALANCES = 8


@dataclass(frozen=True, slots=True, repr=False)
class ViewResult:
    """The answer of a view function.

    Attributes
    ----------
    call : ViewFunction
    values : tuple
        Return values as Python values.
    types : tuple of str
        Their Move types; empty if the module's ABI is not known.
    gas_used : int or None
        Gas units; None if the node does not say.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
    layouts : tuple of Layout or None
        The layouts of the values.
    raw : str
        The values as JSON text.

    Examples
    --------
    >>> import toolkit
    >>> result = toolkit.connect().at(4_000).view("0x1::timestamp::now_seconds")
    >>> result.types, result.ledger_version
    (('u64',), 4000)
    """

    call: ViewFunction
    values: tuple[Any, ...]
    types: tuple[str, ...]
    gas_used: int | None
    ledger_version: int
    ledger: LedgerState | None
    layouts: tuple[Layout, ...] | None = field(repr=False)
    raw: str = field(repr=False)

    @property
    def value(self) -> Any:
        """The return value; a tuple if the function does not return exactly one."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def typing(self) -> str:
        """Where the types come from: ``abi``, or ``inferred`` from JSON if the module's ABI is not known."""
        return "inferred" if self.layouts is None else "abi"

    def record(self, call: str | None = None) -> ViewRecord:
        """Return the record that a frame is built from."""
        from toolkit.frames._calls import ViewRecord

        head = self.ledger.version if self.ledger else None
        answer = (self.gas_used, self.values, self.layouts, self.raw)
        return ViewRecord(call, self.ledger_version, head, *answer, types=self.types)

    def __repr__(self) -> str:
        gas = "" if self.gas_used is None else f", {self.gas_used:,} gas units"
        value = visible(short_addresses(repr(self.value)), 200)
        return f"<ViewResult {short_addresses(self.call.function)}: {value}{gas}, version {self.ledger_version}>"

    def _repr_html_(self) -> str:
        types = ", ".join(self.types) or "unknown; inferred from JSON"
        gas = None if self.gas_used is None else f"{self.gas_used} gas units"
        facts = [("value", self.value), ("type", types), ("gas", gas), ("ledger version read", self.ledger_version)]
        return facts_html(self.call.function, facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the result as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns by one column per field.

        Returns
        -------
        DataFrame, shape (1, 8 + return values)
            With one typed column per return value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.frames._calls import view_frame

        return view_frame([self.record()], flatten=flatten)


@dataclass(frozen=True, slots=True, repr=False)
class TableItem:
    """One item of a table.

    Attributes
    ----------
    handle : str
        Table handle: 0x and 64 hex digits.
    key, value : object
        As Python values.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it answered.
    key_layout, value_layout : Layout
        Their layouts.
    """

    handle: str
    key: Any
    value: Any
    ledger_version: int
    ledger: LedgerState | None
    key_layout: Layout = field(repr=False)
    value_layout: Layout = field(repr=False)

    def record(self) -> TableItemRecord:
        """Return the record that a frame is built from."""
        from toolkit.frames._calls import TableItemRecord

        head = self.ledger.version if self.ledger else None
        return TableItemRecord(self.key, self.ledger_version, head, self.value, layout=self.value_layout)

    def __repr__(self) -> str:
        key, value = (visible(short_addresses(repr(one)), 200) for one in (self.key, self.value))
        return f"<TableItem of {short_addresses(self.handle)}: {key} -> {value}, version {self.ledger_version}>"

    def _repr_html_(self) -> str:
        facts = [("key", self.key), ("value", self.value), ("ledger version read", self.ledger_version)]
        return facts_html(f"item of table {self.handle}", facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the item as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns by one column per field.

        Returns
        -------
        DataFrame, shape (1, >= 10)
            With the typed key and value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.frames._calls import item_frame

        return item_frame([self.record()], key_layout=self.key_layout, value_layout=self.value_layout, flatten=flatten)


@dataclass(frozen=True, repr=False)
class Simulation(TransactionData):
    """The outcome of a simulated transaction. Nothing was signed, submitted or stored.

    A simulation is data: it can be pickled and compared. Only `diff`, and `resources` and `events_of` for types that
    were not used before, read from the node; an unpickled simulation connects to it again for that, without secrets.

    Attributes
    ----------
    request : SimulationRequest
    transaction : UserTransaction
        The node's answer, decoded.
    ledger : LedgerState or None
        The node's head when it answered.

    Examples
    --------
    >>> import toolkit
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> simulation = toolkit.connect().simulate(call, sender="0x1")
    >>> simulation.success, len(simulation.transactions)
    (True, 1)
    """

    request: SimulationRequest
    transaction: UserTransaction
    ledger: LedgerState | None
    _file: str | None = field(default=None, repr=False, compare=False, kw_only=True)

    @property
    def success(self) -> bool:
        """Whether the transaction would succeed."""
        return self.transaction.success

    @property
    def vm_status(self) -> str:
        """How execution ended, in the node's words."""
        return self.transaction.vm_status

    @property
    def gas_used(self) -> int:
        """Gas units that would be charged."""
        return self.transaction.gas_used

    @property
    def ledger_version(self) -> int:
        """The version whose state the simulation ran on: the node's head at that moment."""
        return self.transaction.version

    @property
    def affordable_max_gas(self) -> int | None:
        """Max gas amount that the node filled in, which is what the sender can afford; None if the request has one."""
        return None if self.request.max_gas_amount is not None else self.transaction.max_gas_amount

    @cached_property
    def gas(self) -> GasBreakdown | None:
        """The gas by kind, from the FeeStatement event; None if the transaction was discarded before it ran."""
        return self.transaction.gas_breakdown()

    @cached_property
    def _frames(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        from toolkit.frames._transactions import transaction_frames

        return transaction_frames([self.transaction], requests=[0])

    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        return self._frames

    @property
    def transactions(self) -> pd.DataFrame:
        """One row: the simulated transaction."""
        return self._frames[0]

    @property
    def changes(self) -> pd.DataFrame:
        """One row per state change."""
        return self._frames[1]

    @property
    def events(self) -> pd.DataFrame:
        """One row per event."""
        return self._frames[2]

    def explain(self) -> str:
        """Return in plain words what the call would do, what it costs, and why it fails."""
        lines = [_headline(self), *_failure_lines(self), _cost_line(self), *_balance_lines(self), _writes_line(self)]
        lines.append(
            f"Nothing was signed, submitted or stored; the state is that of ledger version {self.ledger_version}."
        )
        return "\n".join(visible(short_addresses(line), 400) for line in lines)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the simulation to a JSON file, which `load` reads without a node.

        The file has the request, the node's answer, and the types of what the transaction writes and emits, as far as
        they are known or the node still answers. It has no credentials; a signature in it is absent or zeros.

        Parameters
        ----------
        path : str or Path
            Missing folders are created. The file is written whole or not at all.

        Returns
        -------
        Path

        Raises
        ------
        InputError
            If the file cannot be written, or an argument of the request cannot be saved as JSON.

        Examples
        --------
        >>> import tempfile
        >>> import toolkit
        >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0x2", 100])
        >>> simulation = toolkit.connect().simulate(call, sender="0x1")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = simulation.save(f"{folder}/transfer.json")
        ...     toolkit.Simulation.load(path) == simulation
        True
        """
        for text in {*self.changes["resource_type"].dropna(), *self.events["type"].dropna()}:
            with suppress(ToolkitError):  # an unknown type, or a node that does not answer any more
                self._newest_layout(parse_type_tag(text))
        target = Path(path)
        at = self.ledger_version
        content = _saved(self, {name: one[at] for name, one in self._layouts.items() if at in one})
        try:
            with replacing(target, parents=True) as file:
                file.write(content)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"simulation: {visible(target)} cannot be written ({reason}); name another file") from None
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, node: Node | None = None) -> Simulation:
        """Read a simulation that `save` wrote.

        Parameters
        ----------
        path : str or Path
        node : Node, optional
            Where `diff`, and `resources`, `events_of` and `table_items` for types that the file does not have, read.

        Returns
        -------
        Simulation

        Raises
        ------
        InputError
            If the file cannot be read, or is not a saved simulation; everything in it is checked.
        """
        try:
            body = read_file(path, limit=_MAX_FILE_BYTES + 1)
        except OSError as error:
            raise InputError(f"simulation {visible(path)}: cannot be read ({error.strerror or error})") from None
        if len(body) > _MAX_FILE_BYTES:
            raise InputError(f"simulation {visible(path)}: larger than {_MAX_FILE_BYTES // 2**20} MB")
        try:
            return _from_saved(body, node, str(path))
        except (ToolkitError, RecursionError) as error:
            problem = str(error) if isinstance(error, ToolkitError) else "nested too deeply"
            raise InputError(f"simulation {visible(path)}: {visible(problem, 500)}") from None

    @contextmanager
    def _connected(self) -> Iterator[Node]:
        """Use the node; one that was loaded from a file has none."""
        if self._file is not None and self._node is None:
            raise InputError(
                "this Simulation was loaded from a file without a node, which does not have this; pass the node: "
                f"Simulation.load({self._file!r}, node=...)"
            )
        with super()._connected() as node:
            yield node

    def __repr__(self) -> str:
        text = f"{short_addresses(_headline(self))} gas_used={self.gas_used}, ledger_version={self.ledger_version}"
        return f"<Simulation: {visible(text, 300)}, vm_status={visible(self.vm_status)}>"

    def _repr_html_(self) -> str:
        title, *lines = self.explain().splitlines()
        return facts_html(title, [("status", self.vm_status), *(("", line) for line in lines)])


# a simulation in words -----------------------------------------------------------------------------------------------


def _headline(simulation: Simulation) -> str:
    payload = simulation.request.payload
    what = payload.function if isinstance(payload, EntryFunction) else f"the {type(payload).__name__} payload"
    return f"{what} from {simulation.request.sender} would {'succeed' if simulation.success else 'fail'}."


def _failure_lines(simulation: Simulation) -> list[str]:
    """Return why a transaction would fail: the meaning of the status, then the status, which may be long."""
    if simulation.success:
        return []
    why = failure_reason(simulation.request, simulation.transaction)
    return [*([f"Why: {why}."] if why else []), f"Status: {simulation.vm_status}"]


def _cost_line(simulation: Simulation) -> str:
    gas = simulation.gas
    if gas is None:
        return "It was discarded before it ran, so nothing would be charged."
    whole, octas = divmod(abs(gas.net_octas), OCTAS_PER_APT)
    net = f"{'' if gas.net_octas >= 0 else 'a refund of '}{whole}.{octas:08d} APT"
    parts = f"execution {gas.execution_gas_units}, reads and writes {gas.io_gas_units} gas units"
    storage = f"storage {gas.storage_fee_octas} octas, refund {gas.storage_fee_refund_octas} octas"
    return (
        f"It costs {gas.total_charge_gas_units} gas units at {gas.gas_unit_price} octas each, {net} net "
        f"({parts}, {storage})."
    )


def _balance_lines(simulation: Simulation) -> list[str]:
    from toolkit.frames._columns import plain_columns

    columns = plain_columns(simulation.balance_changes, ["owner", "asset", "change"])
    rows = list(zip(*columns.values(), strict=True))
    lines = [
        f"{owner}: {'unknown change' if change is None else f'{change:+d}'} of {asset}."
        for owner, asset, change in rows[:_MAX_BALANCES]
    ]
    more = len(rows) - _MAX_BALANCES
    return [*lines, f"{more} more {'balance' if more == 1 else 'balances'}."] if more > 0 else lines


def _writes_line(simulation: Simulation) -> str:
    from toolkit.frames._columns import plain_columns

    kinds = plain_columns(simulation.changes, ["type"])["type"]
    done = {"write": "written", "delete": "deleted"}
    counts = []
    for kind in dict.fromkeys(kinds):
        verb, _, noun = str(kind).partition("_")
        number, nouns = kinds.count(kind), noun.replace("_", " ")
        counts.append(f"{plural(number, nouns)} {done[verb]}" if verb in done else f"{number} {kind}")
    return f"State changes: {', '.join(counts) or 'none'}. Events: {len(simulation.events)}."


# a simulation in a file ----------------------------------------------------------------------------------------------

_KIND, _FORMAT = "ledger-toolkit simulation", 1
_MAX_FILE_BYTES = 256 * 2**20


class _File(msgspec.Struct):
    """The content of a file; its parts are checked one by one."""

    kind: str = ""
    format: int = 0
    request: msgspec.Raw = msgspec.Raw(b"null")
    transaction: msgspec.Raw = msgspec.Raw(b"null")
    ledger: msgspec.Raw = msgspec.Raw(b"null")
    layouts: msgspec.Raw = msgspec.Raw(b"{}")


_READ_FILE = msgspec.json.Decoder(_File)


def _saved(simulation: Simulation, layouts: dict[str, Layout]) -> bytes:
    """Return the content of the file of a simulation; the node's answer is in it as it was."""
    transaction, ledger = simulation.transaction, simulation.ledger
    names = zip(transaction.__struct_encode_fields__, transaction.__struct_fields__, strict=True)
    answer: dict[str, Any] = {shown: getattr(transaction, name) for shown, name in names}
    answer["changes"] = [msgspec.Raw(one.raw) if isinstance(one, GenericChange) else one for one in transaction.changes]
    content = _File(
        kind=_KIND,
        format=_FORMAT,
        request=msgspec.Raw(msgspec.json.encode(model_to_json(simulation.request))),
        transaction=msgspec.Raw(msgspec.json.encode(answer)),
        ledger=msgspec.Raw(b"null" if ledger is None else encode_node_info(ledger)),
        layouts=msgspec.Raw(msgspec.json.encode({name: layout_to_json(one) for name, one in sorted(layouts.items())})),
    )
    return msgspec.json.encode(content) + b"\n"


def _from_saved(body: bytes, node: Node | None, path: str) -> Simulation:
    """Return the simulation of a file's content; raise a ToolkitError for anything else."""
    content = decode_with(_READ_FILE, body)
    if content.kind != _KIND:
        raise InputError(f"not a saved simulation: expected the kind {_KIND!r}, got {content.kind!r:.40}")
    if content.format != _FORMAT:
        got = f"{content.format:,}"
        raise InputError(f"expected format {_FORMAT}, got {got:.40}: it was saved by another release of the toolkit")
    request = model_from_json(parse_json(content.request, "`request`"))
    if not isinstance(request, SimulationRequest):
        raise InputError(f"`request`: expected a SimulationRequest, got a {type(request).__name__}")
    transactions = decode_simulation(content.transaction)
    if len(transactions) != 1:
        raise InputError(f"`transaction`: expected one, got {len(transactions)}")
    check_transaction(transactions[0])
    ledger = None if bytes(content.ledger) == b"null" else decode_node_info(bytes(content.ledger)).ledger
    known = parse_json(content.layouts, "`layouts`")
    if not isinstance(known, dict):
        raise InputError("`layouts`: expected an object of layouts by type")
    version = transactions[0].version
    layouts = {str(parse_type_tag(name)): {version: layout_from_json(one)} for name, one in known.items()}
    return Simulation(request, transactions[0], ledger, _node=node, _layouts=layouts, _file=path)


# why a transaction fails, and what its sender can change ------------------------------------------------------------

ABORT_CATEGORIES = {
    1: "invalid argument",
    2: "out of range",
    3: "invalid state",
    4: "unauthenticated",
    5: "permission denied",
    6: "not found",
    7: "aborted",
    8: "already exists",
    9: "resource exhausted",
    10: "cancelled",
    11: "internal",
    12: "not implemented",
    13: "unavailable",
}
"""Bits 16 to 23 of an abort code. Source: the Move standard library's error module."""

_NATIVE_ABORTS = {
    ("0x1::table", 0x6407): "the table has an item with this key already",
    ("0x1::table", 0x6507): "the table has no item with this key",
}
"""Abort codes of native functions, which have no error map. Source: the table extension of the VM."""

_ABORT = re.compile(
    r"Move abort(?: in (?P<module>\S+))?: (?:(?P<name>\w+)\()?(?:code )?0x(?P<code>[0-9a-fA-F]{1,16})\)?"
)
_EXECUTION = re.compile(
    r"Execution failed in (?P<function>\S{1,400}) \(on instruction (?P<instruction>\w+)[^\n]{0,200}?\) at code offset"
)
_PLACE = re.compile(r"resource (?:from|at|to|into) (?:0x)?([0-9a-f]{1,64})\b")
_MODULE = re.compile(r"\bModule (?:0x)?([0-9a-f]{1,64})::(\w{1,200}) doesn't exist")

_BELOW_MIN_GAS = "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
_LINKER = "LINKER_ERROR"

_STATUS = {
    "Out of gas": "it ran out of gas; raise max_gas_amount",
    "INVALID_AUTH_KEY": (
        "the public key is not the key of its account; check public_key, secondary_public_keys and "
        "fee_payer_public_key, or leave the keys out"
    ),
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": (
        "the payer cannot afford max_gas_amount at this price; lower max_gas_amount, or set a fee_payer"
    ),
    "GAS_UNIT_PRICE_BELOW_MIN_BOUND": (
        "gas_unit_price is below the minimum of the network; raise it, or leave it out to have it estimated"
    ),
    "GAS_UNIT_PRICE_ABOVE_MAX_BOUND": (
        "gas_unit_price is above the maximum of the network; lower it, or leave it out to have it estimated"
    ),
    "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": "max_gas_amount is above the maximum of the network; lower it",
    _BELOW_MIN_GAS: "max_gas_amount is below the minimum of a transaction of this size; raise it",
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": (
        "the function takes another number of signers than the transaction has; check secondary_signers"
    ),
    "SIGNERS_CONTAIN_DUPLICATES": (
        "one address is among the signers more than once; list each of secondary_signers once, and not the sender"
    ),
    "SEQUENCE_NUMBER_TOO_OLD": "the sequence number was used already; leave it out to have it filled in",
    "SEQUENCE_NUMBER_TOO_NEW": "the sequence number is ahead of the account's; leave it out to have it filled in",
    "NONCE_ALREADY_USED": "the replay protection nonce was used already; pass another replay_protection_nonce",
    "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE": (
        "the expiration is too far ahead: with a nonce at most 60 s after the ledger's time; leave it out to have it "
        "filled in"
    ),
    "TRANSACTION_EXPIRED": "the expiration is before the ledger's time; leave it out to have it filled in",
    "SENDING_ACCOUNT_DOES_NOT_EXIST": "the sender's account does not exist",
    "ACCOUNT_NOT_MULTISIG": "multisig_address is not a multisig account; check the address",
    _LINKER: "the transaction needs a module that does not exist; check function and type arguments",
}
"""What a status of the VM means, by the text that it contains."""

_MISSING_RESOURCE = frozenset(
    {"MoveFrom", "MoveFromGeneric", "ImmBorrowGlobal", "ImmBorrowGlobalGeneric"}
    | {"MutBorrowGlobal", "MutBorrowGlobalGeneric"}
)
_PRESENT_RESOURCE = frozenset({"MoveTo", "MoveToGeneric"})


def abort_words(vm_status: str) -> str | None:
    """Return a Move abort in words: module, name, category and reason; None if the status is not an abort."""
    match = _ABORT.search(vm_status)
    if match is None:
        return None
    code = int(match["code"], 16)
    category = ABORT_CATEGORIES.get(code >> 16 & 0xFF)
    kind = f", category {code >> 16 & 0xFF} ({category}), reason {code & 0xFFFF}" if category else ""
    native = _NATIVE_ABORTS.get((match["module"], code))
    kind += f", {native}" if native else ""
    where = f" in {match['module']}" if match["module"] else ""
    name = f" {match['name']}" if match["name"] else ""
    return f"the code{where} aborted:{name} code {code:#x}{kind}"


def abort_code(vm_status: str) -> int | None:
    """Return the code of a Move abort; None if the status is not an abort."""
    match = _ABORT.match(vm_status)
    return None if match is None else int(match["code"], 16)


def estimates_max_gas(request: SimulationRequest) -> bool:
    """Return whether the node is asked to replace max_gas_amount by what the sender can afford."""
    if request.estimate_max_gas_amount is not None:
        return request.estimate_max_gas_amount
    return request.max_gas_amount is None and request.fee_payer is None


def failure_reason(request: SimulationRequest, transaction: UserTransaction) -> str | None:
    """Return why a simulated transaction fails and what to change; None if the status is not a known one."""
    status = transaction.vm_status
    found = abort_words(status) or _execution_words(status)
    if found is not None:
        return found
    known = next((name for name in _STATUS if name in status), None)
    if known == _BELOW_MIN_GAS and estimates_max_gas(request):
        return (
            f"the sender {request.sender} can afford no gas: the node estimated max_gas_amount="
            f"{transaction.max_gas_amount} from its balance at {transaction.gas_unit_price} octas each; set a "
            "fee_payer, a lower limit (max_gas_amount and gas_unit_price) that the balance covers, or another sender"
        )
    missing = _MODULE.search(status) if known == _LINKER else None
    if missing is not None:
        module = f"{parse_address('0x' + missing[1])}::{missing[2]}"
        return f"the module {module}, which the transaction needs, does not exist; check function and type arguments"
    return None if known is None else _STATUS[known]


def _execution_words(status: str) -> str | None:
    """Return a failed instruction in words; None if the status is not one."""
    match = _EXECUTION.search(status)
    if match is None:
        return None
    place = _PLACE.search(status, match.end())
    where = f" at {parse_address('0x' + place[1])}" if place else ""
    where += f": instruction {match['instruction']} of {match['function']} failed"
    if match["instruction"] in _MISSING_RESOURCE:
        return f"the resource that the code reads or moves does not exist{where}"
    if match["instruction"] in _PRESENT_RESOURCE:
        return f"the resource that the code creates exists already{where}"
    return f"instruction {match['instruction']} of {match['function']} failed"
