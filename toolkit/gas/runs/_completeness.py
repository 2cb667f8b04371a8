"""Complete runs: the proof that every planned observation is there once, and merging the runs of all shards."""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from toolkit._present.files import checked_path
from toolkit._present.text import visible
from toolkit.errors import StudyError
from toolkit.frames._columns import plain_columns
from toolkit.gas._findings import Explanation
from toolkit.gas._observations import Cause, Source
from toolkit.gas._plan import WHOLE, Shard, next_versions, planned_of, shard_calls, shard_range
from toolkit.gas._steps import steps_of
from toolkit.gas._tables import step_row, steps_frame
from toolkit.gas.runs._committed import CommittedRead, committed_calls, judge_committed, missing_transactions
from toolkit.gas.runs._rows import (
    count_failures,
    count_unanswered,
    outcomes_read,
    rows_digest,
    turning_points,
    versions_read,
)
from toolkit.gas.runs._store import RunStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas._calls import Call
    from toolkit.gas._study import Study

_MAX_NAMED = 3


def prove_whole(store: RunStore, study: Study, plans: Sequence[Mapping[str, Any]], shard: Shard) -> None:
    """Check that a run has every observation that its study and its resolved plans ask for, each once.

    Parameters
    ----------
    store : RunStore
    study : Study
    plans : sequence of mapping
        The study as resolved on each node.
    shard : Shard
        The part of the study that the run reads.

    Raises
    ------
    StudyError
        If an observation is missing, duplicated or not part of the study; the message names the call and the first
        versions.
    """
    for plan in plans:
        read = versions_read(store, plan["node"])
        names = {call.fingerprint: call.name for call in study.calls}
        strange = sorted(read.keys() - names.keys())
        if strange:
            raise StudyError(
                f"{store.path} has observations of calls that are not in its study: {strange[:_MAX_NAMED]}"
            )
        for mark, versions in read.items():
            _refuse(store, names[mark], "there more than once", versions[1:][versions[1:] == versions[:-1]])
        for call, missing in _missing(store, study, plan, shard, read):
            _refuse(store, call.name, "missing", missing)


def summary(store: RunStore) -> dict[str, Any]:
    """Return the entries of the manifest that depend on the observations alone, once all are there."""
    return {
        "counts": {
            "observations": store.rows(),
            "failures": count_failures(store),
            "unanswered": count_unanswered(store),
        },
        "rows_digest": rows_digest(store),
    }


def closing(store: RunStore) -> dict[str, Any]:
    """Return the entries that complete the manifest of a run, once its steps are written."""
    return {
        "steps_checksum": store.steps_checksum(),
        "timeline_checksum": store.timeline_checksum(),
        "finished_at": datetime.now(UTC).isoformat(),
        "complete": True,
    }


def _missing(
    store: RunStore, study: Study, plan: Mapping[str, Any], shard: Shard, read: Mapping[str, NDArray[np.uint64]]
) -> Iterator[tuple[Call, Sequence[int] | NDArray[np.uint64]]]:
    """Yield each call with its missing versions; an empty list if nothing is missing."""
    if study.versions.search is None:
        planned = np.array(planned_of(plan, shard), np.uint64)
        for call in study.calls:
            if call.source == Source.VIEW:
                found = read.get(call.fingerprint, planned[:0])
                _refuse(store, call.name, "not in its plan", found[~np.isin(found, planned)])
                yield call, planned[~np.isin(planned, found)]
    else:
        views = shard_calls(study, shard, Source.VIEW)
        outcomes = outcomes_read(store, plan["node"], [call.fingerprint for call in views])
        for call in views:
            yield call, next_versions(study, plan, outcomes[call.fingerprint])
    for call in shard_calls(study, shard, Source.SIMULATE):
        yield call, [] if call.fingerprint in read else [plan["head"]]
    committed = committed_calls(study)
    if committed and shard_range(plan, shard):
        good, failed = (versions_read(store, plan["node"], failed=failed) for failed in (False, True))
        lacking = missing_transactions(store, plan, committed, shard, good=good, failed=failed)
        yield from ((call, lacking[call.fingerprint]) for call in committed)


def _refuse(store: RunStore, name: str, what: str, versions: Sequence[int] | NDArray[np.uint64]) -> None:
    if len(versions):
        shown = ", ".join(str(int(version)) for version in versions[:_MAX_NAMED])
        more = ", ..." if len(versions) > _MAX_NAMED else ""
        raise StudyError(
            f"{store.path} is not complete: {len(versions):,} observations of {name!r} are {what} "
            f"(versions {shown}{more})"
        )


_SAME = ("node", "chain_id", "first", "last", "step", "versions", "committed", "anchor")
STEP_KEY = ("node", "fingerprint", "version_before", "version_after")
_OF_A_SHARD = ("shard", "started_at", "finished_at", "executor", "environment", "rows_digest", "counts", "resumed_rows")


class _Part(NamedTuple):
    """The run of one shard."""

    store: RunStore
    manifest: dict[str, Any]
    shard: Shard


