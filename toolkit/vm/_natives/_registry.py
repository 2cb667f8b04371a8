"""The registry of native functions, and what a native gets from the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from toolkit.vm._code import PUBLIC
from toolkit.vm._errors import Abort
from toolkit.vm._features import ENUM_OPTION
from toolkit.vm._values import option

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.vm._code import FunctionDefinition
    from toolkit.vm._interpreter import Machine
    from toolkit.vm._layouts import Layout
    from toolkit.vm._types import Type
    from toolkit.vm._values import Value

_T = TypeVar("_T")


class Dispatch(NamedTuple):
    """Result of a native that goes on in another function, which returns in its place."""

    definition: FunctionDefinition
    types: tuple[Type, ...]
    arguments: list[Value]


def may_stand_for(framework: FunctionDefinition, user: FunctionDefinition) -> bool:
    """Return whether a function may be called instead of a native that dispatches."""
    return (
        user.type_parameters == framework.type_parameters
        and user.results == framework.results
        and user.parameters == framework.parameters[:-1]
        and user.visibility == PUBLIC
        and not user.is_native
        and user.module != framework.module
    )


@dataclass(slots=True)
class NativeCall:
    """A call of a native function.

    Attributes
    ----------
    types : tuple of Type
        Type arguments of the call.
    machine : Machine
        The machine that calls.
    """

    machine: Machine
    types: tuple[Type, ...]

    def price(self, name: str) -> int:
        """Return a price of the gas schedule; 0 if its version does not have it."""
        return self.machine.schedule[name]

    def charge(self, amount: int) -> None:
        """Charge internal gas: one entry of the log. Charge in the order and steps of a node, before the work."""
        self.machine.meter.charge_native(amount)

    def charge_base(self, name: str, per: str = "", count: int = 0) -> None:
        """Charge ``name.base``, and `count` times ``name.per``, in one step."""
        self.charge(self.price(name + ".base") + (self.price(f"{name}.{per}") * count if per else 0))

    def feature(self, flag: int) -> bool:
        """Return whether a feature flag is on."""
        return flag in self.machine.features

    def layout(self, kind: Type) -> Layout:
        """Return the layout to serialize values of a type; it may charge the loading of modules."""
        return self.machine.serializing_layout(kind)

    def context(self, kind: Callable[[], _T]) -> _T:
        """Return the session's object of a class, made at the first call: handles and counters of natives."""
        return self.machine.session.context(kind)

    def option(self, value: Value | None) -> Value:
        """Return a value as an ``Option``, in the form that the ledger has."""
        return option(value, is_enum=self.feature(ENUM_OPTION))

    @staticmethod
    def abort(code: int, message: str | None = None) -> Abort:
        """Return the error to raise for an abort with a code."""
        return Abort(code, message)


NATIVES: dict[str, Callable[..., Any]] = {}


def native(*names: str, price: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as a native: ``@native("0x1::hash::sha2_256")``.

    Parameters
    ----------
    *names : str
        Names of the native; some have several.
    price : str, optional
        Charged before the function runs, as ``call.charge_base(price)`` does; for what costs the same each time.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        def charged(call: NativeCall, *arguments: Value) -> Any:
            call.charge_base(price)
            return function(call, *arguments)

        NATIVES.update(dict.fromkeys(names, charged if price else function))
        return function

    return register
