"""Publishing: the checks of a bundle of modules against the state and against what it replaces.

Code of the ledger was verified when it was published; scripts and modules that are being published were not. For them,
`_compile` checks the types on the stack and that locals are set, and this module that functions may be called and that
structs are well formed. It is not a verifier: what it refuses, a node may refuse for another reason, and a node refuses
more, such as references that are still in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.move._module_metadata import GROUP_MEMBER
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._code import FRIEND, PRIVATE, PUBLIC, FunctionUse
from toolkit.vm._environment import MAINNET
from toolkit.vm._errors import MoveError, refused
from toolkit.vm._module import EVENT, GROUP, is_unstable
from toolkit.vm._types import KEY, SIGNER, STORE, ModuleId, Parameter, Reference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition, FunctionHandle, StructDefinition
    from toolkit.vm._features import Features
    from toolkit.vm._gas import Meter
    from toolkit.vm._loader import Loader
    from toolkit.vm._module import Module
    from toolkit.vm._natives._publishing import PublishRequest

INIT_MODULE = "init_module"
_ACQUIRE = {"MutBorrowGlobal", "ImmBorrowGlobal", "MoveFrom"}


def charge_bundle(modules: list[Module], loader: Loader, meter: Meter) -> None:
    """Charge the modules that are replaced, the new ones, and what these depend on."""
    if loader.lazy and meter.schedule.version < since.DEPENDENCIES:
        text = f"lazy loading below gas feature version {since.DEPENDENCIES}"
        raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", text)
    for module in modules:
        if loader.find(module.id) is not None:
            loader.visit(module.id, meter)
    for module in modules:
        meter.charge_module(module.id, module.size, "new")
        loader.visited.add(module.id)
    new = {module.id for module in modules}
    outside = [
        one
        for module in modules
        for one in (module.dependencies if loader.lazy else (*module.dependencies, *module.friends))
        if one not in new
    ]
    loader.load(outside, meter)


def check_bundle(request: PublishRequest, modules: list[Module], loader: Loader, chain_id: int, meter: Meter) -> None:
    """Check that a bundle may be published.

    Raises
    ------
    MoveError
        If it may not.
    """
    names = set(request.names)
    for module in modules:
        if chain_id == MAINNET and is_unstable(module.metadata):
            raise MoveError("UNSTABLE_BYTECODE_REJECTED", "code marked unstable is not published on mainnet")
        if not module.id.special and any(one.is_native for one in module.functions.values()):
            raise MoveError("USER_DEFINED_NATIVE_NOT_ALLOWED")
        if module.id.name not in names:
            raise _mismatch(f"unregistered module: '{module.id.name}'")
        names.discard(module.id.name)
        _check_dependencies(request, module)
        _check_attributes(module, loader, meter)
    if names:
        raise _mismatch(f"expected {sorted(names)}")
    _check_replacements(request, modules, loader)
    _check_links(modules, loader)


def _check_replacements(request: PublishRequest, modules: list[Module], loader: Loader) -> None:
    seen: set[ModuleId] = set()
    for module in modules:
        if module.id.address != request.address:
            raise MoveError("MODULE_ADDRESS_DOES_NOT_MATCH_SENDER")
        old = loader.find(module.id)
        if old is not None:
            check_compatible(old, module, loader.features)
        if module.id in seen:
            raise MoveError("DUPLICATE_MODULE_NAME")
        seen.add(module.id)


def _check_links(modules: list[Module], loader: Loader) -> None:
    new = {module.id for module in modules}
    for module in modules:
        for friend in module.friends:
            if friend not in new and (loader.lazy or loader.find(friend) is None):
                raise MoveError("FRIEND_NOT_FOUND_IN_MODULE_BUNDLE")
        for dependency in module.dependencies:
            if dependency not in new:
                loader.module(dependency)


def check_code(modules: list[Module], staged: Loader) -> None:
    """Check what running new code relies on.

    Raises
    ------
    MoveError
        If a function that it calls does not exist.
    Unsupported
        If the code breaks a rule.
    """
    for module in modules:
        for struct in module.structs.values():
            _check_struct(staged, struct)
        _check_acquires(module)
        check_calls(staged, module.id, module.handles)
        for function in module.functions.values():
            if not function.is_native:
                staged.code(function, tuple(Parameter(at) for at in range(len(function.type_parameters))))


def check_calls(loader: Loader, caller: ModuleId | None, handles: Sequence[FunctionHandle]) -> None:
    """Check that the functions that a script or module names exist as it says, and that it may call them.

    Raises
    ------
    MoveError
        If a module or function does not exist, or a script calls a function that is not public.
    Unsupported
        If a function is another one, or not visible to a module.
    """
    for handle in handles:
        if handle.module == caller:
            continue
        if caller is None:
            named = loader.module(handle.module).functions.get(handle.name)
            if named is None or named.visibility != PUBLIC:
                raise MoveError("LOOKUP_FAILED").at("script")
        function = loader.function(handle.module, handle.name)
        described = handle.parameters, handle.results, handle.type_parameters
        if described != (function.parameters, function.results, function.type_parameters):
            raise refused(str(caller or "script"), f"{function} has other types")
        friend = function.visibility == FRIEND and caller in loader.module(handle.module).friends
        if function.visibility != PUBLIC and not friend:
            raise refused(str(caller or "script"), f"{function} is not visible")


def _check_acquires(module: Module) -> None:
    """Check that functions say which resources of their module they use.

    Raises
    ------
    Unsupported
        If a function does not.
    """
    names = list(module.structs)
    for function in module.functions.values():
        said = {names[index] for index in function.acquires if index < len(names)}
        used: set[str] = set()
        for name, operand in function.code:
            if name.removesuffix("Generic") in _ACQUIRE:
                used.add(operand.struct.name)
            elif isinstance(operand, FunctionUse) and operand.function.module == module.id and "Call" in name:
                called = module.functions.get(operand.function.name)
                used |= {names[index] for index in called.acquires if index < len(names)} if called else set()
        if used - said:
            raise refused(str(function), f"does not say that it acquires {', '.join(sorted(used - said))}")


def _check_struct(loader: Loader, struct: StructDefinition) -> None:
    """Check that names are not repeated, and that fields have the abilities that the struct promises.

    Raises
    ------
    Unsupported
        If the struct is not well formed.
    """
    place = f"{struct.module}::{struct.name}"
    variants = [variant.fields for variant in struct.variants] if struct.variants is not None else [struct.fields]
    names = [variant.name for variant in struct.variants or ()]
    for listed in (names, *([field.name for field in fields] for fields in variants)):
        if len(set(listed)) != len(listed):
            raise refused(place, "a name is repeated")
    # With type arguments that have all abilities; a resource needs fields that can be stored.
    needed = struct.abilities & ~KEY | (STORE if struct.abilities & KEY else 0)
    for fields in variants:
        for field in fields:
            if needed & ~loader.abilities(field.type):
                raise refused(place, f"the field {field.name} lacks an ability")


def _mismatch(message: str) -> MoveError:
    return MoveError("CONSTRAINT_NOT_SATISFIED", f"metadata and code bundle mismatch: {message}")


def _check_dependencies(request: PublishRequest, module: Module) -> None:
    if request.allowed is None:
        return
    for dependency in module.dependencies:
        allowed = request.allowed.get(dependency.address, set())
        own = dependency.address == request.address
        if not own and "" not in allowed and dependency.name not in allowed:
            raise _mismatch(f"unregistered dependency: '{dependency.address.hex()}::{dependency.name}'")


def _check_attributes(module: Module, loader: Loader, meter: Meter) -> None:
    """Check that attributes of structs are valid, and that those of the old module remain."""
    new = module.attributes
    if not new.valid:
        raise MoveError("CONSTRAINT_NOT_SATISFIED", "the metadata cannot be decoded")
    for name in module.structs:
        group = module.group(name)
        if group is not None and group.module != module.id:
            loader.visit_lazily([group.module], meter)
    previous = loader.find(module.id)
    if previous is None:
        return
    old = previous.attributes
    for name in previous.structs:
        for kind in (GROUP, GROUP_MEMBER):
            if old.of_struct(name, kind) != new.of_struct(name, kind):
                raise MoveError("CONSTRAINT_NOT_SATISFIED", "resource group attributes of a struct cannot change")
        if old.of_struct(name, EVENT) and not new.of_struct(name, EVENT):
            raise MoveError("EVENT_METADATA_VALIDATION_ERROR", "an event attribute cannot be removed")


def check_compatible(old: Module, new: Module, features: Features) -> None:
    """Check that a module can replace another one.

    Raises
    ------
    MoveError
        If users of the old module, or stored values of its types, would break.
    """
    for name, struct in old.structs.items():
        if name not in new.structs or not _struct_fits(struct, new.structs[name]):
            raise MoveError("BACKWARD_INCOMPATIBLE_MODULE_UPDATE", f"struct {name} is missing or not compatible")
    for name, function in old.functions.items():
        if not _must_stay(function, features):
            continue
        if name not in new.functions or not _function_fits(function, new.functions[name]):
            raise MoveError("BACKWARD_INCOMPATIBLE_MODULE_UPDATE", f"function {name} is missing or not compatible")


def _must_stay(function: FunctionDefinition, features: Features) -> bool:
    if function.visibility == FRIEND:
        return function.is_entry or flags.FRIENDS_ARE_PRIVATE not in features
    return function.visibility == PUBLIC or function.is_entry or function.is_persistent


def _struct_fits(old: StructDefinition, new: StructDefinition) -> bool:
    if old.abilities & ~new.abilities or len(old.type_parameters) != len(new.type_parameters):
        return False
    for before, after in zip(old.type_parameters, new.type_parameters, strict=True):
        if after.abilities & ~before.abilities or (before.phantom and not after.phantom):
            return False
    if (old.variants is None) != (new.variants is None):
        return False
    if old.variants is None:
        return old.fields == new.fields
    assert new.variants is not None  # noqa: S101 - compared above
    return len(new.variants) >= len(old.variants) and all(
        before == after for before, after in zip(old.variants, new.variants, strict=False)
    )


def _function_fits(old: FunctionDefinition, new: FunctionDefinition) -> bool:
    constraints = zip(old.type_parameters, new.type_parameters, strict=False)
    return (
        (old.parameters, old.results) == (new.parameters, new.results)
        and len(old.type_parameters) == len(new.type_parameters)
        and not any(after & ~before for before, after in constraints)
        and (new.is_entry or not old.is_entry)
        and (new.visibility == PUBLIC or old.visibility != PUBLIC)
        and (new.visibility != PRIVATE or old.visibility != FRIEND or old.is_entry)
        and old.attributes <= new.attributes
    )


def initializer(module: Module) -> FunctionDefinition | None:
    """Return the function that initializes a new module; None if it has none.

    Raises
    ------
    MoveError
        If the function is not of the right form.
    """
    function = module.functions.get(INIT_MODULE)
    if function is None:
        return None
    signer = [SIGNER, Reference(SIGNER, False), Reference(SIGNER, True)]  # noqa: FBT003
    fits = len(function.parameters) == 1 and function.parameters[0] in signer and not function.results
    if not fits or function.visibility != PRIVATE or function.type_parameters:
        raise MoveError("INVALID_INIT_MODULE")
    return function
