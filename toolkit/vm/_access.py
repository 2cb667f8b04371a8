"""Access specifiers: which resources the functions that run may read and write."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.errors import Unsupported
from toolkit.vm._errors import MoveError
from toolkit.vm._types import Struct, Type, address_text, substituted
from toolkit.vm._values import read_ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._code import AccessedResource, AccessSpecifier, FunctionDefinition
    from toolkit.vm._values import Value

    # A clause, the resource of it with the type arguments of the call, and its address.
    Allowed = tuple[AccessSpecifier, AccessedResource, bytes | None]

MAX_LISTS = 256


class AccessStack:
    """The lists of clauses of the functions on the call stack; each must allow an access."""

    def __init__(self) -> None:
        self.lists: list[list[Allowed]] = []

    def push(self, function: FunctionDefinition, types: tuple[Type, ...], arguments: Sequence[Value]) -> None:
        """Add the clauses of a function that is called, with the addresses of its arguments.

        Raises
        ------
        MoveError
            If there are too many lists.
        """
        if len(self.lists) >= MAX_LISTS:
            raise MoveError("ACCESS_STACK_LIMIT_EXCEEDED")
        clauses: list[Allowed] = []
        for clause in function.access or ():
            address = clause.address
            if isinstance(address, tuple):
                local, through = address
                if through is not None:
                    raise Unsupported(f"{function}: an access specifier that calls a function")
                value = arguments[local]
                address = read_ref(value) if isinstance(value, tuple) else value
            resource = clause.resource
            if resource.arguments is not None:
                resource = resource._replace(arguments=substituted(resource.arguments, types))
            clauses.append((clause, resource, address))
        self.lists.append(clauses)

    def check(self, kind: Struct, address: bytes, *, writes: bool) -> None:
        """Check an access to a resource.

        Raises
        ------
        MoveError
            If a function on the call stack does not allow it.
        """
        for clauses in self.lists:
            if not _allows(clauses, kind, address, writes=writes):
                action = "writes" if writes else "reads"
                raise MoveError("ACCESS_DENIED", f"not allowed to perform `{action} {kind}(@{address_text(address)})`")


def _allows(clauses: Sequence[Allowed], kind: Struct, address: bytes, *, writes: bool) -> bool:
    if not clauses:
        return False
    # Whoever may write may read; whoever may not read may not write.
    for clause, resource, place in clauses:
        if clause.negated and _matches(resource, place, kind, address) and (writes or not clause.writes):
            return False
    positive = [one for one in clauses if not one[0].negated]
    return not positive or any(
        _matches(resource, place, kind, address) and (clause.writes or not writes)
        for clause, resource, place in positive
    )


def _matches(resource: AccessedResource, place: bytes | None, kind: Struct, address: bytes) -> bool:
    own = address, kind.module.address, kind.module, kind.name, kind.arguments
    return all(wanted is None or wanted == found for wanted, found in zip((place, *resource), own, strict=True))
