"""Archives that somebody else wrote, bent or put there, and nodes that fail for a moment while one is synced."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import toolkit
from toolkit.errors import InputError, NodeUnreachable, ToolkitError

MINE = pa.table({"mine": [1]})
VIEW = {"views": {"size": "0xcafe::registry::size"}, "every": 50}
FEES = "0x1::transaction_fee::FeeStatement"


@pytest.fixture(scope="module")
def stored(honest, tmp_path_factory):
    """Return the folder of an archive of two partitions; tests copy it."""
    place = tmp_path_factory.mktemp("stored")
    with toolkit.connect(f"http://{honest[0]}:{honest[1]}", cache=None) as node:
        toolkit.sync(node, place, "0:149", partition=100, progress=False)
    return place


@pytest.fixture
def node(honest):
    with toolkit.connect(f"http://{honest[0]}:{honest[1]}", cache=None) as one:
        yield one


@pytest.fixture
def copy(stored, tmp_path):
    """Return a copy of the archive."""
    return shutil.copytree(stored, tmp_path / "archive")


def bend(folder, **changes):
    """Change ``archive.json``."""
    place = folder / "archive.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | changes))


def tables(folder):
    return json.loads((folder / "archive.json").read_text())["tables"]


@pytest.mark.fault("an archive's manifest names tables elsewhere", "InputError; nothing is written, read or removed")
@pytest.mark.parametrize(
    "name", ["../mine", "{mine}", "a/b", "..", "", "con crete", "x\" as select 1; copy (select 1) to 'y'; --", "é"]
)
def test_names_of_a_manifest_are_checked(copy, node, tmp_path, name):
    mine = tmp_path / "mine"
    mine.mkdir()
    pq.write_table(MINE, mine / "thesis.parquet")
    (mine / ".x.123.part").write_text("mine")
    bend(copy, tables=[*tables(copy), {"name": name.format(mine=mine), "event_type": "0x1::a::B"}])
    for use in (lambda: toolkit.sync(node, copy, progress=False), lambda: toolkit.Archive(copy).sql("select 1")):
        with pytest.raises(InputError):
            use()
    assert {place.name for place in mine.iterdir()} == {"thesis.parquet", ".x.123.part"}
    assert not (tmp_path / "y").exists()


@pytest.mark.fault("an archive's manifest has values that contradict each other", "InputError")
@pytest.mark.parametrize(
    "changes",
    [
        {"partition": 0},
        {"partition": 1},
        {"first": -5},
        {"last": 10**30},
        {"last": 99},
        {"last": 349},
        {"every": 0},
        {"chain_id": "4"},
        {"tables": [{"name": "transactions", "view": {"a": 1}}]},
        {"tables": [{"name": "transactions"}, {"name": "Transactions", "event_type": "0x1::a::B"}]},
        {"tables": [{"name": "mine", "event_type": "not a type"}]},
        {"tables": [{"name": "mine", "view": {"function": 5}}]},
        {"tables": [{"name": "mine"}]},
    ],
)
def test_values_of_a_manifest_are_checked(copy, changes):
    bend(copy, **changes)
    with pytest.raises(InputError, match="is not an archive manifest"):
        toolkit.Archive(copy).state()


@pytest.mark.fault("an archive's manifest names a store", "InputError; no request, and nothing is removed there")
@pytest.mark.parametrize("url", ["{proxy}/x", "file://{mine}", "reference://x", "generic://x", "\0", "memory://\x1b"])
def test_a_store_in_a_manifest_is_not_used(copy, node, proxy, tmp_path, url):
    mine = tmp_path / "mine" / "transactions" / "data.parquet"
    mine.parent.mkdir(parents=True)
    pq.write_table(MINE, mine)
    bend(copy, files=url.format(proxy=proxy.url, mine=tmp_path / "mine"))
    for use in (lambda: toolkit.Archive(copy).state(), lambda: toolkit.sync(node, copy, progress=False)):
        with pytest.raises(InputError):
            use()
    assert proxy.requests == []
    assert mine.exists()


@pytest.mark.fault("other people's files in an archive's folder, or in a folder to sync into", "they stay")
def test_other_files_stay(copy, node, tmp_path):
    """A folder that a sync did not create is refused; beside the files of an archive, others are left alone."""
    names = ("clicks.parquet", ".x.123.part", ".events__0_to_9.parquet.1-00000000.part", "events__1_to_2.parquet")
    for place in (tmp_path / "mine" / "events", copy / "events", copy):
        place.mkdir(parents=True, exist_ok=True)
        for name in names:
            pq.write_table(MINE, place / name)
    with pytest.raises(InputError, match=r"no archive\.json"):
        toolkit.sync(node, tmp_path / "mine", "0:99", progress=False)
    assert [place.name for place in (tmp_path / "mine").iterdir()] == ["events"]
    archive = toolkit.sync(node, copy, "0:249", progress=False)
    assert all((place / name).exists() for place in (tmp_path / "mine" / "events", copy / "events") for name in names)
    assert archive.sql("select count(*) as n from transactions")["n"].tolist() == [250]


@pytest.mark.fault("a table's folder is a link", "a sync writes nothing through it")
@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_a_sync_follows_no_links(copy, node, tmp_path):
    mine = tmp_path / "mine"
    (copy / "events").rename(mine)
    (copy / "events").symlink_to(mine)
    left = mine / ".events__000000000100_to_000000000199.parquet.1-00000000.part"
    left.write_text("mine")
    before = sorted(mine.iterdir())
    with pytest.raises(ToolkitError, match="is a link"):
        toolkit.sync(node, copy, "0:249", progress=False)
    assert sorted(mine.iterdir()) == before


def swapped(folder):
    one, other = sorted((folder / "transactions").iterdir())
    one.rename(folder / "x")
    other.rename(one)
    (folder / "x").rename(other)


def of_another_table(folder):
    shutil.copy(min((folder / "changes").iterdir()), min((folder / "transactions").iterdir()))


def with_fewer_rows(folder):
    place = max((folder / "transactions").iterdir())
    pq.write_table(pq.read_table(place)[:-1], place)


def written_again(folder):
    place = max((folder / "transactions").iterdir())
    pq.write_table(pq.read_table(place), place)


def cut(folder):
    place = min((folder / "transactions").iterdir())
    place.write_bytes(place.read_bytes()[:-5])


def emptied(folder):
    min((folder / "transactions").iterdir()).write_bytes(b"")


def removed(folder):
    min((folder / "transactions").iterdir()).unlink()


def flipped_in_the_footer(folder):
    place = min((folder / "transactions").iterdir())
    data = bytearray(place.read_bytes())
    data[-300] ^= 4
    place.write_bytes(data)


def flipped_in_the_pages(folder):
    """A bit in most pages: a read finds it in whichever columns it needs; a bit of a page's header may mean nothing."""
    place = min((folder / "transactions").iterdir())
    data = bytearray(place.read_bytes())
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for at in range(100, footer, 101):
        data[at] ^= 4
    place.write_bytes(data)


