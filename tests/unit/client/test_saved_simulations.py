"""Simulations in files: equal after loading, without a node; a file of somebody else is checked to the last leaf."""

from __future__ import annotations

import copy
import json
import os

import pandas as pd
import pytest

import toolkit
from tests.unit.client.fakes import URL, FakeNode, answer, function, module, struct, user_transaction
from toolkit import EntryFunction, Node, Script, Simulation, SimulationRequest
from toolkit.errors import InputError, ToolkitError
from toolkit.move import _layouts as layouts
from toolkit.move import parse_type_tag as tag
from toolkit.move._layouts import layout_from_json, layout_to_json
from toolkit.wire import FeePayerSignature, MultiKeySignature, PublicKey, SingleKeySignature
from toolkit.wire._requests import model_from_json, model_to_json

REGISTER = EntryFunction("0xcafe::registry::register", ["zz"])
REGISTRY = "0xcafe::registry::Registry"
KEY = "0x" + "11" * 32


@pytest.fixture(scope="module")
def simulation():
    with toolkit.connect(cache=None) as node:
        yield node.simulate(REGISTER, sender="0xb0b")


@pytest.fixture(scope="module")
def saved(simulation, tmp_path_factory):
    return simulation.save(tmp_path_factory.mktemp("saved") / "deep" / "simulation.json")


@pytest.fixture
def no_node(monkeypatch):
    """Let every request fail."""

    def refuse(*_):
        raise AssertionError("a request was sent")

    monkeypatch.setattr("toolkit.client._connection.Connection.perform", refuse)


@pytest.mark.usefixtures("no_node")
def test_everything_but_the_state_before_works_without_a_node(simulation, saved):
    """Equal, with the same words, frames, typed resources and events; a second file is the same to the byte."""
    loaded = Simulation.load(saved)
    assert loaded == simulation
    assert (loaded.explain(), repr(loaded), loaded._repr_html_()) == (
        simulation.explain(),
        repr(simulation),
        simulation._repr_html_(),
    )
    for name in ("transactions", "changes", "events", "balance_changes"):
        pd.testing.assert_frame_equal(getattr(loaded, name), getattr(simulation, name))
    registry = loaded.resources(REGISTRY)
    assert str(registry["size"].dtype) == "uint64[pyarrow]"
    assert loaded.events_of("0xcafe::registry::Registered")["name"].tolist() == ["zz"]
    assert loaded.gas == simulation.gas
    again = loaded.save(saved.with_name("again.json"))
    assert again.read_bytes() == saved.read_bytes()


@pytest.mark.usefixtures("no_node")
def test_what_needs_a_node_says_so(saved):
    """With the call that gives it one."""
    with pytest.raises(InputError, match=r"loaded without a node, from a file.*Simulation.load\(.*node=\.\.\.\)"):
        Simulation.load(saved).diff()


def test_with_a_node_the_state_before_is_read(simulation, saved):
    """As of the simulation itself."""
    with toolkit.connect(cache=None) as node:
        pd.testing.assert_frame_equal(Simulation.load(saved, node=node).diff(), simulation.diff())


def test_a_node_that_is_gone_does_not_stop_saving(tmp_path):
    """The file then lacks the types that were not looked up, and has everything else."""
    there = FakeNode(
        {
            "POST /transactions/simulate": answer([user_transaction()]),
            "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x01"}),
            "GET /accounts/0x1/module/m": answer(
                module("m", functions=[function("pay", is_entry=True)], structs=[struct("Purse", {"total": "u128"})])
            ),
        }
    )
    node = Node(URL, transport=there)
    found = node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")
    node.close()
    loaded = Simulation.load(found.save(tmp_path / "a.json"))
    assert loaded == found


