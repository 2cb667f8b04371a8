"""Modules as the code of other modules and of scripts calls them: visibility, signers, and types of values."""

from __future__ import annotations

import functools
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from toolkit.embedded._addresses import Address, check_signer, signer_of
from toolkit.embedded._definitions import PRIVATE, FunctionMark
from toolkit.embedded._integers import Integer
from toolkit.embedded.types import TypeArgument, is_signer, move_type, resolve_annotations
from toolkit.errors import ContractError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.embedded._definitions import Definition


class LinkedModule:
    """A module as other code calls it; arguments and results are converted, and signers must be signers.

    Parameters
    ----------
    module : Module
        The instance whose methods run.
    caller : Definition or None
        The calling module; None for a script.
    """

    __slots__ = ("_caller", "_module")

    def __init__(self, module: Any, caller: Definition | None) -> None:
        self._module = module
        self._caller = caller

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        contract: Any = type(self._module)  # classes are hashable
        if not inspect.isfunction(getattr(contract, name, None)):
            return value
        definition: Definition = contract.definition
        # Undecorated functions of the framework can be called, but not what all contracts inherit, such as borrow_mut.
        own = [vars(cls) for cls in contract.__mro__ if "definition" in vars(cls)]
        if not definition.is_system or not any(name in members for members in own):
            self._check_visible(definition, name, getattr(value, "move_mark", PRIVATE))
        takes, finish = _signature(contract, name)
        # The framework computes with plain values; other contracts receive values of the declared types.
        pass_on = _plain if definition.is_system else _unchanged

        def called(*arguments: Any, **options: Any) -> Any:
            given = [pass_on(takes.get(index, _unchanged)(one)) for index, one in enumerate(arguments)]
            named = {name: pass_on(takes.get(name, _unchanged)(one)) for name, one in options.items()}
            return finish(value(*given, **named))

        return called

    def _check_visible(self, definition: Definition, name: str, mark: FunctionMark) -> None:
        """Raise ContractError unless the caller may call a function."""
        caller = self._caller
        friends = {(definition.address, friend) for friend in definition.friends}
        is_friend = caller is not None and (caller.address, caller.name) in friends
        if mark.visibility == "private" or (mark.visibility == "friend" and not is_friend):
            who = "a script" if caller is None else caller.wire_id
            raise ContractError(
                f"{who} cannot call {definition.wire_id}::{name}, which is {mark.visibility}: "
                "mark it with @public, or with @friend and list the caller in friends=[...] in the class statement"
            )


@functools.cache
def _signature(contract: Any, name: str) -> tuple[dict[int | str, Callable[[Any], Any]], Callable[[Any], Any]]:
    """Return what a call checks: arguments by place and by name, and the result."""
    function = inspect.unwrap(getattr(contract, name))
    hints = resolve_annotations(function, contract, f"{contract.__name__}.{name}")
    is_system = contract.definition.is_system
    takes: dict[int | str, Callable[[Any], Any]] = {}
    for index, parameter in enumerate(list(inspect.signature(function).parameters)[1:]):
        if is_signer(hints.get(parameter)):
            takes[index] = takes[parameter] = functools.partial(check_signer, name=parameter)
        elif not is_system:
            takes[index] = takes[parameter] = _take(hints.get(parameter))
    returned = hints.get("return")
    return takes, signer_of if is_signer(returned) else _take(returned)


def _take(kind: Any) -> Callable[[Any], Any]:
    """Return the function that checks a value of an annotation; helpers may have annotations that are not Move's."""
    if TypeArgument not in (kind, getattr(kind, "__origin__", None)):
        with suppress(InputError):
            return move_type(kind).take or _unchanged
    return _unchanged


def _unchanged(value: Any) -> Any:
    return value


def _plain(value: Any) -> Any:
    """Return a value in the form that the framework uses."""
    if isinstance(value, Integer):
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return str(value) if type(value) is not Address and isinstance(value, Address) else value
