"""The folder of replays that can be resumed: ``replays.json`` says what is replayed, Parquet files have the rows."""

from __future__ import annotations

import hashlib
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from toolkit._present.files import other_file, replacing
from toolkit._present.text import visible
from toolkit.archive._lock import locked
from toolkit.dtypes import to_pandas
from toolkit.dtypes._tables import write_table
from toolkit.errors import RunStopped, StudyError
from toolkit.frames._calls import NO_ANSWER
from toolkit.frames._schema import REPLAYS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

FORMAT = 1
_ABOUT = "replays.json"


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder contains.

    Attributes
    ----------
    format : int
    plan : str
        The version plan as it was given, or the digest of a list of versions.
    function : str or None
    change : str
        Digest of the other code and schedule; empty if there are none.
    chain_id : int
    anchor : int
        The last version, by whose transaction the ledger is recognised.
    anchor_hash : str or None
    versions : list of int
        Sorted; a plan that ends at the head has the same versions whenever it is resumed.
    """

    format: int
    plan: str
    function: str | None
    change: str
    chain_id: int
    anchor: int
    anchor_hash: str | None
    versions: list[int]

    def differs(self, other: ReplayPlan) -> list[str]:
        """Return the names of what another plan asks for differently; its versions may have been resolved later."""
        names = ("format", "plan", "function", "change", "chain_id")
        return [name for name in names if getattr(self, name) != getattr(other, name)]


def versions_digest(versions: Sequence[int]) -> str:
    """Return the digest of a list of versions, which is its plan."""
    return f"versions {hashlib.blake2b(repr(list(versions)).encode(), digest_size=16).hexdigest()}"


def change_digest(modules: Mapping[bytes, bytes | None], schedule: Any) -> str:
    """Return the digest of a change; empty if nothing changes."""
    if not modules and schedule is None:
        return ""
    entries = None if schedule is None else sorted(getattr(schedule, "entries", schedule).items())
    version = getattr(schedule, "feature_version", None)
    return hashlib.blake2b(repr((sorted(modules.items()), version, entries)).encode(), digest_size=16).hexdigest()


class ReplayFolder:
    """Rows of replays on disk, in groups of versions."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def plan(self) -> ReplayPlan | None:
        """Return what the folder contains; None if it does not exist or is empty.

        Raises
        ------
        StudyError
            If the folder has other files, or its ``replays.json`` is damaged.
        """
        place = self.path / _ABOUT
        try:
            return msgspec.json.decode(place.read_bytes(), type=ReplayPlan)
        except FileNotFoundError:
            if self.path.is_dir() and (other := other_file(self.path, _ABOUT, "replay.lock")) is not None:
                found = f"contains {visible(other)!r} but no {_ABOUT}"
                raise StudyError(f"{self.path} {found}; choose another folder") from None
            return None
        except NotADirectoryError:
            raise StudyError(f"{self.path} is a file; choose another folder") from None
        except (msgspec.DecodeError, OSError) as error:
            raise StudyError(f"{place} is damaged ({visible(error, 200)}); choose another folder") from None

    @contextmanager
    def opened(self, wanted: ReplayPlan) -> Iterator[ReplayPlan]:
        """Lock the folder, and yield the plan to follow: the one in the folder, or `wanted` if it is new.

        Raises
        ------
        StudyError
            If the folder has replays of something else or of another ledger, or another process writes to it.
        RunStopped
            If the folder cannot be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise StudyError(f"{self.path} is not a folder") from None
        except OSError as error:
            raise RunStopped(f"{self.path} cannot be written: {error.strerror}; choose another folder") from None
        with locked(self.path, "replay"):
            found = self.plan()
            if found is None:
                self._write(_ABOUT, msgspec.json.encode(wanted))
                found = wanted
            elif differing := found.differs(wanted):
                raise StudyError(
                    f"{self.path} has replays of something else (different: {', '.join(differing)}); choose another "
                    "folder, or repeat the call with which it was made"
                )
            yield found

    def missing(self, groups: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        """Return the groups that have not been replayed, or of which the node did not answer a read."""
        return [group for group in groups if not self._is_done(group)]

    def _is_done(self, group: Sequence[int]) -> bool:
        place = self._place(group)
        if not place.exists():
            return False
        try:
            codes = pq.read_table(place, columns=["error_code"])["error_code"]
        except (pa.ArrowException, OSError):  # cut off by a disk that was full
            return False
        return not set(codes.to_pylist()) & NO_ANSWER

    def _place(self, group: Sequence[int]) -> Path:
        return self.path / f"{group[0]:020d}.parquet"

    def store(self, group: Sequence[int], rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of a group.

        Raises
        ------
        RunStopped
            If they cannot be written.
        """
        write_table(REPLAYS.table_of_rows(rows), buffer := BytesIO())
        self._write(self._place(group).name, buffer.getvalue())

    def _write(self, name: str, data: bytes) -> None:
        try:
            with replacing(self.path / name, durable=True) as file:
                file.write(data)
        except OSError as error:
            raise RunStopped(
                f"{self.path / name} cannot be written: {error.strerror}. What was replayed before is stored; repeat "
                "the call with the same folder to continue"
            ) from None

    def frame(self, groups: Sequence[Sequence[int]]) -> pd.DataFrame:
        """Return all rows, by version."""
        tables = [REPLAYS.completed(pq.read_table(self._place(group))) for group in groups]
        return to_pandas(pa.concat_tables(tables) if tables else REPLAYS.table({}))
