"""The binary format: modules survive writing and reading, and no bytes break the reader."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.vm.small_ledger import (
    ALICE,
    COUNTER,
    VALUE,
    call,
    counter_code,
    function,
    module_key,
    state,
    u64,
    validation_code,
)
from toolkit import vm
from toolkit.errors import InputError
from toolkit.vm import _code as code
from toolkit.vm import _types as t
from toolkit.vm._code import OPCODES, Constant, Instruction
from toolkit.vm._module import read_module, read_script, write_module, write_script
from toolkit.vm._state import resource_key

VALUE_KEY = resource_key(ALICE, VALUE.type(()))
PARAMETER = t.Parameter(0)
BOX = code.StructDefinition(COUNTER, "Box", 15, (code.TypeParameter(0),), (code.Field("held", PARAMETER),))
EITHER = code.StructDefinition(
    COUNTER,
    "Either",
    7,
    (code.TypeParameter(0, phantom=True),),
    (),
    (code.Variant("Left", (code.Field("v", t.U8),)), code.Variant("Right", (code.Field("v", t.U8),))),
)
HANDLE = code.FunctionHandle(COUNTER, "all", (), (), ())
GENERIC = code.FunctionHandle(COUNTER, "generic", (PARAMETER,), (), (t.DROP,))
PLAIN = code.StructDefinition(COUNTER, "Plain", 15, (), (code.Field("a", t.U64), code.Field("b", t.BYTES)))
PLAIN_ENUM = code.StructDefinition(COUNTER, "Enum", 7, (), (), (code.Variant("One", (code.Field("v", t.U8),)),))
OPERANDS = {
    "": None,
    "offset": 0,
    "local": 1,
    "integer": 100,
    "constant": Constant(t.BYTES, b"\1a"),
    "function": code.FunctionUse(HANDLE),
    "function_instance": code.FunctionUse(GENERIC, (t.U8,)),
    "closure": (code.FunctionUse(HANDLE), 0),
    "closure_instance": (code.FunctionUse(GENERIC, (t.U8,)), 1),
    "function_type": t.Function((t.U8, t.Reference(t.U64, True)), (t.BOOL,), 7),
    "struct": code.StructUse(PLAIN),
    "struct_instance": code.StructUse(BOX, (t.U256,)),
    "field": code.FieldUse(PLAIN, (), 1),
    "field_instance": code.FieldUse(BOX, (t.I128,), 0),
    "variant_field": code.FieldUse(PLAIN_ENUM, (), 0, (0,)),
    "variant_field_instance": code.FieldUse(EITHER, (t.SIGNER,), 0, (0, 1)),
    "variant": code.StructUse(PLAIN_ENUM, (), 0),
    "variant_instance": code.StructUse(EITHER, (t.U8,), 1),
    "element": t.Vector(t.U16),
    "elements": (t.ADDRESS, 3),
}


def everything() -> bytes:
    """Return a module with every instruction and every kind of type, definition and specifier."""
    instructions = tuple(Instruction(opcode.name, OPERANDS[opcode.operand]) for opcode in OPCODES.values())
    access = (
        code.AccessSpecifier(False, False, code.AccessedResource(), None),
        code.AccessSpecifier(True, True, code.AccessedResource(account=COUNTER.address), COUNTER.address),
        code.AccessSpecifier(True, False, code.AccessedResource(module=COUNTER), (0, None)),
        code.AccessSpecifier(False, True, code.AccessedResource(None, COUNTER, "Plain"), None),
        code.AccessSpecifier(False, True, code.AccessedResource(None, COUNTER, "Box", (t.U8,)), (0, 0)),
    )
    main = function(COUNTER, "all", [], locals_=[t.U8, t.Reference(t.U64, True)])
    main = type(main)(**{**main.__dict__, "code": instructions})
    generic = function(COUNTER, "generic", ["Ret"], [PARAMETER], type_parameters=(t.DROP,))
    native = function(COUNTER, "native", [], [t.U8], is_native=True)
    guarded = function(
        COUNTER, "guarded", ["Ret"], [t.ADDRESS], access=access, attributes=frozenset((1, 2)), visibility=code.FRIEND
    )
    return write_module(
        COUNTER,
        functions=[main, generic, native, guarded],
        structs=[BOX, EITHER, PLAIN, PLAIN_ENUM],
        friends=[t.ModuleId(bytes(32), "friend")],
        metadata={b"key": b"value"},
    )


def rewritten(data):
    module = read_module(data)
    return write_module(
        module.id,
        functions=module.functions.values(),
        structs=module.structs.values(),
        struct_handles=module.struct_handles,
        friends=module.friends,
        metadata=module.metadata,
        version=module.version,
    )


@pytest.mark.parametrize(
    "data", [everything(), counter_code(), validation_code()], ids=["all", "counter", "validation"]
)
def test_a_module_survives_reading_and_writing(data):
    again = rewritten(data)
    assert again == data
    module = vm.Module.from_bytes(again)
    assert vm.code_changes(vm.Module.from_bytes(data), module) == ((), (), ())


def test_everything_is_read_as_it_was_written():
    module = vm.Module.from_bytes(everything())
    assert [one.name for one in module.functions["all"].code] == [opcode.name for opcode in OPCODES.values()]
    operands = {
        OPCODES[byte].operand: one.operand for byte, one in zip(OPCODES, module.functions["all"].code, strict=True)
    }
    assert operands["integer"] == 100
    assert operands["function_type"] is OPERANDS["function_type"]
    assert operands["variant_field_instance"].variants == (0, 1)
    assert module.functions["guarded"].attributes == {1, 2}
    assert len(module.functions["guarded"].access) == 5
    assert (module.structs["Box"].abilities, module.structs["Either"].type_parameters[0].phantom) == (15, True)
    assert "enum Either<phantom T0> has copy + drop + store" in module.disassemble()


def test_a_script_survives_reading_and_writing():
    main = function(None, "main", [("LdU64", 5), "Pop", "Ret"], [t.SIGNER, t.U8], type_parameters=(7,))
    script = read_script(write_script(main, version=8))
    assert (script.main.parameters, script.main.type_parameters) == ((t.SIGNER, t.U8), (7,))
    assert script.main.code == main.code


@pytest.mark.parametrize("version", [0, 4, 10])
def test_other_versions_are_not_guessed(version):
    with pytest.raises(vm.Unsupported, match=f"bytecode version {version}"):
        vm.Module.from_bytes(b"\xa1\x1c\xeb\x0b" + version.to_bytes(4, "little"))


def test_an_instruction_of_a_later_version_is_refused():
    data = bytearray(everything())
    data[4] = 8  # signed integers came with version 9
    with pytest.raises(InputError, match="not a module"):
        vm.Module.from_bytes(bytes(data))


MUTATIONS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4)


@given(MUTATIONS, st.sampled_from(["all", "counter"]), st.integers(0, 10**6))
def test_no_bytes_break_the_reader(mutations, which, cut):
    """Bytes of a module with errors are a module or are refused, and what is read can be shown."""
    data = bytearray(everything() if which == "all" else counter_code())
    for at, byte in mutations:
        data[at % len(data)] = byte
    if cut % 4 == 0:
        del data[cut % len(data) :]
    try:
        module = vm.Module.from_bytes(bytes(data))
    except (InputError, vm.Unsupported):
        return
    assert module.disassemble().startswith("module ")


@given(st.integers(0, 10**6), st.binary(max_size=80), st.integers(0, 100))
def test_no_state_breaks_the_machine(which, data, cut):
    """Any value of the state may be anything: the result has a status, or is refused by name."""
    ledger = state()
    ledger |= {VALUE_KEY: (u64(5), (1, 2, 3))}
    keys = sorted(ledger)
    key = keys[which % len(keys)]
    value = ledger[key][0]
    ledger[key] = (value[: cut % (len(value) + 1)] + data, None)
    for transaction in (call("start"), call("bump", ALICE)):
        try:
            done = vm.execute(transaction, ledger.get, simulate=True)
        except vm.Unsupported:
            continue
        assert done.status.kind


@given(st.lists(st.tuples(st.integers(8, 10**6), st.integers(0, 255)), min_size=1, max_size=2))
def test_no_bytecode_breaks_the_machine(mutations):
    """Code of the ledger with errors ends with a status, or is refused by name."""
    data = bytearray(counter_code())
    for at, byte in mutations:
        data[at % len(data)] = byte
    ledger = state(modules=[(COUNTER, bytes(data))])
    for transaction in (call("start"), call("loop", u64(3)), call("fill", max_gas=20)):
        try:
            done = vm.execute(transaction, ledger.get, simulate=True)
        except vm.Unsupported:
            continue
        assert done.status.kind
    assert module_key(COUNTER) in ledger
    assert VALUE.name == "Value"


def test_a_module_is_shown_by_its_name_and_size():
    """A notebook shows neither the code nor the tables of a module."""
    module = vm.Module.from_bytes(counter_code())
    assert str(module.id) in repr(module)
    assert len(repr(module)) < 120
    assert all(len(repr(function)) < 120 for function in module.functions.values())
