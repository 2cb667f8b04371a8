"""Transactions as nodes answer them: in BCS, ``TransactionOnChainData``, declared once for both directions; in JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from toolkit.move._bcs import Reader, Writer
from toolkit.move._ids import ModuleId, address_from_bytes, wire_address
from toolkit.move._type_tags import wire_type
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire._aborts import VM_STATUS_CODES, VM_STATUS_NAMES
from toolkit.wire._bcs_forms import BYTES, NOTHING, STRING, U16, U64, BcsForm, parts, several
from toolkit.wire._bcs_requests import SIGNED_TRANSACTION, EncodedScript, payload_parts, script_argument_json
from toolkit.wire._signatures import FeePayerSignature, MultiAgentSignature, NoAccountSignature, SingleSenderSignature

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.wire._bcs_requests import EncodedEntryFunction, SignedTransaction
    from toolkit.wire._signatures import TransactionSignature

Metadata: TypeAlias = tuple[int, int, int]  # slot deposit, bytes deposit, creation time in microseconds

_NO_HASH = bytes(32)
_HANDLE = 40  # bytes of the key of an event handle: creation number and address
_RAW_KEY = 2  # variant of state keys that are just bytes


@dataclass(frozen=True)
class Status:
    """How an execution ended.

    Attributes
    ----------
    kind : str
        ``success``, ``abort``, ``out_of_gas``, ``execution_failure``, ``miscellaneous_error`` or ``discard``.
    code : int, str or None
        The code of an abort; else the name of the status code, such as ``ARITHMETIC_ERROR``.
    location : str or None
        Module (``0x1::coin``) or ``script`` of an abort or failure.
    function, offset : int or None
        Index of the function definition, and offset of the instruction.
    message : str or None
        What the machine of a node says.
    sub_status : int or None
        Kind of an error of a vector.
    reason, description : str or None
        Name and description of an abort code, from the metadata of the module.

    Examples
    --------
    >>> from toolkit import vm
    >>> status = vm.Status("abort", 65_540, "0x1::coin", reason="EINSUFFICIENT_BALANCE")
    >>> status.success, status.code
    (False, 65540)
    """

    kind: str
    code: int | str | None = None
    location: str | None = None
    function: int | None = None
    offset: int | None = None
    message: str | None = None
    sub_status: int | None = None
    reason: str | None = None
    description: str | None = None

    @property
    def success(self) -> bool:
        """Whether the execution succeeded."""
        return self.kind == "success"


SUCCESS = Status("success")
SCRIPT = "script"  # location of what fails in a script


class EmittedEvent(NamedTuple):
    """An event: its type as text, its BCS, and its key and sequence number if it has a handle."""

    type: str
    data: bytes
    key: bytes | None = None
    sequence_number: int = 0

    def to_json(self, data: Any) -> dict[str, Any]:
        """Return the event as a node answers it in JSON; the guid of a module event, which has no handle, is zeros."""
        number, address = 0, "0x0"
        if self.key is not None:
            number, address = int.from_bytes(self.key[:8], "little"), address_from_bytes(self.key[8:])
        return {
            "guid": {"creation_number": str(number), "account_address": wire_address(address)},
            "sequence_number": str(self.sequence_number),
            "type": self.type,
            "data": data,
        }


class Write(NamedTuple):
    """A write of a state key: ``create``, ``modify`` or ``delete``, the new value and its metadata."""

    op: str
    value: bytes | None
    metadata: Metadata | None = None


@dataclass(frozen=True, kw_only=True)
class ExecutedTransaction:
    """A user transaction with its outcome; in a simulation, all hashes but that of the transaction are zeros.

    Attributes
    ----------
    version : int
    signed : SignedTransaction
    gas_used : int
        In gas units.
    status : Status
    events : tuple of EmittedEvent
    writes : dict of bytes to Write
        By state key, in the order of the ledger.
    """

    version: int
    signed: SignedTransaction
    gas_used: int
    status: Status
    transaction_hash: bytes
    event_root_hash: bytes = _NO_HASH
    state_change_hash: bytes = _NO_HASH
    state_checkpoint_hash: bytes | None = None
    auxiliary_info_hash: bytes | None = None
    events: tuple[EmittedEvent, ...]
    accumulator_root_hash: bytes = _NO_HASH
    writes: dict[bytes, Write]


# -- forms -----------------------------------------------------------------------------------------------------------

_HASH = BcsForm(lambda reader: reader.fixed(len(_NO_HASH)), Writer.fixed)
_MODULE = bcs.converted(bcs.record(ModuleId, address=bcs.ADDRESS, name=STRING), lambda one: one.wire, ModuleId.parse)
_LOCATION = bcs.choice("abort location", lambda text: int(text == SCRIPT), _MODULE, bcs.constant(SCRIPT))


def _abort(held: tuple[str, int, tuple[str, str] | None]) -> Status:
    location, code, named = held
    reason, description = named or (None, None)
    return Status("abort", code, location, reason=reason, description=description)


def _abort_parts(status: Status) -> tuple[Any, ...]:
    named = None if status.reason is None else (status.reason, status.description or "")
    return status.location, status.code, named


def _status_name(number: int) -> str:
    return VM_STATUS_NAMES.get(number, str(number))


def _status_number(name: int | str | None) -> int | None:
    """Return the number of a status that has no name, or None."""
    text = str(name)
    return int(text) if text.isdecimal() else None


_STATUSES = {
    "success": bcs.constant(SUCCESS),
    "out_of_gas": bcs.constant(Status("out_of_gas", "OUT_OF_GAS")),
    "abort": bcs.converted(
        parts(several, _LOCATION, U64, bcs.option(parts(several, STRING, STRING))), _abort, _abort_parts
    ),
    "execution_failure": bcs.converted(
        parts(several, _LOCATION, U16, U16),
        lambda place: Status("execution_failure", None, *place),
        lambda status: (status.location, status.function, status.offset),
    ),
    "miscellaneous_error": bcs.converted(
        bcs.option(U64),
        lambda number: Status("miscellaneous_error", None if number is None else _status_name(number)),
        lambda status: VM_STATUS_CODES.get(status.code, _status_number(status.code)),
    ),
}
_STATUS = bcs.choice("execution status", lambda status: list(_STATUSES).index(status.kind), *_STATUSES.values())
# The older form of the metadata has no deposit for bytes.
_METADATA = bcs.choice(
    "metadata",
    lambda held: int(held[1] > 0),
    bcs.converted(parts(several, U64, U64), lambda held: (held[0], 0, held[1]), lambda held: (held[0], held[2])),
    parts(several, U64, U64, U64),
)
STATE_VALUE = bcs.choice(
    "state value",
    lambda found: int(found[1] is not None),
    parts(several, BYTES, NOTHING),
    parts(several, BYTES, _METADATA),
)
"""A stored value with the metadata of its slot, as the endpoint of raw state values returns it."""


def _read_key(reader: Reader) -> bytes:
    start = reader.position
    if bcs.read_index(reader, 3, "state key") != _RAW_KEY:  # an access path or a table item: an address or handle first
        reader.fixed(32)
    reader.bytes()
    return reader.data[start : reader.position]


_OPERATIONS = ("create", "modify", "delete")
_WRITE = bcs.choice(
    "write operation",
    lambda write: _OPERATIONS.index(write.op) + len(_OPERATIONS) * (write.metadata is not None),
    *(
        parts(Write, bcs.constant(operation), NOTHING if operation == "delete" else BYTES, metadata)
        for metadata in (NOTHING, _METADATA)
        for operation in _OPERATIONS
    ),
)
_WRITE_SET = bcs.versioned("write set", bcs.mapping(BcsForm(_read_key, Writer.fixed), _WRITE))


def executed_transaction(type_text: BcsForm) -> BcsForm:
    """Return the form of a user transaction with its outcome; `type_text` is the form of the types of events."""
    plain = {"type": type_text, "data": BYTES}
    handle = BcsForm(lambda reader: reader.fixed(_HANDLE), Writer.fixed)
    event = bcs.choice(
        "event",
        lambda emitted: int(emitted.key is None),
        bcs.record(EmittedEvent, key=handle, sequence_number=U64, **plain),
        bcs.record(EmittedEvent, **plain),
    )
    return bcs.record(
        ExecutedTransaction,
        version=U64,
        signed=bcs.versioned("transaction", SIGNED_TRANSACTION),
        gas_used=bcs.versioned("transaction info", U64),
        status=_STATUS,
        transaction_hash=_HASH,
        event_root_hash=_HASH,
        state_change_hash=_HASH,
        state_checkpoint_hash=bcs.option(_HASH),
        auxiliary_info_hash=bcs.option(_HASH),
        events=bcs.sequence(event),
        accumulator_root_hash=_HASH,
        writes=_WRITE_SET,
    )


# -- JSON ------------------------------------------------------------------------------------------------------------


def request_json(
    signed: SignedTransaction,
    arguments: Callable[[EncodedEntryFunction | EncodedScript], list[Any] | None],
    script_abi: Callable[[bytes], Any] = lambda _: None,
) -> dict[str, Any]:
    """Return what the sender of a transaction has signed, and the signature, as a node answers them in JSON.

    Parameters
    ----------
    signed : SignedTransaction
    arguments : callable
        Returns the arguments of a call as JSON, or None if its types are not known. Then those of an entry function are
        BCS in hex, and those of a script have the form of their kinds.
    script_abi : callable, optional
        Returns the signature of a script by its bytecode; nodes answer null.

    Notes
    -----
    Orderless payloads have the same JSON as other payloads.
    """
    raw = signed.raw
    executable, multisig_address, nonce = payload_parts(raw.payload)
    payload: dict[str, Any] = {}
    if executable is not None:
        given = {"type_arguments": list(map(wire_type, executable.type_arguments)), "arguments": arguments(executable)}
        if isinstance(executable, EncodedScript):
            given["arguments"] = given["arguments"] or list(map(script_argument_json, executable.arguments))
            code = {"bytecode": f"0x{executable.code.hex()}", "abi": script_abi(executable.code)}
            payload = {"code": code, **given, "type": "script_payload"}
        else:
            given["arguments"] = given["arguments"] or [f"0x{data.hex()}" for data in executable.arguments]
            payload = {"function": executable.function.wire, **given, "type": "entry_function_payload"}
    if multisig_address is not None:
        inner = {"transaction_payload": payload} if payload else {}
        payload = {"multisig_address": wire_address(multisig_address), **inner, "type": "multisig_payload"}
    return {
        "sender": wire_address(raw.sender),
        "sequence_number": str(raw.sequence_number),
        "max_gas_amount": str(raw.max_gas_amount),
        "gas_unit_price": str(raw.gas_unit_price),
        "expiration_timestamp_secs": str(raw.expiration_timestamp_secs),
        "payload": payload,
        "signature": _signature_json(signed.signature),
        "replay_protection_nonce": None if nonce is None else str(nonce),
    }


def _signature_json(signature: TransactionSignature) -> dict[str, Any]:
    """Return a signature with addresses in the form of the REST API."""
    if isinstance(signature, NoAccountSignature):  # in BCS it is the signature of a single sender
        signature = SingleSenderSignature(signature)
    answer = signature.to_wire()
    if isinstance(signature, MultiAgentSignature | FeePayerSignature):
        answer["secondary_signer_addresses"] = [wire_address(one) for one in signature.secondary_signer_addresses]
    if isinstance(signature, FeePayerSignature):
        answer["fee_payer_address"] = wire_address(signature.fee_payer_address)
    return answer
