"""Many calls into one frame: order, failures as rows, few requests."""

from __future__ import annotations

import threading

import pytest

from tests.unit.client.fakes import (
    URL,
    FakeNode,
    answer,
    function,
    ledger,
    module,
    refused,
    struct,
    user_transaction,
)
from toolkit.client._fetch import fetch_simulations, fetch_table_items, fetch_transactions, fetch_views
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.client._threads import run_in_threads
from toolkit.errors import ClosedError, FailedReadsWarning, InputError
from toolkit.wire import EntryFunction, SimulationRequest, ViewFunction

M = module(
    "m",
    functions=[
        function("count", [], ["u64"]),
        function("other", [], ["u64"]),
        function("flag", [], ["bool"]),
        function("run", [], []),
        function("pay", ["&signer", "u64"], is_entry=True, is_view=False),
    ],
    structs=[struct("Purse", {"total": "u128", "open": "bool"})],
)
M_PATH = "GET /accounts/0x1/module/m"
COUNT, FLAG = ViewFunction("0x1::m::count"), ViewFunction("0x1::m::flag")
HANDLE = "0x" + "0" * 61 + "abc"
TABLE = f"POST /tables/{HANDLE}/item"


def counting(query, body):
    """Answer the version itself as the count; refuse every tenth version, and more below 100."""
    version = int(query.get("ledger_version", 1_000))
    if version < 100:
        return refused(410, "version_pruned", "gone", head=ledger(oldest=100))
    if version % 10 == 7:
        return refused(400, "invalid_input", "Move abort in 0x1::m: 0x1", head=ledger())
    return answer([True] if body["function"].endswith("flag") else [str(version)], gas=version % 5)


def node_with(routes=None, *, head=None, **options):
    fake = FakeNode(head=head)
    fake.routes |= {M_PATH: lambda *_: answer(M, head=fake.head), "POST /view": counting} | (routes or {})
    return Node(URL, transport=fake, **options), fake


