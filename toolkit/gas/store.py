"""A run on disk: Parquet parts and ``run.json``. Every file is written beside its place, then moved into it."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from toolkit.dtypes import read_parquet, write_parquet
from toolkit.errors import StudyError
from toolkit.frames.build import rows_frame
from toolkit.frames.schema import OBSERVATIONS, STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pandas as pd

__all__ = ["RunStore"]

FORMAT = 1
_MANIFEST = "run.json"
_STEPS = "steps.parquet"
_PART = re.compile(r"part-\d{8}\.parquet")


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

    def exists(self) -> bool:
        """Tell whether the folder holds a run."""
        return (self.path / _MANIFEST).is_file()

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Start a run in an empty or missing folder."""
        try:
            self._parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"run folder {self.path} cannot be made: {error.strerror}") from None
        if any(self.part_files()):
            raise StudyError(f"{self.path} holds parts but no {_MANIFEST}; choose another folder")
        self.write_manifest(manifest)

    def discard(self, title: str) -> None:
        """Remove the files of a run of the study of that title, to begin anew; anything else in the folder stays."""
        if self.exists() and self.manifest()["study"].get("title") == title:
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
        if not known or not isinstance(manifest.get("study"), dict):
            raise StudyError(f"{place} is not a run of format {FORMAT}; it was written by another version or program")
        return dict(manifest)

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write ``run.json``."""
        text = json.dumps({"format": FORMAT, **manifest}, indent=1, sort_keys=True)
        self._write(self.path / _MANIFEST, lambda place: place.write_text(text + "\n", "utf-8"))

    def part_files(self) -> list[Path]:
        """Return the parts in the order they were written."""
        return sorted(place for place in self._parts.glob("part-*.parquet") if _PART.fullmatch(place.name))

    def add_part(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write observations as the next part; nothing is written where there are none."""
        frame = rows_frame(OBSERVATIONS, columns)
        if not len(frame):
            return
        files = self.part_files()
        number = int(files[-1].stem.removeprefix("part-")) + 1 if files else 0
        self._write(self._parts / f"part-{number:08d}.parquet", lambda place: write_parquet(frame, place))

    def observations(self) -> pd.DataFrame:
        """Read all parts as one observation frame."""
        frames = list(self.each_part())
        if not frames:
            return rows_frame(OBSERVATIONS, {})
        if len(frames) == 1:
            return frames[0]
        import pandas as pd

        joined = pd.concat(frames, ignore_index=True)
        joined.attrs = frames[0].attrs
        return joined

    def each_part(self) -> Iterator[pd.DataFrame]:
        """Read the parts one by one."""
        for place in self.part_files():
            try:
                yield read_parquet(place)
            except (OSError, ValueError) as error:
                raise StudyError(f"{place} cannot be read ({error}); move it away and run the study again") from None

    def steps(self) -> pd.DataFrame | None:
        """Read the steps, None where the run has not come that far."""
        place = self.path / _STEPS
        return read_parquet(place) if place.is_file() else None

    def write_steps(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Write the steps with their causes."""
        frame = rows_frame(STEPS, columns)
        self._write(self.path / _STEPS, lambda place: write_parquet(frame, place))

    def _write(self, place: Path, write: Callable[[Path], Any]) -> None:
        """Write to a temporary file in the same folder, then move it into place."""
        part = place.with_name(f".{place.name}.{os.getpid()}.part")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write(part)
            part.replace(place)
        except OSError as error:
            raise StudyError(f"{place} could not be written: {error.strerror or error}") from error
        finally:
            part.unlink(missing_ok=True)
