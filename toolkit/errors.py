"""The one tree of errors; every error this package raises on purpose hangs here.

::

    ToolkitError
    ├── InputError                 what the caller wrote cannot be used (also a ValueError)
    │   ├── NotAtPast              asked a past snapshot for what a node does at its head only
    │   └── StudyError             a study file or a run folder cannot be used
    │       └── RunStopped         a run was broken off by its machine or its workers; the same call goes on
    ├── SchemaError                a value does not fit its declared type (also a ValueError)
    ├── InexactError               pandas would compute with floats where integers are exact (also an ArithmeticError)
    ├── NodeUnreachable            no HTTP answer: refused, timed out, cut, TLS (also a ConnectionError)
    │   ├── HopelessError          asking again is of no use: TLS or a redirect refused, an answer too large or too slow
    │   └── OfflineMiss            offline, and the cache does not hold the answer
    ├── ClosedError                the client was closed
    ├── LedgerChanged              the node serves another ledger than before: another chain id, another history
    └── NodeError                  the node answered with an error status
        ├── InvalidRequest         400
        ├── Forbidden              403 (and 401 of a gateway)
        ├── NotFound               404
        ├── VersionPruned          410
        ├── TooLarge               413
        ├── RateLimited            429
        ├── Unavailable            503
        └── InsufficientStorage    507

Messages say what was asked, where, what was expected, what came, and what to do next. They carry no control or
bidirectional characters but newlines: such characters in text that a message quotes are written as escapes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit._present.text import cleaned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.wire import LedgerState

__all__ = [
    "ClosedError",
    "Forbidden",
    "HopelessError",
    "InexactError",
    "InputError",
    "InsufficientStorage",
    "InvalidRequest",
    "LedgerChanged",
    "NodeError",
    "NodeUnreachable",
    "NotAtPast",
    "NotFound",
    "OfflineMiss",
    "RateLimited",
    "RunStopped",
    "SchemaError",
    "StudyError",
    "TooLarge",
    "ToolkitError",
    "Unavailable",
    "VersionPruned",
]


class ToolkitError(Exception):
    """Root of every error this package raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(cleaned(arg) if isinstance(arg, str) else arg for arg in args))

    def add_note(self, note: str, /) -> None:
        """Add a line that tracebacks show."""
        super().add_note(cleaned(note))


class InputError(ToolkitError, ValueError):
    """What the caller wrote cannot be used: a type, address, version plan, argument or option."""


class NotAtPast(InputError):
    """A past snapshot was asked for something the service does at its head only."""


class StudyError(InputError):
    """A study file, or a run folder, cannot be used."""


class RunStopped(StudyError):
    """A run was broken off by its machine or its workers; the same call goes on."""


class SchemaError(ToolkitError, ValueError):
    """A value does not fit its declared type.

    Parameters
    ----------
    message : str
        What was expected and what came.
    column : str, optional
        Column (or path inside a value) the failing value belongs to.
    rows : sequence of int, optional
        Positions of the failing rows, first ones only.
    """

    def __init__(self, message: str, *, column: str | None = None, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.rows = tuple(rows)


class InexactError(ToolkitError, ArithmeticError):
    """pandas would turn wide integers into floats unasked; the message names the exact way.

    It is neither a TypeError nor a ValueError: pandas catches those and raises another error, without the message.
    """


class NodeUnreachable(ToolkitError, ConnectionError):
    """No HTTP answer came from the node."""


class HopelessError(NodeUnreachable):
    """No usable answer came, nor would another: TLS or a redirect refused, an answer too large or too slow."""


class OfflineMiss(NodeUnreachable):
    """The session is offline, and the cache does not hold the answer."""


class ClosedError(ToolkitError, RuntimeError):
    """The client was closed and cannot be used any more."""


class LedgerChanged(ToolkitError):
    """A node serves another ledger than before: its chain id changed, or its history did. Connect again to use it."""


class NodeError(ToolkitError):
    """The node answered with an error status.

    Parameters
    ----------
    text : str
        The whole text for a reader: what was asked, what came back, what to do.
    status : int
        HTTP status.
    error_code : str or None
        The node's own code (``table_item_not_found``); None where the body was not the documented error.
    message : str
        The node's own message, cut after 2,000 characters, or the start of a body that is not the documented error.
    vm_error_code : int or None
        VM status number, where the VM refused.
    ledger : LedgerState or None
        The node's head when it answered, where the headers say.
    retry_after_s : float or None
        Seconds the node asked to wait, where it did.
    archive : str or None
        URL of an archive that holds the pruned version, where the node or its gateway advertises one (https only).
    """

    def __init__(
        self,
        text: str,
        *,
        status: int,
        error_code: str | None = None,
        message: str = "",
        vm_error_code: int | None = None,
        ledger: LedgerState | None = None,
        retry_after_s: float | None = None,
        archive: str | None = None,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.error_code = error_code
        self.message = message
        self.vm_error_code = vm_error_code
        self.ledger = ledger
        self.retry_after_s = retry_after_s
        self.archive = archive

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle whole, so that a refusal comes back from another process as what it is."""
        return partial(type(self), status=self.status), self.args, self.__dict__


class InvalidRequest(NodeError):
    """400: the node could not use the request, or execution of a view failed."""


class Forbidden(NodeError):
    """403 (or a gateway's 401): the node or its gateway refuses this call."""


class NotFound(NodeError):
    """404: no such table item, resource, module, version, transaction or path."""


class VersionPruned(NodeError):
    """410: the requested ledger version has been pruned."""


class TooLarge(NodeError):
    """413: the request body is larger than the node accepts."""


class RateLimited(NodeError):
    """429: the node or its gateway asks to slow down; also a call not sent because it asked for a long wait."""


class Unavailable(NodeError):
    """503: the node cannot answer now."""


class InsufficientStorage(NodeError):
    """507: the node's mempool is full."""
