"""What every call of a node shares: the connection, companion reads, ABIs, the encoding, the head last seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from toolkit.move import FunctionId
from toolkit.wire import parse_headers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from toolkit.client.abis import AbisAt, AbiStore
    from toolkit.client.companion import Companion
    from toolkit.client.connection import Connection
    from toolkit.client.http import Answer, Request
    from toolkit.move import FunctionAbi
    from toolkit.wire import AnswerHeaders

__all__ = ["BCS", "JSON", "Context", "at_version", "function_abi"]

Encoding = Literal["json", "bcs"]
JSON, BCS = "application/json", "application/x-bcs"


@dataclass(slots=True)
class Context:
    """Shared by the callers of one node.

    Attributes
    ----------
    connection : Connection
    companion : Companion
    abis : AbiStore
    encoding : {"json", "bcs"}
        How views and table items travel, wherever the types are known; JSON elsewhere.
    """

    connection: Connection
    companion: Companion
    abis: AbiStore
    encoding: Encoding = "json"
    _head: int | None = field(default=None)

    def post(
        self,
        where: str,
        body: bytes,
        *,
        query: Mapping[str, Any] | None = None,
        content: str = JSON,
        accept: str = JSON,
    ) -> Request:
        """Return a POST request to a path below the base URL."""
        return self.connection.request("POST", where, body=body, query=query, content=content, accept=accept)

    def abis_for(self, version: int | None) -> AbisAt:
        """Return the ABIs to encode a call by: of the version read, or of the highest head seen."""
        return self.abis.at(self.head() if version is None else version)

    def head(self) -> int:
        """Return the highest head seen."""
        if self._head is None:
            self._head = self.companion.info().ledger.version
        return self._head

    def headers(self, answer: Answer) -> AnswerHeaders:
        """Read an answer's headers, and remember the head they tell."""
        headers = parse_headers(answer.headers)
        if headers.ledger is not None:
            self._head = max(self._head or 0, headers.ledger.version)
        return headers


def function_abi(name: str, abis: AbisAt) -> FunctionAbi | None:
    """Return a function of a module as it stood, None where module or function is not known."""
    function = FunctionId.parse(name)
    module = abis.module_abi(function.address, function.module)
    return None if module is None else module.function(function.name)


def at_version(version: int | None) -> str:
    """Return the words for a version that is asked for."""
    return "" if version is None else f" at version {version}"
