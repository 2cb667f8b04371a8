"""What modules and scripts consist of: instructions of bytecode 5 to 9, their operands, handles and definitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolkit.vm._types import ModuleId, Struct, Type

MIN_VERSION, MAX_VERSION = 5, 9

# In the order of their bytes, from 0x01.
_TABLE = """
    Pop Ret BrTrue BrFalse Branch LdU64 LdConst LdTrue LdFalse CopyLoc MoveLoc StLoc MutBorrowLoc ImmBorrowLoc
    MutBorrowField ImmBorrowField Call Pack Unpack ReadRef WriteRef Add Sub Mul Mod Div BitOr BitAnd Xor Or And Not
    Eq Neq Lt Gt Le Ge Abort Nop Exists MutBorrowGlobal ImmBorrowGlobal MoveFrom MoveTo FreezeRef Shl Shr LdU8
    LdU128 CastU8 CastU64 CastU128 MutBorrowFieldGeneric ImmBorrowFieldGeneric CallGeneric PackGeneric UnpackGeneric
    ExistsGeneric MutBorrowGlobalGeneric ImmBorrowGlobalGeneric MoveFromGeneric MoveToGeneric VecPack VecLen
    VecImmBorrow VecMutBorrow VecPushBack VecPopBack VecUnpack VecSwap LdU16 LdU32 LdU256 CastU16 CastU32 CastU256
    ImmBorrowVariantField MutBorrowVariantField ImmBorrowVariantFieldGeneric MutBorrowVariantFieldGeneric
    PackVariant PackVariantGeneric UnpackVariant UnpackVariantGeneric TestVariant TestVariantGeneric PackClosure
    PackClosureGeneric CallClosure LdI8 LdI16 LdI32 LdI64 LdI128 LdI256 CastI8 CastI16 CastI32 CastI64 CastI128
    CastI256 Negate
"""
_NAMES = _TABLE.split()
# The first byte of each later version.
_SINCE = {6: 0x48, 7: 0x4E, 8: 0x58, 9: 0x5B}

# What the operand of each instruction is: `_binary` reads and writes it by these words. Instructions
# without an operand are not listed; generic forms of those with a struct, a field or a variant have an instance of it.
_OPERANDS = {
    "offset": "BrTrue BrFalse Branch",
    "local": "CopyLoc MoveLoc StLoc MutBorrowLoc ImmBorrowLoc",
    "integer": "LdU8 LdU16 LdU32 LdU64 LdU128 LdU256 LdI8 LdI16 LdI32 LdI64 LdI128 LdI256",
    "constant": "LdConst",
    "function": "Call",
    "function_instance": "CallGeneric",
    "closure": "PackClosure",
    "closure_instance": "PackClosureGeneric",
    "function_type": "CallClosure",
    "struct": "Pack Unpack Exists MutBorrowGlobal ImmBorrowGlobal MoveFrom MoveTo",
    "field": "MutBorrowField ImmBorrowField",
    "variant_field": "ImmBorrowVariantField MutBorrowVariantField",
    "variant": "PackVariant UnpackVariant TestVariant",
    "element": "VecLen VecImmBorrow VecMutBorrow VecPushBack VecPopBack VecSwap",
    "elements": "VecPack VecUnpack",
}


BRANCHES = frozenset({"Branch", "BrTrue", "BrFalse"})
ENDS = frozenset({"Branch", "Ret", "Abort"})  # after which the next instruction does not follow


class Opcode(NamedTuple):
    """An instruction without its operands."""

    name: str  # as disassemblies write it: CopyLoc
    operand: str  # kind of operand, or empty
    since: int  # first version of the format that has it
    log_name: str  # as gas logs write it: COPY_LOC


def _opcodes() -> dict[int, Opcode]:
    kinds = {name: kind for kind, names in _OPERANDS.items() for name in names.split()}
    for name in list(kinds):
        if kinds[name] in {"struct", "field", "variant_field", "variant"}:
            kinds[name + "Generic"] = kinds[name] + "_instance"
    opcodes = {}
    for byte, name in enumerate(_NAMES, 1):
        since = max((version for version, first in _SINCE.items() if byte >= first), default=MIN_VERSION)
        log_name = re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()
        opcodes[byte] = Opcode(name, kinds.get(name, ""), since, log_name)
    return opcodes


OPCODES = _opcodes()
BYTES_OF = {opcode.name: byte for byte, opcode in OPCODES.items()}
LOG_NAMES = {opcode.name: opcode.log_name for opcode in OPCODES.values()}


class Instruction(NamedTuple):
    """An instruction with its operand resolved: a number, a type, a record of this module, or a pair of these."""

    name: str
    operand: Any = None


PRIVATE, PUBLIC, FRIEND = 0, 1, 3
# Attributes of functions: closures over them may be stored; their module may not be entered again while they run.
PERSISTENT, MODULE_LOCK = 1, 2


class TypeParameter(NamedTuple):
    """A type parameter: abilities that its arguments must have, and whether it is phantom."""

    abilities: int
    phantom: bool = False


class StructHandle(NamedTuple):
    """A struct of this or another module, as this module knows it."""

    module: ModuleId
    name: str
    abilities: int
    type_parameters: tuple[TypeParameter, ...]


class FunctionHandle(NamedTuple):
    """A function of this or another module, as this module knows it."""

    module: ModuleId
    name: str
    parameters: tuple[Type, ...]
    results: tuple[Type, ...]
    type_parameters: tuple[int, ...]  # abilities of each
    access: tuple[AccessSpecifier, ...] | None = None
    attributes: frozenset[int] = frozenset()


class AccessedResource(NamedTuple):
    """Resources of modules of an account, of a module, of a struct, or one of them; all if nothing is given."""

    account: bytes | None = None
    module: ModuleId | None = None
    name: str | None = None
    arguments: tuple[Type, ...] | None = None


class AccessSpecifier(NamedTuple):
    """A clause of the resources that a function may read or write.

    Attributes
    ----------
    writes : bool
        Whether it is about writing, which includes reading.
    negated : bool
        Whether it forbids.
    resource : AccessedResource
        Which resources.
    address : bytes, (int, int or None) or None
        Where they are: at an address; at that in a parameter, perhaps through an instance of a function; anywhere.
    """

    writes: bool
    negated: bool
    resource: AccessedResource
    address: bytes | tuple[int, int | None] | None


class FunctionUse(NamedTuple):
    """A function with type arguments; they are None if the instruction is not the generic one."""

    function: FunctionHandle
    arguments: tuple[Type, ...] | None = None


class StructUse(NamedTuple):
    """A struct of this module with type arguments, or a variant of an enum."""

    struct: StructDefinition
    arguments: tuple[Type, ...] = ()
    variant: int | None = None


class FieldUse(NamedTuple):
    """A field of a struct, or of some variants of an enum: it has the same offset and type in all of them."""

    struct: StructDefinition
    arguments: tuple[Type, ...]
    offset: int
    variants: tuple[int, ...] = ()


class Constant(NamedTuple):
    """A constant: its type and its value in BCS."""

    type: Type
    data: bytes


class Field(NamedTuple):
    """A field of a struct or variant."""

    name: str
    type: Type


class Variant(NamedTuple):
    """A variant of an enum."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, eq=False, repr=False)
