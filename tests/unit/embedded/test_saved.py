"""Ledgers in files: a loaded one answers and continues like the saved one, and a bad file is an error with its name."""

from __future__ import annotations

import hashlib
import itertools
import linecache
import logging
import os
import pickle
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
import requests

from toolkit import embedded
from toolkit.embedded import Ledger, Module, Resource, _saved, entry, script, signer, u64, view
from toolkit.embedded._contract import code_digest
from toolkit.embedded._history import History
from toolkit.errors import InputError
from toolkit.wire._on_chain import SUCCESS

ROOT = Path(__file__).resolve().parents[3]

APT = ["0x1::aptos_coin::AptosCoin"]
VERSIONS = (0, 233, 400, 599)
ACCOUNTS = ("0x1", "0xa11ce", "0xcafe", "0xfa17", "0x7ade7", "0xdead")
RESOURCES = (
    "0x1::account::Account",
    "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>",
    "0xcafe::registry::Names",
    "0xfa17::vault::Pool",
)
VIEWS = (
    ("0x1::coin::supply", APT, []),
    ("0xcafe::registry::record_of", [], ["alice"]),
    ("0xb00c::order_book::depth", [], []),
    ("0xfa17::vault::share_price", [], []),
    ("0xde5c::desk::quote", [], ["10"]),
    ("0xcafe::trial::greeting", [], []),
)


class Counter(Module, address="0xc0de"):
    """A contract of a user, with an event handle."""

    class Count(Resource):
        value: u64
        changes: embedded.EventHandle[u64]

    @entry
    def open(self, account: signer) -> None:
        self.move_to(account, Counter.Count(value=0, changes=self.new_event_handle(account)))

    @view
    def value(self, account: embedded.address) -> u64:
        return self.borrow(Counter.Count, account).value


class Faster(Counter, revision=2):
    """Its next version."""

    @view
    def value(self, account: embedded.address) -> u64:
        return 10 * self.borrow(Counter.Count, account).value


@script
def pay_twice(run, account: signer, receiver: embedded.address) -> None:
    """Pay two octas."""
    for _ in run.each(range(2)):
        run.use(embedded.Coin).transfer(embedded.APTOS_COIN, account, receiver, 1)


def reloaded(ledger, folder, **options):
    return Ledger.load(ledger.save(folder / "x.ledger"), **options)


def everyday(ledger):
    """Commit transactions of each kind that a ledger takes, and return what they did."""
    done = [
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", 5, sender="0xa11ce"),
        ledger.commit("0x1::aptos_account::transfer", "0x5eed", 5, sender="0xa11ce", fee_payer="0xb0b"),
        ledger.commit("0x1::aptos_account::transfer", "0xb0b", 10**18, sender="0xa11ce"),
        ledger.commit(pay_twice, "0xb0b", sender="0xa11ce"),
        ledger.set_features(disable=[91]),
        ledger.govern(schedule="v1.45.1", enable=[91]),
        ledger.fund("0xf00d"),
    ]
    return [(one.version, one.hash, one.vm_status, one.output.charges, one.timestamp_us) for one in done]


@pytest.fixture(scope="module", params=[None, 250], ids=["whole", "pruned"])
def pair(request, tmp_path_factory):
    """Return a seeded ledger and the one loaded from its file."""
    ledger = Ledger.with_history(versions=600, window=request.param)
    return ledger, reloaded(ledger, tmp_path_factory.mktemp("saved"))


