"""Units of the amounts that views of the framework return, by the asset that the call names."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from toolkit._present.text import visible
from toolkit.client._accounts import read_asset
from toolkit.errors import ToolkitError
from toolkit.move import parse_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from toolkit.client._reads import Reads
    from toolkit.wire import ViewFunction

# Position of the argument that is the metadata of the fungible asset; None if the type argument is the coin.
_ASSET_PLACES: dict[str, int | None] = {
    "0x1::coin::balance": None,
    "0x1::coin::supply": None,
    "0x1::fungible_asset::supply": 0,
    "0x1::fungible_asset::maximum": 0,
    "0x1::primary_fungible_store::balance": 1,
}
# APT, whose unit has a name and needs no request.
_APT = frozenset({"0x1::aptos_coin::AptosCoin", parse_address("0xa")})
_MAX_SYMBOL = 20  # characters; anybody may choose a symbol


def note_amounts(frame: pd.DataFrame, calls: Mapping[str, ViewFunction], node: Reads | None, version: int) -> None:
    """Record the unit of the values of views that return amounts, such as ``octas`` or ``10^-6 USDC``, in the frame.

    Parameters
    ----------
    frame : DataFrame
        A frame of views; its ``attrs["toolkit"]`` gets the units.
    calls : mapping of name to ViewFunction
    node : Reads or None
        Where assets other than APT are looked up; without it their amounts have no unit.
    version : int
        The ledger version at which an asset is looked up.
    """
    units = {name: _unit_of(call, node, version) for name, call in calls.items()}
    shared = set(units.values())
    for column, facts in frame.attrs["toolkit"].items():
        base, _, name = column.partition("[")
        unit = units.get(name.removesuffix("]")) if name else next(iter(shared)) if len(shared) == 1 else None
        if base == "value" and unit is not None:
            facts["unit"] = unit


def _unit_of(call: ViewFunction, node: Reads | None, version: int) -> str | None:
    """Return the unit of what a call returns, None if it is not an amount or its asset is not known."""
    place = _ASSET_PLACES.get(call.function, -1)
    given = call.type_arguments if place is None else call.arguments[place : place + 1] if place >= 0 else ()
    with suppress(ToolkitError, TypeError):  # an asset that cannot be read leaves its amounts without a unit
        for asset in given[:1]:
            text = (
                asset if place is None else parse_address(asset.get("inner", "") if isinstance(asset, dict) else asset)
            )
            if text in _APT:
                return "octas"
            about = None if node is None else read_asset(node, text, version)
            if about is not None and about.decimals is not None:
                return f"10^-{about.decimals} {visible(about.symbol or 'coins', _MAX_SYMBOL)}"
    return None
