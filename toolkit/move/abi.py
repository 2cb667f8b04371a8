"""Module ABIs as nodes print them: functions, structs, enums. Fields that older nodes leave out have defaults."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move.address import parse_address
from toolkit.move.json_text import parse_json
from toolkit.move.tags import TypeTag, is_signer, parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "FieldAbi",
    "FunctionAbi",
    "GenericParam",
    "ModuleAbi",
    "StructAbi",
    "VariantAbi",
    "decode_module_abi",
]


class GenericParam(msgspec.Struct, frozen=True):
    """A generic type parameter with the abilities it asks for."""

    constraints: tuple[str, ...] = ()
    is_phantom: bool = False


class FieldAbi(msgspec.Struct, frozen=True):
    """A field of a struct or variant; `type` is the text of its type, ``T0`` for generic ones."""

    name: str
    type: str


class VariantAbi(msgspec.Struct, frozen=True):
    """A variant of an enum; positional fields are named ``_0``, ``_1``."""

    name: str
    fields: tuple[FieldAbi, ...] = ()


class StructAbi(msgspec.Struct, frozen=True):
    """A struct or enum. `variants` is empty for enums of nodes that do not print them yet."""

    name: str
    is_native: bool = False
    is_event: bool = False
    is_enum: bool = False
    abilities: tuple[str, ...] = ()
    generic_type_params: tuple[GenericParam, ...] = ()
    fields: tuple[FieldAbi, ...] = ()
    variants: tuple[VariantAbi, ...] = ()


class FunctionAbi(msgspec.Struct, frozen=True, dict=True, rename={"return_": "return"}):
    """A function; `params` and `return_` are the types as text, signers among the parameters."""

    name: str
    visibility: str = "public"
    is_entry: bool = False
    is_view: bool = False
    generic_type_params: tuple[GenericParam, ...] = ()
    params: tuple[str, ...] = ()
    return_: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[TypeTag, ...]:
        """Types of the arguments a caller writes: the parameters without signers.

        Raises
        ------
        InputError
            If the ABI has a text that is no type.
        """
        tags = (parse_type_tag(text, abi=True) for text in self.params)
        return tuple(tag for tag in tags if not is_signer(tag))

    @cached_property
    def signers(self) -> int:
        """How many signers the function takes."""
        return len(self.params) - len(self.parameters)

    @cached_property
    def results(self) -> tuple[TypeTag, ...]:
        """Types of the return values.

        Raises
        ------
        InputError
            If the ABI has a text that is no type.
        """
        return tuple(parse_type_tag(text, abi=True) for text in self.return_)


class ModuleAbi(msgspec.Struct, frozen=True, dict=True):
    """A module: its canonical address, its name, and what it exposes."""

    address: str
    name: str
    friends: tuple[str, ...] = ()
    exposed_functions: tuple[FunctionAbi, ...] = ()
    structs: tuple[StructAbi, ...] = ()

    @cached_property
    def _functions(self) -> dict[str, FunctionAbi]:
        return {function.name: function for function in self.exposed_functions}

    @cached_property
    def _structs(self) -> dict[str, StructAbi]:
        return {struct.name: struct for struct in self.structs}

    def function(self, name: str) -> FunctionAbi | None:
        """Return the exposed function `name`, or None."""
        return self._functions.get(name)

    def struct(self, name: str) -> StructAbi | None:
        """Return the struct or enum `name`, or None."""
        return self._structs.get(name)


def decode_module_abi(data: bytes | Mapping[str, Any]) -> ModuleAbi:
    """Read a module ABI.

    Parameters
    ----------
    data : bytes or mapping
        JSON of the ABI, or of an answer that carries it beside the bytecode (``{"bytecode", "abi"}``).

    Returns
    -------
    ModuleAbi
        With the address in its canonical spelling.

    Raises
    ------
    SchemaError
        If the data is no ABI, or the answer has none.
    """
    value: Any = parse_json(data, "module ABI") if isinstance(data, bytes) else data
    if isinstance(value, dict) and "abi" in value:
        value = value["abi"]
    try:
        abi = msgspec.convert(value, ModuleAbi)
        address = parse_address(abi.address)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise SchemaError(f"not a module ABI: {shorten(str(error), 200)}") from None
    return msgspec.structs.replace(abi, address=address)
