"""What a contract class declares: its ABI, functions and structs, read from the class once.

The "bytecode" is a digest of the ABI and the declared revision, drawn out to a modelled size; it never depends on
Python's own code objects, so it is the same on every Python.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
import sys
import typing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.embedded import types
from toolkit.embedded.types import MoveType, TypeArgument, move_type
from toolkit.errors import InputError
from toolkit.move import decode_module_abi, parse_address, wire_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolkit.embedded.contract import FunctionMark, Module, Struct
    from toolkit.move import ModuleAbi

__all__ = ["Definition", "Function", "define", "struct_fields"]

# Modelled size of compiled code, bytes: a module's frame, and what one function, struct and field adds.
_MODULE_BYTES, _FUNCTION_BYTES, _STRUCT_BYTES, _FIELD_BYTES = 220, 180, 60, 24
_MAGIC = bytes.fromhex("a11ceb0b0700000a")


@dataclass(frozen=True, slots=True)
class Function:
    """One function of a module.

    Parameters
    ----------
    name : str
        Its name.
    mark : FunctionMark
        Visibility, entry, view.
    type_parameters : int
        How many type arguments it takes.
    signers : int
        How many leading signers it takes.
    parameters, returns : tuple of MoveType
        Values taken (without signers) and returned.
    """

    name: str
    mark: FunctionMark
    type_parameters: int
    signers: int
    parameters: tuple[MoveType, ...]
    returns: tuple[MoveType, ...]

    def to_abi(self) -> dict[str, Any]:
        """Return the function as ``exposed_functions`` shows it."""
        return {
            "name": self.name,
            "visibility": self.mark.visibility,
            "is_entry": self.mark.is_entry,
            "is_view": self.mark.is_view,
            "generic_type_params": [{"constraints": []}] * self.type_parameters,
            "params": ["&signer"] * self.signers + [parameter.text for parameter in self.parameters],
            "return": [returned.text for returned in self.returns],
        }


@dataclass(frozen=True, slots=True)
class Definition:
    """A module as it is published.

    Parameters
    ----------
    contract : type of Module
        The class whose methods run.
    address, name : str
        Canonical address, module name.
    functions : dict of str to Function
        Exposed functions by name.
    structs : dict of str to type of Struct
        Structs by name.
    revision : int
        The declared revision.
    abi : ModuleAbi
        The ABI, typed.
    abi_json : dict
        The ABI as the wire prints it.
    bytecode : bytes
        Stand-in for compiled code.
    uses : frozenset of (canonical address, module name)
        Modules outside the framework that it calls.
    """

    contract: type[Module]
    address: str
    name: str
    functions: dict[str, Function]
    structs: dict[str, type[Struct]]
    revision: int
    abi: ModuleAbi
    abi_json: dict[str, Any]
    bytecode: bytes
    uses: frozenset[tuple[str, str]]

    @property
    def is_system(self) -> bool:
        """Whether it is at one of the addresses 0x0 to 0xf, whose modules are always loaded."""
        return len(self.address) <= len("0x0")

    @property
    def wire_id(self) -> str:
        """``0xcafe::registry``, as the wire prints it."""
        return f"{self.abi_json['address']}::{self.name}"


def define(
    cls: type[Module],
    *,
    address: str | None,
    name: str | None,
    revision: int | None,
    code_bytes: int | None,
    uses: Sequence[type[Module]] | None,
) -> Definition:
    """Read a contract class.

    Raises
    ------
    InputError
        If the class has no address, or an annotation names no Move type.
    """
    from toolkit.embedded.contract import Struct, function_marks

    before: Definition | None = getattr(cls, "definition", None)
    if address is None and before is None:
        raise InputError(f"class {cls.__name__}(Module, ...): give the module's address, like address='0xcafe'")
    full_address = parse_address(address) if address is not None else typing.cast("Definition", before).address
    inherited_name = before.name if before is not None and address is None else _snake_case(cls.__name__)
    module_name = name or inherited_name
    wire_id = f"{wire_address(full_address)}::{module_name}"
    structs = {}
    for owner in reversed(cls.__mro__):
        for member in vars(owner).values():
            if isinstance(member, type) and issubclass(member, Struct):
                structs[member.__name__] = member
                if owner is cls:
                    member.move_module = wire_id
                    member.move_namespace = cls  # type: ignore[attr-defined]  # read back by `struct_fields`
    functions = {
        method: _function(cls, method, function, mark) for method, (function, mark) in function_marks(cls).items()
    }
    chosen_revision = revision if revision is not None else (before.revision if before is not None else 1)
    abi_json = {
        "address": wire_address(full_address),
        "name": module_name,
        "friends": [],
        "exposed_functions": [function.to_abi() for function in functions.values()],
        "structs": [_struct_abi(struct) for _, struct in sorted(structs.items())],
    }
    return Definition(
        contract=cls,
        address=full_address,
        name=module_name,
        functions=functions,
        structs=structs,
        revision=chosen_revision,
        abi=decode_module_abi(abi_json),
        abi_json=abi_json,
        bytecode=_bytecode(abi_json, chosen_revision, code_bytes),
        uses=_used(uses, before),
    )


@functools.cache
def struct_fields(cls: type[Struct]) -> dict[str, Any]:
    """Return a struct's own annotations, resolved, in order of declaration."""
    fields: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        if owner.__module__ == "toolkit.embedded.contract" or not hasattr(owner, "move_module"):
            continue
        # As Python reads it: a nested class sees the module's class by name, not what is nested in it.
        names = _namespace(getattr(owner, "move_namespace", owner), own_name_wins=True)
        fields |= _annotations(owner, names, f"struct {cls.__name__}")
    return fields


