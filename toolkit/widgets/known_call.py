"""What a node's ABI says of an entry function: found once on demand, then arguments are checked without asking."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from toolkit.client.arguments import encode_arguments, parameter_layouts
from toolkit.errors import InputError
from toolkit.move.ids import FunctionId
from toolkit.move.tags import parse_type_tag, substitute
from toolkit.wire.payloads import EntryFunction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.abis import AbisAt
    from toolkit.client.node import Node
    from toolkit.move.abi import FunctionAbi, ModuleAbi
    from toolkit.wire.payloads import Payload

__all__ = ["KnownCall", "KnownFunction", "find_function"]

_MOST_NAMES = 8


@dataclass(frozen=True, slots=True)
class KnownFunction:
    """An entry function as the ABI tells it at one ledger version."""

    name: str
    abi: FunctionAbi
    abis: AbisAt

    def with_types(self, type_arguments: Sequence[str]) -> KnownCall:
        """Fill in type arguments and resolve the parameters' layouts, so that checking asks nothing more.

        Raises
        ------
        InputError
            If there are too few or too many, or a type is no type.
        """
        expected, got = len(self.abi.generic_type_params), len(type_arguments)
        if expected != got:
            raise InputError(f"{self.name} takes {expected} type argument{'s' * (expected != 1)}, got {got}")
        given = tuple(parse_type_tag(text) for text in type_arguments)
        types = tuple(str(substitute(tag, given)) for tag in self.abi.parameters)
        parameter_layouts(self.abi, type_arguments, self.abis)  # keeps them in the store of ABIs
        return KnownCall(self, tuple(type_arguments), types)


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A function with its type arguments: what its arguments must be.

    Attributes
    ----------
    function : KnownFunction
    type_arguments : tuple of str
    parameter_types : tuple of str
        Move types of the arguments, signers left out.
    """

    function: KnownFunction
    type_arguments: tuple[str, ...]
    parameter_types: tuple[str, ...]

    @property
    def ledger_version(self) -> int:
        """The version whose ABI this is."""
        return self.function.abis.version

    @property
    def signature(self) -> str:
        """The function as people write it: ``transfer(address, u64)``."""
        return f"{self.function.abi.name}({', '.join(self.parameter_types)})"

    def is_about(self, payload: Payload) -> bool:
        """Whether `payload` calls this function with these type arguments."""
        return (
            isinstance(payload, EntryFunction)
            and payload.function == self.function.name
            and payload.type_arguments == self.type_arguments
        )

    def encode(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments in the node's JSON forms.

        Raises
        ------
        InputError, SchemaError
            If their number is wrong, or one does not fit its type.
        """
        if len(arguments) != len(self.parameter_types):
            words = ", ".join(self.parameter_types) or "none"
            raise InputError(f"expected {len(self.parameter_types)} ({words}), got {len(arguments)}")
        function = self.function
        return encode_arguments(function.abi, self.type_arguments, arguments, function.abis, where=function.abi.name)


def find_function(node: Node, name: str) -> KnownFunction | None:
    """Ask a node what an entry function takes, as of the node's head.

    Parameters
    ----------
    node : Node
        Asked for its head and the ABI of one module.
    name : str
        ``address::module::function``.

    Returns
    -------
    KnownFunction or None
        None where the node has no ABI of the module; it may still run the function.

    Raises
    ------
    InputError
        If the module has no such function, or it is no entry function.
    NodeError, NodeUnreachable
        If the node does not tell.
    """
    wanted = FunctionId.parse(name)
    abis = node.abis.at(node.ledger().version)
    module = abis.module_abi(wanted.address, wanted.module)
    if module is None:
        return None
    function = module.function(wanted.name)
    if function is None or not function.is_entry:
        raise InputError(_no_such_function(module, wanted, function))
    return KnownFunction(name, function, abis)


def _no_such_function(module: ModuleAbi, wanted: FunctionId, found: FunctionAbi | None) -> str:
    entries = [function.name for function in module.exposed_functions if function.is_entry]
    where = f"{wanted.address}::{wanted.module}"
    if found is not None:
        kind = "a view function, see node.view" if found.is_view else "not an entry function"
        return f"{where}::{found.name} is {kind}; {_choices(where, entries)}"
    close = get_close_matches(wanted.name, entries, n=1)
    hint = f"did you mean {close[0]}?" if close else _choices(where, entries)
    return f"{where} has no function {wanted.name!r}; {hint}"


def _choices(where: str, entries: list[str]) -> str:
    if not entries:
        return f"{where} has no entry functions"
    more = f" and {len(entries) - _MOST_NAMES} more" if len(entries) > _MOST_NAMES else ""
    return f"entry functions are {', '.join(entries[:_MOST_NAMES])}{more}"
