"""Natives of ``function_info``, and those that go on in a function that the ledger names."""

from __future__ import annotations

from toolkit.vm import _gas_versions as since
from toolkit.vm._errors import MoveError
from toolkit.vm._natives._registry import Dispatch, NativeCall, may_stand_for, native
from toolkit.vm._types import ModuleId, is_identifier
from toolkit.vm._values import Ref, Value, read_ref

_NOT_AN_IDENTIFIER, _NOT_VISITED, _NOT_LOADED = 1, 2, 4


def _named(call: NativeCall, info: Ref) -> tuple[ModuleId, str]:
    address, module, function = read_ref(info)
    names = [raw[0].decode("utf-8", "replace") for raw in (module, function)]
    if not all(map(is_identifier, names)):
        raise call.abort(_NOT_AN_IDENTIFIER)
    return ModuleId(address, names[0]), names[1]


def _is_visited(call: NativeCall, module: ModuleId) -> bool:
    return module.special or module in call.machine.loader.visited


@native("0x1::function_info::is_identifier")
def identifier(call: NativeCall, text: Ref) -> tuple[Value]:
    """Whether a text is an identifier."""
    raw = read_ref(text)
    call.charge_base("aptos_framework.function_info.is_identifier", "per_byte", len(raw))
    return (is_identifier(raw.decode("utf-8", "replace")),)


@native("0x1::function_info::load_function_impl")
def load_function(call: NativeCall, info: Ref) -> None:
    """Load the module of a function, so that it can be dispatched to."""
    machine = call.machine
    if machine.schedule.version >= since.NATIVES_AT_ONCE:  # before, the charge is lost
        call.charge_base("aptos_framework.function_info.load_function")
    module, _ = _named(call, info)
    machine.loader.load([module], machine.meter)


@native("0x1::function_info::check_dispatch_type_compatibility_impl")
def check_compatibility(call: NativeCall, framework: Ref, user: Ref) -> tuple[Value]:
    """Whether a function may take the place of one of the framework."""
    call.charge_base("aptos_framework.function_info.check_dispatch_type_compatibility_impl")
    functions = []
    for info in (framework, user):
        module, name = _named(call, info)
        if not _is_visited(call, module):
            raise call.abort(_NOT_VISITED)
        try:
            functions.append(call.machine.loader.function(module, name))
        except MoveError:
            raise call.abort(_NOT_VISITED) from None
    return (may_stand_for(*functions),)


def _register(name: str, price: str) -> None:
    """Register a native that goes on in the function that its last argument names, with the other arguments."""

    @native(name)
    def dispatch(call: NativeCall, *arguments: Value) -> Dispatch:
        call.charge_base(f"aptos_framework.{price}.dispatch")
        module, function = _named(call, arguments[-1])
        if not _is_visited(call, module):
            raise call.abort(_NOT_LOADED)
        target = call.machine.loader.function(module, function)
        return Dispatch(target, call.types, list(arguments[:-1]))


for _name in ("withdraw", "deposit", "derived_balance", "derived_supply"):
    _register(f"0x1::dispatchable_fungible_asset::dispatchable_{_name}", "dispatchable_fungible_asset")
_register("0x1::account_abstraction::dispatchable_authenticate", "dispatchable_authenticate")
