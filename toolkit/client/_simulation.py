"""Simulations: sends requests, one at a time or many at once, and describes the results."""

from __future__ import annotations

import re
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from toolkit import errors, frames, wire
from toolkit._present.notebook import facts_html
from toolkit._present.text import in_whole_coins, listed, plural, short_addresses, signed, visible
from toolkit.client._abis import AbisAt, parameter_layouts
from toolkit.client._accounts import APT_NAMES, MAX_SYMBOL, read_asset
from toolkit.client._arguments import entry_function, explained
from toolkit.client._calls import JSON, fit_bcs, json_arguments, only_in_bcs
from toolkit.client._http import Answer, Outcomes, PreparedCall, Sendable, json_body, mark_model
from toolkit.client._node_errors import NO_ACCOUNT, advice
from toolkit.client._reads import Reads, send_all
from toolkit.client._transaction_data import TransactionData, TransactionFrames
from toolkit.move import FunctionAbi, Layout, parse_address
from toolkit.wire._bcs_requests import signed_transaction
from toolkit.wire._gas import APT
from toolkit.wire._models import function_id
from toolkit.wire._requests import NOBODY, Batch, SimulatedPayload, called_by, with_estimates
from toolkit.wire._rows import check_transactions
from toolkit.wire._transactions import decode_simulation

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.wire._aborts import Abort


_MAX_BALANCES = 8  # lines of `explain`; the frame has all
_MAX_CALLS = 5  # of a batch, in its name


