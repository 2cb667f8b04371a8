"""Simulates a committed transaction again at the node's head, and compares each part of the gas."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from toolkit import wire
from toolkit._present.notebook import literal
from toolkit._present.tables import text_table
from toolkit._present.text import listed, number, plural, short_addresses, version_range, visible
from toolkit.client._calls import AbisAt, function_abi, parameter_layouts
from toolkit.client._simulation import Simulation, simulate
from toolkit.client._transaction_data import Read, read_states, slot_of
from toolkit.errors import InputError, SchemaError, ToolkitError
from toolkit.move import Layout, decode_bcs, decode_json
from toolkit.wire._requests import SimulatedPayload, UnknownPayload, called_by, parse_payload
from toolkit.wire._rows import transaction_rows
from toolkit.wire._signatures import NoAccountSignature
from toolkit.wire._transactions import PendingTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pandas as pd

    from toolkit.client._reads import Reads
    from toolkit.wire import GasBreakdown, TransactionSignature


_PARTS = ("execution", "io", "storage", "refund", "total")
_MAX_NAMED = 3  # state items in a caveat; they have long names
# The resource with the sequence number, which every transaction of an account changes.
_ACCOUNT = "0x1::account::Account "


@dataclass(frozen=True, slots=True)
class Caveat:
    """A reason why parts of the gas cannot be compared, or another difference between transaction and simulation.

    Attributes
    ----------
    text : str
    parts : frozenset of str
        The parts that cannot be compared: execution, io, storage, refund, total. Empty if the caveat is only
        informative.
    """

    text: str
    parts: frozenset[str] = frozenset()


@dataclass(frozen=True, repr=False)
class Resimulation:
    """A committed transaction and its simulation at the node's head, as returned by `Node.resimulate`.

    Attributes
    ----------
    committed : UserTransaction
        The transaction as returned by the node.
    simulation : Simulation
        Simulation of the request that was rebuilt from the transaction.
    caveats : tuple of Caveat
        The parts that cannot be compared, and why.

    Examples
    --------
    >>> import toolkit
    >>> node = toolkit.connect()
    >>> found = toolkit.fetch_transactions(node, versions="4000:4020", progress=False).transactions
    >>> again = node.resimulate(int(found.dropna(subset="sender")["ledger_version"].iloc[0]))
    >>> again.to_frame()["part"].tolist()
    ['execution', 'io', 'storage', 'refund', 'total']
    """

    committed: wire.UserTransaction
    simulation: Simulation
    caveats: tuple[Caveat, ...] = ()

    @property
    def request(self) -> wire.SimulationRequest:
        """The request that was rebuilt from the committed transaction."""
        return self.simulation.request

    @property
    def ledger_version(self) -> int:
        """Version of the committed transaction. It ran on the state of the previous version."""
        return self.committed.version

    @property
    def version_gap(self) -> int:
        """Number of versions between the state before the committed transaction and the state of the simulation."""
        return self.simulation.ledger_version - (self.ledger_version - 1)

    @property
    def function(self) -> str | None:
        """The called function, including one inside a multisig payload; None for a script."""
        inner = called_by(self.request.payload)
        return inner.function if isinstance(inner, wire.EntryFunction) else None

    def to_frame(self) -> pd.DataFrame:
        """Return the differences for each part of the gas.

        Returns
        -------
        DataFrame, shape (5, 12)
            One row for each of ``execution``, ``io``, ``storage``, ``refund`` and ``total``: the committed amount, the
            simulated amount and the change, in gas units and in octas; and whether the two can be compared, and if not,
            why.

        Raises
        ------
        SchemaError
            If a fee statement does not have the documented shape.
        """
        from toolkit.frames._columns import frame_of_rows
        from toolkit.frames._schema import RESIMULATION

        return frame_of_rows(RESIMULATION, self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        sides = [(one, one.gas_breakdown()) for one in (self.committed, self.simulation.transaction)]
        for part in _PARTS:
            (gas, octas), (gas_now, octas_now) = (_amounts(*side, part) for side in sides)
            values = (gas, gas_now, _change(gas, gas_now), octas, octas_now, _change(octas, octas_now))
            reasons = [caveat.text for caveat in self.caveats if part in caveat.parts]
            about: dict[str, Any] = {"part": part, "function": self.function, "ledger_version": self.ledger_version}
            about |= {"simulated_version": self.simulation.ledger_version, "reasons": reasons}
            rows.append(about | {"comparable": not reasons} | dict(zip(_VALUES, values, strict=True)))
        return rows

    def explain(self) -> str:
        """Describe how the simulated cost differs from the fee paid, and which parts cannot be compared."""
        committed, again = self.committed, self.simulation
        then = "it succeeded" if committed.success else f"it failed ({committed.vm_status})"
        now = "it would succeed" if again.success else f"it would fail ({again.vm_status})"
        change = again.gas_used - committed.gas_used
        cells = [
            (
                row["part"] if row["comparable"] else f"{row['part']} *",
                *(_signed(row[name]) if name.endswith("change") else number(row[name]) for name in _VALUES),
            )
            for row in self._rows()
        ]
        module = "" if self.function is None else f", modules=[{self.function.rpartition('::')[0]!r}]"
        span = f"{self.ledger_version}:{max(self.ledger_version, again.ledger_version)}"
        gap = plural(again.ledger_version - self.ledger_version + 1, "version")
        again_on = f", simulated again on the state of version {again.ledger_version}, {gap} later."
        now = f"Now: {now} and use {plural(again.gas_used, 'gas unit')} ({f'{change:+,}' if change else 'the same'})."
        lines = [
            f"{_what(self.request)} of version {self.ledger_version} from {self.request.sender}{again_on}",
            f"Committed: {then} and used {plural(committed.gas_used, 'gas unit')}. {now}",
            *text_table(cells, head=_HEAD, numbers_from=1),
            *map(_note, self.caveats),
            f"What changed in between: toolkit.timeline(node, {span!r}{module}).",
        ]
        return "\n".join(visible(short_addresses(line), 600) for line in lines)

    def __repr__(self) -> str:
        used = f"{self.committed.gas_used} -> {self.simulation.gas_used} gas units"
        versions = version_range(self.ledger_version, self.simulation.ledger_version)
        return f"<Resimulation: {visible(short_addresses(_what(self.request)), 200)}, versions {versions}, {used}>"

    def _repr_html_(self) -> str:
        title, _, rest = self.explain().partition("\n")
        return literal(f"<strong>{escape(title)}</strong><pre>{escape(rest)}</pre>")


def _note(caveat: Caveat) -> str:
    """Return a caveat as a sentence."""
    parts = [part for part in _PARTS if part in caveat.parts]
    several = " and ".join([", ".join(parts[:-1]), *parts[-1:]] if parts[1:] else parts)
    named, how = ("no part", "can") if len(parts) == len(_PARTS) else (several, "cannot")
    text = (f"{named} {how} be compared: " if parts else "") + caveat.text
    return f"{text[0].upper()}{text[1:]}."


_VALUES = ("gas_committed", "gas_simulated", "gas_change", "octas_committed", "octas_simulated", "octas_change")
_HEAD = ("part", "committed", "simulated", "change", "octas", "octas now", "change of octas")


def _change(before: Any, after: Any) -> Any:
    return None if before is None or after is None else after - before


def _signed(value: float | None) -> str:
    return number(value) if not value else f"{'+' if value > 0 else '-'}{number(abs(value))}"


def _what(request: wire.SimulationRequest) -> str:
    payload, inner = request.payload, called_by(request.payload)
    called = inner.function if isinstance(inner, wire.EntryFunction) else "a script" if inner else "the stored payload"
    if isinstance(payload, wire.Multisig):
        return f"Multisig transaction of {payload.multisig_address} ({called})"
    return called[:1].upper() + called[1:]


def _amounts(transaction: wire.UserTransaction, gas: GasBreakdown | None, part: str) -> tuple[float | None, int | None]:
    """Return a part of the gas in gas units and in octas; None if the fee statement is missing."""
    if part == "total":
        return float(transaction.gas_used), transaction.gas_used * transaction.gas_unit_price
    if gas is None:
        return None, None
    price, units = gas.gas_unit_price, {"execution": gas.execution_gas_units, "io": gas.io_gas_units}
    if part in units:
        return float(units[part]), units[part] * price
    octas = gas.storage_fee_octas if part == "storage" else gas.storage_fee_refund_octas
    return (octas / price if price else None), octas


# the request ---------------------------------------------------------------------------------------------------------


def rebuild_request(
    transaction: Any, abis_at: Callable[[int], AbisAt] | None = None
) -> tuple[wire.SimulationRequest, tuple[Caveat, ...]]:
    """Return the request that simulates a committed transaction again, and how it differs from that transaction.

    Payload, sender, gas limit, gas unit price and the shape of the signature are taken from the committed transaction.
    Signatures are zeros. Sequence number and expiration come from the node's state, since the node would reject the
    past values; an orderless transaction gets a new nonce.

    Parameters
    ----------
    transaction : Transaction
        A committed transaction.
    abis_at : callable, optional
        Returns the modules at a version, with which arguments are decoded. Without it, arguments keep the form in which
        the node returns them.

    Returns
    -------
    SimulationRequest, tuple of Caveat

    Raises
    ------
    InputError
        If `transaction` is not a user transaction, or its payload cannot be simulated.
    """
    if isinstance(transaction, PendingTransaction):
        raise InputError(f"transaction {transaction.hash} is pending; resimulate it once it is committed")
    if not isinstance(transaction, wire.UserTransaction):
        kind = getattr(transaction, "type", None) or transaction.__struct_config__.tag
        raise InputError(
            f"version {transaction.version_text} is a {kind}; only user transactions can be simulated. "
            "In toolkit.fetch_transactions(node, versions), these are the transactions with a sender"
        )
    payload, caveats = transaction.payload, list[Caveat]()
    if isinstance(payload, UnknownPayload) and payload.content.get("decrypted_payload"):
        payload = parse_payload(payload.content["decrypted_payload"])
        caveats.append(Caveat("its payload was encrypted; simulating the decrypted one", frozenset({"io", "total"})))
    if not isinstance(payload, SimulatedPayload):
        raise InputError(
            f"the payload of version {transaction.version} is a {visible(getattr(payload, 'type', payload), 60)}, "
            "which nodes do not simulate; choose a transaction with an entry function, a script or a multisig payload"
        )
    signature: TransactionSignature | None
    signature = transaction.signature
    if signature is not None:
        try:
            signature = wire.zero_padded(signature)
        except InputError:
            left_out = f"its signatures have an unknown kind ({signature.type}); simulating without them"
            signature = _absent(signature)
            caveats.append(Caveat(left_out))
    nonce = transaction.replay_protection_nonce
    taken = f"sequence number {transaction.sequence_number} is already taken; using the account's next one"
    if nonce is not None:
        taken, nonce = f"nonce {nonce} is already taken; using another one", nonce ^ 1 << 63
    caveats.append(Caveat(taken))
    request = wire.SimulationRequest(
        _with_python_arguments(payload, None if abis_at is None else abis_at(transaction.version)),
        sender=transaction.sender,
        max_gas_amount=transaction.max_gas_amount,
        gas_unit_price=transaction.gas_unit_price,
        replay_protection_nonce=nonce,
        signature=signature,
    )
    return request, tuple(caveats)


def _absent(signature: TransactionSignature) -> TransactionSignature:
    """Return a signature of the same signers without their keys."""
    none = NoAccountSignature()
    if not isinstance(signature, wire.MultiAgentSignature | wire.FeePayerSignature):
        return none
    parts: dict[str, Any] = {"sender": none, "secondary_signers": [none] * len(signature.secondary_signers)}
    if isinstance(signature, wire.FeePayerSignature):
        parts["fee_payer_signer"] = none
    return signature.replace(**parts)


def _with_python_arguments(payload: Any, abis: AbisAt | None) -> Any:
    """Return a payload with its arguments as Python values, or unchanged if their types are not known."""
    if isinstance(payload, wire.Multisig) and isinstance(payload.transaction_payload, wire.EntryFunction):
        return payload.replace(transaction_payload=_with_python_arguments(payload.transaction_payload, abis))
    if abis is None or not isinstance(payload, wire.EntryFunction):
        return payload
    function = function_abi(payload.function, abis)
    if function is None or len(function.parameters) != len(payload.arguments):
        return payload
    layouts = parameter_layouts(function, payload.type_arguments, abis)
    for decode in (decode_json, _decode_hex):  # nodes return arguments that do not fit their types as BCS
        try:
            pairs = zip(layouts, payload.arguments, strict=True)
            return payload.replace(arguments=[decode(layout, one, where="argument") for layout, one in pairs])
        except ValueError:  # SchemaError and InputError are ones
            continue
    return payload


def _decode_hex(layout: Layout, text: object, *, where: str) -> Any:
    if not isinstance(text, str):
        raise SchemaError(f"{where}: expected BCS as a hex string, got {type(text).__name__}")
    return decode_bcs(layout, bytes.fromhex(text.removeprefix("0x")), where=where)


# the comparison ------------------------------------------------------------------------------------------------------


def resimulated(node: Reads, transaction: Any) -> Resimulation:
    """Simulate a committed transaction again; see `Node.resimulate`."""
    simulation, caveats = simulated_again(node, transaction)
    found = [*caveats, *_outcomes(transaction, simulation)]
    if simulation.gas is not None and transaction.changes:
        found += _state(node, transaction, simulation.ledger_version)
    return Resimulation(transaction, simulation, tuple(found))


def simulated_again(node: Reads, transaction: Any) -> tuple[Simulation, list[Caveat]]:
    """Simulate a committed transaction again, without its keys if they have since been rotated."""
    request, caveats = rebuild_request(transaction, lambda version: node.abis.at(version, lenient=True))
    simulation = simulate(node, request)
    found = [*caveats]
    if "INVALID_AUTH_KEY" in simulation.vm_status and request.signature is not None:
        simulation = simulate(node, request.replace(signature=_absent(request.signature)))
        keyless = "keyless" in str(request.signature.to_wire())  # whose proof is charged as execution
        parts = frozenset({"execution", "total"}) if keyless else frozenset()
        found.append(Caveat("the account's key has since been rotated; simulating without public keys", parts))
    return simulation, found


def _outcomes(transaction: wire.UserTransaction, simulation: Simulation) -> Iterator[Caveat]:
    """Yield the caveats that follow from how the two transactions ended."""
    every = frozenset(_PARTS)
    if transaction.gas_breakdown() is None:
        yield Caveat("the committed transaction has no fee statement (added in 2023)", every - {"total"})
    if simulation.gas is None:
        yield Caveat(
            f"the simulation was discarded before it ran ({simulation.vm_status}), so nothing would be charged", every
        )
    elif transaction.success != simulation.success:
        then, now = ("succeeded", "fails") if transaction.success else ("failed", "succeeds")
        status = transaction.vm_status if simulation.success else simulation.vm_status
        yield Caveat(f"the committed transaction {then} and the simulation {now} ({status})", every)
    elif not transaction.success and transaction.vm_status != simulation.vm_status:
        yield Caveat(f"both fail, but differently: {transaction.vm_status} and {simulation.vm_status}", every)
    if not transaction.gas_unit_price:
        yield Caveat("storage is not charged at a gas unit price of 0", frozenset({"storage", "refund"}))


def _state(node: Reads, transaction: wire.UserTransaction, now: int) -> Iterator[Caveat]:
    """Compare the state that the transaction wrote, before it and at the simulated version, and yield caveats."""
    versions, changes = (transaction.version - 1, now), transaction_rows([transaction]).changes
    rows = [dict(zip(changes, values, strict=True)) for values in zip(*changes.values(), strict=True)]
    states = read_states(node, [Read(slot, at) for row in rows if (slot := slot_of(row)) for at in versions])
    storage, refund = frozenset({"storage", "total"}), frozenset({"refund"})
    created, gone, deleted, others = list[str](), list[str](), list[str](), list[str]()
    for row in rows:
        slot = slot_of(row)
        if row["module"] is not None:
            name, (address, module) = f"module {row['module']}", row["module"].split("::")
            before, after = (node.abis.at(at).module_abi(address, module) and module for at in versions)
        elif slot is not None:
            name = f"{row['resource_type']} of {slot[0]}" if row["resource_type"] else f"an item of table {slot[0]}"
            before, after = (states[Read(slot, at)] for at in versions)
        else:
            continue
        failure = next((state for state in (before, after) if isinstance(state, ToolkitError)), None)
        if failure is not None:
            yield Caveat(
                f"the state before the transaction or at the head cannot be read ({failure}); the transaction and the "
                "simulation may create different slots",
                storage | refund,
            )
            return
        if str(row["type"]).startswith("delete"):
            if before is not None and after is None:
                deleted.append(name)
        elif (before is None) != (after is None):
            (created if before is None else gone).append(name)
        elif before != after and not name.startswith(_ACCOUNT):
            others.append(name)
    said = (
        (created, "it created state that exists now", storage),
        (gone, "it wrote state that has since been deleted, and would now create it", storage),
        (deleted, "it deleted state that no longer exists", refund),
        (others, "uses current state; changed since", frozenset[str]()),
    )
    yield from (Caveat(f"{text}: {listed(names, _MAX_NAMED)}", parts) for names, text, parts in said if names)
