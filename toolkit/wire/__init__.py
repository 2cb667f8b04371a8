"""What crosses the wire, without I/O: requests, answers, headers, errors, transactions in BCS.

Names are imported on first use, so that reading a header does not load pydantic.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.wire.errors import ERROR_CODES, ErrorBody, decode_error_body
    from toolkit.wire.headers import AnswerHeaders, LedgerState, ledger_headers, parse_headers

_MODULES = {
    "errors": ("ERROR_CODES", "ErrorBody", "decode_error_body"),
    "headers": ("AnswerHeaders", "LedgerState", "ledger_headers", "parse_headers"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "ERROR_CODES",
    "AnswerHeaders",
    "ErrorBody",
    "LedgerState",
    "decode_error_body",
    "ledger_headers",
    "parse_headers",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
