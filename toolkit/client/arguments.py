"""What callers hand to the fetch functions, checked before anything is asked. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolkit.client.node import Node, Snapshot
from toolkit.errors import InputError

if TYPE_CHECKING:
    from toolkit.wire import SimulationRequest, ViewFunction

__all__ = ["given_calls", "given_keys", "given_node", "given_requests", "is_view"]


def given_node(node: Any) -> Node:
    """Return a node; a name or a snapshot is none."""
    if isinstance(node, Snapshot):
        raise InputError(f"expected a node, got a Snapshot of one; give its .node and versions={node.ledger_version}")
    if not isinstance(node, Node):
        raise InputError(f"expected a node, as toolkit.connect returns it, got {node!r:.80}")
    return node


def is_view(call: object) -> bool:
    """Tell whether `call` is one view call."""
    from toolkit.wire import ViewFunction

    return isinstance(call, ViewFunction)


def given_calls(calls: Any) -> dict[str, ViewFunction]:
    """Return view calls by name: the caller's, or the function's where that tells them apart."""
    if is_view(calls):
        return {calls.function: calls}
    if isinstance(calls, Mapping):
        for name, call in calls.items():
            if not isinstance(name, str):
                raise InputError(f"fetch_views: names of calls are text, got {name!r:.80}; name it {str(name)!r:.80}")
            _view(f"call {name!r:.80}", call)
        named = dict(calls)
    else:
        if isinstance(calls, str | bytes) or not isinstance(calls, Iterable):
            _view("calls", calls)
        named = {}
        for place, call in enumerate(calls):
            _view(f"call {place}", call)
            named[call.function if call.function not in named else f"{call.function} #{len(named)}"] = call
    if not named:
        raise InputError("fetch_views needs at least one call")
    return named


def given_keys(keys: Any) -> list[Any]:
    """Return the keys of table items as a list; one key is none, though text has letters to go through."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise InputError(f"keys is a list of keys, got {keys!r:.80}; write one key as keys=[...]")
    return list(keys)


def given_requests(requests: Any) -> list[SimulationRequest]:
    """Return simulations as a list; one alone is a list of one."""
    from toolkit.wire import SimulationRequest
    from toolkit.wire._models import WireModel

    if isinstance(requests, SimulationRequest):
        return [requests]
    if isinstance(requests, str | bytes | Mapping | WireModel) or not isinstance(requests, Iterable):
        raise InputError(f"requests is a list of toolkit.SimulationRequest, got {requests!r:.80}")
    listed = list(requests)
    for place, request in enumerate(listed):
        if not isinstance(request, SimulationRequest):
            raise InputError(
                f"request {place} is {type(request).__name__}; expected toolkit.SimulationRequest(payload, sender=...)"
            )
    return listed


def _view(place: str, call: Any) -> None:
    if not is_view(call):
        raise InputError(f"{place}: expected toolkit.ViewFunction('0x1::module::function', ...), got {call!r:.80}")
