"""Path, query, body, functions and arguments of a request, read as the node's web framework reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from toolkit.embedded._vm_status import VmError
from toolkit.embedded.http._messages import JSON, framework_error, invalid_input
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import (
    FunctionId,
    FunctionType,
    StructTag,
    Vector,
    address_to_bytes,
    decode_argument,
    parse_address,
    parse_type_tag,
    type_words,
)
from toolkit.move._argument_decoding import json_debug, json_kind
from toolkit.move._type_tags import check_identifier
from toolkit.wire import EncodedEntryFunction, EncodedMultisig, EncodedPayloadV2, EncodedScript

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.embedded._code import BoundFunction, CodeSet
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.move import TypeTag
    from toolkit.wire import EncodedPayload

__all__ = [
    "NOT_A_TYPE_TAG",
    "Fields",
    "address_of",
    "bcs_problem",
    "bind",
    "boolean_query",
    "check_transaction_nesting",
    "check_types",
    "check_view_nesting",
    "function_id",
    "hex_problem",
    "integer_query",
    "json_body",
    "media_type",
    "path_address",
    "path_identifier",
    "path_u64",
    "plain_arguments",
    "query_u64",
    "shown",
    "type_tag",
]

NOT_A_TYPE_TAG = "Invalid move type for converting into `TypeTag`"
"""Start of the message about a text that cannot be a type argument."""

_U64_MAX = 2**64 - 1
_HEX_DIGITS = "0123456789abcdefABCDEF"
_ENDS = (" left", " bytes left", "the data ends inside a ULEB128")
_U64_DIGITS = 20
_SHOWN = 200
_MAX_JSON_SHOWN = 4_000
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{1,64}")
_decode = msgspec.json.Decoder().decode


_OPENINGS = {b"{": "an object", b"[": "a list"}
_INVALID_DIGIT = "invalid digit found in string"
# Maximum nesting of the type arguments of a request in BCS, and the containers around them that count.
_MAX_VIEW_DEPTH = 8
_MAX_TRANSACTION_DEPTH = 16
_ABOVE_VIEW = 1  # the request
_ABOVE_CALL = 4  # signed transaction, raw transaction, payload, call
_ABOVE_WRAPPED_CALL = 6  # two more for a multisig or orderless payload


def shown(text: object) -> str:
    """Return `text` for a message, cut at 200 characters."""
    whole = str(text)
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}..."


def media_type(call: HttpCall, *accepted: str) -> str:
    """Return the media type of the body, which must be one of `accepted`; otherwise raise the error, status 415."""
    content_type = call.headers.get("content-type")
    if content_type is None:
        raise framework_error("expect a `Content-Type` header", status=415)
    # A node compares the whole header: a parameter or a letter in upper case is another media type.
    if content_type not in accepted:
        raise framework_error(
            f"the `Content-Type` requested by the client is not supported: {shown(content_type)}", status=415
        )
    return content_type


def json_body(call: HttpCall, model: str) -> Fields:
    """Return the fields of a body that is a JSON object."""
    media_type(call, JSON)
    try:
        value = _decode(call.body) if call.body else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise framework_error(f"parse request payload error: {_json_error(call.body, error)}") from None
    if not isinstance(value, dict):
        raise framework_error(f'parse request payload error: Expected input type "{model}", found {_json(value)}.')
    return Fields(value, (model,))


class Fields:
    """The fields of a JSON object; a missing or wrong field raises an error with the text of the web framework.

    Parameters
    ----------
    value : mapping
        The object.
    models : tuple of str
        Names of the models that are parsed, innermost first; they are the end of messages.
    """

    __slots__ = ("_models", "value")

    def __init__(self, value: Mapping[str, Any], models: tuple[str, ...]) -> None:
        self.value = value
        self._models = models

    def fail(self, message: str) -> NoReturn:
        """Raise the error of an invalid body."""
        trail = " ".join(f'(occurred while parsing "{model}")' for model in self._models)
        raise framework_error(f"parse request payload error: {message} {trail}")

    def required(self, name: str, kind: str) -> Any:
        """Return a field that must be present."""
        value = self.value.get(name)
        if value is None:
            self.unexpected(kind, None)
        return value

    def text(self, name: str, kind: str) -> str:
        """Return a string field."""
        return self._string(self.value.get(name), kind)

    def array(self, name: str, kind: str) -> list[Any]:
        """Return an array field."""
        value = self.required(name, kind)
        if not isinstance(value, list):
            self.unexpected(kind, value)
        return list(value)

    def texts(self, name: str, kind: str) -> list[str]:
        """Return a field that is an array of strings."""
        return [self._string(value, kind) for value in self.array(name, f"[{kind}]")]

    def _string(self, value: Any, kind: str) -> str:
        if not isinstance(value, str):
            self.fail(f'failed to parse "{kind}": invalid type: {json_kind(value)}, expected a string')
        return value

    def u64(self, name: str) -> int:
        """Return a field that is a u64 as a string."""
        text = self.text(name, "string(U64)")
        problem = _u64_problem(text)
        if problem:
            self.fail(f'failed to parse "string(U64)": {problem}')
        return int(text)

    def optional_u64(self, name: str) -> int | None:
        """Return a field that is a u64 as a string, or None if it is absent or null."""
        return None if self.value.get(name) is None else self.u64(name)

    def address(self, name: str) -> str:
        """Return a field that is an address, in canonical form."""
        text = self.text(name, "string(Address)")
        problem = _address_problem(text)
        if problem:
            self.fail(f'failed to parse "string(Address)": {problem}')
        return parse_address(text)

    def function(self, name: str) -> FunctionId:
        """Return a field that is a function id."""
        text = self.text(name, "string(EntryFunctionId)")
        found = function_id(text)
        if found is None:
            self.fail(f'failed to parse "string(EntryFunctionId)": Invalid entry function ID {shown(text)}')
        return found

    def unexpected(self, kind: str, value: Any) -> NoReturn:
        """Raise the error of a value that is not of a kind."""
        self.fail(f'Expected input type "{kind}", found {_json(value)}.')

    def named(self, model: str) -> Fields:
        """Return the same object with a further model name for messages."""
        return Fields(self.value, (model, *self._models))

    def object(self, name: str, kind: str) -> Fields:
        """Return a field that is an object."""
        value = self.required(name, kind)
        if not isinstance(value, dict):
            self.unexpected(kind, value)
        return Fields(value, (kind, *self._models))


def function_id(text: str) -> FunctionId | None:
    """Return a function id, or None if the text is not one."""
    try:
        return FunctionId.parse(text)
    except InputError:
        return None


def address_of(text: str) -> str | None:
    """Return a canonical address, or None if the text is not an address."""
    return None if _address_problem(text) else parse_address(text)


def path_address(call: HttpCall, name: str, *, kind: str = "Address") -> str:
    """Return the address in a path."""
    text = call.path[name]
    problem = _address_problem(text)
    if problem:
        raise framework_error(f'failed to parse path `{name}`: failed to parse "string({kind})": {problem}')
    return parse_address(text)


def path_identifier(call: HttpCall, name: str) -> str:
    """Return the Move identifier in a path."""
    text = call.path[name]
    try:
        return check_identifier(text)
    except InputError:
        raise framework_error(
            f'failed to parse path `{name}`: failed to parse "string(IdentifierWrapper)": '
            f"Invalid identifier '{shown(text)}'"
        ) from None


def path_u64(call: HttpCall, name: str) -> int:
    """Return the number in a path."""
    problem = _u64_problem(call.path[name])
    if problem:
        raise framework_error(f'failed to parse path `{name}`: failed to parse "string(U64)": {problem}')
    return int(call.path[name])


def query_u64(call: HttpCall, name: str) -> int | None:
    """Return a u64 of the query, or None if it is absent."""
    text = call.query.get(name)
    if text is None:
        return None
    problem = _u64_problem(text)
    if problem:
        raise framework_error(
            f'failed to parse parameter `{name}`: failed to parse "string(U64)": {problem} '
            '(occurred while parsing "optional<string(U64)>")'
        )
    return int(text)


def integer_query(call: HttpCall, name: str, *, bits: int, default: int = 0) -> int:
    """Return an unsigned integer of at most `bits` bits from the query."""
    text = call.query.get(name)
    if text is None:
        return default
    digits = text.isascii() and text.isdigit()
    if not (digits and len(text) <= _U64_DIGITS and int(text) < 1 << bits):
        problem = "number too large to fit in target type" if digits else _INVALID_DIGIT
        raise framework_error(
            f'failed to parse parameter `{name}`: failed to parse "integer(uint{bits})": {problem} '
            f'(occurred while parsing "optional<integer(uint{bits})>")'
        )
    return int(text)


def boolean_query(call: HttpCall, name: str) -> bool:
    """Return a boolean of the query, False if it is absent."""
    text = call.query.get(name)
    if text is None or text == "false":
        return False
    if text != "true":
        raise framework_error(
            f'failed to parse parameter `{name}`: failed to parse "boolean": provided string was not `true` or '
            '`false` (occurred while parsing "optional<boolean>")'
        )
    return True


def _u64_problem(text: str) -> str | None:
    if text.isascii() and text.isdigit():
        if len(text) <= _U64_DIGITS and int(text) <= _U64_MAX:
            return None
        reason = "number too large to fit in target type"
    else:
        reason = _INVALID_DIGIT if text else "cannot parse integer from empty string"
    return f'Parsing u64 string "{shown(text)}" failed, caused by error: {reason}'


def _address_problem(text: str) -> str | None:
    if _HEX.fullmatch(text):
        return None
    digits = text.removeprefix("0x")
    if not digits:
        reason = "Hex string is too short, must be 1 to 64 chars long, excluding the leading 0x"
    elif len(digits) > 64:  # noqa: PLR2004 - 32 bytes in hex
        reason = "Hex string is too long, must be 1 to 64 chars long, excluding the leading 0x"
    else:
        padded = digits.rjust(64, "0")
        position = next(index for index, digit in enumerate(padded) if digit not in _HEX_DIGITS)
        reason = f"Hex characters are invalid: Invalid character '{padded[position]}' at position {position}"
    return f"Invalid account address: {reason}"


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_JSON_SHOWN else f"{text[:_MAX_JSON_SHOWN]}..."


def _json_error(body: bytes, error: Exception) -> str:
    """Return where and why JSON is invalid, in the words of the node's parser."""
    if isinstance(error, RecursionError):
        return "recursion limit exceeded"
    if not body.strip():
        return "EOF while parsing a value at line 1 column 0"
    text = body.strip()
    if text in _OPENINGS:
        return f"EOF while parsing {_OPENINGS[text]} at line 1 column {len(body)}"
    match = re.search(r"byte (\d+)", str(error))
    position = int(match[1]) if match else 0
    before = body[:position]
    line, column = before.count(b"\n") + 1, position - (before.rfind(b"\n") + 1) + 1
    return f"expected value at line {line} column {column}"