class StructDefinition:
    """A struct or enum that the module defines.

    Attributes
    ----------
    module : ModuleId
    name : str
    abilities : int
        Bits of copy (1), drop (2), store (4) and key (8).
    type_parameters : tuple of TypeParameter
    fields : tuple of Field
        Fields of a struct; empty for an enum.
    variants : tuple of Variant or None
        Variants of an enum; None for a struct.
    """

    module: ModuleId
    name: str
    abilities: int
    type_parameters: tuple[TypeParameter, ...]
    fields: tuple[Field, ...]
    variants: tuple[Variant, ...] | None = None

    def type(self, arguments: tuple[Type, ...]) -> Struct:
        """Return the type with these type arguments."""
        return Struct(self.module, self.name, arguments)

    def fields_of(self, variant: int | None) -> tuple[Field, ...]:
        """Return the fields of a variant; None stands for those of a struct."""
        return self.fields if variant is None else (self.variants or ())[variant].fields

    @property
    def variant_names(self) -> list[str]:
        """Names of the variants of an enum."""
        return [one.name for one in self.variants or ()]

    def __repr__(self) -> str:
        return f"<{self.module}::{self.name}: {'enum' if self.variants is not None else 'struct'}>"


@dataclass(frozen=True, eq=False, repr=False)
class FunctionDefinition:
    """A function that the module defines, or the main function of a script.

    Attributes
    ----------
    module : ModuleId or None
        None for a script.
    name : str
    index : int
        Index of the definition.
    parameters, results : tuple of Type
    type_parameters : tuple of int
        Abilities that the type arguments must have.
    visibility : int
        0 private, 1 public, 3 friend.
    is_entry, is_native : bool
    locals : tuple of Type
        Types of the parameters and the other locals.
    code : tuple of Instruction
    access : tuple of AccessSpecifier or None
    attributes : frozenset of int
    acquires : tuple of int
        Indices of struct definitions.
    """

    module: ModuleId | None
    name: str
    index: int
    parameters: tuple[Type, ...]
    results: tuple[Type, ...]
    type_parameters: tuple[int, ...] = ()
    visibility: int = PRIVATE
    is_entry: bool = False
    is_native: bool = False
    locals: tuple[Type, ...] = ()
    code: tuple[Instruction, ...] = ()
    access: tuple[AccessSpecifier, ...] | None = None
    attributes: frozenset[int] = frozenset()
    acquires: tuple[int, ...] = ()

    @property
    def is_persistent(self) -> bool:
        """Whether closures over the function can be stored: it is public or says so."""
        return self.visibility == PUBLIC or PERSISTENT in self.attributes

    def __str__(self) -> str:
        return f"{self.module}::{self.name}" if self.module else "script"

    def __repr__(self) -> str:
        return f"<{self}: {len(self.code)} instructions>"
