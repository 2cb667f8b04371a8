"""Move types for the annotations of contracts, and the struct classes that contracts define.

Annotations are ``u8`` to ``u256``, ``i8`` to ``i256``, ``address``, ``signer``, ``String``, ``vector[T]``,
``Option[T]``, ``Object[T]``, ``Table[K, V]``, Python's ``bool`` and ``bytes`` (``vector<u8>``), structs of a contract,
and ``T0``, ``T1`` for generic parameters. At run time the values are typed integers, str, list, None and instances of
the struct classes. The ABI is derived from the annotations.

Values are checked when they become fields, arguments of another module, table keys, stored values or results. The
framework's own contracts are part of the node: their values are plain and not checked.
"""

from __future__ import annotations

import copy
import functools
import inspect
import sys
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum as _PythonEnum
from typing import TYPE_CHECKING, Annotated, Any, Generic, Self, TypeVar, dataclass_transform

from toolkit._present.messages import did_you_mean
from toolkit.embedded._primitives import INTEGERS, Address, TypedInteger, check_signer, mismatch
from toolkit.embedded._vm_status import AbortCode, MoveAbort
from toolkit.errors import ContractError, InputError
from toolkit.move import TypeTag, parse_address
from toolkit.move._codecs import VARIANT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

__all__ = ["T0", "T1", "Enum", "Event", "Object", "Option", "Resource", "String", "Struct", "Table", "TypeArgument"]
__all__ += ["address", "signer", "vector"]
__all__ += ["i8", "i16", "i32", "i64", "i128", "i256", "u8", "u16", "u32", "u64", "u128", "u256"]

# In the order that nodes use.
ABILITIES = ("copy", "drop", "store", "key")

# Convert a decoded value to the contract's, with the session, and the contract's value to one that can be encoded.
Lift = Callable[[Any, Any], Any]
Lower = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class MoveType:
    """A Move type and the conversions between stored values and the values that contract code uses.

    Parameters
    ----------
    text : str
        The type as the REST API prints it; generic parameters are ``T0``, ``T1``.
    lift : callable, optional
        Converts (session, decoded value) to the contract's value; None if no conversion is needed.
    lower : callable, optional
        Converts the contract's value to a value that can be encoded; None if no conversion is needed.
    take : callable, optional
        Returns a contract's value with its type, or raises; None if every value is accepted unchanged.
    """

    text: str
    lift: Lift | None = None
    lower: Lower | None = None
    take: Lower | None = None


class Access(_PythonEnum):
    """What contract code may do with a struct or a vector in it."""

    OWN = "own"
    """Change it: the contract made it."""
    BORROWED = "borrowed"
    """Change it: it is stored at the end of its ``with`` block."""
    CHANGED = "changed"
    """As `BORROWED`; a field has been assigned."""
    READ_ONLY = "read-only"
    """Only read it: a change would not be stored."""


_ALREADY_EXISTS = AbortCode(0x6407, "")  # of a native table function
READ_ONLY = "borrow returns a copy, and a with block stores its value when it ends: change it inside borrow_mut"

T0 = TypeVar("T0")
T1 = TypeVar("T1")


class AliasOf(typing.NamedTuple):
    """The Move type of one of the ``Annotated`` aliases below.

    Parameters
    ----------
    text : str
        The type as the REST API prints it, or the name of a generic type.
    about : str
        Text that ``help`` shows.
    name : str, optional
        Name of the alias if it differs from `text`.
    """

    text: str
    about: str
    name: str = ""

    def __repr__(self) -> str:
        return self.text


def _integer(text: str) -> AliasOf:
    bits, signed = int(text[1:]), text[0] == "i"
    low, high = (f"-2^{bits - 1}", bits - 1) if signed else ("0", bits)
    kind = "Signed" if signed else "Unsigned"
    return AliasOf(text, f"{kind} {bits}-bit integer, from {low} to 2^{high} - 1; an int in contracts.")