def type_tag(text: str) -> TypeTag:
    """Return the type tag of a type argument, or raise the error of a text that is not a type."""
    try:
        return parse_type_tag(text)
    except InputError:
        if text.startswith("&"):
            invalid_input(f"{NOT_A_TYPE_TAG}: Reference")
        return invalid_input(f'{NOT_A_TYPE_TAG}: Unparsable("{shown(text)}")')


def check_types(texts: Iterable[str], where: str) -> None:
    """Check the types of a request before the ledger is read; a node checks references only when it uses them."""
    for text in texts:
        try:
            parse_type_tag(text.removeprefix("&").removeprefix("mut "))
        except InputError:
            invalid_input(f"{where} invalid: Unable to parse move type {shown(text)}", with_ledger=False)


def bind(code: CodeSet, function: FunctionId, tags: tuple[TypeTag, ...], *, kind: str) -> BoundFunction:
    """Return a function with its type arguments, or raise the error of a node.

    Parameters
    ----------
    code : CodeSet
        Modules at the version that is read.
    function : FunctionId
        Id of the function.
    tags : tuple of TypeTag
        Type arguments.
    kind : {"view", "entry"}
        Kind of the function, for messages.
    """
    definition, found = code.find(function.address, function.module, function.name)
    if definition is None:
        full = address_to_bytes(function.address).hex()
        invalid_input(f'Module ModuleId {{ address: {full}, name: Identifier("{function.module}") }} can\'t be found')
    if found is None:
        invalid_input(f"could not find {kind} function by {function.wire}")
    if len(tags) != found.type_parameters:
        verb = "expected" if kind == "view" else "expect"
        invalid_input(
            f"{verb} {found.type_parameters} type arguments for {kind} function {function.wire}, but got {len(tags)}"
        )
    try:
        return code.function(function.address, function.module, function.name, tags)
    except VmError as error:
        return invalid_input(error.message, vm_error_code=error.vm_error_code)


