"""Published modules and functions: their records, made from the annotations of contract classes, and their bytecode."""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import typing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from toolkit.embedded._code import struct_constraints
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
from toolkit.move._bcs import uleb128
from toolkit.move._module_metadata import GROUP_MEMBER, METADATA_KEY, METADATA_TABLE, Attribute, ModuleMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.embedded._vm_status import AbortCode
    from toolkit.embedded.types import MoveType
    from toolkit.move import ModuleAbi


_T = TypeVar("_T")

# Modelled size of compiled code, in bytes: a module, and what each function, struct and field adds.
_MODULE_BYTES, _FUNCTION_BYTES, _STRUCT_BYTES, _FIELD_BYTES = 110, 80, 80, 20
MAGIC = bytes.fromhex("a11ceb0b0700000a")
_MIN_DIGEST_BYTES = 32  # modules with a small modelled size still differ in their code


def modelled_bytecode(
    abi: dict[str, Any],
    revision: int,
    code_bytes: int | None,
    errors: Mapping[int, AbortCode],
    groups: Mapping[str, str],
) -> bytes:
    """Return the metadata and a digest of the ABI and the revision, extended to the modelled size of the code."""
    text = json.dumps([abi, revision], sort_keys=True, separators=(",", ":"))
    structs = abi["structs"]
    size = code_bytes or (
        _MODULE_BYTES
        + _FUNCTION_BYTES * len(abi["exposed_functions"])
        + _STRUCT_BYTES * len(structs)
        + _FIELD_BYTES * sum(len(one["fields"]) for struct in structs for one in (struct, *struct["variants"]))
    )
    start = MAGIC
    if errors or groups:
        named = {reason: (error.name, error.description) for reason, error in errors.items()}
        members = {name: (Attribute(GROUP_MEMBER, (group,)),) for name, group in groups.items()}
        entry = METADATA_KEY, ModuleMetadata(named, members).to_bcs()
        table = b"".join(uleb128(len(one)) + one for one in entry)
        header = 1, METADATA_TABLE, 0, len(table)  # one table: its kind, offset and size
        start += b"".join(map(uleb128, header)) + table
    return start + hashlib.shake_256(text.encode()).digest(max(size - len(start), _MIN_DIGEST_BYTES))


@dataclass(frozen=True, slots=True)
class FunctionMark:
    """How a method appears in the ABI.

    Parameters
    ----------
    visibility : {"public", "friend", "private"}, default "public"
        Which modules may call the method: all modules, the friends of its module, or only its own module.
    is_entry : bool, default False
        Whether transactions may call the method.
    is_view : bool, default False
        Whether the method is a view function.
    """

    visibility: Literal["public", "friend", "private"] = "public"
    is_entry: bool = False
    is_view: bool = False

    @property
    def is_exposed(self) -> bool:
        """Whether the ABI lists the function."""
        return self.visibility != "private" or self.is_entry


PRIVATE = FunctionMark("private")


@dataclass(frozen=True, slots=True)
class Function:
    """A function of a module.

    Parameters
    ----------
    name : str
        Name of the function.
    mark : FunctionMark
        Visibility, and whether the function is an entry or a view function.
    constraints : tuple of tuples of str
        Abilities that each type argument must have.
    signers : int
        Number of leading signers.
    parameters, returns : tuple of MoveType
        Types of the parameters (without signers) and of the returned values.
    """

    name: str
    mark: FunctionMark
    constraints: tuple[tuple[str, ...], ...]
    signers: int
    parameters: tuple[MoveType, ...]
    returns: tuple[MoveType, ...]

    @property
    def type_parameters(self) -> int:
        """Number of type arguments."""
        return len(self.constraints)

    def to_abi(self) -> dict[str, Any]:
        """Return the function as an item of ``exposed_functions``."""
        return {
            "name": self.name,
            "visibility": self.mark.visibility,
            "is_entry": self.mark.is_entry,
            "is_view": self.mark.is_view,
            "generic_type_params": [{"constraints": list(one)} for one in self.constraints],
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
        Canonical address and module name.
    functions : dict of str to Function
        Marked functions by name.
    structs : dict of str to type of Struct
        Structs by name.
    revision : int
        The declared revision.
    abi : ModuleAbi
        The decoded ABI.
    abi_json : dict
        The whole ABI as JSON; `CodeSet.abi_json` returns the JSON that a node returns.
    bytecode : bytes
        Metadata and a digest of the ABI and the revision, in place of compiled code.
    uses : frozenset of (canonical address, module name)
        Modules outside the framework that the module calls.
    friends : tuple of str
        Names of the modules at the same address that may call friend functions.
    errors : dict of int to AbortCode
        Declared abort codes by reason.
    """

    contract: type[Any]
    address: str
    name: str
    functions: dict[str, Function]
    structs: dict[str, type[Struct]]
    revision: int
    abi: ModuleAbi
    abi_json: dict[str, Any]
    bytecode: bytes
    uses: frozenset[tuple[str, str]]
    friends: tuple[str, ...] = ()
    errors: Mapping[int, AbortCode] = field(default_factory=dict)

    @property
    def is_system(self) -> bool:
        """Whether the module is at an address from 0x0 to 0xf; the modules there are always loaded."""
        return len(self.address) <= len("0x0")

    @property
    def wire_id(self) -> str:
        """Module id as the REST API prints it, such as ``0xcafe::registry``."""
        return f"{self.abi_json['address']}::{self.name}"


# -- signatures of functions and ABIs of structs, from annotations ---------------------------------------------------


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
