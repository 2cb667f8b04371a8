"""``GET`` endpoints: the node, accounts, modules, resources, transactions, blocks, gas price."""

from __future__ import annotations

import re
import time
from bisect import bisect_left
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from toolkit.embedded import _render as render
from toolkit.embedded._code import decode_group, read_resource
from toolkit.embedded._execution import run_view
from toolkit.embedded._session import EventKey
from toolkit.embedded._state import module_key, resource_key, state_key_bytes
from toolkit.embedded._vm_status import VmError
from toolkit.embedded.framework._account import Account
from toolkit.embedded.framework._fungible_asset import METADATA
from toolkit.embedded.http._messages import ApiError, HttpAnswer, encode, framework_error, invalid_input, not_found
from toolkit.embedded.http._parsing import (
    address_of,
    boolean_query,
    integer_query,
    path_address,
    path_identifier,
    path_u64,
    query_u64,
    shown,
)
from toolkit.errors import InputError
from toolkit.move import StructOf, StructTag, decode_bcs, parse_type_tag
from toolkit.move._ids import address_to_bytes, wire_address
from toolkit.move._type_tags import wire_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from toolkit.embedded._state import StateKey
    from toolkit.embedded.http._messages import HttpCall
    from toolkit.embedded.http._node import EmbeddedNode
    from toolkit.move import TypeTag


_MICROSECONDS = 1_000_000
_MODEL_BUILD = "embedded-model-1"
_DEFAULT_PAGE = 25
_MAX_STATE_PAGE = 9_999
_HASH = re.compile(r"(?:0x)?([0-9a-fA-F]{64})")
_ESTIMATE_VERSIONS = 30
_EVENT_HANDLE = "0x1::event::EventHandle"
_STATE_KEY_KINDS = {0, 1, 255}  # access paths, table items and raw keys


