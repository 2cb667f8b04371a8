"""Module ids, function ids, table handles, hex bytes."""

from __future__ import annotations

from toolkit.move import FunctionId
from toolkit.move._ids import ModuleId, format_hex, parse_hex, parse_table_handle


def test_ids_are_canonical_and_print_for_the_wire():
    """The address is canonical, names keep their case, `wire` strips zeros."""
    function = FunctionId.parse("0xCAFE::Registry::Record_of")
    assert str(function) == f"0x{'cafe':0>64}::Registry::Record_of"
    assert function.wire == "0xcafe::Registry::Record_of"
    assert function.module_id == ModuleId("0xcafe", "Registry")
    assert ModuleId.parse("0x01::coin") == ModuleId("0x1", "coin")
    assert ModuleId.parse("0x01::coin").wire == "0x1::coin"
    assert str(ModuleId("0x1", "coin")) == "0x1::coin"


def test_table_handles_are_padded_to_64_digits():
    """Handles in state changes are never trimmed, those in resources are; both read the same."""
    assert parse_table_handle("0x1b") == parse_table_handle("001B") == f"0x{'1b':0>64}"


def test_hex_is_read_with_and_without_prefix():
    """Two digits a byte, either case."""
    assert parse_hex("0xAb01") == parse_hex("ab01") == b"\xab\x01"
    assert parse_hex("0x") == b""
    assert format_hex(b"\xab\x01") == "0xab01"
