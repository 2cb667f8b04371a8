"""The folder of a run: Parquet parts, ``run.json`` and ``steps.parquet``, all written atomically.

The last part is rewritten, longer, until it has 10,000 rows; then a new part is started. At any moment, each stored row
is therefore in exactly one part, even if the process is killed. Parquet's checksums reveal pages that were corrupted on
the disk.
"""

from __future__ import annotations

import errno
import re
import warnings
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from msgspec import structs

from toolkit._present.files import check_regular, checked_path, other_file, read_text_file, remove_left_overs, replacing
from toolkit._present.text import visible
from toolkit.archive._lock import locked
from toolkit.dtypes import read_parquet, to_arrow, to_pandas
from toolkit.dtypes._tables import write_frame
from toolkit.errors import RunStopped, StudyError, ToolkitError
from toolkit.frames._calls import NO_ANSWER
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import OBSERVATIONS, STEPS
from toolkit.gas._observations import Source
from toolkit.gas.runs._manifest import Manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

    from toolkit.client._node import Node
    from toolkit.client._progress import ProgressHook
    from toolkit.gas._study import Study
    from toolkit.gas.runs._manifest import NodeRun


# Number of rows from which on a part is not rewritten.
PART_ROWS = 10_000
_MANIFEST = "run.json"
_STEPS = "steps.parquet"
_PART = re.compile(r"part-\d{8}\.parquet")
_TEXTS = [field.name for field in OBSERVATIONS.arrow if pa.types.is_string(field.type)]
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, MemoryError, pa.ArrowException)


# What identifies an observation of a run; the fingerprint depends on the source too.
KEY = ("node", "fingerprint", "ledger_version")


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The order of nodes and calls in a study, which sorts rows by node, call, then version.

    Attributes
    ----------
    nodes : tuple of str
    fingerprints : tuple of str
    """

    nodes: tuple[str, ...]
    fingerprints: tuple[str, ...]

    def keys(self, table: pa.Table) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Return the positions of node and call and the version of each row; unknown nodes and calls are last."""
        nodes, calls = _places(table["node"], self.nodes), _places(table["fingerprint"], self.fingerprints)
        return nodes, calls, table["ledger_version"].to_numpy()

    def sorted(self, table: pa.Table) -> pa.Table:
        """Return the sorted rows; a table that is already sorted is returned unchanged."""
        nodes, calls, versions = self.keys(table)
        places = np.lexsort((versions, calls, nodes))
        return table if bool((places[1:] > places[:-1]).all()) else table.take(pa.array(places))


def _places(column: pa.ChunkedArray, names: Sequence[str]) -> NDArray[Any]:
    """Return the position of each text in `names`; ``len(names)`` for a text that is not in it."""
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    places = coded.unify_dictionaries().to_pandas().cat.set_categories(list(names)).cat.codes.to_numpy()
    return np.where(places < 0, np.int32(len(names)), places)


# The columns that `read_again` needs.
AGAIN = ("error_code", "source")


def read_again(table: pa.Table) -> pa.ChunkedArray:
    """Return which rows the next attempt must read again: calls without a response, and missing committed transactions.

    Parameters
    ----------
    table : pyarrow.Table
        Table with the columns `AGAIN`.
    """
    errors = table["error_code"]
    return pc.or_(unanswered(errors), pc.and_(pc.equal(table["source"], Source.COMMITTED), errors.is_valid()))


