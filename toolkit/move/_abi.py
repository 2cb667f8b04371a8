"""Module ABIs as nodes print them: functions, structs and enums. Fields that older nodes omit have defaults."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.messages import shorten
from toolkit.errors import SchemaError
from toolkit.move._address import parse_address
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import TypeTag, is_signer, parse_type_tag

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
    """A generic type parameter.

    Parameters
    ----------
    constraints : tuple of str, default ()
        Abilities that a type argument must have.
    is_phantom : bool, default False
        Whether the parameter is a phantom parameter.
    """

    constraints: tuple[str, ...] = ()
    is_phantom: bool = False


class FieldAbi(msgspec.Struct, frozen=True):
    """A field of a struct or variant.

    Parameters
    ----------
    name : str
        Name of the field.
    type : str
        Its type as text, ``T0`` for a type parameter.
    """

    name: str
    type: str


class VariantAbi(msgspec.Struct, frozen=True):
    """A variant of an enum.

    Parameters
    ----------
    name : str
        Name of the variant.
    fields : tuple of FieldAbi, default ()
        Its fields; positional fields are named ``_0``, ``_1``.
    """

    name: str
    fields: tuple[FieldAbi, ...] = ()


class StructAbi(msgspec.Struct, frozen=True):
    """A struct or enum.

    Parameters
    ----------
    name : str
        Name of the struct or enum.
    is_native, is_event, is_enum : bool, default False
        Whether it is native, an event, an enum.
    abilities : tuple of str, default ()
        Its abilities.
    generic_type_params : tuple of GenericParam, default ()
        Type parameters.
    fields : tuple of FieldAbi, default ()
        Fields of a struct.
    variants : tuple of VariantAbi, default ()
        Variants of an enum; empty if the node does not print them, as before 2026.
    """

    name: str
    is_native: bool = False
    is_event: bool = False
    is_enum: bool = False
    abilities: tuple[str, ...] = ()
    generic_type_params: tuple[GenericParam, ...] = ()
    fields: tuple[FieldAbi, ...] = ()
    variants: tuple[VariantAbi, ...] = ()


class FunctionAbi(msgspec.Struct, frozen=True, dict=True, rename={"return_": "return"}):
    """An exposed function.

    Parameters
    ----------
    name : str
        Name of the function.
    visibility : str, default "public"
        ``public``, ``friend`` or ``private``.
    is_entry, is_view : bool, default False
        Whether transactions may call it, and whether it is a view function.
    generic_type_params : tuple of GenericParam, default ()
        Type parameters.
    params, return_ : tuple of str, default ()
        Types of the parameters, signers included, and of the return values, as text.
    """

    name: str
    visibility: str = "public"
    is_entry: bool = False
    is_view: bool = False
    generic_type_params: tuple[GenericParam, ...] = ()
    params: tuple[str, ...] = ()
    return_: tuple[str, ...] = ()

    @cached_property
    def parameters(self) -> tuple[TypeTag, ...]:
        """Types of the arguments that a caller passes: the parameters without signers.

        Raises
        ------
        InputError
            If the text of a parameter is not a type.
        """
        tags = (parse_type_tag(text, abi=True) for text in self.params)
        return tuple(tag for tag in tags if not is_signer(tag))

    @cached_property
    def signers(self) -> int:
        """Number of signers among the parameters.

        Raises
        ------
        InputError
            If the text of a parameter is not a type.
        """
        return len(self.params) - len(self.parameters)

    @cached_property
    def results(self) -> tuple[TypeTag, ...]:
        """Types of the return values.

        Raises
        ------
        InputError
            If the text of a return type is not a type.
        """
        return tuple(parse_type_tag(text, abi=True) for text in self.return_)


class ModuleAbi(msgspec.Struct, frozen=True, dict=True):
    """The ABI of a module, as `decode_module_abi` returns it.

    Parameters
    ----------
    address : str
        Canonical address.
    name : str
        Name of the module.
    friends : tuple of str, default ()
        Ids of the friend modules.
    exposed_functions : tuple of FunctionAbi, default ()
        Public, friend and entry functions.
    structs : tuple of StructAbi, default ()
        Structs and enums.
    """

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
        """Return the exposed function `name`, or None if there is none."""
        return self._functions.get(name)

    def struct(self, name: str) -> StructAbi | None:
        """Return the struct or enum `name`, or None if there is none."""
        return self._structs.get(name)


def decode_module_abi(data: bytes | Mapping[str, Any]) -> ModuleAbi:
    """Decode the ABI of a module.

    Parameters
    ----------
    data : bytes or mapping
        The JSON of the ABI, or of a response that contains it next to the bytecode (``{"bytecode", "abi"}``).

    Returns
    -------
    ModuleAbi
        With a canonical address.

    Raises
    ------
    SchemaError
        If the data is not an ABI, or the response does not contain one.

    Examples
    --------
    >>> body = b'{"address": "0x01", "name": "m", "exposed_functions": [{"name": "f", "params": ["u8"]}]}'
    >>> abi = decode_module_abi(body)
    >>> abi.address, abi.function("f").parameters
    ('0x1', (Primitive(name='u8'),))
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
