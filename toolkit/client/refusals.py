"""From an error answer to the error class people handle, with a text that says what to do. Pure."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from toolkit.client.retry import retry_after_s
from toolkit.client.targets import base_url, redacted_url
from toolkit.errors import (
    Forbidden,
    InputError,
    InsufficientStorage,
    InvalidRequest,
    NodeError,
    NotFound,
    RateLimited,
    TooLarge,
    Unavailable,
    VersionPruned,
)
from toolkit.frames.text import visible
from toolkit.wire.errors import decode_error_body
from toolkit.wire.headers import parse_headers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client.transport import Answer
    from toolkit.wire.headers import LedgerState

__all__ = ["advertised_archive", "refusal"]

_ARCHIVE_HEADER = "x-aptos-archival-endpoint"
_LONGEST_URL = 300

_CLASSES: dict[int, type[NodeError]] = {
    400: InvalidRequest,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    410: VersionPruned,
    413: TooLarge,
    429: RateLimited,
    503: Unavailable,
    507: InsufficientStorage,
}

_ADVICE = {
    401: "the gateway wants an API key: pass api_key= or set LEDGER_TOOLKIT_API_KEY",
    403: "the node or its gateway does not allow this call; try another node, or check the API key",
    413: "make the request smaller",
    429: "slow down with requests_per_second=, or use an API key",
    503: "the node is not ready; try again later",
    507: "the node's mempool is full; try again later",
}

_BY_CODE = {
    "version_not_found": "the version is above the node's head",
    "table_item_not_found": "check handle, key and key type: a wrong but encodable key type gives the same answer",
    "resource_not_found": "the account holds no such resource at this version",
    "module_not_found": "no such module at this version",
    "account_not_found": "no such account at this version",
}

_MISFIT = "failed to deserialize table item"
"""What a 500 of a table item says where the stored bytes are none of the value type."""


def refusal(asked: str, answer: Answer, secrets: Sequence[str] = ()) -> NodeError:
    """Turn an answer with an error status into the error to raise.

    Parameters
    ----------
    asked : str
        What was asked, for the text: ``view 0x1::coin::supply at version 12``.
    answer : Answer
        Status 300 or above.
    secrets : sequence of str
        What no text may show, though the answer may repeat it: gateways quote a key that they do not know.

    Returns
    -------
    NodeError
        Of the class the status means; a 500 that speaks of pruned state is `VersionPruned` too.
    """
    headers = parse_headers(answer.headers)
    body = decode_error_body(_masked(answer.body, secrets), _content_type(answer.headers))
    pruned = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR and "pruned" in body.message.lower()
    kind = VersionPruned if pruned else _CLASSES.get(answer.status, NodeError)
    code = f" {body.error_code}" if body.error_code else ""
    text = f"{asked}: the node answered {answer.status}{code}: {visible(body.message, 600) or 'without a message'}"
    archive = advertised_archive(answer) if kind is VersionPruned else None
    if _MISFIT in body.message.lower():
        advice = "check value_type: what the table holds is not of that type"
    else:
        advice = _advice(kind, answer.status, body.error_code, headers.ledger)
    wait_s = retry_after_s(answer.headers)
    if wait_s:
        advice += f"{'; ' if advice else ''}the node asks to wait {wait_s:g} s"
    if archive:
        advice += f"; this node names an archive, {archive}: connect to it, or connect(..., archive=True)"
    return kind(
        f"{text} ({advice})" if advice else text,
        status=answer.status,
        error_code=body.error_code,
        message=body.message,
        vm_error_code=body.vm_error_code,
        ledger=headers.ledger,
        retry_after_s=wait_s,
        archive=archive,
    )


def advertised_archive(answer: Answer) -> str | None:
    """Return the archive that a pruned answer names in its header or body: an absolute https URL, else None."""
    named = next((value for name, value in answer.headers.items() if name.lower() == _ARCHIVE_HEADER), None)
    if named is None:
        try:
            document = msgspec.json.decode(answer.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        named = document.get("archival_endpoint") if isinstance(document, dict) else None
    if not isinstance(named, str) or len(named) > _LONGEST_URL or not named.isascii() or not named.isprintable():
        return None
    try:
        url = base_url(named)
    except InputError:
        return None
    return redacted_url(url) if url.startswith("https://") else None


def _advice(kind: type[NodeError], status: int, code: str | None, ledger: LedgerState | None) -> str:
    if kind is VersionPruned:
        if ledger is None:
            return "read a later version, or ask an archive node"
        return f"the oldest readable version is {ledger.oldest_version}; read from there, or ask an archive node"
    if code == "version_not_found" and ledger is not None:
        return f"the node's head is version {ledger.version}"
    if code in _BY_CODE:
        return _BY_CODE[code]
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        return "a redirect that cannot be followed; check the node's URL"
    return _ADVICE.get(status, "")


def _masked(body: bytes, secrets: Sequence[str]) -> bytes:
    for secret in secrets:
        for form in (secret, quote(secret, safe=""), msgspec.json.encode(secret).decode()[1:-1]):
            body = body.replace(form.encode(), b"***")
    return body


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), "")