@dataclass(frozen=True, repr=False)
class Simulation(TransactionData):
    """The outcome of a simulated transaction. Nothing was signed, submitted or stored.

    A simulation can be pickled and compared. `diff` reads from the node, as do `balance_changes`, `table_items`,
    `resources` and `events_of` if they need earlier state or a type. An unpickled simulation reconnects to do so,
    without secrets.

    Attributes
    ----------
    request : SimulationRequest
    transaction : UserTransaction
        The node's response, decoded.
    ledger : LedgerState or None
        The node's head when it responded.

    Examples
    --------
    >>> import toolkit
    >>> call = toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> simulation = toolkit.connect().simulate(call, sender="0x1")
    >>> simulation.success, len(simulation.transactions)
    (True, 1)
    """

    request: wire.SimulationRequest
    transaction: wire.UserTransaction
    ledger: wire.LedgerState | None

    @property
    def success(self) -> bool:
        """Whether the transaction would succeed, including the payload of a multisig account."""
        return self.transaction.success

    @property
    def chain_success(self) -> bool:
        """The node's own flag, which is true for a multisig transaction whose payload fails."""
        return self.transaction.chain_success

    @property
    def vm_status(self) -> str:
        """How execution would end: the node's status, or why the payload of a multisig account fails."""
        return self.transaction.vm_status

    @property
    def gas_used(self) -> int:
        """Gas units that would be charged."""
        return self.transaction.gas_used

    @property
    def ledger_version(self) -> int:
        """The version whose state the simulation ran on: the node's head at that time."""
        return self.transaction.version

    @property
    def affordable_max_gas(self) -> int | None:
        """The max gas amount that the payer's balance covers; None if the request sets one or nobody pays."""
        nobody_pays = self.request.payer == NOBODY
        return None if self.request.max_gas_amount is not None or nobody_pays else self.transaction.max_gas_amount

    @cached_property
    def gas(self) -> wire.GasBreakdown | None:
        """Gas broken down by part, from the FeeStatement event; None if the transaction was discarded before it ran."""
        return self.transaction.gas_breakdown()

    @cached_property
    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
        found = frames.transaction_frames([self.transaction], requests=[0])
        mark_model(found[0], self._node, known=self._model)
        return found

    @property
    def transactions(self) -> pd.DataFrame:
        """One row: the simulated transaction."""
        return self._tables[0]

    @property
    def changes(self) -> pd.DataFrame:
        """One row per state change."""
        return self._tables[1]

    @property
    def events(self) -> pd.DataFrame:
        """One row per event."""
        return self._tables[2]

    def gas_by_call(self) -> pd.DataFrame:
        """Return the gas of each call of a batch.

        The node simulates each prefix of the batch again, at its head; a call costs what its prefix costs more than the
        one before. Gas is less than additive: the first call that uses a module, a resource or a table item pays for
        loading it, and later ones use it for almost nothing. So the order of the calls counts, and a call may cost more
        alone. Gas units are whole, so small calls may show 0; a fork shows internal gas.

        Returns
        -------
        DataFrame
            ``call``: position in the batch, null in the first and last row. ``function``: its function;
            ``transaction`` for what each transaction costs, ``changes`` for what is written at the end.
            ``execution_gas_units``, ``io_gas_units``, ``storage_fee_octas``: they add up to the whole.

        Raises
        ------
        InputError
            If the payload is not a batch, or the node discards it before it runs.
        NodeError, NodeUnreachable
            In the same cases as `Node.simulate`.

        Examples
        --------
        >>> import toolkit
        >>> pay = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
        >>> simulation = toolkit.connect().simulate(toolkit.Batch([pay, pay]), sender="0xa11ce")
        >>> simulation.gas_by_call()["function"].tolist()
        ['transaction', '0x1::aptos_account::transfer', '0x1::aptos_account::transfer', 'changes']
        """
        from toolkit.client._batch import gas_frame, prefixes

        batch = self._batch()
        requests = [*prefixes(self.request), self.request]
        with self._connected() as node:
            found = dict(simulate_all(node, requests, node.ledger()))
        gas = []
        for _, one in sorted(found.items(), key=itemgetter(0)):
            if isinstance(one, errors.ToolkitError):
                raise one
            if one.gas is None:
                raise errors.InputError(f"the batch is discarded before it runs: {one.vm_status}")
            gas.append(one.gas)
        return gas_frame(batch, gas)

    def _batch(self) -> Batch:
        if not isinstance(self.request.payload, Batch):
            raise errors.InputError("the payload is not a batch; only the calls of a toolkit.Batch have gas by call")
        return self.request.payload

    def _failed_call(self) -> int | None:
        """Return which call of a batch fails, by running prefixes of it; None if this is not known."""
        from toolkit.client._batch import prefixes, ran_to_its_end

        requests, statuses = prefixes(self.request), dict[int, str]()
        with self._connected() as node:

            def fails(calls: int) -> bool:
                done = simulate(node, requests[calls])
                statuses[calls] = done.vm_status
                return not ran_to_its_end(done.vm_status)

            first = bisect_left(range(len(requests)), 1, key=fails)
        # Another status: the state has changed since, or more than one thing is wrong.
        return first - 1 if first and statuses.get(first) == self.vm_status else None

    def explain(self) -> str:
        """Describe what the call would do, what it costs, and why it fails.

        The symbols and decimals of the assets that move are read from the node; notebooks display a result without a
        request, and therefore only in octas and base units. For a batch that fails, the node simulates prefixes of it
        again, to find the call that fails.
        """
        moved = [asset for _, asset, _ in _balances(self)[:_MAX_BALANCES] if asset not in APT_NAMES]
        units = {asset: self._unit_of(asset) for asset in dict.fromkeys([APT, *moved])}
        batch, failed = self.request.payload, None
        if isinstance(batch, Batch) and not self.success:
            with suppress(errors.ToolkitError):  # the node cannot be asked again
                failed = self._failed_call()
        return "\n".join(self._lines(units, failed))

    def _unit_of(self, asset: str) -> tuple[str, int] | None:
        """Read the symbol and decimals of an asset; None if they are not known: its amounts are in base units."""
        with suppress(errors.ToolkitError), self._connected() as node:
            about = read_asset(node, asset, self.ledger_version)
            if about.decimals is not None:
                return visible(about.symbol or "coins", MAX_SYMBOL), about.decimals
        return None

    def _lines(self, units: _Units, failed: int | None = None) -> list[str]:
        """Return a description of the outcome, with amounts of assets without a unit in base units."""
        lines, batch = [_headline(self)], self.request.payload
        if isinstance(batch, Batch) and failed is not None:
            lines.append(f"Call {failed} fails: {function_id(batch.calls[failed].function).wire}.")
        if not self.success:  # the meaning of the status, then the status, which may be long
            why = failure_reason(self.request, self.transaction)
            lines += [*([f"Why: {why}."] if why else []), f"Status: {self.vm_status}"]
        lines += [_cost_line(self, units), *_balance_lines(self, units), _writes_line(self)]
        at = f"ledger version {self.ledger_version:,}"
        lines.append(f"Simulated on the state at {at}. Nothing was signed, submitted or stored.")
        return [visible(short_addresses(line), 400) for line in lines]

    def __repr__(self) -> str:
        text = f"{short_addresses(_headline(self))} gas_used={self.gas_used}, ledger_version={self.ledger_version}"
        return f"<Simulation: {visible(text, 300)}, vm_status={visible(self.vm_status)}>"

    def _repr_html_(self) -> str:
        # Showing a result sends no requests, so amounts are in octas, before `explain` and after it.
        title, *lines = self._lines({})
        return facts_html(title, [("status", self.vm_status), *(("", line) for line in lines)])


