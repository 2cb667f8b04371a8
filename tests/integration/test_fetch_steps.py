"""`fetch_views` with `FindSteps`: the versions that a study's search reads, and the rows of all of them."""

from __future__ import annotations

import pytest

import toolkit
from toolkit.errors import InputError

PRICE, SIZE = "0xfa17::vault::share_price", "0x1::chain_id::get"


def test_a_search_reads_what_a_study_reads(node):
    """Same versions, sorted, for each call apart; the steps are between adjacent rows."""
    plan = toolkit.FindSteps("1000:3999", initial=9)
    calls = {name: toolkit.ViewFunction(name) for name in (PRICE, SIZE)}
    frame = toolkit.fetch_views(node, calls, plan, typed=False, progress=False)
    read = {call: rows["ledger_version"].tolist() for call, rows in frame.groupby("call", sort=False)}
    assert list(read) == [PRICE, SIZE]
    assert all(versions == sorted(set(versions)) for versions in read.values())
    seen = toolkit.Study(node=node, calls=calls, versions=plan).run(progress=False).observations
    assert read == {call: sorted(seen[seen["label"] == call]["ledger_version"].tolist()) for call in read}
    assert {2_251, 2_252, 3_501, 3_502} <= set(read[PRICE])


def test_times_are_those_of_the_versions_found(node):
    """As with any plan."""
    plan = toolkit.FindSteps("2200:2300", initial=3)
    frame = toolkit.fetch_views(node, PRICE, plan, times=True, progress=False)
    assert frame["ledger_timestamp"].notna().all()


WEEK = "2026-05-01..2026-05-08"


@pytest.mark.parametrize("plan", [f"{WEEK}:1d", f"{WEEK}/3", ["2026-05-01", "2026-05-08"], toolkit.FindSteps(WEEK, 3)])
def test_a_plan_by_date_has_times(node, plan):
    """Unless they are declined; a plan of versions has only the time of the head."""
    frame = toolkit.fetch_views(node, PRICE, plan, progress=False)
    assert len(frame) > 1
    assert frame["ledger_timestamp"].notna().all()
    assert toolkit.fetch_views(node, PRICE, plan, times=False, progress=False)["ledger_timestamp"].isna().all()
    assert toolkit.fetch_views(node, PRICE, "100:101", progress=False)["ledger_timestamp"].isna().all()


def test_resources_and_items_have_the_times_of_a_plan_by_date(node):
    """As views."""
    registry = toolkit.fetch_resources(node, "0xcafe", "0xcafe::registry::Registry", f"{WEEK}:1d", progress=False)
    handle = node.resource("0xcafe", "0xcafe::registry::Registry")["records"]["handle"]
    items = toolkit.fetch_table_items(node, handle, ["alice"], f"{WEEK}:1d", owner="0xcafe", progress=False)
    assert registry["ledger_timestamp"].notna().all()
    assert items["ledger_timestamp"].tolist() == registry["ledger_timestamp"].tolist()


def test_where_there_is_no_gas_to_search_for_it_is_refused(node):
    """Table items and transactions do not have steps; the message says what to use instead."""
    plan = toolkit.FindSteps("0:9")
    with pytest.raises(InputError, match="pass it to fetch_views or a Study"):
        toolkit.fetch_transactions(node, plan)
    with pytest.raises(InputError, match="pass it to fetch_views or a Study"):
        toolkit.fetch_table_items(node, "0x" + "a" * 64, [1], key_type="u64", value_type="bool", versions=plan)