def answers(url, ledger):
    """Yield status, headers and bytes of every read, at several versions."""
    with requests.Session() as session:

        def got(answer):
            names = sorted((name, text) for name, text in answer.headers.items() if name != "date")
            return answer.url.removeprefix(url), answer.status_code, names, answer.content

        def get(path, **query):
            return got(session.get(url + path, params=query, timeout=10))

        yield get("")
        yield get("/estimate_gas_price")
        for start in range(0, 600, 100):
            yield get("/transactions", start=start, limit=100)
        handle = ledger.view("0xcafe::registry::handle")[0][0]
        item = {"key_type": "0x1::string::String", "value_type": "0xcafe::registry::Record", "key": "alice"}
        for version in VERSIONS:
            yield get(f"/blocks/by_version/{version}", with_transactions=True)
            yield get(f"/transactions/by_version/{version}")
            for account in ACCOUNTS:
                yield get(f"/accounts/{account}", ledger_version=version)
                yield get(f"/accounts/{account}/modules", ledger_version=version)
                yield get(f"/accounts/{account}/resources", ledger_version=version)
                yield get(f"/accounts/{account}/balance/{APT[0]}", ledger_version=version)
                for tag in RESOURCES:
                    yield get(f"/accounts/{account}/resource/{tag}", ledger_version=version)
            for function, types, arguments in VIEWS:
                body = {"function": function, "type_arguments": types, "arguments": arguments}
                yield got(session.post(f"{url}/view?ledger_version={version}", json=body, timeout=10))
            place = f"{url}/tables/{handle}/item?ledger_version={version}"
            yield got(session.post(place, json=item, timeout=10))
        for account in ACCOUNTS:
            yield get(f"/accounts/{account}/transactions")
        for version in range(ledger.oldest_version, 600, 50):
            yield get(f"/transactions/by_hash/{ledger.transaction(version).hash}")
            yield get(f"/blocks/by_height/{ledger.block_of(version).height}")


def test_a_loaded_ledger_gives_every_answer_of_the_saved_one(pair):
    """All reads, byte for byte with their headers, at several versions: pruned ones and the head."""
    saved, loaded = pair
    assert (loaded.digest(), loaded.state, loaded.milestones) == (saved.digest(), saved.state, saved.milestones)
    assert (loaded.accounts, loaded.contracts) == (saved.accounts, saved.contracts)
    with embedded.serve(saved) as one, embedded.serve(loaded) as other:
        count = 0
        for expected, found in zip(answers(one, saved), answers(other, loaded), strict=True):
            assert found == expected
            count += found[1] == 200
    assert count > 100


def test_a_loaded_ledger_continues_like_the_saved_one(tmp_path):
    """The same transactions afterwards have the same hashes, gas and times, and give the same ledger; it can be saved again."""
    for window in (None, 60):
        saved = Ledger.with_history(versions=200, window=window)
        loaded = reloaded(saved, tmp_path)
        assert everyday(loaded) == everyday(saved)
        assert loaded.digest() == saved.digest()
        assert loaded.save(tmp_path / "a").read_bytes() == saved.save(tmp_path / "b").read_bytes()
        again = Ledger.load(tmp_path / "a")
        assert everyday(again) == everyday(saved)
        assert (again.oldest_version > 0) is (window is not None)


def test_settings_of_a_ledger_are_saved(tmp_path):
    """Chain id, seed, window, times and the two choices of a node; a seed of any sign."""
    ledger = Ledger(
        chain_id=9, seed=-3, window=30, block_time=timedelta(seconds=7), decoded_tables=False, enum_variants=True
    )
    loaded = reloaded(ledger, tmp_path)
    assert everyday(loaded) == everyday(ledger)
    assert loaded.state == ledger.state
    chain = loaded.chain
    settings = chain.settings
    assert (chain.chain_id, settings.window, settings.decoded_tables, settings.enum_variants) == (9, 30, False, True)
    assert chain.tables == ledger.chain.tables == {}


def test_contracts_of_a_user_are_needed_again(tmp_path):
    """A file has no code: classes are passed, of each published version; then old and new versions answer as before."""
    ledger = Ledger()
    ledger.publish(Counter)
    before = ledger.commit("0xc0de::counter::open", sender="0xb0b").version
    ledger.publish(Faster)
    file = ledger.save(tmp_path / "c.ledger")
    with pytest.raises(InputError, match=r"c\.ledger: .* 0xc0de::counter \(revision 1, 2\); pass"):
        Ledger.load(file)
    with pytest.raises(InputError, match=r": 0xc0de::counter \(revision 2\)"):
        Ledger.load(file, contracts=[Counter])
    with pytest.raises(InputError, match=r"^contracts .*\b5$"):
        Ledger.load(file, contracts=[5])
    with pytest.raises(InputError, match=r"contracts="):
        Ledger.load(file, contracts=Faster)
    loaded = Ledger.load(file, contracts=[Faster])  # extends Counter
    for version in (before, loaded.head):
        expected = ledger.view("0xc0de::counter::value", ["0xb0b"], version=version)
        assert loaded.view("0xc0de::counter::value", ["0xb0b"], version=version) == expected
    assert everyday(loaded) == everyday(ledger)


