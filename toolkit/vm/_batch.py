"""Scripts that make calls in a row: batches are composed to one, and scripts are checked as a node's verifier does.

A composed script is laid out as by the published composer: the signers and the literals are its parameters, each result
has a local, and nothing is generic. What that composer refuses, from the number of arguments to references in use, is
refused here, with the call and the argument.

A script without branches needs one pass to check types, locals and references. A node makes one pass for each of the
three, and reports the error of the earliest pass. A reference is a number. `borrows` has the references that were
made from each reference or local and are still in use.
"""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from toolkit._present.messages import shorten
from toolkit._present.text import plural, short_addresses
from toolkit.errors import InputError
from toolkit.move import parse_type_tag
from toolkit.move._ids import address_to_bytes
from toolkit.vm import _types as t
from toolkit.vm._code import (
    FunctionDefinition,
    FunctionHandle,
    FunctionUse,
    Instruction,
    StructDefinition,
    StructHandle,
    TypeParameter,
)
from toolkit.vm._errors import MoveError
from toolkit.vm._module import Module, write_script
from toolkit.wire._models import BatchArgument, BatchResult, BatchSigner, Use, function_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from toolkit.move import FunctionId, GenericParam, ModuleAbi
    from toolkit.wire import EntryFunction, ViewFunction
    from toolkit.wire._requests import Batch

# All nodes read version 6, and scripts in it gave the same results and gas as in later versions.
SCRIPT_VERSION = 6
_VERSION_OF_FUNCTIONS, _VERSION_OF_SIGNED = 8, 9  # function types and signed integers need these
MAX_LOCALS = 255  # parameters among them
_COPY_AND_DROP = t.COPY | t.DROP

_LOADS = {Use.COPY: "CopyLoc", Use.MOVE: "MoveLoc", Use.BORROW: "ImmBorrowLoc", Use.BORROW_MUT: "MutBorrowLoc"}
_REASONS = {
    "COPYLOC_WITHOUT_COPY_ABILITY": "its type lacks the ability copy",
    "COPYLOC_UNAVAILABLE_ERROR": "it has been moved into an earlier argument",
    "MOVELOC_UNAVAILABLE_ERROR": "it has been moved into an earlier argument",
    "BORROWLOC_UNAVAILABLE_ERROR": "it has been moved into an earlier argument",
    "COPYLOC_EXISTS_BORROW_ERROR": "a mutable reference to it is still in use",
    "MOVELOC_EXISTS_BORROW_ERROR": "a reference to it is still in use",
    "BORROWLOC_EXISTS_BORROW_ERROR": "a mutable reference to it is still in use",
    "BORROWLOC_REFERENCE_ERROR": "it is a reference already",
    "CALL_BORROWED_MUTABLE_REFERENCE_ERROR": "what a mutable argument refers to is also referred to by another one",
}


class ComposedScript(NamedTuple):
    """A script: its code, and its arguments as BCS, without signers."""

    code: bytes
    arguments: tuple[bytes, ...]


class AbiModule(NamedTuple):
    """What is needed of a module."""

    functions: dict[str, FunctionDefinition]
    structs: dict[str, StructDefinition]


ModuleCode: TypeAlias = "Module | AbiModule"


def module_of_abi(module: t.ModuleId, abi: ModuleAbi) -> ModuleCode:
    """Return a module by its ABI, which lacks private functions and, on nodes, which type parameters are phantom.

    A value of a generic struct may then look as if it lacked an ability that its type argument lacks.
    """
    functions = {
        one.name: FunctionDefinition(
            module, one.name, index, types_of(one.params), types_of(one.return_), _constraints(one.generic_type_params)
        )
        for index, one in enumerate(abi.exposed_functions)
    }
    structs = {}
    for one in abi.structs:
        phantom = [parameter.is_phantom for parameter in one.generic_type_params]
        kinds = tuple(map(TypeParameter, _constraints(one.generic_type_params), phantom))
        structs[one.name] = StructDefinition(module, one.name, t.ability_bits(one.abilities), kinds, ())
    return AbiModule(functions, structs)


def types_of(texts: Iterable[str]) -> tuple[t.Type, ...]:
    """Return the types that texts of an ABI stand for."""
    return tuple(t.from_tag(parse_type_tag(text, abi=True)) for text in texts)


def _constraints(parameters: Iterable[GenericParam]) -> tuple[int, ...]:
    return tuple(t.ability_bits(one.constraints) for one in parameters)


def compose(
    batch: Batch,
    *,
    signers: int,
    modules: Callable[[t.ModuleId], ModuleCode | None],
    encode: Callable[[t.Type, Any, str], bytes],
) -> ComposedScript:
    """Compose a batch.

    Parameters
    ----------
    batch : Batch
    signers : int
        Number of signers of the transaction: the sender and the secondary signers.
    modules : callable
        Returns a module, or None if it does not exist.
    encode : callable
        Returns the BCS of an argument; takes its type, the value, and its place for messages.

    Raises
    ------
    InputError
        If the calls do not fit the functions or each other; the message names the call and the argument.
    """
    try:
        return _Composer(batch, signers, modules, encode).script()
    except MoveError as error:  # a module that contradicts itself
        raise InputError(f"the batch cannot be composed: {error.message or error.status}") from None


