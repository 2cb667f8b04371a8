"""Functions of the framework that the ledger itself calls, run on a state without a transaction."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from toolkit.errors import InputError
from toolkit.move import FunctionId
from toolkit.move._ids import address_to_bytes
from toolkit.vm._arguments import make_arguments
from toolkit.vm._environment import Environment
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._state import Overlay, Session
from toolkit.vm._types import ModuleId

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._state import Read, StateValue


def call_framework(read: Read, function: str, arguments: Sequence[bytes]) -> dict[bytes, StateValue | None]:
    """Run a function without type arguments, whatever its visibility, and return what it writes.

    Raises
    ------
    InputError
        If the function does not exist or fails.
    """
    environment = Environment(read)
    loader = Loader(environment)
    salt = hashlib.sha3_256(function.encode() + b"".join(arguments)).digest()
    session = Session(Overlay(environment.base), salt)
    machine = Machine(loader, session, Unmetered(environment.schedule))
    name = FunctionId.parse(function)
    try:
        definition = loader.function(ModuleId(address_to_bytes(name.address), name.module), name.name)
        machine.run(loader.code(definition, ()), make_arguments(machine, definition.parameters, arguments))
        state = session.state
        state.apply(session.changes())
    except MoveError as error:
        raise InputError(f"{function} fails on this ledger: {error.status} {error.message or ''}".rstrip()) from None
    return {
        key: None if change.value is None else (change.value, change.metadata) for key, change in state.changes.items()
    }
