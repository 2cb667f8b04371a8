"""The Move language without I/O: types, ids, module ABIs, layouts, and values in JSON, BCS and Arrow.

A type (`parse_type_tag`) and the ABIs of its modules (`decode_module_abi`) give a layout (`resolve_layout`). With the
layout, values are decoded and encoded: `decode_json`, `decode_bcs`, `encode_argument`, `column` and so on.

Names are imported on first use, so that importing the package is fast; only `column`, `arrow_type` and `field_columns`
import pyarrow.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.move._abi import ErrorAbi as ErrorAbi
    from toolkit.move._abi import FieldAbi as FieldAbi
    from toolkit.move._abi import FunctionAbi as FunctionAbi
    from toolkit.move._abi import GenericParam as GenericParam
    from toolkit.move._abi import ModuleAbi as ModuleAbi
    from toolkit.move._abi import StructAbi as StructAbi
    from toolkit.move._abi import VariantAbi as VariantAbi
    from toolkit.move._abi import decode_module_abi as decode_module_abi
    from toolkit.move._arrow import arrow_type as arrow_type
    from toolkit.move._arrow import column as column
    from toolkit.move._arrow import field_columns as field_columns
    from toolkit.move._bcs import Reader as Reader
    from toolkit.move._bcs import Writer as Writer
    from toolkit.move._bcs import read_type_tag as read_type_tag
    from toolkit.move._bcs import write_type_tag as write_type_tag
    from toolkit.move._codecs import is_closed as is_closed
    from toolkit.move._containers import EnumOf as EnumOf
    from toolkit.move._containers import FunctionValue as FunctionValue
    from toolkit.move._containers import Layout as Layout
    from toolkit.move._containers import OptionOf as OptionOf
    from toolkit.move._containers import StructOf as StructOf
    from toolkit.move._containers import Untyped as Untyped
    from toolkit.move._containers import VectorOf as VectorOf
    from toolkit.move._ids import FunctionId as FunctionId
    from toolkit.move._ids import ModuleId as ModuleId
    from toolkit.move._ids import address_from_bytes as address_from_bytes
    from toolkit.move._ids import address_to_bytes as address_to_bytes
    from toolkit.move._ids import format_hex as format_hex
    from toolkit.move._ids import parse_address as parse_address
    from toolkit.move._ids import parse_hex as parse_hex
    from toolkit.move._ids import parse_table_handle as parse_table_handle
    from toolkit.move._ids import wire_address as wire_address
    from toolkit.move._layouts import AbiMap as AbiMap
    from toolkit.move._layouts import AbiSource as AbiSource
    from toolkit.move._layouts import resolve_layout as resolve_layout
    from toolkit.move._scalars import Address as Address
    from toolkit.move._scalars import Bool as Bool
    from toolkit.move._scalars import Bytes as Bytes
    from toolkit.move._scalars import Int as Int
    from toolkit.move._scalars import ObjectOf as ObjectOf
    from toolkit.move._scalars import String as String
    from toolkit.move._scalars import UInt as UInt
    from toolkit.move._type_tags import FunctionType as FunctionType
    from toolkit.move._type_tags import Primitive as Primitive
    from toolkit.move._type_tags import Reference as Reference
    from toolkit.move._type_tags import StructTag as StructTag
    from toolkit.move._type_tags import TypeParameter as TypeParameter
    from toolkit.move._type_tags import TypeTag as TypeTag
    from toolkit.move._type_tags import Vector as Vector
    from toolkit.move._type_tags import is_signer as is_signer
    from toolkit.move._type_tags import parse_type_tag as parse_type_tag
    from toolkit.move._type_tags import substitute as substitute
    from toolkit.move._type_tags import wire_type as wire_type
    from toolkit.move._values import decode_argument as decode_argument
    from toolkit.move._values import decode_bcs as decode_bcs
    from toolkit.move._values import decode_json as decode_json
    from toolkit.move._values import encode_argument as encode_argument
    from toolkit.move._values import encode_bcs as encode_bcs
    from toolkit.move._values import encode_json as encode_json
    from toolkit.move._values import read_value as read_value

# Public names by module, separated by spaces.
_HOMES = {
    "_abi": ("ErrorAbi FieldAbi FunctionAbi GenericParam ModuleAbi StructAbi VariantAbi decode_module_abi"),
    "_arrow": "arrow_type column field_columns",
    "_bcs": "Reader Writer read_type_tag write_type_tag",
    "_codecs": "is_closed",
    "_containers": "EnumOf FunctionValue Layout OptionOf StructOf Untyped VectorOf",
    "_ids": (
        "FunctionId ModuleId address_from_bytes address_to_bytes format_hex parse_address"
        " parse_hex parse_table_handle wire_address"
    ),
    "_layouts": "AbiMap AbiSource resolve_layout",
    "_scalars": "Address Bool Bytes Int ObjectOf String UInt",
    "_type_tags": (
        "FunctionType Primitive Reference StructTag TypeParameter TypeTag Vector is_signer"
        " parse_type_tag substitute wire_type"
    ),
    "_values": ("decode_argument decode_bcs decode_json encode_argument encode_bcs encode_json read_value"),
}
_MODULE_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = list(_MODULE_OF)


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
