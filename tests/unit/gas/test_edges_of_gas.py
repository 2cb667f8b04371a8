"""The edges of gas studies: misspelt files, outages, damaged folders, nodes without modules."""

from __future__ import annotations

import shutil

import pytest

from tests.unit.client.fakes import URL, FakeNode, answer, module, refused, user_transaction
from tests.unit.gas.observed import cause_of, frame, manifest, row, table
from toolkit.client.node import Node
from toolkit.errors import StudyError
from toolkit.gas.observations import last_observations
from toolkit.gas.runs.store import RunStore
from toolkit.gas.steps import Step, steps_of
from toolkit.gas.study import Run, Study
from toolkit.wire import ViewFunction

SCHEDULE = "GET /accounts/0x1/resource/0x1%3A%3Agas_schedule%3A%3AGasScheduleV2"
CALL = '[versions]\nplan = "0:-1"\n[[call]]\nview = "0x1::m::f"\n'


def load(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    return Study.load(tmp_path / "study.toml")


def step(before, after):
    sides = (before, after, 1, 2, True, True, None, None)
    return Step("n", "a", "f", "view@version", *sides)


def test_nodes_as_one_text_are_refused(tmp_path):
    """Nodes are a list: one text is refused, not taken letter by letter."""
    with pytest.raises(StudyError, match=r"`?nodes"):
        load(tmp_path, 'nodes = "mainnet"\n' + CALL)


def test_nodes_as_a_number_are_refused(tmp_path):
    """A number of nodes is refused."""
    with pytest.raises(StudyError, match="nodes"):
        load(tmp_path, "nodes = 5\n" + CALL)


def test_no_nodes_are_not_the_embedded_node(tmp_path):
    """An empty list of nodes is refused."""
    with pytest.raises(StudyError, match="nodes"):
        load(tmp_path, "nodes = []\n" + CALL)


@pytest.mark.parametrize("line", ['node = "mainet"', 'nodes = ["mainnet", "testnt"]'])
def test_a_misspelt_node_is_told_when_the_study_is_loaded(tmp_path, line):
    """A node that cannot be one is told with its place, before anything is run."""
    with pytest.raises(StudyError, match=r"node.*(mainet|testnt)"):
        load(tmp_path, f"{line}\n{CALL}")


def test_one_bracket_too_few_is_told_as_that(tmp_path):
    """[call] instead of [[call]] is told as one bracket too few."""
    with pytest.raises(StudyError, match=r"\[\[call\]\]"):
        load(tmp_path, CALL.replace("[[call]]", "[call]"))


def test_a_price_on_a_view_is_refused(tmp_path):
    """A price belongs to a simulation, as the sender does."""
    with pytest.raises(StudyError, match="gas_unit_price"):
        load(tmp_path, CALL + "gas_unit_price = 150\n")


def test_bytes_are_arguments_of_a_study():
    """Bytes as arguments survive being written down, with the same fingerprint."""
    study = Study(calls=[ViewFunction("0x1::m::f", arguments=[b"\xff\x00"])])
    again = Study.from_document(study.document())
    assert again.calls[0].fingerprint == study.calls[0].fingerprint


def test_a_call_that_got_no_answer_is_no_step():
    """A reading without an answer tells nothing: an outage is no step."""
    assert steps_of(frame(row(1, 10), row(2, error="unreachable"), row(3, 10))) == []
    found = steps_of(frame(row(1, 10), row(2, error="http_503"), row(3, 12)))
    assert [(one.version_before, one.version_after) for one in found] == [(1, 3)]


def test_the_last_observations_of_two_nodes_are_kept_apart():
    """Each node keeps its own last reading."""
    found = last_observations(frame(row(5, 10), row(900, 20, node="http://other.test/v1")))
    assert sorted(found["gas_used"].tolist()) == [10, 20]


def test_a_run_without_its_parts_folder_goes_on(tmp_path):
    """A folder for parts that got lost, as an empty one does in git, is made again."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    store.add(table(row(1)))
    shutil.rmtree(tmp_path / "run" / "parts")
    store.mend()
    store.add(table(row(1)))
    assert len(store.observations()) == 1


def test_a_file_of_the_user_is_neither_a_part_nor_discarded(tmp_path):
    """Only the store's own names are its parts."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    store.add(table(row(1)))
    mine = tmp_path / "run" / "parts" / "part-of-my-own.parquet"
    shutil.copy(store.part_files()[0], mine)
    store.add(table(row(2)))
    assert store.observations()["ledger_version"].tolist() == [1, 2]
    store.discard("mine")
    assert mine.exists()


@pytest.mark.parametrize("text", ['{"format": 1}', '{"format": 1, "study": 5}'])
def test_a_manifest_with_parts_missing_is_a_study_error(tmp_path, text):
    """A manifest without its keys is a study error."""
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(StudyError):
        _ = Run.open(tmp_path).study
    with pytest.raises(StudyError):
        RunStore(tmp_path).discard("x")


def test_files_of_a_run_are_as_readable_as_any_other(tmp_path):
    """Files of a run have the permissions that any new file has."""
    store = RunStore(tmp_path / "run")
    store.create(manifest())
    (tmp_path / "other").write_text("x")
    assert (tmp_path / "run" / "run.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_modules_that_cannot_be_read_are_not_equal():
    """Where the node offers no modules, nothing is claimed of the called one."""
    schedule = answer({"type": "x", "data": {"feature_version": "1", "entries": [{"key": "a", "val": "1"}]}})
    fake = FakeNode({SCHEDULE: schedule, "GET /accounts/0x1/module/m": refused(403, "api_disabled")})
    cause = cause_of(step(9, 50), Node(URL, transport=fake), "0x1::m::f")
    assert cause.kind == "unknown"
    assert "nor the called module changed" not in cause.explanation


def test_an_upgrade_is_not_told_as_a_publication_without_reading():
    """Where the node offers no modules, a write is told as a write."""
    written = {
        "address": "0x1",
        "state_key_hash": "0x1",
        "type": "write_module",
        "data": {"bytecode": "0x02", "abi": module("m")["abi"]},
    }
    transaction = user_transaction(10, type="user_transaction", changes=[written])
    fake = FakeNode(
        {
            "GET /transactions/by_version/10": answer(transaction),
            "GET /accounts/0x1/module/m": refused(403, "api_disabled"),
        }
    )
    cause = cause_of(step(9, 10), Node(URL, transport=fake), "0x1::m::f")
    assert cause.kind == "code"
    assert "published" not in cause.explanation
