"""BCS primitives and type tags. Sizes are bounded, only canonical data is accepted, and errors state their position.

Format: https://github.com/diem/bcs. `decode_bcs` and `encode_bcs` of `toolkit.move` use these functions to read and
write values according to their layouts.
"""

from __future__ import annotations

from toolkit._present.messages import describe
from toolkit._present.text import plural
from toolkit.errors import InputError, SchemaError
from toolkit.move import _type_tags as tags
from toolkit.move._ids import ADDRESS_LENGTH, address_from_bytes, address_to_bytes

MAX_LENGTH = (1 << 31) - 1  # largest length of a sequence in BCS

_MAX_U32 = (1 << 32) - 1
_CONTINUES = 0x80
_LAST_SHIFT = 28  # of the fifth byte: five times 7 bits hold a u32
# The signed ones and those after `signer` came later; what is between them has parts.
_PRIMITIVES = dict(enumerate(("bool", "u8", "u64", "u128", "address", "signer"))) | {8: "u16", 9: "u32", 10: "u256"}
_PRIMITIVES |= dict(enumerate(tags.SIGNED, 12))
_INDEX = {name: index for index, name in _PRIMITIVES.items()}
_VECTOR, _STRUCT, _FUNCTION = 6, 7, 11
_REFERENCE, _MUTABLE_REFERENCE, _VALUE = 0, 1, 2


def uleb128(value: int) -> bytes:
    """Encode a u32 (a length or an enum index) as ULEB128.

    Examples
    --------
    >>> uleb128(300).hex()
    'ac02'
    """
    if value < _CONTINUES:
        return bytes((value,))
    out = bytearray()
    while value >= _CONTINUES:
        out.append(value & 0x7F | _CONTINUES)
        value >>= 7
    out.append(value)
    return bytes(out)


def uleb128_at(data: bytes, position: int) -> tuple[int, int]:
    """Read a canonical ULEB128 u32; return the number and the position after it.

    Raises
    ------
    SchemaError
        If the data ends early, or the number is not in its shortest form or is larger than a u32.
    """
    value = shift = 0
    start = position
    for byte in data[position : position + 5]:
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < _CONTINUES:
            if byte == 0 and shift:
                raise SchemaError(f"byte {start}: the ULEB128 number is not in its shortest form")
            if value > _MAX_U32:
                raise SchemaError(f"byte {start}: the ULEB128 number is larger than a u32")
            return value, position
        shift += 7
    if shift > _LAST_SHIFT:
        raise SchemaError(f"byte {start}: the ULEB128 number is larger than a u32")
    raise SchemaError(f"byte {start}: the data ends inside a ULEB128")


