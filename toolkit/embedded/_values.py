"""Values in contract code: integers with a width, and structs and vectors that are borrowed, copied, moved and dropped.

The integers of a contract are `U8` to `I256`. As in Move, an operation fails if its result does not fit. A number in
the source has no width yet and is an `Integer`; with a typed operand, it takes the operand's width, as Move infers it.
Messages are recorded from a real node ("Addition overflow") or follow the source of its VM.

In Python, two names can share a value; in Move, they cannot. A value that is stored, passed to another module or put
into another value is therefore copied if its type has the ability copy, and otherwise moved. A moved value can no
longer be used. A borrowed value belongs to a `Loan`, which records whether it may change and whether it has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from toolkit._present.messages import running_at
from toolkit.embedded._vm_status import AbortCode, MoveAbort, VmError
from toolkit.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterable


_ARITHMETIC_ERROR = "ARITHMETIC_ERROR"

# The bounds of a number without a width, which must fit some integer type.
_LOW, _HIGH = -(1 << 255), (1 << 256) - 1


class Integer(int):
    """A number in the source, which takes the width of the integer that it is used with."""

    __slots__ = ()

    move_name: ClassVar[str] = "integer"
    low: ClassVar[int] = _LOW
    high: ClassVar[int] = _HIGH
    bits: ClassVar[int] = 256

    def __new__(cls, value: Any = 0) -> Self:
        """Cast a value, like ``value as u8`` in Move; fail if the value does not fit."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise ContractError(f"only an integer can be cast to {cls.move_name}, got {value!r:.80}")
        if not cls.low <= value <= cls.high:
            raise VmError(_ARITHMETIC_ERROR, f"Cannot cast {_named(value)}({int(value)}) to {cls.move_name}")
        return int.__new__(cls, value)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a value as an integer of this type; a number without a width takes the type's width.

        Raises
        ------
        ContractError
            If the value is not an integer or has another width, which Move's compiler would reject.
        VmError
            If a number without a width does not fit.
        """
        if type(value) is cls:
            return value
        if type(value) is not int and type(value) is not Integer:
            hint = f"; write {cls.move_name}(...) to cast it" if isinstance(value, Integer) else ""
            raise ContractError(f"expected {cls.move_name}, got {describe(value)}{hint}")
        if not cls.low <= value <= cls.high:
            raise VmError(_ARITHMETIC_ERROR, f"{value} is not a {cls.move_name} ({cls.low} to {cls.high})")
        return int.__new__(cls, value)

    def __bool__(self) -> bool:
        raise ContractError("a condition must be a bool, got an integer: write x != 0")

    def __truediv__(self, _: Any) -> NoReturn:
        raise ContractError("Move has integer division only: write // instead of /")

    __rtruediv__ = __truediv__

    def __invert__(self) -> NoReturn:
        raise ContractError("Move has no operator ~: write x ^ MASK")

    def __divmod__(self, _: Any) -> NoReturn:
        raise ContractError("Move has no divmod: write // and %")

    __rdivmod__ = __divmod__

    def __float__(self) -> NoReturn:
        raise ContractError("Move has no fractions: use integers of a smaller unit")

    def __round__(self, _: Any = None) -> NoReturn:
        raise ContractError("Move has no fractions: use // to divide")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)

    __hash__ = int.__hash__


def _named(value: int) -> str:
    return type(value).move_name if isinstance(value, Integer) else "integer"


def describe(value: Any) -> str:
    """Return a contract's value and its type as text, for a message."""
    if isinstance(value, Integer) and type(value) is not Integer:
        return f"{value.move_name} {int(value)}"
    return f"{type(value).__name__.lower() if isinstance(value, bool) else ''} {value!r:.80}".strip()


