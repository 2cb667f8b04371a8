"""Functions become straight pieces of steps, once per type arguments and gas schedule.

The bytecode says ``Add``, not of what. One pass over the code infers the types on the stack: in code that a node has
verified the stack of a frame is empty wherever control flow meets. The pass checks what running relies on, so code
that nobody has verified cannot confuse a vector with a number. With the types come the costs: a piece ends at the
first instruction whose cost depends on values, and at each branch, call and return. All before is charged at once.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from toolkit.errors import Unsupported
from toolkit.vm import _operations as ops
from toolkit.vm import _types as t
from toolkit.vm._checks import check_not_borrowed, refused, unset_local
from toolkit.vm._code import Constant, Field, FieldUse, FunctionUse, StructUse, VariantUse
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Entry
from toolkit.vm._instructions import BRANCHES, LOG_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._instructions import Instruction
    from toolkit.vm._layouts import Layout
    from toolkit.vm._operations import Step
    from toolkit.vm._schedule import Schedule

MAX_STACK = 1024
MAX_COMPILED = 4_096  # functions in the cache of the process

_PRICES = {"Xor": "bit_xor", "Shl": "bit_shl", "Shr": "bit_shr"}  # whose price is not named like the instruction
_BITS = {"BitOr": ops.binary(operator.or_), "BitAnd": ops.binary(operator.and_), "Xor": ops.binary(operator.xor)}
_UNSIGNED = {*_BITS, "Shl", "Shr"}  # not for signed integers
_BOOLEANS = {"Or": ops.binary(operator.or_), "And": ops.binary(operator.and_), "Not": ops.invert}
_COMPARISONS = {
    "Lt": ops.less_than,
    "Gt": ops.binary(operator.gt),
    "Le": ops.binary(operator.le),
    "Ge": ops.binary(operator.ge),
}
_FIXED_STEPS = _COMPARISONS | _BITS  # the same for all types of integers
_INTEGER_STEPS = {"Add": ops.add, "Sub": ops.subtract, "Mul": ops.multiply, "Div": ops.divide, "Mod": ops.remainder}
_INTEGER_STEPS |= {"Negate": ops.negate, "Shl": ops.shift_left, "Shr": ops.shift_right}


class Site:
    """An instance of a function that a function calls; the machine resolves it at the first call of an execution.

    Attributes
    ----------
    use : FunctionUse
    types : tuple of Type
        Type arguments of the callee.
    caller : FunctionDefinition
    """

    __slots__ = ("caller", "types", "use")

    def __init__(self, use: FunctionUse, types: tuple[t.Type, ...], caller: FunctionDefinition) -> None:
        self.use = use
        self.types = types
        self.caller = caller


@dataclass(slots=True, eq=False, init=False)
class Piece:
    """Straight code: steps without a branch between them, then an exit.

    Attributes
    ----------
    steps : tuple of callable
    entries : tuple of tuple of Entry
        What each step costs; one more for the exit if there is one.
    offsets : tuple of int
        Offset of the instruction of each step, and of the exit.
    cost, memory, peak : int
        Sums of the entries, and the most memory that is needed until the end.
    after : tuple of (int, int)
        What the steps after each step cost, to give back if it fails.
    exit : callable or None
        The last instruction if it branches, calls or returns. It returns the next piece; None if the frame changed.
    next : Piece or None
        The piece that follows in the code.
    target : int or None
        Where the branch at the end leads.
    when : bool or None
        For which condition.
    """

    cost: int
    memory: int
    peak: int
    after: tuple[tuple[int, int], ...]
    steps: tuple[Step, ...]
    entries: tuple[tuple[Entry, ...], ...]
    offsets: tuple[int, ...]
    exit: Step | None
    next: Piece | None
    target: int | None
    when: bool | None

    def __init__(self) -> None:
        self.exit = self.next = self.target = self.when = None

    def fill(self, steps: Iterable[Step], entries: Iterable[tuple[Entry, ...]], offsets: Iterable[int]) -> None:
        """Set the steps and count their costs."""
        self.steps, self.entries, self.offsets = tuple(steps), tuple(entries), tuple(offsets)
        costs = [sum(entry.execution or 0 for entry in group) for group in self.entries]
        memories = [sum(entry.memory for entry in group) for group in self.entries]
        self.cost = sum(costs)
        self.memory = self.peak = 0
        for group in self.entries:
            for entry in group:
                self.memory += entry.memory
                self.peak = max(self.peak, self.memory)
        self.after = tuple((sum(costs[at + 1 :]), sum(memories[at + 1 :])) for at in range(len(costs)))


class CompiledFunction:
    """A compiled function.

    Attributes
    ----------
    definition : FunctionDefinition
    types : tuple of Type
        Type arguments.
    parameters, results : tuple of Type
    locals : tuple of Type
    entry : Piece
        Where a call starts: the first piece, with the charges for the locals' types.
    max_stack : int
        Highest stack that the function itself needs.
    name : str
        As the gas log writes it.
    """

    __slots__ = ("definition", "entry", "locals", "max_stack", "name", "parameters", "results", "types")

    def __init__(self, definition: FunctionDefinition, types: tuple[t.Type, ...]) -> None:
        self.definition = definition
        self.types = types
        self.name = f"{definition}{t.type_list(types)}"
        self.parameters = t.substituted(definition.parameters, types)
        self.results = t.substituted(definition.results, types)
        self.locals = t.substituted(definition.locals, types)
        self.entry = Piece()
        self.max_stack = 0


@lru_cache(MAX_COMPILED)
def compile_function(definition: FunctionDefinition, types: tuple[t.Type, ...], schedule: Schedule) -> CompiledFunction:
    """Compile a function that is not native.

    Raises
    ------
    Unsupported
        If the code relies on what only a verifier checks, and breaks it.
    """
    return _Compiler(definition, types, schedule).code


def is_scalar(kind: t.Type) -> bool:
    """Return whether values of a type are immutable and of one size: not a container."""
    return isinstance(kind, t.Reference) or (isinstance(kind, t.Primitive) and kind is not t.SIGNER)


class _Compiler:
    """One pass over the code of a function.

    `_instruction` calls the method of an instruction, which takes types from `stack` and puts others there, adds its
    charges to `entries`, and sets what it does: `step`, or `exit` if it branches, calls or returns. `straight` says
    whether the piece goes on. If `error` is set, the instruction makes a type that is too large: it fails when charged.
    """

    def __init__(self, definition: FunctionDefinition, types: tuple[t.Type, ...], schedule: Schedule) -> None:
        self.definition = definition
        self.types = types
        self.schedule = schedule
        self.code = CompiledFunction(definition, types)
        self.locals = self.code.locals
        self.offset = 0
        self.stack: list[t.Type] = []
        self.entries: list[Entry] = []
        self.step: Step | None = None
        self.exit: Step | None = None
        self.straight = True
        self.error = cast("MoveError | None", None)
        self.sites: dict[FunctionUse, Site] = {}
        self.max_nodes, self.max_depth = schedule.max_type_nodes, schedule.max_type_depth
        self._compile()

    # Control flow.

    def _compile(self) -> None:
        code = self.definition.code
        if not code:
            raise self._refused("the function has no code")
        if (unset := unset_local(code, len(self.definition.parameters))) is not None:
            self.offset = unset[0]
            raise self._refused(f"local {unset[1]} may not be set")
        starts = {0} | {one.operand for one in code if one.name in BRANCHES}
        self.pieces: dict[int, Piece] = {at: Piece() for at in starts}
        at = 0
        previous: Piece | None = None
        while at < len(code):
            piece = self.pieces.setdefault(at, Piece())
            if previous is not None:
                previous.next = piece
            at = self._piece(piece, at, starts)
            previous = piece
        if self.code.max_stack > MAX_STACK + 1:
            raise self._refused(f"more than {MAX_STACK} values on the stack")
        self._make_entry()

    def _piece(self, piece: Piece, start: int, starts: set[int]) -> int:
        """Compile instructions until one ends the piece; return the offset after it."""
        steps, entries, offsets = [], [], []
        code = self.definition.code
        at = start
        if start in starts and self.stack:
            self.offset = start
            raise self._refused("values are left on the stack where control flow meets")
        while True:
            self.offset = at
            instruction = code[at]
            self._instruction(instruction, piece)
            at += 1
            if self.step is not None:
                steps.append(self.step)
            piece.exit = self.exit
            entries.append(tuple(self.entries))
            offsets.append(at - 1)
            self.code.max_stack = max(self.code.max_stack, len(self.stack) + 1)
            if not self.straight or at in starts or at == len(code):
                break
        if at == len(code) and instruction.name not in {"Ret", "Abort", "Branch"}:
            raise self._refused("the code has no end")
        if piece.target is not None and self.stack:
            raise self._refused("values are left on the stack at a branch")
        piece.fill(steps, entries, offsets)
        return at

    def _make_entry(self) -> None:
        """Make a piece like the first that also charges the types of the locals: loops return to the first one."""
        first = self.pieces[0]
        entry = self.code.entry
        entry.exit, entry.next, entry.target, entry.when = first.exit, first.next, first.target, first.when
        self.entries = []
        for kind in self.locals:
            self._charge_type(kind)
        head = (*self.entries, *first.entries[0])
        entry.fill(first.steps, (head, *first.entries[1:]), first.offsets)

    def _instruction(self, instruction: Instruction, piece: Piece) -> None:
        self._start_instruction()
        name = instruction.name
        if name in BRANCHES:
            self._branch(name, instruction.operand, piece)
        else:
            _METHODS[name](self, name, instruction.operand)
        if self.error is not None:
            self.step = _failing(self.error)
            self.exit = None
            self.straight = False

    def _start_instruction(self) -> None:
        self.entries, self.step, self.exit, self.straight, self.error = [], None, None, True, None

    def _branch(self, name: str, target: int, piece: Piece) -> None:
        taken = self.pieces[target]
        piece.target = target
        self.charge(name)
        if not self.entries[-1].execution:
            raise Unsupported("a gas schedule with free branches, in which loops would not end")
        self.straight = False
        if name == "Branch":
            self.exit = lambda _stack, _locals, _machine: taken
            return
        self.pop(t.BOOL)
        piece.when = name == "BrTrue"
        other = self._following()
        if_true, if_false = (taken, other) if piece.when else (other, taken)
        self.exit = lambda stack, _locals, _machine: if_true if stack.pop() else if_false

    def _following(self) -> Piece:
        if self.offset + 1 >= len(self.definition.code):
            raise self._refused("the code has no end")
        return self.pieces.setdefault(self.offset + 1, Piece())

    # Types and costs.

    def _refused(self, message: str) -> Unsupported:
        return refused(f"{self.code.name} at offset {self.offset}", message)

    def pop(self, expected: t.Type | None = None) -> t.Type:
        """Take the type of a value from the stack."""
        if not self.stack:
            raise self._refused("a value is missing on the stack")
        kind = self.stack.pop()
        if expected is not None and kind is not expected and not _assignable(kind, expected):
            raise self._refused(f"expected {expected} on the stack, got {kind}")
        return kind

    def pop_reference(self, *, mutable: bool = False) -> t.Type:
        """Take a reference from the stack; return its target."""
        kind = self.pop()
        if not isinstance(kind, t.Reference) or (mutable and not kind.mutable):
            raise self._refused(f"expected a {'mutable ' * mutable}reference on the stack, got {kind}")
        return kind.target

    def pop_integer(self, *, unsigned: bool = False) -> t.Primitive:
        """Take an integer from the stack."""
        kind = self.pop()
        if not isinstance(kind, t.Primitive) or not kind.bits or (unsigned and kind.minimum):
            raise self._refused(f"expected an integer on the stack, got {kind}")
        return kind

    def price(self, name: str, suffix: str = "") -> int:
        """Return a price of an instruction."""
        return self.schedule[f"instr.{_PRICES.get(name) or LOG_NAMES[name].lower()}{suffix}"]

    def charge(self, name: str, memory: int = 0, *, per: str = "", count: int = 0) -> None:
        """Add the instruction's charge."""
        amount = self.price(name) or self.price(name, ".base")
        if per:
            amount += self.price(name, per) * count
        self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=memory))

    def _charge_type(self, kind: t.Type) -> t.Type:
        """Add the charge for making a type, which fails if the type is too large."""
        self.entries.append(Entry("CREATE_TY", f"nodes={kind.nodes}", self.schedule.per_node * kind.nodes))
        if self.error is None:
            if kind.nodes > self.max_nodes:
                self.error = MoveError("TOO_MANY_TYPE_NODES", f"Type size is larger than maximum {self.max_nodes}")
            elif kind.depth > self.max_depth:
                self.error = MoveError("VM_MAX_TYPE_DEPTH_REACHED")
        return kind

    def make(self, kind: t.Type) -> t.Type:
        """Substitute the type arguments in a type and add the charge for it."""
        return self._charge_type(t.substitute(kind, self.types))

    def stack_size(self, kind: t.Type) -> int:
        """Return the abstract size of the top node of values of a type."""
        if isinstance(kind, t.Primitive) and kind is not t.SIGNER:
            name = kind.name
        else:
            name = {t.Vector: "vector", t.Function: "closure", t.Reference: "reference"}.get(type(kind), "struct")
        return self.schedule.sizes[name]

    def packed_size(self, kind: t.Type) -> int | None:
        """Return the abstract size of an element of a vector; None if it depends on the value."""
        if isinstance(kind, t.Vector) and isinstance(kind.element, t.Primitive) and kind.element.minimum:
            return None
        if isinstance(kind, t.Primitive) and kind is not t.SIGNER:
            return self.schedule.sizes[f"per_{kind.name}_packed"]
        return self.stack_size(kind)

    def end_with_step(self, run: Callable[..., Any]) -> None:
        """End the piece with an instruction that charges itself."""
        self.step = run
        self.straight = False

    def end_with_exit(self, run: Step) -> None:
        """End the piece with an instruction that changes the frame."""
        self.exit = run
        self.straight = False

    # Groups of instructions.

    def _nop(self, name: str, _: None) -> None:
        self.charge(name)
        self.step = ops.nothing

    def _pop(self, name: str, _: None) -> None:
        kind = self.pop()
        if is_scalar(kind):
            self.charge(name)
            self.step = ops.pop
            return
        base = self.price(name)
        self.end_with_step(lambda stack, _locals, machine: machine.drop(stack.pop(), kind, base, "POP"))

    def _return(self, name: str, _: None) -> None:
        for kind in reversed(self.code.results):
            self.pop(kind)
        if self.stack:
            raise self._refused("values are left on the stack at the return")
        self.charge(name)
        held = [(at, kind) for at, kind in enumerate(self.locals) if not is_scalar(kind)]
        if held:
            self.end_with_exit(lambda _stack, locals_, machine: machine.leave_dropping(locals_, held))
        else:
            self.end_with_exit(lambda _stack, _locals, machine: machine.leave())

    def _abort(self, name: str, _: None) -> None:
        self.pop(t.U64)
        self.charge(name)
        self.end_with_exit(lambda stack, _locals, machine: machine.abort(stack.pop()))
        self.stack.clear()

    def _load_integer(self, name: str, value: int) -> None:
        self.charge(name)
        self.stack.append(t.INTEGERS[name[2:].lower()])
        self.step = ops.load(value)

    def _load_bool(self, name: str, _: None) -> None:
        self.charge(name)
        self.stack.append(t.BOOL)
        self.step = ops.load(name == "LdTrue")

    def _load_constant(self, name: str, constant: Constant) -> None:
        kind = self.make(constant.type)
        self.charge(name, per=".per_byte", count=len(constant.data))
        layout = self._constant_layout(kind)
        value = layout.decode(constant.data)
        heap = layout.measure(value) - layout.stack
        if heap:
            self.entries.append(Entry("const", memory=heap))
        self.stack.append(kind)
        self.step = ops.load(value) if is_scalar(kind) else ops.load_copy(value, layout.copy)

    def _constant_layout(self, kind: t.Type) -> Layout:
        if isinstance(kind, t.Vector):
            return self.schedule.layouts.vector(self._constant_layout(kind.element))
        if not isinstance(kind, t.Primitive):
            raise self._refused(f"a constant of type {kind}")
        return self.schedule.layouts.primitives[kind.name]

    def _copy_local(self, name: str, index: int) -> None:
        kind = self.locals[index]
        self.stack.append(kind)
        if is_scalar(kind):
            self.charge(name, per=".per_abs_val_unit", count=self.stack_size(kind))
            self.step = ops.copy_local(index)
            return
        prices = self.price(name, ".base"), self.price(name, ".per_abs_val_unit")
        self.end_with_step(
            lambda stack, locals_, machine: stack.append(machine.copied(locals_[index], kind, prices, "COPY_LOC"))
        )

    def _move_local(self, name: str, index: int) -> None:
        self.charge(name)
        self.stack.append(self.locals[index])
        self.step = self._unless_borrowed(index, ops.move_local(index))

    def _unless_borrowed(self, index: int, step: Step) -> Step:
        """Return a step that also checks that a local is not borrowed, if the code is that of a script."""
        if self.definition.module is not None or isinstance(self.locals[index], t.Reference):
            return step

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            check_not_borrowed(locals_, index, stack)
            step(stack, locals_, machine)

        return run

    def _store_local(self, name: str, index: int) -> None:
        self.pop(self.locals[index])
        self.charge(name)
        self.step = self._unless_borrowed(index, ops.store_local(index))

    def _borrow_local(self, name: str, index: int) -> None:
        self.charge(name)
        if isinstance(self.locals[index], t.Reference):
            raise self._refused("a reference to a reference")
        self.stack.append(t.Reference(self.locals[index], name.startswith("Mut")))
        self.step = ops.borrow_local(index)

    def _freeze(self, name: str, _: None) -> None:
        self.charge(name)
        self.stack.append(t.Reference(self.pop_reference(mutable=True), False))  # noqa: FBT003
        self.step = ops.nothing

    def _read_reference(self, name: str, _: None) -> None:
        kind = self.pop_reference()
        self.stack.append(kind)
        if is_scalar(kind):
            self.charge(name, per=".per_abs_val_unit", count=self.stack_size(kind))
            self.step = ops.read_reference
            return
        prices = self.price(name, ".base"), self.price(name, ".per_abs_val_unit")
        self.end_with_step(lambda stack, _locals, machine: machine.read_reference(stack, kind, prices))

    def _write_reference(self, name: str, _: None) -> None:
        kind = self.pop_reference(mutable=True)
        self.pop(kind)
        if is_scalar(kind):
            self.charge(name)
            self.step = ops.write_reference
            return
        base = self.price(name, ".base")
        self.end_with_step(lambda stack, _locals, machine: machine.write_reference(stack, kind, base))

    def _borrow_field(self, name: str, use: FieldUse) -> None:
        arguments = t.substituted(use.arguments, self.types)
        kind = use.struct.type(arguments)
        fields = use.struct.fields
        if use.variants:
            assert use.struct.variants is not None  # noqa: S101 - by the reader
            fields = use.struct.variants[use.variants[0]].fields
        field = t.substitute(fields[use.offset].type, arguments)
        if name.endswith("Generic"):
            self._charge_type(kind)
            self._charge_type(field)
        self.charge(name)
        mutable = name.startswith("Mut")
        if self.pop_reference(mutable=mutable) is not kind:
            raise self._refused(f"expected a reference to {kind}")
        self.stack.append(t.Reference(field, mutable))
        if use.variants:
            self.step = ops.borrow_variant_field(use.struct, use.offset, use.variants)
        else:
            self.step = ops.borrow_field(use.offset)

    def _struct(self, use: StructUse | VariantUse) -> tuple[t.Struct, tuple[t.Type, ...], int | None]:
        """Return the type, the types of the fields, and the variant of what is packed or unpacked."""
        arguments = t.substituted(use.arguments, self.types)
        fields: tuple[Field, ...] = ()
        variant = None
        if isinstance(use, VariantUse):
            assert use.struct.variants is not None  # noqa: S101 - by the reader
            variant = use.variant
            fields = use.struct.variants[variant].fields
        elif use.struct.variants is None:
            fields = use.struct.fields
        else:
            raise self._refused(f"{use.struct.name} is an enum")
        return use.struct.type(arguments), tuple(t.substitute(field.type, arguments) for field in fields), variant

    def _charge_fields(self, name: str, kind: t.Type, fields: Sequence[t.Type]) -> None:
        if name.endswith("Generic"):
            for field in fields:
                self._charge_type(field)
            self._charge_type(kind)

    def _charge_packing(self, name: str, price: str, count: int, memory: int) -> None:
        """Add the charge of packing or unpacking: a variant costs what a struct costs."""
        if name.endswith("Generic"):
            price += "_generic"
        amount = self.schedule[f"instr.{price}.base"] + self.schedule[f"instr.{price}.per_field"] * count
        self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=memory))

    def _pack(self, name: str, use: StructUse | VariantUse) -> None:
        kind, fields, variant = self._struct(use)
        self._charge_fields(name, kind, fields)
        self._charge_packing(name, "pack", len(fields), sum(map(self.stack_size, fields)))
        for field in reversed(fields):
            self.pop(field)
        self.stack.append(kind)
        self.step = ops.pack(len(fields), variant)

    def _unpack(self, name: str, use: StructUse | VariantUse) -> None:
        kind, fields, variant = self._struct(use)
        self._charge_fields(name, kind, fields)
        memory = -sum(map(self.stack_size, fields))
        if variant is None:
            self._charge_packing(name, "unpack", len(fields), memory)
            self.step = ops.unpack
        else:
            memory -= self.schedule.sizes["u16"]  # of the variant's index, which counts as a field
            self._charge_packing(name, "unpack", len(fields) + 1, memory)
            self.step = ops.unpack_variant(use.struct, variant)
        self.pop(kind)
        self.stack.extend(fields)

    def _test_variant(self, name: str, use: VariantUse) -> None:
        kind = use.struct.type(t.substituted(use.arguments, self.types))
        if name.endswith("Generic"):
            self._charge_type(kind)
        self.charge(name)
        if self.pop_reference() is not kind:
            raise self._refused(f"expected a reference to {kind}")
        self.stack.append(t.BOOL)
        self.step = ops.test_variant(use.variant)

    def _integer(self, name: str, _: None) -> None:
        """Compile an instruction on one or two integers."""
        self.charge(name)
        if name in {"Shl", "Shr"}:
            self.pop(t.U8)
        kind = self.pop_integer(unsigned=name in _UNSIGNED)
        if name == "Negate":
            if not kind.minimum:
                raise self._refused(f"expected a signed integer on the stack, got {kind}")
        elif name not in {"Shl", "Shr"}:
            self.pop(kind)
        self.stack.append(t.BOOL if name in _COMPARISONS else kind)
        self.step = _FIXED_STEPS.get(name) or _INTEGER_STEPS[name](kind)

    def _cast(self, name: str, _: None) -> None:
        self.charge(name)
        source, target = self.pop_integer(), t.INTEGERS[name[4:].lower()]
        self.stack.append(target)
        self.step = ops.cast(source, target)

    def _boolean(self, name: str, _: None) -> None:
        self.charge(name)
        self.pop(t.BOOL)
        if name != "Not":
            self.pop(t.BOOL)
        self.stack.append(t.BOOL)
        self.step = _BOOLEANS[name]

    def _equal(self, name: str, _: None) -> None:
        right, left = self.pop(), self.pop()
        through = isinstance(right, t.Reference) and isinstance(left, t.Reference)
        kind, other = (right.target, left.target) if through else (right, left)  # type: ignore[attr-defined]
        if kind is not other and not _assignable(kind, other) and not _assignable(other, kind):
            raise self._refused(f"cannot compare {left} and {right}")
        self.stack.append(t.BOOL)
        step = ops.equal(through_reference=through, negated=name == "Neq")
        if is_scalar(kind):
            self.charge(name, per=".per_abs_val_unit", count=2 * self.stack_size(kind))
            self.step = step
            return
        prices = self.price(name, ".base"), self.price(name, ".per_abs_val_unit")
        log_name = LOG_NAMES[name]

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            machine.measure_equal(stack, kind, prices, log_name, through)
            step(stack, locals_, machine)

        self.end_with_step(run)

    # Vectors.

    def _element(self, kind: t.Type, *, mutable: bool = False) -> t.Type:
        """Take a reference to a vector from the stack; return the type of its elements."""
        element = t.substitute(kind, self.types)
        if self.pop_reference(mutable=mutable) is not t.Vector(element):
            raise self._refused(f"expected a reference to {t.Vector(element)}")
        return element

    def _vector_read(self, name: str, kind: t.Type) -> None:
        self.make(kind)
        self.charge(name)
        if name == "VecLen":
            self._element(kind)
            self.stack.append(t.U64)
            self.step = ops.vector_length
            return
        mutable = name == "VecMutBorrow"
        self.pop(t.U64)
        self.stack.append(t.Reference(self._element(kind, mutable=mutable), mutable))
        self.step = ops.vector_borrow

    def _vector_swap(self, name: str, kind: t.Type) -> None:
        self.make(kind)
        self.charge(name)
        self.pop(t.U64)
        self.pop(t.U64)
        self._element(kind, mutable=True)
        self.step = ops.vector_swap

    def _vector_push(self, name: str, kind: t.Type) -> None:
        element = self.make(kind)
        size = self.packed_size(element)
        self.pop(element)
        self._element(kind, mutable=True)
        if size is not None:
            self.charge(name, size)
            self.step = ops.vector_push
            return
        base = self.price(name, ".base")

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            machine.meter.charge(base, "VEC_PUSH_BACK", "", machine.layouts[element].packed(stack[-1]))
            ops.vector_push(stack, locals_, machine)

        self.end_with_step(run)

    def _vector_pop(self, name: str, kind: t.Type) -> None:
        element = self.make(kind)
        size = self.packed_size(element)
        self._element(kind, mutable=True)
        self.stack.append(element)
        base = self.price(name, ".base")

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            container, slot, _ = stack[-1]
            memory = 0
            if values := container[slot]:
                memory = -(machine.layouts[element].packed(values[-1]) if size is None else size)
            machine.meter.charge(base, "VEC_POP_BACK", "", memory)
            ops.vector_pop(stack, locals_, machine)

        self.end_with_step(run)

    def _vector_pack(self, name: str, operand: tuple[t.Type, int]) -> None:
        kind, count = operand
        element = self.make(kind)
        if count > len(self.stack):
            raise self._refused("a value is missing on the stack")
        for _ in range(count):
            self.pop(element)
        self.stack.append(t.Vector(element))
        step = ops.vector_pack(count, of_bytes=element is t.U8)
        size = self.packed_size(element)
        if size is not None:
            self.charge(name, size * count, per=".per_elem", count=count)
            self.step = step
            return
        amount = self.price(name, ".base") + self.price(name, ".per_elem") * count

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            memory = sum(map(machine.layouts[element].packed, stack[len(stack) - count :]))
            machine.meter.charge(amount, "VEC_PACK", "", memory)
            step(stack, locals_, machine)

        self.end_with_step(run)

    def _vector_unpack(self, name: str, operand: tuple[t.Type, int]) -> None:
        kind, count = operand
        element = self.make(kind)
        self.pop(t.Vector(element))
        if count > MAX_STACK:
            raise self._refused(f"{count} values do not fit on the stack")
        self.stack.extend([element] * count)
        amount = self.price(name, ".base") + self.price(name, ".per_expected_elem") * count
        step = ops.vector_unpack(count)

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            memory = sum(map(machine.layouts[element].packed, stack[-1]))
            machine.meter.charge(amount, "VEC_UNPACK", "", -memory)
            step(stack, locals_, machine)

        self.end_with_step(run)

    # Globals.

    def _global(self, name: str, use: StructUse) -> None:
        kind = use.struct.type(t.substituted(use.arguments, self.types))
        if name.endswith("Generic"):
            self._charge_type(kind)
        action = name.removesuffix("Generic")
        price = self.price(name, ".base")
        log_name = LOG_NAMES[name]
        if action == "MoveTo":
            self.pop(kind)
            if self.pop_reference() is not t.SIGNER:
                raise self._refused("expected a reference to a signer")
            self.end_with_step(lambda stack, _locals, machine: machine.move_to(stack, kind, price, log_name))
            return
        self.pop(t.ADDRESS)
        if action == "Exists":
            self.stack.append(t.BOOL)
            self.end_with_step(lambda stack, _locals, machine: machine.exists(stack, kind, price, log_name))
        elif action == "MoveFrom":
            self.stack.append(kind)
            self.end_with_step(lambda stack, _locals, machine: machine.move_from(stack, kind, price, log_name))
        else:
            mutable = action == "MutBorrowGlobal"
            self.stack.append(t.Reference(kind, mutable))
            self.end_with_step(
                lambda stack, _locals, machine: machine.borrow_global(stack, kind, price, log_name, mutable)
            )

    # Calls.

    def _call(self, _: str, use: FunctionUse) -> None:
        site = self._site(use)
        function = use.function
        for kind in reversed(t.substituted(function.parameters, site.types)):
            self.pop(kind)
        self.stack.extend(t.substituted(function.results, site.types))
        following = self._following()
        self.end_with_exit(lambda _stack, _locals, machine: machine.call(site, following))

    def _site(self, use: FunctionUse) -> Site:
        if use not in self.sites:
            self.sites[use] = Site(use, t.substituted(use.arguments or (), self.types), self.definition)
        return self.sites[use]

    def _pack_closure(self, name: str, operand: tuple[FunctionUse, int]) -> None:
        use, mask = operand
        site = self._site(use)
        parameters = t.substituted(use.function.parameters, site.types)
        captured = [kind for at, kind in enumerate(parameters) if mask >> at & 1]
        for kind in reversed(captured):
            self.pop(kind)
            if isinstance(kind, t.Reference):
                raise self._refused("a closure captures a reference")
        generic = name.endswith("Generic")
        # The price of the other instruction has a dot where an underscore was meant.
        per = self.schedule["instr.pack_closure_generic.per_arg" if generic else "instr.pack.closure.per_arg"]
        amount = self.price(name, ".base") + per * len(captured)
        self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=sum(map(self.stack_size, captured))))
        for kind in site.types:
            self._charge_type(kind)
        rest = tuple(kind for at, kind in enumerate(parameters) if not mask >> at & 1)
        abilities = t.ALL_ABILITIES if use.function.attributes else t.COPY | t.DROP | t.STORE
        self.stack.append(t.Function(rest, t.substituted(use.function.results, site.types), abilities))
        kinds = tuple(captured)
        self.end_with_step(lambda stack, _locals, machine: machine.pack_closure(stack, site, mask, kinds))

    def _call_closure(self, _: str, kind: t.Type) -> None:
        function = t.substitute(kind, self.types)
        if not isinstance(function, t.Function):
            raise self._refused(f"expected a function type, got {function}")
        self.pop(function)
        for parameter in reversed(function.parameters):
            self.pop(parameter)
        self.stack.extend(function.results)
        following = self._following()
        self.end_with_exit(lambda stack, _locals, machine: machine.call_closure(stack, function, following))


