"""The recorded ABIs and resources: every module resolves, every view has a schema, every resource fits its layout."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pytest

from toolkit.errors import SchemaError
from toolkit.move import (
    AbiMap,
    EnumOf,
    Layout,
    OptionOf,
    StructOf,
    StructTag,
    Untyped,
    VectorOf,
    decode_bcs,
    decode_json,
    decode_module_abi,
    encode_bcs,
    encode_json,
    parse_type_tag,
    resolve_layout,
)
from toolkit.move._arrow import arrow_type, column
from toolkit.move._type_tags import substitute, wire_type

FILES = ("modules_0x1.json", "modules_0x3.json", "modules_0x4.json")


@pytest.fixture(scope="module")
def modules(shared_data):
    """Return the 46 recorded modules."""
    out = []
    for name in FILES:
        out += [decode_module_abi(module) for module in json.loads((shared_data / "node" / "abi" / name).read_text())]
    return out


@pytest.fixture(scope="module")
def abis(modules):
    """Return them as a source of ABIs."""
    return AbiMap.of(modules)


def unknown_parts(layout: Layout) -> set[str]:
    """Return the reasons of everything untyped inside a layout."""
    match layout:
        case Untyped(_, reason):
            return {reason}
        case VectorOf(element) | OptionOf(element):
            return unknown_parts(element)
        case StructOf(_, fields):
            return set().union(*(unknown_parts(inner) for _, inner in fields))
        case EnumOf(_, variants):
            return set().union(*(unknown_parts(inner) for _, fields in variants for _, inner in fields))
        case _:
            return set()


def test_all_46_modules_resolve(modules, abis):
    """Every struct and enum resolves; what stays untyped lacks an ABI in the recording, and says which."""
    kinds: Counter[str] = Counter()
    missing: set[str] = set()
    for module in modules:
        for struct in module.structs:
            arguments = tuple(parse_type_tag("u64") for _ in struct.generic_type_params)
            layout = resolve_layout(StructTag(module.address, module.name, struct.name, arguments), abis)
            if isinstance(layout, Untyped):
                assert struct.is_native, layout
            kinds[type(layout).__name__] += 1
            missing |= unknown_parts(layout)
    assert len(modules) == 46
    assert all(reason.startswith("no ABI of module 0x1::") for reason in missing), missing
    recorded = {f"{module.address}::{module.name}" for module in modules}
    assert not {reason.removeprefix("no ABI of module ") for reason in missing} & recorded
    print(f"46 modules, {dict(kinds)}, modules not recorded: {len(missing)}")  # counts in the output


def test_every_type_text_reads_and_prints_the_same(modules):
    """Parameters, results and fields of all ABIs survive parsing and printing."""
    texts = set()
    for module in modules:
        for function in module.exposed_functions:
            texts.update((*function.params, *function.return_))
        for struct in module.structs:
            texts.update(field.type for field in struct.fields)
            texts.update(field.type for variant in struct.variants for field in variant.fields)
    for text in texts:
        tag = parse_type_tag(text, abi=True)
        assert wire_type(tag) == text
    assert len(texts) > 300
    print(f"{len(texts)} type texts")  # counts in the output


def test_every_view_becomes_an_arrow_schema(modules, abis):
    """The return types of every exposed view function give an Arrow schema, generic ones with a type filled in."""
    views = generic = 0
    for module in modules:
        for function in module.exposed_functions:
            if not function.is_view:
                continue
            arguments = tuple(parse_type_tag("0x1::aptos_coin::AptosCoin") for _ in function.generic_type_params)
            layouts = [resolve_layout(substitute(tag, arguments), abis) for tag in function.results]
            schema = pa.schema([(f"value_{i}", arrow_type(layout)) for i, layout in enumerate(layouts)])
            assert len(schema) == len(function.return_) > 0
            for layout in layouts:
                assert column(layout, [None]).null_count == 1
            views += 1
            generic += bool(arguments)
    assert views == 129
    print(f"{views} view functions, {generic} of them generic")  # counts in the output


def recorded_resources(shared_data):
    """Yield (type, data) of every resource that the recordings write, with the recording's folder."""
    for folder in ("recorded", "golden", "history"):
        for path in sorted((shared_data / "node" / folder).rglob("*.json")):
            yield from ((folder, *found) for found in _resources(json.loads(path.read_text())))


def _resources(value):
    if isinstance(value, list):
        for item in value:
            yield from _resources(item)
    elif isinstance(value, dict):
        data = value.get("data")
        if set(value) == {"type", "data"} and isinstance(data, dict) and "::" in str(value["type"]):
            yield value["type"], data
        for item in value.values():
            yield from _resources(item)


def test_recorded_resources_go_through_json_bcs_and_arrow(shared_data, abis, expected_cells):
    """Resources of the recorded modules decode by today's ABIs, and print, pack and pile up unchanged.

    An older recording whose struct has changed since is refused by its fields, never half read.
    """
    counts: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for folder, text, data in recorded_resources(shared_data):
        tag = parse_type_tag(text)
        layout = resolve_layout(tag, abis)
        if unknown_parts(layout):
            counts[f"{folder}: no ABI"] += 1
            continue
        if isinstance(layout, StructOf) and set(data) != {name for name, _ in layout.fields}:
            with pytest.raises(SchemaError, match="field"):
                decode_json(layout, data)
            counts[f"{folder}: another shape"] += 1
            refused[text.split("<")[0]] += 1
            continue
        value = decode_json(layout, data)
        assert encode_json(layout, value) == data
        assert decode_bcs(layout, encode_bcs(layout, value)) == value
        assert column(layout, [value, None]).to_pylist() == expected_cells(layout, [value, None])
        counts[f"{folder}: read"] += 1
    assert sum(counts[f"{folder}: read"] for folder in ("recorded", "golden", "history")) > 100
    print(dict(counts), "another shape:", dict(refused))  # counts in the output
