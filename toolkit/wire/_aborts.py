"""VM statuses: their numbers, and the Move aborts described in their text (module, name, code and description)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


def numbered_names(file: str) -> list[tuple[int, str]]:
    """Return the rows of a table of this package: a number and its name."""
    _, *lines = Path(__file__).with_name(file).read_text("utf-8").splitlines()
    return [(int(number), name) for number, _, name in (line.partition(",") for line in lines)]


# VM status numbers by name, the values of ``vm_error_code``; others are printed as a number.
# https://github.com/aptos-labs/aptos-core/blob/main/third_party/move/move-core/types/src/vm_status.rs
VM_STATUS_CODES = {name: number for number, name in numbered_names("vm_statuses.csv")}
VM_STATUS_NAMES = {number: name for name, number in VM_STATUS_CODES.items()}

# Bits 16 to 23 of an abort code. Source: the Move standard library's error module.
ERROR_CATEGORIES = dict(numbered_names("error_categories.csv"))
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
