"""Every recorded exchange is decoded, and each cell equals a plain walk of the JSON that knows nothing of the package."""

from __future__ import annotations

import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

import toolkit
from tests.benchmarks.decode.plain_walk import cells as row_cells
from tests.benchmarks.decode.plain_walk import differences
from tests.conformance.plain_bcs import sequence, split_type
from tests.conformance.plain_values import address, cells, plain_value
from tests.conformance.recorded_node import NOT_RECORDED
from toolkit._present.text import visible
from toolkit.errors import InputError, NodeError, SchemaError
from toolkit.move import (
    decode_bcs,
    decode_json,
    decode_module_abi,
    encode_bcs,
    encode_json,
    parse_type_tag,
    resolve_layout,
)
from toolkit.move._arrow import column
from toolkit.move._codecs import is_closed
from toolkit.wire._bcs_requests import encode_view_request
from toolkit.wire._headers import parse_headers
from toolkit.wire._responses import (
    decode_account,
    decode_block,
    decode_error_body,
    decode_gas_price_estimate,
    decode_node_info,
)
from toolkit.wire._rows import transaction_rows
from toolkit.wire._transactions import decode_page, decode_simulation, decode_transactions

KINDS = {
    "refusal": 936,
    "node information": 10,
    "account": 47,
    "module": 41,
    "modules": 1,
    "resource": 33,
    "resources": 3,
    "resource in BCS": 1,
    "gas price": 4,
    "block": 29,
    "transactions": 26,
    "transaction": 53,
    "pending transaction": 34,
    "simulation": 112,
    "simulation in BCS": 4,
    "view": 2_123,
    "view in BCS": 31,
    "table item": 10,
    "table item in BCS": 7,
    "raw table item": 1,
    "submission": 38,
    "health": 1,
    "options": 1,
    "signing message": 1,
    "events": 1,
    "balance": 1,
}
UNREAD = {"submission", "health", "options", "signing message", "events", "balance"}
"""Kinds that no function of the toolkit reads; it never submits."""
SDK_VIEW = "0x1::multisig_account::get_next_multisig_account_address"


def kind_of(exchange) -> str:  # noqa: PLR0911  # one case per kind
    """Return what an exchange is, by its request and status alone."""
    path = urlsplit(exchange.path).path.rstrip("/")
    steps = path.split("/")[2:]
    bcs = " in BCS" if exchange.in_bcs else ""
    if exchange.status >= 400:
        return "refusal"
    match exchange.method, *steps:
        case ("GET",):
            return "node information"
        case "GET", "-", "healthy":
            return "health"
        case "OPTIONS", *_:
            return "options"
        case "GET", "estimate_gas_price":
            return "gas price"
        case "GET", "accounts", _:
            return "account"
        case "GET", "accounts", _, (
            "module" | "modules" | "resource" | "resources" | "transactions" | "events" | "balance"
        ) as kind, *_:
            return kind + bcs
        case "GET", "blocks", *_:
            return "block"
        case "GET", "transactions":
            return "transactions"
        case "GET", "transactions", *_:
            return "pending transaction" if exchange.json["type"] == "pending_transaction" else "transaction"
        case "POST", "transactions":
            return "submission"
        case "POST", "transactions", "encode_submission":
            return "signing message"
        case "POST", "transactions", "simulate":
            return "simulation" + bcs
        case "POST", "view":
            return "view" + bcs
        case "POST", "tables", _, "item":
            return "table item" + bcs
        case "POST", "tables", _, "raw_item":
            return "raw table item"
    raise AssertionError(exchange)


@pytest.fixture(scope="session")
def by_kind(recordings):
    """Return the exchanges of each kind."""
    kinds: dict[str, list] = {}
    for exchange in recordings:
        kinds.setdefault(kind_of(exchange), []).append(exchange)
    return kinds


def version_of(exchange) -> int:
    """Return the version that was read."""
    asked = parse_qs(urlsplit(exchange.path).query).get("ledger_version")
    return int(asked[0]) if asked else exchange.head


