"""What running relies on in code that no verifier of a node has seen: scripts, and modules that are being published.

Code of the ledger was verified when it was published. For the rest, `_compile` checks the types on the stack, and this
module that locals are set, that functions may be called, and that structs are well formed. It is not a verifier: what
it refuses, a node may refuse for another reason, and a node refuses more, such as references that are still in use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import Unsupported
from toolkit.vm._code import FRIEND, PUBLIC, FunctionUse
from toolkit.vm._errors import MoveError
from toolkit.vm._instructions import BRANCHES, ENDS
from toolkit.vm._types import KEY, STORE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionHandle, StructDefinition
    from toolkit.vm._instructions import Instruction
    from toolkit.vm._loader import Loader
    from toolkit.vm._module import Module
    from toolkit.vm._types import ModuleId
    from toolkit.vm._values import Value

_READS = {"CopyLoc", "MoveLoc", "MutBorrowLoc", "ImmBorrowLoc"}
_ACQUIRE = {"MutBorrowGlobal", "ImmBorrowGlobal", "MoveFrom"}


def refused(place: str, message: str) -> Unsupported:
    """Return the error for code that breaks a rule."""
    return Unsupported(f"{place}: {message}. The node's verifier may refuse this for another reason")


def unset_local(code: Sequence[Instruction], parameters: int) -> tuple[int, int] | None:
    """Return an instruction that may read a local that is not set.

    Parameters
    ----------
    code : sequence of Instruction
    parameters : int
        Number of parameters: they are set at the start.

    Returns
    -------
    (int, int) or None
        Offset of the instruction, and the local.
    """
    # Bits of the locals that are set before each instruction; one is visited again when a bit is lost.
    known = {0: (1 << parameters) - 1}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        name, operand = code[at]
        held = known[at]
        if name in _READS and not held >> operand & 1:
            return at, operand
        if name == "MoveLoc":
            held &= ~(1 << operand)
        elif name == "StLoc":
            held |= 1 << operand
        followers = [operand] if name in BRANCHES else []
        if name not in ENDS:
            followers.append(at + 1)
        for follower in followers:
            kept = held & known.get(follower, held)
            if kept != known.get(follower):
                known[follower] = kept
                waiting.append(follower)
    return None


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


def check_acquires(module: Module) -> None:
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


def check_struct(loader: Loader, struct: StructDefinition) -> None:
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


def check_not_borrowed(locals_: Sequence[Value], index: int, stack: Sequence[Value]) -> None:
    """Check that no reference of a script points into a local that it moves or overwrites.

    Raises
    ------
    Unsupported
        If one does.
    """
    held = locals_[index]
    for value in (*stack, *locals_):
        if not isinstance(value, tuple):
            continue
        container, slot, root = value
        if root is None and ((container is locals_ and slot == index) or _contains(held, container)):
            raise refused("script", f"local {index} is still borrowed")


def _contains(value: Any, container: Any) -> bool:
    if value is container and isinstance(value, list | bytearray):
        return True
    return isinstance(value, list) and any(_contains(one, container) for one in value)
