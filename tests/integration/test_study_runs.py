"""Studies against the embedded node: every step found, its cause right, runs resumed, reports written."""

from __future__ import annotations

import gc
import re
import shutil
import warnings
from operator import itemgetter
from pathlib import Path

import pandas as pd
import pytest

import toolkit
from toolkit import reports
from toolkit.frames._columns import plain_columns
from toolkit.frames._schema import OBSERVATIONS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def run(url, tmp_path_factory):
    """Run the demo study once against the session's node."""
    study = toolkit.Study.load("demo")
    with toolkit.connect(url) as node:
        return toolkit.Study(title=study.title, node=node, calls=list(study.calls), versions=study.versions).run(
            tmp_path_factory.mktemp("study") / "run", progress=False
        )


def truth(ledger, text: str) -> int:
    """Return the version at which the seeded history says something happened."""
    return next(mark.version for mark in ledger.milestones if text in mark.text)


def test_the_demo_study_is_the_same_under_data():
    """The study under data/ is the one that ships."""
    shipped = ROOT / "toolkit" / "gas" / "studies" / "demo.toml"
    assert (ROOT / "data" / "studies" / "demo.toml").read_bytes() == shipped.read_bytes()


def test_observations_have_the_contract_columns(run):
    """One row per call, version and source, with the columns of the design in their order."""
    assert list(run.observations.columns) == OBSERVATIONS.names
    assert run.observations["model"].all()
    assert set(run.observations["source"]) == {"view@version", "simulate@now", "committed"}
    keys = run.observations[["fingerprint", "ledger_version", "source"]]
    assert not keys.duplicated().any()
    assert len(run.observations) == run.manifest["counts"]["observations"]


def test_a_run_opens_again_and_reads_with_plain_pandas(run):
    """What is on disk is the frame, exactly, for anybody with pandas."""
    again = toolkit.Run.open(run.path)
    pd.testing.assert_frame_equal(again.observations, run.observations)
    pd.testing.assert_frame_equal(again.steps, run.steps)
    parts = [pd.read_parquet(place) for place in sorted((run.path / "parts").glob("*.parquet"))]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), run.observations)


@pytest.fixture(scope="module")
def two_nodes(url, tmp_path_factory):
    """Run a view, a simulation and committed transactions on two ledgers of different lengths."""
    calls = {
        "size": {"view": "0xcafe::registry::size"},
        "pay": {"simulate": "0x1::aptos_account::transfer", "sender": "0xa11ce", "arguments": ["0xb0b", 100]},
        "log": {"committed": "0xcafe::registry::register"},
    }
    short = toolkit.embedded.Ledger.with_history(seed=7, versions=1_000, cache=True)
    with toolkit.embedded.serve(short, port=0) as other:
        study = toolkit.Study(nodes=[url, other], calls=calls, versions="0:900/4")
        return study.run(tmp_path_factory.mktemp("two") / "run", progress=False)


@pytest.mark.parametrize("version", [0, 2, 299, 300, 301, 899, 900, 999, 4_998, 4_999, 10**6, 2**63 - 1])
def test_a_run_at_a_version_is_the_last_observation_of_each_call_and_node(two_nodes, version):
    """Versions that were read, between readings and steps, before the first and above the head; every source."""
    columns = ["node", "label", "ledger_version"]
    last = {}
    for node, label, read in sorted(
        zip(*plain_columns(two_nodes.observations, columns).values(), strict=True), key=itemgetter(2)
    ):
        if read <= version:
            last[node, label] = read
    # After a located step the value is that of the step, although the next reading comes later.
    for node, label, changed in zip(
        *plain_columns(two_nodes.steps, ["node", "label", "version_after"]).values(), strict=True
    ):
        if last.get((node, label), version) < changed <= version:
            last[node, label] = changed
    frame = two_nodes.at(version)
    found = zip(*plain_columns(frame, columns).values(), strict=True)
    assert {(node, label): at for node, label, at in found} == last
    assert len(frame) == len(last) == {0: 2, 2: 2}.get(version, 4 if version < 999 else 5 if version < 4_999 else 6)
    assert frame.columns.equals(two_nodes.observations.columns)


