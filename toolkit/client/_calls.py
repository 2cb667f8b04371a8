"""Stores module ABIs by ledger version, encodes views and table items with them, and decodes the responses."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from toolkit import frames
from toolkit._present.messages import MAX_NAMED, cut_text
from toolkit._present.notebook import facts_html
from toolkit._present.text import plural, short_addresses, visible
from toolkit.client._http import Answer, Outages, PreparedCall, Request, json_body, path
from toolkit.client._node_errors import needed_for
from toolkit.errors import Forbidden, InputError, NodeError, NodeUnreachable, NotFound, SchemaError, VersionPruned
from toolkit.move import Primitive, Vector, decode_module_abi, parse_address, parse_type_tag, resolve_layout
from toolkit.move._codecs import is_closed
from toolkit.move._ids import parse_table_handle
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import SIGNED, Reference, StructTag, TypeParameter, substitute, wire_type
from toolkit.move._values import decode_bcs, decode_json, encode_argument, encode_json
from toolkit.wire._bcs_requests import decode_view_answer, encode_view_request
from toolkit.wire._models import function_id, wire_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._reads import Reads
    from toolkit.move import FunctionAbi, Layout, ModuleAbi, TypeTag
    from toolkit.wire import EntryFunction, LedgerState, ViewFunction

T = TypeVar("T")
ModuleKey = tuple[str, str]
Abis: TypeAlias = "Mapping[ModuleKey, ModuleAbi]"
ModuleDigests = dict[ModuleKey, "bytes | None"]
# By version: the digests of the modules that a layout is made from, and the layout, or why there is none.
Layouts = dict[int, "tuple[ModuleDigests, Layout] | NodeError | NodeUnreachable | SchemaError"]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known about a module at one version.

    Attributes
    ----------
    digest : bytes or None
        Digest of the node's response; None if the module does not exist, or if this is not known.
    abi : ModuleAbi or None
    answered : bool
        Whether the node returned the module, or reported that it does not exist.
    """

    digest: bytes | None
    abi: ModuleAbi | None
    answered: bool = True

    @property
    def is_absent(self) -> bool:
        """Whether the node reported that the module does not exist."""
        return self.answered and self.digest is None


_ABSENT = Known(None, None)
_UNKNOWN = Known(None, None, answered=False)

# Number of lookups without a usable answer after which no module is asked for; a gateway may fail once.
_MAX_SILENT = 3

# Number of modules with failing lookups after which no other module is asked for, until their waits are over.
_MAX_FAILING = 3


@dataclass(slots=True)
class _Timeline:
    """The versions at which one module was looked up, in ascending order, and what was found."""

    versions: list[int] = field(default_factory=list)
    known: dict[int, Known] = field(default_factory=dict)

    def add(self, version: int, what: Known) -> None:
        if version not in self.known:
            insort(self.versions, version)
        self.known[version] = what

    def between(self, version: int) -> Known | None:
        """Return the module at `version` if the known versions before and after it agree, else None."""
        if version in self.known:
            return self.known[version]
        place = bisect_left(self.versions, version)
        if place in {0, len(self.versions)}:
            return None
        before = self.known[self.versions[place - 1]]
        after = self.known[self.versions[place]]
        return before if before.digest == after.digest else None


