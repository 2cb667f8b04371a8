"""What ran inside a transaction: the call of a wrapped or stored payload, and how a multisig payload ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Raw

from toolkit.errors import InputError, SchemaError
from toolkit.move import parse_address
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import parse_u64
from toolkit.move._type_tags import wire_type
from toolkit.wire._aborts import VM_STATUS_NAMES, Abort

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.wire._transactions import Event

# The virtual machine emits one of these events for each payload of a multisig account that it runs. The names that end
# in `Event` are those of ledgers before module events.
_EXECUTED = "0x1::multisig_account::TransactionExecution"
FAILED = frozenset({f"{_EXECUTED}Failed", f"{_EXECUTED}FailedEvent"})
_ENDED = FAILED | {f"{_EXECUTED}Succeeded", f"{_EXECUTED}SucceededEvent"}
_MOVE_ABORT = "MoveAbort"
# Types of payloads that contain the call, or name an account that stores it.
WRAPPED = frozenset({"multisig_payload", "encrypted_transaction_payload"})
_NO_BYTES, _NO_ARGUMENTS = "0x", Raw()


class PayloadError(msgspec.Struct, frozen=True):
    """Why the payload of a multisig account failed.

    Parameters
    ----------
    error_type : str
        ``MoveAbort``, or the kind of another VM error.
    error_code : str or int
        Abort code, or VM status number.
    abort_location : str
        Module that failed.
    """

    error_type: str = ""
    error_code: str | int = ""
    abort_location: str = ""

    @property
    def module(self) -> str | None:
        """Module that failed, ``address::module``, or None for a script."""
        address, found, name = self.abort_location.partition("::")
        if not found:
            return None
        try:
            return f"{parse_address(address)}::{name}"
        except InputError:
            return self.abort_location

    @property
    def code(self) -> int | None:
        """Abort code or VM status number, or None if it is malformed."""
        try:
            return parse_u64(str(self.error_code), "error_code")
        except SchemaError:
            return None

    @property
    def abort(self) -> Abort | None:
        """The Move abort, or None if the payload failed for another reason."""
        if self.error_type != _MOVE_ABORT or self.code is None:
            return None
        return Abort(self.module, None, self.code, None)

    @property
    def status(self) -> str:
        """What happened, in the form of a VM status."""
        where = "" if self.module is None else f" in {self.module}"
        if self.error_type == _MOVE_ABORT and self.code is not None:
            return f"Move abort{where}: {self.code:#x}"
        known = None if self.code is None else VM_STATUS_NAMES.get(self.code)
        return " ".join(filter(None, (self.error_type, known or str(self.error_code)))) + where


class MultisigExecution(NamedTuple):
    """How the payload of a multisig account ended; `payload` is its BCS form."""

    failed: bool
    payload: bytes
    error: PayloadError | None

    @property
    def status(self) -> str | None:
        """VM status of a payload that failed, or None."""
        if not self.failed:
            return None
        detail = "" if self.error is None else self.error.status
        return f"Multisig payload failed: {detail}" if detail else "Multisig payload failed"


class _Ended(msgspec.Struct):
    transaction_payload: str = _NO_BYTES
    execution_error: PayloadError | None = None


_decode_ended = msgspec.json.Decoder(_Ended).decode


def multisig_execution(events: Sequence[Event]) -> MultisigExecution | None:
    """Return how the payload of a multisig account ended, or None if a transaction did not run one."""
    for event in events:
        if event.type in _ENDED:
            try:
                data = _decode_ended(event.data)
                payload = parse_hex(data.transaction_payload)
            except (msgspec.DecodeError, InputError, SchemaError):  # the type of the event says how it ended
                data, payload = _Ended(), b""
            return MultisigExecution(event.type in FAILED, payload, data.execution_error)
    return None


class PayloadHead(msgspec.Struct, gc=False):
    """The call in a payload, as in the node's response. Fields that its type does not have are None.

    Parameters
    ----------
    type : str or None
        Type of the payload.
    function : str or None
        Function id.
    type_arguments : tuple of str, or None
        Type arguments.
    arguments : msgspec.Raw
        Arguments as in the node's JSON; empty if there are none.
    transaction_payload : PayloadHead or None
        Call of a multisig payload.
    decrypted_payload : PayloadHead or None
        Payload of an encrypted transaction that the node has decrypted.
    """

    type: str | None = None
    function: str | None = None
    type_arguments: tuple[str, ...] | None = None
    arguments: Raw = _NO_ARGUMENTS
    transaction_payload: PayloadHead | None = None
    decrypted_payload: PayloadHead | None = None


class _Typed(msgspec.Struct, gc=False):
    type: str | None = None


_decode_call = msgspec.json.Decoder(PayloadHead).decode
_decode_typed = msgspec.json.Decoder(_Typed).decode


def payload_head(payload: Raw | bytes) -> PayloadHead:
    """Return the fields of a payload; only its type if the payload is of an unknown kind.

    Raises
    ------
    msgspec.DecodeError
        If the payload is not a JSON object.
    """
    try:
        return _decode_call(payload)
    except msgspec.ValidationError:
        return PayloadHead(_decode_typed(payload).type)


def call_that_ran(head: PayloadHead, events: Sequence[Event] = ()) -> PayloadHead:
    """Return the innermost call of a payload: decrypted, of a multisig account, or stored on chain by one.

    Parameters
    ----------
    head : PayloadHead
        The payload, as returned by `payload_head`.
    events : sequence of Event
        Events of the transaction, which contain a payload that is stored on chain.
    """
    while (inner := head.decrypted_payload or head.transaction_payload) is not None:
        head = inner
    if head.type != "multisig_payload":
        return head
    execution = multisig_execution(events)
    return head if execution is None or not execution.payload else _stored_call(execution.payload)


def _stored_call(payload: bytes) -> PayloadHead:
    """Return the call of a payload in the BCS form that multisig accounts store. Its arguments are BCS in hex."""
    from toolkit.wire._bcs_forms import whole
    from toolkit.wire._bcs_requests import MULTISIG_PAYLOAD, EncodedEntryFunction, script_argument_json

    try:
        stored = whole(MULTISIG_PAYLOAD, payload)
    except SchemaError:
        return PayloadHead()
    types = tuple(map(wire_type, stored.type_arguments))
    if not isinstance(stored, EncodedEntryFunction):
        arguments = list(map(script_argument_json, stored.arguments))
        return PayloadHead("script_payload", None, types, Raw(msgspec.json.encode(arguments)))
    arguments = [f"0x{one.hex()}" for one in stored.arguments]
    return PayloadHead("entry_function_payload", stored.function.wire, types, Raw(msgspec.json.encode(arguments)))
