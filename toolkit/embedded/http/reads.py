"""``GET`` endpoints: the node, accounts, modules, resources, transactions, blocks, gas price."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from toolkit.embedded import render
from toolkit.embedded.framework.account import Account
from toolkit.embedded.framework.coin import Coin
from toolkit.embedded.groups import decode_group, read_resource
from toolkit.embedded.http.answers import Answer, ApiError, bad_framework, encode, invalid_input, not_found
from toolkit.embedded.http.parsing import (
    boolean_query,
    integer_query,
    path_address,
    path_u64,
    query_u64,
    shown,
)
from toolkit.embedded.state import resource_key
from toolkit.errors import InputError
from toolkit.move import StructTag, address_to_bytes, parse_type_tag, wire_address, wire_type
from toolkit.move.bcs import decode_bcs

if TYPE_CHECKING:
    from toolkit.embedded.http.answers import Call
    from toolkit.embedded.http.node import Node

__all__ = ["GETS", "gas_estimate"]

_MODEL_BUILD = "embedded-model-1"
_DEFAULT_PAGE = 25
_PAGE_OF_STATE = 9_999
_HASH = re.compile(r"0x[0-9a-fA-F]{64}")
_VERSIONS_LOOKED_AT = 30


def index(node: Node, call: Call) -> Answer:
    """``GET /v1`` (wire facts, section 8); ``git_hash`` says that gas comes from a model."""
    del call
    state = node.chain.ledger_state()
    return _json(
        {
            "chain_id": state.chain_id,
            "epoch": str(state.epoch),
            "ledger_version": str(state.version),
            "oldest_ledger_version": str(state.oldest_version),
            "ledger_timestamp": str(state.timestamp_us),
            "node_role": "full_node",
            "oldest_block_height": str(state.oldest_block_height),
            "block_height": str(state.block_height),
            "git_hash": _MODEL_BUILD,
        }
    )


def healthy(node: Node, call: Call) -> Answer:
    """``GET /v1/-/healthy``: ledger time is made up, so how old the head may be is read and not judged."""
    del node
    integer_query(call, "duration_secs", bits=32)
    return _json({"message": "aptos-node:ok"})


def account(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}``: an account nobody used yet answers sequence number 0."""
    address = path_address(call, "address")
    version = node.version(call)
    kind = node.chain.code_at(version).struct(Account.Account, ())
    value = node.chain.state.read(resource_key(address, kind.tag), version)
    if value is None:
        sequence_number, key = 0, address_to_bytes(address)
    else:
        stored = decode_bcs(kind.layout, value.data)
        sequence_number, key = stored["sequence_number"], stored["authentication_key"]
    return _json({"sequence_number": str(sequence_number), "authentication_key": f"0x{key.hex()}"})


def module(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}/module/{module_name}``."""
    address, name = path_address(call, "address"), call.path["module_name"]
    version = node.version(call)
    found = render.module_json(node.chain.code_at(version), address, name)
    if found is None:
        by = f"Address({wire_address(address)}), Module name({shown(name)}) and Ledger version({version})"
        not_found("Module", "module_not_found", by)
    return _json(found)


def modules(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}/modules``, in one page."""
    address = path_address(call, "address")
    version = node.version(call)
    _check_page(call)
    code = node.chain.code_at(version)
    names = sorted(name for owner, name in code.modules if owner == address)
    return _json([render.module_json(code, address, name) for name in names])


def resource(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}/resource/{resource_type}``."""
    address = path_address(call, "address")
    try:
        tag = parse_type_tag(call.path["resource_type"])
    except InputError:
        tag = None
    if not isinstance(tag, StructTag):
        text = shown(call.path["resource_type"])
        bad_framework(f'failed to parse path `resource_type`: failed to parse "string(MoveStructTag)": invalid: {text}')
    version = node.version(call)
    code = node.chain.code_at(version)
    data = read_resource(node.chain.state, code, address, tag, version)
    if data is None:
        by = f"Address({wire_address(address)}), Struct tag({wire_type(tag)}) and Ledger version({version})"
        not_found("Resource", "resource_not_found", by)
    if call.wants_bcs():
        return _bcs(data)
    return _json(render.resource_json(code, str(tag), data))


def resources(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}/resources``, in one page."""
    address = path_address(call, "address")
    version = node.version(call)
    _check_page(call)
    code, state = node.chain.code_at(version), node.chain.state
    found = []
    for key in state.keys_of(address, version):
        value = state.read(key, version)
        if value is None or key.kind not in {"resource", "group"}:
            continue
        members = {str(key.name): value.data} if key.kind == "resource" else decode_group(value.data)
        found += [render.resource_json(code, tag, data) for tag, data in members.items()]
    return _json(found)


def balance(node: Node, call: Call) -> Answer:
    """``GET /v1/accounts/{address}/balance/{asset_type}``: a bare number; 0 where nothing is held."""
    address = path_address(call, "address")
    try:
        asset = parse_type_tag(call.path["asset_type"])
    except InputError:
        bad_framework(f"failed to parse path `asset_type`: invalid asset type {shown(call.path['asset_type'])}")
    version = node.version(call)
    kind = node.chain.code_at(version).struct(Coin.CoinStore, (asset,))
    value = node.chain.state.read(resource_key(address, kind.tag), version)
    return _json(0 if value is None else decode_bcs(kind.layout, value.data)["coin"]["value"])


