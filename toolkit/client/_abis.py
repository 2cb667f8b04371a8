"""The ABIs of modules by ledger version, and what is derived from them: layouts, and arguments as JSON."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeAlias, TypeVar

from toolkit._present.messages import MAX_NAMED, cut_text
from toolkit._present.text import plural
from toolkit.client._http import Outages
from toolkit.errors import Forbidden, InputError, NodeError, NodeUnreachable, NotFound, SchemaError, VersionPruned
from toolkit.move import decode_module_abi, parse_address, parse_type_tag, resolve_layout
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import substitute
from toolkit.move._values import encode_argument
from toolkit.wire._models import function_id

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from toolkit.move import FunctionAbi, Layout, ModuleAbi, TypeTag

T = TypeVar("T")
ModuleKey = tuple[str, str]
Abis: TypeAlias = "Mapping[ModuleKey, ModuleAbi]"
ModuleDigests = dict[ModuleKey, "bytes | None"]
# By version: the digests of the modules that a layout is made from, and the layout, or why there is none.
Layouts = dict[int, "tuple[ModuleDigests, Layout] | NodeError | NodeUnreachable | SchemaError"]


@dataclass(frozen=True, slots=True)
class ModuleLookup:
    """The result of looking up a module at one version.

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


_ABSENT = ModuleLookup(None, None)
_NOT_OFFERED = ModuleLookup(None, None, answered=False)

# Number of lookups without a usable answer after which no module is asked for; a gateway may fail once.
_MAX_UNUSABLE = 3

# Number of modules with failing lookups after which no other module is asked for, until their waits are over.
_MAX_FAILING = 3


@dataclass(slots=True)
class _Timeline:
    """The versions at which one module was looked up, in ascending order, and what was found."""

    versions: list[int] = field(default_factory=list)
    lookups: dict[int, ModuleLookup] = field(default_factory=dict)

    def add(self, version: int, lookup: ModuleLookup) -> None:
        if version not in self.lookups:
            insort(self.versions, version)
        self.lookups[version] = lookup

    def between(self, version: int) -> ModuleLookup | None:
        """Return the module at `version` if the known versions before and after it agree, else None."""
        if version in self.lookups:
            return self.lookups[version]
        place = bisect_left(self.versions, version)
        if place in {0, len(self.versions)}:
            return None
        before = self.lookups[self.versions[place - 1]]
        after = self.lookups[self.versions[place]]
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
        self._layouts: dict[TypeTag, CachedByModules[Layout]] = {}
        self._unusable: set[tuple[str, str, int]] = set()
        self._forbidden = False
        self._outages: Outages[ModuleKey] = Outages(clock)
        self._lock = threading.Lock()

    def at(self, version: int) -> AbisAt:
        """Return the modules at a version."""
        return AbisAt(self, version)

    def forget_absent(self) -> None:
        """Forget which modules do not exist or could not be looked up, so that they are looked up again."""
        with self._lock:
            for key, timeline in list(self._timelines.items()):
                if any(lookup.digest is None for lookup in timeline.lookups.values()):
                    del self._timelines[key]
            self._unusable.clear()
            self._forbidden = False
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
        return self.lookup(key, version).digest

    def lookup(self, key: ModuleKey, version: int) -> ModuleLookup:
        """Look up a module at a version; ask the node unless the nearest known versions agree.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails now, or failed a short time ago.
        """
        if (override := self._overrides.get(key)) is not None:
            return ModuleLookup(b"override", override)
        with self._lock:
            found = self._timelines[key].between(version)
        if found is not None:
            return found
        if (failure := self._outages.resting(key, limit=_MAX_FAILING)) is not None:
            raise failure.with_traceback(None)
        with self._outages.noted(key):
            return self._fetched(*key, version)

    def read(self, address: str, name: str, version: int) -> ModuleLookup:
        """Return the module at exactly this version, without inferring it from other versions or using overrides.

        Use it to find out whether a module changed: a change may have been reverted later.
        """
        address = parse_address(address)
        with self._lock:
            found = self._timelines[address, name].lookups.get(version)
        return found or self._fetched(address, name, version)

    def _fetched(self, address: str, name: str, version: int) -> ModuleLookup:
        if self._forbidden or (address, name, version) in self._unusable or len(self._unusable) >= _MAX_UNUSABLE:
            return _NOT_OFFERED
        try:
            answer = self._fetch(address, name, version)
        except (Forbidden, NotFound) as error:
            if error.error_code == "version_not_found":
                raise
            self._forbidden = isinstance(error, Forbidden)
            self._unusable.add((address, name, version))
            return _NOT_OFFERED
        self._unusable.clear()
        found = _ABSENT
        with self._lock:
            if answer is not None:
                digest = hashlib.blake2b(answer, digest_size=16).digest()
                if digest not in self._by_digest:
                    self._by_digest[digest] = abi_of(answer)
                found = ModuleLookup(digest, self._by_digest[digest])
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
        ordered, layouts = sorted(set(versions)), self.layouts(tag)
        found: Layouts = {}

        def state(version: int) -> Hashable:
            if version not in found:
                try:
                    found[version] = layouts.at(version)
                except (NodeError, NodeUnreachable, SchemaError) as error:
                    found[version] = error
            return VersionPruned if isinstance(found[version], VersionPruned) else id(found[version])

        starts = first_of_each(state, ordered)
        return {version: found[starts[bisect_right(starts, version) - 1]] for version in ordered}

    def layouts(self, tag: TypeTag) -> CachedByModules[Layout]:
        """Return the layouts of a type by version; versions with the same modules share one layout."""
        if (found := self._layouts.get(tag)) is None:
            found = self._layouts.setdefault(tag, CachedByModules(self, partial(resolve_layout, tag)))
        return found