class TestViews:
    """fetch_views"""

    def test_one_row_per_version_in_the_order_of_the_plan(self):
        """Threads finish in any order; rows stand as planned, repetitions included."""
        node, _ = node_with()
        frame = fetch_views(node, COUNT, versions=[500, 300, 500, 999], progress=False)
        assert frame["ledger_version"].tolist() == [500, 300, 500, 999]
        assert frame["value"].tolist() == [500, 300, 500, 999]
        assert str(frame["value"].dtype) == "uint64[pyarrow]"
        assert frame["gas_used"].tolist() == [0, 0, 0, 4]
        assert frame["head_version"].tolist() == [1_000] * 4
        assert "call" not in frame.columns

    def test_failures_are_rows(self):
        """A refused version is a row with its code and message; the others are whole."""
        node, _ = node_with()
        frame = fetch_views(node, COUNT, versions=[106, 107, 108], progress=False)
        assert frame["value"].isna().tolist() == [False, True, False]
        assert frame["status"].isna().tolist() == [True, False, True]
        failed = frame.iloc[1]
        assert (failed["ledger_version"], failed["status"], failed["error_code"]) == (107, 400, "invalid_input")
        assert "Move abort" in failed["error_message"]

    def test_each_version_is_encoded_by_its_own_abi(self):
        """The parameter was a u64, then a u8: one sweep sends text before the upgrade and a number after it."""
        old = module("m", functions=[function("f", ["u64"], ["u64"])])
        new = module("m", functions=[function("f", ["u8"], ["u64"])], code="0x02")
        routes = {M_PATH: lambda query, _: answer(old if int(query["ledger_version"]) < 150 else new)}
        node, fake = node_with(routes)
        frame = fetch_views(node, ViewFunction("0x1::m::f", arguments=[5]), versions="101:199:14", progress=False)
        assert frame["error_code"].isna().tolist() == [True] * 4 + [False] + [True] * 3  # 157 is refused
        sent = {int(query["ledger_version"]): body["arguments"] for query, body in fake.sent("POST /view")}
        assert sent == {version: ["5"] if version < 150 else [5] for version in range(101, 200, 14)}

    def test_a_listed_version_that_is_pruned_is_a_row(self):
        """Listed versions are read as listed, whatever their outcome."""
        node, _ = node_with(head=ledger(oldest=100))
        frame = fetch_views(node, COUNT, versions=[50, 500], progress=False)
        assert frame["error_code"].tolist()[0] == "version_pruned"
        assert frame["value"].tolist()[1] == 500

    def test_a_clipped_plan_is_warned_about(self):
        """The note of the plan reaches the caller."""
        node, _ = node_with(head=ledger(oldest=100))
        with pytest.warns(UserWarning, match=r"\b0 to 99\b"):
            frame = fetch_views(node, COUNT, versions="0:104", progress=False)
        assert frame["ledger_version"].tolist() == [100, 101, 102, 103, 104]

    def test_the_head_is_read_once_and_by_default(self):
        """Without a plan the head is read, as a number: it cannot move between calls."""
        node, fake = node_with({"GET /transactions/by_version/1000": answer(user_transaction(type="user_transaction"))})
        frame = fetch_views(node, {"a": COUNT, "b": ViewFunction("0x1::m::other")}, progress=False)
        assert frame["ledger_version"].tolist() == [1_000, 1_000]
        assert len(fake.sent("GET ")) == 1

    def test_a_sweep_asks_for_few_modules(self):
        """200 versions of a module that never changed cost two module reads."""
        node, fake = node_with()
        fetch_views(node, COUNT, versions="100:299", progress=False)
        assert len(fake.sent("POST /view")) == 200
        assert len(fake.sent(M_PATH)) == 2

    def test_named_calls_stand_in_a_column(self):
        """With a mapping each row says which call it is, by call, then version."""
        node, _ = node_with()
        frame = fetch_views(
            node, {"one": COUNT, "two": ViewFunction("0x1::m::other")}, versions="500:501", progress=False
        )
        assert frame.columns[0] == "call"
        assert frame["call"].tolist() == ["one", "one", "two", "two"]
        assert frame["ledger_version"].tolist() == [500, 501, 500, 501]

    def test_listed_calls_are_named_by_their_functions(self):
        """Two calls of one function have different names."""
        node, _ = node_with()
        frame = fetch_views(node, [COUNT, FLAG, COUNT], versions=[500], typed=False, progress=False)
        assert frame["call"].tolist() == ["0x1::m::count()", "0x1::m::flag", "0x1::m::count() #2"]

    def test_calls_of_different_types_have_a_typed_column_each(self):
        """No option is needed; as text they share one column."""
        node, _ = node_with()
        calls = {"count": COUNT, "flag": FLAG}
        frame = fetch_views(node, calls, versions=[500, 501], progress=False)
        assert [name for name in frame.columns if name.startswith("value")] == ["value[count]", "value[flag]"]
        assert frame["value[count]"].dropna().tolist() == [500, 501]
        assert str(frame["value[count]"].dtype) == "uint64[pyarrow]"
        assert frame.loc[frame["call"] == "flag", "value[flag]"].tolist() == [True, True]
        frame = fetch_views(node, calls, versions=[500], typed=False, progress=False)
        assert frame["value"].tolist() == ['"500"', "true"]

    @pytest.mark.parametrize("versions", [[107, 117], []], ids=["all failed", "no versions"])
    def test_a_frame_without_an_answer_is_typed_by_the_head(self, versions):
        """Where no call answered, the value column is there, null, and of the type that the function returns."""
        node, _ = node_with()
        frame = fetch_views(node, COUNT, versions=versions, progress=False)
        assert frame["value"].isna().all()
        assert len(frame) == len(versions)
        assert str(frame["value"].dtype) == "uint64[pyarrow]"

    def test_a_frame_without_an_answer_of_calls_that_differ_has_their_types(self):
        """A column each, by the ABI; text for a node that does not offer modules."""
        node, _ = node_with()
        frame = fetch_views(node, {"count": COUNT, "flag": FLAG}, versions=[107], progress=False)
        assert len(frame) == 2
        assert [str(frame[f"value[{name}]"].dtype) for name in ("count", "flag")] == [
            "uint64[pyarrow]",
            "bool[pyarrow]",
        ]
        node, _ = node_with({M_PATH: refused(403, "forbidden")})
        frame = fetch_views(node, COUNT, versions=[107], progress=False)
        assert str(frame["value"].dtype) == "string"

    def test_times_cost_one_read_per_block(self):
        """ledger_timestamp is filled on request only, a block at a time."""
        block = {
            "block_height": "5",
            "block_hash": "0x0",
            "block_timestamp": "1767225600000000",
            "first_version": "500",
            "last_version": "509",
            "transactions": None,
        }
        node, fake = node_with({f"GET /blocks/by_version/{n}": answer(block) for n in range(500, 510)})
        frame = fetch_views(node, COUNT, versions="500:504", times=True, progress=False)
        assert [str(stamp) for stamp in frame["ledger_timestamp"]] == ["2026-01-01 00:00:00+00:00"] * 5
        assert len([place for place, *_ in fake.asked if "blocks" in place]) == 1
        assert fetch_views(node, COUNT, versions=[500], progress=False)["ledger_timestamp"].isna().all()

    def test_a_view_that_the_abi_does_not_list_is_read_if_the_node_runs_it(self):
        """As a private function may be; one request finds that out, and the sweep goes on."""
        node, fake = node_with({"POST /view": lambda *_: answer(["5"])})
        frame = fetch_views(node, ViewFunction("0x1::m::hidden"), versions="100:104", progress=False)
        assert frame["value"].tolist() == ["5"] * 5
        node, fake = node_with({"POST /view": refused(400, "invalid_input", "could not find view function by x")})
        with pytest.raises(InputError, match="0x1::m::hidden"):
            fetch_views(node, ViewFunction("0x1::m::hidden"), versions="100:104", progress=False)
        assert [query["ledger_version"] for query, _ in fake.sent("POST /view")] == ["104", "1000"]  # newest, and head

    @pytest.mark.filterwarnings("ignore:3 calls are untyped")
    @pytest.mark.parametrize("route", [refused(403, "api_disabled"), refused(503, "unavailable")], ids=["off", "out"])
    def test_nothing_is_checked_if_modules_cannot_be_looked_up(self, route):
        """Each row reports what is wrong, and a warning says that every read failed."""
        fake = FakeNode({M_PATH: route, "POST /view": refused(400, "invalid_input", "could not find view function")})
        node = Node(URL, transport=fake, sleep=lambda _: None)
        with pytest.warns(FailedReadsWarning, match="all 3 views failed"):
            frame = fetch_views(node, ViewFunction("0x1::m::hidden"), versions="100:102", progress=False)
        assert frame["error_code"].notna().all()


