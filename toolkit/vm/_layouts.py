"""Layouts: how values of a type are copied, measured, written as BCS and read from it.

A layout is made of functions, not of descriptions that are interpreted again for every value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolkit.move._bcs import uleb128
from toolkit.vm import _types as t
from toolkit.vm._bcs import Input, Output, read_tag, tag_bytes, text, undecodable, write_text
from toolkit.vm._errors import MoveError
from toolkit.vm._values import MAX_VALUE_DEPTH, Closure, Value, depth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from toolkit.vm._code import StructDefinition

MAX_NODES_BUILT = 4_096  # of one layout; a node allows 512, but measures values of any type
_CLOSURE_FORMAT = 1  # version of the serialized form of function values
_UNPACKED_WHEN_COMPARED = {"u16", "u32", "u256"}  # elements that a node measures one by one through references

# Indices of layouts in BCS.
_INDICES = {"bool": 0, "u8": 1, "u64": 2, "u128": 3, "address": 4, "signer": 7, "u16": 8, "u32": 9, "u256": 10}
_INDICES |= {"i8": 13, "i16": 14, "i32": 15, "i64": 16, "i128": 17, "i256": 18}
_NAMES = {index: name for name, index in _INDICES.items()}
_VECTOR, _STRUCT, _FUNCTION = 5, 6, 12
_PLAIN, _WITH_VARIANTS = 0, 1  # forms of structs


@dataclass(slots=True, eq=False, init=False)
class Layout:
    """How values of one type are handled.

    Attributes
    ----------
    parts : tuple
        The layout's description: a primitive's name, or ("vector", element), ("struct", fields), ("enum", variants),
        ("function",).
    nodes, depth : int
        Number of layouts in it, itself included, and levels of nesting.
    has_functions : bool
        Whether values can contain closures, whose depth no type bounds.
    stack : int
        Abstract size of the top node.
    fixed : int or None
        Abstract size of all values if they have the same.
    copy, measure, measure_deref, packed : callable
        Copy a value; its abstract size, on its own and through a reference; its size as an element of a vector.
    write, read : callable
        To an `Output`, and from an `Input`.
    constant : int or None
        Length in BCS if all values have the same, as ``bcs::constant_serialized_size`` knows it.
    """

    parts: tuple[Any, ...]
    nodes: int
    depth: int
    has_functions: bool
    stack: int
    fixed: int | None
    copy: Callable[[Value], Value]
    measure: Callable[[Value], int]
    measure_deref: Callable[[Value], int]
    packed: Callable[[Value], int]
    write: Callable[[Value, Output], None]
    read: Callable[[Input], Value]
    constant: int | None
    modules: tuple[t.ModuleId, ...]
    type: t.Type | None

    def __init__(self, parts: tuple[Any, ...], children: Sequence[Layout] = ()) -> None:
        self.parts = parts
        self.nodes = 1 + sum(child.nodes for child in children)
        self.depth = 1 + max((child.depth for child in children), default=0)
        self.has_functions = any(child.has_functions for child in children)
        self.constant = None
        self.modules = ()
        self.type = None

    def encode(self, value: Value, *, legacy: bool = False) -> bytes:
        """Return a value as BCS.

        Raises
        ------
        MoveError
            If the value is nested too deeply, or cannot be serialized.
        """
        self.check_depth(value, measuring=False)
        output = Output(legacy=legacy)
        self.write(value, output)
        return bytes(output)

    def decode(self, data: bytes | bytearray) -> Value:
        """Return the value of BCS data.

        Raises
        ------
        MoveError
            If the data is not a value of the type, or has trailing bytes.
        """
        source = Input(data)
        value = self.read(source)
        if source.position != len(data):
            raise undecodable("bytes are left over")
        return value

    def check_depth(self, value: Value, *, measuring: bool = True) -> None:
        """Raise an error if the value is nested too deeply. Types bound the depth unless they have functions."""
        if self.has_functions and depth_of(value, measuring=measuring) > MAX_VALUE_DEPTH:
            raise MoveError("VM_MAX_VALUE_DEPTH_REACHED")


def _same(value: Value) -> Value:
    return value


def _constantly(size: int) -> Callable[[Value], int]:
    return lambda _: size


class LayoutMaker:
    """Makes layouts out of parts. Sizes are those of a gas schedule."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.primitives = {name: self._primitive(kind) for name, kind in t.PRIMITIVES.items()}
        self.function = self._function()

    def _set_top(self, layout: Layout, name: str) -> None:
        """Set the size of the top node, which is all that a vector counts of its elements."""
        layout.stack = self.sizes[name]
        layout.packed = _constantly(layout.stack)
        layout.fixed = None

    def _primitive(self, kind: t.Primitive) -> Layout:
        layout = Layout((kind.name,))
        layout.copy = _same
        if kind is t.SIGNER:
            self._signer(layout)
            return layout
        self._set_top(layout, kind.name)
        layout.fixed = layout.stack
        layout.measure = layout.measure_deref = _constantly(layout.stack)
        layout.packed = _constantly(self.sizes[f"per_{kind.name}_packed"])
        layout.constant = length = kind.bits // 8 or (1 if kind is t.BOOL else 32)
        if kind is t.BOOL:
            layout.write = lambda value, output: output.append(value)
            layout.read = _read_bool
        elif kind is t.ADDRESS:
            layout.write = lambda value, output: output.extend(value)
            layout.read = lambda source: source.take(32)
        else:
            signed = kind.minimum < 0

            def write(value: Value, output: Output) -> None:
                output += value.to_bytes(length, "little", signed=signed)

            layout.write = write
            layout.read = lambda source: int.from_bytes(source.take(length), "little", signed=signed)
        return layout

    def _signer(self, layout: Layout) -> None:
        self._set_top(layout, "struct")
        address = self.sizes["address"]
        master = self.sizes["struct"] + self.sizes["u16"] + address

        def measure(value: Value) -> int:
            return master + address * int(value[0])

        def write(value: Value, output: Output) -> None:
            if not output.legacy:
                output.append(value[0])
            elif value[0]:
                raise MoveError("VALUE_SERIALIZATION_ERROR", "a permissioned signer cannot be serialized")
            for address in value[1:]:
                output += address

        def read(source: Input) -> Value:
            tag = source.uleb()
            if tag > 1:
                raise undecodable("not a signer")
            return [tag, *(source.take(32) for _ in range(tag + 1))]

        layout.measure = layout.measure_deref = measure
        layout.copy, layout.write, layout.read = list, write, read

    def vector(self, element: Layout) -> Layout:
        """Return the layout of a vector."""
        layout = Layout(("vector", element), [element])
        name = element.parts[0]
        self._set_top(layout, "vector")
        base = self.sizes["vector"]

        def sum_of(measure: Callable[[Value], int], each: int | None) -> Callable[[Value], int]:
            if each is not None:
                return lambda value: base + each * len(value)
            return lambda value: base + sum(map(measure, value))

        is_packed = name in t.INTEGERS or name in {"bool", "address"}
        packed = self.sizes[f"per_{name}_packed"] if is_packed else 0
        each = packed if is_packed else element.fixed
        layout.measure = sum_of(element.measure, each)
        if name in _UNPACKED_WHEN_COMPARED:
            each = element.fixed
        layout.measure_deref = sum_of(element.measure_deref, each)
        if name in t.INTEGERS and name.startswith("i"):
            layout.packed = lambda value: packed if value else base  # as a node does, whatever the length

        if name == "u8":
            layout.copy = lambda value: value[:]
            layout.write = _write_bytes
            layout.read = lambda source: bytearray(source.take(source.length()))
            return layout

        copy, write_one, read_one = element.copy, element.write, element.read
        layout.copy = list if copy is _same else (lambda value: [copy(one) for one in value])

        def write(value: Value, output: Output) -> None:
            output += uleb128(len(value))
            for one in value:
                write_one(one, output)

        def read(source: Input) -> Value:
            return [read_one(source) for _ in range(source.length())]

        layout.write, layout.read = write, read
        return layout

    def struct(self, fields: Sequence[Layout]) -> Layout:
        """Return the layout of a struct."""
        layout = Layout(("struct", tuple(fields)), fields)
        self._fields(layout, fields, 0)
        writes, reads = [one.write for one in fields], [one.read for one in fields]

        def write(value: Value, output: Output) -> None:
            for write_one, one in zip(writes, value, strict=True):
                write_one(one, output)

        layout.write, layout.read = write, lambda source: [read_one(source) for read_one in reads]
        if all(one.constant is not None for one in fields):
            layout.constant = sum(one.constant or 0 for one in fields)
        return layout

    def _fields(self, layout: Layout, fields: Sequence[Layout], before: int) -> None:
        """Set how a struct, or a variant after its `before` hidden fields, is copied and measured."""
        self._set_top(layout, "struct")
        base = self.sizes["struct"] + before * self.sizes["u16"]
        if all(one.fixed is not None for one in fields):
            layout.fixed = base + sum(one.fixed or 0 for one in fields)
            layout.measure = layout.measure_deref = _constantly(layout.fixed)
        else:
            layout.measure = _total(base, before, [one.measure for one in fields])
            layout.measure_deref = layout.measure
            if any(one.measure is not one.measure_deref for one in fields):
                layout.measure_deref = _total(base, before, [one.measure_deref for one in fields])
        copies = [_same] * before + [one.copy for one in fields]
        if all(copy is _same for copy in copies):
            layout.copy = list
        else:
            layout.copy = lambda value: [copy(one) for copy, one in zip(copies, value, strict=True)]

    def enum(self, variants: Sequence[Sequence[Layout]]) -> Layout:
        """Return the layout of an enum."""
        layout = Layout(("enum", tuple(map(tuple, variants))), [one for fields in variants for one in fields])
        self._set_top(layout, "struct")
        forms = []
        for fields in variants:
            form = Layout(())
            self._fields(form, fields, 1)
            forms.append(form)
        writes = [[one.write for one in fields] for fields in variants]
        reads = [[one.read for one in fields] for fields in variants]

        def write(value: Value, output: Output) -> None:
            output += uleb128(value[0])
            for write_one, one in zip(writes[value[0]], value[1:], strict=True):
                write_one(one, output)

        def read(source: Input) -> Value:
            index = source.uleb()
            if index >= len(reads):
                raise undecodable(f"unknown variant {index}")
            return [index, *(read_one(source) for read_one in reads[index])]

        layout.write, layout.read = write, read
        layout.copy = lambda value: forms[value[0]].copy(value)
        layout.measure = lambda value: forms[value[0]].measure(value)
        layout.measure_deref = lambda value: forms[value[0]].measure_deref(value)
        return layout

    def _function(self) -> Layout:
        layout = Layout(("function",))
        self._set_top(layout, "closure")
        layout.has_functions = True
        base = self.sizes["closure"]

        def measure(value: Closure) -> int:
            captured = zip(value.layouts, value.captured, strict=True)
            return base + sum(int(one.measure(held)) for one, held in captured)

        layout.measure = layout.measure_deref = measure
        layout.copy = Closure.copy
        layout.write, layout.read = _write_closure, self._read_closure
        return layout

    def _read_closure(self, source: Input) -> Closure:
        count = source.uleb() - 5
        if count < 0 or count % 2 or source.take(2) != _CLOSURE_FORMAT.to_bytes(2, "little"):
            raise undecodable("not a function value")
        module = t.ModuleId(source.take(32), text(source))
        name = text(source)
        types = tuple(read_tag(source) for _ in range(source.length()))
        mask = int.from_bytes(source.take(8), "little")
        if mask.bit_count() != count // 2:
            raise undecodable("the mask does not fit the captured values")
        layouts, captured = [], []
        for _ in range(count // 2):
            layouts.append(self._read_description(source, [MAX_NODES_BUILT]))
            captured.append(layouts[-1].read(source))
        return Closure(module, name, types, mask, captured, tuple(layouts), persistent=True)

    def _read_description(self, source: Input, left: list[int], depth: int = 0) -> Layout:
        """Read the layout that is stored with a captured value; `left` bounds the number of its nodes."""
        left[0] -= 1
        if left[0] < 0 or depth > MAX_VALUE_DEPTH:
            raise undecodable("a layout is too large")
        index = source.uleb()
        if index in _NAMES:
            return self.primitives[_NAMES[index]]
        if index == _VECTOR:
            return self.vector(self._read_description(source, left, depth + 1))
        if index == _FUNCTION:
            return self.function
        if index == _STRUCT:
            form = source.uleb()

            def several() -> list[Layout]:
                return [self._read_description(source, left, depth + 1) for _ in range(source.length())]

            if form == _PLAIN:
                return self.struct(several())
            if form == _WITH_VARIANTS:
                return self.enum([several() for _ in range(source.length())])
        raise undecodable("not a layout")


def _total(base: int, before: int, measures: list[Callable[[Value], int]]) -> Callable[[Value], int]:
    def measure(value: Value) -> int:
        return base + sum([one(held) for one, held in zip(measures, value[before:], strict=True)])

    return measure


def _read_bool(source: Input) -> bool:
    byte = source.take(1)[0]
    if byte > 1:
        raise undecodable("not a bool")
    return byte == 1


def _write_bytes(value: Value, output: Output) -> None:
    output += uleb128(len(value))
    output += value


def _write_closure(value: Closure, output: Output) -> None:
    if not value.persistent or value.module is None:
        raise MoveError("VALUE_SERIALIZATION_ERROR", "a closure over a private function cannot be serialized")
    output += uleb128(5 + 2 * len(value.captured))
    output += _CLOSURE_FORMAT.to_bytes(2, "little") + value.module.address
    write_text(value.module.name, output)
    write_text(value.name, output)
    output += uleb128(len(value.types))
    for kind in value.types:
        output += tag_bytes(kind)
    output += value.mask.to_bytes(8, "little")
    for layout, held in zip(value.layouts, value.captured, strict=True):
        _describe(layout, output)
        layout.write(held, output)


def _describe(layout: Layout, output: bytearray) -> None:
    """Write the layout itself, as it is stored with a captured value."""
    form, *rest = layout.parts
    if form in _INDICES:
        output.append(_INDICES[form])
    elif form == "vector":
        output.append(_VECTOR)
        _describe(rest[0], output)
    elif form == "function":
        output.append(_FUNCTION)
    elif form == "struct":
        output += bytes((_STRUCT, _PLAIN))
        _describe_all(rest[0], output)
    else:
        output += bytes((_STRUCT, _WITH_VARIANTS)) + uleb128(len(rest[0]))
        for fields in rest[0]:
            _describe_all(fields, output)


def _describe_all(layouts: Sequence[Layout], output: bytearray) -> None:
    output += uleb128(len(layouts))
    for one in layouts:
        _describe(one, output)


class Layouts:
    """The layouts of types in one execution: what a struct consists of is read from the modules of the state."""

    def __init__(self, maker: LayoutMaker, find_struct: Callable[[t.Struct], StructDefinition]) -> None:
        self.maker = maker
        self.find_struct = find_struct
        self._made: dict[t.Type, Layout] = {}
        self._budget = 0

    def __getitem__(self, kind: t.Type) -> Layout:
        found = self._made.get(kind)
        if found is None:
            self._budget = MAX_NODES_BUILT
            found = self._make(kind, 0)
        return found

    def _make(self, kind: t.Type, depth: int) -> Layout:
        found = self._made.get(kind)
        if found is not None:
            self._budget -= found.nodes
            return found
        self._budget -= 1
        if depth > MAX_VALUE_DEPTH:
            raise MoveError("VM_MAX_VALUE_DEPTH_REACHED")
        if self._budget < 0:
            raise MoveError("TOO_MANY_TYPE_NODES")
        if isinstance(kind, t.Primitive):
            return self.maker.primitives[kind.name]
        if isinstance(kind, t.Vector):
            element = self._make(kind.element, depth + 1)
            layout = self.maker.vector(element)
            layout.modules = element.modules
        elif isinstance(kind, t.Struct):
            layout = self._struct(kind, depth)
        elif isinstance(kind, t.Function):
            return self.maker.function
        else:
            raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", f"{kind} has no layout")
        layout.type = kind
        self._made[kind] = layout
        return layout

    def _struct(self, kind: t.Struct, depth: int) -> Layout:
        definition = self.find_struct(kind)
        modules = {kind.module: None}

        def several(fields: Sequence[Any]) -> list[Layout]:
            made = [self._make(t.substitute(field.type, kind.arguments), depth + 1) for field in fields]
            for one in made:
                modules.update(dict.fromkeys(one.modules))
            return made

        if definition.variants is None:
            layout = self.maker.struct(several(definition.fields))
        else:
            layout = self.maker.enum([several(variant.fields) for variant in definition.variants])
        layout.modules = tuple(modules)
        return layout


def is_bytes(kind: t.Type) -> bool:
    """Return whether a type is vector<u8>."""
    return isinstance(kind, t.Vector) and kind.element is t.U8


def is_string(kind: t.Type) -> bool:
    """Return whether a type is ``0x1::string::String``."""
    return isinstance(kind, t.Struct) and kind.name == "String" and kind.module == t.ModuleId(t.FRAMEWORK, "string")
