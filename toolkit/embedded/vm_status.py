"""How an execution can end other than well: Move aborts and VM errors, with the node's texts.

These exceptions steer execution inside the node; callers of the ledger meet them as a failed transaction, an
error body, or an `InputError`.
"""

from __future__ import annotations

from dataclasses import dataclass

from toolkit.errors import InputError
from toolkit.move import ModuleId, Writer

__all__ = ["SUCCESS", "VM_STATUS_CODES", "AbortCode", "MoveAbort", "VmError", "already_exists", "invalid_argument"]
__all__ += ["invalid_state", "not_found", "out_of_range", "permission_denied", "resource_exhausted"]

EXECUTED = "Executed successfully"

# BCS of an ``ExecutionStatus``, by variant.
_OUT_OF_GAS, _MOVE_ABORT, _EXECUTION_FAILURE, _MISCELLANEOUS = range(1, 5)
SUCCESS = b"\x00"

#: VM status numbers by name, as ``vm_error_code`` shows them (wire facts, section 9).
VM_STATUS_CODES = {
    "INVALID_SIGNATURE": 1,
    "INVALID_AUTH_KEY": 2,
    "SEQUENCE_NUMBER_TOO_OLD": 3,
    "SEQUENCE_NUMBER_TOO_NEW": 4,
    "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE": 5,
    "TRANSACTION_EXPIRED": 6,
    "SENDING_ACCOUNT_DOES_NOT_EXIST": 7,
    "EXCEEDED_MAX_TRANSACTION_SIZE": 10,
    "MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND": 13,
    "MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS": 14,
    "GAS_UNIT_PRICE_BELOW_MIN_BOUND": 15,
    "GAS_UNIT_PRICE_ABOVE_MAX_BOUND": 16,
    "BAD_CHAIN_ID": 23,
    "MULTISIG_TRANSACTION_NOT_FOUND": 33,
    "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS": 34,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH": 35,
    "GAS_PAYER_ACCOUNT_MISSING": 36,
    "NONCE_ALREADY_USED": 42,
    "INVALID_MAIN_FUNCTION_SIGNATURE": 1011,
    "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH": 1076,
    "LINKER_ERROR": 1081,
    "FUNCTION_RESOLUTION_FAILURE": 1091,
    "NUMBER_OF_ARGUMENTS_MISMATCH": 1098,
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": 1099,
    "FAILED_TO_DESERIALIZE_ARGUMENT": 1100,
    "TYPE_RESOLUTION_FAILURE": 2021,
    "ARITHMETIC_ERROR": 4017,
    "OUT_OF_GAS": 4002,
    "RESOURCE_ALREADY_EXISTS": 4004,
    "MISSING_DATA": 4008,
    "ABORTED": 4016,
    "EXECUTION_LIMIT_REACHED": 4030,
    "IO_LIMIT_REACHED": 4031,
    "STORAGE_LIMIT_REACHED": 4032,
}

_EXECUTION_FAILURES = {"ARITHMETIC_ERROR", "RESOURCE_ALREADY_EXISTS", "MISSING_DATA"}


@dataclass(slots=True)
class AbortCode:
    """A named reason to abort; as a class attribute of a module it learns its name by itself.

    Parameters
    ----------
    code : int
        What the VM reports: category in bits 16 to 23, reason in the low 16 bits.
    description : str
        One sentence for people.
    name : str, optional
        Name of the constant; filled by the attribute it is assigned to.

    Raises
    ------
    InputError
        If the code is no u64.
    """

    code: int
    description: str
    name: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.code < 1 << 64:
            raise InputError(f"abort code {self.code}: a u64 is expected, 0 to 2^64 - 1")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


