"""Reading and writing the primitives of BCS: bounded, canonical, and saying at which byte something is wrong."""

from __future__ import annotations

from toolkit._present.messages import describe
from toolkit.errors import SchemaError
from toolkit.move.address import ADDRESS_LENGTH, address_from_bytes, address_to_bytes

__all__ = ["MAX_LENGTH", "Reader", "Writer", "uleb128", "uleb128_at"]

MAX_LENGTH = (1 << 31) - 1
"""Longest sequence BCS allows."""

_MAX_U32 = (1 << 32) - 1
_CONTINUES = 0x80
_LAST_SHIFT = 28


def uleb128(value: int) -> bytes:
    """Return a u32 (lengths, enum indices) in ULEB128."""
    if value < _CONTINUES:
        return bytes((value,))
    out = bytearray()
    while value >= _CONTINUES:
        out.append(value & 0x7F | _CONTINUES)
        value >>= 7
    out.append(value)
    return bytes(out)


def uleb128_at(data: bytes, position: int) -> tuple[int, int]:
    """Read a canonical ULEB128 u32; return it and the position after it.

    Raises
    ------
    SchemaError
        If it is cut off, not in its shortest form, or larger than a u32.
    """
    value = shift = 0
    start = position
    for byte in data[position : position + 5]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            if byte == 0 and shift:
                raise SchemaError(f"byte {start}: ULEB128 is not in its shortest form")
            if value > _MAX_U32:
                raise SchemaError(f"byte {start}: ULEB128 is larger than a u32")
            return value, position
        shift += 7
    if shift > _LAST_SHIFT:
        raise SchemaError(f"byte {start}: ULEB128 is larger than a u32")
    raise SchemaError(f"byte {start}: the data ends inside a ULEB128")


