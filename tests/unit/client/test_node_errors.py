"""From error answers to the errors people handle."""

from __future__ import annotations

import pytest

from tests.unit.client.fakes import ledger, refused
from toolkit import errors
from toolkit.client._http import Answer
from toolkit.client._node_errors import refusal

HEAD = ledger(1_000, oldest=400)
PAGE = b"<html><head><script>steal()</script><title>502</title></head><body><h1>Bad   Gateway</h1>" + b"x" * 5_000


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.InvalidRequest),
        (401, errors.Forbidden),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (410, errors.VersionPruned),
        (413, errors.TooLarge),
        (429, errors.RateLimited),
        (503, errors.Unavailable),
        (507, errors.InsufficientStorage),
        (302, errors.NodeError),
        (405, errors.NotFound),
        (415, errors.NodeError),
        (500, errors.NodeError),
        (502, errors.NodeError),
    ],
)
def test_each_status_has_its_class(status, kind):
    """The class is what the status means, exactly; any other status is a plain NodeError."""
    error = refusal("view x", refused(status, "internal_error", "no luck", head=HEAD))
    assert type(error) is kind
    assert (error.status, error.error_code, error.message) == (status, "internal_error", "no luck")
    assert error.ledger == HEAD
    assert str(error).startswith(f"view x: the node answered {status} internal_error: no luck")


@pytest.mark.parametrize(
    ("answered", "kind", "words"),
    [
        pytest.param(
            refused(500, "internal_error", "Failed to deserialize table item retrieved from DB"),
            errors.NodeError,
            "check value_type: the stored value does not have that type",
            id="wrong value type",
        ),
        pytest.param(Answer(503, {}, b""), errors.Unavailable, "503: no message", id="empty body"),
        pytest.param(
            refused(410, "version_pruned", "gone", head=HEAD),
            errors.VersionPruned,
            "the oldest readable version is 400",
            id="pruned",
        ),
        pytest.param(
            refused(410, "version_pruned"), errors.VersionPruned, "read a later version", id="pruned, without headers"
        ),
        pytest.param(
            refused(500, "internal_error", "State at version 3 is Pruned", head=HEAD),
            errors.VersionPruned,
            "oldest readable version is 400",
            id="pruned, by an older node",
        ),
        pytest.param(
            refused(404, "module_not_found", "m::pruned not found"), errors.NotFound, "m::pruned", id="a name like it"
        ),
        pytest.param(
            refused(404, "version_not_found", head=HEAD), errors.NotFound, "head is version 1,000", id="above the head"
        ),
    ],
)
def test_what_the_node_means_is_said(answered, kind, words):
    """Where status and code alone do not say it: by the message, and by the versions in the headers."""
    error = refusal("x", answered)
    assert type(error) is kind
    assert error.status == answered.status
    assert words in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500, 502, 503])
def test_a_page_of_a_gateway_gives_the_same_class_and_a_short_text(status):
    """HTML instead of the documented error: class by status, no code, text without tags or scripts, truncated."""
    error = refusal("view x", Answer(status, {"Content-Type": "text/html"}, PAGE))
    assert type(error) is type(refusal("view x", refused(status, "internal_error")))
    assert error.error_code is None
    assert error.ledger is None
    assert "Bad Gateway" in str(error)
    assert "<" not in str(error)
    assert "steal" not in str(error)
    assert len(str(error)) < 600


@pytest.mark.parametrize("body", [b"", b"\xff\xfe", b"null", b"[1]", b'{"message": 5}', b"[" * 100_000])
def test_any_body_gives_an_error_that_can_be_raised(body):
    """Bodies that are nothing known still give the class and a text."""
    error = refusal("view x", Answer(503, {}, body))
    assert type(error) is errors.Unavailable
    assert str(error).startswith("view x: the node answered 503")
    assert len(str(error)) < 600


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [
        (404, "version_not_found", "above the node's head"),
        (404, "table_item_not_found", "nodes respond the same way to a wrong key type"),
        (404, "resource_not_found", "has no such resource"),
        (404, "module_not_found", "no such module"),
        (404, "account_not_found", "this account does not exist at this version"),
        (401, "x", "LEDGER_TOOLKIT_API_KEY"),
        (403, "api_disabled", "does not allow this call"),
        (413, "web_framework_error", "the request is too large"),
        (429, "rate_limited", "requests_per_second"),
        (503, "internal_error", "try again later"),
        (507, "mempool_is_full", "mempool is full"),
        (301, "x", "is http://node.test/v1 the URL of a node?"),
        (202, "x", "nodes return status 200"),
        (206, "x", "nodes return status 200"),
    ],
)
def test_each_text_says_what_to_do(status, code, words):
    """The advice fits the code where there is one to fit, else the status."""
    assert words in str(refusal("x", refused(status, code), url="http://node.test/v1"))


@pytest.mark.parametrize(
    ("status", "kind", "body", "asks"),
    [
        (404, "text/html", b"<h1>Nothing here</h1>", True),
        (404, "", b" <!doctype html><title>Nothing here", True),
        (403, "text/html", b"Sign in", True),
        (206, "text/html", b"half a page", True),
        (302, "", b"moved", True),
        (404, "application/json", b'{"message": "no", "error_code": "x", "vm_error_code": null}', False),
        (502, "text/html", b"<h1>Bad gateway</h1>", False),
        (429, "text/html", b"<h1>Slow down</h1>", False),
    ],
)
def test_a_page_asks_whether_the_url_is_that_of_a_node(status, kind, body, asks):
    """A redirect and an HTML page do, with the URL; the page of a gateway that is busy does not."""
    error = refusal("x", Answer(status, {"content-type": kind}, body), url="http://node.test/v1")
    assert ("is http://node.test/v1 the URL of a node?" in str(error)) == asks


def test_the_number_of_the_vm_is_kept():
    """A Move abort keeps its VM status number."""
    body = b'{"message": "Move abort in 0x1::coin: 0x1", "error_code": "invalid_input", "vm_error_code": 4016}'
    error = refusal("x", Answer(400, {}, body))
    assert error.vm_error_code == 4016
    assert "Move abort in 0x1::coin" in str(error)


def test_the_wait_that_is_asked_for_is_kept():
    """Retry-After is an attribute of the error."""
    assert refusal("x", refused(429, "rate_limited", retry_after="12")).retry_after_s == 12.0
    assert refusal("x", refused(429, "rate_limited")).retry_after_s is None


def test_errors_are_also_what_people_already_catch():
    """The tree hangs under ToolkitError, and joins the built-in families."""
    assert isinstance(refusal("x", refused(404, "x")), errors.ToolkitError)
    assert issubclass(errors.NodeUnreachable, ConnectionError)
    assert issubclass(errors.SchemaError, ValueError)
    assert issubclass(errors.InputError, ValueError)


def test_a_hostile_message_is_harmless_in_the_text():
    """The error's text is short and shows hidden characters; `.message` is what came, cut with a mark."""
    message = "\x1b[2J\u202eabort" + "x" * 100_000
    error = refusal("view x", refused(400, "invalid_input", message))
    assert "\x1b" not in str(error)
    assert "\u202e" not in str(error)
    assert len(str(error)) < 5_000
    assert error.message == message[:2_000] + "… (98,010 more characters)"