def jar(total: str, base: str = "Module, address='0x7195'") -> type[Module]:
    """Return a contract like one of a notebook's cell, with the body of its view."""
    source = (
        f"from toolkit.embedded import *\nclass Jar({base}):\n    @view\n    def total(self) -> u64:\n        {total}\n"
    )
    name = f"<cell {hashlib.sha256(source.encode()).hexdigest()}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    scope = {"__name__": "__main__"}
    exec(compile(source, name, "exec", dont_inherit=True), scope)  # noqa: S102 - what a notebook does
    return scope["Jar"]


@pytest.mark.parametrize("other", ["return 0", "return 7 - 1", "return self.FIVE\n    FIVE = 6"])
def test_a_class_with_other_code_is_not_loaded(tmp_path, other):
    """ABI and revision are the same, and the answers would differ."""
    ledger = Ledger()
    ledger.publish(jar(other.replace("6", "5") if "FIVE" in other else "return 7"))
    file = ledger.save(tmp_path / "c.ledger")
    with pytest.raises(InputError, match=r"c\.ledger: the class for 0x7195::jar revision"):
        Ledger.load(file, contracts=[jar(other)])


def test_comments_and_layout_are_not_other_code(tmp_path):
    """The class of the notebook that is run again is another object with the same code."""
    ledger = Ledger()
    ledger.publish(jar("return 7"))
    file = ledger.save(tmp_path / "c.ledger")
    again = jar("# Text.\n\n        return  7  # seven")
    assert Ledger.load(file, contracts=[again]).view("0x7195::jar::total")[0] == [7]


def test_a_class_brings_the_classes_that_it_replaced(tmp_path):
    """A notebook gives both versions the same name, so the first can no longer be passed."""
    ledger = Ledger()
    before = ledger.publish(jar("return 7")).version
    poll = jar("return 8", base="Module, address='0x7195', revision=2")
    ledger.publish(poll)
    loaded = reloaded(ledger, tmp_path, contracts=[poll])
    assert loaded.view("0x7195::jar::total")[0] == [8]
    assert loaded.view("0x7195::jar::total", version=before)[0] == [7]
    fresh = jar("return 8", base="Module, address='0x7195', revision=2")
    with pytest.raises(InputError, match=r": 0x7195::jar \(revision 1\)"):
        Ledger.load(tmp_path / "x.ledger", contracts=[fresh])


def test_the_digest_of_a_class_does_not_depend_on_what_it_replaced():
    """The classes of histories are hashed when they are first needed, which may be before or after they are published."""
    ledger = Ledger()
    ledger.publish(jar("return 7"))
    after = jar("return 8", base="Module, address='0x7195', revision=2")
    before = code_digest.__wrapped__(after)
    ledger.publish(after)
    assert len(after.replaced) == 1
    assert code_digest.__wrapped__(after) == before


