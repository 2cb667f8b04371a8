"""Errors of the running program, which become the status of its execution."""

from __future__ import annotations

from typing import Any

# Numbers of the status codes that the machine raises.
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
NUMBERS = dict(zip(_WORDS[1::2], map(int, _WORDS[::2]), strict=True))


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
        self.location: Any = None
        self.function: int | None = None
        self.offset: int | None = None
        self.located = False
        self.of_types = False

    @property
    def number(self) -> int:
        """Number of the status code."""
        return NUMBERS[self.status]

    def at(self, location: Any, function: int | None = None, offset: int | None = None) -> MoveError:
        """Set the place of the error, unless it has been set; return the error."""
        if not self.located:
            self.location, self.function, self.offset = location, function, offset
            self.located = True
        return self


class Abort(MoveError):  # noqa: N818 - as the instruction is called
    """An abort with a code, raised by the instruction or by a native."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__("ABORTED", message, sub_status=code)
