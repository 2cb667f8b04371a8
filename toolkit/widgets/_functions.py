"""Entry functions by name: found as they are typed, read with their ABI, and their arguments checked by it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.client._abis import encode_arguments, parameter_layouts
from toolkit.client._accounts import account_modules
from toolkit.errors import InputError
from toolkit.move import FunctionId, parse_address, parse_type_tag, substitute, wire_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.client._abis import AbisAt
    from toolkit.client._node import Node
    from toolkit.move import FunctionAbi, Layout, ModuleAbi

__all__ = [
    "Hit",
    "ResolvedCall",
    "ResolvedFunction",
    "address_of",
    "find_function",
    "listed_modules",
    "matching",
    "signature",
]

MAX_HITS = 50
"""Number of functions that a search returns."""
_MAX_NAMES = 8


class Hit(NamedTuple):
    """A function that a search found."""

    name: str
    signature: str


@dataclass(frozen=True)
class ResolvedFunction:
    """An entry function with its ABI at one ledger version.

    Attributes
    ----------
    name : str
        Canonical: ``address::module::function``.
    abi : FunctionAbi
    abis : AbisAt
        The modules that its types are looked up in.
    """

    name: str
    abi: FunctionAbi
    abis: AbisAt

    @property
    def constraints(self) -> list[str]:
        """The abilities that each type argument must have, in words."""
        return [", ".join(param.constraints) for param in self.abi.generic_type_params]

    def with_types(self, type_arguments: Sequence[str]) -> ResolvedCall:
        """Substitute type arguments and resolve the layouts of the parameters.

        Raises
        ------
        InputError
            If the number of type arguments is wrong, or one of them is not a Move type.
        NodeError, NodeUnreachable
            If a module of a type cannot be looked up.
        """
        expected, got = len(self.abi.generic_type_params), len(type_arguments)
        if expected != got:
            raise InputError(f"{self.name} takes {expected} type argument{'s' * (expected != 1)}, got {got}")
        layouts = parameter_layouts(self.abi, type_arguments, self.abis)
        return ResolvedCall(self, tuple(type_arguments), tuple(layouts))


@dataclass(frozen=True)
class ResolvedCall:
    """An entry function with its type arguments. Checking arguments needs no request.

    Attributes
    ----------
    function : ResolvedFunction
    type_arguments : tuple of str
        Canonical.
    layouts : tuple of Layout
        Layouts of the arguments, signers left out.
    """

    function: ResolvedFunction
    type_arguments: tuple[str, ...]
    layouts: tuple[Layout, ...]

    @property
    def ledger_version(self) -> int:
        """Ledger version of the ABI."""
        return self.function.abis.version

    @cached_property
    def parameter_types(self) -> tuple[str, ...]:
        """Move types of the arguments, signers left out."""
        given = tuple(parse_type_tag(text) for text in self.type_arguments)
        return tuple(str(substitute(tag, given)) for tag in self.function.abi.parameters)

    @property
    def signature(self) -> str:
        """Name and parameter types: ``transfer(address, u64)``."""
        return f"{self.function.abi.name}({', '.join(self.parameter_types)})"

    def encode(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments as the node reads them from JSON.

        Raises
        ------
        InputError, SchemaError
            If the number of arguments is wrong, or one does not fit its type.
        """
        if len(arguments) != len(self.layouts):
            words = ", ".join(self.parameter_types) or "none"
            raise InputError(f"expected {len(self.layouts)} ({words}), got {len(arguments)}")
        abi = self.function.abi
        return encode_arguments(abi, self.type_arguments, arguments, self.function.abis, where=abi.name)


def find_function(node: Node, name: str) -> ResolvedFunction | None:
    """Read the ABI of an entry function at the node's head.

    Parameters
    ----------
    node : Node
    name : str
        ``address::module::function``.

    Returns
    -------
    ResolvedFunction or None
        None if the node does not offer ABIs, or has none of the module; it may still run the function.

    Raises
    ------
    InputError
        If the module does not exist, has no function of that name, or the function is not an entry function.
    NodeError, NodeUnreachable
        If the head or the module cannot be read.
    """
    wanted = FunctionId.parse(name)
    abis = node.abis.at(node.ledger().version)
    module = abis.module_abi(wanted.address, wanted.module)
    if module is None:
        known = abis.store.known(wanted.address, wanted.module, abis.version)
        if known.answered and known.digest is None:
            raise InputError(
                f"module {wire_address(wanted.address)}::{wanted.module} does not exist at version {abis.version:,}; "
                "check the address and the name"
            )
        return None
    function = module.function(wanted.name)
    if function is None or not function.is_entry:
        raise InputError(_unknown_function(module, wanted, function))
    return ResolvedFunction(str(wanted), function, abis)


