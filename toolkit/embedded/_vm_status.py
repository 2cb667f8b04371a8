"""VM status of failed executions: Move aborts and VM errors, with the texts that nodes use.

The exceptions are internal to the embedded ledger. Callers see a failed transaction, an error response, or an
`InputError`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.errors import InputError
from toolkit.wire._aborts import VM_STATUS_CODES
from toolkit.wire._on_chain import SCRIPT, Status

EXECUTED = "Executed successfully"

# Statuses without a message of the VM, which messages name. The sub status 1 is an index out of bounds.
_WITHOUT_MESSAGE = {
    "EXECUTION_STACK_OVERFLOW": "EXECUTION_STACK_OVERFLOW",
    "VECTOR_OPERATION_ERROR": "VECTOR_OPERATION_ERROR with sub status 1",
}

_MAX_REASON = 0xFFFF
_EXECUTION_FAILURES = {
    "ARITHMETIC_ERROR",
    "EXECUTION_STACK_OVERFLOW",
    "MISSING_DATA",
    "RESOURCE_ALREADY_EXISTS",
    "VECTOR_OPERATION_ERROR",
}


@dataclass(slots=True)
class AbortCode:
    """An abort code with a name and a description.

    Parameters
    ----------
    code : int
        A u64 with the category in bits 16 to 23 and the reason in the low 16 bits.
    description : str
        One sentence, which becomes part of the VM status.
    name : str, optional
        Name of the constant; set automatically for class attributes of a module.

    Raises
    ------
    InputError
        If the code is not a u64.

    Examples
    --------
    >>> from toolkit.embedded import Module, not_found
    >>> class Shop(Module, address="0x5407"):
    ...     E_SOLD_OUT = not_found(1, "The item is sold out")
    >>> Shop.E_SOLD_OUT
    AbortCode(code=393217, description='The item is sold out', name='E_SOLD_OUT')
    """

    code: int
    description: str
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.code, int):
            raise InputError(
                f"abort code must be an int or an AbortCode, got {self.code!r:.80}; declare it in the class of the "
                'contract, such as E_EMPTY = invalid_state(1, "Nothing is left")'
            )
        if not 0 <= self.code < 1 << 64:
            raise InputError(f"abort code must be a u64, from 0 to 2^64 - 1, got {self.code}")
        self.code = int(self.code)  # numbers of contracts have a width

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


def _canonical(category: int, reason: Any, description: str) -> AbortCode:
    """Return ``std::error::canonical(category, reason)``.

    In Move, a reason of more than 16 bits changes the category: ``invalid_argument(0x10000)`` is an ``out_of_range``.
    """
    if isinstance(reason, bool) or not isinstance(reason, int) or not 0 <= reason <= _MAX_REASON:
        raise InputError(
            f"the reason of an abort code must be an int from 0 to {_MAX_REASON:,} (16 bits), got {reason!r:.80}; "
            "a larger reason would change the category"
        )
    return AbortCode((category << 16) + reason, description)


def invalid_argument(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 1: an argument is not valid.

    Examples
    --------
    >>> from toolkit.embedded import invalid_argument
    >>> E_NOTHING = invalid_argument(1, "The amount is zero")
    >>> hex(E_NOTHING.code)
    '0x10001'
    """
    return _canonical(1, reason, description)


