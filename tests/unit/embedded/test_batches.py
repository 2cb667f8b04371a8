"""Batches on the embedded node: dependent calls over Python contracts, with the refusals of a real node."""

from __future__ import annotations

import pytest

import toolkit
from toolkit import Batch, EntryFunction, embedded
from toolkit.embedded import Enum, Module, Resource, Struct, TypeArgument, address, entry, public, signer, u64
from toolkit.errors import Forbidden, InputError
from toolkit.vm import _code as code
from toolkit.vm import _types as t
from toolkit.vm._code import Instruction
from toolkit.vm._module import write_script

ALICE, BOB = "0xa11ce", "0xb0b"


class Bank(Module, address="0xba17"):
    E_POOR = 1
    errors = {"E_POOR": "Not enough money"}  # noqa: RUF012 - as contracts declare them

    class Account(Resource):
        balance: u64

    class Note(Struct, abilities="store"):
        amount: u64

    class Receipt(Struct):
        amount: u64

    class Mood(Enum):
        class Good: ...

        class Bad:
            how: u64

    @entry
    def open(self, account: signer) -> None:
        self.move_to(account, Bank.Account(balance=100))

    @public
    def withdraw(self, account: signer, amount: u64) -> Note:
        with self.borrow_mut(Bank.Account, account) as held:
            self.require(held.balance >= amount, self.E_POOR)
            held.balance -= amount
        return Bank.Note(amount=amount)

    @public
    def deposit(self, to: address, note: Note) -> Receipt:
        (amount,) = note.unpack()
        with self.borrow_mut(Bank.Account, to) as held:
            held.balance += amount
        return Bank.Receipt(amount=amount)

    @public
    def split(self, note: Note, amount: u64) -> tuple[Note, Note]:
        (whole,) = note.unpack()
        return Bank.Note(amount=amount), Bank.Note(amount=whole - amount)

    @public
    def amount(self, receipt: Receipt) -> u64:
        return receipt.amount

    @public
    def same(self, kind: TypeArgument, value: u64) -> u64:
        return value

    @public
    def mood(self, how: u64) -> Mood:
        return Bank.Mood.Bad(how=how)

    @public
    def how(self, mood: Mood) -> u64:
        match mood:
            case Bank.Mood.Bad(how=how):
                return how
        return u64(0)

    def hidden(self) -> None: ...

    @embedded.private
    @entry
    def only_entry(self, account: signer) -> None: ...

    @entry
    def pay_two(self, first: signer, second: signer, to: address) -> None:
        self.deposit(to, self.withdraw(first, 1))
        self.deposit(to, self.withdraw(second, 2))


def call(name, *arguments, types=()):
    return EntryFunction(f"0xba17::bank::{name}", arguments, type_arguments=types)


@pytest.fixture(scope="module")
def ledger():
    made = embedded.Ledger()
    made.publish(Bank)
    for account in (ALICE, BOB):
        made.commit("0xba17::bank::open", sender=account)
    return made


@pytest.fixture(scope="module")
def node(ledger):
    with toolkit.connect(ledger) as one:
        yield one


def balances(simulation):
    frame = simulation.resources("0xba17::bank::Account")
    return dict(zip(frame["address"].str[-5:].str.lstrip("0"), frame["balance"], strict=True))


def test_results_are_arguments_of_later_calls(node):
    """One request: values that cannot be dropped, one of two results, a copy of a result, functions without entry."""
    batch = Batch(
        [
            call("withdraw", 60),
            call("split", Batch.result(0), 25),
            call("deposit", BOB, Batch.result(1)),
            call("deposit", ALICE, Batch.result(1, 1)),
            call("amount", Batch.result(3)),
            call("amount", Batch.result(3).copy()),
            call("withdraw", Batch.result(4)),
            call("deposit", BOB, Batch.result(6)),
        ]
    )
    done = node.simulate(batch, sender=ALICE)
    assert done.vm_status == "Executed successfully"
    assert balances(done) == {"a11ce": 40, "b0b": 160}
    assert done.request.payload == batch
    assert list(done.events["type"]) == ["0x1::transaction_fee::FeeStatement"]


