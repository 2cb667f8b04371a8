"""State changes and events as trees of fields, annotated with known assets, account names and layouts."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any

from toolkit import move
from toolkit._present.text import ELLIPSIS, in_whole_coins, number, plural, short_addresses, signed
from toolkit.client._arguments import structs_of
from toolkit.errors import ToolkitError
from toolkit.move import Layout, decode_bcs, encode_json, parse_address, parse_type_tag
from toolkit.move._ids import parse_hex
from toolkit.move._json_text import parse_json
from toolkit.widgets._html import Html, breakable, page, paragraph, safe, short_id
from toolkit.wire._gas import APT, APT_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd

    from toolkit.client._accounts import Asset
    from toolkit.client._node import Node
    from toolkit.client._simulation import Simulation

    Together = Callable[[Sequence[Callable[[], object]]], None]


# The coin that pays for gas, and its fungible asset. Any other asset with the same symbol is not this coin.
GAS_COIN = (APT, APT_METADATA)
_COIN = re.compile(r"0x1::coin::(?:CoinStore|CoinInfo|Coin)<(.+)>")
_STORE, _SUPPLY = "0x1::fungible_asset::FungibleStore", "0x1::fungible_asset::Supply"
_AMOUNTS = {"value", "balance", "current", "amount"}  # fields that hold an amount of the enclosing struct's asset
ADDRESS = re.compile(r"0x[0-9a-f]{64}")  # full length only: shorter hex may be bytes, whose leading zeros count
_MAX_HEX = 24  # characters of bytes that are not cut
_DIGITS = re.compile(r"-?\d{1,80}")
_OF_TIME = re.compile(r"(?:^|[_.])(?:at|deadline|expir\w*|since|time|timestamp|until|u?secs|\w*seconds)(?:$|\.)")
_TIMES = range(1_230_768_000, 4_102_444_800)  # 2009 to 2099, in seconds: a shorter number counts something else
_EMPTY = Html('<span class="ltk-hint">empty</span>')


@dataclass(frozen=True)
class Known:
    """What is known about the values in a result.

    Attributes
    ----------
    assets : mapping of str to Asset
        Assets by canonical coin type or metadata address.
    names : mapping of str to str
        Account names by canonical address.
    layouts : mapping of str to Layout
        Layouts by type.
    items : mapping of str to tuple of Layout
        Key and value layouts of tables, by handle.
    stores : mapping of str to str
        Assets of fungible stores, by the store's address.
    """

    assets: Mapping[str, Asset] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    items: Mapping[str, tuple[Layout, Layout]] = field(default_factory=dict)
    stores: Mapping[str, str] = field(default_factory=dict)

    def amount(self, units: int, asset: str, *, signed: bool = False) -> Html:
        """Return the amount formatted by `words`, with a tooltip that shows the base units and the asset."""
        title = f"{number(units)} base units of {safe(asset)}"
        return Html(f'<span class="ltk-amount" title="{title}">{safe(self.words(units, asset, signed=signed))}</span>')

    def words(self, units: int, asset: str, *, signed: bool = False) -> str:
        """Format an amount in the asset's unit, or in base units if the asset's decimals are not known."""
        unit = self.unit(asset)
        words = f"{number(units)} base units of {short_addresses(asset)}"
        if unit is not None:
            words = f"{in_whole_coins(units, unit[1])} {unit[0]}"
        return f"{'+' if signed and units > 0 else ''}{words}"

    def fact(self, name: str, units: int, asset: str | None) -> dict[str, int | Decimal]:
        """Return an amount for a comparison, in whole coins if the asset's decimals are known."""
        unit = None if asset is None else self.unit(asset)
        return {name: units} if unit is None else {f"{name}, {unit[0]}": Decimal(units).scaleb(-unit[1]).normalize()}

    def unit(self, asset: str) -> tuple[str, int] | None:
        """Return the symbol and decimals of an asset; None if unknown, or if the symbol is the gas coin's."""
        about, gas = self.assets.get(asset), self.assets.get(APT)
        if about is None or about.decimals is None:
            return None
        symbol = about.symbol or asset
        same = gas is not None and gas.symbol is not None and symbol.upper() == gas.symbol.upper()
        return None if same and asset not in GAS_COIN else (symbol, about.decimals)

    def name(self, address: str) -> str:
        """Return the name of an account, or its shortened address."""
        return self.names.get(address) or short_addresses(address)

    def address(self, text: str) -> Html:
        """Return a shortened address, followed by the account's name if known."""
        name = self.names.get(parse_address(text)) if len(text) <= 66 else None  # noqa: PLR2004 - digits of an address
        return Html(f"{short_id(text)}{f' {safe(name)}' if name else ''}")

    def asset_of(self, kind: str, value: Any, address: str | None) -> str | None:
        """Return the asset of a struct's amounts, derived from the struct's type, value and address."""
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
        """Return the HTML of a value that has no fields or items."""
        if (units := integer(value, layout, is_amount=is_amount(name, asset))) is not None:
            if is_amount(name, asset):
                return self.amount(units, str(asset))
            time = time_words(name, units)
            beside = f' <span class="ltk-hint">{time}</span>' if time else ""
            return Html(f"<code>{number(units)}</code>{beside}")
        if value is None:
            return Html('<span class="ltk-hint">none</span>')
        if isinstance(value, str) and isinstance(layout, move.String):
            return Html(f'<span class="ltk-text">{safe(value) if value else "&quot;&quot;"}</span>')
        if isinstance(value, str) and value.startswith("0x"):
            if isinstance(layout, move.Address | move.ObjectOf) or ADDRESS.fullmatch(value):
                return self.address(value)
            shown = value if len(value) <= _MAX_HEX else f"{value[:10]}{ELLIPSIS}{value[-4:]}"
            return Html(f'<code class="ltk-id" title="{safe(value)}">{safe(shown)}</code>')
        if isinstance(value, bool):
            return Html(f"<code>{str(value).lower()}</code>")
        return Html(f'<code class="ltk-text">{safe(value)}</code>')


