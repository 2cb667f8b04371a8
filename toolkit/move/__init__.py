"""The Move language without I/O: types, ids, module ABIs, layouts, and values in JSON, BCS and Arrow.

`resolve_layout` creates a layout from a type (`parse_type_tag`) and the ABIs of its modules (`decode_module_abi`).
`decode_json`, `encode_json`, `decode_bcs` and `encode_bcs` use the layout to convert values.

Names are imported on first use, so that importing the package is fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit._present.names import imported_on_use as _imported_on_use

if TYPE_CHECKING:
    from toolkit.move._abi import ErrorAbi as ErrorAbi
    from toolkit.move._abi import FieldAbi as FieldAbi
    from toolkit.move._abi import FunctionAbi as FunctionAbi
    from toolkit.move._abi import GenericParam as GenericParam
    from toolkit.move._abi import ModuleAbi as ModuleAbi
    from toolkit.move._abi import StructAbi as StructAbi
    from toolkit.move._abi import VariantAbi as VariantAbi
    from toolkit.move._abi import decode_module_abi as decode_module_abi
    from toolkit.move._containers import EnumOf as EnumOf
    from toolkit.move._containers import FunctionValue as FunctionValue
    from toolkit.move._containers import Layout as Layout
    from toolkit.move._containers import OptionOf as OptionOf
    from toolkit.move._containers import StructOf as StructOf
    from toolkit.move._containers import Untyped as Untyped
    from toolkit.move._containers import VectorOf as VectorOf
    from toolkit.move._ids import FunctionId as FunctionId
    from toolkit.move._ids import parse_address as parse_address
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
    from toolkit.move._type_tags import Primitive as Primitive
    from toolkit.move._type_tags import StructTag as StructTag
    from toolkit.move._type_tags import TypeTag as TypeTag
    from toolkit.move._type_tags import Vector as Vector
    from toolkit.move._type_tags import parse_type_tag as parse_type_tag
    from toolkit.move._values import decode_bcs as decode_bcs
    from toolkit.move._values import decode_json as decode_json
    from toolkit.move._values import encode_bcs as encode_bcs
    from toolkit.move._values import encode_json as encode_json

# Public names by module, separated by spaces.
_HOMES = {
    "_abi": "ErrorAbi FieldAbi FunctionAbi GenericParam ModuleAbi StructAbi VariantAbi decode_module_abi",
    "_containers": "EnumOf FunctionValue Layout OptionOf StructOf Untyped VectorOf",
    "_ids": "FunctionId parse_address",
    "_layouts": "AbiMap AbiSource resolve_layout",
    "_scalars": "Address Bool Bytes Int ObjectOf String UInt",
    "_type_tags": "Primitive StructTag TypeTag Vector parse_type_tag",
    "_values": "decode_bcs decode_json encode_bcs encode_json",
}
__getattr__, __dir__, __all__ = _imported_on_use(__name__, _HOMES)
