"""An archive of the seeded ledger: the same frames as from the node, SQL over it, and syncs that continue."""

from __future__ import annotations

import json
import multiprocessing
import time

import pandas as pd
import pytest

import toolkit
from tests.integration.killed_syncs import EVENTS, TABLES, VIEWS, content, killed, started
from toolkit import embedded
from toolkit._present.tables import json_rows
from toolkit.dtypes import to_arrow
from toolkit.errors import InputError, LedgerChanged, NodeUnreachable, RunStopped

FEES = EVENTS["fees"]
LAST = 2_299


@pytest.fixture(scope="module")
def folder(url, tmp_path_factory):
    """Return an archive of every kind of table, in three syncs that end inside and at the end of a file."""
    place = tmp_path_factory.mktemp("archive")
    with toolkit.connect(url, cache=None) as node:
        toolkit.sync(node, place, "0:749", tables=TABLES, events=EVENTS, views=VIEWS, partition=500, progress=False)
        toolkit.sync(node, place, f"0:{999}", progress=False)
        toolkit.sync(node, place, f"900:{LAST}", progress=False)
    return place


@pytest.fixture
def archive(folder):
    return toolkit.Archive(folder)


@pytest.fixture(scope="module")
def frames(url):
    with toolkit.connect(url) as node:
        yield toolkit.fetch_transactions(node, f"0:{LAST}", progress=False)


def test_frames_are_those_of_the_node(archive, frames, node):
    """Read directly, over the fetch functions, and page by page over the node that the archive stands for."""
    found = toolkit.fetch_transactions(archive, "0:-1")
    served = toolkit.fetch_transactions(archive.node, "0:-1", progress=False)
    for name in ("transactions", "changes", "events", "balance_changes"):
        pd.testing.assert_frame_equal(getattr(found, name), getattr(frames, name))
        pd.testing.assert_frame_equal(getattr(served, name), getattr(frames, name))
        assert getattr(found, name).attrs == getattr(frames, name).attrs
    some = toolkit.fetch_transactions(node, [3, 1_500], progress=False)
    pd.testing.assert_frame_equal(archive.transactions([3, 1_500]).changes, some.changes)


@pytest.mark.parametrize("versions", ["0:-1", "400:1500:7", "2026-02-01..2026-03-01"])
def test_events_are_typed_without_a_node(archive, node, versions):
    """Modules are those that the archived transactions published; a plan by time uses their times."""
    plan = versions.replace("-1", str(LAST)) if versions == "0:-1" else versions
    expected = toolkit.fetch_events(node, FEES, plan, progress=False)
    expected = expected[expected["ledger_version"] <= LAST]
    assert len(expected) > 20
    with pytest.raises(InputError, match=r"did you mean .*FeeStatement"):
        archive.events_of(FEES.removesuffix("t"), versions)
    pd.testing.assert_frame_equal(archive.events_of(FEES, versions), expected.reset_index(drop=True), check_like=False)


def test_tables_of_events_and_views_are_typed(archive, node):
    """As the fetch functions type them; views at every hundredth version."""
    fees = archive.scan("fees").to_table().to_pandas()
    expected = toolkit.fetch_events(node, FEES, f"0:{LAST}", progress=False)
    assert fees["storage_fee_octas"].tolist() == expected["storage_fee_octas"].tolist()
    clock = archive.sql("select ledger_version, value from clock order by 1")
    wanted = toolkit.fetch_views(node, VIEWS["clock"], f"0:{LAST}:100", progress=False)
    assert clock["value"].tolist() == wanted["value"].tolist()
    assert str(clock["value"].dtype) == "uint64[pyarrow]"


