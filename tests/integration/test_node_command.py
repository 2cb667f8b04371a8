"""``ledger-toolkit node`` as a process: Ctrl-C, and mistakes in the options."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
import requests

COMMAND = [sys.executable, "-m", "toolkit", "node", "--port", "0", "--versions", "200"]


@contextmanager
def _serving():
    """Run the command, yield its process and URL; it is stopped by Ctrl-C unless the test did that."""
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, re.search(r"http://\S+", process.stdout.readline())[0]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def test_ctrl_c_ends_it_cleanly():
    """It serves; then the exit code is that of an interrupt, nothing is on standard error, and the port is free."""
    with _serving() as (process, url):
        assert "Stop with Ctrl-C" in process.stdout.readline()
        assert requests.get(url, timeout=10).headers["X-Aptos-Ledger-Version"] == "199"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == ""
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--versions", "10"), "200"),
        (("--port", "70000"), "65535"),
    ],
)
def test_a_mistake_in_the_options_is_told_in_a_line(command, options, words):
    """What is wrong is named, with exit code 2, and nothing is served."""
    done = command(*COMMAND[3:], *options)
    assert done.returncode == 2, done.stderr
    assert words in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
