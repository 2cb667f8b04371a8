"""The gas schedule of the state: prices by name, as one execution sees them.

A schedule has a version, which also says how a node charges. What a version changes is decided where it matters, by
comparing `Schedule.version` with `_gas_versions`; the prices that came with it are listed here.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache

from toolkit.errors import Unsupported
from toolkit.move._bcs import Reader
from toolkit.vm import _gas_versions as since
from toolkit.vm._layouts import LayoutMaker

MIN_GAS_VERSION, MAX_GAS_VERSION = 10, 43

# Prices by the first gas feature version that reads them: in versions before, they count as 0. By prefix.
_SINCE = {
    14: "instr.subst_ty_per_node",
    15: "txn.dependency_per_",
    16: "txn.storage_io_per_event_byte_write txn.storage_io_per_transaction_byte_write",
    17: "txn.keyless. aptos_framework.transaction_context.sender aptos_framework.transaction_context.secondary_signers "
    "aptos_framework.transaction_context.fee_payer aptos_framework.transaction_context.max_gas_amount "
    "aptos_framework.transaction_context.gas_unit_price aptos_framework.transaction_context.chain_id "
    "aptos_framework.transaction_context.entry_function_payload aptos_framework.transaction_context.multisig_payload "
    "aptos_framework.object.user_derived_address",
    18: "aptos_framework.function_info. aptos_framework.dispatchable_fungible_asset.",
    19: "aptos_framework.aggregator_v2.is_at_least",
    22: "instr.imm_borrow_variant_field instr.mut_borrow_variant_field instr.test_variant "
    "move_stdlib.bcs.serialized_size",
    27: "aptos_framework.randomness.",
    28: "move_stdlib.bcs.constant_serialized_size move_stdlib.cmp. move_stdlib.vector. move_stdlib.mem.",
    30: "txn.max_aa_gas aptos_framework.dispatchable_authenticate. aptos_framework.permissioned_signer.",
    32: "aptos_framework.bulletproofs.verify.",
    37: "instr.pack_closure instr.pack.closure misc.abs_val.closure",
    40: "aptos_framework.transaction_context.monotonically_increasing_counter",
    42: "misc.abs_val.i misc.abs_val.per_i instr.ld_i instr.cast_i instr.negate",
}
_STARTS = {start: version for version, starts in _SINCE.items() for start in starts.split()}
_UNTIL = {"aptos_framework.permissioned_signer.": 30}  # the last version that reads them, likewise
_SIZES = "misc.abs_val."  # prefix of the abstract sizes


class Schedule:
    """Prices and limits of one gas schedule and what is derived from them once.

    Attributes
    ----------
    version : int
        Gas feature version.
    unit : int
        Internal gas per gas unit.
    sizes : dict of str to int
        Abstract sizes of values: ``sizes["struct"]``, ``sizes["per_u8_packed"]``.
    layouts : LayoutMaker
    per_node : int
        Internal gas for each node of a type that is made.
    max_type_nodes, max_type_depth : int
        Largest number of nodes of a type, and deepest nesting.
    max_layout_nodes : int
        Largest number of nodes of a layout by which values are serialized.
    """

    def __init__(self, version: int, prices: dict[str, int]) -> None:
        if not MIN_GAS_VERSION <= version <= MAX_GAS_VERSION:
            raise Unsupported(
                f"gas feature version {version}; versions {MIN_GAS_VERSION} to {MAX_GAS_VERSION} are supported"
            )
        self.version = version
        self.prices = {name: price for name, price in prices.items() if self._reads(name)}
        self.unit = self["txn.gas_unit_scaling_factor"] or 1
        sizes = {name.removeprefix(_SIZES): size for name, size in self.prices.items() if name.startswith(_SIZES)}
        self.sizes = defaultdict(int, sizes)
        self.layouts = LayoutMaker(self.sizes)
        self.per_node = self["instr.subst_ty_per_node"]
        limited = version >= since.TYPE_LIMITS
        self.max_type_nodes = self["txn.max_ty_size"] if limited else 128
        self.max_type_depth = self["txn.max_ty_depth"] if limited else 20
        self.max_layout_nodes = 512 if version >= since.LARGER_LAYOUTS else 256

    def _reads(self, name: str) -> bool:
        since = max((version for start, version in _STARTS.items() if name.startswith(start)), default=0)
        until = min((version for start, version in _UNTIL.items() if name.startswith(start)), default=self.version)
        return since <= self.version <= until

    def __getitem__(self, name: str) -> int:
        return self.prices.get(name, 0)

    def legacy(self, name: str) -> int:
        """Return a price of ``txn.`` that is now named ``txn.legacy_``."""
        return self[f"txn.legacy_{name}" if self.version >= since.LEGACY_NAMES else f"txn.{name}"]

    @classmethod
    def from_bcs(cls, data: bytes) -> Schedule:
        """Return the schedule in a ``0x1::gas_schedule::GasScheduleV2``; equal bytes give the same object."""
        return _schedule(data)


@lru_cache(16)
def _schedule(data: bytes) -> Schedule:
    source = Reader(data)
    version = source.u64()
    prices = {source.bytes().decode("utf-8", "replace"): source.u64() for _ in range(source.length())}
    source.end()
    return Schedule(version, prices)
