"""What a node really answers: about 20 requests before a study relies on it. Public gateways differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.client.display import facts_html
from toolkit.errors import NodeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client.node import Node

__all__ = ["Probe", "probe"]

CLOCK = "0x1::timestamp::now_microseconds"
"""A view of the framework without arguments: it answers at every version that can be read."""

_REPEATS = 3
_MOST_LOOKS = 10
"""Halvings spent on the oldest version; the answer is then within a thousandth of the range."""


@dataclass(frozen=True, slots=True)
class Probe:
    """What was found.

    Attributes
    ----------
    node : str
    chain_id : int
    head, claimed_oldest : int
        As the node's headers say.
    oldest_readable : int or None
        Lowest version at which a view was seen to answer; None where none did.
    oldest_is_exact : bool or None
        Whether the version before it was seen not to answer, or is not claimed; if not, versions up to a thousandth of
        the range below it may answer too. None where no view did.
    gas_header : bool
        Whether views tell their gas.
    gas_stable : bool or None
        Whether repeated reads at one version tell the same gas; None without the header.
    offers : dict of str to bool
        Companion reads by name.
    requests : int
        How many requests this took.
    """

    node: str
    chain_id: int
    head: int
    claimed_oldest: int
    oldest_readable: int | None
    gas_header: bool
    gas_stable: bool | None
    offers: dict[str, bool]
    requests: int = 0
    oldest_is_exact: bool | None = None

    def facts(self) -> dict[str, Any]:
        """Return what was found by name, for printing."""
        names = (
            "node",
            "chain_id",
            "head",
            "claimed_oldest",
            "oldest_readable",
            "oldest_is_exact",
            "gas_header",
            "gas_stable",
            "requests",
        )
        return {name: getattr(self, name) for name in names} | {
            "offers": [name for name, there in self.offers.items() if there],
            "does_not_offer": [name for name, there in self.offers.items() if not there],
        }

    def _repr_html_(self) -> str:
        facts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.facts().items()}
        return facts_html(f"probe of {self.node}", [(name, value) for name, value in facts.items() if value != ""])


def probe(node: Node) -> Probe:
    """Probe a node; see `Node.probe`."""

    def answers(ask: Callable[[], Any]) -> Any:
        """Return what came, None where the node refused."""
        try:
            return ask()
        except NodeError:
            return None

    ledger = node.ledger()
    seen = [answers(lambda: node.view(CLOCK, ledger_version=ledger.version)) for _ in range(_REPEATS)]
    gas = [result.gas_used if result else None for result in seen]
    found = _oldest(node, answers, ledger.oldest_version, ledger.version) if seen[0] else (None, None)
    offers = {name: answers(ask) is not None for name, ask in _companions(node, ledger.version).items()}
    known = None not in gas
    return Probe(
        node=node.name,
        chain_id=ledger.chain_id,
        head=ledger.version,
        claimed_oldest=ledger.oldest_version,
        oldest_readable=found[0],
        oldest_is_exact=found[1],
        gas_header=known,
        gas_stable=len(set(gas)) == 1 if known else None,
        offers=offers,
    )


def _oldest(node: Node, answers: Callable[[Callable[[], Any]], Any], claimed: int, head: int) -> tuple[int, bool]:
    """Halve between the claimed oldest version, if it does not answer, and the head, which does; tell if exact."""

    def readable(version: int) -> bool:
        return answers(lambda: node.view(CLOCK, ledger_version=version)) is not None

    if readable(claimed):
        return claimed, True
    low, high = claimed, head
    for _ in range(_MOST_LOOKS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (low, middle) if readable(middle) else (middle, high)
    return high, high - low <= 1


def _companions(node: Node, head: int) -> dict[str, Callable[[], Any]]:
    return {
        "module": lambda: node.module("0x1", "timestamp", ledger_version=head),
        "resource": lambda: node.resource("0x1", "0x1::timestamp::CurrentTimeMicroseconds", ledger_version=head),
        "account": lambda: node.account("0x1"),
        "block by version": lambda: node.block(head),
        "transaction by version": lambda: node.transaction(head),
        "transactions by page": lambda: node.transactions(head, 1),
        "gas price estimate": node.gas_price,
    }
