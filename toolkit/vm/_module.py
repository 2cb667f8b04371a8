"""Modules and scripts: the binary format is read into records whose names and types are resolved.

Every index and length is checked here, once, so that what runs need not: an instruction's operand exists, a branch
lands in its function, and a field is in its struct. What only the verifier of a node checks is not checked here.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit._present.text import plural
from toolkit.errors import InputError, Unsupported
from toolkit.vm import _code as records
from toolkit.vm import _types as t
from toolkit.vm._binary import MAX_U64, BinaryReader, malformed
from toolkit.vm._disassembler import disassemble_function, disassemble_module
from toolkit.vm._errors import MoveError
from toolkit.vm._instructions import MAX_VERSION, MIN_VERSION, OPCODES, Instruction
from toolkit.vm._metadata import Attributes, read_attributes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAGIC = bytes.fromhex("a11ceb0b")
_FLAVOR = 0x0A000000  # bits beside the version that some compilers set, for the name of the ledger
MAX_TYPE_NESTING = 256
MAX_CACHED_MODULES = 2_048

# Bytes of the tables of a file.
MODULES, STRUCTS, FUNCTIONS, FUNCTION_INSTANCES, SIGNATURES, CONSTANTS, IDENTIFIERS, ADDRESSES = range(1, 9)
STRUCT_DEFINITIONS, STRUCT_INSTANCES, FUNCTION_DEFINITIONS, FIELDS, FIELD_INSTANCES, FRIENDS, METADATA = range(
    0xA, 0x11
)
VARIANT_FIELDS, VARIANT_FIELD_INSTANCES, VARIANTS, VARIANT_INSTANCES = range(0x11, 0x15)
# The number 9 is not used.
MODULE_TABLES = {*range(1, 9), *range(0xA, 0x15)}
SCRIPT_TABLES = {*range(1, 9), METADATA}

_NATIVE, _ENTRY = 2, 4  # flags of functions
_NATIVE_STRUCT, _STRUCT, _ENUM = 1, 2, 3  # forms of structs

# Bytes of types.
TYPE_BYTES = {1: "bool", 2: "u8", 3: "u64", 4: "u128", 5: "address", 0xC: "signer", 0xD: "u16", 0xE: "u32", 0xF: "u256"}
TYPE_BYTES |= {0x11: "i8", 0x12: "i16", 0x13: "i32", 0x14: "i64", 0x15: "i128", 0x16: "i256"}
REFERENCE, MUTABLE_REFERENCE, STRUCT, TYPE_PARAMETER, VECTOR, STRUCT_INSTANCE, FUNCTION = 6, 7, 8, 9, 10, 11, 16


@dataclass(frozen=True, eq=False, repr=False)
class Module:
    """A module, read from its binary form.

    Attributes
    ----------
    id : ModuleId
        Address and name.
    version : int
        Version of the binary format.
    functions : dict of str to FunctionDefinition
    structs : dict of str to StructDefinition
        Structs and enums.
    dependencies, friends : tuple of ModuleId
    metadata : dict of bytes to bytes
    size : int
        Length of the code in bytes.

    Examples
    --------
    >>> from toolkit import vm
    >>> code = bytes.fromhex(
    ...     "a11ceb0b0600000006010002030205050703070a090813200c331300000001000000010300016d06646f75626c650000"
    ...     "00000000000000000000000000000000000000000000000000000000cafe0001000001040b0006020000000000000018"
    ...     "0200"
    ... )
    >>> print(vm.Module.from_bytes(code).disassemble("double"))
    public fun double(l0: u64): (u64)
        0: MoveLoc(0)
        1: LdU64(2)
        2: Mul
        3: Ret
    """

    id: t.ModuleId
    version: int
    functions: dict[str, records.FunctionDefinition]
    structs: dict[str, records.StructDefinition]
    dependencies: tuple[t.ModuleId, ...]
    friends: tuple[t.ModuleId, ...]
    metadata: dict[bytes, bytes]
    size: int
    hash: bytes
    handles: tuple[records.FunctionHandle, ...]
    struct_handles: tuple[records.StructHandle, ...]

    def __repr__(self) -> str:
        counts = f"{plural(len(self.functions), 'function')}, {plural(len(self.structs), 'struct')}"
        return f"<Module {self.id}: {counts}, {plural(self.size, 'byte')}, version {self.version}>"

    @classmethod
    def from_bytes(cls, code: bytes) -> Module:
        """Read a module.

        Parameters
        ----------
        code : bytes
            The module in the binary format, version 5 to 9.

        Returns
        -------
        Module

        Raises
        ------
        Unsupported
            If the version of the format is not 5 to 9.
        InputError
            If the bytes are not a module.
        """
        try:
            return read_module(bytes(code))
        except MoveError as error:
            raise InputError(f"not a module: {error.message}") from None

    def disassemble(self, name: str | None = None) -> str:
        """Return the code as text.

        Parameters
        ----------
        name : str, optional
            Name of a function; the whole module if omitted.

        Returns
        -------
        str

        Raises
        ------
        InputError
            If the module does not define a function of this name.
        """
        if name is None:
            return disassemble_module(self)
        if name not in self.functions:
            raise InputError(f"{self.id} does not define a function {name!r}")
        return disassemble_function(self.functions[name])

    @cached_property
    def attributes(self) -> Attributes:
        """Attributes of structs and functions, and names of abort codes, from the metadata."""
        return read_attributes(self.metadata)


@dataclass(frozen=True, eq=False)
class ScriptCode:
    """A script: its main function, and the functions and modules that it uses."""

    main: records.FunctionDefinition
    version: int
    dependencies: tuple[t.ModuleId, ...]
    handles: tuple[records.FunctionHandle, ...]
    struct_handles: tuple[records.StructHandle, ...]
    metadata: dict[bytes, bytes]


@lru_cache(MAX_CACHED_MODULES)
def read_module(code: bytes) -> Module:
    """Read a module; the same bytes give the same object while it is in the cache.

    Raises
    ------
    MoveError
        If the bytes are not a module.
    Unsupported
        If the version of the format is not implemented.
    """
    return _File(code).module()


@lru_cache(64)
def read_script(code: bytes) -> ScriptCode:
    """Read a script.

    Raises
    ------
    MoveError
        If the bytes are not a script.
    Unsupported
        If the version of the format is not implemented.
    """
    return _File(code, SCRIPT_TABLES).script()


def version_of(code: bytes) -> int:
    """Return the version of a module or script; 0 if the bytes do not start like one."""
    if code[:4] != MAGIC or len(code) < 8:
        return 0
    return int.from_bytes(code[4:8], "little") & ~_FLAVOR


_T = TypeVar("_T")


class _File:
    """The tables of a file while they are read, in the order of need, whatever their order in the file."""

    def __init__(self, code: bytes, allowed: set[int] | None = None) -> None:
        self.code = code
        self.version = version_of(code)
        if code[:4] != MAGIC:
            raise malformed("byte 0: expected a11ceb0b")
        if not MIN_VERSION <= self.version <= MAX_VERSION:
            raise Unsupported(f"bytecode version {self.version}; versions {MIN_VERSION} to {MAX_VERSION} are supported")
        self.tables, self.tail = self._table_ranges(allowed)
        self.identifiers = self._table(IDENTIFIERS, self._identifier)
        self.addresses = self._table(ADDRESSES, lambda reader: reader.fixed(32))
        self.modules = self._table(MODULES, self._module_id)
        self.structs = self._table(STRUCTS, self._struct_handle)
        self.signatures = self._table(SIGNATURES, self._types)
        self.constants = self._table(CONSTANTS, lambda reader: records.Constant(self._type(reader), reader.bytes()))
        self.handles = self._table(FUNCTIONS, self._function_handle)
        self.function_instances = self._table(FUNCTION_INSTANCES, self._function_instance)
        self.metadata = dict(self._table(METADATA, lambda reader: (reader.bytes(1023), reader.bytes())))

    def _table_ranges(self, allowed: set[int] | None) -> tuple[dict[int, tuple[int, int]], BinaryReader]:
        reader = BinaryReader(self.code, 8)
        headers = [(reader.u8(), reader.uleb(1 << 32), reader.uleb(1 << 32)) for _ in range(reader.uleb(255))]
        base = end = reader.position
        tables: dict[int, tuple[int, int]] = {}
        for kind, start, length in sorted(headers, key=lambda header: header[1]):
            if base + start != end or not length or kind in tables:
                raise malformed(f"table {kind:#x} is empty, repeated, or not next to the one before")
            later = kind > METADATA and self.version < 7  # variants came with version 7
            if kind not in (allowed or MODULE_TABLES) or later:
                raise malformed(f"unknown table {kind:#x}")
            end += length
            tables[kind] = (base + start, end)
        if end > len(self.code):
            raise malformed("a table ends after the file")
        return tables, BinaryReader(self.code, end)

    def _table(self, kind: int, read: Callable[[BinaryReader], _T]) -> list[_T]:
        items: list[_T] = []
        if kind in self.tables:
            reader = BinaryReader(self.code, *self.tables[kind])
            while not reader.at_end:
                items.append(read(reader))
        return items

    @staticmethod
    def _item(reader: BinaryReader, table: list[_T]) -> _T:
        index = reader.uleb()
        if index >= len(table):
            raise malformed(f"byte {reader.position}: unknown entry {index}")
        return table[index]

    def _identifier(self, reader: BinaryReader) -> str:
        raw = reader.bytes()
        name = raw.decode("ascii", "replace")
        if not t.is_identifier(name) or ("$" in name and self.version < 9):
            raise malformed(f"byte {reader.position}: {name!r} is not an identifier")
        return name

    def _module_id(self, reader: BinaryReader) -> t.ModuleId:
        return t.ModuleId(self._item(reader, self.addresses), self._item(reader, self.identifiers))

    def _abilities(self, reader: BinaryReader) -> int:
        return reader.uleb(t.ALL_ABILITIES)

    def _struct_handle(self, reader: BinaryReader) -> records.StructHandle:
        module, name = self._item(reader, self.modules), self._item(reader, self.identifiers)
        abilities = self._abilities(reader)
        count = reader.uleb(255)
        parameters = [records.TypeParameter(self._abilities(reader), bool(reader.uleb(1))) for _ in range(count)]
        return records.StructHandle(module, name, abilities, tuple(parameters))

    def _types(self, reader: BinaryReader) -> tuple[t.Type, ...]:
        return tuple(self._type(reader) for _ in range(reader.uleb(255)))

    def _type(self, reader: BinaryReader, nesting: int = 1) -> t.Type:
        if nesting > MAX_TYPE_NESTING:
            raise malformed("a type is nested too deeply")
        byte = reader.u8()
        primitive = TYPE_BYTES.get(byte)
        if primitive is not None:
            if (byte > 0xC and self.version < 6) or (byte > FUNCTION and self.version < 9):
                raise malformed(f"{primitive} needs a later version of the format")
            return t.PRIMITIVES[primitive]

        def parts(count: int) -> tuple[t.Type, ...]:
            return tuple(self._type(reader, nesting + 1) for _ in range(count))

        if byte in {REFERENCE, MUTABLE_REFERENCE}:
            target = self._type(reader, nesting + 1)
            return t.Reference(target, byte == MUTABLE_REFERENCE)
        if byte == VECTOR:
            return t.Vector(self._type(reader, nesting + 1))
        if byte == TYPE_PARAMETER:
            return t.Parameter(reader.uleb())
        if byte in {STRUCT, STRUCT_INSTANCE}:
            handle = self._item(reader, self.structs)
            arguments = parts(reader.uleb(255)) if byte == STRUCT_INSTANCE else ()
            _check_count(handle, arguments)
            return t.Struct(handle.module, handle.name, arguments)
        if byte == FUNCTION and self.version >= 8:
            abilities = self._abilities(reader)
            counts = reader.uleb(255), reader.uleb(255)
            return t.Function(parts(counts[0]), parts(counts[1]), abilities)
        raise malformed(f"byte {reader.position}: unknown type {byte:#x}")

    def _function_handle(self, reader: BinaryReader) -> records.FunctionHandle:
        module, name = self._item(reader, self.modules), self._item(reader, self.identifiers)
        parameters, results = self._item(reader, self.signatures), self._item(reader, self.signatures)
        type_parameters = tuple(self._abilities(reader) for _ in range(reader.uleb(255)))
        access = self._access(reader) if self.version >= 7 else None
        attributes = frozenset(reader.u8() for _ in range(reader.uleb(16))) if self.version >= 8 else frozenset[int]()
        if not attributes <= {records.PERSISTENT, records.MODULE_LOCK}:
            raise malformed(f"unknown function attribute in {sorted(attributes)}")
        return records.FunctionHandle(module, name, parameters, results, type_parameters, access, attributes)

    def _access(self, reader: BinaryReader) -> tuple[records.AccessSpecifier, ...] | None:
        if _choice(reader, 1, 2) == 1:
            return None
        return tuple(self._access_clause(reader) for _ in range(reader.uleb(64)))

    def _access_clause(self, reader: BinaryReader) -> records.AccessSpecifier:
        writes, negated = _choice(reader, 1, 2) == 2, _choice(reader, 1, 2) == 2
        kind = _choice(reader, 1, 5)
        resource = records.AccessedResource()
        if kind == 2:
            resource = records.AccessedResource(account=self._item(reader, self.addresses))
        elif kind == 3:
            resource = records.AccessedResource(module=self._item(reader, self.modules))
        elif kind >= 4:
            handle = self._item(reader, self.structs)
            arguments = self._item(reader, self.signatures) if kind == 5 else None
            resource = records.AccessedResource(None, handle.module, handle.name, arguments)
        place = _choice(reader, 1, 3)
        address: Any = None
        if place == 2:
            address = self._item(reader, self.addresses)
        elif place == 3:
            local = reader.uleb(255)
            # The table of instances is read after this one, which it refers to.
            address = (local, reader.uleb() if _choice(reader, 1, 2) == 2 else None)
        return records.AccessSpecifier(writes, negated, resource, address)

    def _function_instance(self, reader: BinaryReader) -> records.FunctionUse:
        handle, arguments = self._item(reader, self.handles), self._item(reader, self.signatures)
        _check_count(handle, arguments)
        return records.FunctionUse(handle, arguments)

    # What only modules have.

    def module(self) -> Module:
        """Read the rest of a module."""
        self.own = self._item(self.tail, self.modules)
        self.definitions = self._table(STRUCT_DEFINITIONS, self._struct_definition)
        structs = [records.StructUse(one) for one in self.definitions]
        self.struct_instances = self._table(STRUCT_INSTANCES, lambda reader: self._instance(reader, structs))
        self.fields = self._table(FIELDS, self._field)
        self.field_instances = self._table(FIELD_INSTANCES, lambda reader: self._instance(reader, self.fields))
        self.variant_fields = self._table(VARIANT_FIELDS, self._variant_field)
        self.variant_field_instances = self._table(
            VARIANT_FIELD_INSTANCES, lambda reader: self._instance(reader, self.variant_fields)
        )
        self.variants = self._table(VARIANTS, self._variant)
        self.variant_instances = self._table(VARIANT_INSTANCES, lambda reader: self._instance(reader, self.variants))
        friends = self._table(FRIENDS, self._module_id)
        self.functions: list[records.FunctionDefinition] = []
        self._table(FUNCTION_DEFINITIONS, lambda reader: self.functions.append(self._function(reader)))
        return Module(
            id=self.own,
            version=self.version,
            functions={one.name: one for one in self.functions},
            structs={one.name: one for one in self.definitions},
            dependencies=tuple(one for one in self.modules if one != self.own),
            friends=tuple(friends),
            metadata=self.metadata,
            size=len(self.code),
            hash=hashlib.sha256(self.code).digest(),
            handles=tuple(self.handles),
            struct_handles=tuple(self.structs),
        )

    def script(self) -> ScriptCode:
        """Read the rest of a script."""
        reader = self.tail
        self.own = t.ModuleId(t.FRAMEWORK, "")
        self.definitions, self.struct_instances, self.fields, self.field_instances = [], [], [], []
        self.variant_fields, self.variant_field_instances, self.variants, self.variant_instances = [], [], [], []
        type_parameters = tuple(self._abilities(reader) for _ in range(reader.uleb(255)))
        parameters = self._item(reader, self.signatures)
        access = self._access(reader) if self.version >= 8 else None
        handle = records.FunctionHandle(self.own, "main", parameters, (), type_parameters)
        kinds, code = self._code(reader, handle)
        main = records.FunctionDefinition(
            None, "main", 0, parameters, (), type_parameters, locals=kinds, code=code, access=access
        )
        handles = tuple(self.handles), tuple(self.structs)
        return ScriptCode(main, self.version, tuple(self.modules), *handles, self.metadata)

    def _struct_definition(self, reader: BinaryReader) -> records.StructDefinition:
        handle = self._item(reader, self.structs)
        if handle.module != self.own:
            raise malformed(f"{handle.name} is not a struct of this module")
        form = reader.u8()
        fields: tuple[records.Field, ...] = ()
        variants: tuple[records.Variant, ...] | None = None
        if form == _STRUCT:
            fields = self._field_list(reader)
        elif form == _ENUM and self.version >= 7:
            count = reader.uleb(127)
            pairs = [(self._item(reader, self.identifiers), self._field_list(reader)) for _ in range(count)]
            variants = tuple(records.Variant(*pair) for pair in pairs)
        elif form != _NATIVE_STRUCT:
            raise malformed(f"byte {reader.position}: unknown form of a struct: {form}")
        return records.StructDefinition(
            handle.module, handle.name, handle.abilities, handle.type_parameters, fields, variants
        )

    def _field_list(self, reader: BinaryReader) -> tuple[records.Field, ...]:
        return tuple(
            records.Field(self._item(reader, self.identifiers), self._type(reader)) for _ in range(reader.uleb(255))
        )

    def _field(self, reader: BinaryReader) -> records.FieldUse:
        struct, offset = self._item(reader, self.definitions), reader.uleb(255)
        if offset >= len(struct.fields):
            raise malformed(f"{struct.name} has no field {offset}")
        return records.FieldUse(struct, (), offset)

    def _variant_field(self, reader: BinaryReader) -> records.FieldUse:
        struct, offset = self._item(reader, self.definitions), reader.uleb(255)
        indices = tuple(reader.uleb(127) for _ in range(reader.uleb(127)))
        variants = struct.variants or ()
        if not indices or any(at >= len(variants) or offset >= len(variants[at].fields) for at in indices):
            raise malformed(f"a variant of {struct.name} has no field {offset}")
        return records.FieldUse(struct, (), offset, indices)

    def _variant(self, reader: BinaryReader) -> records.VariantUse:
        struct, index = self._item(reader, self.definitions), reader.uleb(127)
        if index >= len(struct.variants or ()):
            raise malformed(f"{struct.name} has no variant {index}")
        return records.VariantUse(struct, (), index)

    def _instance(self, reader: BinaryReader, table: list[Any]) -> Any:
        use, arguments = self._item(reader, table), self._item(reader, self.signatures)
        _check_count(use.struct, arguments)
        return use._replace(arguments=arguments)

    def _function(self, reader: BinaryReader) -> records.FunctionDefinition:
        handle = self._item(reader, self.handles)
        if handle.module != self.own:
            raise malformed(f"{handle.name} is not a function of this module")
        visibility, flags = reader.u8(), reader.u8()
        if visibility not in {records.PRIVATE, records.PUBLIC, records.FRIEND} or flags & ~(_NATIVE | _ENTRY):
            raise malformed(f"{handle.name} has unknown visibility or flags")
        acquires = tuple(reader.uleb() for _ in range(reader.uleb(255)))
        is_native = bool(flags & _NATIVE)
        kinds, code = (handle.parameters, ()) if is_native else self._code(reader, handle)
        return records.FunctionDefinition(
            module=self.own,
            name=handle.name,
            index=len(self.functions),
            parameters=handle.parameters,
            results=handle.results,
            type_parameters=handle.type_parameters,
            visibility=visibility,
            is_entry=bool(flags & _ENTRY),
            is_native=is_native,
            locals=kinds,
            code=code,
            access=handle.access,
            attributes=handle.attributes,
            acquires=acquires,
        )

    def _code(
        self, reader: BinaryReader, handle: records.FunctionHandle
    ) -> tuple[tuple[t.Type, ...], tuple[Instruction, ...]]:
        kinds = handle.parameters + self._item(reader, self.signatures)
        count = reader.uleb()
        code = tuple(self._instruction(reader, len(kinds), count) for _ in range(count))
        return kinds, code

    def _instruction(self, reader: BinaryReader, local_count: int, length: int) -> Instruction:  # noqa: C901, PLR0912 - a case per kind
        opcode = OPCODES.get(reader.u8())
        if opcode is None or opcode.since > self.version:
            raise malformed(f"byte {reader.position - 1}: not an instruction of version {self.version}")
        name = opcode.name
        match opcode.operand:
            case "":
                return Instruction(name)
            case "offset":
                operand: Any = reader.uleb()
                if operand >= length:
                    raise malformed(f"byte {reader.position}: a branch leaves the function")
            case "local":
                operand = reader.uleb(255)
                if operand >= local_count:
                    raise malformed(f"byte {reader.position}: unknown local {operand}")
            case "integer":
                kind = t.INTEGERS[name[2:].lower()]
                operand = int.from_bytes(reader.fixed(kind.bits // 8), "little", signed=kind.minimum < 0)
            case "constant":
                operand = self._item(reader, self.constants)
            case "function":
                operand = records.FunctionUse(self._item(reader, self.handles))
                if operand.function.type_parameters:
                    raise malformed(f"byte {reader.position}: {operand.function.name} needs type arguments")
            case "function_instance":
                operand = self._item(reader, self.function_instances)
            case "closure" | "closure_instance":
                if opcode.operand == "closure_instance":
                    use = self._item(reader, self.function_instances)
                else:
                    use = records.FunctionUse(self._item(reader, self.handles))
                mask = reader.uleb(MAX_U64)
                operand = (use, mask)
                if mask >> len(use.function.parameters):
                    raise malformed(f"byte {reader.position}: the mask captures more than the parameters")
            case "struct":
                operand = records.StructUse(self._item(reader, self.definitions))
                if operand.struct.type_parameters:
                    raise malformed(f"byte {reader.position}: {operand.struct.name} needs type arguments")
            case "element" | "elements" | "function_type":
                operand = self._single(reader)
                if opcode.operand == "elements":
                    operand = (operand, int.from_bytes(reader.fixed(8), "little"))
            case kind:
                operand = self._item(reader, self._operand_table(kind))
        return Instruction(name, operand)

    def _single(self, reader: BinaryReader) -> t.Type:
        kinds = self._item(reader, self.signatures)
        if len(kinds) != 1:
            raise malformed(f"byte {reader.position}: expected one type, got {len(kinds)}")
        return kinds[0]

    def _operand_table(self, kind: str) -> list[Any]:
        tables: dict[str, list[Any]] = {
            "struct_instance": self.struct_instances,
            "field": self.fields,
            "field_instance": self.field_instances,
            "variant_field": self.variant_fields,
            "variant_field_instance": self.variant_field_instances,
            "variant": self.variants,
            "variant_instance": self.variant_instances,
        }
        return tables[kind]


def _check_count(generic: Any, arguments: Sequence[t.Type]) -> None:
    if len(arguments) != len(generic.type_parameters):
        raise malformed(f"{generic.name} has {len(generic.type_parameters)} type parameters")


def _choice(reader: BinaryReader, first: int, last: int) -> int:
    value = reader.u8()
    if not first <= value <= last:
        raise malformed(f"byte {reader.position}: expected {first} to {last}, got {value}")
    return value