def test_enums_and_type_arguments(node):
    batch = Batch([call("mood", 7), call("how", Batch.result(0)), call("same", Batch.result(1), types=["bool"])])
    read = Batch(batch.calls, abort=Batch.result(2))
    assert node.simulate(batch, sender=ALICE).success
    assert node.simulate(read, sender=ALICE).transaction.abort.code == 7


def test_signers(node):
    """Those of the function come from the transaction, in order, or are named."""
    both = {"sender": ALICE, "secondary_signers": [BOB]}
    plain = node.simulate(Batch([call("pay_two", ALICE)]), **both)
    swapped = node.simulate(Batch([call("pay_two", Batch.signer(1), Batch.signer(0), ALICE)]), **both)
    assert balances(plain) == {"a11ce": 102, "b0b": 98}
    assert balances(swapped) == {"a11ce": 101, "b0b": 99}
    with pytest.raises(InputError, match="there is no signer 1"):
        node.simulate(Batch([call("pay_two", ALICE)]), sender=ALICE)


@pytest.mark.parametrize(
    ("calls", "parts"),
    [
        ([call("withdraw", 1)], ["call 0, 0xba17::bank::withdraw", "result(0)", "drop"]),
        (
            [call("withdraw", 1), call("deposit", BOB, Batch.result(0)), call("deposit", BOB, Batch.result(0))],
            ["call 2, 0xba17::bank::deposit, arguments[1]", "moved"],
        ),
        ([call("withdraw", 1), call("deposit", BOB, Batch.result(0).copy())], ["call 1", "arguments[1]", "copy"]),
        ([call("same", 1, types=["bool"]), call("deposit", BOB, Batch.result(0))], ["call 1", "expected", "is u64"]),
        ([call("withdraw", 1), call("amount", Batch.result(0))], ["call 1", "arguments[0]", "Receipt", "Note"]),
        ([call("amount", Batch.result(0).borrow())], ["call 0, arguments[0]"]),
        ([call("withdraw", 1, 2, 3)], ["call 0", "expected 2 arguments", "got 3"]),
        ([call("withdraw", BOB, 1)], ["call 0", "arguments[0]", "&signer"]),
        ([call("same", 1)], ["call 0", "expected 1 type argument, got 0"]),
        ([call("same", 1, types=["0xba17::bank::Nope"])], ["call 0", "no struct Nope"]),
        ([call("same", "x", types=["bool"])], ["call 0", "arguments[0]", "u64"]),
        ([call("nope")], ["call 0", "no function nope"]),
        ([EntryFunction("0xba17::nope::f")], ["call 0", "0xba17::nope does not exist"]),
        ([call("open"), call("amount", Batch.result(0))], ["call 1", "result(0) does not exist", "0 results"]),
    ],
)
def test_a_refusal_names_the_call_and_the_argument(node, calls, parts):
    """Nothing is simulated; in bulk, the refusal is a row."""
    try:
        batch = Batch(calls)
        with pytest.raises(InputError) as caught:
            node.simulate(batch, sender=ALICE)
        message = str(caught.value)
        frames = toolkit.fetch_simulations(node, toolkit.SimulationRequest(batch, sender=ALICE), progress=False)
        assert frames.transactions["error_code"].tolist() == ["input_error"]
    except InputError as error:
        message = str(error)
    assert [part for part in parts if part not in message] == []


def test_a_failing_call_is_named(node):
    """The node tells the abort; which call it was, the first prefix that fails does."""
    calls = [call("withdraw", 1), call("deposit", BOB, Batch.result(0)), call("withdraw", 100), call("withdraw", 5)]
    calls += [call("deposit", BOB, Batch.result(2)), call("deposit", BOB, Batch.result(3))]
    failed = node.simulate(Batch(calls), sender=ALICE)
    assert not failed.success
    assert failed.transaction.abort.name == "E_POOR"
    assert "Call 2 fails" not in failed._repr_html_()  # showing a result sends no requests
    card = failed._repr_html_()
    assert "Call 2 fails: 0xba17::bank::withdraw." in failed.explain().splitlines()
    assert failed._repr_html_() == card  # also not in other words after `explain`


