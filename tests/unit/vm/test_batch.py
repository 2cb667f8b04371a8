"""The composer over modules that are made up: what a node says of them may contradict itself."""

from __future__ import annotations

import pytest

from toolkit import Batch, EntryFunction
from toolkit.errors import InputError
from toolkit.move import decode_module_abi
from toolkit.vm import _types as t
from toolkit.vm._batch import MAX_LOCALS, compose, module_of_abi
from toolkit.vm._module import read_script

ID = t.ModuleId(bytes(31) + b"\5", "m")


def module(*functions, structs=()):
    """Return a source of one module, from its ABI."""
    exposed = [
        {"name": name, "visibility": "public", "generic_type_params": [], "params": params, "return": results}
        for name, params, results in functions
    ]
    abi = {"address": "0x5", "name": "m", "friends": [], "exposed_functions": exposed, "structs": list(structs)}
    made = module_of_abi(ID, decode_module_abi(abi))
    return {ID: made}.get


def composed(calls, modules, **options):
    batch = Batch([EntryFunction(f"0x5::m::{name}", arguments) for name, *arguments in calls], **options)
    return compose(batch, signers=1, modules=modules, encode=lambda _, value, __: value)


def test_the_version_is_the_lowest_that_has_the_types():
    """All nodes read version 6; signed integers need version 9, function types version 8."""
    kinds = {"u256": 6, "i64": 9, "vector<i8>": 9, "|u64|bool": 8}
    for kind, version in kinds.items():
        script = composed([("f", b"")], module(("f", [kind], [])))
        assert read_script(script.code).version == version


def test_as_many_values_as_a_script_has_locals():
    """The sender, and a literal for each call."""
    one = module(("f", ["u64"], []))
    assert len(composed([("f", b"")] * (MAX_LOCALS - 1), one).arguments) == 254
    with pytest.raises(InputError, match="255"):
        composed([("f", b"")] * MAX_LOCALS, one)


@pytest.mark.parametrize(
    ("found", "part"),
    [
        (module(("f", ["T3"], [])), "type argument 3"),
        (module(("f", ["0x5::m::S<u8>"], []), structs=[{"name": "S", "abilities": ["flies"]}]), "expected 0 type"),
        (module(("f", ["0x5::m::Missing"], [])), "no struct Missing"),
        (module(("f", ["0x6::m::S"], [])), "0x6::m does not exist"),
    ],
)
def test_a_module_that_contradicts_itself_is_an_input_error(found, part):
    with pytest.raises(InputError) as caught:
        composed([("f", b"")], found)
    assert part in str(caught.value)


def test_a_mutable_result_is_moved_on():
    """The default copies a reference, which then still borrows its owner; a move ends that."""
    option = module(
        ("make", [], ["0x5::m::S"]),
        ("inside", ["&mut 0x5::m::S"], ["&mut u64"]),
        ("write", ["&mut u64", "u64"], []),
        ("end", ["0x5::m::S"], []),
        structs=[{"name": "S", "abilities": []}],
    )
    start = [("make",), ("inside", Batch.result(0).borrow_mut())]
    moved = [*start, ("write", Batch.result(1).move(), b""), ("end", Batch.result(0))]
    assert composed(moved, option).code
    with pytest.raises(InputError, match=r"call 3, 0x5::m::end.*MOVELOC_EXISTS_BORROW_ERROR"):
        composed([*start, ("write", Batch.result(1), b""), ("end", Batch.result(0))], option)


def test_two_mutable_references_to_one_value_are_refused():
    two = module(
        ("make", [], ["0x5::m::S"]), ("both", ["&mut 0x5::m::S", "&mut 0x5::m::S"], []), structs=[{"name": "S"}]
    )
    borrowed = Batch.result(0).borrow_mut()
    with pytest.raises(InputError, match="CALL_BORROWED_MUTABLE_REFERENCE_ERROR"):
        composed([("make",), ("both", borrowed, borrowed)], two, abort=1)
