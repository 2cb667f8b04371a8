"""The machine: frames, calls, globals and natives around a loop that charges and runs pieces of code.

One machine runs the sessions' entries of a transaction: each `run` has its own stack, frames and locks, and shares the
session, the loader and the meter.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import length_hint
from typing import TYPE_CHECKING, Any

from toolkit.errors import Unsupported
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._access import AccessStack
from toolkit.vm._code import MODULE_LOCK, FunctionDefinition
from toolkit.vm._compile import ENTRY, LEAVES, CompiledFunction, Site
from toolkit.vm._environment import MAINNET, NO_CAPTURED_OPTIONS, TESTNET
from toolkit.vm._errors import Abort, MoveError
from toolkit.vm._natives import NATIVES
from toolkit.vm._natives._registry import Dispatch, NativeCall, may_stand_for
from toolkit.vm._operations import MAX_STACK
from toolkit.vm._results import TraceStep
from toolkit.vm._types import FRAMEWORK, ModuleId, Struct, Type, address_text, is_scalar, substituted, type_list
from toolkit.vm._values import MAX_VALUE_DEPTH, Closure, Global, Value, read_ref

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from toolkit.vm._gas import Entry, Meter
    from toolkit.vm._layouts import Layout
    from toolkit.vm._loader import Loader
    from toolkit.vm._state import Session, Slot
    from toolkit.vm._transaction import TransactionRun
    from toolkit.vm._types import Function

MAX_FRAMES = 1024  # that wait for another to return
_PAGE = 4096  # reads are charged by whole pages
_CURVES = ("ristretto255", "ristretto255_bulletproofs", "crypto_algebra", "bls12381", "secp256k1")
# Where a native that is missing here exists on a node; in other modules it does not.
_MODULES_WITH_NATIVES = {ModuleId(FRAMEWORK, name.split("::")[1]) for name in NATIVES}
_MODULES_WITH_NATIVES |= {ModuleId(FRAMEWORK, name) for name in _CURVES}
_OPTION = ModuleId(FRAMEWORK, "option")
# Their natives store their arguments: memory is not released.
_KEEPS_ARGUMENTS = {ModuleId(FRAMEWORK, "table"), ModuleId(FRAMEWORK, "event")}
_CONDITIONS = {"BR_TRUE": True, "BR_FALSE": False}


@dataclass(slots=True, eq=False)
class Frame:
    """A function that runs, or waits for one that it called.

    Attributes
    ----------
    code : CompiledFunction
    locals : list of Value
    following : int
        Offset of the instruction that runs when the frame goes on, or `ENTRY`.
    careful : bool
        Whether the stack could overflow in it, so that each instruction must look.
    entered : bool
        Whether the module counts one entry more.
    locks : bool
        Whether the module lock is on while the frame is there.
    restricted : bool
        Whether the function has access specifiers.
    """

    code: CompiledFunction
    locals: list[Value]
    following: int = ENTRY
    careful: bool = False
    entered: bool = False
    locks: bool = False
    restricted: bool = False

    @property
    def module(self) -> ModuleId | None:
        """Module of the function; None for a script."""
        return self.code.definition.module

    @property
    def location(self) -> ModuleId | str:
        """Where errors of the function are located."""
        return self.code.definition.module or "script"


@dataclass(slots=True, eq=False)
class Link:
    """What a call site leads to in this execution.

    Attributes
    ----------
    definition : FunctionDefinition
    types : tuple of Type
        Type arguments.
    count : int
        Number of parameters.
    native : callable or None
    code : CompiledFunction or None
        None if the function is native.
    cost, log_name, facts : int, str, str
        The charge of the call.
    crosses : bool
        Whether the caller is in another module.
    """

    definition: FunctionDefinition
    types: tuple[Type, ...]
    count: int
    native: Callable[..., Any] | None
    code: CompiledFunction | None
    cost: int
    log_name: str
    facts: str
    crosses: bool = True


class Machine:
    """Runs functions in a session.

    Parameters
    ----------
    loader : Loader
    session : Session
    meter : Meter
    transaction : TransactionRun, optional
        None in a view.
    trace : list, optional
        Gets (code, offset, depth, length of the log) for each instruction.
    """

    def __init__(
        self,
        loader: Loader,
        session: Session,
        meter: Meter,
        *,
        transaction: TransactionRun | None = None,
        trace: list[TraceStep] | None = None,
    ) -> None:
        self.loader = loader
        self.session = session
        self.meter = meter
        self.environment = loader.environment
        self.transaction = transaction
        self.trace = trace
        self.schedule = loader.schedule
        self.features = loader.features
        self.layouts = loader.layouts
        self.links: dict[Any, Link] = {}  # by call site; those of closures by module, name and type arguments
        self.keeps_arguments = False
        self.pays_types_once = flags.CALL_CACHE in self.features
        self.restricts = flags.ACCESS_CONTROL in self.features
        self._start()

    def _start(self) -> None:
        self.stack: list[Value] = []
        self.frames: list[Frame] = []  # the last one runs
        self.seen: set[Site] = set()  # whose types have been paid for
        self.active: dict[ModuleId | None, int] = {}  # entries of each module, script included, that have not returned
        self.locks = 0  # functions on the call stack because of which no module may be entered again
        self.access = AccessStack()

    # The loop.

    def run(self, code: CompiledFunction, arguments: Sequence[Value]) -> list[Value]:
        """Run a function to its end.

        Parameters
        ----------
        code : CompiledFunction
        arguments : sequence of Value
            All of them; the function owns them.

        Returns
        -------
        list of Value
            The results.

        Raises
        ------
        MoveError
            If the function fails; the error has its place.
        Unsupported
            If it needs something that is not implemented.
        """
        self._start()
        self._enter(code, list(arguments), crosses=True)
        self._loop()
        return self.stack

    def run_named(
        self, module: ModuleId, name: str, arguments: Sequence[Value], types: tuple[Type, ...] = ()
    ) -> list[Value]:
        """Run a function of a module; see `run`."""
        return self.run(self.loader.code(self.loader.function(module, name), types), arguments)

    def _loop(self) -> None:
        stack, meter = self.stack, self.meter
        at = 0  # offset after the instructions that have been charged
        running: Iterator[Any] = iter(())
        try:
            while self.frames:
                frame = self.frames[-1]
                code, locals_, careful, following = frame.code, frame.locals, frame.careful, frame.following
                pieces = code.pieces
                while following != LEAVES:
                    steps, at, _, cost, memory, peak = pieces[following]
                    execution = meter.execution + cost
                    if execution > meter.fast_limit or peak > meter.memory or careful:
                        steps, at, entries, _, _, _ = code.singles[following]
                        self._charge(code, at - 1, entries)
                    else:
                        meter.execution = execution
                        meter.memory -= memory
                    running = iter(steps)
                    for step in running:
                        target = step(stack, locals_, self)
                    following = at if target is None else target
                    if careful:
                        self._check_stack()
        except MoveError as error:
            raise self._located(error, self._give_back(code, at, length_hint(running))) from None
        except (TypeError, IndexError, AttributeError, ValueError, KeyError) as error:
            # Values that are missing or of another kind: code that no verifier has accepted.
            where = self.frames[-1].code.name if self.frames else "the first frame"
            raise Unsupported(
                f"{where} at offset {at - 1 - length_hint(running)}: the code breaks a rule of Move ({error}). "
                "The node's verifier may refuse this for another reason"
            ) from error

    def _give_back(self, code: CompiledFunction, at: int, left: int) -> int:
        """Give back what was charged for instructions after the one that failed; return the offset of that one."""
        for one in code.singles[at - left : at]:
            self.meter.execution -= one.cost
            self.meter.memory += one.memory
        return at - left - 1

    def _check_stack(self) -> None:
        if len(self.stack) > MAX_STACK:
            raise MoveError("EXECUTION_STACK_OVERFLOW")

    def _charge(self, code: CompiledFunction, offset: int, entries: Sequence[Entry]) -> None:
        """Charge an instruction entry by entry, for the log or because a limit is near."""
        meter, stack = self.meter, self.stack
        if self.trace is not None:
            assert meter.log is not None  # noqa: S101 - traces have a log
            self.trace.append(TraceStep(code, offset, len(self.frames), len(meter.log)))
        for entry in entries:
            if entry.execution is None:
                meter.use_memory(entry.memory, entry.name)
            else:
                passed = entry.name in _CONDITIONS and stack[-1] is not _CONDITIONS[entry.name]
                meter.charge(entry.execution, entry.name, "" if passed else entry.facts, entry.memory)

    def _located(self, error: MoveError, offset: int) -> MoveError:
        if error.located or not self.frames:
            return error
        frame = self.frames[-1]
        # From 1000 on are errors of validation: code that runs has passed it, so nodes blame the verifier.
        verifies = 1000 <= error.number < 2000 and not error.of_types
        if verifies and (error.status != "DEPENDENCY_LIMIT_REACHED" or self.schedule.version < since.LIMITS_BY_NAME):
            error = MoveError("VERIFICATION_ERROR", error.message)
        return error.at(frame.location, frame.code.definition.index, offset)

    # Frames.

    def _enter(
        self,
        code: CompiledFunction,
        arguments: list[Value],
        *,
        crosses: bool,
        closure: bool = False,
        native: FunctionDefinition | None = None,
    ) -> None:
        """Make a frame for a function and let it run next.

        Parameters
        ----------
        code : CompiledFunction
        arguments : list of Value
            They become the locals.
        crosses : bool
            Whether the caller is in another module.
        closure : bool
            Whether a function value is called: that counts as entering its module, even from the module itself.
        native : FunctionDefinition, optional
            The native that dispatches to the function: no module may be entered again while it runs.
        """
        frame = Frame(code, arguments)
        arguments += [None] * (len(code.locals) - len(arguments))
        definition = code.definition
        if native is not None or (definition.attributes and MODULE_LOCK in definition.attributes):
            frame.locks = True
        try:
            if crosses or closure:
                self._enter_module(definition, crosses=crosses, locked=self.locks > 0 or native is not None)
                frame.entered = True
            self.locks += frame.locks
            if definition.access is not None and self.restricts:
                self.access.push(definition, code.types, arguments)
                frame.restricted = True
        except MoveError as error:
            raise (error.at(native.module, native.index, 0) if native else self._below(error)) from None
        if len(self.stack) + code.max_stack > MAX_STACK:
            frame.careful = True
        self.frames.append(frame)
        self.meter.functions.add(definition)

    def _enter_module(self, function: FunctionDefinition, *, crosses: bool, locked: bool) -> None:
        """Count one entry more of a module, which must not be active if it is entered from another one under a lock."""
        module = function.module
        held = self.active.get(module, 0)
        if locked and held and crosses:
            place = f"{module.address.hex()}::{module.name}" if module else "script"
            raise MoveError(
                "RUNTIME_DISPATCH_ERROR",
                f"Reentrancy disallowed: reentering `{place}` via function `{function.name}` (module lock is active)",
            )
        self.active[module] = held + 1

    def leave(self, locals_: list[Value], held: dict[int, Type]) -> int:
        """Return from a function, whose results are on the stack, and release the locals that it still holds."""
        frame = self.frames.pop()
        if self.meter.log is not None:
            self.meter.write("<")
        if frame.entered:
            self.active[frame.module] -= 1
        if frame.locks:
            self.locks -= 1
        if frame.restricted:
            self.access.lists.pop()
        if held:
            self.meter.use_memory(-self._heap(held.values(), [locals_[index] for index in held]), "drop")
        return LEAVES

    def abort(self, code: int, offset: int) -> None:
        """Abort."""
        function = self.frames[-1].code.definition
        module = function.module
        place = f"0x{module.address.hex()}::{module.name}::{function.name}" if module else "script"
        raise Abort(code, f"{place} at offset {offset}")

    # Calls.

    def call(self, site: Site, following: int) -> int | None:
        """Call a function; return LEAVES unless it was native."""
        meter = self.meter
        generic = site.use.arguments is not None
        if generic and site not in self.seen:
            if self.pays_types_once:
                self.seen.add(site)
            for kind in site.types:
                meter.charge(self.schedule.per_node * kind.nodes, "CREATE_TY", f"nodes={kind.nodes}")
        link = self.links.get(site) or self._link(site)
        meter.charge(link.cost, link.log_name, link.facts)
        if meter.log is not None:
            meter.write(">", f"{link.definition}{type_list(link.types)}")
        if generic:  # a node looks at the module of generic calls only, and remembers the last one
            self.keeps_arguments = link.definition.module in _KEEPS_ARGUMENTS
        stack, count = self.stack, link.count
        arguments = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        return self._go_to(link, arguments, following, crosses=link.crosses)

    def _go_to(
        self, link: Link, arguments: list[Value], following: int, *, crosses: bool, closure: bool = False
    ) -> int | None:
        """Run a native, or make a frame and return LEAVES."""
        self.frames[-1].following = following
        if link.code is None:
            return self._native(link, arguments)
        if len(self.frames) > MAX_FRAMES:
            raise MoveError("CALL_STACK_OVERFLOW")
        self._enter(link.code, arguments, crosses=crosses, closure=closure)
        return LEAVES

    def _below(self, error: MoveError) -> MoveError:
        """Locate an error of entering a function in the frame below the current one."""
        return error.at(self.frames[-2].location if len(self.frames) > 1 else None)

    def _find(self, module: ModuleId, name: str) -> FunctionDefinition:
        """Return a function to call, after charging the loading of its module."""
        try:
            self.loader.visit_lazily([module], self.meter)
            return self.loader.function(module, name)
        except MoveError as error:
            if error.status in {"OUT_OF_GAS", "EXECUTION_LIMIT_REACHED"}:
                raise
            raise self._below(error) from None

    def _link(self, site: Site) -> Link:
        function = site.use.function
        definition = self._find(function.module, function.name)
        if definition.parameters != function.parameters or definition.results != function.results:
            error = MoveError("FUNCTION_RESOLUTION_FAILURE", f"{definition} has other parameters or results")
            raise self._below(error)
        link = self._linked(definition, site.types, generic=site.use.arguments is not None)
        link.crosses = site.caller.module != definition.module
        self.links[site] = link
        return link

    def _linked(self, definition: FunctionDefinition, types: tuple[Type, ...], *, generic: bool) -> Link:
        """Find the code of a function and the price of calling it."""
        is_native = definition.is_native
        native = NATIVES.get(str(definition)) if is_native else None
        code = None if is_native else self.loader.code(definition, types)
        count, locals_ = len(definition.parameters), 0 if is_native else len(definition.locals)
        kind, prices = "call_generic" if generic else "call", self.schedule
        cost = (
            prices[f"instr.{kind}.base"]
            + prices[f"instr.{kind}.per_arg"] * count
            + prices[f"instr.{kind}.per_local"] * locals_
        )
        if not cost:
            raise Unsupported("a gas schedule with free calls, in which recursion would not end")
        facts = f"args={count} locals={locals_}"
        if generic:
            cost += prices["instr.call_generic.per_ty_arg"] * len(types)
            facts += f" types={len(types)}"
        return Link(definition, types, count, native, code, cost, kind.upper(), facts)

    def _native(self, link: Link, arguments: list[Value]) -> int | None:
        definition = link.definition
        meter = self.meter
        if link.native is None:
            raise self._missing(definition)
        released = 0
        if not self.keeps_arguments:
            released = self._heap(substituted(definition.parameters, link.types), arguments)
        meter.native_starts(released)
        try:
            results = link.native(NativeCall(self, link.types), *arguments) or ()
        except MoveError as error:
            if isinstance(error, Abort):
                meter.native_ends("abort")
                meter.write("<")
            raise error.at(definition.module, definition.index, 0) from None
        if isinstance(results, Dispatch):
            self._dispatch(results, definition)
            return LEAVES
        meter.native_ends("ok", self._heap(substituted(definition.results, link.types), results))
        if meter.log is not None:
            meter.write("<")
        self.stack += results
        self._check_stack()
        return None

    def _missing(self, definition: FunctionDefinition) -> Exception:
        if definition.module in _MODULES_WITH_NATIVES:
            return Unsupported(f"native function {definition}")
        error = MoveError("MISSING_DEPENDENCY", f"Missing Native Function `{definition.name}`")
        return error.at(definition.module, definition.index, 0)

    def _heap(self, kinds: Iterable[Type], values: Iterable[Value]) -> int:
        """Return the abstract size of values, if they are there, beyond what they take on the stack."""
        total = 0
        for kind, value in zip(kinds, values, strict=True):
            if value is not None and not is_scalar(kind):
                layout = self.layouts[kind]
                total += layout.measure(value) - layout.stack
        return total

    def _dispatch(self, target: Dispatch, native: FunctionDefinition) -> None:
        """Go on in the function that a native has chosen."""
        self.meter.native_ends("abort")  # as the log of a node has it, which does not say where it goes on
        self.meter.write("<")
        if not may_stand_for(native, target.definition):
            error = MoveError("RUNTIME_DISPATCH_ERROR", "Invoking function with incompatible type")
            raise error.at(native.module, native.index, 0)
        code = self.loader.code(target.definition, target.types)
        self._enter(code, target.arguments, crosses=True, native=native)

    def pack_closure(self, stack: list[Value], site: Site, mask: int, kinds: tuple[Type, ...]) -> None:
        """Push a closure over a function."""
        function = site.use.function
        definition = self._find(function.module, function.name)
        persistent = definition.is_persistent
        if persistent:
            layouts = tuple(map(self.serializing_layout, kinds))
            self._check_captured(layouts)
        else:
            layouts = tuple(self.layouts[kind] for kind in kinds)
        count = len(kinds)
        captured = stack[len(stack) - count :]
        del stack[len(stack) - count :]
        stack.append(
            Closure(function.module, function.name, site.types, mask, captured, layouts, persistent=persistent)
        )

    def _check_captured(self, layouts: Sequence[Layout]) -> None:
        """Check that a closure that may be stored captures no options, where their form was about to change."""
        if flags.CAPTURE_OPTION in self.features or not any(_OPTION in layout.modules for layout in layouts):
            return
        if self.environment.chain_id in {MAINNET, TESTNET}:
            raise Unsupported("captured options without feature 99")
        if self.environment.timed(NO_CAPTURED_OPTIONS):
            raise MoveError("UNABLE_TO_CAPTURE_OPTION_TYPE")

    def call_closure(self, stack: list[Value], kind: Function, following: int) -> int | None:
        """Call the closure on the stack."""
        closure: Closure = stack.pop()
        link = self._closure_link(closure, kind)
        meter = self.meter
        meter.charge(link.cost, link.log_name, link.facts)
        meter.write(">", str(link.definition))  # the log of a node leaves the type arguments out here
        count = len(kind.parameters)
        given, captured = iter(stack[len(stack) - count :]), iter(closure.captured)
        del stack[len(stack) - count :]
        arguments = [next(captured if closure.mask >> at & 1 else given) for at in range(link.count)]
        crosses = self.frames[-1].module != link.definition.module
        return self._go_to(link, arguments, following, crosses=crosses, closure=True)

    def _closure_link(self, closure: Closure, kind: Function) -> Link:
        key = closure.module, closure.name, closure.types
        link = self.links.get(key)
        if link is None:
            assert closure.module is not None  # noqa: S101 - scripts cannot name themselves
            definition = self._find(closure.module, closure.name)
            # Closures over generic functions cost no more either.
            link = self.links[key] = self._linked(definition, closure.types, generic=False)
        parameters = substituted(link.definition.parameters, link.types)
        rest = tuple(one for at, one in enumerate(parameters) if not closure.mask >> at & 1)
        results = substituted(link.definition.results, link.types)
        if rest != kind.parameters or results != kind.results or closure.mask >> len(parameters):
            raise MoveError("FUNCTION_RESOLUTION_FAILURE", f"{link.definition} is not of type {kind}")
        return link

    # Values whose cost depends on them.

    def measure(self, layout: Layout, value: Value, name: str) -> int:
        """Return the abstract size of a value that an instruction measures."""
        try:
            layout.check_depth(value)
        except MoveError as error:
            raise self.meter.fail(name, error) from None
        return layout.measure(value)

    def copied(self, value: Value, kind: Type, prices: tuple[int, int], name: str) -> Value:
        """Charge a copy of a value and return it."""
        layout = self.layouts[kind]
        if name == "COPY_LOC":
            layout.check_depth(value)  # the node copies before it charges, so the log has no line for a failure
        size = self.measure(layout, value, name)
        self.meter.charge(prices[0] + prices[1] * size, name, "", size - layout.stack)
        return layout.copy(value)

    def release(self, value: Value, kind: Type, price: int, name: str) -> None:
        """Charge an instruction that drops or replaces a value."""
        layout = self.layouts[kind]
        self.meter.charge(price, name, "", layout.stack - self.measure(layout, value, name))

    def measure_equal(self, stack: list[Value], kind: Type, prices: tuple[int, int], name: str, through: bool) -> None:  # noqa: FBT001
        """Charge the comparison of the two values on the stack."""
        layout = self.layouts[kind]
        values = [read_ref(one) for one in stack[-2:]] if through else stack[-2:]
        for value in values:
            self.measure(layout, value, name)
        size = sum(layout.measure(value, compared=True) for value in values)
        heap = 0 if through else self._heap((kind, kind), values)
        self.meter.charge(prices[0] + prices[1] * size, name, "", -heap)

    # Globals.

    def load(self, address: bytes, kind: Struct) -> Global:
        """Return a resource, loading and paying for it at its first use in the session."""
        slot = self.session.resources.get((address, kind))
        if slot is not None:
            return slot.cell
        slot, size = self.fetch(address, kind)
        value = slot.cell[0]
        heap = 0 if value is None else slot.layout.measure(value) - slot.layout.stack
        facts = f"{address_text(address)} {kind} {'none' if value is None else 'some'} bytes={size}"
        self.meter.charge_io(self.read_price(size), "LOAD", facts, heap)
        return slot.cell

    def fetch(self, address: bytes, kind: Struct) -> tuple[Slot, int]:
        """Load a resource without paying for its bytes; return it and how many there are."""
        layout = self.serializing_layout(kind)
        return self.session.load(address, kind, layout, self.loader.module(kind.module).group(kind.name))

    def read_price(self, size: int) -> int:
        """Return what it costs to read a slot of this size."""
        if self.schedule.version >= since.WHOLE_SLOTS:
            size = -(-size // _PAGE) * _PAGE
        prices = self.schedule
        return prices["txn.storage_io_per_state_slot_read"] + prices["txn.storage_io_per_state_byte_read"] * size

    def serializing_layout(self, kind: Type) -> Layout:
        """Return the layout by which values are written or read, after charging the modules of their types.

        Raises
        ------
        MoveError
            If the layout is too large or too deep.
        """
        layout = self.layouts[kind]
        self.loader.visit_lazily(layout.modules, self.meter)
        if layout.nodes > self.schedule.max_layout_nodes:
            raise MoveError("TOO_MANY_TYPE_NODES")
        if layout.depth > MAX_VALUE_DEPTH:
            raise MoveError("VM_MAX_VALUE_DEPTH_REACHED")
        return layout

    def _check_access(self, kind: Struct, address: bytes, *, writes: bool) -> None:
        """Check the locks and access specifiers after an operation on a resource."""
        if self.active.get(kind.module, 0) > 1:
            place = f"{kind.module}::{kind.name}"
            raise MoveError(
                "RUNTIME_DISPATCH_ERROR",
                f"Resource `{place}` cannot be accessed because of active reentrancy of defining module.",
            )
        if self.access.lists:
            self.access.check(kind, address, writes=writes)

    def resource(
        self, address: bytes, kind: Struct, price: int, name: str, *, writes: bool, failure: str = ""
    ) -> Global:
        """Return a resource for an instruction, after charging it.

        Raises
        ------
        MoveError
            If `failure` names what fails if the resource is missing, or is there although it is to be moved to; or if
            a lock or an access specifier forbids the access.
        """
        cell = self.load(address, kind)
        self.meter.charge(price, name)
        moves_to = failure.endswith("into")
        if failure and (cell[0] is None) is not moves_to:
            status = "RESOURCE_ALREADY_EXISTS" if moves_to else "MISSING_DATA"
            raise MoveError(status, f"Failed to {failure} {address.hex()}")
        self._check_access(kind, address, writes=writes)
        return cell