def plain_arguments(bound: BoundFunction, arguments: Sequence[Any]) -> list[Any]:
    """Return JSON arguments decoded by the function's parameters."""
    layouts = bound.parameters
    if len(arguments) != len(layouts):
        types = ", ".join(type_words(layout) for layout in layouts)
        values = ", ".join(json_debug(argument) for argument in arguments)
        invalid_input(f"expected {len(layouts)} arguments [{types}], but got {len(arguments)} ([{shown(values)}])")
    try:
        return [
            decode_argument(layout, argument, where=f"arguments[{index}]")
            for index, (layout, argument) in enumerate(zip(layouts, arguments, strict=True))
        ]
    except SchemaError as error:
        return invalid_input(str(error))


def hex_problem(text: str) -> str:
    """Return why a text is not hex-encoded bytes, in the words of a node."""
    digits = text.removeprefix("0x")
    wrong = next((index for index, digit in enumerate(digits) if digit not in _HEX_DIGITS), None)
    if len(digits) % 2:
        reason = "Odd number of digits"
    else:
        reason = "" if wrong is None else f"Invalid character '{digits[wrong]}' at position {wrong}"
    return f'decode hex-encoded string("{shown(text)}") failed, caused by error: {reason}'


def bcs_problem(error: ToolkitError) -> str:
    """Return why a body in BCS cannot be decoded; in the words of a node if the body is too short or too long."""
    text = str(error)
    if "expected the end of the data" in text:
        return "remaining input"
    return "unexpected end of input" if text.endswith(_ENDS) else shown(text)


