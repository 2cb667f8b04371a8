"""Exceptions of the toolkit. Every error that the toolkit raises deliberately derives from `ToolkitError`.

::

    ToolkitError
    ├── InputError                 an argument, option or file is not valid (also a ValueError)
    │   ├── Aborted                a view or a transaction of an embedded ledger failed
    │   ├── ContractError          a contract breaks a rule of the model of contracts, or its Python code fails
    │   ├── NotAtPast              a past version was requested for an operation that nodes offer only at the head
    │   └── StudyError             a study file or a run folder is not valid
    │       └── RunStopped         a run or an archive sync was interrupted; repeat the call to continue it
    ├── SchemaError                a value does not fit its declared type (also a ValueError)
    ├── Unsupported                the Move machine does not implement a native, format, feature or gas version
    ├── InexactError               labels of wide integers were rounded to floats (also an ArithmeticError)
    ├── NodeUnreachable            no usable HTTP response, such as after a timeout (also a ConnectionError)
    │   ├── HopelessError          a retry cannot help, such as when the node's certificate is not trusted
    │   └── OfflineMiss            the client is offline and the response is not in the cache
    ├── ClosedError                the client is closed
    ├── LedgerChanged              the node now serves a different ledger: its chain id or history differs
    └── NodeError                  the node returned an error status
        ├── InvalidRequest         400
        ├── Forbidden              403, or 401 from a gateway
        ├── NotFound               404 or 405
        ├── VersionPruned          410
        ├── TooLarge               413
        ├── RateLimited            429
        ├── Unavailable            503
        └── InsufficientStorage    507

`FailedReadsWarning` is the only warning class of the toolkit; all other warnings are a plain `UserWarning`.

Messages say what is wrong and, where the toolkit knows it, what was requested and what to do next. Control and
bidirectional characters in quoted text are escaped; newlines are the only control characters in a message.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from toolkit._present.messages import cut_text
from toolkit._present.text import cleaned

__all__ = [
    "Aborted",
    "ClosedError",
    "ContractError",
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
    "Unsupported",
    "VersionPruned",
]

_MAX_MESSAGE = 8_000  # characters: about two screens
_MARK = 50  # room for the truncation mark: unpickling an error passes its message again, which must not be cut twice


class ToolkitError(Exception):
    """Base class of all errors that the toolkit raises deliberately.

    Each argument is a line of the message: a list of problems has one line per problem.

    Examples
    --------
    >>> from toolkit import errors, move
    >>> try:
    ...     move.parse_address("0xzz")
    ... except errors.ToolkitError as error:
    ...     print(type(error).__name__)
    InputError
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_bounded(cleaned(arg)) if isinstance(arg, str) else arg for arg in args))

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))

    def add_note(self, note: str, /) -> None:
        """Add a note to the traceback, with control characters escaped."""
        super().add_note(cleaned(note))


def _bounded(text: str) -> str:
    """Truncate a message to about two screens; a message that is already truncated is returned unchanged."""
    return text if len(text) <= _MAX_MESSAGE + _MARK else cut_text(text, _MAX_MESSAGE)


class FailedReadsWarning(UserWarning):
    """All reads of a fetch function failed, or some values do not fit their types. The affected rows have no value.

    Examples
    --------
    >>> import warnings
    >>> from toolkit.errors import FailedReadsWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", FailedReadsWarning)  # a sweep that is expected to fail
    """


class InputError(ToolkitError, ValueError):
    """An argument, option, type, address or version plan is not valid.

    Attributes
    ----------
    problems : tuple of (tuple, str)
        For a request object, the paths of the first fields that are not valid, with the reasons.
    reason : str
        For a version plan that is not understood, the message without the forms of plans; empty for other errors.

    Examples
    --------
    >>> from toolkit import errors, move
    >>> try:
    ...     move.parse_address("0xzz")
    ... except errors.InputError as error:
    ...     print(error)
    not an address: '0xzz'; expected 0x and 1 to 64 hex digits
    """

    problems: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    reason: str = ""


class ContractError(InputError):
    """A contract breaks a rule of the model of contracts, or its Python code fails. The message names the line.

    Examples
    --------
    >>> from toolkit.embedded import Ledger, Module, u8, u64, view
    >>> from toolkit.errors import ContractError
    >>> class Shop(Module, address="0x5407"):
    ...     @view
    ...     def total(self, price: u64, count: u8) -> u64:
    ...         return price * count
    >>> ledger = Ledger()
    >>> published = ledger.publish(Shop)
    >>> try:
    ...     ledger.view("0x5407::shop::total", [3, 4])
    ... except ContractError as error:
    ...     print(str(error).partition(" (")[0])
    0x5407::shop::total: expected u64, got u8 4
    """


