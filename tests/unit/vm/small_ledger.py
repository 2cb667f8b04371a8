"""A ledger of a few modules of our own, written by the writer of the binary format: enough to run transactions on."""

from __future__ import annotations

from functools import cache

from toolkit.move import FunctionId, UInt, encode_bcs
from toolkit.move._bcs import uleb128
from toolkit.move._module_metadata import METADATA_KEY, Attribute, ModuleMetadata
from toolkit.vm import _code as code
from toolkit.vm import _types as t
from toolkit.vm._code import LOG_NAMES, Constant, Instruction
from toolkit.vm._module import write_module
from toolkit.vm._state import module_key, resource_key
from toolkit.wire import Ed25519Signature, RawTransaction, SignedTransaction
from toolkit.wire._bcs_requests import EncodedEntryFunction

CAFE = bytes(30) + b"\xca\xfe"
ALICE = bytes(31) + b"\xaa"
COUNTER = t.ModuleId(CAFE, "counter")
GAS_VERSION = 43
# Abstraction (so: the unified prologue), payloads of version 2, lazy loading, slot metadata, refundable bytes, refunds,
# charged invariant violations, the cache of type arguments, memory natives.
FLAGS = (19, 20, 28, 51, 80, 83, 85, 89, 93, 95)

SIGNER_REF = t.Reference(t.SIGNER, False)


def op(name, operand=None):
    """Return an instruction."""
    return Instruction(name, operand)


def function(  # noqa: PLR0917
    module, name, instructions, parameters=(), results=(), locals_=(), **more
):
    """Return a function definition; instructions are names, or (name, operand)."""
    body = tuple(op(*one) if isinstance(one, tuple) else op(one) for one in instructions)
    parameters = tuple(parameters)
    return code.FunctionDefinition(
        module, name, 0, parameters, tuple(results), locals=parameters + tuple(locals_), code=body, **more
    )


def handle(module, name, parameters=(), results=()):
    """Return what `Call` needs of a function."""
    return code.FunctionUse(code.FunctionHandle(module, name, tuple(parameters), tuple(results), ()))


def metadata(**functions):
    """Return module metadata with attributes of functions: kinds by name."""
    kinds = {name: (Attribute(kind),) for name, kind in functions.items()}
    return {METADATA_KEY: ModuleMetadata(functions=kinds).to_bcs()}


VALUE = code.StructDefinition(COUNTER, "Value", t.KEY, (), (code.Field("value", t.U64),))
USE = code.StructUse(VALUE)
FIELD = code.FieldUse(VALUE, (), 0)


