"""The gas meter: what is charged, the limits, and the log of every charge.

Gas is counted apart from meaning. The interpreter says what it does; the meter books it. What nobody pays runs on an
`Unmetered`, which counts only to end loops. `Meter` is the one place that writes the log.

A straight piece of code is charged at once if `fast_limit` allows it: none of its charges can fail then. With a log,
`fast_limit` is negative, so that each becomes an entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolkit.errors import Unsupported
from toolkit.vm import _gas_versions as since
from toolkit.vm._errors import MoveError

if TYPE_CHECKING:
    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._schedule import Schedule
    from toolkit.vm._types import ModuleId

MAX_U64 = (1 << 64) - 1
# Internal gas and memory of a prologue or epilogue: state is hostile, so its loops must end, too.
MAX_UNMETERED = 20_000_000_000
_UNMETERED_MEMORY = 100_000_000


class Entry(NamedTuple):
    """A line of the gas log.

    Attributes
    ----------
    name : str
        What was done: an instruction as ``COPY_LOC``, ``LOAD``, ``native``, ``>`` and ``<`` for frames, and so on.
    facts : str
        What the charge depends on.
    execution, io : int or None
        Internal gas that was charged; None if the line charges nothing of the kind.
    memory : int
        Abstract memory that was taken, or released if negative.
    failed : str or None
        Status code with which the charge failed.
    """

    name: str
    facts: str = ""
    execution: int | None = None
    io: int | None = None
    memory: int = 0
    failed: str | None = None

    def __str__(self) -> str:
        parts = [self.name, self.facts]
        if self.execution or (self.execution == 0 and not self.io):
            parts.append(str(self.execution))
        if self.io:
            parts.append(f"io {self.io}")
        if self.memory:
            parts.append(f"m{self.memory:+}")
        if self.failed:
            parts.append(f"! {self.failed}")
        return " ".join(part for part in parts if part)


class Meter:
    """Gas of one transaction or view.

    Parameters
    ----------
    schedule : Schedule
    max_gas : int
        In gas units.
    log : bool
        Whether to log each charge.

    Attributes
    ----------
    execution, io, storage : int
        Internal gas charged, by category.
    fee : int
        Storage fee in octas.
    memory : int
        Abstract memory left.
    fast_limit : int
        Execution gas up to which charges succeed; negative if each charge is to be logged.
    log : list of Entry or None
    functions : set of FunctionDefinition
        Those that were entered, natives excluded.
    """

    def __init__(self, schedule: Schedule, max_gas: int, *, log: bool = False) -> None:
        self.schedule = schedule
        self.budget = max_gas * schedule.unit
        self.execution = self.io = self.storage = self.fee = 0
        self.max_execution = schedule["txn.max_execution_gas"] or MAX_U64
        self.max_io = schedule["txn.max_io_gas"] or MAX_U64
        self.memory = schedule["txn.memory_quota"] or MAX_U64
        self.log: list[Entry] | None = [] if log else None
        self.functions: set[FunctionDefinition] = set()
        self.modules = self.module_bytes = 0  # loaded so far; both are limited
        self._native: int | None = None  # what a native owes, below version 36
        self._set_limit()

    def _set_limit(self) -> None:
        limit = min(self.max_execution, self.budget - self.io - self.storage)
        self.fast_limit = -1 if self.log is not None else limit

    @property
    def balance(self) -> int:
        """Internal gas left."""
        return self.budget - self.execution - self.io - self.storage

    @property
    def units(self) -> int:
        """Gas units left: whole ones."""
        return self.balance // self.schedule.unit

    def add_budget(self, units: int) -> None:
        """Allow more gas units."""
        self.budget += units * self.schedule.unit
        self._set_limit()

    def write(self, name: str, facts: str = "") -> None:
        """Log something that charges nothing."""
        if self.log is not None:
            self.log.append(Entry(name, facts))

    def charge(self, amount: int, name: str, facts: str = "", memory: int = 0) -> None:
        """Charge execution gas, after taking `memory`, or releasing it if negative.

        Raises
        ------
        MoveError
            If it exceeds a limit; what was left has been charged.
        """
        if self.execution + amount <= self.fast_limit and memory <= self.memory:
            self.execution += amount
            self.memory -= memory
            return
        memory, failed = self._take(memory)
        amount, failed = (0, failed) if failed else self._spend(min(amount, MAX_U64))
        self.execution += amount
        if failed is None and self.execution > self.max_execution:
            failed = MoveError("EXECUTION_LIMIT_REACHED")
        self._book(failed, name, facts, amount, None, memory)

    def charge_io(self, amount: int, name: str, facts: str = "", memory: int = 0) -> None:
        """Charge io gas, after taking `memory`."""
        memory, failed = self._take(memory)
        amount, failed = (0, failed) if failed else self._spend(amount)
        self.io += amount
        if failed is None and self.io > self.max_io:
            failed = MoveError("IO_LIMIT_REACHED")
        self._set_limit()
        self._book(failed, name, facts, None if amount else 0, amount, memory)

    def charge_storage(self, octas: int, price: int) -> None:
        """Charge the storage fee of a transaction at its gas unit price."""
        amount, failed = self._spend(min(-(-octas * self.schedule.unit // price), MAX_U64) if price else 0)
        if failed and self.schedule.version < since.WHOLE_SLOTS:
            octas = 0
        self.storage += amount
        self.fee += octas
        if failed is None and self.fee > (self.schedule["txn.max_storage_fee"] or MAX_U64):
            failed = MoveError("STORAGE_LIMIT_REACHED")
        self._set_limit()
        self._book(failed, "STORAGE_FEE", f"octas={octas} internal={amount}")

    def _spend(self, amount: int) -> tuple[int, MoveError | None]:
        """Return what a charge takes; all that is left if it exceeds that, which older versions lose instead."""
        left = self.balance
        if amount <= left:
            return amount, None
        if self.schedule.version < since.WHOLE_SLOTS:
            self.budget -= left
            left = 0
        return left, self._exceeded("OUT_OF_GAS")

    def _exceeded(self, status: str) -> MoveError:
        return MoveError(status)

    def _book(  # noqa: PLR0917 - the fields of an entry
        self,
        failed: MoveError | None,
        name: str,
        facts: str = "",
        execution: int | None = None,
        io: int | None = None,
        memory: int = 0,
    ) -> None:
        """Log a charge, and raise its error if it failed."""
        if self.log is not None:
            self.log.append(Entry(name, facts, execution, io, memory, failed.status if failed else None))
        if failed:
            self._set_limit()
            raise failed

    def _take(self, amount: int) -> tuple[int, MoveError | None]:
        """Take memory, or release it; return what was taken, and the error if it was not enough."""
        if amount > self.memory:
            amount, self.memory = self.memory, 0
            return amount, self._exceeded("MEMORY_LIMIT_EXCEEDED")
        self.memory -= amount
        return amount, None

    def use_memory(self, amount: int, name: str, *, always: bool = False) -> None:
        """Take memory, or release it, apart from a charge; logged if there is any, or `always`."""
        if amount or always:
            amount, failed = self._take(amount)
            self._book(failed, name, memory=amount)

    def fail(self, name: str, error: MoveError) -> MoveError:
        """Log an instruction that could not be measured; return the error."""
        if self.log is not None:
            self.log.append(Entry(name, "", 0, failed=error.status))
        return error

    def charge_module(self, module: ModuleId, size: int, age: str) -> None:
        """Charge the loading of a module."""
        if module.special:
            return
        schedule = self.schedule
        amount = schedule["txn.dependency_per_module"] + schedule["txn.dependency_per_byte"] * size
        self.charge(amount, "DEP", f"{age} {module} size={size}")
        if schedule.version >= since.DEPENDENCIES:
            self.modules += 1
            self.module_bytes += size
            most, largest = schedule["txn.max_num_dependencies"], schedule["txn.max_total_dependency_size"]
            if self.modules > most or self.module_bytes > largest:
                raise MoveError("DEPENDENCY_LIMIT_REACHED")

    # Natives.

    def native_starts(self, released: int) -> None:
        """Release the memory of a native's arguments."""
        self.use_memory(-released, "native", always=True)
        self._native = 0 if self.schedule.version < since.NATIVES_AT_ONCE else None

    def charge_native(self, amount: int) -> None:
        """Charge something that a native does."""
        if self._native is None:
            self.charge(amount, "n")
        else:
            self._native += amount

    def native_ends(self, how: str, memory: int = 0) -> None:
        """Book what a native owes, and the memory of its results."""
        owed, self._native = self._native or 0, None
        self.charge(owed, "native-end", how, memory)


class Unmetered(Meter):
    """Execution that nobody pays: prologues and epilogues. It ends loops, and that is all."""

    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule, 0)
        self.budget = self.max_execution = self.max_io = MAX_UNMETERED
        self.memory = _UNMETERED_MEMORY
        self._set_limit()

    def _exceeded(self, status: str) -> MoveError:
        raise Unsupported(f"a prologue or epilogue that does not end ({status})")

    def charge_module(self, module: ModuleId, size: int, age: str) -> None:
        """Charge nothing, and do not count the modules."""
