"""Timelines: every change of gas schedule, configuration and code in a range of versions, found by bisection.

Sources are resources whose state is compared at versions: the gas schedule, the configuration, and the package registry
of each address whose code is looked at. Between neighbouring versions with different states the search bisects, all
sources at once, down to the transaction.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, plural
from toolkit.client._batch import progress_bar, run_in_threads
from toolkit.client._cache_file import warn_caller
from toolkit.client._fetch import checked_node, plan_versions
from toolkit.client._same_ledger import LedgerAnchor, LedgerGuard
from toolkit.client._versions import VersionPlan, next_round
from toolkit.errors import InputError, SchemaError
from toolkit.frames._columns import plain_columns, rows_frame
from toolkit.frames._schema import TIMELINE
from toolkit.gas._observations import Cause, Change, Part, parts_of_parameters
from toolkit.gas.causes._evidence import (
    FEATURES,
    FRAMEWORK,
    REGISTRY,
    SCHEDULE,
    UNREAD,
    Dependencies,
    Evidence,
    Package,
    Written,
    dependencies,
    reason,
)
from toolkit.gas.causes._finding import MAX_COMPARED_MODULES, MAX_NAMED, config_text, module_text, schedule_text
from toolkit.move import FunctionId
from toolkit.move._ids import ModuleId, wire_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node


DEFAULT_INITIAL = 17
"""Versions at which the gas schedule and the configuration are compared first."""

STORAGE_GAS = "0x1::storage_gas::StorageGas"
CONFIGURATION: Mapping[str, tuple[Cause, str]] = {
    SCHEDULE: (Cause.SCHEDULE, "the gas schedule"),
    STORAGE_GAS: (Cause.SCHEDULE, "the storage gas"),
    FEATURES: (Cause.CONFIG, "the feature flags"),
    "0x1::version::Version": (Cause.CONFIG, "the ledger's protocol version"),
    "0x1::execution_config::ExecutionConfig": (Cause.CONFIG, "the execution configuration"),
    "0x1::transaction_validation::TransactionValidation": (Cause.CONFIG, "the prologue and epilogue"),
}
"""The resources of ``0x1`` that the virtual machine reads when it runs or charges transactions, by kind and name."""

_LAST_STORAGE_GAS_VERSION = 9
"""Last gas feature version at which the virtual machine charges by `STORAGE_GAS`; later ones use the gas schedule."""
_MAX_PACKAGES = 200
_MAX_READS = 100_000
"""Versions at which one source is read at most."""

_Ends = tuple[int, int]
_PackageKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Timeline:
    """The changes of gas schedule, configuration and code between two versions.

    Attributes
    ----------
    first, last : int
        Both included.
    changes : tuple of Change
        By version and kind.
    modules : tuple of str
        The modules whose code was looked at, with all they depend on.
    requests : int
        Number of reads.
    unread : tuple of str
        What could not be read, in words; nothing is known about changes of it.
    initial : int
        Number of versions at which schedule and configuration were compared first.
    first_time, last_time : datetime or None
        Times of `first` and `last`.
    """

    first: int
    last: int
    changes: tuple[Change, ...] = ()
    modules: tuple[str, ...] = ()
    requests: int = 0
    unread: tuple[str, ...] = ()
    initial: int = DEFAULT_INITIAL
    first_time: datetime | None = None
    last_time: datetime | None = None

    @property
    def not_seen(self) -> str:
        """What the search does not see, in words."""
        return (
            "a change of gas schedule or configuration that was reverted between two neighbouring versions of the "
            f"first {self.initial} is not seen"
        )

    def for_function(self, function: str) -> tuple[Change, ...]:
        """Return the changes that can move the gas of a function.

        Parameters
        ----------
        function : str
            ``0x1::coin::transfer``; of a module that the timeline is about.

        Returns
        -------
        tuple of Change
            Those of the gas schedule and of the configuration, and those of the code of the function's module or of
            anything it depends on.

        Raises
        ------
        InputError
            If the timeline is not about the module.
        """
        module = _module_of(function).wire
        if module not in self.modules:
            known = ", ".join(self.modules) or "no module"
            raise InputError(f"the timeline is about {known}, not about {module}: find it with that module too")
        return tuple(change for change in self.changes if change.kind is not Cause.CODE or module in change.affects)

    def to_frame(self) -> pd.DataFrame:
        """Return the changes as a frame; the other attributes are in its ``attrs``."""
        rows = [_row(change) for change in self.changes]
        frame = rows_frame(TIMELINE, {name: [row[name] for row in rows] for name in TIMELINE.names})
        frame.attrs |= {
            "first": self.first,
            "last": self.last,
            "modules": list(self.modules),
            "requests": self.requests,
            "unread": list(self.unread),
            "initial": self.initial,
            "not_seen": self.not_seen,
            "first_time": None if self.first_time is None else self.first_time.isoformat(),
            "last_time": None if self.last_time is None else self.last_time.isoformat(),
        }
        return frame

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Timeline:
        """Return the timeline of a frame that `to_frame` returned.

        Raises
        ------
        SchemaError
            If it is not such a frame.
        """
        missing = [name for name in TIMELINE.names if name not in frame.columns]
        missing += [name for name in ("first", "last", "modules") if name not in frame.attrs]
        if missing:
            raise SchemaError(f"not a timeline: columns or attrs {missing} are missing")
        columns = plain_columns(frame, TIMELINE.names)
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        about = frame.attrs
        times = [about.get(name) for name in ("first_time", "last_time")]
        return cls(
            about["first"],
            about["last"],
            tuple(_change(row) for row in rows),
            tuple(about["modules"]),
            about.get("requests", 0),
            tuple(about.get("unread", ())),
            about.get("initial", DEFAULT_INITIAL),
            *(None if time is None else datetime.fromisoformat(time) for time in times),
        )


_TRANSACTION = ("transaction_hash", "transaction_type", "transaction_sender", "transaction_function")


def _row(change: Change) -> dict[str, Any]:
    before = change.version_before
    return {
        "ledger_version": change.ledger_version,
        "version_before": change.ledger_version - 1 if before is None else before,
        "exact": change.exact,
        "time": change.time,
        "kind": change.kind.value,
        "what": change.what,
        "modules": sorted(change.modules),
        "affects": sorted(change.affects),
        "parts": [part.value for part in Part if part in change.parts],
    } | {name: getattr(change, name) for name in _TRANSACTION}


def _change(row: Mapping[str, Any]) -> Change:
    return Change(
        ledger_version=row["ledger_version"],
        kind=Cause(row["kind"]),
        what=row["what"],
        parts=frozenset(map(Part, row["parts"])),
        modules=frozenset(row["modules"]),
        affects=frozenset(row["affects"]),
        version_before=None if row["exact"] else row["version_before"],
        time=row["time"],
        **{name: row[name] for name in _TRANSACTION},
    )


def timeline(
    node: Node,
    versions: str = "0:-1",
    *,
    modules: str | Sequence[str] = (),
    initial: int = DEFAULT_INITIAL,
    progress: bool = False,
) -> pd.DataFrame:
    """Find every change that could have moved gas: of the gas schedule, the configuration, and the code of modules.

    Parameters
    ----------
    node : Node
    versions : str, default "0:-1"
        A range, ``"a:b"``, ``"-1000:"``, or dates; both ends are included. A range that begins before the oldest
        version of the node is clipped.
    modules : str or sequence of str
        Modules, ``0x1::coin``, or functions of them. Their code is looked at, and that of all packages that they
        depend on at any version of the range.
    initial : int, default 17
        Number of evenly spaced versions at which the gas schedule and the configuration are compared first.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (changes, 13)
        One row per version and kind of change, by version; the data dictionary describes the columns. ``attrs`` has
        ``requests`` (number of reads), ``unread`` (what could not be read, in words), ``not_seen``, the range with the
        times of its ends, and the modules.

    Raises
    ------
    InputError
        If `versions` is not a plain range, has no readable version, or a name is not that of a module or function.
    NodeError, NodeUnreachable
        If the node does not describe its ledger.
    LedgerChanged
        If another ledger takes the place of the node's meanwhile.

    Warns
    -----
    UserWarning
        If the range is clipped, or something cannot be read: nothing is known about changes of that.

    See Also
    --------
    toolkit.plots.gas_by_version : Draws the frame under a series of gas, with ``timeline=frame``.

    Notes
    -----
    The resources of ``0x1`` that are compared are those that the virtual machine reads when it runs or charges a
    transaction: ``gas_schedule::GasScheduleV2``, ``storage_gas::StorageGas`` (prices of state access up to gas feature
    version 9; later versions do not use it, so it moves no part of gas there), ``features::Features``,
    ``version::Version``, ``execution_config::ExecutionConfig`` and ``transaction_validation::TransactionValidation``.
    ``storage_gas::StorageGasConfig`` is not among them, because it takes effect by the next ``StorageGas``; nor are
    consensus, staking, randomness, governance, key and fee-collection configuration, which decide who orders, signs or
    receives, not what is charged.

    Code is followed by the upgrade number in ``0x1::code::PackageRegistry``, which only rises, so code that is upgraded
    and reverted is seen. Schedule and configuration have no such number: what is changed and reverted between two
    neighbouring versions of the first `initial` is not seen. Code that is reached by dispatch at run time, as that of a
    dispatchable fungible asset, is not a dependency of the package: name its module in `modules`.

    With n versions, a source with k changes takes about ``initial + k * log2(n / initial)`` reads, and a registry
    ``2 + k * log2(n)``; each change takes one transaction, and up to 60 modules if it is one of code.

    Examples
    --------
    >>> import toolkit
    >>> frame = toolkit.timeline(toolkit.connect(), modules=["0xfa17::vault"])
    >>> frame["kind"].value_counts().to_dict()
    {'code': 3, 'schedule': 3, 'config': 1}
    """
    node = checked_node(node)
    names = [modules] if isinstance(modules, str) else list(modules)
    if type(initial) is not int or initial < 2:  # noqa: PLR2004 - two ends make a range
        raise InputError(f"initial: expected a whole number from 2, got {initial!r:.80}")
    plan = VersionPlan.parse(versions) if type(versions) is str else VersionPlan(0, 0, count=1)
    if plan.count is not None or plan.step != 1:
        raise InputError(f"timeline takes a plain range such as '0:-1', got {versions!r:.80}")
    resolved, ledger = plan_versions(node, versions)
    first, last = resolved.versions[0], resolved.versions[-1]
    guard = LedgerGuard(node, LedgerAnchor.taken(node, last, ledger=ledger))
    oldest = node.oldest_readable(ledger)
    with progress_bar(0, "changes", show=progress) as bar:
        found = find_timeline(node, first, last, names, evidence=Evidence(node, bar), oldest=oldest, initial=initial)
    guard.check_at_end()
    if found.unread:
        warn_caller(f"the timeline may lack changes, because not everything could be read: {'; '.join(found.unread)}")
    return found.to_frame()


def find_timeline(
    node: Node,
    first: int,
    last: int,
    functions_or_modules: Iterable[str],
    *,
    evidence: Evidence | None = None,
    oldest: int = 0,
    initial: int = DEFAULT_INITIAL,
) -> Timeline:
    """Find the changes of gas schedule, configuration and code between two versions.

    Parameters
    ----------
    node : Node
    first, last : int
        Both included: a change made by the transaction `first` is found, unless that is the oldest version.
    functions_or_modules : iterable of str
        ``0x1::coin`` or ``0x1::coin::transfer``.
    evidence : Evidence, optional
        Reads of this node that were made already, and to which those of the search are added.
    oldest : int, default 0
        Oldest version that the node can read.
    initial : int, default 17
        Number of versions at which schedule and configuration are compared first.

    Returns
    -------
    Timeline

    Raises
    ------
    InputError
        If a name is not that of a module or function.
    LedgerChanged, ClosedError
        If the node serves another ledger, or is closed.
    """
    modules = tuple(dict.fromkeys(_module_of(name) for name in functions_or_modules))
    evidence = evidence or Evidence(node)
    before = evidence.reads
    low = max(first - 1, oldest, 0)
    search = _Search(node, evidence, modules, (min(low, last), last), initial)
    times = [search.time(version) for version in (first, last)]
    changes = tuple(sorted(search.changes(), key=lambda change: (change.ledger_version, change.kind)))
    return Timeline(
        first,
        last,
        changes,
        tuple(module.wire for module in modules),
        evidence.reads - before,
        tuple(search.unread()),
        initial,
        *times,
    )


def _module_of(name: str) -> ModuleId:
    """Return the module of the name of a module or function."""
    if type(name) is not str:
        raise InputError(f"expected a module such as '0x1::coin', got {name!r:.80}")
    if name.count("::") == 1:
        return ModuleId.parse(name)
    function = FunctionId.parse(name)
    return ModuleId(function.address, function.module)


class _Source:
    """A resource whose state is compared at versions.

    Parameters
    ----------
    evidence : Evidence
    address, tag : str
    name : str
        In words.
    ends : tuple of (int, int)
        First and last version compared.
    initial : int
        Number of versions compared first.
    """

    def __init__(self, evidence: Evidence, address: str, tag: str, name: str, *, ends: _Ends, initial: int) -> None:
        self.address, self.tag, self.name, self.ends = address, tag, name, ends
        self._evidence = evidence
        self._initial = initial
        self._asked: set[int] = set()
        self.known: list[int] = []
        self.failed: dict[int, Exception] = {}

    def state(self, version: int) -> Any:
        """Return the state at a version that was read."""
        return self._evidence.resource(self.address, self.tag, version)

    def at(self, version: int) -> Any:
        """Return the state at any version, as that of the last version read at or before it."""
        before = [known for known in self.known if known <= version]
        return self.state(before[-1]) if before else None

    def note(self) -> None:
        """Sort the versions that were read since the last call into known and failed ones."""
        for version in self._asked.difference(self.known, self.failed):
            try:
                self.state(version)
            except UNREAD as error:
                self.failed[version] = error
            else:
                self.known.append(version)
        self.known.sort()

    def wanted(self, view: Any) -> list[int]:
        """Return the versions to read next; states are compared by what `view` returns of them."""
        outcomes: dict[int, Any] = {version: (view(self.state(version)),) for version in self.known}
        outcomes |= dict.fromkeys(self.failed, None)
        first, last = self.ends
        # The ends come first: nothing else is read of a source that the node does not offer.
        initial = self._initial if self.known else 2
        found = next_round(outcomes, first=first, last=last, initial=initial, limit=_MAX_READS)
        self._asked.update(found)
        return found

    def cells(self, view: Any) -> Iterator[_Ends]:
        """Yield the neighbouring versions read whose states differ."""
        for before, after in pairwise(self.known):
            if view(self.state(before)) != view(self.state(after)):
                yield before, after

    def problem(self, view: Any) -> str:
        """Return what could not be read, in words; empty if nothing is missing."""
        if not self.failed:
            return ""
        why = reason(next(iter(self.failed.values())))
        low, high = self.ends
        if not self.known:
            return f"{self.name}: {why}"
        missing = [
            f"at versions {a} to {b}" for a, b in ((low, self.known[0] - 1), (self.known[-1] + 1, high)) if a <= b
        ]
        missing += [f"between versions {a} and {b}, where it changed" for a, b in self.cells(view) if b - a > 1]
        return f"{self.name} {' and '.join(missing)}: {why}" if missing else ""


class _Search:
    """The search for the changes of all sources.

    Parameters
    ----------
    node : Node
    evidence : Evidence
    modules : sequence of ModuleId
        Whose code is looked at.
    ends : tuple of (int, int)
        First and last version compared.
    initial : int
    """

    def __init__(self, node: Node, evidence: Evidence, modules: Sequence[ModuleId], ends: _Ends, initial: int) -> None:
        self._node = node
        self._evidence = evidence
        self._modules = modules
        self._ends = ends
        self._configuration = [
            _Source(evidence, FRAMEWORK, tag, name, ends=ends, initial=initial)
            for tag, (_, name) in CONFIGURATION.items()
        ]
        self._registries: dict[str, _Source] = {}
        self._needed: set[_PackageKey] = set()
        self._search()

    def _search(self) -> None:
        """Read all sources at ever more versions, until each change is located."""
        while True:
            self._follow_dependencies()
            wanted = [(source, source.wanted(self._view(source))) for source in self._sources()]
            if not any(versions for _, versions in wanted):
                return
            self._evidence.read_resources(
                (source.address, source.tag, version) for source, versions in wanted for version in versions
            )
            for source, _ in wanted:
                source.note()

    def _sources(self) -> list[_Source]:
        return [*self._configuration, *self._registries.values()]

    def _view(self, source: _Source) -> Any:
        """Return a function that reduces a state to what is compared."""
        return self._chosen if source.tag == REGISTRY else lambda state: state

    def _chosen(self, packages: Iterable[Package] | None) -> dict[_PackageKey, Package]:
        """Return the packages that are looked at, by address and name."""
        named = {(package.address, package.name): package for package in packages or ()}
        return {key: package for key, package in named.items() if key in self._needed}

    def _follow_dependencies(self) -> None:
        """Add the packages that the modules need at any version read so far, and their registries."""
        waiting = [
            (package.address, package.name)
            for module in self._modules
            for package in self._packages(module.address)
            if module.name in package.modules
        ]
        found: set[_PackageKey] = set()
        while waiting and len(found) < _MAX_PACKAGES:
            address, name = waiting.pop()
            if (address, name) not in found:
                found.add((address, name))
                waiting += [need for one in self._packages(address) if one.name == name for need in one.needs]
        self._needed = found

    def _packages(self, address: str) -> set[Package]:
        """Return all states of all packages of an address that were read so far."""
        if address not in self._registries:
            name = f"the packages of {wire_address(address)}"
            self._registries[address] = _Source(self._evidence, address, REGISTRY, name, ends=self._ends, initial=2)
        source = self._registries[address]
        return {package for version in source.known for package in source.state(version) or ()}

    def unread(self) -> Iterator[str]:
        """Yield what could not be read, in words."""
        for source in self._sources():
            if text := source.problem(self._view(source)):
                yield text
        for module in self._modules:
            source = self._registries[module.address]
            if source.known and not any(module.name in package.modules for package in self._packages(module.address)):
                yield f"the code of {module.wire}: no package of its address contains it at the versions read"

    # what changed -------------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[Change]:
        """Yield the changes, each with its transaction."""
        tags: defaultdict[tuple[_Ends, Cause], list[str]] = defaultdict(list)
        for source in self._configuration:
            for ends in source.cells(self._view(source)):
                tags[ends, CONFIGURATION[source.tag][0]].append(source.tag)
        code: defaultdict[_Ends, set[_PackageKey]] = defaultdict(set)
        for source in self._registries.values():
            for ends in source.cells(self._view(source)):
                before, after = (self._chosen(source.state(version)) for version in ends)
                code[ends] |= {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        exact = sorted({after for before, after in [*(ends for ends, _ in tags), *code] if after - before == 1})
        for _ in run_in_threads(exact, self._written, in_flight=self._node.max_in_flight):
            pass
        for (ends, kind), names in tags.items():
            yield self._of_configuration(ends, kind, names)
        for ends, packages in code.items():
            change = self._of_code(ends, packages)
            if change is not None:
                yield change

    def time(self, version: int) -> datetime | None:
        """Return the time of the transaction of a version, None if it is not known."""
        written = self._written(version)
        return None if written is None else written.time

    def _written(self, version: int) -> Written | None:
        """Return what the transaction of a version wrote, None if it cannot be read."""
        try:
            return Written.of(self._evidence.transaction(version))
        except UNREAD:
            return None

    def _made(self, ends: _Ends, kind: Cause, what: str) -> Change:
        """Return a change with the facts of its transaction."""
        before, after = ends
        change = Change(after, kind, what)
        if after - before > 1:
            return replace(change, version_before=before)
        written = self._written(after)
        if written is None:
            return change
        facts = written.facts
        return replace(
            change,
            time=written.time,
            transaction_hash=facts["hash"],
            transaction_type=facts["type"],
            transaction_sender=facts["sender"],
            transaction_function=facts["function"],
        )

    def _of_configuration(self, ends: _Ends, kind: Cause, tags: Sequence[str]) -> Change:
        if kind is Cause.CONFIG:
            return self._made(ends, kind, config_text(tags, ends, self._evidence))
        change = self._made(ends, kind, schedule_text(tags, ends, self._evidence))
        return replace(change, parts=self._parts_of_schedule(ends, tags))

    def _parts_of_schedule(self, ends: _Ends, tags: Sequence[str]) -> frozenset[Part]:
        """Return the parts of gas that a change of the gas schedule and of the storage gas can move."""
        try:
            before, after = (self._evidence.schedule(version) for version in ends)
        except UNREAD:
            return frozenset(Part)
        if before.feature_version != after.feature_version:  # the virtual machine may charge by other rules
            return frozenset(Part)
        names = before.entries.keys() | after.entries.keys()
        parts = parts_of_parameters(name for name in names if before.entries.get(name) != after.entries.get(name))
        used = STORAGE_GAS in tags and after.feature_version <= _LAST_STORAGE_GAS_VERSION
        return parts | {Part.IO} if used else parts

    def _of_code(self, ends: _Ends, packages: set[_PackageKey]) -> Change | None:
        """Return the change of some packages, None if no module changed or none of those asked for needs it."""
        places: defaultdict[ModuleId, list[tuple[int, str]]] = defaultdict(list)
        for called in self._modules:
            for needs in self._needs(called, ends):
                for module in self._written_modules(ends, packages, needs):
                    distance = 0 if module == called else 1 + (needs.distance(module) or 0)
                    places[module].append((distance, called.wire))
        order = sorted(places, key=lambda module: (min(places[module]), module))
        texts, changed, more = [], set(), order[MAX_COMPARED_MODULES:]
        compared = run_in_threads(
            order[:MAX_COMPARED_MODULES],
            lambda module: module_text(module, self._role(module, places[module]), ends, self._evidence),
            in_flight=self._node.max_in_flight,
        )
        for place, text in sorted(compared):
            if text:
                texts.append(text)
                changed.add(order[place])
        changed.update(more)
        if not changed:
            return None
        rest = len(changed) - min(len(texts), MAX_NAMED)
        named = [*texts[:MAX_NAMED], *([f"wrote {plural(rest, 'more module')}"] if rest else [])]
        change = self._made(ends, Cause.CODE, " and ".join(named))
        affects = frozenset(called for module in changed for _, called in places[module])
        return replace(change, modules=frozenset(module.wire for module in changed), affects=affects)

    def _role(self, module: ModuleId, needed: Iterable[tuple[int, str]]) -> str:
        """Return the words for a module; `needed` has the modules that need it."""
        if module in self._modules:
            return f"module {module.wire}"
        return f"module {module.wire}, a dependency of {listed(sorted({name for _, name in needed}), MAX_NAMED)}"

    def _written_modules(self, ends: _Ends, packages: set[_PackageKey], needs: Dependencies) -> list[ModuleId]:
        """Return the needed modules of changed packages: those that the transaction wrote, if that is known."""
        within = {
            ModuleId(package.address, name)
            for package in needs.packages
            if (package.address, package.name) in packages
            for name in package.modules
        }
        written = self._written(ends[1]) if ends[1] - ends[0] == 1 else None
        return sorted(within if written is None else within.intersection(written.modules))

    def _needs(self, module: ModuleId, ends: _Ends) -> list[Dependencies]:
        """Return what a module depends on before and after a change."""

        def registry(version: int) -> Any:
            return lambda address: self._registries[address].at(version) or () if address in self._registries else ()

        found = [dependencies(module, registry(version)) for version in ends]
        return [one for one in found if one is not None]
