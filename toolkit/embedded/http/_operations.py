"""``POST`` endpoints: table items, views and simulation; submitted transactions are rejected.

A transaction that ed25519 keys have signed is not simulated, as on a node. Signatures of other kinds are not verified.
"""

from __future__ import annotations

from dataclasses import replace
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from toolkit import wire
from toolkit._present.messages import not_installed
from toolkit.embedded import _render as render
from toolkit.embedded._contract import find_script
from toolkit.embedded._execution import decoded_arguments, execute, run_view
from toolkit.embedded._state import StateKey
from toolkit.embedded._transaction import Transaction
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.framework._coin import APTOS_COIN
from toolkit.embedded.http import _messages as messages
from toolkit.embedded.http._messages import BCS, JSON, AddressField, ApiError, HexField, HttpAnswer, HttpCall, U64Field
from toolkit.embedded.http._reads import gas_estimate, read_balance
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionId, TypeTag, decode_bcs, encode_bcs, encode_json, parse_address
from toolkit.move._bcs import uleb128
from toolkit.move._ids import wire_address
from toolkit.move._values import decode_argument
from toolkit.wire import FeePayerSignature, RawTransaction, SignedTransaction, TransactionSignature
from toolkit.wire import _bcs_requests as payloads
from toolkit.wire._aborts import VM_STATUS_CODES
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import (
    FUNCTION_CALL,
    EncodedEntryFunction,
    EncodedScript,
    ScriptArgument,
    script_arguments,
)
from toolkit.wire._signatures import SignatureModel, is_zero_padded, parse_account_signature, parse_signature
from toolkit.wire._signers import account_signatures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded._code import BoundFunction, CodeSet
    from toolkit.embedded.http._node import EmbeddedNode
    from toolkit.wire._bcs_requests import EncodedPayload


_U8 = Annotated[int, msgspec.Meta(ge=0, le=255)]


def _shape(kind: str, **fields: Any) -> type[msgspec.Struct]:
    """Return a model of a signature; the field ``type`` contains the kind."""
    return msgspec.defstruct(kind, list(fields.items()), tag_field="type", tag=kind)


class _Key(msgspec.Struct):
    type: Literal["ed25519", "secp256k1_ecdsa", "secp256r1_ecdsa", "keyless", "federated_keyless"]
    value: HexField


class _KeySignature(msgspec.Struct):
    type: Literal["ed25519", "secp256k1_ecdsa", "web_authn", "keyless"]
    value: HexField


class _IndexedSignature(msgspec.Struct):
    index: _U8
    signature: _KeySignature


_HEXES, _NONE = list[HexField], _shape("no_account_signature")
_ED25519 = _shape("ed25519_signature", public_key=HexField, signature=HexField)
_MULTI_ED25519 = _shape(
    "multi_ed25519_signature", public_keys=_HEXES, signatures=_HEXES, threshold=_U8, bitmap=HexField
)
_ACCOUNT: Any = (
    _NONE
    | _ED25519
    | _MULTI_ED25519
    | _shape("single_key_signature", public_key=_Key, signature=_KeySignature)
    | _shape("multi_key_signature", public_keys=list[_Key], signatures=list[_IndexedSignature], signatures_required=_U8)
    | _shape("abstract_signature", function_info=str, auth_data=HexField)
)
_AGENTS: dict[str, Any] = {
    "sender": _ACCOUNT,
    "secondary_signer_addresses": list[AddressField],
    "secondary_signers": list[_ACCOUNT],
}
_MULTI_AGENT = _shape("multi_agent_signature", **_AGENTS)
_FEE_PAYER = _shape("fee_payer_signature", **_AGENTS, fee_payer_address=AddressField, fee_payer_signer=_ACCOUNT)
# The signatures that the JSON of a transaction can have; a node accepts single-key signatures only for one of several
# signers.
_SHAPE: msgspec.json.Decoder[Any] = messages.body_decoder(_NONE | _ED25519 | _MULTI_ED25519 | _MULTI_AGENT | _FEE_PAYER)  # type: ignore[arg-type]  # a union


