"""The proxy passes honest answers through and changes only what it is told to."""

from __future__ import annotations

from dataclasses import replace

import pytest

import toolkit

SIZE = toolkit.ViewFunction("0xcafe::registry::size")


def test_an_idle_proxy_changes_nothing(proxy, honest):
    """A sweep through the proxy equals one without it."""
    columns = ["ledger_version", "value", "gas_used", "error_code"]
    frames = [
        toolkit.fetch_views(toolkit.connect(url, cache=None), SIZE, versions="0:-1/50", progress=False)[columns]
        for url in (proxy.url, f"http://{honest[0]}:{honest[1]}")
    ]
    assert frames[0].equals(frames[1])
    assert len(proxy.requests) >= 50


@pytest.mark.fault("a view's answer that is not JSON", "one failure row; the other calls are read")
def test_one_answer_that_is_not_json_is_one_row(proxy):
    """A gateway's page instead of one answer costs that row only."""

    def page(request, answer):
        return replace(answer, body=b"<html>") if request.query.get("ledger_version") == "450" else None

    proxy.change = page
    frame = toolkit.fetch_views(toolkit.connect(proxy.url, cache=None), SIZE, versions=[449, 450, 451], progress=False)
    assert frame["error_code"].notna().tolist() == [False, True, False]
