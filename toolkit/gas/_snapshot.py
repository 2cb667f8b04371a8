"""Snapshots: the gas of a study's calls as one short file that is reviewed and committed like code.

`taken` makes a snapshot of the last observations of a run, `snapshot_text` writes it, `read_snapshot` reads the file,
which anyone may have edited, and `compare_snapshot` compares it with a run. The run is first converted to a snapshot
too, so the result agrees with a diff of the two files.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, TypeAdapter, field_validator

from toolkit._present.text import listed, visible
from toolkit.errors import StudyError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._calls import Call, other_names
from toolkit.gas._compare import Comparison, compared, is_local
from toolkit.gas._file_model import FileModel, placed
from toolkit.gas._gate import Gate, rules_of
from toolkit.gas._observations import Cause, Source, is_no_answer, last_observations
from toolkit.gas._sides import Ran, Side
from toolkit.gas._study import Run
from toolkit.gas._study_file import text_of, toml_of, toml_value
from toolkit.gas.committed._fees import Fees
from toolkit.gas.committed._levels import MIN_SURE_CALLS
from toolkit.gas.runs._runner import run_study

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from toolkit.gas._study import Study
    from toolkit.gas.runs._manifest import NodeRun

FORMAT = 1
_HEAD = (
    "# Gas of the calls of a study, in gas units. `ledger-toolkit snapshot STUDY` writes this file, and\n"
    "# `ledger-toolkit snapshot STUDY --check` compares a new run with it. Review its changes like those of code.\n"
)
_MAX_INTEGER = 2**63 - 1  # of TOML, and of the columns of gas
_MAX_FAILURE = 200  # characters: one line of a review
_MAX_FEES = 200  # pairs of a fee and its number: a line that is still reviewed
_MAX_CALLS = 10_000_000  # transactions of a line: a mistyped count must not fill the memory
_MAX_PRICE = 10_000_000_000  # octas per gas unit; the highest that a transaction may offer
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_NO_LAST = (
    "the snapshot has no `last` version for it, so nobody can tell which transactions are new; write the snapshot again"
)
_SECTIONS = {source.key: source for source in Source}  # of a node in a snapshot file

_Whole = Annotated[int, Field(ge=0, le=_MAX_INTEGER, strict=True)]
_Octas = Annotated[int, Field(ge=-_MAX_INTEGER, le=_MAX_INTEGER, strict=True)]


class NodeFacts(FileModel):
    """Facts about one node that may explain a difference."""

    node: str
    chain_id: Annotated[int, Field(ge=0, le=255, strict=True)]
    model: Annotated[bool, Field(strict=True)]
    """True for the embedded node, whose gas is a model."""
    ledger_version: _Whole
    """Last version at which views are read. A committed call has its own, in its line."""
    feature_version: _Whole | None = None
    """Gas feature version at that version."""
    schedule: str | None = None
    """Digest of the gas schedule at that version."""
    node_build: str | None = None
    code: dict[str, str] = Field(default_factory=dict)
    """Digest of the bytecode of each called module at that version."""


class _NodeTable(NodeFacts):
    """A node in a snapshot file, with a table of the calls of each source by label."""

    view: dict[str, Any] = Field(default_factory=dict)
    simulate: dict[str, Any] = Field(default_factory=dict)
    simulate_at_version: dict[str, Any] = Field(default_factory=dict)
    committed: dict[str, Any] = Field(default_factory=dict)


class _File(FileModel):
    """The content of a snapshot file."""

    format: Literal[1]
    title: str = ""
    nodes: tuple[_NodeTable, ...]


class Gas(FileModel):
    """A call in a snapshot file: the gas that it uses, or used before it failed."""

    gas: _Whole | None = None
    fails: str | None
    """Error code or VM status of a call that fails. Of a call that succeeds, the file has the gas alone."""


class Paid(FileModel):
    """The committed transactions of a call in a snapshot file: those under the newest code and schedule of the run."""

    gas: _Whole | None = None
    """Mean gas of those that succeeded."""
    price: Annotated[_Whole, Field(ge=1, le=_MAX_PRICE)] = 100
    """Octas per gas unit at which fees are counted."""
    last: _Whole | None = None
    """Last version whose transactions are counted. Files written before each line had it lack it."""
    since: _Whole = 0
    """Version of the last change that can affect the call; 0 if none is known."""
    failed: Annotated[_Whole, Field(le=_MAX_CALLS)] = 0
    fees: tuple[tuple[_Octas, Annotated[_Whole, Field(ge=1)]], ...] = ()
    """Fee in octas, net of refunds, and how many transactions paid it; ascending."""

    @field_validator("fees")
    @classmethod
    def _bounded(cls, fees: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        if (total := sum(count for _, count in fees)) > _MAX_CALLS:
            raise ValueError(f"expected at most {_MAX_CALLS:,} transactions, got {total:,}")
        return fees


@dataclass(frozen=True, slots=True)
class Line:
    """A call of a snapshot, and what it costs on a node."""

    node: str
    source: Source
    label: str
    cost: Gas | Paid


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The gas of the calls of a study on its nodes.

    Attributes
    ----------
    title : str
    nodes : tuple of NodeFacts
    lines : tuple of Line
    places : mapping of (str, str) to int
        Line number in the file by node and label, and by an empty node and a label that only one node has; empty if the
        snapshot was not read from a file.
    """

    title: str
    nodes: tuple[NodeFacts, ...]
    lines: tuple[Line, ...]
    places: Mapping[tuple[str, str], int]

    @property
    def reached(self) -> dict[str, int]:
        """The last version that was read of views or committed transactions, by node."""
        found = {facts.node: facts.ledger_version for facts in self.nodes}
        for line in self.lines:
            if isinstance(line.cost, Paid):
                found[line.node] = max(found[line.node], line.cost.last or 0)
        return found


