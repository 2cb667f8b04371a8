"""What is stored at an address at one ledger version, coins and fungible assets, and the units of their amounts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import msgspec

from toolkit import dtypes, frames
from toolkit._present.notebook import facts_html, literal
from toolkit._present.text import listed, plural, short_addresses, visible, without_padding
from toolkit.client._http import served_ledger
from toolkit.client._node_errors import ABSENT, NO_ACCOUNT
from toolkit.errors import Forbidden, InputError, NodeError, NotFound, SchemaError, ToolkitError
from toolkit.move import StructTag, parse_address, parse_type_tag
from toolkit.move._ids import parse_table_handle, wire_address
from toolkit.move._values import DeclaredTable, tables_in
from toolkit.wire import ViewFunction
from toolkit.wire._gas import APT, APT_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pandas as pd

    from toolkit.client._abis import ListedModule
    from toolkit.client._reads import Reads

# The canonical type and the data of each resource.
_Resources: TypeAlias = "Sequence[tuple[str, Any]]"
_MAX_PAGES = 1_000  # a node whose cursor never ends would be read for ever
_MAX_NAMED = 6  # what fits into a line of a repr or a message
_MAX_SHOWN = 12  # rows of each table in a notebook; the frames have all
# Authentication key of accounts that nobody can sign for, such as resource accounts.
_NO_KEY = "0x" + 64 * "0"


# Addresses that are the same on every chain.
_FRAMEWORK_NAMES = {
    "0x1": "framework",
    "0x3": "tokens",
    "0x4": "token objects",
    "0xa": "APT as a fungible asset",
    "0xa550c18": "core resources",
}


def known_names(node: Reads) -> dict[str, str]:
    """Return the names of framework addresses and of an embedded ledger's accounts, by canonical address.

    No request is sent.
    """
    names = {parse_address(address): name for address, name in _FRAMEWORK_NAMES.items()}
    ledger = served_ledger(node.url)
    return names if ledger is None else names | ledger.chain.account_names()


@dataclass(frozen=True, slots=True)
class Asset:
    """A coin or a fungible asset.

    Attributes
    ----------
    asset : str
        Coin type, or the address of the fungible asset's metadata.
    standard : str
        ``coin`` or ``fungible asset``.
    name, symbol : str or None
        Chosen by the creator; not necessarily unique.
    decimals : int or None
        Number of decimal places; None if not known.

    Examples
    --------
    >>> import toolkit
    >>> toolkit.connect().asset("0x1::aptos_coin::AptosCoin").decimals
    8
    """

    asset: str
    standard: str
    name: str | None
    symbol: str | None
    decimals: int | None


class AccountKind(StrEnum):
    """What an address is, according to the resources stored there."""

    ACCOUNT = "account"
    #: An account without a key: only its contract can act for it.
    RESOURCE_ACCOUNT = "resource account"
    MULTISIG_ACCOUNT = "multisig account"
    OBJECT = "object"
    #: An object that describes a fungible asset.
    FUNGIBLE_ASSET = "fungible asset"
    #: An object that has a balance of a fungible asset.
    FUNGIBLE_STORE = "fungible store"
    #: Nothing is stored at the address.
    NOTHING = "nothing"
    #: The node does not list the resources.
    UNKNOWN = "unknown"


@dataclass(frozen=True, repr=False)
class Account:
    """Everything stored at an address at one ledger version, as returned by `Node.account`.

    Attributes
    ----------
    address : str
    ledger_version : int
        The version that was read.
    sequence_number : int or None
        Sequence number of the next transaction: 0 for an account without transactions, None if the node has no account
        at the address, such as for an object on older nodes.
    authentication_key : str or None
        ``0x`` and 64 hex digits.
    kind : AccountKind
        Compares equal to a string, such as ``"resource account"``.
    notes : tuple of str
        What could not be read, and why.

    Examples
    --------
    >>> import toolkit
    >>> account = toolkit.connect().account("0xcafe")
    >>> account.kind.value, account.modules["name"].tolist()
    ('account', ['registry'])
    >>> account.balances[["symbol", "decimals"]].values.tolist()
    [['APT', 8]]
    """

    address: str
    ledger_version: int
    sequence_number: int | None
    authentication_key: str | None
    kind: AccountKind
    notes: tuple[str, ...] = ()
    _modules: Sequence[ListedModule] | NodeError = ()
    _resources: _Resources | NodeError = ()
    _holdings: Sequence[dict[str, Any]] | NodeError = ()

    @cached_property
    def modules(self) -> pd.DataFrame:
        """One row per module: its package, function and struct counts, and code size.

        Raises
        ------
        NodeError
            If the node does not list modules.
        """
        packages = {} if isinstance(self._resources, NodeError) else _packages(self._resources)
        rows: list[dict[str, Any]] = []
        for abi, size_bytes in _there(self._modules):
            rows.append({"size_bytes": size_bytes})
            if abi is not None:
                rows[-1] |= {"name": abi.name, "package": packages.get(abi.name), "structs": len(abi.structs)}
                rows[-1]["entry_functions"] = sum(one.is_entry for one in abi.exposed_functions)
                rows[-1]["view_functions"] = sum(one.is_view for one in abi.exposed_functions)
        return frames.frame_of_rows(frames.ACCOUNT_MODULES, rows)

    @cached_property
    def resources(self) -> pd.DataFrame:
        """One row per resource: type, size, and fields as JSON text. `Node.resource` returns a single typed resource.

        Raises
        ------
        NodeError
            If the node does not list resources.
        """
        found = _there(self._resources)
        texts = [frames.compact_json(data) for _, data in found]
        sizes = [len(text.encode("utf-8", "replace")) for text in texts]
        columns = {"resource_type": [kind for kind, _ in found], "data": texts, "json_bytes": sizes}
        return frames.rows_frame(frames.ACCOUNT_RESOURCES, columns)

    @cached_property
    def balances(self) -> pd.DataFrame:
        """One row per coin store or fungible asset store: ``balance`` in base units, ``amount`` in whole coins.

        Nothing is counted twice: the rows of a coin and its paired fungible asset add up to the account's holdings.
        ``amount`` is exact, scaled by the asset's decimals, and missing if the decimals are not known. Nodes cannot
        list an account's fungible asset stores. The frame therefore covers only the gas coin, assets paired with the
        account's coins, and the assets passed to `Node.account`.

        Raises
        ------
        NodeError
            If the node does not list resources.
        """
        frame = frames.frame_of_rows(frames.HOLDINGS, _there(self._holdings))
        exact = frame["decimals"].where(frame["decimals"] <= _MAX_EXACT_DECIMALS)
        about = frame.attrs
        frame.insert(4, "amount", dtypes.scaled(frame["balance"], exact, exact=True))
        frame.attrs = about
        return frame

    def __repr__(self) -> str:
        parts = [str(self.kind)]
        if self.sequence_number is not None:
            parts.append(f"sequence number {self.sequence_number}")
        counts = {"module": self._modules, "resource": self._resources, "balance": self._holdings}
        for name, part in counts.items():
            parts.append(f"{name}s not listed" if isinstance(part, NodeError) else plural(len(part), name))
        where = f"{short_addresses(self.address)} at version {self.ledger_version:,}"
        return visible(f"<Account {where}: {', '.join(parts)}>", 400)

    def _repr_html_(self) -> str:
        facts = [
            ("kind", self.kind.value),
            ("address", self.address),
            ("ledger version read", self.ledger_version),
            ("sequence number", self.sequence_number),
            ("authentication key", self.authentication_key),
            *(("not read", note) for note in self.notes),
        ]
        parts = [facts_html(f"account {self.address}", facts)]
        shown = (
            ("balances", self._holdings, ["symbol", "amount", "balance", "standard", "asset"]),
            ("modules", self._modules, ["name", "package", "entry_functions", "view_functions", "size_bytes"]),
            ("resources", self._resources, ["resource_type", "json_bytes"]),
        )
        for name, part, columns in shown:
            if not isinstance(part, NodeError) and part:
                parts.append(literal(f'<div style="margin-top:6px">{name.capitalize()}</div>'))
                parts.append(frames.show(getattr(self, name), rows=_MAX_SHOWN, columns=columns)._repr_html_())
        if self.kind is not AccountKind.NOTHING:
            parts.append(literal(f'<div style="opacity:.7">{_UNLISTED}</div>'))
        return "".join(parts)


_UNLISTED = "Nodes cannot list an account's fungible assets. Pass assets=[...] to read the balances of further assets."
# Largest number of decimals at which every u64 fits a decimal of 38 digits.
_MAX_EXACT_DECIMALS = 18


def _there(part: Sequence[Any] | NodeError) -> Sequence[Any]:
    """Return the rows of a section of an account, or raise the node's error if it does not offer that section."""
    if isinstance(part, NodeError):
        raise part.with_traceback(None)
    return part