def test_every_exchange_is_of_one_kind(by_kind):
    """Of 3,549 exchanges of 26 kinds, the toolkit does not need 43 of six kinds, and reads all others."""
    assert {kind: len(exchanges) for kind, exchanges in by_kind.items()} == KINDS
    assert sum(KINDS.values()) == 3_549
    assert (len(KINDS), sum(KINDS[kind] for kind in UNREAD)) == (26, 43)


def test_headers(recordings):
    """The ledger's state and the gas in the headers are the recorded digits; answers without them have none."""
    known = 0
    for exchange in recordings:
        headers = parse_headers(exchange.answer_headers)
        number = {name[8:]: int(text) for name, text in exchange.answer_headers.items() if name.startswith("x-aptos-") and text.isdigit()}  # fmt: skip
        assert headers.gas_used == number.get("gas-used"), exchange
        if "ledger-version" not in number:
            assert headers.ledger is None, exchange
            continue
        got = headers.ledger
        assert (got.chain_id, got.version, got.oldest_version) == (4, number["ledger-version"], 0), exchange
        assert got.timestamp == _time(number["ledger-timestampusec"]), exchange
        wanted = (number["epoch"], number["block-height"], number["oldest-block-height"])
        assert (got.epoch, got.block_height, got.oldest_block_height) == wanted, exchange
        known += 1
    assert known == KNOWN_HEADS
    print(f"headers of {known} answers")  # counts in the output


KNOWN_HEADS = 3_493


