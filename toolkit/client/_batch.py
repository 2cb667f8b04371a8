"""Batches on a node: composes the script from its modules, and measures the calls by running prefixes.

A prefix ends with an abort, which runs whatever values are left over. Its gas of execution and reads is that of the
same calls in the whole batch.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from operator import sub
from typing import TYPE_CHECKING, Any

from toolkit.client._abis import bytecode_of
from toolkit.errors import Forbidden, InputError, NotFound, SchemaError, Unsupported
from toolkit.frames._columns import rows_frame
from toolkit.frames._schema import BATCH_GAS, Schema
from toolkit.move import parse_type_tag
from toolkit.move._ids import address_from_bytes
from toolkit.vm import Module
from toolkit.vm._batch import ModuleCode, compose, literal_type, module_of_abi
from toolkit.wire import GasBreakdown, Script, SimulationRequest
from toolkit.wire._aborts import Abort
from toolkit.wire._bcs_requests import encoded_literal
from toolkit.wire._models import function_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from toolkit.client._abis import AbisAt
    from toolkit.client._reads import Reads
    from toolkit.vm._types import ModuleId, Type
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
    return Script(composed.code, arguments=composed.arguments, serialized=True)


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
            module = Module.from_bytes(bytecode_of(answer))
            if module.id == wanted:
                return module
        except (InputError, SchemaError, Unsupported):
            pass  # the embedded node has no bytecode, and that of a later version cannot be read
    abi = abis.module_abi(address, wanted.name)
    if abi is None:
        raise InputError(
            f"{node.name} does not offer the module {wanted}; pass its ABI to toolkit.connect(..., abis=...)"
        )
    return module_of_abi(wanted, abi)


# The code of the abort that ends a prefix. An abort of a contract has the contract's module.
_CODE = 0
# Rows of `call_frame` that are not calls.
_START, _STORED = "transaction", "changes"


def prefixes(request: SimulationRequest) -> list[SimulationRequest]:
    """Return a request per prefix of a batch, from no call to all calls, each of which ends with an abort."""
    batch: Any = request.payload
    return [request.replace(payload=batch.prefix(count, abort=_CODE)) for count in range(len(batch.calls) + 1)]


def ran_to_its_end(vm_status: str) -> bool:
    """Return whether a prefix ran to the abort that ends it."""
    abort = Abort.find(vm_status)
    return abort is not None and abort.module is None and abort.code == _CODE


def gas_frame(batch: Batch, gas: Sequence[GasBreakdown]) -> pd.DataFrame:
    """Return the gas of each call, from the gas of the prefixes and of the whole batch."""
    costs = [(0, 0, 0), *((one.execution_gas_units, one.io_gas_units, one.storage_fee_octas) for one in gas)]
    return call_frame(batch, [tuple(map(sub, after, before)) for before, after in pairwise(costs)], BATCH_GAS)


def call_frame(batch: Batch, costs: Sequence[Sequence[int]], schema: Schema) -> pd.DataFrame:
    """Return a frame of costs: of the transaction itself, of each call, and of what is stored at the end."""
    functions = [function_id(call.function).wire for call in batch.calls]
    columns = [[None, *range(len(functions)), None], [_START, *functions, _STORED], *zip(*costs, strict=True)]
    return rows_frame(schema, dict(zip(schema.names, columns, strict=True)))
