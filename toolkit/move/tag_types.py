"""Move type tags as values: frozen, hashable, printed in one canonical form. `tags` reads them from text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.move._frozen import HashOnce
from toolkit.move.address import parse_address, wire_address

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ABILITIES",
    "MAX_TYPE_DEPTH",
    "PRIMITIVES",
    "SIGNED",
    "UNSIGNED",
    "FunctionType",
    "Primitive",
    "Reference",
    "StructTag",
    "TypeParameter",
    "TypeTag",
    "Vector",
    "check_identifier",
    "is_signer",
    "substitute",
    "wire_type",
]

MAX_TYPE_DEPTH = 8
"""How deep types nest in a type a node accepts: ``u8`` is at depth 0, its vector makes it 1."""

ABILITIES = ("copy", "drop", "store", "key")
"""Abilities in the order of their bits in BCS."""

UNSIGNED = ("u8", "u16", "u32", "u64", "u128", "u256")
SIGNED = ("i8", "i16", "i32", "i64", "i128", "i256")
PRIMITIVES = frozenset(("bool", *UNSIGNED, *SIGNED, "address", "signer"))
"""Names of the built-in types."""

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_$]*|[_$][A-Za-z0-9_$]+")


def check_identifier(name: str, what: str = "name") -> str:
    """Return `name` if it is a Move identifier.

    Raises
    ------
    InputError
        If it is none; `what` names it in the text.
    """
    if _IDENTIFIER.fullmatch(name) is None:
        raise InputError(f"{what} {shorten(name)} is not a Move identifier (letters, digits, underscores)")
    return name


@dataclass(frozen=True, slots=True)
class Primitive:
    """A built-in type: bool, an integer, address or signer."""

    name: str

    def __post_init__(self) -> None:
        if self.name not in PRIMITIVES:
            raise InputError(f"unknown type {shorten(self.name)}")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Vector(HashOnce):
    """``vector<element>``."""

    element: TypeTag

    __hash__ = HashOnce.__hash__

    def __str__(self) -> str:
        return _printed(self, wire=False)


@dataclass(frozen=True, slots=True)
class StructTag(HashOnce):
    """``address::module::name<type_arguments>``; the address is kept canonical, so equality is by value."""

    address: str
    module: str
    name: str
    type_arguments: tuple[TypeTag, ...] = ()

    __hash__ = HashOnce.__hash__

    def __post_init__(self) -> None:
        object.__setattr__(self, "address", parse_address(self.address))
        object.__setattr__(self, "type_arguments", tuple(self.type_arguments))
        check_identifier(self.module, "module name")
        check_identifier(self.name, "struct name")

    @property
    def base(self) -> str:
        """The tag without its type arguments, as text."""
        return f"{self.address}::{self.module}::{self.name}"

    def __str__(self) -> str:
        return _printed(self, wire=False)


@dataclass(frozen=True, slots=True)
class TypeParameter:
    """``T0``, ``T1``: a generic parameter, in ABIs only."""

    index: int

    def __str__(self) -> str:
        return f"T{self.index}"


@dataclass(frozen=True, slots=True)
class Reference(HashOnce):
    """``&T`` or ``&mut T``, in ABIs only."""

    target: TypeTag
    mutable: bool = False

    __hash__ = HashOnce.__hash__

    def __str__(self) -> str:
        return _printed(self, wire=False)


@dataclass(frozen=True, slots=True)
class FunctionType(HashOnce):
    """``|arguments|results``: the type of a function value; a node's text leaves abilities out."""

    arguments: tuple[TypeTag, ...]
    results: tuple[TypeTag, ...] = ()
    abilities: tuple[str, ...] = ()

    __hash__ = HashOnce.__hash__

    def __str__(self) -> str:
        return _printed(self, wire=False)


TypeTag: TypeAlias = Primitive | Vector | StructTag | TypeParameter | Reference | FunctionType


def wire_type(tag: TypeTag) -> str:
    """Return a type's text as the REST API prints it: addresses with leading zeros stripped, no abilities."""
    return _printed(tag, wire=True)


def _printed(tag: TypeTag, *, wire: bool) -> str:
    """Return the text of a type, with the wire's addresses or canonical ones."""
    match tag:
        case Vector(element):
            return f"vector<{_printed(element, wire=wire)}>"
        case StructTag(address, module, name, arguments):
            base = f"{wire_address(address) if wire else address}::{module}::{name}"
            return f"{base}<{_listed(arguments, wire=wire)}>" if arguments else base
        case Reference(target, mutable):
            return f"&{'mut ' if mutable else ''}{_operand(target, wire=wire)}"
        case FunctionType(arguments, results, abilities):
            many = len(results) > 1
            text = _listed(results, wire=wire) if many else "".join(_operand(r, wire=wire) for r in results)
            has = f" has {' + '.join(abilities)}" if abilities and not wire else ""
            inner = ", ".join(_operand(argument, wire=wire) for argument in arguments)
            return f"|{inner}|{f'({text})' if many else text}{has}"
        case _:
            return str(tag)


def _listed(tags: tuple[TypeTag, ...], *, wire: bool) -> str:
    return ", ".join(_printed(tag, wire=wire) for tag in tags)


def _operand(tag: TypeTag, *, wire: bool) -> str:
    """Put a function type in brackets where its bars would run into those around it."""
    text = _printed(tag, wire=wire)
    return f"({text})" if isinstance(tag, FunctionType) else text


def is_signer(tag: TypeTag) -> bool:
    """Tell whether a parameter is a signer or a reference to one; callers do not write those."""
    return is_signer(tag.target) if isinstance(tag, Reference) else tag == Primitive("signer")


def substitute(tag: TypeTag, type_arguments: Sequence[TypeTag]) -> TypeTag:
    """Return `tag` with ``T0``, ``T1``, ... replaced by `type_arguments`; a parameter past their end stays."""
    match tag:
        case TypeParameter(index):
            return type_arguments[index] if index < len(type_arguments) else tag
        case Vector(element):
            return Vector(substitute(element, type_arguments))
        case StructTag(address, module, name, arguments) if arguments:
            return StructTag(address, module, name, tuple(substitute(a, type_arguments) for a in arguments))
        case Reference(target, mutable):
            return Reference(substitute(target, type_arguments), mutable)
        case FunctionType(arguments, results, abilities):
            return FunctionType(
                tuple(substitute(a, type_arguments) for a in arguments),
                tuple(substitute(r, type_arguments) for r in results),
                abilities,
            )
        case _:
            return tag
