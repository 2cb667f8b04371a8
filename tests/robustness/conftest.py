"""Fixtures of the attacks: an honest node in a process of its own, and a proxy in front of it that changes answers."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from proxy import Proxy

import toolkit

_SERVE = """
import sys
from toolkit import embedded
seed, versions = map(int, sys.argv[1:])
with embedded.serve(embedded.Ledger.with_history(seed=seed, versions=versions, cache=True)) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def node_process(*, seed: int, versions: int):
    """Serve a seeded ledger from a process of its own; yields host and port, and the process."""
    command = [sys.executable, "-c", _SERVE, str(seed), str(versions)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        parts = urlsplit(process.stdout.readline().strip())
        try:
            yield (parts.hostname, parts.port), process
        finally:
            process.kill()


@pytest.fixture(scope="session")
def honest():
    """Return host and port of a node with 1,500 versions (seed 7)."""
    with node_process(seed=7, versions=1_500) as (place, _):
        yield place


@pytest.fixture(scope="session")
def other_ledger():
    """Return host and port of a node with another ledger (seed 11) of 1,500 versions."""
    with node_process(seed=11, versions=1_500) as (place, _):
        yield place


@pytest.fixture
def proxy(honest):
    """Return a proxy in front of the honest node; set its `change` to attack."""
    one = Proxy(honest)
    yield one
    one.close()


@pytest.fixture
def connect():
    """Return `toolkit.connect` without a cache; the nodes are closed after the test."""
    with ExitStack() as nodes:
        yield lambda url, **more: nodes.enter_context(toolkit.connect(url, **{"cache": None} | more))
