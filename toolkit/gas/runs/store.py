"""A run on disk: Parquet parts and ``run.json``. Every file is written beside its place, then moved into it.

Parts are begun with the last one at 10,000 rows or more: until then that one is written anew, longer. So at any moment
each row that was kept is in exactly one part, whatever was killed when.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from toolkit.dtypes import read_parquet, to_pandas
from toolkit.dtypes.parquet import write_frame
from toolkit.errors import RunStopped, StudyError, ToolkitError
from toolkit.frames.build import rows_frame
from toolkit.frames.schema import OBSERVATIONS
from toolkit.gas.runs.locking import locked
from toolkit.gas.runs.ordering import Order
from toolkit.gas.runs.scan import unanswered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

__all__ = ["PART_ROWS", "RunStore"]

FORMAT = 1
PART_ROWS = 10_000
"""Fewest rows of a part that is not written again."""
_MANIFEST = "run.json"
_STEPS = "steps.parquet"
_ENTRIES = {"study": dict, "study_digest": str, "nodes": list, "complete": bool}
_PART = re.compile(r"part-\d{8}\.parquet")
_LEFT_OVER = re.compile(r"\.(run\.json|steps\.parquet|part-\d{8}\.parquet)\.\d+\.part")
_TEXTS = [field.name for field in OBSERVATIONS.arrow() if pa.types.is_string(field.type)]
_UNREADABLE = (OSError, ValueError, pa.ArrowException)


class RunStore:
    """The files of one run.

    Parameters
    ----------
    path : Path
        Folder of the run.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = path / "parts"
        self._order: Order | None = None
        self._last: tuple[int, pa.Table | None] | None = None

    def exists(self) -> bool:
        """Tell whether the folder holds a run."""
        return (self.path / _MANIFEST).is_file()

    def make_folder(self) -> bool:
        """Make the folder where it is missing, and tell whether it was."""
        try:
            missing = not self.path.exists()
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"run folder {self.path} cannot be made: {error.strerror}") from None
        return missing

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Start a run in an empty or missing folder."""
        self.make_folder()
        if any(self.part_files()):
            raise StudyError(f"{self.path} holds parts but no {_MANIFEST}; choose another folder")
        self.write_manifest(manifest)

    def discard(self, title: str) -> None:
        """Remove the files of a run of the study of that title, to begin anew; anything else in the folder stays."""
        if self.exists() and self.manifest()["study"].get("title") == title:
            with locked(self.path):
                for place in (*self.part_files(), self.path / _STEPS, self.path / _MANIFEST):
                    place.unlink(missing_ok=True)

    def manifest(self) -> dict[str, Any]:
        """Read ``run.json``."""
        place = self.path / _MANIFEST
        try:
            manifest = json.loads(place.read_text("utf-8"))
        except OSError as error:
            raise StudyError(f"{self.path} holds no run: {_MANIFEST}: {error.strerror}") from None
        except ValueError:
            raise StudyError(f"{place} is not JSON; the run cannot be used") from None
        known = isinstance(manifest, dict) and manifest.get("format") == FORMAT
        if not known or not all(isinstance(manifest.get(name), kind) for name, kind in _ENTRIES.items()):
            raise StudyError(f"{place} is not a run of format {FORMAT}; it was written by another version or program")
        return dict(manifest)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``run.json``."""
        text = json.dumps({"format": FORMAT, **manifest}, indent=1, sort_keys=True)
        self._write(self.path / _MANIFEST, lambda place: place.write_text(text + "\n", "utf-8"))
        self._order = None

    @property
    def order(self) -> Order:
        """The order of the run's rows: by node and call as in the study, then by version."""
        if self._order is None:
            self._order = Order.of_run(self.manifest()) if self.exists() else Order()
        return self._order

    def part_files(self) -> list[Path]:
        """Return the parts in the order they were begun."""
        return sorted(place for place in self._parts.glob("part-*.parquet") if _PART.fullmatch(place.name))

    def mend(self) -> None:
        """Make the folder fit to be written: what a killed writer left goes, parts that are damaged are set aside.

        Warns
        -----
        UserWarning
            Of each damaged part, whose rows are to be read again, and of damaged steps, which are removed.
        """
        try:
            self.steps()
        except StudyError:
            (self.path / _STEPS).unlink(missing_ok=True)
            warnings.warn(f"{self.path / _STEPS} is damaged; steps and their causes are found again", stacklevel=2)
        for place in (*self.path.glob(".*.part"), *self._parts.glob(".*.part")):
            if _LEFT_OVER.fullmatch(place.name):
                place.unlink(missing_ok=True)
        for place in self.part_files():
            try:
                _read(place, OBSERVATIONS.names, _TEXTS)  # whole: a bad page shows in its checksum alone
            except _UNREADABLE:
                aside = place.with_name(f"{place.stem}.damaged-{place.stat().st_mtime_ns}")
                place.replace(aside)
                warnings.warn(
                    f"{place} is damaged, cut short perhaps; renamed to {aside.name}, its rows are read again",
                    UserWarning,
                    stacklevel=2,
                )
        self._last = None

    def rows(self) -> int:
        """Return the number of rows, from the ends of the files alone."""
        return sum(_readable(place, lambda at: pq.read_metadata(at).num_rows) for place in self.part_files())

    def add(self, table: pa.Table) -> None:
        """Write observations, durably: when this returns, they survive the process and a loss of power.

        Parameters
        ----------
        table : pyarrow.Table
            Of the schema of observations.

        Raises
        ------
        RunStopped
            If they cannot be written, such as on a full disk; what was written before stays as it is.
        """
        if not table.num_rows:
            return
        number, tail = self._tail()
        whole = self.order.sorted(table if tail is None else pa.concat_tables([tail, table]))
        self._write_part(self._parts / f"part-{number:08d}.parquet", whole)
        full = whole.num_rows >= PART_ROWS
        self._last = (number + 1, None) if full else (number, whole)

    def drop_unanswered(self) -> None:
        """Remove observations that got no answer, so that they are read again: each part anew, or as it is."""
        for place in self.part_files():
            if not pc.any(unanswered(_readable(place, lambda at: _read(at, ["error_code"]))["error_code"])).as_py():
                continue
            whole = _readable(place, lambda at: _read(at, OBSERVATIONS.names))
            answered = whole.filter(pc.invert(unanswered(whole["error_code"])))
            if len(answered):
                self._write_part(place, answered)
            else:
                place.unlink()
        self._last = None

    def _write_part(self, place: Path, table: pa.Table) -> None:
        frame = to_pandas(table)
        self._write(place, lambda at: write_frame(frame, at))

    def _tail(self) -> tuple[int, pa.Table | None]:
        """Return the number of the part to write next, and the rows that are in it already."""
        if self._last is None:
            files = self.part_files()
            if not files:
                return 0, None
            number = int(files[-1].stem.removeprefix("part-"))
            table = _readable(files[-1], lambda at: _read(at, OBSERVATIONS.names))
            full = table.num_rows >= PART_ROWS
            self._last = (number + 1, None) if full else (number, table)
        return self._last

    def tables(self, columns: Sequence[str] | None = None, *, coded: Sequence[str] = ()) -> Iterator[pa.Table]:
        """Read the parts one by one.

        Parameters
        ----------
        columns : sequence of str, optional
            Columns to read; all by default.
        coded : sequence of str
            Text columns to give as dictionaries: a code per row, each text once.

        Yields
        ------
        pyarrow.Table
        """
        names = list(columns or OBSERVATIONS.names)
        for place in self.part_files():
            yield _readable(place, lambda at: _read(at, names, coded))

    def observations(self) -> pd.DataFrame:
        """Read all parts as one observation frame, by node and call in the order of the study, then by version."""
        parts = list(self.tables(coded=_TEXTS))
        if not parts:
            return rows_frame(OBSERVATIONS, {})
        # Texts stay codes until the rows are in order: a million rows are then a tenth of the bytes to move.
        table = self.order.sorted(pa.concat_tables(parts).unify_dictionaries())
        del parts
        return to_pandas(table.cast(OBSERVATIONS.arrow()))

    def steps(self) -> pd.DataFrame | None:
        """Read the steps, None where the run has not come that far."""
        place = self.path / _STEPS
        if not place.is_file():
            return None
        try:
            return read_parquet(place)
        except ToolkitError as error:
            raise StudyError(
                f"{place} cannot be read ({error}); run the same study into this folder: steps are found again"
            ) from None

    def write_steps(self, frame: pd.DataFrame) -> None:
        """Write the steps with their causes."""
        self._write(self.path / _STEPS, lambda place: write_frame(frame, place))

    def _write(self, place: Path, write: Callable[[Path], Any]) -> None:
        """Write to a temporary file in the same folder, see it on the disk, then move it into place."""
        part = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write(part)
            with part.open("r+b") as file:
                os.fsync(file.fileno())
            part.replace(place)
            _sync_folder(place.parent)
        except OSError as error:
            raise RunStopped(
                f"{place} could not be written: {error.strerror or error}; what was written before is kept. "
                "Mend the cause and run the same study into the same folder: it goes on from there"
            ) from error
        finally:
            with suppress(OSError):
                part.unlink(missing_ok=True)


def _readable(place: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(place)
    except _UNREADABLE as error:
        raise StudyError(
            f"{place} cannot be read ({error}); run the study again into this folder: the part is set aside and its "
            "rows are read again"
        ) from None


def _read(place: Path, names: Sequence[str], coded: Sequence[str] = ()) -> pa.Table:
    """Read columns of a part; bytes that changed on the disk are noticed by their checksums."""
    with pq.ParquetFile(place, read_dictionary=list(coded), page_checksum_verification=True) as file:
        if file.schema_arrow.names != OBSERVATIONS.names:
            raise ValueError("its columns are not those of observations")
        table = file.read(columns=list(names)).select(list(names)).replace_schema_metadata(None)
    return table if coded else table.cast(pa.schema([OBSERVATIONS.arrow().field(name) for name in names]))


def _sync_folder(folder: Path) -> None:
    """See a rename on the disk; Windows neither needs nor offers it."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
