"""The recorded contract ``lab``, written in Python: what its Move source declares, without its asset and its map."""

from __future__ import annotations

from toolkit.embedded import (
    AbortCode,
    Enum,
    Event,
    EventHandle,
    Module,
    Object,
    ObjectModule,
    Option,
    Resource,
    String,
    Struct,
    Table,
    Timestamp,
    TypeArgument,
    address,
    entry,
    i8,
    i64,
    i128,
    i256,
    public,
    signer,
    u8,
    u16,
    u32,
    u64,
    u128,
    u256,
    vector,
    view,
)
from toolkit.embedded.framework._object import OBJECT_GROUP

ALICE = "0x34bf7e2d17674feb234371a7ea58efd715f0e56ba20ebf13789480d9d643afaf"
BOB = "0x5312c76580194734d0aeac1dc9c670e647d6ff8cb4ae9c0a9570b3d7cb98d5e1"


class Weights(Module, address=BOB):
    """``lib::weights``."""

    @public
    def weigh(self, n: u64) -> u64:
        return n * (n - 1) // 2

    @view
    def weight_of(self, n: u64) -> u64:
        return self.weigh(n)


class Lab(Module, address=ALICE, uses=[Weights]):
    """``lab::lab`` as it was published."""

    E_TOO_BIG = AbortCode(7, "")

    class Entry(Struct):
        n: u64
        wide: u256
        name: String
        maybe: Option[u64]
        tags: bytes

    class Key(Struct):
        a: u64
        b: address

    class Bumped(Event):
        who: address
        by: u64
        total: u128
        note: String
        maybe: Option[u64]

    class Legacy(Resource):
        pings: EventHandle[Lab.Ping]
        n: u64

    class Ping(Struct, abilities="store drop"):
        n: u64

    class Note(Resource, abilities="key drop"):
        text: String
        at: u64

    class Mode(Enum, abilities="key store drop copy"):
        class Off: ...

        class On:
            level: u8

        class Pair:
            _0: u64
            _1: bool

    class Extra(Resource, group=OBJECT_GROUP):
        label: String
        signed: i64

    class Shape(Enum, abilities="store drop copy"):
        class Circle:
            r: u64

        class Box:
            w: u64
            h: u64

    class Lab(Resource):
        """Without ``map``, a ``SimpleMap``, which the framework does not have."""

        total: u128
        items: Table[u64, Lab.Entry]
        by_key: Table[Lab.Key, u64]
        names: Table[String, u64]
        list: vector[u64]

    def init_module(self, account: signer) -> None:
        items, by_key, names = (self.new_table() for _ in range(3))
        self.move_to(account, Lab.Lab(total=0, items=items, by_key=by_key, names=names, list=[]))
        self.move_to(account, Lab.Legacy(pings=self.new_event_handle(account), n=0))
        self.move_to(account, Lab.Mode.Off())
        extra = self.use(ObjectModule).create_named_object(account, b"EXTRA")
        self.move_to(extra, Lab.Extra(label="extra", signed=-5))

    @entry
    def ping(self, account: signer, times: u64) -> None:
        with self.borrow_mut(Lab.Legacy, ALICE) as legacy:
            for _ in range(times):
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
    def mode(self, account: signer, kind: u8) -> None:
        with self.borrow_mut(Lab.Mode, ALICE) as mode:
            mode.assign((Lab.Mode.Off(), Lab.Mode.On(level=9), Lab.Mode.Pair(_0=3, _1=True))[min(kind, 2)])

    @entry
    def together(self, first: signer, second: signer, n: u64) -> None:
        with self.borrow_mut(Lab.Lab, ALICE) as lab:
            lab.total += u128(n)

    @entry
    def bump(self, account: signer, by: u64) -> None:
        self.require(by < 1_000_000, self.E_TOO_BIG)
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

    @entry
    def drop_item(self, account: signer, k: u64) -> None:
        self.borrow(Lab.Lab, ALICE).items.remove(k)

    @view
    def weighed(self, n: u64) -> u64:
        return self.use(Weights).weigh(n)

    @view
    def mode_now(self) -> Mode:
        return self.borrow(Lab.Mode, ALICE)

    @view
    def signed(self, a: i8, b: i64, c: i128, d: i256) -> tuple[i8, i64, i128, i256]:
        return a, b, c, d

    @view
    def work(self, n: u64) -> u64:
        return n

    @view
    def total(self) -> u128:
        return self.borrow(Lab.Lab, ALICE).total

    @view
    def sum(self) -> u64:
        return sum(self.each(self.borrow(Lab.Lab, ALICE).list))

    @view
    def item(self, k: u64) -> Entry:
        return self.borrow(Lab.Lab, ALICE).items.borrow(k)

    @view
    def find(self, k: u64) -> Option[Entry]:
        items = self.borrow(Lab.Lab, ALICE).items
        return items.borrow(k) if items.contains(k) else None

    @view
    def everything(  # noqa: PLR0917 - as the contract
        self,
        a: u8,
        b: u16,
        c: u32,
        d: u64,
        e: u128,
        f: u256,
        g: bool,  # noqa: FBT001 - Move has no keywords
        h: address,
        i: String,
        j: bytes,
        k: vector[u64],
        l: Option[u64],  # noqa: E741 - the name in the contract
        m: vector[String],
        n: vector[vector[u16]],
    ) -> tuple[
        u8,
        u16,
        u32,
        u64,
        u128,
        u256,
        bool,
        address,
        String,
        bytes,
        vector[u64],
        Option[u64],
        vector[String],
        vector[vector[u16]],
    ]:
        return a, b, c, d, e, f, g, h, i, j, k, l, m, n

    @view
    def shapes(self) -> vector[Shape]:
        return [Lab.Shape.Circle(r=3), Lab.Shape.Box(w=1, h=2)]

    @view
    def two(self) -> tuple[u64, String]:
        return 1, "two"

    @view
    def obj(self, o: Object[ObjectModule.ObjectCore]) -> Object[ObjectModule.ObjectCore]:
        return o

    @view
    def fails(self, x: u64) -> u64:
        self.abort(self.E_TOO_BIG if x == self.E_TOO_BIG.code else x)

    @view
    def generic(self, kind: TypeArgument) -> String:
        return self.type_name(kind)


class LaterLab(Lab, revision=2):
    """``lab::lab`` in its second version, which has a new view."""

    @view
    def fresh(self) -> u64:
        return 42
