"""Error bodies: the documented one, and everything else a gateway may send."""

from __future__ import annotations

import json
import time

import pytest

from toolkit.wire._responses import ErrorBody, ErrorCode, decode_error_body


@pytest.mark.parametrize("code", [*sorted(ErrorCode), "a_code_of_next_year"])
def test_documented_body_is_read_whatever_its_code(code: str) -> None:
    """All known codes are read, and an unknown one is kept."""
    body = json.dumps({"message": "m", "error_code": code, "vm_error_code": 4016}).encode()
    assert decode_error_body(body) == ErrorBody("m", code, 4016)


@pytest.mark.parametrize("vm_error_code", [None, "4016", 1.5, True, -1, 2**64, [], {}])
def test_vm_error_code_is_a_u64_or_nothing(vm_error_code: object) -> None:
    """Null is what recordings have; anything that is not a u64 is left out."""
    body = json.dumps({"message": "m", "error_code": "vm_error", "vm_error_code": vm_error_code}).encode()
    assert decode_error_body(body) == ErrorBody("m", "vm_error", None)


def test_body_of_2022_keeps_its_message() -> None:
    """Nodes of 2022 answered {code, message}: no error code of today."""
    assert decode_error_body(b'{"code": 404, "message": "Not Found"}') == ErrorBody("Not Found", None, None)


def test_html_page_becomes_its_text() -> None:
    """Tags, styles and scripts are stripped, entities resolved, white space folded."""
    page = (
        b"<!DOCTYPE html><html><head><style>p { color: red }</style><script>alert(1)</script></head>\n"
        b"<body><h1>429</h1>\n\n  Too &lt;many&gt;\trequests</body></html>"
    )
    assert decode_error_body(page, "text/html; charset=utf-8").message == "429 Too <many> requests"


def test_foreign_text_is_cut_and_cleaned() -> None:
    """At most 300 characters, no control characters, no matter the bytes."""
    message = decode_error_body(b"\x1b[31mred\x00" + b"x" * 5000, "text/plain").message
    assert len(message) == 300
    assert message.startswith("[31mred xxx")
    assert message.isprintable()


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"null", b"[]", b"1" * 5000, b"[" * 100_000, b'{"message": 5}'])
def test_any_body_gives_an_error_body(body: bytes) -> None:
    """Never raises: an error answer must not hide behind another error."""
    assert decode_error_body(body, "application/json").error_code is None


@pytest.mark.parametrize("unit", [b"<script ", b"<", b"<a", b"&#", b"</style", b"<style>"])
def test_reading_a_hostile_page_is_quick(unit: bytes) -> None:
    """A page of megabytes made to be slow takes no minutes."""
    started = time.perf_counter()
    decode_error_body(unit * 1_000_000, "text/html")
    assert time.perf_counter() - started < 30
