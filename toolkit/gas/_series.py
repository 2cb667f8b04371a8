"""Gas in any form that the toolkit returns, as observation frames split by call.

`as_observations` converts frames of views or transactions, and simulations, to an observation frame; `series_of` splits
it into one `CallSeries` per call, source and node.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from toolkit._present.messages import did_you_mean, shorten
from toolkit._present.text import listed, visible
from toolkit.errors import InputError, ToolkitError
from toolkit.frames._columns import compact_json, plain_columns
from toolkit.frames._schema import COMPARISON, GROWTH, LEVELS, MIX, OBSERVATIONS, RUN_TIMELINE, STEPS, TIMELINE
from toolkit.gas._labels import Called, default_labels, function_names
from toolkit.gas._observations import Source
from toolkit.move._json_text import parse_json

if TYPE_CHECKING:
    from numpy.typing import NDArray


# What reports and notebooks say of the embedded node's gas; ``tests.conformance.model_gas`` measures its figures.
MODEL_NOTICE = (
    "The gas of the embedded node comes from a documented cost model, not from a Move VM. "
    "Compared with 33 calls recorded on a real node (gas schedule version 43): execution is within a factor of 1.25, "
    "io within 1.17, storage within 1.03, views within 1.50; refunds are equal. "
    "The documentation lists every call, at both price levels."
)

# Columns that a message names.
_MAX_NAMED = 12
_GAS_COLUMNS = ("label", "source", "ledger_version", "gas_used")
# Frames that a message names, instead of their columns.
_OWN_FRAMES = {
    "run.observations": OBSERVATIONS,
    "run.steps": STEPS,
    "run.levels": LEVELS,
    "run.growth": GROWTH,
    "run.mix": MIX,
    "run.timeline": RUN_TIMELINE,
    "a timeline": TIMELINE,
    "comparison.calls": COMPARISON,
}


@dataclass(frozen=True)
class CallSeries:
    """The observations of one call from one source on one node, ordered by ledger version.

    Attributes
    ----------
    label, source, node : str
        As in the observation frame; `node` is empty if all rows come from one node.
    name : str
        The label as figures show it, with shortened function ids.
    position : int
        Position of the call among all calls of the frame; it determines the colour.
    versions, gas : ndarray of float64, shape (n,)
        Ledger versions; gas units, NaN if the node reported none.
    success : ndarray of bool, shape (n,)
        False if the call, or its execution, failed.
    error : str
        Error code of the last failed observation; empty if none failed.
    """

    label: str
    source: str
    node: str
    name: str
    position: int
    versions: NDArray[np.float64]
    gas: NDArray[np.float64]
    success: NDArray[np.bool_]
    error: str

    @property
    def answered(self) -> NDArray[np.bool_]:
        """True for observations whose gas is known."""
        return ~np.isnan(self.gas)

    @property
    def alone(self) -> NDArray[np.bool_]:
        """True for observations with gas that the line joins to neither neighbour."""
        joins = (np.diff(self.gas) == 0) | ((np.diff(self.versions) == 1) & (np.abs(np.diff(self.gas)) > 0))
        apart: NDArray[np.bool_] = ~np.append(False, joins) & ~np.append(joins, False)
        return self.answered & apart

    def line(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the vertices of the gas line.

        If two versions are adjacent, the change is at the later one, and the line steps there. Between different
        observations further apart, the version of the change is not known, and NaN interrupts the line. Observations
        equal to both neighbours are omitted.

        Returns
        -------
        versions, gas : ndarray of float64
        """
        return joined(self.versions, self.gas)

    def failures(self) -> list[tuple[float, float]]:
        """Return the first and last version of each sequence of neighbouring observations without gas."""
        missing = np.concatenate(([False], ~self.answered, [False])).astype(np.int8)
        starts, ends = np.flatnonzero(np.diff(missing) == 1), np.flatnonzero(np.diff(missing) == -1)
        return [(self.versions[a], self.versions[b - 1]) for a, b in zip(starts, ends, strict=True)]


