"""Studies against the embedded node: every step found, its cause right, runs resumed, reports written."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import toolkit
from toolkit import plots, reports
from toolkit.gas.runs._store import RunStore

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


def steps_of(run, label: str) -> pd.DataFrame:
    return run.steps[run.steps["label"] == label]


def test_the_demo_study_is_the_same_under_data():
    """The study under data/ is the one that ships."""
    shipped = ROOT / "toolkit" / "gas" / "studies" / "demo.toml"
    assert (ROOT / "data" / "studies" / "demo.toml").read_bytes() == shipped.read_bytes()


def test_observations_have_the_contract_columns(run):
    """One row per call, version and source, with the columns of the design in their order."""
    names = [
        "label",
        "fingerprint",
        "source",
        "node",
        "node_build",
        "model",
        "chain_id",
        "ledger_version",
        "head_version",
        "ledger_timestamp",
        "gas_used",
        "execution_gas_units",
        "io_gas_units",
        "storage_fee_octas",
        "storage_fee_refund_octas",
        "gas_unit_price",
        "success",
        "vm_status",
        "status",
        "error_code",
        "error_message",
        "value_digest",
        "observed_at",
        "toolkit_version",
        "payload_bytes",
        "slots_deleted",
        "authenticator",
        "orderless",
        "type_arguments",
        "abort_code",
    ]
    assert list(run.observations.columns) == names
    assert run.observations["model"].all()
    assert set(run.observations["source"]) == {"view@version", "simulate@now", "committed"}
    keys = run.observations[["fingerprint", "ledger_version", "source"]]
    assert not keys.duplicated().any()
    assert len(run.observations) == run.manifest["counts"]["observations"]


def test_every_schedule_step_is_found_exactly_with_its_cause(run, ledger):
    """The tenfold schedule change moves seven views, all at its one version, and is told as tenfold."""
    at = truth(ledger, "every cost tenfold")
    steps = run.steps[(run.steps["cause"] == "schedule") & (run.steps["source"] == "view@version")]
    assert set(steps["version_after"]) == {at}
    assert len(steps) == 7
    assert steps["exact"].all()
    assert steps["explanation"].str.contains("459 of 512 parameters changed, every one x10").all()


def test_the_upgrade_is_found_exactly_with_its_cause(run, ledger):
    """The cheaper vault is a code step at the version of its upgrade, and names the new function."""
    at = truth(ledger, "0xfa17::vault upgraded")
    for label in ("vault share price", "vault preview"):
        step = steps_of(run, label).set_index("version_after").loc[at]
        assert step["cause"] == "code"
        assert "upgraded the called module 0xfa17::vault (added preview)" in step["explanation"]
    assert steps_of(run, "vault share price").set_index("version_after").loc[at, "change"] < 0


def test_simulations_carry_the_split(run):
    """A simulation's row has execution, io and storage; the failing one tells why."""
    sims = run.observations[run.observations["source"] == "simulate@now"].set_index("label")
    good, bad = sims.loc["transfer 100 octas"], sims.loc["register a taken name"]
    assert good["success"]
    assert good["execution_gas_units"] > 0
    assert good["gas_unit_price"] == 100
    assert not bad["success"]
    assert "E_TAKEN" in bad["vm_status"]


def test_committed_transactions_are_all_there(run, ledger, node):
    """Every registration of the whole range is an observation, failed ones too."""
    rows = run.observations[run.observations["source"] == "committed"]
    frames = toolkit.fetch_transactions(node, versions=f"0:{ledger.head}", progress=False)
    wanted = frames.transactions["function"].str.endswith("::registry::register").fillna(value=False)
    assert rows["ledger_version"].tolist() == frames.transactions.loc[wanted, "ledger_version"].tolist()
    assert not rows["success"].all()


def test_a_run_opens_again_and_reads_with_plain_pandas(run):
    """What is on disk is the frame, exactly, for anybody with pandas."""
    again = toolkit.Run.open(run.path)
    pd.testing.assert_frame_equal(again.observations, run.observations)
    pd.testing.assert_frame_equal(again.steps, run.steps)
    parts = [pd.read_parquet(place) for place in sorted((run.path / "parts").glob("*.parquet"))]
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), run.observations)


