"""The Move language without a network: types, ids, module ABIs, layouts, values in JSON and BCS.

Arrow types and columns of layouts are in `toolkit.move.arrow`, which alone imports pyarrow.
"""

from __future__ import annotations

from toolkit.move.abi import FunctionAbi, ModuleAbi, StructAbi, decode_module_abi
from toolkit.move.address import address_from_bytes, address_to_bytes, parse_address, wire_address
from toolkit.move.bcs import decode_bcs, encode_bcs
from toolkit.move.ids import FunctionId, ModuleId, format_hex, parse_hex, parse_table_handle
from toolkit.move.layout import AbiMap, AbiSource, Layout, resolve_layout
from toolkit.move.tags import StructTag, TypeTag, parse_type_tag, substitute, wire_type
from toolkit.move.values import decode_argument, decode_json, encode_argument, encode_json, type_words

__all__ = [
    "AbiMap",
    "AbiSource",
    "FunctionAbi",
    "FunctionId",
    "Layout",
    "ModuleAbi",
    "ModuleId",
    "StructAbi",
    "StructTag",
    "TypeTag",
    "address_from_bytes",
    "address_to_bytes",
    "decode_argument",
    "decode_bcs",
    "decode_json",
    "decode_module_abi",
    "encode_argument",
    "encode_bcs",
    "encode_json",
    "format_hex",
    "parse_address",
    "parse_hex",
    "parse_table_handle",
    "parse_type_tag",
    "resolve_layout",
    "substitute",
    "type_words",
    "wire_address",
    "wire_type",
]
