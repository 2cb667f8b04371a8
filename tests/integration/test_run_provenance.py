"""A run says which gas schedule and which code stood at its ends."""

from __future__ import annotations

from pathlib import Path

import toolkit
from toolkit import embedded


def test_a_run_tells_the_schedule_and_the_called_modules_at_its_ends(tmp_path: Path) -> None:
    """The vault does not exist at first, the coin module stays the same, and the schedule changes during the run."""
    ledger = embedded.Ledger.with_history(seed=7, versions=400, cache=True)
    calls = [
        toolkit.ViewFunction("0x1::chain_id::get"),
        toolkit.ViewFunction("0xfa17::vault::share_price"),
    ]
    with embedded.serve(ledger) as url:
        run = toolkit.Study(node=url, calls=calls, versions="0:-1/5").run(tmp_path / "run", progress=False)
    (plan,) = run.manifest["nodes"]
    told = plan["provenance"]
    assert told["modules"]["0xfa17::vault"]["first"] is None
    assert len(told["modules"]["0xfa17::vault"]["last"]) == 32
    first, last = (told["modules"]["0x1::chain_id"][end] for end in ("first", "last"))
    assert first == last
    schedules = told["gas_schedule"]
    assert schedules["first"]["digest"] != schedules["last"]["digest"]
    assert schedules["last"]["parameters"] > 400
