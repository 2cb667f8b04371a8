"""Recorded batches: the neutral calls, the script that the published composer made of them, and what a node did."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import toolkit
from toolkit.move import decode_module_abi
from toolkit.move._ids import address_to_bytes
from toolkit.vm import Module
from toolkit.vm._batch import ComposedScript, compose, module_of_abi
from toolkit.vm._code import StructDefinition, TypeParameter
from toolkit.vm._disassembler import instruction_text
from toolkit.vm._module import read_script
from toolkit.vm._types import ModuleId
from toolkit.wire._batch import BatchResult, Use
from toolkit.wire._bcs_forms import whole
from toolkit.wire._bcs_requests import PAYLOAD, EncodedScript

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "data" / "batches"


@cache
def document(name: str) -> Any:
    """Return a JSON file of the recordings."""
    return json.loads((FOLDER / f"{name}.json").read_text("utf-8"))


@cache
def modules() -> dict[ModuleId, Any]:
    """Return the modules by id: from bytecode, or else from the ABI and the recorded handles."""
    structs = _recorded_structs()
    found: dict[ModuleId, Any] = {name: SimpleNamespace(functions={}, structs=own) for name, own in structs.items()}
    with gzip.open(FOLDER / "batches.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file:
            exchange = json.loads(line)
            if exchange["group"] != "module" or exchange["status"] != 200:
                continue
            answer = json.loads(exchange["answer"]["text"])
            abi = decode_module_abi(answer)
            name = ModuleId(address_to_bytes(abi.address), abi.name)
            code = answer["bytecode"]
            if isinstance(code, str) and code.startswith("0xa11ceb0b"):
                found[name] = Module.from_bytes(bytes.fromhex(code[2:]))
            else:
                module = module_of_abi(name, abi)
                own = {**module.structs, **structs.get(name, {})}
                found[name] = SimpleNamespace(functions=module.functions, structs=own)
    return _with_called(found)


def _with_called(found: dict[ModuleId, Any]) -> dict[ModuleId, Any]:
    """Add modules that were not recorded, such as 0x1::math64, with the functions that recorded scripts say they have."""
    batches = [*document("batches_calls")["batches"], *document("random_5")["batches"]]
    for payload in filter(None, ((one["composed"] or {}).get("payload") for one in batches)):
        for handle in read_script(recorded_script(payload).code).handles:
            if handle.module not in found:
                found[handle.module] = SimpleNamespace(functions={}, structs={})
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
