"""Print the Move module of lesson 18 as hexadecimal digits.

The toolkit contains no Move compiler. The instructions below are written by hand, as a compiler writes them for the
source in the lesson, and stored in the binary format of the ledger:

    python notebooks/club_module.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit import vm
from toolkit.move import UInt, encode_bcs
from toolkit.vm import _types as types
from toolkit.vm._code import PUBLIC, FunctionDefinition, Instruction
from toolkit.vm._module import write_module

if TYPE_CHECKING:
    from toolkit import Node

CLUB = types.ModuleId(bytes(30) + b"\x0c\x1b", "club")
AMOUNT, YEARS = 0, 1
# `#[view]` on `grown`: metadata of version 1, no structs' attributes, one function with one attribute, of kind 1.
VIEW = b"\0\0\1\5grown\1\1\0"
CODE = (
    ("CopyLoc", YEARS),  # while (years > 0)
    ("LdU64", 0),
    ("Gt",),
    ("BrFalse", 15),
    ("CopyLoc", AMOUNT),  # amount += amount / 20
    ("MoveLoc", AMOUNT),
    ("LdU64", 20),
    ("Div",),
    ("Add",),
    ("StLoc", AMOUNT),
    ("MoveLoc", YEARS),  # years -= 1
    ("LdU64", 1),
    ("Sub",),
    ("StLoc", YEARS),
    ("Branch", 0),
    ("MoveLoc", AMOUNT),  # amount
    ("Ret",),
)


def club_module() -> bytes:
    """Return the module ``0xc1b::club``."""
    parameters = (types.U64, types.U64)
    grown = FunctionDefinition(
        CLUB,
        "grown",
        0,
        parameters,
        (types.U64,),
        visibility=PUBLIC,
        locals=parameters,
        code=tuple(Instruction(*one) for one in CODE),
    )
    return write_module(CLUB, functions=[grown], metadata={b"aptos::metadata_v1": VIEW}, version=6)


# What `grown` needs of a price list, and the limits of types.
PRICES = """
txn.gas_unit_scaling_factor txn.max_ty_size txn.max_ty_depth instr.subst_ty_per_node instr.copy_loc.base
instr.copy_loc.per_abs_val_unit misc.abs_val.u64 instr.move_loc.base instr.st_loc.base instr.ld_u64 instr.gt instr.add
instr.sub instr.div instr.br_false instr.branch instr.ret
""".split()  # noqa: SIM905 - as the lesson writes them


def grown(node: Node, amount: int, years: int) -> vm.View:
    """Run the function as the lesson does: with the node's prices at version 1,000."""
    schedule, u64 = node.gas_schedule(1_000), UInt(64)

    def priced(name: str) -> bytes:
        return bytes([len(name)]) + name.encode() + encode_bcs(u64, schedule.entries[name])

    state = {
        b"club": club_module(),
        b"GasScheduleV2\0": encode_bcs(u64, schedule.feature_version)
        + bytes([len(PRICES)])
        + b"".join(map(priced, PRICES)),
        b"Features\0": b"\0",
        b"ChainId\0": b"\4",
        b"Configuration\0": bytes(56),
    }

    def read(key: bytes) -> tuple[bytes, None] | None:
        return next(((value, None) for name, value in state.items() if key.endswith(name)), None)

    arguments = [encode_bcs(u64, amount), encode_bcs(u64, years)]
    return vm.run_view("0xc1b::club::grown", [], arguments, read, log=True)


if __name__ == "__main__":
    print(club_module().hex())  # noqa: T201
