"""Account addresses.

Any accepted form is read, and the canonical form is returned. Canonical is AIP-40
(https://github.com/aptos-foundation/AIPs/blob/main/aips/aip-40.md): ``0x0`` to ``0xf`` in short form, every other
address as 0x and 64 digits. The REST API itself omits leading zeros; `wire_address` returns that form.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolkit._present.messages import shorten
from toolkit.errors import InputError

__all__ = ["ADDRESS_LENGTH", "address_from_bytes", "address_to_bytes", "parse_address", "wire_address"]

ADDRESS_LENGTH = 32
"""Number of bytes in an address."""

_DIGITS = 2 * ADDRESS_LENGTH
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,64})")
_FULL = re.compile(r"0x(?!0{63})[0-9a-f]{64}")
_FULL_LENGTH = 2 + _DIGITS
_SPECIAL_ZEROS = "0" * (_DIGITS - 1)
_SPECIAL_PREFIX = bytes(ADDRESS_LENGTH - 1)
_MAX_SPECIAL = 15
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
        raise InputError(f"not an address: {shorten(text)}; expected 0x and 1 to 64 hex digits") from None


@lru_cache(maxsize=_CACHE_SIZE)
def _canonical(text: str) -> str:
    """Return the canonical form; raise ValueError or TypeError if `text` is not an address."""
    match = _HEX.fullmatch(text)
    if match is None:
        raise ValueError
    digits = match[1].lower().zfill(_DIGITS)
    return f"0x{digits[-1]}" if digits.startswith(_SPECIAL_ZEROS) else f"0x{digits}"


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
