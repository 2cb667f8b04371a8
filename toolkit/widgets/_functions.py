"""Function search by name, functions with their ABI, fields for their arguments, and the state of forms with these."""

from __future__ import annotations

import dataclasses
import gzip
import inspect
import json
import re
import zlib
from contextlib import suppress
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace
from traitlets import Unicode

from toolkit._present.messages import did_you_mean, shorten
from toolkit._present.text import plural
from toolkit.client._abis import AbisAt, encode_arguments, function_abi
from toolkit.client._accounts import account_pages
from toolkit.client._arguments import missing_function, structs_of, unknown_struct
from toolkit.client._contracts import ContractFunction
from toolkit.client._http import served_ledger
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionAbi, FunctionId, Layout, ModuleAbi, TypeTag, UInt, parse_address, parse_type_tag
from toolkit.move._ids import parse_hex, wire_address
from toolkit.move._type_tags import TypeParameter, is_signer, substitute, wire_type
from toolkit.widgets import _fields
from toolkit.widgets._changes import GAS_COIN, Known
from toolkit.widgets._fields import U64, Findings, validated
from toolkit.widgets._form import Builder
from toolkit.widgets._messages import Group, Hits, Message, Part, Rows, Text, When, mono
from toolkit.widgets._state import OUTDATED, UNFILLED, FormState
from toolkit.wire import EntryFunction, Script, ViewFunction
from toolkit.wire._gas import APT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from toolkit.client._accounts import Asset
    from toolkit.client._node import Node


FunctionKind = Literal["entry", "view"]  # kind of functions that a form accepts
Called = TypeVar("Called", ViewFunction, EntryFunction, Script)
Values = TypeVar("Values", bound="ValuesDraft")

_EXAMPLE = 'expected a JSON array, such as ["0xb0b", 100]'
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORDS = re.compile(r"[\s:]+")
SAMPLE = "0:-1/50"  # the versions that are read unless others are entered
MAX_HITS = 50  # more do not help: the user types another letter instead


class Hit(NamedTuple):
    """A function that a search found."""

    name: str
    signature: str


class ParameterNames(NamedTuple):
    """The names of a function's type parameters, and of all its parameters, including signers."""

    types: tuple[str, ...] = ()
    values: tuple[str, ...] = ()

    def fit(self, function: FunctionAbi) -> bool:
        """Return whether these are the names of a function, whose source may be of other code."""
        return (len(self.types), len(self.values)) == (len(function.generic_type_params), len(function.params))


UNNAMED = ParameterNames()


@dataclasses.dataclass(frozen=True)
class ResolvedFunction:
    """A function with its ABI at one ledger version.

    Attributes
    ----------
    name : str
        Canonical: ``address::module::function``.
    abi : FunctionAbi
    abis : AbisAt
        ABIs of the modules that define its types.
    names : ParameterNames
        From the source; empty if there is none.
    """

    name: str
    abi: FunctionAbi
    abis: AbisAt
    names: ParameterNames = UNNAMED

    @property
    def labels(self) -> list[str]:
        """The labels of the arguments: their names, or else what their types are, numbered if there are several."""
        if self.names.fit(self.abi):
            return named_parameters(self.abi, self.names.values)
        words = [_fields.type_word(tag) for tag in self.abi.parameters]
        counted = [f"{word} {words[: place + 1].count(word)}" for place, word in enumerate(words)]
        return [one if words.count(word) > 1 else word for word, one in zip(words, counted, strict=True)]

    @property
    def type_labels(self) -> tuple[str, ...]:
        """The labels of the type arguments: their names, or else numbers if there are several."""
        if self.names.fit(self.abi):
            return self.names.types
        count = len(self.abi.generic_type_params)
        return tuple(f"Type argument {place + 1}" if count > 1 else "Type argument" for place in range(count))

    def modules_of(self, type_arguments: Sequence[str]) -> list[Callable[[], object]]:
        """Return one job for each module that the types need, which looks it up; empty type arguments are skipped."""
        tags = [*self.abi.parameters, *map(parse_type_tag, filter(None, type_arguments))]
        wanted = {(struct.address, struct.module) for tag in tags for struct in structs_of(tag)}
        return [partial(self.abis.lookup, *module) for module in sorted(wanted)]

    def kinds(self, type_arguments: Sequence[str]) -> tuple[TypeTag, ...]:
        """Return the types of the arguments, without signers; an empty type argument stays open."""
        names = self.names.types if self.names.fit(self.abi) else [""] * len(type_arguments)
        pairs = enumerate(zip(type_arguments, names, strict=True))
        types = [parse_type_tag(text) if text else TypeParameter(place, name) for place, (text, name) in pairs]
        return tuple(substitute(tag, types) for tag in self.abi.parameters)

    def with_types(self, type_arguments: Sequence[str]) -> ResolvedCall:
        """Substitute type arguments, leaving empty ones open, and resolve the layouts of the parameters.

        Raises
        ------
        NodeError, NodeUnreachable
            If a type's module cannot be looked up.
        """
        kinds = self.kinds(type_arguments)
        return ResolvedCall(self, tuple(type_arguments), kinds, tuple(self.abis.layout(kind) for kind in kinds))

    def wrong_types(self, type_arguments: Sequence[str]) -> dict[int, str]:
        """Return error messages, by position, for type arguments that name a struct that does not exist.

        Types in modules without an ABI on the node are not checked.

        Raises
        ------
        NodeError, NodeUnreachable
            If a type's module cannot be looked up.
        """
        wrong: dict[int, str] = {}
        for place, typed in enumerate(type_arguments):
            for struct in structs_of(parse_type_tag(typed)) if typed else ():
                self.abis.lookup(struct.address, struct.module)
                if (problem := unknown_struct(struct, self.abis)) is not None:
                    wrong.setdefault(place, problem.text)
        return wrong