u8 = Annotated[int, _integer("u8")]
u16 = Annotated[int, _integer("u16")]
u32 = Annotated[int, _integer("u32")]
u64 = Annotated[int, _integer("u64")]
u128 = Annotated[int, _integer("u128")]
u256 = Annotated[int, _integer("u256")]
i8 = Annotated[int, _integer("i8")]
i16 = Annotated[int, _integer("i16")]
i32 = Annotated[int, _integer("i32")]
i64 = Annotated[int, _integer("i64")]
i128 = Annotated[int, _integer("i128")]
i256 = Annotated[int, _integer("i256")]
address = Annotated[str, AliasOf("address", "Address of an account or object; a str in contracts, such as '0xcafe'.")]
_SIGNER = """An account that signs the transaction; in contracts, its address as a str.

Signers are the first parameters of an entry function. Callers do not pass them, because they are the sender and the
secondary signers of the transaction."""
signer = Annotated[str, AliasOf("signer", _SIGNER)]
String = Annotated[str, AliasOf("0x1::string::String", "Text (``0x1::string::String``); a str in contracts.", "String")]
vector = Annotated[
    list[T0], AliasOf("vector", "``vector[T]``: a vector; a list in contracts. ``bytes`` is vector<u8>.")
]
_OPTION = "``Option[T]``: a value or nothing (``0x1::option::Option``); the value or None in contracts."
Option = Annotated[T0 | None, AliasOf("option", _OPTION, "Option")]

if not TYPE_CHECKING:  # called, a type of integers casts: u8(300) aborts; type checkers see an int
    for _name, _class in INTEGERS.items():
        globals()[_name] = Annotated[_class, _integer(_name)]

for _alias in (u8, u16, u32, u64, u128, u256, i8, i16, i32, i64, i128, i256, address, signer, String, vector, Option):
    _alias.__doc__ = typing.cast("Any", _alias).__metadata__[0].about  # what help(u64) and u64? show


def alias_kind(annotation: Any) -> AliasOf | None:
    """Return the Move type that an ``Annotated`` alias names, or None for any other annotation."""
    return next((mark for mark in getattr(annotation, "__metadata__", ()) if isinstance(mark, AliasOf)), None)


def is_signer(annotation: Any) -> bool:
    """Return True for the annotation ``signer``."""
    kind = alias_kind(annotation)
    return kind is not None and kind.text == "signer"


TypeArgument = TypeTag
"""A type argument of a generic function. Type arguments are the leading parameters, before signers and values.

``Annotated[TypeArgument, "drop store"]`` requires the type argument to have these abilities.
"""


def parse_abilities(text: str) -> tuple[str, ...]:
    """Return the abilities in a text such as ``"key store"``, in the same order.

    Raises
    ------
    InputError
        If a word is not an ability.
    """
    found = tuple(text.split())
    unknown = [word for word in found if word not in ABILITIES]
    if unknown:
        raise InputError(f"abilities must be among {', '.join(ABILITIES)}; got {unknown[0]!r}")
    return found


class Object(str, Generic[T0]):
    """Address of an object that holds a resource of type ``T0``; a str at run time.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, Object, Resource, u64, view
    >>> class Land(Module, address="0x1a4d"):
    ...     class Deed(Resource):
    ...         acres: u64
    ...
    ...     @view
    ...     def acres(self, deed: Object[Deed]) -> u64:
    ...         return self.borrow(Land.Deed, deed).acres
    >>> ledger = Ledger()
    >>> published = ledger.publish(Land)
    >>> ledger.contracts[-1].views
    ('acres',)
    """

    __slots__ = ()


