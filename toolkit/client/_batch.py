"""Batches on a node: composes the script from the modules on the node."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from toolkit.errors import Forbidden, InputError, NotFound, Unsupported
from toolkit.move import parse_type_tag
from toolkit.move._ids import address_from_bytes
from toolkit.vm import Module
from toolkit.vm._batch import compose, literal_type, module_of_abi
from toolkit.wire import Script
from toolkit.wire._bcs_requests import encoded_literal

if TYPE_CHECKING:
    from toolkit.client._calls import AbisAt
    from toolkit.client._reads import Reads
    from toolkit.vm._batch import ModuleCode
    from toolkit.vm._types import ModuleId, Type
    from toolkit.wire import SimulationRequest
    from toolkit.wire._requests import Batch


def script_of(node: Reads, batch: Batch, *, signers: int, ledger_version: int) -> Script:
    """Compose a batch from the modules at a version; see `Node.compose`."""
    abis = node.abis.at(ledger_version)

    @cache
    def module(wanted: ModuleId) -> ModuleCode | None:
        return _module(node, abis, wanted)

    def encode(kind: Type, value: Any, where: str) -> bytes:
        return encoded_literal(abis.layout(parse_type_tag(literal_type(kind, value, where))), value, where)

    composed = compose(batch, signers=signers, modules=module, encode=encode)
    return Script(composed.code, arguments=composed.arguments)


def with_script(node: Reads, request: SimulationRequest, ledger_version: int) -> SimulationRequest:
    """Return the request with the script of its batch, whose arguments are BCS."""
    others = getattr(request.signature, "secondary_signer_addresses", request.secondary_signers)
    batch: Any = request.payload
    return request.replace(payload=script_of(node, batch, signers=1 + len(others), ledger_version=ledger_version))


def _module(node: Reads, abis: AbisAt, wanted: ModuleId) -> ModuleCode | None:
    """Return a module from its bytecode, or from its ABI if the node has no bytecode that can be read."""
    address = address_from_bytes(wanted.address)
    try:
        answer = node.module_answer(address, wanted.name, abis.version)
    except (Forbidden, NotFound):
        answer = b""  # the node does not offer modules, but the caller may have passed the ABI
    if answer is None:
        return None
    if answer:
        try:
            module = Module.from_bytes(bytes.fromhex(msgspec.json.decode(answer, type=_Answer).bytecode[2:]))
            if module.id == wanted:
                return module
        except (InputError, Unsupported):
            pass  # the embedded node has no bytecode, and that of a later version cannot be read
    abi = abis.module_abi(address, wanted.name)
    if abi is None:
        raise InputError(
            f"{node.name} does not offer the module {wanted}; pass its ABI to toolkit.connect(..., abis=...)"
        )
    return module_of_abi(wanted, abi)


class _Answer(msgspec.Struct):
    """The bytecode in the response of a module."""

    bytecode: str