class TestTableItems:
    """fetch_table_items"""

    def test_rows_by_key_then_version(self):
        """Keys in their order, versions in theirs, values typed by the given type."""

        def item(query, body):
            if body["key"] == "bob":
                return refused(404, "table_item_not_found", head=ledger())
            return answer({"total": str(2**128 - 1), "open": int(query["ledger_version"]) > 500})

        node, _ = node_with({TABLE: item})
        frame = fetch_table_items(
            node,
            HANDLE,
            keys=iter(["alice", "bob"]),
            key_type="0x1::string::String",
            value_type="0x1::m::Purse",
            versions=[400, 600],
            flatten=True,
            progress=False,
        )
        assert frame["key"].tolist() == ["alice", "alice", "bob", "bob"]
        assert frame["ledger_version"].tolist() == [400, 600, 400, 600]
        assert [bool(value) for value in frame["value.open"][:2]] == [False, True]
        assert [int(value) for value in frame["value.total"][:2]] == [2**128 - 1] * 2
        assert frame["value.open"].isna().tolist() == [False, False, True, True]
        assert frame["error_code"].tolist()[2:] == ["table_item_not_found"] * 2

    def test_no_keys_give_an_empty_frame_with_its_columns(self):
        """Nothing asked: nothing sent, and the schema is whole."""
        node, fake = node_with()
        frame = fetch_table_items(node, HANDLE, keys=[], key_type="u64", value_type="u128", progress=False)
        assert len(frame) == 0
        assert str(frame["key"].dtype) == "uint64[pyarrow]"
        assert str(frame["value"].dtype) == "u128"
        assert fake.sent(TABLE) == []