class Table(Generic[T0, T1]):
    """A table, which stores items under a handle; each item is read and written separately.

    Contracts read tables from the fields of their structs and create them with ``self.new_table()``. A new table must
    be stored in a resource and borrowed from it before its items can be accessed.

    Parameters
    ----------
    handle : str
        Address that identifies the table.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, Resource, String, Table, entry, signer, u64, view
    >>> class Shop(Module, address="0x5407"):
    ...     class Prices(Resource):
    ...         by_name: Table[String, u64]
    ...
    ...     def init_module(self, account: signer) -> None:
    ...         self.move_to(account, Shop.Prices(by_name=self.new_table()))
    ...
    ...     @entry
    ...     def put(self, account: signer, name: String, price: u64) -> None:
    ...         self.borrow(Shop.Prices, "0x5407").by_name.upsert(name, price)
    ...
    ...     @view
    ...     def price(self, name: String) -> u64:
    ...         return self.borrow(Shop.Prices, "0x5407").by_name.borrow(name)
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> done = ledger.commit("0x5407::shop::put", "tea", 7, sender="0xb0b")
    >>> ledger.view("0x5407::shop::price", ["tea"])[0]
    [7]
    """

    __slots__ = ("_key", "_session", "_value", "handle")

    def __init__(self, handle: str) -> None:
        self.handle = handle
        self._session: Any = None

    def bind(self, session: Any, key: MoveType, value: MoveType) -> Table[T0, T1]:
        """Attach the table to the running execution and return it."""
        self._session, self._key, self._value = session, key, value
        return self

    def contains(self, key: T0) -> bool:
        """Return True if the table has an item for `key`."""
        state_key = self._state_key("contains", key)
        return self._session.load_item(state_key) is not None

    def borrow(self, key: T0) -> T1:
        """Return a read-only copy of the item for `key`; abort if it does not exist."""
        state_key = self._state_key("borrow", key)
        return typing.cast("T1", self._session.item(state_key, self._value, Access.READ_ONLY))

    def borrow_with_default(self, key: T0, default: T1) -> T1:
        """Return a read-only copy of the item for `key`, or `default` if it does not exist."""
        return self.borrow(key) if self.contains(key) else default

    def borrow_mut(self, key: T0) -> AbstractContextManager[T1]:
        """Return a context manager that yields the item for `key`, a struct or a vector, and stores its changes."""
        state_key = self._state_key("borrow", key)
        return typing.cast("AbstractContextManager[T1]", self._session.item_mut(state_key, self._key, self._value))

    def add(self, key: T0, value: T1) -> None:
        """Add an item; abort if `key` already has an item."""
        state_key = self._state_key("add", key)
        if self._session.load_item(state_key) is not None:
            raise MoveAbort("0x1::table", _ALREADY_EXISTS)
        self._session.write_item(state_key, self._key, self._value, value)

    def upsert(self, key: T0, value: T1) -> None:
        """Add an item or replace it."""
        self._session.load_item(self._state_key("contains", key))
        self._session.write_item(self._state_key("add", key), self._key, self._value, value)

    def remove(self, key: T0) -> T1:
        """Remove the item for `key` and return it; abort if it does not exist."""
        state_key = self._state_key("remove", key)
        value = self._session.item(state_key, self._value, Access.OWN)
        self._session.write(state_key, None)
        return typing.cast("T1", value)

    def _state_key(self, verb: str, key: T0) -> Any:
        """Return the state key of an item; charge for the table function that needs it."""
        if self._session is None:
            raise InputError("a new table cannot be used yet: store it in a resource, then borrow that resource")
        return self._session.item_key(verb, self.handle, self._key, key)


class ReadOnlyVector(list[Any]):
    """A vector in a value that is read, which cannot be changed."""

    __slots__ = ()

    def _refuse(self, *_: Any, **__: Any) -> typing.NoReturn:
        raise ContractError(f"this vector cannot be changed: {READ_ONLY}; list(...) returns a copy that can be changed")

    append = extend = insert = pop = remove = clear = sort = reverse = _refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse

    def __copy__(self) -> list[Any]:
        return list(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(one, memo) for one in self]


# -- from annotations to Move types ----------------------------------------------------------------------------------


def move_type(annotation: Any, arguments: tuple[MoveType, ...] = (), *, checked: bool = True) -> MoveType:
    """Return the Move type of an annotation.

    Parameters
    ----------
    annotation : object
        The annotation, which must not be a string.
    arguments : tuple of MoveType, optional
        Types that replace ``T0`` and ``T1``; by default, the parameters remain.
    checked : bool, default True
        Whether values are typed and checked; False for the framework.

    Returns
    -------
    MoveType

    Raises
    ------
    InputError
        If the annotation is not a Move type.

    Examples
    --------
    >>> move_type(vector[u64]).text
    'vector<u64>'
    """
    if isinstance(annotation, TypeVar):
        return _parameter(annotation, arguments)
    if annotation is vector or annotation is Option:
        raise InputError("vector and Option need a type in brackets, such as vector[u64]")
    marker = alias_kind(annotation)
    if marker is not None and marker.text in {"vector", "option"}:
        element = move_type(typing.get_args(annotation.__origin__)[0], arguments, checked=checked)
        return option_of(element) if marker.text == "option" else vector_of(element, checked=checked)
    if marker is not None or annotation in {bool, bytes}:
        return _plain_type(annotation if marker is None else marker.text, checked=checked)
    origin = typing.get_origin(annotation) or annotation
    describe = getattr(origin, "move_type", None)
    inner: tuple[MoveType, ...] = ()
    if describe is not None or origin in {Table, Object}:
        inner = tuple(move_type(argument, arguments, checked=checked) for argument in typing.get_args(annotation))
    if origin is Table and len(inner) == 2:  # noqa: PLR2004 - a table has a key and a value type
        return _table(*inner, checked=checked)
    if origin is Object and inner:
        return replace(_plain_type("address", checked=checked), text=f"0x1::object::Object<{inner[0].text}>")
    if getattr(origin, "move_enum", None) is not None:
        enum = origin.move_declared().__name__
        raise InputError(f"{origin.__name__} is a variant, not a type: write the enum, {enum}")
    if describe is not None:
        described: MoveType = describe(inner)
        return described
    raise InputError(
        f"{getattr(annotation, '__name__', annotation)} is not a Move type; the types are u8 to u256, i8 to i256, "
        "bool, bytes, address, signer, String, vector[T], Option[T], Object[T], Table[K, V], T0, T1 and the structs of "
        "a contract"
    )