# what is read -----------------------------------------------------------------------------------------------------


def account_pages(node: Reads, address: str, what: str, version: int) -> list[Any]:
    """Read all pages of the modules or resources of an account."""
    rows: list[Any] = []
    start, seen = None, set[str]()
    while len(seen) < _MAX_PAGES:
        try:
            page, start = node.account_page(address, what, version, start)
        except NotFound as error:
            if error.error_code not in ABSENT or rows:
                raise
            return rows
        rows += page
        if start is None:
            return rows
        if start in seen or not page:
            break
        seen.add(start)
    raise SchemaError(
        f"{what} of account {wire_address(address)} at version {version:,}: the pages do not end; "
        f"stopped after {plural(len(rows), 'row')} in {plural(len(seen) + 1, 'page')}"
    )


def account_resources(node: Reads, address: str, version: int) -> list[tuple[str, Any]]:
    """Return the canonical type and the data of each resource at an address."""
    return [(_canonical(row["type"]), row["data"]) for row in account_pages(node, address, "resources", version)]


def account_tables(node: Reads, address: str, version: int) -> list[tuple[str, DeclaredTable]]:
    """Return the tables in the resources of an address at a version, each with the type of its resource.

    Raises
    ------
    InputError
        If the address cannot be parsed.
    NodeError, NodeUnreachable, SchemaError
        If the node does not list resources or does not respond, or if a module cannot be looked up.
    """
    found: list[tuple[str, DeclaredTable]] = []
    abis = node.abis.at(version)
    for kind, data in account_resources(node, parse_address(address), version):
        if "'handle'" in repr(data):  # before the modules of its types are looked up
            with suppress(InputError):  # not a type, such as a newer node's
                found += [(kind, table) for table in tables_in(abis.layout(parse_type_tag(kind)), data)]
    return found