def test_sql_is_exact(archive, frames):
    """Sums are 128 bits wide and exact; so is the largest u128; balances add up as decimals."""
    found = archive.sql(
        "select sum(gas_used) as gas, max(340282366920938463463374607431768211455::uhugeint) as top from transactions"
    )
    assert (found["gas"].tolist(), str(found["gas"].dtype)) == (
        [toolkit.exact_sum(frames.transactions["gas_used"])],
        "i128",
    )
    assert found["top"].tolist() == [2**128 - 1]
    moved = archive.sql("select sum(change) as change from balances")["change"].tolist()
    assert moved == [toolkit.exact_sum(frames.balance_changes["change"])]
    last = archive.sql("select max(timestamp) as t from transactions")["t"][0]
    assert last == frames.transactions["timestamp"].max()
    with pytest.raises(InputError, match=r"DuckDB rejects the query: .*nowhere") as refused:
        archive.sql("from nowhere")
    assert "\\n" not in str(refused.value)  # DuckDB's lines are one line


@pytest.mark.parametrize("kind", ["archive", "node"])
def test_a_plan_without_versions_gives_the_same_columns_without_rows(archive, node, tmp_path, kind):
    source = archive if kind == "archive" else node
    for read in (
        lambda versions: toolkit.fetch_transactions(source, versions, progress=False).changes,
        lambda versions: toolkit.fetch_events(source, FEES, versions, progress=False),
    ):
        none, some = read([]), read("100:200")
        assert len(none) == 0 < len(some)
        assert none.dtypes.equals(some.dtypes)
    with pytest.raises(InputError, match="no gaps"):
        toolkit.sync(node, tmp_path, [], progress=False)


@pytest.mark.parametrize("kind", ["archive", "node"])
def test_versions_of_an_iterator_are_read(archive, node, kind):
    source = archive if kind == "archive" else node
    found = toolkit.fetch_transactions(source, iter([3, 1_500]), progress=False).transactions
    assert found["ledger_version"].tolist() == [3, 1_500]


def test_sql_shows_times_and_types_of_duckdb(archive, frames):
    """A difference of times is a duration; what Arrow or pandas cannot hold is text; months are refused."""
    times = frames.transactions["timestamp"]
    found = archive.sql(
        "select max(timestamp) - min(timestamp) as took, [interval 1 day] as days, union_value(a := 1) as either, "
        "[340282366920938463463374607431768211455::uhugeint] as wide from transactions"
    )
    assert found["took"].tolist() == [times.max() - times.min()]
    assert found.iloc[0, 1:].tolist() == ["[1 day]", "1", f"[{2**128 - 1}]"]
    assert "days" in found.to_html()
    assert json_rows(to_arrow(found))[0]["took"] == str((times.max() - times.min()).to_pytimedelta())
    with pytest.raises(InputError, match="'span'"):
        archive.sql("select age(max(timestamp), min(timestamp)) as span from transactions")
    with pytest.raises(InputError, match="NoneType"):
        archive.sql(None)


@pytest.mark.parametrize(
    ("condition", "warned"),
    [
        ("function like '0xcafe::registry%'", r"write address\('0xcafe'\) \|\| '::registry%'"),
        ("sender = '0xA11CE'", r"write address\('0xA11CE'\)"),
        ("function like address('0xcafe') || '::registry%'", None),
        ("function like '0x1::%'", None),
    ],
)
def test_sql_with_a_short_address_warns(archive, condition, warned):
    """A filter that matches nothing, because addresses have 64 digits, is not silent."""
    query = f"select * from transactions where {condition}"  # noqa: S608
    if warned is None:
        assert len(archive.sql(query)) > 0
    else:
        with pytest.warns(UserWarning, match=warned):
            assert len(archive.sql(query)) == 0


def test_state_and_files_agree(archive, folder, frames):
    """What the manifest counts is in the files, once, in order."""
    state = archive.state().set_index("table")
    assert state.loc["transactions", ["rows", "first_version", "last_version", "files"]].tolist() == [2_300, 0, LAST, 5]
    rows = content(folder)
    assert {name: len(found) for name, found in rows.items()} == state["rows"].to_dict()
    versions = [dict(row)["ledger_version"] for row in rows["changes"]]
    assert versions == sorted(versions) == frames.changes["ledger_version"].tolist()
    assert "rows: transactions 2,300, events" in repr(archive)


