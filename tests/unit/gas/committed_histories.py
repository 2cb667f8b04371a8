"""Generated histories of one entry function's committed transactions, with the truth of every step.

Built as a node charges: execution and io in fractions of a gas unit, storage in octas; execution and io are rounded up
each by itself. State grows with the items that calls add, callers come in bursts, payloads have sizes, calls abort,
create and delete slots; the mix of calls is fixed, drifts or jumps, also at a change. A seed gives the same history.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from toolkit.gas._findings import Change
from toolkit.gas._observations import Cause, Part

OCTAS = 100
PARAMETERS = {
    "instr": frozenset({Part.EXECUTION}),
    "io": frozenset({Part.IO}),
    "storage": frozenset({Part.STORAGE}),
    "all": frozenset(Part),
}


@dataclass
class Rules:
    """What a transaction is charged by, from one change to the next; arrays have an entry per kind of call."""

    turns: np.ndarray
    reads: np.ndarray
    slots: np.ndarray
    deleted: np.ndarray
    instruction: float = 1.0
    intrinsic: float = 2.76
    io: float = 0.3
    slot: int = 40_000
    byte: int = 40


@dataclass
class History:
    """Observations and timeline, and what is true of them.

    A row of `truth`: position (observations before it), change (number in the timeline, None if nobody announced it),
    part, kind of call, before and after (means of the same transactions under both rules) and writes.
    """

    frame: pd.DataFrame
    changes: list[Change]
    kinds: np.ndarray
    truth: list[dict]
    notes: dict = field(default_factory=dict)

    def position(self, change: int) -> int:
        """Return the number of observations before a change."""
        versions = self.frame["ledger_version"].to_numpy()
        return int(np.searchsorted(versions, self.changes[change].ledger_version))


def _charge(kinds, rules, calls):
    """Return execution and io in whole units, storage and refund in octas, slots created and deleted."""
    kind, work, items, bytes_of = calls
    failed = kinds["failed"]
    execution = rules.intrinsic + rules.instruction * rules.turns[kind] * work * (1 + kinds["per_item"][kind] * items)
    ok = ~failed[kind]
    io = np.where(ok, rules.io * (rules.reads[kind] + kinds["io_per_item"][kind] * items) + 0.0001 * bytes_of, 0.0)
    created = np.where(ok, rules.slots[kind], 0)
    deleted = np.where(ok, rules.deleted[kind], 0)
    stored = np.where(created > 0, kinds["bytes"][kind] + kinds["stores"] * bytes_of, 0).astype(np.int64)
    return {
        Part.EXECUTION: np.ceil(np.round(execution, 6)),
        Part.IO: np.ceil(np.round(io, 6)),
        Part.STORAGE: created * rules.slot + stored * rules.byte,
        Part.REFUND: deleted * 40_000,
    }, {"slots_created": created, "slots_deleted": deleted}


def _change_rules(rng, rules, kind, factor, usable):
    """Return the rules after a change, and the parts that its description says it can move."""
    up = factor if rng.random() < 0.65 else 1 / factor
    if kind is Cause.SCHEDULE:
        family = str(rng.choice(list(PARAMETERS), p=[0.45, 0.2, 0.2, 0.15]))
        scaled = {
            "instr": {"instruction": rules.instruction * up},
            "io": {"io": rules.io * up},
            "storage": {"slot": round(rules.slot * up), "byte": max(1, round(rules.byte * up))},
        }
        scaled["all"] = scaled["instr"] | scaled["io"] | {"intrinsic": rules.intrinsic * up}
        return replace(rules, **scaled[family]), PARAMETERS[family]
    hit = usable & (rng.random(len(usable)) < 0.6)
    hit[rng.choice(np.flatnonzero(usable))] = True
    way = rng.random()
    if kind is Cause.CODE and way < 0.2:
        return replace(rules, slots=rules.slots + hit, reads=rules.reads + 1.0 * hit), PARAMETERS["all"]
    if way < 0.4:
        return replace(rules, reads=np.where(hit, rules.reads * up, rules.reads)), PARAMETERS["all"]
    return replace(rules, turns=np.where(hit, rules.turns * up, rules.turns)), PARAMETERS["all"]


def history(seed: int, *, effects: float = 0.55, hidden: float = 0.25) -> History:
    """Return the history of a seed; `effects` is the share of changes that move gas, `hidden` of unannounced ones."""
    rng = np.random.default_rng([seed, 20_26])
    n = int(rng.choice([200, 500, 1_200, 4_000], p=[0.2, 0.35, 0.3, 0.15]))
    count = int(rng.integers(1, 5))
    noise = str(rng.choice(["none", "payload", "hidden", "bursts"], p=[0.45, 0.25, 0.2, 0.1]))
    growing = bool(rng.random() < 0.35)
    failed = np.zeros(count, bool)
    if count > 2:
        failed[-1] = rng.random() < 0.6
    usable = ~failed
    scale = rng.choice([0.5, 2.0, 15.0, 120.0])
    kinds = {
        "failed": failed,
        "per_item": np.where(rng.random(count) < 0.7, rng.choice([0.0005, 0.003]) * growing, 0.0),
        "io_per_item": np.where(rng.random(count) < 0.3, 0.004 * growing, 0.0),
        "bytes": rng.integers(50, 400, count),
        "stores": int(noise == "payload" and rng.random() < 0.5),
    }
    rules = Rules(
        turns=scale * rng.gamma(3.0, 0.4, count) + 0.1,
        reads=rng.uniform(3, 25, count),
        slots=rng.choice([0, 0, 1, 3, 5, 8], count)
        if count == 1
        else rng.choice([0, 1, 3, 5, 8], count, replace=False),
        deleted=np.where(rng.random(count) < 0.15, 1, 0),
    )
    versions = 5_000 + np.cumsum(1 + rng.poisson(30 * (1 + 0.8 * np.sin(np.arange(n) / 40))))
    # Changes: some close together; then the mix, which may jump at one of them.
    cuts = np.sort(rng.choice(np.arange(n // 10, n - n // 10), int(rng.integers(1, 6)), replace=False))
    if len(cuts) > 2 and rng.random() < 0.3:
        cuts[1] = min(cuts[0] + int(rng.integers(1, 12)), cuts[2])
    events = [(int(at), Cause(str(rng.choice(["schedule", "code", "config"], p=[0.35, 0.5, 0.15])))) for at in cuts]
    secret = None
    if rng.random() < hidden:
        free = np.setdiff1d(np.arange(n // 6, n - n // 6), (cuts[:, None] + np.arange(-25, 26)).ravel())
        if len(free):
            secret = int(rng.choice(free))
            events.append((secret, Cause.CODE))
    events.sort(key=lambda event: event[0])
    shares, later = rng.dirichlet(np.full(count, 2.0)), rng.dirichlet(np.full(count, 1.0))
    way = str(rng.choice(["fixed", "drifts", "jumps", "jumps at a change"], p=[0.45, 0.2, 0.2, 0.15]))
    weight = np.zeros(n)
    if way == "drifts":
        weight = np.linspace(0, 1, n)
    elif way != "fixed":
        jump = int(rng.choice(cuts)) if way == "jumps at a change" else int(rng.integers(n // 5, n - n // 5))
        weight = (np.arange(n) >= jump).astype(float)
    mixed = shares * (1 - weight[:, None]) + later * weight[:, None]
    kind = np.minimum((rng.random(n)[:, None] > np.cumsum(mixed, axis=1)).sum(axis=1), count - 1)
    bytes_of = np.full(n, 64.0) if noise != "payload" else 32 + 8.0 * rng.poisson(rng.gamma(3.0, 4.0, n))
    work = np.ones(n)
    sender = rng.integers(0, 40, n)
    if noise == "payload":
        work = 1 + rng.choice([0.002, 0.008]) * bytes_of
    elif noise == "hidden":
        work = np.exp(rng.choice([0.03, 0.1, 0.25]) * rng.normal(size=n))
    elif noise == "bursts":  # a caller repeats the same work
        sender = np.repeat(np.arange(n), 1 + rng.poisson(6, n))[:n]
        work = np.exp(rng.choice([0.03, 0.1, 0.25]) * rng.normal(size=n))[sender]
    adds = (rules.slots[kind] > 0) & ~failed[kind]
    items = np.cumsum(adds) * (300 / max(1, adds.sum()))
    parts = {part: np.zeros(n) for part in Part}
    writes = {name: np.zeros(n, np.int64) for name in ("slots_created", "slots_deleted")}
    changes: list[Change] = []
    truth: list[dict] = []
    last = 0
    for at, what in [*events, (n, None)]:
        rows = slice(last, at)
        paid, slots = _charge(kinds, rules, (kind[rows], work[rows], items[rows], bytes_of[rows]))
        for name, values in [*paid.items(), *slots.items()]:
            (parts if name in parts else writes)[name][rows] = values
        last = at
        if what is None:
            break
        factor = float(rng.choice([1.06, 1.12, 1.3, 1.6, 2.5, 10.0]))
        new, may = _change_rules(rng, rules, what, factor, usable)
        number = None
        if at != secret:
            number = len(changes)
            changes.append(Change(int(versions[at - 1]) + 1, what, str(number), may))
            if rng.random() >= effects:
                continue
        for j in range(count):
            near = np.flatnonzero(kind == j)
            near = near[np.argsort(np.abs(near - at))[:400]]
            if not len(near):
                continue
            same = (kind[near], work[near], np.full(len(near), items[min(at, n - 1)]), bytes_of[near])
            (a, old), (b, now) = _charge(kinds, rules, same), _charge(kinds, new, same)
            turned = bool((old["slots_created"] != now["slots_created"]).any())
            truth += [
                {
                    "position": at,
                    "change": number,
                    "part": part,
                    "kind": j,
                    "before": float(a[part].mean()),
                    "after": float(b[part].mean()),
                    "writes": turned,
                }
                for part in Part
                if a[part].mean() != b[part].mean()
            ]
        rules = new
    frame = pd.DataFrame(
        {
            "ledger_version": versions,
            **{part.column: parts[part].astype(np.int64) for part in Part},
            "gas_unit_price": np.where(rng.random(n) < 0.1, 150, OCTAS),
            "success": ~failed[kind],
            "abort_code": pd.array(np.where(failed[kind], 7, 0), dtype="Int64"),
            **writes,
            "payload_bytes": bytes_of,
            "sender": sender,
        }
    )
    frame.loc[~failed[kind], "abort_code"] = pd.NA
    return History(frame, changes, kind, truth, {"noise": noise, "growing": growing, "mix": way, "calls": n})
