"""Small responses (node, account, block and gas price estimate) and the bodies of error responses."""

from __future__ import annotations

import html
import re
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from toolkit._present.messages import cut_text
from toolkit.errors import SchemaError
from toolkit.move._json_text import U64_MAX, decode_with, parse_json, parse_u64
from toolkit.wire._headers import LedgerState, ledger_numbers, timestamp_from_us

if TYPE_CHECKING:
    from datetime import datetime


_T = TypeVar("_T", bound=msgspec.Struct)
_Price = Annotated[int, msgspec.Meta(ge=0)]

# Names of the ledger's state in GET /v1, in the order of the fields of `LedgerState`.
_LEDGER = """
chain_id ledger_version oldest_ledger_version ledger_timestamp epoch block_height oldest_block_height
""".split()  # noqa: SIM905
_MAX_TEXT = 300  # characters of a page; more does not help the reader of an error
_MAX_CODE = 200  # the longest documented one has 26
# Only the start of a page is read, so that the following patterns never search an unbounded text.
_MAX_BYTES = 8192
_HIDDEN = re.compile(r"<(script|style)\b.*?(?:</\1[^<>]*>|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class ErrorCode(StrEnum):
    """Documented error codes. Nodes may send others.

    Examples
    --------
    >>> from toolkit.wire._responses import ErrorCode
    >>> ErrorCode.VERSION_PRUNED == "version_pruned"
    True
    """

    ACCOUNT_NOT_FOUND = "account_not_found"
    RESOURCE_NOT_FOUND = "resource_not_found"
    MODULE_NOT_FOUND = "module_not_found"
    STRUCT_FIELD_NOT_FOUND = "struct_field_not_found"
    VERSION_NOT_FOUND = "version_not_found"
    TRANSACTION_NOT_FOUND = "transaction_not_found"
    TABLE_ITEM_NOT_FOUND = "table_item_not_found"
    BLOCK_NOT_FOUND = "block_not_found"
    STATE_VALUE_NOT_FOUND = "state_value_not_found"
    VERSION_PRUNED = "version_pruned"
    BLOCK_PRUNED = "block_pruned"
    INVALID_INPUT = "invalid_input"
    INVALID_TRANSACTION_UPDATE = "invalid_transaction_update"
    SEQUENCE_NUMBER_TOO_OLD = "sequence_number_too_old"
    VM_ERROR = "vm_error"
    REJECTED_BY_FILTER = "rejected_by_filter"
    HEALTH_CHECK_FAILED = "health_check_failed"
    MEMPOOL_IS_FULL = "mempool_is_full"
    RATE_LIMITED = "rate_limited"
    INTERNAL_ERROR = "internal_error"
    WEB_FRAMEWORK_ERROR = "web_framework_error"
    BCS_NOT_SUPPORTED = "bcs_not_supported"
    API_DISABLED = "api_disabled"


ERROR_CODES: frozenset[str] = frozenset(code.value for code in ErrorCode)  # the documented error codes as strings


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The response of ``GET /v1``.

    Parameters
    ----------
    ledger : LedgerState
        State of the node's ledger.
    node_role : str
        ``full_node`` or ``validator``; empty if the node does not offer ``GET /v1`` and the ledger's state comes from
        the headers of a POST.
    git_hash : str or None
        Git hash of the node's build; None if the node does not report it.
    encryption_key : str or None
        Key for encrypted transactions; None on older nodes.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_node_info
    >>> body = (
    ...     b'{"chain_id": 4, "epoch": "90", "ledger_version": "4999", "oldest_ledger_version": "0"'
    ...     b', "ledger_timestamp": "0", "node_role": "full_node", "oldest_block_height": "0", "block_height": "995"}'
    ... )
    >>> decode_node_info(body).ledger.version
    4999
    """

    ledger: LedgerState
    node_role: str
    git_hash: str | None = None
    encryption_key: str | None = None


class AccountInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The response of ``GET /v1/accounts/{address}``.

    Parameters
    ----------
    sequence_number : int
        Sequence number of the next transaction; 0 for an account without transactions.
    authentication_key : str
        In hex, as the node sends it.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_account
    >>> decode_account(b'{"sequence_number": "5", "authentication_key": "0x0a"}')
    AccountInfo(sequence_number=5, authentication_key='0x0a')
    """

    sequence_number: int
    authentication_key: str


class BlockInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The response of ``GET /v1/blocks/...``.

    Parameters
    ----------
    block_height : int
        Height of the block.
    block_hash : str
        Hash of the block, as printed by the node.
    block_timestamp_us : int
        Microseconds since 1970-01-01 UTC.
    first_version, last_version : int
        First and last ledger version of the block (inclusive).
    transactions : msgspec.Raw or None
        JSON array of the block's transactions, for `decode_transactions`; None if they were not requested.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_block
    >>> body = (
    ...     b'{"block_height": "602", "block_hash": "0x06", "block_timestamp": "1776572352000000"'
    ...     b', "first_version": "2996", "last_version": "3001"}'
    ... )
    >>> block = decode_block(body)
    >>> print(block.block_timestamp, block.last_version - block.first_version + 1)
    2026-04-19 04:19:12+00:00 6
    """

    block_height: int
    block_hash: str
    block_timestamp_us: int
    first_version: int
    last_version: int
    transactions: msgspec.Raw | None = None

    @property
    def block_timestamp(self) -> datetime | None:
        """UTC time of the block, or None for genesis, which has none, and after the year 9999."""
        return timestamp_from_us(self.block_timestamp_us) if self.block_timestamp_us else None


class GasPriceEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The response of ``GET /v1/estimate_gas_price``, in octas per gas unit.

    Parameters
    ----------
    gas_estimate : int
        Price for normal priority.
    deprioritized_gas_estimate, prioritized_gas_estimate : int or None
        Prices for lower and for higher priority.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_gas_price_estimate
    >>> decode_gas_price_estimate(b'{"gas_estimate": 100, "prioritized_gas_estimate": 150}').prioritized_gas_estimate
    150
    """

    gas_estimate: _Price
    deprioritized_gas_estimate: _Price | None = None
    prioritized_gas_estimate: _Price | None = None


# As nodes send them: u64 numbers are strings of digits, which msgspec cannot check, and GET /v1 has the ledger's state
# among its own fields.
class _NodeInfoWire(msgspec.Struct):
    chain_id: Annotated[int, msgspec.Meta(ge=0, le=255)]
    epoch: str
    ledger_version: str
    oldest_ledger_version: str
    ledger_timestamp: str
    node_role: str
    oldest_block_height: str
    block_height: str
    git_hash: str | None = None
    encryption_key: str | None = None


class _AccountWire(msgspec.Struct):
    sequence_number: str
    authentication_key: str


class _BlockWire(msgspec.Struct):
    block_height: str
    block_hash: str
    block_timestamp: str
    first_version: str
    last_version: str
    transactions: msgspec.Raw = msgspec.Raw(b"null")


class _TransactionHash(msgspec.Struct):
    hash: str


def decode_transaction_hash(body: bytes) -> str:
    """Decode the hash of a committed transaction, and nothing else of it."""
    return _decode_struct(body, _TransactionHash, "transaction").hash


def decode_node_info(body: bytes) -> NodeInfo:
    """Decode the response of ``GET /v1``.

    Parameters
    ----------
    body : bytes
        The JSON object.

    Returns
    -------
    NodeInfo

    Raises
    ------
    SchemaError
        If the body does not have the documented shape.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_node_info
    >>> body = (
    ...     b'{"chain_id": 4, "epoch": "90", "ledger_version": "4999", "oldest_ledger_version": "0"'
    ...     b', "ledger_timestamp": "0", "node_role": "full_node", "oldest_block_height": "0", "block_height": "995"}'
    ... )
    >>> decode_node_info(body).node_role
    'full_node'
    """
    wire = _decode_struct(body, _NodeInfoWire, "GET /v1")
    version, oldest, time_us, *epoch_and_heights = _numbers(wire, *_LEDGER[1:]).values()
    if (time := timestamp_from_us(time_us)) is None:
        raise SchemaError(f"ledger_timestamp: expected microseconds up to the year 9999, got {time_us}")
    return NodeInfo(
        ledger=LedgerState(wire.chain_id, version, oldest, time, *epoch_and_heights),
        node_role=cut_text(wire.node_role),
        git_hash=None if wire.git_hash is None else cut_text(wire.git_hash),
        encryption_key=wire.encryption_key,
    )


def encode_node_info(ledger: LedgerState, *, node_role: str = "", git_hash: str | None = None) -> bytes:
    """Return the body of ``GET /v1`` for a ledger state."""
    texts = dict(zip(_LEDGER, map(str, ledger_numbers(ledger)), strict=True))
    return msgspec.json.encode(texts | {"chain_id": ledger.chain_id, "node_role": node_role, "git_hash": git_hash})


def decode_account(body: bytes) -> AccountInfo:
    """Decode the response of ``GET /v1/accounts/{address}``.

    Parameters
    ----------
    body : bytes
        The JSON object.

    Returns
    -------
    AccountInfo

    Raises
    ------
    SchemaError
        If the body does not have the documented shape.

    Examples
    --------
    >>> decode_account(b'{"sequence_number": "5", "authentication_key": "0x0a"}').sequence_number
    5
    """
    wire = _decode_struct(body, _AccountWire, "account")
    return AccountInfo(**_numbers(wire, "sequence_number"), authentication_key=wire.authentication_key)


def decode_block(body: bytes) -> BlockInfo:
    """Decode the response of ``GET /v1/blocks/by_version/{version}`` or ``by_height/{height}``.

    Parameters
    ----------
    body : bytes
        The JSON object.

    Returns
    -------
    BlockInfo

    Raises
    ------
    SchemaError
        If the body does not have the documented shape.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_block
    >>> body = (
    ...     b'{"block_height": "602", "block_hash": "0x06", "block_timestamp": "1776572352000000"'
    ...     b', "first_version": "2996", "last_version": "3001"}'
    ... )
    >>> decode_block(body).block_height
    602
    """
    wire = _decode_struct(body, _BlockWire, "block")
    return BlockInfo(
        block_hash=wire.block_hash,
        block_timestamp_us=parse_u64(wire.block_timestamp, "block_timestamp"),
        **_numbers(wire, "block_height", "first_version", "last_version"),
        transactions=None if bytes(wire.transactions) == b"null" else wire.transactions,
    )


def decode_gas_price_estimate(body: bytes) -> GasPriceEstimate:
    """Decode the response of ``GET /v1/estimate_gas_price``.

    Parameters
    ----------
    body : bytes
        The JSON object.

    Returns
    -------
    GasPriceEstimate

    Raises
    ------
    SchemaError
        If the body does not have the documented shape.

    Examples
    --------
    >>> decode_gas_price_estimate(b'{"gas_estimate": 100}').gas_estimate
    100
    """
    return _decode_struct(body, GasPriceEstimate, "gas price estimate")


def _numbers(wire: msgspec.Struct, *names: str) -> dict[str, int]:
    """Parse the named fields, which are u64 numbers as strings of digits."""
    return {name: parse_u64(getattr(wire, name), name) for name in names}


def _decode_struct(body: bytes, kind: type[_T], what: str) -> _T:
    """Decode a JSON object as a msgspec struct; `what` names the response in the message."""
    try:
        return decode_with(msgspec.json.Decoder(kind), body)
    except SchemaError as error:
        raise SchemaError(f"the {what} response does not have the documented shape: {error}") from None


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The body of an error response.

    Parameters
    ----------
    message : str
        The node's message, truncated to 2,000 characters. If the body is not a documented error, the first 300
        characters of its text, without tags.
    error_code : str or None
        The node's error code, usually an `ErrorCode`, truncated to 200 characters; None if the body is not a documented
        error.
    vm_error_code : int or None
        Status number of the VM, or None if the error does not come from the VM.

    Examples
    --------
    >>> from toolkit.wire._responses import decode_error_body
    >>> decode_error_body(b'{"message": "pruned", "error_code": "version_pruned", "vm_error_code": null}').error_code
    'version_pruned'
    """

    message: str
    error_code: str | None
    vm_error_code: int | None


def decode_error_body(body: bytes, content_type: str = "application/json") -> ErrorBody:
    """Decode the body of an error response. This function never raises an exception.

    Parameters
    ----------
    body : bytes
        The documented JSON, or the text or HTML page of a gateway.
    content_type : str, default "application/json"
        Media type of the response. The contents of script and style tags are removed only from HTML.

    Returns
    -------
    ErrorBody
        Its ``error_code`` is None if the body is not a documented error.

    Examples
    --------
    >>> decode_error_body(b"<h1>Bad gateway</h1>", "text/html")
    ErrorBody(message='Bad gateway', error_code=None, vm_error_code=None)
    """
    parsed = None
    with suppress(SchemaError):
        parsed = parse_json(body, "error")
    if isinstance(parsed, dict):
        message, code = parsed.get("message"), parsed.get("error_code")
        if isinstance(message, str) and isinstance(code, str):
            number = parsed.get("vm_error_code")
            known = type(number) is int and 0 <= number <= U64_MAX
            return ErrorBody(cut_text(message), cut_text(code, _MAX_CODE), number if known else None)
        if isinstance(message, str):  # nodes of 2022: {"code": 404, "message": "Not Found"}
            return ErrorBody(_fold(message), None, None)
    text = body[:_MAX_BYTES].decode("utf-8", errors="replace")
    is_page = "html" in content_type.lower() or text.lstrip().startswith("<")
    plain = html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", text))) if is_page else _TAG.sub(" ", text)
    return ErrorBody(_fold(plain), None, None)


def _fold(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())[:_MAX_TEXT]