def _assignable(kind: t.Type, expected: t.Type) -> bool:
    """Return whether a function value may stand for one with fewer abilities."""
    if not isinstance(kind, t.Function) or not isinstance(expected, t.Function):
        return False
    return kind.parameters == expected.parameters and kind.results == expected.results


def _failing(error: MoveError) -> Step:
    def run(_stack: Any, _locals: Any, _machine: Any) -> None:
        again = MoveError(error.status, error.message)
        again.of_types = True
        raise again

    return run


# Which method compiles which instructions.
_GROUPS = {
    "_nop": "Nop",
    "_pop": "Pop",
    "_return": "Ret",
    "_abort": "Abort",
    "_load_integer": "LdU8 LdU16 LdU32 LdU64 LdU128 LdU256 LdI8 LdI16 LdI32 LdI64 LdI128 LdI256",
    "_load_bool": "LdTrue LdFalse",
    "_load_constant": "LdConst",
    "_copy_local": "CopyLoc",
    "_move_local": "MoveLoc",
    "_store_local": "StLoc",
    "_borrow_local": "MutBorrowLoc ImmBorrowLoc",
    "_freeze": "FreezeRef",
    "_read_reference": "ReadRef",
    "_write_reference": "WriteRef",
    "_borrow_field": "MutBorrowField* ImmBorrowField* MutBorrowVariantField* ImmBorrowVariantField*",
    "_pack": "Pack* PackVariant*",
    "_unpack": "Unpack* UnpackVariant*",
    "_test_variant": "TestVariant*",
    "_integer": "Add Sub Mul Div Mod Negate Shl Shr BitOr BitAnd Xor Lt Gt Le Ge",
    "_cast": "CastU8 CastU16 CastU32 CastU64 CastU128 CastU256 CastI8 CastI16 CastI32 CastI64 CastI128 CastI256",
    "_boolean": "Or And Not",
    "_equal": "Eq Neq",
    "_vector_read": "VecLen VecImmBorrow VecMutBorrow",
    "_vector_swap": "VecSwap",
    "_vector_push": "VecPushBack",
    "_vector_pop": "VecPopBack",
    "_vector_pack": "VecPack",
    "_vector_unpack": "VecUnpack",
    "_global": "Exists* MutBorrowGlobal* ImmBorrowGlobal* MoveFrom* MoveTo*",
    "_call": "Call*",
    "_pack_closure": "PackClosure*",
    "_call_closure": "CallClosure",
}


def _methods() -> dict[str, Callable[[_Compiler, str, Any], None]]:
    methods = {}
    for method, names in _GROUPS.items():
        for name in names.split():
            plain = name.rstrip("*")
            for one in {plain, plain + "Generic"} if name.endswith("*") else {plain}:
                methods[one] = getattr(_Compiler, method)
    return methods


_METHODS = _methods()
