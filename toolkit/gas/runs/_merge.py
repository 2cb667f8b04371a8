"""Merging: the runs of all shards of a study become the run that one machine would have made."""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import structs

from toolkit._present.files import checked_path
from toolkit._present.text import visible
from toolkit.errors import StudyError
from toolkit.frames._columns import plain_rows
from toolkit.gas._findings import Explanation
from toolkit.gas._observations import Cause
from toolkit.gas._steps import steps_of
from toolkit.gas._tables import step_row
from toolkit.gas.plan._plan import WHOLE, Shard, StudySpec, study_digest
from toolkit.gas.plan._ranges import joined_ranges
from toolkit.gas.runs._completion import finish, prove_whole
from toolkit.gas.runs._job import Job
from toolkit.gas.runs._manifest import CommittedRead, Manifest, NodeRun, ShardRun
from toolkit.gas.runs._scan import rows_digest, turning_points
from toolkit.gas.runs._store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


_SAME = ("node", "chain_id", "first", "last", "step", "versions", "committed", "anchor")


class _Part(NamedTuple):
    """The run of one shard."""

    store: RunStore
    manifest: Manifest
    shard: Shard


def merge_runs(paths: Iterable[str | Path], out: str | Path, load: Callable[[Mapping[str, Any]], StudySpec]) -> Path:
    """Merge the runs of all shards of a study and return the folder of the merged run; see `Run.merge`.

    Parameters
    ----------
    paths : iterable of str or Path
    out : str or Path
    load : callable
        Makes what a study asks for from its document in a manifest.
    """
    parts = sorted((_opened(Path(path)) for path in paths), key=lambda part: part.shard)
    if not parts:
        raise StudyError("merge: expected the folders of all shards of a study, got none")
    _check_shards(parts)
    _check_agreement(parts)
    try:
        target = checked_path(out)
    except OSError as error:
        raise StudyError(f"merge: {visible(out)}: {error.strerror}; choose another folder") from None
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StudyError(f"{target} is not empty; choose another folder for the merged run")
    building = target.with_name(f".{target.name}.merging-{os.getpid()}")
    try:
        building.parent.mkdir(parents=True, exist_ok=True)
        _build(parts, RunStore(building), load(parts[0].manifest.study))
        building.replace(target)
    except OSError as error:
        raise StudyError(f"{target} could not be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _opened(path: Path) -> _Part:
    store = RunStore(path)
    manifest = store.manifest()
    if not manifest.shard:
        raise StudyError(
            f"{path} is not the run of a shard, as study.run(shard=(2, 5)) or study run --shard 2/5 writes"
        )
    if not manifest.complete:
        raise StudyError(f"{path} is not complete; run its shard {manifest.shard} again to continue")
    if rows_digest(store) != manifest.rows_digest:
        raise StudyError(
            f"{path} does not have the rows with which it was completed: a part was changed, removed or added"
        )
    return _Part(store, manifest, Shard.parse(manifest.shard))


def _check_shards(parts: Sequence[_Part]) -> None:
    """Check that each shard is there once."""
    numbers = sorted({part.shard.of for part in parts})
    if len(numbers) > 1:
        raise StudyError(f"shards are of different divisions: some of {numbers[0]}, some of {numbers[-1]}")
    by_shard: dict[Shard, Path] = {}
    for part in parts:
        if part.shard in by_shard:
            raise StudyError(f"{by_shard[part.shard]} and {part.store.path} are both shard {part.shard}")
        by_shard[part.shard] = part.store.path
    missing = [
        f"{place}/{numbers[0]}" for place in range(1, numbers[0] + 1) if Shard(place, numbers[0]) not in by_shard
    ]
    if missing:
        raise StudyError(f"shards are missing: {', '.join(missing)}")


def _check_agreement(parts: Sequence[_Part]) -> None:
    """Check that the shards are of the same study, resolved to the same versions of the same history."""
    first = parts[0]
    for part in parts[1:]:
        sides = f"{first.store.path} and {part.store.path}"
        if study_digest(part.manifest.study) != study_digest(first.manifest.study):
            raise StudyError(f"{sides} are shards of different studies")
        for one, other in zip(first.manifest.nodes, part.manifest.nodes, strict=True):
            for name in _SAME:
                ours, theirs = getattr(one, name), getattr(other, name)
                if ours != theirs:
                    got = f"{ours!s:.80} and {theirs!s:.80}"
                    raise StudyError(f"{sides} cannot be merged: {name} of {one.node} is {got}")


def _build(parts: Sequence[_Part], store: RunStore, spec: StudySpec) -> None:
    """Write the merged run, and check by the plan alone that it is complete, whatever its shards say."""
    first = parts[0].manifest
    plans = tuple(_joined(sides) for sides in zip(*(part.manifest.nodes for part in parts), strict=True))
    manifest = Manifest(
        study=first.study,
        study_digest=first.study_digest,
        fingerprints=first.fingerprints,
        nodes=plans,
        shard=None,
        started_at=min((part.manifest.started_at for part in parts if part.manifest.started_at), default=None),
        complete=False,
        shards=tuple(
            ShardRun(**{name: getattr(part.manifest, name) for name in ShardRun.__struct_fields__}) for part in parts
        ),
        resumed_rows=sum(part.manifest.resumed_rows or 0 for part in parts),
    )
    store.make_folder()
    store.create(manifest)
    for part in parts:
        for table in part.store.tables():
            store.add(table)
    if (timeline := parts[0].store.timeline()) is not None:
        store.write_timeline(timeline)
    job = Job(spec, WHOLE, store)
    prove_whole(job, manifest)
    rows, between = _steps(parts, store)
    finish(job, structs.replace(manifest, steps_between_shards=between), rows)


def _joined(plans: Sequence[NodeRun]) -> NodeRun:
    """Return the plan of all shards on one node, with what they have read together."""
    read = [plan.committed_read for plan in plans if plan.committed_read is not None]
    if not read:
        return plans[0]
    ranges = joined_ranges(one for part in read for one in part.ranges)
    missing = sorted(one for part in read for one in part.missing)
    joined = CommittedRead(tuple(ranges), sum(part.rows for part in read), tuple(missing))
    return structs.replace(plans[0], committed_read=joined)


def _steps(parts: Sequence[_Part], store: RunStore) -> tuple[list[dict[str, Any]], int]:
    """Return the steps of views with the causes that the shards found, and the number of steps between two shards.

    A shard may have located a step, or several, between two of its observations; a step between two shards has none.
    """
    observed = steps_of(turning_points(store))
    ends: dict[tuple[str, str], list[int]] = {}
    for step in observed:
        ends.setdefault((step.node, step.fingerprint), []).append(step.version_after)
    found: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for part in parts:
        if (frame := part.store.steps()) is not None:
            for row in plain_rows(frame):
                call = row["node"], row["fingerprint"]
                # The step between observations that it is part of.
                after = ends[call][bisect_left(ends[call], row["version_after"])]
                found.setdefault((*call, after), []).append(row)
    why = Explanation(
        Cause.UNKNOWN,
        "the step is between two shards, so neither searched its cause; run the study into this folder to find it",
    )
    keys = [(step, (step.node, step.fingerprint, step.version_after)) for step in observed]
    rows = [row for step, key in keys for row in found.get(key) or [step_row(step, why)]]
    return rows, sum(key not in found for _, key in keys)
