"""Failed requests: error answers as exceptions that say what to do; retries, pace, and rests after outages. Pure."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

from toolkit._present.text import visible
from toolkit.client._credentials import NO_CREDENTIALS, Credentials
from toolkit.client._http import base_url, redacted_url
from toolkit.client._transport import fork_safe_lock
from toolkit.errors import (
    Forbidden,
    HopelessError,
    InputError,
    InsufficientStorage,
    InvalidRequest,
    NodeError,
    NodeUnreachable,
    NotFound,
    OfflineMiss,
    RateLimited,
    SchemaError,
    TooLarge,
    ToolkitError,
    Unavailable,
    VersionPruned,
)
from toolkit.move._json_text import parse_json
from toolkit.wire import ErrorBody, decode_error_body
from toolkit.wire._responses import ERROR_CODES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from toolkit.client._http import Answer
    from toolkit.wire import LedgerState


_ALWAYS = frozenset({429, 502, 503, 504})
_SERVER_ERROR = 500
_PAUSES_ALL = frozenset({429, 503})
_MAX_DIGITS = 9
MAX_RETRY_AFTER_S = 366 * 86_400
"""Maximum wait read from a ``Retry-After`` header, in seconds."""
_MAX_TEXT_BYTES = 4096
"""Number of bytes of an error's body that are searched for reasons not to send the request again."""
K = TypeVar("K")

_MIN_REST_S = 30.0
"""Minimum time for which something that failed is not tried again, in seconds."""
_REST_PER_WAIT = 10.0
"""The rest as a multiple of the duration of the failure, so that trying again costs at most a tenth of the time."""
NO_ACCOUNT = "account_not_found"
"""Error code that says that an account does not exist; other refusals say that the node does not offer accounts."""
ABSENT = frozenset({"module_not_found", NO_ACCOUNT, "resource_not_found", "state_value_not_found"})
"""Error codes that say that something does not exist at a version, and nothing else."""
NO_ITEM = "table_item_not_found"
"""Error code that says that a table has no item of a key."""

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

_ADVICE = {
    2: "a node answers with status 200: this answer is not complete, or not the node's",
    3: "a redirect that cannot be followed",
    403: "the node or its gateway does not allow this call; try another node",
    413: "make the request smaller",
    429: "slow down with requests_per_second=, or use an API key",
    503: "the node is not ready; try again later",
    507: "the node's mempool is full; try again later",
}
"""What to do about a status, or its first digit."""

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
_KINDS = {
    "hex": "vector<u8>",
    "move_function_id": "a function value",
    "move_struct_tag_id": "a struct, such as 0x1::string::String or 0x1::option::Option,",
}
"""Kinds of JSON values of parameters, as nodes name them: integers and addresses have the names of Move."""
_MAX_KINDS = 3

