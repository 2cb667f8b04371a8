"""What a frame is built from: one record per call, however it ended. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, NodeError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from toolkit.move import Layout

__all__ = ["Failure", "TableItemRecord", "ViewRecord", "outcome_columns"]


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed."""

    status: int | None
    error_code: str
    message: str
    vm_error_code: int | None = None

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Describe an error that a call ended with; where the node told no code, the code says what came instead."""
        if isinstance(error, NodeError):
            code = error.error_code or f"http_{error.status}"
            return cls(error.status, code, error.message or str(error), error.vm_error_code)
        if isinstance(error, ConnectionError):
            return cls(None, "unreachable", str(error))
        return cls(None, "input_error" if isinstance(error, InputError) else "schema_error", str(error))


@dataclass(frozen=True, slots=True)
class ViewRecord:
    """One view call at one version.

    Attributes
    ----------
    call : str or None
        The call as the caller named it.
    ledger_version : int or None
        The version read; None where the head was asked and no answer came.
    head_version : int or None
    gas_used : int or None
    values : tuple or None
        Return values in the toolkit's Python forms; None where the call failed.
    layouts : tuple of Layout, or None
        Layouts of the return values; None where no ABI was known.
    raw : str or None
        The answer as JSON text.
    failure : Failure or None
    ledger_timestamp : datetime or None
    types : tuple of str
        Move types of the return values, for texts.
    """

    call: str | None
    ledger_version: int | None
    head_version: int | None
    gas_used: int | None
    values: tuple[Any, ...] | None
    layouts: tuple[Layout, ...] | None
    raw: str | None
    failure: Failure | None = None
    ledger_timestamp: datetime | None = None
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TableItemRecord:
    """One table item at one version; `value` is None where `failure` says why."""

    key: Any
    ledger_version: int | None
    head_version: int | None
    value: Any
    failure: Failure | None = None
    ledger_timestamp: datetime | None = None


def outcome_columns(failures: Sequence[Failure | None]) -> dict[str, list[Any]]:
    """Return the ``OUTCOME`` columns of the data dictionary for one failure, or None, per row."""
    return {
        "status": [failure and failure.status for failure in failures],
        "error_code": [failure and failure.error_code for failure in failures],
        "vm_error_code": [failure and failure.vm_error_code for failure in failures],
        "error_message": [failure and failure.message for failure in failures],
    }