class TestSimulations:
    """fetch_simulations"""

    def test_refused_requests_are_rows_in_their_places(self):
        """Each request is a row of `transactions`, in order, simulated or refused; results pair up."""

        def simulate(query, body):
            if body["payload"]["arguments"] == ["13"]:
                return refused(400, "vm_error", "INSUFFICIENT_BALANCE", head=ledger())
            return answer([user_transaction(gas=int(body["payload"]["arguments"][0]))])

        account = {"sequence_number": "7", "authentication_key": "0x" + "0" * 64}
        node, _ = node_with({"POST /transactions/simulate": simulate, "GET /accounts/0xa11ce": answer(account)})
        requests = [
            SimulationRequest(EntryFunction("0x1::m::pay", arguments=[amount]), sender="0xa11ce")
            for amount in (5, 13, 6)
        ]
        frames = fetch_simulations(node, requests, progress=False)
        assert frames.transactions["request"].tolist() == [0, 1, 2]
        assert frames.transactions["error_code"].isna().tolist() == [True, False, True]
        assert frames.transactions["error_message"].tolist()[1] == "INSUFFICIENT_BALANCE"
        assert [frames.transactions["gas_used"].tolist()[place] for place in (0, 2)] == [5, 6]
        assert frames.changes["request"].tolist() == [0, 2]
        assert frames.events["request"].tolist() == [0, 2]
        assert [getattr(result, "gas_used", None) for result in frames.results] == [5, None, 6]


class TestTransactions:
    """fetch_transactions"""

    @staticmethod
    def page(query, _):
        start, limit = int(query["start"]), int(query["limit"])
        assert limit <= 100
        return answer([user_transaction(version, type="user_transaction") for version in range(start, start + limit)])

    def test_a_range_is_read_in_pages_of_a_hundred(self):
        """250 versions are three pages, none beyond the last wanted version."""
        node, fake = node_with({"GET /transactions": self.page})
        frames = fetch_transactions(node, versions="100:349", progress=False)
        assert frames.transactions["ledger_version"].tolist() == list(range(100, 350))
        pages = sorted((int(query["start"]), int(query["limit"])) for query, _ in fake.sent("GET /transactions"))
        assert pages == [(100, 100), (200, 100), (300, 50)]
        assert len(frames.events) == 250

    def test_versions_apart_read_only_their_own(self):
        """For a sparse plan, only the requested versions are kept, in order and once each."""
        node, fake = node_with({"GET /transactions": self.page})
        frames = fetch_transactions(node, versions=[900, 5, 40, 5], progress=False)
        assert frames.transactions["ledger_version"].tolist() == [5, 40, 900]
        assert len(fake.sent("GET /transactions")) == 2

    def test_a_page_that_fails_is_rows(self):
        """The versions of one refused page are rows with its error; every other page is whole."""

        def page(query, body):
            if query["start"] == "200":
                return refused(400, "invalid_input", "no such page", head=ledger())
            return self.page(query, body)

        node, _ = node_with({"GET /transactions": page})
        frames = fetch_transactions(node, versions="100:349", progress=False)
        frame = frames.transactions
        assert frame["ledger_version"].tolist() == list(range(100, 350))
        failed = frame[frame["ledger_version"].between(200, 299)]
        assert set(failed["error_code"]) == {"invalid_input"}
        assert set(failed["error_message"]) == {"no such page"}
        assert failed["hash"].isna().all()
        assert frame[~frame["ledger_version"].between(200, 299)]["error_code"].isna().all()
        assert len(frames.events) == 150

    def test_of_a_sparse_plan_only_wanted_versions_fail(self):
        """A page read for three versions fails as three rows."""
        node, _ = node_with({"GET /transactions": refused(400, "invalid_input", "no", head=ledger())})
        frame = fetch_transactions(node, versions=[5, 50, 90], progress=False).transactions
        assert frame["ledger_version"].tolist() == [5, 50, 90]
        assert frame["error_code"].tolist() == ["invalid_input"] * 3

    def test_kinds_without_a_version_stay_where_they_came(self):
        """A transaction of an unknown kind is kept, also beside a version that is missing."""

        def page(query, _):
            start = int(query["start"])
            if start > 102:
                return refused(400, "invalid_input", "no", head=ledger())
            known = [user_transaction(version, type="user_transaction") for version in (100, 102)]
            return answer([known[0], {"type": "of_the_future", "what": 1}, known[1]])

        node, _ = node_with({"GET /transactions": page})
        frame = fetch_transactions(node, versions="100:103", progress=False).transactions
        assert frame["raw"].notna().tolist() == [False, True, False, False]
        assert "of_the_future" in frame["raw"][1]
        assert frame["ledger_version"].isna().tolist() == [False, True, False, False]
        assert frame["error_code"].isna().tolist() == [True, True, True, False]

    def test_a_closed_node_is_told_at_once(self):
        """Closing is the caller's own doing, no failure of a page."""

        def closing(*_):
            raise ClosedError("closed")

        node, _ = node_with({"GET /transactions": closing})
        with pytest.raises(ClosedError):
            fetch_transactions(node, versions="100:349", progress=False)


