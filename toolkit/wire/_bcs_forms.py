"""BCS forms: how each part of a transaction is read and written, declared once for both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from toolkit.errors import InputError, SchemaError
from toolkit.move._bcs import Reader, Writer, read_type_tag, write_type_tag
from toolkit.move._ids import FunctionId
from toolkit.move._values import encode_bcs, read_value

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolkit.move import Layout


class BcsForm(NamedTuple):
    """How a value is read from BCS and written as BCS."""

    read: Callable[[Reader], Any]
    write: Callable[[Writer, Any], None]
    of: type | None = None  # class of the values, by which `variants` finds the form of a value


U8 = BcsForm(Reader.u8, Writer.u8)
U16 = BcsForm(Reader.u16, Writer.u16)
U64 = BcsForm(Reader.u64, Writer.u64)
BYTES = BcsForm(Reader.bytes, Writer.bytes)
STRING = BcsForm(Reader.string, Writer.string)
ADDRESS = BcsForm(Reader.address, Writer.address)
TYPE_TAG = BcsForm(read_type_tag, write_type_tag)
NOTHING = BcsForm(lambda _: None, lambda _, __: None, type(None))


def value_of(layout: Layout) -> BcsForm:
    """Return the form of Move values with the given layout."""
    return BcsForm(
        lambda reader: read_value(reader, layout), lambda writer, value: writer.fixed(encode_bcs(layout, value))
    )


def sequence(item: BcsForm) -> BcsForm:
    """Return the form of a tuple, which is its length followed by its items."""

    def read(reader: Reader) -> tuple[Any, ...]:
        return tuple(item.read(reader) for _ in range(reader.length()))

    def write(writer: Writer, values: Any) -> None:
        writer.uleb128(len(values))
        for value in values:
            item.write(writer, value)

    return BcsForm(read, write)


def option(item: BcsForm) -> BcsForm:
    """Return the form of an optional item; None stands for a missing item."""

    def write(writer: Writer, value: Any) -> None:
        writer.bool(value is not None)
        if value is not None:
            item.write(writer, value)

    return BcsForm(lambda reader: item.read(reader) if reader.bool() else None, write)


def record(kind: type, **fields: BcsForm) -> BcsForm:
    """Return the form of a class's instances, given the forms of its fields in BCS order."""

    def read(reader: Reader) -> Any:
        start = reader.position
        values = {name: form.read(reader) for name, form in fields.items()}
        try:
            return kind(**values)
        except InputError as error:
            raise SchemaError(f"byte {start}: {error}") from None

    def write(writer: Writer, value: Any) -> None:
        for name, form in fields.items():
            form.write(writer, getattr(value, name))

    return BcsForm(read, write, kind)


FUNCTION = record(FunctionId, address=ADDRESS, module=STRING, name=STRING)


def parts(make: Callable[..., Any], *forms: BcsForm) -> BcsForm:
    """Return the form of a tuple, given the forms of its parts; `make` makes it of them."""

    def write(writer: Writer, values: Any) -> None:
        for form, value in zip(forms, values, strict=True):
            form.write(writer, value)

    return BcsForm(lambda reader: make(*[form.read(reader) for form in forms]), write)


def several(*values: Any) -> tuple[Any, ...]:
    """Return the arguments: what `parts` makes of parts without a record."""
    return values


def constant(value: Any) -> BcsForm:
    """Return the form of a value that takes no bytes."""
    return BcsForm(lambda _: value, lambda _, __: None)


def converted(form: BcsForm, decode: Callable[[Any], Any], encode: Callable[[Any], Any]) -> BcsForm:
    """Return the form of a value that is made of what another form reads."""
    return BcsForm(lambda reader: decode(form.read(reader)), lambda writer, value: form.write(writer, encode(value)))


def choice(what: str, index_of: Callable[[Any], int], *forms: BcsForm) -> BcsForm:
    """Return the form of an enum: an index, which `index_of` returns for a value, then the form with that index."""

    def write(writer: Writer, value: Any) -> None:
        index = index_of(value)
        writer.uleb128(index)
        forms[index].write(writer, value)

    return BcsForm(lambda reader: forms[read_index(reader, len(forms), what)].read(reader), write)


def variants(what: str, *forms: BcsForm) -> BcsForm:
    """Return the form of an enum whose variants are classes, by the classes of the forms."""
    classes = [form.of for form in forms]

    def index_of(value: Any) -> int:
        if type(value) not in classes:
            raise InputError(f"a {type(value).__name__} has no BCS form as {what}")
        return classes.index(type(value))

    return choice(what, index_of, *forms)


def mapping(key: BcsForm, value: BcsForm) -> BcsForm:
    """Return the form of a dict whose keys are BCS: they are in the order of their bytes."""
    items = sequence(parts(several, key, value))
    return converted(items, dict, lambda held: sorted(held.items()))


def versioned(what: str, form: BcsForm) -> BcsForm:
    """Return the form of a value that follows its version, which must be 1."""

    def read(reader: Reader) -> Any:
        start = reader.position
        if (index := reader.uleb128()) != 0:
            raise SchemaError(f"byte {start}: expected {what} version 1, got {index + 1}")
        return form.read(reader)

    def write(writer: Writer, value: Any) -> None:
        writer.uleb128(0)
        form.write(writer, value)

    return BcsForm(read, write)


def read_index(reader: Reader, count: int, what: str) -> int:
    """Read the index of one of `count` variants.

    Raises
    ------
    SchemaError
        If the index is out of range.
    """
    start = reader.position
    if (index := reader.uleb128()) >= count:
        raise SchemaError(f"byte {start}: expected {what} index 0 to {count - 1}, got {index}")
    return index


def whole(form: BcsForm, data: bytes) -> Any:
    """Decode BCS data that consists of exactly one value.

    Raises
    ------
    SchemaError
        If the data does not have this form, or has trailing bytes.
    """
    reader = Reader(data)
    value = form.read(reader)
    reader.end()
    return value


def encoded(form: BcsForm, value: Any) -> bytes:
    """Encode a value as BCS.

    Raises
    ------
    InputError, SchemaError
        If a number is out of range, or a part of the value does not have a BCS form.
    """
    writer = Writer()
    form.write(writer, value)
    return writer.getvalue()
