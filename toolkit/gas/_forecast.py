"""What calls would cost under another gas schedule: each is executed on its state, as it was and with the schedule.

A forecast is exact. It is only made if the execution as it was gives what was observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from toolkit._present.text import counted
from toolkit.client._fetch import checked_node
from toolkit.client._http import served_ledger
from toolkit.client._rebuilt import rebuild_request
from toolkit.client._simulation import Simulation
from toolkit.errors import InputError, NodeError, NodeUnreachable, SchemaError, ToolkitError
from toolkit.fork._state import NO_RESULT
from toolkit.fork._sweep import change_of, replay_all
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import FORECAST
from toolkit.gas._observations import Part, Source, last_observations
from toolkit.gas._study import Run
from toolkit.wire import GasSchedule, SimulationRequest, UserTransaction, ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from toolkit.client._node import Node

_TOTAL = "total"
_COLUMNS = {part.value: part.column for part in Part} | {_TOTAL: "gas_used"}


@dataclass(frozen=True, slots=True)
class _Observed:
    """One observation: what the call cost by part, and what executes it again.

    `request` is None for a committed transaction, which is replayed from its version.
    """

    label: str
    source: Source
    node: Node
    node_name: str | None
    version: int
    gas: Mapping[str, int | None]
    request: ViewFunction | SimulationRequest | None


@dataclass(frozen=True, slots=True)
class _Forecast:
    """What an observation costs under the schedule, and how it ends; or why that is not known."""

    gas: Mapping[str, int | None] | None = None
    outcome: str | None = None
    reason: str | None = None


def forecast(
    observed: Run | Simulation | UserTransaction | Iterable[Any],
    schedule: GasSchedule | Mapping[str, int | str],
    *,
    node: Node | None = None,
) -> pd.DataFrame:
    """Return what calls would cost under another gas schedule, by executing them again on their state.

    Parameters
    ----------
    observed : Run, Simulation, UserTransaction or iterable of these
        A run (the last observation of each call), results of ``node.simulate`` or ``fetch_simulations(...).results``,
        or committed transactions from ``node.transaction``. Errors in the iterable are ignored.
    schedule : GasSchedule or mapping
        A complete schedule, such as ``node.gas_schedule(version)``; or a mapping of parameters or patterns to new
        values, or to factors as text, such as ``{"instr.*": "x10", "txn.min_transaction_gas_units": 2_000_000}``, which
        changes the schedule in force at each observation.
    node : Node, optional
        Node that serves the state; by default, the node that was observed. Committed transactions require it.

    Returns
    -------
    DataFrame, shape (5 or 1 per call, 10)
        One row per part (execution, io, storage, refund, total); views have only a total. ``now`` is what was observed,
        ``forecast`` what the same execution costs under the schedule; the gas unit price is the same. ``forecast`` is
        null, with a ``reason``, if the call cannot be executed on the node's state, or if, executed as it was, it does
        not cost what was observed.

    Raises
    ------
    InputError
        If an argument is not valid, or a committed transaction is given without a node.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> frame = toolkit.forecast(node.simulate(call, sender="0xa11ce"), {"instr.*": "x10"})
    >>> frame[["part", "now", "forecast"]].to_numpy().tolist()[-1]
    ['total', 75, 133]
    """
    if node is not None:
        checked_node(node)
    if not isinstance(schedule, GasSchedule | Mapping):
        raise InputError(
            "schedule: expected a GasSchedule, as returned by node.gas_schedule(version), or a mapping of parameters "
            f'to values or factors, such as {{"instr.*": "x10"}}, got {type(schedule).__name__}'
        )
    with ExitStack() as stack:
        calls = list(_calls(observed, node, stack))
        # The contracts of an embedded node are not bytecode, so its transactions are executed on a fork.
        with_bytecode = [call for call in calls if served_ledger(call.node.url) is None]
        replayed = _replayed([call for call in with_bytecode if call.source is Source.COMMITTED], schedule)
        rows = [row for call in calls for row in _rows(call, replayed.get(id(call)) or _executed(call, schedule))]
    return frame_of_rows(FORECAST, rows)


def read_schedule(texts: Sequence[str], of_version: Callable[[str], GasSchedule]) -> GasSchedule | dict[str, int | str]:
    """Return the schedule given on the command line.

    Parameters
    ----------
    texts : sequence of str
        One or more ``NAME=VALUE`` or ``PATTERN=xFACTOR``, or a single ledger version.
    of_version : callable
        Returns the schedule of a ledger version.

    Returns
    -------
    GasSchedule or dict

    Raises
    ------
    InputError
        If a text has another form.
    """
    if len(texts) == 1 and texts[0].isascii() and texts[0].isdigit():
        return of_version(texts[0])
    changes: dict[str, int | str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--schedule: expected NAME=VALUE, such as 'instr.*=x10', or a ledger version, got {text}")
        changes[name.strip()] = int(value) if value.strip().isdecimal() else value
    return changes


# what was observed ---------------------------------------------------------------------------------------------------


def _calls(observed: Any, node: Node | None, stack: ExitStack) -> Iterator[_Observed]:
    if isinstance(observed, Run):
        yield from _of_run(observed, node, stack)
    elif isinstance(observed, Simulation):
        made = observed.transaction
        # At the price and with the limit that the node filled in.
        request = observed.request.replace(gas_unit_price=made.gas_unit_price, max_gas_amount=made.max_gas_amount)
        reached: Any = node or stack.enter_context(observed._connected())  # noqa: SLF001
        call = _of_transaction(made, Source.SIMULATE, reached)
        yield replace(call, request=request, version=observed.ledger_version)
    elif isinstance(observed, UserTransaction):
        if node is None:
            raise InputError("a committed transaction is executed on a node's state; pass node=")
        yield _of_transaction(observed, Source.COMMITTED, node)
    elif isinstance(observed, Iterable) and not isinstance(observed, str | bytes | Mapping):
        for one in observed:
            if not isinstance(one, ToolkitError):
                yield from _calls(one, node, stack)
    else:
        raise InputError(
            "expected a Run, results of node.simulate, or committed user transactions of node.transaction, got "
            f"{type(observed).__name__}"
        )


def _of_run(run: Run, node: Node | None, stack: ExitStack) -> Iterator[_Observed]:
    connected = cache(lambda name: stack.enter_context(run.connect(name)))
    requests = {call.fingerprint: call.request for call in run.study.calls}
    for row in plain_rows(last_observations(run.observations)):
        source, request = Source(row["source"]), requests[row["fingerprint"]]
        yield _Observed(
            label=row["label"],
            source=source,
            node=node or connected(row["node"]),
            node_name=row["node"],
            version=row["ledger_version"],
            gas={part: row[column] for part, column in _COLUMNS.items()},
            request=request if isinstance(request, ViewFunction | SimulationRequest) else None,
        )


def _of_transaction(transaction: UserTransaction, source: Source, node: Node) -> _Observed:
    gas = transaction.gas_breakdown()
    called = transaction.call()
    total = transaction.gas_used if gas is not None or source is Source.COMMITTED else None
    return _Observed(
        label=called.function or str(called.type),
        source=source,
        node=node,
        node_name=None,
        version=transaction.version,
        gas=_parts(gas) | {_TOTAL: total},
        request=None,
    )


# executing it again --------------------------------------------------------------------------------------------------


def _replayed(calls: Sequence[_Observed], schedule: GasSchedule | Mapping[str, int | str]) -> dict[int, _Forecast]:
    """Replay committed transactions under the schedule, and return the forecasts by the identity of their calls."""
    found: dict[int, _Forecast] = {}
    for node in {id(call.node): call.node for call in calls}.values():
        mine = [call for call in calls if call.node is node]
        versions = sorted({call.version for call in mine})
        try:
            change = change_of(node, None, schedule, max(versions[0] - 1, 0))  # raises for an unknown parameter
        except (NodeError, NodeUnreachable, SchemaError) as error:
            found |= {id(call): _Forecast(reason=str(error)) for call in mine}
            continue
        rows = {row["ledger_version"]: row for row in replay_all(node, versions, None, change, progress=False)}
        found |= {id(call): _of_replay(rows.get(call.version)) for call in mine}
    return found


def _of_replay(row: Mapping[str, Any] | None) -> _Forecast:
    if row is None:
        return _Forecast(reason="it could not be read")
    if row.get("error_code"):
        return _Forecast(reason=f"{row['error_code']}: {row['error_message']}")
    if not row["verified"]:
        return _Forecast(reason="replayed as it was, it differs from the ledger")
    return _Forecast({part: row[f"changed_{column}"] for part, column in _COLUMNS.items()}, row["changed_outcome"])


def _executed(call: _Observed, schedule: GasSchedule | Mapping[str, int | str]) -> _Forecast:
    """Execute a call on a fork, as it was and under the schedule."""
    if call.gas[_TOTAL] is None:
        return _Forecast(reason="no gas was observed")
    try:
        request, version = call.request, call.version
        if request is None:  # of an embedded node, which has no bytecode to replay
            rebuilt, _ = rebuild_request(call.node.transaction(version), call.node.abis.at)
            request, version = rebuilt.replace(signature=None), version - 1  # no key of its past is needed on a fork
        fork = call.node.fork(version)
        before, _ = _cost(fork, request)
    except NO_RESULT as error:
        return _Forecast(reason=str(error))
    if any(before[part] != amount for part, amount in call.gas.items() if amount is not None):
        cost = counted(str(before[_TOTAL]), "gas unit")
        return _Forecast(reason=f"executed as it was, it costs {cost}, not {call.gas[_TOTAL]}")
    fork.gas_schedule = schedule
    try:
        return _Forecast(*_cost(fork, request))
    except NO_RESULT as error:  # such as a view that fails at these prices
        return _Forecast(reason=str(error))


def _cost(fork: Any, request: ViewFunction | SimulationRequest) -> tuple[dict[str, int | None], str]:
    if isinstance(request, ViewFunction):
        return dict.fromkeys(_COLUMNS) | {_TOTAL: fork.view(request).gas_used}, "succeeded"
    done = fork.simulate(request)
    return _parts(done.gas) | {_TOTAL: done.gas_used}, "succeeded" if done.success else f"failed ({done.vm_status})"


def _parts(gas: Any) -> dict[str, int | None]:
    return {part.value: None if gas is None else getattr(gas, part.column) for part in Part}


def _rows(call: _Observed, found: _Forecast) -> Iterator[dict[str, Any]]:
    about: dict[str, Any] = {"label": call.label, "source": call.source.value, "node": call.node_name}
    about |= {"ledger_version": call.version, "outcome": found.outcome, "reason": found.reason}
    octas = {part.value for part in Part if part.in_octas}
    for part in _COLUMNS if call.source is not Source.VIEW else (_TOTAL,):
        now, then = call.gas[part], None if found.gas is None else found.gas[part]
        change = None if now is None or then is None else then - now
        amounts = {"unit": "octas" if part in octas else "gas units", "now": now, "forecast": then, "change": change}
        yield about | {"part": part} | amounts
