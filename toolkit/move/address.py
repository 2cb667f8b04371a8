"""Account addresses: every accepted spelling in, one canonical spelling out.

Canonical is AIP-40: ``0x0``..``0xf`` short, every other address as 0x and 64 digits. The REST API itself
prints addresses with leading zeros stripped; `wire_address` gives that form.
"""

from __future__ import annotations

import re
from functools import lru_cache

from toolkit._present.messages import shorten
from toolkit.errors import InputError

__all__ = ["ADDRESS_LENGTH", "address_from_bytes", "address_to_bytes", "parse_address", "wire_address"]

ADDRESS_LENGTH = 32
"""Bytes of an address."""

_DIGITS = 2 * ADDRESS_LENGTH
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{1,64})")
_FULL = re.compile(r"0x(?!0{63})[0-9a-f]{64}")
_FULL_LENGTH = 2 + _DIGITS
_SPECIAL_ZEROS = "0" * (_DIGITS - 1)
_SPECIAL_PREFIX = bytes(ADDRESS_LENGTH - 1)
_LAST_SPECIAL = 15
_CACHE = 16_384  # the same few addresses come back in every answer


def parse_address(text: str) -> str:
    """Read an address in any accepted spelling.

    Parameters
    ----------
    text : str
        1 to 64 hex digits of either case, with or without ``0x``; short forms are padded on the left.

    Returns
    -------
    str
        The canonical spelling (AIP-40).

    Raises
    ------
    InputError
        If `text` is no address.

    Examples
    --------
    >>> parse_address("0x0001")
    '0x1'
    """
    try:
        # Most distinct addresses come at full length in lower case, canonical already: too many to keep.
        return text if len(text) == _FULL_LENGTH and _FULL.fullmatch(text) else _canonical(text)
    except (TypeError, ValueError):
        raise InputError(f"not an address: {shorten(text)}; expected 0x and 1 to 64 hex digits") from None


@lru_cache(maxsize=_CACHE)
def _canonical(text: str) -> str:
    """Return the canonical spelling; ValueError or TypeError for what is no address."""
    match = _HEX.fullmatch(text)
    if match is None:
        raise ValueError
    digits = match[1].lower().zfill(_DIGITS)
    return f"0x{digits[-1]}" if digits.startswith(_SPECIAL_ZEROS) else f"0x{digits}"


def address_to_bytes(text: str) -> bytes:
    """Return the 32 bytes of an address in any accepted spelling.

    Raises
    ------
    InputError
        If `text` is no address.
    """
    return _packed(parse_address(text))


@lru_cache(maxsize=_CACHE)
def _packed(canonical: str) -> bytes:
    return bytes.fromhex(canonical[2:].zfill(_DIGITS))


def address_from_bytes(data: bytes) -> str:
    """Return the canonical spelling of the address that `data` (32 bytes) holds.

    Raises
    ------
    InputError
        If `data` has another length.
    """
    if len(data) != ADDRESS_LENGTH:
        raise InputError(f"an address has {ADDRESS_LENGTH} bytes, got {len(data)}")
    if data.startswith(_SPECIAL_PREFIX) and data[-1] <= _LAST_SPECIAL:
        return f"0x{data[-1]:x}"
    return f"0x{data.hex()}"


def wire_address(text: str) -> str:
    """Return an address as the REST API prints it: 0x and the digits without leading zeros.

    Raises
    ------
    InputError
        If `text` is no address.
    """
    return f"0x{parse_address(text)[2:].lstrip('0') or '0'}"
