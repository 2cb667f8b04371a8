"""What a real node charged, what the embedded node charges for the same, and the table of both.

The contracts below stand for the recorded ones (`move/lab1.move`, `lib1.move`): equal names and types, so that what
they store has equal sizes. Run ``python -m tests.conformance.model_gas`` after changing the cost model: it measures,
writes ``toolkit/embedded/data/calibration.csv`` and the table of the documentation, and prints it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.recorded_node import Recordings
from toolkit import embedded
from toolkit.embedded import (
    Event,
    EventHandle,
    Module,
    Object,
    Option,
    Resource,
    String,
    Struct,
    Table,
    TypeArgument,
    address,
    entry,
    i8,
    i64,
    i128,
    i256,
    signer,
    u8,
    u64,
    u128,
    u256,
    vector,
    view,
)
from toolkit.embedded._meter import Charges, Schedule
from toolkit.embedded.framework._configuration import Timestamp
from toolkit.embedded.framework._fungible_asset import METADATA, FungibleAsset, PrimaryFungibleStore
from toolkit.embedded.framework._object import OBJECT_GROUP, ObjectModule, named_object_address
from toolkit.wire import EntryFunction, SimulationRequest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "explanation" / "model-gas.md"
CALIBRATION = ROOT / "toolkit" / "embedded" / "data" / "calibration.csv"
BEGIN, END = "<!-- gas: generated -->", "<!-- end of gas -->"
PARTS = ("execution", "io", "storage", "refund")

ALICE = "0x34bf7e2d17674feb234371a7ea58efd715f0e56ba20ebf13789480d9d643afaf"
BOB = "0x5312c76580194734d0aeac1dc9c670e647d6ff8cb4ae9c0a9570b3d7cb98d5e1"
APT = ("0x1::aptos_coin::AptosCoin",)
ASSET = ("0x1::fungible_asset::Metadata",)
TRANSFER = "0x1::aptos_account::transfer"


class Weights(Module, address=BOB):
    """``weights`` as first published."""

    @view
    def weigh(self, n: u64) -> u64:
        total = 0
        for i in self.each(range(n)):
            total += i
        return total

    @view
    def weight_of(self, n: u64) -> u64:
        return self.weigh(n)


class Lab(Module, address=ALICE, uses=[Weights]):
    """``lab`` as first published, without enums."""

    class Entry(Struct):
        n: u64
        wide: u256
        name: String
        maybe: Option[u64]
        tags: bytes

    class Key(Struct):
        a: u64
        b: address

    class Pair(Struct):
        """An entry of a SimpleMap."""

        key: String
        value: u64

    class Lab(Resource):
        total: u128
        items: Table[u64, Lab.Entry]
        by_key: Table[Lab.Key, u64]
        names: Table[String, u64]
        list: vector[u64]
        map: vector[Lab.Pair]

    class Bumped(Event):
        who: address
        by: u64
        total: u128
        note: String
        maybe: Option[u64]

    class Ping(Struct, abilities="drop store"):
        n: u64

    class Legacy(Resource):
        pings: EventHandle[Lab.Ping]
        n: u64

    class Note(Resource, abilities="key drop"):
        text: String
        at: u64

    class Mode(Resource, abilities="copy drop store key"):
        """The enum before it was changed: one byte."""

        variant: bool

    class Extra(Resource, group=OBJECT_GROUP):
        label: String
        signed: u64

    class MintRef(Struct, abilities="drop store"):
        metadata: Object[FungibleAsset.Metadata]

    class Gold(Resource):
        mint: Lab.MintRef
        metadata: Object[FungibleAsset.Metadata]

    def init_module(self, account: signer) -> None:
        tables = Lab.Lab(
            total=0, items=self.new_table(), by_key=self.new_table(), names=self.new_table(), list=[], map=[]
        )
        self.move_to(account, tables)
        self.move_to(account, Lab.Legacy(pings=self.new_event_handle(account), n=0))
        self.move_to(account, Lab.Mode(variant=False))
        gold = self.use(FungibleAsset).create(account, "LGD", "Lab Gold", 6)
        self.move_to(account, Lab.Gold(mint=Lab.MintRef(metadata=Object(gold)), metadata=Object(gold)))
        extra = self.use(ObjectModule).create_named_object(account, b"EXTRA")
        self.move_to(extra, Lab.Extra(label="extra", signed=5))

    @entry
    def bump(self, account: signer, by: u64) -> None:
        self.require(by < 1_000_000, 7)
        with self.borrow_mut(Lab.Lab, ALICE) as lab:
            lab.total += u128(by)
        self.emit(Lab.Bumped(who=account, by=by, total=lab.total, note="<b>bump</b> $x^2$", maybe=None))

    @entry
    def put(self, account: signer, k: u64, name: String) -> None:
        with self.borrow_mut(Lab.Lab, ALICE) as lab:
            lab.items.upsert(k, Lab.Entry(n=k, wide=u256(k) << 200, name=name, maybe=k, tags=b"tag"))
            lab.by_key.upsert(Lab.Key(a=k, b=account), k * 2)
            lab.names.upsert(name, k)
            lab.list.append(k)
            if not self._has(lab.map, name):
                self.require(not self._has(lab.map, name), 1)  # `simple_map::add` looks again
                lab.map.append(Lab.Pair(key=name, value=k))

    def _has(self, pairs: list[Lab.Pair], name: str) -> bool:
        return any(pair.key == name for pair in self.each(pairs))

    @entry
    def together(self, first: signer, second: signer, n: u64) -> None:
        self.require(first != second, 1)
        with self.borrow_mut(Lab.Lab, ALICE) as lab:
            lab.total += u128(n)

    @entry
    def mode(self, account: signer, kind: u8) -> None:
        del account
        with self.borrow_mut(Lab.Mode, ALICE) as mode:
            mode.variant = kind > 0

    @entry
    def drop_item(self, account: signer, k: u64) -> None:
        del account
        self.borrow(Lab.Lab, ALICE).items.remove(k)

    @entry
    def ping(self, account: signer, times: u64) -> None:
        del account
        with self.borrow_mut(Lab.Legacy, ALICE) as legacy:
            for _ in self.each(range(times)):
                legacy.n += 1
                self.emit_event(legacy.pings, Lab.Ping(n=legacy.n))

    @entry
    def note(self, account: signer, text: String) -> None:
        if self.exists(Lab.Note, account):
            self.move_from(Lab.Note, account)
        self.move_to(account, Lab.Note(text=text, at=self.use(Timestamp).now_microseconds()))

    @entry
    def forget(self, account: signer) -> None:
        self.move_from(Lab.Note, account)

    @entry
    def mint(self, account: signer, to: address, amount: u64) -> None:
        del account
        gold = self.borrow(Lab.Gold, ALICE)
        self.use(PrimaryFungibleStore).mint(gold.metadata, to, amount)

    @entry
    def pay(self, account: signer, to: address, amount: u64) -> None:
        gold = self.borrow(Lab.Gold, ALICE)
        self.use(PrimaryFungibleStore).transfer(METADATA, account, gold.metadata, to, amount)

    @view
    def total(self) -> u128:
        return self.borrow(Lab.Lab, ALICE).total

    @view
    def sum(self) -> u64:
        return sum(self.each(self.borrow(Lab.Lab, ALICE).list))

    @view
    def gold(self) -> Object[FungibleAsset.Metadata]:
        return self.borrow(Lab.Gold, ALICE).metadata

    @view
    def mode_now(self) -> Mode:
        return self.borrow(Lab.Mode, ALICE)

    @view
    def signed(self, a: i8, b: i64, c: i128, d: i256) -> tuple[i8, i64, i128, i256]:
        return a, b, c, d

    @view
    def item(self, k: u64) -> Entry:
        return self.borrow(Lab.Lab, ALICE).items.borrow(k)

    @view
    def map(self) -> vector[Pair]:
        return self.borrow(Lab.Lab, ALICE).map

    @view
    def two(self) -> tuple[u64, String]:
        return 1, "two"

    @view
    def obj(self, o: Object[ObjectModule.ObjectCore]) -> Object[ObjectModule.ObjectCore]:
        return o

    @view
    def fails(self, x: u64) -> u64:
        self.abort(x)

    @view
    def generic(self, kind: TypeArgument) -> String:
        return self.type_name(kind)

    @view
    def handles(self) -> tuple[address, address]:
        return ALICE, named_object_address(ALICE, b"x")

    @view
    def find(self, k: u64) -> Option[Entry]:
        items = self.borrow(Lab.Lab, ALICE).items
        return items.borrow(k) if items.contains(k) else None

    @view
    def gold_of(self, who: address) -> u64:
        return self.use(PrimaryFungibleStore).balance(METADATA, who, self.borrow(Lab.Gold, ALICE).metadata)

    @view
    def work(self, n: u64) -> u64:
        z = 0
        for _ in self.each(range(n)):
            z += 1
        return z

    @view
    def weighed(self, n: u64) -> u64:
        return self.use(Weights).weigh(n)


class WeightsUpgrade(Weights, revision=2, code_bytes=len(Weights.definition.bytecode) + 42):
    """``weights`` as upgraded; the recorded code grew by 42 bytes."""


class LabUpgrade(Lab, revision=2, code_bytes=len(Lab.definition.bytecode) + 122):
    """``lab`` as upgraded; the recorded code grew by 122 bytes."""


class LabLonger(LabUpgrade, revision=3, code_bytes=len(LabUpgrade.definition.bytecode) + 174):
    """``lab`` as upgraded at version 503, when the recorded code grew by 174 bytes."""

    @entry
    def bump(self, account: signer, by: u64) -> None:
        super().bump(account, by)
        for _ in self.each(range(400)):
            pass


class Real(NamedTuple):
    """Where a figure is recorded: a transaction's version, a simulation's place, or a view and its version."""

    version: int = -1
    simulation: int = -1
    view: tuple[str, tuple[Any, ...]] | None = None

    def read(self, recordings: Recordings) -> Charges:
        """Return what the real node charged; of a view only the total is recorded."""
        if self.view is not None:
            return Charges(self._gas_of_view(recordings), 0, 0, 0, 0)
        if self.simulation >= 0:
            answered = recordings.files["simulations"][self.simulation].json[0]
        else:
            answered = recordings.longer_history.transactions[self.version]
        (statement,) = (e["data"] for e in answered["events"] if e["type"] == "0x1::transaction_fee::FeeStatement")
        return Charges(**{name: int(statement[name]) for name in Charges._fields})

    def _gas_of_view(self, recordings: Recordings) -> int:
        function, arguments = self.view or ("", ())
        for exchange in recordings.of("sweep", "views"):
            sent = exchange.sent
            if exchange.status == 200 and sent and sent["function"].endswith(f"::{function}"):
                at = f"ledger_version={self.version}" if self.version >= 0 else "/v1/view"
                if exchange.path.endswith(at) and sent["arguments"] == list(arguments):
                    return int(exchange.answer_headers["x-aptos-gas-used"])
        raise LookupError(f"no recorded view {function}{arguments} at {self.version}")


class Case(NamedTuple):
    """A call with a recorded figure; `run` does the same on the embedded ledger."""

    call: str
    real: Real
    run: Callable[[embedded.Ledger], Charges]
    held_out: bool = False
    """Whether it was first measured when the constants of the model were fixed; the others were seen before."""


def held_out(case: Case) -> Case:
    """Return a case that did not take part in fitting the model."""
    return case._replace(held_out=True)


def sent(function: str, *arguments: Any, sender: str = BOB, types: tuple[str, ...] = ()) -> Callable[..., Charges]:
    """Return a function that commits a call and returns its charges."""

    def run(ledger: embedded.Ledger) -> Charges:
        named = function if "::" in function else f"{ALICE}::lab::{function}"
        return ledger.commit(named, *arguments, sender=sender, type_arguments=types).output.charges

    return run


def asked(function: str, *arguments: Any, types: tuple[str, ...] = ()) -> Callable[..., Charges]:
    """Return a function that asks a view and returns its gas as the total of charges."""

    def run(ledger: embedded.Ledger) -> Charges:
        named = function if "::" in function else f"{ALICE}::lab::{function}"
        return Charges(ledger.view(named, list(arguments), types)[1], 0, 0, 0, 0)

    return run


def published(contract: type[Module]) -> Callable[..., Charges]:
    """Return a function that publishes a contract and returns its charges."""
    return lambda ledger: ledger.publish(contract).output.charges


def orderless(ledger: embedded.Ledger) -> Charges:
    """Transfer with a nonce."""
    request = SimulationRequest(EntryFunction(TRANSFER, ["0xb0b1", 6]), sender=BOB, replay_protection_nonce=424242)
    return ledger.execute(request).output.charges


X1 = (
    Case("transfer, receiver without a store", Real(2), sent(TRANSFER, "0xb0b1", 200_000_000, sender="0xa550c18")),
    Case("transfer, receiver with a store", Real(5), sent(TRANSFER, "0xb0b1", 10**9, sender="0xa550c18")),
    Case("publish weights", Real(53), published(Weights)),
    Case("publish lab", Real(56), published(Lab)),
    Case("put, new key in three tables", Real(59), sent("put", 0, "name0", sender=ALICE)),
    *(Case(f"put, key {k + 1}", Real(59 + 3 * k), sent("put", k, f"name{k}", sender=ALICE)) for k in range(1, 6)),
    Case("bump", Real(80), sent("bump", 5)),
    Case("ping(3)", Real(113), sent("ping", 3)),
    Case("note, new resource", Real(116), sent("note", "<b>hello</b> $x$ =1+1")),
    Case("note, replaced", Real(119), sent("note", "again")),
    Case("forget, resource deleted", Real(122), sent("forget")),
    Case("mint, receiver without a store", Real(131), sent("mint", BOB, 5000, sender=ALICE)),
    Case("pay, receiver without a store", Real(134), sent("pay", "0xca401", 1234)),
    Case("view coin::supply", Real(100, view=("coin::supply", ())), asked("0x1::coin::supply", types=APT)),
    Case(
        "view coin::balance, no store",
        Real(20, view=("coin::balance", (BOB,))),
        asked("0x1::coin::balance", "0x77", types=APT),
    ),
    Case("view coin::balance", Real(100, view=("coin::balance", (BOB,))), asked("0x1::coin::balance", BOB, types=APT)),
    Case("view total", Real(100, view=("lab::total", ())), asked("total")),
    Case("view sum, 6 elements", Real(100, view=("lab::sum", ())), asked("sum")),
    Case("view find, no item", Real(60, view=("lab::find", ("3",))), asked("find", 3)),
    Case("view find", Real(100, view=("lab::find", ("3",))), asked("find", 0)),
    Case("view gold_of, no store", Real(100, view=("lab::gold_of", (BOB,))), asked("gold_of", "0x77")),
    Case("view gold_of", Real(150, view=("lab::gold_of", (BOB,))), asked("gold_of", BOB)),
    Case("view work(50,000)", Real(100, view=("lab::work", ("50000",))), asked("work", 50_000)),
    Case("view weighed(2,000)", Real(100, view=("lab::weighed", ("2000",))), asked("weighed", 2_000)),
    Case("upgrade weights", Real(137), published(WeightsUpgrade)),
    Case("upgrade lab", Real(158), published(LabUpgrade)),
    Case("put, known key", Real(715), sent("put", 0, "name0", sender=ALICE)),
)
"""Under the recorded schedule before version 179, in the order in which they are run."""

X10 = (
    Case("transfer, receiver with a store", Real(simulation=3), sent(TRANSFER, "0xb0b1", 1)),
    Case("transfer, receiver without a store", Real(simulation=4), sent(TRANSFER, "0x5a5a", 90_000_000)),
    Case("coin::transfer", Real(simulation=6), sent("0x1::coin::transfer", "0xb0b1", 1, types=APT)),
    Case("put, new key in three tables", Real(239), sent("put", 100, "via ts", sender=ALICE)),
    Case("put, known key", Real(269), sent("put", 100, "via ts", sender=ALICE)),
    Case("drop_item, item deleted", Real(simulation=8), sent("drop_item", 1)),
    Case("bump", Real(simulation=10), sent("bump", 1)),
    Case("bump, aborted", Real(simulation=11), sent("bump", 1_000_000)),
    Case("ping(1)", Real(simulation=12), sent("ping", 1)),
    Case("ping(10)", Real(simulation=13), sent("ping", 10)),
    Case("note, 1,000 characters", Real(simulation=15), sent("note", "y" * 1000)),
    Case("mint, receiver with a store", Real(simulation=19), sent("mint", BOB, 10)),
    Case("mint, receiver without a store", Real(simulation=20), sent("mint", "0x5c5c", 10)),
    Case("pay, receiver with a store", Real(simulation=21), sent("pay", "0xca401", 1)),
    Case(
        "primary_fungible_store::transfer",
        Real(simulation=24),
        sent("0x1::primary_fungible_store::transfer", "0xa", "0xb0b1", 5, types=ASSET),
    ),
    Case("transfer with a nonce", Real(257), orderless),
    Case("transfer, sender's first transaction", Real(293), sent(TRANSFER, BOB, 1, sender="0xb0b1")),
    Case("bump, aborted, sender's first transaction", Real(328), sent("bump", 2_000_000, sender="0x5a5a")),
    Case("view coin::supply", Real(200, view=("coin::supply", ())), asked("0x1::coin::supply", types=APT)),
    Case("view coin::balance", Real(200, view=("coin::balance", (BOB,))), asked("0x1::coin::balance", BOB, types=APT)),
    Case("view find, no item", Real(view=("lab::find", ("3",))), asked("find", 3)),
    Case("view find", Real(view=("lab::find", ("2",))), asked("find", 0)),
    Case("view gold", Real(view=("lab::gold", ())), asked("gold")),
    Case("view gold_of, no store", Real(view=("lab::gold_of", ("0x77",))), asked("gold_of", "0x77")),
    Case("view gold_of", Real(200, view=("lab::gold_of", (BOB,))), asked("gold_of", BOB)),
    Case("view work(1,000)", Real(view=("lab::work", ("1000",))), asked("work", 1_000)),
    Case("view work(10,000)", Real(view=("lab::work", ("10000",))), asked("work", 10_000)),
    Case(
        "view primary_fungible_store::balance",
        Real(view=("primary_fungible_store::balance", (BOB, "0xa"))),
        asked("0x1::primary_fungible_store::balance", BOB, "0xa", types=ASSET),
    ),
    *(
        held_out(Case(call, Real(simulation=place), run))
        for call, place, run in (
            ("transfer, aborted: too little", 5, sent(TRANSFER, "0xb0b1", 99_999_999_999)),
            ("pay, aborted: too little", 22, sent("pay", "0xca401", 999_999_999)),
            ("drop_item, aborted: no item", 9, sent("drop_item", 99)),
            ("forget, failed: no resource", 16, sent("forget", sender=ALICE)),
            ("mode", 17, sent("mode", 2)),
        )
    ),
    *(
        held_out(Case(f"view {function}", Real(view=(function, arguments)), asked(*call, types=types)))
        for function, arguments, call, types in (
            ("account::exists_at", ("0x1",), ("0x1::account::exists_at", "0x1"), ()),
            ("block::get_current_block_height", (), ("0x1::block::get_current_block_height",), ()),
            ("chain_id::get", (), ("0x1::chain_id::get",), ()),
            ("object::owner", ("0xa",), ("0x1::object::owner", "0xa"), ("0x1::object::ObjectCore",)),
            ("fungible_asset::supply", ("0xa",), ("0x1::fungible_asset::supply", "0xa"), ASSET),
            ("fungible_asset::name", ("0xa",), ("0x1::fungible_asset::name", "0xa"), ASSET),
            ("coin::paired_metadata", (), ("0x1::coin::paired_metadata",), APT),
            ("lab::item", ("2",), ("item", 2), ()),
            ("lab::map", (), ("map",), ()),
            ("lab::mode_now", (), ("mode_now",), ()),
            ("lab::two", (), ("two",), ()),
            ("lab::generic", (), ("generic",), ("u8",)),
        )
    ),
    Case("publish lab with 400 turns in bump", Real(503), published(LabLonger)),
    held_out(Case("bump, 400 turns of a loop", Real(509), sent("bump", 7))),
)
"""Under the schedule that version 179 set, every instruction tenfold."""

X1_AGAIN = (
    held_out(Case("bump, 400 turns of a loop", Real(716), sent("bump", 6))),
    held_out(Case("bump, aborted", Real(1062), sent("bump", 2_000_000))),
)
"""After version 707, which set the first schedule again."""


def recorded_schedule(recordings: Recordings, version: int) -> Schedule:
    """Return the gas schedule on the real ledger at a version."""
    at = f"GasScheduleV2?ledger_version={version}"
    (found,) = (exchange for exchange in recordings.of("history") if exchange.path.endswith(at))
    data = found.json["data"]
    entries = {entry["key"]: int(entry["val"]) for entry in data["entries"]}
    return Schedule(int(data["feature_version"]), entries)


class Row(NamedTuple):
    """A row of the calibration: gas units, octas for storage and refund; of views only the total is known."""

    schedule: str
    call: str
    held_out: bool
    part: str
    real: int
    model: int

    @property
    def factor(self) -> float:
        """The larger figure over the smaller one."""
        low, high = sorted((self.real, self.model))
        return high / low if low else float(high > 0) + 1


def measure(recordings: Recordings) -> Iterator[Row]:
    """Yield what the real node charged and what the embedded node charges, part by part."""
    ledger = embedded.Ledger(release=recorded_schedule(recordings, 170))
    for account in (ALICE, BOB):  # without the account's resource, as on the real ledger
        ledger.commit(TRANSFER, account, 100 * 10**8, sender="0xa550c18")
    for schedule, version, cases in (("v43", 170, X1), ("instructions x10", 315, X10), ("v43", 170, X1_AGAIN)):
        ledger.set_gas_schedule(recorded_schedule(recordings, version))
        for case in cases:
            real, model = case.real.read(recordings), case.run(ledger)
            for part, of_real, of_model in zip(("total", *PARTS), real, model, strict=True):
                if of_real or of_model:
                    yield Row(schedule, case.call, case.held_out, part, of_real, of_model)


def calibration() -> list[Row]:
    """Return the rows that were measured last."""
    with CALIBRATION.open(encoding="utf-8", newline="") as lines:
        return [
            Row(
                row["schedule"], row["call"], row["held_out"] == "yes", row["part"], int(row["real"]), int(row["model"])
            )
            for row in csv.DictReader(lines)
        ]


def as_csv(rows: list[Row]) -> str:
    """Return rows as the text of the file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows((r.schedule, r.call, "yes" if r.held_out else "no", r.part, r.real, r.model) for r in rows)
    return text.getvalue()


