"""Arguments of transactions and views: what callers send is checked, rebuilt and decoded.

A caller may not send any struct, since its fields could not be trusted: strings are checked, and objects, options and
fixed-point numbers are made by functions of the framework, which run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader, uleb128
from toolkit.vm import _features as flags
from toolkit.vm import _types as t
from toolkit.vm._errors import Abort, MoveError
from toolkit.vm._gas import Unmetered
from toolkit.vm._layouts import is_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._interpreter import Machine
    from toolkit.vm._values import Value

MAX_CONSTRUCTIONS = 10  # of one argument
MAX_ARGUMENT_BYTES = 1_000_000
_STRING = t.ModuleId(t.FRAMEWORK, "string")

# Constructors by struct: module, function, and the type of the parameter; `t.Vector` is one of the type argument.
_CONSTRUCTORS: dict[tuple[t.ModuleId, str], tuple[str, Any]] = {
    (t.ModuleId(t.FRAMEWORK, "option"), "Option"): ("from_vec", t.Vector),
    (t.ModuleId(t.FRAMEWORK, "object"), "Object"): ("address_to_object", t.ADDRESS),
    (t.ModuleId(t.FRAMEWORK, "fixed_point32"), "FixedPoint32"): ("create_from_raw_value", t.U64),
    (t.ModuleId(t.FRAMEWORK, "fixed_point64"), "FixedPoint64"): ("create_from_raw_value", t.U128),
}


def _has_constructor(kind: t.Type) -> TypeGuard[t.Struct]:
    return isinstance(kind, t.Struct) and (kind.module, kind.name) in _CONSTRUCTORS


def is_signer(kind: t.Type) -> bool:
    """Return whether a parameter is a signer or a reference to one."""
    return kind is t.SIGNER or (isinstance(kind, t.Reference) and kind.target is t.SIGNER)


def may_be_sent(machine: Machine, kind: t.Type) -> bool:
    """Return whether callers may send values of a type."""
    if isinstance(kind, t.Vector):
        return may_be_sent(machine, kind.element)
    if isinstance(kind, t.Primitive):
        return kind is not t.SIGNER
    return is_string(kind) or (flags.STRUCT_CONSTRUCTORS in machine.features and _has_constructor(kind))


def make_arguments(machine: Machine, kinds: Sequence[t.Type], arguments: Sequence[bytes]) -> list[Value]:
    """Return the values of arguments.

    Parameters
    ----------
    machine : Machine
    kinds : sequence of Type
        Types of the parameters.
    arguments : sequence of bytes
        The arguments in BCS.

    Raises
    ------
    MoveError
        If an argument cannot be decoded, or a constructor fails.
    """
    rebuilt = [_Argument(machine).rebuild(kind, data) for kind, data in zip(kinds, arguments, strict=True)]
    values = []
    for kind, data in zip(kinds, rebuilt, strict=True):
        layout = machine.serializing_layout(kind)
        try:
            values.append(layout.decode(data))
        except MoveError:
            raise MoveError("FAILED_TO_DESERIALIZE_ARGUMENT", "[VM] failed to deserialize argument") from None
    return values


def _undecodable() -> MoveError:
    return MoveError("FAILED_TO_DESERIALIZE_ARGUMENT")


class _Argument:
    """One argument while it is rebuilt."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.left = MAX_CONSTRUCTIONS

    def rebuild(self, kind: t.Type, data: bytes) -> bytes:
        """Return the BCS that the function gets."""
        if isinstance(kind, t.Primitive):
            return data  # a wrong length shows when it is decoded
        source, output = Reader(data), bytearray()
        try:
            self._copy(kind, source, output)
            source.end()
        except (SchemaError, MoveError) as error:
            if isinstance(error, MoveError) and error.status != "FAILED_TO_DESERIALIZE_RESOURCE":
                raise
            raise _undecodable() from None
        return bytes(output)

    def _copy(self, kind: t.Type, source: Reader, output: bytearray) -> None:
        if len(output) > MAX_ARGUMENT_BYTES:
            raise _undecodable()
        if isinstance(kind, t.Vector):
            count = source.length()
            output += uleb128(count)
            for _ in range(count):
                self._copy(kind.element, source, output)
        elif is_string(kind):
            raw = source.bytes()
            try:
                raw.decode()
            except UnicodeDecodeError:
                raise Abort(1).at(_STRING, 0, 0) from None
            output += uleb128(len(raw)) + raw
        elif isinstance(kind, t.Primitive) and kind is not t.SIGNER:
            output += source.fixed(self.machine.layouts[kind].constant or 0)
        elif _has_constructor(kind):
            output += self._construct(kind, source)
        else:
            raise MoveError("INVALID_MAIN_FUNCTION_SIGNATURE")

    def _construct(self, kind: t.Struct, source: Reader) -> bytes:
        machine = self.machine
        self.left -= 1
        if self.left < 0:
            raise _undecodable()
        name, parameter = _CONSTRUCTORS[kind.module, kind.name]
        if parameter is t.Vector:
            parameter = t.Vector(kind.arguments[0])
        inner = bytearray()
        self._copy(parameter, source, inner)
        meter = machine.meter
        if not machine.loader.lazy:
            machine.meter = Unmetered(machine.schedule)
        try:
            value = machine.serializing_layout(parameter).decode(inner)
            results = machine.run_named(kind.module, name, [value], kind.arguments)
            return machine.serializing_layout(kind).encode(results[0])
        finally:
            machine.meter = meter
