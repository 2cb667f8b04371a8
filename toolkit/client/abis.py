"""Module ABIs as they stood at a ledger version, fetched as seldom as that allows."""

from __future__ import annotations

import contextlib
import hashlib
import time
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

from toolkit.client import forking
from toolkit.client.retry import Outages, is_outage
from toolkit.errors import Forbidden, NodeError, NodeUnreachable, NotFound, OfflineMiss, SchemaError
from toolkit.move import Layout, ModuleAbi, decode_module_abi, parse_address, resolve_layout
from toolkit.move._json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.move import TypeTag

__all__ = ["AbiStore", "AbisAt", "Known", "Made", "abi_of"]

T = TypeVar("T")
ModuleKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one module at one version.

    `digest` is None if the module was not there; `told` is False if that is not known.
    """

    digest: bytes | None
    abi: ModuleAbi | None
    told: bool = True


_ABSENT = Known(None, None)
_UNTOLD = Known(None, None, told=False)
"""The node does not say."""

_MOST_SILENT = 3
"""Reads that say nothing of the module after which a node counts as not offering them; a gateway may fail once."""

_MAX_FAILING = 3
"""Modules whose look-up fails after which the others are not asked for either, until these have rested."""


@dataclass(slots=True)
class _Timeline:
    """Versions of one module that were looked up, in order."""

    versions: list[int] = field(default_factory=list)
    known: dict[int, Known] = field(default_factory=dict)

    def add(self, version: int, what: Known) -> None:
        if version not in self.known:
            insort(self.versions, version)
        self.known[version] = what

    def between(self, version: int) -> Known | None:
        """Return the module at `version` where both known neighbours agree, else None."""
        if version in self.known:
            return self.known[version]
        place = bisect_left(self.versions, version)
        if place in {0, len(self.versions)}:
            return None
        before = self.known[self.versions[place - 1]]
        after = self.known[self.versions[place]]
        return before if before.digest == after.digest else None


class AbiStore:
    """Module ABIs of one chain by (address, module, ledger version read).

    Two versions at which a module's bytecode is the same stand for all versions between: packages count
    their upgrades up, so a module that was changed and changed back to the same bytes in between is the
    one thing this cannot see. A sweep over n versions thus costs O(upgrades * log n) look-ups.

    Parameters
    ----------
    fetch : callable (address, name, version) -> bytes or None
        The ``{bytecode, abi}`` answer of the node, None where the module is not there; Forbidden or NotFound where
        the node does not say.
    overrides : mapping of (address, name) to ModuleAbi, optional
        ABIs that the caller supplies; they hold at every version.
    kept_versions : callable (address, name) -> list of int, optional
        Versions whose module an offline session can read.
    clock : callable, optional
        Seconds; replaced in tests.

    Notes
    -----
    A look-up that fails (no answer, 429, 5xx) is remembered for at least 30 s, in which the module counts as not
    known: `failure` has the reason.
    """

    def __init__(
        self,
        fetch: Callable[[str, str, int], bytes | None],
        *,
        overrides: Mapping[ModuleKey, ModuleAbi] | None = None,
        kept_versions: Callable[[str, str], list[int]] = lambda *_: [],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch = fetch
        self._kept_versions = kept_versions
        self._overrides = {(parse_address(at), name): abi for (at, name), abi in (overrides or {}).items()}
        self._timelines: defaultdict[ModuleKey, _Timeline] = defaultdict(_Timeline)
        self._by_digest: dict[bytes, ModuleAbi | None] = {}
        self._layouts: dict[TypeTag, Made[Layout]] = {}
        self._silent: set[tuple[str, str, int]] = set()
        self._outages: Outages[ModuleKey] = Outages(clock)
        self._lock = forking.lock()

    def at(self, version: int, *, lenient: bool = False) -> AbisAt:
        """Return the modules as they were at `version`.

        Parameters
        ----------
        version : int
        lenient : bool, default False
            Take a module whose look-up fails for one that is not known; by default the failure is raised.
        """
        return AbisAt(self, version, lenient)

    def failure(self, modules: Mapping[ModuleKey, bytes | None]) -> NodeError | NodeUnreachable | None:
        """Return why a look-up of one of these modules failed, None if none did.

        Parameters
        ----------
        modules : mapping of ModuleKey to bytes or None
            Modules with their digests, as `AbisAt.asked` has them.
        """
        failures = (self._outages.last(key) for key, digest in modules.items() if digest is None)
        return next((failure for failure in failures if failure is not None), None)

    def ask_again(self, versions: Sequence[int]) -> None:
        """Look the modules up once more, without waiting, of which a look-up failed; over sorted versions."""
        for address, name in self._outages.ask_again():
            self.prepare(address, name, versions)

    def prepare(self, address: str, name: str, versions: Sequence[int]) -> None:
        """Learn a module over sorted versions by bisection, so that a sweep need not ask at each.

        What cannot be learned now is left to the reads themselves, which report it row by row.
        """
        if len(versions) > 1:
            with contextlib.suppress(NodeError, NodeUnreachable, SchemaError):
                self._bisect(address, name, versions, 0, len(versions) - 1)

    def _bisect(self, address: str, name: str, versions: Sequence[int], low: int, high: int) -> None:
        first, last = self.known(address, name, versions[low]), self.known(address, name, versions[high])
        if high - low > 1 and first.digest != last.digest:
            middle = (low + high) // 2
            self._bisect(address, name, versions, low, middle)
            self._bisect(address, name, versions, middle, high)

    def known(self, address: str, name: str, version: int) -> Known:
        """Return the module (address, name) at `version`, asking the node only if neighbouring versions differ.

        A module whose look-up fails is not known for a while; see `failure`.
        """
        address = parse_address(address)
        override = self._overrides.get((address, name))
        if override is not None:
            return Known(b"override", override)
        with self._lock:
            found = self._timelines[address, name].between(version)
        return found or self._asked_if_working(address, name, version)

    def _asked_if_working(self, address: str, name: str, version: int) -> Known:
        key = (address, name)
        if self._outages.resting(key) is not None:
            return _UNTOLD
        resting = self._outages.all_resting()
        if len(resting) >= _MAX_FAILING:
            self._outages.note(key, resting[0])
            return _UNTOLD
        try:
            with self._outages.noted(key):
                return self._asked(address, name, version)
        except (NodeError, NodeUnreachable) as error:
            if not is_outage(error):
                raise
            return _UNTOLD

    def read(self, address: str, name: str, version: int) -> Known:
        """Return what stood at (address, name) at this very version: nothing is concluded from neighbours.

        Where it matters whether a module changed, since one may be changed and changed back; ABIs that the caller
        supplied do not count here.
        """
        address = parse_address(address)
        with self._lock:
            found = self._timelines[address, name].known.get(version)
        return found or self._asked(address, name, version)

    def _asked(self, address: str, name: str, version: int) -> Known:
        if (address, name, version) in self._silent or len(self._silent) >= _MOST_SILENT:
            return _UNTOLD
        try:
            answer = self._fetch(address, name, version)
        except (Forbidden, NotFound) as error:
            if error.error_code == "version_not_found":
                raise
            self._silent.add((address, name, version))
            return _UNTOLD
        except OfflineMiss:
            found = self._from_kept(address, name, version)
            if found is None:
                raise
            return found
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

    def _from_kept(self, address: str, name: str, version: int) -> Known | None:
        """Offline: learn the module at the versions that were kept, and see whether they tell of this one."""
        with self._lock:
            timeline = self._timelines[address, name]
            missing = [at for at in self._kept_versions(address, name) if at not in timeline.known]
        for at in missing:
            with contextlib.suppress(OfflineMiss):  # noted, but not kept: the others may still tell
                answer = self._fetch(address, name, at)
                with self._lock:
                    timeline.add(at, _ABSENT if answer is None else self._decoded(answer))
        return timeline.between(version)

    def layouts(self, tag: TypeTag) -> Made[Layout]:
        """Return the layouts of a type; equal modules give one and the same."""
        made = self._layouts.get(tag)
        return made or self._layouts.setdefault(tag, Made(self, partial(resolve_layout, tag)))


@dataclass(frozen=True, slots=True)
class AbisAt:
    """The modules of a chain as they were at one ledger version; an ``AbiSource``.

    Attributes
    ----------
    store : AbiStore
    version : int
    lenient : bool
        Whether a module whose look-up fails counts as not known, rather than raising the failure.
    asked : dict of ModuleKey to bytes or None
        The modules that were asked for so far, with their digests.
    """

    store: AbiStore
    version: int
    lenient: bool = False
    asked: dict[ModuleKey, bytes | None] = field(default_factory=dict, compare=False, repr=False)

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module, None if there was none.

        Raises
        ------
        NodeError, NodeUnreachable
            If the look-up fails and `lenient` is False.
        """
        known = self.store.known(address, name, self.version)
        self._note({(parse_address(address), name): known.digest})
        return known.abi

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
    """What is made from modules: once for all versions at which those that it asked for are the same.

    Parameters
    ----------
    store : AbiStore
    make : callable
        Makes it from the modules of one version.
    """

    def __init__(self, store: AbiStore, make: Callable[[AbisAt], T]) -> None:
        self._store = store
        self._make = make
        self._made: list[tuple[dict[ModuleKey, bytes | None], T]] = []

    def at(self, version: int) -> T:
        """Return what belongs to `version`."""
        return self.found(version)[1]

    def found(self, version: int) -> tuple[dict[ModuleKey, bytes | None], T]:
        """Return what belongs to `version`, after the digests of the modules it was made from.

        Modules whose look-up fails are not known; `AbiStore.failure` of the digests says so.
        """
        known = self._store.known
        for entry in reversed(self._made):  # a sweep goes up the versions: the latest is the likeliest
            if all(known(*key, version).digest == digest for key, digest in entry[0].items()):
                return entry
        abis = self._store.at(version, lenient=True)
        entry = abis.asked, self._make(abis)
        self._made.append(entry)
        return entry


def abi_of(answer: bytes) -> ModuleAbi | None:
    """Read the ``abi`` of a module answer; a node that cannot parse its own bytecode answers null there."""
    document = parse_json(answer, "module")
    if isinstance(document, dict) and document.get("abi") is None:
        return None
    return decode_module_abi(document)
