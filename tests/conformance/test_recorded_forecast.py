"""Forecasts against what a real node charged before and after its gas schedule changed, at versions 179 and 707."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import Any

import pytest

import toolkit
from toolkit.errors import InvalidRequest
from toolkit.wire import GasSchedule
from toolkit.wire._transactions import decode_transactions

CHANGE, BACK = 179, 707


@pytest.fixture(scope="session")
def schedules(recordings) -> tuple[GasSchedule, GasSchedule]:
    """Return the schedules before and from version 179."""
    history = recordings.history
    tag = "0x1::gas_schedule::GasScheduleV2"
    found = [GasSchedule.from_resource(history.resource("0x1", tag, version)["data"]) for version in (178, CHANGE)]
    return found[0], found[1]


def views(recordings) -> dict[str, toolkit.ViewFunction]:
    """Return the nine recorded views by the function's name."""
    return {
        sent["function"].split("::")[-1]: toolkit.ViewFunction(
            sent["function"], type_arguments=sent["type_arguments"], arguments=sent["arguments"]
        )
        for sent in (exchange.sent for exchange in recordings.files["sweep"])
    }


def test_views_at_179(recordings, node, schedules):
    """What each of the nine views used at 179 lies in the interval that follows from its gas at 178.

    `weighed` and `work` failed at 179, since they reached the limit of execution gas, which their forecasts name.
    """
    calls = views(recordings)
    run = toolkit.Study(calls=calls, versions=[178], node=node).run(progress=False)
    frame = toolkit.forecast(run, schedules[1], node=node).set_index("label")
    assert len(frame) == len(calls) == 9
    moved = 0
    for name, call in calls.items():
        now = node.view(call, ledger_version=178).gas_used
        row = frame.loc[name]
        assert row["now"] == now
        limits = [reason for reason in row["reasons"] if "reach the limit txn.max_execution_gas" in reason]
        assert bool(limits) == (name in {"weighed", "work"})
        if limits:
            assert limits == ["it could reach the limit txn.max_execution_gas and fail"]
            with pytest.raises(InvalidRequest, match="EXECUTION_LIMIT_REACHED"):
                node.view(call, ledger_version=CHANGE)
            continue
        then = node.view(call, ledger_version=CHANGE).gas_used
        assert row["low"] <= then <= row["high"], (name, now, then, row.to_dict())
        assert row["high"] <= 10 * now
        assert any("x1 to x10" in reason for reason in row["reasons"])
        moved += then != now
        print(name, now, "->", then, "in", [row["low"], row["high"]])  # in the output
    assert moved >= 4


def _kind(document: dict[str, Any]) -> Any:
    """Return what makes two transactions of one function the same kind of work."""
    changes = Counter(change["type"] for change in document["changes"])
    fee = json.loads(json.dumps(document["events"][-1]["data"]))
    payload = document["payload"]
    return (
        payload["function"],
        document["success"],
        tuple(sorted(changes.items())),
        fee["storage_fee_octas"],
        fee["io_gas_units"],
        document["signature"]["type"],
    )


@pytest.mark.parametrize(("at", "backwards"), [(CHANGE, False), (BACK, True)])
def test_transactions_before_and_after(recordings, schedules, at, backwards):
    """Each recorded kind of work that was charged before and after the change: the charge after lies in the interval.

    The last transaction of a kind before a change is forecast, and compared with the first ones after it. State grows
    with `put`, so kinds are matched by what they write and pay for storage.
    """
    before, after = schedules[::-1] if backwards else schedules
    last: dict[Any, Any] = {}
    following: defaultdict[Any, list[Any]] = defaultdict(list)
    for document in recordings.longer_history.transactions:
        if document["type"] != "user_transaction" or "function" not in document["payload"]:
            continue
        version = int(document["version"])
        if version < at and (not backwards or version >= 504):
            last[_kind(document)] = document
        elif at < version < (503 if not backwards else 1_100) and len(following[_kind(document)]) < 3:
            following[_kind(document)].append(document)
    compared: Counter[str] = Counter()
    for kind in last.keys() & following.keys():
        if kind[0].endswith("::lab::put"):
            continue  # its lists grow with every call
        [transaction] = decode_transactions(json.dumps(last[kind]).encode())
        frame = toolkit.forecast(transaction, after, current=before).set_index("part")
        for document in following[kind]:
            [truth] = decode_transactions(json.dumps(document).encode())
            gas = truth.gas_breakdown()
            parts = {
                "execution": gas.execution_gas_units,
                "io": gas.io_gas_units,
                "storage": gas.storage_fee_octas / gas.gas_unit_price,
                "refund": gas.storage_fee_refund_octas / gas.gas_unit_price,
                "total": gas.total_charge_gas_units,
            }
            for part, charged in parts.items():
                row = frame.loc[part]
                assert row["low"] <= charged <= row["high"], (at, document["version"], part, charged, row.to_dict())
                compared[part] += 1
            changed = truth.gas_used != transaction.gas_used
            compared["moved"] += changed
    assert compared["total"] >= 5
    assert compared["moved"] >= 3
    print(at, dict(compared))  # counts in the output
