"""Values of every type, through the client in both encodings: recorded calls of a real node, and every nesting of types."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import toolkit
from tests.conformance.plain_bcs import bound
from tests.conformance.plain_values import plain_value
from tests.conformance.recorded_node import JSON, Recordings, _content
from tests.conformance.types_node import LEAVES, LONG, MODULE, STRUCTS, Sample, TypesNode, exact, samples
from toolkit._present.text import visible
from toolkit.errors import InputError, NodeError

SAMPLES = samples(depth=2)
SHALLOW = samples(depth=1)
NAMES = {kind: f"echo_{place}" for place, kind in enumerate(SAMPLES)}


def generic(name: str, types: list[str], given: list[Any]) -> list[Any]:
    """Return what the recorded functions with type parameters return; the node fails them in JSON."""
    match name:
        case "same" | "same_opt":
            return given
        case "same_vec":
            return [str((len(given[0]) - 2) // 2 if types == ["u8"] else len(given[0])), given[0]]
        case "pair":
            return given[::-1]
        case "make_gen":
            return [{"v": given[0], "l": [given[0]], "o": {"vec": [given[0]]}}]
    raise AssertionError(name)


@pytest.fixture(scope="module")
def recorded(shared_data) -> tuple[TypesNode, list[dict[str, Any]]]:
    """Return a node that answers the recorded calls, and the calls."""
    folder = shared_data / "further-ledgers"
    if not (folder / "types_calls.json").is_file():
        pytest.skip("the recorded calls of every type are not beside this checkout (../shared/data/further-ledgers)")
    calls = json.loads((folder / "types_calls.json").read_text("utf-8"))
    node = TypesNode([], None)
    for exchange in Recordings(folder).files["types"]:
        if exchange.group == "abi":
            node.add_module(exchange.json["abi"])
    for one in calls:
        sent = {name: one[name] for name in ("function", "type_arguments", "arguments")}
        by_value = [text for text in node.parameters(one["function"]) if "T0" in text and "Object<T0>" not in text]
        if one["status"] != 200 and by_value:
            answer = generic(one["function"].split("::")[2], one["type_arguments"], one["arguments"])
            if one["arguments"] != [{}]:  # a struct without its fields
                node.add_call(sent, answer, only_bcs=True)
        else:
            node.add_call(sent, one["answer"] if one["status"] == 200 else one["error"], status=one["status"])
    return node, calls


ONE_TYPE = [{"constraints": []}]
GENERIC = {
    "same": "T0",
    "listed": "vector<T0>",
    "maybe": "0x1::option::Option<T0>",
    "boxed": f"{MODULE}::Shape<T0>",
}
"""Functions that return the argument, whose type has the type parameter in it."""


def as_argument(kind: str, sample: Sample) -> Any:
    """Return what a node accepts as an argument: an Object is its address there."""
    return sample.accepted["inner"] if kind.startswith("0x1::object::Object<") else sample.accepted


def view(name: str, argument: Any, *types: str) -> dict[str, Any]:
    return {"function": f"{MODULE}::{name}", "type_arguments": list(types), "arguments": [argument]}


def item(kind: str, key: Any) -> dict[str, Any]:
    return {"key_type": kind, "value_type": kind, "key": key}


def generic_calls() -> Iterator[tuple[str, str, str, Sample]]:
    """Yield each generic function with each type that there are samples for: its name, the type and a sample."""
    for kind in SHALLOW:
        for name, parameter in GENERIC.items():
            for sample in SAMPLES.get(bound(parameter, [kind]), []):
                yield name, kind, bound(parameter, [kind]), sample


@pytest.fixture(scope="module")
def echoing() -> Iterator[TypesNode]:
    """Return a node with functions that return what they get: one per type, and generic ones called with each type."""
    node = TypesNode([], None)
    views = [{"name": NAMES[kind], "params": [kind], "return": [kind]} for kind in SAMPLES]
    views += [
        {"name": name, "params": [kind], "return": [kind], "generic_type_params": ONE_TYPE}
        for name, kind in GENERIC.items()
    ]
    views += [
        {"name": "of", "params": ["0x1::object::Object<T0>"], "return": ["address"], "generic_type_params": ONE_TYPE},
        {"name": "named", "params": [], "return": ["0x1::string::String"], "generic_type_params": ONE_TYPE},
        {"name": "none", "params": [], "return": ["0x1::option::Option<T0>"], "generic_type_params": ONE_TYPE},
    ]
    entries = [
        one | {"name": f"send_{one['name']}", "params": ["&signer", *one["params"]], "return": [], "is_entry": True}
        for one in views
    ]
    about = {"visibility": "public", "is_entry": False, "is_view": True, "generic_type_params": []}
    functions = [about | one for one in (*views, *entries)]
    where, name = MODULE.split("::")
    node.add_module({"address": where, "name": name, "friends": [], "exposed_functions": functions, "structs": STRUCTS})
    for kind, given in SAMPLES.items():
        for sample in given:
            sent = as_argument(kind, sample)
            node.add_call(view(NAMES[kind], sent), [sample.printed])
            node.items[exact(item(kind, sent))] = sample.printed
    for called, kind, argument, sample in generic_calls():
        node.add_call(view(called, as_argument(argument, sample), kind), [sample.printed], only_bcs=True)
    for kind in ("u64", "vector<i64>"):
        node.add_call(view("none", 0, kind) | {"arguments": []}, [{"vec": []}], only_bcs=True)
        node.add_call(view("named", 0, kind) | {"arguments": []}, [kind], only_bcs="i64" in kind)
    node.add_call(view("of", LONG, f"{MODULE}::Shape<u8>"), [LONG])
    with node.serving():
        yield node


@pytest.fixture(params=["json", "bcs"])
def client(request, echoing) -> Iterator[toolkit.Node]:
    with toolkit.connect(echoing.url, cache=None, encoding=request.param) as node:
        yield node


def forms(sample: Sample, argument: Any) -> list[Any]:
    """Return the forms of a value that a caller may pass, each once."""
    return list({repr(form): form for form in (argument, sample.printed, sample.python)}.values())


def test_every_type_in_every_other_is_sent_and_read(client):
    """A value of each type, however it is written, reaches the node as it accepts it and comes back in Python."""
    wrong = []
    for kind, given in SAMPLES.items():
        for sample in given:
            for form in forms(sample, as_argument(kind, sample)):
                got = client.view(f"{MODULE}::{NAMES[kind]}", [form]).value
                if got != sample.python:
                    wrong.append((kind, form, got))
    assert not wrong
    assert len(SAMPLES) > 100


def test_type_parameters_go_over_bcs(client, echoing):
    """In JSON, a node takes a type parameter for an address, so these calls are always sent in BCS."""
    for name, kind, _, sample in generic_calls():
        assert client.view(f"{MODULE}::{name}", [sample.python], type_arguments=[kind]).value == sample.python, kind
    for kind in ("u64", "vector<i64>"):
        assert client.view(f"{MODULE}::none", type_arguments=[kind]).value is None
        assert client.view(f"{MODULE}::named", type_arguments=[kind]).value == kind
    assert client.view(f"{MODULE}::of", [LONG], type_arguments=[f"{MODULE}::Shape<u8>"]).value == LONG


def test_every_type_is_a_table_key_and_value(client):
    """Keys are sent as arguments are, and values are read as results are."""
    for kind, given in SAMPLES.items():
        for sample in given:
            assert client.table_item("0x5", sample.python, key_type=kind, value_type=kind).value == sample.python, kind


def test_simulations_send_what_views_send(client, echoing):
    """The arguments of a transaction are those of a view; one with a type parameter is sent in BCS, and answered in JSON."""
    called = [(NAMES[kind], [], kind, sample) for kind in SHALLOW for sample in SAMPLES[kind]]
    called += [(name, [kind], argument, sample) for name, kind, argument, sample in generic_calls() if kind in LEAVES]
    numbers = {
        "sequence_number": "0",
        "max_gas_amount": "2000",
        "gas_unit_price": "100",
        "expiration_timestamp_secs": "9",
    }
    for name, types, kind, sample in called:
        payload = view(f"send_{name}", as_argument(kind, sample), *types) | {"type": "entry_function_payload"}
        document = {"sender": LONG, "payload": payload, "signature": {"type": "no_account_signature"}} | numbers
        call = toolkit.EntryFunction(payload["function"], [sample.python], type_arguments=types)
        given = {key: int(text) for key, text in numbers.items()}
        with pytest.raises(NodeError):  # the node of this test runs nothing
            client.simulate(call, sender=LONG, **given)
        sent = next(one for one in reversed(echoing.received) if one.method == "POST")
        if _content(sent.headers) == JSON:
            assert not types
            assert sent.json["payload"]["arguments"] == payload["arguments"], kind
        else:
            assert sent.body == echoing.signed(document), (name, kind)
            assert sent.headers["accept"] == JSON


def test_recorded_calls_in_both_encodings(recorded):
    """Every recorded call has its recorded values, or its recorded error; what a node fails in JSON works in BCS."""
    node, calls = recorded
    seen = Counter()
    with node.serving():
        for encoding in ("json", "bcs"):
            with toolkit.connect(node.url, cache=None, encoding=encoding) as client:
                for one in calls:
                    if one["arguments"] == [{}]:
                        with pytest.raises(InputError, match="with the field dummy_field"):
                            client.view(one["function"], one["arguments"], type_arguments=one["type_arguments"])
                        continue
                    known = node.known(one)
                    call = toolkit.ViewFunction(one["function"], one["arguments"], type_arguments=one["type_arguments"])
                    try:
                        got: Any = client.view(call).values
                    except NodeError as error:
                        got = error
                    seen[encoding, known.status] += 1
                    if known.status != 200:
                        assert isinstance(got, NodeError), one
                        assert got.vm_error_code == known.answer["vm_error_code"], one
                        assert visible(known.answer["message"], 2_000) in str(got), one
                        continue
                    kinds = [
                        bound(kind, one["type_arguments"]) for kind in node.function_abi(one["function"])["return"]
                    ]
                    assert got == tuple(
                        plain_value(*pair, node.struct) for pair in zip(kinds, known.answer, strict=True)
                    ), one
    assert sum(seen.values()) >= 2 * (len(calls) - 1)
    print(dict(seen))  # counts in the output