def _headline(simulation: Simulation) -> str:
    what = payload_name(simulation.request.payload)
    return f"{what} from {simulation.request.sender} would {'succeed' if simulation.success else 'fail'}."


def payload_name(payload: SimulatedPayload) -> str:
    """Return what a payload runs, as messages name it."""
    if isinstance(payload, wire.EntryFunction):
        return payload.function
    if isinstance(payload, Batch):
        names = [function_id(call.function).wire for call in payload.calls]
        return f"a batch of {plural(len(names), 'call')} ({listed(names, _MAX_CALLS)})"
    return f"the {type(payload).__name__} payload"


_Units = dict[str, "tuple[str, int] | None"]


def _cost_line(simulation: Simulation, units: _Units) -> str:
    if (gas := simulation.gas) is None:
        return "It was discarded before it ran, so nothing would be charged."
    net = _octas_text(plural(abs(gas.net_octas), "octa"), abs(gas.net_octas), units)
    parts = f"execution {gas.execution_gas_units:,}, io {plural(gas.io_gas_units, 'gas unit')}"
    storage = f"storage {plural(gas.storage_fee_octas, 'octa')}, refund {plural(gas.storage_fee_refund_octas, 'octa')}"
    price = gas.gas_unit_price
    whole = (gas.execution_gas_units + gas.io_gas_units) * price + gas.storage_fee_octas
    rounded = "" if whole == gas.total_charge_gas_units * price else "; parts are rounded up"
    return (
        f"It costs {plural(gas.total_charge_gas_units, 'gas unit')} at {plural(gas.gas_unit_price, 'octa')} each, "
        f"{'a refund of ' * (gas.net_octas < 0)}{net} net ({parts}, {storage}{rounded})."
    )


def _octas_text(octas: str, count: int, units: _Units) -> str:
    """Return a number of octas with the same in whole coins, if their unit is known."""
    unit = units.get(APT)
    return f"{octas} ({in_whole_coins(count, unit[1])} {unit[0]})" if unit else octas


def _balances(simulation: Simulation) -> list[tuple[str, str, int | None]]:
    """Return the owner, asset and change of each balance that changes; an unknown change is None."""
    columns = frames.plain_columns(simulation.balance_changes, ["owner", "asset", "change"])
    return list(zip(*columns.values(), strict=True))


def _balance_lines(simulation: Simulation, units: _Units) -> list[str]:
    rows = _balances(simulation)
    lines = [
        f"{owner}: {f'unknown change of {asset}' if change is None else _change_text(change, asset, units)}."
        for owner, asset, change in rows[:_MAX_BALANCES]
    ]
    more = len(rows) - _MAX_BALANCES
    return [*lines, f"... and {plural(more, 'more balance change')}."] if more > 0 else lines


