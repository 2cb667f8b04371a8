"""Why gas moved. Nothing is guessed: without the reads that tell, a cause is ``unknown``.

The transaction at an exact step is read and classified by what it wrote; an unresolved interval is judged by what
differs between its ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import NodeError, NodeUnreachable, SchemaError
from toolkit.frames.text import short_addresses
from toolkit.gas.schedules import schedule_words, uniform_ratio
from toolkit.gas.steps import Cause
from toolkit.move.ids import FunctionId, ModuleId
from toolkit.wire.rows import transaction_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.node import Node
    from toolkit.gas.steps import Step
    from toolkit.move.abi import ModuleAbi

__all__ = ["cause_of"]

_SCHEDULE = ("0x1::gas_schedule::", "0x1::storage_gas::")
_CONFIG = (
    "0x1::features::",
    "0x1::version::",
    "0x1::chain_id::",
    "0x1::consensus_config::",
    "0x1::execution_config::",
    "0x1::randomness_config::",
    "0x1::jwk_consensus_config::",
    "0x1::on_chain_config::",
    "0x1::transaction_validation::",
)
_PACKAGE = "0x1::code::"
_PAYMENT = ("0x1::account::Account", "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>", "0x1::coin::CoinInfo<")
"""Every user transaction writes its sender's sequence number and balance, and the supply: no cause by themselves."""

_MOST_NAMED = 4


def cause_of(step: Step, node: Node, function: str) -> Cause:
    """Find out why a step happened.

    Parameters
    ----------
    step : Step
    node : Node
    function : str
        The function that the step's call calls.

    Returns
    -------
    Cause
        ``unknown``, with the reason, where the node does not offer the reads.
    """
    if step.build_before != step.build_after:
        return Cause("node", f"the node's build changed from {step.build_before} to {step.build_after}")
    try:
        return _exact_cause(step, node, function) if step.exact else _interval_cause(step, node, function)
    except (NodeError, NodeUnreachable, SchemaError) as error:
        return Cause("unknown", f"the reads that would tell are not to be had: {error}")


def _exact_cause(step: Step, node: Node, function: str) -> Cause:
    transaction = node.transaction(step.version_after)
    rows, changes, _ = transaction_rows([transaction])
    sender = rows["sender"][0]
    who = f" by {sender}" if sender else ""
    by = short_addresses(f"transaction {step.version_after} ({rows['function'][0] or rows['type'][0]}{who})")
    parts = _parts(changes, sender, node, step.version_before)
    words = [_part_words(kind, what, step, node, function) for kind, what in parts.items()]
    kind = next(iter(parts)) if len(parts) == 1 else "mixed"
    if not parts:
        return Cause("unexplained", f"{by} wrote nothing that tells why", transaction.hash)
    return Cause(kind, f"{by} {' and '.join(words)}", transaction.hash)


def _parts(changes: dict[str, list[Any]], sender: str | None, node: Node, before: int) -> dict[str, list[str]]:
    """Sort what a transaction wrote into kinds of cause, the strong ones first; paying for gas counts only if alone."""
    parts: dict[str, list[str]] = {"schedule": [], "code": [], "config": [], "state": []}
    payment: list[str] = []
    columns = ("type", "address", "resource_type", "module", "handle")
    written = list(zip(*(changes[name] for name in columns), strict=True))
    published = _first_published(written, node, before)
    for kind, address, resource, module, handle in written:
        if kind in {"write_module", "delete_module"}:
            parts["code"].append(module)
        elif resource is None and published:
            continue  # a table that the set-up of a new module filled
        elif resource is None:
            parts["state"].append(f"an item of table {short_addresses(handle)}")
        elif resource.startswith(_SCHEDULE):
            parts["schedule"].append(resource)
        elif resource.startswith(_CONFIG):
            parts["config"].append(resource)
        elif resource.startswith(_PAYMENT) and (address == sender or "CoinInfo" in resource):
            payment.append(f"{short_addresses(resource)} of {short_addresses(address)}")
        elif not resource.startswith((_PACKAGE, *published)):
            parts["state"].append(f"{short_addresses(resource)} of {short_addresses(address)}")
    found = {kind: list(dict.fromkeys(what)) for kind, what in parts.items() if what}
    return found or ({"state": payment} if payment else {})


