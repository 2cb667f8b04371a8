"""``POST`` endpoints for table items and views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from toolkit.embedded._execution import run_view
from toolkit.embedded._state import table_key
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.http._messages import BCS, JSON, ApiError, HttpAnswer, encode, invalid_input
from toolkit.embedded.http._parsing import (
    NOT_A_TYPE_TAG,
    bcs_problem,
    bind,
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
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import (
    FunctionId,
    Reader,
    TypeTag,
    Untyped,
    address_from_bytes,
    decode_argument,
    decode_bcs,
    encode_bcs,
    encode_json,
    parse_type_tag,
    read_type_tag,
    wire_address,
)
from toolkit.move._argument_decoding import json_debug
from toolkit.move._bcs import uleb128
from toolkit.move._layouts import NO_ABI
from toolkit.wire._simulation_bcs import VM_STATUS_CODES

if TYPE_CHECKING:
    from toolkit.embedded._code import BoundFunction
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.embedded.http._node import EmbeddedNode

__all__ = ["VIEW_BCS", "raw_table_item", "table_item", "view"]

VIEW_BCS = "application/x.aptos.view_function+bcs"
_BAD_VIEW = VM_STATUS_CODES["INVALID_MAIN_FUNCTION_SIGNATURE"]


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
        values, gas_used = run_view(node.chain.snapshot(version), bound, arguments, tags, max_gas=node.limits.view_gas)
    except VmError as error:
        return _refuse(error)
    try:
        if call.wants_bcs():
            data = b"".join(map(encode_bcs, bound.returns, values))
            return HttpAnswer(uleb128(len(values)) + data, media_type=BCS, gas_used=gas_used)
        return HttpAnswer(encode(list(map(encode_json, bound.returns, values))), gas_used=gas_used)
    except SchemaError as error:  # a returned value does not fit its type
        raise ApiError(400, "internal_error", f"Failed to render the returned values: {error}") from None


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
