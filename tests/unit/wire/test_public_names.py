"""The package's public names: listed once, importable, and where they say."""

from __future__ import annotations

import pytest

from toolkit import wire


def test_every_public_name_can_be_imported() -> None:
    """The lazy table, the list of names and what static checkers see agree."""
    assert sorted(wire.__all__) == sorted(wire._HOMES)
    assert dir(wire) == sorted(wire.__all__)
    for name, home in wire._HOMES.items():
        value = getattr(wire, name)
        module = __import__(f"toolkit.wire.{home}", fromlist=[name])
        assert getattr(module, name) is value
        assert name in module.__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    """As of any module."""
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = wire.nonsense
