"""A report tells which schedule and which code its figures stand on, whatever the manifest holds."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import pytest

from tests.unit.plots import synthetic_run
from toolkit.reports import build
from toolkit.reports._provenance import schedule_text
from toolkit.reports._to_html import render as html
from toolkit.reports._to_markdown import render as markdown

mpl.use("agg")

SCHEDULE = {"first": {"feature_version": 42, "digest": "aa"}, "last": {"feature_version": 45, "digest": "bb"}}
MODULES = {"0x1::aptos_account": {"first": "cc", "last": "cc"}, "0xfa17::vault": {"first": None, "last": "dd"}}


def run(provenance: Any) -> synthetic_run.Run:
    """A made-up run whose manifest tells of both ends."""
    plan = {"node": "embedded", "first": 0, "last": 4_999, "provenance": provenance}
    plan |= {"notes": ["from 0 clipped to 100: older versions are pruned"]}
    plan |= {"anchor": {"version": 4_999, "transaction_hash": "0xff"}}
    manifest = {"complete": True, "nodes": [plan], "study_digest": "ee"}
    return synthetic_run.Run(synthetic_run.observations(), synthetic_run.steps(), manifest=manifest)


def test_schedule_and_code_at_both_ends_are_told() -> None:
    """Names stay as they are spelled; what was not there at first says so."""
    facts = build(run({"gas_schedule": SCHEDULE, "modules": MODULES})).provenance
    (schedule,) = facts.schedules
    words = schedule_text(schedule)
    assert words == "at 0 feature version 42, digest aa; at 4999 feature version 45, digest bb"
    assert [(code.module, code.digests) for code in facts.modules] == [
        ("0x1::aptos_account", ("cc", "cc")),
        ("0xfa17::vault", (None, "dd")),
    ]
    assert facts.manifest == (
        ("plan", "from 0 clipped to 100: older versions are pruned"),
        ("hash of transaction 4999", "0xff"),
        ("study digest", "ee"),
    )


def test_every_format_tells_them() -> None:
    """HTML and Markdown show the digests, and that code stayed the same."""
    data = build(run({"gas_schedule": SCHEDULE, "modules": MODULES}))
    page, text = html(data), markdown(data)
    for told in ("0x1::aptos_account", "0xfa17::vault", "not there, or not reported", "digest aa"):
        assert told in page
        assert told in text
    assert "the same" in page


@pytest.mark.parametrize("odd", [None, 5, [], {"gas_schedule": 1, "modules": []}, "text"])
def test_a_manifest_of_another_form_is_not_trusted(odd: Any) -> None:
    """What cannot be read is left out."""
    facts = build(run(odd)).provenance
    assert facts == build(run({})).provenance
    assert facts.schedules == ()


def test_a_report_is_written_from_a_manifest_of_another_form() -> None:
    """The page has what can be read."""
    data = build(run({"gas_schedule": {"first": []}, "modules": {"x": 3}}))
    assert data.provenance.schedules == ()
    assert "</html>" in html(data)


def test_equal_ends_are_said_once() -> None:
    """A schedule that did not change is told in one half."""
    same = {"first": SCHEDULE["last"], "last": SCHEDULE["last"]}
    (schedule,) = build(run({"gas_schedule": same})).provenance.schedules
    assert schedule_text(schedule) == "feature version 45, digest bb, at 0 and at 4999"
