"""Layouts as values: what the bytes and the JSON of a type look like, with nothing left to look up."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol, TypeAlias

from toolkit.move._frozen import HashOnce

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.move.abi import ModuleAbi
    from toolkit.move.tags import StructTag, TypeTag

__all__ = [
    "AbiMap",
    "AbiSource",
    "Address",
    "Bool",
    "Bytes",
    "EnumOf",
    "FunctionValue",
    "Int",
    "Layout",
    "ObjectOf",
    "OptionOf",
    "String",
    "StructOf",
    "UInt",
    "Untyped",
    "VectorOf",
    "is_closed",
]


@dataclass(frozen=True, slots=True)
class Bool:
    """``bool``."""


@dataclass(frozen=True, slots=True)
class UInt:
    """An unsigned integer of 8, 16, 32, 64, 128 or 256 bits."""

    bits: int


@dataclass(frozen=True, slots=True)
class Int:
    """A signed integer of 8, 16, 32, 64, 128 or 256 bits."""

    bits: int


@dataclass(frozen=True, slots=True)
class Address:
    """``address`` or ``signer``."""


@dataclass(frozen=True, slots=True)
class Bytes:
    """``vector<u8>``."""


@dataclass(frozen=True, slots=True)
class String:
    """``0x1::string::String``."""


@dataclass(frozen=True, slots=True)
class VectorOf(HashOnce):
    """``vector<element>`` of anything but u8."""

    element: Layout

    __hash__ = HashOnce.__hash__


@dataclass(frozen=True, slots=True)
class OptionOf(HashOnce):
    """``0x1::option::Option<element>``."""

    element: Layout

    __hash__ = HashOnce.__hash__


@dataclass(frozen=True, slots=True)
class ObjectOf:
    """``0x1::object::Object<T>``: an address that names an object."""


@dataclass(frozen=True, slots=True)
class StructOf(HashOnce):
    """A struct with its fields in declared order."""

    tag: StructTag
    fields: tuple[tuple[str, Layout], ...]

    __hash__ = HashOnce.__hash__


@dataclass(frozen=True, slots=True)
class EnumOf(HashOnce):
    """An enum with its variants in declared order, each with its fields."""

    tag: StructTag
    variants: tuple[tuple[str, tuple[tuple[str, Layout], ...]], ...]

    __hash__ = HashOnce.__hash__


@dataclass(frozen=True, slots=True)
class FunctionValue(HashOnce):
    """A closure: readable as JSON, never written, without a BCS form here."""

    tag: TypeTag

    __hash__ = HashOnce.__hash__


@dataclass(frozen=True, slots=True)
class Untyped(HashOnce):
    """A type whose parts are not known; `reason` says why. Its JSON passes through as it came."""

    tag: TypeTag
    reason: str

    __hash__ = HashOnce.__hash__


Layout: TypeAlias = (
    Bool
    | UInt
    | Int
    | Address
    | Bytes
    | String
    | VectorOf
    | OptionOf
    | ObjectOf
    | StructOf
    | EnumOf
    | FunctionValue
    | Untyped
)


@lru_cache(maxsize=4096)
def is_closed(layout: Layout) -> bool:
    """Tell whether every part of a layout is known, so that its values have a BCS form."""
    match layout:
        case Untyped() | FunctionValue():
            return False
        case VectorOf(element) | OptionOf(element):
            return is_closed(element)
        case StructOf(_, fields):
            return all(is_closed(inner) for _, inner in fields)
        case EnumOf(_, variants):  # nodes before 2026 tell that a type is an enum, but not its variants
            return bool(variants) and all(is_closed(inner) for _, fields in variants for _, inner in fields)
    return True


class AbiSource(Protocol):
    """Where module ABIs come from: a client's store, the embedded ledger, or a mapping."""

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module (canonical address), or None where there is none."""
        ...


class AbiMap(dict[tuple[str, str], "ModuleAbi"]):
    """Module ABIs in memory, keyed by canonical address and name."""

    @classmethod
    def of(cls, modules: Iterable[ModuleAbi]) -> AbiMap:
        """Build the map from ABIs."""
        return cls({(module.address, module.name): module for module in modules})

    def module_abi(self, address: str, name: str) -> ModuleAbi | None:
        """Return the ABI of a module (canonical address), or None."""
        return self.get((address, name))
