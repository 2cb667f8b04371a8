"""The instruction set of bytecode 5 to 9: names, operands and the version that introduced each."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

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

# What the operand of each instruction is: `_module` reads it, and `_writer` writes it, by these words. Instructions
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
    """An instruction with its operand resolved: a number, a type, a record of `_code`, or a pair of these."""

    name: str
    operand: Any = None
