"""Parts of a node that fail while the rest answers: counted requests over real sockets."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

import toolkit
from toolkit.client._http import RetryPolicy
from toolkit.gas._study import Run
from toolkit.gas.runs._runner import run_study

SIZE = toolkit.ViewFunction("0xcafe::registry::size")


def connected(proxy, **options):
    """Return a client that repeats without waiting for long."""
    return toolkit.Node(proxy.url, cache=None, retry=RetryPolicy(attempts=2, base_s=0.01), **options)


def counted(proxy):
    """Count the requests by the kind of their path."""
    return Counter("module" if "/module/" in one.path else one.path for one in proxy.requests)


@pytest.mark.fault("the module endpoint fails during a study", "the run completes with the same results")
def test_a_study_does_not_need_modules(proxy, tmp_path):
    """Gas and outcomes equal those of an undisturbed run."""
    study = toolkit.Study(node=proxy.url, calls={"size": SIZE}, versions="300:500/20")
    whole = study.run(tmp_path / "whole", progress=False)
    proxy.change = lambda request, answer: replace(answer, status=503) if "/module/" in request.path else None
    with connected(proxy) as node:
        before = counted(proxy)["module"]
        run = Run.open(run_study(study.on_node(node), tmp_path / "run", progress=False)[0])
        looked_up = counted(proxy)["module"] - before
    columns = ["ledger_version", "gas_used", "success", "value_digest", "error_code"]
    assert run.observations[columns].equals(whole.observations[columns])
    assert looked_up < 40