def _parameter(variable: Any, arguments: tuple[MoveType, ...]) -> MoveType:
    """Return the type argument for ``T0`` or ``T1``, or the parameter itself if no argument is given."""
    name: str = variable.__name__
    if name not in {"T0", "T1"}:
        raise InputError(f"type variable {name} cannot be used: generic parameters must be T0 or T1")
    index = int(name[1:])
    if index < len(arguments):
        return arguments[index]
    return MoveType(name, lower=lambda value: int(value) if isinstance(value, TypedInteger) else value)


def vector_of(element: MoveType, *, checked: bool = True) -> MoveType:
    """Return the vector type with the given element type; vectors of u8 are decoded as bytes."""
    text, lift, lower, take = f"vector<{element.text}>", element.lift, element.lower, element.take
    if not checked:
        if element.text == "u8":
            return MoveType(text, lambda _, data: list(data), bytes)
        each: Lift | None = None if lift is None else (lambda session, values: [lift(session, one) for one in values])
        return MoveType(text, each, None if lower is None else (lambda values: [lower(value) for value in values]))

    def lifted(session: Any, values: Any) -> list[Any]:
        elements = values if lift is None else [lift(session, value) for value in values]
        return ReadOnlyVector(elements) if session.access is Access.READ_ONLY else list(elements)

    def taken(values: Any) -> list[Any]:
        if not isinstance(values, list | tuple | bytes):
            raise mismatch(text, values)
        return list(values) if take is None else [take(value) for value in values]

    def lowered(values: Any) -> Any:
        # Elements that the contract added are checked here, because a list does not check them.
        elements = taken(values)
        if element.text == "u8":
            return bytes(elements)
        return elements if lower is None else [lower(value) for value in elements]

    return MoveType(text, lifted, lowered, taken)


def argument_type_of(text: str) -> MoveType:
    """Return the Move type of a type argument that no contract declares; framework structs remain decoded values."""
    return _plain_type(text, checked=True) if text in INTEGERS or text == "address" else MoveType(text)


def _take(text: str, *kinds: type) -> Lower:
    """Return a function that checks that a value is of one of these classes, and not an address."""

    def taken(value: Any) -> Any:
        if not isinstance(value, kinds) or isinstance(value, Address):
            raise mismatch(text, value)
        return value

    return taken


_is_bytes = _take("bytes", bytes, list)


def _take_address(value: Any) -> Address:
    if type(value) is Address:
        return value
    if not isinstance(value, str):
        raise mismatch("address", value)
    try:
        return Address(parse_address(value))
    except InputError as error:
        raise ContractError(f"{error}") from None


def _integer_type(name: str, integer: type[TypedInteger]) -> MoveType:
    return MoveType(name, lambda _, plain: int.__new__(integer, plain), int, integer.of)


# Conversions of addresses.
_ADDRESS = (lambda _, text: Address(text), lambda value: str(value) if type(value) is Address else value)
# Types without parts, by annotation or text.
_PLAIN: dict[Any, MoveType] = {
    bool: MoveType("bool", take=_take("bool", bool)),
    bytes: MoveType("vector<u8>", take=lambda value: bytes(_is_bytes(value))),
    "address": MoveType("address", *_ADDRESS, _take_address),
    "signer": MoveType("signer", *_ADDRESS, check_signer),
    "0x1::string::String": MoveType("0x1::string::String", take=_take("String", str)),
} | {name: _integer_type(name, integer) for name, integer in INTEGERS.items()}


