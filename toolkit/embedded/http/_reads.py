"""``GET`` endpoints: the node, accounts, modules, resources, transactions, blocks and the gas price."""

from __future__ import annotations

import time
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from toolkit.embedded import _render as render
from toolkit.embedded._code import decode_group, read_resource
from toolkit.embedded._execution import run_view
from toolkit.embedded._state import StateKey, state_key_bytes
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.framework._coin import APTOS_COIN
from toolkit.embedded.framework._fungible_asset import METADATA
from toolkit.embedded.http import _messages as messages
from toolkit.embedded.http._messages import BCS, ApiError, HttpAnswer, HttpCall
from toolkit.errors import InputError
from toolkit.move import TypeTag, parse_address
from toolkit.move._ids import address_to_bytes, check_identifier, wire_address
from toolkit.move._type_tags import wire_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.embedded.http._node import EmbeddedNode


_DEFAULT_PAGE = 25  # DEFAULT_PAGE_SIZE of the node's API
_MAX_STATE_PAGE = 9_999  # default of max_account_resources_page_size in the node's configuration
_ESTIMATE_VERSIONS = 30  # recent enough to follow the market, enough for a median


def index(node: EmbeddedNode, _: HttpCall) -> HttpAnswer:
    """``GET /v1``; ``git_hash`` shows that gas comes from a model."""
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
            "git_hash": "embedded-model-1",
        }
    )


