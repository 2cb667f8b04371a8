"""The exception codecs raise inside a value; each container on the way out adds its step to the path."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from toolkit.errors import InputError

__all__ = ["Mismatch", "raise_schema_error"]


class Mismatch(Exception):  # noqa: N818  # internal: never leaves this package
    """A value does not fit its layout; `steps` lead to it, innermost first."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.steps: list[str | int] = []

    def at(self, step: str | int) -> Mismatch:
        """Add a field name or an index on the way out."""
        self.steps.append(step)
        return self

    def located(self, where: str) -> str:
        """Return `where` with the path inside the value."""
        path = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self.steps))
        return where + "".join(path)

    def error(self, kind: type[InputError], where: str) -> InputError:
        """Return the public error for what a caller wrote."""
        return kind(f"{self.located(where)}: {self.text}")


def raise_schema_error(mismatch: Mismatch, where: str) -> NoReturn:
    """Raise the public error for a value that does not fit its type."""
    place = mismatch.located(where)
    raise SchemaError(f"{place}: {mismatch.text}", column=place) from None
