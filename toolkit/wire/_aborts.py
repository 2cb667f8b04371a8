"""Move aborts in the text of a VM status: module, name, code and the contract's own sentence."""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    ("0x1::table", 0x6407): "the table has an item with this key already",
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
        Module that aborted, and the name of its error constant; None if the status has none.
    code : int
    sentence : str or None
        What the contract says about the error, without a full stop.
    """

    module: str | None
    name: str | None
    code: int
    sentence: str | None

    @classmethod
    def find(cls, vm_status: str) -> Abort | None:
        """Return the first abort in a status, None if there is none."""
        match = _ABORT.search(vm_status)
        if match is None:
            return None
        sentence = match["sentence"]
        return cls(match["module"], match["name"], int(match["code"], 16), sentence and sentence.strip().rstrip("."))

    @property
    def category(self) -> str | None:
        """Category of the code by the standard library's convention, None if it has none."""
        return _CATEGORIES.get(self.code >> 16 & 0xFF)

    @property
    def native(self) -> str | None:
        """Meaning of a code of a native function, None for others."""
        return None if self.module is None else _NATIVE_ABORTS.get((self.module, self.code))

    @property
    def reason(self) -> str | None:
        """Why it aborted: the contract's own sentence, else what is known of the code."""
        return self.sentence or self.native or self.category