def counter_functions():
    """Return the functions of the module `counter`."""
    yield function(
        COUNTER,
        "start",
        [("MoveLoc", 0), ("LdU64", 0), ("Pack", USE), ("MoveTo", USE), "Ret"],
        [SIGNER_REF],
        visibility=code.PUBLIC,
        is_entry=True,
    )
    yield function(
        COUNTER,
        "bump",
        [
            ("CopyLoc", 1),
            ("MutBorrowGlobal", USE),
            ("MutBorrowField", FIELD),
            ("StLoc", 2),
            ("CopyLoc", 2),
            "ReadRef",
            ("LdU64", 1),
            "Add",
            ("MoveLoc", 2),
            "WriteRef",
            "Ret",
        ],
        [SIGNER_REF, t.ADDRESS],
        locals_=[t.Reference(t.U64, True)],
        is_entry=True,
        acquires=(0,),
    )
    yield function(
        COUNTER,
        "loop",
        # let i = 0; while (i < n) i = i + 1
        [
            ("LdU64", 0),
            ("StLoc", 2),
            ("CopyLoc", 2),
            ("CopyLoc", 1),
            "Lt",
            ("BrFalse", 11),
            ("MoveLoc", 2),
            ("LdU64", 1),
            "Add",
            ("StLoc", 2),
            ("Branch", 2),
            "Ret",
        ],
        [SIGNER_REF, t.U64],
        locals_=[t.U64],
        is_entry=True,
    )
    yield function(COUNTER, "stop", [("LdU64", 7), "Abort"], [SIGNER_REF], is_entry=True)
    yield function(
        COUNTER,
        "fill",
        # let v = vector[]; loop { v.push_back(i); i = i + 1 }: memory, vectors and calls until something ends it
        [
            ("VecPack", (t.U64, 0)),
            ("StLoc", 1),
            ("MutBorrowLoc", 1),
            ("LdU64", 5),
            ("VecPushBack", t.U64),
            ("CopyLoc", 1),
            ("Call", handle(COUNTER, "length", [t.Vector(t.U64)], [t.U64])),
            "Pop",
            ("Branch", 2),
        ],
        [SIGNER_REF],
        locals_=[t.Vector(t.U64)],
        is_entry=True,
    )
    yield function(COUNTER, "length", [("ImmBorrowLoc", 0), ("VecLen", t.U64), "Ret"], [t.Vector(t.U64)], [t.U64])
    yield function(
        COUNTER,
        "get",
        [("MoveLoc", 0), ("ImmBorrowGlobal", USE), ("ImmBorrowField", FIELD), "ReadRef", "Ret"],
        [t.ADDRESS],
        [t.U64],
        acquires=(0,),
    )
    yield function(COUNTER, "text", [("LdConst", Constant(t.BYTES, b"\2hi")), "Ret"], results=[t.BYTES])
    yield function(COUNTER, "endless", [("Branch", 0)], results=[t.U64])
    yield function(COUNTER, "deep", [("Call", handle(COUNTER, "deep", (), [t.U64])), "Ret"], results=[t.U64])


@cache
def counter_code() -> bytes:
    """Return the module `counter`."""
    views = metadata(get=1, text=1, endless=1, deep=1)
    return write_module(COUNTER, functions=counter_functions(), structs=[VALUE], metadata=views, version=8)


def framework(name):
    """Return the id of a module of the framework."""
    return t.ModuleId(t.FRAMEWORK, name)


@cache
def validation_code() -> bytes:
    """Return a module `transaction_validation` that accepts every transaction and takes no gas."""
    module = framework("transaction_validation")
    option = t.struct("0x1::option::Option", t.BYTES)
    protector = t.Struct(module, "Protector", ())
    enum = code.StructDefinition(
        module,
        "Protector",
        t.COPY | t.DROP,
        (),
        (),
        (code.Variant("Nonce", (code.Field("v", t.U64),)), code.Variant("Number", (code.Field("v", t.U64),))),
    )
    prologue = [t.SIGNER, option, protector, t.Vector(t.ADDRESS), t.Vector(option), *[t.U64] * 3, t.U8, t.BOOL]
    epilogue = [t.SIGNER, t.SIGNER, *[t.U64] * 4, t.BOOL, t.BOOL]
    known = code.StructHandle(option.module, "Option", 7, (code.TypeParameter(0),))
    return write_module(
        module,
        functions=[
            function(module, "unified_prologue_v2", ["Ret"], prologue),
            function(module, "unified_epilogue_v2", ["Ret"], epilogue),
        ],
        structs=[enum],
        struct_handles=[known],
    )


@cache
def option_code() -> bytes:
    """Return a module `option` with the old form of options."""
    module = framework("option")
    parameter = t.Parameter(0)
    option = code.StructDefinition(
        module, "Option", 7, (code.TypeParameter(0),), (code.Field("vec", t.Vector(parameter)),)
    )
    return write_module(module, structs=[option])


