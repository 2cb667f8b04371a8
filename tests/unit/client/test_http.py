"""From names and URLs to base URLs, and the memory of a body."""

from __future__ import annotations

import tracemalloc

import pytest

from toolkit.client._http import NETWORKS, Body, base_url, is_nearby, redacted_url
from toolkit.errors import InputError
from toolkit.gas._study import Study
from toolkit.wire import ViewFunction


@pytest.mark.parametrize("name", ["mainnet", "testnet", "devnet"])
def test_network_names_stand_for_their_public_nodes(name):
    """Each public network has its own https address that ends in /v1."""
    assert base_url(name).startswith(f"https://api.{name}.")
    assert base_url(name).endswith("/v1")


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("local", "http://127.0.0.1:8080/v1"),
        ("http://node.test:81", "http://node.test:81/v1"),
        ("http://node.test:81/", "http://node.test:81/v1"),
        ("http://node.test:81/v1", "http://node.test:81/v1"),
        ("http://node.test:81/v1/", "http://node.test:81/v1"),
        (" http://node.test:81/v1\n", "http://node.test:81/v1"),
        ("HTTP://node.test:81//", "http://node.test:81/v1"),
        ("https://gateway.test/ledger", "https://gateway.test/ledger/v1"),
        ("https://gateway.test/ledger/v1", "https://gateway.test/ledger/v1"),
        ("https://gateway.test/v10", "https://gateway.test/v10/v1"),
        ("https://gateway.test/apiv1", "https://gateway.test/apiv1/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_a_url_with_or_without_v1_gives_one_base(target, expected):
    """Trailing slashes and spaces make no difference; only a whole last segment /v1 counts, otherwise it is appended."""
    assert base_url(target) == expected


@pytest.mark.parametrize(
    "target", ["", "mainet", "node.test:8080", "ftp://node.test", "file:///etc/passwd", "http://", "http:///v1"]
)
def test_what_is_neither_name_nor_url_is_refused_with_the_choices(target):
    """The refusal lists what could be written instead."""
    with pytest.raises(InputError, match="embedded, mainnet, testnet, devnet, local") as caught:
        base_url(target)
    assert repr(target) in str(caught.value)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://node.test:99999", "not a usable URL"),
        ("http://node.test:port", "not a usable URL"),
        ("http://[::1", "not a usable URL"),
        ("http://node.test/?key=1", "query or a fragment"),
        ("http://node.test/v1#part", "query or a fragment"),
        ("http://node.test/v1/view", "continues after /v1; pass only the base URL"),
        ("http://node.test/v1/transactions/simulate", "continues after /v1"),
        ("http://node.test/v1/accounts/0x1/", "continues after /v1"),
        ("Mainnet", "did you mean `mainnet`"),
        ("mainnet ", "did you mean `mainnet`"),
        ("test-net", "did you mean `testnet`"),
        ("embeded", "did you mean `embedded`"),
        (8080, "must be a str .*, got int"),
    ],
)
def test_a_url_or_name_that_cannot_be_used_says_why(target, words):
    """Before any request: ports and brackets, what follows the base, and names that are nearly right."""
    with pytest.raises(InputError, match=words):
        base_url(target)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://user:secret@node.test:81/v1", "http://node.test:81/v1"),
        ("http://token@node.test/v1", "http://node.test/v1"),
        ("http://us%40er:s@cret@node.test/v1", "http://node.test/v1"),
        ("http://node.test/v1?api_key=secret", "http://node.test/v1"),
        ("http://node.test/v1", "http://node.test/v1"),
    ],
)
def test_credentials_are_left_out_of_what_is_shown(url, shown):
    """User names, passwords and queries are not for texts."""
    assert redacted_url(url) == shown


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:1",
        "127.9.9.9",
        "127.1",
        "0x7f000001",
        "2130706433",
        "0.0.0.0",
        "10.0.0.1:8080",
        "172.16.3.4",
        "192.168.1.9",
        "169.254.0.7",
        "[::1]:1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:192.168.0.1]",
        "[fe80::1]",
        "[fd00::1]",
        "localhost",
        "LOCALHOST.:80",
        "node.localhost",
        "laptop.local",
    ],
)
def test_this_machine_and_its_network_are_recognised(host):
    """Loopback, private, link-local and unspecified addresses in any spelling, and the names kept for them."""
    assert is_nearby(f"http://{host}/v1")


@pytest.mark.parametrize(
    "url",
    [
        NETWORKS["mainnet"],
        "http://8.8.8.8/v1",
        "http://[2606:4700::1]/v1",
        "http://[::ffff:8.8.8.8]/v1",
        "http://localhost.test/v1",
        "http://notlocal/v1",
        "http://127.evil.test/v1",
    ],
)
def test_other_machines_are_elsewhere(url):
    """A public address, or a name that merely begins or ends like localhost, is elsewhere."""
    assert not is_nearby(url)


@pytest.mark.parametrize(
    "target",
    [
        "ftp://user:hunter2@node.test",
        "ftp://user:hun@hunter2@node.test",
        "http://user:hunter2@node.test/?x=1",
        "http://user:hunter2@node.test:99999",
        "http://user:hunter2/ss@node.test",
        "http://user:12/hunter2@node.test",
        "http://user:pa?hunter2@node.test",
        "http://node.test?key=x@hunter2",
        "http://node.test/?key=hunter2",
        "http://node.test/#hunter2",
        "https:/user:hunter2@node.test",
        "http:\\\\user:hunter2@node.test",
        "user:hunter2@node.test",
        "user:hunter2@127.0.0.1:18501",
    ],
)
def test_a_refused_url_does_not_show_its_password(target):
    """The refusal of a URL leaves user name and password out."""
    with pytest.raises(InputError) as caught:
        base_url(target)
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InputError) as caught:
        Study(node=target, calls=[ViewFunction("0x1::chain_id::get")])
    assert "hunter2" not in str(caught.value)


def test_a_body_in_tiny_pieces_takes_the_memory_of_its_bytes():
    """A server may send chunks of 2 bytes, each of which is an object of 35 bytes."""
    body = Body({})
    tracemalloc.start()
    try:
        for number in range(50_000):
            body.feed(number.to_bytes(2))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2.5 * 100_000
    assert body.finish() == b"".join(number.to_bytes(2) for number in range(50_000))
