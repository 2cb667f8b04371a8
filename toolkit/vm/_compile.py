"""Functions become straight pieces of steps, once per type arguments and gas schedule.

The bytecode says ``Add``, not of what. One pass over the code infers the types on the stack: in code that a node has
verified the stack of a frame is empty wherever control flow meets. The pass checks what running relies on, so code
that nobody has verified cannot confuse a vector with a number. With the types come the costs: a piece ends at the
first instruction whose cost depends on values, and at each branch, call and return. It is charged at once.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolkit.errors import Unsupported
from toolkit.vm import _operations as ops
from toolkit.vm import _types as t
from toolkit.vm._checks import check_not_borrowed, refused, unset_local
from toolkit.vm._code import Constant, Field, FieldUse, FunctionUse, StructUse, VariantUse
from toolkit.vm._errors import MoveError
from toolkit.vm._gas import Entry
from toolkit.vm._instructions import BRANCHES, ENDS, LOG_NAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._layouts import Layout
    from toolkit.vm._operations import Step
    from toolkit.vm._schedule import Schedule

MAX_STACK = 1024
ENTRY = -1  # index of the piece at which a call starts
LEAVES = -2  # what steps return that change the frame
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
_BRANCHES = {"Branch": ops.branch, "BrTrue": ops.branch_if, "BrFalse": ops.branch_unless}
_INTEGER_STEPS |= {"Negate": ops.negate, "Shl": ops.shift_left, "Shr": ops.shift_right}


@dataclass(slots=True, eq=False)
class Site:
    """An instance of a function that a function calls; the machine resolves it at the first call of an execution.

    Attributes
    ----------
    use : FunctionUse
    types : tuple of Type
        Type arguments of the callee.
    caller : FunctionDefinition
    """

    use: FunctionUse
    types: tuple[t.Type, ...]
    caller: FunctionDefinition


class Piece(NamedTuple):
    """Instructions that run one after the other.

    Attributes
    ----------
    steps : tuple of callable
        One for each instruction. All return None, but the last may return the offset at which to go on, or `LEAVES`.
    end : int
        Offset of the instruction after the last.
    entries : tuple of Entry
        The charges that are known before they run. Only the last makes others, which depend on values, itself.
    cost, memory, peak : int
        Sums of the entries, and the most memory that is needed until the end.
    """

    steps: tuple[Step, ...]
    end: int
    entries: tuple[Entry, ...]
    cost: int
    memory: int
    peak: int

    @classmethod
    def of(cls, steps: Iterable[Step], end: int, entries: Sequence[Entry]) -> Piece:
        """Return a piece with the sums of its charges."""
        taken = list(accumulate((entry.memory for entry in entries), initial=0))
        cost = sum(entry.execution or 0 for entry in entries)
        return cls(tuple(steps), end, tuple(entries), cost, taken[-1], max(taken))


class CompiledFunction:
    """A compiled function.

    Attributes
    ----------
    definition : FunctionDefinition
    types : tuple of Type
        Type arguments.
    parameters, results : tuple of Type
    locals : tuple of Type
    singles : list of Piece
        Each instruction by its offset. One more, at `ENTRY`, is the first with the charges for the locals' types: loops
        return to the first one without them.
    pieces : list of Piece
        The same, but those at which straight code starts reach to its end.
    max_stack : int
        Highest stack that the function itself needs.
    name : str
        As the gas log writes it.
    """

    __slots__ = ("definition", "locals", "max_stack", "name", "parameters", "pieces", "results", "singles", "types")

    def __init__(self, definition: FunctionDefinition, types: tuple[t.Type, ...]) -> None:
        self.definition = definition
        self.types = types
        self.name = f"{definition}{t.type_list(types)}"
        self.parameters = t.substituted(definition.parameters, types)
        self.results = t.substituted(definition.results, types)
        self.locals = t.substituted(definition.locals, types)
        self.singles: list[Piece] = []
        self.pieces: list[Piece] = []
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

    The method of an instruction takes types from `stack` and puts others there, adds its charges to `entries`, and sets
    what it does: `step`, or `end_with` if it charges itself, branches or changes the frame. If `error` is set, the
    instruction makes a type that is too large: it fails when charged.
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
        self.step: Step = ops.nothing
        self.starts = {0}
        self.error: MoveError | None = None
        self.sites: dict[FunctionUse, Site] = {}
        self.max_nodes, self.max_depth = schedule.max_type_nodes, schedule.max_type_depth
        self._compile()

    # Control flow.

    def _compile(self) -> None:
        code, singles = self.definition.code, self.code.singles
        if not code or code[-1].name not in ENDS:
            raise self._refused("the code has no end")
        if (unset := unset_local(code, len(self.definition.parameters))) is not None:
            self.offset = unset[0]
            raise self._refused(f"local {unset[1]} may not be set")
        targets = {one.operand for one in code if one.name in BRANCHES}
        head, refused = self._charge_locals()
        for self.offset, (name, operand) in enumerate(code):
            if self.stack and self.offset in targets:
                raise self._refused("values are left on the stack where control flow meets")
            self.entries, self.step = [], ops.nothing
            self.error = cast("MoveError | None", None)
            _METHODS[name](self, name, operand)
            if self.stack and name in BRANCHES:
                raise self._refused("values are left on the stack at a branch")
            step = self.step if self.error is None else _failing(self.error)
            singles.append(Piece.of([step], self.offset + 1, self.entries))
            self.code.max_stack = max(self.code.max_stack, len(self.stack) + 1)
        if self.code.max_stack > MAX_STACK + 1:
            raise self._refused(f"more than {MAX_STACK} values on the stack")
        pieces = self.code.pieces = singles[:]
        for start, end in pairwise(sorted(self.starts | targets)):
            parts = singles[start:end]
            entries = [entry for part in parts for entry in part.entries]
            pieces[start] = Piece.of([part.steps[0] for part in parts], end, entries)
        for each in (singles, pieces):
            entry = Piece.of(each[0].steps, each[0].end, (*head, *each[0].entries))
            each.append(entry if refused is None else Piece.of([_failing(refused)], 1, head))

    def end_with(self, step: Step) -> None:
        """Set what an instruction does that ends a piece."""
        self.step = step
        self.starts.add(self.offset + 1)

    def _branch(self, name: str, target: int) -> None:
        if not self.price(name):
            raise Unsupported("a gas schedule with free branches, in which loops would not end")
        # The log names the target of a branch that is taken.
        self.entries.append(Entry(LOG_NAMES[name], f"@{target}", self.price(name)))
        if name != "Branch":
            self.pop(t.BOOL)
        self.end_with(_BRANCHES[name](target))

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

    def base_price(self, name: str) -> int:
        """Return what an instruction costs whatever it works on: its one price, or the base of several."""
        return self.price(name) or self.price(name, ".base")

    def charge(self, name: str, memory: int = 0, *, per: str = "", count: int = 0) -> None:
        """Add the instruction's charge."""
        amount = self.base_price(name)
        if per:
            amount += self.price(name, per) * count
        self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=memory))

    def _charge_locals(self) -> tuple[list[Entry], MoveError | None]:
        """Return the charges for the types of the locals, up to the first that is too large, and its error."""
        for kind in self.locals:
            self._charge_type(kind)
            if self.error is not None:
                break
        return self.entries, self.error

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
        if isinstance(kind, t.Primitive):
            return self.schedule.layouts.primitives[kind.name].stack
        name = {t.Vector: "vector", t.Function: "closure", t.Reference: "reference"}.get(type(kind), "struct")
        return self.schedule.sizes[name]

    def packed(self, kind: t.Type) -> Callable[[Any], int]:
        """Return what measures an element of a vector; that of a vector may depend on the value."""
        primitives = self.schedule.layouts.primitives
        if isinstance(kind, t.Primitive):
            return primitives[kind.name].packed
        if isinstance(kind, t.Vector) and isinstance(kind.element, t.Primitive):
            return self.schedule.layouts.vector(primitives[kind.element.name]).packed
        size = self.stack_size(kind)
        return lambda _: size

    # Groups of instructions.

    def _nop(self, name: str, _: None) -> None:
        self.charge(name)

    def _pop(self, name: str, _: None) -> None:
        kind = self.pop()
        if is_scalar(kind):
            self.charge(name)
            self.step = ops.pop
            return
        base = self.price(name)
        self.end_with(lambda stack, _locals, machine: machine.drop(stack.pop(), kind, base, "POP"))

    def _return(self, name: str, _: None) -> None:
        for kind in reversed(self.code.results):
            self.pop(kind)
        if self.stack:
            raise self._refused("values are left on the stack at the return")
        self.charge(name)
        held = {at: kind for at, kind in enumerate(self.locals) if not is_scalar(kind)}
        self.end_with(lambda _stack, locals_, machine: machine.leave(locals_, held))

    def _abort(self, name: str, _: None) -> None:
        self.pop(t.U64)
        self.charge(name)
        offset = self.offset
        self.end_with(lambda stack, _locals, machine: machine.abort(stack.pop(), offset))
        self.stack.clear()

    def _load_integer(self, name: str, value: int) -> None:
        self.charge(name)
        self.stack.append(t.INTEGERS[name[2:].lower()])
        self.step = lambda stack, _locals, _machine: stack.append(value)

    def _load_bool(self, name: str, _: None) -> None:
        self.charge(name)
        self.stack.append(t.BOOL)
        value = name == "LdTrue"
        self.step = lambda stack, _locals, _machine: stack.append(value)

    def _load_constant(self, name: str, constant: Constant) -> None:
        kind = self.make(constant.type)
        self.charge(name, per=".per_byte", count=len(constant.data))
        layout = self._constant_layout(kind)
        value = layout.decode(constant.data)
        heap = layout.measure(value) - layout.stack
        if heap:
            self.entries.append(Entry("const", memory=heap))
        self.stack.append(kind)
        self.step = lambda stack, _locals, _machine: stack.append(layout.copy(value))

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
            self.step = lambda stack, locals_, _machine: stack.append(locals_[index])
            return
        prices = self.price(name, ".base"), self.price(name, ".per_abs_val_unit")
        self.end_with(
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
        self.step = lambda stack, locals_, _machine: stack.append((locals_, index, None))

    def _freeze(self, name: str, _: None) -> None:
        self.charge(name)
        self.stack.append(t.Reference(self.pop_reference(mutable=True), False))  # noqa: FBT003

    def _read_reference(self, name: str, _: None) -> None:
        kind = self.pop_reference()
        self.stack.append(kind)
        if is_scalar(kind):
            self.charge(name, per=".per_abs_val_unit", count=self.stack_size(kind))
            self.step = ops.read_reference
            return
        prices = self.price(name, ".base"), self.price(name, ".per_abs_val_unit")
        self.end_with(lambda stack, _locals, machine: machine.read_reference(stack, kind, prices))

    def _write_reference(self, name: str, _: None) -> None:
        kind = self.pop_reference(mutable=True)
        self.pop(kind)
        if is_scalar(kind):
            self.charge(name)
            self.step = ops.write_reference
            return
        base = self.price(name, ".base")
        self.end_with(lambda stack, _locals, machine: machine.write_reference(stack, kind, base))

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

        self.end_with(run)

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

    def _measured(self, name: str, amount: int, memory: Callable[[Any], int], step: Step) -> None:
        """Set a step before which memory is taken that depends on the stack."""
        log_name = LOG_NAMES[name]

        def run(stack: Any, locals_: Any, machine: Any) -> None:
            machine.meter.charge(amount, log_name, "", memory(stack))
            step(stack, locals_, machine)

        self.end_with(run)

    def _filled(self, name: str, element: t.Type, count: int, amount: int, step: Step) -> None:
        """Set a step that puts elements from the stack into a vector; vectors of signed integers are measured."""
        packed = self.packed(element)
        if isinstance(element, t.Vector) and isinstance(element.element, t.Primitive) and element.element.minimum:
            self._measured(name, amount, lambda stack: sum(map(packed, stack[len(stack) - count :])), step)
        else:
            self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=packed(None) * count))
            self.step = step

    def _vector_push(self, name: str, kind: t.Type) -> None:
        element = self.make(kind)
        self.pop(element)
        self._element(kind, mutable=True)
        self._filled(name, element, 1, self.base_price(name), ops.vector_push)

    def _vector_pop(self, name: str, kind: t.Type) -> None:
        element = self.make(kind)
        self._element(kind, mutable=True)
        self.stack.append(element)
        packed = self.packed(element)

        def memory(stack: Any) -> int:
            container, slot, _ = stack[-1]
            return -sum(map(packed, container[slot][-1:]))

        self._measured(name, self.base_price(name), memory, ops.vector_pop)

    def _vector_pack(self, name: str, operand: tuple[t.Type, int]) -> None:
        kind, count = operand
        element = self.make(kind)
        if count > len(self.stack):
            raise self._refused("a value is missing on the stack")
        for _ in range(count):
            self.pop(element)
        self.stack.append(t.Vector(element))
        amount = self.base_price(name) + self.price(name, ".per_elem") * count
        self._filled(name, element, count, amount, ops.vector_pack(count, of_bytes=element is t.U8))

    def _vector_unpack(self, name: str, operand: tuple[t.Type, int]) -> None:
        kind, count = operand
        element = self.make(kind)
        self.pop(t.Vector(element))
        if count > MAX_STACK:
            raise self._refused(f"{count} values do not fit on the stack")
        self.stack.extend([element] * count)
        packed = self.packed(element)
        amount = self.base_price(name) + self.price(name, ".per_expected_elem") * count
        self._measured(name, amount, lambda stack: -sum(map(packed, stack[-1])), ops.vector_unpack(count))

    # Globals.

    def _global(self, name: str, use: StructUse) -> None:
        kind = use.struct.type(t.substituted(use.arguments, self.types))
        if name.endswith("Generic"):
            self._charge_type(kind)
        action = name.removesuffix("Generic")
        if action == "MoveTo":
            self.pop(kind)
            if self.pop_reference() is not t.SIGNER:
                raise self._refused("expected a reference to a signer")
        else:
            self.pop(t.ADDRESS)
            left = {"Exists": t.BOOL, "MoveFrom": kind}.get(action)
            self.stack.append(left or t.Reference(kind, action == "MutBorrowGlobal"))
        self.end_with(ops.GLOBALS[action](kind, self.price(name, ".base"), LOG_NAMES[name]))

    # Calls.

    def _call(self, _: str, use: FunctionUse) -> None:
        site = self._site(use)
        function = use.function
        for kind in reversed(t.substituted(function.parameters, site.types)):
            self.pop(kind)
        self.stack.extend(t.substituted(function.results, site.types))
        following = self.offset + 1
        self.end_with(lambda _stack, _locals, machine: machine.call(site, following))

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
        self.end_with(lambda stack, _locals, machine: machine.pack_closure(stack, site, mask, kinds))

    def _call_closure(self, _: str, kind: t.Type) -> None:
        function = t.substitute(kind, self.types)
        if not isinstance(function, t.Function):
            raise self._refused(f"expected a function type, got {function}")
        self.pop(function)
        for parameter in reversed(function.parameters):
            self.pop(parameter)
        self.stack.extend(function.results)
        following = self.offset + 1
        self.end_with(lambda stack, _locals, machine: machine.call_closure(stack, function, following))


def _assignable(kind: t.Type, expected: t.Type) -> bool:
    """Return whether a function value may stand for another: abilities are not compared; the ledger verified them."""
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
    "_branch": "Branch BrTrue BrFalse",
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
