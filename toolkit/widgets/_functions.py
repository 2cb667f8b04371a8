"""Function search by name, functions with their ABI, fields for their arguments, and the form that uses these."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
import zlib
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.structs import replace
from traitlets import Unicode

from toolkit._present.messages import shorten
from toolkit._present.text import plural
from toolkit.client._accounts import account_pages
from toolkit.client._arguments import missing_function, structs_of, unknown_struct
from toolkit.client._calls import AbisAt, encode_arguments, function_abi
from toolkit.client._contracts import ContractFunction
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import FunctionAbi, FunctionId, Layout, ModuleAbi, TypeTag, parse_address, parse_type_tag
from toolkit.move._ids import parse_hex, wire_address
from toolkit.move._type_tags import TypeParameter, is_signer, substitute, wire_type
from toolkit.widgets import _fields
from toolkit.widgets._changes import GAS_COIN, Known
from toolkit.widgets._fields import U64, Findings, validated
from toolkit.widgets._form import Form
from toolkit.widgets._messages import Group, Hits, Message, Part, Rows, Text, When, mono
from toolkit.wire import EntryFunction, Script, ViewFunction
from toolkit.wire._gas import APT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.client._assets import Asset
    from toolkit.client._node import Node


FunctionKind = Literal["entry", "view"]  # kind of functions that a form accepts
Called = TypeVar("Called", ViewFunction, EntryFunction, Script)
Values = TypeVar("Values", bound="ValuesDraft")

_EXAMPLE = 'expected a JSON array, such as ["0xb0b", 100]'
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_WORDS = re.compile(r"[\s:]+")
MAX_HITS = 50  # more do not help: the user types another letter instead


class Hit(NamedTuple):
    """A function that a search found."""

    name: str
    signature: str


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
    names : tuple of str
        Names of all parameters, including signers, from the published source; empty if there is none.
    """

    name: str
    abi: FunctionAbi
    abis: AbisAt
    names: tuple[str, ...] = ()

    @property
    def labels(self) -> list[str]:
        """The labels of the arguments: their names, or numbers if the names are not known."""
        if len(self.names) != len(self.abi.params):
            return [f"Argument {place + 1}" for place in range(len(self.abi.parameters))]
        pairs = zip(self.names, self.abi.params, strict=True)
        return [name for name, kind in pairs if not is_signer(parse_type_tag(kind, abi=True))]

    def modules_of(self, type_arguments: Sequence[str]) -> list[Callable[[], object]]:
        """Return one job for each module that the types need, which looks it up; empty type arguments are skipped."""
        tags = [*self.abi.parameters, *map(parse_type_tag, filter(None, type_arguments))]
        wanted = {(struct.address, struct.module) for tag in tags for struct in structs_of(tag)}
        return [partial(self.abis.known, *module) for module in sorted(wanted)]

    def with_types(self, type_arguments: Sequence[str]) -> ResolvedCall:
        """Substitute type arguments, leaving empty ones open, and resolve the layouts of the parameters.

        Raises
        ------
        NodeError, NodeUnreachable
            If a type's module cannot be looked up.
        """
        types = [parse_type_tag(text) if text else TypeParameter(place) for place, text in enumerate(type_arguments)]
        kinds = tuple(substitute(tag, types) for tag in self.abi.parameters)
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
                self.abis.known(struct.address, struct.module)
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


def given_types(drafts: Sequence[str], function: ResolvedFunction) -> tuple[str, ...] | None:
    """Return a canonical type, or an empty string, for each type parameter; None if too many are entered."""
    count = len(function.abi.generic_type_params)
    found = [read_types([typed], Findings()) or ("",) for typed in drafts]
    return None if len(found) > count else (*(kind for [kind] in found), *[""] * (count - len(found)))


def published_source(node: Node, address: str) -> dict[str, str]:
    """Return the source code of an account's modules by name, where it was published."""
    registry: Any = {}
    with suppress(ToolkitError):
        registry = node.resource(address, "0x1::code::PackageRegistry")
    found = {}
    for module in (one for package in registry.get("packages", ()) for one in package["modules"]):
        with suppress(OSError, EOFError, zlib.error, ToolkitError):
            packed = module["source"]
            data = packed if isinstance(packed, bytes) else parse_hex(packed)
            found[module["name"]] = gzip.decompress(data).decode("utf-8", "replace")
    return found