def out_of_range(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 2: an index or amount is outside its range.

    Examples
    --------
    >>> from toolkit.embedded import out_of_range
    >>> E_INDEX = out_of_range(1, "The index is too large")
    >>> hex(E_INDEX.code)
    '0x20001'
    """
    return _canonical(2, reason, description)


def invalid_state(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 3: the state of the ledger does not allow the call.

    Examples
    --------
    >>> from toolkit.embedded import invalid_state
    >>> E_CLOSED = invalid_state(1, "The shop is closed")
    >>> hex(E_CLOSED.code)
    '0x30001'
    """
    return _canonical(3, reason, description)


def permission_denied(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 5: the signer is not permitted to make the call.

    Examples
    --------
    >>> from toolkit.embedded import permission_denied
    >>> E_NOT_OWNER = permission_denied(1, "Only the owner may do this")
    >>> hex(E_NOT_OWNER.code)
    '0x50001'
    """
    return _canonical(5, reason, description)


def not_found(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 6: something that the call needs does not exist.

    Examples
    --------
    >>> from toolkit.embedded import not_found
    >>> E_NO_ORDER = not_found(1, "The order does not exist")
    >>> hex(E_NO_ORDER.code)
    '0x60001'
    """
    return _canonical(6, reason, description)


def already_exists(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 8: something already exists.

    Examples
    --------
    >>> from toolkit.embedded import already_exists
    >>> E_TAKEN = already_exists(1, "The name is taken")
    >>> hex(E_TAKEN.code)
    '0x80001'
    """
    return _canonical(8, reason, description)


def resource_exhausted(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 9: a limit is reached.

    Examples
    --------
    >>> from toolkit.embedded import resource_exhausted
    >>> E_SOLD_OUT = resource_exhausted(1, "Nothing is left")
    >>> hex(E_SOLD_OUT.code)
    '0x90001'
    """
    return _canonical(9, reason, description)


class VmError(BaseException):
    """Execution ended with a VM status other than success or an abort.

    It is not an `Exception`, so that ``except Exception`` in a contract does not catch what Move cannot catch.

    Parameters
    ----------
    status : str
        Name of the VM status, usually a key of `VM_STATUS_CODES`.
    message : str, optional
        Message of the VM.
    location : str, optional
        Function in which execution failed, such as ``0x1::coin::transfer``.
    """

    def __init__(self, status: str, message: str = "", *, location: str = "") -> None:
        super().__init__(message or status)
        self.status = status
        self.message = message
        self.location = location

    @property
    def vm_error_code(self) -> int:
        """Number of the VM status, or 0 if responses do not contain the number."""
        return VM_STATUS_CODES.get(self.status, 0)

    @property
    def vm_status(self) -> str:
        """The text for ``vm_status`` in a transaction."""
        if self.status == "OUT_OF_GAS":
            return "Out of gas"
        failed = f"Execution failed in {self.location or 'script'} at code offset 0"
        text = failed if self.status in _EXECUTION_FAILURES else self.status
        message = self.message or _WITHOUT_MESSAGE.get(self.status, "")
        return f"{text}\nExecution failed with message: {message}" if message else text

    @property
    def view_message(self) -> str:
        """The message in the error response of a view: the VM's message, or the status and its location."""
        status = _WITHOUT_MESSAGE.get(self.status, self.status)
        return self.message or f"VMError with status {status} at location {self.location or 'UNDEFINED'}"

    @property
    def outcome(self) -> Status:
        """The status as a record; the function index and the code offset are 0."""
        if self.status == "OUT_OF_GAS":
            return Status("out_of_gas", self.status)
        if self.status not in _EXECUTION_FAILURES:
            return Status("miscellaneous_error", self.status)
        module = "::".join(self.location.split("::")[:2])
        return Status("execution_failure", self.status, module or SCRIPT, 0, 0)


class MoveAbort(VmError):  # noqa: N818 - the name in Move
    """A contract aborted.

    Parameters
    ----------
    module : str
        Module that aborted, as the REST API prints it, such as ``0x1::coin``; empty for a script.
    code : AbortCode
        Abort code, with its name and description if they are known.
    """

    def __init__(self, module: str, code: AbortCode) -> None:
        self.module = module
        self.code = code
        named = f"{code.name}({code.code:#x}): {code.description}" if code.name else f"{code.code:#x}"
        # A script does not have metadata with the names of its abort codes.
        self._text = f"Move abort in {module}: {named}" if module else f"Move abort: code {code.code:#x}"
        super().__init__("ABORTED", self._text, location=module)

    @property
    def vm_status(self) -> str:
        """The text for ``vm_status`` in a transaction, and for the error of a view."""
        return self._text

    @property
    def outcome(self) -> Status:
        """The status as a record, with the name of the abort code if it has a name."""
        code = self.code
        if not (code.name and self.module):
            return Status("abort", code.code, self.module or SCRIPT)
        return Status("abort", code.code, self.module, reason=code.name, description=code.description)