def test_a_batch_that_ends_with_an_abort_names_no_call(node):
    stopped = node.simulate(Batch([call("withdraw", 1)], abort=9), sender=ALICE)
    assert stopped.vm_status == "Move abort: code 0x9"
    assert "fails:" not in stopped.explain()


def test_functions_that_are_not_public_fail_as_on_a_node(node):
    """A private function is not in the ABI; others are found, and cannot be linked."""
    with pytest.raises(InputError, match="no function hidden"):
        node.simulate(Batch([call("hidden")]), sender=ALICE)
    refused = node.simulate(Batch([call("mood", 1), call("only_entry")]), sender=ALICE)
    assert refused.vm_status == "LOOKUP_FAILED"
    assert "Call 1 fails: 0xba17::bank::only_entry." in refused.explain()


def test_gas_of_each_call(node):
    """The rows add up to the whole; the second user of a module and a resource pays less than the first."""
    batch = Batch([call("withdraw", 1), call("deposit", ALICE, Batch.result(0))] * 1)
    whole = node.simulate(batch, sender=ALICE)
    frame = whole.gas_by_call()
    assert frame["call"].tolist()[1:-1] == [0, 1]
    assert frame.attrs["toolkit"]["io_gas_units"]["unit"] == "gas units"  # notebooks show it as other frames
    assert frame["function"].tolist() == ["transaction", "0xba17::bank::withdraw", "0xba17::bank::deposit", "changes"]
    assert frame["execution_gas_units"].sum() == whole.gas.execution_gas_units
    assert frame["io_gas_units"].sum() == whole.gas.io_gas_units
    assert frame["storage_fee_octas"].sum() == whole.gas.storage_fee_octas
    own = node.fork().simulate(batch, sender=ALICE).gas_by_call()
    first, second = own["io_gas"].iloc[1], own["io_gas"].iloc[2]
    assert first > second >= 0
    with pytest.raises(InputError, match="not a batch"):
        node.simulate(call("open"), sender="0xcafe").gas_by_call()


def test_forks_keep_what_a_batch_did(node, ledger):
    """`execute` builds on it; the ledger takes batches and composed scripts too."""
    batch = Batch([call("withdraw", 30), call("deposit", BOB, Batch.result(0))])
    fork = node.fork()
    assert fork.execute(batch, sender=ALICE).success
    assert balances(fork.execute(batch, sender=ALICE)) == {"a11ce": 40, "b0b": 160}
    copy = ledger.copy()
    assert copy.execute(batch, sender=ALICE).success
    assert copy.execute(node.compose(batch), sender=ALICE).success
    assert copy.resource(ALICE, "0xba17::bank::Account") == {"balance": 40}
    assert copy.profile(batch, sender=ALICE).success


def test_a_composed_script_is_simulated_as_its_batch(node):
    batch = Batch([call("withdraw", 30), call("deposit", BOB, Batch.result(0))])
    one, other = node.simulate(batch, sender=ALICE), node.simulate(node.compose(batch), sender=ALICE)
    assert one.gas_used == other.gas_used
    assert balances(one) == balances(other) == {"a11ce": 70, "b0b": 130}


def test_abis_of_the_caller_serve_where_a_node_offers_no_modules(ledger, monkeypatch):
    """They give the same script; without them, the error names the module."""

    def refuse(self, address, name, version):
        raise Forbidden("modules are not offered", status=403, error_code="api_disabled")

    batch = Batch([call("withdraw", 30), call("deposit", BOB, Batch.result(0))])
    with toolkit.connect(ledger) as whole:
        script = whole.compose(batch)
    bank = toolkit.move.parse_address("0xba17"), "bank"
    monkeypatch.setattr(toolkit.Node, "module_answer", refuse)
    with toolkit.connect(ledger, abis={bank: Bank.definition.abi}) as told:
        assert told.compose(batch) == script
    with toolkit.connect(ledger) as bare, pytest.raises(InputError, match="0xba17::bank"):
        bare.compose(batch)


NOTE = t.struct("0xba17::bank::Note")
HANDLE = code.StructHandle(NOTE.module, "Note", t.STORE, ())
WITHDRAW = code.FunctionHandle(NOTE.module, "withdraw", (t.SIGNER_REFERENCE, t.U64), (NOTE,), ())