def _change_text(change: int, asset: str, units: _Units) -> str:
    """Return the change of a balance, in the unit of its asset or else in base units."""
    if asset in APT_NAMES:
        return _octas_text(f"{signed(change)} octas", change, units)
    if (unit := units.get(asset)) is None:
        return f"{signed(change)} of {asset}"
    symbol, decimals = unit  # anybody may choose any symbol
    return f"{'+' if change > 0 else ''}{in_whole_coins(change, decimals)} {symbol} ({asset})"


def _writes_line(simulation: Simulation) -> str:
    kinds = frames.plain_columns(simulation.changes, ["type"])["type"]
    counts = []
    for kind in dict.fromkeys(kinds):
        verb, _, noun = str(kind).partition("_")
        done = {"write": "written", "delete": "deleted"}.get(verb, verb)
        counts.append(f"{plural(kinds.count(kind), noun.replace('_', ' '))} {done}")
    return f"State changes: {', '.join(counts) or 'none'}. Events: {len(simulation.events)}."


@dataclass(frozen=True, eq=False, repr=False)
class SimulationFrames(TransactionFrames):
    """A batch of simulations as three frames.

    Attributes
    ----------
    transactions, changes, events : DataFrame
        The same columns as in `TransactionFrames`, and ``request``, the position of the request.
    results : tuple of Simulation or ToolkitError
        One per request, in order.
    """

    results: tuple[Simulation | errors.ToolkitError, ...]

    _by: ClassVar[str] = "request"
    _identity: ClassVar[tuple[str, ...]] = ("request", "ledger_version", "hash")
    _committed: ClassVar[bool] = False


# how a simulation is sent -------------------------------------------------------------------------------------------

# Seconds between the ledger's time and the expiration of a simulated transaction, unless the request has one; with a
# replay protection nonce nodes accept at most 60 s.
_EXPIRATION_S = 600
_ORDERLESS_EXPIRATION_S = 50
# Sent if the node is asked to fill in its own estimate: octas per gas unit, and gas units.
_PLACEHOLDER_PRICE = 100
_PLACEHOLDER_MAX_GAS = 2_000_000


def not_at_past(ledger_version: int) -> errors.NotAtPast:
    """Return the error of a simulation at a past version, with alternatives."""
    return errors.NotAtPast(
        f"a node simulates at its head only, not at version {ledger_version:,}. Use "
        f"node.fork({ledger_version}).simulate() for that version, node.simulate() for the head, fetch_views for the "
        "gas of views at past versions, or fetch_transactions for the gas that committed transactions paid"
    )


def simulate(node: Reads, request: wire.SimulationRequest) -> Simulation:
    """Simulate a request at the node's head; see `Node.simulate`."""
    ledger, call = node.ledger(), called_by(request.payload)
    [(_, outcome)] = simulate_all(node, [request], ledger)
    if isinstance(outcome, errors.InvalidRequest) and isinstance(call, wire.EntryFunction):
        raise explained(node, call, ledger.version, outcome)
    if isinstance(outcome, errors.ToolkitError):
        raise outcome
    return outcome


def simulate_all(
    node: Reads, requests: Sequence[wire.SimulationRequest], ledger: wire.LedgerState
) -> Outcomes[Simulation]:
    """Simulate requests at once and yield (position, result or error) as responses arrive."""
    for place, outcome in send_simulations(node, requests, ledger):
        [checked] = checked_simulations(node, [outcome])
        yield place, checked


def checked_simulations(
    node: Reads, outcomes: Sequence[Simulation | errors.ToolkitError]
) -> list[Simulation | errors.ToolkitError]:
    """Return outcomes with an error in place of each simulation whose numbers, addresses or time are malformed."""
    try:
        check_transactions(one.transaction for one in outcomes if isinstance(one, Simulation))
    except errors.SchemaError as error:
        if len(outcomes) > 1:
            return [checked for one in outcomes for checked in checked_simulations(node, [one])]
        node.mask_error(error)  # it quotes the response
        return [error.with_traceback(None)]
    return list(outcomes)


