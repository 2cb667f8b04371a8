"""The toolkit without the packages of the extras bulk, server, signatures and widgets."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolkit._present.files import cache_folder

_ROOT = Path(__file__).parents[2]
_WITHOUT = """
import sys
from importlib import metadata

missing = ("pycurl", "uvloop", "httptools", "cryptography", "anywidget", "ipywidgets")
for name in missing:
    sys.modules[name] = None  # what imports it gets a ModuleNotFoundError
found = metadata.Distribution.from_name

def from_name(name):
    if name in missing:
        raise metadata.PackageNotFoundError(name)
    return found(name)

metadata.Distribution.from_name = from_name
import toolkit
"""


def _run(code: str, folder: Path) -> subprocess.CompletedProcess:
    environment = {"HOME": str(folder), "PATH": "", "MPLBACKEND": "agg", "LEDGER_TOOLKIT_CACHE": str(cache_folder())}
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT + code], cwd=_ROOT, env=environment,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_everything_but_forms_works(tmp_path):
    """Views, table items, simulations, transactions, a study, its report and a figure need none of the packages."""
    done = _run(
        f"""
node = toolkit.connect()
supply = toolkit.ViewFunction("0x1::coin::supply", type_arguments=["0x1::aptos_coin::AptosCoin"])
views = toolkit.fetch_views(node, [supply], "0:-1/40", progress=False)
assert len(views) == 40 and views["error_code"].isna().all()
transfer = toolkit.SimulationRequest(
    toolkit.EntryFunction("0x1::aptos_account::transfer", arguments=["0xb0b", 100]), sender="0xa11ce"
)
assert [one.success for one in toolkit.fetch_simulations(node, [transfer, transfer]).results] == [True, True]
assert len(toolkit.fetch_transactions(node, "100:400", progress=False).transactions) == 301
run = toolkit.Study(calls=[supply], versions="0:-1/5").run({str(tmp_path / "run")!r}, progress=False)
toolkit.reports.write(run, {str(tmp_path / "report.html")!r})
toolkit.plots.gas_by_version(run.observations).figure.savefig({str(tmp_path / "figure.png")!r})
print(len(run.observations))
""",
        tmp_path,
    )
    assert (done.stdout, done.returncode) == ("5\n", 0), done.stderr
    assert (tmp_path / "report.html").stat().st_size > 10_000
    assert (tmp_path / "figure.png").stat().st_size > 1_000


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("import toolkit.widgets", "widgets"),
        (
            (
                "import requests\n"
                "url = toolkit.connect().url + '/transactions/simulate'\n"
                "payload = {'type': 'entry_function_payload', 'function': '0x1::aptos_account::transfer', 'type_arguments': []}\n"
                "payload['arguments'] = ['0xb0b', '100']\n"
                "numbers = ('sequence_number', 'max_gas_amount', 'gas_unit_price', 'expiration_timestamp_secs')\n"
                "signed = {'type': 'ed25519_signature', 'public_key': '0x' + 64 * '1', 'signature': '0x' + 128 * '2'}\n"
                "body = {'sender': '0xa11ce', 'payload': payload, 'signature': signed} | dict.fromkeys(numbers, '1000')\n"
                "sys.exit(requests.post(url, json=body).text)"
            ),
            "signatures",
        ),
    ],
)
def test_what_is_missing_names_its_extra(tmp_path, code, extra):
    """What needs a missing package says what to install."""
    done = _run(code, tmp_path)
    assert done.returncode
    assert f"pip install 'ledger-toolkit[{extra}]'" in done.stderr
