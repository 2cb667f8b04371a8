"""``POST`` endpoints: table items, views, simulation, the message to sign; submitted transactions are rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from toolkit.embedded import _render as render
from toolkit.embedded._contract import find_script
from toolkit.embedded._execution import execute, returned_text, run_view
from toolkit.embedded._reader import script_arguments
from toolkit.embedded._render import simulation_bcs
from toolkit.embedded._state import table_key
from toolkit.embedded._transaction import Transaction
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.framework._coin import APTOS_COIN
from toolkit.embedded.http._messages import BCS, JSON, ApiError, HttpAnswer, encode, error_context, invalid_input
from toolkit.embedded.http._parsing import (
    NOT_A_TYPE_TAG,
    Fields,
    bcs_problem,
    bind,
    boolean_query,
    check_transaction_nesting,
    check_types,
    check_view_nesting,
    json_body,
    media_type,
    path_address,
    plain_arguments,
    query_u64,
    reference_debug,
    shown,
    type_tag,
)
from toolkit.embedded.http._reads import gas_estimate
from toolkit.embedded.http._signatures import check_shape, has_valid_signature, signature_of, structure_problem
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionId, TypeTag, Untyped, decode_bcs, encode_bcs, encode_json, parse_type_tag
from toolkit.move._bcs import Reader, read_type_tag, uleb128
from toolkit.move._ids import address_from_bytes, wire_address
from toolkit.move._layouts import NO_ABI
from toolkit.move._node_messages import json_debug
from toolkit.move._values import decode_argument
from toolkit.wire import MultiAgentSignature, NoAccountSignature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_payloads import (
    EncodedEntryFunction,
    EncodedModuleBundle,
    EncodedMultisig,
    EncodedPayloadV2,
    EncodedScript,
)
from toolkit.wire._simulation_bcs import VM_STATUS_CODES

if TYPE_CHECKING:
    from toolkit.embedded._code import BoundFunction
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.embedded.http._node import EmbeddedNode
    from toolkit.wire import TransactionSignature
    from toolkit.wire._bcs_payloads import EncodedPayload

VIEW_BCS = "application/x.aptos.view_function+bcs"
_BAD_VIEW = VM_STATUS_CODES["INVALID_MAIN_FUNCTION_SIGNATURE"]
SIGNED_TRANSACTION_BCS = "application/x.aptos.signed_transaction+bcs"
_INVALID = "Simulated transaction invalid"
_TYPE = "string(MoveType)"
_NO_BYTECODE = "Script payload bytecode must not be empty"
_U64_MAX = 2**64 - 1
_MODEL = "SubmitTransactionRequest"
_PAYLOAD = "Failed to parse transaction payload: "
_CONTEXT = f"Failed to create SignedTransaction from SubmitTransactionRequest: {_PAYLOAD}"


def table_item(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/tables/{table_handle}/item`` (wire facts, section 2)."""
    handle = path_address(call, "table_handle")
    body = json_body(call, "TableItemRequest")
    key_type, value_type = body.text("key_type", "string(MoveType)"), body.text("value_type", "string(MoveType)")
    key = body.value.get("key")  # null if it is missing, which no type of key accepts
    query_u64(call, "ledger_version")
    check_types((key_type, value_type), "'table_item_request' invalid")
    node.access.check_output(call, "Get table item")
    key_tag, value_tag = _item_type("key_type", key_type), _item_type("value_type", value_type)
    version = node.version(call)
    code = node.chain.code_at(version)
    if str(key_tag) == "signer":
        invalid_input(f"unexpected move type Signer for value {json_debug(key)}")
    try:
        layout = code.layout(str(key_tag))
        if isinstance(layout, Untyped) and layout.reason.startswith(NO_ABI):
            invalid_input("Could not find module")
        encoded = encode_bcs(layout, decode_argument(layout, key, where=""))
    except SchemaError as error:
        invalid_input(str(error))
    value = node.chain.state.read(table_key(handle, encoded), version)
    if value is None:
        by = f"Table handle({wire_address(handle)}), Table key({shown(encode(key).decode())})"
        raise ApiError(404, "table_item_not_found", f"Table Item not found by {by} and Ledger version({version})")
    if call.wants_bcs():
        return HttpAnswer(value.data, media_type=BCS)
    try:
        layout = code.layout(str(value_tag))
        if str(value_tag) == "signer":
            raise SchemaError("cannot deserialize signer")
        return HttpAnswer(encode(encode_json(layout, decode_bcs(layout, value.data))))
    except ToolkitError as error:
        text = f"Failed to deserialize table item retrieved from DB: {bcs_problem(error)}"
        raise ApiError(500, "internal_error", text) from None


