"""What a node answers, found out with a few requests."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from toolkit._present.notebook import facts_html
from toolkit._present.text import visible
from toolkit.errors import NodeError
from toolkit.wire import ViewFunction

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.client._reads import Reads

# A view of the framework without arguments: it answers at every version that can be read.
_VIEW = ViewFunction("0x1::timestamp::now_microseconds")
_REPEATS = 3  # enough to see that gas varies
# Bisection steps for the oldest version; the answer is then within a thousandth of the range.
_MAX_HALVINGS = 10


@dataclass(frozen=True, slots=True, repr=False)
class Probe:
    """What a node supports, as found by `Node.probe`.

    Attributes
    ----------
    node : str
    chain_id : int
    head, claimed_oldest : int
        As reported by the node.
    oldest_readable : int or None
        Lowest version at which a view answered; None if none did.
    oldest_is_exact : bool or None
        True if the version before it did not answer, or is not claimed to be readable. If False, versions up to a
        thousandth of the range below it may answer too. None if no view answered.
    gas_header : bool
        Whether answers to views report the gas used.
    gas_stable : bool or None
        Whether repeated reads at one version report the same gas; None without the header.
    offers : dict of str to bool
        Whether each further read, besides the three operations, is offered, by name.
    requests : int
        Number of requests that were sent.

    Examples
    --------
    >>> import toolkit
    >>> probe = toolkit.connect().probe()
    >>> probe.oldest_readable, probe.gas_header, probe.offers["module"]
    (0, True, True)
    """

    node: str
    chain_id: int
    head: int
    claimed_oldest: int
    oldest_readable: int | None
    oldest_is_exact: bool | None = field(default=None, kw_only=True)
    gas_header: bool
    gas_stable: bool | None
    offers: dict[str, bool]
    requests: int = 0

    def facts(self) -> dict[str, Any]:
        """Return the attributes by name, with the reads as two lists, ``offers`` and ``does_not_offer``."""
        return {one.name: getattr(self, one.name) for one in fields(self) if one.name != "offers"} | {
            "offers": [name for name, there in self.offers.items() if there],
            "does_not_offer": [name for name, there in self.offers.items() if not there],
        }

    def __repr__(self) -> str:
        there = [name for name, offered in self.offers.items() if offered]
        oldest = "no version" if self.oldest_readable is None else f"{self.oldest_readable} to {self.head}"
        gas = "no gas" if not self.gas_header else "stable gas" if self.gas_stable else "gas that varies"
        text = f"chain {self.chain_id}, views answer at {oldest} with {gas}, {len(there)} of {len(self.offers)} reads"
        return visible(f"<Probe of {self.node}: {text}>", 300)

    def _repr_html_(self) -> str:
        facts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in self.facts().items()}
        return facts_html(f"probe of {self.node}", [(name, value) for name, value in facts.items() if value != ""])


def probe(node: Reads) -> Probe:
    """Probe a node; see `Node.probe`."""

    def answers(ask: Callable[[], Any]) -> Any:
        """Return the answer, None if the node refuses."""
        try:
            return ask()
        except NodeError:
            return None

    ledger = node.ledger()
    seen = [answers(lambda: node.run_view(_VIEW, ledger.version)) for _ in range(_REPEATS)]
    gas = [result.gas_used if result else None for result in seen]
    found = _oldest(node, answers, ledger.oldest_version, ledger.version) if seen[0] else (None, None)
    offers = {name: answers(ask) is not None for name, ask in _further_reads(node, ledger.version).items()}
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


def _oldest(node: Reads, answers: Callable[[Callable[[], Any]], Any], claimed: int, head: int) -> tuple[int, bool]:
    """Return the oldest readable version and whether it is exact, by bisection between the claimed one and the head."""

    def readable(version: int) -> bool:
        return answers(lambda: node.run_view(_VIEW, version)) is not None

    if readable(claimed):
        return claimed, True
    low, high = claimed, head
    for _ in range(_MAX_HALVINGS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        low, high = (low, middle) if readable(middle) else (middle, high)
    return high, high - low <= 1


def _further_reads(node: Reads, head: int) -> dict[str, Callable[[], Any]]:
    return {
        "node info": lambda: node.info().node_role or None,  # the role is not in the headers of POST operations
        "module": lambda: node.module("0x1", "timestamp", ledger_version=head),
        "resource": lambda: node.resource("0x1", "0x1::timestamp::CurrentTimeMicroseconds", ledger_version=head),
        "account": lambda: node.sequence_number("0x1"),
        "block by version": lambda: node.block(head),
        "transaction by version": lambda: node.transaction(head),
        "transactions by page": lambda: node.transactions(head, 1),
        "gas price estimate": node.gas_price,
    }
