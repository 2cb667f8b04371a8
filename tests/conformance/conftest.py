"""Fixtures over the recordings of a real node: the exchanges, and nodes that answer from them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import toolkit
from tests.conformance.recorded_node import RecordedNode, Recordings
from toolkit.move import AbiMap, decode_module_abi

AT_315 = ("history", "sweep", "raw", "items", "views", "simulations", "limits")
"""Files about the ledger while its head was 315."""


@pytest.fixture(scope="session")
def recordings(shared_data) -> Recordings:
    """Return everything that was recorded, or skip with the reason."""
    folder = shared_data / "oracle"
    if not folder.is_dir():
        pytest.skip("the recordings of a real node are not beside this checkout (../shared/data/oracle)")
    return Recordings(folder)


@pytest.fixture(scope="session")
def recorded_node(recordings) -> Iterator[RecordedNode]:
    """Return a node at version 315 that answers from the recordings; the SDKs' simulations are among them."""
    exchanges = recordings.of(*AT_315) + [e for e in recordings.simulations if e.group.endswith("-sdk")]
    with RecordedNode(exchanges, recordings.history).serving() as node:
        yield node


@pytest.fixture(scope="session")
def node(recorded_node) -> Iterator[toolkit.Node]:
    """Return a client of the recorded node without a cache."""
    with toolkit.connect(recorded_node.url, cache=None) as client:
        yield client


@pytest.fixture(scope="session")
def bcs_node(recorded_node) -> Iterator[toolkit.Node]:
    """Return a client of the recorded node that reads in BCS."""
    with toolkit.connect(recorded_node.url, cache=None, encoding="bcs") as client:
        yield client


@pytest.fixture(scope="session")
def abis(recordings):
    """Return a function of a version: the ABIs of all modules as of there."""
    history = recordings.longer_history
    found: dict[int, AbiMap] = {}

    def at(version: int) -> AbiMap:
        since = max(change for change in (0, 53, 56, 137, 158, 503) if change <= version)
        if since not in found:
            modules = [history.value(*key, since) for key in history.places("module")]
            found[since] = AbiMap.of([decode_module_abi(module) for module in modules if module is not None])
        return found[since]

    return at
