"""The prologue of a transaction: the checks of the machine, then those of the framework."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolkit.move._ids import address_to_bytes
from toolkit.vm import _features as flags
from toolkit.vm import _gas_versions as since
from toolkit.vm._bcs import write_text
from toolkit.vm._charges import check_limits
from toolkit.vm._errors import MoveError
from toolkit.vm._state import resource_key
from toolkit.vm._transaction_run import MULTISIG, PROLOGUE, VALIDATION, TransactionRun, reference
from toolkit.vm._types import FRAMEWORK, ModuleId, struct
from toolkit.vm._values import option, signer
from toolkit.wire import _bcs_forms as bcs
from toolkit.wire import _bcs_requests as requests
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import unhex

if TYPE_CHECKING:
    from toolkit.vm._interpreter import Machine
    from toolkit.vm._values import Value

_ACCOUNT = struct("0x1::account::Account")

# Status codes for aborts of the prologue, and of the check of a multisig transaction.
_PROLOGUE_ABORTS = {
    (1 << 16) + 1001: "INVALID_AUTH_KEY",
    (1 << 16) + 1002: "SEQUENCE_NUMBER_TOO_OLD",
    (1 << 16) + 1003: "SEQUENCE_NUMBER_TOO_NEW",
    (1 << 16) + 1004: "SENDING_ACCOUNT_DOES_NOT_EXIST",
    (1 << 16) + 1005: "INSUFFICIENT_BALANCE_FOR_TRANSACTION_FEE",
    (1 << 16) + 1006: "TRANSACTION_EXPIRED",
    (1 << 16) + 1007: "BAD_CHAIN_ID",
    (1 << 16) + 1009: "SECONDARY_KEYS_ADDRESSES_COUNT_MISMATCH",
    (1 << 16) + 1010: "GAS_PAYER_ACCOUNT_MISSING",
    (1 << 16) + 1012: "NONCE_ALREADY_USED",
    (1 << 16) + 1013: "TRANSACTION_EXPIRATION_TOO_FAR_IN_FUTURE",
    (2 << 16) + 1008: "SEQUENCE_NUMBER_TOO_BIG",
    (3 << 16) + 1011: "INSUFFICIENT_BALANCE_FOR_REQUIRED_DEPOSIT",
}
_MULTISIG_ABORTS = {
    (3 << 16) + 2002: "NOT_MULTISIG_ACCOUNT",
    (5 << 16) + 2003: "NOT_MULTISIG_OWNER",
    (6 << 16) + 2006: "MULTISIG_TRANSACTION_NOT_FOUND",
    (1 << 16) + 2009: "MULTISIG_TRANSACTION_INSUFFICIENT_APPROVALS",
    (1 << 16) + 2008: "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH_HASH",
    (1 << 16) + 2010: "MULTISIG_TRANSACTION_PAYLOAD_DOES_NOT_MATCH",
}


def run_prologue(run: TransactionRun) -> None:
    """Check the transaction; what the prologue writes stays, whatever happens later.

    Raises
    ------
    MoveError
        If the transaction is discarded.
    """
    if not run.simulate and not run.signers.are_valid(run.signed.signing_message()):
        raise MoveError("INVALID_SIGNATURE")
    everyone = (run.sender, *run.signers.addresses)
    _refuse(
        SIGNERS_CONTAIN_DUPLICATES=len(set(everyone)) != len(everyone),
        NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH_IN_PROOF=len(run.signers.addresses) != len(run.signers.secondary),
    )
    _authenticate(run)
    payload, features = run.raw.payload, run.features
    gated = isinstance(payload, requests.EncodedPayloadV2) and flags.PAYLOAD_V2 not in features
    gated |= run.nonce is not None and flags.ORDERLESS not in features
    _refuse(FEATURE_UNDER_GATING=gated or isinstance(payload, requests.EncodedModuleBundle))
    _check_gas(run)
    _refuse(EMPTY_PAYLOAD_PROVIDED=run.executable is None and run.multisig is None)
    if isinstance(run.executable, requests.EncodedScript) and run.multisig is not None:
        raise MoveError("FEATURE_UNDER_GATING", "Script payload not yet supported for multisig transactions")
    machine = run.machine(PROLOGUE, metered=False)
    _validate(machine, VALIDATION, *_prologue_call(run), aborts=_PROLOGUE_ABORTS)
    if run.multisig is not None and (not run.simulate or flags.SIMULATION_ENHANCEMENT in run.features):
        provided = bytearray(provided_payload(run))
        arguments = [reference(signer(run.sender)), run.multisig, provided]
        _validate(machine, MULTISIG, "validate_multisig_transaction", arguments, aborts=_MULTISIG_ABORTS)
    run.state.apply(machine.session.changes())
    run.events += machine.session.events
    check_limits(run.state, run.events, run.schedule)


def _authenticate(run: TransactionRun) -> None:
    """Let Move code check abstract signatures, on a part of the gas: the rest is taken away meanwhile."""
    signed = [(run.sender, run.signers.sender), *zip(run.signers.addresses, run.signers.secondary, strict=True)]
    if run.signers.payer is not None:
        signed.append((run.payer, run.signers.payer))
    abstract = [(address, one) for address, one in signed if isinstance(one, signatures.AbstractSignature)]
    if not abstract:
        return
    for _, one in abstract:
        derivable = unhex(one.auth_data)[:1] == b"\1"
        needed = flags.DERIVABLE_ACCOUNT_ABSTRACTION if derivable else flags.ACCOUNT_ABSTRACTION
        _refuse(FEATURE_UNDER_GATING=needed not in run.features)
    most = run.schedule["txn.max_aa_gas"]
    held = run.raw.max_gas_amount - min(most, run.raw.max_gas_amount)
    run.meter.add_budget(-held)
    for address, one in abstract:
        try:
            _run_authenticate(run, address, one)
        except MoveError as error:
            if error.status == "OUT_OF_GAS":
                raise MoveError("ACCOUNT_AUTHENTICATION_GAS_LIMIT_EXCEEDED") from None
            raise
    run.meter.add_budget(held)


def _run_authenticate(run: TransactionRun, address: bytes, signature: signatures.AbstractSignature) -> None:
    machine = run.machine(PROLOGUE)
    function = run.loader.function(ModuleId(FRAMEWORK, "account_abstraction"), "authenticate")
    assert signature.function_info is not None  # noqa: S101 - BCS has it
    place, name, method = signature.function_info.split("::")
    info = bytearray(address_to_bytes(place))
    write_text(name, info)
    write_text(method, info)
    data = unhex(signature.auth_data)
    values = [signer(address)]
    for kind, raw in zip(function.parameters[1:], (bytes(info), data), strict=True):
        values.append(machine.serializing_layout(kind).decode(raw))
    machine.run(run.loader.code(function, ()), values)


def _refuse(**wrong: bool) -> None:
    """Raise the first status that holds."""
    for status, holds in wrong.items():
        if holds:
            raise MoveError(status)


def _check_gas(run: TransactionRun) -> None:
    """Check size, gas limit and price, before anything runs; find out whether the account is new."""
    schedule, raw = run.schedule, run.raw
    needed = -(-(intrinsic_gas(run) + keyless_gas(run)) // schedule.unit)
    _refuse(
        EXCEEDED_MAX_TRANSACTION_SIZE=run.size > schedule["txn.max_transaction_size_in_bytes"],
        MAX_GAS_UNITS_EXCEEDS_MAX_GAS_UNITS_BOUND=raw.max_gas_amount > schedule["txn.maximum_number_of_gas_units"],
        MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS=raw.max_gas_amount < needed,
        GAS_UNIT_PRICE_BELOW_MIN_BOUND=raw.gas_unit_price < schedule["txn.min_price_per_gas_unit"],
        GAS_UNIT_PRICE_ABOVE_MAX_BOUND=raw.gas_unit_price > schedule["txn.max_price_per_gas_unit"],
    )
    run.account_is_new = _must_create_account(run)
    if not run.account_is_new or (raw.gas_unit_price == 0 and flags.DEFAULT_ACCOUNT_RESOURCE in run.features):
        return
    # As nodes estimate it: ten gas units to run, and what is stored, which is the account and perhaps its coins.
    slots = 1 if flags.NEW_ACCOUNTS_TO_STORE in run.features else 2
    least = 10 * raw.gas_unit_price + slots * _account_fee(run)
    _refuse(MAX_GAS_UNITS_BELOW_MIN_TRANSACTION_GAS_UNITS=raw.gas_unit_price * raw.max_gas_amount < least)


def intrinsic_gas(run: TransactionRun) -> int:
    schedule = run.schedule
    over = max(0, run.size - schedule["txn.large_transaction_cutoff"])
    return schedule["txn.min_transaction_gas_units"] + schedule["txn.intrinsic_gas_per_byte"] * over


def keyless_gas(run: TransactionRun) -> int:
    return run.schedule["txn.keyless.base"] if run.signers.any_is_keyless else 0


def _account_fee(run: TransactionRun) -> int:
    """Return what a slot of a new account costs: a node expects at most 300 bytes in it."""
    schedule = run.schedule
    if schedule.version >= since.REFUNDABLE_BYTES and flags.REFUNDABLE_BYTES in run.features:
        return schedule["txn.storage_fee_per_state_slot"] + 300 * schedule["txn.storage_fee_per_state_byte"]
    return schedule.legacy("storage_fee_per_state_slot_create")


def _must_create_account(run: TransactionRun) -> bool:
    """Return whether the sender's account is made by this transaction."""
    lazily = flags.DEFAULT_ACCOUNT_RESOURCE in run.features
    lazily |= flags.FEE_PAYER_ACCOUNT in run.features and run.signers.payer_address is not None
    if not lazily or run.nonce is not None or run.raw.sequence_number != 0:
        return False
    return run.environment.base.get(resource_key(run.sender, _ACCOUNT)) is None