def _item_type(name: str, text: str) -> TypeTag:
    try:
        return parse_type_tag(text, short=False)
    except InputError:  # a reference, since the types were checked
        return invalid_input(f"Failed to parse {name}: {NOT_A_TYPE_TAG}: {reference_debug(text)}", with_ledger=False)


def raw_table_item(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/tables/{table_handle}/raw_item``: BCS key in, BCS value out."""
    handle = path_address(call, "table_handle")
    body = json_body(call, "RawTableItemRequest")
    key = body.hex("key")
    if not call.wants_bcs():
        message = "Get raw table item is not allowed. Only BCS is supported as an AcceptType."
        raise ApiError(403, "api_disabled", message, with_ledger=False)
    version = node.version(call)
    value = node.chain.state.read(table_key(handle, key), version)
    if value is None:
        by = f"Table handle({wire_address(handle)}), Table key(0x{shown(key.hex())})"
        raise ApiError(404, "table_item_not_found", f"Table Item not found by {by} and Ledger version({version})")
    return HttpAnswer(value.data, media_type=BCS)


def view(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/view`` (wire facts, section 3)."""
    arguments: list[Any]
    if media_type(call, JSON, VIEW_BCS) == VIEW_BCS:
        node.access.check_output(call, "View function")
        version = node.version(call)
        function, tags, encoded = _read_request(call.body)
        node.access.check_view(function)
        bound = _loaded(node, version, function, tags)
        arguments = _decoded(bound, encoded)
    else:
        body = json_body(call, "ViewRequest", VIEW_BCS)
        function = body.function("function")
        texts = body.texts("type_arguments", "string(MoveType)")
        plain = body.array("arguments", "[Value]")
        node.access.check_output(call, "View function")
        version = node.version(call)
        tags = tuple(map(type_tag, texts))
        bound = bind(node.chain.code_at(version), function, tags, kind="view")
        arguments = plain_arguments(bound.parameters, plain)
        node.access.check_view(function)
        bound = _loaded(node, version, function, tags)
    try:
        with node.execution(call, version) as snapshot:
            values, gas_used = run_view(snapshot, bound, arguments, tags, max_gas=node.limits.view_gas)
    except VmError as error:
        return _refuse(error)
    try:
        if call.wants_bcs():
            data = b"".join(map(encode_bcs, bound.returns, values))
            return HttpAnswer(uleb128(len(values)) + data, media_type=BCS, gas_used=gas_used)
        return HttpAnswer(encode(list(map(encode_json, bound.returns, values))), gas_used=gas_used)
    except SchemaError as error:  # a returned value does not fit its type
        text = f"Failed to render the returned values: {error}; {returned_text(bound, values)}"
        raise ApiError(400, "internal_error", text) from None


def _loaded(node: EmbeddedNode, version: int, function: FunctionId, tags: tuple[TypeTag, ...]) -> BoundFunction:
    """Return a view function as the VM loads it."""
    try:
        bound = node.chain.code_at(version).function(function.address, function.module, function.name, tags)
    except VmError as error:
        return _refuse(error)
    if not bound.function.mark.is_view:
        invalid_input("function not marked as view function", vm_error_code=_BAD_VIEW)
    if not bound.returns:
        invalid_input("view function must return values", vm_error_code=_BAD_VIEW)
    return bound


def _refuse(error: VmError) -> NoReturn:
    invalid_input(error.view_message, vm_error_code=error.vm_error_code)


def _read_request(body: bytes) -> tuple[FunctionId, tuple[TypeTag, ...], list[bytes]]:
    """Decode a view request in BCS: module id, function, type arguments, encoded arguments."""
    try:
        reader = Reader(body)
        module = address_from_bytes(reader.fixed(32)), reader.string()
        function = FunctionId(*module, reader.string())
        tags = tuple(read_type_tag(reader) for _ in range(reader.uleb128()))
        encoded = [reader.bytes() for _ in range(reader.uleb128())]
        reader.end()
        check_view_nesting(tags)
    except ToolkitError as error:
        invalid_input(f"Failed to deserialize input into ViewRequest: {bcs_problem(error)}")
    return function, tags, encoded


def _decoded(bound: BoundFunction, encoded: list[bytes]) -> list[Any]:
    """Return the arguments of a view request in BCS."""
    if len(encoded) != len(bound.parameters):
        return _refuse(VmError("NUMBER_OF_ARGUMENTS_MISMATCH"))
    try:
        return list(map(decode_bcs, bound.parameters, encoded))
    except SchemaError:
        return _refuse(VmError("FAILED_TO_DESERIALIZE_ARGUMENT"))


class _Overrides(NamedTuple):
    """The three options of the query."""

    max_gas: bool
    price: bool
    prioritized: bool


def simulate(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions/simulate``: execute a transaction at the head without committing it."""
    overrides = _Overrides(
        boolean_query(call, "estimate_max_gas_amount"),
        boolean_query(call, "estimate_gas_unit_price"),
        boolean_query(call, "estimate_prioritized_gas_unit_price"),
    )
    request = _request(call, _INVALID)
    node.access.check_simulation()
    node.access.check_output(call, "Simulate transaction")
    signed = _signed(node, call, request)
    node.access.check_sender(signed.raw.sender)
    if has_valid_signature(signed):
        invalid_input("Simulated transactions must not have a valid signature")
    transaction = Transaction(_override(node, signed, overrides))
    version = node.chain.head
    with node.execution(call, version) as snapshot:
        output = execute(snapshot, transaction, check_keys=True)
    gas_used = output.charges.total_charge_gas_units
    if call.wants_bcs():
        encoded = simulation_bcs(transaction, output, state=node.chain.state, version=version)
        return HttpAnswer(encoded, media_type=BCS, gas_used=gas_used)
    answer = render.simulation_json(
        node.chain.code_at(version),
        transaction,
        output,
        version=version,
        timestamp_us=snapshot.timestamp_us,
        tables=node.chain.tables,
    )
    return HttpAnswer(encode([answer]), gas_used=gas_used)


def _from_bcs(body: bytes) -> SignedTransaction:
    try:
        signed = SignedTransaction.from_bcs(body)
        check_transaction_nesting(signed.raw.payload)
    except ToolkitError as error:
        invalid_input(f"Failed to deserialize input into SignedTransaction: {bcs_problem(error)}")
    match signed.raw.payload:
        case EncodedModuleBundle():
            invalid_input("Module bundle payload has been removed")
        case EncodedScript(code=b"") | EncodedPayloadV2(executable=EncodedScript(code=b"")):
            invalid_input(_NO_BYTECODE)
        case EncodedPayloadV2(executable=None, multisig_address=None):
            invalid_input("Empty transaction payload must be a multisig transaction")
    return signed


def _override(node: EmbeddedNode, signed: SignedTransaction, overrides: _Overrides) -> SignedTransaction:
    """Replace gas unit price and maximum gas if requested; the maximum is what the sender can pay."""
    raw = signed.raw
    if overrides.price or overrides.prioritized:
        estimate = gas_estimate(node)
        price = estimate["prioritized_gas_estimate" if overrides.prioritized else "gas_estimate"]
        raw = replace(raw, gas_unit_price=price)
    if overrides.max_gas:
        schedule = node.chain.schedule_at(node.chain.head)
        lowest = -(-schedule["txn.min_transaction_gas_units"] // schedule.scaling)
        affordable = _balance(node, raw.sender) // max(1, raw.gas_unit_price)
        limit = min(max(affordable, lowest), schedule["txn.maximum_number_of_gas_units"])
        raw = replace(raw, max_gas_amount=limit)
    return replace(signed, raw=raw)


def _balance(node: EmbeddedNode, address: str) -> int:
    """Return the sender's balance, read with the same view as on a node."""
    head = node.chain.head
    bound = node.chain.code_at(head).function("0x1", "coin", "balance", (APTOS_COIN,))
    try:
        values, _ = run_view(node.chain.snapshot(head), bound, [address], (APTOS_COIN,))
    except VmError as error:
        return invalid_input(error.view_message, vm_error_code=error.vm_error_code)
    return int(values[0])


class _Call(NamedTuple):
    """An entry function payload of a body."""

    function: FunctionId
    type_arguments: list[str]
    arguments: list[Any]


class _ScriptCall(NamedTuple):
    """A script payload of a body; its arguments need the signature that belongs to the bytecode."""

    bytecode: bytes
    type_arguments: list[str]
    arguments: list[Any]


class _MultisigCall(NamedTuple):
    """A multisig payload of a body."""

    address: str
    call: _Call | _ScriptCall | None


class _Bundle(NamedTuple):
    """A payload that nodes no longer run."""

    type_arguments: tuple[str, ...] = ()


class _Request(NamedTuple):
    """A JSON body of checked shape; `payload` and `signature` are not yet converted."""

    sender: str
    sequence_number: int
    max_gas_amount: int
    gas_unit_price: int
    expiration: int
    payload: _Call | _ScriptCall | _MultisigCall | _Bundle
    nonce: int | None
    signature: dict[str, Any] | None


def _request(call: HttpCall, context: str) -> _Request | None:
    """Return the JSON body after checking what a node checks before it reads the ledger; None for a body in BCS."""
    if media_type(call, JSON, SIGNED_TRANSACTION_BCS) != JSON:
        return None
    body = json_body(call, _MODEL, SIGNED_TRANSACTION_BCS)
    request = _unsigned(Fields(body.value, ("UserTransactionRequestInner", _MODEL)))
    signature = check_shape(Fields(body.value, (_MODEL,)))
    _check_payload(request.payload, context)
    problem = structure_problem(signature)
    if problem is not None:
        invalid_input(f"{context}: {problem}", with_ledger=False)
    return request._replace(signature=signature)


def _unsigned(fields: Fields) -> _Request:
    """Return the part of a body that is signed."""
    return _Request(
        sender=fields.address("sender"),
        sequence_number=fields.u64("sequence_number"),
        max_gas_amount=fields.u64("max_gas_amount"),
        gas_unit_price=fields.u64("gas_unit_price"),
        expiration=fields.u64("expiration_timestamp_secs"),
        payload=_payload(fields),
        nonce=fields.optional_u64("replay_protection_nonce"),
        signature=None,
    )


def _signed(node: EmbeddedNode, call: HttpCall, request: _Request | None) -> SignedTransaction:
    """Return the transaction of a body; in JSON its chain id is that of the node."""
    if request is None or request.signature is None:
        return _from_bcs(call.body)
    with error_context(_CONTEXT):
        raw = _raw(node, request)
    return SignedTransaction(raw, signature_of(request.signature))


def _raw(node: EmbeddedNode, request: _Request) -> RawTransaction:
    encoded, sequence_number, nonce = _encoded(node, request.payload), request.sequence_number, request.nonce
    if nonce is not None:  # orderless: the sequence number is not used, and the payload has its newer form
        sequence_number = _U64_MAX
        if isinstance(encoded, EncodedMultisig):
            encoded = EncodedPayloadV2(encoded.payload, encoded.multisig_address, nonce)
        elif isinstance(encoded, EncodedEntryFunction | EncodedScript):
            encoded = EncodedPayloadV2(encoded, None, nonce)
    return RawTransaction(
        sender=request.sender,
        sequence_number=sequence_number,
        payload=encoded,
        max_gas_amount=request.max_gas_amount,
        gas_unit_price=request.gas_unit_price,
        expiration_timestamp_secs=request.expiration,
        chain_id=node.chain.chain_id,
    )


def encode_submission(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions/encode_submission``: the bytes that the sender, or each of several signers, signs."""
    body = json_body(call, "EncodeSubmissionRequest")
    request = _unsigned(Fields(body.value, ("UserTransactionRequestInner", "EncodeSubmissionRequest")))
    secondary = None if body.value.get("secondary_signers") is None else body.addresses("secondary_signers")
    _check_payload(request.payload, "'UserTransactionRequest' invalid")
    node.access.check_output(call, "Encode submission")
    if call.wants_bcs():
        raise ApiError(400, "bcs_not_supported", "BCS is not supported for encode submission", with_ledger=False)
    with error_context(f"The given transaction is invalid: {_PAYLOAD}"):
        raw = _raw(node, request)
    signature: TransactionSignature = NoAccountSignature()
    if secondary is not None:
        signers = [NoAccountSignature()] * len(secondary)
        signature = MultiAgentSignature.model_construct(
            sender=NoAccountSignature(), secondary_signer_addresses=tuple(secondary), secondary_signers=tuple(signers)
        )
    return HttpAnswer(encode(f"0x{SignedTransaction(raw, signature).signing_message().hex()}"))


def refuse_submission(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions``: refused as on a node that does not accept transactions, after checks of the body."""
    _request(call, "Submitted transaction invalid'")  # the apostrophe is that of nodes
    return refuse_batch(node, call)


def refuse_batch(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``POST /v1/transactions/batch``: refused."""
    del node, call
    message = "Submit transaction is disabled on this endpoint: commit to the embedded ledger from Python"
    raise ApiError(403, "api_disabled", message, with_ledger=False)


def _payload(fields: Fields) -> _Call | _ScriptCall | _MultisigCall | _Bundle:
    """Return the payload of a body, parsed without the ledger."""
    payload = fields.object("payload", "TransactionPayload")
    kind = payload.value.get("type")
    if kind == "module_bundle_payload":
        return _Bundle()
    if kind != "multisig_payload":
        return _executable(fields, payload, "TransactionPayload")
    own = payload.named("MultisigPayload")
    address = own.address("multisig_address")
    if payload.value.get("transaction_payload") is None:
        return _MultisigCall(address, None)
    inner = own.object("transaction_payload", "MultisigTransactionPayload")
    return _MultisigCall(address, _executable(own, inner, "MultisigTransactionPayload"))


def _executable(outer: Fields, payload: Fields, union: str) -> _Call | _ScriptCall:
    kind = payload.value.get("type")
    if kind == "entry_function_payload":
        fields = payload.named("EntryFunctionPayload")
        function = fields.function("function")
        return _Call(function, fields.texts("type_arguments", _TYPE), fields.array("arguments", "[Value]"))
    if kind != "script_payload":
        outer.unexpected(union, payload.value)
    fields = payload.named("ScriptPayload")
    code = fields.object("code", "MoveScriptBytecode")
    bytecode = code.hex("bytecode")
    return _ScriptCall(bytecode, fields.texts("type_arguments", _TYPE), fields.array("arguments", "[Value]"))


def _check_payload(payload: _Call | _ScriptCall | _MultisigCall | _Bundle, context: str) -> None:
    """Check what a node checks before it reads the ledger."""
    if isinstance(payload, _Bundle):
        invalid_input(f"{context}: Module bundle payload has been removed", with_ledger=False)
    call = payload.call if isinstance(payload, _MultisigCall) else payload
    if call is not None:
        check_types(call.type_arguments, context)


def _encoded(node: EmbeddedNode, payload: _Call | _ScriptCall | _MultisigCall | _Bundle) -> EncodedPayload:
    """Return a payload in BCS form: calls need the function's parameter types."""
    if isinstance(payload, _MultisigCall):
        inner = None if payload.call is None else _encoded(node, payload.call)
        return EncodedMultisig(payload.address, inner)  # type: ignore[arg-type]  # only calls are inside a multisig payload
    if isinstance(payload, _ScriptCall):
        if not payload.bytecode:
            invalid_input(_NO_BYTECODE)
        return _encoded_script(node, payload)
    if isinstance(payload, _Bundle):
        invalid_input("Module bundle payload has been removed")
    function = payload.function
    tags = tuple(map(type_tag, payload.type_arguments))
    bound = bind(node.chain.code_at(node.chain.head), function, tags, kind="entry")
    if not bound.function.mark.is_entry:
        invalid_input(f"could not find entry function by {function.wire}")
    plain = plain_arguments(bound.parameters, payload.arguments)
    return EncodedEntryFunction(function, tags, tuple(map(encode_bcs, bound.parameters, plain)))


def _encoded_script(node: EmbeddedNode, payload: _ScriptCall) -> EncodedScript:
    known = find_script(payload.bytecode)
    if known is None:
        invalid_input("invalid transaction script bytecode")
    tags = tuple(map(type_tag, payload.type_arguments))
    code = node.chain.code_at(node.chain.head)
    try:
        kinds = code.script_parameters(known.function, tags)
    except VmError:  # execution reports it
        return EncodedScript(payload.bytecode, tags)
    layouts = [code.layout(kind.text) for kind in kinds]
    plain = plain_arguments(layouts, payload.arguments)
    return EncodedScript(payload.bytecode, tags, script_arguments(kinds, layouts, plain))
