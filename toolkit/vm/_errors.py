"""Errors of the running program, which become the status of its execution."""

from __future__ import annotations

from typing import Any

from toolkit.errors import Unsupported
from toolkit.wire._aborts import VM_STATUS_CODES


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
        return VM_STATUS_CODES[self.status]

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


def refused(place: str, message: str) -> Unsupported:
    """Return the error for code that breaks a rule."""
    return Unsupported(f"{place}: {message}. The node's verifier may refuse this for another reason")
