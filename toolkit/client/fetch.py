"""Many calls in, one typed frame out. Failures are rows, never lost."""

from __future__ import annotations

import warnings
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.client.bulk import progress_bar, run_many
from toolkit.client.display import facts_html
from toolkit.client.given import given_calls, given_keys, given_node, given_requests, is_view
from toolkit.client.same_ledger import LedgerAnchor, LedgerGuard
from toolkit.client.sweep import sweep, typed_sweep
from toolkit.client.times import block_times
from toolkit.client.transaction_pages import pages_of, read_transactions
from toolkit.client.versions import Versions, resolve_versions
from toolkit.errors import ClosedError, LedgerChanged, NodeError, NodeUnreachable, SchemaError, ToolkitError
from toolkit.frames.calls import Failure, TableItemRecord, ViewRecord, item_frame, view_frame
from toolkit.frames.transactions import transaction_frames
from toolkit.move import FunctionId, is_closed, parse_type_tag

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    import pandas as pd

    from toolkit.client.node import Node
    from toolkit.client.prepared import Prepared
    from toolkit.client.results import Simulation
    from toolkit.client.versions import ResolvedPlan
    from toolkit.client.view_calls import PreparedViews
    from toolkit.move import Layout
    from toolkit.wire import LedgerState, SimulationRequest, ViewFunction

__all__ = [
    "SimulationFrames",
    "TransactionFrames",
    "fetch_simulations",
    "fetch_table_items",
    "fetch_transactions",
    "fetch_views",
    "plan_versions",
]

_Task = TypeVar("_Task")
_Name = TypeVar("_Name")
_Result = TypeVar("_Result")


@dataclass(frozen=True, eq=False, repr=False)
class TransactionFrames:
    """Committed transactions as three frames; see the data dictionary for their columns."""

    transactions: pd.DataFrame
    changes: pd.DataFrame
    events: pd.DataFrame

    def _facts(self) -> dict[str, str]:
        failed = int(self.transactions["error_code"].notna().sum())
        return {
            "transactions": f"{len(self.transactions)} rows, {failed} failed",
            "changes": f"{len(self.changes)} rows",
            "events": f"{len(self.events)} rows",
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}: {text}' for name, text in self._facts().items())})"

    def _repr_html_(self) -> str:
        return facts_html(type(self).__name__, list(self._facts().items()))


@dataclass(frozen=True, eq=False, repr=False)
class SimulationFrames(TransactionFrames):
    """A batch of simulations as three frames, and each result or error in the order of the requests."""

    results: tuple[Simulation | ToolkitError, ...]


def plan_versions(node: Node, versions: Versions | None, *, state: bool = True) -> tuple[ResolvedPlan, LedgerState]:
    """Resolve a version plan against a node's ledger, which is read once and returned; warn about clipped versions.

    The oldest version that a probe found holds for reads of state only: pass ``state=False`` for transactions.
    """
    ledger = node.ledger()
    plan = resolve_versions(
        -1 if versions is None else versions,
        head=ledger.version,
        oldest=node.oldest_readable(ledger) if state else ledger.oldest_version,
        version_at=lambda time: node.first_from(time, ledger),
        claimed=ledger.oldest_version,
    )
    for note in plan.notes:
        warnings.warn(note, UserWarning, stacklevel=3)
    return plan, ledger


