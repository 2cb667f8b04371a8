"""The data dictionary: the schemas of all frames, each column with its Arrow type, unit, meaning and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from toolkit.dtypes import WideIntType, i128, u128, wide_from_ints
from toolkit.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_SOURCES = "view@version, simulate@now or committed"
_TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a frame.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType
    meaning : str
        A phrase.
    unit : str
        Empty for text, flags and counts without a unit.
    source : str
        Origin of the value: a header, a field of an answer, or a parameter of the caller.
    required : bool
        Whether the column cannot have nulls.
    """

    name: str
    type: pa.DataType
    meaning: str
    unit: str = ""
    source: str = ""
    required: bool = False

    def field(self) -> pa.Field:
        """Return the Arrow field with its metadata."""
        return described_field(
            self.name, self.type, unit=self.unit, source=self.source, typing="schema", meaning=self.meaning
        )


def described_field(name: str, kind: pa.DataType, **about: str) -> pa.Field:
    """Return an Arrow field with the non-empty entries of `about` (unit, source, typing, meaning) as metadata."""
    return pa.field(name, kind, metadata={key: text for key, text in about.items() if text})


@dataclass(frozen=True, slots=True)
class Schema:
    """An ordered set of columns."""

    name: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    @property
    def names(self) -> list[str]:
        """Column names in order."""
        return [column.name for column in self.columns]

    def table(self, values: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Return an Arrow table of one sequence of Python values per column.

        Parameters
        ----------
        values : mapping of str to sequence
            Missing columns are null.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        SchemaError
            If a value does not fit its column; with column and row.
        """
        unknown = set(values) - set(self.names)
        if unknown:
            raise SchemaError(f"{self.name}: no such columns {sorted(unknown)}; the columns are {self.names}")
        rows = max((len(column) for column in values.values()), default=0)
        for name, column in values.items():
            if len(column) != rows:
                raise SchemaError(f"column {name!r} has {len(column)} values, another one has {rows}", column=name)
        arrays = [_array(column, values.get(column.name), rows) for column in self.columns]
        return pa.Table.from_arrays(arrays, schema=self.arrow())

    def arrow(self) -> pa.Schema:
        """Return the Arrow schema."""
        return pa.schema([column.field() for column in self.columns])


def _array(column: Column, values: Sequence[Any] | None, rows: int) -> pa.Array:
    if values is None:
        if column.required and rows:
            raise SchemaError(f"column {column.name!r} needs a value in every row, got none", column=column.name)
        return pa.nulls(rows, column.type)
    if pa.types.is_integer(column.type) and float in set(map(type, values)):
        # pyarrow truncates 2.5 to 2 silently, and large integers are not exact as floats.
        row = next(place for place, value in enumerate(values) if type(value) is float)
        text = f"column {column.name!r} is {column.type}; row {row} holds {values[row]!r}, a float, which is not exact"
        raise SchemaError(text, column=column.name, rows=[row])
    try:
        wide = isinstance(column.type, WideIntType)
        array = wide_from_ints(values, column.type, column=column.name) if wide else pa.array(values, type=column.type)
    except SchemaError:
        raise
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError) as error:
        raise _misfit(column, values, error) from None
    if column.required and array.null_count:
        row = array.is_null().index(pa.scalar(value=True)).as_py()
        raise SchemaError(
            f"column {column.name!r} needs a value in row {row}, got none", column=column.name, rows=[row]
        )
    return array


def _misfit(column: Column, values: Sequence[Any], error: Exception) -> SchemaError:
    """Return the error with the first value that does not fit."""
    for row, value in enumerate(values):
        try:
            pa.array([value], type=column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, ValueError):
            text = f"column {column.name!r} is {column.type}; row {row} holds {str(value)[:80]!r}, which does not fit"
            return SchemaError(text, column=column.name, rows=[row])
    return SchemaError(f"column {column.name!r} is {column.type}: {error}", column=column.name)


def _text(name: str, meaning: str, **about: Any) -> Column:
    return Column(name, pa.string(), meaning, **about)


def _u64(name: str, meaning: str, unit: str = "", **about: Any) -> Column:
    return Column(name, pa.uint64(), meaning, unit, **about)


def _f64(name: str, meaning: str, unit: str = "", **about: Any) -> Column:
    return Column(name, pa.float64(), meaning, unit, **about)


# Columns of failures, the same in every frame with one row per call.
OUTCOME = (
    Column(
        "status",
        pa.uint16(),
        "HTTP status of a call that failed; null if it succeeded",
        source="HTTP status",
    ),
    _text(
        "error_code",
        "the node's code of a call that failed; else `http_` and the status, `unreachable` (no answer), "
        "`schema_error` (the answer does not fit its type), `input_error` (the call cannot be made)",
        source="error body: error_code",
    ),
    _u64(
        "vm_error_code",
        "VM status number of a call that failed in the VM",
        source="error body: vm_error_code",
    ),
    _text("error_message", "what went wrong, cut after 2,000 characters", source="error body: message"),
)

_READ = (
    _u64("ledger_version", "version that was read", source="request, or the head when it answered"),
    Column("ledger_timestamp", _TIME, "time of the version read, if known", source="block_timestamp"),
    _u64("head_version", "the node's head when it answered", source="header Ledger-Version"),
)

# Columns of a view frame, besides the value columns, which follow ``head_version``.
VIEWS = Schema(
    "views",
    (
        _text("call", "the call as the caller named it"),
        *_READ,
        _u64("gas_used", "gas of the call", "gas units", source="header Gas-Used"),
        *OUTCOME,
    ),
)

# Columns of a frame of a resource over versions, besides its fields, which follow ``head_version``.
RESOURCES = Schema(
    "resources",
    (_text("address", "account or object that has the resource", source="caller", required=True), *_READ, *OUTCOME),
)

# Columns of a table item frame, besides ``key``, which is first, and ``value``, which follows ``head_version``.
TABLE_ITEMS = Schema(
    "table items",
    (
        *_READ,
        _text(
            "presence",
            "present; missing; deleted (present at an earlier version of the same frame); pruned; null if not known",
            source="status and error_code",
        ),
        *OUTCOME,
    ),
)

TRANSACTIONS = Schema(
    "transactions",
    (
        _u64("request", "position of the request in a batch", source="caller"),
        _u64("ledger_version", "its version; for a simulation the head it ran on", source="version"),
        _text("hash", "transaction hash", source="hash"),
        _text("type", "kind of transaction; user_transaction for a simulation", source="type"),
        Column("success", pa.bool_(), "whether the transaction succeeded", source="success"),
        _text("vm_status", "how execution ended, cut after 2,000 characters", source="vm_status"),
        _u64("gas_used", "gas charged", "gas units", source="gas_used"),
        _text("sender", "sending account", source="sender"),
        _text("fee_payer", "account that pays the fee, if it is not the sender", source="signature.fee_payer_address"),
        _u64("sequence_number", "2^64-1 for an orderless transaction", source="sequence_number"),
        _u64("max_gas_amount", "most gas the sender allows", "gas units", source="max_gas_amount"),
        _u64("gas_unit_price", "price", "octas per gas unit", source="gas_unit_price"),
        _u64(
            "expiration_timestamp_secs",
            "time after which it is void",
            "seconds",
            source="expiration_timestamp_secs",
        ),
        _u64("replay_protection_nonce", "set for an orderless transaction", source="replay_protection_nonce"),
        _text("payload_type", "kind of payload", source="payload.type"),
        _text("function", "entry function called", source="payload.function"),
        _text("payload", "payload as JSON text", source="payload"),
        _text("signature_type", "kind of signature", source="signature.type"),
        Column("timestamp", _TIME, "ledger time of the transaction", source="timestamp"),
        _u64("epoch", "epoch that a block starts in", source="epoch"),
        _u64("changes", "number of state changes", source="changes"),
        _u64("events", "number of events", source="events"),
        _u64("total_charge_gas_units", "gas charged", "gas units", source="FeeStatement"),
        _u64("execution_gas_units", "for execution", "gas units", source="FeeStatement"),
        _u64("io_gas_units", "for reads and writes", "gas units", source="FeeStatement"),
        _u64("storage_fee_octas", "for storage taken", "octas", source="FeeStatement"),
        _u64("storage_fee_refund_octas", "for storage given back", "octas", source="FeeStatement"),
        *OUTCOME,
        _text(
            "raw",
            "the whole transaction as JSON text; of malformed ones and unknown kinds",
            source="the answer",
        ),
    ),
)

CHANGES = Schema(
    "state changes",
    (
        _u64("request", "position of the request in a batch", source="caller"),
        _u64("ledger_version", "version of the transaction", source="version"),
        _u64("change_index", "position among the transaction's changes"),
        _text("type", "kind of state change", source="changes[].type"),
        _text("address", "account whose state changes", source="changes[].address"),
        _text("state_key_hash", "hash of the state key", source="changes[].state_key_hash"),
        _text("resource_type", "struct tag of the resource", source="changes[].data.type"),
        _text("module", "module id", source="changes[].module"),
        _text("handle", "table handle", source="changes[].handle"),
        Column("key", pa.binary(), "table key as BCS", source="changes[].key"),
        Column("value", pa.binary(), "table value as BCS", source="changes[].value"),
        _text("key_type", "type of the key, if the node decoded it", source="changes[].data.key_type"),
        _text("value_type", "type of the value, if the node decoded it", source="changes[].data.value_type"),
        _text("data", "what was written, as JSON text", source="changes[].data"),
    ),
)

EVENTS = Schema(
    "events",
    (
        _u64("request", "position of the request in a batch", source="caller"),
        _u64("ledger_version", "version of the transaction", source="version"),
        _u64("event_index", "position among the transaction's events"),
        _text("type", "type of the event", source="events[].type"),
        _text("account_address", "account of the handle; 0x0 for a module event", source="events[].guid"),
        _u64("creation_number", "number of the handle; 0 for a module event", source="events[].guid"),
        _u64("sequence_number", "number within the handle", source="events[].sequence_number"),
        _text("data", "payload as JSON text", source="events[].data"),
    ),
)

# One row per owner and asset whose balance a transaction changes.
BALANCES = Schema(
    "balances",
    (
        _text("owner", "account; the store if its owner is not known", required=True),
        _text("asset", "coin type, or the fungible asset's metadata address", required=True),
        _text("standard", "coin or fungible asset", required=True),
        Column("deposited", u128(), "sum of what came in", "base units", "deposit events", required=True),
        Column("withdrawn", u128(), "sum of what went out", "base units", "withdraw events", required=True),
        Column(
            "fee_octas", pa.int64(), "fee less storage refund, for who pays it", "octas", "FeeStatement", required=True
        ),
        Column(
            "change",
            i128(),
            "deposited less withdrawn less fee; null if what a store held before is needed and cannot be read",
            "base units",
        ),
        _u64(
            "balance_after",
            "balance of the store after the transaction, if it was written; 0 if it was deleted",
            "base units",
            source="changes",
        ),
    ),
)

# One row per module of an account.
ACCOUNT_MODULES = Schema(
    "modules of an account",
    (
        _text("name", "name of the module; missing if the node cannot read its code", source="abi.name"),
        _text("package", "package that it was published in", source="0x1::code::PackageRegistry"),
        Column("entry_functions", pa.uint32(), "functions that transactions call", source="abi.exposed_functions"),
        Column("view_functions", pa.uint32(), "view functions", source="abi.exposed_functions"),
        Column("structs", pa.uint32(), "structs and enums", source="abi.structs"),
        Column("size_bytes", pa.uint64(), "size of the code", "bytes", "bytecode", required=True),
    ),
)

# One row per resource of an account; the members of a resource group are separate rows.
ACCOUNT_RESOURCES = Schema(
    "resources of an account",
    (
        _text("resource_type", "struct tag", source="type", required=True),
        Column("json_bytes", pa.uint64(), "size of the fields as JSON", "bytes", "data", required=True),
        _text("data", "the fields, as JSON text", source="data", required=True),
    ),
)

# One row per store of an account; followed by ``amount``, the balance in whole coins as decimals.
HOLDINGS = Schema(
    "balances of an account",
    (
        _text("asset", "coin type, or the fungible asset's metadata address", required=True),
        _text("standard", "coin or fungible asset", required=True),
        _u64("balance", "what the store has", "base units", source="CoinStore or FungibleStore", required=True),
        Column("decimals", pa.uint8(), "decimal places of a whole coin", source="CoinInfo or Metadata"),
        _text("symbol", "symbol; anybody may choose any", source="CoinInfo or Metadata"),
        _text("name", "name; anybody may choose any", source="CoinInfo or Metadata"),
        _text("store", "address that has the store: the account for a coin, else an object; missing without one"),
        _text("owner", "owner of the store", required=True),
    ),
)

# One row per resource or table item that one simulation writes or deletes.
DIFF = Schema(
    "state diff",
    (
        _text("type", "kind of state change", source="changes[].type", required=True),
        _text("address", "account of a resource", source="changes[].address"),
        _text("resource_type", "struct tag of a resource", source="changes[].data.type"),
        _text("handle", "table handle", source="changes[].handle"),
        Column("key", pa.binary(), "table key as BCS", source="changes[].key"),
        _text("before", "resource as JSON text, item as hex of BCS; null if it did not exist", source="state read"),
        _text("after", "the same after the transaction; null if it is deleted", source="changes[]"),
        Column("fields_changed", pa.list_(pa.string()), "top-level fields of a resource that differ"),
    ),
)

# Columns that precede those of a typed frame of several transactions.
TRANSACTION_KEY = Schema(
    "transaction of a row",
    (
        _u64("request", "position of the request in a batch of simulations; not of committed ones", source="caller"),
        _u64("ledger_version", "its version; for a simulation the head it ran on", source="version"),
        _text("hash", "its hash", source="hash"),
    ),
)

# One row per resource or table item that one of several transactions writes or deletes.
DIFFS = Schema("state diffs", (*TRANSACTION_KEY, *DIFF, *OUTCOME))

# Columns of a table key frame, after ``key``.
KEYS = Schema(
    "table keys",
    (
        _u64("first_version", "first version whose transaction wrote or deleted the item", source="version"),
        _u64("last_version", "last such version", source="version"),
        _u64("changes", "how often it was written or deleted"),
        Column("deleted", pa.bool_(), "whether the last of these changes deleted it", source="changes[].type"),
    ),
)

# One row per node and call of a study that has not run yet.
PLAN = Schema(
    "plan",
    (
        _text("node", "URL of the node, without credentials", source="study", required=True),
        _text("label", "the call as people name it", source="study", required=True),
        _text("source", _SOURCES, source="study", required=True),
        _u64("first", "first version read", required=True),
        _u64("last", "last version read", required=True),
        _u64("requests", "requests at least", required=True),
        _u64("requests_most", "requests at most; more than at least for a step search only", required=True),
        _u64("bytes", "sent and received at least, by an assumed size of each answer", "bytes", required=True),
        _u64("bytes_most", "the same at most", "bytes", required=True),
    ),
)

# Columns of committed transactions; null for other sources; runs of earlier versions do not have them.
STRATUM = (
    Column("payload_bytes", pa.uint32(), "length of the payload as compact JSON", "bytes", source="payload"),
    Column("slots_deleted", pa.uint32(), "resources and table items deleted", source="changes[].type"),
    _text(
        "authenticator",
        "kind of signature; of a single sender also the kind of its key, such as `single_sender:keyless`",
        source="signature",
    ),
    Column("orderless", pa.bool_(), "whether it has a nonce and no sequence number", source="replay_protection_nonce"),
    _text("type_arguments", "type arguments of the function, separated by `, `", source="payload.type_arguments"),
    _u64("abort_code", "code of the Move abort, if it ended with one", source="vm_status"),
)

# One row per call, ledger version and source.
OBSERVATIONS = Schema(
    "observations",
    (
        _text("label", "the call as people name it", source="study", required=True),
        _text("fingerprint", "digest of the canonical request", source="toolkit", required=True),
        _text("source", _SOURCES, source="toolkit", required=True),
        _text("node", "URL of the node, without credentials", source="study", required=True),
        _text("node_build", "git hash of the node", source="GET /v1: git_hash"),
        Column(
            "model",
            pa.bool_(),
            "true for the embedded node, whose gas is a model",
            source="toolkit",
            required=True,
        ),
        Column("chain_id", pa.uint8(), "chain id", source="header Chain-Id", required=True),
        _u64("ledger_version", "version read", source="request, or version of the answer", required=True),
        _u64("head_version", "the node's head when it answered", source="header Ledger-Version"),
        Column("ledger_timestamp", _TIME, "time of the version read, if known", source="block_timestamp"),
        _u64("gas_used", "gas of the call", "gas units", source="header Gas-Used, or gas_used"),
        _u64("execution_gas_units", "for execution", "gas units", source="FeeStatement"),
        _u64("io_gas_units", "for reads and writes", "gas units", source="FeeStatement"),
        _u64("storage_fee_octas", "for storage taken", "octas", source="FeeStatement"),
        _u64("storage_fee_refund_octas", "for storage given back", "octas", source="FeeStatement"),
        _u64("gas_unit_price", "price", "octas per gas unit", source="gas_unit_price"),
        Column("success", pa.bool_(), "whether execution succeeded", source="success, or HTTP 200 of a view"),
        _text("vm_status", "how execution ended, cut after 2,000 characters", source="vm_status"),
        *(column for column in OUTCOME if column.name != "vm_error_code"),
        _text("value_digest", "digest of the returned values or writes", source="toolkit"),
        Column("observed_at", _TIME, "when the answer came", source="clock", required=True),
        _text("toolkit_version", "version of this toolkit", source="toolkit", required=True),
        *STRATUM,
    ),
)

# One row per step in gas, success or error: of a view between two neighbouring observations, of committed
# transactions per kind of transaction (stratum) and part of the gas.
STEPS = Schema(
    "steps",
    (
        _text("label", "the call as people name it", required=True),
        _text("fingerprint", "digest of the canonical request", required=True),
        _text("source", _SOURCES, required=True),
        _text("node", "URL of the node, without credentials", required=True),
        _u64("version_before", "last version known with the old outcome", required=True),
        _u64("version_after", "first version known with the new outcome", required=True),
        Column("exact", pa.bool_(), "true if the two versions are adjacent", required=True),
        _u64("gas_before", "gas before; null if the call failed", "gas units"),
        _u64("gas_after", "gas after; null if the call failed", "gas units"),
        Column("change", pa.int64(), "gas after minus gas before", "gas units"),
        Column("change_percent", pa.float64(), "change relative to gas before", "percent"),
        Column("success_before", pa.bool_(), "whether execution succeeded before"),
        Column("success_after", pa.bool_(), "whether execution succeeded after"),
        _text("error_before", "error code before, if the call failed"),
        _text("error_after", "error code after, if the call failed"),
        _text("cause", "kind of cause; the documentation lists them under 'Why a step has a cause'", required=True),
        Column("cause_parts", pa.list_(pa.string()), "the kinds that a mixed cause is made of, else the one kind"),
        _text("explanation", "the cause in plain words"),
        _text("transaction_hash", "of the transaction at version_after, if the step is exact", source="hash"),
        _text("transaction_type", "its type", source="type"),
        _text("transaction_sender", "who sent it", source="sender"),
        _text("transaction_function", "the function it called", source="payload.function"),
        Column("time", _TIME, "time of the transaction at version_after; null if it was not read", source="timestamp"),
        _text("part", "part of committed gas that steps: execution, io, storage or refund; null for views"),
        _text("stratum", "kind of committed transactions that are compared; null for views"),
        _f64("change_low", "lower bound of the change, 95 %, rounding included", "gas units"),
        _f64("change_high", "upper bound of the change", "gas units"),
        _f64("total_before", "mean gas_used of the transactions compared before", "gas units"),
        _f64("total_after", "mean gas_used of the transactions compared after", "gas units"),
        _u64("count_before", "committed transactions compared before"),
        _u64("count_after", "committed transactions compared after"),
        Column("uncertain", pa.list_(pa.string()), "reasons for caution; empty if there are none, null for views"),
    ),
)

# One row per kind of committed transactions and stretch between its steps: the mean, or a line if it grows.
LEVELS = Schema(
    "levels",
    (
        _text("label", "the call as people name it", required=True),
        _text("fingerprint", "digest of the canonical request", required=True),
        _text("node", "URL of the node, without credentials", required=True),
        _text("stratum", "kind of committed transactions", required=True),
        _u64("version_first", "first version of the stretch", required=True),
        _u64("version_last", "last version of the stretch", required=True),
        _f64("gas_first", "gas_used at the first version", "gas units", required=True),
        _f64("gas_last", "gas_used at the last version", "gas units", required=True),
        _u64("count", "number of transactions", required=True),
    ),
)

# One row per slope of committed gas between two steps: growth with state is not a step.
GROWTH = Schema(
    "growth",
    (
        _text("label", "the call as people name it", required=True),
        _text("fingerprint", "digest of the canonical request", required=True),
        _text("node", "URL of the node, without credentials", required=True),
        _text("stratum", "kind of committed transactions", required=True),
        _text("part", "execution, io, storage or refund", required=True),
        _u64("version_first", "first observation of the slope", required=True),
        _u64("version_last", "last observation of the slope", required=True),
        _f64("per_1000_versions", "slope", "gas units per 1,000 versions", required=True),
        _f64("low", "lower bound of the slope, 95 %", "gas units per 1,000 versions", required=True),
        _f64("high", "upper bound of the slope", "gas units per 1,000 versions", required=True),
        _f64("level", "mean of the part", "gas units", required=True),
        _u64("count", "number of transactions", required=True),
    ),
)

# One row per kind of transaction and place at which the shares of the kinds change: that is not a step.
MIX = Schema(
    "mix",
    (
        _text("label", "the call as people name it", required=True),
        _text("fingerprint", "digest of the canonical request", required=True),
        _text("node", "URL of the node, without credentials", required=True),
        _u64("version_before", "last transaction before the mix changes", required=True),
        _u64("version_after", "first transaction after it", required=True),
        _text("stratum", "kind of committed transactions", required=True),
        _f64("share_before", "its share before", required=True),
        _f64("share_after", "its share after", required=True),
    ),
)

# One row per version and kind of change of the gas schedule, configuration or code.
TIMELINE = Schema(
    "timeline",
    (
        _u64("ledger_version", "version of the transaction that made the change", required=True),
        _u64("version_before", "last version read before the change", required=True),
        Column("exact", pa.bool_(), "true if the two versions are adjacent", required=True),
        Column("time", _TIME, "time of the transaction; null if it was not read", source="timestamp"),
        _text("kind", "schedule, code or config", required=True),
        _text("what", "what changed, in words", required=True),
        Column("modules", pa.list_(pa.string()), "modules whose code changed; empty for other kinds", required=True),
        Column(
            "affects",
            pa.list_(pa.string()),
            "of a change of code: the modules asked for that changed or depend on a module that did",
            required=True,
        ),
        Column(
            "parts",
            pa.list_(pa.string()),
            "parts of gas that the change can move: execution, io, storage, refund",
            required=True,
        ),
        _text("transaction_hash", "of the transaction, if the change is exact and it was read", source="hash"),
        _text("transaction_type", "its type", source="type"),
        _text("transaction_sender", "who sent it", source="sender"),
        _text("transaction_function", "the function it called", source="payload.function"),
    ),
)

# The timelines of the nodes of a run.
RUN_TIMELINE = Schema(
    "timeline of a run",
    (_text("node", "URL of the node, without credentials", source="study", required=True), *TIMELINE.columns),
)

_PRICE = "internal gas units, unless the name says otherwise"

# One row per parameter that differs between two gas schedules.
SCHEDULE_DIFF = Schema(
    "schedule diff",
    (
        _text("name", "parameter of the gas schedule", source="entries[].key", required=True),
        _text("kind", "added, removed or changed", required=True),
        _u64("before", "value before; null if it was added", _PRICE, source="entries[].val"),
        _u64("after", "value after; null if it was removed", _PRICE, source="entries[].val"),
        Column("change", i128(), "after minus before", _PRICE),
        Column("ratio", pa.float64(), "after divided by before; null if that is 0 or missing on a side"),
    ),
)


_FEES = "event FeeStatement"
_FEE = "the same in octas; the total without the refund"

# One row per part of the gas of a committed transaction that is simulated again.
RESIMULATION = Schema(
    "resimulation",
    (
        _text("part", "execution, io, storage, refund or total", required=True),
        _text("function", "function that is called; null for a script", source="payload.function"),
        _u64("ledger_version", "version of the committed transaction", source="version"),
        _u64("simulated_version", "version on whose state it was simulated again", source="version"),
        Column("gas_committed", pa.float64(), "gas of the committed transaction", "gas units", source=_FEES),
        Column("gas_simulated", pa.float64(), "gas of the simulation", "gas units", source=_FEES),
        Column("gas_change", pa.float64(), "simulated minus committed", "gas units"),
        _u64("octas_committed", _FEE, "octas", source=_FEES),
        _u64("octas_simulated", _FEE, "octas", source=_FEES),
        Column("octas_change", i128(), "simulated minus committed", "octas"),
        Column("comparable", pa.bool_(), "false if the two did not do the same for this part", required=True),
        Column("reasons", pa.list_(pa.string()), "why they cannot be compared"),
    ),
)

# One row per part of each committed transaction of a run that is simulated again.
RESIMULATIONS = Schema(
    "resimulations of a run",
    (
        _text("label", "the call as people name it", required=True),
        _text("node", "URL of the node", required=True),
        *RESIMULATION,
        Column("changes_between", pa.list_(pa.string()), "changes of the run's timeline from the transaction on"),
    ),
)


# One row per part of a call: what it would cost under another gas schedule.
FORECAST = Schema(
    "forecast",
    (
        _text("label", "the call as people name it; the function of a simulation or transaction", required=True),
        _text("source", _SOURCES, required=True),
        _text("node", "URL of the node, of a call of a run"),
        _u64("ledger_version", "version of the observation"),
        _text("part", "execution, io, storage, refund or total; total only of a view", required=True),
        Column("now", pa.float64(), "what was charged", "gas units"),
        Column("low", pa.float64(), "least charge under the other schedule; null if nothing is known", "gas units"),
        Column("high", pa.float64(), "greatest charge; null if it has no bound", "gas units"),
        _u64("now_octas", "the same at the gas unit price; null for a view", "octas"),
        _u64("low_octas", "the same at the gas unit price; null for a view", "octas"),
        _u64("high_octas", "the same at the gas unit price; null for a view", "octas"),
        Column("reasons", pa.list_(pa.string()), "what is not known"),
    ),
)


def _sides(name: str, kind: pa.DataType, meaning: str, unit: str = "") -> tuple[Column, Column]:
    """Return a column for each side of a comparison."""
    return (
        Column(f"{name}_before", kind, f"{meaning} before", unit),
        Column(f"{name}_after", kind, f"{meaning} after", unit),
    )


# One row per call and source of two sides; of committed calls of two runs, one per kind of transaction.
COMPARISON = Schema(
    "comparison",
    (
        _text("label", "the call as people name it", required=True),
        _text("fingerprint", "digest of the canonical request", required=True),
        _text("source", _SOURCES, required=True),
        _text("node", "URL of the node of the after side; of the before side if the call is removed", required=True),
        Column("model", pa.bool_(), "true for the embedded node, whose gas is a model", required=True),
        _text("kind", "added, removed, changed, unchanged or unreachable", required=True),
        *_sides("version", pa.uint64(), "version read"),
        *_sides("gas", pa.uint64(), "gas of the call", "gas units"),
        Column("change", pa.int64(), "gas after minus gas before", "gas units"),
        Column("change_percent", pa.float64(), "change relative to gas before", "percent"),
        *_sides("success", pa.bool_(), "whether execution succeeded"),
        *_sides("error", pa.string(), "error code, if the call failed,"),
        *_sides("vm_status", pa.string(), "how execution ended"),
        *_sides("execution_gas_units", pa.uint64(), "for execution,", "gas units"),
        *_sides("io_gas_units", pa.uint64(), "for reads and writes,", "gas units"),
        *_sides("storage_fee_octas", pa.uint64(), "for storage taken,", "octas"),
        *_sides("storage_fee_refund_octas", pa.uint64(), "for storage given back,", "octas"),
        Column("value_changed", pa.bool_(), "whether the returned values or writes differ"),
        *_sides("count", pa.uint64(), "number of successful observations with gas"),
        *_sides("p50", pa.uint64(), "median of their gas, an observed value,", "gas units"),
        *_sides("p90", pa.uint64(), "smallest gas that 90 % of them do not exceed,", "gas units"),
        *_sides("p99", pa.uint64(), "smallest gas that 99 % of them do not exceed,", "gas units"),
        _text("stratum", "kind of committed transactions that is compared; null for other rows"),
        _f64("change_low", "lower bound of the change of committed gas, 95 %", "gas units"),
        _f64("change_high", "upper bound of the change", "gas units"),
        _text("not_judged", "why a kind of committed transactions cannot be compared"),
        _text("cause", "kind of cause of the steps between the two sides, if a run has them"),
        _text("explanation", "these steps in plain words"),
    ),
)


_SCHEMAS = (
    VIEWS,
    TABLE_ITEMS,
    RESOURCES,
    TRANSACTIONS,
    CHANGES,
    EVENTS,
    BALANCES,
    ACCOUNT_MODULES,
    ACCOUNT_RESOURCES,
    HOLDINGS,
    DIFF,
    TRANSACTION_KEY,
    KEYS,
    PLAN,
    OBSERVATIONS,
    STEPS,
    LEVELS,
    GROWTH,
    MIX,
    TIMELINE,
    COMPARISON,
    SCHEDULE_DIFF,
    RESIMULATION,
    RESIMULATIONS,
    FORECAST,
)


def data_dictionary() -> str:
    """Return every frame's columns with type, unit, meaning and source, as Markdown tables.

    Returns
    -------
    str
        One section per frame.
    """
    return "\n".join(_section(one) for one in _SCHEMAS)


def _section(one: Schema) -> str:
    rows = [
        f"| `{column.name}` | {column.type} | {column.unit} | {column.meaning} | {column.source} |" for column in one
    ]
    head = [
        f"## {one.name.capitalize()}",
        "",
        "| column | Arrow type | unit | meaning | source |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])
