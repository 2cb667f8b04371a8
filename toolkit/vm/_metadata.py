"""Metadata of modules: attributes of structs and functions, and the names of abort codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

VIEW_KINDS = (0, 1)
GROUP, GROUP_MEMBER, EVENT, RANDOMNESS = 2, 3, 4, 5  # other kinds of attributes
_ABORT_CODE_BITS = 0xFFF  # of an abort code that hold the reason; the rest is the category


class Attribute(NamedTuple):
    """An attribute, such as view or resource group, with its arguments."""

    kind: int
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Attributes:
    """What the metadata of a module says."""

    errors: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    structs: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    functions: Mapping[str, tuple[Attribute, ...]] = field(default_factory=dict)
    valid: bool = True

    def of_struct(self, name: str, kind: int) -> Attribute | None:
        """Return an attribute of a struct."""
        return next((one for one in self.structs.get(name, ()) if one.kind == kind), None)

    def of_function(self, name: str, *kinds: int) -> Attribute | None:
        """Return the first attribute of a function that is of one of these kinds."""
        return next((one for one in self.functions.get(name, ()) if one.kind in kinds), None)

    def abort(self, code: int) -> tuple[str, str] | None:
        """Return the name and the description of an abort code."""
        return self.errors.get(code & _ABORT_CODE_BITS) or self.errors.get(code)


def read_attributes(metadata: Mapping[bytes, bytes]) -> Attributes:
    """Return the attributes in the metadata of a module; none, and not `valid`, if they cannot be decoded."""
    data = metadata.get(b"aptos::metadata_v1")
    has_attributes = data is not None  # version 0 has abort codes only
    if data is None:
        data = metadata.get(b"aptos::metadata_v0")
    if data is None:
        return Attributes()
    source = Reader(data)
    try:
        errors = _map(source, source.u64, lambda: (source.string(), source.string()))
        structs = _attributes_by_name(source) if has_attributes else {}
        functions = _attributes_by_name(source) if has_attributes else {}
    except SchemaError:
        return Attributes(valid=False)
    if source.position != len(data):
        return Attributes(valid=False)
    return Attributes(errors, structs, functions)


_K = TypeVar("_K")
_V = TypeVar("_V")


def _map(source: Reader, key: Callable[[], _K], value: Callable[[], _V]) -> dict[_K, _V]:
    return {key(): value() for _ in range(source.length())}


def _attributes_by_name(source: Reader) -> dict[str, tuple[Attribute, ...]]:
    return _map(source, source.string, lambda: _attributes(source))


def _attributes(source: Reader) -> tuple[Attribute, ...]:
    return tuple(
        Attribute(source.u8(), tuple(source.string() for _ in range(source.length()))) for _ in range(source.length())
    )


def is_unstable(metadata: Mapping[bytes, bytes]) -> bool:
    """Return whether the compiler says that its output is not stable."""
    return metadata.get(b"compilation_metadata", b"\0")[:1] == b"\1"
