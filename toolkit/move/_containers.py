"""Kinds of layouts with parts (vectors, Options, structs and enums), and layouts whose parts are not known."""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit._present.messages import describe, shorten
from toolkit.move import _codecs as codecs
from toolkit.move._bcs import uleb128
from toolkit.move._codecs import BaseLayout, Codec, Convert, Mismatch, codec_of
from toolkit.move._ids import format_hex
from toolkit.move._scalars import BYTES, Plain, Scalar, UInt
from toolkit.move._type_tags import StructTag, TypeTag, wire_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_MAX_PLAIN_NUMBER = (1 << 32) - 1  # nodes take numbers up to u32 as JSON numbers, larger ones as text
_BYTE = UInt(8)


class VectorOf(BaseLayout, frozen=True):
    """The layout of ``vector<element>``, for any element type except u8.

    Parameters
    ----------
    element : Layout
        Layout of the elements.

    Examples
    --------
    >>> from toolkit.move import UInt, VectorOf, decode_json
    >>> decode_json(VectorOf(UInt(64)), ["1", "2"])
    [1, 2]
    """

    element: Layout

    @property
    def move_type(self) -> str:
        return f"vector<{self.element.move_type}>"

    @property
    def words(self) -> str:
        return f"array<{self.element.words}>"

    def parts(self) -> Iterable[BaseLayout]:
        return (self.element,)

    def codec(self) -> Codec:
        element = codec_of(self.element)
        read_element, write_element, arguments = element.read, element.write, _array(element.argument)

        def read(data: bytes, position: int) -> tuple[list[Any], int]:
            length, position = codecs.read_length(data, position)
            out: list[Any] = []
            append = out.append
            try:
                for _ in range(length):
                    value, position = read_element(data, position)
                    append(value)
            except Mismatch as mismatch:
                raise mismatch.at(len(out)) from None
            return out, position

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, (list, tuple)):
                raise Mismatch(f"expected an array, got {describe(value)}")
            out += uleb128(len(value))
            index = 0
            try:
                for index, item in enumerate(value):  # noqa: B007  # the handler below reads it
                    write_element(item, out)
            except Mismatch as mismatch:
                raise mismatch.at(index) from None

        def argument(value: Any) -> list[Any]:
            if not isinstance(value, (list, tuple)):
                raise Mismatch(f"expected {self.move_type}, got {describe(value)}; pass a list")
            out: list[Any] = arguments(value)
            return out

        return Codec(_array(element.decode), _array(element.encode), read, write, argument, _array(element.accept))


