"""_Addresses, handles, types and hex of answers in one spelling each, quickly: the same few come back all the time."""

from __future__ import annotations

import re

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move.address import parse_address
from toolkit.move.ids import parse_table_handle

__all__ = ["Spellings", "hex_bytes", "split_event_key"]

_CREATION_NUMBER_BYTES = 8
# Most texts are canonical as they come, which these tell quickly: a whole address with its first digit set, and an
# address inside a type, module or function text that is neither that nor one digit.
_FULL_ADDRESS = re.compile("0x[1-9a-f][0-9a-f]{63}")
_FULL_HANDLE = re.compile("0x[0-9a-f]{64}")
_OTHER_ADDRESS = re.compile("0x(?![1-9a-f][0-9a-f]{63}::|[0-9a-f]::)[0-9a-fA-F]+(?=::)")


class _Addresses(dict[str, str]):
    """Canonical spelling of each address met so far; they repeat a lot, and a hit costs one lookup."""

    def __missing__(self, text: str) -> str:
        self[text] = known = text if _FULL_ADDRESS.fullmatch(text) else parse_address(text)
        return known


class _Handles(dict[str, str]):
    """_Handles met so far, padded to 64 digits."""

    def __missing__(self, text: str) -> str:
        self[text] = known = text if _FULL_HANDLE.fullmatch(text) else parse_table_handle(text)
        return known


class _TypeTexts(dict[str, str]):
    """Type, module and function texts met so far with their addresses spelled canonically, all else as it came."""

    def __init__(self, addresses: _Addresses) -> None:
        super().__init__()
        self._addresses = addresses

    def __missing__(self, text: str) -> str:
        self[text] = known = _OTHER_ADDRESS.sub(lambda match: self._addresses[match[0]], text)
        return known


class Spellings:
    """The spellings met so far in one batch."""

    __slots__ = ("addresses", "handles", "types")

    def __init__(self) -> None:
        self.addresses = _Addresses()
        self.handles = _Handles()
        self.types = _TypeTexts(self.addresses)


def hex_bytes(text: str) -> bytes:
    """Return the bytes of wire hex; `bytes.fromhex` alone would skip white space."""
    try:
        data = bytes.fromhex(text[2:])
    except ValueError:
        data = None
    if data is None or text[:2] != "0x" or 2 * len(data) != len(text) - 2:
        raise SchemaError(f"expected hex of a table key or value, got {shorten(text)}")
    return data


def split_event_key(key: str | None) -> tuple[str, str]:
    """Return address and creation number of an event key of 2022: 8 bytes little-endian, then the address."""
    if key is None:
        raise SchemaError("an event has neither a guid nor a key")
    data = hex_bytes(key)
    number = int.from_bytes(data[:_CREATION_NUMBER_BYTES], "little")
    return "0x" + data[_CREATION_NUMBER_BYTES:].hex(), str(number)