class AbiStore:
    """Module ABIs of one chain by address, module name and ledger version.

    If a module has the same bytecode at two versions, it is assumed to be the same at all versions between them. A
    change that was reverted in between goes unnoticed; use `read` if it matters. Reading n versions takes O(upgrades *
    log n) lookups.

    Parameters
    ----------
    fetch : callable (address, name, version) -> bytes or None
        Returns the node's ``{bytecode, abi}`` response, or None if the module does not exist. Raises Forbidden if the
        node does not offer modules, after which no module is requested again. Raises NotFound if a gateway responds
        instead of the node.
    overrides : mapping of (address, name) to ModuleAbi, optional
        ABIs to use at every version instead of the node's.
    clock : callable, optional
        Returns the time in seconds; replaced in tests.

    Notes
    -----
    A lookup that fails (no response, 429, 5xx) is not repeated for at least 30 s. Meanwhile, its failure is raised.
    """

    def __init__(
        self,
        fetch: Callable[[str, str, int], bytes | None],
        *,
        overrides: Abis | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._overrides = {(parse_address(at), name): abi for (at, name), abi in (overrides or {}).items()}
        self._timelines: defaultdict[ModuleKey, _Timeline] = defaultdict(_Timeline)
        self._by_digest: dict[bytes, ModuleAbi | None] = {}
        self._layouts: dict[TypeTag, Made[Layout]] = {}
        self._silent: set[tuple[str, str, int]] = set()
        self._refused = False
        self._outages: Outages[ModuleKey] = Outages(clock)
        self._lock = threading.Lock()

    def at(self, version: int) -> AbisAt:
        """Return the modules at a version."""
        return AbisAt(self, version)

    def forget_absent(self) -> None:
        """Forget which modules do not exist or could not be looked up, so that they are looked up again."""
        with self._lock:
            for key, timeline in list(self._timelines.items()):
                if any(known.digest is None for known in timeline.known.values()):
                    del self._timelines[key]
            self._silent.clear()
            self._refused = False
            self._outages.clear()

    def prepare(self, address: str, name: str, versions: Sequence[int]) -> None:
        """Look up a module at sorted versions by bisection, to avoid a lookup at each version.

        Errors are ignored here: the reads that need the module report them, row by row.
        """
        if len(versions) > 1:
            with contextlib.suppress(NodeError, NodeUnreachable, SchemaError):
                first_of_each(partial(self.digest, (parse_address(address), name)), versions)

    def digest(self, key: ModuleKey, version: int) -> bytes | None:
        """Return the digest of a module at a version; None if it does not exist, or if this is not known."""
        return self.known(key, version).digest

    def known(self, key: ModuleKey, version: int) -> Known:
        """Return what is known about a module at a version; ask the node unless the nearest known versions agree.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails now, or failed a short time ago.
        """
        if (override := self._overrides.get(key)) is not None:
            return Known(b"override", override)
        with self._lock:
            found = self._timelines[key].between(version)
        if found is not None:
            return found
        if (failure := self._outages.resting(key, limit=_MAX_FAILING)) is not None:
            raise failure.with_traceback(None)
        with self._outages.noted(key):
            return self._asked(*key, version)

    def read(self, address: str, name: str, version: int) -> Known:
        """Return the module at exactly this version, without inferring it from other versions or using overrides.

        Use it to find out whether a module changed: a change may have been reverted later.
        """
        address = parse_address(address)
        with self._lock:
            found = self._timelines[address, name].known.get(version)
        return found or self._asked(address, name, version)

    def _asked(self, address: str, name: str, version: int) -> Known:
        if self._refused or (address, name, version) in self._silent or len(self._silent) >= _MAX_SILENT:
            return _UNKNOWN
        try:
            answer = self._fetch(address, name, version)
        except (Forbidden, NotFound) as error:
            if error.error_code == "version_not_found":
                raise
            self._refused = isinstance(error, Forbidden)
            self._silent.add((address, name, version))
            return _UNKNOWN
        self._silent.clear()
        found = _ABSENT
        with self._lock:
            if answer is not None:
                digest = hashlib.blake2b(answer, digest_size=16).digest()
                if digest not in self._by_digest:
                    self._by_digest[digest] = abi_of(answer)
                found = Known(digest, self._by_digest[digest])
            self._timelines[address, name].add(version, found)
        return found

    def layouts_at(self, tag: TypeTag, versions: Iterable[int]) -> Layouts:
        """Resolve a type to its layout at many versions, by bisection.

        Parameters
        ----------
        tag : TypeTag
        versions : iterable of int

        Returns
        -------
        dict of int to (dict, Layout) or error
            For each version, the digests of the modules that the layout is built from, and the layout; or the error, if
            a module cannot be looked up, the node has pruned it, or the response is not a module.
        """
        ordered, made = sorted(set(versions)), self.layouts(tag)
        found: Layouts = {}

        def state(version: int) -> Hashable:
            if version not in found:
                try:
                    found[version] = made.found(version)
                except (NodeError, NodeUnreachable, SchemaError) as error:
                    found[version] = error
            return VersionPruned if isinstance(found[version], VersionPruned) else id(found[version])

        starts = first_of_each(state, ordered)
        return {version: found[starts[bisect_right(starts, version) - 1]] for version in ordered}

    def layouts(self, tag: TypeTag) -> Made[Layout]:
        """Return the layouts of a type by version; versions with the same modules share one layout."""
        return self._layouts.get(tag) or self._layouts.setdefault(tag, Made(self, partial(resolve_layout, tag)))


@dataclass(frozen=True, slots=True)
class AbisAt:
    """The modules of a chain at one ledger version.

    Attributes
    ----------
    store : AbiStore
    version : int
    asked : dict of ModuleKey to bytes or None
        The modules looked up so far, with their digests.
    """

    store: AbiStore
    version: int
    asked: dict[ModuleKey, bytes | None] = field(default_factory=dict, compare=False, repr=False)

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, or None if it does not exist or is not known.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails.
        """
        return self.known(address, name).abi

    def known(self, address: str, name: str) -> Known:
        """Return what is known about a module: its ABI, that it does not exist, or that the node does not offer it.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails.
        """
        key = parse_address(address), name
        known = self.store.known(key, self.version)
        self.asked[key] = known.digest
        return known

    def layout(self, tag: TypeTag) -> Layout:
        """Resolve a type to its layout at this version.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup of a module fails.
        """
        modules, layout = self.store.layouts(tag).found(self.version)
        self.asked.update(modules)
        return layout


class Made(Generic[T]):
    """A value derived from modules, computed once for all versions at which these modules are the same.

    Parameters
    ----------
    store : AbiStore
    make : callable
        Derives the value from the modules of one version.
    """

    def __init__(self, store: AbiStore, make: Callable[[AbisAt], T]) -> None:
        self._store, self._make = store, make
        self._made: list[tuple[dict[ModuleKey, bytes | None], T]] = []

    def found(self, version: int) -> tuple[dict[ModuleKey, bytes | None], T]:
        """Return the digests of the modules from which the value for `version` was derived, and the value."""
        known = self._store.known
        for entry in reversed(self._made):  # versions are often read in order: the latest is the likeliest
            if all(known(key, version).digest == digest for key, digest in entry[0].items()):
                return entry
        abis = self._store.at(version)
        entry = abis.asked, self._make(abis)
        self._made.append(entry)
        return entry


def first_of_each(state: Callable[[int], Hashable], versions: Sequence[int]) -> list[int]:
    """Return the first version of each run of sorted versions that have the same state.

    The runs are found by bisection. If two versions have the same state, all versions between them are assumed to
    have it.

    Examples
    --------
    >>> first_of_each(lambda version: version >= 150, range(0, 1_000, 100))
    [0, 200]
    """

    def changes(low: int, high: int) -> list[int]:
        if state(versions[low]) == state(versions[high]):
            return []
        if high - low == 1:
            return [versions[high]]
        middle = (low + high) // 2
        return [*changes(low, middle), *changes(middle, high)]

    return [*versions[:1], *changes(0, len(versions) - 1)] if versions else []


def abi_of(answer: bytes) -> ModuleAbi | None:
    """Return the ABI in a module response, or None if the node could not parse the bytecode."""
    document = parse_json(answer, "module")
    return None if isinstance(document, dict) and document.get("abi") is None else decode_module_abi(document)


class ListedModule(NamedTuple):
    """A module of an account: its ABI (None if the node cannot parse the bytecode), and its code size."""

    abi: ModuleAbi | None
    size_bytes: int


def function_abi(name: str, abis: AbisAt) -> FunctionAbi | None:
    """Return the ABI of a function, or None if the module or the function is not known."""
    function = function_id(name)
    module = abis.module_abi(function.address, function.module)
    return None if module is None else module.function(function.name)


def parameter_layouts(function: FunctionAbi, type_arguments: Sequence[str], abis: AbisAt) -> list[Layout]:
    """Return the layouts of a function's parameters without signers, with the type arguments filled in."""
    given = tuple(parse_type_tag(text) for text in type_arguments)
    return [abis.layout(substitute(tag, given)) for tag in function.parameters]


def encode_arguments(
    function: FunctionAbi, type_arguments: Sequence[str], arguments: Sequence[Any], abis: AbisAt, *, where: str
) -> list[Any]:
    """Encode arguments according to a function's ABI.

    Parameters
    ----------
    function : FunctionAbi
        The function's ABI at the version that is read.
    type_arguments : sequence of str
    arguments : sequence
        Python values, without signers.
    abis : AbisAt
        The modules in which parameter types are looked up.
    where : str
        The function's name, for messages.

    Returns
    -------
    list
        JSON values: u8 to u32 as numbers, larger integers as strings.

    Raises
    ------
    InputError
        If the number of type arguments or arguments does not match the function.
    SchemaError
        If an argument does not fit its parameter.
    """
    expected = len(function.generic_type_params)
    if len(type_arguments) != expected:
        advice = "; a type is such as 0x1::aptos_coin::AptosCoin" if expected > len(type_arguments) else ""
        raise InputError(f"{where}: expected {plural(expected, 'type argument')}, got {len(type_arguments)}{advice}")
    layouts = parameter_layouts(function, type_arguments, abis)
    if len(arguments) != len(layouts):
        given = tuple(parse_type_tag(text) for text in type_arguments)
        words = ", ".join(str(substitute(tag, given)) for tag in function.parameters)
        kinds = f" ({cut_text(words, MAX_NAMED)})" if words else ""
        raise InputError(f"{where}: expected {plural(len(layouts), 'argument')}{kinds}, got {len(arguments)}")
    return [
        encode_argument(layout, value, where=f"{where} arguments[{index}]")
        for index, (layout, value) in enumerate(zip(layouts, arguments, strict=True))
    ]


@dataclass(frozen=True, slots=True, repr=False)
class ViewResult:
    """The result of a view function.

    Attributes
    ----------
    call : ViewFunction
    values : tuple
        The values that the function returned, as Python values.
    types : tuple of str
        Move types of the values; empty if the module's ABI is not known.
    gas_used : int or None
        Gas units; None if the node does not report them.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it responded.
    layouts : tuple of Layout or None
        The layouts of the values; None if the module's ABI is not known.
    raw : str
        The values as JSON text.

    Examples
    --------
    >>> import toolkit
    >>> result = toolkit.connect().at(4_000).view("0x1::timestamp::now_seconds")
    >>> result.types, result.ledger_version
    (('u64',), 4000)
    """

    call: ViewFunction
    values: tuple[Any, ...]
    types: tuple[str, ...]
    gas_used: int | None
    ledger_version: int
    ledger: LedgerState | None
    layouts: tuple[Layout, ...] | None = field(repr=False)
    raw: str = field(repr=False)

    @property
    def value(self) -> Any:
        """The return value, or a tuple if the function does not return exactly one."""
        return self.values[0] if len(self.values) == 1 else self.values

    @property
    def typing(self) -> str:
        """Source of the types: ``abi``, or ``inferred`` (from JSON) if the module's ABI is not known."""
        return "inferred" if self.layouts is None else "abi"

    def __repr__(self) -> str:
        gas = "" if self.gas_used is None else f", {plural(self.gas_used, 'gas unit')}"
        value = visible(short_addresses(repr(self.value)), 200)
        return f"<ViewResult {short_addresses(self.call.function)}: {value}{gas}, version {self.ledger_version:,}>"

    def _repr_html_(self) -> str:
        types = ", ".join(self.types) or "unknown; inferred from JSON"
        gas = None if self.gas_used is None else plural(self.gas_used, "gas unit")
        facts = [("value", self.value), ("type", types), ("gas", gas), ("ledger version read", self.ledger_version)]
        return facts_html(self.call.function, facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the result as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns with one column per field.

        Returns
        -------
        DataFrame, shape (1, 8 + return values)
            One typed column per return value.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        from toolkit.client._accounts import note_amounts

        frame = frames.view_frame([frames.ViewRecord.of(None, self.ledger_version, self)], flatten=flatten)
        note_amounts(frame, {"": self.call})
        return frame


@dataclass(frozen=True, slots=True, repr=False)
class TableItem:
    """One item of a table.

    Attributes
    ----------
    handle : str
        Table handle: 0x and 64 hex digits.
    key, value : object
        The key and the value as Python values.
    ledger_version : int
        The version that was read.
    ledger : LedgerState or None
        The node's head when it responded.
    key_layout, value_layout : Layout
        Layouts of the key and the value.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> handle = node.view("0xcafe::registry::handle").value
    >>> item = node.table_item(handle, "alice", owner="0xcafe")
    >>> item.key, item.value["registered_at"], item.ledger_version
    ('alice', 1767334464, 4999)
    """

    handle: str
    key: Any
    value: Any
    ledger_version: int
    ledger: LedgerState | None
    key_layout: Layout = field(repr=False)
    value_layout: Layout = field(repr=False)

    def __repr__(self) -> str:
        key, value = (visible(short_addresses(repr(one)), 200) for one in (self.key, self.value))
        return f"<TableItem of {short_addresses(self.handle)}: {key} -> {value}, version {self.ledger_version:,}>"

    def _repr_html_(self) -> str:
        facts = [("key", self.key), ("value", self.value), ("ledger version read", self.ledger_version)]
        return facts_html(f"item of table {self.handle}", facts)

    def to_frame(self, *, flatten: bool = False) -> pd.DataFrame:
        """Return the item as a frame.

        Parameters
        ----------
        flatten : bool, default False
            Replace struct columns with one column per field.

        Returns
        -------
        DataFrame, shape (1, >= 10)
            The key and the value are typed.

        Raises
        ------
        SchemaError
            If a value does not fit the type of its column.
        """
        record = frames.TableItemRecord.of(self.key, self.ledger_version, self)
        return frames.item_frame([record], key_layout=self.key_layout, value_layout=self.value_layout, flatten=flatten)


Encoding = Literal["json", "bcs"]
JSON = "application/json"
_BCS = "application/x-bcs"
_OBJECT = "0x1::object::Object"


# encodings -----------------------------------------------------------------------------------------------------------


def fit_bcs(layouts: Sequence[Layout] | None) -> bool:
    """Return whether values can be sent in BCS, that is, whether every part of every type is known."""
    return layouts is not None and all(map(is_closed, layouts))


def only_in_bcs(call: ViewFunction | EntryFunction, function: FunctionAbi) -> bool:
    """Return whether nodes accept a call only in BCS, regardless of the connection's encoding.

    In JSON requests, nodes treat a value whose type is a type parameter as an address, which fails or yields a wrong
    value, and reject signed integers as type arguments. An ``Object<T>`` parameter is an address whatever ``T`` is.
    """
    values = [tag for tag in function.parameters if not (isinstance(tag, StructTag) and tag.base == _OBJECT)]
    generic = any(_mentions(tag, TypeParameter) for tag in (*values, *function.results))
    return generic or any(_mentions(parse_type_tag(text), Primitive) for text in call.type_arguments)


def _mentions(tag: TypeTag, kind: type[TypeParameter | Primitive]) -> bool:
    """Return whether a type contains a type parameter or a signed integer, whichever `kind` selects."""
    match tag:
        case Vector(inner) | Reference(inner, _):
            return _mentions(inner, kind)
        case StructTag(type_arguments=parts):
            return any(_mentions(part, kind) for part in parts)
        case Primitive(name):
            return kind is Primitive and name in SIGNED
    return kind is TypeParameter


def json_arguments(call: ViewFunction | EntryFunction, function: FunctionAbi | None, abis: AbisAt) -> Sequence[Any]:
    """Return the arguments of a call as JSON values."""
    if function is None:
        return wire_argument(list(call.arguments))  # type: ignore[no-any-return]  # a list gives a list
    return encode_arguments(function, call.type_arguments, call.arguments, abis, where=function_id(call.function).wire)


def _json_values(function: str, answer: Answer, layouts: tuple[Layout, ...] | None) -> tuple[tuple[Any, ...], str]:
    """Decode the JSON response of a view; return the values and their JSON text."""
    items = parse_json(answer.body, function)
    if not isinstance(items, list):
        got = f"{type(items).__name__}: {answer.body[:60]!r}"
        raise SchemaError(f"{function}: expected a JSON array of return values, got {got}")
    raw = answer.body.decode("utf-8", "replace").strip()
    raw = raw[1:-1].strip() if len(items) == 1 else raw
    if layouts is None:
        return tuple(items), raw
    if len(layouts) != len(items):
        expected = f"expected {plural(len(layouts), 'return value')} according to its ABI"
        raise SchemaError(f"{function}: {expected}, but the response has {len(items)}")
    places = enumerate(zip(layouts, items, strict=True))
    try:
        return tuple(decode_json(*pair, where=f"value {place}") for place, pair in places), raw
    except SchemaError as error:
        raise SchemaError(f"{function} return {error}", column=error.column) from None


def _bcs_values(function: str, answer: Answer, layouts: tuple[Layout, ...] | None) -> tuple[tuple[Any, ...], str]:
    """Decode the BCS response of a view whose types are all known; return the values and their JSON text."""
    layouts, body = layouts or (), answer.bcs(function)
    try:
        values = tuple(decode_view_answer(body, layouts))
    except SchemaError as error:
        which = ": " if error.column is None else " return "  # of all values, or of one of them
        raise SchemaError(f"{function}{which}{error}; the response is {body[:40]!r}", column=error.column) from None
    shown = [encode_json(layout, value) for layout, value in zip(layouts, values, strict=True)]
    return values, msgspec.json.encode(shown[0] if len(shown) == 1 else shown).decode()


# views and table items -----------------------------------------------------------------------------------------------


Types = TypeVar("Types")


@dataclass(frozen=True, slots=True)
class _Form(Generic[Types]):
    """The form of a call at all versions that have the same modules: its request without the version, and its types."""

    request: Request
    answers_bcs: bool
    types: Types


class _PreparedRead(Generic[T, Types]):
    """A read of state that is prepared once and can be sent at any version."""

    _gas = False  # `PreparedCall.gas`: only the responses of views include it

    def __init__(self, node: Reads, asked: str) -> None:
        self._node, self._asked = node, asked
        self._forms = Made(node.abis, self._form)

    def at(self, version: int | None) -> PreparedCall[T]:
        """Prepare the call at a version; None is the head.

        Raises
        ------
        InputError, SchemaError
            If the call does not fit its types.
        NodeError, NodeUnreachable
            If a module cannot be looked up.
        """
        encoded_by = (self._node.newest or self._node.ledger()).version if version is None else version
        try:
            _, form = self._forms.found(encoded_by)
        except (VersionPruned, NotFound) as error:  # the lookup of a module at a version that cannot be read
            raise needed_for(self._asked, error) from None
        except (NodeError, NodeUnreachable):
            if (untyped := self._untyped()) is None:
                raise
            form = untyped
        request = form.request
        if version is not None:
            url = f"{request.url}?ledger_version={version}"  # the URLs of reads have no query
            request = replace(request, url=url, ledger_version=version)
        asked = self._asked if version is None else f"{self._asked} at version {version:,}"
        finish = partial(self._finished, form, version, encoded_by)
        return PreparedCall(request, asked, finish, version, self._gas)

    def _finished(self, form: _Form[Types], version: int | None, encoded_by: int, answer: Answer) -> T:
        ledger, types, read = answer.parsed.ledger, form.types, encoded_by
        if version is None and ledger is not None and ledger.version != read:
            read = ledger.version
            types = self._types(self._node.abis.at(read))
        return self._result(answer, types, read, bcs=form.answers_bcs)

    def _untyped(self) -> _Form[Types] | None:
        """Return the form of the call without its types, or None if it needs them."""
        return None

    def _form(self, abis: AbisAt) -> _Form[Types]:
        raise NotImplementedError

    def _types(self, abis: AbisAt) -> Types:
        raise NotImplementedError

    def _result(self, answer: Answer, types: Types, version: int, *, bcs: bool) -> T:
        raise NotImplementedError


class _Signature(NamedTuple):
    """The ABI and the return types of a view; `function` and `layouts` are None if no ABI is known."""

    function: FunctionAbi | None = None
    types: tuple[str, ...] = ()
    layouts: tuple[Layout, ...] | None = None


class PreparedView(_PreparedRead[ViewResult, _Signature]):
    """A view that can be sent at any version.

    Parameters
    ----------
    node : Reads
    call : ViewFunction
    typed : bool, default True
        If False, a call without arguments is also sent if its module cannot be looked up: for its gas, and its JSON.
    """

    _gas = True

    def __init__(self, node: Reads, call: ViewFunction, *, typed: bool = True) -> None:
        super().__init__(node, f"view {call.function}")
        self._call, self._typed = call, typed

    def layouts(self, version: int) -> tuple[Layout, ...] | None:
        """Return the layouts of the return values at a version, or None if no ABI is known."""
        return self._types(self._node.abis.at(version)).layouts

    def _untyped(self) -> _Form[_Signature] | None:
        if self._typed or self._call.arguments:
            return None
        body = self._call.to_wire() | {"function": function_id(self._call.function).wire}
        return _Form(self._node.request("POST", "/view", body=json_body(body)), answers_bcs=False, types=_Signature())

    def _form(self, abis: AbisAt) -> _Form[_Signature]:
        call, signature = self._call, self._types(abis)
        function, returned, asks_bcs, answers_bcs = signature.function, signature.layouts or (), False, False
        parameters: list[Layout] = []
        if function is not None:
            needed = only_in_bcs(call, function)
            parameters = parameter_layouts(function, call.type_arguments, abis)
            answers_bcs = (needed or self._node.encoding == "bcs") and fit_bcs((*parameters, *returned))
            # What cannot be read from BCS, such as an enum without its variants, a node may still print in JSON.
            asks_bcs = (needed or answers_bcs) and fit_bcs(parameters)
        arguments = json_arguments(call, function, abis)  # also for a call in BCS: it checks them
        if asks_bcs:
            content, body = "application/x.aptos.view_function+bcs", encode_view_request(call, parameters)
        else:
            types = [wire_type(parse_type_tag(text)) for text in call.type_arguments]
            called = {"function": function_id(call.function).wire, "type_arguments": types, "arguments": arguments}
            content, body = JSON, json_body(called)
        accept = _BCS if answers_bcs else JSON
        request = self._node.request("POST", "/view", body=body, content=content, accept=accept)
        return _Form(request, answers_bcs, signature)

    def _types(self, abis: AbisAt) -> _Signature:
        if (function := function_abi(self._call.function, abis)) is None:
            return _Signature()
        given = tuple(parse_type_tag(text) for text in self._call.type_arguments)
        tags = [substitute(tag, given) for tag in function.results]
        return _Signature(function, tuple(map(str, tags)), tuple(map(abis.layout, tags)))

    def _result(self, answer: Answer, types: _Signature, version: int, *, bcs: bool) -> ViewResult:
        values, raw = (_bcs_values if bcs else _json_values)(self._call.function, answer, types.layouts)
        gas, ledger = answer.parsed.gas_used, answer.parsed.ledger
        return ViewResult(self._call, values, types.types, gas, version, ledger, types.layouts, raw)


class PreparedItem(_PreparedRead[TableItem, tuple["Layout", "Layout"]]):
    """A read of a table item that can be sent at any version.

    Raises
    ------
    InputError
        If the handle or a type cannot be parsed.
    """

    def __init__(self, node: Reads, handle: str, *, key: Any, key_type: str, value_type: str) -> None:
        self._handle, self._key = parse_table_handle(handle), key
        self._key_tag, self._value_tag = parse_type_tag(key_type), parse_type_tag(value_type)
        super().__init__(node, f"item {visible(repr(key), 60)} of table {self._handle}")

    def _form(self, abis: AbisAt) -> _Form[tuple[Layout, Layout]]:
        key_layout, value_layout = types = self._types(abis)
        key = encode_argument(key_layout, self._key, where="table key")
        body = {"key_type": wire_type(self._key_tag), "value_type": wire_type(self._value_tag), "key": key}
        bcs = self._node.encoding == "bcs" and fit_bcs([value_layout])
        where, accept = path("tables", self._handle, "item"), _BCS if bcs else JSON
        return _Form(self._node.request("POST", where, body=json_body(body), accept=accept), bcs, types)

    def _types(self, abis: AbisAt) -> tuple[Layout, Layout]:
        return abis.layout(self._key_tag), abis.layout(self._value_tag)

    def _result(self, answer: Answer, types: tuple[Layout, Layout], version: int, *, bcs: bool) -> TableItem:
        body = answer.bcs(self._asked) if bcs else answer.body
        document: Any = body if bcs else parse_json(body, self._asked)
        try:
            value = (decode_bcs if bcs else decode_json)(types[1], document, where="table item")
        except SchemaError as error:
            end = f"; the response is {body[:40]!r}" if bcs else ""
            raise SchemaError(f"{self._asked}: {error}{end}", column=error.column) from None
        return TableItem(self._handle, self._key, value, version, answer.parsed.ledger, *types)
