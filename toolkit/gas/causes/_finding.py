"""The causes of steps. Nothing is guessed: if the necessary reads are not available, a cause is ``unknown``.

An exact step is explained by its transaction. Execution is deterministic, so something that the transaction wrote made
the step: the gas schedule, code that the call runs and configuration are stronger evidence than state, and what every
transaction writes counts only if nothing else was written. An interval is explained by what differs between its ends.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.text import listed, plural, short_addresses, visible
from toolkit.client._batch import run_in_threads
from toolkit.errors import SchemaError
from toolkit.gas._observations import MADE_BY_NODE, PRUNED, Cause
from toolkit.gas._schedules import schedule_words, uniform_ratio
from toolkit.gas._sentences import features_text, module_change_text, resource_text, transaction_text
from toolkit.gas._steps import ROUNDING_NOTE, Explanation
from toolkit.gas.causes._evidence import (
    FEATURES,
    FRAMEWORK,
    UNREAD,
    Evidence,
    Table,
    Write,
    Written,
    key_text,
    reason,
    tables_of,
)
from toolkit.move import FunctionId
from toolkit.move._ids import ModuleId, wire_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.gas._steps import Step
    from toolkit.gas.causes._evidence import Dependencies


MAX_STEPS = 500
"""Steps of a node whose causes are looked for."""

MAX_NAMED = 3
"""Things of one kind that a sentence names."""
_MAX_FIELDS = 6
MAX_COMPARED_MODULES = 30
"""Modules of one transaction that are compared with the version before; the others are said to be written."""
_UNRELATED_DISTANCE = 1_000
_STORAGE_CURVES = "0x1::storage_gas::"

_Ends = tuple[int, int]


def causes_of(
    steps: Sequence[Step],
    node: Node,
    functions: Mapping[str, str],
    *,
    advance: Callable[[int], Any] = lambda _: None,
) -> dict[Step, Explanation]:
    """Find the causes of steps.

    Parameters
    ----------
    steps : sequence of Step
        Of one node.
    node : Node
        The node that the steps were read from.
    functions : mapping of str to str
        Function that the call of each step calls, by fingerprint.
    advance : callable, optional
        Called with 1 after each step.

    Returns
    -------
    dict of Step to Explanation
        One for each step: ``unknown``, with the reason, if the node does not offer the reads. Of more than 500 steps
        the causes of the largest are looked for, and the others are ``unknown``.

    Notes
    -----
    An exact step needs one transaction, and what that wrote at its version and the version before: the gas schedule,
    feature flags, modules and package registries. An interval needs the schedule, the flags and the registries of the
    called package and its dependencies, at both ends. Nothing is read twice.
    """
    evidence = Evidence(node)

    def find(step: Step) -> Explanation:
        return _explanation(step, evidence, functions[step.fingerprint])

    chosen, others = _largest(steps)
    found = run_in_threads(chosen, find, in_flight=node.max_in_flight, advance=advance)
    causes = {chosen[place]: explanation for place, explanation in found}
    if others:
        why = f"not looked for: there are {len(steps):,} steps, and causes are found for the {len(chosen):,} largest"
        causes |= dict.fromkeys(others, Explanation(Cause.UNKNOWN, why))
    return causes


def _largest(steps: Sequence[Step]) -> tuple[list[Step], list[Step]]:
    """Return the steps whose causes are looked for, and the others."""
    if len(steps) <= MAX_STEPS:
        return list(steps), []
    # A call that starts or stops answering counts as larger than any change of gas.
    by_size = sorted(steps, key=lambda step: -math.inf if step.change is None else -abs(step.change))
    return by_size[:MAX_STEPS], by_size[MAX_STEPS:]


def _explanation(step: Step, evidence: Evidence, function: str) -> Explanation:
    about_node = _node_text(step)
    if about_node is not None:
        return Explanation(Cause.NODE, about_node)
    at = FunctionId.parse(function)
    called = ModuleId(at.address, at.module)
    try:
        if step.exact:
            return _explain_exact(_Case(step, evidence, called, Written.of(evidence.transaction(step.version_after))))
        return _explain_interval(step, evidence, called)
    except UNREAD as error:
        return Explanation(Cause.UNKNOWN, f"the necessary reads are not available: {reason(error)}")


def _node_text(step: Step) -> str | None:
    """Return what about the node makes two readings differ; None if the node is not the cause."""
    if step.build_before != step.build_after:
        builds = f"from {step.build_before or 'an unnamed one'} to {step.build_after or 'an unnamed one'}"
        return f"the node's build changed {builds} between the two readings, so they do not compare"
    if step.error_before in PRUNED:
        return (
            f"the node no longer holds version {step.version_before}: its history begins later, the ledger's does not"
        )
    refused = (MADE_BY_NODE - PRUNED) & {step.error_before, step.error_after}
    if refused:
        return f"the node itself refused one of the two readings ({', '.join(sorted(str(code) for code in refused))})"
    return None


class _Case(NamedTuple):
    """An exact step with everything that its cause is derived from; `called` is the module of the called function."""

    step: Step
    evidence: Evidence
    called: ModuleId
    written: Written

    @property
    def ends(self) -> _Ends:
        """The version before the transaction and its own."""
        return self.step.version_before, self.step.version_after


def _explain_exact(case: _Case) -> Explanation:
    """Explain an exact step by what its transaction wrote."""
    written = case.written
    parts = _parts(case)
    by = transaction_text(case.step.version_after, written.facts)
    facts = {
        "transaction_hash": written.facts["hash"],
        "transaction_type": written.facts["type"],
        "transaction_sender": written.facts["sender"],
        "transaction_function": written.facts["function"],
        "time": written.time,
    }
    if not parts:
        return Explanation(Cause.UNEXPLAINED, f"{by} wrote nothing that explains the step", **facts)
    cause = next(iter(parts)) if len(parts) == 1 else Cause.MIXED
    return Explanation(cause, f"{by} {'; and it '.join(parts.values())}", parts=tuple(parts), **facts)


def _parts(case: _Case) -> dict[Cause, str]:
    """Return the evidence for each cause that there is evidence for."""
    needed, unrelated = _modules_text(case)
    strong = {
        Cause.SCHEDULE: _schedule_text(case),
        Cause.CODE: needed,
        Cause.CONFIG: config_text(case.written.config, case.ends, case.evidence),
    }
    found = {cause: text for cause, text in strong.items() if text}
    own, others = _state_texts(case)
    if found:
        return found | ({Cause.STATE: own} if own else {})
    if own or others:
        return {Cause.STATE: own or others}
    if unrelated:  # by elimination: nothing else was written that could affect the call
        return {Cause.CODE: unrelated}
    upkeep = _writes_text(case, case.written.upkeep, {})
    always = f"{upkeep}; every transaction or block does that, and nothing else was written"
    return {Cause.STATE: always} if upkeep else {}


def _schedule_text(case: _Case) -> str:
    """Return how the written gas schedule differs from the one before, with a note if gas was rounded."""
    text = schedule_text(case.written.schedule, case.ends, case.evidence)
    return text and f"{text}{_rounding_note(case)}"


def _rounding_note(case: _Case) -> str:
    """Explain why a uniform change of prices did not change the gas of this call by the same ratio."""
    try:
        ratio = uniform_ratio(*(case.evidence.schedule(version) for version in case.ends))
    except UNREAD:
        return ""
    before, after = case.step.gas_before, case.step.gas_after
    if ratio is None or not before or not after:
        return ""
    return "" if before * ratio == after else ROUNDING_NOTE


def schedule_text(tags: Sequence[str], ends: _Ends, evidence: Evidence) -> str:
    """Return how the gas schedule differs between two versions, in words.

    Parameters
    ----------
    tags : sequence of str
        The resources of the gas schedule that may differ.
    ends : tuple of (int, int)
    evidence : Evidence

    Returns
    -------
    str
        Empty if they are the same.
    """
    curves = [tag for tag in tags if tag.startswith(_STORAGE_CURVES)]
    texts = [text for tag in curves if (text := _resource_change_text(tag, ends, evidence))]
    if len(curves) < len(tags):
        try:
            before, after = (evidence.schedule(version) for version in ends)
        except UNREAD as error:
            texts.append(f"wrote the gas schedule (what changed in it is not known: {reason(error)})")
        else:
            if before != after:
                texts.append(f"changed the gas schedule: {schedule_words(before, after)}")
    return " and ".join(texts)


def config_text(tags: Sequence[str], ends: _Ends, evidence: Evidence) -> str:
    """Return how these resources of the configuration differ between two versions, in words; empty if they do not."""
    texts = [_resource_change_text(tag, ends, evidence) for tag in tags]
    return " and ".join(text for text in texts if text)


def _resource_change_text(tag: str, ends: _Ends, evidence: Evidence) -> str:
    """Return what changed in a resource of the on-chain configuration; empty if nothing did."""
    short = short_addresses(tag)
    try:
        before, after = (evidence.resource(FRAMEWORK, tag, version) for version in ends)
        if tag == FEATURES and after is not None:
            return features_text(*(evidence.features(version) for version in ends))
    except UNREAD as error:
        return f"wrote the configuration {short} (what changed in it is not known: {reason(error)})"
    if before == after and after is not None:
        return ""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"changed the configuration {short}"
    fields = [visible(name, 80) for name in {**before, **after} if before.get(name) != after.get(name)]
    return f"changed the configuration {short} ({listed(fields, _MAX_FIELDS)})"


class _Role(NamedTuple):
    """Relation of a module to the called one; roles sort by distance, the called module has 0."""

    distance: int
    text: str
    reached: bool = True  # False if the called module's package, and all that it needs, do not name the module


def _role_of(module: ModuleId, called: ModuleId, needs: Dependencies | None) -> _Role:
    """Return the relation of a module to the called one, as declared by the packages."""
    name, caller = module.wire, called.wire
    if module == called:
        return _Role(0, f"the called module {name}")
    if needs is None:
        return _Role(_UNRELATED_DISTANCE, f"module {name} (no registry states whether {caller} depends on it)")
    distance = needs.distance(module)
    if distance == 0:
        return _Role(1, f"module {name}, of the called module's own package {visible(needs.own.name, 40)}")
    if distance is not None:
        return _Role(1 + distance, f"module {name}, a dependency of the called module {caller}")
    if not needs.complete:
        return _Role(_UNRELATED_DISTANCE, f"module {name} (not all dependencies of {caller} could be read)")
    text = f"module {name}, which {caller} does not declare as a dependency, and nothing else that explains the step"
    return _Role(_UNRELATED_DISTANCE, text, reached=False)


def _modules_text(case: _Case) -> tuple[str, str]:
    """Return which modules changed: those that the call runs or may run, and those that it does not depend on.

    The modules nearest to the called one are compared; the others, of a whole framework for example, are counted.
    """
    if not case.written.modules:
        return "", ""
    needs = _dependencies(case)
    roles = sorted((_role_of(module, case.called, needs), module) for module in case.written.modules)
    texts: dict[bool, list[str]] = {True: [], False: []}
    for compared, (role, module) in enumerate(roles):
        named = texts[role.reached]
        if compared >= MAX_COMPARED_MODULES or len(named) >= MAX_NAMED:
            rest = sum(one.reached == role.reached for one, _ in roles[compared:])
            named.append(f"wrote {plural(rest, 'more module')}")
            break
        text = module_text(module, role.text, case.ends, case.evidence)
        if text:
            named.append(text)
    return " and ".join(texts[True]), " and ".join(texts[False])


def module_text(module: ModuleId, what: str, ends: _Ends, evidence: Evidence) -> str:
    """Return what happened to a module between two versions, in words; empty if it is the same."""
    try:
        before, after = (evidence.module(module, version) for version in ends)
    except UNREAD as error:
        return f"wrote {what} (what changed in it is not known: {reason(error)})"
    if not (before.answered and after.answered):
        return f"wrote {what} (the node does not offer modules, so what changed in it is not known)"
    return module_change_text(before, after, what)


def _dependencies(case: _Case) -> Dependencies | None:
    """Return the packages that the called module needs; None if no registry has them."""
    for version in reversed(case.ends):  # a deleted package is in the registry of the version before only
        try:
            found = case.evidence.dependencies(case.called, version)
        except UNREAD:
            continue
        if found is not None:
            return found
    return None


def _state_texts(case: _Case) -> tuple[str, str]:
    """Return which state was written: that of the called module, and other state."""
    tables: dict[str, Table] = {}
    if any(write.handle for write in case.written.state):
        tables = tables_of(case.called, case.written, case.evidence, case.step.version_after)
    state = [(write, _resource_of(write, tables)) for write in case.written.state]
    state = [(write, resource) for write, resource in state if not _is_setup(resource, case)]
    prefix = f"{case.called}::"
    own, others = (
        [write for write, resource in state if resource.startswith(prefix) is wanted] for wanted in (True, False)
    )
    return _writes_text(case, own, tables), _writes_text(case, others, tables)


def _resource_of(write: Write, tables: dict[str, Table]) -> str:
    """Return the resource type that a write belongs to; empty if it is not known."""
    if write.resource is not None:
        return write.resource
    return tables[write.handle].resource if write.handle in tables else ""


def _is_setup(resource: str, case: _Case) -> bool:
    """Return whether a resource is written by the initialization of a new module: that belongs to its code."""
    module = next((one for one in case.written.modules if resource.startswith(f"{one}::")), None)
    if module is None:
        return False
    try:
        before = case.evidence.module(module, case.step.version_before)
    except UNREAD:
        return False
    return before.answered and before.digest is None


def _writes_text(case: _Case, writes: Sequence[Write], tables: dict[str, Table]) -> str:
    """Return resources by type and table items by key, grouped by type or table; empty without writes."""
    groups: dict[tuple[bool, str], list[Write]] = {}
    for write in writes:
        groups.setdefault((write.deleted, write.resource or str(write.handle)), []).append(write)
    texts = []
    for verb, deleted in (("wrote", False), ("deleted", True)):
        named = [_group_text(case, group, tables) for key, group in groups.items() if key[0] is deleted]
        if named:
            texts.append(f"{verb} {listed(named, MAX_NAMED)}")
    return " and ".join(texts)


def _group_text(case: _Case, group: Sequence[Write], tables: dict[str, Table]) -> str:
    first = group[0]
    if first.resource is not None:
        return resource_text(first.resource, [str(write.address) for write in group])
    if first.handle is None:
        return f"a change of an unknown kind, {visible(first.kind, 40)}"
    table = tables.get(first.handle)
    where = f"{table.resource}.{table.field}" if table else f"table {first.handle}"
    key = key_text(first, table, case.evidence, case.step.version_after)
    what = f"item {key}" if len(group) == 1 else f"{len(group)} items"
    return f"{what} of {visible(short_addresses(where), 200)}"


_COMPARED = {
    Cause.SCHEDULE: "the gas schedule",
    Cause.CODE: "modules and packages",
    Cause.CONFIG: "the feature flags",
}


def _explain_interval(step: Step, evidence: Evidence, called: ModuleId) -> Explanation:
    """Explain an interval by the differences between its ends in schedule, feature flags and packages.

    The explanation does not name a version. The cause is never ``state``, since changes of state are not compared, and
    not ``schedule`` if parameters were only added or removed. It is ``unknown`` if something could not be read and
    nothing that could be read differs.
    """
    ends = (step.version_before, step.version_after)
    comparisons: dict[Cause, Callable[[], str]] = {
        Cause.SCHEDULE: lambda: _price_change_text(ends, evidence),
        Cause.CODE: lambda: _code_text(ends, evidence, called),
        Cause.CONFIG: lambda: features_text(*(evidence.features(version) for version in ends)),
    }
    found: dict[Cause, str] = {}
    unread: list[str] = []
    for cause, compare in comparisons.items():
        try:
            text = compare()
        except UNREAD as error:
            unread.append(f"{_COMPARED[cause]}: {reason(error)}")
        else:
            if text:
                found[cause] = text
    missing = f"not available: {'; '.join(unread)}" if unread else ""
    if found:
        cause = next(iter(found)) if len(found) == 1 else Cause.MIXED
        caveat = f" ({missing})" if missing else ""
        text = f"meanwhile the ledger {' and '.join(found.values())}{caveat}"
        return Explanation(cause, text, parts=tuple(found))
    if missing:
        return Explanation(Cause.UNKNOWN, f"nothing that could be read differs between the two; {missing}")
    before, after = (evidence.schedule(version) for version in ends)
    schedule = "the gas schedule"
    if before != after:
        schedule = f"a price of the gas schedule ({schedule_words(before, after)})"
    return Explanation(
        Cause.UNEXPLAINED,
        f"neither {schedule}, nor the feature flags, nor {called.wire} or a package it needs differs between the two",
    )


def _price_change_text(ends: _Ends, evidence: Evidence) -> str:
    """Describe the change of the schedule, or return empty text if no price changed.

    New parameters alone do not change the gas of existing calls.
    """
    before, after = (evidence.schedule(version) for version in ends)
    common = before.entries.keys() & after.entries.keys()
    moved = any(before.entries[name] != after.entries[name] for name in common)
    return f"changed its gas schedule: {schedule_words(before, after)}" if moved else ""


def _code_text(ends: _Ends, evidence: Evidence, called: ModuleId) -> str:
    """Return what happened to the called module, and to the packages it needs by their upgrade numbers."""
    before, after = (evidence.module(called, version) for version in ends)
    known = before.answered and after.answered
    changed = module_change_text(before, after, f"the called module {called.wire}") if known else ""
    texts = [changed] if changed else []
    needed = [found for version in ends if (found := evidence.dependencies(called, version)) is not None]
    if not needed and not texts:
        raise SchemaError(f"no package registry names {called.wire}, so its dependencies are not known")
    own = {(one.own.address, one.own.name) for one in needed}
    packages = {(package.address, package.name) for one in needed for package in one.packages}
    for address, name in sorted(packages - own if texts else packages):
        numbers = [_upgrade_number(address, name, version, evidence) for version in ends]
        if numbers[0] != numbers[1]:
            whose = "the called module's own package" if (address, name) in own else "a package it needs,"
            texts.append(f"{_upgrade_text(*numbers)} {whose} {visible(name, 40)} of {wire_address(address)}")
    return " and ".join(texts)


def _upgrade_number(address: str, name: str, version: int, evidence: Evidence) -> int | None:
    """Return how often a package was upgraded until a version; None if it does not exist there."""
    return next((one.upgrade_number for one in evidence.packages(address, version) if one.name == name), None)


def _upgrade_text(before: int | None, after: int | None) -> str:
    if before is None:
        return "published"
    return "deleted" if after is None else f"upgraded {plural(after - before, 'time')}"