def _time(microseconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def test_refusals(by_kind):
    """Message, error code and VM error code of each refusal equal those in its JSON."""
    codes: Counter[str] = Counter()
    for exchange in by_kind["refusal"]:
        body = decode_error_body(exchange.answer, exchange.answer_headers["content-type"])
        wanted = exchange.json
        got = (body.message, body.error_code, body.vm_error_code)
        assert got == (wanted["message"], wanted["error_code"], wanted.get("vm_error_code")), exchange
        codes[body.error_code] += 1
    print(dict(codes))  # counts in the output


def test_node_information(by_kind):
    """Every number of ``GET /v1``."""
    for exchange in by_kind["node information"]:
        wanted, info = exchange.json, decode_node_info(exchange.answer)
        got = info.ledger
        assert (got.chain_id, info.node_role, info.git_hash) == (
            wanted["chain_id"],
            wanted["node_role"],
            wanted["git_hash"],
        )
        assert got.timestamp == _time(int(wanted["ledger_timestamp"]))
        numbers = (got.epoch, got.version, got.oldest_version, got.block_height, got.oldest_block_height)
        names = ("epoch", "ledger_version", "oldest_ledger_version", "block_height", "oldest_block_height")
        assert numbers == tuple(int(wanted[name]) for name in names)


def test_accounts_prices_and_blocks(by_kind):
    """Every number and hash of accounts, price estimates and blocks."""
    for exchange in by_kind["account"]:
        wanted, got = exchange.json, decode_account(exchange.answer)
        assert got.sequence_number == int(wanted["sequence_number"]), exchange
        assert got.authentication_key == wanted["authentication_key"], exchange
    for exchange in by_kind["gas price"]:
        wanted, price = exchange.json, decode_gas_price_estimate(exchange.answer)
        assert {name: getattr(price, name) for name in wanted} == wanted
    for exchange in by_kind["block"]:
        wanted, block = exchange.json, decode_block(exchange.answer)
        got = (block.block_height, block.block_timestamp_us, block.first_version, block.last_version)
        names = ("block_height", "block_timestamp", "first_version", "last_version")
        assert got == tuple(int(wanted[name]) for name in names)
        assert block.block_hash == wanted["block_hash"]
        if wanted["transactions"] is not None:
            body = json.dumps(wanted["transactions"])
            assert differences(transaction_rows(decode_page(body.encode())), body) == []


def test_modules(by_kind):
    """Every function and struct of every module: names, flags, parameters, results, fields, abilities."""
    modules = [exchange.json for exchange in by_kind["module"]]
    modules += [module for exchange in by_kind["modules"] for module in exchange.json]
    count = 0
    for module in modules:
        wanted, got = module["abi"], decode_module_abi(module)
        assert (address(got.address), got.name) == (address(wanted["address"]), wanted["name"])
        assert [_friend(one) for one in got.friends] == [_friend(one) for one in wanted["friends"]]
        for function, abi in zip(wanted["exposed_functions"], got.exposed_functions, strict=True):
            plain = ("name", "visibility", "is_entry", "is_view")
            assert [getattr(abi, name) for name in plain] == [function[name] for name in plain]
            assert list(abi.params) == function["params"]
            assert list(abi.return_) == function["return"]
            assert _generics(abi) == _generics(function)
        for struct, abi in zip(wanted["structs"], got.structs, strict=True):
            plain = ("name", "is_native", "is_event", "is_enum")
            assert [getattr(abi, name) for name in plain] == [struct[name] for name in plain]
            assert list(abi.abilities) == struct["abilities"]
            assert [(field.name, field.type) for field in abi.fields] == [
                (f["name"], f["type"]) for f in struct["fields"]
            ]
            assert _generics(abi) == _generics(struct)
        count += len(got.exposed_functions) + len(got.structs)
    print(f"{len(modules)} modules with {count} functions and structs")  # counts in the output


def _friend(text: str) -> tuple[int, str]:
    where, _, name = text.partition("::")
    return int(where, 16), name


def _generics(abi) -> list[tuple[list[str], bool]]:
    parameters = abi["generic_type_params"] if isinstance(abi, dict) else abi.generic_type_params
    if isinstance(abi, dict):
        return [(one["constraints"], one.get("is_phantom", False)) for one in parameters]
    return [(list(one.constraints), one.is_phantom) for one in parameters]


def test_resources(by_kind, recordings, abis):
    """Each resource is read by the ABI at its version: every value, again as JSON, through BCS, and in a column."""
    read = [(exchange, exchange.json) for exchange in by_kind["resource"]]
    read += [(exchange, resource) for exchange in by_kind["resources"] for resource in exchange.json]
    count = 0
    for exchange, resource in read:
        version = exchange.head if "ledger_version" not in exchange.path else version_of(exchange)
        layout = resolve_layout(parse_type_tag(resource["type"]), abis(version))
        wanted = plain_value(resource["type"], resource["data"], _structs(recordings, version))
        value = decode_json(layout, resource["data"])
        assert value == wanted, (exchange, resource["type"])
        assert encode_json(layout, value) == resource["data"], (exchange, resource["type"])
        assert len(column(layout, [value, None])) == 2
        count += cells(wanted)
    print(f"{len(read)} resources, {count} values")  # counts in the output


def test_a_resource_in_bcs(by_kind, recordings, abis):
    """The one resource recorded in BCS equals what the write sets say in JSON."""
    (exchange,) = by_kind["resource in BCS"]
    tag = unquote(urlsplit(exchange.path).path).split("/")[-1]
    layout = resolve_layout(parse_type_tag(tag), abis(315))
    written = recordings.history.resource("0x1", tag, 315)["data"]
    assert decode_bcs(layout, exchange.answer) == decode_json(layout, written)
    assert encode_bcs(layout, decode_json(layout, written)) == exchange.answer


def _structs(recordings, version):
    return lambda outer: recordings.longer_history.struct(outer, version)


def test_transactions(by_kind):
    """Each transaction, state change and event is a row, and every cell equals the walk."""
    count = transactions = 0
    for kind in ("transactions", "transaction", "pending transaction", "simulation"):
        decode = {"transactions": decode_page, "simulation": decode_simulation}.get(kind, decode_transactions)
        for exchange in by_kind[kind]:
            rows = transaction_rows(decode(exchange.answer))
            assert differences(rows, exchange.answer) == [], exchange
            count += row_cells(rows)
            transactions += len(rows.transactions["hash"])
    print(f"{transactions} transactions, {count} cells")  # counts in the output
    assert (transactions, count) == TRANSACTION_CELLS


TRANSACTION_CELLS = (1_368, 236_950)


def test_payloads_of_events_and_resources(recordings, abis):
    """Each written resource and each event of the ledger is read by its ABI, and every value equals the walk."""
    count = typed = 0
    layouts = {}
    for version, transaction in enumerate(recordings.longer_history.transactions):
        found = [(event["type"], event["data"]) for event in transaction.get("events", [])]
        found += [
            (c["data"]["type"], c["data"]["data"]) for c in transaction["changes"] if c["type"] == "write_resource"
        ]
        for tag, data in found:
            known = abis(version)
            if (tag, id(known)) not in layouts:
                layouts[tag, id(known)] = resolve_layout(parse_type_tag(tag), known)
            wanted = plain_value(tag, data, _structs(recordings, version))
            assert decode_json(layouts[tag, id(known)], data) == wanted, (version, tag)
            count += cells(wanted)
            typed += 1
    print(f"{typed} payloads, {count} values")  # counts in the output


def test_views(by_kind, recordings, abis, node, bcs_node):
    """Each view, except those of the sweep, is called through a node: values, types and gas, in JSON and BCS."""
    outcomes: Counter[str] = Counter()
    count = 0
    for exchange in [*by_kind["view"], *by_kind["view in BCS"]]:
        if exchange.group == "sweep":
            continue  # see test_recorded_sweep
        if exchange.sent is None:
            assert _sent_by_an_sdk(exchange, abis) == exchange.body
            outcomes["sent in BCS by an SDK"] += 1
            continue
        document, version = exchange.sent, version_of(exchange)
        call = toolkit.ViewFunction(
            document["function"], type_arguments=document["type_arguments"], arguments=document["arguments"]
        )
        client = bcs_node if exchange.in_bcs else node
        if "00ff" in document["arguments"]:
            with pytest.raises(InputError, match="0x"):
                client.at(version).view(call)
            outcomes["hex without 0x, which nodes accept"] += 1
            continue
        result = client.at(version).view(call)
        kinds = _returns(recordings, document, version)
        assert [_plain_tag(text) for text in result.types] == [_plain_tag(text) for text in kinds], exchange
        assert str(result.gas_used) == exchange.answer_headers["x-aptos-gas-used"], exchange
        if exchange.in_bcs:
            layouts = [resolve_layout(parse_type_tag(kind), abis(version)) for kind in kinds]
            if not all(is_closed(layout) for layout in layouts):
                assert document["function"].endswith(("::shapes", "::mode_now")), exchange
                outcomes["an enum, read as JSON"] += 1  # the ABI has no variants
                continue
            written = [encode_bcs(*pair) for pair in zip(layouts, result.values, strict=True)]
            assert sequence(written) == exchange.answer, exchange
        in_json = _same_in_json(by_kind, exchange) if exchange.in_bcs else exchange.json
        if in_json is None:
            outcomes["BCS alone"] += 1
            continue
        structs = _structs(recordings, version)
        expected = tuple(plain_value(kind, item, structs) for kind, item in zip(kinds, in_json, strict=True))
        assert result.values == expected, exchange
        outcomes["BCS" if exchange.in_bcs else "JSON"] += 1
        count += cells(list(expected))
    print(dict(outcomes), f"{count} values")  # counts in the output
    assert outcomes == VIEWS


VIEWS = {
    "JSON": 43,
    "BCS": 20,
    "BCS alone": 9,
    "an enum, read as JSON": 2,
    "sent in BCS by an SDK": 3,
    "hex without 0x, which nodes accept": 1,
}


def _sent_by_an_sdk(exchange, abis) -> bytes:
    """Return the bytes of the one view that the SDK calls, by the ABI; its value is an address."""
    call = toolkit.ViewFunction(
        SDK_VIEW, arguments=["0x34bf7e2d17674feb234371a7ea58efd715f0e56ba20ebf13789480d9d643afaf"]
    )
    layout = resolve_layout(parse_type_tag("address"), abis(exchange.head))
    assert decode_json(layout, exchange.json[0]) == address(exchange.json[0])
    return encode_view_request(call, [layout])


def _returns(recordings, document, version) -> list[str]:
    abi = recordings.history.function(document["function"], version)
    given = document["type_arguments"]
    return [re.sub(r"\bT(\d+)\b", lambda match: given[int(match[1])], text) for text in abi["return"]]


def _plain_tag(text: str):
    outer, types = split_type(text)
    where, _, name = outer.partition("::")
    return (int(where, 16), name, *map(_plain_tag, types)) if name else (outer, *map(_plain_tag, types))


def _same_in_json(by_kind, exchange):
    """Return the answer in JSON to the same request, if it was recorded."""
    same = (one for one in by_kind["view"] if one.path == exchange.path and one.sent == exchange.sent)
    found = next(same, None)
    return None if found is None else found.json


def test_refused_views(by_kind, node):
    """A view that a node refused raises its status, code and message, or is refused before it is sent."""
    outcomes: Counter[str] = Counter()
    for exchange in by_kind["refusal"]:
        document = exchange.sent
        if exchange.path.split("?")[0] != "/v1/view" or exchange.group == "sweep" or exchange.headers.get("accept"):
            continue
        if exchange.path.endswith("=-1") or exchange.status == 415:
            outcomes["not what the toolkit sends"] += 1  # its -1 is the head, and its content is always JSON or BCS
            continue
        try:
            call = toolkit.ViewFunction(
                document["function"], type_arguments=document["type_arguments"], arguments=document["arguments"]
            )
            node.at(version_of(exchange)).view(call)
        except (InputError, SchemaError):
            outcomes["before it is sent"] += 1
        except NodeError as error:
            outcomes[_refusal_kind(error, exchange)] += 1
        except (TypeError, KeyError, ValueError):
            outcomes["not a call"] += 1  # the body is not a view request
        else:
            assert "invalid type: number, expected a string" in exchange.json["message"], exchange
            outcomes["sent in the form that nodes accept"] += 1
    print(dict(outcomes))  # counts in the output
    assert outcomes == {
        "before it is sent": 16,
        "raised as the node says": 9,
        "sent in the form that nodes accept": 1,
        "sent in a form that was recorded in BCS alone": 1,
        "not a call": 5,
        "not what the toolkit sends": 4,
    }


def _refusal_kind(error: NodeError, exchange) -> str:
    """Return whether an error says what the node said: its status, codes and the start of its message."""
    wanted = exchange.json
    if error.error_code == NOT_RECORDED:
        return "sent in a form that was recorded in BCS alone"
    got = (error.status, error.error_code, error.vm_error_code)
    same = got == (exchange.status, wanted["error_code"], wanted["vm_error_code"])
    return (
        "raised as the node says"
        if same and visible(wanted["message"].split("\n")[0])[:60] in str(error)
        else "raised otherwise"
    )


def test_table_items(by_kind, recordings, node, bcs_node):
    """Each table item is read through a node at its version: key and value equal the walk, in JSON and BCS."""
    outcomes: Counter[str] = Counter()
    for exchange in [*by_kind["table item"], *by_kind["table item in BCS"]]:
        sent, version = exchange.sent, version_of(exchange)
        structs = _structs(recordings, version)
        key = plain_value(sent["key_type"].strip(), sent["key"], structs)
        if isinstance(key, dict) and set(key) != set(sent["key"]):
            outcomes["a field that the key's type does not have"] += 1  # nodes ignore it, the toolkit does not send it
            continue
        client = bcs_node if exchange.in_bcs else node
        try:
            item = client.at(version).table_item(
                exchange.path.split("/")[3], key=key, key_type=sent["key_type"], value_type=sent["value_type"]
            )
        except SchemaError:
            assert exchange.in_bcs, exchange
            assert sent["value_type"] in {"bool", "u8"}, exchange
            outcomes["another type than the item's"] += 1
            continue
        assert item.key == key, exchange
        found = _item_in_json(by_kind, exchange)
        assert item.value == plain_value(sent["value_type"], found, structs), exchange
        outcomes["BCS" if exchange.in_bcs else "JSON"] += 1
    print(dict(outcomes))  # counts in the output
    expected = {"another type than the item's": 2, "a field that the key's type does not have": 1}
    assert outcomes == {"JSON": 10, "BCS": 4} | expected


def test_a_raw_table_item(by_kind, recordings, abis):
    """The item read as bytes equals what was written, and its fields equal those read as JSON."""
    (exchange,) = by_kind["raw table item"]
    kind = "0x34bf7e2d17674feb234371a7ea58efd715f0e56ba20ebf13789480d9d643afaf::lab::Entry"
    in_json = next(
        one.json for one in by_kind["table item"] if one.sent["value_type"] == kind and one.sent["key"] == "2"
    )
    value = decode_bcs(resolve_layout(parse_type_tag(kind), abis(315)), exchange.answer)
    assert value == plain_value(kind, in_json, _structs(recordings, 315))
    handle = int(exchange.path.split("/")[3], 16)
    assert recordings.history.value("item", handle, exchange.sent["key"], 315) == "0x" + exchange.answer.hex()


def _item_in_json(by_kind, exchange):
    if not exchange.in_bcs:
        return exchange.json

    def means(one):
        return one.path.split("/")[3].removeprefix("0x"), one.sent["value_type"], str(one.sent["key"])

    same = (one.json for one in by_kind["table item"] if means(one) == means(exchange))
    return next(same, int.from_bytes(exchange.answer, "little") if exchange.sent["value_type"] == "u64" else None)


def test_a_whole_history_in_frames(node, recordings):
    """All 316 transactions with their changes and events become three frames whose cells equal the walk."""
    frames = toolkit.fetch_transactions(node, versions="0:-1", progress=False)
    history = recordings.history.transactions
    assert frames.transactions["ledger_version"].tolist() == list(range(316))
    for name in ("gas_used", "sequence_number", "max_gas_amount", "gas_unit_price", "expiration_timestamp_secs"):
        wanted = [int(one[name]) if name in one else None for one in history]
        assert [None if value is None else int(value) for value in frames.transactions[name].astype(object).where(frames.transactions[name].notna(), None)] == wanted  # fmt: skip
    for name in ("hash", "type", "success", "vm_status"):
        assert frames.transactions[name].tolist() == [one[name] for one in history]
    changes = [(v, c) for v, one in enumerate(history) for c in one["changes"]]
    assert list(zip(frames.changes["ledger_version"], frames.changes["type"], strict=True)) == [
        (v, c["type"]) for v, c in changes
    ]
    written = frames.changes[frames.changes["type"] == "write_resource"]
    assert [json.loads(text) for text in written["data"]] == [
        c["data"]["data"] for _, c in changes if c["type"] == "write_resource"
    ]
    items = frames.changes[frames.changes["type"] == "write_table_item"]
    assert ["0x" + key.hex() for key in items["key"]] == [
        c["key"] for _, c in changes if c["type"] == "write_table_item"
    ]
    assert ["0x" + value.hex() for value in items["value"]] == [
        c["value"] for _, c in changes if c["type"] == "write_table_item"
    ]
    events = [event for one in history for event in one.get("events", [])]
    assert [json.loads(text) for text in frames.events["data"]] == [event["data"] for event in events]
    assert frames.events["sequence_number"].tolist() == [int(event["sequence_number"]) for event in events]