def _array(element: Convert) -> Convert:
    """Return a function that converts each element of an array in JSON."""

    def convert(value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise Mismatch(f"expected an array, got {describe(value)}")
        out: list[Any] = []
        append = out.append
        try:
            for item in value:
                append(element(item))
        except Mismatch as mismatch:
            raise mismatch.at(len(out)) from None
        return out

    return convert


class OptionOf(BaseLayout, frozen=True):
    """The layout of ``0x1::option::Option<element>``.

    Parameters
    ----------
    element : Layout
        Layout of the element.

    Examples
    --------
    >>> from toolkit.move import OptionOf, UInt, decode_json
    >>> layout = OptionOf(UInt(64))
    >>> decode_json(layout, {"vec": ["7"]}), decode_json(layout, {"vec": []})
    (7, None)
    """

    element: Layout

    @property
    def move_type(self) -> str:
        return f"0x1::option::Option<{self.element.move_type}>"

    def parts(self) -> Iterable[BaseLayout]:
        return (self.element,)

    def some(self, value: Any) -> Any:
        """Return the element of a non-empty Option, given the Option's Python form.

        The Python form is the element itself. If the element is also an Option, it is wrapped as
        ``{"vec": [element]}``: otherwise None could mean either an empty element or an empty outer Option.
        """
        if not isinstance(self.element, OptionOf):
            return value
        if type(value) is dict and len(value) == 1 and type(value.get("vec")) is list and len(value["vec"]) == 1:
            return value["vec"][0]
        raise Mismatch(f'expected an Option of an Option, as None or {{"vec": [x]}}, got {codecs.preview(value)}')

    def codec(self) -> Codec:  # noqa: C901 - one function per form of a value
        element, nested, some = codec_of(self.element), isinstance(self.element, OptionOf), self.some

        def decode(value: Any) -> Any:
            items = option_items(value, self.element)
            if not items:
                return None
            try:
                inner = element.decode(items[0])
            except Mismatch as mismatch:
                raise mismatch.at("vec[0]") from None
            if nested:
                return {"vec": [inner]}
            if inner is None:
                # Only an untyped element can be null; the result would equal an empty Option.
                raise Mismatch(f"expected {self.element.words}, got null").at("vec[0]")
            return inner

        def encode(value: Any) -> dict[str, Any]:
            return {"vec": [] if value is None else [element.encode(some(value))]}

        def read(data: bytes, position: int) -> tuple[Any, int]:
            # The length of a vector and the index of a variant coincide: one byte.
            if not codecs.read_flag(data, position, "Option", "an Option, which starts with 0 or 1"):
                return None, position + 1
            try:
                value, position = element.read(data, position + 1)
            except Mismatch as mismatch:
                raise mismatch.at("vec[0]") from None
            return ({"vec": [value]} if nested else value), position

        def write(value: Any, out: bytearray) -> None:
            out.append(value is not None)
            if value is not None:
                element.write(some(value), out)

        def argument(value: Any) -> dict[str, Any]:
            # None, the element, or ``{"vec": [...]}``. Nodes treat ``vec`` as a vector of the element's type, and
            # accept a ``vector<u8>`` only as hex.
            if value is None:
                items = []
            elif isinstance(value, Mapping) and set(value) == {"vec"}:
                items = option_items(dict(value), self.element)
            else:
                items = [value]
            encoded: list[Any] = [element.argument(item) for item in items]
            return {"vec": format_hex(bytes(encoded)) if self.element == _BYTE else encoded}

        def accept(value: Any) -> Any:
            items = value.get("vec") if type(value) is dict else None
            if self.element == _BYTE:  # a vector<u8>, which is hex
                items = list(BYTES.from_argument(items))
            if type(items) is not list or len(items) > 1:
                raise _no_option(value)
            found = element.accept(items[0]) if items else None
            return {"vec": [found]} if nested and items else found

        return Codec(decode, encode, read, write, argument, accept)


def option_items(value: Any, element: Layout) -> list[Any]:
    """Return the list in ``{"vec": [...]}``, with at most one element; raise `Mismatch` for anything else."""
    if type(value) is dict and len(value) == 1:
        items = value.get("vec")
        if type(items) is str and element == _BYTE:
            # A node that treats Option as a plain struct prints its vector<u8> as hex.
            items = list(BYTES.from_json(items))
        if type(items) is list and len(items) <= 1:
            return items
    raise _no_option(value)


def _no_option(value: Any) -> Mismatch:
    return Mismatch(f'expected an Option, as {{"vec": []}} or {{"vec": [x]}}, got {codecs.preview(value)}')


class StructOf(BaseLayout, frozen=True):
    """The layout of a struct.

    Parameters
    ----------
    tag : StructTag
        Type of the struct.
    fields : tuple of (str, Layout)
        Names and layouts of the fields, in declared order.

    Examples
    --------
    >>> from toolkit.move import StructOf, StructTag, UInt, decode_json
    >>> layout = StructOf(StructTag("0xcafe", "shop", "Item"), (("price", UInt(64)),))
    >>> decode_json(layout, {"price": "7"})
    {'price': 7}
    """

    tag: StructTag
    fields: Fields

    @property
    def move_type(self) -> str:
        return wire_type(self.tag)

    def parts(self) -> Iterable[BaseLayout]:
        return [inner for _, inner in self.fields]

    def codec(self) -> Codec:  # noqa: C901 - one function per form of a value
        fields = [(name, codec_of(layout)) for name, layout in self.fields]
        by_name = sorted(fields, key=itemgetter(0))  # nodes return fields by name, not in declared order
        readers = [(name, codec.read) for name, codec in fields]
        writers = [(name, codec.write) for name, codec in fields]
        arguments = self._json([(name, codec.argument) for name, codec in fields])
        accept_exactly = self.accept_exactly()
        names = {name for name, _ in fields}

        def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
            out: dict[str, Any] = {}
            name = ""
            try:
                for name, read_field in readers:
                    out[name], position = read_field(data, position)
            except Mismatch as mismatch:
                raise mismatch.at(name) from None
            return out, position

        def write(value: Any, out: bytearray) -> None:
            if not isinstance(value, dict):
                raise self._no_object(value)
            name = ""
            try:
                for name, write_field in writers:
                    write_field(value[name], out)
            except Mismatch as mismatch:
                raise mismatch.at(name) from None
            except KeyError:
                raise self._no_field(name, value) from None
            if len(value) != len(writers):
                raise self._unknown_fields(value)

        def argument(value: Any) -> Any:
            return arguments(dict(value) if isinstance(value, Mapping) else value)

        def accept(value: Any) -> Any:
            # Nodes ignore keys that are not fields of the struct.
            is_object = type(value) is dict
            return accept_exactly({name: one for name, one in value.items() if name in names} if is_object else value)

        decode = self._json([(name, codec.decode) for name, codec in fields])
        encode = self._json([(name, codec.encode) for name, codec in by_name])
        return Codec(decode, encode, read, write, argument, accept)

    def accept_exactly(self) -> Convert:
        """Return the decoder of an argument whose keys must all be fields, as in the variant of an enum."""
        return self._json([(name, codec_of(layout).accept) for name, layout in self.fields])

    def _json(self, plan: list[tuple[str, Convert]]) -> Convert:
        """Return a function that converts each field of an object in JSON."""

        def convert(value: Any) -> dict[str, Any]:
            if type(value) is not dict:
                raise self._no_object(value)
            out: dict[str, Any] = {}
            name = ""
            try:
                for name, convert_field in plan:
                    out[name] = convert_field(value[name])
            except Mismatch as mismatch:
                raise mismatch.at(name) from None
            except KeyError:
                raise self._no_field(name, value) from None
            if len(value) != len(plan):
                raise self._unknown_fields(value)
            return out

        return convert

    def _no_object(self, value: Any) -> Mismatch:
        return Mismatch(f"expected {self.tag.base} as an object, got {describe(value)}")

    def _no_field(self, name: str, value: Any) -> Mismatch:
        return Mismatch(f"expected {self.tag.base} with the field {name}, got {codecs.preview(value)}")

    def _unknown_fields(self, value: Any) -> Mismatch:
        known = dict(self.fields)
        names = ", ".join([shorten(key, 30) for key in value if key not in known][: codecs.MAX_NAMES])
        fields = f"with the fields {', '.join(known)}" if known else "without fields"
        return Mismatch(f"expected {self.tag.base} {fields}, got also {names}")


class EnumOf(BaseLayout, frozen=True):
    """The layout of an enum.

    Parameters
    ----------
    tag : StructTag
        Type of the enum.
    variants : tuple of (str, tuple of (str, Layout))
        Names of the variants and their fields, in declared order.

    Examples
    --------
    >>> from toolkit.move import EnumOf, StructTag, UInt, encode_bcs
    >>> layout = EnumOf(StructTag("0xcafe", "lamp", "Mode"), (("Off", ()), ("On", (("level", UInt(8)),))))
    >>> encode_bcs(layout, {"__variant__": "On", "level": 9}).hex()
    '0109'
    """

    tag: StructTag
    variants: tuple[tuple[str, Fields], ...]

    @property
    def move_type(self) -> str:
        return wire_type(self.tag)

    def structs(self) -> list[tuple[str, StructOf]]:
        """Return the name of each variant and the variant's fields as a struct."""
        return [(name, StructOf(self.tag, fields)) for name, fields in self.variants]

    def parts(self) -> Iterable[BaseLayout]:
        return [struct for _, struct in self.structs()]

    def closed(self) -> bool:
        # Nodes before 2026 print that a type is an enum, but not its variants.
        return bool(self.variants) and BaseLayout.closed(self)

    def codec(self) -> Codec:  # noqa: C901 - one function per form of a value
        variants = {name: codec_of(struct) for name, struct in self.structs()}
        in_order = list(variants.items())
        indices = {name: uleb128(index) for index, name in enumerate(variants)}
        accepted = {name: struct.accept_exactly() for name, struct in self.structs()}

        def decode(value: Any) -> dict[str, Any]:
            name, rest = self._chosen(value, variants)
            return {codecs.VARIANT: name, **variants[name].decode(rest)}

        def encode(value: Any) -> dict[str, Any]:
            name, rest = self._chosen(value, variants)
            return {codecs.VARIANT: name, **variants[name].encode(rest)}

        def read(data: bytes, position: int) -> tuple[dict[str, Any], int]:
            index, after = codecs.read_index(data, position)
            if index >= len(variants):
                known = f"{len(variants)} variants of {self.tag.base}"
                raise Mismatch(f"byte {position}: expected the index of one of {known}, got {index}")
            name, codec = in_order[index]
            fields, after = codec.read(data, after)
            return {codecs.VARIANT: name, **fields}, after

        def write(value: Any, out: bytearray) -> None:
            name, rest = self._chosen(value, variants)
            out += indices[name]
            variants[name].write(rest, out)

        def argument(value: Any) -> dict[str, Any]:
            # In the form that nodes return, or in the form that they accept.
            rest = dict(value) if isinstance(value, Mapping) else {}
            if codecs.VARIANT in rest:
                name = rest.pop(codecs.VARIANT)
            elif len(rest) == 1:
                name, rest = next(iter(rest.items()))
            else:
                name = None
            if not isinstance(name, str) or name not in variants:
                raise Mismatch(
                    f"expected a variant of {self.tag.base} as {{{codecs.VARIANT!r}: name, ...}}, where name is one of "
                    f"{', '.join(variants)}; got {codecs.preview(value)}"
                )
            try:
                return {name: variants[name].argument(rest)}
            except Mismatch as mismatch:
                raise mismatch.at(name) from None

        def accept(value: Any) -> dict[str, Any]:
            if type(value) is not dict or len(value) != 1 or not value.keys() <= accepted.keys():
                expected = f"expected {self.tag.base} as {{name: fields}} with one of {', '.join(accepted)}"
                raise Mismatch(f"{expected}, got {codecs.preview(value)}")
            [(name, inner)] = value.items()
            return {codecs.VARIANT: name, **accepted[name](inner)}

        return Codec(decode, encode, read, write, argument, accept)

    def _chosen(self, value: Any, plans: Mapping[str, object]) -> tuple[str, dict[str, Any]]:
        """Return the name of a value's variant, which must be a key of `plans`, and the fields of the variant."""
        if type(value) is not dict:
            raise Mismatch(f"expected {self.tag.base} as an object, got {describe(value)}")
        rest = dict(value)
        name = rest.pop(codecs.VARIANT, None)
        if type(name) is str and name in plans:
            return name, rest
        got = describe(name) if codecs.VARIANT in value else codecs.preview(value)
        raise Mismatch(f"expected {codecs.VARIANT} to be one of {', '.join(plans)}, got {got}")


class _Open(Plain, frozen=True):
    """Base class of kinds whose structure is not known: JSON is passed through, and there is no BCS form."""

    tag: TypeTag

    @property
    def move_type(self) -> str:
        return wire_type(self.tag)

    def closed(self) -> bool:
        return False

    def from_json(self, value: Any) -> Any:
        return value

    def _why(self, verb: str) -> str:
        """Return why values cannot be read or written."""
        raise NotImplementedError

    def read(self, data: bytes, position: int) -> tuple[Any, int]:  # noqa: ARG002
        raise Mismatch(self._why("read from BCS"))

    def write(self, value: Any, out: bytearray) -> None:  # noqa: ARG002
        raise Mismatch(self._why("written as BCS"))

    def from_argument(self, value: Any) -> Any:  # noqa: ARG002
        raise Mismatch(self._why("decoded as arguments"))


class FunctionValue(_Open, frozen=True):
    """The layout of a function value. Its JSON is passed through. It cannot be an argument or be encoded as BCS.

    Parameters
    ----------
    tag : TypeTag
        Type of the function value.

    Examples
    --------
    >>> from toolkit.move import AbiMap, parse_type_tag, resolve_layout
    >>> resolve_layout(parse_type_tag("|u64|bool", abi=True), AbiMap())
    FunctionValue(tag=FunctionType(arguments=(Primitive(name='u64'),), results=(Primitive(name='bool'),), abilities=()))
    """

    words = "string<move_function_id>"

    def _why(self, verb: str) -> str:
        return f"function values ({self.tag}) cannot be {verb}"

    def argument(self, value: Any) -> Any:  # noqa: ARG002
        raise Mismatch("a function value cannot be an argument")


class Untyped(_Open, frozen=True):
    """The layout of a type whose structure is not known. JSON values are passed through.

    Parameters
    ----------
    tag : TypeTag
        The type.
    reason : str
        Why the structure is not known.

    Examples
    --------
    >>> from toolkit.move import AbiMap, parse_type_tag, resolve_layout
    >>> resolve_layout(parse_type_tag("0xabc::unknown::Thing"), AbiMap()).reason[:16]
    'no ABI of module'
    """

    reason: str

    def unknown(self) -> Iterator[str]:
        yield self.reason

    def _why(self, verb: str) -> str:
        return f"{self.tag} cannot be {verb}: {self.reason}"

    def argument(self, value: Any) -> Any:
        """Encode a value of unknown type. Bytes become hex, and negative and large integers become text."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return format_hex(bytes(value))
        if isinstance(value, int) and not isinstance(value, bool):
            return value if 0 <= value <= _MAX_PLAIN_NUMBER else str(value)
        if isinstance(value, (list, tuple)):
            return [self.argument(item) for item in value]
        if isinstance(value, Mapping):
            return {key: self.argument(item) for key, item in value.items()}
        if value is None or isinstance(value, (bool, str)):
            return value
        raise Mismatch(f"expected a JSON value, got {describe(value)}")


Layout: TypeAlias = Scalar | VectorOf | OptionOf | StructOf | EnumOf | FunctionValue | Untyped
# Names and layouts of the fields of a struct or variant, in declared order.
Fields: TypeAlias = tuple[tuple[str, Layout], ...]