class Reader:
    """A reader of BCS data. Every method reads one item and advances the position.

    Parameters
    ----------
    data : bytes
        The BCS data.
    position : int, default 0
        Position of the first item.

    Raises
    ------
    SchemaError
        From every method, if the data ends early or is not canonical. The message states the position.

    Examples
    --------
    >>> reader = Reader(bytes.fromhex("0500026869"))
    >>> reader.u16(), reader.string(), reader.remaining
    (5, 'hi', 0)
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = bytes(data)
        self.position = position

    @property
    def remaining(self) -> int:
        """Number of bytes that have not been read yet."""
        return len(self.data) - self.position

    def fixed(self, length: int) -> bytes:
        """Read `length` bytes.

        Raises
        ------
        SchemaError
            If fewer bytes remain.
        """
        end = self.position + length
        chunk = self.data[self.position : end]
        if len(chunk) != length:
            wanted = plural(length, "byte")
            raise SchemaError(f"byte {self.position}: expected {wanted}, but only {self.remaining} left")
        self.position = end
        return chunk

    def u8(self) -> int:
        """Read a u8."""
        return self.fixed(1)[0]

    def u16(self) -> int:
        """Read a u16."""
        return int.from_bytes(self.fixed(2), "little")

    def u64(self) -> int:
        """Read a u64."""
        return int.from_bytes(self.fixed(8), "little")

    def bool(self) -> bool:
        """Read a bool, which is a byte 0 or 1.

        Raises
        ------
        SchemaError
            If the byte is neither 0 nor 1.
        """
        byte = self.u8()
        if byte > 1:
            raise SchemaError(f"byte {self.position - 1}: expected a bool, 0 or 1, got {byte}")
        return byte == 1

    def uleb128(self) -> int:
        """Read a ULEB128 u32."""
        value, self.position = uleb128_at(self.data, self.position)
        return value

    def length(self) -> int:
        """Read the length of a sequence whose elements take at least one byte each.

        Raises
        ------
        SchemaError
            If the length exceeds the number of bytes that remain.
        """
        start = self.position
        value = self.uleb128()
        if value > self.remaining:
            raise SchemaError(f"byte {start}: length {value} exceeds the {plural(self.remaining, 'byte')} left")
        return value

    def bytes(self) -> bytes:
        """Read a length and that many bytes."""
        return self.fixed(self.length())

    def string(self) -> str:
        """Read a UTF-8 string.

        Raises
        ------
        SchemaError
            If the bytes are not UTF-8.
        """
        start = self.position
        try:
            return self.bytes().decode()
        except UnicodeDecodeError:
            raise SchemaError(f"byte {start}: the string is not UTF-8") from None

    def address(self) -> str:
        """Read an address; return its canonical form."""
        return address_from_bytes(self.fixed(ADDRESS_LENGTH))

    def end(self) -> None:
        """Raise SchemaError if any bytes have not been read."""
        if self.remaining:
            raise SchemaError(f"byte {self.position}: expected the end of the data; trailing bytes: {self.remaining}")


class Writer:
    """A writer of BCS data. Every method appends one item.

    Raises
    ------
    SchemaError
        From every method, if the value does not fit.

    Examples
    --------
    >>> writer = Writer()
    >>> writer.u16(5)
    >>> writer.string("hi")
    >>> writer.getvalue().hex()
    '0500026869'
    """

    __slots__ = ("out",)

    def __init__(self) -> None:
        self.out = bytearray()

    def getvalue(self) -> bytes:
        """Return the data written so far."""
        return bytes(self.out)

    def fixed(self, data: bytes) -> None:
        """Write bytes without their length."""
        self.out += data

    def _unsigned(self, value: int, bits: int) -> None:
        if type(value) is not int:
            raise SchemaError(f"expected u{bits} as an int, got {describe(value)}")
        try:
            self.out += value.to_bytes(bits // 8, "little")
        except OverflowError:
            raise SchemaError(f"{describe(value)} is out of range for u{bits}") from None

    def u8(self, value: int) -> None:
        """Write a u8."""
        self._unsigned(value, 8)

    def u16(self, value: int) -> None:
        """Write a u16."""
        self._unsigned(value, 16)

    def u64(self, value: int) -> None:
        """Write a u64."""
        self._unsigned(value, 64)

    def bool(self, value: bool) -> None:
        """Write a bool."""
        self.out.append(1 if value else 0)

    def uleb128(self, value: int) -> None:
        """Write a u32 in ULEB128.

        Raises
        ------
        SchemaError
            If the value is not a u32.
        """
        if not 0 <= value <= _MAX_U32:
            raise SchemaError(f"{describe(value)} is out of range for u32")
        self.out += uleb128(value)

    def bytes(self, data: bytes) -> None:
        """Write bytes, preceded by their length.

        Raises
        ------
        SchemaError
            If there are more bytes than BCS allows.
        """
        if len(data) > MAX_LENGTH:
            raise SchemaError(f"expected at most {MAX_LENGTH:,} bytes, the limit of BCS, got {len(data):,}")
        self.out += uleb128(len(data)) + data

    def string(self, text: str) -> None:
        """Write a string as UTF-8, preceded by its length in bytes.

        Raises
        ------
        SchemaError
            If the text has characters that UTF-8 cannot encode.
        """
        try:
            self.bytes(text.encode())
        except UnicodeEncodeError:
            raise SchemaError("a string with a lone surrogate cannot be encoded as UTF-8") from None

    def address(self, text: str) -> None:
        """Write an address, given in any accepted form."""
        self.out += address_to_bytes(text)


def read_type_tag(reader: Reader, depth: int = 0) -> tags.TypeTag:
    """Read a type tag at the position of `reader`.

    Parameters
    ----------
    reader : Reader
        The reader, which is advanced past the tag.
    depth : int, default 0
        Number of types that enclose the tag.

    Returns
    -------
    TypeTag

    Raises
    ------
    SchemaError
        If the bytes are not a type tag, or the type nests deeper than `MAX_TYPE_DEPTH`.

    Examples
    --------
    >>> read_type_tag(Reader(bytes([6, 1])))
    Vector(element=Primitive(name='u8'))
    """
    start = reader.position
    if depth > tags.MAX_TYPE_DEPTH:
        raise SchemaError(f"byte {start}: type {tags.TOO_DEEP}")
    index = reader.uleb128()
    if index in _PRIMITIVES:
        return tags.Primitive(_PRIMITIVES[index])
    if index == _VECTOR:
        return tags.Vector(read_type_tag(reader, depth + 1))
    if index == _STRUCT:
        return read_struct_tag(reader, depth)
    if index == _FUNCTION:
        arguments = tuple(_read_parameter(reader, depth) for _ in range(reader.length()))
        results = tuple(_read_parameter(reader, depth) for _ in range(reader.length()))
        position, bits = reader.position, reader.u8()
        if bits >= 1 << len(tags.ABILITIES):
            raise SchemaError(f"byte {position}: unknown abilities {bits:#x}")
        abilities = tuple(ability for bit, ability in enumerate(tags.ABILITIES) if bits >> bit & 1)
        return tags.FunctionType(arguments, results, abilities)
    raise SchemaError(f"byte {start}: unknown type tag {index}")


def read_struct_tag(reader: Reader, depth: int = 0) -> tags.StructTag:
    """Read a struct tag: a type tag without its variant; see `read_type_tag`."""
    start = reader.position
    address, module, name = reader.address(), reader.string(), reader.string()
    arguments = tuple(read_type_tag(reader, depth + 1) for _ in range(reader.length()))
    try:
        return tags.StructTag(address, module, name, arguments)
    except InputError as error:
        raise SchemaError(f"byte {start}: {error}") from None


def _read_parameter(reader: Reader, depth: int) -> tags.TypeTag:
    start = reader.position
    kind = reader.uleb128()
    if kind > _VALUE:
        raise SchemaError(f"byte {start}: unknown parameter kind {kind} in a function type")
    tag = read_type_tag(reader, depth + 1)
    return tag if kind == _VALUE else tags.Reference(tag, kind == _MUTABLE_REFERENCE)


def write_type_tag(writer: Writer, tag: tags.TypeTag, depth: int = 0) -> None:
    """Append a type tag to `writer`.

    Parameters
    ----------
    writer : Writer
        The writer to append to.
    tag : TypeTag
        The type to write.
    depth : int, default 0
        Number of types that enclose the tag.

    Raises
    ------
    InputError
        If the type contains something that occurs only in ABIs (a type parameter, a reference outside a function type),
        or nests deeper than `MAX_TYPE_DEPTH`.

    Examples
    --------
    >>> from toolkit.move import parse_type_tag
    >>> from toolkit.move._bcs import Writer, write_type_tag
    >>> writer = Writer()
    >>> write_type_tag(writer, parse_type_tag("vector<u8>"))
    >>> writer.getvalue().hex()
    '0601'
    """
    if depth > tags.MAX_TYPE_DEPTH:
        raise InputError(f"type {tags.TOO_DEEP}")
    match tag:
        case tags.Primitive(name):
            writer.uleb128(_INDEX[name])
        case tags.Vector(element):
            writer.uleb128(_VECTOR)
            write_type_tag(writer, element, depth + 1)
        case tags.StructTag(address, module, name, arguments):
            writer.uleb128(_STRUCT)
            writer.address(address)
            writer.string(module)
            writer.string(name)
            writer.uleb128(len(arguments))
            for argument in arguments:
                write_type_tag(writer, argument, depth + 1)
        case tags.FunctionType(arguments, results, abilities):
            writer.uleb128(_FUNCTION)
            for parameters in (arguments, results):
                writer.uleb128(len(parameters))
                for parameter in parameters:
                    _write_parameter(writer, parameter, depth)
            writer.u8(sum(1 << tags.ABILITIES.index(ability) for ability in abilities))
        case tags.TypeParameter() | tags.Reference():
            raise InputError(f"type {tag} is only allowed in ABIs and cannot be sent")


def _write_parameter(writer: Writer, tag: tags.TypeTag, depth: int) -> None:
    target, kind = tag, _VALUE
    if isinstance(tag, tags.Reference):
        target, kind = tag.target, _MUTABLE_REFERENCE if tag.mutable else _REFERENCE
    writer.uleb128(kind)
    write_type_tag(writer, target, depth + 1)
