"""The fetch functions: each makes many calls and returns a typed frame, in which a failed call is a row."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.client import _arguments as arguments
from toolkit.client import _reads as reads
from toolkit.client._accounts import declared_types, note_amounts, read_asset
from toolkit.client._calls import PreparedItem, PreparedView
from toolkit.client._http import Outcomes, PreparedCall, mark_model
from toolkit.client._node_errors import NO_ITEM
from toolkit.client._progress import progress_bar
from toolkit.client._reads import LedgerAnchor, LedgerGuard, Reads, TransactionStore, send_all
from toolkit.client._simulation import SimulationFrames, checked_simulations, send_simulations
from toolkit.client._transaction_data import EVENT_IDENTITY, TransactionFrames, typed_at
from toolkit.client._versions import FindSteps, ResolvedPlan, Versions, evenly, next_round, resolve_versions
from toolkit.client._warnings import warn_caller, warn_of_similar, warn_of_types
from toolkit.errors import FailedReadsWarning, InputError, NodeError, NodeUnreachable, SchemaError, ToolkitError
from toolkit.frames._calls import Failure, TableItemRecord, ViewRecord, item_frame, outcome_columns, view_frame
from toolkit.frames._columns import compact_json
from toolkit.frames._schema import RESOURCES
from toolkit.frames._transactions import page_tables, payload_frame, rows_of_events, transaction_frames
from toolkit.move import FunctionId, Layout, TypeTag, Untyped, parse_type_tag
from toolkit.move._type_tags import wire_type
from toolkit.wire import BlockInfo, LedgerState, SimulationRequest, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    import pandas as pd

    _Tasks = Sequence[tuple[str, int]]

_NodeT = TypeVar("_NodeT")
T = TypeVar("T")
_Task = TypeVar("_Task")

# Of this many versions one is dated first: neighbours are often in one block, and a block is read once.
_STRIDE = 32
# Keys that are looked for at earlier versions: each costs about 45 requests.
_MAX_LOOKED_BACK = 100
# Earlier versions spread over the whole history; others lie just before the first planned version.
_EARLIER_VERSIONS = 32
# Characters of an error in a warning about some rows; the rows have all of it.
_MAX_REASON = 400


def checked_node(node: _NodeT) -> _NodeT:
    """Return a node, or the node of a store; raise InputError for anything else, such as a snapshot."""
    if isinstance(node, Reads):
        return node
    if isinstance(node, TransactionStore):
        return node.node  # type: ignore[return-value]  # a Node, as every caller expects
    if isinstance(getattr(node, "node", None), Reads):
        version = getattr(node, "ledger_version", None)
        pinned = "" if version is None else f" and versions={version}"
        raise InputError(f"expected a Node, got a {type(node).__name__}; use its .node{pinned}")
    raise InputError(f"expected a Node, as returned by toolkit.connect, got {shorten(node)}; fetches take it first")


def plan_versions(node: Reads, versions: Versions | None, *, state: bool = True) -> tuple[ResolvedPlan, LedgerState]:
    """Resolve a version plan as `resolved_plan` does, and warn about clipped versions."""
    plan, ledger = resolved_plan(node, versions, state=state)
    for note in plan.notes:
        warn_caller(note)
    return plan, ledger


def resolved_plan(node: Reads, versions: Versions | None, *, state: bool = True) -> tuple[ResolvedPlan, LedgerState]:
    """Resolve a version plan against a node's ledger, which is read once and also returned.

    If a probe has found an oldest readable version, it applies to reads of state only. Pass ``state=False`` for reads
    of transactions.
    """
    ledger = node.ledger()
    given, claimed = -1 if versions is None else versions, ledger.oldest_version
    oldest, version_at = node.oldest_readable(ledger) if state else claimed, partial(node.first_from, ledger=ledger)
    plan = resolve_versions(given, head=ledger.version, oldest=oldest, version_at=version_at, claimed=claimed)
    return plan, ledger


class _Sweep:
    """Many reads of one ledger at the versions of a plan, sent at once; the outcome of a failed read is its error.

    Attributes
    ----------
    node : Reads
    ledger : LedgerState
        The head, read once at the start.
    versions : sequence of int
        As planned.
    by_time : bool
        Whether the plan has times, so that the rows have them by default.
    oldest : int
        The oldest version that can be read.
    there : sequence of int
        Planned versions that the node has, sorted and without duplicates.
    newest : int
        The last version in `there`; the head if `there` is empty.
    show : bool
        Whether progress bars are shown.
    count : int
        Number of reads so far.
    errors : list of ToolkitError
        Errors of the reads that failed.
    """

    def __init__(self, node: Reads, versions: Versions | None, *, state: bool = True, show: bool) -> None:
        self.node = node
        plan, self.ledger = plan_versions(self.node, versions, state=state)
        self.versions, self.by_time, self.show = plan.versions, plan.by_time, show
        self.oldest = self.node.oldest_readable(self.ledger)
        self.there = arguments.readable(plan.versions, oldest=self.oldest, head=self.ledger.version)
        self.newest = self.there[-1] if self.there else self.ledger.version
        self.count = 0
        self.errors: list[ToolkitError] = []
        self._guard: LedgerGuard | None = None

    def guard(self, reads: int) -> None:
        """Guard against a change of ledger between reads, unless there is only one read."""
        if reads > 1:
            self._guard = LedgerGuard(self.node, LedgerAnchor.taken(self.node, max(self.versions), ledger=self.ledger))

    def read(
        self, tasks: Sequence[_Task], prepare: Callable[[_Task], PreparedCall[T]], *, what: str
    ) -> list[T | ToolkitError]:
        """Send tasks and return their outcomes in the order of the tasks."""
        sent = send_all(self.node, tasks, prepare)
        return self.noted(self.collect(sent, len(tasks), what))

    def collect(self, outcomes: Outcomes[T], count: int, what: str) -> list[T | ToolkitError]:
        """Return outcomes in order of their positions."""
        found: dict[int, T | ToolkitError] = {}
        with progress_bar(count, what, show=self.show) as bar:
            for place, outcome in outcomes:
                bar.advance(1)
                found[place] = outcome
                self.check_if_due()
        return [found[place] for place in range(count)]

    def noted(self, outcomes: list[T | ToolkitError]) -> list[T | ToolkitError]:
        """Count outcomes and the errors among them, and return them."""
        self.count += len(outcomes)
        self.errors += [one for one in outcomes if isinstance(one, ToolkitError)]
        return outcomes

    def check_if_due(self) -> None:
        """Check about once a minute that the node still serves the same ledger."""
        if self._guard is not None:
            self._guard.check_if_due()

    def times_of(self, versions: Iterable[int], *, times: bool | None) -> dict[int, datetime]:
        """Return the time of the head, which is known, and the times of the given versions if they are wanted."""
        found = {self.ledger.version: self.ledger.timestamp}
        if self.by_time if times is None else times:
            others = sorted(set(versions) - {self.ledger.version})
            found |= block_times(self.node, others, show=self.show)
        return found

    def finish(self, what: str) -> None:
        """Check the ledger if any read succeeded, and warn about failures."""
        if self._guard is not None and len(self.errors) < self.count:
            self._guard.check_at_end()
        _warn_of_failures(self.errors, self.count, what)


def fetch_views(
    node: Reads,
    calls: str | ViewFunction | Mapping[str, str | ViewFunction] | Sequence[str | ViewFunction],
    versions: Versions | FindSteps | None = None,
    *,
    typed: bool = True,
    flatten: bool = False,
    times: bool | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Run view functions at many ledger versions.

    Parameters
    ----------
    node : Node
    calls : str, ViewFunction, mapping of str to either, or sequence of either
        A string names a function without arguments. For a mapping or sequence, the frame has a ``call`` column: the
        keys of the mapping, which are names of your choice (not ``view`` and ``arguments``, as in a `Study`), or the
        function names (with arguments if a function is called more than once).
    versions : version plan or FindSteps, optional
        ``"a:b/n"``, ``"a:b:step"``, ``"-n:"``, ``"2026-05-01..2026-06-01/n"``, ``"2026-05-01.."``,
        ``"2026-05-01..2026-06-01:1d"`` (the last version of each day; ``min``, ``h``, ``w`` and ``mo`` also work), a
        list or a range, times such as a DatetimeIndex or date texts (the last version at or before each), or a
        PeriodIndex (the last version of each period). The default is the head. Both ends are included, and -1 is the
        head, which is read once, before anything is fetched. With `FindSteps`, each call is read at the versions needed
        to find the steps in its gas, success and error code, as in a `Study`.
    typed : bool, default True
        If False, the frame has one ``value`` column of JSON text for all calls.
    flatten : bool, default False
        Replace struct columns with one column per field.
    times : bool, optional
        Whether to fill ``ledger_timestamp`` of every row, at the cost of one request per block other than the head's.
        By default, it is filled if the version plan has dates or times.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (calls * versions, 8 + value columns), with one more column ``call`` for a mapping or sequence
        One row per call and version, sorted by call, then in the order of the version plan (ascending for `FindSteps`).
        A failed call is a row with an ``error_code`` and null values. If all calls return the same types, they share
        the column ``value`` (``value_0``, ``value_1``, ... for several values). Otherwise each call has its own typed
        column, ``value[call]``, which is null in the rows of other calls. Every column therefore has one type and can
        be plotted directly, and gas and errors of all calls are in one frame. If an upgrade changes the type that a
        call returns, there is a column per type, such as ``value[u64]`` and ``value[u128]`` (``value[call][u64]``),
        null in the rows of the other type. A value that does not fit its type, or a response not from the node, such as
        a gateway's error page, is a row with the ``error_code`` ``schema_error``.

    Raises
    ------
    InputError
        If the plan cannot be parsed, the node has none of its versions, or a call is invalid both at the head and at
        every version: the function does not exist, is not a view function, or does not accept the arguments. All calls
        are checked against the ABI before anything is read. If a call is valid at some versions only, the rows of the
        other versions have an ``error_code``.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger: a response has a different chain id, or the history differs. The
        history is checked every minute and at the end.

    Warns
    -----
    UserWarning
        If the plan is clipped to the readable versions, or the return type of a call changes within the plan.
    FailedReadsWarning
        If every row failed (the warning quotes the most common error), or if a response does not fit its type.

    Notes
    -----
    Types come from the module's ABI at the version read. Many nodes list a module's enums without their variants.
    Integers of more than 32 bits inside such a value then remain text, as noted in the ``meaning`` of the column in
    ``attrs["toolkit"]``. Source: ``POST /v1/view``.

    Examples
    --------
    >>> import toolkit
    >>> call = toolkit.ViewFunction("0x1::chain_id::get")
    >>> frame = toolkit.fetch_views(toolkit.connect(), call, versions="0:200:100", progress=False)
    >>> frame[["ledger_version", "value"]].to_numpy().tolist()
    [[0, 4], [100, 4], [200, 4]]

    Calls that return different types:

    >>> calls = {"chain": "0x1::chain_id::get", "time": "0x1::timestamp::now_microseconds"}
    >>> frame = toolkit.fetch_views(toolkit.connect(), calls, versions="100:101", progress=False)
    >>> frame["value[chain]"].dropna().tolist(), str(frame["value[time]"].dtype)
    ([4, 4], 'uint64[pyarrow]')
    """
    node = checked_node(node)
    named = arguments.named_calls(calls)
    search = versions if isinstance(versions, FindSteps) else None
    plan = versions.versions if isinstance(versions, FindSteps) else versions
    sweep = _Sweep(node, plan, show=progress)
    arguments.check_calls(sweep.node, named, sweep.there)
    sweep.guard(len(named) * len(sweep.versions))
    ready = {name: PreparedView(sweep.node, call, typed=typed) for name, call in named.items()}

    def read(tasks: _Tasks) -> list[ViewRecord]:
        ordered = sorted({version for _, version in tasks})
        for call in named.values():
            function = FunctionId.parse(call.function)
            sweep.node.abis.prepare(function.address, function.module, ordered)
        outcomes = sweep.read(tasks, lambda task: ready[task[0]].at(task[1]), what="views")
        return [ViewRecord.of(*task, outcome) for task, outcome in zip(tasks, outcomes, strict=True)]

    if search is None:
        records = read([(name, version) for name in named for version in sweep.versions])
    else:
        records = _searched(search, sweep.versions, list(named), read)
    sweep.finish("views")
    known_times = sweep.times_of((record.ledger_version or 0 for record in records), times=times)
    single = isinstance(calls, str | ViewFunction)
    layouts = _declared(records, ready, sweep.newest) if typed else {}
    frame = view_frame(records, typed=typed, flatten=flatten, named=not single, layouts=layouts, times=known_times)
    mark_model(frame, sweep.node)
    warn_of_types(frame, next(iter(named)) if len(named) == 1 else "a call")
    if typed:
        note_amounts(frame, named, lambda asset: read_asset(sweep.node, asset, sweep.newest))
    return frame


