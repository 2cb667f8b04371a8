"""The embedded ledger: versioned state, contracts written in Python, a gas model, a node over HTTP."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.embedded.contract import Event, Module, Resource, Struct, entry, public, view
    from toolkit.embedded.http.faults import Fault, Faults, parse_fault, parse_latency, parse_schedule
    from toolkit.embedded.http.node import Access, Limits
    from toolkit.embedded.http.server import Server, serve, start
    from toolkit.embedded.ledger import Ledger
    from toolkit.embedded.reader import Milestone

__all__ = [
    "Access",
    "Event",
    "Fault",
    "Faults",
    "Ledger",
    "Limits",
    "Milestone",
    "Module",
    "Resource",
    "Server",
    "Struct",
    "entry",
    "parse_fault",
    "parse_latency",
    "parse_schedule",
    "public",
    "serve",
    "start",
    "view",
]

_WHERE = {
    "Access": "http.node",
    "Event": "contract",
    "Fault": "http.faults",
    "Faults": "http.faults",
    "Ledger": "ledger",
    "Limits": "http.node",
    "Milestone": "reader",
    "Module": "contract",
    "Resource": "contract",
    "Server": "http.server",
    "Struct": "contract",
    "entry": "contract",
    "parse_fault": "http.faults",
    "parse_latency": "http.faults",
    "parse_schedule": "http.faults",
    "public": "contract",
    "serve": "http.server",
    "start": "http.server",
    "view": "contract",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a ledger does not import a web server."""
    if name == "types":  # the names of Move types; a module of its own
        return import_module("toolkit.embedded.types")
    try:
        module = import_module(f"toolkit.embedded.{_WHERE[name]}")
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(module, name)
