"""Values of contracts: integers whose operations abort if a result does not fit, addresses, and signers.

The integers, ``u8`` to ``u256`` and ``i8`` to ``i256``, are subclasses of `int`. An operation of a typed integer with a
plain int gives a typed integer, so a contract's arguments, fields and table items carry their type through its
arithmetic. Plain ints alone have no bounds. Only the ledger makes signers, so `toolkit.embedded.types` does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from toolkit.embedded._vm_status import VmError
from toolkit.errors import ContractError, InputError
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Callable

_ARITHMETIC_ERROR = "ARITHMETIC_ERROR"


class TypedInteger(int):
    """Base class of the typed integers."""

    __slots__ = ()

    move_name: ClassVar[str]
    low: ClassVar[int]
    high: ClassVar[int]
    bits: ClassVar[int]

    def __new__(cls, value: Any = 0) -> Self:
        """Cast an integer, like ``value as u8`` in Move; abort if it does not fit."""
        if isinstance(value, bool) or not isinstance(value, int):
            raise ContractError(f"only an integer can be cast to {cls.move_name}, got {value!r:.80}")
        if not cls.low <= value <= cls.high:
            raise VmError(_ARITHMETIC_ERROR, f"Cannot cast {int(value)} to {cls.move_name}")
        return int.__new__(cls, value)

    @classmethod
    def of(cls, value: Any) -> Self:
        """Return an integer of this type or a plain int as an integer of this type.

        Raises
        ------
        ContractError
            If the value is not an integer, or has another type; a cast is explicit, as in Move.
        VmError
            If a plain int does not fit.
        """
        if type(value) is cls:
            return value
        if type(value) is not int:
            raise mismatch(cls.move_name, value)
        if not cls.low <= value <= cls.high:
            raise VmError(_ARITHMETIC_ERROR, f"{value} is not a {cls.move_name} ({cls.low} to {cls.high})")
        return int.__new__(cls, value)

    def __truediv__(self, _: Any) -> NoReturn:
        raise ContractError("Move has no fractions: write // instead of /")

    __rtruediv__ = __truediv__

    def __invert__(self) -> NoReturn:
        raise ContractError("Move has no operator ~: write x ^ MASK")

    def __reduce__(self) -> tuple[Any, ...]:
        return int, (int(self),)  # the classes have no names that pickle finds


def mismatch(expected: str, value: Any) -> ContractError:
    """Return the error for a value that does not have the expected type."""
    named = f"{value.move_name} {int(value)}" if isinstance(value, TypedInteger) else f"{value!r:.80}"
    return ContractError(f"expected {expected}, got {named}")


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


# Operator, function that computes it, and message for a result that does not fit.
_ARITHMETIC: tuple[tuple[str, Callable[[Any, Any], int], str], ...] = (
    ("add", int.__add__, "Addition overflow"),
    ("sub", int.__sub__, "Subtraction overflow"),
    ("mul", int.__mul__, "Multiplication overflow"),
    ("floordiv", _quotient, "Division overflow"),
    ("mod", _remainder, "Integer remainder overflow"),
    ("and", int.__and__, ""),  # the results of these three always fit
    ("or", int.__or__, ""),
    ("xor", int.__xor__, ""),
)


def _arithmetic(cls: type[TypedInteger], compute: Callable[[Any, Any], int], problem: str) -> tuple[Any, Any]:
    """Return an operator and its reflected operator."""
    low, high, new = cls.low, cls.high, int.__new__

    def operate(self: Any, other: Any) -> Any:
        if type(other) is not cls:
            if not isinstance(other, int):
                return NotImplemented
            other = cls.of(other)
        result = compute(self, other)
        if low <= result <= high:
            return new(cls, result)
        raise VmError(_ARITHMETIC_ERROR, problem)

    def reflected(self: Any, other: Any) -> Any:
        return operate(cls.of(other), self) if isinstance(other, int) else NotImplemented

    return operate, reflected


def _shift(cls: type[TypedInteger], *, is_left: bool) -> Any:
    """Return a shift operator of an unsigned type; bits that are shifted out are lost, as in Move."""
    bits, mask, new = cls.bits, cls.high, int.__new__

    def operate(self: Any, amount: int) -> Any:
        if amount >= bits:
            raise VmError(_ARITHMETIC_ERROR, f"Shift {'Left' if is_left else 'Right'} overflow")
        shifted = int.__lshift__(self, amount) & mask if is_left else int.__rshift__(self, amount)
        return new(cls, shifted)

    return operate


def _integer_class(name: str, bits: int) -> type[TypedInteger]:
    """Return the class of an integer type; its operators are created once, because they run millions of times."""
    low, high = (0, (1 << bits) - 1) if name[0] == "u" else (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    body = {"__slots__": (), "move_name": name, "low": low, "high": high, "bits": bits}
    cls = type(name.upper(), (TypedInteger,), body)
    negate, _ = _arithmetic(cls, lambda value, _: int.__neg__(value), "Negation overflow")
    operators: dict[str, Any] = {"neg": lambda value: negate(value, value)}
    if low == 0:
        operators |= {"lshift": _shift(cls, is_left=True), "rshift": _shift(cls, is_left=False)}
    for operator, compute, problem in _ARITHMETIC:
        operators[operator], operators[f"r{operator}"] = _arithmetic(cls, compute, problem)
    for operator, function in operators.items():
        setattr(cls, f"__{operator}__", function)
    return cls


INTEGERS: dict[str, type[TypedInteger]] = {
    f"{sign}{bits}": _integer_class(f"{sign}{bits}", bits) for sign in "ui" for bits in (8, 16, 32, 64, 128, 256)
}
"""The typed integers by the names of their Move types."""


# -- addresses and signers ---------------------------------------------------------------------------------------------


class Address(str):
    """An address as contracts see it; it equals every string that spells the same address, such as ``"0xcafe"``."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        same_text = str.__eq__(self, other)
        # Equal texts are not parsed: the cache of `parse_address` compares its keys, and would call this method again.
        if same_text is True or isinstance(other, Address) or not isinstance(other, str):
            return same_text
        try:
            return other.startswith("0x") and parse_address(other) == str(self)
        except InputError:
            return False

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Signer(Address):
    """A signer of the running transaction, which only the ledger can create, with `signer_of`.

    A signer can be used as an address, and is stored as an address.
    """

    __slots__ = ()

    def __new__(cls, _address: str) -> Self:
        """Raise ContractError: a contract must not sign for others."""
        raise ContractError("a contract cannot create a signer: only the signers of the transaction can sign")


def signer_of(address: str) -> Signer:
    """Return the signer of an account."""
    return str.__new__(Signer, address)


def check_signer(value: Any, name: str = "account") -> Signer:
    """Return a value after checking that it is a signer.

    Raises
    ------
    ContractError
        If the value is not a signer, for example an address.
    """
    if not isinstance(value, Signer):
        raise ContractError(
            f"{name} must be a signer, got {value!r:.80}: only the signers of the transaction can sign, not an address"
        )
    return value
