"""Signatures of functions and ABIs of structs, made from the annotations of contract classes."""

from __future__ import annotations

import functools
import inspect
import typing
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from toolkit.embedded._code import struct_constraints
from toolkit.embedded._definitions import PRIVATE, Function, FunctionMark
from toolkit.embedded.types import (
    ABILITIES,
    Enum,
    Event,
    Object,
    Resource,
    Struct,
    Table,
    TypeArgument,
    is_framework,
    is_signer,
    move_type,
    parse_abilities,
    resolve_annotations,
)
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.embedded.types import MoveType

_T = TypeVar("_T")

# Attributes that every contract needs. A contract may define a function with the name of another method of `Module`,
# such as `exists`, because Move allows that.
_RESERVED = {"abort", "blocks", "definition", "each", "replaced", "require", "session"}


def check_method(cls: type, name: str, member: Any) -> None:
    """Raise InputError if a method of a contract class is one that Move or the toolkit does not allow."""
    mark: FunctionMark = getattr(member, "move_mark", PRIVATE)
    function = inspect.unwrap(member)
    returned = function.__annotations__.get("return")
    problem = ""
    if name == "__init__":
        problem = "a contract has no state of its own: store a Resource in init_module with self.move_to"
    elif name in _RESERVED:
        problem = f"every contract has an attribute {name}, which this function would replace: choose another name"
    elif name == "init_module" and mark is not PRIVATE:
        problem = "init_module runs only when the module is first published: remove its decorator"
    elif name == "init_module" and len(inspect.signature(function).parameters) != 2:  # noqa: PLR2004 - self and the signer
        problem = "init_module takes one signer: write def init_module(self, account: signer) -> None"
    elif mark.is_view and returned in {None, "None"}:
        problem = "a view function must return a value: write its type, such as -> u64"
    elif mark.is_entry and returned not in {None, "None"}:
        problem = "an entry function must not return a value: write -> None, and return the value from a view"
    if problem:
        raise InputError(f"{cls.__name__}.{name}: {problem}")


def function_of(cls: type, name: str, member: Callable[..., Any], mark: FunctionMark, *, where: str) -> Function:
    """Return the signature of a method or a script as a Move function.

    Parameters
    ----------
    cls : type
        The class whose names the annotations can use.
    name : str
        Name of the function in the ABI.
    member : callable
        The method or the function.
    mark : FunctionMark
        How the function appears in the ABI.
    where : str
        The function as messages name it.

    Raises
    ------
    InputError
        If a parameter has no type, an annotation is not a Move type, or callers cannot pass or receive its values.
    """
    function = inspect.unwrap(member)
    annotations = resolve_annotations(function, cls, where)
    _check_parameters(where, function, annotations)
    returned = annotations.pop("return", None)
    convert = functools.partial(move_type, checked=not is_framework(cls))
    constraints: list[tuple[str, ...]] = []
    parameters: list[MoveType] = []
    signers = 0
    for parameter, kind in annotations.items():
        at = f"{where}, parameter {parameter}"
        if TypeArgument in (kind, getattr(kind, "__origin__", None)) and not signers and not parameters:
            constraints.append(_constraints(kind))
        elif not is_signer(kind):
            if mark.is_entry or mark.is_view:
                _check_passable(at, kind)
            parameters.append(_named(at, convert, kind))
        elif parameters:
            raise InputError(f"{at}: signers must come before the other parameters")
        elif mark.is_view:
            raise InputError(f"{at}: a view function cannot take a signer: write {parameter}: address")
        else:
            signers += 1
    returns = [_named(f"{where}, returned value", convert, kind) for kind in _returned_kinds(returned)]
    return Function(name, mark, tuple(constraints), signers, tuple(parameters), tuple(returns))


def _named(where: str, convert: Callable[[Any], _T], kind: Any) -> _T:
    """Return the result of `convert` for an annotation; add the place to its errors."""
    try:
        return convert(kind)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _returned_kinds(annotation: Any) -> tuple[Any, ...]:
    if annotation in {None, type(None)}:
        return ()
    return typing.get_args(annotation) if typing.get_origin(annotation) is tuple else (annotation,)


def _check_parameters(where: str, function: Callable[..., Any], annotations: Mapping[str, Any]) -> None:
    """Raise InputError unless a method has the parameters of a Move function: self, then annotated parameters."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name in annotations:
        raise InputError(f"{where}: the first parameter must be self, without an annotation")
    for one in parameters[1:]:
        if one.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
            raise InputError(f"{where}: parameter {one}: Move has positional parameters only; write a name for each")
        if one.name not in annotations:
            raise InputError(f"{where}: parameter {one.name} has no type: write {one.name}: u64, or another Move type")
        if one.default is not inspect.Parameter.empty:
            raise InputError(f"{where}: parameter {one.name} has a default value, which Move does not support")


def _check_passable(where: str, kind: Any) -> None:
    """Raise InputError for a type whose values callers from outside must not make: they would be rights."""
    for one in _inside(kind):
        if is_signer(one) or (typing.get_origin(one) or one) is Table:
            raise InputError(f"{where}: a caller cannot pass a signer or a table inside a value")
        if isinstance(one, type) and issubclass(one, Resource):
            raise InputError(f"{where}: a caller cannot pass the resource {one.__name__}: take its address")


def _inside(annotation: Any) -> Iterator[Any]:
    """Yield an annotation and the annotations inside it; an object counts as an address."""
    yield annotation
    origin = typing.get_origin(annotation) or annotation
    if isinstance(origin, type) and issubclass(origin, Struct):
        variants = origin.move_variants.values() if issubclass(origin, Enum) else (origin,)
        for one in variants:
            for kind in one.move_fields().values():
                yield from _inside(kind)
    elif origin is not Object:
        for argument in typing.get_args(annotation.__origin__ if origin is Annotated else annotation):
            yield from _inside(argument)


def _constraints(kind: Any) -> tuple[str, ...]:
    """Return the abilities of ``Annotated[TypeArgument, "drop store"]``, in the order that nodes use."""
    texts = [mark for mark in getattr(kind, "__metadata__", ()) if isinstance(mark, str)]
    return tuple(sorted(parse_abilities(" ".join(texts)), key=ABILITIES.index))


def struct_abi(struct: type[Struct]) -> dict[str, Any]:
    """Return a struct as an item of ``structs`` of an ABI."""
    variants = struct.move_variants if issubclass(struct, Enum) else {}
    fields = [] if variants else _fields_abi(struct) or [{"name": "dummy_field", "type": "bool"}]  # the compiler's
    return {
        "name": struct.__name__,
        "is_native": False,
        "is_event": issubclass(struct, Event),
        "is_enum": bool(variants),
        "abilities": list(struct.move_abilities),
        "generic_type_params": [{"constraints": list(one)} for one in struct_constraints(struct)],
        "fields": fields,
        "variants": [{"name": name, "fields": _fields_abi(variant)} for name, variant in variants.items()],
    }


def _fields_abi(struct: type[Struct]) -> list[dict[str, str]]:
    where = f"struct {struct.__name__}, field"
    kinds = {name: _named(f"{where} {name}", move_type, kind) for name, kind in struct.move_fields().items()}
    return [{"name": name, "type": kind.text} for name, kind in kinds.items()]
