"""Kinds of layouts without parts: bool, integers, addresses, bytes and strings, each with its codecs."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from toolkit._present.messages import describe
from toolkit._present.text import plural
from toolkit.errors import InputError
from toolkit.move import _ids as ids
from toolkit.move._bcs import MAX_LENGTH, uleb128
from toolkit.move._codecs import BaseLayout, Codec, Mismatch, ended, read_flag, read_length
from toolkit.move._type_tags import MAX_NUMBER_BITS

_MAX_DIGITS = 78 + 1  # digits of the largest u256, and a sign; int() is slow for much longer texts
# int() also accepts "1_0", spaces and the digits of other scripts, which nodes neither print nor accept.
_is_canonical = re.compile(r"0|-?[1-9][0-9]*").fullmatch  # as nodes print integers
_signed_digits = re.compile(r"(?:\+|(-))?0*(0|[1-9][0-9]*)").fullmatch  # as nodes accept them in arguments

_FORMATS = {8: "<b", 16: "<h", 32: "<i", 64: "<q"}  # of `struct`, which is faster than int.from_bytes, by bits


class Plain(BaseLayout, frozen=True):
    """Base class of kinds whose codec consists of methods; by default, all forms in JSON are converted alike."""

    def codec(self) -> Codec:
        return Codec(self.from_json, self.to_json, self.read, self.write, self.argument, self.from_argument)

    def from_json(self, value: Any) -> Any:
        raise NotImplementedError

    def to_json(self, value: Any) -> Any:
        return self.from_json(value)

    def read(self, data: bytes, position: int) -> tuple[Any, int]:
        raise NotImplementedError

    def write(self, value: Any, out: bytearray) -> None:
        raise NotImplementedError

    def argument(self, value: Any) -> Any:
        return self.from_json(value)

    def from_argument(self, value: Any) -> Any:
        return self.from_json(value)


class Bool(Plain, frozen=True):
    """The layout of ``bool``.

    Examples
    --------
    >>> from toolkit.move import Bool, decode_json
    >>> decode_json(Bool(), True)
    True
    """

    move_type = "bool"
    words = "boolean"

    def from_json(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise Mismatch(f"expected a boolean, got {describe(value)}")

    def read(self, data: bytes, position: int) -> tuple[bool, int]:
        return read_flag(data, position, "bool", "a bool, 0 or 1"), position + 1

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, bool):
            raise Mismatch(f"expected a bool, got {describe(value)}")
        out.append(value)


class Integer(BaseLayout, frozen=True):
    """Base class of `UInt` and `Int`."""

    bits: int

    @property
    def move_type(self) -> str:
        return f"{'i' if isinstance(self, Int) else 'u'}{self.bits}"

    @property
    def words(self) -> str:
        return f"{'integer' if self.bits <= MAX_NUMBER_BITS else 'string'}<{self.move_type}>"

    @property
    def range(self) -> tuple[int, int]:
        """The smallest and the largest valid value."""
        if isinstance(self, Int):
            return -(1 << self.bits - 1), (1 << self.bits - 1) - 1
        return 0, (1 << self.bits) - 1

    def codec(self) -> Codec:  # noqa: C901 - one function per form of a value
        low, high = self.range
        size, is_signed, is_text = self.bits // 8, isinstance(self, Int), self.bits > MAX_NUMBER_BITS
        longest, from_bytes = max(len(str(low)), len(str(high))), int.from_bytes

        def decode(value: Any) -> int:
            if type(value) is int and low <= value <= high:
                return value
            raise Mismatch(self._problem(value, int))

        def decode_text(value: Any) -> int:
            # The length is checked first, because int() is slow for long texts.
            if type(value) is str and len(value) <= longest and _is_canonical(value):
                number = int(value)
                if low <= number <= high:
                    return number
            raise Mismatch(self._problem(value, str))

        def encode(value: Any) -> int | str:
            if type(value) is int and low <= value <= high:
                return str(value) if is_text else value
            raise self._misfit(value, self.words)

        def read(data: bytes, position: int) -> tuple[int, int]:
            raw = data[position : position + size]
            if len(raw) != size:
                raise ended(data, position, f"{plural(size, 'byte')} of {self.move_type}")
            return from_bytes(raw, "little", signed=is_signed), position + size

        def read_native(data: bytes, position: int) -> tuple[int, int]:
            try:
                return unpack(data, position)[0], position + size
            except struct.error:
                return read(data, position)  # which says what is missing

        def write(value: Any, out: bytearray) -> None:
            if type(value) is not int or not low <= value <= high:
                raise self._misfit(value, self.move_type)
            out += value.to_bytes(size, "little", signed=is_signed)

        def argument(value: Any) -> int | str:
            number = value
            if isinstance(value, str) and len(value) <= _MAX_DIGITS and value.isascii():
                number = int(value) if value.removeprefix("-").isdigit() else None
            elif not isinstance(value, int) and hasattr(value, "__index__"):
                number = value.__index__()  # integers of NumPy
            text = f"expected {self.move_type}, got {describe(value)}"
            if isinstance(number, bool) or not isinstance(number, int):
                raise Mismatch(f"{text}; pass a whole number or its digits")
            if not low <= number <= high:
                raise Mismatch(f"{text}, outside {low}..{high}")
            return str(number) if is_text else number

        def accept(value: Any) -> int:
            found = _signed_digits(value) if type(value) is str else None
            if found is None or (found[1] and not is_signed):
                return decode_text(value)
            return decode_text(found[2] if not found[1] or found[2] == "0" else f"-{found[2]}")

        if self.bits in _FORMATS:
            unpack = struct.Struct(_FORMATS[self.bits] if is_signed else _FORMATS[self.bits].upper()).unpack_from
        reader = read_native if self.bits in _FORMATS else read
        if is_text:
            return Codec(decode_text, encode, reader, write, argument, accept)
        return Codec(decode, encode, reader, write, argument, decode)

    def _problem(self, value: object, form: type) -> str:
        """Return what is wrong with an integer in JSON: its kind, its digits or its range."""
        text = f"expected {self.words}, got {describe(value)}"
        if type(value) is not form:
            return text
        if isinstance(value, str) and not _is_canonical(value):
            return f"{text}, which is not a canonical decimal number"
        low, high = self.range
        return f"{text}, outside {low}..{high}"

    def _misfit(self, value: Any, words: str) -> Mismatch:
        low, high = self.range
        return Mismatch(f"expected {words} as an int in {low}..{high}, got {describe(value)}")


class UInt(Integer, frozen=True):
    """The layout of an unsigned integer, ``u8`` to ``u256``.

    Parameters
    ----------
    bits : int
        Width in bits: 8, 16, 32, 64, 128 or 256.

    Examples
    --------
    >>> from toolkit.move import UInt, decode_json, encode_bcs
    >>> decode_json(UInt(64), "7"), encode_bcs(UInt(16), 258).hex()
    (7, '0201')
    """


class Int(Integer, frozen=True):
    """The layout of a signed integer, ``i8`` to ``i256``.

    Parameters
    ----------
    bits : int
        Width in bits: 8, 16, 32, 64, 128 or 256.

    Examples
    --------
    >>> from toolkit.move import Int, encode_bcs
    >>> encode_bcs(Int(16), -2).hex()
    'feff'
    """


class _AddressBytes(Plain, frozen=True):
    """Base class of layouts whose values are addresses in BCS."""

    def read(self, data: bytes, position: int) -> tuple[str, int]:
        end = position + ids.ADDRESS_LENGTH
        if end > len(data):
            raise ended(data, position, f"{ids.ADDRESS_LENGTH} bytes of an address")
        return ids.address_from_bytes(data[position:end]), end

    def write(self, value: Any, out: bytearray) -> None:
        try:
            out += ids.address_to_bytes(value)
        except InputError:
            raise Mismatch(f"expected an address, got {describe(value)}") from None


class Address(_AddressBytes, frozen=True):
    """The layout of ``address`` and ``signer``.

    Examples
    --------
    >>> from toolkit.move import Address, decode_json
    >>> decode_json(Address(), "0x0a")
    '0xa'
    """

    move_type = "address"
    words = "string<address>"

    def from_json(self, value: Any) -> str:
        return _converted(value, ids.parse_address)

    def to_json(self, value: Any) -> str:
        return _converted(value, ids.wire_address)

    def argument(self, value: Any) -> str:
        """Convert an address, or an object with an address as ``inner``, to the JSON of an argument."""
        given = value["inner"] if isinstance(value, Mapping) and set(value) == {"inner"} else value
        if isinstance(given, str):
            with contextlib.suppress(InputError):
                return ids.parse_address(given)
        raise Mismatch(f"expected an address, got {describe(value)}; pass 0x and 1 to 64 hex digits")


ADDRESS = Address()


class ObjectOf(_AddressBytes, frozen=True):
    """The layout of ``0x1::object::Object<T>``, which is the address of an object.

    Examples
    --------
    >>> from toolkit.move import ObjectOf, decode_json
    >>> decode_json(ObjectOf(), {"inner": "0x0a"})
    '0xa'
    """

    move_type = "0x1::object::Object"

    def from_json(self, value: Any) -> str:
        if type(value) is dict and len(value) == 1 and "inner" in value:
            try:
                return _converted(value["inner"], ids.parse_address)
            except Mismatch as mismatch:
                raise mismatch.at("inner") from None
        if type(value) is str:
            return _converted(value, ids.parse_address)
        raise self._misfit(value)

    def to_json(self, value: Any) -> dict[str, str]:
        return {"inner": _converted(value, ids.wire_address)}

    def argument(self, value: Any) -> dict[str, str]:
        return {"inner": ADDRESS.argument(value)}

    def from_argument(self, value: Any) -> str:
        if type(value) is dict and "inner" in value:
            return ADDRESS.from_json(value["inner"])
        raise self._misfit(value)

    def _misfit(self, value: Any) -> Mismatch:
        return Mismatch(f'expected an object address, as {{"inner": string<address>}}, got {describe(value)}')


def _converted(address: Any, convert: Callable[[str], str]) -> str:
    """Return ``convert(address)``; raise `Mismatch` if it is not an address."""
    if type(address) is str:
        try:
            return convert(address)
        except InputError:
            pass
    raise Mismatch(f"expected string<address>, got {describe(address)}")


class Bytes(Plain, frozen=True):
    """The layout of ``vector<u8>``.

    Examples
    --------
    >>> from toolkit.move import Bytes, decode_json
    >>> decode_json(Bytes(), "0x0a0b").hex()
    '0a0b'
    """

    move_type = "vector<u8>"
    words = "string<hex>"

    def from_json(self, value: Any) -> bytes:
        if type(value) is str and value[:2] == "0x":
            try:
                data = bytes.fromhex(value[2:])
            except ValueError:
                data = b""
            # fromhex() skips white space; the comparison of lengths finds that, and an odd digit.
            if len(data) * 2 == len(value) - 2:
                return data
        raise Mismatch(f"expected string<hex>, got {describe(value)}")

    def to_json(self, value: Any) -> str:
        if isinstance(value, (bytes, bytearray)):
            return f"0x{value.hex()}"
        raise Mismatch(f"expected bytes, got {describe(value)}")

    def read(self, data: bytes, position: int) -> tuple[bytes, int]:
        length, start = read_length(data, position)
        return data[start : start + length], start + length

    def write(self, value: Any, out: bytearray) -> None:
        if not isinstance(value, (bytes, bytearray)):
            raise Mismatch(f"expected bytes, got {describe(value)}")
        if len(value) > MAX_LENGTH:
            raise Mismatch(f"expected at most {MAX_LENGTH:,} bytes, the limit of BCS, got {len(value):,}")
        out += uleb128(len(value))
        out += value

    def argument(self, value: Any) -> str:
        if isinstance(value, (bytes, bytearray, memoryview)):
            return ids.format_hex(bytes(value))
        if isinstance(value, str) and value.startswith("0x"):
            with contextlib.suppress(InputError):
                return ids.format_hex(ids.parse_hex(value))
        raise Mismatch(f"expected vector<u8>, got {describe(value)}; pass bytes, or 0x and two hex digits per byte")

    def from_argument(self, value: Any) -> bytes:
        bare = type(value) is str and not value.startswith("0x")
        return self.from_json(f"0x{value}" if bare else value)


BYTES = Bytes()


class String(Plain, frozen=True):
    """The layout of ``0x1::string::String``.

    Examples
    --------
    >>> from toolkit.move import String, encode_bcs
    >>> encode_bcs(String(), "ab").hex()
    '026162'
    """

    move_type = "0x1::string::String"

    def from_json(self, value: Any) -> str:
        if type(value) is str:
            return value
        raise Mismatch(f"expected a string, got {describe(value)}")

    def read(self, data: bytes, position: int) -> tuple[str, int]:
        raw, end = BYTES.read(data, position)
        try:
            return raw.decode(), end
        except UnicodeDecodeError:
            # Nodes print this text in JSON, so JSON and BCS give equal values.
            return f"Unparsable utf-8 0x{raw.hex()}", end

    def write(self, value: Any, out: bytearray) -> None:
        try:
            BYTES.write(self.from_json(value).encode(), out)
        except UnicodeEncodeError:
            raise Mismatch("a string with a lone surrogate cannot be encoded as UTF-8") from None

    def argument(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        advice = """pass a string ('"5"' on the command line)"""
        raise Mismatch(f"expected 0x1::string::String, got {describe(value)}; {advice}")


Scalar: TypeAlias = Bool | UInt | Int | Address | ObjectOf | Bytes | String
