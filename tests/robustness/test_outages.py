"""Parts of a node that fail while the rest answers: counted requests over real sockets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

import toolkit
from toolkit.client._http import RetryPolicy
from toolkit.gas._study import Run
from toolkit.gas.runs._runner import run_study

SIZE = toolkit.ViewFunction("0xcafe::registry::size")
ARCHIVE = {"x-aptos-archival-endpoint": "https://127.0.0.1:1/v1"}
PRUNED = json.dumps({"message": "pruned", "error_code": "version_pruned", "vm_error_code": None}).encode()


def connected(proxy, **options):
    """Return a client that repeats without waiting for long."""
    return toolkit.Node(proxy.url, cache=None, retry=RetryPolicy(attempts=2, base_s=0.01), **options)


def counted(proxy):
    """Count the requests by the kind of their path."""
    return Counter("module" if "/module/" in one.path else one.path for one in proxy.requests)


@pytest.mark.fault(
    "a module endpoint that answers 503 while views work", "views are read untyped after two look-ups, with one warning"
)
@pytest.mark.parametrize("recovers", [False, True], ids=["stays away", "comes back"])
def test_views_do_not_wait_for_a_module_endpoint_that_fails(proxy, recovers):
    """300 views cost two look-ups of the module; if the second one answers, they are read again and typed."""
    broken = json.dumps({"message": "no", "error_code": "internal_error", "vm_error_code": None}).encode()

    def failing(request, answer):
        if "/module/" not in request.path or (recovers and counted(proxy)["/v1/view"] >= 300):
            return None
        return replace(answer, status=503, body=broken)

    proxy.change = failing
    with connected(proxy) as node:
        if recovers:
            frame = toolkit.fetch_views(node, SIZE, versions=list(range(300, 600)), progress=False)
            assert frame["value"].dtype == "uint64[pyarrow]"
        else:
            with pytest.warns(UserWarning, match="300 calls are untyped"):
                frame = toolkit.fetch_views(node, SIZE, versions=list(range(300, 600)), progress=False)
            assert counted(proxy)["module"] == 4, "two look-ups of two attempts"
    assert frame["error_code"].isna().all()
    assert counted(proxy)["/v1/view"] == (600 if recovers else 300)
    assert counted(proxy)["module"] <= 6


@pytest.mark.fault("the module endpoint fails during a study", "the run completes with the same results")
def test_a_study_does_not_need_modules(proxy, tmp_path):
    """Gas and outcomes are those of an undisturbed run."""
    study = toolkit.Study(node=proxy.url, calls={"size": SIZE}, versions="300:500/20")
    whole = study.run(tmp_path / "whole", progress=False)
    proxy.change = lambda request, answer: replace(answer, status=503) if "/module/" in request.path else None
    with connected(proxy) as node:
        before = counted(proxy)["module"]
        run = Run.open(run_study(study.specification(node), tmp_path / "run", progress=False)[0])
        looked_up = counted(proxy)["module"] - before
    columns = ["ledger_version", "gas_used", "success", "value_digest", "error_code"]
    assert run.observations[columns].equals(whole.observations[columns])
    assert looked_up < 40


@pytest.mark.fault("an archive that cannot be reached", "pruned versions become rows; the archive is tried once")
def test_an_unreachable_archive_does_not_end_a_sweep(proxy):
    """Rows of pruned versions say that the archive does not answer; the other versions are read."""

    def pruned(request, answer):
        if request.path != "/v1/view" or int(request.query["ledger_version"]) >= 150:
            return None
        return replace(answer, status=410, body=PRUNED, headers=answer.headers | ARCHIVE)

    proxy.change = pruned
    with connected(proxy, archive=True) as node:
        frame = toolkit.fetch_views(node, SIZE, versions=[100, 120, 140, 160, 180], progress=False)
    assert frame["error_code"].fillna("").tolist() == ["unreachable"] * 3 + [""] * 2
    assert frame["error_message"][0].startswith(
        "the node has pruned this version, and its archive https://127.0.0.1:1/v1"
    )
