"""A request as text: the Python that sends it again, laid out for reading, and the JSON that goes to the node."""

from __future__ import annotations

import ast
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from toolkit.client.targets import redacted_url
from toolkit.widgets.entries import estimates_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.client.node import Node
    from toolkit.wire.requests import SimulationRequest

__all__ = ["laid_out", "request_as_json", "request_as_python"]

_WIDTH = 60
_ESTIMATED = "estimated by the node"
_DEFAULT = "default of the toolkit"


def request_as_python(request: SimulationRequest, node: Node) -> str:
    """Return a program that connects to the same node and sends the same request.

    Parameters
    ----------
    request : SimulationRequest
    node : Node
        Named by its URL without credentials; the embedded node by its name.

    Returns
    -------
    str
    """
    target = "" if node.name == "embedded" else repr(redacted_url(node.url))
    return (
        f"import toolkit\n\nnode = toolkit.connect({target})\n"
        f"request = {laid_out(request.to_python())}\nsimulation = node.simulate(request)"
    )


def laid_out(expression: str, *, width: int = _WIDTH) -> str:
    """Break a Python expression into lines where it is longer than `width` characters; its meaning stays."""
    return _lines(expression, ast.parse(expression, mode="eval").body, "", width)


def _lines(source: str, node: ast.expr, indent: str, width: int) -> str:
    text = ast.get_source_segment(source, node) or ""
    if len(indent) + len(text) <= width:
        return text
    inner = indent + "    "
    parts: list[str]
    match node:
        case ast.Call(func=function, args=arguments, keywords=keywords):
            brackets = (ast.unparse(function) + "(", ")")
            parts = [_lines(source, argument, inner, width) for argument in arguments]
            parts += [f"{word.arg}={_lines(source, word.value, inner, width)}" for word in keywords]
        case ast.List(elts=items):
            brackets = ("[", "]")
            parts = [_lines(source, item, inner, width) for item in items]
        case ast.Dict(keys=keys, values=values):
            brackets = ("{", "}")
            names = [ast.get_source_segment(source, key) for key in keys if key is not None]
            pairs = zip(names, values, strict=True)
            parts = [f"{name}: {_lines(source, value, inner, width)}" for name, value in pairs]
        case _:
            return text
    return brackets[0] + "".join(f"\n{inner}{part}," for part in parts) + f"\n{indent}{brackets[1]}"


def request_as_json(request: SimulationRequest, arguments: Sequence[Any] | None = None) -> str:
    """Return the request line and the body that a simulation sends.

    Parameters
    ----------
    request : SimulationRequest
    arguments : sequence, optional
        The payload's arguments as the ABI encodes them; without it they stand as they were written.

    Returns
    -------
    str
        What the request leaves open says in words where it comes from.
    """
    estimates = estimates_of(request)
    query = urlencode(
        request.replace(**{f"estimate_{name}": asked for name, asked in estimates._asdict().items()}).query()
    )
    body = request.body(sequence_number=0, max_gas_amount=0, gas_unit_price=0, expiration_timestamp_secs=0)
    sources = {
        "sequence_number": "the sender's, asked when sent",
        "max_gas_amount": _ESTIMATED if estimates.max_gas_amount else _DEFAULT,
        "gas_unit_price": _ESTIMATED if estimates.gas_unit_price else _DEFAULT,
        "expiration_timestamp_secs": "ledger time + 600 s",
    }
    body |= {name: f"<{words}>" for name, words in sources.items() if getattr(request, name) is None}
    if arguments is not None:
        body["payload"] = body["payload"] | {"arguments": list(arguments)}
    line = "POST /v1/transactions/simulate" + (f"?{query}" if query else "")
    return f"{line}\n\n{json.dumps(body, indent=2, ensure_ascii=False)}"
