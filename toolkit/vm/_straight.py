"""Straight-line scripts, which make calls in a row: checked as the verifier of a node checks them.

Types, locals and references are followed in one pass, since there are no branches. A node makes a pass for each; of
several errors, the one of its earliest pass counts. A reference is a number. `borrows` has the references that were
made from each reference or local and are still in use.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from toolkit.vm import _types as t
from toolkit.vm._errors import MoveError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolkit.vm._code import FunctionDefinition, FunctionUse, StructHandle

_ENDS = {"Ret", "Abort"}
_INSTRUCTIONS = {"CopyLoc", "MoveLoc", "StLoc", "ImmBorrowLoc", "MutBorrowLoc", "Call", "CallGeneric", "Pop", "LdU64"}


def is_straight(main: FunctionDefinition) -> bool:
    """Return whether a script is not generic and only makes calls in a row, until it returns or aborts."""
    *body, last = (one.name for one in main.code) if main.code else ("",)
    return last in _ENDS and _INSTRUCTIONS.issuperset(body) and not main.type_parameters


def check_straight(main: FunctionDefinition, structs: Iterable[StructHandle]) -> None:
    """Check a straight-line script.

    Parameters
    ----------
    main : FunctionDefinition
    structs : iterable of StructHandle
        The structs that it names.

    Raises
    ------
    MoveError
        With the status of a node, and the offset of the instruction. If a value without drop is left over,
        ``sub_status`` is its local.
    """
    _Checker(main, structs).run()


class _Pass(IntEnum):
    """The passes of a node, in order."""

    SIGNATURES = 0
    STACK = 1
    TYPES = 2
    LOCALS = 3
    REFERENCES = 4


class _Checker:
    def __init__(self, main: FunctionDefinition, structs: Iterable[StructHandle]) -> None:
        self.main = main
        self.handles = {(one.module, one.name): one for one in structs}
        self.offset = 0
        self.errors: dict[_Pass, MoveError] = {}  # the first of each pass
        self.stack: list[tuple[t.Type, int]] = []  # type, and the reference or -1
        self.held: dict[int, int] = {}  # by local that is set: the reference in it, or -1
        self.borrows: dict[tuple[str, int], set[int]] = {("local", at): set() for at in range(len(main.locals))}
        self.mutable: list[bool] = []  # by reference
        for local, kind in enumerate(main.parameters):
            self.held[local] = self.reference(mutable=kind.mutable) if isinstance(kind, t.Reference) else -1

    def run(self) -> None:
        """Follow the instructions."""
        for offset, (name, operand) in enumerate(self.main.code):
            self.offset = offset
            match name:
                case "CopyLoc" | "MoveLoc":
                    self.load(name, operand)
                case "ImmBorrowLoc" | "MutBorrowLoc":
                    self.borrow(operand, mutable=name == "MutBorrowLoc")
                case "StLoc":
                    self.store(operand)
                case "Call" | "CallGeneric":
                    self.call(operand)
                case "LdU64":
                    self.stack.append((t.U64, -1))
                case _:
                    self.end(name)
        if self.stack:
            self.note(_Pass.STACK, "POSITIVE_STACK_SIZE_AT_BLOCK_END")
        for kind in self.main.locals:
            self.check_type(kind)
        self.finish()

    def note(self, kind: _Pass, status: str, message: str | None = None, local: int | None = None) -> None:
        """Note an error of the current instruction."""
        self.errors.setdefault(kind, MoveError(status, message, sub_status=local).at("script", 0, self.offset))

    def finish(self) -> None:
        """Raise the error of the earliest pass, if there is one."""
        if self.errors:
            raise self.errors[min(self.errors)]

    def abilities(self, kind: t.Type) -> int:
        """Return the abilities of values of a type."""
        return t.abilities(kind, lambda struct: self.handles[struct.module, struct.name])

    def check_type(self, kind: t.Type) -> None:
        """Check that type arguments have the abilities that structs need."""
        if isinstance(kind, t.Struct):
            handle = self.handles[kind.module, kind.name]
            self.check_arguments(kind.arguments, [one.abilities for one in handle.type_parameters])
        for part in kind.parts:
            self.check_type(part)

    def check_arguments(self, arguments: Sequence[t.Type], constraints: Sequence[int]) -> None:
        """Check type arguments against the abilities that they must have."""
        for argument, needed in zip(arguments, constraints, strict=True):
            missing = needed & ~self.abilities(argument)
            if missing:
                names = ", ".join(name for name, bit in t.ABILITIES.items() if missing & bit)
                self.note(_Pass.SIGNATURES, "CONSTRAINT_NOT_SATISFIED", f"type argument {argument} lacks {names}")

    def pop(self) -> tuple[t.Type, int]:
        """Take the value on top of the stack."""
        if not self.stack:
            self.note(_Pass.STACK, "NEGATIVE_STACK_SIZE_WITHIN_BLOCK")
            self.finish()  # what follows makes no sense
        return self.stack.pop()

    def load(self, name: str, local: int) -> None:
        """Copy or move a local."""
        kind, held, word = self.main.locals[local], self.held.get(local), name.upper()
        borrowed = self.borrows["local", local]
        if name == "CopyLoc" and not self.abilities(kind) & t.COPY:
            self.note(_Pass.TYPES, "COPYLOC_WITHOUT_COPY_ABILITY")
        if held is None:
            self.note(_Pass.LOCALS, f"{word}_UNAVAILABLE_ERROR")
            held = self.reference(mutable=kind.mutable) if isinstance(kind, t.Reference) else -1
        if any(self.mutable[one] for one in borrowed) or (borrowed and name == "MoveLoc"):
            self.note(_Pass.REFERENCES, f"{word}_EXISTS_BORROW_ERROR")
        if name == "MoveLoc":
            self.held.pop(local, None)
        elif held >= 0:
            held = self.derived(("reference", held), mutable=self.mutable[held])
        self.stack.append((kind, held))

    def borrow(self, local: int, *, mutable: bool) -> None:
        """Make a reference to a local."""
        kind = self.main.locals[local]
        if isinstance(kind, t.Reference):
            self.note(_Pass.TYPES, "BORROWLOC_REFERENCE_ERROR")
        if local not in self.held:
            self.note(_Pass.LOCALS, "BORROWLOC_UNAVAILABLE_ERROR")
        if not mutable and any(self.mutable[one] for one in self.borrows["local", local]):
            self.note(_Pass.REFERENCES, "BORROWLOC_EXISTS_BORROW_ERROR")
        self.stack.append((t.Reference(kind, mutable), self.derived(("local", local), mutable=mutable)))

    def store(self, local: int) -> None:
        """Store the value on top of the stack in a local."""
        kind, reference = self.pop()
        expected, held = self.main.locals[local], self.held.get(local)
        if kind is not expected:
            self.note(_Pass.TYPES, "STLOC_TYPE_MISMATCH_ERROR")
        if held is not None:
            if not self.abilities(expected) & t.DROP:
                self.note(_Pass.LOCALS, "STLOC_UNSAFE_TO_DESTROY_ERROR")
            if self.borrows["local", local]:
                self.note(_Pass.REFERENCES, "STLOC_UNSAFE_TO_DESTROY_ERROR")
            self.release(held)
        self.held[local] = reference

    def call(self, use: FunctionUse) -> None:
        """Call a function: what it returns by reference may be part of what it was passed by reference."""
        function, types = use.function, use.arguments or ()
        self.check_arguments(types, function.type_parameters)
        for kind in types:
            self.check_type(kind)
        expected = t.substituted(function.parameters, types)
        arguments = [self.pop() for _ in expected][::-1]
        if any(kind is not wanted for (kind, _), wanted in zip(arguments, expected, strict=True)):
            self.note(_Pass.TYPES, "CALL_TYPE_MISMATCH_ERROR")
        passed = [reference for _, reference in arguments if reference >= 0]
        if any(self.mutable[one] and self.borrows["reference", one] for one in passed):
            self.note(_Pass.REFERENCES, "CALL_BORROWED_MUTABLE_REFERENCE_ERROR")
        for kind in t.substituted(function.results, types):
            reference = -1
            if isinstance(kind, t.Reference):
                reference = self.reference(mutable=kind.mutable)
                for one in passed:
                    if self.mutable[one] or not kind.mutable:
                        self.borrows["reference", one].add(reference)
            self.stack.append((kind, reference))
        for one in passed:
            self.release(one)

    def end(self, name: str) -> None:
        """Drop a value, abort, or return, which drops what the locals still hold."""
        if name == "Ret":
            for local in self.held:
                if not self.abilities(self.main.locals[local]) & t.DROP:
                    self.note(_Pass.LOCALS, "UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP", local=local)
            return
        kind, reference = self.pop()
        if name == "Abort" and kind is not t.U64:
            self.note(_Pass.TYPES, "ABORT_TYPE_MISMATCH_ERROR")
        if not self.abilities(kind) & t.DROP:
            self.note(_Pass.TYPES, "POP_WITHOUT_DROP_ABILITY")
        self.release(reference)

    # References.

    def reference(self, *, mutable: bool) -> int:
        """Return a new reference."""
        self.mutable.append(mutable)
        new = len(self.mutable) - 1
        self.borrows["reference", new] = set()
        return new

    def derived(self, parent: tuple[str, int], *, mutable: bool) -> int:
        """Return a new reference to all of a local or of what a reference points to.

        It comes between that and the references that were made before.
        """
        new = self.reference(mutable=mutable)
        self.borrows["reference", new] = self.borrows[parent]
        self.borrows[parent] = {new}
        return new

    def release(self, reference: int) -> None:
        """End a reference: what was made from it counts as made from what it was made from."""
        if reference < 0:
            return
        rest = self.borrows.pop(("reference", reference))
        for made in self.borrows.values():
            if reference in made:
                made.remove(reference)
                made.update(rest)
