"""Batches as records: what they refuse before a node is asked, and their forms as JSON and Python."""

from __future__ import annotations

import pickle

import pytest

import toolkit
from toolkit import Batch, EntryFunction, ViewFunction
from toolkit.errors import InputError
from toolkit.wire._bcs_requests import encode_view_request, signed_transaction
from toolkit.wire._requests import canonical_request

SWAP = EntryFunction("0xcafe::pool::swap", ["5"])
PUT = EntryFunction("0xcafe::bank::put", [Batch.result(0, 1).copy()])
TWO = Batch([SWAP, PUT])


def test_a_batch_is_data():
    """It is compared, hashed, pickled and written as Python; views and entry functions are calls alike."""
    assert pickle.loads(pickle.dumps(TWO)) == TWO == eval(TWO.to_python())  # noqa: S301, S307 - of this test
    assert Batch([ViewFunction("0xcafe::pool::swap", ["5"]), PUT]) != TWO
    assert hash(Batch.result(0)) == hash(Batch.result(0, 0))


@pytest.mark.parametrize(
    ("make", "part"),
    [
        (lambda: Batch([]), "at least one call"),
        (lambda: Batch(SWAP), "calls"),
        (lambda: Batch([toolkit.Script("0x00")]), "calls"),
        (lambda: Batch([PUT]), "call 0, arguments[0]"),
        (lambda: Batch([SWAP, SWAP, EntryFunction("0x1::m::f", [1, Batch.result(2)])]), "call 2, arguments[1]"),
        (lambda: Batch([SWAP], abort=Batch.result(1)), "abort"),
        (lambda: Batch([SWAP], abort=-1), "abort"),
        (lambda: Batch.result(-1), "call"),
        (lambda: Batch.result(0, True), "value"),
        (lambda: Batch.signer("0xa11ce"), "index"),
        (lambda: EntryFunction("0x1::m::f", [[Batch.result(0)]]), "arguments"),
    ],
)
def test_what_cannot_be_composed_is_refused_at_once(make, part):
    with pytest.raises(InputError) as caught:
        make()
    assert part in str(caught.value)


def test_arguments_of_batches_are_not_sent_alone():
    """A result cannot be written in JSON or BCS, and neither can a batch that was not composed."""
    with pytest.raises(InputError, match=r"Batch\.result\(0, 1\)"):
        PUT.to_wire()
    with pytest.raises(InputError):
        encode_view_request(ViewFunction("0x1::m::f", [Batch.signer()]))
    numbers = {"sequence_number": 0, "max_gas_amount": 1, "gas_unit_price": 1, "expiration_timestamp_secs": 0}
    with pytest.raises(InputError, match="compose"):
        signed_transaction(toolkit.SimulationRequest(TWO, sender="0xa"), chain_id=4, **numbers)


def test_fingerprints_of_batches():
    """Equal batches have equal text; another use of a result has not."""

    def text(batch):
        return canonical_request(toolkit.SimulationRequest(batch, sender="0xa"))

    moved = EntryFunction("0xcafe::bank::put", [Batch.result(0, 1).move()])
    assert text(TWO) == text(Batch([EntryFunction("0x0cafe::pool::swap", [5]), PUT]))
    assert len({text(TWO), text(Batch([SWAP, moved])), text(TWO.prefix(1, abort=7)), text(Batch([SWAP]))}) == 4


def test_a_prefix_ends_with_an_abort():
    assert TWO.prefix(1, abort=7) == Batch([SWAP], abort=7)
    assert TWO.prefix(0, abort=7).calls == ()
    assert TWO.prefix(2, abort=Batch.result(0)).abort == Batch.result(0)
