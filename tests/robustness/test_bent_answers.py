"""Honest answers, bent in many ways: nothing but a ToolkitError is raised, and a sweep loses the bent row alone.

Answers are recorded from an honest node once. Each test then replaces one leaf of an answer by a hostile value and
reads it through every function that meets such an answer. A sweep meets many such answers at once, each beside an honest one.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import toolkit
from tests.unit.client.fakes import refused
from toolkit.client._http import Answer, Request, RetryPolicy
from toolkit.client._node import Node
from toolkit.client._transport import SessionTransport
from toolkit.errors import ToolkitError
from toolkit.frames._columns import plain_columns
from toolkit.gas._study import Run
from toolkit.gas.runs._runner import run_study

RECORD = "0xcafe::registry::Record"
FEE = "0x1::transaction_fee::FeeStatement"
COIN = "0x1::coin::CoinStore<0x1::aptos_coin::AptosCoin>"
ENTRY = {"key_type": "0x1::string::String", "value_type": RECORD}
RECORD_OF = toolkit.ViewFunction("0xcafe::registry::record_of", arguments=["alice"])
REGISTER = toolkit.EntryFunction("0xcafe::registry::register", arguments=["a name nobody has"])
FIRST, BENT, LAST = 410, 412, 416
BENT_AT_ONCE = 12
SWEPT = range(FIRST, FIRST + 2 * BENT_AT_ONCE + 1)
"""Versions of a sweep: every second answer is bent, beginning with the second."""
SOME = 7
"""Every seventh case is some values at each place, and each value at some place: 7 and the number of values have no common factor."""

HOSTILE = {
    "half a surrogate pair": rb'"\ud800"',
    "half a surrogate pair after text": rb'"0x1::m::f\udc00"',
    "not UTF-8": b'"\xff\xfe"',
    "a surrogate in UTF-8": b'"\xed\xa0\x80"',
    "a key that is half a surrogate pair": rb'{"\ud800": 1}',
    "NUL": rb'"a\u0000b"',
    "a control character": b'"a\nb"',
    "5,000 digits": b"9" * 5_000,
    "5,000 digits in text": b'"%b"' % (b"9" * 5_000),
    "4,000 digits": b"-" + b"9" * 4_000,
    "digits of another script": '"\u0661\u00b2"'.encode(),
    "2^64": b'"18446744073709551616"',
    "2^64-1": b'"18446744073709551615"',
    "2^63": b"9223372036854775808",
    "negative": b"-1",
    "negative text": b'"-1"',
    "a fraction": b"0.5",
    "beyond a float": b"1e400",
    "NaN": b"NaN",
    "true": b"true",
    "null": b"null",
    "an empty text": b'""',
    "an empty list": b"[]",
    "an object": b'{"a": ["b", {"c": 1}]}',
    "100,000 levels": b"[" * 100_000 + b"]" * 100_000,
    "900 levels": b"[" * 900 + b"]" * 900,
    "300 objects": b'{"a":' * 300 + b"1" + b"}" * 300,
    "a long text": b'"%b"' % (b"x" * 100_000),
    "an address that is too long": b'"0x%b"' % (b"a" * 65),
    "half an object": b'{"a": ',
}


class Bent:
    """A transport that replays recorded answers; `bend` returns the body to answer with instead, or None."""

    def __init__(self, url: str) -> None:
        self.honest = SessionTransport(timeout_s=30.0)
        self.recorded: dict[tuple[str, str, bytes | None, str], Answer] = {}
        self.url = url
        self.bend: Callable[[Request], bytes | None] = lambda _: None

    def send(self, request: Request) -> Answer:
        key = (request.method, request.url, request.body, request.headers["Accept"])
        if key not in self.recorded:
            self.recorded[key] = self.honest.send(request)
        body = self.bend(request)
        return self.recorded[key] if body is None else replace(self.recorded[key], body=body)

    def close(self) -> None:
        pass

    def body(self, where: str) -> bytes:
        """Return the recorded answer whose URL ends in a text."""
        return next(one.body for (_, url, _, _), one in self.recorded.items() if url.endswith(where))

    def node(self, **options: Any) -> Node:
        return Node(self.url, cache=None, retry=RetryPolicy(attempts=1), **{"transport": self} | options)


@pytest.fixture(scope="module")
def replay(honest):
    transport = Bent(f"http://{honest[0]}:{honest[1]}")
    yield transport
    transport.honest.close()


def places(value: Any, path: tuple[Any, ...] = ()) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return a path to each leaf and container of a JSON value; of those that differ in indices alone the last."""
    found = {tuple("[]" if isinstance(step, int) else step for step in path): path}
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in inner:
        found |= places(child, (*path, step))
    return found