def check_view_nesting(tags: Iterable[TypeTag]) -> None:
    """Check how deeply the type arguments of a view request in BCS are nested.

    A node counts the named containers that it enters while decoding, and fails at a limit.

    Raises
    ------
    SchemaError
        If they are nested too deeply.
    """
    _check(tags, _MAX_VIEW_DEPTH - _ABOVE_VIEW)


def check_transaction_nesting(payload: EncodedPayload) -> None:
    """Check how deeply the type arguments of a signed transaction's payload are nested.

    Raises
    ------
    SchemaError
        If they are nested too deeply.
    """
    above: int = _ABOVE_WRAPPED_CALL
    call: EncodedPayload | None = payload
    if isinstance(payload, EncodedMultisig):
        call = payload.payload
    elif isinstance(payload, EncodedPayloadV2):
        call = payload.executable
    else:
        above = _ABOVE_CALL
    if isinstance(call, EncodedEntryFunction | EncodedScript):
        _check(call.type_arguments, _MAX_TRANSACTION_DEPTH - above)


def _check(tags: Iterable[TypeTag], limit: int) -> None:
    if any(_containers(tag) > limit for tag in tags):
        raise SchemaError("exceeded max container depth while entering: TypeTag")


def _containers(tag: TypeTag) -> int:
    """Return the depth of named containers in a type: each tag, and a struct's record and address."""
    if isinstance(tag, Vector):
        return 1 + _containers(tag.element)
    if isinstance(tag, StructTag):
        return 2 + max(map(_containers, tag.type_arguments), default=1)
    if isinstance(tag, FunctionType):
        return 3 + max((_containers(one) for one in (*tag.arguments, *tag.results)), default=0)
    return 1