def parameter_names(source: str, function: str) -> tuple[str, ...]:
    """Return a function's parameter names, including signers, from Move source; empty if it is not found.

    Examples
    --------
    >>> parameter_names("public entry fun pay<C>(from: &signer, to: address, amount: u64) {", "pay")
    ('from', 'to', 'amount')
    """
    found = re.search(rf"\bfun\s+{re.escape(function)}\s*(?:<[^()]*>)?\s*\(([^)]*)\)", _COMMENT.sub(" ", source))
    parts = [] if found is None else _split_types(found[1].replace("\n", " "))
    names = tuple(part.partition(":")[0].split()[-1].lstrip("_") for part in parts if ":" in part)
    return names if all(name.isidentifier() for name in names) else ()


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
        raise InputError(f"{problem} (checked against the code at version {abis.version})")
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
    other = "neither a view nor an entry function"
    if function.abi.is_view or function.abi.is_entry:
        what, opens = ("a view", "ViewBuilder") if function.abi.is_view else ("an entry", "SimulationBuilder")
        other = f"{what} function, use {opens} instead"
    raise InputError(f"{form} accepts {kind} functions only; {function.id} is {other}")


# search --------------------------------------------------------------------------------------------------------------


def signature(function: FunctionAbi) -> str:
    """Return a function's type parameters and its parameter types without signers: ``<T0>(address, u64)``."""
    generics = ", ".join(f"T{place}" for place in range(len(function.generic_type_params)))
    types = ", ".join(str(tag) for tag in function.parameters).replace("0x1::string::", "").replace("0x1::option::", "")
    return f"{f'<{generics}>' if generics else ''}({types.replace('0x1::object::', '')})"


def address_of(query: str) -> str | None:
    """Return the canonical address at the start of a query, such as ``0x1`` in ``0x1::coi``, or None."""
    head = _WORDS.split(query.strip())[0]
    try:
        return parse_address(head) if head.startswith("0x") else None
    except InputError:
        return None


def matching(modules: Iterable[ModuleAbi], query: str, kind: FunctionKind) -> tuple[list[Hit], int]:
    """Return the functions that match a query, best matches first, and the total number of matches.

    Parameters
    ----------
    modules : iterable of ModuleAbi
        Modules to search.
    query : str
        ``0x1::coi``, ``0x1::coin::tr``, or parts of names in any order. An address alone matches its modules, whose
        names end in ``::``.
    kind : {"entry", "view"}
    """
    owner, words = address_of(query), [word for word in _WORDS.split(query.strip().lower()) if word]
    words = words[1:] if owner is not None else words
    ranked = []
    for module in modules:
        if owner is not None and module.address != owner:
            continue
        functions = [function for function in module.exposed_functions if is_of(kind, function)]
        place = f"{wire_address(module.address)}::{module.name}::"
        if functions and not words:
            ranked.append(((0, module.name, ""), Hit(place, plural(len(functions), "function"))))
        for function in functions if words else ():
            name = f"{module.name}::{function.name}".lower()
            if all(word in name for word in words):
                # words that begin a name come first
                inside = sum(not any(part.startswith(word) for part in name.split("::")) for word in words)
                ranked.append(((inside, module.name, function.name), Hit(place + function.name, signature(function))))
    return [hit for _, hit in sorted(ranked)[:MAX_HITS]], len(ranked)


# amounts -------------------------------------------------------------------------------------------------------------

# The argument that is an amount, and its asset: a coin type, or the number of a type argument or of the argument with
# the metadata of a fungible asset.
_AMOUNTS: dict[str, tuple[int, str]] = {
    "0x1::aptos_account::transfer": (1, APT),
    "0x1::aptos_account::transfer_coins": (1, "type 0"),
    "0x1::aptos_account::transfer_fungible_assets": (2, "argument 0"),
    "0x1::aptos_coin::mint": (1, APT),
    "0x1::coin::transfer": (1, "type 0"),
    "0x1::managed_coin::mint": (1, "type 0"),
    "0x1::managed_coin::burn": (0, "type 0"),
    "0x1::primary_fungible_store::transfer": (2, "argument 0"),
    "0x1::stake::add_stake": (0, APT),
    "0x1::stake::unlock": (0, APT),
    "0x1::delegation_pool::add_stake": (1, APT),
    "0x1::delegation_pool::unlock": (1, APT),
    "0x1::delegation_pool::withdraw": (1, APT),
}


