"""Kept answers: asked once, pinned only, apart by chain, build, encoding and version; and sessions without a node."""

from __future__ import annotations

from threading import Thread

import pytest

from tests.unit.client.fakes import (
    HEAD_TRANSACTION,
    URL,
    FakeNode,
    answer,
    function,
    get,
    info,
    ledger,
    module,
    refused,
    user_transaction,
)
from toolkit.client._cache import NodeCache
from toolkit.client._connection import Connection
from toolkit.client._fetch import fetch_simulations, fetch_table_items, fetch_transactions, fetch_views
from toolkit.client._http import Answer
from toolkit.client._node import Node
from toolkit.errors import InvalidRequest, NotFound, OfflineMiss
from toolkit.wire import EntryFunction, LedgerState, SimulationRequest, ViewFunction

M = module(
    "m",
    functions=[
        function("count", [], ["u64"]),
        function("scaled", ["u64"], ["u64"]),
        function("pay", ["&signer"], is_entry=True, is_view=False),
    ],
)
COUNT = ViewFunction("0x1::m::count")
HANDLE = "0x" + "0" * 61 + "abc"
TABLE = f"POST /tables/{HANDLE}/item"
CLOCK = ViewFunction("0x1::timestamp::now_microseconds")
TIMESTAMP = module("timestamp", functions=[function("now_microseconds", [], ["u64"])])
MODULE = "GET /accounts/0x1/module/timestamp"
ITEM = {"key": "alice", "key_type": "0x1::string::String", "value_type": "u64"}


def counting(query, _):
    """Answer the version itself, with gas."""
    return answer([query.get("ledger_version", "1000")], gas=3)


@pytest.fixture
def place(tmp_path):
    return tmp_path / "answers.sqlite3"


def a_node(place, routes=None, *, head=None, **options):
    """Return a node over a fake that keeps its answers in a file."""
    fake = FakeNode(HEAD_TRANSACTION, head=head)
    fake.routes |= {
        "GET /accounts/0x1/module/m": lambda *_: answer(M, head=fake.head),
        "POST /view": counting,
        TABLE: lambda *_: answer("7", head=fake.head),
    }
    fake.routes |= routes or {}
    return Node(URL, transport=fake, cache=place, **options), fake


def offline(place, **options):
    """Return a node that may not ask: its transport fails the test if it is used."""

    class Silent:
        def send(self, request):
            pytest.fail(f"an offline node asked {request.url}")

        def close(self):
            pass

    return Node(URL, transport=Silent(), cache=place, offline=True, **options)


class TestKept:
    """What is asked once."""

    def test_a_second_sweep_asks_no_view(self, place):
        """The same versions again, in another session: the node is asked which ledger it serves, nothing else."""
        with a_node(place)[0] as node:
            first = fetch_views(node, COUNT, versions="100:299", progress=False)
        node, fake = a_node(place)
        with node:
            second = fetch_views(node, COUNT, versions="100:299", progress=False)
        assert second.equals(first)
        assert {where for where, _, _ in fake.asked} == {"GET ", *HEAD_TRANSACTION, "GET /transactions/by_version/299"}

    def test_within_one_session_too(self, place):
        """One call twice at one version is one request, alone or among many."""
        node, fake = a_node(place)
        with node:
            values = [node.view(COUNT, ledger_version=500).value for _ in range(3)]
            fetch_views(node, COUNT, versions=[500, 501], progress=False)
        assert values == [500] * 3
        assert len(fake.sent("POST /view")) == 2

    def test_only_what_is_missing_is_asked(self, place):
        """A longer sweep over the same range asks for the new versions."""
        with a_node(place)[0] as node:
            fetch_views(node, COUNT, versions="100:149", progress=False)
        node, fake = a_node(place)
        with node:
            frame = fetch_views(node, COUNT, versions="100:199", progress=False)
        assert frame["value"].tolist() == list(range(100, 200))
        assert sorted(int(query["ledger_version"]) for query, _ in fake.sent("POST /view")) == list(range(150, 200))

    def test_items_resources_and_modules_are_kept(self, place):
        """All reads that are pinned."""
        routes = {"GET /accounts/0x1/resource/0x1%3A%3Am%3A%3AR": answer({"type": "0x1::m::R", "data": {"a": "1"}})}

        def read(node):
            with node:
                node.table_item(HANDLE, **ITEM, ledger_version=500)
                node.resource("0x1", "0x1::m::R", ledger_version=500)
                node.module("0x1", "m", ledger_version=500)

        read(a_node(place, routes)[0])
        node, fake = a_node(place, routes)
        read(node)
        assert {where for where, _, _ in fake.asked} <= {"GET ", *HEAD_TRANSACTION}

    def test_a_missing_item_is_the_same_row_from_the_file(self, place):
        """Alone and among many, from the node and from the file, one error."""
        missing = {TABLE: refused(404, "table_item_not_found", "no such key", head=ledger())}
        options = {"keys": ["a", "b"], "key_type": "0x1::string::String", "value_type": "u64", "versions": [500]}
        frames = []
        for _ in range(2):
            node, fake = a_node(place, missing)
            with node:
                frames.append(fetch_table_items(node, HANDLE, **options, progress=False))
        assert frames[0].equals(frames[1])
        assert frames[1]["error_code"].tolist() == ["table_item_not_found"] * 2
        assert fake.sent(TABLE) == []