def taken(run: Run) -> Snapshot:
    """Take the snapshot of a run: the last observation of each call, and what committed transactions pay.

    Of committed calls, it holds the distribution of the fees of the transactions under the newest code and schedule.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Snapshot

    Raises
    ------
    StudyError
        If the run is not complete, or the node did not respond to a call, since a snapshot must not omit a call
        silently.
    """
    if not run.complete:
        raise StudyError(f"{run.path}: a snapshot requires a complete run; run the same study into the folder again")
    observations = run.observations
    committed = observations["source"] == Source.COMMITTED
    lines = [_line(row) for row in plain_rows(last_observations(observations[~committed]))]
    calls = [call for call in run.study.calls if call.source is Source.COMMITTED]
    lines += [_committed_line(run, call, plan) for plan in run.record.nodes for call in calls]
    nodes = tuple(_facts(plan) for plan in run.record.nodes)
    return Snapshot(run.study.title, nodes, tuple(sorted(lines, key=_order)), {})


def _line(row: Mapping[str, Any]) -> Line:
    label, error = row["label"], row["error_code"]
    if is_no_answer(error):
        raise StudyError(
            f"call {visible(label)!r} got no response ({error}); run the study again, then retake the snapshot"
        )
    fails = error or (row["vm_status"] or "no reason reported" if row["success"] is False else None)
    if fails is None and row["gas_used"] is None:
        raise StudyError(f"call {visible(label)!r}: the node reported no gas, which a snapshot requires")
    cost = Gas(gas=None if error else row["gas_used"], fails=fails and visible(fails, _MAX_FAILURE))
    return Line(row["node"], Source(row["source"]), label, cost)