def time_words(name: str, units: int) -> str:
    """Return the time that a field holds; empty if its name does not say so, or the number is not such a time.

    >>> time_words("registered_at", 1_767_334_464)
    '2026-01-02 06:14:24 UTC'
    """
    if _OF_TIME.search(name):
        for scale in (1, 10**3, 10**6):  # seconds, or parts of them
            if units // scale in _TIMES:
                return f"{datetime.fromtimestamp(units // scale, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return ""


def is_amount(name: str, asset: str | None) -> bool:
    """Return whether a field holds an amount."""
    return asset is not None and name.rpartition(".")[2] in _AMOUNTS


def integer(value: Any, layout: Layout | None, *, is_amount: bool = False) -> int | None:
    """Return a JSON value as an integer; a string counts only if its layout is an integer or it is an amount."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    if isinstance(value, int):
        return value
    known = isinstance(layout, move.UInt | move.Int) or (layout is None and is_amount)
    return int(value) if known and _DIGITS.fullmatch(value) else None


def read_known(node: Node, simulation: Simulation, names: Mapping[str, str], together: Together) -> Known:
    """Read the assets of a simulation, in parallel with `together`. Failed reads are omitted."""
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
    assets: dict[str, Asset] = {}
    canonical = {APT, *stores.values()}
    for asset in wanted:
        with suppress(ToolkitError):
            canonical.add(str(parse_type_tag(asset)) if "::" in asset else parse_address(asset))

    def read(asset: str) -> None:
        assets[asset] = node.asset(asset)

    together([partial(read, asset) for asset in canonical - {APT_METADATA}])
    if APT in assets:
        assets[APT_METADATA] = assets[APT]
    return Known(assets, names, stores=stores)


def with_layouts(known: Known, node: Node, simulation: Simulation, together: Together) -> Known:
    """Add the layouts of what a simulation writes and emits."""
    abis = node.abis.at(simulation.ledger_version)
    kinds = {*simulation.changes["resource_type"].dropna(), *simulation.events["type"].dropna()}
    modules = set()
    for kind in kinds:
        with suppress(ToolkitError):
            modules |= {(struct.address, struct.module) for struct in structs_of(parse_type_tag(kind))}

    def look_up(module: tuple[str, str]) -> None:
        with suppress(ToolkitError):
            abis.lookup(*module)

    together([partial(look_up, module) for module in modules])

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
    from toolkit.dtypes import to_arrow

    return to_arrow(frame if limit is None else frame.head(limit)).to_pylist()  # type: ignore[no-any-return]


MAX_CHANGES = 1_000  # more make the page slow; the frame has them all
_MAX_OPEN = 12  # changes that are open initially: about a screen
_MAX_ITEMS = 100  # of a vector
_MAX_KEY = 120  # characters of a struct that is a key


class Mark(StrEnum):
    """What happened to a state item. The value is the text of the mark; the name in lower case is its CSS class."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    SAME = "written, unchanged"
    WRITTEN = "written"  # the earlier state is not known

    @property
    def html(self) -> str:
        """The mark as HTML."""
        return f'<span class="ltk-mark ltk-{self.name.lower()}">{self.value}</span> '


