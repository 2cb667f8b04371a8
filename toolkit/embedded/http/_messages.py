"""Requests and their values, responses, and the documented errors with the codes that nodes use."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import msgspec

from toolkit.errors import InputError, SchemaError
from toolkit.move import FunctionId, Layout, StructTag, TypeTag, parse_address, parse_type_tag
from toolkit.move._ids import parse_hex, wire_address
from toolkit.move._values import decode_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolkit.embedded._code import BoundFunction, CodeSet


JSON = "application/json"
BCS = "application/x-bcs"

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request: path parameters, query, headers (names in lower case) and body."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    in_worker: bool  # answered in another thread, because contract code takes long

    def wants_bcs(self) -> bool:
        """Return True if the response must be BCS; of JSON and BCS, the first in the `Accept` header is used.

        As on a node, a media type with a weight or another parameter is ignored.
        """
        accepted = (item.strip() for item in self.headers.get("accept", "").lower().split(","))
        return next((item for item in accepted if item in {JSON, BCS}), JSON) == BCS


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """A response to a request.

    Parameters
    ----------
    body : bytes
        Encoded body.
    status : int, default 200
        HTTP status.
    media_type : str, default "application/json"
        Content type.
    gas_used : int, optional
        Gas units, sent as a header.
    cursor : str, optional
        Start of the next page, sent as a header.
    with_ledger : bool, default True
        Whether headers report the state of the ledger.
    headers : mapping of str to str, optional
        Additional headers, with names in lower case.
    """

    body: bytes
    status: int = 200
    media_type: str = JSON
    gas_used: int | None = None
    cursor: str | None = None
    with_ledger: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiError(Exception):
    """An error that is returned as the documented error body.

    Parameters
    ----------
    status : int
        HTTP status.
    error_code : str
        Error code of the REST API.
    message : str
        What is wrong.
    vm_error_code : int, optional
        Number of the VM status.
    with_ledger : bool, default True
        Whether headers report the state of the ledger.
    headers : mapping of str to str, optional
        Additional headers of the response, with names in lower case.
    """

    def __init__(
        self, status: int, error_code: str, message: str, *, vm_error_code: int | None = None, **options: Any
    ) -> None:
        super().__init__(message)
        body = {"message": message, "error_code": error_code, "vm_error_code": vm_error_code}
        self.answer = HttpAnswer(encode(body), status, **options)


def invalid_input(message: str, *, vm_error_code: int | None = None, with_ledger: bool = True) -> NoReturn:
    """Raise the error for an invalid input, status 400; without ledger headers if the ledger was not read."""
    raise ApiError(400, "invalid_input", message, vm_error_code=vm_error_code, with_ledger=with_ledger)


def framework_error(message: str, *, status: int = 400, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the error for a request that the web framework rejects because of its path, query, headers or body."""
    return ApiError(status, "web_framework_error", message, with_ledger=False, headers=headers or {})


def not_found(what: str, error_code: str, text: str) -> NoReturn:
    """Raise the error for a missing item, status 404; `what` is the item and `text` describes the lookup."""
    raise ApiError(404, error_code, f"{what} not found by {text}")


_T = TypeVar("_T")

# Longer texts from a request are truncated in messages, so that a hostile request does not cause a large response.
_SHOWN = 200
_JSON_MEDIA = re.compile(r"application/(?:[^;\s]+\+)?json\s*(?:;.*)?", re.IGNORECASE | re.DOTALL)
_HASH = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_STATE_KEY_KINDS = {0, 1, 255}  # access paths, table items and raw keys


class U64Field(int):
    """An unsigned 64-bit integer in a body, in text form."""


class AddressField(str):
    """An address in a body."""

    __slots__ = ()


class HexField(bytes):
    """Bytes in a body, in hex."""


# Parsers of a text, which raise ValueError.


