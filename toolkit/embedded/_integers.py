"""Integers of contracts: each has a width, and an operation whose result does not fit aborts, as in Move.

A value of a contract is a `U8` to `I256`. A number that is written in the source has no width yet and is an `Integer`:
with a typed operand it takes the width of that operand, as Move infers it. Texts of errors are those of a real node
(recorded: "Addition overflow"); the other texts follow the same VM's source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from toolkit.embedded._vm_status import VmError
from toolkit.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable

_ARITHMETIC_ERROR = "ARITHMETIC_ERROR"

# The bounds of a number without a width: it must fit some integer type.
_LOW, _HIGH = -(1 << 255), (1 << 256) - 1


class Integer(int):
    """A number of the source, whose width is that of what it is used with."""

    __slots__ = ()

    move_name: ClassVar[str] = "integer"
    low: ClassVar[int] = _LOW
    high: ClassVar[int] = _HIGH
    bits: ClassVar[int] = 256

    def __new__(cls, value: Any = 0) -> Self:
        """Cast a value, as ``value as u8`` does in Move: one that does not fit aborts."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise ContractError(f"only an integer can be cast to {cls.move_name}, got {value!r:.80}")
        if not cls.low <= value <= cls.high:
            raise VmError(_ARITHMETIC_ERROR, f"Cannot cast {_named(value)}({int(value)}) to {cls.move_name}")
        return int.__new__(cls, value)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return a value as an integer of this type; one without a width takes it.

        Raises
        ------
        ContractError
            If the value has another width or is not an integer, which Move's compiler refuses.
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

    def _refuse(self, instead: str) -> NoReturn:
        raise ContractError(instead)

    def __bool__(self) -> bool:  # noqa: PLE0304 - it never returns
        self._refuse("a condition must be a bool, got an integer: write x != 0")

    def __truediv__(self, _: Any) -> NoReturn:
        self._refuse("Move divides integers without a fraction: write // in place of /")

    __rtruediv__ = __truediv__

    def __invert__(self) -> NoReturn:
        self._refuse("Move has no operator ~: write x ^ MASK")

    def __divmod__(self, _: Any) -> NoReturn:
        self._refuse("Move has no divmod: write // and %")

    __rdivmod__ = __divmod__

    def __float__(self) -> NoReturn:
        self._refuse("Move has no fractions: use integers of a smaller unit")

    def __round__(self, _: Any = None) -> NoReturn:
        self._refuse("Move has no fractions: use // to divide")

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
    """Return a value of a contract with its type, for a message."""
    if isinstance(value, Integer) and type(value) is not Integer:
        return f"{value.move_name} {int(value)}"
    return f"{type(value).__name__.lower() if isinstance(value, bool) else ''} {value!r:.80}".strip()


def _quotient(left: int, right: int) -> int:
    """Divide as Move does: towards zero. Python rounds down, which differs for negative numbers."""
    left, right = int(left), int(right)
    if not right:
        raise VmError(_ARITHMETIC_ERROR, "Division by zero")
    result = abs(left) // abs(right)
    return result if (left < 0) == (right < 0) else -result


def _remainder(left: int, right: int) -> int:
    """Return the remainder with the sign of the dividend, as Move does; Python's has the sign of the divisor."""
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


# Operator, what computes it, and the text of a result that does not fit.
_ARITHMETIC: tuple[tuple[str, Callable[[Any, Any], int], str], ...] = (
    ("add", int.__add__, "Addition overflow"),
    ("sub", int.__sub__, "Subtraction overflow"),
    ("mul", int.__mul__, "Multiplication overflow"),
    ("floordiv", _quotient, "Division overflow"),
    ("mod", _remainder, "Integer remainder overflow"),
    ("pow", _power, "Multiplication overflow"),
)
_BITWISE = ("and", "or", "xor")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _arithmetic(cls: type[Integer], compute: Callable[[Any, Any], int], problem: str) -> tuple[Any, Any]:
    """Return an operator and its reflection."""
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


def _shift(cls: type[Integer], symbol: str) -> Any:
    bits, mask, new, is_left = cls.bits, cls.high, int.__new__, symbol == "<<"

    def operate(self: Any, other: Any) -> Any:
        if cls.low:
            if cls is not Integer:
                self._refuse(f"Move shifts unsigned integers only, got {cls.move_name}")
            return Integer(int.__lshift__(self, min(other, bits)) if is_left else int.__rshift__(self, other))
        amount = U8.of(other)
        if amount >= bits:
            raise VmError(_ARITHMETIC_ERROR, f"Shift {'Left' if is_left else 'Right'} overflow")
        # Bits that are shifted out are lost, as in Move.
        return new(cls, int.__lshift__(self, amount) & mask if is_left else int.__rshift__(self, amount))

    return operate


def _reflected_shift(operate: Any, cls: type[Integer]) -> Any:
    def reflected(self: Any, other: Any) -> Any:
        return operate(Integer(other), self) if cls is U8 else cls.of("a shift by a number that is not a u8")

    return reflected


def _negation(cls: type[Integer]) -> Any:
    def operate(self: Any) -> Any:
        if not cls.low:
            self._refuse(f"{cls.move_name} has no negative values: -x")
        if self == cls.low and cls is not Integer:
            raise VmError(_ARITHMETIC_ERROR, "Negation overflow")
        return int.__new__(cls, int.__neg__(self))

    return operate


def _complete(cls: type[Integer]) -> None:
    """Add the operators to a type of integers; they are made once per type, because they run millions of times."""
    for name, compute, problem in _ARITHMETIC:
        operate, reflected = _arithmetic(cls, compute, problem)
        setattr(cls, f"__{name}__", operate)
        setattr(cls, f"__r{name}__", reflected)
    for name in _BITWISE:
        operate, reflected = _arithmetic(cls, getattr(int, f"__{name}__"), "")
        setattr(cls, f"__{name}__", operate)
        setattr(cls, f"__r{name}__", reflected)
    for name in _COMPARISONS:
        setattr(cls, f"__{name}__", _comparison(cls, getattr(int, f"__{name}__")))
    for name, symbol in (("lshift", "<<"), ("rshift", ">>")):
        operate = _shift(cls, symbol)
        setattr(cls, f"__{name}__", operate)
        setattr(cls, f"__r{name}__", _reflected_shift(operate, cls))
    unary: dict[str, Callable[[Any], Any]] = {"__neg__": _negation(cls), "__pos__": lambda self: self}
    unary["__hash__"] = int.__hash__  # setting __eq__ took it away
    for name, function in unary.items():
        setattr(cls, name, function)


def _typed(name: str) -> type[Integer]:
    bits = int(name[1:])
    low, high = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    body = {"__slots__": (), "move_name": name, "low": low, "high": high, "bits": bits}
    return type(name.upper(), (Integer,), body)


INTEGERS: dict[str, type[Integer]] = {
    f"{sign}{bits}": _typed(f"{sign}{bits}") for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)
}
U8, U64 = INTEGERS["u8"], INTEGERS["u64"]

_complete(Integer)
for _cls in INTEGERS.values():
    _complete(_cls)
