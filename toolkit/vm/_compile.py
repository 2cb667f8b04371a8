"""Functions become straight pieces of steps, once per type arguments and gas schedule.

The bytecode says ``Add``, not of what. One pass over the code infers the types on the stack: in code that a node has
verified the stack of a frame is empty wherever control flow meets. The pass checks what running relies on, so code
that nobody has verified cannot confuse a vector with a number. With the types come the costs: a piece ends at the
first instruction whose cost depends on values, and at each branch, call and return. It is charged at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from toolkit.vm import _types as t
from toolkit.vm._code import BRANCHES, ENDS, LOG_NAMES
from toolkit.vm._errors import MoveError, refused
from toolkit.vm._gas import Entry
from toolkit.vm._operations import MAX_STACK, OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.errors import Unsupported
    from toolkit.vm._code import FunctionDefinition, FunctionUse, Instruction
    from toolkit.vm._operations import Step
    from toolkit.vm._schedule import Schedule

ENTRY = -1  # index of the piece at which a call starts
LEAVES = -2  # what steps return that change the frame
MAX_COMPILED = 4_096  # functions in the cache of the process

_READS = {"CopyLoc", "MoveLoc", "MutBorrowLoc", "ImmBorrowLoc"}
# Instructions whose price is not named like them; a variant costs what a struct costs.
_PRICES = {"Xor": "bit_xor", "Shl": "bit_shl", "Shr": "bit_shr"}
_PRICES |= {"PackVariant": "pack", "UnpackVariant": "unpack"}
_PRICES |= {"PackVariantGeneric": "pack_generic", "UnpackVariantGeneric": "unpack_generic"}


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
    def of(cls, steps: Iterable[Step], end: int, entries: Iterable[Entry]) -> Piece:
        """Return a piece with the sums of its charges."""
        entries = tuple(entries)
        taken = list(accumulate((entry.memory for entry in entries), initial=0))
        cost = sum(entry.execution or 0 for entry in entries)
        return cls(tuple(steps), end, entries, cost, taken[-1], max(taken))


@dataclass(slots=True, eq=False)
class CompiledFunction:
    """A compiled function.

    Attributes
    ----------
    definition : FunctionDefinition
    name : str
        As the gas log writes it.
    types : tuple of Type
        Type arguments.
    parameters, results, locals : tuple of Type
    singles : list of Piece
        Each instruction by its offset. One more, at `ENTRY`, is the first with the charges for the locals' types: loops
        return to the first one without them.
    pieces : list of Piece
        The same, but those at which straight code starts reach to its end.
    max_stack : int
        Highest stack that the function itself needs.
    """

    definition: FunctionDefinition
    name: str
    types: tuple[t.Type, ...]
    parameters: tuple[t.Type, ...]
    results: tuple[t.Type, ...]
    locals: tuple[t.Type, ...]
    singles: list[Piece] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    max_stack: int = 0


@lru_cache(MAX_COMPILED)
def compile_function(definition: FunctionDefinition, types: tuple[t.Type, ...], schedule: Schedule) -> CompiledFunction:
    """Compile a function that is not native.

    Raises
    ------
    Unsupported
        If the code relies on what only a verifier checks, and breaks it.
    """
    compiler = Compiler(definition, types, schedule)
    compiler.run()
    return compiler.code


class Compiler:
    """One pass over the code of a function; the operations of the instructions use it.

    Attributes
    ----------
    locals : tuple of Type
    stack : list of Type
        Types of the values on the stack.
    offset : int
        Of the instruction.
    entries : list of Entry
        Its charges.
    error : MoveError or None
        If the instruction makes a type that is too large, with which it fails when it has been charged.
    """

    def __init__(self, definition: FunctionDefinition, types: tuple[t.Type, ...], schedule: Schedule) -> None:
        self.definition, self.types, self.schedule = definition, types, schedule
        self.layouts = schedule.layouts
        self.locals = self.substituted(definition.locals)
        parameters, results = self.substituted(definition.parameters), self.substituted(definition.results)
        name = f"{definition}{t.type_list(types)}"
        self.code = CompiledFunction(definition, name, types, parameters, results, self.locals)
        self.offset = 0
        self.stack: list[t.Type] = []
        self.entries: list[Entry] = []
        self.error: MoveError | None = None
        self._starts = {0}  # of pieces
        self._sites: dict[FunctionUse, Site] = {}

    # Control flow.

    def run(self) -> None:
        """Compile all instructions."""
        code, singles = self.definition.code, self.code.singles
        if not code or code[-1].name not in ENDS:
            raise self.refused("the code has no end")
        if (unset := unset_local(code, len(self.definition.parameters))) is not None:
            self.offset = unset[0]
            raise self.refused(f"local {unset[1]} may not be set")
        targets = {one.operand for one in code if one.name in BRANCHES}
        head, too_large = self._charge_locals()
        for self.offset, (name, operand) in enumerate(code):
            if self.stack and self.offset in targets:
                raise self.refused("values are left on the stack where control flow meets")
            singles.append(self._single(name, operand))
            if self.stack and name in BRANCHES:
                raise self.refused("values are left on the stack at a branch")
            self.code.max_stack = max(self.code.max_stack, len(self.stack) + 1)
        if self.code.max_stack > MAX_STACK + 1:
            raise self.refused(f"more than {MAX_STACK} values on the stack")
        pieces = self.code.pieces = singles[:]
        for start, end in pairwise(sorted(self._starts | targets)):
            parts = singles[start:end]
            entries = (entry for part in parts for entry in part.entries)
            pieces[start] = Piece.of((part.steps[0] for part in parts), end, entries)
        for each in (singles, pieces):
            first = Piece.of(each[0].steps, each[0].end, (*head, *each[0].entries))
            each.append(first if too_large is None else Piece.of([_fail(too_large)], 1, head))

    def _charge_locals(self) -> tuple[list[Entry], MoveError | None]:
        """Return the charges for the types of the locals, up to the first that is too large, and its error."""
        for kind in self.locals:
            self._charge_type(kind)
            if self.error is not None:
                break
        return self.entries, self.error

    def _single(self, name: str, operand: Any) -> Piece:
        self.entries, self.error = [], cast("MoveError | None", None)
        operation = OPERATIONS[name]
        step = operation.compile(self, name, operand)
        if not operation.charges:
            self.charge(name)
        return Piece.of([step if self.error is None else _fail(self.error)], self.offset + 1, self.entries)

    def end_piece(self) -> None:
        """End a piece: the instruction charges itself, branches or changes the frame."""
        self._starts.add(self.offset + 1)

    # Types.

    def refused(self, message: str) -> Unsupported:
        """Return the error for code that breaks a rule."""
        return refused(f"{self.code.name} at offset {self.offset}", message)

    def pop(self, expected: t.Type | None = None) -> t.Type:
        """Take the type of a value from the stack."""
        if not self.stack:
            raise self.refused("a value is missing on the stack")
        kind = self.stack.pop()
        if expected is not None and not t.assignable(kind, expected):
            raise self.refused(f"expected {expected} on the stack, got {kind}")
        return kind

    def pop_all(self, expected: Sequence[t.Type]) -> None:
        """Take the types of several values, of which the last is on top."""
        for kind in reversed(expected):
            self.pop(kind)

    def pop_reference(self, expected: t.Type | None = None, *, mutable: bool = False) -> t.Type:
        """Take a reference from the stack; return its target."""
        kind = self.pop()
        if not isinstance(kind, t.Reference) or (mutable and not kind.mutable):
            raise self.refused(f"expected a {'mutable ' * mutable}reference on the stack, got {kind}")
        if expected is not None and kind.target is not expected:
            raise self.refused(f"expected a reference to {expected}")
        return kind.target

    def pop_integer(self, *, unsigned: bool = False) -> t.Primitive:
        """Take an integer from the stack."""
        kind = self.pop()
        if not isinstance(kind, t.Primitive) or not kind.bits or (unsigned and kind.minimum):
            raise self.refused(f"expected an integer on the stack, got {kind}")
        return kind

    def substituted(self, kinds: Sequence[t.Type]) -> tuple[t.Type, ...]:
        """Replace the function's type parameters in types."""
        return t.substituted(kinds, self.types)

    def make(self, kind: t.Type) -> t.Type:
        """Replace the function's type parameters in a type, which is charged."""
        return self._charge_type(t.substitute(kind, self.types))

    def site(self, use: FunctionUse) -> Site:
        """Return a place that calls; those of one instance of a function are one."""
        if use not in self._sites:
            self._sites[use] = Site(use, self.substituted(use.arguments or ()), self.definition)
        return self._sites[use]

    # Costs.

    def price(self, name: str, suffix: str = "") -> int:
        """Return a price of an instruction."""
        return self.schedule[f"instr.{_PRICES.get(name) or LOG_NAMES[name].lower()}{suffix}"]

    def base_price(self, name: str) -> int:
        """Return what an instruction costs whatever it works on: its one price, or the base of several."""
        return self.price(name) or self.price(name, ".base")

    def measured_prices(self, name: str) -> tuple[int, int]:
        """Return the prices of an instruction that charges itself: its own, and that per unit of abstract size."""
        self.end_piece()
        return self.base_price(name), self.price(name, ".per_abs_val_unit")

    def charge(self, name: str, memory: int = 0, *, per: str = "", count: int = 0) -> None:
        """Add the instruction's charge."""
        amount = self.base_price(name)
        if per:
            amount += self.price(name, per) * count
        self.entries.append(Entry(LOG_NAMES[name], "", amount, memory=memory))

    def charge_types(self, name: str, *kinds: t.Type) -> None:
        """Add the charges for the types that a generic instruction makes."""
        if name.endswith("Generic"):
            for kind in kinds:
                self._charge_type(kind)

    def _charge_type(self, kind: t.Type) -> t.Type:
        schedule = self.schedule
        self.entries.append(Entry("CREATE_TY", f"nodes={kind.nodes}", schedule.per_node * kind.nodes))
        if self.error is None:
            if kind.nodes > schedule.max_type_nodes:
                text = f"Type size is larger than maximum {schedule.max_type_nodes}"
                self.error = MoveError("TOO_MANY_TYPE_NODES", text)
            elif kind.depth > schedule.max_type_depth:
                self.error = MoveError("VM_MAX_TYPE_DEPTH_REACHED")
        return kind

    def stack_size(self, kind: t.Type) -> int:
        """Return the abstract size of the top node of values of a type."""
        if isinstance(kind, t.Primitive):
            return self.layouts.primitives[kind.name].stack
        name = {t.Vector: "vector", t.Function: "closure", t.Reference: "reference"}.get(type(kind), "struct")
        return self.schedule.sizes[name]

    def stack_sizes(self, kinds: Iterable[t.Type]) -> int:
        """Return the sum of several."""
        return sum(map(self.stack_size, kinds))

    def packed(self, kind: t.Type) -> Callable[[Any], int]:
        """Return what measures an element of a vector; that of a vector may depend on the value."""
        primitives = self.layouts.primitives
        if isinstance(kind, t.Primitive):
            return primitives[kind.name].packed
        if isinstance(kind, t.Vector) and isinstance(kind.element, t.Primitive):
            return self.layouts.vector(primitives[kind.element.name]).packed
        size = self.stack_size(kind)
        return lambda _: size


def unset_local(code: Sequence[Instruction], parameters: int) -> tuple[int, int] | None:
    """Return an instruction that may read a local that is not set.

    Parameters
    ----------
    code : sequence of Instruction
    parameters : int
        Number of parameters: they are set at the start.

    Returns
    -------
    (int, int) or None
        Offset of the instruction, and the local.
    """
    # Bits of the locals that are set before each instruction; one is visited again when a bit is lost.
    known = {0: (1 << parameters) - 1}
    waiting = [0]
    while waiting:
        at = waiting.pop()
        name, operand = code[at]
        held = known[at]
        if name in _READS and not held >> operand & 1:
            return at, operand
        if name == "MoveLoc":
            held &= ~(1 << operand)
        elif name == "StLoc":
            held |= 1 << operand
        followers = [operand] if name in BRANCHES else []
        if name not in ENDS:
            followers.append(at + 1)
        for follower in followers:
            kept = held & known.get(follower, held)
            if kept != known.get(follower):
                known[follower] = kept
                waiting.append(follower)
    return None


def _fail(error: MoveError) -> Step:
    def run(_stack: Any, _locals: Any, _machine: Any) -> None:
        again = MoveError(error.status, error.message)
        again.of_types = True
        raise again

    return run
