"""Queries over the rows of a run, and their digest. Parts are read column by column to bound memory."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from toolkit.dtypes import to_pandas
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import failed, is_no_answer
from toolkit.gas._steps import COMPARED, OUTCOME_COLUMNS, Outcome, Step, outcome_of
from toolkit.gas.runs._store import AGAIN, KEY, RunStore, read_again

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray


# Columns that are not part of the digest of rows, since they depend on when and by what the ledger was read.
# A node counts as its position in the study, since its URL may have a random port. The head moves during a run.
# Messages are text of the node, which may contain its name or the head.
LEFT_OUT = ("node", "head_version", "error_message", "observed_at", "toolkit_version")


def versions_read(store: RunStore, node: str, *, failed: bool | None = None) -> dict[str, NDArray[np.int64]]:
    """Return the versions of each call that a run has read, sorted, by fingerprint.

    Parameters
    ----------
    store : RunStore
    node : str
    failed : bool, optional
        Only rows with an error (True) or without one (False); all by default.

    Returns
    -------
    dict of str to array
    """
    parts = []
    for table in store.tables([*KEY, "error_code"], coded=KEY[:2]):
        chosen = pc.equal(table["node"], node)
        if failed is not None:
            chosen = pc.and_(chosen, pc.equal(table["error_code"].is_valid(), failed))
        parts.append(table.select(KEY[1:]).filter(chosen))
    if not parts:
        return {}
    versions = pa.concat_tables(parts).unify_dictionaries().group_by("fingerprint").aggregate([(KEY[2], "list")])
    return {mark.as_py(): np.sort(some.values.to_numpy()) for mark, some in zip(*versions.columns, strict=True)}


def outcomes_read(store: RunStore, node: str, fingerprints: Iterable[str]) -> dict[str, dict[int, Outcome | None]]:
    """Return the outcomes of a step search's calls, by fingerprint and version; None for a call without a response."""
    known: dict[str, dict[int, Outcome | None]] = {mark: {} for mark in fingerprints}
    for table in store.tables([*KEY, *OUTCOME_COLUMNS]):
        mine = table.filter(pc.equal(table["node"], node))
        for _, mark, version, *outcome in zip(*(column.to_pylist() for column in mine.columns), strict=True):
            if mark in known:
                known[mark][version] = outcome_of(outcome)
    return known


def count_failures(store: RunStore) -> int:
    """Return the number of rows with an error, or with an execution that failed; see `failed`."""
    return sum(int(failed(to_pandas(table)).sum()) for table in store.tables(["error_code", "success"]))


def count_unanswered(store: RunStore) -> int:
    """Return the number of rows that must be read again; see `read_again`."""
    return sum(pc.sum(read_again(table)).as_py() or 0 for table in store.tables(AGAIN))


def failing_calls(store: RunStore) -> dict[tuple[str, str], dict[str | None, int]]:
    """Return the calls whose reads all failed, by node and label, with the number of rows by error code.

    Calls that got no response at all are not included, since they are read again.
    """
    found: dict[tuple[str, str], dict[str | None, int]] = {}
    for table in store.tables(["node", "label", "error_code"]):
        for row in table.group_by(table.column_names).aggregate([([], "count_all")]).to_pylist():
            codes = found.setdefault((row["node"], row["label"]), {})
            codes[row["error_code"]] = codes.get(row["error_code"], 0) + row["count_all"]
    dead = {call: codes for call, codes in sorted(found.items()) if None not in codes}
    return {call: codes for call, codes in dead.items() if not all(map(is_no_answer, codes))}


def compared_rows(store: RunStore) -> pa.Table:
    """Return the columns of all observations by which steps are found, in the order of the study."""
    parts = list(store.tables(COMPARED, coded=["node", "label", "fingerprint", "source", "node_build"]))
    return store.order.sorted(pa.concat_tables(parts) if parts else OBSERVATIONS.arrow.empty_table().select(COMPARED))


def with_messages(store: RunStore, steps: Iterable[Step], further: Iterable[Mapping[str, Any]] = ()) -> list[Step]:
    """Return steps with what the node says went wrong at their ends, from the store and from further observations."""
    steps = list(steps)
    failed = {at for step in steps for at, outcome in step.outcomes.items() if outcome and outcome[1:] != (True, None)}
    known = {tuple(row[name] for name in KEY): row["error_message"] for row in further}
    for table in store.tables([*KEY, "error_message"]) if failed else ():
        rows = table.filter(pc.is_in(table[KEY[2]], pa.array(sorted(failed), pa.int64())))
        known |= {tuple(key): text for *key, text in zip(*(one.to_pylist() for one in rows.columns), strict=True)}

    def said(step: Step, version: int) -> str | None:
        return known.get((step.node, step.fingerprint, version))

    return [
        replace(
            step,
            error_message_before=said(step, step.version_before),
            error_message_after=said(step, step.version_after),
        )
        for step in steps
    ]


def _numbers(column: pa.ChunkedArray) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return a column as numbers with 0 for null, and which values are null. Equal pairs mean equal values."""
    nulls = column.is_null().to_numpy()
    if pa.types.is_dictionary(column.type):
        chunks = column.unify_dictionaries().chunks
        column = pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    elif pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return column.fill_null(0).to_numpy(), nulls


def rows_digest(store: RunStore) -> str:
    """Return a digest of a run's rows: 32 hex digits.

    Two runs of one study on one ledger have the same digest. It does not depend on the executor, the order of reads,
    the number of attempts or the division into parts.

    Parameters
    ----------
    store : RunStore

    Returns
    -------
    str
        Digest of every row, sorted by node, call and version, over all columns except `LEFT_OUT`.
    """
    digest = hashlib.blake2b(digest_size=16)
    keys = list(store.tables(KEY, coded=KEY[:2]))
    if not keys:
        return digest.hexdigest()
    nodes, calls, versions = store.order.keys(pa.concat_tables(keys))
    order = np.lexsort((versions, calls, nodes))
    digest.update(nodes[order].astype("<i4").tobytes())
    places = pa.array(order)
    columns = [field for field in OBSERVATIONS.arrow if field.name not in LEFT_OUT]
    # A million rows do not fit in memory: at a time, as many columns as have the values of one whole part.
    size = max(1, len(columns) // len(keys))
    for start in range(0, len(columns), size):
        some = columns[start : start + size]
        table = pa.concat_tables(store.tables([field.name for field in some]))
        for field in some:
            digest.update(f"{field.name} {field.type}\n".encode())
            for data in _canonical(table[field.name].combine_chunks().take(places)):
                digest.update(data)
    return digest.hexdigest()


def _canonical(array: pa.Array) -> tuple[bytes, ...]:
    """Return a column as bytes that depend only on its values: nulls, lengths of texts, values."""
    if not pa.types.is_string(array.type):
        values, nulls = _numbers(pa.chunked_array([array]))
        return nulls.tobytes(), values.astype(values.dtype.newbyteorder("<")).tobytes()
    texts = array.fill_null("")
    lengths = pc.binary_length(texts).to_numpy(zero_copy_only=False)
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    content = data[int(ends[0]) : int(ends[-1])].to_pybytes() if data else b""
    return nulls.tobytes(), lengths.astype("<i4").tobytes(), content
