"""VM statuses: their numbers, and the Move aborts described in their text (module, name, code and description)."""

from __future__ import annotations

import re
from dataclasses import dataclass

# VM status numbers by name, the values of ``vm_error_code``; others are printed as a number.
# https://github.com/aptos-labs/aptos-core/blob/main/third_party/move/move-core/types/src/vm_status.rs
_TABLE = """
    1 INVALID_SIGNATURE  2 INVALID_AUTH_KEY  3 SEQUENCE_NUMBER_TOO_OLD  4 SEQUENCE_NUMBER_TOO_NEW
    5 INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE  6 TRANSACTION_EXPIRED  7 SENDING_ACCOUNT_DOES_NOT_EXIST
    10 EXCEEDED_MAX_TRANSACTION_SIZE  13 MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND
    14 MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS  15 GAS_UNIT_PRICE_BELOW_MIN_BOUND
    16 GAS_UNIT_PRICE_ABOVE_MAX_BOUND  23 BAD_CHAIN_ID  24 SEQUENCE_NUMBER_TOO_BIG  26 FEATURE_UNDER_GATING
    27 SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH  28 SIGNERS_CONTAIN_DUPLICATES  31 NOT_MULTISIG_ACCOUNT
    32 NOT_MULTISIG_OWNER  33 MULTISIG_TRANSACTION_NOT_FOUND  34 MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS
    35 MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH  36 GAS_PAYER_ACCOUNT_MISSING
    37 INSUFFICIENT_BALANCE_FOR_REQUIRED_DEPOSIT  40 MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH
    41 ACCOUNT_AUTHENTICATION_GAS_LIMIT_EXCEEDED  42 NONCE_ALREADY_USED  43 EMPTY_PAYLOAD_PROVIDED
    44 TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE  45 NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH_IN_PROOF
    1000 INDEX_OUT_OF_BOUNDS  1009 NEGATIVE_STACK_SIZE_WITHIN_BLOCK  1011 INVALID_MAIN_FUNCTION_SIGNATURE
    1017 LOOKUP_FAILED  1021 MISSING_DEPENDENCY  1023 POP_WITHOUT_DROP_ABILITY  1026 ABORT_TYPE_MISMATCH_ERROR
    1027 STLOC_TYPE_MISMATCH_ERROR  1028 STLOC_UNSAFE_TO_DESTROY_ERROR  1037 COPYLOC_UNAVAILABLE_ERROR
    1038 COPYLOC_WITHOUT_COPY_ABILITY  1039 COPYLOC_EXISTS_BORROW_ERROR  1040 MOVELOC_UNAVAILABLE_ERROR
    1041 MOVELOC_EXISTS_BORROW_ERROR  1042 BORROWLOC_REFERENCE_ERROR  1043 BORROWLOC_UNAVAILABLE_ERROR
    1044 BORROWLOC_EXISTS_BORROW_ERROR  1045 CALL_TYPE_MISMATCH_ERROR  1046 CALL_BORROWED_MUTABLE_REFERENCE_ERROR
    1067 MODULE_ADDRESS_DOES_NOT_MATCH_SENDER  1069 POSITIVE_STACK_SIZE_AT_BLOCK_END  1075 CONSTRAINT_NOT_SATISFIED
    1076 NUMBER_OF_TYPE_ARGUMENTS_MISMATCH  1081 LINKER_ERROR  1088 UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP
    1091 FUNCTION_RESOLUTION_FAILURE  1094 INVALID_OPERATION_IN_SCRIPT  1095 DUPLICATE_MODULE_NAME
    1096 BACKWARD_INCOMPATIBLE_MODULE_UPDATE  1098 NUMBER_OF_ARGUMENTS_MISMATCH  1100 FAILED_TO_DESERIALIZE_ARGUMENT
    1101 NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH  1103 EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION
    1116 TOO_MANY_TYPE_NODES  1123 EVENT_METADATA_VALIDATION_ERROR  1124 DEPENDENCY_LIMIT_REACHED
    1125 UNSTABLE_BYTECODE_REJECTED  1126 PROGRAM_TOO_COMPLEX  1127 USER_DEFINED_NATIVE_NOT_ALLOWED
    1134 INVALID_INIT_MODULE  1135 FRIEND_NOT_FOUND_IN_MODULE_BUNDLE  2000 UNKNOWN_INVARIANT_VIOLATION_ERROR
    2006 VERIFICATION_ERROR  2009 INTERNAL_TYPE_ERROR  2010 EVENT_KEY_MISMATCH
    2015 UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION  2017 UNEXPECTED_VERIFIER_ERROR
    2018 UNEXPECTED_DESERIALIZATION_ERROR  2020 FAILED_TO_DESERIALIZE_RESOURCE  2021 TYPE_RESOLUTION_FAILURE
    3022 VALUE_SERIALIZATION_ERROR  3024 CODE_DESERIALIZATION_ERROR  3026 UNABLE_TO_CAPTURE_OPTION_TYPE  4002 OUT_OF_GAS
    4004 RESOURCE_ALREADY_EXISTS  4008 MISSING_DATA  4016 ABORTED  4017 ARITHMETIC_ERROR  4018 VECTOR_OPERATION_ERROR
    4020 EXECUTION_STACK_OVERFLOW  4021 CALL_STACK_OVERFLOW  4024 VM_MAX_TYPE_DEPTH_REACHED
    4025 VM_MAX_VALUE_DEPTH_REACHED  4026 VM_EXTENSION_ERROR  4027 STORAGE_WRITE_LIMIT_REACHED
    4028 MEMORY_LIMIT_EXCEEDED  4030 EXECUTION_LIMIT_REACHED  4031 IO_LIMIT_REACHED  4032 STORAGE_LIMIT_REACHED
    4033 TYPE_TAG_LIMIT_EXCEEDED  4034 ACCESS_DENIED  4035 ACCESS_STACK_LIMIT_EXCEEDED  4036 TOO_MANY_DELAYED_FIELDS
    4037 RUNTIME_DISPATCH_ERROR  4038 STRUCT_VARIANT_MISMATCH  4041 UNABLE_TO_CAPTURE_DELAYED_FIELDS
"""
_WORDS = _TABLE.split()
VM_STATUS_CODES = dict(zip(_WORDS[1::2], map(int, _WORDS[::2]), strict=True))
VM_STATUS_NAMES = {number: name for name, number in VM_STATUS_CODES.items()}