def send_simulations(
    node: Reads, requests: Sequence[wire.SimulationRequest], ledger: wire.LedgerState
) -> Outcomes[Simulation]:
    """Do the same as `simulate_all`, without the check of the results: one check of all is ten times as fast."""
    senders = list(dict.fromkeys(request.sender for request in requests if _needs_sequence_number(request)))
    numbers: dict[str, int | errors.ToolkitError] = {}
    to_view: list[str] = []  # the node does not offer accounts
    for place, found in send_all(node, senders, node.prepare_account):
        if isinstance(found, errors.NotFound | errors.Forbidden):
            numbers[senders[place]] = 0
            to_view += [senders[place]] * (found.error_code != NO_ACCOUNT)
        else:
            numbers[senders[place]] = found if isinstance(found, errors.ToolkitError) else found[0].sequence_number
    for place, viewed in send_all(node, to_view, node.prepare_sequence_number):
        if not isinstance(viewed, errors.NodeError):  # an error: the account does not exist yet
            numbers[to_view[place]] = viewed

    sponsors = _Sponsors.of(node, requests)

    def prepared(request: wire.SimulationRequest) -> Sendable[Simulation]:
        number = numbers[request.sender] if _needs_sequence_number(request) else 0
        return number if isinstance(number, errors.ToolkitError) else _prepared(node, request, ledger, number, sponsors)

    yield from send_all(node, requests, prepared)


def _needs_sequence_number(request: wire.SimulationRequest) -> bool:
    """Return whether the sender's sequence number must be read before a request can be sent."""
    return request.sequence_number is None and request.replay_protection_nonce is None