def body_at(replay: Bent, where: str, read: Callable[[], Any]) -> bytes:
    """Return the honest answer at the version `BENT` to a request for such a path, which a read sends."""
    replay.bend = lambda _: None
    read()
    return replay.body(f"{where}?ledger_version={BENT}")


def with_hostile(body: bytes, path: tuple[Any, ...], name: str) -> bytes:
    """Return an answer with what stands at a path replaced by a hostile value."""
    if not path:
        return HOSTILE[name]
    document = json.loads(body)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = "@hostile@"
    return json.dumps(document).encode().replace(b'"@hostile@"', HOSTILE[name])


def bent_bodies(body: bytes, stride: int = 1):
    """Yield an answer with one place replaced by a hostile value, for every place and every value (or each n-th)."""
    cases = [(path, name) for path in places(json.loads(body)).values() for name in HOSTILE]
    yield from ((path, name, with_hostile(body, path, name)) for path, name in cases[::stride])


def only_ours(read: Callable[[], Any], *about: Any) -> Any:
    """Return what a read returns, None if it raises one of our errors; anything else fails the test."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return read()
    except ToolkitError as error:
        str(error).encode()  # a text for people, logs and frames
        return None
    except BaseException as error:
        raise AssertionError(f"{about}: {type(error).__name__}: {ascii(str(error))[:200]}") from error


def check_sweeps(
    replay: Bent, where: str, honest: bytes, fetch: Callable[[], Any], *, values: bool = True, stride: int = 1
) -> None:
    """Bend every second answer of a sweep, each at another place: the others are read, with the values of before."""
    replay.bend = lambda _: None
    truth = fetch()
    cases, failed = list(bent_bodies(honest, stride)), 0
    for start in range(0, len(cases), BENT_AT_ONCE):
        bent = dict(zip(map(str, SWEPT[1::2]), cases[start : start + BENT_AT_ONCE], strict=False))
        about = [(path, name) for path, name, _ in bent.values()]

        def bend(request, bent=bent):
            place, _, version = request.url.rpartition("?ledger_version=")
            return bent[version][2] if version in bent and place.endswith(where) else None

        replay.bend = bend
        frame = only_ours(fetch, about)
        assert frame is not None, about
        assert len(frame) == len(truth) == len(SWEPT), about
        assert frame["error_code"].isna()[::2].all(), about
        failed += frame["error_code"].count()
        if values:
            assert plain_columns(frame.iloc[::2], list(truth)) == plain_columns(truth.iloc[::2], list(truth)), about
    assert failed > 30 // stride, failed  # the bent answers came
    replay.bend = lambda _: None


def frames_of(result: Any) -> None:
    """Use everything a simulation offers."""
    for read in (
        lambda: (result.transactions, result.changes, result.events),
        lambda: result.balance_changes,
        result.explain,
        lambda: (result.gas_used, result.gas, result.success, result.vm_status, result.ledger_version),
        lambda: result.resources(COIN),
        lambda: result.events_of("0x1::transaction_fee::FeeStatement"),
        lambda: (repr(result), result._repr_html_()),
        lambda: (result.transaction.payload, result.transaction.signature),
    ):
        only_ours(read, "simulation")


@pytest.mark.fault("any hostile leaf in a view's answer", "the row is a failure or a value; the others are read")
def test_views(replay):
    """A single view raises our errors only; a sweep has all rows, the bent ones with an error or a value."""
    node = replay.node()
    honest = body_at(replay, "/view", lambda: node.view(RECORD_OF, ledger_version=BENT))
    for path, name, body in bent_bodies(honest):
        replay.bend = lambda request, body=body: body if request.url.endswith(f"/view?ledger_version={BENT}") else None
        result = only_ours(lambda: node.view(RECORD_OF, ledger_version=BENT), path, name)
        if result is not None:
            only_ours(lambda result=result: (result.to_frame(), result._repr_html_(), repr(result)), path, name)
    for typed, stride in ((True, 1), (False, SOME)):
        fetch = lambda typed=typed: toolkit.fetch_views(  # noqa: E731
            node, RECORD_OF, versions=SWEPT, typed=typed, progress=False
        )
        check_sweeps(replay, "/view", honest, fetch, stride=stride)


@pytest.mark.fault("any hostile leaf in an untyped view's answer", "one failure row, or JSON text")
@pytest.mark.parametrize("flatten", [False, True])
def test_views_of_a_node_without_modules(replay, flatten):
    """Without types, any JSON becomes a column, or its row a failure, but never an error of the frame."""
    node = replay.node()
    honest = body_at(replay, "/view", lambda: node.view(RECORD_OF, ledger_version=BENT))

    class WithoutModules:
        def send(self, request):
            return refused(403, "web_framework_error") if "/module/" in request.url else replay.send(request)

        def close(self):
            pass

    node = replay.node(transport=WithoutModules())
    fetch = lambda: toolkit.fetch_views(node, RECORD_OF, versions=SWEPT, flatten=flatten, progress=False)  # noqa: E731
    # A column of any JSON is text as soon as one value needs it, so the honest rows are not compared.
    check_sweeps(replay, "/view", honest, fetch, values=False, stride=1 if flatten else SOME)


@pytest.mark.fault("any hostile leaf in a table item", "the row is a failure or a value; the others are read")
def test_table_items(replay):
    """As views."""
    node = replay.node()
    handle = node.view("0xcafe::registry::handle", ledger_version=LAST).value
    read = lambda: node.table_item(handle, key="alice", **ENTRY, ledger_version=BENT).to_frame()  # noqa: E731
    honest = body_at(replay, "/item", read)
    for path, name, body in bent_bodies(honest):
        replay.bend = lambda request, body=body: body if request.url.endswith(f"/item?ledger_version={BENT}") else None
        only_ours(read, path, name)
    fetch = lambda: toolkit.fetch_table_items(  # noqa: E731
        node, handle, keys=["alice"], **ENTRY, versions=SWEPT, flatten=True, progress=False
    )
    check_sweeps(replay, "/item", honest, fetch)


@pytest.mark.fault("any hostile leaf in a resource", "the row is a failure or a value; the others are read")
def test_resources(replay):
    """As views."""
    node = replay.node()
    where = "/resource/0x1%3A%3Acoin%3A%3ACoinStore%3C0x1%3A%3Aaptos_coin%3A%3AAptosCoin%3E"
    honest = body_at(replay, where, lambda: node.resource("0xb0b", COIN, ledger_version=BENT))
    fetch = lambda: toolkit.fetch_resources(node, "0xb0b", COIN, SWEPT, progress=False)  # noqa: E731
    check_sweeps(replay, where, honest, fetch)


@pytest.mark.fault("any hostile leaf in an event", "the row is a failure or a value; the other events are read")
def test_events(replay):
    """The other versions of the page are as they were; a bent one has its event, or a failure, or neither."""
    node = replay.node()
    last = FIRST + 60
    fetch = lambda: toolkit.fetch_events(node, FEE, f"{FIRST}:{last}", progress=False)  # noqa: E731
    truth = fetch()
    where = f"/transactions?start={FIRST}&limit={last - FIRST + 1}"
    page = json.loads(replay.body(where))
    found = [
        (place, number)
        for place, one in enumerate(page)
        for number, event in enumerate(one.get("events", ()))
        if event["type"] == FEE
    ]
    bent, others = found[1::2], {FIRST + place for place, _ in found[::2]}
    assert len(bent) > 10
    kept = truth[truth["ledger_version"].isin(others)].reset_index(drop=True)
    place, number = bent[0]
    cases = list(bent_bodies(json.dumps(page[place]["events"][number]).encode(), SOME))
    cases = [case for case in cases if case[1] != "half an object"]  # then the page as a whole is no JSON
    for start in range(0, len(cases), len(bent)):
        chosen = cases[start : start + len(bent)]
        for case, (place, number) in enumerate(bent[: len(chosen)]):
            page[place]["events"][number] = f"@{case}@"
        whole = json.dumps(page).encode()
        for case, (_, _, one) in enumerate(chosen):
            whole = whole.replace(b'"@%d@"' % case, one)
        replay.bend = lambda request, whole=whole: whole if request.url.endswith(where) else None
        about = [(path, name) for path, name, _ in chosen]
        frame = only_ours(fetch, about)
        assert frame is not None, about
        frame = frame[frame["ledger_version"].isin(others)].reset_index(drop=True)
        assert plain_columns(frame, list(kept)) == plain_columns(kept, list(kept)), about
    replay.bend = lambda _: None


@pytest.mark.fault("any hostile leaf in a simulation's answer", "the request's row is a failure or a value")
def test_simulations(replay):
    """A bent simulation is an error of ours, or a result of which everything can be used."""
    node = replay.node()
    replay.bend = lambda _: None
    node.simulate(REGISTER, sender="0xa11ce")
    (where,) = (url for _, url, _, _ in replay.recorded if "/simulate" in url)
    for path, name, body in bent_bodies(replay.body(where), stride=101):
        replay.bend = lambda request, body=body: body if request.url == where else None
        result = only_ours(lambda: node.simulate(REGISTER, sender="0xa11ce"), path, name)
        if result is not None:
            frames_of(result)
    request = toolkit.SimulationRequest(REGISTER, sender="0xa11ce")
    for path, name, body in bent_bodies(replay.body(where), stride=401):
        replay.bend = lambda request, body=body: body if request.url == where else None
        frames = only_ours(lambda: toolkit.fetch_simulations(node, [request], progress=False), path, name)
        assert len(frames.transactions) == 1
    replay.bend = lambda _: None


@pytest.mark.fault("any hostile leaf in a committed transaction", "only its version is a failure row")
def test_pages_of_transactions(replay):
    """Each version of a page is one row, whatever one transaction contains; the other rows are unchanged."""
    node = replay.node()
    fetch = lambda: toolkit.fetch_transactions(node, versions=f"{FIRST}:{LAST}", progress=False)  # noqa: E731
    truth = fetch().transactions.set_index("ledger_version")["hash"]
    where = f"/transactions?start={FIRST}&limit={LAST - FIRST + 1}"
    page = json.loads(replay.body(where))
    place = next(number for number, one in enumerate(page) if one["type"] == "user_transaction")
    bent_version = FIRST + place
    others = [version for version in range(FIRST, LAST + 1) if version != bent_version]
    for path, name, one in bent_bodies(json.dumps(page[place]).encode(), stride=97):
        if name == "half an object":
            continue  # then the page as a whole is no JSON
        whole = json.dumps([*page[:place], "@one@", *page[place + 1 :]]).encode().replace(b'"@one@"', one)
        replay.bend = lambda request, whole=whole: whole if request.url.endswith(where) else None
        rows = only_ours(fetch, path, name).transactions
        assert rows["ledger_version"].tolist() == list(range(FIRST, LAST + 1)) or path[:1] == ("version",), (path, name)
        read = rows[rows["error_code"].isna()].set_index("ledger_version")["hash"]
        assert read.reindex(others).equals(truth.reindex(others)), (path, name)
    replay.bend = lambda _: None


SINGLE = {
    "module": ("/module/registry?ledger_version=", lambda node: node.module("0xcafe", "registry", ledger_version=BENT)),
    "resource": ("/resource/", lambda node: node.resource("0xb0b", COIN, ledger_version=BENT)),
    "block": ("/blocks/by_version/", lambda node: node.block(BENT).block_timestamp),
    "transaction": (f"/transactions/by_version/{BENT}", lambda node: node.transaction(BENT)),
    "ledger": ("/v1", lambda node: node.ledger().timestamp_us),
    "gas price": ("/estimate_gas_price", lambda node: node.gas_price()),
    "gas schedule": ("GasSchedule", lambda node: node.gas_schedule(BENT)),
    "account": ("/accounts/0xa11ce", lambda node: node.account("0xa11ce")),
}


@pytest.mark.fault("any hostile leaf in a module, resource, block, account, price or description", "a ToolkitError")
@pytest.mark.parametrize("what", SINGLE)
def test_single_reads(replay, what):
    """Each companion read raises our errors only, and so do sweeps that need it."""
    where, read = SINGLE[what]
    replay.bend = lambda _: None
    read(replay.node())
    (url, honest) = next(
        (url, one.body)
        for (_, url, _, _), one in replay.recorded.items()
        if where in url and (where != "/v1" or url.endswith(where))
    )
    for path, name, body in bent_bodies(honest, stride=31 if what == "module" else SOME):
        replay.bend = lambda request, body=body: body if request.url == url else None
        node = replay.node()
        only_ours(lambda node=node: read(node), path, name)
        if what in {"module", "ledger"}:
            only_ours(
                lambda node=node: toolkit.fetch_views(node, RECORD_OF, versions=[FIRST, BENT], progress=False),
                path,
                name,
            )
        if what == "block":
            only_ours(
                lambda node=node: toolkit.fetch_views(node, RECORD_OF, versions=[BENT], times=True, progress=False),
                path,
                name,
            )
    replay.bend = lambda _: None


ERRORS = [
    rb'{"message": "no", "error_code": "\ud800", "vm_error_code": null}',
    rb'{"message": "\udfff\ud800", "error_code": "invalid_input", "vm_error_code": 99999999999999999999999}',
    b'{"message": "\xff", "error_code": "invalid_input"}',
    b'{"message": "no", "error_code": "a\\u0000b", "vm_error_code": -1}',
    b'{"message": "no", "error_code": "x", "vm_error_code": ' + b"9" * 5_000 + b"}",
    b"[" * 100_000,
    b"\xff\xfe",
    b'{"message": {"a": 1}, "error_code": []}',
]


@pytest.mark.fault(
    "an error body with half a surrogate pair, 5,000 digits, or 100,000 levels", "the call's row has an error code"
)
@pytest.mark.parametrize("body", ERRORS, ids=range(len(ERRORS)))
@pytest.mark.parametrize("status", [400, 404, 410, 500])
def test_errors(replay, status, body):
    """The row of the refused call has a code; the others are read."""

    class Refusing:
        def send(self, request):
            answer = replay.send(request)
            bent = request.url.endswith(f"/view?ledger_version={BENT}")
            return replace(answer, status=status, body=body) if bent else answer

        def close(self):
            pass

    replay.node().view(RECORD_OF, ledger_version=BENT)
    node = replay.node(transport=Refusing())
    frame = toolkit.fetch_views(node, RECORD_OF, versions=[FIRST, BENT, LAST], progress=False)
    assert frame["error_code"].isna().tolist() == [True, False, True]
    frame["error_message"].dropna().str.encode("utf-8")


STUDIED = {
    "view": "/view?ledger_version=410",
    "page": "/transactions?start=",
    "module": "/module/registry?ledger_version=",
    "transaction of a step": "/transactions/by_version/",
    "block": "/blocks/by_version/",
}


@pytest.mark.fault("hostile answers in a study", "the run completes; malformed answers are failure rows")
@pytest.mark.parametrize("kind", STUDIED)
def test_studies(replay, tmp_path, kind):
    """A study over a node that bends every answer of a kind completes, and opens again the same."""
    calls = {"record": RECORD_OF, "registered": {"committed": "0xcafe::registry::register"}}
    study = toolkit.Study(node=replay.url, calls=calls, versions=toolkit.FindSteps("400:430", initial=7))
    # Each hostile value meets one kind of answers.
    for place, name in list(enumerate(HOSTILE))[list(STUDIED).index(kind) :: len(STUDIED)]:
        bent = []

        def bend(request, place=place, name=name, bent=bent):
            if STUDIED[kind] not in request.url:
                return None
            honest = replay.body(request.url)
            document = json.loads(honest)
            found = list(places(document).values())
            bent.append(request.url)
            return with_hostile(honest, found[(place * 7 + 3) % len(found)], name)

        replay.bend = bend
        for _ in range(2):
            run = only_ours(
                lambda place=place: Run(
                    run_study(study.on_node(replay.node()), tmp_path / str(place), progress=False)[0]
                ),
                kind,
                name,
            )
            assert run.complete, (kind, name)
        assert bent or kind != "view"
    replay.bend = lambda _: None


BENT_IN_TIMELINES = {
    "registry": "/0x1/resource/0x1%3A%3Acode%3A%3APackageRegistry",
    "flags": "features%3A%3AFeatures",
    "schedule": "GasScheduleV2",
}


@pytest.mark.fault(
    "any hostile leaf in a package registry, flags or gas schedule, in a timeline", "a change, or an entry in `unread`"
)
@pytest.mark.parametrize("what", BENT_IN_TIMELINES)
def test_timelines(replay, what):
    """A timeline is returned, whatever a resource contains at one end of the range."""
    replay.bend = lambda _: None
    where = f"{BENT_IN_TIMELINES[what]}?ledger_version={LAST}"

    def found(node):
        return toolkit.timeline(node, f"{FIRST}:{LAST}", modules=["0xcafe::registry"], initial=2)

    assert list(found(replay.node())["ledger_version"]) == []
    url, honest = next((url, one.body) for (_, url, _, _), one in replay.recorded.items() if url.endswith(where))
    assert honest.startswith(b'{"type"')
    for path, name, body in bent_bodies(honest, stride={"registry": 11, "flags": 3, "schedule": 61}[what]):
        replay.bend = lambda request, body=body: body if request.url == url else None
        node = replay.node()
        assert only_ours(lambda node=node: found(node), path, name) is not None, (path, name)
    replay.bend = lambda _: None