def test_a_change_of_an_unknown_kind_is_saved(tmp_path):
    """As the node printed it, with numbers of any size."""
    strange = {"type": "write_dream", "depth": "340282366920938463463374607431768211455", "state_key_hash": "0x02"}
    changes = [*user_transaction()["changes"], strange]
    there = FakeNode(
        {
            "POST /transactions/simulate": answer([user_transaction(changes=changes)]),
            "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x01"}),
            "GET /accounts/0x1/module/m": answer(module("m", functions=[function("pay", is_entry=True)])),
        }
    )
    found = Node(URL, transport=there).simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")
    loaded = Simulation.load(found.save(tmp_path / "a.json"))
    pd.testing.assert_frame_equal(loaded.changes, found.changes)
    assert loaded.changes["type"].tolist()[-1] == "write_dream"


REQUESTS = [
    SimulationRequest(REGISTER, sender="0xb0b", max_gas_amount=2**64 - 1, estimate_gas_unit_price=True),
    SimulationRequest(Script(b"\xa1\x1c\xeb\x0b", arguments=[1]), sender="0x1", replay_protection_nonce=5),
    SimulationRequest(EntryFunction("0x1::m::f", [2**200, b"\x00\xff", None, [True], {"a": [1]}]), sender="0x1"),
    SimulationRequest(REGISTER, sender="0xb0b", public_key=KEY, fee_payer="0x0", secondary_signers=["0x5"]),
    SimulationRequest(REGISTER, sender="0xb0b", public_key=PublicKey(KEY)),
    SimulationRequest(
        REGISTER,
        sender="0xb0b",
        signature=FeePayerSignature(
            SingleKeySignature(PublicKey(KEY)),
            fee_payer_address="0x7",
            fee_payer_signer=MultiKeySignature([PublicKey(KEY)] * 2, signatures_required=1),
        ),
    ),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=range(len(REQUESTS)))
def test_requests_of_every_shape_come_back(request_):
    """Payloads, keys, zero-padded signatures and arguments of every kind, through JSON text."""
    assert model_from_json(json.loads(json.dumps(model_to_json(request_)))) == request_


LAYOUTS = [
    layouts.VectorOf(layouts.OptionOf(layouts.UInt(256))),
    layouts.StructOf(tag("0x1::m::S<u8>"), (("a", layouts.Bytes()), ("b", layouts.ObjectOf()))),
    layouts.EnumOf(tag("0x1::m::E"), (("V", (("_0", layouts.Int(8)),)), ("W", ()))),
    layouts.Untyped(tag("0x1::m::U"), "no ABI of module 0x1::m"),
    layouts.FunctionValue(tag("|u64|bool", abi=True)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=range(len(LAYOUTS)))
def test_layouts_of_every_kind_come_back(layout):
    """Through JSON text."""
    assert layout_from_json(json.loads(json.dumps(layout_to_json(layout)))) == layout


def deep(depth: int):
    """Return a layout that nests too deeply."""
    value = "u8"
    for _ in range(depth):
        value = {"vector": value}
    return value


@pytest.mark.parametrize(
    "value", [None, 5, "u9", [], {}, {"vector": 5}, {"struct": "u8", "fields": []}, {"struct": "0x1::m::S", "fields": [["a"]]},
              {"struct": "0x1::m::S", "fields": [["a", "u8"], ["a", "u8"]]}, {"untyped": "::", "reason": ""}, deep(65)]
)  # fmt: skip
def test_what_is_not_a_layout_is_refused(value):
    """A SchemaError, whatever it is."""
    with pytest.raises(toolkit.SchemaError):
        layout_from_json(value)


def places(value, path=()):
    """Yield the path of every part of a document."""
    yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


HOSTILE = [None, True, -1, 2**70, 1e309, "\u202e\x00", "\ud800", "::", [], {}, [[]], {"class": "object", "fields": {}}]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_file_of_somebody_else_is_checked_to_the_last_leaf(saved, tmp_path, number):
    """With any part replaced, it is an InputError that names the file, or a simulation that works offline."""
    document = json.loads(saved.read_text())
    document["transaction"]["changes"] = document["transaction"]["changes"][-2:]
    document["layouts"] = {name: one for name, one in document["layouts"].items() if "Registry" in name}
    place = tmp_path / "bent.json"
    refused = 0
    # Each value meets other places, so that every place meets a value.
    for path in list(places(document))[1 + number % 8 :: 8]:
        bent = copy.deepcopy(document)
        inner = bent
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = HOSTILE[number]
        place.write_text(json.dumps(bent))
        try:
            loaded = Simulation.load(place)
            repr(loaded), loaded._repr_html_(), loaded.changes, loaded.events
        except InputError as error:
            refused += "bent.json" in str(error) and str(error).isprintable()
        except ToolkitError:
            pass
    assert refused > 5


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "truncated"),
        (b"[]", "object"),
        (b"{}", "not a saved simulation"),
        (b'{"kind": "ledger-toolkit simulation", "format": 2}', "expected format 1, got 2"),
        (b'{"kind": "ledger-toolkit simulation", "format": 1}', "request"),
        (b"[" * 100_000, "not a saved simulation|nest|object"),
        (b"\xff\xfe", "JSON"),
    ],
)
def test_other_files_are_named(tmp_path, content, words):
    """What was expected, and the file."""
    place = tmp_path / "x.json"
    place.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        Simulation.load(place)
    assert "x.json" in str(caught.value)


