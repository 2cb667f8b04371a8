"""A reader of the binary format that trusts no byte: each read is bounded, each number canonical."""

from __future__ import annotations

from toolkit.vm._errors import MoveError

MAX_INDEX = 0xFFFF
MAX_U64 = (1 << 64) - 1


def malformed(message: str) -> MoveError:
    """Return the error for bytes that are not a module or script."""
    return MoveError("CODE_DESERIALIZATION_ERROR", message)


class BinaryReader:
    """Reads a part of a module or script; every method advances the position.

    Raises
    ------
    MoveError
        From every method, if the part ends early or a number is out of range.
    """

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self.data = data
        self.position = start
        self.end = len(data) if end is None else end

    @property
    def at_end(self) -> bool:
        """Whether the part has been read."""
        return self.position >= self.end

    def u8(self) -> int:
        """Read a byte."""
        position = self.position
        if position >= self.end:
            raise malformed(f"byte {position}: the data ends early")
        self.position = position + 1
        return self.data[position]

    def fixed(self, length: int) -> bytes:
        """Read `length` bytes."""
        start, stop = self.position, self.position + length
        if stop > self.end:
            raise malformed(f"byte {start}: expected {length} bytes, got {self.end - start}")
        self.position = stop
        return self.data[start:stop]

    def uleb(self, maximum: int = MAX_INDEX) -> int:
        """Read a number in ULEB128; `maximum` is the largest that is accepted."""
        value = shift = 0
        while True:
            byte = self.u8()
            value |= (byte & 0x7F) << shift
            if value > maximum:
                raise malformed(f"byte {self.position}: expected a number up to {maximum}, got a larger one")
            if byte < 0x80:
                if byte == 0 and shift:
                    raise malformed(f"byte {self.position}: the number is not in its shortest form")
                return value
            shift += 7
            if shift > 63:  # a u64 has at most ten bytes; without this, zeros would never end
                raise malformed(f"byte {self.position}: the number is too long")

    def bytes(self, maximum: int = MAX_INDEX) -> bytes:
        """Read a length, then as many bytes."""
        return self.fixed(self.uleb(maximum))
