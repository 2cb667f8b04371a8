"""Coins and fungible assets, and the units of amounts that views return."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit._present.text import visible
from toolkit.errors import ToolkitError
from toolkit.move import parse_address
from toolkit.wire._gas import APT, APT_METADATA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from toolkit.wire import ViewFunction


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
