"""The feature flags of the state, and those that the machine asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Features:
    """The feature flags of ``0x1::features::Features``."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    @classmethod
    def of(cls, flags: Iterable[int]) -> Features:
        """Return features of which these flags are on."""
        data = bytearray(16)
        for flag in flags:
            data[flag // 8] |= 1 << flag % 8
        return cls(bytes(data))

    def __contains__(self, flag: object) -> bool:
        assert isinstance(flag, int)  # noqa: S101 - of the machine's own
        byte = flag // 8
        return byte < len(self.data) and bool(self.data[byte] >> flag % 8 & 1)


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
