"""Timelines: every change to the gas schedule, configuration and code in a range of versions, found by bisection.

Sources are resources whose state is compared at versions: the gas schedule, the configuration, and the package registry
of each address whose code is examined. Where the states of neighbouring versions differ, the search bisects down to the
transaction, for all sources at once.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, version_span
from toolkit.client._contracts import absent_module
from toolkit.client._fetch import checked_node, plan_versions
from toolkit.client._progress import progress_bar
from toolkit.client._reads import LedgerAnchor, LedgerGuard
from toolkit.client._threads import run_in_threads
from toolkit.client._versions import VersionPlan, next_round
from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import TIMELINE
from toolkit.gas._cause_sentences import not_seen_text, unread_text
from toolkit.gas._findings import Change, Timeline, Unread, parts_of_parameters
from toolkit.gas._observations import Cause, Part
from toolkit.gas.causes import _evidence as reads
from toolkit.gas.causes import _facts as facts
from toolkit.gas.causes._evidence import Evidence
from toolkit.gas.causes._finding import MAX_COMPARED_MODULES, MAX_NAMED, config_facts, module_fact, schedule_facts
from toolkit.move import FunctionId
from toolkit.move._ids import ModuleId, wire_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import pandas as pd

    from toolkit.client._node import Node


# Versions at which the gas schedule and the configuration are compared first: a change that is reverted within a
# sixteenth of the range may be missed, and a range without changes costs 17 reads of each source.
DEFAULT_INITIAL = 17

# Last gas feature version at which the virtual machine charges by `STORAGE_GAS`; later ones use the gas schedule.
_LAST_STORAGE_GAS_VERSION = 9
# Maximum number of versions at which one source is read, in case a node answers differently each time.
_MAX_READS = 100_000

_Ends = tuple[int, int]
_PackageKey = tuple[str, str]


def timeline(
    node: Node,
    versions: str = "0:-1",
    *,
    modules: str | Sequence[str] = (),
    initial: int = DEFAULT_INITIAL,
    progress: bool = False,
) -> pd.DataFrame:
    """Find every change to the gas schedule, the configuration or the code of modules that could have affected gas.

    Parameters
    ----------
    node : Node
    versions : str, default "0:-1"
        A range, ``"a:b"``, ``"-1000:"``, or dates; both ends are included. A range that begins before the oldest
        version of the node is clipped.
    modules : str or sequence of str, default ()
        Modules, such as ``0x1::coin``, or functions. Their code is tracked, together with the code of all packages on
        which they depend at any version of the range.
    initial : int, default 17
        Number of evenly spaced versions at which the gas schedule and the configuration are first compared.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (changes, 13)
        One row per version and kind of change, sorted by version; the data dictionary describes the columns. ``attrs``
        contains ``requests`` (number of reads), ``unread`` (descriptions of what could not be read), ``not_seen`` (a
        sentence on the reverted changes that the search cannot find), the range with the times of both ends, and the
        modules.

    Raises
    ------
    InputError
        If `versions` is not a plain range or has no readable version, or `modules` contains a name that is not the id
        of a module or function.
    NotFound
        If a module exists at no version; the message suggests similar names.
    NodeError, NodeUnreachable
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger.

    Warns
    -----
    UserWarning
        If the range is clipped, or something cannot be read, so that its changes are unknown.

    See Also
    --------
    toolkit.plots.gas_by_version : Draws the frame below a gas series, with ``timeline=frame``.

    Notes
    -----
    The comparison covers the resources of ``0x1`` that the virtual machine reads to run or charge a transaction:
    ``gas_schedule::GasScheduleV2``, ``storage_gas::StorageGas`` (prices of state access up to gas feature version 9;
    later versions do not use it), ``features::Features``, ``version::Version``, ``execution_config::ExecutionConfig``
    and ``transaction_validation::TransactionValidation``. It omits ``storage_gas::StorageGasConfig``, which takes
    effect only through the next ``StorageGas``, and the configuration of consensus, staking, randomness, governance,
    keys and fee collection, which determines who orders and signs transactions and who receives the fees, not what
    is charged.

    Code is tracked by the upgrade number in ``0x1::code::PackageRegistry``, which only increases, so an upgrade that is
    later reverted is still found. Schedule and configuration have no such number: a change that is reverted between two
    neighbouring versions of the first `initial` is missed. Code reached by dispatch at run time, such as the hooks of a
    dispatchable fungible asset, is not a dependency of the package: name its module in `modules`.

    Over n versions, a source with k changes takes about ``initial + k * log2(n / initial)`` reads, and a registry
    ``2 + k * log2(n)``. Each change takes one more read for its transaction; a code change takes up to 60 more for
    modules.

    Examples
    --------
    >>> import toolkit
    >>> frame = toolkit.timeline(toolkit.connect(), modules=["0xfa17::vault"])
    >>> frame["kind"].value_counts().to_dict()
    {'code': 3, 'schedule': 3, 'config': 1}
    """
    found = found_timeline(node, versions, modules=modules, initial=initial, progress=progress)
    if found.unread:
        unread = "; ".join(map(unread_text, found.unread))
        warn_caller(f"the timeline may lack changes, because not everything could be read: {unread}")
    return timeline_frame(found)


def found_timeline(
    node: Node,
    versions: str = "0:-1",
    *,
    modules: str | Sequence[str] = (),
    initial: int = DEFAULT_INITIAL,
    progress: bool = False,
) -> Timeline:
    """Like `timeline`, but return the record of which the frame is made."""
    node = checked_node(node)
    names = [modules] if isinstance(modules, str) else list(modules)
    if type(initial) is not int or initial < 2:  # noqa: PLR2004 - two ends make a range
        raise InputError(f"initial: expected a whole number of at least 2, got {initial!r:.80}")
    if type(versions) is not str or not VersionPlan.parse(versions).is_range:
        raise InputError(f"timeline takes a plain range such as '0:-1', got {versions!r:.80}")
    resolved, ledger = plan_versions(node, versions)
    first, last = resolved.versions[0], resolved.versions[-1]
    guard = LedgerGuard(node, LedgerAnchor.taken(node, last, ledger=ledger))
    oldest = node.oldest_readable(ledger)
    with progress_bar(0, "changes", show=progress) as bar:
        found = find_timeline(node, first, last, names, evidence=Evidence(node, bar), oldest=oldest, initial=initial)
    guard.check_at_end()
    seen = {name for change in found.changes for name in change.affects}
    for module in (one for one in map(_module_of, names) if one.wire not in seen):  # a change would have removed it
        if node.abis.at(last).lookup(module.address, module.name).is_absent:
            raise absent_module(node, module, last)
    return found


# the search -----------------------------------------------------------------------------------------------------------


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
    """Find the changes to the gas schedule, configuration and code between two versions.

    Parameters
    ----------
    node : Node
    first, last : int
        First and last version, both included. A change made by transaction `first` is found, unless that is the oldest
        version.
    functions_or_modules : iterable of str
        ``0x1::coin`` or ``0x1::coin::transfer``.
    evidence : Evidence, optional
        Data already read from this node; the search adds to it.
    oldest : int, default 0
        Oldest version that the node can read.
    initial : int, default 17
        Number of versions at which the schedule and the configuration are first compared.

    Returns
    -------
    Timeline

    Raises
    ------
    InputError
        If a name is not the id of a module or function.
    LedgerChanged, ClosedError
        If the node serves another ledger, or is closed.
    """
    modules = tuple(dict.fromkeys(_module_of(name) for name in functions_or_modules))
    evidence = evidence or Evidence(node)
    before = evidence.reads
    low = max(first - 1, oldest, 0)
    search = _Search(node, evidence, modules, (min(low, last), last), initial)
    at_first = search.written(first)
    at_last = search.written(last)
    changes = sorted(search.changes(), key=lambda change: (change.ledger_version, change.kind))
    return Timeline(
        first=first,
        last=last,
        changes=tuple(changes),
        modules=tuple(module.wire for module in modules),
        requests=evidence.reads - before,
        unread=tuple(search.unread()),
        initial=initial,
        first_time=at_first.by.time if at_first else None,
        last_time=at_last.by.time if at_last else None,
    )


def _module_of(name: str) -> ModuleId:
    """Return the module that the id of a module or function refers to."""
    is_function = str(name).count("::") == 2  # noqa: PLR2004 - of address::module::function
    return FunctionId.parse(name).module_id if is_function else ModuleId.parse(name)


@dataclass
class _Source:
    """A resource whose state is compared at versions.

    Attributes
    ----------
    evidence : Evidence
    address, tag : str
    name : str
        Name of the source, in words.
    ends : tuple of (int, int)
        First and last version compared.
    initial : int
        Number of versions that are first compared.
    compared : callable
        Reduces a state to the values that are compared.
    errors : dict of int to Exception or None
        The requested versions, with the error of those that could not be read.
    """

    evidence: Evidence
    address: str
    tag: str
    name: str
    ends: _Ends
    initial: int
    compared: Callable[[Any], Any] = lambda state: state
    errors: dict[int, Exception | None] = field(default_factory=dict)

    @property
    def known(self) -> list[int]:
        """The versions that were read, ascending."""
        return sorted(version for version, error in self.errors.items() if error is None)

    def state(self, version: int) -> Any:
        """Return the state at a version that was read."""
        return self.evidence.resource(self.address, self.tag, version)

    def at(self, version: int) -> Any:
        """Return the state at any version, taken from the last version read at or before it."""
        before = [known for known, error in self.errors.items() if error is None and known <= version]
        return self.state(max(before)) if before else None

    def note(self, versions: Iterable[int]) -> None:
        """Note versions that were requested, and which of them could not be read."""
        for version in versions:
            self.errors[version] = None
            try:
                self.state(version)
            except reads.UNREAD as error:
                self.errors[version] = error

    def wanted(self) -> list[int]:
        """Return the versions to read next."""
        # In a tuple, because the state None (the resource does not exist) differs from a read without a response.
        outcomes = {version: None if error else (self._compared(version),) for version, error in self.errors.items()}
        first, last = self.ends
        # The ends come first: nothing else is read of a source that the node does not offer.
        initial = self.initial if self.known else 2
        return next_round(outcomes, first=first, last=last, initial=initial, limit=_MAX_READS)

    def _compared(self, version: int) -> Any:
        return self.compared(self.state(version))

    def cells(self) -> list[_Ends]:
        """Return the neighbouring versions read whose states differ."""
        pairs = pairwise(self.known)
        return [(before, after) for before, after in pairs if self._compared(before) != self._compared(after)]

    def problem(self) -> Unread | None:
        """Return what could not be read; None if nothing is missing."""
        error, known = next(filter(None, self.errors.values()), None), self.known
        if error is None:
            return None
        why = reads.reason(error)
        if not known:
            return Unread(self.name, why)
        low, high = self.ends
        ends = ((low, known[0] - 1), (known[-1] + 1, high))
        missing = [f"at {version_span(a, b)}" for a, b in ends if a <= b]
        missing += [f"between versions {a:,} and {b:,}, where it changed" for a, b in self.cells() if b - a > 1]
        return Unread(self.name, why, " and ".join(missing)) if missing else None


class _Search:
    """A search for the changes of all sources.

    Parameters
    ----------
    node : Node
    evidence : Evidence
    modules : sequence of ModuleId
        Modules whose code is examined.
    ends : tuple of (int, int)
        First and last version compared.
    initial : int
    """

    def __init__(self, node: Node, evidence: Evidence, modules: Sequence[ModuleId], ends: _Ends, initial: int) -> None:
        self._node, self._evidence, self._modules, self._ends = node, evidence, modules, ends
        self._configuration = [
            _Source(evidence, reads.FRAMEWORK, tag, name, ends, initial)
            for tag, (_, name) in facts.CONFIGURATION.items()
        ]
        self._registries: dict[str, _Source] = {}
        self._needed: set[_PackageKey] = set()
        while True:  # all sources are read at ever more versions, until each change is located
            self._follow_dependencies()
            wanted = [(source, source.wanted()) for source in self._sources()]
            if not any(versions for _, versions in wanted):
                break
            self._evidence.read_resources(
                (source.address, source.tag, version) for source, versions in wanted for version in versions
            )
            for source, versions in wanted:
                source.note(versions)

    def _sources(self) -> list[_Source]:
        return [*self._configuration, *self._registries.values()]

    def _chosen(self, packages: Iterable[reads.CodePackage] | None) -> dict[_PackageKey, reads.CodePackage]:
        """Return the examined packages, by address and name."""
        named = {(package.address, package.name): package for package in packages or ()}
        return {key: package for key, package in named.items() if key in self._needed}

    def _follow_dependencies(self) -> None:
        """Add the packages that the modules need at any version read so far, and their registries."""
        for module in self._modules:
            self._registry(module.address)
        versions = {version for source in self._registries.values() for version in source.known}
        needs = [self._dependencies(module, version) for module in self._modules for version in versions]
        self._needed = {(one.address, one.name) for need in needs if need for one in need.packages}

    def _dependencies(self, module: ModuleId, version: int) -> reads.Dependencies | None:
        """Return the packages that a module needs at any version, as far as the registries were read."""
        return reads.dependencies(module, lambda address: self._registry(address).at(version) or ())

    def _registry(self, address: str) -> _Source:
        if address not in self._registries:
            name = f"the packages of {wire_address(address)}"
            source = _Source(self._evidence, address, reads.REGISTRY, name, self._ends, 2, self._chosen)
            self._registries[address] = source
        return self._registries[address]

    def unread(self) -> Iterator[Unread]:
        """Yield the sources that could not be read at every version."""
        for source in self._sources():
            if problem := source.problem():
                yield problem
        for module in self._modules:
            source = self._registries[module.address]
            packages = [package for version in source.known for package in source.state(version) or ()]
            if source.known and not any(module.name in package.modules for package in packages):
                why = "no package at its address contains it at the versions read"
                yield Unread(f"the code of {module.wire}", why)

    # what changed -------------------------------------------------------------------------------------------------

    def changes(self) -> Iterator[Change]:
        """Yield the changes, each with its transaction."""
        tags: defaultdict[tuple[_Ends, Cause], list[str]] = defaultdict(list)
        for source in self._configuration:
            for ends in source.cells():
                tags[ends, facts.CONFIGURATION[source.tag][0]].append(source.tag)
        code: defaultdict[_Ends, set[_PackageKey]] = defaultdict(set)
        for source in self._registries.values():
            for ends in source.cells():
                before, after = (self._chosen(source.state(version)) for version in ends)
                code[ends] |= {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        intervals = {*code, *(ends for ends, _ in tags)}
        exact = sorted({after for before, after in intervals if after - before == 1})
        for _ in run_in_threads(exact, self.written, in_flight=self._node.max_in_flight):
            pass  # the evidence keeps what was read
        for (ends, kind), names in tags.items():
            if kind is Cause.SCHEDULE:
                what = schedule_facts(names, ends, self._evidence)
                yield self._made(ends, kind, what, parts=self._parts_of_schedule(ends, names))
            else:
                yield self._made(ends, kind, config_facts(names, ends, self._evidence))
        for ends, packages in code.items():
            if change := self._of_code(ends, packages):
                yield change

    def written(self, version: int) -> reads.Written | None:
        """Return what the transaction at a version wrote; None if it cannot be read."""
        with suppress(*reads.UNREAD):
            return reads.Written.of(self._evidence.transaction(version))
        return None

    def _made(self, ends: _Ends, kind: Cause, what: facts.Facts, **more: Any) -> Change:
        """Return a change with the facts of its transaction."""
        before, after = ends
        schedule = facts.schedule_change(what)
        ratio = schedule.price_ratio if schedule else None
        written = self.written(after) if after - before == 1 else None
        return Change(
            after,
            kind,
            facts.facts_text(what),
            version_before=before if after - before > 1 else None,
            transaction=written.by if written else None,
            price_ratio=ratio,
            **more,
        )

    def _parts_of_schedule(self, ends: _Ends, tags: Sequence[str]) -> frozenset[Part]:
        """Return the parts of gas that a change to the gas schedule and the storage gas can affect."""
        try:
            before, after = (self._evidence.schedule(version) for version in ends)
        except reads.UNREAD:
            return frozenset(Part)
        if before.feature_version != after.feature_version:  # the virtual machine may charge by other rules
            return frozenset(Part)
        names = before.entries.keys() | after.entries.keys()
        differing = [name for name in names if before.entries.get(name) != after.entries.get(name)]
        parts = parts_of_parameters(differing)
        used = facts.STORAGE_GAS in tags and after.feature_version <= _LAST_STORAGE_GAS_VERSION
        return parts | {Part.IO} if used else parts

    def _of_code(self, ends: _Ends, packages: set[_PackageKey]) -> Change | None:
        """Return the change to the code of some packages; None if no module that is needed has changed."""
        places: defaultdict[ModuleId, list[tuple[int, str]]] = defaultdict(list)
        for called in self._modules:
            for needs in filter(None, [self._dependencies(called, version) for version in ends]):
                for module in self._written_modules(ends, packages, needs):
                    distance = 0 if module == called else 1 + (needs.distance(module) or 0)
                    places[module].append((distance, called.wire))
        order = sorted(places, key=lambda module: (min(places[module]), module))
        compared = run_in_threads(
            order[:MAX_COMPARED_MODULES],
            lambda module: module_fact(self._related(module, places[module]), ends, self._evidence),
            in_flight=self._node.max_in_flight,
        )
        what: list[facts.Fact] = []
        changed = set(order[MAX_COMPARED_MODULES:])
        for place, fact in sorted(compared, key=lambda one: one[0]):
            if fact is not None:
                what.append(fact)
                changed.add(order[place])
        if not changed:
            return None
        rest = len(changed) - min(len(what), MAX_NAMED)
        named = (*what[:MAX_NAMED], *([facts.MoreModules(rest)] if rest else []))
        affects = frozenset(called for module in changed for _, called in places[module])
        modules = frozenset(module.wire for module in changed)
        return self._made(ends, Cause.CODE, named, modules=modules, affects=affects)

    def _related(self, module: ModuleId, needed: Iterable[tuple[int, str]]) -> facts.RelatedModule:
        """Return the relation of a module to the requested modules; `needed` lists those that depend on it."""
        if module in self._modules:
            return facts.RelatedModule(module, facts.Role.NAMED)
        names = listed(sorted({name for _, name in needed}), MAX_NAMED)
        return facts.RelatedModule(module, facts.Role.OF_NAMED, names)

    def _written_modules(self, ends: _Ends, packages: set[_PackageKey], needs: reads.Dependencies) -> list[ModuleId]:
        """Return the needed modules of changed packages; only those that the transaction wrote, if they are known."""
        changed = [package for package in needs.packages if (package.address, package.name) in packages]
        within = {ModuleId(package.address, name) for package in changed for name in package.modules}
        written = self.written(ends[1]) if ends[1] - ends[0] == 1 else None
        return sorted(within if written is None else within.intersection(written.modules))


# timelines as frames --------------------------------------------------------------------------------------------------


_ABOUT = ("first", "last", "requests", "initial")


def timeline_frame(timeline: Timeline) -> pd.DataFrame:
    """Return the changes of a timeline as a frame; the other content of the timeline is in ``attrs``."""
    frame = frame_of_rows(TIMELINE, [change_row(change) for change in timeline.changes])
    times = {"first_time": timeline.first_time, "last_time": timeline.last_time}
    frame.attrs |= {name: getattr(timeline, name) for name in _ABOUT} | {
        "modules": list(timeline.modules),
        "unread": [unread_text(one) for one in timeline.unread],
        "not_seen": not_seen_text(timeline.initial),
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
    }
    return frame


def change_row(change: Change) -> dict[str, Any]:
    """Return a change as a row of the frame of a timeline."""
    where = {"ledger_version": change.ledger_version, "version_before": change.start, "exact": change.exact}
    what = {"kind": change.kind.value, "what": change.what, "price_ratio": change.price_ratio}
    names = {"modules": sorted(change.modules), "affects": sorted(change.affects)}
    parts = {"parts": [part.value for part in Part if part in change.parts]}
    return {**where, **what, **names, **parts, **(change.transaction.columns() if change.transaction else {})}
