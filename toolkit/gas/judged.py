"""Which calls of a run were judged for steps, and which were only observed; in words too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from toolkit.gas.observations import NO_ANSWER, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["COVERAGE_COLUMNS", "Coverage", "Unjudged", "coverage_of", "unjudged_words"]

COVERAGE_COLUMNS = ("node", "label", "source", "gas_used", "error_code")
"""Columns of the observation frame that `coverage_of` reads."""

_KEY = ["node", "label", "source"]
_MAX_NAMED = 7
_FEWEST = 2
"""Answered readings of a view between which a step can be seen."""
_WHY = {
    Source.COMMITTED: "Committed transactions were observed but not judged, because steps are found for views only",
    Source.SIMULATE: "Simulations are made at the head only, so they show no change",
    Source.VIEW: "Views that were answered at fewer than two ledger versions show no change",
}


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A call that was observed but not judged: no steps of it are looked for.

    Attributes
    ----------
    label, source, node : str
        As in the observation frame.
    readings : int
        Number of observations with gas.
    failures : int
        Number of observations without gas. Of committed transactions each stands for a range of versions that could
        not be read.
    min_gas, max_gas : int or None
        Gas units; None if no observation has any.
    """

    label: str
    source: str
    node: str
    readings: int
    failures: int
    min_gas: int | None
    max_gas: int | None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a run was judged.

    Attributes
    ----------
    judged : int
        Number of calls, per node, of which steps are looked for: views answered at two ledger versions or more.
    unjudged : tuple of Unjudged
        The other calls, in the order of the observations.
    """

    judged: int
    unjudged: tuple[Unjudged, ...]


def coverage_of(tables: Iterable[pa.Table]) -> Coverage:
    """Return what of a run was judged.

    Parameters
    ----------
    tables : iterable of pyarrow.Table
        Observations, with the columns `COVERAGE_COLUMNS` at least.

    Returns
    -------
    Coverage
    """
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for table in tables:
        silent = pc.is_in(table["error_code"].cast(pa.string()), pa.array(sorted(NO_ANSWER)))
        flagged = table.select([*_KEY, "gas_used"]).append_column("answered", pc.invert(silent).cast(pa.uint64()))
        figures = [
            ("gas_used", "min"),
            ("gas_used", "max"),
            ("gas_used", "count"),
            ("answered", "sum"),
            ([], "count_all"),
        ]
        for row in flagged.group_by(_KEY, use_threads=False).aggregate(figures).to_pylist():
            known = found.setdefault(
                tuple(row[name] for name in _KEY), {"count": 0, "priced": 0, "answered": 0, "gas": []}
            )
            known["count"] += row["count_all"]
            known["priced"] += row["gas_used_count"]
            known["answered"] += row["answered_sum"]
            known["gas"] += [gas for gas in (row["gas_used_min"], row["gas_used_max"]) if gas is not None]
    unjudged = [
        Unjudged(
            label,
            source,
            node,
            known["priced"],
            known["count"] - known["priced"],
            min(known["gas"], default=None),
            max(known["gas"], default=None),
        )
        for (node, label, source), known in found.items()
        if source != Source.VIEW or known["answered"] < _FEWEST
    ]
    return Coverage(len(found) - len(unjudged), tuple(unjudged))


def unjudged_words(unjudged: Sequence[Unjudged], name: Callable[[str], str]) -> list[str]:
    """Say what was observed but not judged, and why: a sentence per source.

    Parameters
    ----------
    unjudged : sequence of Unjudged
    name : callable
        Renders text from users and the chain harmlessly for where it is shown.

    Returns
    -------
    list of str
        Empty if everything was judged.
    """
    several = len({one.node for one in unjudged}) > 1
    sentences = []
    for source, why in _WHY.items():
        calls = [one for one in unjudged if one.source == source]
        told = [_call_words(one, name, several=several) for one in calls[:_MAX_NAMED]]
        if len(calls) > _MAX_NAMED:
            told.append(f"{len(calls) - _MAX_NAMED:,} more calls")
        if told:
            sentences.append(f"{why}: {'; '.join(told)}.")
    return sentences


def _call_words(one: Unjudged, name: Callable[[str], str], *, several: bool) -> str:
    count = f"{one.readings:,} of " if one.source == Source.COMMITTED else ""
    where = f" on {name(one.node)}" if several else ""
    if one.min_gas is None:
        gas = "no gas"
    elif one.min_gas == one.max_gas:
        gas = f"gas {one.min_gas:,}"
    else:
        gas = f"gas from {one.min_gas:,} to {one.max_gas:,}"
    if one.source == Source.COMMITTED and one.failures:
        gas += f"; {one.failures:,} range{'' if one.failures == 1 else 's'} of versions could not be read"
    return f"{count}{name(one.label)}{where} ({gas})"
