"""A node over a recorded scenario whose state is whole: it carries on from step to step, and has every module."""

from __future__ import annotations

from typing import Any

from tests.conformance import recorded_executions as recorded
from tests.conformance.state_node import Sent, StateNode, access_key, text
from tests.conformance.test_recorded_replays import sent_of


class WholeState(dict[bytes, Any]):
    """A state in which a missing key means that the value does not exist, not that it is unknown."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: bytes) -> None:
        return None


def modules() -> dict[bytes, Any]:
    """Return every recorded module of the framework and of the packages that all scenarios use."""
    found = {}
    for package in recorded.lines("packages"):
        if package["package"] in {"framework", "ops", "probe", "apps", "edge"}:
            for address, name, _, code in package["modules"]:
                where = int(address, 16).to_bytes(32, "big")
                found[access_key(where, b"\0" + where + text(name))] = (bytes.fromhex(code), None)
    return found


def scenario(name: str, last_step: int = 1_000) -> list[Sent]:
    """Return the committed transactions of a scenario up to a step, each with the whole state before it."""
    sent, written, first = [], set(), WholeState(modules())
    records = [one for one in recorded.lines("scenarios") if one.get("scenario") == name and one["step"] <= last_step]
    chosen = [one for record in records if (one := sent_of(record)) is not None]
    for one in chosen:
        first |= {key: value for key, value in one.state.items() if key not in written}
        written |= {key for key, *_ in one.writes}
    now = first
    for one in chosen:
        now = WholeState(now | one.state)
        one.state = now
        sent.append(one)
        now = WholeState(now)
        for key, op, value, metadata in one.writes:
            now[key] = None if op == "delete" else (value, metadata)
    return sent


def node_of(sent: list[Sent], **options: Any) -> StateNode:
    """Return a node whose last block has the state after the last transaction."""
    return StateNode(sent=sent, **options)


def package_of(name: str) -> list[bytes]:
    """Return the modules of a recorded package."""
    [found] = [one for one in recorded.lines("packages") if one["package"] == name]
    return [bytes.fromhex(code) for *_, code in found["modules"]]