@pytest.mark.parametrize("version", [-1, 2**64, 1.5, None, True, "300", "size"])
def test_what_is_not_a_version_is_refused(two_nodes, version):
    """Versions of a run do not count from the head; the message names the last one."""
    with pytest.raises(toolkit.InputError, match=rf"such as 1000, got .* is {two_nodes.last_version:,} \("):
        two_nodes.at(version)


def test_frames_of_a_run_at_versions_are_compared_with_their_causes(run):
    """As the paths are, also after a copy and a choice of rows; frames that were changed have no causes."""
    changed = run.steps[run.steps["source"] == "view@version"]
    for version in [*sorted(set(changed["version_after"]))[5::9], 4_652]:
        before, after = run.at(version - 1), run.at(version)
        frames = toolkit.compare(before, after, source="view@version")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            paths = toolkit.compare(f"{run.path}@{version - 1}", f"{run.path}@{version}", source="view@version")
        pd.testing.assert_frame_equal(frames.calls, paths.calls)
        steps = changed[changed["version_after"] == version].set_index("label")["cause"].to_dict()
        assert frames.changed.set_index("label")["cause"].to_dict() == steps
    assert steps == {"APT supply": "mixed"}
    whole = toolkit.compare(before, run.observations, source="view@version")
    assert whole.names == (f"run.at({version - 1})", f"run.at({run.last_version})")
    part = run.observations[run.observations["ledger_version"] < version]  # says nothing of where the run ends
    assert toolkit.compare(before, part, source="view@version").names[1] == "after"
    few = toolkit.compare(before, after.query("label == 'APT supply'").copy(), source="view@version").changed
    assert few["cause"].tolist() == ["mixed"]
    other = after.assign(gas_used=after["gas_used"] + 1)
    assert toolkit.compare(pd.DataFrame(dict(before)), other, source="view@version").changed["cause"].isna().all()


def test_rows_lost_from_a_complete_run_are_read_again(tmp_path):
    """The sample run of another machine is continued; its digest and its steps are as before."""
    shutil.copytree(ROOT / "data" / "samples" / "demo", tmp_path / "run")
    before = toolkit.Run.open(tmp_path / "run")
    assert before.complete
    assert before.digest == before.manifest["rows_digest"]
    (part,) = (tmp_path / "run" / "parts").glob("*.parquet")
    toolkit.write_parquet(toolkit.read_parquet(part).iloc[:1_400], part)
    after = toolkit.Study.load("demo").run(tmp_path / "run", progress=False)
    assert after.manifest["resumed_rows"] == 1_400
    assert after.digest == before.digest == after.manifest["rows_digest"]
    columns = ["label", "version_before", "version_after", "cause"]
    assert after.steps[columns].equals(before.steps[columns])


def test_a_version_between_two_readings_is_as_the_located_steps_say(url):
    """A reading holds until its step, and not after it; a temporary run that is gone leaves plain frames."""
    supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
    run = toolkit.Study(node=url, calls={"supply": supply}, versions=[4_600, 4_700]).run(progress=False)
    assert toolkit.compare(run.at(4_651), run.at(4_700)).changed["cause"].tolist() == ["mixed"]
    assert len(toolkit.compare(run.at(4_600), run.at(4_651)).unchanged) == 1
    assert toolkit.compare(run.at(4_600), run.at(4_652)).changed["cause"].tolist() == ["mixed"]
    before, after = run.at(4_651), run.at(4_700)
    del run
    gc.collect()
    assert toolkit.compare(before, after).changed["cause"].isna().all()


@pytest.mark.usefixtures("no_figures")
def test_the_report_answers_first(run, ledger, tmp_path):
    """The first lines say which calls' gas changed, at which version, by how much, why; the file stands alone."""
    place = reports.write(run, tmp_path / "report.html")
    html = place.read_text("utf-8")
    words = re.sub(r"\s+", " ", re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL))[:3000]
    assert f"version {truth(ledger, 'all costs rise tenfold'):,}" in words
    assert "APT supply" in words
    assert "the gas schedule rose tenfold" in words
    assert "model gas" in words
    assert not re.search(r"""(?:src|href)=["']https?:""", html)
    assert "<script " not in html  # its own script is in the page
