"""Every way to send one request as `transport`, servers for them, and an environment without proxies, certificates and credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.transports.servers import Proxy, Server, serving
from toolkit.client._engine import BulkEngine
from toolkit.client._http import Credentials, RetryPolicy, proxy_logins
from toolkit.client._transport import SessionTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from toolkit.client._http import Transport


class Bulk(BulkEngine):
    """An engine that sends a single request as it sends many: in its own thread."""

    def send(self, request):
        [(_, outcome)] = self.run([(None, request)], retry=RetryPolicy(attempts=1))
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


TRANSPORTS = {"requests": SessionTransport, "engine": BulkEngine, "bulk": Bulk}
KEY = "topsecret"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the machine's own proxies, certificates and credentials out."""
    names = (
        "HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NETRC REQUESTS_CA_BUNDLE CURL_CA_BUNDLE SSL_CERT_FILE SSL_CERT_DIR"
    )
    for name in names.split():
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture(params=TRANSPORTS)
def open_transport(request: pytest.FixtureRequest) -> Iterator[Callable[..., Transport]]:
    """Return a maker of transports of one kind; what it made is closed."""
    made = []

    def make(*, api_key=None, login=None, **settings):
        credentials = Credentials(api_key, login, proxies=proxy_logins())
        made.append(TRANSPORTS[request.param](credentials, **{"timeout_s": 10, **settings}))
        return made[-1]

    yield make
    for transport in made:
        transport.close()


@pytest.fixture
def transport(open_transport: Callable[..., Transport]) -> Transport:
    """Return a transport with an API key."""
    return open_transport(api_key=KEY)


@pytest.fixture
def hasty(open_transport: Callable[..., Transport]) -> Transport:
    """Return a transport that waits 0.4 s for bytes, for servers that send none."""
    return open_transport(api_key=KEY, timeout_s=0.4)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving(Server()) as one:
        yield one


@pytest.fixture
def other() -> Iterator[Server]:
    """Return a second server: another port is another site."""
    with serving(Server()) as one:
        yield one


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with serving(Proxy()) as one:
        yield one


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory):
    """Return (file of the authority, server context for this machine, server context for another name)."""
    from tests.integration.transports import certificates

    return certificates.make(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls_server(certificate) -> Iterator[Server]:
    with serving(Server(tls=certificate[1])) as one:
        yield one


@pytest.fixture
def trusted(certificate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the local authority."""
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