def worst(rows: list[Row], *, schedule: str = "v43") -> dict[str, float]:
    """Return the largest factor of each part; ``view`` is the total of views."""
    found: dict[str, float] = {}
    for row in rows:
        if row.schedule == schedule:
            part = "view" if row.call.startswith("view") else row.part
            found[part] = max(found.get(part, 1.0), row.factor)
    return found


def sentence(rows: list[Row]) -> str:
    """Return the measured deviation in a sentence, which reports and notebooks state."""
    factor = {part: _rounded_up(value) for part, value in worst(rows).items()}
    calls = len({row.call for row in rows if row.schedule == "v43"})
    refunds = "equal" if factor["refund"] == "1.00" else f"within {factor['refund']}"
    return (
        f"Compared with {calls} calls recorded on a real node (gas schedule version 43): execution is within a factor of "
        f"{factor['execution']}, io within {factor['io']}, storage within {factor['storage']}, views within "
        f"{factor['view']}; refunds are {refunds}."
    )


def _rounded_up(factor: float) -> str:
    return f"{math.ceil(round(factor * 100, 6)) / 100:.2f}"


def table(rows: list[Row]) -> str:
    """Return the table of the documentation in Markdown, between its two marks."""
    by_call: dict[tuple[str, str, bool], dict[str, str]] = {}
    for row in rows:
        figures = by_call.setdefault((row.schedule, row.call, row.held_out), {})
        figures[row.part] = f"{row.real:,} / {row.model:,}"
    lines = [
        " | ".join(
            ["", schedule, call + (" *" if held_out else ""), *(figures.get(part, "") for part in ("total", *PARTS))]
        )
        + " |"
        for (schedule, call, held_out), figures in by_call.items()
    ]
    head = "| schedule | call | gas used | execution | io | storage, octas | refund, octas |"
    return "\n".join([BEGIN, head, "|---|---|---|---|---|---|---|", *(line.strip() for line in lines), END])


def with_table(text: str, rows: list[Row]) -> str:
    """Return the page's text with the table of the rows."""
    before, _, rest = text.partition(BEGIN)
    return before + table(rows) + rest.partition(END)[2]


if __name__ == "__main__":
    measured = list(measure(Recordings(ROOT.parent / "shared" / "data" / "oracle")))
    CALIBRATION.write_text(as_csv(measured), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
    print(f"{table(measured)}\n\n{sentence(measured)}")
