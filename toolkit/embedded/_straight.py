"""Scripts that make calls in a row: batches are composed, and scripts are read and checked as on a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded._vm_status import VmError
from toolkit.errors import Unsupported
from toolkit.move._ids import address_from_bytes
from toolkit.vm._batch import check_straight, compose, is_straight, literal_type, module_of_abi, types_of
from toolkit.vm._errors import MoveError
from toolkit.vm._module import read_script
from toolkit.vm._types import SIGNER, SIGNER_REFERENCE, Primitive, Struct, Type, Vector, ability_bits
from toolkit.wire._bcs_requests import EncodedScript, ScriptArgument, encoded_literal

if TYPE_CHECKING:
    from toolkit.embedded._code import CodeSet
    from toolkit.move import Layout, ModuleAbi
    from toolkit.vm._batch import ModuleCode
    from toolkit.vm._code import FunctionHandle, StructHandle
    from toolkit.vm._module import ScriptCode
    from toolkit.vm._types import ModuleId
    from toolkit.wire._requests import Batch

_UNREADABLE = "CODE_DESERIALIZATION_ERROR"
# Structs that callers may send; their constructors run.
_SENDABLE = {"0x1::string::String", "0x1::option::Option", "0x1::object::Object"}
_SENDABLE |= {"0x1::fixed_point32::FixedPoint32", "0x1::fixed_point64::FixedPoint64"}


def read_straight(code: CodeSet, bytecode: bytes) -> ScriptCode:
    """Read a script and check it, also against the modules that it uses.

    Raises
    ------
    VmError
        As a node refuses it; or as unreadable bytecode, with the reason, if it does more than calls in a row.
    """
    try:
        script = read_script(bytecode)
    except (MoveError, Unsupported) as error:
        reason = error.message if isinstance(error, MoveError) else str(error)
        raise VmError(_UNREADABLE, f"[VM] deserializer for script returned error: {reason}") from None
    main = script.main
    signers = signer_count(script)
    if not is_straight(main) or SIGNER_REFERENCE in main.parameters[signers:]:
        raise VmError(_UNREADABLE, "the embedded node runs scripts that only make calls in a row, from signers on")
    try:
        check_straight(main, script.struct_handles)
    except MoveError as error:
        raise VmError(error.status, error.message or "") from None
    if not all(map(_may_be_sent, main.parameters[signers:])):
        raise VmError("INVALID_MAIN_FUNCTION_SIGNATURE")
    for module in script.dependencies:
        _abi(code, module)
    for struct in script.struct_handles:
        _check_struct(_abi(code, struct.module), struct)
    for function in script.handles:
        _check_function(_abi(code, function.module), function)
    return script


def compose_batch(code: CodeSet, batch: Batch, signers: int) -> EncodedScript:
    """Compose a batch from the published modules.

    Raises
    ------
    InputError, SchemaError
        If the calls do not fit the functions or each other.
    """

    def module(wanted: ModuleId) -> ModuleCode | None:
        abi = code.module_abi(address_from_bytes(wanted.address), wanted.name)
        return None if abi is None else module_of_abi(wanted, abi)

    def encode(kind: Type, value: Any, where: str) -> bytes:
        return encoded_literal(code.layout(literal_type(kind, value, where)), value, where)

    composed = compose(batch, signers=signers, modules=module, encode=encode)
    return EncodedScript(composed.code, (), tuple(ScriptArgument("serialized", one) for one in composed.arguments))


def script_layouts(code: CodeSet, bytecode: bytes) -> list[Layout] | None:
    """Return the layouts of a script's parameters without signers; None if the bytes are not a script."""
    try:
        kinds = read_script(bytecode).main.parameters
    except (MoveError, Unsupported):
        return None
    return [code.layout(str(kind)) for kind in kinds if kind is not SIGNER_REFERENCE and kind is not SIGNER]


def signer_count(script: ScriptCode) -> int:
    """Return the number of signers, with which the parameters start."""
    kinds = script.main.parameters
    return next((at for at, kind in enumerate(kinds) if kind is not SIGNER_REFERENCE), len(kinds))


def _may_be_sent(kind: Type) -> bool:
    if isinstance(kind, Vector):
        return _may_be_sent(kind.element)
    if isinstance(kind, Struct):
        return f"{kind.module}::{kind.name}" in _SENDABLE
    return isinstance(kind, Primitive) and kind is not SIGNER


def _abi(code: CodeSet, module: ModuleId) -> ModuleAbi:
    found = code.module_abi(address_from_bytes(module.address), module.name)
    if found is None:
        where = f"{module.address.hex()}::{module.name}"
        raise VmError("LINKER_ERROR", f"Linker Error: Module {where} doesn't exist")
    return found


def _check_struct(module: ModuleAbi, handle: StructHandle) -> None:
    """Check that a struct exists, and that it has the abilities that the script expects."""
    struct = module.struct(handle.name)
    if struct is None:
        raise VmError("LOOKUP_FAILED")
    is_generic_alike = len(struct.generic_type_params) == len(handle.type_parameters)
    if handle.abilities & ~ability_bits(struct.abilities) or not is_generic_alike:
        raise VmError("TYPE_MISMATCH", "imported struct mismatches expectation")


def _check_function(module: ModuleAbi, handle: FunctionHandle) -> None:
    """Check that a function exists, that a script may call it, and that it has the types that the script expects."""
    function = module.function(handle.name)
    if function is None or function.visibility != "public":
        raise VmError("LOOKUP_FAILED")
    types = types_of(function.params), types_of(function.return_), len(function.generic_type_params)
    if types != (handle.parameters, handle.results, len(handle.type_parameters)):
        raise VmError("TYPE_MISMATCH", "imported function mismatches expectation")
