"""The metadata in the bytecode of a module, which its ABI does not include: error constants and attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Self

from toolkit.errors import SchemaError
from toolkit.move._bcs import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MAGIC = bytes.fromhex("a11ceb0b")
METADATA_TABLE = 0x10  # kind of this table in Move's binary format
METADATA_KEY = b"aptos::metadata_v1"
_ERRORS_ONLY_KEY = b"aptos::metadata_v0"
GROUP_MEMBER = 3  # kind of this attribute of a struct; its argument is the struct tag of the group


class Attribute(NamedTuple):
    """An attribute, such as view or resource group, with its arguments."""

    kind: int
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class ModuleMetadata:
    """What the metadata of a module says: ``RuntimeModuleMetadataV1``.

    Attributes
    ----------
    errors : mapping of int to (str, str)
        Name and description by value of the error constant.
    structs, functions : mapping of str to tuple of Attribute
    valid : bool
        Whether the metadata could be decoded.
    """

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

    @classmethod
    def read(cls, metadata: Mapping[bytes, bytes]) -> Self:
        """Read the entry of the metadata that has errors and attributes; the older entry has errors only.

        Raises
        ------
        SchemaError
            If it cannot be decoded.
        """
        source = _source(metadata)
        errors = _errors(source)
        structs, functions = (_attributes(source) if METADATA_KEY in metadata else {} for _ in range(2))
        source.end()
        return cls(errors, structs, functions)

    def to_bcs(self) -> bytes:
        """Return the entry as BCS; maps are in the order of their keys."""
        writer = Writer()
        writer.uleb128(len(self.errors))
        for code, texts in sorted(self.errors.items()):
            writer.u64(code)
            for text in texts:
                writer.string(text)
        for attributes in (self.structs, self.functions):
            writer.uleb128(len(attributes))
            for name, held in sorted(attributes.items()):
                writer.string(name)
                writer.uleb128(len(held))
                for kind, arguments in held:
                    writer.u8(kind)
                    writer.uleb128(len(arguments))
                    for argument in arguments:
                        writer.string(argument)
        return writer.getvalue()


def _source(metadata: Mapping[bytes, bytes]) -> Reader:
    """Return a reader of the entry that has the errors; of an empty map if there is none."""
    return Reader(metadata.get(METADATA_KEY, metadata.get(_ERRORS_ONLY_KEY, b"\0")))


def _errors(source: Reader) -> dict[int, tuple[str, str]]:
    return {source.u64(): (source.string(), source.string()) for _ in range(source.length())}


def _attributes(source: Reader) -> dict[str, tuple[Attribute, ...]]:
    return {
        source.string(): tuple(
            Attribute(source.u8(), tuple(source.string() for _ in range(source.length())))
            for _ in range(source.length())
        )
        for _ in range(source.length())
    }


# The machine needs the whole entry. These two stop after the part they need: a later format may have more parts.
def named_errors(bytecode: bytes) -> dict[int, tuple[str, str]]:
    """Return the name and the description of each error constant of a compiled module.

    Raises
    ------
    SchemaError
        If the bytecode is not a compiled module, or its errors cannot be decoded.
    """
    return _errors(_source(dict(_entries(bytecode))))


def resource_groups(bytecode: bytes) -> dict[str, str]:
    """Return the resource groups of a module's resources, as struct tags by struct name.

    Parameters
    ----------
    bytecode : bytes
        Compiled module.

    Raises
    ------
    SchemaError
        If the bytecode is not a compiled module, or its errors and structs cannot be decoded.
    """
    metadata = dict(_entries(bytecode))
    if METADATA_KEY not in metadata:
        return {}
    source = _source(metadata)
    known = ModuleMetadata(_errors(source), _attributes(source))
    members = {name: known.of_struct(name, GROUP_MEMBER) for name in known.structs}
    return {name: one.arguments[0] for name, one in members.items() if one is not None and one.arguments}


def _entries(bytecode: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the entries of the metadata table: magic, version, table headers (kind, offset, size), tables."""
    reader = Reader(bytecode)
    if not bytecode.startswith(_MAGIC):
        raise SchemaError("expected the bytecode of a module")
    reader.fixed(len(_MAGIC) + 4)
    tables = [(reader.u8(), reader.uleb128(), reader.uleb128()) for _ in range(reader.uleb128())]
    for kind, offset, size in tables:
        start = reader.position + offset
        table = Reader(bytecode[start : start + size] if kind == METADATA_TABLE else b"")
        while table.remaining:
            yield table.bytes(), table.bytes()
