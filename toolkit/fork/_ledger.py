"""The ledger of a fork: the state of a node at a version, and what was written on top of it, version by version."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from toolkit.errors import InputError, Unsupported
from toolkit.fork._abi import parsed_module
from toolkit.move import FunctionId
from toolkit.move._ids import address_to_bytes
from toolkit.vm._arguments import make_arguments
from toolkit.vm._bcs import struct_tag_bytes
from toolkit.vm._environment import Environment
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Unmetered
from toolkit.vm._interpreter import Machine
from toolkit.vm._loader import Loader
from toolkit.vm._metadata import GROUP_MEMBER
from toolkit.vm._schedule import Schedule
from toolkit.vm._state import Group, Overlay, Session, group_key, module_key, resource_key
from toolkit.vm._types import FRAMEWORK, ModuleId, Struct, parse, struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from toolkit.fork._state import NodeState
    from toolkit.vm._state import Read, StateValue

TIMESTAMP = resource_key(FRAMEWORK, struct("0x1::timestamp::CurrentTimeMicroseconds"))
GAS_SCHEDULE = resource_key(FRAMEWORK, struct("0x1::gas_schedule::GasScheduleV2"))
_CHAIN_ID = resource_key(FRAMEWORK, struct("0x1::chain_id::ChainId"))
_RECONFIGURATION = resource_key(FRAMEWORK, struct("0x1::reconfiguration::Configuration"))
_DEFAULT_PRICE = 100  # octas, if the schedule does not set a minimum
_DEFAULT_MAX_GAS = 2_000_000
_HEADERS = {"oldest_ledger_version": "ledger-oldest-version", "ledger_timestamp": "ledger-timestampusec"}


class ForkLedger:
    """Versions of a state: those up to the fork are the node's, each later one adds changes.

    Parameters
    ----------
    base : NodeState

    Attributes
    ----------
    version : int
        The head.
    """

    def __init__(self, base: NodeState) -> None:
        self.base, self.version = base, base.version
        self._history: dict[bytes, tuple[list[int], list[StateValue | None]]] = {}

    def at(self, version: int) -> Read:
        """Return the state at a version as a function of state keys.

        Raises
        ------
        InputError
            If the fork does not have the version.
        """
        if not self.base.version <= version <= self.version:
            span = f"{self.base.version:,} to {self.version:,}"
            raise InputError(f"version {version:,} is not on this fork, which has versions {span}; ask its node")

        def read(key: bytes) -> StateValue | None:
            versions, values = self._history.get(key, ((), ()))
            place = bisect_right(versions, version)
            return values[place - 1] if place else self.base(key)

        return read

    def commit(self, values: Mapping[bytes, StateValue | None]) -> None:
        """Add a version with changes."""
        self.version += 1
        for key, value in values.items():
            versions, held = self._history.setdefault(key, ([], []))
            versions.append(self.version)
            held.append(value)

    def value(self, key: bytes) -> bytes:
        """Return a value of the framework at the head.

        Raises
        ------
        Unsupported
            If the state does not have it.
        """
        found = self.at(self.version)(key)
        if found is None:
            raise Unsupported(f"a state without {key[34:].decode('utf-8', 'replace')!r}")
        return found[0]

    def place(self, address: str, kind: Struct, version: int) -> tuple[bytes, bytes | None]:
        """Return the state key of a resource, and its tag in the group if it is a member of one."""
        where = address_to_bytes(address)
        code = self.at(version)(module_key(kind.module))
        module = None if code is None else parsed_module(code[0], str(kind.module))
        member = None if module is None else module.attributes.of_struct(kind.name, GROUP_MEMBER)
        if member is None or not member.arguments:
            return resource_key(where, kind), None
        return group_key(where, parse(member.arguments[0])), struct_tag_bytes(kind)  # type: ignore[arg-type]

    def resource(self, address: str, kind: Any, version: int) -> bytes | None:
        """Return the BCS of a resource; None if it is absent."""
        key, tag = self.place(address, kind, version)
        found = self.at(version)(key)
        if found is None or tag is None:
            return None if found is None else found[0]
        return Group(found[0]).members.get(tag)

    # Facts about the head.

    def timestamp_us(self) -> int:
        """Return the time of the ledger in microseconds since 1970."""
        return int.from_bytes(self.value(TIMESTAMP)[:8], "little")

    @property
    def schedule(self) -> Schedule:
        """The gas schedule."""
        return Schedule.from_bcs(self.value(GAS_SCHEDULE))

    @property
    def price(self) -> int:
        """The lowest gas unit price that is accepted."""
        return self.schedule["txn.min_price_per_gas_unit"] or _DEFAULT_PRICE

    @property
    def max_gas(self) -> int:
        """The largest gas limit of a transaction."""
        return self.schedule["txn.maximum_number_of_gas_units"] or _DEFAULT_MAX_GAS

    @property
    def chain_id(self) -> int:
        """The chain id."""
        return self.value(_CHAIN_ID)[0]

    def facts(self) -> dict[str, Any]:
        """Return the description of the ledger as nodes answer it."""
        epoch = self.value(_RECONFIGURATION)[:8]
        return {
            "chain_id": self.chain_id,
            "ledger_version": str(self.version),
            "oldest_ledger_version": str(self.base.version),
            "ledger_timestamp": str(self.timestamp_us()),
            "epoch": str(int.from_bytes(epoch, "little")),
            "block_height": "0",
            "oldest_block_height": "0",
        }

    def headers(self) -> dict[str, str]:
        """Return the headers of a response."""
        return {
            f"x-aptos-{_HEADERS.get(name, name.replace('_', '-'))}": str(fact) for name, fact in self.facts().items()
        }


def call_framework(read: Read, function: str, arguments: Sequence[bytes]) -> dict[bytes, StateValue | None]:
    """Run a function without type arguments, whatever its visibility, and return what it writes.

    Raises
    ------
    InputError
        If the function does not exist or fails.
    """
    environment = Environment(read)
    loader = Loader(environment)
    salt = hashlib.sha3_256(function.encode() + b"".join(arguments)).digest()
    session = Session(Overlay(environment.base), salt)
    machine = Machine(loader, session, Unmetered(environment.schedule))
    name = FunctionId.parse(function)
    try:
        definition = loader.function(ModuleId(address_to_bytes(name.address), name.module), name.name)
        machine.run(loader.code(definition, ()), make_arguments(machine, definition.parameters, arguments))
        state = session.state
        state.apply(session.changes())
    except MoveError as error:
        raise InputError(f"{function} fails on this ledger: {error.status} {error.message or ''}".rstrip()) from None
    return {
        key: None if change.value is None else (change.value, change.metadata) for key, change in state.changes.items()
    }
