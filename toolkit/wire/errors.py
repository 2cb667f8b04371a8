"""The error body of a node, and whatever else comes with an error status. No I/O, nothing is raised."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from toolkit.errors import SchemaError
from toolkit.move.json_text import parse_json

__all__ = ["ERROR_CODES", "MAX_TEXT", "ErrorBody", "cut_text", "decode_error_body"]

#: Documented error codes; a node may send others, which are kept as they come.
ERROR_CODES: frozenset[str] = frozenset(
    {
        "account_not_found",
        "resource_not_found",
        "module_not_found",
        "struct_field_not_found",
        "version_not_found",
        "transaction_not_found",
        "table_item_not_found",
        "block_not_found",
        "state_value_not_found",
        "version_pruned",
        "block_pruned",
        "invalid_input",
        "invalid_transaction_update",
        "sequence_number_too_old",
        "vm_error",
        "rejected_by_filter",
        "health_check_failed",
        "mempool_is_full",
        "rate_limited",
        "internal_error",
        "web_framework_error",
        "bcs_not_supported",
        "api_disabled",
    }
)

MAX_TEXT = 2_000
"""Most characters of a text in a node's own words (messages, VM status, build), in errors, frames and reports."""
_MAX_CODE = 200

_U64_MAX = 2**64 - 1
_TEXT_LENGTH = 300
# Only the start of a foreign page is looked at, so no pattern below meets an unbounded text.
_READ_BYTES = 8192
_HIDDEN = re.compile(r"<(script|style)\b.*?(?:</\1[^<>]*>|$)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """What the body of an error answer says.

    Parameters
    ----------
    message : str
        The node's message, cut after 2,000 characters (see `cut_text`). If the body is not a documented error, the
        start of its text: tags stripped, white space folded, at most 300 characters.
    error_code : str or None
        The node's code, known or not, cut after 200 characters; None if the body is not a documented error.
    vm_error_code : int or None
        VM status number, if the VM refused.
    """

    message: str
    error_code: str | None
    vm_error_code: int | None


def cut_text(text: str, limit: int = MAX_TEXT) -> str:
    """Return a text of a node, cut to a length that can be kept for every row.

    Parameters
    ----------
    text : str
    limit : int, default 2,000
        Most characters of the text.

    Returns
    -------
    str
        The text itself, or its start with a mark that says how much is missing: ``… (998,000 more characters)``.
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def decode_error_body(body: bytes, content_type: str = "application/json") -> ErrorBody:
    """Read an error body; never raises, whatever the bytes.

    Parameters
    ----------
    body : bytes
        Body of an answer with an error status: the documented JSON, or a gateway's text or page.
    content_type : str, default "application/json"
        Media type of the answer. Only what claims to be HTML has its script and style contents left out.

    Returns
    -------
    ErrorBody
        With ``error_code`` None if the body is not the documented error.
    """
    parsed = _parse_json(body)
    if isinstance(parsed, dict):
        message, code = parsed.get("message"), parsed.get("error_code")
        if isinstance(message, str) and isinstance(code, str):
            return ErrorBody(cut_text(message), cut_text(code, _MAX_CODE), _vm_error_code(parsed.get("vm_error_code")))
        if isinstance(message, str):  # nodes of 2022: {"code": 404, "message": "Not Found"}
            return ErrorBody(_fold(message), None, None)
    text = body[:_READ_BYTES].decode("utf-8", errors="replace")
    return ErrorBody(_fold(_strip_tags(text, content_type)), None, None)


def _parse_json(body: bytes) -> Any:
    try:
        return parse_json(body, "error")
    except SchemaError:
        return None


def _vm_error_code(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _U64_MAX:
        return value
    return None


def _strip_tags(text: str, content_type: str) -> str:
    if "html" in content_type.lower() or text.lstrip().startswith("<"):
        text = _HIDDEN.sub(" ", text)
        return html.unescape(_TAG.sub(" ", text))
    return _TAG.sub(" ", text)


def _fold(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())[:_TEXT_LENGTH]