def miscounted(folder):
    [first, *others] = tables(folder)
    bend(folder, tables=[first | {"rows": 149, "files": [first["files"][0], [49, first["files"][1][1]]]}, *others])


@pytest.mark.fault("a file of an archive is damaged, swapped, stale or gone", "InputError from every way to read")
@pytest.mark.parametrize(
    "damage",
    [
        swapped,
        of_another_table,
        with_fewer_rows,
        written_again,
        cut,
        emptied,
        removed,
        flipped_in_the_footer,
        flipped_in_the_pages,
        miscounted,
    ],
)
def test_damage_is_an_error_in_every_way_to_read(copy, damage):
    damage(copy)
    archive = toolkit.Archive(copy)
    calls = {"paid": {"committed": "0x1::aptos_account::transfer", "versions": "0:149"}}
    for read in (
        lambda: archive.sql("from transactions"),
        lambda: archive.transactions("0:149"),
        lambda: archive.events_of(FEES),
        lambda: toolkit.fetch_transactions(archive, "0:149", progress=False),
        lambda: toolkit.Study(node=archive, calls=calls, versions="0:0").run(progress=False),
    ):
        with pytest.raises(InputError):
            read()


def test_files_of_another_archive_are_refused(copy, stored, other_ledger, tmp_path):
    """Although they have the same names and as many rows."""
    with toolkit.connect(f"http://{other_ledger[0]}:{other_ledger[1]}", cache=None) as there:
        toolkit.sync(there, tmp_path / "other", "0:149", partition=100, progress=False)
    for place in sorted((tmp_path / "other" / "transactions").iterdir()):
        shutil.copy(place, copy / "transactions" / place.name)
        with pytest.raises(InputError, match="is not the file"):
            toolkit.Archive(copy).scan("transactions")
        shutil.copy(stored / "transactions" / place.name, copy / "transactions" / place.name)
    assert toolkit.Archive(copy).scan("transactions").count_rows() == 150


