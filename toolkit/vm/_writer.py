"""A writer of the binary format: the inverse of `_module`, for scripts that are composed and modules in tests.

Records name what they refer to; the writer makes the tables. An entry is written once and found again by its bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.move._bcs import uleb128
from toolkit.vm import _module as tables
from toolkit.vm._code import FunctionHandle, StructHandle
from toolkit.vm._instructions import BYTES_OF, MAX_VERSION, OPCODES
from toolkit.vm._types import INTEGERS, Function, ModuleId, Parameter, Primitive, Reference, Struct, Vector

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.vm._code import FieldUse, FunctionDefinition, StructDefinition
    from toolkit.vm._instructions import Instruction
    from toolkit.vm._types import Type

_TYPE_BYTES = {name: byte for byte, name in tables.TYPE_BYTES.items()}


def write_script(
    main: FunctionDefinition, struct_handles: Iterable[StructHandle] = (), *, version: int = MAX_VERSION
) -> bytes:
    """Return a script as bytes.

    Parameters
    ----------
    main : FunctionDefinition
        Its name and visibility are not written.
    struct_handles : iterable of StructHandle, optional
        The structs of modules that the script names.
    version : int, default 9
        Version of the binary format.
    """
    writer = _Writer(version, None, struct_handles)
    tail = bytearray(uleb128(len(main.type_parameters)))
    tail += b"".join(map(uleb128, main.type_parameters))
    tail += uleb128(writer.signature(main.parameters))
    if version >= 8:
        tail += writer.access(main.access)
    tail += writer.code(main)
    return writer.file(bytes(tail), {})


def write_module(
    module: ModuleId,
    *,
    functions: Iterable[FunctionDefinition] = (),
    structs: Iterable[StructDefinition] = (),
    struct_handles: Iterable[StructHandle] = (),
    friends: Iterable[ModuleId] = (),
    metadata: dict[bytes, bytes] | None = None,
    version: int = MAX_VERSION,
) -> bytes:
    """Return a module as bytes.

    Parameters
    ----------
    module : ModuleId
    functions : iterable of FunctionDefinition
    structs : iterable of StructDefinition
    struct_handles : iterable of StructHandle, optional
        The structs of other modules that the module names.
    friends : iterable of ModuleId
    metadata : dict of bytes to bytes, optional
    version : int, default 9
        Version of the binary format.
    """
    structs = list(structs)
    own = [StructHandle(module, one.name, one.abilities, one.type_parameters) for one in structs]
    writer = _Writer(version, module, [*own, *struct_handles])
    own_index = writer.module(module)
    writer.definitions = {one.name: index for index, one in enumerate(structs)}
    for one in structs:
        writer.struct_definition(one)
    for function in functions:
        writer.function_definition(function)
    for friend in friends:
        writer.entry(tables.FRIENDS, writer.module_entry(friend))
    return writer.file(uleb128(own_index), metadata or {})


class _Writer:
    def __init__(self, version: int, module: ModuleId | None, struct_handles: Iterable[StructHandle]) -> None:
        self.version = version
        self.own = module
        self.handles = {(one.module, one.name): one for one in struct_handles}
        self.tables: dict[int, dict[bytes, int]] = {}
        self.lists: dict[int, list[bytes]] = {}  # definitions, whose order counts
        self.definitions: dict[str, int] = {}

    def file(self, tail: bytes, metadata: dict[bytes, bytes]) -> bytes:
        """Return the file: header, tables and tail."""
        for key, value in metadata.items():
            self.entry(tables.METADATA, uleb128(len(key)) + key + uleb128(len(value)) + value)
        contents = {kind: b"".join(entries) for kind, entries in (self.tables | self.lists).items()}
        start, headers, body = 0, bytearray(), bytearray()
        for kind in sorted(contents):
            headers += bytes((kind,)) + uleb128(start) + uleb128(len(contents[kind]))
            body += contents[kind]
            start += len(contents[kind])
        head = tables.MAGIC + self.version.to_bytes(4, "little") + uleb128(len(contents))
        return bytes(head + headers + body + tail)

    def entry(self, kind: int, data: bytes) -> int:
        """Return the index of an entry, which is added if it is new."""
        table = self.tables.setdefault(kind, {})
        return table.setdefault(data, len(table))

    def identifier(self, name: str) -> bytes:
        """Return the index of a name."""
        return uleb128(self.entry(tables.IDENTIFIERS, uleb128(len(name)) + name.encode()))

    def module_entry(self, module: ModuleId) -> bytes:
        """Return a module as an entry."""
        return uleb128(self.entry(tables.ADDRESSES, module.address)) + self.identifier(module.name)

    def module(self, module: ModuleId) -> int:
        """Return the index of a module."""
        return self.entry(tables.MODULES, self.module_entry(module))

    def struct(self, kind: Struct) -> int:
        """Return the index of a struct."""
        handle = self.handles[kind.module, kind.name]
        data = bytearray(uleb128(self.module(handle.module)) + self.identifier(handle.name))
        data += uleb128(handle.abilities) + uleb128(len(handle.type_parameters))
        for parameter in handle.type_parameters:
            data += uleb128(parameter.abilities) + uleb128(parameter.phantom)
        return self.entry(tables.STRUCTS, bytes(data))

    def types(self, kinds: Sequence[Type]) -> bytes:
        """Return a list of types."""
        return uleb128(len(kinds)) + b"".join(map(self.type, kinds))

    def type(self, kind: Type) -> bytes:
        """Return a type."""
        match kind:
            case Primitive():
                return bytes((_TYPE_BYTES[kind.name],))
            case Reference():
                return bytes((tables.MUTABLE_REFERENCE if kind.mutable else tables.REFERENCE,)) + self.type(kind.target)
            case Vector():
                return bytes((tables.VECTOR,)) + self.type(kind.element)
            case Parameter():
                return bytes((tables.TYPE_PARAMETER,)) + uleb128(kind.index)
            case Struct():
                head = bytes((tables.STRUCT_INSTANCE if kind.arguments else tables.STRUCT,)) + uleb128(
                    self.struct(kind)
                )
                return head + self.types(kind.arguments) if kind.arguments else head
        assert isinstance(kind, Function)  # noqa: S101 - the last kind
        counts = uleb128(len(kind.parameters)) + uleb128(len(kind.results))
        head = bytes((tables.FUNCTION,)) + uleb128(kind.abilities) + counts
        return head + b"".join(map(self.type, (*kind.parameters, *kind.results)))

    def signature(self, kinds: Sequence[Type]) -> int:
        """Return the index of a list of types."""
        return self.entry(tables.SIGNATURES, self.types(kinds))

    def function(self, handle: FunctionHandle) -> int:
        """Return the index of a function."""
        data = bytearray(uleb128(self.module(handle.module)) + self.identifier(handle.name))
        data += uleb128(self.signature(handle.parameters)) + uleb128(self.signature(handle.results))
        data += uleb128(len(handle.type_parameters)) + b"".join(map(uleb128, handle.type_parameters))
        if self.version >= 7:
            data += self.access(handle.access)
        if self.version >= 8:
            data += uleb128(len(handle.attributes)) + bytes(sorted(handle.attributes))
        return self.entry(tables.FUNCTIONS, bytes(data))

    def access(self, access: Sequence[Any] | None) -> bytes:
        """Return access specifiers."""
        if access is None:
            return b"\1"
        return b"\2" + uleb128(len(access)) + b"".join(map(self._clause, access))

    def _clause(self, clause: Any) -> bytes:
        data = bytearray((2 if clause.writes else 1, 2 if clause.negated else 1))
        resource = clause.resource
        if resource.account is not None:
            data += b"\2" + uleb128(self.entry(tables.ADDRESSES, resource.account))
        elif resource.module is None:
            data.append(1)
        elif resource.name is None:
            data += b"\3" + uleb128(self.module(resource.module))
        else:
            arguments = resource.arguments
            data.append(4 if arguments is None else 5)
            data += uleb128(self.struct(Struct(resource.module, resource.name, arguments or ())))
            data += b"" if arguments is None else uleb128(self.signature(arguments))
        if clause.address is None:
            data.append(1)
        elif isinstance(clause.address, bytes):
            data += b"\2" + uleb128(self.entry(tables.ADDRESSES, clause.address))
        else:
            local, through = clause.address
            data += b"\3" + uleb128(local) + (b"\1" if through is None else b"\2" + uleb128(through))
        return bytes(data)

    # Definitions.

    def struct_definition(self, struct: StructDefinition) -> None:
        """Add the definition of a struct or enum."""
        data = bytearray(uleb128(self.struct(struct.type(()))))
        if struct.variants is None:
            data += b"\2" + self._fields(struct.fields)
        else:
            data += b"\3" + uleb128(len(struct.variants))
            for variant in struct.variants:
                data += self.identifier(variant.name) + self._fields(variant.fields)
        self.lists.setdefault(tables.STRUCT_DEFINITIONS, []).append(bytes(data))

    def _fields(self, fields: Sequence[Any]) -> bytes:
        parts = [self.identifier(field.name) + self.type(field.type) for field in fields]
        return uleb128(len(parts)) + b"".join(parts)

    def function_definition(self, function: FunctionDefinition) -> None:
        """Add the definition of a function."""
        assert self.own is not None  # noqa: S101 - modules have definitions
        handle = FunctionHandle(
            self.own,
            function.name,
            function.parameters,
            function.results,
            function.type_parameters,
            function.access,
            function.attributes,
        )
        flags = 2 * function.is_native + 4 * function.is_entry
        data = bytearray(uleb128(self.function(handle)) + bytes((function.visibility, flags)))
        data += uleb128(len(function.acquires)) + b"".join(map(uleb128, function.acquires))
        if not function.is_native:
            data += self.code(function)
        self.lists.setdefault(tables.FUNCTION_DEFINITIONS, []).append(bytes(data))

    def code(self, function: FunctionDefinition) -> bytes:
        """Return the code unit of a function."""
        own = self.signature(function.locals[len(function.parameters) :])
        return uleb128(own) + uleb128(len(function.code)) + b"".join(map(self._instruction, function.code))

    def _instruction(self, instruction: Instruction) -> bytes:
        byte = BYTES_OF[instruction.name]
        return bytes((byte,)) + self._operand(OPCODES[byte].operand, instruction.name, instruction.operand)

    def _operand(self, kind: str, name: str, operand: Any) -> bytes:  # noqa: PLR0911 - a case per kind
        match kind:
            case "":
                return b""
            case "offset" | "local":
                return uleb128(operand)
            case "integer":
                integer = INTEGERS[name[2:].lower()]
                return int(operand).to_bytes(integer.bits // 8, "little", signed=integer.minimum < 0)
            case "constant":
                data = self.type(operand.type) + uleb128(len(operand.data)) + operand.data
                return uleb128(self.entry(tables.CONSTANTS, data))
            case "function" | "function_instance":
                return uleb128(self._function_use(operand))
            case "closure" | "closure_instance":
                return uleb128(self._function_use(operand[0])) + uleb128(operand[1])
            case "element" | "function_type":
                return uleb128(self.signature((operand,)))
            case "elements":
                return uleb128(self.signature((operand[0],))) + int(operand[1]).to_bytes(8, "little")
        return uleb128(self._definition_use(kind, operand))

    def _function_use(self, use: Any) -> int:
        index = self.function(use.function)
        if use.arguments is None:
            return index
        return self.entry(tables.FUNCTION_INSTANCES, uleb128(index) + uleb128(self.signature(use.arguments)))

    def _definition_use(self, kind: str, use: Any) -> int:
        """Return the index of a struct, field or variant, or of an instance of it."""
        index = self.definitions[use.struct.name]
        plain = kind.removesuffix("_instance")
        if plain == "variant":
            index = self.entry(tables.VARIANTS, uleb128(index) + uleb128(use.variant))
        elif plain in {"field", "variant_field"}:
            index = self._field(index, use)
        if kind == plain:
            return index
        table = {
            "struct": tables.STRUCT_INSTANCES,
            "field": tables.FIELD_INSTANCES,
            "variant_field": tables.VARIANT_FIELD_INSTANCES,
            "variant": tables.VARIANT_INSTANCES,
        }[plain]
        return self.entry(table, uleb128(index) + uleb128(self.signature(use.arguments)))

    def _field(self, index: int, use: FieldUse) -> int:
        data = uleb128(index) + uleb128(use.offset)
        if not use.variants:
            return self.entry(tables.FIELDS, data)
        data += uleb128(len(use.variants)) + b"".join(map(uleb128, use.variants))
        return self.entry(tables.VARIANT_FIELDS, data)
