"""Resources that end in a resource group.

A change of a group lists the members that remain, and a deleted group is a single change. The members that existed
before but are missing from the list have ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from toolkit.client._abis import bytecode_of
from toolkit.client._accounts import account_resources
from toolkit.client._warnings import warn_caller
from toolkit.errors import ToolkitError
from toolkit.move import parse_type_tag
from toolkit.move._module_metadata import resource_groups
from toolkit.wire._state_keys import resource_key_hash
from toolkit.wire._transactions import ChangeKind

if TYPE_CHECKING:
    from toolkit.client._reads import Reads

_Change = dict[str, Any]
_ListedAt = Callable[[str, int], "set[str] | ToolkitError"]  # by address and version
_DeclaredAt = Callable[[str, str, int], "Mapping[str, str]"]  # by address, name and version of a module


@dataclass(slots=True)
class _Group:
    """A resource group that a transaction writes or deletes.

    Attributes
    ----------
    change : dict
        Its first change; the only one if the group is deleted.
    changes : list of dict
        All changes of the transaction.
    members : set of str
        Types of the members that remain.
    earlier : set of str or None
        Types of the members before, if an earlier transaction shows them.
    ended : list of str or ToolkitError
        Types of the members that end, or why they are not known.
    """

    change: _Change
    changes: Sequence[_Change]
    members: set[str] = field(default_factory=set)
    earlier: set[str] | None = None
    ended: list[str] | ToolkitError = field(default_factory=list)

    @property
    def place(self) -> tuple[str, str]:
        return self.change["address"], self.change["state_key_hash"]

    @property
    def deleted(self) -> bool:
        return str(self.change["type"]) == ChangeKind.DELETE_RESOURCE

    @property
    def proved(self) -> bool:
        """Whether a deletion is certainly one of a group, not of a resource whose state key hash is not real."""
        address, key_hash = self.place
        return self.deleted and resource_key_hash(address, self.change["resource_type"], group=True) == key_hash

    @property
    def replaced(self) -> bool:
        """Whether deletions of members take the place of the change."""
        return self.deleted and not isinstance(self.ended, ToolkitError) and (self.proved or bool(self.ended))

    @property
    def version(self) -> int:
        return int(self.change["ledger_version"])

    def not_listed(self, before: Iterable[str]) -> list[str]:
        """Return the resources that existed at the address, and that the transaction neither writes nor deletes."""
        here = [one for one in self.changes if one["address"] == self.place[0] and one is not self.change]
        listed = self.members | {one["resource_type"] for one in here}
        return sorted(kind for kind in before if kind not in listed)


def with_ended_members(
    changes: Sequence[_Change], runs: Mapping[int, int] | None, node: Reads
) -> tuple[list[_Change], dict[int, ToolkitError]]:
    """Return state changes with a deletion of each resource that ends in a group, in place of deletions of groups.

    Parameters
    ----------
    changes : sequence of dict
        The state changes, by transaction.
    runs : mapping of int to int, or None
        The unbroken range of each version of committed transactions; None for simulations.
    node : Node

    Returns
    -------
    list of dict, dict of int to ToolkitError
        The changes, and why the members of a deleted group are not known, by the position of its deletion.

    Warns
    -----
    UserWarning
        If it is not known which members a group had that still exists.
    """
    groups = _groups(changes, runs)
    listed, declared = cache(partial(_listed, node)), cache(partial(_declared, node))
    for written in groups:
        written.ended = _ended(written, listed, declared, committed=runs is not None)
    by_first = {id(group.change): group for group in groups}
    rows: list[_Change] = []
    unknown: dict[int, ToolkitError] = {}
    shown: set[tuple[Any, ...]] = set()
    for change in changes:
        group = by_first.get(id(change))
        if group is None or not group.replaced:
            rows.append(change)
        if group is None:
            continue
        if isinstance(group.ended, ToolkitError):
            if group.proved:
                unknown[len(rows) - 1] = group.ended
            continue
        for kind in group.ended:
            key = change["request"], group.version, group.place[0], kind
            if key not in shown:  # two groups of one address
                shown.add(key)
                ended = {"type": str(ChangeKind.DELETE_RESOURCE), "resource_type": kind, "data": None}
                rows.append(change | ended)
    lost = [group.ended for group in groups if not group.deleted and isinstance(group.ended, ToolkitError)]
    if lost:
        warn_caller(
            f"diff: resources that ended in a resource group are not listed, because the members before could not be "
            f"read ({lost[0]})"
        )
    return rows, unknown


def _groups(changes: Sequence[_Change], runs: Mapping[int, int] | None) -> list[_Group]:
    """Return the groups that transactions write or delete, with the members that earlier transactions show."""
    found: list[_Group] = []
    latest: dict[tuple[str, str], _Group] = {}
    for _, some in groupby(changes, key=lambda one: (one["request"], one["ledger_version"])):
        transaction = list(some)
        own: dict[tuple[str, str], _Group] = {}
        for change in transaction:
            address, kind, key_hash = (change[name] for name in ("address", "resource_type", "state_key_hash"))
            if address is None or kind is None or not key_hash or key_hash == resource_key_hash(address, kind):
                continue
            group = own.setdefault((address, key_hash), _Group(change, transaction))
            if not group.deleted:
                group.members.add(kind)
        for place, group in own.items():
            earlier = latest.get(place)
            if runs is not None and earlier is not None and runs.get(earlier.version, -1) == runs.get(group.version):
                group.earlier = earlier.members
            latest[place] = group
        found += own.values()
    return found


def _ended(group: _Group, listed: _ListedAt, declared: _DeclaredAt, *, committed: bool) -> list[str] | ToolkitError:
    """Return the members that end, from lists of the resources at the address before, and after if committed."""
    if group.earlier is not None:
        return sorted(group.earlier - group.members)
    if committed and not group.version:
        return []
    try:
        missing = group.not_listed(_known(listed(group.place[0], group.version - committed)))
        if committed:
            remaining = _known(listed(group.place[0], group.version)) if missing else ()
            return [kind for kind in missing if kind not in remaining]
        return [kind for kind in missing if _belongs(kind, group, declared)]
    except ToolkitError as error:
        return error.with_traceback(None)


def _listed(node: Reads, address: str, version: int) -> set[str] | ToolkitError:
    """Return the types of the resources at an address and a version, or why they cannot be listed."""
    try:
        return {kind for kind, _ in account_resources(node, address, version)}
    except ToolkitError as error:
        return error.with_traceback(None)


def _known(found: set[str] | ToolkitError) -> set[str]:
    if isinstance(found, ToolkitError):
        raise found
    return found


def _declared(node: Reads, address: str, name: str, version: int) -> Mapping[str, str]:
    """Return the groups that a module declares for its structs in its metadata."""
    answer = node.module_answer(address, name, version)
    return {} if answer is None else resource_groups(bytecode_of(answer))


def _belongs(kind: str, group: _Group, declared: _DeclaredAt) -> bool:
    """Return whether a resource is a member of a group, according to its module."""
    if group.deleted and kind == group.change["resource_type"]:
        return True
    tag: Any = parse_type_tag(kind)
    its_group = declared(tag.address, tag.module, group.version).get(tag.name)
    if its_group is None:
        return False
    if group.deleted:
        return str(parse_type_tag(its_group)) == str(group.change["resource_type"])
    return resource_key_hash(group.place[0], its_group, group=True) == group.place[1]
