"""The facts that are evidence for causes: each is data, with the clause that states it in a sentence."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from toolkit._present.text import listed, plural, short_addresses, visible
from toolkit.gas._observations import Cause
from toolkit.gas._schedules import changed_ratios, schedule_words
from toolkit.move._ids import ModuleId, wire_address
from toolkit.vm import CodeChanges
from toolkit.wire._gas import feature_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolkit.client._abis import ModuleLookup
    from toolkit.move import ModuleAbi
    from toolkit.wire import GasSchedule


FEATURES = "0x1::features::Features"
SCHEDULE = "0x1::gas_schedule::GasScheduleV2"
STORAGE_GAS = "0x1::storage_gas::StorageGas"
# The resources of 0x1 that the virtual machine reads when it runs or charges transactions, by kind and name.
CONFIGURATION: Mapping[str, tuple[Cause, str]] = {
    SCHEDULE: (Cause.SCHEDULE, "the gas schedule"),
    STORAGE_GAS: (Cause.SCHEDULE, "the storage gas"),
    FEATURES: (Cause.CONFIG, "the feature flags"),
    "0x1::version::Version": (Cause.CONFIG, "the ledger's protocol version"),
    "0x1::execution_config::ExecutionConfig": (Cause.CONFIG, "the execution configuration"),
    "0x1::transaction_validation::TransactionValidation": (Cause.CONFIG, "the prologue and epilogue"),
}
# Things of one kind that a sentence names; more make it longer than anybody reads.
_MAX_NAMED = 3
_MAX_LISTED = 6
_MAX_NAME = 80  # characters, so that a sentence with several names is still read at a glance


class Fact(ABC):
    """Something that happened to what gas depends on."""

    __slots__ = ()

    @abstractmethod
    def clause(self) -> str:
        """Return what happened, as a clause that begins with its verb."""


Facts = tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class ScheduleChange(Fact):
    """Two gas schedules that differ.

    `rounded` is true if gas did not change by the ratio of the prices. `ends` is true if the schedules are those at the
    two ends of an interval.
    """

    before: GasSchedule
    after: GasSchedule
    rounded: bool = False
    ends: bool = False

    @property
    def price_ratio(self) -> float | None:
        """The ratio by which all changed prices changed; None for a single price, or if they have none in common."""
        ratios = list(changed_ratios(self.before, self.after).values())
        ratio = ratios[0] if len(ratios) > 1 and len(set(ratios)) == 1 else None
        return None if ratio is None else float(ratio)

    def clause(self) -> str:
        return f"changed {'its' if self.ends else 'the'} gas schedule: {schedule_words(self.before, self.after)}"


@dataclass(frozen=True, slots=True)
class FlagsChange(Fact):
    """The feature flags that were switched on and off."""

    on: frozenset[int]
    off: frozenset[int]

    def clause(self) -> str:
        return " and ".join(_flags_text(word, flags) for word, flags in (("on", self.on), ("off", self.off)) if flags)


@dataclass(frozen=True, slots=True)
class ResourceChange(Fact):
    """A changed resource of the on-chain configuration, with the fields that differ."""

    tag: str
    fields: tuple[str, ...] = ()

    def clause(self) -> str:
        return f"changed {_resource_text(self.tag)}{f' ({_names(self.fields)})' if self.fields else ''}"


class Role(Enum):
    """The relation of a module to the called module, with its wording."""

    CALLED = "the called module {module}"
    OWN = "module {module}, in the called module's own package {other}"
    NEEDED = "module {module}, a dependency of the called module {other}"
    NO_REGISTRY = "module {module}, possibly a dependency of {other}, which no package registry lists"
    NOT_ALL_READ = "module {module}, possibly a dependency of {other}, whose dependencies could not all be read"
    RUN = "module {module}, run by the call"
    UNRELATED = "module {module}, not a declared dependency of {other} but the only change found"
    NAMED = "module {module}"
    OF_NAMED = "module {module}, a dependency of {other}"


class RelatedModule(NamedTuple):
    """A module and its relation to the called module; `other` is the other module or package in that relation."""

    id: ModuleId
    role: Role
    other: str = ""

    def words(self) -> str:
        """Return the module and its relation in words."""
        return self.role.value.format(module=self.id.wire, other=visible(self.other, 200))


@dataclass(frozen=True, slots=True)
class ModuleChange(Fact):
    """A module whose code differs.

    `code` is None if the node does not serve bytecode. `ran` has the names of the functions of the module that the call
    runs; None if they are not known.
    """

    module: RelatedModule
    before: ModuleLookup
    after: ModuleLookup
    code: CodeChanges | None = None
    ran: frozenset[str] | None = None

    @property
    def ran_changes(self) -> CodeChanges | None:
        """The functions that differ and that the call runs; None if they are not known, or there are none."""
        if self.code is None or self.ran is None:
            return None
        found = CodeChanges(*(tuple(name for name in names if name in self.ran) for names in self.code))
        return found if any(found) else None

    def clause(self) -> str:
        if self.after.digest is None:
            return f"deleted {self.module.words()}"
        if self.before.digest is None:
            functions = "functions unknown"
            if self.after.abi is not None:
                names = sorted(function.name for function in self.after.abi.exposed_functions)
                functions = f"with {_names(names)}" if names else "without public functions"
            return f"published {self.module.words()} ({functions})"
        return f"upgraded {self.module.words()} ({self._differences()})"

    def _differences(self) -> str:
        if (ran := self.ran_changes) is not None:
            return f"{_code_text(ran)}, which the call runs"
        text = _functions_text(self.before.abi, self.after.abi) if self.code is None else _code_text(self.code)
        if self.code is None and self.before.abi is None and self.after.abi is None:
            return text  # that the functions are unknown says all
        if self.module.role in {Role.NAMED, Role.OF_NAMED}:  # of a timeline, not of a call
            return text
        if self.code is None or self.ran is None:
            return f"{text}; not known which of these the call runs"
        return f"{text}; the call runs none of these" if any(self.code) else text


@dataclass(frozen=True, slots=True)
class MoreModules(Fact):
    """The number of further modules that were written."""

    count: int

    def clause(self) -> str:
        return f"wrote {plural(self.count, 'more module')}"


@dataclass(frozen=True, slots=True)
class PackageUpgrade(Fact):
    """The upgrade numbers of a package at both ends of an interval; None if it does not exist there."""

    address: str
    name: str
    before: int | None
    after: int | None
    own: bool

    def clause(self) -> str:
        whose = "the called module's own package" if self.own else "a dependency"
        name = f"{whose}, {visible(self.name, 40)} ({wire_address(self.address)})"
        if self.before is None or self.after is None:
            return f"{'deleted' if self.after is None else 'published'} {name}"
        count = self.after - self.before
        return f"upgraded {name}, {({1: 'once', 2: 'twice'}).get(count, f'{count:,} times')}"


@dataclass(frozen=True, slots=True)
class NotComparable(Fact):
    """Something written whose change could not be determined; `why` is empty if the node does not offer modules."""

    what: str | RelatedModule
    why: str

    def clause(self) -> str:
        what = _resource_text(self.what) if isinstance(self.what, str) else self.what.words()
        return f"wrote {what} (what changed is not known: {self.why or 'the node does not offer modules'})"


@dataclass(frozen=True, slots=True)
class WrittenState:
    """Written resources of one type, items of one table, or a change of an unknown kind.

    Attributes
    ----------
    deleted : bool
    resource : str or None
        Type of the resources.
    table : str or None
        The field that contains the table, or the table's handle.
    key : str
        Key of a single item, or the name of the unknown kind of change.
    addresses : tuple of str
        Accounts that store the resources.
    count : int
    """

    deleted: bool
    resource: str | None = None
    table: str | None = None
    key: str = ""
    addresses: tuple[str, ...] = ()
    count: int = 1

    def words(self) -> str:
        """Return what was written: resources with their accounts, or items with their table."""
        if self.resource is not None:
            whose = self.addresses[0] if len(self.addresses) == 1 else f"{len(self.addresses)} accounts"
            return visible(short_addresses(f"{self.resource} of {whose}"), 200)
        if self.table is None:
            return f"a change of an unknown kind, {visible(self.key, 40)}"
        what = f"item {self.key}" if self.count == 1 else f"{self.count} items"
        return f"{what} of {visible(short_addresses(self.table), 200)}"


@dataclass(frozen=True, slots=True)
class StateChange(Fact):
    """State that a transaction wrote; `upkeep` is true if every transaction or block writes it."""

    written: tuple[WrittenState, ...]
    upkeep: bool = False

    def clause(self) -> str:
        texts = []
        for verb, deleted in (("wrote", False), ("deleted", True)):
            named = [one.words() for one in self.written if one.deleted is deleted]
            if named:
                texts.append(f"{verb} {listed(named, _MAX_NAMED)}")
        always = "; every transaction or block writes these, and nothing else was written" if self.upkeep else ""
        return " and ".join(texts) + always


def facts_text(facts: Iterable[Fact]) -> str:
    """Describe what happened."""
    return " and ".join(fact.clause() for fact in facts)


def schedule_change(facts: Iterable[Fact]) -> ScheduleChange | None:
    """Return the change of the gas schedule among facts, if there is one."""
    return next((fact for fact in facts if isinstance(fact, ScheduleChange)), None)


def _resource_text(tag: str) -> str:
    return CONFIGURATION[SCHEDULE][1] if tag == SCHEDULE else f"the configuration {short_addresses(tag)}"


def _flags_text(word: str, flags: frozenset[int]) -> str:
    names = [f"{number} {feature_name(number) or '(unknown flag)'}" for number in sorted(flags)]
    return f"switched {word} feature flag{'s' if len(names) > 1 else ''} {_names(names)}"


def _functions_text(before: ModuleAbi | None, after: ModuleAbi | None) -> str:
    """Return which functions of a module were added, removed, or changed in their signature."""
    old, new = ({f.name: f for f in (abi.exposed_functions if abi else ())} for abi in (before, after))
    if not old and not new:
        return "functions unknown"
    differing = {
        "added": sorted(new.keys() - old.keys()),
        "removed": sorted(old.keys() - new.keys()),
        "changed": sorted(name for name in old.keys() & new.keys() if old[name] != new[name]),
    }
    texts = [f"{word} {_names(names)}" for word, names in differing.items() if names]
    return "; ".join(texts) or "same functions, different code"


def _code_text(code: CodeChanges) -> str:
    """Return which functions of a module were added or removed, and of which the bytecode changed."""
    differing = {"added": code.added, "removed": code.removed, "changed": code.changed}
    texts = [f"{word} {_names(sorted(names))}" for word, names in differing.items() if names]
    return "; ".join(texts) or "the bytecode of all functions is the same"


def _names(names: Iterable[str]) -> str:
    return listed((visible(name, _MAX_NAME) for name in names), _MAX_LISTED)
