"""The report notebook: papermill runs it with other parameters, and it shows what the toolkit computes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolkit

NOTEBOOK = Path(__file__).resolve().parents[2] / "notebooks" / "reports" / "gas_comparison.ipynb"
COLUMNS = ["label", "kind", "gas_before", "gas_after", "change", "change_percent"]


def shown(notebook: dict, cell: str) -> str:
    """Return the text of the first output of a cell."""
    (found,) = (each for each in notebook["cells"] if each.get("id") == cell)
    output = found["outputs"][0]
    return "".join(output.get("text") or output["data"]["text/plain"]).rstrip()


@pytest.mark.filterwarnings("default")
def test_the_report_shows_what_compare_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other calls, versions and limit than those stored: verdict, table and causes equal those of the toolkit."""
    root = str(NOTEBOOK.parents[2])
    monkeypatch.setenv("PYTHONPATH", root)
    calls = [{"label": "supply", "view": "0x1::coin::supply", "type_arguments": ["0x1::aptos_coin::AptosCoin"]}]
    given = {"before": 4_600, "after": 4_700, "limit": "5%", "calls": calls}
    out = tmp_path / "report.ipynb"
    papermill = pytest.importorskip("papermill", reason="needs papermill, of the test extra")
    papermill.execute_notebook(NOTEBOOK, out, parameters=given, progress_bar=False, cwd=tmp_path, log_output=False)
    report = json.loads(out.read_text("utf-8"))
    run = toolkit.Study(calls=calls, versions=toolkit.FindSteps("4600:4700")).run(progress=False)
    comparison = toolkit.compare(run.at(4_600), run.at(4_700))
    assert shown(report, "calls") == repr(toolkit.show(comparison.calls, columns=COLUMNS))
    assert shown(report, "verdict") == repr(comparison.gate("5%"))
    assert shown(report, "why") == run.explain().rstrip()
    assert [
        list(output["data"]) for cell in report["cells"] if cell.get("id") == "figure" for output in cell["outputs"]
    ]


def test_the_stored_report_is_that_of_its_parameters() -> None:
    """What the notebook in the repository shows is what its own parameters give."""
    report = json.loads(NOTEBOOK.read_text("utf-8"))
    names: dict = {}
    for cell in report["cells"]:
        if cell["cell_type"] == "code" and cell["id"] in {"parameters", "read"}:
            exec("".join(cell["source"]), names)  # noqa: S102 - of this repository
    assert shown(report, "calls") == repr(toolkit.show(names["comparison"].calls, columns=COLUMNS))
    assert shown(report, "verdict") == repr(names["gate"])
    assert shown(report, "why") == names["run"].explain().rstrip()


def test_papermill_knows_each_parameter() -> None:
    """Each parameter has a line of its own, so that papermill knows it and does not warn of it."""
    papermill = pytest.importorskip("papermill", reason="needs papermill, of the test extra")
    assert set(papermill.inspect_notebook(NOTEBOOK)) == {"node", "before", "after", "limit", "calls"}
