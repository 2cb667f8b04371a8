"""VM statuses: their numbers, and the Move aborts described in their text (module, name, code and description)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# VM status numbers by name, the values of ``vm_error_code``; others are printed as a number.
_STATUSES = """
1 INVALID_SIGNATURE  2 INVALID_AUTH_KEY  3 SEQUENCE_NUMBER_TOO_OLD  4 SEQUENCE_NUMBER_TOO_NEW
5 INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE  6 TRANSACTION_EXPIRED  7 SENDING_ACCOUNT_DOES_NOT_EXIST
10 EXCEEDED_MAX_TRANSACTION_SIZE  13 MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND
14 MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS  15 GAS_UNIT_PRICE_BELOW_MIN_BOUND  16 GAS_UNIT_PRICE_ABOVE_MAX_BOUND
23 BAD_CHAIN_ID  24 SEQUENCE_NUMBER_TOO_BIG  33 MULTISIG_TRANSACTION_NOT_FOUND
34 MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS  35 MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH
36 GAS_PAYER_ACCOUNT_MISSING  40 MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH  42 NONCE_ALREADY_USED
1011 INVALID_MAIN_FUNCTION_SIGNATURE  1075 CONSTRAINT_NOT_SATISFIED  1076 NUMBER_OF_TYPE_ARGUMENTS_MISMATCH
1081 LINKER_ERROR  1091 FUNCTION_RESOLUTION_FAILURE  1098 NUMBER_OF_ARGUMENTS_MISMATCH
1099 NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH  1100 FAILED_TO_DESERIALIZE_ARGUMENT  2021 TYPE_RESOLUTION_FAILURE
4002 OUT_OF_GAS  4004 RESOURCE_ALREADY_EXISTS  4008 MISSING_DATA  4016 ABORTED  4017 ARITHMETIC_ERROR
4018 VECTOR_OPERATION_ERROR  4020 EXECUTION_STACK_OVERFLOW  4030 EXECUTION_LIMIT_REACHED  4031 IO_LIMIT_REACHED
4032 STORAGE_LIMIT_REACHED
""".split()  # noqa: SIM905
VM_STATUS_CODES = dict(zip(_STATUSES[1::2], map(int, _STATUSES[::2]), strict=True))

# Bits 16 to 23 of an abort code. Source: the Move standard library's error module.
_CATEGORY_NAMES = (
    "invalid argument, out of range, invalid state, unauthenticated, permission denied, not found, aborted, "
    "already exists, resource exhausted, cancelled, internal, not implemented, unavailable"
)
_CATEGORIES = dict(enumerate(_CATEGORY_NAMES.split(", "), start=1))

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
