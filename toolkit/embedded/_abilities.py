"""Abilities: those that types have and need, and the types that transactions and views can pass.

A struct has the abilities that it declares, as far as its type arguments have them too; a phantom parameter does not
count. The contracts do not mark phantom parameters: a parameter is phantom if no field holds a value of it.
"""

from __future__ import annotations

import re
import typing
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from toolkit.embedded.types import (
    ABILITIES,
    Enum,
    Event,
    MoveType,
    Object,
    Resource,
    Struct,
    Table,
    is_signer,
    move_type,
)
from toolkit.errors import InputError
from toolkit.move import Primitive, StructTag, Vector, parse_type_tag
from toolkit.move._type_tags import TypeParameter, wire_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from toolkit.move import TypeTag

_VALUES = frozenset({"copy", "drop", "store"})
_ALL = frozenset(ABILITIES)
OPTION = "0x1::option::Option"
_TABLE = "0x1::table::Table"
# Abilities of the types of annotations that are not struct classes; they do not depend on type arguments.
_BUILT_IN = {"0x1::object::Object": _VALUES, "0x1::string::String": _VALUES, _TABLE: frozenset({"store"})}
_SIGNER = re.compile(r"(?<![\w:])signer\b")
# Abilities of the keys and items of tables; the type requires nothing of items, but ``table::new`` does.
_IN_TABLES = (("copy", "drop"), ("store",))


class StructSource(Protocol):
    """Finds the classes of structs by their tags: the modules of a ledger, or what a contract declares."""

    def struct_class(self, tag: StructTag) -> type[Struct] | None:
        """Return the class of a struct, or None if it is not known."""


class DeclaredStructs:
    """Structs and those that their fields name: what abilities depend on before modules are published.

    Parameters
    ----------
    structs : iterable of type of Struct

    Attributes
    ----------
    recursive : (type of Struct, str) or None
        A struct that contains itself, and the field that does.
    """

    def __init__(self, structs: Iterable[type[Struct]]) -> None:
        self.recursive: tuple[type[Struct], str] | None = None
        self._found: dict[str, type[Struct]] = {}
        for struct in structs:
            self.add(struct)

    def struct_class(self, tag: StructTag) -> type[Struct] | None:
        """Return the class of a struct, or None if it is not known."""
        return self._found.get(tag.base)

    def add(self, annotation: Any) -> None:
        """Add the structs of an annotation."""
        self._add(annotation, {})

    def _add(self, annotation: Any, inside: dict[type[Struct], str]) -> None:
        """Add the structs of an annotation; `inside` has the structs around it with the field that was followed."""
        for argument in typing.get_args(annotation):
            self._add(argument, inside)
        origin = typing.get_origin(annotation) or annotation
        if not (isinstance(origin, type) and issubclass(origin, Struct) and origin.move_module):
            return
        struct = origin.move_declared()
        if struct in inside:
            self.recursive = self.recursive or (struct, inside[struct])
            return
        base = str(parse_type_tag(f"{struct.move_module}::{struct.__name__}"))
        if base not in self._found:
            self._found[base] = struct
            for field, kind in _annotations(struct):
                self._add(kind, {**inside, struct: field})


def abilities_of(code: StructSource, tag: TypeTag, parameters: Sequence[frozenset[str]] = ()) -> frozenset[str]:
    """Return the abilities of a type.

    Parameters
    ----------
    code : StructSource
        Finds the structs.
    tag : TypeTag
        The type.
    parameters : sequence of frozenset of str, optional
        Abilities of ``T0``, ``T1``; all abilities by default.
    """
    element = _element(tag)
    if element is not None:
        return _VALUES & abilities_of(code, element, parameters)
    match tag:
        case Primitive(name):
            return frozenset({"drop"}) if name == "signer" else _VALUES
        case TypeParameter(index):
            return parameters[index] if index < len(parameters) else _ALL
        case StructTag() if tag.base in _BUILT_IN:
            return _BUILT_IN[tag.base]
        case StructTag():
            struct = code.struct_class(tag)
            found = frozenset() if struct is None else frozenset(struct.move_declared().move_abilities)
            for index, argument in enumerate(tag.type_arguments):
                if struct is not None and not _is_phantom(code, struct, index):
                    had = abilities_of(code, argument, parameters)
                    found = frozenset(one for one in found if _needed_inside(one) in had)
            return found
    return frozenset()


def unsatisfied(code: StructSource, constraints: Sequence[Sequence[str]], arguments: Sequence[TypeTag]) -> str | None:
    """Return why type arguments do not satisfy the constraints of their parameters, or None."""
    for index, (wanted, argument) in enumerate(zip(constraints, arguments, strict=True)):
        missing = [one for one in wanted if one not in abilities_of(code, argument)]
        if missing:
            return f"type argument T{index} must have {', '.join(wanted)}; {wire_type(argument)} lacks {missing[0]}"
    return None


def wrong_field(code: StructSource, struct: type[Struct]) -> tuple[str, str] | None:
    """Return the first field of a struct that lacks an ability, and what is wrong with it and can be done; or None."""
    for field, tag in _fields(struct):
        allowed = [one for one in struct.move_abilities if _needed_inside(one) in abilities_of(code, tag)]
        for ability in struct.move_abilities:
            if ability not in allowed:
                text = (
                    f"{struct.__name__} has the ability {ability}, so its fields must have {_needed_inside(ability)}: "
                    f"{wire_type(tag)} does not; {_instead(struct, tag, allowed)}"
                )
                return field, text
        problem = wrong_argument(code, tag, struct_constraints(struct))
        if problem is not None:
            return field, problem
    return None


