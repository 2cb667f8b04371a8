"""Proves that a run is whole: every planned reading is there, and none twice. And what a whole run says of itself."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from toolkit.errors import StudyError
from toolkit.gas.observing import Source
from toolkit.gas.planning import committed_range
from toolkit.gas.runs.reading import CommittedRead, next_versions, planned_of, shard_calls, shard_range
from toolkit.gas.runs.scan import count_failures, count_unanswered, outcomes_read, rows_digest, versions_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from toolkit.gas.runs.shards import Shard
    from toolkit.gas.runs.store import RunStore
    from toolkit.gas.study import Call, Study

__all__ = ["closing", "prove_whole"]

_MOST_NAMED = 3


def prove_whole(store: RunStore, study: Study, plans: Sequence[Mapping[str, Any]], shard: Shard) -> None:
    """Check the parts of a run against what its study and resolved plans ask for.

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
        If a reading is missing, there twice, or not of the study, naming the call and the first versions.
    """
    for plan in plans:
        read = versions_read(store, plan["node"])
        names = {call.fingerprint: call.name for call in study.calls}
        strange = sorted(read.keys() - names.keys())
        if strange:
            raise StudyError(
                f"{store.path} holds observations of calls that are not in its study: {strange[:_MOST_NAMED]}"
            )
        for mark, versions in read.items():
            _refuse(store, names[mark], "there more than once", versions[1:][versions[1:] == versions[:-1]])
        for call, missing in _missing(store, study, plan, shard, read):
            _refuse(store, call.name, "missing", missing)


def closing(store: RunStore) -> dict[str, Any]:
    """Return what the manifest of a complete run says beyond its beginning, once its steps are written."""
    return {
        "counts": {
            "observations": store.rows(),
            "failures": count_failures(store),
            "unanswered": count_unanswered(store),
        },
        "rows_digest": rows_digest(store),
        "steps_checksum": store.steps_checksum(),
        "finished_at": datetime.now(UTC).isoformat(),
        "complete": True,
    }


def _missing(
    store: RunStore, study: Study, plan: Mapping[str, Any], shard: Shard, read: Mapping[str, NDArray[np.uint64]]
) -> Iterator[tuple[Call, Sequence[int] | NDArray[np.uint64]]]:
    """Yield each call with the versions that are missing of it, none where it is whole."""
    if study.versions.search is None:
        planned = np.array(planned_of(plan, shard), np.uint64)
        for call in study.calls:
            if call.source == Source.VIEW:
                found = read.get(call.fingerprint, planned[:0])
                _refuse(store, call.name, "not of its plan", found[~np.isin(found, planned)])
                yield call, planned[~np.isin(planned, found)]
    else:
        views = shard_calls(study, shard, Source.VIEW)
        outcomes = outcomes_read(store, plan["node"], [call.fingerprint for call in views])
        for call in views:
            yield call, next_versions(study, plan, outcomes[call.fingerprint])
    for call in shard_calls(study, shard, Source.SIMULATE):
        yield call, [] if call.fingerprint in read else [plan["head"]]
    committed = [call for call in study.calls if call.source == Source.COMMITTED]
    for call in committed:
        yield call, _missing_transactions(store, committed, call, plan, shard)


def _missing_transactions(
    store: RunStore, calls: Sequence[Call], call: Call, plan: Mapping[str, Any], shard: Shard
) -> list[int]:
    """Return versions that are neither read nor covered by a row that says that they are missing."""
    versions = shard_range(plan, shard)
    if not versions:
        return []
    good, failed = (versions_read(store, plan["node"], failed=failed) for failed in (False, True))
    read = CommittedRead.noted(plan, calls, good)
    if read.to < versions[-1]:
        return [max(versions[0], read.to + 1)]
    first, last = committed_range(plan, call)
    nothing = np.empty(0, np.uint64)
    missing = []
    for start, end in read.missing:
        low, high = max(first, start), min(last, end)
        said, there = (_among(rows.get(call.fingerprint, nothing), low, high) for rows in (failed, good))
        if low <= high and not len(said) and len(there) <= high - low:
            missing.append(low)
    return missing


def _among(versions: NDArray[np.uint64], low: int, high: int) -> NDArray[np.uint64]:
    return versions[(versions >= low) & (versions <= high)]


def _refuse(store: RunStore, name: str, what: str, versions: Sequence[int] | NDArray[np.uint64]) -> None:
    if len(versions):
        shown = ", ".join(str(int(version)) for version in versions[:_MOST_NAMED])
        more = ", ..." if len(versions) > _MOST_NAMED else ""
        raise StudyError(
            f"{store.path} is not whole: {len(versions):,} readings of {name!r} are {what} (versions {shown}{more})"
        )
