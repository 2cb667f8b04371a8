"""The three kinds of requests: table item, view and simulation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, StrictBool, model_validator

from toolkit._present.messages import shorten
from toolkit.errors import InputError
from toolkit.wire import _models as models
from toolkit.wire import _signatures as signatures
from toolkit.wire._models import AddressText, Argument, FunctionText, HexText, JsonObject, TypeText, WireModel
from toolkit.wire._signatures import AccountSignature, PublicKey, TransactionSignature, is_zero_padded


class _Call(WireModel):
    """Base class of calls to entry and view functions."""

    _package: ClassVar[str] = "toolkit"

    function: FunctionText
    type_arguments: tuple[TypeText, ...] = ()
    arguments: tuple[Argument, ...] = ()

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return self.content()

    def content(self, *, batch: bool = False) -> dict[str, Any]:
        """Return the call without its kind as JSON; `batch` allows the arguments of calls in a batch."""
        arguments = [models.wire_argument(argument, batch=batch) for argument in self.arguments]
        return {"function": self.function, "type_arguments": list(self.type_arguments), "arguments": arguments}


class EntryFunction(_Call):
    """A call to an entry function.

    Parameters
    ----------
    function : str
        ``address::module::function``.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, without the signers. Without an ABI, they are sent as given, except that an int of more than
        32 bits becomes a string.

    Raises
    ------
    InputError
        If the function id, a type or an argument is not valid.

    Examples
    --------
    >>> call = EntryFunction("0x1::aptos_account::transfer", arguments=["0x2", 100])
    >>> call.to_wire()["arguments"]
    ['0x2', 100]
    """

    type: ClassVar[str] = "entry_function_payload"

    def __init__(
        self, function: str, arguments: Sequence[Any] = (), *, type_arguments: Sequence[str] = (), **unknown: Any
    ) -> None:
        self._fill(function=function, arguments=arguments, type_arguments=type_arguments, **unknown)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> EntryFunction:
        """Create the payload from its JSON form.

        Raises
        ------
        InputError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        return cls(content["function"], content.get("arguments", ()), type_arguments=content.get("type_arguments", ()))

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {"type": self.type} | self.content()


class Script(WireModel):
    """A script: bytecode that is part of the transaction.

    Parameters
    ----------
    bytecode : str or bytes
        Compiled script, as hex or bytes.
    abi : dict, optional
        ABI of the script's function, as returned by nodes. Nodes ignore it in requests.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.
    arguments : sequence, default ()
        JSON-like values, without the signers.
    serialized : bool, default False
        Whether the arguments are BCS, as bytes. Such a script is sent in BCS, in which arguments of any type can be
        sent; JSON has only integers, addresses, bools and ``vector<u8>``.

    Raises
    ------
    InputError
        If the bytecode is not hex, or a type or an argument is not valid.

    Examples
    --------
    >>> Script("0xa11ceb0b", type_arguments=["u64"], arguments=["5"]).to_wire()["code"]
    {'bytecode': '0xa11ceb0b', 'abi': None}
    """

    type: ClassVar[str] = "script_payload"
    _package: ClassVar[str] = "toolkit"

    bytecode: HexText
    abi: dict[str, Any] | None = None
    type_arguments: tuple[TypeText, ...] = ()
    arguments: tuple[Argument, ...] = ()
    serialized: StrictBool = False

    def __init__(
        self,
        bytecode: str | bytes,
        *,
        abi: Mapping[str, Any] | None = None,
        type_arguments: Sequence[str] = (),
        arguments: Sequence[Any] = (),
        serialized: bool = False,
        **unknown: Any,
    ) -> None:
        abi = None if abi is None else dict(abi)
        given = {"type_arguments": type_arguments, "arguments": arguments, "serialized": serialized}
        self._fill(bytecode=bytecode, abi=abi, **given, **unknown)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Script:
        """Create the payload from its JSON form.

        Raises
        ------
        InputError, KeyError, TypeError, AttributeError
            If the object does not have the documented shape.
        """
        code = content["code"]
        return cls(
            code["bytecode"],
            abi=code.get("abi"),
            type_arguments=content.get("type_arguments", ()),
            arguments=content.get("arguments", ()),
        )

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "type": self.type,
            "code": {"bytecode": self.bytecode, "abi": self.abi},
            "type_arguments": list(self.type_arguments),
            "arguments": [models.wire_argument(argument) for argument in self.arguments],
        }