def _unsigned(bits: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        digits = text.removeprefix("+")
        if not (digits.isascii() and digits.isdigit()) or int(digits) >> bits:
            raise ValueError(f"expected a number from 0 to 2^{bits} - 1, got {shown(text)!r}")
        return int(digits)

    return parse


u16, u32, u64 = map(_unsigned, (16, 32, 64))


def flag(text: str) -> bool:
    """Parse ``true`` or ``false``."""
    if text not in {"true", "false"}:
        raise ValueError(f"expected true or false, got {shown(text)!r}")
    return text == "true"


def transaction_hash(text: str) -> str:
    """Parse a hash; return 0x and 64 hex digits in lower case."""
    match = _HASH.fullmatch(text)
    if match is None:
        raise ValueError(f"expected a hash of 64 hex digits, got {shown(text)!r}")
    return f"0x{match[1].lower()}"


def state_cursor(text: str) -> bytes:
    """Parse the state key, in hex, at which a page starts."""
    data = bytes.fromhex(text) if text.isalnum() else b""
    if not data or data[0] not in _STATE_KEY_KINDS:
        raise ValueError(f"expected a cursor from the previous page, got {shown(text)!r}")
    return data


_PARSERS: dict[Any, Callable[[str], Any]] = {U64Field: u64, AddressField: parse_address, HexField: parse_hex}


def _parsed(kind: type[_T], value: Any) -> _T:
    """Return a field of a body; msgspec calls this for the kinds above."""
    if not isinstance(value, str):
        raise ValueError("expected a string")  # noqa: TRY004 - as of the parsers
    return kind(_PARSERS[kind](value))  # type: ignore[call-arg]  # made of what the parser returns


def path_value(call: HttpCall, name: str, parse: Callable[[str], _T]) -> _T:
    """Return a parameter of the path."""
    try:
        return parse(call.path[name])
    except ValueError as error:
        raise framework_error(f"failed to parse path `{name}`: {error}") from None


def query_value(call: HttpCall, name: str, parse: Callable[[str], _T]) -> _T | None:
    """Return a parameter of the query, or None if it is absent."""
    text = call.query.get(name)
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise framework_error(f"failed to parse parameter `{name}`: {error}") from None


def path_address(call: HttpCall, name: str) -> str:
    """Return the address in the path."""
    return path_value(call, name, parse_address)


def path_struct(call: HttpCall, name: str) -> StructTag:
    """Return the struct type in the path."""
    tag = _type_tag(call.path[name])
    if not isinstance(tag, StructTag):
        raise framework_error(f"failed to parse path `{name}`: invalid struct tag: {shown(call.path[name])}")
    return tag


def _type_tag(text: str) -> TypeTag | None:
    """Return the type that a text names, or None if the text is not a type."""
    try:
        return parse_type_tag(text, short=False)
    except InputError:
        return None


def shown(text: object) -> str:
    """Return `text` for a message, truncated at 200 characters."""
    whole = str(text)
    return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}..."


def media_type(call: HttpCall, *accepted: str) -> str:
    """Return the media type of the body, or raise the error with status 415 if it is not one of `accepted`.

    If an endpoint accepts several media types, a node compares the whole header: a parameter or an upper-case letter
    makes it a different media type. If an endpoint accepts only JSON, the media type is parsed.
    """
    content_type = call.headers.get("content-type")
    if content_type is None:
        raise framework_error("expect a `Content-Type` header", status=415)
    if accepted == (JSON,) and _JSON_MEDIA.fullmatch(content_type):
        return JSON
    if content_type not in accepted:
        problem = f"the `Content-Type` requested by the client is not supported: {shown(content_type)}"
        raise framework_error(problem, status=415)
    return content_type


def body_decoder(model: type[_T]) -> msgspec.json.Decoder[_T]:
    """Return a decoder for JSON bodies."""
    return msgspec.json.Decoder(model, dec_hook=_parsed)


def decoded(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T:
    """Return decoded JSON, or raise the error for a body that does not match its model."""
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise framework_error(f"parse request payload error: {shown(error)}") from None


def function_id(text: str) -> FunctionId:
    """Return the function id in a body."""
    try:
        return FunctionId.parse(text)
    except InputError:
        raise framework_error(f"parse request payload error: invalid function id {shown(text)}") from None


def type_tag(text: str) -> TypeTag:
    """Return the type tag of a type argument, or raise the error if the text is not a type."""
    tag = _type_tag(text)
    if tag is None:
        invalid_input(f"invalid Move type {shown(text)}")
    return tag


def check_types(texts: Iterable[str], where: str) -> None:
    """Check the types of a request before the ledger is read."""
    for text in texts:
        if _type_tag(text) is None:
            invalid_input(f"{where}: invalid Move type {shown(text)}", with_ledger=False)


def bind(code: CodeSet, function: FunctionId, tags: tuple[TypeTag, ...], *, kind: str) -> BoundFunction:
    """Return a function with its type arguments, or raise the error that a node sends.

    Execution checks later whether the types of the type arguments exist.

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
    definition = code.modules.get((function.address, function.module))
    if definition is None:
        invalid_input(f"module {wire_address(function.address)}::{function.module} can't be found")
    found = definition.functions.get(function.name)
    if found is None:
        invalid_input(f"could not find {kind} function by {function.wire}")
    if len(tags) != found.type_parameters:
        expected = f"{'expected' if kind == 'view' else 'expect'} {found.type_parameters} type arguments"
        invalid_input(f"{expected} for {kind} function {function.wire}, but got {len(tags)}")
    return code.substituted(definition, found, tags)


def plain_arguments(layouts: Sequence[Layout], arguments: Sequence[Any]) -> list[Any]:
    """Return JSON arguments decoded with the layouts of a function's parameters."""
    if len(arguments) != len(layouts):
        types = ", ".join(layout.words for layout in layouts)
        invalid_input(f"expected {len(layouts)} arguments [{types}], but got {len(arguments)}")
    try:
        return [
            decode_argument(layout, argument, where=f"arguments[{index}]")
            for index, (layout, argument) in enumerate(zip(layouts, arguments, strict=True))
        ]
    except SchemaError as error:
        return invalid_input(str(error))
