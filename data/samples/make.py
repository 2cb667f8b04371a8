"""Make the sample data of this folder and the figure of README again, from the embedded ledger: run it as a script.

The ledger is the same on every machine, so the values are too; times of observation and versions of packages in
``demo/run.json`` are those of the last run.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import matplotlib.pyplot as plt

import toolkit
from toolkit import embedded

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
CALLS = {
    "transfer": ("0x1::aptos_account::transfer", ["0xb0b", 100], "0xa11ce"),
    "register": ("0xcafe::registry::register", ["zoe"], "0xb0b"),
    "release": ("0xcafe::registry::release", ["alice"], "0xa11ce"),
}


def main() -> None:
    """Write every file of the folder."""
    shutil.rmtree(FOLDER / "demo", ignore_errors=True)
    toolkit.Study.load("demo").run(out=FOLDER / "demo", progress=False)
    (FOLDER / "demo" / "run.json.copy").unlink()
    with toolkit.connect() as node:
        for name, (function, arguments, sender) in CALLS.items():
            simulation = node.simulate(toolkit.EntryFunction(function, arguments), sender=sender)
            simulation.save(FOLDER / f"{name}.json")
        supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
        toolkit.write_parquet(toolkit.fetch_views(node, supply, "0:-1/200"), FOLDER / "supply.parquet")
        toolkit.write_parquet(
            toolkit.schedule_diff(node.gas_schedule(3501), node.gas_schedule(3502)), FOLDER / "schedules.parquet"
        )
    ledger = embedded.Ledger.with_history(cache=True)
    function, arguments, sender = CALLS["register"]
    profile = ledger.profile(toolkit.EntryFunction(function, arguments), sender=sender)
    toolkit.write_parquet(profile.to_frame(), FOLDER / "profile.parquet")
    block = re.search(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec(block[1], {})  # noqa: S102 - of this repository; it draws the figure below it
    plt.gcf().savefig(ROOT / "data" / "figures" / "gas_by_version.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
