"""The Move machine gives what the real one gave, to the last entry of the gas log."""

from __future__ import annotations

import pytest

from tests.conformance import recorded_executions as recorded
from toolkit import vm

MAX_LOG_LINES = 100_000  # above, the log is not compared: its total is; this saves half of the time

pytestmark = pytest.mark.skipif(
    not recorded.FOLDER.is_dir(),
    reason="the recorded executions are not beside this checkout (../shared/data/executions)",
)


@pytest.mark.parametrize("name", recorded.FILES)
def test_recorded_executions_are_equal(name):
    """Status, gas and its parts, events, writes with metadata, values, memory, and every entry of the log."""
    different, unsupported, equal = [], [], 0
    for record in recorded.lines(name):
        lines = len((record.get("gas_log") or {}).get("ops", ()))
        kind, why = recorded.outcome(record, log=lines < MAX_LOG_LINES)
        if kind == "different":
            different.append(f"{record['id']} {record['note']}: {why}")
        elif kind == "unsupported":
            unsupported.append(f"{record['id']} {record['note']}: {why}")
        else:
            equal += 1
    assert different == []
    assert len(unsupported) <= UNSUPPORTED.get(name, 0), unsupported
    assert equal or name == "system"


# The most that may be unsupported: what only a verifier refuses, curves, gas versions below 10, block transactions.
UNSUPPORTED = {"bytecode": 9, "natives": 30, "gas_more": 57, "scenarios": 2, "system": 7}


def test_written_modules_are_read_as_before():
    """Every recorded module survives writing and reading."""
    from toolkit.vm._module import write_module

    for line in recorded.lines("modules"):
        module = vm.Module.from_bytes(bytes.fromhex(line["bytecode"]))
        data = write_module(
            module.id,
            functions=module.functions.values(),
            structs=module.structs.values(),
            struct_handles=module.struct_handles,
            friends=module.friends,
            metadata=module.metadata,
            version=module.version,
        )
        again = vm.Module.from_bytes(data)
        assert vm.code_changes(module, again) == ((), (), ())
        assert again.disassemble().split("\n", 1)[1] == module.disassemble().split("\n", 1)[1]
        assert [one.access for one in again.functions.values()] == [one.access for one in module.functions.values()]
