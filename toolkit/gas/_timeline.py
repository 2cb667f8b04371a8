"""Timelines: every change to the gas schedule, configuration and code in a range of versions, as a frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.client._fetch import checked_node, plan_versions
from toolkit.client._progress import progress_bar
from toolkit.client._reads import LedgerAnchor, LedgerGuard
from toolkit.client._versions import VersionPlan
from toolkit.client._warnings import warn_caller
from toolkit.errors import InputError
from toolkit.frames._columns import frame_of_rows, plain_rows
from toolkit.frames._schema import TIMELINE
from toolkit.gas._cause_sentences import not_seen_text, unread_text
from toolkit.gas._findings import Change, Timeline, Transaction
from toolkit.gas._observations import Cause, Part
from toolkit.gas.causes._changes import DEFAULT_INITIAL, find_timeline
from toolkit.gas.causes._evidence import Evidence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node


def timeline(
    node: Node,
    versions: str = "0:-1",
    *,
    modules: str | Sequence[str] = (),
    initial: int = DEFAULT_INITIAL,
    progress: bool = False,
) -> pd.DataFrame:
    """Find every change to the gas schedule, the configuration or the code of modules that could have affected gas.

    Parameters
    ----------
    node : Node
    versions : str, default "0:-1"
        A range, ``"a:b"``, ``"-1000:"``, or dates; both ends are included. A range that begins before the oldest
        version of the node is clipped.
    modules : str or sequence of str, default ()
        Modules, such as ``0x1::coin``, or functions. Their code is tracked, together with the code of all packages on
        which they depend at any version of the range.
    initial : int, default 17
        Number of evenly spaced versions at which the gas schedule and the configuration are first compared.
    progress : bool, default False
        Show a progress bar.

    Returns
    -------
    DataFrame, shape (changes, 13)
        One row per version and kind of change, sorted by version; the data dictionary describes the columns. ``attrs``
        contains ``requests`` (number of reads), ``unread`` (descriptions of what could not be read), ``not_seen`` (a
        sentence on the reverted changes that the search cannot find), the range with the times of both ends, and the
        modules.

    Raises
    ------
    InputError
        If `versions` is not a plain range or has no readable version, or `modules` contains a name that is not the id
        of a module or function.
    NodeError, NodeUnreachable
        If the node does not report the state of its ledger.
    LedgerChanged
        If the node starts serving another ledger.

    Warns
    -----
    UserWarning
        If the range is clipped, or something cannot be read, so that its changes are unknown.

    See Also
    --------
    toolkit.plots.gas_by_version : Draws the frame below a gas series, with ``timeline=frame``.

    Notes
    -----
    The comparison covers the resources of ``0x1`` that the virtual machine reads to run or charge a transaction:
    ``gas_schedule::GasScheduleV2``, ``storage_gas::StorageGas`` (prices of state access up to gas feature version 9;
    later versions do not use it), ``features::Features``, ``version::Version``, ``execution_config::ExecutionConfig``
    and ``transaction_validation::TransactionValidation``. It omits ``storage_gas::StorageGasConfig``, which takes
    effect only through the next ``StorageGas``, and the configuration of consensus, staking, randomness, governance,
    keys and fee collection, which determines who orders and signs transactions and who receives the fees, not what
    is charged.

    Code is tracked by the upgrade number in ``0x1::code::PackageRegistry``, which only increases, so an upgrade that is
    later reverted is still found. Schedule and configuration have no such number: a change that is reverted between two
    neighbouring versions of the first `initial` is missed. Code reached by dispatch at run time, such as the hooks of a
    dispatchable fungible asset, is not a dependency of the package: name its module in `modules`.

    Over n versions, a source with k changes takes about ``initial + k * log2(n / initial)`` reads, and a registry
    ``2 + k * log2(n)``. Each change takes one more read for its transaction; a code change takes up to 60 more for
    modules.

    Examples
    --------
    >>> import toolkit
    >>> frame = toolkit.timeline(toolkit.connect(), modules=["0xfa17::vault"])
    >>> frame["kind"].value_counts().to_dict()
    {'code': 3, 'schedule': 3, 'config': 1}
    """
    return timeline_frame(found_timeline(node, versions, modules=modules, initial=initial, progress=progress))


def found_timeline(
    node: Node,
    versions: str = "0:-1",
    *,
    modules: str | Sequence[str] = (),
    initial: int = DEFAULT_INITIAL,
    progress: bool = False,
) -> Timeline:
    """Like `timeline`, but return the record of which the frame is made."""
    node = checked_node(node)
    names = [modules] if isinstance(modules, str) else list(modules)
    if type(initial) is not int or initial < 2:  # noqa: PLR2004 - two ends make a range
        raise InputError(f"initial: expected a whole number of at least 2, got {initial!r:.80}")
    if type(versions) is not str or not VersionPlan.parse(versions).is_range:
        raise InputError(f"timeline takes a plain range such as '0:-1', got {versions!r:.80}")
    resolved, ledger = plan_versions(node, versions)
    first, last = resolved.versions[0], resolved.versions[-1]
    guard = LedgerGuard(node, LedgerAnchor.taken(node, last, ledger=ledger))
    oldest = node.oldest_readable(ledger)
    with progress_bar(0, "changes", show=progress) as bar:
        found = find_timeline(node, first, last, names, evidence=Evidence(node, bar), oldest=oldest, initial=initial)
    guard.check_at_end()
    if found.unread:
        unread = "; ".join(map(unread_text, found.unread))
        warn_caller(f"the timeline may lack changes, because not everything could be read: {unread}")
    return found


# timelines as frames --------------------------------------------------------------------------------------------------


_ABOUT = ("first", "last", "requests", "initial")


def timeline_frame(timeline: Timeline) -> pd.DataFrame:
    """Return the changes of a timeline as a frame; the other content of the timeline is in ``attrs``."""
    frame = frame_of_rows(TIMELINE, [_row(change) for change in timeline.changes])
    times = {"first_time": timeline.first_time, "last_time": timeline.last_time}
    frame.attrs |= {name: getattr(timeline, name) for name in _ABOUT} | {
        "modules": list(timeline.modules),
        "unread": [unread_text(one) for one in timeline.unread],
        "not_seen": not_seen_text(timeline.initial),
        **{name: None if time is None else time.isoformat() for name, time in times.items()},
    }
    return frame


def _row(change: Change) -> dict[str, Any]:
    where = {"ledger_version": change.ledger_version, "version_before": change.start, "exact": change.exact}
    what = {"kind": change.kind.value, "what": change.what, "price_ratio": change.price_ratio}
    names = {"modules": sorted(change.modules), "affects": sorted(change.affects)}
    parts = {"parts": [part.value for part in Part if part in change.parts]}
    return {**where, **what, **names, **parts, **(change.transaction.columns() if change.transaction else {})}


def changes_of(frame: pd.DataFrame) -> tuple[Change, ...]:
    """Return the changes in a frame that `timeline_frame` returned."""
    return tuple(map(_change, plain_rows(frame, TIMELINE.names)))


def _change(row: Mapping[str, Any]) -> Change:
    facts = {name: row[f"transaction_{name}"] for name in ("hash", "type", "sender", "function")}
    return Change(
        ledger_version=row["ledger_version"],
        kind=Cause(row["kind"]),
        what=row["what"],
        parts=frozenset(map(Part, row["parts"])),
        modules=frozenset(row["modules"]),
        affects=frozenset(row["affects"]),
        version_before=None if row["exact"] else row["version_before"],
        price_ratio=row["price_ratio"],
        transaction=Transaction(row["ledger_version"], **facts, time=row["time"]) if facts["type"] else None,
    )