@pytest.mark.parametrize("name", ["WireModel", "Simulation", "int", "TableItemRequest", "ViewFunction"])
def test_other_classes_are_not_requests(saved, tmp_path, name):
    """Only the classes of requests are made, and only a SimulationRequest is one of a simulation."""
    document = json.loads(saved.read_text()) | {"request": {"class": name, "fields": {}}}
    place = tmp_path / "x.json"
    place.write_text(json.dumps(document))
    with pytest.raises(InputError):
        Simulation.load(place)


def test_special_files_are_refused_at_once(tmp_path):
    """A pipe does not wait for a writer, and a device is not read for ever."""
    os.mkfifo(tmp_path / "pipe")
    for name in (tmp_path / "pipe", "/dev/zero", tmp_path, tmp_path / "missing"):
        with pytest.raises(InputError, match="cannot be read"):
            Simulation.load(name)


def test_a_file_that_cannot_be_written_is_an_error(simulation, tmp_path):
    """And nothing is left of it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        simulation.save(tmp_path / "file" / "x.json")
    with pytest.raises(InputError, match="cannot be written"):
        simulation.save(tmp_path)


def test_a_file_has_no_credentials(tmp_path):
    """Neither the key nor the login of the node that answered, nor its name."""
    there = FakeNode(
        {
            "POST /transactions/simulate": answer([user_transaction()]),
            "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x01"}),
            "GET /accounts/0x1/module/m": answer(module("m", functions=[function("pay", is_entry=True)])),
        }
    )
    node = Node("http://me:hunter2@node.test/v1", transport=there, api_key="sk-secret")
    text = node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce").save(tmp_path / "a.json").read_text()
    for secret in ("hunter2", "sk-secret", "node.test"):
        assert secret not in text


def test_runs_and_studies_load_alike(tmp_path):
    """`Run.load` is what `Run.open` was, which still works."""
    study = toolkit.Study(calls=["0x1::chain_id::get"], versions="0:-1/2")
    study.run(tmp_path / "run", progress=False)
    loaded, opened = toolkit.Run.load(tmp_path / "run"), toolkit.Run.open(tmp_path / "run")
    assert type(loaded) is type(opened) is toolkit.Run
    assert loaded.digest == opened.digest


@pytest.mark.parametrize(("name", "value"), [("gas_used", "many"), ("version", "-1"), ("sender", "zz")])
def test_numbers_and_addresses_are_checked_on_loading(saved, tmp_path, name, value):
    """Not when a frame is made of them."""
    document = json.loads(saved.read_text())
    document["transaction"][name] = value
    place = tmp_path / "x.json"
    place.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"x\.json"):
        Simulation.load(place)
