"""The embedded node's gas against a real node's: within a factor of 1.5, storage by its rules, refunds equal."""

from __future__ import annotations

import pytest

from tests.conformance import model_gas
from tests.conformance.model_gas import Row
from toolkit import embedded
from toolkit.gas._series import MODEL_NOTICE

MAX_FACTOR = {"v43": 1.5, "instructions x10": 2.0}
FIXED_SIZE = ("publish", "upgrade", "transfer with a nonce")
"""Calls that store code or buckets of nonces, whose sizes are modelled."""


@pytest.fixture(scope="module")
def rows(recordings) -> list[Row]:
    """Return what is measured now."""
    return list(model_gas.measure(recordings))


def test_every_part_is_within_the_bar(rows):
    """Execution, io and storage of transactions and the gas of views; under the tenfold schedule the bar is wider."""
    assert [row for row in rows if row.factor > MAX_FACTOR[row.schedule]] == []
    assert len({row.call for row in rows if row.held_out}) >= 15


def test_storage_and_refunds_are_those_of_the_real_node(rows):
    """New, grown, replaced and deleted values of equal sizes cost and refund equal octas."""
    stored = [r for r in rows if r.part in {"storage", "refund"} and not r.call.startswith(FIXED_SIZE)]
    assert [row for row in stored if row.real != row.model] == []
    assert {r.part for r in stored} == {"storage", "refund"}
    assert len({r.real for r in stored}) >= 8


def test_tenfold_instructions_move_the_model_as_they_moved_the_node(rows):
    """A transfer's execution went from 4 to 9 gas units, one with a new store from 4 to 12."""
    moved = {
        (row.call, row.schedule): row.model
        for row in rows
        if row.part == "execution" and row.call.startswith("transfer, receiver")
    }
    assert moved["transfer, receiver with a store", "v43"] == 4
    assert moved["transfer, receiver with a store", "instructions x10"] == 9
    assert 8 <= moved["transfer, receiver without a store", "instructions x10"] <= 12


def test_the_stated_deviation_is_the_measured_one(rows):
    """The file in the package has the figures that are measured now."""
    assert model_gas.calibration() == rows, "run python -m tests.conformance.model_gas"


def test_documentation_and_notice_state_the_figures_of_the_file():
    """The table of the documentation and the notice of reports and notebooks come from the file."""
    stated = model_gas.calibration()
    page = model_gas.PAGE.read_text("utf-8")
    assert model_gas.with_table(page, stated) == page, "run python -m tests.conformance.model_gas"
    assert model_gas.sentence(stated) in MODEL_NOTICE


class Box(embedded.Module, address="0xb0c5"):
    """A value whose size callers choose."""

    class Content(embedded.Resource):
        """The value."""

        data: bytes

    @embedded.entry
    def put(self, account: embedded.signer, data: bytes) -> None:
        self.move_to(account, Box.Content(data=data))

    @embedded.entry
    def change(self, account: embedded.signer, data: bytes) -> None:
        with self.borrow_mut(Box.Content, account) as content:
            content.data = data

    @embedded.entry
    def drop(self, account: embedded.signer) -> None:
        self.move_from(Box.Content, account)


KEY_BYTES = 32 + 1 + 32 + len("box") + 1 + len("Content") + 1 + 1
"""Address and path of `Box.Content`: kind, address of the module, two names with their lengths, no type arguments."""


@pytest.fixture
def octas():
    """Return a function that calls `Box` and returns storage fee and refund, and the ledger as its attribute."""
    ledger = embedded.Ledger(release="v1.39.0")
    ledger.publish(Box)

    def call(name, *arguments):
        charges = ledger.commit(f"0xb0c5::box::{name}", *arguments, sender="0xa11ce").output.charges
        return charges.storage_fee_octas, charges.storage_fee_refund_octas

    call.ledger = ledger
    return call


def test_bytes_are_paid_once(octas):
    """A value that shrinks and grows again pays only for bytes beyond those it has paid for."""
    assert octas("put", b"x" * 100) == (40_000 + 40 * (KEY_BYTES + 1 + 100), 0)
    assert octas("change", b"x" * 10) == (0, 0)
    assert octas("change", b"x" * 100) == (0, 0)
    assert octas("change", b"x" * 110) == (40 * 10, 0)
    assert octas("drop") == (0, 40_000 + 40 * (KEY_BYTES + 1 + 110))


def test_refunds_are_what_was_paid_whatever_the_schedule_is_now(octas):
    """Under prices that are ten times higher, growth is charged at the new price and the refund is the old deposit."""
    paid, _ = octas("put", b"x" * 100)
    octas.ledger.set_gas_schedule("v1.41.1")
    grown, _ = octas("change", b"x" * 101)
    assert grown == 400
    assert octas("drop") == (0, paid + grown)