def test_a_study_of_an_archive_is_that_of_the_node(archive, node):
    """The same rows, steps and causes: the archive has the gas schedules, modules and flags that were written."""
    calls = {"paid": {"committed": "0x1::aptos_account::transfer", "versions": f"0:{LAST}"}}
    one, other = (
        toolkit.Study(node=where, calls=calls, versions="0:0").run(progress=False) for where in (node, archive)
    )
    assert len(one.steps) > 0
    assert other.digest == one.digest
    assert other.steps["explanation"].tolist() == one.steps["explanation"].tolist()
    assert other.timeline.drop(columns="node").equals(one.timeline.drop(columns="node"))


def test_state_is_served_as_far_as_it_is_known(archive, node, url, tmp_path):
    """What was never written does not exist in a whole archive; in a later one that is not known without a node."""
    expected = toolkit.fetch_resources(node, "0x1", "0x1::block::BlockResource", "5:1505:300", progress=False)
    found = toolkit.fetch_resources(archive, "0x1", "0x1::block::BlockResource", "5:1505:300", progress=False)
    assert found["height"].tolist() == expected["height"].tolist()
    assert archive.node.at(100).resource("0x1", "0x1::chain_id::ChainId") == {"id": 4}
    with pytest.raises(toolkit.NotFound):
        archive.node.at(100).resource("0x1", "0x1::coin::Nothing")
    with pytest.raises(toolkit.NodeError, match="an archive serves only transactions"):
        archive.node.view("0x1::chain_id::get")
    later = toolkit.sync(node, tmp_path, "1000:1200", progress=False)
    with pytest.raises(toolkit.VersionPruned, match=r"version 1,000, .* and 1,100; pass node="):
        toolkit.Archive(tmp_path).node.at(1_100).resource("0x1", "0x1::chain_id::ChainId")
    assert later.node.at(1_100).resource("0x1", "0x1::chain_id::ChainId") == {"id": 4}
    assert later.node.at(1_100).view("0x1::chain_id::get").value == 4
    with pytest.raises(toolkit.VersionPruned, match="pass node="):
        toolkit.Archive(tmp_path).events_of(FEES)
    assert later.events_of(FEES)["execution_gas_units"].sum() > 0


def test_a_second_sync_reads_new_versions_only(url, tmp_path):
    """Counted by the pages that it expects and by what the node is asked for."""
    seen = []
    with toolkit.connect(url, cache=None) as node:
        for versions in ("0:549", "0:749", "0:749"):
            toolkit.sync(node, tmp_path, versions, partition=500, progress=lambda _, done, of: seen.append((done, of)))
    assert [one for one in seen if one[0] == one[1]] == [(6, 6), (2, 2)]


def test_a_node_that_goes_away_leaves_what_was_stored(tmp_path):
    """The error says what is stored; another address of the same ledger continues."""
    ledger = embedded.Ledger.with_history(seed=7, versions=1_000, cache=True)
    server = embedded.start(ledger)

    def stop(_, done, __):
        if done == 6:
            server.stop()

    with toolkit.connect(server.url, cache=None, timeout_s=2) as node, pytest.raises(NodeUnreachable) as caught:
        toolkit.sync(node, tmp_path, partition=200, progress=stop)
    last = int(toolkit.Archive(tmp_path).state()["last_version"][0])
    assert last in {199, 399, 599}
    assert f"0 to {last:,}." in " ".join(caught.value.__notes__)
    with embedded.serve(ledger) as again, toolkit.connect(again, cache=None) as node:
        toolkit.sync(node, tmp_path, progress=False)
    assert [dict(row)["ledger_version"] for row in content(tmp_path)["transactions"]] == list(range(1_000))