def merge_runs(paths: Iterable[str | Path], out: str | Path, load: Callable[[Mapping[str, Any]], Study]) -> Path:
    """Merge the runs of all shards of a study and return the folder of the merged run; see `Run.merge`.

    Parameters
    ----------
    paths : iterable of str or Path
    out : str or Path
    load : callable
        Makes the study from its document in a manifest.
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
        _build(parts, RunStore(building), load(parts[0].manifest["study"]))
        building.replace(target)
    except OSError as error:
        raise StudyError(f"{target} could not be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return target


def _opened(path: Path) -> _Part:
    store = RunStore(path)
    manifest = store.manifest()
    if not manifest.get("shard"):
        raise StudyError(
            f"{path} is not the run of a shard, as study.run(shard=(2, 5)) or study run --shard 2/5 writes"
        )
    if not manifest["complete"]:
        raise StudyError(f"{path} is not complete; run its shard {manifest['shard']} again to continue")
    if rows_digest(store) != manifest["rows_digest"]:
        raise StudyError(
            f"{path} does not have the rows with which it was completed: a part was changed, removed or added"
        )
    return _Part(store, manifest, Shard.parse(manifest["shard"]))


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
        if part.manifest["study_digest"] != first.manifest["study_digest"]:
            raise StudyError(f"{sides} are shards of different studies")
        for one, other in zip(first.manifest["nodes"], part.manifest["nodes"], strict=True):
            for name in _SAME:
                if one.get(name) != other.get(name):
                    got = f"{_short(one.get(name))} and {_short(other.get(name))}"
                    raise StudyError(f"{sides} cannot be merged: {name} of {one['node']} is {got}")


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."  # noqa: PLR2004 - a line's worth


def _build(parts: Sequence[_Part], store: RunStore, study: Study) -> None:
    """Write the merged run, and check by the plan alone that it is complete, whatever its shards say."""
    first = parts[0].manifest
    plans = [_joined(parts, sides) for sides in zip(*(part.manifest["nodes"] for part in parts), strict=True)]
    store.make_folder()
    store.create(
        {
            **{name: first[name] for name in ("study", "study_digest", "fingerprints")},
            "nodes": plans,
            "shard": None,
            "started_at": min(part.manifest["started_at"] for part in parts),
            "complete": False,
        }
    )
    for part in parts:
        for table in part.store.tables():
            store.add(table)
    if (timeline := parts[0].store.timeline()) is not None:
        store.write_timeline(timeline)
    prove_whole(store, study, plans, WHOLE)
    steps, between = _steps(parts, store)
    rows = [row for plan in plans for row in judge_committed(store, study, plan, WHOLE)]
    if rows:
        committed = steps_frame(rows)
        steps = pd.concat([steps, committed], ignore_index=True) if len(steps) else committed
        steps.attrs = committed.attrs
    store.write_steps(steps)
    store.write_manifest(
        {
            **store.manifest(),
            "nodes": plans,
            "shards": [{name: part.manifest.get(name) for name in _OF_A_SHARD} for part in parts],
            "resumed_rows": sum(part.manifest["resumed_rows"] for part in parts),
            "steps_between_shards": between,
            **summary(store),
            **closing(store),
        }
    )


def _joined(parts: Sequence[_Part], plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the resolved plan of all shards on one node."""
    if not any("committed_read" in plan for plan in plans):
        return plans[0]
    read = [CommittedRead.of_entry(plan, part.shard) for part, plan in zip(parts, plans, strict=True)]
    return plans[0] | {"committed_read": CommittedRead.joined(read).entry()}


def _steps(parts: Sequence[_Part], store: RunStore) -> tuple[pd.DataFrame, int]:
    """Return the steps with the causes that the shards found, and the number of steps between two shards.

    A shard may have located a step, or several, between two of its observations; a step between two shards has none.
    """
    observed = steps_of(turning_points(store))
    ends: dict[tuple[str, str], list[int]] = {}
    for step in observed:
        ends.setdefault((step.node, step.fingerprint), []).append(step.version_after)
    found = [frame for part in parts if (frame := part.store.steps()) is not None]
    places = [place for frame in found for place in _observed_steps(frame, ends)]
    known = set(places)
    between = [step for step in observed if (step.node, step.fingerprint, step.version_after) not in known]
    why = Explanation(
        Cause.UNKNOWN,
        "the step is between two shards, so neither searched its cause; run the study into this folder to find it",
    )
    frame = pd.concat([*found, steps_frame([step_row(step, why) for step in between])], ignore_index=True)
    order = {(step.node, step.fingerprint, step.version_after): place for place, step in enumerate(observed)}
    keys = [*places, *((step.node, step.fingerprint, step.version_after) for step in between)]
    # Sorting is stable: the steps that a shard located between two observations keep their order.
    ordered = frame.iloc[sorted(range(len(keys)), key=lambda row: order[keys[row]])].reset_index(drop=True)
    ordered.attrs = steps_frame([]).attrs
    return ordered, len(between)


def _observed_steps(
    steps: pd.DataFrame, ends: Mapping[tuple[str, str], Sequence[int]]
) -> Iterator[tuple[str, str, int]]:
    """Yield for each step of a shard the step between observations that it is part of: node, call, version after."""
    columns = plain_columns(steps, ["node", "fingerprint", "version_after"])
    for node, mark, after in zip(*columns.values(), strict=True):
        versions = ends[node, mark]
        yield node, mark, versions[bisect_left(versions, after)]