def fetch_views(
    node: Node,
    calls: ViewFunction | Mapping[str, ViewFunction] | Sequence[ViewFunction],
    *,
    versions: Versions | None = None,
    typed: bool = True,
    flatten: bool = False,
    times: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Run view functions at many ledger versions.

    Parameters
    ----------
    node : Node
    calls : ViewFunction, mapping of str to ViewFunction, or sequence of ViewFunction
        With a mapping or sequence the frame has a ``call`` column: the mapping's names, or the functions'.
    versions : version plan, optional
        ``"a:b/n"``, ``"a:b:step"``, ``"-n:"``, dates, a list or a range; the head by default. Both ends are
        included, -1 is the head, and the head is resolved once, before anything is fetched.
    typed : bool, default True
        False gives one ``value`` column of JSON text, so that calls of different types fit one frame.
    flatten : bool, default False
        Replace struct columns by one column per field.
    times : bool, default False
        Fill ``ledger_timestamp``, at the cost of one block read per block.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (calls * versions, 8 + value columns)
        One row per call and version, by call, then version as planned. A call that failed is a row with nulls
        and its ``error_code``.

    Raises
    ------
    SchemaError
        If `typed` is True and the calls return different types, or a value does not fit its type: the text names
        column, row, version and value. An answer that is none, such as a gateway's page, is a row.
    InputError
        If a call does not fit its ABI, or the plan cannot be read.
    LedgerChanged
        If another ledger takes the place of the node's while it is read: another chain id in any answer, or, checked
        every minute and at the end, another history.

    Warns
    -----
    UserWarning
        If modules cannot be looked up: values are then as the node's JSON has them. Modules that failed are looked up
        once more at the end, so that rows that were read without types get them if possible.

    Notes
    -----
    Types come from the module's ABI at the version read. Source: ``POST /v1/view``.
    """
    node, named = given_node(node), given_calls(calls)
    plan, ledger = plan_versions(node, versions)
    ordered = sorted(set(plan.versions))
    guard = _guard(node, ledger, ordered, len(named) * len(plan.versions))
    for call in named.values():
        function = FunctionId.parse(call.function)
        node.abis.prepare(function.address, function.module, ordered)
    stamps = block_times(node, ordered, show=progress) if times else {}

    tasks = [(name, version) for name in named for version in plan.versions]
    ready = {name: node.prepare_views(call) for name, call in named.items()}
    outcomes = _swept(
        node, tasks, lambda task: ready[task[0]].at(task[1]), what="views", show=progress, typed=typed, guard=guard
    )
    records = [
        _failed_view(*task, outcome) if isinstance(outcome, Exception) else outcome.record(task[0])
        for task, outcome in zip(tasks, outcomes, strict=True)
    ]
    if times:
        records = [_dated(record, stamps) for record in records]
    unanswered = typed and all(record.values is None for record in records)
    layouts = _head_returns(ready.values()) if unanswered else None
    return view_frame(records, typed=typed, flatten=flatten, named=not is_view(calls), layouts=layouts)


def _head_returns(ready: Iterable[PreparedViews]) -> tuple[Layout, ...] | None:
    """Return the layouts as of the head, where all calls share them: what a frame without any answer is typed by."""
    try:
        found = {call.layouts() for call in ready}
    except (NodeError, NodeUnreachable, SchemaError):
        return None
    return found.pop() if len(found) == 1 else None


def fetch_table_items(
    node: Node,
    handle: str,
    *,
    keys: Iterable[Any],
    key_type: str,
    value_type: str,
    versions: Versions | None = None,
    flatten: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Read items of a table by their keys, at one or many ledger versions.

    Parameters
    ----------
    node : Node
    handle : str
        Table handle.
    keys : iterable
        Keys in the Python form of `key_type`. A node cannot list the keys of a table.
    key_type, value_type : str
        Move types.
    versions : version plan, optional
        As in `fetch_views`.
    flatten : bool, default False
        Replace struct columns by one column per field.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (keys * versions, >= 10)
        By key, then version. An item that is not there is a row with null ``value``; ``presence`` tells missing,
        deleted and pruned items apart.

    Raises
    ------
    SchemaError
        If a value does not fit `value_type`; the text names column, row, version and value.
    LedgerChanged
        If another ledger takes the place of the node's while it is read: another chain id in any answer, or, checked
        every minute and at the end, another history.

    Warns
    -----
    UserWarning
        If modules cannot be looked up, as in `fetch_views`.

    Notes
    -----
    Source: ``POST /v1/tables/{table_handle}/item``.
    """
    node, given = given_node(node), given_keys(keys)
    plan, ledger = plan_versions(node, versions)

    ready = [node.prepare_items(handle, key=key, key_type=key_type, value_type=value_type) for key in given]
    tasks = [(place, version) for place in range(len(given)) for version in plan.versions]
    guard = _guard(node, ledger, plan.versions, len(tasks))
    outcomes = _swept(
        node, tasks, lambda task: ready[task[0]].at(task[1]), what="table items", show=progress, guard=guard
    )
    items = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    records = [
        TableItemRecord(given[place], version, _head_of(outcome), None, Failure.of(outcome))
        if isinstance(outcome, Exception)
        else outcome.record()
        for (place, version), outcome in zip(tasks, outcomes, strict=True)
    ]
    # A column has one type: that of the newest item, but none if the type of an item is not known.
    newest = next((item for item in reversed(items) if not is_closed(item.value_layout)), items[-1] if items else None)
    key_layout, value_layout = (
        (newest.key_layout, newest.value_layout) if newest else _head_layouts(node, key_type, value_type)
    )
    return item_frame(records, key_layout=key_layout, value_layout=value_layout, flatten=flatten)


def _head_layouts(node: Node, key_type: str, value_type: str) -> tuple[Layout, Layout]:
    """Return the layouts as of the node's head: what an answer without any item is typed by."""
    abis = node.abis.at(node.ledger().version)
    return abis.layout(parse_type_tag(key_type)), abis.layout(parse_type_tag(value_type))


def fetch_simulations(
    node: Node, requests: SimulationRequest | Iterable[SimulationRequest], *, progress: bool = True
) -> SimulationFrames:
    """Simulate many transactions, each on its own, at the node's head.

    Parameters
    ----------
    node : Node
    requests : SimulationRequest or iterable of SimulationRequest
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    SimulationFrames
        ``request`` in each frame is the position of the request. A request that the node refused is a row of
        ``transactions`` with its ``error_code``; ``results`` pairs each request with its result or error.
    """
    node = given_node(node)

    def read(request: SimulationRequest) -> Simulation | ToolkitError:
        try:
            return node.simulate(request)
        except (ClosedError, LedgerChanged):
            raise
        except ToolkitError as error:
            return error

    results = _gathered(given_requests(requests), read, node, "simulations", show=progress)
    done = [(number, result) for number, result in enumerate(results) if not isinstance(result, ToolkitError)]
    failed = [(number, Failure.of(result)) for number, result in enumerate(results) if isinstance(result, ToolkitError)]
    frames = transaction_frames(
        [result.transaction for _, result in done], requests=[number for number, _ in done], failures=failed
    )
    return SimulationFrames(*frames, tuple(results))


def fetch_transactions(node: Node, *, versions: Versions, progress: bool = True) -> TransactionFrames:
    """Read committed transactions.

    Parameters
    ----------
    node : Node
    versions : version plan
        As in `fetch_views`. Read in pages of 100, or of as many as the node gives at once.
    progress : bool, default True
        Show a progress bar.

    Returns
    -------
    TransactionFrames
        Ordered by version, every kind of transaction included. A version that could not be read, or whose
        transaction is malformed, is a row of ``transactions`` with its ``error_code``.

    Raises
    ------
    InputError
        If the plan cannot be read.
    LedgerChanged
        If another ledger takes the place of the node's while it is read: another chain id in any answer, or, checked
        every minute and at the end, another history.

    Notes
    -----
    Source: ``GET /v1/transactions?start=&limit=``.
    """
    node = given_node(node)
    plan, ledger = plan_versions(node, versions, state=False)
    wanted = sorted(set(plan.versions))
    pages = pages_of(wanted)
    guard = _guard(node, ledger, wanted, len(wanted))
    found: dict[int, Any] = {}
    failures: dict[int, Failure] = {}
    with progress_bar(len(pages), "pages", show=progress) as bar:
        for answer in read_transactions(node, pages):
            found.update(answer.found)
            for missing in answer.missing:
                within = wanted[bisect_left(wanted, missing.first) : bisect_right(wanted, missing.last)]
                failures |= dict.fromkeys(within, Failure.of(missing.error))
            bar.advance(int(answer.ended))
            if guard is not None:
                guard.check_if_due()
    if guard is not None and found:
        guard.check_at_end()
    ordered = [found[version] for version in sorted(found)]
    return TransactionFrames(*transaction_frames(ordered, failures=sorted(failures.items()), by="version"))


def _gathered(
    tasks: Sequence[_Task], read: Callable[[_Task], _Result], node: Node, what: str, *, show: bool
) -> list[_Result]:
    """Run the tasks and return their results in the order of the tasks."""
    with progress_bar(len(tasks), what, show=show) as bar:
        found = dict(run_many(tasks, read, in_flight=node.max_in_flight, advance=bar.advance))
    return [found[place] for place in range(len(tasks))]


def _swept(
    node: Node,
    tasks: Sequence[tuple[_Name, int]],
    prepare: Callable[[tuple[_Name, int]], Prepared[_Result]],
    *,
    what: str,
    show: bool,
    typed: bool = True,
    guard: LedgerGuard | None = None,
) -> list[_Result | ToolkitError]:
    """Send tasks that end in a version at once and return their outcomes in the order of the tasks.

    An answer that cannot be read is an outcome as a refusal is. A value that does not fit its declared type is raised
    if there is to be a column of that type. Calls whose module could not be looked up are typed at the end.
    """
    found: dict[int, _Result | ToolkitError] = {}
    with progress_bar(len(tasks), what, show=show) as bar:
        for place, outcome in (typed_sweep if typed else sweep)(node, tasks, prepare):
            if typed and isinstance(outcome, SchemaError) and outcome.column is not None:
                text = f"column {outcome.column!r}, row {place}, version {tasks[place][1]}: {outcome}"
                raise SchemaError(text, column=outcome.column, rows=[place]) from outcome
            bar.advance(int(place not in found))
            found[place] = outcome
            if guard is not None:
                guard.check_if_due()
    if guard is not None and not all(isinstance(outcome, Exception) for outcome in found.values()):
        guard.check_at_end()
    return [found[place] for place in range(len(tasks))]


def _guard(node: Node, ledger: LedgerState, versions: Sequence[int], reads: int) -> LedgerGuard | None:
    """Return the guard that notices if another ledger replaces this one; a single read cannot mix two ledgers."""
    return LedgerGuard(node, LedgerAnchor.taken(node, max(versions), ledger=ledger)) if reads > 1 else None


def _failed_view(name: str, version: int, error: Exception) -> ViewRecord:
    return ViewRecord(name, version, _head_of(error), None, None, None, None, Failure.of(error))


def _head_of(error: Exception) -> int | None:
    ledger = error.ledger if isinstance(error, NodeError) else None
    return ledger.version if ledger else None


def _dated(record: ViewRecord, stamps: Mapping[int, datetime]) -> ViewRecord:
    return replace(record, ledger_timestamp=stamps.get(record.ledger_version or 0))