def declared_types(
    node: Reads, handle: str, key_type: str | None, value_type: str | None, *, owner: str | None, version: int | None
) -> tuple[str, str]:
    """Return the types of a table: as given, or as declared in a resource of its owner.

    Parameters
    ----------
    node : Node
    handle : str
    key_type, value_type : str or None
    owner : str or None
        Account or object whose resources are searched for the table, if a type is not given.
    version : int or None
        Version at which the resources are read; the head by default.

    Raises
    ------
    InputError
        If a type is neither given nor found.
    NodeError, NodeUnreachable, SchemaError
        If the resources of the owner cannot be read.
    """
    if key_type is not None and value_type is not None:
        return key_type, value_type
    wanted = parse_table_handle(handle)
    named = without_padding(wanted)
    if owner is None:
        raise InputError(
            f"the types of table {named} are not known: pass key_type= and value_type=, or owner=, the account whose "
            "resource holds the table"
        )
    version = node.ledger().version if version is None else version
    tables = account_tables(node, owner, version)
    for _, table in tables:
        if table.handle == wanted:
            return key_type or table.key_type, value_type or table.value_type
    has = [f"{without_padding(table.handle)} ({short_addresses(kind)}, {table.field})" for kind, table in tables]
    holds = f"its resources hold {listed(has, _MAX_NAMED)}" if has else "its resources contain no tables"
    raise InputError(
        f"no resource of {wire_address(parse_address(owner))} declares table {named} at version {version:,}: {holds}; "
        "give another owner, or the types of the keys and values"
    )


def _canonical(kind: str) -> str:
    """Return a type in canonical form; text that cannot be parsed is returned unchanged."""
    try:
        return str(parse_type_tag(kind))
    except InputError:
        return kind


def _part(read: Callable[[], Any]) -> Any:
    """Return the result of `read`, or the node's error if it does not offer the read."""
    try:
        return read()
    except (Forbidden, NotFound) as error:
        return error.with_traceback(None)


def read_account(node: Reads, address: str, ledger_version: int | None, assets: Iterable[str]) -> Account:
    """Read an account; see `Node.account`."""
    canonical = parse_address(address)
    wanted = [_asset_id(asset) for asset in ([assets] if isinstance(assets, str) else assets)]
    info, absent = None, None
    try:
        info, head = node.one(node.prepare_account(canonical, ledger_version))
    except NotFound as error:
        if error.error_code != NO_ACCOUNT:
            raise
        absent, head = error, error.ledger
    version = (head or node.ledger()).version if ledger_version is None else ledger_version
    resources = _part(lambda: account_resources(node, canonical, version))
    modules = _part(lambda: account_pages(node, canonical, "modules", version))
    if absent is not None and not resources and not modules:
        raise absent
    notes = [f"{one}" for one in (resources, modules) if isinstance(one, NodeError)]
    holdings: list[dict[str, Any]] | NodeError = resources if isinstance(resources, NodeError) else []
    if not isinstance(resources, NodeError):
        holdings = _read_holdings(node, canonical, version, resources, wanted=wanted, notes=notes)
    return Account(
        address=canonical,
        ledger_version=version,
        sequence_number=None if info is None else info.sequence_number,
        authentication_key=None if info is None else info.authentication_key,
        kind=_kind(resources, modules, holdings),
        notes=tuple(notes),
        _modules=modules,
        _resources=resources,
        _holdings=holdings,
    )


