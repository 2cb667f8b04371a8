"""Results of executions: status, fee, events, writes, gas log, and profile and trace, which are made from the log."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import InputError
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._code import LOG_NAMES
from toolkit.vm._module import instruction_text
from toolkit.vm._types import ModuleId
from toolkit.wire._on_chain import SUCCESS, EmittedEvent, Write
from toolkit.wire._on_chain import Status as Status  # noqa: PLC0414 - exported with the other results

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pandas as pd

    from toolkit.vm._compile import CompiledFunction
    from toolkit.vm._errors import MoveError
    from toolkit.vm._gas import Entry, Meter
    from toolkit.vm._loader import Loader

_LIMITS = {"EXECUTION_LIMIT_REACHED", "IO_LIMIT_REACHED", "STORAGE_LIMIT_REACHED"}
_LIMITS |= {"TOO_MANY_DELAYED_FIELDS", "UNABLE_TO_CAPTURE_DELAYED_FIELDS"}


def status_of(error: MoveError, loader: Loader) -> Status:
    """Return the status that an error leads to: kept with a kind, or discarded. The loader names abort codes."""
    features = loader.features
    location = None if error.location is None else str(error.location)
    number = error.number
    if error.status == "ABORTED" and error.sub_status is not None and location is not None:
        code, is_module = error.sub_status, isinstance(error.location, ModuleId)
        name, description = (loader.named_abort(error.location, code) if is_module else None) or (None, None)
        return Status("abort", code, location, message=error.message, reason=name, description=description)
    if error.status == "OUT_OF_GAS":
        return Status("out_of_gas", error.status)
    miscellaneous = error.status in _LIMITS
    miscellaneous |= error.status == "VM_MAX_VALUE_DEPTH_REACHED" and flags.FUNCTION_VALUES in features
    miscellaneous |= error.status == "MEMORY_LIMIT_EXCEEDED" and loader.schedule.version >= since.LIMITS_BY_NAME
    miscellaneous |= 1000 <= number < 2000 or 3000 <= number < 4000
    miscellaneous |= 2000 <= number < 3000 and flags.CHARGE_INVARIANT_VIOLATION in features
    if miscellaneous:
        return Status("miscellaneous_error", error.status, message=error.message, sub_status=error.sub_status)
    if not 4000 <= number < 5000:
        return Status("discard", error.status, message=error.message, sub_status=error.sub_status)
    place = location, error.function, error.offset
    if error.function is None or error.offset is None:
        place = "script", 0, 0
    return Status("execution_failure", error.status, *place, error.message, error.sub_status)


class Fee(NamedTuple):
    """Parts of the fee, as the fee statement of a transaction has them."""

    execution_gas_units: int
    io_gas_units: int
    storage_fee_octas: int
    storage_fee_refund_octas: int


NO_FEE = Fee(0, 0, 0, 0)


# Profiles and traces.

_INSTRUCTIONS = frozenset(LOG_NAMES.values())
ROOT = "transaction"  # name of what is charged outside of frames


class TraceStep(NamedTuple):
    """An instruction that ran: its place in its function, how deep that is, and how many entries the log had before."""

    code: CompiledFunction
    offset: int
    depth: int
    start: int


@dataclass
class Call:
    """A node of the call tree.

    Attributes
    ----------
    function : str
    calls : int
        How often the parent called the function.
    own, total : int
        Internal gas, execution and io, without and with what it called.
    instructions : int
    children : dict of str to Call
    """

    function: str
    calls: int = 0
    own: int = 0
    instructions: int = 0
    children: dict[str, Call] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Internal gas of the call and of all below it."""
        return self.own + sum(child.total for child in self.children.values())

    def walk(self, above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Call]]:
        """Yield the call and all below it, each with the functions above it, the outermost first."""
        yield above, self
        for child in self.children.values():
            yield from child.walk((*above, self.function))


