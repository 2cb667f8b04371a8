"""Contracts as Python classes: modules, their structs, entry and view functions.

A contract states its types in annotations and reaches the ledger through the methods of `Module`; every access
is charged. What a contract returns to the ledger is always encoded to bytes: Python objects live for one call.
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, dataclass_transform

from toolkit.embedded.types import (
    T0,
    T1,
    MoveType,
    Object,
    Option,
    String,
    Table,
    TypeArgument,
    address,
    i8,
    i16,
    i32,
    i64,
    i128,
    i256,
    move_type,
    signer,
    u8,
    u16,
    u32,
    u64,
    u128,
    u256,
    vector,
)
from toolkit.embedded.vm_status import (
    AbortCode,
    MoveAbort,
    already_exists,
    invalid_argument,
    invalid_state,
    not_found,
    out_of_range,
    permission_denied,
    resource_exhausted,
)
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from toolkit.embedded.definition import Definition
    from toolkit.embedded.session import Session

__all__ = [
    "T0",
    "T1",
    "AbortCode",
    "Event",
    "Module",
    "MoveType",
    "Object",
    "Option",
    "Resource",
    "String",
    "Struct",
    "Table",
    "TypeArgument",
    "address",
    "already_exists",
    "entry",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i256",
    "invalid_argument",
    "invalid_state",
    "not_found",
    "out_of_range",
    "permission_denied",
    "public",
    "resource_exhausted",
    "signer",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "u256",
    "vector",
    "view",
]

_F = TypeVar("_F", bound="Callable[..., Any]")
_M = TypeVar("_M", bound="Module")
_R = TypeVar("_R", bound="Resource")
_E = TypeVar("_E")


@dataclass_transform(kw_only_default=True)
class Struct:
    """A Move struct: annotated fields, given by name.

    ``class Order(Struct)`` inside a module has the abilities copy, drop and store.
    """

    move_abilities: tuple[str, ...] = ("copy", "drop", "store")
    move_module: str = ""
    move_group: str | None = None

    def __init_subclass__(cls, *, abilities: str | None = None, group: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if abilities is not None:
            cls.move_abilities = tuple(abilities.split())
        if group is not None:
            cls.move_group = group

    def __init__(self, **fields: Any) -> None:
        expected = self.move_fields()
        if fields.keys() != expected.keys():
            missing = ", ".join(expected.keys() - fields.keys()) or "none"
            unknown = ", ".join(fields.keys() - expected.keys()) or "none"
            raise InputError(f"{type(self).__name__}: fields missing: {missing}; fields it does not have: {unknown}")
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # fields can change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    @classmethod
    def move_fields(cls) -> dict[str, Any]:
        """Return the fields' resolved annotations, in order of declaration."""
        from toolkit.embedded.definition import struct_fields

        return struct_fields(cls)  # type: ignore[arg-type]  # classes are hashable; instances are not

    @classmethod
    def move_type(cls, arguments: tuple[MoveType, ...] = ()) -> MoveType:
        """Return this struct as a Move type, its type arguments filled in."""
        return _struct_type(cls, arguments)  # type: ignore[arg-type]  # classes are hashable; instances are not


class Resource(Struct, abilities="key"):
    """A struct that lives under an address: one value per address and type."""


class Event(Struct, abilities="drop store"):
    """A struct that is emitted."""


@functools.lru_cache(maxsize=4096)
def _struct_type(cls: type[Struct], arguments: tuple[MoveType, ...]) -> MoveType:
    """Build the Move type of a struct; its converters touch only the fields that need it."""
    if not cls.move_module:
        raise InputError(f"struct {cls.__name__} belongs to no module: define it inside a Module class")
    inner = f"<{', '.join(argument.text for argument in arguments)}>" if arguments else ""
    fields = {name: move_type(annotation, arguments) for name, annotation in cls.move_fields().items()}
    lifts = [(name, kind.lift) for name, kind in fields.items() if kind.lift is not None]
    lowers = [(name, kind.lower) for name, kind in fields.items() if kind.lower is not None]

    def lift(session: Session, plain: dict[str, Any]) -> Struct:
        value = cls.__new__(cls)
        state = value.__dict__
        state.update(plain)
        for name, convert in lifts:
            state[name] = convert(session, plain[name])
        return value

    def lower(value: Struct) -> dict[str, Any]:
        plain = dict(value.__dict__)
        for name, convert in lowers:
            plain[name] = convert(plain[name])
        return plain

    return MoveType(f"{cls.move_module}::{cls.__name__}{inner}", lift, lower)


@dataclass(frozen=True, slots=True)
class FunctionMark:
    """How a method shows in the ABI."""

    visibility: Literal["public", "private", "friend"]
    is_entry: bool = False
    is_view: bool = False


def _marked(mark: FunctionMark) -> Callable[[_F], _F]:
    """Mark a method, and charge a call each time it runs."""

    def decorate(function: _F) -> _F:
        @functools.wraps(function)
        def called(self: Module, *arguments: Any) -> Any:
            meter = self.session.meter
            meter.charge("instr.call.base")
            meter.charge("instr.call.per_arg", len(arguments))
            return function(self, *arguments)

        called.move_mark = mark  # type: ignore[attr-defined]  # read back by `definition`
        return called  # type: ignore[return-value]  # same signature as the method it wraps

    return decorate


