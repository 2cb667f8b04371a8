"""Module ABIs by ledger version, read with few requests, and arguments encoded by them."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from toolkit._present.messages import MAX_NAMED, cut_text
from toolkit.client._retry import Outages, is_outage
from toolkit.errors import (
    Forbidden,
    InputError,
    NodeError,
    NodeUnreachable,
    NotFound,
    SchemaError,
    VersionPruned,
)
from toolkit.move import FunctionId, Layout, ModuleAbi, decode_module_abi, parse_address, parse_type_tag, resolve_layout
from toolkit.move._json_text import parse_json
from toolkit.move._type_tags import substitute
from toolkit.move._values import encode_argument

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

    from toolkit.move import FunctionAbi, TypeTag


T = TypeVar("T")
ModuleKey = tuple[str, str]
ModuleDigests = dict[ModuleKey, "bytes | None"]


@dataclass(frozen=True, slots=True)
class Known:
    """A module at one version, as far as it is known.

    Attributes
    ----------
    digest : bytes or None
        Digest of the node's answer; None if the module does not exist, or if that is not known.
    abi : ModuleAbi or None
    answered : bool
        Whether the node returned the module, or reported that it does not exist.
    """

    digest: bytes | None
    abi: ModuleAbi | None
    answered: bool = True


_ABSENT = Known(None, None)
_UNKNOWN = Known(None, None, answered=False)

# Number of look-ups without a usable answer after which no module is asked for; a gateway may fail once.
_MAX_SILENT = 3

# Number of modules with failing look-ups after which no other module is asked for, until their waits are over.
_MAX_FAILING = 3


@dataclass(slots=True)
class _Timeline:
    """The versions at which one module was looked up, in order."""

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

    If a module has the same bytecode at two versions, it is taken to be the same at all versions between them. A
    module that was changed and changed back in between is not noticed; use `read` if that matters. Reading n versions
    takes O(upgrades * log n) look-ups.

    Parameters
    ----------
    fetch : callable (address, name, version) -> bytes or None
        Returns the ``{bytecode, abi}`` answer of the node, None if the module does not exist. Raises Forbidden if the
        node does not offer modules: then none is asked for again. Raises NotFound if a gateway answers instead.
    overrides : mapping of (address, name) to ModuleAbi, optional
        ABIs to use at every version instead of the node's.
    clock : callable, optional
        Seconds; replaced in tests.

    Notes
    -----
    A look-up that fails (no answer, 429, 5xx) is not repeated for at least 30 s. The module counts as not known
    meanwhile, and `failure` returns the reason.
    """

    def __init__(
        self,
        fetch: Callable[[str, str, int], bytes | None],
        *,
        overrides: Mapping[ModuleKey, ModuleAbi] | None = None,
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

    def at(self, version: int, *, lenient: bool = False) -> AbisAt:
        """Return the modules at a version.

        Parameters
        ----------
        version : int
        lenient : bool, default False
            Treat a module whose look-up fails as not known. By default the failure is raised.
        """
        return AbisAt(self, version, lenient)

    def failure(self, modules: Mapping[ModuleKey, bytes | None]) -> NodeError | NodeUnreachable | None:
        """Return why a look-up of one of these modules failed, None if none did.

        Parameters
        ----------
        modules : mapping of ModuleKey to bytes or None
            Modules with their digests, as in `AbisAt.asked`.
        """
        failures = (self._outages.last(key) for key, digest in modules.items() if digest is None)
        return next((failure for failure in failures if failure is not None), None)

    def ask_again(self, versions: Sequence[int]) -> None:
        """Repeat the look-ups that failed, at sorted versions and without a wait."""
        for address, name in self._outages.ask_again():
            self.prepare(address, name, versions)

    def prepare(self, address: str, name: str, versions: Sequence[int]) -> None:
        """Look a module up at sorted versions by bisection, so that it need not be looked up at each of them.

        Errors are ignored here: the reads that need the module report them, row by row.
        """
        if len(versions) > 1:
            with contextlib.suppress(NodeError, NodeUnreachable, SchemaError):
                first_of_each(partial(self.digest, (parse_address(address), name)), versions)

    def digest(self, key: ModuleKey, version: int) -> bytes | None:
        """Return the digest of a module at a version; None if it does not exist, or if that is not known."""
        return self.known_by_key(key, version).digest

    def known(self, address: str, name: str, version: int) -> Known:
        """Return a module at a version; the node is asked if the known versions around it differ.

        A module whose look-up fails counts as not known for a while; see `failure`.
        """
        return self.known_by_key((parse_address(address), name), version)

    def known_by_key(self, key: ModuleKey, version: int) -> Known:
        """Return a module as `known` does, by an address in its canonical form and a name."""
        override = self._overrides.get(key)
        if override is not None:
            return Known(b"override", override)
        with self._lock:
            found = self._timelines[key].between(version)
        return found or self._asked_if_working(*key, version)

    def _asked_if_working(self, address: str, name: str, version: int) -> Known:
        key = (address, name)
        if self._outages.resting(key) is not None:
            return _UNKNOWN
        resting = self._outages.all_resting()
        if len(resting) >= _MAX_FAILING:
            self._outages.note(key, resting[0])
            return _UNKNOWN
        try:
            with self._outages.noted(key):
                return self._asked(address, name, version)
        except (NodeError, NodeUnreachable) as error:
            if not is_outage(error):
                raise
            return _UNKNOWN

    def read(self, address: str, name: str, version: int) -> Known:
        """Return the module at exactly this version, without a conclusion from other versions and without overrides.

        Use it to find out whether a module changed: it may have been changed and changed back.
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
        with self._lock:
            found = _ABSENT if answer is None else self._decoded(answer)
            self._timelines[address, name].add(version, found)
        return found

    def _decoded(self, answer: bytes) -> Known:
        digest = hashlib.blake2b(answer, digest_size=16).digest()
        if digest not in self._by_digest:
            self._by_digest[digest] = abi_of(answer)
        return Known(digest, self._by_digest[digest])

    def layouts_at(
        self, tag: TypeTag, versions: Iterable[int]
    ) -> dict[int, tuple[ModuleDigests, Layout] | VersionPruned | SchemaError]:
        """Resolve a type to its layout at many versions, by bisection.

        Parameters
        ----------
        tag : TypeTag
        versions : iterable of int

        Returns
        -------
        dict of int to (dict, Layout) or error
            By version: the digests of the modules that the layout is made from, for `failure`, and the layout. An error
            for a version whose modules the node has pruned, or for which its answer is not a module.
        """
        ordered, made = sorted(set(versions)), self.layouts(tag)
        found: dict[int, tuple[ModuleDigests, Layout] | VersionPruned | SchemaError] = {}

        def state(version: int) -> Hashable:
            if version not in found:
                try:
                    found[version] = made.found(version)
                except (VersionPruned, SchemaError) as error:
                    found[version] = error
            return VersionPruned if isinstance(found[version], VersionPruned) else id(found[version])

        starts = first_of_each(state, ordered)
        return {version: found[starts[bisect_right(starts, version) - 1]] for version in ordered}

    def layouts(self, tag: TypeTag) -> Made[Layout]:
        """Return the layouts of a type; equal modules give one and the same."""
        made = self._layouts.get(tag)
        return made or self._layouts.setdefault(tag, Made(self, partial(resolve_layout, tag)))


@dataclass(frozen=True, slots=True)
class AbisAt:
    """The modules of a chain at one ledger version.

    Attributes
    ----------
    store : AbiStore
    version : int
    lenient : bool
        Whether a module whose look-up fails counts as not known. If False, the failure is raised.
    asked : dict of ModuleKey to bytes or None
        The modules that were asked for so far, with their digests.
    """

    store: AbiStore
    version: int
    lenient: bool = False
    asked: dict[ModuleKey, bytes | None] = field(default_factory=dict, compare=False, repr=False)

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, None if it does not exist.

        Raises
        ------
        NodeError, NodeUnreachable
            If the look-up fails and `lenient` is False.
        """
        return self.known(address, name).abi

    def known(self, address: str, name: str) -> Known:
        """Return a module as far as it is known, which is not only its ABI: it may not exist, or not be offered.

        Raises
        ------
        NodeError, NodeUnreachable
            If the look-up fails and `lenient` is False.
        """
        key = parse_address(address), name
        known = self.store.known_by_key(key, self.version)
        self._note({key: known.digest})
        return known

    def layout(self, tag: TypeTag) -> Layout:
        """Resolve a type to its layout at this version.

        Raises
        ------
        NodeError, NodeUnreachable
            If the look-up of a module fails and `lenient` is False.
        """
        modules, layout = self.store.layouts(tag).found(self.version)
        self._note(modules)
        return layout

    def _note(self, modules: Mapping[ModuleKey, bytes | None]) -> None:
        self.asked.update(modules)
        failure = None if self.lenient else self.store.failure(modules)
        if failure is not None:
            raise failure.with_traceback(None)


class Made(Generic[T]):
    """A value that is made from modules: once for all versions at which these modules are the same.

    Parameters
    ----------
    store : AbiStore
    make : callable
        Makes the value from the modules of one version.
    """

    def __init__(self, store: AbiStore, make: Callable[[AbisAt], T]) -> None:
        self._store = store
        self._make = make
        self._made: list[tuple[dict[ModuleKey, bytes | None], T]] = []

    def at(self, version: int) -> T:
        """Return the value for `version`."""
        return self.found(version)[1]

    def found(self, version: int) -> tuple[dict[ModuleKey, bytes | None], T]:
        """Return the digests of the modules that the value for `version` was made from, and the value.

        Modules whose look-up fails count as not known; `AbiStore.failure` of the digests returns the reason.
        """
        known = self._store.known_by_key
        for entry in reversed(self._made):  # versions are often read in order: the latest is the likeliest
            if all(known(key, version).digest == digest for key, digest in entry[0].items()):
                return entry
        abis = self._store.at(version, lenient=True)
        entry = abis.asked, self._make(abis)
        self._made.append(entry)
        return entry


def first_of_each(state: Callable[[int], Hashable], versions: Sequence[int]) -> list[int]:
    """Return the first version of each run of sorted versions that have the same state.

    The runs are found by bisection. Between two versions that have the same state, all are taken to have it.

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
    """Return the ABI of a module answer; it is null if the node cannot parse the bytecode."""
    document = parse_json(answer, "module")
    if isinstance(document, dict) and document.get("abi") is None:
        return None
    return decode_module_abi(document)


@dataclass(frozen=True)
class ListedModule:
    """A module of an account: its ABI, None if the node cannot read its code, and the size of the code."""

    abi: ModuleAbi | None
    size_bytes: int

    @classmethod
    def of(cls, row: dict[str, Any]) -> ListedModule:
        """Return the module of an answer ``{"bytecode", "abi"}``."""
        abi = None if row.get("abi") is None else decode_module_abi(row)
        return cls(abi, len(row["bytecode"].removeprefix("0x")) // 2)


@lru_cache(maxsize=1024)
def function_id(name: str) -> FunctionId:
    """Return the id of a function; parsed once, since a few functions are called at many versions."""
    return FunctionId.parse(name)


def function_abi(name: str, abis: AbisAt) -> FunctionAbi | None:
    """Return the ABI of a function, None if the module or the function is not known."""
    function = function_id(name)
    module = abis.module_abi(function.address, function.module)
    return None if module is None else module.function(function.name)


def parameter_layouts(function: FunctionAbi, type_arguments: Sequence[str], abis: AbisAt) -> list[Layout]:
    """Return the layouts of a function's parameters without signers, with the type arguments filled in."""
    given = tuple(parse_type_tag(text) for text in type_arguments)
    return [abis.layout(substitute(tag, given)) for tag in function.parameters]


def encode_arguments(
    function: FunctionAbi,
    type_arguments: Sequence[str],
    arguments: Sequence[Any],
    abis: AbisAt,
    *,
    where: str,
) -> list[Any]:
    """Encode arguments by a function's ABI.

    Parameters
    ----------
    function : FunctionAbi
        The function at the version that is read.
    type_arguments : sequence of str
    arguments : sequence
        Python values, without signers.
    abis : AbisAt
        Where the types of the parameters are looked up.
    where : str
        The function's name, for messages.

    Returns
    -------
    list
        JSON values: u8 to u32 as numbers, larger integers as strings.

    Raises
    ------
    InputError
        If the number of type arguments or arguments is not the function's.
    SchemaError
        If an argument does not fit its parameter.
    """
    expected = len(function.generic_type_params)
    if len(type_arguments) != expected:
        raise InputError(f"{where}: expected {_counted(expected, 'type argument')}, got {len(type_arguments)}")
    layouts = parameter_layouts(function, type_arguments, abis)
    if len(arguments) != len(layouts):
        given = tuple(parse_type_tag(text) for text in type_arguments)
        words = ", ".join(str(substitute(tag, given)) for tag in function.parameters)
        kinds = f" ({cut_text(words, MAX_NAMED)})" if words else ""
        raise InputError(f"{where}: expected {_counted(len(layouts), 'argument')}{kinds}, got {len(arguments)}")
    return [
        encode_argument(layout, value, where=f"{where} arguments[{index}]")
        for index, (layout, value) in enumerate(zip(layouts, arguments, strict=True))
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