class TestRunMany:
    """The engine below."""

    def test_results_carry_the_place_of_their_task(self):
        """Whatever the order of completion."""
        assert dict(run_in_threads(range(50), lambda n: n * n, in_flight=7)) == {n: n * n for n in range(50)}

    def test_no_more_run_at_once_than_asked(self):
        """The bound on what is in flight holds."""
        lock, now, most = threading.Lock(), 0, 0

        def work(_):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            threading.Event().wait(0.001)
            with lock:
                now -= 1

        list(run_in_threads(range(60), work, in_flight=3))
        assert most <= 3

    def test_tasks_are_taken_as_results_are(self):
        """A long plan is not read ahead of its results."""
        taken = []

        def tasks():
            for number in range(10_000):
                taken.append(number)
                yield number

        results = run_in_threads(tasks(), lambda n: n, in_flight=2)
        for _ in range(10):
            next(results)
        results.close()
        assert len(taken) < 50

    def test_an_error_ends_the_run(self):
        """What a task raises is raised, and what has not begun never begins."""
        begun = []

        def work(number):
            begun.append(number)
            if number == 3:
                raise ClosedError("closed")

        with pytest.raises(ClosedError):
            list(run_in_threads(range(10_000), work, in_flight=2))
        assert len(begun) < 50


def test_a_listed_version_above_the_head_does_not_lose_the_other_items():
    """A version that does not exist is a row, and the items of the others keep their type."""
    purse = module("m", structs=[struct("Purse", {"total": "u128"})])
    head = ledger()

    def unless_above(value):
        def found(query, _):
            above = int(query["ledger_version"]) > head.version
            return refused(404, "version_not_found", head=head) if above else answer(value)

        return found

    fake = FakeNode(
        {"GET /accounts/0x1/module/m": unless_above(purse), f"POST /tables/{HANDLE}/item": unless_above({"total": "5"})}
    )
    frame = fetch_table_items(
        Node(URL, transport=fake),
        HANDLE,
        keys=["a"],
        key_type="0x1::string::String",
        value_type="0x1::m::Purse",
        versions=[5, 5_000],
        progress=False,
    )
    assert frame["error_code"].fillna("-").tolist() == ["-", "version_not_found"]


def test_one_page_of_a_gateway_does_not_end_typing():
    """A single 404 page of a gateway costs the typing of one answer, not of all later ones."""
    pages = iter([Answer(404, {"Content-Type": "text/html"}, b"<html>routing</html>")])
    m = module("m", functions=[function("f", [], ["u64"])])
    fake = FakeNode({"POST /view": answer(["5"]), "GET /accounts/0x1/module/m": lambda *_: next(pages, answer(m))})
    node = Node(URL, transport=fake)
    node.view("0x1::m::f", ledger_version=5)
    assert node.view("0x1::m::f", ledger_version=6).typing == "abi"


RUN = ViewFunction("0x1::m::run")


def a_node(reply, url=URL, **options):
    fake = FakeNode({"GET /accounts/0x1/module/m": answer(M), "POST /view": reply})
    return Node(url, transport=fake, **options)


def test_a_view_that_returns_nothing_is_a_row():
    """An answer of no values is a frame without a value column, one call or many."""
    node = a_node(answer([], gas=3))
    frame = fetch_views(node, RUN, versions=[5, 6], progress=False)
    assert len(frame) == 2
    assert not [name for name in frame.columns if name.startswith("value")]
    assert frame["gas_used"].tolist() == [3, 3]
    assert node.view(RUN, ledger_version=5).to_frame()["ledger_version"].tolist() == [5]
    assert fetch_views(node, RUN, versions=[5], typed=False, progress=False)["value"].tolist() == ["[]"]
