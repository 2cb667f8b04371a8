"""Answers about a node and its accounts and blocks: ``GET /v1``, account, block, gas price estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeVar

import msgspec

from toolkit.errors import SchemaError
from toolkit.move.json_text import decode_with
from toolkit.wire.headers import LedgerState, timestamp_from_us
from toolkit.wire.u64 import parse_u64

if TYPE_CHECKING:
    from datetime import datetime

__all__ = [
    "AccountInfo",
    "Block",
    "GasPriceEstimate",
    "NodeInfo",
    "decode_account",
    "decode_block",
    "decode_gas_price_estimate",
    "decode_node_info",
]

_T = TypeVar("_T", bound=msgspec.Struct)
_Price = Annotated[int, msgspec.Meta(ge=0)]


class NodeInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``GET /v1``.

    Parameters
    ----------
    ledger : LedgerState
        The node's head.
    node_role : str
        ``full_node`` or ``validator``.
    git_hash : str or None
        Build of the node.
    encryption_key : str or None
        Key for encrypted transactions, of newer nodes.
    """

    ledger: LedgerState
    node_role: str
    git_hash: str | None = None
    encryption_key: str | None = None


class AccountInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``GET /v1/accounts/{address}``.

    Parameters
    ----------
    sequence_number : int
        Sequence number of the next transaction; 0 for an account that never sent one.
    authentication_key : str
        0x and 64 digits.
    """

    sequence_number: int
    authentication_key: str


class Block(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``GET /v1/blocks/...``.

    Parameters
    ----------
    block_height : int
        Height of the block.
    block_hash : str
        As the node prints it.
    block_timestamp_us : int
        Microseconds since 1970-01-01 UTC.
    first_version, last_version : int
        Ledger versions of the block, both included.
    transactions : msgspec.Raw or None
        JSON array of the block's transactions where they were asked for; see `decode_transactions`.
    """

    block_height: int
    block_hash: str
    block_timestamp_us: int
    first_version: int
    last_version: int
    transactions: msgspec.Raw | None = None

    @property
    def block_timestamp(self) -> datetime | None:
        """Time of the block, UTC; None past the year 9999."""
        return timestamp_from_us(self.block_timestamp_us)


class GasPriceEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of ``GET /v1/estimate_gas_price``, in octas per gas unit (numbers on the wire, not strings).

    Parameters
    ----------
    gas_estimate : int
        The price most transactions pay now.
    deprioritized_gas_estimate, prioritized_gas_estimate : int or None
        Prices for those who can wait, and for those who cannot.
    """

    gas_estimate: _Price
    deprioritized_gas_estimate: _Price | None = None
    prioritized_gas_estimate: _Price | None = None


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


def decode_node_info(body: bytes) -> NodeInfo:
    """Read the body of ``GET /v1``.

    Raises
    ------
    SchemaError
        If it does not have that shape.
    """
    wire = decode_struct(body, _NodeInfoWire, "GET /v1")
    timestamp = timestamp_from_us(parse_u64(wire.ledger_timestamp, "ledger_timestamp"))
    if timestamp is None:
        raise SchemaError(f"ledger_timestamp: {wire.ledger_timestamp} microseconds lie past the year 9999")
    ledger = LedgerState(
        chain_id=wire.chain_id,
        version=parse_u64(wire.ledger_version, "ledger_version"),
        oldest_version=parse_u64(wire.oldest_ledger_version, "oldest_ledger_version"),
        timestamp=timestamp,
        epoch=parse_u64(wire.epoch, "epoch"),
        block_height=parse_u64(wire.block_height, "block_height"),
        oldest_block_height=parse_u64(wire.oldest_block_height, "oldest_block_height"),
    )
    return NodeInfo(ledger=ledger, node_role=wire.node_role, git_hash=wire.git_hash, encryption_key=wire.encryption_key)


def decode_account(body: bytes) -> AccountInfo:
    """Read the body of ``GET /v1/accounts/{address}``.

    Raises
    ------
    SchemaError
        If it does not have that shape.
    """
    wire = decode_struct(body, _AccountWire, "account")
    return AccountInfo(
        sequence_number=parse_u64(wire.sequence_number, "sequence_number"),
        authentication_key=wire.authentication_key,
    )


def decode_block(body: bytes) -> Block:
    """Read the body of ``GET /v1/blocks/by_version/{version}`` or ``by_height/{height}``.

    Raises
    ------
    SchemaError
        If it does not have that shape.
    """
    wire = decode_struct(body, _BlockWire, "block")
    return Block(
        block_height=parse_u64(wire.block_height, "block_height"),
        block_hash=wire.block_hash,
        block_timestamp_us=parse_u64(wire.block_timestamp, "block_timestamp"),
        first_version=parse_u64(wire.first_version, "first_version"),
        last_version=parse_u64(wire.last_version, "last_version"),
        transactions=None if bytes(wire.transactions) == b"null" else wire.transactions,
    )


def decode_gas_price_estimate(body: bytes) -> GasPriceEstimate:
    """Read the body of ``GET /v1/estimate_gas_price``.

    Raises
    ------
    SchemaError
        If it does not have that shape.
    """
    return decode_struct(body, GasPriceEstimate, "gas price estimate")


def decode_struct(body: bytes, kind: type[_T], what: str) -> _T:
    """Decode a body into a msgspec struct, with the package's own error.

    Parameters
    ----------
    body : bytes
        JSON.
    kind : type of msgspec.Struct
        Shape to read.
    what : str
        Name of the answer, for the message.

    Raises
    ------
    SchemaError
        If the body is no JSON or has another shape.
    """
    try:
        return decode_with(msgspec.json.Decoder(kind), body)
    except SchemaError as error:
        raise SchemaError(f"the {what} answer does not have the documented shape: {error}") from error