class Multisig(WireModel):
    """A payload that an on-chain multisig account runs.

    Parameters
    ----------
    multisig_address : str
        Address of the multisig account.
    transaction_payload : EntryFunction or Script, optional
        Payload to run; None runs the payload stored on chain. Nodes from before 2026 do not accept a script.

    Raises
    ------
    InputError
        If the address or the inner payload is not valid.

    Examples
    --------
    >>> call = EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100])
    >>> Multisig("0x5afe", transaction_payload=call).transaction_payload.function
    '0x1::aptos_account::transfer'
    """

    type: ClassVar[str] = "multisig_payload"
    _package: ClassVar[str] = "toolkit"

    multisig_address: AddressText
    transaction_payload: EntryFunction | Script | None = None

    def __init__(
        self, multisig_address: str, *, transaction_payload: EntryFunction | Script | None = None, **unknown: Any
    ) -> None:
        self._fill(multisig_address=multisig_address, transaction_payload=transaction_payload, **unknown)

    @classmethod
    def from_wire(cls, content: Mapping[str, Any]) -> Multisig:
        """Create the payload from its JSON form.

        Raises
        ------
        InputError, SchemaError, AttributeError, KeyError, TypeError
            If the object does not have the documented shape.
        """
        # Recordings of an SDK name the inner payload `payload`; nodes name it `transaction_payload`.
        inner = content.get("transaction_payload") or content.get("payload")
        payload = None if inner is None else parse_payload(inner)
        if payload is not None and not isinstance(payload, EntryFunction | Script):
            raise InputError(
                f"expected an entry function or script as the inner payload, got type {shorten(payload.type)}"
            )
        return cls(content["multisig_address"], transaction_payload=payload)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON form; the key ``transaction_payload`` is omitted if it is None."""
        wire: dict[str, Any] = {"type": self.type, "multisig_address": self.multisig_address}
        if self.transaction_payload is not None:
            wire["transaction_payload"] = self.transaction_payload.to_wire()
        return wire


class ViewFunction(_Call):
    """A call to a view function.

    Parameters
    ----------
    function : str
        ``address::module::function``.
    arguments : sequence, default ()
        JSON-like values. Without an ABI, they are sent as given, except that an int of more than 32 bits becomes a
        string.
    type_arguments : sequence of str, default ()
        Type tags, one per type parameter.

    Raises
    ------
    InputError
        If the function id, a type or an argument is not valid.

    Examples
    --------
    >>> call = ViewFunction("0x01::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    >>> call.function
    '0x1::coin::supply'
    """

    def __init__(
        self, function: str, arguments: Sequence[Any] = (), *, type_arguments: Sequence[str] = (), **unknown: Any
    ) -> None:
        self._fill(function=function, arguments=arguments, type_arguments=type_arguments, **unknown)


def _abort(value: object) -> object:
    return value if value is None or isinstance(value, models.BatchResult) else models.u64(value)


class Batch(WireModel):
    """Several calls, run one after another in a single transaction.

    All public functions can be called, not only entry functions, and a call can use the results of earlier calls. When
    the batch is simulated, it becomes a script, which every node accepts.

    Parameters
    ----------
    calls : sequence of EntryFunction or ViewFunction
        The calls, in order. Leave out the signers: the leading ``&signer`` parameters receive the sender and then the
        secondary signers. To choose signers yourself, pass all arguments, with ``Batch.signer(1)`` or a result for each
        ``&signer``.
    abort : int or result, optional
        End the script with this abort code instead of success. Nothing is then written, and values that must not be
        dropped may be left over, so any prefix of a batch can run. To read a result of type u64, pass it as the code:
        the status shows it.

    Raises
    ------
    InputError
        If an item is not a call, or an argument is a result of the same or a later call.

    Notes
    -----
    A result is copied if its type has the abilities copy and drop, and moved otherwise. ``Batch.result(0).borrow()``
    and ``.borrow_mut()`` are for parameters ``&T`` and ``&mut T``; ``.copy()`` and ``.move()`` replace the default. A
    result without the ability drop must be moved into a later call.

    Examples
    --------
    >>> import toolkit
    >>> coin = ["0x1::aptos_coin::AptosCoin"]
    >>> batch = toolkit.Batch(
    ...     [
    ...         toolkit.EntryFunction("0x1::coin::withdraw", [100], type_arguments=coin),
    ...         toolkit.EntryFunction("0x1::coin::deposit", ["0xb0b", toolkit.Batch.result(0)], type_arguments=coin),
    ...     ]
    ... )
    >>> simulation = toolkit.connect().simulate(batch, sender="0xa11ce")
    >>> simulation.success, simulation.gas_used
    (True, 53)
    """

    type: ClassVar[str] = "batch"
    _package: ClassVar[str] = "toolkit"

    calls: tuple[EntryFunction | ViewFunction, ...]
    abort: Annotated[Any, BeforeValidator(_abort)] = None

    def __init__(
        self,
        calls: Sequence[EntryFunction | ViewFunction],
        *,
        abort: int | models.BatchResult | None = None,
        **unknown: Any,
    ) -> None:
        self._fill(calls=calls, abort=abort, **unknown)

    @model_validator(mode="after")
    def _check_results(self) -> Batch:
        if not self.calls and self.abort is None:
            raise InputError("expected at least one call")
        for index, call in enumerate(self.calls):
            for place, argument in enumerate(call.arguments):
                if isinstance(argument, models.BatchResult) and argument.call >= index:
                    raise InputError(f"call {index}, arguments[{place}]: {argument!r} is not of an earlier call")
        if isinstance(self.abort, models.BatchResult) and self.abort.call >= len(self.calls):
            raise InputError(f"abort: {self.abort!r} is not of a call of the batch")
        return self

    @staticmethod
    def result(call: int, value: int = 0) -> models.BatchResult:
        """Return a result of an earlier call, as an argument.

        Parameters
        ----------
        call : int
            Position of the call in the batch, from 0.
        value : int, default 0
            Position of the value among the results of the call, from 0.

        Returns
        -------
        BatchResult
            It is copied or moved; its methods ``borrow``, ``borrow_mut``, ``copy`` and ``move`` return the others.

        Raises
        ------
        InputError
            If a position is not a whole number from 0.
        """
        return models.BatchResult(models.check_position("call", call), models.check_position("value", value))

    @staticmethod
    def signer(index: int = 0) -> models.BatchSigner:
        """Return a signer of the transaction, as an argument: 0 is the sender, 1 the first secondary signer.

        Raises
        ------
        InputError
            If `index` is not a whole number from 0.
        """
        return models.BatchSigner(models.check_position("index", index))

    def prefix(self, calls: int, *, abort: int | models.BatchResult) -> Batch:
        """Return the batch of the first calls, which ends with an abort.

        Parameters
        ----------
        calls : int
            Number of calls.
        abort : int or result
            The abort code, or the result of type u64 to show in the status.
        """
        return Batch(self.calls[:calls], abort=abort)

    def to_wire(self) -> dict[str, Any]:
        """Return the calls as JSON, from which fingerprints are made. Nodes take the composed script instead."""
        abort = self.abort.to_wire() if isinstance(self.abort, models.BatchResult) else self.abort
        return {"type": self.type, "calls": [call.content(batch=True) for call in self.calls], "abort": abort}


class UnknownPayload(models.UnknownModel):
    """A payload of any other type, stored as JSON.

    Examples are the write set of genesis, modules to publish (which nodes no longer accept) and encrypted payloads.

    Parameters
    ----------
    content : dict
        The JSON object.

    Examples
    --------
    >>> from toolkit.wire._requests import UnknownPayload, parse_payload
    >>> payload = parse_payload({"type": "a_future_payload"})
    >>> isinstance(payload, UnknownPayload), payload.type
    (True, 'a_future_payload')
    """


SimulatedPayload = EntryFunction | Script | Multisig | Batch  # what nodes simulate; of a batch, its script
Payload = SimulatedPayload | UnknownPayload


def called_by(payload: SimulatedPayload) -> EntryFunction | Script | Batch | None:
    """Return the call of a payload: for a multisig account the inner one, or None if that is stored on chain."""
    return payload.transaction_payload if isinstance(payload, Multisig) else payload


def parse_payload(json: JsonObject) -> Payload:
    """Decode the payload of a transaction.

    Parameters
    ----------
    json : mapping, bytes or msgspec.Raw
        The JSON object, parsed or not. Unknown fields are ignored.

    Returns
    -------
    EntryFunction, Script, Multisig or UnknownPayload
        An `UnknownPayload` with the JSON if the ``type`` is unknown. ``script_function_payload``, the name used in
        2022, is an entry function.

    Raises
    ------
    SchemaError
        If the JSON is not an object, or does not have the documented shape of its type.

    Examples
    --------
    >>> parse_payload({"type": "entry_function_payload", "function": "0x1::m::f", "arguments": ["7"]}).arguments
    ('7',)
    """
    return models.parse_by_type(json, _READERS, UnknownPayload, "payload")  # type: ignore[no-any-return]  # by table


_READERS = {kind.type: kind.from_wire for kind in (EntryFunction, Script, Multisig)} | {
    "script_function_payload": EntryFunction.from_wire
}


NOBODY = "0x0"  # the fee payer of a simulation that charges nobody
MAX_SIGNERS = 32  # largest number of signatures of sender and secondary signers that nodes accept
_NOT_ZERO = (
    "contains a signature that is not all zeros. A simulation must not include a valid signature: "
    "replace it with zeros, using toolkit.wire.zero_padded"
)


class TableItemRequest(WireModel):
    """A request for one table item.

    Parameters
    ----------
    key : JSON-like
        The key, which must be a value of type `key_type`.
    key_type, value_type : str
        Move types of the table's keys and values.

    Raises
    ------
    InputError
        If a type or the key is not valid.

    Examples
    --------
    >>> TableItemRequest("0x01", key_type="address", value_type="u64").to_wire()
    {'key_type': 'address', 'value_type': 'u64', 'key': '0x01'}
    """

    _package: ClassVar[str] = "toolkit"

    key: Argument
    key_type: TypeText
    value_type: TypeText

    def __init__(self, key: Any, *, key_type: str, value_type: str, **unknown: Any) -> None:
        self._fill(key=key, key_type=key_type, value_type=value_type, **unknown)

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON body."""
        return {"key_type": self.key_type, "value_type": self.value_type, "key": models.wire_argument(self.key)}


def _key(value: object) -> object:
    """Convert a key to an account signature: hex to that of an ed25519 account, a `PublicKey` to a single-key one."""
    if isinstance(value, str | bytes):
        return signatures.Ed25519Signature(value)  # type: ignore[arg-type]  # bytes become hex
    if isinstance(value, PublicKey):
        return signatures.SingleKeySignature(value)
    if value is not None and not isinstance(value, AccountSignature):
        raise InputError(f"expected an ed25519 key in hex, a PublicKey or an account signature, got {shorten(value)}")
    return value


_Key = Annotated[AccountSignature | None, BeforeValidator(_key)]


class SimulationRequest(WireModel):
    """A request to simulate a transaction.

    The client or the node supplies a missing sequence number, gas limit, gas price and expiration.

    Parameters
    ----------
    payload : EntryFunction, Script, Multisig or Batch
        The payload to run.
    sender : str
        Address of the sender.
    fee_payer : str, optional
        Address that pays the fee; ``0x0`` estimates without charging anyone.
    secondary_signers : sequence of str, default ()
        Addresses of up to 31 further signers.
    public_key : str, PublicKey or AccountSignature, optional
        The sender's public key (an ed25519 key in hex, or a typed key) or zero-padded signature. If omitted, the
        transaction is sent without a signature, which nodes accept.
    secondary_public_keys : sequence, default ()
        Key or zero-padded signature of each secondary signer; either empty or one per signer.
    fee_payer_public_key : str, PublicKey or AccountSignature, optional
        Key or zero-padded signature of the fee payer.
    sequence_number : int, optional
        Sequence number of the sender; nodes ignore it if a nonce is given.
    max_gas_amount : int, optional
        Maximum number of gas units.
    gas_unit_price : int, optional
        Octas per gas unit.
    expiration_timestamp_secs : int, optional
        Expiration time in seconds since 1970-01-01 UTC.
    replay_protection_nonce : int, optional
        Nonce that makes the transaction orderless.
    signature : TransactionSignature, optional
        The complete zero-padded signature, as an alternative to the keys.
    estimate_max_gas_amount, estimate_gas_unit_price : bool, optional
        Whether the node replaces the amount with what the sender can afford, or the price with its estimate.
    estimate_prioritized_gas_unit_price : bool, default False
        Whether the node uses its prioritized price.

    Raises
    ------
    InputError
        If a value is not valid, or a signature is not all zeros.

    Examples
    --------
    >>> request = SimulationRequest(EntryFunction("0x1::m::f"), sender="0xa", max_gas_amount=1000)
    >>> request.signature_to_send()
    NoAccountSignature()
    """

    _package: ClassVar[str] = "toolkit"

    payload: SimulatedPayload
    sender: AddressText
    fee_payer: AddressText | None = None
    secondary_signers: tuple[AddressText, ...] = ()
    public_key: _Key = None
    secondary_public_keys: tuple[_Key, ...] = ()
    fee_payer_public_key: _Key = None
    sequence_number: models.U64 | None = None
    max_gas_amount: models.U64 | None = None
    gas_unit_price: models.U64 | None = None
    expiration_timestamp_secs: models.U64 | None = None
    replay_protection_nonce: models.U64 | None = None
    signature: TransactionSignature | None = None
    estimate_max_gas_amount: StrictBool | None = None
    estimate_gas_unit_price: StrictBool | None = None
    estimate_prioritized_gas_unit_price: StrictBool = False

    def __init__(
        self,
        payload: Payload,
        *,
        sender: str,
        fee_payer: str | None = None,
        secondary_signers: Sequence[str] = (),
        public_key: str | bytes | PublicKey | AccountSignature | None = None,
        secondary_public_keys: Sequence[str | bytes | PublicKey | AccountSignature | None] = (),
        fee_payer_public_key: str | bytes | PublicKey | AccountSignature | None = None,
        sequence_number: int | None = None,
        max_gas_amount: int | None = None,
        gas_unit_price: int | None = None,
        expiration_timestamp_secs: int | None = None,
        replay_protection_nonce: int | None = None,
        signature: TransactionSignature | None = None,
        estimate_max_gas_amount: bool | None = None,
        estimate_gas_unit_price: bool | None = None,
        estimate_prioritized_gas_unit_price: bool = False,
        **unknown: Any,
    ) -> None:
        if not isinstance(payload, SimulatedPayload):
            raise InputError(
                "SimulationRequest.payload: expected an EntryFunction, Script, Multisig or Batch, "
                f"got {shorten(getattr(payload, 'type', payload))}"
            )
        self._fill(
            payload=payload,
            sender=sender,
            fee_payer=fee_payer,
            secondary_signers=secondary_signers,
            public_key=public_key,
            secondary_public_keys=secondary_public_keys,
            fee_payer_public_key=fee_payer_public_key,
            sequence_number=sequence_number,
            max_gas_amount=max_gas_amount,
            gas_unit_price=gas_unit_price,
            expiration_timestamp_secs=expiration_timestamp_secs,
            replay_protection_nonce=replay_protection_nonce,
            signature=signature,
            estimate_max_gas_amount=estimate_max_gas_amount,
            estimate_gas_unit_price=estimate_gas_unit_price,
            estimate_prioritized_gas_unit_price=estimate_prioritized_gas_unit_price,
            **unknown,
        )

    @model_validator(mode="after")
    def _check_signatures(self) -> SimulationRequest:
        keys = (self.public_key, *self.secondary_public_keys, self.fee_payer_public_key)
        further = len(getattr(self.signature, "secondary_signer_addresses", self.secondary_signers))
        if further >= MAX_SIGNERS:
            raise InputError(
                f"expected at most {MAX_SIGNERS - 1} secondary signers ({MAX_SIGNERS} signers including the sender), "
                f"got {further}"
            )
        if self.secondary_public_keys and len(self.secondary_public_keys) != len(self.secondary_signers):
            raise InputError(
                f"expected {len(self.secondary_signers)} secondary_public_keys, one for each of the secondary_signers "
                f"(None for a signer without a key), or an empty list, got {len(self.secondary_public_keys)}"
            )
        if self.fee_payer_public_key is not None and self.fee_payer is None:
            raise InputError("fee_payer_public_key requires fee_payer, the address that pays")
        if self.signature is not None and any((*keys, self.fee_payer, self.secondary_signers)):
            raise InputError("`signature` cannot be combined with keys, a fee payer or secondary signers")
        if self.signature is not None and not is_zero_padded(self.signature):
            raise InputError(f"signature {_NOT_ZERO}")
        if not all(key is None or is_zero_padded(key) for key in keys):
            raise InputError(f"a public key {_NOT_ZERO}")
        return self

    def signature_to_send(self) -> TransactionSignature:
        """Return the signature to send, absent or all zeros, of the kind that the keys and signers require."""
        if self.signature is not None:
            return self.signature
        absent = signatures.NoAccountSignature()
        sender = self.public_key or absent
        secondary_keys = self.secondary_public_keys or (None,) * len(self.secondary_signers)
        secondary = tuple(key or absent for key in secondary_keys)
        if self.fee_payer is not None:
            return signatures.FeePayerSignature(
                sender,
                secondary_signer_addresses=self.secondary_signers,
                secondary_signers=secondary,
                fee_payer_address=self.fee_payer,
                fee_payer_signer=self.fee_payer_public_key or absent,
            )
        if self.secondary_signers:
            return signatures.MultiAgentSignature(
                sender, secondary_signer_addresses=self.secondary_signers, secondary_signers=secondary
            )
        return sender if isinstance(sender, TransactionSignature) else signatures.SingleSenderSignature(sender)

    @property
    def payer(self) -> str:
        """Address of the account that pays the fee; `NOBODY` if the simulation charges nobody."""
        if self.signature is not None:
            paid: str = getattr(self.signature, "fee_payer_address", self.sender)
            return paid
        return self.sender if self.fee_payer is None else self.fee_payer

    @property
    def needs_bcs(self) -> bool:
        """Whether the request must be sent as BCS, because its signature or its arguments have no JSON form."""
        call = called_by(self.payload)
        serialized = isinstance(call, Batch) or (isinstance(call, Script) and call.serialized)
        return serialized or not self.signature_to_send().has_json_form

    def query(self) -> dict[str, str]:
        """Return the query parameters, which are the estimate options that are True."""
        options = ("estimate_max_gas_amount", "estimate_gas_unit_price", "estimate_prioritized_gas_unit_price")
        return {name: "true" for name in options if getattr(self, name)}

    def body(
        self, *, sequence_number: int, max_gas_amount: int, gas_unit_price: int, expiration_timestamp_secs: int
    ) -> dict[str, Any]:
        """Return the JSON body. The parameters supply values for fields that the request leaves as None.

        Parameters
        ----------
        sequence_number : int
            Sequence number of the sender.
        max_gas_amount : int
            Maximum number of gas units.
        gas_unit_price : int
            Octas per gas unit.
        expiration_timestamp_secs : int
            Expiration time in seconds since 1970-01-01 UTC.

        Returns
        -------
        dict
            JSON values; u64 values are strings.
        """
        body: dict[str, Any] = {
            "sender": self.sender,
            "sequence_number": str(own_or(self.sequence_number, sequence_number)),
            "max_gas_amount": str(own_or(self.max_gas_amount, max_gas_amount)),
            "gas_unit_price": str(own_or(self.gas_unit_price, gas_unit_price)),
            "expiration_timestamp_secs": str(own_or(self.expiration_timestamp_secs, expiration_timestamp_secs)),
            "payload": self.payload.to_wire(),
        }
        if self.replay_protection_nonce is not None:
            body["replay_protection_nonce"] = str(self.replay_protection_nonce)
        body["signature"] = self.signature_to_send().to_wire()
        return body


def with_estimates(request: SimulationRequest) -> SimulationRequest:
    """Return a copy of the request in which the node estimates the maximum gas amount and the price if they are None.

    With a fee payer, the maximum gas amount is not estimated, because nodes base the estimate on the sender's balance.
    """
    estimates: dict[str, bool] = {}
    if request.estimate_max_gas_amount is None:
        estimates["estimate_max_gas_amount"] = request.max_gas_amount is None and request.payer == request.sender
    if request.estimate_gas_unit_price is None:
        estimates["estimate_gas_unit_price"] = request.gas_unit_price is None
    return request.model_copy(update=estimates)


def own_or(own: int | None, default: int) -> int:
    """Return the request's own number, or the default if it is None."""
    return default if own is None else own


_KINDS: dict[type[WireModel], str] = {
    ViewFunction: "view",
    EntryFunction: "entry_function",
    TableItemRequest: "table_item",
}


def canonical_request(request: ViewFunction | EntryFunction | SimulationRequest | TableItemRequest) -> str:
    """Return text that is the same for equivalent requests, from which their fingerprint is computed.

    Fields that may differ between equivalent requests are omitted: the expiration time, the sequence number, and the
    value of the nonce (but not whether there is one).

    Parameters
    ----------
    request : ViewFunction, EntryFunction, SimulationRequest or TableItemRequest
        The request.

    Returns
    -------
    str
        JSON with sorted keys. Ints are written as strings of digits, because nodes treat the two forms alike.

    Examples
    --------
    >>> canonical_request(ViewFunction("0x1::m::f", arguments=[7])) == canonical_request(
    ...     ViewFunction("0x01::m::f", arguments=["7"])
    ... )
    True
    """
    if isinstance(request, SimulationRequest):
        content: dict[str, Any] = {
            "kind": "simulation",
            "payload": request.payload.to_wire(),
            "sender": request.sender,
            "signature": request.signature_to_send().to_wire(),
            "orderless": request.replay_protection_nonce is not None,
            "max_gas_amount": request.max_gas_amount,
            "gas_unit_price": request.gas_unit_price,
            "query": request.query(),
        }
    else:
        content = {"kind": _KINDS[type(request)], **request.to_wire()}
    content = models.wire_argument(content, digits=True)
    return json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
