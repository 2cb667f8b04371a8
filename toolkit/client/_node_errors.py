"""Turns error responses into exceptions whose messages say what to do."""

from __future__ import annotations

import csv
import re
from copy import copy
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from toolkit import errors
from toolkit._present.text import visible
from toolkit.client._http import ALWAYS, MAX_SHOWN, NO_CREDENTIALS, Answer, Credentials, redacted_target, resume_time
from toolkit.wire._responses import ERROR_CODES

if TYPE_CHECKING:
    from toolkit.wire import LedgerState


# Error code that says that an account does not exist; other refusals say that the node does not offer accounts.
NO_ACCOUNT = "account_not_found"
# Error codes that say that something does not exist at a version, and nothing else.
ABSENT = frozenset({"module_not_found", NO_ACCOUNT, "resource_not_found", "state_value_not_found"})
# Error code that says that a table has no item of a key.
NO_ITEM = "table_item_not_found"


_Refusal = TypeVar("_Refusal", bound=errors.NodeError)

_CLASSES: dict[int, type[errors.NodeError]] = {
    400: errors.InvalidRequest,
    401: errors.Forbidden,
    403: errors.Forbidden,
    404: errors.NotFound,
    405: errors.NotFound,
    410: errors.VersionPruned,
    413: errors.TooLarge,
    429: errors.RateLimited,
    503: errors.Unavailable,
    507: errors.InsufficientStorage,
}

_NOTHING_SENT = (
    "no API key or login was sent; set LEDGER_TOOLKIT_API_KEY, pass api_key=, or write user:password@ before the host "
    "in the URL of the study file, --node or connect(). Run folders and worker processes do not store logins"
)
_KEY_NOT_SENT = (
    "LEDGER_TOOLKIT_API_KEY was not sent because only a study file names this host; allow it with --use-api-key or "
    "Study.load(..., use_api_key=True), or write user:password@ before the host (worker processes do not receive it)"
)

# The leading zeros of an address or handle of full length; messages leave them out.
_ZEROS = re.compile(r"\b0x(?=[0-9a-f]{64}\b)0+(?=[0-9a-f])")
# Maximum number of characters of a page that a message quotes.
_MAX_PAGE_TEXT = 200


@cache
def advice(about: str) -> dict[str, str]:
    """Return what to do about each ``vm status``, ``http status`` or ``error code`` that is known."""
    with Path(__file__).with_name("advice.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: row["advice"] for row in csv.DictReader(file) if row["about"] == about}


def misread(
    asked: str, answer: Answer, error: errors.SchemaError, credentials: Credentials, url: str
) -> errors.SchemaError:
    """Return the exception for a response that cannot be decoded: `error`, masked, or one that reports an HTML page."""
    credentials.mask_error(error)  # it quotes the answer
    if not answer.is_page:
        return error
    shown = visible(credentials.mask(answer.error.message), _MAX_PAGE_TEXT)
    return errors.SchemaError(
        f"{asked}: expected a response from a node, got an HTML page: {shown!r}; is {url} the URL of a node?"
    )


def refusal(
    asked: str, answer: Answer, credentials: Credentials = NO_CREDENTIALS, url: str = "this address"
) -> errors.NodeError:
    """Return the exception for a response with an error status.

    Parameters
    ----------
    asked : str
        The call, for the message: ``view 0x1::coin::supply at version 12``.
    answer : Answer
        With any status but 200.
    credentials : Credentials
        The credentials that were sent. The exception does not show them, although the response may: gateways quote keys
        that they do not know.
    url : str
        The node's URL, without a login, for the message about a response that does not come from a node.

    Returns
    -------
    NodeError
        An instance of the class for the status. A 5xx response whose message mentions pruning also becomes
        `VersionPruned`.
    """
    ledger, sent, status = answer.parsed.ledger, answer.error, answer.status
    code, message = sent.error_code, credentials.mask(sent.message)
    location = credentials.mask(redacted_target(answer.header("location")))
    archive = credentials.mask(answer.archive or "")
    if code not in ERROR_CODES:  # a documented code is not masked, even if it looks like a piece of a secret
        code = code and credentials.mask(code)
    pruned = status >= HTTPStatus.INTERNAL_SERVER_ERROR and "pruned" in message.lower()
    kind = errors.VersionPruned if pruned else _CLASSES.get(status, errors.NodeError)
    usable = kind is errors.VersionPruned and archive == answer.archive  # not one that echoes a secret
    if status == HTTPStatus.UNAUTHORIZED or (kind is errors.Forbidden and code not in ERROR_CODES):
        what_to_do = _access_advice(credentials)
    elif "failed to deserialize table item" in message.lower():  # of a 500
        what_to_do = "check value_type: the stored value does not have that type"
    else:
        what_to_do = _advice(kind, status, code, ledger)
    told, wait_s = [what_to_do] if what_to_do else [], answer.retry_after_s
    if location:
        told.append(f"it redirects to {location[:MAX_SHOWN]!a}, which is not followed; connect there if you trust it")
    busy = status in ALWAYS or status >= HTTPStatus.INTERNAL_SERVER_ERROR  # then a page comes from a node's gateway
    if status // 100 == 3 or (answer.is_page and not busy):  # noqa: PLR2004 - redirects
        told.append(f"is {url} the URL of a node?")
    if wait_s:
        told.append(f"the node asked clients to wait {wait_s:g} s; retry after {resume_time(wait_s)}")
    if usable:
        told.append(f"the node names an archive, {archive}; connect to it, or pass archive=True to connect()")
    refused = f"{status}{f' {code}' if code else ''}"
    said = f"the node answered {refused}: {visible(_ZEROS.sub('0x', message), 600) or 'no message'}"
    if code == "version_not_found":  # the message would only repeat the version
        said = "this version does not exist yet"
        told.append(refused)
    text = f"{_ZEROS.sub('0x', asked)}: {said}"
    return kind(
        f"{text} ({'; '.join(told)})" if told else text,
        status=status,
        error_code=code,
        message=message,
        vm_error_code=sent.vm_error_code,
        ledger=ledger,
        retry_after_s=wait_s,
        archive=archive if usable else None,
    )


def needed_for(asked: str, error: _Refusal) -> _Refusal:
    """Return the error of a lookup whose message begins with the call that needs it, such as a view at a version."""
    return _again(error, f"{_ZEROS.sub('0x', asked)}: {error}")


def extended(error: _Refusal, more: str) -> _Refusal:
    """Return an error whose message ends with advice on what to do."""
    return _again(error, f"{error} ({more})")


def _again(error: _Refusal, text: str) -> _Refusal:
    """Return a copy of an error with a different message."""
    again = copy(error)
    errors.ToolkitError.__init__(again, text)  # which also bounds the message
    return again


def _advice(kind: type[errors.NodeError], status: int, code: str | None, ledger: LedgerState | None) -> str:
    if kind is errors.VersionPruned:
        if ledger is None:
            return "read a later version, or ask an archive node"
        return f"the oldest readable version is {ledger.oldest_version:,}; read from there, or ask an archive node"
    if code == "version_not_found" and ledger is not None:
        return f"the node's head is version {ledger.version:,}"
    known = advice("http status")
    return advice("error code").get(code or "") or known.get(str(status)) or known.get(f"{status // 100}xx", "")


def _access_advice(credentials: Credentials) -> str:
    if credentials.api_key is not None:
        return "the API key was rejected; check api_key= or LEDGER_TOOLKIT_API_KEY"
    if credentials.login is not None:
        return "the user name and password in the node's URL were rejected"
    return _KEY_NOT_SENT if credentials.unsent else _NOTHING_SENT
