"""Errors of the running program, which become the status of its execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.vm._types import ModuleId

# Numbers of the status codes that the machine raises.
# https://github.com/aptos-labs/aptos-core/blob/main/third_party/move/move-core/types/src/vm_status.rs
NUMBERS = {
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
    "FEATURE_UNDER_GATING": 26,
    "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH": 27,
    "SIGNERS_CONTAIN_DUPLICATES": 28,
    "NOT_MULTISIG_ACCOUNT": 31,
    "NOT_MULTISIG_OWNER": 32,
    "MULTISIG_TRANSACTION_NOT_FOUND": 33,
    "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS": 34,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH": 35,
    "GAS_PAYER_ACCOUNT_MISSING": 36,
    "INSUFFICIENT_BALANCE_FOR_REQUIRED_DEPOSIT": 37,
    "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH": 40,
    "ACCOUNT_AUTHENTICATION_GAS_LIMIT_EXCEEDED": 41,
    "NONCE_ALREADY_USED": 42,
    "EMPTY_PAYLOAD_PROVIDED": 43,
    "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE": 44,
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH_IN_PROOF": 45,
    "INDEX_OUT_OF_BOUNDS": 1000,
    "INVALID_MAIN_FUNCTION_SIGNATURE": 1011,
    "MODULE_ADDRESS_DOES_NOT_MATCH_SENDER": 1067,
    "CONSTRAINT_NOT_SATISFIED": 1075,
    "NUMBER_OF_TYPE_ARGUMENTS_MISMATCH": 1076,
    "LINKER_ERROR": 1081,
    "FUNCTION_RESOLUTION_FAILURE": 1091,
    "INVALID_OPERATION_IN_SCRIPT": 1094,
    "DUPLICATE_MODULE_NAME": 1095,
    "BACKWARD_INCOMPATIBLE_MODULE_UPDATE": 1096,
    "NUMBER_OF_ARGUMENTS_MISMATCH": 1098,
    "FAILED_TO_DESERIALIZE_ARGUMENT": 1100,
    "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH": 1101,
    "EXECUTE_ENTRY_FUNCTION_CALLED_ON_NON_ENTRY_FUNCTION": 1103,
    "TOO_MANY_TYPE_NODES": 1116,
    "EVENT_METADATA_VALIDATION_ERROR": 1123,
    "DEPENDENCY_LIMIT_REACHED": 1124,
    "UNSTABLE_BYTECODE_REJECTED": 1125,
    "PROGRAM_TOO_COMPLEX": 1126,
    "USER_DEFINED_NATIVE_NOT_ALLOWED": 1127,
    "INVALID_INIT_MODULE": 1134,
    "FRIEND_NOT_FOUND_IN_MODULE_BUNDLE": 1135,
    "UNKNOWN_INVARIANT_VIOLATION_ERROR": 2000,
    "VERIFICATION_ERROR": 2006,
    "INTERNAL_TYPE_ERROR": 2009,
    "EVENT_KEY_MISMATCH": 2010,
    "UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION": 2015,
    "UNEXPECTED_VERIFIER_ERROR": 2017,
    "UNEXPECTED_DESERIALIZATION_ERROR": 2018,
    "FAILED_TO_DESERIALIZE_RESOURCE": 2020,
    "TYPE_RESOLUTION_FAILURE": 2021,
    "VALUE_SERIALIZATION_ERROR": 3022,
    "CODE_DESERIALIZATION_ERROR": 3024,
    "UNABLE_TO_CAPTURE_OPTION_TYPE": 3026,
    "MISSING_DEPENDENCY": 1021,
    "OUT_OF_GAS": 4002,
    "RESOURCE_ALREADY_EXISTS": 4004,
    "MISSING_DATA": 4008,
    "ABORTED": 4016,
    "ARITHMETIC_ERROR": 4017,
    "VECTOR_OPERATION_ERROR": 4018,
    "EXECUTION_STACK_OVERFLOW": 4020,
    "CALL_STACK_OVERFLOW": 4021,
    "VM_MAX_TYPE_DEPTH_REACHED": 4024,
    "VM_MAX_VALUE_DEPTH_REACHED": 4025,
    "VM_EXTENSION_ERROR": 4026,
    "STORAGE_WRITE_LIMIT_REACHED": 4027,
    "MEMORY_LIMIT_EXCEEDED": 4028,
    "EXECUTION_LIMIT_REACHED": 4030,
    "IO_LIMIT_REACHED": 4031,
    "STORAGE_LIMIT_REACHED": 4032,
    "TYPE_TAG_LIMIT_EXCEEDED": 4033,
    "ACCESS_DENIED": 4034,
    "ACCESS_STACK_LIMIT_EXCEEDED": 4035,
    "TOO_MANY_DELAYED_FIELDS": 4036,
    "RUNTIME_DISPATCH_ERROR": 4037,
    "STRUCT_VARIANT_MISMATCH": 4038,
    "UNABLE_TO_CAPTURE_DELAYED_FIELDS": 4041,
}


class MoveError(Exception):
    """An error of the program that runs, or of the state that it reads; never of the machine itself.

    Attributes
    ----------
    status : str
        Name of the status code, such as ``ARITHMETIC_ERROR``.
    message : str or None
        What the machine of a node would say, if it says something.
    sub_status : int or None
        Code of an abort, or of an error of a vector.
    location : ModuleId, "script" or None
        Where the error is; None until it is known, or if it has no place.
    function, offset : int or None
        Index of the function definition and offset of the instruction.
    located : bool
        Whether the location is final: the caller must not set it.
    of_types : bool
        Whether a type that was made is too large: its status is not changed to ``VERIFICATION_ERROR``.
    """

    def __init__(self, status: str, message: str | None = None, *, sub_status: int | None = None) -> None:
        super().__init__(status, message, sub_status)
        self.status = status
        self.message = message
        self.sub_status = sub_status
        self.location: ModuleId | str | None = None
        self.function: int | None = None
        self.offset: int | None = None
        self.located = False
        self.of_types = False

    @property
    def number(self) -> int:
        """Number of the status code."""
        return NUMBERS[self.status]

    def at(self, location: ModuleId | str | None, function: int | None = None, offset: int | None = None) -> MoveError:
        """Set the place of the error, unless it has been set; return the error."""
        if not self.located:
            self.location, self.function, self.offset = location, function, offset
            self.located = True
        return self


class Abort(MoveError):
    """An abort with a code, raised by the instruction or by a native."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__("ABORTED", message, sub_status=code)
