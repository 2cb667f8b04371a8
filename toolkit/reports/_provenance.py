"""Provenance in a report: nodes, builds and versions of the observations, and the manifest of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from toolkit.gas._series import is_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolkit.gas.runs._manifest import Manifest, NodeRun


MAX_MODULES = 200  # modules in the table of code; a study calls a few


@dataclass(frozen=True)
class ScheduleAtEnds:
    """The gas schedule of the ledger of one node at the first and the last version of the run.

    Attributes
    ----------
    node : str
    versions : tuple of int
        First and last ledger version.
    feature_versions : tuple of int or None
        Gas feature versions; None if not reported.
    digests : tuple of str or None
        Of all parameters and their values.
    """

    node: str
    versions: tuple[int, int]
    feature_versions: tuple[int | None, ...]
    digests: tuple[str | None, ...]


@dataclass(frozen=True)
class CodeAtEnds:
    """A called module at the first and the last version of the run.

    Attributes
    ----------
    node, module : str
    digests : tuple of str or None
        Of its bytecode and ABI; None if the module did not exist or was not reported.
    """

    node: str
    module: str
    digests: tuple[str | None, str | None]


@dataclass(frozen=True)
class Provenance:
    """Origin of the observations, and entries of the manifest of the run."""

    nodes: tuple[str, ...]
    node_builds: tuple[str, ...]
    chain_ids: tuple[int, ...]
    toolkit_versions: tuple[str, ...]
    sources: tuple[str, ...]
    model: bool
    readings: int
    versions: int
    first_version: int | None
    last_version: int | None
    head_version: int | None
    schedules: tuple[ScheduleAtEnds, ...]
    modules: tuple[CodeAtEnds, ...]
    manifest: tuple[tuple[str, str], ...]


def provenance_of(observations: pd.DataFrame, record: Manifest, rows_digest: str | None) -> Provenance:
    """Collect the provenance of a run.

    Parameters
    ----------
    observations : DataFrame
        As `Run.observations`.
    record : Manifest
        As `Run.record`.
    rows_digest : str or None
        What is shown as the digest of the rows.

    Returns
    -------
    Provenance
    """
    versions, heads = observations["ledger_version"], observations["head_version"]
    return Provenance(
        nodes=tuple(_unique(observations, "node")),
        node_builds=tuple(_unique(observations, "node_build")),
        chain_ids=tuple(int(chain) for chain in _unique(observations, "chain_id")),
        toolkit_versions=tuple(_unique(observations, "toolkit_version")),
        sources=tuple(_unique(observations, "source")),
        model=is_model(observations),
        readings=len(observations),
        versions=len(versions.unique()),
        first_version=_known(versions.min()),
        last_version=_known(versions.max()),
        head_version=_known(heads.max()),
        schedules=tuple(found for plan in record.nodes for found in _schedule(plan)),
        modules=tuple(found for plan in record.nodes for found in _modules(plan))[:MAX_MODULES],
        manifest=tuple(_about(record, rows_digest)),
    )


def schedule_text(schedule: ScheduleAtEnds) -> str:
    """Return the gas schedule at the first and the last version of a run."""
    one, two = (
        f"feature version {'not reported' if feature is None else feature}, digest {digest_text(digest)}"
        for feature, digest in zip(schedule.feature_versions, schedule.digests, strict=True)
    )
    first, last = schedule.versions
    return f"{one}, at {first} and at {last}" if one == two else f"at {first} {one}; at {last} {two}"


def digest_text(digest: str | None) -> str:
    """Return a digest, or words if there is none."""
    return "not there, or not reported" if digest is None else digest


def _schedule(plan: NodeRun) -> Iterator[ScheduleAtEnds]:
    found = plan.provenance.gas_schedule if plan.provenance else None
    if found and (found.first or found.last):
        ends = (found.first, found.last)
        yield ScheduleAtEnds(
            node=plan.node,
            versions=(plan.first, plan.last),
            feature_versions=tuple(one.feature_version if one else None for one in ends),
            digests=tuple(one.digest if one else None for one in ends),
        )


def _modules(plan: NodeRun) -> Iterator[CodeAtEnds]:
    for module, ends in plan.provenance.modules.items() if plan.provenance else ():
        yield CodeAtEnds(plan.node, module, (ends.first, ends.last))


def _known(version: Any) -> int | None:
    return None if pd.isna(version) else int(version)


def _unique(frame: pd.DataFrame, column: str) -> list[str]:
    return sorted(map(str, frame[column].dropna().unique()))


def _about(record: Manifest, rows_digest: str | None) -> Iterator[tuple[str, str]]:
    """Return what was clipped of the plan, and what identifies the history and the run; ``run.json`` has more."""
    for plan in record.nodes:
        yield from (("plan", note) for note in plan.notes)
        if plan.anchor:
            yield f"hash of transaction {plan.anchor.version}", plan.anchor.transaction_hash
    yield "study digest", record.study_digest
    if rows_digest:
        yield "rows digest", rows_digest
    if record.started_at and record.finished_at:
        yield "read", f"{record.started_at:%Y-%m-%d %H:%M} to {record.finished_at:%Y-%m-%d %H:%M} UTC"
