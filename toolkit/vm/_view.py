"""View functions: run in a session whose changes nobody keeps."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from toolkit.move._ids import FunctionId, address_to_bytes
from toolkit.vm._arguments import make_arguments
from toolkit.vm._environment import Environment, boundary
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Meter
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._module import VIEW_KINDS
from toolkit.vm._results import Status, View, status_of
from toolkit.vm._state import Overlay, Session, session_hash
from toolkit.vm._types import ModuleId, Reference, Type, parse, struct_modules, substituted
from toolkit.vm._values import read_ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._results import TraceStep
    from toolkit.vm._state import Read
    from toolkit.vm._values import Value

_SESSION = 5  # number of the kind of session


def run_view(
    function: str,
    type_arguments: Sequence[str],
    args: Sequence[bytes],
    read: Read,
    *,
    max_gas: int = 2_000_000,
    log: bool = False,
    usage: tuple[int, int] | None = None,
) -> View:
    """Run a view function.

    Parameters
    ----------
    function : str
        Such as ``0x1::coin::balance``.
    type_arguments : sequence of str
        Such as ``["0x1::aptos_coin::AptosCoin"]``.
    args : sequence of bytes
        The arguments, each as BCS.
    read : callable
        Returns value and metadata of a state key, as in `execute`.
    max_gas : int, default 2_000_000
        In gas units.
    log : bool, default False
        Whether to log every charge.
    usage : (int, int), optional
        Items and bytes of the whole state, for code that asks for them.

    Returns
    -------
    View

    Raises
    ------
    Unsupported
        If something is needed that the machine does not implement.
    InputError
        If the function or a type argument is not one.

    Examples
    --------
    The state must have the configuration of a ledger:

    >>> from toolkit import vm
    >>> vm.run_view("0x1::coin::decimals", ["0x1::aptos_coin::AptosCoin"], [], {}.get)
    Traceback (most recent call last):
        ...
    toolkit.errors.Unsupported: a state without 0x1::features::Features
    """
    name = FunctionId.parse(function)
    types = tuple(parse(text) for text in type_arguments)
    with boundary():
        environment = Environment(read, usage)
        loader = Loader(environment)
        session = Session(Overlay(environment.base), session_hash(bytes((_SESSION,))))
        trace: list[TraceStep] | None = [] if log else None
        machine = Machine(loader, session, Meter(environment.schedule, max_gas, log=log), trace=trace)
        values: list[bytes] = []
        status = Status("success")
        try:
            values = _run(machine, ModuleId(address_to_bytes(name.address), name.module), name.name, types, args)
        except MoveError as error:
            status = status_of(error, loader)
            if status.kind not in {"abort", "out_of_gas"}:
                status = dataclasses.replace(status, message=error_text(error))
        return View(machine.meter, trace, status, values, max_gas - machine.meter.units)


def _run(
    machine: Machine, module: ModuleId, name: str, types: tuple[Type, ...], arguments: Sequence[bytes]
) -> list[bytes]:
    loader = machine.loader
    loader.visit_lazily([module], machine.meter)
    function = loader.function(module, name)
    try:
        values = _arguments(machine, function, types, arguments)
    except MoveError as error:
        if error.status == "OUT_OF_GAS" or (error.message is not None and error.status != "ABORTED"):
            raise
        # What else fails before the function runs is only known by its code.
        raise MoveError(error.status).at(module) from None
    results = machine.run(loader.code(function, types), values)
    encoded = []
    for kind, value in zip(substituted(function.results, types), results, strict=True):
        target, held = (kind.target, read_ref(value)) if isinstance(kind, Reference) else (kind, value)
        encoded.append(machine.serializing_layout(target).encode(held))
    return encoded


def _arguments(
    machine: Machine, function: FunctionDefinition, types: tuple[Type, ...], arguments: Sequence[bytes]
) -> list[Value]:
    loader = machine.loader
    loader.visit_lazily(struct_modules(types), machine.meter)
    loader.check_constraints(types, function.type_parameters)
    assert function.module is not None  # noqa: S101 - views are in modules
    if loader.module(function.module).attributes.of_function(function.name, *VIEW_KINDS) is None:
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE", "function not marked as view function")
    if not function.results:
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE", "view function must return values")
    kinds = substituted(function.parameters, types)
    if len(kinds) != len(arguments) or any(isinstance(kind, Reference) for kind in kinds):
        raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")
    return make_arguments(machine, kinds, arguments)


def error_text(error: MoveError) -> str:
    """Return what a node answers for an error that is not an abort."""
    if error.message is not None:
        return error.message
    text = f"VMError with status {error.status}"
    if error.sub_status is not None:
        text += f" with sub status {error.sub_status}"
    location = error.location
    if location is None:
        text += " at location UNDEFINED"
    elif isinstance(location, ModuleId):
        where = f'{{ address: {location.address.hex()}, name: Identifier("{location.name}") }}'
        text += f" at location Module ModuleId {where}"
    else:
        text += " at location Script"
    if error.offset is not None and error.function is not None:
        text += f" at code offset {error.offset} in function definition {error.function}"
    return text
