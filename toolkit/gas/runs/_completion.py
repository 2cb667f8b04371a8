"""The end of a run: the proof that each planned observation exists exactly once, then steps, causes and provenance."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from msgspec import structs

from toolkit._present.text import plural
from toolkit.client._progress import progress_bar
from toolkit.errors import StudyError
from toolkit.frames._columns import plain_rows
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._cause_sentences import step_row, steps_frame
from toolkit.gas._findings import Explanation
from toolkit.gas._observations import PRUNED, Cause, Source, digest_of, is_no_answer
from toolkit.gas._steps import COMPARED, OUTCOME_COLUMNS, Step, steps_of
from toolkit.gas.causes._evidence import UNREAD, Evidence
from toolkit.gas.causes._finding import MAX_STEPS, causes_of
from toolkit.gas.plan._plan import ledger_guard
from toolkit.gas.runs._collector import check_ledger, check_there
from toolkit.gas.runs._committed import judge_committed
from toolkit.gas.runs._manifest import Counts, ModuleEnds, NodeRun, Provenance, ScheduleDigest, ScheduleEnds
from toolkit.gas.runs._reader import further_observations, observe_at_versions, unread
from toolkit.gas.runs._scan import (
    compared_rows,
    count_failures,
    count_unanswered,
    rows_digest,
    versions_read,
    with_messages,
)
from toolkit.move import FunctionId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.gas.runs._store import Job, RunStore
    from toolkit.move._ids import ModuleId

# Versions that an error names; a part that was lost has thousands.
_MAX_NAMED = 3
_OUTCOMES = [f"{name}_{side}" for name in ("gas", "success", "error") for side in ("before", "after")]
_STEP_KEY = ("node", "fingerprint", "version_before", "version_after", *_OUTCOMES)


def complete(job: Job) -> None:
    """Check that a run has every observation, find its steps and their causes, and mark it as complete.

    Raises
    ------
    StudyError
        If an observation is missing or duplicated.
    LedgerChanged
        If a node serves another ledger, so that the causes may be wrong; nothing is written.
    NodeUnreachable
        If causes cannot be found because the node has stopped responding.
    """
    prove_whole(job)
    steps, further = _located_steps(job)
    stored = job.store.steps()  # not damaged: the folder was mended
    known = {} if stored is None else {_identity(row): row for row in plain_rows(stored)}
    causes: dict[Step, Explanation] = {}
    calls = {call.fingerprint: call for call in job.study.calls}
    plans: list[NodeRun] = []
    with progress_bar(len(steps), "finding causes", show=job.progress) as bar:
        for node, plan in job.plans():
            mine = [step for step in steps if step.node == plan.node]
            # A stored step was read twice when it was found.
            own = not_repeated(job, node, plan, [step for step in mine if _identity(asdict(step)) not in known])
            found = causes_of([step for step in mine if step not in own], node, calls, advance=bar.advance)
            found |= own
            if any(one.cause == Cause.UNKNOWN for one in found.values()):
                check_there(node, "causes of steps cannot be found")
            causes |= found
            called = [call.function for call in job.study.calls]
            origin = provenance(node, first=plan.first, last=plan.last, functions=called)
            plans.append(
                structs.replace(plan, provenance=origin, further_requests=further.get(plan.node, plan.further_requests))
            )
            check_ledger(ledger_guard(node, plan))
    rows = []
    for step in steps:
        explanation = causes.get(step)
        lost = explanation is None or explanation.cause == Cause.UNKNOWN
        # What explains an early step of a run that is extended may be pruned by now.
        before = known.get(_identity(asdict(step))) if lost and job.manifest.extended else None
        rows.append(before or step_row(step, explanation))
    # Before transactions are judged: what judging occupies would add to the peak of memory.
    store = job.store
    counts, digest = Counts(store.rows(), count_failures(store), count_unanswered(store)), rows_digest(store)
    judged = [judge_committed(job, node, plan) for node, plan in zip(job.nodes, plans, strict=True)]
    store.write_steps(steps_frame([*rows, *(row for _, found in judged for row in found)]))
    nodes, now = tuple(plan for plan, _ in judged), datetime.now(UTC)
    job.write(nodes=nodes, counts=counts, rows_digest=digest, finished_at=now, complete=True)


def _identity(step: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(step[name] for name in _STEP_KEY)


def not_repeated(job: Job, node: Node, plan: NodeRun, steps: Sequence[Step]) -> dict[Step, Explanation]:
    """Read both ends of each exact step again, and return the steps that do not come back: the node made them.

    Not those of simulations on forks: the machine gives the same result for the same state, whoever asks.
    """
    exact = [step for step in steps if step.exact and step.source == Source.VIEW][:MAX_STEPS]
    calls = {call.fingerprint: call for call in job.study.calls}
    ends = {(step.fingerprint, version) for step in exact for version in (step.version_before, step.version_after)}
    again: dict[tuple[str, int], tuple[Any, ...]] = {}
    with node.fresh():  # a cache would repeat the answer
        for row in observe_at_versions(node, plan.origin, [(calls[mark], version) for mark, version in sorted(ends)]):
            # State that the node has pruned meanwhile says nothing against the first reading.
            if not is_no_answer(row["error_code"]) and row["error_code"] not in PRUNED:
                again[row["fingerprint"], row["ledger_version"]] = tuple(row[name] for name in OUTCOME_COLUMNS)
    found = {}
    for step in exact:
        for version, outcome in step.outcomes.items():
            if again.get((step.fingerprint, version), outcome) != outcome:
                why = f"the node answered differently when version {version:,} was read again"
                found[step] = Explanation(Cause.NODE, why)
    return found


def _located_steps(job: Job) -> tuple[list[Step], dict[str, int]]:
    """Return the steps between observations; steps of a version plan are bisected first, on the nodes.

    Otherwise the cause of a step would depend on whether its transaction happens to be one of the versions read.
    Also return how many reads that took, by node.
    """
    observed = compared_rows(job.store)
    steps = steps_of(observed)
    counts: dict[str, int] = {}
    every: list[Mapping[str, Any]] = []
    if job.study.versions.search is not None or all(step.exact for step in steps):
        return with_messages(job.store, steps), counts
    with progress_bar(0, "locating steps", show=job.progress) as bar:
        for node, plan in job.plans():
            further = further_observations(job.study, node, plan, steps, bar=bar)
            counts[plan.node] = len(further)
            every += further
            added = OBSERVATIONS.table_of_rows(further).select(COMPARED)
            observed = pa.concat_tables([observed, added.cast(observed.schema)])
    return with_messages(job.store, steps_of(observed), every), counts


# the proof ------------------------------------------------------------------------------------------------------------


def prove_whole(job: Job) -> None:
    """Check that a run has every observation that its study and its plans ask for, each once.

    Raises
    ------
    StudyError
        If an observation is missing, duplicated or not part of the study; the message names the call and the first
        versions.
    """
    store, names = job.store, {call.fingerprint: call.name for call in job.study.calls}
    for plan in job.manifest.nodes:
        read = versions_read(store, plan.node)
        if strange := sorted(read.keys() - names.keys()):
            listing = strange[:_MAX_NAMED]
            raise StudyError(f"{store.path} has observations of calls that are not in its study: {', '.join(listing)}")
        for mark, versions in read.items():
            _refuse(store, names[mark], "duplicated", versions[1:][versions[1:] == versions[:-1]])
        for call, what, found in unread(job, plan, read):
            _refuse(store, call.name, what, found)


def _refuse(store: RunStore, name: str, what: str, versions: Sequence[int] | NDArray[np.int64]) -> None:
    if len(versions):
        shown = ", ".join(str(int(version)) for version in versions[:_MAX_NAMED])
        more = ", ..." if len(versions) > _MAX_NAMED else ""
        raise StudyError(
            f"{store.path} is not a complete run: {plural(len(versions), 'observation')} of {name!r} "
            f"{'is' if len(versions) == 1 else 'are'} {what} "
            f"({'version' if len(versions) == 1 else 'versions'} {shown}{more})"
        )


# provenance -----------------------------------------------------------------------------------------------------------


def provenance(node: Node, *, first: int, last: int, functions: Iterable[str]) -> Provenance:
    """Return the gas schedule and the called modules at the first and the last version of a run."""
    evidence = Evidence(node)
    called = sorted({one.module_id for one in map(FunctionId.parse, functions)}, key=str)
    modules = {at.wire: ModuleEnds(_digest(evidence, at, first), _digest(evidence, at, last)) for at in called}
    return Provenance(ScheduleEnds(_schedule(evidence, first), _schedule(evidence, last)), modules)


def _schedule(evidence: Evidence, version: int) -> ScheduleDigest | None:
    try:
        schedule = evidence.schedule(version)
    except UNREAD:
        return None
    text = "\n".join(f"{name} {value}" for name, value in sorted(schedule.entries.items()))
    return ScheduleDigest(schedule.feature_version, len(schedule.entries), digest_of(text))


def _digest(evidence: Evidence, module: ModuleId, version: int) -> str | None:
    try:
        known = evidence.module(module, version)
    except UNREAD:
        return None
    return known.digest.hex() if known.digest is not None else None
