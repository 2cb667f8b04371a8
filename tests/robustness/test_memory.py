"""Answers that are small on the wire and large in memory, many at once; and refusals with endless messages."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import toolkit
from tests.integration.transports.servers import Server, _Handler, serving
from tests.unit.client.fakes import URL, FakeNode, answer, function, module, refused, user_transaction
from toolkit._present.messages import MAX_TEXT, cut_text
from toolkit.client import _http as http
from toolkit.client._engine import BulkEngine
from toolkit.client._http import Credentials, Request
from toolkit.client._node_errors import refusal
from toolkit.wire._responses import decode_error_body
from toolkit.wire._transactions import decode_transactions

ROOT = Path(__file__).resolve().parents[2]
MIB = 2**20
SIZE = 8 * MIB
PACKED = gzip.compress(b" " * SIZE)
_CLIENT = """
import resource, sys
from toolkit.client import _http as http
from toolkit.client._http import Credentials
from toolkit.client._engine import BulkEngine
from toolkit.client._node_errors import refusal
from toolkit.client._http import Request
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
http.MAX_BYTES_IN_FLIGHT = 32 * 2**20
engine = BulkEngine(max_in_flight=64)
jobs = [(n, Request("GET", sys.argv[1])) for n in range(64)]
before = peak()
total = sum(len(answer.body) for _, answer in engine.run(jobs))
print(total, peak() - before)
"""


class _Packed(_Handler):
    """Answers 8 kB of gzip that unpack to 8 MiB."""

    def serve_packed(self):
        self.answer(PACKED, Content_Encoding="gzip")


@pytest.fixture
def packed():
    with serving(Server(_Packed)) as server:
        yield server


@pytest.fixture
def small_budget(monkeypatch):
    """Let answers have 32 MiB together."""
    monkeypatch.setattr(http, "MAX_BYTES_IN_FLIGHT", 32 * MIB)


@pytest.fixture
def engine(small_budget):
    made = BulkEngine(timeout_s=60, max_in_flight=16)
    yield made
    made.close()


def requests(server, number):
    return [(key, Request("GET", server.url("packed"))) for key in range(number)]


@pytest.mark.fault("64 simultaneous answers that decompress to 8 MiB each", "all are read, within a byte budget")
def test_many_answers_that_unpack_to_much_keep_to_the_budget(packed):
    """64 answers of 8 MiB take less than 128 MiB with a budget of 32 MiB, not the 512 MiB of all together."""
    done = subprocess.run(
        [sys.executable, "-c", _CLIENT, packed.url("packed")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    total, peak_mib = map(int, done.stdout.split())
    assert total == 64 * SIZE
    assert peak_mib < 128


def bytes_in_flight(driver):
    """Return the bytes of the responses that are being received, or that callers have not processed yet."""
    received = 0 if driver._transfers is None else driver._transfers.received
    return received + sum(run.held for run in driver._runs.copy())


def test_answers_that_nobody_takes_count(packed, engine):
    """While the caller is busy with one answer, the others are received up to the budget and no further."""
    with_answers = engine.run(requests(packed, 16))
    next(with_answers)
    deadline = time.monotonic() + 60
    while bytes_in_flight(engine._driver) <= 32 * MIB and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.3)  # time in which the other answers would be received without the budget
    assert 32 * MIB < bytes_in_flight(engine._driver) <= 32 * MIB + 2 * SIZE
    assert sum(len(answer.body) for _, answer in with_answers) == 15 * SIZE


def test_a_run_that_is_left_standing_holds_up_no_other(packed, engine):
    """One of two runs stops reading; the other still gets its answers, one at a time."""
    left = engine.run(requests(packed, 16))
    next(left)
    assert len(list(engine.run(requests(packed, 16)))) == 16
    left.close()


def test_paused_requests_do_not_run_out_of_time(packed, monkeypatch):
    """The time in which a request is paused is not a wait for the node."""
    monkeypatch.setattr(http, "MAX_BYTES_IN_FLIGHT", 16 * MIB)
    monkeypatch.setattr(http, "TOTAL_TIMEOUTS", 2)
    engine = BulkEngine(timeout_s=2, max_in_flight=8)
    answers = engine.run(requests(packed, 8))
    next(answers)
    time.sleep(4.5)  # more than the time limit of a whole request
    assert [len(answer.body) for _, answer in answers] == [SIZE] * 7
    engine.close()


def test_a_long_text_of_a_node_is_cut_with_a_mark():
    """2,000 characters and how many more there were; shorter texts are left as they are."""
    assert cut_text("x" * MAX_TEXT) == "x" * MAX_TEXT
    assert cut_text("x" * 1_000_000) == "x" * MAX_TEXT + "… (998,000 more characters)"
    body = decode_error_body(json.dumps({"message": "m" * 9_000, "error_code": "c" * 9_000}).encode())
    assert body.message.endswith("m… (7,000 more characters)")
    assert len(body.error_code) < 300


@pytest.mark.parametrize("kind", ["user_transaction", "block_epilogue_transaction"])
def test_a_long_vm_status_is_cut(kind):
    """For committed transactions and simulations alike."""
    wire = user_transaction(vm_status="v" * 10_000) | {"type": kind}
    [one] = decode_transactions(json.dumps([wire]).encode())
    assert one.vm_status == "v" * 2_000 + "… (8,000 more characters)"


@pytest.mark.fault("error messages of 1 MB", "truncated at 2,000 characters in errors, frames and reports")
def test_long_refusals_stay_small_everywhere(proxy, tmp_path):
    """A study of which every call is refused with 1 MB has short messages in its rows, and a small report."""

    def refuse(request, honest):
        if not request.path.endswith("/view"):
            return None
        told = {"message": "m" * 1_000_000, "error_code": "invalid_input", "vm_error_code": None}
        return type(honest)(400, honest.headers, json.dumps(told).encode())

    proxy.change = refuse
    with toolkit.connect(proxy.url, cache=None) as node:
        run = toolkit.Study(
            node=node, calls={"size": toolkit.ViewFunction("0xcafe::registry::size")}, versions="100:140"
        ).run(tmp_path / "run", progress=False)
    assert run.observations["error_message"].str.len().max() < 2_100
    toolkit.reports.write(run, tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000


def test_an_error_kept_as_a_row_does_not_hold_its_answer():
    """No traceback leads from the error of a call among many to the frames in which its answer was read."""
    fake = FakeNode(
        {
            "GET /accounts/0x1/module/m": answer(module("m", functions=[function("f", [], ["u64"])])),
            "POST /view": lambda query, _: refused(400, "x") if query["ledger_version"] == "5" else answer(["no"]),
        }
    )
    node = toolkit.Node(URL, transport=fake)
    call = toolkit.ViewFunction("0x1::m::f")
    for _, error in node.many(node.prepare_view(call, version) for version in (5, 6)):
        behind = error
        while behind is not None:
            assert behind.__traceback__ is None
            behind = behind.__cause__ or behind.__context__


@pytest.mark.parametrize("place", range(1_985, 2_001))
def test_a_key_at_the_place_of_the_cut_is_masked(place):
    """A message that repeats the key shows no part of it, wherever it is cut."""
    error = refusal(
        "x", refused(401, "x", "m" * place + "sesame-9876-open" + "m" * 99), Credentials(api_key="sesame-9876-open")
    )
    shown = error.message.partition("… (")[0]
    assert "sesa" not in shown
    assert "open" not in shown
