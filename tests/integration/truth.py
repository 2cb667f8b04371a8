"""The truth about a ledger's steps, from the ledger object itself: every version of every call, no HTTP, no search."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit import embedded
from toolkit.errors import Aborted, InputError

if TYPE_CHECKING:
    from toolkit.gas._study import Call


class Outcome(NamedTuple):
    """What a reading of a view tells: gas, or how it failed."""

    gas: int | None
    success: bool | None
    error: str | None


def outcome_at(ledger: embedded.Ledger, call: Call, version: int) -> Outcome:
    """Run a view on the ledger as it stood; a Move abort ran, anything else refused never did."""
    try:
        _, gas = ledger.view(call.function, list(call.arguments), list(call.type_arguments), version=version)
    except InputError as error:
        ran = isinstance(error, Aborted) and "Move abort" in error.vm_status
        return Outcome(None, False if ran else None, "invalid_input")
    return Outcome(gas, True, None)


def dense_steps(ledger: embedded.Ledger, call: Call) -> dict[int, tuple[Outcome, Outcome]]:
    """Return every version at which a call's outcome differs from that of the version before, with both outcomes."""
    steps = {}
    before = outcome_at(ledger, call, 0)
    for version in range(1, ledger.head + 1):
        after = outcome_at(ledger, call, version)
        if after != before:
            steps[version] = (before, after)
        before = after
    return steps


def true_kind(ledger: embedded.Ledger, version: int) -> str:
    """Return the kind of cause of a step at a version: the history's own mark, or `state` without one."""
    return next((mark.kind for mark in ledger.milestones if mark.version == version), "state")
