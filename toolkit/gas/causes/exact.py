"""The cause of an exact step: the transaction at its version, judged by what it wrote.

Execution is deterministic, so one of the writes made the step. Strong ones (schedule, code that the call runs,
configuration) are told before state; what every transaction writes counts only where nothing else was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit._present.text import short_addresses, visible
from toolkit.gas.causes.evidence import UNREAD
from toolkit.gas.causes.tables import Table, key_words, tables_of
from toolkit.gas.causes.words import (
    config_words,
    module_words,
    resource_words,
    role_of,
    schedule_step_words,
    transaction_words,
)
from toolkit.gas.causes.writes import Write, Written
from toolkit.gas.steps import Cause

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.gas.causes.evidence import Evidence
    from toolkit.gas.causes.packages import Dependencies
    from toolkit.gas.steps import Step
    from toolkit.move import ModuleId

__all__ = ["cause_at"]

_MOST_NAMED = 3
_MOST_READ = 30
"""Modules of one transaction that are compared with what was there before."""


class _Case(NamedTuple):
    """Everything an exact step is judged by."""

    step: Step
    evidence: Evidence
    called: ModuleId
    written: Written

    @property
    def ends(self) -> tuple[int, int]:
        """The version before the transaction and its own."""
        return self.step.version_before, self.step.version_after


def cause_at(step: Step, evidence: Evidence, called: ModuleId) -> Cause:
    """Judge the transaction at an exact step.

    Parameters
    ----------
    step : Step
    evidence : Evidence
    called : ModuleId
        The module whose function was called.

    Returns
    -------
    Cause

    Raises
    ------
    NodeError, NodeUnreachable, SchemaError
        If the transaction cannot be read.
    """
    written = Written.of(evidence.transaction(step.version_after))
    case = _Case(step, evidence, called, written)
    parts = _parts(case)
    by = transaction_words(step.version_after, written.facts)
    facts = {
        "transaction_hash": written.facts["hash"],
        "transaction_type": written.facts["type"],
        "transaction_sender": written.facts["sender"],
        "transaction_function": written.facts["function"],
    }
    if not parts:
        return Cause("unexplained", f"{by} wrote nothing that tells why", **facts)
    kind = next(iter(parts)) if len(parts) == 1 else "mixed"
    return Cause(kind, f"{by} {'; and it '.join(parts.values())}", parts=tuple(parts), **facts)


def _parts(case: _Case) -> dict[str, str]:
    """Return the words of each kind of cause that is there."""
    needed, strangers = _modules(case)
    strong = {"schedule": _schedule(case), "code": needed, "config": _config(case)}
    found = {kind: words for kind, words in strong.items() if words}
    own, others = _state(case)
    if found:
        return found | ({"state": own} if own else {})
    if own or others:
        return {"state": own or others}
    if strangers:  # by elimination: nothing else was written that could reach the call
        return {"code": strangers}
    upkeep = _words(case, case.written.upkeep, {})
    return {"state": f"{upkeep}; every transaction or block does that, and nothing else was written"} if upkeep else {}


def _schedule(case: _Case) -> str:
    """Say how the gas schedule changed; empty where none was written, or the one written is the one before."""
    tags = case.written.schedule
    return schedule_step_words(tags, case.step, case.evidence) if tags else ""


def _config(case: _Case) -> str:
    words = [config_words(tag, case.ends, case.evidence) for tag in case.written.config]
    return " and ".join(word for word in words if word)


def _modules(case: _Case) -> tuple[str, str]:
    """Say which modules changed: those that the call runs or may run, and those it declares no need of.

    The nearest to the called module are looked into; of a whole framework the rest is counted.
    """
    if not case.written.modules:
        return "", ""
    needs = _dependencies(case)
    roles = sorted((role_of(module, case.called, needs), module) for module in case.written.modules)
    told: dict[bool, list[str]] = {True: [], False: []}
    for looked, (role, module) in enumerate(roles):
        named = told[role.reached]
        if looked >= _MOST_READ or len(named) >= _MOST_NAMED:
            rest = sum(one.reached == role.reached for one, _ in roles[looked:])
            named.append(f"wrote {rest} more module{'' if rest == 1 else 's'}")
            break
        words = module_words(module, role, case.ends, case.evidence)
        if words:
            named.append(words)
    return " and ".join(told[True]), " and ".join(told[False])


def _dependencies(case: _Case) -> Dependencies | None:
    """Return what the called module stands on; None where no registry tells."""
    for version in reversed(case.ends):  # after its deletion only the version before tells
        try:
            found = case.evidence.dependencies(case.called, version)
        except UNREAD:
            continue
        if found is not None:
            return found
    return None


def _state(case: _Case) -> tuple[str, str]:
    """Name the state that was written: what is of the called module, and what is not."""
    tables: dict[str, Table] = {}
    if any(write.handle for write in case.written.state):
        tables = tables_of(case.called, case.written, case.evidence, case.step.version_after)
    state = [(write, _home(write, tables)) for write in case.written.state]
    state = [(write, home) for write, home in state if not _set_up(home, case)]
    prefix = f"{case.called}::"
    own, others = ([write for write, home in state if home.startswith(prefix) is wanted] for wanted in (True, False))
    return _words(case, own, tables), _words(case, others, tables)


def _home(write: Write, tables: dict[str, Table]) -> str:
    """Return the resource that a write belongs to, empty where it is not known."""
    if write.resource is not None:
        return write.resource
    return tables[write.handle].resource if write.handle in tables else ""


def _set_up(resource: str, case: _Case) -> bool:
    """Tell whether a resource is one that the set-up of a new module makes: that belongs to the module's code."""
    module = next((one for one in case.written.modules if resource.startswith(f"{one}::")), None)
    if module is None:
        return False
    try:
        before = case.evidence.module(module, case.step.version_before)
    except UNREAD:
        return False
    return before.told and before.digest is None


def _words(case: _Case, writes: Sequence[Write], tables: dict[str, Table]) -> str:
    """Name resources by type and table items by key, those of one type or one table together; empty without any."""
    groups: dict[tuple[bool, str], list[Write]] = {}
    for write in writes:
        groups.setdefault((write.deleted, write.resource or str(write.handle)), []).append(write)
    told = []
    for verb, deleted in (("wrote", False), ("deleted", True)):
        named = [_group_words(case, group, tables) for key, group in groups.items() if key[0] is deleted]
        if named:
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            told.append(f"{verb} {', '.join(named[:_MOST_NAMED])}{more}")
    return " and ".join(told)


def _group_words(case: _Case, group: Sequence[Write], tables: dict[str, Table]) -> str:
    first = group[0]
    if first.resource is not None:
        return resource_words(first.resource, [str(write.address) for write in group])
    if first.handle is None:
        return f"a change of a kind not known here, {visible(first.kind, 40)}"
    table = tables.get(first.handle)
    where = f"{table.resource}.{table.field}" if table else f"table {first.handle}"
    key = key_words(first, table, case.evidence, case.step.version_after)
    what = f"item {key}" if len(group) == 1 else f"{len(group)} items"
    return f"{what} of {visible(short_addresses(where), 200)}"
