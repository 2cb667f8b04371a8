"""Requests that simulate committed transactions again, at the node's head: what a form starts from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit import wire
from toolkit._present.text import visible
from toolkit.client._abis import AbisAt, function_abi, parameter_layouts
from toolkit.client._simulation import Simulation, simulate
from toolkit.errors import InputError, SchemaError
from toolkit.move import Layout, decode_bcs, decode_json
from toolkit.wire._requests import SimulatedPayload, UnknownPayload, parse_payload
from toolkit.wire._signatures import NoAccountSignature
from toolkit.wire._signers import any_is_keyless
from toolkit.wire._transactions import PendingTransaction

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._reads import Reads
    from toolkit.wire import TransactionSignature


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
        raise InputError(f"transaction {transaction.hash} is pending; read it again once it is committed")
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
            f"the payload of version {transaction.version:,} is a {visible(getattr(payload, 'type', payload), 60)}, "
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
        taken = f"nonce {nonce} is already taken; using another one"
        nonce ^= 1 << 63
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
        except ValueError:  # the base class of SchemaError and InputError
            continue
    return payload


def _decode_hex(layout: Layout, text: object, *, where: str) -> Any:
    if not isinstance(text, str):
        raise SchemaError(f"{where}: expected BCS as a hex string, got {type(text).__name__}")
    return decode_bcs(layout, bytes.fromhex(text.removeprefix("0x")), where=where)


def simulated_again(node: Reads, transaction: Any) -> tuple[Simulation, list[Caveat]]:
    """Simulate a committed transaction again, without its keys if they do not match the accounts'."""
    request, caveats = rebuild_request(transaction, node.abis.at)
    simulation = simulate(node, request)
    found = [*caveats]
    if "INVALID_AUTH_KEY" in simulation.vm_status and request.signature is not None:
        simulation = simulate(node, request.replace(signature=_absent(request.signature)))
        is_keyless = any_is_keyless(request.signature)  # whose proof is charged as execution
        parts = frozenset({"execution", "total"}) if is_keyless else frozenset()
        found.append(
            Caveat("the transaction's keys do not match the accounts' keys; simulating without public keys", parts)
        )
    return simulation, found
