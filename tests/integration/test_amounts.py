"""Views that return amounts have the unit of their asset in the frame."""

import toolkit

SUPPLY = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])


def units(node, calls):
    """Return the units of the columns of values."""
    facts = toolkit.fetch_views(node, calls, 4_000, progress=False).attrs["toolkit"]
    return {name: fact.get("unit") for name, fact in facts.items() if name.startswith("value")}


def test_units_are_those_of_the_asset_that_the_call_names():
    """Octas for APT, a power of ten and the symbol for another asset, and nothing for what is not an amount."""
    node = toolkit.connect()
    gold = node.view("0x901d::gold::metadata").value
    holding = toolkit.ViewFunction(
        "0x1::primary_fungible_store::balance",
        type_arguments=["0x1::fungible_asset::Metadata"],
        arguments=["0xa11ce", gold],
    )
    assert units(node, holding) == {"value": "10^-3 GOLD"}
    assert units(node, {"apt": SUPPLY, "gold": holding}) == {"value[apt]": "octas", "value[gold]": "10^-3 GOLD"}
    assert units(node, {"gold": holding, "names": "0xcafe::registry::size"}) == {"value": None}  # one column of both
    assert node.view(SUPPLY).to_frame().attrs["toolkit"]["value"]["unit"] == "octas"


def test_an_asset_that_is_not_there_leaves_its_amounts_without_a_unit():
    """The look-up is refused, and the values are as they are."""
    missing = SUPPLY.replace(type_arguments=["0xcafe::registry::Registry"])
    assert units(toolkit.connect(), missing) == {"value": None}