# Kind of an address by a resource that it has; the first match counts.
_KINDS = {
    "0x1::multisig_account::MultisigAccount": AccountKind.MULTISIG_ACCOUNT,
    "0x1::account::Account": AccountKind.ACCOUNT,
    "0x1::fungible_asset::Metadata": AccountKind.FUNGIBLE_ASSET,
    "0x1::fungible_asset::FungibleStore": AccountKind.FUNGIBLE_STORE,
    "0x1::object::ObjectCore": AccountKind.OBJECT,
}


def _kind(resources: Any, modules: Any, holdings: Any) -> AccountKind:
    """Return the kind of an address, judged by its resources, modules and balances."""
    if isinstance(resources, NodeError):
        return AccountKind.UNKNOWN
    there = {kind.partition("<")[0]: data for kind, data in resources}
    found = next((kind for name, kind in _KINDS.items() if name in there), None)
    if found is AccountKind.ACCOUNT and there["0x1::account::Account"].get("authentication_key") == _NO_KEY:
        return AccountKind.RESOURCE_ACCOUNT
    something = there or modules or any(row["balance"] for row in holdings)
    return found or (AccountKind.ACCOUNT if something else AccountKind.NOTHING)


def _packages(resources: _Resources) -> dict[str, str]:
    """Return the package name of each module, from the account's package registry."""
    registry: Any = next((data for kind, data in resources if kind == "0x1::code::PackageRegistry"), None)
    try:
        packages = registry["packages"]
        return {str(module["name"]): str(package["name"]) for package in packages for module in package["modules"]}
    except (KeyError, TypeError):  # none, or from another framework
        return {}


# assets and balances ---------------------------------------------------------------------------------------------


def _asset_id(asset: str) -> str:
    """Return a coin type or the address of a fungible asset in canonical form.

    Raises
    ------
    InputError
        If `asset` is neither.
    """
    if not isinstance(asset, str):
        raise InputError(f"asset must be a coin type or an address, got {type(asset).__name__}")
    if "::" not in asset:
        return parse_address(asset)
    tag = parse_type_tag(asset)
    if not isinstance(tag, StructTag):
        raise InputError(f"asset must be a coin type or an address, got {visible(repr(asset), 60)}")
    return str(tag)


def read_asset(node: Reads, asset: str, version: int) -> Asset:
    """Read the description of an asset; see `Node.asset`."""
    wanted = _asset_id(asset)
    return _asset_of(wanted, _asset_json(node, wanted, version))


def _asset_json(node: Reads, asset: str, version: int) -> Any:
    """Return the JSON of the resource that describes an asset, or None if it does not exist."""
    if "::" in asset:
        return node.resource_json(asset.partition("::")[0], f"0x1::coin::CoinInfo<{asset}>", version)
    return node.resource_json(asset, "0x1::fungible_asset::Metadata", version)


class _About(msgspec.Struct):
    """The description of an asset in its resource; each field may be missing."""

    name: str | None = None
    symbol: str | None = None
    decimals: Annotated[int, msgspec.Meta(ge=0, le=255)] | None = None  # a u8 on chain


def _asset_of(asset: str, data: Any) -> Asset:
    """Return the asset that the JSON of a resource describes."""
    about = _About()
    with suppress(msgspec.ValidationError):
        about = msgspec.convert(data or {}, _About)
    return Asset(asset, "coin" if "::" in asset else "fungible asset", about.name, about.symbol, about.decimals)


def _read_holdings(
    node: Reads, owner: str, version: int, resources: _Resources, *, wanted: Sequence[str], notes: list[str]
) -> list[dict[str, Any]]:
    """Read the balances of an account: one row per store, and one per `wanted` asset that has no store."""
    missing = set[str]()

    def row(asset: str, balance: int = 0, store: str | None = None, owner: str = owner) -> dict[str, Any]:
        data = _asset_json(node, asset, version)
        about = _asset_of(asset, data)
        if data is None and asset not in missing:
            missing.add(asset)
            kind = "CoinInfo" if about.standard == "coin" else "Metadata"
            notes.append(f"the ledger has no {kind} of {asset} at version {version:,}")
        return asdict(about) | {"balance": balance, "store": store, "owner": owner}

    here = _stores(owner, resources)
    held_coins = {coin: value for (_, coin), value in here.coins.items()}
    rows = [row(coin, value, owner) for coin, value in held_coins.items()]
    other_coins = dict.fromkeys(asset for asset in wanted if "::" in asset and asset not in held_coins)
    rows += map(row, other_coins)
    for store, (asset, balance) in here.assets.items():  # the address is a store itself
        rows.append(row(asset, balance, store, here.owners.get(store, store)))
    assets = dict.fromkeys([APT_METADATA, *(asset for asset in wanted if "::" not in asset)])
    for coin in [*held_coins, *other_coins]:
        if coin not in missing:
            assets |= dict.fromkeys(_paired(node, coin, version, notes))
    for asset in assets:
        store = frames.primary_store(owner, asset)
        held = _stores(store, account_resources(node, store, version)).assets.get(store)
        if held is not None and held[0] == asset:
            rows.append(row(asset, held[1], store))
        elif asset in wanted:
            rows.append(row(asset))
    return rows