def _plain_type(key: Any, *, checked: bool) -> MoveType:
    """Return a type without element types and fields; the framework uses Python's integers."""
    found = _PLAIN[key]
    if checked:
        return found
    return MoveType(found.text) if key in INTEGERS else replace(found, take=None)


def option_of(kind: MoveType) -> MoveType:
    """Return the option type for a type."""
    return MoveType(f"0x1::option::Option<{kind.text}>", *map(_unless_none, (kind.lift, kind.lower, kind.take)))


def _unless_none(convert: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return a conversion that leaves None as it is; its last argument is the value."""
    if convert is None:
        return None
    return lambda *given: None if given[-1] is None else convert(*given)


def _table(key: MoveType, value: MoveType, *, checked: bool) -> MoveType:
    return MoveType(
        f"0x1::table::Table<{key.text}, {value.text}>",
        lambda session, plain: Table(plain["handle"]).bind(session, key, value),
        lambda table: {"handle": _take_table(table).handle},
        _take_table if checked else None,
    )


def _take_table(table: Any) -> Any:
    if not isinstance(table, Table):
        raise ContractError(f"expected a table, got {table!r:.80}; write self.new_table()")
    return table


# -- structs ---------------------------------------------------------------------------------------------------------


@dataclass_transform(kw_only_default=True)
class Struct:
    """A Move struct; its fields are annotated and passed by name.

    ``class Order(Struct)`` inside a module has the abilities copy, drop and store; ``abilities="key store"`` in the
    class statement replaces them, ``group="0x1::object::ObjectGroup"`` stores the struct in a resource group, and
    ``constraints={"T0": "store"}`` declares the abilities of the type arguments of a generic struct. Abilities and
    constraints appear in the ABI; Python does not enforce what they mean.

    Parameters
    ----------
    **fields : object
        A value for every field.

    Raises
    ------
    InputError
        If a field is missing or unknown. Also when the struct is defined, if `abilities` or `constraints` contains a
        word that is not an ability, or a field has a default value.

    Examples
    --------
    >>> from toolkit.embedded import Module
    >>> class Shop(Module, address="0x5407"):
    ...     class Order(Struct):
    ...         price: u64
    >>> Shop.Order(price=3)
    Order(price=3)
    """

    __slots__ = ("__dict__", "__weakref__", "move_access")

    move_access: Access
    move_module: str = ""
    move_group: str | None = None
    move_abilities: tuple[str, ...] = ("copy", "drop", "store")
    move_constraints: typing.ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init_subclass__(
        cls,
        *,
        abilities: str | None = None,
        group: str | None = None,
        constraints: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        for name in inspect.get_annotations(cls):
            if name in vars(cls) and not name.startswith("move_"):
                raise InputError(
                    f"struct {cls.__name__}: field {name} has a default value, which Move does not support: write "
                    f"{cls.__name__}({name}=...) instead"
                )
        if constraints is not None:
            # In the order that nodes use.
            cls.move_constraints = {
                name: tuple(sorted(parse_abilities(text), key=ABILITIES.index)) for name, text in constraints.items()
            }
        if abilities is not None:
            cls.move_abilities = parse_abilities(abilities)
        if group is not None:
            cls.move_group = group

    def __init__(self, /, **fields: Any) -> None:  # a field can be called self
        expected = self.move_fields()
        if fields.keys() != expected.keys():
            missing = [f"missing fields: {one}" for one in expected if one not in fields]
            unknown = [f"unknown fields: {one}" for one in fields if one not in expected]
            raise InputError(f"{type(self).__name__}: {'; '.join(missing + unknown)}")
        for field, take in _takes(type(self)).items():  # type: ignore[arg-type]  # classes are hashable
            fields[field] = take(fields[field])
        _set_access(self, Access.OWN)
        self.__dict__.update(fields)

    def __setattr__(self, name: str, value: Any) -> None:
        _check_writable(self, name)
        if name not in self.__dict__:
            instead = did_you_mean(name, self.__dict__) or f"its fields are {', '.join(self.__dict__)}"
            raise ContractError(f"{_path(self)} has no field {name}; {instead}")
        take = _takes(type(self)).get(name)  # type: ignore[arg-type]  # classes are hashable
        self.__dict__[name] = value if take is None else take(value)

    def unpack(self) -> tuple[Any, ...]:
        """Return the values of the fields in order, like ``let Ticket { price } = ticket`` in Move.

        Examples
        --------
        >>> from toolkit.embedded import Module, Struct, u64
        >>> class Fair(Module, address="0xfa1"):
        ...     class Ticket(Struct, abilities="store"):
        ...         price: u64
        >>> (price,) = Fair.Ticket(price=3).unpack()
        >>> price
        3
        """
        return tuple(self.__dict__.values())

    def __copy__(self) -> Self:
        return self._copy(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._copy({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})

    def _copy(self, fields: Mapping[str, Any]) -> Self:
        copied = object.__new__(type(self))
        _set_access(copied, Access.OWN)
        copied.__dict__.update(fields)
        return copied

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # fields can change

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__dict__.items())
        return f"{type(self).__name__}({fields})"

    @classmethod
    @functools.cache
    def move_fields(cls) -> dict[str, Any]:
        """Return the resolved annotations of the fields by name, in order of declaration."""
        fields: dict[str, Any] = {}
        for owner in reversed(cls.__mro__):
            if owner in {Struct, Enum} or not issubclass(owner, Struct):
                continue
            # As in Python, a nested class sees the module's class by name, not what is nested in it.
            module = getattr(owner, "move_namespace", owner)
            fields |= resolve_annotations(owner, module, f"struct {cls.__name__}", own_name_wins=True)
        return fields

    @classmethod
    @functools.lru_cache(maxsize=4096)
    def move_type(cls, arguments: tuple[MoveType, ...] = ()) -> MoveType:
        """Return the struct as a Move type with the given type arguments."""
        return MoveType(_struct_text(cls, arguments), *_conversions(cls, arguments), _take(cls.__name__, cls))

    @classmethod
    def move_declared(cls) -> type[Struct]:
        """Return the class that declares the Move type: the struct itself, or the enum of a variant."""
        return cls


# The descriptor of the slot, which sets it without `Struct.__setattr__`.
_set_access: Callable[[Struct, Access], None] = vars(Struct)["move_access"].__set__


# Functions, because a contract may call a field by any name.


def freeze(struct: Struct) -> None:
    """Refuse further changes of fields, which would not be stored."""
    _set_access(struct, Access.READ_ONLY)
    for value in struct.__dict__.values():
        if isinstance(value, Struct):
            freeze(value)


def _check_writable(struct: Struct, field: str = "") -> None:
    """Record that a borrowed value changes; raise ContractError if the change would not be stored."""
    if struct.move_access is Access.READ_ONLY:
        raise ContractError(f"{_path(struct)}{field and '.'}{field} cannot be changed: {READ_ONLY}")
    if struct.move_access is Access.BORROWED:
        _set_access(struct, Access.CHANGED)


def _path(struct: Struct) -> str:
    return type(struct).__qualname__.rpartition("<locals>.")[2]


class Enum(Struct):
    """A Move enum; its variants are the classes inside it, with annotated fields.

    A variant is constructed with its fields by name. It is an instance of the enum, and ``isinstance`` and ``match``
    distinguish variants. Move's positional fields are named ``_0``, ``_1``. Abilities and group are declared as for
    `Struct`; an enum with the ability key can be stored as a resource.

    Parameters
    ----------
    **fields : object
        A value for every field of the variant.

    Raises
    ------
    InputError
        When the enum is defined, if it has no variants or has fields of its own. When a value is constructed, if a
        field is missing or unknown, or the enum itself is called instead of a variant.

    Examples
    --------
    >>> from toolkit.embedded import Enum, Ledger, Module, entry, signer, u8, u64, view
    >>> class Lamp(Module, address="0x1a4b"):
    ...     class Mode(Enum, abilities="copy drop store key"):
    ...         class Off: ...
    ...
    ...         class On:
    ...             level: u8
    ...
    ...     def init_module(self, account: signer) -> None:
    ...         self.move_to(account, Lamp.Mode.Off())
    ...
    ...     @entry
    ...     def switch_on(self, account: signer, level: u8) -> None:
    ...         with self.borrow_mut(Lamp.Mode, "0x1a4b") as mode:
    ...             mode.assign(Lamp.Mode.On(level=level))
    ...
    ...     @view
    ...     def mode(self) -> "Mode":
    ...         return self.borrow(Lamp.Mode, "0x1a4b")
    ...
    ...     @view
    ...     def level(self) -> u8:
    ...         match self.borrow(Lamp.Mode, "0x1a4b"):
    ...             case Lamp.Mode.On(level=level):
    ...                 return level
    ...         return 0
    >>> ledger = Ledger()
    >>> published = ledger.publish(Lamp)
    >>> done = ledger.commit("0x1a4b::lamp::switch_on", 9, sender="0xb0b")
    >>> ledger.view("0x1a4b::lamp::mode")[0], ledger.view("0x1a4b::lamp::level")[0]
    ([{'__variant__': 'On', 'level': 9}], [9])
    """

    move_variants: typing.ClassVar[dict[str, type[Enum]]] = {}
    move_enum: typing.ClassVar[type[Enum] | None] = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.move_enum is not None:
            return
        variants = {name: body for name, body in vars(cls).items() if isinstance(body, type)}
        if not variants:
            raise InputError(f"enum {cls.__name__} has no variants: declare each variant as a class inside the enum")
        if vars(cls).get("__annotations__"):
            raise InputError(f"enum {cls.__name__} has fields of its own: declare them in its variants")
        cls.move_variants = {}
        for name, body in variants.items():
            own = {key: value for key, value in vars(body).items() if key not in {"__dict__", "__weakref__"}}
            cls.move_variants[name] = variant = type(name, (cls,), own | {"move_enum": cls})
            setattr(cls, name, variant)

    def __init__(self, /, **fields: Any) -> None:
        if type(self).move_enum is None:
            names = ", ".join(self.move_variants)
            raise InputError(f"{type(self).__name__} is an enum: construct one of its variants ({names})")
        super().__init__(**fields)

    def __repr__(self) -> str:
        return f"{self.move_declared().__name__}.{super().__repr__()}"

    def assign(self, value: Enum) -> None:
        """Replace this value with another variant or other fields, like ``*mode = Mode::On { level: 9 }`` in Move.

        Parameters
        ----------
        value : Enum
            A value of the same enum.

        Raises
        ------
        ContractError
            If the value is not of the same enum, or this value is read-only.
        """
        if not isinstance(value, self.move_declared()):
            raise mismatch(self.move_declared().__name__, value)
        _check_writable(self)
        object.__setattr__(self, "__class__", type(value))
        self.__dict__.clear()
        self.__dict__.update(value.__dict__)

    @classmethod
    @functools.lru_cache(maxsize=4096)
    def move_type(cls, arguments: tuple[MoveType, ...] = ()) -> MoveType:
        """Return the enum as a Move type with the given type arguments.

        Its decoded values are dicts that start with the name of the variant.
        """
        enum = cls.move_enum or cls
        plans = {name: _conversions(variant, arguments) for name, variant in enum.move_variants.items()}

        def lift(session: Any, plain: dict[str, Any]) -> Struct:
            fields = dict(plain)
            return plans[fields.pop(VARIANT)][0](session, fields)

        def lower(value: Enum) -> dict[str, Any]:
            name = type(value).__name__
            return {VARIANT: name, **plans[name][1](value)}

        return MoveType(_struct_text(enum, arguments), lift, lower, _take(enum.__name__, enum))

    @classmethod
    def move_declared(cls) -> type[Struct]:
        """Return the enum of a variant, or the enum itself."""
        return cls.move_enum or cls


class Resource(Struct, abilities="key"):
    """A struct that is stored under an address; each address holds at most one value per type.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, Resource, signer, u64, view
    >>> class Shop(Module, address="0x5407"):
    ...     class Till(Resource):
    ...         coins: u64
    ...
    ...     def init_module(self, account: signer) -> None:
    ...         self.move_to(account, Shop.Till(coins=5))
    ...
    ...     @view
    ...     def coins(self) -> u64:
    ...         return self.borrow(Shop.Till, "0x5407").coins
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> ledger.view("0x5407::shop::coins")[0]
    [5]
    """


class Event(Struct, abilities="drop store"):
    """A struct that contracts emit as an event.

    Examples
    --------
    >>> from toolkit.embedded import Event, Ledger, Module, entry, signer, u64
    >>> class Shop(Module, address="0x5407"):
    ...     class Sold(Event):
    ...         price: u64
    ...
    ...     @entry
    ...     def sell(self, account: signer, price: u64) -> None:
    ...         self.emit(Shop.Sold(price=price))
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> ledger.commit("0x5407::shop::sell", 7, sender="0xb0b").events[0]
    LedgerEvent(type='0x5407::shop::Sold', data={'price': 7})
    """


def resolve_annotations(owner: Any, cls: type, where: str, *, own_name_wins: bool = False) -> dict[str, Any]:
    """Return the annotations of a struct or method, evaluated if they are strings.

    Parameters
    ----------
    owner : type or function
        The class or function with the annotations.
    cls : type
        The module class; its nested structs and all Move types can be named without a prefix.
    where : str
        Name of the owner in messages.
    own_name_wins : bool, default False
        Whether the name of `cls` means `cls` itself if a nested struct has the same name.

    Raises
    ------
    InputError
        If an annotation uses a name that is not defined.
    """
    # The names of the module that defines the function or the class.
    module = getattr(owner, "__globals__", None)
    scope = {name: globals()[name] for name in __all__} | (module or vars(sys.modules[owner.__module__]))
    names: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        nested = {name: member for name, member in vars(base).items() if isinstance(member, type)}
        own = {base.__name__: base}
        names |= nested | own if own_name_wins else own | nested
    found: dict[str, Any] = {}
    for name, text in inspect.get_annotations(owner).items():
        kind = text
        try:
            while isinstance(kind, str):  # twice if it is quoted and all annotations are (PEP 563)
                kind = eval(kind, scope, names)  # noqa: S307 - the annotations of the user's own class
        except TypeError:  # brackets that the type does not take
            instead = "vector, Option and Object take one type in brackets, such as vector[u64]; Table[K, V] takes two"
            raise InputError(f"{where}, {name}: {text} is not a Move type; {instead}") from None
        except NameError as error:
            missing = error.name or ""
            instead = did_you_mean(missing, [*__all__, *names, "bool", "bytes"])
            instead = instead or "expected a Move type or a struct of the contract"
            raise InputError(f"{where}, {name}: {missing} is not defined; {instead}") from None
        found[name] = kind
    return found


def is_struct(value: Any) -> bool:
    """Return True if a value is a struct class."""
    return isinstance(value, type) and issubclass(value, Struct)


def is_framework(cls: type) -> bool:
    """Return True if a class belongs to the framework, whose values are not checked."""
    return cls.__module__.startswith("toolkit.embedded.framework")


@functools.cache
def _takes(cls: type[Struct]) -> dict[str, Lower]:
    """Return the functions that check a struct's fields, by field name; empty for framework structs."""
    if is_framework(cls):
        return {}
    takes = {name: move_type(annotation).take for name, annotation in cls.move_fields().items()}
    return {name: take for name, take in takes.items() if take is not None}


def _struct_text(cls: type[Struct], arguments: tuple[MoveType, ...]) -> str:
    if not cls.move_module:
        raise InputError(f"struct {cls.__name__} does not belong to a module: define it inside a Module class")
    inner = f"<{', '.join(argument.text for argument in arguments)}>" if arguments else ""
    return f"{cls.move_module}::{cls.__name__}{inner}"


def _conversions(
    cls: type[Struct], arguments: tuple[MoveType, ...]
) -> tuple[Callable[[Any, dict[str, Any]], Struct], Callable[[Any], dict[str, Any]]]:
    """Return the two conversions of a struct or variant, which convert only the fields that need it."""
    checked = not is_framework(cls)
    fields = {name: move_type(annotation, arguments, checked=checked) for name, annotation in cls.move_fields().items()}
    # Most fields of most structs are integers: they are converted here, without a call for each.
    integers = [(name, INTEGERS[kind.text]) for name, kind in fields.items() if checked and kind.text in INTEGERS]
    numbers = dict(integers)
    lifts = [(name, kind.lift) for name, kind in fields.items() if kind.lift is not None and name not in numbers]
    new = int.__new__
    lowers = [(name, kind.lower) for name, kind in fields.items() if kind.lower is not None]

    def lift(session: Any, plain: dict[str, Any]) -> Struct:
        value = cls.__new__(cls)
        state = value.__dict__
        state.update(plain)
        for name, integer in integers:
            state[name] = new(integer, plain[name])
        for name, convert in lifts:
            state[name] = convert(session, plain[name])
        _set_access(value, session.access)
        return value

    def lower(value: Struct) -> dict[str, Any]:
        plain = dict(value.__dict__)
        for name, convert in lowers:
            plain[name] = convert(plain[name])
        return plain

    return lift, lower
