"""Sentences about causes: the evidence for steps, the changes in timelines, and how gas schedules differ."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, plural, short_addresses, times, visible
from toolkit.frames._columns import frame_of_rows
from toolkit.frames._schema import STEPS
from toolkit.gas import _findings as findings
from toolkit.gas._observations import Cause
from toolkit.gas._schedules import changed_ratios
from toolkit.gas._steps import ROUNDING_NOTE, Step
from toolkit.gas.causes._evidence import SCHEDULE
from toolkit.move._ids import wire_address
from toolkit.wire._gas import feature_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from fractions import Fraction

    import pandas as pd

    from toolkit.move import ModuleAbi
    from toolkit.wire import GasSchedule


# Things of one kind that a sentence names; more make it longer than anybody reads.
_MAX_NAMED = 3
_MAX_LISTED = 6
_MAX_NAME = 80  # characters, so that a sentence with several names is still read at a glance
# A ratio is stated if more than this share of the changed parameters have it in common.
_MAJORITY = 0.5


def evidence_text(evidence: findings.Evidence) -> str:
    """Return the evidence for a step's cause as text."""
    if isinstance(evidence, str):
        return evidence
    if isinstance(evidence, findings.BetweenVersions):
        return _between_text(evidence)
    what = "; and it ".join(" and ".join(map(fact_text, facts)) for facts in evidence.found.values())
    return f"{transaction_text(evidence.transaction)} {what or 'wrote nothing that explains the step'}"


_COMPARED = {Cause.SCHEDULE: "the gas schedule", Cause.CODE: "modules and packages", Cause.CONFIG: "the feature flags"}


def _between_text(evidence: findings.BetweenVersions) -> str:
    unread = "; ".join(f"{_COMPARED[cause]}: {why}" for cause, why in evidence.unread.items())
    missing = f"could not be read: {unread}" if unread else ""
    if evidence.found:
        what = " and ".join(fact_text(fact) for facts in evidence.found.values() for fact in facts)
        return f"in between, the ledger {what}{f' ({missing})' if missing else ''}"
    if missing:
        return f"everything that could be read is the same at both versions; {missing}"
    change = evidence.schedule
    words = schedule_words(change.before, change.after) if change else ""
    schedule = f"the prices of the gas schedule ({words})" if change else "the gas schedule"
    code = f"{evidence.called} and the packages it needs"
    return f"{schedule}, the feature flags, {code} are the same at both versions"


def fact_text(fact: findings.Fact) -> str:  # noqa: PLR0911 - one return for each kind of evidence
    """Return what happened, as a clause that begins with its verb."""
    match fact:
        case findings.ScheduleChange(before, after, rounded, ends):
            note = ROUNDING_NOTE if rounded else ""
            return f"changed {'its' if ends else 'the'} gas schedule: {schedule_words(before, after)}{note}"
        case findings.FlagsChange(on, off):
            return " and ".join(_flags_text(word, flags) for word, flags in (("on", on), ("off", off)) if flags)
        case findings.ResourceChange(tag, fields):
            named = f" ({_names(fields)})" if fields else ""
            return f"changed the configuration {short_addresses(tag)}{named}"
        case findings.ModuleChange():
            return _module_text(fact)
        case findings.MoreModules(count):
            return f"wrote {plural(count, 'more module')}"
        case findings.PackageUpgrade():
            return _upgrade_text(fact)
        case findings.NotComparable(findings.RelatedModule() as module, why):
            because = f"what changed is not known: {why or 'the node does not offer modules'}"
            return f"wrote {_role_text(module)} ({because})"
        case findings.NotComparable(tag, why):
            what = _COMPARED[Cause.SCHEDULE] if tag == SCHEDULE else f"the configuration {short_addresses(str(tag))}"
            return f"wrote {what} (what changed is not known: {why})"
    return _state_text(fact)


def facts_text(facts: Iterable[findings.Fact] | str) -> str:
    """Describe a change in a timeline; in a stored timeline, the description is text already."""
    return facts if isinstance(facts, str) else " and ".join(map(fact_text, facts))


def transaction_text(by: findings.Transaction) -> str:
    """Return the version, called function and sender of a transaction as text."""
    payload = str(by.payload_type or "").removesuffix("_payload").replace("_", " ")
    what = by.function or (f"a {payload}" if payload else by.type)
    who = f" by {by.sender}" if by.sender else ""
    return visible(short_addresses(f"transaction {by.version} ({what}{who})"), 300)


def _flags_text(word: str, flags: frozenset[int]) -> str:
    names = [f"{number} {feature_name(number) or '(unknown flag)'}" for number in sorted(flags)]
    return f"switched {word} feature flag{'s' if len(names) > 1 else ''} {_names(names)}"


def _role_text(module: findings.RelatedModule) -> str:
    return module.role.value.format(module=module.id.wire, other=visible(module.other, 200))


def _module_text(fact: findings.ModuleChange) -> str:
    what = _role_text(fact.module)
    if fact.after.digest is None:
        return f"deleted {what}"
    if fact.before.digest is None:
        return f"published {what} ({_functions_text(None, fact.after.abi).replace('added', 'with', 1)})"
    return f"upgraded {what} ({_functions_text(fact.before.abi, fact.after.abi)})"


def _functions_text(before: ModuleAbi | None, after: ModuleAbi | None) -> str:
    """Return which functions of a module were added, removed, or changed in their signature."""
    old, new = ({f.name: f for f in (abi.exposed_functions if abi else ())} for abi in (before, after))
    if not old and not new:
        return "functions unknown"
    differing = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": sorted(name for name in old.keys() & new.keys() if old[name] != new[name]),
    }
    texts = [f"{word} {_names(names)}" for word, names in differing.items() if names]
    return "; ".join(texts) or "same functions, different code"