def entry(function: _F) -> _F:
    """Mark a public entry function: transactions may call it."""
    return _marked(FunctionMark("public", is_entry=True))(function)


def view(function: _F) -> _F:
    """Mark a public view function: it reads, returns values and changes nothing."""
    return _marked(FunctionMark("public", is_view=True))(function)


def public(function: _F) -> _F:
    """Mark a public function: other modules may call it."""
    return _marked(FunctionMark("public"))(function)


class Module:
    """A contract.

    ``class Registry(Module, address="0xcafe")`` is published as ``0xcafe::registry``. Methods named ``init_module``
    with one signer run once, when the module is first published. A subclass of a published module is its next
    version: ``class Cheaper(Vault, revision=2)`` keeps address and name.

    Parameters
    ----------
    address : str
        Address the module is published at.
    name : str, optional
        Name of the module; the class name in snake case by default.
    revision : int, default 1
        Part of what its bytecode is a digest of: give a new one when code changes but the ABI does not.
    code_bytes : int, optional
        Size of its bytecode, bytes; modelled from the ABI by default.
    uses : sequence of Module classes, optional
        Modules at other addresses, outside the framework, that it calls: its package lists theirs as dependencies.
    """

    definition: Definition

    def __init_subclass__(
        cls,
        *,
        address: str | None = None,
        name: str | None = None,
        revision: int | None = None,
        code_bytes: int | None = None,
        uses: Sequence[type[Module]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        from toolkit.embedded.definition import define

        cls.definition = define(cls, address=address, name=name, revision=revision, code_bytes=code_bytes, uses=uses)

    def __init__(self, session: Session) -> None:
        self.session = session

    # -- resources -----------------------------------------------------------------------------------------

    def exists(self, resource: type[Resource], at: str, *type_arguments: TypeArgument) -> bool:
        """Tell whether there is a `resource` under the address `at`."""
        return self.session.resource_exists(resource, at, type_arguments)

    def borrow(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> _R:
        """Return a copy of the `resource` under the address `at`; changes to it are not kept."""
        return self.session.borrow(self._own(resource), at, type_arguments)

    def borrow_mut(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> AbstractContextManager[_R]:
        """Open the `resource` under the address `at` to be changed; it is written back when the block ends."""
        return self.session.borrow_mut(self._own(resource), at, type_arguments)

    def move_to(self, account: signer, value: Resource, *type_arguments: TypeArgument) -> None:
        """Store a new resource under the signer's address."""
        self._own(type(value))
        self.session.move_to(account, value, type_arguments)

    def move_from(self, resource: type[_R], at: str, *type_arguments: TypeArgument) -> _R:
        """Take the `resource` out from under the address `at` and return it."""
        return self.session.move_from(self._own(resource), at, type_arguments)

    def new_table(self) -> Table[Any, Any]:
        """Return a new, empty table, to be stored in a field."""
        return Table(self.session.new_address())

    # -- everything else -----------------------------------------------------------------------------------

    def emit(self, event: Event, *type_arguments: TypeArgument) -> None:
        """Emit an event."""
        self.session.emit(event, type_arguments)

    def abort(self, code: AbortCode | int) -> NoReturn:
        """End the execution; nothing it wrote is kept."""
        self.session.meter.charge("instr.abort")
        reason = code if isinstance(code, AbortCode) else AbortCode(code, "")
        raise MoveAbort(self.definition.wire_id, reason)

    def require(self, condition: object, code: AbortCode | int) -> None:
        """Abort with `code` unless `condition` holds."""
        self.session.meter.charge("instr.br_false")
        if not condition:
            self.abort(code)

    def use(self, module: type[_M]) -> _M:
        """Return another module, in the version published when this runs, to call its functions.

        A module at another address, outside the framework, must be declared: ``class Desk(Module, uses=[PriceFeed])``.
        """
        used, own = module.definition, self.definition
        if not (used.is_system or used.address == own.address or (used.address, used.name) in own.uses):
            raise InputError(
                f"{own.wire_id} calls {used.wire_id} without declaring it: write uses=[{module.__name__}] in the class "
                "line, so that its package lists the dependency"
            )
        return self.session.module(module)

    def each(self, elements: Iterable[_E]) -> Iterator[_E]:
        """Walk over the elements of a vector, charging each step of the loop."""
        for element in elements:
            self.session.meter.charge_loop(1)
            yield element

    def charge(self, parameter: str, times: int = 1) -> None:
        """Charge a parameter of the gas schedule, for work that Python does here and a VM would do there."""
        self.session.meter.charge(parameter, times)

    def type_name(self, argument: TypeArgument) -> str:
        """Return the name of a type argument, as the wire prints it."""
        self.session.meter.charge("aptos_framework.type_info.type_name.base")
        return self.session.type_name(argument)

    def _own(self, resource: type[_R]) -> type[_R]:
        """Refuse the resource of another module: only its own module may reach it."""
        if resource.move_module != self.definition.wire_id:
            raise InputError(
                f"{self.definition.wire_id} reaches for {resource.move_module}::{resource.__name__}: a resource can be "
                "reached only by the module that defines it; call a function of that module instead"
            )
        return resource


def function_marks(cls: type[Module]) -> dict[str, tuple[Callable[..., Any], FunctionMark]]:
    """Return the marked methods of a module class by name, in order of name."""
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: (member, member.move_mark) for name, member in members if hasattr(member, "move_mark")}