@dataclass(frozen=True)
class Profile:
    """Gas by function.

    Attributes
    ----------
    tree : Call
        The call tree; its root is the transaction. What a function is charged for calling another is its own.
    """

    tree: Call

    @classmethod
    def from_log(cls, log: Sequence[Entry], steps: Sequence[TraceStep]) -> Profile:
        """Build the call tree of a gas log.

        The log does not say that functions are entered that nothing calls, or that a native dispatches to: then the
        instructions are deeper than the tree.
        """
        path = [Call(ROOT, 1)]
        starts = {step.start: step for step in steps}

        def enter(function: str) -> None:
            child = path[-1].children.setdefault(function, Call(function))
            child.calls += 1
            path.append(child)

        for at, entry in enumerate(log):
            if at in starts and starts[at].depth >= len(path):
                enter(starts[at].code.name)
            if entry.name == ">":
                enter(entry.facts)
            elif entry.name == "<":
                if len(path) > 1:
                    path.pop()
            else:
                if entry.name == "IO_TXN":
                    del path[1:]  # frames that an error left open
                path[-1].own += (entry.execution or 0) + (entry.io or 0)
                path[-1].instructions += entry.name in _INSTRUCTIONS
        return cls(path[0])

    def to_frame(self) -> pd.DataFrame:
        """Return one row per function: calls, own_gas, total_gas, instructions; the most expensive first.

        Total gas of a function that calls itself counts once.
        """
        import pandas as pd

        rows = []
        for above, call in self.tree.walk():
            total = 0 if call.function in above else call.total  # of recursion, the outermost call has it
            rows.append((call.function, call.calls, call.own, total, call.instructions))
        frame = pd.DataFrame(rows, columns=["function", "calls", "own_gas", "total_gas", "instructions"])
        sums = frame.groupby("function", sort=False, as_index=False).sum()
        sums.attrs["toolkit"] = {name: {"unit": "internal gas units"} for name in ("own_gas", "total_gas")}
        return sums.sort_values("total_gas", ascending=False, kind="stable", ignore_index=True)

    def stacks(self) -> dict[str, int]:
        """Return the own gas of each stack of functions, the outermost first, joined by ``;``."""
        return {";".join((*above, call.function)): call.own for above, call in self.tree.walk() if call.own}

    def folded(self) -> str:
        """Return the profile as folded stacks, a line per stack with its own gas, as flame graph tools read them."""
        return "".join(f"{stack.replace(' ', '')} {gas}\n" for stack, gas in self.stacks().items())

    def speedscope(self, name: str = "gas") -> dict[str, Any]:
        """Return the profile as a document for https://www.speedscope.app, to be written as JSON."""
        stacks = self.stacks()
        frames = {one: at for at, one in enumerate(dict.fromkeys(";".join(stacks).split(";")))}
        profile = {
            "type": "sampled",
            "name": name,
            "unit": "none",
            "startValue": 0,
            "endValue": sum(stacks.values()),
            "samples": [[frames[one] for one in stack.split(";")] for stack in stacks],
            "weights": list(stacks.values()),
        }
        schema = "https://www.speedscope.app/file-format-schema.json"
        return {"$schema": schema, "shared": {"frames": [{"name": one} for one in frames]}, "profiles": [profile]}

    def __str__(self) -> str:
        lines = [f"{'total':>12} {'own':>12} {'calls':>6}"]
        for above, call in self.tree.walk():
            lines.append(f"{call.total:12,} {call.own:12,} {call.calls:6,}  {'  ' * len(above)}{call.function}")
        return "\n".join(lines)


def gas_of_calls(log: Sequence[Entry], steps: Sequence[TraceStep]) -> list[tuple[int, int]]:
    """Return the internal gas of a script that makes calls in a row: execution and io.

    Returns
    -------
    list of (int, int)
        What is charged before the script, which includes the modules that it uses, then each call that was reached, and
        what is charged for changes at the end.
    """
    starts, called = [0], True
    for code, offset, depth, start in steps:
        if depth != 1 or code.definition.module is not None:
            continue
        instructions = code.definition.code
        name, count = instructions[offset].name, sum("Call" in one.name for one in instructions)
        if called and name != "StLoc" and len(starts) <= count:  # what ends the script belongs to the last call
            starts.append(start)
        called = "Call" in name or (called and name == "StLoc")
    starts.append(next((at for at, entry in enumerate(log) if entry.name == "IO_TXN"), len(log)))
    sums = []
    for start, end in zip(starts, [*starts[1:], len(log)], strict=True):
        part = log[start:end]
        sums.append((sum(one.execution or 0 for one in part), sum(one.io or 0 for one in part)))
    return sums


