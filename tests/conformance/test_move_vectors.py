"""The published test vectors of the SDKs: addresses, BCS in, BCS out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from toolkit.errors import ToolkitError
from toolkit.move import Address, Bool, Bytes, Layout, String, UInt, VectorOf, decode_bcs, encode_bcs, parse_address
from toolkit.move._bcs import Reader, Writer
from toolkit.move._ids import address_from_bytes, address_to_bytes

LAYOUTS: dict[str, Layout] = {
    "address": Address(),
    "bool": Bool(),
    "bytes": Bytes(),
    "string": String(),
    **{f"u{bits}": UInt(bits) for bits in (8, 16, 32, 64, 128, 256)},
}


def scenarios(shared_data, name: str) -> list[tuple[str, dict[str, str], list[str]]]:
    """Return (scenario, row, steps with the row's values filled in) of a vector file."""
    out = []
    for group in json.loads((shared_data / "vectors" / f"sdk_specs.{name}.json").read_text()):
        for row in group["rows"]:
            steps = group["steps"]
            for key, value in row.items():
                steps = [step.replace(f"<{key}>", value) for step in steps]
            out.append((group["scenario"], row, steps))
    return out


def python_value(layout: Layout, text: str) -> Any:
    """Read a value as the vector files write it."""
    match layout:
        case Bool():
            return text == "true"
        case UInt():
            return int(text)
        case Address():
            return parse_address(text)
        case Bytes():
            return bytes.fromhex(text[2:])
        case String():
            return json.loads(text)
        case VectorOf(element):
            items = text.strip("[]")
            return [python_value(element, item) for item in items.split(",")] if items else []
    raise AssertionError(layout)


def test_account_addresses(shared_data):
    """Every address vector parses, prints and fails as it says."""
    done = 0
    for scenario, row, steps in scenarios(shared_data, "account_address"):
        if "invalid" in scenario:
            with pytest.raises(ToolkitError):
                parse_address(row["address"])
        elif scenario.startswith("Parse"):
            assert parse_address(json.loads(row["str"])) == parse_address(row["address"])
        elif scenario.endswith("to string long"):
            assert f"0x{address_to_bytes(row['address']).hex()}" == json.loads(row["str"])
        else:
            assert parse_address(row["address"]) == json.loads(row["str"]), steps
        done += 1
    assert done == 18
    print(f"{done} address vectors")  # counts belong to the output of this suite


def _written(step: str, given: str) -> bytes:
    """Write the value of a serialization scenario by its When step."""
    kind = step.removeprefix("When I serialize as ")
    value = given.split(" ", 2)[2] if not given.startswith("Given sequence") else given.split(" ", 4)[4]
    writer = Writer()
    if kind == "uleb128":
        writer.uleb128(int(value))
    elif kind.startswith("fixed bytes"):
        writer.fixed(bytes.fromhex(value[2:]))
    elif kind == "sequence of uleb128":
        numbers = json.loads(value)
        writer.uleb128(len(numbers))
        for number in numbers:
            writer.uleb128(number)
    elif kind == "sequence of u8":
        writer.bytes(bytes(json.loads(value)))
    elif kind.startswith("sequence of "):
        layout = VectorOf(LAYOUTS[kind.removeprefix("sequence of ")])
        return encode_bcs(layout, python_value(layout, value))
    else:
        return encode_bcs(LAYOUTS[kind], python_value(LAYOUTS[kind], value))
    return writer.getvalue()


def test_bcs_serialization(shared_data):
    """Every serialization vector gives its bytes."""
    done = 0
    for scenario, row, steps in scenarios(shared_data, "bcs_serialization"):
        assert _written(steps[1], steps[0]) == bytes.fromhex(row["bytes"][2:]), (scenario, row)
        done += 1
    assert done >= 60
    print(f"{done} serialization vectors")  # counts belong to the output of this suite


def _read(kind: str, data: bytes) -> Any:
    """Read what a deserialization scenario names, and nothing after it."""
    reader = Reader(data)
    value: Any
    if kind == "uleb128":
        value = reader.uleb128()
    elif kind.startswith("fixed bytes"):
        value = reader.fixed(int(kind.rsplit(" ", 1)[1]))
    elif kind == "sequence of uleb128":
        value = [reader.uleb128() for _ in range(reader.length())]
    elif kind == "sequence of u8":
        value = list(reader.bytes())
    elif kind.startswith("sequence of "):
        return decode_bcs(VectorOf(LAYOUTS[kind.removeprefix("sequence of ")]), data)
    elif kind == "address":
        value = address_from_bytes(reader.fixed(32))
    else:
        return decode_bcs(LAYOUTS[kind], data)
    reader.end()
    return value


def _expected(kind: str, text: str) -> Any:
    if kind in {"uleb128", "sequence of uleb128", "sequence of u8"}:
        return json.loads(text)
    if kind.startswith("fixed bytes"):
        return bytes.fromhex(text[2:])
    if kind.startswith("sequence of "):
        layout = VectorOf(LAYOUTS[kind.removeprefix("sequence of ")])
        return python_value(layout, text)
    return python_value(LAYOUTS[kind], text)


def test_bcs_deserialization(shared_data):
    """Every deserialization vector gives its value, or fails where it must."""
    read = refused = 0
    for scenario, row, steps in scenarios(shared_data, "bcs_deserialization"):
        kind = steps[1].removeprefix("When I deserialize as ")
        data = bytes.fromhex(row["bytes"][2:])
        if "should fail" in steps[2]:
            with pytest.raises(ToolkitError):
                _read(kind, data)
            refused += 1
        else:
            assert _read(kind, data) == _expected(kind, row["value"]), (scenario, row)
            read += 1
    assert read >= 60
    assert refused >= 2
    print(f"{read} deserialization vectors read, {refused} refused")  # counts belong to the output