class TestNotKept:
    """What has to be asked again."""

    @pytest.mark.fault("a 404 from a backend whose head is below the requested version", "the 404 is not cached")
    @pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
    def test_what_a_lagging_backend_misses_is_asked_again(self, place, many):
        """A 404 from a backend whose head is below the version read is not an answer about that version."""
        missing = {TABLE: refused(404, "table_item_not_found", "no such key", head=ledger(400))}
        with a_node(place, missing)[0] as node:
            if many:
                options = {"key_type": ITEM["key_type"], "value_type": ITEM["value_type"], "versions": [500]}
                frame = fetch_table_items(node, HANDLE, keys=["alice"], **options, progress=False)
                assert frame["error_code"].tolist() == ["table_item_not_found"]
            else:
                with pytest.raises(NotFound):
                    node.table_item(HANDLE, **ITEM, ledger_version=500)
        with a_node(place)[0] as node:
            assert node.table_item(HANDLE, **ITEM, ledger_version=500).value == 7

    def test_reads_of_the_head_are_asked_each_time(self, place):
        """Without a version the answer is of its moment."""
        node, fake = a_node(place)
        with node:
            for _ in range(3):
                node.view(COUNT)
                node.table_item(HANDLE, **ITEM)
        assert len(fake.sent("POST /view")) == len(fake.sent(TABLE)) == 3

    def test_the_head_is_read_anew(self, place):
        """What a node says of itself is remembered for offline sessions only."""
        with a_node(place)[0] as node:
            assert node.ledger().version == 1_000
        with a_node(place, head=ledger(2_000))[0] as node:
            assert node.ledger().version == 2_000

    def test_simulations_are_asked_each_time(self, place):
        """They run on the head."""
        routes = {
            "POST /transactions/simulate": answer([user_transaction()]),
            "GET /accounts/0xa11ce": answer({"sequence_number": "7", "authentication_key": "0x" + "0" * 64}),
        }
        node, fake = a_node(place, routes)
        with node:
            for _ in range(2):
                node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce")
        assert len(fake.sent("POST /transactions/simulate")) == 2

    def test_without_a_cache_every_read_is_asked(self):
        """`cache=None`, and a transport of one's own by default."""
        for options in ({"place": None}, {"place": "default"}):
            node, fake = a_node(**options)
            with node:
                for _ in range(2):
                    node.view(COUNT, ledger_version=500)
            assert len(fake.sent("POST /view")) == 2


