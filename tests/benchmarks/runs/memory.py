"""A run of a million observations: its memory, how soon it goes on after kill -9, and what reading it back costs.

    python tests/benchmarks/runs/memory.py --rows 1000000

Each phase is a process of its own, over a node in memory that answers at once, so that the run itself is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

HEAD = 10_000_000


def study(rows: int):
    """Return a study of two views at `rows` / 2 versions each, over a node that answers without a network."""
    import toolkit
    from tests.unit.client.fakes import URL, FakeNode, answer, function, ledger, module
    from toolkit.client._node import Node
    from toolkit.errors import ToolkitError

    state = ledger(HEAD)

    class Instant(Node):
        """Answers views at once: gas by the version, another value each time."""

        def many(self, calls):
            for number, call in enumerate(calls):
                if START:
                    began = START.pop()
                    print(json.dumps({"first_request_s": round(time.perf_counter() - began, 2)}), flush=True)
                if isinstance(call, ToolkitError):
                    yield number, call
                    continue
                gas = 1_000_000_000_000 + call.pinned // 100_000
                yield number, call.finish(answer([str(call.pinned)], gas=gas, head=state))

    views = [function(name, [], ["u64"]) for name in ("one", "two")]
    fake = FakeNode(head=state)
    fake.routes["GET /accounts/0x1/module/m"] = answer(module("m", functions=views), head=state)
    node = Instant(URL, transport=fake)
    calls = {name: toolkit.ViewFunction(f"0x1::m::{name}") for name in ("one", "two")}
    return toolkit.Study(node=node, calls=calls, versions=f"0:{rows // 2 - 1}")


START: list[float] = []
"""When the run was asked for, until its first request."""


def phase(name: str, rows: int, out: str) -> None:
    """Do one phase and print its figures."""
    import toolkit

    began = time.perf_counter()
    if name == "run":
        made = study(rows)
        START.append(time.perf_counter())
        made.run(out, progress=False)
    else:
        run = toolkit.Run.open(out)
        if name == "steps":
            print(json.dumps({"steps": len(run.steps)}))
        elif name == "observations":
            print(json.dumps({"rows": len(run.observations)}))
        elif name == "digest":
            from toolkit.gas.runs._scan import rows_digest
            from toolkit.gas.runs._store import RunStore

            print(json.dumps({"digest": rows_digest(RunStore(Path(out)))}))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": round(time.perf_counter() - began, 2), "peak_rss_mb": round(peak)}))


def child(name: str, rows: int, out: Path, *, until: int | None = None) -> dict:
    """Run a phase as a process; with `until`, kill it with -9 once so many rows are written."""
    from toolkit.gas.runs._store import RunStore

    words = [sys.executable, __file__, "--phase", name, "--rows", str(rows), "--out", str(out)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as process:
        while until is not None and process.poll() is None:
            if RunStore(out).rows() >= until:
                process.send_signal(signal.SIGKILL)
            time.sleep(0.1)
        lines = process.communicate()[0].splitlines()
    found: dict = {"phase": name, "killed": process.returncode == -signal.SIGKILL}
    for line in lines:
        found |= json.loads(line)
    return found


def main() -> None:
    """Print one line of JSON per phase."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--phase")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.phase:
        phase(options.phase, options.rows, str(options.out))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(child("run", options.rows, Path(folder) / "whole"), flush=True)
        out = Path(folder) / "run"
        print(child("run", options.rows, out, until=options.rows * 9 // 10), flush=True)
        print(child("run", options.rows, out), flush=True)
        manifest = json.loads((out / "run.json").read_text())
        print({name: manifest[name] for name in ("resumed_rows", "counts", "rows_digest")}, flush=True)
        whole = json.loads((Path(folder) / "whole" / "run.json").read_text())
        print({"same_rows_as_undisturbed": whole["rows_digest"] == manifest["rows_digest"]}, flush=True)
        parts = sorted((out / "parts").iterdir())
        print({"parts": len(parts), "bytes": sum(part.stat().st_size for part in parts)}, flush=True)
        for name in ("digest", "steps", "observations"):
            print(child(name, options.rows, out), flush=True)


if __name__ == "__main__":
    main()