def unanswered(error_codes: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which calls got no response, from their error codes."""
    return pc.is_in(error_codes, pa.array(sorted(NO_ANSWER)))


# the folder -----------------------------------------------------------------------------------------------------------


class RunStore:
    """The files of one run.

    Parameters
    ----------
    path : Path
        Folder of the run.

    Attributes
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = path / "parts"
        self._check_lock: Callable[[], None] = _unlocked
        self._order: RowOrder | None = None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock while the block runs. Nothing is written if the folder is moved or removed.

        Raises
        ------
        StudyError
            See `lock.locked`.
        """
        with locked(self.path) as check:
            self._check_lock = check
            try:
                yield
            finally:
                self._check_lock = _unlocked

    def exists(self) -> bool:
        """Return whether the folder holds a run."""
        return (self.path / _MANIFEST).is_file()

    def make_folder(self) -> bool:
        """Create the folder if it does not exist, and return whether it was created."""
        try:
            missing = not checked_path(self.path).exists()
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"run folder {self.path} cannot be created: {error.strerror}") from None
        return missing

    def check_unused(self) -> None:
        """Raise StudyError if the folder has files, but no run."""
        if (other := other_file(self.path, _MANIFEST, "run.lock")) is not None:
            raise StudyError(f"{self.path} contains {visible(other)!r} but no {_MANIFEST}; choose an empty folder")

    def create(self, manifest: Manifest) -> Manifest:
        """Create a run in an empty or missing folder; return its manifest."""
        self.make_folder()
        return self.write_manifest(manifest)

    def discard(self) -> None:
        """Remove the files of a run, of whichever study; other files are not changed.

        Raises
        ------
        StudyError
            If ``run.json`` cannot be read, so that the folder may be another program's.
        """
        if not self.exists():
            return
        self.manifest()
        for place in (*self.part_files(), self.path / _STEPS):
            place.unlink(missing_ok=True)
        with suppress(OSError):  # missing, or with files of others
            self._parts.rmdir()
        # Last: a folder that has other files and no run.json cannot be used again.
        (self.path / _MANIFEST).unlink()

    def manifest(self) -> Manifest:
        """Return the content of ``run.json``.

        Raises
        ------
        StudyError
            If the file is missing, is damaged or was written by another program. The message says what can be
            recovered.
        """
        try:
            place = checked_path(self.path) / _MANIFEST
        except OSError as error:
            raise StudyError(f"{visible(self.path)} is not a run folder: {error.strerror}") from None
        try:
            return Manifest.of_text(read_text_file(place))
        except OSError as error:
            below = next((f"; {visible(one.parent)} is one" for one in sorted(place.parent.glob(f"*/{_MANIFEST}"))), "")
            kept = self._kept() or below or f"; `ledger-toolkit study run STUDY --out {self.path}` makes one"
            raise StudyError(f"{self.path} is not a run folder: {_MANIFEST}: {error.strerror}{kept}") from None
        except ValueError as error:
            raise StudyError(f"{place} {error}{self._kept()}") from None

    def _kept(self) -> str:
        """Return the part of a message about the observations of a run without a usable ``run.json``."""
        if not self.part_files():
            return ""
        return (
            f". Without it the run cannot be continued; run the study into another folder. The observations in "
            f"{self._parts} can be read with pandas.read_parquet"
        )

    def write_manifest(self, manifest: Manifest) -> Manifest:
        """Write ``run.json``; return the manifest."""
        self._write(self.path / _MANIFEST, lambda file: file.write(manifest.text()))
        self._order = None
        return manifest

    @property
    def order(self) -> RowOrder:
        """The order of the run's rows: by node and call as in the study, then by version."""
        if self._order is None:  # each write of rows sorts them, and ``run.json`` may have long timelines
            manifest = self.manifest()
            self._order = RowOrder(tuple(plan.node for plan in manifest.nodes), manifest.fingerprints)
        return self._order

    def part_files(self) -> list[Path]:
        """Return the parts in the order in which they were started."""
        self._check_lock()  # a removed folder must not look like one without parts
        return sorted(place for place in self._parts.glob("part-*.parquet") if _PART.fullmatch(place.name))

    def mend(self) -> None:
        """Prepare an existing folder for writing: remove files left by a killed process, and rename damaged parts.

        Warns
        -----
        UserWarning
            For each damaged part, whose rows are read again, and for damaged steps.
        """
        try:
            self.steps()
        except StudyError:
            _set_aside(self.path / _STEPS, "damaged", "steps and causes will be computed")
        for folder in (self.path, self._parts):
            remove_left_overs(folder, age_s=0)  # the run is locked: nobody else writes into it
        for place in self.part_files():
            try:
                self._read(place, OBSERVATIONS.names, _TEXTS)  # all columns: a damaged page shows only in its checksum
            except _UNREADABLE:
                _set_aside(place, "damaged or truncated", "its rows will be read")

    def rows(self) -> int:
        """Return the number of rows, from the metadata of the parts."""
        return sum(_readable(place, _count) for place in self.part_files())

    def add(self, table: pa.Table) -> None:
        """Write observations. Once this returns, they survive the end of the process and a power failure.

        Parameters
        ----------
        table : pyarrow.Table
            Rows with the schema of the observation frame.

        Raises
        ------
        RunStopped
            If the observations cannot be written, such as on a full disk. Rows that were written before are not
            affected.
        """
        if not table.num_rows:
            return
        number, tables = 0, [table]
        if files := self.part_files():
            number = int(files[-1].stem.removeprefix("part-"))
            if _readable(files[-1], _count) >= PART_ROWS:
                number += 1
            else:
                tables.insert(0, _readable(files[-1], lambda at: self._read(at, OBSERVATIONS.names)))
        whole = self.order.sorted(pa.concat_tables(tables))
        self._write_frame(self._parts / f"part-{number:08d}.parquet", to_pandas(whole))

    def drop_unanswered(self) -> None:
        """Remove the observations that must be read again; parts without such rows are not rewritten."""
        for place in self.part_files():
            if not pc.any(read_again(_readable(place, lambda at: self._read(at, AGAIN)))).as_py():
                continue
            whole = _readable(place, lambda at: self._read(at, OBSERVATIONS.names))
            kept = whole.filter(pc.invert(read_again(whole)))
            if len(kept):
                self._write_frame(place, to_pandas(kept))
            else:
                place.unlink()

    def tables(self, columns: Sequence[str] | None = None, *, coded: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Read the parts one by one.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read; all by default.
        coded : sequence of str
            Text columns to return dictionary-encoded, with each text once and a code per row.

        Yields
        ------
        pyarrow.Table
        """
        names = list(columns or OBSERVATIONS.names)
        for place in self.part_files():
            yield _readable(place, lambda at: self._read(at, names, coded))

    def dataset(self) -> ds.Dataset:
        """Return the parts as a lazy dataset."""
        return ds.dataset([str(place) for place in self.part_files()], schema=OBSERVATIONS.arrow, format="parquet")

    def observations(self) -> pd.DataFrame:
        """Return all rows as an observation frame, by node and call in the order of the study, then by version."""
        parts = list(self.tables(coded=_TEXTS))
        if not parts:
            return rows_frame(OBSERVATIONS, {})
        # Sorted while texts are codes: a million rows are then a tenth of the bytes to move.
        table = self.order.sorted(pa.concat_tables(parts).unify_dictionaries())
        del parts
        return to_pandas(table.cast(OBSERVATIONS.arrow))

    def steps(self) -> pd.DataFrame | None:
        """Return the stored steps; None if there are none.

        Raises
        ------
        StudyError
            If the file is damaged.
        """
        place = self.path / _STEPS
        if not place.exists():
            return None
        try:
            frame = read_parquet(place)
            if list(frame.columns) == STEPS.names:
                return to_pandas(to_arrow(frame).cast(STEPS.arrow))  # earlier versions stored gas as integers
            why = f"its columns are not those of the {STEPS.name}"
        except (ToolkitError, *_UNREADABLE) as error:
            why = str(error)
        raise StudyError(
            f"{place} cannot be read ({why}); the observations are not affected. To find the steps and their causes "
            "again, run the same study into this folder"
        )

    def write_steps(self, frame: pd.DataFrame) -> None:
        """Write the steps with their causes."""
        self._write_frame(self.path / _STEPS, frame)

    def _write_frame(self, place: Path, frame: pd.DataFrame) -> None:
        self._write(place, lambda file: write_frame(frame, file))

    def _write(self, place: Path, write: Callable[[BinaryIO], Any]) -> None:
        """Write a file whole or not at all, and wait until it is on the disk."""
        self._check_lock()
        try:
            if place.parent != self.path:
                place.parent.mkdir(exist_ok=True)
            with replacing(place, durable=True) as file:
                write(file)
        except OSError as error:
            self._check_lock()  # a removed folder is the cause to report
            raise RunStopped(
                f"{place} could not be written: {error.strerror or error}. The observations written earlier are "
                "kept. To continue, fix the cause and run the same study into the same folder"
            ) from error

    # reading parts --------------------------------------------------------------------------------------------

    def _read(self, place: Path, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
        """Read columns of a part; the checksums of its pages are verified."""
        check_regular(place)  # a named pipe would be waited for
        with pq.ParquetFile(place, read_dictionary=list(coded), page_checksum_verification=True) as file:
            if file.schema_arrow.names != OBSERVATIONS.names:
                raise ValueError("its columns are not observation columns")
            table = file.read(columns=list(names)).select(list(names))
        return table if coded else table.cast(pa.schema([OBSERVATIONS.arrow.field(name) for name in names]))


@dataclass(slots=True)
class Job:
    """A study that is read into a folder.

    Attributes
    ----------
    study : Study
    store : RunStore
        Has the observations of earlier attempts.
    nodes : tuple of Node
        One per node of the study.
    executor : Executor or None
        If None, views are read in this process.
    max_tasks : int
        Maximum number of ranges in flight on the executor.
    progress : bool or callable
    manifest : Manifest
        Known once the run is opened.
    """

    study: Study
    store: RunStore
    nodes: tuple[Node, ...]
    executor: Executor | None
    max_tasks: int
    progress: bool | ProgressHook
    manifest: Manifest = field(init=False)

    def plans(self) -> list[tuple[Node, NodeRun]]:
        """Return each node with its plan."""
        return list(zip(self.nodes, self.manifest.nodes, strict=True))

    def write(self, **changes: Any) -> None:
        """Change the manifest, and write it."""
        self.manifest = self.store.write_manifest(structs.replace(self.manifest, **changes))

    def note(self, node: str, **changes: Any) -> None:
        """Change a node's entry in the manifest, and write it."""
        nodes = self.manifest.nodes
        self.write(nodes=tuple(structs.replace(plan, **changes) if plan.node == node else plan for plan in nodes))


def _set_aside(place: Path, damage: str, result: str) -> None:
    """Rename a damaged file, so that its name is free and its content is kept; warn about it and say what follows."""
    aside = place.with_name(f"{place.stem}.damaged-{place.lstat().st_mtime_ns}")
    try:
        place.replace(aside)
    except OSError as error:
        raise StudyError(f"{place} is damaged and cannot be renamed: {error.strerror}") from None
    warnings.warn(f"{place} is {damage}; renamed to {aside.name}; {result} again", UserWarning, stacklevel=3)


def _unlocked() -> None:
    """Do nothing; used for a folder that is only read or belongs to this process alone."""


def _count(place: Path) -> int:
    """Return the number of rows of a part, from its footer."""
    if check_regular(place) is None:  # a named pipe would be waited for
        raise FileNotFoundError(errno.ENOENT, "the file was removed", str(place))
    return int(pq.read_metadata(place).num_rows)


def _readable(place: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(place)
    except _UNREADABLE as error:
        raise StudyError(
            f"{place} cannot be read ({error}). To rename it and read its rows again, run the same study into this "
            "folder"
        ) from None