@dataclass(frozen=True, slots=True)
class _Sponsors:
    """The balances of fee payers, from which the gas limits of their simulations follow, and the node's prices.

    The node's own estimate of a limit is based on the balance of the sender, who does not pay.
    """

    balances: Mapping[str, int]
    prices: wire.GasPriceEstimate | None

    @classmethod
    def of(cls, node: Reads, requests: Sequence[wire.SimulationRequest]) -> _Sponsors:
        """Read the balances of the fee payers of requests without a limit. What cannot be read is left out."""
        opened = [request for request in requests if _fills_in_limit(request)]
        payers, balances, prices = list(dict.fromkeys(one.payer for one in opened)), dict[str, int](), None
        if any(one.gas_unit_price is None for one in opened):
            with suppress(errors.NodeError, errors.NodeUnreachable, errors.SchemaError):
                prices = node.gas_price()
        calls = [wire.ViewFunction("0x1::coin::balance", [payer], type_arguments=[APT]) for payer in payers]
        for place, viewed in send_all(node, calls, node.prepare_view):
            if not isinstance(viewed, errors.ToolkitError):
                balances[payers[place]] = int(viewed.value)  # without an ABI it is text
        return cls(balances, prices)

    def limit(self, request: wire.SimulationRequest) -> int:
        """Return the gas limit that the balance of a request's payer covers, as far as nodes accept it."""
        price = request.gas_unit_price
        if price is None and self.prices is not None:
            prioritized = self.prices.prioritized_gas_estimate if request.estimate_prioritized_gas_unit_price else None
            price = prioritized or self.prices.gas_estimate
        balance = self.balances.get(request.payer)
        if balance is None or not price or not _fills_in_limit(request):
            return _PLACEHOLDER_MAX_GAS
        return min(balance // price, _PLACEHOLDER_MAX_GAS)


def _fills_in_limit(request: wire.SimulationRequest) -> bool:
    """Return whether the limit of a request follows from the balance of a fee payer."""
    is_open = request.max_gas_amount is None and not request.estimate_max_gas_amount
    return is_open and request.payer not in {request.sender, NOBODY}


def _prepared(
    node: Reads, request: wire.SimulationRequest, ledger: wire.LedgerState, number: int, sponsors: _Sponsors
) -> PreparedCall[Simulation]:
    """Prepare a simulation, encoded by the modules at a ledger's head; its expiration is relative to the newest head.

    The request is sent in BCS if the node's encoding is BCS and the types of its arguments are known, or if nodes
    accept its arguments or signatures only in BCS. The response is always JSON, because a BCS response would lack the
    information that nodes add, such as the names of failed functions.
    """
    abis, newest, payload = node.abis.at(ledger.version), node.newest or ledger, request.payload
    call = called_by(payload)
    margin_s = _EXPIRATION_S if request.replay_protection_nonce is None else _ORDERLESS_EXPIRATION_S
    numbers = {
        "sequence_number": number,
        "max_gas_amount": sponsors.limit(request),
        "gas_unit_price": _PLACEHOLDER_PRICE,
        "expiration_timestamp_secs": int(newest.timestamp.timestamp()) + margin_s,
    }
    function, needed, in_json, sent = None, False, payload.to_wire(), request
    if isinstance(payload, Batch):
        from toolkit.client._batch import with_script

        sent = with_script(node, request, ledger.version)
    if isinstance(call, wire.EntryFunction):
        function = entry_function(node, call, abis)
        needed = function is not None and only_in_bcs(call, function)
        called = in_json if call is payload else in_json["transaction_payload"]
        called["arguments"] = json_arguments(call, function, abis)
    wants_bcs, must_be_bcs = needed or node.encoding == "bcs", request.needs_bcs
    layouts = _parameter_layouts(call, function, abis) if wants_bcs or must_be_bcs else None
    if must_be_bcs or (wants_bcs and fit_bcs(layouts)):
        body = signed_transaction(sent, chain_id=newest.chain_id, layouts=layouts, **numbers).to_bcs()
        content = "application/x.aptos.signed_transaction+bcs"
    else:
        body, content = json_body(request.body(**numbers) | {"payload": in_json}), JSON
    asked = f"simulate {payload_name(payload)} from {request.sender}"

    def finish(answer: Answer) -> Simulation:
        transactions = decode_simulation(answer.body)
        if len(transactions) != 1:
            raise errors.SchemaError(
                f"{short_addresses(asked)}: expected one simulated transaction, got {len(transactions)}"
            )
        return Simulation(request, transactions[0], answer.parsed.ledger, _node=node)

    query = with_estimates(request).query()
    sending = node.request("POST", "/transactions/simulate", body=body, query=query, content=content)
    return PreparedCall(sending, asked, finish)


def _parameter_layouts(call: Any, function: FunctionAbi | None, abis: AbisAt) -> Sequence[Layout] | None:
    """Return the layouts of the parameters of a called function or script, or None if they are not known."""
    if call is None:  # the payload that a multisig account stores on chain
        return ()
    if isinstance(call, wire.Script) and call.abi is not None and not call.serialized:
        function = msgspec.convert(call.abi, FunctionAbi)
    return None if function is None else parameter_layouts(function, call.type_arguments, abis)


_EXECUTION = re.compile(
    r"Execution failed in (?P<function>\S{1,400})(?: \(on instruction (?P<instruction>\w+)[^\n]{0,200}?\))?"
    r" at code offset(?: \d{1,9}\nExecution failed with message: (?P<message>[^\n]{1,300}))?"
)
_PLACE = re.compile(r"resource (?:from|at|to|into) (?:0x)?([0-9a-f]{1,64})\b")
_MODULE = re.compile(r"\bModule (?:0x)?([0-9a-f]{1,64})::(\w{1,200}) doesn't exist")
_BELOW_MIN_GAS = "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS"
_CANNOT_PAY = "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"
_OUT_OF_GAS = "Out of gas"
_LINKER = "LINKER_ERROR"


def abort_parts(abort: Abort | None) -> tuple[str | None, str]:
    """Return the contract's message for a Move abort, and a text with its module, name, category and reason.

    The text is empty without an abort.
    """
    if abort is None:
        return None, ""
    code, category = abort.code, abort.category
    kind = f", category {code >> 16 & 0xFF} ({category}), reason {code & 0xFFFF}" if category else ""
    kind += f", {abort.native}" if abort.native else ""
    where = f" in {abort.module}" if abort.module else ""
    name = f" {abort.name}," if abort.name else ""
    return abort.sentence, f"the code{where} aborted:{name} code {code:#x}{kind}"


def failure_reason(request: wire.SimulationRequest, transaction: wire.UserTransaction) -> str | None:
    """Return why a simulated transaction fails and what to change; None if the status is not known."""
    reason = _reason(request, transaction)
    if not transaction.chain_success:
        return reason
    return f"the payload of the multisig account fails: {reason or transaction.vm_status}"


def _reason(request: wire.SimulationRequest, transaction: wire.UserTransaction) -> str | None:
    status = transaction.vm_status
    sentence, aborted = abort_parts(transaction.abort)
    if found := (f"{sentence} ({aborted})" if sentence else aborted) or _execution_words(status):
        return found
    known = next((name for name in advice("vm status") if name in status), None)
    if known in {_BELOW_MIN_GAS, _CANNOT_PAY, _OUT_OF_GAS} and (text := _balance_words(request, transaction, known)):
        return text
    missing = _MODULE.search(status) if known == _LINKER else None
    if missing is not None:
        module = f"{parse_address('0x' + missing[1])}::{missing[2]}"
        return f"the transaction needs the module {module}, which does not exist; check the function and type arguments"
    return None if known is None else advice("vm status")[known]


def _balance_words(request: wire.SimulationRequest, transaction: wire.UserTransaction, status: str) -> str | None:
    """Return why the balance of who pays ends a transaction; None if a limit of the request does."""
    limit, price = transaction.max_gas_amount, transaction.gas_unit_price
    sponsored = request.payer != request.sender
    payer = f"the {'fee payer' if sponsored else 'sender'} {request.payer}"
    other = "another fee_payer" if sponsored else "a fee_payer"
    most = f"{plural(limit, 'gas unit')} at {plural(price, 'octa')} each"
    estimated = with_estimates(request).estimate_max_gas_amount
    if status == _CANNOT_PAY and estimated:  # the node has chosen the limit: a user cannot lower it
        return f"{payer} has too few coins for the fee; set {other}{'' if sponsored else ', or use a funded sender'}"
    if status == _CANNOT_PAY:
        return f"{payer} cannot afford {most}; lower max_gas_amount, or set {other}"
    if not estimated and not _fills_in_limit(request):
        return None
    if status == _OUT_OF_GAS:
        return (
            f"it ran out of gas: the balance of {payer} covers {most}, up to the maximum of the network; fund that "
            f"account, or set {other} with a higher balance"
        )
    if sponsored:
        return (
            f"{payer} cannot afford any gas: its balance covers at most {most}; set {other}, or a lower gas_unit_price"
        )
    return (
        f"{payer} cannot afford any gas: by the node's estimate, its balance covers at most {most}; set a fee_payer, "
        "a lower limit (max_gas_amount and gas_unit_price) that the balance covers, or another sender"
    )


def _execution_words(status: str) -> str | None:
    """Describe the failed instruction that a status reports; return None if it reports neither one nor a message."""
    match = _EXECUTION.search(status)
    if match is None or not (match["instruction"] or match["message"]):
        return None
    place = _PLACE.search(status, match.end("function"))
    where = f" at {parse_address('0x' + place[1])}" if place else ""
    failed = f"instruction {match['instruction']} of {match['function']} failed"
    if match["message"]:
        failed = f"{match['message']} in {match['function']}"
    instruction = (match["instruction"] or "").removesuffix("Generic")
    if instruction in {"MoveFrom", "ImmBorrowGlobal", "MutBorrowGlobal"}:
        return f"the resource that the code reads or moves does not exist{where}: {failed}"
    return f"the resource that the code creates already exists{where}: {failed}" if instruction == "MoveTo" else failed
