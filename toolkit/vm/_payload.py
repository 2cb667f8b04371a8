"""The payload of a transaction: an entry function, a script, and the modules that it publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import Unsupported
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._arguments import is_signer, make_arguments, may_be_sent
from toolkit.vm._binary import version_of
from toolkit.vm._checks import check_calls
from toolkit.vm._code import PUBLIC
from toolkit.vm._environment import MAINNET, framework_resource
from toolkit.vm._errors import MoveError
from toolkit.vm._metadata import RANDOMNESS, is_unstable
from toolkit.vm._module import read_script
from toolkit.vm._natives._publishing import Requests
from toolkit.vm._publish import charge_bundle, check_bundle, check_code, initializer, read_bundle
from toolkit.vm._state import module_key
from toolkit.vm._straight import check_straight, is_straight
from toolkit.vm._transaction_run import CalledFunction, TransactionRun, signer_for
from toolkit.vm._types import ModuleId, Type, from_tag, struct_modules, substituted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._interpreter import Machine
    from toolkit.vm._values import Value
    from toolkit.wire import _bcs_requests as requests


def run_entry(run: TransactionRun, machine: Machine, called: CalledFunction, signers: Sequence[bytes]) -> None:
    loader, meter = run.loader, run.meter
    _charge_modules(run, [called.module], called.types)
    function = loader.function(called.module, called.name)
    loader.check_constraints(called.types, function.type_parameters)
    if function.is_native:
        raise MoveError("USER_DEFINED_NATIVE_NOT_ALLOWED")
    attributes = loader.module(called.module).attributes
    if function.visibility != PUBLIC and attributes.of_function(called.name, RANDOMNESS) is not None:
        machine.session.unbiasable = True
    values = _call_values(machine, function, called.types, called.arguments, signers)
    if not function.is_entry:
        raise MoveError("EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION")
    machine.meter = meter
    machine.run(loader.code(function, called.types), values)


def _charge_modules(run: TransactionRun, modules: Sequence[ModuleId], types: Sequence[Type]) -> None:
    """Charge the module of an entry function, or those that a script uses, and those of type arguments."""
    loader, meter = run.loader, run.meter
    if loader.lazy:
        loader.visit_lazily([*modules, *struct_modules(types)], meter)
    else:
        loader.visit_all(modules, meter)
        if run.schedule.version >= since.TYPE_ARGUMENTS:
            loader.visit_all(struct_modules(types), meter)


def run_script(run: TransactionRun, machine: Machine, script: requests.EncodedScript) -> None:
    loader = run.loader
    serialized = any(one.kind == "serialized" for one in script.arguments)
    if serialized and flags.SERIALIZED_SCRIPT_ARGUMENTS not in run.features:
        raise MoveError("FEATURE_UNDER_GATING").at("script")
    _check_format(run, script.code)
    _refuse_governance(run)
    try:
        code = read_script(script.code)
    except MoveError as error:
        message = f"[VM] deserializer for script returned error: {error.message}"
        raise MoveError("CODE_DESERIALIZATION_ERROR", message) from None
    if is_straight(code.main):
        check_straight(code.main, code.struct_handles)
    types = tuple(map(from_tag, script.type_arguments))
    _charge_modules(run, code.dependencies, types)
    if run.environment.chain_id == MAINNET and is_unstable(code.metadata):
        raise MoveError("UNSTABLE_BYTECODE_REJECTED")
    if any(str(one.module) == "0x1::event" and one.name == "emit" for one in code.handles):
        raise MoveError("INVALID_OPERATION_IN_SCRIPT")
    check_calls(loader, None, code.handles)
    loader.check_constraints(types, code.main.type_parameters)
    arguments = tuple(argument.to_bcs() for argument in script.arguments)
    values = _call_values(machine, code.main, types, arguments, [run.sender, *run.signers.addresses])
    machine.run(loader.code(code.main, types), values)


def _check_format(run: TransactionRun, code: bytes) -> None:
    """Check that the ledger accepts the version of the binary format."""
    newest = max((version for version, flag in flags.FORMATS.items() if flag in run.features), default=5)
    if version_of(code) > newest:
        raise MoveError("CODE_DESERIALIZATION_ERROR", f"bytecode version {version_of(code)}")


def _refuse_governance(run: TransactionRun) -> None:
    """Refuse scripts that a vote has approved: they have limits of their own."""
    approved = framework_resource(run.environment.base, "aptos_governance::ApprovedExecutionHashes")
    if approved is not None and run.script_hash in approved:
        raise Unsupported("scripts that governance has approved")


def _call_values(
    machine: Machine,
    function: FunctionDefinition,
    types: tuple[Type, ...],
    arguments: tuple[bytes, ...],
    signers: Sequence[bytes],
) -> list[Value]:
    """Return the arguments of a function: the signers, then what the transaction carries."""
    if function.results:
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")
    kinds = substituted(function.parameters, types)
    count = sum(map(is_signer, kinds))
    rest = kinds[count:]
    if not all(may_be_sent(machine, kind) for kind in rest):
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")
    if len(rest) != len(arguments):
        raise MoveError("NUMBER_OF_ARGUMENTS_MISMATCH")
    if count and count != len(signers):
        raise MoveError("NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH")
    # A function without signers does not see who signs.
    values = [signer_for(kind, address) for kind, address in zip(kinds[:count], signers, strict=False)]
    return values + make_arguments(machine, rest, arguments)


def publish(run: TransactionRun, machine: Machine) -> None:
    """Publish the modules that the payload has requested, and initialize the new ones."""
    publishing = machine.session.context(Requests)
    request = publishing.request
    if request is None:
        return
    publishing.closed = True
    for code in request.codes:
        _check_format(run, code)
    modules = read_bundle(request)
    charge_bundle(modules, run.loader, run.meter)
    check_bundle(request, modules, run.loader, run.environment.chain_id, run.meter)
    new = [module for module in modules if run.loader.find(module.id) is None]
    staged = run.loader.staged(modules)
    check_code(modules, staged)
    for module in new:
        function = initializer(module)
        if function is not None:
            initializing = run.machine(machine.session, loader=staged)
            argument = signer_for(function.parameters[0], request.address)
            initializing.run(staged.code(function, ()), [argument])
    run.published = dict(zip((module_key(module.id) for module in modules), request.codes, strict=True))
