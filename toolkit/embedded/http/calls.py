"""Functions and arguments as a node reads them from JSON, with its texts for what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.embedded.http.messages import invalid_input
from toolkit.embedded.http.parsing import shown
from toolkit.embedded.vm_status import VmError
from toolkit.errors import InputError, SchemaError
from toolkit.move import address_to_bytes, decode_argument, parse_type_tag, type_words
from toolkit.move._argument_decoding import json_debug
from toolkit.move._type_tags import MAX_TYPE_DEPTH, TOO_DEEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.embedded.code import BoundFunction, CodeSet
    from toolkit.move import FunctionId, TypeTag

__all__ = ["bind", "plain_arguments", "type_tag"]


def type_tag(text: str, problem: str = "Unable to parse move type {text}") -> TypeTag:
    """Read a type a caller wrote."""
    try:
        return parse_type_tag(text)
    except InputError as error:
        if TOO_DEEP in str(error):
            invalid_input(f"{shown(text)} has gone over the limit of recursive types {MAX_TYPE_DEPTH}")
        return invalid_input(problem.format(text=shown(text)))


def bind(code: CodeSet, function: FunctionId, tags: tuple[TypeTag, ...], *, kind: str) -> BoundFunction:
    """Return a function with its type arguments, or refuse it as the node does.

    Parameters
    ----------
    code : CodeSet
        Modules of the version read.
    function : FunctionId
        Which function.
    tags : tuple of TypeTag
        Type arguments.
    kind : {"view", "entry"}
        How messages call it.
    """
    definition, found = code.find(function.address, function.module, function.name)
    if definition is None:
        full = address_to_bytes(function.address).hex()
        invalid_input(f'Module ModuleId {{ address: {full}, name: Identifier("{function.module}") }} can\'t be found')
    if found is None:
        invalid_input(f"could not find {kind} function by {function.wire}")
    if len(tags) != found.type_parameters:
        invalid_input(
            f"expected {found.type_parameters} type arguments for {kind} function {function.wire}, but got {len(tags)}"
        )
    try:
        return code.function(function.address, function.module, function.name, tags)
    except VmError as error:
        return invalid_input(error.message, vm_error_code=error.vm_error_code)


def plain_arguments(bound: BoundFunction, arguments: Sequence[Any]) -> list[Any]:
    """Read JSON arguments by the function's parameters."""
    layouts = bound.parameters
    if len(arguments) != len(layouts):
        words = ", ".join(type_words(layout) for layout in layouts)
        given = ", ".join(json_debug(argument) for argument in arguments)
        invalid_input(f"expected {len(layouts)} arguments [{words}], but got {len(arguments)} ([{shown(given)}])")
    try:
        return [
            decode_argument(layout, argument, where=f"arguments[{index}]")
            for index, (layout, argument) in enumerate(zip(layouts, arguments, strict=True))
        ]
    except SchemaError as error:
        return invalid_input(str(error))
