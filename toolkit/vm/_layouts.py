"""Layouts: how values of a type are copied, measured, written as BCS and read from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader, uleb128
from toolkit.vm import _types as t
from toolkit.vm._bcs import LegacyOutput, listed, read_tag, tag_bytes, text_bytes
from toolkit.vm._errors import MoveError
from toolkit.vm._values import MAX_VALUE_DEPTH, Closure, Value, depth_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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


class Layout:
    """How values of one type are handled.

    Attributes
    ----------
    parts : tuple
        The layout's description: a primitive's name, or ("vector", element), ("struct", fields), ("enum", variants),
        ("function",).
    stack : int
        Abstract size of the top node, which is all that a vector counts of its elements.
    nodes, depth : int
        Number of layouts in it, itself included, and levels of nesting.
    has_functions : bool
        Whether values can contain closures, whose depth no type bounds.
    is_scalar : bool
        Whether values cannot be changed in place.
    fixed : int or None
        Abstract size of all values if they have the same.
    constant : int or None
        Length in BCS if all values have the same, as ``bcs::constant_serialized_size`` knows it.
    modules : tuple of ModuleId
        Modules of its structs.
    """

    is_scalar = False
    nodes: int
    depth: int
    has_functions: bool

    def __init__(self, parts: tuple[Any, ...], stack: int, children: Iterable[Layout] = ()) -> None:
        self.parts, self.stack = parts, stack
        below = list(children)
        self.nodes = 1 + sum(child.nodes for child in below)
        self.depth = 1 + max((child.depth for child in below), default=0)
        self.has_functions = any(child.has_functions for child in below)
        self.fixed: int | None = None
        self.constant: int | None = None
        self.modules: tuple[t.ModuleId, ...] = ()

    def copy(self, value: Value) -> Value:
        """Return a copy that shares nothing that can be changed."""
        raise NotImplementedError

    def measure(self, value: Value, *, compared: bool = False) -> int:
        """Return the abstract size of a value; `compared` is measured through a reference."""
        raise NotImplementedError

    def packed(self, _: Value) -> int:
        """Return the abstract size of a value as an element of a vector."""
        return self.stack

    def write(self, value: Value, output: bytearray) -> None:
        """Write a value as BCS."""
        raise NotImplementedError

    def read(self, source: Reader) -> Value:
        """Read a value from BCS."""
        raise NotImplementedError

    def encode(self, value: Value, *, legacy: bool = False) -> bytes:
        """Return a value as BCS.

        Raises
        ------
        MoveError
            If the value is nested too deeply, or cannot be serialized.
        """
        self.check_depth(value, measuring=False)
        output = LegacyOutput() if legacy else bytearray()
        self.write(value, output)
        return bytes(output)

    def decode(self, data: bytes | bytearray) -> Value:
        """Return the value of BCS data.

        Raises
        ------
        MoveError
            If the data is not a value of the type, or has trailing bytes.
        """
        source = Reader(bytes(data))
        try:
            value = self.read(source)
            source.end()
        except SchemaError as error:
            raise MoveError("FAILED_TO_DESERIALIZE_RESOURCE", str(error)) from None
        return value

    def check_depth(self, value: Value, *, measuring: bool = True) -> None:
        """Raise an error if the value is nested too deeply. Types bound the depth unless they have functions."""
        if self.has_functions and depth_of(value, measuring=measuring) > MAX_VALUE_DEPTH:
            raise MoveError("VM_MAX_VALUE_DEPTH_REACHED")


class _Scalar(Layout):
    is_scalar = True

    def __init__(self, kind: t.Primitive, sizes: Mapping[str, int]) -> None:
        super().__init__((kind.name,), sizes[kind.name])
        self.fixed = self.stack
        self.constant = self.length = kind.bits // 8 or (1 if kind is t.BOOL else 32)
        self.signed = kind.minimum < 0
        self._packed = sizes[f"per_{kind.name}_packed"]

    def copy(self, value: Value) -> Value:
        return value

    def measure(self, value: Value, *, compared: bool = False) -> int:  # noqa: ARG002
        return self.stack

    def packed(self, _: Value) -> int:
        return self._packed

    def write(self, value: Value, output: bytearray) -> None:
        output += value.to_bytes(self.length, "little", signed=self.signed)


class _Integer(_Scalar):
    def read(self, source: Reader) -> Value:
        return int.from_bytes(source.fixed(self.length), "little", signed=self.signed)


class _Bool(_Scalar):
    def read(self, source: Reader) -> Value:
        return source.bool()


class _Address(_Scalar):
    def write(self, value: Value, output: bytearray) -> None:
        output += value

    def read(self, source: Reader) -> Value:
        return source.fixed(32)


class _Signer(Layout):
    def __init__(self, sizes: Mapping[str, int]) -> None:
        super().__init__(("signer",), sizes["struct"])
        self._master = sizes["struct"] + sizes["u16"] + sizes["address"]
        self._address = sizes["address"]

    def copy(self, value: Value) -> Value:
        return list(value)

    def measure(self, value: Value, *, compared: bool = False) -> int:  # noqa: ARG002
        return self._master + self._address * int(value[0])

    def write(self, value: Value, output: bytearray) -> None:
        if not isinstance(output, LegacyOutput):
            output.append(value[0])
        elif value[0]:
            raise MoveError("VALUE_SERIALIZATION_ERROR", "a permissioned signer cannot be serialized")
        for address in value[1:]:
            output += address

    def read(self, source: Reader) -> Value:
        tag = source.uleb128()
        if tag > 1:
            raise SchemaError("not a signer")
        return [tag, *(source.fixed(32) for _ in range(tag + 1))]


class _Vector(Layout):
    def __init__(self, element: Layout, sizes: Mapping[str, int]) -> None:
        super().__init__(("vector", element), sizes["vector"], [element])
        self.element = element
        # What each element counts; None if they are measured one by one.
        self._each = element.packed(None) if element.is_scalar else element.fixed
        self._each_compared = element.fixed if element.parts[0] in _UNPACKED_WHEN_COMPARED else self._each
        self.modules = element.modules

    def copy(self, value: Value) -> Value:
        return list(value) if self.element.is_scalar else [self.element.copy(one) for one in value]

    def measure(self, value: Value, *, compared: bool = False) -> int:
        each = self._each_compared if compared else self._each
        if each is not None:
            return self.stack + each * len(value)
        return self.stack + sum([self.element.measure(one, compared=compared) for one in value])

    def packed(self, value: Value) -> int:
        if value and isinstance(self.element, _Integer) and self.element.signed:
            return self.element.packed(None)  # as a node does, whatever the length
        return self.stack

    def write(self, value: Value, output: bytearray) -> None:
        output += uleb128(len(value))
        for one in value:
            self.element.write(one, output)

    def read(self, source: Reader) -> Value:
        return [self.element.read(source) for _ in range(source.length())]


class _Bytes(_Vector):
    def copy(self, value: Value) -> Value:
        return value[:]

    def write(self, value: Value, output: bytearray) -> None:
        output += uleb128(len(value)) + value

    def read(self, source: Reader) -> Value:
        return bytearray(source.bytes())


class _Struct(Layout):
    def __init__(self, fields: Sequence[Layout], sizes: Mapping[str, int]) -> None:
        super().__init__(("struct", tuple(fields)), sizes["struct"], fields)
        self.fields = fields
        self._is_flat = all(one.is_scalar for one in fields)
        fixed, constant = [one.fixed for one in fields], [one.constant for one in fields]
        self.fixed = None if None in fixed else self.stack + sum(map(int, fixed))  # type: ignore[arg-type]
        self.constant = None if None in constant else sum(map(int, constant))  # type: ignore[arg-type]

    def copy(self, value: Value) -> Value:
        return list(value) if self._is_flat else [one.copy(held) for one, held in zip(self.fields, value, strict=True)]

    def measure(self, value: Value, *, compared: bool = False) -> int:
        if self.fixed is not None:
            return self.fixed
        fields = zip(self.fields, value, strict=True)
        return self.stack + sum([one.measure(held, compared=compared) for one, held in fields])

    def write(self, value: Value, output: bytearray) -> None:
        for one, held in zip(self.fields, value, strict=True):
            one.write(held, output)

    def read(self, source: Reader) -> Value:
        return [one.read(source) for one in self.fields]


class _Enum(Layout):
    """A variant is like a struct after the index of the variant, which counts as a field."""

    def __init__(self, variants: Sequence[Sequence[Layout]], sizes: Mapping[str, int]) -> None:
        children = [one for fields in variants for one in fields]
        super().__init__(("enum", tuple(map(tuple, variants))), sizes["struct"], children)
        self._forms = [_Struct(fields, sizes) for fields in variants]
        self._index = sizes["u16"]

    def copy(self, value: Value) -> Value:
        return [value[0], *self._forms[value[0]].copy(value[1:])]

    def measure(self, value: Value, *, compared: bool = False) -> int:
        form: _Struct = self._forms[value[0]]
        return self._index + form.measure(value[1:], compared=compared)

    def write(self, value: Value, output: bytearray) -> None:
        output += uleb128(value[0])
        self._forms[value[0]].write(value[1:], output)

    def read(self, source: Reader) -> Value:
        index = source.uleb128()
        if index >= len(self._forms):
            raise SchemaError(f"unknown variant {index}")
        return [index, *self._forms[index].read(source)]


class _Function(Layout):
    def __init__(self, maker: LayoutMaker) -> None:
        super().__init__(("function",), maker.sizes["closure"])
        self.has_functions = True
        self._maker = maker

    def copy(self, value: Closure) -> Value:
        return value.copy()

    def measure(self, value: Closure, *, compared: bool = False) -> int:  # noqa: ARG002
        captured = zip(value.layouts, value.captured, strict=True)
        return self.stack + sum(int(one.measure(held)) for one, held in captured)

    def write(self, value: Closure, output: bytearray) -> None:
        if not value.persistent or value.module is None:
            raise MoveError("VALUE_SERIALIZATION_ERROR", "a closure over a private function cannot be serialized")
        output += uleb128(5 + 2 * len(value.captured))
        output += _CLOSURE_FORMAT.to_bytes(2, "little") + value.module.address
        output += text_bytes(value.module.name) + text_bytes(value.name) + listed(map(tag_bytes, value.types))
        output += value.mask.to_bytes(8, "little")
        for layout, held in zip(value.layouts, value.captured, strict=True):
            output += _described(layout)
            layout.write(held, output)

    def read(self, source: Reader) -> Closure:
        count = source.uleb128() - 5
        if count < 0 or count % 2 or source.fixed(2) != _CLOSURE_FORMAT.to_bytes(2, "little"):
            raise SchemaError("not a function value")
        module = t.ModuleId(source.fixed(32), source.string())
        name = source.string()
        types = tuple(read_tag(source) for _ in range(source.length()))
        mask = source.u64()
        if mask.bit_count() != count // 2:
            raise SchemaError("the mask does not fit the captured values")
        layouts, captured = [], []
        for _ in range(count // 2):
            layouts.append(self._read_description(source, [MAX_NODES_BUILT]))
            captured.append(layouts[-1].read(source))
        return Closure(module, name, types, mask, captured, tuple(layouts), persistent=True)

    def _read_description(self, source: Reader, left: list[int], depth: int = 0) -> Layout:
        """Read the layout that is stored with a captured value; `left` bounds the number of its nodes."""
        left[0] -= 1
        if left[0] < 0 or depth > MAX_VALUE_DEPTH:
            raise SchemaError("a layout is too large")
        index, maker = source.uleb128(), self._maker

        def several() -> list[Layout]:
            return [self._read_description(source, left, depth + 1) for _ in range(source.length())]

        if index in _NAMES:
            return maker.primitives[_NAMES[index]]
        if index == _VECTOR:
            return maker.vector(self._read_description(source, left, depth + 1))
        if index == _FUNCTION:
            return self
        form = source.uleb128() if index == _STRUCT else None
        if form == _PLAIN:
            return maker.struct(several())
        if form == _WITH_VARIANTS:
            return maker.enum([several() for _ in range(source.length())])
        raise SchemaError("not a layout")


def _described(layout: Layout) -> bytes:
    """Return the layout itself, as it is stored with a captured value."""
    match layout.parts:
        case ("vector", element):
            return bytes((_VECTOR,)) + _described(element)
        case ("function",):
            return bytes((_FUNCTION,))
        case ("struct", fields):
            return bytes((_STRUCT, _PLAIN)) + listed(map(_described, fields))
        case ("enum", variants):
            forms = (listed(map(_described, fields)) for fields in variants)
            return bytes((_STRUCT, _WITH_VARIANTS)) + listed(forms)
    return bytes((_INDICES[layout.parts[0]],))


class LayoutMaker:
    """Makes layouts out of parts. Sizes are those of a gas schedule."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.primitives: dict[str, Layout] = {name: _Integer(kind, sizes) for name, kind in t.INTEGERS.items()}
        self.primitives |= {"bool": _Bool(t.BOOL, sizes), "address": _Address(t.ADDRESS, sizes)}
        self.primitives["signer"] = _Signer(sizes)
        self.function = _Function(self)

    def vector(self, element: Layout) -> Layout:
        """Return the layout of a vector."""
        return (_Bytes if element.parts == ("u8",) else _Vector)(element, self.sizes)

    def struct(self, fields: Sequence[Layout]) -> Layout:
        """Return the layout of a struct."""
        return _Struct(fields, self.sizes)

    def enum(self, variants: Sequence[Sequence[Layout]]) -> Layout:
        """Return the layout of an enum."""
        return _Enum(variants, self.sizes)


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
            layout = self.maker.vector(self._make(kind.element, depth + 1))
        elif isinstance(kind, t.Struct):
            layout = self._struct(kind, depth)
        elif isinstance(kind, t.Function):
            return self.maker.function
        else:
            raise MoveError("UNKNOWN_INVARIANT_VIOLATION_ERROR", f"{kind} has no layout")
        self._made[kind] = layout
        return layout

    def _struct(self, kind: t.Struct, depth: int) -> Layout:
        definition = self.find_struct(kind)
        modules = {kind.module: None}

        def several(fields: Sequence[Any]) -> list[Layout]:
            made = [self._make(t.substitute(field.type, kind.arguments), depth + 1) for field in fields]
            modules.update(dict.fromkeys(module for one in made for module in one.modules))
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
