"""Provenance in a report: nodes, builds and versions of the observations, and the manifest of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.gas._series import is_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd


_SHOWN_ELSEWHERE = frozenset({"study", "complete", "format", "nodes", "fingerprints", "steps_checksum"})
MAX_MODULES = 200


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
    feature_versions: tuple[int | None, int | None]
    digests: tuple[str | None, str | None]


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


def provenance_of(observations: pd.DataFrame, manifest: Mapping[str, Any]) -> Provenance:
    """Collect the provenance of a run.

    Parameters
    ----------
    observations : DataFrame
        As `Run.observations`.
    manifest : mapping
        As `Run.manifest`. It is a file that anyone can edit: entries of another form are left out.

    Returns
    -------
    Provenance
    """
    versions, known = observations["ledger_version"], len(observations) > 0
    heads = observations["head_version"].dropna() if "head_version" in observations.columns else versions[:0]
    planned = [plan for plan in _list(manifest.get("nodes")) if isinstance(plan, dict)]
    return Provenance(
        nodes=tuple(_unique(observations, "node")),
        node_builds=tuple(_unique(observations, "node_build")),
        chain_ids=tuple(int(chain) for chain in _unique(observations, "chain_id")),
        toolkit_versions=tuple(_unique(observations, "toolkit_version")),
        sources=tuple(_unique(observations, "source")),
        model=is_model(observations),
        readings=len(observations),
        versions=len(versions.unique()),
        first_version=int(versions.min()) if known else None,
        last_version=int(versions.max()) if known else None,
        head_version=int(heads.max()) if len(heads) else None,
        schedules=tuple(found for plan in planned for found in _schedule(plan)),
        modules=tuple(found for plan in planned for found in _modules(plan))[:MAX_MODULES],
        manifest=(*(line for plan in planned for line in _plan_lines(plan)), *_flat(manifest)),
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


def _plan_lines(plan: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Return which part of the plan was clipped, and the transaction that identifies this history."""
    for note in _list(plan.get("notes")):
        yield "plan", str(note)
    anchor = _dict(plan.get("anchor"))
    if "transaction_hash" in anchor:
        yield f"hash of transaction {anchor.get('version')}", str(anchor["transaction_hash"])


def _schedule(plan: Mapping[str, Any]) -> Iterator[ScheduleAtEnds]:
    ends = [_dict(_dict(_dict(plan.get("provenance")).get("gas_schedule")).get(end)) for end in ("first", "last")]
    if any(ends):
        yield ScheduleAtEnds(
            node=str(plan.get("node")),
            versions=(_int(plan.get("first")) or 0, _int(plan.get("last")) or 0),
            feature_versions=(_int(ends[0].get("feature_version")), _int(ends[1].get("feature_version"))),
            digests=(_text(ends[0].get("digest")), _text(ends[1].get("digest"))),
        )


def _modules(plan: Mapping[str, Any]) -> Iterator[CodeAtEnds]:
    for module, ends in _dict(_dict(plan.get("provenance")).get("modules")).items():
        digests = _text(_dict(ends).get("first")), _text(_dict(ends).get("last"))
        yield CodeAtEnds(str(plan.get("node")), str(module), digests)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _int(value: Any) -> int | None:
    return value if type(value) is int else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _unique(frame: pd.DataFrame, column: str) -> list[str]:
    return sorted(map(str, frame[column].dropna().unique())) if column in frame.columns else []


def _flat(manifest: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Return the entries of the manifest as (name, text), without those that a report shows elsewhere."""
    entries: list[tuple[str, str]] = []
    for key, value in manifest.items():
        name = prefix + str(key).replace("_", " ")
        if (not prefix and key in _SHOWN_ELSEWHERE) or value is None:
            continue
        if isinstance(value, dict):
            entries += _flat(value, f"{name}: ")
        elif isinstance(value, (list, tuple)) and value and all(isinstance(one, dict) for one in value):
            for place, one in enumerate(value, 1):
                entries += _flat(one, f"{name} {place}: " if len(value) > 1 else f"{name}: ")
        elif isinstance(value, (list, tuple)):
            few = 6
            shown = ", ".join(map(str, value[:few]))
            entries.append((name, shown if len(value) <= few else f"{len(value):,}: {shown}, ... {value[-1]}"))
        else:
            entries.append((name, f"{value:,}" if type(value) is int else str(value)))
    return entries
