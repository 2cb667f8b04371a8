"""VM statuses: their numbers, and the Move aborts described in their text (module, name, code and description)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# VM status numbers by name, the values of ``vm_error_code``; others are printed as a number.
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
    "SEQUENCE_NUMBER_TOO_BIG": 24,
    "MULTISIG_TRANSACTION_NOT_FOUND": 33,
    "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS": 34,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH": 35,
    "GAS_PAYER_ACCOUNT_MISSING": 36,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH": 40,
    "NONCE_ALREADY_USED": 42,
    "INVALID_MAIN_FUNCTION_SIGNATURE": 1011,
    "CONSTRAINT_NOT_SATISFIED": 1075,
    "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH": 1076,
    "LINKER_ERROR": 1081,
    "FUNCTION_RESOLUTION_FAILURE": 1091,
    "NUMBER_OF_ARGUMENTS_MISMATCH": 1098,
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": 1099,
    "FAILED_TO_DESERIALIZE_ARGUMENT": 1100,
    "TYPE_RESOLUTION_FAILURE": 2021,
    "OUT_OF_GAS": 4002,
    "RESOURCE_ALREADY_EXISTS": 4004,
    "MISSING_DATA": 4008,
    "ABORTED": 4016,
    "ARITHMETIC_ERROR": 4017,
    "VECTOR_OPERATION_ERROR": 4018,
    "EXECUTION_STACK_OVERFLOW": 4020,
    "EXECUTION_LIMIT_REACHED": 4030,
    "IO_LIMIT_REACHED": 4031,
    "STORAGE_LIMIT_REACHED": 4032,
}

# Bits 16 to 23 of an abort code. Source: the Move standard library's error module.
_CATEGORIES = {
    1: "invalid argument",
    2: "out of range",
    3: "invalid state",
    4: "unauthenticated",
    5: "permission denied",
    6: "not found",
    7: "aborted",
    8: "already exists",
    9: "resource exhausted",
    10: "cancelled",
    11: "internal",
    12: "not implemented",
    13: "unavailable",
}
# Abort codes of native functions, which have no error map. Source: the table extension of the VM.
_NATIVE_ABORTS = {
    ("0x1::table", 0x6407): "the table already has an item with this key",
    ("0x1::table", 0x6507): "the table has no item with this key",
}
_ABORT = re.compile(
    r"Move abort(?: in (?P<module>\S+))?: (?:(?P<name>\w+)\()?(?:code )?0x(?P<code>[0-9a-fA-F]{1,16})\)?"
    r"(?:: (?P<sentence>[^\n]{1,300}))?"
)


@dataclass(frozen=True, slots=True)
class Abort:
    """A Move abort.

    Attributes
    ----------
    module, name : str or None
        Module that aborted, and the name of its error constant; None if the status does not include it.
    code : int
        Abort code.
    sentence : str or None
        The contract's description of the error, without a full stop.
    """

    module: str | None
    name: str | None
    code: int
    sentence: str | None

    @classmethod
    def find(cls, vm_status: str) -> Abort | None:
        """Return the first abort in a VM status, or None if the status does not describe an abort."""
        if (match := _ABORT.search(vm_status)) is None:
            return None
        sentence = match["sentence"]
        return cls(match["module"], match["name"], int(match["code"], 16), sentence and sentence.strip().rstrip("."))

    @property
    def category(self) -> str | None:
        """Error category encoded in the code by the convention of the Move standard library, or None."""
        return _CATEGORIES.get(self.code >> 16 & 0xFF)

    @property
    def native(self) -> str | None:
        """Meaning of the code if a known native function aborted with it, or None."""
        return None if self.module is None else _NATIVE_ABORTS.get((self.module, self.code))

    @property
    def reason(self) -> str | None:
        """Why the module aborted: the contract's description, or else the meaning or the category of the code."""
        return self.sentence or self.native or self.category
