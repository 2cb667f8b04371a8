"""Proofs of causes: transactions next to a change are executed with what the change wrote, and without it.

A step of committed transactions is found in what people paid; that a change caused it is an inference, until the same
transactions are executed on both sides of the change. Only what replays to what the ledger says counts.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from statistics import median, median_low
from typing import TYPE_CHECKING, Any

from toolkit._present.text import listed, plural
from toolkit.fork._fork import Fork
from toolkit.fork._replay import prepare_committed
from toolkit.fork._state import NO_RESULT, NodeState, StateSource, is_module, prefetch
from toolkit.fork._sweep import Change as Overlay
from toolkit.fork._sweep import replay_all
from toolkit.gas._cause_sentences import causes_text
from toolkit.gas._observations import Cause, Part
from toolkit.gas.causes._facts import CONFIGURATION
from toolkit.vm import Module, code_changes
from toolkit.vm._state import resource_key
from toolkit.vm._types import FRAMEWORK, struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.gas._findings import Change
    from toolkit.vm._state import StateValue

MAX_CHANGES = 20  # of one call, for each of its strata: each takes hundreds of reads
MAX_EXECUTED = 8  # transactions on each side of a change: exact, so more add nothing but kinds of transactions
_MAX_NAMED = 3  # functions in a sentence
_KINDS = {resource_key(FRAMEWORK, struct(tag)): kind for tag, (kind, _) in CONFIGURATION.items()}
_COLUMNS = ("gas_used", *(part.column for part in Part))
_WORDS = {Cause.CODE: "code", Cause.SCHEDULE: "gas schedule", Cause.CONFIG: "configuration"}


@dataclass(frozen=True, slots=True)
class Executed:
    """What transactions cost with the old and the new state of what a change wrote.

    Attributes
    ----------
    kind : Cause
        What was exchanged: code, schedule or configuration.
    pairs : tuple of mapping
        Per transaction: what it costs (old, new), by column of gas.
    sides : frozenset of bool
        Whether there are transactions before the change (False) and after it (True).
    functions : tuple of str
        Of changed code, the functions that differ and that the nearest transactions run.
    """

    kind: Cause
    pairs: tuple[Mapping[str, tuple[int, int]], ...]
    sides: frozenset[bool]
    functions: tuple[str, ...] = ()

    def proves(self, column: str, low: float | None, high: float | None, *, unit: float) -> bool | None:
        """Return whether the change makes a step in a part of the gas; None if that is not decided.

        It does if it moves all transactions one way, by what the step is within its bounds (in units of `unit`) and a
        unit of rounding. It does not if it moves none. Both sides of the change must have been executed.
        """
        if self.sides != {False, True} or not all(column in pair for pair in self.pairs):
            return None
        moves = [pair[column][1] - pair[column][0] for pair in self.pairs]
        if not any(moves):
            return False
        one_way = min(moves) >= 0 or max(moves) <= 0
        within = low is not None and high is not None and low - 1 <= median(moves) / unit <= high + 1
        return True if one_way and within else None

    def words(self, column: str) -> str:
        """Return the median cost with the old and with the new, in words."""
        old, new = (median_low(pair[column][side] for pair in self.pairs) for side in (0, 1))
        what, count = _WORDS[self.kind], plural(len(self.pairs), "transaction")
        ran = f"; the nearest of them run {listed(self.functions, _MAX_NAMED)}, which changed" if self.functions else ""
        return f"with the old {what}: {old:,}; with the new: {new:,} (median of {count} executed with both{ran})"


def executed(node: Node, version: int, kind: Cause, *, before: Sequence[int], after: Sequence[int]) -> Executed:
    """Execute transactions around a change with what it wrote, and without it.

    Parameters
    ----------
    node : Node
    version : int
        Version of the transaction that made the change.
    kind : Cause
        `Cause.CODE`, `Cause.SCHEDULE` or `Cause.CONFIG`: which of its writes are exchanged.
    before, after : sequence of int
        Versions of transactions, ascending; the nearest eight on each side are executed.

    Returns
    -------
    Executed
        Without the transactions that do not replay to what the ledger says, or that end differently on the other side.

    Raises
    ------
    NodeError, NodeUnreachable, SchemaError, InputError
        If the node does not serve the change or the state before it.
    """
    committed = node.one(prepare_committed(node, version))
    written = {key: one for key, one in committed.writes.items() if _kind(key) is kind}
    state = NodeState(StateSource(node), version - 1)
    prefetch([(state, written)])
    old: dict[bytes, bytes | None] = {}
    for key in written:
        found = state(key)
        old[key] = None if found is None else found[0]
    new = {key: one.value for key, one in written.items()}
    created: dict[bytes, StateValue] = {}
    if kind is Cause.CODE:  # what `init_module` stores belongs to the code
        created = {
            key: (one.value, one.metadata)
            for key, one in committed.writes.items()
            if one.op == "create" and one.value is not None and key not in written
        }
    pairs: list[Mapping[str, tuple[int, int]]] = []
    sides = set()
    nearest: list[int] = []
    for is_after, versions, overlay in (
        (False, before[-MAX_EXECUTED:], Overlay(new, created)),
        (True, after[:MAX_EXECUTED], Overlay(old, {})),
    ):
        rows = replay_all(node, versions, None, overlay, progress=False) if written else []
        same = [row for row in rows if row.get("verified") and row["success"] == row["changed_success"]]
        if same:
            sides.add(is_after)
            pairs += [_pair(row, is_after=is_after) for row in same]
            nearest.append(same[0 if is_after else -1]["ledger_version"])
    functions = _changed_functions_run(node, old, new, nearest) if kind is Cause.CODE else ()
    return Executed(kind, tuple(pairs), frozenset(sides), functions)


def _changed_functions_run(
    node: Node, old: Mapping[bytes, bytes | None], new: Mapping[bytes, bytes | None], versions: Sequence[int]
) -> tuple[str, ...]:
    """Return the functions that differ between two versions of modules and that transactions run."""
    ran: set[str] = set()
    found: set[str] = set()
    for version in versions:
        with suppress(*NO_RESULT):
            replay = Fork(node, version - 1).replay(version)
            ran |= replay.functions if replay.verified else frozenset()
    for key, code in new.items():
        before = old[key]
        if before is not None and code is not None:
            with suppress(*NO_RESULT):  # a module that this machine cannot read names nothing, and disproves nothing
                module = Module.from_bytes(code)
                changes = code_changes(Module.from_bytes(before), module)
                found.update(f"{module.id}::{name}" for names in changes for name in names)
    return tuple(sorted(found & ran))


def proved_rows(
    node: Node,
    found: Sequence[tuple[Sequence[Change], dict[str, Any]]],
    kinds: Mapping[str, Sequence[int]],
    *,
    unit: float,
) -> list[dict[str, Any]]:
    """Return the rows of steps of one call, each with what executing its transactions proves.

    A change that moves no transaction is not the cause of a step, and one that moves them all its way is. Steps of ways
    are not proved: which transactions take a way is known next to the step only, by the gas that the change moves.

    Parameters
    ----------
    node : Node
    found : sequence of (changes, row)
        Rows of the steps frame, with the changes that may have caused each.
    kinds : mapping of str to sequence of int
        Versions of the transactions of each stratum of the call, ascending.
    unit : float
        Octas per gas unit, in which steps of parts in octas are stated.
    """
    known: dict[Any, Executed | None] = {}
    rows = []
    for changes, row in found:
        stratum, tried = row["stratum"], []
        for change in changes if row.get("way_gas") is None else ():
            key = change.ledger_version, change.kind, stratum
            if key not in known:
                known[key] = _tried(node, change, changes, kinds[stratum]) if len(known) < MAX_CHANGES else None
            tried.append((change, known[key]))
        rows.append(_judged(row, changes, tried, unit))
    return rows


def _tried(node: Node, change: Change, changes: Sequence[Change], versions: Sequence[int]) -> Executed | None:
    """Execute the transactions between a change and its neighbours; None if that cannot be done."""
    at = change.ledger_version
    low = max((one.ledger_version for one in changes if one.ledger_version < at), default=-1)
    high = min((one.ledger_version for one in changes if one.ledger_version > at), default=1 << 64)
    before = [version for version in versions if low < version < at]
    after = [version for version in versions if at < version < high]
    if change.exact and before and after:
        with suppress(*NO_RESULT):  # a node without the state, or without transactions in BCS
            return executed(node, at, change.kind, before=before, after=after)
    return None


def _judged(
    row: dict[str, Any], changes: Sequence[Change], tried: Sequence[tuple[Change, Executed | None]], unit: float
) -> dict[str, Any]:
    part = Part(row["part"])
    column, bounds = part.column, (row["change_low"], row["change_high"])
    scale = unit if part.in_octas else 1.0
    verdicts = [
        (change, one, None if one is None else one.proves(column, *bounds, unit=scale)) for change, one in tried
    ]
    proved = [(change, one) for change, one, verdict in verdicts if verdict and one is not None]
    count = sum(len(one.pairs) for _, one, verdict in verdicts if one is not None and verdict is not None)
    if proved and all(verdict is not None for *_, verdict in verdicts):
        causes = [change for change, _ in proved]
        kinds = list(dict.fromkeys(change.kind for change in causes))
        words = "; ".join(one.words(column) for _, one in proved)
        about = {"cause": kinds[0] if len(kinds) == 1 else Cause.MIXED, "cause_parts": kinds}
        return (
            row | about | {"proved": True, "executed": count, "explanation": f"{causes_text(causes)}; proved: {words}"}
        )
    if verdicts and all(verdict is False for *_, verdict in verdicts):
        about = {"cause": Cause.UNEXPLAINED, "cause_parts": []}
        words = "executed with and without it, the transactions cost the same, so something else is the cause"
        return row | about | {"proved": False, "executed": count, "explanation": f"{causes_text(changes)}; {words}"}
    return row | {"explanation": causes_text(changes)}


def _kind(key: bytes) -> Cause | None:
    return Cause.CODE if is_module(key) else _KINDS.get(key)


def _pair(row: Mapping[str, Any], *, is_after: bool) -> dict[str, tuple[int, int]]:
    """Return (old, new) by column: a transaction after the change ran with the new, and is executed with the old."""
    found = {}
    for column in _COLUMNS:
        own, other = row[column], row[f"changed_{column}"]
        if own is not None and other is not None:
            found[column] = (other, own) if is_after else (own, other)
    return found
