"""Headers: any brand, any case, hostile values."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from toolkit.wire import LedgerState
from toolkit.wire._headers import AnswerHeaders, ledger_headers, parse_headers

STATE = LedgerState(
    chain_id=1,
    version=6_781_425_728,
    oldest_version=100,
    timestamp=datetime(2026, 5, 1, 12, 30, 0, 123_456, tzinfo=UTC),
    epoch=12_000,
    block_height=400_000_000,
    oldest_block_height=7,
)


@pytest.mark.parametrize("brand", ["APTOS", "SVC", "My-Chain", "x"])
def test_headers_of_any_brand_read_back_as_written(brand: str) -> None:
    """What `ledger_headers` writes, `parse_headers` reads, whatever the maker's token."""
    read = parse_headers(ledger_headers(STATE, brand=brand, gas_used=9))
    assert read == AnswerHeaders(STATE, 9, None, brand.upper(), STATE.chain_id)


@pytest.mark.parametrize("spell", [str.lower, str.upper, str.title])
def test_header_names_ignore_case(spell) -> None:
    """HTTP header names are not case-sensitive."""
    headers = {spell(name): value for name, value in ledger_headers(STATE).items()}
    assert parse_headers(headers).ledger == STATE


def test_timestamp_keeps_microseconds() -> None:
    """No microsecond is lost between header and datetime."""
    assert STATE.timestamp_us == 1_777_638_600_123_456
    assert ledger_headers(STATE)["X-APTOS-LEDGER-TIMESTAMPUSEC"] == "1777638600123456"


def test_cursor_is_read_with_its_brand_only() -> None:
    """A header of another brand is another header."""
    headers = ledger_headers(STATE) | {"X-APTOS-CURSOR": "0x01ab", "X-OTHER-GAS-USED": "5"}
    read = parse_headers(headers)
    assert (read.cursor, read.gas_used) == ("0x01ab", None)


def test_no_headers_means_nothing_known() -> None:
    """Errors of a gateway carry none of them."""
    assert parse_headers({"Content-Type": "text/html"}) == AnswerHeaders(None, None, None, None)


def test_headers_without_a_ledger_state_are_read() -> None:
    """The brand is known from the oldest version alone."""
    read = parse_headers({"x-aptos-ledger-oldest-version": "0", "x-aptos-gas-used": "12"})
    assert read == AnswerHeaders(None, 12, None, "APTOS")


NO_U64 = ["", "-1", "+1", " 1", "1 ", "1_000", "1e3", "0x10", str(2**64), "9" * 5000, "\u0661", "1.0", "abc"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("X-APTOS-LEDGER-VERSION", value) for value in NO_U64),
        *(("X-APTOS-EPOCH", value) for value in NO_U64),
        *(("X-APTOS-CHAIN-ID", value) for value in (*NO_U64, "256")),
        ("X-APTOS-LEDGER-TIMESTAMPUSEC", str(2**64 - 1)),  # past the year 9999
    ],
    ids=lambda value: value[:20],
)
def test_hostile_numbers_count_as_absent(name: str, value: str) -> None:
    """A header that is not a u64, a chain id of one byte, or a valid time is ignored and does not raise an error."""
    read = parse_headers(ledger_headers(STATE, gas_used=5) | {name: value})
    assert read.ledger is None
    assert read.gas_used == 5


def test_an_endless_cursor_counts_as_absent() -> None:
    """A cursor of a megabyte is nobody's cursor."""
    assert parse_headers(ledger_headers(STATE) | {"X-APTOS-CURSOR": "a" * 1_000_000}).cursor is None
