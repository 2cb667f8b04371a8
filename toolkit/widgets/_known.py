"""What a form knows about the values of a result: assets, names of addresses, layouts; and values shown with that."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit import move
from toolkit._present.text import ELLIPSIS, short_addresses
from toolkit.client._accounts import Asset
from toolkit.client._arguments import structs_of
from toolkit.dtypes import to_arrow
from toolkit.errors import ToolkitError
from toolkit.frames._balances import APT, APT_METADATA
from toolkit.move import parse_address, parse_type_tag
from toolkit.move._json_text import parse_json
from toolkit.widgets._html import Html, safe, short_id

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._node import Node
    from toolkit.client._simulation import Simulation
    from toolkit.move import Layout

    Together = Callable[[Sequence[Callable[[], object]]], None]


# APT by both of its names; others that call themselves so are not.
_APT = {name: Asset(name, kind, "Aptos Coin", "APT", 8) for name, kind in ((APT, "coin"), (APT_METADATA, "fungible"))}
_COIN = re.compile(r"0x1::coin::(?:CoinStore|CoinInfo|Coin)<(.+)>")
_STORE, _SUPPLY = "0x1::fungible_asset::FungibleStore", "0x1::fungible_asset::Supply"
_AMOUNTS = frozenset({"value", "balance", "current", "amount"})  # fields that hold an amount of the asset around them
_OCTAS = "octas"
_ADDRESS = re.compile(r"0x[0-9a-f]{64}")  # bytes are hex, too, and begin with zeros that count
_MAX_HEX = 24  # characters of bytes that are not cut
_DIGITS = re.compile(r"-?\d{1,80}")


@dataclass(frozen=True)
class Known:
    """What is known about the values of a result.

    Attributes
    ----------
    assets : mapping of str to Asset
        By coin type or address of the metadata, canonical.
    names : mapping of str to str
        Names of addresses, by canonical address.
    layouts : mapping of str to Layout
        By type.
    items : mapping of str to tuple of Layout
        Layouts of the keys and the values of tables, by handle.
    stores : mapping of str to str
        Assets of fungible stores, by the address of the store.
    """

    assets: Mapping[str, Asset] = field(default_factory=lambda: _APT)
    names: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    items: Mapping[str, tuple[Layout, Layout]] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)

    def amount(self, units: int, asset: str, *, signed: bool = False) -> Html:
        """Return an amount as `words`; the tooltip has the exact base units and the asset."""
        title = f"{units:,} base units of {safe(asset)}"
        return Html(f'<span class="ltk-amount" title="{title}">{safe(self.words(units, asset, signed=signed))}</span>')

    def words(self, units: int, asset: str, *, signed: bool = False) -> str:
        """Return an amount in the unit of its asset; in base units if the ledger does not say its decimals."""
        about = self.assets.get(asset)
        name = asset if about is None or not about.symbol else about.symbol
        if about is None or about.decimals is None or (name.upper() == "APT" and asset not in _APT):
            digits, name = f"{abs(units):,}", f"base units of {short_addresses(asset)}"
        else:
            whole, rest = divmod(abs(units), 10**about.decimals)
            part = f"{rest:0{about.decimals}d}".rstrip("0") if about.decimals else ""
            digits = f"{whole:,}.{part}" if part else f"{whole:,}"
        sign = "-" if units < 0 else "+" if signed and units else ""
        return f"{sign}{digits} {name}"

    def address(self, text: str) -> Html:
        """Return a short address with its name, if that is known."""
        name = self.names.get(parse_address(text)) if len(text) <= 66 else None  # noqa: PLR2004 - digits of an address
        return Html(f"{short_id(text)}{f' {safe(name)}' if name else ''}")

    def asset_of(self, kind: str, value: Any, address: str | None) -> str | None:
        """Return the asset that the amounts of a struct are of, by its type, its value and where it is stored."""
        if match := _COIN.fullmatch(kind):
            return str(parse_type_tag(match[1]))
        with suppress(ToolkitError, KeyError, TypeError):
            if kind == _STORE:
                return parse_address(value["metadata"]["inner"])
            if kind == _SUPPLY and address is not None:
                return parse_address(address)
            if "coin_type" in value:
                return str(parse_type_tag(value["coin_type"]))
            if "store" in value:
                return self.stores.get(parse_address(value["store"]))
        return None

    def leaf(self, name: str, value: Any, layout: Layout | None, asset: str | None) -> Html:  # noqa: PLR0911 - one case per kind of value
        """Return a value without parts."""
        if (units := integer(value, layout, is_amount=is_amount(name, asset))) is not None:
            own = APT_METADATA if name.endswith(_OCTAS) else asset
            if is_amount(name, asset) and own is not None:
                return self.amount(units, own)
            return Html(f"<code>{units:,}</code>")
        if value is None:
            return Html('<span class="ltk-hint">none</span>')
        if isinstance(value, str) and isinstance(layout, move.String):
            return Html(f'<span class="ltk-text">{safe(value) if value else "&quot;&quot;"}</span>')
        if isinstance(value, str) and value.startswith("0x"):
            if isinstance(layout, move.Address | move.ObjectOf) or _ADDRESS.fullmatch(value):
                return self.address(value)
            shown = value if len(value) <= _MAX_HEX else f"{value[:10]}{ELLIPSIS}{value[-4:]}"
            return Html(f'<code class="ltk-id" title="{safe(value)}">{safe(shown)}</code>')
        if isinstance(value, bool):
            return Html(f"<code>{str(value).lower()}</code>")
        return Html(f'<code class="ltk-text">{safe(value)}</code>')


def is_amount(name: str, asset: str | None) -> bool:
    """Return whether a field holds an amount."""
    last = name.rpartition(".")[2]
    return last.endswith(_OCTAS) or (asset is not None and last in _AMOUNTS)


def integer(value: Any, layout: Layout | None, *, is_amount: bool = False) -> int | None:
    """Return the integer of a JSON value; text of digits is one by its layout only, or as an amount."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int):
        return value
    known = isinstance(layout, move.UInt | move.Int) or (layout is None and is_amount)
    return int(value) if known and _DIGITS.fullmatch(value) else None


