"""Requests and answers as the handlers see them, and the documented errors with the node's texts."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "BCS",
    "JSON",
    "ApiError",
    "HttpAnswer",
    "HttpCall",
    "bad_framework",
    "encode",
    "explained",
    "invalid_input",
    "not_found",
]

JSON = "application/json"
BCS = "application/x-bcs"

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpCall:
    """One request: path parameters, query, headers in lower case, body."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def wants_bcs(self) -> bool:
        """Tell whether the answer shall be BCS: the first media type listed that is JSON or BCS decides."""
        accept = self.headers.get("accept")
        if accept is None:
            return False
        for item in accept.split(","):
            media = item.split(";", 1)[0].strip().lower()
            if media == JSON:
                return False
            if media == BCS:
                return True
        return False


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What goes back.

    Parameters
    ----------
    body : bytes
        Encoded body.
    status : int, default 200
        HTTP status.
    media_type : str, default "application/json"
        Content type.
    gas_used : int, optional
        Gas units, for the header.
    cursor : str, optional
        Where the next page starts, for the header.
    with_ledger : bool, default True
        Whether the headers tell the state of the ledger.
    headers : mapping, optional
        Further headers.
    """

    body: bytes
    status: int = 200
    media_type: str = JSON
    gas_used: int | None = None
    cursor: str | None = None
    with_ledger: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiError(Exception):
    """A request that is answered with the documented error body.

    Parameters
    ----------
    status : int
        HTTP status.
    error_code : str
        The node's code.
    message : str
        The node's text.
    vm_error_code : int, optional
        VM status number.
    with_ledger : bool, default True
        Whether the answer's headers tell the state of the ledger.
    """

    def __init__(
        self,
        status: int,
        error_code: str,
        message: str,
        *,
        vm_error_code: int | None = None,
        with_ledger: bool = True,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {
            "message": message,
            "error_code": error_code,
            "vm_error_code": vm_error_code,
        }
        self.with_ledger = with_ledger

    def answer(self) -> HttpAnswer:
        """Return the answer."""
        return HttpAnswer(encode(self.body), self.status, with_ledger=self.with_ledger)


def invalid_input(message: str, *, vm_error_code: int | None = None) -> NoReturn:
    """Refuse what a caller wrote, with 400."""
    raise ApiError(400, "invalid_input", message, vm_error_code=vm_error_code)


@contextmanager
def explained(context: str) -> Iterator[None]:
    """Put `context` before the text of a refusal inside, as the node's chain of causes does."""
    try:
        yield
    except ApiError as error:
        if error.body["error_code"] == "invalid_input":
            error.body["message"] = f"{context}{error.body['message']}"
        raise


def bad_framework(message: str, *, status: int = 400) -> NoReturn:
    """Refuse a request before it reaches the node: path, query, headers or the shape of the body."""
    raise ApiError(status, "web_framework_error", message, with_ledger=False)


def not_found(what: str, error_code: str, text: str) -> NoReturn:
    """Answer 404: `what` is not there, found by `text`."""
    raise ApiError(404, error_code, f"{what} not found by {text}")
