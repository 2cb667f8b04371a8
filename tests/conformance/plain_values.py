"""The slow and obvious way from a node's JSON to Python values by the types' texts, with nothing of the package in it."""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
import pyarrow as pa

from tests.conformance.plain_bcs import Structs, bound, split_type


def address(text: str) -> str:
    """Spell an address as AIP-40 does."""
    number = int(text, 16)
    return f"0x{number:x}" if number < 16 else f"0x{number:064x}"


def plain_value(kind: str, given: Any, structs: Structs) -> Any:  # noqa: PLR0911  # one case per kind of type
    """Return the Python value of a JSON value by its type; types without an ABI stay as they are."""
    outer, types = split_type(kind)
    if re.fullmatch(r"[ui](8|16|32|64|128|256)", outer):
        return int(given)
    if outer in {"bool", "0x1::string::String"}:
        return given
    if outer == "address":
        return address(given)
    if outer == "0x1::object::Object":
        return address(given["inner"] if isinstance(given, dict) else given)
    if outer == "vector" and types == ["u8"]:
        return bytes.fromhex(given[2:])
    if outer == "vector":
        return [plain_value(types[0], item, structs) for item in given]
    if outer == "0x1::option::Option":
        items = [plain_value(types[0], item, structs) for item in given["vec"]]
        nested = types[0].startswith("0x1::option::Option<")
        return None if not items else {"vec": items} if nested else items[0]
    struct = structs(outer)
    if struct is None or not struct["fields"] or struct.get("is_enum"):
        return given
    return {
        field["name"]: plain_value(bound(field["type"], types), given[field["name"]], structs)
        for field in struct["fields"]
    }


def records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a frame with Python values, None being a null."""
    arrays = {name: frame[name].array for name in frame.columns}
    columns = {
        # Arrow gets wide integers as text.
        name: [None if number is pd.NA else number for number in array]
        if hasattr(array.dtype, "wide")
        else pa.array(array).to_pylist()
        for name, array in arrays.items()
    }
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def cells(value: Any) -> int:
    """Count the values inside a value."""
    match value:
        case dict():
            return sum(map(cells, value.values()))
        case list():
            return sum(map(cells, value))
    return 1