def test_a_history_in_the_cache_is_used_by_the_next_process(tmp_path):
    """The process that stores it has upgraded the contracts itself; the one that loads it has not."""
    program = "from toolkit import embedded; print(embedded.Ledger.with_history(versions=200, cache=True).head)"
    environment = os.environ | {"LEDGER_TOOLKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert (done.stdout, done.stderr) == ("199\n", "")
    assert len(list(tmp_path.rglob("history-*"))) == 1


def test_a_subclass_of_ledger_loads_its_own_kind(tmp_path):
    """`load` and `with_history` are of the class that they are called on."""

    class School(Ledger):
        pass

    assert type(School.load(Ledger().save(tmp_path / "x"))) is School


def test_a_ledger_with_an_open_block_is_not_saved(tmp_path):
    """The message says when to save; nothing is written."""
    ledger = Ledger()
    with ledger.block(), pytest.raises(InputError, match="block"):
        ledger.save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault(
    "a saved ledger that is missing, foreign, truncated, or from another release",
    "`InputError` with the file and the reason",
)
def test_a_file_that_cannot_be_used_is_an_error_with_its_name(tmp_path):
    """No folder, no file, a folder, a file of something else, of another release, cut short."""
    ledger = Ledger()
    with pytest.raises(InputError, match=r"no.x: .*\(No such file"):
        ledger.save(tmp_path / "no" / "x")
    with pytest.raises(InputError, match="cannot read the ledger"):
        Ledger.load(tmp_path / "x")
    with pytest.raises(InputError, match="cannot read the ledger"):
        Ledger.load(tmp_path)
    file = ledger.save(tmp_path / "x")
    data = file.read_bytes()
    for changed, text in (
        (b"", "not written by Ledger.save"),
        (b"PAR1" + data, "not written by Ledger.save"),
        (
            data.replace(b"ledger 1\n", b"ledger 2\n", 1),
            "format of another release .*rebuild the ledger and save it again",
        ),
        (data[:40], "damaged"),
        (data[:-1], "damaged"),
        (data + b"\0", "damaged"),
    ):
        file.write_bytes(changed)
        with pytest.raises(InputError, match=text) as caught:
            Ledger.load(file)
        assert str(file) in str(caught.value)


def signed(content: bytes) -> bytes:
    """Return a file with a content and its right digest, as only somebody who knows the format makes it."""
    return _saved._MARK + hashlib.sha256(content).digest() + content


def test_a_transaction_keeps_how_it_ended(tmp_path):
    """Also one that failed: code, place and name of its abort."""
    saved = Ledger()
    done = saved.commit("0x1::aptos_account::transfer", "0xcafe", 10**18, sender="0xb0b", check=False)
    loaded = reloaded(saved, tmp_path)
    assert (done.output.status.kind, done.output.status.reason) == ("abort", "EINSUFFICIENT_BALANCE")
    assert loaded.transaction(done.version).output.status == done.output.status
    assert loaded.transaction(0).output.status == saved.transaction(0).output.status == SUCCESS


def test_a_file_from_before_the_first_release_is_an_error(tmp_path):
    """It has the same number, but whether a transaction succeeded in place of how it failed."""
    file = Ledger().save(tmp_path / "x")
    whole = msgspec.msgpack.decode(file.read_bytes()[len(_saved._MARK) + 32 :])
    whole[-1][0][3] = True
    file.write_bytes(signed(msgspec.msgpack.encode(whole)))
    with pytest.raises(InputError, match=r"does not contain a complete ledger: .*got `bool`"):
        Ledger.load(file)


@pytest.mark.fault("a saved ledger made by an attacker, with a valid digest", "`InputError`; no code runs")
def test_a_hostile_file_runs_nothing_and_is_an_error(tmp_path):
    """With the right digest too: code of pickle, nesting without end, places that do not exist, values of other types."""

    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    file = Ledger().save(tmp_path / "x")
    whole = msgspec.msgpack.decode(file.read_bytes()[len(_saved._MARK) + 32 :])
    contents = [pickle.dumps(Evil()), b"\x91" * 100_000, b"\xc1", b"", msgspec.msgpack.encode({"a": 1})]
    chaos = random.Random(5)
    wrong = (None, -1, 2**63, "x", b"x", [], [[]], {}, [None], [[5, [99]]], [["a", "b", b"c"]])
    contents += [
        msgspec.msgpack.encode([*whole[:place], value, *whole[place + 1 :]])
        for place, value in itertools.product(range(len(whole)), wrong)
    ]
    packed = msgspec.msgpack.encode(whole)
    for _ in range(300):
        at = chaos.randrange(len(packed))
        contents.append(packed[:at] + bytes([chaos.randrange(256)]) + packed[at + 1 :])
    refusals = []
    for content in contents:
        file.write_bytes(signed(content))
        try:
            Ledger.load(file)
        except InputError as error:
            refusals.append(str(error))
    assert len(refusals) > 100
    assert all(text.startswith(str(file)) for text in refusals)
    assert not (tmp_path / "ran").exists()


INCONSISTENT = {
    "published": ([], "length >= 1"),
    "blocks": ([], "length >= 1"),
    "chain_id": (0, ">= 1"),
    "window": (0, ">= 1"),
    "epoch_us": (0, ">= 1"),
    "genesis_time_us": (-1, ">= 0"),
    "next_time_us": (-1, ">= 0"),
    "block_us": (-1, ">= 0"),
}


@pytest.mark.parametrize("field", [*INCONSISTENT, "chain_id 256", "window -1", "versions", "heights", "timestamp"])
def test_a_file_whose_parts_do_not_agree_is_an_error(tmp_path, field):
    """The digest is right; the message says which part is wrong."""
    ledger = Ledger()
    everyday(ledger)
    file = ledger.save(tmp_path / "x")
    fields = [*_saved._Content.__struct_fields__]
    settings = _saved.Settings.__struct_fields__
    whole = dict(zip(fields, msgspec.msgpack.decode(file.read_bytes()[len(_saved._MARK) + 32 :]), strict=True))
    name, _, number = field.partition(" ")
    if field in INCONSISTENT or number:
        value, text = (int(number), "Expected `int`") if number else INCONSISTENT[field]
        if name in settings:
            whole["settings"][settings.index(name)] = value
        else:
            whole[name] = value
    else:
        place = {"heights": 0, "timestamp": 2, "versions": 4}[field]
        whole["blocks"][1][place] = -1 if field == "timestamp" else whole["blocks"][1][place] + 1
        text = ">= 0" if field == "timestamp" else "its blocks are not consecutive"
    file.write_bytes(signed(msgspec.msgpack.encode([*whole.values()])))
    with pytest.raises(InputError, match=f"does not contain a complete ledger: .*{text}") as caught:
        Ledger.load(file)
    assert str(file) in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"chain_id": 0},
        {"chain_id": 256},
        {"epoch_time": timedelta(0)},
        {"block_time": timedelta(seconds=-1)},
        {"genesis_time": datetime(1969, 12, 31, tzinfo=UTC)},
    ],
)
def test_a_ledger_has_no_settings_that_a_file_cannot_have(options):
    """So what can be saved can be loaded."""
    with pytest.raises(InputError, match=next(iter(options))):
        Ledger(**options)