class Reader:
    """Walks over BCS data; every method reads one thing and steps over it.

    Parameters
    ----------
    data : bytes
        The whole data.
    position : int, default 0
        Where to start.

    Raises
    ------
    SchemaError
        From every method, if the data ends early or is not canonical; it names the byte.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = bytes(data)
        self.position = position

    @property
    def remaining(self) -> int:
        """Bytes not read yet."""
        return len(self.data) - self.position

    def fixed(self, length: int) -> bytes:
        """Read `length` bytes."""
        end = self.position + length
        chunk = self.data[self.position : end]
        if len(chunk) != length:
            raise SchemaError(f"byte {self.position}: expected {length} bytes, {self.remaining} left")
        self.position = end
        return chunk

    def uint(self, bits: int) -> int:
        """Read an unsigned integer of `bits` bits."""
        return int.from_bytes(self.fixed(bits // 8), "little")

    def sint(self, bits: int) -> int:
        """Read a signed integer of `bits` bits."""
        return int.from_bytes(self.fixed(bits // 8), "little", signed=True)

    def u8(self) -> int:
        """Read a u8."""
        return self.fixed(1)[0]

    def u16(self) -> int:
        """Read a u16."""
        return self.uint(16)

    def u32(self) -> int:
        """Read a u32."""
        return self.uint(32)

    def u64(self) -> int:
        """Read a u64."""
        return self.uint(64)

    def u128(self) -> int:
        """Read a u128."""
        return self.uint(128)

    def u256(self) -> int:
        """Read a u256."""
        return self.uint(256)

    def i8(self) -> int:
        """Read an i8."""
        return self.sint(8)

    def i16(self) -> int:
        """Read an i16."""
        return self.sint(16)

    def i32(self) -> int:
        """Read an i32."""
        return self.sint(32)

    def i64(self) -> int:
        """Read an i64."""
        return self.sint(64)

    def i128(self) -> int:
        """Read an i128."""
        return self.sint(128)

    def i256(self) -> int:
        """Read an i256."""
        return self.sint(256)

    def bool(self) -> bool:
        """Read a bool, which is a byte 0 or 1."""
        byte = self.u8()
        if byte > 1:
            raise SchemaError(f"byte {self.position - 1}: a bool is 0 or 1, got {byte}")
        return byte == 1

    def uleb128(self) -> int:
        """Read a ULEB128 u32."""
        value, self.position = uleb128_at(self.data, self.position)
        return value

    def length(self) -> int:
        """Read the length of a sequence whose elements take at least one byte each."""
        start = self.position
        value = self.uleb128()
        if value > self.remaining:
            raise SchemaError(f"byte {start}: a length of {value}, but {self.remaining} bytes left")
        return value

    def bytes(self) -> bytes:
        """Read bytes with their length before them."""
        return self.fixed(self.length())

    def string(self) -> str:
        """Read a text; it must be UTF-8."""
        start = self.position
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise SchemaError(f"byte {start}: a text that is not UTF-8") from None

    def address(self) -> str:
        """Read an address; return its canonical spelling."""
        return address_from_bytes(self.fixed(ADDRESS_LENGTH))

    def end(self) -> None:
        """Refuse bytes that follow."""
        if self.remaining:
            raise SchemaError(f"byte {self.position}: the data goes on after its end ({self.remaining} bytes)")


class Writer:
    """Collects BCS data; every method appends one thing.

    Raises
    ------
    SchemaError
        From every method, if the value does not fit.
    """

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out = bytearray()

    def getvalue(self) -> bytes:
        """Return what was written."""
        return bytes(self.out)

    def fixed(self, data: bytes) -> None:
        """Write bytes as they are."""
        self.out += data

    def uint(self, value: int, bits: int) -> None:
        """Write an unsigned integer of `bits` bits."""
        self._integer(value, bits, signed=False)

    def sint(self, value: int, bits: int) -> None:
        """Write a signed integer of `bits` bits."""
        self._integer(value, bits, signed=True)

    def _integer(self, value: int, bits: int, *, signed: bool) -> None:
        if type(value) is not int:
            raise SchemaError(f"expect {'i' if signed else 'u'}{bits} as an int, got {describe(value)}")
        try:
            self.out += value.to_bytes(bits // 8, "little", signed=signed)
        except OverflowError:
            raise SchemaError(f"{describe(value)} is outside {'i' if signed else 'u'}{bits}") from None

    def u8(self, value: int) -> None:
        """Write a u8."""
        self.uint(value, 8)

    def u16(self, value: int) -> None:
        """Write a u16."""
        self.uint(value, 16)

    def u32(self, value: int) -> None:
        """Write a u32."""
        self.uint(value, 32)

    def u64(self, value: int) -> None:
        """Write a u64."""
        self.uint(value, 64)

    def u128(self, value: int) -> None:
        """Write a u128."""
        self.uint(value, 128)

    def u256(self, value: int) -> None:
        """Write a u256."""
        self.uint(value, 256)

    def i8(self, value: int) -> None:
        """Write an i8."""
        self.sint(value, 8)

    def i16(self, value: int) -> None:
        """Write an i16."""
        self.sint(value, 16)

    def i32(self, value: int) -> None:
        """Write an i32."""
        self.sint(value, 32)

    def i64(self, value: int) -> None:
        """Write an i64."""
        self.sint(value, 64)

    def i128(self, value: int) -> None:
        """Write an i128."""
        self.sint(value, 128)

    def i256(self, value: int) -> None:
        """Write an i256."""
        self.sint(value, 256)

    def bool(self, value: bool) -> None:  # the value itself, not an option
        """Write a bool."""
        self.out.append(1 if value else 0)

    def uleb128(self, value: int) -> None:
        """Write a u32 in ULEB128."""
        if not 0 <= value <= _MAX_U32:
            raise SchemaError(f"{describe(value)} is outside u32")
        self.out += uleb128(value)

    def bytes(self, data: bytes) -> None:
        """Write bytes with their length before them."""
        if len(data) > MAX_LENGTH:
            raise SchemaError(f"{len(data)} bytes are more than BCS allows ({MAX_LENGTH})")
        self.out += uleb128(len(data))
        self.out += data

    def string(self, text: str) -> None:
        """Write a text in UTF-8."""
        try:
            self.bytes(text.encode())
        except UnicodeEncodeError:
            raise SchemaError("a text with a lone surrogate has no UTF-8") from None

    def address(self, text: str) -> None:
        """Write an address in any accepted spelling."""
        self.out += address_to_bytes(text)