def index(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
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


def healthy(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/-/healthy``: an error if the head is older than ``duration_secs``, compared with the real time."""
    if "duration_secs" in call.query:
        skew = integer_query(call, "duration_secs", bits=32)
        head_us = node.chain.blocks[-1].timestamp_us
        if head_us < (time.time() - skew) * _MICROSECONDS:
            seconds = f"{head_us / _MICROSECONDS:.6f}".rstrip("0").rstrip(".")
            message = f"The latest ledger info timestamp is {seconds}s, which is beyond the allowed skew ({skew}s)."
            raise ApiError(503, "health_check_failed", message)
    return _json({"message": "aptos-node:ok"})


def account(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}``: a new address has sequence number 0."""
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


def module(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/module/{module_name}``."""
    address, name = path_address(call, "address"), path_identifier(call, "module_name")
    version = node.version(call)
    found = render.module_json(node.chain.code_at(version), address, name)
    if found is None:
        by = f"Address({wire_address(address)}), Module name({shown(name)}) and Ledger version({version})"
        not_found("Module", "module_not_found", by)
    return _json(found)


def modules(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/modules``, page by page."""
    address = path_address(call, "address")
    version = node.version(call)
    code = node.chain.code_at(version)
    keys, cursor = _page(call, (module_key(owner, name) for owner, name in code.modules if owner == address))
    return _json([render.module_json(code, address, str(key.name)) for key in keys], cursor=cursor)


def resource(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/resource/{resource_type}``."""
    address = path_address(call, "address")
    tag = _path_struct(call, "resource_type")
    version = node.version(call)
    code = node.chain.code_at(version)
    data = read_resource(node.chain.state, code, address, tag, version)
    if data is None:
        by = f"Address({wire_address(address)}), Struct tag({wire_type(tag)}) and Ledger version({version})"
        not_found("Resource", "resource_not_found", by)
    if call.wants_bcs():
        return _bcs(data)
    return _json(render.resource_json(code, str(tag), data))


def _path_struct(call: HttpCall, name: str) -> StructTag:
    """Return the struct type in a path."""
    tag = _struct_tag(call.path[name])
    if tag is None:
        text = shown(call.path[name])
        raise framework_error(
            f'failed to parse path `{name}`: failed to parse "string(MoveStructTag)": invalid struct tag: {text}'
        )
    return tag


def _struct_tag(text: str) -> StructTag | None:
    try:
        tag = parse_type_tag(text, short=False)
    except InputError:
        return None
    return tag if isinstance(tag, StructTag) else None


def resources(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/resources``, page by page; a group counts as one."""
    address = path_address(call, "address")
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


def events_of_handle(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/events/{event_handle}/{field_name}``: events of a handle in a resource."""
    address, tag = path_address(call, "address"), _path_struct(call, "event_handle")
    field = path_identifier(call, "field_name")
    page = _event_page(node, call)
    version, code = node.chain.head, node.chain.code_at(node.chain.head)
    data = read_resource(node.chain.state, code, address, tag, version)
    where = f"Address({wire_address(address)}), Struct tag({wire_type(tag)})"
    if data is None:
        not_found("Resource", "resource_not_found", f"{where} and Ledger version({version})")
    layout = code.layout(str(tag))
    kinds = dict(layout.fields) if isinstance(layout, StructOf) else {}
    if field not in kinds:
        by = f"{where}, Field name({field}) and Ledger version({version})"
        not_found("Struct Field", "struct_field_not_found", by)
    kind = kinds[field]
    if not (isinstance(kind, StructOf) and kind.tag.base == _EVENT_HANDLE):
        invalid_input(f"Deserialization error, field({field}) type is not a EventHandle struct")  # as on nodes
    identifier = decode_bcs(layout, data)[field]["guid"]["id"]
    return _events(node, call, EventKey(identifier["addr"], identifier["creation_num"]), page)


def events_by_number(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/events/{creation_number}``: events of the handle with that number."""
    key = EventKey(path_address(call, "address"), path_u64(call, "creation_number"))
    return _events(node, call, key, _event_page(node, call))


def _event_page(node: EmbeddedNode, call: HttpCall) -> tuple[int | None, int]:
    """Return the first sequence number of a page, None for the latest events, and the number of events."""
    start = query_u64(call, "start")
    limit = integer_query(call, "limit", bits=16, default=_DEFAULT_PAGE)
    if limit == 0:
        invalid_input("Given limit value (0) must not be zero")
    return start, min(limit, node.limits.page)


def _events(node: EmbeddedNode, call: HttpCall, key: EventKey, page: tuple[int | None, int]) -> HttpAnswer:
    """Return a page of the events of a handle, oldest first; without a start the latest ones."""
    start, limit = page
    known = list(node.chain.events_by_key.get(key, ()))
    first = len(known) - limit if start is None else bisect_left(known, start, key=lambda item: item[1].sequence_number)
    found = known[max(0, first) :][:limit]
    if call.wants_bcs():
        return _bcs(render.versioned_events_bcs(found))
    return _json(render.versioned_events_json(node.chain.code_at(node.chain.head), found))


def balance(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/balance/{asset_type}``: a number, 0 if the account holds none of the asset.

    The asset is a coin type (including its paired fungible asset) or the address of a fungible asset.
    """
    address, text = path_address(call, "address"), call.path["asset_type"]
    asset, coin = address_of(text), _struct_tag(text)
    if asset is None and coin is None:
        problem = f'failed to parse "string(AssetType)": invalid struct tag: {shown(text)}'
        raise framework_error(f"failed to parse path `asset_type`: {problem}")
    version = node.version(call)
    if asset is not None:
        return _json(_view(node, version, "primary_fungible_store", (METADATA,), address, asset))
    return _json(_view(node, version, "coin", (coin,), address))  # type: ignore[arg-type]  # one of them is not None


def transactions(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions?start=&limit=``: oldest first; the last page by default."""
    start = query_u64(call, "start")
    limit = _limit(call, default=_DEFAULT_PAGE, most=node.limits.page)
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


def account_transactions(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/accounts/{address}/transactions?start=&limit=``: by sequence number, the last page by default."""
    address = path_address(call, "address")
    start = query_u64(call, "start")
    limit = _limit(call, default=_DEFAULT_PAGE, most=node.limits.page)
    chain = node.chain
    sent = {
        transaction.request.raw.sequence_number: transaction
        for version in range(chain.oldest_version, chain.head + 1)
        if (transaction := chain.transaction(version)).request is not None
        and transaction.request.raw.sender == address
        and transaction.request.nonce is None
    }
    if start is None:
        start = max(0, max(sent, default=-1) + 1 - limit)
    numbers = sorted(number for number in sent if start <= number < start + limit)
    return _json([render.transaction_json(chain, sent[number]) for number in numbers])


def transaction_by_version(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions/by_version/{txn_version}``."""
    version = path_u64(call, "txn_version")
    if version > node.chain.head:
        not_found("Transaction", "transaction_not_found", f"Ledger version({version})")
    if version < node.chain.oldest_version:
        raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def transaction_by_hash(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/transactions/by_hash/{txn_hash}``; ``wait_by_hash`` too, since no transaction is pending."""
    match = _HASH.fullmatch(call.path["txn_hash"])
    if match is None:
        raise framework_error(
            'failed to parse path `txn_hash`: failed to parse "string(HashValue)": unable to parse HashValue'
        )
    wanted = f"0x{match[1].lower()}"
    version = node.chain.by_hash.get(wanted)
    if version is None:
        not_found("Transaction", "transaction_not_found", f"Transaction hash({wanted})")
    return _json(render.transaction_json(node.chain, node.chain.transaction(version)))


def block_by_version(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/blocks/by_version/{version}``."""
    version = path_u64(call, "version")
    with_transactions = boolean_query(call, "with_transactions")
    if version > node.chain.head:
        not_found("Block", "block_not_found", f"Ledger version({version})")
    if version < node.chain.oldest_version:
        raise ApiError(410, "version_pruned", f"Ledger version({version}) has been pruned")
    return _json(render.block_json(node.chain, node.chain.block_of(version), with_transactions=with_transactions))


def block_by_height(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/blocks/by_height/{block_height}``."""
    height = path_u64(call, "block_height")
    with_transactions = boolean_query(call, "with_transactions")
    blocks = node.chain.blocks
    oldest = blocks[0].height
    if height < oldest:
        raise ApiError(410, "block_pruned", f"Block({height}) has been pruned")
    if height - oldest >= len(blocks):
        not_found("Block", "block_not_found", f"Block height({height})")
    return _json(render.block_json(node.chain, blocks[height - oldest], with_transactions=with_transactions))


def gas_estimate(node: EmbeddedNode) -> dict[str, int]:
    """Return gas unit prices in octas, from the latest transactions."""
    lowest = node.chain.schedule_at(node.chain.head)["txn.min_price_per_gas_unit"]
    prices = sorted(
        request.raw.gas_unit_price
        for version in range(max(node.chain.oldest_version, node.chain.head - _ESTIMATE_VERSIONS), node.chain.head + 1)
        if (request := node.chain.transaction(version).request) is not None
    )
    market = max(lowest, prices[len(prices) // 2] if prices else lowest)
    return {
        "deprioritized_gas_estimate": lowest,
        "gas_estimate": market,
        "prioritized_gas_estimate": market * 3 // 2,
    }


def gas_price(node: EmbeddedNode, call: HttpCall) -> HttpAnswer:
    """``GET /v1/estimate_gas_price``: the prices are numbers, not strings."""
    del call
    return _json(gas_estimate(node))


def _view(node: EmbeddedNode, version: int, module: str, tags: tuple[TypeTag, ...], *arguments: str) -> int:
    """Return the result of a module's ``balance`` view, 0 if the type is not an asset or the view fails."""
    snapshot = node.chain.snapshot(version)
    try:
        bound = snapshot.code.function("0x1", module, "balance", tags)
        values, _ = run_view(snapshot, bound, arguments, tags)
    except VmError:
        return 0
    return int(values[0])


def _page(call: HttpCall, keys: Iterable[StateKey]) -> tuple[list[StateKey], str | None]:
    """Return the keys of a page, sorted by their bytes, and the cursor of the next page."""
    start = _cursor(call)
    limit = _limit(call, default=_MAX_STATE_PAGE, most=_MAX_STATE_PAGE)
    rest = [(data, key) for key in keys if (data := state_key_bytes(key)) >= start]
    rest.sort(key=itemgetter(0))
    following = rest[limit][0].hex() if len(rest) > limit else None
    return [key for _, key in rest[:limit]], following


def _cursor(call: HttpCall) -> bytes:
    """Return the state key at which a page starts, from the cursor of the previous page."""
    text = call.query.get("start")
    if text is None:
        return b""
    try:
        data = bytes.fromhex(text) if text.isalnum() else None
    except ValueError:
        data = None
    problem = "Failed to decode StateKey as hex string" if data is None else "Failed to decode StateKey from hex string"
    if not data or data[0] not in _STATE_KEY_KINDS:
        raise framework_error(
            f'failed to parse parameter `start`: failed to parse "string(StateKeyWrapper)": {problem} '
            '(occurred while parsing "optional<string(StateKeyWrapper)>")'
        )
    return data


def _limit(call: HttpCall, *, default: int, most: int) -> int:
    """Return the size of a page."""
    limit = integer_query(call, "limit", bits=16, default=default)
    if limit == 0:
        invalid_input("Given limit value (0) must not be zero")
    return min(limit, most)


def _json(value: Any, *, cursor: str | None = None) -> HttpAnswer:
    return HttpAnswer(encode(value), cursor=cursor)


def _bcs(data: bytes) -> HttpAnswer:
    return HttpAnswer(data, media_type="application/x-bcs")


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
    "/accounts/{address}/events/{creation_number}": events_by_number,
    "/accounts/{address}/events/{event_handle}/{field_name}": events_of_handle,
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