def _quotient(left: int, right: int) -> int:
    """Divide and round towards zero, as Move does; Python rounds down, which differs for negative numbers."""
    left, right = int(left), int(right)
    if not right:
        raise VmError(_ARITHMETIC_ERROR, "Division by zero")
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def _remainder(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend, as in Move; Python uses the sign of the divisor."""
    left, right = int(left), int(right)
    if not right:
        raise VmError(_ARITHMETIC_ERROR, "Integer remainder by zero")
    result = abs(left) % abs(right)
    return -result if left < 0 else result


def _power(left: int, right: int) -> int:
    left, right = int(left), int(right)
    if right < 0 or (right > Integer.bits and abs(left) > 1):  # too large to be computed
        raise VmError(_ARITHMETIC_ERROR, "Multiplication overflow")
    return int(left**right)


# Operator, function that computes it, and message for a result that does not fit.
_ARITHMETIC: tuple[tuple[str, Callable[[Any, Any], int], str], ...] = (
    ("add", int.__add__, "Addition overflow"),
    ("sub", int.__sub__, "Subtraction overflow"),
    ("mul", int.__mul__, "Multiplication overflow"),
    ("floordiv", _quotient, "Division overflow"),
    ("mod", _remainder, "Integer remainder overflow"),
    ("pow", _power, "Multiplication overflow"),
    *((name, getattr(int, f"__{name}__"), "") for name in ("and", "or", "xor")),  # always fit
)


def _arithmetic(cls: type[Integer], compute: Callable[[Any, Any], int], problem: str) -> tuple[Any, Any]:
    """Return an operator and its reflected operator."""
    low, high, new = cls.low, cls.high, int.__new__
    # A number without a width is a u64 in Move, so a difference of two of them does not fall below 0.
    untyped_difference = cls is Integer and compute is int.__sub__

    def operate(self: Any, other: Any) -> Any:
        if type(other) is not cls:
            if not isinstance(other, int):
                return NotImplemented
            other = cls.of(other)
        result = compute(self, other)
        if low <= result <= high and not (untyped_difference and result < 0 <= self):
            return new(cls, result)
        raise VmError(_ARITHMETIC_ERROR, problem)

    def reflected(self: Any, other: Any) -> Any:
        return operate(cls.of(other), self) if isinstance(other, int) else NotImplemented

    return operate, reflected


def _comparison(cls: type[Integer], compare: Callable[[Any, Any], bool]) -> Any:
    def operate(self: Any, other: Any) -> Any:
        if type(other) is not cls and isinstance(other, int) and type(other) not in {int, Integer}:
            if cls is Integer and isinstance(other, Integer):
                return NotImplemented  # the typed operand compares
            cls.of(other)
        return compare(self, other)

    return operate


def _shift(cls: type[Integer], *, is_left: bool) -> tuple[Any, Any]:
    """Return a shift operator and its reflected operator."""
    bits, mask, new = cls.bits, cls.high, int.__new__

    def operate(self: Any, other: Any) -> Any:
        if cls.low:
            if cls is not Integer:
                raise ContractError(f"Move shifts unsigned integers only, got {cls.move_name}")
            return Integer(int.__lshift__(self, min(other, bits)) if is_left else int.__rshift__(self, other))
        amount = U8.of(other)
        if amount >= bits:
            raise VmError(_ARITHMETIC_ERROR, f"Shift {'Left' if is_left else 'Right'} overflow")
        # Bits that are shifted out are lost, as in Move.
        return new(cls, int.__lshift__(self, amount) & mask if is_left else int.__rshift__(self, amount))

    def reflected(self: Any, other: Any) -> Any:
        if cls is U8:
            return operate(Integer(other), self)
        raise ContractError(f"a number can only be shifted by a u8, got {describe(self)}; cast it with u8(...)")

    return operate, reflected


def _negation(cls: type[Integer]) -> Any:
    def operate(self: Any) -> Any:
        if not cls.low:
            raise ContractError(f"{cls.move_name} has no negative values, got -{int(self)}")
        if self == cls.low and cls is not Integer:
            raise VmError(_ARITHMETIC_ERROR, "Negation overflow")
        return int.__new__(cls, int.__neg__(self))

    return operate


def _complete(cls: type[Integer]) -> None:
    """Add the operators to an integer type; they are created once per type, because they run millions of times."""
    pairs = {name: _arithmetic(cls, compute, problem) for name, compute, problem in _ARITHMETIC}
    pairs |= {"lshift": _shift(cls, is_left=True), "rshift": _shift(cls, is_left=False)}
    functions = {"neg": _negation(cls), "pos": lambda self: self}
    for name in ("eq", "ne", "lt", "le", "gt", "ge"):
        functions[name] = _comparison(cls, getattr(int, f"__{name}__"))
    functions["hash"] = int.__hash__  # setting __eq__ takes away __hash__
    for name, (operate, reflected) in pairs.items():
        functions |= {name: operate, f"r{name}": reflected}
    for name, function in functions.items():
        setattr(cls, f"__{name}__", function)


def _typed(name: str, bits: int) -> type[Integer]:
    low, high = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    body = {"__slots__": (), "move_name": name, "low": low, "high": high, "bits": bits}
    return type(name.upper(), (Integer,), body)


INTEGERS: dict[str, type[Integer]] = {
    f"{sign}{bits}": _typed(f"{sign}{bits}", bits) for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)
}
U8, U64 = INTEGERS["u8"], INTEGERS["u64"]

_complete(Integer)
for _cls in INTEGERS.values():
    _complete(_cls)


# Sub statuses of VECTOR_OPERATION_ERROR, and abort codes of 0x1::vector.
_INDEX_OUT_OF_BOUNDS, _POP_EMPTY = 1, 2
_OUT_OF_BOUNDS = AbortCode(0x20000, "The index into the vector is out of bounds", "EINDEX_OUT_OF_BOUNDS")
_INVALID_SLICE = AbortCode(0x20004, "The range in `slice` is invalid.", "EINVALID_SLICE_RANGE")

undropped: ContextVar[dict[int, Any] | None] = ContextVar("undropped", default=None)
"""Values that lack drop and have no owner yet, by identity, in the running execution; None outside an execution."""


class Loan:
    """The loan of a borrowed resource or table item, shared by all values inside it.

    Parameters
    ----------
    problem : str, optional
        Why the value cannot be changed; empty if it can be changed.
    """

    __slots__ = ("changed", "problem")

    def __init__(self, problem: str = "") -> None:
        self.problem = problem
        self.changed = False

    def end(self) -> None:
        """Disallow further changes."""
        self.problem = "its with block has ended, so the change would not be stored: change it inside the block"


READ_ONLY = "borrow returns a copy; use borrow_mut to change it"
COPIED = "this name holds a copy, as in Move: change the original in place, or write copy.copy(...) to change a copy"


def change(value: Any, what: str) -> None:
    """Record that a value is changed.

    Raises
    ------
    ContractError
        If the value's loan does not allow changes.
    """
    loan: Loan | None = value.move_loan
    if loan is not None:
        if loan.problem:
            raise ContractError(f"{what} cannot be changed: {loan.problem}")
        loan.changed = True


def lend(value: Any, loan: Loan | None) -> Any:
    """Assign a loan, or None, to a value and the values inside it; return the value."""
    if isinstance(value, Vector):
        value.move_loan = loan
        for element in value:
            if isinstance(element, Value | Vector):
                lend(element, loan)
    elif isinstance(value, Value):
        object.__setattr__(value, "move_loan", loan)
        for inner in value.__dict__.values():
            if isinstance(inner, Value | Vector):
                lend(inner, loan)
    return value


class Value:
    """Base class of structs, with fields, a loan and abilities."""

    __slots__ = ("__dict__", "__weakref__", "move_loan")

    move_abilities: tuple[str, ...] = ("copy", "drop", "store")
    move_loan: Loan | None

    def __getattr__(self, name: str) -> Any:
        if name == "move_loan":
            return None
        if name.startswith("__"):
            raise AttributeError(name)
        if not self.__dict__ and name in type(self).move_fields():  # type: ignore[attr-defined]  # of `Struct`
            raise ContractError(
                f"this {type(self).__name__} was moved, so its {name} cannot be read: it does not have the ability copy"
            )
        raise AttributeError(f"{type(self).__name__} has no field {name!r}", name=name, obj=self)

    def __copy__(self) -> Self:
        if "copy" not in self.move_abilities:
            raise ContractError(f"{type(self).__name__} cannot be copied: it lacks the ability copy")
        copy: Self = _copied(self)
        return copy

    def __deepcopy__(self, _: Any) -> Self:
        return self.__copy__()


def _copied(value: Any) -> Any:
    """Return a copy without a loan."""
    if isinstance(value, Vector):
        return Vector(map(_copied, value), value.kind)
    if not isinstance(value, Value):
        return value
    copy = object.__new__(type(value))
    object.__setattr__(copy, "move_loan", None)
    copy.__dict__.update({name: _copied(inner) for name, inner in value.__dict__.items()})
    return copy


def own(value: Any) -> Any:
    """Return a value for a new owner: a copy, or the moved value.

    Raises
    ------
    ContractError
        If the value has already been moved, or lacks the ability copy and is part of a borrowed value.
    """
    if isinstance(value, Vector):
        return Vector([own(element) for element in value], value.kind)
    if not isinstance(value, Value):
        return value
    if "copy" in value.move_abilities:
        return _copied(value)
    name = type(value).__name__
    if value.move_loan is not None:
        raise ContractError(f"this {name} cannot be moved out of a borrowed value: it lacks the ability copy")
    if type(value).move_fields() and not value.__dict__:  # type: ignore[attr-defined]  # of `Struct`
        raise ContractError(f"this {name} has already been moved: it lacks the ability copy")
    moved = object.__new__(type(value))
    object.__setattr__(moved, "move_loan", None)
    moved.__dict__.update(value.__dict__)
    value.__dict__.clear()
    consumed(value)
    return moved


def created(value: Any) -> Any:
    """Record a new value and return it; a value that lacks drop must be stored, moved or unpacked later."""
    if isinstance(value, Value) and "drop" not in value.move_abilities:
        alive = undropped.get()
        if alive is not None:
            alive[id(value)] = (value, running_at())
    elif isinstance(value, Vector):
        for element in value:
            created(element)
    return value


def consumed(value: Any) -> None:
    """Record that a value was stored, moved or unpacked."""
    alive = undropped.get()
    if alive is not None:
        alive.pop(id(value), None)


def out_of_bounds() -> VmError:
    """Return the error for an index outside a vector."""
    return VmError("VECTOR_OPERATION_ERROR", sub_status=_INDEX_OUT_OF_BOUNDS)


# Convert a decoded value to the contract's, with the session, and the contract's value to one that can be encoded.
Lift = Callable[[Any, Any], Any]
Lower = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class MoveType:
    """A Move type and the conversions between stored values and the values that contract code uses.

    Parameters
    ----------
    text : str
        The type as the REST API prints it; generic parameters are ``T0``, ``T1``.
    lift : callable, optional
        Converts (session, decoded value) to the contract's value; None if no conversion is needed.
    lower : callable, optional
        Converts the contract's value to a value that can be encoded; None if no conversion is needed.
    take : callable, optional
        Checks a contract's value and returns the value for its new owner; None if every value is accepted unchanged.
    """

    text: str
    lift: Lift | None = None
    lower: Lower | None = None
    take: Lower | None = None


class Vector(list[Any]):
    """A vector: a list whose elements all have one type, and whose operations fail as in Move.

    Parameters
    ----------
    elements : iterable
    kind : MoveType, optional
        Type of the elements; None if the type is not known yet, as for ``[]``.
    """

    __slots__ = ("kind", "move_loan")

    def __init__(self, elements: Iterable[Any] = (), kind: MoveType | None = None) -> None:
        super().__init__(elements)
        self.kind = kind
        self.move_loan: Loan | None = None

    def _change(self) -> None:
        change(self, "this vector")

    def _own(self, value: Any) -> Any:
        """Return a value that is ready to be an element: checked, copied or moved, and part of the vector's loan."""
        taken = self.kind.take(value) if self.kind is not None and self.kind.take is not None else own(value)
        return taken if self.move_loan is None else lend(taken, self.move_loan)

    def _check_drop(self) -> None:
        if any(isinstance(one, Value) and "drop" not in one.move_abilities for one in self):
            raise ContractError("an element lacks the ability drop: remove it with pop and store it")

    def _release(self, value: Any) -> Any:
        """Return an element that was removed from the vector and now belongs to the contract."""
        return created(value if self.move_loan is None else lend(value, None))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            start = 0 if index.start is None else int(index.start)
            stop = len(self) if index.stop is None else int(index.stop)
            if index.step is not None:
                raise ContractError("Move has no slices with steps: write a loop")
            if not 0 <= start <= stop <= len(self):
                raise MoveAbort("0x1::vector", _INVALID_SLICE)
            return Vector([_shared(one) for one in list.__getitem__(self, slice(start, stop))], self.kind)
        if index < 0 or index >= len(self):
            raise out_of_bounds()
        return list.__getitem__(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._change()
        if isinstance(index, slice):
            raise ContractError("Move cannot assign to slices: write a loop")
        if index < 0 or index >= len(self):
            raise out_of_bounds()
        self._check_drop()
        list.__setitem__(self, index, self._own(value))

    def append(self, value: Any) -> None:
        """Add an element at the end."""
        self._change()
        list.append(self, self._own(value))

    def extend(self, values: Iterable[Any]) -> None:
        """Add elements at the end."""
        self._change()
        list.extend(self, [self._own(value) for value in values])

    def insert(self, index: Any, value: Any) -> None:
        """Insert an element before an index."""
        self._change()
        if not 0 <= index <= len(self):
            raise MoveAbort("0x1::vector", _OUT_OF_BOUNDS)
        list.insert(self, index, self._own(value))

    def pop(self, index: Any = None) -> Any:
        """Remove the last element, or the element at an index, and return it."""
        self._change()
        if index is None:
            if not self:
                raise VmError("VECTOR_OPERATION_ERROR", sub_status=_POP_EMPTY)
            return self._release(list.pop(self))
        if index < 0 or index >= len(self):
            raise MoveAbort("0x1::vector", _OUT_OF_BOUNDS)
        return self._release(list.pop(self, index))

    def remove(self, value: Any) -> None:
        """Remove the first element that equals a value."""
        self._change()
        self._check_drop()
        list.remove(self, value)

    def clear(self) -> None:
        """Remove all elements."""
        self._change()
        self._check_drop()
        list.clear(self)

    def sort(self, *, key: Any = None, reverse: bool = False) -> None:
        """Sort the elements."""
        self._change()
        list.sort(self, key=key, reverse=reverse)

    def reverse(self) -> None:
        """Reverse the order of the elements."""
        self._change()
        list.reverse(self)

    def copy(self) -> Vector:
        """Return a mutable copy."""
        return Vector(map(_shared, self), self.kind)

    __copy__ = copy

    def __deepcopy__(self, _: Any) -> Vector:
        return self.copy()

    def __add__(self, other: Any) -> Any:
        return Vector(map(_shared, [*self, *other]), self.kind or getattr(other, "kind", None))

    def __iadd__(self, other: Any) -> Self:
        self.extend(other)
        return self

    def __bool__(self) -> bool:
        return len(self) > 0

    def _refuse_repetition(self, _: Any) -> NoReturn:
        raise ContractError("Move vectors cannot be repeated with *: write a loop")

    def __delitem__(self, _: Any) -> NoReturn:
        raise ContractError("Move vectors do not support del: remove an element with pop(index)")

    __mul__ = __rmul__ = __imul__ = _refuse_repetition
    __hash__ = None

    def __reduce_ex__(self, _: Any) -> tuple[Any, ...]:
        return list, (list(self),)


def _shared(value: Any) -> Any:
    """Return a copy of an element, which remains in its vector.

    Raises
    ------
    ContractError
        If the element lacks the ability copy.
    """
    return value.__copy__() if isinstance(value, Value | Vector) else value


def named_copy(value: Any) -> Any:
    """Return the value for a name to which a part of another value is assigned: a copy if possible, else a reference.

    The copy is read-only. In Move, the copy could be changed; in plain Python, the same line would change the
    original. An error is better than a change that is silently lost.
    """
    if isinstance(value, Vector) and all(not isinstance(e, Value) or "copy" in e.move_abilities for e in value):
        return lend(_copied(value), Loan(COPIED))
    if isinstance(value, Value) and "copy" in value.move_abilities:
        return lend(_copied(value), Loan(COPIED))
    return value
