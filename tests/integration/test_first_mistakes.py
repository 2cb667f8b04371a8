"""The mistakes of a first session: each is an error of the toolkit that names what to write instead."""

from __future__ import annotations

from datetime import date
from functools import partial

import pytest
from pandas.testing import assert_frame_equal

import toolkit
from toolkit import reports
from toolkit.embedded import Ledger
from toolkit.errors import InputError, InvalidRequest

TRANSFER, SIZE, REGISTER = "0x1::aptos_account::transfer", "0xcafe::registry::size", "0xcafe::registry::register"


@pytest.fixture(scope="module")
def node():
    with toolkit.connect() as client:
        yield client


@pytest.fixture(scope="module")
def run():
    return toolkit.Study(calls={"size": SIZE}, versions="1000:1001").run(progress=False)


def on(node, where):
    """Return the node, or a fork of it."""
    return node if where == "node" else node.fork(1_000)


@pytest.mark.parametrize("where", ["node", "fork"])
def test_a_simulation_takes_a_function_and_arguments_as_a_view_does(node, where):
    """The same request and the same gas as of the payload that it stands for."""
    asked = on(node, where)
    short = asked.simulate(TRANSFER, ["0xb0b", 100], sender="0xa11ce")
    payload = toolkit.EntryFunction(TRANSFER, ["0xb0b", 100])
    whole = asked.simulate(payload, sender="0xa11ce")
    assert (short.success, short.gas_used, short.request.payload) == (True, whole.gas_used, payload)


def test_type_arguments_of_a_simulation_are_those_of_its_payload(node):
    """As of a view."""
    types = ["0x1::aptos_coin::AptosCoin"]
    done = node.simulate("0x1::coin::transfer", ["0xb0b", 1], type_arguments=types, sender="0xa11ce")
    assert done.request.payload == toolkit.EntryFunction("0x1::coin::transfer", ["0xb0b", 1], type_arguments=types)


def test_a_fork_executes_a_function_with_arguments(node):
    """The next simulation sees what it did."""
    fork = node.fork(1_000)
    balance = partial(fork.view, "0x1::coin::balance", ["0xb0b"], type_arguments=["0x1::aptos_coin::AptosCoin"])
    before = balance().value
    assert fork.execute(TRANSFER, ["0xb0b", 100], sender="0xa11ce").success
    assert balance().value == before + 100


@pytest.mark.parametrize("given", [{"arguments": ["0xb0b", 1]}, {"type_arguments": ["u8"]}])
def test_arguments_beside_a_payload_are_refused(node, given):
    """They would be lost."""
    with pytest.raises(InputError, match="function id"):
        node.simulate(toolkit.EntryFunction(TRANSFER, ["0xb0b", 100]), sender="0xa11ce", **given)


@pytest.mark.parametrize(
    ("mistake", "part"),
    [
        (lambda: toolkit.fetch_views(SIZE, "0:100/5"), SIZE),
        (lambda: toolkit.fetch_events("0x1::m::E", "0:1", "0:1"), "0x1::m::E"),
        (lambda: toolkit.fetch_resources("0x1", "0x1::m::R", "0:1"), "0x1"),
        (lambda: toolkit.fetch_simulations("0x1", None), "0x1"),
        (lambda: toolkit.fetch_table_items("0x1", "a", "b"), "0x1"),
        (lambda: toolkit.fetch_transactions("0:5", None), "0:5"),
    ],
)
def test_a_fetch_without_a_node_asks_for_one(mistake, part):
    """Before it looks at anything else."""
    with pytest.raises(InputError, match="a Node") as caught:
        mistake()
    assert f"got '{part}'" in str(caught.value)


@pytest.mark.parametrize("given", ["2026-03-05", " 2026-03-05T10:00Z", date(2026, 3, 5)])
def test_a_single_time_is_a_plan_of_one_version(node, given):
    """The same as in a list; a date is its start."""
    frame = toolkit.fetch_views(node, SIZE, given, progress=False)
    assert_frame_equal(frame, toolkit.fetch_views(node, SIZE, [given], progress=False))
    with pytest.raises(InputError, match="not a date"):
        toolkit.fetch_views(node, SIZE, "2026-13-01", progress=False)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda node, _: node.at("2026-03-05"),
        lambda node, _: node.view(SIZE, ledger_version="2026-03-05"),
        lambda _, run: run.at("2026-03-05"),
    ],
    ids=["node.at", "node.view", "run.at"],
)
def test_a_date_for_a_version_names_version_at(node, run, mistake):
    """The method that turns one into the other."""
    with pytest.raises(InputError, match=r"'2026-03-05'.*version_at"):
        mistake(node, run)


@pytest.mark.parametrize("given", ["nothing", 5, None, toolkit.Study(calls=[SIZE])])
def test_a_report_is_on_a_run(tmp_path, given):
    """Nothing is written."""
    with pytest.raises(InputError, match=r"Run\.load"):
        reports.write(given, tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", ["shop.py", 5, int])
def test_only_classes_of_contracts_are_published(given):
    """A file or another class does not have a definition."""
    ledger = Ledger()
    with pytest.raises(InputError, match="class"):
        ledger.publish(given)
    assert ledger.head == 0


def test_one_run_has_two_versions_to_compare(run):
    """The second side may be the run at another version."""
    with pytest.raises(InputError, match=r"run\.at\(b\).*None"):
        toolkit.compare(run)


def test_an_entry_function_is_not_viewed(node):
    """One view has the node's code; a sweep is refused before it reads."""
    with pytest.raises(InvalidRequest, match="simulate it") as caught:
        node.view(REGISTER, ["x"])
    assert (caught.value.status, caught.value.error_code) == (400, "invalid_input")
    with pytest.raises(InputError, match="simulate it"):
        toolkit.fetch_views(node, toolkit.ViewFunction(REGISTER, ["x"]), "100:102", progress=False)


@pytest.mark.parametrize(("limit", "never"), [({}, "lower"), ({"max_gas_amount": 1_000, "gas_unit_price": 100}, "few")])
def test_a_sender_without_coins_is_not_told_to_lower_a_limit_of_the_node(node, limit, never):
    """Only a limit of the request can be lowered."""
    done = node.simulate(TRANSFER, ["0xb0b", 100], sender="0x999", **limit)
    assert done.vm_status == "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE"
    assert never not in done.explain()
    assert "0x999" in done.explain()


@pytest.mark.parametrize(("name", "meant"), [("fetch_event", "`fetch_events`"), ("Stdy", "`Study`")])
def test_a_misspelt_name_has_a_suggestion(name, meant):
    """In the error itself, since notebooks show no more than that."""
    with pytest.raises(AttributeError, match=meant) as caught:
        getattr(toolkit, name)
    assert caught.value.name == name


def test_a_coin_without_its_module_is_written_in_full():
    """The coin that every example uses."""
    with pytest.raises(InputError, match="0x1::aptos_coin::AptosCoin"):
        toolkit.ViewFunction("0x1::coin::supply", type_arguments=["AptosCoin"])
