"""Requests as text to copy: Python, curl, JSON, and the call of a study file."""

from __future__ import annotations

import ast
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from toolkit.client._http import redacted_url, served_ledger
from toolkit.errors import InputError
from toolkit.move import FunctionId
from toolkit.move._ids import wire_address
from toolkit.widgets._messages import NoProgram, Programs
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction
from toolkit.wire._requests import called_by, with_estimates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.client._node import Node
    from toolkit.client._versions import Versions


_HEAD = 'HEAD=$(curl -s "$URL" | sed -E \'s/.*"ledger_version":"([0-9]+)".*/\\1/\')'
_ACCOUNT = '$(curl -s "$URL/accounts/ADDRESS" | sed -E \'s/.*"sequence_number":"([0-9]+)".*/\\1/\')'
_LEDGER_S = '$(curl -s "$URL" | sed -E \'s/.*"ledger_timestamp":"([0-9]+)[0-9]{6}".*/\\1/\')'
_WIDTH = 46  # longest expression that is kept on one line: with a name before it, it fits the pane in JupyterLab
_ON_FORK = NoProgram("Nodes simulate at their head only. For a fork, use the Python program.")
_ESTIMATED = "estimated by the node"
_DEFAULT = "the toolkit's default"
_PLACEHOLDERS = {"max_gas_amount": "2000000", "gas_unit_price": "100"}  # sent by curl for values the node estimates


# Python --------------------------------------------------------------------------------------------------------------


def connect_line(node: Node) -> str:
    """Return the line of a Python program that connects to a node, without credentials.

    A local embedded ledger appears as the variable ``ledger``.
    """
    if node.name == "embedded":
        return "node = toolkit.connect()"
    own = served_ledger(node.url) is not None
    return f"node = toolkit.connect({'ledger' if own else repr(redacted_url(node.url))})"


def format_expression(expression: str, *, width: int = _WIDTH, indent: str = "") -> str:
    """Put each part of a call, list or dict longer than `width` characters on a separate line."""
    node = ast.parse(expression, mode="eval").body
    if len(indent) + len(expression) <= width or not isinstance(node, ast.Call | ast.List | ast.Dict):
        return expression
    if isinstance(node, ast.List):
        begin, end, parts = "[", "]", [("", one) for one in node.elts]
    elif isinstance(node, ast.Dict):
        begin, end = "{", "}"
        parts = [
            (f"{ast.unparse(key)}: " if key else "**", one) for key, one in zip(node.keys, node.values, strict=True)
        ]
    else:
        begin, end, parts = f"{ast.unparse(node.func)}(", ")", [("", one) for one in node.args]
        parts += [(f"{one.arg}=", one.value) for one in node.keywords]
    inner = f"{indent}    "
    for name, value in parts:
        text = ast.get_source_segment(expression, value) or ""
        begin += f"\n{inner}{name}{format_expression(text, width=width, indent=inner)},"
    return f"{begin}\n{indent}{end}"


# simulations ---------------------------------------------------------------------------------------------------------


def programs(
    request: SimulationRequest,
    node: Node,
    arguments: Sequence[Any] | None = None,
    *,
    version: int | None = None,
    earlier: Sequence[SimulationRequest] = (),
) -> Programs:
    """Return a simulation as Python, curl, JSON and the call of a study file, by name.

    Parameters
    ----------
    request : SimulationRequest
    node : Node
        Node to send to. Its URL appears without credentials.
    arguments : sequence, optional
        Arguments encoded according to the ABI; by default, the arguments in the request.
    version : int, optional
        Version on whose state the request is simulated, on a fork.
    earlier : sequence of SimulationRequest
        Requests that run before it on the fork.
    """
    lines = ["import toolkit", "", connect_line(node)]
    made = f"request = {_request_as_python(request)}"
    if version is not None:
        lines += [f"fork = node.fork({version})", *(f"fork.execute({_request_as_python(one)})" for one in earlier)]
        python = "\n".join([*lines, made, "simulation = fork.simulate(request)"])
        return {"Python": python, **dict.fromkeys(("curl", "JSON", "Study"), _ON_FORK)}
    # Zeros are placeholders for the numbers that the request leaves open.
    body = request.body(sequence_number=0, max_gas_amount=0, gas_unit_price=0, expiration_timestamp_secs=0)
    if arguments is not None:
        inner = body["payload"].get("transaction_payload") or body["payload"]
        inner["arguments"] = list(arguments)
    return {
        "Python": "\n".join([*lines, made, "simulation = node.simulate(request)"]),
        "curl": _simulation_as_curl(request, node, body),
        "JSON": json.dumps(body | {name: f"<{words}>" for name, words in _sources(request).items()}, indent=2),
        "Study": request_as_study(request),
    }