class _Place(NamedTuple):
    """What an instruction is for: a call, and an argument of it."""

    call: int
    argument: int | None = None


class _Composer:
    def __init__(
        self,
        batch: Batch,
        signers: int,
        modules: Callable[[t.ModuleId], ModuleCode | None],
        encode: Callable[[t.Type, Any, str], bytes],
    ) -> None:
        self.batch, self.signers, self.modules, self.encode = batch, signers, modules, encode
        self.parameters: list[t.Type] = [t.SIGNER_REFERENCE] * signers
        self.literals: list[bytes] = []
        # The locals of results come after the parameters, whose number must be known: all literals are parameters.
        given = [one for call in batch.calls for one in call.arguments]
        self.first_local = signers + sum(not isinstance(one, BatchArgument) for one in given)
        self.locals: list[t.Type] = []
        self.results: list[range] = []  # the locals of each call
        self.code: list[Instruction] = []
        self.places: list[_Place] = []  # of each instruction
        self.structs: dict[tuple[t.ModuleId, str], StructHandle] = {}

    def script(self) -> ComposedScript:
        """Compose all calls."""
        for index, call in enumerate(self.batch.calls):
            self._call(index, call)
        self._end()
        kinds = (*self.parameters, *self.locals)
        if len(kinds) > MAX_LOCALS:
            what = "signers, literals and results"
            raise InputError(f"a batch can have {MAX_LOCALS} {what}, got {len(kinds)}; make two batches of it")
        main = FunctionDefinition(None, "main", 0, tuple(self.parameters), (), locals=kinds, code=tuple(self.code))
        try:
            check_straight(main, self.structs.values())
        except MoveError as error:
            raise self._refused(error) from None
        code = write_script(main, self.structs.values(), version=_version(main))
        return ComposedScript(code, tuple(self.literals))

    def _call(self, index: int, call: EntryFunction | ViewFunction) -> None:
        where = self._where(_Place(index))
        function = self._function(function_id(call.function), where)
        types = tuple(t.from_tag(parse_type_tag(text)) for text in call.type_arguments)
        if len(types) != len(function.type_parameters):
            expected = plural(len(function.type_parameters), "type argument")
            raise _error(where, f"expected {expected}, got {len(types)}")
        expected_types = t.substituted(function.parameters, types)
        arguments, left_out = self._with_signers(call.arguments, expected_types, where)
        self._name_structs((*types, *function.parameters, *function.results), where)
        for place, (argument, kind) in enumerate(zip(arguments, expected_types, strict=True), -left_out):
            self._push(_Place(index, place if place >= 0 else None), argument, kind)
        use = FunctionUse(function, types or None)
        self._add(_Place(index), "CallGeneric" if types else "Call", use)
        first = self.first_local + len(self.locals)
        self.locals += t.substituted(function.results, types)
        self.results.append(range(first, first + len(function.results)))
        for local in reversed(self.results[-1]):
            self._add(_Place(index), "StLoc", local)

    def _function(self, name: FunctionId, where: str) -> FunctionHandle:
        module = t.ModuleId(address_to_bytes(name.address), name.module)
        found = self._module(module, where).functions.get(name.name)
        if found is None:
            raise _error(where, f"{module} has no function {name.name}")
        return FunctionHandle(module, name.name, found.parameters, found.results, found.type_parameters)

    def _module(self, module: t.ModuleId, where: str) -> ModuleCode:
        found = self.modules(module)
        if found is None:
            raise _error(where, f"module {module} does not exist")
        return found

    def _name_structs(self, kinds: Sequence[t.Type], where: str) -> None:
        """Look up the structs in types."""
        for struct in t.all_parts(kinds):
            if not isinstance(struct, t.Struct):
                continue
            key = struct.module, struct.name
            found = self._module(struct.module, where).structs.get(struct.name)
            if found is None:
                raise _error(where, f"{struct.module} has no struct {struct.name}")
            if len(found.type_parameters) != len(struct.arguments):
                expected = plural(len(found.type_parameters), "type argument")
                raise _error(where, f"{struct}: expected {expected}, got {len(struct.arguments)}")
            self.structs[key] = StructHandle(*key, found.abilities, found.type_parameters)

    def _with_signers(self, given: Sequence[Any], kinds: Sequence[t.Type], where: str) -> tuple[list[Any], int]:
        """Return all arguments, and how many of them are signers that the caller has left out."""
        leading = next((at for at, kind in enumerate(kinds) if kind is not t.SIGNER_REFERENCE), len(kinds))
        if len(given) == len(kinds):
            return list(given), 0
        if len(given) == len(kinds) - leading:
            return [*map(BatchSigner, range(leading)), *given], leading
        words = f" ({', '.join(map(str, kinds))})" if kinds else ""
        without = f", or {len(kinds) - leading} without signers" if leading else ""
        raise _error(where, f"expected {plural(len(kinds), 'argument')}{words}{without}, got {len(given)}")

    def _push(self, place: _Place, argument: Any, kind: t.Type) -> None:
        """Push an argument."""
        where = self._where(place)
        if isinstance(argument, BatchResult):
            self._push_result(place, argument, kind)
        elif isinstance(argument, BatchSigner):
            if argument.index >= self.signers:
                has = plural(self.signers, "signer")
                raise _error(where, f"there is no signer {argument.index}: the transaction has {has}")
            if kind is not self.parameters[argument.index]:
                raise _error(where, f"expected {kind}, got {argument!r}, which is a &signer")
            self._add(place, "CopyLoc", argument.index)
        else:
            self._add(place, "MoveLoc", len(self.parameters))
            self.literals.append(self.encode(kind, argument, where))
            self.parameters.append(kind)

    def _push_result(self, place: _Place, argument: BatchResult, kind: t.Type) -> None:
        where = self._where(place)
        local = self._local(argument, where)
        held, use = self.locals[local - self.first_local], argument.use
        if not use:
            can_be_copied = t.abilities(held, self._handle) & _COPY_AND_DROP == _COPY_AND_DROP
            use = Use.COPY if can_be_copied else Use.MOVE
        got = t.Reference(held, use is Use.BORROW_MUT) if use in {Use.BORROW, Use.BORROW_MUT} else held
        if got is not kind:
            hint = ""
            if isinstance(kind, t.Reference) and kind.target is held:
                better = replace(argument, use=Use.BORROW_MUT if kind.mutable else Use.BORROW)
                hint = f"; pass {better!r}"
            raise _error(where, f"expected {kind}, got {argument!r}, which is {got}{hint}")
        self._add(place, _LOADS[use], local)

    def _local(self, argument: BatchResult, where: str) -> int:
        results = self.results[argument.call]
        if argument.value >= len(results):
            has = plural(len(results), "result")
            raise _error(where, f"{argument!r} does not exist: {self._where(_Place(argument.call))}, has {has}")
        return results[argument.value]

    def _handle(self, struct: t.Struct) -> StructHandle:
        return self.structs[struct.module, struct.name]

    def _end(self) -> None:
        """End the script: with success, or with an abort."""
        abort, place = self.batch.abort, _Place(len(self.batch.calls))
        if isinstance(abort, BatchResult):
            local = self._local(abort, "abort")
            if (kind := self.locals[local - self.first_local]) is not t.U64:
                raise InputError(f"abort: expected a result of type u64, got {abort!r}, which is {kind}")
            self._add(place, "CopyLoc", local)
        elif abort is not None:
            self._add(place, "LdU64", abort)
        self._add(place, "Ret" if abort is None else "Abort")

    def _add(self, place: _Place, name: str, operand: Any = None) -> None:
        self.code.append(Instruction(name, operand))
        self.places.append(place)

    def _where(self, place: _Place) -> str:
        """Return a call or an argument, as messages name them."""
        if place.call == len(self.batch.calls):
            return "the end of the batch"
        text = f"call {place.call}, {function_id(self.batch.calls[place.call].function).wire}"
        return text if place.argument is None else f"{text}, arguments[{place.argument}]"

    def _refused(self, error: MoveError) -> InputError:
        """Return the error of a call for that of the script."""
        assert error.offset is not None  # noqa: S101 - of an instruction
        place, status = self.places[error.offset], error.status
        if status == "UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP":
            local = error.sub_status or 0
            place = _Place(next(at for at, results in enumerate(self.results) if local in results))
            result = BatchResult(place.call, self.results[place.call].index(local))
            kind = self.locals[local - self.first_local]
            reason = f"{result!r} is left over, but its type {kind} lacks the ability drop; pass it to a call"
        else:
            reason = error.message or _REASONS.get(status, "it is not valid here")
            if place.argument is not None:
                argument = self.batch.calls[place.call].arguments[place.argument]
                reason = f"{argument!r} cannot be used: {reason}"
        return _error(self._where(place), f"{reason} ({status})")


def literal_type(kind: t.Type, value: Any, where: str) -> str:
    """Return the type of an argument that is neither a signer nor a result.

    Raises
    ------
    InputError
        If the parameter is a reference: nodes take no references as arguments.
    """
    if isinstance(kind, t.Reference):
        instead = "toolkit.Batch.signer(0)" if kind.target is t.SIGNER else "toolkit.Batch.result(0).borrow()"
        raise _error(where, f"expected {kind}, got {shorten(value)}; pass a signer or a result, such as {instead}")
    return str(kind)


def _error(where: str, text: str) -> InputError:
    return InputError(short_addresses(f"{where}: {text}"))


def _version(main: FunctionDefinition) -> int:
    """Return the version of the format that the types need."""
    used = [use.function for _, use in main.code if isinstance(use, FunctionUse)]
    kinds = [kind for one in used for kind in (*one.parameters, *one.results)]
    parts = set(t.all_parts([*kinds, *main.locals]))
    if any(isinstance(kind, t.Primitive) and kind.minimum for kind in parts):
        return _VERSION_OF_SIGNED
    return _VERSION_OF_FUNCTIONS if any(isinstance(kind, t.Function) for kind in parts) else SCRIPT_VERSION


# The check.

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
