"""The two sides of a comparison: what a run, a run at a version, a frame or a snapshot says of each call."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pandas as pd

from toolkit._present.files import checked_path
from toolkit._present.messages import shorten
from toolkit._present.text import listed
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError, StudyError
from toolkit.frames._columns import plain_columns
from toolkit.frames._schema import OBSERVATIONS
from toolkit.gas._observations import NOT_READ, Source, last_observations
from toolkit.gas._steps import OUTCOME_COLUMNS
from toolkit.gas._study import Run, Study
from toolkit.gas.committed._fees import Fees, More
from toolkit.gas.committed._steps import COLUMNS_READ, series_frame
from toolkit.gas.committed._strata import octas_per_unit
from toolkit.gas.plan._plan import within

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


T = TypeVar("T")

_MAX_NAMED = 5  # labels or columns in one message; the frames have all
_AT_VERSION = re.compile(r"(.+)@([^@/\\]*)")
_VERSION = re.compile(r"\d{1,20}")
_NO_SIDES = (
    "no change of code, configuration or schedule separates two sides within the run; read a range with a change, or "
    "waive the source committed"
)


@dataclass(frozen=True, slots=True)
class Ran:
    """The committed transactions of a call that ran under the newest code, configuration and schedule of a side.

    Attributes
    ----------
    frame : DataFrame
        From `series_frame`; empty if nobody called it, or only a snapshot knows it.
    since : int
        Version of the last change that can affect the call; 0 if none is known.
    last : int
        Last version of the side.
    above : int
        Version up to which they count for the other side; 0 if they all count for this one.
    why : str
        Why they are not known; empty if they are.
    only : int or None
        The version that the plan of the run reads, if it is a single one, such as the head.
    stored : Fees or None
        What they paid, as a snapshot has stored it, at `price` octas per gas unit.
    price : int
    """

    frame: pd.DataFrame = field(default_factory=pd.DataFrame)
    since: int = 0
    last: int = 0
    above: int = 0
    why: str = ""
    only: int | None = None
    stored: Fees | None = None
    price: int = 0

    def beyond(self, version: int) -> Ran:
        """Return those above a version."""
        return replace(self, frame=self.frame[self.frame["ledger_version"] > version], above=version)

    @property
    def good(self) -> pd.DataFrame:
        """Those that succeeded."""
        return self.frame[self.frame["success"].fillna(value=False)] if "success" in self.frame else self.frame

    @property
    def typical_price(self) -> int:
        """The stored price, or else the median price that they paid, in octas per gas unit."""
        return self.price or round(octas_per_unit(self.frame))

    def fees(self, price: int, more: More = More.WAIT) -> Fees:
        """Return what they paid, at a price in octas per gas unit; `more` is what adds to those of a run."""
        return self.stored or replace(Fees.of(self.frame, price), more=more)


@dataclass(frozen=True, eq=False)
class Side:
    """One side of a comparison.

    Attributes
    ----------
    name : str
        Name for messages: a path or ``run.at(N)``; empty for other frames.
    last : DataFrame
        The last observation of each call and source.
    study : Study or None
        The study of the run, if the side is one.
    notes : tuple of str
        Caveats, such as views that changed after they were last read.
    later : frozenset of (str, str, str)
        Fingerprint, label and node of simulations of the run that were made after the requested version.
    run : Run or None
        The run, if the side is one.
    until : int or None
        The requested version; None for the end of the run.
    stored : mapping of (str, str) to Ran
        Of a snapshot: what committed transactions paid, by fingerprint and node.
    has_times : bool
        Whether the observations have times; those of a snapshot have none.
    oldest : bool
        Whether the side is the beginning of the run: what ran before the first change.
    """

    name: str
    last: pd.DataFrame
    study: Study | None = None
    notes: tuple[str, ...] = ()
    later: frozenset[tuple[str, str, str]] = frozenset()
    run: Run | None = None
    until: int | None = None
    stored: Mapping[tuple[str, str], Ran] = field(default_factory=dict)
    has_times: bool = True
    oldest: bool = False

    @property
    def version(self) -> int:
        """The last version of its observations, or the first one of the beginning of a run; 0 without observations.

        Simulations at the head count only if there is nothing else.
        """
        studied = self.last[self.last["source"] != Source.SIMULATE]
        versions = (self.last if studied.empty else studied)["ledger_version"]
        return 0 if self.last.empty else int(versions.min() if self.oldest else versions.max())

    @property
    def about(self) -> str:
        """Node, version and time of reading, to follow the name; empty without observations."""
        if self.last.empty:
            return ""
        at = f"{self.version:,}"
        if self.until is not None and self.until > self.version:
            at += f" (the last read at or before {self.until:,})"
        read = self.run.record.finished_at if self.run else self.last["observed_at"].max() if self.has_times else None
        when = f", read {read:%Y-%m-%d %H:%M} UTC" if read else ""
        return f": {', '.join(sorted(self.last['node'].unique()))}, version {at}{when}"

    def unread(self, node: str) -> str:
        """Return why a view on a node is not known at the requested version; empty if it is known there.

        A run that reads committed transactions further than views has its last view at its end.
        """
        if self.run is None or self.until is None or self.until >= self.run.last_version:
            return ""
        last = max((plan.last for plan in self.run.record.nodes if plan.node == node), default=self.until)
        why = f"views were read up to version {last:,}, not {self.until:,}; choose an earlier one"
        return why if last < self.until else ""

    def first_read(self) -> Iterator[tuple[str, int]]:
        """Yield the label and the first version of each call that the run read only after the requested version."""
        if self.run is not None and self.until is not None:
            first = self.run.observations.groupby("label")["ledger_version"].min()
            yield from ((str(label), int(version)) for label, version in first[first > self.until].items())

    def made_later(self, other: Side) -> frozenset[tuple[str, str, str]]:
        """Return the simulations that this side lacks because they were made later.

        A frame may lack calls on purpose: it lacks only those that the other side has.
        """
        there = set(other.last["fingerprint"])
        return frozenset(one for one in self.later if self.study is not None or one[0] in there)

    def asked(self, fingerprint: str) -> bool:
        """Return whether the side is of a run whose study has a call."""
        return self.run is not None and any(call.fingerprint == fingerprint for call in self.run.study.calls)

    def ran(self, fingerprint: str, node: str) -> Ran:
        """Return the committed transactions of a call under the newest regime of the side, or under its oldest."""
        if stored := _of_node({at: ran for (mark, at), ran in self.stored.items() if mark == fingerprint}, node):
            return stored
        run = self.run
        if run is None or not run.complete:
            return Ran(why="committed transactions are compared between complete runs")
        mine = {call.node: call for call in run.record.committed_series if call.fingerprint == fingerprint}
        call = _of_node(mine, node)
        if call is None or not call.timeline_read:
            why = call.not_judged if call else ""
            return Ran(why=why or "the changes of code and schedule around its transactions were not read")
        plan = next(plan for plan in run.record.nodes if plan.node == call.node)
        asked = next(one for one in run.study.calls if one.fingerprint == fingerprint)
        first, end = plan.range_of(asked)
        last = end if self.until is None else min(self.until, end)
        every = run.observations
        rows = every.loc[every["fingerprint"] == fingerprint, list(COLUMNS_READ)]
        frame = series_frame([to_arrow(rows)], call.node, fingerprint, plan.storage_prices)
        if self.oldest and len(frame):
            called = frame["ledger_version"].min()
            last = min((before for before, _ in call.changed if before >= called), default=last)
            if last == end:
                return Ran(why=_NO_SIDES)
        # Of a change whose transaction is not known, it is only known what ran before it and what ran after it.
        last = min([last, *(before for before, after in call.changed if before < last < after)])
        since = max((after for _, after in call.changed if after <= last), default=0)
        start = max(first, since)
        if plan.committed_read is not None and within(plan.committed_read.missing, start, last):
            return Ran(since=since, last=last, why="transactions since the last change could not be read")
        frame = frame[(frame["ledger_version"] >= start) & (frame["ledger_version"] <= last)]
        return Ran(frame, since, last, only=plan.only_version(asked))


def _of_node(found: Mapping[str, T], node: str) -> T | None:
    """Return what was found on a node: on the only one, which may have another name on the other side, or by name."""
    return next(iter(found.values())) if len(found) == 1 else found.get(node)


def read_side(side: Any) -> Side:
    """Open a side of a comparison: a frame, a run, or the folder of a run, with a version as in ``runs/x@1000``.

    Raises
    ------
    InputError
        If `side` is anything else.
    StudyError
        If a folder is not a run folder, or the run has nothing at the version.
    """
    if isinstance(side, Side):
        return side
    if isinstance(side, str | Path):
        return _side_of_path(str(side))
    if isinstance(side, Run):
        return side_of_run(side, str(side.path))
    if not isinstance(side, pd.DataFrame):
        raise InputError(f"compare takes two runs, run folders or frames run.at(a), run.at(b), got {shorten(side)}")
    if (found := _side_of_frame(side)) is not None:
        return found
    missing = [name for name in OBSERVATIONS.names if name not in side.columns]
    if missing:
        raise InputError(f"compare needs observation frames; missing columns: {listed(missing, _MAX_NAMED)}")
    return Side("", last_observations(side))


def side_of_run(run: Run, name: str) -> Side:
    """Return the end of a run as a side."""
    return Side(name, last_observations(run.observations), run.study, run=run)


def _side_of_frame(frame: pd.DataFrame) -> Side | None:
    """Return a frame of a run as a side with its run, or None for other frames and for modified observations."""
    source = frame.attrs.get("source")
    try:
        side = _side_of_path(source) if isinstance(source, str) else None
    except (InputError, StudyError):  # the folder of a temporary run has been removed
        return None
    key = ["node", "fingerprint", "source", "ledger_version", *OUTCOME_COLUMNS]
    if side is None or side.run is None or not set(key) <= set(frame.columns):
        return None
    frame = last_observations(frame)
    if len(frame.merge(side.last[key], on=key)) < len(frame):
        return None
    # The frame may be a part of the run: rows may be missing on purpose, although the study asks for them.
    until = side.run.last_version if side.until is None else side.until
    notes = _unsettled_notes(frame, until)
    return replace(side, name=f"run.at({until})", last=frame, notes=notes, study=None, until=until)


def _side_of_path(path: str) -> Side:
    try:
        there = checked_path(path).exists()
    except OSError as error:
        raise InputError(f"{shorten(path)}: not a run folder: {error.strerror}") from None
    found = None if there else _AT_VERSION.fullmatch(path)  # the name of a folder may contain an @
    if found is None:
        return side_of_run(Run.load(path), path)
    if not _VERSION.fullmatch(found[2]):
        raise InputError(
            f"{shorten(path)}: expected a ledger version after the @, a whole number such as {found[1]}@1000, "
            f"got {shorten(found[2])}; to compare the end of the run, give only the folder"
        )
    run, version = Run.load(found[1]), int(found[2])
    last, observations = run.at(version), run.observations
    if not len(last):
        since = f"its first version is {observations['ledger_version'].min():,}" if len(observations) else "it is empty"
        raise StudyError(f"{shorten(path)}: the run has no observation at or before version {version:,}; {since}")
    if version > run.last_version:
        raise StudyError(
            f"{shorten(path)}: the run read nothing after version {run.last_version:,}; give a version up to "
            f"{run.last_version:,}, or only the folder to compare the end of the run"
        )
    simulations = observations[observations["source"] == Source.SIMULATE]
    made_later = simulations[~simulations["fingerprint"].isin(last["fingerprint"])]
    later = frozenset(zip(*plain_columns(made_later, ["fingerprint", "label", "node"]).values(), strict=True))
    return Side(path, last, run.study, _unsettled_notes(last, version), later, run, version)


def _unsettled_notes(last: pd.DataFrame, version: int) -> tuple[str, ...]:
    """Return a note on the views that changed near a version, at which they were not read."""
    labels = last.loc[last["error_code"] == NOT_READ, "label"].tolist()
    named = listed(labels, _MAX_NAMED)
    return (f"version {version:,} was not read, and gas changed around it: not judged: {named}",) if labels else ()
