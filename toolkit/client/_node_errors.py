"""Error answers as exceptions that say what to do."""

from __future__ import annotations

import re
from contextlib import suppress
from copy import copy
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

import msgspec

from toolkit._present.text import visible
from toolkit.client._credentials import NO_CREDENTIALS, Credentials
from toolkit.client._http import base_url, redacted_url
from toolkit.client._retry import ALWAYS, resume_time
from toolkit.errors import (
    Forbidden,
    InputError,
    InsufficientStorage,
    InvalidRequest,
    NodeError,
    NotFound,
    RateLimited,
    SchemaError,
    TooLarge,
    ToolkitError,
    Unavailable,
    VersionPruned,
)
from toolkit.wire import ErrorBody, decode_error_body
from toolkit.wire._responses import ERROR_CODES

if TYPE_CHECKING:
    from toolkit.client._http import Answer
    from toolkit.wire import LedgerState


# Error code that says that an account does not exist; other refusals say that the node does not offer accounts.
NO_ACCOUNT = "account_not_found"
# Error codes that say that something does not exist at a version, and nothing else.
ABSENT = frozenset({"module_not_found", NO_ACCOUNT, "resource_not_found", "state_value_not_found"})
# Error code that says that a table has no item of a key.
NO_ITEM = "table_item_not_found"

_ARCHIVE_HEADER = "x-aptos-archival-endpoint"
_MAX_URL = 300

_ANSWERED = ": the node answered "
_Refusal = TypeVar("_Refusal", bound=NodeError)

_CLASSES: dict[int, type[NodeError]] = {
    400: InvalidRequest,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: NotFound,
    410: VersionPruned,
    413: TooLarge,
    429: RateLimited,
    503: Unavailable,
    507: InsufficientStorage,
}

# What to do about a status, or its first digit.
_ADVICE = {
    2: "a node answers with status 200: this answer is not complete, or not the node's",
    3: "a redirect that cannot be followed",
    403: "the node or its gateway does not allow this call; try another node",
    413: "make the request smaller",
    429: "slow down with requests_per_second=, or use an API key",
    503: "the node is not ready; try again later",
    507: "the node's mempool is full; try again later",
}

_BY_CODE = {
    "version_not_found": "the version is above the node's head",
    "table_item_not_found": "check handle, key and key type: a wrong key type gives the same answer",
    "resource_not_found": "the account has no such resource at this version",
    "module_not_found": "no such module at this version",
    "account_not_found": "no such account at this version",
}

_KEY_REFUSED = "the API key that was sent is not accepted: check api_key= or LEDGER_TOOLKIT_API_KEY"
_LOGIN_REFUSED = "the user name and password of the node's URL are not accepted: check them"
_NOTHING_SENT = (
    "no API key or login was sent: set LEDGER_TOOLKIT_API_KEY, pass api_key=, or write user:password@ before the host "
    "in the URL of the study file, --node or connect(); run folders and worker processes have no login"
)
_KEY_NOT_SENT = (
    "LEDGER_TOOLKIT_API_KEY was not sent, since only a study names this host: allow it with --use-api-key or "
    "Study.load(..., use_api_key=True), or write user:password@ before the host (worker processes do not get it)"
)

_KIND = re.compile(r"(?<=expect )((?:array<){0,9}(?:(?:string|integer)<\w{1,40}>|boolean)>{0,9})(?=,)")
# Kinds of JSON values of parameters, as nodes name them: integers and addresses have the names of Move.
_KINDS = {
    "hex": "vector<u8>",
    "move_function_id": "a function value",
    "move_struct_tag_id": "a struct, such as 0x1::string::String or 0x1::option::Option,",
}
_MAX_KINDS = 3

# Maximum number of characters of a page that a message quotes.
_MAX_PAGE_TEXT = 200
# Part of the message of a 500 for a table item whose bytes do not fit the value type.
_MISFIT = "failed to deserialize table item"


def page_text(answer: Answer) -> str | None:
    """Return the text of an HTML page, None if an answer is not one."""
    kind = answer.content_type.lower()
    if "html" not in kind and ("bcs" in kind or "octet" in kind or answer.body.lstrip()[:1] != b"<"):
        return None
    return decode_error_body(answer.body, kind).message


def misread(asked: str, answer: Answer, error: SchemaError, credentials: Credentials, url: str) -> SchemaError:
    """Return the exception for an answer that cannot be decoded: `error`, masked, unless the answer is a page."""
    credentials.mask_error(error)  # it quotes the answer
    page = page_text(answer)
    if page is None:
        return error
    shown = visible(credentials.mask(page), _MAX_PAGE_TEXT)
    return SchemaError(
        f"{asked}: expected the answer of a node, got an HTML page: {shown!r}; is {url} the URL of a node?"
    )


