"""One side of a comparison: a frame, a run, a run's folder, or a run's folder at a ledger version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit._present.messages import shorten
from toolkit.errors import InputError, StudyError
from toolkit.frames.columns import plain_columns
from toolkit.frames.schema import OBSERVATIONS
from toolkit.gas.observations import Source, last_observations
from toolkit.gas.steps import OUTCOME_COLUMNS
from toolkit.gas.study import Run

if TYPE_CHECKING:
    from toolkit.gas.study import Study

__all__ = ["Side", "read_side"]

_CALL = ["node", "fingerprint"]
_MOST_NAMED = 5
_AT_VERSION = re.compile(r"(.+)@([^@/\\]*)")
_VERSION = re.compile(r"\d{1,20}")


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    name : str
        How it was given, where it was a path.
    last : DataFrame
        The last observation of each call and source.
    complete : bool
        False for a run that was broken off.
    study : Study or None
        The study of a run.
    notes : tuple of str
        What makes the side less certain than it looks.
    later : frozenset of (str, str, str)
        Fingerprint, label and node of the run's simulations that were made after the version at which the run is
        looked at.
    """

    name: str
    last: pd.DataFrame
    complete: bool = True
    study: Study | None = None
    notes: tuple[str, ...] = ()
    later: frozenset[tuple[str, str, str]] = frozenset()


def read_side(side: Any) -> Side:
    """Open a side of a comparison.

    Parameters
    ----------
    side : DataFrame, Run, str or Path
        ``runs/x@1000`` is the run in ``runs/x`` as it stood at ledger version 1000.

    Returns
    -------
    Side

    Raises
    ------
    InputError
        If it is none of these, what stands behind the @ is no version, or a frame lacks columns.
    StudyError
        If there is no such run, it holds nothing at or before that version, or the version is above its head.
    """
    if isinstance(side, str | Path):
        return _of_path(str(side))
    frame = side if isinstance(side, pd.DataFrame) else getattr(side, "observations", None)
    if not isinstance(frame, pd.DataFrame):
        raise InputError(f"compare takes observation frames, runs or run folders, got {type(side).__name__}")
    missing = [name for name in OBSERVATIONS.names if name not in frame.columns]
    if missing:
        raise InputError(f"compare needs observation frames; columns {missing} are missing")
    name = "" if frame is side else str(side.path)
    return Side(name, last_observations(frame), getattr(side, "complete", True), getattr(side, "study", None))


def _of_path(path: str) -> Side:
    found = None if Path(path).exists() else _AT_VERSION.fullmatch(path)  # a folder's own name may have an @
    if found is None:
        run = Run.open(path)
        return Side(path, last_observations(run.observations), run.complete, run.study)
    if not _VERSION.fullmatch(found[2]):
        raise InputError(
            f"{shorten(path)}: behind the @ stands a ledger version, a whole number from 0, such as {found[1]}@1000, "
            f"got {shorten(found[2])}; the folder alone is the run at its end"
        )
    run, version = Run.open(found[1]), int(found[2])
    last = run.at(version)
    if not len(last):
        first = run.observations["ledger_version"].min() if len(run.observations) else None
        since = "it holds no observations" if first is None else f"its first version is {first}"
        raise StudyError(f"{shorten(path)}: the run has no observation at or before version {version}; {since}")
    head = _head(run)
    if version > head:
        raise StudyError(
            f"{shorten(path)}: the run knows nothing of version {version}: the head was {head} when it was read; "
            "give a version up to that, or the folder alone for the run at its end"
        )
    simulations = run.observations[run.observations["source"] == Source.SIMULATE]
    later = simulations[~simulations["fingerprint"].isin(last["fingerprint"])]
    return Side(path, last, run.complete, run.study, tuple(_unsettled(run.observations, last, version)), _named(later))


def _named(rows: pd.DataFrame) -> frozenset[tuple[str, str, str]]:
    return frozenset(zip(*plain_columns(rows, ["fingerprint", "label", "node"]).values(), strict=True))


def _head(run: Run) -> int:
    """Return the newest ledger version that the run's nodes had when they answered."""
    told = run.observations["head_version"].dropna()
    begun = max(plan["head"] for plan in run.manifest["nodes"])
    return max(begun, int(told.max())) if len(told) else int(begun)


def _unsettled(observations: pd.DataFrame, last: pd.DataFrame, version: int) -> list[str]:
    """Name the views that changed somewhere between the readings around a version that was not read itself."""
    views = observations[(observations["source"] == Source.VIEW) & (observations["ledger_version"] > version)]
    following = _by_call(views.sort_values("ledger_version", kind="stable").groupby(_CALL, sort=False).head(1))
    changed = [
        f"{label!r} ({at} to {following[key][1]})"
        for key, (label, at, *outcome) in _by_call(last[last["source"] == Source.VIEW]).items()
        if at < version and key in following and following[key][2:] != tuple(outcome)
    ]
    if not changed:
        return []
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    told = f"{', '.join(changed[:_MOST_NAMED])}{more}"
    return [f"version {version} lies between two readings that differ, of which the earlier one counts: {told}"]


def _by_call(rows: pd.DataFrame) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return label, version and outcome of each row by node and call."""
    columns = plain_columns(rows, [*_CALL, "label", "ledger_version", *OUTCOME_COLUMNS])
    return {row[:2]: row[2:] for row in zip(*columns.values(), strict=True)}
