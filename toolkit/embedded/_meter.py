"""Gas schedules and the gas meter: a cost model over the parameters of the on-chain gas schedule.

This is a model, not a Move VM: contracts are Python, so instructions cannot be counted. Parameter names and values come
from public networks, and input, output and storage follow the rules of a real node. Execution is modelled: each
operation of a contract is charged its own parameter and, for the Move code around it, a number of basic blocks that is
calibrated on recordings of a real node. ``data/calibration.csv`` compares the charges of a real node and of the model.
Values below are in internal gas units unless they are in octas. One gas unit consists of
``txn.gas_unit_scaling_factor`` internal gas units (1,000,000). ``page(bytes)`` is a size rounded up to pages of 4,096
bytes.

Execution::

    transaction       txn.min_transaction_gas_units
                      + txn.intrinsic_gas_per_byte * (bytes - txn.large_transaction_cutoff), if positive
    module, once      txn.dependency_per_module + txn.dependency_per_byte * bytecode bytes; system modules are free
    basic block       2 * (instr.copy_loc.base + 40 * instr.copy_loc.per_abs_val_unit) + instr.lt + instr.br_false
                      + instr.move_loc.base + instr.ld_u64 + instr.add + instr.st_loc.base + instr.branch
    operation         3 blocks in a contract, 6 in the framework, whose Move code does more than its Python code
    call              operation + instr.call.base + instr.call.per_arg * arguments
    borrow, exists, move_to, move_from         operation + the instruction of that name
    table access      operation + table.<verb>_box.base + .per_byte_serialized * key bytes
    table item, first table.common.load.base_new + table.common.load.per_byte * page(value bytes)
    event             2 operations (3 with a handle) + aptos_framework.event.write_to_event_store.base
                      + .per_abstract_memory_unit * (bytes + 40 for each field and for the struct)
    loop, per turn    block + instr.add; for the elements of a vector also instr.imm_borrow_field
                      + instr.vec_imm_borrow.base + instr.read_ref.base + instr.copy_loc.base

Input and output::

    resource, first   txn.storage_io_per_state_slot_read + txn.storage_io_per_state_byte_read * page(bytes); the first
                      resource of a group is charged with the size of the whole group
    write             txn.storage_io_per_state_slot_write + txn.storage_io_per_state_byte_write * (key + value bytes)
    event             txn.storage_io_per_event_byte_write * (type and data bytes, 48 more with a handle)
    transaction       txn.storage_io_per_transaction_byte_write * bytes; a failed transaction pays this only if it
                      stores a nonce or creates its sender's account

Storage, in octas; the deposit of a value is the amount paid for it::

    new value         txn.storage_fee_per_state_slot + txn.storage_fee_per_state_byte * (key + value bytes)
    grown value       txn.storage_fee_per_state_byte * bytes added, but at most what raises its byte deposit to
                      txn.storage_fee_per_state_byte * (key + value bytes)
    shrunk value      nothing; the deposit remains
    deleted value     its deposit is refunded

These are the rules with refundable bytes, which public networks use since 2024: no bytes are free, and neither events
nor transactions pay for storage. A sender's first transaction also pays for the account resource that it creates.

A view is charged neither intrinsic gas nor writes. Each part is rounded up to gas units separately. The total is
rounded up once, from the internal sum, so the sum of the parts can exceed the total by one or two gas units. Storage
fees are converted to gas at the transaction's gas unit price: the same call uses fewer gas units at a higher price, and
storage is free at price 0. An execution that runs out of gas is charged its maximum. The remaining gas then counts as
execution or as input and output, depending on the charge that failed; if it was a storage fee, all storage counts as
execution.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit._present.messages import shorten
from toolkit.embedded._vm_status import VmError
from toolkit.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


PAGE_BYTES = 4_096
"""Page size in bytes; reads are charged for whole pages."""

# Abstract size of a number, an address or a struct, as stated by ``misc.abs_val.*``.
VALUE_UNITS = 40

# The instructions of ``while (i < n) { i = i + 1 }``, which represent any basic block of Move code.
_BLOCK = {
    "instr.copy_loc.base": 2,
    "instr.copy_loc.per_abs_val_unit": 2 * VALUE_UNITS,
    "instr.lt": 1,
    "instr.br_false": 1,
    "instr.move_loc.base": 1,
    "instr.ld_u64": 1,
    "instr.add": 1,
    "instr.st_loc.base": 1,
    "instr.branch": 1,
}

# Basic blocks of Move code around one operation: calls, loads and stores of locals, access to fields. The framework has
# more of them, because its Move code does more than its Python code.
CONTRACT_BLOCKS, FRAMEWORK_BLOCKS = 3, 6

# What reading a vector element adds to the cost of a loop iteration.
_ELEMENT = ("instr.imm_borrow_field", "instr.vec_imm_borrow.base", "instr.read_ref.base", "instr.copy_loc.base")


class Schedule:
    """The parameters of a gas schedule, by their on-chain names.

    Parameters
    ----------
    feature_version : int
        Gas feature version.
    entries : mapping of str to int
        Value of each parameter. Most are internal gas units; storage fees are octas, and limits have their own units.
    """

    __slots__ = ("block", "element", "entries", "feature_version", "scaling", "turn")

    def __init__(self, feature_version: int, entries: Mapping[str, int]) -> None:
        self.feature_version = feature_version
        self.entries = dict(entries)
        self.scaling = self.entries.get("txn.gas_unit_scaling_factor", 1_000_000)
        # Cost of a basic block, of a turn of a loop, and of reading an element in it.
        self.block = sum(self[name] * times for name, times in _BLOCK.items())
        self.turn = self.block + self["instr.add"]
        self.element = sum(self[name] for name in _ELEMENT)

    def __getitem__(self, name: str) -> int:
        """Return the value of a parameter; a parameter that the schedule does not contain is 0, as on chain."""
        return self.entries.get(name, 0)

    @classmethod
    def from_resource(cls, data: Mapping[str, Any]) -> Schedule:
        """Return the schedule in a decoded ``0x1::gas_schedule::GasScheduleV2`` resource."""
        return cls(data["feature_version"], {entry["key"]: entry["val"] for entry in data["entries"]})

    def to_resource(self) -> dict[str, Any]:
        """Return the ``0x1::gas_schedule::GasScheduleV2`` value, with parameters sorted by name."""
        entries = [{"key": name, "val": value} for name, value in sorted(self.entries.items())]
        return {"feature_version": self.feature_version, "entries": entries}


def whole_pages(size: int) -> int:
    """Return a size in bytes, rounded up to whole pages."""
    return -(-size // PAGE_BYTES) * PAGE_BYTES


def release_names() -> tuple[str, ...]:
    """Return the names of the releases with a known gas schedule, oldest first."""
    return tuple(_releases())


def released_schedule(release: str) -> Schedule:
    """Return the gas schedule that a release published.

    Parameters
    ----------
    release : str
        Name of the release, such as ``"v1.41.1"``; `release_names` lists them.

    Returns
    -------
    Schedule

    Raises
    ------
    InputError
        If the release is not known.
    """
    try:
        return _releases()[release]
    except KeyError:
        known = ", ".join(release_names())
        raise InputError(f"unknown release {shorten(release, 40)}: expected one of {known}") from None


@cache
def _releases() -> dict[str, Schedule]:
    """Return the schedule of every known release, built from the table of changes."""
    text = (files("toolkit.embedded") / "data" / "gas_schedules.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    schedules: dict[str, Schedule] = {}
    entries: dict[str, int] = {}
    for release, changes in groupby(rows, itemgetter("release")):
        for row in changes:
            if row["value"]:
                entries[row["parameter"]] = int(row["value"])
            else:  # removed; the only row of a release that changed no parameter names none
                entries.pop(row["parameter"], None)
        schedules[release] = Schedule(int(row["feature_version"]), entries)
    return schedules


class Charges(NamedTuple):
    """The cost of an execution: the fields of a FeeStatement, in gas units and octas."""

    total_charge_gas_units: int
    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


FREE = Charges(0, 0, 0, 0, 0)
"""The charges of an execution that costs nothing."""


def call_in_row(position: int) -> str:
    """Return the name under which profiles have a call of a script that makes calls in a row."""
    return f"call {position}"


class Meter:
    """Adds up charges and ends the execution when its gas is used up.

    Parameters
    ----------
    schedule : Schedule
        The gas schedule at the version of the execution.
    max_gas_units : int
        Maximum number of gas units that the execution may use.
    gas_unit_price : int, default 0
        Octas per gas unit, used to convert storage fees to gas.
    """

    __slots__ = ("_balance", "_entries", "_execution", "_io", "_max_gas", "_price", "refund", "schedule", "storage_fee")

    def __init__(self, schedule: Schedule, *, max_gas_units: int, gas_unit_price: int = 0) -> None:
        self.schedule = schedule
        self._entries = schedule.entries
        self._price = gas_unit_price
        self._max_gas = self._balance = max_gas_units * schedule.scaling
        self._execution = 0
        self._io = 0
        self.storage_fee = 0
        self.refund = 0

    def charge(self, parameter: str, times: int = 1) -> None:
        """Charge execution gas: the value of a parameter, multiplied by `times`."""
        self._spend(self._entries.get(parameter, 0) * times, parameter)

    def charge_io(self, parameter: str, times: int = 1, item: object = None) -> None:  # noqa: ARG002 - for profiles
        """Charge input and output gas for a state key or an event: the value of a parameter, multiplied by `times`."""
        amount = self._entries.get(parameter, 0) * times
        if amount > self._balance:
            self._io += self._balance
            self._balance = 0
            raise VmError("OUT_OF_GAS")
        self._io += amount
        self._balance -= amount

    def charge_code(self, blocks: int) -> None:
        """Charge execution gas for basic blocks of Move code that Python does not run."""
        self._spend(self.schedule.block * blocks, "basic blocks")

    def charge_turn(self, *, element: bool) -> None:
        """Charge for a loop iteration and, if `element` is true, for reading a vector element."""
        schedule = self.schedule
        self._spend(schedule.turn + schedule.element if element else schedule.turn, "loop turns")

    def charge_read(self, loaded: int, item: object = None) -> None:
        """Charge for reading a state slot, and for its bytes in whole pages."""
        self.charge_io("txn.storage_io_per_state_slot_read", 1, item)
        self.charge_io("txn.storage_io_per_state_byte_read", whole_pages(loaded), item)

    def linked(self, module: Any) -> None:
        """Do nothing; `ProfilingMeter` records here the functions of a module that run."""

    def named(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:  # noqa: ARG002 - for profiles
        """Return a function unchanged; `ProfilingMeter` returns one that is recorded under a name while it runs."""
        return function

    def written(self, item: object) -> None:
        """Do nothing; `ProfilingMeter` records here that a state key is written or an event is emitted."""

    def charge_storage(self, octas: int, item: object = None) -> None:  # noqa: ARG002 - for profiles
        """Charge a storage fee, in octas, converted to gas at the transaction's price."""
        if not self._price or not octas:
            return
        amount = -(-octas * self.schedule.scaling // self._price)
        if amount > self._balance:
            # Nothing is stored: all gas is charged, and storage charged so far counts as execution.
            self.storage_fee = self.refund = 0
            self._execution = self._max_gas - self._io
            self._balance = 0
            raise VmError("OUT_OF_GAS")
        self.storage_fee += octas
        self._balance -= amount

    def check_limits(self) -> None:
        """Raise `VmError` if execution gas, io gas or storage fees exceed the schedule's limit."""
        for amount, parameter, status in (
            (self._execution, "txn.max_execution_gas", "EXECUTION_LIMIT_REACHED"),
            (self._io, "txn.max_io_gas", "IO_LIMIT_REACHED"),
            (self.storage_fee, "txn.max_storage_fee", "STORAGE_LIMIT_REACHED"),
        ):
            limit = self._entries.get(parameter)
            if limit is not None and amount > limit:
                raise VmError(status)

    def charges(self) -> Charges:
        """Return the cost so far, rounded as in a FeeStatement."""
        scaling = self.schedule.scaling
        return Charges(
            total_charge_gas_units=-(-(self._max_gas - self._balance) // scaling),
            execution_gas_units=-(-self._execution // scaling),
            io_gas_units=-(-self._io // scaling),
            storage_fee_octas=self.storage_fee,
            storage_fee_refund_octas=self.refund,
        )

    def _spend(self, amount: int, operation: str) -> None:  # noqa: ARG002 - for profiles
        """Charge execution gas."""
        if amount > self._balance:
            self._execution += self._balance
            self._balance = 0
            raise VmError("OUT_OF_GAS")
        self._execution += amount
        self._balance -= amount


# A schedule without parameters: each costs 0.
_FREE_SCHEDULE = Schedule(0, {})


def free_meter() -> Meter:
    """Return a meter without charges, for genesis and for the VM's work before and after a transaction."""
    return Meter(_FREE_SCHEDULE, max_gas_units=0)