class Aborted(InputError):
    """A view of an embedded ledger, or a transaction executed with ``check=True``, failed.

    Parameters
    ----------
    reason : str
        The message: the VM status, and for a view the function and the version.
    vm_status : str
        The VM status, as reported by the node.
    transaction : CommittedTransaction, optional
        The failed transaction, which was still committed; None for a view.

    Examples
    --------
    >>> from toolkit.embedded import Aborted, Ledger
    >>> try:
    ...     Ledger().commit("0x1::coin::transfer", "0xb0b", 10**18, sender="0xa11ce",
    ...                     type_arguments=["0x1::aptos_coin::AptosCoin"], check=True)
    ... except Aborted as error:
    ...     print(error)
    Move abort in 0x1::fungible_asset: EINSUFFICIENT_BALANCE(0x10004): Insufficient balance to withdraw or transfer.
    """

    def __init__(self, reason: str, vm_status: str = "", transaction: Any = None) -> None:
        super().__init__(reason)
        self.reason, self.vm_status, self.transaction = reason, vm_status, transaction


class NotAtPast(InputError):
    """An operation that nodes offer only at the head was requested at a past version.

    Examples
    --------
    >>> import toolkit
    >>> past = toolkit.connect().at(100)
    >>> try:
    ...     past.simulate(toolkit.EntryFunction("0x1::m::f"), sender="0x1")
    ... except toolkit.NotAtPast as error:
    ...     print(str(error)[:49])
    a node simulates at its head only, not at version
    """


class StudyError(InputError):
    """A study file or a run folder is not valid.

    Examples
    --------
    >>> import toolkit
    >>> try:
    ...     toolkit.Study.load("missing.toml")
    ... except toolkit.StudyError as error:
    ...     print(str(error)[:46])
    study missing.toml: No such file or directory;
    """


class RunStopped(StudyError):
    """A run or an archive sync was interrupted, for example by a full disk. Repeat the call to continue it.

    Examples
    --------
    >>> from toolkit import errors
    >>> try:
    ...     raise errors.RunStopped("a worker died; repeat the call to continue")
    ... except errors.StudyError as error:
    ...     print(error)
    a worker died; repeat the call to continue
    """