def _unknown_function(module: ModuleAbi, wanted: FunctionId, found: FunctionAbi | None) -> str:
    entries = [function.name for function in module.exposed_functions if function.is_entry]
    where = f"{wire_address(wanted.address)}::{wanted.module}"
    if found is not None:
        kind = "a view function, see node.view" if found.is_view else "not an entry function"
        return f"{where}::{found.name} is {kind}; {_choices(where, entries)}"
    close = get_close_matches(wanted.name, entries, n=1)
    hint = f"did you mean {close[0]}?" if close else _choices(where, entries)
    return f"{where} has no function {wanted.name!r}; {hint}"


def _choices(where: str, entries: list[str]) -> str:
    if not entries:
        return f"{where} has no entry functions"
    more = f" and {len(entries) - _MAX_NAMES} more" if len(entries) > _MAX_NAMES else ""
    return f"entry functions are {', '.join(entries[:_MAX_NAMES])}{more}"


# search --------------------------------------------------------------------------------------------------------------


def signature(function: FunctionAbi) -> str:
    """Return type parameters and parameter types without signers: ``<T0>(address, u64)``."""
    generics = ", ".join(f"T{place}" for place in range(len(function.generic_type_params)))
    types = ", ".join(str(tag) for tag in function.parameters).replace("0x1::string::", "").replace("0x1::option::", "")
    return f"{f'<{generics}>' if generics else ''}({types.replace('0x1::object::', '')})"


def address_of(query: str) -> str | None:
    """Return the canonical address that a query starts with: ``0x1`` in ``0x1::coi``; None if it has none."""
    head, separator, _ = query.strip().partition("::")
    try:
        return parse_address(head) if separator else None
    except InputError:
        return None


def listed_modules(node: Node, address: str) -> list[ModuleAbi]:
    """Read the ABIs of all modules of an account at the node's head. The answers contain the bytecode too.

    Raises
    ------
    NodeError, NodeUnreachable, SchemaError
        If the node does not list modules, or does not answer.
    """
    listed = account_modules(node, address, node.ledger().version)
    return [module.abi for module in listed if module.abi is not None]


def matching(modules: Iterable[ModuleAbi], query: str) -> list[Hit]:
    """Return the entry functions that a query may mean, the best first.

    Parameters
    ----------
    modules : iterable of ModuleAbi
        Where to search.
    query : str
        ``0x1::coi``, ``0x1::coin::tr`` or a part of a name.
    """
    owner, parts = address_of(query), query.strip().lower().split("::")
    words = [part for part in (parts[1:] if owner else parts) if part]
    ranked = []
    for module in modules:
        if owner is not None and module.address != owner:
            continue
        for function in module.exposed_functions:
            rank = _rank(words, module.name, function.name, whole=owner is not None and len(parts) > 2)  # noqa: PLR2004
            if function.is_entry and rank is not None:
                name = f"{wire_address(module.address)}::{module.name}::{function.name}"
                ranked.append((rank, name, signature(function)))
    return [Hit(name, types) for _, name, types in sorted(ranked)[:MAX_HITS]]


def _rank(words: list[str], module: str, function: str, *, whole: bool) -> int | None:
    """Return how well words fit a function, lower is better; None if they do not fit."""
    module, function = module.lower(), function.lower()
    if not words:
        return 2
    if whole or len(words) > 1:  # the module is written out
        if module != words[0]:
            return None
        rest = words[1] if len(words) > 1 else ""
        return None if rest not in function else 0 if function.startswith(rest) else 1
    word = words[0]
    if module.startswith(word) or function.startswith(word):
        return 0
    return 1 if word in module or word in function else None
