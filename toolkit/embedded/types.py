"""Names for Move types in contract annotations, and what an annotation means.

``u8`` to ``u256``, ``i8`` to ``i256``, ``address``, ``signer``, ``String``, ``vector[T]``, ``Option[T]``,
``Object[T]``, ``Table[K, V]``, Python's own ``bool`` and ``bytes`` (``vector<u8>``), a contract's structs, and
``T0``, ``T1`` for generic parameters. To Python they are int, str, list and None; the ABI is made from the names.
"""

from __future__ import annotations

import typing
from collections.abc import Callable  # noqa: TC003 - the dataclass below is introspected by readers, keep one road
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from toolkit.errors import InputError
from toolkit.move import TypeTag

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from toolkit.embedded.session import Session

__all__ = [
    "T0",
    "T1",
    "MoveType",
    "Object",
    "Option",
    "String",
    "Table",
    "TypeArgument",
    "address",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i256",
    "move_type",
    "signer",
    "u8",
    "u16",
    "u32",
    "u64",
    "u128",
    "u256",
    "vector",
]

T0 = TypeVar("T0")
T1 = TypeVar("T1")


@dataclass(frozen=True, slots=True)
class _Marker:
    """What an ``Annotated`` name stands for in Move."""

    text: str


u8 = Annotated[int, _Marker("u8")]
u16 = Annotated[int, _Marker("u16")]
u32 = Annotated[int, _Marker("u32")]
u64 = Annotated[int, _Marker("u64")]
u128 = Annotated[int, _Marker("u128")]
u256 = Annotated[int, _Marker("u256")]
i8 = Annotated[int, _Marker("i8")]
i16 = Annotated[int, _Marker("i16")]
i32 = Annotated[int, _Marker("i32")]
i64 = Annotated[int, _Marker("i64")]
i128 = Annotated[int, _Marker("i128")]
i256 = Annotated[int, _Marker("i256")]
address = Annotated[str, _Marker("address")]
signer = Annotated[str, _Marker("signer")]
String = Annotated[str, _Marker("0x1::string::String")]
vector = Annotated[list[T0], _Marker("vector")]
Option = Annotated[T0 | None, _Marker("option")]

#: A type argument of a generic function: its leading parameters, before signers and values.
TypeArgument = TypeTag


class Object(str, Generic[T0]):
    """Address of an object that holds a resource ``T0``; a plain str to Python."""

    __slots__ = ()


class Table(Generic[T0, T1]):
    """A table: a handle, and items that are read and written one by one.

    Contracts get tables from the fields of their structs and make new ones with ``self.new_table()``; items of
    a table that is not (or not yet) read from a field cannot be reached.
    """

    __slots__ = ("_key", "_session", "_value", "handle")

    def __init__(self, handle: str) -> None:
        self.handle = handle
        self._session: Session | None = None

    def bind(self, session: Session, key: MoveType, value: MoveType) -> Table[T0, T1]:
        """Tie this handle to the execution that uses it."""
        self._session, self._key, self._value = session, key, value
        return self

    def contains(self, key: T0) -> bool:
        """Tell whether there is an item for `key`."""
        return self._bound().table_contains(self.handle, self._key, key)

    def borrow(self, key: T0) -> T1:
        """Return a copy of the item for `key`; without one the execution aborts."""
        return typing.cast("T1", self._bound().table_borrow(self.handle, self._key, key, self._value))

    def borrow_with_default(self, key: T0, default: T1) -> T1:
        """Return a copy of the item for `key`, or `default`."""
        return self.borrow(key) if self.contains(key) else default

    def borrow_mut(self, key: T0) -> AbstractContextManager[T1]:
        """Open the item for `key` to be changed; it is written back when the block ends."""
        return self._bound().table_borrow_mut(self.handle, self._key, key, self._value)

    def add(self, key: T0, value: T1) -> None:
        """Add a new item; one that exists already aborts the execution."""
        self._bound().table_add(self.handle, self._key, key, self._value, value)

    def upsert(self, key: T0, value: T1) -> None:
        """Add an item or replace it."""
        self._bound().table_upsert(self.handle, self._key, key, self._value, value)

    def remove(self, key: T0) -> T1:
        """Take the item for `key` out and return it; without one the execution aborts."""
        return typing.cast("T1", self._bound().table_remove(self.handle, self._key, key, self._value))

    def _bound(self) -> Session:
        if self._session is None:
            raise InputError("this table was just made: store it in a resource first, then borrow that resource")
        return self._session


