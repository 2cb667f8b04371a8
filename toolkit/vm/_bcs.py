"""BCS for the machine: bounded input, output, and type tags."""

from __future__ import annotations

from toolkit.move._bcs import uleb128
from toolkit.vm._errors import MoveError
from toolkit.vm._types import PRIMITIVES, Function, ModuleId, Primitive, Reference, Struct, Type, Vector

MAX_LENGTH = (1 << 31) - 1


class Input:
    """BCS data that is being read."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes | bytearray, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, length: int) -> bytes:
        """Return the next bytes.

        Raises
        ------
        MoveError
            If fewer bytes remain.
        """
        start = self.position
        self.position = stop = start + length
        if stop > len(self.data):
            raise undecodable("the data ends early")
        return bytes(self.data[start:stop])

    def uleb(self) -> int:
        """Read a canonical ULEB128 below 2^31."""
        value = shift = 0
        while shift < 35:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if (byte == 0 and shift) or value > MAX_LENGTH:
                    break
                return value
            shift += 7
        raise undecodable("not a length")

    def length(self) -> int:
        """Read the length of a sequence, whose items have at least one byte each."""
        length = self.uleb()
        if length > len(self.data) - self.position:
            raise undecodable("the data ends early")
        return length


class Output(bytearray):
    """BCS data that is being written; `legacy` signers are bare addresses."""

    __slots__ = ("legacy",)

    def __init__(self, *, legacy: bool = False) -> None:
        super().__init__()
        self.legacy = legacy


def undecodable(message: str) -> MoveError:
    """Return the error for bytes that are not a value of the type."""
    return MoveError("FAILED_TO_DESERIALIZE_RESOURCE", message)


def text(source: Input) -> str:
    """Read a string."""
    try:
        return source.take(source.length()).decode()
    except UnicodeDecodeError:
        raise undecodable("not UTF-8") from None


def write_text(value: str, output: bytearray) -> None:
    """Write a string."""
    raw = value.encode()
    output += uleb128(len(raw))
    output += raw


# Type tags as BCS.

_TAGS = {"bool": 0, "u8": 1, "u64": 2, "u128": 3, "address": 4, "signer": 5, "u16": 8, "u32": 9, "u256": 10}
_TAGS |= {"i8": 12, "i16": 13, "i32": 14, "i64": 15, "i128": 16, "i256": 17}
_TAG_NAMES = {index: name for name, index in _TAGS.items()}
_VECTOR_TAG, _STRUCT_TAG, _FUNCTION_TAG = 6, 7, 11
_REFERENCE, _MUTABLE_REFERENCE, _VALUE = 0, 1, 2  # forms of parameters and results of a function type
MAX_TAG_DEPTH = 128


def tag_bytes(kind: Type) -> bytes:
    """Return a type as the BCS of a type tag."""
    if isinstance(kind, Primitive):
        return bytes((_TAGS[kind.name],))
    if isinstance(kind, Vector):
        return bytes((_VECTOR_TAG,)) + tag_bytes(kind.element)
    if isinstance(kind, Struct):
        return bytes((_STRUCT_TAG,)) + struct_tag_bytes(kind)
    if isinstance(kind, Function):
        output = bytearray((_FUNCTION_TAG,))
        for kinds in (kind.parameters, kind.results):
            output += uleb128(len(kinds))
            for one in kinds:
                if isinstance(one, Reference):
                    output.append(_MUTABLE_REFERENCE if one.mutable else _REFERENCE)
                    output += tag_bytes(one.target)
                else:
                    output.append(_VALUE)
                    output += tag_bytes(one)
        output.append(kind.abilities)
        return bytes(output)
    raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", f"{kind} has no type tag")


def struct_tag_bytes(kind: Struct) -> bytes:
    """Return a struct type as the BCS of a struct tag."""
    output = bytearray(kind.module.address)
    write_text(kind.module.name, output)
    write_text(kind.name, output)
    output += uleb128(len(kind.arguments))
    for argument in kind.arguments:
        output += tag_bytes(argument)
    return bytes(output)


def read_tag(source: Input, depth: int = 0) -> Type:
    """Read a type tag.

    Raises
    ------
    MoveError
        If the data is not a type tag.
    """
    if depth > MAX_TAG_DEPTH:
        raise undecodable("a type tag is nested too deeply")
    index = source.uleb()
    if index in _TAG_NAMES:
        return PRIMITIVES[_TAG_NAMES[index]]
    if index == _VECTOR_TAG:
        return Vector(read_tag(source, depth + 1))
    if index == _STRUCT_TAG:
        module, name = ModuleId(source.take(32), text(source)), text(source)
        arguments = tuple(read_tag(source, depth + 1) for _ in range(source.length()))
        return Struct(module, name, arguments)
    if index == _FUNCTION_TAG:
        lists = []
        for _ in range(2):
            kinds: list[Type] = []
            for _ in range(source.length()):
                form = source.uleb()
                kind = read_tag(source, depth + 1)
                kinds.append(kind if form == _VALUE else Reference(kind, form == _MUTABLE_REFERENCE))
            lists.append(tuple(kinds))
        return Function(*lists, source.take(1)[0])
    raise undecodable("not a type tag")
