"""Forks and replays over a small node on loopback whose modules are our own."""

from __future__ import annotations

import json
import pickle

import pytest

import toolkit
from tests.unit.fork import small_node
from tests.unit.vm import small_ledger as small
from toolkit import embedded
from toolkit.errors import InputError, VersionPruned
from toolkit.vm._state import module_key

COUNTER = "0xcafe::counter"
BUMP = toolkit.EntryFunction(f"{COUNTER}::bump", arguments=[small_node.ALICE])

LOOP = toolkit.EntryFunction(f"{COUNTER}::loop", arguments=[100])


@pytest.fixture
def served():
    with small_node.node().serving() as one:
        yield one


@pytest.fixture
def node(served):
    with toolkit.connect(served.url) as one:
        yield one


def value(fork):
    return fork.view(f"{COUNTER}::get", [small_node.ALICE]).value


def test_calls_build_on_each_other_on_a_fork_only(node):
    """Five calls in a row see what the earlier ones did; another fork of the same version does not."""
    fork, seen = node.fork(4), []
    for _ in range(5):
        assert fork.execute(BUMP, sender=small_node.ALICE).success
        seen.append(value(fork))
    assert seen == [2, 3, 4, 5, 6]
    assert value(node.fork(4)) == 1
    assert fork.ledger_version == fork.base_version + 5


def test_nothing_is_read_before_it_is_needed(node, served):
    """A fork at a version sends no request until a call runs, and its reads are cached like other pinned reads."""
    fork = node.fork(4)
    assert served.reads == 0
    value(fork)
    reads = served.reads
    assert reads > 3
    value(node.fork(4))
    assert served.reads <= reads + 1


def test_a_simulation_is_the_result_of_a_node_with_a_profile(node):
    fork = node.fork(4)
    done = fork.simulate(BUMP, sender="0xb0b")
    assert isinstance(done, toolkit.Simulation)
    assert done.success
    assert value(fork) == 1
    assert done.profile.to_frame()["own_gas"].sum() == done.profile.tree.total > 0
    assert "Add" in " ".join(done.trace.to_frame()["instruction"])
    assert done.resources(f"{COUNTER}::Value")["value"].tolist() == [2]
    assert done.diff()["fields_changed"].tolist() == [["value"]]
    again = pickle.loads(pickle.dumps(done))  # noqa: S301 - just made
    assert again.gas_used == done.gas_used
    assert again.profile.to_frame().equals(done.profile.to_frame())


def test_a_failure_says_where(node):
    done = node.fork(4).simulate(toolkit.EntryFunction(f"{COUNTER}::stop"), sender="0xb0b")
    assert not done.success
    assert done.vm_status == "Move abort in 0xcafe::counter: 0x7"


def test_funds_time_schedule_and_resources_of_a_fork(node):
    fork = node.fork(4)
    fork.fund(small_node.ALICE, 10)
    purse = "0x1::transaction_fee::Purse"
    assert fork.node.resource(small_node.ALICE, purse) == {"coins": 15}
    before = fork.node.ledger().timestamp_us
    fork.advance(seconds=3600)
    assert fork.node.ledger().timestamp_us - before == 3_600_000_000
    cheap = fork.simulate(LOOP, sender="0xb0b").gas_used
    fork.gas_schedule = {"instr.add": 20_000}
    dear = fork.simulate(LOOP, sender="0xb0b").gas_used
    assert fork.gas_schedule.entries["instr.add"] == 20_000
    assert 1_900 < dear - cheap < 2_000  # a hundred additions at 20 gas units each
    fork.set_resource("0xb0b", f"{COUNTER}::Value", {"value": 9})
    assert fork.view(f"{COUNTER}::get", ["0xb0b"]).value == 9
    fork.set_resource("0xb0b", f"{COUNTER}::Value", None)
    with pytest.raises(toolkit.errors.InvalidRequest):
        fork.view(f"{COUNTER}::get", ["0xb0b"])
    with pytest.raises(InputError, match="no_such"):
        fork.gas_schedule = {"no_such": 1}


@pytest.mark.parametrize("amount", [0, 1.5, True, "5", 2**64])
def test_an_amount_that_is_not_a_u64_is_refused(node, amount):
    with pytest.raises(InputError, match="amount"):
        node.fork(4).fund(small_node.ALICE, amount)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e30])
def test_time_stays_where_it_can_be_shown(node, seconds):
    for ledger in (node.fork(4), embedded.Ledger()):
        with pytest.raises(InputError, match="seconds"):
            ledger.advance(seconds=seconds)


def test_replays_are_verified_or_say_what_differs(node, served):
    replay = node.fork(4).replay(6)
    assert replay.verified is True
    assert replay.differences.empty
    assert replay.function == f"{COUNTER}::bump"
    assert replay.gas["difference"].dropna().eq(0).all()
    served.sent[2].gas_used += 1
    key, op, data, metadata = served.sent[2].writes[0]
    served.sent[2].writes[0] = (key, op, data, (metadata[0] + 1, *metadata[1:]) if metadata else (1, 2, 3))
    with toolkit.connect(served.url, cache=None) as fresh:
        replay = fresh.fork(4).replay(6)
    assert replay.verified is False
    assert replay.differences["what"].tolist() == ["gas_used", "write"]
    assert f"{COUNTER}::Value" in replay.differences["place"].iloc[1]


def test_many_replays_share_their_reads(node, served):
    found = toolkit.replay(node, "0:-1", progress=False)
    assert found["verified"].all()
    assert len(found) == len(served.sent)
    alone = served.reads
    one = toolkit.replay(node, "0:-1", function=f"{COUNTER}::bump", progress=False)
    assert one["ledger_version"].tolist() == [4, 6, 12]
    none = toolkit.replay(node, [], progress=False)
    assert none.dtypes.equals(found.dtypes)
    assert len(none) == 0
    assert alone < 8 * len(served.sent)