def test_another_ledger_is_refused(node, tmp_path, monkeypatch):
    """Amid a sync before anything of it is stored, and by a later sync before anything is read."""
    monkeypatch.setattr("toolkit.client._reads._PAUSES_S", ())

    def changed(self):
        if self._known.anchor.version == 399:
            raise LedgerChanged("another ledger")

    with monkeypatch.context() as patch:
        patch.setattr("toolkit.client._reads.LedgerGuard.check", changed)
        with pytest.raises(LedgerChanged):
            toolkit.sync(node, tmp_path, "0:999", partition=200, progress=False)
    assert toolkit.Archive(tmp_path).state()["last_version"].tolist()[0] == 399
    other = embedded.Ledger.with_history(seed=8, versions=400, cache=True)
    with embedded.serve(other) as url, toolkit.connect(url, cache=None) as there:
        before = (tmp_path / "archive.json").read_bytes()
        with pytest.raises(InputError, match=r"does not match the node \(.*expected transaction 399 to be"):
            toolkit.sync(there, tmp_path, progress=False)
        assert (tmp_path / "archive.json").read_bytes() == before


def test_a_full_disk_stops_a_sync_that_continues_later(url, tmp_path, monkeypatch):
    """At each file of the second partition: the first is whole, and nothing is lost or doubled afterwards."""
    import toolkit.archive._files as stored

    write = stored.write_table
    with toolkit.connect(url, cache=None) as node:
        whole = content(toolkit.sync(node, tmp_path / "whole", "0:449", partition=150, progress=False).path)
        for at in (4, 5, 6):
            count, place = iter(range(100)), tmp_path / str(at)

            def full(table, file, at=at, count=count):
                if next(count) >= at - 1:
                    file.write(b"PAR1")
                    raise OSError(28, "No space left on device")
                write(table, file)

            monkeypatch.setattr(stored, "write_table", full)
            with pytest.raises(RunStopped, match=r"No space left on device\nThe archive contains versions 0 to 149\."):
                toolkit.sync(node, place, "0:449", partition=150, progress=False)
            monkeypatch.undo()
            assert toolkit.Archive(place).transactions("0:-1").transactions["ledger_version"].tolist() == list(
                range(150)
            )
            toolkit.sync(node, place, "0:449", progress=False)
            assert content(place) == whole


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_file_that_was_just_replaced_is_read_as_before(url, tmp_path, monkeypatch, moves):
    """A sync that is killed between the files of a partition: the manifest names the old files and the new ones."""
    from toolkit.archive._files import LocalFiles

    put, count = LocalFiles.put, iter(range(100))

    def stopped(self, staged, name):
        if next(count) == moves:
            raise KeyboardInterrupt
        put(self, staged, name)

    with toolkit.connect(url, cache=None) as node:
        before = toolkit.sync(node, tmp_path / "broken", "0:120", progress=False)
        kept, lazy = before.transactions("0:-1"), before.scan("events")
        monkeypatch.setattr(LocalFiles, "put", stopped)
        with pytest.raises(KeyboardInterrupt):
            toolkit.sync(node, tmp_path / "broken", "0:180", progress=False)
        monkeypatch.undo()
        pd.testing.assert_frame_equal(before.transactions("0:-1").events, kept.events)
        assert before.sql("select count(*) as n from changes")["n"].tolist() == [len(kept.changes)]
        toolkit.sync(node, tmp_path / "broken", "0:200", progress=False)
        toolkit.sync(node, tmp_path / "whole", "0:200", progress=False)
    assert lazy.count_rows() == len(kept.events)  # a dataset from before the syncs still has the rows it had
    assert content(tmp_path / "broken") == content(tmp_path / "whole")


def test_killed_at_any_moment_nothing_is_lost_or_doubled(url, tmp_path):
    """kill -9 twice."""
    killed(url, tmp_path / "broken", 599, 100, 2, most_s=0.8, seed=2)
    options = {"tables": TABLES, "events": EVENTS, "views": VIEWS, "partition": 100, "progress": False}
    with toolkit.connect(url, cache=None) as node:
        for name in ("broken", "whole"):
            toolkit.sync(node, tmp_path / name, "0:599", **options)
    assert content(tmp_path / "broken") == content(tmp_path / "whole")
    assert [place.name for place in (tmp_path / "broken").rglob("*") if place.suffix in {".part", ".lock"}] == []


