"""Natives of ``bcs``, ``from_bcs``, ``util`` and ``string_utils``: values as bytes and as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from toolkit.errors import Unsupported
from toolkit.vm import _types as t
from toolkit.vm._environment import CHARGE_BYTES_FOR_PRINTS
from toolkit.vm._errors import MoveError
from toolkit.vm._features import SIGNER_TEXT
from toolkit.vm._layouts import is_bytes, is_string
from toolkit.vm._natives._registry import NativeCall, native
from toolkit.vm._values import Closure, Ref, Value, read_ref

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolkit.vm._layouts import Layout

_FAILS = 0x1C5
_NOT_A_VALUE = 0x10001


@native("0x1::bcs::to_bytes")
def to_bytes(call: NativeCall, value: Ref) -> tuple[Value]:
    """BCS of a value; signers are bare addresses."""
    layout = call.layout(call.types[0])
    try:
        data = layout.encode(read_ref(value), legacy=True)
    except MoveError as error:
        if error.status == "VM_MAX_VALUE_DEPTH_REACHED":
            raise
        call.charge(call.price("move_stdlib.bcs.to_bytes.failure"))
        raise call.abort(_FAILS) from None
    call.charge(call.price("move_stdlib.bcs.to_bytes.per_byte_serialized") * len(data))
    return (bytearray(data),)


@native("0x1::bcs::serialized_size", price="move_stdlib.bcs.serialized_size")
def serialized_size(call: NativeCall, value: Ref) -> tuple[Value]:
    """Length of the BCS of a value."""
    layout = call.layout(call.types[0])
    try:
        size = len(layout.encode(read_ref(value), legacy=True))
    except MoveError:
        call.charge(call.price("move_stdlib.bcs.serialized_size.failure"))
        raise call.abort(_FAILS) from None
    call.charge(call.price("move_stdlib.bcs.serialized_size.per_byte_serialized") * size)
    return (size,)


@native("0x1::bcs::constant_serialized_size", price="move_stdlib.bcs.constant_serialized_size")
def constant_serialized_size(call: NativeCall) -> tuple[Value]:
    """Length of the BCS of all values of a type, if it is the same."""
    nodes, size = _constant_size(call.layout(call.types[0]))
    call.charge(call.price("move_stdlib.bcs.constant_serialized_size.per_type_node") * nodes)
    return (call.option(size),)


def _constant_size(layout: Layout) -> tuple[int, int | None]:
    """Return how many layouts were looked at, up to the first without a constant size, and the size."""
    if layout.parts[0] != "struct":
        return 1, layout.constant
    nodes, total = 1, 0
    for field in layout.parts[1]:
        more, size = _constant_size(field)
        nodes += more
        if size is None:
            return nodes, None
        total += size
    return nodes, total


@native("0x1::from_bcs::from_bytes", "0x1::util::from_bytes")
def from_bytes(call: NativeCall, data: bytearray) -> tuple[Value]:
    """Value of BCS."""
    layout = call.layout(call.types[0])
    call.charge_base("aptos_framework.util.from_bytes", "per_byte", len(data))
    if t.SIGNER in t.all_parts(call.types):
        raise call.abort(_NOT_A_VALUE)
    try:
        return (layout.decode(bytes(data)),)
    except MoveError:
        raise call.abort(_NOT_A_VALUE) from None


# Values as text.

_ARGUMENTS_MISMATCH, _INVALID_FORMAT = 1, 2  # abort codes
_OPTION = t.struct("0x1::option::Option")
_CONS, _NIL = t.struct("0x1::string_utils::Cons"), t.struct("0x1::string_utils::NIL")
_PER_BYTE = "aptos_framework.string_utils.format.per_byte"


_PARTS = re.compile(r"\{\}|\{\{|\}\}|[{}]|[^{}]+")  # of a template


class Format(NamedTuple):
    """The flags of ``native_format``."""

    type_tag: bool
    canonicalize: bool
    single_line: bool
    integer_types: bool


@native("0x1::string_utils::native_format")
def native_format(call: NativeCall, value: Ref, *flags: bool) -> tuple[Value]:
    """Return a value as a ``String``."""
    call.layout(call.types[0])
    text = _Printer(call, Format(*flags)).typed(call.types[0], read_ref(value), 0)
    return ([bytearray(text.encode())],)


@native("0x1::string_utils::native_format_list")
def native_format_list(call: NativeCall, template: Ref, values: Ref) -> tuple[Value]:
    """Return a template with a value for each ``{}``, from a list made of ``Cons`` and ``NIL``."""
    data = read_ref(template)
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        raise call.abort(_INVALID_FORMAT) from None
    call.charge(call.price(_PER_BYTE) * len(data))
    printer = _Printer(call, Format(type_tag=True, canonicalize=False, single_line=True, integer_types=False))
    kind, rest, written = call.types[0], read_ref(values), ""
    for part in _PARTS.findall(text):
        if part == "{}":
            if not _is(kind, _CONS):
                raise call.abort(_ARGUMENTS_MISMATCH)
            first, kind = kind.arguments
            call.layout(first)
            written += printer.typed(first, rest[0], 0)
            rest = rest[1]
        elif part in {"{", "}"}:
            raise call.abort(_INVALID_FORMAT)
        else:
            written += part[0] if part in {"{{", "}}"} else part
    if not _is(kind, _NIL):
        raise call.abort(_ARGUMENTS_MISMATCH)
    return ([bytearray(written.encode())],)


def _is(kind: t.Type, generic: t.Struct) -> TypeGuard[t.Struct]:
    return isinstance(kind, t.Struct) and (kind.module, kind.name) == (generic.module, generic.name)


class _Printer:
    """Writes values. Each value that is written is charged, before what it consists of."""

    def __init__(self, call: NativeCall, form: Format) -> None:
        self._call, self._form = call, form

    def typed(self, kind: t.Type, value: Value, depth: int) -> str:
        """Return a value of a type as text, with the names of structs and fields."""
        layouts = self._call.machine.layouts
        if isinstance(kind, t.Vector) and not is_bytes(kind):
            self._charge()
            items = [self.typed(kind.element, one, depth + 1) for one in value]
            return f"[{self._joined(items, depth, one_line=isinstance(kind.element, t.Primitive))}]"
        if not isinstance(kind, t.Struct):
            return self.plain(layouts[kind], value, depth)
        self._charge()
        if is_string(kind):
            self._call.charge(self._call.price(_PER_BYTE) * len(value[0]))
            text = bytes(value[0]).decode()
            return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))
        if _is(kind, _OPTION):
            held = value[1:] if isinstance(value[0], int) else value[0]
            return f"Some({self.typed(kind.arguments[0], held[0], depth)})" if held else "None"
        definition = layouts.find_struct(kind)
        if definition.variants is not None:
            return self._variant(layouts[kind], value, depth)
        items = [
            f"{field.name}: {self.typed(t.substitute(field.type, kind.arguments), one, depth + 1)}"
            for field, one in zip(definition.fields, value, strict=True)
        ]
        return f"{kind if self._form.type_tag else kind.name} {{{self._joined(items, depth)}}}"

    def plain(self, layout: Layout, value: Value, depth: int) -> str:
        """Return a value inside an enum or a function value, whose structs a node writes without names."""
        self._charge()
        match layout.parts:
            case ("vector", element) if element.parts == ("u8",):
                if self._call.machine.environment.timed(CHARGE_BYTES_FOR_PRINTS):
                    self._call.charge(self._call.price(_PER_BYTE) * len(value))
                return f"0x{value.hex()}"
            case ("vector", element):
                items = [self.plain(element, one, depth + 1) for one in value]
                return f"[{self._joined(items, depth, one_line=len(element.parts) == 1)}]"
            case ("struct", fields):
                return f"{{{self._fields(fields, value, depth)}}}"
            case ("enum", _):
                return self._variant(layout, value, depth)
            case ("function",):
                return self._closure(value, depth)
            case (name,):
                return self._scalar(name, value)
        raise AssertionError(layout.parts)

    def _variant(self, layout: Layout, value: Value, depth: int) -> str:
        return f"#{value[0]}{{{self._fields(layout.parts[1][value[0]], value[1:], depth)}}}"

    def _fields(self, layouts: Sequence[Layout], values: Sequence[Value], depth: int) -> str:
        return self._joined([self.plain(*one, depth + 1) for one in zip(layouts, values, strict=True)], depth)

    def _closure(self, value: Closure, depth: int) -> str:
        module = value.module
        assert module is not None  # noqa: S101 - scripts cannot make closures over themselves
        if value.captured and not self._form.single_line:
            raise Unsupported("string_utils: a function value with captured arguments over several lines")
        captured = iter(zip(value.layouts, value.captured, strict=True))
        # Up to the last captured argument, those that the caller passes are written as _.
        items = [
            self.plain(*next(captured), depth) if value.mask >> i & 1 else "_" for i in range(value.mask.bit_length())
        ]
        text = ", ".join([*items, ".."] if items else [])
        return f"{_long_name(module)}::{value.name}{t.type_list(value.types)}({text})"

    def _scalar(self, name: str, value: Value) -> str:
        if name == "bool":
            return "true" if value else "false"
        if name == "address":
            return f"@{self._address(value)}"
        if name == "signer":
            sign = "@" if self._call.feature(SIGNER_TEXT) else ""
            return f"signer({sign}{self._address(value[1])})"
        return f"{value}{name * self._form.integer_types}"

    def _address(self, address: bytes) -> str:
        return address.hex() if self._form.canonicalize else t.address_text(address)

    def _charge(self) -> None:
        self._call.charge_base("aptos_framework.string_utils.format")

    def _joined(self, items: Sequence[str], depth: int, *, one_line: bool = False) -> str:
        """Return what stands between two brackets."""
        if not items:
            return ""
        if one_line or self._form.single_line:
            return f" {', '.join(items)} "
        start = f"\n{'  ' * (depth + 1)}"
        return start + f",{start}".join(items) + f"\n{'  ' * depth}"


def _long_name(module: t.ModuleId) -> str:
    """Return a module's name with all 64 digits of its address, unless it is special."""
    return str(module) if module.special else f"0x{module.address.hex()}::{module.name}"