def test_a_broken_off_run_is_continued(run, url, tmp_path):
    """Parts that are there are not read again: the rest is added, none lost, none doubled."""
    import shutil

    shutil.copytree(run.path, tmp_path / "run")
    store = RunStore(tmp_path / "run")
    manifest = store.manifest()
    del manifest["finished_at"], manifest["counts"]
    store.write_manifest(manifest | {"complete": False})
    (part,) = (tmp_path / "run" / "parts").glob("*.parquet")
    kept = toolkit.read_parquet(part)
    toolkit.write_parquet(kept.iloc[: len(kept) // 2], part)
    (tmp_path / "run" / "steps.parquet").unlink()
    with toolkit.connect(url) as node:
        study = toolkit.Study(
            title=run.study.title, node=node, calls=list(run.study.calls), versions=run.study.versions
        )
        again = study.run(tmp_path / "run", progress=False)
    assert again.complete
    assert again.manifest["resumed_rows"] == len(kept) // 2
    assert again.digest == run.digest
    pd.testing.assert_frame_equal(
        again.observations.drop(columns="observed_at"), run.observations.drop(columns="observed_at")
    )


def test_another_study_does_not_mix(run):
    """A folder with a run of one study refuses another."""
    other = toolkit.Study(calls=[toolkit.ViewFunction("0xcafe::registry::size")], versions="-3:")
    with pytest.raises(toolkit.StudyError, match="another study"):
        other.run(run.path, progress=False)


def test_comparison_of_two_versions(run, ledger):
    """Before and after the tenfold step every view is dearer; nothing is added or removed."""
    at = truth(ledger, "every cost tenfold")
    comparison = toolkit.compare(run.at(at - 1), run.at(at))
    views = comparison.calls[comparison.calls["source"] == "view@version"]
    assert set(views["kind"]) == {"changed"}
    assert (views["change"] > 0).all()
    assert (views["change_percent"] >= 300).all()


def test_run_at_a_version_is_the_last_reading_before_it(run):
    """`run.at(v)` holds one row per call that was read at or before v."""
    frame = run.at(1_000)
    assert (frame["ledger_version"] <= 1_000).all()
    assert not frame.duplicated(["fingerprint", "source"]).any()


def test_the_report_answers_first(run, ledger, tmp_path):
    """The first lines say which calls' gas changed, at which version, by how much, why; the file stands alone."""
    place = reports.write(run, tmp_path / "report.html")
    html = place.read_text("utf-8")
    words = re.sub(r"\s+", " ", re.sub(r"<style.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL))[:3000]
    assert f"version {truth(ledger, 'every cost tenfold')}" in words
    assert "APT supply" in words
    assert "every one x10" in words
    assert "Model gas" in words
    assert not re.search(r"""(?:src|href)=["']https?:""", html)
    assert "<script " not in html  # its own script is in the page


def test_figures_draw_the_run(run):
    """The main figure draws on its own axes and returns them, units on the axis."""
    import matplotlib.pyplot as plt

    axes = plots.gas_by_version(run.observations)
    assert "gas units" in axes.get_ylabel()
    plt.close(axes.figure)


def test_a_plan_instead_of_a_search(node):
    """A study in Python over a plan gives one row per version, and steps as intervals."""
    study = toolkit.Study(
        node=node,
        calls={"supply": toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])},
        versions="0:-1/20",
    )
    run = study.run(progress=False)
    assert len(run.observations) == 20
    assert run.steps["exact"].tolist() == [False] * 3  # the feature, the tenfold schedule, the framework's release
    assert run.steps["cause"].tolist()[1] == "schedule"


def test_failures_do_not_end_a_study(url):
    """A call that always aborts is rows with an error code; the others are read."""
    with toolkit.connect(url) as node:
        study = toolkit.Study(
            node=node,
            calls={
                "nothing": toolkit.ViewFunction("0xcafe::registry::record_of", ["nobody"]),
                "size": toolkit.ViewFunction("0xcafe::registry::size"),
            },
            versions=[100, 200],
        )
        run = study.run(progress=False)
    rows = run.observations.set_index(["label", "ledger_version"])
    assert rows.loc[("nothing", 100), "error_code"] == "invalid_input"
    assert rows.loc[("size", 200), "gas_used"] > 0


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_an_executor_gives_the_same_observations(url, kind):
    """Any executor of the standard library reads the same rows, in ranges, none lost and none doubled."""
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    call = toolkit.ViewFunction("0xcafe::registry::size")
    with toolkit.connect(url) as node:
        here = toolkit.Study(node=node, calls={"size": call}, versions="0:-1/900").run(progress=False)
        pools = {
            "threads": lambda: ThreadPoolExecutor(2),
            "processes": lambda: ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")),
        }
        with pools[kind]() as pool:
            study = toolkit.Study(node=node, calls={"size": call}, versions="0:-1/900")
            there = study.run(executor=pool, max_tasks=2, progress=False)
    pd.testing.assert_frame_equal(
        there.observations.drop(columns="observed_at"), here.observations.drop(columns="observed_at")
    )
    assert there.digest == here.digest


def test_a_run_explains_itself(run, ledger):
    """Plain words name the version and the cause."""
    words = run.explain()
    at = truth(ledger, "every cost tenfold")
    assert re.search(rf"^at version {at} \(\d{{4}}-\d\d-\d\d\), gas schedule: transaction ", words, re.MULTILINE)
