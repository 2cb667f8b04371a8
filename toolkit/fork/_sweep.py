"""Many replays: reads are shared between versions at which a value is the same, and sent many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from toolkit.client._executors import opened_executor, results
from toolkit.client._fetch import checked_node, plan_versions
from toolkit.client._http import served_ledger
from toolkit.client._progress import progress_bar
from toolkit.client._reads import PAGE, LedgerAnchor, pages_of, read_transactions, send_all
from toolkit.errors import StudyError, ToolkitError, Unsupported
from toolkit.fork._fork import Fork, check_bytecode, fork_of, replaced_code
from toolkit.fork._ledger import GAS_SCHEDULE
from toolkit.fork._replay import PARTS, called_function, differences, fee_of, prepare_committed, status_words
from toolkit.fork._schedule import changed_schedule
from toolkit.fork._state import NO_RESULT, LearnedKeys, NodeState, StateSource, prefetch
from toolkit.vm import execute
from toolkit.wire import UserTransaction
from toolkit.wire._on_chain import ExecutedTransaction
from toolkit.wire._state_keys import key_hash
from toolkit.wire._transactions import BlockMetadataTransaction

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
    from concurrent.futures import Executor

    import pandas as pd

    from toolkit.client._progress import Progress, ProgressHook
    from toolkit.client._reads import Reads
    from toolkit.client._versions import Versions
    from toolkit.fork._fork import ForkSimulation
    from toolkit.vm._state import Read, StateValue
    from toolkit.wire import GasSchedule, SimulationRequest

MAX_VALUES = 20_000  # state values in memory; a transfer reads about 40, most of them the same for all
_TASK = 5 * PAGE  # versions of a call of an executor


_hash_of = lru_cache(MAX_VALUES)(key_hash)


class Timeline:
    """State values over a range of versions whose transactions are known: a value holds until it is written.

    Values are shared between the versions of a run of versions, each of which has been seen: what no transaction of the
    run writes is the same at all of them.
    """

    def __init__(self) -> None:
        self._runs: dict[int, int] = {}
        self._last, self._run = -1, 0
        self._writes: dict[str, list[int]] = {}
        self.values: OrderedDict[Any, StateValue | None] = OrderedDict()

    def see(self, version: int, written: Sequence[str]) -> None:
        """Note the next transaction, by the hashes of the state keys that it writes."""
        if version != self._last + 1:
            self._run += 1
        self._last = version
        self._runs[version] = self._run
        for one in written:
            self._writes.setdefault(one, []).append(version)

    def mark(self, key: bytes, version: int) -> tuple[bytes, int, int]:
        """Return what identifies the value under a key in the state before the transaction after `version`."""
        versions = self._writes.get(_hash_of(key), ())
        place = bisect_right(versions, version)
        return key, self._runs[version + 1], versions[place - 1] if place else -1

    def forget(self) -> None:
        """Forget what is not needed after all transactions that have been seen are replayed."""
        while len(self.values) > MAX_VALUES:
            self.values.popitem(last=False)
        self._runs = {self._last: self._run}
        held = {_hash_of(key) for key, _, _ in self.values}
        self._writes = {one: versions[-1:] for one, versions in self._writes.items() if one in held}


class _SharedState(NodeState):
    """The state at one version of a timeline."""

    def __init__(self, source: StateSource, version: int, timeline: Timeline) -> None:
        super().__init__(source, version)
        self._values, self._timeline = timeline.values, timeline

    def mark(self, key: bytes) -> Hashable:
        return self._timeline.mark(key, self.version)


@dataclass(frozen=True)
class Change:
    """Other code or another schedule, under which transactions are replayed too.

    Attributes
    ----------
    values : dict of bytes to bytes
        Values by state key, such as code; None if there is none.
    created : dict of bytes to (bytes, metadata)
        What publishing the code creates besides, such as the resources of ``init_module``; it is there only if the
        state does not have the key.
    schedule : GasSchedule, mapping or None
    """

    values: Mapping[bytes, bytes | None]
    created: Mapping[bytes, StateValue]
    schedule: GasSchedule | Mapping[str, int | str] | None = None

    @property
    def replaced(self) -> frozenset[bytes]:
        """The state keys whose values the change replaces."""
        return frozenset(self.values) | ({GAS_SCHEDULE} if self.schedule is not None else frozenset())

    def on(self, read: Read, loaded: set[bytes] | None = None) -> Read:
        """Return a state with the change; the replaced keys that are read are added to `loaded`."""
        changed: dict[bytes, bytes | None] = dict(self.values)
        if self.schedule is not None and (found := read(GAS_SCHEDULE)) is not None:
            changed[GAS_SCHEDULE] = changed_schedule(found[0], self.schedule)

        def altered(key: bytes) -> StateValue | None:
            before = read(key)
            if key not in changed:
                return self.created.get(key) if before is None else before
            if loaded is not None:
                loaded.add(key)
            value = changed[key]
            return None if value is None else (value, None if before is None else before[1])

        return altered


def change_of(
    node: Any, code: Any, schedule: GasSchedule | Mapping[str, int | str] | None, version: int
) -> Change | None:
    """Return a change after checking, on the state of a version, that it can be made; None if nothing changes.

    Raises
    ------
    InputError
        If the package cannot be read or published, none of its modules replaces one of the ledger, or the schedule has
        no such parameter.
    NodeError, NodeUnreachable
        If the state cannot be read.
    """
    if code is None and schedule is None:
        return None
    fork = Fork(node, version)
    modules: dict[bytes, bytes] = {}
    created: dict[bytes, StateValue] = {}
    if code is not None:
        modules, created = replaced_code(fork, code)
    if schedule is not None:
        fork.gas_schedule = schedule  # raises if a parameter does not exist
    return Change(modules, created, schedule)


def replay(
    node: Any,
    versions: Versions,
    *,
    function: str | None = None,
    code: Any = None,
    gas_schedule: GasSchedule | Mapping[str, int | str] | None = None,
    out: str | os.PathLike[str] | None = None,
    executor: Executor | str | None = None,
    progress: bool | ProgressHook = True,
) -> pd.DataFrame:
    """Replay committed transactions, and compare each with the ledger; also under other code or another gas schedule.

    Parameters
    ----------
    node : Node
    versions : version plan
        Such as ``"2000:2500"``. Versions that are not user transactions are left out.
    function : str, optional
        Only transactions that call this function.
    code : path, bytes or iterable of bytes, optional
        A compiled package, as for `Fork.publish`, which replaces the published one when transactions run again. The
        ledger must accept it on the state before the first version, which is checked first.
    gas_schedule : GasSchedule or mapping, optional
        A schedule, or parameters with new values or factors, such as ``{"instr.*": "x10"}``, under which transactions
        run again.
    out : str or Path, optional
        Folder that stores the rows, in groups of 500 versions, so that an interrupted replay can be resumed: repeat the
        call with the same folder. A plan that ends at the head keeps the versions of the first call.
    executor : Executor or str, optional
        As for `Study.run`: ``"processes:2"``, a Dask client, or any executor. By default, in this thread.
    progress : bool or callable, default True
        Show a progress bar, or call a function, as for `Study.run`.

    Returns
    -------
    DataFrame
        One row per transaction: ``verified``, gas by part as committed and as replayed, and under the other code or
        schedule. A transaction that cannot be replayed is a row with an error code: ``unsupported`` if the machine does
        not implement something that it needs, else as for other reads. Gas of rows that are not verified should not be
        used.

    Raises
    ------
    InputError
        If the plan cannot be parsed, the package cannot be read or published, or the node is embedded: its contracts
        are Python, not bytecode.
    StudyError
        If `out` has replays of something else or of another ledger, or another process writes to it.
    RunStopped
        If `out` cannot be written, or the executor fails.
    NodeError, NodeUnreachable
        If the node does not report its head; with `out`, also if it no longer responds.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect("mainnet")
    >>> found = toolkit.replay(node, "-1000:", function="0x1::aptos_account::transfer")  # doctest: +SKIP
    >>> found["verified"].mean()  # doctest: +SKIP
    1.0
    """
    from toolkit.frames._columns import frame_of_rows
    from toolkit.frames._schema import REPLAYS

    node = checked_node(node)
    check_bytecode(node)
    planned = sorted(set(plan_versions(node, versions, state=False)[0].versions))
    if not planned:
        return frame_of_rows(REPLAYS, [])
    change = change_of(node, code, gas_schedule, max(planned[0] - 1, 0))
    if out is None:
        rows = replay_all(node, planned, function, change, executor=executor, progress=progress)
        return frame_of_rows(REPLAYS, rows)
    from toolkit.fork._folder import FORMAT, ReplayFolder, ReplayPlan, change_digest, versions_digest
    from toolkit.frames._calls import NO_ANSWER

    known = LedgerAnchor.taken(node, planned[-1])
    anchor = known.anchor
    wanted = ReplayPlan(
        format=FORMAT,
        plan=versions if isinstance(versions, str) else versions_digest(planned),
        function=function,
        change="" if change is None else change_digest(change.values, change.schedule),
        chain_id=known.chain_id,
        anchor=planned[-1],
        anchor_hash=None if anchor is None else anchor.transaction_hash,
        versions=planned,
    )
    folder = ReplayFolder(out)
    with folder.opened(wanted) as plan:
        found = LedgerAnchor.taken(node, plan.anchor).anchor
        if plan.anchor_hash is not None and found is not None and found.transaction_hash != plan.anchor_hash:
            text = f"{folder.path} has replays of another ledger: transaction {plan.anchor} has another hash"
            raise StudyError(text)
        groups = _groups(plan.versions)
        missing = folder.missing(groups)
        count = sum(map(len, missing))
        with progress_bar(len(plan.versions), "replaying", show=progress) as bar:
            bar.advance(len(plan.versions) - count)
            for place, rows in _replayed_groups(node, missing, function, change, executor=executor, bar=bar):
                if any(row.get("error_code") in NO_ANSWER for row in rows):
                    node.info()  # raises if the node is gone: its rows are replayed when the call is repeated
                folder.store(missing[place], rows)
        return folder.frame(groups)


def _groups(versions: Sequence[int]) -> list[Sequence[int]]:
    return [versions[at : at + _TASK] for at in range(0, len(versions), _TASK)]


def replay_all(
    node: Reads,
    versions: Sequence[int],
    function: str | None,
    change: Change | None,
    *,
    executor: Executor | str | None = None,
    progress: bool | ProgressHook = True,
) -> list[dict[str, Any]]:
    """Replay versions here or on an executor, and return the rows of `replay` by version."""
    with progress_bar(len(versions), "replaying", show=progress) as bar:
        groups = _replayed_groups(node, _groups(versions), function, change, executor=executor, bar=bar)
        return sorted((row for _, rows in groups for row in rows), key=_version)


def _replayed_groups(
    node: Reads,
    groups: Sequence[Sequence[int]],
    function: str | None,
    change: Change | None,
    *,
    executor: Executor | str | None,
    bar: Progress,
) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """Yield (position, rows) as groups of versions are done."""
    with opened_executor(executor) as pool:
        if pool is None:
            sweep = _Sweep(node, function, change)
            for place, group in enumerate(groups):
                yield place, sweep.rows(group, bar.advance)
            return
        calls = ((node, group, function, change) for group in groups)
        for place, found in results(pool, _task_rows, calls, len(groups)):
            yield place, found
            bar.advance(len(groups[place]))


def _version(row: Mapping[str, Any]) -> int:
    return int(row["ledger_version"])


def _task_rows(node: Reads, versions: Sequence[int], function: str | None, change: Change | None) -> list[Any]:
    """Replay versions in a worker."""
    return _Sweep(node, function, change).rows(versions, lambda _: None)


class _Sweep:
    """Replays versions in ascending order; what is read is shared between them."""

    def __init__(self, node: Reads, function: str | None, change: Change | None) -> None:
        self.node, self.function, self.change = node, function, change
        self.source, self.timeline, self.learned = StateSource(node), Timeline(), LearnedKeys()

    def rows(self, versions: Sequence[int], advance: Callable[[int], None]) -> list[dict[str, Any]]:
        """Return the rows of versions, and report each page of them that is done."""
        rows: list[dict[str, Any]] = []
        for page in pages_of(versions):
            indices: dict[int, int | None] = {}
            rows += self._see(page, indices)
            rows += self._replayed(indices)
            self.timeline.forget()
            advance(len(page))
        return sorted(rows, key=_version)

    def _see(self, page: Sequence[int], indices: dict[int, int | None]) -> Iterator[dict[str, Any]]:
        """Read the transactions of a page, and note the index in its block of each that is to be replayed.

        Yields a row for each version that cannot be read.
        """
        transactions: dict[int, Any] = {}
        for answer in read_transactions(self.node, [page]):
            transactions |= dict(answer.found)
            for missing in answer.missing:
                for version in range(missing.first, missing.last + 1):
                    yield _failed({"ledger_version": version}, missing.error)
        block: int | None = None
        for version in sorted(transactions):
            one = transactions[version]
            self.timeline.see(version, [written.state_key_hash for written in getattr(one, "changes", ())])
            if isinstance(one, BlockMetadataTransaction):
                block = version
            if isinstance(one, UserTransaction) and self.function in {None, one.call().function}:
                indices[version] = None if block is None else version - block

    def _replayed(self, indices: dict[int, int | None]) -> Iterator[dict[str, Any]]:
        node, wanted = self.node, list(indices)
        unknown = [version for version, index in indices.items() if index is None]
        for place, block in send_all(node, unknown, node.prepare_block):
            if not isinstance(block, ToolkitError):
                indices[unknown[place]] = unknown[place] - block.first_version
        outcomes = send_all(node, wanted, lambda version: prepare_committed(node, version))
        found = {wanted[place]: outcome for place, outcome in outcomes}
        states = {version: _SharedState(self.source, version - 1, self.timeline) for version in wanted}
        prefetch(
            (states[version], [*one.writes, *self.learned])
            for version, one in found.items()
            if isinstance(one, ExecutedTransaction)
        )
        for version in wanted:
            committed, state = found[version], states[version]
            about: dict[str, Any] = {"ledger_version": version}
            if isinstance(committed, ToolkitError):
                yield _failed(about, committed)
                continue
            yield self._row(about, committed, state, indices[version])
            self.learned.learn(key for key in state.asked if key not in committed.writes)

    def _row(
        self, about: dict[str, Any], committed: ExecutedTransaction, state: NodeState, index: int | None
    ) -> dict[str, Any]:
        signed, fee = committed.signed, fee_of(committed.events)
        transaction = signed.to_bcs()
        about |= {"function": called_function(committed), "sender": signed.raw.sender}
        about |= {"success": committed.status.success, "outcome": status_words(committed.status)}
        about |= {"gas_unit_price": signed.raw.gas_unit_price} | _gas("", committed.gas_used, fee)
        try:
            done = execute(transaction, state, transaction_index=index)
            about |= _gas("replayed_", done.gas_used, fee_of(done.events))
            found = list(differences(committed, done, metadata=state.has_metadata))
            about |= {"verified": not found, "differences": len(found)}
            if self.change is not None:
                loaded: set[bytes] = set()
                other = execute(transaction, self.change.on(state, loaded), transaction_index=index)
                about |= _gas("changed_", other.gas_used, fee_of(other.events))
                about |= {"changed_success": other.status.success, "changed_outcome": status_words(other.status)}
                about |= {"changed_loaded": bool(loaded)}
        except NO_RESULT as error:
            return _failed(about, error)
        return about


def _gas(prefix: str, total: int, fee: Any) -> dict[str, int | None]:
    parts = {f"{prefix}{name}": None if fee is None else getattr(fee, name) for _, _, name in PARTS}
    return {f"{prefix}gas_used": total} | parts


def _failed(about: dict[str, Any], error: ToolkitError) -> dict[str, Any]:
    from toolkit.frames._calls import Failure

    if isinstance(error, Unsupported):
        return about | {"error_code": "unsupported", "error_message": str(error)}
    failure = Failure.of(error)
    return about | {"error_code": failure.error_code, "error_message": failure.message}


_BLOCK = 25  # versions whose state is read ahead together; the memory of a block is some megabytes


def simulate_at_versions(
    node: Any, tasks: Sequence[tuple[SimulationRequest, int]]
) -> Iterator[tuple[int, ForkSimulation | ToolkitError]]:
    """Simulate each request on the state of a version, and yield (position, result or error) by version.

    The keys that earlier executions read are read ahead, many versions at once.
    """
    places: dict[int, list[int]] = {}
    for place, (_, version) in enumerate(tasks):
        places.setdefault(version, []).append(place)
    for fork, version in _forks(node, sorted(places)):
        for place in places[version]:
            try:
                if isinstance(fork, ToolkitError):
                    raise fork
                yield place, fork.simulate(tasks[place][0])
            except NO_RESULT as error:
                yield place, error


def _forks(node: Any, versions: Sequence[int]) -> Iterator[tuple[Fork | ToolkitError, int]]:
    """Yield a fork of each version, or why there is none; its state is read ahead."""
    if served_ledger(node.url) is not None:
        for version in versions:
            try:
                yield fork_of(node, version), version
            except NO_RESULT as error:
                yield error, version
        return
    source, learned = StateSource(node), LearnedKeys()
    at = 0
    while at < len(versions):
        # The first version alone: what it reads is read ahead for the others.
        block = versions[at : at + (_BLOCK if at else 1)]
        at += len(block)
        states = [NodeState(source, version) for version in block]
        prefetch((state, learned) for state in states)
        for state in states:
            yield Fork(node, state.version, state=state), state.version
            learned.learn(state.asked)
