"""The JSON body of a simulation, read into the signed transaction it stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.http.calls import bind, plain_arguments, type_tag
from toolkit.embedded.http.messages import encode, explained, invalid_input
from toolkit.embedded.http.parsing import Fields, json_body, shown
from toolkit.errors import ToolkitError
from toolkit.move import encode_bcs, parse_hex
from toolkit.wire import (
    EncodedEntryFunction,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
    RawTransaction,
    SignedTransaction,
    UnknownSignature,
    parse_signature,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.embedded.http.messages import HttpCall
    from toolkit.embedded.http.node import EmbeddedNode
    from toolkit.wire import EncodedPayload, TransactionSignature

__all__ = ["signed_from_json"]

_U64_MAX = 2**64 - 1
_MODEL = "SubmitTransactionRequest"
_CONTEXT = "Failed to create SignedTransaction from SubmitTransactionRequest: Failed to parse transaction payload: "


def signed_from_json(node: EmbeddedNode, call: HttpCall) -> SignedTransaction:
    """Read the body: shape first, then what it means; the chain id is the node's own."""
    body = json_body(call, _MODEL)
    fields = Fields(body.value, ("UserTransactionRequestInner", _MODEL))
    sender, sequence_number = fields.address("sender"), fields.u64("sequence_number")
    max_gas_amount, gas_unit_price = fields.u64("max_gas_amount"), fields.u64("gas_unit_price")
    expiration = fields.u64("expiration_timestamp_secs")
    payload = fields.object("payload", "TransactionPayload")
    nonce = fields.optional_u64("replay_protection_nonce")
    signature = _signature(Fields(body.value, (_MODEL,)))
    with explained(_CONTEXT):
        encoded = _payload(node, payload)
    if nonce is not None:  # orderless: the number says nothing, and the payload takes its newer form
        sequence_number = _U64_MAX
        if isinstance(encoded, EncodedMultisig):
            encoded = EncodedPayloadV2(encoded.payload, encoded.multisig_address, nonce)
        elif isinstance(encoded, EncodedEntryFunction | EncodedScript):
            encoded = EncodedPayloadV2(encoded, None, nonce)
    raw = RawTransaction(
        sender=sender,
        sequence_number=sequence_number,
        payload=encoded,
        max_gas_amount=max_gas_amount,
        gas_unit_price=gas_unit_price,
        expiration_timestamp_secs=expiration,
        chain_id=node.chain.chain_id,
    )
    return SignedTransaction(raw, signature)


def _signature(fields: Fields) -> TransactionSignature:
    """Read the signature; its structure is checked on the way."""
    value = fields.object("signature", "TransactionSignature").value
    try:
        parsed = parse_signature(value)
    except ToolkitError as error:
        return invalid_input(f"Simulated transaction invalid: {shown(error)}")
    if isinstance(parsed, UnknownSignature):
        fields.fail(f'Expected input type "TransactionSignature", found {shown(encode(value).decode())}.')
    return parsed


def _payload(node: EmbeddedNode, payload: Fields) -> EncodedPayload:
    """Read a payload of any kind that can be simulated."""
    if payload.text("type", "string") == "module_bundle_payload":
        invalid_input("Module bundle payload has been removed")
    if payload.value["type"] != "multisig_payload":
        return _executable(node, payload)
    fields = payload.named("MultisigPayload")
    address = fields.address("multisig_address")
    inner = payload.value.get("transaction_payload")
    if inner is None:
        return EncodedMultisig(address)
    return EncodedMultisig(
        address, _executable(node, fields.object("transaction_payload", "MultisigTransactionPayload"))
    )


def _executable(node: EmbeddedNode, payload: Fields) -> EncodedEntryFunction | EncodedScript:
    """Read what runs: a call of an entry function, or a script."""
    readers: dict[str, Callable[[EmbeddedNode, Fields], EncodedEntryFunction | EncodedScript]] = {
        "entry_function_payload": _entry_function,
        "script_payload": _script,
    }
    reader = readers.get(payload.text("type", "string"))
    if reader is None:
        payload.unexpected("TransactionPayload", payload.value)
    assert reader is not None  # noqa: S101 - `unexpected` has raised  # nosec B101
    return reader(node, payload)


def _entry_function(node: EmbeddedNode, payload: Fields) -> EncodedEntryFunction:
    fields = payload.named("EntryFunctionPayload")
    function = fields.function("function")
    texts = fields.texts("type_arguments", "string(MoveType)")
    arguments = fields.array("arguments", "[Value]")
    tags = tuple(type_tag(text) for text in texts)
    bound = bind(node.chain.code_at(node.chain.head), function, tags, kind="entry")
    if not bound.function.mark.is_entry:
        invalid_input(f"could not find entry function by {function.wire}")
    plain = plain_arguments(bound, arguments)
    return EncodedEntryFunction(function, tags, tuple(map(encode_bcs, bound.parameters, plain)))


def _script(node: EmbeddedNode, payload: Fields) -> Any:
    """Refuse a script: a node needs its ABI from the bytecode to read its arguments, and cannot read this one's."""
    del node
    fields = payload.named("ScriptPayload")
    code = fields.object("code", "MoveScriptBytecode")
    text = code.text("bytecode", "string(HexEncodedBytes)")
    fields.texts("type_arguments", "string(MoveType)")
    fields.array("arguments", "[Value]")
    try:
        bytecode = parse_hex(text)
    except ToolkitError as error:
        code.fail(f'failed to parse "string(HexEncodedBytes)": {shown(error)}')
    if not bytecode:
        invalid_input("Script payload bytecode must not be empty")
    return invalid_input("invalid transaction script bytecode")
