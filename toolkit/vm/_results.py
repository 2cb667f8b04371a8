"""Results of executions: status, fee, events, writes, gas log, profile and trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import InputError
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._trace import Profile, Trace, gas_of_calls
from toolkit.vm._types import ModuleId

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.vm._errors import MoveError
    from toolkit.vm._features import Features
    from toolkit.vm._gas import Entry, Meter
    from toolkit.vm._module import Attributes
    from toolkit.vm._state import Metadata
    from toolkit.vm._trace import TraceStep

_LIMITS = {"EXECUTION_LIMIT_REACHED", "IO_LIMIT_REACHED", "STORAGE_LIMIT_REACHED"}
_LIMITS |= {"TOO_MANY_DELAYED_FIELDS", "UNABLE_TO_CAPTURE_DELAYED_FIELDS"}


@dataclass(frozen=True)
class Status:
    """How an execution ended.

    Attributes
    ----------
    kind : str
        ``success``, ``abort``, ``out_of_gas``, ``execution_failure``, ``miscellaneous_error`` or ``discard``.
    code : int, str or None
        The code of an abort; else the name of the status code, such as ``ARITHMETIC_ERROR``.
    location : str or None
        Module (``0x1::coin``) or ``script`` of an abort or failure.
    function, offset : int or None
        Index of the function definition, and offset of the instruction.
    message : str or None
        What the machine of a node says.
    sub_status : int or None
        Kind of an error of a vector.
    reason, description : str or None
        Name and description of an abort code, from the metadata of the module.

    Examples
    --------
    >>> from toolkit import vm
    >>> status = vm.Status("abort", 65_540, "0x1::coin", reason="EINSUFFICIENT_BALANCE")
    >>> status.success, status.code
    (False, 65540)
    """

    kind: str
    code: int | str | None = None
    location: str | None = None
    function: int | None = None
    offset: int | None = None
    message: str | None = None
    sub_status: int | None = None
    reason: str | None = None
    description: str | None = None

    @property
    def success(self) -> bool:
        """Whether the execution succeeded."""
        return self.kind == "success"


SUCCESS = Status("success")


def status_of(
    error: MoveError,
    features: Features,
    version: int,
    attributes: Callable[[ModuleId], Attributes | None] = lambda _: None,
) -> Status:
    """Return the status that an error leads to: kept with a kind, or discarded.

    Parameters
    ----------
    error : MoveError
    features : Features
    version : int
        Gas feature version.
    attributes : callable, optional
        Returns the attributes of a module, for the names of abort codes.
    """
    location = None if error.location is None else str(error.location)
    number = error.number
    if error.status == "ABORTED" and error.sub_status is not None and location is not None:
        reason = None
        if isinstance(error.location, ModuleId) and (found := attributes(error.location)) is not None:
            reason = found.abort(error.sub_status)
        name, description = reason or (None, None)
        code = error.sub_status
        return Status("abort", code, location, message=error.message, reason=name, description=description)
    if error.status == "OUT_OF_GAS":
        return Status("out_of_gas", error.status)
    miscellaneous = error.status in _LIMITS
    miscellaneous |= error.status == "VM_MAX_VALUE_DEPTH_REACHED" and flags.FUNCTION_VALUES in features
    miscellaneous |= error.status == "MEMORY_LIMIT_EXCEEDED" and version >= since.LIMITS_BY_NAME
    miscellaneous |= 1000 <= number < 2000 or 3000 <= number < 4000
    miscellaneous |= 2000 <= number < 3000 and flags.CHARGE_INVARIANT_VIOLATION in features
    if miscellaneous:
        return Status("miscellaneous_error", error.status, message=error.message, sub_status=error.sub_status)
    if not 4000 <= number < 5000:
        return Status("discard", error.status, message=error.message, sub_status=error.sub_status)
    place = location, error.function, error.offset
    if error.function is None or error.offset is None:
        place = "script", 0, 0
    return Status("execution_failure", error.status, *place, error.message, error.sub_status)


class Fee(NamedTuple):
    """Parts of the fee, as the fee statement of a transaction has them."""

    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


NO_FEE = Fee(0, 0, 0, 0)


class EmittedEvent(NamedTuple):
    """An event: its type as text, its key (None for module events), its sequence number, and its BCS."""

    type: str
    key: bytes | None
    sequence_number: int
    data: bytes


class Write(NamedTuple):
    """A write of a state key: ``create``, ``modify`` or ``delete``, the new value and its metadata."""

    op: str
    value: bytes | None
    metadata: Metadata | None


@dataclass(frozen=True)
class _Measured:
    """What was charged, if a log was asked for."""

    _meter: Meter | None = field(repr=False, default=None)
    _trace: list[TraceStep] | None = field(repr=False, default=None)

    @property
    def log(self) -> list[Entry]:
        """The gas log: an entry per charge, in order.

        Raises
        ------
        InputError
            If the execution ran without ``log=True``.
        """
        if self._meter is None or self._meter.log is None:
            raise InputError("the execution has no gas log; run with log=True")
        return self._meter.log

    @property
    def profile(self) -> Profile:
        """Gas by function, and the call tree."""
        return Profile.from_log(self.log, self._trace or [])

    @property
    def trace(self) -> Trace:
        """The instructions that ran, one by one."""
        return Trace.from_log(self.log, self._trace or [])

    def gas_of_calls(self) -> list[tuple[int, int]]:
        """Return the internal gas of the calls of a batch, execution and io: before them, of each, and after them.

        Calls that were not reached are left out.
        """
        return gas_of_calls(self.log, self._trace or [])

    @property
    def memory_left(self) -> int | None:
        """Abstract memory that was left."""
        return None if self._meter is None else self._meter.memory


@dataclass(frozen=True)
class Execution(_Measured):
    """The outcome of a transaction.

    Attributes
    ----------
    status : Status
    gas_used : int
        In gas units.
    fee : Fee
    events : list of EmittedEvent
    writes : dict of bytes to Write
        By state key, in the order of the ledger.

    Examples
    --------
    >>> from toolkit import vm
    >>> done = vm.Execution(gas_used=7)
    >>> done.status.kind, done.gas_used, done.writes
    ('success', 7, {})
    """

    status: Status = SUCCESS
    gas_used: int = 0
    fee: Fee = NO_FEE
    events: list[EmittedEvent] = field(default_factory=list)
    writes: dict[bytes, Write] = field(default_factory=dict)


@dataclass(frozen=True)
class View(_Measured):
    """The outcome of a view function.

    Attributes
    ----------
    status : Status
    values : list of bytes
        The results, each as BCS.
    gas_used : int
        In gas units.

    Examples
    --------
    >>> from toolkit import vm
    >>> seen = vm.View(values=[bytes([42])], gas_used=1)
    >>> seen.values[0].hex(), seen.status.success
    ('2a', True)
    """

    status: Status = SUCCESS
    values: list[bytes] = field(default_factory=list)
    gas_used: int = 0
