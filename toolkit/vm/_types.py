"""Types of the running machine: interned, so that equal types are one object and are compared by identity.

`toolkit.move` has type tags for people: names with text addresses, checked at construction. The machine substitutes
type parameters in hot paths and uses types as keys, so its types are interned and store the counts that gas needs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self
from weakref import WeakValueDictionary

from toolkit.move import _type_tags as tags
from toolkit.move._ids import address_to_bytes
from toolkit.vm._errors import MoveError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

COPY, DROP, STORE, KEY = 1, 2, 4, 8  # bits of the abilities
ALL_ABILITIES = COPY | DROP | STORE | KEY
ABILITIES = {"copy": COPY, "drop": DROP, "store": STORE, "key": KEY}

_IDENTIFIER = re.compile(r"(?:[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+)")

_LEGACY_IDENTIFIER = re.compile(r"<SELF>(?:_[0-9]+)?")  # of scripts, in old compilers


def is_identifier(name: str) -> bool:
    """Return whether a text is a Move identifier."""
    return _IDENTIFIER.fullmatch(name) is not None or _LEGACY_IDENTIFIER.fullmatch(name) is not None


class ModuleId(NamedTuple):
    """Address (32 bytes) and name of a module."""

    address: bytes
    name: str

    def __str__(self) -> str:
        return f"{address_text(self.address)}::{self.name}"

    @property
    def special(self) -> bool:
        """Whether the address is 0x0 to 0xf: its code is trusted and costs nothing to load."""
        return self.address[-1] < 16 and not any(self.address[:-1])


def address_text(address: bytes) -> str:
    """Return ``0x`` and the hex digits without leading zeros."""
    return f"0x{int.from_bytes(address, 'big'):x}"


FRAMEWORK = bytes(31) + b"\x01"


class Type:
    """Base class of types. ``Vector(U8) is Vector(U8)``.

    Attributes
    ----------
    parts : tuple of Type
        Types that it is made of, at the next level.
    nodes : int
        Number of types that it is made of, itself included; fields of structs do not count.
    depth : int
        Levels of nesting: 1 for ``u8``, 2 for ``vector<u8>``.
    is_open : bool
        Whether it has type parameters.
    """

    __slots__ = ("__weakref__", "depth", "is_open", "nodes", "parts")
    _interned: ClassVar[WeakValueDictionary[tuple[Any, ...], Type]] = WeakValueDictionary()

    nodes: int
    depth: int
    is_open: bool
    parts: tuple[Type, ...]

    def __new__(cls, *key: Any) -> Self:
        whole = (cls, *key)
        found: Any = cls._interned.get(whole)
        if found is None:
            found = object.__new__(cls)
            found._set(*key)
            cls._interned[whole] = found
        return found  # type: ignore[no-any-return]

    def _set(self, *parts: Type) -> None:
        self.parts = parts
        self.nodes = 1 + sum(part.nodes for part in parts)
        self.depth = 1 + max((part.depth for part in parts), default=0)
        self.is_open = any(part.is_open for part in parts)

    def __repr__(self) -> str:
        return str(self)


class Primitive(Type):
    """bool, address, signer or an integer type; integers have `minimum` and `maximum`."""

    __slots__ = ("bits", "maximum", "minimum", "name")

    name: str
    bits: int
    minimum: int
    maximum: int

    def _set(self, name: str) -> None:  # type: ignore[override]
        super()._set()
        self.name = name
        self.bits = int(name[1:]) if name[1:].isdigit() else 0
        signed = name.startswith("i")
        self.minimum = -(1 << self.bits - 1) if signed else 0
        self.maximum = (1 << self.bits - signed) - 1

    def __str__(self) -> str:
        return self.name


class Vector(Type):
    """``vector<element>``."""

    __slots__ = ("element",)

    element: Type

    def _set(self, element: Type) -> None:  # type: ignore[override]
        super()._set(element)
        self.element = element

    def __str__(self) -> str:
        return f"vector<{self.element}>"


class Reference(Type):
    """``&target`` or ``&mut target``."""

    __slots__ = ("mutable", "target")

    target: Type
    mutable: bool

    def _set(self, target: Type, mutable: bool) -> None:  # type: ignore[override]  # noqa: FBT001
        super()._set(target)
        self.target, self.mutable = target, mutable

    def __str__(self) -> str:
        return f"&{'mut ' * self.mutable}{self.target}"


class Struct(Type):
    """A struct or enum, with its type arguments."""

    __slots__ = ("arguments", "module", "name")

    module: ModuleId
    name: str
    arguments: tuple[Type, ...]

    def _set(self, module: ModuleId, name: str, arguments: tuple[Type, ...]) -> None:  # type: ignore[override]
        super()._set(*arguments)
        self.module, self.name, self.arguments = module, name, arguments

    def __str__(self) -> str:
        return f"{self.module}::{self.name}{type_list(self.arguments)}"


class Function(Type):
    """The type of a function value."""

    __slots__ = ("abilities", "parameters", "results")

    parameters: tuple[Type, ...]
    results: tuple[Type, ...]
    abilities: int

    def _set(self, parameters: tuple[Type, ...], results: tuple[Type, ...], abilities: int) -> None:  # type: ignore[override]
        super()._set(*parameters, *results)
        self.parameters, self.results, self.abilities = parameters, results, abilities

    def __str__(self) -> str:
        has = " + ".join(name for name, bit in ABILITIES.items() if self.abilities & bit)
        parameters, results = ", ".join(map(str, self.parameters)), ", ".join(map(str, self.results))
        return f"|{parameters}|({results})" + (f" has {has}" if has else "")


class Parameter(Type):
    """A type parameter of a function or struct."""

    __slots__ = ("index",)

    index: int

    def _set(self, index: int) -> None:  # type: ignore[override]
        super()._set()
        self.index = index
        self.is_open = True

    def __str__(self) -> str:
        return f"T{self.index}"


BOOL, ADDRESS, SIGNER = Primitive("bool"), Primitive("address"), Primitive("signer")
U8, U16, U32, U64, U128, U256 = map(Primitive, tags.UNSIGNED)
I8, I16, I32, I64, I128, I256 = map(Primitive, tags.SIGNED)
INTEGERS: dict[str, Primitive] = {one.name: one for one in (U8, U16, U32, U64, U128, U256)}
INTEGERS |= {one.name: one for one in (I8, I16, I32, I64, I128, I256)}
PRIMITIVES: dict[str, Primitive] = {one.name: one for one in (BOOL, ADDRESS, SIGNER)} | INTEGERS
BYTES = Vector(U8)
SIGNER_REFERENCE = Reference(SIGNER, False)  # noqa: FBT003 - positions are keys of interned types


def is_scalar(kind: Type) -> bool:
    """Return whether values of a type are immutable and of one size: not a container."""
    return isinstance(kind, Reference) or (isinstance(kind, Primitive) and kind is not SIGNER)


def assignable(kind: Type, expected: Type) -> bool:
    """Return whether a value of one type can be stored where another type is expected.

    Other than equal types, these are function types that differ only in their abilities, which the ledger has verified.
    """
    if kind is expected:
        return True
    if not isinstance(kind, Function) or not isinstance(expected, Function):
        return False
    return (kind.parameters, kind.results) == (expected.parameters, expected.results)


def type_list(types: Sequence[Type]) -> str:
    """Return type arguments as text: ``<u8, bool>``, or nothing if there are none."""
    return f"<{', '.join(map(str, types))}>" if types else ""


def substitute(kind: Type, arguments: Sequence[Type]) -> Type:
    """Replace the type parameters in a type.

    Raises
    ------
    MoveError
        If a type parameter has no argument.
    """
    if not kind.is_open:
        return kind
    if isinstance(kind, Parameter):
        if kind.index >= len(arguments):
            raise MoveError("INDEX_OUT_OF_BOUNDS", f"no type argument {kind.index}")
        return arguments[kind.index]
    if isinstance(kind, Vector):
        return Vector(substitute(kind.element, arguments))
    if isinstance(kind, Reference):
        return Reference(substitute(kind.target, arguments), kind.mutable)
    if isinstance(kind, Struct):
        return Struct(kind.module, kind.name, substituted(kind.arguments, arguments))
    assert isinstance(kind, Function)  # noqa: S101 - primitives are closed
    parts = (substituted(kind.parameters, arguments), substituted(kind.results, arguments), kind.abilities)
    return Function(*parts)


def substituted(kinds: Sequence[Type], arguments: Sequence[Type]) -> tuple[Type, ...]:
    """Replace the type parameters in several types."""
    return tuple(substitute(kind, arguments) for kind in kinds)


def ability_bits(names: Iterable[str]) -> int:
    """Return the bits of abilities that are given by name; a name that is not known counts for nothing."""
    return sum(ABILITIES.get(name, 0) for name in names)


def abilities(kind: Type, struct: Callable[[Struct], Any]) -> int:
    """Return the abilities of values of a type.

    Parameters
    ----------
    kind : Type
    struct : callable
        Returns the definition or handle of a struct, with its `abilities` and `type_parameters`.
    """
    match kind:
        case Primitive():
            return DROP if kind.name == "signer" else COPY | DROP | STORE
        case Reference():
            return COPY | DROP
        case Vector():
            return abilities(kind.element, struct) & (COPY | DROP | STORE)
        case Function():
            return kind.abilities
        case Struct():
            definition = struct(kind)
            held: int = definition.abilities
            for argument, parameter in zip(kind.arguments, definition.type_parameters, strict=True):
                if not parameter.phantom:
                    inner = abilities(argument, struct)
                    held &= inner | (KEY if inner & STORE else 0)
            return held
    return ALL_ABILITIES


def struct_modules(kinds: Sequence[Type]) -> list[ModuleId]:
    """Return the modules of all structs in types, sorted and without repetition."""
    return sorted({one.module for one in all_parts(kinds) if isinstance(one, Struct)})


def all_parts(kinds: Iterable[Type]) -> Iterator[Type]:
    """Yield types and all that they are made of."""
    for kind in kinds:
        yield kind
        yield from all_parts(kind.parts)


def from_tag(tag: tags.TypeTag) -> Type:
    """Return the type that a tag of `toolkit.move` stands for."""
    match tag:
        case tags.Primitive():
            return PRIMITIVES[tag.name]
        case tags.Vector():
            return Vector(from_tag(tag.element))
        case tags.StructTag():
            module = ModuleId(address_to_bytes(tag.address), tag.module)
            return Struct(module, tag.name, tuple(map(from_tag, tag.type_arguments)))
        case tags.FunctionType():
            parts = tuple(map(from_tag, tag.arguments)), tuple(map(from_tag, tag.results)), ability_bits(tag.abilities)
            return Function(*parts)
        case tags.Reference():
            return Reference(from_tag(tag.target), tag.mutable)
        case tags.TypeParameter():
            return Parameter(tag.index)
    raise MoveError("TYPE_RESOLUTION_FAILURE", f"{tag} is not a type argument")


@lru_cache(1024)
def parse(text: str) -> Type:
    """Return the type that a text such as ``vector<0x1::m::S>`` stands for."""
    return from_tag(tags.parse_type_tag(text))


def struct(text: str, *arguments: Type) -> Struct:
    """Return a struct type: ``struct("0x1::option::Option", U64)``."""
    address, module, name = text.split("::")
    return Struct(ModuleId(int(address, 16).to_bytes(32, "big"), module), name, arguments)
