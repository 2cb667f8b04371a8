"""Names of code and state: module ids, function ids, table handles, hex bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move.address import address_to_bytes, parse_address, wire_address
from toolkit.move.tag_types import check_identifier

__all__ = ["FunctionId", "ModuleId", "format_hex", "parse_hex", "parse_table_handle"]

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)")
_MODULE_PARTS = 2
_FUNCTION_PARTS = 3


@dataclass(frozen=True, slots=True, order=True)
class ModuleId:
    """``address::name`` of a module; the address is kept canonical, names keep their case."""

    address: str
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", parse_address(self.address))
        check_identifier(self.name, "module name")

    @classmethod
    def parse(cls, text: str) -> ModuleId:
        """Read ``address::module``.

        Raises
        ------
        InputError
            If `text` is no module id.
        """
        address, name = _parts(text, _MODULE_PARTS, "module id", "address::module, such as 0x1::coin")
        return cls(address, name)

    @property
    def wire(self) -> str:
        """The id as the REST API prints it: no leading zeros in the address."""
        return f"{wire_address(self.address)}::{self.name}"

    def __str__(self) -> str:
        return f"{self.address}::{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class FunctionId:
    """``address::module::name`` of a function; the address is kept canonical, names keep their case."""

    address: str
    module: str
    name: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", parse_address(self.address))
        check_identifier(self.module, "module name")
        check_identifier(self.name, "function name")

    @classmethod
    def parse(cls, text: str) -> FunctionId:
        """Read ``address::module::function``.

        Raises
        ------
        InputError
            If `text` is no function id.
        """
        expected = "address::module::function, such as 0x1::coin::supply"
        address, module, name = _parts(text, _FUNCTION_PARTS, "function id", expected)
        return cls(address, module, name)

    @property
    def module_id(self) -> ModuleId:
        """The module the function belongs to."""
        return ModuleId(self.address, self.module)

    @property
    def wire(self) -> str:
        """The id as the REST API prints it: no leading zeros in the address."""
        return f"{wire_address(self.address)}::{self.module}::{self.name}"

    def __str__(self) -> str:
        return f"{self.address}::{self.module}::{self.name}"


def _parts(text: str, count: int, what: str, expected: str) -> list[str]:
    """Split an id, or refuse it saying what an id looks like."""
    try:
        parts = text.split("::")
    except AttributeError:
        raise InputError(f"a {what} is written as text ({expected}), got {describe(text)}") from None
    if "<" in text:
        raise InputError(f"{what} {shorten(text)}: type arguments go into type_arguments, not into the id")
    if len(parts) != count:
        raise InputError(f"not a {what}: {shorten(text)}; expected {expected}")
    try:
        parse_address(parts[0])
        for part in parts[1:]:
            check_identifier(part)
    except InputError as error:
        raise InputError(f"{what} {shorten(text)}: {error}") from None
    return parts


def parse_table_handle(text: str) -> str:
    """Read a table handle: hex of up to 32 bytes, short forms padded on the left.

    Returns
    -------
    str
        0x and 64 digits, as handles stand in state changes.

    Raises
    ------
    InputError
        If `text` is no table handle.
    """
    try:
        return f"0x{address_to_bytes(text).hex()}"
    except InputError:
        raise InputError(f"not a table handle: {shorten(text)}; expected 0x and 1 to 64 hex digits") from None


def parse_hex(text: str) -> bytes:
    """Read hex-encoded bytes, two digits a byte, with or without ``0x``.

    Raises
    ------
    InputError
        If `text` has other characters or an odd number of digits.
    """
    try:
        match = _HEX.fullmatch(text)
    except TypeError:
        match = None
    if match is None:
        raise InputError(f"not hex-encoded bytes: {shorten(text)}; expected 0x and two hex digits a byte")
    return bytes.fromhex(match[1])


def format_hex(data: bytes) -> str:
    """Return bytes as the REST API prints them: ``0x`` and two digits a byte."""
    return f"0x{data.hex()}"