MAX_PAGE_TEXT = 200
"""Maximum number of characters of a page that a message quotes."""
_MISFIT = "failed to deserialize table item"
"""Part of the message of a 500 for a table item whose bytes do not fit the value type."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Which failed requests are sent again, and after which wait.

    The wait before repeat n (counted from 1) is uniform in [0.5, 1] times ``min(cap_s, base_s * 2**(n - 1))``, or the
    node's ``Retry-After`` if that is longer. The ``Retry-After`` of a 429 or 503 applies to all requests to the node:
    up to `budget_s` they wait, above it none is sent until that time.

    Parameters
    ----------
    attempts : int
        Maximum number of times that a request is sent.
    base_s, cap_s : float
        First and largest wait, in seconds.
    budget_s : float
        Maximum sum of the waits of one request, in seconds.

    Examples
    --------
    >>> retry = RetryPolicy()
    >>> retry.may_repeat(503, repeat=1), retry.may_repeat(404, repeat=1)
    (True, False)
    """

    attempts: int = 5
    base_s: float = 0.25
    cap_s: float = 8.0
    budget_s: float = 60.0

    def may_repeat(self, status: int | None, *, repeat: int, text: str = "") -> bool:
        """Return whether a failed request may be sent again.

        Parameters
        ----------
        status : int or None
            HTTP status; None without an answer.
        repeat : int
            Number of the repeat, counted from 1.
        text : str
            The node's message. A 500 about deserialization fails the same way each time.

        Returns
        -------
        bool
        """
        if repeat >= self.attempts:
            return False
        if status is None or status in _ALWAYS:
            return True
        return status == _SERVER_ERROR and repeat == 1 and "deseriali" not in text.lower()

    def wait_s(self, *, repeat: int, chance: float, asked_s: float | None = None) -> float:
        """Return the wait before repeat number `repeat`, in seconds.

        Parameters
        ----------
        repeat : int
            Counted from 1.
        chance : float
            A random number in [0, 1), for the jitter.
        asked_s : float or None
            Seconds of the node's ``Retry-After``.

        Returns
        -------
        float
        """
        backoff = min(self.cap_s, self.base_s * 2.0 ** (repeat - 1)) * (0.5 + 0.5 * chance)
        return backoff if asked_s is None else max(backoff, asked_s)

    def pause_s(
        self,
        outcome: Answer | NodeUnreachable,
        *,
        repeat: int,
        waited_s: float,
        chance: float,
        also_repeat: Callable[[Answer], bool] | None = None,
    ) -> float | None:
        """Return the wait before a failed request is sent again, or None if it is not sent again.

        Parameters
        ----------
        outcome : Answer or NodeUnreachable
            An error answer, or why none was received.
        repeat : int
            Number of the repeat, counted from 1.
        waited_s : float
            Sum of the waits of this request so far, in seconds.
        chance : float
            A random number in [0, 1), for the jitter.
        also_repeat : callable (Answer) -> bool, optional
            Error answers that are repeated besides those of `may_repeat`, within the same attempts and budget.

        Returns
        -------
        float or None
            In seconds.
        """
        asked_s = None
        if isinstance(outcome, NodeUnreachable):
            again = not isinstance(outcome, HopelessError) and self.may_repeat(None, repeat=repeat)
        else:
            text = outcome.body[:_MAX_TEXT_BYTES].decode("utf-8", "replace")
            again = self.may_repeat(outcome.status, repeat=repeat, text=text)
            if not again and also_repeat is not None and repeat < self.attempts:
                again = also_repeat(outcome)
            asked_s = retry_after_s(outcome.headers)
        pause_s = self.wait_s(repeat=repeat, chance=chance, asked_s=asked_s)
        return pause_s if again and waited_s + pause_s <= self.budget_s else None


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds of a ``Retry-After`` header, or None if it is missing or invalid.

    Parameters
    ----------
    headers : mapping of str to str
        Names in any case.
    now : datetime, optional
        Reference for the date form; the current time by default.

    Returns
    -------
    float or None
        From 0 to 366 days; 0 for a date in the past, None for a negative number.

    Examples
    --------
    >>> retry_after_s({"Retry-After": "7"})
    7.0
    """
    text = next((value for name, value in headers.items() if name.lower() == "retry-after"), "").strip()
    if text.isascii() and text.isdigit():
        text = text.lstrip("0") or "0"  # int() raises for thousands of digits
        return float(min(int(text), MAX_RETRY_AFTER_S) if len(text) <= _MAX_DIGITS else MAX_RETRY_AFTER_S)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    return min(max(0.0, (when - (now or datetime.now(UTC))).total_seconds()), MAX_RETRY_AFTER_S)


def node_pause_s(status: int, headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which a node asks all clients to pause: the ``Retry-After`` of a 429 or 503, else None."""
    return (retry_after_s(headers) or None) if status in _PAUSES_ALL else None


def resume_time(wait_s: float, *, now: datetime | None = None) -> str:
    """Return when a wait ends, for messages: ``2026-05-01 12:00:07 UTC``."""
    return f"{(now or datetime.now(UTC)) + timedelta(seconds=wait_s + 1):%Y-%m-%d %H:%M:%S} UTC"


