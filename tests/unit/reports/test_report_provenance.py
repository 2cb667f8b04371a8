"""A report states the gas schedule of its figures."""

from __future__ import annotations

import matplotlib as mpl
import pytest

from tests.unit.gas.observed import plan
from tests.unit.plots import synthetic_run
from toolkit.client._reads import Anchor
from toolkit.gas.runs._manifest import ModuleEnds, Provenance, ScheduleDigest, ScheduleEnds
from toolkit.reports import build
from toolkit.reports._to_html import render as html

mpl.use("agg")

OLD, NEW = ScheduleDigest(42, 500, "aa"), ScheduleDigest(45, 500, "bb")
MODULES = {"0x1::aptos_account": ModuleEnds("cc", "cc"), "0xfa17::vault": ModuleEnds(None, "dd")}


def run(provenance: Provenance) -> synthetic_run.Run:
    """A made-up run whose manifest tells of both ends."""
    notes = ("from 0 clipped to 100: older versions are pruned",)
    node = plan(node="embedded", last=4_999, provenance=provenance, notes=notes, anchor=Anchor(4_999, "0xff"))
    record = synthetic_run.record(nodes=(node,), study_digest="ee")
    return synthetic_run.Run(synthetic_run.observations(), synthetic_run.steps(), record=record)


def test_the_schedule_at_both_ends_is_told() -> None:
    """Names stay as they are spelled; what was not there at first says so."""
    facts = build(run(Provenance(ScheduleEnds(OLD, NEW), MODULES))).provenance
    words = "at version 0, feature version 42, digest aa; at version 4,999, feature version 45, digest bb"
    assert facts.schedules == (("embedded", words),)
    assert facts.manifest == (
        ("plan", "from 0 clipped to 100: older versions are pruned"),
        ("hash of transaction 4,999", "0xff"),
        ("study digest", "ee"),
    )


@pytest.mark.usefixtures("no_figures")
def test_the_page_tells_them() -> None:
    """The page shows the digests."""
    page = html(build(run(Provenance(ScheduleEnds(OLD, NEW), MODULES))))
    assert "digest aa" in page
    assert "Gas schedule at the ends of the plan" in page  # not those of the observations, which may be others


def test_equal_ends_are_said_once() -> None:
    """A schedule that did not change is shown once."""
    ((_, schedule),) = build(run(Provenance(ScheduleEnds(NEW, NEW), {}))).provenance.schedules
    assert schedule == "feature version 45, digest bb, at versions 0 and 4,999"