_Fields = dict[Any, Any]  # of a struct by name, or items of a vector by place


class _Tree:
    """A value before and after a change, as lines of HTML; equal ones are shown once. Collects changes of amounts."""

    def __init__(self, known: Known, address: str | None = None) -> None:
        self.known, self.address = known, address
        self.amounts: list[Html] = []
        self.equal = 0  # fields

    def whole(self, kind: str, old: Any, new: Any, layout: Layout | None) -> Html:
        """Return the lines of a resource, table item or event; if some differ, the equal ones are folded."""
        asset = self.known.asset_of(kind, new if isinstance(new, dict) else {}, self.address)
        if not (isinstance(old, dict) and isinstance(new, dict)):
            return Html(self._field("value", old, new, layout, asset, differing=old != new))
        differ = self._parts(old, new, layout, asset, differing=True)
        self.equal = 0  # without those inside of what was created
        equal = self._parts(old, new, layout, asset, differing=False)
        if differ and equal:
            title = f"<summary>{plural(self.equal, 'equal field')}</summary>"
            equal = f'<details class="ltk-fold ltk-same">{title}{equal}</details>'
        return Html(differ + equal or _EMPTY)

    def _field(
        self, name: str, old: Any, new: Any, layout: Layout | None, asset: str | None, *, differing: bool
    ) -> str:
        """Return the lines of a field, either those that differ or the equal ones; empty if it has none."""
        old, new, layout, name = _unwrapped(old, new, layout, name)
        if isinstance(old, list) and isinstance(new, list):
            old, new = dict(enumerate(old)), dict(enumerate(new))
        if isinstance(old, dict) and isinstance(new, dict) and (old or new):
            if differing and old.keys() == new.keys() and sum(old[key] != new[key] for key in old) == 1:
                return self._parts(old, new, layout, asset, differing=True, within=f"{name}.")
            shown = self._parts(old, new, layout, asset, differing=differing)
        else:
            shown = self._leaf(name, old, new, layout, asset) if (old != new) is differing else ""
        return f'<div class="ltk-f"><span class="ltk-key">{safe(name)}</span><div>{shown}</div></div>' if shown else ""

    def _parts(
        self, old: _Fields, new: _Fields, layout: Layout | None, asset: str | None, *, differing: bool, within: str = ""
    ) -> str:
        """Return the lines of the fields of a struct, or of the items of a vector, that differ or that do not.

        Their names begin with `within`, the path of the struct if it has no line of its own.
        """
        if isinstance(layout, move.StructOf):
            asset = self.known.asset_of(str(layout.tag), new, self.address) or asset
        names = list(dict.fromkeys([*old, *new]))
        shown = ""
        for name in names[:_MAX_ITEMS]:
            before, after, inner = old.get(name, new.get(name)), new.get(name, old.get(name)), _inner(layout, name)
            if name in old and name in new:
                shown += self._field(f"{within}{name}", before, after, inner, asset, differing=differing)
            elif differing:
                mark = Mark.DELETED if name in old else Mark.CREATED
                shown += mark.html + self._field(str(name), before, after, inner, asset, differing=False)
        rest = len(names) - _MAX_ITEMS
        return f"{shown}{paragraph(f'and {rest:,} more')}" if rest > 0 and not differing else shown

    def _leaf(self, name: str, old: Any, new: Any, layout: Layout | None, asset: str | None) -> str:
        before, after = (self.known.leaf(name, value, layout, asset) for value in (old, new))
        if old == new:
            self.equal += 1
            return _EMPTY if new in ({}, []) else after
        amount, difference = is_amount(name, asset), ""
        one, two = (integer(value, layout, is_amount=amount) for value in (old, new))
        if one is not None and two is not None:
            shown = safe(signed(two - one))
            if amount and asset is not None:
                shown = self.known.amount(two - one, asset, signed=True)
                self.amounts.append(shown)
            difference = f" <b>({shown})</b>"
        return f"<del>{before}</del> \N{RIGHTWARDS ARROW} <ins>{after}</ins>{difference}"


