"""The command ``app``, which serves the workbench to a browser on 127.0.0.1, with Voila."""

from __future__ import annotations

import os
import socket
import tempfile
import webbrowser
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Option

from toolkit._present.messages import not_installed
from toolkit.cli._console import NodeOption
from toolkit.errors import InputError

_HOST = "127.0.0.1"
_PAGE = Path(__file__).parent / "app"
# The JupyterLab extensions that the page loads, of those that are installed.
_FRONT_ENDS = ("anywidget", "@jupyter-widgets/jupyterlab-manager", "@voila-dashboards/widgets-manager8")
_IDLE_S = 600  # the kernel of a page that was closed ends after this time


def app(
    where: NodeOption = "embedded",
    port: Annotated[int, Option(min=0, max=65535, help="TCP port on 127.0.0.1; 0 picks a free one.")] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="Print the address without opening a browser.")] = False,
) -> None:
    """Open the workbench, with forms for all requests, in a browser until Ctrl-C. Requires the extra [app].

    The server listens on 127.0.0.1 and requires the token in the printed address. The page loads nothing from other
    hosts.

    Examples
    --------
    ledger-toolkit app
    ledger-toolkit app --node testnet --no-browser
    """
    from toolkit.client._http import base_url

    if where != "embedded":
        base_url(where)  # rejects an invalid name before anything starts
    os.environ["LEDGER_TOOLKIT_APP_NODE"] = where
    os.environ["LEDGER_TOOLKIT_APP_FOLDER"] = str(Path.cwd())
    if find_spec("voila") is None:
        raise InputError(not_installed("app", "Voila", "app"))
    chosen = _free_port(port)
    from voila.app import Voila

    with tempfile.TemporaryDirectory(prefix="ledger-toolkit-") as folder:

        class Server(Voila):  # type: ignore[misc]  # Voila has no types
            """Prints its address once it serves, and opens it without the token among a command's arguments."""

            def launch_browser(self) -> None:
                _opened(self, Path(folder), browser=not no_browser)

        _server(Server, chosen).start()  # returns after Ctrl-C, with the kernels shut down
    raise typer.Exit(130)


def _free_port(port: int) -> int:
    """Return the port, or any free port for 0.

    Raises
    ------
    InputError
        If the port is in use.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: a port in TIME_WAIT is free
        try:
            probe.bind((_HOST, port))
        except OSError as error:
            raise InputError(f"cannot listen on port {port}: {error.strerror}; choose another with --port") from None
        return int(probe.getsockname()[1])


def _server(voila: Any, port: int) -> Any:
    """Return the server, configured to serve only this user's browser and to load nothing from other hosts."""
    from jupyter_client.kernelspec import KernelSpecManager
    from jupyter_server.auth import IdentityProvider
    from tornado.web import RequestHandler
    from traitlets.config import Config

    class OwnPython(KernelSpecManager):
        """Offers only the Python that runs the command, not the kernels that the user has installed."""

        def _kernel_dirs_default(self) -> list[str]:
            return []

        def get_kernel_spec(self, kernel_name: str) -> Any:
            spec = super().get_kernel_spec(kernel_name)
            spec.argv.append("--log-level=ERROR")  # its warnings would appear in the terminal of the command
            return spec

    class NoToken(RequestHandler):
        """The page of a visitor without the token."""

        def get(self) -> None:
            self.set_status(403)
            self.finish((_PAGE / "no_token.html").read_text("utf-8"))

    class OwnToken(IdentityProvider):  # type: ignore[misc]  # Jupyter has no types here
        """Requires the token, and has no login page, which would offer passwords and commands of Jupyter."""

        def get_handlers(self) -> list[tuple[str, object]]:
            return [("/login", NoToken)]

    own = f"{_HOST}:{port}"
    content = f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' ws://{own}"
    headers = {"Content-Security-Policy": f"{content}; frame-ancestors 'none'", "Referrer-Policy": "no-referrer"}
    server = voila(
        ip=_HOST,
        port=port,
        port_retries=0,
        auto_token=True,
        identity_provider_class=OwnToken,
        config_file_paths=[],  # a configuration file in the folder or the home directory could give others access
        tornado_settings={
            "headers": headers,
            "allow_remote_access": False,  # only this host: another page's name may resolve here
            # No pings: connections of one host need none. Jupyter's usual time limit makes tornado warn, and a limit as
            # long as the interval, which does not, closes each connection before the first ping.
            "ws_ping_interval": 0,
        },
        log_level="ERROR",
    )
    settings = {
        "show_tracebacks": True,
        "kernel_spec_manager_class": OwnPython,
        "extension_allowlist": list(_FRONT_ENDS),
    }
    culling = {"cull_idle_timeout": _IDLE_S, "cull_interval": 60}
    server.update_config(Config({"VoilaConfiguration": settings, "MappingKernelManager": culling}))
    server.initialize([str(_PAGE / "workbench.ipynb")])
    server.template_paths.insert(0, str(_PAGE))
    return server


def _opened(server: Any, folder: Path, *, browser: bool) -> None:
    """Print the address, and open it through a file, because other users can read the arguments of commands."""
    address = f"http://{_HOST}:{server.port}/?token={server.identity_provider.token}"
    print(f"Workbench: {address}\nStop with Ctrl-C.", flush=True)
    if browser:
        page = folder / "open.html"
        wait = "<p>Starting the workbench&hellip;"  # until the kernel has started and the server answers
        page.write_text(f'<!doctype html><meta http-equiv="refresh" content="0;url={address}">{wait}', "utf-8")
        with suppress(webbrowser.Error):
            webbrowser.open(page.as_uri())