class TestApart:
    """What must not be mistaken for one another."""

    def test_gas_of_another_build_is_not_shared(self, place):
        """A node that was upgraded may tell other gas: its views are asked again, other reads are not."""
        with a_node(place)[0] as node:
            assert node.view(COUNT, ledger_version=500).gas_used == 3
            node.table_item(HANDLE, **ITEM, ledger_version=500)
        newer = {
            "GET ": lambda *_: answer(info(ledger(), git_hash="def")),
            "POST /view": lambda query, _: answer([query["ledger_version"]], gas=99),
        }
        node, fake = a_node(place, newer)
        with node:
            assert node.view(COUNT, ledger_version=500).gas_used == 99
            node.table_item(HANDLE, **ITEM, ledger_version=500)
        assert fake.sent(TABLE) == []

    def test_another_chain_is_not_shared(self, place):
        """One file serves several chains."""
        with a_node(place)[0] as node:
            node.view(COUNT, ledger_version=500)
        one = ledger()
        other = LedgerState(5, one.version, 0, one.timestamp, one.epoch, one.block_height, one.oldest_block_height)
        routes = {"POST /view": answer(["8"], head=other)}
        routes |= {where: answer(user_transaction(1_000), head=other) for where in HEAD_TRANSACTION}
        node, _ = a_node(place, routes, head=other)
        with node:
            assert node.view(COUNT, ledger_version=500).value == 8

    @pytest.mark.parametrize(
        "other",
        ["http://other.test/v1", "https://node.test/v1", "http://node.test:8080/v1"],
        ids=["host", "scheme", "port"],
    )
    def test_hosts_share_only_by_name(self, place, other):
        """Another host, scheme or port has its own answers, unless both nodes are given one `cache_name`."""
        routes = {"POST /view": counting, "GET /accounts/0x1/module/m": answer(M)} | HEAD_TRANSACTION
        for name, requests in ((None, 1), ("four", 0)):
            with a_node(place, cache_name=name)[0] as node:
                node.view(COUNT, ledger_version=500)
            fake = FakeNode(routes)
            with Node(other, transport=fake, cache=place, cache_name=name) as node:
                assert node.view(COUNT, ledger_version=500).value == 500
            assert len(fake.sent("POST /view")) == requests

    def test_a_cache_name_is_not_a_host(self, place):
        """A name that spells a host's address does not reach the host's answers."""
        with a_node(place)[0] as node:
            node.view(COUNT, ledger_version=500)
        node, fake = a_node(place, cache_name="http://node.test:80")
        with node:
            node.view(COUNT, ledger_version=500)
        assert len(fake.sent("POST /view")) == 1

    def test_a_default_port_may_be_spelled_out(self, place):
        """`http://node.test` and `http://node.test:80` are one host."""
        with a_node(place)[0] as node:
            node.view(COUNT, ledger_version=500)
        fake = FakeNode(HEAD_TRANSACTION)
        with Node("http://node.test:80/v1", transport=fake, cache=place) as node:
            node.view(COUNT, ledger_version=500)
        assert fake.sent("POST /view") == []

    @pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
    def test_an_answer_of_no_chain_is_not_stored(self, place, many):
        """An answer without a chain id, between others that have one, is not read as one of this chain."""
        strange = Answer(200, {**answer(["666"]).headers, "X-APTOS-CHAIN-ID": ""}, b'["666"]')
        node, fake = a_node(place, {"POST /view": strange})
        with node:
            node.table_item(HANDLE, **ITEM, ledger_version=500)  # the chain is known by now
            if many:
                assert fetch_views(node, COUNT, versions=[500], progress=False)["value"].tolist() == [666]
            else:
                assert node.view(COUNT, ledger_version=500).value == 666
            fake.routes["POST /view"] = counting
            assert node.view(COUNT, ledger_version=500).value == 500
        with a_node(place)[0] as node:
            assert node.view(COUNT, ledger_version=500).value == 500

    @pytest.mark.fault("an answer with another chain's headers", "rejected, and never cached for this chain")
    def test_an_answer_is_stored_under_its_own_chain_only(self, place):
        """An answer of another chain is not stored among those of the chain that was remembered."""
        node, _ = a_node(place)
        with node:
            node.view(COUNT, ledger_version=500)
            cache = NodeCache(node.url, node.cache)
            key = cache.key_of(node.prepare_view(COUNT, 501), node.info, node._connection.fingerprint)
            other = Answer(200, {**answer(["666"]).headers, "X-APTOS-CHAIN-ID": "77"}, b'["666"]')
            cache.store(key, other, version=501)
            assert cache.find([key]) == {}
            assert node.view(COUNT, ledger_version=501).value == 501

    def test_arguments_tell_calls_apart(self, place):
        """Another argument, another answer."""
        scaled = {"POST /view": lambda _, body: answer([str(int(body["arguments"][0]) * 2)])}
        node, fake = a_node(place, scaled)
        with node:
            calls = [node.view("0x1::m::scaled", arguments=[n], ledger_version=500).value for n in (1, 2, 1)]
        assert calls == [2, 4, 2]
        assert len(fake.sent("POST /view")) == 2

    def test_encodings_are_kept_apart(self, place):
        """BCS bytes are never read as JSON, or JSON as BCS."""
        both = {
            "POST /view": lambda _, body: (
                answer(["9"]) if not isinstance(body, bytes) else _bcs(b"\x01" + (9).to_bytes(8, "little"))
            )
        }
        for encoding in ("json", "bcs", "json", "bcs"):
            node, fake = a_node(place, both, encoding=encoding)
            with node:
                assert node.view(COUNT, ledger_version=500).value == 9
        assert fake.sent("POST /view") == []