def _prologue_call(run: TransactionRun) -> tuple[str, list[Value]]:
    """Return the name of the prologue and its arguments."""
    raw, who = run.raw, run.signers
    key, others = who.sender.authentication_key(), [one.authentication_key() for one in who.secondary]
    payer_key = who.payer.authentication_key() if who.payer is not None else None
    addresses = list(who.addresses)
    limits = [raw.gas_unit_price, raw.max_gas_amount, raw.expiration_timestamp_secs, raw.chain_id]
    if run.is_unified:
        arguments: list[Value] = [signer(run.sender)]
        suffix = ""
        if who.payer_address is not None:
            arguments += [signer(run.payer), _option_of(run, key), _option_of(run, payer_key)]
            suffix = "_fee_payer"
        else:
            arguments.append(_option_of(run, key))
        protector: Value = raw.sequence_number
        if flags.PAYLOAD_V2 in run.features:
            protector = [1, raw.sequence_number] if run.nonce is None else [0, run.nonce]
            suffix += "_v2"
        arguments += [protector, addresses, [_option_of(run, one) for one in others], *limits, run.simulate]
        return f"unified_prologue{suffix}", arguments
    extended = flags.SIMULATION_ENHANCEMENT in run.features
    arguments = [signer(run.sender), raw.sequence_number, bytearray(key or b"")]
    keys = [bytearray(one or b"") for one in others]
    name = "script_prologue"
    if who.payer_address is not None:
        name = "fee_payer_script_prologue"
        arguments += [addresses, keys, run.payer, bytearray(payer_key or b"")]
    elif addresses:
        name = "multi_agent_script_prologue"
        arguments += [addresses, keys]
    arguments += limits
    if name == "script_prologue":
        arguments.append(bytearray(run.script_hash))
    if extended:
        arguments.append(run.simulate)
    return name + "_extended" * extended, arguments


def _option_of(run: TransactionRun, value: bytes | None) -> Value:
    held = None if value is None else bytearray(value)
    return option(held, is_enum=flags.ENUM_OPTION in run.features)


def provided_payload(run: TransactionRun) -> bytes:
    """Return the payload that a multisig transaction carries, in the form that is stored on the ledger."""
    if run.executable is None:
        return b"" if flags.MULTISIG_PAYLOAD_MATCH in run.features else b"\0"
    return bcs.encoded(requests.MULTISIG_PAYLOAD, run.executable)


def _validate(machine: Machine, module: ModuleId, name: str, arguments: list[Value], *, aborts: dict[int, str]) -> None:
    """Run a function of the framework whose aborts stand for status codes."""
    try:
        machine.run_named(module, name, arguments)
    except MoveError as error:
        status = aborts.get(error.sub_status or 0) if error.status == "ABORTED" else None
        raise MoveError(status or "UNEXPECTED_ERROR_FROM_KNOWN_MOVE_FUNCTION") from None