@dataclasses.dataclass(frozen=True)
class ResolvedCall:
    """A function with its type arguments. Checking its arguments makes no request.

    Attributes
    ----------
    function : ResolvedFunction
    type_arguments : tuple of str
        Canonical types; an empty string if a type has not been entered.
    kinds : tuple of TypeTag
        Types of the arguments, without signers.
    layouts : tuple of Layout
        Layouts of the arguments, without signers.
    """

    function: ResolvedFunction
    type_arguments: tuple[str, ...]
    kinds: tuple[TypeTag, ...]
    layouts: tuple[Layout, ...]

    def encode(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the arguments in the JSON form that the node accepts.

        Raises
        ------
        InputError, SchemaError
            If the number of arguments is wrong, or one does not fit its type.
        """
        abi = self.function.abi
        return encode_arguments(abi, self.type_arguments, arguments, self.function.abis, where=abi.name)


def named_parameters(function: FunctionAbi, names: Sequence[str]) -> list[str]:
    """Return the names of the parameters that are not signers, from the names of all."""
    pairs = zip(names, function.params, strict=True)
    return [name for name, kind in pairs if not is_signer(parse_type_tag(kind, abi=True))]


def given_types(drafts: Sequence[str], function: ResolvedFunction) -> tuple[str, ...] | None:
    """Return a canonical type, or an empty string, for each type parameter; None if too many are entered."""
    count = len(function.abi.generic_type_params)
    types = [read_type(typed, "", Findings()) or "" for typed in drafts]
    return None if len(types) > count else (*types, *[""] * (count - len(types)))


class Packages(NamedTuple):
    """The package of each module of an address, and the module's source code where it was published."""

    names: dict[str, str]
    sources: dict[str, str]


def published_packages(node: Node, address: str) -> Packages:
    """Return the packages of an address; empty if it has no registry of packages."""
    registry: Any = {}
    with suppress(ToolkitError):
        registry = node.resource(address, "0x1::code::PackageRegistry")
    found = Packages({}, {})
    for package in registry.get("packages", ()):
        for module in package["modules"]:
            found.names[module["name"]] = package["name"]
            with suppress(OSError, EOFError, zlib.error, ToolkitError):
                packed = module["source"]
                data = packed if isinstance(packed, bytes) else parse_hex(packed)
                found.sources[module["name"]] = gzip.decompress(data).decode("utf-8", "replace")
    return found


def declared_names(ledger: Any, called: FunctionId) -> ParameterNames:
    """Return a function's parameter names as the embedded contract's Python code declares them."""
    definition = ledger.chain.code_at(ledger.head).modules.get((called.address, called.module))
    if definition is None or called.name not in definition.functions:
        return UNNAMED
    first = 1 + definition.functions[called.name].type_parameters  # after `self` and the type parameters
    names = tuple(inspect.signature(getattr(definition.contract, called.name)).parameters)
    return ParameterNames(names[1:first], names[first:])


def parameter_names(source: str, function: str) -> ParameterNames:
    """Return a function's parameter names from Move source; empty if it is not found.

    Examples
    --------
    >>> parameter_names("public entry fun pay<C>(from: &signer, to: address, amount: u64) {", "pay")
    ParameterNames(types=('C',), values=('from', 'to', 'amount'))
    """
    pattern = rf"\bfun\s+{re.escape(function)}\s*(?:<([^()]*)>)?\s*\(([^)]*)\)"
    found = re.search(pattern, _COMMENT.sub(" ", source))
    if found is None:
        return UNNAMED
    generics, parts = (_split_types((part or "").replace("\n", " ")) for part in found.groups())
    types = tuple(part.partition(":")[0].split()[-1] for part in generics)
    names = tuple(part.partition(":")[0].split()[-1].lstrip("_") for part in parts if ":" in part)
    return ParameterNames(types, names) if all(name.isidentifier() for name in (*types, *names)) else UNNAMED


def find_function(node: Node, name: str, kind: FunctionKind) -> ResolvedFunction | None:
    """Read the ABI of a function at the node's head.

    Parameters
    ----------
    node : Node
    name : str
        ``address::module::function``.
    kind : {"entry", "view"}

    Returns
    -------
    ResolvedFunction or None
        None if the node has no ABI for the module; it may still be able to run the function.

    Raises
    ------
    InputError
        If the module does not exist, or has no function with that name.
    NodeError, NodeUnreachable
        If the head or the module cannot be read.
    """
    call = (ViewFunction if kind == "view" else EntryFunction)(name)
    abis = node.abis.at(node.ledger().version)
    if (problem := missing_function(node, call, abis)) is not None:
        raise InputError(f"{problem} (checked against the code at version {abis.version:,})")
    found = function_abi(name, abis)
    if found is not None and not is_of(kind, found) and (found.is_view or found.is_entry):
        raise InputError(f"{name} is not {'a view' if kind == 'view' else 'an entry'} function")
    return None if found is None else ResolvedFunction(str(FunctionId.parse(name)), found, abis)


def is_of(kind: FunctionKind, function: FunctionAbi) -> bool:
    """Return whether a form for functions of `kind` accepts a function."""
    return function.is_view if kind == "view" else function.is_entry


def checked_name(function: object, kind: FunctionKind, *, form: str) -> str:
    """Return the name of the function that a form shows initially.

    Parameters
    ----------
    function : str or ContractFunction
        A string is not checked, since its ABI is not known yet.
    kind : {"entry", "view"}
        Kind of functions that the form accepts.
    form : str
        Class name of the form, for the error message.

    Raises
    ------
    InputError
        If `function` is not a function, or not of this kind.
    """
    if isinstance(function, str):
        return function
    if not isinstance(function, ContractFunction):
        raise InputError(
            "function: expected address::module::function, or a function of a contract such as "
            f"node.contract('0x1::coin').transfer, got {function!r:.80}"
        )
    if is_of(kind, function.abi):
        return function.id
    what = "neither a view nor an entry function"
    if function.abi.is_view or function.abi.is_entry:
        what, opens = ("a view", "ViewBuilder") if function.abi.is_view else ("an entry", "SimulationBuilder")
        what = f"{what} function, use {opens} instead"
    raise InputError(f"{form} accepts {kind} functions only; {function.id} is {what}")


# search --------------------------------------------------------------------------------------------------------------


def signature(function: FunctionAbi, names: ParameterNames = UNNAMED) -> str:
    """Return a function's type parameters and its parameters without signers: ``<T0>(to: address, amount: u64)``.

    Without `names`, the parameters have only their types.
    """
    labels = [""] * len(function.parameters)
    named = names.types if names.fit(function) else [""] * len(function.generic_type_params)
    if names.fit(function):
        labels = [f"{name}: " for name in named_parameters(function, names.values)]
    open_types = [TypeParameter(place, name) for place, name in enumerate(named)]
    generics = ", ".join(map(str, open_types))
    kinds = (substitute(tag, open_types) for tag in function.parameters)
    types = ", ".join(f"{label}{tag}" for label, tag in zip(labels, kinds, strict=True))
    types = types.replace("0x1::string::", "").replace("0x1::option::", "")
    return f"{f'<{generics}>' if generics else ''}({types.replace('0x1::object::', '')})"


def address_of(query: str) -> str | None:
    """Return the canonical address at the start of a query, such as ``0x1`` in ``0x1::coi``, or None."""
    head = _WORDS.split(query.strip())[0]
    try:
        return parse_address(head) if head.startswith("0x") else None
    except InputError:
        return None


class ListedContract(NamedTuple):
    """A module in the list of contracts, and its package."""

    abi: ModuleAbi
    package: str = ""


def matching(
    contracts: Iterable[ListedContract],
    query: str,
    kind: FunctionKind,
    names: Callable[[FunctionId], ParameterNames] = lambda _: UNNAMED,
) -> tuple[list[Hit], int]:
    """Return the functions that match a query, best matches first, and the total number of matches.

    Parameters
    ----------
    contracts : iterable of ListedContract
        Contracts to search. What wallets call, ``0x1::aptos_account``, comes first, the rest of the framework last.
    query : str
        ``0x1::coi``, ``0x1::coin::tr``, or parts of names in any order. An address alone matches its modules, whose
        names end in ``::``.
    kind : {"entry", "view"}
    names : callable, optional
        Returns the names of a function's parameters; called for the functions that are returned.
    """
    owner, words = address_of(query), [word for word in _WORDS.split(query.strip().lower()) if word]
    words = words[1:] if owner is not None else words
    modules: list[tuple[tuple[bool, str], Hit]] = []
    found: list[tuple[tuple[int, bool, bool, str, str], FunctionId, FunctionAbi]] = []
    for module, package in contracts:
        address = wire_address(module.address)
        functions = [function for function in module.exposed_functions if is_of(kind, function)]
        if not functions or owner not in {None, module.address}:
            continue
        about = f"{f'package {package}, ' if package else ''}{plural(len(functions), 'function')}"
        modules.append(((address == "0x1", module.name), Hit(f"{address}::{module.name}::", about)))
        for function in functions:
            name = f"{module.name}::{function.name}".lower()
            if words and all(word in name for word in words):
                # words that begin a name come first
                inside = sum(not any(part.startswith(word) for part in name.split("::")) for word in words)
                called = FunctionId(module.address, module.name, function.name)
                of_wallets, framework = (address, module.name) == ("0x1", "aptos_account"), address == "0x1"
                found.append(((inside, not of_wallets, framework, module.name, function.name), called, function))
    if not words:
        return [hit for _, hit in sorted(modules)[:MAX_HITS]], len(modules)
    best = sorted(found, key=itemgetter(0))[:MAX_HITS]
    return [Hit(called.wire, signature(function, names(called))) for _, called, function in best], len(found)


# amounts -------------------------------------------------------------------------------------------------------------


class Amount(NamedTuple):
    """The argument of a function that is an amount, or a vector of amounts, by position.

    Its asset is the coin that ``coin`` names, the type argument at position ``of_type``, or the metadata of a fungible
    asset at position ``of_argument``.
    """

    argument: int
    coin: str = ""
    of_type: int | None = None
    of_argument: int | None = None


_AMOUNTS: dict[str, Amount] = {
    "0x1::aptos_account::batch_transfer": Amount(1, APT),
    "0x1::aptos_account::batch_transfer_coins": Amount(1, of_type=0),
    "0x1::aptos_account::batch_transfer_fungible_assets": Amount(2, of_argument=0),
    "0x1::aptos_account::transfer": Amount(1, APT),
    "0x1::aptos_account::transfer_coins": Amount(1, of_type=0),
    "0x1::aptos_account::transfer_fungible_assets": Amount(2, of_argument=0),
    "0x1::aptos_coin::mint": Amount(1, APT),
    "0x1::coin::transfer": Amount(1, of_type=0),
    "0x1::managed_coin::mint": Amount(1, of_type=0),
    "0x1::managed_coin::burn": Amount(0, of_type=0),
    "0x1::primary_fungible_store::transfer": Amount(2, of_argument=0),
    "0x1::stake::add_stake": Amount(0, APT),
    "0x1::stake::unlock": Amount(0, APT),
    "0x1::delegation_pool::add_stake": Amount(1, APT),
    "0x1::delegation_pool::unlock": Amount(1, APT),
    "0x1::delegation_pool::withdraw": Amount(1, APT),
}


# Aborts of the framework that concern the amount of a transfer: the balance does not cover it.
BALANCE_TOO_LOW = {("0x1::coin", 0x10006), ("0x1::fungible_asset", 0x10004)}


def amount_of(function: str, types: Sequence[str], arguments: Sequence[Any]) -> tuple[int, str] | None:
    """Return the position of the argument that has the amounts, and their asset; None if either is not known.

    Parameters
    ----------
    function : str
    types : sequence of str
        Canonical type arguments.
    arguments : sequence
        Values or drafts.
    """
    amount = _AMOUNTS.get(FunctionId.parse(function).wire)
    if amount is None:
        return None
    asset = amount.coin
    with suppress(InputError, IndexError, AttributeError):
        if amount.of_type is not None:
            asset = types[amount.of_type]
        elif amount.of_argument is not None:
            asset = parse_address(arguments[amount.of_argument].strip())
    return (amount.argument, asset) if asset else None


# fields and drafts of a function --------------------------------------------------------------------------------------


class ValuesDraft(Struct, frozen=True):
    """Entries for values: ``arguments`` holds the drafts of the fields, and ``raw`` all values as JSON.

    ``lead`` names the one that was edited last. ``seq`` counts edits. In forms that choose versions, ``at`` selects the
    field that applies: ``head`` is neither of them.
    """

    seq: int = 0
    arguments: tuple[Any, ...] = ()
    raw: str = ""
    lead: Literal["raw", "fields"] = "raw"
    at: Literal["head", "version", "plan"] = "head"
    version: str = "-1"
    plan: str = SAMPLE

    @property
    def versions_field(self) -> str:
        """The name of the field of the versions; empty at the head."""
        return "" if self.at == "head" else self.at


class FunctionDraft(ValuesDraft, frozen=True):
    """Entries for a function and its arguments.

    ``of`` names the function whose ABI the other entries were entered for; empty if it was not known. The browser sends
    it back, so that entries which it still has of another function are recognized.
    """

    function: str = ""
    type_arguments: tuple[str, ...] = ()
    of: str = ""

    @property
    def kind(self) -> FunctionKind:
        """The kind of functions that the form accepts."""
        return "entry"

    @property
    def calls_function(self) -> bool:
        """Whether the payload calls a function; scripts and stored payloads do not."""
        return True


def function_name(draft: FunctionDraft) -> str:
    """Return the canonical name of the function in a draft; empty if it is not complete."""
    with suppress(InputError):
        return str(FunctionId.parse(draft.function.strip()))
    return ""


def raw_field(when: When = None, label: str = "Arguments") -> Text:
    """Return the field for all arguments as JSON."""
    return mono(label, "a JSON array, without signers", when, rows=3, placeholder='["0xb0b", 100]')


def write_call(call: ViewFunction | EntryFunction | Script) -> dict[str, Any]:
    """Return the function or script entries that produce this call."""
    types = tuple(wire_type(parse_type_tag(name)) for name in call.type_arguments)
    typed = {"type_arguments": types, "raw": arguments_text(call.arguments)}
    return typed | ({} if isinstance(call, Script) else {"function": FunctionId.parse(call.function).wire})


def read_call(
    draft: FunctionDraft, model: type[Called], found: Findings, *, last: Any = None, call: ResolvedCall | None = None
) -> Called | None:
    """Return the call that a draft describes; None if an entry is invalid or missing.

    Parameters
    ----------
    draft : FunctionDraft
    model : type
        Type of the call: `ViewFunction`, `EntryFunction` or `Script`.
    found : Findings
        Receives errors and missing entries.
    last : object, optional
        The call that the draft was written from. Its arguments are used if their JSON has not changed.
    call : ResolvedCall, optional
        The function with its type arguments, to check the arguments.
    """
    named = "function" if "function" in model.model_fields else "bytecode"
    name = getattr(draft, named).strip()
    if not name:
        found.missing[named] = _EXPECTED[named]
    types = read_types(draft.type_arguments, found)
    kept = isinstance(last, model) and draft.raw == arguments_text(last.arguments)
    arguments = last.arguments if kept else parse_arguments(draft.raw, found)
    if not name or types is None or arguments is None:
        return None
    given: dict[str, Any] = {named: name, "type_arguments": types, "arguments": arguments}
    made = validated(lambda: model(**given), found, "arguments", {named: named})
    if made is not None and call is not None and call.type_arguments == types:
        validated(lambda: call.encode(made.arguments), found, "arguments")
    return made


_EXPECTED = {
    "function": "choose a function, or enter address::module::function",
    "bytecode": "enter the bytecode of the compiled script as hex",
}


def in_step(
    draft: Values,
    layouts: Sequence[Layout] | None,
    found: Findings,
    *,
    before: Sequence[Layout] | None,
    parse: Callable[[str], Sequence[Any] | None],
    encode: Callable[[Sequence[Any]], Sequence[Any]],
    spell: Callable[[Sequence[Any]], str],
) -> Values:
    """Synchronize the fields of values with the JSON of all values; the one that was edited last takes precedence.

    Parameters
    ----------
    draft : ValuesDraft
    layouts : sequence of Layout or None
        Layouts of the values; None if they are not known, in which case the JSON takes precedence.
    found : Findings
        Receives errors and missing entries of the fields.
    before : sequence of Layout or None
        Layouts for which the fields were drawn; None if the fields were for other values.
    parse : callable
        Returns the values of a JSON text.
    encode : callable
        Returns values in the form that the node accepts; raises InputError if they do not fit.
    spell : callable
        Returns values as text.

    Returns
    -------
    ValuesDraft
        The synchronized draft. Invalid JSON leaves the fields unchanged and still takes precedence; equal values keep
        their spelling.
    """
    from_link = before is None and draft.lead == "fields" and not draft.raw.strip()  # its types are not known yet
    if layouts is None:
        return draft if from_link else replace(draft, arguments=(), lead="raw")
    if from_link and _fields.are_drafts(layouts, draft.arguments):
        before = layouts
    if before is None or not len(draft.arguments) == len(layouts) == len(before):
        blank = tuple(map(_fields.blank, layouts))
        draft = replace(draft, arguments=blank, lead="raw" if draft.raw.strip() or not layouts else "fields")
    elif list(before) != list(layouts):  # a type argument changed: entries of other types are kept
        drafts = zip(draft.arguments, before, layouts, strict=True)
        draft = replace(draft, arguments=tuple(one if old == new else _fields.blank(new) for one, old, new in drafts))

    def encoded(values: Sequence[Any] | None) -> Sequence[Any] | None:
        with suppress(InputError, SchemaError):
            return None if values is None else encode(values)
        return None

    raw = encoded(parse(draft.raw))
    if draft.lead == "raw":
        if not draft.raw.strip():
            draft = replace(draft, arguments=tuple(map(_fields.blank, layouts)))
        if raw is None:
            return draft
        draft = replace(draft, arguments=tuple(map(_fields.write, layouts, raw)), lead="fields")
    mine = Findings(names=found.names)
    pairs = enumerate(zip(layouts, draft.arguments, strict=True))
    values = [_fields.read(layout, typed, f"arguments.{place}", mine) for place, (layout, typed) in pairs]
    found.add(mine)
    if not mine.good or (raw is not None and raw == encode(values)):
        return draft
    return replace(draft, raw=spell(values))


def arguments_text(arguments: Sequence[Any]) -> str:
    """Return arguments as JSON text; an empty string if there are none."""
    text = json.dumps(list(arguments), ensure_ascii=False, default=lambda value: "0x" + value.hex())
    return text if arguments else ""


def read_types(drafts: Sequence[str], found: Findings) -> tuple[str, ...] | None:
    """Return the canonical type arguments; None if any is missing or invalid."""
    types = [read_type(typed, f"type_arguments.{place}", found) for place, typed in enumerate(drafts)]
    return None if None in types else tuple(filter(None, types))


def read_type(typed: str, path: str, found: Findings) -> str | None:
    """Return a canonical type; None if it is missing or invalid."""
    typed = typed.strip()
    if not typed:
        found.missing[path] = f"enter {_TYPE}"
        return None
    tag = validated(partial(parse_type_tag, typed), found, path)
    if tag is None and typed.isalpha():  # a word, of which the parser has nothing more to say
        found.errors[path] = f"{shorten(typed)} is not a Move type: enter {_TYPE}"
    return None if tag is None else str(tag)


_TYPE = "a Move type, such as u64 or 0x1::aptos_coin::AptosCoin"


def parse_arguments(typed: str, found: Findings) -> tuple[Any, ...] | None:
    """Return the arguments in a JSON text; if it is not a JSON array, report an error and return None."""
    if not typed.strip():
        return ()
    try:
        values = json.loads(typed, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        found.errors["arguments"] = f"not JSON ({error}); {_EXAMPLE}"
        return None
    if isinstance(values, list):
        return tuple(values)
    found.errors["arguments"] = f"{_EXAMPLE}, got {shorten(typed.strip())}"
    return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_MAX_RECENT = 8  # functions that are offered before anything is typed, without scrolling
_RECENT: WeakKeyDictionary[Node, list[tuple[Hit, FunctionAbi]]] = WeakKeyDictionary()  # most recently run first
_PLACES = ("0x1", "0x3", "0x4")  # accounts with contracts on every public network


@dataclasses.dataclass(frozen=True, kw_only=True)
class FunctionState(FormState):
    """The state of a form for a function call. Its entries are a `FunctionDraft`.

    Attributes
    ----------
    functions : mapping of str to ResolvedFunction or None
        Functions that were looked up, by canonical name; None if the node has no ABI.
    resolved : mapping of (str, tuple of str) to ResolvedCall
        The functions with type arguments that were looked up.
    assets : mapping of str to Asset
        Assets that were looked up.
    function : ResolvedFunction or None
        The function in the form.
    call : ResolvedCall or None
        The function with its type arguments, whose arguments have fields.
    left : mapping of str to FunctionDraft
        The last entries of each function whose name was then edited: they return with the name.
    """

    functions: Mapping[str, ResolvedFunction | None] = dataclasses.field(default_factory=dict)
    resolved: Mapping[tuple[str, tuple[str, ...]], ResolvedCall] = dataclasses.field(default_factory=dict)
    assets: Mapping[str, Asset] = dataclasses.field(default_factory=dict)
    function: ResolvedFunction | None = None
    call: ResolvedCall | None = None
    left: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def code_note(self) -> str:
        """Why the entries cannot be written as code; code of another function is not shown."""
        note = super().code_note
        other = note == OUTDATED and self.made_from.function != self.entries.function
        return UNFILLED if other else note

    def saved(self) -> Any:
        """Return what a link keeps: of fields that do not make values, not the JSON of before."""
        draft = self.entries
        return draft if self.findings.good or draft.lead == "raw" else replace(draft, raw="")

    def _searched(self) -> str:
        """Return what the search says of a part of a name; empty if it has not looked for what is typed."""
        draft, hits = self.entries, self.hits
        typed = draft.function.strip() if draft.calls_function else ""
        if not typed or function_name(draft) or hits.query.strip() != typed:
            return ""
        names = [name for name, _ in hits.hits]
        if not names:
            return hits.error
        return f"choose {names[0]}" if len(names) == 1 else f"choose one of the functions that match {shorten(typed)}"

    def forgotten(self) -> Self:
        """Return the state without assets: those of another ledger differ. Code is read again by a check."""
        return dataclasses.replace(self, assets={})

    def with_function(self, before: FunctionState, found: Findings, *, typed: bool) -> Self:
        """Return the state with its fields and JSON synchronized, and an entry for each type parameter.

        Parameters
        ----------
        before : FunctionState
            The state before the event.
        found : Findings
            Receives errors and missing entries.
        typed : bool
            Whether the entries come from the browser.
        """
        if words := self._searched():
            found.errors["function"] = words
        draft, last, left = self.entries, self.call, self.left
        other = draft.function != before.entries.function
        looked = {} if other or draft.type_arguments != before.entries.type_arguments else self.looked
        if typed and draft.of not in {"", function_name(draft)}:
            left = {**left, draft.of: draft}
            draft = replace(draft, arguments=(), raw="", type_arguments=())  # of another function
        blank = not (draft.arguments or draft.raw.strip() or any(draft.type_arguments))
        back = left.get(function_name(draft)) if typed and other and blank else None
        if back is not None:
            names = ("arguments", "raw", "type_arguments", "lead")
            draft = replace(draft, **{name: getattr(back, name) for name in names})
        function, call = self.known(draft)
        same = last is not None and call is not None and last.function.name == call.function.name
        draft = in_step(
            draft,
            None if call is None else call.layouts,
            found,
            before=call.layouts if back and call else last.layouts if same and last else None,
            parse=lambda raw: parse_arguments(raw, Findings()),
            encode=lambda values: [] if call is None else call.encode(values),
            spell=arguments_text,
        )
        if function is not None:
            wanted, got = len(function.abi.generic_type_params), len(draft.type_arguments)
            draft = replace(draft, type_arguments=(*draft.type_arguments, *[""] * (wanted - got)))
            if got > wanted:
                words = f"{FunctionId.parse(function.name).wire} takes {plural(wanted, 'type argument')}, got {got}"
                found.errors["type_arguments"] = words
        draft = replace(draft, of="" if function is None else function.name)
        strict = self.strict and not (typed and other)  # the fields of another function are new
        about: dict[str, Any] = {"function": function, "call": call, "left": left}
        made = dataclasses.replace(self, entries=draft, looked=looked, strict=strict, **about)
        made.note_amount(found)
        return made

    def known(self, draft: Any) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        """Return the function and call that a draft names, if their ABIs have been read."""
        name = function_name(draft)
        function = self.functions.get(name) if draft.calls_function else None
        types = None if function is None else given_types(draft.type_arguments, function)
        if function is None or types is None:
            return function, None
        return function, self.resolved.get((name, types)) or self.resolved.get((name, ("",) * len(types)))

    def argument_words(self, arguments: Sequence[Any]) -> str:
        """Return arguments with their names, if they are known, names of accounts, and amounts in whole coins."""
        from toolkit.widgets._results import brief  # here: a form opens sooner without pandas

        known, call = Known(self.assets), self.call
        texts = [brief(one).strip('"') for one in arguments]
        if call is None or len(call.layouts) != len(texts):
            return self.named(brief(arguments), " {}")
        place, asset = amount_of(call.function.name, call.type_arguments, arguments) or (0, "")
        for at, (layout, text) in enumerate(zip(call.layouts, texts, strict=True)):
            if isinstance(layout, UInt) and text.isdecimal():
                in_coins = at == place and known.unit(asset) is not None
                texts[at] = known.words(int(text), asset) if in_coins else f"{int(text):,}"
        function = self.function or call.function
        if function.names.fit(function.abi):
            texts = [f"{label}: {text}" for label, text in zip(function.labels, texts, strict=True)]
        return self.named(", ".join(texts), " {}")

    @property
    def leading(self) -> ResolvedCall | None:
        """The call that checks the JSON; None if the fields were edited last."""
        return self.call if self.entries.lead == "raw" else None

    @property
    def amount(self) -> tuple[int, str] | None:
        """The position of the argument that is an amount, and its asset."""
        call = self.call
        return None if call is None else amount_of(call.function.name, call.type_arguments, self.entries.arguments)

    def note_amount(self, found: Findings) -> None:
        """Note the value of the argument that is an amount, or of each of its items, in whole coins."""
        place, asset = self.amount or (0, "")
        known, path = Known(self.assets), f"arguments.{place}"
        if known.unit(asset) is None or place >= len(self.entries.arguments):
            return
        given = self.entries.arguments[place]
        items = [(f"{path}.{at}", one) for at, one in enumerate(given)] if isinstance(given, list) else [(path, given)]
        for path, typed in items:
            units = _fields.read_leaf(U64, typed, "", Findings()) if isinstance(typed, str) else None
            if isinstance(units, int):
                found.notes[path] = f"= {known.words(units, asset)}"
            elif path in found.errors:
                found.errors[path] += f"; {self._unit_hint(typed, asset)}"

    def _unit_hint(self, typed: str, asset: str) -> str:
        """Return the base units of an amount that was typed in whole coins, or else of one coin."""
        symbol, decimals = Known(self.assets).unit(asset) or ("", 0)
        written = re.fullmatch(rf"\s*(\d{{1,30}}(?:\.\d{{1,30}})?)\s*(?:{re.escape(symbol)})?\s*", typed, re.IGNORECASE)
        coins = Decimal(written[1]) if written else Decimal(1)
        return f"for {coins} {symbol} enter {coins.scaleb(decimals):f}"

    def function_fields(
        self, placeholder: str, when: When = None, unknown_when: When = None
    ) -> list[tuple[str | int, Part]]:
        """Return the fields of the function and its arguments, with the keys of their drafts.

        If the type arguments are valid, each argument has its own field.

        Parameters
        ----------
        placeholder : str
            An example function, shown in the empty field.
        when : tuple, optional
            A key of the draft, and the values of that key for which the fields are shown.
        unknown_when : tuple, optional
            Like `when`, for the type arguments and arguments of an unknown function; by default, `when`.
        """
        function, call, unknown = self.function, self.call, unknown_when or when
        hint = "" if self._is_named else "type a part of its name; \N{DOWNWARDS ARROW} or Browse lists them"
        name = mono("Function", hint, when, search=True, placeholder=placeholder)
        if self.entries.calls_function and not self._is_named:
            return [("function", name)]
        types = Rows("Type arguments", item=mono("Type", placeholder=APT, offers=((APT, "APT"),)), when=unknown)
        if function is not None:
            abilities = [", ".join(param.constraints) for param in function.abi.generic_type_params]
            hints = tuple(f"must have {one}" if one else "a Move type, or APT" for one in abilities)
            types = replace(types, when=when, exactly=len(hints), hints=hints, labels=function.type_labels)
        fields: list[tuple[str | int, Part]] = [("function", name), ("type_arguments", types)]
        if call is None:
            return [*fields, ("raw", raw_field(unknown))]
        if not call.layouts and self.entries.raw.strip():  # from a link or Python: the field shows what is wrong
            return [*fields, ("raw", raw_field(when))]
        if not call.layouts:
            return [*fields, ("", Group("The function takes no arguments.", plain=True, when=when))]
        known = call.function if function is None else function
        inner = [(place, _fields.field(layout, known.labels[place])) for place, layout in enumerate(call.layouts)]
        if not all(call.type_arguments):  # types that are open are named as in the source
            kinds = map(_fields.short_name, known.kinds(call.type_arguments))
            inner = [(place, replace(part, type=kind)) for (place, part), kind in zip(inner, kinds, strict=True)]
        place, asset = self.amount or (0, "")
        if (unit := Known(self.assets).unit(asset)) is not None:
            base = "octas" if asset in GAS_COIN else "base units"
            hint = f"in {base} (1 {unit[0]} = {10 ** unit[1]:,})"
            part = inner[place][1]
            each = {"item": replace(part.item, hint=hint)} if isinstance(part, Rows) else {"hint": hint}
            inner[place] = place, replace(part, **each)
        twin = Group("Arguments as JSON", fields=(("raw", raw_field(label="JSON")),), fold=True, when=when)
        return [*fields, ("arguments", Group("Arguments", fields=tuple(inner), when=when)), ("", twin)]

    @property
    def _is_named(self) -> bool:
        """Whether the entries name a function, or have arguments that need a field."""
        draft = self.entries
        with suppress(InputError):
            return bool(draft.raw.strip() or draft.type_arguments or FunctionId.parse(draft.function.strip()))
        return False

    def entered(self, name: str, value: Any) -> Any:
        """Return the entries after a trait was set."""
        if name == "type_arguments":
            return replace(self.entries, type_arguments=tuple(_split_types(value)))
        if name == "arguments":
            return replace(self.entries, raw=value, lead="raw")
        return super().entered(name, value)

    def trait(self, name: str) -> Any:
        """Return the value of a trait."""
        if name == "type_arguments":
            return "\n".join(self.entries.type_arguments)
        return self.entries.raw if name == "arguments" else super().trait(name)

    def encoded(self, arguments: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the JSON form that the node accepts; None if the ABI is unknown or they do not fit."""
        with suppress(InputError, SchemaError):  # a request set by the user may not fit; the entry shows the error
            return None if self.call is None else self.call.encode(arguments)
        return None


class FunctionBuilder(Builder):
    """A form for a function call, whose state is a `FunctionState`.

    Parameters
    ----------
    node : Node
    function : str or ContractFunction, optional
        The initial function.
    request : object, optional
        Initial content of the form.

    Raises
    ------
    InputError
        If both `function` and `request` are given, or `function` is not a function that the form accepts.
    """

    function = Unicode()
    type_arguments = Unicode()
    arguments = Unicode()

    def __init__(self, node: Node, function: str | ContractFunction | None = None, *, request: Any = None) -> None:
        if function is not None and request is not None:
            raise InputError("expected either a function or a request, got both; a request already names its function")
        name = None
        if function is not None:
            name = checked_name(function, self._empty.entries.kind, form=type(self).__name__)
        self._packages: dict[str, Packages] = {}  # by address, as are the contracts
        self._contracts: dict[str, list[ListedContract]] = {}
        super().__init__(node, request=request)
        if name is not None:
            self.function = name

    def _forget_node(self) -> None:
        self._packages, self._contracts = {}, {}

    def _facts(self) -> list[tuple[str, Any]]:
        given = parse_arguments(self._now.entries.raw, Findings())
        words = {"Arguments": self._now.argument_words(given)} if given else {}
        return [(label, words.get(label, value)) for label, value in super()._facts()]

    # what is asked of the node --------------------------------------------------------------------------

    def _checked_words(self) -> str:
        call = self._now.call
        if call is not None:
            types = ", ".join(map(str, call.kinds))
            return f"Matches {call.function.abi.name}({types}) at version {call.function.abis.version:,}"
        return "The node returned no ABI for this module, so the arguments were not checked."

    def _needs_look(self, *, good: bool, again: bool) -> bool:
        now = self._now
        known = not now.looked and now.call is not None and all(now.call.type_arguments)
        return good and (again or not known)  # without an ABI, only the node can judge the entries

    def _look(self) -> None:
        """Read the ABI of the function, the layouts of its parameters, and the asset if one of them is an amount."""
        entries = self._learn(looked={}).entries
        if not entries.calls_function:
            return
        path = "function"
        try:
            name = str(FunctionId.parse(entries.function.strip()))
            function = find_function(self._asked, name, entries.kind)
            with self._locked():
                known = self._now.functions.get(name)
                if function is not None and known is not None:
                    function = dataclasses.replace(function, names=known.names)
                now = self._learn(functions={**self._now.functions, name: function})
            types = None if function is None else given_types(now.entries.type_arguments, function)
            path = "type_arguments"
            if function is not None and types is not None:
                self._look_up_types(function, types)
            amount = self._now.amount
            if amount is not None:
                self._look_up_asset(self._asked, amount[1])
        except (InputError, SchemaError) as error:
            if entries.function == self._now.entries.function:
                self._learn(looked={path: str(error)})
        except ToolkitError as error:
            self._refuse("node", str(error))

    def _look_up_types(self, function: ResolvedFunction, types: tuple[str, ...]) -> None:
        """Read the layouts of a function's parameters."""
        self._together(function.modules_of(types))
        call, wrong = function.with_types(types), function.wrong_types(types)
        unbound = function.with_types([""] * len(types))  # its fields remain visible while a type is typed
        with self._locked():
            now = self._now
            known = {(function.name, unbound.type_arguments): unbound, **now.resolved}
            if known.get((function.name, types)) != call:
                known[function.name, types] = call
            same = types == given_types(now.entries.type_arguments, function)
            looked = {f"type_arguments.{at}": words for at, words in wrong.items()} if same else {}
            self._learn(resolved=known, looked={**now.looked, **looked})

    def _look_up_asset(self, node: Node, asset: str | None) -> None:
        """Read an asset, if it is not known; without it, its amounts are shown in base units only."""
        if asset is not None and asset not in self._now.assets:
            with suppress(ToolkitError):
                self._learn(assets={**self._now.assets, asset: node.asset(asset)})

    def _look_up_names(self) -> None:
        """Read the names of the function's parameters from its source."""
        function = self._now.function
        if function is None or function.names.fit(function.abi):
            return
        names = self._names_of(FunctionId.parse(function.name))
        if names.fit(function.abi):
            with self._locked():
                named = dataclasses.replace(function, names=names)
                self._learn(functions={**self._now.functions, function.name: named})

    def _names_of(self, called: FunctionId) -> ParameterNames:
        """Return the names of a function's parameters, from the contract's Python code or published source."""
        ledger = served_ledger(self.node.url)
        if ledger is not None and any(declared := declared_names(ledger, called)):
            return declared
        source = self._packages_of(called.address).sources.get(called.module, "")
        return parameter_names(source, called.name)

    def _packages_of(self, address: str) -> Packages:
        if address not in self._packages:
            self._packages[address] = published_packages(self._asked, address)
        return self._packages[address]

    def _do_look(self, message: Message) -> None:
        super()._do_look(message)
        self._background.start("names", self._look_up_names, looks_up=True)

    def _remember(self) -> None:
        """Move the function to the top of the recently used functions."""
        function = self._now.function
        if function is not None:
            hit = Hit(FunctionId.parse(function.name).wire, signature(function.abi, function.names))
            others = [used for used in _RECENT.get(self.node, []) if used[0].name != hit.name]
            _RECENT[self.node] = [(hit, function.abi), *others][:_MAX_RECENT]

    # the search for a function --------------------------------------------------------------------------

    def _do_search(self, message: Message) -> None:
        self._background.start("search", lambda: self._search(message.query), looks_up=True)

    def _search(self, query: str) -> None:
        """Find functions that match a query in the contracts of its address, or else of the known accounts.

        For an empty query, offer the most recently used functions, and the accounts that have contracts.
        """
        words, kind, places = query.strip().lower(), self._now.entries.kind, self._places()
        used = [hit for hit, abi in _RECENT.get(self.node, []) if is_of(kind, abi)]
        found = [hit for hit in used if words in hit.name.lower()]
        error, total, listed = "", 0, []
        if not words:
            found += [Hit(f"{wire_address(address)}::", name) for address, name in places.items()]
        else:
            owner = address_of(query)
            for address in places if owner is None else [owner]:
                try:
                    listed += self._contracts_of(address)
                except ToolkitError as failure:
                    error = str(failure)
            hits, total = matching(listed, query, kind, self._names_of)
            found += [hit for hit in hits if hit.name not in {one.name for one in found}]
            other: FunctionKind = "entry" if kind == "view" else "view"
            others, count = ([], 0) if found or error else matching(listed, query, other)
            if others and not others[0].name.endswith("::"):
                several = f"{plural(count, f'{other} function')} do"
                one = f"the {other} function {others[0].name} does"
                error = f"No {kind} function matches; {one if count == 1 else several}."
            elif not found and not error:
                known = [(module.name, function.name) for module, _ in listed for function in module.exposed_functions]
                meant = did_you_mean(_WORDS.split(words)[-1], sorted({name for names in known for name in names}))
                error = f"No matching function{meant and f'; {meant}'}"
                account = Findings(names=self._now.names).address(query)
                if account is not None and not self._contracts_of(account):
                    error = f"{shorten(query.strip())} is an account without contracts"
        self._learn(hits=Hits(query, tuple(found), error, total))

    def _places(self) -> dict[str, str]:
        """Return the addresses of the known accounts that have contracts, with the accounts' names."""
        ledger = served_ledger(self.node.url)
        owners = [*map(parse_address, _PLACES)]
        if ledger is not None:
            owners = [*(FunctionId.parse(f"{one.contract}::f").address for one in ledger.contracts), owners[0]]
        return {address: self._now.names.get(address, "") for address in owners}

    def _contracts_of(self, address: str) -> list[ListedContract]:
        """Return the contracts of an address; they are read once."""
        if address not in self._contracts:
            packages = self._packages_of(address).names
            pages = account_pages(self._asked, address, "modules", self._asked.ledger().version)
            abis = [page.abi for page in pages if page.abi is not None]
            self._contracts[address] = [ListedContract(abi, packages.get(abi.name, "")) for abi in abis]
        return self._contracts[address]


def _split_types(text: str) -> list[str]:
    """Split type arguments at line breaks and at commas outside angle brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character == "<") - (character == ">")
        if character == "\n" or (character == "," and depth == 0):
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]
