"""Requests and answers of the handlers, and the documented errors with the texts of a node."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

JSON = "application/json"
BCS = "application/x-bcs"

encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request: path parameters, query, headers (names in lower case) and body."""

    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    in_worker: bool = False  # answered in a thread of its own, because contract code takes long

    def wants_bcs(self) -> bool:
        """Return True if the answer must be BCS: JSON or BCS, whichever is accepted first.

        A media type with a weight or another parameter does not equal the plain one, as on a node.
        """
        accepted = (item.strip() for item in self.headers.get("accept", "").lower().split(","))
        return next((item for item in accepted if item in {JSON, BCS}), JSON) == BCS


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """An answer to a request.

    Parameters
    ----------
    body : bytes
        Encoded body.
    status : int, default 200
        HTTP status.
    media_type : str, default "application/json"
        Content type.
    gas_used : int, optional
        Gas units, sent as a header.
    cursor : str, optional
        Start of the next page, sent as a header.
    with_ledger : bool, default True
        Whether headers report the state of the ledger.
    headers : mapping of str to str, optional
        Further headers, with names in lower case.
    """

    body: bytes
    status: int = 200
    media_type: str = JSON
    gas_used: int | None = None
    cursor: str | None = None
    with_ledger: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


class ApiError(Exception):
    """An error that is answered with the documented error body.

    Parameters
    ----------
    status : int
        HTTP status.
    error_code : str
        Error code of the REST API.
    message : str
        Message in the words of a node.
    vm_error_code : int, optional
        VM status number.
    with_ledger : bool, default True
        Whether headers report the state of the ledger.
    headers : mapping of str to str, optional
        Further headers of the answer, with names in lower case.
    """

    def __init__(
        self,
        status: int,
        error_code: str,
        message: str,
        *,
        vm_error_code: int | None = None,
        with_ledger: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers or {}
        self.body: dict[str, Any] = {
            "message": message,
            "error_code": error_code,
            "vm_error_code": vm_error_code,
        }
        self.with_ledger = with_ledger

    def answer(self) -> HttpAnswer:
        """Return the answer."""
        return HttpAnswer(encode(self.body), self.status, with_ledger=self.with_ledger, headers=self.headers)


def invalid_input(message: str, *, vm_error_code: int | None = None, with_ledger: bool = True) -> NoReturn:
    """Raise the error of an invalid input, status 400; without ledger headers if the ledger was not read."""
    raise ApiError(400, "invalid_input", message, vm_error_code=vm_error_code, with_ledger=with_ledger)


@contextmanager
def error_context(context: str) -> Iterator[None]:
    """Prefix the message of an invalid input with `context`, like the node's chain of causes."""
    try:
        yield
    except ApiError as error:
        if error.body["error_code"] == "invalid_input":
            error.body["message"] = f"{context}{error.body['message']}"
        raise


def framework_error(message: str, *, status: int = 400, headers: Mapping[str, str] | None = None) -> ApiError:
    """Return the error of a request that the web framework rejects: path, query, headers or shape of the body."""
    return ApiError(status, "web_framework_error", message, with_ledger=False, headers=headers)


def not_found(what: str, error_code: str, text: str) -> NoReturn:
    """Raise the error of a missing item, status 404: `what` was looked up by `text`."""
    raise ApiError(404, error_code, f"{what} not found by {text}")
