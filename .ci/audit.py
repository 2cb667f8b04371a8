"""Ask pip-audit about known vulnerabilities of the locked packages: ``python .ci/audit.py .ci/lock.txt``.

Exit code 1 if there is one. A machine may not reach an advisory service, and pip-audit skips packages that a service
does not know and calls the rest clean: what could not be asked is said, and is never called clean.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ASK = ["--disable-pip", "--no-deps", "--format", "json", "--progress-spinner", "off"]
MAX_TIME_S = 600


def dependencies(requirements: Path) -> list[dict] | str:
    """Return what pip-audit says of each package, or why it said nothing."""
    command = [sys.executable, "-m", "pip_audit", *ASK, "--requirement", str(requirements)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=MAX_TIME_S, check=False)  # noqa: S603 - ours
        return json.loads(done.stdout)["dependencies"]
    except subprocess.TimeoutExpired:
        return f"no answer within {MAX_TIME_S} s"
    except (ValueError, KeyError, TypeError):
        return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]


def unknown(found: list[dict] | str) -> str | None:
    """Return why nothing is known of any of the packages, None if something is."""
    if isinstance(found, str):
        return found
    return "it knows none of the packages" if all("skip_reason" in one for one in found) else None


def main(lock: Path) -> int:
    """Ask about one package first, then about all."""
    pins = [line for line in lock.read_text("utf-8").splitlines() if "==" in line]
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.txt"
        first.write_text(next(pin for pin in pins if pin.startswith("requests==")) + "\n", "utf-8")
        found = dependencies(first)
    if unknown(found) is None:
        found = dependencies(lock)
    why = unknown(found)
    if why is not None or isinstance(found, str):
        print(f"pip-audit: NOT ASKED. The advisory service did not answer for {len(pins)} packages ({why}).")
        return 0
    skipped = [one["name"] for one in found if "skip_reason" in one]
    if skipped:
        print(f"pip-audit: NOT ASKED about {len(skipped)} packages: {', '.join(skipped)}")
    vulnerable = [(one, each) for one in found for each in one.get("vulns", ())]
    for one, each in vulnerable:
        fixed = ", ".join(each.get("fix_versions", ())) or "no version yet"
        print(f"pip-audit: {one['name']} {one['version']}: {each['id']}, fixed in {fixed}")
    print(f"pip-audit: {len(vulnerable)} known vulnerabilities in {len(found) - len(skipped)} packages")
    return 1 if vulnerable else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
