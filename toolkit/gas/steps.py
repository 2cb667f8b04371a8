"""Steps in gas: where neighbouring observations of a call differ in gas, success or error. Frame in, rows out."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.frames.columns import plain_columns
from toolkit.frames.schema import OBSERVATIONS, STEPS
from toolkit.gas.observations import Source, is_no_answer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pandas as pd

__all__ = ["OUTCOME_COLUMNS", "Cause", "Step", "step_columns", "steps_of"]

OUTCOME_COLUMNS = ("gas_used", "success", "error_code")
"""What makes two observations of a call differ."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a step happened.

    Attributes
    ----------
    kind : str
        schedule, code, config, state, mixed, node, unexplained or unknown.
    explanation : str
        Plain words.
    parts : tuple of str
        The kinds that a mixed cause is made of; else the kind itself where there is one to name.
    transaction_hash, transaction_type, transaction_sender, transaction_function : str or None
        Of the transaction at the step, where it is exact.
    """

    kind: str
    explanation: str
    parts: tuple[str, ...] = ()
    transaction_hash: str | None = None
    transaction_type: str | None = None
    transaction_sender: str | None = None
    transaction_function: str | None = None

    def row(self) -> dict[str, Any]:
        """Return the columns of the steps frame that tell the cause."""
        names = ("transaction_hash", "transaction_type", "transaction_sender", "transaction_function")
        told = {name: getattr(self, name) for name in names}
        return {"cause": self.kind, "cause_parts": list(self.parts), "explanation": self.explanation} | told


@dataclass(frozen=True, slots=True)
class Step:
    """A change of a call's outcome between two versions that were read.

    Attributes
    ----------
    node, label, fingerprint, source : str
    version_before, version_after : int
        Last version known with the old outcome, first known with the new one.
    gas_before, gas_after : int or None
        Gas units; None where the call failed.
    success_before, success_after : bool or None
    error_before, error_after : str or None
    build_before, build_after : str or None
        The node's build at either reading.
    """

    node: str
    label: str
    fingerprint: str
    source: str
    version_before: int
    version_after: int
    gas_before: int | None
    gas_after: int | None
    success_before: bool | None
    success_after: bool | None
    error_before: str | None
    error_after: str | None
    build_before: str | None = None
    build_after: str | None = None

    @property
    def exact(self) -> bool:
        """True where the two versions are adjacent, so that one transaction made the step."""
        return self.version_after == self.version_before + 1

    @property
    def change(self) -> int | None:
        """Gas after minus gas before, in gas units."""
        if self.gas_before is None or self.gas_after is None:
            return None
        return self.gas_after - self.gas_before

    @property
    def change_percent(self) -> float | None:
        """Change relative to the gas before; None where that was 0 or unknown."""
        return None if self.change is None or not self.gas_before else 100.0 * self.change / self.gas_before

    def row(self, cause: Cause | None) -> dict[str, Any]:
        """Return the step as a row of the steps frame."""
        names = (
            "label",
            "fingerprint",
            "source",
            "node",
            "version_before",
            "version_after",
            "exact",
            "gas_before",
            "gas_after",
            "change",
            "change_percent",
            "success_before",
            "success_after",
            "error_before",
            "error_after",
        )
        why = cause or Cause("unknown", "the run was broken off before causes were looked for")
        return {name: getattr(self, name) for name in names} | why.row()


def step_columns(steps: Sequence[Step], causes: Mapping[Step, Cause]) -> dict[str, list[Any]]:
    """Return the columns of the steps frame."""
    rows = [step.row(causes.get(step)) for step in steps]
    return {name: [row[name] for row in rows] for name in STEPS.names}


def steps_of(observations: pd.DataFrame) -> list[Step]:
    """Return every step of the calls that were read at several versions.

    Parameters
    ----------
    observations : DataFrame
        The observation frame. Only ``view@version`` rows are looked at: a simulation has no past, and committed
        transactions differ in their arguments.

    Returns
    -------
    list of Step
        By call in the order of the frame, then by version.

    Raises
    ------
    SchemaError
        If a column is missing.
    """
    missing = [name for name in OBSERVATIONS.names if name not in observations.columns]
    if missing:
        raise SchemaError(f"not an observation frame: columns {missing} are missing")
    views = observations[observations["source"] == Source.VIEW]
    return [step for _, rows in views.groupby(["node", "fingerprint"], sort=False) for step in _call_steps(rows)]


def _call_steps(rows: pd.DataFrame) -> Iterator[Step]:
    rows = rows.sort_values("ledger_version", kind="stable")
    columns = plain_columns(rows, ["ledger_version", *OUTCOME_COLUMNS, "node_build"])
    observed = [row for row in zip(*columns.values(), strict=True) if not is_no_answer(row[3])]
    constant = {name: rows[name].iloc[0] for name in ("node", "label", "fingerprint", "source")}
    for before, after in pairwise(observed):
        if before[1:4] != after[1:4]:
            yield Step(
                **constant,
                version_before=before[0],
                version_after=after[0],
                gas_before=before[1],
                gas_after=after[1],
                success_before=before[2],
                success_after=after[2],
                error_before=before[3],
                error_after=after[3],
                build_before=before[4],
                build_after=after[4],
            )
