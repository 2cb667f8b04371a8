"""Keys of a table as transactions tell them: bytes or typed, in the order of first sight, the last change deciding."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from tests.unit.client.fakes import module, struct, user_transaction
from toolkit.client._transaction_data import TransactionFrames
from toolkit.errors import InputError, SchemaError
from toolkit.frames._transactions import table_keys, transaction_frames
from toolkit.move import AbiMap, decode_module_abi
from toolkit.wire._transactions import decode_transactions

HANDLE = "0x" + "0" * 61 + "abc"
OTHER = "0x" + "f" * 64


def write(key: bytes, *, handle: str = HANDLE, delete: bool = False) -> dict:
    """Return a change of a table item as the wire has it."""
    change = {"type": "delete_table_item" if delete else "write_table_item", "state_key_hash": "0x01", "data": None}
    return change | {"handle": handle, "key": "0x" + key.hex()} | ({} if delete else {"value": "0x01"})


def frames_of(*changes_by_version: tuple[int, list[dict]]) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the frames of committed transactions that make these changes."""
    documents = [
        user_transaction(
            version,
            changes=changes,
            type="user_transaction",
            state_change_hash="0x01",
            event_root_hash="0x01",
            accumulator_root_hash="0x01",
            state_checkpoint_hash=None,
        )
        for version, changes in changes_by_version
    ]
    return transaction_frames(decode_transactions(json.dumps(documents).encode()))


def test_keys_without_a_type_are_their_bytes():
    """One row per key, in the order of first sight; other tables and resources do not count."""
    _, changes, _ = frames_of((5, [write(b"\x02bb"), write(b"\x01x", handle=OTHER)]), (6, [write(b"\x02aa")]))
    found = table_keys(changes, HANDLE)
    assert found["key"].tolist() == [b"\x02bb", b"\x02aa"]
    assert str(found["key"].dtype) == "binary[pyarrow]"
    assert found.columns.tolist() == ["key", "first_version", "last_version", "changes", "deleted"]


def test_keys_with_a_type_are_values():
    """Text, wide integers and addresses come in their Python forms, exactly."""
    _, changes, _ = frames_of((5, [write(b"\x05alice"), write(b"\x03bob")]))
    assert table_keys(changes, HANDLE, key_type="0x1::string::String")["key"].tolist() == ["alice", "bob"]
    most = (2**128 - 1).to_bytes(16, "little")
    _, wide, _ = frames_of((5, [write(most)]))
    typed = table_keys(wide, HANDLE, key_type="u128")["key"]
    assert (str(typed.dtype), typed.tolist()) == ("u128", [2**128 - 1])
    _, owner, _ = frames_of((5, [write(bytes(31) + b"\x0a")]))
    assert table_keys(owner, HANDLE, key_type="address")["key"].tolist() == ["0xa"]


def test_struct_keys_are_looked_up():
    """A struct key needs its module's ABI; without one the text says so."""
    abi = decode_module_abi(module("m", structs=[struct("Pair", {"a": "u8", "b": "bool"})]))
    _, changes, _ = frames_of((5, [write(b"\x07\x01")]))
    found = table_keys(changes, HANDLE, key_type="0x1::m::Pair", abis=AbiMap({("0x1", "m"): abi}))
    assert found["key"].tolist() == [{"a": 7, "b": True}]
    for kind in ("0x1::m::Pair", "vector<0x1::m::Pair>"):
        with pytest.raises(InputError, match=f"{kind}.*abis="):
            table_keys(changes, HANDLE, key_type=kind)


def test_versions_and_counts_are_those_of_the_changes():
    """First and last version, how often, and whether the last change deleted it."""
    _, changes, _ = frames_of(
        (5, [write(b"\x01a"), write(b"\x01b")]),
        (7, [write(b"\x01a", delete=True)]),
        (9, [write(b"\x01b", delete=True), write(b"\x01c", delete=True)]),
        (11, [write(b"\x01b")]),
    )
    found = table_keys(changes, HANDLE, key_type="0x1::string::String").set_index("key")
    assert found.loc["a"].tolist() == [5, 7, 2, True]
    assert found.loc["b"].tolist() == [5, 11, 3, False]
    assert found.loc["c"].tolist() == [9, 9, 1, True]
    assert str(found["first_version"].dtype) == "int64[pyarrow]"


def test_handles_are_taken_in_any_spelling():
    """Short, long and upper-case digits are one table."""
    _, changes, _ = frames_of((5, [write(b"\x01a", handle="0xabc")]))
    for handle in ("0xabc", "0x0ABC", HANDLE):
        assert len(table_keys(changes, handle)) == 1


def test_a_table_nobody_wrote_has_no_rows():
    """The columns and their types are there all the same."""
    _, changes, _ = frames_of((5, [write(b"\x01a")]))
    empty = table_keys(changes, OTHER, key_type="u64")
    assert len(empty) == 0
    assert empty.dtypes.astype(str).tolist()[:2] == ["uint64[pyarrow]", "int64[pyarrow]"]


def test_what_has_changes_will_do():
    """A result with a `changes` frame and the frame itself give the same."""
    frames = frames_of((5, [write(b"\x01a")]))
    result = TransactionFrames(*frames)
    pd.testing.assert_frame_equal(table_keys(result, HANDLE), table_keys(frames[1], HANDLE))


FRAMES = frames_of((5, [write(b"\x01a")]))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (FRAMES[0], "state changes"),
        (FRAMES[2], "state changes"),
        *((source, f"got {type(source).__name__}") for source in (None, 7, [], pd.DataFrame())),
    ],
    ids=["transactions", "events", "None", "a number", "a list", "an empty frame"],
)
def test_what_has_no_changes_is_refused(source, words):
    """Transactions and events have no keys: the text says what is taken."""
    with pytest.raises(InputError, match=words):
        table_keys(source, HANDLE)


def test_a_key_that_does_not_decode_is_a_misfit():
    """A wrong key type is reported, and never gives a wrong value."""
    with pytest.raises(SchemaError):
        table_keys(FRAMES[1], HANDLE, key_type="u64")


def test_the_frame_given_stays_as_it_was():
    """Nothing is written into the caller's frame."""
    _, changes, _ = frames_of((5, [write(b"\x01a")]))
    before = changes.copy(deep=True)
    table_keys(changes, HANDLE)
    pd.testing.assert_frame_equal(changes, before)


def test_changes_in_another_order_give_the_same():
    """A frame sorted newest first tells the same keys."""
    handle = "0x" + "0" * 61 + "abc"
    changes = pd.DataFrame(
        {
            "ledger_version": pd.array([5, 9], dtype="int64[pyarrow]"),
            "type": ["write_table_item", "delete_table_item"],
            "handle": [handle] * 2,
            "key": pd.Series([b"\x01a"] * 2, dtype=object),
        }
    )
    found = [table_keys(frame, handle).iloc[0].tolist() for frame in (changes, changes[::-1])]
    assert found[0] == found[1] == [b"\x01a", 5, 9, 2, True]
