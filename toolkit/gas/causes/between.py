"""The cause of a step that was not located: what differs between the ends of its interval. No version is claimed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.text import visible
from toolkit.errors import SchemaError
from toolkit.gas.causes.evidence import UNREAD, reason
from toolkit.gas.causes.words import change_words, feature_words
from toolkit.gas.schedules import schedule_words
from toolkit.gas.steps import Cause
from toolkit.move import wire_address

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.gas.causes.evidence import Evidence
    from toolkit.gas.steps import Step
    from toolkit.move import ModuleId

__all__ = ["cause_between"]


def cause_between(step: Step, evidence: Evidence, called: ModuleId) -> Cause:
    """Compare the ends of an unresolved interval: schedule, feature flags, the called package and its dependencies.

    Parameters
    ----------
    step : Step
    evidence : Evidence
    called : ModuleId
        The module whose function was called.

    Returns
    -------
    Cause
        Never ``state``: that nothing else differs does not show what the state did. Nor ``schedule`` where parameters
        only came or went. ``unknown`` where something could not be read and nothing that could be read differs.
    """
    ends = (step.version_before, step.version_after)
    looks: dict[str, Callable[[], str]] = {
        "schedule": lambda: _schedule(ends, evidence),
        "code": lambda: _code(ends, evidence, called),
        "config": lambda: feature_words(*(evidence.features(version) for version in ends)),
    }
    found: dict[str, str] = {}
    unread: list[str] = []
    for kind, look in looks.items():
        try:
            words = look()
        except UNREAD as error:
            unread.append(f"{_NAMES[kind]}: {reason(error)}")
        else:
            if words:
                found[kind] = words
    missing = f"not to be had: {'; '.join(unread)}" if unread else ""
    if found:
        kind = next(iter(found)) if len(found) == 1 else "mixed"
        caveat = f" ({missing})" if missing else ""
        return Cause(
            kind, f"meanwhile the ledger {' and '.join(found.values())}{caveat}; {_NOT_FOUND}", parts=tuple(found)
        )
    if missing:
        return Cause("unknown", f"nothing that could be read differs between the two; {missing}")
    aside = _aside(ends, evidence)
    schedule = f"a price of the gas schedule ({aside})" if aside else "the gas schedule"
    return Cause(
        "unexplained",
        f"neither {schedule}, nor the feature flags, nor {called.wire} or a package it needs differs between the two; "
        f"{_NOT_FOUND}",
    )


_NOT_FOUND = "which transaction made the step was not found out, a search (find_steps) with requests to spare finds it"
_NAMES = {"schedule": "the gas schedule", "code": "modules and packages", "config": "the feature flags"}


def _schedule(ends: tuple[int, int], evidence: Evidence) -> str:
    """Say how the schedule changed, where a price did: new parameters alone move no gas of what was there before."""
    before, after = (evidence.schedule(version) for version in ends)
    common = before.entries.keys() & after.entries.keys()
    moved = any(before.entries[name] != after.entries[name] for name in common)
    return f"changed its gas schedule: {schedule_words(before, after)}" if moved else ""


def _aside(ends: tuple[int, int], evidence: Evidence) -> str:
    """Say what of the schedule changed that is no cause, empty where nothing did."""
    before, after = (evidence.schedule(version) for version in ends)
    return "" if before == after else schedule_words(before, after)


def _code(ends: tuple[int, int], evidence: Evidence, called: ModuleId) -> str:
    """Say what happened to the called module, and to the packages it stands on, by their upgrade numbers."""
    before, after = (evidence.module(called, version) for version in ends)
    changed = change_words(before, after, f"the called module {called.wire}") if before.told and after.told else ""
    told = [changed] if changed else []
    needed = [found for version in ends if (found := evidence.dependencies(called, version)) is not None]
    if not needed and not told:
        raise SchemaError(f"no package registry names {called.wire}, so what it depends on is not known")
    own = {(one.own.address, one.own.name) for one in needed}
    packages = {(package.address, package.name) for one in needed for package in one.packages}
    for address, name in sorted(packages - own if told else packages):
        numbers = [_upgrade_number(address, name, version, evidence) for version in ends]
        if numbers[0] != numbers[1]:
            whose = "the called module's own package" if (address, name) in own else "a package it needs,"
            told.append(f"{_done(*numbers)} {whose} {visible(name, 40)} of {wire_address(address)}")
    return " and ".join(told)


def _upgrade_number(address: str, name: str, version: int, evidence: Evidence) -> int | None:
    """Return how often a package was upgraded until a version, None where it is not there."""
    return next((one.upgrade_number for one in evidence.packages(address, version) if one.name == name), None)


def _done(before: int | None, after: int | None) -> str:
    if before is None:
        return "published"
    return "deleted" if after is None else f"upgraded {after - before} time{'' if after - before == 1 else 's'}"
