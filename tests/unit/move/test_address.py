"""Addresses: spellings in, spellings out."""

from __future__ import annotations

import pytest

from toolkit.errors import InputError
from toolkit.move import parse_address
from toolkit.move._ids import address_from_bytes, address_to_bytes, wire_address

LONG_CAFE = f"0x{'cafe':0>64}"


@pytest.mark.parametrize(
    ("text", "canonical", "wire"),
    [
        ("0x1", "0x1", "0x1"),
        ("1", "0x1", "0x1"),
        ("0x0", "0x0", "0x0"),
        ("0x" + "0" * 64, "0x0", "0x0"),
        ("0xF", "0xf", "0xf"),
        ("0x00A", "0xa", "0xa"),
        ("0x10", f"0x{'10':0>64}", "0x10"),
        ("CAFE", LONG_CAFE, "0xcafe"),
        (LONG_CAFE, LONG_CAFE, "0xcafe"),
        ("0x" + "f" * 64, "0x" + "f" * 64, "0x" + "f" * 64),
    ],
)
def test_every_spelling_has_one_canonical_and_one_wire_form(text, canonical, wire):
    """AIP-40: 0x0 to 0xf short, all else 64 digits; the wire strips zeros from all."""
    assert parse_address(text) == canonical
    assert parse_address(canonical) == canonical
    assert wire_address(text) == wire
    assert address_from_bytes(address_to_bytes(text)) == canonical
    assert len(address_to_bytes(text)) == 32


def test_bytes_of_another_length_are_no_address():
    """Only 32 bytes make an address."""
    with pytest.raises(InputError, match=r"\b32\b.*\b31\b"):
        address_from_bytes(bytes(31))


def test_an_address_without_quotes_is_said_to_lack_them():
    """`0xcafe` is a number in Python; the message shows the text to write."""
    with pytest.raises(InputError, match=r'51966.*"0xcafe"'):
        parse_address(0xCAFE)
    for other in (True, -1, 1 << 256, 1.5, None):
        with pytest.raises(InputError, match="1 to 64"):
            parse_address(other)