def schedule_bcs(version=GAS_VERSION, **changes) -> bytes:
    """Return a gas schedule: every price of an instruction is some number, so that none is equal to another."""
    prices = {
        "txn.gas_unit_scaling_factor": 1_000,
        "txn.min_transaction_gas_units": 5_000,
        "txn.large_transaction_cutoff": 600,
        "txn.maximum_number_of_gas_units": 2_000_000,
        "txn.max_price_per_gas_unit": 10_000,
        "txn.max_transaction_size_in_bytes": 65_536,
        "txn.max_execution_gas": 10_000_000,
        "txn.max_io_gas": 10_000_000,
        "txn.max_storage_fee": 10_000_000,
        "txn.memory_quota": 1_000_000,
        "txn.max_ty_size": 128,
        "txn.max_ty_depth": 20,
        "txn.max_num_dependencies": 768,
        "txn.max_total_dependency_size": 1_000_000,
        "txn.storage_io_per_state_slot_read": 300,
        "txn.storage_io_per_state_byte_read": 1,
        "txn.storage_io_per_state_slot_write": 80,
        "txn.storage_io_per_state_byte_write": 2,
        "txn.storage_fee_per_state_slot": 40_000,
        "txn.storage_fee_per_state_byte": 40,
        "txn.dependency_per_module": 74,
        "txn.dependency_per_byte": 3,
        "instr.subst_ty_per_node": 4,
    }
    for at, name in enumerate(LOG_NAMES.values()):
        prices[f"instr.{name.lower()}"] = 100 + at
    for at, name in enumerate(("copy_loc", "read_ref", "eq", "neq")):
        del prices[f"instr.{name}"]
        prices[f"instr.{name}.base"], prices[f"instr.{name}.per_abs_val_unit"] = 300 + at, 2 + at
    prices |= {"instr.call.base": 500, "instr.call.per_arg": 7, "instr.call.per_local": 9}
    for name in [*t.PRIMITIVES, "struct", "vector", "closure", "reference"]:
        prices[f"misc.abs_val.{name}"] = 40
    for name in t.PRIMITIVES:
        prices[f"misc.abs_val.per_{name}_packed"] = 8
    data = bytearray(version.to_bytes(8, "little"))
    prices |= changes
    data += uleb128(len(prices))
    for name, price in prices.items():
        data += uleb128(len(name)) + name.encode() + price.to_bytes(8, "little")
    return bytes(data)


def feature_bits(flags):
    """Return the bytes of feature flags."""
    return sum(1 << flag for flag in flags).to_bytes(16, "little")


def state(*, version=GAS_VERSION, flags=FLAGS, modules=(), **changes):
    """Return a state as a dict from keys to (value, metadata)."""
    features = feature_bits(flags)
    found = {
        resource_key(t.FRAMEWORK, t.struct("0x1::features::Features")): uleb128(len(features)) + features,
        resource_key(t.FRAMEWORK, t.struct("0x1::chain_id::ChainId")): b"\4",
        resource_key(t.FRAMEWORK, t.struct("0x1::reconfiguration::Configuration")): bytes(56),
        resource_key(t.FRAMEWORK, t.struct("0x1::gas_schedule::GasScheduleV2")): schedule_bcs(version, **changes),
        resource_key(t.FRAMEWORK, t.struct("0x1::timestamp::CurrentTimeMicroseconds")): (77).to_bytes(8, "little"),
        module_key(COUNTER): counter_code(),
        module_key(framework("transaction_validation")): validation_code(),
        module_key(framework("option")): option_code(),
    }
    found |= {module_key(module): data for module, data in modules}
    return {key: (value, None) for key, value in found.items()}


def call(name, *arguments, module="0xcafe::counter", max_gas=100_000, price=1, sequence_number=0) -> bytes:
    """Return a transaction of ALICE without a signature; arguments are BCS."""
    raw = RawTransaction(
        sender="0xaa",
        sequence_number=sequence_number,
        payload=EncodedEntryFunction(FunctionId.parse(f"{module}::{name}"), (), arguments),
        max_gas_amount=max_gas,
        gas_unit_price=price,
        expiration_timestamp_secs=10,
        chain_id=4,
    )
    return SignedTransaction(raw, Ed25519Signature(bytes(32))).to_bcs()


def u64(value) -> bytes:
    """Return the BCS of a u64."""
    return encode_bcs(UInt(64), value)