def refusal(
    asked: str, answer: Answer, credentials: Credentials = NO_CREDENTIALS, url: str = "this address"
) -> NodeError:
    """Return the exception for an answer with an error status.

    Parameters
    ----------
    asked : str
        The call, for the message: ``view 0x1::coin::supply at version 12``.
    answer : Answer
        Of any status but 200.
    credentials : Credentials
        The credentials that were sent. The exception does not show them, although the answer may: gateways quote a
        key that they do not know.
    url : str
        The node's URL, without a login, for the message about an answer that is not of a node.

    Returns
    -------
    NodeError
        Of the class for the status; a 500 with a message about pruned state is `VersionPruned` too.
    """
    ledger = answer.parsed.ledger
    sent = decode_error_body(answer.body, answer.content_type)
    pruned = answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR and "pruned" in sent.message.lower()
    kind = VersionPruned if pruned else _CLASSES.get(answer.status, NodeError)
    body = _masked(sent, credentials)
    code = f" {body.error_code}" if body.error_code else ""
    text = f"{asked}{_ANSWERED}{answer.status}{code}: {visible(body.message, 600) or 'without a message'}"
    archive = advertised_archive(answer, credentials) if kind is VersionPruned else None
    if _MISFIT in sent.message.lower():
        advice = "check value_type: the stored value is not of that type"
    else:
        advice = _advice(kind, answer.status, body.error_code, ledger)
    if answer.status == HTTPStatus.UNAUTHORIZED or (kind is Forbidden and sent.error_code not in ERROR_CODES):
        advice = _access_advice(credentials)
    kinds = _kinds_in_move(body.message) if kind is InvalidRequest else ""
    busy = (
        answer.status in ALWAYS or answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    )  # its page is that of a node's gateway
    stray = answer.status // 100 == 3 or (not busy and page_text(answer) is not None)  # noqa: PLR2004 - redirects
    advice = "; ".join(filter(None, (advice, kinds, f"is {url} the URL of a node?" if stray else "")))
    wait_s = answer.retry_after_s
    if wait_s:
        advice += f"{'; ' if advice else ''}the node asks to wait {wait_s:g} s: go on after {resume_time(wait_s)}"
    if archive:
        advice += f"; the node names an archive, {archive}: connect to it, or use connect(..., archive=True)"
    return kind(
        f"{text} ({advice})" if advice else text,
        status=answer.status,
        error_code=body.error_code,
        message=body.message,
        vm_error_code=body.vm_error_code,
        ledger=ledger,
        retry_after_s=wait_s,
        archive=archive,
    )


def renamed(asked: str, error: _Refusal) -> _Refusal:
    """Return the refusal of a look-up as that of the call that needs it, such as a view at a pruned version.

    Parameters
    ----------
    asked : str
        The call in words, as for `refusal`.
    error : NodeError
        As `refusal` returns it.
    """
    _, found, rest = str(error).partition(_ANSWERED)
    return _again(error, f"{asked}{found}{rest}" if found else f"{asked}: {error}")


def extended(error: _Refusal, advice: str) -> _Refusal:
    """Return a refusal whose text ends in what to do."""
    return _again(error, f"{error} ({advice})")


def _again(error: _Refusal, text: str) -> _Refusal:
    """Return a copy of a refusal with another message."""
    again = copy(error)
    ToolkitError.__init__(again, text)  # which also bounds the message
    return again


class _Pruned(msgspec.Struct):
    """What the body of an answer to a pruned read may name."""

    archival_endpoint: str | None = None


def advertised_archive(answer: Answer, credentials: Credentials = NO_CREDENTIALS) -> str | None:
    """Return the archive that a pruned answer names in its header or body, None if it names none that can be used.

    It must be an absolute https URL without any part of the credentials.
    """
    named = next((value for name, value in answer.headers.items() if name.lower() == _ARCHIVE_HEADER), None)
    if named is None:
        with suppress(msgspec.DecodeError, UnicodeError):
            named = msgspec.json.decode(answer.body, type=_Pruned).archival_endpoint
    if not isinstance(named, str) or len(named) > _MAX_URL or not named.isascii() or not named.isprintable():
        return None
    try:
        url = base_url(named)
    except InputError:
        return None
    usable = url.startswith("https://") and credentials.mask(url) == url
    return redacted_url(url) if usable else None


def _advice(kind: type[NodeError], status: int, code: str | None, ledger: LedgerState | None) -> str:
    if kind is VersionPruned:
        if ledger is None:
            return "read a later version, or ask an archive node"
        return f"the oldest readable version is {ledger.oldest_version}; read from there, or ask an archive node"
    if code == "version_not_found" and ledger is not None:
        return f"the node's head is version {ledger.version}"
    if code in _BY_CODE:
        return _BY_CODE[code]
    return _ADVICE.get(status) or _ADVICE.get(status // 100, "")


def _kinds_in_move(message: str) -> str:
    """Return what the kinds of JSON values in a message of a node are in Move; empty if it names none."""
    found = dict.fromkeys(_KIND.findall(message))
    return "; ".join(f"{kind} is {_kind_in_move(kind)} in Move" for kind in [*found][:_MAX_KINDS])


def _kind_in_move(kind: str) -> str:
    inner = kind.partition("<")[2][:-1]
    if kind.startswith("array<"):
        return f"vector<{_kind_in_move(inner)}>"
    return _KINDS.get(inner, inner) if inner else "bool"


def _access_advice(credentials: Credentials) -> str:
    if credentials.api_key is not None:
        return _KEY_REFUSED
    if credentials.login is not None:
        return _LOGIN_REFUSED
    return _KEY_NOT_SENT if credentials.unsent else _NOTHING_SENT


def _masked(body: ErrorBody, credentials: Credentials) -> ErrorBody:
    """Mask the texts of an error; a documented code is never masked, even if it looks like a piece of a secret."""
    code = body.error_code
    if code is not None and code not in ERROR_CODES:
        code = credentials.mask(code)
    return replace(body, message=credentials.mask(body.message), error_code=code)