def test_replays_under_other_code_and_schedule_are_paired(node, tmp_path):
    """The same transactions run as they were, and with the code of a compiled package or other prices."""
    folder = tmp_path / "build" / "Counter"
    (folder / "bytecode_modules").mkdir(parents=True)
    (folder / "bytecode_modules" / "counter.mv").write_bytes(small_node.counter_with(100))
    (folder / "package-metadata.bcs").write_bytes(b"\x01\x07counter")
    prices = {"instr.add": 50_000}
    found = toolkit.replay(node, "0:-1", code=folder, gas_schedule=prices, progress=False).set_index("ledger_version")
    assert found["verified"].all()
    bumps = found.loc[[4, 6, 12]]
    assert (bumps["changed_outcome"] == "succeeded").all()
    assert (bumps["changed_gas_used"] > bumps["replayed_gas_used"]).all()
    assert found.loc[8, "changed_gas_used"] == found.loc[8, "gas_used"]
    fork = node.fork(4)
    fork.publish(folder)
    assert fork.execute(BUMP, sender=small_node.ALICE).success
    assert value(fork) == 101


def test_an_incompatible_package_is_refused(node):
    other = small.write_module(small.COUNTER, functions=[], structs=[], version=8)
    with pytest.raises(InputError, match="BACKWARD_INCOMPATIBLE_MODULE_UPDATE"):
        node.fork(4).publish([other], metadata=b"\x01\x07counter")


def test_a_package_that_cannot_be_read_is_an_input_error(node, tmp_path):
    (tmp_path / "bytecode_modules" / "a.mv").mkdir(parents=True)
    for path in (tmp_path, tmp_path / ("x" * 300), "a\0b", tmp_path / "nowhere"):
        with pytest.raises(InputError):
            node.fork(4).publish(path)


def test_what_cannot_be_replayed_is_an_error_or_a_row(node, served):
    with pytest.raises(InputError, match="version 5"):
        node.fork(4).replay(5)
    served.oldest = 5
    with toolkit.connect(served.url, cache=None) as fresh:
        found = toolkit.replay(fresh, [4, 6, 12], progress=False)
        assert found["error_code"].tolist()[0] == "version_pruned"
        assert found["verified"].tolist()[1:] == [True, True]
        with pytest.raises(VersionPruned):
            fresh.fork(3).view(f"{COUNTER}::get", [small_node.ALICE])


def test_a_probe_says_whether_raw_state_is_served(node, served):
    assert node.probe().offers["raw state values"]
    served.raw = False
    with toolkit.connect(served.url, cache=None) as fresh:
        assert not fresh.probe().offers["raw state values"]


def test_modules_missing_from_the_state_are_named(node):
    with pytest.raises(InputError, match="nowhere"):
        node.fork(4).simulate(toolkit.EntryFunction("0xbad::nowhere::f"), sender="0xb0b")


def test_keys_of_modules(node):
    assert node.fork(4)._state(module_key(small.COUNTER))[0] == small.counter_code()


def test_the_command_prints_a_replay_and_writes_its_page(served, tmp_path, capsys):
    from toolkit.cli import main

    page = tmp_path / "page.html"
    assert main(["replay", served.url, "6", "--out", str(page)]) == 0
    text = capsys.readouterr().out
    assert "verified" in text
    html = page.read_text("utf-8")
    assert "Verified." in html
    assert "<svg" in html
    assert "counter::bump" in html
    assert main(["replay", served.url, "5"]) == 2
    capsys.readouterr()
    assert main(["replay", served.url, "6", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["verified"], document["differences"], document["function"]) == (True, 0, f"{COUNTER}::bump")


def test_profiles_are_exported(node):
    profile = node.fork(4).replay(6).profile
    lines = profile.folded().splitlines()
    assert lines[0].startswith("transaction ")
    assert sum(int(line.rpartition(" ")[2]) for line in lines) == profile.tree.total
    document = profile.speedscope()
    assert sum(document["profiles"][0]["weights"]) == profile.tree.total
    assert {"name": f"{COUNTER}::bump"} in document["shared"]["frames"]


def test_a_flame_graph_shows_all_gas_and_its_difference(node):
    from matplotlib.figure import Figure

    fork = node.fork(4)
    before = fork.simulate(LOOP, sender="0xb0b").profile
    fork.gas_schedule = {"instr.add": 20_000}
    after = fork.simulate(LOOP, sender="0xb0b").profile
    axes = toolkit.plots.flame(before, after, ax=Figure().subplots())
    widths = {patch.get_gid(): patch.get_width() for patch in axes.patches}
    assert widths["function-transaction"] == pytest.approx(after.tree.total / 1e6)
    assert widths[f"function-{COUNTER}::loop"] < widths["function-transaction"]
    with pytest.raises(InputError, match="flame"):
        toolkit.plots.flame(3)


def test_a_flame_graph_of_the_embedded_node_says_that_its_gas_is_a_model():
    from matplotlib.figure import Figure

    from toolkit import embedded

    transfer = toolkit.EntryFunction("0x1::aptos_account::transfer", ["0xb0b", 100])
    profile = embedded.Ledger().profile(transfer, sender="0xa11ce")
    axes = toolkit.plots.flame(profile, ax=Figure().subplots())
    assert axes.get_xlabel() == "model gas (gas units)"
    widths = {patch.get_gid(): patch.get_width() for patch in axes.patches}
    charged = sum(charge.internal_gas for charge in profile.charges if charge.category in {"execution", "io"})
    assert widths["function-transaction"] == pytest.approx(charged / profile.scaling)
    assert 0 < widths["function-intrinsic gas"] < widths["function-transaction"]
