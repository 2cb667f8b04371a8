"""Arguments as Python values -> arguments as the node reads them. Pure; the ABI comes from the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError
from toolkit.move import encode_argument, parse_type_tag, substitute, type_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.abis import AbisAt
    from toolkit.move import FunctionAbi, Layout

__all__ = ["encode_arguments", "parameter_layouts"]


def parameter_layouts(function: FunctionAbi, type_arguments: Sequence[str], abis: AbisAt) -> list[Layout]:
    """Return the layouts of a function's parameters, signers left out and generics filled in."""
    given = tuple(parse_type_tag(text) for text in type_arguments)
    return [abis.layout(substitute(tag, given)) for tag in function.parameters]


def encode_arguments(
    function: FunctionAbi,
    type_arguments: Sequence[str],
    arguments: Sequence[Any],
    abis: AbisAt,
    *,
    where: str,
) -> list[Any]:
    """Encode arguments by a function's ABI.

    Parameters
    ----------
    function : FunctionAbi
        The function as the ABI of the version read tells it.
    type_arguments : sequence of str
    arguments : sequence
        Python values, without signers.
    abis : AbisAt
        Where the types of the parameters are looked up.
    where : str
        The function's name, for texts.

    Returns
    -------
    list
        JSON values: u8 to u32 as numbers, larger integers as strings.

    Raises
    ------
    InputError
        If the number of type arguments or arguments is not the function's.
    SchemaError
        If an argument does not fit its parameter.
    """
    expected = len(function.generic_type_params)
    if len(type_arguments) != expected:
        raise InputError(f"{where}: expected {_counted(expected, 'type argument')}, got {len(type_arguments)}")
    layouts = parameter_layouts(function, type_arguments, abis)
    if len(arguments) != len(layouts):
        words = ", ".join(type_words(layout) for layout in layouts)
        raise InputError(f"{where}: expected {_counted(len(layouts), 'argument')} [{words}], got {len(arguments)}")
    return [
        encode_argument(layout, value, where=f"{where} arguments[{index}]")
        for index, (layout, value) in enumerate(zip(layouts, arguments, strict=True))
    ]


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