@dataclass(frozen=True, slots=True)
class MoveType:
    """One Move type as contracts see it.

    Parameters
    ----------
    text : str
        The type as the wire prints it; generic parameters stay ``T0``, ``T1``.
    lift : callable, optional
        (session, plain value) to what contract code handles; absent where they are the same.
    lower : callable, optional
        The way back.
    """

    text: str
    lift: Callable[[Any, Any], Any] | None = None
    lower: Callable[[Any], Any] | None = None


def move_type(annotation: Any, arguments: tuple[MoveType, ...] = ()) -> MoveType:  # noqa: PLR0911 - one per kind
    """Say which Move type an annotation names.

    Parameters
    ----------
    annotation : Any
        A resolved annotation.
    arguments : tuple of MoveType, optional
        What ``T0``, ``T1`` stand for; without it they stay parameters.

    Raises
    ------
    InputError
        If the annotation names no Move type.
    """
    if annotation is bool:
        return MoveType("bool")
    if annotation is bytes:
        return MoveType("vector<u8>")
    if isinstance(annotation, TypeVar):
        return _parameter(annotation, arguments)
    marker = next((m for m in getattr(annotation, "__metadata__", ()) if isinstance(m, _Marker)), None)
    if marker is not None:
        return _marked(marker, annotation.__origin__, arguments)
    origin = typing.get_origin(annotation) or annotation
    inner = tuple(move_type(argument, arguments) for argument in typing.get_args(annotation))
    if origin is Table and len(inner) == 2:  # noqa: PLR2004 - a table has a key and a value type
        return _table(*inner)
    if origin is Object:
        return MoveType(f"0x1::object::Object<{inner[0].text}>")
    describe = getattr(origin, "move_type", None)
    if describe is not None:
        described: MoveType = describe(inner)
        return described
    raise InputError(
        f"{annotation!r} is not a Move type; use u8..u256, i8..i256, bool, bytes, address, signer, String, "
        "vector[T], Option[T], Object[T], Table[K, V], T0, T1 or a struct of a contract"
    )


def _parameter(variable: Any, arguments: tuple[MoveType, ...]) -> MoveType:
    """Resolve ``T0``, ``T1``."""
    name: str = variable.__name__
    if name not in {"T0", "T1"}:
        raise InputError(f"type variable {name}: generic parameters are called T0 and T1")
    index = int(name[1:])
    return arguments[index] if index < len(arguments) else MoveType(name)


def _marked(marker: _Marker, origin: Any, arguments: tuple[MoveType, ...]) -> MoveType:
    """Resolve one of the ``Annotated`` names."""
    if marker.text == "vector":
        element = move_type(typing.get_args(origin)[0], arguments)
        if element.text == "u8":  # the ledger's form is bytes; the annotation promises a list
            return MoveType("vector<u8>", lambda _, data: list(data), bytes)
        return MoveType(f"vector<{element.text}>", _each(element.lift), _each_lowered(element.lower))
    if marker.text == "option":
        element = move_type(typing.get_args(origin)[0], arguments)
        return MoveType(f"0x1::option::Option<{element.text}>", _maybe(element.lift), _maybe_lowered(element.lower))
    return MoveType(marker.text)


def _each(lift: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any] | None:
    return None if lift is None else lambda session, values: [lift(session, value) for value in values]


def _each_lowered(lower: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    return None if lower is None else lambda values: [lower(value) for value in values]


def _maybe(lift: Callable[[Any, Any], Any] | None) -> Callable[[Any, Any], Any] | None:
    return None if lift is None else lambda session, value: None if value is None else lift(session, value)


def _maybe_lowered(lower: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    return None if lower is None else lambda value: None if value is None else lower(value)


def _table(key: MoveType, value: MoveType) -> MoveType:
    return MoveType(
        f"0x1::table::Table<{key.text}, {value.text}>",
        lambda session, plain: Table(plain["handle"]).bind(session, key, value),
        lambda table: {"handle": table.handle},
    )