def _bcs(body: bytes) -> Answer:
    headers = dict(answer(0).headers) | {"Content-Type": "application/x-bcs"}
    return Answer(200, headers, body)


class TestOffline:
    """Sessions without a node."""

    def kept(self, place, **options):
        node, _ = a_node(place, **options)
        with node:
            fetch_views(node, COUNT, versions="100:109", progress=False)
            node.table_item(HANDLE, **ITEM, ledger_version=105)

    def test_what_is_kept_is_answered(self, place):
        """Values, types, gas, versions and the head last seen, without a request."""
        self.kept(place)
        with offline(place) as node:
            assert node.ledger() == ledger()
            read = node.view(COUNT, ledger_version=109)
            assert (read.value, read.types, read.gas_used, read.ledger_version) == (109, ("u64",), 3, 109)
            assert node.table_item(HANDLE, **ITEM, ledger_version=105).value == 7
            frame = fetch_views(node, COUNT, versions="100:109", progress=False)
        assert frame["value"].tolist() == list(range(100, 110))
        assert frame["error_code"].isna().all()

    def test_the_head_is_the_one_last_seen(self, place):
        """A later session of the same node moves it."""
        self.kept(place)
        self.kept(place, head=ledger(2_000))
        with offline(place) as node:
            assert node.ledger().version == 2_000

    def test_a_miss_names_what_was_asked(self, place):
        """The version, the function, and what to do."""
        self.kept(place)
        with offline(place) as node:
            with pytest.raises(OfflineMiss, match=r"0x1::m\b.*\b999\b"):
                node.view(COUNT, ledger_version=999)
            with pytest.raises(OfflineMiss, match="without offline=True"):
                node.view(COUNT)
            with pytest.raises(OfflineMiss, match="'bob'"):
                node.table_item(HANDLE, **ITEM | {"key": "bob"}, ledger_version=105)
            for asked, ask in {
                "account 0x1": lambda: node.account("0x1"),
                "gas price": node.gas_price,
                "block of version 5": lambda: node.block(5),
                "transaction of version 5": lambda: node.transaction(5),
                "0x1::m::Purse": lambda: node.resource("0x7", "0x1::m::Purse", ledger_version=5),
                "": lambda: node.simulate(EntryFunction("0x1::m::pay"), sender="0xa11ce"),
            }.items():
                with pytest.raises(OfflineMiss, match=f"{asked}.*offline"):
                    ask()

    def test_misses_of_a_sweep_are_rows(self, place):
        """Cached reads have values, the others are rows that say so, in the order of the plan."""
        self.kept(place)
        with offline(place) as node:
            frame = fetch_views(node, COUNT, versions=[109, 110, 100, 999], progress=False)
        assert frame["ledger_version"].tolist() == [109, 110, 100, 999]
        assert frame["value"].isna().tolist() == [False, True, False, True]
        assert frame["error_code"].isna().tolist() == [True, False, True, False]
        assert set(frame["error_code"].dropna()) == {"unreachable"}
        texts = frame["error_message"].dropna().tolist()
        assert [text.partition(": this node is offline")[0].split()[-1] for text in texts] == ["110", "999"]

    def test_a_missed_row_says_what_was_asked(self, place):
        """Each call by its name, as a single read would."""
        self.kept(place)
        asked = {"key_type": ITEM["key_type"], "value_type": ITEM["value_type"]}
        with offline(place) as node:
            fetch_views(node, COUNT, versions="100:109", progress=False)  # its module is known from here on
            items = fetch_table_items(node, HANDLE, keys=["alice", "bob"], **asked, versions=[105], progress=False)
            views = fetch_views(node, ViewFunction("0x1::m::scaled", arguments=[3]), versions=[105], progress=False)
        assert items["error_message"].isna().tolist() == [True, False]
        assert items["error_message"][1].startswith(
            "item 'bob' of table 0xabc at version 105: this node is offline and the"
        )
        assert views["error_message"][0].startswith("view 0x1::m::scaled at version 105: this node is offline and the")

    def test_a_node_that_was_never_asked_is_told_apart(self, place):
        """An empty file: connect once without offline."""
        with (
            offline(place) as node,
            pytest.raises(OfflineMiss, match="http://node"),
        ):
            node.ledger()

    def test_without_a_cache_nothing_is_known(self):
        """`cache=None` and offline together answer nothing, clearly."""
        with offline(None) as node, pytest.raises(OfflineMiss):
            node.view(COUNT, ledger_version=5)

    def test_simulations_and_transactions_are_misses(self, place):
        """Pages of transactions are not cached, because they may reach the head: each version is a row that says so."""
        self.kept(place)
        with offline(place) as node:
            batch = fetch_simulations(
                node, [SimulationRequest(EntryFunction("0x1::m::pay"), sender="0xa11ce")], progress=False
            )
            assert isinstance(batch.results[0], OfflineMiss)
            missed = fetch_transactions(node, versions="100:109", progress=False).transactions
            assert missed["ledger_version"].tolist() == list(range(100, 110))
            assert missed["error_message"].str.startswith("transactions 100 to 109: this node is offline").all()

    def test_kept_refusals_stay_refusals(self, place):
        """A missing item is missing offline too, and not a miss."""
        with a_node(place, {TABLE: refused(404, "table_item_not_found", "no", head=ledger())})[0] as node:
            with pytest.raises(NotFound):
                node.table_item(HANDLE, **ITEM, ledger_version=105)
            node.ledger()
        with offline(place) as node, pytest.raises(NotFound, match="table_item_not_found"):
            node.table_item(HANDLE, **ITEM, ledger_version=105)

    def test_an_error_that_was_seen_is_a_miss(self, place):
        """A 400 was not kept: offline it is a miss, never a guess."""
        node, _ = a_node(place, {"POST /view": refused(400, "invalid_input", head=ledger())})
        with node, pytest.raises(InvalidRequest):
            node.view(COUNT, ledger_version=105)
        with offline(place) as node, pytest.raises(OfflineMiss):
            node.view(COUNT, ledger_version=105)


