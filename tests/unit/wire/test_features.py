"""Feature flags: bits of the resource, and names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import SchemaError
from toolkit.wire._gas import enabled_features, feature_name


@given(st.frozensets(st.integers(0, 200)))
def test_flag_n_is_bit_n_of_the_bytes(flags):
    """The lowest bit of the first byte is flag 0; hex and bytes say the same."""
    held = sum(1 << flag for flag in flags).to_bytes(26, "little")
    assert enabled_features({"features": held}) == flags
    assert enabled_features({"features": "0x" + held.hex()}) == flags


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (1, "CODE_DEPENDENCY_CHECK"),
        (26, "MODULE_EVENT"),
        (65, "OPERATIONS_DEFAULT_TO_FA_APT_STORE"),
        (89, "ENABLE_FUNCTION_VALUES"),
        (107, "SLH_DSA_SHA2_128S_SIGNATURE"),
        (0, None),
        (108, None),
        (-1, None),
    ],
)
def test_names_stand_at_their_numbers(number, name):
    """Published names; a flag that is not known has none."""
    assert feature_name(number) == name


@pytest.mark.parametrize("data", [{}, {"features": None}, {"features": "no hex"}, {"features": [1, 2]}])
def test_another_shape_is_a_schema_error(data):
    """A resource without such bits."""
    with pytest.raises(SchemaError, match="features: expected bytes"):
        enabled_features(data)
