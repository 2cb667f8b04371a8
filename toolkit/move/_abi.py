"""Module ABIs as returned by nodes: functions, structs and enums. Fields that older nodes omit have defaults.

Error constants are in the metadata of the module's bytecode, which nodes return next to the ABI.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit._present.messages import shorten
from toolkit._present.text import plural, short_addresses, visible
from toolkit.errors import InputError, SchemaError
from toolkit.move._ids import parse_address, parse_hex
from toolkit.move._json_text import parse_json
from toolkit.move._module_metadata import named_errors
from toolkit.move._type_tags import TypeTag, is_signer, parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Mapping


class GenericParam(msgspec.Struct, frozen=True):
    """A generic type parameter.

    Parameters
    ----------
    constraints : tuple of str, default ()
        Abilities that a type argument must have.
    is_phantom : bool, default False
        Whether the parameter is a phantom parameter.

    Examples
    --------
    >>> from toolkit.move import FunctionAbi, GenericParam
    >>> FunctionAbi("swap", generic_type_params=(GenericParam(("drop", "store")),)).signature
    'swap<T0: drop + store>()'
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
        Type of the field as text, with ``T0`` for a type parameter.

    Examples
    --------
    >>> from toolkit.move import FieldAbi
    >>> FieldAbi("owner", "address")
    FieldAbi(name='owner', type='address')
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
        Fields of the variant. Positional fields are named ``_0``, ``_1``, and so on.

    Examples
    --------
    >>> from toolkit.move import FieldAbi, VariantAbi
    >>> VariantAbi("On", (FieldAbi("level", "u8"),)).fields[0].type
    'u8'
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
        Whether the type is native, an event, or an enum.
    abilities : tuple of str, default ()
        Abilities of the type.
    generic_type_params : tuple of GenericParam, default ()
        Type parameters.
    fields : tuple of FieldAbi, default ()
        Fields of a struct.
    variants : tuple of VariantAbi, default ()
        Variants of an enum; empty if the node does not list them (nodes from before 2026 do not).

    Examples
    --------
    >>> from toolkit.move import FieldAbi, StructAbi
    >>> StructAbi("Record", fields=(FieldAbi("owner", "address"),)).fields[0].type
    'address'
    """

    name: str
    is_native: bool = False
    is_event: bool = False
    is_enum: bool = False
    abilities: tuple[str, ...] = ()
    generic_type_params: tuple[GenericParam, ...] = ()
    fields: tuple[FieldAbi, ...] = ()
    variants: tuple[VariantAbi, ...] = ()

    def __repr__(self) -> str:
        members = [one.name for one in self.variants] or [f"{one.name}: {one.type}" for one in self.fields]
        shown = ", ".join(members) or ("variants not listed" if self.is_enum else "")
        return visible(f"<StructAbi {self.name} {{ {short_addresses(shown)} }}>", 300)


class FunctionAbi(msgspec.Struct, frozen=True, dict=True, rename={"return_": "return"}):
    """An exposed function.

    Parameters
    ----------
    name : str
        Name of the function.
    visibility : str, default "public"
        ``public``, ``friend`` or ``private``.
    is_entry, is_view : bool, default False
        Whether transactions may call the function, and whether it is a view function.
    generic_type_params : tuple of GenericParam, default ()
        Type parameters.
    params, return_ : tuple of str, default ()
        Types of the parameters (including signers) and of the return values, as text.

    Examples
    --------
    >>> from toolkit.move import FunctionAbi
    >>> function = FunctionAbi("buy", is_entry=True, params=("&signer", "u64"))
    >>> function.signature, function.signers, function.parameters
    ('buy(&signer, u64)', 1, (Primitive(name='u64'),))
    """

    name: str
    visibility: str = "public"
    is_entry: bool = False
    is_view: bool = False
    generic_type_params: tuple[GenericParam, ...] = ()
    params: tuple[str, ...] = ()
    return_: tuple[str, ...] = ()

    def __repr__(self) -> str:
        kind = self.visibility
        if self.is_view:
            kind += " view"
        elif self.is_entry:
            kind += " entry"
        return visible(f"<FunctionAbi {kind} {short_addresses(self.signature)}>", 300)

    @property
    def signature(self) -> str:
        """The Move declaration of the function without parameter names, ``record_of(0x1::string::String): u64``."""
        kinds = ", ".join(
            f"T{index}{': ' if one.constraints else ''}{' + '.join(one.constraints)}"
            for index, one in enumerate(self.generic_type_params)
        )
        declared = f"{self.name}{f'<{kinds}>' if kinds else ''}({', '.join(self.params)})"
        if not self.return_:
            return declared
        results = ", ".join(self.return_)
        return f"{declared}: {results}" if len(self.return_) == 1 else f"{declared}: ({results})"

    @cached_property
    def parameters(self) -> tuple[TypeTag, ...]:
        """Types of the arguments that a caller passes, which are all parameters except signers.

        Raises
        ------
        InputError
            If a parameter is not a valid type.
        """
        tags = (parse_type_tag(text, abi=True) for text in self.params)
        return tuple(tag for tag in tags if not is_signer(tag))

    @cached_property
    def signers(self) -> int:
        """Number of signers among the parameters.

        Raises
        ------
        InputError
            If a parameter is not a valid type.
        """
        return len(self.params) - len(self.parameters)

    @cached_property
    def results(self) -> tuple[TypeTag, ...]:
        """Types of the return values.

        Raises
        ------
        InputError
            If a return value is not a valid type.
        """
        return tuple(parse_type_tag(text, abi=True) for text in self.return_)


class ErrorAbi(msgspec.Struct, frozen=True):
    """An error constant of a module, from the metadata of its bytecode.

    Parameters
    ----------
    code : int
        Value of the constant, which is the abort code or the lower bits of the abort code.
    name : str
        Name of the constant, such as ``E_TAKEN``.
    description : str, default ""
        The comment on the constant's declaration.

    Examples
    --------
    >>> from toolkit.move import ErrorAbi
    >>> ErrorAbi(1, "E_TAKEN", "The name is registered already").name
    'E_TAKEN'
    """

    code: int
    name: str
    description: str = ""


class ModuleAbi(msgspec.Struct, frozen=True, dict=True):
    """The ABI of a module, as returned by `decode_module_abi`.

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
    errors : tuple of ErrorAbi, default ()
        Error constants; empty if the bytecode is not available or does not name them.

    Examples
    --------
    >>> from toolkit.move import FunctionAbi, ModuleAbi
    >>> price = FunctionAbi("price", is_view=True, return_=("u64",))
    >>> module = ModuleAbi("0xcafe", "shop", exposed_functions=(price,))
    >>> module.function("price").signature, module.function("cost") is None
    ('price(): u64', True)
    """

    address: str
    name: str
    friends: tuple[str, ...] = ()
    exposed_functions: tuple[FunctionAbi, ...] = ()
    structs: tuple[StructAbi, ...] = ()
    errors: tuple[ErrorAbi, ...] = ()

    def __repr__(self) -> str:
        views = sum(function.is_view for function in self.exposed_functions)
        entries = sum(function.is_entry for function in self.exposed_functions)
        counts = f"{plural(views, 'view')}, {plural(entries, 'entry function')}, {plural(len(self.structs), 'struct')}"
        return visible(f"<ModuleAbi {short_addresses(self.address)}::{self.name}: {counts}>", 200)

    @cached_property
    def _functions(self) -> dict[str, FunctionAbi]:
        return {function.name: function for function in self.exposed_functions}

    @cached_property
    def _structs(self) -> dict[str, StructAbi]:
        return {struct.name: struct for struct in self.structs}

    def function(self, name: str) -> FunctionAbi | None:
        """Return the exposed function with this name, or None if it does not exist."""
        return self._functions.get(name)

    def struct(self, name: str) -> StructAbi | None:
        """Return the struct or enum with this name, or None if it does not exist."""
        return self._structs.get(name)


def decode_module_abi(data: bytes | Mapping[str, Any]) -> ModuleAbi:
    """Decode the ABI of a module.

    Parameters
    ----------
    data : bytes or mapping
        JSON of the ABI, or of a response with both bytecode and ABI (``{"bytecode", "abi"}``).

    Returns
    -------
    ModuleAbi
        The ABI with a canonical address. If `data` includes the bytecode, the error constants named in it are included.

    Raises
    ------
    SchemaError
        If `data` is neither an ABI nor a response that contains one.

    Examples
    --------
    >>> body = b'{"address": "0x01", "name": "m", "exposed_functions": [{"name": "f", "params": ["u8"]}]}'
    >>> abi = decode_module_abi(body)
    >>> abi.address, abi.function("f").parameters
    ('0x1', (Primitive(name='u8'),))
    """
    value: Any = parse_json(data, "module ABI") if isinstance(data, bytes) else data
    errors: tuple[ErrorAbi, ...] = ()
    if isinstance(value, dict) and "abi" in value:
        errors = _errors_in(value.get("bytecode"))
        value = value["abi"]
    if isinstance(value, dict):
        value = value | {"errors": ()}  # ABIs have no such field; a node that adds one does not decide what it means
    try:
        abi = msgspec.convert(value, ModuleAbi)
        address = parse_address(abi.address)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise SchemaError(f"not a module ABI: {shorten(str(error), 200)}") from None
    return msgspec.structs.replace(abi, address=address, errors=errors)


def _errors_in(bytecode: object) -> tuple[ErrorAbi, ...]:
    """Return the error constants named in the metadata of bytecode, or an empty tuple if it cannot be read."""
    try:
        errors = named_errors(parse_hex(bytecode))  # type: ignore[arg-type]  # checked there
        return tuple(ErrorAbi(code, *texts) for code, texts in errors.items())
    except (InputError, SchemaError):
        return ()
