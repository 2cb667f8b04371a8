"""Records of published modules and functions, made from contract classes, and their bytecode."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from toolkit.move._bcs import Writer, uleb128
from toolkit.move._module_metadata import GROUP_MEMBER, METADATA_KEY, METADATA_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.embedded._vm_status import AbortCode
    from toolkit.embedded.types import MoveType, Struct
    from toolkit.move import ModuleAbi


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
    start = MAGIC + (_metadata(errors, groups) if errors or groups else b"")
    return start + hashlib.shake_256(text.encode()).digest(max(size - len(start), _MIN_DIGEST_BYTES))


def _metadata(errors: Mapping[int, AbortCode], groups: Mapping[str, str]) -> bytes:
    """Return a bytecode header and one table: the metadata, which names the error constants and the resource groups.

    The metadata is ``RuntimeModuleMetadataV1`` in BCS: a map of errors by reason, a map of the attributes of structs,
    and an empty map of the attributes of functions.
    """
    value = Writer()
    value.uleb128(len(errors))
    for reason, error in sorted(errors.items()):
        value.u64(reason)
        value.string(error.name)
        value.string(error.description)
    value.uleb128(len(groups))
    for name, group in sorted(groups.items()):
        value.string(name)
        value.fixed(bytes([1, GROUP_MEMBER, 1]))  # one attribute with one argument
        value.string(group)
    value.fixed(b"\0")
    table = b"".join(uleb128(len(one)) + one for one in (METADATA_KEY, value.getvalue()))
    header = 1, METADATA_TABLE, 0, len(table)  # one table: its kind, offset and size
    return b"".join(map(uleb128, header)) + table


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
