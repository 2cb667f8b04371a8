"""Addresses in frames: their form, and the rows that name one."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

from toolkit import address, involving
from toolkit.errors import InputError

REGISTRY = address("0xcafe::registry")
FRAME = pd.DataFrame(
    {
        "sender": pd.array([address("0xa11ce"), "0x1", None, address("0xa11ce0")], dtype="string"),
        "function": pd.array([f"{REGISTRY}::register", "0x1::coin::transfer", None, None], dtype="string"),
        "payload": pd.array(
            ['{"arguments":["0xb0b"]}', "[]", f'{{"type":"Box<{REGISTRY}::T>"}}', None], dtype="string"
        ),
        "gas": range(4),
    }
)


def test_addresses_in_the_form_of_frames():
    """Short, padded and bare forms are one address; a column of them too."""
    assert address("0xa11ce") == address("A11CE") == "0x" + "a11ce".rjust(64, "0")
    assert address("0x00001") == "0x1"
    owners = pd.Series(["0x1", None, "0xa11ce"], index=[5, 6, 7], name="owner")
    assert address(owners).dropna().to_dict() == {5: "0x1", 7: address("0xa11ce")}
    tag = "0xcafe::m::Box<0xa11ce::n::T>"
    assert address(tag) == f"{address('0xcafe')}::m::Box<{address('0xa11ce')}::n::T>"
    functions = pd.Series(["0x1::coin::transfer", "0xcafe::m::f"])
    assert address(functions).tolist() == ["0x1::coin::transfer", f"{address('0xcafe')}::m::f"]
    assert address("0xcafe::m") == f"{address('0xcafe')}::m"
    with pytest.raises(InputError, match="not an address: '0xzz'"):
        address("0xzz")
    with pytest.raises(InputError, match="not an address"):
        address(pd.Series(["0x1", "alice"]))


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        (["0xa11ce", "A11CE", "0x00a11ce", address("0xa11ce")], [0]),
        (["0xb0b", address("0xb0b")], [0]),
        (["0x1", "0x0001"], [1]),
        (["0xcafe", address("0xcafe"), "0xcafe::registry", REGISTRY], [0, 2]),
        (["0xcafe::registry::register"], [0]),
        (["0xcafe::registry::T"], [2]),
    ],
)
def test_every_form_of_a_name_finds_the_same_rows(names, rows):
    """In text columns and JSON text; an address that only begins alike is another one."""
    for name in names:
        found = involving(FRAME, name)
        assert found["gas"].tolist() == rows
        assert list(found.columns) == list(FRAME.columns)


def test_a_name_without_rows_is_said():
    """With the columns that were searched; what is not a name is refused."""
    with pytest.warns(UserWarning, match="no row mentions 0xdead; .*: sender, function, pay") as caught:
        assert involving(FRAME, "0xdead").empty
    assert caught[0].filename == __file__
    with pytest.raises(InputError, match="not an address"):
        involving(FRAME, "alice")
    with pytest.raises(InputError, match=r"^frame .*DataFrame.*list"):
        involving([], "0x1")


def test_lists_of_addresses_are_searched():
    """Secondary signers are a list: every member is found, in any spelling, and nulls are not."""
    signers = [[f"0x{0xB0B:064x}", "0x1"], None, [], [f"0x{0xCAFE:064x}"]]
    frame = pd.DataFrame({"signers": pd.Series(signers, dtype=pd.ArrowDtype(pa.list_(pa.string())))})
    assert involving(frame, "0xb0b").index.tolist() == involving(frame, "0x1").index.tolist() == [0]
    assert involving(frame, "0x0cafe").index.tolist() == [3]