def _first_published(written: Sequence[tuple[Any, ...]], node: Node, before: int) -> tuple[str, ...]:
    """Return the resource prefixes of modules that were not there before: what their set-up writes is their code's."""
    modules = {module for kind, _, _, module, _ in written if kind == "write_module"}
    ids = [ModuleId.parse(module) for module in modules]
    there = {at: node.abis.known(at.address, at.name, before) for at in ids}
    return tuple(f"{at}::" for at, known in there.items() if known.told and known.digest is None)


def _part_words(kind: str, what: Sequence[str], step: Step, node: Node, function: str) -> str:
    if kind == "schedule":
        return f"changed the gas schedule: {_schedule_words(step, node)}"
    if kind == "code":
        return " and ".join(_module_words(name, step, node, function) for name in what)
    more = f" and {len(what) - _MOST_NAMED} more" if len(what) > _MOST_NAMED else ""
    named = ", ".join(what[:_MOST_NAMED]) + more
    return f"changed on-chain configuration: {named}" if kind == "config" else f"wrote {named}"


def _schedule_words(step: Step, node: Node) -> str:
    before, after = node.gas_schedule(step.version_before), node.gas_schedule(step.version_after)
    words, ratio = schedule_words(before, after), uniform_ratio(before, after)
    if ratio is not None and step.gas_before and step.gas_after and step.gas_before * ratio != step.gas_after:
        return f"{words}; a node rounds gas up to whole units, so small figures move by less"
    return words


def _module_words(module: str, step: Step, node: Node, function: str) -> str:
    at = ModuleId.parse(module)
    before = node.abis.known(at.address, at.name, step.version_before)
    after = node.abis.known(at.address, at.name, step.version_after)
    called = FunctionId.parse(function)
    role = "the called module" if (called.address, called.module) == (at.address, at.name) else "a module"
    if not (before.told and after.told):
        return f"wrote {role} {at.wire} (the node does not offer modules, so what changed in it is not known)"
    done = "upgraded" if before.digest else "published"
    return f"{done} {role} {at.wire} ({_abi_words(before.abi, after.abi)})"


def _abi_words(before: ModuleAbi | None, after: ModuleAbi | None) -> str:
    """Say which functions were added, removed or changed in their signature."""
    sides = [{f.name: f for f in (abi.exposed_functions if abi else ())} for abi in (before, after)]
    if not any(sides):
        return "its functions are not known"
    added = sorted(sides[1].keys() - sides[0].keys())
    removed = sorted(sides[0].keys() - sides[1].keys())
    changed = sorted(name for name in sides[0].keys() & sides[1].keys() if sides[0][name] != sides[1][name])
    told = [
        f"{word} {', '.join(names)}"
        for word, names in zip(("added", "removed", "changed"), (added, removed, changed), strict=True)
        if names
    ]
    return "; ".join(told) or "the same functions, other code"


def _interval_cause(step: Step, node: Node, function: str) -> Cause:
    """Compare the ends of an interval; what differs there is named, and no single version is claimed."""
    between = f"between versions {step.version_before} and {step.version_after}"
    before, after = node.gas_schedule(step.version_before), node.gas_schedule(step.version_after)
    called = FunctionId.parse(function)
    found: dict[str, str] = {}
    if before != after:
        found["schedule"] = f"the gas schedule changed: {schedule_words(before, after)}"
    ends = (step.version_before, step.version_after)
    modules = [node.abis.known(called.address, called.module, version) for version in ends]
    if not all(module.told for module in modules):
        return Cause("unknown", f"{between} the called module may have changed; the node does not offer modules")
    if modules[0].digest != modules[1].digest:
        done = "upgraded" if modules[0].digest else "published"
        found["code"] = f"{short_addresses(called.address)}::{called.module} was {done}"
    if not found:
        return Cause(
            "unexplained", f"{between} neither the gas schedule nor the called module changed; the step was not located"
        )
    kind = next(iter(found)) if len(found) == 1 else "mixed"
    return Cause(kind, f"{between} {' and '.join(found.values())}")