def _upgrade_text(fact: findings.PackageUpgrade) -> str:
    whose = "the called module's own package" if fact.own else "a dependency"
    name = f"{whose}, {visible(fact.name, 40)} ({wire_address(fact.address)})"
    if fact.before is None or fact.after is None:
        return f"{'deleted' if fact.after is None else 'published'} {name}"
    count = fact.after - fact.before
    return f"upgraded {name}, {({1: 'once', 2: 'twice'}).get(count, f'{count:,} times')}"


def _state_text(fact: findings.StateChange) -> str:
    """List resources by type and table items by key: first those written, then those deleted."""
    texts = []
    for verb, deleted in (("wrote", False), ("deleted", True)):
        named = [_written_text(one) for one in fact.written if one.deleted is deleted]
        if named:
            texts.append(f"{verb} {listed(named, _MAX_NAMED)}")
    always = "; every transaction or block writes these, and nothing else was written" if fact.upkeep else ""
    return " and ".join(texts) + always


def _written_text(one: findings.WrittenState) -> str:
    if one.resource is not None:
        whose = one.addresses[0] if len(one.addresses) == 1 else f"{len(one.addresses)} accounts"
        return visible(short_addresses(f"{one.resource} of {whose}"), 200)
    if one.table is None:
        return f"a change of an unknown kind, {visible(one.key, 40)}"
    what = f"item {one.key}" if one.count == 1 else f"{one.count} items"
    return f"{what} of {visible(short_addresses(one.table), 200)}"


def _names(names: Iterable[str]) -> str:
    return listed((visible(name, _MAX_NAME) for name in names), _MAX_LISTED)


# timelines ------------------------------------------------------------------------------------------------------------


def causes_text(changes: Sequence[findings.Change]) -> str:
    """Describe changes in the timeline as the explanation of a step of committed transactions."""
    if not changes:
        return "the gas schedule, the code and the configuration are the same before and after"
    texts = [_change_text(change) for change in changes[:_MAX_LISTED]]
    if len(changes) == 1:
        return texts[0]
    texts += [f"{len(changes) - _MAX_LISTED:,} more"] if len(changes) > _MAX_LISTED else []
    return f"one of {len(changes)} changes that these transactions cannot distinguish: {'; or '.join(texts)}"


def _change_text(change: findings.Change) -> str:
    what = facts_text(change.what)
    if not change.exact:
        return f"a transaction between versions {change.version_before} and {change.ledger_version} {what}"
    if change.transaction is None:
        return f"transaction {change.ledger_version} {what}"
    return f"{transaction_text(change.transaction)} {what}"


def unread_text(unread: findings.Unread | str) -> str:
    """Describe something that could not be read while searching for a timeline."""
    if isinstance(unread, str):
        return unread
    return f"{unread.name}{' ' if unread.versions else ''}{unread.versions}: {unread.why}"


def not_seen_text(initial: int) -> str:
    """Describe the changes that the search for a timeline cannot find."""
    return (
        "changes to the gas schedule or configuration are missed if they were reverted between two of the "
        f"first {initial} versions read"
    )


# gas schedules --------------------------------------------------------------------------------------------------------


def schedule_words(before: GasSchedule, after: GasSchedule) -> str:
    """Describe the difference between two schedules, such as ``459 of 512 parameters changed, every one x10``."""
    common = before.entries.keys() & after.entries.keys()
    parts = []
    if ratios := changed_ratios(before, after):
        parts.append(f"{len(ratios)} of {len(common)} parameters changed, {_ratios_text(ratios, before, after)}")
    for done, names in (("added", after.entries.keys() - common), ("removed", before.entries.keys() - common)):
        if names:
            named = f" ({_names(sorted(names))})" if len(names) <= _MAX_NAMED else ""
            parts.append(f"{plural(len(names), 'parameter')} {done}{named}")
    if before.feature_version != after.feature_version:
        parts.append(f"gas feature version {before.feature_version} to {after.feature_version}")
    return "; ".join(parts) or "no parameter differs"


def _ratios_text(ratios: Mapping[str, Fraction | None], before: GasSchedule, after: GasSchedule) -> str:
    (ratio, count), *others = Counter(ratios.values()).most_common()
    if ratio is not None and not others and len(ratios) > 1:
        return f"every one {times(float(ratio))}"
    if ratio is not None and count > _MAJORITY * len(ratios) and len(ratios) > _MAX_NAMED:
        return f"{count} of them {times(float(ratio))}"
    named = ", ".join(
        f"{visible(name, _MAX_NAME)} from {before.entries[name]} to {after.entries[name]}"
        + ("" if one is None else f" ({times(float(one))})")
        for name, one in list(ratios.items())[:_MAX_NAMED]
    )
    return named if len(ratios) <= _MAX_NAMED else f"among them {named}"


# rows of the steps frame ----------------------------------------------------------------------------------------------


def step_row(step: Step, explanation: findings.Explanation | None) -> dict[str, Any]:
    """Return a step as a row of the steps frame."""
    why = explanation or findings.NOT_LOOKED_FOR
    row = {name: getattr(step, name) for name in STEPS.names if hasattr(step, name)}
    row |= {"cause": why.cause, "cause_parts": list(why.parts), "explanation": evidence_text(why.evidence)}
    return row | (why.transaction.columns() if why.transaction else {})


def steps_frame(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return a steps frame from rows; missing fields are null."""
    return frame_of_rows(STEPS, rows)