def amount_of(draft: FunctionDraft, call: ResolvedCall | None) -> tuple[int, str] | None:
    """Return the position of the argument that is an amount, and its asset; None if either is not known."""
    name = "" if call is None else FunctionId.parse(call.function.name).wire
    if call is None or name not in _AMOUNTS:
        return None
    place, asset = _AMOUNTS[name]
    kind, _, number = asset.partition(" ")
    typed = {"type": call.type_arguments, "argument": draft.arguments}.get(kind)
    if typed is None:
        return place, asset
    chosen = typed[int(number)] if int(number) < len(typed) else ""
    with suppress(InputError):
        return place, str(parse_type_tag(chosen)) if "::" in chosen else parse_address(chosen.strip())
    return None


# fields and drafts of a function --------------------------------------------------------------------------------------


class ValuesDraft(Struct, frozen=True):
    """Entries for values: ``arguments`` holds the drafts of the fields, and ``raw`` all values as JSON.

    ``lead`` names the one that was edited last. ``seq`` counts edits.
    """

    seq: int = 0
    arguments: tuple[Any, ...] = ()
    raw: str = ""
    lead: Literal["raw", "fields"] = "raw"


class FunctionDraft(ValuesDraft, frozen=True):
    """Entries for a function and its arguments."""

    function: str = ""
    type_arguments: tuple[str, ...] = ()

    @property
    def kind(self) -> FunctionKind:
        """The kind of functions that the form accepts."""
        return "entry"

    @property
    def calls_function(self) -> bool:
        """Whether the payload calls a function; scripts and stored payloads do not."""
        return True


def raw_field(when: When = None, label: str = "Arguments") -> Text:
    """Return the field for all arguments as JSON."""
    return mono(label, "a JSON array without the signers", when, rows=3, placeholder='["0xb0b", 100]')


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
    "function": "expected address::module::function, such as 0x1::aptos_account::transfer or 0x1::coin::supply",
    "bytecode": "expected the bytecode of the compiled script as hex",
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
    if layouts is None:
        return replace(draft, arguments=(), lead="raw")
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
    types: list[str] = []
    for place, typed in enumerate(drafts):
        path = f"type_arguments.{place}"
        if not typed.strip():
            found.missing[path] = "expected a Move type, such as 0x1::aptos_coin::AptosCoin"
        elif (tag := validated(partial(parse_type_tag, typed.strip()), found, path)) is not None:
            types.append(str(tag))
    return tuple(types) if len(types) == len(drafts) else None


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
_FRAMEWORK = "0x1"
_PLACES = [Hit("0x1::", "framework"), Hit("0x3::", "tokens"), Hit("0x4::", "token objects")]  # where to begin


