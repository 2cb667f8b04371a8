"""A simulation in plain words: what the call would do, what it costs, why it failed. Result in, text out."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolkit._present.text import short_addresses, visible
from toolkit.frames.columns import plain_columns
from toolkit.wire import EntryFunction

if TYPE_CHECKING:
    from toolkit.client.results import Simulation

__all__ = ["abort_words", "explanation"]

OCTAS_PER_APT = 10**8
CATEGORIES = {
    1: "invalid argument",
    2: "out of range",
    3: "invalid state",
    4: "unauthenticated",
    5: "permission denied",
    6: "not found",
    7: "aborted",
    8: "already exists",
    9: "resource exhausted",
    10: "cancelled",
    11: "internal",
    12: "not implemented",
    13: "unavailable",
}
"""Bits 16 to 23 of an abort code. Source: the Move standard library's error module."""

_ABORT = re.compile(
    r"Move abort(?: in (?P<module>\S+))?: (?:(?P<name>\w+)\()?(?:code )?0x(?P<code>[0-9a-fA-F]{1,16})\)?"
)
_STATUS = {
    "Out of gas": "it ran out of gas: raise max_gas_amount",
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": "who pays cannot afford max_gas_amount at this price",
    "SEQUENCE_NUMBER_TOO_OLD": "the sequence number was used already; leave it open to have it filled",
    "SEQUENCE_NUMBER_TOO_NEW": "the sequence number is ahead of the account's; leave it open to have it filled",
    "TRANSACTION_EXPIRED": "the expiration lies before the ledger's time",
    "SENDING_ACCOUNT_DOES_NOT_EXIST": "there is no such sender",
}
_MOST = 8


def abort_words(vm_status: str) -> str | None:
    """Decode a Move abort: which module, its name, category and reason; None where the status is no abort."""
    match = _ABORT.search(vm_status)
    if match is None:
        return None
    code = int(match["code"], 16)
    category = CATEGORIES.get(code >> 16 & 0xFF)
    kind = f", category {code >> 16 & 0xFF} ({category}), reason {code & 0xFFFF}" if category else ""
    where = f" in {match['module']}" if match["module"] else ""
    name = f" {match['name']}" if match["name"] else ""
    return f"the code{where} aborted:{name} code {code:#x}{kind}"


def explanation(simulation: Simulation) -> str:
    """Return the plain words of `Simulation.explain`; text from the chain is made harmless."""
    lines = [headline(simulation), *failure_words(simulation), cost_words(simulation)]
    lines += [*_balances(simulation), *_writes(simulation)]
    lines.append(
        f"Nothing was signed, submitted or stored; the state was that of ledger version {simulation.ledger_version}."
    )
    return "\n".join(visible(short_addresses(line), 400) for line in lines)


def headline(simulation: Simulation) -> str:
    """Say what would succeed or fail."""
    payload = simulation.request.payload
    what = payload.function if isinstance(payload, EntryFunction) else f"the {type(payload).__name__} payload"
    return f"{what} from {simulation.request.sender} would {'succeed' if simulation.success else 'fail'}."


def failure_words(simulation: Simulation) -> list[str]:
    """Say why a transaction would fail: what the status means first, since the status itself may be long."""
    if simulation.success:
        return []
    status = simulation.vm_status
    why = abort_words(status) or next((words for name, words in _STATUS.items() if name in status), None)
    return [*([f"Why: {why}."] if why else []), f"Status: {status}"]


def cost_words(simulation: Simulation) -> str:
    """Say what it costs."""
    gas = simulation.gas
    if gas is None:
        return "It was discarded before it ran, so nothing would be charged."
    whole, octas = divmod(abs(gas.net_octas), OCTAS_PER_APT)
    net = f"{'' if gas.net_octas >= 0 else 'a refund of '}{whole}.{octas:08d} APT"
    parts = f"execution {gas.execution_gas_units}, reads and writes {gas.io_gas_units} gas units"
    storage = f"storage {gas.storage_fee_octas} octas, refund {gas.storage_fee_refund_octas} octas"
    return (
        f"It costs {gas.total_charge_gas_units} gas units at {gas.gas_unit_price} octas each, {net} net "
        f"({parts}, {storage})."
    )


def _balances(simulation: Simulation) -> list[str]:
    columns = plain_columns(simulation.balance_changes, ["owner", "asset", "change"])
    rows = list(zip(*columns.values(), strict=True))
    lines = [f"{owner}: {change:+d} of {asset}." for owner, asset, change in rows[:_MOST]]
    return [*lines, f"{len(rows) - _MOST} balances more."] if len(rows) > _MOST else lines


def _writes(simulation: Simulation) -> list[str]:
    kinds = plain_columns(simulation.changes, ["type"])["type"]
    events = len(simulation.events)
    counts = ", ".join(f"{kinds.count(kind)} {str(kind).replace('_', ' ')}" for kind in dict.fromkeys(kinds))
    return [f"State changes: {counts or 'none'}. Events: {events}."]
