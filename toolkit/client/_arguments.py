"""Arguments of the client's public functions, checked before anything is sent. Pure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any

from toolkit._present.messages import shorten
from toolkit._present.text import visible
from toolkit.errors import InputError
from toolkit.move import ModuleAbi
from toolkit.wire import SimulationRequest, ViewFunction

__all__ = [
    "check_abis",
    "check_count",
    "check_encoding",
    "check_limit",
    "check_text",
    "listed_keys",
    "listed_requests",
    "named_calls",
]

_MAX_ARGUMENT = 80
"""Characters of an argument in the name of a call; an address has 66."""


def check_encoding(encoding: object) -> None:
    """Raise InputError unless it is an encoding."""
    if not isinstance(encoding, str) or encoding not in {"json", "bcs"}:
        raise InputError(f"encoding must be 'json' or 'bcs', got {encoding!r:.80}")


def check_count(name: str, value: Any, maximum: int) -> int:
    """Return a whole number from 1 to `maximum` as an int; raise InputError for anything else."""
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= maximum:
        raise InputError(f"{name} must be a whole number from 1 to {maximum:,}, got {value!r:.80}")
    return int(value)


def check_limit(name: str, value: Any, maximum: float, unit: str) -> float:
    """Return a number above 0 and up to `maximum` as a float; raise InputError for anything else."""
    number: Any = None if isinstance(value, bool) or not isinstance(value, Real) else value
    if number is None or not 0 < number <= maximum:  # false for nan too
        raise InputError(f"{name} must be a number above 0 and up to {maximum:,.0f} {unit}, got {value!r:.80}")
    return float(number)


def check_text(name: str, value: object) -> None:
    """Raise InputError unless it is text or None; the message does not show the value, which may be a secret."""
    if value is not None and not isinstance(value, str):
        raise InputError(f"{name} must be a str, got {type(value).__name__}")


def check_abis(abis: Any) -> dict[tuple[str, str], ModuleAbi]:
    """Return ABIs by (address, module name); raise InputError if they are not a mapping of that kind."""
    if abis is None:
        return {}
    if not isinstance(abis, Mapping):
        raise InputError(f"abis must be a mapping of (address, module name) to ModuleAbi, got {type(abis).__name__}")
    for key, abi in abis.items():
        if not isinstance(key, tuple) or [type(part) for part in key] != [str, str]:
            raise InputError(f"abis: expected (address, module name) as a key, two str, got {key!r:.80}")
        if not isinstance(abi, ModuleAbi):
            raise InputError(
                f"abis[{key!r:.80}] must be a ModuleAbi, got {type(abi).__name__}; "
                "toolkit.move.decode_module_abi reads one from a node's answer"
            )
    return dict(abis)


def named_calls(calls: Any) -> dict[str, ViewFunction]:
    """Return view calls by name: the caller's, or the function's, with its arguments if it is called several times."""
    if isinstance(calls, str | ViewFunction):
        call = _view("calls", calls)
        return {call.function: call}
    named: dict[str, ViewFunction] = {}
    if isinstance(calls, Mapping):
        for name, call in calls.items():
            if not isinstance(name, str):
                raise InputError(
                    f"fetch_views: the name of a call must be a str, got {name!r:.80}; use {str(name)!r:.80}"
                )
            named[name] = _view(f"call {name!r:.80}", call)
    else:
        if isinstance(calls, bytes) or not isinstance(calls, Iterable):
            _view("calls", calls)
        listed = [_view(f"call {place}", given) for place, given in enumerate(calls)]
        often = Counter(call.function for call in listed)
        for place, call in enumerate(listed):
            name = call.function if often[call.function] == 1 else _with_arguments(call)
            named[name if name not in named else f"{name} #{place}"] = call
    if not named:
        raise InputError("fetch_views needs at least one call")
    return named


def _with_arguments(call: ViewFunction) -> str:
    """Return a call as people write it; a long argument is cut."""
    types = f"<{', '.join(call.type_arguments)}>" if call.type_arguments else ""
    texts = [one if isinstance(one, str) else json.dumps(one, default=shorten) for one in call.arguments]
    return f"{call.function}{types}({', '.join(visible(text, _MAX_ARGUMENT) for text in texts)})"


def listed_keys(keys: Any) -> list[Any]:
    """Return the keys of table items as a list; raise InputError for a single key."""
    if isinstance(keys, str | bytes | Mapping) or not isinstance(keys, Iterable):
        raise InputError(f"keys must be a list of keys, got {keys!r:.80}; write one key as [key]")
    return list(keys)


def listed_requests(requests: Any) -> list[SimulationRequest]:
    """Return simulations as a list; a single one is a list of one."""
    from toolkit.wire._models import WireModel

    if isinstance(requests, SimulationRequest):
        return [requests]
    if isinstance(requests, str | bytes | Mapping | WireModel) or not isinstance(requests, Iterable):
        raise InputError(f"requests must be a list of toolkit.SimulationRequest, got {requests!r:.80}")
    listed = list(requests)
    for place, request in enumerate(listed):
        if not isinstance(request, SimulationRequest):
            raise InputError(
                f"request {place}: expected toolkit.SimulationRequest(payload, sender=...), "
                f"got {type(request).__name__}"
            )
    return listed


def _view(place: str, call: Any) -> ViewFunction:
    """Return a view call; a text is the function of a call without arguments."""
    if isinstance(call, str):
        try:
            return ViewFunction(call)
        except InputError as error:
            raise InputError(f"{place}: {error}") from None
    if not isinstance(call, ViewFunction):
        raise InputError(
            f"{place}: expected '0x1::module::function' or toolkit.ViewFunction('0x1::module::function', [...]), "
            f"got {call!r:.80}"
        )
    return call