class FunctionForm(Form):
    """A form for a function call.

    Its draft is a `FunctionDraft`. `_read_function` synchronizes the fields of the arguments with their JSON. `_fields`
    in a subclass includes `_function_fields`.

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
        name = None if function is None else checked_name(function, self._blank.kind, form=type(self).__name__)
        self._function: ResolvedFunction | None = None
        self._call: ResolvedCall | None = None
        self._functions: dict[str, ResolvedFunction | None] = {}
        self._calls: dict[tuple[str, tuple[str, ...]], ResolvedCall] = {}
        self._modules: dict[str, list[ModuleAbi]] = {}
        self._sources: dict[str, dict[str, str]] = {}  # by address and module
        self._assets: dict[str, Asset] = {}
        self._units: dict[int, str] = {}
        super().__init__(node, request=request)
        if name is not None:
            self.function = name

    def _start_over(self) -> None:
        super()._start_over()
        self._call = None

    def _forget_node(self) -> None:
        super()._forget_node()
        self._modules, self._sources, self._assets = {}, {}, {}

    # reading ---------------------------------------------------------------------------------------------

    def _read_function(self, draft: Any, found: Findings, *, typed: bool) -> Any:
        """Return the draft with its fields and JSON synchronized, and an entry for each type parameter.

        Parameters
        ----------
        draft : FunctionDraft
        found : Findings
            Receives errors and missing entries.
        typed : bool
            Whether the draft comes from the browser.
        """
        before = self._taken
        other = draft.function != before.function
        if other or draft.type_arguments != before.type_arguments:
            self._look_errors = {}
        if typed and other and self._call is not None and draft.lead == "fields":
            draft = replace(draft, raw="", type_arguments=())  # they belonged to the previous function
        self._function, call = self._known(draft)
        last, self._call = self._call, call
        same = last is not None and call is not None and last.function.name == call.function.name
        draft = in_step(
            draft,
            None if call is None else call.layouts,
            found,
            before=last.layouts if same and last is not None else None,
            parse=lambda raw: parse_arguments(raw, Findings()),
            encode=lambda values: [] if call is None else call.encode(values),
            spell=arguments_text,
        )
        self._units = self._amounts(draft, found)
        if self._function is not None:
            wanted, got = len(self._function.abi.generic_type_params), len(draft.type_arguments)
            draft = replace(draft, type_arguments=(*draft.type_arguments, *[""] * (wanted - got)))
            if got > wanted:
                words = f"{self._function.name} takes {plural(wanted, 'type argument')}, got {got}"
                found.errors["type_arguments"] = words
        return draft

    def _function_fields(
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
        function, call, unknown = self._function, self._call, unknown_when or when
        hint = "type an address and part of a name, or any word"
        name = mono("Function", hint, when, search=True, placeholder=placeholder)
        types = Rows("Type arguments", item=mono("Type", placeholder="0x1::aptos_coin::AptosCoin"), when=unknown)
        if function is not None:
            abilities = [", ".join(param.constraints) for param in function.abi.generic_type_params]
            hints = tuple(f"must have {one}" if one else "any type" for one in abilities)
            types = replace(types, when=when, exactly=len(hints), hints=hints)
        fields: list[tuple[str | int, Part]] = [("function", name), ("type_arguments", types)]
        if call is None:
            return [*fields, ("raw", raw_field(unknown))]
        if not call.layouts:
            return [*fields, ("", Group("The function takes no arguments.", plain=True, when=when))]
        labels = call.function.labels if function is None else function.labels
        inner = [(place, _fields.field(layout, labels[place])) for place, layout in enumerate(call.layouts)]
        for place, unit in self._units.items():
            inner[place] = place, replace(inner[place][1], hint=unit)
        twin = Group("Arguments as JSON", fields=(("raw", raw_field(label="JSON")),), fold=True, when=when)
        return [*fields, ("arguments", Group("Arguments", fields=tuple(inner), when=when)), ("", twin)]

    def _leading(self, draft: FunctionDraft) -> ResolvedCall | None:
        """Return the call that checks the JSON; None if the fields were edited last."""
        return self._call if draft.lead == "raw" else None

    def _entered(self, draft: Any, name: str, value: Any) -> Any:
        match name:
            case "type_arguments":
                return replace(draft, type_arguments=tuple(_split_types(value)))
            case "arguments":
                return replace(draft, raw=value, lead="raw")
        return super()._entered(draft, name, value)

    def _trait_of(self, name: str, draft: Any) -> Any:
        match name:
            case "arguments":
                return draft.raw
            case "type_arguments":
                same = _split_types(self.type_arguments) == [text for text in draft.type_arguments if text.strip()]
                return self.type_arguments if same else "\n".join(draft.type_arguments)
        return super()._trait_of(name, draft)

    def _encoded(self, arguments: Sequence[Any]) -> Sequence[Any] | None:
        """Return arguments in the JSON form that the node accepts; None if the ABI is unknown or they do not fit."""
        with suppress(InputError, SchemaError):  # a request set by the user may not fit; the entry shows the error
            return None if self._call is None else self._call.encode(arguments)
        return None

    # what is asked of the node --------------------------------------------------------------------------

    def _known(self, draft: Any) -> tuple[ResolvedFunction | None, ResolvedCall | None]:
        """Return the function and call that a draft names, if their ABIs have been read."""
        if not draft.calls_function:
            return None, None
        try:
            name = str(FunctionId.parse(draft.function.strip()))
        except InputError:
            return None, None
        function = self._functions.get(name)
        types = None if function is None else given_types(draft.type_arguments, function)
        if function is None or types is None:
            return function, None
        return function, self._calls.get((name, types)) or self._calls.get((name, ("",) * len(types)))

    def _checked_words(self) -> str:
        if self._call is not None:
            called, types = self._call.function, ", ".join(map(str, self._call.kinds))
            return f"Matches {called.abi.name}({types}) at version {called.abis.version:,}"
        return "The node returned no ABI for this module, so the arguments were not checked."

    def _needs_look(self, *, good: bool, again: bool) -> bool:
        known = not self._look_errors and self._call is not None and all(self._call.type_arguments)
        return good and (again or not known)  # without an ABI, only the node can judge the entries

    def _look(self) -> None:
        """Read the ABI of the function, the layouts of its parameters, and the asset if one of them is an amount."""
        if not self._draft.calls_function:
            return
        with self._state():
            self._look_errors = {}
            typed, kind = self._draft.function, self._draft.kind
        place = "function"
        try:
            name = str(FunctionId.parse(typed.strip()))
            self._functions.pop(name, None)  # it may have been read as another kind of function
            function = find_function(self._asked, name, kind)
            with self._state():
                self._functions[name] = function
                self._take(self._draft)
                types = None if function is None else given_types(self._draft.type_arguments, function)
            place = "type_arguments"
            if function is not None and types is not None:
                self._together(function.modules_of(types))
                call, wrong = function.with_types(types), function.wrong_types(types)
                unbound = function.with_types([""] * len(types))  # its fields remain visible while a type is typed
                with self._state():
                    self._calls.setdefault((name, unbound.type_arguments), unbound)
                    if types == given_types(self._draft.type_arguments, function):
                        self._look_errors |= {f"type_arguments.{at}": words for at, words in wrong.items()}
                    if self._calls.get((name, types)) != call:
                        self._calls[name, types] = call
                amount = amount_of(self._draft, call)
                if amount is not None and amount[1] not in self._assets:
                    with suppress(ToolkitError):
                        self._assets = {**self._assets, amount[1]: self._asked.asset(amount[1])}
        except (InputError, SchemaError) as error:
            with self._state():
                if typed == self._draft.function:
                    self._look_errors = {place: str(error)}
        except ToolkitError as error:
            self._blame("node", str(error))
        with self._state():
            self._take(self._draft)

    def _amounts(self, draft: FunctionDraft, found: Findings) -> dict[int, str]:
        """Return the unit hint of the argument that is an amount, by position, and note its value in whole coins."""
        amount = amount_of(draft, self._call)
        about = None if amount is None else self._assets.get(amount[1])
        if amount is None or about is None or not about.symbol or about.decimals is None:
            return {}
        place, asset = amount
        typed = draft.arguments[place] if place < len(draft.arguments) else ""
        if isinstance(typed, str) and (units := _fields.read_leaf(U64, typed, "", Findings())) is not None:
            with suppress(TypeError):  # text that is not a number
                found.notes[f"arguments.{place}"] = f"= {Known(self._assets).words(units, asset)}"
        unit = "octas" if asset in GAS_COIN else "base units"
        return {place: f"in {unit} (1 {about.symbol} = {10**about.decimals:,})"}

    def _look_names(self) -> None:
        """Read the names of the function's parameters from its published source."""
        function = self._function
        if function is None or function.names:
            return
        called = FunctionId.parse(function.name)
        if called.address not in self._sources:
            self._sources[called.address] = published_source(self._asked, called.address)
        names = parameter_names(self._sources[called.address].get(called.module, ""), called.name)
        if len(names) == len(function.abi.params):
            with self._state():
                self._functions[function.name] = dataclasses.replace(function, names=names)
                self._take(self._draft)

    def _do_look(self, message: Message) -> None:
        super()._do_look(message)
        self._background.start("names", lambda: self._searches.start("names", self._look_names, again=True))

    def _remember(self) -> None:
        """Move the function to the top of the recently used functions."""
        if self._function is not None:
            hit = Hit(FunctionId.parse(self._function.name).wire, signature(self._function.abi))
            others = [used for used in _RECENT.get(self.node, []) if used[0].name != hit.name]
            _RECENT[self.node] = [(hit, self._function.abi), *others][:_MAX_RECENT]

    def _search(self, query: str) -> None:
        """Find functions that match a query; for an empty query, offer the most recently used functions."""
        owner, words = address_of(query) or _FRAMEWORK, query.strip().lower()
        kind = self._draft.kind
        used = [hit for hit, abi in _RECENT.get(self.node, []) if is_of(kind, abi)]
        found = [hit for hit in used if words in hit.name.lower()]
        error, total = "", 0
        if not words:
            found += _PLACES
        else:
            try:
                if owner not in self._modules:
                    pages = account_pages(self._asked, owner, "modules", self._asked.ledger().version)
                    self._modules[owner] = [module.abi for module in pages if module.abi is not None]
                modules = [module for listed in self._modules.values() for module in listed]
                names = {hit.name for hit in found}
                hits, total = matching(modules, query, kind)
                found += [hit for hit in hits if hit.name not in names]
            except ToolkitError as failure:
                error = str(failure)
        with self._state():
            self._hits = Hits(query, tuple(found), error, total)

    def _do_search(self, message: Message) -> None:
        self._searches.start("search", lambda: self._search(message.query), again=True)


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