class SchemaError(ToolkitError, ValueError):
    """A value does not fit its declared type.

    Parameters
    ----------
    message : str
        What was expected and what was found.
    column : str, optional
        Column of the value that does not fit, or the path inside a nested value.
    rows : sequence of int, optional
        Positions of the first rows that do not fit.

    Examples
    --------
    >>> from toolkit import dtypes, errors
    >>> try:
    ...     dtypes.wide_from_ints([1, -2], dtypes.u128(), column="supply")
    ... except errors.SchemaError as error:
    ...     print(error.column, error.rows)
    supply (1,)
    """

    def __init__(self, message: str, *, column: str | None = None, rows: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.column, self.rows = column, tuple(rows)


class Unsupported(ToolkitError):
    """The Move machine does not implement something that a program needs, so it does not run the program.

    The message names the native function, the version of the bytecode or of the gas schedule, or the feature.

    Examples
    --------
    >>> from toolkit import errors, vm
    >>> try:
    ...     vm.Module.from_bytes(bytes.fromhex("a11ceb0b04000000"))
    ... except errors.Unsupported as error:
    ...     print(error)
    bytecode version 4; versions 5 to 9 are supported
    """


class InexactError(ToolkitError, ArithmeticError):
    """Labels of an index of wide integers are floats of at least 2^53, which may be the rounded forms of other labels.

    This is deliberately not a TypeError or ValueError: pandas catches those and discards the message.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from toolkit import errors
    >>> index = pd.Index([2**64, -1], dtype="i128")
    >>> try:
    ...     index.get_indexer(np.array([2**64 - 1, -1]))
    ... except errors.InexactError as error:
    ...     print(type(error).__name__)
    InexactError
    """


class NodeUnreachable(ToolkitError, ConnectionError):
    """The node sent no usable HTTP response.

    Examples
    --------
    >>> import toolkit
    >>> try:
    ...     toolkit.connect("http://127.0.0.1:9", offline=True, cache=None).ledger()
    ... except toolkit.NodeUnreachable as error:
    ...     print(isinstance(error, ConnectionError))
    True
    """


class HopelessError(NodeUnreachable):
    """A retry cannot help, for example because the node's certificate is not trusted or the response is too large.

    Examples
    --------
    >>> from toolkit import errors
    >>> try:
    ...     raise errors.HopelessError("the response is larger than the limit")
    ... except errors.NodeUnreachable as error:  # a retry loop should stop here
    ...     print(isinstance(error, errors.HopelessError))
    True
    """


class OfflineMiss(NodeUnreachable):
    """The client is offline, and the response is not in the cache.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import errors
    >>> node = toolkit.connect("http://127.0.0.1:9", offline=True, cache=None)
    >>> try:
    ...     node.ledger()
    ... except errors.OfflineMiss as error:
    ...     print(type(error).__name__)
    OfflineMiss
    """


class ClosedError(ToolkitError, RuntimeError):
    """The client has been closed.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import errors
    >>> with toolkit.connect() as node:
    ...     version = node.ledger().version
    >>> try:
    ...     node.ledger()
    ... except errors.ClosedError as error:
    ...     print(error)
    this node client is closed; call connect() again
    """


class LedgerChanged(ToolkitError):
    """The node now serves a different ledger: its chain id or its history changed. Connect again to use it.

    Examples
    --------
    >>> from toolkit import errors
    >>> try:
    ...     raise errors.LedgerChanged("expected chain id 4, got 7")
    ... except errors.ToolkitError as error:
    ...     print(error)
    expected chain id 4, got 7
    """


class NodeError(ToolkitError):
    """The node returned an error status.

    Parameters
    ----------
    text : str
        The message: what was requested, how the node responded, and what to do.
    status : int
        HTTP status.
    error_code : str or None
        Error code from the node, such as ``table_item_not_found``; None if the body is not the API's error JSON.
    message : str
        The node's message, truncated at 2,000 characters, or the start of a body that is not the API's error JSON.
    vm_error_code : int or None
        VM status code; None if the error does not come from the VM.
    ledger : LedgerState or None
        The node's head when it responded; None if the response headers do not report it.
    retry_after_s : float or None
        Seconds to wait before a retry; None if the node does not specify a delay.
    archive : str or None
        HTTPS URL of an archive node that has the pruned version; None if the node does not advertise one.

    Examples
    --------
    >>> import toolkit
    >>> try:
    ...     toolkit.connect().view("0x1::coin::no_such_function")
    ... except toolkit.NodeError as error:
    ...     print(type(error).__name__, error.status, error.error_code)
    InvalidRequest 400 invalid_input
    """

    def __init__(
        self,
        text: str,
        *,
        status: int,
        error_code: str | None = None,
        message: str = "",
        vm_error_code: int | None = None,
        ledger: Any = None,  # a LedgerState of toolkit.wire, which is above this module
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
        """Support pickling with all attributes, so that an error from a worker process is raised unchanged."""
        return partial(type(self), status=self.status), self.args, self.__dict__


class InvalidRequest(NodeError):
    """400: the request is not valid, or execution of the view function failed.

    Examples
    --------
    >>> import toolkit
    >>> from toolkit import errors
    >>> try:
    ...     toolkit.connect().view("0xcafe::registry::record_of", ["nobody"])
    ... except errors.InvalidRequest as error:
    ...     print(error.status, error.error_code)
    400 invalid_input
    """


class Forbidden(NodeError):
    """403, or 401 from a gateway: the request is not permitted.

    Examples
    --------
    >>> from toolkit import errors
    >>> error = errors.Forbidden("the gateway refuses the key", status=403)
    >>> isinstance(error, errors.NodeError), error.status
    (True, 403)
    """


class NotFound(NodeError):
    """404 or 405: the table item, resource, module, version, transaction or path does not exist.

    Examples
    --------
    >>> import toolkit
    >>> try:
    ...     toolkit.connect().resource("0xa11ce", "0x1::no::Thing")
    ... except toolkit.NotFound as error:
    ...     print(error.error_code)
    resource_not_found
    """


class VersionPruned(NodeError):
    """410, or 500 with a message about pruned state: the requested ledger version has been pruned.

    Examples
    --------
    >>> import toolkit
    >>> error = toolkit.VersionPruned("version 3 is pruned", status=410, archive="https://archive.example/v1")
    >>> error.archive
    'https://archive.example/v1'
    """


class TooLarge(NodeError):
    """413: the request body is larger than the node accepts.

    Examples
    --------
    >>> from toolkit import errors
    >>> error = errors.TooLarge("the request is too large", status=413)
    >>> isinstance(error, errors.NodeError), error.status
    (True, 413)
    """


class RateLimited(NodeError):
    """429: too many requests.

    Also raised if a request is not sent because the node asked clients to back off.

    Examples
    --------
    >>> from toolkit import errors
    >>> error = errors.RateLimited("too many requests", status=429, retry_after_s=2.5)
    >>> error.retry_after_s
    2.5
    """


class Unavailable(NodeError):
    """503: the node is not available.

    Examples
    --------
    >>> from toolkit import errors
    >>> error = errors.Unavailable("the node is starting", status=503)
    >>> isinstance(error, errors.NodeError), error.status
    (True, 503)
    """


class InsufficientStorage(NodeError):
    """507: the node's mempool is full.

    Examples
    --------
    >>> from toolkit import errors
    >>> error = errors.InsufficientStorage("the mempool is full", status=507)
    >>> isinstance(error, errors.NodeError), error.status
    (True, 507)
    """