def read_known(node: Node, simulation: Simulation, names: Mapping[str, str], together: Together) -> Known:
    """Read the assets of a simulation, by `together` at the same time. What the node does not answer is left out."""
    stores: dict[str, str] = {}
    wanted = set(simulation.balance_changes["asset"].dropna())
    for row in records(simulation.changes):
        kind = row["resource_type"] or ""
        with suppress(ToolkitError, KeyError, TypeError):
            if match := _COIN.fullmatch(kind):
                wanted.add(match[1])
            elif kind == _STORE and row["data"]:
                inner = parse_json(row["data"], "store")["metadata"]["inner"]
                stores[parse_address(row["address"])] = parse_address(inner)
    assets = dict(_APT)
    canonical = set(stores.values())
    for asset in wanted:
        with suppress(ToolkitError):
            canonical.add(str(parse_type_tag(asset)) if "::" in asset else parse_address(asset))

    def read(asset: str) -> None:
        assets[asset] = node.asset(asset)

    together([partial(read, asset) for asset in canonical - assets.keys()])
    return Known(assets, names, stores=stores)


def with_layouts(known: Known, node: Node, simulation: Simulation, together: Together) -> Known:
    """Read the layouts of what a simulation writes and emits, too."""
    abis = node.abis.at(simulation.ledger_version, lenient=True)
    kinds = {*simulation.changes["resource_type"].dropna(), *simulation.events["type"].dropna()}
    modules = set()
    for kind in kinds:
        with suppress(ToolkitError):
            modules |= {(struct.address, struct.module) for struct in structs_of(parse_type_tag(kind))}
    together([partial(abis.known, *module) for module in modules])

    def layout(kind: str) -> Layout:
        return abis.layout(parse_type_tag(kind))

    layouts, items = {}, {}
    for kind in kinds:
        with suppress(ToolkitError):
            layouts[kind] = layout(kind)
    for handle in simulation.changes["handle"].dropna().unique():
        with suppress(ToolkitError):
            key, value = simulation.item_types(handle)
            items[handle] = layout(key), layout(value)
    return replace(known, layouts=layouts, items=items)


def records(frame: pd.DataFrame, limit: int | None = None) -> list[dict[str, Any]]:
    """Return the first rows of a frame as Python values."""
    rows: list[dict[str, Any]] = to_arrow(frame if limit is None else frame.head(limit)).to_pylist()
    return rows
