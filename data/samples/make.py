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

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]


def main() -> None:
    """Write every file of the folder."""
    shutil.rmtree(FOLDER / "demo", ignore_errors=True)
    toolkit.Study.load("demo").run(out=FOLDER / "demo", progress=False)
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec("".join(blocks), {})  # noqa: S102 - of this repository; the last one draws the figure
    plt.gcf().savefig(ROOT / "data" / "figures" / "gas_by_version.png", dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