def _paired(node: Reads, coin: str, version: int, notes: list[str]) -> list[str]:
    """Return a list with the fungible asset paired with a coin, or an empty list if there is none."""
    if coin == APT:
        return [APT_METADATA]
    try:
        call = ViewFunction("0x1::coin::paired_metadata", type_arguments=[coin])
        found = node.one(node.prepare_view(call, version)).value
    except InputError:  # ledgers before fungible assets do not have the function
        return []
    except (NodeError, SchemaError) as error:
        found = error
    match found:  # decoded by its ABI or as JSON
        case None | {"vec": []}:
            return []
        case str(address) | {"vec": [str(address) | {"inner": str(address)}]}:
            return [parse_address(address)]
    notes.append(f"it is not known whether a fungible asset is paired with {coin}: {visible(found, 600)}")
    return []


def _stores(address: str, resources: _Resources) -> Any:
    """Return the coin and fungible stores among the resources of an address."""
    kinds, data = [kind for kind, _ in resources], [frames.compact_json(one) for _, one in resources]
    return frames.Stores({"address": [address] * len(kinds), "resource_type": kinds, "data": data})


# the units of amounts -------------------------------------------------------------------------------------------------


# Position of the argument that is the metadata of the fungible asset; None if the type argument is the coin.
_ASSET_PLACES: dict[str, int | None] = {
    "0x1::coin::balance": None,
    "0x1::coin::supply": None,
    "0x1::fungible_asset::supply": 0,
    "0x1::fungible_asset::maximum": 0,
    "0x1::primary_fungible_store::balance": 1,
}
# Names of APT as an asset: the coin, and its fungible asset.
APT_NAMES = frozenset({APT, parse_address(APT_METADATA)})
MAX_SYMBOL = 20  # characters; anybody may choose a symbol


def note_amounts(
    frame: pd.DataFrame, calls: Mapping[str, ViewFunction], find: Callable[[str], Asset] | None = None
) -> None:
    """Record the units of amounts that views return, such as ``octas`` or ``10^-6 USDC``, in a frame.

    Parameters
    ----------
    frame : DataFrame
        A frame of view results. The units are added to its ``attrs["toolkit"]``.
    calls : mapping of name to ViewFunction
    find : callable, optional
        Looks up assets other than APT. By default, their amounts have no unit.
    """
    units = {name: _unit_of(call, find) for name, call in calls.items()}
    shared = set(units.values())
    for column, facts in frame.attrs["toolkit"].items():
        base, _, name = column.partition("[")
        unit = units.get(name.removesuffix("]")) if name else next(iter(shared)) if len(shared) == 1 else None
        if base == "value" and unit is not None:
            facts["unit"] = unit


def _unit_of(call: ViewFunction, find: Callable[[str], Asset] | None) -> str | None:
    """Return the unit of a call's result; None if the result is not an amount or its asset is not known."""
    asset = returned_asset(call)
    if asset in APT_NAMES:
        return "octas"
    with suppress(ToolkitError):  # an asset that cannot be read leaves its amounts without a unit
        about = None if find is None or asset is None else find(asset)
        if about is not None and about.decimals is not None:
            return f"10^-{about.decimals} {visible(about.symbol or 'coins', MAX_SYMBOL)}"
    return None


def returned_asset(call: ViewFunction) -> str | None:
    """Return the asset whose amount a view returns; None if it returns something else."""
    place = _ASSET_PLACES.get(call.function, -1)
    given = call.type_arguments if place is None else call.arguments[place : place + 1] if place >= 0 else ()
    with suppress(ToolkitError, TypeError):
        for asset in given[:1]:
            inner = asset.get("inner", "") if isinstance(asset, dict) else asset
            return asset if place is None else parse_address(inner)
    return None
