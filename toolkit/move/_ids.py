"""Identifiers of code and state: module ids, function ids, table handles; hex-encoded bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError
from toolkit.move._address import address_to_bytes, parse_address, wire_address
from toolkit.move._type_tags import check_identifier

__all__ = ["FunctionId", "ModuleId", "format_hex", "parse_hex", "parse_table_handle"]

_HEX = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)")
_MODULE_PARTS = 2
_FUNCTION_PARTS = 3


@dataclass(frozen=True, slots=True, order=True)
class ModuleId:
    """The id of a module, ``address::name``.

    Parameters
    ----------
    address : str
        Address in any form; the canonical form is stored.
    name : str
        Name of the module.

    Raises
    ------
    InputError
        If `address` is not an address or `name` is not a Move identifier.

    Examples
    --------
    >>> str(ModuleId("0x01", "coin"))
    '0x1::coin'
    """

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
            If `text` is not a module id.
        """
        address, name = _parts(text, _MODULE_PARTS, "module id", "address::module, such as 0x1::coin")
        return cls(address, name)

    @property
    def wire(self) -> str:
        """The id as the REST API writes it: no leading zeros in the address."""
        return f"{wire_address(self.address)}::{self.name}"

    def __str__(self) -> str:
        return f"{self.address}::{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class FunctionId:
    """The id of a function, ``address::module::name``.

    Parameters
    ----------
    address : str
        Address in any form; the canonical form is stored.
    module : str
        Name of the module.
    name : str
        Name of the function.

    Raises
    ------
    InputError
        If `address` is not an address, or a name is not a Move identifier.

    Examples
    --------
    >>> FunctionId.parse("0x1::coin::supply").module_id
    ModuleId(address='0x1', name='coin')
    """

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
            If `text` is not a function id.
        """
        expected = "address::module::function, such as 0x1::coin::supply"
        address, module, name = _parts(text, _FUNCTION_PARTS, "function id", expected)
        return cls(address, module, name)

    @property
    def module_id(self) -> ModuleId:
        """The module of the function."""
        return ModuleId(self.address, self.module)

    @property
    def wire(self) -> str:
        """The id as the REST API writes it: no leading zeros in the address."""
        return f"{wire_address(self.address)}::{self.module}::{self.name}"

    def __str__(self) -> str:
        return f"{self.address}::{self.module}::{self.name}"


def _parts(text: str, count: int, what: str, expected: str) -> list[str]:
    """Split an id into its parts and check them."""
    try:
        parts = text.split("::")
    except AttributeError:
        raise InputError(f"a {what} must be a string ({expected}), got {describe(text)}") from None
    if "<" in text:
        raise InputError(f"{what} {shorten(text)}: pass type arguments in type_arguments, not in the id")
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
    """Return the canonical form of a table handle.

    Parameters
    ----------
    text : str
        1 to 64 hex digits, with or without ``0x``; short forms are padded on the left.

    Returns
    -------
    str
        0x and 64 digits, the form that state changes use.

    Raises
    ------
    InputError
        If `text` is not a table handle.

    Examples
    --------
    >>> len(parse_table_handle("0x2a"))
    66
    """
    try:
        return f"0x{address_to_bytes(text).hex()}"
    except InputError:
        raise InputError(f"not a table handle: {shorten(text)}; expected 0x and 1 to 64 hex digits") from None


def parse_hex(text: str) -> bytes:
    r"""Return the bytes of hex digits, two per byte, with or without ``0x``.

    Parameters
    ----------
    text : str
        Hex digits of either case.

    Returns
    -------
    bytes

    Raises
    ------
    InputError
        If `text` contains other characters or an odd number of digits.

    Examples
    --------
    >>> parse_hex("0x0aff")
    b'\n\xff'
    """
    try:
        match = _HEX.fullmatch(text)
    except TypeError:
        match = None
    if match is None:
        raise InputError(f"not hex-encoded bytes: {shorten(text)}; expected 0x and two hex digits per byte")
    return bytes.fromhex(match[1])


def format_hex(data: bytes) -> str:
    """Return bytes as the REST API writes them: ``0x`` and two digits per byte.

    Parameters
    ----------
    data : bytes
        The bytes.

    Returns
    -------
    str

    Examples
    --------
    >>> format_hex(bytes([10, 255]))
    '0x0aff'
    """
    return f"0x{data.hex()}"