def _committed_line(run: Run, call: Call, plan: NodeRun) -> Line:
    ran = Side("", run.observations, run=run).ran(call.fingerprint, plan.node)
    if ran.why:
        raise StudyError(f"call {visible(call.name)!r}: {ran.why}; run the study again, then retake the snapshot")
    price = ran.typical_price
    fees = Fees.of(ran.frame, price).binned(_MAX_FEES)
    gas = round(float(ran.good["gas_used"].mean())) if len(ran.good) else None
    paid = Paid(gas=gas, price=price, last=ran.last, since=ran.since, failed=fees.failed, fees=tuple(fees.counted()))
    return Line(plan.node, Source.COMMITTED, call.name, paid)


def _facts(plan: NodeRun) -> NodeFacts:
    known: dict[str, Any] = {name: getattr(plan, name) for name in ("node", "chain_id", "model", "node_build")}
    if plan.provenance and (schedule := plan.provenance.gas_schedule.last):
        known |= {"feature_version": schedule.feature_version, "schedule": schedule.digest}
    if plan.provenance:
        known["code"] = {name: ends.last for name, ends in plan.provenance.modules.items() if ends.last}
    return NodeFacts(**known, ledger_version=plan.last)


def pending_lines(snapshot: Snapshot, run: Run) -> list[str]:
    """Return why a check cannot judge the committed calls of a new snapshot at once, and what to do.

    Calls that are read at one version are left out: a note of the run is about them.
    """
    plans = {plan.node: plan for plan in run.record.nodes}
    calls = {call.name: call for call in run.study.calls}
    growing = run.age.labels if run.age else ()
    found: dict[str, list[str]] = {}
    for line in snapshot.lines:
        call, plan, cost = calls[line.label], plans[line.node], line.cost
        if not isinstance(cost, Paid) or plan.only_version(call) is not None:
            continue
        first, last = plan.range_of(call)
        succeeded = sum(count for _, count in cost.fees)
        why = f" until {MIN_SURE_CALLS} new transactions succeed in the versions it reads"
        if line.label not in growing:
            why = f": the study ends at {last:,}, so it reads nothing new; give it an open end, such as {first}:-1"
        elif succeeded < MIN_SURE_CALLS:
            only = f"only {succeeded:,} succeeded in versions {max(cost.since, first):,} to {cost.last or last:,}"
            why = f": {only}, at least {MIN_SURE_CALLS} are needed; write the snapshot again later"
        found.setdefault(why, []).append(visible(line.label))
    return [f"--check cannot judge {listed(dict.fromkeys(labels), 3)}{why}" for why, labels in found.items()]


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a snapshot as TOML, with one line per call, sorted. Equal snapshots give equal texts.

    Parameters
    ----------
    snapshot : Snapshot

    Returns
    -------
    str
    """
    parts = [_HEAD, f"format = {FORMAT}\ntitle = {toml_value(snapshot.title)}\n"]
    for facts in snapshot.nodes:
        known = [(name, one) for name, one in facts.model_dump(exclude_none=True).items() if one != {}]
        parts.append("\n[[nodes]]\n" + "".join(f"{name} = {toml_value(one)}\n" for name, one in known))
        for section, source in _SECTIONS.items():
            lines = [line for line in snapshot.lines if line.node == facts.node and line.source == source]
            if lines:
                parts.append(f"\n[nodes.{section}]\n" + "".join(map(_line_text, lines)))
    return "".join(parts)


def _line_text(line: Line) -> str:
    succeeds = isinstance(line.cost, Gas) and line.cost.fails is None
    value = line.cost.gas if succeeds else line.cost.model_dump(exclude_none=True)
    return f"{toml_value(line.label)} = {toml_value(value)}\n"


def read_snapshot(path: str | Path) -> Snapshot:
    """Read a snapshot file, which anyone may have edited.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Snapshot

    Raises
    ------
    StudyError
        If the file cannot be read, is not TOML, or contains a value that is not valid; the message states the line,
        what was expected and what was found.
    """
    text = text_of(path, "snapshot")
    file = placed(f"snapshot {path}", _File.model_validate, toml_of(text, path, "snapshot"))
    lines: list[Line] = []
    places: dict[tuple[str, str], int] = {}
    numbers = _line_numbers(text)
    for position, table in enumerate(file.nodes):
        for section, source in _SECTIONS.items():
            for label, value in getattr(table, section).items():
                if number := numbers.get((position, section, toml_value(label))):
                    places[table.node, label] = number
                place = f"snapshot {path}{f', line {number}' if number else ''}, {visible(label, 80)!r}"
                lines.append(Line(table.node, source, label, placed(place, _read_cost, source, value)))
    nodes = tuple(NodeFacts(**table.model_dump(exclude=set(_SECTIONS))) for table in file.nodes)
    if len({facts.node for facts in nodes}) < len(nodes):
        raise StudyError(f"snapshot {path}: each [[nodes]] table must have a different `node`")
    counts = Counter(label for _, label in places)
    places |= {("", label): number for (_, label), number in places.items() if counts[label] == 1}
    return Snapshot(file.title, nodes, tuple(sorted(lines, key=_order)), places)


def _line_numbers(text: str) -> dict[tuple[int, str, str], int]:
    """Return the line of each entry, by the position of its node's table, the name of its section and its key."""
    found: dict[tuple[int, str, str], int] = {}
    position, section = -1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        key = line.partition("=")[0].strip()
        if key.startswith("[["):
            position += 1
        elif key.startswith("["):
            section = key.strip("[ ]").removeprefix("nodes.")
        elif key:
            found[position, section, key if key.startswith('"') else toml_value(key)] = number
    return found