def value_tree(value: Any, known: Known) -> Html:
    """Return a struct or vector, as JSON, as lines: a field or item each."""
    return Html(f'<div class="ltk-tree">{_Tree(known).whole("", value, value, None)}</div>')


def _inner(layout: Layout | None, name: Any) -> Layout | None:
    match layout:
        case move.StructOf(_, fields):
            return dict(fields).get(name)
        case move.EnumOf(_, variants):
            return next((dict(fields)[name] for _, fields in variants if name in dict(fields)), None)
        case move.VectorOf(element) | move.OptionOf(element):
            return element
    return None


def _unwrapped(old: Any, new: Any, layout: Layout | None, name: str) -> tuple[Any, Any, Layout | None, str]:
    """Unwrap one-field structs and Options, except coins, whose type names the asset of the amount."""
    while (key := _only_key(new)) is not None and key == _only_key(old):
        if isinstance(layout, move.StructOf) and str(layout.tag).startswith("0x1::coin::Coin<"):
            break
        old, new = old[key], new[key]
        if key == "vec" and all(isinstance(one, list) and len(one) <= 1 for one in (old, new)):
            old, new = (one[0] if one else None for one in (old, new))
        else:
            name = f"{name}.{key}"
        layout = _inner(layout, key)
    return old, new, layout, name


def _only_key(value: Any) -> Any:
    """Return the name of the field of a one-field struct; None for other values."""
    return next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None


# pages ---------------------------------------------------------------------------------------------------------------


def changes_page(simulation: Simulation, known: Known, diff: pd.DataFrame | None, *, links: bool) -> Html:
    """Return the page of state changes; with `diff`, each change is compared with the earlier state, field by field.

    Parameters
    ----------
    simulation : Simulation
    known : Known
    diff : DataFrame, optional
        The result of `Simulation.diff`.
    links : bool
        Whether to add buttons that open table items in another form.
    """
    frame = simulation.changes
    before = None if diff is None else {_slot(row): row["before"] for row in records(diff)}
    made = [_change(place, row, before, known, links=links) for place, row in enumerate(records(frame, MAX_CHANGES))]
    made.sort(key=lambda one: one[0] is Mark.SAME)
    listed = _sections(made)
    waits = "" if diff is not None else paragraph("Reading the earlier state\N{HORIZONTAL ELLIPSIS}")
    rest = f"The first {MAX_CHANGES:,} of {len(frame):,} changes." if len(frame) > MAX_CHANGES else ""
    return page(waits, listed, safe(rest))


def events_page(simulation: Simulation, known: Known) -> Html:
    """Return the page of events."""
    made = []
    for row in records(simulation.events, MAX_CHANGES):
        kind = row["type"] or ""
        data = None if row["data"] is None else parse_json(row["data"], "event")
        where = "" if set(row["account_address"] or "0") <= set("0x") else f" {known.address(row['account_address'])}"
        body = _Tree(known).whole(kind, data, data, known.layouts.get(kind))
        made.append((None, f"{row['event_index']}. {type_html(kind)}{where}", body))
    return page(_sections(made))