def read_signature(data: msgspec.Raw, context: str) -> TransactionSignature:
    """Return the signature in a body.

    Raises
    ------
    ApiError
        An error of the web framework if the JSON does not have the shape of a signature; an ``invalid_input`` error
        with `context` if lengths or numbers are wrong.
    """
    messages.decoded(_SHAPE, data)
    value = msgspec.json.decode(data)
    try:
        signature = _pairless(value) or parse_signature(value)
        # The number of signatures must equal the number of keys, or of required signatures; in BCS it may differ.
        for one in account_signatures(signature):
            if isinstance(one, wire.MultiEd25519Signature) and not one.has_json_form:
                raise InputError("MultiEd25519 signature does not have the same number of signatures as public keys")
            if isinstance(one, wire.MultiKeySignature) and len(one.signatures) != one.signatures_required:
                raise InputError("MultiKey signature does not have the number of signatures required")
    except ToolkitError as error:
        messages.invalid_input(f"{context}: {error}", with_ledger=False)
    return signature


def _pairless(value: dict[str, Any]) -> FeePayerSignature | None:
    """Return a fee payer signature whose addresses and signatures differ in number, or None; execution rejects it."""
    addresses, signers = value.get("secondary_signer_addresses", ()), value.get("secondary_signers", ())
    if value["type"] != FeePayerSignature.type or len(addresses) == len(signers):
        return None
    return FeePayerSignature.model_construct(  # the class requires pairs
        sender=parse_account_signature(value["sender"]),
        secondary_signer_addresses=tuple(map(parse_address, addresses)),
        secondary_signers=tuple(map(parse_account_signature, signers)),
        fee_payer_address=parse_address(value["fee_payer_address"]),
        fee_payer_signer=parse_account_signature(value["fee_payer_signer"]),
    )


def has_valid_signature(signed: SignedTransaction) -> bool:
    """Return True if all signatures of a transaction are of ed25519 keys and valid."""
    # Signatures of zeros are the usual case and never valid.
    if is_zero_padded(signed.signature):
        return False
    if find_spec("cryptography") is None:
        reason = not_installed("checking a signature that is not zeros", "cryptography", "signatures")
        raise ApiError(HTTPStatus.INTERNAL_SERVER_ERROR, "internal_error", reason)
    from toolkit.vm._ed25519 import are_valid  # late: it imports the machine

    signatures = account_signatures(signed.signature)
    return all(map(_is_by_ed25519, signatures)) and are_valid(signed.signature, signed.signing_message())


def _is_by_ed25519(signature: SignatureModel) -> bool:
    match signature:
        case wire.Ed25519Signature() | wire.SingleKeySignature(public_key=wire.PublicKey(type="ed25519")):
            return True
    return False


VIEW_BCS = "application/x.aptos.view_function+bcs"
_BAD_VIEW = VM_STATUS_CODES["INVALID_MAIN_FUNCTION_SIGNATURE"]
SIGNED_TRANSACTION_BCS = "application/x.aptos.signed_transaction+bcs"
_INVALID = "Simulated transaction invalid"
_ESTIMATED = ("max_gas_amount", "gas_unit_price", "prioritized_gas_unit_price")
_NO_BYTECODE = "Script payload bytecode must not be empty"
_NO_BUNDLES = "Module bundle payload has been removed"


class _ItemRequest(msgspec.Struct):
    key_type: str
    value_type: str
    key: Any = None  # a value that no key type accepts


class _RawItemRequest(msgspec.Struct):
    key: HexField


class _ViewRequest(msgspec.Struct):
    function: str
    type_arguments: list[str]
    arguments: list[Any]


class _Payload(msgspec.Struct, tag_field="type"):
    """A payload; the field ``type`` contains the kind."""


class _Call(_Payload, tag="entry_function_payload"):
    function: str
    type_arguments: list[str]
    arguments: list[Any]

    def __post_init__(self) -> None:
        FunctionId.parse(self.function)  # the error of a body, not of a call


class _Bytecode(msgspec.Struct):
    bytecode: HexField


class _ScriptCall(_Payload, tag="script_payload"):
    """A script payload; the arguments are read with the signature that was declared for the bytecode."""

    code: _Bytecode
    type_arguments: list[str]
    arguments: list[Any]