def _read_cost(source: Source, value: Any) -> Gas | Paid:
    if source is Source.COMMITTED:
        return Paid.model_validate(value)
    return Gas.model_validate(value) if isinstance(value, dict) else Gas(gas=_WHOLE.validate_python(value), fails=None)


_WHOLE = TypeAdapter(_Whole)


def _order(line: Line) -> tuple[str, str, str]:
    return line.node, line.source, line.label


def _side(name: str, snapshot: Snapshot, study: Study, *, replaced: Collection[str] = ()) -> Side:
    """Return a snapshot as a side; lines are matched to calls of the study by label or function.

    All transactions on a `replaced` ledger ran after the snapshot was taken.
    """
    named: dict[tuple[str, str], Call] = {}
    for source in Source:
        calls = {call.name: call for call in study.calls if call.source == source}
        named |= {(source, name): call for name, call in calls.items()}
        named |= {(source, name): calls[label] for name, label in other_names([*calls.values()]).items()}
    nodes = {facts.node: facts for facts in snapshot.nodes}
    rows, stored = [], {}
    for line in snapshot.lines:
        facts, call, cost = nodes[line.node], named.get((line.source, line.label)), line.cost
        fails = cost.fails if isinstance(cost, Gas) else None
        row = {name: getattr(facts, name) for name in ("node", "node_build", "model", "chain_id", "ledger_version")}
        row |= {
            "label": call.name if call else line.label,
            "fingerprint": call.fingerprint if call else f"not in the study: {line.label}",
            "source": line.source,
            "gas_used": cost.gas,
            "success": fails is None,
            "error_code" if cost.gas is None else "vm_status": fails,  # only what ran has used gas
            "observed_at": _UNKNOWN_TIME,
            "toolkit_version": "",
        }
        rows.append(row)
        if isinstance(cost, Paid):
            row["ledger_version"] = facts.ledger_version if cost.last is None else cost.last
            fees, last = Fees.from_counts(cost.fees, cost.failed), 0 if line.node in replaced else cost.last or 0
            why = _NO_LAST if cost.last is None else ""
            stored[row["fingerprint"], line.node] = Ran(
                since=cost.since, last=last, why=why, stored=fees, price=cost.price
            )
    return Side(name, frame_of_rows(OBSERVATIONS, rows), stored=stored, has_times=False)