@pytest.mark.fault("an archive's folder has a name that readers take for a pattern or a value", "its own rows")
@pytest.mark.parametrize("name", ["type=full", "success=1", "epoch=7", "a[1]", "run*", "q?", "it's", "a%20b", "{x}"])
def test_the_name_of_a_folder_means_nothing(stored, tmp_path, name):
    """Beside folders that a pattern would match."""
    query = "select count(*) as n, max(epoch) as e, sum(gas_used) as gas, count(distinct type) as t from transactions"
    for other in ("a1", "run2", "qx"):
        shutil.copytree(stored, tmp_path / other / "archive")
    archive = toolkit.Archive(shutil.copytree(stored, tmp_path / name / "archive"))
    assert archive.sql(query).equals(toolkit.Archive(stored).sql(query))
    assert list(archive.sql("from transactions limit 1").columns) == archive.scan("transactions").schema.names


@pytest.mark.fault("a query that reads or writes files, or attaches databases", "InputError; nothing is written")
@pytest.mark.parametrize(
    "query",
    [
        "select * from read_csv('{place}/secret.csv')",
        "select content from read_text('{place}/secret.csv')",
        "select * from '{place}/secret.csv'",
        "select * from glob('{place}/*.csv')",
        "copy (select 1 as x) to '{place}/written.csv'",
        "attach '{place}/other.db' as o; create table o.t as select 1 as x; select * from o.t",
        "export database '{place}/written'",
        "install httpfs",
        "set enable_external_access = true; select 1",
        "set temp_directory = '{place}'; select 1",
        "from secret",
    ],
)
def test_a_query_reaches_nothing_but_the_archive(stored, tmp_path, query):
    """Neither the disk nor the variables of the caller."""
    secret = MINE  # noqa: F841 - DuckDB would find it by its name
    (tmp_path / "secret.csv").write_text("a\nSECRET\n")
    with pytest.raises(InputError):
        toolkit.Archive(stored).sql(query.format(place=tmp_path))
    assert [place.name for place in tmp_path.iterdir()] == ["secret.csv"]


def failing(path, failure, times):
    """Answer the first requests of a path with an error."""
    (status, code, body), left = failure, iter(range(times))

    def change(request, answer):
        if not request.path.startswith(path) or next(left, None) is None:
            return None
        sent = body or json.dumps({"message": "bent", "error_code": code, "vm_error_code": None}).encode()
        return replace(answer, status=status, body=sent)

    return change


@pytest.fixture(scope="module")
def undisturbed(honest, tmp_path_factory):
    """Return archives of syncs of the honest node, of a view and of events."""
    place = tmp_path_factory.mktemp("undisturbed")
    with toolkit.connect(f"http://{honest[0]}:{honest[1]}", cache=None) as node:
        return {
            name: toolkit.sync(node, place / name, "0:399", partition=200, progress=False, **options)
            for name, options in (("view", VIEW), ("events", {"events": {"fees": FEES}}))
        }


PASSING = [
    (404, "version_not_found", None),
    (404, "module_not_found", None),
    (404, None, b"<html>a gateway</html>"),
    (200, None, b"<html>a portal</html>"),
    (401, "unauthorized", None),
    (403, "forbidden", None),
    (408, "timeout", None),
    (500, "internal_error", None),
]
FEW = PASSING[::3]


