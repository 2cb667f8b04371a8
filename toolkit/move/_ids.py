"""Identifiers (account addresses, Move names, module and function ids, table handles) and hex-encoded bytes.

Functions accept any form of an address and return the canonical form, AIP-40
(https://github.com/aptos-foundation/AIPs/blob/main/aips/aip-40.md): ``0x0`` to ``0xf`` in short form, every other
address as 0x and 64 hex digits. The REST API itself omits leading zeros; `wire_address` returns that form.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, Self

import msgspec

from toolkit._present.messages import describe, shorten
from toolkit.errors import InputError

ADDRESS_LENGTH = 32  # number of bytes in an address

_DIGITS = 2 * ADDRESS_LENGTH
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,64})")
_FULL = re.compile(r"0x(?!0{63})[0-9a-f]{64}")
_FULL_LENGTH = 2 + _DIGITS
_SPECIAL_ZEROS = "0" * (_DIGITS - 1)
_SPECIAL_PREFIX = bytes(ADDRESS_LENGTH - 1)
_MAX_SPECIAL = 15  # AIP-40: 0x0 to 0xf are written without leading zeros
_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+")
_HEX_BYTES = re.compile(r"(?:0x)?((?:[0-9a-fA-F]{2})*)")
_CACHE_SIZE = 16_384  # the same few addresses recur in every response


def parse_address(text: str) -> str:
    """Return the canonical form of an address.

    Parameters
    ----------
    text : str
        1 to 64 hex digits of either case, with or without ``0x``; short forms are padded on the left.

    Returns
    -------
    str
        The canonical form (AIP-40).

    Raises
    ------
    InputError
        If `text` is not an address.

    Examples
    --------
    >>> parse_address("0x0001")
    '0x1'
    """
    try:
        # Most distinct addresses arrive in canonical form already, and are too many to cache.
        return text if len(text) == _FULL_LENGTH and _FULL.fullmatch(text) else _canonical(text)
    except (TypeError, ValueError):
        raise InputError(f"not an address: {shorten(text)}; {_expected(text)}") from None


@lru_cache(maxsize=_CACHE_SIZE)
def _canonical(text: str) -> str:
    """Return the canonical form; raise ValueError or TypeError if `text` is not an address."""
    if (match := _HEX.fullmatch(text)) is None:
        raise ValueError
    digits = match[1].lower().zfill(_DIGITS)
    return f"0x{digits[-1]}" if digits.startswith(_SPECIAL_ZEROS) else f"0x{digits}"


def _expected(given: object) -> str:
    """Return what was expected: an address, or for a number like ``0xcafe``, the same address in quotes."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 < given < 1 << 4 * _DIGITS:
        return f'expected a string: write "{given:#x}" in quotes'
    return "expected 0x and 1 to 64 hex digits"


def address_to_bytes(text: str) -> bytes:
    """Return the 32 bytes of an address.

    Parameters
    ----------
    text : str
        The address in any form that `parse_address` accepts.

    Returns
    -------
    bytes, length 32

    Raises
    ------
    InputError
        If `text` is not an address.

    Examples
    --------
    >>> address_to_bytes("0x1").hex()[-4:]
    '0001'
    """
    return _packed(parse_address(text))


@lru_cache(maxsize=_CACHE_SIZE)
def _packed(canonical: str) -> bytes:
    return bytes.fromhex(canonical[2:].zfill(_DIGITS))


def address_from_bytes(data: bytes) -> str:
    """Return the canonical form of an address given as bytes.

    Parameters
    ----------
    data : bytes, length 32
        The address.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If `data` does not have 32 bytes.

    Examples
    --------
    >>> address_from_bytes(bytes(31) + bytes([10]))
    '0xa'
    """
    if len(data) != ADDRESS_LENGTH:
        raise InputError(f"expected {ADDRESS_LENGTH} bytes of an address, got {len(data)}")
    if data.startswith(_SPECIAL_PREFIX) and data[-1] <= _MAX_SPECIAL:
        return f"0x{data[-1]:x}"
    return f"0x{data.hex()}"


def wire_address(text: str) -> str:
    """Return an address as the REST API writes it: 0x and the digits without leading zeros.

    Parameters
    ----------
    text : str
        The address in any form that `parse_address` accepts.

    Returns
    -------
    str

    Raises
    ------
    InputError
        If `text` is not an address.

    Examples
    --------
    >>> wire_address("0x0abc")
    '0xabc'
    """
    return f"0x{parse_address(text)[2:].lstrip('0') or '0'}"


def check_identifier(name: str, what: str = "name") -> str:
    """Return `name` if it is a Move identifier.

    Raises
    ------
    InputError
        If `name` is not a Move identifier. The message calls the value `what`.
    """
    if _IDENTIFIER.fullmatch(name) is None:
        raise InputError(f"{what} {shorten(name)} is not a Move identifier (letters, digits, underscores)")
    return name


class _Id(msgspec.Struct, frozen=True, order=True):
    """Base class of ids, which consist of an address and names."""

    _names: ClassVar[tuple[str, ...]]
    _form: ClassVar[str]

    address: str

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "address", parse_address(self.address))
        for what, name in zip(self._names, msgspec.structs.astuple(self)[1:], strict=True):
            check_identifier(name, f"{what} name")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an id in ``::`` notation.

        Raises
        ------
        InputError
            If `text` is not a valid id.
        """
        what, form = f"{cls._names[-1]} id", cls._form
        if not isinstance(text, str):
            raise InputError(f"a {what} must be a string ({form}), got {describe(text)}")
        if "<" in text:
            raise InputError(f"{what} {shorten(text)}: pass type arguments in type_arguments, not in the id")
        parts = text.split("::")
        if len(parts) != len(cls.__struct_fields__):
            raise InputError(f"not a {what}: {shorten(text)}; expected {form}")
        try:
            return cls(*parts)
        except InputError as error:
            raise InputError(f"{what} {shorten(text)}: {error}") from None

    @property
    def wire(self) -> str:
        """The id in the form of the REST API, without leading zeros in the address."""
        return "::".join((wire_address(self.address), *msgspec.structs.astuple(self)[1:]))

    def __str__(self) -> str:
        return "::".join(msgspec.structs.astuple(self))


class ModuleId(_Id, frozen=True):
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

    _names: ClassVar[tuple[str, ...]] = ("module",)
    _form: ClassVar[str] = "address::module, such as 0x1::coin"

    name: str


class FunctionId(_Id, frozen=True):
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

    _names: ClassVar[tuple[str, ...]] = ("module", "function")
    _form: ClassVar[str] = "address::module::function, such as 0x1::coin::supply"

    module: str
    name: str

    @property
    def module_id(self) -> ModuleId:
        """Id of the module that defines the function."""
        return ModuleId(self.address, self.module)


def parse_table_handle(text: str) -> str:
    """Return the canonical form of a table handle.

    Parameters
    ----------
    text : str
        1 to 64 hex digits, with or without ``0x``; short forms are padded on the left.

    Returns
    -------
    str
        0x and 64 hex digits, as in state changes.

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
        match = _HEX_BYTES.fullmatch(text)
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