def fetch_table_items(
    node: Reads,
    handle: str,
    keys: Iterable[Any],
    versions: Versions | None = None,
    *,
    key_type: str | None = None,
    value_type: str | None = None,
    owner: str | None = None,
    flatten: bool = False,
    times: bool | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Read items of a table by their keys, at one or many ledger versions.

    Parameters
    ----------
    node : Node
    handle : str
        Table handle.
    keys : iterable
        Python values of `key_type`, or any other form that `Node.table_item` accepts, such as decimal text for a u64.
        Nodes cannot list the keys of a table.
    versions : version plan, optional
        As in `fetch_views`.
    key_type, value_type : str, optional
        Move types. By default, the types that a resource of `owner` declares for the table.
    owner : str, optional
        Account or object whose resource holds the table. The resource is read only if a type is omitted, at the newest
        version of the plan.
    flatten : bool, default False
        Replace struct columns with one column per field.
    times : bool, optional
        Whether to fill ``ledger_timestamp`` of every row, at the cost of one request per block other than the head's.
        By default, it is filled if the version plan has dates or times.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (keys * versions, >= 10)
        Sorted by key, then version. An item that does not exist is a row with a null ``value``; ``presence`` says
        whether it is missing, deleted or pruned. To distinguish missing from deleted items, keys without an item at any
        of the versions are also read at about 45 earlier versions, unless there are more than 100 such keys. An item
        that existed only between two of these earlier versions is reported as missing. A value that does not fit
        `value_type` is a row with the ``error_code`` ``schema_error``. If an upgrade changes `value_type` so that older
        values no longer fit, each form of the type has its own column, ``value[type]`` and ``value[type #2]``.

    Raises
    ------
    InputError
        If the handle, a type or the plan cannot be parsed, a type is neither given nor declared in a resource of
        `owner`, or no key fits `key_type`. If only some keys fit, the others become failure rows.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger, as in `fetch_views`.

    Warns
    -----
    UserWarning
        If the plan is clipped, or the type of the values changes, as in `fetch_views`.
    FailedReadsWarning
        If every row failed, for example because no item exists, or if a value does not fit its type.

    Notes
    -----
    Source: ``POST /v1/tables/{table_handle}/item``.

    Examples
    --------
    >>> import toolkit
    >>> frame = toolkit.fetch_table_items(
    ...     toolkit.connect(), "0x" + "a" * 64, keys=[1, 2], key_type="u64", value_type="bool", progress=False
    ... )
    >>> frame["presence"].tolist()
    ['missing', 'missing']

    With types from the table's declaration:

    >>> node = toolkit.connect()
    >>> handle = node.resource("0xcafe", "0xcafe::registry::Registry")["records"]["handle"]
    >>> frame = toolkit.fetch_table_items(node, handle, ["alice", "nobody"], owner="0xcafe", progress=False)
    >>> frame["presence"].tolist()
    ['present', 'missing']
    """
    node = checked_node(node)
    given = arguments.listed_keys(keys)
    sweep = _Sweep(node, versions, show=progress)
    key_type, value_type = declared_types(node, handle, key_type, value_type, owner=owner, version=sweep.newest)
    ready = [PreparedItem(node, handle, key=key, key_type=key_type, value_type=value_type) for key in given]

    def read(tasks: Sequence[tuple[int, int]], what: str) -> list[TableItemRecord]:
        outcomes = sweep.read(tasks, lambda task: ready[task[0]].at(task[1]), what=what)
        pairs = zip(tasks, outcomes, strict=True)
        return [TableItemRecord.of(given[place], version, outcome) for (place, version), outcome in pairs]

    tasks = [(place, version) for place in range(len(given)) for version in sweep.versions]
    sweep.guard(len(tasks))
    records = read(tasks, "table items")
    misfits = [error for error in sweep.errors if isinstance(error, InputError)]
    if misfits and len(misfits) == len(tasks):  # no key fits its type, so nothing was sent
        raise misfits[0]
    sweep.finish("reads of table items")
    placed = [(place, record) for (place, _), record in zip(tasks, records, strict=True)]
    absent = {place for place, one in placed if one.failure is not None and one.failure.error_code == NO_ITEM}
    absent -= {place for place, one in placed if one.failure is None}
    earlier: list[TableItemRecord] = []
    if absent and sweep.there and len(absent) <= _MAX_LOOKED_BACK:
        before = _before(sweep.there[0], sweep.oldest)
        earlier = read([(place, version) for place in sorted(absent) for version in before], "earlier table items")
    newest = max((one.ledger_version or 0 for one in records if one.failure is None), default=sweep.ledger.version)
    key, value = (_layout_or_untyped(node, text, newest) for text in (key_type, value_type))
    dates = sweep.times_of(sweep.versions, times=times)
    frame = item_frame(records, key_layout=key, value_layout=value, flatten=flatten, earlier=earlier, times=dates)
    warn_of_types(frame, f"the value of table {handle}")
    return frame


def fetch_simulations(
    node: Reads,
    requests: SimulationRequest | Iterable[SimulationRequest],
    versions: Versions | None = None,
    *,
    progress: bool = True,
) -> SimulationFrames:
    """Simulate many transactions, each independently, at the node's head or at many ledger versions.

    Parameters
    ----------
    node : Node
    requests : SimulationRequest or iterable of SimulationRequest
    versions : version plan, optional
        As in `fetch_views`: each request is executed on the state of each version, on a fork (`Node.fork`), so the node
        must serve the state. By default, the node simulates at its head.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    SimulationFrames
        With `versions`, sorted by request, then by version, as are ``results``. If the node rejects a request, or the
        request does not fit its function's ABI, its row of ``transactions`` has an ``error_code``, and ``results``
        contains the error.

    Raises
    ------
    InputError
        If `requests` is not a list of requests.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger, as in `fetch_views`.

    Warns
    -----
    FailedReadsWarning
        If every request was rejected; the warning quotes the most common error.

    Notes
    -----
    Source: ``POST /v1/transactions/simulate``, once per request; with `versions`, the state of each version. The head
    and each sender's sequence number are read once. Each request expires 600 s (50 s with a replay protection nonce)
    after the newest head known when it is sent.

    Examples
    --------
    >>> import toolkit
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> request = toolkit.SimulationRequest(call, sender="0x1")
    >>> frames = toolkit.fetch_simulations(toolkit.connect(), [request, request], progress=False)
    >>> frames.transactions["request"].tolist()
    [0, 1]

    What a call costs across ledger versions:

    >>> place = toolkit.EntryFunction("0xb00c::order_book::place", [True, 100, 5])
    >>> request = toolkit.SimulationRequest(place, sender="0xa11ce")
    >>> frames = toolkit.fetch_simulations(toolkit.connect(), request, [1_500, 3_000, 4_500], progress=False)
    >>> frames.transactions[["ledger_version", "gas_used"]].to_numpy().tolist()
    [[1500, 31], [3000, 32], [4500, 306]]
    """
    import pandas as pd

    given = checked_node(node)
    listed = arguments.listed_requests(requests)
    if not listed:
        return SimulationFrames(*transaction_frames([]), (), _node=given)
    sweep = _Sweep(given, versions, show=progress)
    tasks = [(request, version) for request in listed for version in sweep.versions]
    sweep.guard(len(tasks))
    # A node simulates at its head; at versions, forks of it do.
    at_head = send_simulations(given, listed, sweep.ledger) if versions is None else None
    sent = at_head or given.simulations_at(tasks)  # type: ignore[attr-defined]  # of a Node
    results = sweep.noted(checked_simulations(given, sweep.collect(sent, len(tasks), "simulations")))
    sweep.finish("simulations")
    done = {place: one.transaction for place, one in enumerate(results) if not isinstance(one, ToolkitError)}
    failed = [(place, Failure.of(one)) for place, one in enumerate(results) if isinstance(one, ToolkitError)]
    frames = transaction_frames([*done.values()], requests=[*done], failures=failed)
    mark_model(frames[0], given)  # forks of an embedded node have its model, too
    if versions is not None:
        at = pd.Series([version for _, version in tasks], dtype=frames[0]["ledger_version"].dtype)
        for frame in frames:  # each has the position of its request, then of its version
            frame["ledger_version"] = frame["ledger_version"].fillna(at.reindex(frame["request"]).set_axis(frame.index))
            frame["request"] = frame["request"] // len(sweep.versions)
    return SimulationFrames(*frames, tuple(results), _node=given)


def fetch_transactions(
    node: Reads | TransactionStore, versions: Versions, *, progress: bool = True
) -> TransactionFrames:
    """Read committed transactions.

    Parameters
    ----------
    node : Node or Archive
    versions : version plan
        As in `fetch_views`. Transactions are read in pages of 100, or of the node's page limit if that is smaller.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    TransactionFrames
        Sorted by version; includes every kind of transaction. If a version cannot be read, or its transaction is
        malformed, the row of ``transactions`` has an ``error_code``.

    Raises
    ------
    InputError
        If the plan cannot be parsed or read.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger, as in `fetch_views`.

    Warns
    -----
    UserWarning
        If the plan is clipped.
    FailedReadsWarning
        If every row failed; the warning quotes the most common error.

    Notes
    -----
    Source: ``GET /v1/transactions?start=&limit=``.

    Examples
    --------
    >>> import toolkit
    >>> frames = toolkit.fetch_transactions(toolkit.connect(), versions="0:9", progress=False)
    >>> frames.transactions["ledger_version"].tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    if isinstance(node, TransactionStore):
        return node.transactions(versions)
    sweep = _Sweep(checked_node(node), versions, state=False, show=progress)
    found: dict[int, Any] = {}
    failures: dict[int, Failure] = {}
    for page, missing in _pages(sweep):
        found.update(page)
        failures |= missing
    ordered = [found[version] for version in sorted(found)]
    frames = transaction_frames(ordered, failures=sorted(failures.items()), by="ledger_version")
    mark_model(frames[0], sweep.node)
    return TransactionFrames(*frames, _node=sweep.node)


def fetch_events(
    node: Reads | TransactionStore, event_type: str, versions: Versions, *, progress: bool = True
) -> pd.DataFrame:
    """Read the events of one type from committed transactions.

    Parameters
    ----------
    node : Node or Archive
    event_type : str
        Type of the event, such as ``0x1::transaction_fee::FeeStatement`` or ``u64``.
    versions : version plan
        As in `fetch_views`. Whole transactions are read, in pages of 100.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (events + versions that cannot be read, 7 + fields + 4)
        Sorted by version. The columns are ``ledger_version``, ``ledger_timestamp``, ``hash``, ``event_index`` and the
        guid, then one typed column per field, then the failure columns. ``ledger_timestamp`` is always filled, because
        transactions include it. A version that cannot be read is a row with an
        ``error_code``, as is an event that does not fit its type (``schema_error``). If nothing is found, a warning
        suggests similar event types.

    Raises
    ------
    InputError
        If the type or the plan cannot be parsed, the plan cannot be read, or the type or its module exists neither at
        the head nor at any of the versions. Existence is checked before anything is read.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger, as in `fetch_views`.

    Warns
    -----
    UserWarning
        If the plan is clipped, a field has a column per type, or the module of the type has been pruned. A pruned
        module is replaced by the module at the oldest planned version at which the node has it.
    FailedReadsWarning
        If every version failed (the warning quotes the most common error), or if an event does not fit its type.

    See Also
    --------
    fetch_transactions : All events, untyped; call ``events_of`` on the result for the events of one type.

    Notes
    -----
    Source: ``GET /v1/transactions?start=&limit=``. Types come from the module's ABI at the version of each event. If
    the type changes between versions, each column has the field's newest type, and is null where the field did not
    exist yet. If an older value does not fit the newest type, the field has a column per type, such as ``field[u64]``
    and ``field[u8]``.

    Examples
    --------
    >>> import toolkit
    >>> node, fee_statement = toolkit.connect(), "0x1::transaction_fee::FeeStatement"
    >>> fees = toolkit.fetch_events(node, fee_statement, "1000:1020", progress=False)
    >>> bool((fees["total_charge_gas_units"] > 0).all())
    True
    """
    if isinstance(node, TransactionStore):
        return node.events_of(event_type, versions)
    node = checked_node(node)
    tag = arguments.event_tag(event_type)
    sweep = _Sweep(node, versions, state=False, show=progress)
    arguments.check_struct(sweep.node, "event type", tag, sweep.there)
    parts = [rows_of_events(*page_tables([]), str(tag), failures={})]  # the columns, if the plan has no version
    types: set[str] = set()
    for page, missing in _pages(sweep):
        heads, events = page_tables(page)
        types.update(events["type"].to_pylist())
        parts.append(rows_of_events(heads, events, str(tag), failures=missing))
    rows = pa.concat_tables(parts).sort_by("ledger_version")
    if rows["type"].null_count == len(rows):
        warn_of_similar(event_type, types, f"these transactions have no {event_type}")
    identity = ("ledger_version", "ledger_timestamp", "hash", *EVENT_IDENTITY)
    return typed_payload_frame(sweep.node, tag, rows, identity, "events")


def fetch_resources(
    node: Reads,
    address: str | Iterable[str],
    tag: str,
    versions: Versions | None = None,
    *,
    times: bool | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """Read a resource at one or many ledger versions.

    Parameters
    ----------
    node : Node
    address : str or iterable of str
        Accounts or objects that hold the resource, read one after another.
    tag : str
        Struct tag, such as ``0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>``.
    versions : version plan, optional
        As in `fetch_views`.
    times : bool, optional
        Whether to fill ``ledger_timestamp`` of every row, at the cost of one request per block other than the head's.
        By default, it is filled if the version plan has dates or times.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (addresses * versions, 4 + fields + 4)
        Sorted by address, then version. The columns are ``address``, ``ledger_version``, ``ledger_timestamp`` and
        ``head_version``, then one typed column per field, then the failure columns. If the resource does not exist at a
        version, the ``error_code`` is ``resource_not_found``; if it does not fit its type, ``schema_error``.

    Raises
    ------
    InputError
        If an address, the type or the plan cannot be parsed, the plan cannot be read, or the type or its module exists
        neither at the head nor at any of the versions. Existence is checked before anything is read.
    NodeError, NodeUnreachable, SchemaError
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger, as in `fetch_views`.

    Warns
    -----
    UserWarning
        If the plan is clipped, or a field has a column per type.
    FailedReadsWarning
        If every row failed (the warning quotes the most common error), or if a resource does not fit its type.

    Notes
    -----
    Source: ``GET /v1/accounts/{address}/resource/{type}``. Types come from the module's ABI at the version read. If the
    type changes between versions, each column has the field's newest type, and is null where the field did not exist
    yet. If an older value does not fit the newest type, the field has a column per type, as in `fetch_events`.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> frame = toolkit.fetch_resources(node, "0x1", "0x1::chain_id::ChainId", "0:200:100", progress=False)
    >>> frame[["ledger_version", "id"]].to_numpy().tolist()
    [[0, 4], [100, 4], [200, 4]]
    """
    node = checked_node(node)
    parsed = arguments.struct_tag("resource type", tag)
    owners = arguments.listed_addresses(address)
    sweep = _Sweep(node, versions, show=progress)
    arguments.check_struct(node, "resource type", parsed, sweep.there)
    tasks = [(owner, version) for owner in owners for version in sweep.versions]
    sweep.guard(len(tasks))
    outcomes = sweep.read(tasks, lambda task: node.prepare_resource(task[0], str(parsed), task[1]), what="resources")
    sweep.finish("reads of resources")
    known_times = sweep.times_of({version for _, version in tasks}, times=times)
    ledgers = [getattr(one, "ledger", None) if isinstance(one, ToolkitError) else one[1] for one in outcomes]
    texts = [None if isinstance(one, ToolkitError) else compact_json(one[0]) for one in outcomes]
    rows = RESOURCES.table(
        {
            "address": [owner for owner, _ in tasks],
            "ledger_version": [version for _, version in tasks],
            "ledger_timestamp": [known_times.get(version) for _, version in tasks],
            "head_version": [ledger and ledger.version for ledger in ledgers],
            **outcome_columns([Failure.of(one) if isinstance(one, ToolkitError) else None for one in outcomes]),
        }
    )
    rows = rows.append_column("data", pa.array(texts, type=pa.string()))
    identity = ("address", "ledger_version", "ledger_timestamp", "head_version")
    return typed_payload_frame(node, parsed, rows, identity, "resources")


def _layout_or_untyped(node: Reads, text: str, version: int) -> Layout:
    tag = parse_type_tag(text)
    try:
        return node.abis.at(version).layout(tag)
    except (NodeError, NodeUnreachable, SchemaError) as error:  # the rows say so
        return Untyped(tag, str(error))


def _before(first: int, oldest: int) -> list[int]:
    """Return earlier versions at which to look for a missing item: a coarse grid that is dense just before `first`."""
    near = {first - 2**power for power in range(first.bit_length())}
    spread = evenly(oldest, first, _EARLIER_VERSIONS)
    return sorted(version for version in {*near, *spread} if oldest <= version < first)


def _searched(
    search: FindSteps, versions: Sequence[int], names: Sequence[str], read: Callable[[_Tasks], list[ViewRecord]]
) -> list[ViewRecord]:
    """Return the records that a step search reads in a range of versions, sorted by call and version."""
    found: dict[str, dict[int, ViewRecord]] = {name: {} for name in names}
    first, last = versions[0], versions[-1]
    while True:
        tasks = []
        for name in names:
            outcomes = {version: _outcome(record) for version, record in found[name].items()}
            wanted = next_round(outcomes, first=first, last=last, initial=search.initial, limit=search.max_requests)
            tasks += [(name, version) for version in wanted]
        if not tasks:
            return [found[name][version] for name in names for version in sorted(found[name])]
        for (name, version), record in zip(tasks, read(tasks), strict=True):
            found[name][version] = record


def _outcome(record: ViewRecord) -> Hashable:
    """Return what a step search compares: gas, error code, and whether the call ran; None if nothing was read."""
    failure = record.failure
    if failure is None:
        return record.gas_used, None, True
    if not failure.answered:
        return None
    return record.gas_used, failure.error_code, failure.vm_error_code is not None


def _declared(
    records: Sequence[ViewRecord], ready: Mapping[str, PreparedView], version: int
) -> dict[str | None, tuple[Layout, ...]]:
    """Return the return layouts, where known at a version, of the calls that have no result at any version."""
    answered = {record.call for record in records if record.values is not None}
    found: dict[str | None, tuple[Layout, ...]] = {}
    for name, call in ready.items():
        if name in answered:
            continue
        # The rows of the call have its error already.
        with contextlib.suppress(NodeError, NodeUnreachable, SchemaError, InputError):
            layouts = call.layouts(version)
            if layouts is not None:
                found[name] = layouts
    return found


def _pages(sweep: _Sweep) -> Iterator[tuple[list[tuple[int, Any]], dict[int, Failure]]]:
    """Read the committed transactions of a plan; yield the rows of each response, and why others are missing."""
    wanted = sorted(set(sweep.versions))
    sweep.count = len(wanted)
    sweep.guard(len(wanted))
    pages = reads.pages_of(wanted)
    with progress_bar(len(pages), "pages", show=sweep.show) as bar:
        for answer in reads.read_transactions(sweep.node, pages):
            failures: dict[int, Failure] = {}
            for missing in answer.missing:
                within = wanted[bisect_left(wanted, missing.first) : bisect_right(wanted, missing.last)]
                failures |= dict.fromkeys(within, Failure.of(missing.error))
                sweep.errors += [missing.error] * len(within)
            yield answer.found, failures
            bar.advance(int(answer.ended))
            sweep.check_if_due()
    sweep.finish("reads of transactions")


def typed_payload_frame(node: Reads, tag: TypeTag, rows: pa.Table, identity: Sequence[str], what: str) -> pd.DataFrame:
    """Return the typed frame of payloads of one type; a payload that does not fit its type becomes a failure row."""
    versions = rows["ledger_version"].to_pylist()
    wanted = [version for version, data in zip(versions, rows["data"].to_pylist(), strict=True) if data is not None]
    newest = max(wanted or versions) if versions else node.ledger().version
    unknown: dict[int, ToolkitError] = {}
    known = typed_at(node, tag, [*wanted, newest], unknown=unknown)
    default = known[max(known)] if known else Untyped(tag, "the node's response is not a module")
    layouts = [unknown.get(version) or known.get(version, default) for version in versions]
    misfits: list[ToolkitError] = []

    def failed(error: ToolkitError) -> Failure:
        if isinstance(error, SchemaError):
            node.mask_error(error)
        misfits.append(error)
        return Failure.of(error)

    frame = payload_frame(rows, wire_type(tag), layouts, identity=identity, default=default, failed=failed)
    _warn_of_failures(misfits, len(wanted), what)
    warn_of_types(frame, wire_type(tag))
    return frame


def block_times(node: Reads, versions: Sequence[int], *, show: bool) -> dict[int, datetime]:
    """Return the block time of each version; versions whose block the node does not return are omitted.

    Parameters
    ----------
    node : Reads
    versions : sequence of int
        Sorted, without duplicates.
    show : bool
        Show a progress bar.
    """
    times: dict[int, datetime] = {}
    left, stride = list(versions), _STRIDE
    with progress_bar(len(left), "times", show=show) as bar:
        while left:
            asked = left[::stride]
            unknown = set(left).difference(asked)
            for place, block in send_all(node, asked, node.prepare_block):
                version = asked[place]
                if isinstance(block, BlockInfo) and block.first_version <= version <= block.last_version:
                    covered = left[bisect_left(left, block.first_version) : bisect_right(left, block.last_version)]
                    unknown.difference_update(covered)
                    if block.block_timestamp is not None:
                        times |= dict.fromkeys(covered, block.block_timestamp)
            bar.advance(len(left) - len(unknown))
            left, stride = sorted(unknown), max(1, stride // 2)
    return times


def _warn_of_failures(errors: Sequence[ToolkitError], count: int, what: str) -> None:
    """Warn if all reads failed, with the most common error, or if a response does not fit its type."""
    if not errors:
        return
    if count == 1:
        warn_caller(f"the read failed: {errors[-1]}", FailedReadsWarning)
    elif len(errors) == count:
        codes = Counter(Failure.of(error).error_code for error in errors)
        commonest = codes.most_common(1)[0][0]
        such = next(error for error in reversed(errors) if Failure.of(error).error_code == commonest)
        shown = ", ".join(f"{number:,} {code}" for code, number in codes.items())
        text = f"all {count:,} {what} failed ({shown}), for example: {such}; see error_message for the reason of each"
        warn_caller(text, FailedReadsWarning)
    elif misfits := [error for error in errors if isinstance(error, SchemaError)]:
        reason = visible(str(misfits[0]), _MAX_REASON)
        text = f"{len(misfits):,} of {count:,} {what} failed (schema_error), for example: {reason}; see error_message"
        warn_caller(text, FailedReadsWarning)
