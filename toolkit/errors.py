"""Exceptions of the toolkit: every error that it raises on purpose derives from `ToolkitError`.

::

    ToolkitError
    ├── InputError                 an argument, option or file is not valid (also a ValueError)
    │   ├── NotAtPast              an operation at a past version that a node offers at its head only
    │   └── StudyError             a study file or a run folder is not valid
    │       └── RunStopped         a run was interrupted by its machine or its workers; repeating the call continues it
    ├── SchemaError                a value does not fit its declared type (also a ValueError)
    ├── InexactError               pandas would compute wide integers with floats (also an ArithmeticError)
    ├── NodeUnreachable            no HTTP answer: refused, timed out, cut off, TLS (also a ConnectionError)
    │   ├── HopelessError          a retry cannot help: TLS or a redirect refused, an answer too large or too slow
    │   └── OfflineMiss            the client is offline and the answer is not in the cache
    ├── ClosedError                the client is closed
    ├── LedgerChanged              the node serves a different ledger than before: chain id or history differ
    └── NodeError                  the node answered with an error status
        ├── InvalidRequest         400
        ├── Forbidden              403 (and 401 of a gateway)
        ├── NotFound               404
        ├── VersionPruned          410
        ├── TooLarge               413
        ├── RateLimited            429
        ├── Unavailable            503
        └── InsufficientStorage    507

`FailedReadsWarning` is the one warning with a class of its own; the others are a `UserWarning`.

Messages say what was requested, where it failed, what was expected, what was received and what to do next. Control and
bidirectional characters in quoted text are escaped; newlines are the only control characters of a message.

A notebook shows the cell that failed and the message. Frames inside the toolkit, and errors behind the error, such as
those of a library, are shown with the environment variable ``LEDGER_TOOLKIT_DEBUG=1``.
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
    "FailedReadsWarning",
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
    """Base class of every error that the toolkit raises on purpose."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(cleaned(arg) if isinstance(arg, str) else arg for arg in args))

    def add_note(self, note: str, /) -> None:
        """Add a line that tracebacks show, with control characters escaped."""
        super().add_note(cleaned(note))

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows for the error: the user's code and the message.

        With ``LEDGER_TOOLKIT_DEBUG=1`` or ``%xmode Verbose``, then ``%tb``, everything else is shown too.
        """
        from toolkit._present.notebook import short_traceback

        return short_traceback(self)


class FailedReadsWarning(UserWarning):
    """All reads of a fetch function failed: every row of its frame has an error instead of a value."""


class InputError(ToolkitError, ValueError):
    """An argument, option, type, address or version plan is not valid."""


class NotAtPast(InputError):
    """A snapshot of a past version was asked for an operation that a node offers at its head only."""


class StudyError(InputError):
    """A study file or a run folder is not valid."""


class RunStopped(StudyError):
    """A run was interrupted by its machine or its workers; repeating the call continues it."""


class SchemaError(ToolkitError, ValueError):
    """A value does not fit its declared type.

    Parameters
    ----------
    message : str
        What was expected and what was found.
    column : str, optional
        Column, or path inside a value, of the value that does not fit.
    rows : sequence of int, optional
        Positions of the first failing rows.
    """

    def __init__(self, message: str, *, column: str | None = None, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.column = column
        self.rows = tuple(rows)


class InexactError(ToolkitError, ArithmeticError):
    """pandas would convert wide integers to floats; the message names the exact alternative.

    It is neither a TypeError nor a ValueError, because pandas catches those and loses the message.
    """


class NodeUnreachable(ToolkitError, ConnectionError):
    """The node sent no HTTP answer."""


class HopelessError(NodeUnreachable):
    """A retry cannot help: TLS or a redirect was refused, or the answer is too large or too slow."""


class OfflineMiss(NodeUnreachable):
    """The client is offline, and the answer is not in the cache."""


class ClosedError(ToolkitError, RuntimeError):
    """The client is closed and cannot be used any more."""


class LedgerChanged(ToolkitError):
    """The node serves a different ledger than before: its chain id or its history changed. Connect again to use it."""


class NodeError(ToolkitError):
    """The node answered with an error status.

    Parameters
    ----------
    text : str
        Message: what was requested, what the node answered, and what to do.
    status : int
        HTTP status.
    error_code : str or None
        Error code of the node (``table_item_not_found``), None if the body is not a documented error.
    message : str
        Message of the node, cut after 2,000 characters, or the start of a body that is not a documented error.
    vm_error_code : int or None
        Status code of the VM, None if the error does not come from the VM.
    ledger : LedgerState or None
        Head of the node when it answered, None if the headers do not carry it.
    retry_after_s : float or None
        Seconds to wait before a retry, None if the node does not say.
    archive : str or None
        URL (https) of an archive node that holds the pruned version, None if the node does not advertise one.
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
        """Support pickling with all attributes, so that an error of a worker process is raised unchanged."""
        return partial(type(self), status=self.status), self.args, self.__dict__


class InvalidRequest(NodeError):
    """400: the request is not valid, or execution of the view function failed."""


class Forbidden(NodeError):
    """The node or its gateway refuses the request: status 403, or 401 from a gateway."""


class NotFound(NodeError):
    """404 or 405: the table item, resource, module, version, transaction or path does not exist."""


class VersionPruned(NodeError):
    """410: the requested ledger version is pruned."""


class TooLarge(NodeError):
    """413: the request body is larger than the node accepts."""


class RateLimited(NodeError):
    """429: too many requests; also raised without a request while the node has asked for a long wait."""


class Unavailable(NodeError):
    """503: the node is not available."""


class InsufficientStorage(NodeError):
    """507: the node's mempool is full."""