def invalid_argument(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 1: the caller's argument is wrong."""
    return AbortCode(0x10000 + reason, description)


def out_of_range(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 2: an index or amount is outside its range."""
    return AbortCode(0x20000 + reason, description)


def invalid_state(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 3: the ledger is not in a state that allows this."""
    return AbortCode(0x30000 + reason, description)


def permission_denied(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 5: the signer may not do this."""
    return AbortCode(0x50000 + reason, description)


def not_found(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 6: something needed does not exist."""
    return AbortCode(0x60000 + reason, description)


def already_exists(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 8: something is there already."""
    return AbortCode(0x80000 + reason, description)


def resource_exhausted(reason: int, description: str) -> AbortCode:
    """Return an abort code of category 9: a limit is reached."""
    return AbortCode(0x90000 + reason, description)


class VmError(Exception):
    """Execution ended with a VM status other than an abort.

    Parameters
    ----------
    status : str
        Name of the VM status, a key of `VM_STATUS_CODES`.
    message : str, optional
        What the VM says about it.
    location : str, optional
        ``0x1::module::function`` where execution failed.
    """

    def __init__(self, status: str, message: str = "", *, location: str = "") -> None:
        super().__init__(message or status)
        self.status = status
        self.message = message
        self.location = location

    @property
    def vm_error_code(self) -> int:
        """Number of the VM status; 0 for one whose number no answer ever shows."""
        return VM_STATUS_CODES.get(self.status, 0)

    @property
    def vm_status(self) -> str:
        """Text of a transaction's ``vm_status``."""
        if self.status == "OUT_OF_GAS":
            return "Out of gas"
        if self.status in _EXECUTION_FAILURES:
            text = f"Execution failed in {self.location or 'script'} at code offset 0"
        else:
            text = self.status
        return f"{text}\nExecution failed with message: {self.message}" if self.message else text

    @property
    def view_message(self) -> str:
        """Text of a view's error body."""
        return self.message or self.vm_status

    @property
    def execution_status(self) -> bytes:
        """BCS of the transaction's ``ExecutionStatus``; where in the bytecode it failed, a model does not know."""
        writer = Writer()
        if self.status == "OUT_OF_GAS":
            writer.uleb128(_OUT_OF_GAS)
        elif self.status in _EXECUTION_FAILURES:
            writer.uleb128(_EXECUTION_FAILURE)
            _write_location(writer, "::".join(self.location.split("::")[:2]))
            writer.u16(0)
            writer.u16(0)
        else:
            writer.uleb128(_MISCELLANEOUS)
            writer.bool(self.vm_error_code > 0)
            if self.vm_error_code:
                writer.u64(self.vm_error_code)
        return writer.getvalue()


class MoveAbort(VmError):  # noqa: N818 - what Move calls it
    """A contract aborted.

    Parameters
    ----------
    module : str
        ``0x1::module`` that aborted, as the wire prints it.
    code : AbortCode
        The reason.
    """

    def __init__(self, module: str, code: AbortCode) -> None:
        self.module = module
        self.code = code
        named = f"{code.name}({code.code:#x}): {code.description}" if code.name else f"{code.code:#x}"
        self._text = f"Move abort in {module}: {named}"
        super().__init__("ABORTED", self._text, location=module)

    @property
    def vm_status(self) -> str:
        """Text of a transaction's ``vm_status``, and of a view's error."""
        return self._text

    @property
    def execution_status(self) -> bytes:
        """BCS of the transaction's ``ExecutionStatus``, with the reason's name where it has one."""
        writer = Writer()
        writer.uleb128(_MOVE_ABORT)
        _write_location(writer, self.module)
        writer.u64(self.code.code)
        writer.bool(bool(self.code.name))
        if self.code.name:
            writer.string(self.code.name)
            writer.string(self.code.description)
        return writer.getvalue()


def _write_location(writer: Writer, module: str) -> None:
    """Append where execution ended: a module, or else a script."""
    writer.uleb128(0 if module else 1)
    if module:
        at = ModuleId.parse(module)
        writer.address(at.address)
        writer.string(at.name)