class TestThreads:
    """What two threads of one session must not do to one another."""

    def test_fresh_reads_are_those_of_their_own_thread(self, place):
        """While one thread requests everything again, another uses the cache."""
        node, fake = a_node(place)
        with node:
            node.view(COUNT, ledger_version=500)
            with node.fresh():
                other = Thread(target=node.view, args=(COUNT,), kwargs={"ledger_version": 500})
                other.start()
                other.join()
                assert len(fake.sent("POST /view")) == 1
                node.view(COUNT, ledger_version=500)
                assert len(fake.sent("POST /view")) == 2
            node.view(COUNT, ledger_version=500)
        assert len(fake.sent("POST /view")) == 2

    def test_fresh_blocks_can_be_nested(self, place):
        """The end of an inner block restores what the outer one asked for: no cache, and no repeats."""
        node, fake = a_node(place)
        with node:
            node.view(COUNT, ledger_version=500)
            with node.fresh(repeats=False):
                with node.fresh():
                    pass
                node.view(COUNT, ledger_version=500)
                assert len(fake.sent("POST /view")) == 2
                assert node._connection.here.repeats is False
            node.view(COUNT, ledger_version=500)
        assert len(fake.sent("POST /view")) == 2

    def test_requests_are_counted_per_thread(self):
        """A probe's number of requests has none of a sweep beside it."""
        connection = Connection(URL, FakeNode())
        other = Thread(target=get, args=(connection, ""), kwargs={"asked": "ledger"})
        other.start()
        other.join()
        before = connection.here.sent
        get(connection, "", asked="ledger")
        assert (before, connection.here.sent) == (0, 1)