class _MultisigCall(_Payload, tag="multisig_payload"):
    multisig_address: AddressField
    transaction_payload: _Call | _ScriptCall | None = None


class _Bundle(_Payload, tag="module_bundle_payload"):
    """A payload that nodes no longer run."""


class _Simulated(msgspec.Struct, kw_only=True):
    sender: AddressField
    sequence_number: U64Field
    max_gas_amount: U64Field
    gas_unit_price: U64Field
    expiration_timestamp_secs: U64Field
    payload: _Call | _ScriptCall | _MultisigCall | _Bundle
    replay_protection_nonce: U64Field | None = None
    signature: msgspec.Raw


_ITEM, _RAW_ITEM = messages.body_decoder(_ItemRequest), messages.body_decoder(_RawItemRequest)
_VIEW, _SIMULATED = messages.body_decoder(_ViewRequest), messages.body_decoder(_Simulated)


def table_item(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/tables/{table_handle}/item``."""
    handle = messages.path_address(call, "table_handle")
    messages.media_type(call, JSON)
    body = messages.decoded(_ITEM, call.body)
    messages.query_value(call, "ledger_version", messages.u64)
    messages.check_types((body.key_type, body.value_type), "'table_item_request' invalid")
    key, key_tag, value_tag = body.key, messages.type_tag(body.key_type), messages.type_tag(body.value_type)
    version = node.version(call)
    code = node.chain.code_at(version)
    if str(key_tag) == "signer":
        messages.invalid_input("a signer cannot be the key of a table")
    try:
        layout = code.layout(str(key_tag))
        encoded = encode_bcs(layout, decode_argument(layout, key, where="table key"))
    except SchemaError as error:
        messages.invalid_input(str(error))
    data = _stored_item(node, handle, encoded, version, messages.encode(key).decode())
    if call.wants_bcs():
        return HttpAnswer(data, media_type=BCS)
    try:
        layout = code.layout(str(value_tag))
        if str(value_tag) == "signer":
            raise SchemaError("cannot deserialize signer")
        return HttpAnswer(messages.encode(encode_json(layout, decode_bcs(layout, data))))
    except ToolkitError as error:
        text = f"Failed to deserialize table item: {messages.shown(error)}"
        raise ApiError(500, "internal_error", text) from None


def raw_table_item(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/tables/{table_handle}/raw_item``: BCS key in, BCS value out."""
    handle = messages.path_address(call, "table_handle")
    messages.media_type(call, JSON)
    key = messages.decoded(_RAW_ITEM, call.body).key
    if not call.wants_bcs():
        message = "Get raw table item is not allowed. Only BCS is supported as an AcceptType."
        raise ApiError(403, "api_disabled", message, with_ledger=False)
    return HttpAnswer(_stored_item(node, handle, key, node.version(call), f"0x{key.hex()}"), media_type=BCS)


def _stored_item(node: EmbeddedNode, handle: str, key: bytes, version: int, text: str) -> bytes:
    """Return a table item in BCS; if it does not exist, the message shows the key as `text`."""
    value = node.chain.state.read(StateKey("table", handle, key), version)
    if value is None:
        by = f"Table handle({wire_address(handle)}), Table key({messages.shown(text)}) and Ledger version({version})"
        messages.not_found("Table Item", "table_item_not_found", by)
    return value.data


def view(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/view``."""
    arguments: list[Any]
    if messages.media_type(call, JSON, VIEW_BCS) == VIEW_BCS:
        version = node.version(call)
        try:
            called: EncodedEntryFunction = whole(FUNCTION_CALL, call.body)
        except ToolkitError as error:
            messages.invalid_input(f"Failed to deserialize the view request: {messages.shown(error)}")
        bound = _loaded(node, version, called.function, called.type_arguments)
        arguments = decoded_arguments(bound, called.arguments)
    else:
        body = messages.decoded(_VIEW, call.body)
        function = messages.function_id(body.function)
        version = node.version(call)
        tags = tuple(map(messages.type_tag, body.type_arguments))
        bound = messages.bind(node.chain.code_at(version), function, tags, kind="view")
        arguments = messages.plain_arguments(bound.parameters, body.arguments)
        bound = _loaded(node, version, function, tags)
    with node.execution(call, version) as (snapshot, metered):
        meter = metered(snapshot.schedule, max_gas_units=node.limits.view_gas)
        values, gas_used = run_view(snapshot, bound, arguments, meter=meter)
    if call.wants_bcs():
        data = b"".join(map(encode_bcs, bound.returns, values))
        return HttpAnswer(uleb128(len(values)) + data, media_type=BCS, gas_used=gas_used)
    return HttpAnswer(messages.encode(list(map(encode_json, bound.returns, values))), gas_used=gas_used)


def _loaded(node: EmbeddedNode, version: int, function: FunctionId, tags: tuple[TypeTag, ...]) -> BoundFunction:
    """Return a view function as the VM loads it."""
    bound = node.chain.code_at(version).function(function.address, function.module, function.name, tags)
    if not bound.function.mark.is_view:
        messages.invalid_input("function not marked as view function", vm_error_code=_BAD_VIEW)
    if not bound.returns:
        messages.invalid_input("view function must return values", vm_error_code=_BAD_VIEW)
    return bound


def simulate(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions/simulate``: execute a transaction at the head without committing it."""
    max_gas, price, prioritized = (
        bool(messages.query_value(call, f"estimate_{one}", messages.flag)) for one in _ESTIMATED
    )
    if messages.media_type(call, JSON, SIGNED_TRANSACTION_BCS) == JSON:
        request = messages.decoded(_SIMULATED, call.body)
        payload = request.payload
        if isinstance(payload, _Bundle):
            messages.invalid_input(f"{_INVALID}: {_NO_BUNDLES}", with_ledger=False)
        inner = payload.transaction_payload if isinstance(payload, _MultisigCall) else payload
        if inner is not None:
            messages.check_types(inner.type_arguments, _INVALID)
        signature = read_signature(request.signature, _INVALID)
        signed = SignedTransaction(_raw(node, request, payload), signature)
    else:
        signed = _from_bcs(call.body)
    if has_valid_signature(signed):
        messages.invalid_input("Simulated transactions must not have a valid signature")
    transaction = Transaction(_override(node, signed, max_gas=max_gas, price=price, prioritized=prioritized))
    version = node.chain.head
    with node.execution(call, version) as (snapshot, metered):
        raw = transaction.raw
        meter = metered(snapshot.schedule, max_gas_units=raw.max_gas_amount, gas_unit_price=raw.gas_unit_price)
        output = execute(snapshot, transaction, check_keys=True, meter=meter)
    gas_used = output.charges.total_charge_gas_units
    if call.wants_bcs():
        encoded = render.simulation_bcs(transaction, output, state=node.chain.state, version=version)
        return HttpAnswer(encoded, media_type=BCS, gas_used=gas_used)
    answer = render.simulation_json(node.chain, transaction, output, version)
    return HttpAnswer(messages.encode([answer]), gas_used=gas_used)


def _from_bcs(body: bytes) -> SignedTransaction:
    try:
        signed = SignedTransaction.from_bcs(body)
    except ToolkitError as error:
        messages.invalid_input(f"Failed to deserialize the signed transaction: {messages.shown(error)}")
    match signed.raw.payload:
        case payloads.EncodedModuleBundle():
            messages.invalid_input(_NO_BUNDLES)
        case EncodedScript(code=b"") | payloads.EncodedPayloadV2(executable=EncodedScript(code=b"")):
            messages.invalid_input(_NO_BYTECODE)
        case payloads.EncodedPayloadV2(executable=None, multisig_address=None):
            messages.invalid_input("Empty transaction payload must be a multisig transaction")
    return signed


def _override(
    node: EmbeddedNode, signed: SignedTransaction, *, max_gas: bool, price: bool, prioritized: bool
) -> SignedTransaction:
    """Replace the gas unit price and the maximum gas if requested; the new maximum is what the sender can pay for."""
    raw = signed.raw
    if price or prioritized:
        name = "prioritized_gas_estimate" if prioritized else "gas_estimate"
        raw = replace(raw, gas_unit_price=gas_estimate(node)[name])
    if max_gas:
        schedule = node.chain.schedule_at(node.chain.head)
        lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
        octas = read_balance(node, node.chain.head, "coin", (APTOS_COIN,), raw.sender)
        affordable = max(octas // max(1, raw.gas_unit_price), lowest)
        raw = replace(raw, max_gas_amount=min(affordable, schedule["txn.maximum_number_of_gas_units"]))
    return replace(signed, raw=raw)


def _raw(node: EmbeddedNode, request: _Simulated, payload: _Call | _ScriptCall | _MultisigCall) -> RawTransaction:
    """Return the signed part of a transaction, with the chain id of the node."""
    encoded, nonce = _encoded(node, payload), request.replay_protection_nonce
    sequence_number = int(request.sequence_number)
    if nonce is not None:  # orderless: the sequence number is not used, and the payload has its newer form
        sequence_number = 2**64 - 1
        executable, multisig_address, _ = payloads.payload_parts(encoded)
        encoded = payloads.EncodedPayloadV2(executable, multisig_address, int(nonce))
    return RawTransaction(
        sender=str(request.sender),
        sequence_number=sequence_number,
        payload=encoded,
        max_gas_amount=int(request.max_gas_amount),
        gas_unit_price=int(request.gas_unit_price),
        expiration_timestamp_secs=int(request.expiration_timestamp_secs),
        chain_id=node.chain.chain_id,
    )


def refuse_submission(_node: EmbeddedNode, _call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions`` and ``/batch``: rejected, as on a node that does not accept transactions."""
    message = "Submit transaction is disabled on this endpoint: commit to the embedded ledger from Python"
    raise ApiError(403, "api_disabled", message, with_ledger=False)


def _encoded(node: EmbeddedNode, payload: _Call | _ScriptCall | _MultisigCall) -> EncodedPayload:
    """Return a payload in BCS; to encode a call, the types of the function's parameters are looked up."""
    if isinstance(payload, _MultisigCall):
        inner = None if payload.transaction_payload is None else _encoded(node, payload.transaction_payload)
        return payloads.EncodedMultisig(str(payload.multisig_address), inner)  # type: ignore[arg-type]  # only calls are inside a multisig payload
    code = node.chain.code_at(node.chain.head)
    tags = tuple(map(messages.type_tag, payload.type_arguments))
    if isinstance(payload, _ScriptCall):
        bytecode = payload.code.bytecode
        if not bytecode:
            messages.invalid_input(_NO_BYTECODE)
        known = find_script(bytecode)
        if known is None:
            return EncodedScript(bytecode, tags, _simple_arguments(code, bytecode, payload.arguments))
        try:
            bound = code.script(known.function, tags)
        except VmError:  # execution reports it
            return EncodedScript(bytecode, tags)
        plain = messages.plain_arguments(bound.parameters, payload.arguments)
        return EncodedScript(bytecode, tags, script_arguments(bound.parameters, plain))
    function = FunctionId.parse(payload.function)
    bound = messages.bind(code, function, tags, kind="entry")
    if not bound.function.mark.is_entry:
        messages.invalid_input(f"could not find entry function by {function.wire}")
    plain = messages.plain_arguments(bound.parameters, payload.arguments)
    return EncodedEntryFunction(function, tags, tuple(map(encode_bcs, bound.parameters, plain)))


def _simple_arguments(code: CodeSet, bytecode: bytes, arguments: Sequence[Any]) -> tuple[ScriptArgument, ...]:
    """Return the arguments of a compiled script, which in JSON have simple types only."""
    from toolkit.embedded._straight import script_layouts  # late: it imports the machine

    layouts = script_layouts(code, bytecode)
    if layouts is None:
        messages.invalid_input("invalid transaction script bytecode")
    encoded = script_arguments(layouts, messages.plain_arguments(layouts, arguments))
    if any(one.kind == "serialized" for one in encoded):
        messages.invalid_input("invalid transaction argument")
    return encoded


POSTS = {
    "/view": view,
    "/tables/{table_handle}/item": table_item,
    "/tables/{table_handle}/raw_item": raw_table_item,
    "/transactions/simulate": simulate,
    "/transactions": refuse_submission,
    "/transactions/batch": refuse_submission,
}
"""Handlers by path below ``/v1``."""