@dataclass(frozen=True, slots=True)
class AbisAt:
    """The modules of a chain at one ledger version.

    Attributes
    ----------
    store : AbiStore
    version : int
    digests : dict of ModuleKey to bytes or None
        Of the modules looked up so far.
    """

    store: AbiStore
    version: int
    digests: ModuleDigests = field(default_factory=dict, compare=False, repr=False)

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, or None if it does not exist or is not known.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails.
        """
        return self.lookup(address, name).abi

    def lookup(self, address: str, name: str) -> ModuleLookup:
        """Look up a module: its ABI, that it does not exist, or that the node does not offer it.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup fails.
        """
        key = parse_address(address), name
        found = self.store.lookup(key, self.version)
        self.digests[key] = found.digest
        return found

    def layout(self, tag: TypeTag) -> Layout:
        """Resolve a type to its layout at this version.

        Raises
        ------
        NodeError, NodeUnreachable
            If the lookup of a module fails.
        """
        digests, layout = self.store.layouts(tag).at(self.version)
        self.digests.update(digests)
        return layout


class CachedByModules(Generic[T]):
    """A value derived from modules, computed once for all versions at which these modules are the same.

    Parameters
    ----------
    store : AbiStore
    derive : callable
        Derives the value from the modules of one version.
    """

    def __init__(self, store: AbiStore, derive: Callable[[AbisAt], T]) -> None:
        self._store, self._derive = store, derive
        self._entries: list[tuple[ModuleDigests, T]] = []

    def at(self, version: int) -> tuple[ModuleDigests, T]:
        """Return the digests of the modules from which the value for `version` was derived, and the value."""
        lookup = self._store.lookup
        for entry in reversed(self._entries):  # versions are often read in order: the latest is the likeliest
            if all(lookup(key, version).digest == digest for key, digest in entry[0].items()):
                return entry
        abis = self._store.at(version)
        entry = abis.digests, self._derive(abis)
        self._entries.append(entry)
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


def bytecode_of(answer: bytes, what: str = "module") -> bytes:
    """Return the bytecode in a module response; `what` names the response in messages.

    Raises
    ------
    SchemaError
        If the response has no bytecode.
    """
    document = parse_json(answer, what)
    try:
        return parse_hex(document["bytecode"])
    except (LookupError, TypeError, InputError):
        raise SchemaError(f"{what}: expected an object with `bytecode` in hex, got {answer[:60]!r}") from None


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