def _sections(made: Sequence[tuple[Mark | None, str, str]]) -> str:
    """Return sections, each with a marker, a heading and a body. The first ones are open."""
    shown = ""
    for place, (mark, head, body) in enumerate(made):
        kind = f' data-kind="{mark.value}"' if mark else ""
        is_open = " open" if place < _MAX_OPEN and mark is not Mark.SAME else ""
        inside = f'<summary>{mark.html if mark else ""}{head}</summary><div class="ltk-tree">{body}</div>'
        shown += f'<details class="ltk-state"{kind}{is_open}>{inside}</details>'
    return f"<div data-list>{shown}</div>"


def _change(
    place: int, row: dict[str, Any], before: dict[Any, Any] | None, known: Known, *, links: bool
) -> tuple[Mark, str, str]:
    """Return the mark, heading and body of a state change."""
    kind, tree = row["resource_type"] or "", _Tree(known, row["address"])
    key_layout, layout = known.items.get(row["handle"], (None, known.layouts.get(kind)))
    key, new = _written(row, key_layout, layout)
    old = None if before is None else _state(before.get(_slot(row)), layout)
    # Compared with the decoded new value, bytes of an unknown type would look like a change of the value.
    unread = layout is None and row["handle"] is not None and isinstance(old, str)
    gone = new is None if row["module"] is None else row["type"] == "delete_module"
    if gone:
        mark = Mark.DELETED
    elif before is None or unread or row["module"] is not None:
        mark = Mark.WRITTEN
    else:
        mark = Mark.CREATED if old is None else Mark.SAME if old == new else Mark.CHANGED
    after = old if gone and not unread else new
    body = Html("") if after is None else tree.whole(kind, old if mark is Mark.CHANGED else after, after, layout)
    if unread:
        body = Html(f"{body}{paragraph(f'Before (BCS of an unknown type): {old}')}")
    if row["module"] is not None:
        body = paragraph("The module's code.")
    if row["handle"] is None:
        head = f"{known.address(row['address'])} {type_html(kind or row['module'] or '')}"
    else:
        text = short_addresses(str(key))[:_MAX_KEY] if isinstance(key, dict | list) else key
        head = f"item {known.leaf('key', text, key_layout, None)} of table {short_id(row['handle'])}"
        if links and old is not None:  # an item that the simulation creates is at no version
            about = f'class="ltk-small" data-send="item" data-number="{place}"'
            body = Html(f'{body}<button type="button" {about}>Read this item at other versions</button>')
    amount = f' <b class="ltk-delta">{tree.amounts[0]}</b>' if tree.amounts else ""
    return mark, head + amount, body


def _slot(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[column] for column in ("address", "resource_type", "handle", "key"))


def _written(row: dict[str, Any], key_layout: Layout | None, layout: Layout | None) -> tuple[Any, Any]:
    """Return a change's key and written value: JSON, hex if the type is not known, or None for a deletion."""
    key = None if row["key"] is None else _decoded("0x" + row["key"].hex(), key_layout)
    if row["data"]:
        data = parse_json(row["data"], "change")
        if row["handle"] is not None and isinstance(data, dict) and "key" in data:
            return data["key"], data.get("value")
        return key, data
    return key, None if row["value"] is None else _decoded("0x" + row["value"].hex(), layout)


def _state(text: str | None, layout: Layout | None) -> Any:
    """Return the value of a state in a diff, which is JSON text, or BCS as hex for table items."""
    if text is None:
        return None
    return _decoded(text, layout) if text.startswith("0x") else parse_json(text, "state before")


def _decoded(text: str, layout: Layout | None) -> Any:
    if layout is None:
        return text
    try:
        return encode_json(layout, decode_bcs(layout, parse_hex(text)))
    except ToolkitError:
        return text


def type_html(text: str) -> Html:
    """Return a type with shortened addresses; the tooltip shows the full type."""
    return Html(f'<code title="{safe(text)}">{breakable(short_addresses(text))}</code>')


def balance_rows(frame: pd.DataFrame, known: Known, limit: int) -> Iterator[tuple[Any, ...]]:
    """Yield, for each balance that changes: owner, change with the fee, and the balance after."""
    for row in records(frame, limit):
        asset = row["asset"]
        yield (
            known.address(row["owner"]),
            "unknown" if row["change"] is None else known.amount(row["change"], asset, signed=True),
            None if row["balance_after"] is None else known.amount(row["balance_after"], asset),
        )
