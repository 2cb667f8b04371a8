"""The words of causes: what a transaction changed in schedule, code, configuration and state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.text import short_addresses, visible
from toolkit.gas.causes.evidence import FEATURES, FRAMEWORK, UNREAD, reason
from toolkit.gas.schedules import schedule_words, uniform_ratio
from toolkit.wire import feature_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    from toolkit.client.abis import Known
    from toolkit.gas.causes.evidence import Evidence
    from toolkit.gas.causes.packages import Dependencies
    from toolkit.gas.steps import Step
    from toolkit.move import ModuleAbi, ModuleId

__all__ = [
    "ROUNDED",
    "Role",
    "abi_words",
    "change_words",
    "config_words",
    "feature_words",
    "module_words",
    "resource_words",
    "role_of",
    "schedule_step_words",
    "transaction_words",
]

_MOST_NAMED = 6
_FAR = 1_000
ROUNDED = " (gas is rounded up to whole units, so small figures move by less)"
_CURVES = "0x1::storage_gas::"

Ends = tuple[int, int]


def transaction_words(version: int, facts: Mapping[str, Any]) -> str:
    """Name a transaction: its version, what it called, and who sent it."""
    payload = str(facts["payload_type"] or "").removesuffix("_payload").replace("_", " ")
    what = facts["function"] or (f"a {payload}" if payload else facts["type"])
    who = f" by {facts['sender']}" if facts["sender"] else ""
    return visible(short_addresses(f"transaction {version} ({what}{who})"), 300)


def schedule_step_words(tags: Sequence[str], step: Step, evidence: Evidence) -> str:
    """Say how the written gas schedule differs from the one before; empty where it does not."""
    curves = [tag for tag in tags if tag.startswith(_CURVES)]
    told = [word for tag in curves if (word := config_words(tag, (step.version_before, step.version_after), evidence))]
    if len(curves) < len(tags):
        try:
            before, after = evidence.schedule(step.version_before), evidence.schedule(step.version_after)
        except UNREAD as error:
            told.append(f"wrote the gas schedule (what changed in it is not known: {reason(error)})")
        else:
            if before != after:
                told.append(f"changed the gas schedule: {schedule_words(before, after)}")
                told[-1] += _rounding(step, uniform_ratio(before, after))
    return " and ".join(told)


def _rounding(step: Step, ratio: Fraction | None) -> str:
    """Explain why a uniform change of prices did not change this call's gas by that very ratio."""
    if ratio is None or not step.gas_before or not step.gas_after:
        return ""
    return "" if step.gas_before * ratio == step.gas_after else ROUNDED


def config_words(tag: str, ends: Ends, evidence: Evidence) -> str:
    """Say what changed in a resource of on-chain configuration; empty where nothing did."""
    short = short_addresses(tag)
    try:
        before, after = (evidence.resource(FRAMEWORK, tag, version) for version in ends)
        if tag == FEATURES and after is not None:
            return feature_words(*(evidence.features(version) for version in ends))
    except UNREAD as error:
        return f"wrote the configuration {short} (what changed in it is not known: {reason(error)})"
    if before == after and after is not None:
        return ""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"changed the configuration {short}"
    fields = [name for name in dict.fromkeys([*before, *after]) if before.get(name) != after.get(name)]
    return f"changed the configuration {short} ({_some(fields)})"


def feature_words(before: frozenset[int], after: frozenset[int]) -> str:
    """Say which feature flags went on and off; empty where none did."""
    told = []
    for word, flags in (("on", after - before), ("off", before - after)):
        if flags:
            names = [f"{number} {feature_name(number) or '(a flag not known by name)'}" for number in sorted(flags)]
            told.append(f"switched {word} feature flag{'s' if len(names) > 1 else ''} {_some(names)}")
    return " and ".join(told)


class Role(NamedTuple):
    """What a module is to the called one; roles sort by nearness.

    Attributes
    ----------
    distance : int
        0 for the called module itself.
    words : str
    reached : bool
        False where the called module's package, and all that it needs, declare no need of the module.
    """

    distance: int
    words: str
    reached: bool = True


def role_of(module: ModuleId, called: ModuleId, needs: Dependencies | None) -> Role:
    """Say what a module is to the called one, by what the packages declare."""
    name, caller = module.wire, called.wire
    if module == called:
        return Role(0, f"the called module {name}")
    if needs is None:
        return Role(_FAR, f"module {name} (no registry tells whether {caller} depends on it)")
    distance = needs.distance(module)
    if distance == 0:
        return Role(1, f"module {name}, of the called module's own package {visible(needs.own.name, 40)}")
    if distance is not None:
        return Role(1 + distance, f"module {name}, a dependency of the called module {caller}")
    if not needs.complete:
        return Role(_FAR, f"module {name} (not all dependencies of {caller} could be read)")
    words = f"module {name}, which {caller} declares no need of, and nothing else that could tell"
    return Role(_FAR, words, reached=False)


def module_words(module: ModuleId, role: Role, ends: Ends, evidence: Evidence) -> str:
    """Say what happened to a module; empty where it is the same as before."""
    try:
        before, after = (evidence.module(module, version) for version in ends)
    except UNREAD as error:
        return f"wrote {role.words} (what changed in it is not known: {reason(error)})"
    if not (before.told and after.told):
        return f"wrote {role.words} (the node does not offer modules, so what changed in it is not known)"
    return change_words(before, after, role.words)


def change_words(before: Known, after: Known, what: str) -> str:
    """Say what happened between two readings of a module; empty where they are equal."""
    if before.digest == after.digest:
        return ""
    if after.digest is None:
        return f"deleted {what}"
    if before.digest is None:
        return f"published {what} ({abi_words(None, after.abi).replace('added', 'with', 1)})"
    return f"upgraded {what} ({abi_words(before.abi, after.abi)})"


def abi_words(before: ModuleAbi | None, after: ModuleAbi | None) -> str:
    """Say which functions were added, removed or changed in their signature."""
    sides = [{f.name: f for f in (abi.exposed_functions if abi else ())} for abi in (before, after)]
    if not any(sides):
        return "its functions are not known"
    added = sorted(sides[1].keys() - sides[0].keys())
    removed = sorted(sides[0].keys() - sides[1].keys())
    changed = sorted(name for name in sides[0].keys() & sides[1].keys() if sides[0][name] != sides[1][name])
    told = [
        f"{word} {_some(names)}"
        for word, names in zip(("added", "removed", "changed"), (added, removed, changed), strict=True)
        if names
    ]
    return "; ".join(told) or "the same functions, other code"


def resource_words(tag: str, addresses: Sequence[str]) -> str:
    """Name a resource and the accounts whose one was written."""
    whose = addresses[0] if len(addresses) == 1 else f"{len(addresses)} accounts"
    return visible(short_addresses(f"{tag} of {whose}"), 200)


def _some(names: Iterable[str]) -> str:
    """List names, the first few of them."""
    told = [visible(name, 80) for name in names]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return ", ".join(told[:_MOST_NAMED]) + more
