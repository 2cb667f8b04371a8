"""A node over a ledger of a few modules of our own, with committed calls of a counter."""

from __future__ import annotations

from functools import cache

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.conformance.state_node import Sent, StateNode
from tests.unit.vm import small_ledger as small
from toolkit import vm
from toolkit.vm import _code as code
from toolkit.vm import _types as t
from toolkit.vm._bcs import tag_bytes
from toolkit.vm._module import write_module
from toolkit.vm._state import module_key, resource_key
from toolkit.vm._types import parse
from toolkit.wire import Ed25519Signature, SignedTransaction

PURSE = code.StructDefinition(small.framework("transaction_fee"), "Purse", t.KEY, (), (code.Field("coins", t.U64),))
USE = code.StructUse(PURSE)
STRING = t.struct("0x1::string::String")
ALICE = "0xaa"
SCHEDULE = {"txn.min_price_per_gas_unit": 1, "instr.call_generic.base": 500}


@cache
def minting():
    """Return the modules that a fork calls to fund an account; they mint into purses that exist."""
    account, fee = small.framework("account"), small.framework("transaction_fee")
    create = small.function(account, "create_account_if_does_not_exist", ["Ret"], [t.ADDRESS])
    mint = small.function(
        fee,
        "mint_and_refund",
        [
            ("MoveLoc", 0),
            ("MutBorrowGlobal", USE),
            ("MutBorrowField", code.FieldUse(PURSE, (), 0)),
            ("StLoc", 2),
            ("CopyLoc", 2),
            "ReadRef",
            ("MoveLoc", 1),
            "Add",
            ("MoveLoc", 2),
            "WriteRef",
            "Ret",
        ],
        [t.ADDRESS, t.U64],
        locals_=[t.Reference(t.U64, True)],
        acquires=(0,),
    )
    return [
        (account, write_module(account, functions=[create])),
        (fee, write_module(fee, functions=[mint], structs=[PURSE])),
    ]


def strings():
    """Return a module `string`, by whose type the names of modules are given."""
    module = small.framework("string")
    string = code.StructDefinition(module, "String", 7, (), (code.Field("bytes", t.BYTES),))
    return module, write_module(module, structs=[string])


def publishing():
    """Return the modules that publish: metadata is the BCS of the names of the modules."""
    module, from_bcs = small.framework("code"), small.framework("from_bcs")
    names, bundle = t.Vector(STRING), t.Vector(t.BYTES)
    decode = code.FunctionHandle(from_bcs, "from_bytes", (t.BYTES,), (t.Parameter(0),), (0,))
    native = [t.ADDRESS, names, bundle, t.U8]
    signers = small.framework("signer")
    borrow = small.handle(signers, "borrow_address", [small.SIGNER_REF], [t.Reference(t.ADDRESS, False)])
    publish = small.function(
        module,
        "publish_package_txn",
        [
            ("MoveLoc", 0),
            ("Call", borrow),
            "ReadRef",
            ("MoveLoc", 1),
            ("CallGeneric", code.FunctionUse(decode, (names,))),
            ("MoveLoc", 2),
            ("LdU8", 1),
            ("Call", small.handle(module, "request_publish", native)),
            "Ret",
        ],
        [small.SIGNER_REF, t.BYTES, bundle],
        visibility=code.PUBLIC,
        is_entry=True,
    )
    request = code.FunctionDefinition(module, "request_publish", 1, tuple(native), (), is_native=True)
    read = code.FunctionDefinition(
        from_bcs, "from_bytes", 0, (t.BYTES,), (t.Parameter(0),), (0,), visibility=code.PUBLIC, is_native=True
    )
    address = code.FunctionDefinition(
        signers,
        "borrow_address",
        0,
        (small.SIGNER_REF,),
        (t.Reference(t.ADDRESS, False),),
        visibility=code.PUBLIC,
        is_native=True,
    )
    known = [code.StructHandle(STRING.module, "String", 7, ())]
    return [
        (module, write_module(module, functions=[publish, request], struct_handles=known)),
        (from_bcs, write_module(from_bcs, functions=[read])),
        (signers, write_module(signers, functions=[address])),
    ]


def state():
    """Return the state before the first transaction."""
    modules = [*minting(), strings(), *publishing()]
    found = small.state(flags=(*small.FLAGS, 5, 40, 86), modules=modules, **SCHEDULE)
    purse = resource_key(small.ALICE, PURSE.type(()))
    return found | {purse: ((5).to_bytes(8, "little"), (40_000, 320, 1))}


def counter_with(add):
    """Return the module `counter` with another body of `bump`, which adds `add`."""
    functions = []
    for one in small.counter_functions():
        if one.name == "bump":
            body = [small.op("LdU64", add) if step.name == "LdU64" else step for step in one.code]
            one = code.FunctionDefinition(**{**vars(one), "code": tuple(body)})  # noqa: PLW2901
        functions.append(one)
    views = small.metadata(get=1, text=1, endless=1, deep=1)
    return write_module(small.COUNTER, functions=functions, structs=[small.VALUE], metadata=views, version=8)


def signed(transaction):
    """Return a transaction with a signature that a ledger accepts."""
    raw = SignedTransaction.from_bcs(transaction).raw
    key = Ed25519PrivateKey.from_private_bytes(bytes(32))
    signature = key.sign(SignedTransaction(raw, Ed25519Signature(bytes(32))).signing_message())
    return SignedTransaction(raw, Ed25519Signature(key.public_key().public_bytes_raw(), signature)).to_bcs()


def location_bcs(location):
    address, name = location.split("::")
    return b"\0" + int(address, 16).to_bytes(32, "big") + bytes((len(name),)) + name.encode()


def committed(calls):
    """Return calls of ALICE as a ledger has them: each on the state that the one before it left."""
    return _run(state(), calls, 0)


def continued(now, calls, number):
    """Return calls of ALICE on a state, from her sequence number on."""
    return _run(now, calls, number)[0]


def _run(now, calls, number):
    sent = []
    for at, (name, *arguments) in enumerate(calls, start=number):
        transaction = signed(small.call(name, *arguments, sequence_number=at))
        done = vm.execute(transaction, now.get, transaction_index=1)
        status = b"\0"
        if done.status.kind == "abort":
            status = b"\2" + location_bcs(done.status.location) + done.status.code.to_bytes(8, "little") + b"\0"
        events = [(one.key, one.sequence_number, tag_bytes(parse(one.type)), one.data) for one in done.events]
        writes = [(key, one.op, one.value, one.metadata) for key, one in done.writes.items()]
        before = _Whole(now)
        sent.append(Sent(transaction, status, done.gas_used, events, writes, before, f"0xcafe::counter::{name}", ALICE))
        now = dict(now)
        for key, op, value, metadata in writes:
            now[key] = None if op == "delete" else (value, metadata)
    return sent, now


class _Whole(dict):
    """A whole state: what is not in it is absent."""

    def __contains__(self, key):
        return True

    def __missing__(self, key):
        return None


CALLS = [
    ("start",),
    ("bump", small.ALICE),
    ("bump", small.ALICE),
    ("stop",),
    ("loop", small.u64(50)),
    ("bump", small.ALICE),
]


def node(calls=CALLS, **options):
    """Return a node that has these calls, and one more block whose state is the last."""
    sent, last = committed([*calls, ("loop", small.u64(1))])
    assert sent[-1].state.keys() <= last.keys()
    return StateNode(sent=sent, **options)


__all__ = ["ALICE", "CALLS", "StateNode", "committed", "continued", "counter_with", "module_key", "node", "state"]