def scripted(steps, *, parameters=(t.SIGNER_REFERENCE,), locals_=(), structs=(HANDLE,)):
    instructions = tuple(Instruction(*step) if isinstance(step, tuple) else Instruction(step) for step in steps)
    kinds = (*parameters, *locals_)
    main = code.FunctionDefinition(None, "main", 0, tuple(parameters), (), locals=kinds, code=instructions)
    return toolkit.Script(write_script(main, structs, version=6), serialized=True)


CALL = [("CopyLoc", 0), ("LdU64", 1), ("Call", code.FunctionUse(WITHDRAW))]
KEPT = [*CALL, ("StLoc", 1), ("LdU64", 1), "Abort"]
OTHER = WITHDRAW._replace(results=(t.U64,))
ABSENT = code.FunctionHandle(t.ModuleId(NOTE.module.address, "absent"), "f", (), (), ())


def test_a_script_in_json_has_simple_arguments_only(node):
    """As on a node: a u64 is taken, a vector of them is not."""
    integer, vector = (scripted(["Ret"], parameters=[kind]) for kind in (t.U64, t.Vector(t.U64)))
    assert node.simulate(integer.replace(serialized=False, arguments=["5"]), sender=BOB).success
    with pytest.raises(toolkit.NodeError, match="invalid transaction argument"):
        node.simulate(vector.replace(serialized=False, arguments=[["5"]]), sender=BOB)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        (toolkit.Script("0xa11ceb0b0a0000000000", serialized=True), "CODE_DESERIALIZATION_ERROR"),
        (scripted(["LdTrue", "Pop", "Ret"]), "CODE_DESERIALIZATION_ERROR"),
        (scripted(["Pop", "Ret"]), "NEGATIVE_STACK_SIZE_WITHIN_BLOCK"),
        (scripted([("LdU64", 1), "Ret"]), "POSITIVE_STACK_SIZE_AT_BLOCK_END"),
        (scripted([*CALL, "Pop", "Ret"]), "POP_WITHOUT_DROP_ABILITY"),
        (scripted([*CALL, ("StLoc", 1), "Ret"], locals_=[NOTE]), "UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP"),
        (scripted([*CALL, ("StLoc", 1), "Ret"], locals_=[t.U64]), "STLOC_TYPE_MISMATCH_ERROR"),
        (scripted([("LdU64", 1), "Abort"], structs=[]), "Move abort: code 0x1"),
        (scripted([("LdU64", 1), "Pop", "Ret"]), "Executed successfully"),
        (scripted(KEPT, locals_=[NOTE]), "Move abort: code 0x1"),
        (scripted(KEPT, locals_=[NOTE], structs=[HANDLE._replace(abilities=t.STORE | t.DROP)]), "TYPE_MISMATCH"),
        (scripted([*CALL[:2], ("Call", code.FunctionUse(OTHER)), "Pop", "Ret"]), "TYPE_MISMATCH"),
        (scripted([*CALL[:2], ("Call", code.FunctionUse(OTHER._replace(name="no"))), "Pop", "Ret"]), "LOOKUP_FAILED"),
        (scripted([("Call", code.FunctionUse(ABSENT)), "Ret"]), "LINKER_ERROR"),
        (scripted(["Ret"], parameters=[t.SIGNER_REFERENCE, NOTE]), "UNSAFE_RET_UNUSED_VALUES_WITHOUT_DROP"),
        (scripted(["Ret"], parameters=[t.SIGNER_REFERENCE, t.U64]), "NUMBER_OF_ARGUMENTS_MISMATCH"),
        (scripted(["Ret"], parameters=[t.SIGNER_REFERENCE] * 2), "NUMBER_OF_SIGNER_ARGUMENTS_MISMATCH"),
        (scripted(["Ret"], parameters=[t.U64, t.SIGNER_REFERENCE]), "CODE_DESERIALIZATION_ERROR"),
    ],
)
def test_scripts_end_as_on_a_node(node, script, status):
    """Scripts made by other composers are checked as by the verifier; a script of another shape is not run."""
    found = node.simulate(script, sender=ALICE)
    assert found.vm_status.partition("\n")[0] == status