def _request_as_python(request: SimulationRequest) -> str:
    """Return a request as a Python expression with short addresses."""
    written = request.to_python().replace(repr(request.sender), repr(wire_address(request.sender)))
    payload = called_by(request.payload)
    if isinstance(payload, EntryFunction):
        written = written.replace(repr(payload.function), repr(FunctionId.parse(payload.function).wire))
    return format_expression(written)


def _margin_s(request: SimulationRequest) -> int:
    """Return how many seconds after the ledger's time a simulation expires; nodes accept a nonce for only 60 s."""
    return 600 if request.replay_protection_nonce is None else 50


def _sources(request: SimulationRequest) -> dict[str, str]:
    """Return, for each number that a request leaves open, where the client takes it from."""
    asked = with_estimates(request)
    sources = {
        "sequence_number": "the sender's next number, read before sending",
        "max_gas_amount": _ESTIMATED if asked.estimate_max_gas_amount else _DEFAULT,
        "gas_unit_price": _ESTIMATED if asked.estimate_gas_unit_price else _DEFAULT,
        "expiration_timestamp_secs": f"ledger time + {_margin_s(request)} s",
    }
    return {name: words for name, words in sources.items() if getattr(request, name) is None}


def _simulation_as_curl(request: SimulationRequest, node: Node, body: dict[str, Any]) -> str | NoProgram:
    """Return shell commands that send a simulation with curl, after reading what the client would read first."""
    if request.needs_bcs:
        return NoProgram("Nodes accept this signature only in BCS, which curl cannot write. Use the Python program.")
    lines, open_ = [f"URL={quoted(redacted_url(node.url))}"], _sources(request)
    body = body | {name: number for name, number in _PLACEHOLDERS.items() if name in open_}
    if "sequence_number" in open_ and request.replay_protection_nonce is None:
        lines.append(f"SEQUENCE_NUMBER={_ACCOUNT.replace('ADDRESS', wire_address(request.sender))}")
        body["sequence_number"] = "<$SEQUENCE_NUMBER>"
    if "expiration_timestamp_secs" in open_:
        lines.append(f"EXPIRES=$(( {_LEDGER_S} + {_margin_s(request)} ))")
        body["expiration_timestamp_secs"] = "<$EXPIRES>"
    quote = '"\'"'  # ends the text in JSON and the word of the shell, and begins a word that the shell expands
    data = re.sub(r'"<(\$\w+)>"', rf"{quote}\1{quote[::-1]}", quoted(json.dumps(body, indent=1)))
    query = urlencode(with_estimates(request).query())
    return "\n".join([*lines, _post(f"transactions/simulate{query and '?'}{query}", data)])


def _post(where: str, data: str) -> str:
    return f"curl -s -X POST \"$URL/{where}\" \\\n  -H 'Content-Type: application/json' \\\n  -d {data}"


def quoted(text: str) -> str:
    """Quote a text as a single shell word."""
    return "'" + text.replace("'", "'\\''") + "'"


def request_as_study(request: SimulationRequest | ViewFunction) -> str | NoProgram:
    """Return the ``[[call]]`` of a study file, or the reason why a study cannot describe the request."""
    from toolkit.gas._calls import Call
    from toolkit.gas._study_file import toml_value

    try:
        fields = Call.of(request).model_dump(mode="json", exclude_defaults=True)
    except InputError as error:
        return NoProgram(str(error))
    return "\n".join(["[[call]]", *(f"{name} = {toml_value(value)}" for name, value in fields.items())])


# reads ---------------------------------------------------------------------------------------------------------------


def curl_lines(node: Node, where: str, body: Mapping[str, Any], versions: Versions | None) -> str | NoProgram:
    """Return shell commands that post JSON to one of a node's paths, at the head or at one version.

    Parameters
    ----------
    node : Node
        Node to send to. Its URL appears without credentials.
    where : str
        Path, such as ``view``.
    body : mapping
        JSON body.
    versions : version plan, int or None
        The result of `read_versions`. For a version plan, only a reason is returned: curl reads one version.
    """
    if versions is not None and not isinstance(versions, int):
        return NoProgram("curl reads only one version. To read several, use the Python program.")
    lines = [f"URL={quoted(redacted_url(node.url))}"]
    if versions is not None and versions < 0:  # counted from the head
        lines += [_HEAD, f"VERSION=$(( HEAD - {-versions - 1} ))"]
    elif versions is not None:
        lines.append(f"VERSION={versions}")
    query = "" if versions is None else "?ledger_version=$VERSION"
    return "\n".join([*lines, _post(where + query, quoted(json.dumps(body, ensure_ascii=False)))])
