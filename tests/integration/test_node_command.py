"""``ledger-toolkit node`` as a process: faults and latency by option, Ctrl-C, mistakes in the options."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
import requests

from toolkit import embedded

COMMAND = [sys.executable, "-m", "toolkit", "node", "--port", "0", "--versions", "200"]


@contextmanager
def _serving(*options):
    """Run the command, yield its process and URL; it is stopped by Ctrl-C unless the test did that."""
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process, re.search(r"http://\S+", process.stdout.readline())[0]
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)


def test_faults_by_option_meet_the_requests_they_say():
    """Each rate meets its share, the same requests in every run; all others are answered."""
    options = ("--fault", "429:0.2", "--fault", "503:0.1", "--latency", "5ms")
    drawn = embedded.Faults(rates=[embedded.parse_fault("429:0.2"), embedded.parse_fault("503:0.1")])
    expected = [int(getattr(drawn.draw(), "kind", 200)) for _ in range(60)]
    with _serving(*options) as (_, url), requests.Session() as session:
        answers = [session.get(url, timeout=10) for _ in expected]
    assert [answer.status_code for answer in answers] == expected
    assert {429, 503, 200} == set(expected)
    limited = answers[expected.index(429)]
    assert (limited.headers["Retry-After"], limited.json()["error_code"]) == ("1", "rate_limited")
    fine = answers[expected.index(200)]
    assert fine.headers["X-Aptos-Ledger-Version"] == "199"
    assert fine.elapsed.total_seconds() >= 0.005


def test_the_first_requests_meet_faults_in_turn():
    """For the next n requests, and by schedule: the first two are refused, one passes, the fourth is cut."""
    with _serving("--first", "503*2,ok,cut") as (_, url), requests.Session() as session:
        assert [session.get(url, timeout=10).status_code for _ in range(3)] == [503, 503, 200]
        with pytest.raises(requests.RequestException):
            session.get(url, timeout=10)
        assert session.get(url, timeout=10).status_code == 200


def test_ctrl_c_ends_it_cleanly_while_a_request_waits():
    """The exit code is that of an interrupt, nothing is on standard error, and the port is free at once."""
    with _serving("--latency", "30s") as (process, url):
        assert "Stop with Ctrl-C" in process.stdout.readline()
        waiting = threading.Thread(target=_ignore_failure, args=(url,))
        waiting.start()
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        waiting.join(60)
    assert process.returncode == 130
    assert err == ""
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)


def _ignore_failure(url):
    try:
        requests.get(url, timeout=20)
    except requests.RequestException:
        return


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--fault", "418"), "unknown fault '418'"),
        (("--fault", "429:2"), "rate must be from 0 to 1"),
        (("--latency", "soon"), "soon"),
        (("--first", "503*many"), "503*many"),
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
