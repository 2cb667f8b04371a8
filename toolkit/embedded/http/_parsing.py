"""Path, query, body, functions and arguments of a request, read as the node's web framework reads them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from toolkit.embedded.http._messages import JSON, framework_error, invalid_input
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionId, StructTag, Vector, parse_address, parse_type_tag
from toolkit.move._ids import address_to_bytes, check_identifier, parse_hex
from toolkit.move._node_messages import json_debug, json_kind
from toolkit.move._type_tags import PRIMITIVES, FunctionType
from toolkit.move._values import decode_argument
from toolkit.wire._bcs_payloads import EncodedEntryFunction, EncodedMultisig, EncodedPayloadV2, EncodedScript

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from toolkit.embedded._code import BoundFunction, CodeSet
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.move import Layout, TypeTag
    from toolkit.wire._bcs_payloads import EncodedPayload


NOT_A_TYPE_TAG = "Invalid move type for converting into `TypeTag`"
"""Start of the message about a text that cannot be a type argument."""

_U64_MAX = 2**64 - 1
_HEX_DIGITS = "0123456789abcdefABCDEF"
_ENDS = (" left", " bytes left", "the data ends inside a ULEB128")
_U64_DIGITS = 20
_HEX_TYPE = "string(HexEncodedBytes)"
_SHOWN = 200
_MAX_JSON_SHOWN = 4_000
_HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{1,64}")
_JSON_MEDIA = re.compile(r"application/(?:[^;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_decode = msgspec.json.Decoder().decode


# Reasons of msgspec and of the node's JSON parser.
_JSON_REASONS = {
    "trailing characters": "trailing characters",
    "trailing comma": "trailing comma",
    "keys must be strings": "key must be a string",
    "expected ':'": "expected `:`",
    "expected ',' or '}'": "expected `,` or `}`",
    "expected ',' or ']'": "expected `,` or `]`",
    "invalid number": "invalid number",
    "invalid escape": "invalid escape",
}
_WORD = 4
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
    """Return the media type of the body, which must be one of `accepted`; otherwise raise the error, status 415.

    A node whose endpoint accepts several media types compares the whole header, so a parameter or a letter in upper
    case is another media type. The media type of an endpoint that accepts JSON only is parsed.
    """
    content_type = call.headers.get("content-type")
    if content_type is None:
        raise framework_error("expect a `Content-Type` header", status=415)
    if accepted == (JSON,) and _JSON_MEDIA.fullmatch(content_type):
        return JSON
    if content_type not in accepted:
        raise framework_error(
            f"the `Content-Type` requested by the client is not supported: {shown(content_type)}", status=415
        )
    return content_type


def json_body(call: HttpCall, model: str, *accepted: str) -> Fields:
    """Return the fields of a body that is a JSON object; `accepted` are further media types of the endpoint."""
    media_type(call, JSON, *accepted)
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
        value = self.value.get(name)
        if not isinstance(value, str):
            self.fail(f'failed to parse "{kind}": invalid type: {json_kind(value)}, expected a string')
        return value

    def array(self, name: str, kind: str) -> list[Any]:
        """Return an array field."""
        value = self.required(name, kind)
        if not isinstance(value, list):
            self.unexpected(kind, value)
        return list(value)

    def texts(self, name: str, kind: str) -> list[str]:
        """Return a field that is an array of strings."""
        return [item.text("", kind) for item in self._items(name, kind)]

    def _items(self, name: str, kind: str) -> list[Fields]:
        """Return the elements of an array, each as the field "" of an object."""
        models = (f"[{kind}]", *self._models)
        return [Fields({"": value}, models) for value in self.array(name, f"[{kind}]")]

    def integer(self, name: str, *, bits: int) -> int:
        """Return a field that is an unsigned integer of at most `bits` bits as a number."""
        kind, value = f"integer(uint{bits})", self.value.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.unexpected(kind, value)
        if not isinstance(value, int) or not 0 <= value <= _U64_MAX:
            self.fail(f'failed to parse "{kind}": invalid integer')
        if value >= 1 << bits:
            self.fail(f'failed to parse "{kind}": Only integers from 0 to {(1 << bits) - 1} are accepted.')
        return value

    def hex(self, name: str) -> bytes:
        """Return a field that is bytes in hex."""
        text = self.text(name, _HEX_TYPE)
        try:
            return parse_hex(text)
        except ToolkitError:
            return self.fail(f'failed to parse "{_HEX_TYPE}": {_hex_problem(text)}')

    def hexes(self, name: str) -> list[bytes]:
        """Return a field that is an array of bytes in hex."""
        return [item.hex("") for item in self._items(name, _HEX_TYPE)]

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

    def addresses(self, name: str) -> list[str]:
        """Return a field that is an array of addresses, in canonical form."""
        return [item.address("") for item in self._items(name, "string(Address)")]

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
        value = self.value.get(name)
        if not isinstance(value, dict):
            self.unexpected(kind, value)
        return Fields(value, (kind, *self._models))

    def objects(self, name: str, kind: str) -> list[Fields]:
        """Return a field that is an array of objects."""
        return [item.object("", kind) for item in self._items(name, kind)]

    def variant(self, union: str, models: Mapping[str, str]) -> Fields:
        """Return the fields of the variant that ``type`` names; this object is of the `union`."""
        kind = self.value.get("type")
        if not isinstance(kind, str) or kind not in models:
            Fields(self.value, self._models[1:]).unexpected(union, self.value)
        return self.named(models[kind])


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
        wrong = _INVALID_DIGIT if text else "cannot parse integer from empty string"
        problem = "number too large to fit in target type" if digits else wrong
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
    digits = text.removeprefix("+")
    if digits.isascii() and digits.isdigit():
        digits = digits.lstrip("0") or "0"
        if len(digits) <= _U64_DIGITS and int(digits) <= _U64_MAX:
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
    text = str(error)
    if isinstance(error, RecursionError):
        reason, position = "recursion limit exceeded", 127
    elif text == "Input data was truncated":
        reason, position = f"EOF while parsing {_open_construct(body)}", len(body)
    else:
        match = re.search(r"byte (\d+)", text)
        position = int(match[1]) if match else 0
        reason = next((serde for start, serde in _JSON_REASONS.items() if start in text), "expected value")
        word = re.match(rb"[ntf][a-z]*", body[position - 4 : position] if position >= _WORD else b"")
        if reason == "trailing characters":
            position -= 1
        elif reason == "expected value" and word:  # msgspec reports the end of the word, serde the wrong letter
            right = next(one for one in (b"null", b"true", b"false") if one[:1] == word[0][:1])
            same = next((i for i, (a, b) in enumerate(zip(word[0], right, strict=False)) if a != b), len(word[0]))
            reason, position = "expected ident", position - _WORD + same
        position += 1
    lines = body[:position].split(b"\n")
    return f"{reason} at line {len(lines)} column {len(lines[-1])}"


def _open_construct(body: bytes) -> str:
    """Return what is not finished at the end of truncated JSON: a string, list, object or value."""
    rest, opened, after = re.sub(rb'"(?:[^"\\]|\\.)*"', b"s", body, flags=re.DOTALL), [], ""
    if b'"' in rest:
        return "a string"
    for letter in rest.decode("latin-1").replace(" ", ""):
        if letter in "[{":
            opened.append(letter)
        elif letter in "]}":
            opened.pop()
        after = letter
    if not opened or after in ":,":
        return "a value"
    return "an object" if opened[-1] == "{" else "a list"


def type_tag(text: str) -> TypeTag:
    """Return the type tag of a type argument, or raise the error of a text that is not a type."""
    try:
        return parse_type_tag(text, short=False)
    except InputError:
        debug = reference_debug(text) or f'Unparsable("{shown(text)}")'
        return invalid_input(f"{NOT_A_TYPE_TAG}: {debug}")


def reference_debug(text: str) -> str:
    """Return the type of a reference as a node prints it, with ``..`` for what is not primitive; empty for another."""
    if not text.startswith("&"):
        return ""
    inner = text.removeprefix("&").removeprefix("mut ")
    to = inner.capitalize() if inner in PRIMITIVES else ".."
    return f"Reference {{ mutable: {'true' if text.startswith('&mut ') else 'false'}, to: {to} }}"


def check_types(texts: Iterable[str], where: str) -> None:
    """Check the types of a request before the ledger is read; a node checks references only when it uses them."""
    for text in texts:
        try:
            parse_type_tag(text.removeprefix("&").removeprefix("mut "), short=False)
        except InputError:
            invalid_input(f"{where}: Unable to parse move type {shown(text)}", with_ledger=False)


def bind(code: CodeSet, function: FunctionId, tags: tuple[TypeTag, ...], *, kind: str) -> BoundFunction:
    """Return a function with its type arguments, or raise the error of a node.

    Whether the type arguments exist is only found by execution.

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
    return code.substituted(definition, found, tags)


def plain_arguments(layouts: Sequence[Layout], arguments: Sequence[Any]) -> list[Any]:
    """Return JSON arguments decoded by the layouts of a function's parameters."""
    if len(arguments) != len(layouts):
        types = ", ".join(layout.words for layout in layouts)
        values = ", ".join(json_debug(argument) for argument in arguments)
        invalid_input(f"expected {len(layouts)} arguments [{types}], but got {len(arguments)} ([{shown(values)}])")
    try:
        return [
            decode_argument(layout, argument, where=f"arguments[{index}]")
            for index, (layout, argument) in enumerate(zip(layouts, arguments, strict=True))
        ]
    except SchemaError as error:
        return invalid_input(str(error))


def _hex_problem(text: str) -> str:
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
    if "expected a bool, 0 or 1" in text:
        return "expected boolean"
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