# -- the cache of histories ------------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return an empty cache folder that does not exist yet."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("LEDGER_TOOLKIT_CACHE", str(folder))
    return folder


@pytest.fixture
def builds(monkeypatch):
    """Return the versions of the histories that are built."""
    built = []

    class Counted(History):
        def __init__(self, ledger, seed, versions):
            super().__init__(ledger, seed, versions)
            built.append(versions)

    monkeypatch.setattr("toolkit.embedded._history.History", Counted)
    return built


def test_a_history_is_built_once(cache, builds):
    """The second one is read: the same ledger; other seeds, lengths, windows and nodes have their own; without cache=True none."""
    first, second = (Ledger.with_history(versions=300, cache=True) for _ in range(2))
    assert builds == [300]
    assert first.digest() == second.digest() == Ledger.with_history(versions=300).digest()
    assert everyday(first) == everyday(second)
    del builds[:]
    Ledger.with_history(versions=200, cache=True)
    Ledger.with_history(8, 200, cache=True)
    Ledger.with_history(versions=200, window=50, cache=True)
    Ledger.with_history(versions=200, decoded_tables=False, cache=True)
    assert builds == [200] * 4
    with pytest.raises(InputError, match="at least 200"):
        Ledger.with_history(versions=5, cache=True)
    assert len(list(cache.iterdir())) == 5


