"""Recorded batches: the neutral calls, the script that the published composer made of them, and what a node did."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import toolkit
from tests.conformance.recorded_executions import lines, value_of
from toolkit import vm
from toolkit.move import decode_module_abi
from toolkit.move._ids import address_to_bytes
from toolkit.vm import Module
from toolkit.vm._batch import ComposedScript, compose, module_of_abi
from toolkit.vm._code import StructDefinition, TypeParameter
from toolkit.vm._module import instruction_text, read_script
from toolkit.vm._state import module_key, resource_key
from toolkit.vm._types import ModuleId, struct
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import PAYLOAD, EncodedScript, signed_transaction
from toolkit.wire._models import BatchResult, Use

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "batches"


@cache
def document(name: str) -> Any:
    """Return a JSON file of the recordings."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


@cache
def _answers() -> list[dict[str, Any]]:
    """Return the recorded answers that are modules, with bytecode and ABI; the code of 0x1 is left out."""
    with gzip.open(FOLDER / "batches.jsonl.gz", "rt", encoding="utf-8") as file:
        exchanges = [one for line in file if (one := json.loads(line))["group"] == "module" and one["status"] == 200]
    return [json.loads(one["answer"]["text"]) for one in exchanges]


def codes() -> dict[ModuleId, bytes]:
    """Return the recorded bytecode, by module."""
    found = [bytes.fromhex(str(one["bytecode"])[2:]) for one in _answers() if "a11ceb0b" in str(one["bytecode"])]
    return {Module.from_bytes(code).id: code for code in found}


@cache
def modules() -> dict[ModuleId, Any]:
    """Return the modules by id: from bytecode, or else from the ABI and the recorded handles."""
    structs = _recorded_structs()
    found: dict[ModuleId, Any] = {name: SimpleNamespace(functions={}, structs=own) for name, own in structs.items()}
    for answer in _answers():
        abi = decode_module_abi(answer)
        name = ModuleId(address_to_bytes(abi.address), abi.name)
        module = module_of_abi(name, abi)
        own = {**module.structs, **structs.get(name, {})}
        found[name] = SimpleNamespace(functions=module.functions, structs=own)
    return _with_called(found | {name: Module.from_bytes(code) for name, code in codes().items()})


def _with_called(found: dict[ModuleId, Any]) -> dict[ModuleId, Any]:
    """Add modules that were not recorded, such as 0x1::math64, with the functions that recorded scripts say they have."""
    batches = [*document("batches_calls")["batches"], *document("random_5")["batches"]]
    for payload in filter(None, ((one["composed"] or {}).get("payload") for one in batches)):
        for handle in read_script(recorded_script(payload).code).handles:
            if handle.module not in found:
                found[handle.module] = SimpleNamespace(functions={}, structs={})
            if isinstance(found[handle.module], SimpleNamespace):
                found[handle.module].functions.setdefault(handle.name, handle)
    return found


def _recorded_structs() -> dict[ModuleId, dict[str, StructDefinition]]:
    """Return the structs of the recorded handles, with what ABIs lack: which type parameters are phantom."""
    found: dict[ModuleId, dict[str, StructDefinition]] = {}
    for module in document("batches_calls")["handles"].values():
        for name, handle in module["structs"].items():
            address, home, struct = name.split("::")
            owner = ModuleId(address_to_bytes(address), home)
            kinds = tuple(TypeParameter(one["constraints"], one["phantom"]) for one in handle["type_parameters"])
            found.setdefault(owner, {})[struct] = StructDefinition(owner, struct, handle["abilities"], kinds, ())
    return found


def batch_of(record: dict[str, Any], *, calls: int | None = None, abort: Any = None) -> toolkit.Batch:
    """Return a recorded batch, with literals as BCS."""
    made = []
    for call in record["calls"][:calls]:
        arguments: list[Any] = []
        for one in call["arguments"]:
            if "signer" in one:
                arguments.append(toolkit.Batch.signer(one["signer"]))
            elif "result" in one:
                arguments.append(BatchResult(*one["result"], Use(one.get("use", ""))))
            else:
                arguments.append(bytes.fromhex(one["bcs"][2:]))
        made.append(toolkit.EntryFunction(call["function"], arguments, type_arguments=call["type_arguments"]))
    return toolkit.Batch(made, abort=abort)


def composed(record: dict[str, Any], **options: Any) -> ComposedScript:
    """Compose a recorded batch."""
    batch, given = batch_of(record, **options), modules()
    return compose(batch, signers=record["signers"], modules=given.get, encode=lambda _, value, __: value)


def recorded_script(payload: str) -> EncodedScript:
    """Return the script of a recorded payload."""
    script = whole(PAYLOAD, b"\0" + bytes.fromhex(payload[2:]))
    assert isinstance(script, EncodedScript)
    return script


def meaning(code: bytes) -> tuple[Any, ...]:
    """Return what a script does: its types and instructions, without indices."""
    main = read_script(code).main
    return main.parameters, main.locals, tuple(map(instruction_text, main.code))


# Execution, on the framework of the recorded executions: it has no coins and other objects, so not all batches run.


@cache
def state() -> dict[bytes, Any]:
    """Return a ledger with the modules bank, box and pool, open accounts, and a pool."""
    framework = {sha256: bytes.fromhex(code) for one in lines("packages") for _, _, sha256, code in one["modules"]}
    found: dict[bytes, Any] = {}
    for key, value, _ in lines("start"):
        raw = framework[value["module"]] if isinstance(value, dict) and "module" in value else value_of(value)
        found[bytes.fromhex(key)] = raw, None
    found |= {module_key(name): (code, None) for name, code in codes().items()}
    alice, bob, carol, _ = (address_to_bytes(one) for one in document("batches_calls")["accounts"].values())
    two = [(1_000_000).to_bytes(8, "little")] * 2
    bank, pool = (struct(f"0x{alice.hex()}::{name}") for name in ("bank::Account", "pool::Pool"))
    for address in (alice, bob, carol):
        found[resource_key(address, struct("0x1::account::Account"))] = b"\x20" + address + bytes(16), None
        found[resource_key(address, struct("0x1::gas_coin::Balance"))] = (10**12).to_bytes(8, "little"), None
        found[resource_key(address, bank)] = two[0] + b"\0", None
    found[resource_key(alice, pool)] = b"".join(two), None
    return found


def run(record: dict[str, Any], script: EncodedScript) -> vm.Execution:
    """Run a script as the batch was simulated: from bob, with carol as the second signer."""
    _, bob, carol, _ = document("batches_calls")["accounts"].values()
    request = toolkit.SimulationRequest(
        toolkit.Script(script.code, arguments=[one.to_bcs() for one in script.arguments]),
        sender=bob,
        secondary_signers=[carol][: record["signers"] - 1],
    )
    numbers = {"sequence_number": 0, "max_gas_amount": 2_000_000, "gas_unit_price": 100}
    signed = signed_transaction(request, chain_id=4, expiration_timestamp_secs=2_000_000_000, **numbers)
    return vm.execute(signed.to_bcs(), state().get, simulate=True, log=True)