@pytest.mark.fault("a view of a sync is refused for a moment", "read again, or an error; never stored")
@pytest.mark.parametrize(("failure", "times"), [*((one, 500) for one in PASSING), *((one, 1) for one in FEW)])
def test_what_may_pass_is_never_stored(proxy, undisturbed, tmp_path, failure, times):
    """After the failure the archive is that of an undisturbed sync."""
    calls = failing("/v1/view", failure, times)

    def change(request, answer):
        return None if request.number < 12 else calls(request, answer)  # after the checks of the first partition

    proxy.change = change
    try:
        with toolkit.connect(proxy.url, cache=None, timeout_s=30) as bent:
            toolkit.sync(bent, tmp_path / "bent", "0:399", partition=200, progress=False, **VIEW)
    except (ToolkitError, NodeUnreachable):
        proxy.change = None
        with toolkit.connect(proxy.url, cache=None) as bent:
            toolkit.sync(bent, tmp_path / "bent", "0:399", partition=200, progress=False, **VIEW)
    columns = "ledger_version, value, status, error_code"
    query = f"select {columns} from size order by 1"  # noqa: S608
    found, expected = (archive.sql(query) for archive in (toolkit.Archive(tmp_path / "bent"), undisturbed["view"]))
    if (failure[1], times) != ("module_not_found", 500):  # a node that never has a module says the truth
        assert found.equals(expected)


@pytest.mark.fault("the module of an event table is refused for a moment", "looked up again, or an error")
@pytest.mark.parametrize(("failure", "times"), [*((one, 6) for one in PASSING), *((one, 1) for one in FEW)])
def test_a_type_that_cannot_be_looked_up_is_not_stored(proxy, undisturbed, tmp_path, failure, times):
    options = {"events": {"fees": FEES}, "partition": 200, "progress": False}
    proxy.change = failing("/v1/accounts/", failure, times)
    for attempt in range(3):
        try:
            with toolkit.connect(proxy.url, cache=None, timeout_s=30) as bent:
                archive = toolkit.sync(bent, tmp_path / "bent", "0:399", **options)
            break
        except ToolkitError:
            assert attempt < 2
            proxy.change = None
    whole = undisturbed["events"]
    assert archive.scan("fees").schema.equals(whole.scan("fees").schema)
    assert archive.scan("fees").to_table().equals(whole.scan("fees").to_table())


@pytest.mark.fault("a transaction that cannot be decoded", "a row with `raw` in an archive; the sync goes on")
@pytest.mark.parametrize("last", [250, 300], ids=["the last one", "amid others"])
@pytest.mark.parametrize(
    "bent",
    [
        lambda one: {**one, "gas_used": {}},
        lambda one: {**one, "events": 5},
        lambda one: {key: value for key, value in one.items() if key != "hash"},
        lambda _: None,
        lambda one: {**one, "changes": [5]},
        lambda one: {**one, "type": "of_the_future"},
    ],
    ids=["gas", "events", "hash", "null", "changes", "type"],
)
def test_what_cannot_be_decoded_is_a_row(proxy, tmp_path, last, bent):
    """Also alone in its page, as after a sync that ended just before it."""

    def change(request, answer):
        if request.path != "/v1/transactions" or answer.status != 200:
            return None
        start = int(request.query["start"])
        page = [bent(one) if start + at == 250 else one for at, one in enumerate(json.loads(answer.body))]
        return replace(answer, body=json.dumps(page).encode())

    proxy.change = change
    with toolkit.connect(proxy.url, cache=None) as node:
        toolkit.sync(node, tmp_path, "0:249", progress=False)
        archive = toolkit.sync(node, tmp_path, f"0:{last}", progress=False)
        again = toolkit.sync(node, tmp_path, f"0:{last + 10}", progress=False)
    rows = (
        archive.sql(
            "select count(*) as n, count(raw) as raw, max(ledger_version) filter (raw is not null) as at "
            "from transactions"
        )
        .iloc[0]
        .tolist()
    )
    assert rows == [last + 11, 1, 250]
    assert len(again.transactions("0:-1").transactions) == last + 11