def test_another_release_does_not_read_the_file(cache, builds, monkeypatch):
    """The sources are part of the name: after a change of one of them the history is built."""
    Ledger.with_history(versions=200, cache=True)
    monkeypatch.setattr(_saved, "_sources_digest", lambda: "other sources")
    Ledger.with_history(versions=200, cache=True)
    assert builds == [200, 200]


def test_the_digest_of_the_sources_covers_contracts_and_schedules(tmp_path, monkeypatch):
    """A changed contract, a changed table of gas schedules or a changed encoding gives another digest."""
    for name in ("embedded/framework/a.py", "embedded/data/b.csv", "move/c.py", "wire/d.py", "gas/e.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    monkeypatch.setattr(_saved, "__file__", str(tmp_path / "embedded" / "_saved.py"))
    digest = _saved._sources_digest.__wrapped__
    seen = {digest()}
    for name in ("embedded/framework/a.py", "embedded/data/b.csv", "move/c.py", "wire/d.py"):
        (tmp_path / name).write_text("2")
        seen.add(digest())
    (tmp_path / "gas/e.py").write_text("2")
    assert digest() in seen
    assert len(seen) == 5


@pytest.mark.fault("a damaged history in the cache", "rebuilt and replaced, with a log entry")
@pytest.mark.parametrize("damage", ["flipped", "cut", "foreign", "folder"])
def test_a_damaged_file_is_replaced(cache, builds, caplog, damage):
    """The history is built again, a line in the log says why, and the next one is read."""
    expected = Ledger.with_history(versions=200, cache=True).digest()
    (file,) = cache.iterdir()
    data = file.read_bytes()
    file.unlink()
    if damage == "folder":
        file.mkdir()
    else:
        changed = {"flipped": data[:500] + bytes([data[500] ^ 1]) + data[501:], "cut": data[:9999], "foreign": b"mine"}
        file.write_bytes(changed[damage])
    with caplog.at_level(logging.WARNING, "toolkit.embedded"):
        assert Ledger.with_history(versions=200, cache=True).digest() == expected
    assert len(caplog.messages) == 1
    assert str(file) in caplog.text
    assert "being rebuilt" in caplog.text
    if damage != "folder":
        assert file.read_bytes() == data
        Ledger.with_history(versions=200, cache=True)
    assert builds == [200, 200]


@pytest.mark.fault(
    "a cache folder that cannot be written, or no home directory", "the history is built, without a warning"
)
def test_without_a_folder_to_write_to_it_works(tmp_path, monkeypatch, builds, caplog):
    """A file where the folder has to be, and no home: the ledger is built, without a warning."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LEDGER_TOOLKIT_CACHE", str(tmp_path / "file" / "below"))
    caplog.set_level(logging.WARNING)
    assert Ledger.with_history(versions=200, cache=True).head == 199

    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(_saved, "cache_folder", homeless)
    assert Ledger.with_history(versions=200, cache=True).head == 199
    assert builds == [200, 200]
    assert not caplog.messages


@pytest.mark.fault("several processes cache the history at once", "one complete file")
def test_writers_at_the_same_time_leave_one_whole_file(cache):
    """Each writes a file of its own and moves it into its place."""
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: Ledger.with_history(versions=200, cache=True).digest(), range(4)))
    assert len(set(found)) == 1
    (file,) = cache.iterdir()
    assert Ledger.load(file).digest() == found[0]


def test_old_histories_are_removed(cache, monkeypatch):
    """Each release and seed has a file: those that were not used for longest go."""
    monkeypatch.setattr(_saved, "_MAX_CACHED_FILES", 2)
    ledger = Ledger.with_history(versions=200, cache=True)
    (used,) = cache.iterdir()
    (cache / "answers-2.sqlite3").write_text("of the answers")
    for age in range(3):
        os.utime(ledger.save(cache / f"history-{age}.ledger"), (age, age))
    os.utime(used, (0, 0))
    Ledger.with_history(versions=200, cache=True)
    Ledger.with_history(8, 200, cache=True)
    names = {path.name for path in cache.iterdir()}
    assert len(names) == 3
    assert {"answers-2.sqlite3", used.name} < names
