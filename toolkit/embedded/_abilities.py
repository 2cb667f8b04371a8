"""Abilities of types, and the checks that a VM's verifier makes with them.

A struct has the abilities that it declares, as far as its type arguments have them too; a phantom parameter does not
count. The contracts do not mark phantom parameters: a parameter is phantom if no field holds a value of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.embedded.types import ABILITIES, Enum, move_type
from toolkit.errors import InputError
from toolkit.move import Primitive, StructTag, TypeParameter, Vector, parse_type_tag, wire_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from toolkit.embedded._code import CodeSet
    from toolkit.embedded._contract import Definition
    from toolkit.embedded.types import Struct
    from toolkit.move import TypeTag

__all__ = ["abilities_of", "check_definition", "struct_constraints", "unsatisfied"]

_VALUES = frozenset({"copy", "drop", "store"})
_ALL = frozenset(ABILITIES)
_OBJECT = "0x1::object::Object"
_TABLE = "0x1::table::Table"


def abilities_of(code: CodeSet, tag: TypeTag, parameters: Sequence[frozenset[str]] = ()) -> frozenset[str]:
    """Return the abilities of a type.

    Parameters
    ----------
    code : CodeSet
        Modules that define the structs.
    tag : TypeTag
        The type.
    parameters : sequence of frozenset of str, optional
        Abilities of ``T0``, ``T1``; all abilities by default.
    """
    match tag:
        case Primitive(name):
            return frozenset({"drop"}) if name == "signer" else _VALUES
        case Vector(element):
            return _VALUES & abilities_of(code, element, parameters)
        case TypeParameter(index):
            return parameters[index] if index < len(parameters) else _ALL
        case StructTag() if tag.base == _OBJECT:
            return _VALUES
        case StructTag():
            struct = _struct(code, tag)
            found = frozenset() if struct is None else frozenset(struct.move_declared().move_abilities)
            for index, argument in enumerate(tag.type_arguments):
                if struct is not None and not _is_phantom(code, struct, index):
                    had = abilities_of(code, argument, parameters)
                    found = frozenset(one for one in found if _needed_inside(one) in had)
            return found
    return frozenset()


def unsatisfied(code: CodeSet, constraints: Sequence[Sequence[str]], arguments: Sequence[TypeTag]) -> str | None:
    """Return why type arguments do not satisfy the constraints of their parameters, or None."""
    for index, (wanted, argument) in enumerate(zip(constraints, arguments, strict=True)):
        missing = [one for one in wanted if one not in abilities_of(code, argument)]
        if missing:
            return f"type argument T{index} must have {', '.join(wanted)}; {wire_type(argument)} lacks {missing[0]}"
    return None


def check_definition(code: CodeSet, definition: Definition) -> None:
    """Check that the fields of structs have the abilities that they need, as a verifier does on publication.

    Parameters
    ----------
    code : CodeSet
        The published modules with the new ones.
    definition : Definition
        A new module.

    Raises
    ------
    InputError
        If a field lacks an ability of its struct (``store`` for ``key``), or a type argument one that is required.
    """
    for name, struct in definition.structs.items():
        where = f"{definition.wire_id}::{name}"
        for field, tag in _fields(struct):
            for ability in struct.move_abilities:
                needed = _needed_inside(ability)
                if needed not in abilities_of(code, tag):
                    raise InputError(
                        f"struct {where} has the ability {ability}, so field {field} must have {needed}: "
                        f"{wire_type(tag)} does not"
                    )
            _check_inner(code, tag, struct_constraints(struct), f"field {field} of {where}")
    for function in definition.functions.values():
        for kind in (*function.parameters, *function.returns):
            tag = parse_type_tag(kind.text, abi=True)
            _check_inner(code, tag, function.constraints, f"function {definition.wire_id}::{function.name}")


def struct_constraints(struct: type[Struct]) -> tuple[tuple[str, ...], ...]:
    """Return the abilities that each type argument of a struct must have."""
    declared = struct.move_declared()
    return tuple(
        declared.move_constraints.get(parameter.__name__, ()) for parameter in getattr(declared, "__parameters__", ())
    )


def _check_inner(code: CodeSet, tag: TypeTag, constraints: Sequence[Sequence[str]], where: str) -> None:
    """Check the type arguments inside a type, in which ``T0``, ``T1`` have the abilities of their constraints."""
    if isinstance(tag, Vector):
        _check_inner(code, tag.element, constraints, where)
    if not isinstance(tag, StructTag):
        return
    struct = _struct(code, tag)
    parameters = [frozenset(one) for one in constraints]
    required = () if struct is None else struct_constraints(struct)
    if tag.base == _TABLE:  # the type requires nothing of items, but `table::new` does
        required = (required[0], ("store",))
    for index, (wanted, argument) in enumerate(zip(required, tag.type_arguments, strict=False)):
        missing = [one for one in wanted if one not in abilities_of(code, argument, parameters)]
        if missing:
            raise InputError(
                f"{where}: type argument {index} of {tag.base} must have {', '.join(wanted)}; "
                f"{wire_type(argument)} lacks {missing[0]}"
            )
    for argument in tag.type_arguments:
        _check_inner(code, argument, constraints, where)


def _needed_inside(ability: str) -> str:
    """Return the ability that what is inside a value must have for the value to have `ability`."""
    return "store" if ability == "key" else ability


def _struct(code: CodeSet, tag: StructTag) -> type[Struct] | None:
    definition = code.modules.get((tag.address, tag.module))
    return None if definition is None else definition.structs.get(tag.name)


def _fields(struct: type[Struct]) -> Iterator[tuple[str, TypeTag]]:
    """Yield names and types of all fields of a struct, or of the variants of an enum."""
    for one in struct.move_variants.values() if issubclass(struct, Enum) else (struct,):
        for name, annotation in one.move_fields().items():
            yield name, parse_type_tag(move_type(annotation).text, abi=True)


def _is_phantom(code: CodeSet, struct: type[Struct], index: int) -> bool:
    return not any(_holds(code, tag, index) for _, tag in _fields(struct))


def _holds(code: CodeSet, tag: TypeTag, index: int) -> bool:
    """Return True if a value of a type holds a value of the type parameter `index`."""
    match tag:
        case TypeParameter(found):
            return found == index
        case Vector(element):
            return _holds(code, element, index)
        case StructTag():
            struct = _struct(code, tag)
            return struct is not None and any(
                _holds(code, argument, index) and not _is_phantom(code, struct, place)
                for place, argument in enumerate(tag.type_arguments)
            )
    return False
