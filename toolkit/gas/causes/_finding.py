"""The causes of steps. Nothing is guessed: if the necessary reads are not available, a cause is ``unknown``.

An exact step is explained by its transaction. Execution is deterministic, so something that the transaction wrote
caused the step. The gas schedule, code that the call runs and configuration are stronger evidence than state, and what
every transaction writes counts only if nothing else was written. An interval is explained by what differs between its
ends.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.client._threads import run_in_threads
from toolkit.errors import InputError, SchemaError
from toolkit.gas import _findings as findings
from toolkit.gas._observations import MADE_BY_NODE, PRUNED, Cause
from toolkit.gas._schedules import changed_ratios
from toolkit.gas.causes import _evidence as reads
from toolkit.gas.causes import _facts as facts
from toolkit.gas.causes._evidence import Evidence
from toolkit.move import FunctionId

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.gas._calls import Call
    from toolkit.gas._steps import Step
    from toolkit.move._ids import ModuleId


# Steps of a node whose causes are looked for: each takes about five reads, and nobody reads more explanations.
MAX_STEPS = 500
# Steps at changed code whose call is executed: each end takes dozens of reads, and runs in Python.
MAX_EXECUTED_STEPS = 20
# Modules that are named; of a framework that is published whole there are hundreds.
MAX_NAMED = 3
# Modules of one transaction that are compared with the version before, at two reads each; the others are counted.
MAX_COMPARED_MODULES = 30
_STORAGE_CURVES = "0x1::storage_gas::"

_Ends = tuple[int, int]


def causes_of(
    steps: Sequence[Step], node: Node, calls: Mapping[str, Call], *, advance: Callable[[int], Any] = lambda _: None
) -> dict[Step, findings.Explanation]:
    """Find the causes of steps.

    Parameters
    ----------
    steps : sequence of Step
        Steps that were read from one node.
    node : Node
        The node that they were read from.
    calls : mapping of str to Call
        The calls of the steps, by fingerprint.
    advance : callable, optional
        Called with 1 after each step.

    Returns
    -------
    dict of Step to Explanation
        One explanation per step. Its cause is ``unknown``, with a reason, if the node does not offer the necessary
        data. Of more than 500 steps, only the 500 largest are explained; the others are ``unknown``.

    Notes
    -----
    An exact step requires its transaction, and what the transaction wrote, at its version and the version before: the
    gas schedule, feature flags, modules and package registries. An interval requires the schedule, the flags and the
    registries of the called package and its dependencies, at both ends. Nothing is read twice.

    Of the steps at which modules were written, the calls of the 20 largest are executed at both ends, one after the
    other in the calling thread. That reads the bytecode and state that a call uses, dozens of reads an end, and ends at
    the larger gas of the two. Of the others, it is not known which functions run.
    """
    evidence = Evidence(node)
    # A call that starts or stops answering counts as larger than any change of gas.
    largest = sorted(steps, key=lambda step: -math.inf if step.change is None else -abs(step.change))
    chosen = largest[:MAX_STEPS]
    why = f"not searched for: only the {MAX_STEPS:,} largest of {len(steps):,} steps are explained"
    causes = dict.fromkeys(largest[MAX_STEPS:], findings.Explanation(Cause.UNKNOWN, why))
    found = run_in_threads(
        chosen, lambda step: _explanation(step, evidence, calls[step.fingerprint]), in_flight=node.max_in_flight
    )
    waiting: list[int] = []
    for place, explanation in found:
        causes[chosen[place]] = explanation
        if _writes_modules(chosen[place], evidence, calls[chosen[place].fingerprint]):
            waiting.append(place)
        else:
            advance(1)
    for count, step in enumerate(chosen[place] for place in sorted(waiting)):
        call = calls[step.fingerprint]
        if count < MAX_EXECUTED_STEPS and (ran := _functions_run(step, evidence, call)) is not None:
            causes[step] = _explanation(step, evidence, call, ran)
        advance(1)
    return causes


def _writes_modules(step: Step, evidence: Evidence, call: Call) -> bool:
    """Return whether modules that the call may run were written between the ends of a step that was explained."""
    if _of_node(step) is not None:
        return False
    with suppress(*reads.UNREAD):
        if step.exact:
            return bool(reads.Written.of(evidence.transaction(step.version_after)).modules)
        return _digests_differ(step, evidence, FunctionId.parse(call.function).module_id)
    return False


def _digests_differ(step: Step, evidence: Evidence, called: ModuleId) -> bool:
    before, after = (evidence.module(called, version) for version in step.outcomes)
    return before.answered and after.answered and before.digest != after.digest


def _explanation(step: Step, evidence: Evidence, call: Call, ran: frozenset[str] | None = None) -> findings.Explanation:
    """Explain a step; `ran` are the functions that its call runs, if they are known."""
    about_node = _of_node(step)
    if about_node is not None:
        return findings.Explanation(Cause.NODE, about_node)
    try:
        if not step.exact:
            return _explain_interval(step, evidence, call, ran)
        case = _Case(step, evidence, call, reads.Written.of(evidence.transaction(step.version_after)), ran)
        found = _parts(case)
    except reads.UNREAD as error:
        return findings.Explanation(Cause.UNKNOWN, f"required data could not be read: {reads.reason(error)}")
    return findings.Explanation(_cause_of(found), found=found, transaction=case.written.by)


def _of_node(step: Step) -> str | None:
    """Return why the node, not the ledger, makes two reads differ; None if the node is not the cause."""
    if step.build_before != step.build_after:
        builds = f"from {step.build_before or 'an unnamed build'} to {step.build_after or 'an unnamed build'}"
        return f"the build of the node changed {builds} between the two reads, so they cannot be compared"
    if step.error_before in PRUNED:
        return f"version {step.version_before:,} has been pruned from this node"
    refused = (MADE_BY_NODE - PRUNED) & {step.error_before, step.error_after}
    codes = ", ".join(sorted(map(str, refused)))
    return f"the node itself rejected one of the two reads ({codes})" if refused else None


def _cause_of(found: Mapping[Cause, facts.Facts]) -> Cause:
    if not found:
        return Cause.UNEXPLAINED
    return next(iter(found)) if len(found) == 1 else Cause.MIXED


# exact steps ----------------------------------------------------------------------------------------------------------


class _Case(NamedTuple):
    """An exact step with everything that its cause is derived from; `ran` as in `_explanation`."""

    step: Step
    evidence: Evidence
    call: Call
    written: reads.Written
    ran: frozenset[str] | None = None

    @property
    def called(self) -> ModuleId:
        """The module of the called function."""
        return FunctionId.parse(self.call.function).module_id

    @property
    def ends(self) -> _Ends:
        """The version before the transaction, and the version of the transaction."""
        return self.step.version_before, self.step.version_after


def _parts(case: _Case) -> dict[Cause, facts.Facts]:
    """Return what the transaction of an exact step wrote, grouped by the cause for which it is evidence."""
    needed, unrelated = _modules(case)
    strong = {
        Cause.SCHEDULE: schedule_facts(case.written.schedule, case.ends, case.evidence, case.step),
        Cause.CODE: needed,
        Cause.CONFIG: config_facts(case.written.config, case.ends, case.evidence),
    }
    found = {cause: written for cause, written in strong.items() if written}
    own, others = _state(case)
    if found:
        return found | ({Cause.STATE: own} if own else {})
    if own or others:
        return {Cause.STATE: own or others}
    if unrelated:  # by elimination: nothing else was written that could affect the call
        return {Cause.CODE: unrelated}
    upkeep = _writes(case, case.written.upkeep, {}, upkeep=True)
    return {Cause.STATE: upkeep} if upkeep else {}


def schedule_facts(tags: Sequence[str], ends: _Ends, evidence: Evidence, step: Step | None = None) -> facts.Facts:
    """Return how the gas schedule differs between two versions; `tags` are the schedule resources that may differ.

    If a step is given, the facts include whether its gas changed by the ratio of the prices.
    """
    curves = [tag for tag in tags if tag.startswith(_STORAGE_CURVES)]
    found = config_facts(curves, ends, evidence)
    if len(curves) == len(tags):
        return found
    try:
        before, after = (evidence.schedule(version) for version in ends)
    except reads.UNREAD as error:
        return (*found, facts.NotComparable(facts.SCHEDULE, reads.reason(error)))
    if before == after:
        return found
    ratios = set(changed_ratios(before, after).values())
    ratio = ratios.pop() if len(ratios) == 1 else None
    gas = (step.gas_before, step.gas_after) if step else (None, None)
    rounded = bool(ratio is not None and gas[0] and gas[1]) and (gas[0] or 0) * (ratio or 0) != gas[1]
    return (*found, facts.ScheduleChange(before, after, rounded))


def config_facts(tags: Sequence[str], ends: _Ends, evidence: Evidence) -> facts.Facts:
    """Return how the given configuration resources differ between two versions."""
    return tuple(fact for tag in tags if (fact := _resource_change(tag, ends, evidence)) is not None)


def _resource_change(tag: str, ends: _Ends, evidence: Evidence) -> facts.Fact | None:
    try:
        before, after = (evidence.resource(reads.FRAMEWORK, tag, version) for version in ends)
        if tag == facts.FEATURES and after is not None:
            return _flags_change(ends, evidence)
    except reads.UNREAD as error:
        return facts.NotComparable(tag, reads.reason(error))
    if before == after and after is not None:
        return None
    if not isinstance(before, dict) or not isinstance(after, dict):
        return facts.ResourceChange(tag)
    differing = tuple(name for name in {**before, **after} if before.get(name) != after.get(name))
    return facts.ResourceChange(tag, differing)


def _flags_change(ends: _Ends, evidence: Evidence) -> facts.FlagsChange | None:
    before, after = (evidence.features(version) for version in ends)
    return facts.FlagsChange(after - before, before - after) if before != after else None


# Farther than any dependency: a module that the called one is not known to need.
_FAR = 1_000


def _role(
    module: ModuleId, called: ModuleId, needs: reads.Dependencies | None, *, runs: bool
) -> tuple[int, facts.RelatedModule]:
    """Return the distance of a module from the called module, counted in dependencies, and its relation to it.

    Code also runs without a declared dependency: of function values, and of assets that dispatch to it.
    """
    if module == called:
        return 0, facts.RelatedModule(module, facts.Role.CALLED)
    distance = None if needs is None else needs.distance(module)
    if distance is None and runs:
        return _FAR, facts.RelatedModule(module, facts.Role.RUN)
    if needs is None:
        return _FAR, facts.RelatedModule(module, facts.Role.NO_REGISTRY, called.wire)
    if distance is None:
        role = facts.Role.UNRELATED if needs.complete else facts.Role.NOT_ALL_READ
        return _FAR, facts.RelatedModule(module, role, called.wire)
    if distance == 0:
        return 1, facts.RelatedModule(module, facts.Role.OWN, needs.own.name)
    return 1 + distance, facts.RelatedModule(module, facts.Role.NEEDED, called.wire)


def _modules(case: _Case) -> tuple[facts.Facts, facts.Facts]:
    """Return the changed modules that the call runs or may run, and those that it is not known to reach.

    The modules that the call runs are compared, or those nearest to the called one if it is not known to run any; the
    others, such as those of a whole framework, are counted.
    """
    if not case.written.modules:
        return (), ()
    needs = _dependencies(case)
    running = {FunctionId.parse(function).module_id for function in case.ran or ()}
    near = sorted(
        (module not in running, *_role(module, case.called, needs, runs=module in running))
        for module in case.written.modules
    )
    limit = min(MAX_NAMED, sum(not idle for idle, *_ in near)) or MAX_NAMED
    reached = [one.role is not facts.Role.UNRELATED for *_, one in near]
    sides: dict[bool, list[facts.Fact]] = {True: [], False: []}
    for place, (*_, module) in enumerate(near):
        mine = sides[reached[place]]
        if place >= MAX_COMPARED_MODULES or len(mine) >= limit:
            mine.append(facts.MoreModules(reached[place:].count(reached[place])))
            break
        fact = module_fact(module, case.ends, case.evidence, case.ran)
        mine += [fact] if fact else []
    return tuple(sides[True]), tuple(sides[False])


def _functions_run(step: Step, evidence: Evidence, call: Call) -> frozenset[str] | None:
    """Return the functions that a call runs at the ends of a step, by executing it at both.

    None if the code cannot be executed, or not to the outcomes that the node reported: success, and gas except of views
    that fail, for which nodes report none. Of a call that may not have run, the outcome is not known.
    """
    # Another outcome proves nothing, so it need not be waited for.
    limit = 1 + max(step.gas_before or 0, step.gas_after or 0)
    name, known = FunctionId.parse(call.function), {}
    with suppress(*reads.UNREAD):
        known = {version: evidence.module(name.module_id, version) for version in step.outcomes}
        if not evidence.has_python_contracts and not any(evidence.code(name.module_id, version) for version in known):
            return None
    found: set[str] = set()
    for version, module in known.items():
        if module.is_absent or (module.abi and name.name not in {one.name for one in module.abi.exposed_functions}):
            continue  # there is nothing to run
        gas, success, _ = step.outcomes[version] or (None, None, None)
        ran = None if success is None else evidence.execute(call, version, max_gas=limit)
        if ran is None or ran.success != success or (ran.gas_used != gas and (success or gas is not None)):
            return None
        found |= ran.functions
    return frozenset(found) or None


def module_fact(
    module: facts.RelatedModule, ends: _Ends, evidence: Evidence, ran: frozenset[str] | None = None
) -> facts.Fact | None:
    """Return what happened to a module between two versions; None if it did not change.

    `ran` are the functions that a call runs, if they are known.
    """
    try:
        before, after = (evidence.module(module.id, version) for version in ends)
    except reads.UNREAD as error:
        return facts.NotComparable(module, reads.reason(error))
    if not (before.answered and after.answered):
        return facts.NotComparable(module, "")
    if before.digest == after.digest:
        return None
    code = None
    with suppress(*reads.UNREAD, InputError):
        code = evidence.code_changes(module.id, *ends)
    mine = None
    if ran is not None:
        mine = frozenset(one.name for one in map(FunctionId.parse, ran) if one.module_id == module.id)
    change = facts.ModuleChange(module, before, after, code, mine)
    # A Python method may also differ by what it uses from outside, so that the call runs no changed one proves nothing.
    return replace(change, ran=None) if evidence.has_python_contracts and not change.ran_changes else change


def _dependencies(case: _Case) -> reads.Dependencies | None:
    """Return the packages that the called module needs; None if no registry has them."""
    for version in reversed(case.ends):  # a deleted package is in the registry of the version before only
        with suppress(*reads.UNREAD):
            if found := case.evidence.dependencies(case.called, version):
                return found
    return None


def _state(case: _Case) -> tuple[facts.Facts, facts.Facts]:
    """Return the written state of the called module, and all other written state."""
    tables: dict[str, reads.TypedTable] = {}
    if any(write.handle for write in case.written.state):
        tables = reads.tables_of(case.called, case.written, case.evidence, case.step.version_after)
    sides: dict[bool, list[reads.StateWrite]] = {True: [], False: []}
    for write in case.written.state:
        resource = write.resource or (tables[write.handle].resource if write.handle in tables else "")
        if not _is_setup(resource, case):
            sides[resource.startswith(f"{case.called}::")].append(write)
    return _writes(case, sides[True], tables), _writes(case, sides[False], tables)


def _is_setup(resource: str, case: _Case) -> bool:
    """Return whether a resource was written by the initialization of a new module, and so belongs to its code."""
    module = next((one for one in case.written.modules if resource.startswith(f"{one}::")), None)
    if module is not None:
        with suppress(*reads.UNREAD):
            before = case.evidence.module(module, case.step.version_before)
            return before.answered and before.digest is None
    return False


def _writes(
    case: _Case, writes: Sequence[reads.StateWrite], tables: Mapping[str, reads.TypedTable], *, upkeep: bool = False
) -> facts.Facts:
    """Return resources by type and table items by table, each group once."""
    groups: dict[tuple[bool, str], list[reads.StateWrite]] = {}
    for write in writes:
        groups.setdefault((write.deleted, write.resource or str(write.handle)), []).append(write)
    written = tuple(_written(case, group, tables) for group in groups.values())
    return (facts.StateChange(written, upkeep),) if written else ()


def _written(
    case: _Case, group: Sequence[reads.StateWrite], tables: Mapping[str, reads.TypedTable]
) -> facts.WrittenState:
    first = group[0]
    if first.resource is not None:
        addresses = tuple(str(write.address) for write in group)
        return facts.WrittenState(first.deleted, first.resource, addresses=addresses)
    if first.handle is None:
        return facts.WrittenState(first.deleted, key=first.kind)
    table = tables.get(first.handle)
    where = f"{table.resource}.{table.field}" if table else f"table {first.handle}"
    key = reads.key_text(first, table, case.evidence, case.step.version_after)
    return facts.WrittenState(first.deleted, table=where, key=key, count=len(group))


# intervals ------------------------------------------------------------------------------------------------------------


def _explain_interval(step: Step, evidence: Evidence, call: Call, ran: frozenset[str] | None) -> findings.Explanation:
    """Explain an interval by the differences between its ends in schedule, feature flags and packages.

    The explanation does not name a version. The cause is never ``state``, since state is not compared, and
    not ``schedule`` if parameters were only added or removed. It is ``unknown`` if something could not be read and
    nothing that could be read differs.
    """
    ends, called = (step.version_before, step.version_after), FunctionId.parse(call.function).module_id
    comparisons: list[tuple[Cause, str, Callable[[], facts.Facts]]] = [
        (Cause.SCHEDULE, "the gas schedule", lambda: _prices(ends, evidence)),
        (Cause.CODE, "modules and packages", lambda: _code(step, evidence, called, ran)),
        (Cause.CONFIG, "the feature flags", lambda: tuple(filter(None, [_flags_change(ends, evidence)]))),
    ]
    found: dict[Cause, facts.Facts] = {}
    unread: dict[str, str] = {}
    for cause, what, compare in comparisons:
        try:
            if differing := compare():
                found[cause] = differing
        except reads.UNREAD as error:
            unread[what] = reads.reason(error)
    cause = Cause.UNKNOWN if unread and not found else _cause_of(found)
    # New parameters alone do not change the gas of existing calls; that is said if nothing else differs either.
    schedule = None if found or unread else _between(ends, evidence)
    return findings.Explanation(cause, found=found, unread=unread, called=called.wire, schedule=schedule)


def _prices(ends: _Ends, evidence: Evidence) -> facts.Facts:
    """Return how the prices differ. Parameters that only one of the schedules has do not change what calls cost."""
    change = _between(ends, evidence)
    return (change,) if change and changed_ratios(change.before, change.after) else ()


def _between(ends: _Ends, evidence: Evidence) -> facts.ScheduleChange | None:
    before, after = (evidence.schedule(version) for version in ends)
    return facts.ScheduleChange(before, after, ends=True) if before != after else None


def _code(step: Step, evidence: Evidence, called: ModuleId, ran: frozenset[str] | None) -> facts.Facts:
    """Return what happened to the called module and, judging by upgrade numbers, to the packages that it needs."""
    ends = step.version_before, step.version_after
    changes: list[facts.Fact] = []
    if _digests_differ(step, evidence, called):
        changes += filter(None, [module_fact(facts.RelatedModule(called, facts.Role.CALLED), ends, evidence, ran)])
    needed = [found for version in ends if (found := evidence.dependencies(called, version)) is not None]
    if not needed and not changes:
        raise SchemaError(f"no package registry names {called.wire}, so its dependencies are not known")
    own = {(one.own.address, one.own.name) for one in needed}
    packages = {(package.address, package.name) for one in needed for package in one.packages}
    for address, name in sorted(packages - own if changes else packages):
        numbers = ({one.name: one.upgrade_number for one in evidence.packages(address, version)} for version in ends)
        before, after = (known.get(name) for known in numbers)
        if before != after:
            changes.append(facts.PackageUpgrade(address, name, before, after, (address, name) in own))
    return tuple(changes)