def transactions(node: Node, call: Call) -> Answer:
    """``GET /v1/transactions?start=&limit=``: oldest first; without a start, the last page."""
    start = query_u64(call, "start")
    limit = integer_query(call, "limit", bits=16, default=_DEFAULT_PAGE)
    if limit == 0:
        invalid_input("Given limit value (0) must not be zero")
    limit = min(limit, node.limits.page)
    chain = node.chain
    head = chain.head
    if start is None:
        start = max(chain.oldest_version, head + 1 - limit)
    if start > head:
        invalid_input(f"Given start value ({start}) is higher than the current ledger version, it must be < {head}")
    if start < chain.oldest_version:
        raise ApiError(410, "version_pruned", f"Ledger version({start}) has been pruned")
    versions = range(start, min(head + 1, start + limit))
    return _json([render.transaction_json(chain, chain.transaction(version)) for version in versions])


def transaction_by_version(node: Node, call: Call) -> Answer:
    """``GET /v1/transactions/by_version/{txn_version}``."""
    version = path_u64(call, "txn_version")
    if version > node.chain.head:
        not_found("Transaction", "transaction_not_found", f"Ledger version({version})")
    if version < node.chain.oldest_version:
        raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def transaction_by_hash(node: Node, call: Call) -> Answer:
    """``GET /v1/transactions/by_hash/{txn_hash}``."""
    text = call.path["txn_hash"]
    if _HASH.fullmatch(text) is None:
        bad_framework('failed to parse path `txn_hash`: failed to parse "string(HashValue)": unable to parse HashValue')
    version = node.chain.by_hash.get(text.lower())
    if version is None:
        not_found("Transaction", "transaction_not_found", f"Transaction hash({text.lower()})")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def block_by_version(node: Node, call: Call) -> Answer:
    """``GET /v1/blocks/by_version/{version}``."""
    version = path_u64(call, "version")
    whole = boolean_query(call, "with_transactions")
    if version > node.chain.head:
        not_found("Block", "block_not_found", f"Ledger version({version})")
    if version < node.chain.oldest_version:
        raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")
    return _json(render.block_json(node.chain, node.chain.block_of(version), with_transactions=whole))


def block_by_height(node: Node, call: Call) -> Answer:
    """``GET /v1/blocks/by_height/{block_height}``."""
    height = path_u64(call, "block_height")
    whole = boolean_query(call, "with_transactions")
    blocks = node.chain.blocks
    oldest = blocks[0].height
    if height < oldest:
        raise ApiError(410, "block_pruned", f"Block({height}) has been pruned")
    if height - oldest >= len(blocks):
        not_found("Block", "block_not_found", f"Block height({height})")
    return _json(render.block_json(node.chain, blocks[height - oldest], with_transactions=whole))


def gas_estimate(node: Node) -> dict[str, int]:
    """Return prices in octas per gas unit, from the latest transactions."""
    lowest = node.chain.schedule_at(node.chain.head)["txn.min_price_per_gas_unit"]
    prices = sorted(
        request.raw.gas_unit_price
        for version in range(max(node.chain.oldest_version, node.chain.head - _VERSIONS_LOOKED_AT), node.chain.head + 1)
        if (request := node.chain.transaction(version).request) is not None
    )
    market = max(lowest, prices[len(prices) // 2] if prices else lowest)
    return {
        "deprioritized_gas_estimate": lowest,
        "gas_estimate": market,
        "prioritized_gas_estimate": market * 3 // 2,
    }


def gas_price(node: Node, call: Call) -> Answer:
    """``GET /v1/estimate_gas_price``: numbers, not strings."""
    del call
    return _json(gas_estimate(node))


def _check_page(call: Call) -> None:
    if integer_query(call, "limit", bits=16, default=_PAGE_OF_STATE) == 0:
        invalid_input("Given limit value (0) must not be zero")


def _json(value: Any) -> Answer:
    return Answer(encode(value))


def _bcs(data: bytes) -> Answer:
    return Answer(data, media_type="application/x-bcs")


#: Paths below ``/v1`` and their handlers.
GETS = {
    "": index,
    "/": index,
    "/-/healthy": healthy,
    "/accounts/{address}": account,
    "/accounts/{address}/module/{module_name}": module,
    "/accounts/{address}/modules": modules,
    "/accounts/{address}/resource/{resource_type}": resource,
    "/accounts/{address}/resources": resources,
    "/accounts/{address}/balance/{asset_type}": balance,
    "/transactions": transactions,
    "/transactions/by_version/{txn_version}": transaction_by_version,
    "/transactions/by_hash/{txn_hash}": transaction_by_hash,
    "/blocks/by_version/{version}": block_by_version,
    "/blocks/by_height/{block_height}": block_by_height,
    "/estimate_gas_price": gas_price,
}