def joined(
    versions: NDArray[np.float64], values: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the vertices of the line through observations; see `CallSeries.line`."""
    if len(values) < 2:  # noqa: PLR2004 - a line needs two ends
        return versions, values
    same = (values[1:] == values[:-1]) | (np.isnan(values[1:]) & np.isnan(values[:-1]))
    keep = ~np.append(False, same) | ~np.append(same, False)
    versions, values = versions[keep], values[keep]
    change = np.flatnonzero(np.abs(np.diff(values)) > 0) + 1
    before = np.where(versions[change] - versions[change - 1] == 1, values[change - 1], np.nan)
    return np.insert(versions, change, versions[change]), np.insert(values, change, before)


def require(frame: pd.DataFrame, columns: Sequence[str], *, what: str, source: str) -> None:
    """Check that a frame has columns.

    Parameters
    ----------
    frame : DataFrame
    columns : sequence of str
    what : str
        What requires them, in the plural, for the message.
    source : str
        Where users get such a frame, such as ``run.steps``.

    Raises
    ------
    InputError
        Names the first missing column, where to get the frame, and the columns of this one.
    """
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        text = f"{what} need the column {missing[0]!r}: expected {source}, got {described(frame)}"
        raise InputError(text)


# readings in other forms ----------------------------------------------------------------------------------------------


def as_observations(
    given: Any, *, figure: str, columns: Sequence[str] = _GAS_COLUMNS, by_function: bool = False
) -> pd.DataFrame:
    """Return gas in any form that the toolkit returns as an observation frame.

    Parameters
    ----------
    given : DataFrame, or an object with ``transactions``, or an iterable or mapping of these
        ``run.observations``; a frame of `fetch_views`; ``transactions`` of `fetch_transactions`, `fetch_simulations` or
        a simulation, or an object that has them. Errors in an iterable, such as the ``results`` of simulations, are
        skipped. The keys of a mapping are the labels.
    figure : str
        Name of the figure, for messages.
    columns : sequence of str
        Columns that the figure needs.
    by_function : bool, default False
        Whether simulations of one function have the same label, whatever their arguments and senders.

    Returns
    -------
    DataFrame
        With the columns ``label``, ``source``, ``ledger_version``, ``gas_used`` and more. The label of a transaction is
        the name of its function; the name of a simulation also includes the arguments and the sender if they differ.

    Raises
    ------
    InputError
        If `given` is anything else; the message says what is expected.
    """
    frame = _observation_frame(given)
    if frame is None:
        raise InputError(f"{figure}: expected {_EXPECTED}, got {described(given)}")
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        # A figure that needs more than the gas needs its parts, which the response to a view does not have.
        expected = _EXPECTED if columns is _GAS_COLUMNS else f"run.observations, or {_TRANSACTIONS}"
        raise InputError(f"{figure}: expected {expected}; the column {missing[0]!r} is missing from {described(given)}")
    return frame.assign(label=frame[_CALLED]) if by_function and _CALLED in frame.columns else frame


# Column of transactions as observations: the name of the function alone.
_CALLED = "called"


_TRANSACTIONS = "fetch_transactions(...), fetch_simulations(...) or simulations (or their frame `transactions`)"
_EXPECTED = f"run.observations, a frame of fetch_views, or {_TRANSACTIONS}"


def described(given: Any) -> str:
    """Describe what was passed to a figure, for an error message."""
    if not isinstance(given, pd.DataFrame):
        empty = "an empty " if isinstance(given, Sized) and not len(given) else ""
        return shorten(given) if isinstance(given, str) else f"{empty}{type(given).__name__}"
    own = next((name for name, schema in _OWN_FRAMES.items() if list(given.columns) == schema.names), "")
    return own or f"a frame with the columns {visible(listed(map(str, given.columns), _MAX_NAMED) or 'none', 300)}"


def _observation_frame(given: Any) -> pd.DataFrame | None:
    if isinstance(given, pd.DataFrame):
        return _of_frame(given)
    if isinstance(getattr(given, "transactions", None), pd.DataFrame):
        return _of_transactions(given.transactions)
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return None
    if isinstance(given, Mapping):
        made = {str(name): _observation_frame(one) for name, one in given.items() if not isinstance(one, ToolkitError)}
        named = [_named(name, frame) for name, frame in made.items() if frame is not None]
        return pd.concat(named, ignore_index=True) if named and len(named) == len(made) else None
    frames: list[Any] = [getattr(one, "transactions", None) for one in given if not isinstance(one, ToolkitError)]
    if not frames or not all(isinstance(frame, pd.DataFrame) for frame in frames):
        return None
    return _of_transactions(pd.concat([_with_model(frame) for frame in frames], ignore_index=True))


def _named(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return observations with `name` as their label; if they have several labels, each is appended to it."""

    def under(column: str) -> Any:
        own = frame[column].astype(str)
        return name if len(own.unique()) <= 1 else name + ": " + own

    label = under("label")
    return frame.assign(label=label, **{_CALLED: under(_CALLED) if _CALLED in frame else label})


def _of_frame(frame: pd.DataFrame) -> pd.DataFrame | None:
    columns = set(frame.columns)
    if "label" in columns:
        return None if "gas_before" in columns else frame
    if {"request", "function", "payload"} <= columns:
        return _of_transactions(frame)
    if not {"ledger_version", "gas_used"} <= columns:
        return None
    about = frame.attrs.get("toolkit", {}).get("gas_used", {})
    read = _with_model(frame)[frame["ledger_version"].notna()]
    named = read["call"] if "call" in columns else function_names([about.get("call", "the call")])[0]
    return read.assign(label=named, source=Source.VIEW.value)


def _with_model(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with the column ``model``, if its metadata says that its gas comes from a model."""
    return frame.assign(model=True) if is_model(frame) else frame


def _of_transactions(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the user transactions of a frame as observations, except those without a gas value."""
    paid = _with_model(frame)[(frame["type"] == "user_transaction") & frame["gas_used"].notna()]
    simulated = paid["request"].notna()
    columns = plain_columns(paid, ["function", "payload", "payload_type", "sender"])
    calls = [_called(*row) for row in zip(*columns.values(), strict=True)]
    # Transactions are of a function; only simulations of it differ by what is asked for.
    apart = [one if alone else Called(one.function) for one, alone in zip(calls, simulated, strict=True)]
    # Requests that were simulated at several versions are series, as views are.
    read_at = paid.groupby("request")["ledger_version"].transform("nunique") > 1
    made = paid.assign(
        label=default_labels(apart),
        called=default_labels([Called(call.function) for call in calls]),
        source=np.where(
            read_at.fillna(value=False),
            Source.SIMULATE_AT_VERSION.value,
            np.where(simulated, Source.SIMULATE.value, Source.COMMITTED.value),
        ),
        type_arguments=[", ".join(call.type_arguments) for call in calls],
    )
    return made.rename(columns={"timestamp": "ledger_timestamp"})


def _called(function: str | None, payload: str | None, kind: str | None, sender: str | None) -> Called:
    """Return the name of the function that a transaction calls, or its kind of payload if it calls none."""
    content = parse_json(payload, "payload") if payload else {}
    inner = content.get("transaction_payload") or content  # of a multisig payload
    types, arguments = inner.get("type_arguments") or (), inner.get("arguments") or ()
    texts = tuple(one if isinstance(one, str) else compact_json(one) for one in arguments)
    name = function or inner.get("function") or (kind or "transaction").removesuffix("_payload").replace("_", " ")
    return Called(str(name), tuple(map(str, types)), texts, str(sender or ""))


# series ---------------------------------------------------------------------------------------------------------------


def call_order(frame: pd.DataFrame, calls: Sequence[str] | None) -> dict[str, int]:
    """Return the requested labels in order, each with its position among all calls of a frame.

    Parameters
    ----------
    frame : DataFrame
    calls : sequence of str, optional
        Labels, or names as figures show them; all calls by default.

    Raises
    ------
    InputError
        If `calls` contains a label that the frame does not have.
    """
    positions = {str(label): place for place, label in enumerate(frame["label"].unique())}
    if calls is None:
        return positions
    shown = dict(zip(function_names(list(positions)), positions, strict=True))
    order: dict[str, int] = {}
    for label in [calls] if isinstance(calls, str) else calls:
        known = label if label in positions else shown.get(label)
        if known is None:
            names = [visible(one, 40) for one in positions]
            meant = did_you_mean(str(label), names)
            hint = f"{meant} The" if meant else "the"
            there = listed(map(repr, names), _MAX_NAMED) or "none"
            raise InputError(
                f"calls: {visible(repr(label), 60)} is not the label of a call; {hint} labels are: {there}"
            )
        order[known] = positions[known]
    return order


def is_model(frame: pd.DataFrame) -> bool:
    """Return whether the gas of any row comes from a model, as on the embedded node."""
    if any("model" in facts for facts in frame.attrs.get("toolkit", {}).values()):
        return True
    return "model" in frame.columns and bool(frame["model"].fillna(value=False).astype(bool).any())


def series_of(observations: pd.DataFrame, calls: Sequence[str] | None = None) -> list[CallSeries]:
    """Split an observation frame into one series per call, source and node.

    Parameters
    ----------
    observations : DataFrame
        Columns ``label``, ``source``, ``ledger_version`` and ``gas_used``; ``success``, ``error_code`` and ``node`` if
        present.
    calls : sequence of str, optional
        Labels, in order; all calls by default.

    Returns
    -------
    list of CallSeries
        Ordered by call, then by source and node.

    Raises
    ------
    InputError
        If a column is missing, or `calls` contains a label that the frame does not have.
    """
    require(observations, _GAS_COLUMNS, what="figures of gas by version", source="run.observations")
    order = call_order(observations, calls)
    labels = [str(label) for label in observations["label"].unique()]
    names = dict(zip(labels, function_names(labels), strict=True))
    rows = observations[observations["label"].isin(list(order))]
    several = "node" in rows.columns and len(rows["node"].unique()) > 1
    keys = ["label", "source", "node"] if several else ["label", "source"]
    found = []
    for key, group in rows.groupby(keys, sort=True):
        mine = group.sort_values("ledger_version", kind="stable")
        label = str(key[0])
        success = mine["success"] if "success" in mine.columns else mine["gas_used"].notna()
        errors = mine["error_code"].dropna().tolist() if "error_code" in mine.columns else []
        series = CallSeries(
            label=label,
            source=str(key[1]),
            node=str(key[2]) if several else "",
            name=names[label],
            position=order[label],
            versions=mine["ledger_version"].to_numpy(dtype=np.float64),
            gas=mine["gas_used"].to_numpy(dtype=np.float64, na_value=np.nan),
            success=success.fillna(value=False).to_numpy(dtype=np.bool_),
            error=str(errors[-1]) if errors else "",
        )
        found.append(series)
    rank = {label: place for place, label in enumerate(order)}
    return sorted(found, key=lambda series: rank[series.label])