def test_workers_store_what_one_process_stores_even_if_they_are_killed(url, tmp_path):
    """A killed worker, then a killed driver, then other workers: rows and columns are those of an undisturbed sync.

    The files go through fsspec, and the driver's folder has the manifest alone.
    """
    # Partitions without a read of the view do not have its columns, which the driver adds.
    options = {"tables": TABLES, "events": EVENTS, "views": VIEWS, "every": 250, "partition": 100}
    broken, files = tmp_path / "broken", (tmp_path / "files").as_uri()

    def reached():
        return toolkit.Archive(broken, files=files).state()["last_version"][0]

    def kill(_, done, __):
        for worker in multiprocessing.active_children() if done else ():
            worker.kill()

    with toolkit.connect(url, cache=None) as node:
        whole = toolkit.sync(node, tmp_path / "whole", "0:549", **options, progress=False)
        with pytest.raises(RunStopped, match=r"a worker died(.|\n)*The archive contains versions 0 to \d*99\."):
            toolkit.sync(node, broken, "0:549", **options, files=files, executor="processes:2", progress=kill)
        before = reached()
        assert 99 <= before < 549
        process = started(url, broken, 549, 100, executor="processes:2", files=files)
        while reached() == before and process.poll() is None:
            time.sleep(0.05)
        process.kill()
        process.communicate()
        assert reached() > before
        again = toolkit.sync(node, broken, "0:549", files=files, executor="threads:3", progress=False)
    assert content(broken, files) == content(whole.path)
    for name in (*TABLES, *EVENTS, *VIEWS):
        assert again.scan(name).schema.equals(whole.scan(name).schema)
    assert [place.name for place in tmp_path.rglob("*") if place.suffix in {".part", ".lock"}] == []
    assert [place.name for place in broken.iterdir()] == ["archive.json"]


def test_an_object_store_has_what_a_folder_has(node, tmp_path, archive):
    """Files in memory, which stands for a store without folders and without renames."""
    fsspec = pytest.importorskip("fsspec", reason="needs fsspec, of the test extra")
    url = "memory://ledger/a [1]*"  # not a pattern
    for last, executor in (("749", None), ("1199", "threads:2")):
        found = toolkit.sync(node, tmp_path / "one", f"0:{last}", files=url, executor=executor, progress=False)
    query = "select sum(gas_used) as gas from transactions where ledger_version < 1200"
    assert found.sql(query).equals(archive.sql(query))
    frames, expected = found.transactions("0:-1"), archive.transactions("0:1199")
    pd.testing.assert_frame_equal(frames.events, expected.events)
    assert found.state()["files"].tolist() == [1, 1, 1]
    assert len(fsspec.filesystem("memory").store) == 3
    with pytest.raises(InputError, match="is not empty"):
        toolkit.sync(node, tmp_path / "two", "0:99", files=url, progress=False)
    with pytest.raises(InputError, match="files of the archive"):
        toolkit.sync(node, tmp_path / "one", files="memory://other", progress=False)
    fsspec.filesystem("memory").rm_file("/ledger/a [1]*/events/events__000000000000_to_000000009999.parquet")
    with pytest.raises(InputError, match=r"events__0.* is missing"):
        found.transactions("0:9")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ("https://user:secret@host/x", "expected a URL without credentials"),
        ("nosuch://x", "files nosuch://x: Protocol not known"),
    ],
)
def test_urls_of_stores_are_checked(node, tmp_path, files, message):
    with pytest.raises(InputError, match=message) as caught:
        toolkit.sync(node, tmp_path / "x", "0:9", files=files, progress=False)
    assert "secret" not in str(caught.value)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("versions", "options", "message"),
    [
        ("2400:2500", {}, r"versions 2,300 to 2,399 would be missing\. .* 0 to 2,299\."),
        ("0:-1:2", {}, "an archive has no gaps; expected a range"),
        (None, {"events": {"fees": "0x1::coin::CoinDeposit"}}, r"differ: table fees\. Its tables are"),
        (None, {"partition": 1_000}, r"differ: partition \(stored: 500\)"),
        (None, {"tables": ["blocks"]}, "tables: expected one or more of transactions, events, changes, balances"),
        (None, {"views": {"Fees": "0x1::chain_id::get"}, "events": EVENTS}, "'fees' is used twice"),
        (None, {"views": {"a b": "0x1::chain_id::get"}}, "a table name must be a letter, then .*, got 'a b'"),
    ],
)
def test_what_does_not_fit_the_archive_is_refused(folder, node, versions, options, message):
    """Before anything is read or written."""
    with pytest.raises(InputError, match=message):
        toolkit.sync(node, folder, versions, progress=False, **options)