def _instead(struct: type[Struct], tag: TypeTag, allowed: Sequence[str]) -> str:
    """Return what to write instead of a field whose type lacks an ability of its struct."""
    if _has_signer(tag):
        return "a signer is not stored: write address"
    if issubclass(struct, Event):
        return "an event has values that can be copied: give it what it reports, not what is stored"
    name = struct.__name__
    if allowed:
        return f"write class {name}({struct.__mro__[1].__name__}, abilities={' '.join(allowed)!r})"
    return f"declare the struct with abilities='store', not as a Resource, to store it inside {name}"


def _has_signer(tag: TypeTag) -> bool:
    return _SIGNER.search(wire_type(tag)) is not None


def argument_type(kind: Any, *, by: str, checked: bool = True) -> MoveType:
    """Return the Move type of a parameter that callers of a node pass; `by` names them, such as "a transaction".

    Raises
    ------
    InputError
        If the annotation is not a Move type, or one of values that cannot be passed.
    """
    found = move_type(kind, checked=checked)
    for one in _inside(kind):
        if is_signer(one):
            raise InputError(
                f"{by} cannot pass a signer inside another type: signers are the first parameters of an entry "
                "function; write address for an account that does not sign"
            )
        if isinstance(one, type) and issubclass(one, Resource):
            raise InputError(f"{one.__name__} is a resource, which {by} cannot pass: take its address, and borrow it")
        if (typing.get_origin(one) or one) is Table:
            raise InputError(f"{by} cannot pass a table: read it from a resource")
    return found


def returned_type(kind: Any, *, checked: bool = True) -> MoveType:
    """Return the Move type of a value that a view returns.

    Raises
    ------
    InputError
        If the annotation is not a Move type, or one of values that cannot be returned.
    """
    found = move_type(kind, checked=checked)
    for one in _inside(kind):
        if is_signer(one):
            raise InputError("a view cannot return a signer: write address")
        if (typing.get_origin(one) or one) is Table:
            raise InputError("a table is not returned, because its items are stored one by one: return an item of it")
    return found


def _inside(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and those of the values inside it; an object is an address."""
    yield annotation
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, Struct):
        for _, kind in _annotations(origin):
            yield from _inside(kind)
    elif origin is Annotated:
        for argument in typing.get_args(annotation.__origin__):
            yield from _inside(argument)
    elif origin is not Object:
        for argument in typing.get_args(annotation):
            yield from _inside(argument)


def struct_constraints(struct: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Return the abilities that each type argument of a struct must have."""
    declared = struct.move_declared()
    return tuple(
        declared.move_constraints.get(parameter.__name__, ()) for parameter in getattr(declared, "__parameters__", ())
    )


def wrong_argument(code: StructSource, tag: TypeTag, constraints: Sequence[Sequence[str]]) -> str | None:
    """Return which type argument inside a type lacks an ability; ``T0``, ``T1`` have those of their constraints."""
    if isinstance(tag, Vector):
        return wrong_argument(code, tag.element, constraints)
    if not isinstance(tag, StructTag):
        return None
    parameters = [frozenset(one) for one in constraints]
    struct = None if tag.base == _TABLE else code.struct_class(tag)
    required = _IN_TABLES if tag.base == _TABLE else () if struct is None else struct_constraints(struct)
    for index, (wanted, argument) in enumerate(zip(required, tag.type_arguments, strict=False)):
        missing = [one for one in wanted if one not in abilities_of(code, argument, parameters)]
        if missing:
            instead = ""
            if _has_signer(argument):
                instead = "; a signer is not stored: write address"
            elif missing[0] == "store":
                instead = "; declare that struct with abilities='store', not as a Resource"
            return (
                f"type argument {index} of {tag.base} must have {', '.join(wanted)}; {wire_type(argument)} lacks "
                f"{missing[0]}{instead}"
            )
    problems = (wrong_argument(code, argument, constraints) for argument in tag.type_arguments)
    return next((problem for problem in problems if problem is not None), None)


def _element(tag: TypeTag) -> TypeTag | None:
    """Return the type of the elements of a vector or an Option, or None."""
    if isinstance(tag, Vector):
        return tag.element
    return tag.type_arguments[0] if isinstance(tag, StructTag) and tag.base == OPTION else None


def _needed_inside(ability: str) -> str:
    """Return the ability that what is inside a value must have for the value to have `ability`."""
    return "store" if ability == "key" else ability


def _annotations(struct: type[Struct]) -> Iterator[tuple[str, Any]]:
    """Yield names and annotations of all fields of a struct, or of the variants of an enum."""
    for one in struct.move_variants.values() if issubclass(struct, Enum) else (struct,):
        yield from one.move_fields().items()


def _fields(struct: type[Struct]) -> Iterator[tuple[str, TypeTag]]:
    """Yield names and types of all fields of a struct, or of the variants of an enum."""
    for name, annotation in _annotations(struct):
        yield name, parse_type_tag(move_type(annotation).text, abi=True)


def _is_phantom(code: StructSource, struct: type[Struct], index: int) -> bool:
    return not any(_holds(code, tag, index) for _, tag in _fields(struct))


def _holds(code: StructSource, tag: TypeTag, index: int) -> bool:
    """Return True if a value of a type holds a value of the type parameter `index`."""
    element = _element(tag)
    if element is not None:
        return _holds(code, element, index)
    match tag:
        case TypeParameter(found):
            return found == index
        case StructTag():
            struct = code.struct_class(tag)
            return struct is not None and any(
                _holds(code, argument, index) and not _is_phantom(code, struct, place)
                for place, argument in enumerate(tag.type_arguments)
            )
    return False
