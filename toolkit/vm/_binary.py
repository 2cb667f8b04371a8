"""The binary format of modules and scripts: what each table and operand consists of, declared once for both directions.

The reader trusts no byte: each read is bounded, each number canonical, and every index is looked up here, once, so that
what runs need not: an instruction's operand exists, a branch lands in its function, and a field is in its struct. What
only the verifier of a node checks is not checked. The writer makes the tables of the records that it is given; an entry
is written once and found again by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toolkit.errors import Unsupported
from toolkit.move._bcs import uleb128
from toolkit.vm import _code as records
from toolkit.vm import _types as t
from toolkit.vm._bcs import listed
from toolkit.vm._code import BYTES_OF, MAX_VERSION, MIN_VERSION, OPCODES, Instruction
from toolkit.vm._errors import MoveError

MAGIC = bytes.fromhex("a11ceb0b")
MAX_INDEX = 0xFFFF
MAX_U64 = (1 << 64) - 1
MAX_TYPE_NESTING = 256
_FLAVOR = 0x0A000000  # bits beside the version that some compilers set, for the name of the ledger

# Bytes of the tables of a file.
MODULES, STRUCTS, FUNCTIONS, FUNCTION_INSTANCES, SIGNATURES, CONSTANTS, IDENTIFIERS, ADDRESSES = range(1, 9)
STRUCT_DEFINITIONS, STRUCT_INSTANCES, FUNCTION_DEFINITIONS, FIELDS, FIELD_INSTANCES, FRIENDS, METADATA = range(
    0xA, 0x11
)
VARIANT_FIELDS, VARIANT_FIELD_INSTANCES, VARIANTS, VARIANT_INSTANCES = range(0x11, 0x15)
SCRIPT_TABLES = {*range(1, 9), METADATA}

_NATIVE, _ENTRY = 2, 4  # flags of functions
_NATIVE_STRUCT, _STRUCT, _ENUM = 1, 2, 3  # forms of structs

# Bytes of types.
_TYPES = {1: "bool", 2: "u8", 3: "u64", 4: "u128", 5: "address", 0xC: "signer", 0xD: "u16", 0xE: "u32", 0xF: "u256"}
_TYPES |= {0x11: "i8", 0x12: "i16", 0x13: "i32", 0x14: "i64", 0x15: "i128", 0x16: "i256"}
_TYPE_BYTES = {name: bytes((byte,)) for byte, name in _TYPES.items()}
_REFERENCE, _MUTABLE_REFERENCE, _STRUCT_TYPE, _PARAMETER, _VECTOR, _STRUCT_INSTANCE, _FUNCTION = 6, 7, 8, 9, 10, 11, 16


def malformed(message: str) -> MoveError:
    """Return the error for bytes that are not a module or script."""
    return MoveError("CODE_DESERIALIZATION_ERROR", message)


def version_of(code: bytes) -> int:
    """Return the version of a module or script; 0 if the bytes do not start like one."""
    if code[:4] != MAGIC or len(code) < 8:
        return 0
    return int.from_bytes(code[4:8], "little") & ~_FLAVOR


class BinaryReader:
    """Reads a part of a file; every method advances the position.

    Raises
    ------
    MoveError
        From every method, if the part ends early or a number is out of range.
    """

    __slots__ = ("data", "end", "file", "position")

    def __init__(self, file: File, start: int, end: int) -> None:
        self.file, self.data, self.position, self.end = file, file.code, start, end

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


class File:
    """The tables of a file, each read when it is first needed, whatever their order in the file.

    Attributes
    ----------
    code : bytes
    version : int
        Version of the format.
    tail : BinaryReader
        What follows the tables.
    own : ModuleId or None
        The module itself.
    """

    def __init__(self, code: bytes, allowed: set[int] | None = None) -> None:
        self.code = code
        self.version = version_of(code)
        self.own: t.ModuleId | None = None
        if code[:4] != MAGIC:
            raise malformed("byte 0: expected a11ceb0b")
        if not MIN_VERSION <= self.version <= MAX_VERSION:
            raise Unsupported(f"bytecode version {self.version}; versions {MIN_VERSION} to {MAX_VERSION} are supported")
        reader = BinaryReader(self, 8, len(code))
        headers = [(reader.u8(), reader.uleb(1 << 32), reader.uleb(1 << 32)) for _ in range(reader.uleb(255))]
        base = end = reader.position
        self._ranges: dict[int, tuple[int, int]] = {}
        self._tables: dict[int, list[Any]] = {}
        for kind, start, length in sorted(headers, key=lambda header: header[1]):
            if base + start != end or not length or kind in self._ranges:
                raise malformed(f"table {kind:#x} is empty, repeated, or not next to the one before")
            later = kind > METADATA and self.version < 7  # variants came with version 7
            if kind not in (allowed or _TABLES) or later:
                raise malformed(f"unknown table {kind:#x}")
            end += length
            self._ranges[kind] = (base + start, end)
        if end > len(self.code):
            raise malformed("a table ends after the file")
        self.tail = BinaryReader(self, end, len(code))

    def table(self, kind: int) -> list[Any]:
        """Return the entries of a table."""
        if kind not in self._tables:
            self._tables[kind] = items = []
            reader = BinaryReader(self, *self._ranges.get(kind, (0, 0)))
            while reader.position < reader.end:
                items.append(_TABLES[kind].read(reader))
        return self._tables[kind]

    def read_all(self) -> None:
        """Read all tables, also those that nothing refers to."""
        for kind in self._ranges:
            self.table(kind)


class FileWriter:
    """Makes the tables of a file.

    Parameters
    ----------
    version : int
        Version of the format.
    struct_handles : iterable of StructHandle
        The structs that types name.
    """

    def __init__(self, version: int, struct_handles: Any) -> None:
        self.version = version
        self.handles = {(one.module, one.name): one for one in struct_handles}
        self._tables: dict[int, dict[bytes, int]] = {}

    def index(self, kind: int, value: Any) -> int:
        """Return the index of an entry of a table, which is added if it is new."""
        data = _TABLES[kind].write(self, value)
        table = self._tables.setdefault(kind, {})
        return table.setdefault(data, len(table))

    def file(self, tail: bytes) -> bytes:
        """Return the file: header, tables and tail."""
        start, headers, body = 0, bytearray(), bytearray()
        for kind, entries in sorted(self._tables.items()):
            content = b"".join(entries)
            headers += bytes((kind,)) + uleb128(start) + uleb128(len(content))
            body += content
            start += len(content)
        return bytes(MAGIC + self.version.to_bytes(4, "little") + uleb128(len(self._tables)) + headers + body + tail)


class Form(NamedTuple):
    """How a value is read, and written to bytes."""

    read: Callable[[BinaryReader], Any]
    write: Callable[[FileWriter, Any], bytes]


def _number(maximum: int = MAX_INDEX) -> Form:
    return Form(lambda reader: reader.uleb(maximum), lambda _, value: uleb128(value))


def _bytes(maximum: int = MAX_INDEX) -> Form:
    return Form(lambda reader: reader.fixed(reader.uleb(maximum)), lambda _, value: uleb128(len(value)) + value)


def entry(kind: int) -> Form:
    """Return the form of the index of an entry, which stands for the entry."""

    def read(reader: BinaryReader) -> Any:
        table, index = reader.file.table(kind), reader.uleb()
        if index >= len(table):
            raise malformed(f"byte {reader.position}: unknown entry {index}")
        return table[index]

    return Form(read, lambda writer, value: uleb128(writer.index(kind, value)))


def sequence(item: Form, maximum: int = 255) -> Form:
    """Return the form of a tuple."""
    return Form(
        lambda reader: tuple(item.read(reader) for _ in range(reader.uleb(maximum))),
        lambda writer, values: listed(item.write(writer, value) for value in values),
    )


def _record(kind: Callable[..., Any], *forms: Form) -> Form:
    """Return the form of tuples, by the forms of their first fields."""

    def write(writer: FileWriter, value: Any) -> bytes:
        return b"".join(form.write(writer, part) for form, part in zip(forms, value, strict=False))

    return Form(lambda reader: kind(*[form.read(reader) for form in forms]), write)


def _several(*values: Any) -> tuple[Any, ...]:
    return values


def _checked(form: Form, check: Callable[[Any], str | None]) -> Form:
    """Return a form whose values are checked when they are read: `check` returns what is wrong."""

    def read(reader: BinaryReader) -> Any:
        value = form.read(reader)
        if (wrong := check(value)) is not None:
            raise malformed(f"byte {reader.position}: {wrong}")
        return value

    return Form(read, form.write)


def since(version: int, form: Form, before: Any) -> Form:
    """Return the form of what a version of the format has brought; `before` stands for it in older files."""
    return Form(
        lambda reader: form.read(reader) if reader.file.version >= version else before,
        lambda writer, value: form.write(writer, value) if writer.version >= version else b"",
    )


def _choice(which: Callable[[Any], int], *forms: Form) -> Form:
    """Return the form of a byte, counted from 1, and a value in the form that it says."""

    def read(reader: BinaryReader) -> Any:
        byte = reader.u8()
        if not 1 <= byte <= len(forms):
            raise malformed(f"byte {reader.position}: expected 1 to {len(forms)}, got {byte}")
        return forms[byte - 1].read(reader)

    def write(writer: FileWriter, value: Any) -> bytes:
        byte = which(value)
        return bytes((byte,)) + forms[byte - 1].write(writer, value)

    return Form(read, write)


def _constant(value: Any) -> Form:
    return Form(lambda _: value, lambda _, __: b"")


def _optional(form: Form) -> Form:
    return _choice(lambda value: 1 if value is None else 2, _constant(None), form)


# Names and types.


def _read_name(reader: BinaryReader) -> str:
    name = reader.fixed(reader.uleb()).decode("ascii", "replace")
    if not t.is_identifier(name) or ("$" in name and reader.file.version < 9):
        raise malformed(f"byte {reader.position}: {name!r} is not an identifier")
    return name


def _read_type(reader: BinaryReader, nesting: int = 1) -> t.Type:
    if nesting > MAX_TYPE_NESTING:
        raise malformed("a type is nested too deeply")
    byte, version = reader.u8(), reader.file.version
    primitive = _TYPES.get(byte)
    if primitive is not None:
        if (byte > 0xC and version < 6) or (byte > _FUNCTION and version < 9):
            raise malformed(f"{primitive} needs a later version of the format")
        return t.PRIMITIVES[primitive]

    def parts(count: int) -> tuple[t.Type, ...]:
        return tuple(_read_type(reader, nesting + 1) for _ in range(count))

    if byte in {_REFERENCE, _MUTABLE_REFERENCE}:
        return t.Reference(*parts(1), byte == _MUTABLE_REFERENCE)
    if byte == _VECTOR:
        return t.Vector(*parts(1))
    if byte == _PARAMETER:
        return t.Parameter(reader.uleb())
    if byte in {_STRUCT_TYPE, _STRUCT_INSTANCE}:
        handle = STRUCT.read(reader)
        arguments = parts(reader.uleb(255)) if byte == _STRUCT_INSTANCE else ()
        _check_count(handle, arguments)
        return t.Struct(handle.module, handle.name, arguments)
    if byte == _FUNCTION and version >= 8:
        abilities = _ABILITIES.read(reader)
        counts = reader.uleb(255), reader.uleb(255)
        return t.Function(parts(counts[0]), parts(counts[1]), abilities)
    raise malformed(f"byte {reader.position}: unknown type {byte:#x}")


def _write_type(writer: FileWriter, kind: t.Type) -> bytes:
    parts, head = kind.parts, b""
    match kind:
        case t.Primitive():
            head = _TYPE_BYTES[kind.name]
        case t.Reference():
            head = bytes((_MUTABLE_REFERENCE if kind.mutable else _REFERENCE,))
        case t.Vector():
            head = bytes((_VECTOR,))
        case t.Parameter():
            head = bytes((_PARAMETER,)) + uleb128(kind.index)
        case t.Struct():
            head = bytes((_STRUCT_INSTANCE if parts else _STRUCT_TYPE,)) + _write_named(writer, kind)
            head += uleb128(len(parts)) if parts else b""
        case t.Function():
            head = bytes((_FUNCTION,)) + uleb128(kind.abilities)
            head += uleb128(len(kind.parameters)) + uleb128(len(kind.results))
    return head + b"".join(_write_type(writer, part) for part in parts)


def _write_named(writer: FileWriter, named: Any) -> bytes:
    return STRUCT.write(writer, writer.handles[named.module, named.name])


def _check_count(generic: Any, arguments: Any) -> None:
    if len(arguments) != len(generic.type_parameters):
        raise malformed(f"{generic.name} has {len(generic.type_parameters)} type parameters")


NAME, ADDRESS, MODULE, STRUCT = entry(IDENTIFIERS), entry(ADDRESSES), entry(MODULES), entry(STRUCTS)
FUNCTION, SIGNATURE, STRUCT_DEFINITION = entry(FUNCTIONS), entry(SIGNATURES), entry(STRUCT_DEFINITIONS)
_ABILITIES, _TYPE = _number(t.ALL_ABILITIES), Form(_read_type, _write_type)
TYPE_PARAMETERS = sequence(_ABILITIES)
_MODULE_ID = _record(t.ModuleId, ADDRESS, NAME)
_FLAG = _choice(lambda value: 1 + value, _constant(False), _constant(True))  # noqa: FBT003
_FIELD_LIST = sequence(_record(records.Field, NAME, _TYPE))
_VARIANT_LIST = sequence(_record(records.Variant, NAME, _FIELD_LIST), 127)


def _accessed(resource: records.AccessedResource) -> int:
    if resource.account is not None:
        return 2
    if resource.module is None:
        return 1
    if resource.name is None:
        return 3
    return 4 if resource.arguments is None else 5


_NAMED = Form(lambda reader: records.AccessedResource(None, *STRUCT.read(reader)[:2]), _write_named)
_RESOURCE = _choice(
    _accessed,
    _constant(records.AccessedResource()),
    _record(records.AccessedResource, ADDRESS),
    _record(records.AccessedResource, _constant(None), MODULE),
    _NAMED,
    Form(
        lambda reader: _NAMED.read(reader)._replace(arguments=SIGNATURE.read(reader)),
        lambda writer, value: _NAMED.write(writer, value) + SIGNATURE.write(writer, value.arguments),
    ),
)
_PLACE = _choice(
    lambda value: 1 if value is None else 2 if isinstance(value, bytes) else 3,
    _constant(None),
    ADDRESS,
    # The table of instances is read after this one, which it refers to.
    _record(_several, _number(255), _optional(_number())),
)
ACCESS = _optional(sequence(_record(records.AccessSpecifier, _FLAG, _FLAG, _RESOURCE, _PLACE), 64))


def _read_attributes(reader: BinaryReader) -> frozenset[int]:
    attributes = frozenset(reader.u8() for _ in range(reader.uleb(16)))
    if not attributes <= {records.PERSISTENT, records.MODULE_LOCK}:
        raise malformed(f"unknown function attribute in {sorted(attributes)}")
    return attributes


_ATTRIBUTES = Form(_read_attributes, lambda _, value: uleb128(len(value)) + bytes(sorted(value)))


# Definitions.


def _read_struct(reader: BinaryReader) -> records.StructDefinition:
    handle: records.StructHandle = STRUCT.read(reader)
    if handle.module != reader.file.own:
        raise malformed(f"{handle.name} is not a struct of this module")
    form, fields, variants = reader.u8(), (), None
    if form == _STRUCT:
        fields = _FIELD_LIST.read(reader)
    elif form == _ENUM and reader.file.version >= 7:
        variants = _VARIANT_LIST.read(reader)
    elif form != _NATIVE_STRUCT:
        raise malformed(f"byte {reader.position}: unknown form of a struct: {form}")
    return records.StructDefinition(**handle._asdict(), fields=fields, variants=variants)


def _write_struct(writer: FileWriter, struct: records.StructDefinition) -> bytes:
    named = _write_named(writer, struct)
    if struct.variants is None:
        return named + bytes((_STRUCT,)) + _FIELD_LIST.write(writer, struct.fields)
    return named + bytes((_ENUM,)) + _VARIANT_LIST.write(writer, struct.variants)


def _read_function(reader: BinaryReader) -> records.FunctionDefinition:
    handle: records.FunctionHandle = FUNCTION.read(reader)
    if handle.module != reader.file.own:
        raise malformed(f"{handle.name} is not a function of this module")
    visibility, flags = reader.u8(), reader.u8()
    if visibility not in {records.PRIVATE, records.PUBLIC, records.FRIEND} or flags & ~(_NATIVE | _ENTRY):
        raise malformed(f"{handle.name} has unknown visibility or flags")
    acquires = _ACQUIRES.read(reader)
    is_native = bool(flags & _NATIVE)
    kinds, code = (handle.parameters, ()) if is_native else read_code(reader, handle.parameters)
    return records.FunctionDefinition(
        **handle._asdict(),
        index=len(reader.file.table(FUNCTION_DEFINITIONS)),  # of those before it
        visibility=visibility,
        is_entry=bool(flags & _ENTRY),
        is_native=is_native,
        locals=kinds,
        code=code,
        acquires=acquires,
    )


def _write_function(writer: FileWriter, function: records.FunctionDefinition) -> bytes:
    handle = records.FunctionHandle(*(getattr(function, name) for name in records.FunctionHandle._fields))
    flags = _NATIVE * function.is_native + _ENTRY * function.is_entry
    data = FUNCTION.write(writer, handle) + bytes((function.visibility, flags))
    data += _ACQUIRES.write(writer, function.acquires)
    return data if function.is_native else data + write_code(writer, function)


def _needs_field(use: records.FieldUse) -> str | None:
    known = (None, *range(len(use.struct.variants or ())))
    for variant in use.variants or (None,):
        if variant not in known or use.offset >= len(use.struct.fields_of(variant)):
            return f"{use.struct.name} has no field {use.offset}"
    return None


def _needs_variant(use: records.StructUse) -> str | None:
    known = use.variant in range(len(use.struct.variants or ()))
    return None if known else f"{use.struct.name} has no variant {use.variant}"


def _instance(of: Form) -> Form:
    """Return the form of something generic and its type arguments."""

    def read(reader: BinaryReader) -> Any:
        use, arguments = of.read(reader), SIGNATURE.read(reader)
        _check_count(use[0], arguments)
        return use._replace(arguments=arguments)

    return Form(read, lambda writer, use: of.write(writer, use) + SIGNATURE.write(writer, use.arguments))


_ACQUIRES = sequence(_number())
_STRUCT_USE = _record(records.StructUse, STRUCT_DEFINITION)
_FUNCTION_USE = _record(records.FunctionUse, FUNCTION)
_NO_ARGUMENTS = _constant(())
_FIELD = _record(records.FieldUse, STRUCT_DEFINITION, _NO_ARGUMENTS, _number(255))
_VARIANT_FIELD = _record(records.FieldUse, STRUCT_DEFINITION, _NO_ARGUMENTS, _number(255), sequence(_number(127), 127))
_VARIANT = _record(records.StructUse, STRUCT_DEFINITION, _NO_ARGUMENTS, _number(127))
_SINCE_7, _SINCE_8 = since(7, ACCESS, None), since(8, _ATTRIBUTES, frozenset())

_TABLES = {
    MODULES: _MODULE_ID,
    STRUCTS: _record(
        records.StructHandle, MODULE, NAME, _ABILITIES, sequence(_record(records.TypeParameter, _ABILITIES, _number(1)))
    ),
    FUNCTIONS: _record(records.FunctionHandle, MODULE, NAME, SIGNATURE, SIGNATURE, TYPE_PARAMETERS, _SINCE_7, _SINCE_8),
    FUNCTION_INSTANCES: _instance(_FUNCTION_USE),
    SIGNATURES: sequence(_TYPE),
    CONSTANTS: _record(records.Constant, _TYPE, _bytes()),
    IDENTIFIERS: Form(_read_name, lambda _, name: uleb128(len(name)) + name.encode()),
    ADDRESSES: Form(lambda reader: reader.fixed(32), lambda _, address: bytes(address)),
    STRUCT_DEFINITIONS: Form(_read_struct, _write_struct),
    STRUCT_INSTANCES: _instance(_STRUCT_USE),
    FUNCTION_DEFINITIONS: Form(_read_function, _write_function),
    FIELDS: _checked(_FIELD, _needs_field),
    FIELD_INSTANCES: _instance(entry(FIELDS)),
    FRIENDS: _MODULE_ID,
    METADATA: _record(_several, _bytes(1023), _bytes()),
    VARIANT_FIELDS: _checked(
        _checked(_VARIANT_FIELD, _needs_field), lambda use: None if use.variants else "no variant"
    ),
    VARIANT_FIELD_INSTANCES: _instance(entry(VARIANT_FIELDS)),
    VARIANTS: _checked(_VARIANT, _needs_variant),
    VARIANT_INSTANCES: _instance(entry(VARIANTS)),
}
# What a script has after the tables, before its code.
SCRIPT = _record(_several, TYPE_PARAMETERS, SIGNATURE, since(8, ACCESS, None))


# Code.


def _needs_no_arguments(use: Any) -> str | None:
    return f"{use[0].name} needs type arguments" if use[0].type_parameters else None


def _fits_mask(operand: tuple[records.FunctionUse, int]) -> str | None:
    use, mask = operand
    return "the mask captures more than the parameters" if mask >> len(use.function.parameters) else None


def _closure(use: Form) -> Form:
    return _checked(_record(_several, use, _number(MAX_U64)), _fits_mask)


def _integer(kind: t.Primitive) -> Form:
    signed, length = kind.minimum < 0, kind.bits // 8
    return Form(
        lambda reader: int.from_bytes(reader.fixed(length), "little", signed=signed),
        lambda _, value: int(value).to_bytes(length, "little", signed=signed),
    )


_SINGLE = _checked(SIGNATURE, lambda kinds: None if len(kinds) == 1 else f"expected one type, got {len(kinds)}")
_ELEMENT = Form(lambda reader: _SINGLE.read(reader)[0], lambda writer, kind: SIGNATURE.write(writer, (kind,)))
_OPERANDS = {
    "": _constant(None),
    "offset": _number(),
    "local": _number(255),
    "constant": entry(CONSTANTS),
    "function": _checked(_FUNCTION_USE, _needs_no_arguments),
    "function_instance": entry(FUNCTION_INSTANCES),
    "closure": _closure(_FUNCTION_USE),
    "closure_instance": _closure(entry(FUNCTION_INSTANCES)),
    "function_type": _ELEMENT,
    "element": _ELEMENT,
    "elements": _record(_several, _ELEMENT, _integer(t.U64)),
    "struct": _checked(_STRUCT_USE, _needs_no_arguments),
    "struct_instance": entry(STRUCT_INSTANCES),
    "field": entry(FIELDS),
    "field_instance": entry(FIELD_INSTANCES),
    "variant_field": entry(VARIANT_FIELDS),
    "variant_field_instance": entry(VARIANT_FIELD_INSTANCES),
    "variant": entry(VARIANTS),
    "variant_instance": entry(VARIANT_INSTANCES),
}
# By instruction: integers have the length of their type.
_OPERAND_OF = {
    one.name: _integer(t.INTEGERS[one.name[2:].lower()]) if one.operand == "integer" else _OPERANDS[one.operand]
    for one in OPCODES.values()
}


def read_code(
    reader: BinaryReader, parameters: tuple[t.Type, ...]
) -> tuple[tuple[t.Type, ...], tuple[Instruction, ...]]:
    """Read the types of a function's locals, parameters included, and its instructions."""
    kinds, count, code = parameters + SIGNATURE.read(reader), reader.uleb(), []
    limits = {"local": len(kinds), "offset": count}
    for _ in range(count):
        opcode = OPCODES.get(reader.u8())
        if opcode is None or opcode.since > reader.file.version:
            raise malformed(f"byte {reader.position - 1}: not an instruction of version {reader.file.version}")
        operand = _OPERAND_OF[opcode.name].read(reader)
        if opcode.operand in limits and operand >= limits[opcode.operand]:
            raise malformed(f"byte {reader.position}: unknown {opcode.operand} {operand}")
        code.append(Instruction(opcode.name, operand))
    return kinds, tuple(code)


def write_code(writer: FileWriter, function: records.FunctionDefinition) -> bytes:
    """Return the code of a function: the types of its own locals, and its instructions."""
    own = SIGNATURE.write(writer, function.locals[len(function.parameters) :])
    code = (bytes((BYTES_OF[name],)) + _OPERAND_OF[name].write(writer, operand) for name, operand in function.code)
    return own + listed(code)