def test_versions_before_the_archive_and_outside_of_it_are_refused(node, tmp_path):
    """It grows at its end only, and returns nothing for what it does not have."""
    with pytest.raises(InputError, match=r"not an archive: .*archive\.json \(No such file"):
        toolkit.Archive(tmp_path / "none")
    archive = toolkit.sync(node, tmp_path, "500:650", progress=False)
    with pytest.raises(InputError, match=r"can only grow at its end: begin at 500"):
        toolkit.sync(node, tmp_path, "400:700", progress=False)
    with pytest.raises(InputError, match=r"version 499 is not in the archive\. .* 500 to 650"):
        archive.transactions([499, 500])
    with pytest.raises(InputError, match=r"no table 'balances'; .*transactions, events, changes"):
        archive.scan("balances")
    (tmp_path / "archive.json").rename(tmp_path / "moved.json")
    with pytest.raises(InputError, match=r"but no archive\.json"):
        toolkit.sync(node, tmp_path, progress=False)


def test_two_writers_are_refused(url, tmp_path):
    """The second one, with the process of the first; after that one ends the folder is free."""
    import toolkit.archive._sync as syncs

    with (
        toolkit.connect(url, cache=None) as node,
        syncs.Folder(tmp_path).locked(),
        pytest.raises(InputError, match="in use by another sync"),
    ):
        toolkit.sync(node, tmp_path, "0:9", progress=False)
    with toolkit.connect(url, cache=None) as node:
        assert len(toolkit.sync(node, tmp_path, "0:9", progress=False).state()) == 3


def test_damage_is_an_error_not_an_answer(node, tmp_path):
    """A missing file, a changed byte, a manifest of another program."""
    archive = toolkit.sync(node, tmp_path, "0:399", partition=200, progress=False)
    [first, second] = sorted((tmp_path / "changes").iterdir())
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    with pytest.raises(InputError, match="cannot be read"):
        archive.transactions("0:-1")
    second.unlink()
    with pytest.raises(InputError, match=r"changes__000000000200_to_000000000399\.parquet is missing"):
        archive.state()
    (tmp_path / "archive.json").write_text(json.dumps({"format": 2}))
    with pytest.raises(InputError, match="is not an archive manifest of format 1"):
        archive.state()


def test_without_duckdb_sql_names_the_extra(archive, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    with pytest.raises(InputError, match=r"pip install 'ledger-toolkit\[archive\]'"):
        archive.sql("from transactions")


def test_commands_sync_and_query(command, url, tmp_path):
    """The same command extends the folder; a query prints a table or writes a file."""
    words = ("sync", url, "--out", "a", "--event", f"fees={FEES}", "--quiet")
    first = command(*words, "--versions", "0:199", cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    again = command(*words, "--versions", "0:299", "--json", cwd=tmp_path)
    assert [row["last_version"] for row in json.loads(again.stdout)["tables"]] == [299] * 4
    found = command("sql", "a", "select count(*) as n from fees", "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["rows"] == [{"n": len(toolkit.Archive(tmp_path / "a").events_of(FEES))}]
    written = command("sql", "a", "from events", "--out", "events.parquet", cwd=tmp_path)
    assert "rows, all read: events.parquet" in written.stdout
    wrong = command("sync", url, "--out", "a", "--view", "fees", cwd=tmp_path)
    assert (wrong.returncode, "expected NAME=VALUE" in wrong.stderr) == (2, True)