def healthy(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/-/healthy``: an error if the head is more than ``duration_secs`` behind the system clock."""
    skew = messages.query_value(call, "duration_secs", messages.u32)
    if skew is not None:
        head_us = node.chain.blocks[-1].timestamp_us
        if head_us < (time.time() - skew) * 1e6:
            seconds = f"{head_us / 1e6:.6f}".rstrip("0").rstrip(".")
            message = f"The latest ledger info timestamp is {seconds}s, which is beyond the allowed skew ({skew}s)."
            raise ApiError(503, "health_check_failed", message)
    return _json({"message": "aptos-node:ok"})


def account(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}``: a new address has sequence number 0."""
    address = messages.path_address(call, "address")
    stored = node.ledger.resource(address, "0x1::account::Account", node.version(call))
    number = 0 if stored is None else stored["sequence_number"]
    key = address_to_bytes(address) if stored is None else stored["authentication_key"]
    return _json({"sequence_number": str(number), "authentication_key": f"0x{key.hex()}"})


def module(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/module/{module_name}``."""
    address = messages.path_address(call, "address")
    name = messages.path_value(call, "module_name", check_identifier)
    version = node.version(call)
    found = render.module_json(node.chain.code_at(version), address, name)
    if found is None:
        by = f"Address({wire_address(address)}), Module name({messages.shown(name)}) and Ledger version({version})"
        messages.not_found("Module", "module_not_found", by)
    return _json(found)


def modules(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/modules``, page by page."""
    address = messages.path_address(call, "address")
    code = node.chain.code_at(node.version(call))
    keys, cursor = _page(call, (StateKey("module", *one) for one in code.modules if one[0] == address))
    return _json([render.module_json(code, address, str(key.name)) for key in keys], cursor=cursor)


def resource(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/resource/{resource_type}``."""
    address = messages.path_address(call, "address")
    tag = messages.path_struct(call, "resource_type")
    version = node.version(call)
    code = node.chain.code_at(version)
    data = read_resource(node.chain.state, code, address, tag, version)
    if data is None:
        by = f"Address({wire_address(address)}), Struct tag({wire_type(tag)}) and Ledger version({version})"
        messages.not_found("Resource", "resource_not_found", by)
    if call.wants_bcs():
        return HttpAnswer(data, media_type=BCS)
    return _json(render.resource_json(code, str(tag), data))


def resources(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/resources``, page by page; a resource group counts as one resource."""
    address = messages.path_address(call, "address")
    version = node.version(call)
    code, state = node.chain.code_at(version), node.chain.state
    stored = (key for key in state.keys_of(address, version) if key.kind in {"resource", "group"})
    keys, cursor = _page(call, stored)
    found = []
    for key in keys:
        value = state.read(key, version)
        data = b"" if value is None else value.data  # `keys_of` yields only existing keys
        members = {str(key.name): data} if key.kind == "resource" else decode_group(data)
        found += [render.resource_json(code, tag, member) for tag, member in members.items()]
    return _json(found, cursor=cursor)


def balance(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/balance/{asset_type}``: a number; 0 if the account does not hold the asset.

    The asset is a coin type (including its paired fungible asset) or the address of a fungible asset.
    """
    address, text = messages.path_address(call, "address"), call.path["asset_type"]
    try:
        asset, coin = parse_address(text), APTOS_COIN
    except InputError:
        asset, coin = "", messages.path_struct(call, "asset_type")
    version = node.version(call)
    if asset:
        return _json(read_balance(node, version, "primary_fungible_store", (METADATA,), address, asset))
    return _json(read_balance(node, version, "coin", (coin,), address))


def transactions(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions?start=&limit=``: oldest first; the last page by default."""
    start = messages.query_value(call, "start", messages.u64)
    limit = _limit(call, default=_DEFAULT_PAGE, most=node.limits.page)
    chain = node.chain
    head = chain.head
    if start is None:
        start = max(chain.oldest_version, head + 1 - limit)
    if start > head:
        problem = f"Given start value ({start}) is higher than the current ledger version, it must be < {head}"
        messages.invalid_input(problem)
    node.check_kept(start)
    versions = range(start, min(head + 1, start + limit))
    return _json([render.transaction_json(chain, chain.transaction(version)) for version in versions])


def account_transactions(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/transactions?start=&limit=``: by sequence number, the last page by default."""
    address = messages.path_address(call, "address")
    start = messages.query_value(call, "start", messages.u64)
    limit = _limit(call, default=_DEFAULT_PAGE, most=node.limits.page)
    chain = node.chain
    sent = {
        request.raw.sequence_number: transaction
        for transaction in chain.transactions
        if (request := transaction.request) is not None and request.raw.sender == address and request.nonce is None
    }
    if start is None:
        start = max(0, max(sent, default=-1) + 1 - limit)
    numbers = sorted(number for number in sent if start <= number < start + limit)
    return _json([render.transaction_json(chain, sent[number]) for number in numbers])


def transaction_by_version(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions/by_version/{txn_version}``."""
    version = _stored_version(node, call, "txn_version", "Transaction")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def _stored_version(node: EmbeddedNode, call: HttpCall, name: str, what: str) -> int:
    """Return the version in the path, or raise `ApiError` if the ledger does not have it."""
    version = messages.path_value(call, name, messages.u64)
    if version > node.chain.head:
        messages.not_found(what, f"{what.lower()}_not_found", f"Ledger version({version})")
    node.check_kept(version)
    return version


def transaction_by_hash(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions/by_hash/{txn_hash}``, and ``wait_by_hash``, because no transaction is ever pending."""
    wanted = messages.path_value(call, "txn_hash", messages.transaction_hash)
    version = node.chain.by_hash.get(wanted)
    if version is None:
        messages.not_found("Transaction", "transaction_not_found", f"Transaction hash({wanted})")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def block_by_version(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/blocks/by_version/{version}``."""
    with_transactions = bool(messages.query_value(call, "with_transactions", messages.flag))
    version = _stored_version(node, call, "version", "Block")
    return _json(render.block_json(node.chain, node.chain.block_of(version), with_transactions=with_transactions))


def block_by_height(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/blocks/by_height/{block_height}``."""
    height = messages.path_value(call, "block_height", messages.u64)
    with_transactions = bool(messages.query_value(call, "with_transactions", messages.flag))
    blocks = node.chain.blocks
    oldest = blocks[0].height
    if height < oldest:
        raise ApiError(410, "block_pruned", f"Block({height}) has been pruned")
    if height - oldest >= len(blocks):
        messages.not_found("Block", "block_not_found", f"Block height({height})")
    return _json(render.block_json(node.chain, blocks[height - oldest], with_transactions=with_transactions))


def gas_estimate(node: EmbeddedNode) -> dict[str, int]:
    """Return gas unit prices in octas, from the latest transactions."""
    lowest = node.chain.schedule_at(node.chain.head)["txn.min_price_per_gas_unit"]
    latest = node.chain.transactions[-1 - _ESTIMATE_VERSIONS :]
    prices = sorted(one.request.raw.gas_unit_price for one in latest if one.request is not None)
    market = max(lowest, prices[len(prices) // 2] if prices else lowest)
    return {"deprioritized_gas_estimate": lowest, "gas_estimate": market, "prioritized_gas_estimate": market * 3 // 2}


def gas_price(node: EmbeddedNode, _: HttpCall) -> HttpAnswer:
    """``GET /v1/estimate_gas_price``: the prices are numbers, not strings."""
    return _json(gas_estimate(node))


def read_balance(node: EmbeddedNode, version: int, module: str, tags: tuple[TypeTag, ...], *arguments: str) -> int:
    """Return the result of a module's ``balance`` view, or 0 if the type is not an asset or the view fails."""
    snapshot = node.chain.snapshot(version)
    try:
        bound = snapshot.code.function("0x1", module, "balance", tags)
        values, _ = run_view(snapshot, bound, arguments)
    except VmError:
        return 0
    return int(values[0])


def _page(call: HttpCall, keys: Iterable[StateKey]) -> tuple[list[StateKey], str | None]:
    """Return the keys of a page, sorted by their bytes, and the cursor of the next page."""
    start = messages.query_value(call, "start", messages.state_cursor) or b""
    limit = _limit(call, default=_MAX_STATE_PAGE, most=_MAX_STATE_PAGE)
    rest = [(data, key) for key in keys if (data := state_key_bytes(key)) >= start]
    rest.sort(key=itemgetter(0))
    following = rest[limit][0].hex() if len(rest) > limit else None
    return [key for _, key in rest[:limit]], following


def _limit(call: HttpCall, *, default: int, most: int) -> int:
    """Return the page size that a request asks for."""
    limit = messages.query_value(call, "limit", messages.u16)
    if limit == 0:
        messages.invalid_input("Given limit value (0) must not be zero")
    return min(default if limit is None else limit, most)


def _json(value: Any, *, cursor: str | None = None) -> HttpAnswer:
    return HttpAnswer(messages.encode(value), cursor=cursor)


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
    "/accounts/{address}/transactions": account_transactions,
    "/transactions": transactions,
    "/transactions/by_version/{txn_version}": transaction_by_version,
    "/transactions/by_hash/{txn_hash}": transaction_by_hash,
    "/transactions/wait_by_hash/{txn_hash}": transaction_by_hash,
    "/blocks/by_version/{version}": block_by_version,
    "/blocks/by_height/{block_height}": block_by_height,
    "/estimate_gas_price": gas_price,
}
"""Handlers by path below ``/v1``."""