@dataclass(frozen=True)
class Trace:
    """The instructions that ran.

    Attributes
    ----------
    rows : list of dict
        depth, function, offset, instruction, gas and memory of each.
    """

    rows: list[dict[str, Any]]

    @classmethod
    def from_log(cls, log: Sequence[Entry], steps: Sequence[TraceStep]) -> Trace:
        """Join instructions with the entries that they were charged by."""
        ends = [step.start for step in steps[1:]] + [len(log)]
        rows = []
        for (code, offset, depth, start), end in zip(steps, ends, strict=True):
            charged = log[start:end]
            rows.append(
                {
                    "depth": depth,
                    "function": code.name,
                    "offset": offset,
                    "instruction": instruction_text(code.definition.code[offset]),
                    "gas": sum((entry.execution or 0) + (entry.io or 0) for entry in charged),
                    "memory": sum(entry.memory for entry in charged),
                }
            )
        return cls(rows)

    def to_frame(self) -> pd.DataFrame:
        """Return one row per instruction."""
        import pandas as pd

        frame = pd.DataFrame(self.rows, columns=["depth", "function", "offset", "instruction", "gas", "memory"])
        frame.attrs["toolkit"] = {"gas": {"unit": "internal gas units"}}
        return frame


@dataclass(frozen=True)
class _Measured:
    """What was charged, if a log was asked for."""

    _meter: Meter | None = field(repr=False, default=None)
    _trace: list[TraceStep] | None = field(repr=False, default=None)

    @property
    def log(self) -> list[Entry]:
        """The gas log: an entry per charge, in order.

        Raises
        ------
        InputError
            If the execution ran without ``log=True``.
        """
        if self._meter is None or self._meter.log is None:
            raise InputError("the execution has no gas log; run with log=True")
        return self._meter.log

    @property
    def profile(self) -> Profile:
        """Gas by function, and the call tree."""
        return Profile.from_log(self.log, self._trace or [])

    @property
    def trace(self) -> Trace:
        """The instructions that ran, one by one."""
        return Trace.from_log(self.log, self._trace or [])

    def gas_of_calls(self) -> list[tuple[int, int]]:
        """Return the internal gas of the calls of a batch, execution and io: before them, of each, and after them.

        Calls that were not reached are left out.
        """
        return gas_of_calls(self.log, self._trace or [])

    @property
    def functions(self) -> frozenset[str]:
        """Ids of the functions whose bytecode ran, such as ``0x1::coin::supply``; not of prologue and epilogue."""
        return frozenset() if self._meter is None else frozenset(map(str, self._meter.functions))

    @property
    def memory_left(self) -> int | None:
        """Abstract memory that was left."""
        return None if self._meter is None else self._meter.memory


@dataclass(frozen=True)
class Execution(_Measured):
    """The outcome of a transaction.

    Attributes
    ----------
    status : Status
    gas_used : int
        In gas units.
    fee : Fee
    events : list of EmittedEvent
    writes : dict of bytes to Write
        By state key, in the order of the ledger.

    Examples
    --------
    >>> from toolkit import vm
    >>> done = vm.Execution(gas_used=7)
    >>> done.status.kind, done.gas_used, done.writes
    ('success', 7, {})
    """

    status: Status = SUCCESS
    gas_used: int = 0
    fee: Fee = NO_FEE
    events: list[EmittedEvent] = field(default_factory=list)
    writes: dict[bytes, Write] = field(default_factory=dict)


@dataclass(frozen=True)
class View(_Measured):
    """The outcome of a view function.

    Attributes
    ----------
    status : Status
    values : list of bytes
        The results, each as BCS.
    gas_used : int
        In gas units.

    Examples
    --------
    >>> from toolkit import vm
    >>> seen = vm.View(values=[bytes([42])], gas_used=1)
    >>> seen.values[0].hex(), seen.status.success
    ('2a', True)
    """

    status: Status = SUCCESS
    values: list[bytes] = field(default_factory=list)
    gas_used: int = 0