def _used(uses: Sequence[type[Module]] | None, before: Definition | None) -> frozenset[tuple[str, str]]:
    if uses is None:
        return frozenset() if before is None else before.uses
    return frozenset((used.definition.address, used.definition.name) for used in uses)


def _function(cls: type[Module], name: str, function: Callable[..., Any], mark: FunctionMark) -> Function:
    """Read one method's signature."""
    where = f"{cls.__name__}.{name}"
    annotations = _annotations(inspect.unwrap(function), _namespace(cls), where)
    returned = annotations.pop("return", None)
    kinds = list(annotations.values())
    wanted = len(inspect.signature(function).parameters) - 1
    if len(kinds) != wanted:
        raise InputError(f"{where}: annotate each of its {wanted} parameters; {len(kinds)} are annotated")
    type_parameters = _count_leading(kinds, lambda kind: kind is TypeArgument)
    signers = _count_leading(kinds[type_parameters:], _is_signer)
    try:
        parameters = tuple(move_type(kind) for kind in kinds[type_parameters + signers :])
        if typing.get_origin(returned) is tuple:
            returns = tuple(move_type(kind) for kind in typing.get_args(returned))
        else:
            returns = () if returned in {None, type(None)} else (move_type(returned),)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return Function(name, mark, type_parameters, signers, parameters, returns)


def _count_leading(kinds: list[Any], test: Callable[[Any], bool]) -> int:
    for index, kind in enumerate(kinds):
        if not test(kind):
            return index
    return len(kinds)


def _is_signer(kind: Any) -> bool:
    return any(getattr(mark, "text", None) == "signer" for mark in getattr(kind, "__metadata__", ()))


def _annotations(owner: Any, names: dict[str, Any], where: str) -> dict[str, Any]:
    """Resolve annotations written as text; nested structs and the names of Move types are always in sight."""
    scope = {name: getattr(types, name) for name in types.__all__} | vars(sys.modules[owner.__module__])
    try:
        return inspect.get_annotations(owner, globals=scope, locals=names, eval_str=True)
    except NameError as error:
        raise InputError(f"{where}: an annotation uses a name that is not there: {error}") from None


def _namespace(cls: type, *, own_name_wins: bool = False) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for owner in reversed(cls.__mro__):
        nested = {name: member for name, member in vars(owner).items() if isinstance(member, type)}
        own = {owner.__name__: owner}
        names |= nested | own if own_name_wins else own | nested
    return names


def _struct_abi(struct: type[Struct]) -> dict[str, Any]:
    from toolkit.embedded.contract import Event

    fields = {name: move_type(kind).text for name, kind in struct.move_fields().items()}
    return {
        "name": struct.__name__,
        "is_native": False,
        "is_event": issubclass(struct, Event),
        "is_enum": False,
        "abilities": list(struct.move_abilities),
        "generic_type_params": [{"constraints": []}] * len(getattr(struct, "__parameters__", ())),
        # Move has no empty struct: its compiler adds this field.
        "fields": [{"name": name, "type": text} for name, text in (fields or {"dummy_field": "bool"}).items()],
        "variants": [],
    }


def _bytecode(abi: dict[str, Any], revision: int, code_bytes: int | None) -> bytes:
    """Return the digest of ABI and revision, drawn out to the size of code."""
    text = json.dumps([abi, revision], sort_keys=True, separators=(",", ":"))
    structs = abi["structs"]
    size = code_bytes or (
        _MODULE_BYTES
        + _FUNCTION_BYTES * len(abi["exposed_functions"])
        + _STRUCT_BYTES * len(structs)
        + _FIELD_BYTES * sum(len(struct["fields"]) for struct in structs)
    )
    return _MAGIC + hashlib.shake_256(text.encode()).digest(size - len(_MAGIC))


def _snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
