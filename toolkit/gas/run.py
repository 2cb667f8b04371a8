"""A finished or broken-off run, opened for reading."""

from __future__ import annotations

import shutil
import weakref
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit._present.text import visible
from toolkit.errors import StudyError
from toolkit.frames.columns import rows_frame
from toolkit.frames.schema import STEPS
from toolkit.gas.comparison import last_observations
from toolkit.gas.judged import COVERAGE_COLUMNS, Coverage, coverage_of
from toolkit.gas.runs.scan import failing_calls, rows_digest, turning_points
from toolkit.gas.runs.store import RunStore
from toolkit.gas.steps import Cause, step_columns, steps_of
from toolkit.gas.study import Study
from toolkit.gas.words import run_words

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

__all__ = ["Run"]

_MAX_NOTE = 1_000


class Run:
    """The observations of a study.

    Parameters
    ----------
    path : str or Path
        Folder of the run.
    temporary : bool, default False
        Remove the folder when the run is no longer used.

    Raises
    ------
    StudyError
        If the folder holds no run.
    """

    def __init__(self, path: str | Path, *, temporary: bool = False) -> None:
        self.path = Path(path)
        if temporary:
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
        self._store = RunStore(self.path)
        self.manifest: dict[str, Any] = self._store.manifest()
        self._digest: tuple[Any, str] | None = None

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open the run in a folder."""
        return cls(path)

    @classmethod
    def merge(cls, paths: Iterable[str | Path], out: str | Path) -> Run:
        """Merge the runs of all shards of a study into one run.

        Nothing is asked of a node. A step between two shards has the cause ``unknown``; running the study with the
        merged folder as `out` reads nothing again and finds it.

        Parameters
        ----------
        paths : iterable of str or Path
            Folders of complete runs, one per shard, in any order; they stay as they are.
        out : str or Path
            Folder of the merged run: missing or empty, and made whole or not at all.

        Returns
        -------
        Run

        Raises
        ------
        StudyError
            If a shard is missing, there twice, not complete or damaged; if shards are of different studies, chains,
            histories or resolved versions; or if a planned reading is missing or doubled in the whole.
        """
        from toolkit.gas.runs.merging import merge_runs

        return cls(merge_runs(paths, out))

    def __repr__(self) -> str:
        state = "complete" if self.complete else "not complete"
        return f"Run({str(self.path)!r}, {self.study.title!r}, {state})"

    @property
    def complete(self) -> bool:
        """Whether every planned observation is there."""
        return bool(self.manifest.get("complete"))

    @property
    def digest(self) -> str:
        """Digest of the rows, computed from the parts as they are on the disk now: 32 hex digits.

        Runs of one study on one ledger have the same digest, however they were read: in one go or resumed, here or on
        a cluster, whole or merged from shards. Every column counts but those that tell when and by what was read:
        ``node`` (a node counts as its place in the study), ``head_version``, ``error_message``, ``observed_at`` and
        ``toolkit_version``. It is computed again if a part was added, removed or changed since. What a complete run
        had when it was completed is ``manifest["rows_digest"]``.

        Raises
        ------
        StudyError
            If a part is damaged.
        """
        marks = self._store.marks()
        if self._digest is None or self._digest[0] != marks:
            self._digest = marks, rows_digest(self._store)
        return self._digest[1]

    @cached_property
    def study(self) -> Study:
        """The study that was run."""
        return Study.from_document(self.manifest["study"])

    @cached_property
    def observations(self) -> pd.DataFrame:
        """The observation frame: one row per call, ledger version and source; by node, call, then version.

        Raises
        ------
        StudyError
            If a part is damaged, or parts of a complete run are missing.
        """
        frame = self._store.observations()
        expected = self.manifest.get("counts", {}).get("observations", len(frame)) if self.complete else len(frame)
        if len(frame) != expected:
            raise StudyError(
                f"{self.path} has {len(frame):,} observations, expected {expected:,}: parts are missing or were added "
                "since the run was completed. Run the same study into this folder, and what is missing is read again; "
                "what is there can be read with pandas.read_parquet"
            )
        return frame

    @cached_property
    def steps(self) -> pd.DataFrame:
        """Every step in gas, success or error: between which versions, by how much, and its cause.

        Of a run that was broken off, or lost its ``steps.parquet``, the steps have the cause ``unknown``: finding it
        needs the node, so run the same study into the folder.

        Raises
        ------
        StudyError
            If ``steps.parquet`` or a part is damaged.
        """
        stored = self._store.steps() if self.complete else None
        if stored is not None:
            return stored
        steps = steps_of(turning_points(self._store))
        lost = Cause("unknown", "steps.parquet is missing; run the same study into the folder to find causes again")
        return rows_frame(STEPS, step_columns(steps, dict.fromkeys(steps, lost) if self.complete else {}))

    @cached_property
    def coverage(self) -> Coverage:
        """Which calls were judged for steps, and which were only observed."""
        return coverage_of(self._store.tables(COVERAGE_COLUMNS))

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Calls of which every reading failed, a line each: most likely the study needs a correction."""
        several = len(self.manifest["nodes"]) > 1
        return tuple(
            visible(
                f"every reading of {label!r}{f' on {node}' if several else ''} failed "
                f"({', '.join(f'{count:,} {code}' for code, count in codes.items())}); "
                "error_message of the observations says why",
                _MAX_NOTE,
            )
            for (node, label), codes in failing_calls(self._store).items()
        )

    def explain(self) -> str:
        """Return plain words: each step with its version, its size and its cause, then what was not judged.

        Steps are found for views only. Committed transactions and simulations are observed but not judged, and the
        last lines say so.

        Raises
        ------
        StudyError
            If ``steps.parquet`` or a part is damaged.
        """
        return "\n".join(run_words(self.steps, self.coverage))

    def at(self, version: int) -> pd.DataFrame:
        """Return the last observation of each call at or before a ledger version."""
        return last_observations(self.observations, version=version)
