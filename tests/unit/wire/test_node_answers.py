"""Answers about a node, an account, a block, a gas price."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from toolkit.errors import SchemaError
from toolkit.wire._responses import decode_account, decode_block, decode_gas_price_estimate, decode_node_info

INFO = {
    "chain_id": 4,
    "epoch": "2",
    "ledger_version": "18446744073709551615",
    "oldest_ledger_version": "0",
    "ledger_timestamp": "1665609760857472",
    "node_role": "full_node",
    "oldest_block_height": "0",
    "block_height": "9",
    "git_hash": None,
}


def test_node_info_gives_the_ledger_state() -> None:
    """Every number is exact, the time has its microseconds."""
    info = decode_node_info(json.dumps(INFO).encode())
    assert info.ledger.version == 2**64 - 1
    assert info.ledger.timestamp == datetime(2022, 10, 12, 21, 22, 40, 857_472, tzinfo=UTC)
    assert (info.ledger.chain_id, info.ledger.epoch, info.ledger.block_height) == (4, 2, 9)
    assert (info.node_role, info.git_hash, info.encryption_key) == ("full_node", None, None)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"epoch": 2}, "Expected `str`, got `int` - at `$.epoch`"),
        ({"epoch": "02"}, "epoch: expected a u64 as a string of digits, got '02'"),
        ({"ledger_version": str(2**64)}, "ledger_version: expected a u64 as a string of digits"),
        ({"chain_id": 256}, "at `$.chain_id`"),
        ({"ledger_timestamp": str(2**64 - 1)}, "expected microseconds up to the year 9999"),
    ],
)
def test_misshapen_node_info_names_the_field(change: dict, text: str) -> None:
    """A number that is not a u64 string is refused, not bent."""
    with pytest.raises(SchemaError) as raised:
        decode_node_info(json.dumps(INFO | change).encode())
    assert text in str(raised.value)


def test_account() -> None:
    """The sequence number is an exact int."""
    key = "0x" + "ab" * 32
    account = decode_account(json.dumps({"sequence_number": "7", "authentication_key": key}).encode())
    assert (account.sequence_number, account.authentication_key) == (7, key)


def test_block_with_and_without_transactions() -> None:
    """Transactions stay raw, null means they were not asked for."""
    block = {
        "block_height": "1",
        "block_hash": "0x01",
        "block_timestamp": "1665609760857472",
        "first_version": "1",
        "last_version": "3",
        "transactions": None,
    }
    plain = decode_block(json.dumps(block).encode())
    assert plain.transactions is None
    assert (plain.first_version, plain.last_version) == (1, 3)
    assert plain.block_timestamp == datetime(2022, 10, 12, 21, 22, 40, 857_472, tzinfo=UTC)
    full = decode_block(json.dumps(block | {"transactions": []}).encode())
    assert bytes(full.transactions or b"") == b"[]"


def test_gas_price_estimate_is_numbers() -> None:
    """Unlike all other amounts these are JSON numbers; older nodes know one of them."""
    estimate = decode_gas_price_estimate(b'{"deprioritized_gas_estimate":100,"gas_estimate":100}')
    assert (estimate.gas_estimate, estimate.prioritized_gas_estimate) == (100, None)
    with pytest.raises(SchemaError, match="gas price estimate"):
        decode_gas_price_estimate(b'{"gas_estimate":"100"}')


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"\xff", b"[" * 100_000, b'{"chain_id": 1}'])
def test_any_other_body_is_a_schema_error(body: bytes) -> None:
    """Nothing but the package's own error."""
    for decode in (decode_node_info, decode_account, decode_block, decode_gas_price_estimate):
        with pytest.raises(SchemaError):
            decode(body)