class Pace:
    """The times at which requests to one node are sent: evenly spaced, with the pauses that the node asks for.

    Several threads may share it.

    Parameters
    ----------
    per_second : float, optional
        Maximum number of requests per second; None for no limit.
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.

    Attributes
    ----------
    held : bool
        Whether the node has ever asked for a pause. If not, `paused_s` and `refused_s` are 0.
    """

    def __init__(self, per_second: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._gap_s = 1.0 / per_second if per_second else 0.0
        self._clock = clock
        self._next = 0.0
        self.held = False
        self._paused_until = self._refused_until = float("-inf")
        self._asked_since: float | None = None
        self._lock = fork_safe_lock()

    def turn_s(self) -> float:
        """Take the next turn to send a request; return the seconds until then, pauses included."""
        if not self._gap_s:
            return self.paused_s() if self.held else 0.0
        with self._lock:
            now = self._clock()
            turn = max(self._next, now, self._paused_until)
            self._next = turn + self._gap_s
            return turn - now

    def hold(self, seconds: float, *, budget_s: float) -> None:
        """Hold back all requests, because the node asked for a pause.

        Parameters
        ----------
        seconds : float
            Length of the pause.
        budget_s : float
            Maximum total length of successive pauses without an answer in between. Up to it requests wait; above it
            they are refused until the pause ends, see `refused_s`.
        """
        with self._lock:
            self.held = True
            now = self._clock()
            if self._asked_since is None:
                self._asked_since = now
            until = now + seconds
            if until - self._asked_since <= budget_s:
                self._paused_until = max(self._paused_until, until)
            else:
                self._refused_until = max(self._refused_until, until)

    def answered(self) -> None:
        """Record an answer that does not ask for a pause."""
        self._asked_since = None

    def note_answer(self, answer: Answer, *, budget_s: float) -> None:
        """Record an answer, and `hold` if it asks for a pause."""
        node_s = node_pause_s(answer.status, answer.headers)
        if node_s is None:
            self.answered()
        else:
            self.hold(node_s, budget_s=budget_s)

    def paused_s(self) -> float:
        """Return the seconds for which requests have to wait."""
        return self._left_s(self._paused_until)

    def refused_s(self) -> float:
        """Return the seconds for which requests are neither sent nor wait, because the pause is too long; else 0."""
        return self._left_s(self._refused_until)

    def _left_s(self, until: float) -> float:
        return max(0.0, until - self._clock()) if self.held else 0.0


def is_outage(error: Exception) -> bool:
    """Return whether an error means that the node cannot answer now: 429, 5xx or no answer."""
    if isinstance(error, NodeError):
        if isinstance(error, VersionPruned):
            return False
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR or error.status == HTTPStatus.TOO_MANY_REQUESTS
    return isinstance(error, NodeUnreachable) and not isinstance(error, OfflineMiss)


class Outages(Generic[K]):
    """Remembers what failed, by key, so that not every call that depends on it waits for its retries.

    Parameters
    ----------
    clock : callable, optional
        Monotonic time in seconds; tests pass their own.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failed: dict[K, tuple[NodeError | NodeUnreachable, float]] = {}

    @contextmanager
    def noted(self, key: K) -> Iterator[None]:
        """Record an outage that the block raises; if it raises none, the outage of `key` has ended."""
        started = self._clock()
        try:
            yield
        except (NodeError, NodeUnreachable) as error:
            if is_outage(error):
                self.note(key, error, took_s=self._clock() - started)
            raise
        self._failed.pop(key, None)

    def note(self, key: K, error: NodeError | NodeUnreachable, *, took_s: float = 0.0) -> None:
        """Record an outage that begins now."""
        self._failed[key] = error, self._clock() + max(_MIN_REST_S, _REST_PER_WAIT * took_s)

    def resting(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage because of which `key` is not tried now, or None if it may be tried."""
        error, until = self._failed.get(key, (None, 0.0))
        return error if error is not None and self._clock() < until else None

    def all_resting(self) -> list[NodeError | NodeUnreachable]:
        """Return the outages of all keys that are not tried now."""
        return [error for key in list(self._failed) if (error := self.resting(key)) is not None]

    def last(self, key: K) -> NodeError | NodeUnreachable | None:
        """Return the outage of `key` that no answer has ended yet, whether or not it may be tried again."""
        found = self._failed.get(key)
        return None if found is None else found[0]

    def ask_again(self) -> list[K]:
        """End every rest, so that each key may be tried again; return the keys."""
        self._failed = {key: (error, float("-inf")) for key, (error, _) in self._failed.items()}
        return list(self._failed)


def page_text(answer: Answer) -> str | None:
    """Return the text of an HTML page, None if an answer is not one."""
    kind = _content_type(answer.headers).lower()
    if "html" not in kind and ("bcs" in kind or "octet" in kind or answer.body.lstrip()[:1] != b"<"):
        return None
    return decode_error_body(answer.body, kind).message


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
    sent = decode_error_body(answer.body, _content_type(answer.headers))
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
    busy = answer.status in _ALWAYS or answer.status >= _SERVER_ERROR  # its page is that of a node's gateway
    stray = answer.status // 100 == 3 or (not busy and page_text(answer) is not None)  # noqa: PLR2004 - redirects
    advice = "; ".join(filter(None, (advice, kinds, f"is {url} the URL of a node?" if stray else "")))
    wait_s = retry_after_s(answer.headers)
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


def masked_refusal(answer: Answer, credentials: Credentials) -> Answer:
    """Return an error answer without the credentials that it repeats; the same answer if it repeats none."""
    text = answer.body.decode("utf-8", "replace")
    if credentials.mask(text) == text:
        return answer
    body = _masked(decode_error_body(answer.body, _content_type(answer.headers)), credentials)
    return replace(answer, body=msgspec.json.encode(body))


def not_sent(what: str, wait_s: float) -> RateLimited:
    """Return the exception for a call that was not sent, because the node asked for a long wait.

    Parameters
    ----------
    what : str
        The call or its address, for the message.
    wait_s : float
        Remaining seconds of the wait.
    """
    message = f"the node asked to be sent nothing until {resume_time(wait_s)} (Retry-After)"
    return RateLimited(
        f"{what}: not sent, {message}; go on then, or connect() again to ask it sooner",
        status=HTTPStatus.TOO_MANY_REQUESTS,
        error_code="rate_limited",
        message=f"not sent: {message}",
        retry_after_s=wait_s,
    )


def advertised_archive(answer: Answer, credentials: Credentials = NO_CREDENTIALS) -> str | None:
    """Return the archive that a pruned answer names in its header or body, None if it names none that can be used.

    It must be an absolute https URL without any part of the credentials.
    """
    named = next((value for name, value in answer.headers.items() if name.lower() == _ARCHIVE_HEADER), None)
    if named is None:
        try:
            document = parse_json(answer.body, "error")
        except SchemaError:
            return None
        named = document.get("archival_endpoint") if isinstance(document, dict) else None
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


def _content_type(headers: Mapping[str, str]) -> str:
    return next((value for name, value in headers.items() if name.lower() == "content-type"), "")
