"""The feature flags of the state, and those that the machine asks for."""

from __future__ import annotations

from typing import TypeAlias

Features: TypeAlias = frozenset[int]  # the flags that are on


def read_features(data: bytes) -> Features:
    """Return the flags of ``0x1::features::Features``, whose bits are numbered from the lowest of the first byte."""
    return frozenset(8 * at + bit for at, byte in enumerate(data) for bit in range(8) if byte >> bit & 1)


# Flags that the machine asks for, by number. The names are ours and say what a flag turns on.
FRIENDS_ARE_PRIVATE = 2
ED25519_KEYS_OF_ANY_LENGTH = 14
STRUCT_CONSTRUCTORS = 15
SLOT_METADATA = 19
CHARGE_INVARIANT_VIOLATION = 20
SIGNER_TEXT = 25
MODULE_EVENTS = 26
EMIT_FEE_STATEMENT = 27
STORAGE_REFUND = 28
FEE_PAYER_ACCOUNT = 34
REFUNDABLE_BYTES = 51
MULTISIG_PAYLOAD_MATCH = 70
SERIALIZED_SCRIPT_ARGUMENTS = 72
ACCESS_CONTROL = 75
SIMULATION_ENHANCEMENT = 78
MEMORY_OPERATIONS = 80
CALL_CACHE = 83
PERMISSIONED_SIGNER = 84
ACCOUNT_ABSTRACTION = 85
DERIVABLE_ACCOUNT_ABSTRACTION = 88
FUNCTION_VALUES = 89
NEW_ACCOUNTS_TO_STORE = 90
DEFAULT_ACCOUNT_RESOURCE = 91
PAYLOAD_V2 = 93
ORDERLESS = 94
LAZY_LOADING = 95
CAPTURE_OPTION = 99
ENUM_OPTION = 101
FRAMEWORK_OPTION = 103
FORMATS = {6: 5, 7: 40, 8: 86, 9: 102}  # of versions of the binary format