def run_again(study: Study, snapshot: Snapshot, *, progress: bool = True) -> Run:
    """Run a study like `Study.run`, but a call of the snapshot whose function is gone is observed to fail."""
    names = other_names(study.calls)
    existed = {names.get(line.label, line.label) for line in snapshot.lines}
    return Run(run_study(study, None, progress=progress, existed=existed)[0], temporary=True)


def compare_snapshot(snapshot: Snapshot, run: Run, name: str = "snapshot") -> Comparison:
    """Compare a snapshot with a run.

    Parameters
    ----------
    snapshot : Snapshot
    run : Run
    name : str, default "snapshot"
        Name of the snapshot in messages, such as its path.

    Returns
    -------
    Comparison
        Calls are matched by label or by an alternative name. The warnings of the comparison say what differs besides
        gas, such as the gas schedule, the node or the version.

    Raises
    ------
    StudyError
        If the run is not complete, or the node did not respond to a call.
    """
    now = taken(run)
    facts = {one.node: one for one in snapshot.nodes}
    heads = {plan.node: plan.head for plan in run.record.nodes}
    reached = snapshot.reached, now.reached
    # The head of a ledger never decreases. On this machine the ledger is often a new one, which has begun again.
    above = {
        node: f"the snapshot was taken at version {last:,}, above the run's head at {heads[node]:,}, so the run is "
        "older or from another ledger"
        for node, last in reached[0].items()
        if node in heads and last > heads[node]
    }
    again = {node for node in above if node != "embedded" and is_local(node)}
    after = replace(_side(run.study.title, now, run.study), study=run.study, run=run, stored={})
    found = compared(_side(name, snapshot, run.study, replaced=again), after)
    explained = {step.node for step in found.steps if step.cause is Cause.SCHEDULE}
    notes: list[str] = []
    for one in now.nodes:
        if one.node in facts:
            ends = reached[0][one.node], reached[1][one.node]
            notes += _differences(facts[one.node], one, ends, explained=not explained.isdisjoint({"", one.node}))
    unlike = {**found.unlike, **{node: why for node, why in above.items() if node not in again}}
    return replace(found, notes=(*found.notes, *notes), unlike=unlike)


def _differences(before: NodeFacts, after: NodeFacts, ends: tuple[int, int], *, explained: bool) -> Iterator[str]:
    """Yield what may explain a difference: a different gas schedule, unless a cause names it, or another version."""
    where = f"the snapshot was taken at version {ends[0]:,}, the run ends at {ends[1]:,}"
    if before.schedule != after.schedule and before.schedule and after.schedule and not explained:
        versions = before.feature_version, after.feature_version
        features = f" (feature version {versions[0]} before, {versions[1]} now)" if versions[0] != versions[1] else ""
        read = f"it was read at version {before.ledger_version:,} and now at {after.ledger_version:,}"
        yield f"the gas schedule differs{features}, which may explain different gas; {read}"
    elif ends[0] != ends[1]:
        yield where


def check_snapshot(
    comparison: Comparison,
    waivers: Sequence[Any] | None = None,
    max_age: timedelta | None = None,
) -> Gate:
    """Judge a comparison with a snapshot by the rules of the run's study.

    Without thresholds, any rise is a regression. A call that fails in the snapshot may keep failing in the same way.
    Committed calls are judged by what ran since the snapshot was taken.

    Parameters
    ----------
    comparison : Comparison
        As returned by `compare_snapshot`.
    waivers : sequence of Waiver or mapping, optional
        Waivers to use instead of the study's.
    max_age : timedelta, optional
        Maximum age of what the run read up to the head. By default, the age is not checked.

    Returns
    -------
    Gate
    """
    study = comparison.study
    rules = rules_of(None if study and study.thresholds else 0, study, waivers)
    return comparison.judged_by(replace(rules, of_snapshot=True), max_age=max_age)