# Bits 16 to 23 of an abort code. Source: the Move standard library's error module.
ERROR_CATEGORIES = {
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
# Modules number their errors from 1: 200,001 is a code of the module's own, although its upper bits are a category. The
# framework keeps the convention, also with larger numbers.
_MAX_REASON = 255
# Abort codes of native functions, which have no error map. Source: the table extension of the VM.
_NATIVE_ABORTS = {
    ("0x1::table", 0x6407): "the table already has an item with this key",
    ("0x1::table", 0x6507): "the table has no item with this key",
}
_ABORT = re.compile(
    r"Move abort(?: in (?P<module>\S+))?: (?:(?P<name>\w+)\()?(?:code )?0x(?P<code>[0-9a-fA-F]{1,16})\)?"
    r"(?:: (?P<sentence>[^\n]{1,300}))?"
)


def error_category(code: int, module: str = "") -> str | None:
    """Return the category that an abort code has by the convention of the Move standard library; None if it has none.

    Examples
    --------
    >>> error_category(0x80001), error_category(200_001), error_category(0x507D3, "0x1::multisig_account")
    ('already exists', None, 'permission denied')
    """
    keeps = code & 0xFFFF <= _MAX_REASON or module.startswith("0x1::")
    return ERROR_CATEGORIES.get(code >> 16) if keeps else None


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
        return error_category(self.code, self.module or "")

    @property
    def native(self) -> str | None:
        """Meaning of the code if a known native function aborted with it, or None."""
        return None if self.module is None else _NATIVE_ABORTS.get((self.module, self.code))

    @property
    def reason(self) -> str | None:
        """Why the module aborted: the contract's description, or else the meaning or the category of the code."""
        return self.sentence or self.native or self.category
